"""Reads the index and the cells of truth and predictions, and finds everything that is wrong with them.

Whole columns are read at once; only faults are looked at row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import Fault
from evaluand.core.files import cells
from evaluand.data.columns import join_chunks
from evaluand.data.typed_columns import as_integers
from evaluand.metrics.base.labels import contents

CONFIDENCE, RANK = "confidence", "rank"
TRUTH, PREDICTIONS = "truth", "predictions"


def cell_place(side: str, row: int, column: str) -> str:
    """The place of a cell in messages, with rows counted from 1 without the header."""
    return f"{side} row {row + 1}, column {column}"


class Side(NamedTuple):
    """One of the two tables."""

    name: str
    table: pa.Table

    def column(self, name: str) -> pa.Array:
        """A column in one piece; a dictionary is decoded."""
        column = join_chunks(self.table.column(name))
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def find_column(self, lower_name: str) -> str | None:
        """The name of a column in any case; None if there is none."""
        return next((name for name in self.table.column_names if name.lower() == lower_name), None)

    def faults(self, rows: np.ndarray, column: str, code: str, message: Callable[[int], str]) -> list[Fault]:
        """One fault for each row of a mask, or of a list of rows."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return [Fault(cell_place(self.name, row, column), message(row), code=code) for row in numbers.tolist()]


def column_faults(truth: Side, predictions: Side, index: Sequence[str], targets: Sequence[str]) -> Iterable[Fault]:
    """Columns that are missing, repeated or unexpected."""
    needed = [*index, *targets]
    for side in (truth, predictions):
        names = side.table.column_names
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield Fault(f"{side.name}, column {name}", "two columns have this name", code="twice_column")
        for name in needed:
            if name not in names:
                existing = ", ".join(map(repr, names)) or "none"
                yield Fault(side.name, f"there is no column {name!r}; its columns: {existing}", code="missing_column")
    allowed = {*needed, *truth.table.column_names}
    others = [name for name in predictions.table.column_names if name not in allowed]
    for name in others:
        if name.lower() not in (CONFIDENCE, RANK):
            known = ", ".join(map(repr, needed))
            message = f"unexpected column; give {known}, and optionally confidence"
            yield Fault(f"{predictions.name}, column {name or repr(name)}", message, code="unexpected_column")
    for wanted in (CONFIDENCE, RANK):
        same = dict.fromkeys(name for name in others if name.lower() == wanted)
        if len(same) > 1:
            message = f"{' and '.join(map(repr, same))} are both the {wanted}"
            yield Fault(f"{predictions.name}, column {wanted}", message, code="twice_column")


@dataclass(frozen=True)
class Keys:
    """The example of each row, as its position in the order of the index; -1 for one that the truth does not have.

    Attributes:
        truth: of each row of the truth.
        predictions: of each row of the predictions.
        n: the number of examples in the truth.
        name: how messages name the example at a position.
        aligned: whether both tables have one row for each example, in the order of the index.
    """

    truth: np.ndarray
    predictions: np.ndarray
    n: int
    name: Callable[[int], str]
    aligned: bool = False

    @cached_property
    def truth_rows(self) -> np.ndarray | None:
        """The row of each example, where each has one; None where the rows are in that order."""
        return None if self.aligned else _rows(self.truth, self.n)

    @cached_property
    def prediction_rows(self) -> np.ndarray | None:
        """The same for the predictions."""
        return None if self.aligned else _rows(self.predictions, self.n)


def _rows(codes: np.ndarray, n: int) -> np.ndarray | None:
    if is_rising(codes):
        return None
    rows = np.empty(n, np.int64)
    rows[codes] = np.arange(len(codes))
    return rows


def is_rising(codes: np.ndarray) -> bool:
    """Whether each is larger than the one before."""
    return bool((codes[1:] > codes[:-1]).all())


def match_keys(truth: Side, predictions: Side, index: Sequence[str]) -> tuple[Keys | None, list[Fault]]:
    """Matches the rows of both tables by the columns of the index; no keys where these cannot be compared."""
    faults: list[Fault] = []
    codes: list[_Codes] = []
    for name in index:
        columns = []
        for side in (truth, predictions):
            column, wrong = _index(side, name)
            faults += wrong
            columns.append(column)
        kinds = [contents(column.type) for column in columns]
        if set(kinds) == set(_INDEX):
            message = f"holds {_PLURAL[kinds[1]]}, but the truth {_PLURAL[kinds[0]]}; these are never equal"
            faults.append(Fault(f"{predictions.name}, column {name}", message, code="index_type"))
        elif all(kind in _INDEX for kind in kinds):
            codes.append(_encode(*(_cast(column, kinds) for column in columns)))
    if len(codes) < len(index):
        return None, faults
    combined = codes[0]
    for other in codes[1:]:
        combined = _cross(combined, other)
    aligned = combined.predictions is combined.truth  # `_encode` shares them only if both are in order
    example_name = partial(_example_name, ", ".join(index), combined.names)
    return Keys(combined.truth, combined.predictions, len(combined.names), example_name, aligned), faults


