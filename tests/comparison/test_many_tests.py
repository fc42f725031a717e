"""Clear differences remain significant among very many tests, and no others are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from evaluand import rate
from evaluand.comparison.significance import DRAWS, drawn_p, holm, shaffer, sign_flip
from evaluand.matches.battles import read_battles


def exact_p(sums: np.ndarray) -> float:
    """The p value of all patterns, by adding one cluster after the other."""
    totals = np.zeros(1)
    for size in sums:
        totals = np.concatenate([totals + size, totals - size])
    return float(np.mean(np.abs(totals) >= abs(sums.sum()) * (1 - 1e-12)))


@given(st.lists(st.integers(-4, 30).filter(bool), min_size=2, max_size=17), st.sampled_from([1.0, 1e200, 1e-200]))
def test_p_values_of_rare_patterns_are_those_of_all_patterns(values: list[int], unit: float) -> None:
    sums = np.array(values, float)
    found, exact = drawn_p(0, sums * unit, abs(float(sums.sum())) * unit * (1 - 1e-12)), exact_p(sums)
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
    """A hundred differences are three standard deviations, fifty .8, and the others none. Family-wise at 5 %."""
    wrong, families = 0, 100
    for seed in range(families):
        rng = np.random.default_rng(seed)
        effects = np.repeat([3.0, 0.8, 0.0], [100, 50, 850])
        p = np.array([sign_flip(row).p for row in rng.normal(effects[:, None], 1, (1000, 60))])
        rejected = holm(p) <= 0.05
        assert rejected[:100].all()
        assert rejected[100:150].mean() >= 0.8
        wrong += bool(rejected[150:].any())
    assert wrong <= 10  # at a level of 5 %, more than 10 of 100 occur once in a hundred times


@pytest.mark.parametrize("n", [30, 100, 1_000])
def test_p_depends_neither_on_the_order_of_clusters_nor_on_which_system_comes_first(n: int) -> None:
    rng = np.random.default_rng(n)
    sums = rng.normal(0.2, 1, n)
    assert len({sign_flip(order).p for order in (sums, sums[::-1], -sums, rng.permutation(sums))}) == 1


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


@given(st.integers(1, 9))
def test_equal_pairs_are_those_within_sets_of_equal_systems(k: int) -> None:
    """With all pairs but the last rejected, one equality may hold; with none rejected, all may."""
    pairs = k * (k - 1) // 2
    p = np.full(pairs, 0.001)
    adjusted = shaffer(p, [0] * pairs, {0: k})
    assert adjusted.tolist() == pytest.approx([pairs * 0.001] * pairs)


def most_equal(k: int, most: int) -> int:
    """How many pairs may be equal, at most, of at most this number: by all partitions of the systems into sets."""

    def partitions(left: int, largest: int) -> list[list[int]]:
        if not left:
            return [[]]
        return [[n, *rest] for n in range(min(left, largest), 0, -1) for rest in partitions(left - n, n)]

    sizes = (sum(n * (n - 1) // 2 for n in sets) for sets in partitions(k, k))
    return max(size for size in sizes if size <= most)


@given(st.integers(3, 7).flatmap(lambda k: st.tuples(st.just(k), st.lists(st.floats(0, 1), min_size=42, max_size=42))))
def test_steps_of_all_pairs_count_the_equalities_that_are_left(drawn: tuple[int, list[float]]) -> None:
    k, values = drawn
    pairs = k * (k - 1) // 2
    p = np.array(values[: 2 * pairs])  # two measures of the same systems
    group = [0] * pairs + [1] * pairs
    adjusted, largest = {}, 0.0
    rejected = [0, 0]
    for test in np.argsort(p, kind="stable").tolist():
        true = sum(most_equal(k, pairs - n) for n in rejected)
        adjusted[test] = largest = max(largest, min(p[test] * true, 1.0))
        rejected[group[test]] += 1
    found = shaffer(p, group, {0: k, 1: k})
    assert found.tolist() == pytest.approx([adjusted[test] for test in range(2 * pairs)])
    assert (found <= holm(p)).all()


def test_undefined_pairs_and_other_rows_imply_nothing() -> None:
    p = np.array([0.01, np.nan, 0.02, 0.03])
    assert shaffer(p, [0, 0, 0, 0], {}).tolist()[2:] == holm(p).tolist()[2:]
    assert np.isnan(shaffer(p, [0, 0, 0, 1], {0: 3})[1])
    assert shaffer(np.array([]), [], {}).tolist() == []


@pytest.mark.slow
@pytest.mark.parametrize("means", [[0, 0, 0, 0], [0, 0, 0, 0.4, 0.4, 0.4], [0, 0, 0.3, 0.3, 0.6, 0.6, 0.9, 0.9]])
def test_rankings_of_equal_systems_err_in_at_most_five_of_a_hundred(means: list[float]) -> None:
    """Of 1,000 rankings with 80 rows, in none of which the rows' own difficulty matters."""
    rng, k = np.random.default_rng(len(means)), len(means)
    pairs = [(i, j) for i in range(k) for j in range(i)]
    equal = np.array([means[i] == means[j] for i, j in pairs])
    wrong, found = np.zeros(2), np.zeros(2)
    for _ in range(1000):
        scores = rng.normal(np.array(means)[:, None], 1, (k, 80)) + rng.normal(0, 1, 80)
        difference = np.array([scores[i] - scores[j] for i, j in pairs])
        t = difference.mean(axis=1) / (difference.std(axis=1, ddof=1) / 80**0.5)
        p = 2 * stats.t.sf(np.abs(t), 79)
        for which, adjusted in enumerate((holm(p), shaffer(p, [0] * len(p), {0: k}))):
            wrong[which] += (adjusted <= 0.05)[equal].any()
            found[which] += (adjusted <= 0.05)[~equal].sum()
    assert (wrong <= 66).all()  # more than 66 of 1,000 at 5 % occur once in a hundred times
    assert found[1] >= found[0]
    print(f"{means}: wrong {wrong / 1000}, found {found / 1000} of {int((~equal).sum())}")  # noqa: T201
