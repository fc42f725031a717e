"""The two tables of a judgement, truth and predictions: their cells, and the example that each row is about.

Whole columns are read at once; only faults are looked at row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import Fault, nearest
from evaluand.core.files import cells
from evaluand.data.columns import join_chunks
from evaluand.data.sources import DataSource
from evaluand.data.typed_columns import as_integers
from evaluand.metrics.base.labels import contents

CONFIDENCE, RANK = "confidence", "rank"
TRUTH, PREDICTIONS = "truth", "predictions"

MOST_SHOWN: Final = 100
"""How many faults of one kind are listed."""


@dataclass(frozen=True)
class CellFault(Fault):
    """A fault of a file, with its place as data.

    Attributes:
        line: its line, from 1 for the header; None for a fault of the whole file.
        column: its column; None for a fault of the whole line.
    """

    file: str = field(default="", kw_only=True)
    line: int | None = field(default=None, kw_only=True)
    column: str | None = field(default=None, kw_only=True)


Attribute = Literal["metric", "k", "positive", "jointly"]


@dataclass(frozen=True)
class CriterionFault(Fault):
    """A criterion that cannot judge these examples.

    Attributes:
        number: its position among the criteria.
        key: which of its attributes is wrong; None where it is the predictions that it cannot judge.
    """

    number: int = field(kw_only=True)
    key: Attribute | None = field(default="metric", kw_only=True)


def file_fault(path: Path, code: str, message: str, line: int | None = None, column: str | None = None) -> CellFault:
    """A fault of a file, of one of its lines or of one of its columns."""
    where = str(path) + (f":{line}" if line else "") + (f", {column}" if column else "")
    return CellFault(where, message, code=code, file=str(path), line=line, column=column)


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two tables.

    Attributes:
        path: the file that it was read from; None of a table in memory.
        line: the line of a row in the file, rows counted from 0; in memory the rows counted from 1.
    """

    name: str
    table: pa.Table
    path: Path | None = None
    line: Callable[[int], int] = (1).__add__

    @classmethod
    def of(cls, name: str, source: DataSource) -> Self:
        """The rows of an open file."""
        table = pa.Table.from_batches(source.batches(), source.schema)
        return cls(name, table, Path(source.name), lambda row: line_in(source.where(row)) or 0)

    def column(self, name: str) -> pa.Array:
        """A column in one piece; a dictionary is decoded."""
        column = join_chunks(self.table.column(name))
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def find_column(self, lower_name: str) -> str | None:
        """The name of a column in any case; None if there is none."""
        return next((name for name in self.table.column_names if name.lower() == lower_name), None)

    def filter(self, mask: np.ndarray) -> Side:
        """The rows of a mask."""
        if mask.all():
            return self
        rows = np.flatnonzero(mask)
        return replace(self, table=self.table.filter(pa.array(mask)), line=lambda row: self.line(int(rows[row])))

    def fault(self, code: str, message: str, row: int | None = None, column: str | None = None) -> Fault:
        """A fault of a cell, a row or a column."""
        if self.path is not None:
            return file_fault(self.path, code, message, None if row is None else self.line(row), column)
        place = self.name + ("" if row is None else f" row {self.line(row)}")
        return Fault(place + (f", column {column}" if column is not None else ""), message, code=code)

    def faults(
        self, rows: np.ndarray, column: str | None, code: str, message: str | Callable[[int], str]
    ) -> list[Fault]:
        """One fault for each row of a mask or of a list of rows; beyond `MOST_SHOWN` their number.

        Args:
            message: for each row, or for all.
        """
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        shown = numbers[:MOST_SHOWN].tolist()
        texts = [message if isinstance(message, str) else message(row) for row in shown]
        found = [self.fault(code, text, row, column) for row, text in zip(shown, texts, strict=True)]
        more = len(numbers) - len(found)
        return [*found, *([self.fault(code, f"{more:,} more of this kind", column=column)] if more else [])]


