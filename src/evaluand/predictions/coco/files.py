"""Instances and results of COCO, checked column by column and arranged by image.

Instances are a JSON object with `images`, `annotations` and `categories`; results a list of detections, or an object
whose `annotations` are. A box is `[x, y, width, height]`; an outline, in `segmentation`, is a list of polygons or
run lengths.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeGuard

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core.errors import DataError, Fault, SpecError, kind_of, plural, pluralize
from evaluand.metrics.detection.masks import areas_of, read_mask
from evaluand.metrics.detection.tables import BOX_LISTS

Shape = Literal["boxes", "masks", "semantic"]
"""What is scored: boxes or masks of objects, or a region for each image and category."""

_MOST_FAULTS: Final = 100
_LARGEST: Final = 1e150  # areas of larger boxes overflow
_FEWEST_SUSPECTS: Final = 5
_BEYOND: Final = 0.05  # of the boxes that may end beyond their image


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of a file, true or detected, image by image.

    Attributes:
        path: the file.
        images: id → the image's fields, in the order of ids.
        names: category id → its name, or the id as text where names repeat.
        image: of each object the number of its image.
        category: the number of its category.
        boxes: objects × 4: x, y, width and height, NaN without a box.
        outlines: of each object its segmentation; None without one.
        score: of each detection; None for true objects.
        crowd: of each true object, whether it is a crowd.
        area: of each true object as the file states it, else NaN.
        notes: what was left out.
        doubts: what is odd about objects, where these are not regions.
    """

    path: str
    images: Mapping[int, Mapping[str, Any]] = field(repr=False)
    names: Mapping[int, str] = field(repr=False)
    image: np.ndarray
    category: np.ndarray
    boxes: np.ndarray
    outlines: Sequence[Any]
    score: np.ndarray | None
    crowd: np.ndarray
    area: np.ndarray
    notes: Sequence[str]
    doubts: Sequence[str]

    def has(self, shape: Shape) -> bool:
        """Whether every object has a box, or an outline."""
        return not np.isnan(self.boxes[:, 0]).any() if shape == "boxes" else all(self.outlines)

    @property
    def is_semantic(self) -> bool:
        """Whether these are results without scores: regions of categories."""
        return bool(len(self.image)) and self.score is None and self.has("masks")

    def labels(self) -> list[str]:
        """The name of the category of each object."""
        names = [*self.names.values()]
        return [names[category] for category in self.category.tolist()]

    def lists(self) -> pa.Array:
        """The boxes of each image as the metrics of boxes read them."""
        names = np.fromiter(self.names.values(), np.object_, len(self.names))
        nothing = pa.nulls(len(self.image), pa.float64())
        cells = (
            pa.FixedSizeListArray.from_arrays(pa.array(self._corners.ravel()), 4),
            pa.DictionaryArray.from_arrays(pa.array(self.category.astype(np.int32)), pa.array(names, pa.string())),
            nothing if self.score is None else pa.array(self.score),
            pa.array(self.crowd),
            pa.array(self.area, mask=np.isnan(self.area)),
        )
        boxes = pa.StructArray.from_arrays(cells, fields=[*BOX_LISTS.value_type])
        return pa.ListArray.from_arrays(pa.array(self._first.astype(np.int32)), boxes)

    def described(self, shape: Shape) -> Iterator[list[dict[str, Any]]]:
        """The objects of each image, as the scorers `detection` and `segmentation` read them.

        Raises:
            DataError: an outline is none, with its image.
        """
        labels, corners = self.labels(), self._corners.tolist()
        for number, id in enumerate(self.images):
            found = []
            for row in range(self._first[number], self._first[number + 1]):
                outline = {"box": corners[row]} if shape == "boxes" else {"mask": self._mask(id, row)}
                if shape == "semantic" and not areas_of([outline["mask"]])[1]:
                    continue
                found.append({"label": labels[row], **outline, **({} if shape == "semantic" else self._marks(row))})
            yield found

    def counts(self) -> np.ndarray:
        """The number of objects of each image."""
        return np.diff(self._first)

    @property
    def _corners(self) -> np.ndarray:
        return np.hstack([self.boxes[:, :2], self.boxes[:, :2] + self.boxes[:, 2:]])

    @cached_property
    def _first(self) -> np.ndarray:
        return np.searchsorted(self.image, np.arange(len(self.images) + 1))

    def _marks(self, row: int) -> dict[str, Any]:
        if self.score is not None:
            return {"confidence": float(self.score[row])}
        area = float(self.area[row])
        return ({"crowd": True} if self.crowd[row] else {}) | ({} if math.isnan(area) else {"area": area})

    def _mask(self, id: int, row: int) -> dict[str, Any]:
        outline, image = self.outlines[row], self.images[id]
        where = f"{self.path}: image {id}"
        size: list[Any] = [image.get("height"), image.get("width")]
        if not isinstance(outline, Mapping) and not all(type(side) is int for side in size):
            raise DataError(Fault(where, "has no height and width, which masks need"))
        try:
            return read_mask(outline, size)
        except DataError as error:
            raise DataError(Fault(f"{where}: segmentation", error.faults[0].message)) from None


