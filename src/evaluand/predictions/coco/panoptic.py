"""Panoptic segmentation in files of COCO: a JSON document, and for each image a PNG file whose colours are segments.

The document lists, by image, the file and the segments with their categories. A pixel with the colour red, green, blue
belongs to the segment with the id red + 256 green + 65536 blue; 0 is void.
"""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluand.core.errors import DataError, Fault, SpecError, plural
from evaluand.metrics.detection.masks import read_mask
from evaluand.predictions.coco.files import category_names, check_ids

_MOST_PIXELS: Final = 1 << 26
"""Of one file: a small file can hold an image that fills the memory."""

_MOST_SEGMENTS: Final = 1 << 24
_MOST_FAULTS: Final = 100


@dataclass(frozen=True)
class Panoptic:
    """The segments of images.

    Attributes:
        path: the document.
        images: id of an image with segments → its fields, in the order of ids.
        categories: id → the fields of each category.
        sizes: image id → height and width.
        segments: image id → its segments, as the scorer `segmentation` reads them.
        notes: what was left out, or differs from the document.
    """

    path: str
    images: Mapping[int, Mapping[str, Any]]
    categories: Mapping[int, Mapping[str, Any]] = field(repr=False)
    sizes: Mapping[int, tuple[int, int]] = field(repr=False)
    segments: Mapping[int, Sequence[Mapping[str, Any]]] = field(repr=False)
    notes: Sequence[str] = ()


def is_panoptic(document: Any) -> bool:
    """Whether a document lists the segments of PNG files."""
    entries = document.get("annotations") if isinstance(document, dict) else None
    return isinstance(entries, list) and any(isinstance(each, dict) and "segments_info" in each for each in entries)


def read_panoptic(path: str | os.PathLike[str], document: Any, truth: Panoptic | None = None) -> Panoptic:
    """The segments of a document, and of the PNG files in the folder of its name or, without one, in its own folder.

    Args:
        path: the document, such as `panoptic_val2017.json`, with the folder `panoptic_val2017`.
        document: its content.
        truth: the true segments, if these are predicted; their images and categories count.

    Raises:
        SpecError: pillow is not installed.
        DataError: the document is not panoptic, or does not fit its files or the truth; each fault with its place.
    """
    if not is_panoptic(document):
        raise DataError(Fault(str(path), "is no panoptic file; it needs annotations with file_name and segments_info"))
    categories: Mapping[int, Mapping[str, Any]]
    images: Mapping[int, Mapping[str, Any]]
    if truth is None:
        categories = _categories(path, document)
        images = {each["id"]: each for each in document.get("images") or ()}
    else:
        categories, images = truth.categories, truth.images
    entries, faults, others = dict[int, tuple[str, Mapping[str, Any]]](), list[Fault](), 0
    for place, entry in enumerate(document["annotations"]):
        where = f"{path}: annotations[{place}]"
        found = [*_check_annotation(where, entry, categories)]
        if not found and entry["image_id"] in entries:
            found = [Fault(where, f"repeats the image {entry['image_id']}")]
        faults += found
        if truth is not None and not found and entry["image_id"] not in images:
            others += 1
        elif not found:
            entries[entry["image_id"]] = where, entry
    if truth is not None and not faults:
        faults += _check_images(path, truth, entries)
    if faults:
        raise DataError(faults[:_MOST_FAULTS])
    notes = (
        [f"{path}: {plural(others, 'image')} that {truth.path} does not list are left out"] if truth and others else []
    )
    return _read_files(path, dict(sorted(entries.items())), images, categories, truth, notes)


def _read_files(
    path: str | os.PathLike[str],
    entries: Mapping[int, tuple[str, Mapping[str, Any]]],
    images: Mapping[int, Mapping[str, Any]],
    categories: Mapping[int, Mapping[str, Any]],
    truth: Panoptic | None,
    notes: list[str],
) -> Panoptic:
    named = Path(path).with_suffix("")
    folder = named if named.is_dir() else Path(path).parent
    names = category_names(categories)
    faults, sizes, differing = list[Fault](), dict[int, tuple[int, int]](), 0
    segments: dict[int, list[Mapping[str, Any]]] = {}
    for id, (where, entry) in entries.items():
        try:
            size = _stated_size(images.get(id, {})) if truth is None else truth.sizes[id]
            pixels = _read_png(folder, entry["file_name"], size)
        except DataError as error:
            faults += [Fault(where, fault.message) for fault in error.faults]
        else:
            sizes[id] = pixels.shape[0], pixels.shape[1]
            masks = dict(_masks(pixels))
            found = [*_check_segments(where, entry, masks)]
            faults += found
            if not found:
                segments[id] = [_segment(info, masks, names, categories) for info in entry["segments_info"]]
                differing += sum(_area_differs(info, masks) for info in entry["segments_info"])
        if len(faults) >= _MOST_FAULTS:
            break
    if faults:
        raise DataError(faults)
    if truth is None and differing:
        notes.append(f"{path}: {plural(differing, 'segment')} with another area than the pixels in the PNG files count")
    return Panoptic(str(path), {id: images.get(id, {}) for id in entries}, categories, sizes, segments, notes)


