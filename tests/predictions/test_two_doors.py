"""The same data give the same kind, metrics, values and notes as arrays and as columns of a table."""

from __future__ import annotations

import html
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, strategies as st

from evaluand import DataError, Dataset, MemoryStore, SpecError, SystemScores, evaluate
from evaluand.testing import assert_gate

LABEL = ["yes", "no", "yes", "no", "yes", "no"]
SAID = ["yes", "no", "no", "no", "yes", "yes"]
CHANCE = [0.9, 0.2, 0.4, 0.1, 0.8, 0.7]


def values_of_arrays(result: SystemScores) -> dict[str, float | None]:
    return {row["signature"]: row["value"] for row in result.to_dict()}


def values_of_columns(scores: SystemScores) -> dict[str, float | None]:
    return {row["signature"]: row["value"] for row in scores.facts()["metrics"]}


def assert_same(truth: Any, predictions: Any, **options: Any) -> SystemScores:
    """Both doors agree about two columns, the second named as the argument is."""
    result = evaluate(truth, predictions, **options)
    scores = evaluate("truth", "predictions", data={"truth": truth, "predictions": predictions}, **options)
    assert (result.target.kind, result.target.positive) == (scores.target.kind, scores.target.positive)
    assert values_of_arrays(result) == values_of_columns(scores)
    assert result.notes == scores.notes
    return result


@pytest.mark.parametrize(
    ("truth", "predictions", "kind", "note"),
    [
        (LABEL, SAID, "binary", "'yes' counts as positive; label=… names another class"),
        ([0, 1, 1], [0, 1, 0], "binary", "'1' counts as positive"),
        ([True, False, True], [True, True, True], "binary", "'predictions' is True in every row"),
        (["a", "b", "c", "a"], ["a", "b", "a", "a"], "multiclass", ""),
        ([1, 2, 3, 1], [1, 2, 2, 1], "multiclass", "3 different integers, taken as classes; kind='numeric' takes"),
        ([1.0, 2.0, 5.0, 3.0], [1.0, 2.0, 4.0, 3.0], "multiclass", "kind='numeric' takes them as numbers"),
        (pd.Series([1, 0, 1]), pd.Series([1, None, 1]), "binary", "integers written as floats in 'predictions'"),
        ([1.0, 2.5, 4.0], [1.0, 2.0, 4.5], "numeric", ""),
        ([*range(30)], [*range(1, 31)], "numeric", "taken as numbers; kind='multiclass' takes them as classes"),
        ([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3], "numeric", "give them as scores=… instead of predictions=…"),
        ([["a"], ["a", "b"]], [["a"], ["b"]], "multilabel", ""),
        ([[1], [1, 2]], [[1], [2]], "objects", ""),
        (["1.5", "NaN", "2.5"], ["1", "2", "2.5"], "numeric", "'truth' has 1 cell with 'NaN', taken as missing"),
        (["cat", "None", "cat"], ["cat", "cat", "cat"], "binary", "1 cell with 'None', counted as a class"),
        ([1, 2, 1], ["1", "2", "2"], "binary", "'predictions' has numbers written as text"),
        ([True, False, True], [1, 1, 0], "binary", "true is taken as 1"),
        ([0, 0], [0, 0], "binary", "has one class only, '0'"),
    ],
)
def test_both_doors_agree(truth: Any, predictions: Any, kind: str, note: str) -> None:
    result = assert_same(truth, predictions)
    assert result.target.kind == kind
    assert note in "\n".join(result.notes)
    assert all(f"note: {each}" in str(result) for each in result.notes)


CELLS = {
    "text": st.sampled_from(["yes", "no", "NaN", "a", " yes"]),
    "integers": st.integers(-1, 3),
    "floats": st.sampled_from([0.0, 1.0, 2.0, 0.5, math.nan]),
    "bools": st.booleans(),
}


