"""The arguments of an implementation: which it has, which it requires, and how it is called with them."""

import copy
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from evaluand.core.errors import SpecError, nearest

T = TypeVar("T")

PLAIN: Final = frozenset((str, int, float, bool, type(None)))
"""Types of immutable values, which need no copy."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a function.

    Attributes:
        function: the name of the function.
        names: the names of the arguments, in order.
        required: those without a default.
        positional: those that are positional only.
        open: whether the function takes any further arguments by name (`**kwargs`).
        variadic: whether it takes any further arguments by position (`*args`).
    """

    function: str
    names: tuple[str, ...]
    required: frozenset[str]
    positional: tuple[str, ...]
    open: bool
    variadic: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Self:
        """Reads the signature; a SpecError if the function has no readable one."""
        name = str(getattr(function, "__name__", type(function).__name__))
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            raise SpecError(f"{name} has no readable signature; call it from your own function") from None
        own = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return cls(
            name,
            tuple(p.name for p in own),
            frozenset(p.name for p in own if p.default is p.empty),
            tuple(p.name for p in own if p.kind is p.POSITIONAL_ONLY),
            any(p.kind is p.VAR_KEYWORD for p in parameters),
            any(p.kind is p.VAR_POSITIONAL for p in parameters),
        )

    def __str__(self) -> str:
        return ", ".join(self.names) or "no arguments"

    def require(self, name: str) -> None:
        """Refuses the name of an argument that the function does not have, with a list of those it has."""
        if name not in self.names and not self.open:
            raise SpecError(f"{self.function} has no argument {name!r}{nearest(name, self.names)}; it has {self}")

    def next_after(self, bound: Collection[str]) -> str:
        """The first argument that is not bound yet; a SpecError if all are."""
        name = next((name for name in self.names if name not in bound), None)
        if name is None:
            state = f"it has {self}, bound already" if self.names else "it has none"
            hint = "; further ones are bound by name" if self.open else ""
            raise SpecError(f"{self.function} has no argument left: {state}{hint}")
        return name

    def ordered(self, bound: Mapping[str, T]) -> dict[str, T]:
        """The bindings in the order of the signature, so that they are equal however they were written."""
        named = {name: bound[name] for name in self.names if name in bound}
        return named | {name: bound[name] for name in sorted(bound.keys() - named.keys())}

    def check(self, bound: Collection[str]) -> None:
        """Raises a SpecError that names a required argument that is not bound."""
        if self.required.issubset(bound) and not self.positional:
            return
        missing = [name for name in self.names if name in self.required and name not in bound]
        places = [place for place, name in enumerate(self.positional) if name in bound]
        missing += [name for name in self.positional[: places[-1] if places else 0] if name not in bound]
        if missing:
            raise SpecError(f"{self.function} needs {missing[0]}, which is not bound; bind it with on({missing[0]}=…)")

    def caller(self, function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
        """A callable that calls the function with arguments by name, of which it cannot change the values."""

        def call(args: dict[str, Any]) -> Any:
            named = {name: value if type(value) in PLAIN else _copy_value(value) for name, value in args.items()}
            if not self.positional:
                return function(**named)
            first = [named.pop(name) for name in self.positional if name in named]
            return function(*first, **named)

        return call


def _copy_value(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # an object of the app that cannot be copied is passed as it is
        return value
