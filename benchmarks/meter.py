"""What a process cost: CPU time, memory, bytes and files on disk. Only the standard library, so peers can use it too.

CPU time is that of all threads and of ended children, in user and kernel mode: on a machine that others use as well,
it says more than the clock on the wall. The bytes of a file are counted in whole blocks and folders count as well,
since that is what a disk is full of.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BLOCK = 4096
LOOPS = 20_000


def cpu() -> float:
    """Seconds of CPU time so far."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_memory() -> int:
    """The most bytes of memory this process has had at once."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def disk(folder: str) -> tuple[int, int]:
    """Bytes and files below a folder."""
    size = files = 0
    pending = [folder]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except FileNotFoundError:
            continue
        for entry in entries:
            try:
                bytes_ = entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue
            size += -(-bytes_ // BLOCK) * BLOCK
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                files += 1
    return size, files


def speed() -> float:
    """Seconds of CPU time for a fixed piece of work: how fast the machine is just now, busy as it may be."""
    started = time.process_time()
    for number in range(LOOPS):
        json.dumps([number, "text", {"key": number}])
    return time.process_time() - started


class Phases:
    """CPU and wall time of the steps of some work."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.wall: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        clock, used = time.perf_counter(), cpu()
        yield
        self.cpu[name], self.wall[name] = cpu() - used, time.perf_counter() - clock

    def result(self, folder: str) -> dict[str, Any]:
        """Everything measured so far, with what lies in a folder now."""
        size, files = disk(folder)
        return {
            "cpu": sum(self.cpu.values()),
            "wall": sum(self.wall.values()),
            "cpu_of": self.cpu,
            "wall_of": self.wall,
            "memory": peak_memory(),
            "bytes": size,
            "files": files,
            "speed": speed(),
        }


class DiskPeak:
    """The most that lay in a folder at any moment.

    What lies in a folder falls only when something is removed, and Python announces that to audit hooks; so looking
    just before each removal, and at the end, misses nothing.
    """

    def __init__(self, folder: str) -> None:
        self.bytes = self.files = 0
        self._folder = folder
        sys.addaudithook(self._before)

    def look(self) -> None:
        size, files = disk(self._folder)
        self.bytes, self.files = max(self.bytes, size), max(self.files, files)

    def _before(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("os.remove", "os.rename", "shutil.rmtree"):
            self.look()
