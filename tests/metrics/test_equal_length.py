"""Win rates at equal length.

    pytest -m slow tests/metrics/test_equal_length.py -s

prints a part of the table in docs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evaluand import SpecError
from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.ratings.equal_length import (
    EqualLengthRate,
    equal_length_difference,
    equal_length_win_rate,
    equal_length_win_rates,
)
from evaluand.metrics.ratings.win_rates import win_rates

RUNS = 500  # simulations of a case
N = 150
PLACE = np.arange(N)
DIFFICULTY = np.round(np.sin(PLACE * PLACE) * 1.5, 4)
BASELINE_LENGTH = 200 + (PLACE * 37) % 500
LENGTH = BASELINE_LENGTH + (PLACE * PLACE * 53) % 901 - 300


def logistic(log_odds: Any) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def outcomes() -> np.ndarray:
    """A third of them probabilities, the others wins and losses."""
    chance = logistic(0.4 - 0.7 * DIFFICULTY + 1.2 * np.tanh((LENGTH - BASELINE_LENGTH) / 260))
    won = chance > (PLACE**3 * 29 % 997) / 997
    return np.where(PLACE % 3 == 0, np.round(chance, 3), won)


def control(**options: Any) -> EqualLengthRate:
    arguments = {"outcome": outcomes(), "length": LENGTH, "baseline_length": BASELINE_LENGTH, "cluster": PLACE}
    return equal_length_win_rate(**{**arguments, **options})


def test_the_win_rate_is_near_alpaca_evals_without_difficulties_and_variants() -> None:
    """`0.56888` is what alpaca_eval 0.6.6 computed on these arrays; it deals examples to other folds."""
    found = control()
    assert found.win_rate == pytest.approx(0.56888, abs=0.005)
    assert found.raw == pytest.approx(0.6101466667)


def squash(difference: np.ndarray) -> np.ndarray:
    return np.asarray(np.tanh(difference / difference.std(ddof=1)))


def design() -> np.ndarray:
    return np.stack([squash(LENGTH - BASELINE_LENGTH), np.ones(N)], axis=1)


def fit(terms: np.ndarray, outcome: np.ndarray, inverse_penalty: float) -> np.ndarray:
    """Probabilities as two rows, a win and a loss, weighted by them."""
    solver = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=inverse_penalty, tol=1e-10, fit_intercept=False, max_iter=100_000
    )
    won = np.repeat([1, 0], len(outcome))
    solver.fit(np.tile(terms, (2, 1)), won, np.concatenate([outcome, 1 - outcome]))
    return np.asarray(solver.coef_[0])


def test_coefficients_are_those_of_a_penalised_logistic_regression() -> None:
    found = control()
    expected = fit(design(), outcomes(), found.inverse_penalty)
    np.testing.assert_allclose([found.length, found.quality], expected, atol=2e-6)
    assert found.win_rate == pytest.approx(logistic(found.quality))


def test_the_penalty_is_that_of_the_least_loss_in_five_folds() -> None:
    terms, outcome = design(), outcomes()
    order = np.lexsort([*terms.T, outcome])  # examples are dealt by outcome, then by length
    fold = np.empty(N, int)
    fold[order] = (N - 1 - np.arange(N)) % 5
    losses = {}
    for inverse_penalty in np.logspace(-4, 4, 10).tolist():
        parts = []
        for each in range(5):
            left = fold == each
            chance = logistic(terms[left] @ fit(terms[~left], outcome[~left], inverse_penalty))
            parts.append(-(outcome[left] * np.log(chance) + (1 - outcome[left]) * np.log(1 - chance)).mean())
        losses[inverse_penalty] = np.mean(parts)
    assert control().inverse_penalty == pytest.approx(min(losses, key=lambda each: losses[each]))


def biased(n: int, quality: float, bias: float, longer: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Matches of a judge who adds to the log-odds of the longer response."""
    difference = np.random.default_rng(seed).normal(longer, 400, n)
    chance = logistic(quality + bias * np.tanh(difference / 400))
    outcome = (np.random.default_rng(seed + 1).random(n) < chance).astype(float)
    return {
        "outcome": outcome,
        "length": 1500 + difference,
        "baseline_length": np.full(n, 1500.0),
        "cluster": np.arange(n),
    }


@pytest.mark.parametrize(("quality", "longer"), [(0.0, 400.0), (-0.8, 300.0), (0.7, -300.0)])
def test_a_judge_who_prefers_length_is_corrected(quality: float, longer: float) -> None:
    matches, true = biased(800, quality, 1.2, longer), float(logistic(quality))
    found = equal_length_win_rate(**matches)
    assert found.low < true < found.high
    rows = MatchRows.read(np.zeros(800, int), np.ones(800, int), matches["outcome"], matches["cluster"])
    raw = win_rates(rows).rate
    assert raw.value[0, 1] == pytest.approx(found.raw)
    assert not raw.low[0, 1] < true < raw.high[0, 1]


def test_matches_on_the_same_example_do_not_narrow_the_interval() -> None:
    matches = biased(60, 0.3, 1, 0)
    once = equal_length_win_rate(**matches)
    tripled = equal_length_win_rate(**{name: np.repeat(each, 3) for name, each in matches.items()})
    assert tripled.examples == once.examples == 60
    assert tripled.high - tripled.low == pytest.approx(once.high - once.low, rel=0.1)


