"""Numbers about one column: its mean, its quantiles and how many rows it has."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.averaging import ROW_GROUP, KeepingRows, OfColumn, Student
from evaluand.metrics.base.left_out import LeftOut, clusters_by_group, count_clusters
from evaluand.metrics.base.metric import (
    CLUSTER,
    NO_ROWS,
    VALUE,
    Columns,
    Direction,
    Metric,
    State,
    Values,
    check_confidence,
    numbers,
    refuse,
)
from evaluand.metrics.base.numeric_pairs import TOO_LARGE
from evaluand.metrics.stats.intervals import cluster_sums, cluster_variance, clustered_wilson, count_rows, wilson


@dataclass(frozen=True, kw_only=True)
class Mean(Student, OfColumn):
    """The mean of a column, with the score interval within its range, or with Student's t interval if it has none.

    Student's interval assumes that the mean is nearly normal and misleads for few rows of a skewed score: declare the
    range. For 0/1 scores see `Accuracy`. If examples are replicated, share a declared cluster or have weights, it is
    the interval for clusters.

    Args:
        column: the column to average.
        weighted: each row counts by the weight of its example.
        range: the values the score can have. `worst`, `best` and `missing="wrong"` need it; values outside are
            refused.
        direction: whether higher or lower scores are better; None if neither.
        confidence: of the interval.
        bootstrap: compute the interval from this many bootstrap replicates, if these differ.

    Raises:
        SpecError: the range is empty or reversed, the confidence not between 0 and 1, or the replicates too few.

    Example:
        >>> import numpy as np
        >>> metric = Mean(range=(0, 1))
        >>> state = metric.state({"value": np.array([0.0, 0.5, 1.0])}, np.array([0, 0, 0]), n_groups=1)
        >>> metric.compute(state).value
        array([0.5])
        >>> metric.signature
        'mean v1 missing=leave_out reduce=first column=value range=(0.0,1.0) direction=higher interval=score 95%'
    """

    kind = "mean"
    reductions = ("first", "best", "any", "mean", "all")

    range: tuple[float, float] = (-math.inf, math.inf)
    direction: Direction | None = "higher"

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", check_range(self.kind, self.range))
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        values = numbers(columns, self.column, self.kind)
        low, high = self.range
        outside = (values < low) | (values > high)
        refuse(columns, outside, lambda row: f"{self.column} {values[row]} lies outside the range {low} to {high}")
        return {VALUE: values}


def check_range(kind: str, ends: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest value as floats; a SpecError if they are not two ascending numbers."""
    is_pair = isinstance(ends, list | tuple) and len(ends) == 2 and all(isinstance(end, Real) for end in ends)
    if not is_pair or not ends[0] < ends[1]:
        raise SpecError(f"{kind}: range={ends!r} must be (lowest, highest)")
    return float(ends[0]), float(ends[1])


@dataclass(frozen=True, kw_only=True)
class Count(Metric):
    """The number of scored rows, or of those with a certain value or label; 0 for a group without rows.

    This is not a rate: compare groups of different sizes by `Mean` or `Accuracy`. The bounds `worst` and `best` need a
    direction, because whether a high count is good depends on what is counted.

    Args:
        value: count only rows with exactly this value.
        label: count only rows with this label; with `value`, both must match.
        direction: whether more or fewer of them is better; neither by default.

    Raises:
        SpecError: `value` is not a finite number.

    Example:
        >>> Count(label="toxic", direction="lower").signature
        'count v1 missing=leave_out reduce=first label=toxic direction=lower'
    """

    kind = "count"
    reductions = ("first", "best", "any", "mean", "all")
    range = (0.0, math.inf)
    row_range = (0.0, 1.0)

    value: float | None = None
    label: str | None = None
    direction: Direction | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            if not math.isfinite(self.value):
                raise SpecError(f"count: value={self.value} never equals a score; give a finite number")
            object.__setattr__(self, "value", float(self.value))
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        conditions = {VALUE: self.value, "label": self.label}
        return tuple(name for name, value in conditions.items() if value is not None)

    def prepare(self, columns: Columns) -> Columns:
        counted = np.ones(len(columns[INDEX]), np.bool_)
        if self.value is not None:
            counted &= columns[VALUE] == self.value
        if self.label is not None:
            counted &= (columns["label"].astype(object) == self.label).astype(np.bool_)
        return {VALUE: counted.astype(np.float64)}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        return {"count": np.bincount(group, columns[VALUE], minlength=n_groups)}

    def compute(self, state: State) -> Values:
        count = state["count"]
        nothing = np.full(count.shape, np.nan)
        return Values(count, nothing, nothing, [None] * len(count), [None] * len(count))


