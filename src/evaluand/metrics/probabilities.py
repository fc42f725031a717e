"""How far probabilities lie from what happened: losses, and the calibration error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_scores import GIVE_SCORES, SCORES, OfScores, check_probabilities
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import LABELS, VALUE, Columns
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

    Raises:
        SpecError: `clip` does not lie between 0 and a half.

    Example:
        >>> LogLoss(scored_by="positive", label=True, clip=1e-15).clip
        1e-15
    """

    kind = "log_loss"
    direction = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)
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

    Raises:
        SpecError: `absent` is not 0.

    Example:
        >>> Brier().range, Brier(label="cat").range
        ((0.0, 2.0), (0.0, 1.0))
    """

    kind = "brier"
    direction = "lower"
    of_either_class: ClassVar[bool] = True
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

    def prepare(self, columns: Columns) -> Columns:
        rows = self.scored(columns)
        check_probabilities(columns, rows[SCORES], self.kind, whole=self.absent is None)
        truth = truth_probability(rows, self.otherwise)
        if self.label is not None:
            return {VALUE: np.square(1 - truth)}
        values = np.nansum(np.square(rows[SCORES]), axis=1) - 2 * truth + 1
        return {VALUE: np.maximum(values, 0.0) / (2 if self.halved else 1)}
