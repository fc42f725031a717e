"""How hard each instruction is to win, from matches of a fixed set of reference systems against the baseline.

Length-controlled win rates take these numbers as they are (see `length_control`). They are fitted once, to the same
reference systems for all later tables, so that a table does not change when systems are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.bradley_terry import logistic
from evaluand.metrics.ratings.length_control import cross_entropy, standardise_lengths


@dataclass(frozen=True)
class InstructionDifficulty:
    """The difficulty of each example's instruction.

    Attributes:
        example: the numbers of the examples, sorted.
        difficulty: of each example, the log-odds by which systems win there more often than on average; so higher
            numbers are easier, as in AlpacaEval 2.
        systems: how many reference systems it was fitted to.
    """

    example: np.ndarray
    difficulty: np.ndarray
    systems: int

    def select(self, example: np.ndarray) -> np.ndarray:
        """The difficulties of these examples.

        Raises:
            SpecError: The reference systems had no match on one of them.
        """
        place = np.minimum(np.searchsorted(self.example, example), len(self.example) - 1)
        unknown = self.example[place] != example
        if unknown.any():
            first = int(np.asarray(example)[np.argmax(unknown)])
            raise SpecError(
                f"instruction difficulty: {int(unknown.sum())} examples, such as {first}, are not in the reference "
                "fit; fit it to matches on all examples, or leave difficulties out"
            )
        return np.asarray(self.difficulty[place])


def fit_instruction_difficulty(
    system: np.ndarray,
    outcome: np.ndarray,
    length: np.ndarray,
    baseline_length: np.ndarray,
    cluster: np.ndarray,
) -> InstructionDifficulty:
    """Fit one difficulty per example, jointly with the quality and the length coefficient of each reference system.

    AlpacaEval 2 fits the same model with an L1 penalty. Here difficulties have a normal prior of mean 0 and standard
    deviation 2 instead, which also gives an example that no system won a finite one.

    Other reference systems give other difficulties, which can move the win rates of systems with very short or very
    long responses by some points: store the fit, and use it for all systems of a table.

    Args:
        system: of each match, the number of the reference system that played against the baseline.
        outcome: the share of the win that this system gets.
        length: of its response; `baseline_length` that of the baseline's.
        cluster: the number of the example.

    Raises:
        SpecError: There are no matches.

    Example:
        >>> system, cluster = np.repeat([0, 1, 2], 4), np.tile([10, 11, 12, 13], 3)
        >>> outcome = np.array([1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 0], float)
        >>> found = fit_instruction_difficulty(system, outcome, np.ones(12), np.ones(12), cluster)
        >>> found.difficulty.round(2).tolist()
        [1.61, 0.26, 0.26, -2.14]
    """
    if not len(outcome):
        raise SpecError("instruction difficulty: there are no matches to fit it to")
    difference = np.asarray(length, np.float64) - np.asarray(baseline_length, np.float64)
    names, player = np.unique(system, return_inverse=True)
    examples, place = np.unique(cluster, return_inverse=True)
    rows = _Rows(standardise_lengths(difference, player), player, len(names), place, len(examples))
    return InstructionDifficulty(examples, _fit_jointly(rows, np.asarray(outcome, np.float64)), len(names))


class _Rows(NamedTuple):
    """The matches: the length term, the system and the example of each.

    Coefficients are those of length, then those of quality, then the difficulties.
    """

    squashed: np.ndarray
    player: np.ndarray
    players: int
    place: np.ndarray
    places: int

    def log_odds(self, coefficients: np.ndarray) -> np.ndarray:
        length, quality, difficulty = np.split(coefficients, [self.players, 2 * self.players])
        return np.asarray(length[self.player] * self.squashed + quality[self.player] + difficulty[self.place])

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum over matches of a value times what each coefficient is multiplied by."""
        of_players = [np.bincount(self.player, each, self.players) for each in (values * self.squashed, values)]
        return np.concatenate([*of_players, np.bincount(self.place, values, self.places)])


def _fit_jointly(rows: _Rows, outcome: np.ndarray) -> np.ndarray:
    """The difficulties at the maximum of the posterior, by Newton's method with step halving."""
    prior = np.concatenate([np.full(2 * rows.players, _WEAK), np.full(rows.places, 1 / _DEVIATION**2)])
    at, weight = np.zeros(len(prior)), np.ones(len(outcome))
    value = cross_entropy(rows.log_odds(at), outcome, weight)
    for _ in range(_MOST_STEPS):
        chance = logistic(rows.log_odds(at))
        slope = rows.total(chance - outcome) + prior * at
        step = _newton_step(rows, chance * (1 - chance), slope, prior)
        decrease = float(slope @ step)
        if decrease > -_PRECISION:
            break
        size = 1.0
        while True:
            following = at + size * step
            next_value = cross_entropy(rows.log_odds(following), outcome, weight) + float(prior @ following**2) / 2
            if next_value <= value + 0.1 * size * decrease or size < _SHORTEST:
                break
            size /= 2
        if next_value >= value:  # only rounding is left
            break
        at, value = following, next_value
    return at[2 * rows.players :]


_MOST_STEPS: Final = 100
_PRECISION: Final = 1e-12
_SHORTEST: Final = 1e-6
_DEVIATION: Final = 2.0
_WEAK: Final = 1e-6
"""The precision of the prior of a system's coefficients, which makes those of an undefeated system finite."""


def _newton_step(rows: _Rows, steepness: np.ndarray, slope: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The Newton step; the curvature of the examples is diagonal, so they are eliminated from the equations."""
    n = rows.players
    by_length = steepness * rows.squashed
    blocks = [np.bincount(rows.player, each, n) for each in (by_length * rows.squashed, by_length, steepness)]
    curvature = np.block([[np.diag(blocks[0]), np.diag(blocks[1])], [np.diag(blocks[1]), np.diag(blocks[2])]])
    curvature += np.diag(prior[: 2 * n])
    cell = rows.place * n + rows.player
    cross = np.hstack([np.bincount(cell, each, rows.places * n).reshape(-1, n) for each in (by_length, steepness)])
    diagonal = np.bincount(rows.place, steepness, rows.places) + prior[2 * n :]
    scaled = cross / diagonal[:, None]
    of_systems = np.linalg.solve(curvature - cross.T @ scaled, scaled.T @ slope[2 * n :] - slope[: 2 * n])
    return np.concatenate([of_systems, -(slope[2 * n :] + cross @ of_systems) / diagonal])
