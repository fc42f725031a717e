"""Operating points, their intervals and picks, beside scikit-learn and fairlearn."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from typing import Any

import fairlearn.metrics as fairlearn
import hypothesis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st
from sklearn import metrics

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.metrics.stats.disparity import IntervalEnds, interval_of_largest
from evaluand.metrics.stats.intervals import cluster_sums, cluster_variance, clustered_wilson, merge_clusters
from evaluand.report.html.tradeoff import tradeoff_section
from evaluand.store.tables import DISPARITIES, METRICS
from evaluand.tradeoff import Confidences, Objective, Tradeoff, compare_systems, confidences, resampling, solve
from evaluand.tradeoff.confidences import counts_at, products_at
from evaluand.tradeoff.front import additive_epsilon, igd_plus, non_dominated
from evaluand.tradeoff.objectives import Limit

NAN = math.nan
FAIR = ("accuracy", "equalized_odds difference by sex")


def random_rows(seed: int = 0, n: int = 200, models: int = 2, digits: int = 2) -> tuple[np.ndarray, Any, Any]:
    random = np.random.default_rng(seed)
    truth = random.random(n) < 0.4
    sure = {f"m{i}": np.clip(truth * 0.3 + random.random(n) * 0.7, 0, 1).round(digits) for i in range(models)}
    return truth, sure, {"sex": random.choice(["f", "m"], n), "race": random.choice(["x", "y", "z"], n)}


def small(**models: list[float]) -> Confidences:
    return Confidences.read([0, 1, 0, 1], models or {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})


def no_negatives() -> Confidences:
    """Group b has positive rows alone."""
    truth = [0, 1, 0, 1, 1, 1]
    return Confidences.read(truth, {"m": [0.2, 0.8, 0.6, 0.4, 0.9, 0.3]}, {"g": list("aaaabb")})


# Points


@pytest.mark.parametrize(
    ("objective", "reference"),
    [
        ("accuracy", metrics.accuracy_score),
        ("balanced_accuracy", metrics.balanced_accuracy_score),
        ("f_beta", metrics.f1_score),
        ("recall", metrics.recall_score),
        ("matthews_correlation", metrics.matthews_corrcoef),
        ("cohen_kappa", metrics.cohen_kappa_score),
        ("jaccard", metrics.jaccard_score),
    ],
)
def test_utilities_at_thresholds_are_those_of_scikit_learn(objective: str, reference: Any) -> None:
    truth, sure, by = random_rows()
    points = solve(Confidences.read(truth, sure, by), [objective], [0.2, 0.5, 0.7, 0.9])
    expected = [
        reference(truth, sure[points.models[m]] >= t) for m, t in zip(points.model, points.threshold, strict=True)
    ]
    assert len(points) == 8
    assert points[objective] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("by", [("sex",), ("race",), ("sex", "race")])
@pytest.mark.parametrize(
    ("objective", "reference"),
    [
        ("demographic_parity difference", fairlearn.demographic_parity_difference),
        ("demographic_parity ratio", fairlearn.demographic_parity_ratio),
        ("equalized_odds difference", fairlearn.equalized_odds_difference),
        ("equalized_odds ratio", fairlearn.equalized_odds_ratio),
        ("equal_opportunity difference", fairlearn.equal_opportunity_difference),
    ],
)
@pytest.mark.slow
def test_disparities_at_thresholds_are_those_of_fairlearn(objective: str, reference: Any, by: tuple[str, ...]) -> None:
    truth, sure, attributes = random_rows(1, 400)
    text = f"{objective} by {', '.join(by)}"
    points = solve(Confidences.read(truth, sure, attributes), [text], [0.4, 0.5, 0.6])
    groups = np.stack([attributes[name] for name in by], axis=1)
    for m, t, value in zip(points.model, points.threshold, points[text], strict=True):
        decided = sure[points.models[m]] >= t
        assert value == pytest.approx(reference(truth, decided, sensitive_features=groups), abs=1e-12)


@pytest.mark.parametrize("disparity", ["difference", "ratio", "min", "max"])
def test_any_metric_by_group_is_that_of_a_metric_frame(disparity: str) -> None:
    truth, sure, by = random_rows(2, 400)
    text = f"f_beta {disparity} by race"
    points = solve(Confidences.read(truth, sure, by), [text], [0.5])
    for m, value in zip(points.model, points[text], strict=True):
        decided = sure[points.models[m]] >= 0.5
        frame = fairlearn.MetricFrame(
            metrics=metrics.f1_score, y_true=truth, y_pred=decided, sensitive_features=by["race"]
        )
        expected = {
            "min": frame.group_min,
            "max": frame.group_max,
            "ratio": frame.ratio,
            "difference": frame.difference,
        }
        assert value == pytest.approx(expected[disparity](), abs=1e-12)


def test_metrics_of_confidences_are_alike_at_all_thresholds_of_a_model() -> None:
    truth, sure, by = random_rows()
    points = solve(Confidences.read(truth, sure, by), ["roc_auc", "average_precision"], [0.2, 0.6])
    for name, reference in (("roc_auc", metrics.roc_auc_score), ("average_precision", metrics.average_precision_score)):
        expected = [reference(truth, sure[model]) for model in ("m0", "m0", "m1", "m1")]
        assert points[name] == pytest.approx(expected, abs=1e-12)


def test_a_group_without_negatives_is_left_out() -> None:
    objectives = ["false_positive_rate difference by g", "equalized_odds difference by g", "recall difference by g"]
    points = solve(no_negatives(), objectives, [0.5])
    assert math.isnan(points.value[0, 0])  # one group is left, which differs from none
    assert math.isnan(points.value[0, 1])
    assert points.value[0, 2] == 0.0  # one of two in either group


def test_a_rate_without_rows_counts_as_0_where_asked_for() -> None:
    given = no_negatives()
    objectives = ["equalized_odds difference by g", "equalized_odds ratio by g"]
    points = solve(given, objectives, [0.1, 0.5, 0.7, 0.95], undefined="zero")
    groups = list("aaaabb")
    for t, (difference, ratio) in zip(points.threshold, points.value, strict=True):
        decided = given.models["m"] >= t
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fairlearn's own, of a division by zero
            expected = fairlearn.equalized_odds_difference(given.truth, decided, sensitive_features=groups)
            assert difference == pytest.approx(expected)
            expected = fairlearn.equalized_odds_ratio(given.truth, decided, sensitive_features=groups)
            assert ratio == pytest.approx(np.nan_to_num(expected))


def test_rows_without_an_attribute_are_no_group() -> None:
    by = {"sex": ["f", "m", None, "m"]}
    given = Confidences.read([1, 1, 1, 0], {"m": [0.9, 0.2, 0.1, 0.8]}, by)
    points = solve(given, ["recall difference by sex", "recall"], [0.5])
    assert points.value[0].tolist() == [1.0, pytest.approx(1 / 3)]


def test_counts_are_those_of_each_threshold_in_any_order() -> None:
    truth, sure, by = random_rows(3)
    given = Confidences.read(truth, sure, by)
    groups, thresholds = given.groups(["race"]), np.array([0.7, 0.1, np.inf, 0.7, 0.3])
    found = counts_at(sure["m0"], given.truth, groups, thresholds)
    for i, t in enumerate(thresholds):
        for code, name in enumerate(groups.names):
            mine = by["race"] == name["race"]
            expected = metrics.confusion_matrix(truth[mine], sure["m0"][mine] >= t, labels=[False, True])
            assert found[i, code].tolist() == expected.ravel().tolist()


# Thresholds


def test_every_threshold_belongs_to_its_own_model() -> None:
    given = small(one=[0.1, 0.2, 0.8, 0.9], other=[0.31, 0.42, 0.53, 0.64])
    points = solve(given, ["accuracy"])
    assert points.threshold.tolist() == [np.inf, 0.9, 0.8, 0.2, 0.1, np.inf, 0.64, 0.53, 0.42, 0.31]
    assert points.model.tolist() == [0] * 5 + [1] * 5


def test_corners_of_the_roc_curve_are_those_of_scikit_learn() -> None:
    for seed in range(20):
        truth, sure, by = random_rows(seed, 60, 1, 1)
        points = solve(Confidences.read(truth, sure, by), ["recall", "false_positive_rate"], "roc")
        fpr, tpr, thresholds = metrics.roc_curve(truth, sure["m0"])
        assert points.threshold.tolist() == thresholds.tolist()
        assert points["recall"] == pytest.approx(tpr)
        assert points["false_positive_rate"] == pytest.approx(fpr)


def test_all_thresholds_are_never_worth_less_than_the_corners() -> None:
    more = 0
    for seed in range(100):
        truth, sure, by = random_rows(seed, 40)
        given = Confidences.read(truth, sure, by)
        every, corners = (solve(given, FAIR, which).indicators()["hv"] for which in ("every", "roc"))
        assert every >= corners - 1e-12
        more += every > corners + 1e-12
    assert more > 10


def test_a_number_of_thresholds_lies_evenly_from_0_to_1() -> None:
    for number in (5, np.int64(5)):
        assert solve(small(), ["accuracy"], number).threshold.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_points_that_make_the_same_decision_for_all_rows_are_trivial() -> None:
    points = solve(small(), ["accuracy"], [0.0, 0.1, 0.5, 0.95, np.inf])
    assert points.trivial.tolist() == [True, True, False, True, True]


def test_values_and_intervals_are_the_same_in_blocks_of_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, sure, by = random_rows(4)
    wanted = ["accuracy", "recall ratio by race", "equalized_odds difference by sex, race", "roc_auc"]
    whole = solve(Confidences.read(truth, sure, by), wanted).with_intervals()
    monkeypatch.setattr(confidences, "AT_ONCE", 60)
    parts = solve(Confidences.read(truth, sure, by), wanted).with_intervals()
    assert whole.ends is not None
    assert parts.ends is not None
    for one, other in zip((whole.trivial, *whole.ends), (parts.trivial, *parts.ends), strict=True):
        np.testing.assert_array_equal(one, other)


def test_groups_that_are_too_many_for_one_threshold_are_reported_with_their_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    truth, sure, by = random_rows(4)
    given = Confidences.read(truth, sure, by)
    points = solve(given, ["recall difference by sex, race"], [0.5])
    monkeypatch.setattr(confidences, "AT_ONCE", 24)
    points.with_intervals()
    monkeypatch.setattr(confidences, "AT_ONCE", 23)
    with pytest.raises(SpecError, match="counts of 6 groups would need 24 numbers; at most 23 are allowed"):
        solve(given, ["recall difference by sex, race"], [0.5])
    with pytest.raises(SpecError, match="counts of 6 groups would need 24 numbers; at most 23 are allowed"):
        points.with_intervals()


def test_replicates_that_are_too_many_are_reported_with_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_MOST", 99)
    with pytest.raises(SpecError, match="10 replicates of 5 points would need 100 numbers; at most 99 are allowed"):
        solve(small(), FAIR).bands(replicates=10)


# Other rows


def test_points_come_back_on_the_same_rows_though_the_front_drops_a_model() -> None:
    given = small(bad=[0.9, 0.1, 0.8, 0.2], good=[0.1, 0.9, 0.2, 0.8])
    points = solve(given, FAIR, [0.3, 0.5, 0.7])
    front = points.front()
    assert [front.models[m] for m in front.model] == ["good"] * 3
    for some in (points, front, front.deduplicated(), points.dominated()):
        again = some.at(given)
        assert again.value.tolist() == some.value.tolist()
        assert again.model.tolist() == some.model.tolist()


def test_models_are_found_by_name_on_other_rows() -> None:
    truth, sure, by = random_rows(5)
    there = solve(Confidences.read(truth, sure, by), FAIR, [0.4, 0.6])
    truth, sure, by = random_rows(6)
    turned = Confidences.read(truth, dict(reversed(sure.items())), by)
    again = there.at(turned)
    expected = [
        np.mean((sure[there.models[m]] >= t) == truth) for m, t in zip(again.model, again.threshold, strict=True)
    ]
    assert again["accuracy"] == pytest.approx(expected)
    assert again.models == there.models


def test_a_model_that_is_not_there_is_reported() -> None:
    with pytest.raises(SpecError, match="no confidences of the model 'tree'; there are: other"):
        solve(small(), FAIR).at(small(other=[0.1, 0.2, 0.3, 0.4]))


def variants() -> Tradeoff:
    """An application at two settings: no thresholds."""
    wanted = (Objective("accuracy"), Objective.parse("accuracy difference by sex"))
    value = np.array([[0.8, 0.3], [0.7, 0.1]])
    return Tradeoff(wanted, ("warm", "cold"), np.arange(2), np.full(2, NAN), value, np.zeros(2, bool))


def test_variants_without_thresholds_have_a_front_but_no_other_rows() -> None:
    points = variants()
    assert points.pick("accuracy", ["accuracy difference by sex <= 0.2"]).model.tolist() == [1]
    assert len(points.front()) == 2
    with pytest.raises(SpecError, match="some points have no threshold"):
        points.at(small(warm=[0.1, 0.2, 0.3, 0.4], cold=[0.1, 0.2, 0.3, 0.4]))
    with pytest.raises(SpecError, match="intervals need the rows"):
        points.with_intervals()
    with pytest.raises(SpecError, match="bands need the rows"):
        points.bands()


# Thresholds of groups


def decided_apart(given: Confidences, points: Tradeoff, point: int) -> np.ndarray:
    """What each row is decided at the thresholds of its group, row by row."""
    of = {tuple(name.values()): t for name, t in zip(points.threshold_groups, points.threshold[point], strict=True)}
    columns = [given.attributes[name] for name in points.threshold_groups[0]]
    sure = given.models[points.models[points.model[point]]]
    return np.array(
        [c >= of[tuple(names[code[row]] for code, names in columns)] for row, c in enumerate(sure)], np.bool_
    )


@pytest.mark.parametrize("apart", ["sex", "race", ["race", "sex"]])
@pytest.mark.parametrize("thresholds", [[0.3, 0.6], 3, "roc"])
@pytest.mark.parametrize("checked", [6, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_thresholds_of_groups_are_all_combinations(apart: Any, thresholds: Any, checked: int) -> None:
    truth, sure, by = random_rows(11, 60, 2, 1)
    given = Confidences.read(truth, sure, by)
    if apart != "sex" and thresholds == "roc":
        thresholds = [0.2, 0.5]
    points = solve(given, ["accuracy", "f_beta", "equalized_odds difference by race"], thresholds, thresholds_by=apart)
    points = points.take(slice(None, None, max(3, len(points) // checked)))
    for point in range(len(points)):
        decided = decided_apart(given, points, point)
        expected = (
            metrics.accuracy_score(truth, decided),
            metrics.f1_score(truth, decided),
            fairlearn.equalized_odds_difference(truth, decided, sensitive_features=by["race"]),
        )
        assert points.value[point] == pytest.approx(expected, abs=1e-12)
        assert points.trivial[point] == (decided.all() or not decided.any())


def test_each_group_tries_its_own_confidences() -> None:
    given = small(tree=[0.1, 0.7, 0.6, 0.9], net=[0.5, 0.5, 0.5, 0.2])
    points = solve(given, ["accuracy"], thresholds_by="sex")
    assert points.threshold_groups == ({"sex": "f"}, {"sex": "m"})
    own = {model: points.threshold[points.model == number] for number, model in enumerate(points.models)}
    assert [np.unique(own["tree"][:, group]).tolist() for group in (0, 1)] == [[0.1, 0.7, np.inf], [0.6, 0.9, np.inf]]
    assert np.unique(own["tree"], axis=0).shape == (9, 2)
    assert own["net"].tolist() == [
        [np.inf, np.inf],
        [np.inf, 0.5],
        [np.inf, 0.2],
        [0.5, np.inf],
        [0.5, 0.5],
        [0.5, 0.2],
    ]


@hypothesis.given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.1, 0.4, 0.7]), st.sampled_from("abc")), min_size=1, max_size=9
    ),
    st.lists(st.sampled_from([0.0, 0.4, 0.5, 0.7, 1.0]), min_size=1, max_size=3, unique=True),
)
def test_equal_thresholds_of_all_groups_are_one_threshold(rows: list[Any], thresholds: list[float]) -> None:
    truth, sure, group = zip(*rows, strict=True)
    given = Confidences.read(truth, {"m": sure}, {"g": group, "h": group[::-1]})
    wanted = ["accuracy", "f_beta", "recall difference by g", "selection_rate difference by h", "roc_auc"]
    one, each = solve(given, wanted, thresholds), solve(given, wanted, thresholds, thresholds_by="g")
    equal = each.take((each.threshold == each.threshold[:, :1]).all(axis=1))
    assert len(each) == len(thresholds) ** len(set(group))
    assert equal.threshold[:, 0].tolist() == thresholds
    for made in (lambda points: points, lambda points: points.with_intervals().at(given), Tradeoff.with_intervals):
        found, expected = made(equal), made(one)
        np.testing.assert_array_equal(found.value, expected.value)
        np.testing.assert_array_equal(found.trivial, expected.trivial)
        for part, other in zip(found.ends or (), expected.ends or (), strict=True):
            np.testing.assert_array_equal(part, other)


def test_the_intervals_of_thresholds_of_groups_are_those_of_their_decisions() -> None:
    truth, sure, by = random_rows(12, 300, 1)
    given = Confidences.read(truth, sure, by)
    wanted = ["accuracy", "equalized_odds difference by sex", "f_beta ratio by race", "roc_auc difference by sex"]
    points = solve(given, wanted, [0.4, 0.6], thresholds_by="sex").with_intervals()
    assert points.ends is not None
    for point in range(len(points)):
        decided = Confidences.read(truth, {"m0": decided_apart(given, points, point).astype(float)}, by)
        expected = solve(decided, wanted[:3], [0.5]).with_intervals().ends
        assert expected is not None
        for part, other in zip(points.ends, expected, strict=True):
            np.testing.assert_array_equal(part[point, :3], other[0])
    assert points.ends.low[:, 3].tolist() == [solve(given, wanted[3:], [0.5]).with_intervals().ends.low[0, 0]] * 4


def test_thresholds_of_groups_reach_what_one_threshold_does_not() -> None:
    random = np.random.default_rng(1)
    truth, sex = random.random(400) < 0.4, random.choice(["f", "m"], 400)
    sure = {"m": truth + (sex == "m") + random.normal(size=400)}
    given = Confidences.read(truth, sure, {"sex": sex})
    wanted, tried = ["accuracy", "demographic_parity difference by sex"], np.linspace(-2, 4, 25)
    one, each = solve(given, wanted, tried), solve(given, wanted, tried, thresholds_by="sex")
    assert len(each) == 625
    assert each.indicators()["hv"] > one.indicators()["hv"] + 0.01
    limits = [f"{wanted[1]} <= 0.05"]
    assert each.pick("accuracy", limits)["accuracy"] > one.pick("accuracy", limits)["accuracy"] + 0.02


def test_thresholds_of_groups_are_columns_and_hold_on_other_rows() -> None:
    given = small()
    picked = solve(given, FAIR, thresholds_by="sex").pick("accuracy")
    [row] = picked.to_arrow().to_pylist()
    assert (row["threshold sex=f"], row["threshold sex=m"], row["accuracy"]) == (0.7, 0.9, 1.0)
    other = Confidences.read([1, 1, 0], {"tree": [0.8, 0.8, 0.75]}, {"sex": ["m", "f", "f"]})
    assert picked.at(other)["accuracy"].tolist() == [pytest.approx(1 / 3)]
    females = Confidences.read([1, 1], {"tree": [0.8, 0.6]}, {"sex": ["f", "f"]})
    assert picked.at(females)["accuracy"].tolist() == [0.5]
    with pytest.raises(SpecError, match="rows of sex=x have no threshold"):
        picked.at(Confidences.read([1, 0], {"tree": [0.8, 0.6]}, {"sex": ["f", "x"]}))


def test_what_thresholds_of_groups_cannot_be_is_reported() -> None:
    truth, sure, by = random_rows(13, 300)
    given = Confidences.read(truth, sure, by)
    output = r"50 × 50 × 50 thresholds of 3 groups are 125,000 points for each of 2 models, and 100,000 are the most"
    with pytest.raises(SpecError, match=output):
        solve(given, FAIR, 50, thresholds_by="race")
    with pytest.raises(SpecError, match="no attribute 'age' to group by"):
        solve(given, FAIR, 5, thresholds_by="age")
    with pytest.raises(SpecError, match="thresholds_by must be a list and is a number"):
        solve(given, FAIR, 5, thresholds_by=3)  # type: ignore[arg-type]
    missing = Confidences.read([0, 1, 1], {"m": [0.1, 0.9, 0.8]}, {"sex": ["f", None, "m"]})
    with pytest.raises(SpecError, match="1 of 3 rows has no sex, and so no threshold; leave such rows out"):
        solve(missing, "accuracy", thresholds_by="sex")
    points = solve(given, FAIR, 3, thresholds_by="sex")
    for made in (points.bands, points.hypervolume_interval):
        with pytest.raises(SpecError, match=r"points whose groups have separate thresholds have no .*; use with_"):
            made()
    with pytest.raises(SpecError, match="s: a page shows points with one threshold, and these have one for each group"):
        tradeoff_section(0, {"s": points}, {}, {})
    with pytest.raises(SpecError, match="separate thresholds of groups need `iterate_counts`"):
        counts_at(sure["m0"], given.truth, given.groups(["sex"]), points.threshold)


def test_counts_of_groups_with_thresholds_of_their_own_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, sure, by = random_rows(4)
    given, wanted = Confidences.read(truth, sure, by), ["accuracy", "recall ratio by race"]
    whole = solve(given, wanted, 3, thresholds_by="sex").with_intervals()
    monkeypatch.setattr(confidences, "AT_ONCE", 36)
    parts = solve(given, wanted, 3, thresholds_by="sex").with_intervals()
    assert whole.ends is not None
    assert parts.ends is not None
    for one, other in zip((whole.trivial, *whole.ends), (parts.trivial, *parts.ends), strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(confidences, "AT_ONCE", 35)
    with pytest.raises(SpecError, match="counts of 3 groups at 3 thresholds would need 36 numbers"):
        solve(given, wanted, 3, thresholds_by="sex")


def test_points_whose_parts_do_not_fit_together_are_none() -> None:
    wanted, one = (Objective("accuracy"),), np.zeros(1)
    with pytest.raises(SpecError, match="points: value must be an array of 1 × 1 and is one of 2 × 1"):
        Tradeoff(wanted, ("m",), np.zeros(1, int), one, np.zeros((2, 1)), np.zeros(1, bool))
    with pytest.raises(SpecError, match="points: threshold must be an array of 1 × 2 and is one of 1"):
        Tradeoff(
            wanted, ("m",), np.zeros(1, int), one, np.zeros((1, 1)), one > 1, threshold_groups=({"g": "a"}, {"g": "b"})
        )


# Picks


def test_the_best_that_keeps_the_limits_is_picked() -> None:
    points = solve(small(), ["accuracy", "selection_rate difference by sex"])
    assert points.pick("accuracy").threshold.tolist() == [0.7]
    limited = points.pick("accuracy", ["selection_rate difference by sex >= 0.4", "accuracy >= 0.5"])
    assert limited.threshold.tolist() == [0.9]  # as good as at 0.6, which comes later


def test_a_point_on_the_limit_keeps_it_and_rounding_parts_no_ties() -> None:
    """16 of 20 and 15 of 20 lie 0.05 apart, and as floats a little more."""
    truth, sure = [1] * 40, [0.9] * 16 + [0.1] * 4 + [0.9] * 15 + [0.1] * 5
    given = Confidences.read(truth, {"m": sure}, {"g": ["a"] * 20 + ["b"] * 20})
    points = solve(given, ["accuracy", "recall difference by g"], [0.5])
    assert points["recall difference by g"][0] > 0.05
    assert len(points.pick("accuracy", "recall difference by g <= 0.05")) == 1
    turned = Tradeoff(points.objectives, ("m",), *np.zeros((2, 1), int), np.array([[0.3, 0.3]]), np.array([False]))
    assert len(turned.pick("accuracy", [f"accuracy >= {0.1 + 0.2}"])) == 1
    with pytest.raises(SpecError, match="is met by 0"):
        points.pick("accuracy", "recall difference by g <= 0.0499999")


def test_the_last_sign_of_a_limit_counts() -> None:
    limit = Limit.parse("eod+a<=b >= 0.01")
    assert (limit.name, limit.above, limit.bound) == ("eod+a<=b", True, 0.01)
    given = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"a<=b": list("ffmm")})
    points = solve(given, ["accuracy", "accuracy difference by a<=b"])
    assert points.pick("accuracy", "accuracy difference by a<=b >= 0.4")["accuracy"].tolist() == [0.75]


def test_of_equally_good_points_the_one_that_is_best_by_the_others_is_picked() -> None:
    points = solve(small(), ["recall", "false_positive_rate", "accuracy"], [0.0, 0.2, 0.7, 0.65])
    assert points["recall"].tolist() == [1, 1, 1, 1]
    assert points.pick("recall").threshold.tolist() == [0.7]
    assert points.pick("false_positive_rate", ["accuracy <= 0.75"]).threshold.tolist() == [0.2]


def test_limits_that_no_point_keeps_are_reported_with_how_near_they_come() -> None:
    points = solve(small(), FAIR, [0.5, 0.65])
    with pytest.raises(SpecError) as output:
        points.pick("accuracy", ["accuracy >= 0.6", "accuracy <= 0.7"])
    assert str(output.value) == (
        "no point is within the limits: 'accuracy >= 0.6' is met by 2, and the values lie between 0.75 and 1; "
        "'accuracy <= 0.7' is met by 0, and the values lie between 0.75 and 1"
    )


def test_points_without_values_are_not_picked() -> None:
    points = solve(no_negatives(), ["recall", "equalized_odds difference by g"])
    with pytest.raises(SpecError, match="points have undefined values of these objectives, so there is none to choose"):
        points.pick("equalized_odds difference by g")
    assert points.pick("recall")["recall"].tolist() == [1.0]  # asks for nothing that is undefined


def perfect() -> Confidences:
    """All that is positive has the confidence 0.9, and all else 0.1."""
    return Confidences.read([1] * 40 + [0] * 40, {"m": [0.9] * 40 + [0.1] * 40}, {"g": (["a"] * 20 + ["b"] * 20) * 2})


@pytest.mark.parametrize("undefined", ["nan", "zero"])
def test_where_no_group_has_a_false_positive_the_recall_decides(undefined: Any) -> None:
    ratio = "equalized_odds ratio by g"
    points = solve(perfect(), ["accuracy", ratio], undefined=undefined)
    assert points.value[1].tolist() == [1.0, 1.0]
    expected = fairlearn.equalized_odds_ratio(
        points.confidences.truth,
        points.confidences.truth,
        sensitive_features=["a"] * 20 + ["b"] * 20 + ["a"] * 20 + ["b"] * 20,
    )
    assert expected == 1.0
    assert points.unknown[:, 1].tolist() == [True, False, False]  # without a positive decision there is no ratio
    fact = points.facts(ratio)[1]
    assert (fact.value, fact.reason, fact.decided_by) == (1.0, None, "recall")
    with pytest.warns(
        EvaluandWarning,
        match="1 of 3 points have undefined values of these objectives; they are left out of the choice",
    ):
        assert points.pick("accuracy", f"{ratio} >= 0.8")["accuracy"].tolist() == [1.0]
    assert not points.trivial[points.best_place("accuracy")]


def test_what_rests_on_rates_without_rows_is_reported_and_neither_picked_nor_taken_for_what_does_not() -> None:
    name, why = "false_positive_rate difference by g", "rests on rates without rows, which count as 0"
    points = solve(no_negatives(), ["recall", name], [0.5], "zero")
    assert points.as_zero is not None
    assert points.as_zero.tolist() == [[False, True]]
    with pytest.raises(SpecError, match="1 of 1 points have undefined values of these objectives"):
        points.pick(name)
    assert [row["reason"] for row in points.table().to_pylist()] == [None, why]
    [fact] = points.facts(name)
    assert (fact.value, fact.reason) == (points[name][0], why)
    [zeros] = solve(perfect(), "equalized_odds ratio by g", [1.0], "zero").facts("equalized_odds ratio by g")
    assert (zeros.value, zeros.reason) == (0.0, "rests on rates without rows or a ratio of zeros, which count as 0")
    twice = points.take(np.array([0, 0]))
    assert len(twice.deduplicated()) == 1
    assert len(replace(twice, as_zero=np.array([[False, True], [False, False]])).deduplicated()) == 2


@pytest.mark.parametrize("limit", ["accuracy < 0.5", "accuracy <= much", "accuracy <= nan", "0.5"])
def test_a_limit_written_otherwise_is_reported(limit: str) -> None:
    with pytest.raises(SpecError, match="is not a limit; write it as in"):
        solve(small(), FAIR).pick("accuracy", [limit])


def test_an_objective_that_is_not_there_is_reported() -> None:
    for best, where in (("recall", ()), ("accuracy", ("recall >= 1",))):
        with pytest.raises(SpecError, match="there is no objective 'recall'; there are: accuracy, "):
            solve(small(), FAIR).pick(best, where)


# Intervals


def test_the_interval_of_a_rate_is_wilsons_and_that_of_two_groups_newcombes() -> None:
    """Newcombe 1998, table II, method 10: 56 of 70 and 48 of 80."""
    counts = np.array([[14, 0, 0, 56], [32, 0, 0, 48]])
    found = Objective.parse("selection_rate difference by g").with_interval(counts, 0.95)
    assert (float(found.value), float(found.high)) == (pytest.approx(0.2), pytest.approx(0.3339, abs=5e-5))
    assert 0.0524 < float(found.low) < 0.0720  # between the ends at 95 % and 90 %: a distance has no sign
    alone = Objective("recall").with_interval(np.array([[9, 9, 10, 80]]), 0.95)
    assert (float(alone.low), float(alone.high)) == (pytest.approx(0.8074, abs=5e-5), pytest.approx(0.9385, abs=5e-5))


def test_the_interval_of_f1_is_about_as_wide_as_the_bootstraps() -> None:
    random = np.random.default_rng(0)
    counts = np.array([[200, 50, 40, 110]])
    found = Objective("f_beta").with_interval(counts, 0.95)
    drawn = random.multinomial(400, counts[0] / 400, 20_000)
    f1 = 2 * drawn[:, 3] / (2 * drawn[:, 3] + drawn[:, 1] + drawn[:, 2])
    assert (float(found.low), float(found.high)) == pytest.approx(np.quantile(f1, [0.025, 0.975]), abs=0.005)


def test_of_distant_groups_the_largest_distance_has_the_interval_of_its_own() -> None:
    apart = IntervalEnds(np.array([0.6, 0.01]), np.array([0.5, -0.05]), np.array([0.7, 0.07]))
    low, high = interval_of_largest(apart, 0.95)
    assert (float(low), float(high)) == (pytest.approx(0.5, abs=2e-3), pytest.approx(0.7))


def test_distances_without_an_interval_say_nothing_of_the_largest() -> None:
    nan = np.full(2, NAN)
    assert np.isnan(interval_of_largest(IntervalEnds(nan, nan, nan), 0.95)).all()
    one = IntervalEnds(np.array([0.3, NAN]), np.array([0.1, NAN]), np.array([0.5, NAN]))
    alone = IntervalEnds(np.array([0.3]), np.array([0.1]), np.array([0.5]))
    ends, ends_alone = interval_of_largest(one, 0.95), interval_of_largest(alone, 0.95)
    assert [float(end) for end in ends] == [float(end) for end in ends_alone]


def test_a_ratio_of_nothing_to_something_has_an_upper_end() -> None:
    counts = np.array([[40, 0, 0, 0], [20, 20, 0, 0]])
    found = Objective.parse("selection_rate ratio by g").with_interval(counts, 0.95)
    assert (float(found.value), float(found.low)) == (0.0, 0.0)
    assert 0.1 < float(found.high) < 0.5


@pytest.mark.parametrize("threshold", [0.5, 0.7])
def test_every_interval_holds_its_value(threshold: float) -> None:
    truth, sure, by = random_rows(7, 60)
    kinds = [
        f"{name} {way} by race" for name in ("recall", "equalized_odds", "f_beta") for way in ("difference", "ratio")
    ]
    wanted = ["accuracy", "f_beta", "roc_auc", "roc_auc difference by sex", "recall min by race", *kinds]
    points = solve(Confidences.read(truth, sure, by), wanted, [threshold]).with_intervals()
    assert points.ends is not None
    known = ~np.isnan(points.value)
    assert (np.isnan(points.ends.low) == ~known).all()
    assert (points.ends.low <= points.value)[known].all()
    assert (points.value <= points.ends.high)[known].all()
    assert points.to_arrow().column_names[3:6] == ["accuracy", "accuracy low", "accuracy high"]


def test_draws_depend_on_nothing_but_the_seed() -> None:
    truth, sure, by = random_rows(8)
    points = solve(Confidences.read(truth, sure, by), FAIR, 7)
    one, same, other = (points.bands(replicates=50, seed=seed) for seed in (1, 1, 2))
    assert one.low.tolist() == same.low.tolist() != other.low.tolist()
    assert points.hypervolume_interval(replicates=50, seed=1) == points.hypervolume_interval(replicates=50, seed=1)


def test_bands_are_wider_than_the_intervals_of_single_points() -> None:
    truth, sure, by = random_rows(9, 1000)
    points = solve(
        Confidences.read(truth, sure, by), ["accuracy", "roc_auc"], np.linspace(0.2, 0.8, 13)
    ).with_intervals()
    bands, ends = points.bands(), points.ends
    assert ends is not None
    ratio = (bands.high - bands.low)[:, 0] / (ends.high - ends.low)[:, 0]
    assert ((ratio > 1.1) & (ratio < 2)).all()
    assert np.isnan(bands.low[:, 1]).all()


def test_bands_of_what_is_1_in_every_other_sample_still_have_a_width() -> None:
    points = solve(Confidences.read([1] * 20 + [0] * 20, {"m": [0.9] * 20 + [0.1] * 20}), ["recall"], [0.5])
    bands = points.bands(replicates=100)
    assert bands.high[0, 0] == 1.0
    assert 0.7 < bands.low[0, 0] < 0.9


def test_points_that_are_undefined_have_no_bands() -> None:
    points = solve(no_negatives(), ["false_positive_rate difference by g", "recall"], [0.5])
    bands = points.bands(replicates=100)
    assert np.isnan(bands.low[0, 0])
    assert bands.low[0, 1] < 0.5 < bands.high[0, 1]


def test_a_hypervolume_with_an_objective_of_confidences_has_no_interval() -> None:
    with pytest.raises(SpecError, match="roc_auc is not a metric of decisions"):
        solve(small(), ["accuracy", "roc_auc"]).hypervolume_interval()


@pytest.mark.parametrize("thresholds", ["every", 50])
def test_the_interval_of_a_hypervolume_reaches_farther_down_where_a_front_is_chosen(thresholds: Any) -> None:
    truth, sure, by = random_rows(8, digits=6)
    points = solve(Confidences.read(truth, sure, by), FAIR, thresholds)
    volume = points.indicators()["hv"]
    low, high = points.hypervolume_interval(replicates=100)
    assert 0 < low < volume < high < 1
    down, up = volume - low, high - volume
    assert down > (1.5 if thresholds == "every" else 1.2) * up
    assert points.hypervolume_interval(0.5, replicates=100)[0] > low


def test_the_interval_of_one_model_without_groups_is_that_of_its_area() -> None:
    """The front of recall and false positives is the ROC curve, of which all points are on it whatever the sample."""
    random = np.random.default_rng(0)
    truth = np.arange(400) < 200
    points = solve(Confidences.read(truth, {"m": truth + random.normal(size=400)}), ["recall", "false_positive_rate"])
    area = solve(points.confidences, ["roc_auc"], [0.5]).with_intervals().ends  # type: ignore[arg-type]
    assert area is not None
    low, high = points.hypervolume_interval()
    assert points.indicators()["hv"] == pytest.approx(area.value[0, 0])
    assert high == pytest.approx(area.high[0, 0], abs=0.005)
    assert area.low[0, 0] - 0.03 < low < area.low[0, 0] + 0.005


def test_fronts_that_halves_of_the_rows_do_not_have_leave_no_interval() -> None:
    with pytest.warns(EvaluandWarning, match="the hypervolume has no interval: there are too few rows"):
        assert np.isnan(solve(small(), FAIR).hypervolume_interval(replicates=20)).all()
    perfect = Confidences.read([0] * 30 + [1] * 30, {"m": [0.1] * 30 + [0.9] * 30})
    with pytest.warns(EvaluandWarning, match="or it is equal in all halves"):
        solve(perfect, ["recall", "specificity"], [0.5]).hypervolume_interval(replicates=20)


@pytest.mark.parametrize("more", [["specificity"], ["specificity", "precision"]])
def test_hypervolumes_of_many_objectives_have_intervals(more: list[str]) -> None:
    truth, sure, by = random_rows(8, 600, digits=6)
    points = solve(Confidences.read(truth, sure, by), [*FAIR, "recall", *more])
    low, high = points.hypervolume_interval(replicates=20)
    assert 0 < low < points.indicators()["hv"] < high < 1


# Weights and clusters


def weighted_rows(n: int = 120, clusters: int = 30) -> tuple[np.ndarray, dict[str, Any], dict[str, Any]]:
    random = np.random.default_rng(3)
    truth = random.random(n) < 0.4
    sure = {"m": (truth + random.normal(size=n)).round(1)}
    beside = {"weight": random.choice([0.5, 1.0, 2.5], n), "cluster": random.integers(0, clusters, n)}
    return truth, sure, {"by": {"g": random.choice(["a", "b"], n)}, **beside}


@pytest.mark.parametrize(
    ("objective", "reference"), [("accuracy", metrics.accuracy_score), ("f_beta", metrics.f1_score)]
)
def test_rows_count_by_their_weights(objective: str, reference: Any) -> None:
    truth, sure, beside = weighted_rows()
    points = solve(Confidences.read(truth, sure, **beside), [objective, "roc_auc"], [-0.2, 0.5, 9.0])
    weight = beside["weight"]
    expected = [reference(truth, sure["m"] >= t, sample_weight=weight) for t in (-0.2, 0.5, 9.0)]
    assert points[objective] == pytest.approx(expected)
    assert points["roc_auc"] == pytest.approx([metrics.roc_auc_score(truth, sure["m"], sample_weight=weight)] * 3)
    assert points.trivial.tolist() == [False, False, True]


def test_a_rate_without_rows_is_undefined_with_weights_too() -> None:
    weight = [0.1, 0.2, 0.3, 0.7, 0.1, 0.2]
    given = Confidences.read([0, 1, 0, 1, 1, 1], {"m": [0.2, 0.8, 0.6, 0.4, 0.9, 0.3]}, weight=weight)
    assert np.isnan(solve(given, ["precision"], [0.95])["precision"]).all()


def test_products_of_counts_are_those_of_each_cluster() -> None:
    truth, sure, beside = weighted_rows()
    given, thresholds = Confidences.read(truth, sure, **beside), np.array([0.7, -0.3, 0.2, 9.0])
    groups = given.groups(["g"])
    found = products_at(sure["m"], given.truth, groups, thresholds)
    assert found is not None
    for t, g in np.ndindex(len(thresholds), 2):
        cells = np.zeros((30, 4))
        cell = 2 * truth + (sure["m"] >= thresholds[t])
        mine = groups.code == g
        np.add.at(cells, (beside["cluster"][mine], cell[mine]), beside["weight"][mine])
        assert found[t, g] == pytest.approx(cells.T @ cells)


def test_the_interval_by_clusters_is_that_of_a_mean_of_clusters() -> None:
    truth, sure, beside = weighted_rows()
    points = solve(Confidences.read(truth, sure, **beside), ["accuracy"], [0.5]).with_intervals()
    right = ((sure["m"] >= 0.5) == truth).astype(float)
    sums = cluster_sums(right, beside["weight"], beside["cluster"].astype(np.uint64), np.zeros(len(truth), np.int64))
    spread = cluster_variance(merge_clusters([sums]), points["accuracy"])
    low, high = clustered_wilson(points["accuracy"], spread, 0.95)
    assert points.ends is not None
    assert (points.ends.low[0, 0], points.ends.high[0, 0]) == (
        pytest.approx(low[0], abs=2e-3),
        pytest.approx(high[0], abs=2e-3),
    )


def test_the_interval_of_f1_by_clusters_is_about_as_wide_as_the_bootstraps() -> None:
    truth, sure, beside = weighted_rows(2000, 200)
    points = solve(Confidences.read(truth, sure, **beside), ["f_beta"], [0.5]).with_intervals()
    random, decided, weight = np.random.default_rng(0), sure["m"] >= 0.5, beside["weight"]
    part = {
        name: np.bincount(beside["cluster"], weight * rows)
        for name, rows in (("both", truth & decided), ("one", truth ^ decided))
    }
    drawn = random.multinomial(200, np.full(200, 1 / 200), 4000)
    both, one = drawn @ part["both"], drawn @ part["one"]
    assert points.ends is not None
    ends = points.ends.low[0, 0], points.ends.high[0, 0]
    assert ends == pytest.approx(np.quantile(2 * both / (2 * both + one), [0.025, 0.975]), abs=0.005)


def test_copies_of_rows_in_clusters_make_no_interval_narrower() -> None:
    truth, sure, by = random_rows(8)
    once = Confidences.read(truth, sure, by)
    four = Confidences.read(
        np.tile(truth, 4),
        {name: np.tile(each, 4) for name, each in sure.items()},
        {name: np.tile(each, 4) for name, each in by.items()},
        cluster=np.tile(np.arange(len(truth)), 4),
    )
    one, copied = (solve(given, [*FAIR, "f_beta", "roc_auc"], [0.4, 0.5]).with_intervals() for given in (once, four))
    assert copied.value == pytest.approx(one.value)
    assert one.ends is not None
    assert copied.ends is not None
    assert copied.ends.high - copied.ends.low == pytest.approx(one.ends.high - one.ends.low, rel=0.08)
    band, copied_band = (solve(given, ["accuracy"], [0.4, 0.5]).bands(replicates=300) for given in (once, four))
    assert copied_band.high - copied_band.low == pytest.approx(band.high - band.low, rel=0.1)
    volumes = [solve(given, FAIR, 20).hypervolume_interval(replicates=300) for given in (once, four)]
    assert volumes[1] == pytest.approx(volumes[0], abs=0.02)


def test_weights_that_are_alike_and_clusters_of_one_row_change_nothing() -> None:
    truth, sure, by = random_rows(8)
    plain = Confidences.read(truth, sure, by)
    alike = Confidences.read(truth, sure, by, weight=[0.3] * len(truth), cluster=[f"c{i}" for i in range(len(truth))])
    one, other = (solve(given, FAIR, [0.5]).with_intervals() for given in (plain, alike))
    assert one.ends is not None
    assert other.ends is not None
    for end, same in zip(one.ends, other.ends, strict=True):
        np.testing.assert_array_equal(end, same)


def test_rows_of_weight_0_are_left_out_and_those_without_a_cluster_are_independent() -> None:
    given = Confidences.read(
        [0, 1, 0, 1],
        {"m": [0.1, 0.2, 0.3, 0.4]},
        {"g": list("aabb")},
        weight=[1, 0, 1, 2],
        cluster=["x", "x", None, None],
    )
    assert given.truth.tolist() == [False, False, True]
    assert given.models["m"].tolist() == [0.1, 0.3, 0.4]
    assert given.cluster is None
    assert given.effective == pytest.approx(16 / 6)


@pytest.mark.parametrize(
    ("columns", "output"),
    [
        ({"weight": [1, -1]}, r"weight\[1\]: is negative"),
        ({"weight": [0, 0]}, "weight: is 0 for all rows"),
        ({"weight": [1]}, "weight: has 1 weights and there are 2 truths"),
        ({"weight": ["a", "b"]}, "weight: is not a column of numbers; give a weight for each row"),
        ({"cluster": ["a"]}, "cluster: has 1 values and there are 2 truths"),
    ],
)
def test_weights_and_clusters_that_do_not_fit_are_reported(columns: Any, output: str) -> None:
    with pytest.raises(DataError, match=output):
        Confidences.read([0, 1], {"m": [0.1, 0.2]}, **columns)


# Tables


def test_the_table_tells_the_model_and_nulls_what_is_undefined() -> None:
    points = solve(no_negatives(), ["recall", "equalized_odds difference by g"], [0.5])
    [row] = points.to_arrow().to_pylist()
    assert row == {
        "system": "system",
        "model": "m",
        "threshold": 0.5,
        "recall": 0.5,
        "equalized_odds difference by g": None,
        "trivial": False,
    }
    assert points.to_pandas().shape == (1, 6)


def test_points_are_rows_of_a_table_like_other_metrics() -> None:
    points = solve(no_negatives(), ["recall", "equalized_odds difference by g"], [0.25, np.inf]).with_intervals()
    table = points.table()
    rows = table.to_pylist()
    assert [dict(row["at"]) for row in rows] == [{"model": "m", "threshold": t} for t in ("0.25", "0.25", "inf", "inf")]
    assert [row["metric"] for row in rows] == ["recall", "equalized_odds"] * 2
    assert [row["value"] for row in rows] == [1.0, None, 0.0, None]
    assert [row["low"] for row in rows[::2]] == points.ends.low[:, 0].tolist()  # type: ignore[union-attr]
    assert (rows[1]["disparity"], rows[1]["over"], rows[1]["by"]) == ("difference", ["g"], [])
    assert rows[1]["reason"] == "fewer than two groups have a value"
    assert rows[1]["signature"].startswith("recall v")
    assert "interval" not in rows[1]["signature"]
    assert [row["reason"] for row in rows[::2]] == [None, None]
    assert ({row["n"] for row in rows}, rows[2]["trivial"]) == ({6}, True)
    measured = pa.Table.from_batches([], METRICS)
    assert pa.concat_tables([measured, table], promote_options="default").num_rows == 4
    with_disparities = pa.concat_tables([pa.Table.from_batches([], DISPARITIES), table], promote_options="default")
    assert with_disparities.filter(pc.field("disparity") == "difference").num_rows == 2


def test_the_table_tells_thresholds_of_groups_and_what_is_not_known() -> None:
    [row] = solve(small(), "accuracy", [0.7], thresholds_by="sex").table().to_pylist()
    assert dict(row["at"]) == {"model": "tree", "threshold sex=f": "0.7", "threshold sex=m": "0.7"}
    unknown = variants()
    unknown.value[0, 1] = NAN
    first, second, *_ = unknown.table().to_pylist()
    assert (dict(first["at"]), first["n"], first["low"]) == ({"model": "warm"}, None, None)
    assert second["reason"] == "it is undefined where the points come from"
    ratio = "selection_rate ratio by sex"
    assert solve(small(), ratio, [1.0]).table()["reason"].to_pylist() == [
        "fewer than two groups have a value, or all have 0"
    ]


def test_an_objective_called_as_an_interval_of_another_has_no_column() -> None:
    points = solve(small(), ["accuracy", Objective("recall", name="accuracy low")])
    assert points.to_arrow().column_names[3:5] == ["accuracy", "accuracy low"]
    with pytest.raises(SpecError, match="two columns are called 'accuracy low'; give that objective another name"):
        points.with_intervals().to_arrow()


# Faults


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", "is not an objective; write it as in"),
        ("recall by sex", "is not an objective; write it as in"),
        ("recal", "recal"),
        ("recall spread by sex", "no disparity is called 'spread'; there are difference, ratio, min, max"),
        ("recall difference by age", "no attribute 'age' to group by; there are: sex"),
        ("equalized_odds", "compares groups; write equalized_odds difference by ATTRIBUTE"),
        ("equalized_odds min by sex", "several rates have no common min"),
        ("selection_rate", "neither better high nor low by itself"),
        ("mean_absolute_error", "mean_absolute_error has no best or no worst value"),
        ("matthews_correlation ratio by sex", "a ratio needs values that cannot be negative"),
        ("cohen_kappa ratio by sex", "a ratio needs values that cannot be negative"),
        ("top_k", "top_k is not a metric of decisions between two classes"),
        ("log_loss", "log_loss"),
    ],
)
def test_objectives_that_are_none_are_reported(text: str, output: str) -> None:
    with pytest.raises(SpecError, match=output):
        solve(small(), [text])


def test_no_objective_and_one_twice_are_reported() -> None:
    with pytest.raises(SpecError, match="there are no objectives"):
        solve(small(), [])
    with pytest.raises(SpecError, match="'accuracy' occurs twice"):
        solve(small(), ["accuracy", "accuracy"])


@pytest.mark.parametrize(
    ("thresholds", "output"),
    [
        ("all", "thresholds='all' must be 'every', 'roc'"),
        (1, "thresholds=1 must be 2 or more"),
        ([], "a list of numbers that is not empty"),
        ([0.5, NAN], "some of these are not numbers"),
    ],
)
def test_thresholds_that_are_none_are_reported(thresholds: Any, output: str) -> None:
    with pytest.raises(SpecError, match=output):
        solve(small(), ["accuracy"], thresholds)


@pytest.mark.parametrize(
    ("fault", "given", "output"),
    [
        (SpecError, ([0, 1], {}), "models is empty"),
        (DataError, ([0, None], {"m": [0.1, 0.2]}), r"truth\[1\]: is missing"),
        (DataError, ([], {"m": []}), "truth: has no rows"),
        (DataError, ([0, 1], {"m": [0.1]}), r"models\['m'\]: has 1 confidences and there are 2 truths"),
        (DataError, ([0, 1], {"m": [0.1, None]}), r"models\['m'\]\[1\]: is not a finite number"),
        (DataError, ([0, 1], {"m": ["a", "b"]}), r"models\['m'\]: is not a column of numbers"),
        (DataError, ([0, 1], {"m": [0.1, 0.2]}, {"g": ["a"]}), r"by\['g'\]: has 1 values and there are 2 truths"),
        (SpecError, (["no", "yes"], {"m": [0.1, 0.2]}), "which label is positive"),
        (SpecError, ([0, 1, 2], {"m": [0.1, 0.2, 0.3]}), "which label is positive|parts two classes"),
    ],
)
def test_columns_that_do_not_fit_are_reported(fault: type[Exception], given: Any, output: str) -> None:
    with pytest.raises(fault, match=output):
        Confidences.read(*given)


FRAME = pd.DataFrame({"tree": [0.1, 0.7, 0.6, 0.9]})
GIVEN_WRONG = {
    "models array": (lambda: read(np.array(FRAME)), "models must map names to columns, such as .* and is "),
    "models list": (lambda: read([0.1, 0.7, 0.6, 0.9]), "models must map names to columns, .* and is a list"),
    "models series": (lambda: read(FRAME["tree"]), "models must map names to columns, .* and is a Series"),
    "models text": (lambda: read("tree"), "models must map names to columns, .* and is a text"),
    "models numbered": (lambda: read({1: [0.1] * 4}), "models: the name 1 is not text"),
    "models huge": (lambda: read({"m": [10**400, 0, 0, 0]}), r"models\['m'\]: is not a column of numbers"),
    "models NaN": (lambda: read({"m": pd.Series([0.1, NAN, 0.2, 0.3])}), r"models\['m'\]\[1\]: is not a finite number"),
    "models text column": (lambda: read({"m": "1234"}), r"models\['m'\]: is not a column of numbers"),
    "models 2d": (lambda: read({"m": np.ones((4, 2))}), r"models\['m'\]: is not a column of numbers"),
    "truth text": (lambda: read(truth="0101"), "truth: is a text and not a column"),
    "truth frame": (lambda: read(truth=FRAME), "truth: is a DataFrame and not a column"),
    "truth scalar": (lambda: read(truth=1), "truth: is not a column of values of one type"),
    "truth NaN": (lambda: read(truth=pd.Series([0, 1, NAN, 1])), r"truth\[2\]: is missing"),
    "truth fractions": (lambda: read(truth=[0.5, 1.0, 0.0, 1.0]), "truth: labels must be text, integers, bools"),
    "label array": (lambda: read(label=np.array([0, 1])), "label=array.* must be one of the labels of the truth: 0, 1"),
    "label list": (lambda: read(label=[1]), r"label=\[1\] must be one of the labels"),
    "label text": (lambda: read(label="1"), "no truth is '1'; there are 0, 1"),
    "by list": (lambda: read(by=["sex"]), "by must map names to columns, .* and is a list"),
    "by array": (lambda: read(by=np.array(list("ffmm"))), "by must map names to columns"),
    "by fractions": (lambda: read(by={"g": [0.5, 0.5, 1, NAN]}), r"by\['g'\]: labels must be text, integers, bools"),
    "by dict": (lambda: read(by={"g": {"f": 1}}), r"by\['g'\]: is an object and not a column"),
    "system": (lambda: read(system=3), "system=3 must be text"),
    "objectives none": (lambda: solve(small(), None), "objectives must be a list and is null; write such as"),
    "objectives dict": (lambda: solve(small(), {"accuracy": 1}), "objectives must be a list and is an object"),
    "objective number": (lambda: solve(small(), [3]), r"objectives\[0\] is a number; write such as"),
    "solve rows": (lambda: solve(FRAME, FAIR), "confidences must be a Confidences and is a DataFrame; use "),
    "undefined": (
        lambda: solve(small(), FAIR, undefined="x"),
        "undefined='x' must be 'nan', which leaves such groups out, or 'zero'",
    ),
    "thresholds dict": (lambda: solve(small(), FAIR, {"tree": [0.5]}), "thresholds must be 'every', 'roc', a number"),
    "thresholds text": (lambda: solve(small(), FAIR, ["a"]), "some of these are not numbers"),
    "thresholds one": (lambda: solve(small(), FAIR, 0.5), "thresholds must be 'every', 'roc', a number"),
    "thresholds true": (lambda: solve(small(), FAIR, True), "thresholds must be 'every', 'roc', a number"),
    "thresholds many": (lambda: solve(small(), FAIR, 10**12), "thresholds=1000000000000 must be 2 or more, .* at most"),
    "thresholds ragged": (lambda: solve(small(), FAIR, [[1], [1, 2]]), "thresholds must be 'every', 'roc', a number"),
    "thresholds of": (lambda: small().thresholds("net", "every"), "no confidences of the model 'net'; there are: tree"),
    "groups": (lambda: small().groups(None), "by must be a list and is null"),
    "compared list": (lambda: compare_systems([points()]), "systems must map names to columns, .* and is a list"),
    "compared rows": (
        lambda: compare_systems({"a": small()}),
        r"systems\['a'\] must be a Tradeoff and is a Confidences",
    ),
    "apart": (lambda: points().deduplicated("x"), "must be a number of 0 or more"),
    "confidence": (lambda: points().with_intervals("0.95"), "confidence='0.95' must lie between 0 and 1"),
    "replicates": (lambda: points().bands(replicates=5.5), "replicates=5.5 must be an integer of 1 or more"),
    "seed": (lambda: points().hypervolume_interval(seed=-1), "seed=-1 must be an integer of 0 or more"),
    "at": (lambda: points().at({}), "confidences must be a Confidences and is an object"),
    "where": (lambda: points().pick("accuracy", [3]), r"where\[0\] is a number; write such as"),
    "where none": (lambda: points().pick("accuracy", None), "where must be a list and is null"),
    "taken": (lambda: points().take([99]), r"\[99\] does not select points; give integers below 5"),
    "metric": (lambda: Objective(None), "the metric of an objective must be text and is null"),
    "parse": (lambda: Objective.parse(3), "3 is not an objective; write it as in"),
    "by of objective": (lambda: Objective("recall", "difference", (1,)), r"recall: by\[0\] is a number"),
}


def read(models: Any = FRAME, by: Any = None, truth: Any = (0, 1, 0, 1), **more: Any) -> Confidences:
    return Confidences.read(truth, models, by, **more)


def points() -> Tradeoff:
    return solve(small(), FAIR)


@pytest.mark.parametrize("wrong", GIVEN_WRONG)
def test_arguments_of_another_kind_are_reported_in_a_sentence(wrong: str) -> None:
    called, output = GIVEN_WRONG[wrong]
    with pytest.raises((SpecError, DataError), match=output):
        called()


def test_frames_and_single_objectives_are_taken_as_they_are_meant() -> None:
    given = Confidences.read([0, 1, 0, 1], FRAME, pd.DataFrame({"sex": [1, 1, NAN, 2]}))
    assert given.groups("sex").names == ({"sex": "1"}, {"sex": "2"})
    assert given.groups(["sex"]).code.tolist() == [0, 0, -1, 1]
    assert Confidences.read([0, 1, 0, 1], pa.Table.from_pandas(FRAME)).models["tree"].tolist() == [0.1, 0.7, 0.6, 0.9]
    assert [one.name for one in solve(given, "accuracy").objectives] == ["accuracy"]
    assert points().pick("accuracy", "accuracy <= 0.8")["accuracy"].tolist() == [0.75]


def test_an_objective_is_not_called_as_a_column_of_points() -> None:
    for name in ("system", "model", "threshold", "trivial"):
        with pytest.raises(SpecError, match=f"'{name}' is a column of points; give the objective 'accuracy' another"):
            Objective("accuracy", name=name)


@pytest.mark.parametrize("confidence", [0, 1, 95, NAN])
def test_a_confidence_that_is_none_is_reported(confidence: float) -> None:
    points = solve(small(), FAIR)
    for made in (points.with_intervals, points.bands, points.hypervolume_interval):
        with pytest.raises(SpecError, match="must lie between 0 and 1"):
            made(confidence)


def test_no_replicate_is_reported() -> None:
    points = solve(small(), FAIR)
    for made in (points.bands, points.hypervolume_interval):
        with pytest.raises(SpecError, match="replicates=0 must be an integer of 1 or more"):
            made(replicates=0)


def test_no_system_and_those_of_other_objectives_are_reported() -> None:
    with pytest.raises(SpecError, match="no system to compare"):
        compare_systems({})
    with pytest.raises(SpecError, match="b has other objectives than the systems before it"):
        compare_systems({"a": solve(small(), FAIR), "b": solve(small(), ["accuracy", "recall"])})


def test_a_positive_label_can_be_named() -> None:
    columns = (["no", "yes"], {"m": [0.1, 0.2]})
    assert Confidences.read(*columns, label="yes").truth.tolist() == [False, True]
    with pytest.raises(SpecError, match="no truth is 'maybe'"):
        Confidences.read(*columns, label="maybe")
    with pytest.raises(SpecError, match="besides 1 the truth has 0 and 2"):
        Confidences.read([0, 1, 2], {"m": [0.1, 0.2, 0.3]}, label=1)


def test_systems_are_compared_by_name() -> None:
    points = solve(small(), FAIR)
    assert compare_systems({"one": points, "same": points})["one"]["relative_onvg"] == 1.0


# What is printed


def test_points_are_printed_in_a_few_lines_and_their_names_do_nothing_to_a_terminal_or_a_page() -> None:
    given = Confidences.read([0, 1, 0, 1], {"m": [0.1, 0.7, 0.6, 0.9]}, {"g": list("aabb")}, system="\x1b[31m<b>")
    points = solve(given, ["accuracy", "recall difference by g"])
    assert repr(points) == r"<Tradeoff \x1b[31m<b>: 5 points of 1 model, 1 on the front>"
    assert str(points).splitlines() == [
        r"\x1b[31m<b>: 5 points of 1 model, 1 on the front",
        "                          lowest  highest  better",
        "  accuracy                   0.5        1  higher",
        "  recall difference by g       0        1  lower",
    ]
    assert "&lt;b&gt;: 5 points" in points._repr_html_()
    assert "<td>0.5</td><td>1</td><td>higher</td>" in points._repr_html_()
    assert "–        –  higher" in str(points.take(np.array([], int)))


def test_bands_differ_from_intervals_and_forgotten_on_other_rows() -> None:
    points = solve(small(), FAIR, 5).with_bands(0.9, replicates=20)
    assert (points.band, points.front().band) == (0.9, 0.9)
    assert points.ends is not None
    assert np.array_equal(points.ends.low, points.bands(0.9, replicates=20).low, equal_nan=True)
    assert points.with_intervals().band is None
    assert points.at(small()).band is None


def test_bands_of_very_many_points_are_as_wide_as_if_all_were_resampled(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(1500) < 0.4
    points = solve(Confidences.read(truth, {"m": truth + rng.normal(size=1500)}), ["accuracy", "specificity"])
    found = []
    for most in (100, len(points)):
        monkeypatch.setattr("evaluand.tradeoff.points._MOST_BANDED", most)
        bands = points.bands(replicates=500)
        found.append((bands.high - bands.low)[750])
    assert (found[0] != found[1]).all()
    assert found[0] == pytest.approx(found[1], rel=0.1)


def test_how_far_systems_fall_short_is_the_same_whether_or_not_a_front_is_measured_against_itself() -> None:
    truth, sure, by = random_rows(11)
    given = Confidences.read(truth, sure, by)
    systems = {"fine": solve(given, FAIR), "coarse": solve(given, FAIR, 6), "no": solve(given, FAIR, [np.inf])}
    every = np.concatenate([one.front().loss for one in systems.values()])
    reference = np.unique(every[non_dominated(every)], axis=0)
    for name, found in compare_systems(systems).items():
        loss = systems[name].front().loss
        assert found["igd_plus"] == pytest.approx(igd_plus(loss, reference), abs=1e-12)
        assert found["epsilon"] == pytest.approx(additive_epsilon(loss, reference), abs=1e-12)


def test_a_single_point_is_printed_with_its_model_threshold_and_interval() -> None:
    points = solve(small(), FAIR, [0.5, 0.7])
    assert str(points.pick("accuracy")).splitlines()[0] == "system: tree from 0.7"
    with pytest.warns(EvaluandWarning, match="chosen by its values on these rows"):
        lines = str(points.pick("accuracy").with_intervals()).splitlines()
    assert re.fullmatch(r"  accuracy +1 +0\.\d+ to 1 +higher", lines[2])
    apart = solve(small(), "accuracy", [0.5], thresholds_by="sex")
    assert str(apart).splitlines()[0] == "system: tree from sex=f: 0.5, sex=m: 0.5"


def test_confidences_are_printed_in_a_line() -> None:
    assert repr(small()) == "<Confidences 'system': 4 rows, 2 of them positive; models ['tree'], attributes ['sex']>"


def test_the_interval_of_a_hypervolume_is_doubted_where_points_were_chosen_and_has_no_ends_without_points() -> None:
    truth, sure, by = random_rows(3)
    points = solve(Confidences.read(truth, sure, by), ["accuracy", "recall difference by sex"], 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        points.hypervolume_interval(replicates=50)
        points.front().at(Confidences.read(truth, sure, by)).hypervolume_interval(replicates=50)
    with pytest.warns(EvaluandWarning, match="selected by their values on these rows"):
        points.front().hypervolume_interval(replicates=50)
    none = points.take(np.array([], int))
    assert none.bands().low.shape == (0, 2)
    with pytest.warns(EvaluandWarning, match="there are no points"):
        assert all(map(math.isnan, none.hypervolume_interval()))


@pytest.mark.parametrize("name", ["a, b", " sp", "sex,", "", "e\n"])
def test_attributes_that_no_objective_could_ask_for_are_refused(name: str) -> None:
    with pytest.raises(SpecError, match="no objective can name the attribute"):
        Confidences.read([0, 1], {"m": [0.1, 0.9]}, {name: ["a", "b"]})


def test_columns_of_one_name_are_refused_and_none_is_dropped() -> None:
    frame = pd.DataFrame([[0.1, 0.2], [0.8, 0.9]], columns=["m", "m"])
    with pytest.raises(SpecError, match="models: two columns are called 'm'; name each differently"):
        Confidences.read([0, 1], frame)


def test_weights_as_large_and_as_small_as_numbers_can_be_weigh_as_others() -> None:
    truth, sure = [0, 1, 1, 0], [0.2, 0.9, 0.3, 0.8]
    values = []
    for scale in (1.0, 1e307, 1e-307):
        given = Confidences.read(truth, {"m": sure}, weight=np.array([9.0, 2.0, 9.0, 4.0]) * scale)
        values.append(solve(given, ["accuracy", "recall"], [0.5]).with_intervals())
    for other in values[1:]:
        assert other.ends is not None
        assert values[0].ends is not None
        for one, mine in zip(values[0].ends, other.ends, strict=True):
            np.testing.assert_allclose(mine, one, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("eod+g", "equalized_odds difference by g"),
        ("eod", "equalized_odds difference by ATTRIBUTE"),
        ("equalised_odds difference by g", "equalized_odds"),
    ],
)
def test_names_of_files_are_reported_by_what_they_are_called_here(text: str, meant: str) -> None:
    with pytest.raises(SpecError, match=f"did you mean '{meant}'"):
        Objective.parse(text)


# Points that are no use of a model


RARE = Confidences.read(
    [0, 0, 0, 0, 0, 0, 1, 1], {"net": [0.1, 0.9, 0.3, 0.8, 0.7, 0.4, 0.6, 0.5]}, {"g": list("aabbabab")}
)
"""Accuracy is highest where nobody is accepted."""


def test_a_point_that_accepts_nobody_is_left_out_and_reported() -> None:
    points = solve(RARE, ["accuracy", "selection_rate difference by g"])
    best = "the best point within the limits decides equally for all rows and is left out: net at inf accepts nobody"
    with pytest.warns(EvaluandWarning, match=best):
        pick = points.pick("accuracy")
    assert not pick.trivial.any()
    assert pick["accuracy"].tolist() == points.take(~points.trivial).pick("accuracy")["accuracy"].tolist()
    assert points.pick("accuracy", allow_trivial=True).threshold.tolist() == [np.inf]


def test_a_choice_of_trivial_points_alone_is_refused() -> None:
    points = solve(RARE, ["accuracy", "recall"], [0.0, 0.5])
    with pytest.raises(SpecError, match=r"only points that decide equally .*: net at 0 accepts everybody; loosen"):
        points.pick("accuracy", "accuracy <= 0.3")
    assert points.pick("accuracy", "accuracy <= 0.3", allow_trivial=True)["recall"].tolist() == [1.0]


def test_judging_a_pick_on_the_rows_of_the_choice_is_reported() -> None:
    pick = solve(small(), FAIR, [0.5, 0.7]).pick("accuracy")
    same = "chosen by its values on these rows, so its values and intervals there are too good; judge it on other rows"
    for judge in (pick.with_intervals, lambda: pick.at(small())):
        with pytest.warns(EvaluandWarning, match=same):
            judge()
    other = Confidences.read([0, 1, 1, 0], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
    assert pick.at(other).with_intervals()["accuracy"].tolist() == [0.5]
