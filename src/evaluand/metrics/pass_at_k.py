"""The chance that one of k answers is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.averaging import OfColumn, zeros_and_ones
from evaluand.metrics.base.metric import VALUE, Columns
from evaluand.metrics.base.replications import OverReplications
from evaluand.metrics.base.student import Student


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
