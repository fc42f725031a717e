"""Workbooks of Excel and LibreOffice, by the extra `xlsx` (python-calamine).

Of a workbook with several sheets `book.xlsx#name` chooses one. The first row with cells is the header. Empty cells, and
cells that hold an error such as `#N/A`, are missing. A workbook has one kind of number: a column is of integers if all
of its numbers are.
"""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from evaluand.core.errors import DataError, SpecError, nearest
from evaluand.data.columns import rename_columns
from evaluand.data.files import SourceFile
from evaluand.data.records import read_objects
from evaluand.data.source import DataSource, FileFormat, Reading

MAX_BYTES: Final = 1 << 28
"""A workbook is a compressed archive, which may expand to so many bytes, since a sheet is read at once."""
_DEFLATE: Final = 1032  # what Deflate can expand a byte to
_EXACT: Final = 2**53


class Workbook(FileFormat):
    """A sheet of a workbook."""

    kind = "xlsx"

    is_text = False
    has_parts = True

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        sheets = [_Sheet.read(file, reading.part) for file in files]
        return read_objects(
            [partial(iter, sheet.rows) for sheet in sheets], lambda number, line: f"{sheets[number].name}:{line + 1}"
        )


class OldWorkbook(Workbook):
    """A sheet of a workbook of Excel 97 to 2003."""

    kind = "xls"


class OpenDocument(Workbook):
    """A sheet of a workbook of LibreOffice."""

    kind = "ods"


@dataclass(frozen=True)
class _Sheet:
    """The rows of a sheet: (number from 0, values by column)."""

    name: str
    rows: Sequence[tuple[int, dict[str, Any]]]

    @classmethod
    def read(cls, file: SourceFile, part: str | None) -> _Sheet:
        try:
            from python_calamine import CalamineError, CalamineWorkbook
        except ImportError:
            raise SpecError(f"{file.name}: workbooks need python-calamine: pip install 'evaluand[xlsx]'") from None
        _check_size(file.path, file.name)
        try:
            book = CalamineWorkbook.from_path(str(file.path))
            title = _choose_sheet(book, file.name, part)
            cells = book.get_sheet_by_name(title).to_python(skip_empty_area=False)
        except CalamineError as error:
            raise DataError(f"{file.name}: not a workbook that can be read: {error}") from None
        name = file.name if part is None else f"{file.name}#{title}"
        return cls(name, [*_rows(cells, name)])


def _check_size(path: Path, name: str) -> None:
    """Refuse an archive that expands to more than `MAX_BYTES`; the sizes that it declares are verified."""
    if not zipfile.is_zipfile(path) or path.stat().st_size * _DEFLATE < MAX_BYTES:
        return
    total = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                total += entry.file_size
                if total > MAX_BYTES:
                    raise DataError(f"{name}: expands to more than {MAX_BYTES >> 20} MB; save it as CSV or Parquet")
                with archive.open(entry) as stream:
                    while stream.read(1 << 20):
                        pass
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        raise DataError(f"{name}: not a workbook that can be read: {error}") from None


def _choose_sheet(book: Any, name: str, part: str | None) -> str:
    titles: list[str] = [sheet.name for sheet in book.sheets_metadata if "Visible" in str(sheet.visible)]
    if part is not None:
        if part not in book.sheet_names:
            near = nearest(part, book.sheet_names)
            raise SpecError(f"{name}: no sheet is called {part!r}{near}; there are {', '.join(book.sheet_names)}")
        return part
    filled: list[str] = [title for title in titles if book.get_sheet_by_name(title).height] or titles[:1]
    if not filled:
        raise DataError(f"{name}: the workbook has no visible sheet; show one, or name one after #")
    if len(filled) != 1:
        raise SpecError(
            f"{name}: the workbook has the sheets {', '.join(filled)}; choose one, as in {name}#{filled[0]}"
        )
    return filled[0]


def _rows(cells: Sequence[Sequence[Any]], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    filled = [(number, row) for number, row in enumerate(cells) if any(cell != "" for cell in row)]
    if not filled:
        return
    (line, header), *rows = filled
    width = 1 + max(place for _, row in filled for place, cell in enumerate(row) if cell != "")
    names = rename_columns([_title(cell) for cell in header[:width]], f"{name}:{line + 1}")
    columns = [_plain_column([row[place] for _, row in rows]) for place in range(width)]
    for (number, _), values in zip(rows, zip(*columns, strict=True), strict=True):
        yield number, dict(zip(names, values, strict=True))


def _title(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _plain_column(cells: Sequence[Any]) -> list[Any]:
    """The values of a column: whole numbers as integers and dates as times if that holds for all of them."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if float in kinds and all(v.is_integer() and abs(v) <= _EXACT for v in values if type(v) is float):
        return [int(value) if type(value) is float else value for value in values]
    if kinds == {dt.date, dt.datetime}:
        return [dt.datetime(v.year, v.month, v.day) if type(v) is dt.date else v for v in values]
    return values
