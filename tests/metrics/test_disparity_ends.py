"""Disparities are the same by every door, and cost little where groups are many."""

from __future__ import annotations

import math
import tracemalloc
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from support.thinned import thinned

from evaluand import evaluate
from evaluand.aggregation.disparity import DisparityRow
from evaluand.core.errors import SpecError
from evaluand.metrics.stats.disparity import FEW, IntervalEnds, disparity, interval_of_largest
from evaluand.metrics.stats.intervals import wilson
from evaluand.tradeoff import Confidences, Tradeoff, solve

METRICS = (
    "accuracy",
    "selection_rate",
    "recall",
    "precision",
    "false_positive_rate",
    "jaccard",
    "f_beta",
    "balanced_accuracy",
    "cohen_kappa",
)


def rows(groups: int, n: int = 600, seed: int = 5) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    truth = random.random(n) < 0.4
    sure = np.clip(random.normal(0.35 + 0.3 * truth, 0.2), 0, 1)
    return {"truth": truth, "sure": sure, "group": np.array([*"abcdefghijklmnopqrst"])[random.integers(0, groups, n)]}


def together(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("weight", "cluster") if name in given}


def by_evaluate(given: dict[str, Any], metric: str, kind: Any) -> DisparityRow:
    asked: dict[str, Any] = {"metrics": [metric], "disparities": kind}
    if metric == "equalized_odds":
        asked = {"fairness": metric}
    found = evaluate(given["truth"], given["sure"] >= 0.5, by={"g": given["group"]}, **asked, **together(given))
    [row] = [each for each in found.disparities if (each.metric, each.disparity) == (metric, kind)]
    return row


def by_solve(given: dict[str, Any], metric: str, kind: str, undefined: Any = "nan") -> Tradeoff:
    confidences = Confidences.read(given["truth"], {"m": given["sure"]}, {"g": given["group"]}, **together(given))
    return solve(confidences, [f"{metric} {kind} by g"], [0.5], undefined).with_intervals()


def check_alike(given: dict[str, Any], metric: str, kind: str) -> DisparityRow:
    """The value, the interval, and what else there is to tell."""
    expected, points = by_evaluate(given, metric, kind), by_solve(given, metric, kind)
    [output] = points.facts(points.objectives[0].name)
    assert points.ends is not None
    ends = [float(end[0, 0]) for end in points.ends]
    assert ends == pytest.approx([expected.value, expected.low, expected.high], rel=1e-9, abs=1e-12, nan_ok=True)
    numbers = ("value", "low", "high")
    assert [getattr(output, name) for name in numbers] == pytest.approx(ends, rel=1e-9, abs=1e-12, nan_ok=True)
    others = dict.fromkeys((*numbers, "family_low", "family_high", "family_size"), 0) | {"found": False}
    assert output._replace(**others) == expected._replace(**others)
    return output


@pytest.mark.parametrize("groups", [pytest.param(2, marks=pytest.mark.slow), 6])
@pytest.mark.parametrize("metric", METRICS)
@thinned("kind", ["difference", "ratio", "min", "max"], every=3)
def test_a_disparity_of_the_same_rows_is_the_same_by_every_door(metric: str, kind: str, groups: int) -> None:
    if (metric, kind) == ("cohen_kappa", "ratio") or (kind in ("min", "max") and metric == "selection_rate"):
        with pytest.raises(SpecError):
            by_solve(rows(groups), metric, kind)
        return
    check_alike(rows(groups), metric, kind)


