"""Panoptic quality, and its two factors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import Columns
from evaluand.metrics.base.segments import OfSegments

Part = Literal["things", "stuff"]


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

    def __post_init__(self) -> None:
        if self.part not in (None, *get_args(Part)):
            raise SpecError(f"{self.kind}: part={self.part!r} must be 'things' or 'stuff'")
        super().__post_init__()

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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class RecognitionQuality(OfPanopticSegments):
    """The mean over classes of the F1 of matched segments (RQ).

    Example:
        >>> RecognitionQuality(confidence=None).signature
        'recognition_quality v1 missing=leave_out reduce=first'
    """

    kind = "recognition_quality"

    def of_classes(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(sums["matched"] / _segments(sums))


def _segments(sums: Mapping[str, np.ndarray]) -> np.ndarray:
    """The segments of each class: a matched pair counts as one, a missed and a wrong one as half."""
    return np.asarray(sums["matched"] + sums["missed"] / 2 + sums["extra"] / 2)
