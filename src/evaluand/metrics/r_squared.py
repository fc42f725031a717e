"""The share of the truth's variance that predictions explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.linear import OfNumbers, Sums, centred, scaled, sums
from evaluand.metrics.base.metric import Columns
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH

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
