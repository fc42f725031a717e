"""Lineage: from any number back to its scores, responses, examples and traces.

A `Lineage` is a selection of scores. Selecting and sorting (`failures`, `lowest`, `disagreements`, `where`) read the
tables of scores alone; `table` then adds the example and the response of each selected score, column by column, in one
pass over each table. A table of all rows takes time proportional to their number; the first twenty of a million cost
little more than finding them.

    lineage_of_value(aggregation, 0).lowest(20).table()            # the rows behind a value, worst first
    lineage_of_scores([mine, yours]).disagreements().to_pandas()   # where two runs were graded differently
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Aggregation
from evaluand.aggregation.groups import rules_for
from evaluand.aggregation.score_shards import dataset_of, shards
from evaluand.aggregation.shard import Shard
from evaluand.comparison.pairing import number_examples
from evaluand.core import identity
from evaluand.core.errors import DataError, NotFound, SpecError, nearest, plural, warn
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.core.row_numbers import number_rows
from evaluand.data.dataset import Dataset
from evaluand.data.sources import read_column
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.signature import condition_of
from evaluand.metrics.stats.intervals import runs
from evaluand.store.tables import ABSTAINED, FAILED, SCORED, SKIPPED, is_json, json_field

if TYPE_CHECKING:
    import pandas as pd

SPREAD: Final = "spread"


def lineage_of_scores(
    evaluations: Evaluation | Sequence[Evaluation], scorers: str | Sequence[str] | None = None
) -> Lineage:
    """The lineage of every score of one or more evaluations.

    Args:
        evaluations: one or more; rows refer to them by position, from 0.
        scorers: names of scorers; None takes all that the evaluations have.

    Raises:
        SpecError: no evaluation is given, or none has a scorer of this name.

    Example:
        >>> from evaluand import Dataset, Evaluator, Runner
        >>> data = Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "C"}])
        >>> run = Runner().run(str.upper, data)
        >>> evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
        >>> worst = lineage_of_scores(evaluation).lowest(1).table()
        >>> worst.select(["input", "expected", "response", "value"]).to_pylist()
        [{'input': 'b', 'expected': 'C', 'response': '"B"', 'value': 0.0}]
    """
    sources = [evaluations] if isinstance(evaluations, Evaluation) else list(evaluations)
    if not sources or not all(isinstance(one, Evaluation) for one in sources):
        raise SpecError("lineage_of_scores takes one or more Evaluation objects")
    known = list(dict.fromkeys(name for one in sources for name in one.scorers))
    names = known if scorers is None else [scorers] if isinstance(scorers, str) else list(scorers)
    for name in names:
        if name not in known:
            raise SpecError(f"no scorer is called {name!r}{nearest(name, known)}; there are {', '.join(known)}")
    parts = [
        _add_source(one.table(name), number, name)
        for number, one in enumerate(sources)
        for name in names
        if name in one.scorers
    ]
    return Lineage(sources, _concatenate(parts))


def lineage_of_value(
    aggregation: Aggregation, row: int | Mapping[str, Any], evaluations: Sequence[Evaluation] | None = None
) -> Lineage:
    """The lineage of one value of an aggregation: the scores it was computed from, and the missing ones.

    These are the rows of its group and target that its metric uses, in the order of their key: of several answers to an
    example the first if the metric uses only that, otherwise all. Skipped rows count in no value and are left out.

    Args:
        row: the row of its table of metrics, or the number of that row.
        evaluations: those that were aggregated, in that order; needed only if they are in another store than a stored
            aggregation.

    Raises:
        SpecError: the aggregation has no such row, or was made from other evaluations.
        NotFound: the store lacks the evaluation or the dataset.
    """
    value = row if isinstance(row, Mapping) else _read_value(aggregation, row)
    if missing := [name for name in _OF_VALUE if name not in value]:
        raise SpecError(
            f"a row of the table of metrics has {', '.join(_OF_VALUE)}; this one lacks {', '.join(missing)}"
        )
    number, scorer, by = value["evaluation"], value["scorer"], dict(value["by"])
    if evaluations is None:
        evaluations = aggregation.evaluations
    elif [each.digest for each in evaluations] != aggregation.manifest["spec"]["evaluations"]:
        raise SpecError("the aggregation was made from other evaluations, or from these in another order")
    evaluation = evaluations[number]
    table = pa.concat_tables(
        shards(evaluation, scorer, tuple(by), where=condition_of(value["signature"])),
        promote_options="default",
    ).combine_chunks()
    chosen = np.zeros(table.num_rows, bool)
    chosen[_rows_used(table, aggregation, value)] = True
    shard = Shard.of(table)
    code, keys = shard.groups(tuple(by))
    places = [i for i, key in enumerate(keys) if key[1:] == tuple(by.values())]
    chosen &= np.isin(code, places)
    if value["target"] is not None:
        chosen &= np.asarray(pc.fill_null(pc.equal(table["target"], value["target"]), False))
    chosen &= np.asarray(pc.not_equal(table["status"], SKIPPED))
    scores = table.select(evaluation.columns(scorer)).filter(pa.array(chosen))
    return Lineage(evaluations, _add_source(scores, number, scorer))


def _read_value(aggregation: Aggregation, number: int) -> Mapping[str, Any]:
    rows = aggregation.table()
    if not (_is_integer(number) and 0 <= number < rows.num_rows):
        raise SpecError(f"the aggregation has {rows.num_rows:,} values, counted from 0; none is {number!r}")
    found: Mapping[str, Any] = rows.slice(number, 1).to_pylist()[0]
    return found


def _rows_used(table: pa.Table, aggregation: Aggregation, row: Mapping[str, Any]) -> np.ndarray:
    """The positions of the rows that a metric uses; all rows if its kind is not installed."""
    metrics = (
        m.metric for m in aggregation.every_measure if (m.scorer, m.metric.kind) == (row["scorer"], row["metric"])
    )
    metric = next((m for m in metrics if f" reduce={m.reduce}" in row["signature"]), None)
    return np.arange(table.num_rows) if metric is None else Shard.of(table).units(rules_for(metric)).rows


class Lineage:
    """Scores and their origins. Make one with `lineage_of_scores` or `lineage_of_value`.

    Attributes:
        evaluations: the evaluations of the scores, by number.
        scores: the scores with the number of their evaluation and the name of their scorer; after `disagreements` also
            with their spread.
    """

    def __init__(self, evaluations: Sequence[Evaluation], scores: pa.Table) -> None:
        self.evaluations, self.scores = list(evaluations), scores

    def __len__(self) -> int:
        return int(self.scores.num_rows)

    def __repr__(self) -> str:
        return f"Lineage({plural(len(self), 'score')} of {plural(len(self.evaluations), 'evaluation')})"

    def failures(self) -> Lineage:
        """The rows where the task or the scorer failed or the scorer abstained."""
        return self._filter(pc.is_in(self.scores["status"], pa.array([FAILED, ABSTAINED])))

    def lowest(self, n: int | None = None, *, column: str = "value") -> Lineage:
        """The scored rows sorted by a column of numbers, the lowest first; equal ones in the order of their key.

        Rows with NaN come last, as with `highest`, and an `EvaluandWarning` counts them.

        Args:
            n: at most so many rows.
            column: the name of any column of `scores`.

        Raises:
            SpecError: `scores` has no such column, it is not numeric, or `n` is no number of rows.
        """
        return self._sort(n, column, descending=False)

    def highest(self, n: int | None = None, *, column: str = "value") -> Lineage:
        """The scored rows sorted by a column of numbers, the highest first."""
        return self._sort(n, column, descending=True)

    def where(self, **equal: Any) -> Lineage:
        """The rows whose columns have these values; None matches a missing value.

        Raises:
            SpecError: `scores` has no such column, or a value has another type.
        """
        found = self
        for name, value in equal.items():
            found._check(name)
            column = found.scores[name]
            try:
                found = found._filter(column.is_null() if value is None else pc.equal(column, pa.scalar(value)))
            except pa.ArrowException:
                raise SpecError(f"column {name} has the type {column.type}, so it never equals {value!r}") from None
        return found

    def head(self, n: int) -> Lineage:
        """The first rows.

        Raises:
            SpecError: `n` is no number of rows.
        """
        _require_number_of_rows(n)
        return Lineage(self.evaluations, self.scores.slice(0, n))

    def disagreements(self) -> Lineage:
        """The rows that two or more evaluations grade differently, the largest spread first.

        Rows are matched by the digest of their example, the replication, the scorer, the target and the number of the
        answer, as in a comparison. They disagree if their values differ; with a null spread, and last, if their labels
        differ without values, or if only some have a score.
        """
        asked = self._filter(pc.not_equal(self.scores["status"], SKIPPED))
        group = asked._number_groups()
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
        valued, differing = most >= least, most > least
        differs = (sizes > 1) & (differing | ~alike_status | (~valued & ~alike_label))
        with np.errstate(invalid="ignore"):
            spread = np.where(differing, most - least, np.nan)
        ranked = np.flatnonzero(differs)
        ranked = ranked[np.lexsort((order[starts[ranked]], -spread[ranked]))]  # NaN is last
        taken = np.concatenate([order[starts[g] : starts[g] + sizes[g]] for g in ranked]) if len(ranked) else order[:0]
        return Lineage(self.evaluations, scores.take(pa.array(taken)))._with_spread(
            np.repeat(spread[ranked], sizes[ranked])
        )

    def table(self) -> pa.Table:
        """The scores with their examples and responses, one row per score, in their order.

        Columns: `evaluation`, `scorer`, the key; `id`, `input`, `expected`, `attributes` and `metadata` of the example,
        if it has them; `response` as canonical JSON, `response_status`, `error`, `attempts`, `duration`, `usage` and
        `n_spans`, the number of spans; then the score. An input of several columns becomes one struct.
        """
        number = self._numbers("evaluation")
        parts, places = [], []
        for each in np.unique(number).tolist():
            rows = np.flatnonzero(number == each)
            part = self.scores.take(pa.array(rows)) if len(rows) < len(number) else self.scores
            parts.append(_Origins(self.evaluations[each]).join(part))
            places.append(rows)
        if not parts:
            return self.scores
        back = np.argsort(np.concatenate(places), kind="stable")
        joined = _concatenate(parts)
        return joined if len(parts) == 1 else joined.take(pa.array(back))

    def to_pandas(self) -> pd.DataFrame:
        """The table as a DataFrame: JSON parsed, one column per attribute and metadata field.

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
                nested = is_json(of) or pa.types.is_struct(of.type)
                columns[name] = (
                    pandas.Series(_python_values(values, of), dtype=object) if nested else values.to_pandas()
                )
        return pandas.DataFrame(columns)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows of the table, with their JSON parsed."""
        for batch in self.table().to_batches():
            names = batch.schema.names
            for row in zip(
                *(_python_values(batch.column(name), batch.schema.field(name)) for name in names), strict=True
            ):
                yield dict(zip(names, row, strict=True))

    def trace(self, place: int) -> list[dict[str, Any]]:
        """The spans of the call behind a row, in the order they were opened; see `store.tables.SPANS`.

        Raises:
            SpecError: the lineage has no such row.
        """
        if not (_is_integer(place) and 0 <= place < len(self)):
            raise SpecError(f"the lineage has {len(self):,} rows, counted from 0; none is {place!r}")
        row = self.scores.select(["evaluation", INDEX, "replication"]).slice(place, 1).to_pylist()[0]
        run = self.evaluations[row["evaluation"]].run
        found: list[dict[str, Any]] = []
        for batch in run.spans() if run else ():
            index = batch.column(INDEX).to_numpy()
            if len(index) and index[0] > row[INDEX]:
                break
            chosen = (index == row[INDEX]) & (batch.column("replication").to_numpy() == row["replication"])
            if chosen.any():
                part = batch.filter(pa.array(chosen))
                names = [name for name in part.schema.names if name not in (INDEX, "replication")]
                columns = (read_column(part, name) for name in names)
                found += [dict(zip(names, span, strict=True)) for span in zip(*columns, strict=True)]
        return found

    def _filter(self, mask: Any) -> Lineage:
        return Lineage(self.evaluations, self.scores.filter(pc.fill_null(mask, False)))

    def _sort(self, n: int | None, column: str, *, descending: bool) -> Lineage:
        _require_number_of_rows(n)
        self._check(column)
        kind = self.scores.schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise SpecError(f"rows are sorted by numbers, but {column} has the type {kind}")
        scored = self._filter(pc.and_(pc.equal(self.scores["status"], SCORED), self.scores[column].is_valid()))
        values = scored.scores[column].cast(pa.float64()).to_numpy()
        if unordered := int(np.isnan(values).sum()):
            have, come = ("has", "it comes") if unordered == 1 else ("have", "they come")
            warn(f"{unordered:,} of {len(values):,} scored rows {have} NaN in {column}; {come} last")
        order = np.argsort(-values if descending else values, kind="stable")[:n]
        return Lineage(self.evaluations, scored.scores.take(pa.array(order)))

    def _check(self, name: str) -> None:
        if name not in self.scores.column_names:
            known = ", ".join(self.scores.column_names)
            raise SpecError(f"no column is called {name!r}{nearest(name, self.scores.column_names)}; there are {known}")

    def _numbers(self, name: str) -> np.ndarray:
        """A column of integers; null becomes -1."""
        return _integers(self.scores[name])

    def _number_groups(self) -> np.ndarray:
        """A number for each score, equal for scores of the same answer to the same example in any evaluation."""
        number, index = self._numbers("evaluation"), self._numbers(INDEX)
        sides = [np.unique(index[number == each]) for each in range(len(self.evaluations))]
        example = np.empty(len(number), np.int64)
        for each, known in enumerate(number_examples(self.evaluations, sides)[1]):
            mine = number == each
            example[mine] = known[np.searchsorted(sides[each], index[mine])]
        texts = [
            self.scores[name].combine_chunks().dictionary_encode(null_encoding="encode")
            for name in ("scorer", "target")
        ]
        codes = [np.asarray(text.indices).astype(np.int64) for text in texts]
        parts = [example, self._numbers("replication"), *codes, np.maximum(self._numbers(RESPONSE_INDEX), 0)]
        return number_rows([np.column_stack(parts)])[0]

    def _with_spread(self, spread: np.ndarray) -> Lineage:
        column = pa.array(spread, pa.float64(), from_pandas=True)
        return Lineage(self.evaluations, self.scores.append_column(SPREAD, column))


class _Origins:
    """The run and the dataset of one evaluation."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @cached_property
    def dataset(self) -> Dataset | None:
        try:
            return dataset_of(self.evaluation)
        except NotFound:
            return None

    def join(self, scores: pa.Table) -> pa.Table:
        """Adds to each score its example and its response."""
        index = np.asarray(scores[INDEX].to_numpy())
        replication = np.asarray(scores["replication"].to_numpy()).astype(np.int64)
        key = [name for name in _KEY if name in scores.column_names]
        columns = {name: (scores.schema.field(name), scores[name]) for name in key}
        joined = self._example(index) | self._response(index, replication, _integers(scores[RESPONSE_INDEX]))
        columns |= {field.name: (field, column) for field, column in joined.values()}
        for field in scores.schema:
            if field.name not in (*_KEY, *_LEFT_OUT):
                name = field.name if field.name not in columns else f"score_{field.name}"
                columns[name] = (field.with_name(name), scores[field.name])
        return pa.table([column for _, column in columns.values()], schema=pa.schema([f for f, _ in columns.values()]))

    def _example(self, index: np.ndarray) -> dict[str, tuple[pa.Field, Any]]:
        dataset = self.dataset
        if dataset is None or not len(dataset):
            return {}
        roles, schema = dataset.roles, dataset.schema
        position = np.searchsorted(np.frombuffer(dataset.indices, np.int64), index)
        taken = _take_rows(dataset.columns(list(roles.columns)), position)

        def one(role: str, name: str) -> tuple[pa.Field, Any]:
            return schema.field(name).with_name(role), taken[name].combine_chunks()

        def several(role: str, names: Mapping[str, str]) -> tuple[pa.Field, Any]:
            parts = [one(part, name) for part, name in names.items()]
            struct = pa.StructArray.from_arrays([_array(column) for _, column in parts], fields=[f for f, _ in parts])
            return pa.field(role, struct.type), struct

        texts = taken[roles.id].cast(pa.string()) if roles.id else pa.array(index).cast(pa.string())
        found = {"id": (pa.field("id", pa.string()), texts)}
        for role in ("input", "expected", "attributes", "metadata"):
            source = getattr(roles, role)
            if isinstance(source, str):
                found[role] = one(role, source)
            elif source:
                found[role] = several(role, source if isinstance(source, Mapping) else {name: name for name in source})
        return found

    def _response(
        self, index: np.ndarray, replication: np.ndarray, number: np.ndarray
    ) -> dict[str, tuple[pa.Field, Any]]:
        run = self.evaluation.run
        if run is None:
            return {}
        key = [INDEX, "replication"]
        keys = pa.Table.from_batches(batch.select(key) for batch in run.batches(key))
        times = int(run.manifest["spec"]["replications"])
        known = np.asarray(keys[INDEX].to_numpy()) * times + np.asarray(keys["replication"].to_numpy())
        wanted = index * times + replication
        place = np.searchsorted(known, wanted)  # both are in the order of the key, and so is the table of spans
        taken = _take_rows(run.batches([*_RESPONSE, "responses"]), place)
        texts = _answers(_array(taken["responses"]), number, run.items)
        renamed = {"status": "response_status"}
        found = {"response": (json_field("response"), texts)}
        for name in _RESPONSE:
            found[name] = (taken.schema.field(name).with_name(renamed.get(name, name)), taken[name])
        counts = _count_spans(run.spans(), known, times)[place]
        return found | {"n_spans": (pa.field("n_spans", pa.int64()), pa.array(counts))}


