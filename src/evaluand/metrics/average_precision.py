"""The area under the precision-recall curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.curves import POINTS, Curve, precision_recall_curve
from evaluand.metrics.one_vs_rest import OneVsRest, Ties


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(OneVsRest):
    """Average precision: Σ (recall at a threshold − recall at the one above) · precision there, over all thresholds.

    Steps, not interpolated. By chance it is the share of positives, so values of data with other shares do not compare.

    Args:
        scored_by: what the scores are, see `OfScores`.
        label: the one class that is looked at; each of the classes if not given.
        absent: what a class without a score in a row had; without it the value is undefined where one lacks.
        average: over classes: `macro`, `weighted` by how often they are the truth, or `micro`.
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Example:
        >>> AveragePrecision().signature
        'average_precision v1 missing=leave_out reduce=first scored_by=classes average=macro interval=jackknife 95%'
    """

    kind = "average_precision"
    drawn = "precision_recall"

    def curve(self, positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> Curve:
        return precision_recall_curve(positive, score, weight, points=POINTS)

    def of_ties(self, ties: Ties) -> np.ndarray:
        positive = np.cumsum(ties.positive[:, ::-1], axis=1)
        all_above = positive + np.cumsum(ties.negative[:, ::-1], axis=1)
        precision = positive / np.where(all_above > 0, all_above, 1.0)
        return np.asarray(np.einsum("rt,rt->r", ties.positive[:, ::-1], precision) / positive[:, -1])
