"""The share of a class's rows that are not predicted as such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluand.metrics.base.class_ratio import ClassRatio


@dataclass(frozen=True, kw_only=True)
class FalseNegativeRate(ClassRatio):
    """The share of what was expected that was not found; undefined if nothing was expected.

    False negatives of all positives: 1 − recall.

    The parameters are those of `ClassRatio`.

    Example:
        >>> FalseNegativeRate(label="yes").signature
        'false_negative_rate v2 missing=leave_out reduce=first label=yes interval=wilson 95%'
    """

    kind = "false_negative_rate"
    direction = "lower"
    nothing = "nothing was expected"

    def ratio(self, expected: Any, predicted: Any, right: Any, total: Any) -> tuple[Any, Any]:
        return expected - right, expected
