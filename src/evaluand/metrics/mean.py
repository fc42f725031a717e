"""The mean of a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluand.errors import SpecError
from evaluand.metric import (
    NO_ROWS,
    VALUE,
    Columns,
    Direction,
    Metric,
    State,
    Values,
    confidence_of,
    merge_moments,
    moments,
    numbers,
    refuse,
    t_quantile,
)


@dataclass(frozen=True, kw_only=True)
class Mean(Metric):
    """The mean of a column, with Student's t interval.

    The interval takes the rows as independent and their mean as near normal: for few rows of a skewed score, for
    responses of one example taken together (`reduce="all"`) and for 0/1 scores (see `Accuracy`) it misleads. Where
    the range is known it is cut to it.

    Args:
        column: the column to average.
        range: the values the score can have. Needed for `worst` and `best` and for `missing="wrong"`; values outside
            are refused.
        direction: whether higher or lower scores are better; None if neither.
        confidence: of the interval.

    Raises:
        SpecError: the range is empty or reversed, or the confidence not between 0 and 1.

    Example:
        >>> metric = Mean(range=(0, 1))
        >>> state = metric.state({"value": np.array([0.0, 0.5, 1.0])}, np.array([0, 0, 0]), n_groups=1)
        >>> metric.compute(state).value
        array([0.5])
        >>> metric.signature
        'mean v1 missing=leave_out reduce=first column=value range=(0.0,1.0) direction=higher interval=student 95%'
    """

    kind = "mean"
    reductions = ("first", "best", "any", "mean", "all")
    interval = "student"

    column: str = VALUE
    range: tuple[float, float] = (-math.inf, math.inf)
    direction: Direction | None = "higher"
    confidence: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", _range(self.range))
        object.__setattr__(self, "confidence", confidence_of(self.kind, self.confidence))
        super().__post_init__()

    @property
    def row_range(self) -> tuple[float, float]:
        return self.range

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def prepare(self, columns: Columns) -> Columns:
        values = numbers(columns, self.column, self.kind)
        low, high = self.range
        outside = (values < low) | (values > high)
        refuse(columns, outside, lambda row: f"{self.column} {values[row]} lies outside the range {low} to {high}")
        return {VALUE: values}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        return moments(columns[VALUE], group, n_groups)

    def merge(self, states: Sequence[State]) -> State:
        return merge_moments(states)

    def compute(self, state: State) -> Values:
        n = state["n"]
        variance = np.where(n > 1, state["m2"] / np.maximum(n - 1, 1), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.where(n > 0, state["mean"] + state["rest"], np.nan)
            half = t_quantile(self.confidence, n - 1) * np.sqrt(variance / np.maximum(n, 1))
        half = np.where(np.isfinite(half), half, np.nan)
        low, high = np.clip(value - half, *self.range), np.clip(value + half, *self.range)
        groups = zip(n.tolist(), np.isnan(value).tolist(), np.isnan(half).tolist(), strict=True)
        reason = [_reason(*group) for group in groups]
        data = [_data(*group) for group in zip(n.tolist(), np.sqrt(variance).tolist(), strict=True)]
        return Values(value, low, high, reason, data)


def _range(ends: Sequence[float]) -> tuple[float, float]:
    low, high = (float(end) for end in ends)
    if not low < high:
        raise SpecError(f"mean: range=({low}, {high}) must go from the lowest to the highest value")
    return low, high


def _reason(n: int, no_value: bool, no_interval: bool) -> str | None:
    if n == 0:
        return NO_ROWS
    if no_value:
        return "the values are too large to be averaged"
    if n == 1:
        return "one scored row has no interval"
    return "the values lie too far apart for an interval" if no_interval else None


def _data(n: int, deviation: float) -> dict[str, Any]:
    return {"n": n, "standard_deviation": deviation if math.isfinite(deviation) else None}
