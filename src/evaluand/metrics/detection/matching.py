"""Which detection finds which true box.

In order of confidence, each detection of an image takes the remaining true box that it overlaps most. This is a stable
matching in which all true boxes prefer the same detections, so it is computed by rounds of proposals over all images at
once (D. Gale & L. S. Shapley, "College admissions and the stability of marriage", American Mathematical Monthly 69,
1962): every unmatched detection proposes to its next true box, and every true box holds the best proposal.

Only pairs that can reach the threshold are compared: a box that overlaps another by the share t begins at most (1 - t)
/ t of the other's width before it and (1 - t) after it, and true boxes are sorted by where they begin.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from evaluand.core.errors import DataError
from evaluand.metrics.base.labels import encode_labels, in_order
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.definition import Definition
from evaluand.metrics.detection.masks import overlaps
from evaluand.metrics.detection.outlines import area_of, polygon_of, shared_areas
from evaluand.metrics.stats.intervals import runs


class Matching(NamedTuple):
    """Which true boxes the detections found.

    Attributes:
        order: the rows of the detections that count, from the most to the least confident.
        found: thresholds × detections in this order: whether each is right.
        label: the label of each detection in this order, as a code; 0 without labels.
        truth_label: the label of each true box, in its row.
        labels: the label of each code; `[None]` without labels.
        met: thresholds × true boxes in their rows: whether each was found.
        ignored: thresholds × detections in this order: whether each is neither right nor wrong, because it found an
            ignored true box, or found nothing and is outside the area.
        truth_ignored: which true boxes do not count, in their rows: crowds, and those outside the area.
    """

    order: np.ndarray
    found: np.ndarray
    label: np.ndarray
    truth_label: np.ndarray
    labels: list[str | int | None]
    met: np.ndarray
    ignored: np.ndarray
    truth_ignored: np.ndarray


def match(detections: Boxes, truths: Boxes, ious: Sequence[float], definition: Definition) -> Matching:
    """Match detections to true boxes of the same image and label, at one or several thresholds.

    Ignored true boxes are tried last, so that they never displace one that counts, except under `only_best`. Any number
    of detections may find a crowd: those of which it covers enough. Boxes match from the overlaps `ious` on.

    Raises:
        DataError: a box or a confidence is invalid, or only one side has labels.
    """
    for boxes in (detections, truths):
        boxes.refuse_odd(definition.takes)
    place, truth_place, label, truth_label, labels = _places(detections, truths)
    order = _order(detections, definition)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    counted = np.ones(len(order), np.bool_)
    if definition.most is not None:
        rows = np.lexsort((rank, place))
        counted[rows] = np.arange(len(rows)) - np.searchsorted(place[rows], place[rows]) < definition.most
    lenient = definition.rounded and not definition.strict
    limits = [min(iou, 1 - 1e-10) if lenient else iou for iou in ious]
    crowd = np.zeros(len(truths), np.bool_) if truths.crowd is None else truths.crowd
    truth_ignored = crowd | definition.outside(truths.areas(definition.pixel))
    outside = definition.outside(detections.areas(definition.pixel))
    pairs = _overlapping(_Sides(detections, place, truths, truth_place, crowd, definition), min(limits))
    pairs = pairs.select(counted[pairs.detection])
    found, met = (np.zeros((len(limits), n), np.bool_) for n in (len(order), len(truths)))
    ignored = np.repeat(outside[None], len(limits), axis=0)
    for level, limit in enumerate(limits):
        some = pairs.select(definition.reaches(pairs.overlap, limit))
        proposals = _proposal_order(some, truths, truth_ignored, definition)
        claims = _preferences(some, detections, rank, definition)
        partner, met[level] = _match_pairs(some, proposals, claims, crowd, len(order), definition.only_best)
        matched = np.flatnonzero(partner >= 0)
        ignored[level, matched] = truth_ignored[partner[matched]]
        found[level, matched] = ~ignored[level, matched]
    order = order[counted[order]]
    return Matching(order, found[:, order], label[order], truth_label, labels, met, ignored[:, order], truth_ignored)


class _Pairs(NamedTuple):
    """Pairs of objects that overlap enough."""

    detection: np.ndarray
    truth: np.ndarray
    overlap: np.ndarray

    def select(self, chosen: np.ndarray) -> Self:
        return type(self)(*(column[chosen] for column in self))

    @classmethod
    def join(cls, parts: Iterable[Self]) -> Self:
        nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        return cls._make(np.concatenate(columns) for columns in zip(nothing, *parts, strict=True))


class _Sides(NamedTuple):
    """What is compared: objects of the same place, an image and label."""

    detections: Boxes
    place: np.ndarray
    truths: Boxes
    truth_place: np.ndarray
    crowd: np.ndarray
    definition: Definition


def _places(
    detections: Boxes, truths: Boxes
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str | int | None]]:
    """The place (image and label) of every box, its label code, and the labels."""
    (place, truth_place), _ = encode_labels([detections.image, truths.image])
    if detections.label is None and truths.label is None:
        nothing = np.zeros(len(place), np.int64), np.zeros(len(truth_place), np.int64)
        return place, truth_place, *nothing, [None]
    for one, other in ((detections, truths), (truths, detections)):
        if other.label is None and len(other):
            raise DataError(f"{one.what}s have labels, but {other.what}s do not; give labels to both or to neither")
    labels = [pa.nulls(0) if boxes.label is None else boxes.label for boxes in (detections, truths)]
    (label, truth_label), names = encode_labels(labels)
    for boxes, codes in ((detections, label), (truths, truth_label)):
        if (codes < 0).any():
            raise DataError(boxes.fault(row, "has no label") for row in np.flatnonzero(codes < 0).tolist())
    n = max(len(names), 1)
    names_of: list[str | int | None] = names.tolist()
    return place * n + label, truth_place * n + truth_label, label, truth_label, names_of


def _order(detections: Boxes, definition: Definition) -> np.ndarray:
    """The rows from the most to the least confident."""
    confidence = np.zeros(len(detections)) if detections.confidence is None else detections.confidence
    if definition.ties == "image":
        (code,), images = encode_labels([detections.image])
        return np.asarray(np.lexsort((np.argsort(in_order(images))[code], -confidence)))
    order = np.argsort(-confidence, kind="stable")
    if definition.ties == "file" or not _has_equal_neighbours(confidence[order]):
        return order
    return np.asarray(np.lexsort((*detections.corners[::-1], -confidence)))


def _preferences(pairs: _Pairs, detections: Boxes, rank: np.ndarray, definition: Definition) -> np.ndarray:
    """The preference of a true box, as a number for each pair: smaller is better."""
    confidence = np.zeros(len(detections)) if detections.confidence is None else detections.confidence
    own, asking = confidence[pairs.detection], rank[pairs.detection]
    if definition.ties != "step" or not _has_equal_neighbours(np.sort(confidence)):
        return np.asarray(asking)
    claim = np.empty(len(own), np.int64)
    claim[np.lexsort((asking, -pairs.overlap, -own))] = np.arange(len(own))
    return claim


def _proposal_order(pairs: _Pairs, truths: Boxes, ignored: np.ndarray, definition: Definition) -> np.ndarray:
    """The order in which pairs are tried, detection by detection: larger overlaps first, ignored boxes last.

    For equal overlaps, the smaller box comes first if rows have no order; else the first in the file or, as in
    pycocotools, the last.
    """
    late = ignored[pairs.truth] & (not definition.only_best)
    order = np.lexsort((-pairs.overlap, late, pairs.detection))
    if not _has_equal_neighbours(pairs.detection[order], late[order], pairs.overlap[order]):
        return np.asarray(order)
    place = np.arange(len(truths)) if definition.ties != "image" else -np.arange(len(truths))
    if definition.ties == "step":
        place[np.lexsort(truths.corners[::-1])] = np.arange(len(truths))
    return np.asarray(np.lexsort((place[pairs.truth], -pairs.overlap, late, pairs.detection)))


def _has_equal_neighbours(*columns: np.ndarray) -> bool:
    """Whether any row equals the one before."""
    return bool(np.logical_and.reduce([column[1:] == column[:-1] for column in columns]).any())


def _match_pairs(
    pairs: _Pairs, order: np.ndarray, claim: np.ndarray, crowd: np.ndarray, n: int, only_best: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The true box that each of n detections finds, or -1, and whether each true box is found.

    Pairs are tried in this `order`; `claim` has the preferences of true boxes, of which a `crowd` accepts every one.
    """
    detection, truth, claim = pairs.detection[order], pairs.truth[order], claim[order]
    place = np.where(crowd[truth], len(crowd) + np.arange(len(truth)), truth)  # a crowd has a place for each
    first = np.ones(len(order), np.bool_)
    first[1:] = detection[1:] != detection[:-1]
    last = np.append(first[1:], True) if not only_best else np.ones(len(order), np.bool_)
    holder = np.full(len(crowd) + len(truth), -1, np.int64)  # the pair that holds each true box
    asking = np.flatnonzero(first)
    while len(asking):
        asking = asking[np.argsort(-claim[asking], kind="stable")]
        target = place[asking]
        before = holder[target]
        better = (before < 0) | (claim[asking] < claim[before])
        holder[target[better]] = asking[better]  # of several, the last, which has the best claim
        displaced = before[better & (before >= 0)]
        refused = np.concatenate([asking[holder[target] != asking], np.unique(displaced)])
        asking = refused[~last[refused]] + 1
    holding = holder[holder >= 0]
    partner, met = np.full(n, -1, np.int64), np.zeros(len(crowd), np.bool_)
    partner[detection[holding]], met[truth[holding]] = truth[holding], True
    return partner, met


