"""Every kind of metric, built from an experiment file and run over small data, with the interval that it names."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from statsmodels.stats.proportion import proportion_confint
from support.places import ROOT_FOLDER
from support.thinned import thinned

from evaluand import Experiment, MemoryStore
from evaluand.aggregation.groups import Grouping, MetricRow, summarise, summarise_shard
from evaluand.core import registry
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.base.signature import words_of
from evaluand.metrics.calibration import assign_bins
from evaluand.metrics.stats.calibration import Rows, error_interval
from evaluand.metrics.stats.intervals import steady_interval

N = 25
"""So few examples that each is left out, whatever the metric."""

RNG = np.random.default_rng(3)
CLASSES = RNG.choice(list("aabbc"), N).tolist()
GUESSES = np.where(RNG.random(N) < 0.6, CLASSES, RNG.choice(list("abc"), N)).tolist()
CHANCES = RNG.dirichlet(np.ones(3), N).round(3)
NUMBERS = RNG.integers(0, 40, N).astype(float).tolist()
NEAR = [abs(number + error) for number, error in zip(NUMBERS, RNG.normal(0, 9, N).round(2).tolist(), strict=True)]
SPANS = [[{"start": 3 * i, "end": 3 * i + 2, "tag": "ab"[i % 2]} for i in range(k)] for k in RNG.integers(1, 5, N)]


RANKINGS = [RNG.permutation([*"abcdefg"]).tolist() for _ in range(N)]


def by_class(chances: np.ndarray) -> dict[str, float]:
    return dict(zip("abc", (chances / chances.sum()).tolist(), strict=True))


def box(place: float) -> dict[str, Any]:
    return {"box": [place, 0, place + 10, 10], "label": "a"}


def segments(*lengths: int) -> list[dict[str, Any]]:
    """Segments of a row of pixels, one after the other, with one void pixel before each."""
    ends = np.cumsum([1 + length for length in lengths]).tolist()
    masks = [[end - length, length, 60 - end] for end, length in zip(ends, lengths, strict=True)]
    return [
        {"label": "ab"[i % 2], "mask": {"size": [1, 60], "counts": counts}, "thing": i % 2 == 0}
        for i, counts in enumerate(masks)
    ]


class Setup(NamedTuple):
    """A scorer, and what is expected of each example beside what was given."""

    scorer: dict[str, Any]
    expected: list[Any]
    given: list[Any]


SETUPS = {
    "values": Setup({"kind": "exact_match"}, CLASSES, GUESSES),
    "labels": Setup({"kind": "prediction"}, CLASSES, GUESSES),
    "scores": Setup(
        {"kind": "prediction"},
        CLASSES,
        [{"prediction": "abc"[int(row.argmax())], "confidence": by_class(row)} for row in CHANCES],
    ),
    "numbers": Setup({"kind": "prediction", "type": "number"}, NUMBERS, NEAR),
    "rankings": Setup({"kind": "ranking"}, [[*"abc"[: 1 + i % 3]] for i in range(N)], RANKINGS),
    "boxes": Setup(
        {"kind": "detection"},
        [[box(0), box(50)] for _ in range(N)],
        [[box(float(x)) | {"confidence": float(c)} for x, c in RNG.random((3, 2)) * [20, 1]] for _ in range(N)],
    ),
    "forecasts": Setup(
        {"kind": "forecast", "history": "input.history", "season": 2},
        NUMBERS,
        [{"samples": [x - 2, x, x + 5], "quantiles": {"0.1": x - 3, "0.5": x, "0.9": x + 6}} for x in NEAR],
    ),
    "segments": Setup(
        {"kind": "segmentation"},
        [segments(*map(int, n)) for n in RNG.integers(3, 15, (N, 3))],
        [segments(*map(int, n)) for n in RNG.integers(3, 15, (N, 3))],
    ),
    "spans": Setup({"kind": "spans"}, SPANS, [spans[: 1 + i % 3] + SPANS[i - 1][3:] for i, spans in enumerate(SPANS)]),
}

NONCENTRAL = "noncentral"
JACKKNIFE, INFLUENCE, HALL, WILSON, WOODRUFF, NONE = "jackknife", "influence", "hall", "wilson", "woodruff", None
SCORE = "score"
KINDS: dict[str, list[tuple[str, dict[str, Any], str | None]]] = {
    "accuracy": [("values", {}, WILSON), ("labels", {}, WILSON)],
    "adjusted_mutual_information": [("labels", {}, JACKKNIFE)],
    "adjusted_rand": [("labels", {}, JACKKNIFE)],
    "average_precision": [("scores", {}, INFLUENCE)],
    "average_recall": [("boxes", {}, JACKKNIFE)],
    "balanced_accuracy": [("labels", {}, JACKKNIFE), ("labels", {"adjusted": True}, JACKKNIFE)],
    "brier": [("scores", {}, SCORE)],
    "character_error_rate": [("labels", {}, JACKKNIFE)],
    "classwise_calibration_error": [("scores", {"bins": 2}, NONCENTRAL)],
    "cohen_kappa": [("labels", {}, JACKKNIFE)],
    "completeness": [("labels", {}, JACKKNIFE)],
    "confusion_matrix": [("labels", {}, NONE)],
    "count": [("values", {}, NONE)],
    "coverage_error": [("scores", {}, HALL)],
    "crps": [("forecasts", {}, HALL), ("forecasts", {"source": "quantiles"}, HALL)],
    "d2_absolute_error": [("numbers", {}, JACKKNIFE)],
    "d2_pinball": [("numbers", {"alpha": 0.3}, JACKKNIFE)],
    "d2_tweedie": [("numbers", {"power": 1}, JACKKNIFE)],
    "debiased_calibration_error": [("scores", {"bins": 2}, NONCENTRAL)],
    "expected_calibration_error": [("scores", {}, NONE)],
    "explained_variance": [("numbers", {}, JACKKNIFE)],
    "f_beta": [("labels", {}, JACKKNIFE), ("labels", {"label": "a"}, JACKKNIFE), ("spans", {}, WILSON)],
    "false_negative_rate": [("labels", {}, JACKKNIFE)],
    "false_positive_rate": [("labels", {}, JACKKNIFE)],
    "hamming_loss": [("labels", {}, JACKKNIFE)],
    "hits_at_k": [("rankings", {"k": 3}, WILSON)],
    "homogeneity": [("labels", {}, JACKKNIFE)],
    "jaccard": [("labels", {"average": "micro"}, JACKKNIFE)],
    "k_of_n": [("values", {"k": 1}, WILSON)],
    "kendall": [("numbers", {}, INFLUENCE)],
    "label_ranking_average_precision": [("scores", {}, SCORE)],
    "label_ranking_loss": [("scores", {}, SCORE)],
    "log_loss": [("scores", {}, HALL)],
    "map_at_k": [("rankings", {"k": 3}, SCORE)],
    "matthews_correlation": [("labels", {}, JACKKNIFE)],
    "majority_vote": [("labels", {}, WILSON)],
    "max_error": [("numbers", {}, NONE)],
    "mean": [("values", {"range": [0, 1]}, SCORE)],
    "mean_absolute_error": [("numbers", {}, HALL)],
    "mean_absolute_percentage_error": [("numbers", {}, HALL)],
    "mean_absolute_scaled_error": [("forecasts", {}, HALL), ("numbers", {"scale": 2}, HALL)],
    "mean_average_precision": [("boxes", {}, JACKKNIFE)],
    "mean_gamma_deviance": [("numbers", {}, HALL)],
    "mean_iou": [("segments", {}, JACKKNIFE), ("segments", {"label": "a"}, JACKKNIFE)],
    "mean_poisson_deviance": [("numbers", {}, HALL)],
    "mean_quantile_loss": [("forecasts", {}, HALL)],
    "mean_reciprocal_rank": [("rankings", {}, SCORE)],
    "mean_squared_error": [("numbers", {}, HALL)],
    "mean_squared_log_error": [("numbers", {}, HALL)],
    "mean_tweedie_deviance": [("numbers", {"power": 1.5}, HALL)],
    "median_absolute_error": [("numbers", {}, WOODRUFF)],
    "ndcg": [("rankings", {"k": 3}, SCORE)],
    "normalized_mutual_information": [("labels", {}, JACKKNIFE)],
    "panoptic_quality": [("segments", {}, JACKKNIFE), ("segments", {"part": "stuff"}, JACKKNIFE)],
    "pass_at_k": [("values", {"k": 1}, SCORE)],
    "pearson": [("numbers", {}, JACKKNIFE)],
    "pinball_loss": [("numbers", {"alpha": 0.9}, HALL)],
    "precision": [("labels", {}, JACKKNIFE), ("spans", {}, WILSON)],
    "precision_at_k": [("rankings", {"k": 3}, SCORE)],
    "precision_at_top_k": [("numbers", {"k": 5}, NONE)],
    "quantile": [("numbers", {"q": 0.5, "column": "prediction"}, WOODRUFF)],
    "r_squared": [("numbers", {}, JACKKNIFE)],
    "recall": [("labels", {}, JACKKNIFE), ("spans", {}, WILSON)],
    "recall_at_k": [("rankings", {"k": 3}, SCORE)],
    "recognition_quality": [("segments", {}, JACKKNIFE)],
    "roc_auc": [("scores", {"label": "a"}, INFLUENCE)],
    "roc_auc_one_vs_one": [("scores", {}, INFLUENCE)],
    "root_mean_squared_error": [("numbers", {}, HALL)],
    "segmentation_quality": [("segments", {}, JACKKNIFE)],
    "selection_rate": [("labels", {"label": "a"}, WILSON)],
    "spearman": [("numbers", {}, INFLUENCE)],
    "specificity": [("labels", {}, JACKKNIFE)],
    "symmetric_mean_absolute_percentage_error": [("numbers", {}, SCORE)],
    "top_k": [("values", {"k": 1}, WILSON)],
    "v_measure": [("labels", {}, JACKKNIFE)],
    "weighted_absolute_percentage_error": [("numbers", {}, JACKKNIFE)],
    "weighted_kappa": [("labels", {"labels": ["a", "b", "c"]}, JACKKNIFE)],
    "word_error_rate": [("labels", {}, JACKKNIFE)],
    "omega_index": [("labels", {}, INFLUENCE)],
    "overlapping_mutual_information": [("labels", {}, JACKKNIFE), ("labels", {"normalization": "lfk"}, JACKKNIFE)],
}
"""Kind → what it is asked for, and the name of its interval."""

LABELLED = ("prediction_powered_mean",)  # goes the whole path with labels of people in its own test
Case = tuple[str, str, dict[str, Any], str | None]
Ran = dict[tuple[str, str], tuple[Metric, pa.Table, dict[str, Any]]]
CASES: list[Case] = [
    (kind, *case)
    for kind in registry.names("metrics")
    if kind not in LABELLED
    for case in KINDS.get(kind, [("", {}, NONE)])
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """For each setup, what all its metrics made of one run."""
    return cache(lambda setup: run(tmp_path_factory.mktemp(setup), SETUPS[setup], [c for c in CASES if c[1] == setup]))


def run(folder: Path, setup: Setup, cases: list[Case]) -> Ran:
    """For kind and parameters: the metric as the file has it, the scores, and the value that was stored."""
    asked = [{"number": i, "history": [i, 2.0, i + 3.0, 4.0]} for i in range(N)]
    rows = [{"_index_": i, "input": asked[i], "expected": one} for i, one in enumerate(setup.expected)]
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rows = [{"_index_": i, "output": one} for i, one in enumerate(setup.given)]
    (folder / "given.jsonl").write_text("\n".join(map(json.dumps, rows)))
    spec = {  # JSON is YAML
        "name": "kinds",
        "dataset": {"path": "data.jsonl", "input": "input", "expected": "expected"},
        "tasks": {"given": {"kind": "recorded", "path": "given.jsonl", "response": "output"}},
        "scorers": {"graded": setup.scorer},
        "metrics": [{"kind": kind, **parameters} for kind, _, parameters, _ in cases],
    }
    (folder / "experiment.yaml").write_text(json.dumps(spec))
    experiment = Experiment.from_file(folder / "experiment.yaml")
    results = experiment.run(MemoryStore())
    table, values = results.tasks[0].evaluation.table("graded"), results.aggregation.table().to_pylist()
    found = zip(cases, experiment.measures, values, strict=True)
    return {(kind, str(given)): (measure.metric, table, value) for (kind, _, given, _), measure, value in found}


@pytest.mark.parametrize(("kind", "setup", "parameters", "method"), CASES)
def test_every_kind_goes_the_whole_path_from_a_file_and_has_the_interval_it_names(
    kind: str, setup: str, parameters: dict[str, Any], method: str | None, ran: Callable[[str], Ran]
) -> None:
    assert setup, f"give {kind} a case in KINDS"
    metric, table, found = ran(setup)[kind, str(parameters)]
    assert (found["metric"], found["n"], found["n_scored"]) == (kind, N, N)
    assert math.isfinite(found["value"])
    reported = words_of(found["signature"]).get("interval")
    if method is None:
        assert (reported, found["low"], found["high"]) == (None, None, None)
        return
    assert reported == f"{method} 95%"
    reference = of_counts if setup == "spans" else of_shares if kind == "balanced_accuracy" else INTERVALS[method]
    assert (found["low"], found["high"]) == pytest.approx(reference(metric, table), rel=_NEAR.get(metric.kind, 1e-7))
    assert found["low"] < found["value"] < found["high"]


@thinned("kind", KINDS, every=4)
def test_every_kind_stands_in_the_reference(kind: str) -> None:
    assert f"`{kind}`" in (ROOT_FOLDER / "docs" / "reference" / "metrics.md").read_text()


# What an interval of that name is

_NEAR = {"d2_pinball": 1e-2, "d2_tweedie": 1e-3}
"""The best constant is kept, or followed to the second order, when a row is left out."""


def one(table: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([table], [metric])
    return row


def of_each(metric: Metric, tables: Iterable[pa.Table]) -> np.ndarray:
    """The value of each table: they are groups of one."""
    whole = pa.concat_tables(t.append_column("part", pa.array([f"{i:02}"] * len(t))) for i, t in enumerate(tables))
    whole = whole.drop(["_index_"]).append_column("_index_", pa.array(range(len(whole))))
    return np.array([row.value for row in summarise([whole], [metric], [("part",)])])


def by_row(metric: Metric, table: pa.Table) -> np.ndarray:
    """What each row comes to, of a metric that is a mean of these."""
    return of_each(metric, (table.slice(place, 1) for place in range(N)))


def wilson(metric: Metric, table: pa.Table) -> tuple[float, float]:
    low, high = proportion_confint(by_row(metric, table).sum(), N, method="wilson")
    return float(low), float(high)


def hall(metric: Metric, table: pa.Table) -> tuple[float, float]:
    """The values of the mean at which the transformed statistic is as far off as Student's quantile."""
    rooted = metric.kind.startswith("root")
    values = by_row(metric, table) ** (2 if rooted else 1)
    skew, quantile = scipy.stats.skew(values, bias=False) * (1 + 5 / N), scipy.stats.t.ppf(0.975, N - 1)
    scale = values.std(ddof=1)

    def off(mean: float, end: int) -> float:
        t = (values.mean() - mean) / scale
        transformed = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / (6 * N)
        return float(math.sqrt(N) * transformed - end * quantile)

    ends = [scipy.optimize.brentq(off, -1e3 * scale, 1e3 * scale, args=(end,), xtol=1e-13) for end in (1, -1)]
    low, high = np.clip(ends, *metric.range) ** (0.5 if rooted else 1)
    return float(low), float(high)