def column_faults(
    side: Side, index: Sequence[str], targets: Sequence[str], allowed: Collection[str] | None
) -> Iterable[Fault]:
    """Columns that are missing, that occur twice, or that are unexpected.

    Args:
        allowed: columns that may be there too, besides `confidence` and `rank`; None for any.
    """
    names, needed = side.table.column_names, [*index, *targets]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield side.fault("twice_column", "two columns have this name", column=name)
    for name in needed:
        if name not in names:
            role = "index" if name in index else "target"
            near = nearest(name, [other for other in names if other not in needed])
            yield side.fault("missing_column", f"the {role} {name!r} has no column{near}", column=name)
    reserved: list[str] = []
    if allowed is None:
        return
    for name in dict.fromkeys(names):
        if name in needed or name in allowed or (name == "" and side.path is not None):
            continue
        if name.lower() not in (CONFIDENCE, RANK):
            known = ", ".join([*needed, CONFIDENCE])
            yield side.fault("unexpected_column", f"unexpected column; there may be {known}", column=name or repr(name))
        elif name.lower() in reserved:
            yield side.fault("twice_column", f"{name.lower()} occurs twice", column=name)
        reserved.append(name.lower())


def line_in(where: str) -> int | None:
    """The line at the end of a place such as `a.csv:17`."""
    number = where.rpartition(":")[2]
    return int(number) if number.isdecimal() else None


# Rows


@dataclass(frozen=True, eq=False)
class Keys:
    """The example of each row, as its position in the order of the index; -1 for a row without one.

    Attributes:
        truth: of each row of the truth.
        predictions: of each row of the predictions; examples that the truth does not have come after the others.
        n: the number of examples in the truth.
        aligned: whether both tables have one row for each example, in the order of the index.
    """

    truth: np.ndarray
    predictions: np.ndarray
    n: int
    aligned: bool = False

    @cached_property
    def truth_rows(self) -> np.ndarray | None:
        """The row of each example, where each has one; None where the rows are in that order."""
        return None if self.aligned else _rows_in_order(self.truth)

    @cached_property
    def prediction_rows(self) -> np.ndarray | None:
        """The same for the predictions."""
        return None if self.aligned else _rows_in_order(self.predictions)


def _rows_in_order(codes: np.ndarray) -> np.ndarray | None:
    if _is_rising(codes):
        return None
    rows = np.empty(len(codes), np.int64)
    rows[codes] = np.arange(len(codes))
    return rows


def _is_rising(codes: np.ndarray) -> bool:
    """Whether each is larger than the one before."""
    return bool((codes[1:] > codes[:-1]).all())


def match_keys(truth: Side, predictions: Side, index: Sequence[str]) -> tuple[Keys | None, list[Fault]]:
    """Matches the rows of both tables by the columns of the index; no keys where these cannot be compared."""
    faults: list[Fault] = []
    matched: Keys | None = None
    incomparable = False
    for name in index:
        columns = []
        for side in (truth, predictions):
            column, wrong = _read_index(side, name)
            faults += wrong
            columns.append(column)
        kinds = {contents(column.type) for column in columns}
        if not kinds <= {*_INDEX} or len(kinds) > 1:
            if kinds == {*_INDEX}:
                held = [_PLURAL[contents(column.type)] for column in columns]
                message = f"holds {held[1]}, but the truth {held[0]}; these are never equal"
                faults.append(predictions.fault("index_type", message, column=name))
            incomparable = True
            continue
        width = pa.int64() if kinds == {"integers"} else pa.large_string()
        own = _number(*(column.cast(width) for column in columns))
        matched = own if matched is None else _cross(matched, own)
    return None if incomparable else matched, faults


def _read_index(side: Side, name: str) -> tuple[pa.Array, list[Fault]]:
    column = as_integers(side.column(name))
    kind = contents(column.type)
    if kind not in (*_INDEX, ""):
        message = f"holds {_PLURAL[kind]}; an index has integers or text"
        return column, [side.fault("index_type", message, column=name)]
    if kind == "text":
        column = pc.if_else(pc.equal(column, ""), None, column)
    if side.path is not None or not column.null_count:  # the empty cells of a file are reported when it is read
        return column, []
    return column, side.faults(
        np.asarray(column.is_null()), name, "empty_index", lambda row: "is empty; name the example"
    )


