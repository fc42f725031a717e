"""The rows of a task as columns of numbers, by which a page filters and sorts without their texts.

A row is one call: an example and a replication, in the order of the run's table.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from evaluand.data.roles import read_roles
from evaluand.data.source import read_column
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
"""The outcome of a row, worst first. *wrong* is a 0 of a scorer whose values are all 0 or 1; *scored* is any other
score; *answered* has no score."""

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
        """The words that occur, in the order in which they do; none to choose from if they are more than so many."""
        found, first = np.unique(self.codes, return_index=True)
        found = found[np.argsort(first)]
        found = found[found > 0]
        if self.known is None or len(found) > most:
            return Words(np.zeros_like(self.codes), None)
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
    part: Part, binary: Iterable[str], measures: Sequence[Measure], attributes: Attributes
) -> RowColumns:
    """Reads the columns of a task.

    Args:
        binary: the scorers whose values are all 0 or 1.
        measures: those that summarised the scores; they define which of several answers decides a row.
        attributes: of the run's dataset.
    """
    calls = pa.Table.from_batches(part.run.batches([INDEX, "replication", "status", "duration"]))
    index, replication = (calls.column(name).to_numpy() for name in (INDEX, "replication"))
    duration = calls.column("duration").cast(pa.int64()).to_numpy(zero_copy_only=False) / _PER_SECOND[_unit(calls)]
    status = _codes(calls.column("status"), RESPONSE_STATUSES)
    del calls
    keys = RowKeys(index, replication)
    # Before the rows of the scorers are in memory, as this takes the most.
    compared = {} if part.evaluation is None else read_compared(part.evaluation, measures, keys)
    seen = {name: _ScoreRows.read(part.evaluation, name, keys) for name in list_scorers(part)}
    outcome, metrics = _Outcomes(status), first_metrics(measures)
    for name, rows in seen.items():
        outcome.add(rows.deciding(metrics.get(name)), is_binary=name in set(binary))
    return RowColumns(
        index,
        replication,
        outcome.positions(),
        duration.astype(np.float64),
        {name: replace(rows.by_row(len(index)), compared=compared.get(name)) for name, rows in seen.items()},
        attributes.of(index),
    )


_PER_SECOND: Final = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}


def _unit(calls: pa.Table) -> str:
    return str(calls.schema.field("duration").type.unit)


def list_scorers(part: Part) -> list[str]:
    """The names of the scorers of a task; none without an evaluation."""
    return [] if part.evaluation is None else part.evaluation.scorers


def _codes(column: pa.ChunkedArray, known: Sequence[str]) -> np.ndarray:
    """The position of each word; that of a word that is not known is -1."""
    found = pc.index_in(column, value_set=pa.array(known, pa.string()))
    codes: np.ndarray = pc.fill_null(found, -1).to_numpy().astype(np.int8)
    return codes


class RowKeys:
    """The rows of a run by their key, which they are sorted by."""

    def __init__(self, index: np.ndarray, replication: np.ndarray) -> None:
        self._index, first = np.unique(index, return_inverse=True)
        self._width = int(replication.max()) + 1 if len(replication) else 1
        self._keys = first * self._width + replication

    def __len__(self) -> int:
        return len(self._keys)

    def places(self, index: np.ndarray, replication: np.ndarray) -> np.ndarray:
        """The row of each key; -1 for none."""
        if not len(self._keys):
            return np.full(len(index), -1)
        example = np.searchsorted(self._index, index).clip(max=len(self._index) - 1)
        known = (self._index[example] == index) & (replication < self._width)
        keys = example * self._width + replication
        place = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(known & (self._keys[place] == keys), place, -1)


@dataclass(frozen=True)
class _ScoreRows:
    """The rows of a scorer's table, each with the number of the call's row."""

    row: np.ndarray
    response: np.ndarray
    target: np.ndarray  # codes
    status: np.ndarray  # positions in `SCORE_STATUSES`
    value: np.ndarray
    label: Words

    @classmethod
    def read(cls, evaluation: Evaluation | None, scorer: str, keys: RowKeys) -> _ScoreRows:
        assert evaluation is not None
        names = [INDEX, "replication", "_response_index_", "target", "status", "value", "label"]
        table = pa.Table.from_batches(evaluation.batches(scorer, names)).select(names)
        row = keys.places(*(table.column(name).to_numpy() for name in names[:2]))
        value = pc.fill_null(table.column("value").cast(pa.float64()), np.nan).to_numpy()
        found = cls(
            row,
            pc.fill_null(table.column("_response_index_"), 0).to_numpy(),
            _number_texts(table.column("target")),
            _codes(table.column("status"), SCORE_STATUSES),
            value,
            _words(_cut_texts(table.column("label"))),
        )
        return found if (row >= 0).all() else found._take(row >= 0)

    def deciding(self, metric: Metric | None) -> _ScoreRows:
        """The scores that decide a metric, see `deciding` of facts about evaluations."""
        if metric is None:
            return self
        within = self._take(self.response < metric.looks_at) if np.isfinite(metric.looks_at) else self
        if metric.reduce not in ("any", "best"):
            return within
        sign = 1 if metric.reduce == "best" and metric.direction == "lower" else -1
        order = np.lexsort((sign * np.nan_to_num(within.value), within.status, within.target, within.row))
        sides = np.stack([within.row[order], within.target[order]])
        first = np.r_[True, (sides[:, 1:] != sides[:, :-1]).any(axis=0)] if len(order) else np.zeros(0, bool)
        return within._take(order[first])

    def by_row(self, n: int) -> ScorerColumns:
        status, label = np.zeros(n, np.uint8), np.zeros(n, np.uint16)
        np.maximum.at(status, self.row, (self.status + 1).astype(np.uint8))
        value = np.full(n, np.inf)
        has_value = ~np.isnan(self.value)
        np.minimum.at(value, self.row[has_value], self.value[has_value])
        without = np.ones(n, bool)
        without[self.row[has_value]] = False
        value[without] = np.nan
        named = np.flatnonzero(self.label.codes)[::-1]  # the first label of a row is assigned last
        label[self.row[named]] = self.label.codes[named]
        return ScorerColumns(status, value, Words(label, self.label.known))

    def _take(self, chosen: np.ndarray) -> _ScoreRows:
        row, response, target, status, value = (
            each[chosen] for each in (self.row, self.response, self.target, self.status, self.value)
        )
        return _ScoreRows(row, response, target, status, value, Words(self.label.codes[chosen], self.label.known))


class _Outcomes:
    """The outcome of each row, from the statuses of calls and the scores that decide the metrics."""

    def __init__(self, status: np.ndarray) -> None:
        self._failed = status == RESPONSE_STATUSES.index(FAILED)
        self._unscored = status == RESPONSE_STATUSES.index(SKIPPED)
        self._scored, self._zero, self._valued = (np.zeros(len(status), bool) for _ in range(3))

    def add(self, rows: _ScoreRows, *, is_binary: bool) -> None:
        """Counts the scores of a scorer."""
        self._scored[rows.row] = True
        is_failed, is_scored = (rows.status == SCORE_STATUSES.index(status) for status in (FAILED, SCORE_STATUSES[0]))
        self._failed[rows.row[is_failed]] = True
        self._unscored[rows.row[~is_failed & ~is_scored]] = True
        if is_binary:
            self._valued[rows.row] = True
            self._zero[rows.row[rows.value == 0]] = True

    def positions(self) -> np.ndarray:
        """Positions in `OUTCOMES`."""
        conditions = [self._failed, self._unscored, self._zero, self._valued, self._scored]
        return np.select(conditions, [_FAILED, _NOT_SCORED, _WRONG, _RIGHT, _SCORED], _ANSWERED).astype(np.uint8)


@dataclass(frozen=True)
class Attributes:
    """The attributes of the examples of a dataset, by name, and the `_index_` of each."""

    index: np.ndarray
    words: Mapping[str, Words]

    def of(self, index: np.ndarray) -> dict[str, Words]:
        """The attributes of the example of each row."""
        if not len(self.index):
            return {name: Words(np.zeros(len(index), np.uint16), words.known) for name, words in self.words.items()}
        order = np.argsort(self.index, kind="stable")
        at = np.searchsorted(self.index[order], index).clip(max=len(order) - 1)
        place = np.where(self.index[order][at] == index, order[at], len(order))
        return {
            name: Words(np.append(words.codes, 0)[place].astype(np.uint16), words.known)
            for name, words in self.words.items()
        }


def read_attributes(run: Run) -> Attributes:
    """The attributes of the dataset of a run; none if the store lacks it."""
    id = run.manifest["spec"]["dataset"]
    try:
        names = list(read_roles(run.store.manifest("datasets", id)["spec"]["roles"]).attributes)
    except NotFound:
        return Attributes(np.zeros(0, np.int64), {})
    examples = pa.Table.from_batches(run.store.read("datasets", id, "examples", [INDEX, *names]))
    return Attributes(
        examples.column(INDEX).to_numpy(),
        {name: _words(_as_texts(examples.column(name), examples.schema.field(name))) for name in names},
    )


def _as_texts(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The values of a column as short texts; equal ones are converted once."""
    if pa.types.is_nested(field.type) or is_json(field):
        rows = pa.table([column], pa.schema([field]))
        values = (read_column(batch, field.name) for batch in rows.to_batches())
        return pa.chunked_array([pa.array(map(short_text, each), pa.string()) for each in values], pa.string())
    encoded = column.combine_chunks().dictionary_encode()
    texts = pa.array(map(short_text, encoded.dictionary.to_pylist()), pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(encoded.indices, texts).cast(pa.string())])


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


