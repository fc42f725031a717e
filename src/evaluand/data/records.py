"""Rows of Python objects as Arrow batches: the types of their columns, and their faults.

The first pass over the rows finds every fault and the type of each column, and converts the rows on the way; where the
types are known only at its end, a second one converts them. A column gets a native Arrow type only if that loses
nothing; mixed values, objects and ragged lists become canonical JSON text (Arrow's own inference drops `{}` and merges
keys).
"""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, kind_of
from evaluand.core.files.csv import MOST_COLUMNS
from evaluand.core.json_like import surrogate_fault
from evaluand.data.source import DataSource, Faults
from evaluand.data.spool import Spool
from evaluand.store import tables
from evaluand.store.tables import BATCH_CHARACTERS, BATCH_ROWS

Records = Callable[[], Iterable[tuple[int, Any]]]
"""Starts a pass over the rows of a file: (line from 0, row); a row is a mapping, or `Broken`."""


def read_objects(
    files: Sequence[Records], where: Callable[[int, int], str], *, is_json: bool = False
) -> list[DataSource]:
    """The rows of each file, which are objects.

    Args:
        where: the place of a line of a file, for messages.
        is_json: whether the objects are JSON, in which times are text.

    Raises:
        DataError: a row is not a mapping, or a value is not data; lists every fault with its place.
    """
    guesses: dict[str, ColumnGuess] = {}
    faults = Faults()
    lines, spool = _read_files(files, where, guesses, faults)
    faults.check()
    schema = _schema(guesses)
    if spool is None or not spool.schema.equals(schema, True):
        spool = _convert(files, schema)

    def open_part(number: int) -> DataSource:
        def batches() -> Iterator[pa.RecordBatch]:
            if spool is not None:
                return spool.batches(number)
            return (build_batch(rows, schema) for _, rows in _chunks(files[number]()))

        places, objects = lines[number], lambda: (record for _, record in files[number]())
        return DataSource(
            "", schema, batches, lambda row: where(number, places[row]), len(places), objects=objects, is_json=is_json
        )

    return [open_part(number) for number in range(len(files))]


def _schema(guesses: Mapping[str, ColumnGuess]) -> pa.Schema:
    return pa.schema([guess.field(column) for column, guess in guesses.items()])


def _read_files(
    files: Sequence[Records], where: Callable[[int, int], str], guesses: dict[str, ColumnGuess], faults: Faults
) -> tuple[list[Sequence[int]], Spool | None]:
    """The line of each row of each file, and the converted rows if their types stayed the same.

    The types of columns and faults are collected.
    """
    found: list[Sequence[int]] = []
    spool: Spool | None = None
    is_spooled = True
    for number, records in enumerate(files):
        lines = array("q")
        for chunk_lines, rows in _chunks(records()):
            lines.extend(chunk_lines)
            columns = _see_columns(rows, guesses)
            if columns is None:
                for line, row in zip(chunk_lines, rows, strict=True):
                    _inspect(row, partial(where, number), line, guesses, faults)
            if not is_spooled or faults.first:
                spool, is_spooled = None, False
                continue
            schema = _schema(guesses)
            spool = Spool(schema) if spool is None else spool
            is_spooled = spool.schema.equals(schema, True)
            if is_spooled:
                batch = build_batch(rows, schema) if columns is None else _build(columns, schema, len(rows))
                is_spooled = spool.append(number, batch)
        contiguous = not lines or lines[-1] == len(lines) - 1
        found.append(range(len(lines)) if contiguous else lines)
    return found, spool if is_spooled and (spool is None or spool.finish()) else None


def _convert(files: Sequence[Records], schema: pa.Schema) -> Spool | None:
    """The rows of all files as batches; None where there is no room for them."""
    spool = Spool(schema)
    for number, records in enumerate(files):
        for _, rows in _chunks(records()):
            if not spool.append(number, build_batch(rows, schema)):
                return None
    return spool if spool.finish() else None


def _chunks(records: Iterable[tuple[int, Any]]) -> Iterator[tuple[list[int], list[Any]]]:
    """The lines and the rows in lists of limited length and size."""
    lines: list[int] = []
    rows: list[Any] = []
    size = 0
    for line, row in records:
        lines.append(line)
        rows.append(row)
        if isinstance(row, dict):
            for value in row.values():
                if type(value) is str:
                    size += len(value)
        if len(rows) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
            yield lines, rows
            lines, rows, size = [], [], 0
    if rows:
        yield lines, rows