@given(st.data())
def test_both_doors_agree_about_any_columns(data: st.DataObject) -> None:
    columns = []
    for _ in range(2):
        cells = CELLS[data.draw(st.sampled_from(sorted(CELLS)))]
        columns.append(data.draw(st.lists(cells, min_size=4, max_size=4)))
    truth, predictions = columns
    # a file without values is refused, and the word NaN is none among numbers
    assume(all(any(cell == cell and cell != "NaN" for cell in column) for column in columns))
    try:
        assert_same(truth, predictions, metrics="accuracy")
    except (SpecError, DataError) as refusal:
        with pytest.raises(type(refusal)):
            evaluate(truth, predictions, metrics="accuracy")
        with pytest.raises(type(refusal)):
            evaluate("truth", "predictions", data={"truth": truth, "predictions": predictions}, metrics="accuracy")


def test_a_stated_kind_counts_at_both_doors() -> None:
    ratings = [1.0, 2.0, 5.0, 3.0], [1.0, 2.0, 4.0, 3.0]
    assert assert_same(*ratings, kind="numeric").rows[0].metric == "mean_absolute_error"
    with pytest.raises(SpecError, match=r"^kind='binary': 'truth' holds integers with 4 different values"):
        evaluate([1, 2, 3, 4], [1, 2, 3, 3], kind="binary")


def test_scores_have_the_same_metrics_and_values_at_both_doors() -> None:
    table = {"truth": LABEL, "predictions": SAID, "scores": CHANCE}
    found = evaluate(LABEL, SAID, scores=CHANCE)
    expected = evaluate("truth", "predictions", data=table, scores="scores")
    assert values_of_arrays(found) == pytest.approx(values_of_columns(expected), nan_ok=True)
    alone, ranked = evaluate(LABEL, scores=CHANCE), evaluate("truth", data=table, scores="scores")
    assert values_of_arrays(alone) == pytest.approx(values_of_columns(ranked))
    assert alone.notes == ranked.notes
    decided = evaluate(LABEL, scores=CHANCE, threshold=0.75, metrics="accuracy")
    assert decided["accuracy"].value == pytest.approx(5 / 6)
    with pytest.raises(SpecError, match=r"accuracy needs predictions, .* give predictions=… or threshold=…"):
        evaluate(LABEL, scores=CHANCE, metrics="accuracy")
    with pytest.raises(SpecError, match="makes predictions of scores, and 'predictions' has predictions=…; leave out"):
        evaluate(LABEL, SAID, threshold=0.5)


def test_scores_of_classes_decide_without_predictions() -> None:
    chances = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.6, 0.3]])
    assert evaluate(["a", "b", "c"], scores=chances)["accuracy"].value == pytest.approx(2 / 3)
    assert evaluate(["a", "b", "c"], scores=chances, classes=["a", "b", "c"])["auc"].value == pytest.approx(0.75)
    with pytest.raises(
        SpecError,
        match="'truth' has no class 'old'; it has no, yes; with the scores of several",
    ):
        evaluate(LABEL, scores={"old": CHANCE, "new": CHANCE})
    with pytest.raises(SpecError, match="pass predictions too, such as"):
        evaluate(np.array([[1, 0], [1, 1]]), scores=np.array([[0.9, 0.2], [0.8, 0.7]]))


def test_systems_may_be_arrays_of_probabilities() -> None:
    old, new = (np.column_stack([1 - np.array(p), p]) for p in (CHANCE, CHANCE[::-1]))
    both = evaluate(LABEL, {"old": old, "new": new})
    rows = {(row["task"], row["metric"]): row["value"] for row in both.facts()["metrics"]}
    for name, chances in (("old", old), ("new", new)):
        single = evaluate(LABEL, chances)
        assert {row.metric: row.value for row in single.rows} == {
            metric: value for (task, metric), value in rows.items() if task == name
        }
    sets = evaluate(np.array([[1, 0], [1, 1]]), {"a": np.array([[1, 0], [0, 1]])}, metrics="f1_micro")
    assert [row["value"] for row in sets.facts()["metrics"]] == [pytest.approx(0.8)]


