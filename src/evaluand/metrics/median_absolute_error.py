"""The median of absolute errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metric import VALUE, Columns
from evaluand.metrics.errors import PREDICTION, TRUTH, paired_numbers
from evaluand.metrics.quantile import Positional, at_share


@dataclass(frozen=True, kw_only=True)
class MedianAbsoluteError(Positional):
    """The median of |prediction − truth|: half the errors are below it, however large the largest are.

    The mean of the two middle errors of an even number. The interval is that of `quantile`. Counts every row once.

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
        found = paired_numbers(columns, self.kind)
        return {VALUE: np.abs(found[PREDICTION] - found[TRUTH])}

    def place_of(self, values: np.ndarray, starts: np.ndarray, n: np.ndarray) -> np.ndarray:
        half = n // 2
        lower, upper = (at_share(values, starts, n, place / np.maximum(n, 1)) for place in ((n + 1) // 2, half + 1))
        return np.asarray((lower + upper) / 2)
