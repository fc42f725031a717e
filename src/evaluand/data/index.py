"""The `_index_` of rows: given by the source, checked and brought into order, or numbered from 0."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from evaluand.core.key_columns import INDEX
from evaluand.data.sources import DataSource, Faults, from_table, values_of


def indexed(source: DataSource) -> tuple[DataSource, array[int]]:
    """The source with an `_index_` column of whole numbers, in its order, and all indices."""
    if INDEX not in source.schema.names:
        return _numbered(source)
    indices = _checked_indices(source)
    source = _with_whole_index(source)
    if np.all(indices[1:] > indices[:-1]):
        return source, array("q", indices.tobytes())
    table = pa.Table.from_batches(source.batches(), source.schema)
    order = np.argsort(indices, kind="stable")
    ordered = from_table(table.take(pa.array(order)), source.name)
    places = order.tolist()
    return replace(ordered, where=lambda row: source.where(places[row])), array("q", indices[order].tobytes())


def _checked_indices(source: DataSource) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Every row's index; all rows whose index is missing, no whole number or not their own are told at once."""
    faults = Faults()
    found, places = array("q"), array("q")
    row = 0
    for batch in source.batches():
        for value in values_of(batch, INDEX):
            whole = _whole(value)
            if whole is not None:
                found.append(whole)
                places.append(row)
            elif value is None:
                faults.add(source.where(row), f"{INDEX} is missing; give each example its own")
            else:
                faults.add(source.where(row), f"{INDEX} is {value!r}; give a whole number of 64 bits")
            row += 1
    indices = np.frombuffer(found, np.int64) if found else np.empty(0, np.int64)
    _check_unique(indices, places, source, faults)
    faults.check()
    return indices


def _whole(value: Any) -> int | None:
    """A 64-bit index, also of a float without a fraction or of a text of digits; else None."""
    digits = isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit()
    if digits or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(2**63) <= value < 2**63 else None


def _with_whole_index(source: DataSource) -> DataSource:
    place = source.schema.get_field_index(INDEX)
    schema = source.schema.set(place, pa.field(INDEX, pa.int64(), nullable=False))
    if pa.types.is_int64(source.schema.field(INDEX).type):
        return source

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches():
            whole = pa.array([_whole(value) for value in values_of(batch, INDEX)], pa.int64())
            columns = [whole if i == place else column for i, column in enumerate(batch.columns)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return replace(source, schema=schema, batches=batches)


def _check_unique(
    indices: np.ndarray[Any, np.dtype[np.int64]], places: array[int], source: DataSource, faults: Faults
) -> None:
    order = np.argsort(indices, kind="stable")
    ordered = indices[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    firsts = np.searchsorted(ordered, ordered[again])
    twice = zip(order[again].tolist(), order[firsts].tolist(), ordered[again].tolist(), strict=True)
    for second, first, index in sorted(twice):
        where, at = source.where(places[second]), source.where(places[first])
        faults.add(where, f"{INDEX} {index} occurs twice (first at {at}); give each example its own")


def _numbered(source: DataSource) -> tuple[DataSource, array[int]]:
    total = sum(batch.num_rows for batch in source.batches()) if source.n_rows is None else source.n_rows
    schema = source.schema.insert(0, pa.field(INDEX, pa.int64(), nullable=False))

    def batches() -> Iterator[pa.RecordBatch]:
        row = 0
        for batch in source.batches():
            numbers = pa.array(np.arange(row, row + batch.num_rows))
            yield pa.RecordBatch.from_arrays([numbers, *batch.columns], schema=schema)
            row += batch.num_rows

    return DataSource(source.name, schema, batches, source.where), array("q", range(total))