def test_the_positive_class_reaches_gates() -> None:
    truth, said = ["cat"] * 4 + ["dog"] * 4, ["cat", "cat", "cat", "dog"] + ["dog"] * 4
    table = {"y": truth, "m": said}
    [gate] = evaluate("y", "m", data=table, label="cat", metrics="accuracy", gates="recall >= 0.85").gates
    assert (gate.passed, gate.facts["values"][0]["value"]) == (False, 0.75)
    [gate] = evaluate("y", "m", data=table, label="dog", metrics="accuracy", gates="recall >= 0.85").gates
    assert (gate.passed, gate.facts["values"][0]["value"]) == (True, 1.0)
    result = evaluate(truth, said, label="cat")
    with pytest.raises(AssertionError, match=r"recall >= 0.85 does not hold\n  FAILED  predictions: 0.75; 8 rows"):
        assert_gate(result, "recall >= 0.85")
    assert assert_gate(evaluate(truth, said, label="dog"), "recall >= 0.85")[0].passed
    assert assert_gate(evaluate(truth, {"old": said, "new": truth}), "accuracy >= baseline")[0].subject == "new"
    assert assert_gate(evaluate(truth, truth), "accuracy >= baseline", baseline=result)[0].passed
    with pytest.raises(SpecError, match="recall needs predictions, and there are scores only"):
        evaluate("y", data={"y": LABEL, "p": CHANCE}, scores="p", gates="recall >= 0.5")


def test_scores_of_the_other_class_are_noted() -> None:
    truth, reversed_scores = LABEL * 5, [1 - p for p in CHANCE] * 5
    note = "the scores of 'scores' are higher where the truth is 'no' than where it is 'yes' (roc_auc 0.111): if they"
    [found] = [each for each in evaluate(truth, scores=reversed_scores).notes if each.startswith("the scores")]
    assert found == f"{note} are those of 'no', label='no' says so"
    assert evaluate(truth, scores=reversed_scores, label="no")["auc"].value == pytest.approx(8 / 9)
    both = evaluate("y", data={"y": truth, "scores": reversed_scores}, scores="scores")
    assert both.notes[-1] == f"{note} are those of 'no', label='no' says so"
    assert not any(each.startswith("the scores") for each in evaluate(truth, scores=CHANCE * 5).notes)


def test_ids_that_name_several_rows_of_one_file_are_noted() -> None:
    table = {"id": ["1", "2", "2", "2"], "y": LABEL[:4], "m": SAID[:4]}
    [note] = [each for each in evaluate("y", "m", data=table).notes if "of an earlier row" in each]
    assert note == (
        "2 rows of 4 have the 'id' of an earlier row, such as '2', and count too; id='id' refuses them,"
        " cluster='id' counts them as dependent"
    )
    assert not any("of an earlier row" in each for each in evaluate("y", "m", data=table, cluster="id").notes)


def test_results_print_as_plain_text_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    single = evaluate(LABEL, SAID, metrics="accuracy")
    both = evaluate(LABEL, {"old": SAID, "new": LABEL}, metrics="accuracy")
    saved = single.save(MemoryStore(), "a")
    for result, part in ((single, "accuracy · prediction"), (both, "A → B"), (saved, "accuracy · prediction")):
        assert part in str(result)
        assert "\x1b" not in str(result)
    page = both._repr_html_()
    assert all(f"<p>{html.escape(text)}" in page for text in ("no difference could be shown", "note: 'yes' counts"))
    [gate] = assert_gate(single, "accuracy >= 0.5")
    assert str(gate) == "passed  accuracy >= 0.5  predictions: 0.6667; 6 rows: 6 scored"
    data = Dataset.from_rows([{"input": "<a>" * 99, "expected": {"x": 1}}] * 9)
    assert data._repr_html_().count("<tr>") == 6
    assert "&lt;a&gt;" in data._repr_html_()
    hostile = Dataset.from_rows([{"input": "\x1b[31m\u202e"}], name="\u202e")._repr_html_()
    assert "\\x1b[31m\\u202e" in hostile
    assert not {"\x1b", "\u202e"} & {*hostile}


