"""Intervals of rows that belong together, that weigh differently, or that are drawn again."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
import statsmodels.api as sm
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as stn
from support.effort import simulations
from support.thinned import thinned

from evaluand import (
    Accuracy,
    Aggregator,
    Dataset,
    Evaluator,
    KOfN,
    Mean,
    Measure,
    PassAtK,
    Quantile,
    Runner,
    SpecError,
    evaluate,
)
from evaluand.aggregation.groups import MetricRow, merge, summarise, summarise_shard
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.names import make_metric
from evaluand.metrics.stats.intervals import (
    Spread,
    cautious_spread,
    clopper_pearson,
    cluster_sums,
    cluster_variance,
    clustered_wilson,
    moments,
    share_interval,
    sum_rows,
    t_tail,
    wilson,
)
from evaluand.metrics.stats.resampling import bootstrap

CLUSTERS = np.array([7, 7, 7, 2, 2, 5, 9, 9, 9, 9])
RIGHT = np.array([1, 1, 1, 0, 0, 1, 0, 1, 1, 1], np.float64)


def table(values: Any, **columns: Any) -> pa.Table:
    n = len(values)
    return pa.table({"_index_": np.arange(n), "status": ["scored"] * n, "value": np.asarray(values, float), **columns})


def one(shard: pa.Table, metric: Metric, **options: Any) -> MetricRow:
    [row] = summarise([shard], [metric], **options)
    return row


# Clusters


def test_the_variance_between_clusters_is_that_of_robust_regression() -> None:
    values = np.array([0.1, 0.4, 0.3, 2.0, 1.0, -1.0, 0.5, 0.5, 3.0, 0.2])
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": CLUSTERS, "use_correction": True}, use_t=True
    )
    row = one(table(values, _cluster_=CLUSTERS), Mean())
    half = scipy.stats.t.ppf(0.975, 3) * fit.bse[0]
    assert row.value == pytest.approx(values.mean(), rel=1e-14)
    assert (row.high - row.low) / 2 == pytest.approx(half, rel=1e-9)
    assert row.data["clusters"] == 4


def test_weights_are_those_of_weighted_robust_regression() -> None:
    values = np.array([0.1, 0.4, 0.3, 2.0, 1.0, -1.0])
    weights = np.array([1.0, 2.0, 0.5, 1.5, 3.0, 1.0])
    fit = sm.WLS(values, np.ones(len(values)), weights).fit(cov_type="HC1", use_t=True)
    row = one(table(values, _weight_=weights), Mean(weighted=True))
    assert row.value == pytest.approx(float(fit.params[0]), rel=1e-12)
    assert (row.high - row.low) / 2 == pytest.approx(scipy.stats.t.ppf(0.975, 5) * fit.bse[0], rel=1e-9)


def test_whole_clusters_of_equal_rows_count_once() -> None:
    """Five times the same rows say no more than the rows once."""
    once = one(table(RIGHT, _cluster_=np.arange(10)), Accuracy())
    often = one(table(np.repeat(RIGHT, 5), _cluster_=np.repeat(np.arange(10), 5)), Accuracy())
    assert (often.value, often.low, often.high) == pytest.approx((once.value, once.low, once.high), rel=1e-12)


def test_independent_rows_given_as_clusters_come_close_to_wilson() -> None:
    values = (np.arange(400) % 4 > 0).astype(float)
    plain, clustered = one(table(values), Accuracy()), one(table(values, _cluster_=np.arange(400)), Accuracy())
    assert plain.value == clustered.value
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high), abs=5e-4)


def test_replications_of_an_example_are_one_cluster() -> None:
    index = np.repeat(np.arange(10), 3)
    shard = pa.table(
        {"_index_": index, "replication": np.tile(np.arange(3), 10), "status": ["scored"] * 30, "value": RIGHT[index]}
    )
    repeated, once = one(shard, Accuracy(), repeated=True), one(table(RIGHT, _cluster_=np.arange(10)), Accuracy())
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high), rel=1e-12)
    assert repeated.data == {"correct": 21, "n": 30, "clusters": 10}


def test_one_cluster_has_no_interval_and_says_so() -> None:
    for metric in (Accuracy(), Mean()):
        row = one(table(RIGHT, _cluster_=np.zeros(10, np.int64)), metric)
        assert math.isnan(row.low)
        assert row.reason == "one cluster has no interval"


@pytest.mark.parametrize("metric", [Accuracy(weighted=True), Mean(weighted=True), Accuracy(bootstrap=100)])
def test_one_row_that_nobody_put_into_a_cluster_is_called_a_row(metric: Metric) -> None:
    assert one(table([1], _weight_=[2.0]), metric).reason == "one scored row has no interval"


def test_clusters_that_all_agree_still_have_an_interval() -> None:
    low, high = clustered_wilson(np.array([1.0]), Spread(np.zeros(1), np.array([20]), np.array([20.0])), 0.95)
    assert high[0] == 1.0
    assert 0.7 < low[0] < 0.9


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
@given(
    values=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=60),
    place=st.integers(0, 59),
    up=st.booleans(),
)
def test_better_clusters_never_have_a_lower_end_of_the_cautious_interval(
    confidence: float, values: list[float], place: int, up: bool
) -> None:
    better = [*values]
    place %= len(values)
    better[place] = min(values[place] + (1.0 if up else 0.5), 1.0)
    ends = []
    for shares in (np.array(values), np.array(better)):
        n, mean = len(shares), np.array([shares.mean()])
        spread = Spread(np.array([shares.var(ddof=1) / n]), np.array([n]), np.array([float(n)]))
        ends.append(clustered_wilson(mean, cautious_spread(mean, spread, confidence), confidence))
    (low, high), (better_low, better_high) = ends
    assert better_low[0] >= low[0] - 1e-12
    assert better_high[0] >= high[0] - 1e-12


@pytest.mark.parametrize("degrees", [1, 2, 5, 29, 1000, 1001, 20_000])
def test_the_tail_of_student_is_exact_far_out(degrees: int) -> None:
    for t in (0.0, 0.5, 1.7, 1.75, 3.0, 10.0, 20.5, 37.0):
        assert t_tail(t, degrees) == pytest.approx(2 * scipy.stats.t.sf(t, degrees), rel=1e-8)


@pytest.mark.parametrize("metric", [Accuracy(), Mean(), Accuracy(bootstrap=200), Mean(weighted=True), Quantile(q=0.5)])
@given(
    values=stn.arrays(np.float64, st.integers(2, 30), elements=st.sampled_from([0.0, 1.0])),
    cut=st.integers(0, 30),
    seed=st.integers(0, 9),
)
def test_shards_that_cut_clusters_merge_to_the_whole(metric: Metric, values: np.ndarray, cut: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shard = table(values, _cluster_=rng.integers(0, 5, len(values)), _weight_=rng.integers(1, 4, len(values)) * 0.5)
    shard = shard.append_column("group", pa.array(rng.choice(["a", "b"], len(values))))
    by = [(), ("group",)]
    parts = [summarise_shard(part, [metric], by) for part in (shard.slice(0, cut), shard.slice(cut)) if part.num_rows]
    for cut_row, row in zip(merge(parts).rows(), summarise([shard], [metric], by), strict=True):
        for name in ("value", "low", "high"):
            np.testing.assert_allclose(getattr(cut_row, name), getattr(row, name), rtol=1e-12, atol=1e-14)


def test_a_dataset_s_cluster_and_weight_reach_the_metric() -> None:
    names = ["x", "x", "x", "y", "y", "z", "w", "w", "w", "w"]
    records = [
        {"input": str(i), "expected": str(i) if right else "no", "document": document, "share": 1 + i % 2}
        for i, (right, document) in enumerate(zip(RIGHT, names, strict=True))
    ]
    data = Dataset.from_rows(records, cluster="document", weight="share")
    evaluation = Evaluator().evaluate(Runner().run(str, data), {"same": lambda output, expected: output == expected})
    measures = [Measure("same", Accuracy()), Measure("same", Accuracy(weighted=True))]
    plain, weighted = Aggregator().aggregate([evaluation], measures).table().to_pylist()
    expected = one(table(RIGHT, _cluster_=CLUSTERS), Accuracy())
    assert (plain["value"], plain["low"], plain["high"]) == (expected.value, expected.low, expected.high)
    assert weighted["value"] == pytest.approx((1 + 2 + 1 + 2 + 2 + 1 + 2) / 15)


def test_weights_need_a_column_of_weights() -> None:
    with pytest.raises(SpecError, match="accuracy: weighted=true needs weights; set the dataset's role weight"):
        one(table(RIGHT), Accuracy(weighted=True))


@pytest.mark.parametrize("metric", [Accuracy(weighted=True), Mean(weighted=True)], ids=["accuracy", "mean"])
@pytest.mark.parametrize(
    ("weight", "reason"), [(0.0, "all weights are 0"), (1e308, "the weights are too large to be summed")]
)
def test_weights_that_have_no_sum_to_divide_by_leave_the_value_undefined(
    metric: Metric, weight: float, reason: str
) -> None:
    row = one(table(np.zeros(10), _weight_=np.full(10, weight)), metric)
    assert math.isnan(row.value)
    assert row.reason == reason


# Bootstrap


def test_the_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(3).gamma(2.0, size=60)
    ours = one(table(values), Mean(bootstrap=20_000))
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1))
    spread = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.03 * spread)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.03 * spread)


def test_the_bootstrap_draws_the_same_again_and_whatever_stands_beside() -> None:
    alone = one(table(RIGHT), Accuracy(bootstrap=500))
    shard = table(np.concatenate([RIGHT, 1 - RIGHT])).append_column("g", pa.array(["b"] * 10 + ["a"] * 10))
    _, other, same = summarise([shard], [Accuracy(bootstrap=500)], [(), ("g",)])
    assert (same.low, same.high) == (alone.low, alone.high)
    assert (other.low, other.high) != (alone.low, alone.high)


def test_the_bootstrap_draws_whole_clusters() -> None:
    state = cluster_sums(np.repeat(RIGHT, 5), np.ones(50), np.repeat(np.arange(10), 5), np.zeros(50, np.int64))
    once = cluster_sums(RIGHT, np.ones(10), np.arange(10), np.zeros(10, np.int64))
    value = np.array([0.7])
    assert bootstrap(state, value, 0.95, 999) == bootstrap(once, value, 0.95, 999)
    assert cluster_variance(state, value)[0] == pytest.approx(cluster_variance(once, value)[0])


@pytest.mark.parametrize("exponent", [-1000, 332, 500, 1020])
def test_the_bootstrap_of_very_large_and_small_values_is_that_of_others(exponent: int) -> None:
    values, clusters, group = np.array([1.0, 0.5, -0.3, 0.2, 0.9, 0.1]), np.arange(6), np.zeros(6, np.int64)
    low, high = bootstrap(cluster_sums(values, np.ones(6), clusters, group), np.array([0.4]), 0.95, 500)
    table = cluster_sums(np.ldexp(values, exponent), np.ones(6), clusters, group)
    assert bootstrap(table, np.ldexp([0.4], exponent), 0.95, 500) == (np.ldexp(low, exponent), np.ldexp(high, exponent))


def test_too_few_replicates_are_refused() -> None:
    with pytest.raises(SpecError, match="mean: bootstrap is the integer 20; give an integer of at least 100"):
        Mean(bootstrap=20)


# Several tries


def tries(rows: list[list[float | None]]) -> pa.Table:
    """A row per example and try; None is a try that failed."""
    flat = [(i, r, value) for i, row in enumerate(rows) for r, value in enumerate(row)]
    index, replication, values = zip(*flat, strict=True)
    status = ["failed" if value is None else "scored" for value in values]
    return pa.table(
        {"_index_": index, "replication": replication, "status": status, "value": pa.array(values, pa.float64())}
    )


def test_pass_at_k_is_the_chance_that_one_of_k_is_right() -> None:
    rows = tries([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 1]])
    assert one(rows, PassAtK(k=1), repeated=True).value == pytest.approx((1 / 4 + 0 + 3 / 4) / 3)
    assert one(rows, PassAtK(k=2), repeated=True).value == pytest.approx((1 - 3 / 6 + 0 + 1) / 3)
    row = one(rows, PassAtK(k=4), repeated=True)
    assert (row.value, row.n) == (pytest.approx(2 / 3), 3)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=5, max_size=5), min_size=1, max_size=6), st.integers(1, 5)
)
def test_pass_at_k_is_the_share_of_all_choices_of_k(rows: list[list[float]], k: int) -> None:
    expected = np.mean([np.mean([max(chosen) for chosen in combinations(row, k)]) for row in rows])
    assert one(tries(list(map(list, rows))), PassAtK(k=k), repeated=True).value == pytest.approx(expected, abs=1e-12)


def test_a_failed_try_is_a_wrong_one_unless_it_is_left_out() -> None:
    rows = tries([[1, None], [None, None]])
    reported = one(rows, PassAtK(k=1), repeated=True)
    assert (reported.value, reported.n, reported.n_scored, reported.n_failed) == (0.25, 2, 1, 1)
    assert (reported.worst, reported.best) == (0.25, 1.0)
    assert one(rows, PassAtK(k=1, missing="leave_out"), repeated=True).value == 1.0


def test_k_answers_need_as_many_tries() -> None:
    with pytest.raises(SpecError, match="pass_at_k: k=3 needs as many answers to each example, but one has 2"):
        one(tries([[1, 0], [0, 0]]), PassAtK(k=3), repeated=True)


def test_k_of_n_counts_examples_with_enough_right_answers() -> None:
    rows = tries([[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0]])
    assert [one(rows, KOfN(k=k), repeated=True).value for k in (1, 2, 3)] == [0.75, 0.5, 0.25]
    row, plain = one(rows, KOfN(k=2), repeated=True), one(table([1, 0, 1, 0]), Accuracy())
    assert (row.low, row.high) == (plain.low, plain.high)


# Quantiles


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.sampled_from([0.1, 0.25, 0.5, 0.9, 0.99]))
def test_a_quantile_is_numpy_s_inverted_distribution(values: list[int], q: float) -> None:
    assert one(table(values), Quantile(q=q)).value == np.quantile(values, q, method="inverted_cdf")


def test_a_quantile_s_interval_are_quantiles_at_the_ends_of_wilson_s() -> None:
    values = np.arange(100.0)
    row = one(table(values), Quantile(q=0.5))
    assert (row.low, row.value, row.high) == (40.0, 49.0, 59.0)  # shares 0.404 … 0.596


def test_clusters_widen_a_quantile_s_interval() -> None:
    values = np.repeat(np.arange(20.0), 10)
    plain = one(table(values), Quantile(q=0.5))
    clustered = one(table(values, _cluster_=np.repeat(np.arange(20), 10)), Quantile(q=0.5))
    assert clustered.low < plain.low < plain.high < clustered.high


def test_a_quantile_of_nothing_is_undefined() -> None:
    row = one(table([]), Quantile(q=0.5))
    assert math.isnan(row.value)
    assert row.reason == "no scored rows"


@pytest.mark.parametrize("q", [0, 1, 1.5, math.nan])
def test_a_share_outside_0_and_1_is_refused(q: float) -> None:
    with pytest.raises(SpecError, match=r"must lie between 0 and 1, such as 0\.5 for the median"):
        Quantile(q=q)


# Coverage


@pytest.mark.parametrize("n", [50, 500])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_wilson_s_interval_covers_the_truth_exactly_as_often(n: int, share: float) -> None:
    """The chance itself, summed over all outcomes: no simulation comes nearer."""
    right = np.arange(n + 1)
    low, high = wilson(right, np.full(n + 1, n), 0.95)
    covered = (low <= share) & (share <= high)
    assert 0.93 <= scipy.stats.binom.pmf(right, n, share)[covered].sum() <= 0.9705


@pytest.mark.parametrize("level", [0.55, 0.95, 0.999])
@pytest.mark.parametrize(
    ("right", "n"), [(0, 1), (1, 1), (0, 20), (20, 20), (19, 20), (37, 60), (5, 10_000), (999_990, 10**6)]
)
def test_exact_bounds_of_a_share_are_those_of_scipy(right: int, n: int, level: float) -> None:
    low, high = clopper_pearson(right, n, level)
    assert low == pytest.approx(scipy.stats.beta.ppf(1 - level, right, n - right + 1) if right else 0, rel=1e-9)
    assert 1 - high == pytest.approx(
        scipy.stats.beta.ppf(1 - level, n - right, right + 1) if right < n else 0, rel=1e-9
    )


def test_nothing_has_no_exact_bounds() -> None:
    assert all(map(math.isnan, clopper_pearson(0, 0, 0.95)))


@thinned("n", [1, 7, 20, 50, 268], every=3)
def test_exact_bounds_of_a_share_err_at_most_as_often_as_they_say(n: int) -> None:
    """All outcomes are counted with their probability, where the true share is just what the bound must not pass."""
    right = np.arange(n + 1)
    low, high = np.array([clopper_pearson(k, n, 0.95) for k in right.tolist()]).T
    for share in (0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.88, 0.9, 0.95, 0.98, 0.99):
        chance = scipy.stats.binom.pmf(right, n, share)
        assert chance[low > share - 1e-12].sum() <= 0.05 + 1e-9
        assert chance[high < share + 1e-12].sum() <= 0.05 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [50, 500])
@pytest.mark.parametrize("correlation", [0.0, 0.3], ids=["independent", "clustered"])
@pytest.mark.parametrize("metric", [Accuracy(), Mean(range=(0, 1)), Mean(range=(0, 1), bootstrap=1000)], ids=str)
def test_intervals_cover_the_truth(metric: Metric, correlation: float, n: int, share: float) -> None:
    """Simulations of n examples, once each or (clustered) five times with correlated outcomes."""
    rng = np.random.default_rng([n, round(10 * share), round(10 * correlation)])
    tries = 5 if correlation else 1
    covered, repeats = 0, simulations(2000)
    for _ in range(repeats):
        chance = np.full(n, share)
        if correlation:
            spread = (1 - correlation) / correlation
            chance = rng.beta(share * spread, (1 - share) * spread, n)
        values = rng.random((n, tries)) < chance[:, None]
        shard = pa.table(
            {
                "_index_": np.repeat(np.arange(n), tries),
                "replication": np.tile(np.arange(tries), n),
                "status": np.repeat("scored", n * tries),
                "value": values.ravel().astype(float),
            }
        )
        row = one(shard, metric, repeated=tries > 1)
        covered += row.low <= share <= row.high
    found = f"{metric.kind} {metric.interval_name} n={n} p={share} correlation={correlation}: {covered / repeats:.4f}"
    print(found)  # noqa: T201 - the figures that the documentation quotes
    lowest = 0.92 if isinstance(metric, Accuracy) else 0.87  # Student's interval is none for 0/1 scores of few rows
    highest = 0.98 + 3 * math.sqrt(0.98 * 0.02 / repeats)  # the simulation itself errs
    assert lowest <= covered / repeats <= highest


# What agrees, and what weighs nothing


@pytest.mark.parametrize("metric", [Mean(range=(0, 1)), Accuracy(bootstrap=500), PassAtK(k=1), KOfN(k=1), Accuracy()])
def test_rows_that_all_agree_are_no_certainty(metric: Metric) -> None:
    row = one(table([1.0, 1.0, 1.0]), metric)
    assert (row.value, row.high) == (1.0, 1.0)
    assert 0.1 < row.low < 0.6


def test_equal_values_of_no_known_range_have_no_interval() -> None:
    row = one(table([5.0, 5.0, 5.0]), Mean())
    assert math.isnan(row.low)
    assert row.reason == "no interval: all values are equal"


def test_rows_without_weight_tell_nothing() -> None:
    weights = np.array([1.0, 1.0] + [0.0] * 998)
    row = one(table(np.ones(1000), _weight_=weights), Accuracy(weighted=True))
    two = one(table([1.0, 1.0], _weight_=[1.0, 1.0]), Accuracy(weighted=True))
    assert (row.low, row.high, row.data["clusters"]) == (two.low, two.high, 2)


def test_one_heavy_row_among_light_ones_is_nearly_alone() -> None:
    row = one(table(np.ones(100), _weight_=[1e6] + [1.0] * 99), Accuracy(weighted=True))
    assert row.low < 0.2065  # that of a single row


@pytest.mark.parametrize("size", [3, 49])
def test_rounding_does_not_decide_whether_clusters_agree(size: int) -> None:
    values = np.tile([1.0] + [0.0] * (size - 1), 6)
    row = one(table(values, _cluster_=np.repeat(np.arange(6), size)), Accuracy())
    assert row.high - row.low > 0.2


def test_a_row_without_a_cluster_belongs_to_no_other() -> None:
    records = [{"input": str(i), "expected": str(i), "doc": None if i < 4 else "a"} for i in range(6)]
    data = Dataset.from_rows(records, cluster="doc")
    evaluation = Evaluator().evaluate(Runner().run(str, data), {"same": lambda output, expected: output == expected})
    [row] = Aggregator().aggregate([evaluation], [Measure("same", Accuracy())]).table().to_pylist()
    assert '"clusters":5' in row["data"]


def test_one_failed_try_does_not_stop_pass_at_k() -> None:
    assert one(tries([[1, None], [1, 0]]), PassAtK(k=2), repeated=True).value == 1.0


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=60))
def test_a_single_group_is_summed_in_the_order_of_its_rows(values: list[float]) -> None:
    rows, group = np.array(values, np.float64), np.zeros(len(values), np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        assert sum_rows(rows, group, 1).tobytes() == np.bincount(group, rows, minlength=1).tobytes()


def test_a_single_group_has_the_moments_of_a_group_among_others() -> None:
    values = np.random.default_rng(0).normal(1e6, 1, 5000)
    alone = moments(values, np.zeros(5000, np.int64), 1)
    among = moments(values, np.ones(5000, np.int64), 3)
    assert {name: array[0] for name, array in alone.items()} == {name: array[1] for name, array in among.items()}


@pytest.mark.parametrize(("interval", "method"), [("exact", "beta"), ("wilson", "wilson")], ids=["exact", "wilson"])
@pytest.mark.parametrize("right", [0, 1, 19, 20])
def test_a_share_has_the_interval_that_is_asked_for(interval: Any, method: str, right: int) -> None:
    metric = Accuracy(interval=interval)
    row = one(table(np.r_[np.ones(right), np.zeros(20 - right)]), metric)
    assert (row.low, row.high) == pytest.approx(sm.stats.proportion_confint(right, 20, method=method), abs=1e-9)
    assert metric.signature.endswith(f"interval={interval} 95%")


def test_the_middle_of_both_lies_between_them() -> None:
    widths = [
        row.high - row.low
        for row in (one(table(RIGHT), Accuracy(interval=name)) for name in ("wilson", "mid_p", "exact"))
    ]
    assert widths == sorted(widths)


@pytest.mark.parametrize(
    "settings",
    [{"interval": "normal"}, {"interval": "exact", "bootstrap": 100}],
)
def test_a_share_refuses_what_it_cannot_have(settings: Any) -> None:
    with pytest.raises(SpecError, match=r"accuracy: interval(='exact'| is the text 'normal')"):
        Accuracy(**settings)


@pytest.mark.parametrize("name", ["recall", "specificity", "precision", "fpr", "fnr"])
def test_rates_of_a_class_have_the_interval_that_is_asked_for(name: str) -> None:
    truth, prediction = np.repeat([1, 1, 0, 0], [30, 2, 25, 1]), np.repeat([1, 0, 0, 1], [30, 2, 25, 1])
    [row] = evaluate(truth, prediction, metrics=[make_metric(name, label=1, interval="exact")]).rows
    [n] = {"recall": [32], "fnr": [32], "specificity": [26], "fpr": [26], "precision": [31]}[name]
    ends = sm.stats.proportion_confint(round(row.value * n), n, method="beta")
    assert (row.low, row.high) == pytest.approx(ends, abs=1e-9)
    assert "interval=exact 95%" in row.signature


def test_only_shares_have_an_exact_interval() -> None:
    for metric in ("f1", "f1_macro", "recall_macro"):
        with pytest.raises(SpecError, match="interval='exact' needs a share of rows"):
            make_metric(metric, interval="exact", **({"label": 1} if metric == "f1" else {}))


@pytest.mark.parametrize("weighted", [True, False])
def test_of_clusters_or_weights_an_exact_interval_covers_rare_failures(weighted: bool) -> None:
    rng, covered = np.random.default_rng(5), 0
    for _ in range(200):
        cluster = np.arange(120) if weighted else np.arange(120) // 3
        wrong = (rng.random(120) < 0.03) if weighted else np.repeat(rng.random(40) < 0.02, 3) | (rng.random(120) < 0.01)
        weight = rng.choice([0.5, 1, 2], 120)
        metric = Accuracy(interval="exact", weighted=weighted)
        options: dict[str, Any] = {"weight": weight} if weighted else {"cluster": cluster}
        [row] = evaluate(np.ones(120, int), 1 - wrong, kind="binary", metrics=[metric], **options).rows
        covered += row.low <= (0.97 if weighted else 1 - 0.02 - 0.98 * 0.01) <= row.high
    assert covered >= 0.95 * 200


def test_the_usual_interval_is_no_part_of_what_was_asked() -> None:
    assert Accuracy().spec == Accuracy(interval="wilson").spec
    assert Accuracy().spec != Accuracy(interval="exact").spec


@pytest.mark.parametrize("kind", ["f1_macro", "cohen_kappa", "mcc", "jaccard_macro"])
def test_light_rows_that_are_wrong_do_not_make_a_weighted_value_sure(kind: str) -> None:
    rng = np.random.default_rng(0)
    truth, weight = rng.integers(0, 2, 60), np.sort(np.exp(rng.normal(0, 1.5, 60)))
    prediction = np.where(np.arange(60) < 6, 1 - truth, truth)  # the six lightest
    [weighted] = evaluate(truth, prediction, metrics=kind, weight=weight).rows
    [alike] = evaluate(truth, prediction, metrics=kind).rows
    assert (1 - weighted.low) > 10 * (1 - weighted.value)
    assert weighted.low < alike.low + 0.05


def test_counts_that_are_whole_but_for_rounding_have_exact_ends() -> None:
    right, rows = np.array([1e-300, 1 - 2e-16, 20.0]), np.array([0.01, 1.0, 20.0])
    low, high = share_interval("exact", right, rows, 0.95)
    assert low == pytest.approx([0.0, 0.025, 0.025 ** (1 / 20)])
    assert high == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize("right", [True, False])
def test_probabilities_of_0_and_1_show_no_chance_of_a_calibration_error(right: bool) -> None:
    truth = np.arange(40) % 2
    said = truth if right else 1 - truth
    [row] = evaluate(truth, said, scores=np.stack([1.0 - said, said], 1), metrics="debiased_calibration_error").rows
    assert (row.value, math.isnan(row.low)) == (float(not right), True)
    assert "probabilities that are all 0 or 1" in str(row.reason)
