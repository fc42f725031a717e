"""How well schedules rank for a budget of judgements: simulated systems, ranked by the matches that a schedule chooses.

.venv/bin/python benchmarks/schedules.py [--quick]

Strengths are drawn from a normal distribution, and a judgement is a win by the model of Bradley and Terry. Shown is
Kendall's tau between the strengths and those of a fit to the matches, on average over simulations, and by how much it
is higher than that of as many pairs drawn at random, with its standard error. All play the same simulations.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from evaluand.matches.schedule import Budgeted, Field, InformationGain, Pairs, Played, Swiss
from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry
from evaluand.metrics.ratings.counts import MatchRows, count_matches

EXAMPLES = 400
GRID = ((6, 200, 1.0), (10, 1000, 1.0), (10, 1000, 2.0), (20, 1000, 2.0), (30, 2000, 2.0))
SIMULATIONS, QUICK_SIMULATIONS = 100, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few simulations")
    options = parser.parse_args()
    n = QUICK_SIMULATIONS if options.quick else SIMULATIONS
    print("systems  budget  spread  random   swiss     gain        information gain     gain")
    for systems, budget, spread in GRID[:2] if options.quick else GRID:
        taus = np.array([simulate(systems, budget, spread, seed) for seed in range(n)])
        gains, mean = taus[:, 1:] - taus[:, :1], taus.mean(axis=0)
        error = gains.std(axis=0) / n**0.5
        cells = [f"{mean[k]:8.3f}  {gains[:, k - 1].mean():+.3f} ± {error[k - 1]:.3f}" for k in (1, 2)]
        print(f"{systems:7} {budget:7} {spread:7} {mean[0]:7.3f}{cells[0]}{cells[1]:>32}", flush=True)


def simulate(systems: int, budget: int, spread: float, seed: int) -> list[float]:
    """The tau of random pairs, of `swiss` and of `information_gain`."""
    random = np.random.default_rng([seed, systems])
    strengths = random.normal(0, spread, systems)
    responses = np.tile(np.arange(1, systems + 1, dtype=np.uint64), (EXAMPLES, 1))
    digests = random.integers(0, 256, (EXAMPLES, 16), dtype=np.uint8)
    labels = [f"system {number}" for number in range(systems)]
    field = Field(labels, responses > 0, responses, digests, 1, seed)
    schedules = Swiss(budget), InformationGain(budget)
    pairs = [draw(systems, budget, seed)]
    rounds = [[judge(each, strengths, seed) for each in pairs], *(play(each, field, strengths) for each in schedules)]
    return [rank_correlation(each, strengths) for each in rounds]


def draw(systems: int, budget: int, seed: int) -> Pairs:
    """So many pairs on examples, drawn at random."""
    a, b = np.triu_indices(systems, 1)
    chosen = np.random.default_rng([seed, 9]).choice(len(a) * EXAMPLES, budget, replace=False)
    return Pairs(chosen // len(a), a[chosen % len(a)], b[chosen % len(a)])


def play(schedule: Budgeted, field: Field, strengths: np.ndarray) -> list[Played]:
    rounds: list[Played] = []
    while (pairs := schedule.next(field, rounds)) is not None:
        rounds.append(judge(pairs, strengths, field.seed))
    return rounds


def judge(pairs: Pairs, strengths: np.ndarray, seed: int) -> Played:
    """The outcomes, by random numbers that depend on the match alone."""
    chance = [np.random.default_rng([seed, *match]).random() for match in zip(*pairs, strict=True)]
    won = np.array(chance) < 1 / (1 + np.exp(strengths[pairs.b] - strengths[pairs.a]))
    return Played(pairs, won.astype(float))


def rank_correlation(rounds: Sequence[Played], strengths: np.ndarray) -> float:
    """Kendall's tau of the strengths and those of a fit."""
    a, b, row = (np.concatenate([each.pairs[column] for each in rounds]) for column in (1, 2, 0))
    outcome = np.concatenate([each.outcome for each in rounds])
    counts = count_matches(MatchRows.read(a, b, outcome, row, systems=len(strengths)))
    found = fit_bradley_terry(counts, penalty=0.1).strength
    i, j = np.triu_indices(len(strengths), 1)
    return float(np.mean(np.sign(found[i] - found[j]) * np.sign(strengths[i] - strengths[j])))


if __name__ == "__main__":
    main()
