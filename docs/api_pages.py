"""The pages of the API reference: one for each room, of the names that its `__init__` exports."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.ext.autodoc.mock import mock

OPTIONAL = ["langchain_classic", "langchain_core", "llama_index", "llama_index_instrumentation"]
"""Packages that some modules derive classes from, and that the site is built without."""

ROOMS = (
    *("data", "run", "evaluation", "aggregation", "comparison", "report"),
    *("metrics", "trace", "engine", "store", "core"),
    *("problem", "tradeoff", "apps", "experiment"),
    *("interop.d3m", "interop.dyff", "interop.fairical", "interop.pharia", "interop.trulens"),
    "testing",
)
"""In the order in which they are shown: the steps of the path, what they stand on, uses of the path, other systems."""


def write_pages(folder: Path) -> None:
    """Write a page for `evaluand` and for each room into `folder`, and remove others."""
    folder.mkdir(exist_ok=True)
    with mock(OPTIONAL):
        modules = {room: importlib.import_module(f"evaluand.{room}") for room in ROOMS}
        homes = {id(value): room for room, module in modules.items() for _, value in exported(module)}
        pages = {f"{room}.md": "\n".join(room_page(module)) for room, module in modules.items() if exported(module)}
        pages["evaluand.md"] = "\n".join(top_page(importlib.import_module("evaluand"), homes))
    for old in set(folder.glob("*.md")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")  # an unchanged page is not built again


def exported(module: ModuleType) -> list[tuple[str, Any]]:
    """The public names of a package with their values, in alphabetical order whatever their case."""
    names = [name for name in getattr(module, "__all__", ()) if not name.startswith("_")]
    return [(name, getattr(module, name)) for name in sorted(names, key=str.lower)]


def room_page(module: ModuleType) -> Iterator[str]:
    """A summary of the room, a table of its names, and the description of each."""
    yield f"# {module.__name__}\n"
    yield f"```{{eval-rst}}\n.. py:module:: {module.__name__}\n```\n"
    yield f"{(module.__doc__ or '').strip()}\n"
    yield "| name | |\n|---|---|"
    for name, value in exported(module):
        yield f"| [`{name}`](#{module.__name__}.{name}) | {summary(value)} |"
    yield "\n```{eval-rst}"
    for name, value in exported(module):
        yield from described(f"{module.__name__}.{name}", value)
    yield "```\n"


def top_page(package: ModuleType, homes: dict[int, str]) -> Iterator[str]:
    """The names of `evaluand` itself; those that a room exports too are described there."""
    yield "# evaluand\n"
    yield f"{(package.__doc__ or '').strip()}\n"
    yield "| name | room | |\n|---|---|---|"
    here = []
    for name, value in exported(package):
        room = homes.get(id(value))
        target = f"evaluand.{room}.{name}" if room else f"evaluand.{name}"
        link = f"[`{room}`]({room}.md)" if room else ""
        yield f"| [`{name}`](#{target}) | {link} | {summary(value)} |"
        here += [] if room else [(name, value)]
    yield "\n```{eval-rst}\n.. py:module:: evaluand\n"
    for name, value in here:
        yield from described(f"evaluand.{name}", value)
    yield "```\n"


def described(name: str, value: Any) -> Iterator[str]:
    """The directives that describe a name."""
    if inspect.isclass(value):
        yield f"\n.. autoclass:: {name}\n   :members:\n   :show-inheritance:\n"
    elif callable(value):
        yield f"\n.. autofunction:: {name}\n"
    else:
        yield f"\n.. autodata:: {name}\n   :no-value:\n"


def summary(value: Any) -> str:
    """The first sentence of a docstring, as a cell of a table."""
    text = inspect.getdoc(value) if inspect.isclass(value) or callable(value) else None
    first = re.split(r"(?<=[.:])\s", " ".join((text or "").split("\n\n")[0].split()), maxsplit=1)[0]
    return first.replace("|", "\\|")


def to_restructured_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Protect what docstrings write plainly and reStructuredText would read as markup."""
    lines[:] = [protect(line) for line in lines]


def protect(line: str) -> str:
    r"""A line whose names in backticks are literals, and whose stars, bars and trailing underscores are text.

    Example:
        >>> protect("the `_index_` of *args, see name_")
        'the ``_index_`` of \\\\*args, see name\\\\_'
    """
    if line.lstrip().startswith((">>>", "...", "..", ":")):
        return line
    parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"``{part.strip('`')}``"
        else:
            parts[place] = re.sub(r"([*|])|(?<=\w)_(?!\w)", lambda found: f"\\{found[0]}", part)
    return "".join(parts)
