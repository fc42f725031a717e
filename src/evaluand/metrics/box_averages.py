"""The average precision and the average recall of object detection: boxes of images, matched and ranked by label."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.base.curves import PARTS, POINTS, Curve, Drawn, part_name, thin_curve
from evaluand.metrics.base.labels import in_order, object_array, one_vocabulary
from evaluand.metrics.base.left_out import LeftOut
from evaluand.metrics.base.metric import CLUSTER, LABELS, WEIGHT, Columns, Fill, Metric, State, refuse, refuse_empty
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric
from evaluand.metrics.detection.boxes import COORDINATES, Boxes
from evaluand.metrics.detection.definition import Area, Definition, Points, definition_of
from evaluand.metrics.detection.matching import match
from evaluand.metrics.detection.outlines import read_outline
from evaluand.metrics.detection.precision import check_iou, curve, mean_over_recall, steps
from evaluand.metrics.stats.intervals import count_rows, random_bits, runs

_BOXES: Final = "boxes"
_ROW: Final = ("label", "sort", "confidence", "corners", "found", "ignored")
"""The columns of a box: label, sort (true box or detection), confidence, corners, and at which thresholds it is right,
or ignored. True boxes that do not count are left out."""

_TRUTH, _DETECTED, _IMAGE, _TO_ZERO, _TO_ONE = range(5)
"""The sorts of rows: true boxes, detections, one row per image, and images without a score, whose value may go to 0, or
to 1."""

COCO: Final = "0.50:0.95"

_SET: Final = "_set_"
"""Which images are left out together: sets of numbers that systems share, or `_BY_CONTENT`."""

_BY_CONTENT: Final = -1
_MOST_SETS: Final = 256
"""The most images that are left out one by one; of more, as many sets."""


class Detected(NamedTuple):
    """The rows of one label: first the true boxes, then the detections, from the most confident down."""

    name: str | int | None
    truths: slice
    detections: slice
    confidence: np.ndarray
    found: np.ndarray  # detections × thresholds
    ignored: np.ndarray  # likewise
    last: np.ndarray  # where steps end
    up: list[np.ndarray]  # for each threshold, ends of steps with something right; others only lower precision


@dataclass(frozen=True, kw_only=True)
class OfBoxes(WeightedRowsMetric):
    """The mean over classes of a value of each class's boxes; reads the table of the scorer `detection`.

    Args:
        iou: intersection over union from which boxes match; several for the mean over them, and `0.50:0.95` for that
            of COCO, over .50, .55, … .95.
        label: only boxes of this label, or of one of several, for the mean over them.
        definition: `standard`, `3.1.1`, `core-2022` or `coco`; see `DEFINITIONS`.
        area: only boxes of this area, by COCO's ranges: `small` up to 32², `medium` up to 96², or `large`. True boxes
            outside are ignored, and so are detections outside that find nothing.
        max_detections: how many detections of each image and label count, the most confident first; by default as the
            definition says.
        weighted: each image counts by its weight.
        confidence: of the interval, which leaves out images; None for no interval.

    Raises:
        SpecError: there is no such definition or area, or a threshold is invalid.
    """

    direction = "higher"
    range = (0.0, 1.0)
    row_range = (0.0, 1.0)
    row_columns: ClassVar[tuple[str, ...]] = (*_ROW, _SET)
    columns = ("truths", "detections")
    fill_columns = ("truths",)

    iou: float | Sequence[float] | str = 0.5
    label: str | int | Sequence[str | int] | None = None
    definition: str = "standard"
    area: Area | None = None
    max_detections: int | None = None

    def __post_init__(self) -> None:
        rules, thresholds = self.rules, self.thresholds
        if isinstance(self.label, list | tuple):
            object.__setattr__(self, "label", tuple(self.label))
        if not thresholds:
            raise SpecError(f"{self.kind}: iou={self.iou!r} has no threshold; give one, such as 0.5")
        for iou in thresholds:
            check_iou(iou, rules)
        if len(set(thresholds)) < len(thresholds):
            raise SpecError(f"{self.kind}: iou={self.iou!r} repeats a threshold; give each once")
        ious = tuple(sorted(map(float, thresholds)))
        object.__setattr__(self, "iou", COCO if ious == rules.over_thresholds else ious if len(ious) > 1 else ious[0])
        if rules.most == definition_of(self.definition).most:
            object.__setattr__(self, "max_detections", None)
        super().__post_init__()

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The overlaps from which boxes match."""
        if self.iou == COCO:
            return self.rules.over_thresholds
        iou: Any = self.iou
        return tuple(iou) if isinstance(iou, list | tuple) else (iou,)

    @property
    def rules(self) -> Definition:
        """The definition, with the other parameters applied."""
        return definition_of(self.definition, area=self.area, max_detections=self.max_detections)

    @property
    def counts_independent_rows(self) -> bool:
        """False: a row is a box, and its image must be known."""
        return False

    @abstractmethod
    def of_label(self, label: Detected, level: int, weight: np.ndarray, slack: float) -> np.ndarray:
        """The value of one label at one threshold by replicate; arbitrary where there are no true boxes.

        `weight` is replicates × rows of all labels; `slack` is how much rounding may take from a share of it.
        """

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Codes of merged states get one vocabulary; in the table, labels are within JSON."""
        return ("label",)

    def prepare(self, columns: Columns) -> Columns:
        for name in self.columns:
            refuse_empty(columns, name)
        rows, vocabulary = self._rows(
            columns, *([_parse_boxes(name, text) for text in columns[name].tolist()] for name in self.columns)
        )
        return {_BOXES: rows, LABELS: vocabulary}

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        cells = missing["truths"].tolist() if "truths" in missing else [None] * int(np.count_nonzero(~scored))
        unknown = np.array([cell is None or cell != cell for cell in cells], np.bool_)
        if fill == "wrong":
            refuse(missing, unknown, lambda row: "has no score, and its boxes are unknown; use missing='leave_out'")
        truths = [
            _NOTHING if nothing else _parse_boxes("truths", cell) for cell, nothing in zip(cells, unknown, strict=True)
        ]
        found, own = self._rows(missing, truths, [_NOTHING] * len(truths))
        vocabulary, (_, code) = one_vocabulary([columns[LABELS], own])
        every = np.empty(len(scored), np.object_)
        every[scored] = columns[_BOXES]
        for place, rows, nothing in zip(np.flatnonzero(~scored).tolist(), found, unknown.tolist(), strict=True):
            rows["label"] = code[rows["label"]]
            every[place] = np.concatenate([rows, *self.substitute_boxes(fill, rows, nothing)])
        return {_BOXES: every, LABELS: vocabulary}

    def substitute_boxes(self, fill: Fill, rows: np.ndarray, unknown: bool) -> Iterator[np.ndarray]:
        """The rows that stand in for the detections of an image without a score."""
        if fill == "worst":
            yield self._marker_row(_TO_ZERO)
        elif fill == "best":
            right = rows[rows["sort"] == _TRUTH]
            right["sort"], right["confidence"], right["found"] = _DETECTED, math.inf, True
            yield right
            if unknown:
                yield self._marker_row(_TO_ONE)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        images = columns[_BOXES].tolist()
        each = np.repeat(np.arange(len(images)), [len(rows) for rows in images])
        boxes = np.concatenate([self._marker_row(_IMAGE)[:0], *images])
        sets = columns.get(_SET, np.full(len(images), _BY_CONTENT))
        of_images = {name: columns[name][each] for name in (CLUSTER, WEIGHT) if name in columns} | {_SET: sets[each]}
        of_boxes = {name: boxes[name] for name in _ROW}
        state = super().state({**of_boxes, **of_images, LABELS: columns[LABELS]}, group[each], n_groups)
        return {**state, "n": count_rows(group, n_groups)}

    def arranged(self, rows: Columns) -> Columns:
        """Sorted by label, true boxes first, then the detections from the surest down; where each label stands."""
        detected, confidence = rows["sort"] == _DETECTED, rows["confidence"]
        if np.isnan(confidence[detected]).any() and np.isfinite(confidence[detected]).any():
            raise DataError("some detections have a confidence and some have none; give it to all, or to none")
        ranks = np.argsort(in_order(rows[LABELS]) if len(rows[LABELS]) else [0])
        label = np.where(rows["label"] >= 0, ranks[np.maximum(rows["label"], 0)], -1)
        descending = np.where(detected, -np.nan_to_num(confidence, nan=0.0, posinf=np.inf), 0.0)
        corners = rows["corners"].T[::-1] if self.rules.ties == "box" else ()
        order = np.lexsort((*corners, descending, rows["sort"], label))
        found = {name: rows[name][order] for name in (*_ROW, _SET, WEIGHT)} | {"label": label[order]}
        labels = self._labels(found, rows[LABELS][in_order(rows[LABELS])])
        keys = {CLUSTER: rows[CLUSTER]} if CLUSTER in rows else {}
        return {**found, **keys, LABELS: rows[LABELS], DETECTED: object_array(labels), _ORDER: order}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        each = [values for _, values in self._by_label(rows, weight)]
        value = _mean(np.stack(each or [np.full(len(weight), np.nan)]))
        for sort, end in ((_TO_ONE, 1.0), (_TO_ZERO, 0.0)):
            value = np.where((weight * (rows["sort"] == sort)).any(axis=1), end, value)
        return np.asarray(value)

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        """Both sides leave out the same sets of images, whose numbers are those of the clusters."""
        sets = np.asarray(columns[CLUSTER] % _MOST_SETS)
        return super().leave_out({**columns, CLUSTER: sets, _SET: sets}, group, n_groups)

    def changes(self, rows: Columns, value: float) -> np.ndarray:
        """What an image adds stands at one of its rows; of many images, what a set of them adds at its first image."""
        images, cluster = np.where(rows["sort"] == _IMAGE, rows[WEIGHT], 0.0), rows[CLUSTER][rows[_ORDER]]
        sets = rows[_SET] if (rows[_SET] != _BY_CONTENT).any() else _sets_by_content(rows, cluster)
        names, of_row = np.unique(sets, return_inverse=True)
        share = np.bincount(of_row, images) / images.sum()
        left = (value - self._without_sets(rows, of_row, len(names))) * (1 - share)
        by_cluster, found = np.lexsort((cluster, of_row)), np.zeros(len(sets))
        found[rows[_ORDER][by_cluster[runs(of_row[by_cluster])]]] = left - left.mean()
        return found

    def _without_sets(self, rows: Columns, of_row: np.ndarray, n: int) -> np.ndarray:
        """The value without each set of images, which changes only the labels that the set has boxes of."""
        weight, slack = _in_whole_units(rows[WEIGHT], rows[WEIGHT])
        sets = np.arange(n)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = [self._label_without_each(label, weight, slack, of_row, sets) for label in rows[DETECTED]]
            return _mean(np.stack(each or [np.full(n, np.nan)]))

    def _label_without_each(
        self, label: Detected, weight: np.ndarray, slack: float, block: np.ndarray, blocks: np.ndarray
    ) -> np.ndarray:
        first, middle, last = label.truths.start, label.detections.start, label.detections.stop
        weight, block = weight[first:last], block[first:last]
        own_rows = label._replace(truths=slice(0, middle - first), detections=slice(middle - first, last - first))
        found = np.repeat(self._of_label(own_rows, weight[None], slack), len(blocks))
        own = np.unique(block[weight > 0])
        step = max(1, _AT_ONCE // len(weight))
        for some in (own[i : i + step] for i in range(0, len(own), step)):
            left = np.where(block == some[:, None], 0.0, weight)
            found[np.searchsorted(blocks, some)] = self._of_label(own_rows, left, slack)
        return found

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        of_area = "" if self.area is None else f" of the area {self.area!r}"
        several = f"one of {len(self.label)} labels" if isinstance(self.label, tuple) else f"the label {self.label!r}"
        return f"no image has a true box{of_area}" + ("" if self.label is None else f" with {several}")

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of boxes, and the value of each label if there are labels."""
        labels = {
            str(label.name): {"value": float(values[0]) if math.isfinite(values[0]) else None}
            | _counts(label.truths.stop - label.truths.start, len(label.confidence))
            for label, values in self._by_label(rows, weight[None])
            if label.name is not None
        }
        counts = _counts(*(int(np.count_nonzero(rows["sort"] == sort)) for sort in (_TRUTH, _DETECTED)))
        return counts | ({"labels": labels} if labels else {})

    def _by_label(self, rows: Columns, weight: np.ndarray) -> Iterator[tuple[Detected, np.ndarray]]:
        """The value of each label by replicate."""
        weight, slack = _in_whole_units(weight, rows[WEIGHT])
        for label in rows[DETECTED]:
            yield label, self._of_label(label, weight, slack)

    def _of_label(self, label: Detected, weight: np.ndarray, slack: float) -> np.ndarray:
        """The mean over thresholds by replicate, NaN without true boxes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            each = [self.of_label(label, level, weight, slack) for level in range(len(self.thresholds))]
        return np.where(weight[:, label.truths].sum(axis=1) > 0, np.mean(each, axis=0), np.nan)

    def _labels(self, rows: Columns, vocabulary: np.ndarray) -> Iterator[Detected]:
        """The labels of sorted rows, from a sorted vocabulary."""
        borders = np.flatnonzero(np.diff(rows["label"], prepend=-2, append=len(vocabulary)))
        for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            if rows["label"][start] < 0:
                continue
            middle = start + int(np.searchsorted(rows["sort"][start:stop], _DETECTED))
            confidence, found = rows["confidence"][middle:stop], rows["found"][middle:stop]
            last = steps(np.nan_to_num(confidence, posinf=np.inf), self.rules)
            yield Detected(
                vocabulary[rows["label"][start]],
                slice(start, middle),
                slice(middle, stop),
                confidence,
                found,
                rows["ignored"][middle:stop],
                last,
                [last[np.unique(np.searchsorted(last, np.flatnonzero(right), "left"))] for right in found.T],
            )

    def _marker_row(self, sort: int) -> np.ndarray:
        """A row that is not a box."""
        row = np.zeros(1, self._type)
        row["label"], row["sort"] = -1, sort
        return row

    @property
    def _type(self) -> np.dtype[Any]:
        """The type of a row; corners are included only if they break ties."""
        corners = 4 if self.rules.ties == "box" else 0
        flags = np.bool_, (len(self.thresholds),)
        types = np.int64, np.int8, np.float64, (np.float64, (corners,)), flags, flags
        return np.dtype([*zip(_ROW, types, strict=True)])

    def _rows(self, columns: Columns, truths: list[Any], detections: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """For each image its marker row and the rows of its boxes, and the vocabulary of their labels."""
        n = len(truths)
        of_truths, of_detections = self._boxes(columns, truths, "truth"), self._boxes(columns, detections, "detection")
        matching = match(of_detections, of_truths, self.thresholds, self.rules)
        place = np.argsort(matching.order, kind="stable")
        detected = matching.order[place]
        counted = np.flatnonzero(~matching.truth_ignored)
        first = n + len(counted)
        boxes = np.zeros(first + len(detected), self._type)
        boxes["label"] = np.concatenate([np.full(n, -1), matching.truth_label[counted], matching.label[place]])
        boxes["sort"] = np.repeat([_IMAGE, _TRUTH, _DETECTED], [n, len(counted), len(detected)])
        unknown = np.full(len(of_detections), np.nan)
        confidence = unknown if of_detections.confidence is None else of_detections.confidence
        boxes["confidence"][first:] = confidence[detected]
        boxes["found"][first:], boxes["ignored"][first:] = matching.found[:, place].T, matching.ignored[:, place].T
        if boxes["corners"].shape[1]:
            boxes["corners"][n:first] = of_truths.corners[:, counted].T
            boxes["corners"][first:] = of_detections.corners[:, detected].T
        image = np.concatenate(
            [np.arange(n), of_truths.image.to_numpy()[counted], of_detections.image.to_numpy()[detected]]
        )
        vocabulary = np.fromiter(matching.labels, np.object_, len(matching.labels))
        if self.label is not None:
            wanted = self.label if isinstance(self.label, tuple) else (self.label,)
            chosen = np.append([one in wanted for one in vocabulary.tolist()], True)[boxes["label"]]
            boxes, image = boxes[chosen], image[chosen]
        order = np.argsort(image, kind="stable")
        by_image = np.split(boxes[order], np.searchsorted(image[order], np.arange(1, n))) if n else []
        return np.fromiter(by_image, np.object_, n), vocabulary

    def _boxes(self, columns: Columns, images: list[Any], what: str) -> Boxes:
        """The boxes of all images; an image is identified by its position."""
        try:
            counts = [len(image["box"]) for image in images]
            numbers = list(chain.from_iterable(image["box"] for image in images))
            corners, outline = _read_corners(numbers)
            masks = list(chain.from_iterable(image.get("mask") or () for image in images))
            areas = list(chain.from_iterable(image.get("area") or [None] * len(image["box"]) for image in images))
            crowds = list(chain.from_iterable(image.get("crowd") or [False] * len(image["box"]) for image in images))
            optional = {name: [image.get(name) for image in images] for name in ("label", "confidence")}
        except (TypeError, KeyError, ValueError):
            raise DataError(f"{what}s: {_NO_BOXES}") from None
        columns_of: dict[str, list[Any] | None] = {}
        for name, cells in optional.items():
            lacking = [cell is None and count > 0 for cell, count in zip(cells, counts, strict=True)]
            some = any(cell is not None for cell in cells)
            message = f"its {what}s have no {name}, but those of other images do"
            refuse(columns, np.array(lacking, np.bool_) & some, lambda row, text=message: text)  # type: ignore[misc]
            columns_of[name] = list(chain.from_iterable(cell or () for cell in cells)) if some else None
        return Boxes(
            what,
            pa.array(np.repeat(np.arange(len(images)), counts)),
            np.ascontiguousarray(corners.T),
            None if columns_of["confidence"] is None else np.array(columns_of["confidence"], np.float64),
            None if columns_of["label"] is None else pa.array(columns_of["label"]),
            np.array(crowds, np.bool_),
            outline,
            self._masks(columns, images, masks, what),
            np.array(areas, np.float64) if any(area is not None for area in areas) else None,
        )

    def _masks(self, columns: Columns, images: list[Any], masks: list[Any], what: str) -> list[Any] | None:
        """The masks of all objects, or None if there are none."""
        if not masks:
            return None
        lacking = [bool(image["box"]) and not image.get("mask") for image in images]
        message = f"its {what}s have no masks, but those of other images do"
        refuse(columns, np.array(lacking, np.bool_), lambda row: message)
        return masks


@dataclass(frozen=True, kw_only=True)
class MeanAveragePrecision(OfBoxes):
    """The mean over classes of the average precision of detections; reads the table of the scorer `detection`.

    A detection is right if it overlaps a true box of its image and label enough and no other detection has found that
    box. In order of confidence over all images this gives precision and recall; average precision is the area under the
    best precision at each recall. Classes without a true box are left out; if none is left, the value is undefined.
    Without detections it is 0. By default it does not depend on the order of rows; see `DEFINITIONS` for others.
    Source: M. Everingham et al., "The PASCAL Visual Object Classes (VOC) Challenge" (IJCV 88, 2010); T.-Y. Lin et al.,
    "Microsoft COCO: Common Objects in Context" (ECCV 2014) for the mean over thresholds.

    With `missing="wrong"`, an image that failed has no detections. It could have found all its boxes (`best`), or any
    number of wrong ones, so `worst` is 0.

    Args:
        points: what precision is averaged over: the `area` under its envelope, or 11 or 101 recalls; by default as the
            definition says.

    Example:
        >>> MeanAveragePrecision(iou=0.75, definition="coco", confidence=None).signature
        'mean_average_precision v1 missing=leave_out reduce=first iou=0.75 definition=coco'
    """

    kind = "mean_average_precision"

    points: Points | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rules.points == definition_of(self.definition).points:
            object.__setattr__(self, "points", None)

    @property
    def rules(self) -> Definition:
        return definition_of(self.definition, self.points, area=self.area, max_detections=self.max_detections)

    def of_label(self, label: Detected, level: int, weight: np.ndarray, slack: float) -> np.ndarray:
        recall, precision, _ = self._curve(label, level, label.up[level], weight)
        return mean_over_recall(recall, precision, self.rules, slack)

    def least_variance(self, rows: Columns, value: float) -> float:
        """The variance of a share of as many boxes as are true: boxes of one image are no more informative."""
        weight = np.concatenate([rows[WEIGHT][label.truths] for label in rows[DETECTED]])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return float(value * (1 - value) * np.square(weight).sum() / weight.sum() ** 2)

    @property
    def drawn_by(self) -> Metric:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        """Recall and precision of each label at the lowest threshold, in order of confidence."""
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        for group, each in self.rows_of(state):
            rows = self.arranged(each)
            total = [float(rows[WEIGHT][label.truths].sum()) for label in rows[DETECTED]]
            largest = sorted(range(len(total)), key=lambda place: -total[place])[:PARTS]
            for place in sorted(largest):
                label = rows[DETECTED][place]
                if total[place] > 0 and len(label.last):
                    part = None if label.name is None else part_name(label.name)
                    level, weight = int(np.argmin(self.thresholds)), rows[WEIGHT][None]
                    (recall,), (precision,), (seen,) = self._curve(label, level, label.last, weight)
                    points = Curve(recall, precision, label.confidence[label.last], seen)
                    thinned = thin_curve(points, recall + seen / (seen[-1] or 1.0), POINTS)
                    found[group].append(Drawn("precision_recall", part, thinned))
        return found

    def _curve(
        self, label: Detected, level: int, ends: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Recall, precision, and the weight of the detections so far, at the ends of steps."""
        own, found, ignored = weight[:, label.detections], label.found[:, level], label.ignored[:, level]
        seen = np.cumsum(np.where(ignored, 0.0, own) if ignored.any() else own, axis=1)
        total = weight[:, label.truths].sum(axis=1)
        return *curve(found, own, seen, total, ends, self.rules), seen[:, ends]


