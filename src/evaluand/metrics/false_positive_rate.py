"""The share of what is not of a class that is taken for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluand.metrics.base.class_ratio import ClassRatio


@dataclass(frozen=True, kw_only=True)
class FalsePositiveRate(ClassRatio):
    """What was wrongly given a class, of all that is not of it; undefined where all is of it.

    False positives of all negatives: 1 − specificity.

    Args:
        label: the class that is looked at, the positive one.
        average: over classes (`micro`, `macro`, `weighted`) or rows (`example`), see `ClassRatio`.
        labels: the classes that are averaged over; those of truth and prediction if not given.
        zero_division: what an undefined ratio is taken for, 0 or 1.
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> FalsePositiveRate(label="yes").signature
        'false_positive_rate v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "false_positive_rate"
    direction = "lower"
    nothing = "nothing but this was expected"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return predicted - right, total - expected
