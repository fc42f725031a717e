"""Tables that a description declares: their fields, and the files below its folder with their checksums.

Croissant and Data Package are dialects of this. Nothing is fetched: what a description names by URL must have been
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
from typing import Any, ClassVar, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, kind_of, nearest, warn
from evaluand.core.files.paths import is_within
from evaluand.data.files import SourceFile
from evaluand.data.formats.json_rows import read_json
from evaluand.data.schema import kinds
from evaluand.data.schema.arrow import scalar_kind
from evaluand.data.schema.declared import check_declared, find_faults
from evaluand.data.source import MAX_FAULTS, DataNote, DataSource, Faults, FileFormat, Reading, missing_column
from evaluand.store.tables import is_json, json_field

ROLE: Final = "evaluand:role"
"""The property of a field by which evaluand writes the role of a column, which neither standard has."""
_SEVERAL: Final = ("attributes", "metadata")
_SHOWN: Final = 60


@dataclass(frozen=True)
class Column:
    """A field as it is declared.

    Attributes:
        name: its name in the dataset.
        source: its name in the file.
        type: its Arrow type; None for that of the file.
        parse: reads the text of a cell, raises a ValueError; None if Arrow's own conversion does.
        missing: texts that stand for a missing value.
        is_json: whether its cells are texts of JSON.
        constraints: what its values must be, in the words of a Table Schema.
    """

    name: str
    source: str
    type: pa.DataType | None = None
    parse: Callable[[str], Any] | None = None
    missing: frozenset[str] = field(default=frozenset({""}))
    is_json: bool = False
    constraints: Mapping[str, Any] = field(default_factory=dict)


class Description(FileFormat):
    """A dialect of descriptions, of which `file#name` chooses a part."""

    has_parts = True
    noun: ClassVar[str]

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        file = files[0]
        value = read_json(file)
        if len(files) > 1 or not isinstance(value, dict) or file.origin is None:
            raise DataError(f"{file.name}: give one file with a {self.noun}")
        return [self.open_part(value, file.name, Path(file.name).parent, reading.part)]

    def open_part(self, value: Mapping[str, Any], name: str, folder: Path, part: str | None) -> DataSource:
        """The rows of a part of a description with this name, whose files are below a folder."""
        raise NotImplementedError


def listed(value: Any) -> list[Any]:
    """A value as a list: the list that it is, or with it alone; empty without a value."""
    return [] if value is None else value if isinstance(value, list) else [value]


def objects_in(value: Any, where: str) -> list[Mapping[str, Any]]:
    """The objects of a list, or the only one; none without a value.

    Raises:
        DataError: something in the list is not an object.
    """
    for number, item in enumerate(listed(value)):
        if not isinstance(item, Mapping):
            place = f"{where}[{number}]" if isinstance(value, list) else where
            raise DataError(f"{place} must be an object, not {kind_of(item)}")
    return listed(value)


def texts_in(value: Any, where: str) -> list[str]:
    """The texts of a list, or the only one; none without a value.

    Raises:
        DataError: something in the list is not a text.
    """
    for item in listed(value):
        if not isinstance(item, str):
            raise DataError(f"{where} must be a text or a list of texts, not {kind_of(item)}")
    return listed(value)


def choose_part(parts: Mapping[str, Any], chosen: str | None, name: str, noun: str) -> Any:
    """The part of a description with this name, or the only one.

    Raises:
        SpecError: there is none, or no single one.
    """
    if chosen is not None and chosen not in parts:
        near = nearest(chosen, parts)
        raise SpecError(f"{name}: no {noun} is called {chosen!r}{near}; there are {', '.join(parts)}")
    if not parts:
        raise SpecError(f"{name}: the description has no {noun}")
    first = next(iter(parts))
    if chosen is None and len(parts) > 1:
        raise SpecError(f"{name}: there are the {noun}s {', '.join(parts)}; choose one, as in {name}#{first}")
    return parts[first if chosen is None else chosen]


def inline_rows(data: Any, name: str) -> list[dict[str, Any]]:
    """The rows that a description itself has: objects, or lists of which the first is the header.

    Raises:
        DataError: they are neither.
    """
    try:
        data = json.loads(data) if isinstance(data, str) else data
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} is a text that is not JSON: {error}") from None
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        return data
    if not isinstance(data, list) or not all(isinstance(row, list) for row in data):
        raise DataError(f"{name} must be a list of objects, or of lists after a header")
    header, *rows = data
    return [dict(zip(map(str, header), row, strict=False)) for row in rows]


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
    digest = digest_of(path, algorithm)
    if digest != expected.lower():
        raise DataError(
            f"{path}: {algorithm} is {digest}, but {expected} in the description; restore the file, or correct its"
            " checksum if you changed it"
        )


def digest_of(path: Path, algorithm: str) -> str:
    """The checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


