"""Difficulties of instructions from a fit to reference systems."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evaluand import SpecError
from evaluand.metrics.ratings.instruction_difficulty import fit_instruction_difficulty
from evaluand.metrics.ratings.length_control import length_controlled_win_rate


def simulate(systems: int, n: int, seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The true difficulties, and matches of some systems on all examples in random order."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1.5, n)
    system, cluster = (each.ravel() for each in np.indices((systems, n)))
    difference = rng.normal(100, 300, system.shape) * (1 + system)
    quality = np.linspace(-1, 0.5, systems)
    log_odds = quality[system] + np.tanh(difference / (300 * (1 + system))) + difficulty[cluster]
    order = rng.permutation(len(system))
    columns = {
        "system": system + 7,
        "outcome": (rng.random(len(system)) < 1 / (1 + np.exp(-log_odds))).astype(float),
        "length": 5000 + difference,
        "baseline_length": np.full(len(system), 5000),
        "cluster": 3 * cluster,
    }
    return difficulty, {name: each[order] for name, each in columns.items()}


def test_difficulties_are_those_of_a_logistic_regression_with_a_normal_prior() -> None:
    _, matches = simulate(4, 30)
    found = fit_instruction_difficulty(**matches)
    assert (found.systems, found.example.tolist()) == (4, list(range(0, 90, 3)))
    difference = matches["length"] - matches["baseline_length"]
    player = np.eye(4)[matches["system"] - 7]
    spread = np.array([difference[matches["system"] == each].std(ddof=1) for each in range(7, 11)])
    free = np.hstack([player, player * np.tanh(difference / spread[matches["system"] - 7])[:, None]])
    columns = np.hstack([1e4 * free, 2.0 * np.eye(30)[matches["cluster"] // 3]])  # hardly and normally penalised
    solver = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, fit_intercept=False, max_iter=1000)
    solver.fit(columns, matches["outcome"])
    np.testing.assert_allclose(found.difficulty, 2.0 * solver.coef_[0, 8:], atol=1e-5)


def test_difficulties_recover_the_truth() -> None:
    difficulty, matches = simulate(40, 150)
    found = fit_instruction_difficulty(**matches)
    assert np.corrcoef(found.difficulty, difficulty)[0, 1] > 0.95
    assert np.polyfit(found.difficulty, difficulty, 1)[0] == pytest.approx(1, abs=0.1)


def test_a_system_and_an_example_that_won_all_have_finite_difficulties() -> None:
    system, cluster = np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3)
    outcome = np.array([1, 1, 1, 1, 0, 0, 1, 1, 0.0])
    found = fit_instruction_difficulty(system, outcome, np.zeros(9), np.zeros(9), cluster)
    assert np.isfinite(found.difficulty).all()
    assert found.difficulty[0] > found.difficulty[1] > found.difficulty[2]


def test_a_fit_serves_win_rates_of_other_systems() -> None:
    _, references = simulate(20, 100)
    found = fit_instruction_difficulty(**references)
    other = {name: each[:100] for name, each in simulate(1, 100, seed=2)[1].items() if name != "system"}
    rate = length_controlled_win_rate(**other, difficulty=found.select(other["cluster"]))
    assert (rate.definition, np.isfinite(rate.win_rate)) == ("length_controlled_noreg", True)


def test_what_was_not_fitted_is_refused() -> None:
    found = fit_instruction_difficulty(**simulate(3, 20)[1])
    assert found.select(np.array([6, 0, 6])).tolist() == found.difficulty[[2, 0, 2]].tolist()
    with pytest.raises(
        SpecError, match="2 examples, such as 4, are not in the reference fit; fit it to matches on all"
    ):
        found.select(np.array([3, 4, 99]))
    empty = np.zeros(0)
    with pytest.raises(SpecError, match="there are no matches to fit it to"):
        fit_instruction_difficulty(empty, empty, empty, empty, empty)
