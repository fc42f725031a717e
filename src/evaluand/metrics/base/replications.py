"""Base of metrics that compute one value from all the answers to an example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evaluand.metrics.base.metric import Metric, Missing, Reduce, check_whole_number


@dataclass(frozen=True, kw_only=True)
class OverReplications(Metric):
    """A metric whose rows are examples with all their replications.

    Args:
        k: how many answers matter.

    Raises:
        SpecError: k is below 1.
    """

    reductions: ClassVar[tuple[Reduce, ...]] = ("all",)
    over_replications = True

    k: int
    reduce: Reduce = "all"
    missing: Missing = "wrong"

    def __post_init__(self) -> None:
        check_whole_number(self.kind, "k", self.k, 1)
        super().__post_init__()

    @property
    def fewest_answers(self) -> int:
        return self.k