def _cut_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts of at most `TEXT` characters; equal ones are cut once."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = pa.array((cut_text(text, TEXT) for text in encoded.dictionary.to_pylist()), pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(encoded.indices, texts).cast(pa.string())])


def _number_texts(column: pa.ChunkedArray) -> np.ndarray:
    """For each row the number of its text, from 1, or 0 for none."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    numbers: np.ndarray = pc.fill_null(pc.add(encoded.indices, 1), 0).to_numpy(zero_copy_only=False)
    return numbers


def _words(column: pa.ChunkedArray) -> Words:
    known = column.combine_chunks().unique().drop_null().to_pylist()
    if len(known) > _MOST_WORDS:
        return Words(np.zeros(len(column), np.uint16), None)
    return Words(_number_texts(column).astype(np.uint16), known)


def iterate_columns(columns: RowColumns) -> Iterator[tuple[str, np.ndarray]]:
    """Name → column, as a page reads them."""
    yield "index", columns.index.astype("<i8")
    yield "replication", columns.replication.astype("<i4")
    yield "outcome", columns.outcome
    yield "duration", columns.duration.astype("<f8")
    for number, of in enumerate(columns.scorers.values()):
        yield f"status-{number}", of.status
        yield f"value-{number}", of.value.astype("<f8")
        yield f"label-{number}", of.label.codes.astype("<u2")
        if of.compared is not None:
            yield f"compared-{number}", of.compared.value.astype("<f8")
    for number, words in enumerate(columns.attributes.values()):
        yield f"attribute-{number}", words.codes.astype("<u2")


def describe_columns(columns: RowColumns, scores: Iterable[Mapping[str, Any]], aggregates: Mapping[str, str]) -> Facts:
    """The meaning of the numbers in columns, as a page reads it.

    Args:
        scores: as `scores_facts` returns them.
        aggregates: the name of the function that aggregates several calls, by feedback.
    """
    kinds = {each["scorer"]: {"unit": each["unit"], "binary": each["binary"]} for each in scores}
    return {
        "rows": len(columns),
        "outcomes": OUTCOMES,
        "statuses": STATUSES,
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
