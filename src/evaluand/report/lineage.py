"""Lineage: from any number back to its scores, responses, examples and traces.

A `Lineage` is a choice of scores. Choosing and sorting (`failures`, `lowest`, `disagreements`, `where`) look at the
tables of scores alone; `table` then fetches what stands beside what is left: example and response, column by column, in
one pass over each table. So a table of all rows costs time in proportion to their number, and the first twenty of a
million cost next to nothing more than finding them.

    lineage_of_value(aggregation, 0).lowest(20).table()      # what a metric's value rests on, worst first
    lineage([mine, yours]).disagreements().to_pandas()       # where two runs were graded differently
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Aggregation, dataset_of, held_as, shards
from evaluand.aggregation.groups import way_of
from evaluand.aggregation.shard import Shard
from evaluand.comparison.pairing import digests_of, matched, occurrences
from evaluand.core import identity
from evaluand.core.errors import DataError, EvaluandWarning, NotFound, SpecError
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.core.registry import nearest
from evaluand.data.dataset import Dataset
from evaluand.data.sources import values_of
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.stats.intervals import runs
from evaluand.run.runner import Run
from evaluand.store.tables import ABSTAINED, FAILED, SCORED, SKIPPED, is_json, json_field

if TYPE_CHECKING:
    import pandas as pd

SPREAD: Final = "spread"


def lineage(evaluations: Evaluation | Sequence[Evaluation], scorers: str | Sequence[str] | None = None) -> Lineage:
    """The lineage of every score of one or more evaluations.

    Args:
        evaluations: in the order in which they are counted, from 0.
        scorers: the names of scorers; all that the evaluations have if not given.

    Raises:
        SpecError: there is no evaluation, or none of them has such a scorer.

    Example:
        >>> from evaluand import Dataset, Evaluator, Runner
        >>> data = Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "C"}])
        >>> run = Runner().run(str.upper, data)
        >>> evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
        >>> worst = lineage(evaluation).lowest(1).table()
        >>> worst.select(["input", "expected", "response", "value"]).to_pylist()
        [{'input': 'b', 'expected': 'C', 'response': '"B"', 'value': 0.0}]
    """
    given = [evaluations] if isinstance(evaluations, Evaluation) else list(evaluations)
    if not given or not all(isinstance(one, Evaluation) for one in given):
        raise SpecError("a lineage is that of an Evaluation, or of several")
    there = list(dict.fromkeys(name for one in given for name in one.scorers))
    wanted = there if scorers is None else [scorers] if isinstance(scorers, str) else list(scorers)
    for name in wanted:
        if name not in there:
            raise SpecError(f"no scorer is called {name!r}{nearest(name, there)}; there are {', '.join(there)}")
    parts = [
        _labelled(one.table(name), number, name)
        for number, one in enumerate(given)
        for name in wanted
        if name in one.scorers
    ]
    return Lineage(given, _joined(parts))


def lineage_of_value(
    aggregation: Aggregation, row: int | Mapping[str, Any], evaluations: Sequence[Evaluation] | None = None
) -> Lineage:
    """The lineage of one value of an aggregation: the scores it was computed from, and those it lacks.

    These are the rows of its group and target that its metric goes by, in the order of their key: of several answers to
    an example the first where it reduces to that, and otherwise all. Skipped rows count in no value and are left out.

    Args:
        aggregation: what holds the value.
        row: the row of its table of metrics, or the number of that row.
        evaluations: what it was made from, in that order, where these are in other stores than it is and it was not
            just made.

    Raises:
        SpecError: there is no such row, or it was made from other evaluations.
        NotFound: the store lacks the evaluation or the dataset.
    """
    value = row if isinstance(row, Mapping) else _value(aggregation, row)
    if missing := [name for name in _OF_VALUE if name not in value]:
        raise SpecError(
            f"a row of the table of metrics has {', '.join(_OF_VALUE)}; this one lacks {', '.join(missing)}"
        )
    number, scorer, by = value["evaluation"], value["scorer"], dict(value["by"])
    if evaluations is None:
        evaluations = aggregation.evaluations
    elif [each.digest for each in evaluations] != aggregation.manifest["spec"]["evaluations"]:
        raise SpecError("the aggregation was made from other evaluations than these, or from these in another order")
    evaluation = evaluations[number]
    table = pa.concat_tables(
        shards(evaluation, dataset_of(evaluation), scorer, tuple(by)), promote_options="default"
    ).combine_chunks()
    kept = np.zeros(table.num_rows, bool)
    kept[_used(table, aggregation, value)] = True
    shard = Shard.of(table)
    code, keys = shard.groups(held_as(tuple(by)))
    places = [i for i, key in enumerate(keys) if key[1:] == tuple(by.values())]
    kept &= np.isin(code, places)
    if value["target"] is not None:
        kept &= np.asarray(pc.fill_null(pc.equal(table["target"], value["target"]), False))
    kept &= np.asarray(pc.not_equal(table["status"], SKIPPED))
    scores = table.select(evaluation.columns(scorer)).filter(pa.array(kept))
    return Lineage(evaluations, _labelled(scores, number, scorer))


def _value(aggregation: Aggregation, number: int) -> Mapping[str, Any]:
    rows = aggregation.table()
    if not (_is_whole(number) and 0 <= number < rows.num_rows):
        raise SpecError(f"the aggregation has {rows.num_rows:,} values, counted from 0; none is {number!r}")
    found: Mapping[str, Any] = rows.slice(number, 1).to_pylist()[0]
    return found


def _used(table: pa.Table, aggregation: Aggregation, row: Mapping[str, Any]) -> np.ndarray:
    """The rows of a scorer's table that a metric goes by; all where its kind is not installed."""
    metrics = (m.metric for m in aggregation.measures if (m.scorer, m.metric.kind) == (row["scorer"], row["metric"]))
    metric = next((m for m in metrics if f" reduce={m.reduce}" in row["signature"]), None)
    return np.arange(table.num_rows) if metric is None else Shard.of(table).units(way_of(metric)).rows


