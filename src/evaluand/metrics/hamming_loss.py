"""The share of labels that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.class_ratio import distinct_labels
from evaluand.metrics.base.confusion import (
    ALL_WRONG,
    NO_CLASS,
    PREDICTION,
    TRUTH,
    ByClass,
    ClassCounts,
    Label,
    has_sets,
)
from evaluand.metrics.base.metric import LABELS, Columns


@dataclass(frozen=True, kw_only=True)
class HammingLoss(ByClass):
    """The share of labels that are wrong: the share of rows, or for sets the share of all labels of all rows.

    For sets: missed labels plus superfluous labels, divided by rows × labels. For rows with one label it is 1 −
    accuracy; compare systems by `accuracy` then.

    Args:
        one_hot: a row with one label counts as the set of that label: 2 · errors / (rows × labels).
        labels: all possible labels; by default those of truth and prediction.

    Raises:
        SpecError: `labels` is not a list of labels.

    Example:
        >>> HammingLoss(one_hot=True).signature
        'hamming_loss v1 missing=leave_out reduce=first one_hot=true interval=jackknife 95%'
    """

    kind = "hamming_loss"
    direction = "lower"

    one_hot: bool = False
    labels: Sequence[Label] | None = None

    def __post_init__(self) -> None:
        if self.labels is not None:
            object.__setattr__(self, "labels", distinct_labels(self.kind, self.labels))
        super().__post_init__()

    def is_open(self, vocabulary: np.ndarray) -> bool:
        return self.labels is None and (self.one_hot or has_sets(vocabulary))

    def classes(self, vocabulary: np.ndarray) -> Sequence[Label] | None:
        return self.labels

    def worst_prediction(self, vocabulary: np.ndarray) -> int:
        return ALL_WRONG if has_sets(vocabulary) else NO_CLASS

    def at_once(self, vocabulary: np.ndarray) -> bool:
        return False

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if self.one_hot or has_sets(rows[LABELS]):
            return super().value(rows, weight)
        return np.asarray((weight * (rows[TRUTH] != rows[PREDICTION])).sum(axis=1) / weight.sum(axis=1))

    def of_classes(self, counts: ClassCounts) -> np.ndarray:
        wrong = (counts.expected + counts.predicted - 2 * counts.right).sum(axis=1) + counts.stray
        return np.asarray(wrong / (counts.total * len(counts.classes)))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "there is no label at all"
