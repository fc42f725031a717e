"""Which detection finds which true box.

In order of confidence, each detection of an image takes the remaining true box that it overlaps most. This is a stable
matching in which all true boxes prefer the same detections, so it is computed by rounds of proposals over all images at
once (D. Gale & L. S. Shapley, "College admissions and the stability of marriage", American Mathematical Monthly 69,
1962): every unmatched detection proposes to its next true box, and every true box holds the best proposal.

Only pairs that can reach the threshold are compared: a box that overlaps another by the share t begins at most (1 - t)
/ t of the other's width before it and (1 - t) after it, and true boxes are sorted by where they begin.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
import pyarrow as pa

from evaluand.core.errors import DataError
from evaluand.core.row_numbers import count_earlier
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
    """Match detections to true boxes of the same image and label; see `Images.match`."""
    return Images(detections, truths).match(ious, definition)


class Pairs(NamedTuple):
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


_ANY: Final = (-math.inf, math.inf)
_USUAL: Final = 0.5
"""Pairs are compared once for all thresholds from here on."""

Computed = TypeVar("Computed")


class Images:
    """Detected and true boxes of the same images, which many metrics match.

    What definitions, areas and thresholds have in common is computed once: which boxes overlap, the order of
    detections, and each matching.

    Attributes:
        labels: the label of each code; `[None]` without labels.
        label: the code of the label of each detection.
        truth_label: that of each true box.
    """

    def __init__(self, detections: Boxes, truths: Boxes) -> None:
        self.detections, self.truths = detections, truths
        none = np.zeros(len(truths), np.bool_)
        self.crowd: np.ndarray = none if truths.crowd is None else truths.crowd
        (image, truth_image), self._images = encode_labels([detections.image, truths.image])
        self._image = image
        self.label, self.truth_label, self.labels = _labels(detections, truths)
        n = max(len(self.labels), 1)
        self.place, self.truth_place = image * n + self.label, truth_image * n + self.truth_label
        self._computed: dict[Any, Any] = {}

    def match(self, ious: Sequence[float], definition: Definition) -> Matching:
        """Match detections to true boxes of the same image and label, at one or several thresholds.

        Ignored true boxes are tried last, so that they never displace one that counts, except under `only_best`. Any
        number of detections may find a crowd: those of which it covers enough. Boxes match from the overlaps `ious` on.

        Raises:
            DataError: a box or a confidence is invalid, or only one side has labels.
        """
        self._once(("valid", definition.takes), lambda: self._refuse_odd(definition.takes))
        order = self._once(("order", definition.ties), lambda: self._order(definition))
        lenient = definition.rounded and not definition.strict
        limits = [min(iou, 1 - 1e-10) if lenient else iou for iou in ious]
        rules = replace(definition, points="area", most=definition.most if definition.ties == "step" else None)
        truth_ignored, outside = self._once(("ignored", rules.area, rules.pixel), lambda: self._ignored(rules, order))
        levels = [self._once((limit, rules), lambda: self._match_at(limit, rules)) for limit in limits]  # noqa: B023
        partner, met = (np.stack(each) for each in zip(*levels, strict=True))
        ignored = np.where(partner >= 0, np.append(truth_ignored, False)[partner], outside)
        found = (partner >= 0) & ~ignored
        counted = np.flatnonzero(self._counted(definition))
        if len(counted) < len(order):
            order, found, ignored = order[counted], found[:, counted], ignored[:, counted]
        label, truth_label = self.label[order], self.truth_label
        return Matching(order, found, label, truth_label, self.labels, met, ignored, truth_ignored)

    def _once(self, key: Any, compute: Callable[[], Computed]) -> Computed:
        if key not in self._computed:
            self._computed[key] = compute()
        found: Computed = self._computed[key]
        return found

    def _refuse_odd(self, takes: Any) -> None:
        for boxes in (self.detections, self.truths):
            boxes.refuse_odd(takes)

    @property
    def _confidence(self) -> np.ndarray:
        own = self.detections.confidence
        return np.zeros(len(self.detections)) if own is None else own

    def _order(self, definition: Definition) -> np.ndarray:
        """The rows from the most to the least confident."""
        confidence = self._confidence
        if definition.ties == "image":
            return np.asarray(np.lexsort((np.argsort(in_order(self._images))[self._image], -confidence)))
        order = np.argsort(-confidence, kind="stable")
        if definition.ties == "file" or not _has_equal_neighbours(confidence[order]):
            return order
        return np.asarray(np.lexsort((*self.detections.corners[::-1], -confidence)))

    def _ignored(self, rules: Definition, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which true boxes do not count, and which detections, by rank, lie outside the area."""
        outside = [rules.outside(side.areas(rules.pixel)) for side in (self.truths, self.detections)]
        return self.crowd | outside[0], outside[1][order]

    def _counted(self, definition: Definition) -> np.ndarray:
        """Which detections, by rank, are among the most confident of their image and label."""
        order = self._once(("order", definition.ties), lambda: self._order(definition))
        if definition.most is None:
            return np.ones(len(order), np.bool_)
        return self._once(("number", definition.ties), lambda: count_earlier(self.place[order, None])) < definition.most

    def _match_at(self, limit: float, rules: Definition) -> tuple[np.ndarray, np.ndarray]:
        """The true box that each detection, by rank, finds, or -1, and whether each true box is found."""
        least = min(limit, _USUAL)
        pairs, claim = self._once(("tried", replace(rules, area=_ANY), least), lambda: self._tried(rules, least))
        truth_ignored, _ = self._computed["ignored", rules.area, rules.pixel]
        chosen = np.flatnonzero(rules.reaches(pairs.overlap, limit))
        if not rules.only_best and (late := truth_ignored[pairs.truth[chosen]]).any():
            chosen = chosen[np.argsort(2 * pairs.detection[chosen] + late, kind="stable")]
        some, n = pairs.select(chosen), len(self.detections)
        return _match_pairs(some, claim[chosen], self.crowd, n, rules.only_best)

    def _tried(self, rules: Definition, least: float) -> tuple[Pairs, np.ndarray]:
        """The pairs that reach a threshold in the order in which they are tried, and the preferences of true boxes.

        Detections are numbered by rank, and each prefers larger overlaps. For equal ones, the smaller box comes first
        if rows have no order; else the first in the file or, as in pycocotools, the last. Of the preferences of a true
        box, numbers for each pair, smaller ones are better.
        """
        order = self._once(("order", rules.ties), lambda: self._order(rules))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        pairs = _overlapping(self, rules, least)
        pairs = pairs._replace(detection=rank[pairs.detection])
        if rules.most is not None:
            pairs = pairs.select(self._counted(rules)[pairs.detection])
        place = np.arange(len(self.truths)) if rules.ties != "image" else -np.arange(len(self.truths))
        if rules.ties == "step":
            place[np.lexsort(self.truths.corners[::-1])] = np.arange(len(self.truths))
        pairs = pairs.select(np.lexsort((place[pairs.truth], -pairs.overlap, pairs.detection)))
        claim = pairs.detection
        confidence = self._confidence[order]
        if rules.ties == "step" and _has_equal_neighbours(confidence):
            claim = np.empty(len(claim), np.int64)
            by_claim = np.lexsort((pairs.detection, -pairs.overlap, -confidence[pairs.detection]))
            claim[by_claim] = np.arange(len(claim))
        return pairs, claim


