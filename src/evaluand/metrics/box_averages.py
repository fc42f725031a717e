"""The average precision and the average recall of object detection: boxes of images, matched and ranked by label."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.base.curves import PARTS, POINTS, Curve, Drawn, part_name, thin_curve
from evaluand.metrics.base.labels import in_order, object_array, one_vocabulary
from evaluand.metrics.base.left_out import LeftOut
from evaluand.metrics.base.metric import CLUSTER, LABELS, WEIGHT, Columns, Fill, Metric, State, refuse, refuse_empty
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric
from evaluand.metrics.detection.definition import Area, Definition, Points, definition_of
from evaluand.metrics.detection.precision import check_iou, curve, mean_over_recall, steps
from evaluand.metrics.detection.tables import CONTENT, IMAGES, read_images
from evaluand.metrics.stats.intervals import count_rows, runs

_BOXES: Final = "boxes"
_ROW: Final = ("label", "sort", "confidence", "corners", "found", "ignored", CONTENT)
"""The columns of a box: label, sort (true box or detection), confidence, corners, at which thresholds it is right, or
ignored, and random bits of what its image holds, if it marks one. True boxes that do not count are left out."""

_TRUTH, _DETECTED, _IMAGE, _TO_ZERO, _TO_ONE = range(5)
"""The sorts of rows: true boxes, detections, one row per image, and images without a score, whose value may go to 0, or
to 1."""

COCO: Final = "0.50:0.95"

_SET: Final = "_set_"
"""Which images are left out together: sets of numbers that systems share, or `_BY_CONTENT`."""

_BY_CONTENT: Final = -1
_MOST_SETS: Final = 256
"""The most images that are left out one by one; of more, as many sets."""


@dataclass(frozen=True, eq=False)
class RowsOfImages:
    """Rows of boxes, image by image.

    Attributes:
        columns: name → cells.
        counts: the number of rows of each image.
    """

    columns: Mapping[str, np.ndarray]
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, images: np.ndarray) -> "RowsOfImages":
        """The rows of some images."""
        counts, first = self.counts[images], np.cumsum(self.counts) - self.counts
        row = np.arange(counts.sum()) + np.repeat(first[images] - (np.cumsum(counts) - counts), counts)
        return RowsOfImages({name: column[row] for name, column in self.columns.items()}, counts)

    @classmethod
    def sort(cls, columns: Mapping[str, np.ndarray], image: np.ndarray, n: int) -> "RowsOfImages":
        """Rows that are in any order, with the number of the image of each."""
        order = np.argsort(image.astype(np.min_scalar_type(n)), kind="stable")
        return cls({name: column[order] for name, column in columns.items()}, np.bincount(image, minlength=n))

    @property
    def image(self) -> np.ndarray:
        """The image of each row."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


class Steps(NamedTuple):
    """Steps along the confidence: where they end, and the detections that are right, or right or wrong, by step."""

    ends: np.ndarray
    right: tuple[np.ndarray, np.ndarray]
    tried: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, ends: np.ndarray, found: np.ndarray, ignored: np.ndarray) -> "Steps":
        until = int(ends[-1]) + 1 if len(ends) else 0
        rows = np.flatnonzero(found[:until]), np.flatnonzero(~ignored[:until])
        return cls(ends, *((some, np.searchsorted(ends, some)) for some in rows))


