"""Rows of Python objects as validated columns.

Arrow does not validate: it stores a missing field as null, ignores an unknown one and truncates 1.5 to an integer. So
names and types are checked before the values become columns, all values of a field at once.
"""

import datetime as dt
import decimal
import enum
import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from evaluand.core.errors import nearest, with_article
from evaluand.core.json_like import surrogate_fault
from evaluand.data.schema import keys
from evaluand.data.schema.arrow import write_arrow
from evaluand.data.schema.faults import FaultCollector, Place
from evaluand.data.schema.kinds import (
    KINDS,
    MISSING,
    RANGES,
    Array,
    Field,
    Map,
    Scalar,
    StructType,
    Type,
    Unrepresentable,
    as_integer,
    to_json,
)
from evaluand.data.schema.limits import (
    MAX_SHOWN,
    build_list,
    check_limits,
    check_sizes,
    decimal_fault,
    offsets_from_ends,
)


def convert_objects(
    struct: StructType, data: Iterable[Any], counts: Counter[tuple[str, str]], *, json: bool, most: int | None = None
) -> Iterator[tuple[list[pa.Array], FaultCollector]]:
    """The columns of rows, chunk by chunk, with their faults; columns with faults must not be used."""
    fields, first, iterator = list(write_arrow(struct)), 0, iter(data)
    while rows := list(islice(iterator, ROWS_AT_ONCE)):
        collector = FaultCollector(counts, most, partial(_read_index, rows), first)
        for at, row in enumerate(rows):
            if row is None:
                collector.add(Place(), at, "null", "is null, not an object")
        array = _Builder(collector, json).build_struct(struct, rows, Place(), fields)
        yield [array.field(i) for i in range(len(fields))], collector
        first += len(rows)


ROWS_AT_ONCE = 1024
"""Rows per chunk: few enough that their values stay in the processor's cache between checks."""


def _read_index(rows: Sequence[Any], row: int) -> Any:
    return rows[row].get(keys.INDEX) if isinstance(rows[row], Mapping) else None


class _Invalid:
    """Replaces a value whose fault was reported, and the values inside it."""


_INVALID = _Invalid()


