"""What people type first, and what to write instead: `near.yaml`, which is read only where something is unknown."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import Parameter
from pathlib import Path
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


@cache
def _read_file() -> Any:
    import yaml  # only for messages: it takes a while to import

    return yaml.safe_load(Path(__file__).with_name("near.yaml").read_text(encoding="utf-8"))


def read_section(*path: str) -> Mapping[str, Any]:
    """A section as it is written; empty if there is none."""
    section = _read_file()
    for name in path:
        section = section.get(name, {})
    return section  # type: ignore[no-any-return]


def near(*path: str) -> Mapping[str, str]:
    """What people type → what to write, of one section.

    Example:
        >>> near("names")["load"], near("options", "run")["-n"]
        ('Dataset.from_data(PATH, input=…, expected=…)', '--limit N')
    """
    guesses = read_section(*path).items()
    return {typed: words.replace("TYPED", typed) for words, several in guesses for typed in several}


def missing_attribute(name: str, owner: str, *bases: str) -> AttributeError:
    """The error of an attribute that does not exist, with what to write instead.

    Python itself, and notebooks, ask for names with underscores, which nobody types.

    Args:
        bases: of the owner; what is known about them is true of the owner too.
    """
    of_owners = () if name.startswith("_") else (near("attributes", base).get(name) for base in (owner, *bases))
    words = next(filter(None, of_owners), None)
    return AttributeError(f"{owner} has no attribute {name!r}" + (f"; write {words}" if words else ""))


def keywords(record: type) -> Callable[[_Function], _Function]:
    """Decorates a function whose further keywords make a record: its signature has them, and it takes no others.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Options:
        ...     loudly: bool = False
        >>> @keywords(Options)
        ... def greet(whom: str, **options: Any) -> str:
        ...     return whom.upper() if Options(**options).loudly else whom
        >>> greet("you", loudly=True), inspect.signature(greet).parameters["loudly"].default
        ('YOU', False)
        >>> greet("you", loud=True)
        Traceback (most recent call last):
        TypeError: greet() got an unexpected keyword argument 'loud'
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        fields = inspect.signature(record).parameters.values()
        further = [field for field in fields if field.name not in signature.parameters]
        names = {parameter.name for parameter in (*own, *further)}

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            try:
                for name in options:
                    if name not in names:
                        raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}")
                return function(*args, **options)
            except TypeError as error:
                check_call(call, type(args[0]) if args and "self" in names else None, args, options, error)
                raise

        call.__signature__ = signature.replace(parameters=[*own, *further])  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def check_call(
    function: Callable[..., Any], owner: type | None, args: tuple[Any, ...], named: Mapping[str, Any], error: TypeError
) -> None:
    """Says what to write, or else what Python says of the class that was used, if arguments do not fit a function.

    Args:
        owner: the class by which a method was called.
        error: the error of the call.

    Raises:
        TypeError: the arguments do not fit.
    """
    try:
        inspect.signature(function).bind(*args, **named)
    except TypeError as misfit:
        method, bases = function.__name__, getattr(owner, "__mro__", ())
        suffix = "" if method == "__init__" else f".{method}"
        names = [f"{base.__name__}{suffix}" for base in bases if getattr(base, method, None) is function]
        names = names or [function.__qualname__]
        for argument in named:
            if words := next(filter(None, (near("arguments", name).get(argument) for name in names)), None):
                raise TypeError(f"{names[0]}() has no argument {argument!r}; write {words}") from None
        if usage := next(filter(None, map(read_section("calls").get, names)), None):
            raise TypeError(f"{names[0]}(): {misfit}; write {usage}") from None
        raise TypeError(str(error).replace(function.__qualname__, names[0], 1)) from None


class Explained(type):
    """The class of classes whose unknown attributes, and whose calls that do not fit, say what to write.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> Dataset.from_records
        Traceback (most recent call last):
        AttributeError: Dataset has no attribute 'from_records'; write Dataset.from_rows(LIST)
    """

    def __getattr__(cls, name: str) -> Any:
        raise missing_attribute(name, *(base.__name__ for base in cls.__mro__))

    def __call__(cls, *args: Any, **named: Any) -> Any:
        try:
            return super().__call__(*args, **named)
        except TypeError as error:
            check_call(cls.__init__, cls, (None, *args), named, error)  # type: ignore[misc]
            raise


def refuse_base_class(cls: type, base: type, has_arguments: bool) -> None:
    """Refuses to make an object of a base class, and arguments for a class that takes none, as Python does.

    Raises:
        TypeError: says what to write.
    """
    if cls is base:
        raise TypeError(f"{base.__name__} is a base class; write {read_section('calls')[base.__name__]}")
    if has_arguments and cls.__init__ is object.__init__:  # type: ignore[misc]
        raise TypeError(f"{cls.__name__}() takes no arguments")
