"""Shrinkage: the values of many groups, each drawn towards their mean as far as chance may have moved it.

A small group that looks worst is often only small. How much groups truly differ is uncertain too: few groups that
look alike may differ all the same. So all spreads between groups count, each by its likelihood, with a flat prior:
D. Rubin, "Estimation in parallel randomized experiments" (J. Educational Statistics 6, 1981); A. Gelman, "Prior
distributions for variance parameters in hierarchical models" (Bayesian Analysis 1, 2006).
"""

from typing import Final

import numpy as np

from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.metrics.stats.intervals import normal_quantile


def shrink(values: IntervalEnds, confidence: float, range: tuple[float, float]) -> IntervalEnds:
    """Values drawn towards their mean, with intervals; NaN where a value has no interval, or if fewer than three have.

    The standard error of a value is its interval's width over twice the normal quantile. The intervals allow for the
    errors of the mean and of the spread between groups; how often they cover: docs/intervals.md.

    Args:
        values: of k groups, in one dimension, with intervals at this confidence.
        range: of the metric; no shrunk value is outside.

    Example:
        >>> width = np.array([0.02, 0.02, 0.02, 0.3])
        >>> rate = np.array([0.1, 0.2, 0.3, 0.9])
        >>> shrink(IntervalEnds(rate, rate - width, rate + width), 0.95, (0, 1)).value.round(2).tolist()
        [0.1, 0.2, 0.3, 0.83]
    """
    z, known = normal_quantile(confidence), values.bounded
    blank = np.full(values.value.shape, np.nan)
    if known.sum() < _FEWEST:
        return IntervalEnds(blank, blank, blank)
    value, error = values.value[known], np.maximum((values.high - values.low)[known] / (2 * z), _TINY)
    shrunk, deviation = _posterior(value, error)
    ends = [blank.copy() for _ in IntervalEnds._fields]
    for end, found in zip(ends, (shrunk, shrunk - z * deviation, shrunk + z * deviation), strict=True):
        end[known] = np.clip(found, *range)
    return IntervalEnds(*ends)


def _posterior(value: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each group's true value, over all spreads between groups.

    Args:
        value: of k groups.
        error: their standard errors, above 0.
    """
    place = (np.arange(_SPREADS) + 0.5) / _SPREADS
    scale = float(np.sqrt(np.mean(error**2)) + value.std())
    variance = error**2 + np.square(scale * place / (1 - place))[:, None]  # spreads × groups
    weight = 1 / variance
    total = weight.sum(axis=1)
    mean = (weight * value).sum(axis=1) / total
    off = (weight * np.square(value - mean[:, None])).sum(axis=1)
    likelihood = 0.5 * (np.log(weight).sum(axis=1) - np.log(total) - off) - 2 * np.log(1 - place)
    share = np.exp(likelihood - likelihood.max())
    share = (share / share.sum())[:, None]
    own = 1 - error**2 * weight  # of a group's own value; the rest is the mean's
    centre = own * value + (1 - own) * mean[:, None]
    spread = own * error**2 + np.square(1 - own) / total[:, None]
    found = (share * centre).sum(axis=0)
    return found, np.sqrt((share * (spread + np.square(centre - found))).sum(axis=0))


_FEWEST: Final = 3
_SPREADS: Final = 400
"""The spreads between groups that are tried, from 0 to infinity."""
_TINY: Final = 1e-9