def both_judged(n: int, seed: int) -> tuple[EqualLengthRate, EqualLengthRate]:
    """Two systems on the same examples, some of which suit both; they win at equal length with 0.6 and 0.4."""
    rng = np.random.default_rng(seed)
    found = []
    suits, latent = rng.normal(size=n), rng.normal(size=(2, n))
    for each, quality in enumerate((0.2533, -0.2533)):
        difference = rng.normal(200, 400, n)
        better = quality + np.tanh(difference / 400) + 0.8 * suits + 0.6 * latent[each]
        found.append(equal_length_win_rate((better > 0) * 1.0, difference, np.zeros(n), np.arange(n)))
    return found[0], found[1]


def test_the_difference_of_systems_that_vary_together_has_a_narrower_interval() -> None:
    first, second = both_judged(400, 3)
    value, low, high = equal_length_difference(first, second)
    assert value == pytest.approx(first.win_rate - second.win_rate)
    elsewhere = replace(second, example=second.example + 1000)
    _, wide_low, wide_high = equal_length_difference(first, elsewhere)
    assert wide_low < low < value < high < wide_high
    assert high - low < 0.9 * (wide_high - wide_low)
    assert equal_length_difference(first, first) == pytest.approx((0, 0, 0), abs=0.02)


def covered(name: str, intervals: Iterable[tuple[float, float]], true: float) -> float:
    share = float(np.mean([low <= true <= high for low, high in intervals]))
    print(f"| {name} | {share:.3f} |")  # noqa: T201
    return share


@pytest.mark.slow
def test_intervals_of_differences_cover_the_truth() -> None:
    # a probit judge, so the logistic model is only nearly right
    found = [equal_length_difference(*both_judged(200, seed))[1:] for seed in range(RUNS)]
    assert 0.92 <= covered("difference of two rates at equal length, 200 examples", found, 0.2) <= 0.98


def test_a_table_stays_put_when_a_system_is_added() -> None:
    first, second = biased(200, 0.4, 1, 100), biased(200, -0.5, 0.5, -200, seed=5)
    zeros, ones = np.zeros(200, int), np.ones(200, int)
    columns = (
        np.concatenate([ones, zeros, ones]),
        np.concatenate([zeros, 2 * ones, 2 * ones]),
        np.concatenate([first["outcome"], 1 - second["outcome"], ones]),
        np.tile(np.arange(200), 3),
    )
    length_a = np.concatenate([first["length"], second["baseline_length"], first["length"]])
    length_b = np.concatenate([first["baseline_length"], second["length"], second["length"]])
    lengths = np.stack([length_a, length_b], axis=1)
    before = equal_length_win_rates(MatchRows.read(*(each[:200] for each in columns)), lengths[:200], baseline=0)
    after = equal_length_win_rates(MatchRows.read(*columns), lengths, baseline=0)
    assert repr(after[:2]) == repr(before)
    assert repr(after[2]) == repr(equal_length_win_rate(**second))
    assert (after[0].win_rate, after[0].reason) == (0.5, "the baseline, by definition")


def test_a_system_that_never_met_the_baseline_has_a_reason() -> None:
    matches = biased(20, 0, 1, 0)
    rows = MatchRows.read(np.ones(20, int), np.full(20, 2), matches["outcome"], matches["cluster"])
    lengths = np.stack([matches["length"], matches["baseline_length"]], axis=1)
    found = equal_length_win_rates(rows, lengths, baseline=0)
    assert [each.reason for each in found[1:]] == ["0 examples cannot determine 2 terms"] * 2
    with pytest.raises(SpecError, match="the baseline must be a system from 0 to 2, not 3"):
        equal_length_win_rates(rows, lengths, baseline=3)


def test_a_system_that_won_all_gets_an_interval_below_1() -> None:
    found = control(outcome=np.ones(N))
    assert found.win_rate > 0.99
    assert 0.95 < found.low < 0.99


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({name: each[:2] for name, each in biased(9, 0, 1, 0).items()}, "2 examples cannot determine 2 terms"),
        ({"length": BASELINE_LENGTH + 9}, "all differences of length are equal, so length and quality cannot be"),
        ({"cluster": PLACE % 2}, "2 examples cannot determine 2 terms"),
    ],
)
def test_what_cannot_be_estimated_has_a_reason(options: dict[str, Any], reason: str) -> None:
    found = control(**options)
    assert np.isnan([found.win_rate, found.low, found.high]).all()
    assert found.reason is not None
    assert found.reason.startswith(reason)


def test_equal_lengths_need_no_control() -> None:
    found = control(length=BASELINE_LENGTH, outcome=outcomes())
    assert found.length == 0
    assert found.win_rate == pytest.approx(found.raw, abs=0.005)


def test_unusable_columns_are_refused() -> None:
    with pytest.raises(SpecError, match="outcomes must be numbers from 0 to 1"):
        control(outcome=outcomes() + 1)
    with pytest.raises(SpecError, match="all columns must have the same length"):
        control(cluster=PLACE[1:])
    with pytest.raises(SpecError, match="every match needs a finite length; leave matches without one out"):
        control(length=np.where(PLACE == 3, np.nan, LENGTH))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "quality", "bias", "longer"),
    [(25, 0.0, 1.0, 120), (50, -1.0, 2.0, 400), (100, -0.5, 1.0, 200), (300, -2.0, 1.5, -200), (805, 0.5, 1.5, 400)],
)
def test_intervals_cover_the_truth(n: int, quality: float, bias: float, longer: float) -> None:
    true = float(logistic(quality))
    found = [equal_length_win_rate(**biased(n, quality, bias, longer, 2 * seed)) for seed in range(RUNS)]
    name = f"rate at equal length of {true:.2f}, {n} examples, length ± 400 about {longer:+d}"
    assert 0.92 <= covered(name, [(each.low, each.high) for each in found], true) <= 0.985
