"""Odd cells in tables of predictions: the value that is right, or a note."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.commands import Folder

from evaluand import evaluate
from evaluand.core.errors import SpecError
from evaluand.store.tables import SHARD_ROWS
from evaluand.testing import assert_gate

Read = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


@pytest.fixture
def score(folder: Folder) -> Read:
    """The facts of `score` of a text: CSV if its first line is a header, else JSON lines."""

    def call(text: str, words: str, code: int = 0) -> dict[str, Any]:
        path = folder.path / ("rows.jsonl" if text.startswith("{") else "rows.csv")
        path.write_text(text)
        result = folder.call("score", path, *shlex.split(words), "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)  # type: ignore[no-any-return]

    return call


def lines(*rows: tuple[int, dict[str, Any]]) -> str:
    """JSON lines, each so many times."""
    return "".join(n * (json.dumps(row) + "\n") for n, row in rows)


def test_a_word_among_predicted_numbers_is_a_wrong_answer(score: Read) -> None:
    rows = lines(
        (2, {"y": 1, "p": 1.0}),
        (1, {"y": 0, "p": 0.0}),
        (1, {"y": 0, "p": "unknown"}),
    )
    found = score(rows, "--truth y --prediction p --metric accuracy")
    assert found["metrics"][0]["value"] == 0.75
    assert "1 text among 3 numbers" in "\n".join(found["notes"])


def test_a_gate_sees_the_better_system_in_spite_of_a_word(score: Read) -> None:
    rows = lines(
        (27, {"y": 1, "old": 1.0, "new": 1}),
        (18, {"y": 0, "old": 0.0, "new": 0}),
        (9, {"y": 0, "old": 0.0, "new": 1}),
        (5, {"y": 1, "old": 0.0, "new": 0}),
        (1, {"y": 1, "old": "unclear", "new": 0}),
    )
    gate = "--gate 'accuracy not worse than baseline by 0.02'"
    found = score(rows, f"--truth y --prediction old --prediction new --metric accuracy {gate}", code=3)
    assert [row["value"] for row in found["metrics"]] == [0.9, 0.75]


def test_a_recorded_confidence_that_is_na_is_missing_in_its_row(folder: Folder) -> None:
    cells = ["0,1,1,1.00", "1,1,1,0.80", "2,0,0,0.47", "3,1,0,NA"]
    (folder.path / "rows.csv").write_text("\n".join(["id,y,p,s", *cells]))
    (folder.path / "e.yaml").write_text(
        "{name: r, dataset: {path: rows.csv, id: id, expected: y}, scorers: {right: {kind: prediction, type: integer}},"
        " tasks: {mine: {kind: recorded, path: rows.csv, by: id, key: id, response: {prediction: p, confidence: s}}},"
        " metrics: [accuracy]}"
    )
    [value] = folder.json("run", folder.path / "e.yaml")["metrics"]
    assert (value["value"], value["n_scored"]) == (0.75, 4)


def test_the_first_k_of_columns_of_scores_are_those_with_the_highest_scores(score: Read) -> None:
    rows = "y,a,b,c\na,.5,.3,.2\nb,.1,.8,.1\nc,.2,.5,.3\na,.2,.7,.1\n"
    found = score(rows, "--truth y --score a=a --score b=b --score c=c --metric top_2_accuracy")
    assert found["metrics"][0]["value"] == 1.0


def test_lists_in_a_csv_file_are_sets_of_labels(score: Read) -> None:
    rows = "id,y,p\n1,\"['a', 'b']\",\"['b', 'a']\"\n2,[],['b']\n3,['c'],['c']\n"
    found = score(rows, "--truth y --prediction p --metric accuracy")
    assert found["target"]["kind"] == "multilabel"
    assert found["metrics"][0]["value"] == pytest.approx(2 / 3)
    assert "lists" in "\n".join(found["notes"])


def test_a_row_without_a_score_is_left_out_of_the_auc(score: Read) -> None:
    found = score("y,p,s\n1,1,.9\n0,0,.1\n1,1,\n0,0,.2\n", "--truth y --prediction p --score s --metric auc")
    assert found["metrics"][0]["value"] == 1.0


def test_the_characters_of_digits_have_an_error_rate(score: Read) -> None:
    found = score("n,read\n1234,1234\n5678,5578\n99871,9987\n", "--truth n --prediction read --metric cer")
    assert found["metrics"][0]["value"] == pytest.approx(2 / 13)


def test_predictions_other_than_the_class_with_the_highest_score_are_noted(score: Read) -> None:
    rows = "y,p,a,b\na,b,.9,.1\nb,a,.2,.8\nb,a,.4,.6\na,b,.8,.2\n"
    words = "--truth y --prediction p --score a=a --score b=b --metric auc --metric accuracy"
    assert "highest score" in "\n".join(score(rows, words)["notes"])


def test_integers_with_a_gap_are_integers(folder: Folder) -> None:
    Path("p.csv").write_text("id,y,m\n1,1,1.0\n2,0,0.0\n3,1,\n4,0,1.0\n")
    Path("e.yaml").write_text(
        "name: ints\ndataset: {path: p.csv, input: id, expected: y, id: id}\n"
        "tasks: {m: {kind: recorded, path: p.csv, by: id, key: id, response: m}}\n"
        "scorers: {right: {kind: prediction, type: integer}}\nmetrics: [accuracy]\n"
    )
    assert "0.667" in folder.done("run", "e.yaml")


def test_times_are_compared_as_times() -> None:
    days = pd.to_datetime(["2026-01-01", "2026-01-02"])
    found = evaluate("y", "p", data={"y": days, "p": days[[0, 0]]}, metrics="accuracy")
    assert found["accuracy"].value == 0.5


@pytest.mark.parametrize(("cell", "value"), [("x", "no number"), ("", "no number"), ("-1", "-1")])
def test_a_row_needs_its_weight(folder: Folder, cell: str, value: str) -> None:
    (folder.path / "rows.csv").write_text(f"y,p,w\n1,1,1\n0,0,2\n1,0,{cell}\n0,1,1\n")
    refused = folder.refused("score", "rows.csv", "--truth", "y", "--prediction", "p", "--weight", "w")
    assert f"rows.csv:4: the weight 'w' is {value}; give a number of 0 or more" in refused


def test_labels_are_no_matter_of_metrics_of_text(score: Read) -> None:
    rows = "y,p\nYes,yes\nNo,Nope\n"
    assert score(rows, "--truth y --prediction p --metric cer")["notes"] == []
    assert "differ in spelling only" in score(rows, "--truth y --prediction p --metric accuracy")["notes"][0]


def test_a_row_without_a_score_abstains_wherever_it_stands() -> None:
    truth, score = ([row % 3 == 0 for row in range(SHARD_ROWS)], [(row * 7 % 11) / 11 for row in range(SHARD_ROWS)])
    expected = evaluate(truth, scores=score, metrics="auc")["auc"].value
    for place in (0, SHARD_ROWS):
        labels = [*truth[:place], True, *truth[place:]]
        cells = [*score[:place], None, *score[place:]]
        row = evaluate(labels, scores=cells, metrics="auc")["auc"]
        assert (row.value, row.n_abstained) == (pytest.approx(expected, abs=1e-12), 1)


def test_a_row_that_lacks_the_score_of_one_class_has_none(score: Read) -> None:
    rows = "y,a,b,c\na,.5,.3,.2\nb,.1,.8,.1\nc,.2,.5,.3\na,.2,,.1\n"
    words = "--truth y --score a=a --score b=b --score c=c --metric top_2_accuracy --metric log_loss"
    facts = score(rows, words)
    assert [row["n_abstained"] for row in facts["metrics"]] == [1, 1]
    assert "1 row of 'scores' lacks the score of a class and counts as without scores" in facts["notes"]


def test_unstored_results_of_different_predictions_are_not_confused() -> None:
    truth = [1, 0, 1, 0] * 10
    worse, better = (evaluate(truth, said, metrics="accuracy") for said in ([0] * 40, truth))
    [evaluation, other] = [result.results.tasks[0].evaluation for result in (worse, better)]
    assert evaluation.digest != other.digest
    assert_gate(better, "accuracy better than baseline", baseline=worse)
    with pytest.raises(AssertionError):
        assert_gate(worse, "accuracy not worse than baseline by 0.01", baseline=better)


def test_true_and_false_are_no_numbers_among_words() -> None:
    with pytest.raises(SpecError, match="'y' holds text such as 'True', 'p' holds integers such as 1"):
        evaluate("y", "p", data={"y": ["True", "x", "y", "z"], "p": [1, 0, 1, 0]})


def test_amounts_of_two_currencies_are_no_numbers() -> None:
    found = evaluate("y", "p", data={"y": ["$3", "€3"], "p": ["$3", "$3"]}, metrics="accuracy", kind="multiclass")
    assert found["accuracy"].value == 0.5


def test_infinite_predictions_are_noted() -> None:
    found = evaluate([0.5, 1.5, 2.5], [0.5, 1.5, float("inf")], metrics="mae")
    assert found["mae"].n_failed == 1
    assert "'predictions' is infinite in 1 row, which has failed" in found.notes


def test_an_integer_of_many_digits_is_a_label_as_written_and_a_float_in_errors(score: Read) -> None:
    rows = "y,p\n" + "".join(f"{n},{n}\n" for n in range(1, 22)) + "22,99999999999999999999\n"
    facts = score(rows, "--truth y --prediction p --metric mae")
    assert facts["metrics"][0]["value"] == pytest.approx((1e20 - 22) / 22)
    assert "'p' has 1 integer of over 64 bits, read as the nearest float" in facts["notes"]
    facts = score(rows.replace("22,9", "99999999999999999998,9"), "--truth y --prediction p --kind multiclass")
    assert facts["metrics"][0]["value"] == pytest.approx(21 / 22)


def test_few_predictions_that_are_no_class_are_wrong_and_change_no_metric(score: Read) -> None:
    rows = "y,p,s\n" + 5 * "yes,yes,.9\nno,no,.1\n"
    words = "--truth y --prediction p --score s"
    clean, odd = (score(rows + f"yes,{said},.8\n", words) for said in ("no", "maybe"))
    assert [(row["signature"], row["value"]) for row in odd["metrics"] if row["metric"] != "matthews_correlation"] == [
        (row["signature"], row["value"]) for row in clean["metrics"] if row["metric"] != "matthews_correlation"
    ]
    assert "1 prediction, such as 'maybe', is no class of 'y' and counts as wrong" in odd["notes"]


def test_empty_texts_of_arrays_are_a_class_with_a_note() -> None:
    found = evaluate(["yes", "no", ""] * 4, ["yes", "", ""] * 4, metrics="accuracy")
    assert found["accuracy"].value == pytest.approx(2 / 3)
    assert [note for note in found.notes if "cells with ''" in note] == [
        "'truth' has 4 cells with '', counted as a class; if they mean a missing value, leave these cells empty",
        "'predictions' has 8 cells with '', counted as a class; if they mean a missing value, leave these cells empty",
    ]


def test_ids_of_recorded_outputs_are_equal_numbers_in_any_spelling(folder: Folder) -> None:
    Path("y.csv").write_text("id,y\n1,0\n2,1\n03,1\n")
    Path("p.csv").write_text("id,p\n1.0,0\n2,1\n03,0\n")
    Path("e.yaml").write_text(
        "{name: ids, dataset: {path: y.csv, id: id, expected: y}, scorers: {right: {kind: prediction, type: integer}},"
        " tasks: {m: {kind: recorded, path: p.csv, by: id, key: id, response: p}}, metrics: [accuracy]}"
    )
    [value] = folder.json("run", "e.yaml")["metrics"]
    assert (value["value"], value["n_scored"]) == (pytest.approx(2 / 3), 3)


NOON, UTC = dt.datetime(2026, 1, 1), dt.UTC


@pytest.mark.parametrize(
    ("truth", "said", "right"),
    [
        ([{"a": 1}, {"a": 2}], [{"a": 1.0}, {"a": 3}], 0.5),
        ([{"a": 2, "b": 3}, {"a": 2}], [{"a": 2}, {"a": 2.0}], 0.5),
        ([[{"a": 1}], [{"a": 2}]], [[{"a": 1.0}], []], 0.5),
        ([[1, 2], [2]], [[1.0, 2.0], [3.0]], 0.5),
        ([NOON.date(), NOON.date()], [NOON, NOON.replace(hour=1)], 0.5),
        ([1, 0], [None, None], None),
        (["1", "1"], [True, "1"], 0.5),
    ],
)
def test_values_of_several_types_are_equal_by_value(truth: list[Any], said: list[Any], right: float | None) -> None:
    row = evaluate(truth, said, metrics="accuracy")["accuracy"]
    assert (row.value, row.n_abstained) == (pytest.approx(right, nan_ok=True), 0) if right else row.n_abstained == 2


def test_times_with_and_without_a_zone_are_not_compared() -> None:
    with pytest.raises(SpecError, match="'predictions' has times with a zone, 'truth' without one"):
        evaluate([NOON, NOON], [NOON.replace(tzinfo=UTC)] * 2, metrics="accuracy")
