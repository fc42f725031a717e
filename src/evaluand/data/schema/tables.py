"""Arrow tables as validated columns of a schema; their own types may differ, as long as the values are the same."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import SpecError, nearest
from evaluand.data.schema import keys
from evaluand.data.schema.arrow import arrow_type, is_list_type, scalar_kind, write_arrow
from evaluand.data.schema.faults import FaultCollector, Place, RowFault
from evaluand.data.schema.kinds import RANGES, Array, Field, Map, Scalar, StructType, Type
from evaluand.data.schema.limits import (
    as_booleans,
    build_list,
    check_limits,
    check_sizes,
    decimal_fault,
    map_sizes,
    offsets_from_ends,
)
from evaluand.data.schema.objects import convert_objects


def convert_table(
    struct: StructType, table: pa.Table, counts: Counter[tuple[str, str]], most: int | None
) -> Iterator[tuple[list[pa.Array], FaultCollector]]:
    """The columns of each batch with their faults; columns with faults must not be used."""
    schema, first = write_arrow(struct), 0
    for batch in table.to_batches():
        indices = batch.column(keys.INDEX) if keys.INDEX in batch.schema.names else None
        collector = FaultCollector(counts, most, _index_reader(indices), first)
        converter = _Converter(collector)
        columns = [
            converter.convert_column(each, batch, Place().field(each.name), field.type)
            for each, field in zip(struct.fields, schema, strict=True)
        ]
        yield columns, collector
        first += batch.num_rows


def check_columns(struct: StructType, schema: pa.Schema, counts: Counter[tuple[str, str]]) -> list[RowFault]:
    """Faults of whole columns: missing, unknown, or of a wrong type."""
    collector = FaultCollector(counts, None, lambda row: None)
    _check_types(struct, {each.name: each.type for each in schema}, list(schema.names), "", collector)
    return collector.faults


def _index_reader(indices: pa.Array | None) -> Callable[[int], Any]:
    return lambda row: None if indices is None else indices[row].as_py()


def _check_types(
    struct: StructType, types: Mapping[str, pa.DataType], names: list[str], path: str, collector: FaultCollector
) -> None:
    dot = f"{path}." if path else ""
    for name in sorted({name for name in names if names.count(name) > 1}):
        collector.add_column(f"{dot}{name}", "two columns have this name", "extra")
    for each in struct.fields:
        if each.name in types:
            _check_type(each.type, types[each.name], f"{dot}{each.name}", collector)
        elif each.required:
            collector.add_column(f"{dot}{each.name}", f"is missing{nearest(each.name, names)}", "missing")
    for name in types:
        if name not in struct.names:
            collector.add_column(f"{dot}{name}", f"is not a field{nearest(name, struct.names)}", "extra")


def _check_type(type_: Type, column_type: pa.DataType, path: str, collector: FaultCollector) -> None:
    if pa.types.is_null(column_type):
        return
    if isinstance(type_, StructType) and pa.types.is_struct(column_type):
        inner = [column_type.field(i) for i in range(column_type.num_fields)]
        types, names = {each.name: each.type for each in inner}, [each.name for each in inner]
        return _check_types(type_, types, names, path, collector)
    if isinstance(type_, Array) and is_list_type(column_type):
        return _check_type(type_.item, column_type.value_type, f"{path}[]", collector)
    if isinstance(type_, Map) and pa.types.is_map(column_type) and scalar_kind(column_type.key_type) == "string":
        return _check_type(type_.value, column_type.item_type, f"{path}{{}}", collector)
    if isinstance(type_, Scalar) and _fits(type_, column_type):
        return None
    collector.add_column(path, f"the column is {column_type}, not {arrow_type(type_)}")
    return None


def _fits(scalar: Scalar, column_type: pa.DataType) -> bool:
    """Whether a column type can contain values of a kind, in any width or layout; conversion checks each value."""
    kind = scalar_kind(column_type)
    if scalar.kind in RANGES:
        return kind in RANGES
    if scalar.kind in ("float32", "float64"):
        return kind in ("float32", "float64", *RANGES)
    if scalar.kind == "json":
        return kind == "string"
    if scalar.kind == "decimal":
        return bool(pa.types.is_decimal(column_type))
    if scalar.kind == "binary":
        return kind == "binary" or pa.types.is_fixed_size_binary(column_type)
    if scalar.kind == "uuid":
        return kind == "uuid" or column_type == pa.binary(16)
    if scalar.kind in ("datetime", "datetime-local"):
        return pa.types.is_timestamp(column_type) and (column_type.tz is not None) is (scalar.kind == "datetime")
    if scalar.kind == "time":
        return bool(pa.types.is_time(column_type))
    if scalar.kind == "duration":
        return bool(pa.types.is_duration(column_type))
    return kind == scalar.kind


class _Converter:
    """Converts columns to the types of a schema, and collects the faults of their values."""

    def __init__(self, collector: FaultCollector) -> None:
        self.collector = collector

    def convert_column(self, field: Field, batch: pa.RecordBatch, place: Place, arrow: pa.DataType) -> pa.Array:
        if field.name not in batch.schema.names:
            return _fill_column(field, batch.num_rows, arrow)
        absent = np.zeros(batch.num_rows, bool)
        return self.convert(field.type, field.stores_null, batch.column(field.name), place, arrow, absent)

    def convert(
        self,
        type_: Type,
        nullable: bool,
        array: pa.Array,
        place: Place,
        arrow: pa.DataType,
        absent: np.ndarray[Any, Any],
    ) -> pa.Array:
        """A column in its schema's type; `absent` marks values inside a null object, which are not checked for null."""
        if not nullable and array.null_count:
            nulls = np.flatnonzero(as_booleans(array.is_null()) & ~absent)
            self.collector.add_all(place, nulls, "null", lambda _: "is null")
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), arrow)
        if isinstance(type_, StructType):
            return self._struct(type_, array, place, arrow, absent)
        if isinstance(type_, Map):
            return self._map(type_, array, place, arrow)
        if isinstance(type_, Array):
            return self._list(type_, array, place, arrow)
        return self._scalar(type_, array, place, arrow)

    def _struct(
        self, struct: StructType, array: pa.Array, place: Place, arrow: pa.DataType, absent: np.ndarray[Any, Any]
    ) -> pa.Array:
        names = [array.type.field(i).name for i in range(array.type.num_fields)]
        children = dict(zip(names, array.flatten(), strict=True))
        missing = as_booleans(array.is_null())
        absent = absent | missing
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        columns = [
            self.convert(each.type, each.stores_null, children[each.name], place.field(each.name), field.type, absent)
            if each.name in children
            else _fill_column(each, len(array), field.type)
            for each, field in zip(struct.fields, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(missing))

    def _list(self, array_type: Array, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        lengths = _as_int64(pc.list_value_length(array).fill_null(0))
        ends = np.cumsum(lengths)
        all_null = array.null_count == len(array)  # here Arrow cannot flatten extension types
        flat, mask = array.values.slice(0, 0) if all_null else array.flatten(), array.is_null()
        if len(flat) != (int(ends[-1]) if len(ends) else 0):
            lengths = np.where(as_booleans(mask), 0, lengths)
            ends = np.cumsum(lengths)
        absent = np.zeros(len(flat), bool)
        items = self.convert(array_type.item, array_type.nullable, flat, place.items(ends), arrow.value_type, absent)
        return build_list(array_type, items, ends, mask, place, arrow, self.collector)

    def _map(self, map_type: Map, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        array = pa.concat_arrays([array])
        offsets = np.asarray(array.offsets)
        start, end = int(offsets[0]), int(offsets[-1])
        names, entries = array.keys.slice(start, end - start), array.items.slice(start, end - start)
        inner = place.items(offsets[1:] - start, names.to_pylist())
        absent = np.zeros(len(entries), bool)
        values = self.convert(map_type.value, map_type.nullable, entries, inner, arrow.item_type, absent)
        converted = pa.MapArray.from_arrays(
            offsets_from_ends(offsets[1:] - start), names.cast(pa.string()), values, type=arrow, mask=array.is_null()
        )
        check_sizes(map_type, map_sizes(converted), place, self.collector, "entries")
        repeated = _find_repeated_keys(names, np.diff(offsets))
        self.collector.add_all(inner, repeated, "twice", lambda _: "the key occurs twice")
        return converted

    def _scalar(self, scalar: Scalar, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        try:
            converted = _cast(array, arrow)
        except (pa.ArrowException, ValueError):
            converted = self._cast_each(scalar, array, place, arrow)
        if scalar.kind == "float32" and not pa.types.is_float32(array.type):
            was_finite = ~as_booleans(pc.is_inf(array.cast(pa.float64())))
            for at in np.flatnonzero(as_booleans(pc.is_inf(converted)) & was_finite):
                self.collector.add(place, int(at), "bounds", f"{array[at].as_py()} is out of the range of float32")
        check_limits(scalar, converted, place, self.collector)
        return converted

    def _cast_each(self, scalar: Scalar, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        """The values that fit into the type, with null for others."""
        parts = []
        for at in range(len(array)):
            one = array.slice(at, 1)
            try:
                parts.append(_cast(one, arrow))
            except (pa.ArrowException, ValueError):
                value = one[0].as_py()
                fault = f"{value!r} does not fit into {arrow}"
                self.collector.add(
                    place, at, "bounds", decimal_fault(scalar, value) if scalar.kind == "decimal" else fault
                )
                parts.append(pa.nulls(1, arrow))
        return pa.concat_arrays(parts) if parts else pa.nulls(0, arrow)


def _find_repeated_keys(names: pa.Array, lengths: np.ndarray[Any, Any]) -> list[int]:
    """The positions of keys that occur earlier in the same map."""
    codes = _as_int64(names.dictionary_encode().indices)
    keys_ = np.repeat(np.arange(len(lengths)), lengths) * (len(codes) + 1) + codes
    firsts = np.unique(keys_, return_index=True)[1]
    return sorted(set(range(len(codes))) - set(firsts.tolist())) if len(firsts) < len(codes) else []


def _cast(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    if isinstance(arrow, pa.BaseExtensionType):
        return array if array.type == arrow else arrow.wrap_array(array.cast(arrow.storage_type))
    return array if array.type == arrow else array.cast(arrow)


def _fill_column(field: Field, count: int, arrow: pa.DataType) -> pa.Array:
    """A column for an optional field that the table lacks."""
    if field.fill_value is None:
        return pa.nulls(count, arrow)
    row = {field.name: field.fill_value}
    columns, collector = next(convert_objects(StructType((field,)), [row], Counter(), json=False))
    if collector.any:
        raise SpecError(f"the default of {field.name!r} does not fit its own type")
    return columns[0].take(pa.array(np.zeros(count, np.int64)))


def _as_int64(array: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)
