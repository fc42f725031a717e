"""Panoptic quality and its factors, and mean intersection over union: means over the classes of segmented images."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np
import orjson

from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.base.labels import in_order, object_array, one_vocabulary
from evaluand.metrics.base.metric import LABELS, Columns, Fill, refuse, refuse_empty
from evaluand.metrics.base.sums import OfSums
from evaluand.metrics.detection.masks import SUMS

Part = Literal["things", "stuff"]
CLASSES: Final = "classes"
_ENDS: Final = "ends"
_TO_ZERO, _TO_ONE = 1.0, 2.0
"""What an image without a score may do to the value: take it to 0, or to 1."""


@dataclass(frozen=True, kw_only=True)
class OfSegments(OfSums):
    """The mean over classes of a value of each class's segments; reads the table of the scorer `segmentation`.

    Args:
        label: only segments of this label, or of one of several, for the mean over them.
        weighted: each image counts by its weight.
        confidence: of the interval, which leaves out images; None for no interval.

    Attributes:
        sums: what is added up for each class; names of `SUMS`.

    Raises:
        SpecError: `label` is not a label or a list of them.
    """

    direction = "higher"
    range = (0.0, 1.0)
    row_range = (0.0, 1.0)
    columns = (CLASSES,)
    fill_columns = (CLASSES,)
    sums: ClassVar[tuple[str, ...]]

    label: str | int | Sequence[str | int] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.label, list | tuple):
            object.__setattr__(self, "label", tuple(self.label))
        for label in () if self._chosen is None else self._chosen:
            if not isinstance(label, str | int) or isinstance(label, bool):
                raise SpecError(f"{self.kind}: label={label!r} must be text or an integer")
        super().__post_init__()

    @abstractmethod
    def of_classes(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        """The value of each class from its sums, replicates × classes each; NaN for a class that does not count."""

    @abstractmethod
    def counts(self, sums: Mapping[str, int]) -> dict[str, int]:
        """The numbers to show with the value of a class."""

    def chooses(self, label: str | int, thing: bool | None) -> bool:
        """Whether a class is one of those that the value is of."""
        return self._chosen is None or label in self._chosen

    @property
    def row_columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.sums, _ENDS)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Matrices of images × classes get one vocabulary when states are merged; in the table, labels are in JSON."""
        return self.sums

    def prepare(self, columns: Columns) -> Columns:
        refuse_empty(columns, CLASSES)
        return self._matrices([_parse_classes(text) for text in columns[CLASSES].tolist()])

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        cells = missing[CLASSES].tolist() if CLASSES in missing else [None] * int(np.count_nonzero(~scored))
        unknown = np.array([not isinstance(cell, str) for cell in cells], np.bool_)
        if fill == "wrong":
            refuse(missing, unknown, lambda row: "has no score, and its segments are unknown; use missing='leave_out'")
        classes = [_NOTHING if lost else _parse_classes(cell) for cell, lost in zip(cells, unknown, strict=True)]
        others = dict(self._matrices(classes))
        if fill == "best":
            others |= self.all_found(others)
            others[_ENDS] = np.where(unknown, _TO_ONE, 0.0)
        elif fill == "worst":
            others[_ENDS] = np.full(len(cells), _TO_ZERO)
        vocabulary, codes = one_vocabulary([columns[LABELS], others[LABELS]])
        found: dict[str, np.ndarray] = {LABELS: vocabulary}
        for name in self.sums:
            found[name] = np.zeros((len(scored), len(vocabulary)))
            for rows, part, code in ((scored, columns, codes[0]), (~scored, others, codes[1])):
                found[name][np.ix_(rows, code[: part[name].shape[1]])] = part[name]
        found[_ENDS] = np.zeros(len(scored))
        found[_ENDS][~scored] = others[_ENDS]
        return found

    @abstractmethod
    def all_found(self, sums: Columns) -> dict[str, np.ndarray]:
        """The sums of images whose segments were all missed, if all had been found."""

    def arranged(self, rows: Columns) -> Columns:
        """With the classes in the order of their labels, so that sums do not depend on which image came first."""
        order = in_order(rows[LABELS])
        return {**rows, LABELS: rows[LABELS][order]} | {name: rows[name][:, order] for name in self.sums}

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        return [*(rows[name] for name in self.sums), rows[_ENDS] == _TO_ONE, rows[_ENDS] == _TO_ZERO]

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        *of_classes, to_one, to_zero = sums
        each = self.of_classes(dict(zip(self.sums, of_classes, strict=True)))
        defined = np.isfinite(each)
        value = np.where(defined, each, 0.0).sum(axis=1) / defined.sum(axis=1)
        return np.where(to_zero > 0, 0.0, np.where(to_one > 0, 1.0, value))

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The value of each class with its counts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            [values] = self.of_classes({name: (weight @ rows[name])[None] for name in self.sums})
        totals = {name: rows[name].sum(axis=0) for name in self.sums}
        return {
            "labels": {
                str(label): {"value": float(value) if math.isfinite(value) else None}
                | self.counts({name: round(float(total[place])) for name, total in totals.items()})
                for place, (label, value) in enumerate(zip(rows[LABELS].tolist(), values, strict=True))
            }
        }

    @property
    def _chosen(self) -> tuple[Any, ...] | None:
        label: Any = self.label
        return label if label is None or isinstance(label, tuple) else (label,)

    def _matrices(self, images: Sequence[Mapping[str, Sequence[Any]]]) -> Columns:
        """For each sum a matrix of images × classes, and the labels of the classes."""
        place: dict[str | int, int] = {}
        cells: list[tuple[int, int, list[float]]] = []
        for image, classes in enumerate(images):
            try:
                things = classes.get("thing") or [None] * len(classes["label"])
                rows = zip(classes["label"], things, *(classes[name] for name in self.sums), strict=True)
                cells += [
                    (image, place.setdefault(label, len(place)), sums)
                    for label, thing, *sums in rows
                    if self.chooses(label, thing)
                ]
            except (AttributeError, KeyError, TypeError, ValueError):
                raise DataError(_NO_CLASSES) from None
        found = {name: np.zeros((len(images), len(place))) for name in self.sums}
        if cells:
            row, column = np.array([cell[:2] for cell in cells]).T
            for name, values in zip(self.sums, np.array([cell[2] for cell in cells], np.float64).T, strict=True):
                found[name][row, column] = values
        return {**found, _ENDS: np.zeros(len(images)), LABELS: object_array([*place])}

    @property
    def of_label(self) -> str:
        """Which labels the value is of, for messages."""
        if self._chosen is None:
            return ""
        several = len(self._chosen) > 1
        return f" with one of {len(self._chosen)} labels" if several else f" with the label {self._chosen[0]!r}"


