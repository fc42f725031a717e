"""Arrays in, numbers out: the same numbers as through every other door."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from support.commands import Folder

from evaluand import (
    Accuracy,
    DataError,
    Dataset,
    DirectoryStore,
    Evaluator,
    Mean,
    MemoryStore,
    Runner,
    SpecError,
    evaluate,
)
from evaluand.comparison.comparing import compare
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.run.tasks.recorded import RecordedTask

TRUTH = ["cat", "dog", "dog", "cat"]
GIVEN = ["cat", "dog", "cat", None]


@pytest.mark.parametrize(
    "made",
    [
        list,
        tuple,
        pd.Series,
        lambda values: pd.Series(values, dtype="category"),
        pa.array,
        lambda values: pa.chunked_array([values[:1], values[1:]]),
        lambda values: np.array(values, object),
    ],
    ids=["list", "tuple", "series", "categories", "arrow", "chunks", "numpy"],
)
def test_every_kind_of_array_gives_the_same_numbers(made: Any) -> None:
    row = evaluate(made(TRUTH), made(GIVEN))["accuracy"]
    assert (row.value, row.n, row.n_scored, row.n_abstained) == (2 / 3, 4, 3, 1)
    assert (row.worst, row.best) == (0.5, 0.75)


def test_clusters_are_reported_with_the_signature() -> None:
    result = evaluate([1, 1, 0, 0], [1, 0, 0, 0], metrics="accuracy", cluster=["a", "a", "b", "b"])
    assert "interval=wilson 95%, by 2 clusters (cluster)" in " ".join(str(result).split())


@pytest.mark.parametrize(
    ("truth", "predictions", "value"),
    [
        ([1, 0, 1], [1, 1, 1], 2 / 3),
        (np.array([1, 0, 1]), np.array([1, 1, 1], np.int8), 2 / 3),
        ([True, False], [True, True], 0.5),
        (pd.Series([1, 0, 1]), pd.Series([1, None, 1]), 1.0),  # pandas makes floats of these
        ([["a", "b"], []], [["a", "b"], ["a"]], 0.5),
        ([1, "a"], [1, "b"], 0.5),
        ([{"x": 1}, {"x": 2}], [{"x": 1}, {"x": 1}], 0.5),
    ],
    ids=["integers", "numpy", "bools", "gaps", "lists", "mixed", "objects"],
)
def test_types_are_found_from_the_values(truth: Any, predictions: Any, value: float) -> None:
    result = evaluate(truth, predictions, metrics="accuracy")
    assert result["accuracy"].value == value
    saved = result.save(MemoryStore(), "x")
    assert saved.aggregation.table()["value"].to_pylist() == [value]


def test_groups_and_weights_are_listed_after_the_overall_value() -> None:
    frame = pd.DataFrame({"size": ["s", "l", "l", "s"], "age": [1, 2, 2, None]})
    result = evaluate([1, 1, 0, 0], [1, 0, 0, 1], by=frame, weight=[1, 2, 3, 4], metrics=[Accuracy(), "count"])
    assert result["accuracy"].value == 0.4
    assert "weighted=true" in result["accuracy"].signature
    found = {tuple(row.by.items()): row.value for row in result.rows if row.metric == "accuracy"}
    assert found[("size", "l"),] == 0.6
    assert found[("size", "s"),] == 0.2
    assert found[("age", None),] == 0.0
    assert result["count"].value == 4


def test_an_array_to_group_by_needs_no_name() -> None:
    result = evaluate([1, 1], [1, 0], by=["a", "b"], metrics="accuracy")
    assert [row.by for row in result.rows] == [{}, {"group": "a"}, {"group": "b"}]


def test_the_result_prints_and_converts() -> None:
    result = evaluate(TRUTH, GIVEN, by={"<b>": ["x", "x", "y", "<i>"]}, metrics="accuracy")
    assert "0.667" in str(result)
    assert "accuracy v1 missing=leave_out" in str(result)
    page = result._repr_html_()
    assert "&lt;b&gt;=&lt;i&gt;" in page
    assert "<i>" not in page
    frame = result.to_pandas()
    assert list(frame["group"].fillna("all")) == ["all", "<i>", "x", "y"]
    assert json.loads(result.to_json())[0]["n_abstained"] == 1
    with pytest.raises(KeyError, match="'f1' was not requested; there are accuracy"):
        result["f1"]


def test_the_whole_is_reported_from_the_group_without_a_value() -> None:
    by = {"size": ["none", None, "s"], "value": ["a", "a", None]}
    result = evaluate([1, 1, 1], [1, 0, 1], by=by, metrics="accuracy")
    frame = result.to_pandas()
    assert list(frame.columns[:3]) == ["metric", "by", "group"]
    found = [tuple(None if pd.isna(cell) else cell for cell in row) for row in frame[["by", "group", "n"]].to_numpy()]
    assert found == [
        (None, None, 3),
        ("size", "none", 1),
        ("size", "s", 1),
        ("size", None, 1),
        ("value", "a", 2),
        ("value", None, 1),
    ]
    assert frame["value"][0] == 2 / 3
    assert [row["by"] for row in result.to_dict()][:2] == [{}, {"size": "none"}]
    for shown in (str(result), result._repr_html_()):
        assert [line in shown for line in ("size=none", "size=s", "without size", "without value")] == [True] * 4


def test_a_list_of_series_groups_by_their_names() -> None:
    size, colour = pd.Series(["s", "l"], name="size"), pd.Series(["red", "red"], name="colour")
    result = evaluate([1, 1], [1, 0], by=[size, colour], metrics="accuracy")
    assert [row.by for row in result.rows] == [{}, {"size": "l"}, {"size": "s"}, {"colour": "red"}]


@pytest.mark.parametrize("column", [[1, 2], np.array([1, 2]), pd.Series([1, 2])], ids=["list", "numpy", "series"])
def test_a_list_of_arrays_without_names_is_refused_with_what_to_give(column: Any) -> None:
    with pytest.raises(SpecError, match=r"^by: the arrays of a list have no names; give a mapping, such as by={'size'"):
        evaluate([1, 1], [1, 0], by=[column, column])


@pytest.mark.parametrize("made", [list, np.array, pd.Series, pa.array], ids=["list", "numpy", "series", "arrow"])
def test_weights_that_are_none_are_reported_as_they_were_given(made: Any) -> None:
    with pytest.raises(DataError) as raised:
        evaluate([1] * 5, [1] * 5, weight=made([1.0, math.nan, 2.0, -1.0, math.nan]))
    assert str(raised.value).splitlines() == [
        "row 1: the weight 'weight' is no number; give a number of 0 or more",
        "row 3: the weight 'weight' is -1; give a number of 0 or more",
        "row 4: the weight 'weight' is no number; give a number of 0 or more",
    ]
    with pytest.raises(DataError, match=r"^row 0: the weight 'weight' is no number; give a number of 0 or more$"):
        evaluate([1, 1], [1, 1], weight=[None, 1])


def test_empty_arrays_give_undefined_values_with_a_reason() -> None:
    row = evaluate([], [])["accuracy"]
    assert math.isnan(row.value)
    assert row.reason == "no scored rows"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"truth": [1, 2], "predictions": [1]}, DataError, "truth has 2, predictions has 1"),
        (
            {"truth": ["x"], "predictions": [1]},
            SpecError,
            "'truth' holds text such as 'x', 'predictions' holds integers such as 1: no prediction could be right",
        ),
        ({"truth": "abc", "predictions": ["a"]}, SpecError, "truth is a str; give a list"),
        ({"truth": np.zeros((2, 2, 2)), "predictions": [1, 2]}, SpecError, "truth has 3 dimensions"),
        (
            {"truth": [1.5], "predictions": [2.5], "metrics": "accuracy"},
            SpecError,
            "accuracy: real numbers are hardly ever equal",
        ),
        (
            {"truth": [1], "predictions": [1], "weight": [-1]},
            DataError,
            "row 0: the weight 'weight' is -1; give a number of 0 or more",
        ),
        (
            {"truth": [1], "predictions": [1], "weight": ["x"]},
            DataError,
            "row 0: 'weight' is 'x' where a number is needed",
        ),
        ({"truth": [1], "predictions": [1], "by": {"truth": [1]}}, SpecError, "by: 'truth' is a reserved name"),
        ({"truth": [1], "predictions": [1], "metrics": "acuracy"}, SpecError, "did you mean 'accuracy'"),
        (
            {"truth": [1], "predictions": [1], "metrics": Accuracy},
            SpecError,
            "metrics: give names, functions or metrics such as Accuracy",
        ),
        ({"truth": [1], "predictions": [1], "metrics": []}, SpecError, "metrics is empty"),
        ({"truth": None, "predictions": [1]}, SpecError, "truth is None; give an array"),
        ({"truth": [object()], "predictions": [1]}, DataError, "truth, row 0"),
    ],
)
def test_what_cannot_be_is_reported_in_a_sentence(arguments: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error) as raised:
        evaluate(**arguments)
    assert message in str(raised.value)


def test_numbers_are_read_by_metrics_of_their_own() -> None:
    result = evaluate([1.5, 2.5, math.inf], [1.0, math.nan, 2.0], metrics=Mean(column="prediction"))
    row = result["mean"]
    assert (row.value, row.n_scored, row.n_failed, row.n_abstained) == (1.0, 1, 1, 1)


@pytest.mark.parametrize("metrics", ["mean", "accuracy", "zzz", ["zzz"], Mean()])
def test_what_a_metric_of_real_numbers_lacks_is_reported_with_metrics_that_work(metrics: Any) -> None:
    truth, predictions = [1.5, 2.5, None, 4.5], [1.0, 2.0, 3.0, math.nan]
    with pytest.raises(SpecError, match=r"(errors, such as|errors of numbers, name) mae"):
        evaluate(truth, predictions, metrics=metrics)
    error = evaluate(truth, predictions, metrics="mae").rows[0]
    assert (error.value, error.n_scored, error.n_abstained) == (0.5, 2, 2)


def test_an_unknown_metric_of_text_says_nothing_of_numbers() -> None:
    with pytest.raises(SpecError) as raised:
        evaluate(["a"], ["a"], metrics="zzz")
    assert str(raised.value) == "no metric is called 'zzz'; `evaluand list metrics` shows all names"
    assert "numbers" not in str(raised.value)


def test_saved_arrays_are_a_run_as_any_other(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    result = evaluate(
        TRUTH, GIVEN, by={"size": ["s", "l", "l", "s"]}, confidence=[0.9, 0.8, 0.7, 0.6], metrics="accuracy"
    )
    saved = result.save(store, "pets")
    [door] = saved.tasks
    values = [(row["value"], row["low"], row["high"]) for row in saved.aggregation.table().to_pylist()]
    assert values == [(row.value, row.low, row.high) for row in result.rows]
    assert door.run.name == "pets/predictions"
    assert result.save(store, "pets").tasks[0].run.id == door.run.id

    lines = [{"p": p, "c": c} for p, c in zip(GIVEN, [0.9, 0.8, 0.7, 0.6], strict=True)]
    texts = [
        json.dumps({"out": None if line["p"] is None else {"prediction": line["p"], "confidence": line["c"]}})
        for line in lines
    ]
    (tmp_path / "predictions.jsonl").write_text("\n".join(texts))
    data = Dataset.from_rows(
        [{"text": f"pet {i}", "kind": kind} for i, kind in enumerate(TRUTH)], input="text", expected="kind"
    )
    run = Runner(store).run(RecordedTask(path=str(tmp_path / "predictions.jsonl"), response="out"), data)
    assert run.digest == door.run.digest
    evaluation = Evaluator().evaluate(run, {"prediction": Prediction()})
    assert evaluation.digest == door.evaluation.digest


def test_commands_show_compare_and_report_what_was_saved(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    truth = ["cat", "dog"] * 10
    for name, predictions in {"old": ["cat"] * 20, "new": ["cat", "dog"] * 10}.items():
        evaluate(truth, predictions, metrics="accuracy").save(DirectoryStore(tmp_path / "store"), name)
    [row] = folder.json("show", "old")["metrics"]
    assert (row["value"], row["n"]) == (0.5, 20)
    wrong = folder.json("show", "old/predictions", "--below", "1", "--examples", "1")["rows"]["prediction"]
    assert [(row["_index_"], row["expected"], row["responses"]) for row in wrong] == [(1, "dog", ["cat"])]
    [pair] = folder.json("compare", "old", "new")["pairs"]
    assert (pair["difference"], pair["won"], pair["lost"]) == (0.5, 10, 0)
    folder.done("report", "new", "-o", tmp_path / "new.html")
    assert "new/predictions" in (tmp_path / "new.html").read_text()


VALUES = {
    "text": st.text(st.characters(codec="utf-8"), max_size=3),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
    "json": st.lists(st.integers(0, 3), max_size=2),
    "labels": st.lists(st.text(st.characters(codec="utf-8"), max_size=2), max_size=3),
}


@given(st.data())
def test_columns_and_rows_agree(data: st.DataObject) -> None:
    values = VALUES[data.draw(st.sampled_from(sorted(VALUES)))]
    pairs = data.draw(st.lists(st.tuples(st.none() | values, st.none() | values), min_size=1, max_size=8))
    truth, predictions = (list(column) for column in zip(*pairs, strict=True))
    result = evaluate(truth, predictions, metrics="accuracy")
    [row] = result.save(MemoryStore(), "x").aggregation.table().to_pylist()
    reported = result["accuracy"]
    assert row["value"] == (None if math.isnan(reported.value) else reported.value)
    assert (row["n_scored"], row["n_failed"], row["n_abstained"]) == (
        reported.n_scored,
        reported.n_failed,
        reported.n_abstained,
    )


def test_attributes_may_be_called_as_columns_of_our_own() -> None:
    for name in ("target", "replication", "status", "value"):
        result = evaluate([1, 0, 1, 1], [1, 1, 0, 1], by={name: ["x", "x", "y", "y"]}, metrics="accuracy")
        assert result["accuracy"].n == 4
        assert [row.by for row in result.rows[1:]] == [{name: "x"}, {name: "y"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": {0: ["a"], "0": ["b"]}}, "by: '0' occurs twice"),
        ({"metrics": "pass_at_k"}, "pass_at_k: give k; from Python as PassAtK"),
        ({"cluster": [[1]]}, "cluster: 'cluster' holds lists, objects or mixed values such as [1]"),
        ({"confidence": {0.5}}, "confidence is a set; give a list, an array or a column"),
    ],
)
def test_what_would_be_taken_wrongly_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        evaluate([1], [1], **arguments)
    assert message in str(raised.value)


def test_an_index_of_pandas_is_a_column_too() -> None:
    assert evaluate(pd.Index(["a", "b"]), ["a", "c"])["accuracy"].value == 0.5
    with pytest.raises(DataError, match="row 1: the weight 'weight' is no number"):
        evaluate(["a", "b"], ["a", "b"], weight=pd.Series([1, None], dtype="Int64"))


def test_large_whole_floats_are_numbers_and_half_floats_are_floats() -> None:
    assert evaluate([1e300, 2.0], [1e300, 2.0], metrics=Mean(column="truth"))["mean"].n == 2
    assert evaluate(np.array([1, 0], np.float16), np.array([1, 1], np.float16))["accuracy"].value == 0.5


def test_series_whose_rows_are_not_the_same_are_not_put_side_by_side() -> None:
    truth, said = pd.Series(["x", "y", "z"]), pd.Series(["z", "y", "x"], index=[2, 1, 0])
    with pytest.raises(SpecError, match="truth and predictions have different indexes; align them"):
        evaluate(truth, said)
    assert evaluate(truth, said.sort_index())["accuracy"].value == 1.0


def test_the_chosen_label_is_that_of_every_metric_given_by_name_that_looks_at_one_class() -> None:
    truth, predictions = ["yes", "no", "yes", "no"], ["yes", "yes", "no", "no"]
    names = ["accuracy", "recall", "roc_auc", "expected_calibration_error"]
    scores = {"yes": [0.9, 0.6, 0.4, 0.1]}
    result = evaluate(truth, predictions, metrics=names, label="yes", scores=scores)
    assert [result[name].value for name in names] == pytest.approx([0.5, 0.5, 0.75, 0.35])
    assert "scored_by=classes label=yes" in result["expected_calibration_error"].signature
    with pytest.raises(SpecError, match="label='yes': no metric given by name looks at one class"):
        evaluate(truth, predictions, label="yes", metrics="accuracy")


def test_what_is_saved_of_scores_is_graded_as_it_was(tmp_path: Path) -> None:
    result = evaluate(["a", "b"], ["a", "a"], scores={"a": [0.9, 0.6], "b": [0.1, 0.4]}, metrics="roc_auc")
    saved = result.save(DirectoryStore(tmp_path), "two")
    table = saved.tasks[0].evaluation.table("prediction")
    graded = result.results.tasks[0].evaluation.table("prediction")
    for name in ("confidence", "confidence_of"):
        assert table[name].to_pylist() == graded[name].to_pylist()


# Tables of other libraries


def test_arguments_may_be_columns_of_one_table() -> None:
    rows = {
        "label": ["cat", "dog", "dog", None],
        "model": ["cat", "dog", "cat", "dog"],
        "size": ["small", "large", "large", "small"],
        "w": [1.0, 2.0, 1.0, 1.0],
    }
    expected = evaluate(rows["label"], rows["model"], by={"size": rows["size"]}, weight=rows["w"])
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    for data in (rows, pa.table(rows), pd.DataFrame(rows), pl.DataFrame(rows), pl.DataFrame(rows).lazy()):
        found = evaluate("label", "model", by="size", weight="w", data=data)
        assert json.dumps(found.to_dict()) == json.dumps(expected.to_dict())
    both = evaluate("label", ["model", "size"], data=rows, metrics="accuracy").facts()  # type: ignore[attr-defined]
    assert {row["task"] for row in both["metrics"]} == {"model", "size"}
    with pytest.raises(SpecError, match=r"predictions: in the table no column is called 'modle' \(did you"):
        evaluate("label", "modle", data=rows)


def test_series_and_frames_of_polars_are_columns() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"y": ["a", "b", "b"], "p": ["a", "b", "a"], "g": ["u", "u", "v"], "a": [0.9, 0.2, 0.6]})
    frame = frame.with_columns(pl.col("g").cast(pl.Categorical), b=1 - pl.col("a"))
    lists = {name: frame[name].to_list() for name in frame.columns}
    expected = evaluate(
        lists["y"], lists["p"], by={"g": lists["g"]}, scores={"a": lists["a"], "b": lists["b"]}, metrics="log_loss"
    )
    found = evaluate(
        frame["y"], frame.select("p"), by=frame.select("g"), scores=frame.select("a", "b"), metrics="log_loss"
    )
    assert json.dumps(found.to_dict()) == json.dumps(expected.to_dict())
    with pytest.raises(SpecError, match="truth is a table with the columns y, p; give one of them"):
        evaluate(frame.select("y", "p"), frame["p"])


def test_a_relation_of_duckdb_is_evaluated() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i % 2 as label, i % 3 % 2 as model, i % 2 = 0 as even from range(30) t(i)")
    assert evaluate("label", "model", by="even", data=relation)["accuracy"].value == 0.5


def test_numbers_have_errors_by_default() -> None:
    assert [row.metric for row in evaluate([1.5, 2.0], [1.0, 2.5]).rows] == [
        "mean_absolute_error",
        "root_mean_squared_error",
        "r_squared",
    ]


def test_several_systems_are_compared_with_groups_and_scores() -> None:
    truth, said = ["yes", "no", "yes", "no"], {"old": ["yes"] * 4, "new": ["yes", "no", "yes", "yes"]}
    scores = {"old": [0.5] * 4, "new": [0.9, 0.1, 0.8, 0.7]}
    both = evaluate(truth, said, by={"sex": ["f", "m", "f", "m"]}, scores=scores, disparities="difference")
    facts = both.facts()
    values = {(row["task"], row["metric"]): row["value"] for row in facts["metrics"] if not row["by"]}
    assert (values["old", "accuracy"], values["new", "accuracy"]) == (0.5, 0.75)
    assert (values["old", "roc_auc"], values["new", "roc_auc"]) == (0.5, 1.0)
    assert (facts["comparison"]["pairs"][0]["won"], facts["comparison"]["pairs"][0]["lost"]) == (1, 0)
    assert {row["disparity"] for row in facts["disparities"]} == {"difference"}
    assert "new − old" in str(both)
    for wrong, message in (
        ({"predictions": {}}, "predictions is empty"),
        ({"predictions": {"truth": ["yes"] * 4}}, "none of them 'truth'"),
        ({"predictions": said, "scores": [0.5] * 4}, "mapping system → n numbers"),
        ({"predictions": said, "fairness": "equalized_odds"}, "equalized_odds compares groups; give by="),
    ):
        with pytest.raises(SpecError, match=message):
            evaluate(truth, **wrong)  # type: ignore[call-overload]


def test_results_of_arrays_are_compared() -> None:
    truth = ["a", "b", "b", "a"]
    one, other = (evaluate(truth, said) for said in (["a", "a", "a", "a"], ["a", "b", "b", "b"]))
    pairs = compare(one, other).pairs
    [pair] = [pair for pair in pairs if pair["metric"] == "accuracy"]
    assert (pair["won"], pair["lost"], pair["n_used"]) == (2, 1, 4)
    [f1, *_] = [pair for pair in pairs if pair["metric"] == "f_beta"]
    assert (f1["won"], f1["lost"], f1["n_used"]) == (None, None, 4)
    assert compare(one, other, labels=["old", "new"]).labels == ["old", "new"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"truth": ["b", "a", "b", "b"]}, "3 of 4 rows of a and b differ in truth, first at row 0; rows are paired by"),
        ({"truth": ["a", "b", "b", "b"]}, "1 of 4 rows of a and b differs in truth, first at row 3; "),
        ({"by": {"g": ["x", "x", "y", "y"]}}, "1 of 4 rows of a and b differs in g, first at row 1; "),
        ({"weight": [1, 2, 1, 1]}, "1 of 4 rows of a and b differs in weight, first at row 1; "),
        ({"cluster": [1, 1, 1, 2]}, "1 of 4 rows of a and b differs in cluster, first at row 3; "),
    ],
)
def test_results_of_other_rows_are_not_compared(other: dict[str, Any], message: str) -> None:
    arrays: dict[str, Any] = {"truth": ["a", "b", "b", "a"], "predictions": ["a", "a", "b", "b"], "metrics": "accuracy"}
    arrays |= {"by": {"g": ["x", "y", "y", "y"]}, "weight": [1, 1, 1, 1], "cluster": [1, 1, 1, 1]}
    one, changed = evaluate(**arrays), evaluate(**arrays | other)
    with pytest.raises(DataError, match=message):
        compare(one, changed)
    saved = one.save(MemoryStore(), "old").tasks[0].evaluation
    assert saved is not None
    with pytest.raises(DataError, match=message.replace("of a", "of old/predictions")):
        compare(saved, changed)
    with pytest.raises(DataError, match=message.replace("a and b", "x and z")):
        compare(one, evaluate(**arrays), changed, labels=["x", "y", "z"])


def test_one_metric_under_two_names_is_computed_once() -> None:
    assert len(evaluate([1, 0], [1, 1], metrics=["accuracy", "acc"]).rows) == 1


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_an_array_that_changes_later_changes_no_result(kind: Any) -> None:
    truth, predictions = np.arange(30).astype(kind), (np.arange(30) % 7).astype(kind)
    result, same = (evaluate(truth, predictions, metrics="mse") for _ in range(2))
    notes = same.notes
    truth[:], predictions[:] = 5, 5
    assert result.notes == notes
    assert result.save(MemoryStore(), "kept").aggregation.table()["value"].to_pylist() == [same["mse"].value]


def test_equal_rows_are_counted_in_columns_of_any_type() -> None:
    truth, predictions = [0.5, 0.5, 1.5, 2.5], [1, 1, 2, 2]
    assert "1 row of 4 equal an earlier row in every column; each counts" in evaluate(truth, predictions).notes
    assert not any("equal an earlier row" in note for note in evaluate(truth, [1, 2, 2, 2]).notes)
    assert not any("equal an earlier row" in note for note in evaluate([0.5, 1.5, 2.5, 3.5], predictions).notes)


def test_what_a_column_holds_depends_on_its_last_rows_too() -> None:
    classes = np.arange(3000.0) % 2
    assert evaluate(classes, classes[::-1]).target.kind == "binary"
    numbers = classes.copy()
    numbers[-1] = 0.5
    assert evaluate(numbers, classes).target.kind == "numeric"
    constant = np.ones(3000)
    assert "'predictions' is 1 in every row" in evaluate(classes, constant).notes
    constant[-1] = 0
    assert not any("in every row" in note for note in evaluate(classes, constant).notes)


def test_rows_without_a_finite_number_are_not_scored() -> None:
    truth, predictions = [1.5, np.inf, np.nan, 2.5, 3.5], [1.0, 1.0, np.inf, np.nan, -np.inf]
    row = evaluate(np.array(truth), np.array(predictions), metrics="mae")["mae"]
    assert (row.value, row.n_scored, row.n_failed, row.n_abstained) == (0.5, 1, 2, 2)
