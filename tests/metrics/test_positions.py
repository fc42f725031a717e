"""Position bias, inconsistency, and which pairs contradict each other.

    pytest -m slow tests/metrics/test_positions.py -s

prints a part of the table in docs/intervals.md.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from evaluand import SpecError
from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.ratings.positions import contradictory_pairs, inconsistency, pair_numbers, position_bias
from evaluand.metrics.ratings.win_rates import win_rates
from evaluand.metrics.stats.intervals import wilson

# pair 0: the first one wins twice; 1: b wins twice; 2: a wins and ties; 3: one order only
OUTCOME = np.array([1.0, 0.0, 0.2, 0.0, 1.0, 0.5, 0.8])
A_FIRST = np.array([True, False, True, False, False, True, True])
PAIR = np.array([0, 0, 1, 1, 2, 2, 3])


def judge(
    n: int, strength: float, bias: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two systems in both orders; a judge who adds `bias` to how much better the first response is."""
    rng = np.random.default_rng(seed)
    better = np.repeat(rng.normal(strength, 1, n), 2)
    a_first = np.tile([True, False], n)
    outcome = (better + np.where(a_first, bias, -bias) > 0).astype(float)
    return np.zeros(2 * n, int), np.ones(2 * n, int), outcome, a_first, np.repeat(np.arange(n), 2)


def test_position_bias_is_the_share_of_wins_of_the_first() -> None:
    a, b = np.zeros(6, int), np.ones(6, int)
    bias = position_bias(a, b, OUTCOME[:6], A_FIRST[:6], PAIR[:6])
    assert bias.share == pytest.approx((1 + 1 + 0.2 + 1 + 0 + 0.5) / 6)
    assert (bias.first, bias.ties, bias.second, bias.examples, bias.one_order) == (3, 1, 2, 3, 0)
    assert 0 < bias.low < bias.share < bias.high < 1


def test_position_bias_does_not_depend_on_which_system_is_called_a() -> None:
    a, b, outcome, a_first, cluster = judge(50, 0.3, 0.5)
    swap = np.random.default_rng(1).random(100) < 0.5
    swapped = position_bias(
        np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1 - outcome, outcome), a_first != swap, cluster
    )
    assert swapped == position_bias(a, b, outcome, a_first, cluster)


def test_a_better_system_that_is_shown_first_more_often_is_no_position_bias() -> None:
    a_first = np.arange(100) < 90
    bias = position_bias(np.zeros(100, int), np.ones(100, int), np.ones(100), a_first, np.arange(100))
    assert bias.share == pytest.approx(0.5)
    assert (bias.first, bias.second) == (90, 10)


def test_pairs_of_systems_in_one_order_say_nothing_about_positions() -> None:
    a, b = np.array([0, 0, 0]), np.array([1, 1, 2])
    bias = position_bias(a, b, np.array([1.0, 0.5, 1.0]), np.array([True, False, True]), np.arange(3))
    assert (bias.share, bias.one_order, bias.examples) == (0.75, 1, 2)
    unknown = position_bias(a[2:], b[2:], np.ones(1), np.ones(1, bool), np.zeros(1, int))
    assert np.isnan([unknown.share, unknown.low, unknown.high]).all()
    assert unknown.one_order == 1


def test_inconsistency_counts_opposite_winners_only() -> None:
    found = inconsistency(OUTCOME, A_FIRST, PAIR, PAIR)
    assert found.share == pytest.approx(1 / 3)
    assert (found.pairs, found.contradictory, found.first_twice, found.half, found.one_order) == (3, 1, 1, 1, 1)
    second = inconsistency(1 - OUTCOME, A_FIRST, PAIR, PAIR)
    assert (second.contradictory, second.first_twice) == (1, 0)


def test_inconsistency_of_one_pair_per_example_has_the_interval_of_a_proportion() -> None:
    _, _, outcome, a_first, cluster = judge(4000, 0.2, 0.3)
    found = inconsistency(outcome, a_first, cluster, cluster)
    low, high = wilson(np.array([found.contradictory]), np.array([4000]), 0.95)
    assert (found.low, found.high) == pytest.approx((low[0], high[0]), abs=1e-4)


def test_nothing_was_judged_in_both_orders() -> None:
    found = inconsistency(OUTCOME[-1:], A_FIRST[-1:], PAIR[-1:], PAIR[-1:])
    assert np.isnan([found.share, found.low, found.high]).all()
    assert (found.pairs, found.one_order) == (0, 1)


def test_pairs_with_opposite_winners_contradict() -> None:
    assert contradictory_pairs(OUTCOME, A_FIRST, PAIR).tolist() == [0]
    several = np.array([1.0, 0.0, 0.0, 0.5, 0.8]), np.array([True, True, True, False, False])
    assert contradictory_pairs(*several, np.full(5, 4)).tolist() == [4]


