"""Boxes of images in tables of scores: a list of structs for each image, or the same as JSON text in stores.

The text has an object of columns for each image: `{"box": [[0, 0, 9, 9]], "label": ["cat"], "confidence": [0.9]}`.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.metric import Columns, refuse
from evaluand.metrics.detection.boxes import COORDINATES, Boxes
from evaluand.metrics.detection.matching import Images
from evaluand.metrics.detection.outlines import read_outline
from evaluand.metrics.stats.intervals import random_bits

BOX_LISTS: Final = pa.list_(
    pa.struct(
        [
            ("box", pa.list_(pa.float64(), len(COORDINATES))),
            ("label", pa.dictionary(pa.int32(), pa.string())),
            ("confidence", pa.float64()),
            ("crowd", pa.bool_()),
            ("area", pa.float64()),
        ]
    )
)
"""The boxes of images. Confidence and area are null where a box has none."""

IMAGES: Final = "images"
CONTENT: Final = "content"
"""Of each image random bits of what it holds, whatever the order of its boxes and the names of labels."""


class _Cells(NamedTuple):
    """The boxes of all images, one after the other, and the number of each image."""

    counts: np.ndarray
    corners: np.ndarray
    outline: np.ndarray | None
    label: pa.Array
    confidence: np.ndarray
    crowd: np.ndarray
    area: np.ndarray
    mask: Sequence[Any]


def read_images(columns: Mapping[str, Any]) -> Columns:
    """The images of rows of a table of the scorer `detection`.

    Args:
        columns: `truths` and `detections` as Arrow arrays; a side that is not here has no box.

    Returns:
        `IMAGES`; their `CONTENT`; and for each side that is here NaN where its cell is null.
    """
    n = len(columns[INDEX])
    empty = pa.nulls(n, pa.string())
    sides = [_side(columns, name, columns.get(name, empty)) for name in ("truths", "detections")]
    content = np.zeros(n, np.uint64)
    for number, side in enumerate(sides):
        bits = np.full(len(side), number, np.uint64)
        for seed, cells in enumerate([*side.corners, *([] if side.confidence is None else [side.confidence])]):
            bits = random_bits(bits ^ (cells + 0.0).view(np.uint64), seed)
        np.add.at(content, side.image.to_numpy(), bits)
    known = {
        name: np.where(columns[name].is_null(), np.nan, 0.0) for name in ("truths", "detections") if name in columns
    }
    return {**known, IMAGES: Images(sides[1], sides[0]), CONTENT: content, INDEX: columns[INDEX]}


def _side(columns: Mapping[str, Any], name: str, column: pa.Array) -> Boxes:
    """The boxes of one side; an image is identified by its position."""
    what = name.removesuffix("s")
    try:
        cells = _read_lists(column) if pa.types.is_list(column.type) else _read_texts(column.to_pylist())
    except (AttributeError, KeyError, TypeError, ValueError, pa.ArrowException):
        raise DataError(
            f"{name}: the column does not hold boxes with box, label and confidence; read a table of the scorer"
            " 'detection'"
        ) from None
    image = np.repeat(np.arange(len(cells.counts)), cells.counts)
    has = {
        "label": np.asarray(cells.label.is_valid()),
        "confidence": ~np.isnan(cells.confidence),
        "masks": np.array([mask is not None for mask in cells.mask], np.bool_),
    }
    for part, those in has.items():
        if those.any() and not those.all():
            lacking = np.bincount(image[~those], minlength=len(cells.counts)) > 0
            refuse(columns, lacking, lambda row, part=part: f"its {what}s have no {part}, but those of other images do")  # type: ignore[misc]
    return Boxes(
        what,
        pa.array(image),
        np.ascontiguousarray(cells.corners.T),
        cells.confidence if has["confidence"].any() else None,
        cells.label if has["label"].any() else None,
        cells.crowd,
        cells.outline,
        cells.mask if has["masks"].any() else None,
        None if np.isnan(cells.area).all() else cells.area,
    )


def _read_lists(column: pa.Array) -> _Cells:
    counts = np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
    boxes = column.flatten()
    corners = np.asarray(boxes.field("box").flatten()).reshape(-1, len(COORDINATES))
    label = boxes.field("label")
    confidence, area = (
        boxes.field(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in ("confidence", "area")
    )
    crowd = np.asarray(pc.fill_null(boxes.field("crowd"), False))
    return _Cells(counts, corners, None, label, confidence, crowd, area, [])


def _read_texts(texts: Sequence[str | None]) -> _Cells:
    images = [{"box": []} if text is None else orjson.loads(text) for text in texts]
    counts = [len(image["box"]) for image in images]

    def cells(name: str, otherwise: Any) -> list[Any]:
        each = zip(images, counts, strict=True)
        return [*chain.from_iterable(image.get(name) or [otherwise] * count for image, count in each)]

    corners, outline = _read_corners([*chain.from_iterable(image["box"] for image in images)])
    return _Cells(
        np.array(counts, np.int64),
        corners,
        outline,
        pa.array(cells("label", None)),
        np.array(cells("confidence", None), np.float64),
        np.array(cells("crowd", False), np.bool_),
        np.array(cells("area", None), np.float64),
        cells("mask", None),
    )


def _read_corners(numbers: Sequence[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """The boxes of objects × 4, and the outlines of those that are polygons."""
    if all(len(each) == len(COORDINATES) for each in numbers):
        return np.array(numbers, np.float64).reshape(-1, len(COORDINATES)), None
    _, boxes, outlines = zip(*map(read_outline, numbers), strict=True)
    outline = np.full(len(numbers), None, np.object_)
    outline[:] = outlines
    return np.array(boxes, np.float64), outline
