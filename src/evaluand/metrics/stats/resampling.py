"""The bootstrap: statistics of other samples of the same size, in which whole clusters are drawn with replacement.

All draws come from `random_bits`, so they are a pure function of the seed, the replicate and the number of clusters, on
any machine and version.
"""

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from evaluand.metrics.stats.intervals import Arrays, normal_quantile, random_bits


def bootstrap(
    state: Arrays, value: np.ndarray, confidence: float, replicates: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The bias-corrected and accelerated bootstrap interval of a weighted mean, with clusters drawn as a whole.

    The draws are a pure function of the seed, the replicate and the number of clusters, on any machine and version.
    Source: B. Efron, "Better bootstrap confidence intervals" (JASA 82, 1987); the acceleration from the linearised
    ratio.

    Args:
        state: with a cluster table.
        value: the weighted mean of each group.
        replicates: the number of draws; 2,000 give two decimals of a coverage.

    Returns:
        Lower and upper ends; NaN below two clusters, where all draws are equal, and where values are too large.
    """
    low, high = np.full(value.shape, np.nan), np.full(value.shape, np.nan)
    borders = np.searchsorted(state["cluster_group"], np.arange(len(value) + 1))
    for group, (start, stop) in enumerate(itertools.pairwise(borders.tolist())):
        if stop - start > 1:
            total, weight = state["cluster_sum"][start:stop], state["cluster_weight"][start:stop]
            order = np.lexsort((weight, total))  # so that draws do not depend on the order of clusters
            total, weight = total[order], weight[order]
            # scaling by a power of two is exact, and prevents overflow of cubes
            exponent = int(np.frexp(np.abs(total).max())[1])
            total, mean = np.ldexp(total, -exponent), float(np.ldexp(value[group], -exponent))
            drawn = _draw_means(total, weight, replicates, seed)
            if len(drawn) and math.isfinite(mean):
                skew = acceleration((total - mean * weight)[:, None])[0]
                ends = bca_ends(drawn, np.array(mean), skew, normal_quantile(confidence))
                low[group], high[group] = np.ldexp(ends, exponent)
    return low, high


_AT_ONCE = 1 << 22  # draws held in memory


def _draw_means(total: np.ndarray, weight: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """The sorted weighted means of the replicates, without those of weight 0."""
    n, found = len(total), []
    step = max(1, _AT_ONCE // n)
    for first in range(0, replicates, step):
        rows = draw_places(n, first, min(step, replicates - first), seed)
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(total[rows].sum(axis=1) / weight[rows].sum(axis=1))
    means = np.concatenate(found)
    return np.sort(means[np.isfinite(means)])


def draw_places(n: int, first: int, many: int, seed: int) -> np.ndarray:
    """The n places drawn in each of many replicates, of which `first` is the number of the first."""
    counter = np.arange(first * n, (first + many) * n, dtype=np.uint64)
    places = ((random_bits(counter, seed) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)
    return places.astype(np.int64).reshape(many, n)


def bca_ends(drawn: np.ndarray, value: np.ndarray, skew: np.ndarray, quantile: float) -> tuple[np.ndarray, np.ndarray]:
    """The bias-corrected and accelerated interval of statistics from their values in replicates.

    A replicate may be infinite, and NaN where it is unknown, which counts as far below at the lower end and far above
    at the upper. An end that falls on or next to such a replicate is infinite.
    Source: B. Efron, "Better bootstrap confidence intervals" (JASA 82, 1987).

    Args:
        drawn: replicates × statistics.
        value: of each statistic, on all rows.
        skew: the acceleration of each.
        quantile: of the normal distribution; a larger one widens the interval.

    Returns:
        Lower and upper ends; NaN where all replicates are equal up to rounding, as then the rows do not say how far
        another sample could differ.

    Example:
        >>> low, high = bca_ends(np.array([1.0, 2.0, 3.0, 4.0, np.inf]), np.array(3.0), np.array(0.0), 1.0)
        >>> round(float(low), 2), float(high)
        (1.63, inf)
    """
    normal, n = NormalDist(), len(drawn)
    unknown = np.isnan(drawn)
    # The same sample in another order may give another rounding: a replicate so near is equal, on any machine.
    near = _EQUAL * np.ptp(np.where(np.isfinite(drawn), drawn, value), axis=0)
    below = ((drawn < value - near).sum(axis=0) + (drawn <= value + near).sum(axis=0) + unknown.sum(axis=0)) / 2
    share = np.clip(below / n, 0.5 / n, 1 - 0.5 / n)
    bias = np.array([normal.inv_cdf(each) for each in share.ravel().tolist()]).reshape(share.shape)
    ends = []
    for z, unlikely in ((-quantile, -np.inf), (quantile, np.inf)):
        shrunk = 1 - skew * (bias + z)
        shifted = bias + (bias + z) / np.where(shrunk > 0, shrunk, np.nan)
        levels = [normal.cdf(each) if each == each else float(z > 0) for each in shifted.ravel().tolist()]
        some = np.sort(np.where(unknown, unlikely, drawn), axis=0)
        ends.append(_between(some, np.array(levels).reshape(share.shape), outwards=z > 0))
    with np.errstate(invalid="ignore"):
        spread = some[-1] - some[0]
        equal = np.isfinite(spread) & (spread <= _ROUNDING * np.maximum(np.abs(some[0]), np.abs(some[-1])))
    return np.where(equal, np.nan, ends[0]), np.where(equal, np.nan, ends[1])


def acceleration(influence: np.ndarray) -> np.ndarray:
    """How fast the standard error of each statistic changes with its value, from the influence of units on it.

    Args:
        influence: units × statistics.

    Returns:
        Σ influence³ / (6 (Σ influence²)^1.5); 0 without influence.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        square = np.square(influence)
        skew = (square * influence).sum(axis=0) / (6 * square.sum(axis=0) ** 1.5)
    return np.asarray(np.nan_to_num(skew))


def _between(ordered: np.ndarray, level: np.ndarray, outwards: bool) -> np.ndarray:
    """The quantiles of sorted columns by linear interpolation; with an infinite neighbour, that on the outer side."""
    place = level * (len(ordered) - 1)
    under = np.floor(place).astype(np.int64)
    over = np.minimum(under + 1, len(ordered) - 1)
    low, high = (np.take_along_axis(ordered, each[None], axis=0)[0] for each in (under, over))
    outer = np.where(place == under, low, high) if outwards else low
    with np.errstate(invalid="ignore"):
        step, share = high - low, place - under
        exact = np.where(share < 0.5, low + step * share, high - step * (1 - share))
    return np.asarray(np.where(np.isfinite(low) & np.isfinite(high), exact, outer))


UNITS: Final = 2048
"""The largest number of units that are drawn: the relative standard error of a variance is 3 % with as many."""


class Units(NamedTuple):
    """What is drawn as one: a cluster or, of more than `UNITS` clusters, an equal share of them chosen at random.

    Shares of independent clusters are independent too, and vary as their clusters do, so drawing shares gives the same
    distribution as drawing clusters, at a cost that does not grow with their number.
    Source: the random groups of K. Wolter, Introduction to Variance Estimation (2nd ed., 2007), chapter 2.

    Attributes:
        of_row: the number of each row's unit.
        n: the number of units.
    """

    of_row: np.ndarray
    n: int


def resampling_units(cluster: np.ndarray) -> Units:
    """The units of rows by their clusters (integers); they do not depend on the order of the rows.

    Example:
        >>> resampling_units(np.array([7, 3, 7])).of_row.tolist()
        [1, 0, 1]
    """
    keys, place = np.unique(cluster, return_inverse=True)
    if len(keys) <= UNITS:
        return Units(place, len(keys))
    unit = np.empty(len(keys), np.int64)
    unit[np.argsort(random_bits(keys.astype(np.int64).view(np.uint64), 0), kind="stable")] = np.arange(len(keys))
    return Units((unit % UNITS)[place], UNITS)


def draw_weights(n: int, replicates: int, seed: int, first: int = 0) -> np.ndarray:
    """How often each of n units is drawn in each replicate (replicates × n), by the draws of `bootstrap`.

    Args:
        first: the number of the first replicate, to continue earlier ones.

    Example:
        >>> draw_weights(4, 2, seed=0).sum(axis=1).tolist()
        [4.0, 4.0]
    """
    weights = np.empty((replicates, n))
    for start in range(0, replicates, step := max(1, _AT_ONCE // max(n, 1))):
        many = min(step, replicates - start)
        places = draw_places(n, first + start, many, seed)
        places += n * np.arange(many)[:, None]
        weights[start : start + many] = np.bincount(places.ravel(), minlength=many * n).reshape(many, n)
    return weights


def resample_sums(
    units: Units,
    cell: np.ndarray,
    cells: int,
    columns: Sequence[np.ndarray],
    replicates: int,
    seed: int,
    first: int = 0,
) -> list[np.ndarray]:
    """The sums of columns by cell, in each replicate of a bootstrap that draws units.

    Args:
        cell: the number of each row's cell, below `cells`.
        columns: numbers of rows.
        first: the number of the first replicate, to continue earlier ones.

    Returns:
        For each column: replicates × cells.

    Example:
        >>> units = resampling_units(np.array([1, 1, 2]))
        >>> [sums] = resample_sums(units, np.array([0, 1, 1]), 2, [np.ones(3)], replicates=2, seed=0)
        >>> sums.tolist()
        [[1.0, 2.0], [1.0, 2.0]]
    """
    weights = draw_weights(units.n, replicates, seed, first)
    if units.n * cells <= min(_DENSE * len(cell), _LARGEST_TABLE):
        place, size = units.of_row * cells + cell, units.n * cells
        return [weights @ np.bincount(place, column, minlength=size).reshape(units.n, cells) for column in columns]
    found = np.empty((len(columns), replicates, cells))
    for output, column in zip(found, columns, strict=True):
        for row, weight in zip(output, weights, strict=True):
            row[:] = np.bincount(cell, weight[units.of_row] * column, minlength=cells)
    return [*found]


_DENSE: Final = 50
"""How many products of matrices take as long as adding one row."""

_LARGEST_TABLE: Final = 1 << 24


_EQUAL: Final = 1e-9
"""By how much of their range two replicates may differ and still be equal."""

_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)
