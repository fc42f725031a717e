"""Columns of tables: types and metrics that follow from the data, and data that mean two things."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn import metrics as sk

from evaluand.core.errors import DataError, SpecError
from evaluand.predictions.evaluating import evaluate
from evaluand.predictions.result import SystemScores

LABEL = ["yes", "no", "yes", "no", "yes", "no"]
A = ["yes", "no", "no", "no", "yes", "yes"]
P = [0.9, 0.2, 0.4, 0.1, 0.8, 0.7]


def values(scores: SystemScores) -> dict[str, float]:
    """Metric → value of the first system over all rows."""
    first = scores.systems[0]
    rows = scores.facts()["metrics"]
    return {row["metric"]: row["value"] for row in rows if row["task"] == first and not row["by"]}


def notes(scores: SystemScores) -> str:
    return "\n".join(scores.notes)


def test_a_binary_target_with_scores_has_what_sklearn_computes() -> None:
    found = values(evaluate("label", "a", data={"label": LABEL, "a": A, "p": P}, scores=["p"]))
    truth, said = np.array(LABEL) == "yes", np.array(A) == "yes"
    assert found == pytest.approx(
        {
            "accuracy": sk.accuracy_score(truth, said),
            "f_beta": sk.f1_score(truth, said),
            "matthews_correlation": sk.matthews_corrcoef(truth, said),
            "roc_auc": sk.roc_auc_score(truth, P),
            "average_precision": sk.average_precision_score(truth, P),
            "brier": sk.brier_score_loss(truth, P),
        }
    )


def test_classes_numbers_and_sets_of_labels_each_have_their_metrics() -> None:
    classes, said = ["x", "y", "z", "x"] * 3, ["x", "y", "x", "y"] * 3
    found = values(evaluate("label", "a", data={"label": classes, "a": said}))
    assert found["f_beta"] == pytest.approx(sk.f1_score(classes, said, average="macro", zero_division=0))
    assert found["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(classes, said))
    numbers = values(evaluate("y", "m", data={"y": [1.5, 2.0, 4.0], "m": [1, 2, 3]}))
    assert numbers == pytest.approx(
        {"mean_absolute_error": 0.5, "root_mean_squared_error": (1.25 / 3) ** 0.5, "r_squared": 1 - 1.25 / 3.5}
    )
    sets = evaluate("tags", "m", data={"tags": [["a"], ["a", "b"]], "m": [["a"], ["b"]]}).facts()["metrics"]
    assert [row["value"] for row in sets] == [0.5, pytest.approx(0.8), pytest.approx(5 / 6), 0.25]


def test_integers_are_classes_if_few_and_numbers_if_many() -> None:
    few = evaluate("y", "m", data={"y": [1, 2, 3, 1], "m": [1, 2, 2, 1]})
    assert few.target.kind == "multiclass"
    assert "'y' holds 3 different integers, taken as classes; kind='numeric' takes them as numbers" in notes(few)
    assert evaluate("y", "m", data={"y": [1, 2, 3, 1], "m": [1, 2, 2, 1]}, kind="numeric").target.kind == "numeric"
    assert evaluate("y", "m", data={"y": [*range(30)], "m": [*range(30)]}).target.kind == "numeric"


def test_the_positive_class_is_taken_from_the_words_or_asked_for() -> None:
    assert evaluate("y", "m", data={"y": ["No", "Yes"], "m": ["No", "No"]}).target.positive == "Yes"
    animals: dict[str, Any] = {"y": ["cat", "dog"], "m": ["cat", "cat"], "p": [0.1, 0.9]}
    assert evaluate("y", "m", data=animals).target.positive is None
    assert evaluate("y", "m", data=animals, label="dog").target.positive == "dog"
    with pytest.raises(SpecError, match="'p' is the score of which class, 'cat' or 'dog'"):
        evaluate("y", "m", data=animals, scores=["p"])
    with pytest.raises(SpecError, match="has no class 'cow'; it has cat and dog"):
        evaluate("y", "m", data=animals, label="cow")


def test_scores_alone_are_ranked_and_decide_at_a_threshold() -> None:
    table = {"label": LABEL, "p": P}
    ranked = evaluate("label", data=table, scores=["p"])
    assert set(values(ranked)) == {"roc_auc", "average_precision", "brier"}
    with pytest.raises(SpecError, match="accuracy needs predictions"):
        evaluate("label", data=table, scores=["p"], metrics=["accuracy"])
    decided = evaluate("label", data=table, scores=["p"], threshold=0.75, metrics=["accuracy"])
    assert values(decided) == {"accuracy": pytest.approx(5 / 6)}


def test_scores_of_classes_predict_the_highest() -> None:
    table = {"y": ["a", "b", "c"], "p1": [0.7, 0.2, 0.1], "p2": [0.2, 0.5, 0.6], "p3": [0.1, 0.3, 0.3]}
    found = evaluate("y", data=table, scores=["a=p1", "b=p2", "c=p3"])
    assert values(found)["accuracy"] == pytest.approx(2 / 3)
    matrix = np.column_stack([table[name] for name in ("p1", "p2", "p3")])
    assert values(found)["roc_auc"] == pytest.approx(sk.roc_auc_score(table["y"], matrix, multi_class="ovr"))
    with pytest.raises(SpecError, match="'y' has 3 classes, so one score does not suffice"):
        evaluate("y", data=table, scores=["p1"])
    with pytest.raises(SpecError, match=r"no score of 'c'; give scores=\['c=COLUMN'\]"):
        evaluate("y", data=table, scores=["a=p1", "b=p2"])
    with pytest.raises(SpecError, match="has no class 'd'; it has a, b, c"):
        evaluate("y", data=table, scores=["d=p1"])


def test_scores_belong_to_the_predictions_that_they_are_named_after() -> None:
    table = {"label": LABEL, "a": A, "b": A, "p_a": P, "p_b": [1 - p for p in P]}
    crossed = evaluate("label", ["a", "b"], data=table, scores=["p_b", "p_a"])
    assert "'p_b' belongs to 'b', 'p_a' belongs to 'a'" in notes(crossed)
    assert values(crossed)["roc_auc"] == pytest.approx(sk.roc_auc_score(np.array(LABEL) == "yes", P))
    with pytest.raises(SpecError, match="which predictions do they belong to, a or b"):
        evaluate("label", ["a", "b"], data=table | {"s": P}, scores=["s"])


def test_confidences_of_predictions_are_recognised() -> None:
    confidence = [p if said == "yes" else 1 - p for p, said in zip(P, A, strict=True)]
    many = {"label": LABEL * 5, "a": A * 5, "c": [max(c, 0.5) for c in confidence] * 5}
    doubtful = evaluate("label", "a", data=many, scores=["c"])
    assert "if it is the confidence of the prediction" in notes(doubtful)
    right = evaluate("label", "a", data={"label": LABEL, "a": A, "c": confidence}, confidence=["c"])
    assert values(right)["roc_auc"] == pytest.approx(sk.roc_auc_score(np.array(LABEL) == "yes", P))


def test_conversions_that_can_mean_one_thing_only_are_made_and_noted() -> None:
    cases: list[tuple[dict[str, Any], float, str]] = [
        ({"y": [True, False], "m": [1, 1]}, 0.5, "true is taken as 1"),
        ({"y": [1, 0], "m": [True, False]}, 1.0, "true is taken as 1"),
        ({"y": [True, False], "m": ["True", "false "]}, 1.0, "true and false written as text"),
        ({"y": [1, 2], "m": ["1", "3"]}, 0.5, "has numbers written as text"),
        ({"y": ["1", "2"], "m": [1, 3]}, 0.5, "has numbers written as text"),
        ({"y": [1, 2, 1], "m": ["1", "NaN", "1"]}, 1.0, "1 cell with 'NaN', taken as missing"),
    ]
    for table, accuracy, note in cases:
        scores = evaluate("y", "m", data=table, metrics=["accuracy"])
        assert values(scores) == {"accuracy": accuracy}
        assert note in notes(scores)


def test_what_can_never_be_equal_is_refused() -> None:
    with pytest.raises(SpecError, match="'y' holds text such as 'cat', 'm' holds integers such as 3"):
        evaluate("y", "m", data={"y": ["cat", "dog"], "m": [3, 4]})
    with pytest.raises(DataError, match=r"the table\[1\]: 'm' is 'about 2' where a number is needed"):
        evaluate("y", "m", data={"y": [1.5, 2], "m": ["1", "about 2"]})
    with pytest.raises(SpecError, match=r"^predictions=.*: is the column of truth; name"):
        evaluate("y", "y", data={"y": [1, 2]})


def test_doubtful_data_are_noted() -> None:
    spelt = evaluate("y", "m", data={"y": ["Yes", "No"], "m": ["yes", "No"]})
    assert "'Yes' and 'yes' differ in spelling only" in notes(spelt)
    assert "is it a copy of the truth?" in notes(evaluate("y", "m", data={"y": ["a", "b"], "m": ["a", "b"]}))
    assert "'m' is 'a' in every row" in notes(evaluate("y", "m", data={"y": ["a", "b"], "m": ["a", "a"]}))
    assert "has one class only, 'a'" in notes(evaluate("y", "m", data={"y": ["a", "a"], "m": ["a", "b"]}))
    one = {"y": ["a", None, "b", "a"], "m": ["a", "b", "a", "b"], "id": [1, 1, 2, 3]}
    assert "1 row of 4 has the 'id' of an earlier row, such as 1, and counts too; id='id' refuses it" in notes(
        evaluate("y", "m", data=one)
    )
    missing = evaluate("y", "m", data={"y": ["a", None, "b"], "m": ["a", "b", None]})
    assert "1 row of 3 has no 'y' and is not scored" in notes(missing)
    assert "1 row of 3 without a prediction" in notes(missing)
    [row] = [row for row in missing.facts()["metrics"] if row["metric"] == "accuracy"]
    assert (row["n"], row["n_scored"], row["n_abstained"]) == (3, 1, 2)
    assert "2 rows of 3 equal an earlier row" in notes(
        evaluate("y", "m", data={"id": [1, 1, 1], "y": ["a"] * 3, "m": ["b"] * 3})
    )
    texts = evaluate("y", "m", data={"y": [f"text {i}" for i in range(50)], "m": ["text 1"] * 50})
    assert (texts.target.kind, [*values(texts)]) == ("text", ["accuracy"])


def test_files_are_joined_by_id(tmp_path: Path) -> None:
    truth, a, b = (tmp_path / name for name in ("truth.csv", "a.csv", "b.csv"))
    truth.write_text("id,label\n1,x\n2,y\n3,x\n")
    a.write_text("id,said\n3,x\n1,x\n9,x\n")
    b.write_text("id,said\n1,y\n2,y\n3,y\n")
    scores = evaluate("label", "said", data=[str(a), str(b)], truth_file=str(truth), metrics=["accuracy"])
    assert scores.systems == ["a", "b"]
    rows = {row["task"]: (row["value"], row["n_scored"], row["n"]) for row in scores.facts()["metrics"]}
    assert rows == {"a": (1.0, 2, 3), "b": (pytest.approx(1 / 3), 3, 3)}
    assert "rows are joined by 'id'" in notes(scores)
    assert f"1 row of {a} not in {truth}, such as id '9': has no truth and is left out" in notes(scores)
    b.write_text("id,said,label\n1,y,x\n2,y,x\n3,y,x\n")
    with pytest.raises(DataError, match=r"b.csv:3: 'label' is 'x' here and 'y' in .*truth.csv; it differs in 1 row"):
        evaluate("label", "said", data=[str(b)], truth_file=str(truth))
    b.write_text("id,said\n1,y\n1,x\n")
    with pytest.raises(DataError, match=r"b.csv:3: id '1' occurs twice"):
        evaluate("label", "said", data=[str(b)], truth_file=str(truth), id="id")
    b.write_text("said\nx\n")
    with pytest.raises(SpecError, match="nothing says which rows of"):
        evaluate("label", "said", data=[str(b)], truth_file=str(truth))


def test_tables_in_memory_are_joined_as_files_are(tmp_path: Path) -> None:
    truth = {"id": [1, 2, 3, 4], "y": ["a", "b", "a", "b"]}
    one = {"id": [4, 3, 2, 1], "p": ["b", "a", "b", "b"]}
    two = {"id": [3, 1, 4, 2], "p": ["b", "a", "b", "a"]}
    for name, table in (("truth", truth), ("one", one), ("two", two)):
        lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    expected = evaluate("y", "p", data=files, truth_file=tmp_path / "truth.csv", id="id", metrics=["accuracy"])
    frames = [pa.table(one), pa.table(two)]
    for tables, id in ((frames, "id"), (frames, None), ([one, two], None)):
        found = evaluate("y", "p", data=tables, truth_file=truth, id=id, metrics=["accuracy"])
        assert [row["value"] for row in found.facts()["metrics"]] == [0.75, 0.5]
        assert found.systems == ["table 1", "table 2"]
    assert [row["value"] for row in expected.facts()["metrics"]] == [0.75, 0.5]
    assert values(evaluate("y", "p", data=pa.table(one), truth_file=truth))["accuracy"] == 0.75
    assert values(evaluate("y", "p", data=[one], truth_file=truth))["accuracy"] == 0.75


def test_one_metric_under_two_names_is_computed_once() -> None:
    found = evaluate("label", "a", data={"label": LABEL, "a": A}, metrics=["accuracy", "acc"]).facts()["metrics"]
    assert len(found) == 1


def test_files_without_rows_or_truth_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("label,a\n")
    with pytest.raises(DataError, match="there are no rows"):
        evaluate("label", "a", data=path)
    path.write_text("label,a\n,x\n,y\n")
    with pytest.raises(SpecError, match=r"every cell of 'label' in .* is empty"):
        evaluate("label", "a", data=path)


def test_weights_and_groups_are_used() -> None:
    table = pa.table(
        {"y": ["a", "a", "b"], "m": ["a", "b", "b"], "w": [1.0, 2.0, 1.0], "g": ["u", "u", "v"], "h": [1, 2, 1]}
    )
    assert values(evaluate("y", "m", data=table, metrics=["accuracy"], weight="w")) == {"accuracy": 0.5}
    crossed = evaluate("y", "m", data=table, metrics=["accuracy"], by=["g,h"]).facts()["metrics"]
    assert [row["by"] for row in crossed] == [{}, {"g": "u", "h": "1"}, {"g": "u", "h": "2"}, {"g": "v", "h": "1"}]
    with pytest.raises(SpecError, match=r"^by: in the table no column is called 'sex'"):
        evaluate("y", "m", data=table, by="sex")


def test_thousands_of_classes_and_rows_do_not_stall() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 1500, 6000)
    said = np.where(rng.random(6000) < 0.5, truth, 0)
    table = {"y": [f"c{each}" for each in truth], "m": [f"c{each}" for each in said]}
    found = evaluate("y", "m", data=table, intervals=False, kind="multiclass")
    assert values(found)["accuracy"] == pytest.approx(float((truth == said).mean()))


def test_integers_written_as_floats_are_classes() -> None:
    two = evaluate("y", "m", data={"y": [1, 0, 1, 0, 1], "m": [1.0, 0.0, None, 1.0, 1.0]})
    assert (two.target.kind, two.target.positive) == ("binary", 1)
    assert "integers written as floats in 'm' are taken as classes" in notes(two)
    four = evaluate("y", "m", data={"y": [1.0, 2.0, 3.0, 4.0, None], "m": [1.0, 2.0, 3.0, 1.0, 1.0]})
    assert four.target.kind == "multiclass"
    assert values(four)["accuracy"] == 0.75
    assert "'y' and 'm'" in notes(four)
    numbers = evaluate("y", "m", data={"y": [1.0, 2.0, 3.0], "m": [1.0, 2.0, 2.0]}, kind="numeric")
    assert numbers.target.kind == "numeric"
    many = [float(number) for number in range(30)]
    assert evaluate("y", "m", data={"y": many, "m": many[::-1]}).target.kind == "numeric"


def test_words_for_a_missing_number_are_missing_in_numbers_and_noted_in_labels() -> None:
    truth, said = ["1.5", "2.5", "NaN", "4", "5"], ["2", "2.5", "3", "NaN", "4.5"]
    found = evaluate("y", "m", data={"y": truth, "m": said})
    assert found.target.kind == "numeric"
    assert values(found)["mean_absolute_error"] == pytest.approx(1 / 3)
    assert "'y' has 1 cell with 'NaN', taken as missing" in notes(found)
    with pytest.raises(DataError, match="'inf' where a number is needed"):
        evaluate("y", "m", data={"y": ["1.5", "2.5"], "m": ["1.5", "inf"]})
    labels = evaluate("y", "m", data={"y": ["cat", "None", "N/A", "cat"], "m": ["cat"] * 4})
    assert "'y' has 2 cells with 'None', 'N/A', counted as a class; if they mean a missing" in notes(labels)


def test_probabilities_given_as_predictions_name_the_option_of_scores() -> None:
    table = {"truth": [0, 1, 0, 1], "p": [0.1, 0.9, 0.6, 0.7]}
    assert "give them as scores=… instead of predictions=…" in notes(evaluate("truth", "p", data=table))
    with pytest.raises(SpecError, match=r"accuracy: real numbers are hardly ever equal; .* give them as scores=…"):
        evaluate("truth", "p", data=table, metrics=["accuracy"])
    with pytest.raises(SpecError, match="kind='binary': 'truth' holds integers, its predictions real numbers"):
        evaluate("truth", "p", data=table, kind="binary")
    with pytest.raises(SpecError, match="'y' holds integers with 3 different values"):
        evaluate("y", "m", data={"y": [1, 2, 3], "m": [4, 5, 6]}, kind="binary")


def test_a_score_named_after_a_class_proposes_that_class() -> None:
    table = {"y": ["benign", "malignant"] * 3, "prob_malignant": [0.1, 0.9] * 3}
    with pytest.raises(SpecError, match=r"Give label='malignant', or scores=\['malignant=prob_malignant'\]"):
        evaluate("y", data=table, scores="prob_malignant")


def test_a_gate_on_a_group_names_the_option_that_groups() -> None:
    table = {"label": LABEL, "a": A, "size": ["small", "large"] * 3}
    with pytest.raises(SpecError, match="values are not grouped by 'size'; add by='size'"):
        evaluate("label", "a", data=table, gates=["accuracy[size=small] >= 0.1"])
    assert evaluate("label", "a", data=table, by="size", gates=["accuracy[size=small] >= 0.1"]).gates


def test_a_named_pipe_is_read_once_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("y,m\na,a\nb,a\n",))
    writer.start()
    assert values(evaluate("y", "m", data=pipe, metrics=["accuracy"])) == {"accuracy": 0.5}
    writer.join()


def test_the_order_of_rows_does_not_move_an_interval() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(50, 10, 100).round(2)
    table = {"y": truth, "p": (truth + rng.normal(0, 6, 100)).round(2), "w": rng.choice([1, 2, 5, 10], 100)}
    order = rng.permutation(100)
    one, other = (
        evaluate("y", "p", data=rows, kind="numeric", weight="w", metrics=["r2"]).facts()["metrics"][0]
        for rows in (table, {name: column[order] for name, column in table.items()})
    )
    assert [one[name] for name in ("value", "low", "high")] == pytest.approx(
        [other[name] for name in ("value", "low", "high")], abs=1e-12
    )
