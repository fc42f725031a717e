"""Base of metrics that are a function of all their weighted rows and not a mean over them, with an interval.

A kind defines which columns make a row and the value of weighted rows; everything else is here. The interval follows
from what each row adds to the value: a kind that knows its influence, the derivative of the value by the row's weight,
says it; for others the value is computed again without the row. Rows that are alike add alike, so of rows that consist
of labels each kind is left out once. Summed by cluster, these changes are those that a cluster makes; the order of the
rows, their keys and the shards they came in do not matter.

Rows that consist only of labels are counted: unless rows belong together, the state is a table of how often each
combination occurred, which does not grow with the rows. Other rows are stored in the state as they are.

    prepare ──▶ rows by group and weight ── merge ──▶ arranged once per group ── value(weights) ──▶ Values
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from evaluand.metrics.base.labels import one_vocabulary
from evaluand.metrics.base.left_out import LeftOut, count_clusters, rarest_parts, spread_of_parts
from evaluand.metrics.base.metric import (
    CLUSTER,
    INDEPENDENT,
    LABELS,
    NO_ROWS,
    WEIGHT,
    WEIGHTLESS,
    Columns,
    Metric,
    State,
    Values,
    check_confidence,
    weights_of,
)
from evaluand.metrics.stats.intervals import (
    PartChanges,
    Spread,
    count_rows,
    interval_within,
    mean_of_parts,
    ratio_interval,
    runs,
    steady_interval,
)


class GroupResult(NamedTuple):
    """The result of one group of rows.

    Attributes:
        value: NaN where undefined.
        details: computes further results.
        reason: why the value, or only its interval, is undefined; None if nothing speaks against them.
        basis: the share of the rows that the value depends on, up to 1.
        expected: the share of the rows of which a proportion would vary as expected, see `expected_basis`.
        rows: the number of rows of equal weight with as much information.
        least: see `least_variance`.
        changes: what rows add to the value; None where the interval needs none.
        ends: the interval, if it is known without changes.
        bounds: number of clusters of equal weight → interval, for a kind that computes it in another way.
        parts: computes the part of each row with weight, see `WeightedRowsMetric.parts`.
    """

    value: float
    details: Callable[[], dict[str, Any]]
    reason: str | None
    basis: float = 1.0
    expected: float = 1.0
    rows: float = math.inf
    least: float = 0.0
    changes: "Changes | None" = None
    ends: tuple[float, float] | None = None
    bounds: Callable[[float], tuple[float, float]] | None = None
    parts: Callable[[], np.ndarray | None] = lambda: None


class Changes(NamedTuple):
    """What the rows of a group add to its value.

    Attributes:
        change: of each row; of one row of each kind of equal rows, if these are counted.
        often: how many rows are of the kind; None if rows are not counted.
        key: the cluster of each row; None where each is independent.
        least: the variance if weights had nothing to do with what rows add; what the heaviest rows hold is chance.
    """

    change: np.ndarray
    often: np.ndarray | None = None
    key: np.ndarray | None = None
    least: float = 0.0

    def spread(self) -> tuple[float, int]:
        """The variance of the value, from the spread between clusters, NaN if it is unknown; and their number."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.often is not None:  # exact, since the order of kinds of rows depends on other groups
                n, squares = int(self.often.sum()), self.often * np.square(self.change)
                total = math.fsum(squares) if np.isfinite(squares).all() else math.nan
            else:
                change = sum_by_cluster(self.key, self.change)
                n, total = len(change), float(change @ change)
        return (n / (n - 1) * total if n > 1 and math.isfinite(total) else math.nan), n


