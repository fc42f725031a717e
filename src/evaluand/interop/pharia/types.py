"""Types that are needed and perhaps not declared, numbers that there can be, and values that can be written."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from pydantic import BaseModel, StrictInt, ValidationError
from pydantic_core import from_json

from evaluand.core.errors import DataError, SpecError
from evaluand.interop.pharia.domain import Refused, SerializableDict
from evaluand.interop.pharia.repository_files import exact_text
from evaluand.run.types import adapter_of

Head = TypeVar("Head", bound=BaseModel)


class Untyped(SpecError, TypeError):
    """A class does not tell a type that is needed; a TypeError, as users of the SDKs expect."""


class Misfit(DataError, ValueError):
    """Values are not of the types they were asked for; a ValueError, as users of the SDKs expect."""


def first_known(*types: Any) -> Any:
    """The first that is a type, and no placeholder for one; a placeholder where none is."""
    return next((each for each in types if not isinstance(each, TypeVar)), types[0])


def require_type(found: Any, owner: object, what: str, method: str) -> Any:
    """Refuses a placeholder.

    Raises:
        Untyped: says where to declare the type.
    """
    if isinstance(found, TypeVar):
        name = type(owner).__name__
        raise Untyped(f"{name} does not tell its {what}; annotate {name}.{method}, or give it in brackets: {name}[…]")
    return found


def declared(tell: Callable[[], Any]) -> Any:
    """The annotated type; anything if there is no annotation."""
    try:
        return tell()
    except Untyped:
        return Any


def read_as(type_: Any, value: Any, what: str) -> Any:
    """A value as it is kept, made one of a type.

    Args:
        type_: the type.
        value: the value, as JSON.
        what: whose it is, for people.

    Raises:
        Misfit: it is none.
    """
    try:
        return adapter_of(type_).validate_python(value)
    except ValidationError as error:
        raise Misfit(_misfit_message(error, what, type_)) from None


def read_head(model: type[Head], text: bytes, where: object) -> Head:
    """A head as it is kept.

    Args:
        model: what it is.
        text: its content.
        where: the file, or whatever names it.

    Raises:
        Misfit: it is none; tells where.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise Misfit(_misfit_message(error, str(where), model)) from None


def keepable(value: Any, type_: Any, what: str) -> Any:
    """A value that can be kept and will be read back as one of its type; what an iterator gives as a list.

    Raises:
        Refused: it cannot be written.
        SpecError: an iterator stands inside.
        Misfit: it is not of the type.
    """
    value = settled(value)
    try:
        text = exact_text(value)
    except Refused as error:
        raise Refused(f"{what}: {error}") from None
    read_as(type_, from_json(text), what)
    return value


def require_count(name: str, given: int | None, least: int = 0) -> None:
    """Refuses what is no number of things; None is all of them.

    Raises:
        Refused: it is no whole number, or too small.
    """
    if given is None and least == 0:
        return
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise Refused(f"{name} must be a whole number of at least {least}, not {given!r}")


def require_told(**given: Any) -> None:
    """Refuses what a head cannot tell, before anything is done for it.

    Raises:
        Refused: one of description, labels, metadata, seed and environment_version is not what it must be.
    """
    for name, value in given.items():
        type_, words = _SIMPLE_TYPES[name]
        try:
            adapter_of(type_ | None).validate_python(value)
            exact_text(value)
        except (ValidationError, Refused):
            raise Refused(f"{name} must be {words}, not {reprlib.repr(value)}") from None


def _misfit_message(error: ValidationError, what: str, type_: Any) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{what} is no {getattr(type_, '__name__', type_)}: {place + ': ' if place else ''}{first['msg']}"


_SIMPLE_TYPES: Final[dict[str, tuple[Any, str]]] = {
    "description": (str, "text"),
    "labels": (set[str], "a set of texts"),
    "metadata": (SerializableDict, "a dictionary of what JSON has"),
    "seed": (StrictInt, "a whole number"),
    "environment_version": (str, "text"),
}


def settled(value: Any) -> Any:
    """A value that can be written more than once: what an iterator gives as a list.

    Raises:
        SpecError: an iterator stands inside; writing it would leave nothing of it.
    """
    if isinstance(value, Iterator):
        value = list(value)
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Iterator):
            raise SpecError("an iterator stands inside the value, which can be gone through once only; make it a list")
        if isinstance(each, dict | list | tuple) and id(each) not in seen:
            seen.add(id(each))
            waiting += each.values() if isinstance(each, dict) else each
    return value
