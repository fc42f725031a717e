"""Files of predictions and of truth, held to what the problem asks for before anything is scored.

Every fault is told at once, with the file, the line, the column and a code. A file in which nothing is odd is read by
Arrow in one go; only one that Arrow refuses is read as text, to say what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.cells import typed, written_as_real
from evaluand.core.files.csv import check_quotes, header_of, mapped, records_in
from evaluand.core.files.json import Findings, no_file
from evaluand.core.registry import nearest
from evaluand.data.sources import DataSource, open_texts
from evaluand.interop.d3m.columns import Form
from evaluand.interop.d3m.dataset import SHOWN

CONFIDENCE: Final = "confidence"
RANK: Final = "rank"
_RESERVED: Final = {CONFIDENCE: "real", RANK: "real"}
_ARROW: Final = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string()}
_ODD: Final = r"""^$|["'\x00]"""  # texts that Arrow reads otherwise than we do, or leaves unchecked
_BLOCK: Final = 1 << 26  # so large that most files are one, and no column has to be put together
_HEXADECIMAL: Final = re.compile(rb"0[xX]")  # which Arrow takes for a number
_SINGLE_QUOTED: Final = re.compile(rb"(?:^|,)'[^'\r\n]*'(?=,|\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class CellFault(Fault):
    """A fault of a file, with its place as data.

    Attributes:
        file: the file.
        line: its line, from 1, the header's being 1; None for the file as a whole.
        column: its column; None for the line as a whole.
    """

    file: str = field(default="", kw_only=True)
    line: int | None = field(default=None, kw_only=True)
    column: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False)
class Cells:
    """A file that was read.

    Attributes:
        path: the file.
        table: its columns with their types, the reserved ones by their names in lower case.
        line: the line of a row, counted from 0.
    """

    path: Path
    table: pa.Table
    line: Callable[[int], int]

    def keys(self, form: Form) -> pa.Array:
        return _array(self.table.column(form.key))


def cell_fault(cells: Cells, code: str, message: str, row: int | None, column: str | None) -> CellFault:
    """A fault of a cell, or of a column where no row is told."""
    return _fault(cells.path, code, message, None if row is None else cells.line(row), column)


def _fault(path: Path, code: str, message: str, line: int | None, column: str | None) -> CellFault:
    where = str(path) + (f":{line}" if line else "") + (f", {column}" if column else "")
    return CellFault(where, message, code=code, file=str(path), line=line, column=column)


def header_in(path: Path) -> list[str]:
    """The names of a file's columns.

    Raises:
        DataError: there is no such file, or its header cannot be read.
    """
    if not path.is_file():
        raise DataError(no_file(path))
    text = mapped(path)
    first = next(records_in(text, ","), None)
    if first is None:
        raise DataError(_fault(path, "empty_file", _EMPTY, None, None))
    line, start, end = first
    try:
        return header_of(bytes(text[start:end]).decode(), f"{path}:{line}", ",", sure=False, fixed=True)
    except UnicodeDecodeError:
        raise DataError(Fault(f"{path}:{line}", "is not UTF-8; save the file as UTF-8", code="not_utf8")) from None


_EMPTY: Final = "the file is empty; it needs a header and rows"


def read_truth(path: Path, form: Form, findings: Findings) -> Cells | None:
    """The target values of a file, whose other columns do not matter."""
    return _read(path, form, findings, strict=False)


def read_at_once(path: Path, form: Form) -> Cells | None:
    """The target values of a file in which nothing is odd; None where anything is."""
    quietly = _Told(path, lambda row: 0, Findings())
    return _at_once(path, form, quietly, strict=False) if path.is_file() else None


def read_predictions(path: Path, form: Form, findings: Findings) -> Cells | None:
    """The predictions of a file; None where nothing can be said of its rows. What is wrong is told.

    A cell without a value that can be read is null.
    """
    return _read(path, form, findings, strict=True)


def check_rows(given: Cells, truth: pa.Table, known: pa.Array | None, form: Form, findings: Findings) -> None:
    """Tells of rows that are missing, superfluous or there twice.

    Args:
        given: the predictions.
        truth: the rows that are tested.
        known: the keys of all rows of the dataset, so that one that is learnt from can be told from one that is not
            there; None where they are not known.
    """
    keys, wanted = given.keys(form), _array(truth.column(form.key))
    told = _Told(given.path, given.line, findings)
    several = form.repeats or (form.by_class and CONFIDENCE in given.table.column_names)
    if not (several or form.gathers) and _same_once(keys, wanted):
        pass
    else:
        _check_extra(keys, wanted, known, form, told)
        if not form.gathers:
            _check_missing(keys, wanted, form, told)
            _check_twice(keys, given, [*form.targets] if several else [], form.key, told)
    if form.labels:
        _note_unknown(given, truth, form, told)
    told.done()


def check_truth(truth: Cells, form: Form, findings: Findings) -> None:
    """Tells of rows of the truth that are there twice, where each example has one."""
    keys = truth.keys(form)
    if form.repeats or form.gathers or _same_once(keys, keys):
        return
    told = _Told(truth.path, truth.line, findings)
    _check_twice(keys, truth, [], form.key, told)
    told.done()


# Reading


def _read(path: Path, form: Form, findings: Findings, *, strict: bool) -> Cells | None:
    told = _Told(path, lambda row: 0, findings)
    if not path.is_file():
        told.whole("no_such_file", no_file(path).message)
        return None
    if next(records_in(mapped(path), ","), None) is None:
        told.whole("empty_file", _EMPTY)
        return None
    if (quick := _at_once(path, form, told, strict=strict)) is not None:
        return quick
    try:
        source = _single_quoted(path, told) or open_texts(path)
    except DataError as error:
        for fault in error.faults:
            line = _line_of(fault.where)
            told.add(fault.code or "bad_quoting", fault.message, line=line)
        return None
    told.line = lambda row: _line_of(source.where(row)) or 0
    return _typed(path, source, form, told, strict=strict)


def _typed(path: Path, source: DataSource, form: Form, told: _Told, *, strict: bool) -> Cells | None:
    """The columns of a file of texts with their types."""
    names = _names(source.schema.names, form, told, strict=strict)
    table = pa.Table.from_batches(source.batches(), source.schema)
    if not table.num_rows:
        told.whole("no_rows", "has a header and no rows")
    columns: dict[str, pa.Array] = {}
    for given, (name, kind) in names.items():
        may_lack = form.sets and name in form.targets
        columns[name] = _values(_array(table.column(given)), given, kind, name in form.index, may_lack, told)
    told.done()
    _note_text(path, told)
    whole = table.num_rows and form.columns.keys() <= columns.keys()
    return Cells(path, pa.table(columns), told.line) if whole else None


def _names(header: Sequence[str], form: Form, told: _Told, *, strict: bool) -> dict[str, tuple[str, str]]:
    """The columns that mean something: as the file calls them → as we do, and their types."""
    wanted = form.columns
    reserved = {name: name.lower() for name in header if name.lower() in _RESERVED and name not in wanted}
    for name in wanted:
        if name not in header:
            what = "the index" if name in form.index else "the target"
            near = nearest(name, [one for one in header if one not in wanted])
            told.whole("missing_column", f"{what} {name!r} has no column{near}", column=name)
    if strict:
        for name in header:
            if name not in wanted and name not in reserved:
                known = ", ".join([*wanted, CONFIDENCE])
                told.whole("unexpected_column", f"no such column is asked for; there are {known}", column=name)
        for name in [name for name, low in reserved.items() if [*reserved.values()].count(low) > 1][1:]:
            told.whole("twice_column", f"{reserved[name]} is there twice", column=name)
    found = {name: (name, wanted[name]) for name in header if name in wanted}
    if strict and [*found] != [name for name in wanted if name in found]:
        told.note("other_order", f"the columns are in the order {', '.join(header)}")
    return found | {name: (low, _RESERVED[low]) for name, low in reserved.items() if strict}


def _values(texts: pa.Array, name: str, kind: str, of_index: bool, may_lack: bool, told: _Told) -> pa.Array:
    """The values of a column; what is empty or of another type is told."""
    empty = pc.fill_null(pc.equal(texts, ""), True)
    if kind != "text":
        empty = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), True)
    for row in [] if may_lack else _rows(empty):
        told("empty_index" if of_index else "empty_value", row, name, "is empty")
    wrong = "index_type" if of_index else "wrong_type"
    values = typed(texts, kind, lambda row, message: told(wrong, row, name, message))
    if kind == "integer" and (found := written_as_real(texts)):
        code = "index_as_real" if of_index else "real_for_integer"
        told.note(code, f"{name}: {found:,} whole numbers are written as 1.0; taken as 1")
    if kind == "real":
        for row in _rows(pc.fill_null(pc.invert(pc.is_finite(values)), False)):
            told("not_finite", row, name, f"is {texts[row].as_py().strip()[:60]!r}; give a finite number")
    return values