@dataclass(frozen=True, kw_only=True)
class WeightedRowsMetric(Metric):
    """A function of weighted rows, with an interval by the rows' influence, or else by the jackknife.

    If the range is bounded on both sides, the interval is the score interval of a proportion with the measured
    variance, so it stays within the range and has a width even if all rows agree; otherwise it is Student's.
    Source: J. Shao & D. Tu, The Jackknife and Bootstrap (1995), section 2.3 for rows left out and 2.4 for influences
    (the infinitesimal jackknife); see `clustered_wilson` and `steady_interval` for the score interval.

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for no interval.

    Attributes:
        row_columns: the prepared columns that make a row; their first axis is the row.
        counted: rows consist only of labels, and the state holds a table of their counts.

    Raises:
        SpecError: the confidence does not lie between 0 and 1.
    """

    row_columns: ClassVar[tuple[str, ...]]
    counted: ClassVar[bool] = False

    weighted: bool = False
    confidence: float | None = 0.95

    def __post_init__(self) -> None:
        if self.confidence is not None:
            object.__setattr__(self, "confidence", check_confidence(self.kind, self.confidence))
        super().__post_init__()

    @property
    def interval_name(self) -> str | None:
        if self.confidence is None:
            return None
        return "jackknife" if type(self).influence is WeightedRowsMetric.influence else "influence"

    @property
    def by_cluster(self) -> bool:
        return self.confidence is not None

    @property
    def counts_independent_rows(self) -> bool:
        return self.by_cluster

    @abstractmethod
    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The values of some rows under several weightings.

        Args:
            rows: what `arranged` returned, of one group; at least one row.
            weight: replicates × rows, 0 or more; rows of weight 0 do not count.

        Returns:
            One value for each replicate, NaN where it is undefined.
        """

    def basis(self, rows: Columns, weight: np.ndarray) -> float:
        """The share of the rows, each with a weight, that the value depends on: of recall, the expected rows."""
        return 1.0

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray | None:
        """The derivative of the value by the weight of each row; NaN if there are too few rows to estimate its spread.

        A kind that defines it gets its interval from it; other kinds from the values without each row.
        `CLUSTER` says which rows belong together, where some do.
        """
        return None

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        """The value without one row of each kind; a kind may override it with a faster method than computing each.

        Args:
            rows: what `arranged` returned.
            one: the weight of one of the rows of each kind.
        """
        weight, n = rows[WEIGHT], len(one)
        left = np.where(weight - one > _ROUNDING * weight, weight - one, 0.0)
        step = max(1, _AT_ONCE // max(n, 1))
        found = np.empty(n)
        for start in range(0, n, step):
            place = np.arange(start, min(start + step, n))
            replicates = np.tile(weight, (len(place), 1))
            replicates[np.arange(len(place)), place] = left[place]
            found[place] = self._values(rows, replicates)
        return found

    def least_variance(self, rows: Columns, value: float) -> float:
        """A lower bound of the value's variance, unless that is 0: few rows may be equal by chance."""
        return 0.0

    def expected_basis(self, rows: Columns, weight: np.ndarray) -> float:
        """The share of the rows of which a proportion would vary as much as the value is expected to by its influence.

        The measured variance counts more, relative to this expectation, the more rows there are: see `steady_interval`.
        """
        return self.basis(rows, weight)

    def bounds(self, rows: Columns, kinds: "Kinds") -> Callable[[float], tuple[float, float]] | None:
        """The interval by the number of clusters of equal weight, if it does not follow from what rows add."""
        return None

    def why_unbounded(self, rows: Columns) -> str | None:
        """Why the value of these rows, which is defined, has no interval; None if nothing speaks against one."""
        return None

    def parts(self, rows: Columns, weight: np.ndarray) -> np.ndarray | None:
        """The part of each row, such as its class, if the influences of the rows of a part have a mean of 0."""
        return None

    def arranged(self, rows: Columns) -> Columns:
        """The rows of one group, with everything that is computed once for all weightings; their order stays."""
        return rows

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        """Why existing rows have no value, in words."""
        return "undefined for these rows"

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """Further results of a group's rows, JSON-like; `weight` has one entry per row."""
        return {}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        table = {name: columns[name] for name in self.row_columns}
        table |= {_GROUP: group} if n_groups > 1 else {}
        if self.weighted:
            table[WEIGHT] = weights_of(columns, self.kind)
        known: dict[str, np.ndarray] = {"n": count_rows(group, n_groups), LABELS: columns.get(LABELS, _NO_LABELS)}
        if self.by_cluster and INDEPENDENT in columns:
            known[INDEPENDENT] = known["n"]
        elif self.by_cluster and CLUSTER in columns:
            known[_KEY] = np.asarray(columns[CLUSTER]).astype(np.int64, copy=False)
        if self.counted and _KEY not in known and not (INDEPENDENT in known and self.weighted):
            table = _count_equal_rows(table, self.row_columns)
        return {**known, **_prefix_columns(table)}

    def merge(self, states: Sequence[State]) -> State:
        if len(states) == 1:
            return states[0]
        vocabulary, codes = one_vocabulary([state[LABELS] for state in states])
        tables = []
        for state, code in zip(states, codes, strict=True):
            table = _row_table(state)
            labels = [name for name in self.row_columns if name in self.label_columns]
            table |= {name: _recode(table[name], code, len(vocabulary)) for name in labels}
            scores = [name for name in self.row_columns if name in self.score_columns]
            table |= {name: _place_columns(table[name], code, len(vocabulary)) for name in scores}
            tables.append(table)
        table = {name: np.concatenate([part[name] for part in tables]) for name in tables[0]}
        if NUMBER in table:
            table = _count_equal_rows(table, self.row_columns)
        keys = {_KEY: np.concatenate([state[_KEY] for state in states])} if _KEY in states[0] else {}
        sums = {name: reduce(np.add, [state[name] for state in states]) for name in _by_group_in(states[0])}
        return {**sums, **keys, LABELS: vocabulary, **_prefix_columns(table)}

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        placed = super().place({name: state[name] for name in _by_group_in(state)}, positions, n_groups)
        if n_groups == 1:
            return {**state, **placed}
        return {**state, **placed, _PREFIX + _GROUP: positions[_groups_of(_row_table(state))]}

    def compute(self, state: State) -> Values:
        n = state["n"]
        value, low, high = (np.full(n.shape, np.nan) for _ in range(3))
        reasons: list[str | None] = [NO_ROWS] * len(n)
        data: list[dict[str, Any]] = [{"n": int(rows)} for rows in n]
        clusters, effective = clusters_of(state)
        for group, found in self.group_results(state):
            value[group], reasons[group] = found.value, found.reason
            data[group] |= found.details()
            if found.basis < 1 - _ROUNDING:
                data[group]["rests_on"] = round(float(n[group]) * found.basis, 1)
            if not _has_units(state) or not math.isfinite(found.value):
                continue
            if found.reason is None and self.interval_name is not None:
                low[group], high[group] = self._interval_of([found], effective[[group]])
            few, all_ = int(clusters[group]), int(n[group])
            reasons[group] = None if math.isfinite(low[group]) else _no_interval(all_, few, found.reason)
            data[group] |= {"clusters": few} if few != all_ else {}
        return Values(value, low, high, reasons, data)

    def group_results(self, state: State) -> Iterator[tuple[int, GroupResult]]:
        """The result of each group that has rows, group by group.

        A kind may override it with a method for many groups at once.
        """
        for group, rows in self.rows_of(state):
            kinds = self.kinds_of(rows)
            arranged = self.arranged(kinds.rows)
            weight = arranged[WEIGHT]
            value = float(self._values(arranged, weight[None])[0])
            details = partial(self.details, arranged, weight)
            if not math.isfinite(value):
                yield group, GroupResult(value, details, self._undefined_reason(arranged, weight))
            elif not _has_units(state) or self.interval_name is None:
                yield group, GroupResult(value, details, None, min(self.basis(arranged, weight), 1.0))
            else:
                yield (
                    group,
                    GroupResult(
                        value,
                        details,
                        self.why_unbounded(arranged),
                        min(self.basis(arranged, weight), 1.0),
                        min(self.expected_basis(arranged, weight), 1.0),
                        kinds.effective,
                        self.least_variance(arranged, value),
                        kinds.changes(self.changes(arranged, value)),
                        bounds=self.bounds(arranged, kinds),
                        parts=partial(self.parts, arranged, weight),
                    ),
                )

    def rows_of(self, state: State) -> Iterator[tuple[int, Columns]]:
        """The rows of each group that has any, with their weights, and their clusters where these are known."""
        table = _row_table(state)
        if WEIGHT not in table:
            table[WEIGHT] = np.broadcast_to(1.0, len(_groups_of(table)))
        if _KEY in state:
            table[CLUSTER] = state[_KEY]
        known = {name: state[name] for name in (LABELS, INDEPENDENT) if name in state}
        for group, rows in _by_group(table):
            yield group, {**rows, **known}

    def kinds_of(self, rows: Columns) -> "Kinds":
        """The rows of a group with equal rows merged, if they are counted."""
        if not self.counted or NUMBER in rows:
            return Kinds(rows, None, rows[WEIGHT], rows.get(CLUSTER))
        table = {name: rows[name] for name in (WEIGHT, *self.row_columns)}
        found = _count_equal_rows(table, self.row_columns, of_row=True)
        of_row = found.pop(_OF_ROW)
        return Kinds({**found, LABELS: rows[LABELS]}, of_row, rows[WEIGHT], rows.get(CLUSTER))

    def changes(self, rows: Columns, value: float) -> np.ndarray:
        """What one row of each kind adds to the value; `rows` is what `arranged` returned."""
        weight, one = rows[WEIGHT], weight_of_one(rows)
        influence = self.influence(rows, weight)
        if influence is not None:
            return np.asarray(one * influence)
        left = self.without_rows(rows, one)
        np.subtract(value, left, out=left)
        if weight.strides == (0,):
            left *= 1 - 1 / len(weight)
            left -= left.mean()
            return left
        there = weight > 0
        often = rows.get(NUMBER, there)
        left = np.where(there, left * (1 - one / weight.sum()), 0.0)
        return np.where(there, left - (often @ left) / often.sum(), 0.0)

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        if self.confidence is None:
            return replace(self, confidence=0.95).leave_out(columns, group, n_groups)
        value, basis, expected = np.full(n_groups, np.nan), np.ones(n_groups), np.ones(n_groups)
        reason: list[str | None] = [None] * n_groups
        n, entries = count_clusters(columns[CLUSTER]), [_NO_ENTRIES]
        for place, found in self.group_results(self.state(columns, group, n_groups)):
            value[place] = found.value
            if found.changes is None:
                continue
            assert found.changes.key is not None
            clusters, of_row = np.unique(found.changes.key, return_inverse=True)
            change, part = np.bincount(of_row, found.changes.change), found.parts()
            parts = np.full(len(clusters), -1) if part is None else rarest_parts(part, of_row)
            change = change if part is None else change * spread_of_parts(parts)
            without = found.value - (change if found.reason is None else np.nan) * (n / max(n - 1, 1))
            entries.append((clusters, np.full(len(clusters), place), np.broadcast_to(without, len(clusters)), parts))
            basis[place], expected[place], reason[place] = found.basis, found.expected, found.reason
        cluster, of, without, parts = map(np.concatenate, zip(*entries, strict=True))
        if (parts < 0).all():
            return LeftOut(value, cluster, of, without, n, basis, reason=reason)
        return LeftOut(value, cluster, of, without, n, basis, expected, parts, reason=reason)

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        """With an interval from what each cluster changes in all groups at once."""
        found = super().mean_over(state, groups)
        if self.confidence is None:
            each = zip(found.value, found.reason, strict=True)
            return replace(found, reason=[None if value == value else reason for value, reason in each])
        results, (_, effective) = dict(self.group_results(state)), clusters_of(state)
        low, high, reason = np.full(len(groups), np.nan), np.full(len(groups), np.nan), [*found.reason]
        for place in np.flatnonzero(np.isfinite(found.value)).tolist():
            members = [results[group] for group in groups[place].tolist()]
            faults = [member.reason for member in members if member.reason]
            if not faults and _has_units(state):
                low[place], high[place] = self._interval_of(members, effective[groups[place]])
            reason[place] = None if math.isfinite(low[place]) else next(iter(faults), _FEW_DECIDE)
        return replace(found, low=low, high=high, reason=reason)

    def _undefined_reason(self, rows: Columns, weight: np.ndarray) -> str:
        if not weight.sum() > 0:
            return WEIGHTLESS
        return self.undefined(rows, weight)

    def _values(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.asarray(self.value(rows, weight), np.float64)
        return np.where(np.isfinite(found) & (weight.sum(axis=1) > 0), found, np.nan)

    def _interval_of(self, groups: Sequence[GroupResult], effective: np.ndarray) -> tuple[float, float]:
        """The interval of the mean of the values of groups that may share clusters; NaN where there is none.

        The information is that of the clusters (`effective` of equal weight in each group), but at most that of the
        rows that a value depends on.
        """
        assert self.confidence is not None
        value = float(np.mean([found.value for found in groups]))
        if len(groups) == 1 and groups[0].ends is not None:
            return groups[0].ends
        if len(groups) == 1 and groups[0].bounds is not None:
            return groups[0].bounds(float(effective[0]))
        if any(found.changes is None for found in groups):
            return math.nan, math.nan
        if all(found.bounds is not None for found in groups):
            return self._interval_by_bounds(groups, effective)
        variance, n = mean_change([found.changes for found in groups if found.changes is not None]).spread()
        variance = self._drop_rounding(variance, value, n)
        if self.interval_name == "influence":
            resting = [min(float(k), found.rows * found.basis) for k, found in zip(effective, groups, strict=True)]
            fewest = min(resting)
            if fewest < _FEWEST or not math.isfinite(variance):
                return math.nan, math.nan
            expected = min(k / found.basis * found.expected for k, found in zip(resting, groups, strict=True))
            variance *= (n - 1) / n * fewest / (fewest - 1)
            return steady_interval(value, variance, expected, fewest, self.range, self.confidence)
        rests_on = min(float(k) * found.basis for k, found in zip(effective, groups, strict=True))
        least = float(np.mean([found.least for found in groups]))
        if len(groups) == 1 and groups[0].changes is not None:
            least = max(least, groups[0].changes.least)
        variance = max(variance, least) if variance else variance
        if not math.isfinite(variance) or not (variance or math.isfinite(self.range[1] - self.range[0])):
            return math.nan, math.nan
        rests_on = min(rests_on, n) if variance else rests_on
        return self.interval_by(value, Spread(*(np.array([x]) for x in (variance, n, rests_on))))

    def interval_by(self, value: float, spread: Spread) -> tuple[float, float]:
        """The interval of a value from its spread, without influences."""
        assert self.confidence is not None
        if np.isfinite(self.range).sum() == 1:
            return ratio_interval(
                value, float(spread.variance[0]), int(spread.clusters[0]), self.range, self.confidence
            )
        low, high = interval_within(np.array([value]), spread, self.range, self.confidence)
        return float(low[0]), float(high[0])

    def _interval_by_bounds(self, groups: Sequence[GroupResult], effective: np.ndarray) -> tuple[float, float]:
        """The interval of the mean of the values of groups, from the groups' intervals.

        Groups without spread are taken to be fully correlated with all others.
        """
        ends = [found.bounds(float(n)) for n, found in zip(effective, groups, strict=True) if found.bounds is not None]
        changes = [found.changes for found in groups if found.changes is not None]
        part = np.repeat(np.arange(len(groups)), [len(each.change) for each in changes])
        together = mean_change(changes)
        rows = PartChanges.of(part, together.key, together.change * len(groups), len(groups))
        low, high = np.array(ends).T
        return mean_of_parts(np.array([found.value for found in groups]), low, high, rows, 1.0, self.range)

    def _drop_rounding(self, variance: float, value: float, n: int) -> float:
        """The variance; 0 if rounding alone may explain it."""
        width = self.range[1] - self.range[0]
        least = _ROUNDING * (width if math.isfinite(width) else abs(value)) * math.sqrt(n)
        return 0.0 if math.sqrt(variance) <= least else variance


class Kinds(NamedTuple):
    """The rows of a group with equal rows merged.

    Attributes:
        rows: a row of each kind, with its weights; the rows themselves if they are not merged.
        of_row: the kind of each row; None if rows are not merged, or no more known.
        weight: of each row.
        key: the cluster of each row; None if each is independent or nothing is known about it.
    """

    rows: Columns
    of_row: np.ndarray | None
    weight: np.ndarray
    key: np.ndarray | None

    @property
    def effective(self) -> float:
        """The number of rows of equal weight with as much information, by Kish's formula."""
        if NUMBER in self.rows and self.of_row is None:
            return float(self.rows[NUMBER].sum())
        if self.weight.strides == (0,):
            return float(len(self.weight))
        weight = np.ldexp(self.weight, -int(np.frexp(self.weight.max(initial=0.0))[1]))
        return float(weight.sum() ** 2 / (weight @ weight))

    def changes(self, of_one: np.ndarray) -> Changes:
        """What each row with weight adds, from what one row of each kind adds, in the order of `rows`."""
        least = 0.0
        if self.of_row is not None:
            one, weight = weight_of_one(self.rows), self.rows[WEIGHT]
            with np.errstate(divide="ignore", invalid="ignore"):
                of_weight = np.where(one > 0, of_one / one, 0.0)
                if self.weight.strides != (0,):
                    least = float(weight @ np.square(of_weight) * (weight.sum() / self.effective))
            of_one = self.weight * of_weight[self.of_row]
        elif NUMBER in self.rows:
            return Changes(of_one, self.rows[NUMBER])
        if self.weight.strides == (0,) or (self.weight > 0).all():
            return Changes(of_one, None, self.key, least)
        there = self.weight > 0
        return Changes(of_one[there], None, None if self.key is None else self.key[there], least)


def weight_of_one(rows: Columns) -> np.ndarray:
    """The weight of one of the rows of each kind."""
    return np.asarray(rows[WEIGHT] / np.maximum(rows[NUMBER], 1)) if NUMBER in rows else rows[WEIGHT]


def clusters_in(rows: Columns) -> np.ndarray:
    """The cluster of each row of a group."""
    return rows[CLUSTER] if CLUSTER in rows else np.arange(len(rows[WEIGHT]))


def mean_change(changes: Sequence[Changes]) -> Changes:
    """What rows add to the mean of the values of several groups."""
    if len(changes) == 1:
        return changes[0]
    change = np.concatenate([part.change for part in changes]) / len(changes)
    keys = [part.key for part in changes if part.key is not None]
    return Changes(change, None, np.concatenate(keys) if len(keys) == len(changes) else None)


SQUARE: Final = "_square_"
"""The sum of squared weights of equal rows that are merged into one, if rows have weights."""

NUMBER: Final = "_number_"
"""The number of rows with weight that are merged into one."""

_NO_ENTRIES: Final = tuple(np.empty(0, kind) for kind in (np.int64, np.int64, np.float64, np.int64))
_GROUP: Final = "_group_"
_OF_ROW: Final = "_of_row_"
_PREFIX: Final = "row:"
_KEY: Final = "cluster_key"
"""The array of `CLUSTER_TABLE` with an entry for each row: clusters are complete only when all states are merged."""
_NO_LABELS: Final = np.empty(0, np.object_)
_AT_ONCE: Final = 1 << 22  # weights in memory at once
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)
_FEWEST: Final = 1.5  # a single deciding row has no spread
_FEW_DECIDE: Final = "no interval: leaving a few rows out leaves no value, or changes nothing, or too much"