@dataclass(frozen=True, kw_only=True)
class OfPanopticSegments(OfSegments):
    """The mean over classes of a value of matched, missed and wrong segments.

    A predicted segment matches the true one of its label that it overlaps by more than one half; there is at most one.
    Void pixels and crowds count as in panopticapi. Classes without a segment that counts are left out; if none is left,
    the value is undefined.
    Source: A. Kirillov et al., "Panoptic Segmentation" (CVPR 2019).

    With `missing="wrong"`, an image that failed has no segments. It could have found all true ones (`best`), or any
    number of wrong ones, so `worst` is 0.

    Args:
        part: only the labels that are `things`, countable, or only those that are `stuff`; all by default.

    Raises:
        SpecError: `part` is something else.
    """

    sums: ClassVar[tuple[str, ...]] = ("matched", "overlap", "missed", "extra")

    part: Part | None = None

    def chooses(self, label: str | int, thing: bool | None) -> bool:
        if self.part is not None and thing is None:
            raise SpecError(
                f"{self.kind}: part={self.part!r} needs to know which labels are things; give each segment 'thing'"
            )
        return super().chooses(label, thing) and (self.part is None or thing == (self.part == "things"))

    def counts(self, sums: Mapping[str, int]) -> dict[str, int]:
        return {name: sums[name] for name in ("matched", "missed", "extra")}

    def all_found(self, sums: Columns) -> dict[str, np.ndarray]:
        return {"matched": sums["missed"], "overlap": sums["missed"], "missed": np.zeros_like(sums["missed"])}

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        of_part = "" if self.part is None else f" of {self.part}"
        return f"no image has a segment{of_part}{self.of_label} that counts"


