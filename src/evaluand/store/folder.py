"""What a store needs of a folder, on a disk (`evaluand.store.io`) or in a bucket (`evaluand.store.object`).

A file is complete from the moment in which it has its name. Nothing needs a file that grows or one that is renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Final, NamedTuple, Protocol, TypeAlias

from evaluand.core.errors import EngineError

MAX_BYTES: Final = 64 << 20  # of a file that is read as a whole: manifests, names, leases

State: TypeAlias = os.stat_result | EngineError | None
"""The state of a name; None if it does not exist, an error if it cannot be examined."""


class Entry(NamedTuple):
    """A name in a folder; a link, a device and a pipe are neither a file nor a folder."""

    name: str
    is_file: bool
    is_folder: bool


class OpenFile(Protocol):
    """A file that is open for reading."""

    @property
    def size(self) -> int:
        """Its size in bytes, when it was opened."""

    @property
    def version(self) -> tuple[int, ...]:
        """What no other content has, as far as the file system or service says without reading it."""

    def read(self, size: int, offset: int) -> bytes:
        """Up to `size` bytes from an offset; none at the end."""

    def close(self) -> None:
        """Closes the file."""


def blocks(file: OpenFile) -> Iterator[bytes]:
    """The content of a file, a MiB at a time."""
    offset = 0
    while block := file.read(1 << 20, offset):
        yield block
        offset += len(block)


class NewFile(Protocol):
    """A file that is being written; nobody can see it before it is finished."""

    def write(self, data: bytes) -> None:
        """Appends bytes."""

    def finish(self, name: str) -> None:
        """Gives the file its name, in the place of an earlier one; it survives a crash of the machine."""

    def discard(self) -> None:
        """Removes what was written; does nothing after `finish`."""


class Folder(Protocol):
    """A folder of a store.

    A missing file raises `FileNotFoundError`, every other failure `EngineError`.
    """

    @property
    def path(self) -> PurePath:
        """Where it is, for messages."""

    @property
    def place(self) -> str:
        """What distinguishes it from all other folders, for this user."""

    def __truediv__(self, name: str) -> Folder:
        """A folder in this one."""

    def hold_open(self) -> None:
        """Prepares for much that follows, until `close`.

        Raises:
            FileNotFoundError: it does not exist.
        """

    def close(self) -> None:
        """Ends `hold_open`."""

    def exists(self) -> bool:
        """Whether the folder exists."""

    def blocked(self) -> str:
        """What is in the place of this folder, such as "a link"; an empty text if it is a folder or does not exist."""

    def entries(self) -> list[Entry]:
        """What is in the folder, sorted by name; nothing if it does not exist."""

    def names(self) -> list[str]:
        """The names in the folder, sorted, whatever they are of; none if it does not exist."""
        return [entry.name for entry in self.entries()]

    def files(self) -> list[str]:
        """The names of its regular files, sorted."""
        return [entry.name for entry in self.entries() if entry.is_file]

    def folders(self) -> list[str]:
        """The names of its folders, sorted."""
        return [entry.name for entry in self.entries() if entry.is_folder]

    def state(self, name: str) -> os.stat_result | None:
        """The state of a name itself, which may be a link; None if it does not exist."""

    def states(self, names: Iterable[str], file: str = "") -> list[State]:
        """The states of names that `entries` lists; with `file`, those of a file in each of these folders."""

    def read(self, name: str, most: int = MAX_BYTES) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: it does not exist.
            EngineError: it is not a regular file, is larger than `most` bytes, or cannot be read.
        """

    def open_file(self, name: str) -> OpenFile:
        """A file to be read in parts.

        Raises:
            FileNotFoundError: it does not exist.
            EngineError: it is not a regular file, or cannot be opened.
        """

    def new_file(self, label: str) -> NewFile:
        """A file to be written, which gets its name when it is complete.

        Args:
            label: what it will be, for the name that it has until then.
        """

    def make(self) -> None:
        """Makes the folder, and those above it; their names survive a crash of the machine."""

    def sync(self) -> None:
        """Makes the names in the folder survive a crash of the machine."""

    def put(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Writes a file in one step, in the place of an earlier one.

        Args:
            durable: whether it must survive a crash of the machine.
        """

    def put_if_absent(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        """Writes a file in one step unless one of this name exists; returns whether it was written."""

    def touch(self, name: str) -> None:
        """Notes that a file is in use; does nothing if it does not exist."""

    def remove(self, name: str) -> None:
        """Removes a file; does nothing if it does not exist."""

    def remove_folder(self, name: str) -> bool:
        """Removes an empty folder; returns whether it no longer exists."""

    def hide(self, name: str, hidden: str) -> str:
        """Renames the folder of an artifact before it is removed, so that no reader sees half of it.

        Returns:
            Its name from then on: the old one where folders cannot be renamed.
        """
