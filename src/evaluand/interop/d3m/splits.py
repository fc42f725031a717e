"""dataSplits.csv: which rows train and which test, in each fold of each repeat.

Its columns are d3mIndex, any further columns of the index, type (TRAIN or TEST), repeat and fold.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import SpecError, nearest
from evaluand.core.files.cells import typed
from evaluand.core.files.csv import write_table
from evaluand.core.files.json import Findings
from evaluand.data.split import NOT_TESTED, Folds
from evaluand.interop.d3m.dataset import open_csv
from evaluand.interop.d3m.documents import LEARNT, SCORED, TESTED
from evaluand.predictions.problem.sides import TRUTH, Side, repeated
from evaluand.predictions.problem.truth import RowKeys

_NUMBERED: Final = ("repeat", "fold")
_MANY: Final = 1 << 16  # numbers below this cost little, and a gap before them is reported instead


def read_splits(path: str | os.PathLike[str], keys: RowKeys) -> Folds:
    """The folds of the examples by a dataSplits.csv; a DataError has every fault, with its row and code."""
    findings = Findings()
    folds = examine_splits(Path(path), keys, findings)
    findings.check()
    assert folds is not None
    return folds


def examine_splits(path: Path, keys: RowKeys, findings: Findings, part: str | None = None) -> Folds | None:
    """The folds, as far as the file can be read; its faults are collected.

    Args:
        part: of the data that the rows are; of TEST or SCORE the table, and not the file, says which rows there are.
    """
    source = open_csv(path, findings)
    if source is None:
        return None
    needed = [*[*keys.columns][:1], "type", *_NUMBERED]
    missing = [name for name in needed if name not in source.schema.names]
    if missing:
        listed = ", ".join(repr(name) + nearest(name, source.schema.names) for name in missing)
        noun = "column" if len(missing) == 1 else "columns"
        code = "no_split" if {"type", *_NUMBERED} <= {*missing} else "missing_column"
        findings.fault(str(path), code, f"is no split of rows; it lacks the {noun} {listed}")
        return None
    known = {*needed, *keys.columns}
    for name in source.schema.names:
        if name not in known:
            findings.note(str(path), "undescribed_column", f"the column {name!r} is ignored")
    side = Side.of(TRUTH, source)
    log = _FaultLog(side, findings)
    columns = {name: side.column(name) for name in source.schema.names if name in known}
    if not side.table.num_rows:
        findings.fault(str(path), "no_rows", "has no rows; list each example as TRAIN or TEST")
        return None
    kinds = pc.utf8_upper(pc.utf8_trim_whitespace(pc.fill_null(columns["type"], "")))
    tested = pc.equal(kinds, TESTED).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~(tested | pc.equal(kinds, LEARNT).to_numpy(zero_copy_only=False))).tolist():
        log.add_cell("bad_type", row, None, f"type is {columns['type'][row].as_py()!r}; give TRAIN or TEST")
    numbers = [_numbers(columns[name], name, log) for name in _NUMBERED]
    row_of = _rows_of(columns, keys, log)
    if log.summarise():
        return None
    _check_known(row_of, tested, next(iter(keys.columns)), columns, part, log)
    rows = np.flatnonzero(row_of >= 0)
    _check_images(columns, keys, row_of, log)
    repeats, folds = (values[rows] for values in numbers)
    if not keys.repeated:
        _check_twice(row_of[rows], repeats, folds, rows, log)
    folds_of_rows = Folds.from_rows(
        keys.count,
        keys.positions[row_of[rows]],
        tested[rows],
        repeats,
        folds,
        lambda row, code, message: log.add_cell(code, int(rows[row]), None, message),
    )
    _check_listed(keys, row_of[rows], log)
    return None if log.summarise() else folds_of_rows


def tested_by_truth(path: Path, keys: RowKeys, findings: Findings) -> Folds | None:
    """One fold that tests the examples with a row in a file of target values; None, with faults, if it is none."""
    source = open_csv(path, findings)
    if source is None:
        return None
    name = next(iter(keys.columns))
    if name not in source.schema.names:
        near = nearest(name, source.schema.names)
        findings.fault(str(path), "missing_column", f"the index {name!r} has no column{near}")
        return None
    side = Side.of(TRUTH, source)
    log = _FaultLog(side, findings)
    row_of = _rows_of({name: side.column(name)}, keys, log)
    if log.summarise():
        return None
    numbers = np.full((1, keys.count), NOT_TESTED, np.int32)
    numbers[0, keys.positions[row_of[row_of >= 0]]] = 0
    return Folds(numbers, 1)


class _FaultLog:
    """The faults of the rows of a file, by code and column."""

    def __init__(self, side: Side, findings: Findings) -> None:
        self.side, self.findings, self._before = side, findings, len(findings.faults)
        self._rows: dict[tuple[str, str | None], dict[int, str]] = {}

    def add_cell(self, code: str, row: int, column: str | None, message: str) -> None:
        self._rows.setdefault((code, column), {}).setdefault(row, message)

    def summarise(self) -> bool:
        """Reports the faults; whether there are any."""
        for (code, column), rows in self._rows.items():
            numbers = np.array([*rows], np.int64)
            self.findings.faults += self.side.faults(numbers, column, code, rows.__getitem__)
        return len(self.findings.faults) > self._before


def write_splits(path: str | os.PathLike[str], folds: Folds, keys: RowKeys) -> None:
    """Writes a dataSplits.csv: each row of the learning table in each fold of each repeat.

    A SpecError if the folds have another number of examples.
    """
    if folds.numbers.shape[1] != keys.count:
        raise SpecError(f"the split has {folds.numbers.shape[1]:,} examples, but the table has {keys.count:,}")
    by_row = Folds(folds.numbers[:, keys.positions], folds.count)
    positions, tested, repeats, numbers = by_row.to_rows()
    rows = pa.array(positions)
    columns: dict[str, Any] = {name: values.take(rows) for name, values in keys.columns.items()}
    columns["type"] = pa.array(np.where(tested, TESTED, LEARNT))
    columns |= {"repeat": pa.array(repeats), "fold": pa.array(numbers)}
    write_table(pa.table(columns), path)


def _numbers(texts: pa.Array, name: str, log: _FaultLog) -> np.ndarray[Any, np.dtype[np.int64]]:
    code = f"bad_{name}"
    values = typed(texts, "integer", lambda row, message: log.add_cell(code, row, name, message))
    known = np.asarray(values.fill_null(0), np.int64)
    for row in np.flatnonzero((known < 0) | (known >= max(len(texts), _MANY))).tolist():
        log.add_cell(code, row, name, f"is {known[row]}; count from 0 without gaps")
    empty = pc.equal(pc.utf8_trim_whitespace(texts.fill_null("")), "")
    for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
        log.add_cell(code, row, name, "is empty")
    return known


def _rows_of(columns: Mapping[str, pa.Array], keys: RowKeys, log: _FaultLog) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The first row of the learning table with the index of each row of the file; -1 where there is none."""
    name, values = next(iter(keys.columns.items()))
    kind = "integer" if pa.types.is_integer(values.type) else "text"
    index = typed(columns[name], kind, lambda row, message: log.add_cell("bad_index", row, name, message))
    empty = pc.is_null(columns[name])
    for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
        log.add_cell("bad_index", row, name, "is empty")
    found = pc.index_in(index.cast(values.type), value_set=values, skip_nulls=True)
    return np.asarray(found.fill_null(-1), np.int64)