@pytest.mark.parametrize("names", [("weight",), ("cluster",), ("weight", "cluster")], ids=" and ".join)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["difference", "min"])
@pytest.mark.slow
def test_of_rows_with_weights_or_clusters_intervals_are_nearly_the_same(
    metric: str, kind: str, names: tuple[str, ...]
) -> None:
    """Metrics of rows leave out blocks of clusters, and trade-offs linearise the value."""
    given, kind = rows(2), "difference" if metric == "selection_rate" else kind
    beside = {"weight": np.random.default_rng(1).random(600) * 2 + 0.1, "cluster": np.arange(600) // 3}
    given |= {name: beside[name] for name in names}
    expected, points = by_evaluate(given, metric, kind), by_solve(given, metric, kind)
    [output] = points.facts(points.objectives[0].name)
    assert output.value == pytest.approx(expected.value, rel=1e-9)
    assert (output.lowest, output.highest, output.n_groups) == (expected.lowest, expected.highest, expected.n_groups)
    assert (output.low, output.high) == pytest.approx(
        (expected.low, expected.high), abs=0.12 * (output.high - output.low)
    )


@pytest.mark.parametrize("metric", ["f_beta", "balanced_accuracy", "matthews_correlation", "cohen_kappa"])
@pytest.mark.parametrize("name", ["weight", "cluster"])
def test_few_rows_of_a_class_are_no_certainty_by_any_door(metric: str, name: str) -> None:
    """Ten of 200 rows are positive, and all are right."""
    truth = np.arange(200) < 10
    beside = {"weight": np.where(np.arange(200) % 2, 1, 1.0001), "cluster": np.append(np.arange(199), 198)}[name]
    [row] = evaluate(truth, truth, metrics=metric, label=True if metric == "f_beta" else None, **{name: beside}).rows
    given = Confidences.read(truth, {"m": np.where(truth, 0.9, 0.1)}, **{name: beside})
    ends = solve(given, [metric], [0.5]).with_intervals().ends
    assert ends is not None
    assert (ends.low[0, 0], ends.high[0, 0]) == pytest.approx((row.low, row.high), abs=0.002)
    assert row.low < 0.85


@thinned("groups", [2, 6, 20], every=3)
@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_criteria_of_several_rates_are_the_same_by_every_door(kind: str, groups: int) -> None:
    output = check_alike(rows(groups), "equalized_odds", kind)
    assert output.decided_by in ("recall", "false_positive_rate")


def no_negatives() -> dict[str, Any]:
    """The third group has no negative row, the fourth a single one."""
    given = rows(4, 200)
    given["truth"] = given["truth"] | (given["group"] == "c")
    given["truth"][given["group"] == "d"] = True
    given["truth"][np.flatnonzero(given["group"] == "d")[0]] = False
    return given


@pytest.mark.parametrize("metric", ["false_positive_rate", "equalized_odds", "cohen_kappa"])
def test_groups_without_a_value_or_an_interval_are_reported_alike(metric: str) -> None:
    output = check_alike(no_negatives(), metric, "difference")
    if metric != "cohen_kappa":
        assert output.undefined == ({"g": "c"},)
        assert {"g": "d"} in output.small


def test_ratios_of_zeros_are_reported_alike() -> None:
    given = rows(3)
    given["sure"] = np.where(given["group"] == "a", given["sure"] * 0.4, given["sure"])
    output = check_alike(given, "selection_rate", "ratio")
    assert (output.value, output.low, output.lowest) == (0.0, 0.0, {"g": "a"})
    given["sure"] = given["sure"] * 0.4
    output = check_alike(given, "selection_rate", "ratio")
    assert math.isnan(output.value)
    assert output.reason == "a ratio of zeros: all groups have the value 0"


def test_one_group_is_no_disparity_of_points_either() -> None:
    for kind in ("difference", "min"):
        assert check_alike(rows(1), "recall", kind).reason == (
            "only one group has a value; a disparity is one of two groups"
        )


def test_facts_are_those_of_each_point_in_its_place() -> None:
    given = rows(3)
    sure = {"m": given["sure"], "other": 1 - given["sure"]}
    confidences = Confidences.read(given["truth"], sure, {"g": given["group"]})
    points = solve(confidences, ["recall difference by g", "roc_auc difference by g"], [0.3, 0.5])
    for name in ("recall difference by g", "roc_auc difference by g"):
        whole = points.facts(name)
        assert [each.value for each in whole] == points[name].tolist()
        assert points.take(np.array([3, 0])).facts(name) == [whole[3], whole[0]]


def test_facts_of_what_has_none_are_refused() -> None:
    given = rows(2)
    points = solve(Confidences.read(given["truth"], {"m": given["sure"]}), ["accuracy"], [0.5])
    with pytest.raises(SpecError, match="accuracy compares no groups; give an objective such as"):
        points.facts("accuracy")
    with pytest.raises(SpecError, match="there is no objective 'recall'"):
        points.facts("recall")


# What is undefined counts as 0


def test_what_rests_on_a_rate_without_rows_that_counts_as_0_has_no_interval() -> None:
    given = no_negatives()
    points = by_solve(given, "false_positive_rate", "difference", "zero")
    native = by_solve(given, "false_positive_rate", "difference")
    assert points.ends is not None
    assert native.ends is not None
    assert points.value[0, 0] > native.value[0, 0]
    assert np.isnan(points.ends.low[0, 0])
    assert native.ends.low[0, 0] >= 0
    [output] = points.facts(points.objectives[0].name)
    assert (output.lowest, output.undefined, output.n_groups) == ({"g": "c"}, ({"g": "c"},), 4)
    assert output.reason == "rests on rates without rows, which count as 0"
    assert np.isnan(points.bands(replicates=20).low[0, 0])


def test_points_keep_what_is_undefined_as_it_was_asked_for() -> None:
    given = no_negatives()
    points = by_solve(given, "false_positive_rate", "difference", "zero")
    assert points.confidences is not None
    again, native = points.at(points.confidences), points.at(points.confidences, "nan")
    assert (again.undefined, native.undefined) == ("zero", "nan")
    assert again.value.tolist() == points.value.tolist() != native.value.tolist()
    assert points.take(np.array([0])).undefined == "zero"


def test_no_other_way_to_take_what_is_undefined_is_known() -> None:
    given = rows(2)
    confidences = Confidences.read(given["truth"], {"m": given["sure"]})
    with pytest.raises(SpecError, match="undefined='foo' must be 'nan', which leaves such groups out, or 'zero'"):
        solve(confidences, ["accuracy"], [0.5], undefined="foo")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="undefined='foo'"):
        solve(confidences, ["accuracy"], [0.5]).at(confidences, "foo")  # type: ignore[arg-type]


