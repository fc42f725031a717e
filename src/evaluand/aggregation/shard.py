"""A shard of a scorer's table: its key as arrays, with the group and the unit of each row.

`groups` defines units and their statuses; here rows become arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError, kind_of, pluralize
from evaluand.core.identity import decode
from evaluand.core.key_columns import INDEX
from evaluand.core.selector import Selector
from evaluand.data.columns import join_chunks
from evaluand.metrics.base.labels import encode_labels, encode_members, is_list, label_column, score_matrix
from evaluand.metrics.base.metric import (
    CLUSTER,
    DRAW,
    INDEPENDENT,
    LABELS,
    LEAF,
    PEOPLE,
    STRATUM,
    WEIGHT,
    Columns,
    Metric,
    OverTargets,
    stored_as,
)
from evaluand.metrics.stats.intervals import runs
from evaluand.store.tables import SCORE_STATUSES

By = tuple[str, ...]
"""Attributes to group by together; `()` is all rows."""

Key = tuple[str | None, ...]
"""One group: its target, then its value of each attribute."""

EXAMPLES: Final = "examples"
"""A rule in addition to a metric's `reduce`: all replications of an example count together."""

ATTRIBUTE: Final = "by:"
"""Begins the name of a column with an attribute of the examples, which so is none of a scorer."""

SCORED, FAILED, ABSTAINED, SKIPPED = range(len(SCORE_STATUSES))
"""Codes of the statuses, the best first: a unit's status is the smallest of its rows'."""


class RowRules(NamedTuple):
    """How rows of the table become those of a metric.

    Attributes:
        reduce: how responses are reduced.
        weighing: whether a row of weight 0 is dropped.
        needs: columns of scores; a row that lacks one abstains.
    """

    reduce: str
    weighing: bool
    needs: tuple[str, ...] = ()


class Groups(NamedTuple):
    """The group of each row."""

    code: np.ndarray  # the group of each row
    keys: list[Key]


class UnitRows(NamedTuple):
    """The units to count, and their rows."""

    rows: np.ndarray  # the rows that are used, unit by unit
    unit: np.ndarray  # the unit of each of them
    status: np.ndarray  # the status of each of them
    first: np.ndarray  # the first row of each unit
    outcome: np.ndarray  # the status of each unit
    complete: bool  # whether every row is scored

    @property
    def missing(self) -> np.ndarray:
        """Which rows were attempted and have no score."""
        if self.complete:
            return np.zeros(len(self.status), np.bool_)
        return np.asarray((self.status == FAILED) | (self.status == ABSTAINED))

    @property
    def scored(self) -> np.ndarray:
        """The rows that are scored."""
        return self.rows if self.complete else self.rows[self.status == SCORED]

    @property
    def single(self) -> bool:
        """Whether each unit has one row, so that units are numbered as rows are."""
        return len(self.rows) == len(self.first)


