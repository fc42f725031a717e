"""Predictions scored from files: strict reading, the parts of a split, scores.csv, and the run that is kept."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, hamming_loss, mean_absolute_error, root_mean_squared_error
from support.commands import Folder as Commands
from support.places import ROOT_FOLDER, VECTORS_FOLDER, needs
from support.problem_scores import graded, noted
from support.thinned import thinned

from evaluand.comparison import compare
from evaluand.core.errors import DataError, SpecError, TaskError
from evaluand.data.dataset import Dataset
from evaluand.data.split import Folds
from evaluand.interop.d3m.folder import open_folder
from evaluand.interop.d3m.solving import solve
from evaluand.interop.d3m.write import write_folder
from evaluand.predictions.problem.problem import Criterion, Division, Problem, SubType, Target, TargetDataset, TaskType
from evaluand.predictions.problem.sides import CellFault
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import score, scores_table, write_scores_file
from evaluand.store.store import MemoryStore

VECTORS = VECTORS_FOLDER / "d3m" / "problems"
needs_vectors = needs(VECTORS)
SEED = VECTORS / "object_detection_seed"
PLANTS = VECTORS / "1491_one_hundred_plants_margin"

TRUTH = "d3mIndex,label\n0,cat\n1,dog\n2,dog\n3,cat\n"
RIGHT = "d3mIndex,label\n0,cat\n1,dog\n2,cat\n3,cat\n"


def document(*metrics: Any, task: str = "classification", sub: str = "binary", **more: Any) -> dict[str, Any]:
    targets = [
        {"targetIndex": i, "resID": "0", "colIndex": 1 + i, "colName": name}
        for i, name in enumerate(more.get("targets", ["label"]))
    ]
    return {
        "about": {
            "problemID": "p_problem",
            "problemName": "a problem",
            "taskType": task,
            **({"taskSubType": sub} if sub else {}),
            "problemVersion": "1.0",
            "problemSchemaVersion": "3.1.1",
        },
        "inputs": {
            "data": [{"datasetID": "p_dataset", "targets": targets}],
            "dataSplits": {"method": "holdOut", "testSize": 0.5, "randomSeed": 7},
            "performanceMetrics": [{"metric": one} if isinstance(one, str) else one for one in metrics],
        },
        "expectedOutputs": {},
    }


class Files:
    """A problem's document beside its truth and some predictions."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.problem = place / "problemDoc.json"
        self.truth, self.predictions = place / "targets.csv", place / "predictions.csv"

    def score(self, truth: str | bytes, predictions: str | bytes, *metrics: Any, **more: Any) -> SystemScores:
        definition = more.pop("definition", None)
        self.problem.write_text(json.dumps(document(*metrics or ("accuracy",), **more)))
        for path, text in ((self.truth, truth), (self.predictions, predictions)):
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        return score(self.problem, self.predictions, self.truth, definition=definition)

    def faults(self, predictions: str | bytes, truth: str = TRUTH, *metrics: Any, **more: Any) -> list[Any]:
        """(code, line, column) of everything wrong with predictions."""
        with pytest.raises(DataError) as error:
            self.score(truth, predictions, *metrics, **more)
        assert all(isinstance(fault, CellFault) and fault.file for fault in error.value.faults)
        return [(fault.code, fault.line, fault.column) for fault in error.value.faults]  # type: ignore[attr-defined]

    def notes(self, predictions: str | bytes) -> list[str]:
        found = self.score(TRUTH, predictions)
        assert found.rows[0].value == 0.75
        return [note.code for note in noted(found)]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# The vectors


