"""A metric that refuses the scores of one task costs its own values and comparison, and nothing else."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from support.commands import Folder, run_once

EXPERIMENT = """
name: e
dataset: {path: rows.jsonl, input: n, expected: odd}
tasks: {poor: "app.py:poor", good: "app.py:good", words: "app.py:words"}
scorers: {right: {kind: prediction, type: integer}}
metrics: METRICS
"""
CALIBRATION = "{kind: debiased_calibration_error, label: 1, scored_by: classes}"
CODE = """
def poor(n): return {"prediction": 1, "probabilities": {"0": 0.4, "1": 0.6}}
def good(n): return {"prediction": n % 2, "probabilities": {"0": 1 - 0.9 * (n % 2), "1": 0.9 * (n % 2)}}
def words(n): return {"prediction": 0}
"""
REASON = "words: _index_ 0: has no score for 1; "


def make(path: Path) -> Folder:
    folder = Folder(path)
    folder.write("rows.jsonl", [{"n": number, "odd": number % 2} for number in range(40)])
    (path / "app.py").write_text(CODE)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Three tasks, the last of which gives decisions without scores."""
    monkeypatch.chdir(tmp_path)
    return make(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where they were run and graded with two metrics."""
    folder = make(tmp_path_factory.mktemp("finished"))
    return run_once(folder, write_experiment(folder, "accuracy", CALIBRATION))


@pytest.fixture
def graded(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder.copied(finished, tmp_path)


def write_experiment(folder: Folder, *metrics: str) -> Path:
    path = folder.path / "e.yaml"
    path.write_text(EXPERIMENT.replace("METRICS", f"[{', '.join(metrics)}]"))
    return path


def test_the_tasks_are_compared_by_the_metrics_that_take_all_scores(graded: Folder) -> None:
    result = graded.call("run", write_experiment(graded, "accuracy", CALIBRATION), "--report")
    assert result.exit_code == 1
    assert result.stderr.count("error: ") == 1
    assert "error: task 'words': debiased_calibration_error of 'right': _index_ 0: has no score" in result.stderr
    assert "\ngood is best by accuracy · right, " in result.stdout
    page = html.unescape((graded.path / "e.html").read_text())
    assert "<li>good is best by accuracy · right, " in page
    assert f"Not compared: debiased_calibration_error · right ({REASON}" in page
    assert "have not been compared yet" not in page


def test_a_comparison_names_once_what_it_leaves_out_and_why(graded: Folder) -> None:
    said = graded.done("compare", "e", env={"COLUMNS": "1000"})
    assert said.count("has no score for 1") == 1
    assert f"not compared: debiased_calibration_error · right ({REASON}" in said
    assert "and 39 more" in said
    facts = graded.json("compare", "e")
    assert {pair["metric"] for pair in facts["pairs"]} == {"accuracy"}
    [left_out] = facts["left_out"]
    assert left_out["metric"] == "debiased_calibration_error"
    assert left_out["reason"].startswith(REASON)
    assert "1 metric left out" in graded.done("show", facts["id"])
    assert "0 with faults" in graded.done("verify", facts["id"])
    assert graded.json("compare", "e/poor", "e/good")["left_out"] == []


def test_a_metric_that_is_asked_for_is_an_error_also_after_a_comparison_without_it(graded: Folder) -> None:
    for _ in range(2):
        asked = "compare", "e", "--metric", "accuracy", "--metric", "debiased_calibration_error"
        assert "_index_ 0: has no score for 1; " in graded.refused(*asked)
        graded.done("compare", "e")


def test_a_task_without_scores_costs_its_own_value_and_gate_only(folder: Folder) -> None:
    sure = "def good(n): return {'prediction': n % 2, 'confidence': 0.5 + n / 100}\n"
    (folder.path / "app.py").write_text(f"{sure}poor = good\ndef words(n): return {{'prediction': n % 2}}\n")
    path = write_experiment(folder, "accuracy", "{kind: roc_auc, label: 1, scored_by: predicted}")
    result = folder.call("run", path, "--gate", "roc_auc >= 0.1", "--json")
    facts = json.loads(result.stdout)
    values = {(row["task"], row["metric"]): row["value"] for row in facts["metrics"]}
    assert values["words", "accuracy"] == values["good", "accuracy"] == 1
    assert values["good", "roc_auc"] is not None
    assert values["words", "roc_auc"] is None
    [reason] = [row["reason"] for row in facts["metrics"] if row["value"] is None]
    assert reason.startswith("refused: roc_auc of 'right': the column 'confidence' is empty in every scored row; ")
    gates = {gate["subject"]: (gate["passed"], gate["decided"]) for gate in facts["gates"]}
    assert (gates["good"], gates["words"]) == ((True, True), (False, False))
    assert result.exit_code == 1


def test_the_only_metric_has_its_values_for_the_tasks_that_it_takes(graded: Folder) -> None:
    result = graded.call("run", write_experiment(graded, CALIBRATION), "--json")
    values = {row["task"]: row["value"] for row in json.loads(result.stdout)["metrics"]}
    assert result.exit_code == 1
    assert (values["poor"] is None, values["good"] is None, values["words"]) == (False, False, None)


def test_a_metric_that_lacks_its_class_costs_the_other_metrics_nothing(folder: Folder) -> None:
    folder.write("rows.jsonl", [{"n": n, "odd": ["no", "yes"][n % 2]} for n in range(40)])
    (folder.path / "app.py").write_text("def good(n): return ['no', 'yes'][n % 2]\npoor = words = good\n")
    path = write_experiment(folder, "accuracy", "f1")
    path.write_text(path.read_text().replace("{kind: prediction, type: integer}", "prediction"))
    result = folder.call("run", path, "--json")
    values = {(row["task"], row["metric"]): row["value"] for row in json.loads(result.stdout)["metrics"]}
    assert result.exit_code == 1
    assert (values["good", "accuracy"], values["good", "f_beta"]) == (1, None)
    assert result.stderr.count("f1 needs a positive class") == 3


def test_where_no_metric_takes_all_scores_the_reason_is_shown_instead_of_a_command(graded: Folder) -> None:
    path = write_experiment(graded, CALIBRATION)
    assert graded.call("run", path, "--report").exit_code == 1
    refused = graded.refused("compare", "e")
    assert f"no declared metric can be compared: debiased_calibration_error · right: {REASON}" in refused
    assert refused.count("has no score for 1") == 1
    page = html.unescape((graded.path / "e.html").read_text())
    assert "The tasks cannot be compared: words: debiased_calibration_error of 'right': _index_ 0: has no score" in page
    assert "have not been compared yet" not in page
