"""Means of errors: one error for each row of numbers, their mean over rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from evaluand.metrics.base.metric import VALUE, Columns, Metric, Reduce, State, Values, numbers
from evaluand.metrics.base.student import Student

TRUTH, PREDICTION = "truth", "prediction"


@dataclass(frozen=True, kw_only=True)
class PartlyDefined(Student):
    """A mean of numbers that are undefined for some rows, for which `prepare` returns NaN.

    A group with such rows has no value; its reason says how many there are.

    Attributes:
        unfit: what such a row has, in words that follow "3 rows have".
    """

    unfit: ClassVar[str]

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        values = columns[VALUE]
        without = np.isnan(values)
        state = super().state({**columns, VALUE: np.where(without, 0.0, values)}, group, n_groups)
        return {**state, _WITHOUT: np.bincount(group[without], minlength=n_groups)}

    def merge(self, states: Sequence[State]) -> State:
        return {**super().merge(states), _WITHOUT: np.sum([state[_WITHOUT] for state in states], axis=0)}

    def compute(self, state: State) -> Values:
        found, without = super().compute(state), state[_WITHOUT]
        value, low, high = (np.where(without, np.nan, end) for end in (found.value, found.low, found.high))
        reason = [
            f"{rows} {'row has' if rows == 1 else 'rows have'} {self.unfit}" if rows else other
            for rows, other in zip(without.tolist(), found.reason, strict=True)
        ]
        return replace(found, value=value, low=low, high=high, reason=reason)


@dataclass(frozen=True, kw_only=True)
class MeanError(PartlyDefined):
    """A mean of errors of 0 or more; lower is better."""

    direction = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    row_range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "mean", "all")
    unfit: ClassVar[str] = "no such error"
    columns = (TRUTH, PREDICTION)

    @property
    def drawn_by(self) -> Metric | None:
        """Residuals, if each belongs to one answer."""
        from evaluand.metrics.base.residuals import Residuals  # it imports this module

        if self.reduce not in Residuals.reductions:
            return None
        return Residuals(reduce=self.reduce, over_targets=self.over_targets, weighted=self.weighted)

    @abstractmethod
    def error(self, truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """The error of each row, NaN where undefined."""

    def prepare(self, columns: Columns) -> Columns:
        truth, prediction = paired_numbers(columns, self.kind).values()
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return {VALUE: self.error(truth, prediction)}


TOO_LARGE: Final = "an error is too large for a number"
_WITHOUT: Final = "without"


def absolute_errors(truth: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """|prediction − truth|, infinite on overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(prediction - truth))


def paired_numbers(columns: Columns, kind: str) -> dict[str, np.ndarray]:
    """Truth and prediction as finite numbers.

    Raises:
        SpecError: they are not numbers.
        DataError: a scored row lacks one.
    """
    return {name: numbers(columns, name, kind) for name in (TRUTH, PREDICTION)}