@dataclass(frozen=True, kw_only=True)
class Positional(KeepingRows):
    """The value below which a share of the rows lies, with Woodruff's interval; the state holds every value.

    An end is open where the rows, or clusters, are so few that all of them may well lie on one side of the true value.

    Attributes:
        share: of the rows that lie below the value.
    """

    interval_name = "woodruff"
    errs_evenly = True
    share: ClassVar[float]

    confidence: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", check_confidence(self.kind, self.confidence))
        super().__post_init__()

    def locate(self, values: np.ndarray, starts: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The value of each group, from the sorted values of all; NaN without rows."""
        return at_share(values, starts, n, np.full(n.shape, self.share))

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        rows = {"n": count_rows(group, n_groups), ROW_GROUP: group, "row_value": columns[VALUE]}
        return rows | ({"row_cluster": columns[CLUSTER]} if CLUSTER in columns else {})

    def compute(self, state: State) -> Values:
        n = state["n"]
        order = np.lexsort((state["row_value"], state[ROW_GROUP]))
        values, starts = state["row_value"][order], np.cumsum(n) - n
        share = np.full(n.shape, self.share)
        value = self.locate(values, starts, n)
        *ends, clusters = self._shares(state, value, share)
        low, high = (at_share(values, starts, n, end) for end in ends)
        too_large = np.isinf(high)
        low, high = (np.where(too_large, np.nan, end) for end in (low, high))
        seen = n if clusters is None else clusters
        open_low, open_high = ((1 - self.share) ** seen > self._error), (self.share**seen > self._error)
        low, high = np.where(open_low, np.nan, low), np.where(open_high, np.nan, high)
        groups = zip(n, np.isinf(value), too_large, open_low, open_high, strict=True)
        reason = [_reason(*group[:3]) or self._why_open(*group[3:]) for group in groups]
        value = np.where(np.isinf(value), np.nan, value)
        data = [{"n": rows} for rows in n.tolist()]
        if clusters is not None:
            data = [entry | {"clusters": found} for entry, found in zip(data, clusters.tolist(), strict=True)]
        return Values(value, low, high, reason, data)

    @property
    def _error(self) -> float:
        """How often the true value may lie beyond one end."""
        return (1 - self.confidence) / 2 + 1e-12

    def _why_open(self, low: bool, high: bool) -> str | None:
        """Why an end is open, and how many rows it needs."""
        beyond = [*([("lower", 1 - self.share)] if low else []), *([("upper", self.share)] if high else [])]
        needed = (
            f"no {end} end: a bound at {100 * (1 - self._error):g}% needs"
            f" {math.ceil(math.log(self._error) / math.log(share)):,} rows"
            for end, share in beyond
        )
        return "; ".join(needed) or None

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        """By influence, as the values without each of many clusters do not show how a quantile varies.

        The density at the value is that of the rows between the ends of Woodruff's interval.
        """
        state = self.state(columns, group, n_groups)
        found = self.compute(state)
        n = state["n"]
        low, high = self._shares(state, found.value, np.full(n_groups, self.share))[:2]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (found.high - found.low) / (high - low) / n
        below = (columns[VALUE] <= found.value[group]).astype(np.float64)
        mean = np.bincount(group, below, minlength=n_groups) / np.maximum(n, 1)
        cluster, of, entry = clusters_by_group(columns[CLUSTER], group, n_groups)
        change = np.bincount(entry, slope[group] * (mean[group] - below), minlength=len(of))
        clusters = count_clusters(columns[CLUSTER])
        without = found.value[of] - change * (clusters / max(clusters - 1, 1))
        return LeftOut(found.value, cluster, of, without, clusters, np.ones(n_groups))

    def _shares(
        self, state: State, value: np.ndarray, share: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The interval of the share of rows at or below the value, and the number of clusters, if any."""
        n, group = state["n"], state[ROW_GROUP]
        if "row_cluster" not in state:
            return *wilson(share * n, n, self.confidence), None
        below = (state["row_value"] <= value[group]).astype(np.float64)
        table = cluster_sums(below, np.ones(len(below)), state["row_cluster"], group)
        mean = np.bincount(group, below, minlength=len(n)) / np.maximum(n, 1)
        spread = cluster_variance(table, mean)
        return *clustered_wilson(share, spread, self.confidence), spread.clusters


def _reason(n: int, value_too_large: bool, end_too_large: bool) -> str | None:
    if n == 0:
        return NO_ROWS
    if value_too_large:
        return TOO_LARGE
    return "no interval: its upper end is too large for a number" if end_too_large else None


@dataclass(frozen=True, kw_only=True)
class Quantile(Positional):
    """The value below which a share of the rows lies: the median, a 95th percentile of costs or times.

    The smallest value that at least this share of rows does not exceed (Hyndman & Fan's first definition), so it is a
    value that occurs. The ends of the interval are the quantiles at the ends of Wilson's interval of the share, by
    cluster if rows belong together: R. Woodruff, "Confidence intervals for medians and other position measures" (JASA
    47, 1952). The state holds every value.

    Args:
        q: the share, between 0 and 1.
        column: the column to read.
        direction: whether higher or lower values are better; None if neither.
        confidence: of the interval.

    Raises:
        SpecError: the share or the confidence does not lie between 0 and 1.

    Example:
        >>> metric = Quantile(q=0.5)
        >>> state = metric.state({"value": np.array([3.0, 1.0, 2.0])}, np.array([0, 0, 0]), n_groups=1)
        >>> metric.compute(state).value
        array([2.])
    """

    kind = "quantile"
    reductions = ("first", "best", "any", "mean", "all")

    q: float
    column: str = VALUE
    direction: Direction | None = "higher"

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise SpecError(f"quantile: q={self.q!r} must lie between 0 and 1, such as 0.5 for the median")
        object.__setattr__(self, "q", float(self.q))
        super().__post_init__()

    @property
    def share(self) -> float:  # type: ignore[override]
        return self.q

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: numbers(columns, self.column, self.kind)}


def at_share(values: np.ndarray, starts: np.ndarray, n: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The value of each group that a share of its rows does not exceed; NaN without rows or share."""
    known = (n > 0) & np.isfinite(share)
    place = np.ceil(np.where(known, share, 0.0) * n - 1e-9).astype(np.int64) - 1
    found = np.full(n.shape, np.nan)
    found[known] = values[(starts + np.clip(place, 0, n - 1))[known]]
    return found
