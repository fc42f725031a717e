"""Statistics of weighted rows: groups, weights, clusters, shards, the jackknife, and how often its intervals cover."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st
from support.effort import FEW_EXAMPLES, simulations

from evaluand.aggregation.groups import Grouping, MetricRow, merge, summarise, summarise_shard
from evaluand.core import registry
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.labels import object_array
from evaluand.metrics.base.metric import CLUSTER, INDEPENDENT, LABELS, WEIGHT, Metric
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric, weight_of_one
from evaluand.metrics.class_rates import FBeta, Jaccard, Precision, Recall, Specificity
from evaluand.metrics.confusion_matrix import (
    BalancedAccuracy,
    CohenKappa,
    HammingLoss,
    MatthewsCorrelation,
    WeightedKappa,
)
from evaluand.metrics.correlations import ExplainedVariance, Kendall, Pearson, RSquared, Spearman
from evaluand.metrics.covers import OverlappingMutualInformation
from evaluand.metrics.deviances import D2AbsoluteError, D2Tweedie
from evaluand.metrics.forecasts import WeightedAbsolutePercentageError
from evaluand.metrics.judging.alpha import KrippendorffAlpha
from evaluand.metrics.partitions import AdjustedRand, NormalizedMutualInformation, VMeasure
from evaluand.metrics.stats.intervals import Spread, interval_within, wilson

METRICS: tuple[WeightedRowsMetric, ...] = (
    CohenKappa(),
    FBeta(average="macro"),
    MatthewsCorrelation(),
    AdjustedRand(),
    VMeasure(confidence=None),
)


def table(truth: Sequence[Any], prediction: Sequence[Any], **columns: Any) -> pa.Table:
    n = len(truth)
    return pa.table(
        {"_index_": np.arange(n), "status": ["scored"] * n, "truth": truth, "prediction": prediction, **columns}
    )


BY_COUNTS: tuple[WeightedRowsMetric, ...] = (
    CohenKappa(),
    MatthewsCorrelation(),
    BalancedAccuracy(adjusted=True),
    FBeta(average="macro"),
    FBeta(label="a", zero_division=1),
    Recall(labels=["a", "b"]),
    Precision(average="weighted"),
    Specificity(average="macro"),
    FBeta(average="example"),
    HammingLoss(),
    VMeasure(beta=2),
    NormalizedMutualInformation(mean="geometric"),
    WeightedKappa(labels=["a", "b", "c"]),
    WeightedKappa(labels=["a", "b", "c"], weights="linear"),
)


def one(shard: pa.Table, metric: Metric, **options: Any) -> MetricRow:
    [row] = summarise([shard], [metric], **options)
    return row


def noisy(n: int, seed: int, right: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.choice(list("aaabbc"), n)
    return truth, np.where(rng.random(n) < right, truth, rng.choice(list("abc"), n))


def numbers(row: MetricRow) -> list[float]:
    return [row.value, row.low, row.high, row.worst, row.best]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", BY_COUNTS, ids=lambda metric: metric.kind)
def test_the_value_without_a_row_is_that_of_the_others(metric: WeightedRowsMetric, weighted: bool) -> None:
    """Of rows that are counted, each kind is left out once, by what it takes from sums."""
    truth, prediction = noisy(60, seed=5)
    weight = np.random.default_rng(5).integers(1, 8, 60) / 8
    metric = replace(metric, weighted=weighted, missing="leave_out")
    shard = table(truth, prediction, _weight_=weight, _cluster_=np.arange(60) % 37)
    summary = summarise_shard(shard, [metric])
    settled: Any = summary.settled(0)
    [(_, rows)] = settled.rows_of(summary.states[0, Grouping(())][None])
    kinds = settled.arranged(settled.kinds_of(rows).rows)
    one = weight_of_one(kinds)
    by_weights = WeightedRowsMetric.without_rows(settled, kinds, one)
    assert settled.without_rows(kinds, one) == pytest.approx(by_weights, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("level", ["nominal", "interval", "ratio", "ordinal"])
def test_alpha_without_a_row_is_that_of_the_others(level: Any) -> None:
    rng, metric = np.random.default_rng(0), KrippendorffAlpha(level=level)
    ratings = rng.integers(1, 5, (80, 3)).astype(float)
    ratings[rng.random((80, 3)) < 0.2] = np.nan
    rows = {**metric.arranged({"ratings": ratings}), WEIGHT: rng.integers(1, 4, 80).astype(float)}
    without = metric.without_rows(rows, np.ones(80))
    exact = WeightedRowsMetric.without_rows(metric, rows, np.ones(80))
    largest = np.abs(exact - metric.value(rows, rows[WEIGHT][None])[0]).max()
    assert np.abs(without - exact).max() <= (0.05 if level == "ordinal" else 1e-9) * largest  # ranks by derivative


@pytest.mark.parametrize("normalization", ["max", "lfk"])
def test_mutual_information_of_covers_without_a_row_is_that_of_the_others(normalization: Any) -> None:
    rng, metric = np.random.default_rng(0), OverlappingMutualInformation(normalization=normalization)
    sets = [tuple(f"c{j}" for j in range(4) if rng.random() < 0.4) for _ in range(120)]
    names = list(dict.fromkeys(sets))
    columns = dict(
        zip(("truth", "prediction"), np.array([names.index(each) for each in sets]).reshape(2, 60), strict=True)
    )
    columns["prediction"] = np.where(rng.random(60) < 0.7, columns["truth"], columns["prediction"])
    columns |= {LABELS: object_array(names), WEIGHT: rng.integers(1, 4, 60).astype(float)}
    rows = metric.arranged(columns)
    exact = WeightedRowsMetric.without_rows(metric, rows, np.ones(60))
    assert metric.without_rows(rows, np.ones(60)) == pytest.approx(exact, abs=1e-9)


# Merging


@settings(max_examples=FEW_EXAMPLES)  # of each every metric, whole and in parts
@example(n=9, seed=46, cuts={4}, weighted=True, clustered=True)  # without a cluster, chance agrees but for rounding
@given(
    n=st.integers(1, 40),
    seed=st.integers(0, 99),
    cuts=st.sets(st.integers(1, 39), max_size=3),
    weighted=st.booleans(),
    clustered=st.booleans(),
)
def test_any_partition_merges_to_the_whole(n: int, seed: int, cuts: set[int], weighted: bool, clustered: bool) -> None:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"by": rng.choice(["x", "y"], n), "_weight_": rng.random(n)}
    if clustered:
        columns["_cluster_"] = rng.integers(-3, 3, n)
    shard = table(*noisy(n, seed), **columns)
    metrics = [replace(m, weighted=weighted) for m in METRICS]
    borders = [0, *sorted(cut for cut in cuts if cut < n), n]
    parts = [summarise_shard(shard.slice(a, b - a), metrics, [(), ("by",)]) for a, b in itertools.pairwise(borders)]
    whole = summarise([shard], metrics, [(), ("by",)])
    for cut, row in zip(merge(parts).rows(), whole, strict=True):
        assert (cut.by, cut.reason, cut.n, cut.data.get("clusters")) == (
            row.by,
            row.reason,
            row.n,
            row.data.get("clusters"),
        )
        np.testing.assert_allclose(numbers(cut), numbers(row), rtol=1e-12, atol=1e-12)
        if not weighted:
            assert str(numbers(cut)) == str(numbers(row))


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))])
def test_a_single_label_correlates_with_nothing_however_its_weights_are_summed(order: tuple[int, ...]) -> None:
    weight = np.array([0.1, 0.2, 0.3, 0.7])[list(order)]
    shard = table(["a", "b", "a", "c"], ["a"] * 4, _weight_=weight)
    [row] = summarise([shard], [MatthewsCorrelation(weighted=True)])
    assert math.isnan(row.value)
    assert row.reason == "all truths, or all predictions, are one label"


def test_merging_two_by_two_in_order_is_bit_for_bit_merging_all() -> None:
    shard = table(*noisy(300, 5), _weight_=np.random.default_rng(0).random(300))
    metrics = [CohenKappa(weighted=True), FBeta(average="macro", weighted=True)]
    parts = [summarise_shard(shard.slice(start, 50), metrics) for start in range(0, 300, 50)]
    folded = parts[0]
    for part in parts[1:]:
        folded = merge([folded, part])
    assert str(folded.rows()) == str(summarise([shard.slice(start, 50) for start in range(0, 300, 50)], metrics))


@settings(max_examples=FEW_EXAMPLES)
@given(seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    truth, prediction = noisy(60, seed)
    order = np.random.default_rng(seed).permutation(60)
    mixed = table(truth[order], prediction[order]).set_column(0, "_index_", pa.array(order))
    for metric in METRICS:
        assert str(numbers(one(mixed, metric))) == str(numbers(one(table(truth, prediction), metric)))


# Groups, weights, clusters


def test_a_group_is_worth_what_its_rows_alone_are() -> None:
    truth, prediction = noisy(80, 1)
    names = np.where(np.arange(80) % 3 == 0, "x", "y")
    shard = table(truth, prediction, by=names)
    for metric in METRICS:
        for row in summarise([shard], [metric], [("by",)]):
            alone = one(shard.filter(pa.array(names == row.by["by"])), metric)
            assert str(numbers(alone)) == str(numbers(row))


def test_a_group_without_rows_is_undefined_and_says_so() -> None:
    for metric in METRICS:
        row = one(table([], []), metric)
        assert (math.isnan(row.value), row.reason) == (True, "no scored rows")


REPEATABLE = [metric for metric in METRICS if metric.kind != "adjusted_rand"]  # a row makes no pair with itself


@pytest.mark.parametrize("metric", REPEATABLE, ids=lambda metric: metric.kind)
def test_weights_are_worth_repeated_rows(metric: WeightedRowsMetric) -> None:
    truth, prediction = noisy(30, 2)
    times = np.arange(30) % 3
    weighted = replace(metric, weighted=True)
    row = one(table(truth, prediction, _weight_=times.astype(float)), weighted)
    assert row.value == pytest.approx(
        one(table(truth.repeat(times), prediction.repeat(times)), metric).value, abs=1e-12
    )
    nothing = one(table(truth, prediction, _weight_=np.zeros(30)), weighted)
    assert (math.isnan(nothing.value), nothing.reason) == (True, "all weights are 0")


def test_repeats_of_an_example_are_one_observation() -> None:
    truth, prediction = noisy(50, 3)
    once = one(table(truth, prediction), CohenKappa())
    often = table(np.tile(truth, 5), np.tile(prediction, 5)).set_column(0, "_index_", pa.array(list(range(50)) * 5))
    repeated = one(often.append_column("replication", pa.array(np.repeat(range(5), 50))), CohenKappa(), repeated=True)
    assert repeated.value == pytest.approx(once.value, rel=1e-9)
    assert repeated.high - repeated.low == pytest.approx(once.high - once.low, rel=0.02)
    assert repeated.data["clusters"] == 50


def test_clusters_that_shards_share_are_counted_once() -> None:
    truth, prediction = noisy(40, 4)
    shard = table(truth, prediction, _cluster_=np.arange(40) % 10)
    row = summarise([shard.slice(0, 20), shard.slice(20)], [CohenKappa()])[0]
    assert row.data["clusters"] == 10


# Intervals


def test_the_interval_leaves_out_one_row_after_the_other() -> None:
    """The jackknife by hand."""
    truth, prediction = noisy(40, 6)
    rest = [np.arange(40) != place for place in range(40)]
    left = [one(table(truth[some], prediction[some]), CohenKappa(confidence=None)).value for some in rest]
    row = one(table(truth, prediction), CohenKappa())
    variance = 39 / 40 * np.square(np.array(left) - np.mean(left)).sum()
    centre = (row.low + row.high) / 2
    assert (row.high - row.low) / 2 == pytest.approx(2.02 * math.sqrt(variance), rel=0.05)
    assert abs(centre - row.value) < 0.05


def test_a_perfect_value_is_no_certainty() -> None:
    truth, _ = noisy(100, 7)
    for metric in (CohenKappa(), FBeta(average="macro"), MatthewsCorrelation(), AdjustedRand()):
        row = one(table(truth, truth), metric)
        basis = row.data.get("rests_on", 100.0)
        [low], _ = wilson(np.array([basis]), np.array([basis]), 0.95)
        least = metric.range[0]
        assert 50 < basis <= 100
        assert (row.value, row.high) == (1.0, 1.0)
        assert row.low == pytest.approx(least + (1 - least) * low, abs=0.01)


@pytest.mark.parametrize("kind", [Recall, Precision, FBeta, Jaccard])
def test_a_value_rests_on_the_rows_it_is_about(kind: Any) -> None:
    truth = np.r_[np.ones(3, int), np.zeros(997, int)]
    row = one(table(truth, truth), kind(label=1))
    assert row.data["rests_on"] == 3
    [low], _ = wilson(np.array([3]), np.array([3]), 0.95)
    assert row.low < low + 1e-9 if kind is FBeta else row.low == pytest.approx(low)


def test_a_perfect_value_of_ten_clusters_is_that_of_ten_rows() -> None:
    truth = np.arange(100) % 2
    few = one(table(truth, truth, _cluster_=np.arange(100) % 10), FBeta(average="macro"))
    assert few.low == pytest.approx(10 / (10 + 2.262**2), abs=0.001)  # Student's quantile of nine degrees of freedom


@pytest.mark.parametrize(
    ("truth", "prediction", "reason"),
    [
        (["a"], ["a"], "all truths and predictions are one label, so chance agrees everywhere"),
        (
            ["a", "a", "b"],
            ["a", "a", "a"],
            "no interval: leaving a few rows out leaves no value, or changes nothing, or too much",
        ),
    ],
)
def test_where_the_value_hangs_on_a_few_rows_there_is_no_interval(truth: Any, prediction: Any, reason: str) -> None:
    row = one(table(truth, prediction), CohenKappa())
    assert (math.isnan(row.low), row.reason) == (True, reason)


def test_one_cluster_has_no_interval() -> None:
    row = one(table(["a", "b"], ["a", "b"], _cluster_=[1, 1]), CohenKappa())
    assert (row.value, math.isnan(row.low), row.reason) == (1.0, True, "one cluster has no interval")


def test_without_a_confidence_no_row_is_kept() -> None:
    metric = CohenKappa(confidence=None)
    small, large = (
        summarise_shard(table(*noisy(n, 8)), [metric]).states[0, Grouping(())][None] for n in (1_000, 10_000)
    )
    assert {name: array.nbytes for name, array in large.items()} == {n: a.nbytes for n, a in small.items()}


@pytest.mark.parametrize("metric", [CohenKappa(), FBeta(average="macro"), FBeta(label=1), MatthewsCorrelation()])
@pytest.mark.slow
def test_of_independent_rows_each_is_left_out(metric: WeightedRowsMetric) -> None:
    """The jackknife by hand, for more rows than there are blocks."""
    truth, prediction = (np.array(each) == "a" for each in noisy(300, 6))
    shard, plain = table(truth.astype(int), prediction.astype(int)), replace(metric, confidence=None)
    left = [one(shard.filter(pa.array(np.arange(300) != i)), plain).value for i in range(300)]
    variance = 299 / 300 * np.square(np.array(left) - np.mean(left)).sum()
    row = one(shard, metric)
    share = Spread(np.array([variance]), np.array([300]), np.array([row.data.get("rests_on", 300.0)]))
    low, high = interval_within(np.array([row.value]), share, metric.range, 0.95)
    assert (row.low, row.high) == pytest.approx((float(low[0]), float(high[0])), rel=1e-3)


def test_a_share_of_independent_rows_has_wilsons_interval() -> None:
    truth, prediction = noisy(300, 6)
    row = one(table(truth, prediction), Recall(label="a"))
    right = int(((truth == "a") & (prediction == "a")).sum())
    low, high = wilson(np.array([right]), np.array([(truth == "a").sum()]), 0.95)
    assert (row.low, row.high) == pytest.approx((float(low[0]), float(high[0])), rel=1e-12)
    clustered = one(table(truth, prediction, _cluster_=np.arange(300) // 10), Recall(label="a"))
    assert clustered.low != row.low


NUMERIC: tuple[Metric, ...] = (
    *(RSquared(), ExplainedVariance(), Pearson(), Spearman(), Kendall(), D2AbsoluteError(), D2Tweedie()),
    WeightedAbsolutePercentageError(),
)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("metric", NUMERIC, ids=lambda metric: metric.kind)
def test_the_order_of_many_numbers_moves_no_end(metric: WeightedRowsMetric, clustered: bool) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(50, 10, 1_000).round(1)
    columns = {"truth": truth, "prediction": (truth + rng.normal(0, 6, 1_000)).round(1)}
    columns |= {"_weight_": rng.choice([1.0, 2, 5, 10], 1_000)}
    columns |= {"_cluster_": rng.integers(0, 200, 1_000)} if clustered else {}
    order = rng.permutation(1_000)
    rows = [one(table(**each), replace(metric, weighted=True)) for each in (columns, reordered(columns, order))]
    assert numbers(rows[0]) == pytest.approx(numbers(rows[1]), rel=1e-9)


def reordered(columns: dict[str, np.ndarray], order: np.ndarray) -> dict[str, np.ndarray]:
    return {name: column[order] for name, column in columns.items()}


def test_many_rows_without_a_closed_form_are_left_out_by_what_they_hold() -> None:
    rng = np.random.default_rng(1)
    ratings = rng.integers(0, 4, (2_000, 3)).astype(float)
    ratings[:, 1] = np.where(rng.random(2_000) < 0.7, ratings[:, 0], ratings[:, 1])
    metric = KrippendorffAlpha(level="ordinal")
    found = []
    for rows in (ratings, ratings[rng.permutation(2_000)]):
        columns = {"ratings": rows, INDEPENDENT: np.arange(2_000)}
        found.append(metric.compute(metric.state(columns, np.zeros(2_000, int), 1)))
    assert (found[0].low[0], found[0].high[0]) == pytest.approx((found[1].low[0], found[1].high[0]), rel=1e-9)
    boot = [ratings[rng.integers(0, 2_000, 2_000)] for _ in range(100)]
    plain = KrippendorffAlpha(level="ordinal", confidence=None)
    drawn = [plain.compute(plain.state({"ratings": each}, np.zeros(2_000, int), 1)).value[0] for each in boot]
    assert float(found[0].high[0] - found[0].low[0]) == pytest.approx(4 * np.std(drawn), rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 500])
@pytest.mark.parametrize("right", [0.6, 0.9])
@pytest.mark.parametrize(
    "metric",
    [CohenKappa(), FBeta(average="macro"), FBeta(label="c"), MatthewsCorrelation(), AdjustedRand()],
    ids=lambda metric: f"{metric.kind}-{metric.spec['parameters'].get('average')}",
)
def test_intervals_cover_the_truth(metric: WeightedRowsMetric, right: float, n: int) -> None:
    """Simulations of n rows of three classes, of which one is rare.

    1,000 would be too few: the share has a standard error of 0.005, and intervals of a class of few rows cover 0.977.
    """
    runs, step = simulations(10_000), 1_000
    plain = replace(metric, confidence=None)
    truth = one(table(*noisy(400_000, 0, right)), plain).value
    rows = [
        row
        for seed in range(n, n + runs, step)
        for row in summarise(
            [table(*noisy(step * n, seed, right), by=np.repeat(np.arange(step), n))], [metric], [("by",)]
        )
    ]
    covered = sum(row.low <= truth <= row.high for row in rows) / runs
    width = float(np.nanmean([row.high - row.low for row in rows]))
    print(f"{metric.signature} n={n} truth={truth:.3f}: {covered:.3f}, width {width:.3f}")  # noqa: T201
    lowest, highest = (limit + z * math.sqrt(limit * (1 - limit) / runs) for limit, z in ((0.92, -3), (0.98, 3)))
    assert lowest <= covered <= highest


@pytest.mark.parametrize(
    "kind", ["recall", "false_negative_rate", "f_beta", "balanced_accuracy", "matthews_correlation"]
)
def test_the_mean_over_alike_targets_is_no_surer_than_one_of_them(kind: str) -> None:
    found = registry.find("metrics", kind)
    settings = {"label": 1} if "label" in found.__dataclass_fields__ else {}
    metric = found(over_targets="mean", **settings)
    truth = np.array([1] * 6 + [0] * 294)
    rows = {"truth": np.tile(truth, 2), "prediction": np.tile(truth, 2), LABELS: np.array([0, 1], np.object_)}
    columns = {**rows, INDEX: np.tile(np.arange(300), 2), CLUSTER: np.tile(np.arange(300, dtype=np.uint64), 2)}
    state = metric.state({**metric.prepare(columns), CLUSTER: columns[CLUSTER]}, np.repeat([0, 1], 300), 2)
    one, both = metric.compute(state), metric.mean_over(state, [np.array([0, 1])])
    assert (both.low[0], both.high[0]) == pytest.approx((one.low[0], one.high[0]), abs=1e-12)