@needs_vectors
@pytest.mark.parametrize("name", ["185_baseball", PLANTS.name, "22_handgeometry"])
def test_the_problems_of_nist_have_their_expected_values(name: str, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    [reported] = Commands(tmp_path).json("score", VECTORS / name, "--out", out)["metrics"]
    expected = float((VECTORS / name / "expectedResult.txt").read_text())
    assert math.isclose(reported["value"], expected, rel_tol=1e-12)
    mine, theirs = ([*csv.DictReader(path.read_text().splitlines())] for path in (out, VECTORS / name / "scores.csv"))
    assert [{**row, "value": ""} for row in mine] == [{**row, "value": ""} for row in theirs]
    assert math.isclose(float(mine[0]["value"]), expected, rel_tol=1e-12)


@needs_vectors
def test_every_bad_file_of_nist_is_judged_as_expected() -> None:
    folder = VECTORS / "bad_predictions_1491"
    for case in json.loads((folder / "expected.json").read_text()):
        try:
            [row] = score(PLANTS, folder / case["file"]).rows
            expected = case.get("value_f1Macro") or row.value
        except DataError as error:
            assert (case["valid"], [fault for fault in error.faults if not fault.code]) == (False, []), case  # noqa: PT017
        else:
            assert case["valid"], case
            assert math.isclose(row.value, expected, rel_tol=1e-12)


@needs_vectors
@pytest.mark.parametrize(
    ("file", "definition", "expected"),
    [
        ("predictions.csv", None, 0.125),
        ("predictions.csv", "3.1.1", 0.125),
        ("predictions_single_quotes.csv", None, 0.125),
        ("predictions_noconfidence.csv", "3.1.1", 0.0625),
    ],
)
def test_the_detection_example_has_the_published_values(file: str, definition: str | None, expected: float) -> None:
    assert [row.value for row in score(SEED, SEED / file, definition=definition).rows] == [expected]


@needs_vectors
def test_a_dataset_is_a_truth_like_a_file_of_targets() -> None:
    problem, predictions = SEED / "od_problem" / "problemDoc.json", SEED / "predictions.csv"
    found = {score(problem, predictions, truth).rows[0].value for truth in (SEED / "od_dataset", SEED / "targets.csv")}
    assert found == {0.125}


# Reading


def test_right_predictions_have_no_notes(files: Files) -> None:
    assert files.notes(RIGHT) == []


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (RIGHT.replace("\n", "\r\n"), "line_ends"),
        ("\ufeff" + RIGHT, "byte_order_mark"),
        (RIGHT.replace("2,", "2.0,"), "index_as_real"),
        ("label,d3mIndex\ncat,0\ndog,1\ncat,2\ncat,3\n", "other_order"),
        (RIGHT.replace("2,cat", "2,cow"), "unknown_label"),
        ("d3mIndex,label\n0,'cat'\n1,'dog'\n2,'cat'\n3,'cat'\n", "single_quotes"),
    ],
)
def test_what_is_odd_is_read_with_a_note(files: Files, text: str, note: str) -> None:
    assert files.notes(text) == [note]


@pytest.mark.parametrize("name", ["confidence", "Confidence", "CONFIDENCE"])
def test_a_confidence_may_be_written_in_any_case(files: Files, name: str) -> None:
    lines = RIGHT.splitlines()
    assert files.notes("\n".join([f"{lines[0]},{name}", *(f"{line},0.5" for line in lines[1:])])) == []


def test_rows_may_stand_in_any_order_and_cells_in_quotes(files: Files) -> None:
    lines = RIGHT.splitlines()
    assert files.notes("\n".join([lines[0], *reversed(lines[1:])])) == []
    assert files.notes(RIGHT.replace("cat", '"cat"')) == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", [("empty_file", None, None)]),
        ("\ufeff", [("empty_file", None, None)]),
        ("d3mIndex,label\n", [("no_rows", None, None)]),
        (RIGHT.replace("label", "Label"), [("missing_column", None, "label"), ("unexpected_column", None, "Label")]),
        (RIGHT.replace("d3mIndex,label", "label,label"), [("twice_column", 1, None)]),
        (RIGHT + "4,cat\n", [("extra_row", 6, "d3mIndex")]),
        (RIGHT + "1,dog\n", [("duplicate_row", 6, "d3mIndex")]),
        (RIGHT.replace("1,dog\n", ""), [("missing_row", None, "d3mIndex")]),
        (RIGHT.replace("1,dog", "1,"), [("empty_value", 3, "label")]),
        (RIGHT.replace("1,dog", ",dog"), [("empty_index", 3, "d3mIndex")]),
        (RIGHT.replace("1,dog", "one,dog"), [("index_type", 3, "d3mIndex")]),
        (RIGHT.replace("1,dog", "1,dog,1"), [("ragged_row", 3, None)]),
        (RIGHT.replace("1,dog", '1,"dog'), [("bad_quoting", 3, None)]),
        (RIGHT.encode().replace(b"dog", b"d\xf6g"), [("not_utf8", 3, None)]),
        (RIGHT.encode("utf-16"), [("not_utf8", None, None)]),
        (
            RIGHT.replace("1,dog", "x,dog").replace("2,cat", "9,cat").replace("3,cat", "0,cat"),
            [("index_type", 3, "d3mIndex"), ("extra_row", 4, "d3mIndex"), ("duplicate_row", 5, "d3mIndex")],
        ),
    ],
)
def test_every_fault_is_reported_with_code_line_and_column(files: Files, text: str | bytes, faults: list[Any]) -> None:
    if not text:
        files.predictions.write_bytes(b"")
    if isinstance(text, bytes) or "one" not in text:
        assert files.faults(text)[: len(faults)] == faults
    else:
        assert files.faults(text) == faults


