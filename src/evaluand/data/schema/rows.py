"""Validate rows by columns: the table of valid rows, or the faults of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evaluand.core.errors import SpecError, with_article
from evaluand.data.schema import keys
from evaluand.data.schema.arrow import write_arrow
from evaluand.data.schema.faults import Faults, RowFault, sort_faults
from evaluand.data.schema.kinds import StructType
from evaluand.data.schema.limits import as_booleans
from evaluand.data.schema.objects import convert_objects
from evaluand.data.schema.tables import check_columns, convert_table


def check_rows(
    struct: StructType, data: Any, *, json: bool = False, most: int | None = None
) -> tuple[pa.Table | None, Faults]:
    """The table of the rows, or None where one is invalid, and the faults.

    Args:
        data: an Arrow table or batch, or an iterable of mappings.
        json: whether the rows have the forms of JSON: times, UUIDs and decimals as text, bytes as base64.
        most: how many faults of each path and code to return; all are counted.
    """
    counts: Counter[tuple[str, str]] = Counter()
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        column_faults = check_columns(struct, data.schema, counts)
        if column_faults:
            return None, Faults(column_faults, counts)
        parts = convert_table(struct, data, counts, most)
    elif isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise SpecError(f"give rows as a list of mappings or an Arrow table, not {with_article(type(data).__name__)}")
    else:
        parts = convert_objects(struct, data, counts, json=json, most=most)
    schema, first, indices = write_arrow(struct), 0, _IndexChecker(struct)
    batches: list[pa.RecordBatch] = []
    faults: list[RowFault] = []
    for columns, collector in parts:
        indices.add(columns, first)
        faults += collector.faults
        if not counts:
            batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        first += len(columns[0])
    faults += indices.faults(counts, most)
    return (None if counts else pa.Table.from_batches(batches, schema)), Faults(sort_faults(faults), counts)


class _IndexChecker:
    """Finds the rows of a dataset whose `_index_` occurs in an earlier row."""

    def __init__(self, struct: StructType) -> None:
        self._at = struct.names.index(keys.INDEX) if keys.index_is_unique(struct) else None
        self._rows: list[np.ndarray[Any, Any]] = []
        self._values: list[np.ndarray[Any, Any]] = []

    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        if self._at is not None:
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
