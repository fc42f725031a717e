"""Ranks of several systems on several problems: mean ranks, tests of whether they differ, and which ones.

A problem counts once, however many rows it has, and only the order of the systems on it counts, so problems may be
measured on different scales. The procedure is that of J. Demšar, "Statistical comparisons of classifiers over multiple
data sets" (Journal of Machine Learning Research 7, 2006).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.comparison.difference import change_of_rows
from evaluand.comparison.significance import assign_letters, holm, mcnemar
from evaluand.metrics.stats.intervals import f_tail, normal_tail
from evaluand.metrics.stats.two_samples import chi_squared_tail

FEWEST_PROBLEMS: Final = 5
"""The fewest problems for Friedman's test: with fewer, its approximations reject too often; see docs/howto/suite.md."""

RankTest = Literal["friedman", "wilcoxon", "sign"]


class Friedman(NamedTuple):
    """Friedman's test of equal ranks, and the F statistic of Iman and Davenport, whose p value is closer to exact."""

    chi_squared: float
    p_chi_squared: float
    f: float
    p: float


class SignedRanks(NamedTuple):
    """The Wilcoxon signed-rank test: the smaller sum of ranks, the two-sided p value, and the method that gave it."""

    statistic: float
    p: float
    method: str


@dataclass(frozen=True)
class RankedSystems:
    """Systems ranked on problems; 1 is the best rank.

    Attributes:
        ranks: problems × systems; equal values share the mean of their ranks.
        mean: of each system.
        test: `friedman` for three systems or more; for two `wilcoxon`, or `sign` where problems have different scales.
        p: of the test; that of Iman and Davenport of Friedman's. None without a test.
        friedman: all of Friedman's test.
        statistic: of the signed-rank test, the smaller sum of ranks; of the sign test, the problems won by the first.
        method: how `p` was computed.
        critical_difference: two systems whose mean ranks differ by less do not differ significantly (Nemenyi).
        against_control: the p value of each system against the control, by the difference of mean ranks, adjusted for
            all of them by Holm's procedure, which finds more than comparing all pairs; NaN for the control itself. None
            unless there are three systems or more, and a test.
        letters: systems that share a letter do not differ significantly; None without a test.
        reason: why there is no test.
    """

    ranks: np.ndarray
    mean: np.ndarray
    test: RankTest | None = None
    p: float | None = None
    friedman: Friedman | None = None
    statistic: float | None = None
    method: str | None = None
    critical_difference: float | None = None
    against_control: np.ndarray | None = None
    letters: Sequence[str] | None = None
    reason: str | None = None


def rank_systems(
    values: np.ndarray,
    higher_is_better: np.ndarray,
    confidence: float = 0.95,
    *,
    same_scale: bool = True,
    control: int = 0,
) -> RankedSystems:
    """Ranks systems on each problem and tests whether they differ.

    Args:
        values: problems × systems, all finite.
        higher_is_better: of each problem.
        confidence: 1 − the level of the tests.
        same_scale: whether differences on two problems have a meaning together; otherwise two systems are compared by
            their signs alone.
        control: the system with which the others are compared, besides all pairs.

    Example:
        >>> values = np.array([[0.9, 0.7, 0.5]] * 8 + [[0.6, 0.7, 0.5]] * 2)
        >>> found = rank_systems(values, np.full(10, True))
        >>> found.mean.tolist(), round(found.critical_difference, 3), found.letters
        ([1.2, 1.8, 3.0], 1.048, ['a', 'a', 'b'])
    """
    problems, systems = values.shape
    ranks = rank_rows(np.where(higher_is_better[:, None], -values, values))
    mean = ranks.mean(axis=0) if problems else np.full(systems, np.nan)
    if systems < 2:
        return RankedSystems(ranks, mean, reason="one system has no other to be compared with")
    alone = systems == 2
    fewest = fewest_pairs(1 - confidence) if alone else FEWEST_PROBLEMS
    if problems < fewest:
        why = f"{'two systems need' if alone else 'the test needs'} at least {fewest} ranked problems; there are"
        return RankedSystems(ranks, mean, reason=f"{why} {problems}")
    if alone:
        change = np.where(higher_is_better, 1, -1) * change_of_rows(values[:, 1], values[:, 0])
        return _compare_two(ranks, mean, change, np.abs(values).max(axis=1), confidence, same_scale)
    found, distance = friedman(ranks), critical_difference(systems, problems, 1 - confidence)
    differs = found.p < 1 - confidence
    pairs = itertools.combinations(range(systems), 2)
    apart = [frozenset((a, b)) for a, b in pairs if differs and abs(mean[a] - mean[b]) >= distance]
    return RankedSystems(
        ranks,
        mean,
        "friedman",
        found.p,
        found,
        method="Iman–Davenport" if math.isfinite(found.f) else "exact",
        critical_difference=distance,
        against_control=_against_control(mean, problems, control),
        letters=_letters(mean, apart),
    )


