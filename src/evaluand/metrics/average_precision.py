"""The area under the precision-recall curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluand.metrics.base.curves import POINTS, Curve, precision_recall_curve
from evaluand.metrics.base.one_vs_rest import OneVsRest, Ties


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(OneVsRest):
    """Average precision: Σ (recall at a threshold − recall at the one above) · precision there, over all thresholds.

    Steps, not interpolated. By chance it is the share of positives, so values of data with other shares do not compare.
    Of few positives that are hard to find the value is too high on the average, since each is counted where it stands.
    The interval takes it for a proportion of the positives: K. Boyd, K. Eng & C. D. Page, "Area under the
    precision-recall curve: point estimates and confidence intervals" (ECML PKDD 2013), with the variance by influence.

    Args:
        scored_by: what the scores are, see `OfScores`.
        label: the one class that is looked at; each of the classes if not given.
        absent: what a class without a score in a row had; without it the value is undefined where one lacks.
        average: over classes: `macro`, `weighted` by how often they are the truth, or `micro`.
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Example:
        >>> AveragePrecision().signature
        'average_precision v1 missing=leave_out reduce=first scored_by=classes average=macro interval=influence 95%'
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

    def influence_in_ties(self, ties: Ties) -> Ties:
        """What a row adds by its own precision, and changes of that of the positives at or below its score."""
        positive = np.cumsum(ties.positive[:, ::-1], axis=1)[:, ::-1]
        all_above = np.maximum(positive + np.cumsum(ties.negative[:, ::-1], axis=1)[:, ::-1], _TINY)
        positives = positive[:, :1]
        precision = positive / all_above
        share = ties.positive / positives / all_above
        raised, lowered = (np.cumsum(share * each, axis=1) for each in (1 - precision, precision))
        own = (precision - self.of_ties(ties)[:, None]) / positives
        return Ties(own + raised, -lowered)


_TINY: Final = float(np.finfo(np.float64).tiny)
