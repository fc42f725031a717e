"""Rows of one scorer's table, summarised by groups: every metric, overall and by attribute, in one pass.

The table comes in shards that never cut an example's rows. A shard becomes a `Summary` (counts and metric states, one
entry per group), summaries merge in the order of the shards, and the last one gives the rows. So memory grows with
the number of groups and not of rows, and shards may be summarised anywhere: with the same borders and the same order
the values are the same to the last bit.

Every number carries its denominators. The unit that is counted is an example × replication (× target): its responses
are reduced to one row first, except under `reduce="all"`. Each unit is in exactly one of four states:

    scored       one of its responses is scored; under `reduce="first"` and `"all"` only the response itself counts
    failed       none is scored and one failed
    abstained    none is scored or failed, and one abstained
    skipped      it was never asked: outside `n` and every value, whatever the metric does about missing rows

A missing row is one that would have been used but failed or abstained. The bounds `worst` and `best` are the values
if every missing row had the worst or the best value of its range. They are taken before responses are reduced: if one
of three answers is missing, its example is scored, but its mean still has bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.curves import Drawn
from evaluand.errors import DataError, Fault, SpecError
from evaluand.intervals import CLUSTER_TABLE
from evaluand.labels import coded, label_column, score_matrix
from evaluand.metric import CLUSTER, LABELS, VALUE, WEIGHT, Columns, Fill, Metric, OverTargets, State, Values
from evaluand.rows import INDEX, SCORE_STATUSES

By = tuple[str, ...]
"""Attributes to group by together; `()` is all rows."""

Key = tuple[str | None, ...]
"""One group: its target, then its value of each attribute."""


class Grouping(NamedTuple):
    """How rows are told apart: by attributes, and by target unless values are `over` targets (see `Metric`)."""

    by: By
    over: OverTargets | None = None


class MetricRow(NamedTuple):
    """One metric's value for one group of rows.

    Attributes:
        metric: the metric's kind.
        signature: the metric with all its parameters.
        target: which of several things expected; None where the table has no targets, and for a value over all of
            them (see `over_targets` of `Metric`), whose `data` then say how many `targets` there are.
        by: attribute → value, as text; None is the group of the rows without one. Empty for all rows.
        value: NaN where undefined, with a `reason`.
        low: lower end of the metric's interval, NaN where there is none.
        high: upper end of the metric's interval, NaN where there is none.
        worst: the value if every missing row had the worst value, NaN where the metric cannot tell.
        best: the value if every missing row had the best value, NaN where the metric cannot tell.
        reason: why the value, or else only its interval, is undefined.
        data: what else the metric has to say.
        n: units asked for: scored, failed and abstained ones.
        n_scored: those with a score.
        n_failed: those whose task or scorer failed.
        n_abstained: those the scorer found nothing to grade in.
        n_skipped: units never asked, not in `n`.
    """

    metric: str
    signature: str
    target: str | None
    by: dict[str, str | None]
    value: float
    low: float
    high: float
    worst: float
    best: float
    reason: str | None
    data: Any
    n: int
    n_scored: int
    n_failed: int
    n_abstained: int
    n_skipped: int


@dataclass(frozen=True)
class Summary:
    """What some shards come to: enough to merge and to compute every value, and no row.

    Attributes:
        metrics: in the order asked for.
        by: in the order asked for.
        groups: the groups seen under each grouping.
        counts: under each grouping and way of reducing, per group: units of each status, then missing rows.
        states: of each metric (by position) under each grouping: what missing rows are taken for (None: they are left
            out) → state.
        missing: under each way of reducing, how many rows are missing and the `_index_` of the first few.
        span: the first and the last `_index_`, None without rows.
    """

    metrics: tuple[Metric, ...]
    by: tuple[By, ...]
    groups: Mapping[Grouping, Sequence[Key]]
    counts: Mapping[tuple[Grouping, str], np.ndarray]
    states: Mapping[tuple[int, Grouping], Mapping[Fill | None, State]]
    missing: Mapping[str, tuple[int, tuple[int, ...]]]
    span: tuple[int, int] | None

    def rows(self) -> list[MetricRow]:
        """The values: metrics in the order asked for, all rows before groups, groups in the order of their values.

        Numbers are sorted as numbers where all groups of an attribute are some. Targets are sorted too, and a missing
        attribute comes last.

        Raises:
            DataError: a metric refuses missing rows and there are some.
        """
        self.check_missing(range(len(self.metrics)))
        by = sorted(self.by, key=bool)
        return [row for position in range(len(self.metrics)) for names in by for row in self.values(position, names)]

    def values(self, position: int, names: By, confidence: float | None = None) -> list[MetricRow]:
        """The values of one metric under one grouping: by target, and over all targets where that is asked for.

        Args:
            position: which of the metrics.
            names: which of the groupings.
            confidence: of the intervals, instead of the metric's own.
        """
        metric = self.metrics[position]
        if confidence is not None:
            metric = replace(metric, confidence=confidence)  # type: ignore[call-arg]
        return [row for each in self._groupings(position, names) for row in self._rows(metric, position, each)]

    def curves(self, position: int, names: By, most: int) -> Iterator[tuple[str | None, dict[str, str | None], Drawn]]:
        """What a metric has to draw under one grouping: target, group and curve.

        Args:
            position: which of the metrics.
            names: which of the groupings.
            most: of how many groups of a target curves are given: those with the most scored rows. Of very many groups
                none are.
        """
        metric = self.metrics[position]
        for grouping in self._groupings(position, names):
            keys = self.groups[grouping]
            if grouping.over == "mean" or (names and len(keys) > _DRAWN_OF):
                continue
            found = metric.curves(self.states[position, grouping][_shown(metric)])
            shown = _largest(keys, self.counts[grouping, _way(metric)][:, _SCORED], most) if names else None
            for group in _in_order(keys):
                if shown is not None and group not in shown:
                    continue
                by = dict(zip(names, keys[group][1:], strict=True))
                yield from ((keys[group][0], by, drawn) for drawn in found[group])

    def _groupings(self, position: int, names: By) -> Iterator[Grouping]:
        """By target, and over all targets where there are some and that is asked for."""
        yield Grouping(names)
        over = self.metrics[position].over_targets
        if over and any(key[0] is not None for key in self.groups[Grouping(names)]):
            yield Grouping(names, over)

    def check_missing(self, positions: Iterable[int]) -> None:
        """Stops at metrics that refuse missing rows.

        Raises:
            DataError: there are some.
        """
        for position in positions:
            self._refuse_missing(self.metrics[position])

    def _refuse_missing(self, metric: Metric) -> None:
        count, first = self.missing[_way(metric)]
        if metric.missing == "refuse" and count:
            shown = ", ".join([*map(str, first[:_SHOWN_MISSING]), *["…"] * (len(first) > _SHOWN_MISSING)])
            raise DataError(
                Fault(
                    f"{INDEX} {shown}",
                    f"{count} {'row has' if count == 1 else 'rows have'} no score (failed or abstained) and "
                    f"{metric.kind} refuses missing rows; retry them, or use missing='leave_out' or 'wrong'",
                )
            )

    def _rows(self, metric: Metric, position: int, grouping: Grouping) -> list[MetricRow]:
        groups = self.groups[grouping]
        states, counts = self.states[position, grouping], self.counts[grouping, _way(metric)]
        if not (groups or grouping.by):  # a table without rows still has a group of all rows
            groups, counts = [(None,)], np.zeros((1, counts.shape[1]), np.int64)
            states = {fill: metric.place(state, np.empty(0, np.int64), 1) for fill, state in states.items()}
        compute = metric.compute
        if grouping.over == "mean":
            every, targets = groups, list(dict.fromkeys(key[0] for key in groups))
            groups, members = _without_targets(every)
            lacking = [_lacking(targets, {every[place][0] for place in of.tolist()}) for of in members]
            counts = np.stack([counts[of].sum(axis=0) for of in members])
            compute = partial(_mean_of_all, metric, members, lacking)
        values = compute(states[_shown(metric)])
        data = values.data
        if grouping.over:
            n_targets = len({key[0] for key in self.groups[Grouping(grouping.by)]})
            data = [{**(told or {}), "targets": n_targets} for told in data]
        worst, best = (_bound(compute, states.get(end), values, counts[:, _MISSING]) for end in _ENDS)
        lone = np.isnan(values.value) & (np.isnan(worst) | np.isnan(best))  # one end of nothing tells nothing
        worst, best = (np.where(lone, np.nan, end) for end in (worst, best))
        signature = metric.signature
        return [
            MetricRow(
                metric=metric.kind,
                signature=signature,
                target=groups[group][0],
                by=dict(zip(grouping.by, groups[group][1:], strict=True)),
                value=float(values.value[group]),
                low=float(values.low[group]),
                high=float(values.high[group]),
                worst=float(worst[group]),
                best=float(best[group]),
                reason=values.reason[group],
                data=data[group],
                n=int(counts[group, :_SKIPPED].sum()),
                n_scored=int(counts[group, _SCORED]),
                n_failed=int(counts[group, _FAILED]),
                n_abstained=int(counts[group, _ABSTAINED]),
                n_skipped=int(counts[group, _SKIPPED]),
            )
            for group in _in_order(groups)
        ]


def summarise(
    shards: Iterable[pa.Table | pa.RecordBatch],
    metrics: Sequence[Metric],
    by: Sequence[By] = ((),),
    *,
    repeated: bool = False,
) -> list[MetricRow]:
    """The values of metrics over one scorer's table, overall and by groups.

    Args:
        shards: the table in pieces, in the order of `_index_`, none of which cuts an example's rows. Columns:
            `_index_`, `status`, the scorer's own, one for each attribute in `by`, and where they apply `replication`,
            `_response_index_`, `target`, `_weight_` (of the example) and `_cluster_` (a 64-bit key of the examples
            that belong together).
        metrics: what to compute.
        by: attributes to group by; `()` for all rows, `("race", "gender")` for each pair of values. A group is that
            of an example's first row. Where rows have targets, each target has its own groups.
        repeated: examples have several replications, which are not independent of each other.

    Returns:
        One row per metric and group; see `Summary.rows`. A table without rows still has its row for `()`, no shard
        at all has none.

    Raises:
        SpecError: a metric needs a column the table lacks, or rows cannot be grouped by a column.
        DataError: a metric cannot take a scored row, or refuses missing rows.

    Example:
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> status = ["scored", "scored", "failed"]
        >>> table = pa.table({"_index_": [0, 1, 2], "status": status, "value": [1.0, 0.0, None]})
        >>> [row] = summarise([table], [Accuracy()])
        >>> row.value, round(row.worst, 2), round(row.best, 2), row.n, row.n_scored, row.n_failed
        (0.5, 0.33, 0.67, 3, 2, 1)
    """
    return summary_of_shards(shards, metrics, by, repeated=repeated).rows()


def summary_of_shards(
    shards: Iterable[pa.Table | pa.RecordBatch],
    metrics: Sequence[Metric],
    by: Sequence[By] = ((),),
    *,
    repeated: bool = False,
) -> Summary:
    """The summary of all shards; arguments and errors as for `summarise`."""
    parts: list[Summary] = []
    merged = 0
    for shard in shards:
        parts.append(summarise_shard(shard, metrics, by, repeated=repeated))
        if len(parts) > 1 + min(merged, _AT_ONCE):  # what keeps its rows is not copied with every shard
            merged += len(parts) - 1
            parts = [merge(parts)]
    if not parts:
        return Summary(tuple(metrics), (), {}, {}, {}, {_way(metric): (0, ()) for metric in metrics}, None)
    return merge(parts) if len(parts) > 1 else parts[0]


def summarise_shard(
    shard: pa.Table | pa.RecordBatch, metrics: Sequence[Metric], by: Sequence[By] = ((),), *, repeated: bool = False
) -> Summary:
    """The summary of one shard; arguments and errors as for `summarise`."""
    table = _Table.of(shard)
    by = tuple(dict.fromkeys(tuple(names) for names in by))
    ways = dict.fromkeys([None, *(metric.over_targets for metric in metrics)])
    groups = {
        grouping: table.groups(*grouping) for grouping in (Grouping(names, over) for names in by for over in ways)
    }
    units = {_way(metric): table.units(_way(metric)) for metric in metrics}
    states = {
        (position, grouping): state
        for position, metric in enumerate(metrics)
        for grouping, state in _states(metric, table, units[_way(metric)], groups, repeated).items()
    }
    return Summary(
        metrics=tuple(metrics),
        by=by,
        groups={grouping: found.keys for grouping, found in groups.items()},
        counts={(grouping, way): _counts(units[way], found) for grouping, found in groups.items() for way in units},
        states=states,
        missing={way: _missing(table, found) for way, found in units.items()},
        span=(int(table.index.min()), int(table.index.max())) if len(table.index) else None,
    )


@dataclass(frozen=True)
class Units:
    """One number for each unit, before anything is summarised: what a metric averages.

    Attributes:
        index: its example.
        replication: which repeat; 0 where a metric takes all replications of an example together.
        response: which of several answers, where each counts for itself; else 0.
        group: which of `keys` it belongs to.
        keys: the groups: target, then the values of the attributes asked for.
        outcome: its status, as a position in `SCORE_STATUSES`.
        value: what the metric takes for it, NaN where it takes nothing.
        worst: `value` if everything missing in it were the worst, NaN where the metric cannot tell.
        best: `value` if everything missing in it were the best.
        weight: of its example, None where examples have none.
        cluster: the key of those examples that belong together, None where nothing is declared.
    """

    index: np.ndarray
    replication: np.ndarray
    response: np.ndarray
    group: np.ndarray
    keys: list[Key]
    outcome: np.ndarray
    value: np.ndarray
    worst: np.ndarray
    best: np.ndarray
    weight: np.ndarray | None
    cluster: np.ndarray | None


def units_of(shard: pa.Table | pa.RecordBatch, metric: Metric, by: By = ()) -> Units:
    """What a metric averages, unit by unit; arguments and errors as for `summarise`.

    Args:
        metric: one that `averages`.
        by: attributes whose values tell groups apart.
    """
    table = _Table.of(shard)
    units = table.units(_way(metric))
    scored = units.status == _SCORED
    columns = _prepared(metric, table, units.rows[scored])
    value = _by_unit(metric, table, columns, units, _shown(metric))
    whole = np.bincount(units.unit[units.status < _SKIPPED], minlength=len(units.first)) == np.bincount(
        units.unit[scored], minlength=len(units.first)
    )
    worst, best = (
        _by_unit(metric, table, columns, units, fill) if math.isfinite(end) else np.where(whole, value, np.nan)
        for fill, end in zip(_ENDS, metric.ends, strict=True)
    )
    groups, first, nothing = table.groups(by), units.first, np.zeros(len(units.first), np.int64)
    beside = table.beside(metric, first, repeated=False)
    return Units(
        index=table.index[first],
        replication=nothing if metric.over_replications else table.replication[first],
        response=table.response[first] if _way(metric) == "all" else nothing,
        group=groups.code[first],
        keys=groups.keys,
        outcome=units.outcome,
        value=value,
        worst=worst,
        best=best,
        weight=beside.get(WEIGHT),
        cluster=beside[CLUSTER] if CLUSTER in table.table.column_names else None,
    )


def merge(summaries: Sequence[Summary]) -> Summary:
    """The summary of all shards together, merged from left to right; all must be of the same metrics and `by`.

    Raises:
        DataError: two shards share an `_index_` or come in the wrong order.
    """
    first = summaries[0]
    groups = {grouping: _union([summary.groups[grouping] for summary in summaries]) for grouping in first.groups}
    places = {
        grouping: [_places(summary.groups[grouping], found) for summary in summaries]
        for grouping, found in groups.items()
    }

    def counts(grouping: Grouping, way: str) -> np.ndarray:
        total = np.zeros((len(groups[grouping]), _MISSING + 1), np.int64)
        for summary, place in zip(summaries, places[grouping], strict=True):
            total[place] += summary.counts[grouping, way]
        return total

    def state(position: int, grouping: Grouping, fill: Fill | None) -> State:
        metric = first.metrics[position]
        parts = zip((summary.states[position, grouping][fill] for summary in summaries), places[grouping], strict=True)
        return metric.merge([metric.place(part, place, len(groups[grouping])) for part, place in parts])

    return Summary(
        metrics=first.metrics,
        by=first.by,
        groups=groups,
        counts={(grouping, way): counts(grouping, way) for grouping, way in first.counts},
        states={
            (i, grouping): {fill: state(i, grouping, fill) for fill in fills}
            for (i, grouping), fills in first.states.items()
        },
        missing={way: _first_missing([summary.missing[way] for summary in summaries]) for way in first.missing},
        span=_span([summary.span for summary in summaries if summary.span]),
    )


def _way(metric: Metric) -> str:
    """How rows of the table become the rows of a metric."""
    return _EXAMPLES if metric.over_replications else metric.reduce


def _shown(metric: Metric) -> Fill | None:
    """What missing rows are taken for in the value itself."""
    return "wrong" if metric.missing == "wrong" else None


_EXAMPLES: Final = "examples"
_ENDS: Final[tuple[Fill, Fill]] = ("worst", "best")
_SCORED, _FAILED, _ABSTAINED, _SKIPPED = range(len(SCORE_STATUSES))
_MISSING: Final = len(SCORE_STATUSES)
"""Codes of the statuses, the best first: a unit's status is the smallest of its rows'. Then a column of the counts."""

_SHOWN_MISSING: Final = 10
_DRAWN_OF: Final = 1000
_AT_ONCE: Final = 64


class _Groups(NamedTuple):
    code: np.ndarray  # the group of each row
    keys: list[Key]


class _Units(NamedTuple):
    rows: np.ndarray  # the rows that are used, unit by unit
    unit: np.ndarray  # the unit of each of them
    status: np.ndarray  # the status of each of them
    first: np.ndarray  # the first row of each unit
    outcome: np.ndarray  # the status of each unit


@dataclass(frozen=True)
class _Table:
    """A shard, its key as arrays and its rows in the order of the key."""

    table: pa.Table
    index: np.ndarray
    status: np.ndarray
    target: _Groups
    replication: np.ndarray
    response: np.ndarray
    order: np.ndarray
    starts: np.ndarray  # where units begin in `order`

    @classmethod
    def of(cls, shard: pa.Table | pa.RecordBatch) -> _Table:
        table = pa.Table.from_batches([shard]) if isinstance(shard, pa.RecordBatch) else shard
        index = _integers(table, INDEX, required=True)
        status = _status(table, index)
        target = _encoded(_column(table, "target")) if "target" in table.column_names else _one_group(len(index))
        replication, response = _integers(table, "replication"), _integers(table, "_response_index_")
        if len(target.keys) < 2 and bool((index[1:] > index[:-1]).all()):
            order = starts = np.arange(len(index))  # as it mostly is
        else:
            order = np.lexsort((response, status == _SKIPPED, target.code, replication, index))
            starts = _starts([index[order], replication[order], target.code[order]])
        return cls(table, index, status, target, replication, response, order, starts)

    def groups(self, names: By, over: OverTargets | None = None) -> _Groups:
        """Which group each row is in; those of all targets are one where they are pooled."""
        lacking = [name for name in names if name not in self.table.column_names]
        if lacking:
            raise SpecError(f"cannot group by {', '.join(map(repr, lacking))}: the table has no such column")
        found = _one_group(len(self.index)) if over == "pooled" else self.target
        for name in names:
            found = _crossed(found, _encoded(_column(self.table, name), name))
        return found

    def units(self, way: str) -> _Units:
        """What is counted under a way of reducing, and the rows it is made of."""
        if way == _EXAMPLES:
            rows = np.lexsort((self.response, self.replication, self.target.code, self.index))
            starts = _starts([self.index[rows], self.target.code[rows]])
        else:
            rows, starts = self.order[self.starts] if way == "first" else self.order, self.starts
        status = self.status[rows]
        if way in ("first", "all"):
            return _Units(rows, np.arange(len(rows)), status, rows, status)
        unit = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
        outcome = np.minimum.reduceat(status, starts) if len(rows) else status
        return _Units(rows, unit, status, rows[starts], outcome)

    def beside(self, metric: Metric, rows: np.ndarray, repeated: bool, over: bool = False) -> Columns:
        """The weights of rows, and what tells those apart that belong together, where the metric is to know.

        Args:
            over: rows of several targets come together.
        """
        found = {}
        if WEIGHT in self.table.column_names:
            found[WEIGHT] = _array(_column(self.table, WEIGHT).take(pa.array(rows)))
        if CLUSTER in self.table.column_names:
            found[CLUSTER] = _array(_column(self.table, CLUSTER).take(pa.array(rows)))
        elif over or metric.by_cluster or (not metric.over_replications and (repeated or metric.reduce == "all")):
            found[CLUSTER] = self.index[rows]
        return found

    def columns(self, names: Sequence[str], rows: np.ndarray, metric: Metric) -> Columns:
        """Some rows of some columns, with their `_index_`; the metric's labels, and scores by label, coded."""
        labels, scores = ([n for n in names if n in some] for some in (metric.label_columns, metric.score_columns))
        whole = len(rows) == self.table.num_rows and bool((rows[1:] > rows[:-1]).all())
        columns = {name: _column(self.table, name, decoded=name not in labels) for name in names}
        taken = columns if whole else {name: column.take(pa.array(rows)) for name, column in columns.items()}
        found = {name: _array(column) for name, column in taken.items() if name not in (*labels, *scores)}
        if labels:
            texts = [label_column(taken[name], taken[labels[0]].type) for name in scores]
            codes, found[LABELS] = coded([*(taken[name] for name in labels), *texts])
            found |= dict(zip(labels, codes, strict=False))
            for name, code in zip(scores, codes[len(labels) :], strict=True):
                found[name] = score_matrix(taken[name], code, len(found[LABELS]))
        return {**found, INDEX: self.index[rows]}


