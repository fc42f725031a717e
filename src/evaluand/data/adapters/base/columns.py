"""Rows of Arrow batches, and the table of new rows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, kind_of
from evaluand.store.tables import is_json, json_field


def read_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as dictionaries, with JSON columns parsed."""
    columns = [
        [None if text is None else identity.decode(text) for text in array.to_pylist()]
        if is_json(field)
        else array.to_pylist()
        for field, array in zip(batch.schema, batch.columns, strict=True)
    ]
    return (dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True))


def build_table(rows: Sequence[Any], fields: Mapping[str, pa.Field]) -> pa.Table:
    """One table of rows.

    Args:
        fields: by name, those of the columns that the rows come from.
    """
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(f"new row {place} is {kind_of(row)}, not an object; a table is made of objects")
    names = dict.fromkeys(name for row in rows for name in row)
    if rows and not names:
        raise DataError("the new rows have no fields; a table needs at least one")
    columns = [_build_column(name, [row.get(name) for row in rows], fields.get(name)) for name in names]
    return pa.Table.from_arrays([array for _, array in columns], schema=pa.schema([field for field, _ in columns]))


def _build_column(name: str, values: Sequence[Any], source: pa.Field | None) -> tuple[pa.Field, pa.Array]:
    """A column of the type of the source if its values fit exactly, else of the values' own type, else of JSON."""
    kinds = [None] if source is None else [] if is_json(source) else [source.type, None]
    for kind in kinds:
        with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
            array = pa.array(values, kind)
            is_plain = kind is None and "struct" not in str(array.type)  # in which Arrow adds missing fields as null
            if is_plain or repr(array.to_pylist()) == repr(values):
                return pa.field(name, array.type), array
    try:
        texts = [None if value is None else identity.encode(value).decode() for value in values]
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    return json_field(name), pa.array(texts, pa.string())
