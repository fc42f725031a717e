"""Overlap of the tops of truth and prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import Columns, State, Values, check_whole_number, refuse_empty
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH, paired_numbers
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric

Top = Literal["largest", "first"]


@dataclass(frozen=True, kw_only=True)
class PrecisionAtTopK(WeightedRowsMetric):
    """The overlap of the tops of truth and prediction, divided by k even if there are fewer rows.

    It depends on the order of the rows if values are equal, and always with `top="first"`: rows are in the order of the
    dataset. So it has no interval and no weights.

    Args:
        k: the number of rows in the top.
        top: `largest`: count the rows that have one of the k largest values in both columns (of equal values the later
            rows come first). `first`: count the values that occur in the first k rows of both columns.

    Raises:
        SpecError: k is below 1, or there is no such top.

    Example:
        >>> metric = PrecisionAtTopK(k=3)
        >>> columns = {"truth": np.array([0, 1, 2, 3, 4]), "prediction": np.array([1, 3, 2, 4, 0])}
        >>> metric.compute(metric.state(columns, np.zeros(5, int), n_groups=1)).value.round(3)
        array([0.667])
    """

    kind = "precision_at_top_k"
    direction = "higher"
    range = (0.0, 1.0)
    row_columns: ClassVar[tuple[str, ...]] = (TRUTH, PREDICTION)
    weighted: ClassVar[bool] = False  # type: ignore[misc]
    confidence: ClassVar[None] = None  # type: ignore[misc]
    columns = (TRUTH, PREDICTION)

    k: int
    top: Top = "largest"

    def __post_init__(self) -> None:
        check_whole_number(self.kind, "k", self.k, 1)
        if self.top not in ("largest", "first"):
            raise SpecError(f"{self.kind}: top={self.top!r} must be largest or first")
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        if self.top == "largest":
            return paired_numbers(columns, self.kind)
        for name in self.columns:
            refuse_empty(columns, name)
        return {name: columns[name] for name in self.columns}

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        truth, prediction = (self._top(rows[name]) for name in self.columns)
        return np.full(len(weight), len(np.intersect1d(truth, prediction)) / self.k)

    def compute(self, state: State) -> Values:
        found = super().compute(state)
        each = zip(found.value.tolist(), found.reason, strict=True)
        return replace(found, reason=[reason if value != value else _NO_INTERVAL for value, reason in each])

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of rows in the top."""
        return {"top": min(self.k, len(weight))}

    def _top(self, values: np.ndarray) -> np.ndarray:
        if self.top == "first":
            return values[: self.k]
        return np.argsort(values, kind="stable")[::-1][: self.k]


_NO_INTERVAL: Final = "no interval: a top hangs on the order of rows"
