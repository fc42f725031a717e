"""The median of absolute errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metrics.base.metric import VALUE, Columns
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, absolute_errors, paired_numbers
from evaluand.metrics.quantile import Positional, at_share


@dataclass(frozen=True, kw_only=True)
class MedianAbsoluteError(Positional):
    """The median of |prediction − truth|, which large outliers do not affect.

    For an even number of rows, the mean of the two middle errors. The interval is that of `quantile`. Unweighted.

    Args:
        confidence: of the interval.

    Example:
        >>> MedianAbsoluteError().signature
        'median_absolute_error v1 missing=leave_out reduce=first interval=woodruff 95%'
    """

    kind = "median_absolute_error"
    direction = "lower"
    range = (0.0, np.inf)
    row_range = (0.0, np.inf)
    reductions = ("first", "best", "mean", "all")

    @property
    def share(self) -> float:
        return 0.5

    @property
    def columns(self) -> tuple[str, ...]:
        return (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: absolute_errors(**paired_numbers(columns, self.kind))}

    def locate(self, values: np.ndarray, starts: np.ndarray, n: np.ndarray) -> np.ndarray:
        half = n // 2
        lower, upper = (at_share(values, starts, n, place / np.maximum(n, 1)) for place in ((n + 1) // 2, half + 1))
        halves = lower / 2 + upper / 2
        return np.where(upper > _HALF, halves, (np.minimum(lower, _HALF) + np.minimum(upper, _HALF)) / 2)


_HALF: Final = float(np.finfo(np.float64).max) / 2
"""The sum of two larger numbers overflows; halving such numbers is exact."""
