"""The difference of one value of two systems on the same examples, from both values without each block of examples.

The interval lies between two, end by end. The first is Student's, with the jackknife's variance of the difference; its
degrees of freedom follow from the kurtosis of what the blocks contribute, since few rare rows, such as the positive
ones, say as little about a variance as few rows do. Near an end of the range of values (an area under the curve of
.98) it is too narrow. The second combines the score intervals of both values with the correlation of what the blocks
contribute to each; for values that vary together it is too wide. The squares of their distances are averaged, and the
second counts by 1 less the correlation. Coverage and power: docs/intervals.md.

Where rows come from parts such as classes, the degrees are at most those of Welch: a variance of three positive rows
has two, whatever the number of others. And where few rows disagree, as for an area near 1, the variance of each value
is drawn towards the expected one in its score interval.

Estimates of values that cannot be below 0, such as largest differences of groups, are above it by chance where the true
value is 0, and the difference from another system is then biased. So each end of the interval allows for a value that
is all chance, by the more the less clearly the value is off its edge. Ratios are below 1 by chance, and their intervals
are on logarithms.

Sources: J. Shao & D. Tu, The Jackknife and Bootstrap (1995), section 2.3; F. Satterthwaite, "An approximate
distribution of estimates of variance components" (Biometrics Bulletin 2, 1946), for the degrees of freedom; B. Welch,
"The generalization of 'Student's' problem" (Biometrika 34, 1947), for those of several parts; G. Zou,
"Toward using confidence intervals to compare correlations" (Psychological Methods 12, 2007), for the combination.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

import numpy as np

from evaluand.metrics.stats.intervals import correlation_of, paired_score, score_interval, t_quantile, t_tail

Ends = Callable[[float], tuple[float, float]]
"""The ends of the interval of a value, by the quantile of Student's distribution."""