def _no_interval(n: int, clusters: int, reason: str | None) -> str:
    if clusters > 1:
        return reason or _FEW_DECIDE
    return "one scored row has no interval" if n == 1 else "one cluster has no interval"


def row_column(state: State, name: str) -> np.ndarray:
    """One of the columns that make a row, from a state."""
    return state[_PREFIX + name]


def sum_by_cluster(key: np.ndarray | None, change: np.ndarray) -> np.ndarray:
    """The sum of each cluster."""
    if key is None or (key[1:] > key[:-1]).all():
        return change
    order = np.argsort(key, kind="stable")
    return np.asarray(np.add.reduceat(change[order], runs(key[order])))


def _prefix_columns(table: Columns) -> dict[str, np.ndarray]:
    return {_PREFIX + name: column for name, column in table.items()}


def _row_table(state: State) -> dict[str, np.ndarray]:
    return {name.removeprefix(_PREFIX): column for name, column in state.items() if name.startswith(_PREFIX)}


def _groups_of(table: Columns) -> np.ndarray:
    """The group of each row, which the rows of a single group do not say."""
    n = len(next(column for name, column in table.items() if name != _GROUP))
    return table[_GROUP] if _GROUP in table else np.broadcast_to(0, n)


def _has_units(state: State) -> bool:
    """Whether it is known which rows are independent, as an interval needs."""
    return _KEY in state or INDEPENDENT in state


