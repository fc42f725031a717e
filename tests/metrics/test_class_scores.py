"""Scores of classes: what they are read from, and their metrics against scikit-learn."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from sklearn.preprocessing import label_binarize
from support.thinned import thinned

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.areas import AveragePrecision, RocAuc
from evaluand.metrics.base.curves import precision_recall_curve, roc_curve
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.metrics.probabilities import Brier, LogLoss
from evaluand.predictions.evaluating import evaluate
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore

LABELS = np.array(["a", "b", "c"])
SCORES = pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())]))


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Truths, and probabilities of three classes with ties."""
    generator = np.random.default_rng(seed)
    scores = generator.integers(1, 6, (n, 3)).astype(float)
    scores /= scores.sum(axis=1, keepdims=True)
    truth = np.array([generator.choice(LABELS, p=row) for row in scores])
    truth[:3] = LABELS
    return truth, scores


def table(truth: Any, scores: np.ndarray, **columns: Any) -> pa.Table:
    held = [[{"label": label, "score": x} for label, x in zip(LABELS, row, strict=True) if x == x] for row in scores]
    prediction = LABELS[np.nanargmax(scores, axis=1)]
    sure = np.nanmax(scores, axis=1)
    n = len(truth)
    fixed = {"_index_": np.arange(n), "status": ["scored"] * n, "truth": truth, "prediction": prediction}
    return pa.table({**fixed, "confidence": sure, "scores": pa.array(held, SCORES), **columns})


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


def weighted_brier(truth: np.ndarray, scores: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.average(((label_binarize(truth, classes=LABELS) - scores) ** 2).sum(axis=1), weights=weight))


def auc(average: str) -> Any:
    return lambda t, s, w: sk.roc_auc_score(t, s, multi_class="ovr", average=average, sample_weight=w)


def ap(average: str) -> Any:
    return lambda t, s, w: sk.average_precision_score(
        label_binarize(t, classes=LABELS), s, average=average, sample_weight=w
    )


CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "auc macro": ("roc_auc", {}, auc("macro")),
    "auc weighted": ("roc_auc", {"average": "weighted"}, auc("weighted")),
    "auc micro": ("roc_auc", {"average": "micro"}, auc("micro")),
    "auc of one": (
        "roc_auc",
        {"label": "b"},
        lambda t, s, w: sk.roc_auc_score(t == "b", s[:, 1], sample_weight=w),
    ),
    "ap macro": ("average_precision", {}, ap("macro")),
    "ap weighted": ("average_precision", {"average": "weighted"}, ap("weighted")),
    "ap micro": ("average_precision", {"average": "micro"}, ap("micro")),
    "ap of one": (
        "average_precision",
        {"label": "c"},
        lambda t, s, w: sk.average_precision_score(t == "c", s[:, 2], sample_weight=w),
    ),
    "log loss": ("log_loss", {}, lambda t, s, w: sk.log_loss(t, s, sample_weight=w)),
    "log loss of one": (
        "log_loss",
        {"label": "a"},
        lambda t, s, w: sk.log_loss(t == "a", s[:, 0], sample_weight=w),
    ),
    "brier": ("brier", {}, weighted_brier),
    "brier halved": ("brier", {"halved": True}, lambda t, s, w: weighted_brier(t, s, w) / 2),
    "brier of one": (
        "brier",
        {"label": "a"},
        lambda t, s, w: sk.brier_score_loss(t == "a", s[:, 0], sample_weight=w),
    ),
}


def made(case: str, **parameters: Any) -> Metric:
    kind, own, _ = CASES[case]
    metric: Metric = registry.find("metrics", kind)(**own, **parameters)
    return metric


@pytest.mark.parametrize("case", CASES)
@thinned("n", [4, 60, 400], every=3)
def test_values_are_those_of_scikit_learn(case: str, n: int) -> None:
    truth, scores = drawn(n, n)
    assert one(table(truth, scores), made(case)).value == pytest.approx(CASES[case][2](truth, scores, None), rel=1e-12)