class PanopticQuality(OfPanopticSegments):
    """The mean over classes of panoptic quality (PQ); reads the table of the scorer `segmentation`.

    Of a class, the sum of the overlaps (intersection over union) of matched segments, divided by their number and half
    the numbers of missed and of wrong ones: the product of `segmentation_quality` and `recognition_quality`.

    Example:
        >>> PanopticQuality(part="stuff", confidence=None).signature
        'panoptic_quality v1 missing=leave_out reduce=first part=stuff'
    """

    kind = "panoptic_quality"

    def of_classes(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(sums["overlap"] / _segments(sums))


class SegmentationQuality(OfPanopticSegments):
    """The mean over classes of the mean overlap of matched segments (SQ), 0 for a class without any.

    Example:
        >>> SegmentationQuality(label="sky", confidence=None).signature
        'segmentation_quality v1 missing=leave_out reduce=first label=sky'
    """

    kind = "segmentation_quality"

    def of_classes(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        mean = np.where(sums["matched"] > 0, sums["overlap"] / sums["matched"], 0.0)
        return np.where(_segments(sums) > 0, mean, np.nan)


class RecognitionQuality(OfPanopticSegments):
    """The mean over classes of the F1 of matched segments (RQ).

    Example:
        >>> RecognitionQuality(confidence=None).signature
        'recognition_quality v1 missing=leave_out reduce=first'
    """

    kind = "recognition_quality"

    def of_classes(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(sums["matched"] / _segments(sums))


class MeanIou(OfSegments):
    """The mean over classes of intersection over union of pixels; reads the table of the scorer `segmentation`.

    Of a class, the pixels that truth and prediction share in all images, divided by those of either. Pixels that no
    true segment covers are void and do not count. Classes without a true pixel are left out; if none is left, the value
    is undefined. Crowds are pixels of their class.
    Source: M. Everingham et al., "The PASCAL Visual Object Classes Challenge: A Retrospective" (IJCV 111, 2015),
    section 3.2; the classes of the mean as in cocostuffapi.

    With `missing="wrong"`, an image that failed has no segments. It could have been right (`best`), or wrong in every
    pixel, so `worst` is 0.

    Example:
        >>> MeanIou(label=["sky", "grass"], confidence=None).signature
        'mean_iou v1 missing=leave_out reduce=first label=(sky,grass)'
    """

    kind = "mean_iou"
    sums: ClassVar[tuple[str, ...]] = ("intersection", "union", "pixels")

    def of_classes(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.where(sums["pixels"] > 0, sums["intersection"] / sums["union"], np.nan)

    def counts(self, sums: Mapping[str, int]) -> dict[str, int]:
        return dict(sums)

    def all_found(self, sums: Columns) -> dict[str, np.ndarray]:
        return {"intersection": sums["union"]}

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return f"no image has a true segment{self.of_label}"


def _segments(sums: Mapping[str, np.ndarray]) -> np.ndarray:
    """The segments of each class: a matched pair counts as one, a missed and a wrong one as half."""
    return np.asarray(sums["matched"] + sums["missed"] / 2 + sums["extra"] / 2)


_NOTHING: Final[dict[str, list[Any]]] = {name: [] for name in ("label", *SUMS)}
_NO_CLASSES: Final = "classes: the column does not hold classes of segments; read a table of the scorer 'segmentation'"


def _parse_classes(text: str) -> Any:
    try:
        return orjson.loads(text)
    except (TypeError, ValueError):
        raise DataError(_NO_CLASSES) from None
