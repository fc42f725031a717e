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

For a metric that weighs, a row of weight 0 is not there, and in none of these states.

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

from evaluand.aggregation.shard import (
    ABSTAINED,
    EXAMPLES,
    FAILED,
    SCORED,
    SKIPPED,
    Groups,
    RowRules,
    Shard,
    UnitRows,
)
from evaluand.aggregation.shard import By as By
from evaluand.aggregation.shard import Key as Key
from evaluand.core.errors import DataError, Fault
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.base.metric import (
    CLUSTER,
    INDEPENDENT,
    LABELS,
    VALUE,
    WEIGHT,
    WEIGHTLESS,
    Columns,
    Fill,
    Labels,
    Metric,
    OverTargets,
    State,
    Values,
)
from evaluand.metrics.stats.intervals import CLUSTER_TABLE, runs
from evaluand.store.tables import SCORE_STATUSES


class Grouping(NamedTuple):
    """How rows are told apart: by attributes, and by target unless values are `over` targets (see `Metric`)."""

    by: By
    over: OverTargets | None = None


class MetricRow(NamedTuple):
    """One metric's value for one group of rows.

    Attributes:
        metric: the metric's kind.
        signature: the metric with all its parameters, settled (`Metric.settled`).
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
        labels: those of each metric's columns (by position), in all rows asked for.
        missing: under each way of reducing, how many rows are missing and the `_index_` of the first few.
        span: the first and the last `_index_`, None without rows.
    """

    metrics: tuple[Metric, ...]
    by: tuple[By, ...]
    groups: Mapping[Grouping, Sequence[Key]]
    counts: Mapping[tuple[Grouping, RowRules], np.ndarray]
    states: Mapping[tuple[int, Grouping], Mapping[Fill | None, State]]
    labels: Sequence[Labels]
    missing: Mapping[RowRules, tuple[int, tuple[int, ...]]]
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
        metric = self.settled(position, confidence)
        return [row for each in self._groupings(position, names) for row in self._rows(metric, position, each)]

    def settled(self, position: int, confidence: float | None = None) -> Metric:
        """One of the metrics, by the labels of all shards.

        Args:
            position: which of the metrics.
            confidence: of its intervals, instead of its own.

        Raises:
            SpecError: its parameters do not fit these labels.
        """
        metric = self.metrics[position]
        if confidence is not None:
            metric = replace(metric, confidence=confidence)  # type: ignore[call-arg]
        return metric.settled(self.labels[position])

    def curves(self, position: int, names: By, most: int) -> Iterator[tuple[str | None, dict[str, str | None], Drawn]]:
        """What a metric has to draw under one grouping: target, group and curve.

        Args:
            position: which of the metrics.
            names: which of the groupings.
            most: of how many groups of a target curves are given: those with the most scored rows. Of very many groups
                none are.
        """
        metric = self.settled(position)
        for grouping in self._groupings(position, names):
            keys = self.groups[grouping]
            if grouping.over == "mean" or (names and len(keys) > _DRAWN_OF):
                continue
            found = metric.curves(self.states[position, grouping][_shown_fill(metric)])
            shown = _largest_groups(keys, self.counts[grouping, rules_for(metric)][:, SCORED], most) if names else None
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
        count, first = self.missing[rules_for(metric)]
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
        states, counts = self.states[position, grouping], self.counts[grouping, rules_for(metric)]
        weightless = rules_for(metric).weighing & (counts.sum(axis=1) == 0)
        if not (groups or grouping.by):  # a table without rows still has a group of all rows
            groups, counts, weightless = [(None,)], np.zeros((1, counts.shape[1]), np.int64), np.zeros(1, np.bool_)
            states = {fill: metric.place(state, np.empty(0, np.int64), 1) for fill, state in states.items()}
        compute = metric.compute
        if grouping.over == "mean":
            every, targets = groups, list(dict.fromkeys(key[0] for key in groups))
            groups, members = _without_targets(every)
            lacking = [_missing_targets(targets, {every[place][0] for place in of.tolist()}) for of in members]
            counts = np.stack([counts[of].sum(axis=0) for of in members])
            weightless = np.array([weightless[of].any() for of in members])
            compute = partial(_mean_of_all, metric, members, lacking)
        values = compute(states[_shown_fill(metric)])
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
                reason=WEIGHTLESS if weightless[group] else values.reason[group],
                data=data[group],
                n=int(counts[group, :SKIPPED].sum()),
                n_scored=int(counts[group, SCORED]),
                n_failed=int(counts[group, FAILED]),
                n_abstained=int(counts[group, ABSTAINED]),
                n_skipped=int(counts[group, SKIPPED]),
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
        nothing: dict[RowRules, tuple[int, tuple[int, ...]]] = {rules_for(metric): (0, ()) for metric in metrics}
        return Summary(tuple(metrics), (), {}, {}, {}, [{} for _ in metrics], nothing, None)
    return merge(parts) if len(parts) > 1 else parts[0]