@thinned("case", CASES, every=4)
def test_weighted_values_are_those_of_scikit_learn(case: str) -> None:
    truth, scores = drawn(300)
    weight = np.random.default_rng(1).exponential(size=300)
    row = one(table(truth, scores, _weight_=weight), made(case, weighted=True))
    assert row.value == pytest.approx(CASES[case][2](truth, scores, weight), rel=1e-12)
    assert row.low < row.value < row.high


@thinned("case", CASES, every=4)
def test_shards_and_groups_and_order_do_not_matter(case: str) -> None:
    truth, scores = drawn(240)
    part = np.arange(240) % 2
    order = np.argsort(truth, kind="stable")  # so that a shard lacks classes, and has them in another order
    whole = table(truth[order], scores[order], part=part[order])
    rows = summarise([whole.slice(0, 50), whole.slice(50, 3), whole.slice(53)], [made(case)], [(), ("part",)])
    for row, chosen in zip(rows, (part >= 0, part == 0, part == 1), strict=True):
        assert row.value == pytest.approx(CASES[case][2](truth[chosen], scores[chosen], None), rel=1e-12)
    assert repr(rows) == repr(
        summarise([whole.slice(0, 50), whole.slice(50, 3), whole.slice(53)], [made(case)], [(), ("part",)])
    )


@pytest.mark.parametrize("scored_by", ["classes", "labels"])
@pytest.mark.parametrize("case", [case for case in CASES if case[:2] in ("au", "ap")])
def test_the_influence_of_a_row_is_the_derivative_of_the_value(case: str, scored_by: str) -> None:
    metric: Any = made(case, weighted=True, scored_by=scored_by)
    truth, scores = drawn(40)
    code = np.searchsorted(LABELS, truth)
    given = {"truth": code, "prediction": np.roll(code, 3), "scores": scores, "_labels_": LABELS.astype(object)}
    weight = np.random.default_rng(1).uniform(0.5, 3, 40)
    prepared = metric.prepare({**given, "_index_": np.arange(40)})
    state = metric.state({**prepared, "_cluster_": np.arange(40), "_weight_": weight}, np.zeros(40, np.int64), 1)
    [(_, rows)] = metric.rows_of(state)
    rows = metric.arranged(rows)
    step = 1e-5 * np.eye(40)
    changed = (metric.value(rows, weight + step) - metric.value(rows, weight - step)) / 2e-5
    np.testing.assert_allclose(metric.influence(rows, weight), changed, atol=1e-9)


def test_the_interval_of_an_area_has_the_variance_of_de_long() -> None:
    """Of so many rows nothing is drawn towards what is expected."""
    generator = np.random.default_rng(0)
    positive = np.arange(20_000) % 2 == 0
    score = generator.normal(positive, 1)
    row = evaluate(positive, positive, confidence=score, metrics=RocAuc(scored_by="positive", label=True))["roc_auc"]
    below = [np.searchsorted(np.sort(score[~kind]), score[kind]) / (~kind).sum() for kind in (positive, ~positive)]
    error = math.sqrt(sum(each.var(ddof=1) / len(each) for each in below))
    assert (row.high - row.low) / 2 == pytest.approx(1.96 * error, rel=1e-3)


@pytest.mark.parametrize("kind", [RocAuc, AveragePrecision])
def test_where_one_row_is_all_there_is_of_a_class_there_is_no_interval(kind: Any) -> None:
    positive = np.arange(50) == 3
    row = evaluate(positive, positive, confidence=np.arange(50) / 50, metrics=kind(scored_by="positive", label=True))
    assert math.isfinite(row.rows[0].value)
    assert "no interval" in str(row.rows[0].reason)


def test_areas_of_rows_of_two_clusters_each_know_no_more_than_two() -> None:
    generator = np.random.default_rng(0)
    truth, scores = drawn(400)
    metric = RocAuc(label="a")
    alone = one(table(truth, scores), metric)
    tied = one(table(truth, scores, _cluster_=generator.integers(0, 4, 400)), metric)
    assert tied.value == alone.value
    assert tied.high - tied.low > 1.5 * (alone.high - alone.low)


