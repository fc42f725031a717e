"""Ratings as length-controlled win rates against a baseline, as AlpacaEval 2 defines them.

Each system is fitted on its own, so that its number stays when systems are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evaluand.comparison.ratings.estimates import Estimates
from evaluand.comparison.ratings.strengths import student_p
from evaluand.comparison.ratings.win_shares import find_baseline
from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.ratings.length_control import (
    LengthControl,
    length_controlled_difference,
    length_controlled_win_rates,
)


def estimate_length_controlled(
    rows: MatchRows, lengths: np.ndarray, labels: Sequence[str], baseline: str, confidence: float
) -> Estimates:
    """The ratings of all systems.

    Args:
        lengths: matches × sides: the characters of the responses of `a` and `b`.
    """
    base = find_baseline(baseline, labels)
    found = length_controlled_win_rates(
        rows.a,
        rows.b,
        rows.outcome,
        rows.cluster,
        lengths[:, 0],
        lengths[:, 1],
        systems=rows.systems,
        baseline=base,
        weight=rows.weight,
        confidence=confidence,
    )
    value, low, high = (np.array([getattr(each, name) for each in found]) for name in ("win_rate", "low", "high"))
    error = np.array([_error(each) for each in found])
    error[base] = 0.0
    difference, ends, errors = _differences(found, base, error)
    p = student_p(difference, errors, min((each.examples for each in found if each.examples), default=0) - 1)
    error[base] = math.nan
    return Estimates(
        rating=value,
        error=error,
        low=low,
        high=high,
        reason=[_reason(each, label, baseline) for each, label in zip(found, labels, strict=True)],
        difference=difference,
        difference_low=ends[0],
        difference_high=ends[1],
        p=p,
        test="student",
        parameters=[*_coefficients(found, labels, base)],
    )


def _error(one: LengthControl) -> float:
    """The standard error; NaN where outcomes show no spread."""
    return math.sqrt(float(one.influence @ one.influence)) or math.nan if len(one.influence) else math.nan


def _reason(one: LengthControl, label: str, baseline: str) -> str | None:
    if label != baseline and one.examples == 0:
        return f'no match of "{label}" against "{baseline}" has an outcome'
    return "the baseline: ½ by definition" if label == baseline else one.reason


def _differences(
    found: Sequence[LengthControl], base: int, error: np.ndarray
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
                both = sorted([sign * (system.low - 0.5), sign * (system.high - 0.5)])
                low[i, j], high[i, j] = both
                errors[i, j] = error[i if j == base else j]
            else:
                difference[i, j], low[i, j], high[i, j] = length_controlled_difference(one, other)
                errors[i, j] = math.sqrt(max(error[i] ** 2 + error[j] ** 2 - 2 * _covariance(one, other), 0.0))
    return difference, (low, high), errors


def _covariance(one: LengthControl, other: LengthControl) -> float:
    _, ours, theirs = np.intersect1d(one.example, other.example, assume_unique=True, return_indices=True)
    return float(one.influence[ours] @ other.influence[theirs])


def _coefficients(found: Sequence[LengthControl], labels: Sequence[str], base: int) -> Iterator[Mapping[str, Any]]:
    """The coefficients of each system that was fitted."""
    undefined = {"standard_error": math.nan, "low": math.nan, "high": math.nan}
    for system, (one, label) in enumerate(zip(found, labels, strict=True)):
        if system != base:
            for name in ("length", "quality"):
                yield {"name": name, "system": label, "value": getattr(one, name), "reason": one.reason} | undefined
