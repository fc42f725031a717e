"""Win rates at equal length: how often a system would win if its responses were as long as the baseline's.

Judges prefer longer responses. For each system, a separate logistic regression explains its outcomes against the
baseline by two terms:

    probability to win = logistic(length · tanh(difference of length / its standard deviation) + quality)

The win rate is the mean prediction with the first term set to 0. Because no other system takes part, a table of win
rates does not change when systems are added. The coefficients have an L1 penalty, whose strength is chosen by
cross-validation in five folds among ten values.

A system whose outcomes hardly differ from ½ may get so strong a penalty that its win rate is exactly ½; the interval is
that of the weakest penalty, and still covers the truth.

The form of the regression is AlpacaEval 2's without the difficulty of instructions and the variants of the baseline, so
the numbers are not those that it publishes: docs/design/0017-win-rates-at-equal-length.md.
Source: Y. Dubois, B. Galambosi, P. Liang & T. Hashimoto, "Length-Controlled AlpacaEval: A Simple Way to Debias
Automatic Evaluators" (arXiv 2404.04475), whose coefficient of length has the opposite sign.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError, plural
from evaluand.metrics.ratings.bradley_terry import logistic
from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.stats.intervals import Spread, interval_within


@dataclass(frozen=True, kw_only=True)
class EqualLengthRate:
    """The win rate of one system against the baseline at equal length.

    Attributes:
        win_rate: at equal length; NaN with a `reason`.
        low: the lower end of its interval by example, NaN below two examples; `high` the upper end.
        raw: the win rate as it was judged.
        length: the coefficient of length: above 0 if longer responses win more often.
        quality: the log-odds of a win at equal length.
        deviation: the standard deviation of the differences of length, the unit of the length term.
        inverse_penalty: the strength C of the likelihood relative to the penalty, chosen by cross-validation.
        examples: how many examples there are.
        reason: why there is no win rate, or why it is not estimated.
        example: the numbers of the examples, sorted.
        influence: of each example on the win rate, for differences between systems.
    """

    win_rate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    raw: float
    length: float = math.nan
    quality: float = math.nan
    deviation: float = math.nan
    inverse_penalty: float = math.nan
    examples: int = 0
    reason: str | None = None
    example: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False, compare=False)
    influence: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    def covariance(self, other: EqualLengthRate) -> float:
        """The covariance of two win rates, from the influences of the examples that both have."""
        _, ours, theirs = np.intersect1d(self.example, other.example, assume_unique=True, return_indices=True)
        return float(self.influence[ours] @ other.influence[theirs])

    @property
    def variance(self) -> float:
        return float(self.influence @ self.influence)


def equal_length_win_rate(
    outcome: np.ndarray,
    length: np.ndarray,
    baseline_length: np.ndarray,
    cluster: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    confidence: float = 0.95,
) -> EqualLengthRate:
    """The win rate of one system against the baseline as it would be at equal length.

    The interval treats examples as the sample, all matches on one example together; the penalty and the unit of length
    count as fixed. Examples are dealt to the folds of cross-validation by outcome and length, so that their numbers do
    not matter.

    Args:
        outcome: of each match, the share of the win that the system gets.
        length: of the system's response, in characters; `baseline_length` that of the baseline's.
        cluster: the number of the example.
        weight: of each match; 1 by default.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> longer = rng.normal(400, 300, 1000)
        >>> chance = 1 / (1 + np.exp(-np.tanh(longer / 300)))  # judged by length alone
        >>> found = equal_length_win_rate(
        ...     (rng.random(1000) < chance).astype(float), 1000 + longer, np.full(1000, 1000.0), np.arange(1000)
        ... )
        >>> round(found.raw, 2), found.low < 0.5 < found.high
        (0.66, True)
    """
    difference = np.asarray(length, np.float64) - np.asarray(baseline_length, np.float64)
    matches = _Matches.read(outcome, difference, cluster, weight)
    found = EqualLengthRate(
        raw=matches.raw, deviation=matches.deviation, examples=len(matches.numbers), reason=_obstacle(matches)
    )
    if found.reason is not None:
        return found
    penalty = _choose_penalty(matches)
    coefficients = _fit(matches.terms, matches.outcome, matches.weight, penalty, np.zeros(matches.terms.shape[1]))
    win_rate = float(logistic(coefficients[1]))
    low, high, influence = _interval(matches, coefficients, confidence)
    return replace(
        found,
        win_rate=win_rate,
        low=min(low, win_rate),
        high=max(high, win_rate),
        length=float(coefficients[0]),
        quality=float(coefficients[1]),
        inverse_penalty=penalty,
        example=matches.numbers,
        influence=influence,
    )


def equal_length_win_rates(
    rows: MatchRows, lengths: np.ndarray, baseline: int, confidence: float = 0.95
) -> list[EqualLengthRate]:
    """The win rate of each system against the baseline at equal length, each from its own matches alone.

    The baseline itself has ½ by definition, and a system without matches against it a reason. Matches between two other
    systems do not count.

    Args:
        lengths: matches × sides: of the responses of `a` and `b`.

    Example:
        >>> rows = MatchRows.read([0, 1] * 50, [1, 0] * 50, np.full(100, 0.5), np.arange(100))
        >>> lengths = np.stack([np.arange(100) % 7, np.arange(100) % 5], axis=1)
        >>> [round(rate.win_rate, 3) for rate in equal_length_win_rates(rows, lengths, baseline=0)]
        [0.5, 0.5]
    """
    if not 0 <= baseline < rows.systems:
        raise SpecError(f"equal length: the baseline must be a system from 0 to {rows.systems - 1}, not {baseline}")
    found = []
    for system in range(rows.systems):
        if system == baseline:
            found.append(EqualLengthRate(win_rate=0.5, raw=0.5, length=0.0, quality=0.0, reason=_BASELINE))
            continue
        is_second = (rows.b == system) & (rows.a == baseline)
        own = np.flatnonzero(is_second | ((rows.a == system) & (rows.b == baseline)))
        won, swapped = rows.outcome[own], is_second[own]
        ours, theirs = np.where(swapped, lengths[own, ::-1].T, lengths[own].T)
        shares, weight = np.where(swapped, 1.0 - won, won), rows.weight[own]
        found.append(
            equal_length_win_rate(shares, ours, theirs, rows.cluster[own], weight=weight, confidence=confidence)
        )
    return found


_BASELINE: Final = "the baseline, by definition"


def equal_length_difference(first: EqualLengthRate, second: EqualLengthRate) -> tuple[float, float, float]:
    """How much larger one win rate at equal length is than another, with an interval by example.

    Systems that won on the same examples vary together, which narrows the interval.
    Source: G. Zou & A. Donner (see `mean_of_shares`), with the correlation of the examples' influences.

    Args:
        first: with an interval of the confidence that the difference shall have, as `second`.

    Returns:
        The difference and the ends of its interval, NaN where one of the win rates has none.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> length, chance = rng.normal(0, 300, (2, 500)), np.array([[0.7], [0.4]])
        >>> won = (rng.random((2, 500)) < chance).astype(float)
        >>> rates = [
        ...     equal_length_win_rate(each, 1000 + longer, np.full(500, 1000.0), np.arange(500))
        ...     for each, longer in zip(won, length)
        ... ]
        >>> [round(value, 2) for value in equal_length_difference(*rates)]
        [0.31, 0.25, 0.37]
    """
    difference = first.win_rate - second.win_rate
    size = first.variance * second.variance
    correlation = first.covariance(second) / math.sqrt(size) if size > 0 else 0.0
    below = first.win_rate - first.low, second.high - second.win_rate
    above = first.high - first.win_rate, second.win_rate - second.low
    off_low, off_high = (
        math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0)) for one, other in (below, above)
    )
    return difference, max(difference - off_low, -1.0), min(difference + off_high, 1.0)


class _Matches(NamedTuple):
    """The matches of one system.

    Attributes:
        terms: matches × 2: length, quality.
        difference: of the length of both responses; `deviation` its standard deviation.
        numbers: those of the examples, sorted.
        example: the place of the example in them.
    """

    terms: np.ndarray
    outcome: np.ndarray
    weight: np.ndarray
    difference: np.ndarray
    deviation: float
    numbers: np.ndarray
    example: np.ndarray

    @classmethod
    def read(
        cls, outcome: np.ndarray, difference: np.ndarray, cluster: np.ndarray, weight: np.ndarray | None
    ) -> _Matches:
        outcomes = np.asarray(outcome, np.float64)
        weights = np.ones(len(outcomes)) if weight is None else np.asarray(weight, np.float64)
        if not (len(outcomes) == len(difference) == len(cluster) == len(weights)):
            raise SpecError("equal length: all columns must have the same length")
        if not ((outcomes >= 0) & (outcomes <= 1)).all():
            raise SpecError("equal length: outcomes must be numbers from 0 to 1")
        if not np.isfinite(difference).all():
            raise SpecError("equal length: every match needs a finite length; leave matches without one out")
        deviation = float(difference.std(ddof=1)) if len(difference) > 1 else math.nan
        squashed = np.tanh(difference / deviation) if deviation > 0 else np.zeros(len(difference))
        terms = np.stack([squashed, np.ones(len(squashed))], axis=1)
        numbers, example = np.unique(cluster, return_inverse=True)
        return cls(terms, outcomes, weights, difference, deviation, numbers, example)

    @property
    def raw(self) -> float:
        total = float(self.weight.sum())
        return float(self.outcome @ self.weight) / total if total else math.nan

    def folds(self) -> np.ndarray:
        """The fold of cross-validation of each match: examples are dealt by outcome, then by terms.

        Equal examples can be exchanged, so it does not matter how examples are numbered.
        """
        total = np.bincount(self.example, self.weight)
        means = (np.bincount(self.example, self.weight * column) / total for column in (*self.terms.T, self.outcome))
        rank = np.empty(len(total), np.int64)
        rank[np.lexsort([np.round(each, _SAME) for each in (total, *means)])] = np.arange(len(total))
        return np.asarray((len(total) - 1 - rank[self.example]) % _FOLDS)


_FOLDS: Final = 5
_SAME: Final = 9
"""Decimals to which the means of equal examples agree, in whatever order they were added up."""


def _obstacle(matches: _Matches) -> str | None:
    """Why there can be no win rate at equal length."""
    n_terms = matches.terms.shape[1]
    if len(matches.numbers) <= n_terms:
        return f"{plural(len(matches.numbers), 'example')} cannot determine {n_terms} terms"
    if matches.deviation == 0 and matches.difference[0] != 0:
        return "all differences of length are equal, so length and quality cannot be separated"
    size = np.sqrt(matches.weight @ matches.terms**2)
    scaled = matches.terms[:, size > 0] / size[size > 0]
    if np.linalg.eigvalsh(scaled.T @ (matches.weight[:, None] * scaled))[0] < _SINGULAR:
        return "length and quality cannot be separated in these matches"
    return None


_SINGULAR: Final = 1e-9


def _choose_penalty(matches: _Matches) -> float:
    """The inverse penalty with the least mean loss of the folds that were not fitted; the first of equal ones."""
    loss, folds = np.zeros(len(_INVERSE_PENALTIES)), matches.folds()
    for fold in range(_FOLDS):
        left = folds == fold
        if not left.any():
            continue
        terms, outcome, weight = matches.terms[~left], matches.outcome[~left], matches.weight[~left]
        coefficients = np.zeros(matches.terms.shape[1])
        for place, penalty in enumerate(_INVERSE_PENALTIES):
            coefficients = _fit(terms, outcome, weight, float(penalty), coefficients)
            log_odds = matches.terms[left] @ coefficients
            loss[place] += _cross_entropy(log_odds, matches.outcome[left], matches.weight[left]) / left.sum()
    return float(_INVERSE_PENALTIES[int(np.argmin(loss))])


_INVERSE_PENALTIES: Final = np.logspace(-4, 4, 10)


def _fit(
    terms: np.ndarray, outcome: np.ndarray, weight: np.ndarray, inverse_penalty: float, start: np.ndarray
) -> np.ndarray:
    """The coefficients with the least sum of absolute values + inverse penalty × loss, by proximal Newton steps.

    Source: J. Lee, Y. Sun & M. Saunders, "Proximal Newton-type methods for minimizing composite functions" (SIAM
    Journal on Optimization 24, 2014).
    """
    at = start
    log_odds = terms @ at
    value = inverse_penalty * _cross_entropy(log_odds, outcome, weight) + np.abs(at).sum()
    for _ in range(_MOST_STEPS):
        chance = logistic(log_odds)
        gradient = inverse_penalty * (terms.T @ (weight * (chance - outcome)))
        curvature = inverse_penalty * (terms.T @ ((weight * chance * (1 - chance))[:, None] * terms))
        step = _penalised_step(at, gradient, curvature)
        decrease = float(gradient @ step) + float(np.abs(at + step).sum() - np.abs(at).sum())
        if decrease > -_PRECISION * (1 + value):
            break
        length, direction = 1.0, terms @ step
        while True:
            following = at + length * step
            loss = _cross_entropy(log_odds + length * direction, outcome, weight)
            next_value = inverse_penalty * loss + np.abs(following).sum()
            if next_value <= value + 0.1 * length * decrease or length < _SHORTEST:
                break
            length /= 2
        if next_value >= value:  # only rounding is left
            break
        at, value, log_odds = following, next_value, log_odds + length * direction
    return at


_MOST_STEPS: Final = 100
_SHORTEST: Final = 1e-6
_PRECISION: Final = 1e-14


def _penalised_step(at: np.ndarray, gradient: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """The step to the minimum of the quadratic model plus the penalty.

    For signs of the coefficients, or 0, it solves linear equations; of two coefficients, all signs are tried, the
    present ones first.
    """
    for sign in map(np.array, [np.sign(at), *itertools.product((1.0, -1.0, 0.0), repeat=len(at))]):
        used = sign != 0
        target = np.zeros(len(at))
        if used.any():
            known = curvature[used] @ at - gradient[used] - sign[used]
            target[used] = np.linalg.lstsq(curvature[np.ix_(used, used)], known, rcond=None)[0]
        slope = gradient + curvature @ (target - at)
        if (np.sign(target) == sign).all() and (np.abs(slope[~used]) <= 1 + _NEAR).all():
            return np.asarray(target - at)
    return np.zeros(len(at))


_NEAR: Final = 1e-9


def _cross_entropy(log_odds: np.ndarray, outcome: np.ndarray, weight: np.ndarray) -> float:
    """The weighted sum of the cross-entropy of outcomes."""
    return float(weight @ (np.logaddexp(0.0, log_odds) - outcome * log_odds))


def _interval(matches: _Matches, start: np.ndarray, confidence: float) -> tuple[float, float, np.ndarray]:
    """The interval at equal length by example, linearised in the coefficients, and the influence of each example.

    It is that of the fit with the weakest penalty: a strong one, which cross-validation may choose for few examples,
    draws the win rate to ½, and an interval around it would miss the true value too often.

    Where all outcomes are equal, the likelihood has hardly any curvature, and the spread is 0: see `clustered_wilson`.
    Source of the spread: J. MacKinnon & H. White, "Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties" (Journal of Econometrics 29, 1985), HC3, by example.
    """
    terms, outcome, weight = matches.terms, matches.outcome, matches.weight
    coefficients = _fit(terms, outcome, weight, float(_INVERSE_PENALTIES[-1]), start)
    value = float(logistic(coefficients[1]))
    slope = np.array([0.0, value * (1 - value)])
    chance = logistic(terms @ coefficients)
    steepness = weight * chance * (1 - chance)
    inverse = np.linalg.pinv(terms.T @ (steepness[:, None] * terms), hermitian=True)
    pull = weight * (outcome - chance) * (terms @ (inverse @ slope))
    leverage = steepness * np.einsum("ij,jk,ik->i", terms, inverse, terms)
    n = len(matches.numbers)
    pulls, leverages = (np.bincount(matches.example, each, n) for each in (pull, leverage))
    influence = pulls / np.maximum(1 - leverages, _LEAST_REST)
    is_spread = (outcome != outcome[0]).any()
    influence = (influence - influence.mean()) * (math.sqrt(n / (n - 1)) if is_spread else 0.0)
    heaviness = np.bincount(matches.example, weight) / weight.sum()
    spread = Spread(np.array([influence @ influence]), np.array([n]), np.array([1 / float(heaviness @ heaviness)]))
    low, high = interval_within(np.array([value]), spread, (0.0, 1.0), confidence)
    return float(low[0]), float(high[0]), influence


_LEAST_REST: Final = 0.1
"""What remains of the outcomes of an example, at least, when the fit has followed them."""
