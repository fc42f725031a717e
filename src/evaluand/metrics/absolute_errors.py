"""Absolute errors: their mean, also as shares of the truth, their median and the largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metrics.base.metric import NO_ROWS, VALUE, Columns, Metric, State, Values
from evaluand.metrics.base.numeric_pairs import (
    PREDICTION,
    TOO_LARGE,
    TRUTH,
    MeanError,
    absolute_errors,
    paired_numbers,
)
from evaluand.metrics.quantile import Positional, at_share
from evaluand.metrics.stats.intervals import count_rows


@dataclass(frozen=True, kw_only=True)
class MeanAbsoluteError(MeanError):
    """The mean of |prediction − truth|, in units of the truth.

    Example:
        >>> MeanAbsoluteError().error(np.array([1.0, 2.0]), np.array([1.5, 0.0]))
        array([0.5, 2. ])
    """

    kind = "mean_absolute_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        return absolute_errors(truth, prediction)


@dataclass(frozen=True, kw_only=True)
class MeanAbsolutePercentageError(MeanError):
    """The mean of |prediction − truth| / |truth|, as a share: 0.1 is ten percent.

    Undefined if a truth is 0 (other tools divide by a tiny number then, and return a huge value). Use it if all truths
    are well above 0; it favours predictions that are too low.

    Example:
        >>> MeanAbsolutePercentageError().error(np.array([2.0, 0.0]), np.array([1.0, 1.0]))
        array([0.5, nan])
    """

    kind = "mean_absolute_percentage_error"
    unfit = "the truth 0, of which no error is a share; take mean_absolute_error"

    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        size, error = np.where(truth == 0, np.nan, np.abs(truth)), absolute_errors(truth, prediction)
        return np.where(np.isinf(error), absolute_errors(truth / 2, prediction / 2) / (size / 2), error / size)


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
    share = 0.5
    columns = (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: absolute_errors(**paired_numbers(columns, self.kind))}

    def locate(self, values: np.ndarray, starts: np.ndarray, n: np.ndarray) -> np.ndarray:
        half = n // 2
        lower, upper = (at_share(values, starts, n, place / np.maximum(n, 1)) for place in ((n + 1) // 2, half + 1))
        halves = lower / 2 + upper / 2
        return np.where(upper > _HALF, halves, (np.minimum(lower, _HALF) + np.minimum(upper, _HALF)) / 2)


_HALF: Final = float(np.finfo(np.float64).max) / 2
"""The sum of two larger numbers overflows; halving such numbers is exact."""


@dataclass(frozen=True, kw_only=True)
class MaxError(Metric):
    """The largest |prediction − truth|; without an interval, since unseen errors may be larger.

    Example:
        >>> MaxError().signature
        'max_error v1 missing=leave_out reduce=first'
    """

    kind = "max_error"
    direction = "lower"
    range = (0.0, np.inf)
    row_range = (0.0, np.inf)
    reductions = ("first", "best", "all")
    columns = (TRUTH, PREDICTION)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: absolute_errors(**paired_numbers(columns, self.kind))}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        largest = np.zeros(n_groups)
        np.maximum.at(largest, group, columns[VALUE])
        return {"n": count_rows(group, n_groups), "largest": largest}

    def merge(self, states: Sequence[State]) -> State:
        largest = np.max([state["largest"] for state in states], axis=0)
        return {"n": np.sum([state["n"] for state in states], axis=0), "largest": largest}

    def compute(self, state: State) -> Values:
        n = state["n"]
        nothing = np.full(n.shape, np.nan)
        value = np.where((n > 0) & np.isfinite(state["largest"]), state["largest"], np.nan)
        reason = [_reason(*group) for group in zip(n.tolist(), np.isfinite(value).tolist(), strict=True)]
        return Values(value, nothing, nothing, reason, [{"n": rows} for rows in n.tolist()])


def _reason(n: int, has_value: bool) -> str:
    if n == 0:
        return NO_ROWS
    return "a largest error has no interval" if has_value else TOO_LARGE
