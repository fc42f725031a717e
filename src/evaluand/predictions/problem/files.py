"""Prediction and truth files read and checked before anything is scored.

Every fault is reported at once, with its file, line, column and code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from evaluand.core.errors import DataError, Fault, nearest
from evaluand.core.files.cells import typed, written_as_real
from evaluand.core.files.csv import check_quotes, header_of, mapped, records_in
from evaluand.core.files.json import Findings, no_file
from evaluand.data.columns import join_chunks
from evaluand.data.sources import DataSource, open_texts
from evaluand.predictions.problem.layout import FileLayout
from evaluand.predictions.problem.sides import CONFIDENCE, MOST_SHOWN, PREDICTIONS, RANK, TRUTH, Side, file_fault

_RESERVED: Final = {CONFIDENCE: "real", RANK: "real"}
_SINGLE_QUOTED: Final = re.compile(rb"(?:^|,)'[^'\r\n]*'(?=,|\r?$)", re.MULTILINE)
_EMPTY: Final = "the file is empty; it needs a header and rows"


def read_header(path: Path) -> list[str]:
    """The names of a file's columns."""
    if not path.is_file():
        raise DataError(no_file(path))
    text = mapped(path)
    first = next(records_in(text, ","), None)
    if first is None:
        raise DataError(file_fault(path, "empty_file", _EMPTY))
    line, start, end = first
    try:
        return header_of(bytes(text[start:end]).decode(), f"{path}:{line}", ",", declared=False, fixed=True)
    except UnicodeDecodeError:
        raise DataError(Fault(f"{path}:{line}", "is not UTF-8; save the file as UTF-8", code="not_utf8")) from None


def read_cells(path: Path, layout: FileLayout, findings: Findings, *, strict: bool = False) -> Side | None:
    """The index and targets of a file; None if its rows cannot be read at all.

    A cell whose value cannot be read is a fault, and null. Columns `confidence` and `rank` have these names, however
    the file spells them.

    Args:
        strict: whether it is a file of predictions, in which other columns are faults; in one of the truth they are
            ignored.
    """
    log = FaultLog(path, lambda row: 0, findings)
    if not path.is_file():
        log.add("no_such_file", no_file(path).message)
        return None
    if next(records_in(mapped(path), ","), None) is None:
        log.add("empty_file", _EMPTY)
        return None
    try:
        source = _open_single_quoted(path, log) or open_texts(path)
    except DataError as error:
        for fault in error.faults:
            log.add(fault.code or "bad_quoting", fault.message, line=_line_in(fault.where))
        return None
    log = FaultLog.of(source, findings)
    names = _choose_columns(source.schema.names, layout, log, strict=strict)
    table = pa.Table.from_batches(source.batches(), source.schema)
    if not table.num_rows:
        log.add("no_rows", "has a header and no rows")
    columns: dict[str, pa.Array] = {}
    for column, (name, kind) in names.items():
        may_be_empty = layout.sets and name in layout.targets
        texts = join_chunks(table.column(column))
        columns[name] = _convert(texts, column, kind, name in layout.index, may_be_empty, strict, log)
    log.summarise()
    _note_encoding(path, log)
    complete = table.num_rows and layout.columns.keys() <= columns.keys()
    return Side(PREDICTIONS if strict else TRUTH, pa.table(columns), path, log.line) if complete else None


def _choose_columns(
    header: Sequence[str], layout: FileLayout, log: FaultLog, *, strict: bool
) -> dict[str, tuple[str, str]]:
    """The columns to read: name in the file → our name and type; missing and unexpected columns are reported."""
    expected = layout.columns
    reserved = {name: name.lower() for name in header if name.lower() in _RESERVED and name not in expected}
    for name in expected:
        if name not in header:
            role = "index" if name in layout.index else "target"
            near = nearest(name, [other for other in header if other not in expected])
            log.add("missing_column", f"the {role} {name!r} has no column{near}", column=name)
    if strict:
        _check_unexpected([name for name in header if name not in layout.ignored], expected, reserved, log)
    chosen = {name: (name, expected[name]) for name in header if name in expected}
    if strict and [*chosen] != [name for name in expected if name in chosen]:
        log.note("other_order", f"the columns are in the order {', '.join(header)}")
    return chosen | {name: (lower, _RESERVED[lower]) for name, lower in reserved.items() if strict}


def _check_unexpected(header: Sequence[str], expected: dict[str, str], reserved: dict[str, str], log: FaultLog) -> None:
    for name in header:
        if name == "":
            log.note("unnamed_column", "a column has no name; it is left out")
        elif name not in expected and name not in reserved:
            known = ", ".join([*expected, CONFIDENCE])
            log.add("unexpected_column", f"unexpected column; the file may have {known}", column=name)
    for name in [name for name, lower in reserved.items() if [*reserved.values()].count(lower) > 1][1:]:
        log.add("twice_column", f"{reserved[name]} occurs twice", column=name)


