"""The pieces that tables for the terminal are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from rich.table import Table
from rich.text import Text

from evaluand.report.text import safe

CELL = 60
LINES = 12
_TEXT = 600


def plain_table(*columns: str) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(Text(name), no_wrap=True)
    return table


def name_values(pairs: Iterable[tuple[str, str | Text]], indent: str = "") -> Table:
    """Names beside their values; a name that comes again is not repeated."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    before = None
    for name, value in pairs:
        told = "" if name == before else f"{indent}{safe(name, CELL)}"
        grid.add_row(Text(told), value if isinstance(value, Text) else Text(value))
        before = name
    return grid


def count_text(n: int, style: str = "") -> Text:
    """A count, in a style unless it is 0."""
    return Text(f"{n:,}", style if n else "")


def long_text(value: Any) -> str:
    """A value on several lines, cut where it is long; text as it is, all else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    lines = (text if len(text) <= _TEXT else text[: _TEXT - 1] + "…").split("\n")
    if len(lines) > LINES:
        lines = [*lines[:LINES], "…"]
    return "\n".join(safe(line.rstrip("\r")) for line in lines)
