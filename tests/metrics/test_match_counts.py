"""Matches counted by pair, and counted again in replicates that draw examples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, count_matches, resample_counts
from evaluand.metrics.stats.intervals import cluster_sums, normal_quantile
from evaluand.metrics.stats.resampling import UNITS, bca_ends, bootstrap, draw_weights, resample_sums, resampling_units

SIDES = ("wins", "ties", "losses", "score")


def read(matches: list[tuple[int, int, float, int]], systems: int = 4) -> MatchRows:
    columns = zip(*matches, strict=True) if matches else ([], [], [], [])
    return MatchRows.read(*(list(each) for each in columns), systems=systems)


MATCH = st.tuples(
    st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.integers(-3, 9)
).filter(lambda match: match[0] != match[1])


def equal(one: MatchCounts, other: MatchCounts) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("a", "b", *SIDES))


def test_a_match_counts_the_same_from_either_side() -> None:
    forth, back = read([(0, 2, 0.75, 0)]), read([(2, 0, 0.25, 0)])
    assert equal(count_matches(forth), count_matches(back))
    assert count_matches(forth).wins.tolist() == [1.0]
    assert count_matches(forth).score.tolist() == [0.75]


def test_a_square_has_a_row_for_each_view() -> None:
    counts = count_matches(read([(0, 1, 1.0, 0), (0, 1, 0.0, 0), (0, 1, 0.5, 1), (2, 1, 1.0, 0)], systems=3))
    assert counts.square("wins").tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert counts.square("losses").tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    assert counts.square("ties").tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert counts.square("score").tolist() == [[0, 1.5, 0], [1.5, 0, 0], [0, 1, 0]]
    assert counts.square("n").tolist() == [[0, 3, 0], [3, 0, 1], [0, 1, 0]]


def test_weights_multiply_and_rows_without_weight_are_left_out() -> None:
    rows = MatchRows.read([0, 0, 1], [1, 2, 2], [1.0, 1.0, 0.0], [0, 0, 1], weight=[2.5, 0.0, 1.0])
    assert len(rows) == 2
    counts = count_matches(rows)
    assert (counts.a.tolist(), counts.b.tolist(), counts.wins.tolist()) == ([0, 1], [1, 2], [2.5, 0.0])


@given(st.lists(MATCH, min_size=1, max_size=30), st.randoms())
def test_counts_do_not_depend_on_the_order_of_matches(matches: list[Any], random: Any) -> None:
    shuffled = random.sample(matches, len(matches))
    assert equal(count_matches(read(shuffled)), count_matches(read(matches)))
    assert equal(resample_counts(read(shuffled), 5, 1), resample_counts(read(matches), 5, 1))


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ((0, 4, 1.0, 0), "row 1: a and b must be numbers from 0 to 3"),
        ((-1, 2, 1.0, 0), "row 1: a and b must be numbers from 0 to 3"),
        ((2, 2, 1.0, 0), "row 1: a and b must be two different systems"),
        ((0, 1, 1.5, 0), "row 1: the outcome must be a number from 0 to 1"),
        ((0, 1, float("nan"), 0), "row 1: the outcome must be a number from 0 to 1"),
    ],
)
def test_values_out_of_range_are_refused(match: tuple[int, int, float, int], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read([(0, 1, 1.0, 0), match])


def test_columns_are_validated() -> None:
    with pytest.raises(SpecError, match="all columns must have the same length"):
        MatchRows.read([0, 1], [1, 0], [1.0], [0, 0])
    with pytest.raises(SpecError, match="the column a must be integers"):
        MatchRows.read([0.5], [1], [1.0], [0])  # type: ignore[list-item]
    for weight in (-1.0, 1e-300, 1e300, math.nan, math.inf):
        with pytest.raises(SpecError, match="row 0: the weight must be 0, or a number from 1e-50 to 1e50"):
            MatchRows.read([0], [1], [1.0], [0], weight=[weight])
    with pytest.raises(SpecError, match="row 0: covariates must be finite numbers"):
        MatchRows.read([0], [1], [1.0], [0], covariates=[np.inf])


def test_no_matches_are_counted_and_drawn_as_nothing() -> None:
    rows = read([])
    assert count_matches(rows).n.shape == (0,)
    assert resample_counts(rows, 3).n.shape == (3, 0)


# Replicates


def random_rows(n: int, examples: int, systems: int = 4, seed: int = 0) -> MatchRows:
    random = np.random.default_rng(seed)
    a = random.integers(0, systems, n)
    b = (a + random.integers(1, systems, n)) % systems
    return MatchRows.read(a, b, random.choice([0.0, 0.5, 1.0], n), random.integers(0, examples, n), systems=systems)


def test_an_example_is_drawn_with_all_of_its_matches() -> None:
    rows = random_rows(60, 7)
    weights = draw_weights(7, 20, seed=3)
    counts = resample_counts(rows, 20, seed=3)
    for replicate in range(20):
        weighted = MatchRows.read(
            rows.a, rows.b, rows.outcome, rows.cluster, systems=4, weight=weights[replicate][rows.cluster]
        )
        expected = count_matches(weighted).square("score")
        assert np.array_equal(counts.select(replicate).square("score"), expected)


def test_a_replicate_depends_on_its_number_alone() -> None:
    rows = random_rows(60, 7)
    all_ = resample_counts(rows, 10, seed=5)
    assert equal(all_.select(slice(6, 10)), resample_counts(rows, 4, seed=5, first=6))
    assert not equal(all_, resample_counts(rows, 10, seed=6))


def test_the_draws_are_those_of_the_bootstrap_of_means() -> None:
    values = np.sort([1.0, 4, 3, 20, 10, -10, 7])  # as the bootstrap numbers them
    ones, group = np.ones(7), np.zeros(7, np.int64)
    state = cluster_sums(values, ones, np.arange(7), group)
    [low], [high] = bootstrap(state, np.array([values.mean()]), 0.95, 400, seed=2)
    [sums] = resample_sums(resampling_units(np.arange(7)), group, 1, [values], 400, seed=2)
    influence = values - values.mean()
    skew = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    ends = bca_ends(sums[:, 0] / 7, np.array(values.mean()), np.array(skew), normal_quantile(0.95))
    assert ends == (pytest.approx(low, rel=1e-12), pytest.approx(high, rel=1e-12))


def test_a_sparse_table_is_drawn_as_a_dense_one() -> None:
    units = resampling_units(np.arange(40))
    cell = np.arange(40) * 1000  # mostly empty cells are summed row by row
    [sparse] = resample_sums(units, cell, 40_000, [np.ones(40)], 3, seed=0)
    [dense] = resample_sums(units, np.arange(40), 40, [np.ones(40)], 3, seed=0)
    assert np.array_equal(sparse[:, cell], dense)
    assert sparse.sum() == 120


def test_many_examples_are_drawn_in_equal_shares_with_the_same_spread() -> None:
    values = np.random.default_rng(0).exponential(size=3 * UNITS)
    units = resampling_units(np.arange(len(values)) * 7 - 100)
    assert units.n == UNITS
    assert np.bincount(units.of_row).tolist() == [3] * UNITS
    [sums] = resample_sums(units, np.zeros(len(values), np.int64), 1, [values], 400, seed=0)
    assert sums.std() == pytest.approx(values.std() * len(values) ** 0.5, rel=0.1)


# Ends


def test_ends_next_to_unknown_replicates_are_open() -> None:
    drawn = np.linspace(-1, 1, 101)
    drawn[50] = np.nan
    low, high = bca_ends(drawn, np.array(0.0), np.array(0.0), normal_quantile(0.99))
    assert (low, high) == (-np.inf, np.inf)
    low, high = bca_ends(drawn, np.array(0.0), np.array(0.0), normal_quantile(0.9))
    assert -1 < low < -0.8
    assert 0.8 < high < 1


def test_a_skew_beyond_the_method_gives_the_extreme_replicate() -> None:
    low, high = bca_ends(np.linspace(0, 1, 11), np.array(0.5), np.array(0.6), 2.0)
    assert (0.0 < low < 0.5, high) == (True, 1.0)