def _check_known(
    row_of: Any, tested: Any, name: str, columns: Mapping[str, pa.Array], part: str | None, log: _FaultLog
) -> None:
    """Reports rows about unknown examples, unless the dataset is only the training or only the test part."""
    for kind, which in ((LEARNT, ~tested), (TESTED, tested)):
        lost = (row_of < 0) & which
        if not lost.any():
            continue
        is_other = lost[which].all() and (row_of[~which] >= 0).any()
        if is_other:
            message = f"{lost.sum():,} {kind} rows are of examples that this part of the data does not have"
            log.findings.note(str(log.side.path), "other_part", message)
            continue
        if kind == TESTED and part in (TESTED, SCORED) and not lost[which].all():
            message = (
                f"{lost.sum():,} of {which.sum():,} {kind} rows are not in the table of {part}, so they are not scored"
            )
            log.findings.note(str(log.side.path), "not_in_part", message)
            continue
        row = int(np.flatnonzero(lost)[0])
        message = f"{lost.sum():,} of {which.sum():,} {kind} rows are not in the learning table, first {name} "
        log.add_cell("unknown_index", row, None, f"{message}{columns[name][row].as_py()!r}")


def _check_images(columns: Mapping[str, pa.Array], keys: RowKeys, row_of: Any, log: _FaultLog) -> None:
    """Checks that further columns of the index agree with the learning table."""
    if keys.repeated:
        return
    known = np.flatnonzero(row_of >= 0)
    for name in [*keys.columns][1:]:
        if name not in columns:
            log.findings.note(str(log.side.path), "missing_column", f"there is no column {name!r} of the index")
            continue
        expected = keys.columns[name].take(pa.array(row_of[known])).cast(pa.string())
        own = columns[name].take(pa.array(known))
        differs = pc.not_equal(own, expected).fill_null(True).to_numpy(zero_copy_only=False)
        for place in np.flatnonzero(differs).tolist():
            message = f"{name} is {own[place].as_py()!r}, but {expected[place]} in the learning table"
            log.add_cell("other_index", int(known[place]), None, message)


def _check_twice(row_of: Any, repeats: Any, folds: Any, rows: Any, log: _FaultLog) -> None:
    cells = (repeats * (folds.max(initial=0) + 1) + folds) * (row_of.max(initial=0) + 1) + row_of
    for place in repeated(cells).tolist():
        message = f"the row occurs twice in repeat {repeats[place]}, fold {folds[place]}"
        log.add_cell("twice", int(rows[place]), None, message)


def _check_listed(keys: RowKeys, row_of: Any, log: _FaultLog) -> None:
    """Reports examples that the file does not list."""
    seen = np.zeros(keys.count, bool)
    seen[keys.positions[row_of]] = True
    missing = np.flatnonzero(~seen)
    if len(missing):
        name, values = next(iter(keys.columns.items()))
        rows: Sequence[int] = np.flatnonzero(np.isin(keys.positions, missing))[:5].tolist()
        some = ", ".join(str(values[row]) for row in rows) + (" …" if len(missing) > len(rows) else "")
        which = "1 example is missing:" if len(missing) == 1 else f"{len(missing):,} examples are missing, such as"
        log.findings.fault(str(log.side.path), "unassigned", f"{which} {name} {some}")
