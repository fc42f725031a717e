"""Squared calibration error without the bias of chance, its interval, and tests of calibration.

The *distance* of a cell, the rows of one bin of confidence (of one class), is the mean of confidence − outcome. Its
square is on average too large by its variance. Products of different clusters have no such bias: their mean is the
squared distance, whatever the size of the cell.
"""

import math
from typing import NamedTuple

import numpy as np

from evaluand.metrics.stats.intervals import normal_tail, t_quantile, t_tail


class Rows(NamedTuple):
    """Rows of one group.

    Attributes:
        probability: rows × classes, between 0 and 1.
        outcome: rows × classes, 0 or 1.
        cell: rows × classes, from 0 on; no cell has rows of two classes.
        cluster: of each row, from 0 on.
        n_cells: the number of cells.
    """

    probability: np.ndarray
    outcome: np.ndarray
    cell: np.ndarray
    cluster: np.ndarray
    n_cells: int


def squared_errors(rows: Rows, weight: np.ndarray) -> np.ndarray:
    """The mean over classes of the mean squared distance of cells, each by the weight of its rows, without bias.

    Cells with rows of a single cluster are left out, since they do not show their variance. It is below 0 if distances
    are smaller than chance makes them. For rows of equal confidence in each bin it is the estimate of Kumar et al.
    and the reliability of Bröcker's decomposition.
    Source: A. Kumar, P. Liang & T. Ma, "Verified uncertainty calibration" (NeurIPS 2019), definition 5.1; J. Bröcker,
    "Estimating reliability and resolution of probability forecasts through decomposition of the empirical score"
    (Climate Dynamics 39, 2012).

    Args:
        weight: replicates × rows.

    Returns:
        One value for each replicate; NaN if a class has no cell with two clusters.

    Example:
        >>> rows = Rows(np.full((4, 1), 0.5), np.array([[1], [1], [1], [0]]), np.zeros((4, 1), int), np.arange(4), 1)
        >>> squared_errors(rows, np.ones((1, 4))).tolist()  # 0.25² less a variance of 0.25 / 4
        [0.0]
    """
    pairs, class_of = _Pairs.of(rows), _class_of(rows)
    return np.array([float(_square(pairs.sums(each), class_of)) for each in weight])


