"""dataSplits.csv: which rows are tested and which are learnt from, in each fold of each repeat.

Its columns are d3mIndex, any further columns of the index, type (TRAIN or TEST), repeat and fold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, SpecError
from evaluand.core.files.cells import typed
from evaluand.core.files.csv import write_table
from evaluand.core.files.json import Findings
from evaluand.core.registry import nearest
from evaluand.data.sources import open_texts
from evaluand.data.split import Folds
from evaluand.problem.files import MOST_SHOWN
from evaluand.problem.truth import RowKeys

TESTED: Final = "TEST"
LEARNT: Final = "TRAIN"
_NUMBERED: Final = ("repeat", "fold")
_MANY: Final = 1 << 16  # numbers below this cost little, and are told by what lacks before them


def read_splits(path: str | os.PathLike[str], keys: RowKeys) -> Folds:
    """The folds of the examples by a dataSplits.csv.

    Raises:
        DataError: the file breaks its form, or does not fit the index: every fault with its row and code.
    """
    findings = Findings()
    folds = examine_splits(Path(path), keys, findings)
    findings.check()
    assert folds is not None
    return folds


def examine_splits(path: Path, keys: RowKeys, findings: Findings) -> Folds | None:
    """The folds, as far as the file can be read; what is wrong with it is told."""
    try:
        source = open_texts(path)
    except DataError as error:
        for fault in error.faults:
            findings.fault(fault.where, "no_such_file" if not path.is_file() else "bad_csv", fault.message)
        return None
    if not source.schema.names:
        findings.fault(str(path), "empty_file", "the file is empty; it needs a header and rows")
        return None
    needed = [*[*keys.columns][:1], "type", *_NUMBERED]
    missing = [name for name in needed if name not in source.schema.names]
    for name in missing:
        near = nearest(name, source.schema.names)
        findings.fault(str(path), "missing_column", f"no column is called {name!r}{near}")
    known = {*needed, *keys.columns}
    for name in source.schema.names:
        if name not in known:
            findings.note(str(path), "undescribed_column", f"the column {name!r} means nothing here")
    if missing:
        return None
    table = pa.Table.from_batches(source.batches(), source.schema)
    told = _Told(findings, source.where, str(path))
    columns = {name: _texts(table, name) for name in table.column_names if name in known}
    if not table.num_rows:
        findings.fault(str(path), "no_rows", "has no rows; it says of no example whether it is tested")
        return None
    before = len(findings.faults)
    kinds = pc.utf8_upper(pc.utf8_trim_whitespace(pc.fill_null(columns["type"], "")))
    tested = pc.equal(kinds, TESTED).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~(tested | pc.equal(kinds, LEARNT).to_numpy(zero_copy_only=False))).tolist():
        told(row, "bad_type", f"type is {columns['type'][row].as_py()!r}; give TRAIN or TEST")
    numbers = [_numbers(columns[name], name, told) for name in _NUMBERED]
    row_of = _rows_of(columns, keys, told)
    if len(findings.faults) > before:
        told.done()
        return None
    row_of = _known(row_of, tested, next(iter(keys.columns)), columns, told)
    rows = np.flatnonzero(row_of >= 0)
    _check_images(columns, keys, row_of, told)
    repeats, folds = (values[rows] for values in numbers)
    if not keys.repeated:
        _check_twice(row_of[rows], repeats, folds, rows, told)
    made = Folds.listed(
        keys.count,
        keys.positions[row_of[rows]],
        tested[rows],
        repeats,
        folds,
        lambda row, *what: told(rows[row], *what),
    )
    _check_listed(keys, row_of[rows], told)
    told.done()
    return None if len(findings.faults) > before else made


def write_splits(path: str | os.PathLike[str], folds: Folds, keys: RowKeys) -> None:
    """Writes a dataSplits.csv: each row of the learning table in each fold of each repeat.

    Raises:
        SpecError: the folds are of another number of examples.
    """
    if folds.numbers.shape[1] != keys.count:
        raise SpecError(f"the split is of {folds.numbers.shape[1]:,} examples, the table of {keys.count:,}")
    of_rows = Folds(folds.numbers[:, keys.positions], folds.count)
    positions, tested, repeats, numbers = of_rows.rows()
    taken = pa.array(positions)
    columns: dict[str, Any] = {name: values.take(taken) for name, values in keys.columns.items()}
    columns["type"] = pa.array(np.where(tested, TESTED, LEARNT))
    columns |= {"repeat": pa.array(repeats), "fold": pa.array(numbers)}
    write_table(pa.table(columns), path)


class _Told:
    """Tells faults by their row, of each code the first `MOST_SHOWN`, and how many there are more."""

    def __init__(self, findings: Findings, where: Any, name: str) -> None:
        self._findings, self._where, self._name = findings, where, name
        self._counts: dict[str, int] = {}

    def __call__(self, row: int, code: str, message: str) -> None:
        self._counts[code] = self._counts.get(code, 0) + 1
        if self._counts[code] <= MOST_SHOWN:
            self._findings.fault(self._where(int(row)), code, message)

    def whole(self, code: str, message: str) -> None:
        """A fault of the file and no row."""
        self._findings.fault(self._name, code, message)

    def note(self, code: str, message: str) -> None:
        self._findings.note(self._name, code, message)

    def done(self) -> None:
        for code, count in self._counts.items():
            if count > MOST_SHOWN:
                self.whole(code, f"{count - MOST_SHOWN:,} more rows of this kind")


def _texts(table: pa.Table, name: str) -> pa.Array:
    values = table.column(name).combine_chunks()
    return values.chunk(0) if isinstance(values, pa.ChunkedArray) else values


def _numbers(texts: pa.Array, name: str, told: _Told) -> np.ndarray[Any, np.dtype[np.int64]]:
    values = typed(texts, "integer", lambda row, message: told(row, f"bad_{name}", f"{name}: {message}"))
    for row in np.flatnonzero(pc.less(values, 0).fill_null(False).to_numpy(zero_copy_only=False)).tolist():
        told(row, f"bad_{name}", f"{name} is {values[row].as_py()}; numbers begin at 0")
    for row in np.flatnonzero(pc.greater_equal(values, max(len(texts), _MANY)).fill_null(False)).tolist():
        told(row, f"bad_{name}", f"{name} is {values[row].as_py()}; numbers begin at 0 and leave none out")
    empty = pc.equal(pc.utf8_trim_whitespace(texts.fill_null("")), "")
    for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
        told(row, f"bad_{name}", f"{name} is empty")
    return np.asarray(values.fill_null(0), np.int64)


def _rows_of(columns: Mapping[str, pa.Array], keys: RowKeys, told: _Told) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The first row of the learning table with the index of each row of the file; -1 where there is none."""
    name, values = next(iter(keys.columns.items()))
    kind = "integer" if pa.types.is_integer(values.type) else "text"
    wanted = typed(columns[name], kind, lambda row, message: told(row, "bad_index", f"{name}: {message}"))
    empty = pc.is_null(columns[name])
    for row in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
        told(row, "bad_index", f"{name} is empty")
    found = pc.index_in(wanted.cast(values.type), value_set=values, skip_nulls=True)
    return np.asarray(found.fill_null(-1), np.int64)


