"""Rows held to a record, by columns: what is wrong with which row, and the table that the right ones make.

Arrow alone is no validator: of a missing field it makes a null, of an unknown one nothing, of 1.5 a whole number. So
the names and types of Python rows are looked at before they become columns, all values of a field at once; what is left
to see (bounds, lengths, choices) is seen in the columns, in the same way for rows and for tables.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import operator
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.errors import DataError, Fault, SpecError, with_article
from evaluand.registry import nearest
from evaluand.schema import keys
from evaluand.schema.arrow import arrow_type, is_list, kind_of, write_arrow
from evaluand.schema.kinds import KINDS, MISSING, RANGES, Array, Field, Map, Record, Scalar, Type, json_value, whole


@dataclass(frozen=True)
class RowFault(Fault):
    """One thing wrong in one row.

    Attributes:
        row: the number of the row, from 0; None where a whole column is wrong.
        index: its `_index_`, where it has one.
        path: where in the row: `responses[0].text`.
        what: `missing`, `extra`, `type`, `null`, `bounds`, `length`, `choice`, `pattern`, `json` or `twice`.
    """

    row: int | None = None
    index: int | None = None
    path: str = ""
    what: str = ""


class SchemaError(DataError):
    """Rows break their schema; `faults` has every fault of every row, in the order of the rows."""


def check_rows(record: Record, data: Any, *, json: bool = False) -> tuple[pa.Table | None, list[RowFault]]:
    """The table of the rows, or None where one breaks the record, and all that is wrong.

    Args:
        record: what the rows shall be.
        data: an Arrow table or batch, or any number of mappings.
        json: the rows are as JSON has them: times, UUIDs, decimals as texts, bytes as base64.
    """
    if isinstance(data, pa.Table | pa.RecordBatch):
        return _of_table(record, data)
    if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
        raise SpecError(f"rows are a list of mappings or an Arrow table, not {with_article(type(data).__name__)}")
    schema, made, faults, first, indices = write_arrow(record), [], [], 0, _Indices(record)
    iterator = iter(data)
    while rows := list(islice(iterator, _CHUNK)):
        found = _Found(partial(_index_of, rows), first)
        for at, row in enumerate(rows):
            if row is None:
                found.add(_Place(), at, "null", "is null, not an object")
        array = _Builder(found, json).record(record, rows, _Place(), list(schema))
        columns = [array.field(i) for i in range(len(schema))]
        indices.add(columns, first)
        faults += found.sorted()
        if not faults:
            made.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        first += len(rows)
    faults = _sorted(faults + indices.faults())
    return (None if faults else pa.Table.from_batches(made, schema)), faults


_CHUNK = 1024
"""Rows at a time: few enough that their values stay in the processor's cache from one look to the next."""


def _index_of(rows: Sequence[Any], row: int) -> Any:
    return rows[row].get(keys.INDEX) if isinstance(rows[row], Mapping) else None


class _Found:
    """Collects faults."""

    def __init__(self, index: Callable[[int], Any], first: int = 0) -> None:
        self.faults: list[RowFault] = []
        self._index, self._first = index, first

    def add(self, place: _Place, at: int, what: str, message: str) -> None:
        row, path = place.of(at)
        index = self._index(row)
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        row += self._first
        name = f"row {row}" if index is None else f"row {row} ({keys.INDEX} {index})"
        self.faults.append(RowFault(f"{name}: {path}" if path else name, message, row, index, path, what))

    def add_column(self, path: str, message: str, what: str = "type") -> None:
        self.faults.append(RowFault(path, message, path=path, what=what))

    def sorted(self) -> list[RowFault]:
        return _sorted(self.faults)


def _sorted(faults: list[RowFault]) -> list[RowFault]:
    return sorted(faults, key=lambda fault: -1 if fault.row is None else fault.row)


