"""The `_index_` of rows: read, checked and sorted if the source has one, else numbered from 0."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from evaluand.core.key_columns import INDEX
from evaluand.data.sources import DataSource, Faults, from_table, read_column


def add_index(source: DataSource) -> tuple[DataSource, array[int]]:
    """The source with an int64 column `_index_`, sorted by it, and all indices."""
    if INDEX not in source.schema.names:
        return _number_rows(source)
    indices = _read_indices(source)
    source = _with_int64_index(source)
    if np.all(indices[1:] > indices[:-1]):
        return source, array("q", indices.tobytes())
    table = pa.Table.from_batches(source.batches(), source.schema)
    order = np.argsort(indices, kind="stable")
    ordered = from_table(table.take(pa.array(order)), source.name)
    places = order.tolist()
    return replace(ordered, where=lambda row: source.where(places[row])), array("q", indices[order].tobytes())


def _read_indices(source: DataSource) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The index of every row."""
    faults = Faults()
    numbers, rows = array("q"), array("q")
    row = 0
    for batch in source.batches():
        for value in read_column(batch, INDEX):
            number = _as_int64(value)
            if number is not None:
                numbers.append(number)
                rows.append(row)
            elif value is None:
                faults.add(source.where(row), f"{INDEX} is missing; give each example its own")
            else:
                faults.add(source.where(row), f"{INDEX} is {value!r}; give a 64-bit integer")
            row += 1
    indices = np.frombuffer(numbers, np.int64) if numbers else np.empty(0, np.int64)
    _check_unique(indices, rows, source, faults)
    faults.check()
    return indices


def _as_int64(value: Any) -> int | None:
    """A 64-bit integer, a float without a fraction or a text of digits as an integer; None for anything else."""
    digits = isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit()
    if digits or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -(2**63) <= value < 2**63 else None


def _with_int64_index(source: DataSource) -> DataSource:
    place = source.schema.get_field_index(INDEX)
    schema = source.schema.set(place, pa.field(INDEX, pa.int64(), nullable=False))
    if pa.types.is_int64(source.schema.field(INDEX).type):
        return source

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches():
            indices = pa.array([_as_int64(value) for value in read_column(batch, INDEX)], pa.int64())
            columns = [indices if i == place else column for i, column in enumerate(batch.columns)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return replace(source, schema=schema, batches=batches)


def _check_unique(
    indices: np.ndarray[Any, np.dtype[np.int64]], rows: array[int], source: DataSource, faults: Faults
) -> None:
    """Add a fault for each row whose index occurs in an earlier row; `rows` are the rows of the indices."""
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    firsts = np.searchsorted(ordered, ordered[repeated])
    pairs = zip(order[repeated].tolist(), order[firsts].tolist(), ordered[repeated].tolist(), strict=True)
    for second, first, index in sorted(pairs):
        where, at = source.where(rows[second]), source.where(rows[first])
        faults.add(where, f"{INDEX} {index} occurs twice (first at {at}); give each example its own")


def _number_rows(source: DataSource) -> tuple[DataSource, array[int]]:
    total = sum(batch.num_rows for batch in source.batches()) if source.n_rows is None else source.n_rows
    schema = source.schema.insert(0, pa.field(INDEX, pa.int64(), nullable=False))

    def batches() -> Iterator[pa.RecordBatch]:
        row = 0
        for batch in source.batches():
            numbers = pa.array(np.arange(row, row + batch.num_rows))
            yield pa.RecordBatch.from_arrays([numbers, *batch.columns], schema=schema)
            row += batch.num_rows

    numbered = DataSource(source.name, schema, batches, source.where, notes=source.notes)
    return numbered, array("q", range(total))
