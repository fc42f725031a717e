"""Strengths by Bradley–Terry, Davidson and Rao–Kupper, compared with other fits; and systems without a strength."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog, minimize
from support.thinned import thinned

from evaluand.core.errors import SpecError
from evaluand.metrics.ratings.bradley_terry import BradleyTerryFit, explain_unrated, fit_bradley_terry
from evaluand.metrics.ratings.counts import (
    MatchCounts,
    MatchRows,
    Ties,
    connect,
    count_matches,
    largest_component,
    resample_counts,
)

TIES: Sequence[Ties] = get_args(Ties)


def counts_of(wins: Sequence[Sequence[float]], ties: Sequence[Sequence[float]] | None = None) -> MatchCounts:
    """From the wins of each system (row) against each other, and the ties, of which the upper half counts."""
    won = np.array(wins, np.float64)
    tied = np.zeros_like(won) if ties is None else np.array(ties, np.float64)
    a, b = np.triu_indices(len(won), 1)
    return MatchCounts(len(won), a, b, won[a, b], tied[a, b], won[b, a], won[a, b] + tied[a, b] / 2)


def draw(systems: int, matches: int, seed: int, threshold: float = 0.6, spread: float = 1.0) -> MatchRows:
    random = np.random.default_rng(seed)
    strength = random.normal(0, spread, systems)
    a = random.integers(0, systems, matches)
    b = (a + random.integers(1, systems, matches)) % systems
    latent = strength[a] - strength[b] + random.logistic(size=matches)
    outcome = np.where(latent > threshold, 1.0, np.where(latent < -threshold, 0.0, 0.5))
    return MatchRows.read(a, b, outcome, np.arange(matches) // 3, systems=systems)


def log_likelihood(counts: MatchCounts, strength: np.ndarray, tie: float, ties: Ties) -> float:
    """As it is written in the papers, with ratings π = exp(strength)."""
    first, second = np.exp(strength[counts.a]), np.exp(strength[counts.b])
    if ties == "half":
        share = first / (first + second)
        return float(np.sum(counts.score * np.log(share) + (counts.n - counts.score) * np.log(1 - share)))
    if ties == "davidson":
        total = first + second + tie * np.sqrt(first * second)
        win, tied, lost = first / total, tie * np.sqrt(first * second) / total, second / total
    else:
        win, lost = first / (first + tie * second), second / (second + tie * first)
        tied = first * second * (tie * tie - 1) / ((first + tie * second) * (second + tie * first))
    return float(np.sum(counts.wins * np.log(win) + counts.ties * np.log(tied) + counts.losses * np.log(lost)))


def brute_force(counts: MatchCounts, ties: Ties, penalty: float) -> tuple[np.ndarray, float]:
    systems, least = counts.systems, 1.0 if ties == "rao_kupper" else 0.0

    def loss(x: np.ndarray) -> float:
        fixed = penalty / 2 * np.sum(x[:systems] ** 2) + (0.0 if penalty else np.mean(x[:systems]) ** 2)
        return float(fixed) - log_likelihood(counts, x[:systems], least + math.exp(x[systems]), ties)

    found = minimize(loss, np.zeros(systems + 1), method="BFGS", options={"gtol": 1e-7, "maxiter": 2000}).x
    polished = minimize(loss, found, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}).x
    found = min(found, polished, key=loss)
    return found[:systems], least + math.exp(found[systems])


# Other fits


@pytest.mark.parametrize("penalty", [0.0, 0.8])
@pytest.mark.parametrize("ties", TIES)
def test_a_fit_equals_brute_force(ties: Ties, penalty: float) -> None:
    counts = count_matches(draw(4, 120, seed=1))
    fit = fit_bradley_terry(counts, ties, penalty)
    strength, tie = brute_force(counts, ties, penalty)
    assert fit.converged
    assert fit.strength == pytest.approx(strength, abs=1e-6)
    assert ties == "half" or float(fit.tie) == pytest.approx(tie, abs=1e-6)


WINS = [[0, 9, 9, 12, 11], [3, 0, 10, 10, 7], [3, 5, 0, 7, 10], [1, 1, 2, 0, 6], [2, 0, 2, 2, 0]]


def test_strengths_equal_those_of_choix() -> None:
    """By choix 0.4.1: `ilsr_pairwise`, and `opt_pairwise` with alpha=0.5, whose penalty is alpha · Σ strength²."""
    fit = fit_bradley_terry(counts_of(WINS))
    assert fit.strength == pytest.approx([1.39742601, 0.8441139, 0.20816366, -0.94047188, -1.50923168], abs=1e-7)
    fit = fit_bradley_terry(counts_of(WINS), penalty=1.0)
    assert fit.strength == pytest.approx([1.20706129, 0.71654737, 0.16342999, -0.8168399, -1.27019875], abs=1e-6)


def test_half_wins_may_be_probabilities() -> None:
    rows = MatchRows.read([0, 0], [1, 1], [0.9, 0.6], [0, 1])
    fit = fit_bradley_terry(count_matches(rows))
    assert np.ptp(fit.strength) == pytest.approx(math.log(0.75 / 0.25))


def test_two_systems_have_strengths_by_hand() -> None:
    counts = counts_of([[0, 6], [3, 0]], [[0, 2], [2, 0]])
    assert fit_bradley_terry(counts).strength[0] == pytest.approx(math.log(7 / 4) / 2)
    davidson = fit_bradley_terry(counts, "davidson")  # the fit is saturated: its shares are those observed
    assert davidson.strength[0] == pytest.approx(math.log(6 / 3) / 2)
    assert float(davidson.tie) == pytest.approx(2 / math.sqrt(6 * 3))
    win, lost = 6 / 11, 3 / 11
    rao = fit_bradley_terry(counts, "rao_kupper")
    up, down = math.log(win / (1 - win)), math.log(lost / (1 - lost))
    assert rao.strength[0] == pytest.approx((up - down) / 4)
    assert float(rao.tie) == pytest.approx(math.exp(-(up + down) / 2))


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_expected_wins_are_those_observed_of_each_system(ties: Ties) -> None:
    """With ties counted half. Rao and Kupper's model does not have this property."""
    counts = count_matches(draw(5, 300, seed=2))
    fit = fit_bradley_terry(counts, ties)
    observed = counts.square("score").sum(axis=1)
    expected = (fit.probability() * counts.square("n")).sum(axis=1)
    assert expected == pytest.approx(observed, rel=1e-9)


