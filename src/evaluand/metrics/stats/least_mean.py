"""A lower bound of means that allows for values which no row has shown, and whether many samples pass a limit by it."""

from typing import Final

import numpy as np

from evaluand.metrics.stats.intervals import normal_tail


def least_mean(total: np.ndarray, weight: np.ndarray, lowest: float, level: float) -> float:
    """A lower bound of a weighted mean over clusters whose rows have at least the value `lowest`.

    One more cluster of that value represents unobserved values, and all clusters get random (Dirichlet) weights: the
    bound is the mean that these reach with the probability `level`. For right and wrong rows it is the bound of
    Clopper & Pearson, which never errs more often than its level says; for other values in clusters of equal weight no
    counterexample is known. The t interval treats unobserved values as impossible. The additional cluster has the
    weight of all divided by their effective number (Kish's formula): as heavy as the heaviest, the bound loses most of
    its power where sizes are unequal; lighter, it errs too often. See the simulations in docs/intervals.md.
    Source: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable" (Mathematical Methods of Statistics 14, 2005).

    Args:
        total: the weighted sum of each cluster; `weight` is above 0.
        level: between a half and 1.

    Example:
        >>> round(least_mean(np.array([1.0] * 19 + [0.0]), np.ones(20), 0.0, 0.95), 3)  # Clopper & Pearson: 0.784
        0.784
    """
    unseen = float(weight @ weight / weight.sum())
    total, weight = np.append(total, lowest * unseen), np.append(weight, unseen)
    count = np.ones((1, len(total)))
    low, high = lowest, float(total[:-1].sum() / weight[:-1].sum())
    while high - low > _NEAR * (abs(low) + abs(high)) and (middle := (low + high) / 2) not in (low, high):
        below = _chance_below((total - middle * weight)[None], count)[0]
        low, high = (middle, high) if below <= 1 - level else (low, middle)
    return low


def are_means_above(
    total: np.ndarray, weight: np.ndarray, count: np.ndarray, lowest: float, level: float, limit: float
) -> np.ndarray:
    """Of many samples of clusters whether their `least_mean` exceeds a limit, without the search for it.

    Args:
        total: the weighted sum of each cluster; `weight` is above 0.
        count: samples × clusters: how often each cluster occurs, in all at least once.

    Example:
        >>> right = np.array([1.0, 0.0])
        >>> are_means_above(right, np.ones(2), np.array([[19, 1], [18, 2]]), 0.0, 0.95, 0.78).tolist()
        [True, False]
    """
    if limit < lowest:
        return np.ones(len(count), bool)
    sizes = np.asarray(count @ weight)
    unseen = count @ (weight * weight) / sizes
    above = np.asarray(count @ total) > limit * sizes
    factor = np.empty((int(above.sum()), len(total) + 1))
    factor[:, :-1], factor[:, -1] = total - limit * weight, (lowest - limit) * unseen[above]
    often = np.column_stack([count[above], np.ones(len(factor))])
    above[above] = _chance_below(factor, often) <= 1 - level
    return np.asarray(above)


_NEAR: Final = 1e-7
"""The relative precision of ends found by bisection."""


def _chance_below(factor: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The probability that a sum of independent standard exponential variables times factors is at most 0, by row.

    By the saddlepoint approximation, which here is within 3 % of the probability and nearly always above it.
    Source: R. Lugannani & S. Rice, "Saddle point approximation for the distribution of the sum of independent random
    variables" (Advances in Applied Probability 12, 1980).

    Args:
        factor: rows × factors.
        count: how many variables have the factor; at least one has the last.
    """
    if (absent := count == 0).any():
        factor = np.where(absent, factor[:, -1:], factor)  # of one that is there
    least, most = factor.min(axis=1), factor.max(axis=1)
    found, crosses = np.where(most <= 0, 1.0, 0.0), (least < 0) & (most > 0)
    factor, count = factor[crosses], count[crosses]
    point = _saddlepoint(factor, count, 1 / least[crosses], 1 / most[crosses])
    scaled = point[:, None] * factor
    tilted = factor / (1 - scaled)
    root = np.copysign(np.sqrt(np.maximum(2 * _sums(count, np.log1p(-scaled)), 0.0)), point)
    scale = point * np.sqrt(_sums(count, tilted * tilted))
    flat = np.abs(root) < _FLAT  # the two terms below cancel, and their sum is small
    root, scale = np.where(flat, 1.0, root), np.where(flat, 1.0, scale)
    density = np.exp(-root * root / 2) / np.sqrt(2 * np.pi)
    below = np.array([normal_tail(z) for z in (-root).tolist()])
    found[crosses] = np.where(flat, 0.5, below + density * (1 / root - 1 / scale))
    return found


_FLAT: Final = 1e-4


def _saddlepoint(factor: np.ndarray, count: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """By row, the zero of the derivative of the cumulant function, by Newton's method between the ends."""
    point = np.zeros(len(factor))
    for _ in range(200):
        tilted = factor / (1 - point[:, None] * factor)
        slope = _sums(count, tilted)
        falls = slope < 0
        low, high = np.where(falls, point, low), np.where(falls, high, point)
        following = point - slope / _sums(count, tilted * tilted)
        following = np.where((low < following) & (following < high), following, (low + high) / 2)
        if (np.abs(following - point) <= 1e-12 * np.abs(following)).all():
            break
        point = following
    return point


def _sums(count: np.ndarray, values: np.ndarray) -> np.ndarray:
    """By row, the sum of values that occur so often."""
    return np.asarray(np.einsum("ij,ij->i", count, values))
