"""Object detection: boxes, which of them match, and the average precision of what was found.

    boxes       columns of boxes, read from tables, arrays and rows, and checked
    definition  the public definitions of average precision, by name
    matching    which detection finds which true box
    precision   recall, precision and their average, for many weightings of the images at once

A detection and a true box can match if they are in the same image and have the same label. Nothing here loops over
boxes or images.
"""

from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.definition import AREAS, DEFINITIONS, Area, Definition, Points, definition_of
from evaluand.metrics.detection.matching import Matching, match
from evaluand.metrics.detection.precision import (
    BoxPrecisionCurve,
    average_precision,
    average_precision_by_label,
    check_iou,
    curve,
    mean_over_recall,
    steps,
    steps_up,
)

__all__ = [
    "AREAS",
    "DEFINITIONS",
    "Area",
    "BoxPrecisionCurve",
    "Boxes",
    "Definition",
    "Matching",
    "Points",
    "average_precision",
    "average_precision_by_label",
    "check_iou",
    "curve",
    "definition_of",
    "match",
    "mean_over_recall",
    "steps",
    "steps_up",
]