def summarise_shard(
    shard: pa.Table | pa.RecordBatch, metrics: Sequence[Metric], by: Sequence[By] = ((),), *, repeated: bool = False
) -> Summary:
    """The summary of one shard; arguments and errors as for `summarise`."""
    table = Shard.of(shard)
    by = tuple(dict.fromkeys(tuple(names) for names in by))
    ways = dict.fromkeys([None, *(metric.over_targets for metric in metrics)])
    groups = {
        grouping: table.groups(*grouping) for grouping in (Grouping(names, over) for names in by for over in ways)
    }
    units = {rules_for(metric): table.units(rules_for(metric)) for metric in metrics}
    labels: list[Labels] = []
    states: dict[tuple[int, Grouping], Mapping[Fill | None, State]] = {}
    for position, metric in enumerate(metrics):
        columns, found = _prepare(metric, table, units[rules_for(metric)])
        labels.append(found)
        by_grouping = _states(metric, table, columns, units[rules_for(metric)], groups, repeated)
        states |= {(position, grouping): state for grouping, state in by_grouping.items()}
    return Summary(
        metrics=tuple(metrics),
        by=by,
        groups={grouping: found.keys for grouping, found in groups.items()},
        counts={(grouping, way): _counts(units[way], found) for grouping, found in groups.items() for way in units},
        states=states,
        labels=labels,
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
        labels: of the metric's columns.
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
    labels: Labels


def units_of(shard: pa.Table | pa.RecordBatch, metric: Metric, by: By = ()) -> Units:
    """What a metric averages, unit by unit; arguments and errors as for `summarise`.

    Args:
        metric: one that `averages`.
        by: attributes whose values tell groups apart.
    """
    table = Shard.of(shard)
    units = table.units(rules_for(metric)._replace(weighing=False))
    scored = units.status == SCORED
    columns, labels = _prepare(metric, table, units)
    value = _by_unit(metric, table, columns, units, _shown_fill(metric))
    whole = np.bincount(units.unit[units.status < SKIPPED], minlength=len(units.first)) == np.bincount(
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
        response=table.response[first] if rules_for(metric).reduce == "all" else nothing,
        group=groups.code[first],
        keys=groups.keys,
        outcome=units.outcome,
        value=value,
        worst=worst,
        best=best,
        weight=beside.get(WEIGHT),
        cluster=beside[CLUSTER] if CLUSTER in table.table.column_names else None,
        labels=labels,
    )


def merge(summaries: Sequence[Summary]) -> Summary:
    """The summary of all shards together, merged from left to right; all must be of the same metrics and `by`.

    Raises:
        DataError: two shards share an `_index_` or come in the wrong order.
    """
    first = summaries[0]
    groups = {grouping: _union([summary.groups[grouping] for summary in summaries]) for grouping in first.groups}
    places = {
        grouping: [_places_among(summary.groups[grouping], found) for summary in summaries]
        for grouping, found in groups.items()
    }

    def counts(grouping: Grouping, way: RowRules) -> np.ndarray:
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
        labels=[merge_labels(parts) for parts in zip(*(summary.labels for summary in summaries), strict=True)],
        missing={way: _first_missing([summary.missing[way] for summary in summaries]) for way in first.missing},
        span=_span([summary.span for summary in summaries if summary.span]),
    )


def merge_labels(parts: Sequence[Labels]) -> Labels:
    """The labels of all parts, in the order they appear."""
    return {name: tuple(dict.fromkeys(label for part in parts for label in part[name])) for name in parts[0]}


def rules_for(metric: Metric) -> RowRules:
    """How rows of the table become the rows of a metric."""
    return RowRules(EXAMPLES if metric.over_replications else metric.reduce, getattr(metric, "weighted", False))


def _shown_fill(metric: Metric) -> Fill | None:
    """What missing rows are taken for in the value itself."""
    return "wrong" if metric.missing == "wrong" else None


_ENDS: Final[tuple[Fill, Fill]] = ("worst", "best")
_MISSING: Final = len(SCORE_STATUSES)
"""The column of the counts that follows those of the statuses."""

_SHOWN_MISSING: Final = 10
_DRAWN_OF: Final = 1000
_AT_ONCE: Final = 64


