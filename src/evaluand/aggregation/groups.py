"""Summaries of one scorer's table by groups: every metric, over all rows and by attribute, in one pass.

The table comes in shards that never split an example's rows. A shard becomes a `Summary` (counts and metric states, one
entry per group), summaries merge in the order of the shards, and the last one gives the rows. So memory grows with the
number of groups, not of rows, and shards may be summarised anywhere: with the same borders and the same order the
values are the same to the last bit.

Every value has its denominators. The unit that is counted is an example × replication (× target): its responses are
reduced to one row first, except under `reduce="all"`. Each unit has exactly one of four statuses:

    scored       one of its responses is scored; under `reduce="first"` and `"all"` only the response itself counts
    failed       none is scored and one failed
    abstained    none is scored or failed, and one abstained
    skipped      it was never attempted: outside `n` and every value, whatever the metric does about missing rows

For a weighted metric, a row of weight 0 does not exist, and has none of these statuses.

A missing row is one that would have been used but failed or abstained. The bounds `worst` and `best` are the values
if every missing row had the worst or the best value of its range. They are computed before responses are reduced: if
one of three answers is missing, its example is scored, but its mean still has bounds.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.aggregation.shard import (
    ABSTAINED,
    EXAMPLES,
    FAILED,
    SCORED,
    SKIPPED,
    By as By,
    Groups,
    Key as Key,
    RowRules,
    Shard,
    UnitRows,
)
from evaluand.core.errors import DataError, Fault
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.base.metric import (
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
from evaluand.metrics.stats.intervals import CLUSTER_TABLE, count_rows, runs
from evaluand.store.tables import SCORE_STATUSES


class Grouping(NamedTuple):
    """How rows are grouped: by attributes, and by target unless values are `over` targets (see `Metric`)."""

    by: By
    over: OverTargets | None = None


class MetricRow(NamedTuple):
    """One metric's value for one group of rows.

    Attributes:
        metric: the metric's kind.
        signature: the metric with all its parameters, settled (`Metric.settled`).
        target: the target, where several things are expected; None without targets, and for a value over all targets
            (see `over_targets` of `Metric`), whose `data` then have the number of `targets`.
        by: attribute → value, as text; None for the group of the rows without one. Empty for all rows.
        value: NaN where undefined, with a `reason`.
        low: lower end of the metric's interval, NaN where there is none.
        high: upper end of the metric's interval, NaN where there is none.
        worst: the value if every missing row had the worst value, NaN where the metric has no such bound.
        best: the value if every missing row had the best value, NaN where the metric has no such bound.
        reason: why the value, or only its interval, is undefined.
        data: further results of the metric.
        n: the number of units: scored, failed and abstained ones.
        n_scored: those with a score.
        n_failed: those whose task or scorer failed.
        n_abstained: those in which the scorer found nothing to score.
        n_skipped: units that were never attempted, not in `n`.
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

    def __float__(self) -> float:
        return self.value

    @property
    def is_exact(self) -> bool:
        """Whether the value is a proportion of independent rows, for which exact bounds are known."""
        return isinstance(self.data, dict) and self.data.keys() == {"correct", "n"}

    @property
    def rests_on(self) -> float:
        """The number of scored rows behind the value: for recall those that were expected."""
        return float((self.data or {}).get("rests_on", self.n_scored))


