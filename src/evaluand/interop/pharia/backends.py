"""Storage of repositories: in memory or in a folder. Both store the same JSON, so both return the same values.

A shelf has heads, each a text under an id, and rows, one for each example, in lists under an id and a name.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from evaluand.core.files.paths import replaced
from evaluand.core.system import BINARY, lock_file
from evaluand.interop.pharia.repository_files import (
    AppendedRows,
    JoinedRows,
    Rows,
    SdkRows,
    file_name,
    heads,
    place,
    read_text,
    sdk_place,
)

HEAD = ".json"


class MemoryRows(Rows):
    """Rows as JSON, by the ids of their examples."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[bool, bytes]] = {}

    def append(self, example_id: str, value: bytes, *, failed: bool = False) -> None:
        self._rows[example_id] = failed, value

    def take_back(self, example_id: str) -> None:
        self._rows.pop(example_id, None)

    def close(self) -> None:
        """There is no file to close."""

    def ids(self) -> list[str]:
        return sorted(self._rows)

    def ids_as_written(self) -> list[str]:
        """The ids of the examples that have a row, in the order of their first rows."""
        return list(self._rows)

    def get(self, example_id: str) -> dict[str, Any] | None:
        if example_id not in self._rows:
            return None
        failed, value = self._rows[example_id]
        return {"example_id": example_id, "failed": failed, "value": from_json(value)}


class MemoryShelf:
    """A shelf that lasts as long as its repository."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], bytes] = {}
        self._rows: dict[tuple[str, str], MemoryRows] = {}
        self._locks: dict[tuple[str, str], object] = {}

    def put(self, id: str, content: bytes, suffix: str = HEAD) -> None:
        """Store a head; it replaces one with the same id and suffix."""
        self._heads[id, suffix] = content

    def get(self, id: str, suffix: str = HEAD) -> bytes | None:
        """The head with this id, or None."""
        return self._heads.get((id, suffix))

    def where(self, id: str, suffix: str = HEAD) -> object:
        """The path or id by which messages name a head."""
        return id

    def ids(self, suffix: str = HEAD) -> list[str]:
        """The ids of the heads, sorted."""
        return sorted(id for id, of in list(self._heads) if of == suffix)

    def rows(self, id: str, name: str) -> MemoryRows:
        """The rows of an id; may be empty."""
        return self._rows.setdefault((id, name), MemoryRows())

    def all_rows(self, id: str, name: str) -> MemoryRows | None:
        """The rows of an id, with those that the SDKs wrote; None if there are none."""
        return self._rows.get((id, name))

    def remove_rows(self, id: str, name: str) -> None:
        """Remove the rows of an id, if there are any."""
        self._rows.pop((id, name), None)

    def hold(self, id: str, suffix: str) -> bool:
        """Lock a head until `let_go` or until this process ends; false if it is locked elsewhere."""
        mine = object()
        return self._locks.setdefault((id, suffix), mine) is mine

    def let_go(self, id: str, suffix: str, *, remove: bool) -> None:
        """Unlock a head, and remove it with `remove`."""
        if remove:
            self._heads.pop((id, suffix), None)
        self._locks.pop((id, suffix), None)


class FileShelf:
    """A shelf in a folder: heads as `<id><suffix>`, rows as `<id>/<name>.jsonl`, both under the name of their id.

    The first write creates the folder. `sdk_folder` maps the folder of an id to the one where the SDKs wrote its rows,
    one file for each, and `row` converts the content of such a file.
    """

    def __init__(
        self,
        folder: Path,
        sdk_folder: Callable[[Path], Path] | None = None,
        row: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        self.folder = folder
        self._sdk_folder, self._row = sdk_folder, row
        self._rows: dict[tuple[str, str], AppendedRows] = {}
        self._sdk_rows: dict[Path, SdkRows] = {}
        self._locks: dict[Path, int] = {}

    def put(self, id: str, content: bytes, suffix: str = HEAD) -> None:
        with replaced(self._path(id, suffix), parents=True) as file:
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

    def all_rows(self, id: str, name: str) -> AppendedRows | JoinedRows | None:
        own = self.rows(id, name)
        sdk_folder = self._sdk_folder and self._sdk_folder(sdk_place(self.folder, id))
        if sdk_folder and sdk_folder.is_dir():
            return JoinedRows(own, self._sdk_rows.setdefault(sdk_folder, SdkRows(sdk_folder, self._row)))
        return own if own.path.is_file() else None

    def remove_rows(self, id: str, name: str) -> None:
        rows = self._rows.pop((id, name), None) or AppendedRows(self.folder / file_name(id) / f"{name}.jsonl")
        rows.close()
        rows.path.unlink(missing_ok=True)
        with suppress(OSError):  # the folder does not exist, or contains other rows
            rows.path.parent.rmdir()

    def hold(self, id: str, suffix: str) -> bool:
        path = self._path(id, suffix)
        try:
            descriptor = os.open(path, os.O_RDWR | BINARY)
        except FileNotFoundError:
            return False
        if not lock_file(descriptor):
            os.close(descriptor)
            return False
        self._locks[path] = descriptor
        if os.fstat(descriptor).st_nlink:
            return True
        self.let_go(id, suffix, remove=False)  # the previous holder removed it meanwhile
        return False

    def let_go(self, id: str, suffix: str, *, remove: bool) -> None:
        path = self._path(id, suffix)
        if remove:
            path.unlink(missing_ok=True)
        descriptor = self._locks.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def _path(self, id: str, suffix: str) -> Path:
        return self.folder / (file_name(id) + suffix)