_AT_ONCE = 1 << 17  # pairs of boxes that fit into the processor's cache
_SLACK = 1e-9


def _overlapping(sides: _Sides, least: float) -> _Pairs:
    """All pairs of the same place whose overlap reaches a threshold: of masks, of polygons, or of boxes."""
    detections, truths = sides.detections, sides.truths
    if detections.mask is not None and truths.mask is not None:
        found = _Pairs.join(_overlapping_masks(sides, detections.mask, truths.mask))
    elif detections.mask is not None or truths.mask is not None:
        with_, without = ("detection", "truth") if truths.mask is None else ("truth", "detection")
        if len(detections) and len(truths):
            raise DataError(f"{with_}s have masks, but {without}s do not; give masks to both or to neither")
        return _Pairs.join([])
    elif detections.outline is not None or truths.outline is not None:
        found = _overlapping_outlines(sides)
    else:
        return _overlapping_boxes(sides, least)
    return found.select(sides.definition.reaches(found.overlap, least))


def _overlapping_masks(sides: _Sides, masks: Sequence[Any], others: Sequence[Any]) -> Iterator[_Pairs]:
    """The pairs of masks of the same place."""
    by_place = dict(_rows_by_place(sides.truth_place))
    for key, rows in _rows_by_place(sides.place):
        among = by_place.get(key)
        if among is not None:
            overlap = overlaps([masks[row] for row in rows], [others[row] for row in among], sides.crowd[among])
            yield _Pairs(np.repeat(rows, len(among)), np.tile(among, len(rows)), overlap.ravel())


