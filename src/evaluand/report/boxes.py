"""The boxes of an image, for the examples of a report: right, missed or spurious, and the image where it is at hand.

An image is embedded only if the example names a file beside the dataset's own (in its folder or below), if that is
small, and if its first bytes are those of an image: a report takes nothing else from the disk.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from evaluand.detection import Boxes, definition_of, match
from evaluand.errors import DataError

KIND: Final = "detection"
"""The scorer whose columns `truths` and `detections` hold the boxes."""

OVERLAP: Final = 0.5
_BOXES: Final = 200
_LABEL: Final = 80
_IMAGE_BYTES: Final = 250_000
_TOTAL_BYTES: Final = 4_000_000  # of a task
_FIRST_BYTES: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
_RIGHT, _MISSED, _SPURIOUS = range(3)


def frame(truths: str | None, detections: str | None) -> dict[str, Any] | None:
    """What of the boxes of an image was found, by the standard definition at an overlap of a half.

    Args:
        truths: the scorer's column, as JSON text.
        detections: likewise; None for an image without an answer.

    Returns:
        `boxes`, each `[x_min, y_min, x_max, y_max, label, 0 right, 1 missed or 2 spurious, confidence]`, the counts of
        these kinds, and `more`, how many boxes are not told; None where there is nothing to tell.

    Example:
        >>> frame('{"box":[[0,0,9,9],[20,20,29,29]]}', '{"box":[[0,0,9,8]],"confidence":[0.9]}')["boxes"]
        [[0.0, 0.0, 9.0, 8.0, None, 0, 0.9], [20.0, 20.0, 29.0, 29.0, None, 1, None]]
    """
    if truths is None:
        return None
    try:
        there, given = _read("truth", truths), _read("detection", detections or '{"box":[]}')
        matching = match(given, there, (OVERLAP,), definition_of("standard"))
    except (DataError, KeyError, TypeError, ValueError):  # a table that was made by something else
        return None
    right = np.zeros(len(given), np.bool_)
    right[matching.order] = matching.found[0]
    found = [
        *_told(given, [_RIGHT if hit else _SPURIOUS for hit in right.tolist()]),
        *(box for box in _told(there, [_RIGHT if met else _MISSED for met in matching.met[0].tolist()]) if box[5]),
    ]
    found.sort(key=lambda box: box[5])
    counts = [sum(box[5] == kind for box in found) for kind in (_RIGHT, _MISSED, _SPURIOUS)]
    return {"boxes": found[:_BOXES], "counts": counts, "more": max(len(found) - _BOXES, 0)} if found else None


class Images:
    """The images beside the file of a dataset, until what was taken of them is large.

    Args:
        source: the file the dataset was read from, where there is one.
    """

    def __init__(self, source: str | None) -> None:
        file = None if source is None else Path(source)
        self._folder = file.resolve().parent if file is not None and file.is_file() else None
        self._left = _TOTAL_BYTES

    def of(self, input: Any) -> str | None:
        """The image that an input names, as a data URI."""
        for name in _names(input) if self._folder is not None else ():
            data = self._read(name)
            kind = next((kind for first, kind in _FIRST_BYTES.items() if data.startswith(first)), None)
            if kind is not None:
                self._left -= len(data)
                return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        return None

    def _read(self, name: str) -> bytes:
        assert self._folder is not None
        try:
            path = (self._folder / name).resolve()
            if not path.is_relative_to(self._folder) or not path.is_file():
                return b""
            return path.read_bytes() if path.stat().st_size <= min(_IMAGE_BYTES, self._left) else b""
        except (OSError, ValueError):  # no name that a file can have
            return b""


def _names(input: Any) -> Iterator[str]:
    values = input.values() if isinstance(input, Mapping) else [input]
    ends = (".png", ".jpg", ".jpeg", ".gif")
    yield from (value for value in values if isinstance(value, str) and value.lower().endswith(ends))


def _read(what: str, text: str) -> Boxes:
    held = orjson.loads(text)
    corners = np.array(held["box"], np.float64).reshape(-1, 4)
    confidence = None if held.get("confidence") is None else np.array(held["confidence"], np.float64)
    label = None if held.get("label") is None else pa.array(held["label"])
    return Boxes(what, pa.array(np.zeros(len(corners), np.int64)), np.ascontiguousarray(corners.T), confidence, label)


def _told(boxes: Boxes, kinds: list[int]) -> Iterator[list[Any]]:
    labels = [None] * len(boxes) if boxes.label is None else boxes.label.to_pylist()
    sure = [None] * len(boxes) if boxes.confidence is None else boxes.confidence.tolist()
    for corners, label, kind, confidence in zip(boxes.corners.T.tolist(), labels, kinds, sure, strict=True):
        yield [*corners, None if label is None else str(label)[:_LABEL], kind, confidence]
