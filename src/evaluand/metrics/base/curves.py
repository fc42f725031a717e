"""Curves for reports: ROC, precision against recall, calibration and residuals, as few points as are needed to draw.

A curve of a million rows has up to a million points; it is thinned to those that a line through `points` places passes,
always with both ends. A value such as the area is not taken from a thinned curve: see the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.core.errors import DataError

Kind = Literal["roc", "precision_recall", "calibration", "residuals", "confusion"]
"""What there is to draw. The points of `confusion` are the cells of a matrix that are not empty."""

POINTS: Final = 200
"""How many points of one curve are kept for reports."""

PARTS: Final = 20
"""Of how many classes curves are kept; of more, those with the most rows."""


class Curve(NamedTuple):
    """Points of a curve.

    Attributes:
        x: such as the false positive rate, the recall or the mean confidence.
        y: such as the true positive rate, the precision or the share that is positive.
        threshold: the least score that counts as positive at the point; of a calibration the end of the bin.
        weight: of the rows at or above the threshold, or in the bin.
    """

    x: np.ndarray
    y: np.ndarray
    threshold: np.ndarray
    weight: np.ndarray


class Drawn(NamedTuple):
    """What a metric has to draw of one group.

    Attributes:
        kind: what it is.
        part: of which class; of a confusion matrix the truth. None where it is of all rows, or of classes put together.
        points: see `Curve`.
        low: lower ends of the intervals of y, if they have some; of residuals the 5 % quantile.
        high: upper ends; of residuals the 95 % quantile.
        labels: what each point stands for: of a confusion matrix the prediction.
    """

    kind: Kind
    part: str | None
    points: Curve
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    labels: Sequence[str | None] | None = None


def roc_curve(positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None, *, points: int = 500) -> Curve:
    """The true positive rate against the false positive rate, from the highest threshold (infinite) to the lowest.

    Args:
        positive: which rows are.
        score: of each row, higher for what is taken for positive.
        weight: of each row.
        points: how many to keep at most, and never less than two.

    Raises:
        DataError: all rows are of one kind, so that one of the rates is undefined.

    Example:
        >>> curve = roc_curve(np.array([False, True, True]), np.array([0.2, 0.1, 0.9]))
        >>> curve.x.tolist(), curve.y.tolist()
        ([0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 1.0])
    """
    threshold, right, wrong = _above(positive, score, weight)
    if not right[-1] > 0 or not wrong[-1] > 0:
        raise DataError("a ROC curve needs rows that are positive and rows that are not")
    x, y = wrong / wrong[-1], right / right[-1]
    return thinned(Curve(x, y, threshold, right + wrong), x + y, points)


def precision_recall_curve(
    positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None, *, points: int = 500
) -> Curve:
    """The precision against the recall, from the highest score to the lowest; arguments as of `roc_curve`.

    Raises:
        DataError: no row is positive, so that the recall is undefined.

    Example:
        >>> curve = precision_recall_curve(np.array([False, True, True]), np.array([0.2, 0.1, 0.9]))
        >>> curve.x.tolist(), curve.y.round(2).tolist()
        ([0.5, 0.5, 1.0], [1.0, 0.5, 0.67])
    """
    threshold, right, wrong = (part[1:] for part in _above(positive, score, weight))
    if not len(right) or not right[-1] > 0:
        raise DataError("a curve of precision against recall needs rows that are positive")
    counted = right + wrong > 0
    threshold, right, wrong = threshold[counted], right[counted], wrong[counted]
    recall, seen = right / right[-1], right + wrong
    return thinned(Curve(recall, right / seen, threshold, seen), recall + seen / seen[-1], points)


def calibration_curve(
    positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None = None, *, bins: int = 10
) -> Curve:
    """The share that is positive against the mean probability, in bins of equal width that have rows.

    Example:
        >>> curve = calibration_curve(np.array([False, True, True]), np.array([0.1, 0.2, 0.9]), bins=2)
        >>> curve.x.round(2).tolist(), curve.y.tolist(), curve.threshold.tolist()
        ([0.15, 0.9], [0.5, 1.0], [0.5, 1.0])
    """
    edges = np.linspace(0, 1, bins + 1)
    of = np.searchsorted(edges[1:-1], score)
    each = np.ones(len(score)) if weight is None else weight
    total, sure, right = (np.bincount(of, each * part, minlength=bins) for part in (1.0, score, positive))
    used = total > 0
    return Curve((sure[used] / total[used]), right[used] / total[used], edges[1:][used], total[used])


def residual_curve(
    truth: np.ndarray,
    prediction: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    points: int = POINTS,
    bins: int = 20,
) -> Drawn:
    """The error, truth − prediction, against the prediction: of each row, or of many rows in bins of like predictions.

    A bin has the median of its errors and the range that holds all but the lowest and the highest 5 % of them. Bins are
    of equal weight; none parts equal predictions.

    Args:
        weight: of each row.
        points: of more rows than these, bins are made.
        bins: how many.

    Example:
        >>> drawn = residual_curve(np.array([1.0, 5.0]), np.array([2.0, 1.5]))
        >>> drawn.points.x.tolist(), drawn.points.y.tolist(), drawn.low is None
        ([1.5, 2.0], [3.5, -1.0], True)
    """
    each = np.ones(len(truth)) if weight is None else weight
    order = np.lexsort((truth, prediction))[each[np.lexsort((truth, prediction))] > 0]
    x, error, each = prediction[order], (truth - prediction)[order], each[order]
    if len(x) <= points:
        return Drawn("residuals", None, Curve(x, error, np.full(len(x), np.nan), each))
    below = (np.cumsum(each) - each)[np.searchsorted(x, x)]
    of = np.minimum((below / each.sum() * bins).astype(np.int64), bins - 1)
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    total = np.add.reduceat(each, starts)
    ends = np.append(starts[1:], len(x))
    quantiles = np.array([_quantiles(error[a:b], each[a:b]) for a, b in zip(starts, ends, strict=True)])
    low, middle, high = quantiles.T
    curve = Curve(np.add.reduceat(x * each, starts) / total, middle, x[ends - 1], total)
    return Drawn("residuals", None, curve, low, high)


def _quantiles(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The least value at or below which 5, 50 and 95 % of the weight lie."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    places = np.searchsorted(reached, np.array([0.05, 0.5, 0.95]) * reached[-1] * (1 - 1e-12))
    return np.asarray(values[order][places])


def named(label: object) -> str:
    """A label as the name of a part.

    Example:
        >>> named("cat"), named(3), named(True)
        ('cat', '3', 'true')
    """
    return str(label).lower() if isinstance(label, bool) else str(label)


def _above(
    positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weight of positive rows and of others at or above each threshold, beginning with none."""
    order = np.argsort(score)[::-1]
    ordered = score[order]
    ends = np.flatnonzero(np.concatenate([ordered[1:] != ordered[:-1], [True]])) if len(ordered) else order
    each = np.ones(len(order)) if weight is None else weight[order]
    right, wrong = (np.cumsum(each * of)[ends] for of in (positive[order], ~positive[order]))
    return tuple(np.concatenate([[first], part]) for first, part in ((np.inf, ordered[ends]), (0, right), (0, wrong)))  # type: ignore[return-value]


def thinned(curve: Curve, along: np.ndarray, points: int) -> Curve:
    """A curve with fewer points: those that lie evenly along it, with both its ends.

    Args:
        along: how far along the curve each point lies, never falling.
        points: how many to keep at most, and never less than two.
    """
    kept = _kept(along, points)
    return Curve(*(part[kept] for part in curve))


def _kept(along: np.ndarray, points: int) -> np.ndarray:
    """Places that lie evenly along a curve, with both its ends."""
    if len(along) <= max(points, 2):
        return np.arange(len(along))
    places = np.searchsorted(along, np.linspace(along[0], along[-1], max(points, 2)))
    return np.unique(np.concatenate([[0], places, [len(along) - 1]]))[: max(points, 2) + 1]
