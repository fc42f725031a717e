"""The steps of a path: what each one selects from the values before it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

NAME: Final = re.compile(r"[\w@-]+")
"""A key that needs no quotes in a path that begins with `$`."""

WORD: Final = re.compile(r"\w+")
"""A name that needs no quotes in any path."""


class Member(str):
    """A name: a key that `Selector.select` also follows through lists and, if allowed, into Python objects.

    In a path without `$`, what is at the beginning or after a dot is a name; what is in brackets is only a key.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Every:
    """`[*]`: all values of an object, all elements of a list."""

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [child for value in values for child in children(value)]

    def __str__(self) -> str:
        return "*"


@dataclass(frozen=True)
class Slice:
    """`[start:stop:step]`: part of a list."""

    start: int | None
    stop: int | None
    step: int | None

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        part = slice(self.start, self.stop, self.step)
        return [child for value in values if is_list(value) for child in value[part]]

    def __str__(self) -> str:
        parts = ["" if part is None else str(part) for part in (self.start, self.stop, self.step)]
        return ":".join(parts) if any(parts) else ":"


@dataclass(frozen=True)
class Filter:
    """`[?…]`: the children that pass a test."""

    text: str
    test: Callable[[Any, Any], bool]

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [child for value in values for child in children(value) if self.test(child, root)]

    def __str__(self) -> str:
        return f"?{self.text}"


@dataclass(frozen=True)
class Union:
    """`[a, b]`: what each of several parts selects, one part after another."""

    parts: tuple[str | int | Every | Slice | Filter, ...]

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [child for value in values for part in self.parts for child in _part(value, part, root)]

    def __str__(self) -> str:
        return ",".join(quoted(part) if isinstance(part, str) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Descend:
    """`..`: the values themselves and everything inside them, parents before children."""

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        found = []
        waiting = list(reversed(values))
        while waiting:
            value = waiting.pop()
            found.append(value)
            waiting.extend(reversed(children(value)))
        return found


@dataclass(frozen=True)
class Collect:
    """`.collect()`: all values so far, as one list."""

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [list(values)]


Step = str | int | Every | Slice | Filter | Union | Descend | Collect


def finder(step: Step) -> Callable[[Sequence[Any], Any], list[Any]]:
    """The function (values, root) → everything that a step selects; empty if nothing matches."""
    return (Union((step,)) if isinstance(step, str | int) else step).find


def children(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if is_list(value) else ()


def one_step(value: Any, step: Any) -> Any:
    """The value under a key or at an index.

    Raises:
        LookupError: there is no such value.
    """
    if isinstance(value, Mapping) if isinstance(step, str) else is_list(value):
        return value[step]
    raise LookupError


def is_list(value: Any, texts: bool = False) -> bool:
    return isinstance(value, Sequence) and (texts or not isinstance(value, str | bytes))


def written(steps: Sequence[Step], *, bare: bool | None = None) -> str:
    """The canonical text of steps; without `$` (bare) if one of them is a name.

    Example:
        >>> written(("a b", 0, Slice(1, None, None))), written((Member("a"), "b", Member("c.d")))
        ("$['a b'][0][1::]", "a['b'].'c.d'")
    """
    steps = keyed(steps)
    if bare is None:
        bare = any(isinstance(step, Member) for step in steps)
    text = "" if bare else "$"
    for step in steps:
        if isinstance(step, Member):
            text += f".{quoted(step)}" if not WORD.fullmatch(step) else f".{step}" if text else step
        elif isinstance(step, str) and bare:
            text += f"[{quoted(step)}]"
        elif isinstance(step, str) and text.endswith(".."):
            text += printed(step).removeprefix(".")
        else:
            text += printed(step)
    return text


def keyed(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, with keys in place of names after `..`, which goes through lists by itself."""
    before = (None, *steps)
    return tuple(
        str(step) if isinstance(step, Member) and isinstance(last, Descend) else step
        for last, step in zip(before, steps, strict=False)
    )


def printed(step: Step) -> str:
    """The text of a step in a path that begins with `$`, where every name is a key."""
    if isinstance(step, Descend):
        return ".."
    if isinstance(step, Collect):
        return ".collect()"
    if isinstance(step, str):
        return f".{step}" if NAME.fullmatch(step) else f"[{quoted(step)}]"
    return f"[{step}]"


def quoted(key: str) -> str:
    inner = json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + inner.replace("'", "\\'") + "'"


def _part(value: Any, part: str | int | Every | Slice | Filter, root: Any) -> Iterable[Any]:
    if not isinstance(part, str | int):
        return part.find((value,), root)
    try:
        return (one_step(value, part),)
    except LookupError:
        return ()
