"""A statistic of some rows as one number with its interval."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evaluand.metrics.base.metric import CLUSTER, INDEPENDENT, NO_ROWS, Columns, Metric
from evaluand.metrics.stats.intervals import cluster_sums, cluster_variance, clustered_wilson, wilson


class Estimate(NamedTuple):
    """A number with its interval.

    Attributes:
        value: NaN where it is undefined.
        low: the lower end of the interval, NaN where there is none; `high` the upper end.
        n: the number of rows.
        effective: the number of independent rows with as much information.
        reason: why the value, or only its interval, is undefined; None if both are defined.
    """

    value: float
    low: float
    high: float
    n: int
    effective: float
    reason: str | None = None


def undefined(reason: str, n: int = 0) -> Estimate:
    """A number that these rows do not have."""
    return Estimate(math.nan, math.nan, math.nan, n, float(n), reason)


def share(values: np.ndarray, cluster: np.ndarray, *, confidence: float = 0.95) -> Estimate:
    """The mean of shares, with its score interval.

    Args:
        values: from 0 to 1, such as 1 for right and 0 for wrong.
        cluster: the number of what each row belongs to, such as its example; rows of equal numbers depend on each
            other.

    Example:
        >>> found = share(np.array([1.0, 1.0, 0.0, 1.0]), np.arange(4))
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (0.75, 0.301, 0.954)
    """
    n = len(values)
    if not n:
        return undefined(NO_ROWS)
    mean = np.array([values.mean()])
    if len(np.unique(cluster)) == n and np.isin(values, (0.0, 1.0)).all():
        low, high = wilson(np.array([values.sum()]), np.array([n]), confidence)
        return Estimate(float(mean[0]), float(low[0]), float(high[0]), n, float(n))
    spread = cluster_variance(cluster_sums(values, np.ones(n), cluster, np.zeros(n, np.int64)), mean)
    low, high = clustered_wilson(mean, spread, confidence)
    value, variance = float(mean[0]), float(spread.variance[0])
    effective = value * (1 - value) / variance if variance > 0 else float(spread.effective[0])
    reason = "one cluster has no interval" if math.isnan(low[0]) else None
    return Estimate(value, float(low[0]), float(high[0]), n, min(effective, float(n)), reason)


def estimate(metric: Metric, columns: Columns, cluster: np.ndarray) -> Estimate:
    """The value of a metric over all rows, with its interval.

    Args:
        columns: what the metric's `prepare` returns.
        cluster: as in `share`.

    Example:
        >>> from evaluand.metrics.column_statistics import Mean
        >>> found = estimate(Mean(), {"value": np.array([1.0, 2.0, 3.0, 6.0])}, np.arange(4))
        >>> found.value, round(found.low, 3), round(found.high, 3)
        (3.0, -0.437, 6.437)
    """
    n, clusters = len(cluster), len(np.unique(cluster))
    if not n:
        return undefined(NO_ROWS)
    extra = {}
    if clusters == n and metric.counts_independent_rows:
        extra[INDEPENDENT] = cluster
    elif clusters < n or metric.by_cluster:
        extra[CLUSTER] = cluster
    found = metric.compute(metric.state({**columns, **extra}, np.zeros(n, np.int64), 1))
    value, low, high = (float(each[0]) for each in (found.value, found.low, found.high))
    return Estimate(value, low, high, n, float(clusters), found.reason[0])
