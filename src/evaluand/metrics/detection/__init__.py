"""Object detection: boxes, which of them match, and the average precision of what was found.

    boxes       columns of boxes, read from tables, arrays and rows, and checked
    definition  the public definitions of average precision, by name
    matching    which detection finds which true box
    precision   recall, precision and their average, for many weightings of the images at once

A detection and a true box can match if they are in the same image and have the same label. Nothing here loops over
boxes or images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.metrics.detection.boxes import Boxes as Boxes
    from evaluand.metrics.detection.definition import AREAS as AREAS
    from evaluand.metrics.detection.definition import DEFINITIONS as DEFINITIONS
    from evaluand.metrics.detection.definition import Area as Area
    from evaluand.metrics.detection.definition import Definition as Definition
    from evaluand.metrics.detection.definition import Points as Points
    from evaluand.metrics.detection.definition import definition_of as definition_of
    from evaluand.metrics.detection.matching import Matching as Matching
    from evaluand.metrics.detection.matching import match as match
    from evaluand.metrics.detection.precision import BoxPrecisionCurve as BoxPrecisionCurve
    from evaluand.metrics.detection.precision import average_precision as average_precision
    from evaluand.metrics.detection.precision import average_precision_by_label as average_precision_by_label
    from evaluand.metrics.detection.precision import check_iou as check_iou
    from evaluand.metrics.detection.precision import curve as curve
    from evaluand.metrics.detection.precision import mean_over_recall as mean_over_recall
    from evaluand.metrics.detection.precision import steps as steps
    from evaluand.metrics.detection.precision import steps_up as steps_up

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "boxes": ("Boxes",),
        "definition": (
            "AREAS",
            "DEFINITIONS",
            "Area",
            "Definition",
            "Points",
            "definition_of",
        ),
        "matching": (
            "Matching",
            "match",
        ),
        "precision": (
            "BoxPrecisionCurve",
            "average_precision",
            "average_precision_by_label",
            "check_iou",
            "curve",
            "mean_over_recall",
            "steps",
            "steps_up",
        ),
    },
)
