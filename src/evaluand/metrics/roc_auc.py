"""The area under the ROC curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluand.metrics.base.curves import POINTS, Curve, roc_curve
from evaluand.metrics.base.one_vs_rest import OneVsRest, Ties


@dataclass(frozen=True, kw_only=True)
class RocAuc(OneVsRest):
    """The area under the ROC curve: how often a positive row has a higher score than a negative one, half for ties.

    0.5 for scores by chance. Of several classes each is taken against the rest. It tells of the order of scores alone;
    where positives are rare, a high value may still come with many false alarms, see `average_precision`.
    Source: J. Hanley & B. McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC)
    curve" (Radiology 143, 1982).

    Args:
        scored_by: what the scores are, see `OfScores`.
        label: the one class that is looked at; each of the classes if not given.
        absent: what a class without a score in a row had; without it the value is undefined where one lacks.
        average: over classes: `macro`, `weighted` by how often they are the truth, or `micro`.
        weighted: each row counts by the weight of its example.
        confidence: of the interval; None for a value without one.

    Example:
        >>> metric = RocAuc(scored_by="positive", label="cat", confidence=None)
        >>> metric.signature
        'roc_auc v1 missing=leave_out reduce=first scored_by=positive label=cat average=macro'
    """

    kind = "roc_auc"
    drawn = "roc"

    def curve(self, positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> Curve:
        return roc_curve(positive, score, weight, points=POINTS)

    def of_ties(self, ties: Ties) -> np.ndarray:
        below = np.cumsum(ties.negative, axis=1) - ties.negative / 2
        pairs = ties.positive.sum(axis=1) * ties.negative.sum(axis=1)
        return np.asarray(np.einsum("rt,rt->r", ties.positive, below) / pairs)

    def influence_in_ties(self, ties: Ties) -> Ties:
        """How much more often than on the average a row is on the right side of those of the other kind.

        Source: E. DeLong, D. DeLong & D. Clarke-Pearson, "Comparing the areas under two or more correlated receiver
        operating characteristic curves" (Biometrics 44, 1988); in O(n log n), X. Sun & W. Xu, "Fast implementation of
        DeLong's algorithm" (IEEE Signal Processing Letters 21, 2014).
        """
        positives, negatives = (each.sum(axis=1, keepdims=True) for each in ties)
        value = self.of_ties(ties)[:, None]
        below = np.cumsum(ties.negative, axis=1) - ties.negative / 2
        above = positives - np.cumsum(ties.positive, axis=1) + ties.positive / 2
        return Ties((below / negatives - value) / positives, (above / positives - value) / negatives)

    def rows_like(self, share: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Of two kinds of rows, as of exponential scores whichever kind has the longer tail.

        Source: Hanley & McNeil (see above), averaged over both as by R. Newcombe (see `steadied`).
        """
        return np.asarray(2 * share * (1 - share) / ((1 - value) / (2 - value) + value / (1 + value)))
