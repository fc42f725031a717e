"""The comparison on a page is that of the metrics on the page, whatever else the same runs were compared by."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.commands import Folder

from evaluand.report.page.resources.base import Source, find_resources, read_resource

EXPERIMENT = """
name: NAME
dataset: {path: sums.jsonl, input: n, expected: n}
tasks: {low: "app.py:low", high: "app.py:high"}
scorers: {same: exact_match}
metrics: METRICS
"""
MEAN = "[{kind: mean, direction: higher}]"
CODE = """
from evaluand import Accuracy


def low(n): return 'x' + n
def high(n): return n


class Share(Accuracy):
    kind = 'share'
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path)
    folder.write("sums.jsonl", [{"n": str(number)} for number in range(40)])
    (tmp_path / "app.py").write_text(CODE)
    return folder


def write_experiment(folder: Folder, metrics: str, name: str = "sums") -> Path:
    path = folder.path / f"{name}.yaml"
    path.write_text(EXPERIMENT.replace("NAME", name).replace("METRICS", metrics))
    return path


def best_by(text: str) -> list[str]:
    """The metrics of the headlines in a text."""
    return re.findall(r"high is best by (\w+)", text)


@pytest.mark.slow
def test_a_report_has_the_headline_of_the_run_whatever_was_run_before(folder: Folder) -> None:
    page = folder.path / "sums.html"
    for metrics, name in (("[accuracy]", "accuracy"), (MEAN, "mean"), ("[accuracy]", "accuracy"), (MEAN, "mean")):
        assert best_by(folder.done("run", write_experiment(folder, metrics), "--report")) == [name]
        assert best_by(page.read_text()) == [name]
        folder.done("report", "sums")
        assert best_by(page.read_text()) == [name]


def test_a_comparison_by_other_metrics_is_not_shown(folder: Folder) -> None:
    folder.done("run", write_experiment(folder, "[accuracy]"))
    [made] = folder.store.ids("comparisons")
    shutil.rmtree(folder.path / "store" / "comparisons" / made)
    folder.done("compare", "sums", "--metric", "mean")
    folder.done("report", "sums")
    page = (folder.path / "sums.html").read_text()
    assert "have not been compared yet: run <code>evaluand compare" in page
    assert "and write the report again." in page
    assert "Differences b − a on the same examples" not in page
    find_resources()
    found = json.loads(read_resource(Source(folder.store), "answers/sums", {}))["answers"][0]["hint"]
    assert found.startswith("The tasks have not been compared yet: run `evaluand compare ")
    assert found.endswith("`.")


def test_a_comparison_by_a_class_of_the_user_is_shown_with_the_experiment_that_has_it(folder: Folder) -> None:
    own = "[accuracy, {function: app.py:Share, parameters: {missing: wrong}}]"
    assert best_by(folder.done("run", write_experiment(folder, own))) == ["accuracy", "share"]
    folder.done("run", write_experiment(folder, "[accuracy]", "plain"), "--report")
    assert best_by((folder.path / "plain.html").read_text()) == ["accuracy"]
    folder.done("report", "sums")
    assert best_by((folder.path / "sums.html").read_text()) == ["accuracy", "share"]
