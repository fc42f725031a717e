"""Masks: which pixels an object covers, run-length encoded as in COCO's files, by pycocotools.

A mask is `{"size": [height, width], "counts": …}`, counts a text (compressed) or a list of the lengths of runs by
column, beginning with the pixels outside. Polygons become masks exactly as pycocotools makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from evaluand.core.errors import DataError, SpecError


def read_mask(value: Any, size: Sequence[int] | None = None) -> dict[str, Any]:
    """A mask in its compressed form.

    Args:
        value: a mask, or a list of polygons of one object, which need the size of the image.
        size: height and width.

    Raises:
        SpecError: pycocotools is not installed.
        DataError: the value is no mask.

    Example:
        >>> read_mask({"size": [2, 2], "counts": [1, 2, 1]})
        {'size': [2, 2], 'counts': '121'}
    """
    tools = _library()
    try:
        if isinstance(value, Mapping):
            height, width = (int(side) for side in value["size"])
            counts = value["counts"]
            if isinstance(counts, str):
                rle: Any = {"size": [height, width], "counts": counts.encode("ascii")}
            else:
                runs = [int(run) for run in counts]
                if sum(runs) != height * width or min(runs, default=0) < 0:
                    raise DataError(f"the runs of a mask cover {sum(runs)} pixels, but its size is {height} × {width}")
                rle = tools.frPyObjects({"size": [height, width], "counts": runs}, height, width)
        else:
            if size is None:
                raise DataError("polygons of a mask need the size of the image")
            height, width = size
            rle = tools.merge(tools.frPyObjects([list(map(float, each)) for each in value], height, width))
        covered = _pixels(rle["counts"])
    except (KeyError, TypeError, ValueError, UnicodeEncodeError) as error:
        raise DataError(f"is no mask: {error}; give size and counts as in COCO's files") from None
    if covered != height * width:
        raise DataError(f"the runs of a mask cover {covered} pixels, but its size is {height} × {width}")
    return {"size": [height, width], "counts": rle["counts"].decode("ascii")}


def _pixels(counts: bytes) -> int:
    """The number of pixels that compressed runs cover, so that damaged ones never reach pycocotools' C code."""
    total, place, runs = 0, 0, list[int]()
    while place < len(counts):
        value, shift, more = 0, 0, True
        while more:
            if place >= len(counts):
                raise ValueError("its counts end within a number")
            byte = counts[place] - 48
            if not 0 <= byte < 64 or shift > 60:
                raise ValueError("its counts are not run lengths")
            value |= (byte & 0x1F) << shift
            more, place, shift = bool(byte & 0x20), place + 1, shift + 5
            if not more and byte & 0x10:
                value -= 1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if value < 0:
            raise ValueError("its counts are not run lengths")
        runs.append(value)
        total += value
    return total


def box_and_area(mask: Mapping[str, Any]) -> tuple[list[float], float]:
    """The smallest box around a mask, and the number of its pixels."""
    tools = _library()
    left, top, width, height = tools.toBbox(_rle(mask)).tolist()
    return [left, top, left + width, top + height], float(tools.area(_rle(mask)))


def overlaps(masks: Sequence[Any], others: Sequence[Any], crowd: np.ndarray) -> np.ndarray:
    """Intersection over union of every two masks of an image; over the first for a crowd.

    Raises:
        DataError: they have different sizes.
    """
    sizes = {tuple(mask["size"]) for mask in (*masks, *others)}
    if len(sizes) > 1:
        found = " and ".join(f"{height} × {width}" for height, width in sorted(sizes))
        raise DataError(f"masks of one image have the sizes {found}; give all the size of the image")
    found = _library().iou([_rle(m) for m in masks], [_rle(m) for m in others], crowd.astype(np.uint8).tolist())
    return np.asarray(found, np.float64).reshape(len(masks), len(others))


def union_and_intersection(masks: Sequence[Any], others: Sequence[Any]) -> tuple[float, float]:
    """The pixels that two groups of masks of one image cover together, and those that both cover."""
    tools = _library()
    one, two = (tools.merge([_rle(m) for m in group]) if group else None for group in (masks, others))
    areas = [0.0 if each is None else float(tools.area(each)) for each in (one, two)]
    if one is None or two is None:
        return sum(areas), 0.0
    both = float(tools.area(tools.merge([one, two], intersect=True)))
    return areas[0] + areas[1] - both, both


def _rle(mask: Mapping[str, Any]) -> dict[str, Any]:
    return {"size": mask["size"], "counts": cast(str, mask["counts"]).encode("ascii")}


def _library() -> Any:
    try:
        from pycocotools import mask
    except ImportError:
        raise SpecError("masks need pycocotools: pip install evaluand[coco]") from None
    return mask
