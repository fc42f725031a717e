"""How well objects are detected: the average precision of each class, and its mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.boxes import DETECTED, Detected, OfBoxes
from evaluand.metrics.base.curves import PARTS, POINTS, Curve, Drawn, named, thinned
from evaluand.metrics.base.metric import WEIGHT, Columns, Metric, State
from evaluand.metrics.detection import Definition, Points, curve, definition_of, mean_over_recall


@dataclass(frozen=True, kw_only=True)
class MeanAveragePrecision(OfBoxes):
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
        area: only boxes of this area, by COCO's ranges: `small` up to 32², `medium` up to 96², or `large`. True boxes
            outside are ignored, and so are detections outside that find nothing.
        max_detections: how many detections of each image and label count, the surest first, if not as many as the
            definition says.
        points: over what precision is averaged, if not over what the definition says: `area`, 11 or 101 recalls.
        weighted: each image counts by its weight.
        confidence: of the interval, which leaves out images; None for a value without one.

    Raises:
        SpecError: there is no such definition or area, or a threshold is none.

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
        """That of a share of as many boxes as are true: the boxes of an image tell no more than ones on their own."""
        weight = np.concatenate([rows[WEIGHT][label.truths] for label in rows[DETECTED]])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return float(value * (1 - value) * np.square(weight).sum() / weight.sum() ** 2)

    @property
    def drawn_by(self) -> Metric:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        """Recall and precision of each label at the least threshold, after each step from the surest detection down."""
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        for group, each in self.rows_of(state):
            rows = self.arranged(each)
            total = [float(rows[WEIGHT][label.truths].sum()) for label in rows[DETECTED]]
            most = sorted(range(len(total)), key=lambda place: -total[place])[:PARTS]
            for place in sorted(most):
                label = rows[DETECTED][place]
                if total[place] > 0 and len(label.last):
                    part = None if label.name is None else named(label.name)
                    found[group].append(Drawn("precision_recall", part, self._drawn(label, rows[WEIGHT][None])))
        return found

    def _drawn(self, label: Detected, weight: np.ndarray) -> Curve:
        (recall,), (precision,), (seen,) = self._curve(label, int(np.argmin(self.thresholds)), label.last, weight)
        return thinned(Curve(recall, precision, label.confidence[label.last], seen), recall + seen / seen[-1], POINTS)

    def _curve(
        self, label: Detected, level: int, ends: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Recall, precision, and the weight of the detections so far, at the ends of steps."""
        own, found, ignored = weight[:, label.detections], label.found[:, level], label.ignored[:, level]
        seen = np.cumsum(np.where(ignored, 0.0, own) if ignored.any() else own, axis=1)
        total = weight[:, label.truths].sum(axis=1)
        return *curve(found, own, seen, total, ends, self.rules), seen[:, ends]
