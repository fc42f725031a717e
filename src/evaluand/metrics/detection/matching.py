"""Which detection finds which true box.

Going through the detections of an image from the surest to the least sure, each takes the true box it overlaps most of
those that are left. That is a stable matching in which all true boxes prefer the same detections, so it is found by
rounds of proposals over all images at once (D. Gale & L. S. Shapley, "College admissions and the stability of
marriage", American Mathematical Monthly 69, 1962): every detection without a partner asks for its next true box, and
every true box keeps the best that asked.

Only pairs that can reach the threshold are ever compared: a box that overlaps another by the share t begins at most
(1 - t) / t of the other's width before it and (1 - t) after it, and true boxes are sorted by where they begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from evaluand.core.errors import DataError
from evaluand.metrics.base.labels import coded
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.definition import Definition


class Matching(NamedTuple):
    """What detections found.

    Attributes:
        order: the rows of the detections that count, from the surest to the least sure.
        found: thresholds × detections in this order: whether each is right.
        label: the label of each detection in this order, as a code; 0 without labels.
        truth_label: the label of each true box, in its row.
        labels: the label of each code; `[None]` without labels.
        met: thresholds × true boxes in their rows: whether each was found.
        ignored: thresholds × detections in this order: whether each is neither right nor wrong, since it found an
            ignored true box, or nothing and lies outside the area.
        truth_ignored: which true boxes need not be found, in their rows: crowds, and those outside the area.
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
    """Matches detections to true boxes of the same image and label, at one or several thresholds.

    Ignored true boxes come last, so that one that counts is not missed for them, but where a detection is held to the
    one it overlaps most. A crowd is found by as many detections as there are in it: those of which it covers enough.

    Args:
        ious: the overlaps a match is held to.

    Raises:
        DataError: a box or a confidence is none, or only one side has labels.
    """
    for boxes in (detections, truths):
        boxes.refuse_odd(definition.takes)
    place, truth_place, label, truth_label, labels = _places(detections, truths)
    order = _order(detections, definition)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    kept = np.ones(len(order), np.bool_)
    if definition.most is not None:
        kept = _surest(place, rank, definition.most)
    limits = [definition.threshold(iou) for iou in ious]
    crowd = np.zeros(len(truths), np.bool_) if truths.crowd is None else truths.crowd
    left_out, outside = crowd | definition.outside(truths.corners), definition.outside(detections.corners)
    pairs = _overlapping(detections.corners, place, truths.corners, truth_place, crowd, min(limits), definition)
    pairs = _Pairs(*(column[kept[pairs.detection]] for column in pairs))
    found, met = (np.zeros((len(limits), n), np.bool_) for n in (len(order), len(truths)))
    ignored = np.repeat(outside[None], len(limits), axis=0)
    for level, limit in enumerate(limits):
        enough = pairs.overlap > limit if definition.strict else pairs.overlap >= limit
        some = _Pairs(*(column[enough] for column in pairs))
        asked, claims = _asked(some, truths, left_out, definition), _claims(some, detections, rank, definition)
        partner, met[level] = _matched(some, asked, claims, crowd, len(order), definition.only_best)
        matched = np.flatnonzero(partner >= 0)
        ignored[level, matched] = left_out[partner[matched]]
        found[level, matched] = ~ignored[level, matched]
    order = order[kept[order]]
    return Matching(order, found[:, order], label[order], truth_label, labels, met, ignored[:, order], left_out)


class _Pairs(NamedTuple):
    """Pairs of boxes that overlap enough."""

    detection: np.ndarray
    truth: np.ndarray
    overlap: np.ndarray


def _places(
    detections: Boxes, truths: Boxes
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str | int | None]]:
    """The place (image and label) of every box, its label, and what the labels are."""
    (place, truth_place), _ = coded([detections.image, truths.image])
    if detections.label is None and truths.label is None:
        nothing = np.zeros(len(place), np.int64), np.zeros(len(truth_place), np.int64)
        return place, truth_place, *nothing, [None]
    if detections.label is None or truths.label is None:
        one, other = (detections, truths) if truths.label is None else (truths, detections)
        if len(other):
            raise DataError(f"{one.what}s have labels and {other.what}s have none; give both a label, or neither")
        label, truth_label = (
            np.zeros(0, np.int64) if boxes.label is None else coded([boxes.label])[0][0]
            for boxes in (detections, truths)
        )
        names = coded([one.label])[1]
    else:
        (label, truth_label), names = coded([detections.label, truths.label])
    for boxes, codes in ((detections, label), (truths, truth_label)):
        if (codes < 0).any():
            raise DataError(boxes.fault(row, "has no label") for row in np.flatnonzero(codes < 0).tolist())
    n = max(len(names), 1)
    names_of: list[str | int | None] = names.tolist()
    return place * n + label, truth_place * n + truth_label, label, truth_label, names_of