class _Indices:
    """Finds the rows of a dataset whose `_index_` an earlier one has."""

    def __init__(self, record: Record) -> None:
        self._at = record.names.index(keys.INDEX) if keys.identifies(record) else None
        self._rows: list[np.ndarray[Any, Any]] = []
        self._values: list[np.ndarray[Any, Any]] = []

    def add(self, columns: Sequence[pa.Array], first: int) -> None:
        if self._at is not None:
            self._rows.append(first + np.flatnonzero(_flags(columns[self._at].is_valid())))
            self._values.append(columns[self._at].drop_null().to_numpy())

    def faults(self) -> list[RowFault]:
        if not self._rows:
            return []
        rows, values = np.concatenate(self._rows), np.concatenate(self._values)
        order = np.argsort(values, kind="stable")
        again = np.concatenate([[False], np.diff(values[order]) == 0])[: len(order)]
        firsts = np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))
        return [
            self._fault(*(int(each) for each in (rows[order[at]], values[order[at]], rows[order[firsts[at]]])))
            for at in np.flatnonzero(again)
        ]

    @staticmethod
    def _fault(row: int, index: int, first: int) -> RowFault:
        where, told = (
            f"row {row} ({keys.INDEX} {index}): {keys.INDEX}",
            f"row {first} has it already; give each its own",
        )
        return RowFault(where, told, row, index, keys.INDEX, "twice")


class _Place:
    """Where the values of a flattened column stand; told only of those that are wrong."""

    def of(self, at: int) -> tuple[int, str]:
        return at, ""

    def field(self, name: str) -> _Place:
        return _Named(self, name)

    def items(self, ends: np.ndarray[Any, Any], keys: Sequence[Any] | None = None) -> _Place:
        return _Item(self, ends, keys)


@dataclass
class _Named(_Place):
    parent: _Place
    name: str

    def of(self, at: int) -> tuple[int, str]:
        row, path = self.parent.of(at)
        return row, f"{path}.{self.name}" if path else self.name


@dataclass
class _Item(_Place):
    parent: _Place
    ends: np.ndarray[Any, Any]
    keys: Sequence[Any] | None

    def of(self, at: int) -> tuple[int, str]:
        owner = int(np.searchsorted(self.ends, at, side="right"))
        row, path = self.parent.of(owner)
        if self.keys is not None:
            return row, f"{path}[{self.keys[at]!r}]"
        return row, f"{path}[{at - (int(self.ends[owner - 1]) if owner else 0)}]"


class _Wrong:
    """Stands for a value that has been found wrong already, or is inside one."""


_WRONG = _Wrong()
_UNEVEN = _Wrong()


# Python rows