def test_without_ties_all_models_are_one() -> None:
    half, davidson, rao = (fit_bradley_terry(counts_of(WINS), ties) for ties in TIES)
    assert davidson.strength == pytest.approx(half.strength, abs=1e-9)
    assert rao.strength == pytest.approx(half.strength, abs=1e-9)
    assert (float(davidson.tie), float(rao.tie)) == (0.0, 1.0)
    assert math.isnan(half.tie)


@pytest.mark.parametrize("ties", TIES)
def test_one_loss_in_a_million_is_enough(ties: Ties) -> None:
    counts = counts_of([[0, 1e6, 5], [1, 0, 5], [5, 5, 0]], [[0, 0, 0], [0, 0, 3], [0, 0, 0]])
    fit = fit_bradley_terry(counts, ties)
    assert fit.converged
    expected, observed = (fit.probability() * counts.square("n")).sum(axis=1), counts.square("score").sum(axis=1)
    assert ties == "rao_kupper" or expected == pytest.approx(observed, abs=1e-3)


@pytest.mark.parametrize("ties", TIES)
def test_weights_of_very_different_size_do_not_prevent_a_fit(ties: Ties) -> None:
    counts = counts_of([[0, 1e12], [1, 0]], [[0, 1], [0, 0]])
    fit = fit_bradley_terry(counts, ties)
    assert fit.converged
    lead = {"half": (1e12 + 0.5) / 1.5, "davidson": 1e12, "rao_kupper": None}[ties]
    assert lead is None or np.ptp(fit.strength) == pytest.approx(math.log(lead), rel=1e-6)


def test_there_may_be_no_systems() -> None:
    fit = fit_bradley_terry(count_matches(MatchRows.read([], [], [], [])))
    assert fit.strength.shape == (0,)


@thinned("ties", TIES, every=3)
def test_replicates_are_fitted_as_each_alone(ties: Ties) -> None:
    rows = draw(4, 60, seed=3)
    counts = resample_counts(rows, 30, seed=1)
    together = fit_bradley_terry(counts, ties, start=np.array([3.0, -1.0, np.nan, 0.5]))
    for replicate in range(30):
        alone = fit_bradley_terry(counts.select(replicate), ties)
        assert together.strength[replicate] == pytest.approx(alone.strength, abs=1e-8, nan_ok=True)
        assert float(together.tie[replicate]) == pytest.approx(float(alone.tie), abs=1e-7, nan_ok=True)


# Order and number of systems and matches


def outcomes(systems: int) -> st.SearchStrategy[list[tuple[int, int, float, int]]]:
    pairs = list(combinations(range(systems), 2))
    match = st.tuples(st.sampled_from(pairs), st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 5))
    return st.lists(match.map(lambda each: (*each[0], each[1], each[2])), min_size=1, max_size=25)


def read(matches: Sequence[tuple[int, int, float, int]], names: Sequence[int]) -> MatchRows:
    a, b, outcome, cluster = zip(*matches, strict=True)
    return MatchRows.read([names[x] for x in a], [names[x] for x in b], outcome, cluster, systems=len(names))


