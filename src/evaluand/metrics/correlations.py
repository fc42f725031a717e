"""Correlations of predictions with the truth (of numbers, ranks or order), and the variance that they explain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, paired_numbers
from evaluand.metrics.base.sums import OfSums
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric
from evaluand.metrics.stats.intervals import Spread, runs, t_quantile


class OfNumbers(WeightedRowsMetric):
    """A function of numeric truths and predictions."""

    row_columns: ClassVar[tuple[str, ...]] = (TRUTH, PREDICTION)
    columns = (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        return paired_numbers(columns, self.kind)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        for name, what in ((TRUTH, "truths"), (PREDICTION, "predictions")):
            values = rows[name][weight > 0]
            if (values == values[0]).all():
                return f"all {what} are one value, which correlates with nothing"
        return "the numbers lie too far apart for their squares"


class OfDeviations(OfNumbers, OfSums):
    """A function of sums of products of deviations, which are taken from the means of all rows so that they are exact.

    Attributes:
        in_one_unit: both columns are divided by the size of the truths, and not each by its own.
    """

    in_one_unit: ClassVar[bool] = False

    def arranged(self, rows: Columns) -> Columns:
        """With the power of two by which numbers are divided, so that squares are numbers, and their means."""
        columns, there = [rows[name] for name in (TRUTH, PREDICTION)], rows[WEIGHT] > 0
        if not there.all():
            columns = [column[there] for column in columns]
        scale = np.array([2.0 ** min(-int(np.frexp(_largest(column))[1]), _MOST) for column in columns])
        if self.in_one_unit:
            scale[1] = scale[0]
        weight = None if rows[WEIGHT].strides == (0,) else rows[WEIGHT][there]
        with np.errstate(over="ignore", invalid="ignore"):
            centre = scale * [_mean(column, weight) for column in columns]
        constant = np.array([bool((column == column[:1]).all()) for column in columns])
        return {**rows, _SCALE: scale, _CENTRE: centre, _CONSTANT: constant}

    def deviations(self, rows: Columns) -> tuple[np.ndarray, np.ndarray]:
        """The truths and predictions of some rows, divided and less their means."""
        scale, centre = rows[_SCALE], rows[_CENTRE]
        return rows[TRUTH] * scale[0] - centre[0], rows[PREDICTION] * scale[1] - centre[1]

    def spread(self, rows: Columns, side: int, total: np.ndarray, linear: np.ndarray, square: np.ndarray) -> np.ndarray:
        """The sum of squared deviations of one side from the mean of these rows; 0 where only rounding is left."""
        found = square - linear * linear / total
        return np.where(found > (np.inf if rows[_CONSTANT][side] else _NEAR * square), found, 0.0)


def _largest(column: np.ndarray) -> float:
    return max(float(column.max(initial=0.0)), -float(column.min(initial=0.0)))


def _mean(column: np.ndarray, weight: np.ndarray | None) -> float:
    if len(column) == 0:
        return 0.0
    return float(column.mean() if weight is None else np.average(column, weights=weight))


_SCALE: Final = "_scale_"
_CENTRE: Final = "_centre_"
_CONSTANT: Final = "_constant_"
_NEAR: Final = 1e-10
_MOST: Final = 1000


class Pearson(OfDeviations):
    """Pearson's correlation of predictions and truths: how close they are to any straight line.

    Undefined if all truths or all predictions are equal.

    Example:
        >>> Pearson().signature
        'pearson v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "pearson"
    direction = "higher"
    range = (-1.0, 1.0)

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        truth, prediction = self.deviations(rows)
        return (np.ones(len(truth)), truth, prediction, truth * truth, prediction * prediction, truth * prediction)

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        total, truth, prediction, truth2, prediction2, product = sums
        found = product - truth * prediction / total
        for side, sums in enumerate(((truth, truth2), (prediction, prediction2))):
            found = found / np.sqrt(self.spread(rows, side, total, *sums))
        return np.asarray(np.clip(found, -1, 1))

    def interval_by(self, value: float, spread: Spread) -> tuple[float, float]:
        """Student's interval on Fisher's scale, on which a correlation varies alike near 0 and near 1.

        Source: R. A. Fisher, "On the 'probable error' of a coefficient of correlation deduced from a small sample"
        (Metron 1, 1921).
        """
        assert self.confidence is not None
        if not abs(value) < 1:
            return super().interval_by(value, spread)
        error = math.sqrt(float(spread.variance[0])) / (1 - value * value)
        half = float(t_quantile(self.confidence, spread.clusters - 1)[0]) * error
        return math.tanh(math.atanh(value) - half), math.tanh(math.atanh(value) + half)


