"""The pages of the API reference: one for each room, of the names that its `__init__` exports."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.ext.autodoc.mock import mock
from sphinx.util.inspect import signature, stringify_signature

OPTIONAL = ["langchain_classic", "langchain_core", "llama_index", "llama_index_instrumentation"]
"""Packages that some modules derive classes from, and that the site is built without."""

ROOMS = (
    *("data", "run", "evaluation", "aggregation", "comparison", "report"),
    *("metrics", "models", "trace", "engine", "store", "core"),
    *("problem", "tradeoff", "apps", "experiment"),
    *("interop.d3m", "interop.dyff", "interop.fairical", "interop.pharia", "interop.trulens"),
    "testing",
)
"""In the order in which they are shown: the steps of the path, what they stand on, uses of the path, other systems."""

BUILTIN_SUMMARIES = {(kind.__doc__ or "").partition("\n")[0] for kind in (bool, dict, float, int, list, str, tuple)}


def write_pages(folder: Path) -> None:
    """Write a page for `evaluand` and for each room into `folder`, and remove others."""
    with mock(OPTIONAL):
        modules = {room: importlib.import_module(f"evaluand.{room}") for room in ROOMS}
        homes: dict[int, str] = {}  # object → where it is described: in the first room that exports it, once
        for module in modules.values():
            for name, value in exported(module):
                homes.setdefault(id(value), f"{module.__name__}.{name}")
        pages = {
            f"{room}.md": "\n".join(room_page(module, homes)) for room, module in modules.items() if exported(module)
        }
        pages["evaluand.md"] = "\n".join(top_page(importlib.import_module("evaluand"), homes))
    folder.mkdir(exist_ok=True)
    for old in set(folder.glob("*.md")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")  # an unchanged page is not built again


def exported(module: ModuleType) -> list[tuple[str, Any]]:
    """The public names of a package with their values, in alphabetical order whatever their case."""
    names = [name for name in getattr(module, "__all__", ()) if not name.startswith("_")]
    return [(name, getattr(module, name)) for name in sorted(names, key=str.lower)]


def room_page(module: ModuleType, homes: dict[int, str]) -> Iterator[str]:
    """A summary of the room, a table of its names, and the description of each."""
    yield f"# {module.__name__}\n"
    yield f"```{{eval-rst}}\n.. py:module:: {module.__name__}\n```\n"
    yield f"{(module.__doc__ or '').strip()}\n"
    yield "```{eval-rst}\n.. list-table::\n   :widths: 30 70\n"
    names = exported(module)
    for name, value in names:
        yield from table_row(name, homes[id(value)], value)
    for name, value in names:
        if homes[id(value)] == f"{module.__name__}.{name}":
            yield from described(f"{module.__name__}.{name}", value)
    yield "```\n"


def top_page(package: ModuleType, homes: dict[int, str]) -> Iterator[str]:
    """The names of `evaluand` itself; those that a room exports too are described there."""
    yield "# evaluand\n"
    yield f"{(package.__doc__ or '').strip()}\n"
    yield "```{eval-rst}\n.. py:module:: evaluand\n\n.. list-table::\n   :widths: 30 70\n"
    names = exported(package)
    for name, value in names:
        yield from table_row(name, homes.get(id(value), f"evaluand.{name}"), value)
    for name, value in names:
        if id(value) not in homes:
            yield from described(f"evaluand.{name}", value)
    yield "```\n"


def table_row(name: str, target: str, value: Any) -> Iterator[str]:
    """A row of a table: the name, linked to its description, and its first sentence."""
    yield f"   * - :py:obj:`{name} <{target}>`\n     - {protect(summary(value))}"


def described(name: str, value: Any) -> Iterator[str]:
    """The directives that describe a name."""
    if inspect.isclass(value):
        inheritance = "" if value.__bases__ == (object,) else "   :show-inheritance:\n"
        stated = {each: method for each, method in vars(value).items() if states_signature(method)}
        excluded = f"   :exclude-members: {', '.join(stated)}\n" if stated else ""
        yield f"\n.. autoclass:: {name}\n   :members:\n{excluded}{inheritance}"
        for each, method in stated.items():
            shown = stringify_signature(signature(method, bound_method=True))
            yield f"\n   .. automethod:: {name}.{each}{shown}\n"
    elif inspect.ismodule(value):
        yield f"\n.. automodule:: {name}\n   :members:\n"
    elif callable(value):
        yield f"\n.. autofunction:: {name}\n"
    else:
        yield f"\n.. autodata:: {name}\n   :no-value:\n"


def states_signature(value: Any) -> bool:
    """Whether a public method has another signature than the source from which Sphinx would read its defaults."""
    wrapped = getattr(value, "__wrapped__", None)
    if not inspect.isfunction(wrapped) or "__signature__" not in vars(value) or value.__name__.startswith("_"):
        return False
    return bool(wrapped.__defaults__) or wrapped.__code__.co_kwonlyargcount > 0


def summary(value: Any) -> str:
    """The first sentence of a docstring."""
    text = inspect.getdoc(value) if inspect.isclass(value) or callable(value) else None
    return re.split(r"(?<=[.:])\s", " ".join((text or "").split("\n\n")[0].split()), maxsplit=1)[0]


def to_restructured_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Protect what docstrings write plainly and reStructuredText would read as markup."""
    if lines and lines[0] in BUILTIN_SUMMARIES:
        lines.clear()  # else a mapping, or `dict[str, int]`, without a docstring shows that of `dict`
    lines[:] = [protect(line) for line in join_literals(lines)]


def join_literals(lines: Iterable[str]) -> Iterator[str]:
    """Lines in which no name in backticks goes on in the next line."""
    part = ""
    for line in lines:
        line = f"{part.rstrip()} {line.lstrip()}" if part else line
        part = line if line.count("`") % 2 else ""
        if not part:
            yield line
    if part:
        yield part


def protect(line: str) -> str:
    r"""A line whose names in backticks are literals, and whose stars, bars and trailing underscores are text.

    Example:
        >>> protect("the `_index_` of *args, see name_")
        'the ``_index_`` of \\\\*args, see name\\\\_'
    """
    if line.lstrip().startswith((">>>", "..")):
        return line
    if field := re.match(r"(\s*:[^:`]+: )(.*)", line):  # of a parameter or an error
        return field[1] + protect(field[2])
    parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
    for place, part in enumerate(parts):
        if place % 2:
            ending = "\\ " if parts[place + 1][:1].isalnum() else ""  # a letter may not follow a literal: `Score`s
            parts[place] = f"``{part.strip('`')}``{ending}"
        else:
            parts[place] = re.sub(r"([*|])|(?<=\w)_(?!\w)", lambda found: f"\\{found[0]}", part)
    return "".join(parts)
