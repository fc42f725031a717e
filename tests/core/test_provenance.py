"""What is recorded about the machine and code that made an artifact."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evaluand.core import provenance


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text("ANSWER = 1\n")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "app.py")
    _git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "Add the app")
    return tmp_path


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    (checkout / "report.html").write_text("made by the app")
    assert provenance._git(str(checkout)) == {"commit": _git(checkout, "rev-parse", "HEAD").strip(), "changed": False}


@pytest.mark.parametrize("name", ["app.py", "new.py", "tools/new.py"])
def test_code_that_the_commit_does_not_contain_is_a_change(checkout: Path, name: str) -> None:
    (checkout / name).parent.mkdir(exist_ok=True)
    (checkout / name).write_text("ANSWER = 2\n")
    found = provenance._git(str(checkout))
    assert found is not None
    assert found["changed"]


def test_a_folder_without_git_has_no_commit(tmp_path: Path) -> None:
    assert provenance._git(str(tmp_path)) is None


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout
