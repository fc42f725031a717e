"""`Provider` as TruLens has it: the annotations of a subclass are its fields, and keywords of its constructor."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import MISSING, Field as Field_, fields
from threading import RLock
from typing import Any, ClassVar, Final, dataclass_transform

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from evaluand.core.errors import ParameterError, alternatives, described
from evaluand.evaluation.provider import Provider as Native

_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True)


class _Fields(type):
    """Makes fields of a class's annotations when it is first used: after its own decorators."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        _make_fields(cls)
        return super().__call__(*args, **kwargs)

    @property
    def __signature__(cls) -> inspect.Signature:
        _make_fields(cls)
        if not hasattr(cls.__init__, _OWN):  # type: ignore[misc] # that of the class, whichever
            _, *parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
            return inspect.Signature(parameters)
        made: Any = cls
        return inspect.Signature(
            [_parameter(each) for each in sorted(fields(made), key=lambda each: bool(each.kw_only))]
        )

    @__signature__.setter
    def __signature__(cls, signature: Any) -> None:
        """Of no use: pydantic sets one that does not know what is positional."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class Provider(Native, metaclass=_Fields):
    """Base class of providers, whose methods judge.

    A subclass with annotations is a frozen dataclass of pydantic: each annotation is a field that is checked, a keyword
    of the constructor, part of the identity, and stored with feedbacks that use it. A subclass with an `__init__`, or
    with a decorator that makes a dataclass of it, stays as it is written.

    Raises:
        ParameterError: lists every argument that does not fit its annotation, is unknown or missing.

    Example:
        >>> class Length(Provider):
        ...     longest: int = 100
        ...     def short(self, text: str) -> float:
        ...         return float(len(text) <= self.longest)
        >>> Length(longest=3).short("Emma"), dict(Length(longest=3).arguments)
        (0.0, {'longest': 3})
    """

    advice: ClassVar[Mapping[str, str]] = {}
    """Keyword that it does not have → what to do instead."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[:0:-1]:
            _make_fields(base)


def _make_fields(kind: Any) -> None:
    """Makes a class a dataclass of its annotations, once, unless it says itself how it is made."""
    if not isinstance(kind, _Fields) or Native in kind.__bases__:
        return
    with _making:
        own = vars(kind)
        if not ({"__init__", "__dataclass_fields__"} & own.keys()) and inspect.get_annotations(kind):
            made: Any = kind
            dataclass(made, kw_only=True, frozen=True, config=_CONFIG)
            setattr(kind, "__init__", _readable(vars(kind)["__init__"]))  # noqa: B010 - of this class alone


def _parameter(field: Field_[Any]) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY if field.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, kind, default=default)


def _readable(initialise: Any) -> Any:
    """A constructor whose faults are those of parameters."""

    @functools.wraps(initialise)
    def make(self: Provider, *args: Any, **kwargs: Any) -> None:
        try:
            initialise(self, *args, **kwargs)
        except ValidationError as error:
            known = list(inspect.signature(type(self)).parameters)
            faults = [(_place(each), _sentence(type(self), each, kwargs, known)) for each in error.errors()]
            raise ParameterError(faults) from None

    setattr(make, _OWN, True)
    return make


_OWN: Final = "makes_fields"
_making = RLock()


def _place(error: Mapping[str, Any]) -> tuple[str | int, ...]:
    return tuple(error["loc"][:1])


def _sentence(kind: type[Provider], error: Mapping[str, Any], given: Mapping[str, Any], known: list[str]) -> str:
    name = str(error["loc"][0]) if error["loc"] else ""
    match error["type"]:
        case "unexpected_keyword_argument":
            advice = f"; {kind.advice[name]}" if name in kind.advice else alternatives(name, known)
            return f"is no parameter of {kind.__qualname__}{advice}"
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"is missing; {kind.__qualname__} needs it"
        case "unexpected_positional_argument":
            return f"is given by position; {kind.__qualname__} takes its parameters by name"
        case _:
            return f"is {described(given.get(name))}: {error['msg'][0].lower()}{error['msg'][1:]}"
