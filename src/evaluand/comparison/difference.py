"""One system against another on the same rows: the difference with its interval, tests, counts and power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from evaluand.comparison.pairing import ABSENT, PairedRows
from evaluand.comparison.significance import mcnemar, sign_flip
from evaluand.metrics.base.metric import WEIGHT, WEIGHTLESS, Metric, weights_of
from evaluand.metrics.stats.intervals import (
    Arrays,
    Spread,
    bootstrap,
    cluster_sums,
    cluster_variance,
    least_mean,
    normal_quantile,
    paired_score,
    t_quantile,
)

POWER: Final = 0.8
REPLICATES: Final = 2000
BOOTSTRAPPED_CLUSTERS: Final = 20_000
"""With more clusters the bootstrap takes long and says what the t interval says."""

PAIRED_SCORE: Final = "paired score"
STUDENT: Final = "student"
CLUSTERED: Final = "clustered student"


@dataclass(frozen=True)
class Difference:
    """B against A; numbers are NaN where undefined.

    Attributes:
        n: rows asked of both.
        n_used: those the values are taken over.
        n_a_missing: rows of `n` without a score in A: failed or abstained.
        n_b_missing: the same in B.
        n_skipped: rows both have that one of them was never asked; not in `n`.
        n_only_a: rows without a partner in B.
        n_only_b: rows without a partner in A.
        clusters: how many independent observations the interval rests on, where they are not the rows.
        binary: all values are 0 or 1.
        value_a: of the rows used.
        value_b: of the rows used.
        difference: B − A.
        low: lower end of its interval.
        high: upper end of its interval.
        interval: the interval's method.
        bootstrap_low: lower end of the bootstrap interval.
        bootstrap_high: upper end of the bootstrap interval.
        worst: the difference if every missing row spoke against B.
        best: the difference if every missing row spoke for B.
        p: the two-sided p value: McNemar's where rows are independent and binary, else that of the permutation test.
        test: its name.
        p_permutation: of the paired permutation test.
        permutation: how that was found.
        won: rows in which B is better; rows without weight are neither won nor tied nor lost.
        tied: rows in which they are equal.
        lost: rows in which A is better.
        effect: the odds of winning a row that differs (binary), or the mean difference in standard deviations.
        detectable: the smallest true difference that so many rows show in 80 of 100 cases.
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
    won: int
    tied: int
    lost: int
    effect: float
    detectable: float
    reason: str | None


def difference(rows: PairedRows, a: int, b: int, metric: Metric, confidence: float) -> Difference:
    """Side `b` against side `a`, over the rows of one group.

    Args:
        rows: side by side, see `pairing.paired`.
        metric: that the rows were taken for.
        confidence: of the intervals.
    """
    asked = rows.asked[a] & rows.asked[b]
    used = rows.known[a] & rows.known[b]
    both = (rows.status[a] != ABSENT) & (rows.status[b] != ABSENT)
    counts = {
        "n": int(asked.sum()),
        "n_used": int(used.sum()),
        "n_a_missing": int((asked & rows.unscored[a]).sum()),
        "n_b_missing": int((asked & rows.unscored[b]).sum()),
        "n_skipped": int((both & ~asked).sum()),
        "n_only_a": int(only(rows, a, b).sum()),
        "n_only_b": int(only(rows, b, a).sum()),
    }
    sample = Sample.of(rows.of(used), a, b, metric)
    low, high = sample.interval(confidence)
    boot_low, boot_high = sample.bootstrap(confidence)
    permuted = sign_flip(sample.state["cluster_sum"])
    exact = sample.independent and sample.binary
    wins = 1 if metric.direction != "lower" else -1
    won, lost = int((sample.apart * wins > 0).sum()), int((sample.apart * wins < 0).sum())
    empty = counts["n_used"] == 0 or math.isnan(sample.value)
    return Difference(
        **counts,
        clusters=None if rows.cluster is None and sample.clusters == counts["n_used"] else sample.clusters,
        binary=sample.binary,
        value_a=mean_of(rows.of(used), rows.value[a, used], metric),
        value_b=mean_of(rows.of(used), rows.value[b, used], metric),
        difference=sample.value,
        low=low,
        high=high,
        interval=sample.method,
        bootstrap_low=boot_low,
        bootstrap_high=boot_high,
        worst=_bound(rows.of(asked), a, b, metric, "worst"),
        best=_bound(rows.of(asked), a, b, metric, "best"),
        p=math.nan if empty else mcnemar(won, lost) if exact else permuted.p,
        test="exact McNemar" if exact else "permutation",
        p_permutation=math.nan if empty else permuted.p,
        permutation=permuted.method,
        won=won,
        tied=len(sample.apart) - won - lost,
        lost=lost,
        effect=_effect(sample, won, lost),
        detectable=sample.detectable(confidence),
        reason=_reason(counts, sample, low),
    )


