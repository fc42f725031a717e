"""Agreement beyond chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.confusion import ClassCounts, OfCounts, harmonic
from evaluand.metrics.base.metric import Columns


@dataclass(frozen=True, kw_only=True)
class CohenKappa(OfCounts):
    """Cohen's kappa: agreement beyond chance, as a share of the largest possible.

    (observed − expected) / (1 − expected), where expected is the agreement of independent labels with the same shares;
    undefined if chance agrees everywhere.
    Source: J. Cohen, "A coefficient of agreement for nominal scales" (Educational and Psychological Measurement 20,
    1960).

    The parameters are those of `Confusion`.

    Example:
        >>> CohenKappa().signature
        'cohen_kappa v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "cohen_kappa"
    direction = "higher"
    range = (-1.0, 1.0)

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        total = counts.expected.sum(axis=1)  # summed like its parts, so that a class with all rows has exactly all
        disagreement = (counts.expected * (total[:, None] - counts.predicted)).sum(axis=1) / total**2  # 1 − expected
        wrong = (counts.expected - counts.right).sum(axis=1) / total
        return np.asarray((disagreement - wrong) / disagreement)

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        return harmonic(counts.expected[0], float(counts.total[0]))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths and predictions are one label, so chance agrees everywhere"
