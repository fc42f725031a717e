"""The logarithmic loss of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_scores import GIVE_SCORES, SCORES, OfScores, check_probabilities
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import LABELS, VALUE, Columns, Reduce
from evaluand.metrics.base.numeric_pairs import PartlyDefined


@dataclass(frozen=True, kw_only=True)
class LogLoss(OfScores, PartlyDefined):
    """The mean of −log of the probability of the truth (natural logarithm); 0 if every truth has the probability 1.

    A truth of probability 0 has an infinite loss, which makes the mean undefined unless probabilities are clipped.

    Args:
        scored_by: what the probabilities are, see `OfScores`.
        label: with two classes, the one whose probability the table has.
        absent: the probability of a class without one in a row; None if unknown.
        clip: the lowest probability used for any truth; scikit-learn uses 2.220446049250313e-16.
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: compute the interval from this many bootstrap replicates, if these differ.

    Raises:
        SpecError: `clip` does not lie between 0 and a half.

    Example:
        >>> LogLoss(scored_by="positive", label=True, clip=1e-15).clip
        1e-15
    """

    kind = "log_loss"
    direction = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    row_range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "mean", "all")
    unfit: ClassVar[str] = (
        f"no probability for the truth, or 0, whose loss is infinite; {GIVE_SCORES}, or clip, the least there is"
    )

    clip: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.clip < 0.5:
            raise SpecError(f"log_loss: clip={self.clip!r} must be at least 0 and below 0.5")
        object.__setattr__(self, "clip", float(self.clip))
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        rows = self.scored(columns)
        check_probabilities(columns, rows[SCORES], self.kind, whole=self.absent is None)
        chance = np.clip(truth_probability(rows, self.otherwise), self.clip, 1 - self.clip)
        return {VALUE: -np.log(np.where(chance > 0, chance, np.nan))}


def truth_probability(rows: Columns, otherwise: float) -> np.ndarray:
    """The probability of each row's truth, NaN if it has none."""
    scores, truth = rows[SCORES], rows[TRUTH]
    found = scores[np.arange(len(truth)), np.maximum(truth, 0)] if len(rows[LABELS]) else np.full(len(truth), np.nan)
    found = np.where(np.isnan(found), otherwise, found)
    return np.asarray(np.where(truth < 0, 1 - found, found))