def _number(truth: pa.Array, predictions: pa.Array) -> Keys:
    """The position of each value among the sorted ones of the truth, and then among the others."""
    if pa.types.is_integer(truth.type) and not truth.null_count:
        numbers = np.asarray(truth)
        if _is_rising(numbers) and predictions.equals(truth):
            every = np.arange(len(numbers))
            return Keys(every, every, len(every), aligned=True)
    names = pc.unique(truth).drop_null()
    names = names.take(pc.sort_indices(names))
    others = predictions.filter(pc.invert(pc.is_in(predictions, value_set=names))).unique().drop_null()
    values = pa.concat_arrays([names, others])
    own, said = (
        np.asarray(pc.index_in(column, value_set=values, skip_nulls=True).fill_null(-1)).astype(np.int64)
        for column in (truth, predictions)
    )
    return Keys(own, said, len(names))


def _cross(one: Keys, other: Keys) -> Keys:
    """Examples by two columns of the index."""
    n = 1 + max(int(codes.max(initial=0)) for codes in (other.truth, other.predictions))
    sides = ((one.truth, other.truth), (one.predictions, other.predictions))
    return _number(*(pa.array(a * n + b, mask=(a < 0) | (b < 0)) for a, b in sides))


def row_faults(
    truth: Side,
    predictions: Side,
    index: Sequence[str],
    keys: Keys,
    *,
    one_prediction: bool,
    gathers: bool = False,
    known: pa.Array | None = None,
) -> Iterable[Fault]:
    """Rows that match no example, examples without a row, and repeated rows where each example has one.

    Args:
        gathers: whether an example may be without a row.
        known: the index of all rows of the data, to tell those that are not tested from unknown ones.
    """
    if keys.aligned:
        return
    column, codes = ", ".join(index), keys.predictions
    extra = np.flatnonzero(codes >= keys.n)
    is_known = np.zeros(len(extra), np.bool_)
    if known is not None:
        own = predictions.column(index[0]).take(pa.array(extra))
        is_known = np.asarray(pc.is_in(own, value_set=known.cast(own.type)))
    for rows, code, message in (
        (extra[is_known], "not_test_row", "{} is a training row; leave it out"),
        (extra[~is_known], "extra_row", "no tested row has the index {}; leave it out"),
    ):
        texts = {row: message.format(_key_text(predictions, index, row)) for row in rows[:MOST_SHOWN].tolist()}
        yield from predictions.faults(rows, column, code, texts.__getitem__)
    if gathers:
        return
    if (codes >= 0).all():  # whose rows the others are is not known
        missing = np.setdiff1d(np.arange(keys.n), codes)
        for code in missing[:MOST_SHOWN].tolist():
            key = _key_text(truth, index, int(np.flatnonzero(keys.truth == code)[0]))
            message = f"the tested row {key} has no prediction"
            yield predictions.fault("missing_row", message, column=column)
        if len(missing) > MOST_SHOWN:
            message = f"{len(missing) - MOST_SHOWN:,} more tested rows have no prediction"
            yield predictions.fault("missing_row", message, column=column)
    if one_prediction:
        yield from repeated_faults(predictions, index, codes)


def repeated_faults(side: Side, index: Sequence[str], codes: np.ndarray) -> list[Fault]:
    """Rows about the example of an earlier row."""

    def message(row: int) -> str:
        first = side.line(int(np.flatnonzero(codes == codes[row])[0]))
        return f"{_key_text(side, index, row)} occurs twice (first in {'row' if side.path is None else 'line'} {first})"

    return side.faults(repeated(codes), ", ".join(index), "duplicate_row", message)


def _key_text(side: Side, index: Sequence[str], row: int) -> str:
    return ", ".join(str(side.table.column(name)[row].as_py()) for name in index)


def repeated(codes: np.ndarray) -> np.ndarray:
    """The rows whose code an earlier row has; negative codes are ignored."""
    if len(codes) < 2 or _is_rising(codes):
        return np.empty(0, np.int64)
    if codes.max() < 4 * len(codes) and not (np.bincount(codes[codes >= 0], minlength=1) > 1).any():
        return np.empty(0, np.int64)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    return np.sort(order[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)])


# Cells

_PLURAL: Final = {
    "": "nothing",
    "bools": "bools",
    "integers": "integers",
    "numbers": "real numbers",
    "text": "text",
    "lists": "lists",
    "other": "values of another type",
}
_INDEX: Final = ("integers", "text")
_LABELS: Final = ("bools", "integers", "text")