# Roles


def read_roles(
    written: Mapping[str, str], keys: Sequence[str], labels: Sequence[str], name: str
) -> tuple[tuple[str, Any], ...]:
    """The roles of columns: as they are written, or by the key and the labels that a description declares.

    Args:
        written: column → its roles, as `ROLE` has them.
        keys: the columns of its key, of which a single one is the id.
        labels: the columns that are expected.
        name: of the table, for messages.

    Example:
        >>> read_roles({"x": "input", "age": "attributes", "y": "expected:label"}, [], [], "people")
        (('input', 'x'), ('attributes', ['age']), ('expected', {'label': 'y'}))
    """
    roles: dict[str, Any] = {}
    for column, words in written.items():
        for role, _, target in (word.partition(":") for word in words.split()):
            if target:
                roles.setdefault(role, {})[unquote(target)] = column
            else:
                roles.setdefault(role, []).append(column)
    if labels and not roles:
        roles["expected"] = list(labels)
    if len(keys) > 1:
        warn(f"{name}: the key {', '.join(keys)} has several fields, so that no column is the id", DataNote)
    elif keys:
        roles.setdefault("id", list(keys))
    return tuple(
        (role, names[0] if isinstance(names, list) and len(names) == 1 and role not in _SEVERAL else names)
        for role, names in roles.items()
    )


# Cells