def _at_once(path: Path, form: Form, told: _Told, *, strict: bool) -> Cells | None:
    """The table as Arrow reads it; None where anything is odd."""
    text = mapped(path)
    line, _, end = next(records_in(text, ","), (1, 0, 0))
    quietly = _Told(path, lambda row: 0, Findings())
    try:
        header = header_in(path)
        names = _names(header, form, quietly, strict=strict)
        if line > 1 or quietly.count or any(kind not in _ARROW for _, kind in names.values()):
            return None
        if len(names) < len(header) and text.find(b'"', end) >= 0:  # cells that are not read may hold anything
            return None
        if (text.find(b"x", end) >= 0 or text.find(b"X", end) >= 0) and _HEXADECIMAL.search(text, end):
            return None
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=header, skip_rows=1, block_size=_BLOCK),
            parse_options=csv.ParseOptions(quote_char=False),
            convert_options=csv.ConvertOptions(
                include_columns=[*names],
                column_types={name: _ARROW[kind] for name, (_, kind) in names.items()},
                null_values=[],
            ),
        )
    except (pa.ArrowException, DataError):
        return None
    columns: dict[str, pa.Array] = {}
    for given, (name, _) in names.items():
        values = _array(table.column(given))
        # labels are few, so that all that is looked at from here on is their codes
        columns[name] = (
            values.dictionary_encode() if name in form.targets and pa.types.is_string(values.type) else values
        )
    if not table.num_rows or not all(map(_is_plain, columns.values())):
        return None
    told.notes(quietly)
    _note_text(path, told)
    return Cells(path, pa.table(columns), _lines(path))


