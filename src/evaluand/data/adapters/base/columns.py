"""Adapters on whole Arrow batches, without an object per row.

A function returns None where a batch must go row by row: either columns cannot do what the adapter needs, or a row may
be at fault, and only the pass over the rows can name it. The values of a text column that is marked as JSON are the
parsed texts, as in rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import DataError, kind_of
from evaluand.core.selector import Selector
from evaluand.core.selector.steps import Every
from evaluand.data.adapters.base.template import as_path, unescape
from evaluand.data.records import build_batch, read_objects
from evaluand.data.source import read_values
from evaluand.store.tables import is_json

Column = tuple[pa.Field, pa.Array]


def read_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as dictionaries, with JSON columns parsed."""
    names = batch.schema.names
    columns = [read_values(array, field) for field, array in _list_columns(batch)]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def build_table(pieces: Sequence[pa.RecordBatch | list[Any]]) -> pa.Table:
    """One table of batches and lists of rows, in order."""
    schemas = [piece.schema for piece in pieces if isinstance(piece, pa.RecordBatch)]
    if schemas:
        parts = [piece if isinstance(piece, pa.RecordBatch) else _fit_batch(piece, schemas[0]) for piece in pieces]
        batches = [batch for batch in parts if batch is not None and batch.schema.equals(schemas[0])]
        if len(batches) == len(pieces):
            return pa.Table.from_batches(batches).replace_schema_metadata(None)
    return _infer_table([row for piece in pieces for row in (piece if isinstance(piece, list) else read_rows(piece))])


def apply_template(template: Any, batch: pa.RecordBatch) -> pa.RecordBatch | None:
    """The structure of a template that consists of literals and paths through objects."""
    columns = _struct_columns(template, batch) if isinstance(template, Mapping) else None
    return None if columns is None else _build_batch(columns)


def explode(
    batch: pa.RecordBatch, collections: Sequence[str], index: Mapping[str, Selector | None]
) -> pa.RecordBatch | None:
    """A row for each element of the collections."""
    if index.keys() & set(batch.schema.names):
        return None
    lists = {name: _list_column(batch, name) for name in collections}
    lists |= {name: _elements_column(batch, path) for name, path in index.items() if path is not None}
    collected = {name: column for name, column in lists.items() if column is not None}
    if len(collected) < len(lists):
        return None
    lengths, *others = (np.asarray(pc.list_value_length(array)) for _, array in collected.values())
    if not all(np.array_equal(lengths, other) for other in others):
        return None
    parents = pc.list_parent_indices(collected[collections[0]][1])
    columns = [(field, array.take(parents)) for field, array in _list_columns(batch) if field.name not in collections]
    columns += [(field.type.value_field.with_name(name), array.flatten()) for name, (field, array) in collected.items()]
    if counters := [name for name, path in index.items() if path is None]:
        starts = np.cumsum(lengths) - lengths
        count = pa.array(np.arange(len(parents)) - np.repeat(starts, lengths))
        columns += [(pa.field(name, pa.int64()), count) for name in counters]
    return _build_batch(columns)


def flatten(batch: pa.RecordBatch, names: Sequence[str], depth: int, prefix: bool) -> pa.RecordBatch | None:
    """A column for each leaf of the objects in the named columns."""
    columns: list[Column] = []
    for field, array in _list_columns(batch):
        leaves = _list_leaves(field, array, depth, prefix) if field.name in names else [(field, array)]
        if leaves is None:
            return None
        columns += leaves
    return _build_batch(columns)


