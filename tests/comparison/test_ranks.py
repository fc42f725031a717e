"""Mean ranks over problems, with the tests of Demšar (2006), against SciPy and published tables."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from support.thinned import thinned

from evaluand.comparison.ranks import (
    FEWEST_PROBLEMS,
    critical_difference,
    fewest_pairs,
    friedman,
    range_quantile,
    range_within,
    rank_rows,
    rank_systems,
    wilcoxon,
)

# J. Demšar (2006), tables 5 (a): critical values of the two-tailed Nemenyi test for 2 to 10 systems
NEMENYI = {
    0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
    0.10: [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
}

# The accuracies of C4.5 with four ways to choose parameters on 14 data sets: Demšar (2006), table 6
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)

matrices = st.tuples(st.integers(1, 8), st.integers(2, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 4).map(float))
)


@pytest.mark.parametrize("level", NEMENYI)
def test_critical_values_are_those_of_the_published_table(level: float) -> None:
    found = [range_quantile(1 - level, k) / math.sqrt(2) for k in range(2, 11)]
    assert found == pytest.approx(NEMENYI[level], abs=0.001)


@thinned("k", [2, 3, 7, 30, 100], every=3)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_quantiles_of_the_range_are_those_of_scipy(k: int, confidence: float) -> None:
    found = range_quantile(confidence, k)
    assert found == pytest.approx(stats.studentized_range.ppf(confidence, k, np.inf), rel=1e-6)
    assert range_within(found, k) == pytest.approx(confidence, abs=1e-12)


def test_the_example_of_demsar_gives_his_figures() -> None:
    found = rank_systems(AUC, np.full(14, True))
    assert found.mean == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=0.001)
    assert found.friedman is not None
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    assert found.against_control is not None  # by 14 problems and 4 systems: 0.016, 0.607, 0.019 before Holm
    assert found.against_control == pytest.approx([math.nan, 3 * 0.0157, 0.608, 3 * 0.0157], abs=0.001, nan_ok=True)
    assert np.isnan(rank_systems(AUC, np.full(14, True), control=3).against_control).tolist() == [False] * 3 + [True]
    assert found.friedman.chi_squared == pytest.approx(stats.friedmanchisquare(*AUC.T).statistic)
    # without the correction for ties, the paper has 9.28 and 3.69
    assert found.friedman.chi_squared >= 9.28


@given(matrices)
def test_friedman_is_that_of_scipy(values: np.ndarray) -> None:
    n, k = values.shape
    found = friedman(rank_rows(values))
    if (np.ptp(values, axis=1) == 0).all():
        assert found == (0.0, 1.0, 0.0, 1.0)
        return
    if k > 2:
        expected = stats.friedmanchisquare(*values.T)
        assert found.chi_squared == pytest.approx(expected.statistic, abs=1e-9)
        assert found.p_chi_squared == pytest.approx(expected.pvalue, abs=1e-9)
    if math.isfinite(found.f) and n > 1:
        assert found.p == pytest.approx(stats.f.sf(found.f, k - 1, (k - 1) * (n - 1)), abs=1e-9)


@given(matrices)
def test_ranks_are_those_of_scipy_and_have_a_fixed_sum(values: np.ndarray) -> None:
    ranks, k = rank_rows(values), values.shape[1]
    assert ranks == pytest.approx(stats.rankdata(values, axis=1))
    assert ranks.sum(axis=1) == pytest.approx(k * (k + 1) / 2)


@given(matrices, st.data())
def test_another_order_of_the_systems_gives_the_same_result(values: np.ndarray, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(values.shape[1])))
    higher = np.full(len(values), True)
    one, other = rank_systems(values, higher), rank_systems(values[:, order], higher)
    assert other.mean == pytest.approx(one.mean[list(order)])
    assert one.p is None if other.p is None else other.p == pytest.approx(one.p)
    if one.letters is not None and other.letters is not None:
        moved = [one.letters[place] for place in order]
        shared = [[bool({*a} & {*b}) for a in letters] for letters in (moved, other.letters) for b in letters]
        assert shared[: len(order)] == shared[len(order) :]


def test_lower_values_are_better_where_the_metric_says_so() -> None:
    values = np.array([[1.0, 2.0], [1.0, 2.0]])
    assert rank_systems(values, np.array([True, False])).ranks.tolist() == [[2.0, 1.0], [1.0, 2.0]]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9))
def test_the_signed_rank_test_counts_every_pattern_of_signs(changes: list[int]) -> None:
    found, kept = wilcoxon(np.array(changes, float)), [each for each in changes if each]
    if not kept:
        assert found.p == 1
        return
    ranks = stats.rankdata(np.abs(kept))
    sums = [ranks[[bool(pattern >> i & 1) for i in range(len(kept))]].sum() for pattern in range(2 ** len(kept))]
    assert found.p == pytest.approx(min(2 * np.mean(np.array(sums) <= found.statistic), 1.0))


@pytest.mark.parametrize("n", [6, 20, 50, 300])
def test_the_signed_rank_test_is_that_of_scipy(n: int) -> None:
    change = np.random.default_rng(n).normal(0.1, 1, n)
    method = "exact" if n <= 200 else "asymptotic"
    expected = stats.wilcoxon(change, method=method)
    found = wilcoxon(change)
    assert found.statistic == expected.statistic
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_rounding_makes_no_difference_of_two_scores() -> None:
    assert rank_rows(np.array([[0.3, 0.1 + 0.2]])).tolist() == [[1.5, 1.5]]
    sizes = wilcoxon(np.array([0.3 - 0.2, 0.2 - 0.1, -0.5]), np.array([0.3, 0.2, 0.5]))
    assert sizes.statistic == 3.0  # the first two share the ranks 1 and 2


def test_two_systems_are_compared_by_signs_if_scales_differ() -> None:
    values = np.array([[float(n), 0.0] for n in range(1, 7)])
    found = rank_systems(values, np.full(6, True), same_scale=False)
    assert (found.test, found.p) == ("sign", stats.binomtest(6, 6).pvalue)
    assert rank_systems(values, np.full(6, True)).test == "wilcoxon"


def test_with_too_few_problems_there_is_no_test_but_a_sentence() -> None:
    few = rank_systems(np.random.default_rng(0).random((FEWEST_PROBLEMS - 1, 3)), np.full(FEWEST_PROBLEMS - 1, True))
    assert few.test is None
    assert few.reason == "the test needs at least 5 ranked problems; there are 4"
    two = rank_systems(np.eye(5, 2), np.full(5, True))
    assert two.reason == "two systems need at least 6 ranked problems; there are 5"
    assert rank_systems(np.ones((9, 1)), np.full(9, True)).reason == "one system has no other to be compared with"
    assert np.isnan(rank_systems(np.empty((0, 3)), np.empty(0, bool)).mean).all()


def test_as_few_problems_as_needed_can_be_significant() -> None:
    assert 2.0 ** (1 - fewest_pairs(0.05)) < 0.05 <= 2.0 ** (2 - fewest_pairs(0.05))
    same_order = np.tile(np.array([3.0, 2.0, 1.0]), (FEWEST_PROBLEMS, 1))
    found = rank_systems(same_order, np.full(FEWEST_PROBLEMS, True))
    assert found.friedman is not None
    assert (found.friedman.f, found.p, found.method) == (math.inf, pytest.approx(6.0**-4), "exact")
    assert found.letters == ["a", "ab", "b"]


@pytest.mark.parametrize("ranks", [[1.0, 2.0, 3.0], [1.5, 1.5, 3.0], [1.0, 2.5, 2.5, 4.0]])
def test_agreement_on_all_problems_is_as_likely_as_counting_all_orders_says(ranks: list[float]) -> None:
    orders = [*{*permutations(ranks)}]
    same = sum(len({*drawn}) == 1 for drawn in product(orders, repeat=3))
    assert friedman(np.array([ranks] * 3)).p == pytest.approx(same / len(orders) ** 3)
    assert friedman(np.array([ranks])).p == 1


def test_of_equal_systems_few_are_told_apart_also_with_the_fewest_problems() -> None:
    """All orders of three systems on five problems are equally likely: at most 5 % of them may be significant."""
    orders = np.array([*permutations([1.0, 2.0, 3.0])])
    draws = Counter(tuple(sorted(draw)) for draw in product(range(6), repeat=FEWEST_PROBLEMS))
    found = {draw: rank_systems(orders[[*draw]], np.full(FEWEST_PROBLEMS, True)) for draw in draws}
    assert sum(draws[draw] for draw, each in found.items() if len({*(each.letters or [])}) > 1) <= 0.05 * draws.total()


def test_systems_nearer_than_the_critical_difference_share_a_letter() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(np.linspace(0, 3, 8), 1, (20, 8))
    found = rank_systems(values, np.full(20, True))
    assert found.letters is not None
    distance = critical_difference(8, 20)
    for a in range(8):
        for b in range(8):
            near = abs(found.mean[a] - found.mean[b]) < distance
            assert bool({*found.letters[a]} & {*found.letters[b]}) == near
