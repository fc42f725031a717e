"""Areas under curves over all thresholds, of classes against the rest and of pairs of classes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_ratio import BINARY
from evaluand.metrics.base.class_scores import SCORES
from evaluand.metrics.base.confusion import MAX_CLASSES, TRUTH
from evaluand.metrics.base.curves import POINTS, Curve, Drawn, precision_recall_curve, roc_curve
from evaluand.metrics.base.labels import in_order
from evaluand.metrics.base.metric import LABELS, Columns, Labels, Metric, State
from evaluand.metrics.base.one_vs_rest import CLASSES, Average, OneVsRest, Ordered, Ties


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


@dataclass(frozen=True, kw_only=True)
class OneVsOneRocAuc(RocAuc):
    """The mean area over all pairs of classes, each computed from the rows whose truth is one of the two.

    A pair has two areas, one by the score of each class; their mean counts. Unlike `roc_auc`, it does not depend on how
    common classes are if `average` is `macro`.
    Source: D. Hand & R. Till, "A simple generalisation of the area under the ROC curve for multiple class
    classification problems" (Machine Learning 45, 2001).

    Args:
        scored_by: `classes`, or `labels` for predicted labels without scores; see `OfScores`.
        absent: the score of a class without one in a row; by default the value is undefined if one is missing.
        average: over pairs: their mean (`macro`), or weighted by how many rows each has (`weighted`).

    Raises:
        SpecError: there is no such average, or `scored_by` is the score of a single class.

    Example:
        >>> OneVsOneRocAuc(confidence=None).signature
        'roc_auc_one_vs_one v1 missing=leave_out reduce=first scored_by=classes average=macro'
    """

    kind = "roc_auc_one_vs_one"
    takes_sets = False
    label: ClassVar[None] = None  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.average not in ("macro", "weighted"):
            raise SpecError(f"{self.kind}: average={self.average!r} must be one of macro, weighted")
        if self.scored_by not in ("classes", "labels"):
            raise SpecError(f"{self.kind}: scored_by={self.scored_by!r} must be one of classes, labels")
        super().__post_init__()

    @property
    def drawn_by(self) -> Metric | None:
        return None

    def curves(self, state: State) -> list[list[Drawn]]:
        return [[] for _ in state["n"]]

    def needs_matrix(self, rows: Columns) -> bool:
        return True

    def _ordered(self, rows: Columns) -> Iterator[Ordered | Ties]:
        """The rows of both classes of each pair, ordered by the score of one; then by that of the other."""
        for pair in _pairs(rows):
            chosen = np.flatnonzero(np.isin(rows[TRUTH], pair))
            for place in pair:
                one = self._order_rows(rows[SCORES][chosen, place], rows[TRUTH][chosen] == place, 1)
                yield one._replace(row=chosen[one.row]) if isinstance(one, Ordered) else one

    def _shares(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        pairs = np.searchsorted(rows[CLASSES], np.array(_pairs(rows)).reshape(-1, 2))
        if not len(pairs):
            return np.full(0, np.nan)
        of_pair = (
            self._positives(rows, weight)[pairs].sum(axis=1) if self.average == "weighted" else np.ones(len(pairs))
        )
        return np.asarray(np.repeat(of_pair / of_pair.sum() / 2, 2))

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        if len(rows[CLASSES]) < 2:
            return np.full(len(weight), np.nan)
        return super().value(rows, weight)

    def _of_share(self, rows: Columns, weight: np.ndarray, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """What a row of each class adds by changing the shares of the pairs with its class."""
        pairs = np.searchsorted(rows[CLASSES], np.array(_pairs(rows)))
        change = (values.reshape(-1, 2).mean(axis=1) - values @ shares) / self._positives(rows, weight)[pairs].sum()
        return np.asarray(np.bincount(pairs.ravel(), np.repeat(change, 2), minlength=len(rows[CLASSES])))

    def _of_each_class(self, rows: Columns, values: np.ndarray) -> np.ndarray:
        pairs = np.searchsorted(rows[CLASSES], np.array(_pairs(rows)))
        of_pair = np.repeat(values.reshape(-1, 2).mean(axis=1), 2)
        return np.asarray(np.bincount(pairs.ravel(), of_pair) / np.bincount(pairs.ravel()))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if len(rows[CLASSES]) < 2:
            return "there is one class, and a pair needs two"
        return super().undefined(rows, weight)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The value of each pair of classes, of at most `MAX_CLASSES` pairs."""
        if len(rows[CLASSES]) < 2:
            return {}
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self._of_classes(rows, weight).reshape(-1, 2).mean(axis=1).tolist()
        rank = np.argsort(in_order(rows[LABELS])).tolist()
        places = [sorted(pair, key=rank.__getitem__) for pair in _pairs(rows)]
        in_ranks = sorted(zip(places, values, strict=True), key=lambda each: [rank[place] for place in each[0]])
        named = [
            {"labels": [rows[LABELS][place] for place in pair], "value": None if value != value else value}
            for pair, value in in_ranks
        ]
        return {"n_pairs": len(named), "pairs": named[:MAX_CLASSES]}


def _pairs(rows: Columns) -> list[tuple[int, int]]:
    return list(combinations(rows[CLASSES].tolist(), 2))