def test_the_label_is_a_class_by_value_or_text_at_both_doors() -> None:
    assert evaluate([1, 0, 1], [1, 0, 0], label="1")["f1"].value == pytest.approx(2 / 3)
    with pytest.raises(SpecError, match="label=…: 'truth' has no class '7'; it has 0 and 1"):
        evaluate([1, 0, 1], [1, 0, 0], label=7)
    truth, said = ["a", "b", "c", "a"], ["a", "b", "c", "b"]
    single = evaluate(truth, said, label="a")
    assert single["f1"].value == pytest.approx(2 / 3)
    [row] = [row for row in evaluate(truth, {"m": said}, label="a").facts()["metrics"] if row["metric"] == "f_beta"]
    assert (row["value"], row["signature"]) == (single["f1"].value, single["f1"].signature)
    with pytest.raises(SpecError, match="kind='regression': write one of binary, multiclass, multilabel, numeric"):
        evaluate(truth, said, kind="regression")
    ranked = evaluate(LABEL, {"a": None, "b": None}, scores={"a": CHANCE, "b": CHANCE[::-1]})
    assert {row["metric"] for row in ranked.facts()["metrics"]} == {"roc_auc", "average_precision", "brier"}


def test_two_classes_without_a_positive_one_have_metrics_that_need_none() -> None:
    truth, said = ["cat", "dog", "cat", "dog"], ["cat", "dog", "dog", "dog"]
    chances = [0.9, 0.3, 0.4, 0.2]
    matrix = np.column_stack([chances, 1 - np.array(chances)])
    assert [row.metric for row in evaluate(truth, matrix).rows][-2:] == ["roc_auc", "brier"]
    table = {"y": truth, "m": said, "p": chances}
    columns = evaluate("y", "m", data=table, scores=["cat=p"])
    arrays = evaluate(truth, said, scores={"cat": chances})
    assert (columns.target.positive, arrays.target.positive) == ("cat", "cat")
    assert values_of_arrays(arrays) == pytest.approx(values_of_columns(columns), nan_ok=True)
    assert arrays["average_precision"].value == pytest.approx(1.0)


def test_reversed_scores_with_a_class_are_led_to_the_class_of_the_scores() -> None:
    truth, chances = LABEL * 5, [1 - p for p in CHANCE] * 5
    note = evaluate(truth, scores={"yes": chances, "no": [1 - p for p in chances]}).notes[-1]
    assert note.endswith("if they are those of 'no', scores=… with its class says so")
    assert evaluate("y", data={"y": truth, "p": chances}, scores="yes=p").notes[-1].endswith(note[-40:])


def assert_scores_agree(truth: Any, scores: Any, label: Any = None, **options: Any) -> SystemScores:
    """Both doors agree about scores without predictions."""
    found = evaluate(truth, scores=scores, label=label, **options)
    table = {"truth": truth, "scores": scores}
    expected = evaluate("truth", data=table, scores="scores", label=label, **options)
    assert (found.target.kind, found.target.positive) == (expected.target.kind, expected.target.positive)
    assert values_of_arrays(found) == values_of_columns(expected)
    assert found.notes == expected.notes
    return found


@pytest.mark.parametrize("truth", [["pos"] * 4, [1] * 4, [True] * 4, ["Yes"] * 4, [1.0] * 4])
def test_rows_below_a_threshold_are_negative_also_if_no_row_of_the_truth_is(truth: list[Any]) -> None:
    chances = [0.9, 0.2, 0.8, 0.1]
    found = assert_scores_agree(truth, chances, threshold=0.5, metrics=["accuracy", "recall", "brier"])
    assert [row.value for row in found.rows] == [0.5, 0.5, pytest.approx((0.01 + 0.64 + 0.04 + 0.81) / 4)]
    [gate] = evaluate(
        "y", data={"y": truth, "s": chances}, scores="s", threshold=0.5, gates="recall >= 0.9", metrics="accuracy"
    ).gates
    assert (gate.passed, gate.facts["values"][0]["value"]) == (False, 0.5)


def test_a_class_of_one_class_truth_may_be_named_by_the_positive_one() -> None:
    never = assert_scores_agree(["b"] * 4, [0.9, 0.2, 0.8, 0.1], label="b", threshold=0.5, metrics="recall")
    assert never["recall"].value == 0.5
    ranked = evaluate("y", data={"y": ["no"] * 4, "s": [0.9, 0.2, 0.8, 0.1]}, scores="s", label="yes", threshold=0.5)
    assert values_of_columns(ranked)[next(iter(values_of_columns(ranked)))] == 0.5


