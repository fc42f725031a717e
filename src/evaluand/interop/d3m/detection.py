"""Average precision of object detection under the name and the definition of the problem schema 3.1.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluand.metrics.detection import BoxPrecisionCurve, Points, average_precision


def objectDetectionAP(  # noqa: N802 - its published name
    dets: Sequence[Any], gts: Sequence[Any], ovthresh: float = 0.5, use_07_metric: bool = False
) -> BoxPrecisionCurve:
    """Recall, precision and average precision as the code published with the schema gives them.

    Rows of one confidence, or without any, count in the order of the file. What that code stopped at has a value here:
    without detections it is 0, a detection in an image without true boxes is wrong, and without true boxes it is NaN.

    Args:
        dets: rows of an image, x_min, y_min, x_max, y_max and perhaps a confidence.
        gts: rows of an image, x_min, y_min, x_max, y_max.
        ovthresh: a match overlaps by more than this.
        use_07_metric: average precision at the 11 recalls of VOC 2007.

    Example:
        >>> gts = [["img_00285.png", 480, 457, 515, 529]] * 2
        >>> rec, prec, ap = objectDetectionAP([["img_00285.png", 480, 477, 508, 522, 0.1012]], gts)
        >>> rec, prec, ap
        (array([0.5]), array([1.]), 0.5)
    """
    return object_detection_ap(dets, gts, iou=ovthresh, dialect="3.1.1", points=11 if use_07_metric else None)


def object_detection_ap(
    detections: Any,
    truths: Any,
    *,
    iou: float = 0.5,
    dialect: str | None = None,
    points: Points | None = None,
) -> BoxPrecisionCurve:
    """The same under a dialect: `3.1.1`, `core-2022`, `coco`, or the well-defined one where none is named."""
    return average_precision(detections, truths, iou=iou, definition=dialect or "standard", points=points)