def _fit_batch(rows: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch | None:
    """A batch of rows with a schema, or None where they have other fields or its types would lose something."""
    names = set(schema.names)
    if not all(isinstance(row, dict) and row.keys() == names for row in rows):
        return None
    try:
        batch = build_batch(rows, schema)
        same = identity.encode(list(read_rows(batch))) == identity.encode(
            [{name: row[name] for name in schema.names} for row in rows]
        )
    except (*_UNFIT, DataError):
        return None
    return batch if same else None


def _infer_table(rows: Sequence[Any]) -> pa.Table:
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(f"new row {place} is {kind_of(row)}, not an object; a table is made of objects")
    if rows and not any(rows):
        raise DataError("the new rows have no fields; a table needs at least one")
    [source] = read_objects([lambda: enumerate(rows)], lambda _, place: f"new row {place}")
    return pa.Table.from_batches(source.batches(), source.schema)


_UNFIT = (pa.ArrowException, OverflowError, TypeError, ValueError)


def _list_columns(batch: pa.RecordBatch) -> list[Column]:
    return list(zip(batch.schema, batch.columns, strict=True))


def _build_batch(columns: Sequence[Column]) -> pa.RecordBatch | None:
    names = [field.name for field, _ in columns]
    if len(set(names)) != len(names) or not names:  # a batch without columns loses its number of rows
        return None
    return pa.RecordBatch.from_arrays(
        [array for _, array in columns], schema=pa.schema([field for field, _ in columns])
    )


def _struct_columns(template: Mapping[Any, Any], batch: pa.RecordBatch) -> list[Column] | None:
    columns = []
    for key, part in template.items():
        column = None if key == "$compute" else _part_column(unescape(key), part, batch)
        if column is None:
            return None
        columns.append(column)
    return columns


def _part_column(name: str, part: Any, batch: pa.RecordBatch) -> Column | None:
    if isinstance(part, str) and (path := as_path(part)):
        return _column_at(name, _parse_steps(path), batch)
    if isinstance(part, Mapping):
        children = _struct_columns(part, batch)
        if not children:
            return None
        array = pa.StructArray.from_arrays([a for _, a in children], fields=[field for field, _ in children])
        return pa.field(name, array.type), array
    value = _literal_scalar(part)
    if value is None:
        return None
    n = len(batch)
    array = pa.nulls(n) if value.as_py() is None else pa.repeat(value, n or 1)[:n]  # a list cannot be repeated 0 times
    return pa.field(name, array.type), array


@lru_cache(1024)  # a path is the same for all batches
def _parse_steps(path: str) -> Sequence[Any]:
    return Selector(path).steps


def _column_at(name: str, steps: Sequence[Any], batch: pa.RecordBatch) -> Column | None:
    """The column at a path through objects, or None where a field or an object is missing."""
    if not steps or steps[0] not in batch.schema.names:
        return None
    field, array = batch.schema.field(steps[0]), batch.column(steps[0])
    for step in steps[1:]:
        if not (isinstance(step, str) and pa.types.is_struct(field.type)) or array.null_count:
            return None
        place = field.type.get_field_index(step)
        if place < 0:
            return None
        field, array = field.type.field(place), array.field(place)
    return field.with_name(name), array


def _literal_scalar(value: Any) -> pa.Scalar | None:
    if isinstance(value, list) and "$" in str(value):
        return None
    value = unescape(value)
    try:
        scalar = pa.scalar(value)
        same = identity.encode(scalar.as_py()) == identity.encode(value)
    except (*_UNFIT, DataError):
        return None
    return scalar if same else None


def _list_column(batch: pa.RecordBatch, name: str) -> Column | None:
    if name not in batch.schema.names:
        return None
    field, array = batch.schema.field(name), batch.column(name)
    if not (pa.types.is_list(field.type) or pa.types.is_large_list(field.type)) or array.null_count:
        return None
    return field, array


def _elements_column(batch: pa.RecordBatch, path: Selector) -> Column | None:
    """The list column of a path such as `$.ranks[*]`; None for any other path."""
    name, *rest = path.steps or (None,)
    return _list_column(batch, name) if isinstance(name, str) and rest == [Every()] else None


def _list_leaves(field: pa.Field, array: pa.Array, depth: int, prefix: bool) -> list[Column] | None:
    if is_json(field) and depth != 0:
        return None
    if depth == 0 or not pa.types.is_struct(field.type) or not field.type.num_fields:
        return [(field, array)]
    if array.null_count:
        return None
    leaves: list[Column] = []
    for place, child in enumerate(field.type):
        name = f"{field.name}.{child.name}" if prefix else child.name
        inner = _list_leaves(child.with_name(name), array.field(place), depth - 1, prefix)
        if inner is None:
            return None
        leaves += inner
    return leaves
