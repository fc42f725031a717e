"""Checks of rows by columns, and of a schema itself.

A schema is checked for its choices, bounds and defaults against its own types, and for its depth and size. Every schema
passes here once, whatever its form, so that other modules need not check again.
"""

import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError, SpecError, with_article
from evaluand.data.schema.arrow import write_arrow
from evaluand.data.schema.faults import FaultCollector, Faults, RowFault, sort_faults
from evaluand.data.schema.kinds import BOUNDS, MISSING, Array, Field, Map, Scalar, StructType, Type
from evaluand.data.schema.limits import format_value
from evaluand.data.schema.objects import ROWS_AT_ONCE, convert_objects
from evaluand.data.schema.tables import check_columns
from evaluand.data.schema.uniqueness import KeyChecker


def check_rows(
    struct: StructType, data: Any, *, json: bool = False, most: int | None = None
) -> tuple[pa.Table | None, Faults]:
    """The table of the rows, or None where one is invalid, and the faults.

    Args:
        data: an Arrow table or batch, or an iterable of mappings.
        json: whether the rows have the forms of JSON: times, UUIDs and decimals as text, bytes as base64.
        most: how many faults of each path and code to return; all are counted.
    """
    batches: list[pa.RecordBatch] = []
    faults = find_faults(struct, data, json=json, most=most, batches=batches)
    return (None if faults.counts else pa.Table.from_batches(batches, write_arrow(struct))), faults


def find_faults(
    struct: StructType,
    data: Any,
    *,
    json: bool = False,
    most: int | None = None,
    batches: list[pa.RecordBatch] | None = None,
) -> Faults:
    """The faults of rows, arguments as in `check_rows`; `batches` collects the valid ones up to the first fault."""
    counts: Counter[tuple[str, str]] = Counter()
    data = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    column_faults = check_columns(struct, data.schema, counts) if isinstance(data, pa.Table) else []
    if column_faults:
        return Faults(column_faults, counts)
    schema, first, repeated = write_arrow(struct), 0, KeyChecker(struct)
    faults: list[RowFault] = []
    for columns, collector in _convert(struct, data, counts, json=json, most=most):
        repeated.add(columns, first)
        faults += collector.faults
        if batches is not None and not counts:
            batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        first += len(columns[0])
    faults += repeated.faults(counts, most)
    return Faults(sort_faults(faults), counts)


def convert_rows(struct: StructType, data: Any, *, json: bool = False) -> Iterator[list[pa.Array]]:
    """The columns of valid rows, chunk by chunk."""
    return (columns for columns, _ in _convert(struct, data, Counter(), json=json, most=0))


def _convert(
    struct: StructType, data: Any, counts: Counter[tuple[str, str]], *, json: bool, most: int | None
) -> Iterator[tuple[list[pa.Array], FaultCollector]]:
    if isinstance(data, pa.Table):
        json = False  # its values are those of Python
        maps = "strict" if "map<" in str(data.schema.types) else None
        data = (row for batch in data.to_batches(ROWS_AT_ONCE) for row in _read_rows(batch, maps))
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise SpecError(f"give rows as a list of mappings or an Arrow table, not {with_article(type(data).__name__)}")
    return convert_objects(struct, data, counts, json=json, most=most)


def _read_rows(batch: pa.RecordBatch, maps: str | None) -> list[Any]:
    """The rows of a batch, with `maps` as Arrow's `maps_as_pydicts`, which costs time where there are none."""
    try:
        return list(batch.to_pylist(maps_as_pydicts=maps))
    except KeyError:  # a map has a key twice, and stays a list of pairs
        if len(batch) == 1:
            return list(batch.to_pylist())
        return [row for at in range(len(batch)) for row in _read_rows(batch.slice(at, 1), maps)]
    except (ValueError, OverflowError) as error:  # such as times that no calendar has
        raise DataError(f"the table cannot be read: {error}") from None


MAX_DEPTH: Final = 60
"""Levels of nested objects and lists; Arrow and Parquet read little more."""
MAX_FIELDS: Final = 10_000
MAX_FIXED: Final = 2**20
"""Items of a fixed-length list, which takes the same space where it is null."""
TOO_DEEP: Final = f"is more than {MAX_DEPTH} levels deep; make it flatter"


