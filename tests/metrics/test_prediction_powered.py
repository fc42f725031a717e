"""A judge's values of all rows and a few labels as one mean, against ppi_py, formulas and simulation.

pytest -m slow tests/metrics/test_prediction_powered.py -s    makes the figures of docs/intervals.md
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from evaluand.metrics.judging.prediction_powered import PredictionPowered, prediction_powered_mean

SHARE = (0.0, 1.0)


def rows_of(labelled: list[int], others: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Values of the judge and labels.

    Args:
        labelled: how many rows have the label and the judge's value (0, 0), (0, 1), (1, 0) and (1, 1).
        others: how many of the rest the judge gives 0 and 1.
    """
    cells = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.0), (math.nan, 1.0)]
    labels, judged = np.repeat(np.array(cells), labelled + others, axis=0).T
    return judged, labels


PPI_PY = [
    ([12, 2, 9, 27], [360, 590], 0.74022, 0.63536, 0.84508),
    ([103, 6, 4, 87], [410, 390], 0.47109, 0.43007, 0.51211),
    ([2, 2, 22, 34], [191, 249], 0.93252, 0.86948, 0.99555),
]
"""Labelled rows, others, and point estimate and 95 % interval of ppi_mean_pointestimate and ppi_mean_ci, ppi_py 0.2."""


@pytest.mark.parametrize(("labelled", "others", "value", "low", "high"), PPI_PY)
def test_the_mean_is_that_of_ppi_py(
    labelled: list[int], others: list[int], value: float, low: float, high: float
) -> None:
    found = prediction_powered_mean(*rows_of(labelled, others), range=SHARE).both

    assert found.value == pytest.approx(value, abs=1e-3)  # ppi_py estimates the variance of the judge from all rows
    assert found.high - found.low == pytest.approx(high - low, rel=0.12)  # a normal interval, which covers too rarely


def test_the_share_of_the_judge_makes_the_variance_smallest() -> None:
    draw = np.random.default_rng(3)
    judged, labels = draw.normal(size=400), np.full(400, np.nan)
    labels[:60] = 0.5 * judged[:60] + draw.normal(size=60)
    y, f, rest = labels[:60], judged[:60], judged[60:]

    def variance(share: float) -> float:
        return float(np.var(y - share * f) / 60 + share**2 * np.var(rest) / 340)

    found = prediction_powered_mean(judged, labels)

    grid = np.linspace(0, 1, 100_001)
    best = grid[np.argmin([variance(share) for share in grid[::100]]) * 100]
    assert found.weight == pytest.approx(best, abs=1e-3)
    assert found.both.value == pytest.approx(y.mean() + found.weight * (rest.mean() - f.mean()))


