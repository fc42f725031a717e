"""Tests of two samples agree with SciPy, keep their level for rows that belong together, and bound effects."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from evaluand.metrics.stats.two_samples import (
    Sides,
    chance_larger,
    chance_stability_index,
    changed_ranks,
    chi_squared,
    chi_squared_tail,
    kolmogorov_smirnov,
    rank_sum,
    share_changes,
    stability_index,
)


def apart(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Sides]:
    n = len(x) + len(y)
    return np.concatenate([x, y]), Sides(np.arange(n) >= len(x), np.arange(n))


@pytest.mark.parametrize(("n", "m", "shift"), [(4000, 3000, 0.0), (4000, 3000, 0.06), (6000, 500, 0.1)])
def test_many_rows_have_the_asymptotic_p_values_of_scipy(n: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(n + m)
    x, y = rng.normal(size=n), rng.normal(shift, 1, m)
    values, sides = apart(x, y)
    smirnov, theirs = kolmogorov_smirnov(values, sides), stats.ks_2samp(x, y, method="exact")
    assert smirnov.statistic == pytest.approx(theirs.statistic)
    assert smirnov.p == pytest.approx(theirs.pvalue, rel=0.05, abs=1e-6)
    ranks, mann = rank_sum(values, sides), stats.mannwhitneyu(y, x, alternative="greater", use_continuity=False)
    assert ranks.statistic == pytest.approx(mann.statistic / (n * m))
    assert ranks.p == pytest.approx(mann.pvalue, rel=0.01)
    code = np.digitize(values, [-1, 0, 1])
    table = np.array([np.bincount(part, minlength=4) for part in (code[:n], code[n:])])
    pearson = chi_squared(code, sides)
    assert (pearson.statistic, pearson.p) == pytest.approx(stats.chi2_contingency(table, correction=False)[:2])


def test_few_rows_have_the_p_values_of_all_exchanges() -> None:
    x, y = np.array([1.0, 2, 4, 5, 7]), np.array([3.0, 6, 8, 9, 9, 10])
    values, sides = apart(x, y)

    def statistic(second: np.ndarray) -> float:
        return float(stats.ks_2samp(values[~second], values[second]).statistic)

    every = []
    for chosen in itertools.combinations(range(11), 6):
        second = np.zeros(11, np.bool_)
        second[list(chosen)] = True
        every.append(statistic(second))
    exact = np.mean(np.array(every) >= statistic(sides.second) - 1e-9)
    assert kolmogorov_smirnov(values, sides).p == pytest.approx(exact, rel=0.2)


def test_pairs_are_compared_with_themselves() -> None:
    """A small change of each of 60 examples is plain in pairs, and invisible between two samples."""
    rng = np.random.default_rng(1)
    before = rng.normal(0, 10, 60)
    after = before + rng.normal(1.0, 0.3, 60)
    values, unpaired = apart(before, after)
    paired = Sides(unpaired.second, np.concatenate([np.arange(60)] * 2))
    assert paired.paired.all()
    assert paired.units == (60, 60)
    assert changed_ranks(values, unpaired).p > 0.2
    assert changed_ranks(values, paired).p < 0.001


def test_rows_of_a_cluster_change_sides_together() -> None:
    values = np.repeat([1.0, 2.0, 3.0, 4.0], 50)
    rows = Sides(np.repeat([False, False, True, True], 50), np.arange(200))
    clusters = Sides(rows.second, np.repeat(np.arange(4), 50))
    assert kolmogorov_smirnov(values, rows).p < 0.001
    assert kolmogorov_smirnov(values, clusters).p == pytest.approx(1 / 3, rel=0.2)  # 2 of 6 ways
    assert math.isnan(chance_larger(values, Sides(np.arange(200) >= 150, np.repeat(np.arange(4), 50))).low)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_the_stability_index_is_the_sum_over_bins(a: list[int], b: list[int]) -> None:
    code, sides = apart(np.array(a), np.array(b))
    bins = sorted({*a, *b})
    p = np.array([a.count(each) + 0.5 for each in bins]) / (len(a) + 0.5 * len(bins))
    q = np.array([b.count(each) + 0.5 for each in bins]) / (len(b) + 0.5 * len(bins))
    assert stability_index(code, sides) == pytest.approx(float(((q - p) * np.log(q / p)).sum()), abs=1e-12)


def test_equal_distributions_exceed_the_stability_index_by_chance_in_five_of_a_hundred_cases() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        code, sides = apart(rng.integers(0, 10, 1000), rng.integers(0, 10, 600))
        found.append(stability_index(code, sides) > chance_stability_index(10, sides))
    assert 0.02 <= np.mean(found) <= 0.085


@given(st.floats(0.01, 200), st.integers(1, 60))
def test_chi_squared_tails_are_those_of_scipy(x: float, degrees: int) -> None:
    assert chi_squared_tail(x, degrees) == pytest.approx(stats.chi2.sf(x, degrees), rel=1e-9, abs=1e-300)


@given(
    st.lists(st.integers(0, 8), min_size=2, max_size=15),
    st.lists(st.integers(0, 8), min_size=2, max_size=15),
)
def test_the_chance_that_a_value_is_larger_counts_all_pairs(a: list[int], b: list[int]) -> None:
    values, sides = apart(np.array(a, float), np.array(b, float))
    exact = np.mean([(y > x) + 0.5 * (y == x) for x in a for y in b])
    value, low, high = chance_larger(values, sides)
    assert value == pytest.approx(exact)
    assert low <= value <= high


@pytest.mark.slow
def test_intervals_of_effects_cover() -> None:
    rng, covered = np.random.default_rng(0), np.zeros(2)
    truth = stats.norm.cdf(0.5 / math.sqrt(2))
    for _ in range(1000):
        values, sides = apart(rng.normal(size=150), rng.normal(0.5, 1, 100))
        _, low, high = chance_larger(values, sides)
        covered[0] += low <= truth <= high
        code, sides = apart(rng.choice(3, 150, p=[0.6, 0.3, 0.1]), rng.choice(3, 150, p=[0.5, 0.3, 0.2]))
        changes = share_changes(code, sides)
        covered[1] += all(each.low <= t <= each.high for each, t in zip(changes, (-0.1, 0.0, 0.1), strict=True))
    assert covered[0] == pytest.approx(950, abs=25)
    assert 930 <= covered[1] <= 990
