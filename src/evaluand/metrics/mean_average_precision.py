"""How well objects are detected: the average precision of each class, and its mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from evaluand.curves import PARTS, POINTS, Curve, Drawn, named, thinned
from evaluand.detection import (
    Boxes,
    Definition,
    Points,
    check_iou,
    curve,
    definition_of,
    match,
    mean_over_recall,
    steps,
    steps_up,
)
from evaluand.errors import DataError, SpecError
from evaluand.intervals import count_rows
from evaluand.labels import in_order, one_vocabulary
from evaluand.metric import CLUSTER, LABELS, WEIGHT, Columns, Fill, Metric, State, refuse, refuse_empty
from evaluand.statistic import BLOCK, Statistic

_BOXES: Final = "boxes"
_ROW: Final = ("label", "sort", "confidence", "corners", "found")
"""What is kept of each box: its label, whether it is a truth or was detected, how surely, where, and at which
thresholds it is right."""

_TRUTH, _DETECTED, _IMAGE, _TO_ZERO, _TO_ONE = range(5)
"""The sorts of rows: true boxes, detections, one for each image, and images of which nothing is known but that any
number of boxes may be wrong, or right."""

COCO: Final = "0.50:0.95"


class _Label(NamedTuple):
    """The detections of one label, from the surest down, under several weightings."""

    name: str | int | None
    confidence: np.ndarray
    found: np.ndarray  # detections × thresholds
    weight: np.ndarray  # replicates × detections
    seen: np.ndarray  # its cumulative sum
    total: np.ndarray  # of the true boxes, by replicate
    last: np.ndarray  # where steps end

    def curve(self, level: int, ends: np.ndarray, rules: Definition) -> tuple[np.ndarray, np.ndarray]:
        return curve(self.found[:, level], self.weight, self.seen, self.total, ends, rules)


@dataclass(frozen=True, kw_only=True)
class MeanAveragePrecision(Statistic):
    """The mean over classes of the average precision of detections; reads the table of the scorer `detection`.

    A detection is right if it overlaps a true box of its image and label enough and no other has found that; in the
    order of confidence over all images this gives precision and recall, and average precision is the area under the
    precision that recall can be had at. Classes without a true box have none and are left out; if all are, it is
    undefined. Without any detection it is 0. By default it depends on no order of rows; see `DEFINITIONS` for others.
    Source: M. Everingham et al., "The PASCAL Visual Object Classes (VOC) Challenge" (IJCV 88, 2010); T.-Y. Lin et al.,
    "Microsoft COCO: Common Objects in Context" (ECCV 2014) for the mean over thresholds.

    An image that failed has no detections with `missing="wrong"`; it may have found all its boxes (`best`), or any
    number of wrong ones, so that `worst` is 0.

    Args:
        iou: intersection over union from which boxes match; several for the mean over them, and `0.50:0.95` for that
            of COCO, over .50, .55, … .95.
        label: only boxes of this label.
        definition: `standard`, `3.1.1`, `core-2022` or `coco`.
        points: over what precision is averaged, if not over what the definition says: `area`, 11 or 101 recalls.
        weighted: each image counts by its weight.
        confidence: of the interval, which leaves out images; None for a value without one.

    Raises:
        SpecError: there is no such definition, or a threshold is none.

    Example:
        >>> MeanAveragePrecision(iou=0.75, definition="coco", confidence=None).signature
        'mean_average_precision v1 missing=leave_out reduce=first iou=0.75 definition=coco'
    """

    kind = "mean_average_precision"
    direction = "higher"
    range = (0.0, 1.0)
    row_range = (0.0, 1.0)
    keeps: ClassVar[tuple[str, ...]] = _ROW

    iou: float | Sequence[float] | str = 0.5
    label: str | int | None = None
    definition: str = "standard"
    points: Points | None = None

    def __post_init__(self) -> None:
        if isinstance(self.iou, list | tuple):
            object.__setattr__(self, "iou", tuple(self.iou))
        if not self.thresholds:
            raise SpecError(f"{self.kind}: iou={self.iou!r} names no threshold; give one, such as 0.5")
        for iou in self.thresholds:
            check_iou(iou, self._rules)
        super().__post_init__()

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The overlaps a match is held to."""
        if self.iou == COCO:
            return self._rules.over_thresholds
        return self.iou if isinstance(self.iou, tuple) else (self.iou,)

    @property
    def _rules(self) -> Definition:
        return definition_of(self.definition, self.points)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("truths", "detections")

    @property
    def fill_columns(self) -> tuple[str, ...]:
        return ("truths",)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The codes of merged states get one vocabulary; in the table labels stand within JSON."""
        return ("label",)

    def prepare(self, columns: Columns) -> Columns:
        for name in self.columns:
            refuse_empty(columns, name)
        rows, vocabulary = self._rows(
            columns, *([_parsed(name, text) for text in columns[name].tolist()] for name in self.columns)
        )
        return {_BOXES: rows, LABELS: vocabulary}

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        held = missing["truths"].tolist() if "truths" in missing else [None] * int(np.count_nonzero(~scored))
        unknown = np.array([cell is None or cell != cell for cell in held], np.bool_)
        if fill == "wrong":
            refuse(missing, unknown, lambda row: "has no score and nothing tells its boxes; use missing='leave_out'")
        truths = [_NOTHING if nothing else _parsed("truths", cell) for cell, nothing in zip(held, unknown, strict=True)]
        found, own = self._rows(missing, truths, [_NOTHING] * len(truths))
        vocabulary, (_, code) = one_vocabulary([columns[LABELS], own])
        every = np.empty(len(scored), np.object_)
        every[scored] = columns[_BOXES]
        for place, rows, nothing in zip(np.flatnonzero(~scored).tolist(), found, unknown.tolist(), strict=True):
            rows["label"] = code[rows["label"]]
            every[place] = np.concatenate([rows, *self._taken_for(fill, rows, nothing)])
        return {_BOXES: every, LABELS: vocabulary}

    def _taken_for(self, fill: Fill, rows: np.ndarray, unknown: bool) -> Iterator[np.ndarray]:
        """What an image without a score may have beside its true boxes."""
        if fill == "worst":
            yield self._marked(_TO_ZERO)
        elif fill == "best":
            right = rows[rows["sort"] == _TRUTH]
            right["sort"], right["confidence"], right["found"] = _DETECTED, math.inf, True
            yield right
            if unknown:
                yield self._marked(_TO_ONE)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        images = columns[_BOXES].tolist()
        each = np.repeat(np.arange(len(images)), [len(rows) for rows in images])
        boxes = np.concatenate([self._marked(_IMAGE)[:0], *images])
        beside = {name: columns[name][each] for name in (CLUSTER, WEIGHT) if name in columns}
        kept = {name: boxes[name] for name in _ROW}
        state = super().state({**kept, **beside, LABELS: columns[LABELS]}, group[each], n_groups)
        return {**state, "n": count_rows(group, n_groups)}

    def arranged(self, rows: Columns) -> Columns:
        """Sorted by label, true boxes first, then the detections from the surest down."""
        detected, confidence = rows["sort"] == _DETECTED, rows["confidence"]
        if np.isnan(confidence[detected]).any() and np.isfinite(confidence[detected]).any():
            raise DataError("some detections have a confidence and some have none; give it to all, or to none")
        ranks = np.argsort(in_order(rows[LABELS]) if len(rows[LABELS]) else [0])
        label = np.where(rows["label"] >= 0, ranks[np.maximum(rows["label"], 0)], -1)
        sure = np.where(detected, -np.nan_to_num(confidence, nan=0.0, posinf=np.inf), 0.0)
        corners = rows["corners"].T[::-1] if self._rules.ties == "box" else ()
        order = np.lexsort((*corners, sure, rows["sort"], label))
        return {name: rows[name][order] for name in (*_ROW, WEIGHT, BLOCK)} | {LABELS: rows[LABELS]}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        each = np.stack([values for _, values in self._by_label(rows, weight)] or [np.full(len(weight), np.nan)])
        defined = np.isfinite(each)
        value = np.where(defined, each, 0.0).sum(axis=0) / defined.sum(axis=0)
        for sort, end in ((_TO_ONE, 1.0), (_TO_ZERO, 0.0)):
            value = np.where((weight * (rows["sort"] == sort)).any(axis=1), end, value)
        return np.asarray(value)

    def least_variance(self, rows: Columns, value: float) -> float:
        """That of a share of as many boxes as are true: the boxes of an image tell no more than ones on their own."""
        weight = rows[WEIGHT][rows["sort"] == _TRUTH]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return float(value * (1 - value) * np.square(weight).sum() / weight.sum() ** 2)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "no image has a true box" + ("" if self.label is None else f" with the label {self.label!r}")

    def told(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """How many boxes there are, and where they have labels what each comes to."""
        labels = {
            str(label): {"value": _or_none(values[0])} | _counts(rows["sort"][rows["label"] == code])
            for (label, values), code in zip(self._by_label(rows, weight[None]), self._codes(rows), strict=True)
            if label is not None
        }
        return _counts(rows["sort"]) | ({"labels": labels} if labels else {})

    @property
    def drawn_by(self) -> Metric:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        """Recall and precision of each label at the least threshold, after each step from the surest detection down."""
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        for group, each in self.rows_of(state):
            rows = self.arranged(each)
            labels = list(self._labels(rows, rows[WEIGHT][None]))
            most = sorted(range(len(labels)), key=lambda place: -float(labels[place].total[0]))[:PARTS]
            for label in [labels[place] for place in sorted(most)]:
                if label.total[0] > 0 and len(label.last):
                    part = None if label.name is None else named(label.name)
                    found[group].append(Drawn("precision_recall", part, self._curve(label)))
        return found

    def _curve(self, label: _Label) -> Curve:
        level = int(np.argmin(self.thresholds))
        (recall,), (precision,) = label.curve(level, label.last, self._rules)
        seen = label.seen[0][label.last]
        return thinned(Curve(recall, precision, label.confidence[label.last], seen), recall + seen / seen[-1], POINTS)

    def _by_label(self, rows: Columns, weight: np.ndarray) -> Iterator[tuple[str | int | None, np.ndarray]]:
        """The average precision of each label by replicate, NaN without true boxes."""
        for label in self._labels(rows, weight):
            each = [self._average(label, level) for level in np.arange(len(self.thresholds)).tolist()]
            yield label.name, np.asarray(np.mean(each, axis=0))

    def _average(self, label: _Label, level: int) -> np.ndarray:
        recall, precision = label.curve(level, steps_up(label.last, label.found[:, level]), self._rules)
        return np.where(label.total > 0, mean_over_recall(recall, precision, self._rules), np.nan)

    def _labels(self, rows: Columns, weight: np.ndarray) -> Iterator[_Label]:
        for code in self._codes(rows):
            truths, found = (np.flatnonzero((rows["label"] == code) & (rows["sort"] == s)) for s in (_TRUTH, _DETECTED))
            confidence, some = rows["confidence"][found], weight[:, found]
            yield _Label(
                rows[LABELS][code],
                confidence,
                rows["found"][found],
                some,
                np.cumsum(some, axis=1),
                weight[:, truths].sum(axis=1),
                steps(np.nan_to_num(confidence, posinf=np.inf), self._rules),
            )

    def _codes(self, rows: Columns) -> list[int]:
        used = set(np.unique(rows["label"]).tolist())
        return [code for code in in_order(rows[LABELS]).tolist() if code in used]

    def _marked(self, sort: int) -> np.ndarray:
        """A row that is no box."""
        row = np.zeros(1, self._type)
        row["label"], row["sort"] = -1, sort
        return row

    @property
    def _type(self) -> np.dtype[Any]:
        """One box; where it stands is kept only where that breaks ties."""
        corners = 4 if self._rules.ties == "box" else 0
        return np.dtype(
            [
                ("label", np.int64),
                ("sort", np.int8),
                ("confidence", np.float64),
                ("corners", np.float64, (corners,)),
                ("found", np.bool_, (len(self.thresholds),)),
            ]
        )

    def _rows(self, columns: Columns, truths: list[Any], detections: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """For each image its row and those of its boxes, and the vocabulary of their labels."""
        n = len(truths)
        of_truths, of_detections = self._boxes(columns, truths, "truth"), self._boxes(columns, detections, "detection")
        matching = match(of_detections, of_truths, self.thresholds, self._rules)
        place = np.argsort(matching.order, kind="stable")
        kept = matching.order[place]
        boxes = np.zeros(n + len(of_truths) + len(kept), self._type)
        boxes["label"] = np.concatenate([np.full(n, -1), matching.truth_label, matching.label[place]])
        boxes["sort"] = np.repeat([_IMAGE, _TRUTH, _DETECTED], [n, len(of_truths), len(kept)])
        surest = np.full(len(of_detections), np.nan) if of_detections.confidence is None else of_detections.confidence
        boxes["confidence"][n + len(of_truths) :] = surest[kept]
        boxes["found"][n + len(of_truths) :] = matching.found[:, place].T
        if boxes["corners"].shape[1]:
            boxes["corners"][n : n + len(of_truths)] = of_truths.corners.T
            boxes["corners"][n + len(of_truths) :] = of_detections.corners[:, kept].T
        image = np.concatenate([np.arange(n), of_truths.image.to_numpy(), of_detections.image.to_numpy()[kept]])
        vocabulary = np.fromiter(matching.labels, np.object_, len(matching.labels))
        if self.label is not None:
            wanted = np.append(vocabulary == self.label, True)[boxes["label"]]
            boxes, image = boxes[wanted], image[wanted]
        order = np.argsort(image, kind="stable")
        by_image = np.split(boxes[order], np.searchsorted(image[order], np.arange(1, n))) if n else []
        return np.fromiter(by_image, np.object_, n), vocabulary

    def _boxes(self, columns: Columns, images: list[Any], what: str) -> Boxes:
        """The boxes of all images, each image told by its place."""
        try:
            counts = [len(image["box"]) for image in images]
            corners = np.array(list(chain.from_iterable(image["box"] for image in images)), np.float64).reshape(-1, 4)
            held = {name: [image.get(name) for image in images] for name in ("label", "confidence")}
        except (TypeError, KeyError, ValueError):
            raise DataError(f"{what}s: {_NO_BOXES}") from None
        beside: dict[str, list[Any] | None] = {}
        for name, cells in held.items():
            lacking = [cell is None and count > 0 for cell, count in zip(cells, counts, strict=True)]
            some = any(cell is not None for cell in cells)
            told = f"its {what}s have no {name}, and those of others have"
            refuse(columns, np.array(lacking, np.bool_) & some, lambda row, told=told: told)  # type: ignore[misc]
            beside[name] = list(chain.from_iterable(cell or () for cell in cells)) if some else None
        return Boxes(
            what,
            pa.array(np.repeat(np.arange(len(images)), counts)),
            np.ascontiguousarray(corners.T),
            None if beside["confidence"] is None else np.array(beside["confidence"], np.float64),
            None if beside["label"] is None else pa.array(beside["label"]),
        )


_NOTHING: Final[dict[str, list[Any]]] = {"box": []}
_NO_BOXES: Final = "the column holds no boxes with box, label and confidence; read a table of the scorer 'detection'"


def _parsed(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except (TypeError, ValueError):
        raise DataError(f"{name}: {_NO_BOXES}") from None


def _counts(sort: np.ndarray) -> dict[str, int]:
    return {"expected": int(np.count_nonzero(sort == _TRUTH)), "predicted": int(np.count_nonzero(sort == _DETECTED))}


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