def steady_score(metric: Metric, table: pa.Table) -> tuple[float, float]:
    """With the variance of the shares of the range drawn towards that of a proportion."""
    least, most = metric.range
    values = (by_row(metric, table) - least) / (most - least)
    share, near = values.mean(), (values.sum() + 0.5) / (N + 1)
    found = 2 * share * (1 - share) * N
    variance = (near * (1 - near) / N + found * scipy.stats.sem(values) ** 2) / (1 + found)
    scale = variance / (near * (1 - near))  # one over the number of rows of a proportion with this variance
    z = scipy.stats.t.ppf(0.975, N - 1 + 4)

    def beyond(p: float) -> float:
        return float((share - p) ** 2 - z * z * scale * p * (1 - p))

    low = 0.0 if share == 0 else scipy.optimize.brentq(beyond, 0, share)
    high = 1.0 if share == 1 else scipy.optimize.brentq(beyond, share, 1)
    return least + (most - least) * low, least + (most - least) * high


def woodruff(metric: Metric, table: pa.Table) -> tuple[float, float]:
    values = np.sort(by_row(metric, table))
    low, high = (values[math.ceil(N * end) - 1] for end in proportion_confint(N / 2, N, method="wilson"))
    return float(low), float(high)


def jackknife(metric: Any, table: pa.Table) -> tuple[float, float]:
    row, plain = one(table, metric), replace(metric, confidence=None)
    left = of_each(plain, (table.filter(pa.array(np.arange(N) != place)) for place in range(N)))
    variance = (N - 1) / N * float(np.square(left - np.mean(left)).sum())
    if metric.kind == "mean_average_precision":  # no less than that of a share of the true boxes
        variance = max(variance, row.value * (1 - row.value) / row.data["expected"])
    if metric.kind == "pearson":
        half = scipy.stats.t.ppf(0.975, N - 1) * math.sqrt(variance) / (1 - row.value**2)
        return math.tanh(math.atanh(row.value) - half), math.tanh(math.atanh(row.value) + half)
    least, most = metric.range
    if math.isinf(most - least):  # on logarithms of the distance from the end of the range
        half, edge = scipy.stats.t.ppf(0.975, N - 1) * math.sqrt(variance), most if math.isinf(least) else least
        off, sign = abs(row.value - edge), math.copysign(1, row.value - edge)
        near = (off * math.exp(-half / off) + max(off - half, 0)) / 2
        low, high = sorted((edge + sign * off * math.exp(half / off), edge + sign * near))
        return low, high
    share, width = (row.value - least) / (most - least), most - least
    ends = score_interval(share, variance / width**2, round(row.data.get("rests_on", N)))
    return least + width * ends[0], least + width * ends[1]


