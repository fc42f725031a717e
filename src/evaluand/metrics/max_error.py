"""The largest error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.metric import NO_ROWS, VALUE, Columns, Metric, State, Values
from evaluand.metrics.base.numeric_pairs import PREDICTION, TOO_LARGE, TRUTH, absolute_errors, paired_numbers
from evaluand.metrics.stats.intervals import count_rows


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

    @property
    def columns(self) -> tuple[str, ...]:
        return (TRUTH, PREDICTION)

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
