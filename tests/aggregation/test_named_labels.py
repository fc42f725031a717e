"""Labels that a metric names and no row has: they are reported, since most are misspelt."""

from __future__ import annotations

import warnings

import pytest

from evaluand import (
    Aggregator,
    Dataset,
    Evaluation,
    Evaluator,
    Measure,
    Runner,
    evaluate,
    make_metric,
)
from evaluand.aggregation.metric_errors import AbsentLabel
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.areas import RocAuc
from evaluand.metrics.class_rates import FalsePositiveRate, FBeta, Recall, SelectionRate
from evaluand.store.store import MemoryStore

TRUTH = ["benign", "malignant", "malignant", "benign"]


def evaluation_of(predictions: list[str], store: MemoryStore) -> Evaluation:
    rows = [{"input": n, "expected": truth, "sex": "fm"[n % 2]} for n, truth in enumerate(TRUTH)]
    run = Runner(store).run(lambda n: predictions[n], Dataset.from_rows(rows, attributes="sex"))
    return Evaluator(store).evaluate(run, {"said": Prediction()})


def notes_of(measures: list[Measure], *systems: list[str]) -> list[str]:
    store = MemoryStore()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Aggregator().aggregate([evaluation_of(each, store) for each in systems], measures)
    assert all(each.category is AbsentLabel for each in caught)
    return [str(each.message) for each in caught]


def test_a_misspelt_label_is_reported_once_for_each_metric() -> None:
    measures = [
        Measure("said", FBeta(average="macro", labels=["benign", "malignent"]), by="sex"),
        Measure("said", Recall(label="benine"), by="sex", disparities=["difference"], criterion="equalized_odds"),
        Measure("said", FalsePositiveRate(label="benine"), "sex", ["difference"], "equalized_odds"),
        Measure("said", Recall(label="none"), where="sex == 'f'"),
    ]
    right, wrong = TRUTH, ["malignant", "benign", "malignant", "benign"]
    assert notes_of(measures, right, wrong) == [
        "f1_macro of 'said': no row has the label 'malignent' (did you mean 'malignant'?)",
        "recall of 'said': no row has the label 'benine' (did you mean 'benign'?)",
        "false_positive_rate of 'said': no row has the label 'benine' (did you mean 'benign'?)",
        "recall of 'said' where sex == 'f': no row has the label 'none'",
    ]


def test_all_absent_labels_of_a_metric_are_in_one_sentence() -> None:
    metric = FBeta(average="macro", labels=["benine", "malign", "benign"])
    [note] = notes_of([Measure("said", metric)], TRUTH)
    assert note == "f1_macro of 'said': no row has the labels 'benine', 'malign' (did you mean 'malignant'?)"


def test_a_label_that_is_only_expected_or_only_predicted_is_there() -> None:
    measures = [Measure("said", Recall(label=label)) for label in ("benign", "unsure")]
    assert notes_of(measures, ["malignant", "unsure", "malignant", "malignant"]) == []


def test_of_a_rate_of_predictions_only_they_are_spoken_of() -> None:
    [note] = notes_of([Measure("said", SelectionRate(label="benign"))], ["malignant"] * 4)
    assert note == "selection_rate of 'said': no prediction is the label 'benign'"


def test_labels_within_sets_and_labels_that_follow_from_the_data_are_no_reason_to_warn() -> None:
    sets = evaluate([["a", "b"], ["c"]], [["a"], ["c"]], metrics=[Recall(label="b")])
    flags = evaluate([False, False], [False, False], metrics=[make_metric("selection_rate")])
    assert (sets["recall"].value, flags["selection_rate"].value) == (0.0, 0.0)


def test_arrays_are_checked_as_stored_scores_are() -> None:
    with pytest.warns(AbsentLabel, match="roc_auc of 'prediction': no row has the label 'aa'"):
        result = evaluate(["a", "b"], ["a", "b"], metrics=[RocAuc(label="aa", scored_by="labels")])
    result.save(MemoryStore(), "told before")


def test_columns_are_checked_too_but_for_the_positive_class_of_which_notes_speak() -> None:
    table = {"truth": ["no", "no"], "said": ["no", "no"]}
    scores = evaluate("truth", ["said"], data=table, metrics=["recall"], label="yes")
    assert scores.results.aggregation is not None
    with pytest.warns(AbsentLabel, match="recall of 'prediction': no row has the label 'noo'"):
        evaluate("truth", ["said"], data=table, metrics=[Recall(label="noo")], label="yes")
