"""Scoring: what is judged, under which definition, and everything that is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from support.thinned import thinned

from evaluand.aggregation.groups import summarise
from evaluand.core.errors import DataError
from evaluand.evaluation.prediction_table import scored_table
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.areas import RocAuc
from evaluand.metrics.class_rates import FBeta
from evaluand.metrics.errors import RootMeanSquaredError
from evaluand.predictions import DEFINITIONS, STANDARD_METRICS, CriterionResult, Rule, judge, rule_of
from evaluand.predictions.problem.aligned import AlignedTables
from evaluand.predictions.problem.problem import Criterion
from evaluand.predictions.problem.sides import Side, match_keys

N = 60


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def judged(truth: pa.Table, predictions: pa.Table, *criteria: Criterion | str, **options: Any) -> list[CriterionResult]:
    chosen = [Criterion(metric=each) if isinstance(each, str) else each for each in criteria]
    return judge(truth, predictions, chosen, **{"index": ["id"], "targets": ["y"], **options})


def faults(truth: pa.Table, predictions: pa.Table, *criteria: Criterion | str, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(DataError) as caught:
        judged(truth, predictions, *criteria, **options)
    assert all(fault.message for fault in caught.value.faults)
    return [(fault.code, fault.where) for fault in caught.value.faults]


TRUTH = table(id=[1, 2, 3], y=["a", "b", "a"])


# What is judged


def test_a_result_has_value_interval_definition_and_kind() -> None:
    [found] = judged(TRUTH, table(id=[3, 1, 2], y=["a", "a", "a"]), "f1_macro")
    assert (found.value, found.target, found.row.n, found.row.metric) == (pytest.approx(0.4), "y", 3, "f_beta")
    assert found.definition == "standard"
    assert found.row.signature.startswith("f_beta v2 ")
    assert "average=macro" in found.row.signature
    assert found.row.reason is not None or found.row.low <= found.value <= found.row.high
    [alone] = judged(TRUTH, table(id=[3, 1, 2], y=["a", "a", "a"]), "accuracy", confidence_of_interval=None)
    assert math.isnan(alone.row.low)
    assert math.isnan(alone.row.high)


def test_criteria_and_targets_are_judged_in_their_order() -> None:
    truth = table(id=[1, 2], y=[1.0, 2.0], z=[1.0, 4.0])
    predictions = table(id=[2, 1], z=[4.0, 3.0], y=[2.0, 2.0])
    together = Criterion(metric="mean_squared_error", jointly=True)
    found = judged(truth, predictions, "mean_absolute_error", together, targets=["y", "z"])
    assert [(each.target, each.value, each.row.n) for each in found] == [("y", 0.5, 2), ("z", 1.0, 2), (None, 1.25, 2)]


def test_the_roots_of_several_targets_are_pooled_or_averaged() -> None:
    truth = table(id=[1, 2], y=[0.0, 0.0], z=[0.0, 0.0])
    predictions = table(id=[1, 2], y=[1.0, 1.0], z=[3.0, 3.0])
    pooled = Criterion(metric="root_mean_squared_error", jointly=True)
    found = judged(truth, predictions, pooled, "root_mean_squared_error_mean", targets=["y", "z"])
    assert [each.value for each in found] == [pytest.approx(math.sqrt(5)), 2.0]
    [mean] = judged(truth, predictions, pooled, targets=["y", "z"], definition="sklearn")
    assert mean.value == 2.0


def test_targets_of_different_types_are_judged_together() -> None:
    truth = table(id=[1, 2], y=["a", "b"], z=[1, 2])
    predictions = table(id=[1, 2], y=["a", "b"], z=[1, 1])
    [found] = judged(truth, predictions, Criterion(metric="accuracy", jointly=True), targets=["y", "z"])
    assert (found.value, found.target) == (0.75, None)


@pytest.mark.parametrize("name", ["pos", "False"])
def test_an_index_may_be_of_several_columns(name: str) -> None:
    truth = table(id=[1, 1, 2], part=["x", name, "x"], y=[1, 2, 3])
    predictions = table(id=[2, 1, 1], part=["x", name, "x"], y=[3, 2, 9])
    [found] = judged(truth, predictions, "accuracy", index=["id", "part"])
    assert found.value == pytest.approx(2 / 3)
    odd = table(id=[2, 1, 2], part=["x", name, name], y=[3, 2, 9])
    assert faults(truth, odd, "accuracy", index=["id", "part"]) == [
        ("extra_row", "predictions row 3, column id, part"),
        ("missing_row", "predictions, column id, part"),
    ]


def test_several_labels_are_a_set_where_the_truth_has_some_or_it_is_said() -> None:
    truth = table(id=[1, 1, 2], y=["a", "b", "c"])
    [found] = judged(truth, table(id=[2, 1, 1], y=["c", "b", "a"]), "accuracy")
    assert found.value == 1.0
    twice = table(id=[1, 2, 3, 3], y=["a", "b", "a", "b"])
    assert faults(TRUTH, twice, "accuracy") == [("duplicate_row", "predictions row 4, column id")]
    assert judged(TRUTH, twice, "accuracy", several=True)[0].value == pytest.approx(2 / 3)
    assert faults(truth, truth, "accuracy", several=False) == [
        ("duplicate_row", "truth row 2, column id"),
        ("duplicate_row", "predictions row 2, column id"),
    ]


def test_an_empty_cell_of_sets_is_no_label_and_stands_alone() -> None:
    truth = table(id=[1, 1, 2], y=["a", "b", "c"])
    [found] = judged(truth, table(id=[1, 1, 2], y=["a", "b", ""]), "f1_micro")
    assert found.value == pytest.approx(0.8)
    beside = table(id=[1, 1, 2], y=["a", "", "c"])
    assert faults(truth, beside, "f1_micro") == [("empty_value", "predictions row 2, column y")]
    twice = table(id=[1, 2, 1], y=["a", "c", "a"])
    assert faults(truth, twice, "f1_micro") == [("duplicate_label", "predictions row 3, column y")]


def test_labels_that_are_named_are_averaged_over_also_where_none_occurs() -> None:
    predictions = table(id=[1, 2, 3], y=["a", "b", "b"])
    macro = Criterion(metric="f1_macro")
    expected = sk.f1_score(["a", "b", "a"], ["a", "b", "b"], labels=["a", "b", "c"], average="macro", zero_division=0)
    for labels in (["a", "b", "c"], {"y": ["a", "b", "c"]}):
        assert judged(TRUTH, predictions, macro, labels=labels)[0].value == pytest.approx(expected)


def test_a_label_that_the_truth_never_has_is_noted() -> None:
    [found] = judged(TRUTH, table(id=[1, 2, 3], y=["a", "b", "x"]), "f1_macro")
    [note] = found.notes
    assert (note.code, note.where, "'x'" in note.message) == ("unknown_label", "predictions, column y", True)


def test_whole_numbers_written_as_real_ones_are_labels_and_index() -> None:
    truth = table(id=[1.0, 2.0], y=[1, 0])
    [found] = judged(truth, table(id=[2, 1], y=[0.0, 1.0]), "accuracy")
    assert found.value == 1.0


@pytest.mark.parametrize(
    ("labels", "positive", "expected"),
    [
        ([1, 0, 1], None, 1.0),
        ([1, 0, 1], "0", 1.0),
        (["1", "0", "1"], None, 1.0),
        ([True, False, True], None, 1.0),
        ([True, False, True], "false", 1.0),
        ([5, 7, 5], "7", 1.0),
    ],
)
def test_the_positive_label_has_the_type_of_the_labels(
    labels: list[Any], positive: str | None, expected: float
) -> None:
    same = table(id=[1, 2, 3], y=labels)
    assert judged(same, same, Criterion(metric="f1", positive=positive))[0].value == expected


def test_a_kind_of_metric_judges_under_its_own_name() -> None:
    predictions = table(id=[1, 2, 3], y=["a", "b", "b"])
    kinds = ("cohen_kappa", "balanced_accuracy", "matthews_correlation", Criterion(metric="specificity", positive="a"))
    found = judged(TRUTH, predictions, *kinds)
    assert [round(each.value, 3) for each in found] == [0.4, 0.75, 0.5, 1.0]
    numbers = table(id=[1, 2, 3], y=[1.0, 2.0, 4.0])
    assert judged(numbers, numbers, "spearman", "max_error")[1].value == 0.0


def test_what_is_undefined_is_no_number_and_has_a_reason() -> None:
    truth, predictions = table(id=[1, 2], y=["a", "b"]), table(id=[1, 2], y=["b", "b"])
    criterion = Criterion(metric="precision", positive="a")
    [found] = judged(truth, predictions, criterion)
    assert math.isnan(found.value)
    assert found.row.reason == "nothing was predicted with the label 'a'"
    assert judged(truth, predictions, criterion, definition="3.1.1")[0].value == 0.0
    constant = table(id=[1, 2], y=[1.0, 1.0])
    assert math.isnan(judged(constant, constant, "r_squared")[0].value)
    assert judged(constant, constant, "r_squared", definition="core-2022")[0].value == 1.0


# Class scores and rankings


def scored(*rows: tuple[int, str, float], name: str = "Confidence") -> pa.Table:
    ids, labels, confidence = zip(*rows, strict=True)
    return pa.table({"id": ids, "y": labels, name: confidence})


def test_a_confidence_is_a_score_in_whatever_case_and_absent_ones_are_0() -> None:
    truth = table(id=[1, 2, 3, 4], y=["a", "b", "c", "a"])
    rows = [(1, "a", 0.7), (1, "b", 0.3), (2, "b", 0.9), (3, "c", 0.5), (3, "a", 0.5), (4, "a", 0.2), (4, "b", 0.8)]
    matrix = np.zeros((4, 3))
    for example, label, sure in rows:
        matrix[example - 1, "abc".index(label)] = sure
    expected = sk.roc_auc_score(np.eye(3)[[0, 1, 2, 0]], matrix, average="macro")
    for name in ("confidence", "CONFIDENCE"):
        assert judged(truth, scored(*rows, name=name), "roc_auc_macro")[0].value == pytest.approx(expected)


@pytest.mark.parametrize("labels", [["p", "n"], [1, 0], [True, False]])
def test_areas_of_two_classes_need_scores_that_say_the_same(labels: list[Any]) -> None:
    random = np.random.default_rng(1)
    score, chosen = random.random(20).round(1), random.integers(0, 2, 20)
    truth = table(id=range(20), y=[labels[each] for each in chosen])
    ids, names = np.repeat(np.arange(20), 2), [labels[1], labels[0]] * 20
    both = table(id=ids, y=names, confidence=np.stack([score, 1 - score], 1).ravel())
    assert judged(truth, both, "roc_auc")[0].value == pytest.approx(sk.roc_auc_score(chosen, score))
    alike = table(id=ids, y=names, confidence=np.stack([score**3, 1 - score], 1).ravel())  # another sum, one order
    assert judged(truth, alike, "roc_auc")[0].value == pytest.approx(sk.roc_auc_score(chosen, score))
    other = table(id=ids, y=names, confidence=random.random(40))
    assert faults(truth, other, "roc_auc") == [("cannot_be_scored", "roc_auc of y")]


def test_areas_need_a_confidence_but_where_the_definition_takes_labels() -> None:
    predictions = table(id=[1, 2, 3], y=["a", "a", "a"])
    assert faults(TRUTH, predictions, "roc_auc") == [("needs_confidence", "predictions")]
    assert judged(TRUTH, predictions, "roc_auc", definition="nist")[0].value == 0.5
    assert judged(TRUTH, predictions, "roc_auc", definition="3.1.1")[0].value == 0.5


def test_rankings_are_reported_by_rank_and_not_by_row() -> None:
    truth = table(id=[1, 2], y=["a", "b"])
    predictions = table(id=[2, 1, 2, 1], y=["b", "x", "x", "a"], rank=[1, 3, 2, 2])
    found = judged(truth, predictions, "mean_reciprocal_rank", Criterion(metric="hits_at_k", k=1), "ndcg")
    assert [each.value for each in found] == pytest.approx([0.75, 0.5, (1 + 1 / math.log2(3)) / 2])


def test_ranks_that_are_none_or_occur_twice_are_refused() -> None:
    truth = table(id=[1], y=["a"])
    assert faults(truth, table(id=[1], y=["a"]), "mean_reciprocal_rank") == [("missing_column", "predictions")]
    assert faults(truth, table(id=[1], y=["a"], rank=[0.5]), "mean_reciprocal_rank") == [
        ("wrong_type", "predictions row 1, column rank")
    ]
    assert faults(truth, table(id=[1, 1], y=["a", "b"], rank=[1, 1]), "mean_reciprocal_rank") == [
        ("duplicate_row", "predictions row 2, column rank")
    ]
    assert faults(truth, table(id=[1, 1], y=["a", "a"], rank=[1, 2]), "mean_reciprocal_rank") == [
        ("duplicate_label", "predictions row 2, column y")
    ]


# Detection


def test_boxes_are_judged_by_image_and_intervals_leave_images_out() -> None:
    random = np.random.default_rng(0)
    corners = [f"{x},{y},{x + 10},{y + 10}" for x, y in random.integers(0, 500, (40, 2))]
    truth = table(d3mIndex=range(40), image=np.repeat(np.arange(20), 2), box=corners)
    found = ["1,1,2,2" if place % 4 == 0 else corner for place, corner in enumerate(corners)]
    sure = random.permutation(40) / 40
    predictions = table(d3mIndex=range(40), image=np.repeat(np.arange(20), 2), box=found, confidence=sure)
    criterion = Criterion(metric="object_detection_average_precision")
    options: dict[str, Any] = {"index": ["image"], "targets": ["box"]}
    [judgement] = judged(truth, predictions, criterion, **options)
    assert judgement.row.low < judgement.value < judgement.row.high
    assert judgement.row.n == 20
    none = judged(truth, predictions.slice(0, 0), criterion, **options)[0]
    assert none.value == 0.0
    lists = pa.array([[float(each) for each in box.split(",")] for box in found])
    again = predictions.set_column(2, "box", lists)
    assert judged(truth, again, criterion, **options)[0].value == judgement.value


def test_without_confidence_the_published_definition_takes_the_order_of_the_file_and_has_no_interval() -> None:
    truth = table(image=["a", "b"], box=["0,0,9,9", "0,0,9,9"])
    predictions = table(image=["b", "a", "b"], box=["50,50,59,59", "0,0,9,9", "0,0,9,9"])
    criterion = Criterion(metric="object_detection_average_precision")
    options: dict[str, Any] = {"index": ["image"], "targets": ["box"], "definition": "3.1.1"}
    first = judged(truth, predictions, criterion, **options)[0]
    last = judged(truth, predictions.take(pa.array([1, 2, 0])), criterion, **options)[0]
    assert (first.value, last.value) == (pytest.approx(2 / 3), 1.0)
    assert math.isnan(first.row.low)
    assert first.row.reason == "no interval: detections of one confidence count in the order of the file"


@pytest.mark.parametrize(
    ("box", "code"),
    [("1,2,3", "wrong_type"), ("x", "wrong_type"), ("", "empty_value"), ("1,2,1e200,4", "not_finite")],
)
def test_boxes_that_are_none_are_refused_with_their_row(box: str, code: str) -> None:
    truth = table(image=["a", "b"], box=["0,0,9,9", "0,0,9,9"])
    criterion = Criterion(metric="object_detection_average_precision")
    found = faults(truth, table(image=["a", "b"], box=["0,0,9,9", box]), criterion, index=["image"], targets=["box"])
    assert found == [(code, "predictions row 2, column box")]


# Definitions


def test_every_definition_has_metrics_and_only_standard_ones_and_kinds_that_exist() -> None:
    for rules in DEFINITIONS.values():
        assert rules
        assert set(rules) <= set(STANDARD_METRICS)
    for metric in STANDARD_METRICS:
        for definition in DEFINITIONS:
            rule = rule_of(metric, definition)
            assert isinstance(rule, Rule) or rule[0] == "not_applicable"


@pytest.mark.parametrize(
    ("metric", "definition", "code"),
    [
        ("accuracy", "3.1", "definition_unknown"),
        ("accuracy", "coco", "not_applicable"),
        ("hits_at_k", "3.1.1", "not_applicable"),
        ("root_mean_squared_error_mean", "core-2022", "not_applicable"),
        ("acuracy", None, "not_applicable"),
        ("quantile", None, "not_applicable"),
    ],
)
def test_a_definition_without_the_metric_is_refused(metric: str, definition: str | None, code: str) -> None:
    [(found, _)] = faults(TRUTH, TRUTH, metric, definition=definition)
    assert found == code


@pytest.mark.parametrize(
    ("criterion", "definition", "code"),
    [
        (Criterion(metric="f1"), None, "needs_positive"),
        (Criterion(metric="f1", positive="x"), None, "needs_positive"),
        (Criterion(metric="f1"), "core-2022", "needs_positive"),
        (Criterion(metric="hits_at_k"), None, "cannot_be_scored"),
        (Criterion(metric="precision_at_top_k"), "core-2022", "cannot_be_scored"),
        (Criterion(metric="jaccard_similarity", positive="a"), "3.1.1", "not_applicable"),
        (Criterion(metric="accuracy", k=3), None, "not_applicable"),
    ],
)
def test_what_a_criterion_lacks_or_has_too_much_is_reported(
    criterion: Criterion, definition: str | None, code: str
) -> None:
    [(found, _)] = faults(TRUTH, TRUTH, criterion, definition=definition)
    assert found == code


def test_a_definition_that_judges_each_target_by_itself_judges_no_several_together() -> None:
    both, together = TRUTH.append_column("z", TRUTH["y"]), Criterion(metric="accuracy", jointly=True)
    assert faults(both, both, together, targets=["y", "z"], definition="3.1.1") == [("not_applicable", "accuracy")]
    assert judged(TRUTH, TRUTH, together, definition="3.1.1")[0].value == 1.0


def test_three_classes_are_too_many_for_metrics_of_two() -> None:
    three = table(id=[1, 2, 3], y=["a", "b", "c"])
    assert faults(three, three, Criterion(metric="recall", positive="a")) == [("not_applicable", "recall of y")]
    full = scored(*((i, label, 0.5) for i in (1, 2, 3) for label in "abc"))
    assert faults(three, full, "roc_auc") == [("not_applicable", "roc_auc of y")]


# Refusals


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        (
            table(id=[1, 2, 3], z=["a"] * 3),
            [("missing_column", "predictions, column y"), ("unexpected_column", "predictions, column z")],
        ),
        (table(y=["a"] * 3), [("missing_column", "predictions, column id")]),
        (pa.table([[1], ["a"], ["b"]], names=["id", "y", "y"]), [("twice_column", "predictions, column y")]),
        (
            pa.table([[1], ["a"], [1.0], [1.0]], names=["id", "y", "confidence", "Confidence"]),
            [("twice_column", "predictions, column Confidence")],
        ),
        (TRUTH.slice(0, 0), [("no_rows", "predictions")]),
        (table(id=["1", "2", "3"], y=["a"] * 3), [("index_type", "predictions, column id")]),
        (table(id=[0.5, 2.0, 3.0], y=["a"] * 3), [("index_type", "predictions, column id")]),
        (
            table(id=[1, None, 3], y=["a"] * 3),
            [("empty_index", "predictions row 2, column id")],
        ),
        (
            table(id=[1, 2, 4], y=["a"] * 3),
            [("extra_row", "predictions row 3, column id"), ("missing_row", "predictions, column id")],
        ),
        (table(id=[1, 2, 3, 2], y=["a"] * 4), [("duplicate_row", "predictions row 4, column id")]),
        (
            table(id=[1, 2, 3], y=["a", None, ""]),
            [("empty_value", "predictions row 2, column y"), ("empty_value", "predictions row 3, column y")],
        ),
        (table(id=[1, 2, 3], y=[1, 2, 3]), [("wrong_type", "predictions, column y")]),
        (table(id=[1, 2, 3], y=[0.5, 2, 3]), [("wrong_type", "predictions, column y")]),
        (
            table(id=[1, 2, 9], y=["a", None, "b"]),
            [
                ("extra_row", "predictions row 3, column id"),
                ("missing_row", "predictions, column id"),
                ("empty_value", "predictions row 2, column y"),
            ],
        ),
    ],
)
def test_all_that_is_wrong_is_reported_at_once(predictions: pa.Table, expected: list[tuple[str, str]]) -> None:
    assert faults(TRUTH, predictions, "accuracy") == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1.0, math.nan, math.inf], [("not_finite", 2), ("not_finite", 3)]),
        (["1.5", "x", ""], [("wrong_type", 2), ("empty_value", 3)]),
        ([1.0, None, 2.0], [("empty_value", 2)]),
    ],
)
def test_numbers_that_are_none_are_reported_by_row(cells: list[Any], expected: list[tuple[str, int]]) -> None:
    truth = table(id=[1, 2, 3], y=[1.0, 2.0, 3.0])
    found = faults(truth, table(id=[1, 2, 3], y=cells), "mean_squared_error")
    assert found == [(code, f"predictions row {row}, column y") for code, row in expected]


def test_bools_are_no_numbers_and_numbers_written_as_text_are() -> None:
    truth = table(id=[1, 2], y=[1.0, 2.0])
    assert faults(truth, table(id=[1, 2], y=[True, False]), "mean_squared_error") == [
        ("wrong_type", "predictions, column y")
    ]
    assert judged(truth, table(id=[1, 2], y=["1.0", "4"]), "mean_squared_error")[0].value == 2.0


# Order, shards, scikit-learn


def drawn(seed: int, kind: str) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(seed)
    ids = random.permutation(1000)[:N]
    if kind == "numbers":
        truth = random.normal(size=N)
        return table(id=ids, y=truth), table(id=ids, y=truth + random.normal(size=N))
    if kind == "scores":
        labels = np.array(["a", "b", "c"])
        made = random.dirichlet(np.ones(3), N).round(2)
        truth = labels[(random.random(N)[:, None] > made.cumsum(1)).sum(1).clip(0, 2)]
        rows = table(id=np.repeat(ids, 3), y=np.tile(labels, N), confidence=made.ravel())
        return table(id=ids, y=truth), rows
    if kind == "ranking":
        answers = np.array([random.permutation(list("abcd"))[:3] for _ in range(N)])
        rows = table(id=np.repeat(ids, 3), y=answers.ravel(), rank=np.tile([1, 2, 3], N))
        return table(id=ids, y=random.choice(list("abcd"), N)), rows
    if kind == "sets":
        sides = []
        for _ in range(2):
            there = random.random((N, 4)) < 0.4
            there[~there.any(axis=1), 0] = True
            row, label = np.nonzero(there)
            sides.append(table(id=ids[row], y=np.array(list("abcd"))[label]))
        return sides[0], sides[1]
    names = np.array(["a", "b"] if kind == "two" else ["a", "b", "c", "d"])
    truth = random.choice(names, N)
    return table(id=ids, y=truth), table(id=ids, y=np.where(random.random(N) < 0.6, truth, random.choice(names, N)))


CRITERIA: dict[str, list[Criterion]] = {
    "two": [Criterion(metric=name, positive="a") for name in ("precision", "recall", "f1", "jaccard_similarity")],
    "many": [
        Criterion(metric=name)
        for name in ("accuracy", "f1_micro", "f1_macro", "hamming_loss", "normalized_mutual_information")
    ],
    "sets": [Criterion(metric=name) for name in ("accuracy", "f1_micro", "f1_macro", "hamming_loss")],
    "numbers": [
        Criterion(metric=name)
        for name in ("mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "r_squared")
    ],
    "scores": [Criterion(metric=name) for name in ("roc_auc_micro", "roc_auc_macro")],
    "ranking": [Criterion(metric="mean_reciprocal_rank"), Criterion(metric="hits_at_k", k=2)],
}


@pytest.mark.parametrize("orders", [8, pytest.param(100, marks=pytest.mark.slow)])
@thinned("kind", CRITERIA, every=3)
def test_no_order_of_rows_changes_anything(kind: str, orders: int) -> None:
    truth, predictions = drawn(3, kind)
    expected = judged(truth, predictions, *CRITERIA[kind])
    random = np.random.default_rng(4)
    for _ in range(orders):
        one, other = (each.take(pa.array(random.permutation(each.num_rows))) for each in (truth, predictions))
        found = judged(one, other, *CRITERIA[kind])
        assert [e.row[4:7] for e in found] == [e.row[4:7] for e in expected]


def columns_of(truth: pa.Table, predictions: pa.Table, reads: Any) -> pa.Table:
    sides = Side("truth", truth), Side("predictions", predictions)
    keys, _ = match_keys(*sides, ["id"])
    assert keys is not None
    case = AlignedTables(*sides, keys, reads == "sets", by_class=reads == "scores")
    assert not case.read(["y"], {reads})
    return scored_table([case.columns("y", reads)], None)


@pytest.mark.parametrize(
    ("kind", "reads", "metric"),
    [
        ("many", "labels", Accuracy()),
        ("many", "labels", FBeta(average="macro")),
        ("sets", "sets", FBeta(average="micro")),
        ("numbers", "numbers", RootMeanSquaredError()),
        ("scores", "scores", RocAuc(absent=0.0)),
    ],
)
def test_shards_merge_to_the_whole(kind: str, reads: Any, metric: Any) -> None:
    truth, predictions = drawn(5, kind)
    whole = columns_of(truth, predictions, reads)
    [expected] = summarise([whole], [metric])
    [halves] = summarise([whole.slice(0, 25), whole.slice(25)], [metric])
    many = summarise([whole.slice(start, 7) for start in range(0, N, 7)], [metric])[0]
    assert halves.value == pytest.approx(expected.value, abs=1e-12)
    assert many.value == pytest.approx(expected.value, abs=1e-12)
    assert many.low == pytest.approx(expected.low, abs=1e-12)


def test_more_rows_than_are_summarised_at_once_have_one_value() -> None:
    random = np.random.default_rng(0)
    truth, predicted = random.integers(0, 5, (2, 300_000))
    sides = (table(id=np.arange(300_000), y=each) for each in (truth, predicted))
    found = judged(*sides, "accuracy", "f1_macro", confidence_of_interval=None)
    assert found[0].value == np.mean(truth == predicted)
    assert found[1].value == pytest.approx(sk.f1_score(truth, predicted, average="macro"), abs=1e-12)


Reference = Callable[[Any, Any], float]
OF_TWO: dict[str, Reference] = {
    "precision": lambda t, p: sk.precision_score(t, p, pos_label="a"),
    "recall": lambda t, p: sk.recall_score(t, p, pos_label="a"),
    "f1": lambda t, p: sk.f1_score(t, p, pos_label="a"),
    "jaccard_similarity": lambda t, p: sk.jaccard_score(t, p, pos_label="a"),
}
OF_MANY: dict[str, Reference] = {
    "accuracy": sk.accuracy_score,
    "f1_micro": lambda t, p: sk.f1_score(t, p, average="micro"),
    "f1_macro": lambda t, p: sk.f1_score(t, p, average="macro"),
    "hamming_loss": sk.hamming_loss,
    "normalized_mutual_information": sk.normalized_mutual_info_score,
}
OF_NUMBERS: dict[str, Reference] = {
    "mean_squared_error": sk.mean_squared_error,
    "root_mean_squared_error": lambda t, p: math.sqrt(sk.mean_squared_error(t, p)),
    "mean_absolute_error": sk.mean_absolute_error,
    "r_squared": sk.r2_score,
}


@thinned("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))], every=4)
@pytest.mark.parametrize("definition", [None, "3.1.1", "sklearn"])
@pytest.mark.parametrize(
    ("kind", "references"),
    [("two", OF_TWO), ("two", OF_MANY), ("many", OF_MANY), ("numbers", OF_NUMBERS)],
    ids=["one class", "two classes", "many classes", "numbers"],
)
def test_random_data_have_the_values_of_scikit_learn(
    kind: str, references: dict[str, Reference], definition: str | None, seed: int
) -> None:
    truth, predictions = drawn(seed, kind)
    positive = "a" if references is OF_TWO else None
    for name, reference in references.items():
        if name == "jaccard_similarity" and definition == "3.1.1":
            continue  # the accuracy there, and without a positive label
        criterion = Criterion(metric=name, positive=positive)
        [found] = judged(truth, predictions, criterion, definition=definition, confidence_of_interval=None)
        expected = reference(truth["y"].to_pylist(), predictions["y"].to_pylist())
        assert found.value == pytest.approx(expected, rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(i, marks=pytest.mark.slow) for i in range(2, 5))])
def test_random_sets_and_scores_have_the_values_of_scikit_learn(seed: int) -> None:
    truth, predictions = drawn(seed, "sets")
    matrices = []
    ids = sorted(set(truth["id"].to_pylist()))
    for side in (truth, predictions):
        held = set(zip(side["id"].to_pylist(), side["y"].to_pylist(), strict=True))
        matrices.append(np.array([[(one, label) in held for label in "abcd"] for one in ids], int))
    for name, reference in OF_MANY.items():
        if name != "normalized_mutual_information":
            [found] = judged(truth, predictions, name, confidence_of_interval=None)
            assert found.value == pytest.approx(reference(*matrices), abs=1e-12), name
    truth, predictions = drawn(seed, "scores")
    matrix = np.asarray(predictions["confidence"]).reshape(N, 3)
    known = np.array([[label == each for each in "abc"] for label in truth["y"].to_pylist()], int)
    for average in ("micro", "macro"):
        [found] = judged(truth, predictions, f"roc_auc_{average}", confidence_of_interval=None)
        assert found.value == pytest.approx(sk.roc_auc_score(known, matrix, average=average), abs=1e-12)


# Class scores beside labels, and sets of labels


BY_CLASS = table(id=[1, 1, 2, 2, 3, 3], y=["a", "b", "b", "a", "a", "b"], confidence=[0.9, 0.1, 0.6, 0.4, 0.5, 0.5])


def test_of_class_scores_labels_are_those_of_greatest_confidence_whatever_the_order_of_rows() -> None:
    shuffled = BY_CLASS.take([5, 2, 0, 4, 3, 1])
    for predictions in (BY_CLASS, shuffled):
        area, accuracy, one = judged(
            table(id=[1, 2, 3], y=["a", "b", "b"]),
            predictions,
            "roc_auc",
            "accuracy",
            Criterion(metric="f1", positive="b"),
        )
        assert (area.value, accuracy.value, one.value) == (1.0, pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_rows_for_each_class_are_no_labels_where_no_metric_asks_for_scores() -> None:
    assert faults(TRUTH, BY_CLASS, "accuracy")[0][0] == "duplicate_row"


def test_calibration_reads_the_surest_label_or_the_one_there_is() -> None:
    [of_classes] = judged(TRUTH, BY_CLASS, "expected_calibration_error")
    one = table(id=[1, 2, 3], y=["a", "b", "a"], confidence=[0.9, 0.6, 0.5])
    [of_labels] = judged(TRUTH, one, "expected_calibration_error")
    assert of_classes.value == of_labels.value == pytest.approx((0.1 + 0.4 + 0.5) / 3)
    assert faults(TRUTH, TRUTH, "expected_calibration_error")[0][0] == "needs_confidence"


def test_a_metric_of_one_label_is_refused_in_one_sentence_where_examples_have_several() -> None:
    truth = table(id=[1, 1, 2], y=["a", "b", "a"])
    assert faults(truth, truth, "f1_macro", "jaccard_similarity", several=True) == [
        ("not_applicable", "jaccard_similarity")
    ]


@pytest.mark.parametrize("metric", ["f_beta", "jaccard", "specificity", "false_positive_rate", "false_negative_rate"])
def test_kinds_of_one_class_judge_sets_by_the_label_that_is_named(metric: str) -> None:
    truth, predictions = table(id=[1, 1, 2], y=["a", "b", "a"]), table(id=[1, 2, 2], y=["a", "a", "b"])
    [found] = judged(truth, predictions, Criterion(metric=metric, positive="b"), several=True)
    assert found.value == (1.0 if metric.startswith("false") else 0.0)
    assert faults(truth, predictions, metric, several=True) == [("needs_positive", f"{metric} of y")]


def test_boxes_are_judged_by_the_registered_kind_too() -> None:
    boxes = table(id=[1, 2], y=["0,0,2,2", "1,1,3,3"])
    [found] = judged(boxes, boxes.append_column("confidence", [[0.5, 0.6]]), "mean_average_precision")
    assert found.value == 1.0


def test_labels_written_otherwise_are_reported_with_their_row_and_what_may_be_meant() -> None:
    with pytest.raises(DataError) as caught:
        judged(TRUTH, table(id=[1, 2, 3], y=["a", "B", "B"]), Criterion(metric="f1", positive="b"))
    [fault] = caught.value.faults
    assert (fault.code, fault.where) == ("unknown_label", "predictions row 2, column y")
    assert fault.message == "is 'B', but the truth has only 'a' and 'b' (did you mean 'b'?); 1 more row has it"


def test_one_row_per_example_is_no_table_of_scores_and_it_is_reported_why() -> None:
    with pytest.raises(DataError, match="a class without a row has the score 0"):
        judged(TRUTH, table(id=[1, 2, 3], y=["b"] * 3, confidence=[0.1, 0.3, 0.2]), "roc_auc")


def test_a_definition_that_takes_areas_of_labels_notes_that_confidences_are_not_read() -> None:
    [found] = judged(TRUTH, TRUTH.append_column("confidence", [[0.9, 0.9, 0.1]]), "roc_auc", definition="nist")
    assert (found.value, [note.code for note in found.notes]) == (1.0, ["confidence_not_read"])
