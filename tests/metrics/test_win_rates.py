"""Win rates of systems against each other and on average.

    pytest -m slow tests/metrics/test_win_rates.py -s

prints a part of the table in docs/intervals.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.ratings.win_rates import WinRates, win_rates
from evaluand.metrics.stats.intervals import Spread, clustered_wilson

NAN = float("nan")


def crossed(n: int, systems: int, seed: int = 0) -> MatchRows:
    """All pairs of systems on `n` examples, whose outcomes depend on each other within an example."""
    rng = np.random.default_rng(seed)
    ability = np.arange(systems) / 2 + rng.normal(size=(n, systems))
    a, b = np.triu_indices(systems, 1)
    chance = 1 / (1 + np.exp(ability[:, b] - ability[:, a]))
    outcome = (rng.random(chance.shape) < chance).astype(float)
    return MatchRows.read(
        np.tile(a, n), np.tile(b, n), outcome.ravel(), np.repeat(np.arange(n), len(a)), systems=systems
    )


def assert_equal_rates(left: WinRates, right: WinRates) -> None:
    for one, other in zip((*left.rate, *left.average), (*right.rate, *right.average), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_rates_average_probabilities_and_count_ties_as_halves() -> None:
    rows = MatchRows.read(a=[0, 1, 0, 2], b=[1, 0, 1, 0], outcome=[0.6, 0.5, 0.1, 0.9], cluster=[0, 1, 2, 0])
    rates = win_rates(rows)
    np.testing.assert_allclose(rates.rate.value, [[NAN, 0.4, 0.1], [0.6, NAN, NAN], [0.9, NAN, NAN]])
    np.testing.assert_allclose(rates.average.value, [0.25, 0.6, 0.9])
    assert rates.wins.tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert rates.ties.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert rates.n.tolist() == [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    assert rates.examples.tolist() == [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    assert (rates.opponents.tolist(), rates.average_examples.tolist()) == ([2, 1, 1], [3, 3, 1])


def test_rates_do_not_depend_on_which_system_is_called_a() -> None:
    rows = crossed(30, 4)
    swapped = MatchRows.read(rows.b, rows.a, 1 - rows.outcome, rows.cluster, systems=4)
    assert_equal_rates(win_rates(rows), win_rates(swapped))
    low, high = win_rates(rows).rate.low, win_rates(rows).rate.high
    np.testing.assert_allclose(low, 1 - high.T)


MATCHES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(1, 3),
        st.sampled_from([0, 0.2, 0.5, 0.9, 1]),
        st.integers(0, 4),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=25,
)


@given(MATCHES)
def test_rates_are_those_of_a_loop_over_all_matches(matches: list[tuple[int, int, float, int, int]]) -> None:
    a, further, outcome, cluster, weight = map(np.array, zip(*matches, strict=True))
    b = (a + further) % 4
    rows = MatchRows.read(a, b, outcome.astype(float), cluster, systems=4, weight=weight)
    rates = win_rates(rows)
    for i in range(4):
        seen = [(b[k], outcome[k], weight[k]) for k in range(len(a)) if a[k] == i]
        seen += [(a[k], 1 - outcome[k], weight[k]) for k in range(len(a)) if b[k] == i]
        opponents = sorted({each[0] for each in seen})
        means = []
        for j in opponents:
            own = [(share, n) for opponent, share, n in seen if opponent == j]
            means.append(sum(share * n for share, n in own) / sum(n for _, n in own))
            assert rates.rate.value[i, j] == pytest.approx(means[-1])
            assert rates.n[i, j] == sum(n for _, n in own)
        assert rates.average.value[i] == pytest.approx(np.mean(means) if means else NAN, nan_ok=True)
        assert rates.opponents[i] == len(opponents)
        known = ~np.isnan(rates.average.low[i])
        assert not known or 0 <= rates.average.low[i] <= rates.average.value[i] + 1e-12
        assert not known or rates.average.value[i] - 1e-12 <= rates.average.high[i] <= 1


def test_the_interval_of_an_average_is_that_of_the_means_of_examples() -> None:
    n = 40
    rows = crossed(n, 3)
    means = np.array([rows.outcome[(rows.cluster == each) & (rows.a == 0)].mean() for each in range(n)])
    spread = Spread(np.array([means.var(ddof=1) / n]), np.array([n]), np.array([float(n)]))
    low, high = clustered_wilson(np.array([means.mean()]), spread, 0.9)
    average = win_rates(rows, confidence=0.9).average
    np.testing.assert_allclose([end[0] for end in average], [means.mean(), low[0], high[0]])


def test_repeated_matches_on_an_example_do_not_narrow_the_interval() -> None:
    rows = crossed(30, 3)
    columns = [np.tile(each, 5) for each in (rows.a, rows.b, rows.outcome, rows.cluster)]
    assert_equal_rates(win_rates(rows), win_rates(MatchRows.read(*columns)))


def test_opponents_that_were_met_once_do_not_collapse_the_interval() -> None:
    outcome = [1.0, 0.0] * 10
    rows = MatchRows.read([0] * 20, list(range(1, 21)), outcome, list(range(20)))
    average = win_rates(rows).average
    low, high = clustered_wilson(np.array([0.5]), Spread(np.array([0.25 / 20]), np.array([20]), np.array([20.0])), 0.95)
    np.testing.assert_allclose([average.low[0], average.high[0]], [low[0], high[0]])


def test_one_example_gives_no_interval_and_a_system_without_matches_no_rate() -> None:
    rates = win_rates(MatchRows.read([0, 0], [1, 1], [1.0, 1.0], [3, 3], systems=3))
    np.testing.assert_array_equal(rates.average.value, [1, 0, NAN])
    assert np.isnan([*rates.average.low, *rates.average.high, rates.rate.low[0, 1]]).all()
    assert rates.opponents.tolist() == [1, 1, 0]


def test_no_matches_give_no_rates() -> None:
    empty = np.zeros(0, np.int64)
    rates = win_rates(MatchRows.read(empty, empty, np.zeros(0), empty, systems=2))
    assert np.isnan(rates.rate.value).all()
    assert np.isnan(rates.average.value).all()


@pytest.mark.slow
@pytest.mark.parametrize(("systems", "n", "per_example"), [(4, 10, 6), (5, 40, 1), (5, 100, 3), (12, 60, 2)])
def test_intervals_of_averages_cover_the_truth(systems: int, n: int, per_example: int) -> None:
    rng = np.random.default_rng(1)
    mean = rng.normal(size=systems)
    a, b = np.triu_indices(systems, 1)
    ability = mean + rng.normal(size=(20_000, systems))
    chance = 1 / (1 + np.exp(ability[:, b] - ability[:, a]))
    true = np.zeros((systems, systems))
    true[a, b], true[b, a] = chance.mean(axis=0), 1 - chance.mean(axis=0)
    average = true.sum(axis=1) / (systems - 1)
    covered = []
    for _ in range(1000):
        ability = mean + rng.normal(size=(n, systems))
        pairs = np.argsort(rng.random((n, len(a))), axis=1)[:, :per_example].ravel()
        cluster = np.repeat(np.arange(n), per_example)
        chance = 1 / (1 + np.exp(ability[cluster, b[pairs]] - ability[cluster, a[pairs]]))
        outcome = (rng.random(len(pairs)) < chance).astype(float)
        found = win_rates(MatchRows.read(a[pairs], b[pairs], outcome, cluster, systems=systems)).average
        covered += ((found.low <= average) & (average <= found.high))[~np.isnan(found.low)].tolist()
    name = f"average of {systems} systems, {n} examples × {per_example} matches"
    print(f"| {name} | {np.mean(covered):.3f} |")  # noqa: T201
    assert 0.92 <= np.mean(covered) <= 0.975