def _column(table: pa.Table, name: str, *, decoded: bool = True) -> pa.Array:
    column = table.column(name).combine_chunks()
    return column.cast(column.type.value_type) if decoded and pa.types.is_dictionary(column.type) else column


def _integers(table: pa.Table, name: str, *, required: bool = False) -> np.ndarray:
    """A column of the key; null (a row without responses) counts as -1, before every response."""
    if name not in table.column_names:
        if required:
            raise SpecError(f"the table has no column {name!r}; give it a scorer's table")
        return np.zeros(table.num_rows, np.int64)
    column = _column(table, name).cast(pa.int64())
    if required and column.null_count:
        raise DataError(f"{column.null_count} rows have no {name}")
    return np.asarray(column.fill_null(-1))


def _status(table: pa.Table, index: np.ndarray) -> np.ndarray:
    if "status" not in table.column_names:
        raise SpecError("the table has no column 'status'; give it a scorer's table")
    column = _column(table, "status", decoded=False)
    held = column.dictionary if pa.types.is_dictionary(column.type) else column
    code = np.asarray(pc.fill_null(pc.index_in(held.cast(pa.string()), pa.array(SCORE_STATUSES)), -1)).astype(np.int8)
    if held is not column:
        indices = column.indices.fill_null(len(code)) if column.null_count else column.indices
        code = np.append(code, np.int8(-1))[np.asarray(indices)]
    if (code < 0).any():
        row = int(np.argmin(code))
        known = ", ".join(SCORE_STATUSES)
        raise DataError(Fault(f"{INDEX} {index[row]}", f"status {column[row].as_py()!r} is none of {known}"))
    return code


