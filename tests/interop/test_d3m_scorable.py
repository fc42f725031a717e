"""What cannot be scored is reported before anything is predicted, in the words and at the place of the document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from support.commands import Folder as Commands

from evaluand.core.errors import DataError
from evaluand.data.dataset import Dataset
from evaluand.interop.d3m import compute_metric
from evaluand.interop.d3m.solving import solve
from evaluand.interop.d3m.write import write_folder
from evaluand.predictions import DEFINITIONS
from evaluand.predictions.problem.problem import Criterion, Division, Problem, Target, TargetDataset, TaskType
from evaluand.store.store import MemoryStore

F1 = {"metric": "f1", "posLabel": "bad"}


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    """A problem of two classes, written as a folder."""
    rows = [{"income": float(i % 7), "status": "bad" if i % 7 < 3 else "good"} for i in range(40)]
    target = Target(index=0, resource="learningData", column=2, name="status")
    problem = Problem(
        id="loans_problem",
        task_types=(TaskType.CLASSIFICATION,),
        datasets=(TargetDataset(id="loans_dataset", targets=(target,)),),
        division=Division(test=0.25, seed=1),
        criteria=(Criterion(metric="f1", positive="bad"),),
    )
    write_folder(tmp_path / "loans", problem, Dataset.from_rows(rows, expected="status"), version="4.1.1")
    return tmp_path / "loans"


def change(loans: Path, *metrics: dict[str, Any], alter: Callable[[Any], object] = lambda document: None) -> None:
    [path] = loans.rglob("problemDoc.json")
    document = json.loads(path.read_text())
    if metrics:
        document["inputs"]["performanceMetrics"] = list(metrics)
    alter(document)
    path.write_text(json.dumps(document))


def checked(path: Path, code: int) -> dict[str, Any]:
    result = Commands(path.parent).call("problem", "check", path, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("metric", "key", "code", "reported"),
    [
        ({"metric": "f1"}, ".posLabel", "needs_positive", "f1 of status: say which label is positive"),
        ({"metric": "f1", "posLabel": "BAD"}, ".posLabel", "needs_positive", "'BAD' is none of 'bad' and 'good'"),
        ({"metric": "f1", "posLabel": ""}, ".posLabel", "needs_positive", "'' is none of 'bad' and 'good'"),
        ({"metric": "hitsAtK"}, ".K", "cannot_be_scored", "hitsAtK: needs k (K)"),
        ({"metric": "meanSquaredError"}, ".metric", "not_applicable", "meanSquaredError needs numbers"),
        ({"metric": "other", "specifyOther": "count"}, ".metric", "not_applicable", "reads no prediction"),
    ],
)
def test_check_and_solve_tell_of_metrics_that_do_not_fit(
    loans: Path, metric: dict[str, Any], key: str, code: str, reported: str
) -> None:
    change(loans, {"metric": "accuracy"}, metric)
    [fault] = checked(loans, 1)["faults"]
    assert fault["where"].endswith(f"problemDoc.json: inputs.performanceMetrics[1]{key}")
    assert (fault["code"], reported in fault["message"]) == (code, True)
    with pytest.raises(DataError) as caught:
        solve(loans, LogisticRegression())
    assert [each.message for each in caught.value.faults] == [fault["message"]]
    assert not [*loans.rglob("predictions*.csv")]


def test_a_problem_without_targets_is_incomplete(loans: Path) -> None:
    change(loans, alter=lambda document: document["inputs"]["data"][0].update(targets=[]))
    [fault] = checked(loans, 1)["faults"]
    assert (fault["code"], "has no target" in fault["message"]) == ("empty", True)


def test_an_empty_value_of_a_tested_row_is_reported_with_its_line(loans: Path) -> None:
    [splits], [table] = loans.rglob("dataSplits.csv"), loans.rglob("learningData.csv")
    tested = next(line.split(",")[0] for line in splits.read_text().splitlines() if "TEST" in line)
    lines = table.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.split(",")[0] == tested)
    lines[at] = lines[at].rpartition(",")[0] + ","
    table.write_text("\n".join(lines) + "\n")
    [fault] = checked(loans, 1)["faults"]
    assert (fault["code"], f"learningData.csv:{at + 1}, status" in fault["where"]) == ("empty_value", True)


def test_the_same_metric_twice_is_noted(loans: Path) -> None:
    change(loans, F1, F1)
    assert [note["code"] for note in checked(loans, 0)["notes"] if "Metrics[1]" in note["where"]] == ["twice"]


def test_areas_and_labels_are_solved_by_one_file(loans: Path) -> None:
    change(loans, {"metric": "rocAuc"}, {"metric": "accuracy"}, F1)
    assert checked(loans, 0)["ok"]
    scores = solve(loans, LogisticRegression())
    assert [scores[name].metric for name in ("rocAuc", "accuracy", "f1")] == [row.metric for row in scores.rows]
    assert all(row.value == 1.0 for row in scores.rows)
    kept = scores.save(MemoryStore(), "mine").aggregation.table().to_pylist()
    assert [row["value"] for row in kept] == [1.0, 1.0, 1.0]


def test_a_document_without_its_data_is_checked_alone(loans: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    [path] = loans.rglob("problemDoc.json")
    alone = tmp_path_factory.mktemp("elsewhere") / "problem"
    alone.mkdir()
    (alone / "problemDoc.json").write_text(path.read_text())
    found = checked(alone / "problemDoc.json", 0)
    assert [note["code"] for note in found["notes"]][1:] == ["no_data", "no_data"]
    assert "is a valid document" in Commands(alone).done("problem", "check", alone / "problemDoc.json")


def test_a_document_of_an_unknown_later_version_or_another_shape_has_one_fault(loans: Path, tmp_path: Path) -> None:
    change(loans, alter=lambda document: document["about"].update(problemSchemaVersion="5.0"))
    assert [fault["code"] for fault in checked(loans, 1)["faults"]] == ["unknown_version"]
    (tmp_path / "list.json").write_text("[]")
    [fault] = checked(tmp_path / "list.json", 1)["faults"]
    assert (fault["where"].endswith("list.json"), fault["code"]) == (True, "wrong_type")


@pytest.mark.parametrize(
    ("name", "meant"), [("F1_MACRO", "f1Macro"), ("JACCARD_SIMILARITY_SCORE", "jaccardSimilarityScore")]
)
def test_metrics_are_known_by_the_names_of_both_layouts(name: str, meant: str) -> None:
    truth = {"d3mIndex": [0, 1, 2], "y": ["0", "1", "1"]}
    predictions = {"d3mIndex": [0, 1, 2], "y": ["1", "1", "1"]}
    assert compute_metric(name, truth, predictions, targets="y") == compute_metric(
        meant, truth, predictions, targets="y"
    )
    with pytest.raises(DataError, match=r"there is no metric 'f1Makro' \(did you mean 'f1Macro'\?\)"):
        compute_metric("f1Makro", truth, predictions, targets="y")


def test_definitions_are_shown_by_names() -> None:
    shown = repr(DEFINITIONS)
    assert len(shown) < 3000
    assert shown.splitlines()[-1] == "coco: object_detection_average_precision"
