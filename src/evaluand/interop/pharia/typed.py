"""Types that are needed and perhaps not declared, and values that can be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from evaluand.errors import SpecError


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
