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


def missing_attribute(owner: str, name: str) -> AttributeError:
    """The error of an attribute that does not exist, with what to write instead.

    Python itself, and notebooks, ask for names with underscores, which nobody types.
    """
    words = None if name.startswith("_") else near("attributes", owner).get(name)
    return AttributeError(f"{owner} has no attribute {name!r}" + (f"; write {words}" if words else ""))


def keywords(known: type, defaults: type = object) -> Callable[[_Function], _Function]:
    """Decorates a function that takes the keywords of a `TypedDict`: its signature has them, and it takes no others.

    Args:
        defaults: a class whose attributes are the default values, where the signature shall name them.

    Example:
        >>> from typing import TypedDict, Unpack
        >>> class Options(TypedDict, total=False):
        ...     loudly: bool
        >>> @keywords(Options)
        ... def greet(whom: str, **options: Unpack[Options]) -> str:
        ...     return whom.upper() if options.get("loudly") else whom
        >>> greet("you", loudly=True)
        'YOU'
        >>> greet("you", loud=True)
        Traceback (most recent call last):
        TypeError: greet() got an unexpected keyword argument 'loud'
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        further = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=getattr(defaults, name, ...),
                annotation=getattr(kind, "__forward_arg__", kind),
            )
            for name, kind in known.__annotations__.items()
        ]
        names = {each.name for each in (*own, *further)}

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            try:
                for name in options:
                    if name not in names:
                        raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}")
                return function(*args, **options)
            except TypeError:
                check_call(call, args, options)
                raise

        call.__signature__ = signature.replace(parameters=[*own, *further])  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def check_call(function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Says what to write, if arguments do not fit a function and there is something to say.

    Raises:
        TypeError: says what to write.
    """
    try:
        inspect.signature(function).bind(*args, **named)
    except TypeError as error:
        name = function.__qualname__.removesuffix(".__init__")
        for argument in named:
            if words := near("arguments", name).get(argument):
                raise TypeError(f"{name}() has no argument {argument!r}; write {words}") from None
        if usage := read_section("calls").get(name):
            raise TypeError(f"{name}(): {error}; write {usage}") from None


class Explained(type):
    """The class of classes whose unknown attributes, and whose calls that do not fit, say what to write.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> Dataset.from_records
        Traceback (most recent call last):
        AttributeError: Dataset has no attribute 'from_records'; write Dataset.from_rows(LIST)
    """

    def __getattr__(cls, name: str) -> Any:
        raise missing_attribute(cls.__name__, name)

    def __call__(cls, *args: Any, **named: Any) -> Any:
        try:
            return super().__call__(*args, **named)
        except TypeError:
            check_call(cls.__init__, (None, *args), named)  # type: ignore[misc]
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