def _states(
    metric: Metric,
    table: Shard,
    columns: Columns,
    units: UnitRows,
    groups: Mapping[Grouping, Groups],
    repeated: bool,
) -> dict[Grouping, dict[Fill | None, State]]:
    """A metric's states by group, once for each thing that missing rows are taken for.

    Args:
        columns: of the scored rows, as the metric prepared them.
    """
    complete = bool(((units.status == SCORED) | (units.status == SKIPPED)).all())
    fills = (_shown_fill(metric), *(fill for fill, end in zip(_ENDS, metric.ends, strict=True) if math.isfinite(end)))
    groups = {grouping: found for grouping, found in groups.items() if grouping.over in (None, metric.over_targets)}
    states: dict[Grouping, dict[Fill | None, State]] = {grouping: {} for grouping in groups}
    for fill in fills[:1] if complete else fills:
        rows, unit = _unit_rows(metric, table, columns, units, fill)
        first = units.first[unit]
        beside = {over: table.beside(metric, first, repeated, over) for over in {bool(g.over) for g in groups}}
        for grouping, (code, keys) in groups.items():
            state = metric.state({**rows, **beside[bool(grouping.over)]}, code[first], len(keys))
            for same in fills if complete else (fill,):
                states[grouping][same] = state if same == fills[0] else _without_clusters(state)
    return states


def _prepare(metric: Metric, table: Shard, units: UnitRows) -> tuple[Columns, Labels]:
    """The columns of the scored rows, and the labels of all that are asked for."""
    names = metric.columns_for(table.table.column_names)
    columns = table.columns(names, units.rows[units.status == SCORED], metric)
    told = [name for name in names if name in metric.label_columns]
    missing = units.rows[(units.status == FAILED) | (units.status == ABSTAINED)]
    parts = [columns, table.columns(told, missing, metric)] if told and len(missing) else [columns]
    return metric.prepare(columns), merge_labels([{name: _labels(part, name) for name in told} for part in parts])


def _labels(columns: Columns, name: str) -> Sequence[Any]:
    """Those that occur in a column."""
    vocabulary = columns[LABELS]
    often = np.bincount(columns[name] + 1, minlength=len(vocabulary) + 1)
    found: list[Any] = vocabulary[often[1:] > 0].tolist()
    return found


def _unit_rows(
    metric: Metric, table: Shard, columns: Columns, units: UnitRows, fill: Fill | None
) -> tuple[Columns, np.ndarray]:
    """One row for each unit that has any, with something put in for missing rows, and the unit of each row."""
    scored, asked = units.status == SCORED, units.status < SKIPPED
    if fill is None:
        return _reduce(metric, columns, units.unit[scored])
    told = [name for name in metric.fill_columns if name in table.table.column_names]
    missing = table.columns(told, units.rows[asked & ~scored], metric)
    return _reduce(metric, metric.filled(columns, scored[asked], missing, fill), units.unit[asked])


def _by_unit(metric: Metric, table: Shard, columns: Columns, units: UnitRows, fill: Fill | None) -> np.ndarray:
    rows, unit = _unit_rows(metric, table, columns, units, fill)
    values = np.full(len(units.first), np.nan)
    values[unit] = rows[VALUE]
    return values


def _without_clusters(state: State) -> State:
    """Only the value that is shown has an interval; the bounds need no clusters."""
    return {name: array for name, array in state.items() if name not in (*CLUSTER_TABLE, INDEPENDENT)}


def _reduce(metric: Metric, columns: Columns, unit: np.ndarray) -> tuple[Columns, np.ndarray]:
    """One row for each unit that has any, and the unit of each row."""
    starts = runs(unit)
    if len(starts) == len(unit) and not metric.over_replications:
        return columns, unit
    return {VALUE: metric.reduced(columns[VALUE], starts)}, unit[starts]


def _counts(units: UnitRows, groups: Groups) -> np.ndarray:
    n = len(groups.keys)
    group = groups.code[units.first]
    outcomes = [np.bincount(group[units.outcome == status], minlength=n) for status in range(len(SCORE_STATUSES))]
    missing = (units.status == FAILED) | (units.status == ABSTAINED)
    return np.stack([*outcomes, np.bincount(group[units.unit[missing]], minlength=n)], axis=1)


def _missing(table: Shard, units: UnitRows) -> tuple[int, tuple[int, ...]]:
    index = table.index[units.rows[(units.status == FAILED) | (units.status == ABSTAINED)]]
    return len(index), tuple(np.unique(index)[: _SHOWN_MISSING + 1].tolist())


def _first_missing(parts: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[int, tuple[int, ...]]:
    shown = dict.fromkeys(index for _, first in parts for index in first)
    return sum(count for count, _ in parts), tuple(shown)[: _SHOWN_MISSING + 1]


def _union(groups: Sequence[Sequence[Key]]) -> list[Key]:
    return list(dict.fromkeys(key for keys in groups for key in keys))


def _places_among(keys: Sequence[Key], among: Sequence[Key]) -> np.ndarray:
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


def _missing_targets(targets: Sequence[str | None], there: Collection[str | None]) -> str | None:
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


def _largest_groups(keys: Sequence[Key], n: np.ndarray, most: int) -> set[int]:
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
