"""Recall and precision along the confidence, and their average."""

import math
from typing import Any, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.labels import in_order, object_array
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.definition import Area, Definition, Points, definition_of
from evaluand.metrics.detection.matching import match


class BoxPrecisionCurve(NamedTuple):
    """The average precision and the curve it averages.

    Attributes:
        recall: after each step in order of confidence; a step is one detection, or under the definition `standard` all
            detections of one confidence.
        precision: after the same steps; ignored detections make no step.
        ap: the average precision; NaN if there is no true box.
    """

    recall: np.ndarray
    precision: np.ndarray
    ap: float


def average_precision(
    detections: Any,
    truths: Any,
    *,
    iou: float = 0.5,
    definition: str = "standard",
    points: Points | None = None,
    area: Area | None = None,
    max_detections: int | None = None,
) -> BoxPrecisionCurve:
    """The average precision of detections of one class.

    A detection is right if it overlaps a true box of its image enough and no other detection has found that box. A
    detection in an image without true boxes is wrong. Without detections recall and average are 0.

    Args:
        detections: what `Boxes.of` takes; without confidences all are equal.
        truths: the same without confidence, and optionally with `crowd`: a true box of many objects is ignored, and so
            is every detection of which it covers at least `iou`.
        iou: intersection over union from which boxes match.
        definition: `standard`, `3.1.1`, `core-2022` or `coco`; see `DEFINITIONS`.
        points: what precision is averaged over: `area` under the envelope, or 11 or 101 evenly spaced recalls; by
            default as the definition says.
        area: only boxes of this area, by the ranges of COCO: `small` up to 32², `medium` up to 96², or `large`. True
            boxes outside are ignored, and detections outside that find nothing.
        max_detections: how many detections of each image count, the most confident first; by default as the definition
            says.

    Raises:
        SpecError: there is no such definition or area, the threshold is invalid, or the boxes have labels.
        DataError: a box or a confidence is invalid; reported with row and image.

    Example:
        >>> truths = [["a.png", 0, 0, 10, 10], ["a.png", 50, 50, 60, 60]]
        >>> found = average_precision([["a.png", 0, 0, 10, 9, 0.9], ["b.png", 0, 0, 10, 10, 0.8]], truths)
        >>> found.recall, found.precision, found.ap
        (array([0.5, 0.5]), array([1. , 0.5]), 0.5)
    """
    found, expected = Boxes.of(detections, "detection"), Boxes.of(truths, "truth")
    if found.label is not None or expected.label is not None:
        raise SpecError(
            "average_precision takes boxes of one class, but these have labels; use average_precision_by_label"
        )
    of_labels = average_precision_by_label(
        found, expected, iou=iou, definition=definition, points=points, area=area, max_detections=max_detections
    )
    return of_labels[None]


def average_precision_by_label(
    detections: Any,
    truths: Any,
    *,
    iou: float = 0.5,
    definition: str = "standard",
    points: Points | None = None,
    area: Area | None = None,
    max_detections: int | None = None,
) -> dict[str | int | None, BoxPrecisionCurve]:
    """The average precision of each label, in the order of labels; arguments and errors as for `average_precision`.

    Boxes of different labels never match. The mean over the labels whose average is defined is the mean average
    precision.

    Example:
        >>> truths = {"image": [0], "box": ["0,0,9,9"], "label": ["cat"]}
        >>> detections = {"image": [0, 0], "box": ["0,0,9,9"] * 2, "label": ["cat", "dog"], "confidence": [0.5, 0.9]}
        >>> {label: found.ap for label, found in average_precision_by_label(detections, truths).items()}
        {'cat': 1.0, 'dog': nan}
    """
    detected, expected = Boxes.of(detections, "detection"), Boxes.of(truths, "truth")
    rules = definition_of(definition, points, area=area, max_detections=max_detections)
    check_iou(iou, rules)
    matching = match(detected, expected, [iou], rules)
    confidence = np.zeros(len(detected)) if detected.confidence is None else detected.confidence
    curves = {}
    for code in in_order(object_array(matching.labels)).tolist():
        rows = np.flatnonzero((matching.label == code) & ~matching.ignored[0])
        last = steps(confidence[matching.order[rows]], rules)
        total = np.array([np.count_nonzero((matching.truth_label == code) & ~matching.truth_ignored)], np.float64)
        right, seen = (column[None] for column in (np.cumsum(matching.found[0, rows])[last], last + 1.0))
        recall, precision = curve(right, seen, total, rules)
        ap = float(mean_over_recall(recall, precision, rules)[0]) if total[0] else math.nan
        curves[matching.labels[code]] = BoxPrecisionCurve(recall[0], precision[0], ap)
    return curves


def check_iou(iou: Any, definition: Definition) -> None:
    """Check a threshold; a SpecError unless it lies between 0, where everything would match, and 1."""
    number = isinstance(iou, int | float | np.floating) and not isinstance(iou, bool)
    if not number or not (0 <= iou < 1 if definition.strict else 0 < iou <= 1):
        raise SpecError(f"iou={iou!r} must lie between 0 and 1, such as 0.5")


def steps(confidence: np.ndarray, definition: Definition) -> np.ndarray:
    """Where steps of the curve end among sorted detections: after each, or after all of one confidence."""
    ends = np.ones(len(confidence), np.bool_)
    if definition.ties == "step":
        ends[:-1] = confidence[1:] != confidence[:-1]
    return np.flatnonzero(ends)


def curve(
    right: np.ndarray, seen: np.ndarray, total: np.ndarray, definition: Definition
) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision at the ends of steps, under several weightings.

    Args:
        right: the weight of what is right so far, replicates × ends.
        seen: that of all detections so far.
        total: the weight of all true boxes, by replicate.

    Returns:
        Replicates × ends each; recall is NaN if there are no true boxes.
    """
    tried = seen + np.spacing(1) if definition.ties == "image" else seen
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = right / np.where(total > 0, total, np.nan)[:, None]
        return recall, np.where(tried > 0, right / tried, 0.0)


def mean_over_recall(
    recall: np.ndarray, precision: np.ndarray, definition: Definition, slack: float = 0.0
) -> np.ndarray:
    """The mean over recall of the best precision at that recall or a higher one, by replicate; 0 without steps.

    The `slack` is for recalls that fall short by rounding of sums of weights.
    """
    n = recall.shape[1]
    if not n:
        return np.zeros(len(recall))
    envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    if definition.points == "area":
        return np.asarray((np.diff(recall, axis=1, prepend=0.0) * envelope).sum(axis=1))
    levels = np.append(definition.recalls, np.inf) - slack
    with np.errstate(invalid="ignore"):  # without true boxes
        near = np.clip((recall * (len(levels) - 2)).astype(np.int64), 0, len(levels) - 2)
    reached = near + (recall >= levels[near]) + (recall >= levels[near + 1])  # how many levels; they are evenly spaced
    return np.asarray((np.diff(reached, axis=1, prepend=0) * envelope).sum(axis=1) / (len(levels) - 1))
