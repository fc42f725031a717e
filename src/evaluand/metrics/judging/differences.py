"""How far a judge's numbers lie from people's: on average, and along a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from evaluand.metrics.base.metric import NO_ROWS, Columns
from evaluand.metrics.correlations import OfDeviations
from evaluand.metrics.judging.estimate import Estimate, undefined
from evaluand.metrics.stats.intervals import Spread, clustered_wilson, correlation_of, mean_of_shares, wilson


def mean_difference(values: np.ndarray, cluster: np.ndarray, width: float, *, confidence: float = 0.95) -> Estimate:
    """The mean of differences, with an interval that allows for differences that no row shows.

    What a mean has gained and what it has lost are shares of the largest possible difference, each with its score
    interval; their difference has the interval of Zou and Donner. So few or no differences give an interval that is
    wide enough, unlike that of Student.
    Source: G. Zou & A. Donner, "Construction of confidence limits about effect measures: a general approach"
    (Statistics in Medicine 27, 2008).

    Args:
        values: a difference for each row.
        cluster: the number of what each row belongs to, such as its example.
        width: the largest possible difference.

    Example:
        >>> found = mean_difference(np.array([0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0]), np.arange(8), 1.0)
        >>> found.value, round(found.low, 2), round(found.high, 2)
        (0.0, -0.37, 0.37)
    """
    if not len(values):
        return undefined(NO_ROWS)
    every = np.ones(len(values), np.bool_)
    parts = [Part(np.clip(sign * values / width, 0.0, 1.0), every, sign) for sign in (1.0, -1.0)]
    found = add_up(parts, cluster, confidence)
    return found._replace(value=width * found.value, low=width * found.low, high=width * found.high)


class Part(NamedTuple):
    """The mean of some rows as a term of a sum.

    Attributes:
        shares: a number from 0 to 1 for each row.
        rows: which rows count.
        weight: of the mean in the sum, from −1 to 1.
    """

    shares: np.ndarray
    rows: np.ndarray
    weight: float


def add_up(parts: Sequence[Part], cluster: np.ndarray, confidence: float) -> Estimate:
    """The sum of weighted means of shares, with the interval of Zou and Donner.

    Args:
        parts: each with a row or more.
        cluster: the number of what each row belongs to.
    """
    n = len(cluster)
    _, cluster = np.unique(cluster, return_inverse=True)
    each = [_estimate_part(part, cluster, confidence) for part in parts]
    mean, low, high = (np.array([getattr(one, name) for one in each]) for name in ("mean", "low", "high"))
    clusters = int(cluster.max()) + 1
    if clusters < _FEWEST:
        return Estimate(float(mean.sum()), math.nan, math.nan, n, float(clusters), "one cluster has no interval")
    influences = np.stack([one.influence for one in each])
    ends = mean_of_shares(mean, low, high, correlation_of(influences @ influences.T), (-1.0, 1.0))
    least, most = (len(parts) * float(end) for end in ends)
    return Estimate(float(mean.sum()), least, most, n, float(clusters))


_FEWEST: Final = 2


class _EstimatedPart(NamedTuple):
    """A part times its weight, the ends of its interval, and the influence of each cluster on it."""

    mean: float
    low: float
    high: float
    influence: np.ndarray


def _estimate_part(part: Part, cluster: np.ndarray, confidence: float) -> _EstimatedPart:
    shares, total = part.shares[part.rows], float(part.rows.sum())
    mean, weight = float(shares.mean()), np.bincount(cluster, part.rows)
    influence = np.bincount(cluster, part.rows * (part.shares - mean)) / total
    clusters = int(np.count_nonzero(weight))
    if clusters == 1:  # no share varies more than one of right and wrong
        ends = wilson(np.array([mean]), np.array([1.0]), confidence)
    elif clusters == total and np.isin(shares, (0.0, 1.0)).all():
        ends = wilson(np.array([shares.sum()]), np.array([total]), confidence)
    else:
        variance = clusters / (clusters - 1) * float(influence @ influence)
        spread = (variance, clusters, total**2 / float(weight @ weight))
        ends = clustered_wilson(np.array([mean]), Spread(*(np.array([each]) for each in spread)), confidence)
    low, high = sorted(part.weight * float(end[0]) for end in ends)
    return _EstimatedPart(part.weight * mean, low, high, part.weight * influence)


@dataclass(frozen=True, kw_only=True)
class Slope(OfDeviations):
    """By how much the truth rises on average if the prediction rises by 1: the slope of the line of least squares.

    Undefined if all predictions are equal.

    Example:
        >>> slope = Slope(confidence=None)
        >>> rows = {"truth": np.array([0.0, 1.0, 1.0]), "prediction": np.array([0.0, 1.0, 2.0])}
        >>> slope.compute(slope.state(rows, np.zeros(3, int), 1)).value
        array([0.5])
    """

    kind = "slope"
    in_one_unit: ClassVar[bool] = True

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        truth, prediction = self.deviations(rows)
        return (np.ones(len(truth)), truth, prediction, prediction * prediction, truth * prediction)

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        total, truth, prediction, square, product = sums
        spread = self.spread(rows, 1, total, prediction, square)
        return np.asarray((product - truth * prediction / total) / np.where(spread > 0, spread, np.nan))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all of them are equal, so there is no line"
