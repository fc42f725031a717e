"""Prediction and truth files read and checked before anything is scored.

Every fault is reported at once, with its file, line, column and code.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.cells import typed, written_as_real
from evaluand.core.files.csv import header_of, mapped, records_in
from evaluand.core.files.json import Findings, no_file
from evaluand.data.sources import DataSource, open_texts
from evaluand.predictions.problem.layout import FileLayout
from evaluand.predictions.problem.sides import (
    CONFIDENCE,
    PREDICTIONS,
    RANK,
    TRUTH,
    CriterionFault,
    Side,
    column_faults,
    file_fault,
    line_in,
)

_SINGLE_QUOTED: Final = re.compile(rb"(?:^|,)'[^'\r\n]*'(?=,|\r?$)", re.MULTILINE)


def read_header(path: Path) -> list[str]:
    """The names of a file's columns."""
    line, first = _first_record(path)
    try:
        return header_of(first.decode(), f"{path}:{line}", ",", declared=False, fixed=True)
    except UnicodeDecodeError:
        raise DataError(Fault(f"{path}:{line}", "is not UTF-8; save the file as UTF-8", code="not_utf8")) from None


def _first_record(path: Path) -> tuple[int, bytes]:
    """The first record of a file with its line; a DataError if it has none."""
    if not os.path.isfile(path):  # false also for a name that is too long
        raise DataError(no_file(path))
    text = mapped(path)
    for line, start, end in records_in(text, ","):
        return line, bytes(text[start:end])
    raise DataError(file_fault(path, "empty_file", "the file is empty; it needs a header and rows"))


def read_cells(path: Path, layout: FileLayout, findings: Findings, *, strict: bool = False) -> Side | None:
    """The index and targets of a file; None if its rows cannot be read at all.

    A cell whose value cannot be read is a fault, and null. Columns `confidence` and `rank` have these names, however
    the file spells them.

    Args:
        strict: whether it is a file of predictions, in which other columns are faults; in one of the truth they are
            ignored.
    """
    try:
        _first_record(path)
        texts = Side.of(PREDICTIONS if strict else TRUTH, _open_single_quoted(path, findings) or open_texts(path))
    except DataError as error:
        for fault in error.faults:
            findings.faults.append(file_fault(path, fault.code or "bad_quoting", fault.message, line_in(fault.where)))
        return None
    header, expected = texts.table.column_names, layout.columns
    findings.faults += column_faults(texts, layout.index, [*layout.targets], layout.ignored if strict else None)
    if strict:
        _note_columns(path, header, [*expected], findings)
    if not texts.table.num_rows:
        findings.faults.append(texts.fault("no_rows", "has a header and no rows"))
    kinds = {name: kind for name, kind in expected.items() if name in header}
    kinds |= {name: "real" for name in header if strict and name.lower() in (CONFIDENCE, RANK) and name not in expected}
    columns = {}
    for name, kind in kinds.items():
        called = name if name in expected else name.lower()
        columns[called] = _convert(texts, name, kind, layout, findings)
    _note_encoding(path, findings)
    complete = texts.table.num_rows and expected.keys() <= columns.keys()
    return replace(texts, table=pa.table(columns)) if complete else None


def _note_columns(path: Path, header: list[str], expected: list[str], findings: Findings) -> None:
    if "" in header:
        findings.note(str(path), "unnamed_column", "a column has no name; it is left out")
    if [name for name in header if name in expected] != [name for name in expected if name in header]:
        findings.note(str(path), "other_order", f"the columns are in the order {', '.join(header)}")


def _note_encoding(path: Path, findings: Findings) -> None:
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if head.startswith(b"\xef\xbb\xbf"):
        findings.note(str(path), "byte_order_mark", "begins with a byte order mark")
    if b"\r\n" in head:
        findings.note(str(path), "line_ends", "lines end in CR LF")


def _convert(side: Side, name: str, kind: str, layout: FileLayout, findings: Findings) -> pa.Array:
    """The values of a column; cells that are empty or of another type are reported, a truth without numbers once."""
    texts, is_index = side.column(name), name in layout.index
    empty = np.asarray(pc.fill_null(pc.equal(texts if kind == "text" else pc.utf8_trim_whitespace(texts), ""), True))
    if not (layout.sets and name in layout.targets):
        code = "empty_index" if is_index else "empty_value"
        findings.faults += side.faults(empty, name, code, "is empty")
    wrong = dict[int, str]()
    values = typed(texts, kind, wrong.__setitem__)
    code = "index_type" if is_index else "wrong_type"
    if kind == "real" and wrong and side.name == TRUTH and len(wrong) == (~empty).sum():
        few = "has no numbers, only " + ", ".join(map(repr, sorted({texts[row].as_py() for row in wrong})[:3]))
        fault = side.fault(code, few, column=name)
        if layout.numeric is not None:
            number, metric = layout.numeric
            needs = f"{metric} needs numbers, but the target {name!r} {few}"
            fault = CriterionFault("", needs, code="not_applicable", number=number)
        findings.faults.append(fault)
        return values
    findings.faults += side.faults(np.array([*wrong], np.int64), name, code, wrong.__getitem__)
    if kind == "integer" and (count := written_as_real(texts)):
        code = "index_as_real" if is_index else "real_for_integer"
        findings.note(str(side.path), code, f"{name}: {count:,} integers are written as 1.0; read as 1")
    if kind == "real":
        odd = np.asarray(pc.fill_null(pc.invert(pc.is_finite(values)), False))
        message = lambda row: f"is {texts[row].as_py().strip()[:60]!r}; give a finite number"  # noqa: E731
        findings.faults += side.faults(odd, name, "not_finite", message)
    return values


def _open_single_quoted(path: Path, findings: Findings) -> DataSource | None:
    """A file whose every row has cells in single quotes and none in double ones; None for any other file."""
    content = mapped(path)
    if content.find(b'"') >= 0 or content.find(b"'") < 0:
        return None
    text = bytes(content)
    records = [*records_in(text, ",")]
    if len(records) < 2 or not all(_SINGLE_QUOTED.search(text[start:end]) for _, start, end in records[1:]):
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(text.translate(bytes.maketrans(b"'", b'"')))
        source = open_texts(copy)
        batches = [*source.batches()]
    findings.note(str(path), "single_quotes", "cells are in single quotes; read as if they were double ones")
    return replace(source, name=str(path), batches=lambda: iter(batches))
