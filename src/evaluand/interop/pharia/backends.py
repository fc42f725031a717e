"""What repositories keep things on: in memory, or in a folder. Both hold the same JSON, and so give back the same.

A shelf has heads, each a text under an id, and rows, one of each example, in lists under an id and a name.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from pydantic_core import from_json

from evaluand.core.files.atomic import replaced
from evaluand.interop.pharia.repository_files import (
    AppendedRows,
    JoinedRows,
    SdkRows,
    file_name,
    heads,
    place,
    read_text,
    sdk_place,
)

HEAD = ".json"


class Readable(Protocol):
    """Rows to be read: each has `example_id`, `failed` and `value`."""

    def ids(self) -> list[str]:
        """The ids of the examples that have a row, sorted."""

    def get(self, example_id: str) -> dict[str, Any] | None:
        """An example's row."""

    def __iter__(self) -> Iterator[dict[str, Any]]: ...


class Writable(Readable, Protocol):
    """Rows to be read and written."""

    def append(self, example_id: str, value: bytes, *, failed: bool = False) -> None:
        """Adds a row, in the place of an earlier one of the example."""

    def take_back(self, example_id: str) -> None:
        """Leaves the example without a row."""

    def close(self) -> None:
        """Lets go of what adding rows needs, until one is added again."""


class Shelf(Protocol):
    """Where a repository keeps heads and rows."""

    def put(self, id: str, content: bytes, suffix: str = HEAD) -> None:
        """Keeps a head; one of that id and suffix gives way to it."""

    def get(self, id: str, suffix: str = HEAD) -> bytes | None:
        """A head."""

    def where(self, id: str, suffix: str = HEAD) -> object:
        """What people find a head by."""

    def ids(self, suffix: str = HEAD) -> list[str]:
        """The ids of the heads, sorted."""

    def rows(self, id: str, name: str) -> Writable:
        """The rows of an id, be there any or not."""

    def all_rows(self, id: str, name: str) -> Readable | None:
        """The rows of an id, with those that others wrote; None where there are none."""

    def hold(self, id: str, suffix: str) -> bool:
        """Takes a head for oneself until it is let go or this process ends; whether nobody else has it."""

    def let_go(self, id: str, suffix: str, *, remove: bool) -> None:
        """Gives back what is held, or removes it."""


class MemoryShelf:
    """A shelf that lasts as long as its repository."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], bytes] = {}
        self._rows: dict[tuple[str, str], _MemoryRows] = {}
        self._held: dict[tuple[str, str], object] = {}

    def put(self, id: str, content: bytes, suffix: str = HEAD) -> None:
        self._heads[id, suffix] = content

    def get(self, id: str, suffix: str = HEAD) -> bytes | None:
        return self._heads.get((id, suffix))

    def where(self, id: str, suffix: str = HEAD) -> object:
        return id

    def ids(self, suffix: str = HEAD) -> list[str]:
        return sorted(id for id, of in list(self._heads) if of == suffix)

    def rows(self, id: str, name: str) -> Writable:
        return self._rows.setdefault((id, name), _MemoryRows())

    def all_rows(self, id: str, name: str) -> Readable | None:
        return self._rows.get((id, name))

    def hold(self, id: str, suffix: str) -> bool:
        mine = object()
        return self._held.setdefault((id, suffix), mine) is mine

    def let_go(self, id: str, suffix: str, *, remove: bool) -> None:
        if remove:
            self._heads.pop((id, suffix), None)
        self._held.pop((id, suffix), None)


class FileShelf:
    """A shelf below a folder: heads as `<id><suffix>`, rows as `<id>/<name>.jsonl`, both under the name of their id.

    Args:
        folder: the folder; made if it is not there.
        theirs: of the folder of an id, the one where the SDKs wrote its rows, a file for each.
        row: the row that such a file's content stands for.
    """

    def __init__(
        self,
        folder: Path,
        theirs: Callable[[Path], Path] | None = None,
        row: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._folder_of_theirs, self._row = theirs, row
        self._rows: dict[tuple[str, str], AppendedRows] = {}
        self._theirs: dict[Path, SdkRows] = {}
        self._held: dict[Path, int] = {}

    def put(self, id: str, content: bytes, suffix: str = HEAD) -> None:
        with replaced(self._path(id, suffix)) as file:
            file.write(content)

    def get(self, id: str, suffix: str = HEAD) -> bytes | None:
        return read_text(self.where(id, suffix))

    def where(self, id: str, suffix: str = HEAD) -> Path:
        return place(self.folder, id, suffix)

    def ids(self, suffix: str = HEAD) -> list[str]:
        return heads(self.folder, suffix)

    def rows(self, id: str, name: str) -> AppendedRows:
        key = id, name
        if key not in self._rows:
            self._rows.setdefault(key, AppendedRows(self.folder / file_name(id) / f"{name}.jsonl"))
        return self._rows[key]

    def all_rows(self, id: str, name: str) -> Readable | None:
        own = self.rows(id, name)
        theirs = self._folder_of_theirs and self._folder_of_theirs(sdk_place(self.folder, id))
        if theirs and theirs.is_dir():
            return JoinedRows(own, self._theirs.setdefault(theirs, SdkRows(theirs, self._row)))
        return own if own.path.is_file() else None

    def hold(self, id: str, suffix: str) -> bool:
        path = self._path(id, suffix)
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:  # a file system without locks excludes nobody
            pass
        self._held[path] = descriptor
        if os.fstat(descriptor).st_nlink:
            return True
        self.let_go(id, suffix, remove=False)  # who held it has removed it meanwhile
        return False

    def let_go(self, id: str, suffix: str, *, remove: bool) -> None:
        path = self._path(id, suffix)
        if remove:
            path.unlink(missing_ok=True)
        descriptor = self._held.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def _path(self, id: str, suffix: str) -> Path:
        return self.folder / (file_name(id) + suffix)


class _MemoryRows:
    """Rows as JSON, by the ids of their examples."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[bool, bytes]] = {}

    def append(self, example_id: str, value: bytes, *, failed: bool = False) -> None:
        self._kept[example_id] = failed, value

    def take_back(self, example_id: str) -> None:
        self._kept.pop(example_id, None)

    def close(self) -> None:
        pass

    def ids(self) -> list[str]:
        return sorted(self._kept)

    def get(self, example_id: str) -> dict[str, Any] | None:
        if example_id not in self._kept:
            return None
        failed, value = self._kept[example_id]
        return {"example_id": example_id, "failed": failed, "value": from_json(value)}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return filter(None, map(self.get, self.ids()))
