"""Name → kind, by entry points: how all kinds, from schemas to providers, are found without being imported.

A kind is a class (or a schema) under one of the groups below; our own are declared in `pyproject.toml` in the same way
as anybody else's, so a plug-in is installed, not configured.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from evaluand.core.errors import SpecError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = ("schemas", "adapters", "scorers", "metrics", "tasks", "providers")


def find(group: str, name: str) -> Any:
    """The class, or the schema, registered under a name.

    Args:
        group: one of `GROUPS`.
        name: the kind's name, such as `exact_match`.

    Raises:
        SpecError: nothing has that name; the message names the nearest.

    Example:
        >>> find("metrics", "accuracy").__name__
        'Accuracy'
    """
    known = _known(group)
    if name not in known:
        raise SpecError(f"no {group[:-1]} is called {name!r}{alternatives(name, sorted(known))}")
    return known[name].load()


def by_default(group: str, name: str, **given: Any) -> Any:
    """The kind of a name, made without parameters but those given.

    Raises:
        SpecError: nothing has that name, or it cannot do without parameters; the message names them.

    Example:
        >>> by_default("metrics", "pass_at_k")
        Traceback (most recent call last):
        evaluand.SpecError: pass_at_k: give k; from Python as PassAtK(k=…)
    """
    found = find(group, name)
    needed = [
        p.name for p in inspect.signature(found).parameters.values() if p.default is p.empty and p.name not in given
    ]
    if needed:
        arguments = ", ".join(f"{one}=…" for one in needed)
        raise SpecError(f"{name}: give {' and '.join(needed)}; from Python as {found.__name__}({arguments})")
    return found(**given)


def names(group: str) -> list[str]:
    """The names registered in a group, sorted."""
    return sorted(_known(group))


def alternatives(name: str, known: Sequence[str]) -> str:
    """What there is in place of an unknown name: the nearest, and all of few or the most similar of many.

    Example:
        >>> alternatives("acuracy", ["accuracy", "mean"])
        " (did you mean 'accuracy'?); known: accuracy, mean"
    """
    near = nearest(name, known)
    if len(known) <= _FEW:
        return f"{near}; known: {', '.join(known)}"
    similar = difflib.get_close_matches(name, known, n=_SIMILAR, cutoff=0.0)
    return near or f"; of {len(known)} names the most similar are {', '.join(similar)}"


_FEW = 15
_SIMILAR = 5


def nearest(name: str, known: Any) -> str:
    """` (did you mean 'x'?)` for the most similar known name, else for the shortest that begins so, or nothing.

    Example:
        >>> nearest("acuracy", ["accuracy", "mean"]), nearest("bas", ["baseline"]), nearest("f1", ["mean"])
        (" (did you mean 'accuracy'?)", " (did you mean 'baseline'?)", '')
    """
    return _nearest(name, tuple(known))


@lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[Any, ...]) -> str:
    """Kept for those who ask the same of every row."""
    begun = sorted((other for other in known if name and other.startswith(name)), key=len)
    close = difflib.get_close_matches(name, known, n=1) or begun
    return f" (did you mean {close[0]!r}?)" if close else ""


@cache
def _known(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # on use: 20 ms that most commands need not spend

    return {point.name: point for point in entry_points(group=f"evaluand.{group}")}