def test_gates_use_weights_also_of_metrics_that_were_not_requested() -> None:
    table = {"y": [1, 1, 1, 0, 0], "a": [1, 0, 0, 0, 0], "b": [1, 1, 0, 0, 0], "w": [5, 1, 0, 1, 1]}
    options: Any = {"weight": "w", "metrics": ["accuracy"]}
    [gate] = evaluate("y", "a", data=table, gates=["recall >= 0.99"], **options).gates
    assert gate.facts["values"][0]["value"] == pytest.approx(5 / 6)
    [against] = evaluate("y", ["a", "b"], data=table, gates=["recall >= baseline"], **options).gates
    assert "1 against 0.8333" in str(against)
    with pytest.raises(AssertionError, match=r"FAILED  predictions: 0\.8333"):
        assert_gate(evaluate(table["y"], table["a"], weight=table["w"], metrics="accuracy"), "recall >= 0.99")


def test_every_class_needs_a_score_if_scores_decide() -> None:
    truth, some = ["a", "b", "c"] * 2, [0.1] * 6
    with pytest.raises(SpecError, match=r"^scores=…: no score of 'c'; give scores=\{'c': …\}"):
        evaluate(truth, scores={"a": some, "b": some})
    with pytest.raises(SpecError, match=r"^scores=…: no score of 'c'; give scores=\['c=COLUMN'\]"):
        evaluate("y", data={"y": truth, "p": some, "q": some}, scores=["a=p", "b=q"])


def test_classes_with_scores_may_occur_in_no_row() -> None:
    chances = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.6, 0.3, 0.1]])
    found = evaluate([0, 1, 1, 0], scores=chances, classes=[0, 1, 2])
    table = {"truth": [0, 1, 1, 0]} | {f"c{place}": chances[:, place] for place in range(3)}
    columns = evaluate("truth", data=table, scores=["0=c0", "1=c1", "2=c2"])
    assert values_of_arrays(found) == values_of_columns(columns)
    assert found.notes == columns.notes
    assert "no row of 'truth' has the class '2', which has scores" in found.notes
    assert (found["accuracy"].value, found["brier"].value) == (1.0, pytest.approx(0.26))
    assert evaluate([0, 1, 1, 0], chances, classes=[0, 1, 2])["accuracy"].value == 1.0
    with pytest.raises(SpecError, match="has no class 'cta'; it has cat, dog"):
        evaluate("y", data={"y": ["cat", "dog"], "p": [0.5, 0.2]}, scores=["cta=p"])


def test_a_threshold_decides_for_several_systems() -> None:
    truth, systems = [1, 0, 1, 0], {"a": [0.9, 0.2, 0.8, 0.1], "b": [0.9, 0.2, 0.1, 0.7]}
    result = evaluate(truth, dict.fromkeys(systems), scores=systems, threshold=0.5, metrics="accuracy")
    assert [row["value"] for row in result.facts()["metrics"]] == [1.0, 0.5]
    with pytest.raises(
        SpecError, match=r"^threshold=… makes predictions of scores, and 'a' has predictions=…; leave out"
    ):
        evaluate(truth, {"a": truth, "b": None}, scores={"b": systems["b"]}, threshold=0.5)
    with pytest.raises(
        SpecError, match=r"^threshold=0.5 needs the scores of the positive class of two, and 'truth' has"
    ):
        evaluate(["a", "b", "c"], scores=[0.1, 0.2, 0.3], label="a", threshold=0.5)
    both = np.column_stack([np.subtract(1, systems["b"]), systems["b"]])
    assert evaluate(truth, scores=both, threshold=0.8, metrics="accuracy")["accuracy"].value == 0.75


