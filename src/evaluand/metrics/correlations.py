"""Correlations of predictions with the truth: of the numbers, of their ranks and of their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metrics.base.linear import OfNumbers, centred, scaled, sums
from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH
from evaluand.metrics.base.weighted_rows import reordered
from evaluand.metrics.stats.intervals import runs


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
    ties.

    Args:
        rows: sorted by truth.

    Returns:
        3 × rows.
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