def _labels(detections: Boxes, truths: Boxes) -> tuple[np.ndarray, np.ndarray, list[str | int | None]]:
    """The label codes of both sides, and the labels."""
    if detections.label is None and truths.label is None:
        return np.zeros(len(detections), np.int64), np.zeros(len(truths), np.int64), [None]
    for side, other in ((detections, truths), (truths, detections)):
        if other.label is None and len(other):
            raise DataError(f"{side.what}s have labels, but {other.what}s do not; give labels to both or to neither")
    labels = [pa.nulls(0) if boxes.label is None else boxes.label for boxes in (detections, truths)]
    (label, truth_label), names = encode_labels(labels)
    for boxes, codes in ((detections, label), (truths, truth_label)):
        if (codes < 0).any():
            raise DataError(boxes.fault(row, "has no label") for row in np.flatnonzero(codes < 0).tolist())
    return label, truth_label, names.tolist()


def _has_equal_neighbours(column: np.ndarray) -> bool:
    """Whether any row equals the one before."""
    return bool((column[1:] == column[:-1]).any())


def _match_pairs(
    pairs: Pairs, claim: np.ndarray, crowd: np.ndarray, n: int, only_best: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The true box that each of n detections finds, or -1, and whether each true box is found.

    Pairs are tried in their order; `claim` has the preferences of true boxes, of which a `crowd` accepts every one.
    """
    detection, truth = pairs.detection, pairs.truth
    place = truth
    if crowd.any():
        place = np.where(crowd[truth], len(crowd) + np.arange(len(truth)), truth)  # a crowd has a place for each
    first = np.ones(len(truth), np.bool_)
    first[1:] = detection[1:] != detection[:-1]
    last = np.append(first[1:], True) if not only_best else np.ones(len(truth), np.bool_)
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


_AT_ONCE: Final = 1 << 17  # pairs of boxes that fit into the processor's cache
_SLACK: Final = 1e-9


def _overlapping(sides: Images, definition: Definition, least: float) -> Pairs:
    """All pairs of the same place whose overlap reaches a threshold: of masks, of polygons, or of boxes."""
    detections, truths = sides.detections, sides.truths
    if detections.mask is not None and truths.mask is not None:
        found = Pairs.join(_overlapping_masks(sides, detections.mask, truths.mask))
    elif detections.mask is not None or truths.mask is not None:
        with_, without = ("detection", "truth") if truths.mask is None else ("truth", "detection")
        if len(detections) and len(truths):
            raise DataError(f"{with_}s have masks, but {without}s do not; give masks to both or to neither")
        return Pairs.join([])
    elif detections.outline is not None or truths.outline is not None:
        found = _overlapping_outlines(sides, definition)
    else:
        return _overlapping_boxes(sides, definition, least)
    return found.select(definition.reaches(found.overlap, least))


def _overlapping_masks(sides: Images, masks: Sequence[Any], others: Sequence[Any]) -> Iterator[Pairs]:
    """The pairs of masks of the same place."""
    by_place = dict(_rows_by_place(sides.truth_place))
    for key, rows in _rows_by_place(sides.place):
        among = by_place.get(key)
        if among is not None:
            overlap = overlaps([masks[row] for row in rows], [others[row] for row in among], sides.crowd[among])
            yield Pairs(np.repeat(rows, len(among)), np.tile(among, len(rows)), overlap.ravel())


def _rows_by_place(place: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    order = np.argsort(place, kind="stable")
    for rows in np.split(order, runs(place[order])[1:]) if len(order) else ():
        yield int(place[rows[0]]), rows


def _overlapping_outlines(sides: Images, definition: Definition) -> Pairs:
    """The pairs of polygons of the same place: of all whose boxes overlap, the exact overlap."""
    if definition.pixel:
        raise DataError(
            "polygons that are no upright rectangles have no overlap under a definition in which boxes include their"
            " last pixel; use the definition standard or coco"
        )
    one, two, _ = near = _overlapping_boxes(sides, definition, 0.0)
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


def _overlapping_boxes(sides: Images, definition: Definition, least: float) -> Pairs:
    """All pairs of boxes of the same place whose overlap reaches a threshold."""
    parts: list[Pairs] = []
    usable, truth_usable = (_have_area(side.corners, definition.pixel) for side in (sides.detections, sides.truths))
    if definition.takes == "anything":
        usable &= ~np.isin(sides.place, sides.truth_place[np.isnan(sides.truths.corners).any(axis=0)])
    rows = np.flatnonzero(usable)
    for crowd in (False, True):
        among = np.flatnonzero(truth_usable & (sides.crowd == crowd))
        if len(rows) and len(among):
            parts += _compare_pairs(
                sides, *_windows(sides, rows, among, definition, least, crowd), definition, least, crowd
            )
    return Pairs.join(parts)


def _have_area(corners: np.ndarray, pixel: int) -> np.ndarray:
    """Which boxes can overlap anything."""
    with np.errstate(invalid="ignore", over="ignore"):
        extent = corners[2:] - corners[:2] + pixel
    return np.asarray(np.isfinite(corners).all(axis=0) & np.isfinite(extent).all(axis=0) & (extent > 0).all(axis=0))


def _windows(
    sides: Images, rows: np.ndarray, truths: np.ndarray, definition: Definition, least: float, crowd: bool
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
    x_min, width = corners[0, rows], corners[2, rows] - corners[0, rows] + definition.pixel
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
    sides: Images,
    rows: np.ndarray,
    truths: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    definition: Definition,
    least: float,
    crowd: bool,
) -> Iterator[Pairs]:
    """The pairs that reach the threshold: intersection over union, or over the detection for a crowd."""
    pixel, many = definition.pixel, np.cumsum(stop - start)
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
        enough = definition.reaches(overlap, least)
        yield Pairs(rows[one[enough]], truths[two[enough]], overlap[enough])


def _overlap_length(sides: np.ndarray, truth_sides: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The length from where the later box begins to where the earlier ends."""
    end = np.minimum(sides[1, one], truth_sides[1, two])
    return np.asarray(end - np.maximum(sides[0, one], truth_sides[0, two]))
