"""The share of rows with a right answer among the first k."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import VALUE, Columns, Fill, Reduce, whole_of


@dataclass(frozen=True, kw_only=True)
class TopK(Accuracy):
    """The share of rows for which one of the first k answers is right, where a task gives several (`Candidates`).

    The same grades serve every k. Where the one answer is itself a ranking, take the scorer `top_k` and `accuracy`.

    Args:
        k: how many answers are looked at.

    Raises:
        SpecError: k is below 1.

    Example:
        >>> TopK(k=5).signature
        'top_k v1 missing=leave_out reduce=any column=value k=5 interval=wilson 95%'
    """

    kind = "top_k"
    reductions = ("any",)

    k: int
    reduce: Reduce = "any"

    def __post_init__(self) -> None:
        whole_of(self.kind, "k", self.k, 1)
        super().__post_init__()

    @property
    def looks_at(self) -> float:
        return self.k

    def columns_for(self, available: Collection[str]) -> tuple[str, ...]:
        return (*super().columns_for(available), *(name for name in self.fill_columns if name in available))

    @property
    def fill_columns(self) -> tuple[str, ...]:
        return (RESPONSE_INDEX,)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: np.where(self._late(columns), 0.0, super().prepare(columns)[VALUE])}

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        values = np.array(super().filled(columns, scored, missing, fill)[VALUE])
        values[~scored] = np.where(self._late(missing), 0.0, values[~scored])
        return {VALUE: values}

    def _late(self, columns: Columns) -> np.ndarray:
        """Which answers come after the first k; a row without any answer is not one of them."""
        return np.asarray(columns[RESPONSE_INDEX] >= self.k if RESPONSE_INDEX in columns else np.False_)
