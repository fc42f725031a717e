"""Processes that measure, and the throw-away environments of peers. Only the standard library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def run(command: Sequence[str], environment: dict[str, str]) -> dict[str, Any]:
    """The JSON on the last line that a child prints."""
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = ended.stdout.strip().splitlines()
    if ended.returncode or not lines:
        raise RuntimeError(f"{' '.join(command[1:])}: {ended.stderr.strip()[-2000:] or 'no output'}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def measured(command: Sequence[str], environment: dict[str, str], folder: Path) -> tuple[float, int]:
    """The CPU time, in seconds, and the peak of memory, in bytes, of a command that succeeds, with its children."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command[2:])}: {output.read().decode()[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def environment(folder: Path, packages: Sequence[str], modules: Mapping[str, str]) -> dict[str, Path]:
    """The interpreter for each peer whose module can be imported, after installing them where they are not there."""
    python = folder.resolve() / "bin" / "python"
    if not python.exists():
        say(f"installing {', '.join(packages)} into {folder}")
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            *([str(python), "-m", "pip", "install", "--quiet", package] for package in packages),
        ):
            ended = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
            if ended.returncode:
                say(f"failed: {' '.join(command)}\n{ended.stderr.strip()[-1000:]}")
    found = {}
    for name, module in modules.items():
        command = [str(python), "-c", f"import {module}"]
        if not python.exists() or subprocess.run(command, capture_output=True, check=False).returncode:
            say(f"{name} cannot be imported and is left out")
        else:
            found[name] = python
    return found


def clean_environment() -> dict[str, str]:
    """The environment without what points at this Python's packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
