"""Ratings as win rates against a baseline at equal length.

Each system is fitted separately, so that its win rate does not change when systems are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evaluand.matches.ratings.estimates import Estimates
from evaluand.matches.ratings.strengths import student_p
from evaluand.matches.ratings.win_shares import BASELINE, find_system
from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.ratings.equal_length import EqualLengthRate, equal_length_difference, equal_length_win_rates


def estimate_equal_length(
    rows: MatchRows, shares: np.ndarray, lengths: np.ndarray, labels: Sequence[str], baseline: str, confidence: float
) -> Estimates:
    """The ratings of all systems.

    Args:
        shares: the part of a match that each judgement is.
        lengths: matches × sides: the characters of the responses of `a` and `b`.
        labels: of the systems.
        baseline: one of them.
    """
    base = find_system(baseline, labels)
    found = equal_length_win_rates(
        rows.a,
        rows.b,
        rows.outcome,
        rows.cluster,
        lengths[:, 0],
        lengths[:, 1],
        systems=rows.systems,
        baseline=base,
        weight=_scale_by_system(rows, shares, base),
        confidence=confidence,
    )
    value, low, high = (np.array([getattr(each, name) for each in found]) for name in ("win_rate", "low", "high"))
    error = np.array([math.sqrt(each.variance) or math.nan for each in found])  # NaN where outcomes show no spread
    error[base] = 0.0
    difference, ends, errors = _differences(found, base, error)
    p = student_p(difference, errors, min((each.examples for each in found if each.examples), default=0) - 1)
    error[base] = math.nan
    undefined = {"standard_error": math.nan, "low": math.nan, "high": math.nan}
    return Estimates(
        rating=value,
        error=error,
        low=low,
        high=high,
        reason=[BASELINE if label == baseline else each.reason for each, label in zip(found, labels, strict=True)],
        difference=difference,
        difference_low=ends[0],
        difference_high=ends[1],
        p=p,
        test="student",
        parameters=[
            {"name": name, "system": label, "value": getattr(one, name), "reason": one.reason} | undefined
            for one, label in zip(found, labels, strict=True)
            if label != baseline
            for name in ("length", "quality")
        ],
    )


def _scale_by_system(rows: MatchRows, shares: np.ndarray, base: int) -> np.ndarray:
    """The weights, scaled for each system so that their sum is the number of its matches, as each is fitted alone."""
    opponent = np.where(rows.a == base, rows.b, rows.a)
    matches, weight = (np.bincount(opponent, each, rows.systems) for each in (shares, rows.weight))
    return np.asarray(rows.weight * (matches[opponent] / weight[opponent]))


def _differences(
    found: Sequence[EqualLengthRate], base: int, error: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Systems × systems: the differences, the ends of their intervals, and their standard errors."""
    n = len(found)
    difference, low, high, errors = (np.full((n, n), np.nan) for _ in range(4))
    for i, one in enumerate(found):
        for j, other in enumerate(found):
            if i == j:
                difference[i, j] = low[i, j] = high[i, j] = errors[i, j] = 0.0
            elif base in (i, j):
                sign, system = (1, one) if j == base else (-1, other)
                difference[i, j] = sign * (system.win_rate - 0.5)
                low[i, j], high[i, j] = sorted([sign * (system.low - 0.5), sign * (system.high - 0.5)])
                errors[i, j] = error[i if j == base else j]
            else:
                difference[i, j], low[i, j], high[i, j] = equal_length_difference(one, other)
                variance = error[i] ** 2 + error[j] ** 2 - 2 * one.covariance(other)
                errors[i, j] = math.sqrt(max(variance, 0.0))
    return difference, (low, high), errors
