"""How far probabilities lie from what happened: losses, and the calibration error."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_scores import GIVE_SCORES, SCORES, OfScores, check_probabilities
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import LABELS, VALUE, Columns, State, Values
from evaluand.metrics.base.numeric_pairs import PartlyDefined
from evaluand.metrics.calibration import BIN, ConfidenceBins


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


Norm = Literal["l1", "max"]


@dataclass(frozen=True, kw_only=True)
class ExpectedCalibrationError(ConfidenceBins):
    """The difference between mean confidence and share of right rows, over bins of rows of similar confidence.

    Without `label`, a row is right if prediction and truth are equal, and its confidence is that of the prediction.
    With `label`, a row is right if the truth is that class, and its confidence is the probability of the class. If the
    table says that a confidence belongs to the other of two classes, it is subtracted from 1. The value depends on the
    bins, and with few rows per bin even perfect confidences give a value well above 0: compare only values with the
    same bins and about as many rows, or take `debiased_calibration_error`. As this bias differs between systems,
    differences have no interval; `compare` and gates against a baseline take `debiased_calibration_error`.
    Source: C. Guo et al., "On calibration of modern neural networks" (ICML 2017), section 2.

    Args:
        scored_by: what the confidences are, see `OfScores`; `predicted` without `label`.
        label: the class whose probabilities are evaluated.
        bins: the number of bins.
        binning: bins of equal `width` of confidence, each including its upper end, or of equal `mass`, with equally
            many rows (or weight) each; equal confidences are never split.
        norm: the mean of the differences, weighted by the rows of the bin (`l1`), or the largest (`max`).
        weighted: each row counts by the weight of its example.
        confidence: of the shares drawn in a report; the value has no interval, see `interval`.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> ExpectedCalibrationError(bins=15, confidence=None).signature
        'expected_calibration_error v2 missing=leave_out reduce=first scored_by=predicted bins=15 binning=width norm=l1'
    """

    kind = "expected_calibration_error"
    version = 2
    has_differences: ClassVar[bool] = False  # its bias differs between systems
    compared_by: ClassVar[str | None] = "debiased_calibration_error"

    norm: Norm = "l1"

    def __post_init__(self) -> None:
        if self.norm not in ("l1", "max"):
            raise SpecError(f"{self.kind}: norm={self.norm!r} must be one of l1, max")
        super().__post_init__()

    @property
    def interval(self) -> None:
        """None: with few rows the value is biased upwards by chance, and an interval would hide that."""
        return None

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        share, distance = self._bins(rows, weight)
        return np.asarray((share * distance).sum(axis=1) if self.norm == "l1" else distance.max(axis=1))

    def compute(self, state: State) -> Values:
        values = super().compute(state)
        known = np.isfinite(values.value).tolist()
        reason = [_NO_INTERVAL if has else other for has, other in zip(known, values.reason, strict=True)]
        return replace(values, low=np.full(len(known), np.nan), high=np.full(len(known), np.nan), reason=reason)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of bins that have rows."""
        return {"bins": int(np.count_nonzero(np.bincount(rows[BIN])))}

    def _bins(self, rows: Columns, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The share of the weight in each bin, and the distance of confidence and accuracy there; 0 if empty."""
        total, probability, right = (
            np.stack([np.bincount(rows[BIN], each * values, minlength=self.bins) for each in weight])
            for values in (1.0, rows["probability"], rows["right"])
        )
        distance = np.abs(probability - right) / np.where(total > 0, total, np.inf)
        return total / total.sum(axis=1, keepdims=True), distance


_NO_INTERVAL: Final = "no interval: by chance alone the calibration error of few rows is above 0"