class Lineage:
    """Scores, and where each of them comes from. Make one with `lineage` or `lineage_of_value`.

    Attributes:
        evaluations: those whose scores these are, by number.
        scores: the scores, with the number of the evaluation and the name of the scorer; after `disagreements` with
            their spread.
    """

    def __init__(self, evaluations: Sequence[Evaluation], scores: pa.Table) -> None:
        self.evaluations, self.scores = list(evaluations), scores

    def __len__(self) -> int:
        return int(self.scores.num_rows)

    def __repr__(self) -> str:
        return f"Lineage({len(self):,} scores of {len(self.evaluations)} evaluation{'s'[: len(self.evaluations) > 1]})"

    def failures(self) -> Lineage:
        """The rows where the task or the scorer failed, or that hold nothing to grade."""
        return self._filtered(pc.is_in(self.scores["status"], pa.array([FAILED, ABSTAINED])))

    def lowest(self, n: int | None = None, *, column: str = "value") -> Lineage:
        """The scored rows by a column of numbers, the lowest first; equal ones in the order of their key.

        Rows that hold NaN stand last, as with `highest`, and an `EvaluandWarning` tells how many they are.

        Args:
            n: how many at most.
            column: which; any of `scores`.

        Raises:
            SpecError: there is no such column, it holds no numbers, or `n` is no number of rows.
        """
        return self._ordered(n, column, descending=False)

    def highest(self, n: int | None = None, *, column: str = "value") -> Lineage:
        """The scored rows by a column of numbers, the highest first."""
        return self._ordered(n, column, descending=True)

    def where(self, **equal: Any) -> Lineage:
        """The rows whose columns have these values; None is a row without one.

        Raises:
            SpecError: there is no such column.
        """
        found = self
        for name, value in equal.items():
            found._check(name)
            column = found.scores[name]
            try:
                found = found._filtered(column.is_null() if value is None else pc.equal(column, pa.scalar(value)))
            except pa.ArrowException:
                raise SpecError(f"{name} holds {column.type}, and never {value!r}") from None
        return found

    def head(self, n: int) -> Lineage:
        """The first rows.

        Raises:
            SpecError: `n` is no number of rows.
        """
        _require_number_of_rows(n)
        return Lineage(self.evaluations, self.scores.slice(0, n))

    def disagreements(self) -> Lineage:
        """The rows that two or more evaluations were asked about and grade differently, the largest spread first.

        Rows belong together by the digest of their example, the replication, the scorer, the target and which of
        several answers it is, as in a comparison. They disagree where values differ, and with a spread of null, as the
        last, where labels differ and there are no values, or where one has a score and another none.
        """
        asked = self._filtered(pc.not_equal(self.scores["status"], SKIPPED))
        group = asked._groups()
        order = np.lexsort((asked._numbers("evaluation"), group))
        starts = runs(group[order])
        if not len(starts):
            return asked._with_spread(np.empty(0))
        scores = asked.scores
        scored = np.asarray(pc.equal(scores["status"], SCORED))[order]
        value = np.asarray(scores["value"].cast(pa.float64()).fill_null(np.nan).to_numpy())[order]
        label = np.asarray(scores["label"].combine_chunks().dictionary_encode().indices.fill_null(-1))[order]
        with_value = scored & ~np.isnan(value)
        least = np.minimum.reduceat(np.where(with_value, value, np.inf), starts)
        most = np.maximum.reduceat(np.where(with_value, value, -np.inf), starts)
        alike_status = np.minimum.reduceat(scored, starts) == np.maximum.reduceat(scored, starts)
        alike_label = np.minimum.reduceat(label, starts) == np.maximum.reduceat(label, starts)
        sizes = np.diff(starts, append=len(group))
        valued, apart = most >= least, most > least
        differs = (sizes > 1) & (apart | ~alike_status | (~valued & ~alike_label))
        with np.errstate(invalid="ignore"):
            spread = np.where(apart, most - least, np.nan)
        ranked = np.flatnonzero(differs)
        ranked = ranked[np.lexsort((order[starts[ranked]], -spread[ranked]))]  # NaN is last
        taken = np.concatenate([order[starts[g] : starts[g] + sizes[g]] for g in ranked]) if len(ranked) else order[:0]
        return Lineage(self.evaluations, scores.take(pa.array(taken)))._with_spread(
            np.repeat(spread[ranked], sizes[ranked])
        )

    def table(self) -> pa.Table:
        """The scores with what they come from beside them, a row each, in their order.

        Columns: `evaluation`, `scorer`, the key; `id`, `input`, `expected`, `attributes` and `metadata` of the example,
        where it has them; `response` as canonical JSON, `response_status`, `error`, `attempts`, `duration`, `usage` and
        how many spans its trace has; then the score. Where several columns are the input they are one struct.
        """
        number = self._numbers("evaluation")
        parts, places = [], []
        for each in np.unique(number).tolist():
            rows = np.flatnonzero(number == each)
            part = self.scores.take(pa.array(rows)) if len(rows) < len(number) else self.scores
            parts.append(_Origins(self.evaluations[each]).beside(part))
            places.append(rows)
        if not parts:
            return self.scores
        back = np.argsort(np.concatenate(places), kind="stable")
        joined = _joined(parts)
        return joined if len(parts) == 1 else joined.take(pa.array(back))

    def to_pandas(self) -> pd.DataFrame:
        """The table as a DataFrame: JSON read, attributes and metadata as columns of their own.

        Raises:
            SpecError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise SpecError("to_pandas needs pandas: pip install 'evaluand[pandas]'") from None
        table = self.table()
        columns: dict[str, Any] = {}
        for field in table.schema:
            column = table[field.name]
            if field.name in ("attributes", "metadata"):
                parts = {f"{field.name}.{part.name}": (pc.struct_field(column, part.name), part) for part in field.type}
            else:
                parts = {field.name: (column, field)}
            for name, (values, of) in parts.items():
                told = is_json(of) or pa.types.is_struct(of.type)
                columns[name] = pandas.Series(_values(values, of), dtype=object) if told else values.to_pandas()
        return pandas.DataFrame(columns)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows of the table, with their JSON read."""
        for batch in self.table().to_batches():
            names = batch.schema.names
            for row in zip(*(_values(batch.column(name), batch.schema.field(name)) for name in names), strict=True):
                yield dict(zip(names, row, strict=True))

    def trace(self, place: int) -> list[dict[str, Any]]:
        """The spans of the call behind a row, in the order they were opened; see the table of spans.

        Raises:
            SpecError: there is no such row.
        """
        if not (_is_whole(place) and 0 <= place < len(self)):
            raise SpecError(f"the lineage has {len(self):,} rows, counted from 0; none is {place!r}")
        row = self.scores.select(["evaluation", INDEX, "replication"]).slice(place, 1).to_pylist()[0]
        run = _Origins(self.evaluations[row["evaluation"]]).run
        found: list[dict[str, Any]] = []
        for batch in run.spans() if run else ():
            index = batch.column(INDEX).to_numpy()
            if len(index) and index[0] > row[INDEX]:
                break
            chosen = (index == row[INDEX]) & (batch.column("replication").to_numpy() == row["replication"])
            if chosen.any():
                part = batch.filter(pa.array(chosen))
                names = [name for name in part.schema.names if name not in (INDEX, "replication")]
                columns = (values_of(part, name) for name in names)
                found += [dict(zip(names, span, strict=True)) for span in zip(*columns, strict=True)]
        return found

    def _filtered(self, mask: Any) -> Lineage:
        return Lineage(self.evaluations, self.scores.filter(pc.fill_null(mask, False)))

    def _ordered(self, n: int | None, column: str, *, descending: bool) -> Lineage:
        _require_number_of_rows(n)
        self._check(column)
        kind = self.scores.schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise SpecError(f"rows are sorted by numbers, and {column} holds {kind}")
        there = self._filtered(pc.and_(pc.equal(self.scores["status"], SCORED), self.scores[column].is_valid()))
        values = there.scores[column].cast(pa.float64()).to_numpy()
        if unordered := int(np.isnan(values).sum()):
            told = f"{unordered:,} of {len(values):,} scored rows hold NaN in {column}, and stand last"
            warnings.warn(told, EvaluandWarning, stacklevel=3)
        order = np.argsort(-values if descending else values, kind="stable")[:n]
        return Lineage(self.evaluations, there.scores.take(pa.array(order)))

    def _check(self, name: str) -> None:
        if name not in self.scores.column_names:
            known = ", ".join(self.scores.column_names)
            raise SpecError(f"no column is called {name!r}{nearest(name, self.scores.column_names)}; there are {known}")

    def _numbers(self, name: str) -> np.ndarray:
        """A column of whole numbers; null is -1."""
        return np.asarray(self.scores[name].cast(pa.int64()).fill_null(-1).to_numpy())

    def _groups(self) -> np.ndarray:
        """The same number for scores of the same thing, whichever evaluation they are of."""
        number, index = self._numbers("evaluation"), self._numbers(INDEX)
        sides = [np.unique(index[number == each]) for each in range(len(self.evaluations))]
        keys = [np.empty((0, 3), np.int64) for _ in sides]
        for each, indices in enumerate(sides):
            if len(indices):
                digests = digests_of(self.evaluations[each], indices)
                keys[each] = np.column_stack([digests, occurrences(digests)])
        example = np.empty(len(number), np.int64)
        for each, known in enumerate(matched(keys)):
            mine = number == each
            example[mine] = known[np.searchsorted(sides[each], index[mine])]
        texts = [
            self.scores[name].combine_chunks().dictionary_encode(null_encoding="encode")
            for name in ("scorer", "target")
        ]
        codes = [np.asarray(text.indices).astype(np.int64) for text in texts]
        parts = [example, self._numbers("replication"), *codes, np.maximum(self._numbers(RESPONSE_INDEX), 0)]
        return matched([np.column_stack(parts)])[0]

    def _with_spread(self, spread: np.ndarray) -> Lineage:
        column = pa.array(spread, pa.float64(), from_pandas=True)
        return Lineage(self.evaluations, self.scores.append_column(SPREAD, column))


