"""Types that are needed and perhaps not declared, numbers that there can be, and values that can be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from evaluand.errors import SpecError
from evaluand.interop.pharia.domain import Refused


class Untyped(SpecError, TypeError):
    """A class does not tell a type that is needed; a TypeError, as users of the SDKs expect."""


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


def require_count(name: str, given: int | None, least: int = 0) -> None:
    """Refuses what is no number of things; None is all of them.

    Raises:
        Refused: it is no whole number, or too small.
    """
    if given is None and least == 0:
        return
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise Refused(f"{name} must be a whole number of at least {least}, not {given!r}")


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
