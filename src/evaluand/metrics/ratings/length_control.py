"""Length-controlled win rates as AlpacaEval 2 defines them: how often a system would win at equal length.

Judges prefer longer responses. For each system, a separate logistic regression explains its outcomes against the
baseline by three terms:

    probability to win = logistic(length · tanh(difference of length / its standard deviation)
                                  + difficulty · difficulty of the instruction
                                  + quality)

The win rate is the mean prediction with the first term set to 0. Because no other system takes part, a table of win
rates does not change when systems are added. The coefficients have an L1 penalty, whose strength is chosen by
cross-validation in five folds among ten values. `LengthReference` adds matches of the baseline against itself with
other lengths, which draw the coefficients of length and difficulty to those of pure length.

A system whose outcomes hardly differ from ½ may get so strong a penalty that its win rate is exactly ½; the interval is
that of the weakest penalty, and still covers the truth.

The difficulties come from a fit to other systems and stay fixed (see `instruction_difficulty`). Without them, or
without a reference, the terms are left out, and `definition` says so. How close the numbers are to alpaca_eval's:
docs/design/0017-length-controlled-win-rates.md.
Source: Y. Dubois, B. Galambosi, P. Liang & T. Hashimoto, "Length-Controlled AlpacaEval: A Simple Way to Debias
Automatic Evaluators" (arXiv 2404.04475), and `glm_winrate.py` of alpaca_eval 0.6, whose coefficient of length has the
opposite sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError, plural
from evaluand.metrics.ratings.bradley_terry import logistic
from evaluand.metrics.stats.intervals import Spread, interval_within, runs


@dataclass(frozen=True)
class LengthReference:
    """Matches of the baseline, asked to be longer or shorter, against the baseline itself.

    Attributes:
        outcome: the share of the win that the longer or shorter one gets.
        difference: its length minus that of the baseline.
        difficulty: of the instruction of each match; needed where win rates use difficulties.
        group: which variant of the baseline each match belongs to; differences are standardised by variant.
        strength: the weight of all variants together, 0.2 in AlpacaEval 2, where a match of the system has 1.
    """

    outcome: np.ndarray
    difference: np.ndarray
    difficulty: np.ndarray | None = None
    group: np.ndarray | None = None
    strength: float = 0.2


@dataclass(frozen=True)
class LengthControl:
    """The length-controlled win rate of one system against the baseline.

    Attributes:
        win_rate: at equal length; NaN with a `reason`.
        low: the lower end of its interval by example, NaN below two examples; `high` the upper end.
        raw: the win rate as it was judged.
        length: the coefficient of length: above 0 if longer responses win more often.
        difficulty: that of the instruction's difficulty; NaN if difficulties are left out.
        quality: the log-odds of a win at equal length and difficulty 0.
        deviation: the standard deviation of the differences of length, the unit of the length term.
        inverse_penalty: the strength C of the likelihood relative to the penalty, chosen by cross-validation.
        definition: what alpaca_eval calls this combination of terms.
        examples: how many examples have an outcome.
        reason: why there is no win rate, or why it is not estimated.
        example: the numbers of the examples, sorted.
        influence: of each example on the win rate, for differences between systems.
    """

    win_rate: float
    low: float
    high: float
    raw: float
    length: float
    difficulty: float
    quality: float
    deviation: float
    inverse_penalty: float
    definition: str
    examples: int
    reason: str | None = None
    example: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False, compare=False)
    influence: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)


def length_controlled_win_rate(
    outcome: np.ndarray,
    length: np.ndarray,
    baseline_length: np.ndarray,
    cluster: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    difficulty: np.ndarray | None = None,
    reference: LengthReference | None = None,
    confidence: float = 0.95,
    folds_by_content: bool = False,
) -> LengthControl:
    """The win rate of one system against the baseline as it would be at equal length.

    The interval treats examples as the sample, all matches on one example together; the penalty and the unit of length
    count as fixed.

    Args:
        outcome: of each match, the share of the win that the system gets. A match with NaN is not fitted, but its
            example counts in the mean, as in AlpacaEval.
        length: of the system's response, in characters; `baseline_length` that of the baseline's.
        cluster: the number of the example.
        weight: of each match; 1 by default.
        difficulty: of the example's instruction, from a fit that does not change.
        folds_by_content: examples are dealt to the folds of cross-validation by outcome and length, so that it does not
            matter how they are numbered. By default they are dealt by number, as in AlpacaEval.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> longer = rng.normal(400, 300, 1000)
        >>> chance = 1 / (1 + np.exp(-np.tanh(longer / 300)))  # judged by length alone
        >>> found = length_controlled_win_rate(
        ...     (rng.random(1000) < chance).astype(float), 1000 + longer, np.full(1000, 1000.0), np.arange(1000)
        ... )
        >>> round(found.raw, 2), found.low < 0.5 < found.high, found.definition
        (0.66, True, 'length_controlled_minimal')
    """
    matches = _read_matches(outcome, length, baseline_length, cluster, weight, difficulty)
    rows = _build_rows(matches, reference, folds_by_content)
    reason = _obstacle(matches, rows)
    if reason is not None:
        return _without_win_rate(matches, reference, reason)
    penalty = _choose_penalty(rows)
    coefficients = _fit(rows.terms, rows.outcome, rows.weight, penalty, np.zeros(rows.terms.shape[1]))
    return _result(matches, rows, reference, penalty, coefficients, confidence)


def length_controlled_win_rates(
    a: np.ndarray,
    b: np.ndarray,
    outcome: np.ndarray,
    cluster: np.ndarray,
    length_a: np.ndarray,
    length_b: np.ndarray,
    *,
    systems: int,
    baseline: int,
    weight: np.ndarray | None = None,
    difficulty: np.ndarray | None = None,
    reference: LengthReference | None = None,
    confidence: float = 0.95,
    folds_by_content: bool = False,
) -> list[LengthControl]:
    """The length-controlled win rate of each system against the baseline, each from its own matches alone.

    The baseline itself has ½ by definition, and a system without matches against it a reason. Matches between two other
    systems do not count.

    Args:
        a: the number of a system, 0 to `systems` − 1; `b` that of its opponent.
        outcome: the share of the win that `a` gets.
        length_a: the length of the response of `a`; `length_b` that of `b`.

    Example:
        >>> a, b = np.array([0, 1] * 50), np.array([1, 0] * 50)
        >>> lengths = np.arange(100) % 7, np.arange(100) % 5
        >>> rates = length_controlled_win_rates(
        ...     a, b, np.full(100, 0.5), np.arange(100), *lengths, systems=2, baseline=0
        ... )
        >>> [round(rate.win_rate, 3) for rate in rates]
        [0.5, 0.5]
    """
    if not 0 <= baseline < systems:
        raise SpecError(f"length control: the baseline must be a system from 0 to {systems - 1}, not {baseline}")
    weights = np.ones(len(outcome)) if weight is None else np.asarray(weight, np.float64)
    definition = name_definition(difficulty is not None, reference is not None)
    found = []
    for system in range(systems):
        if system == baseline:
            found.append(_rate_baseline(definition))
            continue
        is_a, is_b = (a == system) & (b == baseline), (b == system) & (a == baseline)
        rows = np.flatnonzero(is_a | is_b)
        won, flipped = outcome[rows], is_b[rows]
        found.append(
            length_controlled_win_rate(
                np.where(flipped, 1.0 - won, won),
                np.where(flipped, length_b[rows], length_a[rows]),
                np.where(flipped, length_a[rows], length_b[rows]),
                cluster[rows],
                weight=weights[rows],
                difficulty=None if difficulty is None else difficulty[rows],
                reference=reference,
                confidence=confidence,
                folds_by_content=folds_by_content,
            )
        )
    return found


def length_controlled_difference(first: LengthControl, second: LengthControl) -> tuple[float, float, float]:
    """How much larger one length-controlled win rate is than another, with an interval by example.

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
        ...     length_controlled_win_rate(each, 1000 + longer, np.full(500, 1000.0), np.arange(500))
        ...     for each, longer in zip(won, length)
        ... ]
        >>> [round(value, 2) for value in length_controlled_difference(*rates)]
        [0.3, 0.24, 0.36]
    """
    difference = first.win_rate - second.win_rate
    correlation = _correlate(first, second)
    off_low, off_high = (
        math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))
        for one, other in (
            (first.win_rate - first.low, second.high - second.win_rate),
            (first.high - first.win_rate, second.win_rate - second.low),
        )
    )
    return difference, max(difference - off_low, -1.0), min(difference + off_high, 1.0)


def _correlate(first: LengthControl, second: LengthControl) -> float:
    """The correlation of two win rates, from the influences of the examples that both have; 0 without variance."""
    _, ours, theirs = np.intersect1d(first.example, second.example, assume_unique=True, return_indices=True)
    size = float(first.influence @ first.influence) * float(second.influence @ second.influence)
    return float(first.influence[ours] @ second.influence[theirs]) / math.sqrt(size) if size > 0 else 0.0


class _Matches(NamedTuple):
    """The matches of one system; `example` is the place of the example in the sorted `numbers`."""

    outcome: np.ndarray
    difference: np.ndarray
    deviation: float
    numbers: np.ndarray
    example: np.ndarray
    weight: np.ndarray
    difficulty: np.ndarray | None

    @property
    def judged(self) -> np.ndarray:
        return np.asarray(~np.isnan(self.outcome) & (self.weight > 0))

    @property
    def examples(self) -> int:
        return len(np.unique(self.example[self.judged]))

    @property
    def raw(self) -> float:
        judged = self.judged
        total = float(self.weight[judged].sum())
        return float(self.outcome[judged] @ self.weight[judged]) / total if total else math.nan


class _Rows(NamedTuple):
    """What is fitted: the rows of the reference, then the judged matches of the system.

    Attributes:
        terms: rows × terms: length, difficulty if it is used, quality.
        fold: the fold of cross-validation that a row belongs to, with all others of its example.
        reference: how many rows the reference has.
    """

    terms: np.ndarray
    outcome: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    reference: int


def _read_matches(
    outcome: np.ndarray,
    length: np.ndarray,
    baseline_length: np.ndarray,
    cluster: np.ndarray,
    weight: np.ndarray | None,
    difficulty: np.ndarray | None,
) -> _Matches:
    outcomes = np.asarray(outcome, np.float64)
    difference = np.asarray(length, np.float64) - np.asarray(baseline_length, np.float64)
    weights = np.ones(len(outcomes)) if weight is None else np.asarray(weight, np.float64)
    if not (len(outcomes) == len(difference) == len(cluster) == len(weights)):
        raise SpecError("length control: all columns must have the same length")
    if ((outcomes < 0) | (outcomes > 1)).any():
        raise SpecError("length control: outcomes must be numbers from 0 to 1")
    for name, column in (("length", difference), ("difficulty", difficulty)):
        if column is not None and not np.isfinite(column).all():
            raise SpecError(f"length control: every match needs a finite {name}; leave matches without one out")
    numbers, example = np.unique(cluster, return_inverse=True)
    return _Matches(outcomes, difference, _deviation(difference), numbers, example, weights, difficulty)


def _build_rows(matches: _Matches, reference: LengthReference | None, folds_by_content: bool) -> _Rows:
    judged = matches.judged
    squashed = _squash(matches.difference, matches.deviation)
    terms = _stack_terms(squashed, matches.difficulty, 1.0)[judged]
    outcome, weight = matches.outcome[judged], matches.weight[judged]
    _, unit = np.unique(matches.example[judged], return_inverse=True)
    if folds_by_content:
        unit = _rank_by_content(unit, terms, outcome, weight)
    n = 0
    if reference is not None:
        n = len(reference.outcome)
        of_reference, each = _reference_terms(reference, matches.difficulty is not None)
        terms = np.concatenate([of_reference, terms])
        outcome = np.concatenate([reference.outcome, outcome])
        weight = np.concatenate([np.full(n, each), weight])
        place = np.arange(n)
        if folds_by_content:
            place = _rank_by_content(place, of_reference, reference.outcome, np.ones(n))
        unit = np.concatenate([place, n + unit])
    fold = (int(unit.max(initial=0)) - unit) % _FOLDS
    return _Rows(terms, outcome, weight, fold, n)


_FOLDS: Final = 5


def _rank_by_content(unit: np.ndarray, terms: np.ndarray, outcome: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The examples numbered anew by outcome, then by terms; equal ones can be exchanged."""
    total = np.bincount(unit, weight)
    means = (np.bincount(unit, weight * column) / total for column in (*terms.T, outcome))
    rank = np.empty(len(total), np.int64)
    rank[np.lexsort([np.round(each, _SAME) for each in (total, *means)])] = np.arange(len(total))
    return np.asarray(rank[unit])