def test_two_columns_of_confidence_are_one_too_many(files: Files) -> None:
    text = "\n".join(f"{line},1,1" for line in RIGHT.splitlines()).replace("label,1,1", "label,confidence,Confidence")
    assert files.faults(text) == [("twice_column", None, "Confidence")]


@pytest.mark.parametrize(
    ("cell", "code"), [("nan", "not_finite"), ("-inf", "not_finite"), ("a", "wrong_type"), ("0x10", "wrong_type")]
)
def test_numbers_have_to_be_finite_numbers(files: Files, cell: str, code: str) -> None:
    truth = "d3mIndex,size\n0,1.5\n1,2\n"
    faults = files.faults(
        f"d3mIndex,size\n0,1\n1,{cell}\n",
        truth,
        "meanSquaredError",
        task="regression",
        sub="univariate",
        targets=["size"],
    )
    assert faults == [(code, 3, "size")]


def test_many_faults_are_counted_and_the_first_reported(files: Files) -> None:
    rows = range(500)
    truth, text = (f"d3mIndex,label\n{''.join(f'{row},{cell}' + chr(10) for row in rows)}" for cell in ("cat", ""))
    found = files.faults(text, truth)
    assert len(found) == 101
    assert found[0] == ("empty_value", 2, "label")
    assert found[-1] == ("empty_value", None, "label")


def test_names_of_rows_may_be_text(files: Files) -> None:
    assert files.score("d3mIndex,label\na,1\nb,2\n", "d3mIndex,label\nb,2\na,3\n").rows[0].value == 0.5


def test_what_is_wrong_with_the_truth_is_reported_of_the_truth(files: Files) -> None:
    for text, code in (("d3mIndex,label\n0,cat\n0,dog\n", "duplicate_row"), ("", "empty_file")):
        with pytest.raises(DataError) as error:
            files.score(text, RIGHT)
        assert [(fault.code, Path(fault.file or fault.where).name) for fault in error.value.faults] == [  # type: ignore[attr-defined]
            (code, "targets.csv")
        ]


def test_files_that_are_none_and_files_given_twice_are_reported_as_such(files: Files, tmp_path: Path) -> None:
    files.score(TRUTH, RIGHT)
    with pytest.raises(DataError, match="is a folder; name a file"):
        score(files.problem, tmp_path, files.truth)
    with pytest.raises(SpecError, match="is given twice"):
        score(files.problem, [files.predictions, files.predictions], files.truth)
    with pytest.raises(DataError, match='save the file with ","'):
        files.score(TRUTH, RIGHT.replace(",", ";"))


@pytest.mark.parametrize("name", ["../x", "<script>alert(1)</script>", "confidence", "=cmd()", "a b"])
def test_a_target_may_have_any_name(files: Files, tmp_path: Path, name: str) -> None:
    found = files.score(TRUTH.replace("label", name), RIGHT.replace("label", name), targets=[name])
    assert [(row.target, row.value) for row in found.rows] == [(name, 0.75)]
    commands = Commands(tmp_path)
    given = ("score", files.problem, "--predictions", files.predictions, "--truth", files.truth)
    commands.done(*given, "--report", tmp_path / "r.html")
    assert "<script>alert" not in (tmp_path / "r.html").read_text()


def test_a_split_that_tests_nothing_has_nothing_to_score(tmp_path: Path) -> None:
    folder = open_folder(folder_of(tmp_path / "numbers"))
    splits = folder.document.parent / "dataSplits.csv"
    splits.write_text(splits.read_text().replace("TEST", "TRAIN"))
    folder.predictions_path.write_text(predicted([0]))
    with pytest.raises(SpecError, match="the split tests no row"):
        score(tmp_path / "numbers")


