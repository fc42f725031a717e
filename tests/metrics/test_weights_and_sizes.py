"""Of every kind: weights have no unit, rows of weight 0 are not there, and no size of numbers gives infinity."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core import registry
from evaluand.evaluation.scorers.detection import Detection
from evaluand.evaluation.scorers.ranking import Ranking
from evaluand.evaluation.scorers.segmentation import Segmentation
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.metrics.correlations import Pearson, RSquared
from evaluand.metrics.errors import MeanAbsolutePercentageError, MedianAbsoluteError, RootMeanSquaredError
from evaluand.metrics.partitions import AdjustedRand

pytestmark = pytest.mark.filterwarnings("error")

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "top_k": [{"k": 2}],
    "f_beta": [{"average": "macro"}, {"label": "b"}],
    "precision": [{"average": "macro"}, {"average": "micro"}, {"average": "example"}],
    "recall": [{"average": "weighted"}],
    "selection_rate": [{"label": "b"}],
    "expected_calibration_error": [{}, {"binning": "mass", "bins": 3}, {"binning": "mass", "norm": "max"}],
    "r_squared": [{}, {"constant": "zero_or_one"}],
    "roc_auc": [{}, {"average": "micro"}, {"average": "weighted"}],
    "log_loss": [{"clip": 1e-6}],
    "weighted_kappa": [{"labels": ["a", "b", "c"]}],
    "mean_average_precision": [{}, {"definition": "coco", "iou": "0.50:0.95"}],
    **{kind: [{"k": 2}] for kind in ("hits_at_k", "recall_at_k", "precision_at_k", "map_at_k")},
}
NUMBERS = [
    "mean_squared_error",
    "root_mean_squared_error",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_log_error",
    "r_squared",
    "explained_variance",
    "pearson",
    "spearman",
    "kendall",
    "mean",
    "pinball_loss",
    "symmetric_mean_absolute_percentage_error",
    "weighted_absolute_percentage_error",
    "d2_absolute_error",
    "d2_pinball",
    "d2_tweedie",
]
POSITIVE = ["mean_poisson_deviance", "mean_gamma_deviance", "mean_tweedie_deviance"]
FORECASTS = ["mean_absolute_scaled_error", "mean_quantile_loss", "crps"]
RANKINGS = ["hits_at_k", "recall_at_k", "precision_at_k", "map_at_k", "ndcg", "mean_reciprocal_rank"]
BOXES = ["mean_average_precision", "average_recall"]
SEGMENTS = ["panoptic_quality", "segmentation_quality", "recognition_quality", "mean_iou"]
A_NUMBER_OF_ROWS = ["confusion_matrix"]


def weighable() -> list[Metric]:
    """Every kind that takes weights, with parameters that make a difference."""
    found: list[Metric] = []
    for kind in registry.names("metrics"):
        made = registry.find("metrics", kind)
        if any(field.name == "weighted" for field in dataclasses.fields(made)) and kind not in (*REPEATED, *LABELLED):
            found += [made(weighted=True, **parameters) for parameters in PARAMETERS.get(kind, [{}])]
    return found


REPEATED = ("k_of_n", "majority_vote", "pass_at_k")  # of several replications of an example
LABELLED = ("prediction_powered_mean",)  # of labels of people too; see test_prediction_powered_mean.py


def table(metric: Metric, n: int, seed: int, weight: np.ndarray | None = None, **columns: Any) -> pa.Table:
    """Rows that the metric reads, drawn at random."""
    random = np.random.default_rng(seed)
    fixed = {"_index_": np.arange(n), "status": ["scored"] * n, **columns}
    if weight is not None:
        fixed["_weight_"] = weight
    if metric.kind in RANKINGS:
        scorer, answers = Ranking(), list("uvwxyz")
        rows = [scorer.score(random.permutation(answers).tolist(), {"u": 2, "v": 1}).columns for _ in range(n)]
        return pa.table({**fixed, **{name: [row[name] for row in rows] for name in rows[0]}})  # type: ignore[index]
    if metric.kind in BOXES:
        return pa.table({**fixed, **boxes(n, random)})
    if metric.kind in SEGMENTS:
        return pa.table({**fixed, "classes": [segments(random) for _ in range(n)]})
    if metric.kind in FORECASTS:
        truth = random.integers(1, 9, n) / 4
        drawn = truth[:, None] + random.normal(0, 1, (n, 5))
        read = {"truth": truth, "prediction": drawn[:, 0], "scale": random.exponential(size=n)}
        read |= {
            "samples": drawn.tolist(),
            "quantiles": np.sort(drawn)[:, ::2].tolist(),
            "levels": [[0.1, 0.5, 0.9]] * n,
        }
        return pa.table({**fixed, **read})
    if metric.kind in (*NUMBERS, *POSITIVE):
        truth = random.integers(1, 9, n) / 4
        return pa.table(
            {**fixed, "truth": truth, "prediction": np.abs(truth + random.normal(0, 0.5, n)), "value": truth}
        )
    scores = random.dirichlet([1, 1, 1], n)
    labels = np.array(list("abc"))
    held = [[{"label": label, "score": x} for label, x in zip(labels, row, strict=True)] for row in scores.tolist()]
    truth = np.where(random.random(n) < 0.6, labels[scores.argmax(axis=1)], random.choice(labels, n))
    kind = pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())]))
    read = {"truth": truth, "prediction": labels[scores.argmax(axis=1)], "confidence": scores.max(axis=1)}
    read |= {"scores": pa.array(held, kind), "value": (random.random(n) < 0.5).astype(float)}
    return pa.table({**fixed, **read, "_response_index_": np.arange(n) % 2})


def boxes(n: int, random: np.random.Generator) -> dict[str, list[str]]:
    rows = []
    for _ in range(n):
        sides = random.integers(0, 60, 3).tolist()
        there = [{"box": [s, s, s + 10, s + 10], "label": str(random.choice(["a", "b"]))} for s in sides]
        found = [
            {"box": [s, s, s + 10, s + 9 + random.integers(0, 9)], "label": "a", "confidence": float(random.random())}
            for s in sides
        ]
        rows.append(Detection().score(found, there).columns)
    return {name: [orjson.dumps(row[name]).decode() for row in rows] for name in ("truths", "detections")}  # type: ignore[index]


def segments(random: np.random.Generator) -> str:
    pixels = random.integers(0, 3, (2, 40)).repeat(6, axis=1)
    sides = []
    for row in pixels:
        runs = np.diff(np.flatnonzero(np.diff(row, prepend=-1, append=-1)))
        labels = row[np.cumsum(runs) - 1].tolist()
        before = np.cumsum(runs) - runs
        sides.append(
            [
                {"label": "?ab"[label], "mask": {"size": [1, len(row)], "counts": [start, run, len(row) - start - run]}}
                for label, start, run in zip(labels, before.tolist(), runs.tolist(), strict=True)
                if label
            ]
        )
    return orjson.dumps(Segmentation().score(*sides).columns["classes"]).decode()  # type: ignore[index]


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


def ends(row: MetricRow) -> list[float]:
    return [row.value, row.low, row.high, row.worst, row.best]


# Weights


@pytest.mark.parametrize("metric", weighable(), ids=lambda metric: metric.signature)
@pytest.mark.slow
def test_weights_have_no_unit(metric: Metric) -> None:
    weight = np.random.default_rng(1).exponential(size=40)
    shard = table(metric, 40, 0, weight)
    row = one(shard, metric)
    for unit in (10.0, 1 / 3, 2.0**40, 1e-9):
        other = one(shard.set_column(shard.column_names.index("_weight_"), "_weight_", pa.array(weight * unit)), metric)
        if metric.kind in A_NUMBER_OF_ROWS:
            assert other.value == pytest.approx(row.value * unit, rel=1e-12)
            continue
        assert math.isfinite(row.value)
        np.testing.assert_allclose(ends(other), ends(row), rtol=1e-9, atol=1e-12, err_msg=f"unit {unit}")
        assert (other.reason, other.n) == (row.reason, row.n)


@pytest.mark.parametrize("metric", weighable(), ids=lambda metric: metric.signature)
def test_rows_of_weight_0_are_not_there(metric: Metric) -> None:
    random = np.random.default_rng(2)
    whole = table(metric, 60, 0, np.where(np.arange(60) % 3 == 0, 0.0, random.exponential(size=60)))
    there = repr(one(whole.filter(pa.array(np.arange(60) % 3 != 0)), metric))
    assert repr(one(whole, metric)) == there
    status = pa.array(np.where(np.arange(60) % 3 == 0, "failed", "scored"))
    assert repr(one(whole.set_column(1, "status", status), metric)) == there


def test_a_group_without_weight_says_so() -> None:
    metric = registry.find("metrics", "accuracy")(weighted=True)
    shard = table(metric, 4, 0, np.array([0.0, 0.0, 1.0, 1.0]), group=["a", "a", "b", "b"])
    a, b = summarise([shard], [metric], [("group",)])
    assert (a.n, a.reason, math.isnan(a.value)) == (0, "all weights are 0", True)
    assert (b.n, math.isfinite(b.value)) == (2, True)


def test_pairs_of_rows_count_by_the_product_of_their_weights() -> None:
    random = np.random.default_rng(3)
    truth, guess, weight = random.integers(0, 3, 12), random.integers(0, 3, 12), random.exponential(size=12)
    pairs = [(i, j) for i in range(12) for j in range(i)]
    of = {
        name: sum(weight[i] * weight[j] for i, j in pairs if same(i, j))
        for name, same in {
            "both": lambda i, j: truth[i] == truth[j] and guess[i] == guess[j],
            "truth": lambda i, j: truth[i] == truth[j],
            "guess": lambda i, j: guess[i] == guess[j],
            "all": lambda i, j: True,
        }.items()
    }
    chance = of["truth"] * of["guess"] / of["all"]
    expected = (of["both"] - chance) / ((of["truth"] + of["guess"]) / 2 - chance)
    shard = pa.table({"_index_": range(12), "status": ["scored"] * 12, "truth": truth, "prediction": guess})
    row = one(shard.append_column("_weight_", pa.array(weight)), AdjustedRand(weighted=True))
    assert row.value == pytest.approx(expected, rel=1e-12)
    far = one(shard.append_column("_weight_", pa.array(weight * 1e-200)), AdjustedRand(weighted=True))
    assert math.isnan(far.value)
    assert far.reason == "the weights are too large or too small for their squares; give them in another unit"


def test_bins_of_equal_mass_have_as_much_weight() -> None:
    sure, right = np.array([0.1, 0.2, 0.3, 0.9]), np.array([1, 0, 0, 1])
    times = np.array([3, 1, 1, 3])

    def error(rows: np.ndarray, **columns: Any) -> float:
        cells = {"truth": right[rows], "prediction": np.ones(len(rows), np.int64), "confidence": sure[rows]}
        metric = ExpectedCalibrationError(bins=2, binning="mass", weighted=bool(columns))
        n = len(rows)
        return one(pa.table({"_index_": range(n), "status": ["scored"] * n, **cells, **columns}), metric).value

    assert error(np.arange(4), _weight_=times.astype(float)) == pytest.approx(error(np.arange(4).repeat(times)))


# Sizes


SIZES = [0.0, 5e-324, 1e-310, 1e-300, -1e-300, 1e-160, 1.0, -2.0, 3.5, 1e160, 1e300, -1e300, 1.7e308, -1.7e308]
NUMERIC = [
    registry.find("metrics", kind)(**PARAMETERS.get(kind, [{}])[0])
    for kind in [*NUMBERS, "median_absolute_error", "max_error"]
]
NUMERIC += [registry.find("metrics", "quantile")(q=0.5), registry.find("metrics", "mean")(bootstrap=100)]
FALSE_WHERE_NUMBERS_DIFFER = ("one value", "all values are equal")


@pytest.mark.parametrize("metric", NUMERIC, ids=lambda metric: metric.signature)
@given(
    rows=st.lists(st.tuples(st.sampled_from(SIZES), st.sampled_from(SIZES)), min_size=1, max_size=6),
    weighing=st.booleans(),
    cut=st.integers(0, 6),
)
@example(rows=[(1e300, -1e300), (-1e300, 1e300), (0.0, 1.0)], weighing=True, cut=1)
def test_no_size_of_numbers_gives_infinity(metric: Metric, rows: Any, weighing: bool, cut: int) -> None:
    truth, prediction = map(list, zip(*rows, strict=True))
    n = len(rows)
    cells = {"truth": truth, "prediction": prediction, "value": truth, "_weight_": [1.0, 3.0] * 3}
    shard = pa.table({"_index_": range(n), "status": ["scored"] * n, **{k: v[:n] for k, v in cells.items()}})
    if weighing and any(field.name == "weighted" for field in dataclasses.fields(metric)):
        metric = dataclasses.replace(metric, weighted=True)  # type: ignore[call-arg]
    parts = [part for part in (shard.slice(0, cut), shard.slice(cut)) if part.num_rows]
    [row] = summarise(parts, [metric])
    assert not any(map(math.isinf, (row.value, row.low, row.high)))
    assert math.isnan(row.low) == math.isnan(row.high)
    assert row.reason or math.isfinite(row.low)
    if len(set(truth)) > 1 and len(set(prediction)) > 1 and math.isnan(row.value):
        assert not any(reported in str(row.reason) for reported in FALSE_WHERE_NUMBERS_DIFFER)


def of(metric: Metric, truth: list[float], prediction: list[float]) -> MetricRow:
    n = len(truth)
    return one(
        pa.table({"_index_": range(n), "status": ["scored"] * n, "truth": truth, "prediction": prediction}), metric
    )


@pytest.mark.parametrize("size", [2.0**-1000, 2.0**-700, 2.0**700, 2.0**1000])
@pytest.mark.parametrize("kind", ["r_squared", "explained_variance", "pearson", "root_mean_squared_error"])
def test_numbers_of_any_size_have_the_value_of_those_near_1(kind: str, size: float) -> None:
    random = np.random.default_rng(4)
    truth = random.normal(size=30)
    prediction = truth + random.normal(size=30) / 3
    metric = registry.find("metrics", kind)()
    near, far = (of(metric, (truth * unit).tolist(), (prediction * unit).tolist()) for unit in (1.0, size))
    unit = size if kind == "root_mean_squared_error" else 1.0
    assert [x / unit for x in ends(far)[:3]] == pytest.approx(ends(near)[:3], rel=1e-9)


def test_a_correlation_knows_no_units() -> None:
    truth, prediction = [1e-300, 2e-300, 4e-300], [1e300, 3e300, 2e300]
    near = of(Pearson(), [1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    assert of(Pearson(), truth, prediction).value == pytest.approx(near.value, rel=1e-12)


def test_what_no_number_can_say_is_undefined_for_its_true_reason() -> None:
    row = of(RSquared(), [1e-300, 2e-300], [1e10, 1e10])
    assert math.isnan(row.value)
    assert row.reason == "beside the spread of the truths, errors are too large for a number"
    row = of(MedianAbsoluteError(), [1.7e308, 1.7e308, 0.0], [-1.7e308, -1.7e308, 0.0])
    assert math.isnan(row.value)
    assert row.reason == "an error is too large for a number"
    row = of(RootMeanSquaredError(), [1.7e308, 0.0], [-1.7e308, 0.0])
    assert math.isnan(row.value)
    assert row.reason == "the values are too large to be averaged"


def test_errors_near_the_largest_number_have_their_median_and_their_share() -> None:
    assert of(MedianAbsoluteError(), [1e308, 1.7e308], [0.0, 0.0]).value == pytest.approx(1.35e308)
    assert of(MedianAbsoluteError(), [1.7e308, 1.0, 1.0], [-1.7e308, 1.0, 2.0]).value == 1.0
    assert of(MeanAbsolutePercentageError(), [1e308, 1e308], [-1e308, -1e308]).value == 2.0


@pytest.mark.parametrize("gains", ["linear", "exponential"])
@pytest.mark.parametrize("most", [1.0, 1500.0, 1e300])
def test_relevances_of_any_size_have_a_gain(gains: str, most: float) -> None:
    rows = [Ranking().score(["a", "b"], {"a": most / 2, "b": most}).columns, Ranking().score(["a"], "a").columns]
    cells = {name: [row[name] for row in rows] for name in ("ranks", "grades", "relevant")}  # type: ignore[index]
    shard = pa.table({"_index_": [0, 1], "status": ["scored"] * 2, **cells})
    gain = (lambda g: g) if gains == "linear" else (lambda g: 2**g - 1)
    a, b = (
        (gain(1.0), gain(2.0))
        if most > 1 and gains == "linear"
        else (gain(most / 2), gain(most))
        if most <= 1
        else (0, 1)
    )
    expected = (a + b / math.log2(3)) / (b + a / math.log2(3))
    metric = registry.find("metrics", "ndcg")(gains=gains)
    assert one(shard, metric).value == pytest.approx((expected + 1) / 2, rel=1e-12)
