"""The average precision and the average recall of object detection."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.boxes import COCO, DETECTED, Detected, OfBoxes
from evaluand.metrics.base.curves import PARTS, POINTS, Curve, Drawn, part_name, thin_curve
from evaluand.metrics.base.metric import WEIGHT, Columns, Fill, Metric, State
from evaluand.metrics.detection import Definition, Points, curve, definition_of, mean_over_recall


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
                    found[group].append(Drawn("precision_recall", part, self._drawn_curve(label, rows[WEIGHT][None])))
        return found

    def _drawn_curve(self, label: Detected, weight: np.ndarray) -> Curve:
        (recall,), (precision,), (seen,) = self._curve(label, int(np.argmin(self.thresholds)), label.last, weight)
        return thin_curve(
            Curve(recall, precision, label.confidence[label.last], seen), recall + seen / (seen[-1] or 1.0), POINTS
        )

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