def test_unusable_columns_are_refused() -> None:
    with pytest.raises(SpecError, match="row 1: the outcome must be a number from 0 to 1"):
        inconsistency(np.array([1, np.nan]), A_FIRST[:2], PAIR[:2], PAIR[:2])
    with pytest.raises(SpecError, match="all columns must have the same length"):
        contradictory_pairs(OUTCOME, A_FIRST[:3], PAIR)


def test_equal_keys_have_equal_numbers() -> None:
    assert pair_numbers(np.array([1, 0, 1, 1]), np.array([5, 9, 4, 5])).tolist() == [2, 0, 1, 2]
    assert pair_numbers(np.zeros(0, int)).tolist() == []


def test_a_biased_judge_is_found_out_and_both_orders_recover_the_truth() -> None:
    strength, bias, n = 0.5, 0.4, 600
    a, b, outcome, a_first, cluster = judge(n, strength, bias)
    normal = NormalDist(strength).cdf
    true, first_twice = 1 - normal(0), normal(bias) - normal(-bias)

    one_order = win_rates(MatchRows.read(a[::2], b[::2], outcome[::2], cluster[::2])).rate
    assert one_order.low[0, 1] > true

    both = win_rates(MatchRows.read(a, b, outcome, cluster)).rate
    assert both.low[0, 1] < true < both.high[0, 1]
    assert both.high[0, 1] < one_order.low[0, 1]

    shown = position_bias(a, b, outcome, a_first, cluster)
    assert shown.low < (1 + first_twice) / 2 < shown.high
    assert shown.low > 0.5
    found = inconsistency(outcome, a_first, cluster, cluster)
    assert found.low < first_twice < found.high
    assert found.first_twice == found.contradictory


def test_dropping_contradictions_recovers_the_truth_of_a_judge_who_sometimes_only_looks_at_the_first() -> None:
    rng = np.random.default_rng(3)
    n, true, careless = 800, 0.75, 0.4
    verdict, lazy = np.repeat(rng.random(n) < true, 2), np.repeat(rng.random(n) < careless, 2)
    a_first, cluster = np.tile([True, False], n), np.repeat(np.arange(n), 2)
    outcome = np.where(lazy, a_first, verdict).astype(float)
    ends = {}
    contradictory = np.isin(cluster, contradictory_pairs(outcome, a_first, cluster))
    for rule, used in (("average", np.ones(2 * n, bool)), ("drop", ~contradictory)):
        n_used = int(used.sum())
        rate = win_rates(MatchRows.read([0] * n_used, [1] * n_used, outcome[used], cluster[used])).rate
        ends[rule] = (rate.low[0, 1], rate.high[0, 1])
    assert ends["average"][1] < true
    assert ends["drop"][0] < true < ends["drop"][1]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "systems", "bias"), [(30, 2, 0.2), (30, 5, 0.3), (100, 4, 0.1), (300, 2, 0.05)])
def test_intervals_cover_the_truth(n: int, systems: int, bias: float) -> None:
    """All pairs in both orders, by a judge whose bias differs between examples."""
    a, b = np.triu_indices(systems, 1)

    def both_orders(n: int, rng: np.random.Generator) -> np.ndarray:
        ability = np.linspace(0, 1, systems) + rng.normal(size=(n, systems))
        shift = bias + rng.normal(0, 0.5, (n, 1, 1)) * [1, -1]
        shift[..., 1] -= 2 * bias
        return ((ability[:, a] - ability[:, b])[..., None] + shift > 0).astype(float)

    many = both_orders(200_000, np.random.default_rng(0))
    true = np.array([(many[..., 0] + 1 - many[..., 1]).mean() / 2, (many[..., 0] != many[..., 1]).mean()])
    pair = np.repeat(np.arange(n * len(a)), 2)
    a_first, cluster = np.tile([True, False], n * len(a)), pair // len(a)
    both = [np.tile(np.repeat(each, 2), n) for each in (a, b)]
    covered = []
    for seed in range(1000):
        outcome = both_orders(n, np.random.default_rng(seed)).ravel()
        ends = position_bias(*both, outcome, a_first, cluster), inconsistency(outcome, a_first, pair, cluster)
        covered.append([each.low <= share <= each.high for each, share in zip(ends, true, strict=True)])
    shares = np.mean(covered, axis=0)
    print(f"| {n} examples of {systems} systems | {shares[0]:.3f} | {shares[1]:.3f} |")  # noqa: T201
    assert (shares >= 0.93).all()
    assert (shares <= 0.975).all()
