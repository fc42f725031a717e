"""The share of other rows that are predicted as a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluand.metrics.base.class_ratio import ClassRatio


@dataclass(frozen=True, kw_only=True)
class FalsePositiveRate(ClassRatio):
    """The share of rows outside a class that were predicted as it; undefined if there are none.

    False positives of all negatives: 1 − specificity.

    The parameters are those of `ClassRatio`.

    Example:
        >>> FalsePositiveRate(label="yes").signature
        'false_positive_rate v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "false_positive_rate"
    direction = "lower"
    nothing = "nothing but this was expected"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return predicted - right, total - expected
