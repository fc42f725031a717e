"""Kappa of ordered labels, in which a larger disagreement counts more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_ratio import distinct_labels
from evaluand.metrics.base.confusion import PREDICTION, TRUTH, Confusion, Label, sums_of
from evaluand.metrics.base.metric import LABELS, Columns, refuse

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
            _DISTANCE: np.abs(truth - prediction),
            _POSITIONS: positions,
            **{
                name: np.stack([row, np.searchsorted(positions, x)])
                for name, x in ((_OF_T, truth), (_OF_P, prediction))
            },
        }

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        positions, total = rows[_POSITIONS], weight.sum(axis=1, keepdims=True)
        distance = rows[_DISTANCE] if self.weights == "linear" else np.square(rows[_DISTANCE])
        observed = weight @ distance / total[:, 0]
        truth, prediction = (sums_of(rows[name], weight, len(positions)) / total for name in (_OF_T, _OF_P))
        expected = (self._linear if self.weights == "linear" else self._quadratic)(positions, truth, prediction)
        several = ((truth > 0) | (prediction > 0)).sum(axis=1) > 1
        return np.asarray(1 - observed / np.where(several, expected, np.nan))

    @staticmethod
    def _linear(positions: np.ndarray, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Σ tᵢ pⱼ |xᵢ − xⱼ|, from the shares of truths and predictions below each gap between labels."""
        below, also = (np.cumsum(share, axis=1)[:, :-1] for share in (truth, prediction))
        return np.asarray((below * (1 - also) + also * (1 - below)) @ np.diff(positions))

    @staticmethod
    def _quadratic(positions: np.ndarray, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Σ tᵢ pⱼ (xᵢ − xⱼ)²: both variances and the squared difference of the means."""
        means = truth @ positions, prediction @ positions
        spread = sum(
            (share * np.square(positions - mean[:, None])).sum(axis=1)
            for share, mean in zip((truth, prediction), means, strict=True)
        )
        return np.asarray(spread + np.square(means[0] - means[1]))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths and predictions are one label, so chance agrees everywhere"


_DISTANCE: Final = "_distance_"
_POSITIONS: Final = "_positions_"
_OF_T: Final = "_of_truth_"
_OF_P: Final = "_of_prediction_"
