"""Rows of Python objects made into columns.

Arrow alone is no validator: of a missing field it makes a null, of an unknown one nothing, of 1.5 a whole number. So
the names and types of the values are looked at before they become columns, all values of a field at once.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from evaluand.core.errors import with_article
from evaluand.core.registry import nearest
from evaluand.data.schema import keys
from evaluand.data.schema.arrow import write_arrow
from evaluand.data.schema.faults import Found, Place
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
    Unheld,
    json_value,
    whole,
)
from evaluand.data.schema.limits import SHOWN, check_limits, check_sizes, from_ends, list_of, map_sizes, misfit


def of_objects(
    record: StructType, data: Iterable[Any], counts: Counter[tuple[str, str]], *, json: bool, most: int | None = None
) -> Iterator[tuple[list[pa.Array], Found]]:
    """The columns of rows, some rows at a time, and what is wrong with them; with faults, the columns are of no use."""
    fields, first, iterator = list(write_arrow(record)), 0, iter(data)
    while rows := list(islice(iterator, _CHUNK)):
        found = Found(counts, most, partial(_index_of, rows), first)
        for at, row in enumerate(rows):
            if row is None:
                found.add(Place(), at, "null", "is null, not an object")
        array = _Builder(found, json).record(record, rows, Place(), fields)
        yield [array.field(i) for i in range(len(fields))], found
        first += len(rows)


_CHUNK = 1024
"""Rows at a time: few enough that their values stay in the processor's cache from one look to the next."""


def _index_of(rows: Sequence[Any], row: int) -> Any:
    return rows[row].get(keys.INDEX) if isinstance(rows[row], Mapping) else None


class _Wrong:
    """Stands for a value that has been found wrong already, or is inside one."""


_WRONG = _Wrong()


