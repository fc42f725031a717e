"""The number of rows, or of rows with a certain value or label."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.metric import VALUE, Columns, Direction, Metric, State, Values


@dataclass(frozen=True, kw_only=True)
class Count(Metric):
    """The number of scored rows, or of those with a certain value or label; 0 for a group without rows.

    This is not a rate: compare groups of different sizes by `Mean` or `Accuracy`. The bounds `worst` and `best` need a
    direction, because whether a high count is good depends on what is counted.

    Args:
        value: count only rows with exactly this value.
        label: count only rows with this label; with `value`, both must match.
        direction: whether more or fewer of them is better; neither by default.

    Raises:
        SpecError: `value` is not a finite number.

    Example:
        >>> Count(label="toxic", direction="lower").signature
        'count v1 missing=leave_out reduce=first label=toxic direction=lower'
    """

    kind = "count"
    reductions = ("first", "best", "any", "mean", "all")
    range = (0.0, math.inf)
    row_range = (0.0, 1.0)

    value: float | None = None
    label: str | None = None
    direction: Direction | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            if not math.isfinite(self.value):
                raise SpecError(f"count: value={self.value} never equals a score; give a finite number")
            object.__setattr__(self, "value", float(self.value))
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:
        conditions = {VALUE: self.value, "label": self.label}
        return tuple(name for name, value in conditions.items() if value is not None)

    def prepare(self, columns: Columns) -> Columns:
        counted = np.ones(len(columns[INDEX]), np.bool_)
        if self.value is not None:
            counted &= columns[VALUE] == self.value
        if self.label is not None:
            counted &= (columns["label"].astype(object) == self.label).astype(np.bool_)
        return {VALUE: counted.astype(np.float64)}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        return {"count": np.bincount(group, columns[VALUE], minlength=n_groups)}

    def compute(self, state: State) -> Values:
        count = state["count"]
        nothing = np.full(count.shape, np.nan)
        return Values(count, nothing, nothing, [None] * len(count), [None] * len(count))