_SAME: Final = 9
"""Decimals to which the means of equal examples agree, in whatever order they were added up."""


def _reference_terms(reference: LengthReference, with_difficulty: bool) -> tuple[np.ndarray, float]:
    """The terms of the rows of the reference, and the weight of each."""
    if with_difficulty and reference.difficulty is None:
        raise SpecError(
            "length control: win rates with difficulties need those of the reference too; set its difficulty"
        )
    difference = np.asarray(reference.difference, np.float64)
    if reference.group is None:
        names, group = np.zeros(1), np.zeros(len(difference), np.int64)
    else:
        names, group = np.unique(reference.group, return_inverse=True)
    squashed = standardise_lengths(difference, group)
    terms = _stack_terms(squashed, reference.difficulty if with_difficulty else None, 0.0)
    return terms, reference.strength / len(names)


def standardise_lengths(difference: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The length term of each match, tanh of its difference divided by the standard deviation of its group."""
    squashed = np.zeros(len(difference))
    order = np.argsort(group, kind="stable")
    for rows in np.split(order, runs(group[order])[1:]):
        squashed[rows] = _squash(difference[rows], _deviation(difference[rows]))
    return squashed


def _deviation(difference: np.ndarray) -> float:
    return float(difference.std(ddof=1)) if len(difference) > 1 else math.nan


def _squash(difference: np.ndarray, deviation: float) -> np.ndarray:
    return np.tanh(difference / deviation) if deviation > 0 else np.zeros(len(difference))


def _stack_terms(squashed: np.ndarray, difficulty: np.ndarray | None, quality: float) -> np.ndarray:
    columns = [squashed, np.full(len(squashed), quality)]
    if difficulty is not None:
        columns.insert(1, np.asarray(difficulty, np.float64))
    return np.stack(columns, axis=1)


def _obstacle(matches: _Matches, rows: _Rows) -> str | None:
    """Why there can be no win rate at equal length."""
    n_terms = rows.terms.shape[1]
    if matches.examples <= n_terms:
        return f"{plural(matches.examples, 'example')} cannot determine {n_terms} terms"
    if matches.deviation == 0 and matches.difference[0] != 0:
        return "all differences of length are equal, so length and quality cannot be separated"
    size = np.sqrt(rows.weight @ rows.terms**2)
    scaled = rows.terms[:, size > 0] / size[size > 0]
    if np.linalg.eigvalsh(scaled.T @ (rows.weight[:, None] * scaled))[0] < _SINGULAR:
        return "length, difficulty and quality cannot be separated in these matches"
    return None


_SINGULAR: Final = 1e-9


def _choose_penalty(rows: _Rows) -> float:
    """The inverse penalty with the least mean loss of the folds that were not fitted; the first of equal ones."""
    loss = np.zeros(len(_INVERSE_PENALTIES))
    for fold in range(_FOLDS):
        left = rows.fold == fold
        if not left.any():
            continue
        terms, outcome, weight = rows.terms[~left], rows.outcome[~left], rows.weight[~left]
        coefficients = np.zeros(rows.terms.shape[1])
        for place, penalty in enumerate(_INVERSE_PENALTIES):
            coefficients = _fit(terms, outcome, weight, float(penalty), coefficients)
            loss[place] += (
                cross_entropy(rows.terms[left] @ coefficients, rows.outcome[left], rows.weight[left]) / left.sum()
            )
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
    value = inverse_penalty * cross_entropy(log_odds, outcome, weight) + np.abs(at).sum()
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
            next_value = (
                inverse_penalty * cross_entropy(log_odds + length * direction, outcome, weight)
                + np.abs(following).sum()
            )
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

    Coordinate descent finds which coefficients are 0 and the signs of the others; then the minimum solves linear
    equations.
    """
    place, slopes, matrix = at.tolist(), gradient.tolist(), curvature.tolist()
    target = list(place)
    for _ in range(_MOST_SWEEPS):
        for j, row in enumerate(matrix):
            if row[j] > 0:
                slope = slopes[j] + sum(row[i] * (target[i] - place[i]) for i in range(len(row)))
                free = target[j] - slope / row[j]
                target[j] = math.copysign(max(abs(free) - 1 / row[j], 0.0), free)
        exact = _solve_with_signs(at, gradient, curvature, np.sign(target))
        if exact is not None:
            break
    return np.asarray((target if exact is None else exact) - at)


_MOST_SWEEPS: Final = 100


def _solve_with_signs(
    at: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, sign: np.ndarray
) -> np.ndarray | None:
    """The minimum if its coefficients have these signs, else None."""
    used = sign != 0
    target = np.zeros(len(at))
    if used.any():
        known = curvature[used] @ at - gradient[used] - sign[used]
        target[used] = np.linalg.lstsq(curvature[np.ix_(used, used)], known, rcond=None)[0]
    slope = gradient + curvature @ (target - at)
    agrees = (np.sign(target) == sign).all() and (np.abs(slope[~used]) <= 1 + _NEAR).all()
    return target if agrees else None


_NEAR: Final = 1e-9


def cross_entropy(log_odds: np.ndarray, outcome: np.ndarray, weight: np.ndarray) -> float:
    """The weighted sum of the cross-entropy of outcomes."""
    return float(weight @ (np.logaddexp(0.0, log_odds) - outcome * log_odds))


def _result(
    matches: _Matches,
    rows: _Rows,
    reference: LengthReference | None,
    penalty: float,
    coefficients: np.ndarray,
    confidence: float,
) -> LengthControl:
    value = _predict_level(matches, coefficients)[0]
    low, high, influence = _interval(matches, rows, coefficients, confidence)
    with_difficulty = matches.difficulty is not None
    return LengthControl(
        win_rate=value,
        low=min(low, value),
        high=max(high, value),
        raw=matches.raw,
        length=float(coefficients[0]),
        difficulty=float(coefficients[1]) if with_difficulty else math.nan,
        quality=float(coefficients[-1]),
        deviation=matches.deviation,
        inverse_penalty=penalty,
        definition=name_definition(with_difficulty, reference is not None),
        examples=matches.examples,
        example=matches.numbers,
        influence=influence,
    )


def _predict_level(matches: _Matches, coefficients: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The mean prediction at equal length, its slope in the coefficients, and the influence of each example on it."""
    level = _stack_terms(np.zeros(len(matches.outcome)), matches.difficulty, 1.0)
    predicted = logistic(level @ coefficients)
    share = matches.weight / matches.weight.sum()
    value = float(share @ predicted)
    slope = level.T @ (share * predicted * (1 - predicted))
    return value, slope, np.bincount(matches.example, share * (predicted - value))


def _interval(matches: _Matches, rows: _Rows, start: np.ndarray, confidence: float) -> tuple[float, float, np.ndarray]:
    """The interval at equal length by example, linearised in the coefficients, and the influence of each example.

    It is that of the fit with the weakest penalty: a strong one, which cross-validation may choose for few examples,
    draws the win rate to ½, and an interval around it would miss the true value too often.

    Where all outcomes are equal, the likelihood has hardly any curvature, and the spread is 0: see `clustered_wilson`.
    Source of the spread: J. MacKinnon & H. White, "Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties" (Journal of Econometrics 29, 1985), HC3, by example.
    """
    coefficients = _fit(rows.terms, rows.outcome, rows.weight, float(_INVERSE_PENALTIES[-1]), start)
    value, slope, influence = _predict_level(matches, coefficients)
    chance = logistic(rows.terms @ coefficients)
    steepness = rows.weight * chance * (1 - chance)
    inverse = np.linalg.pinv(rows.terms.T @ (steepness[:, None] * rows.terms), hermitian=True)
    pull = rows.weight * (rows.outcome - chance) * (rows.terms @ (inverse @ slope))
    leverage = steepness * np.einsum("ij,jk,ik->i", rows.terms, inverse, rows.terms)
    pulls, leverages = (
        np.bincount(matches.example[matches.judged], each[rows.reference :], len(influence))
        for each in (pull, leverage)
    )
    influence = influence + pulls / np.maximum(1 - leverages, _LEAST_REST)
    own, n = rows.outcome[rows.reference :], matches.examples
    influence = (influence - influence.mean()) * (0.0 if (own == own[0]).all() else math.sqrt(n / (n - 1)))
    heaviness = np.bincount(matches.example, matches.weight) / matches.weight.sum()
    spread = Spread(np.array([influence @ influence]), np.array([n]), np.array([1 / float(heaviness @ heaviness)]))
    low, high = interval_within(np.array([value]), spread, (0.0, 1.0), confidence)
    return float(low[0]), float(high[0]), influence


_LEAST_REST: Final = 0.1
"""What remains of the outcomes of an example, at least, when the fit has followed them."""


def _without_win_rate(matches: _Matches, reference: LengthReference | None, reason: str) -> LengthControl:
    return LengthControl(
        win_rate=math.nan,
        low=math.nan,
        high=math.nan,
        raw=matches.raw,
        length=math.nan,
        difficulty=math.nan,
        quality=math.nan,
        deviation=matches.deviation,
        inverse_penalty=math.nan,
        definition=name_definition(matches.difficulty is not None, reference is not None),
        examples=matches.examples,
        reason=reason,
    )


def _rate_baseline(definition: str) -> LengthControl:
    return LengthControl(
        win_rate=0.5,
        low=math.nan,
        high=math.nan,
        raw=0.5,
        length=0.0,
        difficulty=0.0,
        quality=0.0,
        deviation=math.nan,
        inverse_penalty=math.nan,
        definition=definition,
        examples=0,
        reason="the baseline, by definition",
    )


def name_definition(with_difficulty: bool, with_reference: bool) -> str:
    """What alpaca_eval calls a combination of terms."""
    if with_difficulty:
        return "length_controlled_v1" if with_reference else "length_controlled_noreg"
    return "length_controlled_minimal" + (" with a reference" if with_reference else "")
