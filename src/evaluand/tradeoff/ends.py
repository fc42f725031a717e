"""Ends of intervals, and the interval of the largest of several distances.

The largest of many distances is large by chance alone, and an interval that shares its level among all pairs of groups
and both ends is too wide. The upper end errs no more often for many pairs than for one; and as the sign of a distance
is not looked at, that of a small one does not err at all.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from evaluand.intervals import normal_quantile


class Ends(NamedTuple):
    """A value with its interval, arrays of one shape; NaN where undefined."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def of_largest(apart: Ends, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The interval of the largest of some distances.

    Whichever is truly the largest, it lies below the highest of the upper ends as surely as below its own. The lower
    end is the least largest distance that the data do not contradict: for which the largest seen is so large as seen
    with at least the probability that the upper end leaves to err. There each distance is taken for as large as it may
    be (`_SLACK`), as if they were independent and normal: D. Andrews & G. Soares, "Inference for parameters defined by
    moment inequalities using generalized moment selection" (Econometrica 78, 2010).

    Args:
        apart: … × distances, which are not negative, each with an interval of its own that holds with `confidence` and
            may reach below 0; NaN for those that are not known.
        confidence: of the interval.

    Returns:
        Lower and upper ends, 0 or more; NaN where no distance has an interval.
    """
    z = normal_quantile(confidence)
    known = ~np.isnan(apart.low) & ~np.isnan(apart.high)
    finite = known & np.isfinite(apart.value)
    high = _most(np.where(known, np.maximum(apart.high, -apart.low), np.nan))
    endless = _most(np.where(known & ~finite, apart.low, np.nan))
    seen = np.where(finite, apart.value, 0.0)
    down = np.where(finite, np.maximum(seen - apart.low, _TINY) / z, 1.0)
    up = np.where(finite, np.maximum(apart.high - seen, _TINY) / z, 1.0)
    y = seen.max(axis=-1, keepdims=True) if seen.shape[-1] else np.zeros((*seen.shape[:-1], 1))
    first = seen == y
    low, most = np.zeros_like(y), y
    for _ in range(_STEPS):
        middle = (low + most) / 2
        as_large = np.minimum(seen + _SLACK * down, middle)
        as_small = np.where(first, middle, np.maximum(np.minimum(seen, middle) - _SLACK * up, 0.0))
        below = np.where(finite, _within(y, as_large, down), 1.0).prod(axis=-1, keepdims=True)
        above = np.where(finite, _within(middle - z * up, as_small, up), 1.0).prod(axis=-1, keepdims=True)
        refuted = 1 - below < (1 - confidence) * np.minimum(_AT_MOST, 1 - above / (1 - confidence))
        low, most = np.where(refuted, middle, low), np.where(refuted, most, middle)
    return np.where(np.isnan(high), np.nan, np.fmax(low[..., 0], endless)), high


def _within(limit: np.ndarray, mean: np.ndarray, error: np.ndarray) -> np.ndarray:
    """The probability of a normal variable to be nearer to 0 than a limit."""
    return np.where(limit > 0, _normal((limit - mean) / error) - _normal((-limit - mean) / error), 0.0)


def _normal(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.interp(x, *_normal_table()))


@cache
def _normal_table() -> tuple[np.ndarray, np.ndarray]:
    grid = np.linspace(-8.0, 8.0, 4001)
    return grid, np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in grid.tolist()])


def _most(values: np.ndarray) -> np.ndarray:
    most = np.where(np.isnan(values), -np.inf, values).max(axis=-1, initial=-np.inf)
    return np.where(np.isneginf(most), np.nan, most)


_SLACK: Final = 1.0
"""By how many of its standard errors a distance may be larger than seen."""

_AT_MOST: Final = 0.75
"""The share of the errors that the lower end may make alone: of few rows, tails are only roughly normal."""

_TINY: Final = 1e-12
_STEPS: Final = 30
