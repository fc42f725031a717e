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

    Computed in steps, not interpolated. By chance it equals the share of positives, so values are not comparable
    between data with different shares. With few positives that are hard to find it is biased upwards, since precision
    is read only at positives. The interval treats it as a proportion of the positives: K. Boyd, K. Eng & C. D. Page,
    "Area under the precision-recall curve: point estimates and confidence intervals" (ECML PKDD 2013), with the
    variance by influence.

    The parameters are those of `OneVsRest`.

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
        """What a row adds by its own precision, and its effect on that of the positives at or below its score."""
        positive = np.cumsum(ties.positive[:, ::-1], axis=1)[:, ::-1]
        all_above = np.maximum(positive + np.cumsum(ties.negative[:, ::-1], axis=1)[:, ::-1], _TINY)
        positives = positive[:, :1]
        precision = positive / all_above
        share = ties.positive / positives / all_above
        raised, lowered = (np.cumsum(share * each, axis=1) for each in (1 - precision, precision))
        own = (precision - self.of_ties(ties)[:, None]) / positives
        return Ties(own + raised, -lowered)


_TINY: Final = float(np.finfo(np.float64).tiny)
