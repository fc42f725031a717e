"""Keys of rows that must occur only once: `_index_` in a dataset; with replication and response index in outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.data.schema import keys
from evaluand.data.schema.faults import RowFault
from evaluand.data.schema.kinds import Array, Scalar, StructType
from evaluand.data.schema.limits import as_booleans


class KeyChecker(Protocol):
    """Finds rows whose key occurs in an earlier row."""

    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        """Add the columns of a chunk of rows; `first` is the number of its first row."""

    def faults(self, counts: Counter[tuple[str, str]], most: int | None) -> list[RowFault]:
        """The faults of all rows, which are counted; at most `most` are returned."""


def key_checker(struct: StructType) -> KeyChecker:
    """The checker for rows of a type; rows without a key pass."""
    types = {each.name: each.type for each in struct.fields}
    if keys.index_is_unique(struct):
        return _IndexChecker(struct.names.index(keys.INDEX))
    if not all(isinstance(types.get(name), Scalar) for name in (keys.INDEX, keys.REPLICATION)):
        return _NoKey()
    responses = types.get(keys.RESPONSES)
    item = responses.item if isinstance(responses, Array) else None
    in_list = isinstance(item, StructType) and RESPONSE_INDEX in item.names
    if in_list or RESPONSE_INDEX in types:
        return _OutputChecker(struct, keys.RESPONSES if in_list else RESPONSE_INDEX)
    return _NoKey()


class _NoKey:
    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        pass

    def faults(self, counts: Counter[tuple[str, str]], most: int | None) -> list[RowFault]:
        return []


class _IndexChecker:
    """Finds the rows of a dataset whose `_index_` occurs in an earlier row."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._rows: list[np.ndarray[Any, Any]] = []
        self._values: list[np.ndarray[Any, Any]] = []

    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        self._rows.append(first + np.flatnonzero(as_booleans(columns[self._at].is_valid())))
        self._values.append(columns[self._at].drop_null().to_numpy())

    def faults(self, counts: Counter[tuple[str, str]], most: int | None) -> list[RowFault]:
        if not self._rows:
            return []
        rows, values = np.concatenate(self._rows), np.concatenate(self._values)
        order = np.argsort(values, kind="stable")
        repeated = np.concatenate([[False], np.diff(values[order]) == 0])[: len(order)]
        firsts = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(order))))
        if repeated.any():
            counts[keys.INDEX, "twice"] = int(repeated.sum())
        return [
            self._fault(*(int(each) for each in (rows[order[at]], values[order[at]], rows[order[firsts[at]]])))
            for at in sorted(np.flatnonzero(repeated), key=lambda at: rows[order[at]])[:most]
        ]

    @staticmethod
    def _fault(row: int, index: int, first: int) -> RowFault:
        where = f"row {row} ({keys.INDEX} {index}): {keys.INDEX}"
        message = f"row {first} has the same value; give each row its own"
        return RowFault(where, message, row, index, keys.INDEX, "twice")


class _OutputChecker:
    """Finds outputs whose `_index_`, `_replication_` and `_response_index_` occur together in an earlier row.

    Within one row a `_response_index_` may occur several times: its items are one response.
    """

    def __init__(self, struct: StructType, last: str) -> None:
        self._index, self._replication, self._last = (
            struct.names.index(name) for name in (keys.INDEX, keys.REPLICATION, last)
        )
        self._in_list = last == keys.RESPONSES
        self._columns: list[tuple[pa.Array, pa.Array, pa.Array]] = []

    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        self._columns.append((columns[self._index], columns[self._replication], columns[self._last]))

    def faults(self, counts: Counter[tuple[str, str]], most: int | None) -> list[RowFault]:
        if not self._columns:
            return []
        suspects = self._rows_with_repeated_pair()
        seen: dict[tuple[int, str, int | None], int] = {}
        found: list[RowFault] = []
        for row, index, replication, numbers in self._keys(suspects):
            for number in dict.fromkeys(numbers):
                first = seen.setdefault((index, replication, number), row)
                if first != row:
                    found.append(self._fault(row, index, number, first))
        counts.update((each.path, each.what) for each in found)
        return found[:most]

    def _rows_with_repeated_pair(self) -> np.ndarray[Any, Any]:
        """The numbers of rows whose `_index_` and `_replication_` occur together more than once."""
        index = pa.chunked_array([each[0] for each in self._columns]).combine_chunks()
        replication = pa.chunked_array([each[1] for each in self._columns]).combine_chunks()
        codes = pc.fill_null(replication.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
        numbers = pc.fill_null(index, -1).to_numpy(zero_copy_only=False)
        order = np.lexsort((codes, numbers))
        same = (np.diff(numbers[order]) == 0) & (np.diff(codes[order]) == 0)
        return np.unique(order[np.concatenate([[False], same]) | np.concatenate([same, [False]])])

    def _keys(self, rows: np.ndarray[Any, Any]) -> Iterator[tuple[int, int, str, list[int | None]]]:
        """Row, index, replication and the response indices of rows, in ascending order."""
        first, remaining = 0, rows.tolist()
        for index, replication, last in self._columns:
            chunk = [row for row in remaining if row < first + len(index)]
            remaining = remaining[len(chunk) :]
            for row in chunk:
                at = row - first
                key = (index[at].as_py(), replication[at].as_py())
                if None not in key and last[at].is_valid:
                    value = last[at].as_py()
                    yield row, *key, [each[RESPONSE_INDEX] for each in value] or [None] if self._in_list else [value]
            first += len(index)

    def _fault(self, row: int, index: int, number: int | None, first: int) -> RowFault:
        path = f"{keys.RESPONSES}[].{RESPONSE_INDEX}" if self._in_list else RESPONSE_INDEX
        same = f"{keys.INDEX}, {keys.REPLICATION} and {RESPONSE_INDEX}"
        message = f"row {first} has the same {same} {number}; give each response one row"
        if number is None:
            path, message = keys.REPLICATION, f"row {first} has the same {keys.INDEX} and {keys.REPLICATION}; keep one"
        return RowFault(f"row {row} ({keys.INDEX} {index}): {path}", message, row, index, path, "twice")