def check_declared(struct: StructType, name: str) -> None:
    """Refuse a schema that contradicts itself; paths in messages begin with `name`."""
    items = list(islice(_iterate_fields(struct, name, 0), MAX_FIELDS + 1))
    if len(items) > MAX_FIELDS:
        raise SpecError(f"{name or 'the schema'}: has more than {MAX_FIELDS:,} fields; make it smaller")
    faults = [f"{path}: {fault}" for path, item in items for fault in _find_faults(item)]
    if faults:
        raise SpecError("\n".join(faults))


def _iterate_fields(struct: StructType, path: str, depth: int) -> Iterator[tuple[str, Field | Type]]:
    """Each field and each type with its path."""
    for each in struct.fields:
        inner = f"{path}.{each.name}" if path else each.name
        yield inner, each
        yield from _iterate_types(each.type, inner, depth + 1)


def _iterate_types(type_: Type, path: str, depth: int) -> Iterator[tuple[str, Field | Type]]:
    if depth > MAX_DEPTH:
        raise SpecError(f"{path}: {TOO_DEEP}")
    if isinstance(type_, StructType):
        yield from _iterate_fields(type_, path, depth)
        return
    yield path, type_
    if isinstance(type_, Array):
        yield from _iterate_types(type_.item, f"{path}[]", depth + 1)
    elif isinstance(type_, Map):
        yield from _iterate_types(type_.value, f"{path}{{}}", depth + 1)


def _find_faults(item: Field | Type) -> Iterator[str]:
    if isinstance(item, Scalar | Array | Map):
        yield from _length_faults(item)
    if isinstance(item, Scalar):
        bound_faults = list(_bound_faults(item))
        yield from bound_faults or _value_faults(replace(item, choices=(), names=()), item.choices, "the choice")
        if len(set(item.choices)) < len(item.choices):
            yield "a choice occurs twice"
        if item.names and not len(set(item.names)) == len(item.names) == len(item.choices):
            names = len(set(item.names))
            yield f"has {len(item.choices)} choices and {names} names; give each choice one distinct name"
    elif isinstance(item, Field) and item.default is not MISSING:
        default = Field("default", item.type, item.nullable)
        for fault in check_rows(StructType((default,)), [{"default": item.default}])[1]:
            yield f"the {fault.path}: {fault.message}"


def _bound_faults(scalar: Scalar) -> Iterator[str]:
    unlimited = Scalar(scalar.kind, finite=scalar.kind in ("float32", "float64"))
    if scalar.kind == "decimal":
        unlimited = Scalar("decimal", digits=76, places=38)
    bounds = {word: value for word in BOUNDS if (value := getattr(scalar, word)) is not None}
    faults = [f for word in bounds for f in _value_faults(unlimited, [bounds[word]], f"the {word.replace('_', ' ')}")]
    yield from faults
    for low, high, empty in _BETWEEN:
        least, most = bounds.get(low), bounds.get(high)
        if not faults and least is not None and most is not None and empty(least, most):
            names = f"its {low} and {high}".replace("_", " ")
            yield f"no value is between {format_value(least)} and {format_value(most)}, {names}"


_BETWEEN: Final = (
    ("minimum", "maximum", operator.gt),
    ("minimum", "exclusive_maximum", operator.ge),
    ("exclusive_minimum", "maximum", operator.ge),
    ("exclusive_minimum", "exclusive_maximum", operator.ge),
)


def _length_faults(type_: Scalar | Array | Map) -> Iterator[str]:
    if isinstance(type_, Array) and type_.fixed and (type_.max_length or 0) > MAX_FIXED:
        yield f"a fixed-length list has at most {MAX_FIXED:,} items, not {type_.max_length:,}"
    if type_.min_length is not None and type_.max_length is not None and type_.min_length > type_.max_length:
        yield f"no length is between {type_.min_length} and {type_.max_length}"


def _value_faults(scalar: Scalar, values: Sequence[Any], name: str) -> Iterator[str]:
    """What is wrong with values that should belong to a scalar type."""
    if values:
        for fault in check_rows(StructType((Field("value", scalar),)), [{"value": value} for value in values])[1]:
            yield f"{name}: {fault.message}"
