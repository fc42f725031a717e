"""Public definitions of average precision in object detection, and how they differ."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np

from evaluand.core.errors import SpecError, nearest

Points = Literal["area", 11, 101]
"""What precision is averaged over: the area under its envelope, or 11 or 101 evenly spaced recalls."""

Area = Literal["small", "medium", "large"]

AREAS: Final = {"small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, math.inf)}
"""The smallest and the largest area of a box in each of COCO's ranges, both included."""


@dataclass(frozen=True)
class Definition:
    """One definition of average precision.

    Attributes:
        pixel: added to the width and height of every box and overlap: 1 if coordinates are pixels, and a box includes
            its first and its last.
        strict: a match must overlap by more than the threshold; else by at least as much.
        only_best: a detection can find only the true box it overlaps most, and is wrong if that was found before;
            else it finds the remaining true box it overlaps most.
        ties: the order of equal confidences. `step`: none; they are one step of the curve, and those that overlap more
            are matched first. `file`: the earlier row first. `box`: the smaller coordinates, then the earlier row.
            `image`: the smaller image, then the earlier row.
        points: what precision is averaged over.
        rounded: recalls and thresholds reproduce the rounding errors of the code that defined them.
        most: how many detections of each image and label count, the most confident first.
        area: the smallest and the largest area of boxes that count: a true box outside is ignored, and so is a
            detection outside that finds nothing.
        takes: which boxes are accepted. `proper`: valid ones. `inverted`: inverted ones too, which overlap nothing.
            `anything`: also NaN; such boxes overlap nothing, and nothing is found in an image whose true boxes have
                NaN.
    """

    pixel: int = 0
    strict: bool = False
    only_best: bool = False
    ties: Literal["step", "file", "box", "image"] = "step"
    points: Points = "area"
    rounded: bool = False
    most: int | None = None
    takes: Literal["proper", "inverted", "anything"] = "proper"
    area: tuple[float, float] = (-math.inf, math.inf)

    def outside(self, area: np.ndarray) -> np.ndarray:
        """Which areas of objects lie outside the range that counts."""
        return np.asarray((area < self.area[0]) | (area > self.area[1]))

    def reaches(self, overlap: np.ndarray, limit: float) -> np.ndarray:
        """Which overlaps are large enough for a match."""
        return np.asarray(overlap > limit if self.strict else overlap >= limit)

    @cached_property
    def recalls(self) -> np.ndarray:
        """The recalls at which precision is read."""
        if not self.rounded:
            return np.arange(int(self.points)) / (int(self.points) - 1)
        return np.arange(0.0, 1.1, 0.1) if self.points == 11 else np.linspace(0.0, 1.0, int(self.points))

    @property
    def over_thresholds(self) -> tuple[float, ...]:
        """The overlaps .50, .55, … .95 of COCO's mean."""
        return tuple((np.linspace(0.5, 0.95, 10) if self.rounded else np.arange(50, 100, 5) / 100).tolist())


_D3M: Final = Definition(pixel=1, strict=True, only_best=True, ties="file", rounded=True, takes="anything")
DEFINITIONS: Final = {
    "standard": Definition(),
    "3.1.1": _D3M,
    "core-2022": replace(_D3M, ties="box"),
    "coco": Definition(ties="image", points=101, rounded=True, most=100, takes="inverted", area=(0.0, 1e10)),
}
"""`standard`: independent of the order of rows. `3.1.1`: the code published with the D3M problem schema 3.1.1, after
that of PASCAL VOC (M. Everingham et al., "The PASCAL Visual Object Classes (VOC) Challenge", IJCV 88, 2010).
`core-2022`: D3M's core package 2022.5.5. `coco`: pycocotools (T.-Y. Lin et al., "Microsoft COCO: Common Objects in
Context", ECCV 2014)."""


def definition_of(name: Any, points: Any = None, *, area: Any = None, max_detections: Any = None) -> Definition:
    """A definition by name, optionally with other points, an area or a limit of detections.

    Raises:
        SpecError: the name, the points, the area or the limit is unknown or invalid.

    Example:
        >>> definition_of("coco").points, definition_of("3.1.1", 11).points
        (101, 11)
    """
    if not isinstance(name, str) or name not in DEFINITIONS:
        hint = nearest(name, DEFINITIONS) if isinstance(name, str) else ""
        raise SpecError(f"definition={name!r} must be one of {', '.join(DEFINITIONS)}{hint}")
    if points not in (None, "area", 11, 101) or isinstance(points, float):
        raise SpecError(f"points={points!r} does not work here; choose one of 'area', 11, 101")
    if area is not None and (not isinstance(area, str) or area not in AREAS):
        raise SpecError(f"area={area!r} must be one of {', '.join(get_args(Area))}; omit it for boxes of any area")
    if max_detections is not None and (type(max_detections) is not int or max_detections < 1):
        raise SpecError(f"max_detections={max_detections!r} must be an integer of at least 1")
    changes = {"points": points, "area": None if area is None else AREAS[area], "most": max_detections}
    return replace(DEFINITIONS[name], **{part: value for part, value in changes.items() if value is not None})