def read_labels(side: Side, name: str, *, sets: bool = False) -> tuple[pa.Array, list[Fault]]:
    """A column of labels as a dictionary; with `sets` an empty cell is null and no fault."""
    column = as_integers(side.column(name))
    kind = contents(column.type)
    if kind not in (*_LABELS, ""):
        message = f"holds {_PLURAL[kind]}; labels are text, integers or bools"
        return column, [side.fault("wrong_type", message, column=name)]
    encoded = (column.cast(pa.int64()) if kind == "integers" else column).dictionary_encode()
    if kind == "text":
        blank = pc.index(encoded.dictionary, pa.scalar("", encoded.dictionary.type)).as_py()
        if blank >= 0:
            indices = pc.if_else(pc.equal(encoded.indices, blank), None, encoded.indices)
            encoded = pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
    if sets or not encoded.indices.null_count:
        return encoded, []
    empty = np.asarray(encoded.indices.is_null())
    return encoded, side.faults(empty, name, "empty_value", "is empty; give a label")


def read_numbers(side: Side, name: str) -> tuple[pa.Array, list[Fault]]:
    """A column of finite numbers, also of numbers written as text."""
    column = side.column(name)
    kind = contents(column.type)
    wrong: dict[int, str] = {}
    if kind == "text":
        column = cells.typed(column.cast(pa.string()), "real", wrong.__setitem__)
    elif kind not in ("integers", "numbers", ""):
        return column, [side.fault("wrong_type", f"holds {_PLURAL[kind]}; give numbers", column=name)]
    column = column.cast(pa.float64())
    faults = side.faults(np.array([*wrong], np.int64), name, "wrong_type", wrong.__getitem__)
    empty = np.array(column.is_null())
    empty[[*wrong]] = False
    faults += side.faults(empty, name, "empty_value", "is empty; give a number")
    odd = np.asarray(pc.invert(pc.is_finite(column)).fill_null(False))
    faults += side.faults(odd, name, "not_finite", lambda row: f"is {column[row].as_py()}; give a finite number")
    return column, faults


def read_pair(
    truth: Side, predictions: Side, name: str, reads: Literal["labels", "sets", "numbers", "rows"]
) -> tuple[pa.Array, pa.Array, list[Fault]]:
    """A target's column of both tables in one type; labels with one dictionary of all that occur, sorted."""
    if reads == "rows":
        numeric = {contents(side.column(name).type) for side in (truth, predictions)} <= {"integers", "numbers", ""}
        reads = "numbers" if numeric else "labels"
    if reads == "numbers":
        (one, wrong), (other, also) = (read_numbers(side, name) for side in (truth, predictions))
        return one, other, [*wrong, *also]
    (one, wrong), (other, also) = (read_labels(side, name, sets=reads == "sets") for side in (truth, predictions))
    faults = [*wrong, *also]
    if any(fault.code == "wrong_type" for fault in faults):
        return one, other, faults
    kinds = [contents(column.type.value_type) for column in (one, other)]
    if "" not in kinds and kinds[0] != kinds[1]:
        message = f"holds {_PLURAL[kinds[1]]}, but the truth {_PLURAL[kinds[0]]}; these are never equal"
        return one, other, [*faults, predictions.fault("wrong_type", message, column=name)]
    return *_one_dictionary(one, other), faults


def _one_dictionary(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    types = dict.fromkeys(column.type.value_type for column in (one, other) if contents(column.type.value_type))
    width = pa.large_string() if len(types) > 1 else next(iter(types), pa.string())
    own_labels = [column.dictionary.cast(width) for column in (one, other)]
    labels = pc.unique(pa.chunked_array(own_labels))
    if contents(width) == "text":
        labels = labels.filter(pc.not_equal(labels, ""))
    labels = labels.take(pc.sort_indices(labels))
    codes = [
        pc.index_in(own, labels).take(column.indices) for own, column in zip(own_labels, (one, other), strict=True)
    ]
    return pa.DictionaryArray.from_arrays(codes[0], labels), pa.DictionaryArray.from_arrays(codes[1], labels)