def test_an_index_may_be_any_number_of_64_bits_and_a_longer_one_is_a_name(files: Files) -> None:
    for first, second in ((2**63 - 1, -(2**63)), (2**63, 10**30)):
        text = f"d3mIndex,label\n{first},cat\n{second},dog\n"
        assert files.score(text, text).rows[0].value == 1.0
        assert files.score(text, text.replace("cat", '"cat"')).rows[0].value == 1.0
    [code] = {code for code, _, _ in files.faults(f"{RIGHT}{2**63},cat\n")}
    assert code == "index_type"


def test_what_the_judge_refuses_is_reported_by_its_line(files: Files) -> None:
    truth = "d3mIndex,label\n0,1\n0,2\n1,\n"
    problem = {"targets": ["label"], "sub": "multiLabel"}
    with pytest.raises(DataError) as error:
        files.score(truth, "d3mIndex,label\n1,2\n0,\n0,1\n", "hammingLoss", **problem)
    assert [(fault.code, fault.line) for fault in error.value.faults] == [("empty_value", 3)]  # type: ignore[attr-defined]


def test_without_metrics_truth_or_predictions_nothing_is_scored(files: Files, tmp_path: Path) -> None:
    files.score(TRUTH, RIGHT)
    files.problem.write_text(json.dumps(document()))
    with pytest.raises(SpecError, match="no metric"):
        score(files.problem, files.predictions, files.truth)
    files.problem.write_text(json.dumps(document("accuracy")))
    files.predictions.unlink()
    with pytest.raises(SpecError, match="there are no predictions"):
        score(files.problem, (), files.truth)
    with pytest.raises(DataError, match="no such file"):
        score(files.problem, files.predictions, tmp_path / "none.csv")


# Several targets, labels, scores


def test_each_target_has_a_value_and_all_have_one_together(files: Files) -> None:
    truth = "d3mIndex,a,b\n0,1,10\n1,2,20\n2,4,30\n"
    given = "d3mIndex,b,a\n0,11,1\n1,20,3\n2,33,4\n"
    jointly = {"metric": "meanAbsoluteError", "applicabilityToTarget": "allTargets"}
    found = files.score(
        truth, given, "meanAbsoluteError", jointly, task="regression", sub="multivariate", targets=["a", "b"]
    )
    assert [(row.target, row.n) for row in found.rows] == [("a", 3), ("b", 3), (None, 3)]
    assert [row.value for row in found.rows] == pytest.approx([1 / 3, 4 / 3, 5 / 6])


def test_an_index_that_repeats_has_several_labels(files: Files) -> None:
    truth = "d3mIndex,label\n0,a\n0,b\n1,\n2,b\n"
    given = "d3mIndex,label\n0,b\n1,a\n2,b\n2,c\n"
    found = files.score(truth, given, "hammingLoss", "f1Macro", sub="multiLabel")
    t, p = [[1, 1, 0], [0, 0, 0], [0, 1, 0]], [[0, 1, 0], [1, 0, 0], [0, 1, 1]]
    expected = [hamming_loss(np.array(t), np.array(p)), f1_score(t, p, average="macro", zero_division=0)]
    assert [row.value for row in found.rows] == pytest.approx(expected)
    assert files.faults(given + "2,c\n", truth, "hammingLoss", sub="multiLabel") == [("duplicate_label", 6, "label")]


def test_scores_of_classes_are_rows_with_a_confidence(files: Files) -> None:
    given = "d3mIndex,label,confidence\n" + "".join(
        f"{row},{label},{sure}\n"
        for row, cat in enumerate([0.9, 0.4, 0.6, 0.7])
        for label, sure in (("cat", cat), ("dog", 1 - cat))
    )
    assert files.score(TRUTH, given, "rocAucMacro", sub="multiClass").rows[0].value == 1.0
    assert files.faults(RIGHT + "1,cat\n", TRUTH, "rocAucMacro", sub="multiClass")[0][0] == "duplicate_row"


def test_the_definition_is_reported_and_an_unknown_one_refused(files: Files) -> None:
    found = files.score(TRUTH, RIGHT, "f1Macro", definition="sklearn")
    assert (found.about["definition"], *found.notes) == ("sklearn", "metrics follow the definition sklearn")
    with pytest.raises(DataError) as error:
        files.score(TRUTH, RIGHT, "f1Macro", definition="none")
    assert [fault.code for fault in error.value.faults] == ["definition_unknown"]


# Folders and parts


