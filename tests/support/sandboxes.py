"""What tests of sandboxes need of the machine, and what may not be left on it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from evaluand.core.errors import SpecError
from evaluand.engine.sandbox.running import require_sandbox
from support.patience import PATIENCE

SYSTEM_PYTHON = "/usr/bin/python3"


def skip_without_sandbox() -> None:
    """Skips a test where there is no sandbox."""
    try:
        require_sandbox()
    except SpecError as error:
        pytest.skip(str(error))


def use_readable_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are run by a Python that other users can read, since root starts them as another user."""
    if os.geteuid() == 0:
        if not os.access(SYSTEM_PYTHON, os.X_OK):
            pytest.skip("another user than root cannot read this Python, and the system has none")
        monkeypatch.setattr(sys, "executable", SYSTEM_PYTHON)


def find_processes(mark: str) -> Iterator[int]:
    """The processes with a mark in their command."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if mark.encode() in (folder / "cmdline").read_bytes():
                yield int(folder.name)


def await_end(mark: str) -> None:
    """Waits until no process has a mark in its command."""
    until = time.monotonic() + PATIENCE
    while alive := [*find_processes(mark)]:
        assert time.monotonic() < until, alive
        time.sleep(0.01)
