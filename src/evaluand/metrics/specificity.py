"""The share of what is not of a class that is not taken for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluand.metrics.base.class_ratio import ClassRatio


@dataclass(frozen=True, kw_only=True)
class Specificity(ClassRatio):
    """What was rightly not given a class, of all that is not of it; undefined where all is of it.

    True negatives of all negatives. A system that never gives the class is perfectly specific: look at the
    recall as well.

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
        >>> Specificity(label="yes").signature
        'specificity v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "specificity"
    direction = "higher"
    nothing = "nothing but this was expected"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return total - expected - predicted + right, total - expected
