"""Which detection finds which true box.

In order of confidence, each detection of an image takes the remaining true box that it overlaps most. This is a stable
matching in which all true boxes prefer the same detections, so it is computed by rounds of proposals over all images at
once (D. Gale & L. S. Shapley, "College admissions and the stability of marriage", American Mathematical Monthly 69,
1962): every unmatched detection proposes to its next true box, and every true box holds the best proposal.

Only pairs that can reach the threshold are compared: a box that overlaps another by the share t begins at most (1 - t)
/ t of the other's width before it and (1 - t) after it, and true boxes are sorted by where they begin.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluand.core.errors import DataError
from evaluand.metrics.base.labels import encode_labels
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.definition import Definition
from evaluand.metrics.detection.masks import overlaps
from evaluand.metrics.detection.outlines import area_of, polygon_of, shared_areas


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
        counted = _most_confident(place, rank, definition.most)
    limits = [definition.threshold(iou) for iou in ious]
    crowd = np.zeros(len(truths), np.bool_) if truths.crowd is None else truths.crowd
    truth_ignored = crowd | definition.outside(truths.areas(definition.pixel))
    outside = definition.outside(detections.areas(definition.pixel))
    pairs = _all_overlapping(detections, place, truths, truth_place, crowd, min(limits), definition)
    pairs = _Pairs(*(column[counted[pairs.detection]] for column in pairs))
    found, met = (np.zeros((len(limits), n), np.bool_) for n in (len(order), len(truths)))
    ignored = np.repeat(outside[None], len(limits), axis=0)
    for level, limit in enumerate(limits):
        enough = pairs.overlap > limit if definition.strict else pairs.overlap >= limit
        some = _Pairs(*(column[enough] for column in pairs))
        proposals, claims = (
            _proposal_order(some, truths, truth_ignored, definition),
            _preferences(some, detections, rank, definition),
        )
        partner, met[level] = _match_pairs(some, proposals, claims, crowd, len(order), definition.only_best)
        matched = np.flatnonzero(partner >= 0)
        ignored[level, matched] = truth_ignored[partner[matched]]
        found[level, matched] = ~ignored[level, matched]
    order = order[counted[order]]
    return Matching(order, found[:, order], label[order], truth_label, labels, met, ignored[:, order], truth_ignored)


class _Pairs(NamedTuple):
    """Pairs of boxes that overlap enough."""

    detection: np.ndarray
    truth: np.ndarray
    overlap: np.ndarray


def _places(
    detections: Boxes, truths: Boxes
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str | int | None]]:
    """The place (image and label) of every box, its label code, and the labels."""
    (place, truth_place), _ = encode_labels([detections.image, truths.image])
    if detections.label is None and truths.label is None:
        nothing = np.zeros(len(place), np.int64), np.zeros(len(truth_place), np.int64)
        return place, truth_place, *nothing, [None]
    if detections.label is None or truths.label is None:
        one, other = (detections, truths) if truths.label is None else (truths, detections)
        if len(other):
            raise DataError(f"{one.what}s have labels, but {other.what}s do not; give labels to both or to neither")
        label, truth_label = (
            np.zeros(0, np.int64) if boxes.label is None else encode_labels([boxes.label])[0][0]
            for boxes in (detections, truths)
        )
        names = encode_labels([one.label])[1]
    else:
        (label, truth_label), names = encode_labels([detections.label, truths.label])
    for boxes, codes in ((detections, label), (truths, truth_label)):
        if (codes < 0).any():
            raise DataError(boxes.fault(row, "has no label") for row in np.flatnonzero(codes < 0).tolist())
    n = max(len(names), 1)
    names_of: list[str | int | None] = names.tolist()
    return place * n + label, truth_place * n + truth_label, label, truth_label, names_of


def _order(detections: Boxes, definition: Definition) -> np.ndarray:
    """The rows from the most to the least confident."""
    n = len(detections)
    confidence = np.zeros(n) if detections.confidence is None else detections.confidence
    if definition.ties == "image":
        return np.asarray(np.lexsort((_sorted_codes(detections), -confidence)))
    order = np.argsort(-confidence, kind="stable")
    if definition.ties == "file" or not _has_equal_neighbours(confidence[order]):
        return order
    return np.asarray(np.lexsort((*detections.corners[::-1], -confidence)))


def _sorted_codes(detections: Boxes) -> np.ndarray:
    """The image of each row, as its position among the sorted images."""
    (code,), images = encode_labels([detections.image])
    place = np.empty(len(images), np.int64)
    place[np.array(sorted(range(len(images)), key=lambda i: images[i]), np.int64)] = np.arange(len(images))
    return np.asarray(place[code])


def _most_confident(place: np.ndarray, rank: np.ndarray, most: int) -> np.ndarray:
    """Which detections are among the most confident of their place."""
    rows = np.lexsort((rank, place))
    starts = np.flatnonzero(np.diff(place[rows], prepend=-1))
    number = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    within = np.empty(len(rows), np.bool_)
    within[rows] = number < most
    return within


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


def _all_overlapping(
    detections: Boxes,
    place: np.ndarray,
    truths: Boxes,
    truth_place: np.ndarray,
    crowd: np.ndarray,
    least: float,
    definition: Definition,
) -> _Pairs:
    """All pairs of the same place whose overlap reaches a threshold: of masks, of polygons, or of boxes."""
    if detections.mask is not None and truths.mask is not None:
        found = _overlapping_masks(detections.mask, place, truths.mask, truth_place, crowd)
    elif detections.mask is not None or truths.mask is not None:
        with_, without = ("detection", "truth") if truths.mask is None else ("truth", "detection")
        if len(detections) and len(truths):
            raise DataError(f"{with_}s have masks, but {without}s do not; give masks to both or to neither")
        return _Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    elif detections.outline is not None or truths.outline is not None:
        found = _overlapping_outlines(detections, place, truths, truth_place, crowd, definition)
    else:
        return _overlapping(detections.corners, place, truths.corners, truth_place, crowd, least, definition)
    enough = found.overlap > least if definition.strict else found.overlap >= least
    return _Pairs(*(column[enough] for column in found))


def _overlapping_masks(
    masks: Sequence[Any], place: np.ndarray, others: Sequence[Any], truth_place: np.ndarray, crowd: np.ndarray
) -> _Pairs:
    """The pairs of masks of the same place."""
    found = [_Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    by_place = dict(_rows_by_place(truth_place))
    for key, rows in _rows_by_place(place):
        among = by_place.get(key)
        if among is not None:
            overlap = overlaps([masks[row] for row in rows], [others[row] for row in among], crowd[among])
            found.append(_Pairs(np.repeat(rows, len(among)), np.tile(among, len(rows)), overlap.ravel()))
    return _Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _rows_by_place(place: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        yield int(place[rows[0]]), rows


def _overlapping_outlines(
    detections: Boxes,
    place: np.ndarray,
    truths: Boxes,
    truth_place: np.ndarray,
    crowd: np.ndarray,
    definition: Definition,
) -> _Pairs:
    """The pairs of polygons of the same place: of all whose boxes overlap, the exact overlap."""
    if definition.pixel:
        raise DataError(
            "polygons that are no upright rectangles have no overlap under a definition in which boxes include their"
            " last pixel; use the definition standard or coco"
        )
    near = _overlapping(detections.corners, place, truths.corners, truth_place, crowd, 0.0, definition)
    one, two = near.detection, near.truth
    outlines, others = _outlines(detections), _outlines(truths)
    shared = shared_areas(outlines, others, one, two)
    area, other = (np.array([area_of(each) for each in some], np.float64) for some in (outlines, others))
    total = np.where(crowd[two], area[one], area[one] + other[two] - shared)
    return _Pairs(one, two, np.minimum(shared / total, 1.0))


def _outlines(boxes: Boxes) -> list[np.ndarray]:
    """Each object as a polygon."""
    drawn = [None] * len(boxes) if boxes.outline is None else boxes.outline
    corners = boxes.corners.T.tolist()
    return [
        np.array(polygon_of(box), np.float64).reshape(-1, 2) if outline is None else outline
        for outline, box in zip(drawn, corners, strict=True)
    ]


def _overlapping(
    corners: np.ndarray,
    place: np.ndarray,
    truth_corners: np.ndarray,
    truth_place: np.ndarray,
    crowd: np.ndarray,
    least: float,
    definition: Definition,
) -> _Pairs:
    """All pairs of the same place whose overlap reaches a threshold."""
    every, truths = _usable(corners, place, truth_corners, truth_place, definition)
    nothing = np.empty(0, np.int64)
    found = [_Pairs(nothing, nothing, np.empty(0))]
    for many in (False, True):
        among = truths[crowd[truths] == many]
        if not len(every) or not len(among):
            continue
        sides = (corners, place, every, truth_corners, truth_place, among)
        rows, among, start, stop = _windows(*sides, least, many, definition)
        own, other = _add_areas(corners[:, rows], definition), _add_areas(truth_corners[:, among], definition)
        for piece in _pieces(start, stop):
            one, two, overlap = _compare_pairs(own, other, *piece, least, many, definition)
            found.append(_Pairs(rows[one], among[two], overlap))
    return _Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _usable(
    corners: np.ndarray, place: np.ndarray, truth_corners: np.ndarray, truth_place: np.ndarray, definition: Definition
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of either side that can overlap anything."""
    usable, truth_usable = (_has_area(each, definition.pixel) for each in (corners, truth_corners))
    if definition.takes == "anything":
        spoilt = truth_place[np.isnan(truth_corners).any(axis=0)]
        usable &= ~np.isin(place, spoilt)
    return np.flatnonzero(usable), np.flatnonzero(truth_usable)