def only(rows: PairedRows, a: int, b: int) -> np.ndarray:
    """The rows of side `a` without a partner in `b`."""
    return np.asarray((rows.status[a] != ABSENT) & (rows.status[b] == ABSENT))


def mean_of(rows: PairedRows, values: np.ndarray, metric: Metric) -> float:
    """The mean of some values of rows, weighted where the metric is; NaN without rows or weight."""
    weight = _weights(rows, metric)
    total = weight.sum()
    return float(weight @ values / total) if total > 0 else math.nan


def bound(rows: PairedRows, a: int, b: int, metric: Metric, level: float) -> tuple[float, float]:
    """One-sided bounds of B − A: each lies on the wrong side of the true difference at most as often as `level` says.

    Of values without a known range that holds about: no sample tells how far one that was not seen could lie off.

    Returns:
        The lower and the upper bound, NaN where undefined.
    """
    return Sample.of(rows.of(rows.known[a] & rows.known[b]), a, b, metric).bounds(level)


@dataclass(frozen=True)
class Sample:
    """The differences of the rows that are used and have weight, and what they are independent by.

    Attributes:
        apart: B − A of each row.
        weight: of each row.
        state: the table of clusters; each row its own where rows are independent.
        independent: rows share no example and no cluster, and count alike.
        binary: all values are 0 or 1.
        span: how far two values can lie apart; infinite where unknown.
        observed: how far the values of all rows lie apart.
        value: the weighted mean of `apart`.
    """

    apart: np.ndarray
    weight: np.ndarray
    state: Arrays
    independent: bool
    binary: bool
    span: float
    observed: float
    value: float

    @classmethod
    def of(cls, rows: PairedRows, a: int, b: int, metric: Metric) -> Sample:
        rows = rows.of(_weights(rows, metric) > 0)
        weight = _weights(rows, metric)
        values = rows.value[[a, b]]
        apart = values[1] - values[0]
        cluster = rows.example if rows.cluster is None else rows.cluster
        repeated = rows.cluster is not None or len(np.unique(cluster)) < len(cluster)
        state = cluster_sums(apart, weight, cluster, np.zeros(len(apart), np.int64))
        low, high = metric.row_range
        total = weight.sum()
        return cls(
            apart=apart,
            weight=weight,
            state=state,
            independent=not repeated and not _is_weighted(metric),
            binary=bool(((values == 0) | (values == 1)).all()),
            span=high - low,
            observed=float(np.ptp(values)) if values.size else 0.0,
            value=float(weight @ apart / total) if total > 0 else math.nan,
        )

    @property
    def clusters(self) -> int:
        return len(self.state["cluster_key"])

    @property
    def method(self) -> str:
        return PAIRED_SCORE if self.independent and self.binary else STUDENT if self.independent else CLUSTERED

    @property
    def reach(self) -> float:
        """How far two values can lie apart, or else do."""
        return self.span if math.isfinite(self.span) else self.observed

    @property
    def error(self) -> float:
        """The standard error of the mean difference, by the spread between clusters."""
        return float(np.sqrt(self.spread.variance[0]))

    @property
    def spread(self) -> Spread:
        return cluster_variance(self.state, np.array([self.value]))

    def interval(self, confidence: float, correction: float = 0.0) -> tuple[float, float]:
        """The interval of the difference; NaN where the rows tell of no spread."""
        if self.independent and self.binary:
            won, lost = int((self.apart > 0).sum()), int((self.apart < 0).sum())
            return paired_score(won, lost, len(self.apart), confidence, correction=correction)
        if self.clusters < 2 or math.isnan(self.value):
            return math.nan, math.nan
        if not self.apart.any():  # an effective cluster counts as one row: nothing else tells how far they agree
            if not self.reach:
                return math.nan, math.nan
            low, high = paired_score(0, 0, round(float(self.spread.effective[0])), confidence, correction=correction)
            return low * self.reach, high * self.reach
        half = float(t_quantile(confidence, np.array([self.clusters - 1]))[0]) * self.error
        if not 0 < half < math.inf:
            return math.nan, math.nan
        return max(self.value - half, -self.span), min(self.value + half, self.span)

    def bounds(self, level: float) -> tuple[float, float]:
        """One-sided bounds: those of the t interval, which of few rows that differ is too narrow, or safer ones."""
        low, high = self.interval(2 * level - 1, correction=0.5)
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
        """The difference shown with a power of 80 %, at the discordance or spread observed; NaN where there is none."""
        z = normal_quantile(confidence)
        if 2.0 ** (1 - min(self.clusters, 60)) > 1 - confidence:  # no outcome at all would have so small a p value
            return math.nan
        if self.independent and self.binary:
            return _detectable_share(float(np.mean(self.apart != 0)) if len(self.apart) else 0, len(self.apart), z)
        if self.clusters < 2:
            return math.nan
        t = float(t_quantile(confidence, np.array([self.clusters - 1]))[0])
        found = (t + _Z_POWER) * self.error
        return found if 0 < found < math.inf else math.nan