def _example_name(index: str, names: pa.Array | _Pairs, at: int) -> str:
    return f"{index} {_key_text(names, at)}"


class _Codes(NamedTuple):
    truth: np.ndarray
    predictions: np.ndarray
    names: pa.Array | _Pairs


@dataclass(frozen=True)
class _Pairs:
    """Values of several columns."""

    first: pa.Array | _Pairs
    second: pa.Array
    code: np.ndarray

    def __len__(self) -> int:
        return len(self.code)


def _key_text(names: pa.Array | _Pairs, at: int) -> str:
    if isinstance(names, _Pairs):
        one, other = divmod(int(names.code[at]), len(names.second))
        return f"{_key_text(names.first, one)}, {_key_text(names.second, other)}"
    value = names[at].as_py()
    return repr(value) if isinstance(value, str) else str(value)


def _index(side: Side, name: str) -> tuple[pa.Array, list[Fault]]:
    column = as_integers(side.column(name))
    kind = contents(column.type)
    if kind not in (*_INDEX, ""):
        message = f"holds {_PLURAL[kind]}; an index has integers or text"
        return column, [Fault(f"{side.name}, column {name}", message, code="index_type")]
    if kind == "integers" and not column.null_count:
        return column, []
    empty = np.asarray(column.is_null())
    if kind == "text":
        empty = empty | np.asarray(pc.equal(column, "").fill_null(False))
    return column, side.faults(empty, name, "empty_index", lambda row: "is empty; name the example")


def _cast(column: pa.Array, kinds: Sequence[str]) -> pa.Array:
    return column.cast(pa.int64() if "integers" in kinds else pa.large_string() if "text" in kinds else pa.string())


def _encode(truth: pa.Array, predictions: pa.Array) -> _Codes:
    """Both as positions among the sorted values of the truth."""
    if pa.types.is_integer(truth.type) and not truth.null_count:
        numbers = np.asarray(truth)
        if is_rising(numbers):
            codes = np.arange(len(numbers))
            return _Codes(codes, codes if predictions.equals(truth) else _positions(predictions, truth), truth)
    names = pc.unique(truth).drop_null()
    names = names.take(pc.sort_indices(names))
    return _Codes(_positions(truth, names), _positions(predictions, names), names)


def _positions(column: pa.Array, names: pa.Array) -> np.ndarray:
    """The position of each value among the names, -1 for those that are not there."""
    return np.asarray(pc.index_in(column, value_set=names).fill_null(-1)).astype(np.int64)


def _cross(one: _Codes, other: _Codes) -> _Codes:
    n = len(other.names)
    truth, predictions = (
        np.where((a < 0) | (b < 0), -1, a * n + b)
        for a, b in ((one.truth, other.truth), (one.predictions, other.predictions))
    )
    pairs = np.unique(truth[truth >= 0])
    values = pa.array(pairs)
    truth, predictions = (_positions(pa.array(codes), values) for codes in (truth, predictions))
    return _Codes(truth, predictions, _Pairs(one.names, other.names, pairs))


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
        return column, [Fault(f"{side.name}, column {name}", message, code="wrong_type")]
    encoded = (column.cast(pa.int64()) if kind == "integers" else column).dictionary_encode()
    if kind == "text":
        blank = pc.index(encoded.dictionary, pa.scalar("", encoded.dictionary.type)).as_py()
        if blank >= 0:
            indices = pc.if_else(pc.equal(encoded.indices, blank), None, encoded.indices)
            encoded = pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
    if sets or not encoded.indices.null_count:
        return encoded, []
    empty = np.asarray(encoded.indices.is_null())
    return encoded, side.faults(empty, name, "empty_value", lambda row: "is empty; give a label")


def read_numbers(side: Side, name: str) -> tuple[pa.Array, list[Fault]]:
    """A column of finite numbers, also of numbers written as text."""
    column = side.column(name)
    kind = contents(column.type)
    wrong: dict[int, str] = {}
    if kind == "text":
        column = cells.typed(column.cast(pa.string()), "real", wrong.__setitem__)
    elif kind not in ("integers", "numbers", ""):
        message = f"holds {_PLURAL[kind]}; give numbers"
        return column, [Fault(f"{side.name}, column {name}", message, code="wrong_type")]
    column = column.cast(pa.float64())
    faults = [Fault(cell_place(side.name, row, name), message, code="wrong_type") for row, message in wrong.items()]
    if column.null_count:
        empty = np.asarray(column.is_null()).copy()
        empty[list(wrong)] = False
        faults += side.faults(empty, name, "empty_value", lambda row: "is empty; give a number")
    odd = np.asarray(pc.invert(pc.is_finite(column)).fill_null(False))
    faults += side.faults(odd, name, "not_finite", lambda row: f"is {column[row].as_py()}; give a finite number")
    return column, faults


