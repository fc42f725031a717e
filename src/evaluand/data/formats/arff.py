"""ARFF, the format of Weka and OpenML: dense and sparse rows; `?` is missing.

A column of numbers is of integers if every one is written so. Nominal values and dates are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluand.core.errors import DataError, Fault
from evaluand.data.columns import rename_columns
from evaluand.data.files import SourceFile
from evaluand.data.records import Broken, read_objects
from evaluand.data.source import DataSource, FileFormat, Reading
from evaluand.data.text import check_utf8

_TOKEN: Final = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,'"{}]*?))\s*(,|$)""")
_ATTRIBUTE: Final = re.compile(r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))\s+(.+)""", re.I)
_SPARSE: Final = re.compile(r"\s*(\d+)\s+")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_INTEGER: Final = re.compile(r"[+-]?\d+")


class Arff(FileFormat):
    """A relation."""

    kind = "arff"

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        for file in files:
            check_utf8(file)
        headers = [_Header.read(file) for file in files]
        for header in headers[1:]:
            if header.attributes != headers[0].attributes:
                raise DataError(f"{header.file.name}: the attributes differ from those of {files[0].name}")
        return read_objects(
            [header.rows for header in headers], lambda number, line: f"{files[number].name}:{line + 1}"
        )


@dataclass(frozen=True)
class _Attribute:
    """The name and the type of a column; `values` are those of a nominal one."""

    name: str
    kind: str
    values: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return self.kind in ("numeric", "real", "integer")

    @property
    def default(self) -> str:
        """What a sparse row leaves out."""
        return "0" if self.is_number else self.values[0] if self.values else ""


@dataclass(frozen=True)
class _Header:
    """The attributes of a file, and the line in which its rows begin, from 0."""

    file: SourceFile
    attributes: tuple[_Attribute, ...]
    start: int

    @property
    def names(self) -> list[str]:
        return [attribute.name for attribute in self.attributes]

    @classmethod
    def read(cls, file: SourceFile) -> _Header:
        found: list[tuple[str, str, tuple[str, ...]]] = []
        for number, line in _lines(file):
            word = line.split(None, 1)[0].lower()
            if word == "@data":
                names = rename_columns([name for name, *_ in found], file.name)
                attributes = (_Attribute(n, k, v) for n, (_, k, v) in zip(names, found, strict=True))
                return cls(file, tuple(attributes), number + 1)
            if word == "@attribute":
                found.append(_read_attribute(line, f"{file.name}:{number + 1}"))
            elif word != "@relation":
                message = "the header has @relation and @attribute lines before @data"
                raise DataError(Fault(f"{file.name}:{number + 1}", message))
        raise DataError(f"{file.name}: there is no @data line")

    def rows(self) -> Iterator[tuple[int, Any]]:
        """The line and the values of each row."""
        for number, line in _lines(self.file, self.start):
            cells = _read_row(line, len(self.attributes))
            if isinstance(cells, str):
                yield number, Broken(cells)
                continue
            try:
                values = {
                    attribute.name: _value(cells.get(place, attribute.default), attribute)
                    for place, attribute in enumerate(self.attributes)
                }
            except ValueError as error:
                yield number, Broken(str(error))
            else:
                yield number, values


def _lines(file: SourceFile, start: int = 0) -> Iterator[tuple[int, str]]:
    """(number from 0, text) of each line that is neither blank nor a comment."""
    with file.path.open(encoding="utf-8-sig", newline="") as stream:
        for number, line in enumerate(stream):
            text = line.strip()
            if number >= start and text and not text.startswith("%"):
                yield number, text


def _read_attribute(line: str, where: str) -> tuple[str, str, tuple[str, ...]]:
    found = _ATTRIBUTE.match(line)
    if found is None:
        raise DataError(Fault(where, "an @attribute line has a name and a type"))
    name = _unescape(found[1] or found[2]) if found[1] or found[2] else found[3] or ""
    kind = found[4].strip()
    if kind.startswith("{"):
        values = _read_row(kind.strip("{} "), None)
        if isinstance(values, str):
            raise DataError(Fault(where, f"the values of {name!r} cannot be read: {values}"))
        return name, "nominal", tuple(str(value) for value in values.values())
    word = kind.split()[0].lower()
    if word not in ("numeric", "real", "integer", "string", "date"):
        raise DataError(Fault(where, f"the type {kind!r} of {name!r} cannot be read"))
    return name, word, ()


def _read_row(line: str, count: int | None) -> dict[int, str | None] | str:
    """The cells of a row by their number, None for a missing one; a message if it cannot be read."""
    if line.startswith("{") and count is not None:
        return _read_sparse(line.strip("{} \t"), count)
    cells: dict[int, str | None] = {}
    if "'" not in line and '"' not in line and "{" not in line:
        texts = [text.strip() for text in line.split(",")]
        cells = dict(enumerate(None if text == "?" else text for text in texts))
        return cells if count is None or len(cells) == count else f"{len(cells)} values for {count} attributes"
    place = 0
    while True:
        token = _TOKEN.match(line, place)
        if token is None:
            return f"the cell that begins at column {place + 1} is not well quoted"
        cells[len(cells)] = _cell(token)
        place = token.end()
        if token[4] != ",":
            break
    return cells if count is None or len(cells) == count else f"{len(cells)} values for {count} attributes"


def _read_sparse(line: str, count: int) -> dict[int, str | None] | str:
    cells: dict[int, str | None] = {}
    place = 0
    while place < len(line):
        number = _SPARSE.match(line, place)
        token = _TOKEN.match(line, number.end()) if number else None
        if number is None or token is None or int(number[1]) >= count:
            return f"the entry of a sparse row at column {place + 1} is not a number of an attribute with its value"
        cells[int(number[1])] = _cell(token)
        place = token.end()
    return cells


def _cell(token: re.Match[str]) -> str | None:
    if token[3] is not None:
        return None if token[3] == "?" else token[3]
    return _unescape(token[1] if token[1] is not None else token[2])


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


def _value(text: str | None, attribute: _Attribute) -> Any:
    if text is None or not attribute.is_number:
        return text
    try:
        return int(text) if _INTEGER.fullmatch(text) else float(text)
    except ValueError:
        raise ValueError(f"{attribute.name}: {text[:60]!r} is not {attribute.kind}") from None
