"""Files of repositories: file names for arbitrary ids, and rows appended to one file.

Each id has its own file name, without separators and dots, distinct where file names ignore case, and reserved on no
system: `../x`, `CON`, `A` and `a` and a text of 300 characters are all files in the repository's folder. Ids of lower
case letters, digits, `_` and `-`, such as UUIDs, are their own file names, as in the SDKs' folders.

Rows are lines of JSON, each appended by one `write`: finished rows survive the death of the process, and a line that it
cuts off is ignored. The last line of an example counts.
"""

import hashlib
import os
import re
import reprlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from evaluand.core.errors import EngineError
from evaluand.core.system import BINARY, read_at
from evaluand.interop.pharia.domain import ATOMS, Refused

_PLAIN = re.compile(r"[a-z0-9_-]+")
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
_LONGEST = 120  # file systems allow 255 bytes; endings are added
_CUT = "%-"  # does not occur in escaped names, where a hexadecimal digit follows each percent sign


def file_name(id: str) -> str:
    """The name of the file or folder for an id.

    Example:
        >>> file_name("my-run_2"), file_name("../x"), file_name("A"), file_name("con")
        ('my-run_2', '%2E%2E%2Fx', '%41', '%63on')
    """
    name = id
    if not _PLAIN.fullmatch(id):
        name = "".join(map(_escape, id)) or "%"
    elif _RESERVED.fullmatch(id):
        name = f"%{ord(id[0]):02X}{id[1:]}"
    if len(name) <= _LONGEST:
        return name
    return name[:60] + _CUT + hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def id_of(name: str) -> str | None:
    """The id of a file name: itself if the SDKs wrote it; None if it is shortened, and the id is inside the file."""
    if _CUT in name:
        return None
    id = "" if name == "%" else unquote_to_bytes(name.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
    return id if file_name(id) == name else name


def place(folder: Path, id: str, suffix: str = "") -> Path:
    """The path for reading an id's file or folder: its file name, or the id itself where the SDKs wrote it."""
    path = folder / (file_name(id) + suffix)
    return path if path.exists() else sdk_place(folder, id, suffix)


def sdk_place(folder: Path, id: str, suffix: str = "") -> Path:
    """The path where the SDKs wrote an id's file or folder, even if there is one under its file name as well."""
    path = folder / (file_name(id) + suffix)
    if path.name == id + suffix or id_of(id) != id or not folder.is_dir():
        return path
    return folder / (id + suffix) if id + suffix in os.listdir(folder) else path


def exact_text(value: Any, indent: int | None = None) -> bytes:
    """A value as JSON that preserves undefined numbers (`NaN`, not `null`); Refused if it cannot be written."""
    try:
        if type(value) in ATOMS:
            return to_json(value)
        text = to_json(plain := to_jsonable_python(value), indent=indent)
        if b"null" in text:  # models write undefined numbers as null, too
            text = to_json(_restore_undefined(plain, value), indent=indent)
        return text
    except (PydanticSerializationError, UnicodeError) as error:
        reason = "it contains a lone surrogate" if "surrogates" in str(error) else str(error)
        raise Refused(f"{reprlib.repr(value)} cannot be stored: {reason}") from None


def read_text(path: Path) -> bytes | None:
    """A file's content, or None if there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def heads(folder: Path, suffix: str) -> list[str]:
    """The ids of the heads in a folder, sorted."""
    if not folder.is_dir():
        return []
    names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(suffix) and entry.name[0] != "."]
    return sorted({id_of(name.removesuffix(suffix)) or from_json((folder / name).read_bytes())["id"] for name in names})


class Rows(ABC):
    """Rows, one for each example: each has `example_id`, `failed` and `value`."""

    @abstractmethod
    def ids(self) -> list[str]:
        """The ids of the examples that have a row, sorted."""

    @abstractmethod
    def get(self, example_id: str) -> dict[str, Any] | None:
        """An example's row, its last one; None if it has none."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return filter(None, map(self.get, self.ids()))


class AppendedRows(Rows):
    """The rows of one run or evaluation in a file; safe with any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._read_to = 0
        self._descriptor: int | None = None

    def append(self, example_id: str, value: bytes, *, failed: bool = False) -> None:
        """Append a row; the value is JSON text."""
        head = to_json({"example_id": example_id, "failed": failed})[:-1]
        self._append(head + b',"value":' + value + b"}\n")

    def take_back(self, example_id: str) -> None:
        """Append a line that removes the example's earlier rows."""
        self._append(to_json({"example_id": example_id, "taken_back": True}) + b"\n")

    def close(self) -> None:
        """Close the file until the next `append`."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def ids(self) -> list[str]:
        with self._lock:
            self._catch_up()
            return sorted(self._places)

    def ids_as_written(self) -> list[str]:
        """The ids of the examples that have a row, in the order of their first rows."""
        with self._lock:
            self._catch_up()
            return list(self._places)

    def get(self, example_id: str) -> dict[str, Any] | None:
        found = self.all(example_id)
        return found[-1] if found else None

    def all(self, example_id: str) -> list[dict[str, Any]]:
        """All rows of an example, in the order in which they were written."""
        with self._lock:
            self._catch_up()
            places = list(self._places.get(example_id, ()))
        return list(self._rows(places))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._rows([self._places[id][-1] for id in self.ids()])

    def _append(self, line: bytes) -> None:
        with self._lock:
            if self._descriptor is None:
                self._descriptor = self._begin()
            written = 0
            try:
                written = os.write(self._descriptor, line)
            finally:
                if written != len(line):
                    self._give_up(self._descriptor, written)
        if written != len(line):
            raise EngineError(f"{self.path}: only part of a row could be written; check whether the disk is full")

    def _give_up(self, descriptor: int, written: int) -> None:
        """End a partly written line, now if the disk has room, or else when the file is opened again."""
        self._descriptor = None
        if written:
            with suppress(OSError):
                os.write(descriptor, b"\n")
        os.close(descriptor)

    def _begin(self) -> int:
        """Open or create the file, and end a partial line that a dead process left."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            if size and read_at(file.fileno(), 1, size - 1) != b"\n":
                file.write(b"\n")
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | BINARY)

    def _catch_up(self) -> None:
        """Read the lines added since the last call; an incomplete last line is read later."""
        try:
            if os.stat(self.path).st_size == self._read_to:
                return
        except FileNotFoundError:
            return
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                id, is_row = _parse_line_id(line)
                if id is not None and is_row:
                    self._places.setdefault(id, []).append((self._read_to, len(line)))
                elif id is not None:
                    self._places.pop(id, None)
                self._read_to += len(line)

    def _rows(self, places: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
        if not places:
            return
        with self.path.open("rb") as file:
            for offset, size in places:
                yield from_json(read_at(file.fileno(), size, offset))


class SdkRows(Rows):
    """The rows that the SDKs wrote, one file for each; `row` converts the content of a file. Read only."""

    def __init__(self, folder: Path, row: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._folder, self._parse = folder, row
        self._names: dict[str, Path] = {}
        self._mtime_ns: int | None = None

    def ids(self) -> list[str]:
        self._list()
        return sorted(self._names)

    def get(self, example_id: str) -> dict[str, Any] | None:
        self._list()
        path = self._names.get(example_id)
        return None if path is None else self._parse(from_json(path.read_bytes()))

    def _list(self) -> None:
        changed = self._folder.stat().st_mtime_ns
        if changed != self._mtime_ns:
            self._names = {path.stem: path for path in self._folder.glob("*.json")}
            self._mtime_ns = changed


class JoinedRows(Rows):
    """The rows of a run or evaluation that the SDKs began and evaluand continued; evaluand's rows take precedence."""

    def __init__(self, own: Rows, sdk_rows: Rows) -> None:
        self._own, self._sdk_rows = own, sdk_rows

    def ids(self) -> list[str]:
        return sorted({*self._own.ids(), *self._sdk_rows.ids()})

    def get(self, example_id: str) -> dict[str, Any] | None:
        return self._own.get(example_id) or self._sdk_rows.get(example_id)


def _restore_undefined(plain: Any, value: Any) -> Any:
    """A value's JSON data, with its undefined numbers restored."""
    if plain is None and isinstance(value, float):
        return value
    if isinstance(plain, dict) and not isinstance(value, dict):
        return {key: _restore_undefined(item, getattr(value, key, None)) for key, item in plain.items()}
    if isinstance(plain, dict) and len(plain) == len(value):
        return {
            key: _restore_undefined(*both) for key, *both in zip(plain, plain.values(), value.values(), strict=True)
        }
    if isinstance(plain, list) and isinstance(value, list | tuple) and len(plain) == len(value):
        return list(map(_restore_undefined, plain, value))
    return plain


def _escape(character: str) -> str:
    if _PLAIN.fullmatch(character):
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _parse_line_id(line: bytes) -> tuple[str | None, bool]:
    """The example id of a line (None if the line is incomplete), and whether it is a row or removes earlier rows."""
    try:
        row = from_json(line)
        return str(row["example_id"]), "taken_back" not in row
    except (ValueError, KeyError, TypeError):
        return None, False
