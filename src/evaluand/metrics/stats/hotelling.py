"""Whether the mean of several numbers per cluster is 0."""

from __future__ import annotations

import math

import numpy as np

from evaluand.metrics.stats.intervals import f_tail


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