def influence(metric: Any, table: pa.Table) -> tuple[float, float]:
    """By the derivative of the value by the weight of each row."""
    weighted, row = replace(metric, weighted=True, confidence=None), one(table, metric)

    changes = np.concatenate([1 + step * np.eye(N) for step in (-1e-4, 1e-4)])
    low, high = of_each(weighted, (table.append_column("_weight_", pa.array(w)) for w in changes)).reshape(2, N)
    [found] = dict(metric.group_results(summarise_shard(table, [metric]).states[0, Grouping(())][None])).values()
    effective, expected = N * found.basis, N * found.expected
    variance = effective / (effective - 1) * float(np.square((high - low) / 2e-4).sum())
    return steady_interval(row.value, variance, expected, effective, metric.range, 0.95)


def of_counts(metric: Any, table: pa.Table) -> tuple[float, float]:
    columns = ("correct", "partial", "n_expected", "n_predicted")
    correct, partial, expected, predicted = (np.array(table[name].to_pylist(), float) for name in columns)
    of_expected, of_predicted = {"precision": (0, 1), "recall": (1, 0), "f_beta": (1, 1)}[metric.kind]
    above = (of_expected + of_predicted) * (correct + partial / 2)
    below = of_expected * expected + of_predicted * predicted
    value = above.sum() / below.sum()
    variance = N / (N - 1) * float(np.square(above - value * below).sum()) / below.sum() ** 2
    return score_interval(value, variance, round(below.sum() ** 2 / (below**2).sum()))