class _Builder:
    """Makes columns of values, and finds what is wrong with them."""

    def __init__(self, found: _Found, json: bool) -> None:
        self.found, self.json = found, json

    def record(self, record: Record, values: list[Any], place: _Place, fields: list[pa.Field]) -> pa.StructArray:
        names = record.names
        try:
            held = [[value[name] for value in values] for name in names]
            mask = None if sum(map(len, values)) == len(names) * len(values) else _UNEVEN
        except (KeyError, TypeError, IndexError):
            mask = _UNEVEN
        if mask is _UNEVEN:
            held, mask = self._uneven(record, values, place)
        columns = [
            self.column(given.type, given.blank, column, place.field(given.name), field.type)
            for given, column, field in zip(record.fields, held, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    def _uneven(self, record: Record, values: list[Any], place: _Place) -> tuple[list[list[Any]], pa.Array]:
        """The columns of values that are not all objects with just the fields of the record."""
        values, _ = self._as(values, place, Mapping, dict, "an object")
        known = set(record.names)
        if any(known.symmetric_difference(shape) for shape in {tuple(each) for each in values if type(each) is dict}):
            self._names(record, values, place)
        held = [[self._value(given, value) for value in values] for given in record.fields]
        return held, pa.array([type(value) is not dict for value in values], pa.bool_())

    def column(self, given: Type, nullable: bool, values: list[Any], place: _Place, arrow: pa.DataType) -> pa.Array:
        quick = _inferred(given, nullable, values, arrow) if isinstance(given, Scalar) else None
        if quick is not None and isinstance(given, Scalar):
            _check_limits(given, quick, place, self.found)
            return quick
        types = set(map(type, values))
        if not nullable and type(None) in types:
            for at, value in enumerate(values):
                if value is None:
                    self.found.add(place, at, "null", "is null")
        if isinstance(given, Scalar):
            return self._scalar(given, values, types, place, arrow)
        if isinstance(given, Record):
            return self.record(given, values, place, [arrow.field(i) for i in range(arrow.num_fields)])
        if isinstance(given, Map):
            return self._map(given, values, types, place, arrow)
        return self._list(given, values, types, place, arrow)

    def _names(self, record: Record, values: list[Any], place: _Place) -> None:
        known, required = set(record.names), [each.name for each in record.fields if each.required]
        for at, value in enumerate(values):
            if type(value) is dict:
                for name in required:
                    if name not in value:
                        self.found.add(place.field(name), at, "missing", f"is missing{_near(name, value, known)}")
                for name in value:
                    if name not in known:
                        self.found.add(place.field(str(name)), at, "extra", f"is no field{nearest(str(name), known)}")

    def _value(self, given: Field, value: Any) -> Any:
        if type(value) is not dict:
            return _WRONG
        held = value.get(given.name, MISSING)
        if held is not MISSING:
            return held
        if given.required:
            return _WRONG
        return json_value(given.type, given.filling) if self.json else given.filling

    def _list(self, given: Array, values: list[Any], types: set[type], place: _Place, arrow: pa.DataType) -> pa.Array:
        if types - {list, _Wrong, type(None)}:
            values, types = self._as(values, place, list | tuple, list, "a list")
        lists = values if types <= {list} else [value if type(value) is list else [] for value in values]
        ends = np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)))
        flat = list(chain.from_iterable(lists))
        items = self.column(given.item, given.nullable, flat, place.items(ends), arrow.value_type)
        mask = None if types <= {list} else pa.array([type(value) is not list for value in values])
        return _list_of(given, items, ends, mask, place, arrow, self.found)

    def _map(self, given: Map, values: list[Any], types: set[type], place: _Place, arrow: pa.DataType) -> pa.Array:
        if types - {dict, _Wrong, type(None)}:
            values, types = self._as(values, place, Mapping, dict, "an object")
        maps = [value if type(value) is dict else {} for value in values]
        ends = np.cumsum(np.fromiter(map(len, maps), np.int64, len(maps)))
        names = list(chain.from_iterable(maps))
        inner = place.items(ends, names)
        held = self.column(
            given.value, given.nullable, [v for each in maps for v in each.values()], inner, arrow.item_type
        )
        texts = self._scalar(Scalar("string"), names, set(map(type, names)), inner, pa.string(), "the key ")
        mask = None if types <= {dict} else pa.array([type(value) is not dict for value in values])
        array = pa.MapArray.from_arrays(_offsets(ends), texts.fill_null(""), held, type=arrow, mask=mask)
        _check_sizes(given, _sizes(array), place, self.found, "entries")
        return array

    def _as(
        self, values: list[Any], place: _Place, kind: Any, make: Callable[[Any], Any], words: str
    ) -> tuple[list[Any], set[type]]:
        """The values with those of another class made plain, and those of another kind marked as wrong."""
        made = list(values)
        for at, value in enumerate(values):
            if type(value) is make or value is None or value is _WRONG:
                continue
            if isinstance(value, kind):
                made[at] = make(value)
            elif make is list and isinstance(value, np.ndarray):
                made[at] = list(value)
            else:
                self.found.add(place, at, "type", f"is {_told(value)}, not {words}")
                made[at] = _WRONG
        return made, set(map(type, made))

    def _scalar(
        self, given: Scalar, values: list[Any], types: set[type], place: _Place, arrow: pa.DataType, name: str = ""
    ) -> pa.Array:
        kind = KINDS[given.kind]
        read = kind.read if self.json else None
        exact = str if read else kind.python
        if types - {exact, type(None)}:
            values = self._exact(given, values, place, exact, name)
        if read:
            values = self._read(given, values, place, read)
        if given.kind in ("datetime", "datetime-local", "time"):
            self._zones(given.kind, values, place)
        if given.kind == "decimal":
            values = self._decimals(given, values, place)
        if given.kind == "uuid":
            values = [None if value is None else value.bytes for value in values]
        try:
            array = pa.array(values, arrow)
        except _UNFIT:
            array = pa.array(self._each(given, values, place, arrow), arrow)
        if given.kind == "float32":
            self._infinite(array, values, place)
        _check_limits(given, array, place, self.found)
        return array

    def _exact(self, given: Scalar, values: list[Any], place: _Place, exact: type, name: str) -> list[Any]:
        made: list[Any] = []
        for at, value in enumerate(values):
            plain = _plain(value, exact)
            if plain is MISSING:
                wanted = (
                    "a text" if exact is str and given.kind in ("string", "json") else _wanted(given.kind, self.json)
                )
                self.found.add(place, at, "type", f"{name}is {_told(value)}, not {wanted}")
                plain = None
            made.append(plain)
        return made

    def _read(self, given: Scalar, values: list[Any], place: _Place, read: Callable[[Any], Any]) -> list[Any]:
        made: list[Any] = []
        for at, value in enumerate(values):
            try:
                made.append(None if value is None else read(value))
            except (ValueError, OverflowError):
                self.found.add(place, at, "type", f"is {_told(value)}, not {_wanted(given.kind, True)}")
                made.append(None)
        return made

    def _zones(self, kind: str, values: list[Any], place: _Place) -> None:
        aware = kind == "datetime"
        for at, value in enumerate(values):
            if value is not None and (value.tzinfo is not None) is not aware:
                told = "has no time zone; give one, such as +00:00" if aware else "has a time zone; give none"
                self.found.add(place, at, "type", f"{value.isoformat()} {told}")
                values[at] = None

    def _decimals(self, given: Scalar, values: list[Any], place: _Place) -> list[Any]:
        """The decimals that their column holds; of one far too small Arrow makes 0."""
        made: list[Any] = []
        for at, value in enumerate(values):
            told = "" if value is None else _misfit(given, value)
            if told:
                self.found.add(place, at, "bounds", told)
            made.append(None if told else value)
        return made

    def _each(self, given: Scalar, values: list[Any], place: _Place, arrow: pa.DataType) -> list[Any]:
        """The values that the type holds, where not all of them are."""
        made: list[Any] = []
        low, high = RANGES.get(given.kind, (None, None))
        for at, value in enumerate(values):
            try:
                pa.array([value], arrow)
            except _UNFIT:
                if low is not None and high is not None:
                    told = f"{value} is not between {low} and {high}, which {given.kind} holds"
                elif given.kind in ("string", "json"):
                    told = "holds half a character (a lone surrogate), which is no text"
                else:
                    told = f"{value!r} does not fit into {arrow}"
                length = given.kind == "binary"
                self.found.add(place, at, "length" if length else "bounds", _bytes(value, arrow) if length else told)
                value = None
            made.append(value)
        return made

    def _infinite(self, array: pa.Array, values: list[Any], place: _Place) -> None:
        beyond = np.isinf(array.fill_null(0).to_numpy(zero_copy_only=False))
        for at in np.flatnonzero(beyond):
            if not np.isinf(float(values[at])):
                self.found.add(place, int(at), "bounds", f"{values[at]} is more than float32 holds")


