"""Errors and correlations of numbers, against scikit-learn and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
import sklearn.metrics as sk
from support.thinned import thinned

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.comparison.pairing import why_unpairable
from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.column_statistics import Mean, Quantile
from evaluand.metrics.correlations import ExplainedVariance, Kendall, Pearson, RSquared, Spearman
from evaluand.metrics.errors import (
    MaxError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogError,
    RootMeanSquaredError,
)
from evaluand.predictions.evaluating import evaluate

REFERENCES: dict[str, Any] = {
    "mean_squared_error": sk.mean_squared_error,
    "root_mean_squared_error": sk.root_mean_squared_error,
    "mean_absolute_error": sk.mean_absolute_error,
    "mean_absolute_percentage_error": sk.mean_absolute_percentage_error,
    "mean_squared_log_error": sk.mean_squared_log_error,
    "r_squared": sk.r2_score,
    "explained_variance": sk.explained_variance_score,
    "median_absolute_error": sk.median_absolute_error,
    "max_error": sk.max_error,
    "pearson": lambda t, p: scipy.stats.pearsonr(t, p).statistic,
    "spearman": lambda t, p: scipy.stats.spearmanr(t, p).statistic,
    "kendall": lambda t, p: scipy.stats.kendalltau(t, p).statistic,
}
KINDS = sorted(REFERENCES)
WEIGHTED = [
    kind for kind in KINDS if kind not in ("median_absolute_error", "max_error", "pearson", "spearman", "kendall")
]


def made(kind: str, **parameters: Any) -> Metric:
    metric: Metric = registry.find("metrics", kind)(**parameters)
    return metric


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Truths and predictions of few values, so that there are ties; none is 0."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(1, 30, n) / 4
    return truth, np.abs(np.round(truth + generator.normal(0, 2, n), 1))


def table(truth: Any, prediction: Any, **columns: Any) -> pa.Table:
    n = len(truth)
    held = {"_index_": np.arange(n), "status": ["scored"] * n, "truth": truth, "prediction": prediction}
    return pa.table({**held, **columns})


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


@pytest.mark.parametrize("kind", KINDS)
@thinned("n", [2, 7, 500, 501], every=2)
def test_values_are_those_of_the_reference(kind: str, n: int) -> None:
    truth, prediction = drawn(n, n)
    row = one(table(truth, prediction), made(kind))
    assert row.value == pytest.approx(REFERENCES[kind](truth, prediction), rel=1e-12, abs=1e-12)
    assert kind == "max_error" or n < 3 or row.low <= row.value <= row.high


@pytest.mark.parametrize("kind", WEIGHTED)
def test_weighted_values_are_those_of_the_reference(kind: str) -> None:
    truth, prediction = drawn(300)
    weight = np.random.default_rng(1).exponential(size=300)
    row = one(table(truth, prediction, _weight_=weight), made(kind, weighted=True))
    assert row.value == pytest.approx(REFERENCES[kind](truth, prediction, sample_weight=weight), rel=1e-12)


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
def test_a_row_of_weight_three_counts_as_three_rows(kind: str) -> None:
    truth, prediction = drawn(120)
    times = np.random.default_rng(2).integers(0, 4, 120)
    row = one(table(truth, prediction, _weight_=times.astype(float)), made(kind, weighted=True))
    expected = REFERENCES[kind](np.repeat(truth, times), np.repeat(prediction, times))
    assert row.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_halves_merge_to_the_whole(kind: str) -> None:
    whole = table(*drawn(400), topic=np.arange(400) % 3)
    by = [(), ("topic",)]
    halves = summarise([whole.slice(0, 173), whole.slice(173)], [made(kind)], by)
    for a, b in zip(halves, summarise([whole], [made(kind)], by), strict=True):
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-12, nan_ok=True)
    again = summarise([whole.slice(0, 173), whole.slice(173)], [made(kind)], by)
    assert repr(again) == repr(halves)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_as_tables_of_their_own(kind: str) -> None:
    truth, prediction = drawn(200)
    part = np.arange(200) % 2
    rows = summarise([table(truth, prediction, part=part)], [made(kind)], [("part",)])
    for row, chosen in zip(rows, (part == 0, part == 1), strict=True):
        assert row.value == pytest.approx(REFERENCES[kind](truth[chosen], prediction[chosen]), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_does_not_matter(kind: str) -> None:
    whole = table(*drawn(150))
    mixed = whole.take(np.random.default_rng(3).permutation(150)).set_column(0, "_index_", whole["_index_"])
    assert one(mixed, made(kind)).value == pytest.approx(one(whole, made(kind)).value, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_have_no_value_and_a_reason(kind: str) -> None:
    row = one(table(np.empty(0), np.empty(0)), made(kind))
    assert math.isnan(row.value)
    assert row.reason == "no scored rows"


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_is_missing_is_refused_by_row(kind: str) -> None:
    with pytest.raises(DataError, match="_index_ 1: is scored but has no prediction"):
        one(table([1.0, 2.0], [1.0, None]), made(kind))


@pytest.mark.parametrize(
    ("kind", "truth", "prediction", "why"),
    [
        ("mean_absolute_percentage_error", [0.0, 1.0], [1.0, 1.0], "1 row has the truth 0"),
        ("mean_squared_log_error", [1.0, -2.0], [-1.0, 1.0], "2 rows have a truth or a prediction below 0"),
        ("r_squared", [2.0, 2.0], [1.0, 2.0], "all truths are one value"),
        ("explained_variance", [0.1, 0.1, 0.1], [1.0, 2.0, 3.0], "all truths are one value"),
        ("pearson", [0.1, 0.1, 0.1], [1.0, 2.0, 3.0], "all truths are one value"),
        ("pearson", [1.0, 2.0, 3.0], [0.3, 0.3, 0.3], "all predictions are one value"),
        ("spearman", [1.0, 2.0, 3.0], [0.3, 0.3, 0.3], "all predictions are one value"),
        ("kendall", [1.0, 1.0, 1.0], [0.3, 0.4, 0.5], "all truths or all predictions are one value"),
        ("mean_squared_error", [1e300], [-1e300], "too large"),
        ("max_error", [1.7e308], [-1.7e308], "too large"),
    ],
)
def test_what_is_undefined_has_a_reason_and_no_value(kind: str, truth: Any, prediction: Any, why: str) -> None:
    row = one(table(truth, prediction), made(kind))
    assert math.isnan(row.value)
    assert why in str(row.reason)


def test_a_group_without_zeros_has_its_percentage_error() -> None:
    shard = table([0.0, 2.0, 4.0], [1.0, 1.0, 3.0], part=["a", "b", "b"])
    _, a, b = summarise([shard], [MeanAbsolutePercentageError()], [(), ("part",)])
    assert (math.isnan(a.value), b.value) == (True, 0.375)


@pytest.mark.parametrize("kind", ["r_squared", "explained_variance"])
def test_constant_truth_can_have_the_values_of_scikit_learn(kind: str) -> None:
    metric = made(kind, constant="zero_or_one")
    for prediction in ([0.5, 0.5, 0.5], [0.5, 0.2, 0.5]):
        expected = REFERENCES[kind]([0.5, 0.5, 0.5], prediction)
        assert one(table([0.5, 0.5, 0.5], prediction), metric).value == expected
    assert one(table([0.1, 0.1, 0.1], [0.1, 0.2, 0.1]), metric).value == 0  # whose mean is not 0.1
    assert math.isnan(one(table([1.0], [1.0]), metric).value)
    with pytest.raises(SpecError, match="constant is the text 'other'; give one of undefined, zero_or_one"):
        made(kind, constant="other")


def test_numbers_far_from_zero_keep_their_digits() -> None:
    truth, prediction = drawn(300)
    prediction = np.round(prediction)
    for kind in ("r_squared", "explained_variance", "pearson"):
        near = one(table(truth, prediction), made(kind)).value
        assert one(table(truth + 2.0**30, prediction + 2.0**30), made(kind)).value == pytest.approx(near, rel=1e-12)


def test_the_root_has_the_roots_of_the_ends() -> None:
    square, root = (one(table(*drawn(50)), metric()) for metric in (MeanSquaredError, RootMeanSquaredError))
    assert (root.value, root.low, root.high) == tuple(map(math.sqrt, (square.value, square.low, square.high)))


def test_errors_can_be_compared_except_the_largest() -> None:
    for kind in (MeanSquaredError, MeanAbsoluteError, MeanSquaredLogError, RootMeanSquaredError):
        assert why_unpairable(kind()) is None
    assert "max_error has no differences" in str(why_unpairable(MaxError()))


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(i, marks=pytest.mark.slow) for i in range(2, 5))])
def test_pearson_s_interval_is_fisher_s_with_the_jackknife_s_variance(seed: int) -> None:
    n = 25
    x = np.random.default_rng(seed).normal(size=(2, n))
    truth, prediction = x[0], 0.6 * x[0] + 0.8 * x[1]
    r = REFERENCES["pearson"](truth, prediction)
    left = np.array([REFERENCES["pearson"](np.delete(truth, i), np.delete(prediction, i)) for i in range(n)])
    error = math.sqrt((n - 1) / n * np.square(left - left.mean()).sum()) / (1 - r * r)
    half = scipy.stats.t.ppf(0.975, n - 1) * error
    row = one(table(truth, prediction), made("pearson"))
    assert (row.low, row.high) == pytest.approx([math.tanh(math.atanh(r) + sign * half) for sign in (-1, 1)], rel=1e-9)


def test_of_many_normal_rows_the_interval_of_a_correlation_is_fisher_s() -> None:
    x = np.random.default_rng(5).normal(size=(2, 20_000))
    truth, prediction = x[0], 0.6 * x[0] + 0.8 * x[1]
    fisher = scipy.stats.pearsonr(truth, prediction).confidence_interval(0.95)
    row = one(table(truth, prediction), Pearson())
    width = fisher.high - fisher.low
    assert (row.low + row.high) / 2 == pytest.approx((fisher.low + fisher.high) / 2, abs=0.01 * width)
    assert row.high - row.low == pytest.approx(width, rel=0.02)


def test_the_mean_of_targets_has_the_interval_of_the_means_of_rows() -> None:
    values = np.random.default_rng(6).random((12, 2))
    shard = pa.table(
        {"_index_": np.repeat(np.arange(12), 2), "status": ["scored"] * 24, "target": ["a", "b"] * 12}
        | {"value": values.ravel()}
    )
    means = values.mean(axis=1)
    row = summarise([shard], [Mean(over_targets="mean")])[2]
    ends = scipy.stats.t.interval(0.95, 11, means.mean(), scipy.stats.sem(means))
    assert (row.low, row.high) == pytest.approx(ends, rel=1e-12)
    single = pa.table({"_index_": np.arange(12), "status": ["scored"] * 12, "value": means})
    row = summarise([shard], [Mean(range=(0, 1), over_targets="mean")])[2]
    same = one(single, Mean(range=(0, 1)))
    assert (row.low, row.high) == pytest.approx((same.low, same.high), rel=1e-12)
    alike = shard.set_column(3, "value", pa.array(np.full(24, 0.5)))
    of_range, of_none = (summarise([alike], [Mean(range=r, over_targets="mean")])[2] for r in ((0, 1), (0, math.inf)))
    assert of_range.low < 0.5 < of_range.high
    assert math.isnan(of_none.low)
    assert of_none.reason == "no interval of a mean of these"


@pytest.mark.parametrize("metric", [Kendall(weighted=True), Spearman(weighted=True)])
def test_the_influence_of_a_row_is_the_derivative_of_the_value(metric: Kendall | Spearman) -> None:
    truth, prediction = (each.round() for each in drawn(60))  # with ties
    weight = np.random.default_rng(4).uniform(0.5, 3, 60)
    columns = {"truth": truth, "prediction": prediction, "_cluster_": np.arange(60), "_weight_": weight}
    [(_, rows)] = metric.rows_of(metric.state(columns, np.zeros(60, np.int64), 1))
    rows = metric.arranged(rows)
    weight, step = rows["_weight_"], 1e-5 * np.eye(60)
    changed = (metric.value(rows, weight + step) - metric.value(rows, weight - step)) / 2e-5
    np.testing.assert_allclose(metric.influence(rows, weight), changed, atol=1e-9)


def test_arrays_have_metrics_of_numbers_by_name() -> None:
    truth, prediction = drawn(40)
    found = evaluate(truth, prediction, metrics=KINDS, by={"half": np.arange(40) < 20})
    for kind in KINDS:
        assert found[kind].value == pytest.approx(REFERENCES[kind](truth, prediction), rel=1e-12)
    assert evaluate([1, 2, 4], [1, 2, 2], metrics="max_error")["max_error"].value == 2


# Over targets


@pytest.fixture
def targets() -> pa.Table:
    """Two targets of the first 30 examples, and one of the next 10."""
    truth, prediction = drawn(70)
    index = np.array([*np.repeat(np.arange(30), 2), *range(30, 40)])
    target = np.where(np.arange(70) < 60, np.arange(70) % 2, 0).astype(str)
    return table(truth, prediction, target=target).set_column(0, "_index_", pa.array(index))


def per_target(shard: pa.Table, reference: Any) -> list[float]:
    truth, prediction, target = (
        shard[name].to_numpy(zero_copy_only=False) for name in ("truth", "prediction", "target")
    )
    return [float(reference(truth[target == t], prediction[target == t])) for t in ("0", "1")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_over_targets_stands_beside_the_value_of_each(kind: str, targets: pa.Table) -> None:
    expected = per_target(targets, REFERENCES[kind])
    rows = summarise([targets], [made(kind, over_targets="mean")])
    assert [row.target for row in rows] == ["0", "1", None]
    assert [row.value for row in rows] == pytest.approx([*expected, np.mean(expected)], rel=1e-12)
    assert [row.n for row in rows] == [40, 30, 70]
    assert rows[2].data["targets"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_pooled_targets_are_one(kind: str, targets: pa.Table) -> None:
    rows = summarise([targets], [made(kind, over_targets="pooled")])
    pooled = REFERENCES[kind](targets["truth"].to_numpy(), targets["prediction"].to_numpy())
    assert [row.target for row in rows] == ["0", "1", None]
    assert rows[2].value == pytest.approx(pooled, rel=1e-12)


@pytest.mark.parametrize("over", ["mean", "pooled"])
def test_values_of_targets_are_the_same_beside_a_value_over_them(over: Any, targets: pa.Table) -> None:
    for kind in KINDS:
        alone = summarise([targets], [made(kind)])
        beside = summarise([targets], [made(kind, over_targets=over)])[:2]
        assert [row._replace(signature="") for row in beside] == [row._replace(signature="") for row in alone] or (
            repr([row[2:] for row in beside]) == repr([row[2:] for row in alone])
        )


@pytest.mark.parametrize("over", ["mean", "pooled"])
@thinned("kind", KINDS, every=3)
def test_shards_of_targets_merge_to_the_whole(kind: str, over: Any, targets: pa.Table) -> None:
    metric = made(kind, over_targets=over)
    parts = summarise([targets.slice(0, 60), targets.slice(60)], [metric])  # the second has one target
    for a, b in zip(parts, summarise([targets], [metric]), strict=True):
        assert a[2:4] == b[2:4]
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-9, nan_ok=True)


def test_targets_over_groups_have_a_value_for_each_group(targets: pa.Table) -> None:
    shard = targets.append_column("part", pa.array(np.where(targets["_index_"].to_numpy() < 20, "a", "b")))
    rows = summarise([shard], [RootMeanSquaredError(over_targets="mean")], [("part",)])
    assert [(row.target, row.by["part"]) for row in rows] == [
        ("0", "a"),
        ("0", "b"),
        ("1", "a"),
        ("1", "b"),
        (None, "a"),
        (None, "b"),
    ]
    assert rows[4].value == pytest.approx((rows[0].value + rows[2].value) / 2)


def test_a_table_without_targets_has_no_value_over_them() -> None:
    for over in ("mean", "pooled"):
        assert len(summarise([table(*drawn(9))], [MeanSquaredError(over_targets=over)])) == 1


def test_the_mean_over_targets_of_the_same_examples_has_the_interval_of_their_means() -> None:
    truth, prediction = drawn(200)
    pairs = table(truth, prediction, target=np.tile(["a", "b"], 100))
    pairs = pairs.set_column(0, "_index_", pa.array(np.repeat(np.arange(100), 2)))
    by_row = summarise([pairs], [MeanAbsoluteError(over_targets="mean")])[2]
    of_means = np.abs(truth - prediction).reshape(-1, 2).mean(axis=1)
    interval = scipy.stats.t.interval(0.95, 99, of_means.mean(), scipy.stats.sem(of_means))
    assert (by_row.low, by_row.high) == pytest.approx(interval, rel=1e-9)
    spread = summarise([pairs], [RootMeanSquaredError(over_targets="mean")])[2]
    assert spread.low < spread.value < spread.high


def test_bounds_and_missing_rows_go_over_targets() -> None:
    shard = pa.table(
        {
            "_index_": [0, 0, 1, 1],
            "target": ["a", "b", "a", "b"],
            "status": ["scored", "scored", "failed", "scored"],
            "value": [1.0, 0.0, None, 0.0],
        }
    )
    mean = summarise([shard], [Accuracy(over_targets="mean")])[2]
    assert (mean.value, mean.worst, mean.best, mean.n, mean.n_failed) == (0.5, 0.25, 0.5, 4, 1)
    pooled = summarise([shard], [Accuracy(over_targets="pooled")])[2]
    assert (pooled.value, pooled.worst, pooled.best, pooled.data["clusters"]) == (1 / 3, 0.25, 0.5, 2)


def test_a_target_without_a_value_leaves_the_mean_without_one() -> None:
    shard = table([1.0, 1.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0], target=["a", "b", "a", "b"])
    shard = shard.set_column(0, "_index_", pa.array([0, 0, 1, 1]))
    row = summarise([shard], [RSquared(over_targets="mean")])[2]
    assert math.isnan(row.value)
    assert "all truths are one value" in str(row.reason)


def test_a_group_that_lacks_a_target_has_no_mean_over_all_and_names_it() -> None:
    shard = pa.table(
        {
            "_index_": [0, 0, 1, 1, 2],
            "target": ["a", "b", "a", "b", "a"],
            "status": [*["scored"] * 3, "failed", "scored"],
            "value": [1.0, 0.0, 1.0, None, 1.0],
            "part": ["x", "x", "x", "x", "y"],
        }
    )
    x, y = summarise([shard], [Accuracy(over_targets="mean")], [("part",)])[-2:]
    assert (x.value, x.worst, x.data["targets"]) == (0.5, 0.5, 2)
    assert (y.n_scored, y.data["targets"]) == (1, 2)
    assert all(map(math.isnan, (y.value, y.low, y.worst, y.best)))
    assert y.reason == "no mean over 2 targets: no rows of b"


def test_an_unknown_way_over_targets_is_refused() -> None:
    with pytest.raises(SpecError, match="over_targets is the text 'each'; give one of pooled, mean"):
        Accuracy(over_targets="each")  # type: ignore[arg-type]


def test_kinds_without_an_interval_over_targets_say_so(targets: pa.Table) -> None:
    row = summarise([targets], [Quantile(q=0.5, column="truth", over_targets="mean")])[2]
    assert (math.isnan(row.low), row.reason) == (True, "no interval of a mean of these")


def test_correlations_of_ranks_at_every_size_are_those_of_scipy() -> None:
    for n in range(2, 40):
        truth, prediction = drawn(n, n)
        for metric, reference in ((Spearman(), scipy.stats.spearmanr), (Kendall(), scipy.stats.kendalltau)):
            expected = (
                reference(truth, prediction).statistic if len(set(prediction)) > 1 < len(set(truth)) else math.nan
            )
            assert one(table(truth, prediction), metric).value == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_explained_variance_forgives_what_is_common_to_all_errors() -> None:
    shard = table([1.0, 2.0, 3.0], [11.0, 12.0, 13.0])
    assert one(shard, ExplainedVariance()).value == 1.0
    assert one(shard, RSquared()).value == pytest.approx(-149.0)


def test_perfect_agreement_of_order_is_exactly_one() -> None:
    assert [
        evaluate(np.arange(n) * 1.0, np.arange(n) * 2.0, metrics="kendall")["kendall"].value for n in (7, 10, 33)
    ] == [1.0] * 3
