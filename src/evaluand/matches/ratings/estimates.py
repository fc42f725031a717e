"""Ratings by each method: strengths of the Bradley–Terry model, or win rates, also at equal length.

A rating by strength is 1000 + 400 · strength / ln 10, so that 400 points are odds of 10 to 1. Intervals come from a
bootstrap over examples, p values from standard errors by example.

A win rate is the mean over opponents, each of which counts equally, or against a baseline. Two means are compared only
if they are over the same opponents. p values come from the permutation test that exchanges both systems on an example.
At equal length each system is fitted separately, so that its win rate does not change when systems are added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import numpy as np

from evaluand.comparison.significance import DRAWN_CLUSTERS, EXACT_CLUSTERS, draw_sums, drawn_p, sign_flip
from evaluand.matches.ratings.method import RatingMethod
from evaluand.matches.schedule import find_system
from evaluand.metrics.ratings.bradley_terry import BradleyTerryFit, explain_unrated, fit_bradley_terry
from evaluand.metrics.ratings.counts import MatchRows, Ties, count_matches
from evaluand.metrics.ratings.covariates import CovariateFit, fit_with_covariates
from evaluand.metrics.ratings.equal_length import EqualLengthRate, equal_length_difference, equal_length_win_rates
from evaluand.metrics.ratings.strength_intervals import explain_open_ends, standard_errors, strength_intervals
from evaluand.metrics.ratings.win_rates import Influences, WinRates, win_rate_influences
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.metrics.stats.intervals import Spread, cautious_spread, correlation_of, t_quantile, t_tail


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


def estimate_win_rates(
    rows: MatchRows, rates: WinRates, labels: Sequence[str], baseline: str | None, confidence: float
) -> Estimates:
    """The ratings of all systems.

    Args:
        rows: the matches, with outcomes as they count.
        rates: their win rates.
        confidence: of the intervals of `rates`, and of those of differences.
    """
    base = None if baseline is None else find_system(baseline, labels)
    reason: list[str | None] = [None] * len(labels)
    if base is None:
        value, low, high = rates.average
        influences = win_rate_influences(rows)
        incomparable = _find_incomparable(rates, labels)
        opponents = np.maximum(np.minimum(rates.opponents[:, None], rates.opponents), 1)
    else:
        value, low, high = (each[:, base].copy() for each in rates.rate)
        value[base] = low[base] = high[base] = 0.5
        against = (rows.a == base) | (rows.b == base)
        influences = win_rate_influences(rows.select(against))
        influences.deviation[:, base] = influences.from_half[:, base] = 0.0  # ½ whatever the examples
        reason[base] = BASELINE
        incomparable = {}
        opponents = np.full((len(labels), len(labels)), 2)
    difference = value[:, None] - value
    ends = _difference_ends(IntervalEnds(value, low, high), influences, opponents, confidence)
    p = _exchange_p(influences.from_half, difference)
    error = np.where(np.isnan(low), math.nan, np.sqrt(np.square(influences.deviation).sum(axis=0)))
    for i in np.flatnonzero(np.isnan(low) & ~np.isnan(value)).tolist():
        reason[i] = f'"{labels[i]}" has matches on one example only, so there is no interval'
    if base is not None:
        low[base] = high[base] = math.nan
    for i, j in incomparable:
        for each in (difference, *ends, p):
            each[i, j] = each[j, i] = math.nan
    return Estimates(
        rating=value,
        error=error,
        low=low,
        high=high,
        reason=reason,
        difference=difference,
        difference_low=ends[0],
        difference_high=ends[1],
        p=p,
        test="permutation",
        difference_reason=incomparable,
    )


BASELINE: Final = "the baseline: ½ by definition"  # why it has no interval


def _find_incomparable(rates: WinRates, labels: Sequence[str]) -> dict[tuple[int, int], str]:
    """The pairs of systems whose opponents differ, with the reason."""
    met = rates.n > 0
    found = {}
    for i in range(len(met)):
        for j in range(i + 1, len(met)):
            others = np.arange(len(met))
            differing = (met[i] != met[j]) & (others != i) & (others != j)
            if met[i].any() and met[j].any() and differing.any():
                other = labels[int(np.argmax(differing))]
                found[i, j] = (
                    f'only one of them met "{other}", and win rates against different opponents cannot be compared; '
                    "rate by bradley_terry, or against a baseline"
                )
    return found


def _difference_ends(
    rate: IntervalEnds, influences: Influences, opponents: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of differences from those of the win rates and the correlation of their influences.

    The correlation with a rate that is the same on all examples is taken as 0, and as −1 if both are. Differences on
    which all examples agree, or nearly so, have the variance that unseen examples could give: see `cautious_spread`.
    Source: G. Zou, "Toward using confidence intervals to compare correlations" (Psychological Methods 12, 2007).

    Args:
        opponents: systems × systems, on how many independent matches of an example a difference depends.
    """
    value, low, high = rate
    covariance = influences.deviation.T @ influences.deviation
    agree = np.diagonal(covariance) == 0
    correlation = np.where(agree[:, None] & agree, -1.0, correlation_of(covariance))
    below, above = value - low, high - value
    difference = value[:, None] - value
    with np.errstate(divide="ignore"):
        effective = 1 / np.square(influences.part).sum(axis=0)
    effective = np.minimum(effective[:, None], effective)
    spread = Spread(np.zeros(difference.shape), effective, effective)
    least = cautious_spread((1 + difference) / 2, spread, confidence, opponents)
    degrees = np.maximum(np.rint(np.nan_to_num(effective, posinf=1)) - 1, 1).astype(np.int64)
    unseen = 2 * t_quantile(confidence, degrees) * np.sqrt(least.variance)  # the least distance, from −1 to 1
    ends = []
    for ours, theirs in ((below[:, None], above), (above[:, None], below)):
        square = ours**2 + theirs**2 - 2 * correlation * ours * theirs
        ends.append(np.sqrt(np.maximum(square, unseen**2)))
        np.fill_diagonal(ends[-1], 0.0)
    return np.maximum(difference - ends[0], -1.0), np.minimum(difference + ends[1], 1.0)