def test_labels_of_many_classes_take_no_matrix() -> None:
    generator = np.random.default_rng(0)
    truth = np.arange(4_000) % 1_000
    prediction = np.where(generator.random(4_000) < 0.5, truth, generator.integers(0, 1_000, 4_000))
    metric: Any = RocAuc(scored_by="labels")
    state = metric.state(
        {"truth": truth, "prediction": prediction, "_labels_": np.arange(1_000).astype(object), "_cluster_": truth},
        np.zeros(4_000, np.int64),
        1,
    )
    assert sum(array.nbytes for array in state.values()) < 100 * 4_000
    found = metric.compute(state).value[0]
    rates = [((prediction == c)[truth == c].mean(), (prediction == c)[truth != c].mean()) for c in range(1_000)]
    assert found == pytest.approx(np.mean([(1 + right - wrong) / 2 for right, wrong in rates]), rel=1e-12)


@pytest.mark.parametrize("kind", [RocAuc, AveragePrecision])
def test_the_value_alone_is_that_with_an_interval(kind: Any) -> None:
    truth, scores = drawn(300)
    shard = table(truth, scores)
    for average in ("macro", "weighted", "micro"):
        alone = one(shard, kind(average=average, confidence=None)).value
        assert alone == pytest.approx(one(shard, kind(average=average)).value, rel=1e-13)


def test_the_confidence_may_be_that_of_the_positive_or_of_the_predicted_class() -> None:
    truth = ["cat", "dog", "cat", "dog", "cat"]
    prediction = ["cat", "dog", "dog", "cat", "cat"]
    of_predicted = np.array([0.9, 0.8, 0.6, 0.55, 0.7])
    of_cat = np.where(np.array(prediction) == "cat", of_predicted, 1 - of_predicted)
    expected = sk.roc_auc_score(np.array(truth) == "cat", of_cat)
    metric = RocAuc(scored_by="predicted", label="cat")
    assert evaluate(truth, prediction, confidence=of_predicted, metrics=metric)["roc_auc"].value == pytest.approx(
        expected
    )
    metric = RocAuc(scored_by="positive", label="cat")
    assert evaluate(truth, prediction, confidence=of_cat, metrics=metric)["roc_auc"].value == pytest.approx(expected)


