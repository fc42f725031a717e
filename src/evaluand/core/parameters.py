"""Parameters of kinds, checked by their annotations: what may be given is written once, as the type.

    annotation                    what may be given
    bool                          true or false
    Text                          a text that is not empty
    Literal["a", "b"]             one of the words
    tuple[Literal["a", "b"], …]   a list of such words, which is kept as a tuple in this order, each word once
    Annotated[int, Within(1)]     an integer of at least 1; of `float`, a finite number; both are kept as Python's own
    any of these, or None         that, or nothing

Other annotations are not checked, and a parameter that is left out is right whatever its annotation says.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from evaluand.core.errors import described, nearest

_NOT_EMPTY: Final = "not empty"
Text = Annotated[str, _NOT_EMPTY]


class Within(NamedTuple):
    """Bounds of a number.

    Attributes:
        least: the lowest number.
        most: the highest number; without it, any finite one.
        above: whether `least` itself is too low.
    """

    least: float
    most: float = math.inf
    above: bool = False

    def allows(self, number: float) -> bool:
        """Whether a number lies within the bounds, and is finite."""
        is_finite = -math.inf < number < math.inf
        return is_finite and self.least <= number <= self.most and not (self.above and number == self.least)

    def __str__(self) -> str:
        if self.above:
            return f"above {self.least:g}" + (f", up to {self.most:g}" if self.most < math.inf else "")
        return f"from {self.least:g} to {self.most:g}" if self.most < math.inf else f"of at least {self.least:g}"


def parameter_faults(made: Any) -> Iterator[tuple[str, str]]:
    """The parameters of a dataclass that break their annotations: each by name, with what it is and what to do.

    Example:
        >>> @dataclasses.dataclass
        ... class Overlap:
        ...     unit: Literal["words", "letters"] = "words"
        ...     least: Annotated[float, Within(0, 1)] = 0.5
        >>> for name, fault in parameter_faults(Overlap("word", 50)):
        ...     print(name, fault)
        unit is the text 'word'; give one of words, letters (did you mean 'words'?)
        least is the integer 50; give a number from 0 to 1
    """
    kind: type = type(made)
    for parameter in dataclasses.fields(made):
        value = getattr(made, parameter.name)
        rule, may_be_none = _rules(kind).get(parameter.name, (None, False))
        if rule is None or value is parameter.default or (value is None and may_be_none):
            continue
        kept = rule(value)
        if isinstance(kept, _Need):
            or_none = "" if not may_be_none else ", or leave it out" if parameter.default is None else ", or None"
            yield parameter.name, f"is {described(value)}; {kept}{or_none}"
        elif kept is not value:
            object.__setattr__(made, parameter.name, kept)


class _Need(str):
    """What to give in place of a wrong value."""


Rule = Callable[[Any], Any]
"""Value → the value as it is kept, or what is needed."""


@cache
def _rules(kind: type) -> dict[str, tuple[Rule | None, bool]]:
    """Parameter → its rule, and whether it may be None."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:  # of a class within a function, whose names cannot be looked up
        return {}
    optional = {name for name, hint in hints.items() if NoneType in get_args(hint) and len(get_args(hint)) == 2}
    for name in optional:
        hints[name] = next(part for part in get_args(hints[name]) if part is not NoneType)
    return {name: (_rule(hint), name in optional) for name, hint in hints.items()}


def _rule(hint: Any) -> Rule | None:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is bool:
        return _flag
    if origin is Literal and all(isinstance(word, str) for word in arguments):
        return partial(_choice, arguments)
    if origin is tuple and get_origin(arguments[0]) is Literal:
        return partial(_choices, get_args(arguments[0]))
    if origin is Annotated and arguments[1] is _NOT_EMPTY:
        return _text
    if origin is Annotated and isinstance(arguments[1], Within):
        return partial(_number, arguments[0], arguments[1])
    return None


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else _Need("give true or false")


def _text(value: Any) -> Any:
    return value if isinstance(value, str) and value else _Need("give some text")


def _choice(choices: Sequence[str], value: Any) -> Any:
    if isinstance(value, str) and value in choices:
        return value
    return _Need(f"give one of {', '.join(choices)}{nearest(str(value), choices)}")


def _choices(choices: Sequence[str], value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return _Need(f"give a list of any of {', '.join(choices)}")
    for item in value:
        if item not in choices:
            return _Need(f"{described(item)} is none of {', '.join(choices)}{nearest(str(item), choices)}")
    return tuple(choice for choice in choices if choice in value)


def _number(kind: type, bounds: Within, value: Any) -> Any:
    is_number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if not is_number or not bounds.allows(value):
        return _Need(f"give {_NUMBERS[kind]} {bounds}")
    return value if isinstance(value, int | float) else (int if isinstance(value, Integral) else float)(value)


_NUMBERS: Final = {int: "an integer", float: "a number"}