def read_pair(
    truth: Side, predictions: Side, name: str, reads: Literal["labels", "sets", "numbers", "rows", "confidence"]
) -> tuple[pa.Array, pa.Array, list[Fault]]:
    """A target's column of both tables in one type."""
    if reads == "rows":
        numeric = {contents(side.column(name).type) for side in (truth, predictions)} <= {"integers", "numbers", ""}
        reads = "numbers" if numeric else "labels"
    read = read_numbers if reads == "numbers" else read_labels
    more = {"sets": True} if reads == "sets" else {}
    (one, wrong), (other, also) = (read(side, name, **more) for side in (truth, predictions))
    faults = [*wrong, *also]
    if reads != "numbers" and not any(fault.code == "wrong_type" for fault in faults):
        one, other, odd = same_labels(one, other, f"{predictions.name}, column {name}")
        faults += odd
    return one, other, faults


def same_labels(one: pa.Array, other: pa.Array, where: str) -> tuple[pa.Array, pa.Array, list[Fault]]:
    """Labels of truth and predictions with one dictionary: all labels that occur, sorted."""
    kinds = [contents(column.type.value_type) for column in (one, other)]
    if "" not in kinds and kinds[0] != kinds[1]:
        message = f"holds {_PLURAL[kinds[1]]}, but the truth {_PLURAL[kinds[0]]}; these are never equal"
        return one, other, [Fault(where, message, code="wrong_type")]
    types = dict.fromkeys(column.type.value_type for column, kind in zip((one, other), kinds, strict=True) if kind)
    width = pa.large_string() if len(types) > 1 else next(iter(types), pa.string())
    own_labels = [column.dictionary.cast(width) for column in (one, other)]
    labels = pc.unique(pa.chunked_array(own_labels))
    if "text" in kinds:
        labels = labels.filter(pc.not_equal(labels, ""))
    labels = labels.take(pc.sort_indices(labels))
    codes = [
        _recode(pc.index_in(own, labels), column.indices) for own, column in zip(own_labels, (one, other), strict=True)
    ]
    return *(pa.DictionaryArray.from_arrays(code, labels) for code in codes), []


def _recode(places: pa.Array, indices: pa.Array) -> pa.Array:
    """The new code of each row's label."""
    table, missing = np.asarray(places.fill_null(-1)), None
    if indices.null_count:
        missing, table = np.asarray(indices.is_null()), np.append(table, -1)
        indices = indices.fill_null(len(table) - 1)
    return pa.array(np.take(table, np.asarray(indices)), mask=missing)


def repeated(codes: np.ndarray) -> np.ndarray:
    """The rows whose code an earlier row has; negative codes are ignored."""
    if len(codes) < 2 or is_rising(codes):
        return np.empty(0, np.int64)
    if codes.max() < 4 * len(codes) and not (np.bincount(codes[codes >= 0], minlength=1) > 1).any():
        return np.empty(0, np.int64)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    return np.sort(order[1:][(ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)])


def row_faults(
    truth: Side, predictions: Side, index: Sequence[str], keys: Keys, *, one_truth: bool, one_prediction: bool
) -> Iterable[Fault]:
    """Rows that match no example, examples without a row, and repeated rows where each example has one."""
    if keys.aligned:
        return
    columns_text = ", ".join(index)
    for side, codes, one_each in ((truth, keys.truth, one_truth), (predictions, keys.predictions, one_prediction)):
        for row in repeated(codes).tolist() if one_each else ():
            message = f"{keys.name(codes[row])} has a row already"
            yield Fault(cell_place(side.name, row, columns_text), message, code="duplicate_row")
    columns = [predictions.column(name) for name in index]
    empty = np.logical_or.reduce([np.asarray(column.is_null()) for column in columns])
    for row in np.flatnonzero((keys.predictions < 0) & ~empty).tolist():
        key = ", ".join(repr(column[row].as_py()) for column in columns)
        yield Fault(cell_place(predictions.name, row, columns_text), f"{key} is not in the truth", code="extra_row")
    present = np.zeros(keys.n, np.bool_)
    present[keys.predictions[keys.predictions >= 0]] = True
    for at in np.flatnonzero(~present).tolist():
        yield Fault(predictions.name, f"there is no row for {keys.name(at)}", code="missing_row")