def _inferred(given: Scalar, nullable: bool, values: list[Any], arrow: pa.DataType) -> pa.Array | None:
    """A column that Arrow itself, not told what to expect, sees to hold the kind and nothing else; None otherwise.

    It tells texts from bytes and whole numbers from truths and fractions; it takes a truth among fractions for one.
    """
    wanted = _INFERRED.get(given.kind)
    if wanted is None:
        return None
    try:
        array = pa.array(values)
        if array.type != wanted or (array.null_count and not nullable):
            return None
        return array if wanted == arrow else array.cast(arrow)
    except _UNFIT:
        return None


_INFERRED = {"string": pa.string(), "json": pa.string(), "bool": pa.bool_(), **dict.fromkeys(RANGES, pa.int64())}
_UNFIT = (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError)


def _plain(value: Any, exact: type) -> Any:
    """A value as the built-in type it is one of, or MISSING where it is none."""
    if value is None or value is _WRONG:
        return None
    if type(value) is exact:
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, exact)
    if isinstance(value, np.generic):
        return _plain(value.item(), exact)
    if exact is int:
        number = whole(value)
        return MISSING if number is None else number
    if exact is float and isinstance(value, int) and not isinstance(value, bool):
        made = _float(value)
        return made if made == value else MISSING
    if exact in (float, str, bytes) and isinstance(value, exact) and not isinstance(value, bool):
        return exact.__call__(value) if exact is not str else str.__str__(value)
    if isinstance(value, exact) and exact in (dt.datetime, dt.timedelta, uuid.UUID, decimal.Decimal):
        finer = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)  # pandas; NaT is no time
        return MISSING if finer or value != value else value
    return MISSING