@given(outcomes(5), st.permutations(range(5)), st.sampled_from(TIES), st.sampled_from([0.0, 0.5]), st.randoms())
def test_permutations_permute_strengths(
    matches: list[tuple[int, int, float, int]], names: list[int], ties: Ties, penalty: float, random: object
) -> None:
    fit = fit_bradley_terry(count_matches(read(matches, range(5))), ties, penalty)
    shuffled = random.sample(matches, len(matches))  # type: ignore[attr-defined]
    other = fit_bradley_terry(count_matches(read(shuffled, names)), ties, penalty)
    assert other.rated[names].tolist() == fit.rated.tolist()
    assert other.strength[names] == pytest.approx(fit.strength, abs=1e-6, nan_ok=True)
    assert float(other.tie) == pytest.approx(float(fit.tie), rel=1e-5, nan_ok=True)


# Systems without a strength


def reasons(counts: MatchCounts, fit: BradleyTerryFit, names: str) -> list[str | None]:
    return explain_unrated(counts, fit, list(names))


def test_undefeated_and_winless_systems_are_named() -> None:
    counts = counts_of([[0, 3, 2, 4], [0, 0, 5, 1], [0, 2, 0, 1], [0, 0, 0, 0]])
    fit = fit_bradley_terry(counts)
    assert fit.rated.tolist() == [False, True, True, False]
    assert fit.strength == pytest.approx([np.nan, math.log(5 / 2) / 2, -math.log(5 / 2) / 2, np.nan], nan_ok=True)
    assert reasons(counts, fit, "ABCD") == [
        '"A" won all of its 9 matches, so its strength has no finite estimate',
        None,
        None,
        '"D" lost all of its 6 matches, so its strength has no finite estimate',
    ]


def test_systems_above_and_below_the_rated_ones_are_named() -> None:
    """A and B beat each other and win against C, D, E, which beat each other."""
    wins = np.zeros((7, 7))
    for a, b in [(0, 1), (1, 0), (0, 2), (2, 3), (3, 4), (4, 2), (2, 5), (5, 6), (6, 5)]:
        wins[a, b] = 1
    counts = counts_of(wins.tolist())
    fit = fit_bradley_terry(counts)
    assert fit.rated.tolist() == [False, False, True, True, True, False, False]
    above = 'no chain of wins or ties leads from the rated systems to "A", so its strength has no finite estimate'
    below = 'no chain of wins or ties leads from "F" to the rated systems, so its strength has no finite estimate'
    found = reasons(counts, fit, "ABCDEFG")
    assert (found[0], found[5], found[2]) == (above, below, None)


def test_groups_that_never_met_are_named_and_the_larger_is_rated() -> None:
    wins = np.zeros((6, 6))
    for a, b in [(0, 1), (1, 2), (2, 0), (3, 4), (4, 3)]:
        wins[a, b] = 1
    counts = counts_of(wins.tolist())
    fit = fit_bradley_terry(counts)
    assert fit.rated.tolist() == [True, True, True, False, False, False]
    assert reasons(counts, fit, "ABCDEF")[3:] == [
        'no chain of wins or ties links "D" with the rated systems, so it cannot be compared with them',
        'no chain of wins or ties links "E" with the rated systems, so it cannot be compared with them',
        'no match of "F" has an outcome',
    ]


def test_of_equal_groups_that_with_more_matches_is_rated_or_none() -> None:
    wins = np.zeros((4, 4))
    for a, b in [(0, 1), (1, 0), (2, 3), (3, 2)]:
        wins[a, b] = 1
    counts = counts_of(wins.tolist())
    fit = fit_bradley_terry(counts)
    assert not fit.rated.any()
    assert reasons(counts, fit, "ABCD")[0] == (
        '"A" cannot be rated: the matches link the systems in groups, of which none is the largest'
    )
    wins[2, 3] = 2
    assert fit_bradley_terry(counts_of(wins.tolist())).rated.tolist() == [False, False, True, True]


def test_a_tie_links_two_systems() -> None:
    counts = counts_of([[0, 3], [0, 0]], [[0, 1], [1, 0]])
    assert fit_bradley_terry(counts).strength[0] == pytest.approx(math.log(7) / 2)


def test_parameters_of_ties_without_a_finite_estimate_are_reported() -> None:
    """With ν ∝ exp(d/2), wins and ties without a loss are ever more likely."""
    counts = counts_of([[0, 3], [0, 0]], [[0, 1], [1, 0]])
    for ties in ("davidson", "rao_kupper"):
        fit = fit_bradley_terry(counts, ties)  # type: ignore[arg-type]
        assert not fit.converged
        assert np.isnan(fit.strength).all()
        assert reasons(counts, fit, "AB")[1] == (
            '"B" has no finite strength: wins and ties contradict nothing, so the parameter of ties grows without '
            "limit; count ties as half wins or set a penalty"
        )