def _rows_by_place(place: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    order = np.argsort(place, kind="stable")
    for rows in np.split(order, runs(place[order])[1:]) if len(order) else ():
        yield int(place[rows[0]]), rows


def _overlapping_outlines(sides: _Sides) -> _Pairs:
    """The pairs of polygons of the same place: of all whose boxes overlap, the exact overlap."""
    if sides.definition.pixel:
        raise DataError(
            "polygons that are no upright rectangles have no overlap under a definition in which boxes include their"
            " last pixel; use the definition standard or coco"
        )
    one, two, _ = near = _overlapping_boxes(sides, 0.0)
    outlines, others = _outlines(sides.detections), _outlines(sides.truths)
    shared = shared_areas(outlines, others, one, two)
    area, other = (np.array([area_of(outline) for outline in side], np.float64) for side in (outlines, others))
    total = np.where(sides.crowd[two], area[one], area[one] + other[two] - shared)
    return near._replace(overlap=np.minimum(shared / total, 1.0))


def _outlines(boxes: Boxes) -> list[np.ndarray]:
    """Each object as a polygon."""
    drawn = [None] * len(boxes) if boxes.outline is None else boxes.outline
    corners = boxes.corners.T.tolist()
    return [
        np.array(polygon_of(box), np.float64).reshape(-1, 2) if outline is None else outline
        for outline, box in zip(drawn, corners, strict=True)
    ]


def _overlapping_boxes(sides: _Sides, least: float) -> _Pairs:
    """All pairs of boxes of the same place whose overlap reaches a threshold."""
    parts: list[_Pairs] = []
    usable, truth_usable = (
        _have_area(side.corners, sides.definition.pixel) for side in (sides.detections, sides.truths)
    )
    if sides.definition.takes == "anything":
        usable &= ~np.isin(sides.place, sides.truth_place[np.isnan(sides.truths.corners).any(axis=0)])
    rows = np.flatnonzero(usable)
    for crowd in (False, True):
        among = np.flatnonzero(truth_usable & (sides.crowd == crowd))
        if len(rows) and len(among):
            parts += _compare_pairs(sides, *_windows(sides, rows, among, least, crowd), least, crowd)
    return _Pairs.join(parts)


def _have_area(corners: np.ndarray, pixel: int) -> np.ndarray:
    """Which boxes can overlap anything."""
    with np.errstate(invalid="ignore", over="ignore"):
        extent = corners[2:] - corners[:2] + pixel
    return np.asarray(np.isfinite(corners).all(axis=0) & np.isfinite(extent).all(axis=0) & (extent > 0).all(axis=0))


def _windows(
    sides: _Sides, rows: np.ndarray, truths: np.ndarray, least: float, crowd: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The rows of detections, the true boxes sorted by place and beginning, and which of them each row may overlap.

    A crowd may begin anywhere before the end of what it covers, however wide it is.
    Place and beginning form one sortable number. Rounding may enlarge the window of a row but never shrink it, since it
    preserves the order of numbers; the distance of places is so large that no window reaches into the next.
    """
    begin, corners = sides.truths.corners[0, truths], sides.detections.corners
    lowest, highest = float(begin.min()), float(begin.max())
    stride = 2 * (highest - lowest) or 1.0
    key = sides.truth_place[truths] * stride + (begin - lowest)
    order = np.argsort(key, kind="stable")
    truths, key = truths[order], key[order]
    x_min, width = corners[0, rows], corners[2, rows] - corners[0, rows] + sides.definition.pixel
    with np.errstate(divide="ignore", over="ignore"):
        before = (1 - least) * width / np.float64(least)
        slack = _SLACK * (np.abs(x_min) + width / np.float64(least))
        ends = np.stack([x_min - before - slack, x_min + (1 - least) * width + slack])
        ends[0] = -np.inf if crowd else ends[0]
    low, high = sides.place[rows] * stride + (np.clip(ends, lowest, highest) - lowest)
    by_window = np.argsort(low)  # ordered look-ups are faster
    rows, low, high = rows[by_window], low[by_window], high[by_window]
    start, stop = np.searchsorted(key, low, "left"), np.searchsorted(key, high, "right")
    some = np.flatnonzero(stop > start)
    return rows[some], truths, start[some], stop[some]


def _compare_pairs(
    sides: _Sides, rows: np.ndarray, truths: np.ndarray, start: np.ndarray, stop: np.ndarray, least: float, crowd: bool
) -> Iterator[_Pairs]:
    """The pairs that reach the threshold: intersection over union, or over the detection for a crowd."""
    pixel, many = sides.definition.pixel, np.cumsum(stop - start)
    own, other = np.take(sides.detections.corners, rows, axis=1), np.take(sides.truths.corners, truths, axis=1)
    area, other_area = (np.prod(side[2:] - side[:2] + pixel, axis=0) for side in (own, other))
    cuts = np.searchsorted(many, np.arange(_AT_ONCE, int(many[-1]) if len(many) else 0, _AT_ONCE))
    for piece in np.split(np.arange(len(rows)), np.unique(cuts)):
        counts = stop[piece] - start[piece]
        one = np.repeat(piece, counts)
        two = np.arange(len(one)) + np.repeat(start[piece] - (np.cumsum(counts) - counts), counts)
        height = _overlap_length(own[1::2], other[1::2], one, two) + pixel
        over = np.flatnonzero(height > 0)
        one, two, height = one[over], two[over], height[over]
        width = _overlap_length(own[::2], other[::2], one, two) + pixel
        both = np.maximum(width, 0) * height
        overlap = both / (area[one] if crowd else area[one] + other_area[two] - both)
        enough = sides.definition.reaches(overlap, least)
        yield _Pairs(rows[one[enough]], truths[two[enough]], overlap[enough])


def _overlap_length(sides: np.ndarray, truth_sides: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The length from where the later box begins to where the earlier ends."""
    end = np.minimum(sides[1, one], truth_sides[1, two])
    return np.asarray(end - np.maximum(sides[0, one], truth_sides[0, two]))
