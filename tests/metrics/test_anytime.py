"""Bounds that hold at all looks together."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given, strategies as st

from evaluand.metrics.stats.anytime import anytime_least_mean, fewest_to_exceed

LEVEL = 0.95


def capital(values: list[float], sizes: list[float], mean: float) -> float:
    """Of a gambler who splits a capital of 1 among 24 bets against a mean of values of at least 0, row by row."""
    whole, heaviest = 0.0, max(sizes)
    for place in range(24):
        share = 1 / ((place + 1) * (place + 2)) + 1 / 600
        for value, size in zip(values, sizes, strict=True):
            bet = size / heaviest / 2**place
            share *= 1 + bet * (value - mean) / mean
        whole += share
    return whole


@pytest.mark.parametrize(("n", "weighted"), [(1, False), (7, False), (60, False), (30, True)])
def test_the_bound_is_the_mean_at_which_a_gambler_has_won_twenty_times_the_capital(n: int, weighted: bool) -> None:
    draw = np.random.default_rng(n)
    values = draw.choice([0.2, 0.5, 1.0], n)
    sizes = draw.integers(1, 9, n).astype(float) if weighted else np.ones(n)
    expected = scipy.optimize.brentq(
        lambda mean: math.log(capital(values.tolist(), sizes.tolist(), mean)) - math.log(20), 1e-9, 1
    )
    assert anytime_least_mean(values * sizes, sizes, 0.0, LEVEL) == pytest.approx(expected, abs=1e-7)
    moved = anytime_least_mean((values * 4 - 3) * sizes, sizes, -3.0, LEVEL)
    assert moved == pytest.approx(4 * expected - 3, abs=1e-6)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=40), st.randoms())
def test_the_bound_lies_below_the_mean_whatever_the_order(values: list[float], random: object) -> None:
    bound = anytime_least_mean(np.array(values), np.ones(len(values)), -1.0, LEVEL)
    assert -1 <= bound <= np.mean(values)
    random.shuffle(values)  # type: ignore[attr-defined]
    assert anytime_least_mean(np.array(values), np.ones(len(values)), -1.0, LEVEL) == pytest.approx(bound, abs=1e-8)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60), st.sampled_from([-0.3, -0.05, 0.0, 0.4]))
def test_as_many_rows_as_are_needed_suffice_and_one_fewer_does_not(values: list[float], mean: float) -> None:
    seen = np.array(values)
    needed = fewest_to_exceed(seen, np.ones(len(seen)), (-1.0, 1.0), mean, LEVEL)

    def bound(more: int) -> float:
        total = np.r_[seen, np.ones(more)]
        return anytime_least_mean(total, np.ones(len(total)), -1.0, LEVEL)

    assert bound(int(needed)) > mean - 1e-6
    assert needed == 0 or bound(int(needed) - 1) < mean + 1e-6


@pytest.mark.parametrize("unit", [1e-6, 0.01, 20.0, 1e9])
def test_the_unit_of_weights_changes_nothing(unit: float) -> None:
    values, weight = np.repeat([1.0, 0.0], [80, 20]), np.full(100, unit)
    plain = anytime_least_mean(values, np.ones(100), 0.0, LEVEL)
    assert anytime_least_mean(values * weight, weight, 0.0, LEVEL) == pytest.approx(plain)
    assert anytime_least_mean(values * weight, weight, 0.0, LEVEL, heaviest=unit) == pytest.approx(plain)
    needed = fewest_to_exceed(values, np.ones(100), (0.0, 1.0), 0.9, LEVEL)
    assert fewest_to_exceed(values * weight, weight, (0.0, 1.0), 0.9, LEVEL, unit) == needed


def test_a_heavier_cluster_that_may_come_makes_the_bound_more_cautious() -> None:
    values = np.repeat([1.0, 0.0], [80, 20])
    bounds = [anytime_least_mean(values, np.ones(100), 0.0, LEVEL, heaviest) for heaviest in (0.5, 1.0, 30.0, 300.0)]
    assert bounds[0] == bounds[1] > bounds[2] > bounds[3]


@pytest.mark.slow
def test_large_clusters_that_do_worse_pass_wrongly_in_at_most_five_of_a_hundred_cases() -> None:
    """One cluster in ten has 20 rows and loses, the others have one: on average a loss of .045 per row."""
    rng, passed = np.random.default_rng(0), 0
    for _ in range(400):
        size = np.where(rng.random(500) < 0.9, 1, 20)
        up, down = np.where(size == 1, 0.4, 0.05), np.where(size == 1, 0.1, 0.25)
        wins = rng.binomial(size, up)
        total = wins - rng.binomial(size - wins, down / (1 - up))
        looks = (50, 100, 200, 300, 500)
        passed += any(anytime_least_mean(total[:n], size[:n].astype(float), -1.0, LEVEL, 20.0) > 0 for n in looks)
    assert passed / 400 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


def test_nothing_seen_says_nothing_and_nothing_exceeds_the_highest_value() -> None:
    assert anytime_least_mean(np.zeros(0), np.zeros(0), -1.0, LEVEL) == -1.0
    assert fewest_to_exceed(np.ones(3), np.ones(3), (-1.0, 1.0), 1.0, LEVEL) == math.inf


KINDS = {
    "2 in 10 differ": ([-1, 0, 1], [0.1, 0.8, 0.1]),
    "5 in 10 differ": ([-1, 0, 1], [0.25, 0.5, 0.25]),
    "graded": ([-1, -0.5, 0, 0.5, 1], [0.05, 0.15, 0.6, 0.15, 0.05]),
    "rare losses": ([-1, 0.02], [0.02 / 1.02, 1 / 1.02]),
}


def looks(values: np.ndarray, chances: list[float], systems: int, rows: int, seed: int) -> np.ndarray:
    """By pair of systems and row, whether the bound of the mean difference of the rows so far lies above 0."""
    drawn = np.random.default_rng(seed).choice(values, (systems, rows), p=chances)
    capital = np.zeros((systems, rows))
    for place in range(24):
        share = 1 / ((place + 1) * (place + 2)) + 1 / 600
        with np.errstate(divide="ignore"):
            capital += share * np.exp(np.cumsum(np.log1p(drawn / 2**place), axis=1))
    return capital > 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_look_after_every_row_passes_wrongly_in_at_most_five_of_a_hundred_cases(kind: str) -> None:
    """2,000 pairs of systems that are equal, up to 2,000 rows."""
    values, chances = np.array(KINDS[kind][0]), KINDS[kind][1]
    passed = looks(values, chances, 2000, 2000, 5)
    print(f"{kind}: {passed.any(axis=1).mean():.4f}")  # noqa: T201 - for the documentation
    assert passed.any(axis=1).mean() <= 0.05
    drawn = np.random.default_rng(5).choice(values, (2000, 2000), p=chances)
    for row in (20, 2000):  # the same as by the bound
        found = [anytime_least_mean(each[:row], np.ones(row), -1.0, LEVEL) > 0 for each in drawn[:50]]
        assert found == passed[:50, row - 1].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("better", "most"), [(0.05, 1.7), (0.1, 1.5), (0.2, 1.7)])
def test_stopping_early_costs_at_most_so_many_more_rows_than_a_fixed_number_with_the_same_power(
    better: float, most: float
) -> None:
    """Four rows in ten differ; a fixed number of rows has a power of 80 % at a one-sided level of 5 %."""
    passed = looks(np.array([-1, 0, 1]), [0.2 - better / 2, 0.6, 0.2 + better / 2], 1000, 5000, 6)
    stopped = np.where(passed.any(axis=1), passed.argmax(axis=1) + 1, 5000)
    planned = np.quantile(stopped, 0.8)
    z = scipy.stats.norm.ppf([0.95, 0.8]).sum()
    fixed = z**2 * (0.4 - better**2) / better**2
    expected = np.minimum(stopped, planned).mean()
    print(f"{better}: {fixed:.0f} fixed, at most {planned:.0f}, {expected:.0f} expected")  # noqa: T201
    assert expected / fixed <= most
