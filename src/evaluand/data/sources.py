"""Sources of examples: files and Python rows as streams of typed Arrow batches that can be read several times.

Text formats are read twice: the first pass finds every fault and the type of each column over the whole file, the
second yields batches. Text is UTF-8, with or without a byte order mark. A column gets a native Arrow type only if that
loses nothing; mixed values, objects and ragged lists become canonical JSON text (Arrow's own inference drops `{}` and
merges keys). Numbers with leading zeros stay text, since they are codes.
"""

from __future__ import annotations

import codecs
import datetime as dt
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, kind_of, nearest
from evaluand.core.files.csv import check_quotes, header_of, mapped, records_in
from evaluand.core.json_like import surrogate_fault
from evaluand.store import tables
from evaluand.store.tables import BATCH_CHARACTERS, BATCH_ROWS

MAX_FAULTS = 1000
FORMATS = ("csv", "tsv", "jsonl", "ndjson", "json", "parquet", "arrow", "feather")
_BINARY = ("parquet", "arrow", "feather")


@dataclass(frozen=True)
class DataSource:
    """Rows that can be streamed repeatedly.

    Attributes:
        name: its name in messages, such as a file name.
        schema: the native columns; JSON columns are marked in their field's metadata.
        batches: starts a new pass over the rows.
        where: the place of row number n (from 0), for messages.
        n_rows: the number of rows, if known without reading them.
        check: raises a DataError if the rows have changed since the source was opened.
        objects: starts a pass over the rows as they are written, if they are objects.
        is_json: whether these objects are JSON, in which times are text.
        texts: the same rows with every cell as text, if the file has no types.
    """

    name: str
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    where: Callable[[int], str]
    n_rows: int | None = None
    check: Callable[[], None] = lambda: None
    objects: Callable[[], Iterator[Any]] | None = None
    is_json: bool = False
    texts: Callable[[], DataSource] | None = None


def open_file(path: str | Path, format: str | None = None, delimiter: str | None = None) -> DataSource:
    """A source that reads a file.

    Args:
        format: one of `FORMATS`; by default it follows from the suffix.
        delimiter: the delimiter of a CSV file; by default a comma, or a tab in a TSV file.

    Raises:
        DataError: there is no such file, or rows break the format; lists every fault with its row.
        SpecError: the format is not one of `FORMATS`, or takes no such delimiter.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    kind = (format or path.suffix.lstrip(".")).lower()
    if kind not in FORMATS:
        raise SpecError(f"{path}: unknown format {kind!r}; give format as one of {', '.join(FORMATS)}")
    if delimiter is not None:
        _check_delimiter(delimiter, kind)
    return _open_checked(path, lambda: _read_file(path, kind, delimiter), is_text=kind not in _BINARY)


def open_texts(path: str | Path) -> DataSource:
    """A source that reads every column of a CSV file as text, for files whose types are declared elsewhere."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    return _open_checked(path, lambda: _read_csv(path, ",", None, texts_only=True), is_text=True)


def _open_checked(path: Path, source: Callable[[], DataSource], *, is_text: bool) -> DataSource:
    """A source whose file is valid and refuses to be read after it has changed."""
    if is_text:
        _check_text(path)
    before = _file_state(path)
    try:
        return _refuse_changes(source(), path, before)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if is_text:
            _check_utf8(path)
        raise DataError(f"{path}: {error}") from error


def _read_file(path: Path, kind: str, delimiter: str | None) -> DataSource:
    if kind in ("csv", "tsv"):
        return _read_csv(path, "\t" if kind == "tsv" else ",", delimiter)
    if kind in ("jsonl", "ndjson"):
        return from_objects(str(path), lambda: _read_json_lines(path), lambda row: f"{path}:{row + 1}", is_json=True)
    if kind == "json":
        return replace(from_rows(_read_json_array(path), str(path)), is_json=True)
    return _read_parquet(path) if kind == "parquet" else _read_arrow(path)


