"""Shrinkage: the values of many groups, each drawn towards their mean as far as chance may have moved it.

A small group that looks worst is often only small. Empirical Bayes asks how much groups truly differ, and how uncertain
each value is: C. Morris, "Parametric empirical Bayes inference" (JASA 78, 1983), with the spread of the groups by
R. Paule & J. Mandel, "Consensus values and weighting factors" (J. Res. NBS 87, 1982).
"""

from typing import Final

import numpy as np

from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.metrics.stats.intervals import normal_quantile


def shrink(values: IntervalEnds, confidence: float, range: tuple[float, float]) -> IntervalEnds:
    """Values drawn towards their mean, with intervals; NaN where a value has no interval, or if fewer than three have.

    The standard error of a value is its interval's width over twice the normal quantile. The intervals allow for the
    error of the mean, and not for that of the spread between groups.

    Args:
        values: of k groups, in one dimension, with intervals at this confidence.
        range: of the metric; no shrunk value is outside.

    Example:
        >>> width = np.array([0.02, 0.02, 0.02, 0.3])
        >>> rate = np.array([0.1, 0.2, 0.3, 0.9])
        >>> shrink(IntervalEnds(rate, rate - width, rate + width), 0.95, (0, 1)).value.round(2).tolist()
        [0.1, 0.2, 0.3, 0.81]
    """
    z, known = normal_quantile(confidence), values.bounded
    blank = np.full(values.value.shape, np.nan)
    if known.sum() < _FEWEST:
        return IntervalEnds(blank, blank, blank)
    value, error = values.value[known], np.maximum((values.high - values.low)[known] / (2 * z), _TINY)
    spread = spread_between(value, error)
    weight = 1 / (error**2 + spread)
    mean = float((weight * value).sum() / weight.sum())
    own = spread / (error**2 + spread)
    shrunk = own * value + (1 - own) * mean
    reach = z * np.sqrt(own * error**2 + (1 - own) ** 2 / weight.sum())
    ends = [blank.copy() for _ in IntervalEnds._fields]
    for end, found in zip(ends, (shrunk, shrunk - reach, shrunk + reach), strict=True):
        end[known] = np.clip(found, *range)
    return IntervalEnds(*ends)


def spread_between(value: np.ndarray, error: np.ndarray) -> float:
    """The variance between groups by which their weighted squared deviations are as large as expected; 0 or more.

    Args:
        value: of k groups.
        error: their standard errors, above 0.
    """
    low, high = 0.0, float(np.square(value - value.mean()).sum()) + float(np.square(error).max())
    if _excess(value, error, low) <= 0:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _excess(value, error, middle) > 0 else (low, middle)
    return (low + high) / 2


def _excess(value: np.ndarray, error: np.ndarray, spread: float) -> float:
    weight = 1 / (error**2 + spread)
    mean = (weight * value).sum() / weight.sum()
    return float((weight * np.square(value - mean)).sum()) - (len(value) - 1)


_FEWEST: Final = 3
_STEPS: Final = 60
_TINY: Final = 1e-9
