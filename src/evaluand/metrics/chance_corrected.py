"""Agreement of truth and prediction beyond chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.confusion import ClassCounts, OfCounts, harmonic
from evaluand.metrics.base.metric import Columns


@dataclass(frozen=True, kw_only=True)
class _ChanceCorrected(OfCounts):
    """1 for full agreement, 0 for agreement by chance."""

    direction = "higher"
    range = (-1.0, 1.0)

    def basis_of(self, counts: ClassCounts, vocabulary: np.ndarray) -> float:
        return harmonic(counts.expected[0], float(counts.total[0]))


@dataclass(frozen=True, kw_only=True)
class CohenKappa(_ChanceCorrected):
    """Cohen's kappa: agreement beyond chance, as a share of the largest possible.

    (observed − expected) / (1 − expected), where expected is the agreement of independent labels with the same shares;
    undefined if chance agrees everywhere.
    Source: J. Cohen, "A coefficient of agreement for nominal scales" (Educational and Psychological Measurement 20,
    1960).

    Example:
        >>> CohenKappa().signature
        'cohen_kappa v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "cohen_kappa"

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        total = counts.expected.sum(axis=1)  # summed like its parts, so that a class with all rows has exactly all
        disagreement = (counts.expected * (total[:, None] - counts.predicted)).sum(axis=1) / total**2  # 1 − expected
        wrong = (counts.expected - counts.right).sum(axis=1) / total
        return np.asarray((disagreement - wrong) / disagreement)

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths and predictions are one label, so chance agrees everywhere"


@dataclass(frozen=True, kw_only=True)
class MatthewsCorrelation(_ChanceCorrected):
    """Matthews' correlation coefficient, for any number of classes.

    (c n − Σ Eₖ Pₖ) / √((n² − Σ Eₖ²) (n² − Σ Pₖ²)), with c of n rows right and Eₖ expected, Pₖ predicted rows of class
    k.
    Undefined if all truths or all predictions are equal.
    Source: J. Gorodkin, "Comparing two K-category assignments by a K-category correlation coefficient" (Computational
    Biology and Chemistry 28, 2004).

    Example:
        >>> MatthewsCorrelation().signature
        'matthews_correlation v1 missing=leave_out reduce=first interval=jackknife 95%'
    """

    kind = "matthews_correlation"

    def of_counts(self, counts: ClassCounts, vocabulary: np.ndarray) -> np.ndarray:
        total = counts.expected.sum(axis=1, keepdims=True)
        expected = counts.expected / total
        predicted = counts.predicted / counts.predicted.sum(axis=1, keepdims=True)  # exactly 1 if one class has all
        wrong = (counts.expected - counts.right).sum(axis=1) / total[:, 0]
        covariance = (expected * (1 - predicted)).sum(axis=1) - wrong  # precise even if one class has nearly all
        spread = _spread(expected) * _spread(predicted)
        return np.asarray(np.clip(covariance / np.sqrt(np.where(spread > 0, spread, np.nan)), -1.0, 1.0))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths, or all predictions, are one label"


def _spread(share: np.ndarray) -> np.ndarray:
    """1 − Σ s², which is 0 if one class has all."""
    return np.asarray((share * (1 - share)).sum(axis=1))
