"""Areas of sets of labels, against scikit-learn's on indicator matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core.errors import SpecError
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.areas import AveragePrecision, RocAuc
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.metrics.probabilities import Brier, LogLoss
from evaluand.predictions.evaluating import evaluate
from evaluand.store.store import MemoryStore

SCORES = pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())]))
REFERENCES: dict[str, tuple[type[Metric], Any]] = {
    "roc_auc": (RocAuc, sk.roc_auc_score),
    "average_precision": (AveragePrecision, sk.average_precision_score),
}
AVERAGES = ("macro", "weighted", "micro", "samples")


def drawn(seed: int, n: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An indicator matrix in which each row and each label has both values, scores with ties, and weights."""
    generator = np.random.default_rng(seed)
    n, k = n or int(generator.integers(4, 40)), int(generator.integers(2, 6))
    member = generator.random((n, k)) < generator.uniform(0.2, 0.8)
    for place in range(max(n, k)):
        member[place % n, place % k] = True
        member[place % n, (place + 1) % k] = False
    member[0, :] = np.arange(k) % 2 == 0
    member[1, :] = ~member[0]
    for row in range(n):
        if member[row].all() or not member[row].any():
            member[row, 0] ^= True
    score = generator.integers(0, 8, (n, k)) / 8 if seed % 2 else generator.normal(size=(n, k))
    return member, score, generator.exponential(size=n)


def table(member: np.ndarray, score: np.ndarray, **columns: Any) -> pa.Table:
    names = np.array([f"l{place}" for place in range(member.shape[1])])
    n = len(member)
    scores = [[{"label": x, "score": y} for x, y in zip(names, row, strict=True) if y == y] for row in score]
    fixed = {"_index_": np.arange(n), "status": ["scored"] * n}
    fixed |= {"truth": pa.array([names[row].tolist() for row in member], pa.list_(pa.string()))}
    return pa.table({**fixed, "scores": pa.array(scores, SCORES), **columns})


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


