"""Sequential ELO ratings by hand, their mean over orders, and standard errors that a simulation confirms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.elo import EloState, KFactor, Record, count_results, mean_elo, play_matches


def played(matches: list[tuple[int, int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, outcome = zip(*matches, strict=True)
    return np.array(a), np.array(b), np.array(outcome, float)


def by_hand(matches: list[tuple[int, int, float]], players: int) -> list[float]:
    ratings, counts = [1500.0] * players, [0] * players
    for a, b, outcome in matches:
        surplus = outcome - 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
        for player, gain in ((a, surplus), (b, -surplus)):
            ratings[player] += (10 + 10 * math.exp(-0.0005 * counts[player])) * gain
            counts[player] += 1
    return ratings


MATCHES = [(0, 1, 1.0), (1, 2, 0.5), (2, 0, 0.0), (0, 1, 0.0), (2, 1, 1.0), (0, 2, 0.5)]


def test_each_match_moves_both_players() -> None:
    found = play_matches(EloState.begin(3), *played(MATCHES))
    assert found.ratings == pytest.approx(by_hand(MATCHES, 3), abs=1e-9)
    assert found.played.tolist() == [4, 4, 4]


def test_halves_played_one_after_the_other_equal_the_whole() -> None:
    half = play_matches(EloState.begin(3), *played(MATCHES[:2]))
    whole = play_matches(EloState.begin(3), *played(MATCHES))
    both = play_matches(half, *played(MATCHES[2:]))
    assert both.ratings.tolist() == whole.ratings.tolist()
    assert both.played.tolist() == whole.played.tolist()


def test_sequences_side_by_side_equal_each_alone() -> None:
    columns = played(MATCHES)
    together = play_matches(EloState.begin(3), *(np.stack([column, column[::-1]]) for column in columns))
    alone = [by_hand(MATCHES, 3), by_hand(MATCHES[::-1], 3)]
    assert together.ratings == pytest.approx(np.array(alone), abs=1e-9)
    assert together.played.tolist() == [[4, 4, 4]] * 2


def test_k_falls_from_its_start_to_its_floor() -> None:
    table = KFactor(32.0, 8.0, 0.1).after(np.arange(200))
    assert table[0] == 32.0
    assert table[199] == pytest.approx(8.0, abs=1e-6)
    assert (np.diff(table) < 0).all()


def test_the_mean_is_that_of_all_orders_and_the_sum_of_ratings_is_constant() -> None:
    matches = [(0, 1, 1.0), (0, 1, 0.0), (0, 1, 1.0)]
    exact = np.mean([by_hand([matches[i] for i in order], 2) for order in ([0, 1, 2], [1, 0, 2], [0, 2, 1])], axis=0)
    found = mean_elo(*played(matches), np.arange(3), 2, orders=3000)
    assert found.rating == pytest.approx(exact, abs=0.05)
    assert found.rating.sum() == pytest.approx(3000)


def test_the_same_seed_gives_the_same_numbers() -> None:
    columns = played(MATCHES * 5)
    first, again, other = (mean_elo(*columns, np.arange(30) // 4, 3, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(np.array(first), np.array(again))
    assert not np.array_equal(first.rating, other.rating)


def test_matches_on_one_example_are_drawn_together() -> None:
    """Twenty copies of a match on one example are as informative as one: the standard error stays large."""
    separate = mean_elo(*played(MATCHES * 20), np.arange(120), 3)
    together = mean_elo(*played(MATCHES * 20), np.arange(120) % 6, 3)
    assert (together.standard_error > 2 * separate.standard_error).all()


def test_a_standard_error_that_the_matches_cannot_show_is_undefined() -> None:
    one_cluster = mean_elo(*played(MATCHES), np.zeros(6, int), 3)
    assert np.isnan(one_cluster.standard_error).all()
    undefeated = mean_elo(*played([(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), (2, 1, 1.0)]), np.arange(4), 3)
    assert np.isnan(undefeated.standard_error).tolist() == [True, False, False]
    assert np.isfinite(undefeated.rating).all()
    alike = mean_elo(*played([(0, 1, 1.0), (1, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0)]), np.array([0, 0, 1, 1]), 2)
    assert np.isnan(alike.standard_error).all()


def test_the_standard_error_is_what_ratings_vary_by_and_the_order_error_is_not() -> None:
    ratings, errors, order_errors = [], [], []
    cluster, a, b = np.repeat(np.arange(25), 3), np.tile([0, 0, 1], 25), np.tile([1, 2, 2], 25)
    for seed in range(25):
        chance = np.random.default_rng(seed)
        quality = np.array([0.0, 0.5, 1.0]) + chance.normal(0, 1, (25, 3))
        edge = quality[cluster, a] - quality[cluster, b]
        outcome = (chance.random(75) < 1 / (1 + np.exp(-edge))).astype(float)
        found = mean_elo(a, b, outcome, cluster, 3, replicates=60)
        ratings.append(found.rating)
        errors.append(found.standard_error)
        order_errors.append(found.order_error)
    spread = np.std(ratings, axis=0, ddof=1).mean()
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(spread, rel=0.2)
    assert np.mean(order_errors) < spread / 8


def test_a_player_that_meets_itself_and_a_single_order_are_refused() -> None:
    with pytest.raises(SpecError, match="a and b must be two different systems"):
        mean_elo(np.array([0]), np.array([0]), np.array([1.0]), np.array([0]), 1)
    with pytest.raises(SpecError, match="there are no matches"):
        mean_elo(np.array([], int), np.array([], int), np.array([]), np.array([], int), 2)
    with pytest.raises(SpecError, match="orders must be at least 2, not 1"):
        mean_elo(*played(MATCHES), np.arange(6), 3, orders=1)


def test_records_add_up_and_are_undefined_without_matches() -> None:
    first = count_results(Record.begin(4), *played(MATCHES[:3]))
    whole = count_results(first, *played(MATCHES[3:]))
    assert whole.wins.tolist() == [2.5, 1.5, 2.0, 0.0]
    assert whole.played.tolist() == [4, 4, 4, 0]
    assert whole.share[:3].tolist() == [0.625, 0.375, 0.5]
    assert np.isnan(whole.share[3])