@dataclass(frozen=True)
class Shard:
    """A shard, its key as arrays and its rows in the order of the key."""

    table: pa.Table
    index: np.ndarray
    status: np.ndarray
    target: Groups
    replication: np.ndarray
    response: np.ndarray
    order: np.ndarray
    starts: np.ndarray  # where units begin in `order`
    readings: dict[Any, Columns] = field(default_factory=dict, repr=False)  # what metrics read in the same way
    last: dict[tuple[str, ...], Columns] = field(default_factory=dict, repr=False)  # of all rows, by names

    @classmethod
    def of(cls, shard: pa.Table | pa.RecordBatch) -> Shard:
        table = pa.Table.from_batches([shard]) if isinstance(shard, pa.RecordBatch) else shard
        index = _index(table)
        status = _status(table, index)
        one = _one_group(len(index))
        target = _encode(_column(table, "target")) if "target" in table.column_names else one
        replication, response = (_integers(table, name, one.code) for name in ("replication", "_response_index_"))
        if len(target.keys) < 2 and bool((index[1:] > index[:-1]).all()):
            order = starts = np.arange(len(index))  # as it mostly is, see `at`
        else:
            order = np.lexsort((response, status == SKIPPED, target.code, replication, index))
            starts = runs(index[order], replication[order], target.code[order])
        return cls(table, index, status, target, replication, response, order, starts)

    @property
    def span(self) -> tuple[int, int] | None:
        """The first and the last `_index_`, None without rows."""
        return (int(self.index[self.order[0]]), int(self.index[self.order[-1]])) if len(self.order) else None

    def has_all(self, rows: np.ndarray) -> bool:
        """Whether rows are known to be those of the table, in its order."""
        return rows is self.order and self.order is self.starts

    def at(self, array: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The entries of rows in an array; the array itself if these are all rows."""
        return array if self.has_all(rows) else array[rows]

    def groups(self, names: By, over: OverTargets | None = None) -> Groups:
        """The group of each row; pooled targets are one group."""
        there = self.table.column_names
        columns = [ATTRIBUTE + name if ATTRIBUTE + name in there else name for name in names]
        if missing := [name for name in columns if name not in there]:
            raise SpecError(f"cannot group by {', '.join(map(repr, missing))}: the table has no such column")
        found = _one_group(len(self.index)) if over == "pooled" else self.target
        for name in columns:
            found = _cross(found, _encode(_column(self.table, name), name))
        return found

    def units(self, rules: RowRules, scored: Collection[str] | None = None) -> UnitRows:
        """The units under a rule, and their rows.

        Args:
            scored: the columns of scores that some row of the whole table has; those of others are not needed. By
                default the columns that some row of this shard has.
        """
        if rules.reduce == EXAMPLES:
            rows = np.lexsort((self.response, self.replication, self.target.code, self.index))
            starts = runs(self.index[rows], self.target.code[rows])
        else:
            rows, starts = self.at(self.order, self.starts) if rules.reduce == "first" else self.order, self.starts
        if rules.weighing and WEIGHT in self.table.column_names:
            rows, starts = self._drop_weightless(rows, starts)
        status = self.at(self._status_with(rules.needs, scored), rows)
        complete = bool((status == SCORED).all())
        if rules.reduce in ("first", "all"):
            unit = rows if self.has_all(rows) else np.arange(len(rows))
            return UnitRows(rows, unit, status, rows, status, complete)
        unit = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
        outcome = np.minimum.reduceat(status, starts) if len(rows) else status
        return UnitRows(rows, unit, status, rows[starts], outcome, complete)

    def _status_with(self, needs: Sequence[str], scored: Collection[str] | None) -> np.ndarray:
        """The status of each row, where one that lacks a score has abstained."""
        status = self.status
        for name in needs:
            if name not in self.table.column_names or (scored is not None and name not in scored):
                continue
            lacks = lacking(_column(self.table, name)) & (status == SCORED)
            if scored is not None or not lacks[status == SCORED].all():
                status = np.where(lacks, np.int8(ABSTAINED), status)
        return status

    def _drop_weightless(self, rows: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows with a weight, and the starts of their units."""
        weighted = _array(_column(self.table, WEIGHT))[rows] != 0
        if weighted.all():
            return rows, starts
        sizes = np.diff(starts, append=len(rows)) if len(rows) > len(starts) else np.ones(len(rows), np.int64)
        return rows[weighted], runs(np.repeat(np.arange(len(sizes)), sizes)[weighted])

    def extra_columns(self, metric: Metric, rows: np.ndarray, repeated: bool, over: bool = False) -> Columns:
        """The weights and clusters of rows, where the metric needs them.

        Args:
            repeated: whether examples have several replications.
            over: whether rows of several targets are pooled.
        """
        names = (WEIGHT, CLUSTER, *((PEOPLE, DRAW, STRATUM) if metric.reads_labels else ()))
        found = {name: array for name in names if (array := self.array_at(name, rows)) is not None}
        if CLUSTER in found:
            return found
        if metric.counts_independent_rows and metric.reduce == "first" and not (over or repeated):
            found[INDEPENDENT] = self.at(self.index, rows)
        elif over or metric.by_cluster or (not metric.over_replications and (repeated or metric.reduce == "all")):
            found[CLUSTER] = self.at(self.index, rows)
        return found

    def array_at(self, name: str, rows: np.ndarray) -> np.ndarray | None:
        """Some rows of a column; None without the column."""
        if name not in self.table.column_names:
            return None
        column = _column(self.table, name)
        return _array(column if self.has_all(rows) else column.take(pa.array(rows)))

    def columns(self, names: Sequence[str], rows: np.ndarray, metric: Metric) -> Columns:
        """Some rows of some columns, with their `_index_`; labels, and scores by label, as codes."""
        if metric.read is not None:
            return self._read_once(names, rows, metric.read)
        labels, scores = ([n for n in names if n in some] for some in (metric.label_columns, metric.score_columns))
        every = self.has_all(rows) or (len(rows) == self.table.num_rows and bool((rows[1:] > rows[:-1]).all()))
        key = (*names, *labels, *scores)
        if every and key in self.last:
            return {**self.last[key]}
        columns = {name: self._read(name, decoded=name not in labels) for name in names}
        selected = columns if every else {name: column.take(pa.array(rows)) for name, column in columns.items()}
        found = {name: _array(column) for name, column in selected.items() if name not in (*labels, *scores)}
        if labels and metric.score_columns and any(is_list(columns[name].type) for name in labels):
            found |= _sets_and_scores({name: selected[name] for name in labels}, {n: selected[n] for n in scores})
        elif labels:
            texts = [label_column(selected[name], selected[labels[0]].type) for name in scores]
            codes, found[LABELS] = encode_labels([*(selected[name] for name in labels), *texts])
            found |= dict(zip(labels, codes, strict=False))
            for name, code in zip(scores, codes[len(labels) :], strict=True):
                found[name] = score_matrix(selected[name], code, len(found[LABELS]))
        found[INDEX] = self.at(self.index, rows)
        if every:
            self.last.clear()
            self.last[key] = {**found}
        return found

    def _read_once(
        self, names: Sequence[str], rows: np.ndarray, read: Callable[[Mapping[str, Any]], Columns]
    ) -> Columns:
        key = (read, *names, rows.tobytes())
        if key not in self.readings:
            columns = {name: _column(self.table, name).take(pa.array(rows)) for name in names}
            self.readings[key] = read({**columns, INDEX: self.at(self.index, rows)})
        return self.readings[key]

    def _read(self, name: str, *, decoded: bool) -> pa.Array:
        """A column of the table, or the numbers at a path of its JSON."""
        if name in self.table.column_names or not name.startswith(LEAF):
            return _column(self.table, name, decoded=decoded)
        return _leaf(_column(self.table, stored_as(name)), name, self.index)


def _sets_and_scores(sets: Mapping[str, pa.Array], scores: Mapping[str, pa.Array]) -> dict[str, np.ndarray]:
    """Sets of labels as matrices of rows × labels, with the scores of the same labels."""
    kind = next(column.type for column in sets.values() if is_list(column.type))
    texts = [label_column(column, kind) for column in scores.values()]
    matrices, codes, labels = encode_members([*sets.values()], texts)
    found = dict(zip(sets, matrices, strict=True))
    for (name, column), code in zip(scores.items(), codes, strict=True):
        found[name] = score_matrix(column, code, len(labels))
    return {**found, LABELS: labels}


def _leaf(column: pa.Array, name: str, index: np.ndarray) -> pa.Array:
    """The numbers at one path of a column of JSON; null where the path does not exist.

    Raises:
        DataError: a value is not a number, or NaN; names its `_index_`.
    """
    path = Selector(name.removeprefix(LEAF))
    found, undefined = np.full(len(column), np.nan), []
    for row, text in enumerate(column.to_pylist()):
        value = next(iter(path.find(decode(text))), None) if text is not None else None
        if value is None:
            continue
        if not isinstance(value, int | float):
            raise DataError(Fault(f"{INDEX} {index[row]}", f"{name} is {kind_of(value)}, not a number"))
        found[row] = float(value)
        if math.isnan(value):
            message = f"{name} is NaN, which cannot be measured; abstain where a score is undefined, or leave it out"
            undefined.append(Fault(f"{INDEX} {index[row]}", message))
    if undefined:
        raise DataError(undefined)
    return pa.array(found, pa.float64(), from_pandas=True)


def lacking(column: pa.Array) -> np.ndarray:
    """Which rows of a column of scores have none."""
    if pa.types.is_null(column.type):
        return np.ones(len(column), np.bool_)
    lacks = column.is_null()
    if is_list(column.type):
        lacks = pc.or_(lacks, pc.fill_null(pc.equal(pc.list_value_length(column), 0), True))
    return np.asarray(lacks)


def scored_columns(tables: Iterable[pa.Table], names: Collection[str]) -> frozenset[str]:
    """The columns of scores that some row of the tables has; they are read until all are known to have some."""
    found: set[str] = set()
    for table in tables:
        there = {name for name in names if name in table.column_names}
        found |= {name for name in there - found if not lacking(_column(table, name)).all()}
        if found == there:
            break
    return frozenset(found)


def _column(table: pa.Table, name: str, *, decoded: bool = True) -> pa.Array:
    column = join_chunks(table.column(name))
    return column.cast(column.type.value_type) if decoded and pa.types.is_dictionary(column.type) else column


def _index(table: pa.Table) -> np.ndarray:
    if INDEX not in table.column_names:
        raise SpecError(f"the table has no column {INDEX!r}; give it a scorer's table")
    empty = table.column(INDEX).null_count
    if empty:
        raise DataError(f"{empty:,} {pluralize(empty, 'row has', 'rows have')} no {INDEX}")
    return _integers(table, INDEX)


def _integers(table: pa.Table, name: str, otherwise: np.ndarray | None = None) -> np.ndarray:
    """A column of the key; null (a row without responses) becomes -1, before every response."""
    if otherwise is not None and name not in table.column_names:
        return otherwise
    column = _column(table, name)
    column = column if column.type in (pa.int32(), pa.int64()) else column.cast(pa.int64())
    return np.asarray(column.fill_null(-1) if column.null_count else column)


def _status(table: pa.Table, index: np.ndarray) -> np.ndarray:
    if "status" not in table.column_names:
        raise SpecError("the table has no column 'status'; give it a scorer's table")
    column = _column(table, "status", decoded=False)
    values, statuses = column.dictionary if pa.types.is_dictionary(column.type) else column, pa.array(SCORE_STATUSES)
    if values is not column and not column.null_count and values.equals(statuses[: len(values)]):
        return np.asarray(column.indices).astype(np.int8)  # as they are mostly
    code = np.asarray(pc.fill_null(pc.index_in(values.cast(pa.string()), statuses), -1)).astype(np.int8)
    if values is not column:
        indices = column.indices.fill_null(len(code)) if column.null_count else column.indices
        code = np.append(code, np.int8(-1))[np.asarray(indices)]
    if (code < 0).any():
        row = int(np.argmin(code))
        known = ", ".join(SCORE_STATUSES)
        raise DataError(Fault(f"{INDEX} {index[row]}", f"status {column[row].as_py()!r} is none of {known}"))
    return code


def _one_group(n_rows: int) -> Groups:
    return Groups(np.zeros(n_rows, np.int64), [(None,)] if n_rows else [])


def _encode(column: pa.Array, name: str = "target") -> Groups:
    """The groups of a column, in order of appearance."""
    if pa.types.is_nested(column.type) or "binary" in str(column.type):
        raise SpecError(f"cannot group by {name!r}, which holds {column.type}; group by text, numbers, bools or times")
    if column.null_count == len(column):
        return _one_group(len(column))
    if pa.types.is_floating(column.type):
        column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 is 0.0
    encoded = column.dictionary_encode(null_encoding="encode")
    is_float = pa.types.is_floating(column.type)
    values = (encoded.dictionary if is_float else encoded.dictionary.cast(pa.string())).to_pylist()
    texts = [repr(value) if is_float and value is not None else value for value in values]
    return Groups(np.asarray(encoded.indices).astype(np.int64), [(text,) for text in texts])


def _cross(one: Groups, other: Groups) -> Groups:
    """The combinations of two groupings that occur, in order of appearance."""
    n = len(other.keys)
    encoded = pa.array(one.code * n + other.code).dictionary_encode()
    keys = [one.keys[pair // n] + other.keys[pair % n] for pair in encoded.dictionary.to_pylist()]
    return Groups(np.asarray(encoded.indices).astype(np.int64), keys)


def _array(column: pa.Array) -> np.ndarray:
    """Numbers as they are (as floats if some are null), times as times, everything else as Python objects."""
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_decimal(kind) or (pa.types.is_boolean(kind) and column.null_count):
        column = column.cast(pa.float64())
    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        return _matrix(column)
    if pa.types.is_nested(kind):
        return np.fromiter(column.to_pylist(), np.object_, len(column))
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _matrix(column: pa.Array) -> np.ndarray:
    """Lists of numbers as rows of a matrix, padded with NaN."""
    row = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
    length = np.bincount(row, minlength=len(column))
    place = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    found = np.full((len(column), int(length.max(initial=0))), np.nan)
    found[row, place] = np.asarray(pc.list_flatten(column).cast(pa.float64()))
    return found
