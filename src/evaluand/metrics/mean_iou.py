"""The mean intersection over union of semantic segmentation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.metrics.base.metric import Columns
from evaluand.metrics.base.segments import OfSegments


@dataclass(frozen=True, kw_only=True)
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