def read_declared(
    source: DataSource, columns: Sequence[Column], roles: tuple[tuple[str, Any], ...], name: str
) -> DataSource:
    """The declared columns of a file in their declared types.

    Raises:
        DataError: the file lacks a column, two have one name, or a cell does not fit its type or its constraints; lists
            every fault with its row.
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
    fields = []
    for column in columns:
        stored = rows.schema.field(column.source)
        as_json = column.is_json or (is_json(stored) and column.type in (None, pa.string()))
        fields.append(json_field(column.name) if as_json else pa.field(column.name, column.type or stored.type))
    schema = pa.schema(fields)

    def read(report: Callable[[int, Column, Any], None]) -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in rows.batches():
            arrays = []
            for column, target in zip(columns, schema, strict=True):
                cells = batch.column(column.source)
                # in text, an empty cell is missing only if it is declared so
                cells = cells.fill_null("") if is_text and "" not in column.missing else cells
                arrays.append(_convert(cells, column, target, start, report))
            start += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def add_fault(row: int, column: Column, value: Any) -> None:
        kind = "json" if column.is_json else column.type
        message = f"{str(value)[:_SHOWN]!r} is not of the declared type {kind}"
        faults.add(f"{rows.where(row)}:{column.source}", message)

    faults = Faults()
    for _ in read(add_fault):
        pass
    faults.check()
    opened = DataSource(source.name, schema, lambda: read(add_fault), source.where, roles=roles)
    _check_constraints(columns, opened, name)
    return opened


def _convert(
    values: pa.Array, column: Column, target: pa.Field, start: int, report: Callable[[int, Column, Any], None]
) -> pa.Array:
    """The cells in their declared type; null where a cell does not fit, which is reported."""
    kind, is_plain = target.type, column.parse is None and not column.is_json
    if is_plain and (column.type is None or (values.type == kind and not column.missing)):
        return values
    if not pa.types.is_string(values.type) or (is_plain and column.missing <= {""} and not pa.types.is_string(kind)):
        try:
            return values if values.type == kind else values.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if not pa.types.is_string(values.type):
                report(start, column, values[0].as_py())
                return pa.nulls(len(values), kind)
    cells: list[Any] = []
    for row, text in enumerate(values.to_pylist(), start):
        try:
            cells.append(None if text is None or text in column.missing else _parse(text, column, kind))
        except (ValueError, OverflowError, pa.ArrowException):
            report(row, column, text)
            cells.append(None)
    return pa.array(cells, kind)


def _parse(text: str, column: Column, kind: pa.DataType) -> Any:
    if column.is_json:
        return identity.encode(json.loads(text)).decode()
    value = text if column.parse is None else column.parse(text)
    return value if not isinstance(value, str) or pa.types.is_string(kind) else pa.scalar(value).cast(kind).as_py()


# Constraints


def _check_constraints(columns: Sequence[Column], source: DataSource, name: str) -> None:
    """Report every cell that breaks a constraint of its field.

    Raises:
        DataError: lists every fault with its row.
    """
    fields = [_constrained_field(column, source.schema.field(column.name), name) for column in columns]
    unique = {column.name: set[Any]() for column in columns if column.constraints.get("unique")}
    constrained = [field for field, column in zip(fields, columns, strict=True) if column.constraints]
    if not constrained:
        return
    struct, faults = kinds.StructType(tuple(constrained)), Faults()
    try:
        check_declared(struct, f"{name}: constraints")
    except SpecError as error:
        raise DataError(str(error)) from None

    def rows() -> Iterator[dict[str, Any]]:
        number = 0
        for batch in source.batches():
            for row in batch.select(struct.names).to_pylist():
                yield row
                for column, seen in unique.items():
                    if row[column] is not None and row[column] in seen:
                        message = f"{str(row[column])[:_SHOWN]!r} occurs twice, but must be unique"
                        faults.add(f"{source.where(number)}:{column}", message)
                    seen.add(row[column])
                number += 1

    for fault in find_faults(struct, rows(), most=MAX_FAULTS):
        faults.add(f"{source.where(fault.row or 0)}:{fault.path}", fault.message)
    faults.check()


def _constrained_field(column: Column, field: pa.Field, name: str) -> kinds.Field:
    """The field of a schema that has the constraints of a column as its limits.

    Raises:
        DataError: a constraint is wrong.
    """
    limits, kind = column.constraints, None if is_json(field) else scalar_kind(field.type)
    nullable = not limits.get("required")
    if kind is None:
        return kinds.Field(column.name, kinds.Scalar("string"), nullable)
    write = kinds.KINDS[kind].write
    words: dict[str, Any] = {}
    try:
        for limit, word in kinds.KEYWORDS.items():
            if (value := limits.get(word)) is None:
                continue
            if word == "enum":
                value = [write(_read_limit(item, column)) for item in value] if isinstance(value, list) else value
            elif word == "pattern":
                value = f"^(?:{value})$"
            elif limit in kinds.BOUNDS:
                value = write(_read_limit(value, column))
            words[kinds.keyword(kind, limit)] = value
        return kinds.Field(column.name, kinds.read_scalar(kind, words), nullable)
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise DataError(f"{name}: constraints of the field {column.name!r}: {error}; correct it") from None


def _read_limit(value: Any, column: Column) -> Any:
    if isinstance(value, list | dict):
        raise ValueError(f"{kind_of(value)} is no value of a field")
    try:
        return column.parse(value) if isinstance(value, str) and column.parse is not None else value
    except (ValueError, OverflowError):
        raise ValueError(f"{value[:_SHOWN]!r} is not of its type {column.type}") from None
