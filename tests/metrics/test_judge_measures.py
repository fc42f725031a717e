"""What a judge is worth: agreement, errors, biases and corrected means, against independent references."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from evaluand import SpecError
from evaluand.metrics.judging.alpha import RATINGS, KrippendorffAlpha, Level
from evaluand.metrics.judging.differences import Slope, contrast_within, mean_difference
from evaluand.metrics.judging.estimate import Estimate, estimate, kappa, rogan_gladen, share

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")

PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
"""Four observers and twelve units: K. Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), section D."""


def alpha(ratings: np.ndarray, level: Level = "nominal") -> Estimate:
    return estimate(KrippendorffAlpha(level=level), {RATINGS: ratings}, np.arange(len(ratings)))


def alpha_by_definition(ratings: np.ndarray, level: Level) -> float:
    """From all pairs of ratings, one by one."""
    units = [row[~np.isnan(row)].tolist() for row in ratings]
    units = [unit for unit in units if len(unit) > 1]
    every = [rating for unit in units for rating in unit]

    def distance(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "ordinal":
            low, high = sorted((a, b))
            between = sum(low <= rating <= high for rating in every)
            return float(between - (every.count(a) + every.count(b)) / 2) ** 2 if a != b else 0.0
        return (a - b) ** 2 if level == "interval" else ((a - b) / (a + b)) ** 2 if a + b else 0.0

    within = sum(distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2))
    between = sum(distance(a, b) for a, b in permutations(every, 2))
    return 1 - (len(every) - 1) * within / between if between else math.nan


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_alpha_has_the_published_values(level: Level, published: float) -> None:
    assert alpha(np.array(PUBLISHED, float).T, level).value == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize("level", LEVELS)
@given(data=st.data())
def test_alpha_is_that_of_all_pairs_of_ratings(level: Level, data: st.DataObject) -> None:
    rating = st.one_of(st.none(), st.integers(0, 3))
    raters = data.draw(st.integers(2, 4))
    rows = data.draw(st.lists(st.lists(rating, min_size=raters, max_size=raters), min_size=1, max_size=8))
    ratings = np.array(rows, float)
    assert alpha(ratings, level).value == pytest.approx(alpha_by_definition(ratings, level), nan_ok=True)


def test_alpha_says_why_it_is_undefined() -> None:
    assert alpha(np.array([[1.0, np.nan], [np.nan, 2.0]])).reason == "no row has two ratings"
    assert alpha(np.ones((3, 2))).reason == "all ratings are one value, so chance agrees everywhere"
    assert alpha(np.empty((0, 2))).reason == "no scored rows"
    with pytest.raises(SpecError, match="level is the text 'cardinal'; give one of nominal, ordinal, interval, ratio"):
        KrippendorffAlpha(level="cardinal")  # type: ignore[arg-type]


def test_alpha_of_few_rare_labels_has_a_wide_interval() -> None:
    """With no agreement on the rare label, the rows alone would say that there never is one."""
    ratings = np.zeros((40, 2))
    ratings[[0, 1, 2], 0] = ratings[[3, 4, 5], 1] = 1
    found = alpha(ratings)
    assert found.value < 0
    assert found.high > 0.3


@given(st.integers(0, 30), st.integers(1, 30))
def test_a_share_of_independent_rows_has_wilsons_interval(right: int, wrong: int) -> None:
    values = np.array([1.0] * right + [0.0] * wrong)
    found = share(values, np.arange(len(values)))
    low, high = proportion_confint(right, right + wrong, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.effective == right + wrong


def test_rows_of_an_example_count_as_much_as_they_differ() -> None:
    """Four equal rows of each example are worth as much as one."""
    once, example = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]), np.arange(6)
    found = share(np.repeat(once, 4), np.repeat(example, 4))
    assert found.effective == pytest.approx(5)  # the variance of six, which n − 1 makes that of five
    assert found.low < share(once, example).low
    assert share(np.ones(4), np.zeros(4)).reason == "one cluster has no interval"


def labels(n: int, seed: int = 0, levels: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    people = random.integers(0, levels, n)
    return people, np.where(random.random(n) < 0.6, people, random.integers(0, levels, n))


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
@pytest.mark.parametrize("names", [["low", "medium", "high"], [1, 2, 3]])
def test_kappa_is_that_of_scikit_learn(weights: Any, names: list[Any]) -> None:
    people, judge = labels(200)
    found = kappa(people, judge, names, np.arange(200), weights=weights)
    assert found.value == pytest.approx(cohen_kappa_score(people, judge, weights=weights))
    assert found.low < found.value < found.high


def test_kappa_has_no_interval_where_nearly_all_labels_are_one() -> None:
    people, judge = np.zeros(100, int), np.zeros(100, int)
    people[:5] = judge[3:8] = 1
    found = kappa(people, judge, ["no", "yes"], np.arange(100))
    assert found.value == pytest.approx(cohen_kappa_score(people, judge))
    assert (math.isnan(found.low), found.reason) == (True, "no interval: too few rows have other labels than most")


@given(st.lists(st.integers(-2, 2), min_size=2, max_size=40))
def test_a_mean_difference_changes_sign_with_its_rows(rows: list[int]) -> None:
    values, cluster = np.array(rows, float), np.arange(len(rows)) // 2
    found, opposite = (mean_difference(sign * values, cluster, 2.0) for sign in (1, -1))
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((-opposite.high, -opposite.low), nan_ok=True)
    scaled = mean_difference(10 * values, cluster, 20.0)
    assert (scaled.low, scaled.high) == pytest.approx((10 * found.low, 10 * found.high), nan_ok=True)
    if len(rows) > 2:
        assert -2 <= found.low <= found.value <= found.high <= 2


def test_a_mean_of_no_differences_has_an_interval() -> None:
    found = mean_difference(np.zeros(50), np.arange(50), 1.0)
    _, high = proportion_confint(0, 50, method="wilson")
    assert (found.value, found.low, found.high) == pytest.approx((0.0, -math.sqrt(1) * high, high))


def test_rows_are_compared_with_the_others_that_have_the_same_label() -> None:
    values, chosen = np.array([1.0, 0.5, 1.0, 0.0, 0.5, 0.0]), np.array([True] * 3 + [False] * 3)
    one_label = np.zeros(6)
    found = contrast_within(values, chosen, one_label, np.arange(6))
    other = contrast_within(values, ~chosen, one_label, np.arange(6))
    assert found.value == pytest.approx(2.5 / 3 - 0.5 / 3)
    assert (found.low, found.high) == pytest.approx((-other.high, -other.low))
    for nothing_in_common in (chosen.astype(float), np.arange(6.0)):
        alone = contrast_within(values, chosen, nothing_in_common, np.arange(6))
        assert "no label of people is common to both" in (alone.reason or "")


def test_a_slope_is_that_of_least_squares() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=60)
    y = 0.3 * x + random.normal(size=60)
    found = estimate(Slope(), {"truth": y, "prediction": x}, np.arange(60))
    assert found.value == pytest.approx(np.polyfit(x, y, 1)[0])
    assert found.low < found.value < found.high
    flat = estimate(Slope(), {"truth": y, "prediction": np.ones(60)}, np.arange(60))
    assert flat.reason == "all of them are equal, so there is no line"


def known(value: float, n: int = 1000) -> Estimate:
    return Estimate(value, value, value, n, float(n))


@given(st.floats(0.01, 0.99), st.floats(0.7, 1), st.floats(0.7, 1))
def test_a_mean_is_corrected_for_known_errors(right: float, sensitivity: float, specificity: float) -> None:
    judged = right * sensitivity + (1 - right) * (1 - specificity)
    found = rogan_gladen(known(judged), known(sensitivity), known(specificity))
    assert found.value == pytest.approx(right)
    assert 0 <= found.low < found.high <= 1


def test_more_labels_narrow_the_interval_of_a_corrected_mean() -> None:
    few, many = (rogan_gladen(known(0.6), known(0.9, n), known(0.8, n)) for n in (40, 4000))
    assert few.value == many.value == pytest.approx(4 / 7)
    assert few.high - few.low > 2 * (many.high - many.low)


@pytest.mark.parametrize(
    ("judged", "beyond"),
    [
        (0.95, "0.95 of these answers for right, more than the 0.8 of right answers"),
        (0.02, "0.02 of these answers for right, less than the 0.1 of wrong ones"),
    ],
)
def test_nothing_is_corrected_where_no_true_share_explains_what_the_judge_found(judged: float, beyond: str) -> None:
    found = rogan_gladen(known(judged), known(0.8), known(0.9))
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert beyond in str(found.reason)


@pytest.mark.parametrize(
    ("judged", "sensitivity", "specificity"),
    [(known(1.0, 200), known(1.0, 2), known(1.0, 38)), (known(0.0, 200), known(37 / 38, 38), known(1.0, 2))],
)
def test_a_judge_that_was_never_wrong_on_few_answers_is_corrected(
    judged: Estimate, sensitivity: Estimate, specificity: Estimate
) -> None:
    found = rogan_gladen(judged, sensitivity, specificity)
    assert found.value == judged.value
    assert 0 <= found.low <= found.high <= 1


def test_a_corrected_mean_at_its_limit_has_an_interval_within_it() -> None:
    found = rogan_gladen(known(0.8), known(0.8), known(0.9))
    assert found.value == pytest.approx(1)
    assert 0.9 < found.low < found.high == 1


def test_nothing_is_corrected_by_a_judge_that_may_guess() -> None:
    found = rogan_gladen(known(0.5), known(0.55, 50), known(0.55, 50))
    assert math.isnan(found.value)
    assert found.reason == "the judge is not shown to be better than chance, so nothing can be corrected"
    unknown = rogan_gladen(known(0.5), known(0.9), share(np.empty(0), np.empty(0)))
    assert (math.isnan(unknown.value), unknown.reason) == (True, "no scored rows")
