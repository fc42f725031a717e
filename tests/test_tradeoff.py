"""Operating points, their intervals and picks, beside scikit-learn and fairlearn."""

from __future__ import annotations

import math
import warnings
from typing import Any

import fairlearn.metrics as fairlearn
import numpy as np
import pytest
from sklearn import metrics

from evaluand.apart import Ends, of_largest
from evaluand.errors import DataError, Doubt, SpecError
from evaluand.tradeoff import Confidences, Objective, Tradeoff, compared, confidences, resampling, solve
from evaluand.tradeoff.confidences import counts_at

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


def test_points_that_decide_alike_for_all_rows_are_trivial() -> None:
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


def test_groups_that_are_too_many_for_one_threshold_are_told_with_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, sure, by = random_rows(4)
    given = Confidences.read(truth, sure, by)
    points = solve(given, ["recall difference by sex, race"], [0.5])
    monkeypatch.setattr(confidences, "AT_ONCE", 23)
    with pytest.raises(SpecError, match="counts of 6 groups need 24 numbers at once, and 23 are the most"):
        solve(given, ["recall difference by sex, race"], [0.5])
    with pytest.raises(SpecError, match="race of 6 groups need 24 numbers at once, and 23 are the most"):
        points.with_intervals()


def test_replicates_that_are_too_many_are_told_with_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "_MOST", 99)
    with pytest.raises(SpecError, match="10 replicates of 5 points are 100 numbers, and 99 are the most"):
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


def test_a_model_that_is_not_there_is_told() -> None:
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


# Picks


def test_the_best_that_keeps_the_limits_is_picked() -> None:
    points = solve(small(), ["accuracy", "selection_rate difference by sex"])
    assert points.pick("accuracy").threshold.tolist() == [0.7]
    limited = points.pick("accuracy", ["selection_rate difference by sex >= 0.4", "accuracy >= 0.5"])
    assert limited.threshold.tolist() == [0.9]  # as good as at 0.6, which comes later


def test_of_equally_good_points_the_one_that_is_best_by_the_others_is_picked() -> None:
    points = solve(small(), ["recall", "false_positive_rate", "accuracy"], [0.0, 0.2, 0.7, 0.65])
    assert points["recall"].tolist() == [1, 1, 1, 1]
    assert points.pick("recall").threshold.tolist() == [0.7]
    assert points.pick("false_positive_rate", ["accuracy <= 0.75"]).threshold.tolist() == [0.2]


def test_limits_that_no_point_keeps_are_told_with_how_near_they_come() -> None:
    points = solve(small(), FAIR, [0.5, 0.65])
    with pytest.raises(SpecError) as told:
        points.pick("accuracy", ["accuracy >= 0.6", "accuracy <= 0.7"])
    assert str(told.value) == (
        "no point keeps the limits: 'accuracy >= 0.6' is kept by 2, and the values lie from 0.75 to 1; "
        "'accuracy <= 0.7' is kept by 0, and the values lie from 0.75 to 1"
    )


def test_points_without_values_are_not_picked() -> None:
    points = solve(no_negatives(), ["recall", "equalized_odds difference by g"])
    with pytest.raises(SpecError, match="none has all values"):
        points.pick("recall")


@pytest.mark.parametrize("limit", ["accuracy < 0.5", "accuracy <= much", "accuracy <= nan", "0.5"])
def test_a_limit_written_otherwise_is_told(limit: str) -> None:
    with pytest.raises(SpecError, match="is no limit; write it as in"):
        solve(small(), FAIR).pick("accuracy", [limit])


def test_an_objective_that_is_not_there_is_told() -> None:
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


def test_far_apart_the_largest_distance_has_the_interval_of_its_own() -> None:
    apart = Ends(np.array([0.6, 0.01]), np.array([0.5, -0.05]), np.array([0.7, 0.07]))
    low, high = of_largest(apart, 0.95)
    assert (float(low), float(high)) == (pytest.approx(0.5, abs=2e-3), pytest.approx(0.7))


def test_distances_without_an_interval_say_nothing_of_the_largest() -> None:
    nan = np.full(2, NAN)
    assert np.isnan(of_largest(Ends(nan, nan, nan), 0.95)).all()
    one = Ends(np.array([0.3, NAN]), np.array([0.1, NAN]), np.array([0.5, NAN]))
    alone = Ends(np.array([0.3]), np.array([0.1]), np.array([0.5]))
    assert [float(end) for end in of_largest(one, 0.95)] == [float(end) for end in of_largest(alone, 0.95)]


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
    with pytest.raises(SpecError, match="roc_auc is no metric of decisions"):
        solve(small(), ["accuracy", "roc_auc"]).hypervolume_interval()


