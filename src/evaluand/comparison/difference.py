"""One system against another on the same rows: the difference with its interval, tests, counts and power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from evaluand.aggregation.groups import Units
from evaluand.comparison.pairing import ABSENT, PairedRows
from evaluand.comparison.power import detectable_difference
from evaluand.comparison.significance import mcnemar, sign_flip
from evaluand.metrics.base.metric import WEIGHT, WEIGHTLESS, Metric, weights_of
from evaluand.metrics.stats.intervals import (
    BOUND_CORRECTION,
    Arrays,
    Spread,
    cluster_sums,
    cluster_variance,
    paired_score,
    t_quantile,
)
from evaluand.metrics.stats.least_mean import least_mean
from evaluand.metrics.stats.resampling import bootstrap

POWER: Final = 0.8
REPLICATES: Final = 2000
BOOTSTRAPPED_CLUSTERS: Final = 20_000
"""With more clusters the bootstrap is slow and agrees with the t interval."""

PAIRED_SCORE: Final = "paired score"
STUDENT: Final = "student"
CLUSTERED: Final = "clustered student"


@dataclass(frozen=True)
class Difference:
    """B compared with A; numbers are NaN where undefined.

    Attributes:
        n: rows that both were asked.
        n_used: rows that have a value on both sides.
        n_a_missing: rows of `n` without a score in A: failed or abstained.
        n_b_missing: the same in B.
        n_skipped: rows of both that one side skipped; not in `n`.
        n_only_a: rows without a partner in B.
        n_only_b: rows without a partner in A.
        clusters: the number of independent observations, where these are not the rows.
        binary: all values are 0 or 1.
        value_a: of the rows used.
        value_b: of the rows used.
        difference: B − A.
        low: lower end of its interval.
        high: upper end of its interval.
        interval: the interval's method.
        bootstrap_low: lower end of the bootstrap interval.
        bootstrap_high: upper end of the bootstrap interval.
        worst: the difference if every missing row counted against B.
        best: the difference if every missing row counted for B.
        p: the two-sided p value: McNemar's where rows are independent and binary, else that of the permutation test.
        test: the name of the test behind `p`.
        p_permutation: of the paired permutation test.
        permutation: the method of `p_permutation`.
        won: rows in which B is better; rows without weight count nowhere; None if rows have no values of their own.
        tied: rows in which they are equal.
        lost: rows in which A is better.
        effect: the odds of winning a row that differs (binary), or the mean difference in standard deviations.
        detectable: the smallest true difference that as many rows detect in 80 of 100 cases.
        reason: why something is undefined.
    """

    n: int
    n_used: int
    n_a_missing: int
    n_b_missing: int
    n_skipped: int
    n_only_a: int
    n_only_b: int
    clusters: int | None
    binary: bool
    value_a: float
    value_b: float
    difference: float
    low: float
    high: float
    interval: str
    bootstrap_low: float
    bootstrap_high: float
    worst: float
    best: float
    p: float
    test: str
    p_permutation: float
    permutation: str
    won: int | None
    tied: int | None
    lost: int | None
    effect: float
    detectable: float
    reason: str | None


def difference(rows: PairedRows, a: int, b: int, metric: Metric, confidence: float) -> Difference:
    """Compares side `b` with side `a` over the rows of one group.

    Args:
        rows: paired rows, see `pairing.pair_rows`.
        metric: the metric whose values the rows hold.
        confidence: of the intervals.
    """
    asked = rows.asked[a] & rows.asked[b]
    used = rows.known[a] & rows.known[b]
    counts = count_pairs(rows, a, b)
    sample = Sample.from_rows(rows.take(used), a, b, metric)
    low, high = sample.interval(confidence)
    boot_low, boot_high = sample.bootstrap(confidence)
    permuted = sign_flip(sample.state["cluster_sum"])
    exact = sample.independent and sample.binary
    wins = 1 if metric.direction != "lower" else -1
    won, lost = int((sample.change * wins > 0).sum()), int((sample.change * wins < 0).sum())
    empty = counts["n_used"] == 0 or math.isnan(sample.value)
    return Difference(
        **counts,
        clusters=None if rows.cluster is None and sample.clusters == counts["n_used"] else sample.clusters,
        binary=sample.binary,
        value_a=weighted_mean(rows.take(used), rows.value[a, used], metric),
        value_b=weighted_mean(rows.take(used), rows.value[b, used], metric),
        difference=sample.value,
        low=low,
        high=high,
        interval=sample.method,
        bootstrap_low=boot_low,
        bootstrap_high=boot_high,
        worst=_extreme_difference(rows.take(asked), a, b, metric, "worst"),
        best=_extreme_difference(rows.take(asked), a, b, metric, "best"),
        p=math.nan if empty else mcnemar(won, lost) if exact else permuted.p,
        test="exact McNemar" if exact else "permutation",
        p_permutation=math.nan if empty else permuted.p,
        permutation=permuted.method,
        won=won,
        tied=len(sample.change) - won - lost,
        lost=lost,
        effect=_effect(sample, won, lost),
        detectable=sample.detectable(confidence),
        reason=_reason(counts, sample, low),
    )


def count_pairs(rows: PairedRows, a: int, b: int) -> dict[str, int]:
    """The counts of a `Difference`."""
    asked = rows.asked[a] & rows.asked[b]
    both = (rows.status[a] != ABSENT) & (rows.status[b] != ABSENT)
    return {
        "n": int(asked.sum()),
        "n_used": int((rows.known[a] & rows.known[b]).sum()),
        "n_a_missing": int((asked & rows.unscored[a]).sum()),
        "n_b_missing": int((asked & rows.unscored[b]).sum()),
        "n_skipped": int((both & ~asked).sum()),
        "n_only_a": int(rows_without_partner(rows, a, b).sum()),
        "n_only_b": int(rows_without_partner(rows, b, a).sum()),
    }


def change_of_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """B − A by row; 0 where the two differ by the rounding of a computation alone.

    Example:
        >>> change_of_rows(np.array([0.1, 0.1]), np.array([1 - (1 - 0.1), 0.2]))
        array([0. , 0.1])
    """
    rounding = _ULPS * np.finfo(np.float64).eps * np.maximum(np.abs(a), np.abs(b))
    return np.asarray(np.where(np.abs(b - a) < rounding, 0.0, b - a))


def rows_without_partner(rows: PairedRows, a: int, b: int) -> np.ndarray:
    """The rows of side `a` without a partner in `b`."""
    return np.asarray((rows.status[a] != ABSENT) & (rows.status[b] == ABSENT))


def weighted_mean(rows: PairedRows, values: np.ndarray, metric: Metric) -> float:
    """The mean of values of rows, weighted if the metric is; NaN without rows or weight."""
    weight = row_weights(rows, metric)
    total = weight.sum()
    return float(weight @ values / total) if total > 0 else math.nan


@dataclass(frozen=True)
class Sample:
    """The differences of the rows that are used and have weight, and their independent clusters.

    Attributes:
        change: B − A of each row.
        weight: of each row.
        state: sums by cluster; each row is a cluster where rows are independent.
        independent: rows share no example and no cluster, and all have the same weight.
        binary: all values are 0 or 1, and the metric knows no others.
        span: the largest possible distance of two values; infinite where unknown.
        observed: the largest observed distance of two values.
        value: the weighted mean of `change`.
    """

    change: np.ndarray
    weight: np.ndarray
    state: Arrays
    independent: bool
    binary: bool
    span: float
    observed: float
    value: float

    @classmethod
    def from_rows(cls, rows: PairedRows, a: int, b: int, metric: Metric) -> Sample:
        rows = rows.take(row_weights(rows, metric) > 0)
        weight = row_weights(rows, metric)
        values = rows.value[[a, b]]
        change = change_of_rows(*values)
        cluster = rows.example if rows.cluster is None else rows.cluster
        repeated = rows.cluster is not None or len(np.unique(cluster)) < len(cluster)
        state = cluster_sums(change, weight, cluster, np.zeros(len(change), np.int64))
        low, high = metric.row_range
        total = weight.sum()
        return cls(
            change=change,
            weight=weight,
            state=state,
            independent=not repeated and not _is_weighted(metric),
            binary=(low, high) in _OF_BINARY and bool(((values == 0) | (values == 1)).all()),
            span=high - low,
            observed=float(np.ptp(values)) if values.size else 0.0,
            value=float(weight @ change / total) if total > 0 else math.nan,
        )

    @property
    def clusters(self) -> int:
        return len(self.state["cluster_key"])

    @property
    def method(self) -> str:
        return PAIRED_SCORE if self.independent and self.binary else STUDENT if self.independent else CLUSTERED

    @property
    def reach(self) -> float:
        """The largest possible distance of two values, or the largest observed one where that is unknown."""
        return self.span if math.isfinite(self.span) else self.observed

    @property
    def error(self) -> float:
        """The standard error of the mean difference, from the spread between clusters."""
        return float(np.sqrt(self.spread.variance[0]))

    @property
    def spread(self) -> Spread:
        return cluster_variance(self.state, np.array([self.value]))

    def interval(self, confidence: float, correction: float = 0.0) -> tuple[float, float]:
        """The interval of the difference; NaN where the rows show no spread."""
        if self.independent and self.binary:
            won, lost = int((self.change > 0).sum()), int((self.change < 0).sum())
            return paired_score(won, lost, len(self.change), confidence, correction=correction)
        if self.clusters < 2 or math.isnan(self.value):
            return math.nan, math.nan
        if not self.change.any():  # each effective cluster counts as one row
            if not self.reach:
                return math.nan, math.nan
            low, high = paired_score(0, 0, round(float(self.spread.effective[0])), confidence, correction=correction)
            return low * self.reach, high * self.reach
        half = float(t_quantile(confidence, np.array([self.clusters - 1]))[0]) * self.error
        if not 0 < half < math.inf:
            return math.nan, math.nan
        return max(self.value - half, -self.span), min(self.value + half, self.span)

    def bounds(self, level: float) -> tuple[float, float]:
        """One-sided bounds: those of the t interval, or wider ones where few rows differ and it is too narrow."""
        low, high = self.interval(2 * level - 1, correction=BOUND_CORRECTION)
        if (self.independent and self.binary) or math.isnan(low) or not math.isfinite(self.span):
            return low, high
        total, weight = self.state["cluster_sum"], self.state["cluster_weight"]
        least, most = least_mean(total, weight, -self.span, level), -least_mean(-total, weight, -self.span, level)
        return min(low, least), max(high, most)

    def bootstrap(self, confidence: float) -> tuple[float, float]:
        if not 2 <= self.clusters <= BOOTSTRAPPED_CLUSTERS:
            return math.nan, math.nan
        low, high = bootstrap(self.state, np.array([self.value]), confidence, REPLICATES)
        return float(low[0]), float(high[0])

    def detectable(self, confidence: float) -> float:
        """The difference detected with a power of 80 % at the observed discordance or spread; NaN if there is none."""
        if 2.0 ** (1 - min(self.clusters, 60)) > 1 - confidence:  # no possible outcome has so small a p value
            return math.nan
        if self.independent and self.binary:
            differ = float(np.mean(self.change != 0)) if len(self.change) else 0.0
            return detectable_difference(differ, len(self.change), confidence, POWER)
        if self.clusters < 2:
            return math.nan
        t = float(t_quantile(confidence, np.array([self.clusters - 1]))[0])
        least = (t + _Z_POWER) * self.error
        return least if 0 < least < math.inf else math.nan


_OF_BINARY: Final = ((0.0, 1.0), (-math.inf, math.inf))
"""The ranges of values that may all be 0 or 1; of others, one that is neither may not have been seen."""
_ROUNDING: Final = 1e-12
_ULPS: Final = 64
_Z_POWER: Final = NormalDist().inv_cdf(POWER)


def _is_weighted(metric: Metric) -> bool:
    return bool(getattr(metric, "weighted", False))


def row_weights(rows: PairedRows | Units, metric: Metric) -> np.ndarray:
    """The weight of each row; 1 unless the metric is weighted."""
    if not _is_weighted(metric):
        return np.ones(len(rows.group))
    return weights_of({} if rows.weight is None else {WEIGHT: rows.weight}, metric.kind)


def _extreme_difference(rows: PairedRows, a: int, b: int, metric: Metric, end: str) -> float:
    """The difference if all missing rows counted for or against B; NaN where their values have no bound."""
    own, other = (rows.best, rows.worst) if end == "best" else (rows.worst, rows.best)
    change = own[b] - other[a]
    return weighted_mean(rows, change, metric)


def _effect(sample: Sample, won: int, lost: int) -> float:
    if sample.binary:
        return won / lost if lost else math.nan
    with np.errstate(over="ignore"):
        spread = float(np.std(sample.change, ddof=1)) if len(sample.change) > 1 else 0.0
    least = _ROUNDING * float(np.abs(sample.change).max(initial=0.0))
    return sample.value / spread if least < spread < math.inf else math.nan


def _reason(counts: dict[str, int], sample: Sample, low: float) -> str | None:
    if counts["n"] == 0:
        return "no row was asked of both"
    if counts["n_used"] == 0:
        return "no row has a score on both sides"
    if math.isnan(sample.value):
        return WEIGHTLESS
    if not math.isnan(low):
        return None
    if sample.clusters == 1:
        return "one row has no interval" if len(sample.change) == 1 else "one cluster has no interval"
    if math.isinf(sample.error):
        return "the values lie too far apart for an interval"
    return "all rows differ alike, so nothing tells the spread"
