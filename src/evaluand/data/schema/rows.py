"""Rows held to a record, by columns: what is wrong with which row, and the table that the right ones make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evaluand.core.errors import SpecError, with_article
from evaluand.data.schema import keys
from evaluand.data.schema.arrow import write_arrow
from evaluand.data.schema.faults import Faults, RowFault, in_order
from evaluand.data.schema.kinds import StructType
from evaluand.data.schema.limits import flags
from evaluand.data.schema.objects import of_objects
from evaluand.data.schema.tables import of_table, shape_faults


def check_rows(
    record: StructType, data: Any, *, json: bool = False, most: int | None = None
) -> tuple[pa.Table | None, Faults]:
    """The table of the rows, or None where one breaks the record, and all that is wrong.

    Args:
        record: what the rows shall be.
        data: an Arrow table or batch, or any number of mappings.
        json: the rows are as JSON has them: times, UUIDs, decimals as texts, bytes as base64.
        most: how many faults of a path and sort are told; all are counted.
    """
    counts: Counter[tuple[str, str]] = Counter()
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        wrong = shape_faults(record, data.schema, counts)
        if wrong:
            return None, Faults(wrong, counts)
        parts = of_table(record, data, counts, most)
    elif isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise SpecError(f"rows are a list of mappings or an Arrow table, not {with_article(type(data).__name__)}")
    else:
        parts = of_objects(record, data, counts, json=json, most=most)
    schema, made, first, indices = write_arrow(record), list[pa.RecordBatch](), 0, _Indices(record)
    faults: list[RowFault] = []
    for columns, found in parts:
        indices.add(columns, first)
        faults += found.faults
        if not counts:
            made.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        first += len(columns[0])
    faults += indices.faults(counts, most)
    return (None if counts else pa.Table.from_batches(made, schema)), Faults(in_order(faults), counts)


class _Indices:
    """Finds the rows of a dataset whose `_index_` an earlier one has."""

    def __init__(self, record: StructType) -> None:
        self._at = record.names.index(keys.INDEX) if keys.identifies(record) else None
        self._rows: list[np.ndarray[Any, Any]] = []
        self._values: list[np.ndarray[Any, Any]] = []

    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        if self._at is not None:
            self._rows.append(first + np.flatnonzero(flags(columns[self._at].is_valid())))
            self._values.append(columns[self._at].drop_null().to_numpy())

    def faults(self, counts: Counter[tuple[str, str]], most: int | None) -> list[RowFault]:
        if not self._rows:
            return []
        rows, values = np.concatenate(self._rows), np.concatenate(self._values)
        order = np.argsort(values, kind="stable")
        again = np.concatenate([[False], np.diff(values[order]) == 0])[: len(order)]
        firsts = np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))
        if again.any():
            counts[keys.INDEX, "twice"] = int(again.sum())
        return [
            self._fault(*(int(each) for each in (rows[order[at]], values[order[at]], rows[order[firsts[at]]])))
            for at in sorted(np.flatnonzero(again), key=lambda at: rows[order[at]])[:most]
        ]

    @staticmethod
    def _fault(row: int, index: int, first: int) -> RowFault:
        where, told = (
            f"row {row} ({keys.INDEX} {index}): {keys.INDEX}",
            f"row {first} has it already; give each its own",
        )
        return RowFault(where, told, row, index, keys.INDEX, "twice")