@dataclass(frozen=True, eq=False)
class PairedChange:
    """The change from value a to value b of a metric.

    Attributes:
        a, b: the values over the same examples; NaN where undefined.
        without_a, without_b: the values without each block of examples; the same blocks, in the same order.
        range: the lowest and the highest value.
        rests_on: the number of rows that the values depend on.
        edge: the value that both are off by chance alone where the true value is there; None for unbiased values.
        largest_of: the number of distances of which each value is the largest; of k, chance reaches √(2 ln k) errors.
        expected: by value, the number of rows of which a proportion has the expected variance; None if unknown.
        parts: the part of the rows that each block is drawn from, at least -1, see `LeftOut`; None if it is only one.
        weight: of each block, where rows have weights.

    Example:
        >>> a, b = np.array([0.0, 1, 0, 1, 0, 0, 1, 0]), np.array([1.0, 1, 1, 1, 0, 1, 1, 1])
        >>> def without(x): return (x.sum() - x) / 7
        >>> change = PairedChange(0.375, 0.875, without(a), without(b), (-math.inf, math.inf), 8)
        >>> change.value, [round(float(end), 2) for end in change.interval(0.95)], round(change.p, 3)
        (0.5, [0.05, 0.95], 0.033)
    """

    a: float
    b: float
    without_a: np.ndarray
    without_b: np.ndarray
    range: tuple[float, float]
    rests_on: float
    edge: float | None = None
    largest_of: int = 1
    expected: tuple[float, float] | None = None
    parts: np.ndarray | None = None
    weight: np.ndarray | None = None

    @property
    def value(self) -> float:
        """b − a, 0 where the two differ by rounding alone."""
        change = self.b - self.a
        return 0.0 if abs(change) <= _ROUNDING * max(abs(self.a), abs(self.b)) else change

    @property
    def has_interval(self) -> bool:
        low, high = self.interval(0.5)
        return math.isfinite(low) and math.isfinite(high)

    @cached_property
    def error(self) -> float:
        """The standard error of the change; 0 where no block changes it, NaN where leaving one out leaves no value."""
        n = len(self.without_a)
        if n < 2 or not math.isfinite(self.value):
            return math.nan
        error = self._error_of(self._off(self.without_b - self.without_a))
        scale = max(abs(self.a), abs(self.b))
        return 0.0 if error <= _ROUNDING * scale * math.sqrt(n) else error if error < math.inf else math.nan

    @cached_property
    def degrees(self) -> int:
        """Student's degrees of freedom: those of a variance of numbers with the kurtosis of the blocks' changes.

        They are no more than those of the sum of the variances of all parts.
        """
        off = self._off(self.without_b - self.without_a)
        square = np.square(off / max(float(np.abs(off).max()), _TINY))
        if not square.any():
            return 1
        weight = np.ones(len(off)) if self.weight is None else self.weight
        total = float((square / weight).sum())
        varies = float(np.square(square / weight - weight * (total / weight.sum())).sum())
        by_kurtosis = 2 * total**2 / varies if varies > 0 else math.inf
        effective = float(weight.sum() ** 2 / (weight @ weight))
        return int(max(min(by_kurtosis, effective - 1, self._degrees_of_parts(square)), 1))

    def _degrees_of_parts(self, square: np.ndarray) -> float:
        if self.parts is None:
            return math.inf
        variance, m = np.bincount(self.parts + 1, square), np.bincount(self.parts + 1)
        return float(variance.sum() ** 2 / (np.square(variance) / np.maximum(m - 1, 1)).sum())

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval of the change, NaN where undefined."""
        if math.isnan(self.error):
            return math.nan, math.nan
        if self.error == 0:
            return self._interval_of_no_change(confidence)
        low, high = self._ends(float(t_quantile(confidence, np.array([self.degrees]))[0]))
        width = self.range[1] - self.range[0]
        return max(low, -width), min(high, width)

    @cached_property
    def p(self) -> float:
        """The two-sided p value of no change, at which the interval ends at 0; NaN where there is no interval."""
        if math.isnan(self.error) or not self.has_interval:
            return math.nan
        if self.value == 0 or self.error == 0:
            return 1.0
        return t_tail(_root(lambda quantile: min(np.sign(self.value) * np.array(self._ends(quantile)))), self.degrees)

    def _error_of(self, off: np.ndarray) -> float:
        """The jackknife's standard error, from what the values without each block are off their mean by.

        Where blocks have weights, it is at least what it would be if these had nothing to do with what blocks add: few
        heavy ones may add alike by chance.
        """
        largest = float(np.abs(off).max(initial=0.0))
        if not 0 < largest < math.inf:
            return 0.0 if largest == 0 else math.nan
        square = np.square(off / largest)  # which does not underflow
        total = float(square.sum())
        if self.weight is not None:
            total = max(total, float((square / self.weight).sum() * np.square(self.weight).sum() / self.weight.sum()))
        return largest * math.sqrt((len(off) - 1) / len(off) * total)

    def _off(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values - values.mean())

    def _interval_of_no_change(self, confidence: float) -> tuple[float, float]:
        """Where no example changes the difference: as many may as a score interval allows, each by the most it could.

        The most is the distance of the two examples of which one adds most and the other takes most from a value.
        """
        if self.value != 0:
            return math.nan, math.nan
        n, width = len(self.without_a), self.range[1] - self.range[0]
        most = (n - 1) * max(float(np.ptp(self.without_a)), float(np.ptp(self.without_b)))
        most = min(most if most > _ROUNDING * max(abs(self.a), _TINY) * n else width, width)
        low, high = paired_score(0, 0, max(round(self.rests_on), 1), confidence)
        return (low * most, high * most) if math.isfinite(most) else (math.nan, math.nan)

    def _ends(self, quantile: float) -> tuple[float, float]:
        """The ends of the interval at a quantile of Student's distribution, not clipped."""
        half = quantile * self.error
        if not math.isfinite(self.range[1] - self.range[0]):
            by_a, by_b = self._chance(quantile)
            return self.value - half + min(-by_a, 0) + min(by_b, 0), self.value + half + max(-by_a, 0) + max(by_b, 0)
        expected = (None, None) if self.expected is None else self.expected
        (low_a, high_a), (low_b, high_b) = (
            self._score_interval(value, error, rows, quantile)
            for value, error, rows in zip((self.a, self.b), self._errors, expected, strict=True)
        )
        together = self._together
        both = _combine(self.b - low_b, high_a - self.a, together), _combine(high_b - self.b, self.a - low_a, together)
        part = 1 - abs(together)
        below, above = (math.sqrt((1 - part) * half**2 + part * other**2) for other in both)
        return self.value - below, self.value + above

    @cached_property
    def _errors(self) -> tuple[float, float]:
        """The standard errors of both values."""
        of_a, of_b = (self._error_of(self._off(without)) for without in (self.without_a, self.without_b))
        return of_a, of_b

    @cached_property
    def _together(self) -> float:
        """The correlation of what the blocks contribute to the two values."""
        a, b = self._off(self.without_a), self._off(self.without_b)
        return float(correlation_of(np.array([[a @ a, a @ b], [a @ b, b @ b]]))[0, 1])

    def _chance(self, quantile: float) -> tuple[float, float]:
        """How far both values move towards their edge if they are off it by chance."""
        if self.edge is None:
            return 0.0, 0.0
        by_chance = quantile + math.sqrt(2 * math.log(max(self.largest_of, 1)))
        by_a, by_b = (
            (self.edge - value) * max(1 - reached / by_chance, 0.0)
            for value, reached in zip((self.a, self.b), self._reach, strict=True)
        )
        return by_a, by_b

    @cached_property
    def _reach(self) -> tuple[float, float]:
        """The quantiles at which the intervals of both values reach their edge."""
        edge = 0.0 if self.edge is None else self.edge
        values = zip((self.a, self.b), self._errors, strict=True)
        of_a, of_b = (abs(value - edge) / max(error, _TINY) for value, error in values)
        return of_a, of_b

    def _score_interval(
        self, value: float, error: float, expected: float | None, quantile: float
    ) -> tuple[float, float]:
        least, most = self.range
        share, variance = (value - least) / (most - least), (error / (most - least)) ** 2
        rows = share * (1 - share) / variance if variance > _ROUNDING**2 else self.rests_on
        if expected is not None:
            near = (share * expected + 0.5) / (expected + 1)
            found = share * (1 - share) * self.rests_on
            steady = (_PRIOR * near * (1 - near) / expected + found * variance) / (_PRIOR + found)
            rows = near * (1 - near) / steady
        low, high = score_interval(np.array(share), np.array(max(rows, _FEWEST)), quantile)
        return least + (most - least) * float(low), least + (most - least) * float(high)


