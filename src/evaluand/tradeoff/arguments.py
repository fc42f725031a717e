"""Arguments of the kinds that are meant, or one sentence that tells what they are instead."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, TypeVar

from evaluand.core.errors import SpecError, kind_of, with_article

Kind = TypeVar("Kind")


def made(what: str, given: Any, kind: type[Kind], how: str) -> Kind:
    """Something of a kind.

    Args:
        what: the argument.
        given: what came as it.
        kind: what it must be.
        how: how one comes by it.

    Raises:
        SpecError: it is something else.
    """
    if not isinstance(given, kind):
        raise SpecError(f"{what} must be {with_article(kind.__name__)} and is {kind_of(given)}; {how}")
    return given


def named(what: str, given: Any, example: str) -> dict[str, Any]:
    """What stands under which name: a mapping, or the columns of a frame or Arrow table.

    Raises:
        SpecError: it is something else, a name is no text, or two are alike.
    """
    if getattr(given, "ndim", None) == 2 and hasattr(given, "items"):
        pairs = list(given.items())
    elif hasattr(given, "column_names") and hasattr(given, "columns"):
        pairs = list(zip(given.column_names, given.columns, strict=True))
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        raise SpecError(f"{what} must be given by name, such as {example}, and is {kind_of(given)}")
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SpecError(f"{what}: two columns are called {twice!r}; name each differently")
    for name in found:
        if not isinstance(name, str):
            raise SpecError(f"{what}: the name {name!r} is no text; write such as {example}")
    return found


def listed(what: str, given: Any, kind: Any, example: str) -> list[Any]:
    """Several of a kind, a class or a union of them, or one by itself.

    Raises:
        SpecError: it is something else.
    """
    found = [given] if isinstance(given, kind) else _items(given)
    if found is None:
        raise SpecError(f"{what} must be a list and is {kind_of(given)}; write such as {example}")
    for place, each in enumerate(found):
        if not isinstance(each, kind):
            raise SpecError(f"{what}[{place}] is {kind_of(each)}; write such as {example}")
    return found


def whole(what: str, given: Any, least: int, example: str) -> int:
    """A whole number.

    Raises:
        SpecError: it is none, or too small.
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or int(given) < least:
        raise SpecError(f"{what}={given!r} must be {least} or more, and whole, such as {example}")
    return int(given)


def _items(given: Any) -> list[Any] | None:
    """The items of a list, an array or the like; of what has no order or no items, None."""
    if isinstance(given, str | bytes | Mapping | set | frozenset) or getattr(given, "ndim", 1) != 1:
        return None
    try:
        return list(given)
    except TypeError:
        return None
