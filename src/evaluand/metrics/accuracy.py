"""The share of rows that are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metric import (
    NO_ROWS,
    VALUE,
    Columns,
    Metric,
    State,
    Values,
    confidence_of,
    count_rows,
    numbers,
    refuse,
    wilson,
)


@dataclass(frozen=True, kw_only=True)
class Accuracy(Metric):
    """The share of rows that are right, with Wilson's score interval.

    Reads a column of zeros and ones. Where one class is rare, always answering the other already gives a high
    accuracy: look at the classes by group as well. With `reduce="all"` the responses to one example are not
    independent and the interval is too narrow.

    Args:
        column: the column of zeros and ones.
        confidence: of the interval.

    Raises:
        SpecError: the confidence does not lie between 0 and 1.

    Example:
        >>> metric = Accuracy()
        >>> state = metric.state({"value": np.array([1.0, 0.0, 1.0])}, np.array([0, 0, 0]), n_groups=1)
        >>> metric.compute(state).data
        [{'correct': 2, 'n': 3}]
        >>> metric.signature
        'accuracy v1 missing=leave_out reduce=first column=value interval=wilson 95%'
    """

    kind = "accuracy"
    reductions = ("first", "best", "any", "all")
    interval = "wilson"
    direction = "higher"
    range = (0.0, 1.0)
    row_range = (0.0, 1.0)

    column: str = VALUE
    confidence: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", confidence_of(self.kind, self.confidence))
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def prepare(self, columns: Columns) -> Columns:
        values = numbers(columns, self.column, self.kind)
        refuse(columns, (values != 0) & (values != 1), lambda row: _not_binary(self.column, values[row]))
        return {VALUE: values}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        return {"n": count_rows(group, n_groups), "correct": count_rows(group[columns[VALUE] == 1], n_groups)}

    def compute(self, state: State) -> Values:
        n, correct = state["n"], state["correct"]
        value = correct / np.where(n > 0, n, np.nan)
        low, high = wilson(correct, n, self.confidence)
        reason = [None if rows else NO_ROWS for rows in n.tolist()]
        pairs = zip(correct.tolist(), n.tolist(), strict=True)
        return Values(value, low, high, reason, [{"correct": right, "n": rows} for right, rows in pairs])


def _not_binary(column: str, value: float) -> str:
    return f"{column} {value} is neither 0 nor 1; make it right or wrong by a threshold, or use the metric mean"