def _order(detections: Boxes, definition: Definition) -> np.ndarray:
    """The rows from the surest to the least sure."""
    n = len(detections)
    confidence = np.zeros(n) if detections.confidence is None else detections.confidence
    if definition.ties == "image":
        return np.asarray(np.lexsort((_sorted_codes(detections), -confidence)))
    order = np.argsort(-confidence, kind="stable")
    if definition.ties == "file" or not _any_alike(confidence[order]):
        return order
    return np.asarray(np.lexsort((*detections.corners[::-1], -confidence)))


def _sorted_codes(detections: Boxes) -> np.ndarray:
    """The image of each row, as its position among all images in their order."""
    (code,), images = coded([detections.image])
    place = np.empty(len(images), np.int64)
    place[np.array(sorted(range(len(images)), key=lambda i: images[i]), np.int64)] = np.arange(len(images))
    return np.asarray(place[code])


def _surest(place: np.ndarray, rank: np.ndarray, most: int) -> np.ndarray:
    """Which detections are among the surest of their place."""
    rows = np.lexsort((rank, place))
    starts = np.flatnonzero(np.diff(place[rows], prepend=-1))
    number = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
    kept = np.empty(len(rows), np.bool_)
    kept[rows] = number < most
    return kept


def _claims(pairs: _Pairs, detections: Boxes, rank: np.ndarray, definition: Definition) -> np.ndarray:
    """What a true box prefers, as a number for each pair: the smaller."""
    confidence = np.zeros(len(detections)) if detections.confidence is None else detections.confidence
    own, asking = confidence[pairs.detection], rank[pairs.detection]
    if definition.ties != "step" or not _any_alike(np.sort(confidence)):
        return np.asarray(asking)
    claim = np.empty(len(own), np.int64)
    claim[np.lexsort((asking, -pairs.overlap, -own))] = np.arange(len(own))
    return claim


def _asked(pairs: _Pairs, truths: Boxes, ignored: np.ndarray, definition: Definition) -> np.ndarray:
    """The order in which pairs are tried, detection by detection: the larger overlap first, with what counts.

    Of equal ones the smaller box is the first where rows have no order, else the first or, as pycocotools has it, the
    last in the file.
    """
    late = ignored[pairs.truth] & (not definition.only_best)
    order = np.lexsort((-pairs.overlap, late, pairs.detection))
    if not _any_alike(pairs.detection[order], late[order], pairs.overlap[order]):
        return np.asarray(order)
    place = np.arange(len(truths)) if definition.ties != "image" else -np.arange(len(truths))
    if definition.ties == "step":
        place[np.lexsort(truths.corners[::-1])] = np.arange(len(truths))
    return np.asarray(np.lexsort((place[pairs.truth], -pairs.overlap, late, pairs.detection)))


def _any_alike(*columns: np.ndarray) -> bool:
    """Whether a row is equal to the one before."""
    return bool(np.logical_and.reduce([column[1:] == column[:-1] for column in columns]).any())


