"""CSV files: their records with the lines in which these begin, their quotes and header; and writing them.

Arrow reads the cells; where a record begins, and whether a quote swallows what follows it, is read from the text.
"""

import codecs
import csv
import io
import json
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.paths import replaced
from evaluand.core.text.unseen import UNSEEN

_SIGNS = r"=+\-@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20"
_FORMULA = re.compile(rf"'*+(?:[\t\r\n]|[\s\0-\x1f\x7f-\x9f\u2800{UNSEEN}]*+[{_SIGNS}])")
"""How a text begins that spreadsheets take for a formula.

Some skip blanks, controls and what is not seen before its sign, and take a wide, a small or a minus sign for the usual.
"""


def escape_formula(text: str) -> str:
    """A text that no spreadsheet executes: one that would begin a formula, or seem to be escaped, gets a `'`.

    Example:
        >>> escape_formula("=1+1"), escape_formula("'=1+1"), escape_formula("'tis"), escape_formula(" =1")
        ("'=1+1", "''=1+1", "'tis", "' =1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """The text that `escape_formula` has escaped, or left as it is.

    Example:
        >>> unescape_formula("'=1+1"), unescape_formula("'tis")
        ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def mapped(path: Path) -> mmap.mmap | bytes:
    """The bytes of a file without reading them into memory."""
    if path.stat().st_size == 0:  # which cannot be mapped
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


# A quote opens a cell where it is the first character; elsewhere it is a character like any other.
_OPENS = rb"(?:(?<![^%(d)b\r\n])|(?<=\xef\xbb\xbf))"
_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'
_WELL_QUOTED = rb'(?:[^"]++|' + _OPENS + _QUOTED + rb'(?=[%(d)b\r\n]|\Z)|(?<=[^%(d)b\r\n])(?<!\xef\xbb\xbf)")*+'
_TOKENS = rb'[^"\r\n]*+(?:(' + _OPENS + _QUOTED + rb')|"|(\r\n?|\n)|\Z)'
_LINE_END = re.compile(rb"\r\n?|\n")


def _compiled(pattern: bytes, delimiter: str) -> re.Pattern[bytes]:
    return re.compile(pattern % {b"d": re.escape(delimiter.encode())})


def check_quotes(text: mmap.mmap | bytes, path: Path | str, delimiter: str) -> None:
    """Refuses a quoted cell whose closing quote is missing or not followed by the end of the cell.

    Raises:
        DataError: names the line in which the cell begins.
    """
    good = _compiled(_WELL_QUOTED, delimiter).match(text)
    opens = good.end() if good else 0
    if opens == len(text):
        return
    closed = re.compile(_QUOTED).match(text, opens)
    line = _line_of(text, opens)
    wrong = f"ends in line {_line_of(text, closed.end())}, where more text follows it" if closed else "is never closed"
    raise DataError(
        Fault(
            f"{path}:{line}",
            f'the quoted cell that begins here {wrong}; close it, and double quotes inside it ("")',
            code="bad_quoting",
        )
    )


def _line_of(text: mmap.mmap | bytes, place: int) -> int:
    return 1 + sum(1 for _ in _LINE_END.finditer(text, 0, place))


def records_in(text: mmap.mmap | bytes, delimiter: str) -> Iterator[tuple[int, int, int]]:
    """(line, start, end) of each record that is not blank, the header first; start and end are positions of bytes."""
    line = first = 1
    start = len(codecs.BOM_UTF8) if text[:3] == codecs.BOM_UTF8 else 0
    for token in _compiled(_TOKENS, delimiter).finditer(text, start):
        if token[2] is None:
            line += len(_LINE_END.findall(token[1] or b""))
            continue
        if token.start(2) > start:
            yield first, start, token.start(2)
        line += 1
        first, start = line, token.end()
    if len(text) > start:
        yield first, start, len(text)


def header_of(text: str, where: str, delimiter: str, *, declared: bool, fixed: bool = False) -> list[str]:
    """The names of the columns, each of which must be different; arguments as in `header_cells`."""
    return check_names(header_cells(text, where, delimiter, declared=declared, fixed=fixed), where)


def header_cells(text: str, where: str, delimiter: str, *, declared: bool, fixed: bool = False) -> list[str]:
    """The cells of the header.

    Args:
        declared: whether the delimiter was given, so that a single column is one even if it looks like several.
        fixed: whether the delimiter cannot be chosen.
    """
    if text.count(delimiter) >= MOST_COLUMNS:
        raise DataError(Fault(where, f"the header has more than {MOST_COLUMNS:,} columns; divide the file"))
    try:
        header = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(Fault(where, f"the header cannot be read: {error}", code="bad_quoting")) from None
    other = next((other for other in ",;\t|" if other != delimiter and other in header[0]), None) if header else None
    if len(header) == 1 and other and not declared:
        one, other = json.dumps(delimiter), json.dumps(other)
        remedy = f"save the file with {one}" if fixed else f"set delimiter: {other} (or {one}, if it is one column)"
        raise DataError(Fault(where, f"the header has no {one} but {other}; {remedy}", code="missing_column"))
    return header


MOST_COLUMNS: Final = 100_000
"""The columns that a table may have."""


def check_names(header: list[str], where: str) -> list[str]:
    """The header, unless a name occurs twice; one column may have none."""
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        message = f"the columns {', '.join(map(repr, twice))} occur twice; give each column a different name"
        raise DataError(Fault(where, message, code="twice_column"))
    return header


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Writes a table as CSV, with quotes only if a text needs them; missing folders are made."""
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    quoted = any(pc.any(pc.match_substring_regex(text, r'^$|[",\r\n]')).as_py() for text in texts)
    quoted_header = any(character in name for name in table.column_names for character in ',"\r\n')
    styles = {True: "needed", False: "none"}
    with replaced(Path(path), parents=True) as file:
        options = arrow_csv.WriteOptions(quoting_style=styles[quoted], quoting_header=styles[quoted_header])
        arrow_csv.write_csv(table, file, options)
