"""Tests of whether two samples come from one distribution, and how far they are from each other.

Rows are compared by *units*: rows that belong together, such as the rows of a cluster, change sides together. A unit
that is in both samples, such as an example that two systems answered, is a pair, which changes sides as a whole. For
many rows without pairs, one per unit, distributions are asymptotic; else sides are exchanged at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.stats.intervals import Spread, f_tail, interval_within, normal_tail, random_bits

MANY_ROWS: Final = 5_000
"""Above this number independent rows have asymptotic p values."""

DRAWS: Final = 10_000
FEWEST_DRAWS: Final = 1_000
_CELLS: Final = 100_000_000
_AT_ONCE: Final = 1 << 22
_ENOUGH_HITS: Final = 100
_FIRST_DRAWS: Final = 250
_ROUNDING: Final = 1e-9


class Sides:
    """Which of two samples each row is in, and which rows belong together.

    Args:
        second: whether a row is in the second sample.
        unit: the unit of each row, a number from 0.

    Example:
        >>> Sides(np.array([False, False, True]), np.array([0, 1, 2])).is_independent
        True
    """

    def __init__(self, second: np.ndarray, unit: np.ndarray) -> None:
        self.second, self.unit = second.astype(np.bool_), unit
        self.n_units = int(unit.max(initial=-1)) + 1
        rows = np.bincount(unit, minlength=self.n_units)
        seconds = np.bincount(unit[self.second], minlength=self.n_units)
        self.paired = (seconds > 0) & (seconds < rows)
        self.is_second = seconds > 0
        self.is_independent = bool(not self.paired.any() and (rows <= 1).all())

    def __len__(self) -> int:
        return len(self.second)

    @property
    def n(self) -> tuple[int, int]:
        """The rows of the first and of the second sample."""
        later = int(self.second.sum())
        return len(self) - later, later

    @cached_property
    def units(self) -> tuple[int, int]:
        """The units of the first and of the second sample."""
        here = np.bincount(self.unit, minlength=self.n_units) > 0
        return int((here & (~self.is_second | self.paired)).sum()), int((here & self.is_second).sum())

    def take(self, rows: np.ndarray) -> Sides:
        """Those of some rows."""
        return Sides(self.second[rows], np.unique(self.unit[rows], return_inverse=True)[1])

    @property
    def draws(self) -> int:
        """How often sides are exchanged, at most."""
        return min(DRAWS, max(FEWEST_DRAWS, _CELLS // max(len(self), 1)))

    def exchanged(self) -> Iterator[np.ndarray]:
        """Exchanges at random, some at a time, as draws × rows: whether a row is then in the second sample.

        Pairs change sides with a chance of one half; of the other units, as many as before are in the second sample.
        """
        single = np.flatnonzero(~self.paired)
        later = int(self.is_second[single].sum())
        first = 0
        while first < self.draws:
            many = min(_FIRST_DRAWS + first, max(1, _AT_ONCE // max(len(self), 1)), self.draws - first)
            places = np.arange(first * self.n_units, (first + many) * self.n_units, dtype=np.uint64)
            bits = random_bits(places, 0).reshape(many, self.n_units)
            flip = np.zeros((many, self.n_units), np.bool_)
            flip[:, self.paired] = bits[:, self.paired] >> np.uint64(63) == 0
            if 0 < later < len(single):
                chosen = np.argpartition(bits[:, single], later - 1, axis=1)[:, :later]
                side = np.zeros((many, len(single)), np.bool_)
                np.put_along_axis(side, chosen, True, axis=1)
                flip[:, single] = side != self.is_second[single]
            yield self.second != flip[:, self.unit]
            first += many


class TwoSampleTest(NamedTuple):
    """A statistic, its p value and the method that gave it."""

    statistic: float
    p: float
    method: str


def kolmogorov_smirnov(values: np.ndarray, sides: Sides) -> TwoSampleTest:
    """The largest difference between the distribution functions of numbers.

    Ties make the asymptotic p value larger than it is, never smaller.
    Source: N. Smirnov (1939); the correction for few rows is that of M. Stephens, "Use of the Kolmogorov-Smirnov,
    Cramér-von Mises and related statistics without extensive tables" (Journal of the Royal Statistical Society B 32,
    1970).

    Example:
        >>> sides = Sides(np.arange(8) >= 4, np.arange(8))
        >>> kolmogorov_smirnov(np.arange(8.0), sides).statistic
        1.0
    """
    order = np.argsort(values, kind="stable")
    last = np.append(np.diff(values[order]) != 0, True)
    behind = np.flatnonzero(last) + 1

    def statistic(second: np.ndarray) -> np.ndarray:
        later = np.cumsum(second[:, order], axis=1, dtype=np.int32)[:, last]
        n = second.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.abs(later / n - (behind - later) / (len(values) - n)).max(axis=1))

    observed = float(statistic(sides.second[None])[0])
    if sides.is_independent and len(sides) > MANY_ROWS:
        n, m = sides.n
        root = math.sqrt(n * m / (n + m))
        return TwoSampleTest(observed, _kolmogorov_tail((root + 0.12 + 0.11 / root) * observed), "asymptotic")
    return _by_exchange(observed, statistic, sides)


def chi_squared(code: np.ndarray, sides: Sides) -> TwoSampleTest:
    """Pearson's test of homogeneity of categories, which are numbers from 0.

    Example:
        >>> sides = Sides(np.arange(8) >= 4, np.arange(8))
        >>> chi_squared(np.repeat([0, 1], 4), sides).statistic
        8.0
    """
    one_hot = np.eye(int(code.max(initial=0)) + 1, dtype=np.float32)[code]
    total = one_hot.sum(axis=0, dtype=np.float64)
    one_hot, total = one_hot[:, total > 0], total[total > 0]

    def statistic(second: np.ndarray) -> np.ndarray:
        later = (second.astype(np.float32) @ one_hot).astype(np.float64)
        n = second.sum(axis=1, keepdims=True)
        expected = total * n / len(code)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((np.square(later - expected) / (expected * (1 - n / len(code)))).sum(axis=1))

    observed = float(statistic(sides.second[None])[0])
    fewest = total.min() * min(sides.n) / len(code)
    if sides.is_independent and len(sides) > MANY_ROWS and fewest >= _EXPECTED:
        return TwoSampleTest(observed, chi_squared_tail(observed, len(total) - 1), "asymptotic")
    return _by_exchange(observed, statistic, sides)


_EXPECTED: Final = 5


def rank_sum(values: np.ndarray, sides: Sides) -> TwoSampleTest:
    """The one-sided test of whether values of the second sample are larger: the chance that they are, half for ties.

    Source: H. Mann & D. Whitney, "On a test of whether one of two random variables is stochastically larger than the
    other" (Annals of Mathematical Statistics 18, 1947).

    Example:
        >>> sides = Sides(np.arange(8) >= 4, np.arange(8))
        >>> rank_sum(np.arange(8.0), sides).statistic
        1.0
    """
    rank = _middle_ranks(values)
    statistic = partial(_share_larger, rank)
    observed = float(statistic(sides.second[None])[0])
    n, m = sides.n
    spread = float(rank.std(ddof=1)) * math.sqrt((n + m) / (n * m) / (n + m) ** 2) if n and m else 0.0
    if sides.is_independent and len(sides) > MANY_ROWS and spread:
        return TwoSampleTest(observed, normal_tail((observed - 0.5) / spread), "asymptotic")
    return _by_exchange(observed, statistic, sides)


def changed_ranks(values: np.ndarray, sides: Sides) -> TwoSampleTest:
    """The two-sided test of whether the ranks of the second sample are others, by exchange, which keeps pairs.

    The statistic is the difference between the mean ranks, from -1 to 1: positive if values of the second are larger.

    Example:
        >>> sides = Sides(np.arange(8) >= 4, np.tile(np.arange(4), 2))
        >>> changed_ranks(np.arange(8.0), sides).statistic
        1.0
    """
    rank = _middle_ranks(values)

    def statistic(second: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs(2 * _share_larger(rank, second) - 1))

    found = _by_exchange(float(statistic(sides.second[None])[0]), statistic, sides)
    return found._replace(statistic=math.copysign(found.statistic, chance_larger(values, sides).value - 0.5))


def _share_larger(rank: np.ndarray, second: np.ndarray) -> np.ndarray:
    """How often a value of the second sample is larger than one of the first, half for ties; by draw."""
    n = second.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((second @ rank - n * (n + 1) / 2) / (n * (len(rank) - n)))


def _by_exchange(observed: float, statistic: Callable[[np.ndarray], np.ndarray], sides: Sides) -> TwoSampleTest:
    """The p value of random exchanges; drawing ends when enough of them are as extreme.

    Source: J. Besag & P. Clifford, "Sequential Monte Carlo p-values" (Biometrika 78, 1991).
    """
    hits = drawn = 0
    if not math.isfinite(observed):
        return TwoSampleTest(observed, math.nan, "undefined")
    for second in sides.exchanged():
        extreme = statistic(second) >= observed - _ROUNDING * max(abs(observed), 1.0)
        if hits + int(extreme.sum()) >= _ENOUGH_HITS:
            enough = drawn + int(np.searchsorted(np.cumsum(extreme), _ENOUGH_HITS - hits)) + 1
            return TwoSampleTest(observed, _ENOUGH_HITS / enough, f"{enough:,} exchanges")
        hits, drawn = hits + int(extreme.sum()), drawn + len(second)
    return TwoSampleTest(observed, (hits + 1) / (drawn + 1), f"{drawn:,} exchanges")


def stability_index(code: np.ndarray, sides: Sides) -> float:
    """The population stability index (PSI) of two samples of categories, or of numbers in bins.

    The symmetric Kullback-Leibler divergence of shares, to each of which half a row is added.

    Example:
        >>> sides = Sides(np.arange(8) >= 4, np.arange(8))
        >>> round(stability_index(np.array([0, 0, 1, 1, 0, 1, 1, 1]), sides), 3)
        0.169
    """
    n = int(code.max(initial=0)) + 1
    counts = np.stack([np.bincount(code[sides.second == side], minlength=n) for side in (False, True)])
    share = counts[:, counts.sum(axis=0) > 0] + 0.5
    share = share / share.sum(axis=1, keepdims=True)
    return float(((share[1] - share[0]) * np.log(share[1] / share[0])).sum())


def chance_stability_index(bins: int, sides: Sides, confidence: float = 0.95) -> float:
    """The stability index that samples of one distribution exceed by chance with 1 − confidence.

    NaN unless rows are independent. Source: B. Yurdakul & J. Naranjo, "Statistical properties of the population
    stability index" (Journal of Risk Model Validation 14, 2020): times n·m/(n+m) it is chi-squared.
    """
    if not sides.is_independent or bins < 2:
        return math.nan
    low, high = 0.0, 10.0 * bins + 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chi_squared_tail(middle, bins - 1) > 1 - confidence else (low, middle)
    n, m = sides.n
    return high * (1 / n + 1 / m)


class Estimate(NamedTuple):
    """A value with its interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