def _is_plain(values: pa.Array) -> bool:
    """Whether every number is finite, and no text is empty or holds what Arrow reads otherwise than we do."""
    if pa.types.is_floating(values.type):
        return bool(np.isfinite(np.asarray(values)).all())
    if pa.types.is_integer(values.type):
        return True
    texts = values.dictionary if pa.types.is_dictionary(values.type) else values
    return not pc.any(pc.match_substring_regex(texts, _ODD), min_count=0).as_py()


def _lines(path: Path) -> Callable[[int], int]:
    """The line of each row, looked for when it is asked for."""

    class Lines:
        @cached_property
        def of(self) -> list[int]:
            return [line for line, _, _ in records_in(mapped(path), ",")]

    lines = Lines()
    return lambda row: lines.of[row + 1]


def _single_quoted(path: Path, told: _Told) -> DataSource | None:
    """A file in which every row has cells in single quotes, and none has double ones, as some examples do."""
    held = mapped(path)
    if held.find(b'"') >= 0 or held.find(b"'") < 0:
        return None
    text = bytes(held)
    records = [*records_in(text, ",")]
    if len(records) < 2 or not all(_SINGLE_QUOTED.search(text[start:end]) for _, start, end in records[1:]):
        return None
    check_quotes(text.translate(bytes.maketrans(b"'", b'"')), path, ",")
    header = header_of(
        text[records[0][1] : records[0][2]].decode(), f"{path}:{records[0][0]}", ",", sure=False, fixed=True
    )
    broken: list[Fault] = []

    def ragged(row: Any) -> str:
        found = f"{row.actual_columns} values where the header names {row.expected_columns}"
        broken.append(Fault(f"{path}:{records[row.number - 1][0]}", found, code="ragged_row"))
        return "skip"

    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(quote_char="'", newlines_in_values=True, invalid_row_handler=ragged),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), null_values=[""]),
    )
    if broken:
        raise DataError(broken)
    told.note("single_quotes", "cells are in single quotes; taken as double ones")
    lines = [line for line, _, _ in records[1:]]
    return DataSource(str(path), table.schema, lambda: iter(table.to_batches()), lambda row: f"{path}:{lines[row]}")


def _note_text(path: Path, told: _Told) -> None:
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if head.startswith(b"\xef\xbb\xbf"):
        told.note("byte_order_mark", "begins with a byte order mark")
    if b"\r\n" in head:
        told.note("line_ends", "lines end in CR LF")


# Rows


def _same_once(keys: pa.Array, wanted: pa.Array) -> bool:
    """Whether both hold the same keys, each once."""
    if len(keys) != len(wanted) or keys.type != wanted.type:
        return False
    if pa.types.is_integer(keys.type):
        mine, theirs = np.asarray(keys), np.asarray(wanted)
        if (mine[1:] > mine[:-1]).all() and (mine == theirs).all():
            return True
        mine, theirs = np.sort(mine), np.sort(theirs)
        return bool((mine == theirs).all() and (mine[1:] != mine[:-1]).all())
    return bool(pc.count_distinct(keys).as_py() == len(keys) and pc.all(pc.is_in(keys, value_set=wanted)).as_py())