class Spearman(OfNumbers):
    """Spearman's correlation: Pearson's correlation of ranks, with mean ranks for ties.

    A row of weight w counts as w equal rows.

    Example:
        >>> metric = Spearman(confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 20.0, 300.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value
        array([1.])
    """

    kind = "spearman"
    direction = "higher"
    range = (-1.0, 1.0)

    def arranged(self, rows: Columns) -> Columns:
        """With the order of the rows by truth and by prediction, and where other numbers begin there."""
        orders = {name: np.argsort(rows[name]) for name in _ORDERS}
        starts = {_STARTS[name]: runs(rows[name][order]) for name, order in orders.items()}
        return {**rows, **starts, **{_ORDERS[name]: order for name, order in orders.items()}}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        product, left, right = self._moments(weight, *self._ranks(rows, weight))
        flat = np.minimum(left, right) < _FLAT
        return np.where(flat, np.nan, np.clip(product / np.sqrt(left) / np.sqrt(right), -1, 1))

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """A row contributes its rank, and shifts the ranks of the rows above it.

        Source: C. Croux & C. Dehon, "Influence functions of the Spearman and Kendall correlation measures" (Statistical
        Methods & Applications 19, 2010).
        """
        truth, prediction = (each / weight.sum() for each in self._ranks(rows, weight[None]))
        product, left, right = self._moments(weight[None], truth, prediction) * weight.sum() ** 2
        total = weight.sum()
        ranks = {TRUTH: truth[0], PREDICTION: prediction[0]}

        def shift(by: str, other: str) -> np.ndarray:
            """The weighted sum of the ranks on side `other` over the rows above each row on side `by`."""
            found, order = np.empty(len(weight)), rows[_ORDERS[by]]
            found[order] = _after((weight * ranks[other])[order], rows[_STARTS[by]])
            return np.asarray(found / total)

        of_product = truth[0] * prediction[0] + shift(TRUTH, PREDICTION) + shift(PREDICTION, TRUTH)
        of_left, of_right = (np.square(ranks[name]) + 2 * shift(name, name) for name in (TRUTH, PREDICTION))
        value = product / np.sqrt(left * right)
        return np.asarray(
            (of_product / np.sqrt(left * right) - value / 2 * (of_left / left + of_right / right)) / total
        )

    def _ranks(self, rows: Columns, weight: np.ndarray) -> list[np.ndarray]:
        """Centred ranks of truth and prediction, replicates × rows."""
        middle, found = weight.sum(axis=1)[:, None] / 2, []
        for name, order_name in _ORDERS.items():
            ranks, order = np.empty(weight.shape), rows[order_name]
            ranks[:, order] = _ranks(weight[:, order], rows[_STARTS[name]]) - middle
            found.append(ranks)
        return found

    def _moments(self, weight: np.ndarray, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Means of product and squares of ranks, as shares of the rows: 3 × replicates."""
        pairs = (truth, prediction), (truth, truth), (prediction, prediction)
        total = weight.sum(axis=1)
        return np.stack([np.einsum("rn,rn,rn->r", weight, one, other) / total**3 for one, other in pairs])


def _ranks(weight: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The weight of lower values plus half of that of equal values, for rows sorted by value."""
    tied = np.add.reduceat(weight, starts, axis=1)
    middle = np.cumsum(tied, axis=1) - tied / 2
    return np.repeat(middle, np.diff(starts, append=weight.shape[1]), axis=1)


def _after(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum over higher values plus half of that over equal values."""
    tied = np.add.reduceat(values, starts)
    middle = tied.sum() - np.cumsum(tied) + tied / 2
    return np.repeat(middle, np.diff(starts, append=len(values)))


_FLAT: Final = 1e-14  # variance by rounding if all ranks are equal, as share of the rows
_ORDERS: Final = {TRUTH: "_by_truth_", PREDICTION: "_by_prediction_"}
_STARTS: Final = {TRUTH: "_truth_starts_", PREDICTION: "_prediction_starts_"}


class Kendall(OfNumbers):
    """Kendall's τ-b: concordant minus discordant pairs of rows, normalised for ties.

    (concordant − discordant) / √(pairs whose truths differ · pairs whose predictions differ), in O(n log n). Undefined
    if all truths or all predictions are equal. A row of weight w counts as w equal rows.
    Source: M. Kendall, "The treatment of ties in ranking problems" (Biometrika 33, 1945).

    Example:
        >>> metric = Kendall(confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 3.0, 2.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value.round(4)
        array([0.3333])
    """

    kind = "kendall"
    direction = "higher"
    range = (-1.0, 1.0)

    def arranged(self, rows: Columns) -> Columns:
        order = np.argsort(rows[TRUTH], kind="stable")
        codes = {_CODES[name]: np.unique(rows[name][order], return_inverse=True)[1] for name in (TRUTH, PREDICTION)}
        found = {**rows, **codes, _ORDER: order}
        return {**found, _PAIRS: _by_row(found, rows[WEIGHT])}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return np.array([_tau(*(_by_row(rows, each) @ each)) for each in weight])

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """Each row counts in all of its pairs; each pair of rows counts once."""
        by_row = rows[_PAIRS]
        score, by_truth, by_prediction = by_row @ weight
        value = score / np.sqrt(by_truth) / np.sqrt(by_prediction)
        own = by_row[0] / np.sqrt(by_truth) / np.sqrt(by_prediction)
        return np.asarray(2 * own - value * (by_row[1] / by_truth + by_row[2] / by_prediction))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths or all predictions are one value, which has no order"


def _tau(score: float, by_truth: float, by_prediction: float) -> float:
    if not (by_truth > 0 and by_prediction > 0):
        return np.nan
    if by_truth == by_prediction:  # so that perfect agreement is 1 and not a little less
        return float(np.clip(score / by_truth, -1, 1))
    return float(np.clip(score / np.sqrt(by_truth) / np.sqrt(by_prediction), -1, 1))


def _by_row(rows: Columns, weight: np.ndarray) -> np.ndarray:
    """The result of `_pairs` in the order of the rows; that of the original weights is known."""
    if _PAIRS in rows and np.array_equal(weight, rows[WEIGHT]):
        return rows[_PAIRS]
    found = np.empty((3, len(weight)))
    found[:, rows[_ORDER]] = _pairs(rows, weight[rows[_ORDER]])
    return found


def _pairs(rows: Columns, weight: np.ndarray) -> np.ndarray:
    """Weighted counts for each row: concordant − discordant rows, with another truth, with another prediction.

    Only the number of rows that are lower in both needs two orders at once; the rest are sums over one order or over
    ties. Rows are sorted by truth; the result is 3 × rows.
    """
    truth, prediction = (rows[_CODES[name]] for name in (TRUTH, PREDICTION))
    below, above = _bounds(truth)
    running = np.concatenate([[0.0], np.cumsum(weight)])
    total, lower_truth, equal_truth = running[-1], running[below], running[above] - running[below]
    by_prediction = np.argsort(prediction, kind="stable")
    lower, equal, lower_of_equal, both_equal = (np.empty(len(weight)) for _ in range(4))
    ordered = np.concatenate([[0.0], np.cumsum(weight[by_prediction])])
    first, last = _bounds(prediction[by_prediction])
    lower[by_prediction], equal[by_prediction] = ordered[first], ordered[last] - ordered[first]
    begin, end = _bounds(prediction[by_prediction] * (int(truth.max()) + 1) + truth[by_prediction])
    lower_of_equal[by_prediction] = ordered[begin] - ordered[first]  # a lower truth, the same prediction
    both_equal[by_prediction] = ordered[end] - ordered[begin]
    both_lower = _weight_below(prediction, weight, below)
    within = np.lexsort((prediction, truth))
    ordered = np.concatenate([[0.0], np.cumsum(weight[within])])
    same = np.empty(len(weight))
    same[within] = ordered[_bounds((truth * (int(prediction.max()) + 1) + prediction)[within])[0]] - ordered[below]
    higher_truth = total - lower_truth - equal_truth
    over = lower_truth - both_lower - lower_of_equal  # a lower truth and a higher prediction
    under = lower - both_lower - same  # a higher truth and a lower prediction
    both_higher = higher_truth - under - (equal - lower_of_equal - both_equal)
    return np.stack([both_lower + both_higher - over - under, total - equal_truth, total - equal])


def _bounds(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the run of each of some sorted values begins and ends."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(starts, append=len(ordered))
    return np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)


def _weight_below(code: np.ndarray, weight: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The weight of the rows before each row's place whose code is below its own, for all rows at once.

    Bit by bit from the highest, rows with a 0 are moved before rows with a 1: F. Claude & G. Navarro, "The wavelet
    matrix" (SPIRE 2012).
    """
    limit, low, high = code, np.zeros(len(code), np.int64), before
    found = np.zeros(len(code))
    for bit in reversed(range(int(code.max(initial=0)).bit_length())):
        one = (code >> bit) & 1 == 1
        zeros = np.concatenate([[0], np.cumsum(~one)])
        lighter = np.concatenate([[0.0], np.cumsum(np.where(one, 0.0, weight))])
        up = (limit >> bit) & 1 == 1
        found += np.where(up, lighter[high] - lighter[low], 0.0)
        low, high = (np.where(up, zeros[-1] + end - zeros[end], zeros[end]) for end in (low, high))
        order = np.concatenate([np.flatnonzero(~one), np.flatnonzero(one)])
        code, weight = code[order], weight[order]
    return found


_CODES: Final = {TRUTH: "_truth_", PREDICTION: "_prediction_"}
_PAIRS: Final = "_pairs_"
_ORDER: Final = "_order_"


Constant = Literal["undefined", "zero_or_one"]


@dataclass(frozen=True, kw_only=True)
class RSquared(OfDeviations):
    """R², the coefficient of determination: 1 − Σ(truth − prediction)² / Σ(truth − mean of the truth)².

    1 if all predictions are right, 0 for always predicting the mean, below 0 for worse predictions; not the square of a
    correlation. Undefined if all truths are equal.

    Args:
        constant: the value if all truths are equal: `undefined`, or, as in scikit-learn and D3M, 1 if all predictions
            are right and else 0 (`zero_or_one`).

    Raises:
        SpecError: there is no such `constant`.

    Example:
        >>> metric = RSquared(confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 2.0, 2.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value
        array([0.5])
    """

    kind = "r_squared"
    in_one_unit: ClassVar[bool] = True
    direction = "higher"
    range = (-np.inf, 1.0)

    constant: Constant = "undefined"

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            truth = rows[TRUTH] * rows[_SCALE][0] - rows[_CENTRE][0]
            return (np.ones(len(truth)), truth, truth * truth, *self.residual_terms(rows))

    def residual_terms(self, rows: Columns) -> Sequence[np.ndarray]:
        """The squares that the predictions leave unexplained, or what they are computed from."""
        return (np.square((rows[TRUTH] - rows[PREDICTION]) * rows[_SCALE][0]),)

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        total, truth, square, *residual = sums
        spread = self.spread(rows, 0, total, truth, square)
        rest = self.unexplained(total, *residual)
        of_constant = np.full(rest.shape, np.nan)
        if self.constant == "zero_or_one":
            of_constant = np.where((rows[WEIGHT] > 0).sum() > 1, np.where(rest == 0, 1.0, 0.0), np.nan)
        return np.where(spread > 0, 1 - rest / spread, of_constant)

    def unexplained(self, total: np.ndarray, *residual: np.ndarray) -> np.ndarray:
        """The sum of squares that the predictions leave unexplained."""
        return residual[0]

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        truth = rows[TRUTH][weight > 0]
        if (truth == truth[0]).all():
            return "all truths are one value, which has no variance to be explained"
        return "beside the spread of the truths, errors are too large for a number"


class ExplainedVariance(RSquared):
    """1 − variance of (truth − prediction) / variance of the truth: R² that ignores an error common to all rows.

    Args:
        constant: the value if all truths are equal: `undefined`, or, as in scikit-learn, 1 if all errors are equal and
            else 0 (`zero_or_one`).

    Example:
        >>> ExplainedVariance().signature
        'explained_variance v1 missing=leave_out reduce=first constant=undefined interval=jackknife 95%'
    """

    kind = "explained_variance"

    def residual_terms(self, rows: Columns) -> Sequence[np.ndarray]:
        truth, prediction = self.deviations(rows)
        residual = truth - prediction
        return residual, residual * residual

    def unexplained(self, total: np.ndarray, *residual: np.ndarray) -> np.ndarray:
        linear, square = residual
        found = square - linear * linear / total
        return np.where(found > _NEAR * square, found, 0.0)
