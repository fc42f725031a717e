"""The share of objects that are detected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.boxes import COCO, Detected, OfBoxes
from evaluand.metrics.base.metric import Fill


@dataclass(frozen=True, kw_only=True)
class AverageRecall(OfBoxes):
    """The share of the true boxes that are found, as the mean over classes and overlaps: the average recall of COCO.

    Detections are right as in `mean_average_precision`; wrong ones cost nothing, so the value depends on how many
    detections per image count. Classes without a true box are left out; if none is left, the value is undefined.
    Source: J. Hosang et al., "What makes for effective detection proposals?" (IEEE PAMI 38, 2016); T.-Y. Lin et al.,
    "Microsoft COCO: Common Objects in Context" (ECCV 2014).

    Example:
        >>> AverageRecall(max_detections=10, confidence=None).signature
        'average_recall v1 missing=leave_out reduce=first iou="0.50:0.95" definition=standard max_detections=10'
    """

    kind = "average_recall"

    iou: float | Sequence[float] | str = COCO
    max_detections: int | None = 100

    def of_label(self, label: Detected, level: int, weight: np.ndarray, slack: float) -> np.ndarray:
        found = weight[:, label.detections][:, label.found[:, level]].sum(axis=1)
        return np.asarray(found / weight[:, label.truths].sum(axis=1))

    def substitute_boxes(self, fill: Fill, rows: np.ndarray, unknown: bool) -> Iterator[np.ndarray]:
        """As for all box metrics, but the worst is to find nothing."""
        if fill != "worst" or unknown:
            yield from super().substitute_boxes(fill, rows, unknown)
