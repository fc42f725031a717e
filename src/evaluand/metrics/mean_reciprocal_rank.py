"""The mean of reciprocal ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.at_k import refuse_ranks
from evaluand.metrics.base.metric import VALUE, Columns, Reduce
from evaluand.metrics.base.student import Student


@dataclass(frozen=True, kw_only=True)
class MeanReciprocalRank(Student):
    """The mean of 1 / the rank of the first relevant answer; reads the table of the scorer `ranking`.

    Args:
        absent_rank: the rank of a relevant answer that is not in the ranking; by default such a row counts 0.

    Raises:
        SpecError: `absent_rank` is below 1.

    Example:
        >>> metric = MeanReciprocalRank(absent_rank=500)
        >>> metric.prepare({"first_rank": np.array([1.0, 4.0, np.nan])})["value"]
        array([1.   , 0.25 , 0.002])
    """

    kind = "mean_reciprocal_rank"
    direction = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    row_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reductions: ClassVar[tuple[Reduce, ...]] = ("first", "best", "mean", "all")
    columns = ("first_rank",)

    absent_rank: float | None = None

    def __post_init__(self) -> None:
        if self.absent_rank is not None:
            if not self.absent_rank >= 1:
                raise SpecError(f"{self.kind}: absent_rank={self.absent_rank!r} must be at least 1")
            object.__setattr__(self, "absent_rank", None if self.absent_rank == math.inf else float(self.absent_rank))
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        refuse_ranks(columns, "first_rank")
        rank = columns["first_rank"].astype(np.float64)
        absent = 0.0 if self.absent_rank is None else 1 / self.absent_rank
        return {VALUE: np.where(np.isnan(rank), absent, 1 / rank)}
