"""What tests of sandboxes need of the machine, and what may not be left on it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from evaluand.engine.sandbox import running
from support.patience import PATIENCE

SYSTEM_PYTHON = "/usr/bin/python3"


IMAGE = os.environ.get("EVALUAND_TEST_IMAGE", running.IMAGE)
"""The image of the containers, such as one that `system_image.py` has made."""

SANDBOXES = (
    "bubblewrap",
    pytest.param("docker", marks=pytest.mark.slow),
    pytest.param("podman", marks=pytest.mark.slow),
)


def use_sandbox(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are run in this sandbox; skips a test where it does not work."""
    place, reason = _find_sandbox(name)
    if place is None:
        pytest.skip(reason)
    monkeypatch.setattr(running, "_find_place", lambda image, allow: place)


@cache
def _find_sandbox(name: str) -> tuple[running.OpenPlace | None, str]:
    return running.find_sandbox(name, IMAGE)


def find_containers(name: str) -> list[str]:
    """The containers that a sandbox has left, whether they run or not."""
    if name == "bubblewrap":
        return []
    listed = [name, "ps", "--all", "--quiet", "--filter", "name=^evaluand-"]
    return subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()


def await_no_container(name: str) -> None:
    """Waits until a sandbox has no container."""
    until = time.monotonic() + PATIENCE
    while left := find_containers(name):
        assert time.monotonic() < until, left
        time.sleep(0.1)


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