def squared_errors_without(rows: Rows, weight: np.ndarray) -> np.ndarray:
    """`squared_errors` without the rows of each cluster, of which only the cells that it has rows in change.

    Example:
        >>> rows = Rows(np.full((4, 1), 0.5), np.array([[1], [1], [1], [0]]), np.zeros((4, 1), int), np.arange(4), 1)
        >>> squared_errors_without(rows, np.ones(4)).round(4).tolist()
        [-0.0833, -0.0833, -0.0833, 0.25]
    """
    pairs, class_of = _Pairs.of(rows), _class_of(rows)
    n_classes, whole, own = rows.cell.shape[1], pairs.sums(weight), pairs.add_up(weight)
    rest = _Sums(*(sums[pairs.cell] - part for sums, part in zip(whole, (*own, *map(np.square, own)), strict=True)))
    place = pairs.cluster * n_classes + class_of[pairs.cell]
    n_clusters = int(rows.cluster.max(initial=-1)) + 1

    def totals(of_cells: np.ndarray, of_rest: np.ndarray) -> np.ndarray:
        change = np.bincount(place, of_rest - of_cells[pairs.cell], minlength=n_clusters * n_classes)
        return np.asarray(np.bincount(class_of, of_cells) + change.reshape(-1, n_classes))

    (weight_of, square), (weight_of_rest, square_of_rest) = _counted(whole), _counted(rest)
    counted = totals(weight_of, weight_of_rest)
    squares = totals(
        np.where(weight_of > 0, weight_of * square, 0.0),
        np.where(weight_of_rest > 0, weight_of_rest * square_of_rest, 0.0),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((counted > _ROUNDING * weight.sum()).all(axis=1), (squares / counted).mean(axis=1), np.nan)


class ErrorEnds(NamedTuple):
    """The ends of intervals of the root of the mean squared distance, by a quantile of Student's distribution.

    The distances of cells are taken as normal, and the mean of their squares as a multiple of a noncentral χ² with the
    same mean and variance, which depend on the true error. The ends are the errors that leave the observed mean just
    within. Variances are drawn towards those of calibrated confidences by the weight of four rows in each cell, since
    a cell in which all rows are right seems to have none. Both choices were made by simulation: docs/intervals.md.

    Attributes:
        square: the mean squared distance, without bias.
        degrees: of freedom of the quantiles.
    """

    square: float
    degrees: int
    law: "_Law"

    @classmethod
    def of(cls, rows: Rows, weight: np.ndarray) -> "ErrorEnds | None":
        """None below two clusters, if a class has no cell with two clusters, or with more cells than `MAX_CELLS`.

        Nor if all probabilities are 0 or 1 and each cell's outcomes alike, which shows no chance.
        """
        cells = _cells(rows, weight)
        law = None if cells is None else _Law.of(cells, cells.covariance)
        return None if cells is None or law is None or law.chance <= 0 else cls(cells.square, cells.degrees, law)

    def at(self, quantile: float) -> tuple[float, float]:
        observed = max(self.square + self.law.chance, _LEAST)
        low = self.law.error_with(observed, quantile)
        high = self.law.error_with(max(observed, self.law.chance), -quantile)
        value = math.sqrt(max(self.square, 0.0))
        return min(math.sqrt(low), value), max(math.sqrt(min(high, 1.0)), value)


def error_interval(rows: Rows, weight: np.ndarray, confidence: float) -> tuple[float, float]:
    """The interval of the root of the mean squared distance, see `ErrorEnds`; NaN where there is none."""
    ends = ErrorEnds.of(rows, weight)
    return (math.nan, math.nan) if ends is None else ends.at(float(t_quantile(confidence, np.array(ends.degrees))))


def calibration_p(rows: Rows, weight: np.ndarray) -> float | None:
    """The probability of so large squared distances if confidences are calibrated; None if it is undefined.

    Their mean is compared with a multiple of a χ² of the same mean and variance. For independent rows and one class
    these follow from the confidences alone, else from the spread between clusters.
    """
    cells = _cells(rows, weight)
    if cells is None:
        return None
    simple = _are_single(rows) and rows.cell.shape[1] == 1
    law = _Law.of(cells, np.diag(cells.expected) if simple else cells.covariance)
    observed = float(cells.share @ cells.distance**2) if simple else cells.square + law.chance
    if not law.chance > _LEAST:
        return None
    z = law.deviate(max(observed, _LEAST), 0.0)
    beyond = normal_tail(abs(z)) if simple else t_tail(z, cells.degrees) / 2
    return beyond if z > 0 else 1 - beyond


class CalibrationTest(NamedTuple):
    """A test of calibration.

    Attributes:
        z: the statistic, positive if confidences are further from what happened than they say of themselves.
        p: two-sided.
    """

    z: float
    p: float


def spiegelhalter(rows: Rows, weight: np.ndarray) -> CalibrationTest | None:
    """Spiegelhalter's test, whether the squared error of confidences is that of calibrated ones; None if undefined.

    It needs no bins. It finds confidences that are too extreme or not extreme enough, but not errors that cancel out.
    With clusters of several rows, or several classes, the variance is that between clusters, and p is Student's.
    Source: D. Spiegelhalter, "Probabilistic prediction in patient management and clinical trials" (Statistics in
    Medicine 5, 1986).

    Example:
        >>> rows = Rows(np.full((50, 1), 0.9), np.ones((50, 1)), np.zeros((50, 1), int), np.arange(50), 1)
        >>> test = spiegelhalter(rows, np.ones(50))
        >>> round(test.z, 3), round(test.p, 3)
        (-2.357, 0.018)
    """
    p = rows.probability
    by_cluster = np.bincount(rows.cluster, weight * ((rows.outcome - p) * (1 - 2 * p)).sum(axis=1))
    used = int((np.bincount(rows.cluster, weight) > 0).sum())
    simple = _are_single(rows) and p.shape[1] == 1
    if simple:
        variance = float((np.square(weight * (1 - 2 * p[:, 0])) * p[:, 0] * (1 - p[:, 0])).sum())
    else:
        variance = float(np.square(by_cluster).sum()) * used / max(used - 1, 1)
    if not variance > _LEAST or used < 2:
        return None
    z = float(by_cluster.sum()) / math.sqrt(variance)
    return CalibrationTest(z, 2 * normal_tail(abs(z)) if simple else t_tail(z, used - 1))


class _Sums(NamedTuple):
    """Of each cell: sums over its rows, and sums of the squares of these sums over its clusters."""

    weight: np.ndarray
    distance: np.ndarray
    own_weight: np.ndarray
    own_distance: np.ndarray


class _Cells(NamedTuple):
    """The cells that count.

    Attributes:
        share: of each, by its rows; they add up to 1 over all classes.
        distance: the mean of confidence − outcome.
        covariance: of the distances.
        expected: the variance of each distance if confidences are calibrated and rows independent.
        square: the mean squared distance, without bias.
        between: the variance of that mean that is caused by the number of rows in each cell.
        degrees: of freedom of the variances.
    """

    share: np.ndarray
    distance: np.ndarray
    covariance: np.ndarray
    expected: np.ndarray
    square: float
    between: float
    degrees: int


def _cells(rows: Rows, weight: np.ndarray) -> _Cells | None:
    if rows.n_cells > MAX_CELLS:
        return None
    sums = _Pairs.of(rows).sums(weight)
    share = _shares(sums, _class_of(rows))
    if not np.isfinite(share).all():
        return None
    kept = np.flatnonzero(share > 0)
    share, total, own = share[kept], sums.weight[kept], sums.own_weight[kept] / sums.weight[kept] ** 2
    distance = sums.distance[kept] / total
    squares = (distance**2 - sums.own_distance[kept] / total**2) / (1 - own)
    variances = (weight**2)[:, None] * rows.probability * (1 - rows.probability)
    expected = np.bincount(rows.cell.ravel(), variances.ravel(), minlength=rows.n_cells)[kept] / total**2
    covariance = _covariance(rows, weight, kept, distance, total) / np.sqrt(np.outer(1 - own, 1 - own))
    covariance = _steady(covariance, expected, 1 / own)
    true_square = np.zeros(rows.n_cells)
    true_square[kept] = np.maximum(distance**2 - np.diag(covariance), 0.0)
    by_cluster = np.bincount(rows.cluster, weight)
    effective = float(by_cluster.sum() ** 2 / np.square(by_cluster).sum())
    of_row = true_square[rows.cell].mean(axis=1)
    variance = float(np.average(np.square(of_row - np.average(of_row, weights=weight)), weights=weight))
    noise = share @ (2 * np.diag(covariance) ** 2 + 4 * true_square[kept] * np.diag(covariance))
    between = max(variance - float(noise), 0.0) / effective
    degrees = max(round(effective) - 1, 1)
    return _Cells(share, distance, covariance, expected, float(share @ squares), between, degrees)


def _are_single(rows: Rows) -> bool:
    """Whether each row is a cluster by itself."""
    return int(rows.cluster.max(initial=-1)) + 1 == len(rows.cluster)


class _Pairs(NamedTuple):
    """The clusters of each cell.

    Attributes:
        distance: of each entry, from its probability to its outcome.
        number: for each entry that of its cluster in its cell; None if rows are single.
        cell: of each number.
        cluster: of each number.
    """

    rows: Rows
    distance: np.ndarray
    number: np.ndarray | None
    cell: np.ndarray
    cluster: np.ndarray

    @classmethod
    def of(cls, rows: Rows) -> "_Pairs":
        distance, cell = (rows.probability - rows.outcome).ravel(), rows.cell.ravel()
        cluster = np.repeat(rows.cluster, rows.cell.shape[1])
        if _are_single(rows):
            return cls(rows, distance, None, cell, cluster)
        distinct, number = np.unique(cluster * rows.n_cells + cell, return_inverse=True)
        return cls(rows, distance, number, *np.divmod(distinct, rows.n_cells)[::-1])

    def add_up(self, weight: np.ndarray) -> list[np.ndarray]:
        """The weight and the distance of each cluster in each of its cells."""
        of_entry = np.repeat(weight, self.rows.cell.shape[1])
        columns = [of_entry, of_entry * self.distance]
        if self.number is None:
            return columns
        return [np.bincount(self.number, column, len(self.cell)) for column in columns]

    def sums(self, weight: np.ndarray) -> _Sums:
        return _sums_at(self.cell, self.rows.n_cells, *self.add_up(weight))


def _sums_at(place: np.ndarray, n: int, weight: np.ndarray, distance: np.ndarray) -> _Sums:
    squares = (weight, distance, weight * weight, distance * distance)
    return _Sums(*(np.bincount(place, each, minlength=n) for each in squares))


def _square(sums: _Sums, class_of: np.ndarray) -> np.ndarray:
    """The mean squared distance without bias, over the last axis; NaN if a class has no cell with two clusters."""
    share, (_, square) = _shares(sums, class_of), _counted(sums)
    return np.asarray(np.where(share == 0, 0.0, share * square).sum(axis=-1))


def _shares(sums: _Sums, class_of: np.ndarray) -> np.ndarray:
    """The share of each cell, 0 for those of a single cluster; NaN if a class has only such."""
    counted, _ = _counted(sums)
    of_class = class_of == np.arange(class_of.max(initial=0) + 1)[:, None]
    total = counted @ of_class.T
    with np.errstate(divide="ignore", invalid="ignore"):
        share = counted / total[..., class_of] / len(of_class)
    return np.where((total > 0).all(axis=-1, keepdims=True), share, np.nan)


def _counted(sums: _Sums) -> tuple[np.ndarray, np.ndarray]:
    """The weight of each cell with two clusters, else 0, and its squared distance without bias."""
    pairs = sums.weight**2 - sums.own_weight
    counted = np.where(pairs > _ROUNDING * sums.weight**2, sums.weight, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return counted, (sums.distance**2 - sums.own_distance) / pairs


def _class_of(rows: Rows) -> np.ndarray:
    """The class of each cell."""
    n_classes = rows.cell.shape[1]
    found = np.zeros(rows.n_cells, np.int64)
    found[rows.cell.ravel()] = np.tile(np.arange(n_classes), len(rows.cell))
    return found


def _covariance(
    rows: Rows, weight: np.ndarray, kept: np.ndarray, distance: np.ndarray, total: np.ndarray
) -> np.ndarray:
    """The covariance of the distances of cells, from the sums of their clusters."""
    place = np.full(rows.n_cells, -1)
    place[kept] = np.arange(len(kept))
    cell = place[rows.cell]
    off = weight[:, None] * (rows.probability - rows.outcome - distance[cell]) / total[cell]
    off = np.where(cell >= 0, off, 0.0)
    n = len(kept)
    if _are_single(rows) and cell.shape[1] == 1:
        return np.diag(np.bincount(np.maximum(cell[:, 0], 0), np.square(off[:, 0]), minlength=n))
    order = np.argsort(rows.cluster, kind="stable")
    cluster, cell, off = rows.cluster[order], np.maximum(cell[order], 0), off[order]
    found, step = np.zeros((n, n)), max(1, _AT_ONCE // n)
    for first in range(0, int(cluster[-1]) + 1, step):
        some = slice(*np.searchsorted(cluster, (first, first + step)))
        code = (cluster[some, None] - first) * n + cell[some]
        sums = np.bincount(code.ravel(), off[some].ravel(), minlength=step * n).reshape(-1, n)
        found += sums.T @ sums
    return found


def _steady(covariance: np.ndarray, expected: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The covariance, with variances drawn towards the expected ones, of cells of so many clusters."""
    variance = np.diag(covariance)
    steady = ((size - 1) * variance + _PRIOR_ROWS * expected) / (size - 1 + _PRIOR_ROWS)
    scale = np.sqrt(np.divide(steady, variance, out=np.zeros_like(variance), where=variance > 0))
    found = covariance * np.outer(scale, scale)
    np.fill_diagonal(found, steady)
    return found


class _Law(NamedTuple):
    """The law of the mean of squared distances, by the true squared error.

    Attributes:
        chance: its mean if all true distances are 0.
        null: half its variance then.
        slope: by how much a quarter of its variance grows with the true squared error.
        between: by how much its variance grows with the square of that error.
    """

    chance: float
    null: float
    slope: float
    between: float

    @classmethod
    def of(cls, cells: _Cells, covariance: np.ndarray) -> "_Law":
        variance = np.diag(covariance)
        chance = float(cells.share @ variance)
        null = float(cells.share @ np.square(covariance) @ cells.share)
        pull, whole = cells.share * cells.distance, float(cells.share @ cells.distance**2)
        slope = float(pull @ covariance @ pull) / whole if whole > 0 else 0.0
        between = cells.between / cells.square**2 if cells.square > 0 else 0.0
        return cls(chance, null, max(slope, 0.0) or null / max(chance, _LEAST), min(between, 1.0))

    def deviate(self, observed: float, error: float) -> float:
        """The standard normal deviate of the observed mean, if the true squared error is `error`.

        Source: M. Sankaran, "Approximations to the non-central chi-square distribution" (Biometrika 50, 1963).
        """
        scale = (2 * self.null + 4 * error * self.slope + error**2 * self.between) / (2 * (self.chance + 2 * error))
        if not scale > 0:
            return math.inf if observed > error else -math.inf
        degrees, shift, x = self.chance / scale, error / scale, observed / scale
        mean = degrees + shift
        power = 1 - 2 * mean * (degrees + 3 * shift) / (3 * (degrees + 2 * shift) ** 2)
        ratio, m = (degrees + 2 * shift) / mean**2, (power - 1) * (1 - 3 * power)
        middle = 1 + power * ratio * (power - 1 - (2 - power) * m * ratio / 2)
        return float(((x / mean) ** power - middle) / (power * math.sqrt(2 * ratio) * (1 + m * ratio / 2)))

    def error_with(self, observed: float, quantile: float) -> float:
        """The true squared error at which the observed mean has this deviate; 0 if it is lower at any."""
        low, high = 0.0, _MOST
        if self.deviate(observed, low) <= quantile:
            return low
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.deviate(observed, middle) > quantile else (low, middle)
        return (low + high) / 2


MAX_CELLS = 2_000
"""The largest number of cells with an interval, whose covariance fits into memory."""

_PRIOR_ROWS = 4
_AT_ONCE = 1 << 22  # sums in memory at once
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
_LEAST = 1e-15
_MOST = 2.0
_STEPS = 60
