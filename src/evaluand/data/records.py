"""Rows of Python objects as Arrow batches: the types of their columns, and their faults.

Rows are read twice: the first pass finds every fault and the type of each column, the second yields batches. A column
gets a native Arrow type only if that loses nothing; mixed values, objects and ragged lists become canonical JSON text
(Arrow's own inference drops `{}` and merges keys).
"""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, kind_of
from evaluand.core.json_like import surrogate_fault
from evaluand.data.source import Faults, OpenFiles
from evaluand.store import tables
from evaluand.store.tables import BATCH_CHARACTERS, BATCH_ROWS

Records = Callable[[], Iterable[tuple[int, Any]]]
"""Starts a pass over the rows of a file: (line from 0, row); a row is a mapping, or `Broken`."""


def read_objects(files: Sequence[Records], where: Callable[[int, int], str], *, is_json: bool = False) -> OpenFiles:
    """Rows of objects.

    Args:
        where: the place of a line of a file, for messages.
        is_json: whether the objects are JSON, in which times are text.

    Raises:
        DataError: a row is not a mapping, or a value is not data; lists every fault with its place.
    """
    guesses: dict[str, ColumnGuess] = {}
    faults = Faults()
    lines = [_inspect_file(records, partial(where, number), guesses, faults) for number, records in enumerate(files)]
    faults.check()
    schema = pa.schema([guess.field(column) for column, guess in guesses.items()])

    def batches(number: int) -> Iterator[pa.RecordBatch]:
        chunk: list[Mapping[str, Any]] = []
        size = 0
        for _, record in files[number]():
            chunk.append(record)
            size += sum(len(value) for value in record.values() if isinstance(value, str))
            if len(chunk) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
                yield build_batch(chunk, schema)
                chunk, size = [], 0
        if chunk:
            yield build_batch(chunk, schema)

    return OpenFiles(
        schema,
        batches,
        lambda number, row: where(number, lines[number][row]),
        objects=lambda number: (record for _, record in files[number]()),
        is_json=is_json,
    )


def _inspect_file(
    records: Records, where: Callable[[int], str], guesses: dict[str, ColumnGuess], faults: Faults
) -> Sequence[int]:
    """The line of each row; the types of columns and faults are collected."""
    lines = array("q")
    for line, record in records():
        lines.append(line)
        _inspect(record, where, line, guesses, faults)
    contiguous = not lines or lines[-1] == len(lines) - 1
    return range(len(lines)) if contiguous else lines


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
            guess = guesses[column] = ColumnGuess()
        guess.see(value)
        if guess.sample_fault:
            faults.add(where(line), f"{column}: {guess.sample_fault}")
            guess.sample_fault = None


def build_batch(records: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for column in schema:
        values = [record.get(column.name) for record in records]
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
_EXACT = 2**53  # the integers a float64 holds exactly


@dataclass(slots=True)
class ColumnGuess:
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
            items = {kind[5:] for kind in kinds} - {""}
            inner = _widest(items, self.inexact) if items else "text"  # as a column without any value is text
            return pa.field(name, pa.list_(_TYPES[inner])) if inner in _TYPES else tables.json_field(name)
        kind = _widest(kinds, self.inexact)
        return pa.field(name, _TYPES[kind]) if kind in _TYPES else tables.json_field(name)


def _widest(kinds: set[str], inexact: bool) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds == {"int", "float"} and not inexact:
        return "float"
    return "json"