def _compare_two(
    ranks: np.ndarray, mean: np.ndarray, change: np.ndarray, scale: np.ndarray, confidence: float, same_scale: bool
) -> RankedSystems:
    won, lost = int((change > 0).sum()), int((change < 0).sum())
    found = wilcoxon(change, scale) if same_scale else SignedRanks(won, mcnemar(won, lost), "exact")
    test: RankTest = "wilcoxon" if same_scale else "sign"
    apart = [frozenset((0, 1))] if found.p < 1 - confidence else []
    return RankedSystems(
        ranks,
        mean,
        test,
        found.p,
        statistic=found.statistic,
        method=found.method,
        letters=_letters(mean, apart),
    )


def _against_control(mean: np.ndarray, problems: int, control: int) -> np.ndarray:
    systems = len(mean)
    z = np.abs(mean - mean[control]) / math.sqrt(systems * (systems + 1) / (6 * problems))
    return holm(np.array([math.nan if each == control else 2 * normal_tail(float(z[each])) for each in range(systems)]))


def _letters(mean: np.ndarray, apart: Sequence[frozenset[int]]) -> list[str]:
    order = np.argsort(mean, kind="stable").tolist()
    found = assign_letters(order, apart)
    return [found[system] for system in range(len(mean))]


def rank_rows(values: np.ndarray) -> np.ndarray:
    """The ranks of each row's values, 1 for the lowest; equal ones share the mean of their ranks.

    Values that differ by the rounding of a computation alone are equal.

    Example:
        >>> rank_rows(np.array([[0.3, 0.1 + 0.2, 0.1]])).tolist()
        [[2.5, 2.5, 1.0]]
    """
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    ranks = np.empty(values.shape)
    for row, (own, place) in enumerate(zip(ordered, order, strict=True)):
        ranks[row] = _mean_ranks(place, np.concatenate([[True], change_of_rows(own[:-1], own[1:]) > 0]))
    return ranks


def _mean_ranks(order: np.ndarray, is_larger: np.ndarray) -> np.ndarray:
    """The ranks of values from their order, and from where in it a value is larger than the one before."""
    starts, ranks = np.flatnonzero(is_larger), np.empty(len(order))
    sizes = np.diff(starts, append=len(order))
    ranks[order] = np.repeat(starts + (sizes + 1) / 2, sizes)
    return ranks


def friedman(ranks: np.ndarray) -> Friedman:
    """Friedman's test of whether systems have the same ranks, corrected for ties, and that of Iman and Davenport.

    Source: M. Friedman, "The use of ranks to avoid the assumption of normality implicit in the analysis of variance"
    (JASA 32, 1937); R. Iman & J. Davenport, "Approximations of the critical region of the Friedman statistic"
    (Communications in Statistics A 9, 1980).

    Args:
        ranks: problems × systems, as of `rank_rows`: two systems or more.

    Returns:
        Where all systems are equal on all problems, statistics of 0 and p values of 1. Where they have the same order
        on all, an infinite F with its exact p value: the share of all combinations of orders in which all are the same.

    Example:
        >>> found = friedman(np.array([[1.0, 2.0, 3.0]] * 4 + [[2.0, 1.0, 3.0]] * 2))
        >>> round(found.chi_squared, 3), round(found.p_chi_squared, 4), round(found.f, 2), round(found.p, 4)
        (9.333, 0.0094, 17.5, 0.0005)
    """
    n, k = ranks.shape
    between = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    within = float(((ranks - (k + 1) / 2) ** 2).sum()) / (k - 1)  # less with ties
    if within == 0:
        return Friedman(0.0, 1.0, 0.0, 1.0)
    chi = between / within
    most = n * (k - 1)
    p_chi = chi_squared_tail(chi, k - 1)
    if chi >= most * (1 - _ROUNDING):
        return Friedman(chi, p_chi, math.inf, math.exp((1 - n) * math.log(_orders(ranks[0]))))
    f = (n - 1) * chi / (most - chi)
    return Friedman(chi, p_chi, f, f_tail(f, k - 1, (k - 1) * (n - 1)))


