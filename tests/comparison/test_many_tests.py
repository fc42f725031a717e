"""Clear differences remain significant among very many tests, and no others are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand import rate
from evaluand.comparison.significance import DRAWS, drawn_p, holm, sign_flip
from evaluand.evaluation.matching.battles import read_battles


def exact_p(sums: np.ndarray) -> float:
    """The p value of all patterns, by adding one cluster after the other."""
    totals = np.zeros(1)
    for size in sums:
        totals = np.concatenate([totals + size, totals - size])
    return float(np.mean(np.abs(totals) >= abs(sums.sum()) * (1 - 1e-12)))


@given(st.lists(st.integers(-4, 30).filter(bool), min_size=2, max_size=17), st.sampled_from([1.0, 1e200, 1e-200]))
def test_p_values_of_rare_patterns_are_those_of_all_patterns(values: list[int], unit: float) -> None:
    sums = np.array(values, float)
    found, exact = drawn_p(0, sums * unit, abs(float(sums.sum())) * unit), exact_p(sums)
    assert found.p == 1 / (DRAWS + 1) or 0.95 * exact <= found.p <= 1.5 * exact


@pytest.mark.parametrize(("effect", "seed"), [(1.3, 1), (1.6, 2), (2.0, 3)])
def test_rare_patterns_of_twenty_clusters_are_counted_closely(effect: float, seed: int) -> None:
    sums = np.random.default_rng(seed).normal(effect, 1, 20)
    found = sign_flip(sums)
    assert found.method == "tilted draws"
    assert exact_p(sums) <= found.p <= 1.2 * exact_p(sums)


def test_one_heavy_cluster_does_not_mislead() -> None:
    sums = np.concatenate([[30.0, 20.0], np.random.default_rng(0).exponential(1, 17)])
    assert exact_p(sums) <= sign_flip(sums).p <= 1.3 * exact_p(sums)


@pytest.mark.slow
def test_among_a_thousand_hypotheses_plain_differences_are_found_and_no_others() -> None:
    """A hundred differences are three standard deviations, or .8; none of the others is one. Family-wise at 5 %."""
    wrong, families = 0, 100
    for seed in range(families):
        rng = np.random.default_rng(seed)
        effects = np.repeat([3.0, 0.8, 0.0], [50, 50, 900])
        p = np.array([sign_flip(row).p for row in rng.normal(effects[:, None], 1, (1000, 60))])
        rejected = holm(p) <= 0.05
        assert rejected[:50].all()
        assert rejected[50:100].mean() >= 0.8
        wrong += bool(rejected[100:].any())
    assert wrong <= 10  # at a level of 5 %, more than 10 of 100 occur once in a hundred times


def test_thirty_four_systems_that_differ_by_three_points_are_told_from_each_other() -> None:
    rng = np.random.default_rng(7)
    scores = np.linspace(0.0, 0.97, 34)[:, None] + rng.normal(0, 0.004, (34, 60))
    pairs = [(i, j) for i in range(34) for j in range(i)]
    p = np.array([sign_flip(scores[i] - scores[j]).p for i, j in pairs])
    assert (holm(p) <= 0.05).all()


def test_ranks_of_fifty_systems_show_who_is_better() -> None:
    rng = np.random.default_rng(5)
    rows = [
        {
            "question_id": example,
            "model_a": f"m{a:02}",
            "model_b": "base",
            "winner": "model_a" if rng.random() < (0.95 if a < 25 else 0.05) else "model_b",
        }
        for example in range(60)
        for a in range(50)
    ]
    rated = rate(read_battles(rows), method="win_rate", baseline="base")
    letters = {row["system"]: row["letters"] for row in rated.ratings}
    assert not set(letters["m00"]) & set(letters["m49"])
    assert {row["rank"] for row in rated.ratings[:25]} == {1}
