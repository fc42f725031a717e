"""The types that a class declares: of a task its input and output, of a logic its example's, output and result.

They stand in the brackets behind its base class, `class Shout(Task[str, str])`, or in the annotations of its method,
as text too (`from __future__ import annotations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from evaluand.errors import SpecError


class Untyped(SpecError, TypeError):
    """A class does not tell a type that is needed; a TypeError, as users of the SDKs expect."""


def type_arguments(cls: type, base: type) -> tuple[Any, ...]:
    """What stands in the brackets behind a base class, however far up it is; empty where nothing does.

    Example:
        >>> from evaluand.task import Task
        >>> class Shout(Task[str, int]): ...
        >>> type_arguments(Shout, Task)
        (<class 'str'>, <class 'int'>)
    """
    for parent in getattr(cls, "__orig_bases__", cls.__bases__) if "__orig_bases__" in vars(cls) else cls.__bases__:
        origin = get_origin(parent) or parent
        if not isinstance(origin, type) or not issubclass(origin, base):
            continue
        given = get_args(parent)
        if origin is base:
            return given
        inherited = type_arguments(origin, base)
        meant: Mapping[Any, Any] = dict(zip(getattr(origin, "__parameters__", ()), given, strict=False))
        if inherited:
            return tuple(meant.get(each, each) for each in inherited)
    return ()


def annotations_of(method: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a method; none where names in them cannot be found."""
    try:
        return get_type_hints(method)
    except Exception:  # text that names what is not there, such as a class within a function
        return {}


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


@lru_cache(maxsize=256)
def _hashable_reader(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


def reader(type_: Any) -> TypeAdapter[Any]:
    """What makes values of a type from JSON-like data, and says where they do not fit."""
    if isinstance(type_, TypeVar):
        type_ = Any
    try:
        return _hashable_reader(type_)
    except TypeError:  # not hashable
        return TypeAdapter(type_)