class _Origins:
    """What one evaluation was made from."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @cached_property
    def run(self) -> Run | None:
        try:
            return Run(self.evaluation.store, self.evaluation.manifest["provenance"]["run"])
        except NotFound:
            return None

    @cached_property
    def dataset(self) -> Dataset | None:
        try:
            return dataset_of(self.evaluation)
        except NotFound:
            return None

    def beside(self, scores: pa.Table) -> pa.Table:
        """Scores with the example and the response of each."""
        index = np.asarray(scores[INDEX].to_numpy())
        replication = np.asarray(scores["replication"].to_numpy()).astype(np.int64)
        key = [name for name in _KEY if name in scores.column_names]
        columns = {name: (scores.schema.field(name), scores[name]) for name in key}
        beside = self._example(index) | self._response(index, replication, _plain(scores[RESPONSE_INDEX]))
        columns |= {field.name: (field, column) for field, column in beside.values()}
        for field in scores.schema:
            if field.name not in (*_KEY, *_NOT_TOLD):
                name = field.name if field.name not in columns else f"score_{field.name}"
                columns[name] = (field.with_name(name), scores[field.name])
        return pa.table([column for _, column in columns.values()], schema=pa.schema([f for f, _ in columns.values()]))

    def _example(self, index: np.ndarray) -> dict[str, tuple[pa.Field, Any]]:
        dataset = self.dataset
        if dataset is None or not len(dataset):
            return {}
        roles, schema = dataset.roles, dataset.schema
        position = np.searchsorted(np.frombuffer(dataset.indices, np.int64), index)
        taken = _taken(dataset.columns(list(roles.columns)), position)

        def one(role: str, name: str) -> tuple[pa.Field, Any]:
            return schema.field(name).with_name(role), taken[name].combine_chunks()

        def several(role: str, names: Mapping[str, str]) -> tuple[pa.Field, Any]:
            parts = [one(part, name) for part, name in names.items()]
            struct = pa.StructArray.from_arrays([_array(column) for _, column in parts], fields=[f for f, _ in parts])
            return pa.field(role, struct.type), struct

        texts = taken[roles.id].cast(pa.string()) if roles.id else pa.array(index).cast(pa.string())
        found = {"id": (pa.field("id", pa.string()), texts)}
        for role in ("input", "expected", "attributes", "metadata"):
            named = getattr(roles, role)
            if isinstance(named, str):
                found[role] = one(role, named)
            elif named:
                found[role] = several(role, named if isinstance(named, Mapping) else {name: name for name in named})
        return found

    def _response(
        self, index: np.ndarray, replication: np.ndarray, number: np.ndarray
    ) -> dict[str, tuple[pa.Field, Any]]:
        run = self.run
        if run is None:
            return {}
        keys = _table(run.batches([INDEX, "replication"]), [INDEX, "replication"])
        times = int(run.manifest["spec"]["replications"])
        known = np.asarray(keys[INDEX].to_numpy()) * times + np.asarray(keys["replication"].to_numpy())
        wanted = index * times + replication
        place = np.searchsorted(known, wanted)  # both are in the order of the key, and so is the table of spans
        taken = _taken(run.batches([*_RESPONSE, "responses"]), place)
        texts = _answers(_array(taken["responses"]), number, run.items)
        told = {"status": "response_status"}
        found = {"response": (json_field("response"), texts)}
        for name in _RESPONSE:
            found[name] = (taken.schema.field(name).with_name(told.get(name, name)), taken[name])
        counts = _counted(run.spans(), known, times)[place]
        return found | {"n_spans": (pa.field("n_spans", pa.int64()), pa.array(counts))}


_KEY: Final = ("evaluation", "scorer", INDEX, "replication", "fold", RESPONSE_INDEX, "target", SPREAD)
_NOT_TOLD: Final = ("digest", "usage")
_OF_VALUE: Final = ("evaluation", "scorer", "metric", "signature", "by", "target")
_RESPONSE: Final = ("status", "error", "attempts", "duration", "usage")


def _is_whole(n: Any) -> bool:
    return isinstance(n, Integral) and not isinstance(n, bool)


def _require_number_of_rows(n: int | None) -> None:
    if n is not None and (not _is_whole(n) or n < 0):
        raise SpecError(f"n is how many rows there are to be at most, a whole number from 0, and not {n!r}")


def _labelled(table: pa.Table, number: int, scorer: str) -> pa.Table:
    n = table.num_rows
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([scorer])).cast(pa.string())
    labelled = table.add_column(0, "evaluation", pa.array(np.full(n, number, np.int32)))
    return labelled.add_column(1, "scorer", names)


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    """Tables one below the other; what some lack is null, and what is of several types becomes JSON."""
    kinds: dict[str, set[pa.DataType]] = {}
    for part in parts:
        for field in part.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    mixed = {name for name, types in kinds.items() if len(types - {pa.null()}) > 1}
    parts = [_as_json(part, mixed & set(part.column_names)) for part in parts]
    return pa.concat_tables(parts, promote_options="default") if len(parts) > 1 else parts[0]


def _as_json(table: pa.Table, names: Iterable[str]) -> pa.Table:
    for name in names:
        texts = [
            None if value is None else identity.encode(value).decode()
            for batch in table.select([name]).to_batches()
            for value in values_of(batch, name)
        ]
        table = table.set_column(table.schema.get_field_index(name), json_field(name), pa.array(texts, pa.string()))
    return table


def _taken(batches: Iterable[pa.RecordBatch], places: np.ndarray) -> pa.Table:
    """Rows of a stream by their places, in the order asked for; the stream is read once and never held whole."""
    wanted, back = np.unique(places, return_inverse=True)
    start, parts, schema = 0, [], None
    for batch in batches:
        schema = batch.schema
        low, high = np.searchsorted(wanted, [start, start + batch.num_rows])
        if high - low == batch.num_rows:
            parts.append(batch)
        elif high > low:
            parts.append(batch.take(pa.array(wanted[low:high] - start)))
        start += batch.num_rows
        if high == len(wanted):
            break
    if sum(part.num_rows for part in parts) != len(wanted):
        raise DataError("scores belong to rows that are not there; see evaluand verify")
    table = pa.Table.from_batches(parts, schema)
    in_order = len(back) == len(wanted) and bool((back[1:] > back[:-1]).all())
    return table if in_order else table.take(pa.array(back))


def _answers(responses: pa.ListArray, number: np.ndarray, in_lists: bool) -> pa.Array:
    """The text of the numbered response of each row; null where there is none."""
    items = responses.flatten()
    texts, numbers = items.field("value"), np.asarray(items.field(RESPONSE_INDEX))
    lengths = np.asarray(responses.value_lengths().fill_null(0)).astype(np.int64)
    ends = np.cumsum(lengths)
    none = (number < 0) | np.asarray(responses.is_null())
    if not in_lists:
        place = np.where(none, 0, ends - lengths + number)
        return texts.take(pa.array(place, mask=none))
    row = np.repeat(np.arange(len(lengths)), lengths)
    mine = np.flatnonzero(numbers == number[row])
    offsets = np.searchsorted(row[mine], np.arange(len(lengths) + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts.take(pa.array(mine)))
    joined = pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")
    return pc.if_else(pa.array(none), pa.scalar(None, pa.string()), joined)


def _counted(batches: Iterable[pa.RecordBatch], known: np.ndarray, times: int) -> np.ndarray:
    """How many spans the call of each key has."""
    counts = np.zeros(len(known) + 1, np.int64)
    for batch in batches:
        key = batch.column(INDEX).to_numpy() * times + batch.column("replication").to_numpy()
        place, often = np.unique(np.searchsorted(known, key), return_counts=True)
        counts[place] += often
    return counts


def _table(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> pa.Table:
    return pa.Table.from_batches(batch.select(list(names)) for batch in batches)


def _plain(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.cast(pa.int64()).fill_null(-1).to_numpy())


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _values(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """A column as Python values, with JSON read, that of the columns that are one struct too."""
    if is_json(field):
        return [None if text is None else identity.decode(text) for text in column.to_pylist()]
    if not pa.types.is_struct(field.type) or not any(map(is_json, field.type)):
        return list(column.to_pylist())
    parts = [_values(pc.struct_field(column, part.name), part) for part in field.type]
    return [dict(zip(field.type.names, row, strict=True)) for row in zip(*parts, strict=True)]
