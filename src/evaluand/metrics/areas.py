"""Areas under curves over all thresholds."""

from dataclasses import dataclass, replace
from typing import Final, Literal, Self

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_ratio import BINARY
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.curves import POINTS, Curve, precision_recall_curve, roc_curve
from evaluand.metrics.base.metric import Columns, Labels
from evaluand.metrics.base.one_vs_rest import Average, OneVsRest, Ties


@dataclass(frozen=True, kw_only=True)
class RocAuc(OneVsRest):
    """The area under the ROC curve: how often a positive row has a higher score than a negative one; ties count half.

    0.5 for random scores. With several classes, each is compared against the rest. It depends only on the order of
    scores; if positives are rare, a high value may still come with many false positives: see `average_precision`.
    Source: J. Hanley & B. McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC)
    curve" (Radiology 143, 1982).

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
        """How much more often than average a row is ordered correctly against rows of the other class.

        Source: E. DeLong, D. DeLong & D. Clarke-Pearson, "Comparing the areas under two or more correlated receiver
        operating characteristic curves" (Biometrics 44, 1988); in O(n log n), X. Sun & W. Xu, "Fast implementation of
        DeLong's algorithm" (IEEE Signal Processing Letters 21, 2014).
        """
        positives, negatives = (each.sum(axis=1, keepdims=True) for each in ties)
        value = self.of_ties(ties)[:, None]
        below = np.cumsum(ties.negative, axis=1) - ties.negative / 2
        above = positives - np.cumsum(ties.positive, axis=1) + ties.positive / 2
        return Ties((below / negatives - value) / positives, (above / positives - value) / negatives)

    def _row_shares(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        """Of two classes that exclude each other only one: both areas depend on the same pairs of rows."""
        share = super()._row_shares(rows, weight)
        return share[:1] if len(share) == 2 and rows[TRUTH].ndim == 1 else share

    def rows_like(self, share: np.ndarray, value: np.ndarray) -> np.ndarray:
        """For positive and negative rows with exponential scores, averaged over which of them has the longer tail.

        Source: Hanley & McNeil (see above), averaged over both as in R. Newcombe (see `steady_interval`).
        """
        return np.asarray(2 * share * (1 - share) / ((1 - value) / (2 - value) + value / (1 + value)))


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(OneVsRest):
    """Average precision: Σ (recall at a threshold − recall at the one above) · precision there, over all thresholds.

    Computed in steps, not interpolated. By chance it equals the share of positives, so values are not comparable
    between data with different shares. With few positives that are hard to find it is biased upwards, since precision
    is read only at positives. The interval treats it as a proportion of the positives: K. Boyd, K. Eng & C. D. Page,
    "Area under the precision-recall curve: point estimates and confidence intervals" (ECML PKDD 2013), with the
    variance by influence.

    Args:
        scored_by: what the scores are, see `OfScores`.
        label: the positive class; by default the value is an average over all classes.
        absent: the score of a class without one in a row; by default the value is undefined if one is missing.
        average: see `OneVsRest`; `binary` is `macro` but refuses two classes, of which one must be chosen as `label`.

    Example:
        >>> AveragePrecision().signature
        'average_precision v1 missing=leave_out reduce=first scored_by=classes average=macro interval=influence 95%'
    """

    kind = "average_precision"
    drawn = "precision_recall"
    known_averages = (*OneVsRest.known_averages, BINARY)

    average: Average | Literal["binary"] = "macro"  # type: ignore[assignment]

    def settled(self, labels: Labels) -> Self:
        found = super().settled(labels)
        truths = labels.get(TRUTH, ())
        if self.average != BINARY or not truths:
            return found
        if len(truths) == 2 and not isinstance(truths[0], tuple):
            raise SpecError(
                f"{self.kind} of two classes is that of the positive one, and the labels are {truths[0]!r} and "
                f"{truths[1]!r}: choose it, as in label={truths[-1]!r}, or give average='macro' for the mean of both"
            )
        return replace(found, average="macro")

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
