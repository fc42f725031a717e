"""JSON lines, and JSON arrays of objects."""

from __future__ import annotations

import codecs
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError, kind_of, nearest
from evaluand.data.files import SourceFile
from evaluand.data.records import Broken, read_objects
from evaluand.data.schema.limits import is_json_text
from evaluand.data.source import DataSource, FileFormat, Reading
from evaluand.data.text import check_utf8, long_row


class JsonLines(FileFormat):
    """One JSON object in each line."""

    kind = "jsonl"

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        return read_objects(
            [partial(_read_lines, file) for file in files],
            lambda number, line: f"{files[number].name}:{line + 1}",
            is_json=True,
        )


class Ndjson(JsonLines):
    """JSON lines under another name."""

    kind = "ndjson"


class JsonArray(FileFormat):
    """One JSON array of objects, or the description of a dataset (Croissant, Data Package)."""

    kind = "json"
    has_parts = True

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        if all(map(_has_lines, files)):
            return JsonLines().open(files, reading)
        values = [read_json(file, empty=[]) for file in files]
        if len(files) == 1 and isinstance(values[0], dict) and (described := described_kind(values[0])):
            opened: Sequence[DataSource] = registry.find("formats", described)().open(files, reading)
            return opened
        arrays = [_as_array(file, value, reading.part) for file, value in zip(files, values, strict=True)]
        return read_objects(
            [partial(enumerate, rows) for rows in arrays],
            lambda number, row: f"{files[number].name}[{row}]",
            is_json=True,
        )


def described_kind(value: Mapping[str, Any]) -> str | None:
    """The format of a description of a dataset; None if it is none."""
    names = {key.rpartition(":")[2] for key in value}
    if "@context" in value and names & {"recordSet", "distribution"}:
        return "croissant"
    return "datapackage" if isinstance(value.get("resources"), list) else None


def _has_lines(file: SourceFile) -> bool:
    """Whether the first line is an object and another line follows, as in JSON lines."""
    with file.path.open("rb") as stream:
        first, second = stream.readline().removeprefix(codecs.BOM_UTF8), stream.readline()
    return first.startswith(b"{") and bool(second.strip()) and is_json_text(first)


def _as_array(file: SourceFile, value: Any, part: str | None) -> list[Any]:
    lists = [name for name, each in value.items() if isinstance(each, list)] if isinstance(value, dict) else []
    if part is not None and part not in lists:
        there = f"; there are {', '.join(lists)}" if lists else ""
        raise SpecError(f"{file.name}: no list is called {part!r}{nearest(part, lists)}{there}")
    if part is not None:
        value = value[part]
    elif lists:
        message = f"choose one of its lists, as in {file.name}#{lists[0]}"
        raise DataError(f"{file.name}: a JSON dataset is an array of objects, not an object; {message}")
    if not isinstance(value, list):
        raise DataError(f"{file.name}: a JSON dataset is an array of objects, not {kind_of(value)}")
    return value


def read_json(file: SourceFile, empty: Any = None) -> Any:
    """The value of a JSON file; `empty` if it has no bytes.

    Raises:
        DataError: the file is not JSON, with its place.
    """
    text = file.path.read_bytes().removeprefix(codecs.BOM_UTF8)
    try:
        return _parse(text) if text else empty
    except orjson.JSONDecodeError as error:
        check_utf8(file)
        raise DataError(Fault(f"{file.name}:{error.lineno}:{error.colno}", f"not JSON: {_explain(error)}")) from None


def _read_lines(file: SourceFile) -> Iterator[tuple[int, Any]]:
    number = 0
    with Path(file.path).open("rb") as stream:
        while lines := stream.readlines(_CHUNK):
            if number == 0:
                lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
            if len(lines[-1]) > _MOST_BYTES:  # any other would have ended the chunk
                raise long_row(f"{file.name}:{number + len(lines)}", _MOST_BYTES)
            values = _parse_lines(lines)
            yield from _parse_each(file, lines, number) if values is None else enumerate(values, number)
            number += len(lines)


_CHUNK: Final = 1 << 20  # bytes
_MOST_BYTES: Final = 64 << 20  # of a line


def _parse_lines(lines: Sequence[bytes]) -> list[Any] | None:
    """The values of lines, parsed as one array; None if one is blank, has a fault or may have a long number.

    The lines are separated by a random number. If it is not found again between all values, some line was not exactly
    one JSON value, such as `[1`, which only the next line completes.
    """
    mark = secrets.randbits(53)
    text = b"[" + f",{mark},".encode().join(lines) + b"]"
    if _has_long_number(text):
        return None
    try:
        values: list[Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    between = values[1::2]
    if len(values) != 2 * len(lines) - 1 or any(type(each) is not int or each != mark for each in between):
        return None
    return values[::2]


def _parse_each(file: SourceFile, lines: Sequence[bytes], first: int) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            yield number, _parse(line)
        except orjson.JSONDecodeError as error:
            if line.decode(errors="replace").encode() != line:
                check_utf8(file)
            yield number, Broken(f"not JSON at column {error.pos + 1}: {_explain(error)}")


def _explain(error: orjson.JSONDecodeError) -> str:
    """What is wrong with a text; names the numbers of Python's `json.dumps` that JSON does not have."""
    found = _NOT_A_NUMBER.match(error.doc[max(error.pos - 1, 0) :])
    return f"{found[1]} is not a JSON value; write null" if found else str(error.msg)


_NOT_A_NUMBER: Final = re.compile(r"[\s:,\[]?(NaN|-?Infinity)\b")


def _parse(text: bytes) -> Any:
    """JSON with exact integers: beyond 64 bits orjson returns floats, so the standard library reads those."""
    value = orjson.loads(text)
    return json.loads(text) if _has_long_number(text) else value


def _has_long_number(text: bytes) -> bool:
    """Whether a number, or a part of a text that looks like one, has so many digits that it may exceed 64 bits."""
    return _LONG_NUMBER in text.translate(_DIGITS)


_LONG_NUMBER: Final = b"," + 19 * b"0"
_DIGITS: Final = bytes.maketrans(b"123456789[:- \t\r\n", 9 * b"0" + 7 * b",")  # where a number may begin is a comma
