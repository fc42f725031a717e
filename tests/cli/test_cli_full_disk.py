"""Files and a stdout that cannot be written: one sentence, exit code 1, and nothing half-written."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.commands import Folder, run_once
from support.forks import in_fork

from evaluand.core.files.paths import replaced

COMMAND = (sys.executable, "-m", "evaluand.cli")
ADVICE = "; free space, then run the same command again\n"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Folder(tmp_path_factory.mktemp("ran"))
    folder.write("rows.jsonl", [folder.row(i) for i in range(6)])
    return run_once(folder, folder.experiment())


@pytest.fixture
def folder(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder.copied(ran, tmp_path)


@contextmanager
def small_files() -> Iterator[None]:
    """The largest size of a file is 16 bytes: the error of a quota, and of a disk that becomes full while it writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("export doubling/mine -o {}", "out.csv"),
        ("export doubling/mine -o {}", "out.jsonl"),
        ("export doubling/mine -o {}", "out.parquet"),
        ("report doubling -o {}", "out.html"),
        ("label export doubling/mine --force -o {}", "labels.csv"),
        ("score rows.jsonl --truth answer --prediction question --gate accuracy>=0 --junit {}", "junit.xml"),
    ],
)
@in_fork
def test_a_file_that_does_not_fit_is_named_and_not_replaced(folder: Folder, command: str, file: str) -> None:
    (folder.path / file).write_text("before")
    before = sorted(folder.path.glob("*"))
    with small_files():
        result = folder.call("--store", folder.path / "store", *command.format(file).split())
    assert result.stderr.endswith(f"error: {file}: {os.strerror(errno.EFBIG)}{ADVICE}"), result.output
    assert result.exit_code == 1
    assert (folder.path / file).read_text() == "before"
    assert sorted(folder.path.glob("*")) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
@pytest.mark.parametrize("command", ["list", "export doubling/mine", "--help"])
@pytest.mark.slow
def test_a_full_stdout_is_one_sentence(folder: Folder, command: str) -> None:
    with open("/dev/full", "wb") as full:
        arguments = [*COMMAND, *command.split()]
        env = os.environ | {"EVALUAND_STORE": str(folder.path / "store")}
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, env=env, text=True, check=False)
    reason = f"the output or a temporary file cannot be written: {os.strerror(errno.ENOSPC)}{ADVICE}"
    assert (done.returncode, done.stderr) == (1, f"error: {reason}")


@in_fork
def test_a_project_on_a_full_disk_has_no_empty_file(folder: Folder) -> None:
    with small_files():
        result = folder.call("init", folder.path / "new")
    assert (result.exit_code, result.stderr.startswith(f"error: {folder.path}/new/.gitignore: ")) == (1, True)
    assert list((folder.path / "new").iterdir()) == []


def test_an_error_names_the_file_that_the_caller_knows(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as refused, replaced(tmp_path / "missing" / "a.csv"):
        pass
    assert refused.value.filename == str(tmp_path / "missing" / "a.csv")
    with pytest.raises(OSError, match="quota") as refused_later, replaced(tmp_path / "a.csv"):
        raise OSError(errno.ENOSPC, "quota")
    assert refused_later.value.filename == str(tmp_path / "a.csv")
    with pytest.raises(OSError, match="socket") as other, replaced(tmp_path / "a.csv"):
        raise OSError(errno.ECONNRESET, "socket")
    assert other.value.filename is None
    assert list(tmp_path.iterdir()) == []