class _Builder:
    """Builds columns from values, and collects their faults."""

    def __init__(self, collector: FaultCollector, json: bool) -> None:
        self.collector, self.json = collector, json

    def build_struct(
        self, struct: StructType, values: list[Any], place: Place, fields: list[pa.Field]
    ) -> pa.StructArray:
        names, columns, mask = struct.names, None, None
        if set(map(type, values)) <= {dict} and sum(map(len, values)) == len(names) * len(values):
            with suppress(KeyError):
                columns = [[value[name] for value in values] for name in names]
        if columns is None:
            columns, mask = self._read_columns(struct, values, place)
        arrays = [
            self.build_column(field.type, field.stores_null, column, place.field(field.name), arrow.type)
            for field, column, arrow in zip(struct.fields, columns, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    def _read_columns(self, struct: StructType, values: list[Any], place: Place) -> tuple[list[list[Any]], pa.Array]:
        """The columns of values that are not all objects with exactly the fields of the type."""
        values, _ = self._convert(values, place, Mapping, dict, "an object")
        known = set(struct.names)
        if any(known.symmetric_difference(shape) for shape in {tuple(each) for each in values if type(each) is dict}):
            self._check_names(struct, values, place)
        columns = [[self._field_value(field, value) for value in values] for field in struct.fields]
        return columns, pa.array([type(value) is not dict for value in values], pa.bool_())

    def build_column(
        self, type_: Type, nullable: bool, values: list[Any], place: Place, arrow: pa.DataType
    ) -> pa.Array:
        quick = _infer_column(type_, nullable, values, arrow) if isinstance(type_, Scalar) else None
        if quick is not None and isinstance(type_, Scalar):
            check_limits(type_, quick, place, self.collector)
            return quick
        types = set(map(type, values))
        if not nullable and type(None) in types:
            nulls = [at for at, value in enumerate(values) if value is None]
            self.collector.add_all(place, nulls, "null", lambda _: "is null")
        if isinstance(type_, Scalar):
            return self._scalar(type_, values, types, place, arrow)
        if isinstance(type_, StructType):
            return self.build_struct(type_, values, place, [arrow.field(i) for i in range(arrow.num_fields)])
        if isinstance(type_, Map):
            return self._map(type_, values, types, place, arrow)
        return self._list(type_, values, types, place, arrow)

    def _check_names(self, struct: StructType, values: list[Any], place: Place) -> None:
        known, required = set(struct.names), [each.name for each in struct.fields if each.required]
        for at, value in enumerate(values):
            if type(value) is dict:
                for name in required:
                    if name not in value:
                        self.collector.add(
                            place.field(name), at, "missing", f"is missing{_suggest(name, value, known)}"
                        )
                for name in value:
                    if name not in known:
                        self.collector.add(
                            place.field(str(name)), at, "extra", f"is not a field{nearest(str(name), known)}"
                        )

    def _field_value(self, field: Field, value: Any) -> Any:
        if type(value) is not dict:
            return _INVALID
        present = value.get(field.name, MISSING)
        if present is not MISSING:
            return present
        if field.required:
            return _INVALID
        return to_json(field.type, field.fill_value) if self.json else field.fill_value

    def _list(
        self, array_type: Array, values: list[Any], types: set[type], place: Place, arrow: pa.DataType
    ) -> pa.Array:
        if types - {list, _Invalid, type(None)}:
            values, types = self._convert(values, place, list | tuple, list, "a list")
        lists = values if types <= {list} else [value if type(value) is list else [] for value in values]
        ends = np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)))
        flat = list(chain.from_iterable(lists))
        items = self.build_column(array_type.item, array_type.nullable, flat, place.items(ends), arrow.value_type)
        mask = None if types <= {list} else pa.array([type(value) is not list for value in values])
        return build_list(array_type, items, ends, mask, place, arrow, self.collector)

    def _map(self, map_type: Map, values: list[Any], types: set[type], place: Place, arrow: pa.DataType) -> pa.Array:
        if types - {dict, _Invalid, type(None)}:
            values = [
                self._as_map(value, place, at) if type(value) is list else value for at, value in enumerate(values)
            ]
            values, types = self._convert(values, place, Mapping, dict, "an object")
        maps = [value if type(value) is dict else {} for value in values]
        ends = np.cumsum(np.fromiter(map(len, maps), np.int64, len(maps)))
        names = list(chain.from_iterable(maps))
        inner = place.items(ends, names)
        flat = [value for each in maps for value in each.values()]
        entries = self.build_column(map_type.value, map_type.nullable, flat, inner, arrow.item_type)
        texts = self._scalar(Scalar("string"), names, set(map(type, names)), inner, pa.string(), "the key ")
        is_absent = np.array([type(value) is not dict for value in values], bool)
        mask = pa.array(is_absent) if is_absent.any() else None
        array = pa.MapArray.from_arrays(offsets_from_ends(ends), texts.fill_null(""), entries, type=arrow, mask=mask)
        check_sizes(map_type, pa.array(np.diff(ends, prepend=0), mask=is_absent), place, self.collector, "entries")
        return array

    def _as_map(self, value: Any, place: Place, at: int) -> Any:
        """A list of pairs, as Arrow returns a map, as a mapping; any other value unchanged."""
        if type(value) is not list or not value or not all(type(each) is tuple and len(each) == 2 for each in value):
            return value
        for key, times in Counter(key for key, _ in value).items():
            if times > 1:
                self.collector.add(place, at, "twice", f"the key {key!r} occurs twice")
        return dict(value)

    def _convert(
        self, values: list[Any], place: Place, kind: Any, make: Callable[[Any], Any], words: str
    ) -> tuple[list[Any], set[type]]:
        """The values as dict or list where they are of that kind, and marked as invalid where they are not."""
        converted = list(values)
        for at, value in enumerate(values):
            if type(value) is make or value is None or value is _INVALID:
                continue
            if isinstance(value, kind):
                converted[at] = make(value)
            elif make is list and isinstance(value, np.ndarray):
                converted[at] = list(value)
            else:
                self.collector.add(place, at, "type", f"is {_describe(value)}, not {words}")
                converted[at] = _INVALID
        return converted, set(map(type, converted))

    def _scalar(
        self, scalar: Scalar, values: list[Any], types: set[type], place: Place, arrow: pa.DataType, name: str = ""
    ) -> pa.Array:
        read = KINDS[scalar.kind].read if self.json else None
        exact = str if read else KINDS[scalar.kind].python
        if types - {exact, type(None)} or read or scalar.kind in _CHECKED:
            native: list[Any] = []
            for at, value in enumerate(values):
                try:
                    absent = value is None or value is _INVALID
                    native.append(None if absent else _read_value(scalar, value, exact, read, self.json))
                except _UnfitError as error:
                    self.collector.add(place, at, error.what, f"{name}{error}")
                    native.append(None)
            values = native
        if scalar.kind == "uuid":
            values = [None if value is None else value.bytes for value in values]
        try:
            array = pa.array(values, arrow)
        except _UNFIT:
            array = pa.concat_arrays([self._fit(scalar, value, place, at, arrow) for at, value in enumerate(values)])
        if scalar.kind == "float32":  # in which finite values may have become infinite
            infinite = np.flatnonzero(np.isinf(array.fill_null(0).to_numpy(zero_copy_only=False)))
            for at in infinite.tolist():
                if not math.isinf(values[at]):
                    self.collector.add(place, at, "bounds", f"{values[at]} is out of the range of float32")
        check_limits(scalar, array, place, self.collector)
        return array

    def _fit(self, scalar: Scalar, value: Any, place: Place, at: int, arrow: pa.DataType) -> pa.Array:
        """A value as a column, null if it does not fit into its type."""
        try:
            return pa.array([value], arrow)
        except _UNFIT:
            what = "length" if scalar.kind == "binary" else "bounds"
            self.collector.add(place, at, what, _range_message(scalar.kind, value, arrow))
            return pa.nulls(1, arrow)