def of_shares(metric: Any, table: pa.Table) -> tuple[float, float]:
    """Of the mean of the recalls by Wilson's interval of each, as the distances of its ends add up."""
    truth, prediction = (np.array(table[name].to_pylist()) for name in ("truth", "prediction"))
    each = [(int((prediction[truth == name] == name).sum()), int((truth == name).sum())) for name in np.unique(truth)]
    recall = np.array([right / n for right, n in each])
    found = [scipy.stats.binomtest(right, n).proportion_ci(0.95, "wilsoncc") for right, n in each]
    ends = [
        recall.mean() + side * math.sqrt(float(np.square(end - recall).sum())) / len(each)
        for side, end in ((-1, [one.low for one in found]), (1, [one.high for one in found]))
    ]
    guessing = 1 / len(each)
    low, high = ((end - guessing) / (1 - guessing) for end in ends) if metric.adjusted else ends
    return low, high


def score_interval(share: float, variance: float, effective: int) -> tuple[float, float]:
    """The shares p for which (share − p)² = t² p (1 − p) / rows, as many rows as have this variance."""
    rows, t = share * (1 - share) / variance, scipy.stats.t.ppf(0.975, effective - 1)
    low, high = np.sort(np.roots([1 + t * t / rows, -2 * share - t * t / rows, share * share]).real)
    return float(low), float(high)


def noncentral(metric: Any, table: pa.Table) -> tuple[float, float]:
    """Of the squared distances in bins; their law itself is tested in tests/metrics/test_calibration.py."""
    truth, prediction = (np.array(table[name].to_pylist()) for name in ("truth", "prediction"))
    if metric.kind == "debiased_calibration_error":
        said, right = np.array(table["confidence"].to_pylist())[:, None], (truth == prediction)[:, None]
    else:
        each = [{entry["label"]: entry["score"] for entry in row} for row in table["scores"].to_pylist()]
        said, right = np.array([[row[name] for name in "abc"] for row in each]), truth[:, None] == np.array(list("abc"))
    bins = [2 * i + assign_bins(column, np.ones(N), 2, "mass") for i, column in enumerate(said.T)]
    rows = Rows(said, right.astype(float), np.stack(bins, axis=1), np.arange(N), 2 * len(bins))
    return error_interval(rows, np.ones(N), 0.95)


INTERVALS = {
    WILSON: wilson,
    SCORE: steady_score,
    HALL: hall,
    WOODRUFF: woodruff,
    JACKKNIFE: jackknife,
    INFLUENCE: influence,
    NONCENTRAL: noncentral,
}
