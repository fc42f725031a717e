"""The base of providers that judge in this process, whose methods say how long a text may be."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from evaluand.core.parameters import Within
from evaluand.evaluation.provider import Judgement, Provider, from_0_to_1

_P = ParamSpec("_P")
_Self = TypeVar("_Self", bound="LocalProvider")


@dataclass(frozen=True)
class LocalProvider(Provider):
    """A provider that judges in this process, where a very long text would occupy the machine.

    Each method declares how long its texts may be (`longest`), so that a call takes a second or two at most. An
    argument that is longer is not judged: its row abstains.

    Args:
        max_characters: how long each argument may be, for all methods, in place of the limits that the methods declare.

    Raises:
        SpecError: max_characters is not an integer of at least 1.

    Example:
        >>> class Shouting(LocalProvider):
        ...     @longest(5)
        ...     def is_loud(self, text: str) -> Judgement:
        ...         return Judgement(float(text.isupper()), {"reason": text})
        >>> Shouting().is_loud("HELLO").value, Shouting(max_characters=6).is_loud("HELLO!").value
        (1.0, 1.0)
        >>> print(Shouting().is_loud("HELLO!").reason)
        text has 6 characters, but is_loud judges 5 at most; set max_characters of the provider to judge longer texts
    """

    _: KW_ONLY
    max_characters: Annotated[int, Within(1)] | None = field(default=None, repr=False)

    @property
    def spec(self) -> Mapping[str, Any]:
        spec = super().spec
        if self.max_characters is not None:
            return spec
        parameters = {name: value for name, value in spec["parameters"].items() if name != "max_characters"}
        return {**spec, "parameters": parameters}  # the same as before there were limits: scores remain valid


def longest(
    characters: int, *, share: bool = False, lower_is_better: bool = False
) -> Callable[[Callable[Concatenate[_Self, _P], Judgement]], Callable[Concatenate[_Self, _P], Judgement]]:
    """Declare how many characters each argument of a method may have; those of a list count together.

    The limit is the method's attribute `max_characters`. A longer argument makes a judgement without a value.

    Args:
        share: the values lie from 0 to 1.
        lower_is_better: high values are bad.
    """

    def limit(
        method: Callable[Concatenate[_Self, _P], Judgement],
    ) -> Callable[Concatenate[_Self, _P], Judgement]:
        names = [*inspect.signature(method).parameters][1:]

        @wraps(method)
        def judge(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> Judgement:
            most = characters if self.max_characters is None else self.max_characters
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                if (length := _length(value)) > most:
                    return Judgement.undefined(
                        f"{name} has {length:,} characters, but {method.__name__} judges {most:,} at most; set "
                        "max_characters of the provider to judge longer texts"
                    )
            return method(self, *args, **kwargs)

        judge.max_characters = characters  # type: ignore[attr-defined]
        if lower_is_better:
            judge.higher_is_better = False  # type: ignore[attr-defined]
        return from_0_to_1(judge) if share else judge

    return limit


def _length(value: Any) -> int:
    """The characters of a text, or of all texts of a list or an object."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_length(key) + _length(item) for key, item in value.items())
    return sum(map(_length, value)) if isinstance(value, list | tuple) else 0
