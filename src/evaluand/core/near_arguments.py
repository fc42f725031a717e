"""Arguments and attributes that people try first, and what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)


def near_arguments(usage: str, **names: str) -> Callable[[_Function], _Function]:
    """Decorates a function whose arguments have other names elsewhere.

    Args:
        usage: how to call it, for a call with too few or too many arguments.
        names: name that people try → what to write.

    Example:
        >>> @near_arguments("shout(text)", words="text=…")
        ... def shout(text):
        ...     return text.upper()
        >>> shout(words="hello")
        Traceback (most recent call last):
        TypeError: shout() has no argument 'words'; write text=…
    """

    def decorate(function: _Function) -> _Function:
        name = function.__qualname__.removesuffix(".__init__")
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            for argument in named:
                if argument in names:
                    raise TypeError(f"{name}() has no argument {argument!r}; write {names[argument]}")
            try:
                signature.bind(*args, **named)
            except TypeError as error:
                raise TypeError(f"{name}(): {error}; write {usage}") from None
            return function(*args, **named)

        return call  # type: ignore[return-value]

    return decorate


def near_init(usage: str, **names: str) -> Callable[[_Class], _Class]:
    """`near_arguments` for the constructor of a class."""

    def decorate(cls: _Class) -> _Class:
        cls.__init__ = near_arguments(usage, **names)(cls.__init__)  # type: ignore[misc]
        return cls

    return decorate


class NearNames(type):
    """The class of classes that lead from attributes which people try to those that exist.

    A class lists them in `near_names`: name → what to write.

    Example:
        >>> class Shelf(metaclass=NearNames):
        ...     near_names = {"from_csv": "Shelf.read(…)"}
        >>> Shelf.from_csv
        Traceback (most recent call last):
        AttributeError: Shelf has no attribute 'from_csv'; write Shelf.read(…)
    """

    near_names: Mapping[str, str]

    def __getattr__(cls, name: str) -> Any:
        raise missing_attribute(cls.__name__, name, cls.__dict__.get("near_names", {}))


def missing_attribute(owner: str, name: str, near: Mapping[str, str]) -> AttributeError:
    """The error of an attribute that does not exist, with what to write instead."""
    words = f"; write {near[name]}" if name in near else ""
    return AttributeError(f"{owner} has no attribute {name!r}{words}")


def refuse_base_class(cls: type, base: type, usage: str, has_arguments: bool) -> None:
    """Refuses to make an object of a base class, and arguments for a class that takes none, as Python does.

    Raises:
        TypeError: says what to write.
    """
    if cls is base:
        raise TypeError(f"{base.__name__} is a base class; write {usage}")
    if has_arguments and cls.__init__ is object.__init__:  # type: ignore[misc]
        raise TypeError(f"{cls.__name__}() takes no arguments")
