"""How far probabilities lie from what happened: losses, and the calibration error."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_scores import (
    CONFIDENCE,
    GIVE_SCORES,
    SCORES,
    OfScores,
    ScoredBy,
    check_probabilities,
    class_of_confidence,
)
from evaluand.metrics.base.confusion import PREDICTION, TRUTH
from evaluand.metrics.base.curves import Curve, Drawn, part_name
from evaluand.metrics.base.metric import (
    LABELS,
    VALUE,
    WEIGHT,
    Columns,
    Metric,
    Reduce,
    State,
    Values,
    check_whole_number,
    numbers,
    refuse,
)
from evaluand.metrics.base.numeric_pairs import PartlyDefined
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric, clusters_of
from evaluand.metrics.stats.intervals import wilson


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


Binning = Literal["width", "mass"]
Norm = Literal["l1", "max"]


@dataclass(frozen=True, kw_only=True)
class ExpectedCalibrationError(OfScores, WeightedRowsMetric):
    """The difference between mean confidence and share of right rows, over bins of rows of similar confidence.

    Without `label`, a row is right if prediction and truth are equal, and its confidence is that of the prediction.
    With `label`, a row is right if the truth is that class, and its confidence is the probability of the class. If the
    table says that a confidence belongs to the other of two classes, it is subtracted from 1. The value depends on the
    bins, and with few rows per bin even perfect confidences give a value well above 0: compare only values with the
    same bins and about as many rows.
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
    direction = "lower"
    range = (0.0, 1.0)
    like_share: ClassVar[bool] = False
    row_columns: ClassVar[tuple[str, ...]] = ("probability", "right")
    of_one: ClassVar[tuple[ScoredBy, ...]] = ("classes", "positive", "labels")

    scored_by: ScoredBy = "predicted"
    bins: int = 10
    binning: Binning = "width"
    norm: Norm = "l1"

    def __post_init__(self) -> None:
        check_whole_number(self.kind, "bins", self.bins, 1)
        for name, choices in (("binning", ("width", "mass")), ("norm", ("l1", "max"))):
            if getattr(self, name) not in choices:
                raise SpecError(f"{self.kind}: {name}={getattr(self, name)!r} must be one of {', '.join(choices)}")
        super().__post_init__()

    @property
    def interval(self) -> None:
        """None: with few rows the value is biased upwards by chance, and an interval would hide that."""
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        return (TRUTH, PREDICTION, CONFIDENCE) if self.label is None else super().columns

    def prepare(self, columns: Columns) -> Columns:
        if self.label is None:
            self.check_truth(columns)
            truth, prediction = columns[TRUTH], columns[PREDICTION]
            probability, right = numbers(columns, CONFIDENCE, self.kind), truth == prediction
            others = class_of_confidence(columns) != prediction
            if others.any() and len(columns[LABELS]) > 2:
                raise SpecError(
                    f"{self.kind}: some confidences belong to another class than the predicted one, and with more than "
                    "two classes they do not determine its confidence; give label, the class, and scored_by"
                )
            probability = np.where(others, 1 - probability, probability)
        else:
            rows = self.scored(columns)
            probability, right = np.where(np.isnan(rows[SCORES]), self.otherwise, rows[SCORES])[:, 0], rows[TRUTH] == 0
            refuse(columns, np.isnan(probability), lambda row: f"has no score for {self.label!r}; {GIVE_SCORES}")
        check_probabilities(columns, probability[:, None], self.kind, whole=False)
        return {"probability": probability, "right": right.astype(np.float64)}

    def arranged(self, rows: Columns) -> Columns:
        return {**rows, _BIN: assign_bins(rows["probability"], rows[WEIGHT], self.bins, self.binning)}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        share, distance = self._bins(rows, weight)
        return np.asarray((share * distance).sum(axis=1) if self.norm == "l1" else distance.max(axis=1))

    @property
    def drawn_by(self) -> Metric:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        """How often rows of each bin are right; with intervals if rows are independent."""
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        clusters, _ = clusters_of(state)
        for group, rows in self.rows_of(state):
            counted = rows[WEIGHT] > 0
            probability, right, weight = (rows[name][counted] for name in (*self.row_columns, WEIGHT))
            curve, effective = _reliability(
                probability, right, weight, assign_bins(probability, weight, self.bins, self.binning)
            )
            part = None if self.label is None else part_name(self.label)
            low, high = None, None
            if self.confidence is not None and clusters[group] == len(probability):
                low, high = wilson(curve.y * effective, effective, self.confidence)
            found[group] = [Drawn("calibration", part, curve, low, high)] if len(probability) else []
        return found

    def compute(self, state: State) -> Values:
        values = super().compute(state)
        known = np.isfinite(values.value).tolist()
        reason = [_NO_INTERVAL if has else other for has, other in zip(known, values.reason, strict=True)]
        return replace(values, low=np.full(len(known), np.nan), high=np.full(len(known), np.nan), reason=reason)

    def _without(self, rows: Columns, n: int) -> np.ndarray:
        return np.empty(0)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of bins that have rows."""
        return {"bins": len(np.unique(rows[_BIN]))}

    def _bins(self, rows: Columns, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The share of the weight in each bin, and the distance of confidence and accuracy there; 0 if empty."""
        total, probability, right = (
            np.stack([np.bincount(rows[_BIN], each * values, minlength=self.bins) for each in weight])
            for values in (1.0, rows["probability"], rows["right"])
        )
        return total / total.sum(axis=1, keepdims=True), np.abs(probability - right) / np.where(
            total > 0, total, np.inf
        )


_NO_INTERVAL: Final = "no interval: by chance alone the calibration error of few rows is above 0"


def _reliability(
    probability: np.ndarray, right: np.ndarray, weight: np.ndarray, bins: np.ndarray
) -> tuple[Curve, np.ndarray]:
    """For each bin with rows: mean confidence, share of right rows, highest confidence, weight; and Kish's size."""
    _, of = np.unique(bins, return_inverse=True)
    total, confidence, share, square = (np.bincount(of, weight * each) for each in (1.0, probability, right, weight))
    highest = np.full(len(total), -np.inf)
    np.maximum.at(highest, of, probability)
    return Curve(confidence / total, share / total, highest, total), total * total / square


def assign_bins(probability: np.ndarray, weight: np.ndarray, bins: int, binning: Binning) -> np.ndarray:
    """The bin of each confidence, from 0 on.

    Example:
        >>> assign_bins(np.array([0.0, 0.5, 0.6, 1.0]), np.ones(4), 2, "width").tolist()
        [0, 0, 1, 1]
        >>> assign_bins(np.array([0.1, 0.9, 0.9, 0.9]), np.ones(4), 2, "mass").tolist()
        [0, 0, 0, 0]
        >>> assign_bins(np.array([0.1, 0.2, 0.9]), np.array([2.0, 1.0, 1.0]), 2, "mass").tolist()
        [0, 1, 1]
    """
    if binning == "width":
        return np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], probability)
    values, place = np.unique(probability, return_inverse=True)
    mass = np.bincount(place, weight, minlength=len(values))
    below = (np.cumsum(mass) - mass) / (mass.sum() or 1.0)
    return np.minimum(below * bins * (1 + _ROUNDING), bins - 1).astype(np.int64)[place]


_BIN: Final = "_bin_"
_ROUNDING: Final = 1e-12