def chance_larger(values: np.ndarray, sides: Sides, confidence: float = 0.95) -> Estimate:
    """The chance that a value of the second sample is larger than one of the first, half for ties.

    Its variance is that of the sums of influences by unit.
    Source: E. DeLong, D. DeLong & D. Clarke-Pearson, "Comparing the areas under two or more correlated receiver
    operating characteristic curves" (Biometrics 44, 1988).

    Example:
        >>> sides = Sides(np.arange(8) >= 4, np.arange(8))
        >>> value, low, high = chance_larger(np.array([1.0, 2, 3, 4, 3, 4, 5, 6]), sides)
        >>> round(value, 3), round(low, 2), round(high, 2)
        (0.875, 0.32, 0.99)
    """
    n, m = sides.n
    if not n or not m:
        return Estimate(math.nan, math.nan, math.nan)
    overall = _middle_ranks(values)
    influence = np.empty(len(values))
    for side in (False, True):
        here = sides.second == side
        placement = (overall[here] - _middle_ranks(values[here])) / (n if side else m)
        influence[here] = placement if side else 1 - placement
    value = float(influence[sides.second].mean())
    influence = (influence - value) / np.where(sides.second, m, n)
    return _bounded(value, influence, sides, (0.0, 1.0), confidence)


def share_changes(code: np.ndarray, sides: Sides, confidence: float = 0.95) -> list[Estimate]:
    """Of each category, its share in the second sample minus that in the first; the intervals hold jointly."""
    n, m = sides.n
    found = []
    categories = int(code.max(initial=0)) + 1
    for each in range(categories):
        here = (code == each).astype(np.float64)
        shares = [float(here[sides.second == side].mean()) for side in (False, True)]
        influence = np.where(sides.second, (here - shares[1]) / m, (shares[0] - here) / n)
        joint = 1 - (1 - confidence) / categories
        found.append(_bounded(shares[1] - shares[0], influence, sides, (-1.0, 1.0), joint))
    return found