def _see_columns(rows: Sequence[Any], guesses: Mapping[str, ColumnGuess]) -> dict[str, list[Any]] | None:
    """The values of each column, whose types are noted.

    None, for which rows are inspected one by one, if a row is no plain object, a column is new, or a value has a fault.
    """
    if {*map(type, rows)} != {dict} or not guesses.keys() >= (names := set[str]().union(*rows)):
        return None
    columns = {}
    for name in names:
        try:
            columns[name] = values = [*map(itemgetter(name), rows)]
        except KeyError:
            columns[name] = values = [row.get(name) for row in rows]
        if not guesses[name].see_all(values):
            return None
    return columns


def _inspect(
    record: Any, where: Callable[[int], str], line: int, guesses: dict[str, ColumnGuess], faults: Faults
) -> None:
    if isinstance(record, Broken):
        return faults.add(where(line), record.message)
    if not isinstance(record, Mapping):
        return faults.add(where(line), f"a row must be an object with named values, not {kind_of(record)}")
    for column, value in record.items():
        guess = guesses.get(column)
        if guess is None:
            if not isinstance(column, str) or not column:
                faults.add(where(line), f"{column!r} is not a column name; column names are non-empty text")
                continue
            if len(guesses) == MOST_COLUMNS:
                raise DataError(Fault(where(line), f"has more than {MOST_COLUMNS:,} columns with the rows before it"))
            guess = guesses[column] = ColumnGuess()
        guess.see(value)
        if guess.sample_fault:
            faults.add(where(line), f"{column}: {guess.sample_fault}")
            guess.sample_fault = None


def build_batch(records: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as a batch, whose missing values are null."""
    return _build({name: [record.get(name) for record in records] for name in schema.names}, schema, len(records))


def _build(columns: Mapping[str, list[Any]], schema: pa.Schema, n: int) -> pa.RecordBatch:
    arrays = []
    for column in schema:
        values = columns.get(column.name)
        if values is None:
            arrays.append(pa.nulls(n, column.type))
            continue
        if tables.is_json(column):
            values = [None if value is None else identity.encode(value).decode() for value in values]
        arrays.append(pa.array(values, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class Broken:
    """A row that cannot be read."""

    message: str


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
_QUICK: Final = frozenset((bool, float, str, bytes))  # types of which every value has the same kind
_EXACT = 2**53  # the integers a float64 holds exactly


@dataclass(slots=True)
class ColumnGuess:
    """The narrowest Arrow type for every value seen in a column."""

    kinds: set[str] = field(default_factory=set)
    inexact: bool = False
    sample_fault: str | None = None

    def see(self, value: Any) -> None:
        self.kinds.add(self._kind(value))

    def see_all(self, values: Sequence[Any]) -> bool:
        """Sees many values; False if one has a fault, of which nothing is noted."""
        types = {*map(type, values)}
        self.kinds |= {_SCALARS[kind] for kind in types & _QUICK}
        if str in types:
            text = "".join(_of_type(str, values, types))
            if not text.isascii() and surrogate_fault(text) is not None:
                return False
        if int in types:
            whole = _of_type(int, values, types)
            for extreme in (min(whole), max(whole)):
                self.see(extreme)
        others = types - _QUICK - {int}
        for value in values if others else ():
            if type(value) in others:
                self.see(value)
        is_sound, self.sample_fault = self.sample_fault is None, None
        return is_sound

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
            items = {kind[5:] for kind in kinds} - {""}
            inner = _widest(items, self.inexact) if items else "text"  # as a column without any value is text
            return pa.field(name, pa.list_(_TYPES[inner])) if inner in _TYPES else tables.json_field(name)
        kind = _widest(kinds, self.inexact)
        return pa.field(name, _TYPES[kind]) if kind in _TYPES else tables.json_field(name)


def _of_type(kind: type, values: Sequence[Any], types: set[type]) -> Sequence[Any]:
    """The values of a type, of values that have these types."""
    return values if types == {kind} else [each for each in values if type(each) is kind]


def _widest(kinds: set[str], inexact: bool) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    return "float" if kinds == {"int", "float"} and not inexact else "json"