def read_instances(path: str | os.PathLike[str]) -> Objects:
    """The true objects of a file.

    Raises:
        DataError: the file is no such JSON, or images, categories and annotations do not fit each other.
        SpecError: it has panoptic segments.
    """
    document = _read_json(path)
    if not isinstance(document, dict) or not all(isinstance(document.get(name), list) for name in _PARTS):
        raise DataError(Fault(str(path), f"is no file of instances; it needs the lists {', '.join(_PARTS)}"))
    if any(isinstance(each, dict) and "segments_info" in each for each in document["annotations"]):
        raise SpecError(
            f"{path} has panoptic segments in PNG files; give them as run lengths to the scorer 'segmentation'"
        )
    images, categories = (_by_id(path, part, document[part]) for part in ("images", "categories"))
    if not images:
        raise DataError(Fault(str(path), "lists no image, so there is nothing to score"))
    notes = []
    counts = Counter(str(category.get("name")) for category in categories.values())
    names = {
        id: category["name"] if isinstance(category.get("name"), str) and counts[category["name"]] == 1 else str(id)
        for id, category in categories.items()
    }
    if lacking := sum(name != categories[id].get("name") for id, name in names.items()):
        verb = pluralize(lacking, "has no name of its own, and is", "have no names of their own, and are")
        notes.append(f"{path}: {plural(lacking, 'category', 'categories')} {verb} called by id")
    if any("neg_category_ids" in image for image in images.values()):
        notes.append(
            f"{path}: images list the categories that were looked for, as those of LVIS do; here every detection"
            " counts, as for COCO, so values are lower than lvis prints"
        )
    return _Reader(str(path), images, names, notes).read(document["annotations"])


def read_results(path: str | os.PathLike[str], truth: Objects, *, semantic: bool = False) -> Objects:
    """The detections or regions of a file, as far as their images and categories are those of the truth.

    Args:
        path: the file.
        truth: the true objects.
        semantic: whether scores are ignored.

    Raises:
        DataError: the file is no list of results, or one lacks something.
    """
    document = _read_json(path)
    entries = document.get("annotations") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        needs = "image_id, category_id, bbox or segmentation, and score"
        raise DataError(Fault(str(path), f"is no file of results; give a list of objects with {needs}"))
    return _Reader(str(path), truth.images, truth.names, [], truth.path).read(entries, semantic=semantic)


_PARTS: Final = ("images", "annotations", "categories")


def _by_id(path: str | os.PathLike[str], part: str, entries: Sequence[Any]) -> dict[int, Mapping[str, Any]]:
    """Images or categories by id, in the order of ids."""
    found: dict[int, Mapping[str, Any]] = {}
    faults = []
    for place, entry in enumerate(entries):
        id = entry.get("id") if isinstance(entry, dict) else None
        if not _is_integer(id):
            faults.append(Fault(f"{path}: {part}[{place}]", "has no integer id"))
        elif int(id) in found:
            faults.append(Fault(f"{path}: {part}[{place}]", f"repeats the id {int(id)}"))
        else:
            found[int(id)] = entry
    if faults:
        raise DataError(faults[:_MOST_FAULTS])
    return dict(sorted(found.items()))


def _is_integer(value: Any) -> TypeGuard[float]:
    return type(value) is int or (type(value) is float and value.is_integer())