_ROUNDING: Final = 1e-12
_Z_POWER: Final = NormalDist().inv_cdf(POWER)


def _detectable_share(discordance: float, n: int, z: float) -> float:
    """The difference of proportions that McNemar's test shows with the power asked for.

    Source: R. J. Connor, "Sample size for testing differences in proportions for the paired-sample design" (Biometrics
    43, 1987), solved for the difference; NaN where not even all discordant rows going one way would do.
    """

    def lacking(share: float) -> float:
        return share * math.sqrt(n) - z * math.sqrt(discordance) - _Z_POWER * math.sqrt(discordance - share * share)

    low, high = 0.0, discordance
    if n == 0 or discordance == 0 or lacking(high) < 0:
        return math.nan
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if lacking(middle) < 0 else (low, middle)
    return high


def _is_weighted(metric: Metric) -> bool:
    return bool(getattr(metric, "weighted", False))


def _weights(rows: PairedRows, metric: Metric) -> np.ndarray:
    if not _is_weighted(metric):
        return np.ones(len(rows.group))
    return weights_of({} if rows.weight is None else {WEIGHT: rows.weight}, metric.kind)


def _bound(rows: PairedRows, a: int, b: int, metric: Metric, end: str) -> float:
    """The difference with everything missing put in for or against B; NaN where that cannot be told."""
    own, other = (rows.best, rows.worst) if end == "best" else (rows.worst, rows.best)
    apart = own[b] - other[a]
    return mean_of(rows, apart, metric)


def _effect(sample: Sample, won: int, lost: int) -> float:
    if sample.binary:
        return won / lost if lost else math.nan
    with np.errstate(over="ignore"):
        spread = float(np.std(sample.apart, ddof=1)) if len(sample.apart) > 1 else 0.0
    least = _ROUNDING * float(np.abs(sample.apart).max(initial=0.0))
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
        return "one row has no interval" if len(sample.apart) == 1 else "one cluster has no interval"
    if math.isinf(sample.error):
        return "the values lie too far apart for an interval"
    return "all rows differ alike, so nothing tells the spread"
