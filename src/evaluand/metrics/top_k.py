"""The share of rows with a right answer among the first k."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import VALUE, Columns, Fill, Reduce, check_whole_number


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
        return (*super().columns_for(available), *(name for name in self.fill_columns if name in available))

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: np.where(self._after_top(columns), 0.0, super().prepare(columns)[VALUE])}

    def filled(self, columns: Columns, scored: np.ndarray, missing: Columns, fill: Fill) -> Columns:
        values = np.array(super().filled(columns, scored, missing, fill)[VALUE])
        values[~scored] = np.where(self._after_top(missing), 0.0, values[~scored])
        return {VALUE: values}

    def _after_top(self, columns: Columns) -> np.ndarray:
        """Which rows are answers after the first k; a row without any answer is not one of them."""
        return np.asarray(columns[RESPONSE_INDEX] >= self.k if RESPONSE_INDEX in columns else np.False_)