def _categories(path: str | os.PathLike[str], document: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    if not isinstance(document.get("categories"), list):
        raise DataError(Fault(str(path), "has no list of categories"))
    faults = [*check_ids(path, {"images": [], **document}, ("images", "categories"))]
    for place, category in enumerate(document["categories"]):
        if not faults and category.get("isthing") not in (0, 1):
            where = f"{path}: categories[{place}]"
            faults.append(Fault(where, f"isthing is {category.get('isthing')!r}; give 1 for things, 0 for stuff"))
    if faults:
        raise DataError(faults)
    return {category["id"]: category for category in document["categories"]}


def _check_annotation(where: str, entry: Any, categories: Mapping[int, Any]) -> Iterator[Fault]:
    if not isinstance(entry, dict):
        yield Fault(where, "is no object")
        return
    if type(entry.get("image_id")) is not int:
        yield Fault(where, f"image_id is {entry.get('image_id')!r}, not an integer")
    if not isinstance(entry.get("file_name"), str) or not entry["file_name"]:
        yield Fault(where, f"file_name is {entry.get('file_name')!r}, not the name of a PNG file")
    if not isinstance(entry.get("segments_info"), list):
        yield Fault(where, "has no list segments_info")
        return
    seen = set()
    for place, info in enumerate(entry["segments_info"]):
        at = f"{where}.segments_info[{place}]"
        id = info.get("id") if isinstance(info, dict) else None
        if type(id) is not int or not 0 < id < _MOST_SEGMENTS:
            yield Fault(at, f"id is {id!r}; give red + 256 green + 65536 blue of its colour, from 1 on")
            continue
        if id in seen:
            yield Fault(at, f"repeats the id {id}")
        seen.add(id)
        category = info.get("category_id")
        if type(category) is not int or category not in categories:
            yield Fault(at, f"category_id is {category!r}, which the truth does not list")
        if info.get("iscrowd", 0) not in (0, 1):
            yield Fault(at, f"iscrowd is {info['iscrowd']!r}, not 0 or 1")


def _check_images(path: str | os.PathLike[str], truth: Panoptic, entries: Mapping[int, Any]) -> Iterator[Fault]:
    lacking = [id for id in truth.images if id not in entries]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        yield Fault(str(path), f"has no segments of image {lacking[0]}{more}; give every image of {truth.path}")


def _check_segments(where: str, entry: Mapping[str, Any], masks: Mapping[int, Any]) -> Iterator[Fault]:
    listed = [info["id"] for info in entry["segments_info"]]
    for id in masks.keys() - {0, *listed}:
        yield Fault(where, f"{entry['file_name']} has pixels of the segment {id}, which segments_info does not list")
    for place, id in enumerate(listed):
        if id not in masks:
            yield Fault(f"{where}.segments_info[{place}]", f"{entry['file_name']} has no pixel of the segment {id}")


def _segment(
    info: Mapping[str, Any],
    masks: Mapping[int, Mapping[str, Any]],
    names: Mapping[int, str],
    categories: Mapping[int, Mapping[str, Any]],
) -> dict[str, Any]:
    category = info["category_id"]
    found = {
        "label": names[category],
        "mask": read_mask(masks[info["id"]]),
        "thing": bool(categories[category]["isthing"]),
    }
    return found | ({"crowd": True} if info.get("iscrowd") else {})


def _area_differs(info: Mapping[str, Any], masks: Mapping[int, Mapping[str, Any]]) -> bool:
    return info.get("area") is not None and info["area"] != sum(masks[info["id"]]["counts"][1::2])


def _stated_size(image: Mapping[str, Any]) -> tuple[int, int] | None:
    height, width = image.get("height"), image.get("width")
    return (height, width) if isinstance(height, int) and isinstance(width, int) else None


def _read_png(folder: Path, name: str, size: tuple[int, int] | None) -> np.ndarray:
    """The segment of each pixel, height × width.

    Raises:
        SpecError: pillow is not installed.
        DataError: the name leaves the folder, or the file is no such image of this size.
    """
    try:
        from PIL import Image
    except ImportError:
        raise SpecError("panoptic files need pillow: pip install 'evaluand[coco]'") from None
    path = _file_in(folder, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=["PNG"]) as image:
                width, height = image.size
                if size is not None and (height, width) != size:
                    stated = f"{size[0]} × {size[1]}"
                    raise DataError(f"{path} has {height} × {width} pixels, but the image has {stated}")
                if height * width > _MOST_PIXELS:
                    raise DataError(f"{path} has {height} × {width} pixels, more than {_MOST_PIXELS}")
                if image.mode not in ("RGB", "RGBA"):
                    raise DataError(f"{path} has the mode {image.mode}; give red, green and blue of 8 bits")
                colours = np.asarray(image)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"{path} has more than {_MOST_PIXELS} pixels") from None
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, SyntaxError, ValueError, struct.error, zlib.error) as error:
        raise DataError(f"{path} is no readable PNG file: {error}") from None
    return np.asarray(colours[..., :3].astype(np.int32) @ np.array([1, 1 << 8, 1 << 16], np.int32))


def _file_in(folder: Path, name: str) -> Path:
    """A file in a folder; a DataError if its name leads elsewhere."""
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        raise DataError(f"file_name is {name!r}, which is not in the folder {folder}")
    return path


def _masks(pixels: np.ndarray) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each segment with its mask as run lengths by column."""
    flat = pixels.ravel(order="F")
    start = np.flatnonzero(np.diff(flat, prepend=-1))
    stop = np.append(start[1:], len(flat))
    order = np.argsort(flat[start], kind="stable")
    ids, first = np.unique(flat[start][order], return_index=True)
    for id, runs in zip(ids.tolist(), np.split(order, first[1:]), strict=True):
        ends = np.stack([start[runs], stop[runs]], axis=1).ravel()
        yield id, {"size": [*pixels.shape], "counts": np.diff(ends, prepend=0, append=len(flat)).tolist()}
