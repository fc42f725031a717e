"""The parameters that functions and methods of tasks take, besides the input."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from evaluand.core.errors import SpecError

_EXTRAS = frozenset(("task_span", "seed", "index", "id", "replication"))


class DoRunParameters(NamedTuple):
    """What a `do_run` takes after the input: the task span as second argument, and parameters filled in by name."""

    takes_span: bool
    extras: tuple[str, ...]


@functools.lru_cache(256)
def read_do_run(cls: Any) -> DoRunParameters:
    """The parameters of the `do_run` of a class.

    Raises:
        SpecError: it requires a parameter that is not filled in.
    """
    try:
        parameters = [*inspect.signature(cls.do_run).parameters.values()][1:]
    except (TypeError, ValueError):  # some built-in functions
        return DoRunParameters(True, ())
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return DoRunParameters(True, ())
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not placed:
        raise SpecError(f"{cls.__name__}.do_run takes no input; its first parameter must be the example's input")
    takes_span = len(placed) > 1 and placed[1].name not in _EXTRAS - {"task_span"}
    rest = [p for p in parameters[2 if takes_span else 1 :] if p.kind is not p.VAR_KEYWORD]
    unknown = [p.name for p in rest if p.default is p.empty and p.name not in _EXTRAS]
    if unknown:
        raise SpecError(
            f"{cls.__name__}.do_run requires {', '.join(unknown)}, which is not filled in (filled in are"
            f" {', '.join(sorted(_EXTRAS))}); give it a default, or take it in __init__"
        )
    return DoRunParameters(takes_span, tuple(p.name for p in rest if p.name in _EXTRAS))


def read_function(function: Callable[..., Any], name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters to fill in, and those to take from a mapping input (none if the input is one value)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions
        return (), ()
    candidates = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not candidates:
        raise SpecError(f"task {name!r} has no parameter; its first parameter must be the example's input")
    extras = tuple(p.name for p in candidates[1:] if p.name in _EXTRAS)
    others = [p for p in candidates if p.name not in extras]
    required = [p.name for p in others if p.default is p.empty]
    return extras, tuple(required) if len(required) > 1 or candidates[0].kind is candidates[0].KEYWORD_ONLY else ()