@pytest.mark.parametrize("threshold", ["a", math.nan, math.inf, True])
def test_a_threshold_is_a_finite_number(threshold: Any) -> None:
    for score in (
        lambda: evaluate([1, 0], scores=[0.2, 0.3], threshold=threshold),
        lambda: evaluate("y", data={"y": [1, 0], "s": [0.2, 0.3]}, scores="s", threshold=threshold),
    ):
        with pytest.raises(SpecError, match=r"^threshold=.*: give a finite number"):
            score()


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(DataError, match=r"^row 0: 'scores' is 'x' where a number is needed"):
        evaluate([1, 0], scores=["x", "y"])
    with pytest.raises(DataError, match="row 1: 'scores' is '0,3', and other cells have another decimal sign"):
        evaluate([1, 0], scores=["0.2", "0,3"])
    assert evaluate([1, 0], scores=[math.nan, math.nan])["auc"].n_scored == 0


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ([["cat"], ["dog"]], "'truth' holds text such as 'cat', 'predictions' holds lists of text such as ['cat']: no"),
        ([{"label": "cat"}, {"label": "dog"}], "'predictions' holds objects such as {'label': 'cat'}: no prediction"),
        ([1, ["dog"]], "'predictions' holds lists and numbers such as"),
    ],
)
def test_values_that_are_never_equal_are_refused_at_both_doors(predictions: Any, message: str) -> None:
    truth = ["cat", "dog"]
    with pytest.raises(SpecError, match=re.escape(message)):
        evaluate(truth, predictions)
    with pytest.raises(SpecError, match=re.escape(message)):
        evaluate("truth", "predictions", data={"truth": truth, "predictions": predictions})


def test_values_that_may_be_equal_are_compared() -> None:
    assert evaluate(["cat", "dog"], [["cat"], "dog"])["accuracy"].value == 0.5
    assert evaluate([["a"], []], [[], []])["accuracy"].value == 0.5
    assert evaluate([[1], [1, 2]], [[1], [2]])["accuracy"].value == 0.5


def test_nested_lists_of_numbers_are_read_as_their_array() -> None:
    chances = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    for convert in (np.ndarray.tolist, list):
        listed, array = evaluate([0, 1, 1], convert(chances)), evaluate([0, 1, 1], chances)
        assert values_of_arrays(listed) == values_of_arrays(array)
        assert evaluate([0, 1, 1], scores=convert(chances))["accuracy"].value == pytest.approx(2 / 3)
    cells, said = np.array([[1, 0, 1], [0, 0, 1]]), np.array([[1, 0, 0], [0, 0, 1]])
    points = evaluate([[1, 2], [3, 4]], [[1, 2], [3, 5]])
    assert (points.target.kind, points["accuracy"].value) == ("objects", 0.5)
    named = evaluate([["a", "c"], ["c"]], said.tolist(), classes=["a", "b", "c"])
    assert named["accuracy"].value == 0.5
    listed = evaluate(cells.tolist(), said.tolist())
    assert listed.target.kind == "multilabel"
    assert values_of_arrays(listed) == values_of_arrays(evaluate(cells, said))


