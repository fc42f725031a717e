"""What a program in the sandbox may use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20

OPEN_FILES: Final = 256


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a program may use.

    Attributes:
        timeout: seconds on the clock.
        memory: MiB of address space for each of its processes, and in a container of memory for all of them together.
        processes: how many it may have at once, threads included.
        files: MiB of each file it writes, and of all of them together in a sandbox.
        output: MiB it may write to standard output and standard error.
    """

    timeout: float = 10.0
    memory: int = 1024
    processes: int = 64
    files: int = 64
    output: int = 1

    @property
    def processor(self) -> int:
        """Seconds of processor time for each of its processes: more than one that never waits has on the clock."""
        return math.ceil(self.timeout) + 1

    @property
    def of_processes(self) -> dict[str, int]:
        """The limits of each process, under their names in `resource`."""
        return {
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": self.processor,
            "RLIMIT_FSIZE": self.files * MIB,
            "RLIMIT_NOFILE": OPEN_FILES,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_AS": self.memory * MIB,
        }
