"""Curves for reports: ROC, precision against recall, calibration and residuals, thinned for drawing.

A curve of a million rows has up to a million points; it is thinned to `points` evenly spaced ones, always with both
ends. Values such as an area are never computed from a thinned curve: see the metrics.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from evaluand.core.errors import DataError

Kind = Literal["roc", "precision_recall", "calibration", "residuals", "confusion"]
"""Kinds of curves. The points of `confusion` are the non-empty cells of a matrix."""

POINTS: Final = 200
"""The largest number of points of a curve in reports."""

PARTS: Final = 20
"""The largest number of classes with a curve: those with the most rows."""

_RESIDUAL_BINS: Final = 20


class Curve(NamedTuple):
    """Points of a curve.

    Attributes:
        x: such as the false positive rate, the recall or the mean confidence.
        y: such as the true positive rate, the precision or the share that is positive.
        threshold: the lowest score that counts as positive at the point; for calibration the end of the bin.
        weight: of the rows at or above the threshold, or in the bin.
    """

    x: np.ndarray
    y: np.ndarray
    threshold: np.ndarray
    weight: np.ndarray


class Drawn(NamedTuple):
    """A curve of one group.

    Attributes:
        kind: what is drawn.
        part: the class; for a confusion matrix the truth. None for all rows, or for merged classes.
        points: see `Curve`.
        low: lower ends of the intervals of y, if any; for residuals the 5 % quantile.
        high: upper ends; for residuals the 95 % quantile.
        labels: a label of each point: for a confusion matrix the prediction.
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
        positive: which rows are positive.
        score: of each row; higher means more likely positive.
        weight: of each row.
        points: the largest number of points, at least two.

    Raises:
        DataError: all rows are positive, or all negative, so that one of the rates is undefined.

    Example:
        >>> curve = roc_curve(np.array([False, True, True]), np.array([0.2, 0.1, 0.9]))
        >>> curve.x.tolist(), curve.y.tolist()
        ([0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 1.0])
    """
    threshold, right, wrong = _above(positive, score, weight)
    if not right[-1] > 0 or not wrong[-1] > 0:
        raise DataError("a ROC curve needs positive and negative rows")
    x, y = wrong / wrong[-1], right / right[-1]
    return thin_curve(Curve(x, y, threshold, right + wrong), x + y, points)


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
        raise DataError("a precision-recall curve needs positive rows")
    counted = right + wrong > 0
    threshold, right, wrong = threshold[counted], right[counted], wrong[counted]
    recall, seen = right / right[-1], right + wrong
    return thin_curve(Curve(recall, right / seen, threshold, seen), recall + seen / seen[-1], points)


def residual_curve(truth: np.ndarray, prediction: np.ndarray, weight: np.ndarray | None = None) -> Drawn:
    """The error, truth − prediction, against the prediction: of each row, or in bins of similar predictions.

    More than `POINTS` rows are binned. A bin shows the median of its errors and their 5 % and 95 % quantiles. Bins have
    equal weight; equal predictions are never split.

    Example:
        >>> drawn = residual_curve(np.array([1.0, 5.0]), np.array([2.0, 1.5]))
        >>> drawn.points.x.tolist(), drawn.points.y.tolist(), drawn.low is None
        ([1.5, 2.0], [3.5, -1.0], True)
    """
    each = np.ones(len(truth)) if weight is None else weight
    order = np.lexsort((truth, prediction))[each[np.lexsort((truth, prediction))] > 0]
    x, error, each = prediction[order], (truth - prediction)[order], each[order]
    if len(x) <= POINTS:
        return Drawn("residuals", None, Curve(x, error, np.full(len(x), np.nan), each))
    below = (np.cumsum(each) - each)[np.searchsorted(x, x)]
    of = np.minimum((below / each.sum() * _RESIDUAL_BINS).astype(np.int64), _RESIDUAL_BINS - 1)
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    total = np.add.reduceat(each, starts)
    ends = np.append(starts[1:], len(x))
    low, middle, high = np.array([_quantiles(error[a:b], each[a:b]) for a, b in zip(starts, ends, strict=True)]).T
    curve = Curve(np.add.reduceat(x * each, starts) / total, middle, x[ends - 1], total)
    return Drawn("residuals", None, curve, low, high)


def _quantiles(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The smallest values at or below which 5, 50 and 95 % of the weight lie."""
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    places = np.searchsorted(reached, np.array([0.05, 0.5, 0.95]) * reached[-1] * (1 - 1e-12))
    return np.asarray(values[order][places])


def part_name(label: object) -> str:
    """A label as the name of a part.

    Example:
        >>> part_name("cat"), part_name(3), part_name(True)
        ('cat', '3', 'true')
    """
    return str(label).lower() if isinstance(label, bool) else str(label)


def _above(
    positive: np.ndarray, score: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weight of positive and of negative rows at or above each threshold, starting with none."""
    order = np.argsort(score)[::-1]
    ordered = score[order]
    ends = np.flatnonzero(np.concatenate([ordered[1:] != ordered[:-1], [True]])) if len(ordered) else order
    each = np.ones(len(order)) if weight is None else weight[order]
    right, wrong = (np.cumsum(each * of)[ends] for of in (positive[order], ~positive[order]))
    return tuple(np.concatenate([[first], part]) for first, part in ((np.inf, ordered[ends]), (0, right), (0, wrong)))  # type: ignore[return-value]


def thin_curve(curve: Curve, along: np.ndarray, points: int) -> Curve:
    """A curve with at most so many points, at least two, evenly spaced `along` the curve, including both ends."""
    if len(along) <= max(points, 2):
        return curve
    places = np.searchsorted(along, np.linspace(along[0], along[-1], max(points, 2)))
    places = np.unique(np.concatenate([[0], places, [len(along) - 1]]))[: max(points, 2) + 1]
    return Curve(*(part[places] for part in curve))
