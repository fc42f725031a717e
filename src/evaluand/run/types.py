"""Types of inputs and outputs: which ones a task declares, and which values and datasets fit them.

A type is anything that pydantic supports: `str`, `list[float]`, a model, a dataclass, `Literal["a", "b"]`. A value is
of a type if it could be read from JSON as that type in strict mode: numbers and text are never converted to each other,
but an object may become a model with these fields, a list a tuple, and a text the member of an enum.
"""

import datetime as dt
import functools
import inspect
import json
import sys
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Made = TypeVar("Made")


_PLAIN: Final = frozenset((str, int, float, bool))
"""Types whose values are read without pydantic, which takes 130 ms to load: in the time of the first call."""
_MOST_FLOAT: Final = 1 << 1023


class Typed:
    """A type as which values can be read.

    Example:
        >>> Typed(tuple[int, str]).read([1, "a"])
        (1, 'a')
        >>> Typed(int).fault("1")
        'input should be a valid integer'
    """

    def __init__(self, type: Any) -> None:
        self.type = type

    @property
    def name(self) -> str:
        """The name of the type in messages."""
        return self.type.__name__ if inspect.isclass(self.type) else str(self.type).replace("typing.", "")

    def read(self, value: Any) -> Any:
        """Convert a value to the type."""
        if type(value) is self.type and self.type in _PLAIN:  # most inputs
            return value
        if type(value) is int and self.type is float and abs(value) < _MOST_FLOAT:
            return float(value)
        from pydantic import ValidationError

        validator = adapter_of(self.type).validator
        try:
            return validator.validate_python(value, strict=True)
        except ValidationError as error:
            if not isinstance(value, str | list | Mapping):  # JSON writes a date as text, but it is not text
                raise
            try:
                text = json.dumps(value, default=_to_json)
            except (TypeError, ValueError):
                raise error from None
        return validator.validate_json(text, strict=True)

    def fault(self, value: Any) -> str | None:
        """Why a value is not of the type, with the place in the value; None if it is."""
        from pydantic import ValidationError

        try:
            self.read(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place, message = ".".join(map(str, first["loc"])), first["msg"][:1].lower() + first["msg"][1:]
            return f"{place}: {message}" if place else message
        return None


def _cached_by_type(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """A function of a type, whose results are kept."""
    cached = functools.lru_cache(512)(make)

    @functools.wraps(make)
    def find(type: Any) -> Made:
        try:
            hash(type)
        except TypeError:  # an annotation that cannot be hashed
            return make(type)
        return cached(type)

    return find


@_cached_by_type
def typed(type: Any) -> Typed | None:
    """The `Typed` of a type; None if it admits anything, or pydantic does not support it."""
    if type in (None, Any, object) or isinstance(type, str | TypeVar | typing.ForwardRef):
        return None
    if not (inspect.isclass(type) and type in _PLAIN):
        from pydantic import PydanticUserError

        try:
            adapter_of(type)
        except (PydanticUserError, NameError):
            return None
    return Typed(type)


@_cached_by_type
def adapter_of(type: Any) -> "TypeAdapter[Any]":
    """The pydantic adapter of a type, lenient by default; a type variable admits anything."""
    from pydantic import TypeAdapter

    return TypeAdapter(Any if isinstance(type, TypeVar) else type)


def arguments(cls: type, generic: type) -> tuple[Any, ...]:
    """The types that a class binds to the parameters of a generic base class.

    Example:
        >>> T = TypeVar("T")
        >>> class Box(typing.Generic[T]): ...
        >>> class Words(Box[list[T]]): ...
        >>> class Names(Words[str]): ...
        >>> arguments(Names, Box)
        (list[str],)
    """
    parameters: tuple[Any, ...] = getattr(generic, "__parameters__", ())
    if cls is generic:
        return parameters
    for base in vars(cls).get("__orig_bases__", cls.__bases__):
        origin = typing.get_origin(base) or base
        if not (inspect.isclass(origin) and issubclass(origin, generic)):
            continue
        bases = tuple(_resolve(argument, cls) for argument in typing.get_args(base))
        bound = dict(zip(getattr(origin, "__parameters__", ()), bases, strict=False))
        return tuple(_substitute(argument, bound) for argument in arguments(origin, generic))
    return parameters


def hints(function: Callable[..., Any], owner: type | None = None) -> dict[str, Any]:
    """The annotations of a function, even as text, without unresolved ones; `owner` is the class that defines it."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function) and not inspect.isclass(function):  # an object that is called
        function = type(function).__call__
    return _resolved(getattr(function, "__annotations__", {}), getattr(function, "__globals__", {}), owner)


def _resolved(annotations: Mapping[str, Any], names: Mapping[str, Any], owner: type | None) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, annotation in annotations.items():
        alone = SimpleNamespace(__annotations__={name: annotation})
        try:
            read |= typing.get_type_hints(alone, dict(names), dict(vars(owner)) if owner else None, include_extras=True)
        except Exception:  # a name known only to type checkers, or not a type
            continue
    return read


def _resolve(argument: Any, cls: type) -> Any:
    if not isinstance(argument, typing.ForwardRef | str):
        return argument
    names = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    return _resolved({"it": argument}, names, cls).get("it", argument)


def _substitute(argument: Any, bound: Mapping[Any, Any]) -> Any:
    if isinstance(argument, TypeVar):
        return bound.get(argument, argument)
    inner = getattr(argument, "__parameters__", ())
    if inspect.isclass(argument) and not typing.get_origin(argument):
        return argument
    return argument[tuple(bound.get(each, each) for each in inner)] if inner else argument


def _to_json(value: Any) -> Any:
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is not written as JSON")
