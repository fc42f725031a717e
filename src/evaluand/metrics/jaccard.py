"""Intersection over union of truth and prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluand.metrics.base.class_ratio import ClassRatio


@dataclass(frozen=True, kw_only=True)
class Jaccard(ClassRatio):
    """The share of all that was expected or predicted that is right; undefined if there is nothing.

    c / (P + E − c), with P predicted, E expected and c right: intersection over union.
    Source: P. Jaccard, "The distribution of the flora in the alpine zone" (New Phytologist 11, 1912).

    The parameters are those of `ClassRatio`.

    Example:
        >>> Jaccard(label="yes").signature
        'jaccard v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "jaccard"
    nothing = "nothing was expected or predicted"

    @property
    def stray_weight(self) -> float:
        return 1.0

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return right, expected + predicted - right
