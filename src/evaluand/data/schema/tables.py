"""Whether the columns of an Arrow table can hold the values of a schema, in any width, layout and order."""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from evaluand.core.errors import nearest
from evaluand.data.schema.arrow import arrow_type, is_list_type, scalar_kind
from evaluand.data.schema.faults import FaultCollector, RowFault
from evaluand.data.schema.kinds import RANGES, Array, Map, Scalar, StructType, Type


def check_columns(struct: StructType, schema: pa.Schema, counts: Counter[tuple[str, str]]) -> list[RowFault]:
    """Faults of whole columns: missing, unknown, or of a wrong type."""
    collector = FaultCollector(counts, None, lambda row: None)
    _check_types(struct, {each.name: each.type for each in schema}, list(schema.names), "", collector)
    return collector.faults


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