def _has_area(corners: np.ndarray, pixel: int) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        extent = corners[2:] - corners[:2] + pixel
    return np.asarray(np.isfinite(corners).all(axis=0) & np.isfinite(extent).all(axis=0) & (extent > 0).all(axis=0))


def _windows(
    corners: np.ndarray,
    place: np.ndarray,
    rows: np.ndarray,
    truth_corners: np.ndarray,
    truth_place: np.ndarray,
    truths: np.ndarray,
    least: float,
    crowd: bool,
    definition: Definition,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The rows of detections, the true boxes sorted by place and beginning, and which of them each row may overlap.

    A crowd may begin anywhere before the end of what it covers, however wide it is.
    Place and beginning form one sortable number. Rounding may enlarge the window of a row but never shrink it, since it
    preserves the order of numbers; the distance of places is so large that no window reaches into the next.
    """
    begin = truth_corners[0, truths]
    lowest, highest = float(begin.min()), float(begin.max())
    stride = 2 * (highest - lowest) or 1.0
    key = truth_place[truths] * stride + (begin - lowest)
    order = np.argsort(key, kind="stable")
    truths, key = truths[order], key[order]
    x_min, width = corners[0, rows], corners[2, rows] - corners[0, rows] + definition.pixel
    with np.errstate(divide="ignore", over="ignore"):
        before = (1 - least) * width / np.float64(least)
        slack = _SLACK * (np.abs(x_min) + width / np.float64(least))
        ends = np.stack([x_min - before - slack, x_min + (1 - least) * width + slack])
        ends[0] = -np.inf if crowd else ends[0]
    low, high = place[rows] * stride + (np.clip(ends, lowest, highest) - lowest)
    by_window = np.argsort(low)  # ordered look-ups are faster
    rows, low, high = rows[by_window], low[by_window], high[by_window]
    start, stop = np.searchsorted(key, low, "left"), np.searchsorted(key, high, "right")
    some = np.flatnonzero(stop > start)
    return rows[some], truths, start[some], stop[some]


def _pieces(start: np.ndarray, stop: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """The rows in pieces of about `_AT_ONCE` pairs."""
    many = np.cumsum(stop - start)
    cuts = np.unique(np.searchsorted(many, np.arange(_AT_ONCE, int(many[-1]) if len(many) else 0, _AT_ONCE)))
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(start)], strict=True):
        if last > first:
            yield slice(first, last), start[first:last], stop[first:last]


def _compare_pairs(
    corners: np.ndarray,
    truths: np.ndarray,
    rows: slice,
    start: np.ndarray,
    stop: np.ndarray,
    least: float,
    crowd: bool,
    definition: Definition,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of some rows that reach the threshold: intersection over union, or over the detection for a crowd."""
    counts = stop - start
    one = np.repeat(np.arange(rows.start, rows.stop), counts)
    two = np.arange(len(one)) + np.repeat(start - (np.cumsum(counts) - counts), counts)
    height = _overlap_length(corners[1:4:2], truths[1:4:2], one, two) + definition.pixel
    over = np.flatnonzero(height > 0)
    one, two, height = one[over], two[over], height[over]
    width = _overlap_length(corners[0:4:2], truths[0:4:2], one, two) + definition.pixel
    both = np.maximum(width, 0) * height
    overlap = both / (corners[4, one] if crowd else corners[4, one] + truths[4, two] - both)
    enough = overlap > least if definition.strict else overlap >= least
    return one[enough], two[enough], overlap[enough]


def _overlap_length(sides: np.ndarray, truth_sides: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The length from where the later box begins to where the earlier ends."""
    end = np.minimum(sides[1, one], truth_sides[1, two])
    return np.asarray(end - np.maximum(sides[0, one], truth_sides[0, two]))


def _add_areas(corners: np.ndarray, definition: Definition) -> np.ndarray:
    width, height = corners[2:] - corners[:2] + definition.pixel
    return np.vstack([corners, width * height])
