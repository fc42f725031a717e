"""The mean of a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluand.core.errors import SpecError
from evaluand.metrics.base.averaging import OfColumn, Student
from evaluand.metrics.base.metric import VALUE, Columns, Direction, numbers, refuse


@dataclass(frozen=True, kw_only=True)
class Mean(Student, OfColumn):
    """The mean of a column, with Student's t interval.

    The interval assumes that the mean is nearly normal: it misleads for few rows of a skewed score (use the bootstrap)
    and for 0/1 scores (see `Accuracy`). If examples are replicated, share a declared cluster or have weights, it is the
    interval for clusters. It is clipped to a known range.

    Args:
        column: the column to average.
        weighted: each row counts by the weight of its example.
        range: the values the score can have. `worst`, `best` and `missing="wrong"` need it; values outside are
            refused.
        direction: whether higher or lower scores are better; None if neither.
        confidence: of the interval.
        bootstrap: compute the interval from this many bootstrap replicates, if these differ.

    Raises:
        SpecError: the range is empty or reversed, the confidence not between 0 and 1, or the replicates too few.

    Example:
        >>> import numpy as np
        >>> metric = Mean(range=(0, 1))
        >>> state = metric.state({"value": np.array([0.0, 0.5, 1.0])}, np.array([0, 0, 0]), n_groups=1)
        >>> metric.compute(state).value
        array([0.5])
        >>> metric.signature
        'mean v1 missing=leave_out reduce=first column=value range=(0.0,1.0) direction=higher interval=student 95%'
    """

    kind = "mean"
    reductions = ("first", "best", "any", "mean", "all")

    range: tuple[float, float] = (-math.inf, math.inf)
    direction: Direction | None = "higher"

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", _check_range(self.range))
        super().__post_init__()

    @property
    def row_range(self) -> tuple[float, float]:
        return self.range

    def prepare(self, columns: Columns) -> Columns:
        values = numbers(columns, self.column, self.kind)
        low, high = self.range
        outside = (values < low) | (values > high)
        refuse(columns, outside, lambda row: f"{self.column} {values[row]} lies outside the range {low} to {high}")
        return {VALUE: values}


def _check_range(ends: Sequence[float]) -> tuple[float, float]:
    low, high = (float(end) for end in ends)
    if not low < high:
        raise SpecError(f"mean: range=({low}, {high}) must be (lowest, highest)")
    return low, high