def _check_extra(keys: pa.Array, wanted: pa.Array, known: pa.Array | None, form: Form, told: _Told) -> None:
    extra = _rows(pc.and_(pc.is_valid(keys), pc.invert(pc.is_in(keys, value_set=wanted))))
    there = keys.take(pa.array(extra, pa.int64()))
    learnt = set() if known is None else {*_rows(pc.is_in(there, value_set=known.cast(there.type)))}
    for place, row in enumerate(extra):
        if place in learnt:
            told("not_test_row", row, form.key, f"{keys[row]} is learnt from and not tested; leave it out")
        else:
            told("extra_row", row, form.key, f"no row that is tested has the index {keys[row]}; leave it out")


def _check_missing(keys: pa.Array, wanted: pa.Array, form: Form, told: _Told) -> None:
    if keys.null_count:  # whose rows these are is not known
        return
    lacking = pc.filter(wanted, pc.invert(pc.is_in(wanted, value_set=keys))).unique()
    for key in lacking[:SHOWN].to_pylist():
        told.whole("missing_row", f"the tested row {key} has no prediction", column=form.key)
    if len(lacking) > SHOWN:
        told.whole("missing_row", f"{len(lacking) - SHOWN:,} more tested rows have no prediction", column=form.key)


def _check_twice(keys: pa.Array, given: Cells, labels: Sequence[str], key: str, told: _Told) -> None:
    """Rows with the key of an earlier one; where keys may repeat, with the same labels too."""
    parts = [keys, *(_array(given.table.column(name)) for name in labels)]
    known = _rows(pc.is_valid(keys))
    codes = np.zeros(len(known), np.int64)
    for part in parts:
        plain = part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
        coded = plain.take(pa.array(known, pa.int64())).dictionary_encode(null_encoding="encode")
        codes = np.unique(codes * len(coded.dictionary) + np.asarray(coded.indices), return_inverse=True)[1]
    _, first, back = np.unique(codes, return_index=True, return_inverse=True)
    first = np.asarray(known, np.int64)[first]
    for place in np.flatnonzero(first[back] != np.asarray(known)).tolist():
        row = known[place]
        before = given.line(int(first[back[place]]))
        if labels:
            told("duplicate_label", row, key, f"{keys[row]} has the same values in line {before}")
        else:
            told("duplicate_row", row, key, f"{keys[row]} is there twice (first in line {before})")


def _note_unknown(given: Cells, truth: pa.Table, form: Form, told: _Told) -> None:
    """Labels that the truth never has."""
    for name in form.targets:
        mine, theirs = (_names_in(table.column(name)) for table in (given.table, truth))
        if pa.types.is_list(mine.type) or mine.type != theirs.type:
            continue
        unknown = pc.filter(mine, pc.invert(pc.is_in(mine, value_set=theirs)))
        if len(unknown):
            shown = ", ".join(repr(value) for value in unknown[:5].to_pylist()) + (" …" if len(unknown) > 5 else "")
            told.note("unknown_label", f"{name}: predicted, and never in the truth: {shown}")


def _names_in(column: pa.ChunkedArray) -> pa.Array:
    values = _array(column).drop_null()
    return pc.unique(values.dictionary if pa.types.is_dictionary(values.type) else values)


class _Told:
    """Tells faults of a file by line and column, of each code the first `SHOWN`, and how many there are more."""

    def __init__(self, path: Path, line: Callable[[int], int], findings: Findings) -> None:
        self.path, self.line = path, line
        self._findings = findings
        self._counts: dict[tuple[str, str], int] = {}
        self.count = 0

    def __call__(self, code: str, row: int, column: str, message: str) -> None:
        key = (code, column)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] <= SHOWN:
            self.add(code, message, line=self.line(row), column=column)

    def whole(self, code: str, message: str, column: str | None = None) -> None:
        """A fault of the file, or of a whole column."""
        self.add(code, message, column=column)

    def add(self, code: str, message: str, *, line: int | None = None, column: str | None = None) -> None:
        self.count += 1
        self._findings.faults.append(_fault(self.path, code, message, line, column))

    def note(self, code: str, message: str) -> None:
        self._findings.note(str(self.path), code, message)

    def notes(self, other: _Told) -> None:
        """Takes over what another has noted."""
        self._findings.notes += other._findings.notes

    def done(self) -> None:
        for (code, column), count in self._counts.items():
            if count > SHOWN:
                self.whole(code, f"{count - SHOWN:,} more cells of this kind", column=column)
        self._counts.clear()


def _array(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        return values.chunk(0) if values.num_chunks else pa.array([], values.type)
    return values


def _rows(mask: Any) -> list[int]:
    return np.flatnonzero(np.asarray(mask)).tolist()


def _line_of(where: str) -> int | None:
    """The line at the end of a place such as `a.csv:17`."""
    number = where.rpartition(":")[2]
    return int(number) if number.isdecimal() else None
