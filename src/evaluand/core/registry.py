"""Finds kinds (metrics, scorers, tasks, …) by name through entry points, without importing them first.

A kind is a class (or a schema) in one of the groups below. evaluand declares its own kinds in `pyproject.toml` as
any plug-in does, so a plug-in only has to be installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from evaluand.core.errors import SpecError, alternatives, singular

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = (
    *("formats", "schemas", "adapters", "scorers", "metrics", "tasks", "providers"),
    *("problem_formats", "battle_formats", "importers", "exporters"),
)
NAMED = ("tasks", "scorers")
"""The groups whose entries in experiment files are named by the user."""


def find(group: str, name: str) -> Any:
    """The class or schema registered under a name.

    Args:
        group: one of `GROUPS`.
        name: the kind's name, such as `exact_match`.

    Raises:
        SpecError: no kind has this name; the message suggests the nearest.

    Example:
        >>> find("metrics", "accuracy").__name__
        'Accuracy'
    """
    known = _entry_points(group)
    if name not in known:
        raise SpecError(f"{no_kind(group, name)}{alternatives(name, sorted(known))}")
    return known[name].load()


def no_kind(group: str, name: str) -> str:
    """That no kind has a name, which for `NAMED` groups is not that of an entry.

    Example:
        >>> no_kind("tasks", "chats"), no_kind("metrics", "acuracy")
        ("no kind of task is called 'chats'", "no metric is called 'acuracy'")
    """
    word = f"kind of {singular(group)}" if group in NAMED else singular(group)
    return f"no {word} is called {name!r}"


def split_entry(what: str, entry: Mapping[Any, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of a dictionary, as files have them.

    Raises:
        SpecError: it names no kind.

    Example:
        >>> split_entry("metrics", {"kind": "f_beta", "beta": 2})
        ('f_beta', {'beta': 2})
    """
    name = entry.get("kind")
    if not isinstance(name, str):
        raise SpecError(f"{what}: {dict(entry)!r} has no kind; write it such as {{'kind': NAME, PARAMETER: VALUE}}")
    return name, {str(key): value for key, value in entry.items() if key != "kind"}


def make_default(group: str, name: str, **parameters: Any) -> Any:
    """An instance of a kind with its default parameters, except those passed here.

    Raises:
        SpecError: no kind has this name, it has required parameters, or lacks one; the message names them.

    Example:
        >>> make_default("metrics", "pass_at_k")
        Traceback (most recent call last):
        evaluand.SpecError: pass_at_k: give k; from Python as PassAtK(k=…)
        >>> make_default("metrics", "recall", labl="yes")
        Traceback (most recent call last):
        evaluand.SpecError: recall has no parameter 'labl' (did you mean 'label'?); known: missing, reduce, ...
    """
    kind = find(group, name)
    expected = inspect.signature(kind).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in expected.values())
    for unknown in () if takes_any else parameters.keys() - expected.keys():
        raise SpecError(f"{name} has no parameter {unknown!r}{alternatives(unknown, list(expected))}")
    required = [p.name for p in expected.values() if p.default is p.empty and p.name not in parameters]
    if required:
        arguments = ", ".join(f"{one}=…" for one in required)
        raise SpecError(f"{name}: give {' and '.join(required)}; from Python as {kind.__name__}({arguments})")
    return kind(**parameters)


def names(group: str) -> list[str]:
    """The names registered in a group, sorted."""
    return sorted(_entry_points(group))


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in _installed() if point.group == f"evaluand.{group}"}


@cache
def _installed() -> list[EntryPoint]:
    """The entry points of the packages that register kinds; to parse those of all others, too, takes twice as long."""
    from importlib.metadata import distributions  # imported on use: it takes 20 ms that most commands do not need

    using = [package for package in distributions() if "evaluand." in (package.read_text("entry_points.txt") or "")]
    by_name = {package.name: package for package in reversed(using)}  # of two copies, the first on the path counts
    return [point for package in by_name.values() for point in package.entry_points]
