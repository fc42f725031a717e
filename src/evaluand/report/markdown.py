"""Terminal output as GitHub-flavoured Markdown, for step summaries, comments on pull requests and documents.

The same tables and sentences as in the terminal; only their form differs. Texts from data are escaped: they are neither
markup nor HTML, link nowhere and mention nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import Final, cast

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_MARKUP: Final = re.compile(r"([&\\`*_{}\[\]()#+!|<>~$])")
_COMMIT: Final = r"\b[0-9a-fA-F]{20}(?=[0-9a-fA-F]{20}\b)"  # half of its digits
_CALLS: Final = re.compile(rf"([@#]|\bGH-|:(?=[\w+-]+:)|{_COMMIT})(?=\w)|(?<=[A-Za-z])(:)(?=//)|(?<=www)(\.)")
_BLOCKS: Final = re.compile(r"^(\d*)([-=.)])")
_WIDE: Final = 400
_BREAK: Final = "\u200b"  # of no width: what it is in or before is no mention, reference or address


def to_markdown(renderable: RenderableType) -> str:
    r"""What the terminal shows, as Markdown.

    Args:
        renderable: a text, a table, or groups of these.

    Raises:
        TypeError: it is none of these.

    Example:
        >>> table = Table("metric", "value")
        >>> table.add_row("a|b", "0.5")
        >>> print(to_markdown(Group(Text("mine", "bold"), table)))
        **mine**
        <BLANKLINE>
        | metric | value |
        | --- | --- |
        | a\|b | 0.5 |
    """
    return "\n\n".join(filter(None, _parts(renderable)))


def escape(text: str) -> str:
    r"""A text that Markdown shows as it is, on one line.

    Example:
        >>> escape("a_b|c")
        'a\\_b\\|c'
    """
    called = _CALLS.sub(lambda found: f"{found[0]}{_BREAK}" if found[1] else f"{_BREAK}{found[0]}", text)
    return "<br>".join(_MARKUP.sub(r"\\\1", line).strip() for line in called.splitlines())


def _parts(renderable: RenderableType) -> Iterator[str]:
    if isinstance(renderable, Group):
        for each in renderable.renderables:
            yield from _parts(each)
    elif isinstance(renderable, Table):
        yield _table(renderable)
    elif isinstance(renderable, Text | str):
        yield _text(renderable)
    elif hasattr(renderable, "__rich_console__"):  # which chooses its form by the width
        console = Console(width=_WIDE, file=StringIO())
        for part in renderable.__rich_console__(console, console.options):
            yield from _parts(cast("RenderableType", part))
    else:
        raise TypeError(f"{type(renderable).__name__} has no form in Markdown")


def _text(text: Text | str) -> str:
    shown = _BLOCKS.sub(r"\1\\\2", escape(_plain(text)))  # begins no list, and underlines nothing
    is_title = isinstance(text, Text) and "bold" in str(text.style) and shown
    return f"**{shown}**" if is_title else shown


def _table(table: Table) -> str:
    """A table with its head; a grid has an empty one, which Markdown needs."""
    rows = [*zip(*([*column.cells] for column in table.columns), strict=True)]
    if not rows:
        return ""
    heads = [escape(_plain(column.header)) if table.show_header else "" for column in table.columns]
    sides = ["---:" if column.justify == "right" else "---" for column in table.columns]
    lines = [heads, sides, *([escape(_plain(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _plain(cell: RenderableType) -> str:
    if isinstance(cell, Text):
        return cell.plain
    if isinstance(cell, Group):
        return "\n".join(map(_plain, cell.renderables))
    if isinstance(cell, Padding):
        return _plain(cell.renderable)
    if not isinstance(cell, str):
        raise TypeError(f"{type(cell).__name__} in a table has no form in Markdown")
    return cell