@dataclass(frozen=True, eq=False)
class Detected:
    """The rows of one label: first the true boxes, then the detections, from the most confident down."""

    name: str | int | None
    rows: slice
    n_truths: int
    confidence: np.ndarray
    found: np.ndarray  # detections × thresholds
    ignored: np.ndarray  # likewise
    last: np.ndarray  # where steps end

    @cached_property
    def peaks(self) -> list[Steps]:
        """For each threshold the steps at which precision may be largest: with a hit, and before one with a miss.

        Elsewhere the next step has at least the same precision, whatever rows weigh.
        """
        return [self._peaks(found, ignored) for found, ignored in zip(self.found.T, self.ignored.T, strict=True)]

    def _peaks(self, found: np.ndarray, ignored: np.ndarray) -> Steps:
        if not found.any():
            return Steps.of(self.last[:0], found, ignored)
        first = np.append(0, self.last[:-1] + 1)
        hits, misses = (np.add.reduceat(each, first, dtype=np.int64) for each in (found, ~(found | ignored)))
        some = np.flatnonzero(hits + misses)
        falls = np.append(misses[some[1:]] > 0, True)
        return Steps.of(self.last[some[(hits[some] > 0) & falls]], found, ignored)


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
    read = staticmethod(read_images)

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

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """The overlaps from which boxes match."""
        if self.iou == COCO:
            return self.rules.over_thresholds
        iou: Any = self.iou
        return tuple(iou) if isinstance(iou, list | tuple) else (iou,)

    @cached_property
    def rules(self) -> Definition:
        """The definition, with the other parameters applied."""
        return definition_of(self.definition, area=self.area, max_detections=self.max_detections)

    @property
    def counts_independent_rows(self) -> bool:
        """False: a row is a box, and its image must be known."""
        return False

    @abstractmethod
    def of_label(self, label: Detected, weights: "Weights", total: np.ndarray, slack: float) -> np.ndarray:
        """The mean over thresholds of the value of one label, arbitrary without true boxes: as `Weights.sums`.

        Args:
            weights: of the detections of the label.
            total: of its true boxes.
            slack: how much rounding may take from a share of that.
        """

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Codes of merged states get one vocabulary; in the table, labels are within JSON."""
        return ("label",)

    def prepare(self, columns: Columns) -> Columns:
        for name in self.columns:
            refuse_empty(columns, name)
        rows, vocabulary = self._rows(columns)
        return {_BOXES: rows, LABELS: vocabulary}  # type: ignore[dict-item]

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        gaps = np.flatnonzero(~scored)
        unknown = np.isnan(missing["truths"]) if "truths" in missing else np.ones(len(gaps), np.bool_)
        if fill == "wrong":
            refuse(missing, unknown, lambda row: "has no score, and its boxes are unknown; use missing='leave_out'")
        others, own = self._rows(missing)
        vocabulary, codes = one_vocabulary([columns[LABELS], own])
        known: Any = columns[_BOXES]
        parts = [(known.columns, np.flatnonzero(scored)[known.image], codes[0])]
        parts.append((others.columns, gaps[others.image], codes[1]))
        parts += [(rows, gaps[image], codes[1]) for rows, image in self.substitute_boxes(fill, others, unknown)]
        table = {name: np.concatenate([rows[name] for rows, _, _ in parts]) for name in _ROW if name != "label"}
        table["label"] = np.concatenate([np.append(code, -1)[rows["label"]] for rows, _, code in parts])
        image = np.concatenate([image for _, image, _ in parts])
        return {_BOXES: RowsOfImages.sort(table, image, len(scored)), LABELS: vocabulary}  # type: ignore[dict-item]

    def substitute_boxes(
        self, fill: Fill, rows: RowsOfImages, unknown: np.ndarray
    ) -> Iterator[tuple[Columns, np.ndarray]]:
        """The rows that stand in for the detections of images without a score, and the image of each."""
        if fill == "worst":
            yield self._markers(_TO_ZERO, len(rows)), np.arange(len(rows))
        elif fill == "best":
            truths = np.flatnonzero(rows.columns["sort"] == _TRUTH)
            right = {name: column[truths] for name, column in rows.columns.items()}
            sort, flags = np.full_like(right["sort"], _DETECTED), np.ones_like(right["found"])
            right |= {"sort": sort, "confidence": np.full(len(truths), math.inf), "found": flags}
            yield right, rows.image[truths]
            yield self._markers(_TO_ONE, int(unknown.sum())), np.flatnonzero(unknown)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        rows: Any = columns[_BOXES]
        image = rows.image
        sets = columns.get(_SET, np.full(len(rows), _BY_CONTENT))
        of_images = {name: columns[name][image] for name in (CLUSTER, WEIGHT) if name in columns} | {_SET: sets[image]}
        state = super().state({**rows.columns, **of_images, LABELS: columns[LABELS]}, group[image], n_groups)
        return {**state, "n": count_rows(group, n_groups)}

    def arranged(self, rows: Columns) -> Columns:
        """Sorted by label, true boxes first, then the detections from the surest down; where each label stands."""
        detected, confidence = rows["sort"] == _DETECTED, rows["confidence"]
        if np.isnan(confidence[detected]).any() and np.isfinite(confidence[detected]).any():
            raise DataError("some detections have a confidence and some have none; give it to all, or to none")
        by_name = in_order(rows[LABELS])
        ranks = np.append(np.argsort(by_name), -1).astype(np.min_scalar_type(-len(by_name) - 1))
        label = ranks[rows["label"]]
        descending = np.where(detected, -np.nan_to_num(confidence, nan=0.0, posinf=np.inf), 0.0)
        corners = rows["corners"].T[::-1] if self.rules.ties == "box" else ()
        order = np.lexsort((*corners, descending, rows["sort"], label))
        arranged = {name: rows[name][order] for name in (*_ROW, _SET, WEIGHT)} | {"label": label[order]}
        labels = self._labels(arranged, rows[LABELS][by_name])
        keys = {CLUSTER: rows[CLUSTER]} if CLUSTER in rows else {}
        return {**arranged, **keys, LABELS: rows[LABELS], DETECTED: object_array(labels), _ORDER: order}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        value = _mean(np.stack([self._of_labels(rows, replicate) for replicate in weight], axis=1))
        for sort, end in ((_TO_ONE, 1.0), (_TO_ZERO, 0.0)):
            value = np.where(weight[:, np.flatnonzero(rows["sort"] == sort)].any(axis=1), end, value)
        return np.asarray(value)

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        """Both sides leave out the same sets of images, whose numbers are those of the clusters."""
        sets = np.asarray(columns[CLUSTER] % _MOST_SETS)
        return super().leave_out({**columns, CLUSTER: sets, _SET: sets}, group, n_groups)

    def changes(self, rows: Columns, value: float) -> np.ndarray:
        """What an image adds stands at the row that marks it; of many images, what a set of them adds at its first."""
        images, place = np.flatnonzero(rows["sort"] == _IMAGE), rows[_ORDER]
        cluster, sets = rows[CLUSTER][place], rows[_SET]
        if (sets == _BY_CONTENT).all():
            sets = _sets_by_content(rows[CONTENT], cluster)
        names, of_row = np.unique(sets, return_inverse=True)
        share = np.bincount(of_row[images], rows[WEIGHT][images], len(names))
        left = (value - self._without_sets(rows, of_row, len(names))) * (1 - share / share.sum())
        by_set = images[np.lexsort((cluster[images], of_row[images]))]
        changes = np.zeros(len(sets))
        changes[place[by_set[runs(of_row[by_set])]]] = left - left.mean()
        return changes

    def _without_sets(self, rows: Columns, of_row: np.ndarray, n: int) -> np.ndarray:
        """The value without each set of images, which changes only the labels that the set has boxes of."""
        weight, slack = _in_whole_units(rows[WEIGHT], rows[WEIGHT])
        each = np.repeat(self._of_labels(rows, rows[WEIGHT])[:, None], n, axis=1)
        for label, values in zip(rows[DETECTED], each, strict=True):
            weight_of, set_of = weight[label.rows], of_row[label.rows]
            there = np.unique(set_of[weight_of > 0])
            step = max(1, _AT_ONCE // max(len(weight_of), 1))
            for sets in (there[start : start + step] for start in range(0, len(there), step)):
                place = np.full(n, len(sets))
                place[sets] = np.arange(len(sets))
                values[sets] = self._of_label(label, Weights(weight_of, place[set_of], len(sets)), slack)[:-1]
        return _mean(each)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        of_area = "" if self.area is None else f" of the area {self.area!r}"
        several = f"one of {len(self.label)} labels" if isinstance(self.label, tuple) else f"the label {self.label!r}"
        return f"no image has a true box{of_area}" + ("" if self.label is None else f" with {several}")

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of boxes, and the value of each label if there are labels."""
        labels = {
            str(label.name): {"value": value if math.isfinite(value) else None}
            | _counts(label.n_truths, len(label.confidence))
            for label, value in zip(rows[DETECTED], self._of_labels(rows, weight).tolist(), strict=True)
            if label.name is not None
        }
        counts = _counts(*(int(np.count_nonzero(rows["sort"] == sort)) for sort in (_TRUTH, _DETECTED)))
        return counts | ({"labels": labels} if labels else {})

    def _of_labels(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """The value of each label; those under the weights of the rows are computed once."""
        is_own = np.array_equal(weight, rows[WEIGHT])
        if is_own and _OWN in rows:
            return rows[_OWN]
        weight, slack = _in_whole_units(weight, rows[WEIGHT])
        each = [self._of_label(label, Weights.whole(weight[label.rows]), slack) for label in rows[DETECTED]]
        found = np.array(each, np.float64).reshape(len(each))
        if is_own and isinstance(rows, dict):
            rows[_OWN] = found
        return found

    def _of_label(self, label: Detected, weights: "Weights", slack: float) -> np.ndarray:
        """The value of one label, NaN without true boxes: as `Weights.sums`."""
        total = weights[: label.n_truths].total()
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(total > 0, self.of_label(label, weights[label.n_truths :], total, slack), np.nan)

    def _labels(self, rows: Columns, vocabulary: np.ndarray) -> Iterator[Detected]:
        """The labels of sorted rows, from a sorted vocabulary."""
        borders = np.flatnonzero(np.diff(rows["label"], prepend=-2, append=len(vocabulary)))
        for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            if rows["label"][start] < 0:
                continue
            middle = start + int(np.searchsorted(rows["sort"][start:stop], _DETECTED))
            confidence, found, ignored = (rows[name][middle:stop] for name in ("confidence", "found", "ignored"))
            last = steps(np.nan_to_num(confidence, posinf=np.inf), self.rules)
            name = vocabulary[rows["label"][start]]
            yield Detected(name, slice(start, stop), middle - start, confidence, found, ignored, last)

    def _markers(self, sort: int, n: int) -> dict[str, np.ndarray]:
        """Rows that are no boxes."""
        flags, corners = np.zeros((n, len(self.thresholds)), np.bool_), np.zeros((n, self._n_corners))
        cells = np.full(n, -1), np.full(n, sort, np.int8), np.zeros(n), corners, flags, flags, np.zeros(n, np.uint64)
        return dict(zip(_ROW, cells, strict=True))

    @property
    def _n_corners(self) -> int:
        """Corners are included only if they break ties."""
        return 4 if self.rules.ties == "box" else 0

    def _rows(self, columns: Columns) -> tuple[RowsOfImages, np.ndarray]:
        """For each image its marker row and the rows of its boxes, and the vocabulary of their labels."""
        images: Any = columns[IMAGES]
        truths, detections = images.truths, images.detections
        matching = images.match(self.thresholds, self.rules)
        counted, detected = np.flatnonzero(~matching.truth_ignored), matching.order
        n = len(columns[CONTENT])
        of_images, of_truths = self._markers(_IMAGE, n), self._markers(_TRUTH, len(counted))
        of_detections = self._markers(_DETECTED, len(detected))
        of_images[CONTENT] = columns[CONTENT]
        of_truths |= {"label": matching.truth_label[counted], "corners": truths.corners[: self._n_corners, counted].T}
        unknown = np.full(len(detections), np.nan)
        confidence = unknown if detections.confidence is None else detections.confidence
        of_detections |= {"label": matching.label, "confidence": confidence[detected]}
        of_detections |= {"found": matching.found.T, "ignored": matching.ignored.T}
        of_detections["corners"] = detections.corners[: self._n_corners, detected].T
        parts = of_images, of_truths, of_detections
        table = {name: np.concatenate([part[name] for part in parts]) for name in _ROW}
        image = np.concatenate([np.arange(n), truths.image.to_numpy()[counted], detections.image.to_numpy()[detected]])
        vocabulary = np.fromiter(matching.labels, np.object_, len(matching.labels))
        if self.label is not None:
            wanted = self.label if isinstance(self.label, tuple) else (self.label,)
            chosen = np.append([name in wanted for name in vocabulary.tolist()], True)[table["label"]]
            table, image = {name: column[chosen] for name, column in table.items()}, image[chosen]
        return RowsOfImages.sort(table, image, n), vocabulary


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

    @cached_property
    def rules(self) -> Definition:
        return definition_of(self.definition, self.points, area=self.area, max_detections=self.max_detections)

    def of_label(self, label: Detected, weights: "Weights", total: np.ndarray, slack: float) -> np.ndarray:
        curves = (self._curve(steps, weights, total) for steps in label.peaks)
        each = [mean_over_recall(recall, precision, self.rules, slack) for recall, precision, _ in curves]
        return np.asarray(np.mean(each, axis=0))

    def least_variance(self, rows: Columns, value: float) -> float:
        """The variance of a share of as many boxes as are true: boxes of one image are no more informative."""
        weight = np.concatenate([rows[WEIGHT][label.rows][: label.n_truths] for label in rows[DETECTED]])
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
            total = [float(rows[WEIGHT][label.rows][: label.n_truths].sum()) for label in rows[DETECTED]]
            largest = sorted(range(len(total)), key=lambda place: -total[place])[:PARTS]
            for place in sorted(largest):
                label = rows[DETECTED][place]
                if total[place] > 0 and len(label.last):
                    part = None if label.name is None else part_name(label.name)
                    level = int(np.argmin(self.thresholds))
                    along = Steps.of(label.last, label.found[:, level], label.ignored[:, level])
                    weights = Weights.whole(rows[WEIGHT][label.rows][label.n_truths :])
                    (recall,), (precision,), (seen,) = self._curve(along, weights, np.array([total[place]]))
                    points = Curve(recall, precision, label.confidence[label.last], seen)
                    thinned = thin_curve(points, recall + seen / (seen[-1] or 1.0), POINTS)
                    found[group].append(Drawn("precision_recall", part, thinned))
        return found

    def _curve(self, along: Steps, weights: "Weights", total: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Recall, precision, and the weight of the detections so far, at the ends of steps."""
        right, seen = (np.cumsum(weights.sums(*rows, len(along.ends)), axis=1) for rows in (along.right, along.tried))
        return *curve(right, seen, total, self.rules), seen


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

    def of_label(self, label: Detected, weights: "Weights", total: np.ndarray, slack: float) -> np.ndarray:
        return np.asarray(weights.total(label.found.mean(axis=1)) / total)

    def substitute_boxes(
        self, fill: Fill, rows: RowsOfImages, unknown: np.ndarray
    ) -> Iterator[tuple[Columns, np.ndarray]]:
        """As for all box metrics, but the worst is to find nothing."""
        if fill == "worst":
            yield self._markers(_TO_ZERO, int(unknown.sum())), np.flatnonzero(unknown)
        else:
            yield from super().substitute_boxes(fill, rows, unknown)


@dataclass(frozen=True)
class Weights:
    """The weights of rows, of all and without each of `n` sets; `place` has the set of each row, `n` for any other."""

    weight: np.ndarray
    place: np.ndarray
    n: int

    @classmethod
    def whole(cls, weight: np.ndarray) -> "Weights":
        """Weights of which no set is left out."""
        return cls(weight, np.zeros(len(weight), np.int64), 0)

    def __getitem__(self, rows: slice) -> "Weights":
        return Weights(self.weight[rows], self.place[rows], self.n)

    def sums(
        self, rows: np.ndarray | slice, part: np.ndarray | int, n: int, share: np.ndarray | float = 1.0
    ) -> np.ndarray:
        """The weight of each of `n` parts of some rows, of which a share counts: sets × parts, then without any set.

        What a set takes from a part is counted, and the rest is the same for all sets.
        """
        taken = np.bincount(self.place[rows] * n + part, self.weight[rows] * share, (self.n + 1) * n)
        taken = taken.reshape(self.n + 1, n)
        total = taken.sum(axis=0)
        taken[-1] = 0
        return np.asarray(total - taken)

    def total(self, share: np.ndarray | float = 1.0) -> np.ndarray:
        """The weight of all rows, of which a share counts."""
        return self.sums(slice(None), 0, 1, share)[:, 0]


def _mean(each: np.ndarray) -> np.ndarray:
    """The mean over the labels that have a value; NaN if none has."""
    defined = np.isfinite(each)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(defined, each, 0.0).sum(axis=0) / defined.sum(axis=0))


def _in_whole_units(weight: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights in a unit in which they are integers, if `own` has one, and the rounding error of their shares.

    The recalls at which precision is read are small fractions, and shares of boxes often equal one of them: whether one
    is reached must not depend on the unit of the weights.
    """
    least = own[own > 0].min(initial=np.inf)
    in_units = own / least
    return weight / least, 0.0 if (in_units == np.rint(in_units)).all() else _ROUNDING


def _sets_by_content(content: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """The set of each row, of `_MOST_SETS`, the same within a cluster: what images hold decides, not their order."""
    names, place = np.unique(cluster, return_inverse=True)
    of_cluster = np.zeros(len(names), np.uint64)
    np.add.at(of_cluster, place, content)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(of_cluster, kind="stable")] = np.arange(len(names))
    return np.asarray((rank % _MOST_SETS)[place])


def _counts(expected: int, predicted: int) -> dict[str, int]:
    return {"expected": expected, "predicted": predicted}


DETECTED: Final = "_detected_"
_ORDER: Final = "_order_"
_OWN: Final = "_own_"
_ROUNDING: Final = 1e-9
_AT_ONCE: Final = 1 << 20  # weights in memory at once