@dataclass(frozen=True, kw_only=True)
class AverageRecall(OfBoxes):
    """The share of the true boxes that are found, as the mean over classes and overlaps: the average recall of COCO.

    Detections are right as in `mean_average_precision`; wrong ones cost nothing, so the value depends on how many
    detections per image count. Classes without a true box are left out; if none is left, the value is undefined.
    Source: J. Hosang et al., "What makes for effective detection proposals?" (IEEE PAMI 38, 2016); T.-Y. Lin et al.,
    "Microsoft COCO: Common Objects in Context" (ECCV 2014).

    Example:
        >>> AverageRecall(max_detections=10, confidence=None).signature
        'average_recall v1 missing=leave_out reduce=first iou="0.50:0.95" definition=standard max_detections=10'
    """

    kind = "average_recall"

    iou: float | Sequence[float] | str = COCO
    max_detections: int | None = 100

    def of_label(self, label: Detected, level: int, weight: np.ndarray, slack: float) -> np.ndarray:
        found = weight[:, label.detections][:, label.found[:, level]].sum(axis=1)
        return np.asarray(found / weight[:, label.truths].sum(axis=1))

    def substitute_boxes(self, fill: Fill, rows: np.ndarray, unknown: bool) -> Iterator[np.ndarray]:
        """As for all box metrics, but the worst is to find nothing."""
        if fill != "worst" or unknown:
            yield from super().substitute_boxes(fill, rows, unknown)


