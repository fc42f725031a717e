"""Experiment files that need less on the command line: gates in the file, the only file of a folder, failed calls."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def gated(folder: Folder, *rules: str) -> Path:
    """An experiment with gates; its task answers 4 of 6 questions, all right."""
    path = folder.experiment()
    text = path.read_text().replace("by: [parity]", "by: [parity], missing: leave_out")
    path.write_text(text + f"gates: {json.dumps(rules)}\n")
    return path


def test_gates_of_the_file_decide_about_the_exit_code(folder: Folder) -> None:
    assert folder.call("run", gated(folder, "accuracy(number) >= 0.5")).exit_code == 0
    failed = folder.call("run", gated(folder, "accuracy(number) >= 0.5", "accuracy(number) > 0.999 at 95%"))
    assert failed.exit_code == 3
    assert failed.stdout.count("FAILED") == 1
    again = folder.call("run", gated(folder, "accuracy(number) >= 0.5"), "--gate", "accuracy(number) > 0.999 at 95%")
    assert (again.exit_code, again.stdout.count("passed")) == (3, 1)


def test_gates_of_the_file_that_cannot_be_checked_are_faults_with_their_line(folder: Folder) -> None:
    path = gated(folder, "accuracy => 0.9", "acuracy >= 0.9", "accuracy(number) >= 90")
    reported = folder.call("validate", path).output
    line = len(path.read_text().splitlines())
    for number, fault in enumerate(["found '='", "acuracy", "90"]):
        assert re.search(rf"e\.yaml:{line}: gates\.{number}: .*{re.escape(fault)}", reported)


def test_without_a_file_the_only_experiment_of_the_folder_is_run(folder: Folder, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder.path)
    assert "this folder has no experiment file; name one" in folder.refused("run", code=2)
    (folder.path / "other.yaml").write_text("name: no experiment\n")
    folder.experiment()
    assert "accuracy" in folder.done("run")
    assert "e.yaml can be run" in folder.done("validate")
    folder.experiment(name="f.yml")
    assert "has 2 experiment files: e.yaml, f.yml; name one: evaluand run e.yaml" in folder.refused("run", code=2)


def test_a_run_says_how_many_calls_failed_earlier_and_how_to_repeat_them(folder: Folder) -> None:
    path = folder.experiment()
    for said in ("1 failed (1 ValueError)", "1 failed earlier (1 ValueError)"):
        ran = folder.call("run", path)
        assert said in " ".join(ran.stdout.split())
        assert f"note: 1 call of task mine failed; repeat with: evaluand run {path} --retry-failed" in ran.stderr
