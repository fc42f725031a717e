"""What reads the format of another tool, and how a format is found."""

from __future__ import annotations

import codecs
import csv
import io
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError, alternatives, plural
from evaluand.core.files.csv import mapped, records_in
from evaluand.core.files.json_items import JsonCursor, parse_json
from evaluand.exchange.sample import Sample, Total

_HEAD = 1 << 16


class LogFile:
    """A file or folder that may be of any tool.

    Attributes:
        path: where it is.
        head: the first bytes; empty for a folder.

    Raises:
        DataError: there is no such file, or it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.is_folder = path.is_dir()
            self.head = b""
            if path.is_fifo() or path.is_char_device():
                raise DataError(f"{path}: is not a regular file; write what it holds into one")
            if not self.is_folder:
                with path.open("rb") as file:
                    self.head = file.read(_HEAD)
        except OSError as error:
            raise DataError(Fault(str(path), f"cannot be read: {error.strerror}")) from None

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the object with which a JSON file begins, as far as the head goes; of a list, of its first."""
        return _keys_at(JsonCursor(self.head))

    def keys_under(self, member: str) -> frozenset[str]:
        """As `keys`, of the object or list that a member of the object has with which the file begins."""
        cursor = JsonCursor(self.head)
        try:
            for key in cursor.members() if cursor.kind == "{" else ():
                if key == member:
                    return _keys_at(cursor)
        except DataError:
            pass
        return frozenset()

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names in the first line of a CSV file; empty for JSON."""
        line = self.head.partition(b"\n")[0].removeprefix(codecs.BOM_UTF8)
        if not line or line.lstrip()[:1] in (b"{", b"["):
            return frozenset()
        try:
            return frozenset(_cells(line))
        except (ValueError, csv.Error):
            return frozenset()

    @cached_property
    def first_line(self) -> dict[str, Any]:
        """The object on the first line, if the head has all of it; otherwise empty."""
        line, end, _ = self.head.partition(b"\n")
        if not end:
            return {}
        try:
            found = parse_json(line, str(self.path))
        except DataError:
            return {}
        return found if isinstance(found, dict) else {}


def _keys_at(cursor: JsonCursor) -> frozenset[str]:
    """The keys of the object here, as far as it can be read; of a list, of its first."""
    found = set()
    try:
        for _ in cursor.items() if cursor.kind == "[" else (None,):
            for key in cursor.members() if cursor.kind == "{" else ():
                found.add(key)
            break
    except DataError:
        pass
    return frozenset(found)


class Importer(ABC):
    """Reads the files of one format, one record at a time.

    Attributes:
        kind: the registered name, which stands for the tool in messages and provenance.
        left_out: the places of rows that are not samples, and why.
        notes: sentences for the user about what was assumed.
    """

    kind: ClassVar[str]

    def __init__(self, file: LogFile) -> None:
        self.file, self.path = file, file.path
        self.left_out: list[Fault] = []
        self.notes: list[str] = []

    @classmethod
    @abstractmethod
    def recognizes(cls, file: LogFile) -> bool:
        """Whether a file is of this format; reads little of it."""

    @abstractmethod
    def records(self) -> Iterator[tuple[str, Any]]:
        """The place of each record in the file, and the record.

        Raises:
            DataError: the file as a whole cannot be read.
        """

    @abstractmethod
    def samples(self, record: Any) -> Iterable[Sample]:
        """The samples of a record.

        Raises:
            ValueError, TypeError, KeyError, AttributeError, DataError: it is no valid record, and will be left out.
        """

    def totals(self) -> Iterable[Total]:
        """The numbers that the file states; asked for after all records were read."""
        return ()

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        """Whether higher scores are better by the format or the file; None if unknown."""
        return None

    def facts(self) -> dict[str, Any]:
        """What the file says of its origin: version, model, settings; asked for after all records were read."""
        return {}

    def leave_out(self, where: str, reason: str) -> None:
        """Notes a row that is not imported."""
        self.left_out.append(Fault(where, reason))

    def grouped_records(
        self, key: Callable[[Any], Hashable | None], member: str | None = None
    ) -> Iterator[tuple[str, list[Any]]]:
        """The records of the file as `GroupedRecords`; those that are in no group are left out."""
        groups = GroupedRecords(self.path, key, member)
        yield from groups
        for where, reason in groups.faults:
            self.leave_out(where, reason)

    def leave_out_rest(self, cursor: JsonCursor) -> None:
        """Notes what follows the one document that a file should hold."""
        if cursor.kind:
            self.leave_out(f"{self.path}, byte {cursor.place:,}", "follows the end of the result, and is left out")


class UnknownFormat(DataError):
    """No importer knows the format of a file."""


def find_importers(path: Path, tool: str | None = None) -> list[Importer]:
    """The importer of a file; or those of all files and folders in a folder whose formats are recognised.

    In a folder, hidden files and links to folders are not read. Files of unknown formats are named in the notes.

    Args:
        tool: the registered name of the only importer; by default formats are recognised.

    Raises:
        DataError: a file cannot be read.
        UnknownFormat: no importer knows the format of the file, or of any file in the folder.
        SpecError: no importer has this name.
    """
    known = registry.names("importers")
    if tool is not None and tool not in known:
        raise SpecError(f"no importer is called {tool!r}{alternatives(tool, known)}")
    kinds: list[type[Importer]] = [registry.find("importers", name) for name in ([tool] if tool else known)]
    file = LogFile(path)
    unknown: list[Path] = []
    found = [*_importers_in(file, kinds, unknown)] if file.is_folder else [*_importer_of(file, kinds)]
    if not found and tool is not None and not file.is_folder:
        return [kinds[0](file)]  # which says what it expects
    if not found and tool is not None:
        raise DataError(Fault(str(path), f"has no file or folder of the format {tool}"))
    if not found and not (file.is_folder or file.head):
        raise DataError(Fault(str(path), "is empty"))
    if not found:
        what = "has no file of a format" if file.is_folder else "is of no format"
        message = (
            f"{what} that is recognised ({', '.join(known)}); name its format with --from, or, for a table of"
            " predictions, the examples with --dataset"
        )
        raise UnknownFormat(Fault(str(path), message))
    if unknown:
        named = ", ".join(str(each.relative_to(path)) for each in unknown[:_NAMED])
        more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
        found[0].notes.append(f"{path}: {plural(len(unknown), 'file')} of no format that is recognised: {named}{more}")
    return found


_NAMED = 3


def _importer_of(file: LogFile, kinds: Iterable[type[Importer]]) -> Iterator[Importer]:
    """The importer of a file or folder, if its format is known."""
    for kind in kinds:
        if kind.recognizes(file):
            yield kind(file)
            return


def _importers_in(folder: LogFile, kinds: Sequence[type[Importer]], unknown: list[Path]) -> Iterator[Importer]:
    """The importers of the folders that are logs themselves, and of all files that are no part of these.

    Args:
        unknown: gets the files of unknown formats, except those in a folder that is a log itself.
    """
    folders = [folder.path]
    while folders:
        path = folders.pop()
        try:
            own = [*_importer_of(LogFile(path), kinds)]
            entries = sorted(path.iterdir())
            inner = [each for each in entries if each.is_dir() and not (_is_hidden(each) or each.is_symlink())]
        except (OSError, DataError) as error:
            yield _Unreadable(path, error)
            continue
        folders += reversed(inner)
        yield from own
        for file in entries:
            if file.is_file() and not _is_hidden(file):
                yield from _importers_beside(file, own, kinds, unknown)


def _importers_beside(
    path: Path, own: Sequence[Importer], kinds: Sequence[type[Importer]], unknown: list[Path]
) -> Iterator[Importer]:
    """The importer of a file in a folder, unless it is a part of the log that the folder is."""
    try:
        found = [*_importer_of(LogFile(path), kinds)]
    except (OSError, DataError) as error:
        found = [_Unreadable(path, error)]
    yield from (each for each in found if not own or each.kind != own[0].kind)
    if not found and not own:
        unknown.append(path)


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".")


class _Unreadable(Importer):
    """Stands for a file or folder in a folder that cannot be read."""

    kind = "unreadable"

    def __init__(self, path: Path, error: OSError | DataError) -> None:
        self.path, self.left_out, self.notes = path, [], []
        why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else first_fault(error)
        self._fault = Fault(str(path), why)

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return False

    def records(self) -> Iterator[tuple[str, Any]]:
        raise DataError(self._fault)

    def samples(self, record: Any) -> Iterable[Sample]:
        return ()


def json_records(path: Path, key: str | None = None) -> Iterator[tuple[str, Any]]:
    """The place and the text of each item of a JSON list, of each line of JSON lines, or of a single object.

    A table that pandas has written column by column (`{"name": {"0": …, "1": …}, …}`) is read as its rows.

    Args:
        key: the member that has the list if the file is one object.

    Raises:
        DataError: the file is no JSON.
    """
    if (columns := _columns_of(path)) is not None:
        for index in next(iter(columns.values())):
            yield f"{path}: row {index}", {name: values[index] for name, values in columns.items()}
        return
    for where, _, text in _texts(path, key):
        yield where, text


def _texts(path: Path, key: str | None) -> Iterator[tuple[str, int, bytes]]:
    """The place of each record of JSON, how many bytes precede it, and its text."""
    cursor = JsonCursor.open(path)
    if cursor.kind == "[" or (key is not None and _has_member(path, key)):
        for n, _ in enumerate(cursor.documents()):
            yield from _items(cursor, f"{path}: " if n == 0 else f"{path}, document {n + 1}: ", key)
        return
    if (only := _only_object(path)) is not None:
        yield str(path), cursor.place, only
        return
    start = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.isspace():
                yield f"{path}:{number}", start, line
            start += len(line)


def _items(cursor: JsonCursor, place: str, key: str | None) -> Iterator[tuple[str, int, bytes]]:
    """The items of the list here, or of that under a key of the object here; anything else is an item itself."""
    if cursor.kind == "[":
        for n, _ in enumerate(cursor.items()):
            yield f"{place}[{n}]", cursor.place, cursor.text()
        return
    start, found = cursor.place, False
    if cursor.kind == "{":
        for name in cursor.members():
            if name == key and cursor.kind == "[":
                found = True
                for n, _ in enumerate(cursor.items()):
                    yield f"{place}{key}[{n}]", cursor.place, cursor.text()
    if not found:
        yield f"{place}byte {start:,}", start, b"null" if cursor.place > start else cursor.text()


def _only_object(path: Path) -> bytes | None:
    """The object that is all of a file, perhaps with line breaks in it."""
    cursor = JsonCursor.open(path)
    documents = (cursor.text() for _ in cursor.documents())
    try:
        found = next(documents, None) if cursor.kind == "{" else None
        return found if next(documents, None) is None else None
    except DataError:
        return None


def _columns_of(path: Path) -> dict[str, dict[str, Any]] | None:
    """Column → row → value, if a file is a table by columns."""
    cursor = JsonCursor.open(path)
    try:
        if cursor.kind != "{" or not all(cursor.kind == "{" for _ in cursor.members()) or cursor.kind:
            return None  # also where lines follow, which may be many
        table = parse_json(path.read_bytes(), str(path))
    except DataError:
        return None
    rows = [*map(dict.keys, table.values())]
    return table if rows and rows[0] and all(each == rows[0] for each in rows) else None


def table_records(path: Path) -> Iterator[tuple[str, Any]]:
    """As `json_records`; or the place and the cells, as texts by column, of each row of a CSV file.

    Empty cells, and columns without a name, such as the index of pandas, are left out.
    """
    if not LogFile(path).columns:
        yield from json_records(path)
        return
    text = mapped(path)
    header: list[str] = []
    for line, start, end in records_in(text, ","):
        row = text[start:end].removeprefix(codecs.BOM_UTF8)
        cells = _cells(row) if row.strip() else []
        if not header:
            header = cells
        elif len(cells) == len(header):
            found = {name: cell for name, cell in zip(header, cells, strict=True) if name and cell}
            yield f"{path}:{line}", found
        elif cells:
            yield f"{path}:{line}", f"{plural(len(cells), 'cell')} where the header has {len(header)}"


def _cells(record: bytes) -> list[str]:
    """The cells of one record of a CSV file."""
    return next(csv.reader(io.StringIO(record.decode(), newline="")), [])


def _has_member(path: Path, key: str) -> bool:
    """Whether a file is one object with a list under this key, not JSON lines."""
    cursor = JsonCursor.open(path)
    try:
        return any(name == key and cursor.kind == "[" for name in cursor.members())
    except DataError:
        return False


class GroupedRecords:
    """JSON lines, or items of a JSON list, that belong together; in memory are only their places.

    Groups are in the order in which they begin.

    Args:
        key: the group of a record; None for a record that is in no group.
        member: that has the list if the file is one object.

    Attributes:
        faults: the place of each record that has no group because it cannot be read, and why.
    """

    def __init__(self, path: Path, key: Callable[[Any], Hashable | None], member: str | None = None) -> None:
        self._path, self._key, self._member = path, key, member
        self.faults: list[tuple[str, str]] = []

    def __iter__(self) -> Iterator[tuple[str, list[Any]]]:
        places: dict[Hashable, array[int]] = {}
        first: dict[Hashable, str] = {}
        for where, start, text in _texts(self._path, self._member):
            try:
                group = self._key(parse_json(text, where))
                if group is not None:
                    places.setdefault(group, array("q")).extend((start, len(text)))
                    first.setdefault(group, where)
            except (DataError, ValueError, TypeError, AttributeError) as error:
                self.faults.append((where, first_fault(error)))
        with self._path.open("rb") as file:
            for group, found in places.items():
                records = []
                for start, length in zip(found[::2], found[1::2], strict=True):
                    file.seek(start)
                    records.append(parse_json(file.read(length), first[group]))
                yield first[group], records


def first_fault(error: Exception) -> str:
    """The message of an error without its place."""
    return error.faults[0].message if isinstance(error, DataError) else str(error)
