"""Metrics of labels, sets of labels and clusters: against scikit-learn and by hand, undefined values and bounds."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings, strategies as st
from support.effort import FEW_EXAMPLES
from support.thinned import thinned

from evaluand import (
    Aggregator,
    DataError,
    Dataset,
    Evaluator,
    Measure,
    MemoryStore,
    Runner,
    SpecError,
    compare,
    evaluate,
    task,
)
from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core import registry
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.base.metric import Metric


def of(kind: str, **parameters: Any) -> Any:
    return registry.find("metrics", kind)(**parameters)


def table(truth: Any, prediction: Any, **columns: Any) -> pa.Table:
    """Rows without a prediction have failed."""
    listed = [None if one is None else one for one in prediction]
    status = ["failed" if one is None else "scored" for one in listed]
    return pa.table(
        {"_index_": range(len(listed)), "status": status, "truth": truth, "prediction": prediction, **columns}
    )


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


def value(truth: Any, prediction: Any, kind: str, **parameters: Any) -> float:
    return one(table(truth, prediction), of(kind, confidence=None, **parameters)).value


RNG = np.random.default_rng(1)
N = 300
TRUTH = RNG.choice(list("abcd"), N)
PREDICTION = np.where(RNG.random(N) < 0.6, TRUTH, RNG.choice(list("abcde"), N))
WEIGHT = RNG.random(N)
LABELS = {
    "text": (TRUTH, PREDICTION),
    "integers": tuple(np.array(["abcde".index(label) for label in column]) for column in (TRUTH, PREDICTION)),
}
RATIOS = {
    "f_beta": sk.f1_score,
    "precision": sk.precision_score,
    "recall": sk.recall_score,
    "jaccard": sk.jaccard_score,
}


# Against scikit-learn


@thinned("labels", LABELS, every=3)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("kind", RATIOS)
def test_averages_over_classes_agree_with_scikit_learn(kind: str, average: Any, labels: str) -> None:
    truth, prediction = LABELS[labels]
    shard = table(truth, prediction, _weight_=WEIGHT)
    some = [truth[0], prediction[1]] if truth[0] != prediction[1] else [truth[0]]
    for restricted, zero in itertools.product((None, some), (0, 1)):
        metric = of(
            kind, average=average, weighted=True, labels=restricted and [x.item() for x in some], zero_division=zero
        )
        wanted = RATIOS[kind](
            truth, prediction, average=average, sample_weight=WEIGHT, labels=restricted, zero_division=zero
        )
        assert one(shard, metric).value == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("kind", RATIOS)
def test_one_class_agrees_with_scikit_learn(kind: str) -> None:
    for label in "abcde":
        wanted = RATIOS[kind](label == TRUTH, label == PREDICTION, zero_division=0)
        assert value(TRUTH, PREDICTION, kind, label=label, zero_division=0) == pytest.approx(wanted, abs=1e-12)


def test_beta_agrees_with_scikit_learn() -> None:
    for beta in (0, 0.5, 2.0):
        wanted = sk.fbeta_score(TRUTH, PREDICTION, beta=beta, average="macro")
        assert value(TRUTH, PREDICTION, "f_beta", beta=beta, average="macro") == pytest.approx(wanted, abs=1e-12)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "parameters", "reference"),
    [
        ("balanced_accuracy", {}, sk.balanced_accuracy_score),
        ("balanced_accuracy", {"adjusted": True}, lambda *a, **k: sk.balanced_accuracy_score(*a, adjusted=True, **k)),
        ("matthews_correlation", {}, sk.matthews_corrcoef),
        ("cohen_kappa", {}, sk.cohen_kappa_score),
        ("hamming_loss", {}, sk.hamming_loss),
    ],
)
def test_metrics_of_labels_agree_with_scikit_learn(kind: str, parameters: Any, reference: Any, weighted: bool) -> None:
    shard = table(TRUTH, PREDICTION, _weight_=WEIGHT)
    wanted = reference(TRUTH, PREDICTION, sample_weight=WEIGHT if weighted else None)
    assert one(shard, of(kind, weighted=weighted, **parameters)).value == pytest.approx(wanted, abs=1e-12)


CLUSTERS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


@settings(max_examples=FEW_EXAMPLES)  # of each every metric
@given(pairs=CLUSTERS)
def test_metrics_of_clusters_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    truth, prediction = zip(*pairs, strict=True)
    references = [
        ("normalized_mutual_information", {"mean": m}, sk.normalized_mutual_info_score, {"average_method": m})
        for m in ("arithmetic", "geometric", "min", "max")
    ]
    references += [
        ("adjusted_rand", {}, sk.adjusted_rand_score, {}),
        ("homogeneity", {}, sk.homogeneity_score, {}),
        ("completeness", {}, sk.completeness_score, {}),
        ("v_measure", {"beta": 2}, sk.v_measure_score, {"beta": 2}),
    ]
    for kind, parameters, reference, options in references:
        assert value(truth, prediction, kind, **parameters) == pytest.approx(
            reference(truth, prediction, **options), abs=1e-12
        )


def label_sets(rng: np.random.Generator) -> list[list[str]]:
    return [[str(x) for x in rng.permutation([label for label in "abcde" if rng.random() < 0.4])] for _ in range(N)]


def indicator(rows: Sequence[Sequence[str]]) -> np.ndarray:
    return np.array([[label in row for label in "abcde"] for row in rows], int)


SETS = label_sets(RNG)
GIVEN = [mine if RNG.random() < 0.4 else other for mine, other in zip(SETS, label_sets(RNG), strict=True)]
OF_SETS = pa.list_(pa.string())


@pytest.mark.parametrize("zero", [0, 1])
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", "example"])
@thinned("kind", RATIOS, every=3)
def test_sets_of_labels_agree_with_scikit_learn(kind: str, average: str, zero: int) -> None:
    shard = table(pa.array(SETS, OF_SETS), pa.array(GIVEN, OF_SETS), _weight_=WEIGHT)
    named: Any = {"example": "samples"}.get(average, average)
    wanted = RATIOS[kind](indicator(SETS), indicator(GIVEN), average=named, sample_weight=WEIGHT, zero_division=zero)
    found = one(shard, of(kind, average=average, weighted=True, zero_division=zero))
    assert found.value == pytest.approx(wanted, abs=1e-12)
    assert found.low < found.value < found.high


def test_the_losses_of_sets_agree_with_scikit_learn() -> None:
    result = evaluate(SETS, GIVEN, metrics=["accuracy", "hamming_loss"])
    assert result["hamming_loss"].value == pytest.approx(sk.hamming_loss(indicator(SETS), indicator(GIVEN)), abs=1e-12)
    assert result["accuracy"].value == pytest.approx(sk.accuracy_score(indicator(SETS), indicator(GIVEN)))


# By hand


def test_rates_of_one_class_by_hand() -> None:
    truth, prediction = [1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0]
    names = ("specificity", "false_positive_rate", "false_negative_rate", "precision", "recall", "jaccard")
    found = [value(truth, prediction, name) for name in names]
    assert found == pytest.approx([4 / 5, 1 / 5, 1 / 3, 2 / 3, 2 / 3, 2 / 4])
    row = one(table(truth, prediction), of("selection_rate"))
    assert (row.value, row.data) == (3 / 8, {"selected": 3, "n": 8})
    assert one(table(truth, prediction), of("selection_rate", column="truth", label=0)).value == 5 / 8


def test_one_hot_counts_every_error_twice() -> None:
    assert value(["a", "b", "c"], ["b", "b", "c"], "hamming_loss", one_hot=True) == pytest.approx(2 / 9)


def test_what_each_class_comes_to_stands_beside_the_value() -> None:
    row = one(table(["a", "a", "b", "c"], ["a", "b", "b", "b"]), of("precision", average="macro"))
    assert row.value == pytest.approx((1 + 1 / 3) / 2)
    assert row.data == {
        "n": 4,
        "rests_on": 3.0,
        "average": "macro",
        "n_classes": 3,
        "classes": [
            {"label": "a", "value": 1, "expected": 2, "predicted": 1, "right": 1},
            {"label": "b", "value": pytest.approx(1 / 3), "expected": 1, "predicted": 3, "right": 1},
            {"label": "c", "value": None, "expected": 1, "predicted": 0, "right": 0},
        ],
    }


def test_a_confusion_matrix_has_its_classes_in_order() -> None:
    row = one(table(["b", "a", "a", "b"], ["a", "a", "a", "b"]), of("confusion_matrix"))
    assert (row.value, row.low != row.low) == (4, True)
    assert row.data == {"n": 4, "classes": ["a", "b"], "cells": [[0, 0, 2], [1, 0, 1], [1, 1, 1]]}
    json.dumps(row.data)


def test_a_confusion_matrix_of_many_classes_keeps_the_commonest() -> None:
    labels = [*range(150), *range(100)]
    data = one(table(labels, labels), of("confusion_matrix")).data
    assert data["classes"] == [*range(100), None]
    assert data["cells"][-1] == [100, 100, 50]


# Which class


@pytest.mark.parametrize(
    ("truth", "label"), [([True, False], True), ([1, 0], 1), ([0, 0], 1)], ids=["bools", "numbers", "no positive"]
)
def test_bools_and_numbers_of_0_and_1_have_a_positive_class(truth: Any, label: Any) -> None:
    prediction = [truth[0], truth[0]]
    for kind in ("f_beta", "jaccard", "specificity", "selection_rate"):
        chosen, found = one(table(truth, prediction), of(kind, label=label)), one(table(truth, prediction), of(kind))
        assert str(found.value) == str(chosen.value)


def test_of_two_other_classes_one_must_be_chosen() -> None:
    for labels, name in ((["no", "yes"], "'no' and 'yes'"), ([1, 2], "1 and 2")):
        for kind in ("f_beta", "jaccard", "selection_rate"):
            with pytest.raises(
                SpecError, match=f"{kind} needs a positive class, and the labels are {name}: choose it, as in"
            ):
                one(table(labels, labels), of(kind))
    assert value(["no", "yes"], ["no", "no"], "f_beta", label="no") == pytest.approx(2 / 3)


def test_of_more_classes_the_mean_is_taken_and_of_sets_all_labels_together() -> None:
    row = one(table(["a", "b", "c"], ["a", "b", "b"]), of("f_beta"))
    assert (row.value, row.data["average"]) == (pytest.approx((1 + 2 / 3 + 0) / 3), "macro")
    row = one(table(pa.array([["a", "b"], []], OF_SETS), pa.array([["a"], ["b"]], OF_SETS)), of("f_beta"))
    assert (row.value, row.data["average"]) == (pytest.approx(2 / 4), "micro")


STRAY = ["f_beta", "precision", "recall", "jaccard", "specificity", "false_positive_rate", "false_negative_rate"]


@pytest.mark.parametrize("kind", STRAY)
@pytest.mark.parametrize("truth", [[0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0]], ids=["both", "one"])
def test_a_class_that_is_only_predicted_is_a_wrong_answer_and_changes_no_definition(kind: str, truth: Any) -> None:
    with_stray = one(table(truth, [0, 1, 2, 0, 1, 2]), of(kind))
    other = one(table(truth, [0, 1, 0, 0, 1, 0]), of(kind))  # the stray class is one of those that are not 1
    assert str(with_stray.value) == str(other.value)
    assert with_stray.signature == other.signature == of(kind, label=1).signature


def test_of_two_other_classes_one_must_be_chosen_whatever_else_is_predicted() -> None:
    with pytest.raises(SpecError, match="f_beta needs a positive class, and the labels are 'a' and 'b': choose it"):
        one(table(["a", "b"], ["a", "c"]), of("f_beta"))
    with pytest.raises(
        SpecError, match="f_beta needs a positive class, and the labels are 'a': choose it, as in label='a'"
    ):
        one(table(["a", "a"], ["b", "c"]), of("f_beta"))


@pytest.mark.parametrize("kind", STRAY)
@pytest.mark.parametrize(
    ("truth", "prediction", "parameters", "reported"),
    [
        ([True, False], [True, True], {}, {"label": True}),
        ([1, 0], [1, 1], {}, {"label": 1}),
        (["a", "b", "c"], ["a", "b", "b"], {}, {"average": "macro"}),
        (["a", "b"], ["a", "b"], {"labels": ["a", "b"]}, {"average": "macro", "labels": ["a", "b"]}),
        ([["a"], []], [["a"], ["b"]], {}, {"average": "micro"}),
        ([1, 2], [1, 2], {"label": 2}, {"label": 2}),
        (["a", "b"], ["a", "b"], {"average": "weighted"}, {"average": "weighted"}),
    ],
)
def test_the_signature_of_a_value_says_which_definition_it_is(
    kind: str, truth: Any, prediction: Any, parameters: Any, reported: Any
) -> None:
    assert one(table(truth, prediction), of(kind, **parameters)).signature == of(kind, **reported).signature


@pytest.mark.parametrize("missing", [True, False])
def test_all_rows_decide_together_and_no_shard_group_or_failed_row_for_itself(missing: bool) -> None:
    truth, prediction = [*"aabbcc"], [*"aabba", None if missing else "c"]
    shard = table(truth, prediction, by=[*"xxyyzz"], target=["t"] * 6)
    metric = of("f_beta")
    whole = summarise([shard], [metric], [(), ("by",)])
    cut = summarise([shard.slice(start, 1) for start in range(6)], [metric], [(), ("by",)])
    assert str(whole) == str(cut)
    assert {row.signature for row in whole} == {of("f_beta", average="macro").signature}
    assert str(whole) == str(summarise([shard], [of("f_beta", average="macro")], [(), ("by",)]))


def test_a_class_that_only_a_failed_row_was_to_have_decides_too() -> None:
    row = one(table(["a", "b", "c"], ["a", "b", None]), of("f_beta"))
    assert row.signature == of("f_beta", average="macro").signature
    assert row.value == 1


def test_where_no_truth_is_known_nothing_is_decided() -> None:
    shard = table(pa.array([None, None], pa.string()), [None, None])
    row = one(shard, of("f_beta"))
    assert (row.signature, row.worst, row.best) == (of("f_beta").signature, 0, 1)


def test_targets_that_are_averaged_have_one_definition() -> None:
    shard = table([*"abca"], [*"abcb"], target=[*"tttu"])
    rows = summarise([shard], [of("f_beta", over_targets="mean")])
    assert str(rows) == str(summarise([shard], [of("f_beta", average="macro", over_targets="mean")]))


@pytest.mark.parametrize(("column", "label"), [([True, False], True), ([1, 0], 1), ([0, 0], 1)])
def test_the_class_that_is_selected_stands_in_the_signature(column: Any, label: Any) -> None:
    row = one(table(column, column), of("selection_rate"))
    assert row.signature == of("selection_rate", label=label).signature


def test_a_selected_class_is_asked_for_by_the_labels_of_all_shards() -> None:
    shard = table([0, 1, 2, 1], [0, 1, 2, 1])
    for size in (1, 4):
        with pytest.raises(SpecError, match="selection_rate needs a positive class, and the labels are 0, 1 and 2"):
            summarise([shard.slice(start, size) for start in range(0, 4, size)], [of("selection_rate")])


def test_disparities_and_comparisons_tell_which_class_they_are_about() -> None:
    found = evaluate([1, 0, 1, 0], [1, 1, 1, 2], by={"g": [*"xxyy"]}, metrics=["recall"], disparities="difference")
    assert found.disparities[0].signature == of("recall", label=1).signature
    store, metric = MemoryStore(), of("selection_rate")
    data = Dataset.from_rows([{"input": i, "expected": i % 2} for i in range(6)])
    tasks = [task(lambda input: input % 2, name="half", version="1"), task(lambda input: 1, name="all", version="1")]
    runs = [Runner(store).run(each, data) for each in tasks]
    sides = [Evaluator(store).evaluate(run, {"prediction": Prediction(type="integer")}) for run in runs]
    [pair] = compare(*sides, metrics=Measure("prediction", metric)).pairs
    assert pair["signature"] == of("selection_rate", label=1).signature.rpartition(" interval=")[0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"label": "a", "labels": ["a"]}, "label='a' selects one class; remove it or labels="),
        ({"label": 0.5}, "label=0.5 is not a label; give text, an integer or a bool"),
        ({"labels": []}, "must be a list of labels"),
        ({"labels": ["a", "a"]}, "must be distinct and of one type"),
        ({"labels": [1, True]}, "must be distinct and of one type"),
        ({"zero_division": 0.5}, "zero_division=0.5 must be 0 or 1, or be omitted"),
        ({"average": "samples"}, "give one of micro, macro, weighted, example"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(parameters: Any, message: str) -> None:
    for kind in ("recall", "jaccard"):
        with pytest.raises(SpecError, match=message):
            of(kind, **parameters)


def test_a_label_of_another_type_is_refused() -> None:
    with pytest.raises(SpecError, match="recall: label='1' has another type than the labels in the data, such as 1"):
        value([1, 2], [1, 2], "recall", label="1")


def test_a_label_that_is_false_is_reported_in_the_signature() -> None:
    assert "label=false" in of("recall", label=False).signature
    assert "weighted" not in of("recall", label=False).signature


def test_sets_are_refused_where_each_row_needs_one_label() -> None:
    sets = pa.array([["a"]], OF_SETS)
    for kind in ("cohen_kappa", "matthews_correlation", "balanced_accuracy", "adjusted_rand", "confusion_matrix"):
        with pytest.raises(SpecError, match=f"{kind} reads one label per row"):
            one(table(sets, sets), of(kind))


# Undefined


@pytest.mark.parametrize(
    ("kind", "parameters", "reason"),
    [
        ("precision", {"label": "b"}, "nothing was predicted with the label 'b'"),
        ("recall", {"label": "b"}, "nothing was expected with the label 'b'"),
        ("f_beta", {"label": "b"}, "nothing was expected or predicted with the label 'b'"),
        ("specificity", {"label": "a"}, "no row expects another label than 'a'"),
        ("matthews_correlation", {}, "all truths, or all predictions, are one label"),
        ("cohen_kappa", {}, "all truths and predictions are one label, so chance agrees everywhere"),
        ("balanced_accuracy", {"adjusted": True}, "all truths are one label, so guessing cannot be wrong"),
    ],
)
def test_what_is_undefined_is_no_zero_and_says_why(kind: str, parameters: Any, reason: str) -> None:
    row = one(table(["a", "a"], ["a", "a"]), of(kind, **parameters))
    assert (math.isnan(row.value), math.isnan(row.low), row.reason) == (True, True, reason)


def test_an_undefined_ratio_is_what_zero_division_says() -> None:
    for zero in (0, 1):
        assert value(["a"], ["a"], "precision", label="b", zero_division=zero) == zero
    # of the classes a, b and c, c is never predicted
    truth, prediction = ["a", "b", "c"], ["a", "b", "a"]
    found = [value(truth, prediction, "precision", average="macro", zero_division=zero) for zero in (None, 0, 1)]
    assert found == pytest.approx([(1 / 2 + 1) / 2, (1 / 2 + 1) / 3, (1 / 2 + 1 + 1) / 3])


# Rows without a score


LETTERS = st.sampled_from("abc")
BOUNDED = [
    *(
        of(kind, average=average, labels=list("abc"), zero_division=0, confidence=None)
        for kind in RATIOS
        for average in ("micro", "macro", "weighted", "example")
    ),
    *(
        of(kind, label="a", zero_division=0, confidence=None)
        for kind in (*RATIOS, "specificity", "false_positive_rate", "false_negative_rate")
    ),
    of("balanced_accuracy", confidence=None),
    of("hamming_loss", confidence=None),
]


def within(known: pa.Table, unknown: pa.Table) -> None:
    for full, row in zip(summarise([known], BOUNDED), summarise([unknown], BOUNDED), strict=True):
        low, high = sorted((row.worst, row.best))
        assert low - 1e-12 <= full.value <= high + 1e-12, row.signature


@settings(max_examples=FEW_EXAMPLES)  # of each every metric
@given(
    scored=st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=4),
    missing=st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=2),
)
def test_whatever_the_missing_rows_are_the_value_lies_within_the_bounds(scored: list[Any], missing: list[Any]) -> None:
    truth, prediction = zip(*scored, *missing, strict=True)
    within(table(truth, prediction), table(truth, [*prediction[: len(scored)], *[None] * len(missing)]))


@settings(max_examples=FEW_EXAMPLES)  # of each every metric
@given(
    scored=st.lists(st.tuples(LETTERS, LETTERS, LETTERS), min_size=1, max_size=5),
    missing=st.lists(st.tuples(LETTERS, st.sampled_from("abcde"), LETTERS), min_size=1, max_size=2),
)
def test_a_missing_row_may_be_predicted_as_a_class_that_no_other_row_has(scored: list[Any], missing: list[Any]) -> None:
    truth, prediction, group = zip(*scored, *missing, strict=True)
    metrics = [
        of(kind, average="macro", zero_division=zero, confidence=None)
        for kind in (*RATIOS, "specificity", "false_positive_rate", "false_negative_rate")
        for zero in (None, 0, 1)
    ]
    known, unknown = (
        summarise([table(truth, said).append_column("g", pa.array(group))], metrics, [(), ("g",)])
        for said in (prediction, [*prediction[: len(scored)], *[None] * len(missing)])
    )
    for full, row in zip(known, unknown, strict=True):
        low, high = sorted((row.worst, row.best))
        assert math.isnan(full.value) or math.isnan(low) or low - 1e-12 <= full.value <= high + 1e-12, (row, full)


def test_the_bounds_of_a_mean_over_classes_allow_for_one_more_class_per_missing_row() -> None:
    truth, prediction = ["a", "a", "b", "b", "a"], ["a", "a", "b", "b", None]
    row = one(table(truth, prediction), of("f_beta", average="macro"))
    assert (row.worst, row.value, row.best) == pytest.approx(((0.8 + 1 + 0) / 3, 1, 1))
    row = one(table(truth, prediction), of("recall", average="macro"))  # undefined for a class that is never expected
    assert (row.worst, row.value, row.best) == pytest.approx(((2 / 3 + 1) / 2, 1, 1))
    row = one(table(truth, prediction), of("f_beta", average="macro", labels=["a", "b"]))
    assert (row.worst, row.value, row.best) == pytest.approx((0.8, 1, 1))
    row = one(table(truth, prediction), of("specificity", average="macro"))  # may be better for one more class
    assert (row.worst, row.best) == (0, 1)


@given(
    scored=st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=5),
    missing=st.lists(LETTERS, min_size=1, max_size=3),
    chosen=st.booleans(),
)
def test_the_lowest_mean_of_f1_over_classes_is_reached(scored: list[Any], missing: list[str], chosen: bool) -> None:
    truth, prediction = zip(*scored, strict=True)
    labels = sorted({*truth, *missing}) if chosen else None
    metric = of("f_beta", average="macro", confidence=None, labels=labels, zero_division=0)
    every = [*truth, *missing]
    row = one(table(every, [*prediction, *[None] * len(missing)]), metric)
    wrong = [[label for label in "abcdefgh" if label != own] for own in missing]
    reached = min(one(table(every, [*prediction, *said]), metric).value for said in itertools.product(*wrong))
    assert row.worst == pytest.approx(reached, abs=1e-12)


def test_classes_of_other_groups_are_no_classes_of_a_group() -> None:
    shard = table(["a", "a", "b", "c", "d"], ["a", None, "b", "c", "d"]).append_column("g", pa.array(list("xxyyy")))
    x, y = (row for row in summarise([shard], [of("f_beta", average="macro")], [("g",)]))
    assert (x.worst, x.value, x.best) == pytest.approx((2 / 3 / 2, 1, 1))
    assert (y.worst, y.best) == (1, 1)


def test_bounds_of_one_class_are_reached() -> None:
    shard = table(["a", "a", "b", "a", "b"], ["a", "b", "b", None, None])
    row = one(shard, of("f_beta", label="a"))
    assert (row.worst, row.value, row.best) == pytest.approx((2 / (2 + 2 + 1), 2 / 3, 4 / 5))
    row = one(shard, of("false_positive_rate", label="a"))
    assert (row.worst, row.value, row.best) == pytest.approx((1 / 2, 0, 0))


def test_where_a_truth_is_not_known_the_bounds_are_those_of_the_range() -> None:
    row = one(table(["a", "b", None], ["a", "b", None]), of("f_beta", average="macro"))
    assert (row.worst, row.value, row.best) == (0, 1, 1)
    with pytest.raises(DataError, match="_index_ 2: has no score and nothing tells what was expected"):
        one(table(["a", "b", None], ["a", "b", None]), of("f_beta", average="macro", missing="wrong"))


def test_a_missing_row_can_count_as_a_wrong_answer_that_is_no_class() -> None:
    truth, prediction = ["a", "a", "b", "b"], ["a", "a", "b", None]
    found = [value(truth, prediction, kind, average="macro", missing="wrong") for kind in ("precision", "recall")]
    assert found == pytest.approx([1, 3 / 4])
    assert value(truth, prediction, "f_beta", average="micro", missing="wrong") == pytest.approx(3 / 4)
    assert value(truth, prediction, "hamming_loss", missing="wrong") == pytest.approx(1 / 4)


def test_kappa_has_no_bounds_since_a_right_row_can_lower_it() -> None:
    row = one(table(["a", "b", "a"], ["a", "b", None]), of("cohen_kappa"))
    assert (row.value, math.isnan(row.worst), math.isnan(row.best)) == (1, True, True)


# On the path


@task(version="1")
def moods(song: str) -> Any:
    if song == "noise":
        raise RuntimeError("too loud")
    return {"hymn": ["calm", "sad"], "march": ["loud"], "hum": []}[song]


def test_sets_of_labels_are_stored_graded_and_summarised() -> None:
    songs = {"hymn": ["sad", "calm"], "march": ["loud", "glad"], "hum": [], "noise": ["loud"]}
    data = Dataset.from_rows([{"input": song, "expected": labels} for song, labels in songs.items()])
    evaluation = Evaluator().evaluate(Runner().run(moods, data), {"p": Prediction(type="labels", prediction_key=None)})
    rows = evaluation.table("p").select(["truth", "value"]).to_pylist()
    assert rows == [
        {"truth": ["calm", "sad"], "value": 1.0},
        {"truth": ["glad", "loud"], "value": 0.0},
        {"truth": [], "value": 1.0},
        {"truth": ["loud"], "value": None},
    ]
    measures = [Measure("p", of("f_beta")), Measure("p", of("recall", missing="wrong")), Measure("p", of("accuracy"))]
    found = Aggregator().aggregate([evaluation], measures).table().select(["value", "worst", "best"]).to_pylist()
    assert [row["value"] for row in found] == pytest.approx([6 / 7, 3 / 5, 2 / 3])
    assert found[0]["best"] == pytest.approx(8 / 9)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["a", "b", "a"], "the prediction has the label 'a' twice; a set has each label once"),
        (["a", 1], "the prediction's label 1 is the integer 1, not text"),
        ("a", "the prediction is the text 'a', not a list of labels"),
    ],
)
def test_what_is_no_set_of_labels_costs_the_row_its_score(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Prediction(type="labels").score(value, ["a"])


def test_arrays_take_kinds_by_name() -> None:
    names = ["accuracy", "f_beta", "matthews_correlation", "adjusted_rand", "hamming_loss"]
    truth, prediction = ["a", "b", "c", "a"], ["a", "b", "b", "a"]
    for t, p in (
        (truth, prediction),
        ([True, False, True, True], [True, True, True, False]),
        ([1, 0, 2], [1.0, 0.0, 0.0]),
    ):
        result = evaluate(t, p, metrics=names)
        assert result["matthews_correlation"].value == pytest.approx(sk.matthews_corrcoef(t, np.array(p, type(t[0]))))
        assert [row.metric for row in result.rows] == names


def test_lists_in_which_something_occurs_twice_are_no_sets() -> None:
    assert evaluate([["a", "b"]], [["b", "a"]])["accuracy"].value == 1
    assert evaluate([["a", "b", "a"]], [["b", "a", "a"]])["accuracy"].value == 0


def test_sets_may_all_be_missing_on_one_side() -> None:
    assert evaluate([None, None], [[], ["a"]])["accuracy"].n_abstained == 2


def test_a_missing_prediction_may_bring_in_a_class_of_its_own() -> None:
    truth, prediction = ["A"] * 10 + ["B"] * 10, [None] + ["A"] * 9 + ["B"] * 10
    metric = of("f_beta", average="macro")
    bounds = evaluate(truth, prediction, metrics=metric)["f_beta"]
    stray = evaluate(truth, ["Z", *prediction[1:]], metrics=metric)["f_beta"]
    assert bounds.worst <= stray.value <= bounds.best
    closed = evaluate(truth, prediction, metrics=of("f_beta", average="macro", labels=["A", "B"]))["f_beta"]
    assert closed.worst > 0.9


def test_perfect_numbers_have_no_interval_without_a_width() -> None:
    x = np.arange(3.0)
    row = evaluate(x, x, metrics="r_squared")["r_squared"]
    assert (row.value, row.low != row.low) == (1.0, True)
    assert row.reason is not None
