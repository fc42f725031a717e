"""The arguments of an implementation: which it has, which it needs, and how they are handed over."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from evaluand.core.errors import SpecError
from evaluand.core.registry import nearest

T = TypeVar("T")

PLAIN: Final = frozenset((str, int, float, bool, type(None)))
"""Types of values that no implementation can change."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a function.

    Attributes:
        called: what the function is called.
        names: of those it has, in order.
        required: those without a default.
        positional: those that are only taken by position.
        open: whether it takes further ones by name.
        variadic: whether it takes further ones by position.
    """

    called: str
    names: tuple[str, ...]
    required: frozenset[str]
    positional: tuple[str, ...]
    open: bool
    variadic: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Self:
        """Reads the signature.

        Raises:
            SpecError: the function does not tell it.
        """
        called = str(getattr(function, "__name__", type(function).__name__))
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            raise SpecError(f"{called} does not tell its arguments; call it from a function of your own") from None
        own = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return cls(
            called,
            tuple(p.name for p in own),
            frozenset(p.name for p in own if p.default is p.empty),
            tuple(p.name for p in own if p.kind is p.POSITIONAL_ONLY),
            any(p.kind is p.VAR_KEYWORD for p in parameters),
            any(p.kind is p.VAR_POSITIONAL for p in parameters),
        )

    def __str__(self) -> str:
        return ", ".join(self.names) or "no arguments"

    def require(self, name: str) -> None:
        """Refuses a name that the function has no argument of.

        Raises:
            SpecError: names those it has, and the nearest.
        """
        if name not in self.names and not self.open:
            raise SpecError(f"{self.called} has no argument {name!r}{nearest(name, self.names)}; it has {self}")

    def next_after(self, bound: Collection[str]) -> str:
        """The first argument that is not bound yet.

        Raises:
            SpecError: all are.
        """
        name = next((name for name in self.names if name not in bound), None)
        if name is None:
            all_are = f"it has {self}, bound already" if self.names else "it has none"
            hint = "; further ones are bound by name" if self.open else ""
            raise SpecError(f"{self.called} has no argument left: {all_are}{hint}")
        return name

    def ordered(self, bound: Mapping[str, T]) -> dict[str, T]:
        """What is bound, in the order of the signature, so that it is the same however it was written."""
        named = {name: bound[name] for name in self.names if name in bound}
        return named | {name: bound[name] for name in sorted(bound.keys() - named.keys())}

    def check(self, bound: Collection[str]) -> None:
        """Looks whether all that is needed is bound.

        Raises:
            SpecError: an argument is not; names it.
        """
        if self.required.issubset(bound) and not self.positional:
            return
        needed = [name for name in self.names if name in self.required and name not in bound]
        given = [place for place, name in enumerate(self.positional) if name in bound]
        needed += [name for name in self.positional[: given[-1] if given else 0] if name not in bound]
        if needed:
            raise SpecError(f"{self.called} needs {needed[0]}, which is not bound; bind it with on({needed[0]}=…)")

    def caller(self, function: Callable[..., Any], *, copied: bool) -> Callable[[dict[str, Any]], Any]:
        """What calls the function with arguments by name.

        Args:
            function: whose arguments these are.
            copied: whether it is given copies, so that it can change nothing of the values.
        """
        if not self.positional:
            return (lambda args: function(**_copied(args))) if copied else (lambda args: function(**args))

        def call(args: dict[str, Any]) -> Any:
            named = _copied(args) if copied else dict(args)
            first = [named.pop(name) for name in self.positional if name in named]
            return function(*first, **named)

        return call


def _copied(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if type(value) in PLAIN else _copy_of(value) for name, value in args.items()}


def _copy_of(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # an object of the app's that cannot be copied is handed over as it is
        return value
