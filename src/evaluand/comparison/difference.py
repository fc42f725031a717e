"""One system against another on the same rows: what was measured of the difference, and the row that shows it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from evaluand.aggregation.groups import Units
from evaluand.aggregation.seen import Seen
from evaluand.comparison.pairing import ABSENT, PairedRows
from evaluand.comparison.power import detectable_difference
from evaluand.comparison.significance import TestResult, mid_mcnemar, sign_flip
from evaluand.comparison.verdict import AT_ALL_LOOKS
from evaluand.metrics.base.averaging import TOO_NEAR
from evaluand.metrics.base.metric import WEIGHT, WEIGHTLESS, Fill, Metric, weights_of
from evaluand.metrics.stats.intervals import (
    BOUND_CORRECTION,
    Arrays,
    Spread,
    cluster_sums,
    cluster_variance,
    normal_tail,
    paired_score,
    t_quantile,
    t_tail,
)
from evaluand.metrics.stats.least_mean import least_mean

POWER: Final = 0.8
NO_LOOKS: Final = "no interval of this metric holds at all looks of a run that a rule stopped"

AT_ONE_END: Final = 0.625
"""The share of an interval's errors that may fall on one end: ends that rest on approximations err somewhat more often
than half as often as the interval. By simulation, see docs/intervals.md."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured(ABC):
    """A difference that was measured: what tables, verdicts, gates and plans read.

    The interval leaves 0 out exactly where p is small enough: p is the larger of that at which the form's own interval
    ends at 0 and the mid-p value of exchanging both systems, and where the latter is too large, the nearer end is 0.

    Attributes:
        value_a, value_b: of both sides; NaN where undefined.
        value: their difference, B − A.
        clusters: the number of independent observations.
        span: the largest possible distance of two values; infinite where unknown.
        binary: all values are 0 or 1, and the metric knows no others.
        heaviest: the weight of the heaviest cluster that could come, where a rule could stop the run at any look: the
            interval then holds at all looks together, and there is no p. None for a single look.
    """

    value_a: float
    value_b: float
    value: float
    clusters: int
    span: float
    binary: bool = False
    heaviest: float | None = None

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the form's own interval."""

    @property
    @abstractmethod
    def fault(self) -> str | None:
        """Why the value is undefined, or its own interval; None where nothing speaks against one."""

    @abstractmethod
    def ends(self, confidence: float) -> tuple[float, float]:
        """The form's own interval, NaN where there is none."""

    @property
    @abstractmethod
    def p_of_ends(self) -> float:
        """The two-sided p value at which the form's own interval ends at 0; NaN where there is none."""

    @abstractmethod
    def extreme(self, rows: PairedRows, a: int, b: int, end: Fill) -> float:
        """The difference if all missing rows counted for or against B; NaN where their values have no bound."""

    @property
    def exchange(self) -> TestResult | None:
        """The test that exchanges the answers of both systems."""
        return None

    @property
    def outcomes(self) -> tuple[int, int, int] | None:
        """The rows won, tied and lost by B; None if rows have no values of their own."""
        return None

    @property
    def contributions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """What each row contributes to the value of A and of B, and its weight."""
        return None

    @property
    def effect(self) -> float:
        """The odds of winning a row that differs (binary), or the mean difference in standard deviations."""
        return math.nan

    def detectable(self, confidence: float) -> float:
        """The difference detected with a power of 80 % at the observed discordance or spread; NaN if there is none."""
        return math.nan

    def with_power(self, error: float, degrees: int, confidence: float) -> float:
        """The difference that a t test finds with a power of 80 %, and no less than half of the interval."""
        low, high = self.interval(confidence)
        if not (0 < error < math.inf and high - low < math.inf):
            return math.nan
        return max((float(t_quantile(confidence, np.array([degrees]))[0]) + _Z_POWER) * error, (high - low) / 2)

    @property
    def seen(self) -> Seen | None:
        """What bounds at all looks together follow from; None where there are none, or for a single look."""
        return None

    def bounds(self, level: float) -> tuple[float, float]:
        """One-sided bounds at a level such as 0.95, as ends of an interval that may err more at one of them."""
        return self.ends(1 - (1 - level) / AT_ONE_END)

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval of the difference, NaN where there is none."""
        if self.heaviest is not None:
            return (math.nan, math.nan) if self.seen is None else self.seen.bounds((1 + confidence) / 2)
        low, high = self.ends(confidence)
        if not low <= 0 <= high and self.exchange and self.exchange.mid_p > 1 - confidence + _ROUNDING:
            return min(low, 0.0), max(high, 0.0)
        return low, high

    @property
    def p(self) -> float:
        """The two-sided p value, NaN where there is no interval of a single look."""
        if self.heaviest is not None:
            return math.nan
        return self.exchange.mid_p if self.exchange and self.is_by_exchange else self.p_of_ends

    @property
    def is_by_exchange(self) -> bool:
        """Whether p is that of the exchange."""
        return self.exchange is not None and self.exchange.mid_p >= self.p_of_ends

    @property
    def association(self) -> tuple[float, float]:
        """The correlation of both sides and the share of variance that pairing saves; NaN where a side is constant."""
        if self.contributions is None:
            return math.nan, math.nan
        *sides, weight = self.contributions
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = (side - weight @ side / max(weight.sum(), _ROUNDING) for side in sides)
            of_a, of_b, of_both = (float(weight @ product) for product in (a * a, b * b, a * b))
        if not (0 < of_a < math.inf and 0 < of_b < math.inf):
            return math.nan, math.nan
        return max(-1.0, min(of_both / math.sqrt(of_a) / math.sqrt(of_b), 1.0)), 2 * of_both / (of_a + of_b)


def describe(measured: Measured, rows: PairedRows, a: int, b: int, confidence: float) -> dict[str, Any]:
    """The columns of `store.tables.PAIRS` that say what was measured of side `b` against side `a`; NaN where undefined.

    Args:
        rows: of one group, also those that one side lacks.
    """
    counts, of_one_look, exchange = count_pairs(rows, a, b), measured.heaviest is None, measured.exchange
    exchange = exchange if of_one_look else None
    low, high = measured.interval(confidence)
    own = measured.method if of_one_look else AT_ALL_LOOKS
    detectable = measured.detectable(confidence) if of_one_look else math.nan
    return counts | {
        "clusters": None if rows.cluster is None and measured.clusters == counts["n_used"] else measured.clusters,
        "binary": measured.binary,
        "value_a": measured.value_a,
        "value_b": measured.value_b,
        "difference": measured.value,
        "low": low,
        "high": high,
        "interval": own,
        "worst": measured.extreme(rows, a, b, "worst"),
        "best": measured.extreme(rows, a, b, "best"),
        "p": measured.p,
        "test": f"mid-p {exchange.name}" if exchange and measured.is_by_exchange else own,
        "p_permutation": exchange.mid_p if exchange and not math.isnan(measured.value) else math.nan,
        "permutation": exchange.method if exchange else "none",
        **dict(zip(("won", "tied", "lost"), measured.outcomes or (None, None, None), strict=True)),
        "effect": measured.effect,
        "detectable": detectable if detectable <= measured.span else math.nan,
        **dict(zip(("correlation", "variance_saved"), measured.association, strict=True)),
        "reason": _reason(counts, measured, low),
    }


def count_pairs(rows: PairedRows, a: int, b: int) -> dict[str, int]:
    """The counts among the columns of `store.tables.PAIRS`."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample(Measured):
    """The difference of means, from the rows that are used and have weight, and their independent clusters.

    Attributes:
        values: sides × rows.
        weight: of each row.
        state: sums of changes by cluster; each row is a cluster where rows are independent.
        independent: rows share no example and no cluster, and all have the same weight.
        direction: of the metric.
    """

    values: np.ndarray
    weight: np.ndarray
    state: Arrays
    independent: bool = False
    direction: str | None = None

    @classmethod
    def from_rows(cls, rows: PairedRows, a: int, b: int, heaviest: float | None = None) -> Sample:
        metric = rows.metric
        rows = rows.take(rows.known[a] & rows.known[b] & (row_weights(rows, metric) > 0))
        cluster = rows.example if rows.cluster is None else rows.cluster
        found = cls.of(rows.value[[a, b]], row_weights(rows, metric), cluster, metric.row_range)
        repeated = rows.cluster is not None or found.clusters < len(cluster)
        independent = not repeated and not is_weighted(metric)
        return replace(found, independent=independent, direction=metric.direction, heaviest=heaviest)

    @classmethod
    def of(cls, values: np.ndarray, weight: np.ndarray, cluster: np.ndarray, row_range: tuple[float, float]) -> Sample:
        """That of rows of clusters; values are sides × rows."""
        change = change_of_rows(*values)
        state = cluster_sums(change, weight, cluster, np.zeros(len(change), np.int64))
        value_a, value_b, value = (_mean(numbers, weight) for numbers in (*values, change))
        return cls(
            value_a=value_a,
            value_b=value_b,
            value=value,
            clusters=len(state["cluster_key"]),
            span=row_range[1] - row_range[0],
            binary=row_range in _OF_BINARY and bool(((values == 0) | (values == 1)).all()),
            values=values,
            weight=weight,
            state=state,
        )

    @cached_property
    def change(self) -> np.ndarray:
        """B − A of each row."""
        return change_of_rows(*self.values)

    @property
    def is_pairs(self) -> bool:
        """Whether rows are independent pairs of 0 and 1."""
        return self.independent and self.binary

    @cached_property
    def _up_and_down(self) -> tuple[int, int]:
        return int((self.change > 0).sum()), int((self.change < 0).sum())

    @property
    def outcomes(self) -> tuple[int, int, int]:
        won, lost = self._up_and_down[:: -1 if self.direction == "lower" else 1]
        return won, len(self.change) - won - lost, lost

    @property
    def contributions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.values[0], self.values[1], self.weight

    @property
    def method(self) -> str:
        return "paired score" if self.is_pairs else "student" if self.independent else "clustered student"

    @property
    def fault(self) -> str | None:
        if self.clusters == 0:
            return WEIGHTLESS
        if math.isnan(self.value):
            return "the differences are too large for a number"
        if self.is_pairs or not math.isnan(self.ends(0.5)[0]):
            return None
        if self.clusters == 1:
            return "one row has no interval" if len(self.change) == 1 else "one cluster has no interval"
        if math.isinf(self.error):
            return "the values lie too far apart for an interval"
        if math.isnan(self.error):
            return TOO_NEAR
        return "all rows differ alike, so nothing tells the spread"

    @property
    def reach(self) -> float:
        """The largest possible distance of two values, or the largest observed one where that is unknown."""
        return self.span if math.isfinite(self.span) else float(np.ptp(self.values)) if self.values.size else 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean difference, from the spread between clusters."""
        return float(np.sqrt(self.spread.variance[0]))

    @cached_property
    def spread(self) -> Spread:
        return cluster_variance(self.state, np.array([self.value]))

    def ends(self, confidence: float, correction: float = 0.0) -> tuple[float, float]:
        if self.is_pairs:
            return paired_score(*self._up_and_down, len(self.change), confidence, correction=correction)
        if self.clusters < 2 or math.isnan(self.value):
            return math.nan, math.nan
        if self.error == 0:  # as many unseen clusters as where each effective one counts as a row may differ as much
            most = abs(self.value) or self.reach or math.nan
            low, high = paired_score(0, 0, round(float(self.spread.effective[0])), confidence, correction=correction)
            return max(self.value + low * most, -self.span), min(self.value + high * most, self.span)
        half = float(t_quantile(confidence, np.array([self.clusters - 1]))[0]) * self.error
        if not half < math.inf:
            return math.nan, math.nan
        low, high = max(self.value - half, -self.span), min(self.value + half, self.span)
        if self.binary:  # few rows that differ do not show the variance
            of_pairs = paired_score(*self._effective_pairs, confidence, correction=correction)
            return min(low, of_pairs[0]), max(high, of_pairs[1])
        return low, high

    @cached_property
    def _effective_pairs(self) -> tuple[float, float, float]:
        """Of rows of 0 and 1 those that rise, that fall, and all: as many independent ones as vary as these do."""
        rise, fall = (float(self.weight @ (self.change == way)) / float(self.weight.sum()) for way in (1, -1))
        rows = (rise + fall - self.value**2) / self.error**2
        return rise * rows, fall * rows, rows

    @property
    def p_of_ends(self) -> float:
        if self.value == 0:
            return 1.0
        if math.isnan(self.ends(0.5)[0]):
            return math.nan
        if self.is_pairs:
            return 2 * normal_tail(abs(self.value) * len(self.change) / math.sqrt(sum(self._up_and_down)))
        if not self.error > 0:
            return 0.0
        p = t_tail(abs(self.value) / self.error, self.clusters - 1)
        if not self.binary:
            return p
        rise, fall, rows = self._effective_pairs
        return max(p, 2 * normal_tail(abs(self.value) * rows / math.sqrt(rise + fall)))

    @cached_property
    def exchange(self) -> TestResult | None:
        if self.is_pairs:
            return mid_mcnemar(*self._up_and_down)
        return None if math.isnan(self.value) else sign_flip(self.state["cluster_sum"])

    def extreme(self, rows: PairedRows, a: int, b: int, end: Fill) -> float:
        rows = rows.take(rows.asked[a] & rows.asked[b])
        own, other = (rows.best, rows.worst) if end == "best" else (rows.worst, rows.best)
        return weighted_mean(rows, own[b] - other[a], rows.metric)

    @property
    def effect(self) -> float:
        if self.binary:
            won, _, lost = self.outcomes
            return won / lost if lost else math.nan
        with np.errstate(over="ignore"):
            spread = float(np.std(self.change, ddof=1)) if len(self.change) > 1 else 0.0
        least = _ROUNDING * float(np.abs(self.change).max(initial=0.0))
        return self.value / spread if least < spread < math.inf else math.nan

    @property
    def seen(self) -> Seen | None:
        if self.heaviest is None or not math.isfinite(self.span):
            return None
        return Seen(self.state["cluster_sum"], self.state["cluster_weight"], (-self.span, self.span), self.heaviest)

    def bounds(self, level: float) -> tuple[float, float]:
        """One-sided bounds: those of the t interval, or wider ones where few rows differ and it is too narrow."""
        low, high = self.ends(2 * level - 1, correction=BOUND_CORRECTION)
        if self.is_pairs or math.isnan(low) or not math.isfinite(self.span):
            return low, high
        total, weight = self.state["cluster_sum"], self.state["cluster_weight"]
        least, most = least_mean(total, weight, -self.span, level), -least_mean(-total, weight, -self.span, level)
        return min(low, least), max(high, most)

    def detectable(self, confidence: float) -> float:
        rows = float(self.spread.effective[0]) if self.clusters else 0.0
        if 2.0 ** -min(rows, 60) > 1 - confidence:  # of as many equal rows no outcome has so small a p value
            return math.nan
        if self.is_pairs:
            differ = float(np.mean(self.change != 0)) if len(self.change) else 0.0
            return detectable_difference(differ, len(self.change), confidence, POWER)
        return self.with_power(self.error, self.clusters - 1, confidence)


_OF_BINARY: Final = ((0.0, 1.0), (-math.inf, math.inf))
"""The ranges of values that may all be 0 or 1; of others, one that is neither may not have been seen."""
_ROUNDING: Final = 1e-12
_ULPS: Final = 64
_Z_POWER: Final = NormalDist().inv_cdf(POWER)


def weighted_mean(rows: PairedRows, values: np.ndarray, metric: Metric) -> float:
    """The mean of values of rows, weighted if the metric is; NaN without rows or weight."""
    return _mean(values, row_weights(rows, metric))


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    return float(weight @ values / total) if (total := weight.sum()) > 0 else math.nan


def is_weighted(metric: Metric) -> bool:
    """Whether rows count by their weights."""
    return bool(getattr(metric, "weighted", False))


def row_weights(rows: PairedRows | Units, metric: Metric) -> np.ndarray:
    """The weight of each row; 1 unless the metric is weighted."""
    if not is_weighted(metric):
        return np.ones(len(rows.group))
    return weights_of({} if rows.weight is None else {WEIGHT: rows.weight}, metric.kind)


def _reason(counts: dict[str, int], measured: Measured, low: float) -> str | None:
    if counts["n"] == 0:
        return "no row was asked of both"
    if counts["n_used"] == 0:
        return "no row has a score on both sides"
    if math.isnan(measured.value) or measured.heaviest is None:
        return measured.fault if math.isnan(low) else None
    if math.isnan(low):
        return NO_LOOKS
    return "no p value: the interval holds at all looks of a run that a rule stopped"