def test_values_that_are_others_for_counting_0_are_marked_and_no_more() -> None:
    """A group without negatives counts as 0: that changes nothing where another group's rate is 0."""
    given = {"truth": [1, 1, 0, 0, 0, 0], "sure": [0.9, 0.2, 0.1, 0.2, 0.1, 0.8], "group": list("aabbcc")}
    points = by_solve(given, "false_positive_rate", "difference", "zero")
    assert (points.value[0, 0], points.as_zero) == (0.5, np.array([[False]]))
    given["sure"] = [0.9, 0.2, 0.6, 0.2, 0.9, 0.8]
    points = by_solve(given, "false_positive_rate", "difference", "zero")
    assert (points.value[0, 0], points.as_zero) == (1.0, np.array([[True]]))


# Many groups


def of_groups(shape: tuple[int, ...], least: float, most: float, seed: int = 0, n: int = 200) -> IntervalEnds:
    random = np.random.default_rng(seed)
    right = random.binomial(n, np.broadcast_to(np.linspace(least, most, shape[-1]), shape))
    return IntervalEnds(right / n, *wilson(right, np.full(shape, n), 0.95))


@thinned(("points", "groups"), [(300, 100), (2, 4000)], every=2)
def test_many_groups_are_compared_without_holding_their_pairs(points: int, groups: int) -> None:
    of = of_groups((points, groups), 0.3, 0.6)
    tracemalloc.start()
    try:
        found = disparity([of], "difference", 0.95, (0.0, 1.0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 250e6
    assert (found.ends.low > 0).all()
    assert (found.ends.low <= 0.3).mean() > 0.95


@pytest.mark.parametrize("kind", ["difference", "ratio", "min", "max"])
@thinned("groups", [2, 30, pytest.param(6, marks=pytest.mark.slow)], every=4)
@pytest.mark.parametrize(("least", "most"), [(0.5, 0.5), (0.45, 0.55), (0.3, 0.7)])
def test_intervals_hold_for_few_and_for_many_groups(kind: Any, groups: int, least: float, most: float) -> None:
    """Thirty groups have more pairs than the lower end is found for one by one."""
    assert 30 * 29 / 2 > FEW >= 6 * 5 / 2
    found = disparity([of_groups((1000, groups), least, most, n=100)], kind, 0.95, (0.0, 1.0)).ends
    truth = {"difference": most - least, "ratio": least / most, "min": least, "max": most}[kind]
    assert ((found.low <= truth + 1e-9) & (truth - 1e-9 <= found.high)).mean() >= 0.93


RACES = {
    "African-American": (805, 1795),
    "Caucasian": (349, 1488),
    "Hispanic": (87, 405),
    "Other": (36, 244),
    "Asian": (2, 23),
    "Native American": (3, 8),
}
"""False positives of the COMPAS scores (5 or more) among people who did not offend again in two years, by race: counted
in ProPublica's `compas-scores-two-years.csv`."""


def of_counts(wrong: Any, n: Any, kind: Any) -> IntervalEnds:
    wrong, n = np.asarray(wrong), np.broadcast_to(n, np.shape(wrong))
    return disparity([IntervalEnds(wrong / n, *wilson(wrong, n, 0.95))], kind, 0.95, (0.0, 1.0)).ends


@pytest.mark.parametrize(
    ("kind", "farther_than"), [("difference", 0.15), ("ratio", 0.55), ("min", 0.2346), ("max", 0.42)]
)
def test_small_groups_do_not_hide_what_two_large_groups_show(kind: Any, farther_than: float) -> None:
    """The false-positive rates of the two large groups are .45 and .23; two other groups have 23 and 8 rows."""
    found = of_counts(*zip(*RACES.values(), strict=True), kind)
    if kind in ("difference", "max"):
        assert farther_than < found.low < found.value
    else:
        assert found.value < found.high < farther_than


CELLS = [
    ((1000, 1000), (0.6, 0.4)),
    ((1000, 1000), (0.35, 0.25)),
    ((5000, 1000), (0.1, 0.2)),
    ((100_000, 100_000), (0.6, 0.4)),
]


@thinned("rows", [10, 18, 100], every=3)
@pytest.mark.parametrize(("large", "rates"), CELLS)
def test_a_small_group_costs_large_groups_a_tenth_of_their_lower_end_at_most(
    large: tuple[int, int], rates: tuple[float, float], rows: int
) -> None:
    """The rate of the small group is the mean of the others', so that the true difference remains the same."""
    n = np.array([*large, rows])
    wrong = np.random.default_rng(1).binomial(n, [*rates, sum(rates) / 2], (2000, 3))
    alone = of_counts(wrong[:, :2], n[:2], "difference")
    found = of_counts(wrong, n, "difference")
    truth = abs(rates[0] - rates[1])
    covered = float(((found.low <= truth) & (truth <= found.high)).mean())
    print(f"| {large[0]:,} ({rates[0]:g}), {large[1]:,} ({rates[1]:g}), {rows} rows ", end="")  # noqa: T201
    print(f"| {covered:.3f} | {np.median(alone.low):.3f} | {np.median(found.low):.3f} |")  # noqa: T201
    assert 0.93 <= covered <= 0.99
    assert np.median(found.low) >= 0.9 * np.median(alone.low)


def brute_force_lower_end(distances: list[tuple[float, float, float]], confidence: float) -> float:
    """The lower end of the largest of some distances, by trying values from 0 up, as its definition reads.

    A value c of the largest distance is contradicted if the distances would exceed it as clearly as they do less often
    than the error that remains beside that of the upper end. There each distance is as large as the data let it be, but
    not above c. How clearly one exceeds c is counted in its standard errors, less .15 for each logarithm of its error
    over the smallest.
    """
    normal, error = NormalDist(), 1 - confidence
    z = normal.inv_cdf(1 - error / 2)

    def within(limit: float, mean: float, sd: float) -> float:
        return normal.cdf((limit - mean) / sd) - normal.cdf((-limit - mean) / sd) if limit > 0 else 0.0

    downs = [(value - low) / z for value, low, _ in distances]
    ups = [(high - value) / z for value, _, high in distances]
    values = [value for value, _, _ in distances]
    penalty = [0.15 * math.log(down / min(downs)) for down in downs]
    step, c = max(values) / 4000, max(values)
    while c > 0:
        clearest = max((v - c) / d - p for v, d, p in zip(values, downs, penalty, strict=True))
        below = math.prod(
            within(c + d * (clearest + p), min(v + d, c), d) for v, d, p in zip(values, downs, penalty, strict=True)
        )
        above = math.prod(
            within(c - z * u, c if v == max(values) else max(min(v, c) - u, 0.0), u)
            for v, u in zip(values, ups, strict=True)
        )
        if 1 - below < error * min(0.75, 1 - above / error):
            return c
        c -= step
    return 0.0


@thinned("k", [1, 2, 3, 6], every=4)
def test_the_lower_end_is_the_smallest_value_that_is_not_contradicted(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(6):
        values = rng.uniform(0.02, 0.4, k)
        down, up = rng.uniform(0.02, 0.2, (2, k))
        found, high = interval_of_largest(IntervalEnds(values, values - down, values + up), 0.95)
        expected = brute_force_lower_end([*zip(values, values - down, values + up, strict=True)], 0.95)
        assert float(found) == pytest.approx(expected, abs=0.001)
        assert float(high) == pytest.approx(max(max(values + up), max(down - values)))


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_points_of_tradeoffs_hold_what_large_groups_show_beside_small_ones(kind: str) -> None:
    """At a threshold the false-positive rates of COMPAS by race have the interval of the same decisions elsewhere."""
    counts = [*RACES.items()]
    races = np.concatenate([np.repeat(race, n) for race, (_, n) in counts])
    decided = np.concatenate([np.arange(n) < wrong for _, (wrong, n) in counts])
    truth = np.append(np.zeros(len(races), bool), True)
    confidence = np.append(np.where(decided, 0.9, 0.1), 0.9)
    rows = Confidences.read(truth, {"m": confidence}, {"race": np.append(races, "Caucasian")})
    points = solve(rows, [f"false_positive_rate {kind} by race"], [0.5])
    expected = of_counts(*zip(*RACES.values(), strict=True), kind)
    for ends in (points.with_intervals().ends, points.with_bands().ends):
        assert ends is not None
        if kind == "difference":
            assert ends.low[0, 0] == pytest.approx(float(expected.low), abs=0.03)
            assert ends.low[0, 0] >= 0.15
        else:
            assert ends.high[0, 0] == pytest.approx(float(expected.high), abs=0.06)


def test_in_parts_and_at_once_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    of = of_groups((50, 6), 0.4, 0.6)
    whole = disparity([of, of_groups((50, 6), 0.2, 0.3, 1)], "difference", 0.95, (0.0, 1.0))
    monkeypatch.setattr("evaluand.metrics.stats.disparity._AT_ONCE", 100)
    parts = disparity([of, of_groups((50, 6), 0.2, 0.3, 1)], "difference", 0.95, (0.0, 1.0))
    assert all(np.array_equal(a, b) for a, b in zip(whole.ends, parts.ends, strict=True))
    assert np.array_equal(whole.of, parts.of)
