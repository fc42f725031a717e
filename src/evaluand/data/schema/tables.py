"""Arrow tables made what their schema says; they may be laid out otherwise, if their values are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import SpecError
from evaluand.core.registry import nearest
from evaluand.data.schema import keys
from evaluand.data.schema.arrow import arrow_type, is_list, kind_of, write_arrow
from evaluand.data.schema.faults import Found, Place, RowFault
from evaluand.data.schema.kinds import RANGES, Array, Field, Map, Scalar, StructType, Type
from evaluand.data.schema.limits import check_limits, check_sizes, flags, from_ends, list_of, map_sizes, misfit
from evaluand.data.schema.objects import of_objects


def of_table(
    record: StructType, table: pa.Table, counts: Counter[tuple[str, str]], most: int | None
) -> Iterator[tuple[list[pa.Array], Found]]:
    """The columns of each batch, and what is wrong with them; with faults, the columns are of no use."""
    schema, first = write_arrow(record), 0
    for batch in table.to_batches():
        indices = batch.column(keys.INDEX) if keys.INDEX in batch.schema.names else None
        found = Found(counts, most, _index_in(indices), first)
        conform = _Conformer(found)
        columns = [
            conform.column(each, batch, Place().field(each.name), field.type)
            for each, field in zip(record.fields, schema, strict=True)
        ]
        yield columns, found
        first += batch.num_rows


def shape_faults(record: StructType, schema: pa.Schema, counts: Counter[tuple[str, str]]) -> list[RowFault]:
    """Columns that are missing, not known or of another type: all their rows are wrong."""
    found = Found(counts, None, lambda row: None)
    _check_types(record, {each.name: each.type for each in schema}, list(schema.names), "", found)
    return found.faults


def _index_in(indices: pa.Array | None) -> Callable[[int], Any]:
    return lambda row: None if indices is None else indices[row].as_py()


def _check_types(
    record: StructType, types: Mapping[str, pa.DataType], names: list[str], path: str, found: Found
) -> None:
    dot = f"{path}." if path else ""
    for name in sorted({name for name in names if names.count(name) > 1}):
        found.add_column(f"{dot}{name}", "two columns have this name", "extra")
    for each in record.fields:
        if each.name in types:
            _check_type(each.type, types[each.name], f"{dot}{each.name}", found)
        elif each.required:
            found.add_column(f"{dot}{each.name}", f"is missing{nearest(each.name, names)}", "missing")
    for name in types:
        if name not in record.names:
            found.add_column(f"{dot}{name}", f"is no field{nearest(name, record.names)}", "extra")


def _check_type(given: Type, held: pa.DataType, path: str, found: Found) -> None:
    if pa.types.is_null(held):
        return
    if isinstance(given, StructType) and pa.types.is_struct(held):
        inner = [held.field(i) for i in range(held.num_fields)]
        return _check_types(given, {each.name: each.type for each in inner}, [each.name for each in inner], path, found)
    if isinstance(given, Array) and is_list(held):
        return _check_type(given.item, held.value_type, f"{path}[]", found)
    if isinstance(given, Map) and pa.types.is_map(held) and kind_of(held.key_type) == "string":
        return _check_type(given.value, held.item_type, f"{path}{{}}", found)
    if isinstance(given, Scalar) and _fits(given, held):
        return None
    found.add_column(path, f"the column is {held}, not {arrow_type(given)}")
    return None


def _fits(given: Scalar, held: pa.DataType) -> bool:
    """Whether a column may hold values of a kind, however wide or laid out; each is looked at when it is converted."""
    kind = kind_of(held)
    if given.kind in RANGES:
        return kind in RANGES
    if given.kind in ("float32", "float64"):
        return kind in ("float32", "float64", *RANGES)
    if given.kind == "json":
        return kind == "string"
    if given.kind == "decimal":
        return bool(pa.types.is_decimal(held))
    if given.kind == "binary":
        return kind == "binary" or pa.types.is_fixed_size_binary(held)
    if given.kind == "uuid":
        return kind == "uuid" or held == pa.binary(16)
    if given.kind in ("datetime", "datetime-local"):
        return pa.types.is_timestamp(held) and (held.tz is not None) is (given.kind == "datetime")
    if given.kind == "time":
        return bool(pa.types.is_time(held))
    if given.kind == "duration":
        return bool(pa.types.is_duration(held))
    return kind == given.kind


class _Conformer:
    """Makes columns what their schema says, and finds what is wrong in them."""

    def __init__(self, found: Found) -> None:
        self.found = found

    def column(self, given: Field, batch: pa.RecordBatch, place: Place, arrow: pa.DataType) -> pa.Array:
        if given.name not in batch.schema.names:
            return _filled(given, batch.num_rows, arrow)
        nothing = np.zeros(batch.num_rows, bool)
        return self.values(given.type, given.blank, batch.column(given.name), place, arrow, nothing)

    def values(
        self,
        given: Type,
        nullable: bool,
        array: pa.Array,
        place: Place,
        arrow: pa.DataType,
        absent: np.ndarray[Any, Any],
    ) -> pa.Array:
        """The values as the type has them; those that are `absent` stand in no row."""
        if not nullable and array.null_count:
            nulls = np.flatnonzero(flags(array.is_null()) & ~absent)
            self.found.add_all(place, nulls, "null", lambda _: "is null")
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), arrow)
        if isinstance(given, StructType):
            return self._record(given, array, place, arrow, absent)
        if isinstance(given, Map):
            return self._map(given, array, place, arrow)
        if isinstance(given, Array):
            return self._list(given, array, place, arrow)
        return self._scalar(given, array, place, arrow)

    def _record(
        self, given: StructType, array: pa.Array, place: Place, arrow: pa.DataType, absent: np.ndarray[Any, Any]
    ) -> pa.Array:
        names = [array.type.field(i).name for i in range(array.type.num_fields)]
        held = dict(zip(names, array.flatten(), strict=True))
        missing = flags(array.is_null())
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        columns = [
            self.values(each.type, each.blank, held[each.name], place.field(each.name), field.type, absent | missing)
            if each.name in held
            else _filled(each, len(array), field.type)
            for each, field in zip(given.fields, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(missing))

    def _list(self, given: Array, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        lengths = _numbers(pc.list_value_length(array).fill_null(0))
        ends = np.cumsum(lengths)
        none = array.null_count == len(array)  # where Arrow cannot flatten extension types
        flat, mask = array.values.slice(0, 0) if none else array.flatten(), array.is_null()
        if len(flat) != (int(ends[-1]) if len(ends) else 0):
            lengths = np.where(flags(mask), 0, lengths)
            ends = np.cumsum(lengths)
        nothing = np.zeros(len(flat), bool)
        items = self.values(given.item, given.nullable, flat, place.items(ends), arrow.value_type, nothing)
        return list_of(given, items, ends, mask, place, arrow, self.found)

    def _map(self, given: Map, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        array = pa.concat_arrays([array])
        offsets = np.asarray(array.offsets)
        start, end = int(offsets[0]), int(offsets[-1])
        names, held = array.keys.slice(start, end - start), array.items.slice(start, end - start)
        inner = place.items(offsets[1:] - start, names.to_pylist())
        nothing = np.zeros(len(held), bool)
        values = self.values(given.value, given.nullable, held, inner, arrow.item_type, nothing)
        made = pa.MapArray.from_arrays(
            from_ends(offsets[1:] - start), names.cast(pa.string()), values, type=arrow, mask=array.is_null()
        )
        check_sizes(given, map_sizes(made), place, self.found, "entries")
        again = _again(names, np.diff(offsets))
        self.found.add_all(inner, again, "twice", lambda _: "the key is there already")
        return made

    def _scalar(self, given: Scalar, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        try:
            made = _cast(array, arrow)
        except (pa.ArrowException, ValueError):
            made = self._each(given, array, place, arrow)
        if given.kind == "float32" and not pa.types.is_float32(array.type):
            for at in np.flatnonzero(flags(pc.is_inf(made)) & ~flags(pc.is_inf(array.cast(pa.float64())))):
                self.found.add(place, int(at), "bounds", f"{array[at].as_py()} is more than float32 holds")
        check_limits(given, made, place, self.found)
        return made

    def _each(self, given: Scalar, array: pa.Array, place: Place, arrow: pa.DataType) -> pa.Array:
        parts = []
        for at in range(len(array)):
            one = array.slice(at, 1)
            try:
                parts.append(_cast(one, arrow))
            except (pa.ArrowException, ValueError):
                value = one[0].as_py()
                told = misfit(given, value) if given.kind == "decimal" else f"{value!r} does not fit into {arrow}"
                self.found.add(place, at, "bounds", told)
                parts.append(pa.nulls(1, arrow))
        return pa.concat_arrays(parts) if parts else pa.nulls(0, arrow)


def _again(names: pa.Array, lengths: np.ndarray[Any, Any]) -> list[int]:
    """Which keys an earlier entry of the same map has."""
    codes = _numbers(names.dictionary_encode().indices)
    keys_ = np.repeat(np.arange(len(lengths)), lengths) * (len(codes) + 1) + codes
    firsts = np.unique(keys_, return_index=True)[1]
    return sorted(set(range(len(codes))) - set(firsts.tolist())) if len(firsts) < len(codes) else []


def _cast(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    if isinstance(arrow, pa.BaseExtensionType):
        return array if array.type == arrow else arrow.wrap_array(array.cast(arrow.storage_type))
    return array if array.type == arrow else array.cast(arrow)


def _filled(given: Field, count: int, arrow: pa.DataType) -> pa.Array:
    """A column that is missing and may be."""
    if given.filling is None:
        return pa.nulls(count, arrow)
    columns, found = next(of_objects(StructType((given,)), [{given.name: given.filling}], Counter(), json=False))
    if found.any:
        raise SpecError(f"the default of {given.name!r} breaks its own schema")
    return columns[0].take(pa.array(np.zeros(count, np.int64)))


def _numbers(array: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)
