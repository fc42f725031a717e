"""Tables whose files and columns a description declares: the files are below its folder, and their bytes are checked.

Croissant and Data Package have this in common. Nothing is fetched: what the description names by URL must have been
downloaded next to it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, kind_of, warn
from evaluand.core.files.paths import is_within
from evaluand.data.source import DataNote, DataSource, Faults, OpenFiles, missing_column
from evaluand.store.tables import is_json, json_field

ROLE: Final = "evaluand:role"
"""The property of a field by which evaluand writes the role of a column, which neither standard has."""
_SEVERAL: Final = ("attributes", "metadata")
_SHOWN: Final = 60


@dataclass(frozen=True)
class Column:
    """A column as it is declared.

    Attributes:
        name: its name in the dataset.
        source: its name in the file.
        type: its Arrow type; None for that of the file.
        parse: reads the text of a cell, raises a ValueError; None if Arrow's own conversion does.
        missing: texts that stand for a missing value.
        is_json: whether its cells are texts of JSON.
    """

    name: str
    source: str
    type: pa.DataType | None = None
    parse: Callable[[str], Any] | None = None
    missing: frozenset[str] = field(default=frozenset({""}))
    is_json: bool = False

    @property
    def kind(self) -> str:
        return "json" if self.is_json else str(self.type)


def listed(value: Any) -> list[Any]:
    """A value as a list: the list that it is, or with it alone; empty without a value."""
    return [] if value is None else value if isinstance(value, list) else [value]


def objects_in(value: Any, where: str) -> list[Mapping[str, Any]]:
    """The objects of a list, or the only one; none without a value.

    Raises:
        DataError: something in the list is not an object.
    """
    found = listed(value)
    for number, each in enumerate(found):
        if not isinstance(each, Mapping):
            place = f"{where}[{number}]" if isinstance(value, list) else where
            raise DataError(f"{place} must be an object, not {kind_of(each)}")
    return found


def texts_in(value: Any, where: str) -> list[str]:
    """The texts of a list, or the only one; none without a value.

    Raises:
        DataError: something in the list is not a text.
    """
    found = listed(value)
    for each in found:
        if not isinstance(each, str):
            raise DataError(f"{where} must be a text or a list of texts, not {kind_of(each)}")
    return found


def find_file(folder: Path, place: str, what: str) -> Path:
    """The file that a description names by a path below its folder, or by a URL from which it was downloaded.

    Raises:
        DataError: the path leads out of the folder, or there is no such file.
    """
    try:
        parts = urlsplit(place)
    except ValueError as error:
        raise DataError(f"{what} is at {place!r}, which is no URL: {error}") from None
    if parts.scheme in ("http", "https", "ftp"):
        name = PurePosixPath(unquote(parts.path)).name
        path = folder / name
        if not name or not os.path.isfile(path):
            raise DataError(f"{what} is at {place}, and nothing is downloaded; save it as {folder / (name or 'FILE')}")
        place = name
    path = folder / place
    inside = not os.path.isabs(place) and ".." not in PurePosixPath(place.replace("\\", "/")).parts
    if not inside or not is_within(path, folder):
        raise DataError(f"{what} is {place!r}, which is outside the folder of the description; move it into {folder}")
    if not os.path.isfile(path):
        slashed = place.replace("\\", "/")
        advice = f"; write it with /, as in {slashed}" if "\\" in place and os.path.isfile(folder / slashed) else ""
        raise DataError(f"{what} is {place}, but {path} does not exist{advice}")
    return path


def check_digest(path: Path, algorithm: str, expected: str, what: str) -> None:
    """Compare the bytes of a file to a checksum.

    Raises:
        DataError: they differ.
    """
    if algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        warn(f"{what}: the checksum is {algorithm}, which cannot be verified", DataNote)
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    if found != expected.lower():
        raise DataError(
            f"{path}: {algorithm} is {found}, but {expected} in the description; restore the file, or correct its"
            " checksum if you changed it"
        )


def written_roles(fields: Sequence[tuple[str, str]]) -> list[tuple[str, Any]]:
    """The roles of columns, from the property `ROLE` of each field.

    Example:
        >>> written_roles([("x", "input"), ("age", "attributes"), ("y", "expected:label")])
        [('input', 'x'), ('attributes', ['age']), ('expected', {'label': 'y'})]
    """
    roles: dict[str, Any] = {}
    for name, text in fields:
        for role, _, target in (part.partition(":") for part in text.split()):
            if target:
                roles.setdefault(role, {})[unquote(target)] = name
            else:
                roles.setdefault(role, []).append(name)
    single = {role for role, names in roles.items() if role not in _SEVERAL and isinstance(names, list)}
    return [(role, names[0] if role in single and len(names) == 1 else names) for role, names in roles.items()]


def read_declared(source: DataSource, columns: Sequence[Column], roles: Sequence[tuple[str, Any]] = ()) -> OpenFiles:
    """The declared columns of a file in their declared types.

    Raises:
        DataError: the file lacks a column, two have one name, or a cell does not fit its type; lists every fault with
            its row.
    """
    twice = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
    if twice:
        raise DataError(
            f"{source.name}: its description has several fields called {twice[0]!r}; give each its own name"
        )
    rows, is_text = (source, False) if source.texts is None else (source.texts(), True)
    columns = columns if is_text else [replace(column, missing=frozenset()) for column in columns]
    lacking = [column.source for column in columns if column.source not in rows.schema.names]
    if lacking:
        raise DataError([Fault(source.name, missing_column(name, rows.schema.names)) for name in lacking])
    fields = [_field(column, rows.schema.field(column.source)) for column in columns]
    schema = pa.schema(fields)
    faults, row = Faults(), 0
    for batch in rows.batches():
        for column, target in zip(columns, fields, strict=True):
            cells = _cells(batch, column, is_text)
            _convert(cells, column, target, _Reporter(rows, row, column, faults))
        row += batch.num_rows
    faults.check()

    def batches(_: int) -> Iterator[pa.RecordBatch]:
        for batch in rows.batches():
            arrays = [
                _convert(_cells(batch, column, is_text), column, target, None)
                for column, target in zip(columns, fields, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return OpenFiles(schema, batches, lambda _, number: source.where(number), roles=tuple(roles))


def _field(column: Column, found: pa.Field) -> pa.Field:
    if column.is_json or (is_json(found) and column.type in (None, pa.string())):
        return json_field(column.name)
    return pa.field(column.name, column.type or found.type)


def _cells(batch: pa.RecordBatch, column: Column, is_text: bool) -> pa.Array:
    """The cells of a column; in text, an empty one is missing only if it is declared so."""
    cells = batch.column(column.source)
    return cells.fill_null("") if is_text and "" not in column.missing else cells


@dataclass(frozen=True)
class _Reporter:
    """Reports cells that do not fit."""

    rows: DataSource
    start: int
    column: Column
    faults: Faults

    def add(self, row: int, value: Any) -> None:
        where = f"{self.rows.where(self.start + row)}:{self.column.source}"
        self.faults.add(where, f"{str(value)[:_SHOWN]!r} is not of the declared type {self.column.kind}")


def _convert(values: pa.Array, column: Column, target: pa.Field, reporter: _Reporter | None) -> pa.Array:
    """The cells in their declared type; null where a cell does not fit, which is reported."""
    is_plain = column.parse is None and not column.is_json
    if is_plain and (column.type is None or (values.type == target.type and not column.missing)):
        return values
    if not pa.types.is_string(values.type):
        return _cast(values, target.type, reporter)
    if is_plain and column.missing <= {""} and not pa.types.is_string(target.type):
        try:
            return values.cast(target.type)
        except pa.ArrowInvalid:
            pass
    return pa.array(
        [_parse(text, column, target, row, reporter) for row, text in enumerate(values.to_pylist())], target.type
    )


def _cast(values: pa.Array, kind: pa.DataType, reporter: _Reporter | None) -> pa.Array:
    try:
        return values if values.type == kind else values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if reporter is None:
            raise
        reporter.add(0, values[0].as_py())
        return pa.nulls(len(values), kind)


def _parse(text: str | None, column: Column, target: pa.Field, row: int, reporter: _Reporter | None) -> Any:
    if text is None or text in column.missing:
        return None
    try:
        if column.is_json:
            return identity.encode(json.loads(text)).decode()
        value = text if column.parse is None else column.parse(text)
        if not isinstance(value, str) or pa.types.is_string(target.type):
            return value
        return pa.scalar(value).cast(target.type).as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        if reporter is not None:
            reporter.add(row, text)
        return None