def test_of_labels_and_judge_each_is_shown_alone() -> None:
    found = prediction_powered_mean(*rows_of([12, 2, 9, 27], [360, 590]), range=SHARE)

    assert (found.judge.value, found.judge.n) == (pytest.approx(619 / 1000), 1000)
    assert (found.people.value, found.people.n) == (pytest.approx(36 / 50), 50)
    low, high = stats.binomtest(619, 1000).proportion_ci(method="wilson")
    assert (found.judge.low, found.judge.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


def test_a_judge_that_says_nothing_about_the_labels_does_not_count() -> None:
    judged, labels = rows_of([10, 10, 15, 15], [900, 50])

    found = prediction_powered_mean(judged, labels, range=SHARE)

    assert found.weight == 0.0
    assert found.both.value == found.people.value == 0.6
    assert found.both.high - found.both.low == pytest.approx(found.people.high - found.people.low, rel=0.02)


def test_a_judge_that_is_never_wrong_counts_fully_but_labels_do_not_prove_it() -> None:
    found = prediction_powered_mean(*rows_of([25, 0, 0, 25], [2975, 6975]), range=SHARE)

    assert found.weight == pytest.approx(1.0, abs=0.01)
    assert found.both.value == pytest.approx(0.7, abs=0.002)
    assert found.both.high - found.both.low > 0.07  # 50 labels may have missed an error in every 20 rows


def test_where_every_row_has_a_label_people_decide_alone() -> None:
    judged, labels = rows_of([10, 5, 3, 32], [0, 0])

    found = prediction_powered_mean(judged, labels, range=SHARE)

    assert found.both.value == found.people.value == pytest.approx(0.7)


def test_rows_of_a_cluster_count_as_one() -> None:
    judged, labels = rows_of([12, 2, 9, 27], [160, 190])
    once = prediction_powered_mean(judged, labels)
    cluster = np.repeat(np.arange(len(judged)), 3)

    thrice = prediction_powered_mean(np.repeat(judged, 3), np.repeat(labels, 3), cluster=cluster)

    assert thrice.both.value == pytest.approx(once.both.value)
    assert thrice.weight == pytest.approx(once.weight)
    assert (thrice.both.low, thrice.both.high) == pytest.approx((once.both.low, once.both.high))


def test_weights_count_as_further_rows_do() -> None:
    judged, labels = rows_of([12, 2, 9, 27], [160, 190])
    weight = 1.0 + np.arange(len(judged)) % 3
    times = weight.astype(int)

    weighted = prediction_powered_mean(judged, labels, weight=weight)
    repeated = prediction_powered_mean(
        np.repeat(judged, times), np.repeat(labels, times), cluster=np.repeat(np.arange(len(judged)), times)
    )

    for name in ("both", "judge", "people"):
        one, other = getattr(weighted, name), getattr(repeated, name)
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


def test_strata_are_weighted_by_all_their_rows() -> None:
    parts = rows_of([9, 1, 2, 8], [70, 10]), rows_of([2, 0, 1, 7], [0, 390])
    judged, labels = np.concatenate(parts, axis=1)
    stratum = np.repeat([0, 1], [100, 400])

    found = prediction_powered_mean(judged, labels, stratum=stratum, range=SHARE)

    share = found.weight
    first = 10 / 20 + share * (10 / 80 - 9 / 20)
    second = 8 / 10 + share * (390 / 390 - 7 / 10)
    assert found.both.value == pytest.approx(0.2 * first + 0.8 * second)
    assert found.people.value == pytest.approx(0.2 * 10 / 20 + 0.8 * 8 / 10)


def test_a_stratum_without_labels_leaves_the_mean_undefined() -> None:
    judged, labels = rows_of([5, 1, 2, 8], [70, 10])
    stratum = np.where(np.isnan(labels), 1, 0)

    found = prediction_powered_mean(judged, labels, stratum=stratum, range=SHARE)

    assert math.isnan(found.both.value)
    assert found.both.reason == "1 of 2 strata have no label; label some rows of each"
    assert found.judge.value == pytest.approx(19 / 96)


@pytest.mark.parametrize("labelled", [0, 1, 2])
def test_few_labels_give_no_interval_and_say_so(labelled: int) -> None:
    found = prediction_powered_mean(*rows_of([0, 0, 0, labelled], [60, 40]), range=SHARE).both

    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason == (
        f"too few labels for an interval: {labelled} independent ones" if labelled else "no row is labelled by people"
    )


def test_values_without_range_and_without_spread_have_no_interval() -> None:
    judged, labels = np.ones(50), np.where(np.arange(50) < 10, 1.0, np.nan)

    found = prediction_powered_mean(judged, labels)

    assert found.both.value == 1.0
    assert math.isnan(found.both.low)
    assert found.both.reason == "no interval: all labels are equal, and the range of the values is unknown"


def test_a_difference_is_the_mean_of_differences_with_a_p_value() -> None:
    draw = np.random.default_rng(5)
    truth = draw.random((2, 2000)) < [[0.5], [0.8]]
    judged = np.where(draw.random((2, 2000)) < 0.9, truth, ~truth).astype(float)
    labels = np.where(np.arange(2000) < 100, truth, np.nan).astype(float)

    found = prediction_powered_mean(judged[1] - judged[0], labels[1] - labels[0], range=(-1.0, 1.0))

    assert found.both.value == pytest.approx(0.3, abs=0.12)
    assert found.both.low > 0
    assert found.p < 0.05
    assert math.isnan(prediction_powered_mean(judged[0], labels[0], range=SHARE).p)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=3, max_size=12),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=20),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_value_lies_in_its_interval_and_the_interval_agrees_with_the_p_value(
    labelled: list[tuple[float, float]], others: list[float], confidence: float
) -> None:
    labels = np.array([one for one, _ in labelled] + [math.nan] * len(others)) * 2 - 1
    judged = np.array([other for _, other in labelled] + others) * 2 - 1

    found = prediction_powered_mean(judged, labels, range=(-1.0, 1.0), confidence=confidence)

    assert -1 <= found.both.low <= found.both.value <= found.both.high <= 1
    assert 0 <= found.weight <= 1
    if not math.isnan(found.p) and abs(found.p - (1 - confidence)) > 1e-6:
        assert (found.p < 1 - confidence) == (not found.both.low <= 0 <= found.both.high)


# ---- simulation ----

GRID = list(product((0.6, 0.8, 0.95), (0.5, 0.8, 0.95), (1_000, 10_000)))
"""Agreement of the judge, mean of the labels, and judged rows."""

KINDS = ("binary", "graded", "graded, errors at random")