def _convert(
    texts: pa.Array, name: str, kind: str, is_index: bool, may_be_empty: bool, strict: bool, log: FaultLog
) -> pa.Array:
    """The values of a column; cells that are empty or of another type are reported, a truth without numbers once."""
    if (numbers := _plain_numbers(texts, kind)) is not None:
        return numbers
    empty = pc.fill_null(pc.equal(texts, ""), True)
    if kind != "text":
        empty = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), True)
    for row in [] if may_be_empty else _rows(empty):
        log.add_cell("empty_index" if is_index else "empty_value", row, name, "is empty")
    code, wrong = "index_type" if is_index else "wrong_type", dict[int, str]()
    values = typed(texts, kind, wrong.__setitem__)
    if kind == "real" and wrong and not strict and len(wrong) == pc.sum(pc.invert(empty)).as_py():
        few = ", ".join(map(repr, sorted({texts[row].as_py() for row in wrong})[:3]))
        log.add(code, f"has no numbers, only {few}", column=name)
        wrong.clear()
    for row, message in wrong.items():
        log.add_cell(code, row, name, message)
    if kind == "integer" and (count := written_as_real(texts)):
        code = "index_as_real" if is_index else "real_for_integer"
        log.note(code, f"{name}: {count:,} integers are written as 1.0; read as 1")
    if kind == "real":
        for row in _rows(pc.fill_null(pc.invert(pc.is_finite(values)), False)):
            log.add_cell("not_finite", row, name, f"is {texts[row].as_py().strip()[:60]!r}; give a finite number")
    return values


def _plain_numbers(texts: pa.Array, kind: str) -> pa.Array | None:
    """The finite numbers of texts that Arrow converts as we do; None if anything is odd, such as hexadecimal digits."""
    if kind not in _NUMBERS or texts.null_count or pc.any(pc.match_substring_regex(texts, "[xX]")).as_py():
        return None
    try:
        numbers = texts.cast(_NUMBERS[kind])
    except pa.ArrowInvalid:
        return None
    return numbers if pc.all(pc.is_finite(numbers)).as_py() else None


_NUMBERS: Final = {"integer": pa.int64(), "real": pa.float64()}


def _open_single_quoted(path: Path, log: FaultLog) -> DataSource | None:
    """A file whose every row has cells in single quotes and none in double ones; None for any other file."""
    content = mapped(path)
    if content.find(b'"') >= 0 or content.find(b"'") < 0:
        return None
    text = bytes(content)
    records = [*records_in(text, ",")]
    if len(records) < 2 or not all(_SINGLE_QUOTED.search(text[start:end]) for _, start, end in records[1:]):
        return None
    check_quotes(text.translate(bytes.maketrans(b"'", b'"')), path, ",")
    line, start, end = records[0]
    header = header_of(text[start:end].decode(), f"{path}:{line}", ",", declared=False, fixed=True)
    ragged: list[Fault] = []

    def skip_ragged(row: Any) -> str:
        message = f"{row.actual_columns} values where the header names {row.expected_columns}"
        ragged.append(Fault(f"{path}:{records[row.number - 1][0]}", message, code="ragged_row"))
        return "skip"

    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(quote_char="'", newlines_in_values=True, invalid_row_handler=skip_ragged),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), null_values=[""]),
    )
    if ragged:
        raise DataError(ragged)
    log.note("single_quotes", "cells are in single quotes; read as if they were double ones")
    lines = [line for line, _, _ in records[1:]]
    return DataSource(str(path), table.schema, lambda: iter(table.to_batches()), lambda row: f"{path}:{lines[row]}")


def _note_encoding(path: Path, log: FaultLog) -> None:
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if head.startswith(b"\xef\xbb\xbf"):
        log.note("byte_order_mark", "begins with a byte order mark")
    if b"\r\n" in head:
        log.note("line_ends", "lines end in CR LF")


class FaultLog:
    """Collects the faults of a file by line and column: the first `MOST_SHOWN` of each kind, and a count of the rest.

    Args:
        line: the line of a row.
    """

    def __init__(self, path: Path, line: Callable[[int], int], findings: Findings) -> None:
        self.path, self.line, self.findings = path, line, findings
        self._counts: dict[tuple[str, str | None], int] = {}

    @classmethod
    def of(cls, source: DataSource, findings: Findings) -> FaultLog:
        """The log of an open file."""
        return cls(Path(source.name), lambda row: _line_in(source.where(row)) or 0, findings)

    def add_cell(self, code: str, row: int, column: str | None, message: str) -> None:
        """A fault of a cell, or of a row, listed unless there are too many of its kind."""
        key = (code, column)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] <= MOST_SHOWN:
            self.add(code, message, line=self.line(row), column=column)

    def add(self, code: str, message: str, *, line: int | None = None, column: str | None = None) -> None:
        """A fault of a line, a column or the whole file."""
        self.findings.faults.append(file_fault(self.path, code, message, line, column))

    def note(self, code: str, message: str) -> None:
        self.findings.note(str(self.path), code, message)

    def summarise(self) -> None:
        """Counts the faults that were not listed."""
        for (code, column), count in self._counts.items():
            if count > MOST_SHOWN:
                self.add(code, f"{count - MOST_SHOWN:,} more of this kind", column=column)
        self._counts.clear()


def _rows(mask: Any) -> list[int]:
    return np.flatnonzero(np.asarray(mask)).tolist()


def _line_in(where: str) -> int | None:
    """The line at the end of a place such as `a.csv:17`."""
    number = where.rpartition(":")[2]
    return int(number) if number.isdecimal() else None
