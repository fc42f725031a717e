"""Instances and results of COCO and LVIS, checked and arranged by image.

Instances are a JSON object with `images`, `annotations` and `categories`; results a list of detections, or an object
whose `annotations` are. A box is `[x, y, width, height]`; an outline, in `segmentation`, is a list of polygons or
run lengths. Of LVIS there are also which categories of an image were verified, and of which not all objects are there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from evaluand.core.errors import DataError, Fault, kind_of, plural
from evaluand.metrics.detection.masks import read_mask

Shape = str
"""`boxes` or `masks`."""

_LVIS_DETECTIONS: Final = 300  # of an image, as lvis counts them
_EVERYWHERE: Final = 1e9


@dataclass(frozen=True)
class Instances:
    """The true objects of images.

    Attributes:
        path: the file.
        images: id → the image's fields, in the order of ids.
        names: category id → its name, or the id as text where names repeat.
        frequencies: of LVIS, category id → `r`, `c` or `f`; else empty.
        objects: image id → its annotations.
    """

    path: str
    images: Mapping[int, Mapping[str, Any]]
    names: Mapping[int, str]
    frequencies: Mapping[int, str]
    objects: Mapping[int, Sequence[Mapping[str, Any]]] = field(repr=False)

    @property
    def is_lvis(self) -> bool:
        """Whether images say which categories were verified."""
        return any("neg_category_ids" in image for image in self.images.values())

    @property
    def has_masks(self) -> bool:
        """Whether every object has an outline."""
        return all(each.get("segmentation") for some in self.objects.values() for each in some)

    @property
    def has_boxes(self) -> bool:
        """Whether every object has a box."""
        return all("bbox" in each for some in self.objects.values() for each in some)

    def labels(self, frequency: str | None = None) -> tuple[str, ...]:
        """The names of categories, of all or of one frequency."""
        return tuple(
            name for id, name in self.names.items() if frequency is None or self.frequencies.get(id) == frequency
        )

    def expected(self, id: int, shape: Shape) -> list[dict[str, Any]]:
        """The true objects of an image, as the scorer `detection` reads them."""
        objects = [self._object(id, each, shape) for each in self.objects.get(id, ())]
        incomplete = self.images[id].get("not_exhaustive_category_ids", ())  # more finds than annotated are ignored
        labels = [self.names[category] for category in incomplete if category in self.names]
        objects += [{**self._everywhere(id, shape), "label": label, "crowd": True} for label in labels]
        return objects

    def _object(self, id: int, annotation: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
        found: dict[str, Any] = {"label": self.names[annotation["category_id"]]}
        if shape == "masks":
            found["mask"] = _read_mask(self.path, id, annotation["segmentation"], self.size(id))
        else:
            found["box"] = corners(annotation["bbox"])
        if annotation.get("iscrowd"):
            found["crowd"] = True
        if annotation.get("area") is not None:
            found["area"] = annotation["area"]
        return found

    def _everywhere(self, id: int, shape: Shape) -> dict[str, Any]:
        if shape == "boxes":
            return {"box": [-_EVERYWHERE, -_EVERYWHERE, _EVERYWHERE, _EVERYWHERE]}
        height, width = self.size(id)
        return {"mask": read_mask({"size": [height, width], "counts": [0, height * width]})}

    def size(self, id: int) -> list[int]:
        """Height and width of an image.

        Raises:
            DataError: the file does not state them.
        """
        image = self.images[id]
        if type(image.get("height")) is not int or type(image.get("width")) is not int:
            raise DataError(Fault(f"{self.path}: image {id}", "has no height and width, which masks need"))
        return [image["height"], image["width"]]

    def verified(self, id: int) -> set[int] | None:
        """The categories that were looked for in an image; None for all."""
        image = self.images[id]
        if "neg_category_ids" not in image:
            return None
        return {*image["neg_category_ids"], *(each["category_id"] for each in self.objects.get(id, ()))}


def read_instances(path: str | os.PathLike[str], document: Any = None) -> Instances:
    """The instances of a file.

    Args:
        path: the file.
        document: its content, if it has been read.

    Raises:
        DataError: the file is no such JSON, or images, categories and annotations do not fit each other.
    """
    document = read_document(path) if document is None else document
    if not isinstance(document, dict) or not all(isinstance(document.get(name), list) for name in _PARTS):
        raise DataError(Fault(str(path), f"is no file of instances; it needs the lists {', '.join(_PARTS)}"))
    faults = [*check_ids(path, document, ("images", "categories"))] or [*_check_images(path, document["images"])]
    if faults:
        raise DataError(faults)
    images = {image["id"]: image for image in sorted(document["images"], key=lambda image: int(image["id"]))}
    categories = {category["id"]: category for category in document["categories"]}
    objects: dict[int, list[Mapping[str, Any]]] = {}
    for place, annotation in enumerate(document["annotations"]):
        faults += _check_annotation(f"{path}: annotations[{place}]", annotation, images, categories)
        if not faults:
            objects.setdefault(annotation["image_id"], []).append(annotation)
    if faults:
        raise DataError(faults)
    frequencies = {id: str(each["frequency"]) for id, each in categories.items() if each.get("frequency")}
    return Instances(str(path), images, category_names(categories), frequencies, objects)


def category_names(categories: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Category id → its name, or the id as text where names repeat or are missing."""
    counts = Counter(str(category.get("name")) for category in categories.values())
    return {
        id: category["name"] if isinstance(category.get("name"), str) and counts[category["name"]] == 1 else str(id)
        for id, category in categories.items()
    }


