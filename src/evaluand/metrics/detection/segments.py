"""Segments of an image: which predicted segment finds which true one, and what each class contributes to a metric.

A segment is a mask with a label. The segments of one side do not overlap. Pixels that no true segment covers are void:
what is predicted there counts neither as right nor as wrong.
Source: A. Kirillov et al., "Panoptic Segmentation" (CVPR 2019), with the rules for void pixels and crowds of the
authors' panopticapi.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from evaluand.core.errors import DataError
from evaluand.metrics.detection.masks import areas_of, intersections

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
    each = [0 if crowd is None else shared[crowd, place] for place, crowd in enumerate(places)]
    return np.array(each, np.int64)


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
