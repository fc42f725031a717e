"""Where examples come from: files and Python rows as typed Arrow batches, read as a stream and more than once.

Text formats are read twice: the first pass finds every fault and the type of each column over the whole file, the
second yields batches. Text is UTF-8, with or without a byte order mark. A column becomes a native Arrow type only
where that loses nothing; mixed values, objects and ragged lists become canonical JSON text (Arrow's own inference
drops `{}` and merges keys). Numbers written with leading zeros stay text, since they are codes.
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
from typing import Any

import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, kind_of
from evaluand.core.files.csv import check_quotes, header_of, mapped, records_in
from evaluand.core.registry import nearest
from evaluand.store import tables
from evaluand.store.tables import BATCH_CHARACTERS, BATCH_ROWS

MAX_FAULTS = 1000
FORMATS = ("csv", "tsv", "jsonl", "ndjson", "json", "parquet", "arrow", "feather")
_BINARY = ("parquet", "arrow", "feather")


@dataclass(frozen=True)
class DataSource:
    """Rows that can be streamed again and again.

    Attributes:
        name: how messages call it (a file's name).
        schema: the native columns; JSON columns are marked in their field's metadata.
        batches: starts a new pass over the rows.
        where: the place of row number n (from 0), for messages.
        n_rows: how many there are, where that is known without reading them.
        check: raises a DataError if the rows are no longer those that were opened.
    """

    name: str
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    where: Callable[[int], str]
    n_rows: int | None = None
    check: Callable[[], None] = lambda: None


def open_file(path: str | Path, format: str | None = None, delimiter: str | None = None) -> DataSource:
    """A source over a file; the format follows from its suffix unless given.

    Args:
        path: the file.
        format: one of `FORMATS`.
        delimiter: what parts the cells of a CSV file, if not a comma (in a TSV file, a tab).

    Raises:
        DataError: no such file, or its rows break the format: every fault with its row.
        SpecError: the format is not one of `FORMATS`, or has no such delimiter.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    kind = (format or path.suffix.lstrip(".")).lower()
    if kind not in FORMATS:
        raise SpecError(f"{path}: unknown format {kind!r}; give format as one of {', '.join(FORMATS)}")
    if delimiter is not None:
        _check_delimiter(delimiter, kind)
    return _opened(path, lambda: _source(path, kind, delimiter), is_text=kind not in _BINARY)


def open_texts(path: str | Path) -> DataSource:
    """A source over a CSV file whose columns are all text, for files whose types are declared elsewhere.

    Raises:
        DataError: no such file, or its rows break the format: every fault with its row.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    return _opened(path, lambda: _csv(path, ",", None, texts_only=True), is_text=True)


def _opened(path: Path, source: Callable[[], DataSource], *, is_text: bool) -> DataSource:
    """A source whose file is sound and does not change while it is used."""
    if is_text:
        _check_text(path)
    before = _state_of(path)
    try:
        return _unchanged(source(), path, before)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if is_text:
            _check_utf8(path)
        raise DataError(f"{path}: {error}") from error


def _source(path: Path, kind: str, delimiter: str | None) -> DataSource:
    if kind in ("csv", "tsv"):
        return _csv(path, "\t" if kind == "tsv" else ",", delimiter)
    if kind in ("jsonl", "ndjson"):
        return _from_objects(str(path), lambda: _json_lines(path), lambda row: f"{path}:{row + 1}")
    if kind == "json":
        return from_rows(_json_array(path), str(path))
    return _parquet(path) if kind == "parquet" else _arrow(path)


def _state_of(path: Path) -> tuple[int, int, int]:
    told = path.stat()
    return told.st_ino, told.st_size, told.st_mtime_ns


def _unchanged(source: DataSource, path: Path, before: tuple[int, int, int]) -> DataSource:
    """A source that refuses to go on when its file is another: what was checked and what is read must be one."""

    def check() -> None:
        if not path.is_file() or _state_of(path) != before:
            raise DataError(f"{path}: the file has changed since it was opened; open it again")

    def batches() -> Iterator[pa.RecordBatch]:
        check()
        for batch in source.batches():
            check()
            yield batch

    return replace(source, batches=batches, check=check)


def from_rows(records: Iterable[Mapping[str, Any]], name: str = "rows") -> DataSource:
    """A source over Python mappings.

    Raises:
        DataError: a row is no mapping, or holds what cannot be stored: every fault with its row.
        SpecError: what is given is not several rows.
    """
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise SpecError(f"{name}: give a list of mappings, one for each row, not {kind_of(records)}")
    kept = records if isinstance(records, Sequence) else list(records)
    return _from_objects(name, lambda: enumerate(kept), lambda row: f"{name}[{row}]")


def from_table(table: pa.Table, name: str = "table") -> DataSource:
    """A source over an Arrow table."""
    return DataSource(
        name, table.schema, lambda: iter(table.to_batches(BATCH_ROWS)), lambda row: f"{name}[{row}]", len(table)
    )


class Faults:
    """Collects faults, all of them counted, the first `MAX_FAULTS` kept."""

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self.more = 0

    def add(self, where: str, message: str, code: str = "") -> None:
        if len(self.kept) < MAX_FAULTS:
            self.kept.append(Fault(where, message, code=code))
        else:
            self.more += 1

    def check(self) -> None:
        """Raises a DataError when anything was collected."""
        if self.kept:
            more = [Fault("", f"… and {self.more} more faults")] if self.more else []
            raise DataError(self.kept + more)


def values_of(batch: pa.RecordBatch, name: str) -> list[Any]:
    """A column as Python values."""
    column = batch.column(name)
    if tables.is_json(batch.schema.field(name)):
        return [None if text is None else identity.decode(text) for text in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def missing_column(name: str, columns: Sequence[str]) -> str:
    """In words that a column is not there, with the nearest that is."""
    listed = ", ".join(columns[:_LISTED]) + (f" and {len(columns) - _LISTED} more" if len(columns) > _LISTED else "")
    return f"no column is called {name!r}{nearest(name, columns)}; there are {listed}"


_LISTED = 20


# Text


def _check_delimiter(delimiter: Any, kind: str) -> None:
    if kind not in ("csv", "tsv"):
        raise SpecError(f"delimiter is for CSV files; {kind} has none")
    if not (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()) or delimiter in '"\r\n':
        raise SpecError(f'delimiter must be one character such as ";", not {delimiter!r}')


def _check_text(path: Path) -> None:
    """Stops at what begins like UTF-16 or like no text at all."""
    with path.open("rb") as file:
        head = file.read(64)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(Fault(str(path), "the file is UTF-16; save it as UTF-8", code="not_utf8"))
    if b"\0" in head:
        told = "the file holds null bytes, so it is UTF-16 or no text; save it as UTF-8 text"
        raise DataError(Fault(str(path), told, code="not_utf8"))


def _check_utf8(path: Path) -> None:
    """Stops at the first byte that is not UTF-8."""
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = f"byte {line[error.start]:#04x} at offset {offset + error.start:,}"
                told = f"{byte} is not UTF-8; save the file as UTF-8"
                raise DataError(Fault(f"{path}:{number}", told, code="not_utf8")) from None
            offset += len(line)


# Objects: JSON lines, JSON arrays, Python rows


def _from_objects(
    name: str, records: Callable[[], Iterable[tuple[int, Any]]], where: Callable[[int], str]
) -> DataSource:
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
                yield _batch(chunk, schema)
                chunk, size = [], 0
        if chunk:
            yield _batch(chunk, schema)

    contiguous = not lines or lines[-1] == len(lines) - 1
    numbers = None if contiguous else lines
    return DataSource(name, schema, batches, lambda row: where(numbers[row] if numbers else row))


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


def _batch(records: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for column in schema:
        values = [record.get(column.name) for record in records]
        if tables.is_json(column):
            values = [None if value is None else identity.encode(value).decode() for value in values]
        arrays.append(pa.array(values, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class _Broken:
    """A line that is no JSON."""

    message: str


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if number == 0:
                line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
            try:
                yield number, _loads(line)
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


def _loads(text: bytes) -> Any:
    """JSON as it is written: orjson makes floats of whole numbers beyond 64 bits, which the standard library reads."""
    value = orjson.loads(text)
    return json.loads(text) if _LONG_NUMBER.search(text) else value


def _json_array(path: Path) -> list[Any]:
    try:
        value = _loads(path.read_bytes().removeprefix(codecs.BOM_UTF8) or b"[]")
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
    """The narrowest Arrow type that holds every value seen in a column."""

    kinds: set[str] = field(default_factory=set)
    inexact: bool = False
    sample_fault: str | None = None

    def see(self, value: Any) -> None:
        self.kinds.add(self._kind(value))

    def _kind(self, value: Any) -> str:
        if value is None:
            return "null"
        kind = _SCALARS.get(type(value))
        if kind == "text" and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                self.sample_fault = f"holds half a character (a lone surrogate) at {error.start}; it cannot be stored"
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


# CSV: read as text, typed by what the whole column allows

# Whole numbers that 64 bits hold; numbers that a float holds without losing a digit before the point, or its size.
_INTEGER = r"^-?(0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})?(\.[0-9]+)?([eE][+-]?([0-9]{1,2}|[12][0-9]{2}))?$"
_BOOLEAN = r"^([Tt]rue|[Ff]alse|TRUE|FALSE)$"


def _csv(path: Path, usual: str, given: str | None, *, texts_only: bool = False) -> DataSource:
    delimiter = given or usual
    where = _csv_where(path, delimiter)
    text = mapped(path)
    records = records_in(text, delimiter)
    line, start, end = next(records, (1, 0, 0))
    where_of_header = f"{path}:{line}"
    header = header_of(
        text[start:end].decode(), where_of_header, delimiter, declared=given is not None, fixed=texts_only
    )
    check_quotes(text, path, delimiter)
    is_empty = next(records, None) is None  # Arrow takes a header alone for a broken file
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

    return DataSource(str(path), schema, batches, where)


def _csv_where(path: Path, delimiter: str) -> Callable[[int], str]:
    """The line in which a row begins; a row may span several, and blank lines are none."""

    @cache
    def lines() -> array[int]:
        return array("q", (line for line, _, _ in records_in(mapped(path), delimiter)))

    return lambda row: f"{path}:{lines()[row + 1]}"


def _csv_batches(
    path: Path, delimiter: str, header: Sequence[str], where: Callable[[int], str], faults: Faults
) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv

    def broken(row: Any) -> str:
        told = f"{row.actual_columns} values where the header names {row.expected_columns}"
        faults.add(where(row.number - 2), told, "ragged_row")
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
    import pyarrow.compute as pc  # on use: 40 ms that only CSV needs

    if pattern == _NUMBER and pc.any(pc.match_substring_regex(column, r"^-?([eE].*)?$")).as_py():
        return False
    result = pc.all(pc.match_substring_regex(column, pattern)).as_py()
    return result is not False


# Columnar files


def _parquet(path: Path) -> DataSource:
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


def _arrow(path: Path) -> DataSource:
    def batches() -> Iterator[pa.RecordBatch]:
        with pa.memory_map(str(path)) as file, _ipc(file) as reader:
            for batch in _ipc_batches(reader):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)

    with pa.memory_map(str(path)) as file, _ipc(file) as reader:
        schema = reader.schema
    return DataSource(str(path), schema, batches, lambda row: f"{path}: row {row + 1}")


def _ipc(file: pa.NativeFile) -> Any:
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _ipc_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if hasattr(reader, "num_record_batches"):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)