_NOTHING: Final[dict[str, list[Any]]] = {"box": []}
_NO_BOXES: Final = (
    "the column does not hold boxes with box, label and confidence; read a table of the scorer 'detection'"
)


def _parse_boxes(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except (TypeError, ValueError):
        raise DataError(f"{name}: {_NO_BOXES}") from None


def _read_corners(numbers: list[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """The boxes of objects × 4, and the outlines of those that are polygons."""
    if all(len(each) == len(COORDINATES) for each in numbers):
        return np.array(numbers, np.float64).reshape(-1, len(COORDINATES)), None
    _, boxes, outlines = zip(*map(read_outline, numbers), strict=True)
    outline = np.full(len(numbers), None, np.object_)
    outline[:] = outlines
    return np.array(boxes, np.float64), outline


def _mean(each: np.ndarray) -> np.ndarray:
    """The mean over the labels that have a value."""
    defined = np.isfinite(each)
    return np.asarray(np.where(defined, each, 0.0).sum(axis=0) / defined.sum(axis=0))


def _in_whole_units(weight: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights in a unit in which they are integers, if `own` has one, and the rounding error of their shares.

    The recalls at which precision is read are small fractions, and shares of boxes often equal one of them: whether one
    is reached must not depend on the unit of the weights.
    """
    least = own[own > 0].min(initial=np.inf)
    in_units = own / least
    return weight / least, 0.0 if (in_units == np.rint(in_units)).all() else _ROUNDING


def _sets_by_content(rows: Columns, cluster: np.ndarray) -> np.ndarray:
    """The set of each row, of `_MOST_SETS`, the same within a cluster: what rows hold decides, and not their order."""
    _, cluster = np.unique(cluster, return_inverse=True)
    bits = np.zeros(len(cluster), np.uint64)
    for seed, name in enumerate(("sort", "confidence", "found", "ignored")):
        for part in rows[name].reshape(len(cluster), -1).T:
            bits = random_bits(bits ^ np.ascontiguousarray(part, np.float64).view(np.uint64), seed)
    of_cluster = np.zeros(int(cluster.max(initial=-1)) + 1, np.uint64)
    np.add.at(of_cluster, cluster, bits)
    rank = np.empty(len(of_cluster), np.int64)
    rank[np.argsort(of_cluster, kind="stable")] = np.arange(len(of_cluster))
    return np.asarray((rank % _MOST_SETS)[cluster])


def _counts(expected: int, predicted: int) -> dict[str, int]:
    return {"expected": expected, "predicted": predicted}


DETECTED: Final = "_detected_"
_ORDER: Final = "_order_"
_ROUNDING: Final = 1e-9
_AT_ONCE: Final = 1 << 20  # weights in memory at once
