"""Names say which experiment is meant, where several have the same tasks, data and outputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder, run_once

EXPERIMENT = """
name: NAME
dataset: {path: sums.jsonl, input: n, expected: n}
tasks: {low: "app.py:low", high: "app.py:high"}
scorers: {same: exact_match}
metrics: METRICS
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment `right/1` with accuracy; `average` with a mean will share its evaluations."""
    folder = Folder(tmp_path_factory.mktemp("finished"))
    folder.write("sums.jsonl", [{"n": str(number)} for number in range(40)])
    (folder.path / "app.py").write_text("def low(n): return 'x' + n\ndef high(n): return n\n")
    return run_once(folder, write_experiment(folder, "right/1", "[accuracy]"))


@pytest.fixture
def folder(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder.copied(finished, tmp_path)


def write_experiment(folder: Folder, name: str, metrics: str) -> Path:
    path = folder.path / "e.yaml"
    path.write_text(EXPERIMENT.replace("NAME", name).replace("METRICS", metrics))
    return path


def run_experiment(folder: Folder, name: str, metrics: str) -> str:
    return folder.done("run", write_experiment(folder, name, metrics))


def compared(facts: Any) -> list[str]:
    return [pair["metric"] for pair in facts["pairs"]]


def test_a_comparison_is_by_the_metrics_of_the_experiment_in_the_names(folder: Folder) -> None:
    run_experiment(folder, "average", "[{kind: mean, direction: higher}]")
    assert len(folder.store.ids("evaluations")) == 2
    assert compared(folder.json("compare", "right%2F1/low", "right%2F1/high")) == ["accuracy"]
    assert compared(folder.json("compare", "average/low", "average/high")) == ["mean"]


def test_gates_read_the_metrics_of_the_experiment_in_the_names(folder: Folder) -> None:
    run_experiment(folder, "average", "[{kind: mean, direction: lower}]")
    run_experiment(folder, "right/1", "[{kind: mean, direction: higher}]")
    assert "passed" in folder.done("compare", "right%2F1/low", "right%2F1/high", "--gate", "mean better than baseline")
    failed = folder.call("compare", "average/low", "average/high", "--gate", "mean better than baseline")
    assert (failed.exit_code, "FAILED" in failed.stdout) == (3, True)


def test_the_report_of_several_has_the_values_of_the_experiments_in_the_names(folder: Folder) -> None:
    run_experiment(folder, "average", "[{kind: mean, direction: higher}]")
    for experiment, metric in (("right%2F1", "accuracy"), ("average", "mean")):
        folder.done("report", f"{experiment}/low", f"{experiment}/high", "-o", "page.html")
        page = (folder.path / "page.html").read_text()
        assert re.findall(r"high is best by (\w+)", page) == [metric]
        assert {*re.findall(r"(\w+) · same", page)} == {metric}


def test_a_run_names_its_own_experiment_in_its_suggestions(folder: Folder) -> None:
    said = run_experiment(folder, "average", "[accuracy]")  # the aggregation is that of the first, too
    assert "; more: evaluand show average" in said
    assert "report: evaluand report average" in said
    assert "compare: evaluand compare average/low average/high" in said
    assert [task["run"]["name"] for task in folder.json("run", "e.yaml")["tasks"]] == ["average/low", "average/high"]
