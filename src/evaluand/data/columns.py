"""Columns that come as Arrow: one type for every layout of the same values, and names that are unique.

Dictionaries, views, large offsets, run ends and units of time are ways to store values, not values. So polars, DuckDB,
pandas and a Parquet file give the same examples, with the same digests, as rows of Python. Widths of numbers do not
change values either, and stay as they are for schemas that ask for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, warn
from evaluand.data.source import DataNote
from evaluand.store.tables import is_json

_KNOWN_EXTENSIONS: Final = ("arrow.", "datasets.")  # whose storage has the values; that of a pandas.period has not
_MOST_NOTED: Final = 10
_PANDAS_INDEX: Final = re.compile(r"__index_level_\d+__")


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, without a copy if it is in one.

    Example:
        >>> join_chunks(pa.chunked_array([[1], [2, 3]])).to_pylist()
        [1, 2, 3]
    """
    column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def rename_columns(names: Sequence[str], where: str) -> list[str]:
    """Unique names of columns; says which were renamed.

    Example:
        >>> rename_columns(["id", "label"], "rows.csv:1")
        ['id', 'label']
    """
    unique = unique_names(names)
    notes = []
    for place, (name, new) in enumerate(zip(names, unique, strict=True), 1):
        if new != name:
            what = f"the second column {name!r}" if name else f"column {place}, which has no name,"
            notes.append(f"{what} is read as {new!r}")
    if notes:
        more = f"; and {len(notes) - _MOST_NOTED:,} more" if len(notes) > _MOST_NOTED else ""
        warn(f"{where}: {'; '.join(notes[:_MOST_NOTED])}{more}", DataNote)
    return unique