_KEY: Final = ("evaluation", "scorer", INDEX, "replication", "fold", RESPONSE_INDEX, "target", SPREAD)
_LEFT_OUT: Final = ("digest", "usage")
_OF_VALUE: Final = ("evaluation", "scorer", "metric", "signature", "by", "target")
_RESPONSE: Final = ("status", "error", "attempts", "duration", "usage")


def _is_integer(n: Any) -> bool:
    return isinstance(n, Integral) and not isinstance(n, bool)


def _require_number_of_rows(n: int | None) -> None:
    if n is not None and (not _is_integer(n) or n < 0):
        raise SpecError(f"n must be a number of rows: an integer from 0, not {n!r}")


def _add_source(table: pa.Table, number: int, scorer: str) -> pa.Table:
    n = table.num_rows
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([scorer])).cast(pa.string())
    numbered = table.add_column(0, "evaluation", pa.array(np.full(n, number, np.int32)))
    return numbered.add_column(1, "scorer", names)


def _concatenate(parts: Sequence[pa.Table]) -> pa.Table:
    """Concatenates tables; columns that some lack are null there, columns of several types become JSON."""
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
            for value in read_column(batch, name)
        ]
        table = table.set_column(table.schema.get_field_index(name), json_field(name), pa.array(texts, pa.string()))
    return table


