"""Masks: which pixels an object covers, run-length encoded as in COCO's files, by pycocotools.

A mask is `{"size": [height, width], "counts": …}`, counts a text (compressed) or a list of the lengths of runs by
column, beginning with the pixels outside. Polygons become masks exactly as pycocotools makes them.

A segment is a mask with a label. The segments of one side do not overlap. Pixels that no true segment covers are void:
what is predicted there counts neither as right nor as wrong.
Source: A. Kirillov et al., "Panoptic Segmentation" (CVPR 2019), with the rules for void pixels and crowds of the
authors' panopticapi.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np

from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.detection.outlines import FEWEST

_MOST_PIXELS: Final = 2**32 - 1  # pycocotools counts in 32 bits
_MOST_BYTES: Final = 7  # of a number: 35 bits
_LONGEST: Final = 5_000_000  # pixels along the sides of a polygon, which take 200 MB to draw


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
            _check_size(height, width)
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
            _check_size(height, width)
            rle = tools.merge(tools.frPyObjects(_polygons(value), height, width))
        covered = _pixels(rle["counts"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"is no mask: {error}; give size and counts as in COCO's files") from None
    if covered != height * width:
        raise DataError(f"the runs of a mask cover {covered} pixels, but its size is {height} × {width}")
    return {"size": [height, width], "counts": rle["counts"].decode("ascii")}


def _polygons(value: Any) -> list[list[float]]:
    """The numbers of polygons that pycocotools' C code can read.

    It draws five points for each pixel along the sides. Without a corner it reads memory that is not its own.

    Raises:
        DataError: there is no polygon, or one without corners, or with corners that are too far away to be drawn.
    """
    polygons = [list(map(float, each)) for each in value]
    if not polygons or len(polygons[0]) < FEWEST:  # by whose length pycocotools decides what all of them are
        raise DataError("has no polygon of three corners or more; give x and y of each corner")
    for numbers in polygons:
        corners = [(0.0, 0.0), *zip(numbers[::2], numbers[1::2], strict=False)]
        length = sum(abs(x - left) + abs(y - top) for (left, top), (x, y) in pairwise(corners))
        if len(corners) == 1:
            raise DataError("has a polygon without corners; give x and y of each corner")
        if not length <= _LONGEST:
            raise DataError(
                f"has a polygon whose corners are {length:g} pixels apart in all; at most {_LONGEST:,} can be"
            )
    return polygons


def _check_size(height: int, width: int) -> None:
    if min(height, width) < 0 or height * width > _MOST_PIXELS:
        raise DataError(f"a mask of {height} × {width} pixels is not possible; at most {_MOST_PIXELS} are")


def _pixels(counts: bytes) -> int:
    """The number of pixels that compressed runs cover, so that damaged ones never reach pycocotools' C code."""
    byte = np.frombuffer(counts, np.uint8).astype(np.int64) - 48
    if not len(byte):
        return 0
    more = (byte & 0x20) > 0
    if more[-1]:
        raise ValueError("its counts end within a number")
    last = np.flatnonzero(~more)
    first = np.append(0, last[:-1] + 1)
    length = last - first + 1
    if ((byte < 0) | (byte >= 64)).any() or length.max() > _MOST_BYTES:
        raise ValueError("its counts are not run lengths")
    shift = 5 * (np.arange(len(byte)) - np.repeat(first, length))
    runs = np.add.reduceat((byte & 0x1F) << shift, first)
    runs -= np.where(byte[last] & 0x10, 1 << 5 * length, 0)
    runs[1::2], runs[2::2] = np.cumsum(runs[1::2]), np.cumsum(runs[2::2])  # each is the difference to the one before
    if runs.min() < 0 or runs.max() > _MOST_PIXELS:
        raise ValueError("its counts are not run lengths")
    return int(runs.sum())


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


def areas_of(masks: Sequence[Any]) -> tuple[np.ndarray, int]:
    """The pixels of each of several masks of one size, and those that they cover together."""
    if not masks:
        return np.zeros(0, np.int64), 0
    tools, runs = _library(), [_rle(mask) for mask in masks]
    return np.asarray(tools.area(runs), np.int64), int(tools.area(tools.merge(runs)))


def intersections(masks: Sequence[Any], others: Sequence[Any]) -> np.ndarray:
    """The pixels that every two masks of one size share, masks × others."""
    if not masks or not others:
        return np.zeros((len(masks), len(others)), np.int64)
    tools, runs = _library(), [_rle(mask) for mask in others]
    share = tools.iou(runs, [_rle(mask) for mask in masks], [1] * len(masks))  # of a crowd: the share of the other
    pixels = np.asarray(share, np.float64) * np.asarray(tools.area(runs), np.float64)[:, None]
    return np.asarray(np.rint(pixels).astype(np.int64).T)


def _rle(mask: Mapping[str, Any]) -> dict[str, Any]:
    return {"size": mask["size"], "counts": cast(str, mask["counts"]).encode("ascii")}


def _library() -> Any:
    try:
        from pycocotools import mask
    except ImportError:
        raise SpecError("masks need pycocotools: pip install 'evaluand[coco]'") from None
    return mask