def folder_of(place: Path, metrics: Sequence[Criterion] = (Criterion(metric="accuracy"),), **division: Any) -> Path:
    """Twelve rows, of which the label tells whether the number is above 5."""
    rows = [{"number": n, "label": "high" if n > 5 else "low"} for n in range(12)]
    target = Target(index=0, resource="learningData", column=2, name="label")
    problem = Problem(
        id="numbers",
        task_types=(TaskType.CLASSIFICATION,),
        sub_types=(SubType.BINARY,),
        datasets=(TargetDataset(id="numbers_dataset", targets=(target,)),),
        division=Division(**(division or {"test": 0.5, "seed": 1})),
        criteria=tuple(metrics),
    )
    write_folder(place, problem, Dataset.from_rows(rows, input="number", expected="label"))
    return place


def predicted(rows: Sequence[int], wrong: Sequence[int] = ()) -> str:
    said = (f"{n},{'high' if (n > 5) != (n in wrong) else 'low'}\n" for n in rows)
    return "d3mIndex,label\n" + "".join(said)


def test_only_the_rows_that_are_tested_are_scored(tmp_path: Path) -> None:
    folder = open_folder(folder_of(tmp_path / "numbers"))
    tested = folder.folds().test(0, 0).tolist()
    folder.predictions_path.write_text(predicted(tested, tested[:1]))
    [row] = score(tmp_path / "numbers").rows
    assert (row.value, row.n) == (5 / 6, 6)
    learnt = folder.folds().train(0, 0).tolist()[0]
    folder.predictions_path.write_text(predicted([*tested, learnt, 99]))
    with pytest.raises(DataError) as error:
        score(tmp_path / "numbers")
    assert [fault.code for fault in error.value.faults] == ["not_test_row", "extra_row"]


def test_one_file_may_hold_all_folds_of_a_repeat(tmp_path: Path) -> None:
    folder = open_folder(folder_of(tmp_path / "numbers", method="folds", folds=3, seed=2))
    wrong = folder.folds().test(0, 1).tolist()[:2]
    folder.predictions_path.write_text(predicted(range(12), wrong))
    found = score(folder)
    mean, *parts = found.rows
    assert [(row.by, row.value, row.n) for row in parts] == [
        ({"fold": "0"}, 1.0, 4),
        ({"fold": "1"}, 0.5, 4),
        ({"fold": "2"}, 1.0, 4),
    ]
    assert (mean.by, mean.value, mean.n) == ({}, pytest.approx(5 / 6), 12)
    assert mean.data == {
        "parts": 3,
        "undefined": 0,
        "deviation": pytest.approx(statistics.stdev([1, 0.5, 1])),
        "least": 0.5,
        "most": 1.0,
    }
    assert mean.reason == "the mean of 3 parts, from 0.5 to 1, their deviation 0.2887"


def test_repeats_and_folds_have_files_of_their_own(tmp_path: Path) -> None:
    folder = open_folder(folder_of(tmp_path / "numbers", method="folds", folds=2, repeats=2, seed=2))
    for repeat in range(2):
        for fold in range(2):
            tested = folder.folds().test(repeat, fold).tolist()
            wrong = tested[: repeat + fold]
            folder.solution.joinpath(f"predictions_repeat{repeat}_fold{fold}.csv").write_text(predicted(tested, wrong))
    found = score(folder)
    assert [row.value for row in found.rows] == pytest.approx([5 / 6, 1, 5 / 6, 5 / 6, 4 / 6])
    assert [*found.rows[4].by.items()] == [("repeat", "1"), ("fold", "1")]
    assert [Path(file).name[-10:] for file in found.about["files"]] == ["_fold0.csv", "_fold1.csv"] * 2
    layout = scores_table(found, "4").to_pydict()
    assert layout["fold"] == [0, 1, 2, 3]
    folder.solution.joinpath("predictions_repeat1_fold1.csv").unlink()
    with pytest.raises(SpecError, match="1 of 4 parts has no predictions, first repeat 1, fold 1"):
        score(folder)
    with pytest.raises(SpecError, match="the split has 2 repeats; name one file for each"):
        score(folder, folder.solution / "predictions_fold0.csv")


