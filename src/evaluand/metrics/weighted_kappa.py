"""Kappa of ordered labels, in which a larger disagreement counts more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_ratio import distinct_labels
from evaluand.metrics.base.confusion import PREDICTION, TRUTH, Confusion, Label, sums_of
from evaluand.metrics.base.metric import LABELS, WEIGHT, Columns, refuse

Weights = Literal["linear", "quadratic"]


@dataclass(frozen=True, kw_only=True)
class WeightedKappa(Confusion):
    """Cohen's kappa of ordered labels: 1 − the mean disagreement / that of independent labels with the same shares.

    The disagreement of two labels is their distance, or its square. Integers are as far from each other as their values
    are; of text no order is assumed, so `labels` must list it. Undefined if all truths and predictions are one label.
    Source: J. Cohen, "Weighted kappa" (Psychological Bulletin 70, 1968).

    Args:
        weights: a disagreement is the distance of the labels (`linear`) or its square (`quadratic`).
        labels: all labels in order; neighbours have the distance 1. With all integers from the least to the largest it
            is the default.

    Raises:
        SpecError: there are no such weights, or `labels` is not a list of labels.

    Example:
        >>> WeightedKappa(labels=["low", "high"]).signature
        'weighted_kappa v1 missing=leave_out reduce=first weights=quadratic labels=(low,high) interval=jackknife 95%'
    """

    kind = "weighted_kappa"
    direction = "higher"
    range = (-1.0, 1.0)

    weights: Weights = "quadratic"
    labels: Sequence[Label] | None = None

    def __post_init__(self) -> None:
        if self.weights not in ("linear", "quadratic"):
            raise SpecError(f"{self.kind}: weights={self.weights!r} must be linear or quadratic")
        if self.labels is not None:
            distinct_labels(self.kind, self.labels)
            object.__setattr__(self, "labels", tuple(self.labels))
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        found = super().prepare(columns)
        vocabulary = found[LABELS].tolist()
        if self.labels is None:
            text = next((label for label in vocabulary if isinstance(label, str)), None)
            if text is not None:
                raise SpecError(
                    f"{self.kind} needs the order of labels, which text such as {text!r} does not have; give labels, "
                    "a list from the lowest to the highest"
                )
            return found
        unknown = np.array([label not in self.labels for label in vocabulary], np.bool_)
        for name in (TRUTH, PREDICTION):
            code = found[name]
            refuse(
                columns,
                unknown[code],
                lambda row, code=code, name=name: f"{name} {vocabulary[code[row]]!r} is not among labels; add it",  # type: ignore[misc]
            )
        return found

    def arranged(self, rows: Columns) -> Columns:
        place = {label: number for number, label in enumerate(self.labels or ())}
        known = [place.get(label, label) if self.labels is not None else label for label in rows[LABELS].tolist()]
        position = np.array([float(each) if not isinstance(each, str) else np.nan for each in known])
        truth, prediction = (position[rows[name]] for name in (TRUTH, PREDICTION))
        positions = np.unique(np.concatenate([truth, prediction]))
        row = np.arange(len(truth))
        return {
            **rows,
            _DISTANCE: np.abs(truth - prediction) if self.weights == "linear" else np.square(truth - prediction),
            _POSITIONS: positions,
            **{
                name: np.stack([row, np.searchsorted(positions, x)])
                for name, x in ((_OF_T, truth), (_OF_P, prediction))
            },
        }

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        positions, total = rows[_POSITIONS], weight.sum(axis=1)
        truth, prediction = (sums_of(rows[name], weight, len(positions)) for name in (_OF_T, _OF_P))
        expected = (truth * self._reach(positions, prediction)).sum(axis=1) / total
        several = ((truth > 0) | (prediction > 0)).sum(axis=1) > 1
        return np.asarray(1 - weight @ rows[_DISTANCE] / np.where(several, expected, np.nan))

    def without_rows(self, rows: Columns, one: np.ndarray) -> np.ndarray:
        positions, distance, weight = rows[_POSITIONS], rows[_DISTANCE], rows[WEIGHT][None]
        truth, prediction = (sums_of(rows[name], weight, len(positions)) for name in (_OF_T, _OF_P))
        own, other = rows[_OF_T][1], rows[_OF_P][1]
        to_predictions, to_truths = (self._reach(positions, side)[0] for side in (prediction, truth))
        rest = weight.sum() - one
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = truth[0] @ to_predictions - one * (to_predictions[own] + to_truths[other] - one * distance)
            found = 1 - (weight @ distance - one * distance) * rest / expected
        is_left = expected > _ROUNDING * (truth[0] @ to_predictions)
        return np.where(is_left & np.isfinite(found), found, np.nan)

    def _reach(self, positions: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Σ wⱼ dᵢⱼ: the disagreement of each position with all labels of one side, replicates × positions."""
        off = np.abs(positions[:, None] - positions)
        return np.asarray(weight @ (off if self.weights == "linear" else np.square(off)))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths and predictions are one label, so chance agrees everywhere"


_DISTANCE: Final = "_distance_"
_POSITIONS: Final = "_positions_"
_ROUNDING: Final = 1e-13
_OF_T: Final = "_of_truth_"
_OF_P: Final = "_of_prediction_"