def _orders(ranks: np.ndarray) -> int:
    """How many different orders the ranks of a problem have."""
    same = np.unique(ranks, return_counts=True)[1].tolist()
    return math.factorial(len(ranks)) // math.prod(map(math.factorial, same))


def critical_difference(systems: int, problems: int, level: float = 0.05) -> float:
    """The difference of two mean ranks that no two of equal systems reach, with probability 1 − level (Nemenyi).

    Example:
        >>> round(critical_difference(4, 14), 2)
        1.25
    """
    return range_quantile(1 - level, systems) / math.sqrt(2) * math.sqrt(systems * (systems + 1) / (6 * problems))


@cache
def range_quantile(confidence: float, k: int) -> float:
    """The quantile of the range of k independent standard normal variables: the studentized range of infinite samples.

    Example:
        >>> [round(range_quantile(0.95, k), 3) for k in (2, 3, 10)]
        [2.772, 3.314, 4.474]
    """
    low, high = 0.0, 1.0
    while range_within(high, k) < confidence:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if range_within(middle, k) < confidence else (low, middle)
    return high


def range_within(q: float, k: int) -> float:
    """The probability that k independent standard normal variables lie within a range of q.

    It is k times the integral of φ(z) (Φ(z) − Φ(z − q))^(k−1): the largest is at z, the others within q below it. The
    trapezoidal rule is exact to the last digits for such an integrand.
    """
    points = (i * _STEP for i in range(-_STEPS, _STEPS + 1))
    terms = (math.exp(-z * z / 2) * (normal_tail(z - q) - normal_tail(z)) ** (k - 1) for z in points)
    return min(k * math.fsum(terms) * _STEP / math.sqrt(2 * math.pi), 1.0)


def wilcoxon(change: np.ndarray, scale: np.ndarray | None = None) -> SignedRanks:
    """The Wilcoxon signed-rank test of whether changes are as often up as down; changes of 0 are left out.

    All patterns of signs are counted, with tied sizes too; of more than 200 changes, the sum is taken as normal.
    Source: F. Wilcoxon, "Individual comparisons by ranking methods" (Biometrics Bulletin 1, 1945).

    Args:
        change: of each problem.
        scale: the size of the values whose difference it is: sizes of changes that differ less than the rounding of
            the largest one are equal.

    Example:
        >>> wilcoxon(np.array([0.3, 0.2, -0.1, 0.4, 0.5, 0.6]))
        SignedRanks(statistic=1.0, p=0.0625, method='exact')
    """
    scale = np.abs(change) if scale is None else scale
    kept = change[change != 0]
    if not len(kept):
        return SignedRanks(0.0, 1.0, "exact")
    order = np.argsort(np.abs(kept), kind="stable")
    gaps = np.diff(np.abs(kept)[order], prepend=-math.inf)
    ranks = _mean_ranks(order, gaps > _ROUNDING * float(np.max(scale)))
    up, down = float(ranks[kept > 0].sum()), float(ranks[kept < 0].sum())
    smaller = min(up, down)
    if len(kept) <= _EXACT_CHANGES:
        return SignedRanks(smaller, min(2 * _share_of_sums(ranks, smaller), 1.0), "exact")
    z = (max(up, down) - smaller) / 2 / math.sqrt(float(np.square(ranks).sum()) / 4)
    return SignedRanks(smaller, 2 * normal_tail(z), "normal")


def fewest_pairs(level: float) -> int:
    """The fewest changes for which a signed-rank or sign test can give a p value below the level.

    Example:
        >>> fewest_pairs(0.05), fewest_pairs(0.01)
        (6, 8)
    """
    return next(n for n in itertools.count(1) if 2.0 ** (1 - n) < level)


def _share_of_sums(ranks: np.ndarray, most: float) -> float:
    """The share of all subsets of ranks whose sum is at most this; ranks may be halves."""
    doubled = np.rint(2 * ranks).astype(np.int64)
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled.tolist():
        chance[rank:] = chance[rank:] + chance[: len(chance) - rank]
        chance /= 2
    return float(chance[: round(2 * most) + 1].sum())


_ROUNDING: Final = 1e-12
_EXACT_CHANGES: Final = 200
_STEP: Final = 1 / 16
_STEPS: Final = 160
