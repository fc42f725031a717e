"""How often intervals cover the truth where that is hard: positives are rare, rows few, groups of unequal size.

    pytest -m slow tests/metrics/test_coverage.py -s

prints the table that stands in docs/concepts.md. Each case is simulated `RUNS` times, from a law whose true value is
known; the rows of one simulation are a group. Where there is no interval nothing is said: how often that is, is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

from evaluand.aggregation.group_disparities import disparities
from evaluand.aggregation.groups import merge, summarise, summarise_shard
from evaluand.metrics.areas import AveragePrecision, RocAuc
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.class_rates import Recall
from evaluand.metrics.correlations import Kendall, Spearman

RUNS = 1_000
AREA, PRECISION = (kind(scored_by="positive", label="yes") for kind in (RocAuc, AveragePrecision))


def shard(n: int, truth: np.ndarray, prediction: np.ndarray, **columns: np.ndarray) -> pa.Table:
    """Simulations of n rows each, one after the other."""
    rows = len(truth)
    fixed = {"_index_": np.arange(rows), "status": ["scored"] * rows, "by": np.arange(rows) // n}
    return pa.table({**fixed, "truth": truth, "prediction": prediction, **columns})


def covered(name: str, simulated: pa.Table, metric: Metric, true: float) -> float:
    rows = summarise([simulated], [metric], [("by",)])
    return shown(name, np.array([(row.low, row.high) for row in rows]), true)


def shown(name: str, ends: np.ndarray, true: float) -> float:
    low, high = ends[np.isfinite(ends[:, 0])].T
    share, none = float(((low <= true) & (true <= high)).mean()), float(np.isnan(ends[:, 0]).mean())
    print(f"| {name} | {true:.3f} | {share:.3f} | {np.median(high - low):.3f} | {none:.3f} |")  # noqa: T201
    return share


def scored(n: int, share: float, apart: float, runs: int = RUNS, seed: int = 0) -> pa.Table:
    """Normal scores, those of positives higher by so many standard deviations."""
    generator = np.random.default_rng(seed)
    positive = generator.random(runs * n) < share
    names = np.where(positive, "yes", "no")
    return shard(n, names, names, confidence=generator.normal(positive * apart, 1))


def true_precision(share: float, apart: float) -> float:
    """∫ of the precision at each score over the scores of positives."""
    score = np.linspace(apart - 8, apart + 8, 20_001)
    above = np.array([[1 - NormalDist(mean).cdf(x) for x in score] for mean in (apart, 0.0)])
    precision = share * above[0] / np.maximum(share * above[0] + (1 - share) * above[1], 1e-300)
    density = np.exp(-np.square(score - apart) / 2) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(precision * density, score))


RARE = [(1000, 0.01, 3.0), (300, 0.03, 3.0), (100, 0.05, 3.0), (1000, 0.01, 1.0), (100, 0.05, 1.0), (100, 0.5, 2.0)]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share", "apart"), RARE)
def test_areas_of_rare_positives(n: int, share: float, apart: float) -> None:
    true = NormalDist().cdf(apart / math.sqrt(2))
    name = f"`roc_auc`, n = {n}, {share:.0%} positive, {apart:g} apart"
    assert 0.93 <= covered(name, scored(n, share, apart), AREA, true) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share", "apart"), RARE)
def test_average_precision_of_rare_positives(n: int, share: float, apart: float) -> None:
    true = true_precision(share, apart)
    name = f"`average_precision`, n = {n}, {share:.0%} positive, {apart:g} apart"
    assert 0.92 <= covered(name, scored(n, share, apart), PRECISION, true) <= 0.99


@pytest.mark.slow
def test_areas_of_rows_in_clusters() -> None:
    """Positives share a deviation of half a standard deviation with the rest of their cluster of ten."""
    generator = np.random.default_rng(1)
    n, share, apart = 400, 0.1, 2.0
    simulated = scored(n, share, apart, seed=1)
    shared = np.repeat(generator.normal(0, 0.5, RUNS * n // 10), 10)
    held = pa.array(simulated["confidence"].to_numpy() + shared)
    simulated = simulated.set_column(simulated.schema.get_field_index("confidence"), "confidence", held)
    simulated = simulated.append_column("_cluster_", pa.array(np.arange(RUNS * n) // 10))
    true = NormalDist().cdf(apart / math.sqrt(2 * 1.25))
    assert 0.93 <= covered("`roc_auc`, n = 400 in clusters of 10, 10% positive", simulated, AREA, true) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(("n", "found"), [(1000, 0.9), (1000, 0.5), (300, 0.9)])
def test_recall_of_one_row_in_a_hundred(n: int, found: float) -> None:
    generator = np.random.default_rng(2)
    truth = generator.random(RUNS * n) < 0.01
    prediction = np.where(truth, generator.random(RUNS * n) < found, generator.random(RUNS * n) < 0.02)
    simulated = shard(n, np.where(truth, "yes", "no"), np.where(prediction, "yes", "no"))
    assert covered(f"`recall`, n = {n}, 1% positive", simulated, Recall(label="yes"), found) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize(("n", "few", "many"), [(300, 0.7, 0.9), (1000, 0.8, 0.8), (1000, 0.6, 0.9)])
def test_disparities_of_recall_between_a_tenth_and_the_rest(n: int, few: float, many: float) -> None:
    """A third of the rows are positive: recall rests on about ten or thirty rows of the small group."""
    generator = np.random.default_rng(4)
    ends = []
    for _ in range(RUNS // 2):
        small, truth = generator.random(n) < 0.1, generator.random(n) < 1 / 3
        prediction = np.where(truth, generator.random(n) < np.where(small, few, many), generator.random(n) < 0.1)
        simulated = shard(n, np.where(truth, "yes", "no"), np.where(prediction, "yes", "no"), group=small.astype(str))
        summary = merge([summarise_shard(simulated, [Recall(label="yes")], [(), ("group",)])])
        [row] = disparities(summary, [0], ("group",), ["difference"])
        ends.append((row.low, row.high))
    name = f"difference of `recall` of a tenth to the rest, n = {n}"
    assert shown(name, np.array(ends), many - few) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "true"),
    [
        (Spearman(), lambda r: 6 / math.pi * math.asin(r / 2)),
        (Kendall(), lambda r: 2 / math.pi * math.asin(r)),
    ],
    ids=["spearman", "kendall"],
)
@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95])
def test_correlations_of_normal_pairs(
    metric: Metric, true: Callable[[float], float], n: int, correlation: float
) -> None:
    x, y = np.random.default_rng(3).normal(size=(2, RUNS * n))
    simulated = shard(n, x, correlation * x + math.sqrt(1 - correlation**2) * y)
    name = f"`{metric.kind}`, n = {n}, correlation {correlation:g}"
    assert covered(name, simulated, metric, true(correlation)) >= 0.92  # near 1 the intervals of few rows are wide