def _bounded(
    value: float, influence: np.ndarray, sides: Sides, range: tuple[float, float], confidence: float
) -> Estimate:
    sums = np.bincount(sides.unit, influence, sides.n_units)
    units = float(min(sides.units))
    if units < 2:
        return Estimate(value, math.nan, math.nan)
    spread = Spread(*(np.array([each]) for each in (float(sums @ sums) * units / (units - 1), units, units)))
    low, high = interval_within(np.array([value]), spread, range, confidence)
    return Estimate(value, float(low[0]), float(high[0]))


def chi_squared_tail(x: float, degrees: int) -> float:
    """The chance that a chi-squared value is larger.

    Example:
        >>> round(chi_squared_tail(3.841, 1), 4), round(chi_squared_tail(9.488, 4), 4)
        (0.05, 0.05)
    """
    half = x / 2
    if degrees < 1 or half <= 0:
        return 1.0
    order, tail = (1.0, math.exp(-half)) if degrees % 2 == 0 else (0.5, math.erfc(math.sqrt(half)))
    while order < degrees / 2 - 0.25:
        tail += math.exp(order * math.log(half) - half - math.lgamma(order + 1))
        order += 1
    return min(tail, 1.0)


def _kolmogorov_tail(x: float) -> float:
    if x < 0.2:
        return 1.0
    terms = (math.exp(-2 * (k * x) ** 2) * (1 if k % 2 else -1) for k in range(1, 101))
    return min(max(2 * math.fsum(terms), 0.0), 1.0)


