"""Means of errors, one error for each row of numbers, and the errors themselves for residual plots."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from evaluand.metrics.base.averaging import ROW_GROUP, KeepingRows, Student
from evaluand.metrics.base.curves import Drawn, residual_curve
from evaluand.metrics.base.metric import CLUSTER, VALUE, Columns, Metric, State, Values, numbers, weights_of
from evaluand.metrics.stats.intervals import count_rows, random_bits

TRUTH, PREDICTION = "truth", "prediction"


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
        if without.any():
            values = np.where(without, 0.0, values)
        state = super().state({**columns, VALUE: values}, group, n_groups)
        return {**state, _WITHOUT: count_rows(group[without], n_groups)}

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


class MeanError(PartlyDefined):
    """A mean of errors of 0 or more; lower is better."""

    direction = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    unfit: ClassVar[str] = "no such error"
    columns: ClassVar[tuple[str, ...]] = (TRUTH, PREDICTION)

    @property
    def drawn_by(self) -> Metric | None:
        """Residuals, if each belongs to one answer."""
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
    """Truth and prediction as numbers; a SpecError if they are none, a DataError if a scored row lacks one."""
    return {name: numbers(columns, name, kind) for name in (TRUTH, PREDICTION)}


ROWS: Final = 20_000
"""The largest number of rows per group: those with the smallest keys, which depend only on the row itself."""


@dataclass(frozen=True, kw_only=True)
class Residuals(KeepingRows):
    """Truth − prediction against the prediction; it has curves but no value, and is not registered as a kind.

    Which rows are stored depends neither on their order nor on shards, so shards merge to the same state.
    """

    kind = "residuals"
    by_cluster = True
    columns = (TRUTH, PREDICTION)

    weighted: bool = False

    @property
    def drawn_by(self) -> Metric:
        return self

    def prepare(self, columns: Columns) -> Columns:
        return paired_numbers(columns, self.kind)

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        weight = weights_of(columns, self.kind) if self.weighted else np.ones(len(group))
        rows = dict(zip(_ROW, (columns[TRUTH], columns[PREDICTION], weight), strict=True))
        key = np.asarray(columns[CLUSTER]).astype(np.int64, copy=False).view(np.uint64)
        for seed, name in enumerate(_ROW):
            key = random_bits(key + rows[name].astype(np.float64).view(np.uint64), seed)
        n = {"n": count_rows(group, n_groups), _TOTAL: np.bincount(group, weight, minlength=n_groups)}
        return n | _sample_rows(rows | {_KEY: key, ROW_GROUP: group})

    def merge(self, states: Sequence[State]) -> State:
        merged = super().merge(states)
        return {**merged, **_sample_rows({name: merged[name] for name in (*_ROW, _KEY, ROW_GROUP)})}

    def compute(self, state: State) -> Values:
        nothing = np.full(state["n"].shape, np.nan)
        return Values(nothing, nothing, nothing, ["a plot has no value"] * len(nothing), [None] * len(nothing))

    def curves(self, state: State) -> list[list[Drawn]]:
        found: list[list[Drawn]] = []
        for group, total in enumerate(state[_TOTAL].tolist()):
            truth, prediction, weight = (state[name][state[ROW_GROUP] == group] for name in _ROW)
            sampled = weight.sum()
            found.append([residual_curve(truth, prediction, weight * (total / sampled))] if sampled > 0 else [])
        return found


def _sample_rows(table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of each group with the smallest keys."""
    group, order = table[ROW_GROUP], np.arange(len(table[_KEY]))
    if len(group) > ROWS and (group == group[0]).all():  # the common case
        order = np.argpartition(table[_KEY], ROWS)[: ROWS + 1]
    order = order[np.lexsort((table[_KEY][order], group[order]))]
    group = table[ROW_GROUP][order]
    sample = order[np.arange(len(order)) - np.searchsorted(group, group) < ROWS]
    return {name: column[sample] for name, column in table.items()}


_KEY: Final = "row_key"
_TOTAL: Final = "total"
_ROW: Final = ("row_truth", "row_prediction", "row_weight")
