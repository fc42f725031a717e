"""Accuracy in which every class counts equally."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.confusion import ByClass, ClassCounts, harmonic


@dataclass(frozen=True, kw_only=True)
class BalancedAccuracy(ByClass):
    """The mean over the true classes of the share of their rows that are right.

    Always predicting the most common of k classes gives 1 / k, not its share. The bounds include classes that only
    missing rows have.

    The interval is made of those of the classes, so it is wide where one of them has few rows, though all are right.
    Source: K. Brodersen et al., "The balanced accuracy and its posterior distribution" (ICPR 2010).

    Args:
        adjusted: rescale so that guessing, 1 / k, becomes 0: (a − 1 / k) / (1 − 1 / k); undefined for one class.

    Example:
        >>> BalancedAccuracy(adjusted=True).signature
        'balanced_accuracy v1 missing=leave_out reduce=first adjusted=true interval=jackknife 95%'
    """

    kind = "balanced_accuracy"
    takes_sets = False
    direction = "higher"

    adjusted: bool = False

    @property
    def range(self) -> tuple[float, float]:
        return (-1.0 if self.adjusted else 0.0, 1.0)

    def of_classes(self, counts: ClassCounts) -> np.ndarray:
        occurs = counts.expected > 0
        k = occurs.sum(axis=1)
        return self.of_mean(np.where(occurs, counts.right / counts.expected, 0.0).sum(axis=1) / k, counts)

    def shares_of(self, counts: ClassCounts) -> tuple[np.ndarray, np.ndarray]:
        return counts.right, counts.expected

    def of_mean(self, mean: np.ndarray, counts: ClassCounts) -> np.ndarray:
        if not self.adjusted:
            return mean
        k = (counts.expected > 0).sum(axis=1)
        return np.asarray((mean - 1 / k) / (1 - 1 / k))

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        return harmonic(counts.expected[0], float(counts.total[0]))

    def undefined(self, rows: object, weight: object) -> str:
        return "all truths are one label, so guessing cannot be wrong"