def _middle_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values have the mean of theirs."""
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[code])


def hotelling(total: np.ndarray, weight: np.ndarray) -> float:
    """The p value of the hypothesis that weighted means of several numbers are all 0.

    H. Hotelling, "The generalization of Student's ratio" (Annals of Mathematical Statistics 2, 1931); of one number it
    is Student's t.

    Args:
        total: numbers × clusters: the weighted sum of each number.
        weight: of each cluster.

    Returns:
        NaN with too few clusters, or where a combination of the numbers shows no spread.

    Example:
        >>> changes = np.array([[1.0, 0.0, 2.0, 1.0, 1.0], [0.0, 1.0, 0.0, -1.0, 1.0]])
        >>> round(hotelling(changes, np.ones(5)), 4), round(hotelling(changes[:1], np.ones(5)), 4)
        (0.1025, 0.0341)
    """
    q, n = total.shape
    if n <= q:
        return math.nan
    mean = total.sum(axis=1) / weight.sum()
    deviation = total - mean[:, None] * weight
    spread = deviation @ deviation.T * n / (n - 1) / weight.sum() ** 2
    if np.linalg.matrix_rank(spread) < q:
        return math.nan
    return f_tail(float(mean @ np.linalg.solve(spread, mean)) * (n - q) / (q * (n - 1)), q, n - q)
