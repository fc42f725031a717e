"""Curves of scores, for reports: ROC, precision against recall, and calibration, as few points as are needed to draw.

A curve of a million rows has up to a million points; it is thinned to those that a line through `points` places passes,
always with both ends. A value such as the area is not taken from a thinned curve: see the metrics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluand.errors import DataError


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
    kept = _kept(x + y, points)
    return Curve(x[kept], y[kept], threshold[kept], (right + wrong)[kept])


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
    kept = _kept(right / right[-1] + (right + wrong) / (right + wrong)[-1], points)
    return Curve(*(part[kept] for part in (right / right[-1], right / (right + wrong), threshold, right + wrong)))


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


def _kept(along: np.ndarray, points: int) -> np.ndarray:
    """Places that lie evenly along a curve, with both its ends."""
    if len(along) <= max(points, 2):
        return np.arange(len(along))
    places = np.searchsorted(along, np.linspace(along[0], along[-1], max(points, 2)))
    return np.unique(np.concatenate([[0], places, [len(along) - 1]]))[: max(points, 2) + 1]
