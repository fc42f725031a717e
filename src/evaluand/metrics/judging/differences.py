"""How far a judge's numbers lie from people's, and what they depend on beside people's label.

A judge that errs gives poor answers too much and good ones too little. So the difference between judge and people
depends on whatever is related to quality, such as length, even if the judge's errors do not. Hence answers are compared
only with others that have the same label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np

from evaluand.metrics.base.metric import NO_ROWS, Columns
from evaluand.metrics.correlations import OfDeviations
from evaluand.metrics.judging.estimate import Estimate, undefined
from evaluand.metrics.stats.intervals import (
    Spread,
    clustered_wilson,
    correlation_of,
    mean_of_shares,
    t_quantile,
    wilson,
)


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
    estimated = (_estimate_part(part, cluster, confidence) for part in parts)
    mean, low, high, influences = (np.array(column) for column in zip(*estimated, strict=True))
    clusters = int(cluster.max()) + 1
    if clusters < _FEWEST:
        return Estimate(float(mean.sum()), math.nan, math.nan, n, float(clusters), "one cluster has no interval")
    ends = mean_of_shares(mean, low, high, correlation_of(influences @ influences.T), (-1.0, 1.0))
    least, most = (len(parts) * float(end) for end in ends)
    return Estimate(float(mean.sum()), least, most, n, float(clusters))


_FEWEST: Final = 2


def _estimate_part(part: Part, cluster: np.ndarray, confidence: float) -> tuple[float, float, float, np.ndarray]:
    """A part times its weight, the ends of its interval, and the influence of each cluster on it."""
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
    return part.weight * mean, low, high, part.weight * influence


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


def contrast_within(
    values: np.ndarray, chosen: np.ndarray, stratum: np.ndarray, cluster: np.ndarray, *, confidence: float = 0.95
) -> Estimate:
    """The mean of some rows minus that of the others in the same stratum, averaged over the strata.

    A stratum with n chosen and m other rows has the weight n·m / (n + m), as in a regression with a constant for each
    stratum; so one without either has none. Each mean has its score interval, and their sum that of Zou and Donner.
    Source: G. Zou & A. Donner, "Construction of confidence limits about effect measures: a general approach"
    (Statistics in Medicine 27, 2008).

    Args:
        values: a number from 0 to 1 for each row.
        chosen: whether each row is one of those that are compared with the others.
        stratum: of each row, such as people's label.
        cluster: the number of what each row belongs to, such as its example.

    Example:
        >>> values, chosen = np.array([1.0, 0.5, 1.0, 0.0, 1.0, 0.0]), np.array([True, False] * 3)
        >>> found = contrast_within(values, chosen, np.array([1, 1, 1, 0, 0, 0]), np.arange(6))
        >>> round(found.value, 3)
        0.75
    """
    parts = []
    for value in np.unique(stratum).tolist():
        own, others = (stratum == value) & chosen, (stratum == value) & ~chosen
        n, m = float(own.sum()), float(others.sum())
        if n and m:
            weight = n * m / (n + m)
            parts += [Part(values, own, weight), Part(values, others, -weight)]
    return _average(parts, cluster, confidence) or undefined(_NO_OVERLAP, len(values))


_NO_OVERLAP: Final = "no label of people is common to both kinds of answers, so there is nothing to compare"


def preference_within(
    wins: np.ndarray, people: np.ndarray, cluster: np.ndarray, *, confidence: float = 0.95
) -> Estimate:
    """By how much a side wins more often than it would with a judge that treats both sides alike.

    It is half of P(the side wins | people prefer it) + P(the side wins | people prefer the other) − 1, since a judge
    that treats both alike errs equally often in both. Pairs that people tie give P(the side wins | tie) − ½; both are
    averaged by the number of pairs behind them, 4·n·m / (n + m) for n and m pairs of the first two kinds. The interval
    is that of `contrast_within`.

    Args:
        wins: 1 for pairs in which the side wins, ½ for ties, else 0.
        people: the same of people.
        cluster: the number of what each pair belongs to, such as its example.

    Example:
        >>> wins, people = np.array([1.0, 1.0, 1.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0, 0.0, 0.0])
        >>> found = preference_within(wins, people, np.arange(5))
        >>> found.value, round(found.low, 2), round(found.high, 2)
        (0.25, -0.1, 0.45)
    """
    sides = people > _TIE, people < _TIE, people == _TIE
    n, m, ties = (float(rows.sum()) for rows in sides)
    both = 2 * n * m / (n + m) if n and m else 0.0
    parts = [Part(wins, rows, weight) for rows, weight in zip(sides, (both, both, ties), strict=True) if weight]
    found = _average(parts, cluster, confidence, scale=1.0)
    if found is None:
        return undefined("people always prefer the same side, so it cannot be separated from quality", len(wins))
    return found._replace(value=found.value - _TIE, low=found.low - _TIE, high=found.high - _TIE)


_TIE: Final = 0.5


def _average(parts: list[Part], cluster: np.ndarray, confidence: float, scale: float = 0.5) -> Estimate | None:
    """The sum of parts whose weights are divided by their total size; None without any."""
    total = scale * sum(abs(part.weight) for part in parts)
    if not total:
        return None
    used = np.logical_or.reduce([part.rows for part in parts])
    shown = [Part(part.shares[used], part.rows[used], part.weight / total) for part in parts]
    return add_up(shown, cluster[used], confidence)


def slope_within(
    values: np.ndarray,
    by: np.ndarray,
    cluster: np.ndarray,
    *,
    stratum: np.ndarray | None = None,
    covariate: np.ndarray | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """By how much values rise with `by`, among rows with the same stratum and the same covariate.

    The slope of the regression with a constant for each stratum and a line for the covariate; the interval is that of
    the jackknife that leaves out each cluster in turn, with Student's quantile.

    Args:
        values: of each row; `by` is what they may depend on.
        cluster: the number of what each row belongs to, such as its example.
        stratum: of each row, such as people's label; one for all by default.
        covariate: a number of each row, such as people's; none by default.

    Example:
        >>> by, label = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 3.0]), np.array([0, 0, 0, 1, 1, 1])
        >>> found = slope_within(0.1 * by + label, by, np.arange(6), stratum=label)
        >>> round(found.value, 3)
        0.1
    """
    n = len(values)
    columns = [values, by, np.zeros(n) if covariate is None else covariate]
    table = np.stack([each - each.mean() for each in columns], axis=1) if n else np.zeros((0, 3))
    strata = np.unique(np.zeros(n) if stratum is None else stratum, return_inverse=True)[1]
    _, cluster = np.unique(cluster, return_inverse=True)
    clusters = int(cluster.max(initial=-1)) + 1
    whole, without = _deviations(table, strata, cluster, clusters)
    slope = float(_slope(whole[None], whole)[0])
    if math.isnan(slope):
        return undefined("answers with the same label are alike in this, so there is nothing to compare", n)
    each = _slope(without, whole)
    if clusters < _FEWEST_OF_SLOPE or np.isnan(each).any():
        return Estimate(slope, math.nan, math.nan, n, float(clusters), "it depends on one cluster alone")
    variance = (clusters - 1) / clusters * float(np.square(each - each.mean()).sum())
    if math.sqrt(variance) <= _ROUNDING * float(np.abs(values).max(initial=0.0)) / math.sqrt(float(whole[1, 1])):
        reason = "no answer departs from it, which gives no interval"
        return Estimate(slope, math.nan, math.nan, n, float(clusters), reason)
    half = float(t_quantile(confidence, np.array([clusters - 1.0]))[0]) * math.sqrt(variance)
    return Estimate(slope, slope - half, slope + half, n, float(clusters))


_FEWEST_OF_SLOPE: Final = 3
_ROUNDING: Final = 1e-9


def _deviations(
    table: np.ndarray, stratum: np.ndarray, cluster: np.ndarray, clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of products of deviations from the means of strata, of all rows and without each cluster.

    Returns:
        columns × columns, and clusters × columns × columns.
    """
    width = table.shape[1]
    rows = np.concatenate(
        [np.ones((len(table), 1)), table, np.einsum("ni,nj->nij", table, table).reshape(len(table), -1)], axis=1
    )
    of_stratum = _sum_by(stratum, rows, int(stratum.max(initial=-1)) + 1)
    pairs, place = np.unique(np.stack([cluster, stratum], axis=1), axis=0, return_inverse=True)
    of_pair = _sum_by(place.ravel(), rows, len(pairs))

    def products(sums: np.ndarray) -> np.ndarray:
        """Those of deviations, from the number of rows, their sums and the sums of their products."""
        total = sums[:, 1 : width + 1]
        n = np.where(sums[:, 0] > 0, sums[:, 0], 1.0)[:, None, None]
        return np.asarray(sums[:, width + 1 :].reshape(-1, width, width) - total[:, :, None] * total[:, None, :] / n)

    by_stratum = products(of_stratum)
    whole = by_stratum.sum(axis=0)
    stratum_of_pair = pairs[:, 1]
    lost = by_stratum[stratum_of_pair] - products(of_stratum[stratum_of_pair] - of_pair)
    return whole, whole - _sum_by(pairs[:, 0], lost, clusters)


def _sum_by(group: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    found = np.zeros((n, *values.shape[1:]))
    np.add.at(found, group, values)
    return found


def _slope(products: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """The slopes of the first column on the second beside the third; NaN where the second does not vary."""
    (_, xy, yz), (_, xx, xz), (_, _, zz) = np.moveaxis(products, 0, -1)
    has_covariate = zz > _ROUNDING * whole[2, 2]
    share = np.where(has_covariate, xz / np.where(has_covariate, zz, 1.0), 0.0)
    left = xx - share * xz
    varies = left > _ROUNDING * whole[1, 1]
    return np.asarray(np.where(varies, (xy - share * yz) / np.where(varies, left, 1.0), np.nan))
