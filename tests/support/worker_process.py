"""Workers of a log in this process and in others."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluand.store.io import DiskFolder
from evaluand.store.journal import WorkLog
from evaluand.store.leases import FileLeases
from evaluand.store.log import FileLog

SCOPE = "runs/00/calls"

HOLDS = """
import sys
from pathlib import Path
from support.worker_process import open_lane
from evaluand.store import leases

leases.LEASE_SECONDS = float(sys.argv[2])
lane = open_lane(Path(sys.argv[1]))
print(*lane.leases.claim(1), flush=True)
for line in sys.stdin:
    print(lane.append(line.encode()) if line.startswith("[") else lane.leases.claim(1), flush=True)
"""


def open_lane(folder: Path, slots: int | None = 12, kind: type[FileLeases] = FileLeases) -> WorkLog:
    """The lane of a folder, as a store opens it."""
    log = FileLog(DiskFolder(folder), SCOPE)
    leases = kind(DiskFolder(folder), log)
    lane = WorkLog(log, leases, slots)
    leases.fence = lane.fence
    return lane


class Process:
    """A Python process that continues when it is sent a line."""

    def __init__(self, code: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def send(self, text: str = "go") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        """Halts it without ending it: it lives, and its heart does not beat."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def processes(*started: Process) -> Iterator[None]:
    try:
        yield
    finally:
        for one in started:
            one.kill()
