"""Checks of limits on whole columns, shared by rows of Python objects and tables."""

import decimal
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.data.schema.faults import FaultCollector, Place
from evaluand.data.schema.kinds import Array, Map, Scalar


def check_limits(scalar: Scalar, array: pa.Array, place: Place, collector: FaultCollector) -> None:
    """Collect the values that break a limit."""
    tests = [*_tests(scalar)]
    values = array.to_pylist() if tests else []
    for what, problem, test in tests:
        bad = [at for at, value in enumerate(values) if value is not None and not test(value)]
        collector.add_all(place, bad, what, partial(_value_message, array, problem))
    if scalar.pattern is not None:
        matches = as_booleans(pc.match_substring_regex(array, scalar.pattern), absent=True)
        message = partial(_value_message, array, f"does not match {scalar.pattern}")
        collector.add_all(place, np.flatnonzero(~matches), "pattern", message)
    binary = scalar.kind == "binary"
    if scalar.min_length is not None or scalar.max_length is not None:
        sizes = pc.binary_length(array) if binary else pc.utf8_length(array)
        check_sizes(scalar, sizes, place, collector, "bytes" if binary else "characters")


def _value_message(array: pa.Array, problem: str, at: int) -> str:
    return f"{format_value(array[at].as_py())} {problem}"


_COMPARED: Mapping[str, tuple[Callable[[Any, Any], Any], str]] = {
    "minimum": (operator.le, "is less than"),
    "maximum": (operator.ge, "is more than"),
    "exclusive_minimum": (operator.lt, "is not more than"),
    "exclusive_maximum": (operator.gt, "is not less than"),
}


def _tests(scalar: Scalar) -> Iterator[tuple[str, str, Callable[[Any], bool]]]:
    """For each limit the fault code, the message after the value, and a function that says whether a value holds it."""
    is_narrow = scalar.kind == "float32"
    for name, (compare, words) in _COMPARED.items():
        if (bound := getattr(scalar, name)) is not None:
            stored = float(np.float32(bound)) if is_narrow else bound  # as the values are
            yield "bounds", f"{words} {format_value(bound)}", partial(compare, stored)
    if scalar.multiple_of is not None:
        spacing = float(np.finfo(np.float32).eps) if is_narrow else 0.0
        test = partial(_is_multiple, factor=scalar.multiple_of, spacing=spacing)
        yield "bounds", f"is not a multiple of {scalar.multiple_of}", test
    if scalar.finite:
        yield "bounds", "is not finite", math.isfinite
    if scalar.choices:
        words = f"is none of {', '.join(map(format_value, scalar.choices))}"
        choices = [float(np.float32(choice)) for choice in scalar.choices] if is_narrow else scalar.choices
        yield "choice", words, choices.__contains__
    if scalar.kind == "json":
        yield "json", "is not JSON", is_json_text


def build_list(
    array_type: Array,
    items: pa.Array,
    ends: np.ndarray[Any, Any],
    mask: pa.Array | None,
    place: Place,
    arrow: pa.DataType,
    collector: FaultCollector,
) -> pa.Array:
    """A list column from the flat items and the end of each list, with its lengths checked."""
    kind = pa.list_(arrow.value_field) if array_type.fixed else arrow
    array = pa.ListArray.from_arrays(offsets_from_ends(ends), items, type=kind, mask=mask)
    check_sizes(array_type, pc.list_value_length(array), place, collector, "items")
    if not array_type.fixed:
        return array
    if collector.any or array.null_count == len(array):
        return pa.nulls(len(array), arrow)  # columns with faults are not used
    if array.null_count:  # in a fixed-size list a null takes as much room as any other value
        starts = np.where(as_booleans(array.is_null()), 0, ends - arrow.list_size)
        items = items.take(pa.array(np.add.outer(starts, np.arange(arrow.list_size)).ravel()))
    return pa.FixedSizeListArray.from_arrays(items, type=arrow, mask=mask)


def check_sizes(
    type_: Scalar | Array | Map, sizes: pa.Array, place: Place, collector: FaultCollector, unit: str
) -> None:
    """Collect the values whose size is out of range; `unit` is the plural that messages use."""
    least, most = type_.min_length, type_.max_length
    for bound, compare, words in ((least, pc.less, "fewer than "), (most, pc.greater, "more than ")):
        if bound is None:
            continue
        words = "not " if least == most else words
        message = partial(_size_message, sizes, f"{unit}, {words}{bound}")
        collector.add_all(place, np.flatnonzero(as_booleans(compare(sizes, bound))), "length", message)


def _size_message(sizes: pa.Array, problem: str, at: int) -> str:
    return f"has {sizes[at].as_py()} {problem}"


def _is_multiple(value: Any, factor: Any, spacing: float) -> bool:
    """Whether a value is a multiple of a factor; `spacing` is the relative distance between floats of its kind."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return False
        ratio = value / factor
        return bool(abs(ratio - round(ratio)) < max(_TOLERANCE, abs(ratio) * spacing))
    return Fraction(value) % Fraction(factor) == 0  # the remainder of decimals is not exact


_TOLERANCE = 1e-9


def is_json_text(value: str | bytes) -> bool:
    """Whether a text is JSON."""
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return False
    return True


def decimal_fault(scalar: Scalar, value: decimal.Decimal) -> str:
    """Why a decimal does not fit into its column; empty where it does."""
    if not value.is_finite():
        return f"{value} is not finite"
    _, digits, exponent = value.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    places = len(significant) - len(digits) - int(exponent) if significant else 0
    before = len(significant) - places
    max_digits, max_places = scalar.digits or 0, scalar.places or 0
    if places > max_places:
        return f"{format_value(value)} has {places} decimal places, more than {max_places}"
    if before > max_digits - max_places:
        return f"{format_value(value)} has {before} digits before the point, more than {max_digits - max_places}"
    return ""


def offsets_from_ends(ends: np.ndarray[Any, Any]) -> pa.Array:
    """Arrow's offsets of lists, from the end of each."""
    return pa.array(np.concatenate([[0], ends]).astype(np.int32))


def format_value(value: Any) -> str:
    """A value for a message, cut to `MAX_SHOWN` characters."""
    text = repr(value) if isinstance(value, str | bytes | int | float) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def as_booleans(array: pa.Array, absent: bool = False) -> np.ndarray[Any, Any]:
    """Arrow booleans as a NumPy array, with `absent` for null."""
    return np.asarray(array.fill_null(absent).to_numpy(zero_copy_only=False), bool)


MAX_SHOWN = 40