@dataclass(frozen=True)
class _Reader:
    """Reads the objects of a file.

    Attributes:
        truth: the file of the truth, if these are predicted: objects of other images and categories are left out.
    """

    path: str
    images: Mapping[int, Mapping[str, Any]]
    names: Mapping[int, str]
    notes: list[str]
    truth: str | None = None

    def read(self, entries: Sequence[Any], *, semantic: bool = False) -> Objects:
        """The objects of a list.

        Args:
            semantic: whether they are regions, of which a score does not matter.

        Raises:
            DataError: some are none; each fault with its place.
        """
        self._refuse([(place, "is no object") for place, entry in enumerate(entries) if not isinstance(entry, dict)])
        cells = {name: [entry.get(name) for entry in entries] for name in _KEYS}
        if self.truth is not None and all(cells["segmentation"]) and entries:
            semantic = semantic or not any(entry.keys() & {"bbox", "score"} for entry in entries)
        scored = self.truth is not None and not semantic
        self._refuse([*self._faults(cells, scored, semantic)])
        known = np.ones(len(entries), np.bool_)
        number = {}
        for key, listed, what in (("image_id", self.images, "an image"), ("category_id", self.names, "a category")):
            places = {id: place for place, id in enumerate(listed)}
            number[key] = np.fromiter((places.get(id, -1) for id in cells[key]), np.int64, len(entries))
            others = known & (number[key] < 0)
            if others.any() and self.truth is not None:
                of = f"{plural(int(others.sum()), 'detection')} of {what} that {self.truth} does not list"
                self.notes.append(f"{self.path}: {of} {pluralize(int(others.sum()), 'is', 'are')} left out")
            known &= ~others
        if len(entries) and not known.any():
            raise DataError(Fault(self.path, f"no detection is of an image and category of {self.truth}"))
        boxes = np.array([_NO_BOX if semantic else box or _NO_BOX for box in cells["bbox"]], np.float64).reshape(-1, 4)
        score = np.array(cells["score"], np.float64) if scored else None
        crowd = np.array([bool(cell) for cell in cells["iscrowd"]], np.bool_)
        area = np.array([math.nan if cell is None else cell for cell in cells["area"]], np.float64)
        if self.truth is not None:
            crowd, area = np.zeros_like(crowd), np.full_like(area, math.nan)
        rows = np.flatnonzero(known)
        rows = rows[np.argsort(number["image_id"][rows], kind="stable")]
        return Objects(
            self.path,
            self.images,
            self.names,
            number["image_id"][rows],
            number["category_id"][rows],
            boxes[rows],
            [cells["segmentation"][row] for row in rows.tolist()] if any(cells["segmentation"]) else [None] * len(rows),
            None if score is None else score[rows],
            crowd[rows],
            area[rows],
            self.notes,
            [*self._doubts(cells["id"], boxes, crowd, area, number["image_id"])],
        )

    def _refuse(self, faults: Sequence[tuple[int, str]]) -> None:
        part = "" if self.truth is not None else "annotations"
        if faults:
            raise DataError(Fault(f"{self.path}: {part}[{place}]", text) for place, text in faults[:_MOST_FAULTS])

    def _faults(self, cells: Mapping[str, Sequence[Any]], scored: bool, semantic: bool) -> Iterator[tuple[int, str]]:
        """What is wrong with objects, with their places."""
        for key, listed in (("image_id", self.images), ("category_id", self.names)):
            for place, id in enumerate(cells[key]):
                if not _is_integer(id):
                    yield place, f"{key} is {id!r}, not an integer"
                elif self.truth is None and id not in listed:
                    yield place, f"{key} is {id!r}, which the file does not list"
        for place, score in enumerate(cells["score"]) if scored else ():
            if type(score) not in _NUMBERS:
                yield place, f"score is {score!r}, not a number; each detection needs its confidence"
        for place, (box, outline) in enumerate(zip(cells["bbox"], cells["segmentation"], strict=True)):
            if semantic and not outline:
                yield place, "has no segmentation; each region needs a mask"
            elif not semantic and (box is not None or not outline) and (fault := _box_fault(box)):
                yield place, fault
        if self.truth is None:
            for place, (area, crowd) in enumerate(zip(cells["area"], cells["iscrowd"], strict=True)):
                if area is not None and (type(area) not in _NUMBERS or area < 0):
                    said = repr(area) if type(area) in _NUMBERS else kind_of(area)
                    yield place, f"area is {said}, not a number of pixels"
                if crowd not in (None, 0, 1):
                    yield place, f"iscrowd is {crowd!r}, not 0 or 1"

    def _doubts(
        self, ids: Sequence[Any], boxes: np.ndarray, crowd: np.ndarray, area: np.ndarray, image: np.ndarray
    ) -> Iterator[str]:
        """What is hardly meant, or scored by pycocotools in another way."""
        own = ~np.isnan(boxes[:, 0]) & (image >= 0)
        if own.sum() >= _FEWEST_SUSPECTS and (corners := self._as_corners(boxes[own], image[own])):
            yield f"{self.path}: {corners}"
        if self.truth is not None:
            if not len(boxes):
                yield f"{self.path}: has no detection; every true object is missed"
            return
        if not len(boxes):
            yield f"{self.path}: has no annotation, so there is nothing to find"
        if twice := [id for id, often in Counter(map(repr, ids)).items() if often > 1 and id != "None"]:
            have = (
                f"{plural(len(twice), 'id')} of annotations {pluralize(len(twice), 'occurs', 'occur')} more than once"
            )
            yield (
                f"{self.path}: {have}, such as {twice[0]}; each annotation is an object here, and pycocotools takes"
                " the last for all"
            )
        if any(type(id) in _NUMBERS and not id and not crowd[place] for place, id in enumerate(ids)):
            yield (
                f"{self.path}: an annotation has the id 0; here it is an object like others, and pycocotools never"
                " takes it for found"
            )
        if lacking := int(np.isnan(area).sum()):
            state, have = pluralize(lacking, "states", "state"), pluralize(lacking, "has", "have")
            yield f"{self.path}: {plural(lacking, 'annotation')} {state} no area, and {have} that of the box or mask"

    def _as_corners(self, boxes: np.ndarray, image: np.ndarray) -> str | None:
        """Why boxes look like x_min, y_min, x_max, y_max; None if they do not."""
        x, y, width, height = boxes.T
        if (width <= x).any() or (height <= y).any():
            return None
        sizes = [(each.get("width"), each.get("height")) for each in self.images.values()]
        known = [size if _NUMBERS.issuperset(map(type, size)) else (math.inf,) * 2 for size in sizes]
        limits = np.array(known, np.float64)[image].T
        beyond = (x + width > limits[0] + 1) | (y + height > limits[1] + 1)
        if np.isfinite(limits).all() and beyond.mean() <= _BEYOND:
            return None
        end = f", and {int(beyond.sum())} would end beyond their image" if beyond.any() else ""
        return (
            f"boxes look like x_min, y_min, x_max, y_max: of all {len(x)} the third number is larger than the first"
            f" and the fourth than the second{end}; they are read as x, y, width, height, as COCO has them"
        )


_KEYS: Final = ("id", "image_id", "category_id", "bbox", "segmentation", "score", "iscrowd", "area")
_NO_BOX: Final = (math.nan,) * 4
_NUMBERS: Final = frozenset((int, float))


def _box_fault(box: Any) -> str | None:
    """What is wrong with a box."""
    if type(box) is not list or len(box) != 4 or not _NUMBERS.issuperset(map(type, box)):
        return f"bbox is {box!r}; give x, y, width and height"
    if box[2] < 0 or box[3] < 0:
        return f"bbox has the size {box[2]:g} × {box[3]:g}; width and height are 0 or more"
    if not max(box) < _LARGEST > -min(box):
        return f"bbox is {box!r}, which is too large; give pixels"
    return None


def _read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: it is not JSON, or cannot be read.
    """
    try:
        content = Path(path).read_bytes()
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        word = next((name for name in ("NaN", "Infinity") if content[error.pos :].startswith(name.encode())), None)
        more = "" if word is None else f"; {word} is no number of JSON: leave out what has none"
        raise DataError(Fault(f"{path}:{error.lineno}:{error.colno}", f"is not JSON: {error.msg}{more}")) from None
    except OSError as error:
        raise DataError(Fault(str(path), error.strerror or "cannot be read")) from None
