"""The Brier score of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_scores import GIVE_SCORES, SCORES, OfScores, check_probabilities
from evaluand.metrics.base.metric import VALUE, Columns, Reduce
from evaluand.metrics.base.numeric_pairs import PartlyDefined
from evaluand.metrics.log_loss import truth_probability


@dataclass(frozen=True, kw_only=True)
class Brier(OfScores, PartlyDefined):
    """The mean squared error of probabilities: Σ (probability − 1 for the truth, else 0)² over classes, 0 to 2.

    With `label`, the error of that class, from 0 to 1; for two classes the same as with `halved`.
    Source: G. Brier, "Verification of forecasts expressed in terms of probability" (Monthly Weather Review 78, 1950).

    Args:
        scored_by: what the probabilities are, see `OfScores`.
        label: with two classes, the one whose probability is scored.
        absent: the probability of a class without one in a row: 0, or None if unknown.
        halved: take half of the sum over classes; no effect with `label`.
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: compute the interval from this many bootstrap replicates, if these differ.

    Raises:
        SpecError: `absent` is not 0.

    Example:
        >>> Brier().range, Brier(label="cat").range
        ((0.0, 2.0), (0.0, 1.0))
    """

    kind = "brier"
    direction = "lower"
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "mean", "all")
    unfit: ClassVar[str] = f"no probability for the truth; {GIVE_SCORES}, or absent=0, which takes it for 0"

    halved: bool = False

    def __post_init__(self) -> None:
        if self.absent not in (None, 0):
            raise SpecError(f"brier: absent={self.absent!r} must be 0, or be omitted")
        if self.label is not None:
            object.__setattr__(self, "halved", False)
        super().__post_init__()

    @property
    def range(self) -> tuple[float, float]:
        return (0.0, 1.0 if self.halved or self.label is not None else 2.0)

    @property
    def row_range(self) -> tuple[float, float]:
        return self.range

    def prepare(self, columns: Columns) -> Columns:
        rows = self.scored(columns)
        check_probabilities(columns, rows[SCORES], self.kind, whole=self.absent is None)
        truth = truth_probability(rows, self.otherwise)
        if self.label is not None:
            return {VALUE: np.square(1 - truth)}
        values = np.nansum(np.square(rows[SCORES]), axis=1) - 2 * truth + 1
        return {VALUE: np.maximum(values, 0.0) / (2 if self.halved else 1)}
