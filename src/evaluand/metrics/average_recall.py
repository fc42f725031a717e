"""How many of the objects that are there are detected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.boxes import COCO, Detected, OfBoxes
from evaluand.metrics.base.metric import Fill


@dataclass(frozen=True, kw_only=True)
class AverageRecall(OfBoxes):
    """The share of the true boxes that are found, as the mean over classes and overlaps: the average recall of COCO.

    Which detections are right is that of `mean_average_precision`; those that are wrong cost nothing, so that it
    goes by how many detections of an image count. Classes without a true box are left out; if all are, it is undefined.
    Source: J. Hosang et al., "What makes for effective detection proposals?" (IEEE PAMI 38, 2016); T.-Y. Lin et al.,
    "Microsoft COCO: Common Objects in Context" (ECCV 2014).

    Args:
        iou: intersection over union from which boxes match; several for the mean over them, and `0.50:0.95` for that
            of COCO, over .50, .55, … .95.
        label: only boxes of this label.
        definition: `standard`, `3.1.1`, `core-2022` or `coco`.
        area: only boxes of this area, by COCO's ranges: `small` up to 32², `medium` up to 96², or `large`. True boxes
            outside are ignored.
        max_detections: how many detections of each image and label count, the surest first.
        weighted: each image counts by its weight.
        confidence: of the interval, which leaves out images; None for a value without one.

    Raises:
        SpecError: there is no such definition or area, or a threshold is none.

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

    def taken_for(self, fill: Fill, rows: np.ndarray, unknown: bool) -> Iterator[np.ndarray]:
        """The worst is to find nothing."""
        if fill != "worst" or unknown:
            yield from super().taken_for(fill, rows, unknown)