@pytest.mark.parametrize(
    ("texts", "numbers", "mark"),
    [
        (
            ["1,5", "2,5", "NA", "3,0"],
            [1.5, 2.5, None, 3.0],
            "3 cells of 'truth' have a decimal comma: '1,5' is read as",
        ),
        (["1.234,5", "2.000,0"], [1234.5, 2000.0], "a decimal comma: '1.234,5' is read as 1234.5"),
        (["1,234.5", "2,000.0"], [1234.5, 2000.0], "separators of thousands: '1,234.5' is read as 1234.5"),
        (["1,234", "2.5"], [1234.0, 2.5], "separators of thousands: '1,234' is read as 1234"),
        (["1,234", "2,5"], [1.234, 2.5], "a decimal comma: '1,234' is read as 1.234"),
        (["1.234.567", "1.234.568,5"], [1234567.0, 1234568.5], "separators of thousands: '1.234.567' is read as"),
        (["1,234,567", "1,234,568.5"], [1234567.0, 1234568.5], "separators of thousands"),
        (["1 234,5", "2 000"], [1234.5, 2000.0], "a decimal comma: '1 234,5' is read as 1234.5"),
        (["10%", "20 %"], [0.1, 0.2], "2 cells of 'truth' have a percent sign: '10%' is read as 0.1"),
        (["$1,200.50", "-$3"], [1200.5, -3.0], "the sign of a currency: '$1,200.50' is read as 1200.5"),
        (["3,50 €", "0,25 €"], [3.5, 0.25], "the sign of a currency: '3,50 €' is read as 3.5"),
    ],
)
def test_numbers_of_other_notations_are_read_and_noted_at_both_doors(
    texts: list[str], numbers: list[float | None], mark: str
) -> None:
    expected = evaluate(numbers, numbers[::-1])["mae"].value
    found = evaluate(texts, texts[::-1])
    assert found["mae"].value == pytest.approx(expected, rel=1e-12)
    assert mark in "\n".join(found.notes)
    columns = evaluate("truth", "predictions", data={"truth": texts, "predictions": texts[::-1]})
    assert values_of_columns(columns) == values_of_arrays(found)
    assert evaluate(texts, texts[::-1], kind="multiclass").target.kind == "multiclass"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["1,234", "2,000"], "is '1,234', as 2 cells with a comma; write 1234 if it separates thousands, 1.234 if"),
        (["0,5", "0.5"], "is '0,5', and other cells have another decimal sign; write all of them alike"),
        (["50%", "0.5"], "is '50%', and other cells have no percent sign; write all of them alike"),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_refused_at_both_doors(texts: list[str], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        evaluate(texts, texts[::-1])
    with pytest.raises(DataError, match=re.escape(message)):
        evaluate("truth", "predictions", data={"truth": texts, "predictions": texts[::-1]})
    assert evaluate(texts, texts[::-1], kind="multiclass").target.kind == "multiclass"


def test_labels_of_numpy_and_labels_written_as_floats_are_classes() -> None:
    chances = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    ones = evaluate([0, 1, 1], chances, classes=np.array([0, 1]), label=np.int64(1))
    assert (ones.target.positive, ones["f1"].value) == (1, pytest.approx(2 / 3))
    floats = evaluate(np.array([0.0, 1.0, 1.0]), chances, classes=np.array([0.0, 1.0]), label=np.float64(1.0))
    assert values_of_arrays(floats) == values_of_arrays(ones)
    table = {"y": [0.0, 1.0, 1.0], "m": [0.0, 1.0, 0.0]}
    assert evaluate("y", "m", data=table, label="1.0").target.positive == 1
    assert evaluate("y", "m", data=table, label=1.0).target.positive == 1


def test_one_class_of_several_may_be_named_at_both_doors() -> None:
    truth, said = [1, 2, 3, 2], [1, 2, 2, 2]
    found = evaluate(truth, said, label=2)
    columns = evaluate("truth", "predictions", data={"truth": truth, "predictions": said}, label="2")
    assert values_of_arrays(found) == values_of_columns(columns)
    assert found["f1"].value == pytest.approx(0.8)
    shouted = evaluate(LABEL, SAID, label="YES")
    assert shouted.target.positive == evaluate("y", "m", data={"y": LABEL, "m": SAID}, label="YES").target.positive
    with pytest.raises(SpecError, match="label=… is for classes; 'y' is numeric"):
        evaluate("y", "m", data={"y": [0.5, 1.5], "m": [0.5, 1.5]}, label="2")


def test_a_metric_is_found_by_the_name_with_the_fewest_other_parameters() -> None:
    cells, chances = np.array([[1, 0, 1], [0, 1, 0]]), np.array([[0.9, 0.2, 0.3], [0.1, 0.2, 0.6]])
    names = ["label_ranking_average_precision_score", "lrap"]
    for order in (names, names[::-1]):
        result = evaluate(cells, (chances >= 0.5).astype(int), scores=chances, metrics=order)
        assert "empty" not in result["lrap"].signature
        assert "empty=1.0" in result["label_ranking_average_precision_score"].signature


CLASSES = {
    "text": st.sampled_from(["yes", "no", "a"]),
    "integers": st.integers(0, 2),
    "floats": st.sampled_from([0.0, 1.0]),
    "bools": st.booleans(),
}


@given(st.data())
def test_both_doors_agree_about_any_scores(data: st.DataObject) -> None:
    truth = data.draw(st.lists(CLASSES[data.draw(st.sampled_from(sorted(CLASSES)))], min_size=4, max_size=4))
    scores = data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0, 2.0, math.nan]), min_size=4, max_size=4))
    assume(not all(map(math.isnan, scores)))  # arrays without a number have no type
    label = data.draw(st.none() | st.sampled_from(truth))
    threshold = data.draw(st.sampled_from([None, 0.5]))
    try:
        assert_scores_agree(truth, scores, label=label, threshold=threshold)
    except SpecError as refusal:
        with pytest.raises(type(refusal)):
            evaluate(truth, scores=scores, label=label, threshold=threshold)
        table = {"truth": truth, "scores": scores}
        with pytest.raises(type(refusal)):
            evaluate("truth", data=table, scores="scores", label=label, threshold=threshold)