def _take_rows(batches: Iterable[pa.RecordBatch], places: np.ndarray) -> pa.Table:
    """The rows of a stream at some positions, in that order; the stream is read once, batch by batch."""
    positions, back = np.unique(places, return_inverse=True)
    start, parts, schema = 0, [], None
    for batch in batches:
        schema = batch.schema
        low, high = np.searchsorted(positions, [start, start + batch.num_rows])
        if high - low == batch.num_rows:
            parts.append(batch)
        elif high > low:
            parts.append(batch.take(pa.array(positions[low:high] - start)))
        start += batch.num_rows
        if high == len(positions):
            break
    if sum(part.num_rows for part in parts) != len(positions):
        raise DataError("scores refer to rows that the store lacks; run `evaluand verify`")
    table = pa.Table.from_batches(parts, schema)
    in_order = len(back) == len(positions) and bool((back[1:] > back[:-1]).all())
    return table if in_order else table.take(pa.array(back))


def _answers(responses: pa.ListArray, number: np.ndarray, in_lists: bool) -> pa.Array:
    """The text of the numbered response of each row; null if it has none."""
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


def _count_spans(batches: Iterable[pa.RecordBatch], known: np.ndarray, times: int) -> np.ndarray:
    """The number of spans of the call of each key."""
    counts = np.zeros(len(known) + 1, np.int64)
    for batch in batches:
        key = batch.column(INDEX).to_numpy() * times + batch.column("replication").to_numpy()
        place, often = np.unique(np.searchsorted(known, key), return_counts=True)
        counts[place] += often
    return counts


def _integers(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.cast(pa.int64()).fill_null(-1).to_numpy())


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _python_values(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """A column as Python values, with JSON parsed, also inside structs."""
    if is_json(field):
        return [None if text is None else identity.decode(text) for text in column.to_pylist()]
    if not pa.types.is_struct(field.type) or not any(map(is_json, field.type)):
        return list(column.to_pylist())
    parts = [_python_values(pc.struct_field(column, part.name), part) for part in field.type]
    return [dict(zip(field.type.names, row, strict=True)) for row in zip(*parts, strict=True)]