@dataclass(frozen=True, eq=False)
class ChangeOfEnds(PairedChange):
    """The change of a value whose interval does not follow from its jackknife.

    Both intervals are combined with the correlation of what the blocks contribute.

    Attributes:
        ends_a, ends_b: the ends of both intervals.
    """

    ends_a: Ends = field(kw_only=True)
    ends_b: Ends = field(kw_only=True)

    @cached_property
    def error(self) -> float:
        """Half the width of the interval at a quantile of 1; 0 where no block changes the change."""
        if len(self.without_a) < 2 or not math.isfinite(self.value):
            return math.nan
        if np.array_equal(self.without_a, self.without_b) and self.a == self.b:
            return 0.0
        low, high = self._ends(1.0)
        return (high - low) / 2

    def _ends(self, quantile: float) -> tuple[float, float]:
        (low_a, high_a), (low_b, high_b) = self.ends_a(quantile), self.ends_b(quantile)
        by_a, by_b = self._chance(quantile)
        a, b, together = self.a + by_a, self.b + by_b, self._together
        return (
            b - self.a - _combine(b - low_b, high_a - self.a, together),
            self.b - a + _combine(high_b - self.b, a - low_a, together),
        )

    @cached_property
    def _reach(self) -> tuple[float, float]:
        edge = 0.0 if self.edge is None else self.edge
        of_a, of_b = (_root(partial(_above, ends, edge)) for ends in (self.ends_a, self.ends_b))
        return of_a, of_b


@dataclass(frozen=True, eq=False)
class ChangeOfRatios(ChangeOfEnds):
    """The change of the smallest ratio of two groups, above 0 and up to 1, with intervals by `ratio_ends`.

    By chance the smallest of the 2k ratios of k pairs of equal groups lies √(2 ln 2k) errors below 1. So an end allows
    for a ratio that is truly 1 where the observed one is no farther from it, and by less the farther it is, as far as
    chance reaches with the quantile of the interval.
    """

    def _ends(self, quantile: float) -> tuple[float, float]:
        (low_a, high_a), (low_b, high_b) = self.ends_a(quantile), self.ends_b(quantile)
        by_a, by_b = self._chance(quantile)
        below = by_a + _combine(self.b - low_b, high_a - self.a, self._together)
        above = by_b + _combine(high_b - self.b, self.a - low_a, self._together)
        return max(self.value - below, low_b - 1), min(self.value + above, 1 - low_a)

    def _chance(self, quantile: float) -> tuple[float, float]:
        by_chance = quantile + math.sqrt(2 * math.log(2 * self.largest_of))
        by_a, by_b = (
            (1 - value) * min(max((by_chance - reached) / quantile, 0.0), 1.0)
            for value, reached in zip((self.a, self.b), self._reach, strict=True)
        )
        return by_a, by_b

    @cached_property
    def _reach(self) -> tuple[float, float]:
        of_a, of_b = (
            -math.log(value) / max(math.log(ends(1.0)[1] / value), _TINY)
            for value, ends in ((self.a, self.ends_a), (self.b, self.ends_b))
        )
        return of_a, of_b


def ratio_ends(value: float, without: np.ndarray, quantile: float) -> tuple[float, float]:
    """The ends of the interval of a ratio above 0, on logarithms, from the ratios without each block; not clipped."""
    n, off = len(without), without - without.mean()
    by = math.exp(min(quantile * math.sqrt((n - 1) / n * float(off @ off)) / value, _LARGEST_LOGARITHM))
    return value / by, value * by


def _above(ends: Ends, edge: float, quantile: float) -> float:
    return ends(quantile)[0] - edge


def _combine(own: float, other: float, together: float) -> float:
    """The distance of an end of a difference, by those of the ends of two values with this correlation."""
    return math.sqrt(max(own**2 + other**2 - 2 * together * own * other, 0.0))


_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)
_TINY: Final = float(np.finfo(np.float64).tiny)
_FEWEST: Final = 1.0
_PRIOR: Final = 0.05
"""The weight of the expected variance, beside rows that disagree: it matters where nearly none does. By simulation."""
_FAR: Final = 1e6
_LARGEST_LOGARITHM: Final = 300.0


def _root(falling: Callable[[float], float]) -> float:
    """Where a falling function is 0, above 0."""
    low, high = 0.0, 1.0
    while falling(high) > 0 and high < _FAR:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high) and high - low > _ROUNDING * high:
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low
