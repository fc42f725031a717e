"""Ratings as length-controlled win rates against a baseline, as AlpacaEval 2 defines them.

Each system is fitted separately, so that its win rate does not change when systems are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError, plural
from evaluand.matches.ratings.estimates import Estimates
from evaluand.matches.ratings.gathering import MatchTable
from evaluand.matches.ratings.method import RatingMethod
from evaluand.matches.ratings.strengths import student_p
from evaluand.matches.ratings.win_shares import find_system
from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.ratings.instruction_difficulty import InstructionDifficulty, fit_instruction_difficulty
from evaluand.metrics.ratings.length_control import (
    LengthControl,
    LengthReference,
    length_controlled_difference,
    length_controlled_win_rates,
)


def estimate_length_controlled(
    rows: MatchRows,
    shares: np.ndarray,
    lengths: np.ndarray,
    matches: MatchTable,
    method: RatingMethod,
    confidence: float,
) -> Estimates:
    """The ratings of all systems.

    Args:
        shares: the part of a match that each judgement is.
        lengths: matches × sides: the characters of the responses of `a` and `b`.
        matches: the table of the same matches.
    """
    labels, baseline = matches.systems, str(method.baseline)
    base = find_system(baseline, labels)
    reader = _BaselineMatches(rows, lengths, matches, base)
    difficulty = _fit_difficulty(reader, method.difficulty_from) if method.difficulty_from else None
    found = length_controlled_win_rates(
        rows.a,
        rows.b,
        rows.outcome,
        rows.cluster,
        lengths[:, 0],
        lengths[:, 1],
        systems=rows.systems,
        baseline=base,
        weight=_scale_by_system(rows, shares, base),
        difficulty=None if difficulty is None else _select_difficulty(difficulty, reader, method.difficulty_from),
        reference=_read_variants(reader, method.length_variants, difficulty) if method.length_variants else None,
        confidence=confidence,
        folds_by_content=True,
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
        parameters=[*_coefficients(found, labels, base, difficulty is not None)],
    )


def _scale_by_system(rows: MatchRows, shares: np.ndarray, base: int) -> np.ndarray:
    """The weights, scaled for each system so that their sum is the number of its matches, as each is fitted alone."""
    opponent = np.where(rows.a == base, rows.b, rows.a)
    matches, weight = (np.bincount(opponent, each, rows.systems) for each in (shares, rows.weight))
    return np.asarray(rows.weight * (matches[opponent] / weight[opponent]))


class _Pairs(NamedTuple):
    """The matches of some systems against the baseline, both orders of a pair as one.

    Attributes:
        system: the place of the system among those that were asked for.
        outcome: the mean share of the win that it gets.
        length: of its response; `baseline_length` that of the baseline's.
        example: the number of the example.
    """

    system: np.ndarray
    outcome: np.ndarray
    length: np.ndarray
    baseline_length: np.ndarray
    example: np.ndarray


class _BaselineMatches:
    """Reads the matches of some systems against the baseline."""

    def __init__(self, rows: MatchRows, lengths: np.ndarray, matches: MatchTable, base: int) -> None:
        self.rows, self.lengths, self.matches, self.base = rows, lengths, matches, base

    @property
    def baseline(self) -> str:
        return str(self.matches.systems[self.base])

    @property
    def involved(self) -> np.ndarray:
        """The matches of the baseline."""
        return np.asarray((self.rows.a == self.base) | (self.rows.b == self.base))

    def select(self, labels: Sequence[str], role: str) -> _Pairs:
        """The matches of these systems.

        Raises:
            SpecError: a system has none with an outcome.
        """
        numbers = np.array([find_system(label, self.matches.systems, role) for label in labels])
        first = self.rows.b == self.base
        system = np.where(first, self.rows.a, self.rows.b)
        chosen = np.flatnonzero(self.involved & np.isin(system, numbers))
        absent = [label for label, n in zip(labels, numbers.tolist(), strict=True) if n not in system[chosen]]
        if absent:
            raise SpecError(
                f'{role}: no match of "{absent[0]}" against "{self.baseline}" has an outcome; judge some, or leave'
                " the system out"
            )
        _, one, pair = np.unique(self.matches.pair[chosen], return_index=True, return_inverse=True)
        share = np.where(first, self.rows.outcome, 1.0 - self.rows.outcome)[chosen]
        place = chosen[one]
        sides = np.where(first[place], 0, 1)
        order = np.argsort(numbers)
        return _Pairs(
            system=order[np.searchsorted(numbers[order], system[place])],
            outcome=np.bincount(pair, share) / np.bincount(pair),
            length=self.lengths[place, sides],
            baseline_length=self.lengths[place, 1 - sides],
            example=self.matches.example[place],
        )


def _fit_difficulty(reader: _BaselineMatches, systems: Sequence[str]) -> InstructionDifficulty:
    pairs = reader.select(systems, "difficulty_from")
    return fit_instruction_difficulty(pairs.system, pairs.outcome, pairs.length, pairs.baseline_length, pairs.example)


def _select_difficulty(
    difficulty: InstructionDifficulty, reader: _BaselineMatches, systems: Sequence[str]
) -> np.ndarray:
    """The difficulty of the instruction of each match; 0 for those that the baseline does not play."""
    involved = reader.involved
    found = np.zeros(len(involved))
    found[involved] = _difficulty_at(difficulty, reader.matches.example[involved], systems)
    return found


def _difficulty_at(difficulty: InstructionDifficulty, example: np.ndarray, systems: Sequence[str]) -> np.ndarray:
    unknown = len(np.setdiff1d(example, difficulty.example))
    if unknown:
        raise SpecError(
            f"difficulty_from: {plural(unknown, 'example')} without a match of {', '.join(systems)} against the"
            " baseline have no difficulty; judge them, or leave difficulty_from out"
        )
    return difficulty.select(example)


def _read_variants(
    reader: _BaselineMatches, variants: Sequence[str], difficulty: InstructionDifficulty | None
) -> LengthReference:
    pairs = reader.select(variants, "length_variants")
    return LengthReference(
        outcome=pairs.outcome,
        difference=pairs.length - pairs.baseline_length,
        difficulty=None if difficulty is None else _difficulty_at(difficulty, pairs.example, variants),
        group=pairs.system,
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


def _coefficients(
    found: Sequence[LengthControl], labels: Sequence[str], base: int, with_difficulty: bool
) -> Iterator[Mapping[str, Any]]:
    """The coefficients of each system that was fitted."""
    undefined = {"standard_error": math.nan, "low": math.nan, "high": math.nan}
    for system, (one, label) in enumerate(zip(found, labels, strict=True)):
        if system != base:
            for name in ("length", *["difficulty"] * with_difficulty, "quality"):
                yield {"name": name, "system": label, "value": getattr(one, name), "reason": one.reason} | undefined
