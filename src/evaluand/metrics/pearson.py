"""Correlations of predictions with the truth: of the numbers, and of their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metrics.base.linear import OfNumbers, centred, scaled, sums
from evaluand.metrics.base.metric import Columns
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
