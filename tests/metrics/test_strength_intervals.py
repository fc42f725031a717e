"""The uncertainty of strengths: standard errors, influences, and intervals by a bootstrap over examples."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from support.places import ROOT_FOLDER

from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry
from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, Ties, count_matches
from evaluand.metrics.ratings.strength_intervals import (
    draw_strengths,
    explain_open_ends,
    influences,
    standard_errors,
    strength_intervals,
)
from evaluand.metrics.stats.resampling import acceleration, bca_ends, resampling_units

TIES = get_args(Ties)


def draw(examples: int, each: int, seed: int, systems: int = 3, shared: float = 1.0) -> MatchRows:
    """Examples of several matches; how well each system does on an example varies."""
    random = np.random.default_rng(seed)
    n = examples * each
    quality = np.linspace(0.6, -0.6, systems) + shared * random.normal(size=(examples, systems))
    cluster = np.repeat(np.arange(examples), each)
    a = random.integers(0, systems, n)
    b = (a + random.integers(1, systems, n)) % systems
    latent = quality[cluster, a] - quality[cluster, b] + random.logistic(size=n)
    outcome = np.where(latent > 0.5, 1.0, np.where(latent < -0.5, 0.0, 0.5))
    return MatchRows.read(a, b, outcome, cluster, systems=systems)


def duel(wins: int, losses: int) -> MatchRows:
    n = wins + losses
    return MatchRows.read([0] * n, [1] * n, [1.0] * wins + [0.0] * losses, np.arange(n))


# Standard errors


def test_standard_errors_are_those_of_clustered_logistic_regression() -> None:
    rows = draw(40, 5, seed=0)
    design = (rows.a[:, None] == np.arange(2)) * 1.0 - (rows.b[:, None] == np.arange(2))
    model = sm.GLM(rows.outcome, design, family=sm.families.Binomial())
    theirs = model.fit(cov_type="cluster", cov_kwds={"groups": rows.cluster, "use_correction": False})
    ours = standard_errors(rows, fit_bradley_terry(count_matches(rows)))
    expected = np.sqrt(np.diagonal(theirs.cov_params()) * 40 / 39)  # of the differences from the third system
    assert ours.difference[2, :2] == pytest.approx(expected, rel=1e-6)
    assert ours.examples == 40


@pytest.mark.parametrize("penalty", [0.0, 2.0])
@pytest.mark.parametrize("ties", TIES)
def test_standard_errors_agree_with_leaving_out_each_example(ties: Ties, penalty: float) -> None:
    rows = draw(150, 6, seed=1)
    fit = fit_bradley_terry(count_matches(rows), ties, penalty)
    parts = [count_matches(rows.select(rows.cluster != each)) for each in range(150)]
    sides = (np.stack([getattr(part, side) for part in parts]) for side in ("wins", "ties", "losses", "score"))
    left_out = fit_bradley_terry(MatchCounts(3, parts[0].a, parts[0].b, *sides), ties, penalty)
    strength, tie = left_out.strength, left_out.tie
    errors = standard_errors(rows, fit)
    assert errors.strength == pytest.approx(np.sqrt(149 * strength.var(axis=0)), rel=0.03)
    assert ties == "half" or errors.tie == pytest.approx(math.sqrt(149 * tie.var()), rel=0.03)
    moved = influences(rows, fit, resampling_units(rows.cluster))
    assert moved == pytest.approx(fit.strength - strength, abs=0.1 * np.abs(moved).max())


def test_errors_need_two_examples_and_a_strength() -> None:
    one = MatchRows.read([0, 0], [1, 1], [1.0, 0.0], [0, 0])
    assert np.isnan(standard_errors(one, fit_bradley_terry(count_matches(one))).strength).all()
    rows = MatchRows.read([0, 0, 0, 2], [1, 1, 1, 0], [1.0, 0.0, 1.0, 1.0], [0, 1, 2, 3])
    errors = standard_errors(rows, fit_bradley_terry(count_matches(rows)))
    assert np.isnan(errors.strength).tolist() == [False, False, True]
    assert np.isnan(errors.difference[2]).all()
    only_ties = MatchRows.read([0, 0], [1, 1], [0.5, 0.5], [0, 1])
    for ties in ("davidson", "rao_kupper"):
        fit = fit_bradley_terry(count_matches(only_ties), ties, penalty=1.0)  # type: ignore[arg-type]
        assert np.isnan(standard_errors(only_ties, fit).strength).all()
        assert np.isnan(strength_intervals(only_ties, fit, replicates=100).low).all()


# Intervals


def test_intervals_are_about_as_wide_as_standard_errors_say() -> None:
    rows = draw(300, 6, seed=2)
    for ties in TIES:
        fit = fit_bradley_terry(count_matches(rows), ties)
        ends, errors = strength_intervals(rows, fit, replicates=1000), standard_errors(rows, fit)
        assert (ends.high - ends.low) / errors.strength == pytest.approx(2 * 1.96, rel=0.12)
        width = ends.difference_high - ends.difference_low
        assert width[~np.eye(3, dtype=np.bool_)] == pytest.approx(
            2 * 1.96 * errors.difference[~np.eye(3, dtype=np.bool_)], rel=0.12
        )


def test_ends_of_a_difference_are_bias_corrected_and_accelerated() -> None:
    rows = draw(40, 3, seed=6)
    fit = fit_bradley_terry(count_matches(rows))
    ends, drawn = strength_intervals(rows, fit, replicates=200), draw_strengths(rows, fit, 200)
    influence = influences(rows, fit, resampling_units(rows.cluster))
    skew = acceleration(influence[:, [0]] - influence[:, [1]])
    quantile = scipy.stats.t.ppf(0.975, 39) * math.sqrt(40 / 39)
    low, high = bca_ends(drawn.differences(0)[:, [1]], fit.strength[[0]] - fit.strength[1], skew, quantile)
    assert (ends.difference_low[0, 1], ends.difference_high[0, 1]) == (pytest.approx(low[0]), pytest.approx(high[0]))


def test_intervals_of_differences_are_the_same_from_either_side() -> None:
    rows = draw(30, 4, seed=3)
    ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows)), replicates=200)
    assert ends.difference_low == pytest.approx(-ends.difference_high.T, abs=1e-8)
    assert np.diagonal(ends.difference_low).tolist() == [0.0] * 3
    again = strength_intervals(rows, fit_bradley_terry(count_matches(rows)), replicates=200)
    assert np.array_equal(ends.low, again.low)


def test_an_interval_is_open_at_the_side_of_undefeated_replicates() -> None:
    """One loss of twenty is in no draw of every third replicate."""
    rows = duel(19, 1)
    fit = fit_bradley_terry(count_matches(rows))
    drawn = draw_strengths(rows, fit, 1000)
    assert len(drawn.parted) == pytest.approx(1000 * 0.95**20, rel=0.1)
    assert set(drawn.differences(0)[drawn.parted, 1].tolist()) == {math.inf}
    ends = strength_intervals(rows, fit)
    assert (ends.high[0], ends.low[1]) == (math.inf, -math.inf)
    assert 0 < ends.low[0] < fit.strength[0]
    assert (ends.difference_high[0, 1], ends.difference_low[1, 0]) == (math.inf, -math.inf)
    assert ends.difference_low[0, 1] > 0


def test_an_undefeated_replicate_of_one_system_leaves_the_others_differences_closed() -> None:
    others = draw(60, 2, seed=4, systems=2, shared=0.0)
    strong, weak = [2] * 20, [0, 1] * 10
    rows = MatchRows.read(
        [*others.a, *strong], [*others.b, *weak], [*others.outcome, *[1.0] * 19, 0.0], [*others.cluster, *range(60, 80)]
    )
    ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows)))
    assert math.isfinite(ends.difference_low[0, 1])
    assert math.isfinite(ends.difference_high[0, 1])
    assert (ends.difference_high[2, 0], ends.high[2], ends.low[0]) == (math.inf, math.inf, -math.inf)
    assert math.isfinite(ends.difference_low[2, 0])
    assert ends.parted == pytest.approx([0, 0, 0.95**20], abs=0.06)
    own = f'wins and ties do not link "C" both ways with the others in {ends.parted[2]:.0%} of the draws'
    mean = f"the interval is open, as strengths are relative to the mean of all, and {own}"
    assert explain_open_ends(ends, "ABC") == [mean, mean, f"the interval is open, as {own}"]


def test_an_interval_is_open_on_both_sides_where_replicates_fall_apart() -> None:
    """Two pairs are linked by one match, which is in no draw of every third replicate."""
    pairs = [(0, 1, 1.0), (0, 1, 0.0), (2, 3, 1.0), (2, 3, 0.0)] * 10 + [(1, 2, 0.5)]
    a, b, outcome = zip(*pairs, strict=True)
    rows = MatchRows.read(a, b, outcome, range(41))
    fit = fit_bradley_terry(count_matches(rows))
    assert fit.rated.all()
    drawn = draw_strengths(rows, fit, 500)
    assert np.isnan(drawn.differences(1)[drawn.parted, 2]).all()
    ends = strength_intervals(rows, fit, replicates=500)
    assert (ends.difference_low[1, 2], ends.difference_high[1, 2]) == (-math.inf, math.inf)
    assert math.isfinite(ends.difference_high[0, 1] - ends.difference_low[0, 1])


def test_a_penalty_closes_intervals() -> None:
    rows = duel(20, 0)
    ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows), penalty=1.0), replicates=200)
    assert np.isnan([ends.low, ends.high]).all()  # all examples agree, so all replicates are equal
    rows = duel(19, 1)
    ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows), penalty=1.0), replicates=200)
    assert np.isfinite([ends.low, ends.high]).all()


def test_examples_that_all_agree_have_no_interval() -> None:
    """Whatever is first wins: every example says the same, and nothing says how far another sample could differ."""
    rows = MatchRows.read([0] * 20, [1] * 20, [1.0, 0.0] * 10, np.arange(20) // 2)
    ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows)), replicates=200)
    assert np.isnan([ends.low, ends.high]).all()
    assert np.isnan(ends.difference_low[0, 1])


def test_one_example_and_unrated_systems_have_no_interval() -> None:
    one = MatchRows.read([0, 0], [1, 1], [1.0, 0.0], [0, 0])
    assert np.isnan(strength_intervals(one, fit_bradley_terry(count_matches(one))).low).all()
    rows = MatchRows.read([0, 0, 0, 2], [1, 1, 1, 0], [1.0, 0.0, 1.0, 1.0], [0, 1, 2, 3])
    ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows)), replicates=100)
    assert np.isnan(ends.low).tolist() == [False, False, True]
    nobody = duel(3, 0)
    assert np.isnan(strength_intervals(nobody, fit_bradley_terry(count_matches(nobody))).low).all()


def test_sparse_replicates_converge() -> None:
    """Eight systems with fifty matches: most replicates fall apart, and all fits must still end."""
    random = np.random.default_rng(0)
    a = random.integers(0, 8, 50)
    b = (a + random.integers(1, 8, 50)) % 8
    rows = MatchRows.read(a, b, random.choice([0.0, 0.5, 1.0], 50), range(50), systems=8)
    for ties in TIES:
        fit = fit_bradley_terry(count_matches(rows), ties)
        drawn = draw_strengths(rows, fit, 100)
        assert np.isfinite(drawn.strength).all()
        assert fit.converged


# Coverage


@pytest.mark.slow
def test_intervals_and_errors_hold_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT_FOLDER / "benchmarks"))
    import ratings

    found = [ratings.measure_coverage(cell, simulations=300, replicates=400) for cell in ratings.CELLS[::6]]
    for name in ("difference", "strength"):
        shares = [getattr(each, name) for each in found]
        assert 0.93 <= np.mean(shares) <= 0.97
        assert min(shares) >= 0.91
    assert all(0.85 <= each.error <= 1.15 for each in found)