_CHECKED = ("datetime", "datetime-local", "time", "decimal")
"""Kinds of which a value of the right type may still not be one."""


class _UnfitError(ValueError):
    """A value is none of its kind; `what` is the code of the fault."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what


def _read_value(scalar: Scalar, value: Any, exact: type, read: Callable[[Any], Any] | None, json: bool) -> Any:
    """A value as its built-in type, or from its JSON form."""
    native, kind = _as_builtin(value, exact), scalar.kind
    if native is MISSING:
        raise _UnfitError("type", _type_message(kind, value, json))
    if native is None:  # the value of a member of an enumeration
        return None
    try:
        native = read(native) if read else native
    except (ValueError, OverflowError) as error:
        inexact = isinstance(error, Unrepresentable)
        reason = f" {error}" if inexact else f", not {_expected_form(kind, json=True)}"
        raise _UnfitError("type", f"is {_describe(value)}{reason}") from None
    if kind in _CHECKED and kind != "decimal" and (native.tzinfo is not None) is not (kind == "datetime"):
        aware = kind == "datetime"
        problem = "has no time zone; give one, such as +00:00" if aware else "has a time zone; remove it"
        raise _UnfitError("type", f"{native.isoformat()} {problem}")
    if kind == "decimal" and (fault := decimal_fault(scalar, native)):  # Arrow would turn a very small one into 0
        raise _UnfitError("bounds", fault)
    return native


def _infer_column(scalar: Scalar, nullable: bool, values: list[Any], arrow: pa.DataType) -> pa.Array | None:
    """The column if Arrow's own inference finds exactly the kind, else None: the fast path for valid values.

    Arrow distinguishes text from bytes, and integers from booleans and fractions, but accepts booleans among fractions,
    so floats are not inferred.
    """
    inferred = _INFERRED.get(scalar.kind)
    if inferred is None:
        return None
    try:
        array = pa.array(values)
        if array.type != inferred or (array.null_count and not nullable):
            return None
        return array if inferred == arrow else array.cast(arrow)
    except _UNFIT:
        return None


_INFERRED = {"string": pa.string(), "json": pa.string(), "bool": pa.bool_(), **dict.fromkeys(RANGES, pa.int64())}
_UNFIT = (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError)


def _as_builtin(value: Any, exact: type) -> Any:
    """A value as a built-in type, or MISSING where it is of another type."""
    if value is None or type(value) is exact:
        return value
    if isinstance(value, enum.Enum):
        return _as_builtin(value.value, exact)
    if isinstance(value, np.generic):
        return _as_builtin(value.item(), exact)
    if exact is int:
        number = as_integer(value)
        return MISSING if number is None else number
    if exact is float and isinstance(value, int) and not isinstance(value, bool):
        with suppress(OverflowError):
            return converted if (converted := float(value)) == value else MISSING
        return MISSING
    if exact is uuid.UUID and isinstance(value, bytes) and len(value) == 16:  # as Parquet has it
        return uuid.UUID(bytes=value)
    if exact in (float, str, bytes) and isinstance(value, exact) and not isinstance(value, bool):
        return exact.__call__(value) if exact is not str else str.__str__(value)
    if isinstance(value, exact) and exact in (dt.datetime, dt.timedelta, uuid.UUID, decimal.Decimal):
        finer = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)  # pandas; NaT is not a time
        return MISSING if finer or value != value else value
    return MISSING


def _range_message(kind: str, value: Any, arrow: pa.DataType) -> str:
    """Why a value of the right type does not fit into its Arrow type."""
    if kind in RANGES:
        low, high = RANGES[kind]
        return f"{value} is out of the range of {kind}, {low} to {high}"
    if kind in ("string", "json") and (fault := surrogate_fault(value)):
        return fault
    if kind == "binary":
        return f"has {len(value)} bytes, not {arrow.byte_width}"
    return f"{value!r} does not fit into {arrow}"


def _suggest(name: str, value: Mapping[Any, Any], known: set[str]) -> str:
    """The unknown field of an object that is nearest to a missing one, in brackets; empty if none is near."""
    others = [str(other) for other in value if other not in known]
    close = nearest(name, others)
    return close.replace("did you mean", "there is").replace("?", "") if close else ""


_WORDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "text",
    bytes: "bytes",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    type(None): "null",
}


def _describe(value: Any) -> str:
    """What a value is; of a short text or number also the value itself."""
    words = _WORDS.get(type(value)) or with_article(type(value).__name__)
    text = repr(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return f"{words} ({text})" if text and len(text) <= MAX_SHOWN else words


def _type_message(kind: str, value: Any, json: bool) -> str:
    """Why a value does not belong to a kind."""
    if kind in RANGES and isinstance(value, float) and value.is_integer():
        low, high = RANGES[kind]
        if low <= value <= high:
            return f"is {_describe(value)} of at least 2**53, where a float is not an exact integer; give an integer"
        return f"{value!r} is out of the range of {kind}, {low} to {high}"
    if kind in ("float32", "float64") and isinstance(value, int) and not isinstance(value, bool):
        return f"is {_describe(value)} that no float equals exactly"
    return f"is {_describe(value)}, not {_expected_form(kind, json=json)}"


def _expected_form(kind: str, *, json: bool) -> str:
    """The form of a kind's values, in words."""
    if json and KINDS[kind].read:
        form = {"binary": "base64", "uuid": "a UUID", "duration": "an ISO 8601 duration", "decimal": "a decimal number"}
        return f"the text of {form.get(kind, with_article(kind.split('-')[0]))}"
    if kind in RANGES:
        return "an integer"
    words = {"float32": "a number", "float64": "a number", "bool": "true or false", "binary": "bytes"}
    words |= {"string": "text", "json": "text"}
    return words.get(kind) or with_article(KINDS[kind].python.__name__)