def _known(
    row_of: np.ndarray[Any, np.dtype[np.int64]], tested: Any, name: str, columns: Mapping[str, pa.Array], told: _Told
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Tells of rows about examples that are not there, unless the dataset is the part that is tested or learnt from."""
    unknown = row_of < 0
    if not unknown.any():
        return row_of
    for part, which in ((LEARNT, ~tested), (TESTED, tested)):
        lost = unknown & which
        if not lost.any():
            continue
        if not (row_of[which] >= 0).any() and (row_of[~which] >= 0).any():
            told.note("other_part", f"{lost.sum():,} {part} rows are of examples that this part of the data leaves out")
            continue
        for row in np.flatnonzero(lost).tolist():
            told(row, "unknown_index", f"{name} {columns[name][row].as_py()!r} is no row of the learning table")
    return row_of


def _check_images(columns: Mapping[str, pa.Array], keys: RowKeys, row_of: Any, told: _Told) -> None:
    """Further columns of the index say the same as the learning table."""
    if keys.repeated:
        return
    known = np.flatnonzero(row_of >= 0)
    for name in [*keys.columns][1:]:
        if name not in columns:
            told.whole("missing_column", f"no column is called {name!r}, which is of the index")
            continue
        there = keys.columns[name].take(pa.array(row_of[known])).cast(pa.string())
        given = columns[name].take(pa.array(known))
        for place in np.flatnonzero(pc.not_equal(given, there).fill_null(True).to_numpy(zero_copy_only=False)).tolist():
            told(
                known[place], "other_index", f"{name} is {given[place].as_py()!r}, in the learning table {there[place]}"
            )


def _check_twice(row_of: Any, repeats: Any, folds: Any, rows: Any, told: _Told) -> None:
    cells = np.stack([repeats, folds, row_of])
    _, first, back = np.unique(cells, axis=1, return_index=True, return_inverse=True)
    for place in np.flatnonzero(first[back.ravel()] != np.arange(len(rows))).tolist():
        told(rows[place], "twice", f"the same row stands twice in repeat {repeats[place]}, fold {folds[place]}")


def _check_listed(keys: RowKeys, row_of: Any, told: _Told) -> None:
    """Tells of examples that the file does not mention."""
    seen = np.zeros(keys.count, bool)
    seen[keys.positions[row_of]] = True
    lacking = np.flatnonzero(~seen)
    if len(lacking):
        name, values = next(iter(keys.columns.items()))
        rows: Sequence[int] = np.flatnonzero(np.isin(keys.positions, lacking))[:5].tolist()
        shown = ", ".join(str(values[row]) for row in rows)
        more = " …" if len(lacking) > len(rows) else ""
        which = "1 example is not in it:" if len(lacking) == 1 else f"{len(lacking):,} examples are not in it, such as"
        told.whole("unassigned", f"{which} {name} {shown}{more}")
