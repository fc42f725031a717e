"""Limits of values, held to in columns: in the same way for rows and for tables."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.data.schema.faults import Found, Place
from evaluand.data.schema.kinds import RANGES, Array, Map, Scalar


def check_limits(given: Scalar, array: pa.Array, place: Place, found: Found) -> None:
    """Finds the values that break a limit."""
    for what, told, bad in _broken(given, array):
        found.add_all(place, np.flatnonzero(bad), what, partial(_told, array, told))
    binary = given.kind == "binary"
    if given.min_length is not None or given.max_length is not None:
        sizes = pc.binary_length(array) if binary else pc.utf8_length(array)
        check_sizes(given, sizes, place, found, "bytes" if binary else "characters")


def _told(array: pa.Array, told: str, at: int) -> str:
    return f"{shown(array[at].as_py())} {told}"


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
                bad &= ~flags(array.is_null())
        else:
            bad = _each_breaks(array, partial(_holds, compare, bound))
        yield "bounds", f"{words} {shown(bound)}", bad
    if given.multiple_of is not None:
        bad = _each_breaks(array, lambda value: _is_multiple(value, given.multiple_of))
        yield "bounds", f"is no multiple of {given.multiple_of}", bad
    if given.finite:
        yield "bounds", "is not finite", ~flags(pc.is_finite(array), absent=True)
    if given.pattern is not None:
        matches = pc.match_substring_regex(array, given.pattern)
        yield "pattern", f"does not match {given.pattern}", ~flags(matches, absent=True)
    if given.choices:
        yield "choice", f"is none of {', '.join(map(shown, given.choices))}", _not_chosen(given, array)
    if given.kind == "json":
        yield "json", "is no JSON", _each_breaks(array, _is_json)


def _holds(compare: Callable[[Any, Any], Any], bound: Any, value: Any) -> bool:
    return bool(compare(value, bound))


def list_of(
    given: Array,
    items: pa.Array,
    ends: np.ndarray[Any, Any],
    mask: pa.Array | None,
    place: Place,
    arrow: pa.DataType,
    found: Found,
) -> pa.Array:
    """Lists of items, whose lengths are looked at."""
    kind = pa.list_(arrow.value_field) if given.fixed else arrow
    array = pa.ListArray.from_arrays(from_ends(ends), items, type=kind, mask=mask)
    check_sizes(given, pc.list_value_length(array), place, found, "items")
    if not given.fixed:
        return array
    if found.any or array.null_count == len(array):
        return pa.nulls(len(array), arrow)  # with faults, none is used
    if array.null_count:  # a list that is null takes as much room as any other
        starts = np.where(flags(array.is_null()), 0, ends - arrow.list_size)
        items = items.take(pa.array(np.add.outer(starts, np.arange(arrow.list_size)).ravel()))
    return pa.FixedSizeListArray.from_arrays(items, type=arrow, mask=mask)


def check_sizes(given: Scalar | Array | Map, sizes: pa.Array, place: Place, found: Found, unit: str) -> None:
    least, most = given.min_length, given.max_length
    for bound, compare, words in ((least, pc.less, "fewer than "), (most, pc.greater, "more than ")):
        if bound is None:
            continue
        words = "not " if least == most else words
        tell = partial(_told_size, sizes, f"{unit}, {words}{bound}")
        found.add_all(place, np.flatnonzero(flags(compare(sizes, bound))), "length", tell)


def _told_size(sizes: pa.Array, told: str, at: int) -> str:
    return f"has {sizes[at].as_py()} {told}"


def map_sizes(array: pa.MapArray) -> pa.Array:
    return pa.array(np.diff(np.asarray(array.offsets)), mask=flags(array.is_null()))


def _not_chosen(given: Scalar, array: pa.Array) -> np.ndarray[Any, Any]:
    if given.kind in ("uuid", "decimal", "binary"):
        return _each_breaks(array, lambda value: value in given.choices)
    chosen = pc.is_in(array, value_set=pa.array(given.choices, array.type))
    return np.array(~(flags(chosen) | flags(array.is_null())))


def _each_breaks(array: pa.Array, holds: Callable[[Any], bool]) -> np.ndarray[Any, Any]:
    return np.array([value is not None and not holds(value) for value in array.to_pylist()], bool)


def _is_multiple(value: Any, of: Any) -> bool:
    if isinstance(value, float):
        return bool(np.isfinite(value) and abs(value / of - round(value / of)) < _NEARLY)
    return Fraction(value) % Fraction(of) == 0  # a remainder of decimals is not exact


_NEARLY = 1e-9


def _is_json(value: str) -> bool:
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return False
    return True


def misfit(given: Scalar, value: decimal.Decimal) -> str:
    """Why a decimal does not fit into its column; nothing where it does."""
    if not value.is_finite():
        return f"{value} is not finite"
    _, digits, exponent = value.as_tuple()
    kept = "".join(map(str, digits)).rstrip("0")
    places = len(kept) - len(digits) - int(exponent) if kept else 0
    most, after = given.digits or 0, given.places or 0
    if places > after:
        return f"{shown(value)} has {places} decimal places, more than {after}"
    if len(kept) - places > most - after:
        return f"{shown(value)} has {len(kept) - places} digits before the point, more than {most - after}"
    return ""


def from_ends(ends: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(np.concatenate([[0], ends]).astype(np.int32))


def shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | bytes | int | float) else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def flags(array: pa.Array, absent: bool = False) -> np.ndarray[Any, Any]:
    """Booleans of Arrow as NumPy's; a null is `absent`."""
    return np.asarray(array.fill_null(absent).to_numpy(zero_copy_only=False), bool)


SHOWN = 40