def _by_group_in(state: State) -> list[str]:
    """The arrays that have one entry for each group."""
    return [name for name in state if not name.startswith(_PREFIX) and name not in (_KEY, LABELS)]


def clusters_of(state: State) -> tuple[np.ndarray, np.ndarray]:
    """The number of clusters with weight in each group, and Kish's effective number of equal weight."""
    n_groups, table = len(state["n"]), _row_table(state)
    if not _has_units(state):
        return np.zeros(n_groups), np.zeros(n_groups)
    if _KEY not in state and (NUMBER in table or WEIGHT not in table):
        return state["n"], state["n"].astype(np.float64)
    group = _groups_of(table)
    weight = table.get(WEIGHT, np.ones(len(group)))
    if _KEY in state and (state[_KEY][1:] <= state[_KEY][:-1]).any():
        order = np.lexsort((state[_KEY], group))
        key, group, weight = state[_KEY][order], group[order], weight[order]
        starts = runs(key, group)
        group, weight = group[starts], np.add.reduceat(weight, starts)
    weight = np.ldexp(weight, -int(np.frexp(weight.max(initial=0.0))[1]))  # so that squares are numbers
    total, square = (np.bincount(group, each, minlength=n_groups) for each in (weight, weight * weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        return count_rows(group[weight > 0], n_groups), total * total / square


def _count_equal_rows(table: Columns, names: Sequence[str], of_row: bool = False) -> dict[str, np.ndarray]:
    """Merge rows of a group with equal codes in the columns `names`, adding up weights, their squares and numbers."""
    n = len(table[names[0]])
    weight = table.get(WEIGHT, np.broadcast_to(1.0, n))
    adds = {WEIGHT: weight, NUMBER: table.get(NUMBER, weight > 0)}
    if SQUARE in table or (WEIGHT in table and NUMBER not in table):
        adds[SQUARE] = table[SQUARE] if SQUARE in table else _squares(weight)
    keys = {name: table[name] for name in (_GROUP,) if name in table} | {name: table[name] + 2 for name in names}
    sizes = {name: int(key.max(initial=-1)) + 1 for name, key in keys.items()}
    if math.prod(sizes.values()) < 2**62:
        packed = {name: (np.arange(sizes[name]), key) for name, key in keys.items()}
    else:  # only those in use, numbered from 0
        packed = {name: np.unique(key, return_inverse=True) for name, key in keys.items()}
    cell, n_cells = np.zeros(n, np.int64), 1
    for values, codes in packed.values():
        if len(values) > 1:
            cell = cell * len(values) + codes
        n_cells *= len(values)
    if n_cells <= max(4 * n, 1 << 16):
        used = np.flatnonzero(np.bincount(cell, minlength=n_cells))
        found = {name: np.bincount(cell, column, minlength=n_cells)[used] for name, column in adds.items()}
        if of_row:
            place = np.empty(n_cells, np.int64)
            place[used] = np.arange(len(used))
            cell = place[cell]
    else:
        used, cell = np.unique(cell, return_inverse=True)
        found = {name: np.bincount(cell, column, minlength=len(used)) for name, column in adds.items()}
    for name, (values, _) in reversed(packed.items()):
        found[name] = values[used % len(values)] - 2 * (name in names) if len(values) else used
        used = used // max(len(values), 1)
    return found | ({_OF_ROW: cell} if of_row else {})


def _squares(weight: np.ndarray) -> np.ndarray:
    """Squared weights, NaN for those too large or too small for a square."""
    with np.errstate(over="ignore", under="ignore"):
        square = np.square(weight)
    return np.where((square >= _LEAST) & (square < np.inf) | (weight == 0), square, np.nan)


_LEAST: Final = float(np.finfo(np.float64).tiny)


def _recode(labels: np.ndarray, code: np.ndarray, n_labels: int) -> np.ndarray:
    """Codes of labels, or a matrix of sets of labels, in a larger vocabulary."""
    return code[labels] if labels.ndim == 1 else _place_columns(labels, code, n_labels, otherwise=0.0)


def _place_columns(matrix: np.ndarray, code: np.ndarray, n_labels: int, otherwise: float = np.nan) -> np.ndarray:
    """The columns of a matrix of rows × labels at their places in a larger vocabulary."""
    found = np.full((len(matrix), n_labels), otherwise)
    found[:, code[: matrix.shape[1]]] = matrix
    return found


def _by_group(table: Mapping[str, np.ndarray]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """The rows of each group that has any."""
    group = _groups_of(table)
    rows = {name: column for name, column in table.items() if name != _GROUP}
    if not len(group):
        return
    if group.strides == (0,) or (group == group[0]).all():
        yield int(group[0]), rows
        return
    order = np.argsort(group, kind="stable")
    starts = runs(group[order])
    for part in np.split(order, starts[1:]):
        yield int(group[part[0]]), {name: column[part] for name, column in rows.items()}


def mean_without(values: np.ndarray, weight: np.ndarray, one: np.ndarray) -> np.ndarray:
    """The mean of values of kinds of rows without one row of each kind; NaN values do not count."""
    known = ~np.isnan(values)
    weight, one = np.where(known, weight, 0.0), np.where(known, one, 0.0)
    rest = weight.sum() - one
    total = weight @ np.nan_to_num(values) - one * np.nan_to_num(values)
    return np.where(rest > _ROUNDING * one, total / np.where(rest > 0, rest, 1.0), np.nan)