def unique_names(names: Sequence[str]) -> list[str]:
    """Names of which none is empty or occurs twice: a later one gets a number.

    Example:
        >>> unique_names(["", "x", "x", "x_2"])
        ['column_1', 'x', 'x_3', 'x_2']
    """
    taken, result = set(names), []
    next_numbers: dict[str, int] = {}  # of names that occurred
    for place, name in enumerate(names, 1):
        new = name
        if not name or name in next_numbers:
            prefix = name or "column"
            number = next_numbers[name] if name else max(place, next_numbers.get("", 0))
            while (new := f"{prefix}_{number}") in taken:
                number += 1
            next_numbers[name] = number + 1
        elif name:
            next_numbers[name] = 2
        taken.add(new)
        result.append(new)
    return result


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that has the same values in the simplest layout.

    Example:
        >>> [str(plain_type(kind)) for kind in (pa.large_string(), pa.timestamp("ns", "Asia/Tokyo"))]
        ['string', 'timestamp[us, tz=UTC]']
    """
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType) and kind != pa.uuid():
        return plain_type(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_large_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind) or types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind.fields])
    if types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_duration(kind):
        return pa.duration("us")
    simple = {pa.date64(): pa.date32(), pa.time64("ns"): pa.time64("us"), pa.float16(): pa.float32()}
    return simple.get(kind, kind)


def _plain_field(field: pa.Field) -> pa.Field:
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType) and not kind.extension_name.startswith(_KNOWN_EXTENSIONS):
        raise DataError(f"the column {field.name!r} has the type {kind.extension_name}; convert it to a plain one")
    if kind.id in _INTERVALS:
        raise DataError(f"the column {field.name!r} has the type {kind}; convert it to a duration or a number")
    return field.with_type(plain_type(kind))


_INTERVALS: Final = (pa.lib.Type_INTERVAL_MONTHS, pa.lib.Type_INTERVAL_DAY_TIME)  # pyarrow has no values for them


def plain_table(table: pa.Table, where: str) -> pa.Table:
    """A table with plain types and unique names, without the index of pandas.

    Raises:
        DataError: a time is finer than a microsecond, or a type has no values that can be stored.
    """
    schema = plain_schema(table.schema, where)
    kept = _kept_columns(table.schema)
    columns = [_plain_column(table.column(place), field, where) for place, field in zip(kept, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def plain_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """The schema of `plain_table`."""
    kept = _kept_columns(schema)
    if left_out := [schema.names[place] for place in sorted({*range(len(schema))} - {*kept})]:
        warn(f"{where}: {', '.join(left_out)}, the index of a pandas frame, is left out", DataNote)
    names = rename_columns([schema.field(place).name for place in kept], where)
    fields = [_plain_field(schema.field(place)).with_name(name) for place, name in zip(kept, names, strict=True)]
    return pa.schema([field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in fields])


def _kept_columns(schema: pa.Schema) -> list[int]:
    return [place for place, name in enumerate(schema.names) if not _PANDAS_INDEX.fullmatch(name)]


def plain_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, where: str) -> Iterator[pa.RecordBatch]:
    """Batches in the types of a schema of `plain_schema` or `common_schema`; columns are found by name.

    Raises:
        DataError: a value does not fit its type.
    """
    places: list[int] | None = None
    for batch in batches:
        if batch.schema.equals(schema):
            for column, field in zip(batch.columns, schema, strict=True):
                _check_times(column, f"{where}: {field.name}")
            yield batch.replace_schema_metadata(None)
            continue
        if places is None:
            kept = _kept_columns(batch.schema)
            names = unique_names([batch.schema.names[place] for place in kept])
            places = [kept[names.index(field.name)] for field in schema]
        columns = [
            _plain_column(batch.column(place), field, where) for place, field in zip(places, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_column(column: Any, field: pa.Field, where: str) -> Any:
    place = f"{where}: {field.name}"
    plain = cast(column, field.type, place)
    for chunk in plain.chunks if isinstance(plain, pa.ChunkedArray) else [plain]:
        _check_times(chunk, place)
    return plain


def _check_times(column: pa.Array, where: str) -> None:
    """Refuses times outside of the years 1 to 9999, also within lists and objects: Python has none."""
    kind = column.type
    if pa.types.is_struct(kind):
        for child in column.flatten():
            _check_times(child, where)
    elif pa.types.is_map(kind):
        for child in (column.keys, column.items):
            _check_times(child, where)
    elif pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        _check_times(column.flatten(), where)
    elif (ends := _TIMES.get(kind.id)) is not None:
        seen = pc.min_max(column.cast(pa.int32() if kind.id == _DATE else pa.int64()))
        low, high = seen["min"].as_py(), seen["max"].as_py()
        if low is not None and not ends[0] <= low <= high <= ends[1]:
            raise DataError(Fault(where, _FAR))


_FAR: Final = "a time is outside of the years 1 to 9999; correct it, or write it as text"
_DATE: Final = pa.date32().id
_TIMES: Final = {  # in days, and in microseconds
    _DATE: (-719_162, 2_932_896),
    pa.timestamp("us").id: (-62_135_596_800_000_000, 253_402_300_799_999_999),
}


def common_schema(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """The schema of several files of one table; columns without values and of numbers get a type that fits all.

    Args:
        schemas: the name of each file and its plain schema, one or more.

    Raises:
        DataError: files have different columns, or a column has types that differ in their values.
    """
    (first, result), *others = schemas
    faults = []
    for name, schema in others:
        if compared := compare_names(schema.names, result.names, first):
            faults.append(Fault(name, compared))
            continue
        fields = []
        for field in result:
            other = schema.field(field.name)
            kind = _common_type(field.type, other.type)
            if kind is None or is_json(field) != is_json(other):
                message = f"the column {field.name!r} is {other.type}, but {field.type} in {first}; convert one"
                faults.append(Fault(name, message))
            fields.append(field if kind is None else field.with_type(kind))
        result = pa.schema(fields)
    if faults:
        raise DataError(faults)
    return result


def compare_names(names: Sequence[str], expected: Sequence[str], first: str) -> str:
    """The message that a file has other columns than the first one; empty if only their order differs."""
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    parts = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
    parts += [f"adds {', '.join(map(repr, extra))}"] if extra else []
    return f"the file {' and '.join(parts)}, compared to {first}; give the files the same columns" if parts else ""


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one == other:
        return one
    if not all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (one, other)):
        return None
    return pa.int64() if all(map(pa.types.is_integer, (one, other))) else pa.float64()


def cast(column: Any, kind: pa.DataType, where: str) -> Any:
    """A column in another type of the same values.

    Raises:
        DataError: a value does not fit.
    """
    if column.type == kind:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast(chunk, kind, where) for chunk in column.chunks], kind)
    try:
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return _without_views(column).cast(kind)
    except pa.ArrowNotImplementedError:
        return pa.array(column.to_pylist(), kind)
    except pa.ArrowInvalid as error:
        message = str(error)
        if message.startswith("Casting from timestamp") and "out of bounds" in message:
            message = _FAR
        elif re.search("(timestamp|time|duration).*lose data", message):
            message = "a time is finer than a microsecond; round it"
        raise DataError(Fault(where, message)) from None


def _without_views(column: pa.Array) -> pa.Array:
    """The same values without views: what Arrow casts of views of lists, or of 2 GB of texts, holds other values."""
    kind, types = column.type, pa.types
    if not _has_views(kind):
        return column
    if kind in _LARGE:
        return column.cast(_LARGE[kind])
    if types.is_struct(kind):
        children = [_without_views(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, names=kind.names, mask=column.is_null())
    if types.is_map(kind) or types.is_fixed_size_list(kind):
        return pa.array(column.to_pylist(), plain_type(kind))
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    offsets = pa.array(np.append(0, np.cumsum(lengths)))
    return pa.LargeListArray.from_arrays(offsets, _without_views(column.flatten()), mask=column.is_null())


_LARGE: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def _has_views(kind: pa.DataType) -> bool:
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind) or kind in _LARGE:
        return True
    return any(_has_views(kind.field(i).type) for i in range(kind.num_fields))