def _matched(
    pairs: _Pairs, order: np.ndarray, claim: np.ndarray, crowd: np.ndarray, n: int, only_best: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The true box that each of n detections gets, or -1, and whether each true box is found.

    Args:
        order: in which pairs are tried.
        claim: what a true box prefers.
        crowd: which true boxes take all that ask.
    """
    detection, truth, claim = pairs.detection[order], pairs.truth[order], claim[order]
    place = np.where(crowd[truth], len(crowd) + np.arange(len(truth)), truth)  # in a crowd there is one for each
    first = np.ones(len(order), np.bool_)
    first[1:] = detection[1:] != detection[:-1]
    last = np.append(first[1:], True) if not only_best else np.ones(len(order), np.bool_)
    holder = np.full(len(crowd) + len(truth), -1, np.int64)  # the pair by which each true box is held
    asking = np.flatnonzero(first)
    while len(asking):
        asking = asking[np.argsort(-claim[asking], kind="stable")]
        asked = place[asking]
        before = holder[asked]
        better = (before < 0) | (claim[asking] < claim[before])
        holder[asked[better]] = asking[better]  # of several, the last, which has the best claim
        displaced = before[better & (before >= 0)]
        refused = np.concatenate([asking[holder[asked] != asking], np.unique(displaced)])
        asking = refused[~last[refused]] + 1
    holding = holder[holder >= 0]
    partner, met = np.full(n, -1, np.int64), np.zeros(len(crowd), np.bool_)
    partner[detection[holding]], met[truth[holding]] = truth[holding], True
    return partner, met


_AT_ONCE = 1 << 17  # pairs of boxes, which the processor's cache holds
_SLACK = 1e-9


def _overlapping(
    corners: np.ndarray,
    place: np.ndarray,
    truth_corners: np.ndarray,
    truth_place: np.ndarray,
    crowd: np.ndarray,
    least: float,
    definition: Definition,
) -> _Pairs:
    """All pairs of one place whose overlap reaches a threshold."""
    every, truths = _usable(corners, place, truth_corners, truth_place, definition)
    nothing = np.empty(0, np.int64)
    found = [_Pairs(nothing, nothing, np.empty(0))]
    for many in (False, True):
        among = truths[crowd[truths] == many]
        if not len(every) or not len(among):
            continue
        sides = (corners, place, every, truth_corners, truth_place, among)
        rows, among, start, stop = _windows(*sides, least, many, definition)
        own, other = _with_areas(corners[:, rows], definition), _with_areas(truth_corners[:, among], definition)
        for piece in _pieces(start, stop):
            one, two, overlap = _compared(own, other, *piece, least, many, definition)
            found.append(_Pairs(rows[one], among[two], overlap))
    return _Pairs(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _usable(
    corners: np.ndarray, place: np.ndarray, truth_corners: np.ndarray, truth_place: np.ndarray, definition: Definition
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of either side that can overlap something at all."""
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
    """The rows of detections, the true boxes sorted by place and beginning, and of each row which it may overlap.

    A crowd may begin anywhere before the end of what it covers, however wide it is.
    Place and beginning make one sortable number. Rounding may make the window of a row larger and never smaller, since
    it keeps the order of numbers, and places are so far apart that no window reaches into the next.
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
    by_window = np.argsort(low)  # what is looked up in order is found faster
    rows, low, high = rows[by_window], low[by_window], high[by_window]
    start, stop = np.searchsorted(key, low, "left"), np.searchsorted(key, high, "right")
    some = np.flatnonzero(stop > start)
    return rows[some], truths, start[some], stop[some]


def _pieces(start: np.ndarray, stop: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """The rows in pieces of about as many pairs as are compared at once."""
    many = np.cumsum(stop - start)
    cuts = np.unique(np.searchsorted(many, np.arange(_AT_ONCE, int(many[-1]) if len(many) else 0, _AT_ONCE)))
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(start)], strict=True):
        if last > first:
            yield slice(first, last), start[first:last], stop[first:last]


def _compared(
    corners: np.ndarray,
    truths: np.ndarray,
    rows: slice,
    start: np.ndarray,
    stop: np.ndarray,
    least: float,
    crowd: bool,
    definition: Definition,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of some rows that reach the threshold: intersection over union, with a crowd over the detection."""
    counts = stop - start
    one = np.repeat(np.arange(rows.start, rows.stop), counts)
    two = np.arange(len(one)) + np.repeat(start - (np.cumsum(counts) - counts), counts)
    height = _shared(corners[1:4:2], truths[1:4:2], one, two) + definition.pixel
    over = np.flatnonzero(height > 0)
    one, two, height = one[over], two[over], height[over]
    width = _shared(corners[0:4:2], truths[0:4:2], one, two) + definition.pixel
    both = np.maximum(width, 0) * height
    overlap = both / (corners[4, one] if crowd else corners[4, one] + truths[4, two] - both)
    enough = overlap > least if definition.strict else overlap >= least
    return one[enough], two[enough], overlap[enough]


def _shared(sides: np.ndarray, truth_sides: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """From where the later begins to where the earlier ends."""
    end = np.minimum(sides[1, one], truth_sides[1, two])
    return np.asarray(end - np.maximum(sides[0, one], truth_sides[0, two]))


def _with_areas(corners: np.ndarray, definition: Definition) -> np.ndarray:
    width, height = corners[2:] - corners[:2] + definition.pixel
    return np.vstack([corners, width * height])