def _file_state(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _refuse_changes(source: DataSource, path: Path, before: tuple[int, int, int]) -> DataSource:
    """A source that raises if its file changes, so that the rows it yields are those that were checked."""

    def check() -> None:
        if not path.is_file() or _file_state(path) != before:
            raise DataError(f"{path}: the file has changed since it was opened; open it again")

    def batches() -> Iterator[pa.RecordBatch]:
        check()
        for batch in source.batches():
            check()
            yield batch

    def objects() -> Iterator[Any]:
        check()
        yield from source.objects() if source.objects else ()

    return replace(source, batches=batches, check=check, objects=objects if source.objects else None)


def from_rows(records: Iterable[Mapping[str, Any]], name: str = "rows") -> DataSource:
    """A source over Python mappings."""
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise SpecError(f"{name}: give a list of mappings, one for each row, not {kind_of(records)}")
    rows = records if isinstance(records, Sequence) else list(records)
    return from_objects(name, lambda: enumerate(rows), lambda row: f"{name}[{row}]")


def from_table(table: pa.Table, name: str = "table") -> DataSource:
    """A source over an Arrow table."""
    return DataSource(
        name, table.schema, lambda: iter(table.to_batches(BATCH_ROWS)), lambda row: f"{name}[{row}]", len(table)
    )


class Faults:
    """Collects faults: stores the first `MAX_FAULTS` and counts the others."""

    def __init__(self) -> None:
        self.first: list[Fault] = []
        self.more = 0

    def add(self, where: str, message: str, code: str = "") -> None:
        if len(self.first) < MAX_FAULTS:
            self.first.append(Fault(where, message, code=code))
        else:
            self.more += 1

    def check(self) -> None:
        """Raise a DataError if there are faults."""
        if self.first:
            more = [Fault("", f"… and {self.more} more faults")] if self.more else []
            raise DataError(self.first + more)


def read_column(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as Python values."""
    column = batch.column(name)
    if tables.is_json(batch.schema.field(name)):
        return [None if text is None else identity.decode(text) for text in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def missing_column(name: str, columns: Sequence[str]) -> str:
    """The message that there is no such column, with the nearest name."""
    more = f" and {len(columns) - _MAX_NAMES} more" if len(columns) > _MAX_NAMES else ""
    return f"no column is called {name!r}{nearest(name, columns)}; there are {', '.join(columns[:_MAX_NAMES])}{more}"


_MAX_NAMES = 20


# Text


def _check_delimiter(delimiter: Any, kind: str) -> None:
    if kind not in ("csv", "tsv"):
        raise SpecError(f"delimiter is for CSV files; {kind} has none")
    if not (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()) or delimiter in '"\r\n':
        raise SpecError(f'delimiter must be one character such as ";", not {delimiter!r}')


_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def _check_text(path: Path) -> None:
    """Refuse a file that begins like UTF-16 or binary data, or that only points to its content."""
    with path.open("rb") as file:
        head = file.read(64)
    if head.startswith(_LFS_POINTER):
        message = "is a pointer of Git LFS, not the file itself; fetch it with git lfs pull"
        raise DataError(Fault(str(path), message, code="lfs_pointer"))
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(Fault(str(path), "the file is UTF-16; save it as UTF-8", code="not_utf8"))
    if b"\0" in head:
        message = "the file contains null bytes, so it is UTF-16 or not text; save it as UTF-8 text"
        raise DataError(Fault(str(path), message, code="not_utf8"))


def _check_utf8(path: Path) -> None:
    """Raise a DataError for the first byte that is not UTF-8."""
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = f"byte {line[error.start]:#04x} at offset {offset + error.start:,}"
                message = f"{byte} is not UTF-8; save the file as UTF-8"
                raise DataError(Fault(f"{path}:{number}", message, code="not_utf8")) from None
            offset += len(line)


# Objects: JSON lines, JSON arrays, Python rows


def from_objects(
    name: str, records: Callable[[], Iterable[tuple[int, Any]]], where: Callable[[int], str], *, is_json: bool = False
) -> DataSource:
    """A source over objects.

    Args:
        records: starts a pass over pairs of a line, from 0, and its object.
        where: the place of a line, for messages.
        is_json: whether the objects are JSON, in which times are text.
    """
    guesses: dict[str, _Guess] = {}
    faults = Faults()
    lines: list[int] = []
    for line, record in records():
        lines.append(line)
        _inspect(record, where(line), guesses, faults)
    faults.check()
    schema = pa.schema([guess.field(column) for column, guess in guesses.items()])

    def batches() -> Iterator[pa.RecordBatch]:
        chunk: list[Mapping[str, Any]] = []
        size = 0
        for _, record in records():
            chunk.append(record)
            size += sum(len(value) for value in record.values() if isinstance(value, str))
            if len(chunk) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
                yield _build_batch(chunk, schema)
                chunk, size = [], 0
        if chunk:
            yield _build_batch(chunk, schema)

    contiguous = not lines or lines[-1] == len(lines) - 1
    numbers = None if contiguous else lines
    return DataSource(
        name,
        schema,
        batches,
        lambda row: where(numbers[row] if numbers else row),
        objects=lambda: (record for _, record in records()),
        is_json=is_json,
    )


def _inspect(record: Any, where: str, guesses: dict[str, _Guess], faults: Faults) -> None:
    if isinstance(record, _Broken):
        return faults.add(where, record.message)
    if not isinstance(record, Mapping):
        return faults.add(where, f"a row must be an object with named values, not {kind_of(record)}")
    for column, value in record.items():
        guess = guesses.get(column)
        if guess is None:
            if not isinstance(column, str) or not column:
                faults.add(where, f"{column!r} is not a column name; column names are non-empty text")
                continue
            guess = guesses[column] = _Guess()
        guess.see(value)
        if guess.sample_fault:
            faults.add(where, f"{column}: {guess.sample_fault}")
            guess.sample_fault = None


def _build_batch(records: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for column in schema:
        values = [record.get(column.name) for record in records]
        if tables.is_json(column):
            values = [None if value is None else identity.encode(value).decode() for value in values]
        arrays.append(pa.array(values, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class _Broken:
    """A line that is not JSON."""

    message: str


def _read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if number == 0:
                line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
            try:
                yield number, _parse_json(line)
            except orjson.JSONDecodeError as error:
                if not _is_utf8(line):
                    _check_utf8(path)
                yield number, _Broken(f"not JSON at column {error.pos + 1}: {error.msg}")


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def _parse_json(text: bytes) -> Any:
    """JSON with exact integers: beyond 64 bits orjson returns floats, so the standard library reads those."""
    value = orjson.loads(text)
    return json.loads(text) if _LONG_NUMBER.search(text) else value


def _read_json_array(path: Path) -> list[Any]:
    try:
        value = _parse_json(path.read_bytes().removeprefix(codecs.BOM_UTF8) or b"[]")
    except orjson.JSONDecodeError as error:
        _check_utf8(path)
        raise DataError(Fault(f"{path}:{error.lineno}:{error.colno}", f"not JSON: {error.msg}")) from None
    if not isinstance(value, list):
        raise DataError(f"{path}: a JSON dataset is an array of objects, not {kind_of(value)}")
    return value


_SCALARS: Mapping[type, str] = {bool: "bool", int: "int", float: "float", str: "text", bytes: "bytes"}
_TYPES: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "datetime utc": pa.timestamp("us", "UTC"),
}
_EXACT = 2**53  # the integers a float64 holds exactly


@dataclass(slots=True)
class _Guess:
    """The narrowest Arrow type for every value seen in a column."""

    kinds: set[str] = field(default_factory=set)
    inexact: bool = False
    sample_fault: str | None = None

    def see(self, value: Any) -> None:
        self.kinds.add(self._kind(value))

    def _kind(self, value: Any) -> str:
        if value is None:
            return "null"
        kind = _SCALARS.get(type(value))
        if kind == "text" and not value.isascii() and (fault := surrogate_fault(value)):
            self.sample_fault = f"{fault}; remove it"
        if kind == "int":
            if abs(value) > _EXACT:
                self.inexact = True
            return "int" if -(2**63) <= value < 2**63 else "json"
        if kind:
            return kind
        if isinstance(value, list | tuple):
            inner = {self._kind(item) for item in value} - {"null"}
            return "list " + (_widest(inner, self.inexact) or "json") if len(inner) != 0 else "list"
        if isinstance(value, dt.datetime):
            return "datetime utc" if value.tzinfo else "datetime"
        if isinstance(value, dt.date):
            return "date"
        try:
            identity.encode(value)
        except DataError as error:
            self.sample_fault = str(error)
        return "json"

    def field(self, name: str) -> pa.Field:
        kinds = self.kinds - {"null"}
        if not kinds:
            return pa.field(name, pa.string())
        if all(kind.startswith("list") for kind in kinds):
            inner = _widest({kind[5:] for kind in kinds} - {""}, self.inexact)
            return pa.field(name, pa.list_(_TYPES[inner])) if inner in _TYPES else tables.json_field(name)
        kind = _widest(kinds, self.inexact)
        return pa.field(name, _TYPES[kind]) if kind in _TYPES else tables.json_field(name)


def _widest(kinds: set[str], inexact: bool) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds == {"int", "float"} and not inexact:
        return "float"
    return "json"


# CSV: read as text, with types that fit the whole column

# Integers of 64 bits; numbers that a float represents without losing a digit before the point or overflowing.
_INTEGER = r"^-?(0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})?(\.[0-9]+)?([eE][+-]?([0-9]{1,2}|[12][0-9]{2}))?$"
_BOOLEAN = r"^([Tt]rue|[Ff]alse|TRUE|FALSE)$"


def _read_csv(path: Path, default: str, chosen: str | None, *, texts_only: bool = False) -> DataSource:
    """A source over a CSV file, with the user's delimiter, if any, or that of the format."""
    delimiter = chosen or default
    where = _csv_where(path, delimiter)
    text = mapped(path)
    records = records_in(text, delimiter)
    line, start, end = next(records, (1, 0, 0))
    where_of_header = f"{path}:{line}"
    header = header_of(
        text[start:end].decode(), where_of_header, delimiter, declared=chosen is not None, fixed=texts_only
    )
    check_quotes(text, path, delimiter)
    is_empty = next(records, None) is None  # Arrow rejects a header without rows
    del text, records

    def texts(faults: Faults) -> Iterator[pa.RecordBatch]:
        return iter(()) if is_empty else _csv_batches(path, delimiter, header, where, faults)

    faults = Faults()
    patterns: dict[str, list[str]] = {name: [] if texts_only else [_INTEGER, _NUMBER, _BOOLEAN] for name in header}
    for batch in texts(faults):
        for name, column in zip(header, batch.columns, strict=True):
            patterns[name] = [p for p in patterns[name] if _all_match(column, p)]
    faults.check()
    kinds = {_INTEGER: pa.int64(), _NUMBER: pa.float64(), _BOOLEAN: pa.bool_()}
    schema = pa.schema([pa.field(n, kinds[p[0]] if p and len(p) < 3 else pa.string()) for n, p in patterns.items()])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in texts(Faults()):
            columns = [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    typed = None if texts_only else lambda: _read_csv(path, default, chosen, texts_only=True)
    return DataSource(str(path), schema, batches, where, texts=typed)


def _csv_where(path: Path, delimiter: str) -> Callable[[int], str]:
    """The line in which a row begins; a row may span several lines, and blank lines are not rows."""

    @cache
    def lines() -> array[int]:
        return array("q", (line for line, _, _ in records_in(mapped(path), delimiter)))

    return lambda row: f"{path}:{lines()[row + 1]}"


def _csv_batches(
    path: Path, delimiter: str, header: Sequence[str], where: Callable[[int], str], faults: Faults
) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv

    def broken(row: Any) -> str:
        message = f"{row.actual_columns} values where the header names {row.expected_columns}"
        faults.add(where(row.number - 2), message, "ragged_row")
        return "skip"

    with csv.open_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False, block_size=1 << 20),
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=broken),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    ) as reader:
        for batch in reader:
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


def _all_match(column: pa.Array, pattern: str) -> bool:
    import pyarrow.compute as pc  # on use: its import takes 40 ms, and only CSV needs it

    if pattern == _NUMBER and pc.any(pc.match_substring_regex(column, r"^-?([eE].*)?$")).as_py():
        return False
    result = pc.all(pc.match_substring_regex(column, pattern)).as_py()
    return result is not False


# Columnar files


def _read_parquet(path: Path) -> DataSource:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                yield from file.iter_batches(BATCH_ROWS, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path}: {error}") from error

    return DataSource(str(path), schema, batches, lambda row: f"{path}: row {row + 1}", n_rows)


def _read_arrow(path: Path) -> DataSource:
    def batches() -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as file, _open_ipc(file) as reader:
            for batch in _ipc_batches(reader):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)

    with pa.memory_map(str(path)) as file, _open_ipc(file) as reader:
        schema = reader.schema
    return DataSource(str(path), schema, batches, lambda row: f"{path}: row {row + 1}")


def _open_ipc(file: pa.NativeFile) -> Any:
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _ipc_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if hasattr(reader, "num_record_batches"):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)
