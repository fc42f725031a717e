"""The rows of a task as columns of numbers, by which a page filters and sorts without their texts.

A row is one call: an example and a replication, in the order of the run's table.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import INDEX
from evaluand.data.kind import DATASETS
from evaluand.data.roles import read_roles
from evaluand.data.source import read_column
from evaluand.metrics.base.metric import VALUE
from evaluand.report.compared_rows import Compared, read_compared
from evaluand.report.facts.base import Facts
from evaluand.report.facts.evaluation import first_metrics
from evaluand.report.facts.report import Part
from evaluand.report.html.cells import SHORT, TEXT, cut_text
from evaluand.report.text import SHORT_ID
from evaluand.store.statuses import FAILED, RESPONSE_STATUSES, SCORE_STATUSES, SKIPPED
from evaluand.store.tables import is_json

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Measure
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.metrics.base.metric import Metric
    from evaluand.run.runner import Run

OUTCOMES: Final = ("failed", "not scored", "wrong", "right", "scored", "answered")
"""The outcome of a row, worst first. *wrong* and *right* are the values of one scorer, see `find_decisive`; *scored* is
any other score; *answered* has no score."""

STATUSES: Final = ("", *SCORE_STATUSES)
"""The status of a scorer's scores of a row, the worst of several; none first."""

_FAILED, _NOT_SCORED, _WRONG, _RIGHT, _SCORED, _ANSWERED = range(len(OUTCOMES))
_MOST_LABELS: Final = 50
_MOST_WORDS: Final = (1 << 16) - 1  # distinct ones; a column with more has none
MOST_VALUES: Final = 200
"""Values of an attribute that come with the columns."""


@dataclass(frozen=True)
class Words:
    """A column of words: for each row the number of its word, from 1, or 0 for none.

    Attributes:
        known: the words; None if there are too many to choose from, and then every row has 0.
    """

    codes: np.ndarray
    known: list[str] | None

    def limit(self, most: int) -> Words:
        """The words that occur, in the order of their numbers; none to choose from if they are more than so many."""
        found = np.unique(self.codes)
        found = found[found > 0]
        if self.known is None or len(found) > most:
            return Words(np.zeros_like(self.codes), None)
        if len(found) == len(self.known):
            return self
        renumbered = np.zeros(len(self.known) + 1, np.uint16)
        renumbered[found] = np.arange(1, len(found) + 1)
        return Words(renumbered[self.codes], [self.known[code - 1] for code in found])


@dataclass(frozen=True)
class ScorerColumns:
    """What a scorer says of each row.

    Attributes:
        status: the worst one, as its position in `STATUSES`.
        value: the lowest one, or NaN.
        label: the first one.
        compared: the number by which the row is compared; None if none is.
    """

    status: np.ndarray
    value: np.ndarray
    label: Words
    compared: Compared | None = None


@dataclass(frozen=True)
class RowColumns:
    """The rows of a task.

    Attributes:
        duration: in seconds, or NaN.
        outcome: positions in `OUTCOMES`.
        scorers: by name.
        attributes: of the examples, by name.
    """

    index: np.ndarray
    replication: np.ndarray
    outcome: np.ndarray
    duration: np.ndarray
    scorers: Mapping[str, ScorerColumns]
    attributes: Mapping[str, Words]

    def __len__(self) -> int:
        return len(self.index)

    def take(self, chosen: np.ndarray) -> RowColumns:
        """Some of the rows.

        Args:
            chosen: whether each row is taken.
        """
        return self._map(lambda column: column[chosen], lambda words, most: Words(words.codes[chosen], words.known))

    def rank_badness(self) -> np.ndarray:
        """Of rows with the same outcome the one with the lower number is worse: the first scorer's that is compared."""
        compared = (of.compared for of in self.scorers.values() if of.compared is not None and of.compared.direction)
        if (first := next(compared, None)) is None:
            return np.zeros(len(self))
        badness = first.value if first.direction == "higher" else -first.value
        return np.where(np.isnan(badness), np.inf, badness)

    def limit_words(self) -> RowColumns:
        """The same rows with the labels and values that occur, where there are not too many of them."""
        return self._map(lambda column: column, Words.limit)

    def _map(self, column: Callable[[np.ndarray], np.ndarray], words: Callable[[Words, int], Words]) -> RowColumns:
        return RowColumns(
            column(self.index),
            column(self.replication),
            column(self.outcome),
            column(self.duration),
            {
                name: ScorerColumns(
                    column(of.status),
                    column(of.value),
                    words(of.label, _MOST_LABELS),
                    of.compared and replace(of.compared, value=column(of.compared.value)),
                )
                for name, of in self.scorers.items()
            },
            {name: words(of, _MOST_WORDS) for name, of in self.attributes.items()},
        )