def test_the_interval_of_a_front_that_is_fitted_to_its_sample_is_doubted() -> None:
    truth, sure, by = random_rows(8)
    given = Confidences.read(truth, sure, by)
    with pytest.warns(Doubt, match="chosen among 86 thresholds of a model"):
        solve(given, FAIR).hypervolume_interval(replicates=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(given, FAIR, 50).hypervolume_interval(replicates=5)


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


# Faults


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no objective; write it as in"),
        ("recall by sex", "is no objective; write it as in"),
        ("recal", "recal"),
        ("recall spread by sex", "no disparity is called 'spread'; there are difference, ratio, min, max"),
        ("recall difference by age", "no attribute 'age' to group by; there are: sex"),
        ("equalized_odds", "is about groups; write equalized_odds difference by ATTRIBUTE"),
        ("equalized_odds min by sex", "several rates have no common min"),
        ("selection_rate", "neither better high nor low by itself"),
        ("mean_absolute_error", "mean_absolute_error has no best or no worst value"),
        ("matthews_correlation ratio by sex", "a ratio needs values that cannot be negative"),
        ("cohen_kappa ratio by sex", "a ratio needs values that cannot be negative"),
        ("top_k", "top_k is no metric of decisions between two classes"),
        ("log_loss", "log_loss"),
    ],
)
def test_objectives_that_are_none_are_told(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        solve(small(), [text])


def test_no_objective_and_one_twice_are_told() -> None:
    with pytest.raises(SpecError, match="no objective is given"):
        solve(small(), [])
    with pytest.raises(SpecError, match="'accuracy' is given twice"):
        solve(small(), ["accuracy", "accuracy"])


@pytest.mark.parametrize(
    ("thresholds", "told"),
    [
        ("all", "thresholds='all' must be 'every', 'roc'"),
        (1, "thresholds=1 must be 2 or more"),
        ([], "a list of numbers that is not empty"),
        ([0.5, NAN], "a list of numbers that is not empty"),
    ],
)
def test_thresholds_that_are_none_are_told(thresholds: Any, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        solve(small(), ["accuracy"], thresholds)


@pytest.mark.parametrize(
    ("fault", "given", "told"),
    [
        (SpecError, ([0, 1], {}), "no model is given"),
        (DataError, ([0, None], {"m": [0.1, 0.2]}), r"truth\[1\]: is missing"),
        (DataError, ([], {"m": []}), "truth: has no rows"),
        (DataError, ([0, 1], {"m": [0.1]}), r"models\['m'\]: has 1 confidences and there are 2 truths"),
        (DataError, ([0, 1], {"m": [0.1, None]}), r"models\['m'\]\[1\]: is no finite number"),
        (DataError, ([0, 1], {"m": ["a", "b"]}), r"models\['m'\]: are no numbers"),
        (DataError, ([0, 1], {"m": [0.1, 0.2]}, {"g": ["a"]}), r"by\['g'\]: has 1 values and there are 2 truths"),
        (SpecError, (["no", "yes"], {"m": [0.1, 0.2]}), "which label is positive"),
        (SpecError, ([0, 1, 2], {"m": [0.1, 0.2, 0.3]}), "which label is positive|parts two classes"),
    ],
)
def test_columns_that_do_not_fit_are_told(fault: type[Exception], given: Any, told: str) -> None:
    with pytest.raises(fault, match=told):
        Confidences.read(*given)


def test_an_objective_is_not_called_as_a_column_of_points() -> None:
    for name in ("system", "model", "threshold", "trivial"):
        with pytest.raises(SpecError, match=f"'{name}' is a column of points; give the objective 'accuracy' another"):
            Objective("accuracy", name=name)


@pytest.mark.parametrize("confidence", [0, 1, 95, NAN])
def test_a_confidence_that_is_none_is_told(confidence: float) -> None:
    points = solve(small(), FAIR)
    for made in (points.with_intervals, points.bands, points.hypervolume_interval):
        with pytest.raises(SpecError, match="must lie between 0 and 1"):
            made(confidence)


def test_no_replicate_is_told() -> None:
    points = solve(small(), FAIR)
    for made in (points.bands, points.hypervolume_interval):
        with pytest.raises(SpecError, match="replicates=0 must be 1 or more"):
            made(replicates=0)


def test_no_system_and_those_of_other_objectives_are_told() -> None:
    with pytest.raises(SpecError, match="no system is given"):
        compared({})
    with pytest.raises(SpecError, match="b has other objectives than the systems before it"):
        compared({"a": solve(small(), FAIR), "b": solve(small(), ["accuracy", "recall"])})


def test_a_positive_label_can_be_named() -> None:
    columns = (["no", "yes"], {"m": [0.1, 0.2]})
    assert Confidences.read(*columns, label="yes").truth.tolist() == [False, True]
    with pytest.raises(SpecError, match="no truth is 'maybe'"):
        Confidences.read(*columns, label="maybe")
    with pytest.raises(SpecError, match="besides 1 the truth has 0 and 2"):
        Confidences.read([0, 1, 2], {"m": [0.1, 0.2, 0.3]}, label=1)


def test_systems_are_compared_by_name() -> None:
    points = solve(small(), FAIR)
    assert compared({"one": points, "same": points})["one"]["relative_onvg"] == 1.0
