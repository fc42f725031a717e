"""Object detection: boxes, which of them match, and the average precision of what was found.

    boxes       columns of boxes, read from tables, arrays and rows, and checked
    definition  the public definitions of average precision, by name
    matching    which detection finds which true box
    outlines    polygons in place of boxes, and how much they overlap
    masks       pixels in place of boxes, by pycocotools
    segments    masks without overlap, which of them match, and what each class contributes
    precision   recall, precision and their average, for many weightings of the images at once

A detection and a true box can match if they are in the same image and have the same label. Nothing here loops over
boxes or images.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.metrics.detection.boxes import Boxes as Boxes
    from evaluand.metrics.detection.definition import (
        AREAS as AREAS,
        DEFINITIONS as DEFINITIONS,
        Area as Area,
        Definition as Definition,
        Points as Points,
        definition_of as definition_of,
    )
    from evaluand.metrics.detection.matching import Matching as Matching, match as match
    from evaluand.metrics.detection.outlines import as_box as as_box, polygon_of as polygon_of
    from evaluand.metrics.detection.precision import (
        BoxPrecisionCurve as BoxPrecisionCurve,
        average_precision as average_precision,
        average_precision_by_label as average_precision_by_label,
        check_iou as check_iou,
        curve as curve,
        mean_over_recall as mean_over_recall,
        steps as steps,
        steps_up as steps_up,
    )

__getattr__, __dir__ = lazy_names(__name__)
