"""What begins anew in a forked process: there, locks, open files and leases are those of the parent."""

from __future__ import annotations

from typing import Final, Protocol
from weakref import WeakSet

from evaluand.core.system import call_after_fork


class Forked(Protocol):
    """What must not go on in a forked process as it was."""

    def fork(self) -> None:
        """Begins anew."""


begun_anew_in_forks: Final = WeakSet[Forked]()


def _fork() -> None:
    for each in [*begun_anew_in_forks]:
        each.fork()


call_after_fork(_fork)