def _float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _misfit(given: Scalar, value: decimal.Decimal) -> str:
    """Why a decimal does not fit into its column; nothing where it does."""
    if not value.is_finite():
        return f"{value} is not finite"
    _, digits, exponent = value.as_tuple()
    kept = "".join(map(str, digits)).rstrip("0")
    places = len(kept) - len(digits) - int(exponent) if kept else 0
    most, after = given.digits or 0, given.places or 0
    if places > after:
        return f"{_shown(value)} has {places} decimal places, more than {after}"
    if len(kept) - places > most - after:
        return f"{_shown(value)} has {len(kept) - places} digits before the point, more than {most - after}"
    return ""


def _bytes(value: Any, arrow: pa.DataType) -> str:
    return f"has {len(value)} bytes, not {arrow.byte_width}"


def _near(name: str, value: Mapping[Any, Any], known: set[str]) -> str:
    others = [str(other) for other in value if other not in known]
    close = nearest(name, others)
    return close.replace("did you mean", "there is").replace("?", "") if close else ""


_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    bytes: "bytes",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    type(None): "null",
}


def _told(value: Any) -> str:
    """What a value is, and a short one itself."""
    words = _WORDS.get(type(value)) or with_article(type(value).__name__)
    text = repr(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return f"{words} ({text})" if text and len(text) <= _SHOWN else words


_SHOWN = 40


def _wanted(kind: str, json: bool) -> str:
    if json and KINDS[kind].read:
        form = {"binary": "base64", "uuid": "a UUID", "duration": "an ISO 8601 duration", "decimal": "a decimal number"}
        return f"the text of {form.get(kind, with_article(kind.split('-')[0]))}"
    if kind in RANGES:
        return "a whole number"
    words = {"float32": "a number", "float64": "a number", "bool": "true or false", "binary": "bytes"}
    return words.get(kind) or with_article(KINDS[kind].python.__name__)


def _offsets(ends: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(np.concatenate([[0], ends]).astype(np.int32))


# Arrow tables


def _of_table(record: Record, data: pa.Table | pa.RecordBatch) -> tuple[pa.Table | None, list[RowFault]]:
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    shape = _Found(lambda row: None)
    _check_types(record, {each.name: each.type for each in table.schema}, list(table.schema.names), "", shape)
    if shape.faults:
        return None, shape.sorted()
    schema, made, faults, first, indices = write_arrow(record), [], [], 0, _Indices(record)
    for batch in table.to_batches():
        found = _Found(_index_in(batch.column(keys.INDEX) if keys.INDEX in batch.schema.names else None), first)
        conform = _Conformer(found)
        columns = [
            conform.column(each, batch, _Place().field(each.name), field.type)
            for each, field in zip(record.fields, schema, strict=True)
        ]
        indices.add(columns, first)
        faults += found.sorted()
        if not faults:
            made.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        first += batch.num_rows
    faults = _sorted(faults + indices.faults())
    return (None if faults else pa.Table.from_batches(made, schema)), faults


def _index_in(indices: pa.Array | None) -> Callable[[int], Any]:
    return lambda row: None if indices is None else indices[row].as_py()


def _check_types(record: Record, types: Mapping[str, pa.DataType], names: list[str], path: str, found: _Found) -> None:
    """Finds columns that are missing, not known or of another type: all their rows are wrong."""
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


def _check_type(given: Type, held: pa.DataType, path: str, found: _Found) -> None:
    if pa.types.is_null(held):
        return
    if isinstance(given, Record) and pa.types.is_struct(held):
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

    def __init__(self, found: _Found) -> None:
        self.found = found

    def column(self, given: Field, batch: pa.RecordBatch, place: _Place, arrow: pa.DataType) -> pa.Array:
        if given.name not in batch.schema.names:
            return _filled(given, batch.num_rows, arrow)
        nothing = np.zeros(batch.num_rows, bool)
        return self.values(given.type, given.blank, batch.column(given.name), place, arrow, nothing)

    def values(
        self,
        given: Type,
        nullable: bool,
        array: pa.Array,
        place: _Place,
        arrow: pa.DataType,
        absent: np.ndarray[Any, Any],
    ) -> pa.Array:
        """The values as the type has them; those that are `absent` stand in no row."""
        if not nullable and array.null_count:
            for at in np.flatnonzero(_flags(array.is_null()) & ~absent):
                self.found.add(place, int(at), "null", "is null")
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), arrow)
        if isinstance(given, Record):
            return self._record(given, array, place, arrow, absent)
        if isinstance(given, Map):
            return self._map(given, array, place, arrow)
        if isinstance(given, Array):
            return self._list(given, array, place, arrow)
        return self._scalar(given, array, place, arrow)

    def _record(
        self, given: Record, array: pa.Array, place: _Place, arrow: pa.DataType, absent: np.ndarray[Any, Any]
    ) -> pa.Array:
        names = [array.type.field(i).name for i in range(array.type.num_fields)]
        held = dict(zip(names, array.flatten(), strict=True))
        missing = _flags(array.is_null())
        fields = [arrow.field(i) for i in range(arrow.num_fields)]
        columns = [
            self.values(each.type, each.blank, held[each.name], place.field(each.name), field.type, absent | missing)
            if each.name in held
            else _filled(each, len(array), field.type)
            for each, field in zip(given.fields, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(missing))

    def _list(self, given: Array, array: pa.Array, place: _Place, arrow: pa.DataType) -> pa.Array:
        lengths = _numbers(pc.list_value_length(array).fill_null(0))
        ends = np.cumsum(lengths)
        none = array.null_count == len(array)  # where Arrow cannot flatten extension types
        flat, mask = array.values.slice(0, 0) if none else array.flatten(), array.is_null()
        if len(flat) != (int(ends[-1]) if len(ends) else 0):
            lengths = np.where(_flags(mask), 0, lengths)
            ends = np.cumsum(lengths)
        nothing = np.zeros(len(flat), bool)
        items = self.values(given.item, given.nullable, flat, place.items(ends), arrow.value_type, nothing)
        return _list_of(given, items, ends, mask, place, arrow, self.found)

    def _map(self, given: Map, array: pa.Array, place: _Place, arrow: pa.DataType) -> pa.Array:
        array = pa.concat_arrays([array])
        offsets = np.asarray(array.offsets)
        start, end = int(offsets[0]), int(offsets[-1])
        names, held = array.keys.slice(start, end - start), array.items.slice(start, end - start)
        inner = place.items(offsets[1:] - start, names.to_pylist())
        nothing = np.zeros(len(held), bool)
        values = self.values(given.value, given.nullable, held, inner, arrow.item_type, nothing)
        made = pa.MapArray.from_arrays(
            _offsets(offsets[1:] - start), names.cast(pa.string()), values, type=arrow, mask=array.is_null()
        )
        _check_sizes(given, _sizes(made), place, self.found, "entries")
        return made

    def _scalar(self, given: Scalar, array: pa.Array, place: _Place, arrow: pa.DataType) -> pa.Array:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        try:
            made = _cast(array, arrow)
        except (pa.ArrowException, ValueError):
            made = self._each(given, array, place, arrow)
        if given.kind == "float32" and not pa.types.is_float32(array.type):
            for at in np.flatnonzero(_flags(pc.is_inf(made)) & ~_flags(pc.is_inf(array.cast(pa.float64())))):
                self.found.add(place, int(at), "bounds", f"{array[at].as_py()} is more than float32 holds")
        _check_limits(given, made, place, self.found)
        return made

    def _each(self, given: Scalar, array: pa.Array, place: _Place, arrow: pa.DataType) -> pa.Array:
        parts = []
        for at in range(len(array)):
            one = array.slice(at, 1)
            try:
                parts.append(_cast(one, arrow))
            except (pa.ArrowException, ValueError):
                value = one[0].as_py()
                told = _misfit(given, value) if given.kind == "decimal" else f"{value!r} does not fit into {arrow}"
                self.found.add(place, at, "bounds", told)
                parts.append(pa.nulls(1, arrow))
        return pa.concat_arrays(parts) if parts else pa.nulls(0, arrow)


def _cast(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    if isinstance(arrow, pa.BaseExtensionType):
        return array if array.type == arrow else arrow.wrap_array(array.cast(arrow.storage_type))
    return array if array.type == arrow else array.cast(arrow)


def _filled(given: Field, count: int, arrow: pa.DataType) -> pa.Array:
    """A column that is missing and may be."""
    if given.filling is None:
        return pa.nulls(count, arrow)
    row, _ = check_rows(Record((given,)), [{given.name: given.filling}])
    if row is None:
        raise SpecError(f"the default of {given.name!r} breaks its own schema")
    return row.column(0).chunk(0).take(pa.array(np.zeros(count, np.int64)))


# What both have


def _check_limits(given: Scalar, array: pa.Array, place: _Place, found: _Found) -> None:
    """Finds the values that break a limit."""
    for what, told, bad in _broken(given, array):
        for at in np.flatnonzero(bad):
            found.add(place, int(at), what, f"{_shown(array[int(at)].as_py())} {told}")
    binary = given.kind == "binary"
    if given.min_length is not None or given.max_length is not None:
        sizes = pc.binary_length(array) if binary else pc.utf8_length(array)
        _check_sizes(given, sizes, place, found, "bytes" if binary else "characters")


_COMPARED: Mapping[str, tuple[Callable[[Any, Any], Any], str]] = {
    "minimum": (operator.ge, "is less than"),
    "maximum": (operator.le, "is more than"),
    "exclusive_minimum": (operator.gt, "is not more than"),
    "exclusive_maximum": (operator.lt, "is not less than"),
}


def _broken(given: Scalar, array: pa.Array) -> Iterator[tuple[str, str, np.ndarray[Any, Any]]]:
    """Each limit that may be broken: what it is, in words, and which values break it."""
    plain = given.kind in RANGES or given.kind in ("float32", "float64")
    for name, (compare, words) in _COMPARED.items():
        bound = getattr(given, name)
        if bound is None:
            continue
        if plain:  # NumPy compares with bounds that are no whole number, or that 63 bits do not hold
            held = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
            bad = ~compare(held, bound)
            if array.null_count:
                bad &= ~_flags(array.is_null())
        else:
            bad = _each_breaks(array, partial(_holds, compare, bound))
        yield "bounds", f"{words} {_shown(bound)}", bad
    if given.multiple_of is not None:
        bad = _each_breaks(array, lambda value: _is_multiple(value, given.multiple_of))
        yield "bounds", f"is no multiple of {given.multiple_of}", bad
    if given.finite:
        yield "bounds", "is not finite", ~_flags(pc.is_finite(array), absent=True)
    if given.pattern is not None:
        matches = pc.match_substring_regex(array, given.pattern)
        yield "pattern", f"does not match {given.pattern}", ~_flags(matches, absent=True)
    if given.choices:
        yield "choice", f"is none of {', '.join(map(_shown, given.choices))}", _not_chosen(given, array)
    if given.kind == "json":
        yield "json", "is no JSON", _each_breaks(array, _is_json)


def _holds(compare: Callable[[Any, Any], Any], bound: Any, value: Any) -> bool:
    return bool(compare(value, bound))


def _list_of(
    given: Array,
    items: pa.Array,
    ends: np.ndarray[Any, Any],
    mask: pa.Array | None,
    place: _Place,
    arrow: pa.DataType,
    found: _Found,
) -> pa.Array:
    """Lists of items, whose lengths are looked at."""
    kind = pa.list_(arrow.value_field) if given.fixed else arrow
    array = pa.ListArray.from_arrays(_offsets(ends), items, type=kind, mask=mask)
    _check_sizes(given, pc.list_value_length(array), place, found, "items")
    if not given.fixed:
        return array
    if found.faults or array.null_count == len(array):
        return pa.nulls(len(array), arrow)  # with faults, none is used
    if array.null_count:  # a list that is null takes as much room as any other
        starts = np.where(_flags(array.is_null()), 0, ends - arrow.list_size)
        items = items.take(pa.array(np.add.outer(starts, np.arange(arrow.list_size)).ravel()))
    return pa.FixedSizeListArray.from_arrays(items, type=arrow, mask=mask)


def _check_sizes(given: Scalar | Array | Map, sizes: pa.Array, place: _Place, found: _Found, unit: str) -> None:
    least, most = given.min_length, given.max_length
    for bound, compare, words in ((least, pc.less, "fewer than "), (most, pc.greater, "more than ")):
        if bound is None:
            continue
        words = "not " if least == most else words
        for at in np.flatnonzero(_flags(compare(sizes, bound))):
            found.add(place, int(at), "length", f"has {sizes[int(at)].as_py()} {unit}, {words}{bound}")


def _sizes(array: pa.MapArray) -> pa.Array:
    return pa.array(np.diff(np.asarray(array.offsets)), mask=_flags(array.is_null()))


def _not_chosen(given: Scalar, array: pa.Array) -> np.ndarray[Any, Any]:
    if given.kind in ("uuid", "decimal", "binary"):
        return _each_breaks(array, lambda value: value in given.choices)
    chosen = pc.is_in(array, value_set=pa.array(given.choices, array.type))
    return np.array(~(_flags(chosen) | _flags(array.is_null())))


def _each_breaks(array: pa.Array, holds: Callable[[Any], bool]) -> np.ndarray[Any, Any]:
    return np.array([value is not None and not holds(value) for value in array.to_pylist()], bool)


def _is_multiple(value: Any, of: Any) -> bool:
    if isinstance(value, float):
        return bool(np.isfinite(value) and abs(value / of - round(value / of)) < _NEARLY)
    return bool(value % of == 0)


_NEARLY = 1e-9


def _is_json(value: str) -> bool:
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return False
    return True


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | bytes | int | float) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _flags(array: pa.Array, absent: bool = False) -> np.ndarray[Any, Any]:
    """Booleans of Arrow as NumPy's; a null is `absent`."""
    return np.asarray(array.fill_null(absent).to_numpy(zero_copy_only=False), bool)


def _numbers(array: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)