def test_a_file_of_targets_goes_before_the_learning_table(tmp_path: Path) -> None:
    folder = open_folder(folder_of(tmp_path / "numbers"))
    tested = folder.folds().test(0, 0).tolist()
    folder.predictions_path.write_text(predicted(tested))
    assert score(folder).rows[0].value == 1.0
    (folder.root / "targets.csv").write_text(predicted(tested, tested))
    assert score(folder).rows[0].value == 0.0
    (folder.root / "targets.csv").write_text(predicted(tested[1:]))
    with pytest.raises(DataError) as error:
        score(folder)
    assert [fault.code for fault in error.value.faults] == ["missing_row"]


def two_datasets(place: Path, *targets: str) -> Path:
    """Two tables of the same index, of which the second has the labels of the first turned round."""
    names, rows = ("first", "second"), range(4)
    for name in names:
        (place / name / "tables").mkdir(parents=True)
        kinds = ["integer", "categorical"]
        columns = [
            {"colIndex": i, "colName": c, "colType": kinds[i], "role": [role]}
            for i, (c, role) in enumerate([("d3mIndex", "index"), ("label", "suggestedTarget")])
        ]
        resource = {"resID": "0", "resPath": "tables/learningData.csv", "resType": "table", "resFormat": ["text/csv"]}
        about = {"datasetID": name, "datasetName": name, "datasetSchemaVersion": "3.1.1"}
        reported = {"about": about, "dataResources": [{**resource, "columns": columns}]}
        (place / name / "datasetDoc.json").write_text(json.dumps(reported))
        label = {"first": "yes", "second": "no"}[name]
        text = "d3mIndex,label\n" + "".join(f"{row},{label}\n" for row in rows)
        (place / name / "tables" / "learningData.csv").write_text(text)
    problem = document("accuracy")
    target = {"targetIndex": 0, "resID": "0", "colIndex": 1, "colName": "label"}
    problem["inputs"]["data"] = [{"datasetID": n, "targets": [target] if n in targets else []} for n in names]
    del problem["inputs"]["dataSplits"]
    (place / "problemDoc.json").write_text(json.dumps(problem))
    (place / "predictions.csv").write_text("d3mIndex,label\n0,no\n1,no\n2,no\n3,yes\n")
    return place


@pytest.mark.parametrize(("name", "value"), [("first", 0.25), ("second", 0.75)])
def test_of_two_datasets_the_one_with_targets_is_scored(tmp_path: Path, name: str, value: float) -> None:
    place = two_datasets(tmp_path, name)
    assert [row.value for row in score(place).rows] == [value]
    assert [row.value for row in score(place / "problemDoc.json", (), place / name).rows] == [value]


def test_targets_of_two_datasets_are_refused_by_their_names(tmp_path: Path) -> None:
    place = two_datasets(tmp_path, "first", "second")
    for given in ((place,), (place / "problemDoc.json", (), place / "first")):
        with pytest.raises(SpecError, match=r"has targets in 2 datasets \(first, second\)"):
            score(*given)
    assert "does not say whose rows" in Commands(tmp_path).refused("score", place)
    assert "first, second" in Commands(tmp_path).done("problem", "check", place)


def test_a_problem_without_any_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="has no target"):
        score(two_datasets(tmp_path))


