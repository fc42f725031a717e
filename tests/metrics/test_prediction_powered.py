"""A judge's values of all rows and a few labels as one mean, against ppi_py, formulas and simulation.

pytest -m slow tests/metrics/test_prediction_powered.py -s    makes the figures of docs/intervals.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from support.effort import simulations

from evaluand.metrics.prediction_powered import PredictionPowered, prediction_powered_mean

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


@pytest.mark.parametrize("name", ["both", "people"])
def test_a_stratum_whose_labels_agree_is_not_certain(name: str) -> None:
    parts = rows_of([0, 0, 0, 26], [0, 874]), rows_of([13, 0, 0, 13], [50, 24])
    judged, labels = np.concatenate(parts, axis=1)
    stratum = np.repeat([0, 1], [900, 100])

    found = getattr(prediction_powered_mean(judged, labels, stratum=stratum, range=SHARE), name)

    lowest = stats.binomtest(26, 26).proportion_ci(method="wilson").low
    assert found.low <= found.value - 0.9 * (1 - lowest)
    assert found.high < found.value + 0.1 * 0.25


def test_strata_that_are_alike_have_about_the_interval_of_one() -> None:
    judged, labels = rows_of([12, 2, 9, 27], [360, 590])
    order = np.random.default_rng(2).permutation(2000)
    judged, labels = np.tile(judged, 2)[order], np.tile(labels, 2)[order]
    stratum = np.empty(2000, np.int64)
    for known in (np.isnan(labels), ~np.isnan(labels)):
        stratum[known] = np.arange(known.sum()) % 2

    one, two = (prediction_powered_mean(judged, labels, stratum=each, range=SHARE).both for each in (None, stratum))

    assert two.value == pytest.approx(one.value, abs=0.01)
    assert two.high - two.low == pytest.approx(one.high - one.low, rel=0.05)


def test_clusters_across_strata_are_not_independent() -> None:
    judged, labels = rows_of([12, 2, 9, 27], [160, 190])
    n, cluster = len(judged), np.arange(len(judged))
    once = prediction_powered_mean(judged, labels)

    twice = prediction_powered_mean(
        np.tile(judged, 2), np.tile(labels, 2), cluster=np.tile(cluster, 2), stratum=np.repeat([0, 1], n)
    )

    assert (twice.people.low, twice.people.high) == pytest.approx((once.people.low, once.people.high), rel=0.02)


def test_heavy_labels_that_agree_do_not_make_the_rest_negligible() -> None:
    judged, labels = rows_of([10, 0, 0, 40], [190, 760])
    weight = np.where(judged == 1, np.where(np.arange(1000) % 5 == 0, 8.0, 1.0), 1.0)

    found = prediction_powered_mean(judged, labels, weight=weight, range=SHARE).people

    spread = found.value * (1 - found.value)
    known = weight[~np.isnan(labels)]
    kish = known.sum() ** 2 / (known @ known)
    assert found.effective < (kish + 50) / 2
    assert found.high - found.low > 2 * 1.96 * math.sqrt(spread / 50)


def test_a_stratum_with_one_label_leaves_no_interval() -> None:
    parts = rows_of([0, 0, 0, 1], [60, 40]), rows_of([9, 1, 2, 8], [70, 10])
    judged, labels = np.concatenate(parts, axis=1)

    found = prediction_powered_mean(judged, labels, stratum=np.repeat([0, 1], [101, 100]), range=SHARE)

    assert found.both.reason == "too few labels for an interval: only 1 independent one in some stratum"
    assert math.isnan(found.both.low)
    assert 0 < found.both.value < 1


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.slow
def test_with_strata_the_p_value_agrees_with_the_interval(confidence: float) -> None:
    draw = np.random.default_rng(11)
    labels = draw.choice([-1.0, 0.0, 1.0], (60, 300), p=[0.15, 0.5, 0.35])
    judged = np.where(draw.random((60, 300)) < 0.8, labels, 0.0)
    stratum = np.arange(300) % 3
    decisions = set()

    for row, said in zip(judged, np.where(np.arange(300) < 40, labels, math.nan), strict=True):
        found = prediction_powered_mean(row, said, stratum=stratum, range=(-1.0, 1.0), confidence=confidence)
        assert (found.p < 1 - confidence) == (not found.both.low <= 0 <= found.both.high)
        decisions.add(found.p < 1 - confidence)

    assert decisions == {False, True}


def test_a_stratum_without_labels_leaves_the_mean_undefined() -> None:
    judged, labels = rows_of([5, 1, 2, 8], [70, 10])
    stratum = np.where(np.isnan(labels), 1, 0)

    found = prediction_powered_mean(judged, labels, stratum=stratum, range=SHARE)

    assert math.isnan(found.both.value)
    assert found.both.reason == "1 of 2 strata has no label; label some rows of each"
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
    times = simulations(300)
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
    times = simulations(500)
    pairs = ((0.5, 0.5), (0.8, 0.8), (0.95, 0.95), (0.5, 0.7), (0.8, 0.9))
    found = {cell: simulate_difference(*cell, times=times) for cell in product((0.6, 0.8, 0.95), pairs, (50, 200))}
    for (agreement, rates, n), one in found.items():
        print(n, agreement, *rates, *(f"{name} {value:.3f}" for name, value in one.items()))  # noqa: T201
    coverage = np.array([one["coverage"] for one in found.values()])
    level = np.array([one["significant"] for (_, (a, b), _), one in found.items() if a == b])

    assert 0.93 <= coverage.mean() <= 0.975
    assert coverage.min() >= 0.91 - 3 * math.sqrt(0.91 * 0.09 / times)
    assert level.mean() <= 0.055 + (times < 500 and 2 * math.sqrt(0.055 * 0.945 / (times * len(level))))
    assert max(one["ratio"] for one in found.values()) <= 1.03


@dataclass(frozen=True)
class Design:
    """How rows are drawn, and which of them have labels.

    Attributes:
        shares: of strata in the rows.
        rates: the mean of people in each stratum.
        proportional: labels are divided among strata as rows are; else each has as many.
        weigh: the weights of so many rows.
        size: so many rows depend on each other, and all of them have labels, or none.
    """

    shares: tuple[float, ...] = (1.0,)
    rates: tuple[float, ...] = (0.8,)
    proportional: bool = False
    weigh: Callable[[np.random.Generator, int], np.ndarray] | None = None
    size: int = 1

    @property
    def truth(self) -> float:
        return float(np.dot(self.shares, self.rates))

    def draw(self, draw: np.random.Generator, agreement: float, n: int, rows: int = 1000) -> dict[str, Any]:
        stratum = draw.choice(len(self.shares), rows, p=self.shares)
        cluster = np.arange(rows) // self.size
        rate = np.array(self.rates)[stratum]
        if self.size > 1:
            rate = draw.beta(2 * rate, 2 - 2 * rate)[cluster]
        said = (draw.random(rows) < rate).astype(float)
        judged = np.where(draw.random(rows) < agreement, said, 1 - said)
        shares = np.array(self.shares if self.proportional else [1 / len(self.shares)] * len(self.shares))
        labelled = np.concatenate(
            [np.flatnonzero(stratum == each)[:count] for each, count in enumerate(np.rint(n * shares).astype(int))]
        )
        labels = np.full(rows, np.nan)
        labels[labelled] = said[labelled]
        weight = None if self.weigh is None else self.weigh(draw, rows)
        return {"judged": judged, "labels": labels, "weight": weight, "cluster": cluster, "stratum": stratum}


def few_heavy(draw: np.random.Generator, rows: int) -> np.ndarray:
    return np.where(draw.random(rows) < 0.2, 8.0, 1.0)


def lognormal(draw: np.random.Generator, rows: int) -> np.ndarray:
    return np.exp(draw.normal(size=rows))


TWO, FOUR = (0.9, 0.1), (0.6, 0.2, 0.1, 0.1)
UNEQUAL = {TWO: (0.9, 0.3), FOUR: (0.95, 0.8, 0.5, 0.3)}
STRATA = {
    f"{len(shares)} strata, {'proportional' if proportional else 'as many'} labels": [
        Design(shares, rates, proportional) for rates in (UNEQUAL[shares], (0.8,) * len(shares))
    ]
    for shares, proportional in product((TWO, FOUR), (False, True))
}
WEIGHTS = {
    name: [Design(rates=(rate,), weigh=weigh) for rate in (0.8, 0.95)]
    for name, weigh in (("a fifth weighs 8", few_heavy), ("lognormal weights", lognormal))
}
CLUSTERS = {"clusters of 4": [Design(rates=(rate,), size=4) for rate in (0.8, 0.95)]}


def simulate_design(design: Design, agreement: float, n: int, times: int) -> dict[str, float]:
    draw = np.random.default_rng([n, int(100 * agreement), len(design.shares), design.size])
    found = [prediction_powered_mean(**design.draw(draw, agreement, n), range=SHARE) for _ in range(times)]
    ends, alone = (
        np.array([one[1:3] for one in each]) for each in zip(*((one.both, one.people) for one in found), strict=True)
    )
    return {
        "both": float(((ends[:, 0] <= design.truth) & (design.truth <= ends[:, 1])).mean()),
        "people": float(((alone[:, 0] <= design.truth) & (design.truth <= alone[:, 1])).mean()),
        "ratio": float(np.diff(ends).mean() / np.diff(alone).mean()),
    }


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50, 200])
def test_intervals_cover_with_strata_weights_and_clusters(n: int) -> None:
    times = simulations(500)
    designs = {name: each for name, each in (STRATA | WEIGHTS | CLUSTERS).items() if n > 20 or name in STRATA}
    cells = [(name, one, agreement) for name, each in designs.items() for one in each for agreement in (0.6, 0.8, 0.95)]
    found = [simulate_design(one, agreement, n, times) for _, one, agreement in cells]
    for (name, one, agreement), figures in zip(cells, found, strict=True):
        print(n, name, *one.rates, agreement, *(f"{key} {value:.3f}" for key, value in figures.items()))  # noqa: T201
    for whose in ("both", "people"):
        coverage = np.array([figures[whose] for figures in found])
        assert 0.93 <= coverage.mean() <= (0.985 if n == 20 else 0.97)
        assert coverage.min() >= (0.9 if n == 20 else 0.91) - 3 * math.sqrt(0.91 * 0.09 / times)