class _Builder:
    """Makes columns of values, and finds what is wrong with them."""

    def __init__(self, found: Found, json: bool) -> None:
        self.found, self.json = found, json

    def record(self, record: StructType, values: list[Any], place: Place, fields: list[pa.Field]) -> pa.StructArray:
        names, held, mask = record.names, None, None
        if set(map(type, values)) <= {dict} and sum(map(len, values)) == len(names) * len(values):
            with suppress(KeyError):
                held = [[value[name] for value in values] for name in names]
        if held is None:
            held, mask = self._uneven(record, values, place)
        columns = [
            self.column(given.type, given.blank, column, place.field(given.name), field.type)
            for given, column, field in zip(record.fields, held, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    def _uneven(self, record: StructType, values: list[Any], place: Place) -> tuple[list[list[Any]], pa.Array]:
        """The columns of values that are not all objects with just the fields of the record."""
        values, _ = self._as(values, place, Mapping, dict, "an object")
        known = set(record.names)
        if any(known.symmetric_difference(shape) for shape in {tuple(each) for each in values if type(each) is dict}):
            self._names(record, values, place)
        held = [[self._value(given, value) for value in values] for given in record.fields]
        return held, pa.array([type(value) is not dict for value in values], pa.bool_())

    def column(self, given: Type, nullable: bool, values: list[Any], place: Place, arrow: pa.DataType) -> pa.Array:
        quick = _inferred(given, nullable, values, arrow) if isinstance(given, Scalar) else None
        if quick is not None and isinstance(given, Scalar):
            check_limits(given, quick, place, self.found)
            return quick
        types = set(map(type, values))
        if not nullable and type(None) in types:
            nulls = [at for at, value in enumerate(values) if value is None]
            self.found.add_all(place, nulls, "null", lambda _: "is null")
        if isinstance(given, Scalar):
            return self._scalar(given, values, types, place, arrow)
        if isinstance(given, StructType):
            return self.record(given, values, place, [arrow.field(i) for i in range(arrow.num_fields)])
        if isinstance(given, Map):
            return self._map(given, values, types, place, arrow)
        return self._list(given, values, types, place, arrow)

    def _names(self, record: StructType, values: list[Any], place: Place) -> None:
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

    def _list(self, given: Array, values: list[Any], types: set[type], place: Place, arrow: pa.DataType) -> pa.Array:
        if types - {list, _Wrong, type(None)}:
            values, types = self._as(values, place, list | tuple, list, "a list")
        lists = values if types <= {list} else [value if type(value) is list else [] for value in values]
        ends = np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)))
        flat = list(chain.from_iterable(lists))
        items = self.column(given.item, given.nullable, flat, place.items(ends), arrow.value_type)
        mask = None if types <= {list} else pa.array([type(value) is not list for value in values])
        return list_of(given, items, ends, mask, place, arrow, self.found)

    def _map(self, given: Map, values: list[Any], types: set[type], place: Place, arrow: pa.DataType) -> pa.Array:
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
        array = pa.MapArray.from_arrays(from_ends(ends), texts.fill_null(""), held, type=arrow, mask=mask)
        check_sizes(given, map_sizes(array), place, self.found, "entries")
        return array

    def _as(
        self, values: list[Any], place: Place, kind: Any, make: Callable[[Any], Any], words: str
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
        self, given: Scalar, values: list[Any], types: set[type], place: Place, arrow: pa.DataType, name: str = ""
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
        check_limits(given, array, place, self.found)
        return array

    def _exact(self, given: Scalar, values: list[Any], place: Place, exact: type, name: str) -> list[Any]:
        made = [_plain(value, exact) for value in values]
        wrong = [at for at, plain in enumerate(made) if plain is MISSING]
        self.found.add_all(place, wrong, "type", lambda at: name + _unlike(given.kind, values[at], self.json))
        return [None if plain is MISSING else plain for plain in made] if wrong else made

    def _read(self, given: Scalar, values: list[Any], place: Place, read: Callable[[Any], Any]) -> list[Any]:
        made: list[Any] = []
        for at, value in enumerate(values):
            try:
                made.append(None if value is None else read(value))
            except (ValueError, OverflowError) as error:
                told = f" {error}" if isinstance(error, Unheld) else f", not {_wanted(given.kind, True)}"
                self.found.add(place, at, "type", f"is {_told(value)}{told}")
                made.append(None)
        return made

    def _zones(self, kind: str, values: list[Any], place: Place) -> None:
        aware = kind == "datetime"
        for at, value in enumerate(values):
            if value is not None and (value.tzinfo is not None) is not aware:
                told = "has no time zone; give one, such as +00:00" if aware else "has a time zone; give none"
                self.found.add(place, at, "type", f"{value.isoformat()} {told}")
                values[at] = None

    def _decimals(self, given: Scalar, values: list[Any], place: Place) -> list[Any]:
        """The decimals that their column holds; of one far too small Arrow makes 0."""
        made: list[Any] = []
        for at, value in enumerate(values):
            told = "" if value is None else misfit(given, value)
            if told:
                self.found.add(place, at, "bounds", told)
            made.append(None if told else value)
        return made

    def _each(self, given: Scalar, values: list[Any], place: Place, arrow: pa.DataType) -> list[Any]:
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

    def _infinite(self, array: pa.Array, values: list[Any], place: Place) -> None:
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
    return f"{words} ({text})" if text and len(text) <= SHOWN else words


def _unlike(kind: str, value: Any, json: bool) -> str:
    """Why a value is none of a kind."""
    if kind in RANGES and isinstance(value, float) and value.is_integer():
        low, high = RANGES[kind]
        if low <= value <= high:
            return f"is a number ({value!r}) from 2**53 on, where floats stand for several whole numbers"
        return f"{value!r} is not between {low} and {high}, which {kind} holds"
    if kind in ("float32", "float64") and isinstance(value, int) and not isinstance(value, bool):
        return f"is {_told(value)} that no float is exactly"
    return f"is {_told(value)}, not {_wanted(kind, json)}"


def _wanted(kind: str, json: bool) -> str:
    if json and KINDS[kind].read:
        form = {"binary": "base64", "uuid": "a UUID", "duration": "an ISO 8601 duration", "decimal": "a decimal number"}
        return f"the text of {form.get(kind, with_article(kind.split('-')[0]))}"
    if kind in RANGES:
        return "a whole number"
    words = {"float32": "a number", "float64": "a number", "bool": "true or false", "binary": "bytes"}
    words |= {"string": "a text", "json": "a text"}
    return words.get(kind) or with_article(KINDS[kind].python.__name__)