def probable(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truths of two classes, what is predicted and the probability of `ill`."""
    generator = np.random.default_rng(5)
    of_ill = generator.uniform(0.001, 0.999, n)
    truth = np.where(generator.random(n) < of_ill, "ill", "well")
    return truth, np.where(of_ill > 0.4, "ill", "well"), of_ill


def graded(truth: np.ndarray, prediction: np.ndarray, confidence: np.ndarray, of: Any) -> pa.Table:
    n = len(truth)
    fixed = {"_index_": np.arange(n), "status": ["scored"] * n, "truth": truth, "prediction": prediction}
    return pa.table({**fixed, "confidence": confidence, "confidence_of": pa.array(of, pa.string())})


@pytest.mark.parametrize("scored_by", ["predicted", "positive"])
def test_a_confidence_that_is_known_to_be_of_one_class_is_read_as_that(scored_by: Any) -> None:
    truth, prediction, of_ill = probable()
    shard = graded(truth, prediction, of_ill, ["ill"] * len(truth))
    area = sk.roc_auc_score(truth == "ill", of_ill)
    assert one(shard, RocAuc(scored_by=scored_by, label="ill")).value == pytest.approx(area)
    loss = sk.brier_score_loss(truth == "ill", of_ill)
    assert one(shard, Brier(scored_by=scored_by, label="ill")).value == pytest.approx(loss)
    expected, _ = reference_ece(of_ill, truth == "ill", 10)
    assert one(shard, ExpectedCalibrationError(scored_by=scored_by, label="ill")).value == pytest.approx(expected)


def test_the_calibration_of_predictions_takes_a_confidence_of_the_other_class_from_1() -> None:
    truth, prediction, of_ill = probable()
    sure = np.where(prediction == "ill", of_ill, 1 - of_ill)
    expected, _ = reference_ece(sure, truth == prediction, 10)
    for confidence, of in ((of_ill, ["ill"] * len(truth)), (sure, prediction), (sure, [None] * len(truth))):
        shard = graded(truth, prediction, confidence, of)
        assert one(shard, ExpectedCalibrationError()).value == pytest.approx(expected)


def test_a_confidence_in_what_is_predicted_is_not_taken_for_that_of_one_class() -> None:
    truth, prediction, of_ill = probable()
    shard = graded(truth, prediction, np.where(prediction == "ill", of_ill, 1 - of_ill), prediction)
    with pytest.raises(
        SpecError, match="takes the confidence as the score of 'ill', but some rows have that of 'well'"
    ):
        one(shard, RocAuc(scored_by="positive", label="ill"))


def test_the_calibration_of_three_classes_does_not_take_the_confidence_of_another() -> None:
    shard = graded(LABELS, LABELS, np.array([0.5, 0.2, 0.1]), ["a"] * 3)
    with pytest.raises(SpecError, match="belong to another class than the predicted one"):
        one(shard, ExpectedCalibrationError())


@pytest.mark.parametrize("metric", [RocAuc(absent=0), LogLoss(absent=0, clip=1e-15), Brier(absent=0)])
def test_rows_without_any_scores_are_not_taken_for_rows_of_zeros(metric: Metric) -> None:
    truth, scores = drawn(50)
    scores[4:6] = np.nan
    shard = table(truth, np.nan_to_num(scores)).drop_columns(["scores"])
    held = [[{"label": label, "score": x} for label, x in zip(LABELS, row, strict=True) if x == x] for row in scores]
    row = one(shard.append_column("scores", pa.array(held, SCORES)), metric)
    known = np.setdiff1d(np.arange(50), [4, 5])
    assert (row.n_scored, row.n_abstained) == (48, 2)
    assert row.value == one(table(truth[known], scores[known]), metric).value
    with pytest.raises(SpecError, match=r"no row has scores of classes, .*; let outputs hold them as an object"):
        one(shard.append_column("scores", pa.array([None] * 50, SCORES)), metric)


@pytest.mark.parametrize("metric", [RocAuc(), LogLoss(), Brier()])
def test_what_to_do_about_lacking_scores_is_said_before_anything_is_taken_for_0(metric: Metric) -> None:
    shard = table(*drawn(50)).drop_columns(["scores"]).append_column("scores", pa.array([None] * 50, SCORES))
    row = one(shard, metric)
    assert math.isnan(row.value)
    assert "let outputs hold them as an object label → number under 'probabilities'" in str(row.reason)
    with pytest.raises(SpecError, match="reads the scores of classes, and there are none: let outputs hold them"):
        evaluate(LABELS, LABELS, confidence=[0.5] * 3, metrics=metric)


def test_two_classes_have_the_values_of_scikit_learn_for_the_positive_one() -> None:
    truth, prediction, of_ill = probable()
    scores = {"ill": of_ill, "well": 1 - of_ill}
    result = evaluate(truth, prediction, scores=scores, label="ill", metrics=["brier", "average_precision", "roc_auc"])
    assert result["brier"].value == pytest.approx(sk.brier_score_loss(truth == "ill", of_ill))
    assert result["average_precision"].value == pytest.approx(sk.average_precision_score(truth == "ill", of_ill))
    halved = evaluate(truth, prediction, scores=scores, metrics=Brier(halved=True))
    assert halved["brier"].value == pytest.approx(result["brier"].value)


def test_labels_alone_have_the_area_of_their_one_threshold() -> None:
    generator = np.random.default_rng(3)
    truth, prediction = generator.choice(LABELS, (2, 100))
    for average in ("macro", "micro", "weighted"):
        row = evaluate(truth, prediction, metrics=RocAuc(scored_by="labels", average=average))["roc_auc"]  # type: ignore[arg-type]
        one_hot = (label_binarize(each, classes=LABELS) for each in (truth, prediction))
        assert row.value == pytest.approx(sk.roc_auc_score(*one_hot, average=average), rel=1e-12)


def test_the_confidence_of_one_of_three_classes_does_not_tell_the_others() -> None:
    with pytest.raises(SpecError, match=r"with the classes 'a', 'b' and 'c' the confidence of one does not determine"):
        evaluate(LABELS, LABELS, confidence=[0.5] * 3, metrics=RocAuc(scored_by="predicted", label="a"))


@pytest.mark.parametrize("kind", [RocAuc, LogLoss, Brier])
def test_three_classes_are_seen_whatever_shards_they_come_in(kind: Any) -> None:
    shard = pa.table(
        {"_index_": range(4), "status": ["scored"] * 4, "truth": [*"abac"], "prediction": [*"abac"]}
        | {"confidence": [0.5] * 4}
    )
    with pytest.raises(SpecError, match="with the classes 'a', 'b' and 'c'"):
        summarise([shard.slice(0, 2), shard.slice(2)], [kind(scored_by="predicted", label="a")])


def test_a_class_without_a_score_is_reported_and_may_be_taken_for_zero() -> None:
    truth, scores = drawn(50)
    scores[4, 1] = np.nan
    row = one(table(truth, scores), RocAuc())
    assert math.isnan(row.value)
    assert str(row.reason).startswith("1 row has no score for 'b'; let outputs hold them as an object label → number")
    assert str(row.reason).endswith("or absent=0, which takes it for 0")
    expected = sk.roc_auc_score(truth == "b", np.nan_to_num(scores[:, 1]))
    assert one(table(truth, scores), RocAuc(absent=0, label="b")).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("truth", "metric", "why"),
    [
        (["a", "a", "b"], RocAuc(), "no truth is 'c'"),
        (["a", "a", "a"], RocAuc(label="a"), "all truths are 'a'"),
        (["a", "a", "a"], AveragePrecision(label="x", absent=0), "no truth is 'x'"),
        (["a", "b", "c"], RocAuc(label="x"), "3 rows have no score for 'x'"),
    ],
)
def test_what_is_undefined_has_a_reason_and_no_value(truth: list[str], metric: Metric, why: str) -> None:
    row = one(table(truth, np.array([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])), metric)
    assert (math.isnan(row.value), why in str(row.reason)) == (True, True)


def test_the_values_of_the_classes_stand_in_the_data() -> None:
    truth, scores = drawn(80)
    reported = one(table(truth, scores), RocAuc()).data["classes"]
    expected = [sk.roc_auc_score(truth == label, scores[:, place]) for place, label in enumerate(LABELS)]
    assert [each["label"] for each in reported] == ["a", "b", "c"]
    assert [each["value"] for each in reported] == pytest.approx(expected)


def test_a_certain_mistake_has_an_infinite_loss_unless_clipped() -> None:
    shard = table(["a", "b"], np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))
    row = one(shard, LogLoss())
    assert math.isnan(row.value)
    assert "1 row has no probability for the truth, or 0, whose loss is infinite; let outputs hold" in str(row.reason)
    assert one(shard, LogLoss(clip=1e-15)).value == pytest.approx(-math.log(1e-15) / 2)


@pytest.mark.parametrize("metric", [LogLoss(), Brier()])
def test_scores_that_are_no_probabilities_are_refused_by_row(metric: Metric) -> None:
    for scores, why in (([0.2, 0.2, 0.2], "add up to 0.6"), ([1.5, -0.5, 0.0], "outside 0 and 1")):
        with pytest.raises(DataError, match=f"_index_ 1: .*{why}"):
            one(table(["a", "b"], np.array([[0.5, 0.5, 0.0], scores])), metric)


def reference_ece(sure: np.ndarray, right: np.ndarray, bins: int) -> tuple[float, float]:
    apart, share = [], []
    for place in range(bins):
        chosen = (sure > place / bins) & (sure <= (place + 1) / bins)
        if chosen.any():
            apart.append(abs(sure[chosen].mean() - right[chosen].mean()))
            share.append(chosen.mean())
    return float(np.dot(apart, share)), max(apart)


def test_calibration_error_is_the_mean_or_the_largest_of_its_bins() -> None:
    truth, scores = drawn(300)
    scores = scores + np.random.default_rng(0).uniform(0, 0.01, scores.shape)  # off the borders of bins
    scores /= scores.sum(axis=1, keepdims=True)
    shard = table(truth, scores)
    mean, largest = reference_ece(scores.max(axis=1), LABELS[scores.argmax(axis=1)] == truth, 10)
    assert one(shard, ExpectedCalibrationError()).value == pytest.approx(mean)
    assert one(shard, ExpectedCalibrationError(norm="max")).value == pytest.approx(largest)
    of_one, _ = reference_ece(scores[:, 1], truth == "b", 5)
    metric = ExpectedCalibrationError(scored_by="classes", label="b", bins=5)
    assert one(shard, metric).value == pytest.approx(of_one)


def test_bins_of_equal_mass_have_as_many_rows() -> None:
    sure = np.linspace(0.01, 0.99, 100)
    right = np.arange(100) % 2 == 0
    shard = table(["a"] * 100, np.stack([sure, 1 - sure, 0 * sure], axis=1))
    shard = shard.set_column(2, "truth", pa.array(np.where(right, "a", "b")))
    metric = ExpectedCalibrationError(scored_by="classes", label="a", bins=4, binning="mass")
    parts = [slice(25 * i, 25 * i + 25) for i in range(4)]
    expected = np.mean([abs(sure[p].mean() - right[p].mean()) for p in parts])
    assert one(shard, metric).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: RocAuc(scored_by="positive"), "needs label"),
        (lambda: RocAuc(scored_by="guess"), "scored_by is the text 'guess'; give one of classes"),  # type: ignore[arg-type]
        (lambda: RocAuc(average="both"), "average='both' must be one of macro"),  # type: ignore[arg-type]
        (lambda: LogLoss(clip=0.7), "clip=0.7"),
        (lambda: Brier(absent=0.5), "absent=0.5 must be 0"),
        (lambda: ExpectedCalibrationError(bins=0), "bins is the integer 0"),
        (lambda: ExpectedCalibrationError(norm="l3"), "norm is the text 'l3'"),  # type: ignore[arg-type]
        (lambda: ExpectedCalibrationError(scored_by="classes"), "needs label"),
    ],
)
def test_parameters_that_contradict_are_refused(wrong: Any, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        wrong()


# From outputs and arrays


@pytest.mark.parametrize(("type", "labels"), [("text", ["x", "y"]), ("integer", [0, 10]), ("boolean", [True, False])])
def test_scores_go_the_whole_path(type: str, labels: list[Any]) -> None:
    truth = [labels[0], labels[1], labels[0], labels[1], labels[1]]
    scores = [0.9, 0.4, 0.3, 0.2, 0.95]
    prediction = [labels[0] if score > 0.5 else labels[1] for score in scores]
    keys = [str(label).lower() for label in labels]
    outputs = [
        {"prediction": p, "confidence": {keys[0]: s, keys[1]: 1 - s}} for p, s in zip(prediction, scores, strict=True)
    ]
    data = Dataset.from_rows([{"input": i, "expected": t} for i, t in enumerate(truth)])
    run = Runner(MemoryStore()).run(lambda i: outputs[i], data)
    evaluation = Evaluator().evaluate(run, {"it": Prediction(type=type)})
    assert evaluation.table("it")["confidence"].to_pylist() == [0.9, 0.6, 0.7, 0.8, 0.95]
    table = Aggregator().aggregate([evaluation], [Measure("it", RocAuc(label=labels[0]))]).table()
    expected = sk.roc_auc_score([t == labels[0] for t in truth], scores)
    assert table["value"].to_pylist() == [expected]
    by_class = {labels[0]: scores, labels[1]: 1 - np.array(scores)}
    arrays = evaluate(truth, prediction, scores=by_class, metrics=["roc_auc", "log_loss", "brier"])
    assert arrays["roc_auc"].value == expected
    saved = arrays.save(MemoryStore(), "saved").aggregation.table().to_pylist()
    assert [row["value"] for row in saved] == [row.value for row in arrays.rows]


@pytest.mark.parametrize(
    ("confidence", "why"),
    [({"cat": "high"}, "the score of 'cat' is the text 'high', not a number"), ({"cat": math.inf}, "finite")],
)
def test_scores_that_are_no_numbers_cost_their_row(confidence: Any, why: str) -> None:
    with pytest.raises(DataError, match=why):
        Prediction().score({"prediction": "cat", "confidence": confidence}, "cat")


def test_labels_of_scores_are_of_the_type_of_the_prediction() -> None:
    with pytest.raises(DataError, match="the label 'cat', which is not an integer"):
        Prediction(type="integer").score({"prediction": 1, "confidence": {"cat": 1}}, 1)
    with pytest.raises(SpecError, match="'truth' has no class '1'; it has a"):
        evaluate(["a"], ["a"], scores={1: [0.5]}, metrics="roc_auc")
    with pytest.raises(SpecError, match="give either scores or confidence"):
        evaluate(["a"], ["a"], scores={"a": [0.5]}, confidence=[0.5], metrics="roc_auc")
    with pytest.raises(DataError, match="score of 'a' has 2"):
        evaluate(["a"], ["a"], scores={"a": [0.5, 0.5]}, metrics="roc_auc")
    with pytest.raises(DataError, match=r"row 0: .*score of 'a'.* is infinite"):
        evaluate(["a"], ["a"], scores={"a": [math.inf]}, metrics="roc_auc")


# Curves


def test_curves_are_those_of_scikit_learn() -> None:
    truth, scores = drawn(200)
    positive, score = truth == "a", scores[:, 0]
    curve = roc_curve(positive, score, points=10_000)
    x, y, threshold = sk.roc_curve(positive, score, drop_intermediate=False)
    np.testing.assert_allclose(np.stack([curve.x, curve.y, curve.threshold]), np.stack([x, y, threshold]))
    curve = precision_recall_curve(positive, score, points=10_000)
    precision, recall, threshold = sk.precision_recall_curve(positive, score)
    np.testing.assert_allclose(curve.y, precision[:-1][::-1])
    np.testing.assert_allclose(curve.x, recall[:-1][::-1])
    np.testing.assert_allclose(curve.threshold, threshold[::-1])


def test_a_thinned_curve_keeps_its_ends_and_its_area() -> None:
    generator = np.random.default_rng(0)
    positive = generator.random(20_000) < 0.1
    score = generator.normal(positive, 1)
    curve = roc_curve(positive, score, points=200)
    assert len(curve.x) <= 202
    assert (curve.x[0], curve.y[0], curve.x[-1], curve.y[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(sk.roc_auc_score(positive, score), abs=1e-3)


def test_a_curve_of_one_kind_is_refused() -> None:
    with pytest.raises(DataError, match="needs positive and negative rows"):
        roc_curve(np.array([True, True]), np.array([0.1, 0.2]))
    with pytest.raises(DataError, match="needs positive rows"):
        precision_recall_curve(np.array([False]), np.array([0.1]))


def test_a_calibration_curve_has_the_bins_of_scikit_learn() -> None:
    from sklearn.calibration import calibration_curve as reference

    truth, scores = drawn(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        share, mean = reference(truth == "a", scores[:, 0], n_bins=7)
    metric = ExpectedCalibrationError(scored_by="positive", label="a", bins=7, confidence=None)
    rows = {"probability": scores[:, 0], "right": (truth == "a").astype(np.float64)}
    [[shown]] = metric.curves(metric.state(rows, np.zeros(300, np.int64), n_groups=1))
    np.testing.assert_allclose(np.stack([shown.points.x, shown.points.y]), np.stack([mean, share]))