def test_a_penalty_rates_all_systems_with_matches() -> None:
    counts = counts_of([[0, 3, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], np.eye(4)[[0, 1, 3, 2]].tolist())
    fit = fit_bradley_terry(counts, penalty=0.1)
    assert fit.strength[0] > 0.5
    assert fit.strength == pytest.approx([fit.strength[0], -fit.strength[0], 0, 0])
    assert reasons(counts, fit, "ABCD") == [None] * 4
    lonely = fit_bradley_terry(counts_of([[0, 1, 0], [0, 0, 0], [0, 0, 0]]), penalty=1.0)
    assert lonely.rated.tolist() == [True, True, False]


def test_ties_alone_make_all_equal_with_a_penalty() -> None:
    counts = counts_of([[0, 0], [0, 0]], [[0, 4], [4, 0]])
    assert fit_bradley_terry(counts).strength.tolist() == [0.0, 0.0]
    fit = fit_bradley_terry(counts, "davidson", penalty=1.0)
    assert (fit.strength.tolist(), float(fit.tie)) == ([0.0, 0.0], math.inf)


def test_nobody_is_rated_without_matches() -> None:
    rows = MatchRows.read([], [], [], [], systems=2)
    fit = fit_bradley_terry(count_matches(rows))
    assert np.isnan(fit.strength).all()
    assert reasons(count_matches(rows), fit, "AB") == [
        'no match of "A" has an outcome',
        'no match of "B" has an outcome',
    ]


def recession(counts: MatchCounts) -> bool:
    """Whether strengths and a logarithm of the parameter of ties exist that explain all matches, by linear programming.

    Each match says: the exponent of its outcome, of d/2, η and −d/2, is the largest.
    """
    rows, systems = [], counts.systems
    for a, b, win, tie, lost in zip(counts.a, counts.b, counts.wins, counts.ties, counts.losses, strict=True):
        d = np.zeros(systems + 1)
        d[a], d[b] = 0.5, -0.5
        eta = np.eye(systems + 1)[systems]
        rows += [eta - d, -2 * d] if win else []
        rows += [d - eta, -d - eta] if tie else []
        rows += [eta + d, 2 * d] if lost else []
    limits = [(-1, 1)] * systems + [(-1 if not counts.ties.any() else 0, 1)]
    fixed = np.eye(systems + 1)[:1]  # the first strength is 0
    for sign, place in [(s, p) for s in (1, -1) for p in range(1, systems + 1)]:
        target = sign * np.eye(systems + 1)[place]
        if not counts.ties.any() and place == systems:
            continue
        found = linprog(-target, np.array(rows), np.zeros(len(rows)), fixed, np.zeros(1), limits, method="highs")
        if -found.fun > 1e-6:
            return True
    return False


@pytest.mark.slow
def test_estimates_are_finite_exactly_where_no_direction_explains_all_matches() -> None:
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(300):
        systems = int(random.integers(2, 5))
        wins, ties = (random.random((systems, systems)) < random.uniform(0.2, 0.7) for _ in range(2))
        counts = counts_of(wins.tolist(), ties.tolist())
        met = {name: getattr(counts, name)[counts.n > 0] for name in ("a", "b", "wins", "ties", "losses", "score")}
        counts = replace(counts, **met)
        fits = [fit_bradley_terry(counts, ties_) for ties_ in ("davidson", "rao_kupper")]
        finite = len(counts.a) > 0 and not recession(counts)
        assert [bool(fit.rated.all()) for fit in fits] == [finite, finite]
        seen.add((finite, bool(fits[0].converged)))
    assert seen == {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "third"}, "ties='third' must be one of half, davidson, rao_kupper"),
        ({"penalty": -1.0}, "penalty=-1.0 must be a finite number of at least 0"),
        ({"penalty": math.nan}, "penalty=nan must be a finite number of at least 0"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        fit_bradley_terry(counts_of(WINS), **options)  # type: ignore[arg-type]


def test_chains_are_those_of_a_search() -> None:
    """Also beyond 64 systems, where a row of bits is more than one word."""
    random = np.random.default_rng(1)
    wins = (random.random((70, 70)) < 0.02) & ~np.eye(70, dtype=np.bool_)
    connections = connect(counts_of(wins.tolist()))
    reached = np.linalg.matrix_power((wins | np.eye(70, dtype=np.bool_)).astype(float), 69) > 0
    assert np.array_equal(connections.above, reached)
    together = reached & reached.T
    assert np.array_equal(connections.together, together)
    assert largest_component(counts_of(wins.tolist()), connections).sum() == together.sum(axis=1).max()
