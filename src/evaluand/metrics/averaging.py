"""What metrics share that average one number per row: the weighted mean and its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluand.intervals import (
    Spread,
    bootstrap,
    cluster_sums,
    cluster_variance,
    clustered_wilson,
    merge_clusters,
    merge_moments,
    moments,
    t_quantile,
)
from evaluand.metric import (
    CLUSTER,
    FEWEST_REPLICATES,
    NO_ROWS,
    VALUE,
    Columns,
    Metric,
    State,
    Values,
    confidence_of,
    weights_of,
    whole_of,
)


@dataclass(frozen=True, kw_only=True)
class Averaging(Metric):
    """A mean with Student's t interval, by cluster where rows belong together or count by weights.

    Args:
        column: the column to average.
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: take the interval from so many bootstrap replicates instead.

    Raises:
        SpecError: the confidence does not lie between 0 and 1, or the replicates are too few.
    """

    averages = True

    column: str = VALUE
    weighted: bool = False
    confidence: float = 0.95
    bootstrap: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", confidence_of(self.kind, self.confidence))
        if self.bootstrap is not None:
            whole_of(self.kind, "bootstrap", self.bootstrap, FEWEST_REPLICATES)
        super().__post_init__()

    @property
    def interval(self) -> str:
        return f"bootstrap-{self.bootstrap}" if self.bootstrap else "student"

    @property
    def by_cluster(self) -> bool:
        return self.weighted or self.bootstrap is not None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        values = columns[VALUE]
        state = dict(moments(values, group, n_groups))
        weights = weights_of(columns, self.kind) if self.weighted else np.ones(len(values))
        if self.weighted:
            state["weight"] = np.bincount(group, weights, minlength=n_groups)
            state["weight_value"] = np.bincount(group, weights * values, minlength=n_groups)
        return state | dict(cluster_sums(values, weights, columns[CLUSTER], group) if CLUSTER in columns else {})

    def merge(self, states: Sequence[State]) -> State:
        weights = [{name: state[name] for name in state if name.startswith("weight")} for state in states]
        return dict(merge_moments(states)) | dict(super().merge(weights)) | dict(merge_clusters(states))

    def compute(self, state: State) -> Values:
        n = state["n"]
        variance = np.where(n > 1, state["m2"] / np.maximum(n - 1, 1), np.nan)
        value = self._value(state)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high, independent = self._interval(state, value, variance)
        weightless = (state["weight"] == 0 if self.weighted else n < 0).tolist()
        known, bounded = np.isfinite(value).tolist(), np.isfinite(low).tolist()
        each = zip(
            n.tolist(), weightless, known, bounded, independent.tolist(), np.isfinite(variance).tolist(), strict=True
        )
        data = [_data(*group) for group in zip(n.tolist(), np.sqrt(variance).tolist(), strict=True)]
        if "cluster_key" in state:
            data = [told | {"clusters": found} for told, found in zip(data, independent.tolist(), strict=True)]
        return Values(value, low, high, [_reason(*group) for group in each], data)

    def _value(self, state: State) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self.weighted:
                return np.asarray(state["weight_value"] / state["weight"])
            return np.where(state["n"] > 0, state["mean"] + state["rest"], np.nan)

    def _interval(self, state: State, value: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        """Lower and upper ends, and how many independent rows or clusters they rest on."""
        n = state["n"]
        if "cluster_key" not in state:
            independent, effective, square = n, n, variance / np.maximum(n, 1)
        else:
            square, independent, effective = cluster_variance(state, value)
        if self.bootstrap and "cluster_key" in state:
            low, high = bootstrap(state, value, self.confidence, self.bootstrap)
        else:
            half = t_quantile(self.confidence, independent - 1) * np.sqrt(square)
            half = np.where(np.isfinite(half) & (half > 0), half, np.nan)
            low, high = value - half, value + half
        alike = self._of_equal_values(value, Spread(np.zeros(n.shape), independent, effective))
        equal = np.isnan(low) & (independent > 1)
        low, high = (np.where(equal, other, end) for end, other in zip((low, high), alike, strict=True))
        return np.clip(low, *self.range), np.clip(high, *self.range), independent

    def _of_equal_values(self, value: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """The interval where no two values differ: that of a share of a known range, else none."""
        least, most = self.range
        if not (math.isfinite(least) and math.isfinite(most)):
            return np.full(value.shape, np.nan), np.full(value.shape, np.nan)
        low, high = clustered_wilson((value - least) / (most - least), spread, self.confidence)
        return least + low * (most - least), least + high * (most - least)


def _reason(n: int, weightless: bool, has_value: bool, has_interval: bool, independent: int, near: bool) -> str | None:
    if n == 0:
        return NO_ROWS
    if not has_value:
        return "all weights are 0" if weightless else "the values are too large to be averaged"
    if independent == 1:
        return "one scored row has no interval" if n == 1 else "one cluster has no interval"
    if has_interval:
        return None
    return "no interval: all values are equal" if near else "the values lie too far apart for an interval"


def _data(n: int, deviation: float) -> dict[str, Any]:
    return {"n": n, "standard_deviation": deviation if math.isfinite(deviation) else None}
