"""Checks of declared types, of arguments and of values that are stored."""

import reprlib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pydantic import BaseModel, StrictInt, ValidationError
from pydantic_core import from_json

from evaluand.core.errors import SpecError
from evaluand.core.invalid_data import InvalidData
from evaluand.interop.pharia.domain import ATOMS, Refused, SerializableDict
from evaluand.interop.pharia.repository_files import exact_text
from evaluand.run.types import adapter_of

Head = TypeVar("Head", bound=BaseModel)


class Untyped(SpecError, TypeError):
    """A class does not declare a required type; a TypeError, as users of the SDKs expect."""


class Misfit(InvalidData):
    """Stored values do not have the requested types; a pydantic ValidationError, as users of the SDKs expect."""


def first_declared(*types: Any) -> Any:
    """The first that is not a placeholder (`TypeVar`), or the first placeholder."""
    return next((each for each in types if not isinstance(each, TypeVar)), types[0])


def require_type(type_: Any, owner: object, what: str, method: str) -> Any:
    """Return the type; for a placeholder raise Untyped, which says where to declare it."""
    if isinstance(type_, TypeVar):
        name = type(owner).__name__
        raise Untyped(
            f"{name} does not declare the type of its {what}; annotate {name}.{method} or write the types in"
            f" brackets: {name}[…]"
        )
    return type_


def declared_or_any(declared_type: Callable[[], Any]) -> Any:
    """The declared type, or `Any`."""
    try:
        return declared_type()
    except Untyped:
        return Any


def read_as(type_: Any, value: Any, what: str) -> Any:
    """Convert a stored value, as JSON, to a type; raises Misfit if it does not have it."""
    try:
        return adapter_of(type_).validate_python(value)
    except ValidationError as error:
        raise Misfit.from_faults(_misfit_message(error, what, type_), [error]) from None


def read_head(model: type[Head], text: bytes | None, where: object) -> Head | None:
    """Parse a stored head; None without text. Misfit, with the name of the file, if it is not such a head."""
    try:
        return None if text is None else model.model_validate_json(text)
    except ValidationError as error:
        raise Misfit.from_faults(_misfit_message(error, str(where), model), [error]) from None


def to_storable(value: Any, type_: Any, what: str) -> Any:
    """A value that can be stored and read back as its type; an iterator becomes a list.

    Refused if it cannot be written, a SpecError if it contains an iterator, a Misfit if it does not have the type.
    """
    value = materialize(value)
    try:
        text = exact_text(value)
    except Refused as error:
        raise Refused(f"{what}: {error}") from None
    if type(value) is not type_ or type_ not in ATOMS:
        read_as(type_, from_json(text), what)
    return value


def require_count(name: str, count: int | None, least: int = 0) -> None:
    """Refuse a count that is not an integer, or is too small; None means all."""
    if count is None and least == 0:
        return
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        raise Refused(f"{name} must be an integer of at least {least}, not {count!r}")


def require_head_fields(**fields: Any) -> None:
    """Refuse fields of a head that have the wrong type, before any work is done."""
    for name, value in fields.items():
        type_, words = _SIMPLE_TYPES[name]
        try:
            adapter_of(type_ | None).validate_python(value)
            exact_text(value)
        except (ValidationError, Refused):
            raise Refused(f"{name} must be {words}, not {reprlib.repr(value)}") from None


def _misfit_message(error: ValidationError, what: str, type_: Any) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{what} is not a valid {getattr(type_, '__name__', type_)}: {place + ': ' if place else ''}{first['msg']}"


_SIMPLE_TYPES: Final[dict[str, tuple[Any, str]]] = {
    "description": (str, "text"),
    "labels": (set[str], "a set of texts"),
    "metadata": (SerializableDict, "a dictionary of JSON values"),
    "seed": (StrictInt, "an integer"),
    "environment_version": (str, "text"),
}


def materialize(value: Any) -> Any:
    """A value that can be read twice: an iterator becomes a list, one within the value raises a SpecError."""
    if isinstance(value, Iterator):
        value = list(value)
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Iterator):
            raise SpecError("the value contains an iterator, which can be read only once; make it a list")
        if isinstance(each, dict | list | tuple) and id(each) not in seen:
            seen.add(id(each))
            waiting += each.values() if isinstance(each, dict) else each
    return value