def _starts(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Where a new combination of sorted keys begins."""
    new = np.ones(len(keys[0]), np.bool_)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.flatnonzero(new)


def _one_group(n_rows: int) -> _Groups:
    return _Groups(np.zeros(n_rows, np.int64), [(None,)] if n_rows else [])


def _encoded(column: pa.Array, name: str = "target") -> _Groups:
    """The groups a column makes, in the order they appear."""
    if pa.types.is_nested(column.type) or "binary" in str(column.type):
        raise SpecError(f"cannot group by {name!r}, which holds {column.type}; group by text, numbers, bools or times")
    if pa.types.is_floating(column.type):
        column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 is 0.0
    encoded = column.dictionary_encode(null_encoding="encode")
    return _Groups(np.asarray(encoded.indices).astype(np.int64), [(text,) for text in _texts(encoded.dictionary)])


def _texts(values: pa.Array) -> list[str | None]:
    if pa.types.is_floating(values.type):
        return [None if value is None else repr(value) for value in values.to_pylist()]
    texts: list[str | None] = values.cast(pa.string()).to_pylist()
    return texts


def _crossed(one: _Groups, other: _Groups) -> _Groups:
    """The combinations of two groupings that occur, in the order they appear."""
    n = len(other.keys)
    encoded = pa.array(one.code * n + other.code).dictionary_encode()
    keys = [one.keys[pair // n] + other.keys[pair % n] for pair in encoded.dictionary.to_pylist()]
    return _Groups(np.asarray(encoded.indices).astype(np.int64), keys)


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
    """Lists of numbers as rows, filled up with NaN."""
    row = np.asarray(pc.list_parent_indices(column)).astype(np.int64)
    length = np.bincount(row, minlength=len(column))
    place = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    found = np.full((len(column), int(length.max(initial=0))), np.nan)
    found[row, place] = np.asarray(pc.list_flatten(column).cast(pa.float64()))
    return found


def _states(
    metric: Metric, table: _Table, units: _Units, groups: Mapping[Grouping, _Groups], repeated: bool
) -> dict[Grouping, dict[Fill | None, State]]:
    """A metric's states by group, once for each thing that missing rows are taken for."""
    scored = units.status == _SCORED
    columns = _prepared(metric, table, units.rows[scored])
    asked = units.status < _SKIPPED
    complete = bool((scored == asked).all())
    fills = (_shown(metric), *(fill for fill, end in zip(_ENDS, metric.ends, strict=True) if math.isfinite(end)))
    groups = {grouping: found for grouping, found in groups.items() if grouping.over in (None, metric.over_targets)}
    states: dict[Grouping, dict[Fill | None, State]] = {grouping: {} for grouping in groups}
    for fill in fills[:1] if complete else fills:
        rows, unit = _taken(metric, table, columns, units, fill)
        first = units.first[unit]
        beside = {over: table.beside(metric, first, repeated, over) for over in {bool(g.over) for g in groups}}
        for grouping, (code, keys) in groups.items():
            state = metric.state({**rows, **beside[bool(grouping.over)]}, code[first], len(keys))
            for same in fills if complete else (fill,):
                states[grouping][same] = state if same == fills[0] else _without_clusters(state)
    return states


def _prepared(metric: Metric, table: _Table, rows: np.ndarray) -> Columns:
    names = metric.columns_for(table.table.column_names)
    return metric.prepare(table.columns(names, rows, metric))


def _taken(
    metric: Metric, table: _Table, columns: Columns, units: _Units, fill: Fill | None
) -> tuple[Columns, np.ndarray]:
    """One row for each unit that has any, with something put in for missing rows, and the unit of each row."""
    scored, asked = units.status == _SCORED, units.status < _SKIPPED
    if fill is None:
        return _reduced(metric, columns, units.unit[scored])
    told = [name for name in metric.fill_columns if name in table.table.column_names]
    missing = table.columns(told, units.rows[asked & ~scored], metric)
    return _reduced(metric, metric.filled(columns, scored[asked], missing, fill), units.unit[asked])


def _by_unit(metric: Metric, table: _Table, columns: Columns, units: _Units, fill: Fill | None) -> np.ndarray:
    rows, unit = _taken(metric, table, columns, units, fill)
    values = np.full(len(units.first), np.nan)
    values[unit] = rows[VALUE]
    return values


def _without_clusters(state: State) -> State:
    """Only the value that is shown has an interval; the bounds need no clusters."""
    return {name: array for name, array in state.items() if name not in CLUSTER_TABLE}


def _reduced(metric: Metric, columns: Columns, unit: np.ndarray) -> tuple[Columns, np.ndarray]:
    """One row for each unit that has any, and the unit of each row."""
    starts = _starts([unit])
    if len(starts) == len(unit) and not metric.over_replications:
        return columns, unit
    return {VALUE: metric.reduced(columns[VALUE], starts)}, unit[starts]


def _counts(units: _Units, groups: _Groups) -> np.ndarray:
    n = len(groups.keys)
    group = groups.code[units.first]
    outcomes = [np.bincount(group[units.outcome == status], minlength=n) for status in range(len(SCORE_STATUSES))]
    missing = (units.status == _FAILED) | (units.status == _ABSTAINED)
    return np.stack([*outcomes, np.bincount(group[units.unit[missing]], minlength=n)], axis=1)


def _missing(table: _Table, units: _Units) -> tuple[int, tuple[int, ...]]:
    index = table.index[units.rows[(units.status == _FAILED) | (units.status == _ABSTAINED)]]
    return len(index), tuple(np.unique(index)[: _SHOWN_MISSING + 1].tolist())


def _first_missing(parts: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[int, tuple[int, ...]]:
    shown = dict.fromkeys(index for _, first in parts for index in first)
    return sum(count for count, _ in parts), tuple(shown)[: _SHOWN_MISSING + 1]


def _union(groups: Sequence[Sequence[Key]]) -> list[Key]:
    return list(dict.fromkeys(key for keys in groups for key in keys))


def _places(keys: Sequence[Key], among: Sequence[Key]) -> np.ndarray:
    place = {key: position for position, key in enumerate(among)}
    return np.array([place[key] for key in keys], np.int64)


def _span(spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    for (_, last), (following, _) in pairwise(spans):
        if following <= last:
            raise DataError(
                f"the shards overlap or are out of order: one ends at {INDEX} {last}, the next begins at {following}; "
                "cut the table between examples and keep its order"
            )
    return (spans[0][0], spans[-1][1]) if spans else None


def _without_targets(groups: Sequence[Key]) -> tuple[list[Key], list[np.ndarray]]:
    """The groups whatever their targets, and which groups each of them is made of."""
    members: dict[Key, list[int]] = {}
    for place, key in enumerate(groups):
        members.setdefault((None, *key[1:]), []).append(place)
    return [*members], [np.array(places) for places in members.values()]


def _lacking(targets: Sequence[str | None], there: Collection[str | None]) -> str | None:
    """Which targets a group has no rows of, in words; None where it has all."""
    names = [str(target) for target in targets if target not in there]
    shown = [*names[:_SHOWN_MISSING], *["…"] * (len(names) > _SHOWN_MISSING)]
    return f"no mean over {len(targets)} targets: no rows of {', '.join(shown)}" if names else None


def _mean_of_all(metric: Metric, members: Sequence[np.ndarray], lacking: Sequence[str | None], state: State) -> Values:
    """The mean over targets, undefined where some are lacking: that of the others is another number."""
    found = metric.mean_over(state, members)
    whole = np.array([why is None for why in lacking])
    value, low, high = (np.where(whole, end, np.nan) for end in (found.value, found.low, found.high))
    reason = [why or told for why, told in zip(lacking, found.reason, strict=True)]
    return Values(value, low, high, reason, found.data)


def _largest(keys: Sequence[Key], n: np.ndarray, most: int) -> set[int]:
    """Of each target the groups with the most rows."""
    of: dict[str | None, list[int]] = {}
    for group in np.argsort(-n, kind="stable").tolist():
        of.setdefault(keys[group][0], []).append(group)
    return {group for groups in of.values() for group in groups[:most]}


def _bound(compute: Callable[[State], Values], state: State | None, values: Values, missing: np.ndarray) -> np.ndarray:
    """The value with missing rows filled, or the value itself where nothing is missing."""
    if not missing.any():
        return values.value
    filled = np.full(len(missing), np.nan) if state is None else compute(state).value
    return np.where(missing == 0, values.value, filled)


def _in_order(groups: Sequence[Key]) -> list[int]:
    """The groups by their values: as numbers where all of an attribute are numbers, else as text; without one last."""
    places = [_ranks(texts) for texts in zip(*groups, strict=True)]
    return sorted(range(len(groups)), key=lambda group: [ranks[groups[group][i]] for i, ranks in enumerate(places)])


def _ranks(texts: Sequence[str | None]) -> dict[str | None, int]:
    known = sorted({text for text in texts if text is not None})
    if all(map(_NUMBER.fullmatch, known)):
        known.sort(key=float)
    return {text: rank for rank, text in enumerate([*known, None])}


_NUMBER: Final = re.compile(r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf)", re.ASCII)