@dataclass(frozen=True)
class Summary:
    """The summary of some shards: enough to merge and to compute every value, without the rows.

    Attributes:
        metrics: in the order of the request.
        by: in the order of the request.
        groups: the groups of each grouping.
        counts: for each grouping and row rule, per group: units of each status, then missing rows.
        states: for each metric (by position) and grouping: the value of missing rows (None: left out) → state.
        labels: the labels in the columns of each metric (by position).
        missing: for each row rule, the number of missing rows and the `_index_` of the first few.
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
        """The values: metrics in the order of the request, all rows before groups, groups in the order of their values.

        Groups are sorted as numbers if all values of an attribute are numbers. Targets are sorted too, and a missing
        attribute comes last.

        Raises:
            DataError: a metric refuses missing rows, and rows are missing.
        """
        self.check_missing(range(len(self.metrics)))
        by = sorted(self.by, key=bool)
        return [row for position in range(len(self.metrics)) for names in by for row in self.values(position, names)]

    def values(self, position: int, names: By, confidence: float | None = None) -> list[MetricRow]:
        """The values of one metric under one grouping: by target, and over all targets if the metric says so.

        Args:
            position: the place of the metric.
            names: the attributes of the grouping.
            confidence: the level of the intervals; by default that of the metric.
        """
        metric = self.settled(position, confidence)
        return [row for each in self._groupings(position, names) for row in self._rows(metric, position, each)]

    def settled(self, position: int, confidence: float | None = None) -> Metric:
        """One of the metrics, settled on the labels of all shards; arguments as for `values`.

        Raises:
            SpecError: its parameters do not fit these labels.
        """
        metric = self.metrics[position]
        if confidence is not None:
            metric = replace(metric, confidence=confidence)  # type: ignore[call-arg]
        return metric.settled(self.labels[position])

    def curves(self, position: int, names: By, most: int) -> Iterator[tuple[str | None, dict[str, str | None], Drawn]]:
        """The curves of a metric under one grouping: target, group and curve; further arguments as for `values`.

        Args:
            most: the most groups of a target with curves: those with the most scored rows. With very many groups there
                are no curves.
        """
        metric = self.settled(position)
        for grouping in self._groupings(position, names):
            keys = self.groups[grouping]
            if grouping.over == "mean" or (names and len(keys) > _DRAWN_OF):
                continue
            found = metric.curves(self.states[position, grouping][shown_fill(metric)])
            n_scored = self.counts[grouping, rules_for(metric)][:, SCORED]
            largest = _largest_groups(keys, n_scored, most if names else len(keys))
            for group in order_groups(keys):
                if group in largest:
                    by = dict(zip(names, keys[group][1:], strict=True))
                    yield from ((keys[group][0], by, drawn) for drawn in found[group])

    def _groupings(self, position: int, names: By) -> Iterator[Grouping]:
        """The groupings by target, and over all targets if there are targets and the metric says so."""
        yield Grouping(names)
        over = self.metrics[position].over_targets
        if over and any(key[0] is not None for key in self.groups[Grouping(names)]):
            yield Grouping(names, over)

    def check_missing(self, positions: Iterable[int]) -> None:
        """Refuses missing rows for metrics that do.

        Raises:
            DataError: such rows are missing.
        """
        for metric in (self.metrics[position] for position in positions):
            count, first = self.missing.get(rules_for(metric), (0, ()))
            if metric.missing == "refuse" and count:
                indices = ", ".join([*map(str, first[:_SHOWN_MISSING]), *["…"] * (len(first) > _SHOWN_MISSING)])
                message = (
                    f"{count} {'row has' if count == 1 else 'rows have'} no score (failed or abstained) and "
                    f"{metric.kind} refuses missing rows; retry them, or use missing='leave_out' or 'wrong'"
                )
                raise DataError(Fault(f"{INDEX} {indices}", message))

    def _rows(self, metric: Metric, position: int, grouping: Grouping) -> list[MetricRow]:
        groups = self.groups[grouping]
        states, counts = self.states[position, grouping], self.counts[grouping, rules_for(metric)]
        weightless = rules_for(metric).weighing & (counts.sum(axis=1) == 0)
        if not (groups or grouping.by):  # a table without rows still has a group of all rows
            groups, counts, weightless = [(None,)], np.zeros((1, counts.shape[1]), np.int64), np.zeros(1, np.bool_)
            states = {fill: metric.place(state, np.empty(0, np.int64), 1) for fill, state in states.items()}
        compute: Callable[[State], Values] = metric.compute
        if grouping.over == "mean":
            groups, members, compute = _mean_over_targets(metric, groups)
            counts = np.stack([counts[of].sum(axis=0) for of in members])
            weightless = np.array([weightless[of].any() for of in members])
        values = compute(states[shown_fill(metric)])
        data = values.data
        if grouping.over:
            n_targets = len({key[0] for key in self.groups[Grouping(grouping.by)]})
            data = [{**(each or {}), "targets": n_targets} for each in data]
        worst, best = (_bound(compute, states.get(end), values, counts[:, _MISSING]) for end in _ENDS)
        # a single bound of an undefined value has no meaning
        lone = np.isnan(values.value) & (np.isnan(worst) | np.isnan(best))
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
            for group in order_groups(groups)
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
        shards: the table in pieces, in the order of `_index_`, none of which splits an example's rows. Columns:
            `_index_`, `status`, those of the scorer, one for each attribute in `by`, and where they apply
            `replication`, `_response_index_`, `target`, `_weight_` (of the example) and `_cluster_` (a 64-bit key of
            the examples that belong together).
        by: attributes to group by; `()` for all rows, `("race", "gender")` for each pair of values. An example's first
            row decides its group. Where rows have targets, each target has its own groups.
        repeated: whether examples have several replications, which are not independent.

    Returns:
        One row per metric and group; see `Summary.rows`. A table without rows still has a row for `()`; without any
        shard there is none.

    Raises:
        SpecError: a metric needs a column the table lacks, or rows cannot be grouped by a column.
        DataError: a metric refuses a scored row, or missing rows.

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
    scored: Collection[str] | None = None,
) -> Summary:
    """The summary of all shards; arguments and errors as for `summarise`, and `scored` as for `Shard.units`."""
    parts: list[Summary] = []
    merged = 0
    for shard in shards:
        parts.append(summarise_shard(shard, metrics, by, repeated=repeated, scored=scored))
        if len(parts) > 1 + min(merged, _AT_ONCE):  # states that contain rows are not copied with every shard
            merged += len(parts) - 1
            parts = [merge(parts)]
    if not parts:
        return Summary(tuple(metrics), (), {}, {}, {}, [{} for _ in metrics], {}, None)
    return merge(parts) if len(parts) > 1 else parts[0]


def summarise_shard(
    shard: pa.Table | pa.RecordBatch,
    metrics: Sequence[Metric],
    by: Sequence[By] = ((),),
    *,
    repeated: bool = False,
    scored: Collection[str] | None = None,
) -> Summary:
    """The summary of one shard; arguments and errors as for `summary_of_shards`."""
    table = Shard.of(shard)
    by = tuple(dict.fromkeys(tuple(names) for names in by))
    overs = dict.fromkeys([None, *(metric.over_targets for metric in metrics)])
    groups = {
        grouping: table.groups(*grouping) for grouping in (Grouping(names, over) for names in by for over in overs)
    }
    units = {rule: table.units(rule, scored) for rule in dict.fromkeys(map(rules_for, metrics))}
    labels: list[Labels] = []
    states: dict[tuple[int, Grouping], Mapping[Fill | None, State]] = {}
    for position, metric in enumerate(metrics):
        rows = MetricRows(metric, table, units[rules_for(metric)])
        labels.append(rows.labels)
        states |= {(position, grouping): state for grouping, state in rows.states(groups, repeated).items()}
    return Summary(
        metrics=tuple(metrics),
        by=by,
        groups={grouping: each.keys for grouping, each in groups.items()},
        counts={
            (grouping, rule): _counts(table, each, found)
            for grouping, found in groups.items()
            for rule, each in units.items()
        },
        states=states,
        labels=labels,
        missing={rule: _missing(table, each) for rule, each in units.items()},
        span=table.span,
    )


@dataclass(frozen=True)
class Units:
    """The numbers that a metric averages, one for each unit.

    Attributes:
        index: the example.
        replication: the replication; 0 where a metric takes all replications of an example together.
        group: the place of its group among `keys`.
        keys: the groups: target, then the values of the attributes.
        outcome: the status, as a position in `SCORE_STATUSES`.
        weight: of the example; None without weights.
        value: the metric's number for the unit, NaN without one.
    """

    index: np.ndarray
    replication: np.ndarray
    group: np.ndarray
    keys: Sequence[Key]
    outcome: np.ndarray
    weight: np.ndarray | None
    value: np.ndarray


def units_of(shard: pa.Table | pa.RecordBatch, metric: Metric, by: By = ()) -> Units:
    """The numbers that a metric averages, unit by unit; errors as for `summarise`.

    Args:
        shard: a table of scores.
        metric: one that `averages`; of any other, each unit that it reads has the number 0.
    """
    table = Shard.of(shard)
    units = table.units(unweighed_rules(metric))
    groups, replication = table.groups(by), table.replication[units.first]
    return Units(
        index=table.index[units.first],
        replication=0 * replication if metric.over_replications else replication,
        group=groups.code[units.first],
        keys=groups.keys,
        outcome=units.outcome,
        weight=table.array_at(WEIGHT, units.first),
        value=MetricRows(metric, table, units).values(shown_fill(metric)),
    )


class MetricRows:
    """The rows of a shard that a metric reads.

    Attributes:
        labels: in the metric's columns of all rows, also of those without a score.
    """

    def __init__(self, metric: Metric, table: Shard, units: UnitRows) -> None:
        self._metric, self._table, self._units = metric, table, units
        names = metric.columns_for(table.table.column_names)
        columns = table.columns(names, units.scored, metric)
        self._columns = metric.prepare(columns)
        of_labels = [name for name in names if name in metric.label_columns]
        parts = [columns]
        if of_labels and len(missing := units.rows[units.missing]):
            parts.append(table.columns(of_labels, missing, metric))
        self.labels = merge_labels([{name: _labels(part, name) for name in of_labels} for part in parts])

    def filled(self, fill: Fill | None) -> tuple[Columns, np.ndarray]:
        """One row for each unit that has any, with missing rows filled, and the unit of each row."""
        metric, units, columns = self._metric, self._units, self._columns
        chosen = scored = units.status == SCORED
        if fill is not None:
            chosen = units.status < SKIPPED
            names = [name for name in metric.fill_columns if name in self._table.table.column_names]
            missing = self._table.columns(names, units.rows[chosen & ~scored], metric)
            columns = metric.filled(columns, scored[chosen], missing, fill)
        unit = units.unit if units.complete else units.unit[chosen]
        if units.single and not metric.over_replications:
            return columns, unit
        starts = runs(unit)
        if len(starts) == len(unit) and not metric.over_replications:
            return columns, unit
        return {VALUE: metric.reduced(columns[VALUE], starts)}, unit[starts]

    def values(self, fill: Fill | None) -> np.ndarray:
        """The number of each unit that the metric averages, 0 if it averages nothing; NaN without one."""
        rows, unit = self.filled(fill)
        values = np.full(len(self._units.first), np.nan)
        values[unit] = rows[VALUE] if self._metric.averages else 0.0
        return values

    def bounded_values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """These numbers, and those if everything missing were the worst and the best; NaN without such a bound."""
        units, value = self._units, self.values(shown_fill(self._metric))
        if units.complete:
            return value, value, value
        gaps = np.bincount(units.unit[units.missing], minlength=len(units.first))
        worst, best = (
            self.values(fill) if math.isfinite(end) else np.where(gaps == 0, value, np.nan)
            for fill, end in zip(_ENDS, self._metric.ends, strict=True)
        )
        return value, worst, best

    def states(self, groups: Mapping[Grouping, Groups], repeated: bool) -> dict[Grouping, dict[Fill | None, State]]:
        """The metric's states by group, once for each value that missing rows can have.

        Args:
            groups: the group of each row, by grouping.
            repeated: whether examples have several replications.
        """
        metric, table, units = self._metric, self._table, self._units
        complete = units.complete or not units.missing.any()
        bounds = (fill for fill, end in zip(_ENDS, metric.ends, strict=True) if math.isfinite(end))
        fills = (shown_fill(metric), *bounds)
        groups = {grouping: each for grouping, each in groups.items() if grouping.over in (None, metric.over_targets)}
        states: dict[Grouping, dict[Fill | None, State]] = {grouping: {} for grouping in groups}
        for fill in fills[:1] if complete else fills:
            rows, unit = self.filled(fill)
            first = units.first if units.single and unit is units.unit else units.first[unit]
            extra = {
                over: table.extra_columns(metric, first, repeated, over) for over in {bool(g.over) for g in groups}
            }
            for grouping, (code, keys) in groups.items():
                state = metric.state({**rows, **extra[bool(grouping.over)]}, table.at(code, first), len(keys))
                for same in fills if complete else (fill,):
                    # bounds have no intervals and need no clusters
                    states[grouping][same] = (
                        state if same == fills[0] else {n: a for n, a in state.items() if n not in _OF_INTERVALS}
                    )
        return states


def _labels(columns: Columns, name: str) -> Sequence[Any]:
    vocabulary, codes = columns[LABELS], columns[name]
    of_sets = codes.ndim == 2
    used = (codes == 1).any(axis=0) if of_sets else np.bincount(codes + 1, minlength=len(vocabulary) + 1)[1:] > 0
    labels: list[Any] = vocabulary[used].tolist()
    return labels


def merge(summaries: Sequence[Summary]) -> Summary:
    """The summary of all shards together, merged from left to right; all must be of the same metrics and `by`.

    Raises:
        DataError: two shards share an `_index_` or come in the wrong order.
    """
    first = summaries[0]
    groups = {
        grouping: list(dict.fromkeys(chain.from_iterable(summary.groups[grouping] for summary in summaries)))
        for grouping in first.groups
    }
    places: dict[Grouping, list[np.ndarray]] = {}
    for grouping, found in groups.items():
        place_of = {key: place for place, key in enumerate(found)}
        places[grouping] = [np.array([place_of[key] for key in s.groups[grouping]], np.int64) for s in summaries]

    def counts(grouping: Grouping, rule: RowRules) -> np.ndarray:
        total = np.zeros((len(groups[grouping]), _MISSING + 1), np.int64)
        for summary, place in zip(summaries, places[grouping], strict=True):
            total[place] += summary.counts[grouping, rule]
        return total

    def state(position: int, grouping: Grouping, fill: Fill | None) -> State:
        metric = first.metrics[position]
        parts = zip((summary.states[position, grouping][fill] for summary in summaries), places[grouping], strict=True)
        return metric.merge([metric.place(part, place, len(groups[grouping])) for part, place in parts])

    return Summary(
        metrics=first.metrics,
        by=first.by,
        groups=groups,
        counts={(grouping, rule): counts(grouping, rule) for grouping, rule in first.counts},
        states={
            (i, grouping): {fill: state(i, grouping, fill) for fill in fills}
            for (i, grouping), fills in first.states.items()
        },
        labels=[merge_labels(parts) for parts in zip(*(summary.labels for summary in summaries), strict=True)],
        missing={rule: _first_missing([summary.missing[rule] for summary in summaries]) for rule in first.missing},
        span=_span([summary.span for summary in summaries if summary.span]),
    )


def merge_labels(parts: Sequence[Labels]) -> Labels:
    """The labels of all parts, in the order they appear."""
    return {name: tuple(dict.fromkeys(label for part in parts for label in part[name])) for name in parts[0]}


def rules_for(metric: Metric) -> RowRules:
    """The rule by which rows of the table become the rows of a metric."""
    reduce = EXAMPLES if metric.over_replications else metric.reduce
    return RowRules(reduce, getattr(metric, "weighted", False), metric.needed_columns)


def unweighed_rules(metric: Metric) -> RowRules:
    """As `rules_for`, with rows of weight 0."""
    return rules_for(metric)._replace(weighing=False)


def shown_fill(metric: Metric) -> Fill | None:
    """How missing rows count in the value itself."""
    return "wrong" if metric.missing == "wrong" else None


_ENDS: Final[tuple[Fill, Fill]] = ("worst", "best")
_OF_INTERVALS: Final = (*CLUSTER_TABLE, INDEPENDENT)
_MISSING: Final = len(SCORE_STATUSES)
"""The place of the count of missing rows, after those of the statuses."""

_SHOWN_MISSING: Final = 10
_DRAWN_OF: Final = 1000
_AT_ONCE: Final = 64


def group_text(name: Mapping[str, str | None]) -> str:
    """The name of a group.

    Example:
        >>> group_text({"sex": "female", "race": "x"})
        'sex=female, race=x'
    """
    return ", ".join(f"{attribute}={value}" for attribute, value in name.items())


def _counts(table: Shard, units: UnitRows, groups: Groups) -> np.ndarray:
    n, columns, group = len(groups.keys), _MISSING + 1, table.at(groups.code, units.first)
    if units.complete:
        counts = np.zeros((n, columns), np.int64)
        counts[:, SCORED] = count_rows(group, n)
        return counts
    counts = np.bincount(group * columns + units.outcome, minlength=n * columns).reshape(n, columns)
    counts[:, _MISSING] = np.bincount(group[units.unit[units.missing]], minlength=n)
    return counts


def _missing(table: Shard, units: UnitRows) -> tuple[int, tuple[int, ...]]:
    index = table.index[units.rows[units.missing]]
    return len(index), tuple(np.unique(index)[: _SHOWN_MISSING + 1].tolist())


def _first_missing(parts: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[int, tuple[int, ...]]:
    indices = dict.fromkeys(index for _, first in parts for index in first)
    return sum(count for count, _ in parts), tuple(indices)[: _SHOWN_MISSING + 1]


def _span(spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    for (_, last), (following, _) in pairwise(spans):
        if following <= last:
            raise DataError(
                f"the shards overlap or are out of order: one ends at {INDEX} {last}, the next begins at {following}; "
                "cut the table between examples and keep its order"
            )
    return (spans[0][0], spans[-1][1]) if spans else None


def _mean_over_targets(
    metric: Metric, keys: Sequence[Key]
) -> tuple[list[Key], list[np.ndarray], Callable[[State], Values]]:
    """The groups without their targets, the places of the groups that each combines, and what computes their means.

    A mean is undefined where targets are missing: the mean of the others is another quantity.
    """
    members: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        members.setdefault((None, *key[1:]), []).append(place)
    places, targets = [np.array(of) for of in members.values()], list(dict.fromkeys(key[0] for key in keys))
    missing: list[str | None] = []
    for of in members.values():
        names = [str(target) for target in targets if target not in {keys[place][0] for place in of}]
        listed = ", ".join([*names[:_SHOWN_MISSING], *["…"] * (len(names) > _SHOWN_MISSING)])
        missing.append(f"no mean over {len(targets)} targets: no rows of {listed}" if names else None)

    def compute(state: State) -> Values:
        mean, complete = metric.mean_over(state, places), np.array([why is None for why in missing])
        value, low, high = (np.where(complete, end, np.nan) for end in (mean.value, mean.low, mean.high))
        reason = [why or other for why, other in zip(missing, mean.reason, strict=True)]
        return Values(value, low, high, reason, mean.data)

    return [*members], places, compute


def _largest_groups(keys: Sequence[Key], n: np.ndarray, most: int) -> set[int]:
    """The groups with the most rows, for each target."""
    of: dict[str | None, list[int]] = {}
    for group in np.argsort(-n, kind="stable").tolist():
        of.setdefault(keys[group][0], []).append(group)
    return {group for groups in of.values() for group in groups[:most]}


def _bound(compute: Callable[[State], Values], state: State | None, values: Values, missing: np.ndarray) -> np.ndarray:
    """The value with missing rows filled, or the value itself where no rows are missing."""
    if not missing.any():
        return values.value
    filled = np.full(len(missing), np.nan) if state is None else compute(state).value
    return np.where(missing == 0, values.value, filled)


def order_groups(groups: Sequence[Key]) -> list[int]:
    """The groups in order: by number if all values of an attribute are numbers, else by text; missing values last."""
    places = [_ranks(texts) for texts in zip(*groups, strict=True)]
    return sorted(range(len(groups)), key=lambda group: [ranks[groups[group][i]] for i, ranks in enumerate(places)])


def _ranks(texts: Sequence[str | None]) -> dict[str | None, int]:
    known = sorted({text for text in texts if text is not None})
    if all(map(_NUMBER.fullmatch, known)):
        known.sort(key=float)
    return {text: rank for rank, text in enumerate([*known, None])}


_NUMBER: Final = re.compile(r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf)", re.ASCII)
