"""What metrics share that average one number per row: their parameters, weights, clusters and the bootstrap."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.intervals import bootstrap, cluster_sums
from evaluand.metric import (
    CLUSTER,
    FEWEST_REPLICATES,
    VALUE,
    Columns,
    Metric,
    State,
    confidence_of,
    numbers,
    refuse,
    weights_of,
    whole_of,
)


@dataclass(frozen=True, kw_only=True)
class Averaging(Metric):
    """A mean with an interval, by cluster where rows belong together or count by weights.

    Args:
        column: the column to average.
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: take the interval from so many bootstrap replicates instead, where these differ.

    Attributes:
        method: the name of the interval that is taken without the bootstrap.

    Raises:
        SpecError: the confidence does not lie between 0 and 1, or the replicates are too few.
    """

    averages = True
    method: ClassVar[str]

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
        return f"bootstrap-{self.bootstrap}" if self.bootstrap else self.method

    @property
    def by_cluster(self) -> bool:
        return self.weighted or self.bootstrap is not None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        values = columns[VALUE]
        state = dict(self.sums(values, group, n_groups))
        weights = weights_of(columns, self.kind) if self.weighted else np.ones(len(values))
        if self.weighted:
            state["weight"] = np.bincount(group, weights, minlength=n_groups)
            state["weight_value"] = np.bincount(group, weights * values, minlength=n_groups)
        return state | dict(cluster_sums(values, weights, columns[CLUSTER], group) if CLUSTER in columns else {})

    @abstractmethod
    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        """The state of the rows as if each counted once and belonged to no other."""

    def drawn(self, state: State, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
        """The ends of the bootstrap's intervals, where it is asked for and tells them; else these."""
        if not self.bootstrap or "cluster_key" not in state:
            return low, high
        ends = bootstrap(state, value, self.confidence, self.bootstrap)
        return tuple(np.where(np.isnan(end), other, end) for end, other in zip(ends, (low, high), strict=True))


def quotient(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean of each group; NaN for a sum of weights to which `unweighable` objects."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(total / np.where((weight > 0) & np.isfinite(weight), weight, np.nan))


def unweighable(weight: float) -> str | None:
    """Why rows whose weights have this sum have no mean; None where they have."""
    if weight == 0:
        return "all weights are 0"
    return None if math.isfinite(weight) else "the weights are too large to be summed"


def alone(n: int) -> str:
    """Why so many scored rows that belong together have no interval."""
    return "one scored row has no interval" if n == 1 else "one cluster has no interval"


def zeros_and_ones(columns: Columns, name: str, kind: str, remedy: str = "") -> np.ndarray:
    """A column of numbers that are all 0 or 1.

    Raises:
        SpecError: the column holds something else than numbers.
        DataError: a scored row has another number; `remedy` is what to do about it.
    """
    values = numbers(columns, name, kind)
    other = (values != 0) & (values != 1)
    refuse(columns, other, lambda row: f"{name} {values[row]} is neither 0 nor 1{remedy}")
    return values
