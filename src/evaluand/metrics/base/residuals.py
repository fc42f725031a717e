"""Errors of single rows, for residual plots of metrics that are means of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metrics.base.curves import Drawn, residual_curve
from evaluand.metrics.base.metric import CLUSTER, WEIGHT, Columns, Metric, State, Values, weights_of
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, paired_numbers
from evaluand.metrics.stats.intervals import count_rows, random_bits

ROWS: Final = 20_000
"""The largest number of rows per group: those with the smallest keys, which depend only on the row itself."""


@dataclass(frozen=True, kw_only=True)
class Residuals(Metric):
    """Truth − prediction against the prediction; it has curves but no value, and is not registered as a kind.

    Which rows are stored depends neither on their order nor on shards, so shards merge to the same state.

    Args:
        weighted: each row counts by the weight of its example.
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
        rows = {TRUTH: columns[TRUTH], PREDICTION: columns[PREDICTION], WEIGHT: weight}
        key = np.asarray(columns[CLUSTER]).astype(np.int64, copy=False).view(np.uint64)
        for seed, name in enumerate(_ROW):
            key = random_bits(key + rows[name].astype(np.float64).view(np.uint64), seed)
        n = {"n": count_rows(group, n_groups), _TOTAL: np.bincount(group, weight, minlength=n_groups)}
        return n | _sample_rows(rows | {_KEY: key, _GROUP: group})

    def merge(self, states: Sequence[State]) -> State:
        sums = {name: np.sum([state[name] for state in states], axis=0) for name in ("n", _TOTAL)}
        return sums | _sample_rows({name: np.concatenate([state[name] for state in states]) for name in _TABLE})

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        sums = super().place({name: state[name] for name in ("n", _TOTAL)}, positions, n_groups)
        return {**state, **sums, _GROUP: positions[state[_GROUP]]}

    def compute(self, state: State) -> Values:
        nothing = np.full(state["n"].shape, np.nan)
        return Values(nothing, nothing, nothing, ["a plot has no value"] * len(nothing), [None] * len(nothing))

    def curves(self, state: State) -> list[list[Drawn]]:
        found: list[list[Drawn]] = []
        for group, total in enumerate(state[_TOTAL].tolist()):
            truth, prediction, weight = (state[name][state[_GROUP] == group] for name in _ROW)
            sampled = weight.sum()
            found.append([residual_curve(truth, prediction, weight * (total / sampled))] if sampled > 0 else [])
        return found


def _sample_rows(table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of each group with the smallest keys."""
    group, order = table[_GROUP], np.arange(len(table[_KEY]))
    if len(group) > ROWS and (group == group[0]).all():  # the common case
        order = np.argpartition(table[_KEY], ROWS)[: ROWS + 1]
    order = order[np.lexsort((table[_KEY][order], group[order]))]
    group = table[_GROUP][order]
    sample = order[np.arange(len(order)) - np.searchsorted(group, group) < ROWS]
    return {name: column[sample] for name, column in table.items()}


_KEY: Final = "key"
_GROUP: Final = "group"
_TOTAL: Final = "total"
_ROW: Final = (TRUTH, PREDICTION, WEIGHT)
_TABLE: Final = (*_ROW, _KEY, _GROUP)
