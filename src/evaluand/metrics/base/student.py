"""Means of numbers, with Student's t interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.metrics.base.averaging import Averaging, no_interval_reason, quotient, weight_problem
from evaluand.metrics.base.metric import NO_ROWS, State, Values
from evaluand.metrics.stats.intervals import (
    Spread,
    cluster_variance,
    clustered_wilson,
    merge_moments,
    moments,
    t_quantile,
)


@dataclass(frozen=True, kw_only=True)
class Student(Averaging):
    """A mean with Student's t interval; if all values are equal, with the interval of a share of the range."""

    method = "student"

    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        return moments(values, group, n_groups)

    def merge(self, states: Sequence[State]) -> State:
        others = [{name: state[name] for name in state if name.startswith(("weight", "cluster"))} for state in states]
        return dict(merge_moments(states)) | dict(super().merge(others))

    def compute(self, state: State) -> Values:
        n = state["n"]
        variance = np.where(n > 1, state["m2"] / np.maximum(n - 1, 1), np.nan)
        value = self._value(state)
        value = np.where(np.isfinite(value), value, np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high, independent, equal = self._interval(state, value, variance)
        weight = state["weight"] if self.weighted else n
        each = (n, weight, value, np.isfinite(low), independent, equal)
        reasons = [_reason(*group) for group in zip(*(array.tolist() for array in each), strict=True)]
        data = [_data(*group) for group in zip(n.tolist(), np.sqrt(variance).tolist(), strict=True)]
        if "cluster_key" in state:
            data = [one | {"clusters": found} for one, found in zip(data, independent.tolist(), strict=True)]
        return Values(value, low, high, reasons, data)

    def _value(self, state: State) -> np.ndarray:
        if self.weighted:
            return quotient(state["weight_value"], state["weight"])
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(state["n"] > 0, state["mean"] + state["rest"], np.nan)

    def _interval(self, state: State, value: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        """Lower and upper ends, the number of independent rows or clusters, and whether all of these are equal."""
        n = state["n"]
        spread = cluster_variance(state, value) if "cluster_key" in state else Spread(variance / np.maximum(n, 1), n, n)
        half = t_quantile(self.confidence, spread.clusters - 1) * np.sqrt(spread.variance)
        half = np.where(np.isfinite(half) & (half > 0), half, np.nan)
        low, high = self.drawn(state, value, value - half, value + half)
        ends = self._interval_of_equal_values(value, spread._replace(variance=np.zeros(n.shape)))
        equal = np.isnan(low) & (spread.clusters > 1)
        low, high = (np.where(equal, other, end) for end, other in zip((low, high), ends, strict=True))
        known = np.isfinite(low) & np.isfinite(high)
        low, high = (np.where(known, np.clip(end, *self.range), np.nan) for end in (low, high))
        return low, high, spread.clusters, spread.variance == 0

    def _interval_of_equal_values(self, value: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """The interval if all values are equal: that of a share of a known range, else none."""
        least, most = self.range
        if not (math.isfinite(least) and math.isfinite(most)):
            return np.full(value.shape, np.nan), np.full(value.shape, np.nan)
        low, high = clustered_wilson((value - least) / (most - least), spread, self.confidence)
        return least + low * (most - least), least + high * (most - least)


def _reason(n: int, weight: float, value: float, has_interval: bool, independent: int, equal: bool) -> str | None:
    if n == 0:
        return NO_ROWS
    if math.isnan(value):
        return weight_problem(weight) or "the values are too large to be averaged"
    if independent == 1:
        return no_interval_reason(n)
    if has_interval:
        return None
    if not equal:
        return TOO_FAR
    return "no interval: all values are equal" + (", or too small for squares" if abs(value) < _NO_SQUARE else "")


TOO_FAR: Final = "the values lie too far apart for an interval"
_NO_SQUARE: Final = 1e-140


def _data(n: int, deviation: float) -> dict[str, Any]:
    return {"n": n, "standard_deviation": deviation if math.isfinite(deviation) else None}