_ROUNDING: Final = 1e-12


def _exchange_p(centred: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """The p value of each pair: that of `sign_flip`, with draws of examples that all pairs share."""
    examples, systems = centred.shape
    pairs = [pair for pair in itertools.combinations(range(systems), 2) if not math.isnan(difference[pair])]
    drawn = None
    if EXACT_CLUSTERS < examples <= DRAWN_CLUSTERS:
        drawn = np.ascontiguousarray(draw_sums(centred).T)
    found = np.full((systems, systems), np.nan)
    for i, j in pairs:
        sums = centred[:, i] - centred[:, j]
        sums[np.abs(sums) <= _ROUNDING * np.abs(sums).max(initial=0.0)] = 0.0
        if drawn is None or np.count_nonzero(sums) <= EXACT_CLUSTERS:
            found[i, j] = found[j, i] = sign_flip(sums).p
        else:
            observed = abs(float(sums.sum())) - _ROUNDING * float(np.abs(sums).sum())
            extreme = int(np.count_nonzero(np.abs(drawn[i] - drawn[j]) >= observed))
            found[i, j] = found[j, i] = drawn_p(extreme, sums, observed).p
    return found


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
    # each system is fitted alone, so the sum of its weights is the number of its matches
    opponent = np.where(rows.a == base, rows.b, rows.a)
    matches, weight = (np.bincount(opponent, each, rows.systems) for each in (shares, rows.weight))
    weighted = replace(rows, weight=rows.weight * (matches[opponent] / weight[opponent]))
    found = equal_length_win_rates(weighted, lengths, base, confidence)
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
