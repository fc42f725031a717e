"""The share of rows that are right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evaluand.intervals import bootstrap, cluster_sums, cluster_variance, clustered_wilson, count_rows, wilson
from evaluand.metric import (
    CLUSTER,
    FEWEST_REPLICATES,
    NO_ROWS,
    VALUE,
    Columns,
    Metric,
    Reduce,
    State,
    Values,
    confidence_of,
    numbers,
    refuse,
    weights_of,
    whole_of,
)


@dataclass(frozen=True, kw_only=True)
class Accuracy(Metric):
    """The share of rows that are right, with Wilson's score interval.

    Reads a column of zeros and ones. Where one class is rare, always answering the other already gives a high
    accuracy: look at the classes by group as well. Where examples are replicated, share a declared cluster or count by
    weights, the interval is that for clusters, as wide as the data between clusters make it.

    Args:
        column: the column of zeros and ones.
        weighted: each row counts by the weight of its example.
        confidence: of the interval.
        bootstrap: take the interval from so many bootstrap replicates instead, where these differ.

    Raises:
        SpecError: the confidence does not lie between 0 and 1, or the replicates are too few.

    Example:
        >>> metric = Accuracy()
        >>> state = metric.state({"value": np.array([1.0, 0.0, 1.0])}, np.array([0, 0, 0]), n_groups=1)
        >>> metric.compute(state).data
        [{'correct': 2, 'n': 3}]
        >>> metric.signature
        'accuracy v1 missing=leave_out reduce=first column=value interval=wilson 95%'
        >>> Accuracy(weighted=True, bootstrap=2000).signature
        'accuracy v1 missing=leave_out reduce=first column=value weighted=true interval=bootstrap-2000 95%'
    """

    kind = "accuracy"
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "any", "all")
    averages = True
    direction = "higher"
    range = (0.0, 1.0)
    row_range = (0.0, 1.0)

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
        return f"bootstrap-{self.bootstrap}" if self.bootstrap else "wilson"

    @property
    def by_cluster(self) -> bool:
        return self.weighted or self.bootstrap is not None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def prepare(self, columns: Columns) -> Columns:
        values = numbers(columns, self.column, self.kind)
        refuse(columns, (values != 0) & (values != 1), lambda row: _not_binary(self.column, values[row]))
        return {VALUE: values}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        right = columns[VALUE]
        state = {"n": count_rows(group, n_groups), "correct": count_rows(group[right == 1], n_groups)}
        weights = weights_of(columns, self.kind) if self.weighted else np.ones(len(right))
        if self.weighted:
            state["weight"] = np.bincount(group, weights, minlength=n_groups)
            state["weight_correct"] = np.bincount(group, weights * right, minlength=n_groups)
        return state | dict(cluster_sums(right, weights, columns[CLUSTER], group) if CLUSTER in columns else {})

    def compute(self, state: State) -> Values:
        n, correct = state["n"], state["correct"]
        right, of = (state["weight_correct"], state["weight"]) if self.weighted else (correct, n)
        with np.errstate(over="ignore", invalid="ignore"):
            value = right / np.where((of > 0) & np.isfinite(of), of, np.nan)
        clusters: list[int | None] = [None] * len(n)
        if "cluster_key" not in state:
            low, high = wilson(correct, n, self.confidence)
        else:
            spread = cluster_variance(state, value)
            clusters = spread.clusters.tolist()
            low, high = clustered_wilson(value, spread, self.confidence)
            if self.bootstrap:
                drawn = bootstrap(state, value, self.confidence, self.bootstrap)
                low, high = (np.where(np.isnan(end), other, end) for end, other in zip(drawn, (low, high), strict=True))
        each = list(zip(n.tolist(), correct.tolist(), of.tolist(), clusters, strict=True))
        return Values(value, low, high, [_reason(*group) for group in each], [_data(*group) for group in each])


def _not_binary(column: str, value: float) -> str:
    return f"{column} {value} is neither 0 nor 1; make it right or wrong by a threshold, or use the metric mean"


def _reason(n: int, correct: int, weight: float, clusters: int | None) -> str | None:
    if n == 0:
        return NO_ROWS
    if weight == 0:
        return "all weights are 0"
    if not math.isfinite(weight):
        return "the weights are too large to be summed"
    return "one cluster has no interval" if clusters == 1 else None


def _data(n: int, correct: int, weight: float, clusters: int | None) -> dict[str, Any]:
    return {"correct": correct, "n": n} | ({} if clusters is None else {"clusters": clusters})
