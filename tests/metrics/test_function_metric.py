"""Functions as metrics: called with columns, with a bootstrap interval, and failing alone."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn import metrics as sklearn_metrics

from evaluand import EvaluandWarning, MemoryStore, SpecError, evaluate
from evaluand.metrics.function import FunctionMetric

GENERATOR = np.random.default_rng(3)
TRUTH = GENERATOR.integers(0, 2, 80)
CHANCE = np.clip(0.5 * TRUTH + GENERATOR.random(80) * 0.6, 0, 1)
PREDICTED = (CHANCE > 0.5).astype(int)


def agreement(truth: Any, prediction: Any) -> float:
    return float(np.mean(truth == prediction))


def crashing(truth: Any, prediction: Any) -> float:
    return float(1 / (len(truth) - len(prediction)))


@pytest.mark.slow
def test_a_function_and_a_partial_of_scikit_learn_have_values_and_intervals() -> None:
    f2 = functools.partial(sklearn_metrics.fbeta_score, beta=2)
    result = evaluate(TRUTH, PREDICTED, metrics=["accuracy", agreement, f2])
    assert result["agreement"].value == result["accuracy"].value
    assert result["fbeta_score(beta=2)"].value == f2(TRUTH, PREDICTED)
    for name in ("agreement", "fbeta_score(beta=2)"):
        row = result[name]
        assert row.low < row.value < row.high
    assert abs(result["agreement"].low - result["accuracy"].low) < 0.03
    assert "name=agreement code=" in result["agreement"].signature
    assert "interval=bootstrap-400 95%" in result["agreement"].signature
    assert evaluate(TRUTH, PREDICTED, metrics=agreement)["agreement"] == result["agreement"]


def test_scores_of_two_classes_come_as_those_of_the_second_and_of_more_as_a_matrix() -> None:
    of_two = FunctionMetric(function=sklearn_metrics.roc_auc_score, name="roc_auc_score", confidence=None)
    result = evaluate(TRUTH, PREDICTED, metrics=of_two, scores={1: CHANCE, 0: 1 - CHANCE})
    assert result["roc_auc_score"].value == sklearn_metrics.roc_auc_score(TRUTH, CHANCE)
    truth = np.array(["c", "a", "b", "a", "c", "b"])
    matrix = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    auc = functools.partial(sklearn_metrics.roc_auc_score, multi_class="ovr")
    scores = {label: matrix[:, place] for place, label in enumerate("abc")}
    found = evaluate(truth, truth, metrics=FunctionMetric(function=auc, name="auc3", confidence=None), scores=scores)
    assert found["auc3"].value == auc(truth, matrix)


def test_clusters_are_drawn_together() -> None:
    truth, predicted = np.repeat(TRUTH[:20], 4), np.repeat(PREDICTED[:20], 4)
    alone = evaluate(truth, predicted, metrics=agreement)["agreement"]
    together = evaluate(truth, predicted, metrics=agreement, cluster=np.repeat(np.arange(20), 4))["agreement"]
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_weights_are_passed_to_a_function_that_takes_them() -> None:
    weight = GENERATOR.random(80)
    metric = sklearn_metrics.accuracy_score
    row = evaluate(TRUTH, PREDICTED, metrics=metric, weight=weight)["accuracy_score"]
    assert row.value == pytest.approx(metric(TRUTH, PREDICTED, sample_weight=weight), abs=1e-12)
    with pytest.raises(SpecError, match="agreement takes no weights; give it the parameter sample_weight"):
        evaluate(TRUTH, PREDICTED, metrics=agreement, weight=weight)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (crashing, r"crashing failed: ZeroDivisionError: division by zero \(test_function_metric.py:\d+\)"),
        (lambda truth, prediction: truth == prediction, "returned an array, not a number"),
        (lambda truth, prediction: None, "returned null, not a number"),
        (lambda truth, prediction: math.nan, "returned nan"),
    ],
)
def test_a_function_that_fails_costs_its_own_number_only(function: Any, reason: str) -> None:
    metric = FunctionMetric(function=function, name="crashing")
    result = evaluate(TRUTH, PREDICTED, metrics=["accuracy", metric])
    assert result["accuracy"].value == agreement(TRUTH, PREDICTED)
    assert math.isnan(result["crashing"].value)
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(result["crashing"].reason)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: 1.0, "takes no columns; give it parameters such as truth and prediction"),
        (max, "max shows no parameters; wrap it in a function of truth and prediction"),
        (lambda truth, prediction, price: 1.0, "the parameter 'price' of <lambda> reads the column 'price', which the"),
        (lambda confidence: 1.0, "<lambda> needs scores: give scores=…"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_in_a_sentence(function: Any, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        evaluate(TRUTH, PREDICTED, metrics=function)
    assert message in str(raised.value)


def test_code_decides_whether_stored_values_are_those_of_a_metric() -> None:
    one, other = FunctionMetric(function=agreement), FunctionMetric(function=crashing, name="agreement")
    assert one.signature != other.signature
    assert FunctionMetric(function=sklearn_metrics.f1_score, name="x").spec != (
        FunctionMetric(function=sklearn_metrics.accuracy_score, name="x").spec
    )
    store = MemoryStore()
    first, second = (evaluate(TRUTH, PREDICTED, metrics=agreement).save(store, "x").aggregation for _ in range(2))
    assert first.id == second.id
    assert first.table()["metric"].to_pylist() == ["function"]
    assert first.measures == []  # its code is not in the store


def test_code_that_is_not_pinned_is_never_reused() -> None:
    def chance(truth: Any, prediction: Any) -> float:
        return float(np.random.random())

    with pytest.warns(EvaluandWarning, match="metric chance: its code is not pinned"):
        specs = [FunctionMetric(function=chance).spec for _ in range(2)]
    assert specs[0] != specs[1]


@pytest.mark.parametrize("error", [OSError("the disk is away"), MemoryError(), pa.ArrowMemoryError("realloc failed")])
@pytest.mark.parametrize("first_failing_call", [1, 2])
def test_an_error_of_the_machine_is_no_value(error: Exception, first_failing_call: int) -> None:
    calls = itertools.count(1)

    def reads_a_file(truth: Any, prediction: Any) -> float:
        if next(calls) >= first_failing_call:
            raise error
        return agreement(truth, prediction)

    with pytest.raises(type(error)) as raised:
        evaluate(TRUTH, PREDICTED, metrics=FunctionMetric(function=reads_a_file, code_version="1"))
    assert "raised by the metric reads_a_file, so no values were stored" in raised.value.__notes__[-1]


def test_an_error_of_arrow_about_the_data_costs_the_value() -> None:
    def converts(truth: Any, prediction: Any) -> float:
        return float(pa.array(["a"]).cast(pa.int64())[0].as_py())

    result = evaluate(TRUTH, PREDICTED, metrics=FunctionMetric(function=converts, code_version="1"))
    assert math.isnan(result["converts"].value)
    assert "converts failed: ArrowInvalid" in str(result["converts"].reason)