def test_messages_name_the_arguments_of_their_door() -> None:
    table = {"y": ["cat", "dog"] * 2, "m": ["cat", "dog"] * 2, "p": [0.5, 0.2, 0.3, 2.0]}
    with pytest.raises(SpecError, match=re.escape("Give label='cat', or scores=['cat=p']")):
        evaluate("y", data=table, scores="p")
    with pytest.raises(SpecError, match=re.escape("Give label='cat', or scores={'cat': …}")):
        evaluate(table["y"], scores=table["p"])
    with pytest.raises(
        SpecError, match=r"^confidence='p': not all are between 0 and 1; give the score of a class as sc"
    ):
        evaluate("y", "m", data=table, confidence="p", label="cat")
    with pytest.raises(
        SpecError, match=r"give scores='COLUMN' for the positive class, or scores=.'LABEL=COLUMN'. for each"
    ):
        evaluate("y", data=table, scores=["p", "cat=p"])
    with pytest.raises(SpecError, match=r"^predictions: in the table no column is called 'n'"):
        evaluate("y", "n", data=table)
    with pytest.raises(SpecError, match="give the column that names each row as id"):
        evaluate("y", "m", data=[{"y": ["a"], "m": ["a"]}, {"y": ["a", "b"], "m": ["a", "b"]}], truth_file=table)


TRUE, NEAR, FAR = [1.5, 2.5, 3.0, 4.1], [1.4, 2.6, 3.3, 4.0], [1.0, 2.0, 3.0, 4.0]
SCALE = [1.0, 2.0, 1.0, 4.0]
SCALED = {"near": (0.1 + 0.1 / 2 + 0.3 + 0.1 / 4) / 4, "far": (0.5 + 0.5 / 2 + 0.1 / 4) / 4}


@pytest.mark.parametrize("systems", [["near"], ["near", "far"]])
def test_gates_and_comparisons_read_further_columns_too(systems: list[str]) -> None:
    metric, threshold = "mean_absolute_scaled_error", (SCALED["near"] + SCALED["far"]) / 2
    options: Any = {"metrics": metric, "gates": f"{metric} <= {threshold}"}
    table = {"y": TRUE, "near": NEAR, "far": FAR, "scale": SCALE}
    arrays = evaluate(TRUE, {name: table[name] for name in systems}, columns={"scale": SCALE}, **options)
    columns = evaluate("y", systems, data=table, columns=["scale"], **options)
    for result in (arrays, columns):
        assert [row.value for row in result.rows] == pytest.approx([SCALED[name] for name in systems])
        [gate] = result.gates
        assert (gate.subject, gate.passed) == (systems[-1], systems == ["near"])
        assert gate.facts["values"][0]["value"] == pytest.approx(SCALED[gate.subject])
        pairs = result.results.comparison.pairs if result.results.comparison else []
        expected = [SCALED["far"] - SCALED["near"]] * (len(systems) - 1)
        assert [pair["difference"] for pair in pairs] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["value", "status", "reason", "target", "_digest_"])
@pytest.mark.parametrize("gates", [(), "accuracy >= 0"])
def test_a_further_column_may_not_have_the_name_of_one_that_scores_have(name: str, gates: Any) -> None:
    with pytest.raises(SpecError, match=f"columns: '{name}' is a reserved name; choose another"):
        evaluate("y", "p", data={"y": LABEL, "p": SAID, name: SAID}, columns=[name], gates=gates)
