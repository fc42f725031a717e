"""Ratings as strengths of the Bradley–Terry model: 1000 + 400 · strength / ln 10.

400 points are odds of 10 to 1. Intervals come from a bootstrap over examples, p values from standard errors by example.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from evaluand.matches.ratings.method import RatingMethod
from evaluand.metrics.ratings.bradley_terry import BradleyTerryFit, explain_unrated, fit_bradley_terry
from evaluand.metrics.ratings.connectivity import Ties
from evaluand.metrics.ratings.counts import MatchRows, count_matches
from evaluand.metrics.ratings.covariates import CovariateFit, fit_with_covariates
from evaluand.metrics.ratings.standard_errors import standard_errors
from evaluand.metrics.ratings.strength_intervals import explain_open_ends, strength_intervals
from evaluand.metrics.stats.intervals import t_quantile, t_tail


@dataclass(frozen=True)
class Estimates:
    """Ratings and their differences; NaN where undefined, ±∞ for the open end of an interval.

    Attributes:
        rating: of each system, as are the next four.
        error: its standard error.
        low, high: its interval.
        reason: why something is undefined.
        difference: systems × systems: the rating of the first minus that of the second, as are the next three.
        difference_low, difference_high: its interval.
        p: the two-sided p value of equal ratings.
        test: the name of the test.
        difference_reason: why a difference is undefined, by pair of systems.
        strength: in log-odds; None if the method has none.
        parameters: rows of the table `parameters`.
    """

    rating: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    reason: Sequence[str | None]
    difference: np.ndarray
    difference_low: np.ndarray
    difference_high: np.ndarray
    p: np.ndarray
    test: str
    difference_reason: Mapping[tuple[int, int], str] = field(default_factory=dict)
    strength: np.ndarray | None = None
    parameters: Sequence[Mapping[str, Any]] = ()


POINTS: Final = 400 / math.log(10)  # for one unit of strength
CENTRE: Final = 1000.0  # the mean rating


def estimate_strengths(rows: MatchRows, method: RatingMethod, confidence: float, labels: Sequence[str]) -> Estimates:
    """The ratings of all systems; those without a finite strength have NaN and a reason."""
    if method.covariates:
        return _with_covariates(rows, method, confidence, labels)
    counts = count_matches(rows)
    fit = fit_bradley_terry(counts, cast(Ties, method.ties), float(method.penalty or 0.0))
    errors = standard_errors(rows, fit)
    ends = strength_intervals(rows, fit, confidence, int(method.replicates or 0), int(method.seed or 0))
    difference = fit.strength[:, None] - fit.strength
    known = ~np.isnan(ends.difference_low)  # without spread there is neither an interval nor a p value
    no_interval = np.where(np.isnan(ends.low) | np.isnan(ends.high), NO_SPREAD, "").tolist()
    reasons = zip(explain_unrated(counts, fit, labels), no_interval, explain_open_ends(ends, labels), strict=True)
    return Estimates(
        strength=fit.strength,
        rating=CENTRE + POINTS * fit.strength,
        error=np.where(np.isnan(ends.low), np.nan, POINTS * errors.strength),
        low=CENTRE + POINTS * ends.low,
        high=CENTRE + POINTS * ends.high,
        reason=[unrated or without or reason for unrated, without, reason in reasons],
        difference=POINTS * difference,
        difference_low=POINTS * ends.difference_low,
        difference_high=POINTS * ends.difference_high,
        p=student_p(difference, np.where(known, errors.difference, np.nan), errors.examples - 1),
        test="student",
        parameters=[*_tie_parameter(fit, errors.tie, errors.examples, method, confidence)],
    )


NO_SPREAD: Final = "the examples show no spread, so there is no interval"


def student_p(difference: np.ndarray, error: np.ndarray, degrees: int) -> np.ndarray:
    """Two-sided p values of differences by their standard errors; NaN where an error is 0 or undefined."""
    found = np.full(difference.shape, np.nan)
    for place in np.argwhere(error > 0):
        each = tuple(place.tolist())
        found[each] = t_tail(abs(float(difference[each] / error[each])), degrees)
    return found


def _tie_parameter(
    fit: BradleyTerryFit, error: float, examples: int, method: RatingMethod, confidence: float
) -> Iterator[dict[str, Any]]:
    if method.ties == "half":
        return
    value = float(fit.tie)
    half = float(t_quantile(confidence, np.array([examples - 1]))[0]) * error
    least = 0.0 if method.ties == "davidson" else 1.0
    ends = {"low": max(value - half, least), "high": value + half}
    why = "wins and ties contradict nothing, so it grows without limit" if math.isinf(value) else None
    yield {"name": method.ties, "system": None, "value": value, "standard_error": error, **ends, "reason": why}


def _with_covariates(rows: MatchRows, method: RatingMethod, confidence: float, labels: Sequence[str]) -> Estimates:
    counts = count_matches(rows)
    fit = fit_with_covariates(rows, method.covariates, float(method.penalty or 0.0))
    quantile = fit.quantile(confidence)
    error, difference = fit.strength_error, fit.strength[:, None] - fit.strength
    half, half_difference = quantile * error, quantile * fit.difference_error
    plain = fit_bradley_terry(counts, "half", float(method.penalty or 0.0))  # says why systems have no strength
    separated = "wins follow from the systems and covariates without exception, so there is no finite estimate"
    reasons = zip(fit.rated.tolist(), explain_unrated(counts, plain, labels), strict=True)
    return Estimates(
        strength=fit.strength,
        rating=CENTRE + POINTS * fit.strength,
        error=POINTS * error,
        low=CENTRE + POINTS * (fit.strength - half),
        high=CENTRE + POINTS * (fit.strength + half),
        reason=[None if rated else reason or separated for rated, reason in reasons],
        difference=POINTS * difference,
        difference_low=POINTS * (difference - half_difference),
        difference_high=POINTS * (difference + half_difference),
        p=student_p(difference, fit.difference_error, fit.examples - 1),
        test="student",
        parameters=[*_coefficients(fit, method, quantile)],
    )


def _coefficients(fit: CovariateFit, method: RatingMethod, quantile: float) -> Iterator[dict[str, Any]]:
    each = zip(method.covariates, fit.coefficient, fit.coefficient_error, fit.reasons, strict=True)
    for name, value, error, reason in each:
        ends = {"low": value - quantile * error, "high": value + quantile * error}
        yield {"name": name, "system": None, "value": value, "standard_error": error, **ends, "reason": reason}