def joint(kind: str, agreement: float, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, values of the judge, and the probability of each pair of them.

    Grades are 0, ¼, … 1. Where the judge errs, it says the opposite; or grades as people do another answer; or gives
    any other grade.
    """
    grades = np.array([0.0, 1.0]) if kind == "binary" else np.linspace(0, 1, 5)
    of_people = stats.binom.pmf(np.arange(len(grades)), len(grades) - 1, rate)
    same, n = np.eye(len(grades)), len(grades)
    errs = np.tile(of_people, (n, 1)) if kind == "graded" else (1 - same) / (n - 1)
    chance = of_people[:, None] * (agreement * same + (1 - agreement) * errs)
    return np.repeat(grades, n), np.tile(grades, n), chance.ravel() / chance.sum()


def theoretical_factor(labels: np.ndarray, judged: np.ndarray, chance: np.ndarray, n: int, rows: int) -> float:
    """The width of the interval relative to that of labels alone: √(1 − ρ² N / (N + n)), N rows without label."""
    mean, other = chance @ labels, chance @ judged
    covariance = chance @ (labels * judged) - mean * other
    square = covariance**2 / ((chance @ labels**2 - mean**2) * (chance @ judged**2 - other**2))
    return math.sqrt(1 - square * (rows - n) / rows)


def draw_rows(
    draw: np.random.Generator, cells: tuple[np.ndarray, np.ndarray, np.ndarray], n: int, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    labels, judged, chance = cells
    picked = draw.choice(len(chance), rows, p=chance)
    return judged[picked], np.where(np.arange(rows) < n, labels[picked], np.nan)


def simulate(kind: str, agreement: float, rate: float, rows: int, n: int, times: int) -> dict[str, float]:
    draw = np.random.default_rng([n, rows, int(100 * agreement), int(100 * rate), KINDS.index(kind)])
    cells = joint(kind, agreement, rate)
    truth = float(cells[2] @ cells[0])
    found: list[PredictionPowered] = [
        prediction_powered_mean(*draw_rows(draw, cells, n, rows), range=SHARE) for _ in range(times)
    ]
    ends = np.array([each.both[1:3] for each in found])
    alone = np.array([each.people[1:3] for each in found])
    ratio = float((ends[:, 1] - ends[:, 0]).mean() / (alone[:, 1] - alone[:, 0]).mean())
    return {
        "coverage": float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()),
        "bias": float(np.mean([each.both.value for each in found])) - truth,
        "ratio": ratio,
        "theory": theoretical_factor(*cells, n, rows),
    }


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200])
def test_intervals_cover_the_truth_and_are_narrower_than_those_of_labels_alone(n: int) -> None:
    times = 300
    cells = [(kind, *each) for kind in KINDS for each in GRID]
    found = {cell: simulate(*cell, n=n, times=times) for cell in cells}
    for cell, one in found.items():
        print(n, *cell, *(f"{name} {value:.3f}" for name, value in one.items()))  # noqa: T201 - figures of the page
    coverage = np.array([one["coverage"] for one in found.values()])
    ratio = {cell: one["ratio"] for cell, one in found.items()}

    assert 0.93 <= coverage.mean() <= 0.97
    assert coverage.min() >= 0.91 - 3 * math.sqrt(0.91 * 0.09 / times)
    assert max(ratio.values()) <= 1.03
    excess = [one["ratio"] / one["theory"] for one in found.values()]
    assert np.median(excess) <= (1.05 if n == 200 else 1.15)
    assert max(abs(one["bias"]) for one in found.values()) < 0.02


def simulate_difference(agreement: float, rates: tuple[float, float], n: int, times: int) -> dict[str, float]:
    """Two systems whose right answers depend on each other, judged on 1,000 examples; n of them labelled for both."""
    draw = np.random.default_rng([n, int(100 * agreement), *(int(100 * rate) for rate in rates)])
    found: list[PredictionPowered] = []
    for _ in range(times):
        shared, own = draw.random(1000), draw.random((2, 1000))
        ease = np.where(draw.random((2, 1000)) < 0.5, shared, own)
        truth = ease < np.array(rates)[:, None]
        judged = np.where(draw.random((2, 1000)) < agreement, truth, ~truth).astype(float)
        labels = np.where(np.arange(1000) < n, truth, np.nan)
        found.append(prediction_powered_mean(judged[1] - judged[0], labels[1] - labels[0], range=(-1.0, 1.0)))
    ends = np.array([each.both[1:3] for each in found])
    alone = np.array([each.people[1:3] for each in found])
    difference = rates[1] - rates[0]
    return {
        "coverage": float(((ends[:, 0] <= difference) & (difference <= ends[:, 1])).mean()),
        "significant": float(np.mean([each.p < 0.05 for each in found])),
        "ratio": float(np.diff(ends).mean() / np.diff(alone).mean()),
    }


@pytest.mark.slow
def test_differences_of_systems_cover_the_truth_and_equal_ones_rarely_differ() -> None:
    times = 500
    pairs = ((0.5, 0.5), (0.8, 0.8), (0.95, 0.95), (0.5, 0.7), (0.8, 0.9))
    found = {cell: simulate_difference(*cell, times=times) for cell in product((0.6, 0.8, 0.95), pairs, (50, 200))}
    for (agreement, rates, n), one in found.items():
        print(n, agreement, *rates, *(f"{name} {value:.3f}" for name, value in one.items()))  # noqa: T201
    coverage = np.array([one["coverage"] for one in found.values()])
    level = np.array([one["significant"] for (_, (a, b), _), one in found.items() if a == b])

    assert 0.93 <= coverage.mean() <= 0.975
    assert coverage.min() >= 0.91 - 3 * math.sqrt(0.91 * 0.09 / times)
    assert level.mean() <= 0.055
    assert max(one["ratio"] for one in found.values()) <= 1.03