def check(seed: int, averages: Sequence[str] = AVERAGES) -> None:
    member, score, weight = drawn(seed)
    for kind, reference in REFERENCES.values():
        for average in averages:
            metric = kind(average=average, weighted=bool(seed % 3))  # type: ignore[call-arg]
            weights = weight if seed % 3 else None
            row = one(table(member, score, _weight_=weight), metric)
            expected = reference(member.astype(int), score, average=average, sample_weight=weights)
            assert row.value == pytest.approx(expected, abs=1e-12), (seed, metric.signature)
            assert math.isnan(row.low) or row.low <= row.value <= row.high


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(i, marks=pytest.mark.slow) for i in range(3, 12))])
def test_values_are_those_of_the_reference(seed: int) -> None:
    check(seed, [AVERAGES[seed // 2 % 4]])


@pytest.mark.slow
def test_two_thousand_random_cases_have_the_values_of_the_reference() -> None:
    for seed in range(2000):
        check(seed, [AVERAGES[seed // 2 % 4]])


@pytest.mark.parametrize("average", AVERAGES)
def test_shards_with_other_labels_merge_to_the_whole(average: Any) -> None:
    member, score, _ = drawn(5, 60)
    score[:30, 1] = np.nan
    member[:30, 1] = False
    member[~member.any(axis=1), 2] = True
    whole = table(member, score, part=np.arange(60) % 2)
    for metric in (RocAuc(average=average, absent=-9.0), AveragePrecision(average=average, absent=-9.0)):
        parts = [whole.slice(0, 20), whole.slice(20, 0), whole.slice(20)]
        for a, b in zip(summarise(parts, [metric]), summarise([whole], [metric]), strict=True):
            assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), abs=1e-12, nan_ok=True)
        filled = np.where(np.isnan(score), -9.0, score)
        assert one(whole, metric).value == one(table(member, filled), metric).value


def test_one_label_of_sets_is_a_class() -> None:
    member, score, _ = drawn(6, 30)
    assert one(table(member, score), RocAuc(label="l1")).value == pytest.approx(
        sk.roc_auc_score(member[:, 1], score[:, 1]), abs=1e-12
    )
    confidence = table(member, score, confidence=score[:, 1])
    assert one(confidence, RocAuc(label="l1", scored_by="positive")).value == pytest.approx(
        sk.roc_auc_score(member[:, 1], score[:, 1]), abs=1e-12
    )


@pytest.mark.parametrize("average", AVERAGES)
def test_predicted_sets_replace_scores(average: Any) -> None:
    member, score, _ = drawn(8, 40)
    predicted = score > np.median(score)
    names = np.array([f"l{place}" for place in range(member.shape[1])])
    sets = pa.array([names[row].tolist() for row in predicted], pa.list_(pa.string()))
    row = one(table(member, score, prediction=sets), RocAuc(average=average, scored_by="labels"))
    expected = sk.roc_auc_score(member.astype(int), predicted.astype(float), average=average)
    assert row.value == pytest.approx(expected, abs=1e-12)


def test_the_mean_over_rows_of_single_labels_is_that_of_sets_of_one() -> None:
    _, score, _ = drawn(9, 50)
    truth = np.random.default_rng(0).integers(0, score.shape[1], 50)
    sets = table(np.eye(score.shape[1], dtype=bool)[truth], score)
    single = sets.set_column(2, "truth", pa.array([f"l{code}" for code in truth]))
    for average in ("macro", "weighted", "samples"):
        rows = [one(each, RocAuc(average=average)) for each in (sets, single)]
        assert rows[0].value == pytest.approx(rows[1].value, abs=1e-12)
        assert (rows[0].low, rows[0].high) == pytest.approx((rows[1].low, rows[1].high), abs=1e-12)


@pytest.mark.parametrize(
    ("truth", "average", "why"),
    [
        ([[1, 0], [1, 0]], "macro", "all truths have 'l0'"),
        ([[0, 1], [1, 1]], "weighted", "all truths have 'l1'"),
        ([[0, 1], [0, 0]], "macro", "no truth has 'l0'"),
        ([[0, 1], [0, 0]], "samples", "1 row has no label, or all of them"),
        ([[1, 1], [0, 0]], "samples", "2 rows have no label, or all of them"),
        ([[1, 1], [1, 1]], "micro", "every truth has every label, or none has any"),
    ],
)
def test_what_is_undefined_has_a_reason_and_no_value(truth: Any, average: Any, why: str) -> None:
    row = one(table(np.array(truth, bool), np.array([[0.1, 0.2], [0.3, 0.4]])), RocAuc(average=average))
    assert math.isnan(row.value)
    assert why in str(row.reason)


def test_a_missing_score_leaves_the_value_undefined_unless_it_is_taken_for_a_number() -> None:
    member, score, _ = drawn(7, 20)
    score[3, 0] = np.nan
    for average in AVERAGES:
        row = one(table(member, score), RocAuc(average=average))
        assert math.isnan(row.value)
        assert "1 row has no score for 'l0'" in str(row.reason)


def test_metrics_of_single_labels_refuse_sets() -> None:
    shard = table(*drawn(3, 10)[:2], prediction=pa.array([["l0"]] * 10), confidence=np.full(10, 0.5))
    for metric in (LogLoss(), Brier(), ExpectedCalibrationError(), RocAuc(scored_by="predicted", label="l0")):
        with pytest.raises(SpecError, match="reads one label per row, but these rows have lists of labels"):
            one(shard, metric)


def test_arrays_and_stored_runs_have_the_same_value() -> None:
    member, score, _ = drawn(11, 25)
    names = [f"l{place}" for place in range(member.shape[1])]
    truth = [[name for name, there in zip(names, row, strict=True) if there] for row in member]
    predicted = [[name for name, x in zip(names, row, strict=True) if x > 0.5] for row in score]
    expected = sk.roc_auc_score(member.astype(int), score)
    result = evaluate(truth, predicted, metrics="roc_auc", scores=dict(zip(names, score.T, strict=True)))
    assert result["roc_auc"].value == pytest.approx(expected, abs=1e-12)
    saved = result.save(MemoryStore(), "sets")
    assert saved.aggregation.table()["value"].to_pylist() == [result["roc_auc"].value]


def test_the_scorer_stores_the_probabilities_of_sets() -> None:
    output = {"prediction": ["sad"], "probabilities": {"sad": 0.9, "calm": 0.4}}
    columns = Prediction(type="labels").score(output, ["sad", "calm"]).columns
    assert columns["scores"] == {"sad": 0.9, "calm": 0.4}
    assert (columns["confidence"], columns["confidence_of"]) == (None, None)