_PARTS: Final = ("images", "annotations", "categories")


def check_ids(path: str | os.PathLike[str], document: Mapping[str, Any], parts: Sequence[str]) -> Iterator[Fault]:
    """What is wrong with the ids of the entries of some lists of a document."""
    for part in parts:
        seen = set()
        if not isinstance(document[part], list):
            yield Fault(f"{path}: {part}", f"must be a list, not {kind_of(document[part])}")
            continue
        for place, entry in enumerate(document[part]):
            where = f"{path}: {part}[{place}]"
            id = entry.get("id") if isinstance(entry, dict) else None
            if type(id) is not int:
                yield Fault(where, "has no integer id")
                continue
            if id in seen:
                yield Fault(where, f"repeats the id {id}")
            seen.add(id)


def _check_images(path: str | os.PathLike[str], images: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """What is wrong with the categories that images list, as those of LVIS do."""
    for place, image in enumerate(images):
        for key in ("neg_category_ids", "not_exhaustive_category_ids"):
            ids = image.get(key, [])
            if not isinstance(ids, list) or not all(type(id) is int for id in ids):
                yield Fault(f"{path}: images[{place}]", f"{key} must be a list of integers")


def _check_annotation(
    where: str, annotation: Any, images: Mapping[int, Any], categories: Mapping[int, Any]
) -> Iterator[Fault]:
    if not isinstance(annotation, dict):
        yield Fault(where, "is no object")
        return
    for key, known in (("image_id", images), ("category_id", categories)):
        if type(annotation.get(key)) is not int or annotation[key] not in known:
            yield Fault(where, f"{key} is {annotation.get(key)!r}, which the file does not list")
    if annotation.get("area") is not None and type(annotation["area"]) not in (int, float):
        yield Fault(where, f"area is {kind_of(annotation['area'])}, not a number")
    if "bbox" in annotation or not annotation.get("segmentation"):
        yield from check_box(where, annotation.get("bbox"))


def _read_mask(path: str, id: int, segmentation: Any, size: Sequence[int]) -> dict[str, Any]:
    """The mask of an object in an image.

    Raises:
        DataError: there is none, with the image.
    """
    try:
        return read_mask(segmentation, size)
    except DataError as error:
        raise DataError(Fault(f"{path}: image {id}", f"a segmentation {error.faults[0].message}")) from None


def check_box(where: str, box: Any) -> Iterator[Fault]:
    """What is wrong with a box of COCO."""
    numbers = isinstance(box, list) and len(box) == 4 and all(type(each) in (int, float) for each in box)
    if not numbers:
        yield Fault(where, f"bbox is {box!r}; give x, y, width and height")
    elif box[2] < 0 or box[3] < 0:
        yield Fault(where, f"bbox has the size {box[2]:g} × {box[3]:g}; width and height are 0 or more")


def corners(box: Sequence[float]) -> list[float]:
    """A box of COCO as x_min, y_min, x_max, y_max."""
    x, y, width, height = box
    return [x, y, x + width, y + height]


@dataclass(frozen=True)
class Detections:
    """What a detector found.

    Attributes:
        path: the file.
        by_image: image id → its detections, in the order of the file.
        notes: what was left out.
    """

    path: str
    by_image: Mapping[int, Sequence[Mapping[str, Any]]] = field(repr=False)
    notes: Sequence[str]

    @property
    def has_masks(self) -> bool:
        """Whether every detection has an outline."""
        return all(each.get("segmentation") for some in self.by_image.values() for each in some)

    @property
    def has_boxes(self) -> bool:
        """Whether every detection has a box."""
        return all("bbox" in each for some in self.by_image.values() for each in some)

    def found(self, id: int, instances: Instances, shape: Shape) -> list[dict[str, Any]]:
        """The detections of an image, as the scorer `detection` reads them."""
        chosen = self.by_image.get(id, ())
        verified = instances.verified(id)
        if verified is not None:
            chosen = sorted(chosen, key=lambda each: -each["score"])[:_LVIS_DETECTIONS]
            chosen = [each for each in chosen if each["category_id"] in verified]
        return [self._object(id, each, instances, shape) for each in chosen]

    def _object(self, id: int, found: Mapping[str, Any], instances: Instances, shape: Shape) -> dict[str, Any]:
        outline = (
            {"mask": _read_mask(self.path, id, found["segmentation"], instances.size(id))}
            if shape == "masks"
            else {"box": corners(found["bbox"])}
        )
        return {**outline, "label": instances.names[found["category_id"]], "confidence": found["score"]}


def read_results(path: str | os.PathLike[str], instances: Instances, document: Any = None) -> Detections:
    """The detections of a file, as far as its images and categories are those of the instances.

    Args:
        path: the file.
        instances: the true objects.
        document: the content of the file, if it has been read.

    Raises:
        DataError: the file is no list of detections, or a detection lacks something.
    """
    entries = results_of(path, read_document(path) if document is None else document)
    return _read_entries(path, entries, instances, _check_result)


def results_of(path: str | os.PathLike[str], document: Any) -> list[Any]:
    """The list of results of a document.

    Raises:
        DataError: it has none.
    """
    if isinstance(document, dict):
        document = document.get("annotations")
    if not isinstance(document, list):
        raise DataError(
            Fault(
                str(path),
                "is no file of results; give a list of objects with image_id, category_id, "
                "bbox or segmentation, and score",
            )
        )
    return document


def read_regions(path: str | os.PathLike[str], instances: Instances, document: Any) -> Detections:
    """The semantic segmentation of a file: a region for each image and category, as in COCO-Stuff.

    Raises:
        DataError: the file is no list of regions, or a region lacks something.
    """
    return _read_entries(path, results_of(path, document), instances, _check_region)


def _read_entries(
    path: str | os.PathLike[str],
    document: Sequence[Any],
    instances: Instances,
    check: Callable[[str, Any], Iterator[Fault]],
) -> Detections:
    faults, others = list[Fault](), Counter[str]()
    by_image: dict[int, list[Mapping[str, Any]]] = {}
    for place, found in enumerate(document):
        fault = next(check(f"{path}: [{place}]", found), None)
        if fault is not None:
            faults.append(fault)
        elif found["image_id"] not in instances.images:
            others["an image"] += 1
        elif found["category_id"] not in instances.names:
            others["a category"] += 1
        else:
            by_image.setdefault(found["image_id"], []).append(found)
    if faults:
        raise DataError(faults)
    if document and not by_image:
        raise DataError(Fault(str(path), f"no detection is of an image and category of {instances.path}"))
    notes = [
        f"{path}: {plural(n, 'detection')} of {what} that {instances.path} does not list are left out"
        for what, n in others.items()
    ]
    return Detections(str(path), by_image, notes)


def _check_result(where: str, found: Any) -> Iterator[Fault]:
    yield from _check_ids(where, found)
    score = found.get("score")
    if type(score) not in (int, float):
        yield Fault(where, f"score is {score!r}, not a number; each detection needs its confidence")
    if "bbox" in found or not found.get("segmentation"):
        yield from check_box(where, found.get("bbox"))


def _check_region(where: str, found: Any) -> Iterator[Fault]:
    yield from _check_ids(where, found)
    if not found.get("segmentation"):
        yield Fault(where, "has no segmentation; each region needs a mask")


def _check_ids(where: str, found: Any) -> Iterator[Fault]:
    if not isinstance(found, dict):
        yield Fault(where, "is no object")
        return
    for key in ("image_id", "category_id"):
        if type(found.get(key)) is not int:
            yield Fault(where, f"{key} is {found.get(key)!r}, not an integer")


def read_document(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: it is not JSON, or cannot be read.
    """
    try:
        return orjson.loads(Path(path).read_bytes())
    except orjson.JSONDecodeError as error:
        raise DataError(Fault(f"{path}:{error.lineno}:{error.colno}", f"is not JSON: {error.msg}")) from None
    except OSError as error:
        raise DataError(Fault(str(path), error.strerror or "cannot be read")) from None
