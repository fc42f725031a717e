"""Detected and true boxes of each image: the input of average precision for object detection.

An example is an image. This scorer validates boxes and does not match them: whether a detection is right depends on a
threshold and a definition, and its effect on the confidences of all detections in all images. So the value is empty,
and `mean_average_precision` computes the result.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError, described
from evaluand.core.parameters import Text
from evaluand.evaluation.image_objects import read_flag, read_label, read_object_mask
from evaluand.evaluation.scorer import NO_ANSWER, ExpectationScorer, Score, read_field
from evaluand.metrics.detection.masks import box_and_area
from evaluand.metrics.detection.outlines import flat_numbers, read_outline


@dataclass(frozen=True, kw_only=True)
class Detection(ExpectationScorer):
    """Columns `truths` and `detections` with the boxes of an image; `n_expected` and `n_predicted` count them.

    Output and expected are lists of objects, each with a box and a label. A detected object may have a confidence; an
    expected one may be marked as a crowd: many objects that are not annotated individually. If all objects are of one
    class and have no confidence, the list may hold the boxes alone. A box is a list of x_min, y_min, x_max and y_max
    (top left and bottom right), or text of these four separated by commas. A polygon has x and y of each corner in
    their place, in order, or is a list of pairs. An object may have a mask instead: its run lengths as in COCO's files.
    An empty list means that there are no objects, null that they are unknown: then the row abstains.

    An invalid box, such as one whose x_max is smaller than its x_min, fails the row, with the box in the reason. In one
    image all boxes have a label or none, and all detections a confidence or none.

    Attributes:
        box_key: key of the box in an object.
        label_key: key of the label, which is text or an integer.
        confidence_key: key of the confidence; higher is more confident.
        crowd_key: key of the mark for a crowd in an expected object: true or false, or 1 or 0.
        mask_key: key of the mask of an object, with `size` and `counts`; it takes the place of the box.
        area_key: key of the area of an expected object where it is not that of the box or mask, such as COCO's `area`.

    Raises:
        SpecError: a key is not text.

    Example:
        >>> found = [{"box": [0, 0, 10, 10], "label": "cat", "confidence": 0.9}]
        >>> Detection().score(found, [{"box": "0,0,10,12", "label": "cat"}]).columns["truths"]
        {'box': [[0.0, 0.0, 10.0, 12.0]], 'label': ['cat']}
    """

    kind = "detection"
    version = 1
    cheap = True
    columns: ClassVar = {"truths": "json", "detections": "json", "n_expected": "int64", "n_predicted": "int64"}
    readable = tuple(columns)

    box_key: Text = "box"
    label_key: Text = "label"
    confidence_key: Text = "confidence"
    crowd_key: Text = "crowd"
    mask_key: Text = "mask"
    area_key: Text = "area"

    def grade(self, output: Any, truth: dict[str, list[Any]], *others: Any) -> Score:
        """The boxes of both sides as columns."""
        if output is None:
            return self.abstained(NO_ANSWER.reason, truth)
        truths, detections = truth, self._boxes("detected", output)
        if truths["box"] and detections["box"] and ("label" in truths) != ("label" in detections):
            with_, without = ("expected", "detected") if "label" in truths else ("detected", "expected")
            raise DataError(f"the {with_} boxes have labels and the {without} ones have none; give both, or neither")
        found = {"detections": detections, "n_predicted": len(detections["box"])}
        return Score(columns=self.columns_of(truths) | found)

    def read_expected(self, expected: Any) -> dict[str, list[Any]]:
        return self._boxes("expected", expected)

    def columns_of(self, truth: dict[str, list[Any]]) -> dict[str, Any]:
        return {"truths": truth, "n_expected": len(truth["box"])}

    def _boxes(self, what: str, value: Any) -> dict[str, list[Any]]:
        """The boxes of a list as columns, without the columns that no box has."""
        if not isinstance(value, list | tuple):
            raise DataError(f"the {what} boxes are {described(value)}, not a list of boxes")
        found: dict[str, list[Any]] = {name: [] for name in ("box", "label", "confidence", "crowd", "mask", "area")}
        for place, item in enumerate(value):
            name = f"{what} box {place}"
            parts = item if isinstance(item, Mapping) else {self.box_key: item}
            mask = parts.get(self.mask_key)
            if mask is None:
                read_field(name, parts, self.box_key, "; name its keys with box_key, label_key …")
            found["mask"].append(None if mask is None else read_object_mask(name, mask))
            around = None if mask is None else box_and_area(found["mask"][-1])[0]
            found["box"].append(around or _box(name, parts[self.box_key]))
            found["area"].append(_area(name, parts.get(self.area_key)) if what == "expected" else None)
            found["label"].append(read_label(name, parts.get(self.label_key)))
            confidence = parts.get(self.confidence_key)
            found["confidence"].append(None if confidence is None else _number(f"{name}: confidence", confidence))
            found["crowd"].append(what == "expected" and bool(read_flag(f"{name}: crowd", parts.get(self.crowd_key))))
        if not any(area is not None for area in found["area"]):
            del found["area"]
        for column in ("label", "confidence", "mask"):
            lacking = [place for place, cell in enumerate(found[column]) if cell is None]
            if 0 < len(lacking) < len(value):
                raise DataError(f"{what} box {lacking[0]} has no {column}, but other boxes of its image do")
            if lacking or not value:
                del found[column]
        if not any(found["crowd"]):
            del found["crowd"]
        return found


_SIDES: Final = ("x_min", "y_min", "x_max", "y_max")
_LARGEST: Final = 1e150


def _box(what: str, value: Any) -> list[float]:
    cells = value.split(",") if isinstance(value, str) else flat_numbers(value)
    if not isinstance(cells, list | tuple):
        raise DataError(f"{what} is {described(value)}, not {', '.join(_SIDES)}")
    if len(cells) != len(_SIDES):
        return _polygon(what, cells)
    box = [_number(f"{what}: {name}", cell) for name, cell in zip(_SIDES, cells, strict=True)]
    for axis, least, most in zip("xy", box[:2], box[2:], strict=True):
        if 0 < most - least < 1 / _LARGEST:
            raise DataError(f"{what}: {axis}_max exceeds {axis}_min by only {most - least:g}; the box has no area")
        if most < least:
            order = f"a box is {', '.join(_SIDES)}, and not width and height"
            raise DataError(f"{what}: {axis}_max is {most:g} and smaller than {axis}_min, {least:g}; {order}")
    return box


def _polygon(what: str, cells: Sequence[Any]) -> list[float]:
    """A polygon's numbers, or those of the box that it is."""
    numbers = [_number(f"{what}: coordinate {place}", cell) for place, cell in enumerate(cells)]
    fault, box, outline = read_outline(numbers)
    if fault is not None:
        raise DataError(f"{what} {fault}")
    return box if outline is None else numbers


def _area(what: str, value: Any) -> float | None:
    if value is None:
        return None
    area = _number(f"{what}: area", value)
    if area < 0:
        raise DataError(f"{what}: area is {area:g}; give pixels")
    return area


def _number(what: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) < _LARGEST:
        raise DataError(f"{what} is {described(value)}, not a finite number")
    return number
