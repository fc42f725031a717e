"""Bounds of means that hold at all looks together, however often one looks and whenever one stops.

A gambler who believes that the mean is above a hypothetical one bets on each cluster a fraction of the capital, in
proportion to its weight. If the hypothesis is true, the bets are fair, and the capital ever exceeds 1 / (1 − level)
with at most the probability 1 − level (Ville's inequality): then the hypothesis is refuted for good. The capital is
split among many fractions, so it does not depend on the order of the clusters seen; which ones are seen at a look must
not depend on their outcomes. The largest fraction bets the whole capital on the heaviest cluster, and on lighter ones
as much less as they weigh less, so the heaviest must be known before any is seen; a bet that had to be cut would test
another mean.
Source: I. Waudby-Smith & A. Ramdas, "Estimating means of bounded random variables by betting" (JRSS B 86, 2024); the
mixture of fractions as in T. Cover & E. Ordentlich, "Universal portfolios with side information" (IEEE Transactions on
Information Theory 42, 1996).
"""

import math
from typing import Final

import numpy as np

_FRACTIONS: Final = 0.5 ** np.arange(24)
_SHARES: Final = np.log(1 / (np.arange(24) + 1) - 1 / (np.arange(24) + 2) + 1 / (25 * 24))
"""Logarithms of the capital that starts on each fraction; together 1."""
_STEPS: Final = 30


def anytime_least_mean(
    total: np.ndarray, weight: np.ndarray, lowest: float, level: float, heaviest: float = 0.0
) -> float:
    """A lower bound of the weighted mean over clusters that holds at all looks together.

    Args:
        total: the weighted sum of each cluster; `weight` is above 0.
        lowest: the least value that a row can have.
        level: the probability that the bound of no look ever lies above the mean, between a half and 1.
        heaviest: the weight of the heaviest cluster that may be seen at any look; by default that of those seen now.

    Returns:
        The bound, `lowest` without clusters.

    Example:
        >>> round(anytime_least_mean(np.ones(50), np.ones(50), 0.0, 0.95), 3)
        0.93
    """
    beyond, weight, count = _distinct(total - lowest * weight, weight, heaviest)
    low, high = 0.0, float(count @ beyond / (count @ weight)) if len(weight) else 0.0
    if high == 0:
        return lowest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        capital = _log_sum(_SHARES + count @ _log_factors(beyond, weight, middle)) if middle > 0 else math.inf
        low, high = (middle, high) if capital >= -math.log(1 - level) else (low, middle)
    return lowest + low


def anytime_interval(
    total: np.ndarray, weight: np.ndarray, range: tuple[float, float], level: float, heaviest: float = 0.0
) -> tuple[float, float]:
    """Both bounds of the weighted mean over clusters, each at the level; arguments as for `anytime_least_mean`."""
    low = anytime_least_mean(total, weight, range[0], level, heaviest)
    return low, -anytime_least_mean(-total, weight, -range[1], level, heaviest)


def fewest_to_exceed(
    total: np.ndarray, weight: np.ndarray, range: tuple[float, float], mean: float, level: float, heaviest: float = 0.0
) -> float:
    """How many more of the heaviest clusters, all of the highest value, lift the bound above a mean; inf if none do.

    Example:
        >>> fewest_to_exceed(np.ones(10), np.ones(10), (0.0, 1.0), 0.9, 0.95)
        25.0
    """
    lowest, highest = range
    if mean >= highest:
        return math.inf
    if mean <= lowest:
        return 0
    beyond, weights, count = _distinct(total - lowest * weight, weight, heaviest)
    gain = _log_factors(np.array([highest - lowest]), np.array([1.0]), mean - lowest)[0]
    start = _SHARES + count @ _log_factors(beyond, weights, mean - lowest)
    with np.errstate(divide="ignore", invalid="ignore"):
        enough = np.nanmin(np.where(gain > 0, np.maximum(-math.log(1 - level) - start, 0) / gain, np.inf))
    if not math.isfinite(enough):
        return math.inf
    few, many = -1, math.ceil(enough)  # together the fractions need no more than the best of them
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if _log_sum(start + middle * gain) >= -math.log(1 - level) else (middle, many)
    return float(many)


def _distinct(beyond: np.ndarray, weight: np.ndarray, heaviest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different clusters, with weights as shares of the heaviest, and how often each occurs: grades are few."""
    unit = max(float(weight.max(initial=0)), heaviest) or 1.0
    beyond, weight = beyond / unit, weight / unit
    pairs, count = np.unique(np.stack([np.maximum(beyond, 0.0), weight]), axis=1, return_counts=True)
    return pairs[0], pairs[1], count


def _log_factors(beyond: np.ndarray, weight: np.ndarray, mean: float) -> np.ndarray:
    """By cluster and fraction, the logarithm of the factor by which a bet changes the capital."""
    stake = _FRACTIONS * weight[:, None]
    gain = (beyond / weight / mean - 1)[:, None] if mean > 0 else np.where(beyond[:, None] > 0, np.inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log1p(stake * gain))


def _log_sum(logs: np.ndarray) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum())) if math.isfinite(most) else most
