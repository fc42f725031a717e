"""What a schema declares, held to its own types: choices, bounds and defaults, in whichever form it was given.

Whatever someone may write is looked at here once, so that nothing else needs to doubt it; how deep and wide it is, too.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from evaluand.core.errors import SpecError
from evaluand.data.schema.kinds import BOUNDS, MISSING, Array, Field, Map, Scalar, StructType, Type
from evaluand.data.schema.limits import shown
from evaluand.data.schema.rows import check_rows

MAX_DEPTH: Final = 60
"""Levels of objects and lists in one another; Arrow and Parquet read little more."""
MAX_FIELDS: Final = 10_000
MAX_FIXED: Final = 2**20
"""Items of a list of one length, which takes as much room where it is null."""
TOO_DEEP: Final = f"is more than {MAX_DEPTH} levels deep; make it flatter"


def check_declared(record: StructType, name: str) -> None:
    """Refuses what a record declares that its own types do not hold.

    Args:
        record: as it was read.
        name: what paths begin with.

    Raises:
        SpecError: every fault with its path.
    """
    fields = list(islice(_fields(record, name, 0), MAX_FIELDS + 1))
    if len(fields) > MAX_FIELDS:
        raise SpecError(f"{name or 'the schema'}: has more than {MAX_FIELDS:,} fields; make it smaller")
    faults = [f"{path}: {fault}" for path, given in fields for fault in _faults(given)]
    if faults:
        raise SpecError("\n".join(faults))


def _fields(record: StructType, path: str, depth: int) -> Iterator[tuple[str, Field | Type]]:
    """Each field and each type, with its path."""
    for each in record.fields:
        inner = f"{path}.{each.name}" if path else each.name
        yield inner, each
        yield from _types(each.type, inner, depth + 1)


def _types(given: Type, path: str, depth: int) -> Iterator[tuple[str, Field | Type]]:
    if depth > MAX_DEPTH:
        raise SpecError(f"{path}: {TOO_DEEP}")
    if isinstance(given, StructType):
        yield from _fields(given, path, depth)
        return
    yield path, given
    if isinstance(given, Array):
        yield from _types(given.item, f"{path}[]", depth + 1)
    elif isinstance(given, Map):
        yield from _types(given.value, f"{path}{{}}", depth + 1)


def _faults(given: Field | Type) -> Iterator[str]:
    if isinstance(given, Scalar):
        yield from _scalar_faults(given)
    elif isinstance(given, Array | Map):
        yield from _length_faults(given)
    elif isinstance(given, Field) and given.default is not MISSING:
        plain = Field("default", given.type, given.nullable)
        for fault in check_rows(StructType((plain,)), [{"default": given.default}])[1]:
            yield f"the {fault.path}: {fault.message}"


def _scalar_faults(given: Scalar) -> Iterator[str]:
    yield from _length_faults(given)
    wrong = list(_bound_faults(given))
    yield from wrong or _held(replace(given, choices=(), names=()), given.choices, "the choice")
    if len(set(given.choices)) < len(given.choices):
        yield "a choice stands there twice"
    if given.names and not len(set(given.names)) == len(given.names) == len(given.choices):
        yield f"has {len(given.choices)} choices and {len(set(given.names))} names; give each choice a name of its own"


def _bound_faults(given: Scalar) -> Iterator[str]:
    plain = Scalar(given.kind, finite=given.kind in ("float32", "float64"))
    if given.kind == "decimal":
        plain = Scalar("decimal", digits=76, places=38)
    told = False
    for word in BOUNDS:
        bounds = [each for each in [getattr(given, word)] if each is not None]
        for fault in _held(plain, bounds, f"the {word.replace('_', ' ')}"):
            told = True
            yield fault
    for low, high, empty in _BETWEEN:
        least, most = getattr(given, low), getattr(given, high)
        if not told and least is not None and most is not None and empty(least, most):
            yield f"no value is between {shown(least)} and {shown(most)}, its {low} and {high}".replace("_", " ")


_BETWEEN: Final = (
    ("minimum", "maximum", operator.gt),
    ("minimum", "exclusive_maximum", operator.ge),
    ("exclusive_minimum", "maximum", operator.ge),
    ("exclusive_minimum", "exclusive_maximum", operator.ge),
)


def _length_faults(given: Scalar | Array | Map) -> Iterator[str]:
    if isinstance(given, Array) and given.fixed and (given.max_length or 0) > MAX_FIXED:
        yield f"a list of one length has at most {MAX_FIXED:,} items, not {given.max_length:,}"
    if given.min_length is not None and given.max_length is not None and given.min_length > given.max_length:
        yield f"no length is between {given.min_length} and {given.max_length}"


def _held(given: Scalar, values: Sequence[Any], name: str) -> Iterator[str]:
    if values:
        for fault in check_rows(StructType((Field("value", given),)), [{"value": value} for value in values])[1]:
            yield f"{name}: {fault.message}"
