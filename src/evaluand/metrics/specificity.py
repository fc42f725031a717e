"""The share of rows outside a class that are not predicted as it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluand.metrics.base.class_ratio import ClassRatio


@dataclass(frozen=True, kw_only=True)
class Specificity(ClassRatio):
    """The share of rows outside a class that were not predicted as it; undefined if there are none.

    True negatives of all negatives. A system that never predicts the class has the specificity 1: look at the recall as
    well.

    The parameters are those of `ClassRatio`.

    Example:
        >>> Specificity(label="yes").signature
        'specificity v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "specificity"
    nothing = "nothing but this was expected"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return total - expected - predicted + right, total - expected
