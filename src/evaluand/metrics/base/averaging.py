"""Base of metrics that average one number per row, with weights, clusters, the bootstrap and Student's t interval."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final

import numpy as np

from evaluand.core.parameters import Within
from evaluand.metrics.base.left_out import LeftOut, clusters_by_group, count_clusters
from evaluand.metrics.base.metric import (
    CLUSTER,
    FEWEST_REPLICATES,
    NO_ROWS,
    VALUE,
    WEIGHTLESS,
    Columns,
    Metric,
    Reduce,
    State,
    Values,
    check_confidence,
    numbers,
    refuse,
    weights_of,
)
from evaluand.metrics.stats.intervals import (
    CLUSTER_TABLE,
    Spread,
    cluster_skew,
    cluster_sums,
    cluster_table,
    cluster_variance,
    merge_moments,
    moments,
    skewed_interval,
    skewness,
    steady_intervals,
    sum_rows,
    t_quantile,
)
from evaluand.metrics.stats.resampling import bootstrap


@dataclass(frozen=True, kw_only=True)
class OfColumn(Metric):
    """A metric of one column, which can be chosen.

    Args:
        column: the column to read.
    """

    column: str = VALUE

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True, kw_only=True)
class OfFirst(Metric):
    """A metric of the first so many rows or answers.

    Args:
        k: how many.

    Raises:
        SpecError: k is below 1.
    """

    k: Annotated[int, Within(1)]


class KeepingRows(Metric):
    """A metric whose state holds rows: the arrays whose names begin with `row_`, of which `row_group` is the group."""

    def merge(self, states: Sequence[State]) -> State:
        rows = {name: np.concatenate([state[name] for state in states]) for name in states[0] if name.startswith(_ROW)}
        by_group = [{name: state[name] for name in state if name not in rows} for state in states]
        return rows | dict(super().merge(by_group))

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        by_group = {name: state[name] for name in state if not name.startswith(_ROW)}
        return {**state, **super().place(by_group, positions, n_groups), ROW_GROUP: positions[state[ROW_GROUP]]}


_ROW: Final = "row_"
ROW_GROUP: Final = "row_group"


@dataclass(frozen=True, kw_only=True)
class Averaging(Metric):
    """A mean with an interval; the interval is by cluster if rows belong together or have weights.

    A kind's `prepare` returns the number of each row in the column `value`.

    Args:
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: compute the interval from this many bootstrap replicates, if these differ.

    Raises:
        SpecError: the confidence does not lie between 0 and 1, or there are too few replicates.
    """

    averages = True

    weighted: bool = False
    confidence: float = 0.95
    bootstrap: Annotated[int, Within(FEWEST_REPLICATES)] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", check_confidence(self.kind, self.confidence))
        super().__post_init__()

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the interval that is used without the bootstrap."""

    @property
    def interval_name(self) -> str:
        return f"bootstrap-{self.bootstrap}" if self.bootstrap else self.method

    @property
    def by_cluster(self) -> bool:
        return self.weighted or self.bootstrap is not None

    @property
    def row_range(self) -> tuple[float, float]:
        return self.range

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        values = columns[VALUE]
        state = dict(self.sums(values, group, n_groups))
        with np.errstate(over="ignore", invalid="ignore"):  # overflow leads to an undefined value with a reason
            if self.weighted:
                weights = weights_of(columns, self.kind)
                state["weight"] = sum_rows(weights, group, n_groups)
                state["weight_value"] = sum_rows(weights * values, group, n_groups)
            if CLUSTER in columns:
                weights = weights_of(columns, self.kind) if self.weighted else np.ones(len(values))
                state |= cluster_sums(values, weights, columns[CLUSTER], group)
        return state

    def merge(self, states: Sequence[State]) -> State:
        with np.errstate(over="ignore", invalid="ignore"):
            return super().merge(states)

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        weights = weights_of(columns, self.kind) if self.weighted else np.ones(len(group))
        cluster, of, entry = clusters_by_group(columns[CLUSTER], group, n_groups)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            own = [np.bincount(entry, part, minlength=len(of)) for part in (weights * columns[VALUE], weights)]
            total, weight = (np.bincount(of, part, minlength=n_groups) for part in own)
            value, without = total / weight, (total[of] - own[0]) / (weight[of] - own[1])
        value, without = (np.where(np.isfinite(each), each, np.nan) for each in (value, without))
        return LeftOut(value, cluster, of, without, count_clusters(columns[CLUSTER]), np.ones(n_groups))

    @abstractmethod
    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        """The state of the rows, unweighted and without clusters."""

    def slope(self, state: State, value: np.ndarray) -> np.ndarray:
        """The derivative of the value by the mean that the state holds."""
        return np.ones(value.shape)

    def mean_over(self, state: State, groups: Sequence[np.ndarray]) -> Values:
        """With an interval from the spread between clusters."""
        found = super().mean_over(state, groups)
        if self.bootstrap is not None or "cluster_key" not in state:
            return found
        key, of, total, weight = (state[name] for name in CLUSTER_TABLE)
        n = len(state["n"])
        summed = np.bincount(of, weight, minlength=n)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(of, total, minlength=n) / summed
            pull = self.slope(state, self.compute(state).value)[of] * (total - mean[of] * weight) / summed[of]
        table = key, of, pull, weight
        ends = [self._ends(found.value[place : place + 1], members, table) for place, members in enumerate(groups)]
        low, high = np.array(ends).reshape(-1, 2).T
        reason = [None if known else text for known, text in zip(np.isfinite(low).tolist(), found.reason, strict=True)]
        return replace(found, low=low, high=high, reason=reason)

    def _ends(self, value: np.ndarray, members: np.ndarray, table: tuple[np.ndarray, ...]) -> tuple[float, float]:
        """The interval of a mean of groups, from the influence of each cluster on it."""
        key, of, pull, weight = table
        chosen = np.isin(of, members) & (weight > 0)
        key, weight = key[chosen], weight[chosen]
        total = pull[chosen] * weight.sum() / len(members)
        spread = cluster_variance(cluster_table(key, np.zeros(len(key), np.int64), total, weight), np.zeros(1))
        low, high = self.interval_of(value, spread)
        return tuple(np.clip([low[0], high[0]], *self.range).tolist())

    def interval_of(self, value: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """The interval of each value from the spread between clusters, without the bootstrap; NaN where undefined.

        Within a finite range few values, rare ones or clusters that agree show too little of what others may be: see
        `steady_interval`.
        """
        if np.isfinite(self.range).all():
            variance = np.where(spread.clusters > 1, spread.variance, np.nan)
            return steady_intervals(value, variance, spread.effective, spread.effective, self.range, self.confidence)
        half = t_quantile(self.confidence, spread.clusters - 1) * np.sqrt(spread.variance)
        half = np.where(np.isfinite(half) & (half > 0), half, np.nan)
        return value - half, value + half

    def drawn(self, state: State, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
        """The ends of the bootstrap intervals, if requested and defined; else the passed ends."""
        if not self.bootstrap or "cluster_key" not in state:
            return low, high
        ends = bootstrap(state, value, self.confidence, self.bootstrap)
        return tuple(np.where(np.isnan(end), other, end) for end, other in zip(ends, (low, high), strict=True))


def quotient(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean of each group; NaN if its sum of weights has a `weight_problem`."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(total / np.where((weight > 0) & np.isfinite(weight), weight, np.nan))


def weight_problem(weight: float) -> str | None:
    """Why rows with this sum of weights have no mean; None if they have one."""
    if weight == 0:
        return WEIGHTLESS
    return None if math.isfinite(weight) else "the weights are too large to be summed"


def no_interval_reason(n: int) -> str:
    """Why scored rows of a single cluster have no interval."""
    return "one scored row has no interval" if n == 1 else "one cluster has no interval"


def zeros_and_ones(columns: Columns, name: str, kind: str, remedy: str = "") -> np.ndarray:
    """Refuse a column that does not hold numbers, or one that is neither 0 nor 1, with the advice `remedy`."""
    values = numbers(columns, name, kind)
    other = (values != 0) & (values != 1)
    refuse(columns, other, lambda row: f"{name} {values[row]} is neither 0 nor 1{remedy}")
    return values


class Student(Averaging):
    """A mean with the score interval within a finite range, see `steady_interval`, else with Student's t interval.

    Of values with one end, such as errors, it is corrected for their skewness, see `skewed_interval`.
    """

    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "mean", "all")

    @property
    def method(self) -> str:
        return "score" if np.isfinite(self.range).all() else "hall" if self._has_one_end else "student"

    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        return moments(values, group, n_groups, third=self._has_one_end)

    @property
    def _has_one_end(self) -> bool:
        return bool(np.isfinite(self.range).sum() == 1)

    def merge(self, states: Sequence[State]) -> State:
        others = [{name: state[name] for name in state if name.startswith(("weight", "cluster"))} for state in states]
        return dict(merge_moments(states)) | dict(super().merge(others))

    def compute(self, state: State) -> Values:
        n = state["n"]
        variance = np.where(n > 1, state["m2"] / np.maximum(n - 1, 1), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.weighted:
                value = quotient(state["weight_value"], state["weight"])
            else:
                value = np.where(n > 0, state["mean"] + state["rest"], np.nan)
            value = np.where(np.isfinite(value), value, np.nan)
            low, high, independent, equal = self._interval(state, value, variance)
        weight = state["weight"] if self.weighted else n
        each = (n, weight, value, np.isfinite(low), independent, equal)
        reasons = [_reason(*group) for group in zip(*(array.tolist() for array in each), strict=True)]
        deviations = zip(n.tolist(), np.sqrt(variance).tolist(), strict=True)
        data = [{"n": rows, "standard_deviation": d if math.isfinite(d) else None} for rows, d in deviations]
        if "cluster_key" in state:
            data = [one | {"clusters": found} for one, found in zip(data, independent.tolist(), strict=True)]
        return Values(value, low, high, reasons, data)

    def _interval(self, state: State, value: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        """Lower and upper ends, the number of independent rows or clusters, and whether all of these are equal."""
        n = state["n"]
        spread = cluster_variance(state, value) if "cluster_key" in state else Spread(variance / np.maximum(n, 1), n, n)
        if self._has_one_end:
            skew = cluster_skew(state, value) if "cluster_key" in state else skewness(n, state["m2"], state["m3"])
            no_cube = (spread.variance > 0) & (spread.variance * spread.clusters < _NO_CUBE**2)
            spread = spread._replace(variance=np.where(no_cube, np.nan, spread.variance))
            ends = skewed_interval(value, spread, skew, self.confidence)
        else:
            ends = self.interval_of(value, spread)
        low, high = self.drawn(state, value, *ends)
        known = np.isfinite(low) & np.isfinite(high)
        low, high = (np.where(known, np.clip(end, *self.range), np.nan) for end in (low, high))
        return low, high, spread.clusters, spread.variance == 0


def _reason(n: int, weight: float, value: float, has_interval: bool, independent: int, equal: bool) -> str | None:
    if n == 0:
        return NO_ROWS
    if math.isnan(value):
        return weight_problem(weight) or "the values are too large to be averaged"
    if independent == 1:
        return no_interval_reason(n)
    if has_interval:
        return None
    if not equal:
        return TOO_NEAR if 0 < abs(value) < math.sqrt(_NO_CUBE) else TOO_FAR
    return "no interval: all values are equal" + (", or too small for squares" if abs(value) < _NO_SQUARE else "")


TOO_FAR: Final = "the values lie too far apart for an interval"
TOO_NEAR: Final = "the values lie too near together for an interval"
_NO_SQUARE: Final = 1e-140
_NO_CUBE: Final = 1e-95
