"""Metrics of all the answers to an example: one value from all its replications."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.averaging import OfColumn, Student, zeros_and_ones
from evaluand.metrics.base.metric import VALUE, Columns, Metric, Missing, Reduce, check_whole_number


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


@dataclass(frozen=True, kw_only=True)
class KOfN(OverReplications, Accuracy):
    """The share of examples with at least k right answers over all replications.

    With k = 1 an example counts if one try succeeded, with k = the number of replications only if all did: the
    difference shows how reliable a system is. A failed try counts as wrong by default (`missing`).

    Args:
        k: how many right answers an example needs.

    Raises:
        SpecError: k is below 1.

    Example:
        >>> KOfN(k=2).reduced(np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]), np.array([0, 3]))
        array([1., 0.])
    """

    kind = "k_of_n"

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values, starts) >= self.k, np.float64)


@dataclass(frozen=True, kw_only=True)
class PassAtK(OverReplications, Student, OfColumn):
    """The chance that at least one of k answers to an example is right, from n ≥ k replications of each.

    For each example with c right answers of n it is 1 − C(n−c, k) / C(n, k), which does not depend on which k were
    drawn; the value is the mean over examples. A failed try counts as wrong by default (`missing`).
    Source: M. Chen et al., "Evaluating large language models trained on code" (2021), arXiv:2107.03374.

    Args:
        k: how many answers are taken.

    Raises:
        SpecError: k is below 1, or an example has fewer answers.

    Example:
        >>> PassAtK(k=2).reduced(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]), np.array([0, 3])).round(4)
        array([0.6667, 0.    ])
    """

    kind = "pass_at_k"
    direction = "higher"
    range = (0.0, 1.0)
    row_range = (0.0, 1.0)

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: zeros_and_ones(columns, self.column, self.kind)}

    def reduced(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        n = np.diff(starts, append=len(values))
        if len(n) and n.min() < self.k:
            raise SpecError(
                f"pass_at_k: k={self.k} needs as many answers to each example, but one has {n.min()};"
                f" run with replications: {self.k} or more"
            )
        wrong = n - np.add.reduceat(values, starts)
        none = np.ones(len(n))
        for i in range(self.k):  # C(wrong, k) / C(n, k), factor by factor
            none *= np.maximum(wrong - i, 0) / (n - i)
        return 1 - none