def choose_worst(tasks: Sequence[RowColumns], most: int) -> RowKeys:
    """The keys of the rows that are worst for any of some tasks over one dataset: by outcome, then by the score."""
    keys, first = np.unique(
        np.concatenate([np.stack([task.index, task.replication.astype(np.int64)], axis=1) for task in tasks]),
        axis=0,
        return_inverse=True,
    )
    outcome, badness = np.full(len(keys), len(OUTCOMES)), np.full(len(keys), np.inf)
    row = first.reshape(-1)
    np.minimum.at(outcome, row, np.concatenate([task.outcome for task in tasks]))
    is_worst = np.concatenate([task.outcome for task in tasks]) == outcome[row]
    np.minimum.at(badness, row[is_worst], np.concatenate([task.rank_badness() for task in tasks])[is_worst])
    chosen = np.sort(np.lexsort([badness, outcome])[:most])
    return RowKeys(keys[chosen, 0], keys[chosen, 1])


def read_row_columns(
    part: Part, decisive: str | None, measures: Sequence[Measure], attributes: Attributes
) -> RowColumns:
    """Reads the columns of a task.

    Args:
        decisive: the scorer that says which rows are wrong, see `find_decisive`.
        measures: those that summarised the scores; they define which of several answers decides a row.
        attributes: of the run's dataset.
    """
    index, replication, status, duration = _read_calls(part.run)
    keys = RowKeys(index, replication)
    compared = {} if part.evaluation is None else read_compared(part.evaluation, measures, keys)
    outcome, metrics, scorers = _Outcomes(status), first_metrics(measures), dict[str, ScorerColumns]()
    for name in list_scorers(part, measures):
        columns = _ScorerBuilder(len(index))
        for rows in _iterate_scores(part.evaluation, name, keys):
            columns.add(rows)
            wrong = wrong_value(metrics.get(name)) if name == decisive else None
            outcome.add(rows, rows.deciding(metrics.get(name)), wrong)
        scorers[name] = columns.build(compared.get(name))
    return RowColumns(index, replication, outcome.positions(), duration, scorers, attributes.of(index))


def _read_calls(run: Run) -> tuple[np.ndarray, ...]:
    """Index, replication, status (position in `RESPONSE_STATUSES`) and duration (seconds) of each row."""
    parts: list[tuple[np.ndarray, ...]] = [
        (*(np.zeros(0, kind) for kind in (np.int64, np.int32, np.int8, np.float64)),)
    ]
    for batch in run.batches([INDEX, "replication", "status", "duration"]):
        index, replication = (batch.column(name).to_numpy() for name in (INDEX, "replication"))
        duration = batch.column("duration")
        seconds = duration.cast(pa.int64()).to_numpy(zero_copy_only=False) / _PER_SECOND[duration.type.unit]
        parts.append((index, replication, _codes(batch.column("status"), RESPONSE_STATUSES), seconds))
    return (*map(np.concatenate, zip(*parts, strict=True)),)


_PER_SECOND: Final = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}


def list_scorers(part: Part, measures: Sequence[Measure]) -> list[str]:
    """The names of the scorers of a task, first those of the metrics, in their order; none without an evaluation."""
    known = [] if part.evaluation is None else part.evaluation.scorers
    return list(dict.fromkeys([*(each.scorer for each in measures if each.scorer in known), *known]))


def find_decisive(names: Iterable[str], binary: Container[str], metrics: Mapping[str, Metric]) -> str | None:
    """The scorer whose values say which rows are right and wrong; None if no values do.

    It is the first one whose values are all 0 or 1 and whose metric says which of them is better, else the first one
    with such values.

    Args:
        names: of the scorers, first those of declared metrics.
        binary: the scorers whose values are all 0 or 1.
        metrics: the first one of each scorer that has any.
    """
    able = [name for name in names if name in binary]
    directed = (name for name in able if name in metrics and metrics[name].direction is not None)
    return next(directed, able[0] if able else None)


def wrong_value(metric: Metric | None) -> int:
    """Which of 0 and 1 is the worse one: 1 if the metric reads the scores themselves, and lower ones are better."""
    return int(metric is not None and metric.direction == "lower" and VALUE in metric.columns)


def _codes(column: pa.Array | pa.ChunkedArray, known: Sequence[str]) -> np.ndarray:
    """The position of each word; that of a word that is not known is -1."""
    found = pc.index_in(column, value_set=pa.array(known, pa.string()))
    codes: np.ndarray = pc.fill_null(found, -1).to_numpy().astype(np.int8)
    return codes


