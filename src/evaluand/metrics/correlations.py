"""Correlations of predictions with the truth (of numbers, ranks or order), and the variance that they explain."""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, paired_numbers
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric, reordered
from evaluand.metrics.stats.intervals import runs


@dataclass(frozen=True, kw_only=True)
class OfNumbers(WeightedRowsMetric):
    """A function of numeric truths and predictions."""

    row_columns: ClassVar[tuple[str, ...]] = (TRUTH, PREDICTION)
    columns = (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        return paired_numbers(columns, self.kind)


class Sums(NamedTuple):
    """Sums over weighted rows, one entry per replicate; deviations are from the means of the replicate.

    Squares that differ from 0 only by rounding are 0, so that a constant has no variance.
    """

    truth: np.ndarray  # squared deviations of the truth
    prediction: np.ndarray
    product: np.ndarray  # of both deviations
    residual: np.ndarray  # squared deviations of truth − prediction
    error: np.ndarray  # squares of truth − prediction


def scaled(rows: Columns, name: str, by: str) -> dict[str, np.ndarray]:
    """The rows with a column divided by a power of two, by which the largest number of `by` becomes nearly 1."""
    exponent = int(np.frexp(np.abs(rows[by][rows[WEIGHT] > 0]).max(initial=0.0))[1])
    with np.errstate(over="ignore"):
        return {**rows, name: np.ldexp(rows[name], -exponent)}


def centred(rows: Columns) -> dict[str, np.ndarray]:
    """The rows with their products, centred on the means of all rows, so that sums stay precise."""
    weight = rows[WEIGHT] if rows[WEIGHT].sum() > 0 else None
    truth, prediction = (rows[name] - np.average(rows[name], weights=weight) for name in (TRUTH, PREDICTION))
    residual = rows[TRUTH] - rows[PREDICTION]
    rest = residual - np.average(residual, weights=weight)
    rows = {**rows, RESIDUAL: residual}
    table = [np.ones(len(truth)), truth, prediction, rest, truth**2, prediction**2, truth * prediction, rest**2]
    rounding = {
        _ROUNDING + name: _NEAR * np.dot(rows[WEIGHT], deviation**2) + _EPSILON * np.dot(rows[WEIGHT], rows[name] ** 2)
        for name, deviation in ((TRUTH, truth), (PREDICTION, prediction), (RESIDUAL, rest))
    }
    return {**rows, **rounding, _TABLE: np.stack([*table, residual**2], axis=1)}


def sums(rows: Columns, weight: np.ndarray) -> Sums:
    """The sums of `centred` rows, with weights of replicates × rows."""
    total, truth, prediction, rest, truth2, prediction2, product, rest2, error = (weight @ rows[_TABLE]).T
    return Sums(
        _squared_deviations(rows, weight, TRUTH, truth2, truth, total),
        _squared_deviations(rows, weight, PREDICTION, prediction2, prediction, total),
        product - truth * prediction / total,
        _squared_deviations(rows, weight, RESIDUAL, rest2, rest, total),
        error,
    )


def _squared_deviations(
    rows: Columns, weight: np.ndarray, name: str, squares: np.ndarray, linear: np.ndarray, total: np.ndarray
) -> np.ndarray:
    found = squares - linear**2 / total
    for place in np.flatnonzero(~(found > rows[_ROUNDING + name])):  # only rounding, or nearly all weight on one value
        values = rows[name][weight[place] > 0]
        if not len(values) or (values == values[0]).all():
            found[place] = 0.0
    return np.asarray(found)


RESIDUAL: Final = "_residual_"
_TABLE: Final = "_table_"
_ROUNDING: Final = "_rounding_"
_NEAR: Final = 1e-10
_EPSILON: Final = 1e-28


@dataclass(frozen=True, kw_only=True)
class Pearson(OfNumbers):
    """Pearson's correlation of predictions and truths: how close they are to any straight line.

    Undefined if all truths or all predictions are equal.

    Example:
        >>> Pearson().signature
        'pearson v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "pearson"
    direction = "higher"
    range = (-1.0, 1.0)

    def arranged(self, rows: Columns) -> Columns:
        return centred(scaled(scaled(rows, PREDICTION, by=PREDICTION), TRUTH, by=TRUTH))

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        found = sums(rows, weight)
        return np.asarray(np.clip(found.product / np.sqrt(found.truth) / np.sqrt(found.prediction), -1, 1))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        for name, what in ((TRUTH, "truths"), (PREDICTION, "predictions")):
            values = rows[name][weight > 0]
            if (values == values[0]).all():
                return f"all {what} are one value, which correlates with nothing"
        return "the numbers lie too far apart for their squares"


@dataclass(frozen=True, kw_only=True)
class Spearman(Pearson):
    """Spearman's correlation: Pearson's correlation of ranks, with mean ranks for ties.

    A row of weight w counts as w equal rows.

    Example:
        >>> metric = Spearman(confidence=None)
        >>> columns = {"truth": np.array([1.0, 2.0, 3.0]), "prediction": np.array([1.0, 20.0, 300.0])}
        >>> metric.compute(metric.state(columns, np.zeros(3, int), n_groups=1)).value
        array([1.])
    """

    kind = "spearman"

    def arranged(self, rows: Columns) -> Columns:
        """The rows sorted by truth, with their order by prediction."""
        order = np.argsort(rows[TRUTH], kind="stable")
        found = reordered(rows, order)
        by_prediction = np.argsort(found[PREDICTION], kind="stable")
        starts = [runs(found[TRUTH]), runs(found[PREDICTION][by_prediction])]
        return {**found, _ORDER: by_prediction, **dict(zip((_TRUTH, _PREDICTION), starts, strict=True))}

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
        ranks = {_TRUTH: truth[0], _PREDICTION: prediction[0]}
        orders = {_TRUTH: np.arange(len(weight)), _PREDICTION: rows[_ORDER]}

        def shift(by: str, other: str) -> np.ndarray:
            """The weighted sum of the ranks on side `other` over the rows above each row on side `by`."""
            found = np.empty(len(weight))
            found[orders[by]] = _after((weight * ranks[other])[orders[by]], rows[by])
            return np.asarray(found / total)

        of_product = truth[0] * prediction[0] + shift(_TRUTH, _PREDICTION) + shift(_PREDICTION, _TRUTH)
        of_left, of_right = (np.square(ranks[name]) + 2 * shift(name, name) for name in (_TRUTH, _PREDICTION))
        value = product / np.sqrt(left * right)
        return np.asarray(
            (of_product / np.sqrt(left * right) - value / 2 * (of_left / left + of_right / right)) / total
        )

    def _ranks(self, rows: Columns, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centred ranks of truth and prediction, replicates × rows."""
        middle = weight.sum(axis=1)[:, None] / 2
        order = rows[_ORDER]
        prediction = np.empty(weight.shape)
        prediction[:, order] = _ranks(weight[:, order], rows[_PREDICTION]) - middle
        return _ranks(weight, rows[_TRUTH]) - middle, prediction

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
_ORDER: Final = "_order_"
_TRUTH: Final = "_truth_"
_PREDICTION: Final = "_prediction_"


@dataclass(frozen=True, kw_only=True)
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
        found = reordered(rows, np.argsort(rows[TRUTH], kind="stable"))
        found |= {_CODES[name]: np.unique(found[name], return_inverse=True)[1] for name in (TRUTH, PREDICTION)}
        return {**found, _PAIRS: _pairs(found, found[WEIGHT]).T}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        return np.array([_tau(*(self._by_row(rows, each) @ each)) for each in weight])

    def influence(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """Each row counts in all of its pairs; each pair of rows counts once."""
        by_row = self._by_row(rows, weight)
        score, by_truth, by_prediction = by_row @ weight
        value = score / np.sqrt(by_truth) / np.sqrt(by_prediction)
        own = by_row[0] / np.sqrt(by_truth) / np.sqrt(by_prediction)
        return np.asarray(2 * own - value * (by_row[1] / by_truth + by_row[2] / by_prediction))

    def _by_row(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The result of `_pairs`, computed once for the original weights, which value and influence both use."""
        return rows[_PAIRS].T if np.array_equal(weight, rows[WEIGHT]) else _pairs(rows, weight)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths or all predictions are one value, which has no order"


def _tau(score: float, by_truth: float, by_prediction: float) -> float:
    if not (by_truth > 0 and by_prediction > 0):
        return np.nan
    if by_truth == by_prediction:  # so that perfect agreement is 1 and not a little less
        return float(np.clip(score / by_truth, -1, 1))
    return float(np.clip(score / np.sqrt(by_truth) / np.sqrt(by_prediction), -1, 1))


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


Constant = Literal["undefined", "zero_or_one"]


@dataclass(frozen=True, kw_only=True)
class RSquared(OfNumbers):
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
    direction = "higher"
    range = (-np.inf, 1.0)

    constant: Constant = "undefined"

    def __post_init__(self) -> None:
        if self.constant not in ("undefined", "zero_or_one"):
            raise SpecError(f"{self.kind}: constant={self.constant!r} must be undefined or zero_or_one")
        super().__post_init__()

    def arranged(self, rows: Columns) -> Columns:
        with np.errstate(over="ignore", invalid="ignore"):
            return centred(scaled(scaled(rows, PREDICTION, by=TRUTH), TRUTH, by=TRUTH))

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        found = sums(rows, weight)
        rest = self.unexplained(found)
        of_constant = np.full(rest.shape, np.nan)
        if self.constant == "zero_or_one":
            of_constant = np.where((weight > 0).sum(axis=1) > 1, np.where(rest == 0, 1.0, 0.0), np.nan)
        return np.where(found.truth > 0, 1 - rest / found.truth, of_constant)

    def unexplained(self, found: Sums) -> np.ndarray:
        """The sum of squares that the predictions leave unexplained."""
        return found.error

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        truth = rows[TRUTH][weight > 0]
        if (truth == truth[0]).all():
            return "all truths are one value, which has no variance to be explained"
        return "beside the spread of the truths, errors are too large for a number"


@dataclass(frozen=True, kw_only=True)
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

    def unexplained(self, found: Sums) -> np.ndarray:
        return found.residual
