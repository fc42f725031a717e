"""A disk that counts its calls, and fails at one of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from evaluand.core.system import KILLED
from evaluand.store import io
from evaluand.store.io import Disk

WRITING = frozenset({"write", "sync", "make_folder", "make_folders", "rename", "link", "touch"})
"""The calls that may find no space; so may `open`, where it makes a file."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong at a call.

    Attributes:
        act: makes the call, which it is given with its name and its arguments, or not.
        concerns: whether a call can fail like this.
        lasts: whether all later calls that it concerns fail, too.
    """

    name: str
    act: Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]
    concerns: Callable[[str, tuple[Any, ...]], bool] = lambda name, arguments: True
    lasts: bool = False


def failing(number: int) -> Callable[..., Any]:
    """An error of the system; what is closed is closed nevertheless, as Linux does."""

    def act(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if name == "close":
            call(*arguments)
        raise OSError(number, os.strerror(number))

    return act


def may_be_full(name: str, arguments: tuple[Any, ...]) -> bool:
    return name in WRITING or (name == "open" and bool(arguments[1] & os.O_CREAT))


def write_half(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    handle, data = arguments
    return call(handle, data[: len(data) // 2])


def die(name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Ends the process as `kill -9` does; a write may have been made in part."""
    if name == "write":
        write_half(name, call, arguments)
    os._exit(KILLED)


class FaultyDisk:
    """Makes the calls of another disk.

    Args:
        fault: what goes wrong, at the call with the number `at`, counted from 0.

    Attributes:
        calls: the calls so far that the fault concerns, by name.
    """

    def __init__(self, disk: Disk, fault: Fault, at: int) -> None:
        self._disk, self._fault, self._at = disk, fault, at
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._disk, name)

        def made(*arguments: Any) -> Any:
            if not self._fault.concerns(name, arguments):
                return call(*arguments)
            self.calls.append(name)
            number = len(self.calls) - 1
            is_due = number >= self._at if self._fault.lasts else number == self._at
            return self._fault.act(name, call, arguments) if is_due else call(*arguments)

        return made


EIO = failing(errno.EIO)
FAULTS = (
    Fault("EIO", EIO),
    Fault("EIO from then on", EIO, lasts=True),
    Fault("EINTR", failing(errno.EINTR)),
    Fault("ENOSPC", failing(errno.ENOSPC), may_be_full),
    Fault("ENOSPC from then on", failing(errno.ENOSPC), may_be_full, lasts=True),
    Fault("short write", write_half, lambda name, arguments: name == "write"),
)
DEATH = Fault("death", die)


@contextmanager
def faulty(fault: Fault, at: int, disk: Disk | None = None) -> Iterator[FaultyDisk]:
    """Puts a faulty disk in the place of the one that stores use."""
    made = FaultyDisk(disk or Disk(), fault, at)
    with patch.object(io, "disk", made):
        yield made