class RowKeys:
    """The rows of a run by their key, which they are sorted by."""

    def __init__(self, index: np.ndarray, replication: np.ndarray) -> None:
        self._width = int(replication.max()) + 1 if len(replication) else 1
        self._index = index if self._width == 1 else index[np.r_[True, index[1:] != index[:-1]]]
        self._keys, _ = self._number(index, replication)

    def __len__(self) -> int:
        return len(self._keys)

    def places(self, index: np.ndarray, replication: np.ndarray) -> np.ndarray:
        """The row of each key; -1 for none."""
        if not len(self._keys):
            return np.full(len(index), -1)
        keys, is_possible = self._number(index, replication)
        place = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(is_possible & (self._keys[place] == keys), place, -1)

    def _number(self, index: np.ndarray, replication: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers in the order of the keys, and whether a row may have each key."""
        if self._width == 1:  # each example has one row, the first
            return index, replication == 0
        example = np.searchsorted(self._index, index).clip(max=len(self._index) - 1)
        return example * self._width + replication, (self._index[example] == index) & (replication < self._width)


@dataclass(frozen=True)
class _ScoreRows:
    """Rows of a scorer's table, each with the number of the call's row."""

    row: np.ndarray
    response: np.ndarray
    target: np.ndarray  # codes
    status: np.ndarray  # positions in `SCORE_STATUSES`
    value: np.ndarray
    label: pa.Array

    @classmethod
    def read(cls, table: pa.Table, keys: RowKeys) -> _ScoreRows:
        row = keys.places(*(table.column(name).to_numpy() for name in (INDEX, "replication")))
        found = cls(
            row,
            pc.fill_null(table.column("_response_index_"), 0).to_numpy(),
            _number_texts(table.column("target")),
            _codes(table.column("status"), SCORE_STATUSES),
            pc.fill_null(table.column("value").cast(pa.float64()), np.nan).to_numpy(),
            table.column("label").cast(pa.string()).combine_chunks(),
        )
        return found if (row >= 0).all() else found._take(row >= 0)

    def deciding(self, metric: Metric | None) -> np.ndarray:
        """The places of the scores that decide a metric, see `deciding` of facts about evaluations."""
        every = np.arange(len(self.row))
        if metric is None:
            return every
        within = every[self.response < metric.looks_at] if np.isfinite(metric.looks_at) else every
        if metric.reduce not in ("any", "best"):
            return within
        sign = 1 if metric.reduce == "best" and metric.direction == "lower" else -1
        columns = (sign * np.nan_to_num(self.value), self.status, self.target, self.row)
        order = within[np.lexsort([column[within] for column in columns])]
        sides = np.stack([self.row[order], self.target[order]])
        first = np.r_[True, (sides[:, 1:] != sides[:, :-1]).any(axis=0)] if len(order) else np.zeros(0, bool)
        return order[first]

    def _take(self, chosen: np.ndarray) -> _ScoreRows:
        """The rows for which `chosen` is true."""
        row, response, target, status, value = (
            each[chosen] for each in (self.row, self.response, self.target, self.status, self.value)
        )
        return _ScoreRows(row, response, target, status, value, pc.filter(self.label, pa.array(chosen)))


def _iterate_scores(evaluation: Evaluation | None, scorer: str, keys: RowKeys) -> Iterator[_ScoreRows]:
    """The rows of a scorer's table in pieces, each with all scores of its examples."""
    assert evaluation is not None
    names = [INDEX, "replication", "_response_index_", "target", "status", "value", "label"]
    waiting: list[pa.RecordBatch] = []
    for batch in evaluation.batches(scorer, names):
        if not batch.num_rows:
            continue
        index = batch.column(INDEX).to_numpy()
        last = int(np.searchsorted(index, index[-1]))  # of this example more rows may come
        if last and sum(each.num_rows for each in waiting) + last >= _PIECE:
            yield _ScoreRows.read(pa.Table.from_batches([*waiting, batch.slice(0, last)]), keys)
            waiting, batch = [], batch.slice(last)
        waiting.append(batch)
    if waiting:
        yield _ScoreRows.read(pa.Table.from_batches(waiting), keys)


_PIECE: Final = 16_384
"""Rows of scores that are looked at together: many, since each piece takes as long as some thousand rows."""


class _ScorerBuilder:
    """The columns of a scorer, from its rows in pieces."""

    def __init__(self, n: int) -> None:
        self._status, self._label = np.zeros(n, np.uint8), np.zeros(n, np.uint16)
        self._value, self._has_value = np.full(n, np.inf), np.zeros(n, np.bool_)
        self._labels = _Numbering(lambda text: cut_text(text, TEXT))

    def add(self, rows: _ScoreRows) -> None:
        """Adds rows: all of the examples that they are of."""
        np.maximum.at(self._status, rows.row, (rows.status + 1).astype(np.uint8))
        has_value = ~np.isnan(rows.value)
        np.minimum.at(self._value, rows.row[has_value], rows.value[has_value])
        self._has_value[rows.row[has_value]] = True
        labels = self._labels.number(rows.label)
        named = np.flatnonzero(labels)[::-1]  # the first label of a row is assigned last
        self._label[rows.row[named]] = labels[named]

    def build(self, compared: Compared | None) -> ScorerColumns:
        """The columns of all rows that were added."""
        self._value[~self._has_value] = np.nan
        if compared is not None and np.array_equal(compared.value, self._value, equal_nan=True):
            compared = replace(compared, value=self._value)  # one array for both
        return ScorerColumns(self._status, self._value, self._labels.words(self._label), compared)


class _Outcomes:
    """The outcome of each row, from the statuses of calls and the scores that decide the metrics."""

    def __init__(self, status: np.ndarray) -> None:
        self._failed = status == RESPONSE_STATUSES.index(FAILED)
        self._unscored = status == RESPONSE_STATUSES.index(SKIPPED)
        self._scored, self._wrong, self._valued = (np.zeros(len(status), bool) for _ in range(3))

    def add(self, rows: _ScoreRows, deciding: np.ndarray, wrong: int | None) -> None:
        """Counts the scores of a scorer at the places that decide.

        Args:
            wrong: the value of wrong rows; None if the values of the scorer do not say which rows are wrong.
        """
        row, status, value = rows.row[deciding], rows.status[deciding], rows.value[deciding]
        self._scored[row] = True
        is_failed, is_scored = (status == SCORE_STATUSES.index(each) for each in (FAILED, SCORE_STATUSES[0]))
        self._failed[row[is_failed]] = True
        self._unscored[row[~is_failed & ~is_scored]] = True
        if wrong is not None:
            self._valued[row] = True
            self._wrong[row[value == wrong]] = True

    def positions(self) -> np.ndarray:
        """Positions in `OUTCOMES`."""
        found = np.full(len(self._failed), _ANSWERED, np.uint8)
        found[self._scored] = _SCORED
        found[self._valued] = _RIGHT
        found[self._wrong] = _WRONG
        found[self._unscored] = _NOT_SCORED
        found[self._failed] = _FAILED
        return found


@dataclass(frozen=True)
class Attributes:
    """The attributes of the examples of a dataset, by name, and the `_index_` of each, in ascending order."""

    index: np.ndarray
    words: Mapping[str, Words]

    def of(self, index: np.ndarray) -> dict[str, Words]:
        """The attributes of the example of each row."""
        if not len(self.index):
            return {name: Words(np.zeros(len(index), np.uint16), words.known) for name, words in self.words.items()}
        if np.array_equal(self.index, index):
            return dict(self.words)
        at = np.searchsorted(self.index, index).clip(max=len(self.index) - 1)
        is_known = self.index[at] == index
        return {name: Words(np.where(is_known, words.codes[at], 0), words.known) for name, words in self.words.items()}


def read_attributes(run: Run) -> Attributes:
    """The attributes of the dataset of a run; none if the store lacks it."""
    id = run.manifest["spec"]["dataset"]
    try:
        names = list(read_roles(run.store.manifest(DATASETS, id)["spec"]["roles"]).attributes)
    except NotFound:
        return Attributes(np.zeros(0, np.int64), {})
    texts = {name: _Numbering(short_text) for name in names}
    index: list[np.ndarray] = [np.zeros(0, np.int64)]
    codes: dict[str, list[np.ndarray]] = {name: [np.zeros(0, np.uint16)] for name in names}
    for batch in run.store.read(DATASETS, id, "examples", [INDEX, *names]):
        index.append(batch.column(INDEX).to_numpy())
        for name in names:
            codes[name].append(texts[name].number(_read_values(batch, name)))
    words = {name: texts[name].words(np.concatenate(parts)) for name, parts in codes.items()}
    return Attributes(np.concatenate(index), words)


def _read_values(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The values of a column, as texts where equal ones are not known from their bytes."""
    field = batch.schema.field(name)
    if pa.types.is_nested(field.type) or is_json(field):
        return pa.array(map(_write, read_column(batch, name)), pa.string())
    return batch.column(name)


class _Numbering:
    """Numbers the texts of values from 1, in the order in which they first occur, until they are too many."""

    def __init__(self, write: Callable[[Any], str | None]) -> None:
        self._write = write
        self._known: dict[str, int] | None = {}

    def number(self, values: pa.Array) -> np.ndarray:
        """For each value the number of its text, or 0 for none."""
        if self._known is None:
            return np.zeros(len(values), np.uint16)
        encoded = values.dictionary_encode()
        texts = map(self._write, encoded.dictionary.to_pylist())  # equal values are written once
        known = self._known
        numbers = np.array([0 if text is None else known.setdefault(text, len(known) + 1) for text in texts] + [0])
        if len(known) > _MOST_WORDS:
            self._known = None
        codes: np.ndarray = numbers.astype(np.uint16)[pc.fill_null(encoded.indices, len(numbers) - 1).to_numpy()]
        return codes

    def words(self, codes: np.ndarray) -> Words:
        """The words whose numbers these are."""
        return Words(np.zeros_like(codes), None) if self._known is None else Words(codes, [*self._known])


def short_text(value: Any) -> str | None:
    """A short text of a value, to group by: values with different texts have different short ones."""
    text = _write(value)
    if text is None or len(text) <= SHORT:
        return text
    digest = identity.digest_of_text(text.encode("utf-8", "surrogatepass")).hex()[:SHORT_ID]
    return f"{text[:SHORT]}… ({len(text) - SHORT:,} characters more, {digest})"


def _write(value: Any) -> str | None:
    """A value as a person would write it, or as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta | Decimal | UUID):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return identity.name_float(value)
    return identity.encode(value).decode()


def _number_texts(column: pa.ChunkedArray) -> np.ndarray:
    """For each row the number of its text, from 1, or 0 for none."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    numbers: np.ndarray = pc.fill_null(pc.add(encoded.indices, 1), 0).to_numpy(zero_copy_only=False)
    return numbers


def iterate_columns(columns: RowColumns) -> Iterator[tuple[str, np.ndarray]]:
    """Name → column, as a page reads them."""
    yield "index", columns.index.astype("<i8", copy=False)
    yield "replication", columns.replication.astype("<i4", copy=False)
    yield "outcome", columns.outcome
    yield "duration", columns.duration.astype("<f8", copy=False)
    for number, of in enumerate(columns.scorers.values()):
        yield f"status-{number}", of.status
        yield f"value-{number}", of.value.astype("<f8", copy=False)
        yield f"label-{number}", of.label.codes.astype("<u2", copy=False)
        if of.compared is not None:
            yield f"compared-{number}", of.compared.value.astype("<f8", copy=False)
    for number, words in enumerate(columns.attributes.values()):
        yield f"attribute-{number}", words.codes.astype("<u2", copy=False)


def describe_columns(
    columns: RowColumns,
    scores: Iterable[Mapping[str, Any]],
    aggregates: Mapping[str, str],
    metrics: Mapping[str, Metric],
    decisive: str | None,
) -> Facts:
    """The meaning of the numbers in columns, as a page reads it.

    Args:
        scores: as `scores_facts` returns them.
        aggregates: the name of the function that aggregates several calls, by feedback.
        metrics: the first one of each scorer that has any.
        decisive: the scorer that says which rows are wrong.
    """
    kinds = {
        each["scorer"]: {
            "unit": each["unit"],
            "binary": each["binary"],
            "wrong": wrong_value(metrics.get(each["scorer"])) if each["binary"] else None,
        }
        for each in scores
    }
    return {
        "rows": len(columns),
        "outcomes": OUTCOMES,
        "statuses": STATUSES,
        "decisive": decisive,
        "scorers": [
            {"name": name, "labels": of.label.known, "aggregate": aggregates.get(name)}
            | {"compared": of.compared and of.compared.describe()}
            | kinds[name]
            for name, of in columns.scorers.items()
        ],
        "attributes": [_describe_attribute(name, words) for name, words in columns.attributes.items()],
    }


def _describe_attribute(name: str, words: Words) -> Facts:
    """The number of its values, None if they are too many to be numbered; and the values, unless they are many."""
    n = None if words.known is None else len(words.known)
    return {"name": name, "n": n, "values": None if has_many(words) else words.known}


def has_many(words: Words) -> bool:
    """Whether the values of an attribute are so many that a page reads them only to filter by it."""
    return words.known is not None and len(words.known) > MOST_VALUES