def test_links_are_refused_but_those_that_people_name_themselves(
    files: Files, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    files.score(TRUTH, RIGHT)
    files.predictions.rename(outside / "predictions.csv")
    files.predictions.symlink_to(outside / "predictions.csv")
    assert score(files.problem, files.predictions, files.truth).rows[0].value == 0.75
    with pytest.raises(DataError, match="leads out of") as error:
        score(files.problem, (), files.truth)
    assert error.value.codes == ("unsafe_path",)
    place = two_datasets(tmp_path / "two", "first")
    table = place / "first" / "tables" / "learningData.csv"
    table.rename(outside / "learningData.csv")
    table.symlink_to(outside / "learningData.csv")
    with pytest.raises(DataError, match="leads out of") as error:
        score(place / "problemDoc.json", place / "predictions.csv", place / "first")
    assert error.value.codes == ("unsafe_path",)


# scores.csv and the whole table


def test_scores_are_written_in_both_layouts_and_never_over_a_file(files: Files, tmp_path: Path) -> None:
    found = files.score(TRUTH, RIGHT, "accuracy", "f1Macro")
    out = tmp_path / "scores.csv"
    write_scores_file(found, out)
    value = found.rows[1].value
    assert (
        out.read_text() == f"index,problemID,metric,value\n0,p_problem,accuracy,0.75\n1,p_problem,f1Macro,{value!r}\n"
    )
    with pytest.raises(SpecError, match="exists already"):
        write_scores_file(found, out, "4")
    write_scores_file(found, out, "4", force=True)
    head, first, second = out.read_text().splitlines()
    assert head == "metric,value,normalized,randomSeed,fold"
    assert first == "ACCURACY,0.75,0.75,7,0"
    assert second == f"F1_MACRO,{value!r},{value!r},7,0"


def test_errors_are_normalized_from_0_to_1(files: Files) -> None:
    truth = "d3mIndex,size\n0,1\n1,2\n2,4\n"
    found = files.score(
        truth,
        truth.replace("2,4", "2,5"),
        "meanAbsoluteError",
        "rSquared",
        task="regression",
        sub="univariate",
        targets=["size"],
    )
    error, squared = scores_table(found, "4").column("normalized").to_pylist()
    assert error == pytest.approx(2 / (1 + math.exp(1 / 3)))
    assert squared == pytest.approx(2 / (1 + math.exp(1 - found.rows[1].value)))


def test_an_undefined_value_is_empty_and_has_a_reason(files: Files) -> None:
    constant = "d3mIndex,size\n0,1\n1,1\n2,1\n"
    found = files.score(
        constant, constant.replace("2,1", "2,5"), "rSquared", task="regression", sub="univariate", targets=["size"]
    )
    assert scores_table(found).column("value").to_pylist() == [None]
    assert found.rows[0].reason
    assert found.to_dict()[0]["value"] is None


# Kept as a run


def test_what_is_stored_has_the_same_values_and_can_be_compared(files: Files) -> None:
    store = MemoryStore()
    evaluations = []
    for number, text in enumerate((RIGHT, RIGHT.replace("0,cat", "0,dog"))):
        found = files.score(TRUTH, text, "accuracy", {"metric": "f1", "posLabel": "cat"})
        kept = found.save(store, f"try{number}")
        table = kept.aggregation.table().to_pylist()
        assert [(row["value"], row["low"], row["n"]) for row in table] == [(r.value, r.low, r.n) for r in found.rows]
        evaluation = kept.tasks[0].evaluation
        assert (evaluation.receipt.reused, evaluation.receipt.called) == (4, 0)  # nothing is graded a second time
        evaluations.append(evaluation)
    pairs = compare(*evaluations).to_dict()["pairs"]
    assert {(pair["metric"], pair["n_used"]) for pair in pairs} == {("accuracy", 4), ("f_beta", 4)}
    [accuracy] = [pair for pair in pairs if pair["metric"] == "accuracy"]
    assert accuracy["difference"] == -0.25


# Solving, and the worked problems


def test_an_estimator_solves_a_problem_on_its_splits(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "numbers", method="folds", folds=3, repeats=2, seed=1)
    found = solve(folder, LogisticRegression())
    assert len(found.rows) == 7
    opened = open_folder(folder)
    assert opened.scores_path.read_text().count("accuracy") == 6
    assert [row.value for row in score(opened).rows] == [row.value for row in found.rows]
    with pytest.raises(SpecError, match="exists already"):
        solve(folder, LogisticRegression())
    assert solve(folder, LogisticRegression(), force=True).rows[0].value == found.rows[0].value


def test_an_estimator_that_fails_solves_nothing(tmp_path: Path) -> None:
    class Broken(DummyClassifier):  # type: ignore[misc]
        def predict(self, X: Any) -> Any:  # noqa: N803
            raise ValueError("no idea")

    folder = folder_of(tmp_path / "numbers")
    with pytest.raises(TaskError, match="no idea"):
        solve(folder, Broken())
    assert not open_folder(folder).predictions_path.exists()


def example() -> Any:
    spec = importlib.util.spec_from_file_location("problems", ROOT_FOLDER / "examples" / "problems" / "problems.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@thinned("work", example().ALL, every=5, ids=lambda work: work.__name__)
def test_a_worked_problem_scores_the_same_by_command_and_when_stored(
    work: Callable[[Path], SystemScores], tmp_path: Path
) -> None:
    found = work(tmp_path)
    [folder] = tmp_path.iterdir()
    reported = Commands(tmp_path).json("score", folder)
    assert [row["value"] for row in reported["metrics"]] == [row.value for row in found.rows]
    kept = found.save(MemoryStore(), "kept").aggregation.table().to_pylist()
    if not any(row.by for row in found.rows):
        assert [row["value"] for row in kept] == [row.value for row in found.rows]


def test_a_forecast_is_worth_what_scikit_learn_says(tmp_path: Path) -> None:
    found = example().forecasting(tmp_path)
    [[judged]] = graded(found).systems.values()
    truth, predictions = (np.asarray(side.column("sold")) for side in (judged.part.truth, judged.part.predictions))
    expected = [mean_absolute_error(truth, predictions), root_mean_squared_error(truth, predictions)]
    assert [row.value for row in found.rows] == pytest.approx(expected, rel=1e-12)


def test_lists_of_texts_are_written_as_rows_and_read_as_lists(tmp_path: Path) -> None:
    target = Target(index=0, resource="learningData", column=2, name="labels")
    problem = Problem(
        id="p",
        task_types=(TaskType.CLASSIFICATION,),
        sub_types=(SubType.MULTI_LABEL,),
        datasets=(TargetDataset(id="d", targets=(target,)),),
        division=Division(test=0.5, stratified=False),
        criteria=(Criterion(metric="hamming_loss"),),
    )
    labels = [["a", "b"], [], ["b"], ["a", "b", "c"]]
    data = Dataset.from_rows(
        [{"n": n, "labels": given} for n, given in enumerate(labels)], input="n", expected="labels"
    )
    folds = Folds(np.array([[0, -1, 0, -1]], np.int32), 1)
    folder = write_folder(tmp_path / "p", problem, data, folds)
    assert [[one for one in example.expected if one is not None] for example in folder.dataset()] == labels
    assert (folder.folds().numbers == folds.numbers).all()


# The command


def test_the_command_writes_the_files_that_are_asked_for(files: Files, tmp_path: Path) -> None:
    files.score(TRUTH, RIGHT, "accuracy")
    commands = Commands(tmp_path)
    given = ("score", "--problem", files.problem, "--predictions", files.predictions, "--truth", files.truth)
    shown = commands.done(
        *given,
        "--out",
        tmp_path / "s.csv",
        "--table",
        tmp_path / "t.parquet",
        "--name",
        "mine",
        "--report",
        tmp_path / "r.html",
    )
    assert "accuracy · prediction · label     0.75" in " ".join(shown.split("\n")) or shown
    assert "stored as mine" in shown
    assert (tmp_path / "s.csv").read_text().startswith("index,problemID,metric,value\n0,p_problem,accuracy,0.75")
    [row] = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert (row["target"], row["metric"], row["n"]) == ("label", "accuracy", 4)
    assert "accuracy" in (tmp_path / "r.html").read_text()
    assert "0.750" in commands.done("show", "mine")
    files.score(TRUTH, RIGHT, "f1Macro")
    commands.done(*given, "--name", "other")
    gate = ("--gate", "f1Macro >= 0.9")
    reported = commands.call("compare", "other", "other", *gate).output
    assert "FAILED  f1Macro >= 0.9" in reported
    assert "exists already" in commands.refused(*given, "--out", tmp_path / "s.csv", code=2)
    commands.done(*given, "--out", tmp_path / "s.csv", "--force")
    assert (tmp_path / "mine.csv").exists() is False


def test_the_command_reports_faults_and_exits_with_1(files: Files, tmp_path: Path) -> None:
    files.score(TRUTH, RIGHT, "accuracy")
    files.predictions.write_text(RIGHT + "3,cat\n")
    given = ("score", "--problem", files.problem, "--predictions", files.predictions, "--truth", files.truth)
    commands = Commands(tmp_path)
    reported = commands.refused(*given)
    assert "predictions.csv:6, d3mIndex: 3 occurs twice (first in line 5)  [duplicate_row]" in reported
    result = commands.call(*given, "--json")
    [fault] = json.loads(result.stdout)["faults"]
    assert (result.exit_code, fault["code"], fault["line"], fault["column"]) == (1, "duplicate_row", 6, "d3mIndex")


def test_the_command_wants_one_problem(files: Files, tmp_path: Path) -> None:
    files.score(TRUTH, RIGHT)
    assert "name a file and its columns (evaluand score FILE --truth COLUMN --prediction COLUMN)" in Commands(
        tmp_path
    ).refused("score", code=2)
    same = ("score", files.problem, "--out", tmp_path / "a.csv", "--table", tmp_path / "a.csv")
    assert "must be different files" in Commands(tmp_path).refused(*same, code=2)
