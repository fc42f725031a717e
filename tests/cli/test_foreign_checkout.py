"""A checkout or a store from somebody else: commands that look at it start no program and import no code of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from evaluand.cli import main

EXPERIMENT = """
name: echo
dataset: {path: rows.jsonl}
tasks: {same: {function: app.py:same}, other: {function: app.py:other}}
scorers: {right: exact_match}
metrics: [{kind: mean, scorer: right}]
"""
CODE = "def same(input):\n    return input\n\ndef other(input):\n    return 'c'\n"
ROWS = '{"input": "a", "expected": "a"}\n{"input": "b", "expected": "c"}\n'


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A folder in which every planted program and module leaves a file."""
    (tmp_path / "evil").mkdir()
    return tmp_path / "evil"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    (path / "rows.jsonl").write_text(ROWS)
    (path / "app.py").write_text(CODE)
    (path / "e.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(path)
    monkeypatch.delenv("EVALUAND_STORE", raising=False)
    return path


def call(*arguments: str, code: int = 0, **options: Any) -> Result:
    result = CliRunner().invoke(main, arguments, **options)
    assert result.exit_code == code, result.output
    return result


# -- git


@pytest.fixture
def hostile(checkout: Path, evil: Path) -> Path:
    """A checkout whose configuration names programs."""
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "Add everything")
    for key in ("core.fsmonitor", "filter.planted.clean", "core.pager", "core.sshCommand", "diff.external"):
        git("config", key, f"touch {evil}/{key}; cat")
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").write_text(f"#!/bin/sh\ntouch {evil}/hook\n")
    (hooks / "post-index-change").chmod(0o755)
    (checkout / ".gitattributes").write_text("* filter=planted\n")
    return checkout


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def test_no_command_starts_a_program_that_the_configuration_of_a_checkout_names(hostile: Path, evil: Path) -> None:
    commit = git("rev-parse", "HEAD").strip()
    (hostile / "app.py").write_text(CODE.replace("'c'", "'d'"))
    call("run", "e.yaml")
    call("compare", "echo/same", "echo/other")
    (hostile / "predictions.jsonl").write_text('{"_index_": 0, "response": "a"}\n{"_index_": 1, "response": "b"}\n')
    call("import", "predictions.jsonl", "--dataset", "echo/same", "--response", "response", "--name", "imported")
    shown = orjson.loads(call("show", "echo/same", "--json").stdout)["manifest"]["provenance"]["git"]
    assert shown == {"commit": commit, "changed": None}
    assert f"{commit}, changes unknown" in " ".join(call("show", "echo/same").stdout.split())
    call("run", "e.yaml", "--fresh", "--git-changes")
    shown = orjson.loads(call("show", "echo/same", "--json").stdout)["manifest"]["provenance"]["git"]
    assert shown == {"commit": commit, "changed": None}, "app.py passes a filter"
    assert not list(evil.iterdir())
    subprocess.run(["git", "status"], capture_output=True)
    assert list(evil.iterdir()), "the planted programs would run"


def test_git_is_asked_for_changes_on_request_only(checkout: Path) -> None:
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "Add everything")
    (checkout / "rows.jsonl").write_text(ROWS + '{"input": "c", "expected": "c"}\n')
    call("run", "e.yaml", "--git-changes")
    assert "with changes" in call("show", "echo/same").stdout


def test_a_checkout_cannot_ask_for_changes(checkout: Path) -> None:
    (checkout / "evaluand.toml").write_text("[run]\ngit-changes = true\n")
    assert "run.git-changes: the command has no such option" in call("run", "e.yaml", code=1).stderr
