"""Problems of a suite that are folders of stated problems, on which every system has files of predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.d3m_problem import Made

from evaluand.cli import main
from evaluand.predictions.scoring import score

KEYS = range(12)
TRUTH = ["yes"] * 6 + ["no"] * 6
GOOD = ["yes"] * 5 + ["no"] * 7
BAD = ["yes"] * 12
SUITE = """
name: automl
tasks:
  good: {recorded: "good/{problem}.csv"}
  bad: {kind: recorded, path: "bad/{problem}.csv"}
problems:
  first: problems/first
  second: {file: problems/second, score: f1}
"""


def rows(labels: Sequence[str], keys: Sequence[int] = KEYS) -> str:
    return "d3mIndex,label\n" + "".join(f"{key},{labels[key]}\n" for key in keys)


def make_problem(folder: Path, metrics: list[dict[str, Any]], fold: Callable[[int], int] = lambda key: 0) -> Made:
    folder.mkdir(parents=True)
    made = Made(folder)
    made.rows("d3mIndex,image,code,label\n" + "".join(f"{key},a.png,0,{TRUTH[key]}\n" for key in KEYS))
    made.splits("d3mIndex,type,repeat,fold\n" + "".join(f"{key},TEST,0,{fold(key)}\n" for key in KEYS))
    made.problem["inputs"]["performanceMetrics"] = metrics
    made.write()
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    f1 = {"metric": "f1", "posLabel": "yes"}
    for name, metrics in (("first", [{"metric": "accuracy"}]), ("second", [{"metric": "accuracy"}, f1])):
        make_problem(tmp_path / "problems" / name, metrics)
        for system, labels in (("good", GOOD), ("bad", BAD)):
            (tmp_path / system).mkdir(exist_ok=True)
            (tmp_path / system / f"{name}.csv").write_text(rows(labels))
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


def values(result: Result) -> dict[str, dict[str, float | None]]:
    assert result.exit_code == 0, result.output
    problems = json.loads(result.stdout)["problems"]
    return {each["problem"]: {row["system"]: row["value"] for row in each["values"]} for each in problems}


def test_every_folder_is_a_row_with_the_score_that_the_suite_names(folder: Path) -> None:
    first, second = {"good": 11 / 12, "bad": 1 / 2}, {"good": 10 / 11, "bad": 2 / 3}  # F1: 2·5/(2·5+1), 2·6/(2·6+6)
    found = values(call("suite", "suite.yaml", "--json"))
    assert found == {"first": pytest.approx(first), "second": pytest.approx(second)}
    problems = json.loads(call("suite", "suite.yaml", "--json").stdout)["problems"]
    assert [(each["problem"], each["metric"]) for each in problems] == [("first", "accuracy"), ("second", "f1")]
    for system in ("good", "bad"):
        assert score(folder / "problems/second", f"{system}/second.csv")["f1"].value == pytest.approx(second[system])


def test_each_problem_is_an_experiment_that_later_commands_compare(folder: Path) -> None:
    call("suite", "suite.yaml")
    [pair] = json.loads(call("compare", "automl/first", "--json").stdout)["pairs"]
    assert (pair["n"], pair["difference"]) == (12, pytest.approx(-5 / 12))
    assert "0 of 12 recorded outputs to read" in call("suite", "suite.yaml", "--plan").stdout


def test_a_split_of_folds_has_a_folder_of_files(folder: Path) -> None:
    made = make_problem(folder / "problems" / "folds", [{"metric": "accuracy"}], lambda key: key % 2)
    made.problem["inputs"]["dataSplits"] = {"method": "kFold", "numFolds": 2, "splitsFile": "dataSplits.csv"}
    made.write()
    for system, labels in (("good", GOOD), ("bad", BAD)):
        (folder / system / "folds").mkdir()
        for fold in (0, 1):
            path = folder / system / "folds" / f"predictions_fold{fold}.csv"
            path.write_text(rows(labels, [key for key in KEYS if key % 2 == fold]))
    text = SUITE.replace("{problem}.csv", "{problem}").replace("  first: problems/first\n", "  folds: problems/folds\n")
    (folder / "suite.yaml").write_text(text.partition("  second:")[0])
    result = call("suite", "suite.yaml", "--json")
    assert values(result) == {"folds": pytest.approx({"good": 11 / 12, "bad": 1 / 2})}
    assert "problem folds: the suite's values are those of all rows" in result.stderr


def test_folders_and_experiments_are_problems_of_one_suite(folder: Path) -> None:
    (folder / "table.csv").write_text("d3mIndex,label\n" + "".join(f"{key},{TRUTH[key]}\n" for key in KEYS))
    recorded = '{kind: recorded, path: "SYSTEM/{problem}.csv", response: output}'
    tasks = "".join(f"  {name}: {recorded.replace('SYSTEM', name)}\n" for name in ("good", "bad"))
    table = "{dataset: {path: table.csv, input: d3mIndex, expected: label}, scorers: exact_match, metrics: accuracy}"
    for system, labels in (("good", GOOD), ("bad", BAD)):
        (folder / system / "table.csv").write_text("output\n" + "\n".join(labels) + "\n")
    (folder / "suite.yaml").write_text(
        f"name: automl\ntasks:\n{tasks}problems:\n  first: problems/first\n  table: {table}\n"
    )
    found = values(call("suite", "suite.yaml", "--json"))
    assert found["first"] == found["table"] == pytest.approx({"good": 11 / 12, "bad": 1 / 2})


def test_what_a_folder_lacks_is_noted_with_the_name_of_the_problem(folder: Path) -> None:
    (folder / "problems/first/p_problem/dataSplits.csv").unlink()
    result = call("suite", "suite.yaml", "--json")
    assert values(result)["first"] == pytest.approx({"good": 11 / 12, "bad": 1 / 2})
    assert "problem first: " in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '{recorded: "good/{problem}.csv"}',
            "app.py:answer",
            "suite.yaml:4: tasks.good: is not a file of predictions, as a problem that is a folder needs; write NAME:"
            " {recorded: PATH}",
        ),
        (
            'tasks:\n  good: {recorded: "good/{problem}.csv"}\n  bad: {kind: recorded, path: "bad/{problem}.csv"}\n',
            "",
            "tasks: is missing",
        ),
        ("good/{problem}.csv", "none/{problem}.csv", "none/first.csv: no such file"),
        ("good/{problem}.csv", "problems/{problem}", "has no predictions"),
        ("problems/first", "problems/third", "problems.first: problems/third: no such file"),
        ("problems/first", "good", "good: there is no problemDoc.json in this folder or below it"),
        ("score: f1", "score: recall", "problem second has no recall; it has accuracy of prediction, f1"),
        ("score: f1", "gates: [f1 >= 1]", "problems.second.gates: cannot be given beside file"),
    ],
)
@pytest.mark.parametrize("command", ["suite", "validate"])
def test_what_cannot_be_scored_is_said_before_anything_is_stored(
    folder: Path, command: str, old: str, new: str, message: str
) -> None:
    assert old in SUITE
    (folder / "suite.yaml").write_text(SUITE.replace(old, new))
    result = call(command, "suite.yaml")
    assert result.exit_code == 1
    assert message in result.output
    assert not (folder / ".evaluand" / "runs").exists()


def test_the_files_that_are_read_are_listed_without_reading_them(folder: Path) -> None:
    facts = json.loads(call("validate", "suite.yaml", "--access", "--json").stdout)
    read = {(each["where"], each["path"], each["outside"]) for each in facts["access"]["files"]}
    assert ("problems.first", "problems/first", False) in read
    assert ("tasks.bad", "bad/second.csv", False) in read