SUMS: Final = ("matched", "overlap", "missed", "extra", "intersection", "union", "pixels")
"""What a class contributes: matched pairs and the sum of their overlaps, true segments that were missed, predicted ones
that are wrong; and the pixels of both sides, of either, and of the true side, all without void."""

_OVERLAP: Final = 0.5  # above it a segment can match only one


@dataclass(frozen=True)
class Segments:
    """The segments of one side of an image.

    Attributes:
        what: how messages call the side, such as `expected`.
        labels: of each segment.
        masks: of each segment, as `read_mask` returns them.
        crowd: which segments are groups whose objects were not annotated individually.
        thing: whether each is a countable thing (and not stuff such as sky); None where unknown.
    """

    what: str
    labels: Sequence[str | int] = ()
    masks: Sequence[dict[str, Any]] = field(default=(), repr=False)
    crowd: Sequence[bool] = ()
    thing: Sequence[bool | None] = ()


def contributions(truths: Segments, predicted: Segments) -> dict[str, list[Any]]:
    """What each class of an image contributes to panoptic quality and to mean intersection over union.

    Returns:
        Columns with an entry for each class: `label`, `SUMS`, and `thing` where it is known.

    Raises:
        DataError: masks differ in size, overlap, or cover nothing; a class is both a thing and stuff.

    Example:
        >>> left = {"size": [1, 4], "counts": "022"}
        >>> sides = [Segments(what, ["cat"], [left], [False], [None]) for what in ("expected", "predicted")]
        >>> contributions(*sides)["matched"]
        [1]
    """
    sizes = {tuple(mask["size"]): side.what for side in (predicted, truths) for mask in side.masks}
    if len(sizes) > 1:
        listed = " and ".join(f"{height} × {width} ({what})" for (height, width), what in sizes.items())
        raise DataError(f"the masks of one image have the sizes {listed}; give all the size of the image")
    true_area, area = (_areas(side) for side in (truths, predicted))
    shared = intersections(truths.masks, predicted.masks)
    void = area - shared.sum(axis=0)
    same = np.array([[one == other for other in predicted.labels] for one in truths.labels], np.bool_)
    same = same.reshape(shared.shape)
    crowd = np.array(truths.crowd, np.bool_)
    overlap = shared / (true_area[:, None] + (area - void) - shared)
    match = same & ~crowd[:, None] & (overlap > _OVERLAP)
    ignored = (void + _in_crowd(truths, predicted, shared)) / area > _OVERLAP

    labels = [*dict.fromkeys((*truths.labels, *predicted.labels))]
    place = {label: number for number, label in enumerate(labels)}
    of_truth, of_prediction = (
        np.array([place[each] for each in side.labels], np.int64) for side in (truths, predicted)
    )

    def count(of: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.bincount(of, values, minlength=len(labels))

    both = count(of_truth, (shared * same).sum(axis=1))
    pixels = count(of_truth, true_area)
    found = {
        "matched": count(of_truth, match.any(axis=1)),
        "overlap": count(of_truth, np.where(match, overlap, 0.0).sum(axis=1)),
        "missed": count(of_truth, ~match.any(axis=1) & ~crowd),
        "extra": count(of_prediction, ~match.any(axis=0) & ~ignored),
        "intersection": both,
        "union": pixels + count(of_prediction, area - void) - both,
        "pixels": pixels,
    }
    columns: dict[str, list[Any]] = {"label": labels}
    columns |= {name: (each if name == "overlap" else each.astype(np.int64)).tolist() for name, each in found.items()}
    things = _things(truths, predicted)
    return columns | ({"thing": [things[label] for label in labels]} if things else {})


def _areas(side: Segments) -> np.ndarray:
    """The pixels of each segment.

    Raises:
        DataError: a segment has none, or two overlap.
    """
    area, together = areas_of(side.masks)
    if (area == 0).any():
        raise DataError(f"{side.what} segment {int(np.argmin(area))} covers no pixel; leave it out")
    if area.sum() > together:
        both = np.triu(intersections(side.masks, side.masks), 1)
        one, other = np.argwhere(both)[0].tolist()
        raise DataError(
            f"{side.what} segments {one} and {other} overlap in {both[one, other]} pixels; give each pixel one label"
        )
    return area


def _in_crowd(truths: Segments, predicted: Segments, shared: np.ndarray) -> np.ndarray:
    """The pixels that each predicted segment has in the crowd of its class: the last one, as in panopticapi."""
    last = {label: place for place, label in enumerate(truths.labels) if truths.crowd[place]}
    places = [last.get(label) for label in predicted.labels]
    return np.array([0 if crowd is None else shared[crowd, place] for place, crowd in enumerate(places)], np.int64)


def _things(truths: Segments, predicted: Segments) -> dict[str | int, bool]:
    """Label → whether it is a thing; empty where no segment says so."""
    found: dict[str | int, bool] = {}
    for side in (truths, predicted):
        for label, thing in zip(side.labels, side.thing, strict=True):
            if thing is not None and found.setdefault(label, thing) != thing:
                raise DataError(f"the label {label!r} is a thing in one segment and not in another; give one of them")
    lacking = [label for side in (truths, predicted) for label in side.labels if label not in found]
    if found and lacking:
        raise DataError(f"segments with the label {lacking[0]!r} do not say whether they are things, but others do")
    return found
