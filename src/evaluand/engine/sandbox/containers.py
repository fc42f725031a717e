"""A container of docker or podman, whose command lines are the same."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from evaluand.engine.sandbox.calls import MACHINES, filter_calls
from evaluand.engine.sandbox.limits import MIB, OPEN_FILES, Limits
from evaluand.engine.sandbox.places import ENVIRONMENT, SCRATCH, Place, next_user

PROGRAMS: Final = {"docker": (), "podman": ("--read-only-tmpfs=false",)}
"""What can run containers, with what is asked of it alone: podman would add folders that can be written to."""


@contextmanager
def in_container(program: str, image: str, limits: Limits) -> Iterator[Place]:
    """A container without network, whose files can only be read, apart from a folder in memory.

    It ends with its first process, which is Python and ends when its input does, thus also with the process that
    started it.
    """
    name = f"evaluand-{secrets.token_hex(16)}"
    command = [
        *(program, "run", "--rm", "--interactive", "--name", name, "--pull", "never", "--log-driver", "none"),
        *PROGRAMS[program],
        *_APART,
        *_bounds(limits),
        *("--entrypoint", "env", image, "-i"),  # without what a configuration adds, such as proxies
        *(f"{key}={value}" for key, value in {**ENVIRONMENT, "HOME": SCRATCH}.items()),
        "python3",
    ]
    filters = {machine: (filter_calls(machine) or b"").hex() for machine in MACHINES}
    yield Place(
        command,
        dict(os.environ),
        os.sep,
        next_user(),
        filters=filters,
        end=lambda: _run(program, "rm", "--force", name),
    )


_APART: Final = (
    *("--network", "none", "--ipc", "none", "--read-only", "--workdir", SCRATCH, "--user", "0:0"),
    *("--security-opt", "no-new-privileges", "--cap-drop", "ALL"),
    *("--cap-add", "SETUID", "--cap-add", "SETGID"),  # until it is another user
)
_OWN_PROCESSES: Final = 4  # those that execute no program
_OWN_MEMORY: Final = 64  # MiB of these


def _bounds(limits: Limits) -> list[str]:
    memory = f"{limits.memory + limits.files + _OWN_MEMORY}m"
    processes = limits.processes + _OWN_PROCESSES
    return [
        *("--tmpfs", f"{SCRATCH}:rw,mode=1777,size={limits.files * MIB}"),
        *("--memory", memory, "--memory-swap", memory, "--pids-limit", str(processes)),
        *("--ulimit", f"nofile={OPEN_FILES}:{OPEN_FILES}", "--ulimit", f"nproc={_THREADS}:{_THREADS}"),
    ]


_THREADS: Final = 1024  # lower than what podman asks for, which not every machine grants


def why_no_container(program: str, image: str) -> str:
    """Why there can be no container with an image, which is never fetched; empty if there can."""
    if not shutil.which(program):
        return f"{program} is not installed"
    done = _run(program, "image", "inspect", "--format", "{{.Id}}", image)
    if done.returncode == 0:
        return ""
    said = " ".join(done.stderr.split()) or f"exited with status {done.returncode}"
    return f"{program} does not find the image {image} ({said}; it is fetched with {program} pull {image})"


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
