"""What truth and prediction have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluand.metrics.base.class_ratio import ClassRatio


@dataclass(frozen=True, kw_only=True)
class Jaccard(ClassRatio):
    """What is right of all that was expected or predicted; undefined where there is nothing.

    c / (P + E − c), of P predicted, E expected and c right: intersection over union. Reads labels or sets of labels.
    Source: P. Jaccard, "The distribution of the flora in the alpine zone" (New Phytologist 11, 1912).

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
        >>> Jaccard(label="yes").signature
        'jaccard v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "jaccard"
    direction = "higher"
    nothing = "nothing was expected or predicted"

    @property
    def of_strays(self) -> float:
        return 1.0

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return right, expected + predicted - right
