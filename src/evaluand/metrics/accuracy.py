"""Shares of rows that are right: of all answers, or of those with a right one among the first k."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.metrics.base.averaging import (
    Averaging,
    OfColumn,
    no_interval_reason,
    quotient,
    weight_problem,
    zeros_and_ones,
)
from evaluand.metrics.base.class_scores import SCORES
from evaluand.metrics.base.metric import (
    NO_ROWS,
    VALUE,
    Columns,
    Direction,
    Fill,
    Reduce,
    State,
    Values,
    check_choice,
    check_whole_number,
)
from evaluand.metrics.stats.intervals import (
    ShareInterval,
    cluster_variance,
    count_rows,
    effective_rows,
    share_interval,
)


@dataclass(frozen=True, kw_only=True)
class Share(Averaging):
    """A share of rows, with Wilson's score interval; `prepare` returns 0 or 1 for each row.

    Args:
        interval: `wilson`, `exact` or `mid_p`, see `share_interval`.

    Raises:
        SpecError: there is no such interval, or none but `wilson` besides a bootstrap.
    """

    direction: ClassVar[Direction | None] = "higher"
    range = (0.0, 1.0)
    row_range = (0.0, 1.0)

    interval: ShareInterval = "wilson"

    def __post_init__(self) -> None:
        check_choice(self.kind, "interval", self.interval, get_args(ShareInterval))
        if self.interval != "wilson" and self.bootstrap is not None:
            raise SpecError(f"{self.kind}: interval={self.interval!r} does not go with a bootstrap")
        super().__post_init__()

    @property
    def method(self) -> str:
        return self.interval

    def sums(self, values: np.ndarray, group: np.ndarray, n_groups: int) -> State:
        right = values == 1
        correct = np.array([np.count_nonzero(right)]) if n_groups == 1 else count_rows(group[right], n_groups)
        return {"n": count_rows(group, n_groups), "correct": correct}

    def compute(self, state: State) -> Values:
        n, correct = state["n"], state["correct"]
        right, of = (state["weight_value"], state["weight"]) if self.weighted else (correct, n)
        value = quotient(right, of)
        clusters: list[int | None] = [None] * len(n)
        if "cluster_key" in state:
            spread = cluster_variance(state, value)
            clusters = spread.clusters.tolist()
            if self.interval == "wilson":
                low, high = self.drawn(state, value, *self.interval_of(value, spread))
            else:
                rows = effective_rows(value, spread, self.confidence)
                low, high = share_interval(self.interval, value * rows, rows, self.confidence)
        else:
            low, high = share_interval(self.interval, correct, n, self.confidence)
        each = list(zip(n.tolist(), correct.tolist(), of.tolist(), clusters, strict=True))
        return Values(value, low, high, [_reason(*group) for group in each], [_data(*group) for group in each])


@dataclass(frozen=True, kw_only=True)
class Accuracy(Share, OfColumn):
    """The share of rows that are right, with Wilson's score interval.

    Reads a column of zeros and ones. If one class is rare, always predicting the other gives a high accuracy: look at
    the classes by group as well. If examples are replicated, share a declared cluster or have weights, the interval is
    the one for clusters.

    Args:
        column: the column of zeros and ones.

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

    def prepare(self, columns: Columns) -> Columns:
        remedy = "; apply a threshold to it, or use the metric mean"
        return {VALUE: zeros_and_ones(columns, self.column, self.kind, remedy)}


def _reason(n: int, correct: float, weight: float, clusters: int | None) -> str | None:
    if n == 0:
        return NO_ROWS
    return weight_problem(weight) or (no_interval_reason(n) if clusters == 1 else None)


def _data(n: int, correct: float, weight: float, clusters: int | None) -> dict[str, Any]:
    return {"correct": int(correct) if correct == int(correct) else correct, "n": n} | (
        {} if clusters is None else {"clusters": clusters}
    )


@dataclass(frozen=True, kw_only=True)
class TopK(Accuracy):
    """The share of rows for which one of the first k answers is right, where a task gives several (`Candidates`).

    The same scores serve every k. If the one answer is itself a ranking, use the scorer `top_k` and `accuracy`.

    Args:
        k: how many answers count.

    Raises:
        SpecError: k is below 1.

    Example:
        >>> TopK(k=5).signature
        'top_k v1 missing=leave_out reduce=any column=value k=5 interval=wilson 95%'
    """

    kind = "top_k"
    reductions = ("any",)
    fill_columns = (RESPONSE_INDEX,)

    k: int
    reduce: Reduce = "any"

    def __post_init__(self) -> None:
        check_whole_number(self.kind, "k", self.k, 1)
        super().__post_init__()

    @property
    def looks_at(self) -> float:
        return self.k

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        found = (*super().columns_for(available), *(name for name in self.fill_columns if name in available))
        return (*found, SCORES) if self.k > 1 and SCORES in available else found

    def prepare(self, columns: Columns) -> Columns:
        several = RESPONSE_INDEX in columns and (columns[RESPONSE_INDEX] > 0).any()
        if not several and SCORES in columns and any(scores is not None for scores in columns[SCORES]):
            raise SpecError(
                f"{self.kind}: it reads several answers to a row, best first, not scores of classes; give each row's "
                "labels in the order of their scores, to the scorer top_k"
            )
        return {VALUE: np.where(self._after_top(columns), 0.0, super().prepare(columns)[VALUE])}

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        values = np.array(super().filled(columns, scored, missing, fill)[VALUE])
        values[~scored] = np.where(self._after_top(missing), 0.0, values[~scored])
        return {VALUE: values}

    def _after_top(self, columns: Columns) -> np.ndarray:
        """Which rows are answers after the first k; a row without any answer is not one of them."""
        return np.asarray(columns[RESPONSE_INDEX] >= self.k if RESPONSE_INDEX in columns else np.False_)
