"""Whatever code of the user does to its process, and whatever stands in the place of a file, the work is done."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluand.core.files import regular
from evaluand.core.files.paths import replaced

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")

APP = """
import locale, os, sys, tempfile

def changes_folder(text):
    print("called")
    os.chdir("/")
    return text

def removes_folder(text):
    print("called")
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    return text

def changes_mask(text):
    print("called")
    os.umask(0o777)
    return text

def changes_environment(text):
    print("called")
    os.environ.clear()
    os.environ.update(HOME="/none", XDG_CACHE_HOME="/none", EVALUAND_STORE="/none", LC_ALL="tr_TR.UTF-8", COLUMNS="1")
    locale.setlocale(locale.LC_ALL, "C")
    return text

def closes_output(text):
    print("called", file=sys.stderr)
    sys.stdout.close()
    return text
"""
TASKS = ("changes_folder", "removes_folder", "changes_mask", "changes_environment", "closes_output")
EXPERIMENT = """
name: hostile
dataset: {path: "DATA", input: text, expected: want}
tasks: {TASKS}
scorers: exact_match
metrics: accuracy
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"text": str(i), "want": str(i)} for i in range(4)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "app.py").write_text(APP)
    write_experiment(tmp_path, "d.jsonl")
    return tmp_path


def write_experiment(folder: Path, data: str) -> None:
    tasks = ", ".join(f'{name}: {{function: "app.py:{name}", version: "1"}}' for name in TASKS)
    (folder / "e.yaml").write_text(EXPERIMENT.replace("DATA", data).replace("{TASKS}", f"{{{tasks}}}"))


def call(folder: Path, command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a line of a shell does, in which `evaluand` is the command."""
    script = f'evaluand() {{ "{sys.executable}" -P -m evaluand.cli "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("store", ["--store kept", pytest.param("", marks=pytest.mark.slow)])
def test_code_that_changes_its_process_loses_no_answers(folder: Path, store: str) -> None:
    first, second = (call(folder, f"evaluand run e.yaml {store}") for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stderr.count("called") + first.stdout.count("called") == 4 * len(TASKS)
    assert "called" not in second.stdout + second.stderr
    assert second.stdout.count("nothing to do") == 2 * len(TASKS)
    kept = folder / ("kept" if store else ".evaluand")
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (kept, *kept.rglob("*"))}
    assert modes == {(True, 0o700), (False, 0o600)}


def test_a_module_that_changes_the_folder_when_it_is_imported_changes_no_path_of_the_experiment(folder: Path) -> None:
    (folder / "app.py").write_text(f"import os\nos.chdir('/')\n{APP}")
    assert call(folder, "evaluand run e.yaml --store kept").returncode == 0
    assert "hostile" in call(folder, "evaluand list --store kept").stdout


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("pipe", "is a pipe to which nothing is written"),
        ("/dev/zero", "is neither a file nor a pipe"),
        ("/**/*", "100,000 or more files and folders; name a folder or pattern with fewer"),
        ("x" * 300 + ".jsonl", "no such file"),
        ("x/" * 3000, "no such file"),
    ],
)
def test_what_is_no_dataset_is_one_sentence(folder: Path, data: str, message: str) -> None:
    os.mkfifo(folder / "pipe")
    write_experiment(folder, data)
    done = call(folder, "evaluand run e.yaml")
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("evaluand import pipe", 1, "error: pipe: is not a regular file; write what it holds into one"),
        ("evaluand run pipe", 1, "error: pipe: is not a regular file"),
        (
            "mkdir a; cd a; rmdir ../a; evaluand list",
            1,
            "error: the current folder was removed; change into another one",
        ),
        ("set -o pipefail; evaluand --help | head -0", 1, ""),
        ("evaluand --help >&-", 0, ""),
        ("evaluand run e.yaml >&-", 0, ""),
        (
            "evaluand run e.yaml --store /dev/null",
            2,
            "Error: Invalid value for '--store' (env var: 'EVALUAND_STORE'): ",
        ),
        ("evaluand score <(sleep 1; cat d.jsonl) --truth text --prediction want --kind multiclass", 0, ""),
        ("evaluand score - --truth text --prediction want --kind multiclass < d.jsonl", 0, ""),
    ],
)
def test_odd_places_and_outputs_end_in_one_sentence(folder: Path, command: str, code: int, message: str) -> None:
    os.mkfifo(folder / "pipe")
    done = call(folder, command)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert message in done.stderr


def test_to_write_into_a_pipe_from_which_nothing_reads_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular, "_PATIENCE", 0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is a pipe from which nothing reads"), replaced(tmp_path / "pipe"):
        pass
