"""Weighted sums of truth and prediction for many weightings at once, from which R² and correlations are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from evaluand.metrics.base.metric import WEIGHT, Columns
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, paired_numbers
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric


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
    """The rows with a column divided by a power of two, which is exact, so that squares do not overflow.

    Args:
        by: the column whose largest number becomes nearly 1.
    """
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
    """The sums of `centred` rows.

    Args:
        weight: replicates × rows.
    """
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
