"""The boxes of an image for the examples of a report: right, missed or spurious, and the image if it is available.

An image is embedded only if the example names a file in the folder of the dataset or below, the file is small, and its
first bytes are those of an image: a report reads nothing else from the disk.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core.errors import DataError
from evaluand.metrics.detection import Boxes, definition_of, match
from evaluand.report.facts.base import Facts

KIND: Final = "detection"
"""The scorer whose columns `truths` and `detections` hold the boxes."""

OVERLAP: Final = 0.5
_BOXES: Final = 200
_LABEL: Final = 80
_IMAGE_BYTES: Final = 250_000
_TOTAL_BYTES: Final = 4_000_000  # of a task
_FIRST_BYTES: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
_RIGHT, _MISSED, _SPURIOUS, _IGNORED = range(4)


def frames(truths: Sequence[str | None], detections: Sequence[str | None]) -> list[Facts | None]:
    """Matches the boxes of some images, by the standard definition at an overlap of 0.5.

    Args:
        truths: the scorer's column, as JSON text.
        detections: the same; None for an image without an answer.

    Returns:
        For each image `boxes`, each `[x_min, y_min, x_max, y_max, label, 0 right, 1 missed or 2 spurious, confidence]`,
        the `counts` of these kinds, and `more`, the number of boxes left out; None for an image without boxes. Crowds
        and detections in them are ignored.

    Example:
        >>> [found] = frames(['{"box":[[0,0,9,9],[20,20,29,29]]}'], ['{"box":[[0,0,9,8]],"confidence":[0.9]}'])
        >>> found["boxes"]
        [[0.0, 0.0, 9.0, 8.0, None, 0, 0.9], [20.0, 20.0, 29.0, 29.0, None, 1, None]]
    """
    try:
        expected = _Side.parse("truth", truths)
        answered = [text if truth else None for text, truth in zip(detections, truths, strict=True)]
        detected = _Side.parse("detection", answered)
        matching = match(detected.boxes, expected.boxes, (OVERLAP,), definition_of("standard"))
    except (DataError, KeyError, TypeError, ValueError, pa.ArrowException):  # not a table of the scorer `detection`
        return [None] * len(truths)
    kind = np.full(len(detected.boxes), _SPURIOUS)
    kind[matching.order] = np.where(matching.found[0], _RIGHT, np.where(matching.ignored[0], _IGNORED, _SPURIOUS))
    answers = detected.list_boxes(kind)
    missed = expected.list_boxes(np.where(matching.met[0] | matching.truth_ignored, _IGNORED, _MISSED))
    return [
        _frame([box for box in chain(found, own) if box[5] != _IGNORED])
        for found, own in zip(answers, missed, strict=True)
    ]


def _frame(boxes: list[list[Any]]) -> Facts | None:
    boxes.sort(key=lambda box: box[5])
    counts = [sum(box[5] == kind for box in boxes) for kind in (_RIGHT, _MISSED, _SPURIOUS)]
    return {"boxes": boxes[:_BOXES], "counts": counts, "more": max(len(boxes) - _BOXES, 0)} if boxes else None


class _Side(NamedTuple):
    """The boxes of one side in all images, image by image, and the position where each image ends."""

    boxes: Boxes
    ends: np.ndarray
    labels: list[Any]
    confidences: list[float | None]

    @classmethod
    def parse(cls, what: str, texts: Sequence[str | None]) -> _Side:
        images = [{"box": []} if text is None else orjson.loads(text) for text in texts]
        counts = [len(one["box"]) for one in images]
        labels, confidences = (
            list(chain.from_iterable(one.get(name) or [None] * n for one, n in zip(images, counts, strict=True)))
            for name in ("label", "confidence")
        )
        corners = np.array(list(chain.from_iterable(one["box"] for one in images)), np.float64).reshape(-1, 4)
        boxes = Boxes(
            what,
            pa.array(np.repeat(np.arange(len(images)), counts)),
            np.ascontiguousarray(corners.T),
            np.array([0.0 if confidence is None else confidence for confidence in confidences]),
            pa.array(labels) if any(label is not None for label in labels) else None,
            np.array(
                [flag for one, n in zip(images, counts, strict=True) for flag in one.get("crowd") or [False] * n], bool
            ),
        )
        return cls(boxes, np.cumsum(counts, dtype=np.int64), labels, confidences)

    def list_boxes(self, kinds: np.ndarray) -> list[list[list[Any]]]:
        """The boxes of each image."""
        names = [None if label is None else str(label)[:_LABEL] for label in self.labels]
        columns = zip(self.boxes.corners.T.tolist(), names, kinds.tolist(), self.confidences, strict=True)
        rows = [[*corners, name, kind, confidence] for corners, name, kind, confidence in columns]
        return [rows[start:end] for start, end in pairwise([0, *self.ends.tolist()])]


class Images:
    """The images in the folder of a dataset's file, up to a total size.

    Args:
        source: the file the dataset was read from, if any.
    """

    def __init__(self, source: str | None) -> None:
        file = None if source is None else Path(source)
        self._folder = file.resolve().parent if file is not None and file.is_file() else None
        self._left = _TOTAL_BYTES

    def read(self, input: Any) -> str | None:
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
        except (OSError, ValueError):  # not a valid file name
            return b""


def _names(input: Any) -> Iterator[str]:
    values = input.values() if isinstance(input, Mapping) else [input]
    ends = (".png", ".jpg", ".jpeg", ".gif")
    yield from (value for value in values if isinstance(value, str) and value.lower().endswith(ends))
