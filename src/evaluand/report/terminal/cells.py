"""The building blocks of tables for the terminal."""

import base64
import math
from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any

import orjson
from orjson import Fragment
from rich.table import Table
from rich.text import Text

from evaluand.core import identity
from evaluand.report.text import safe, safe_lines

CELL = 60
LINES = 12
_TEXT = 600


def plain_table(*columns: str, folded: Collection[str] = (), numbers: Iterable[str] = ()) -> Table:
    """A table without lines: columns of text, of which some wrap, then columns of numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(Text(name), no_wrap=name not in folded, overflow="fold" if name in folded else "ellipsis")
    for name in numbers:
        table.add_column(Text(name), justify="right", no_wrap=True)
    return table


def name_values(pairs: Iterable[tuple[str, str | Text]], indent: str = "") -> Table:
    """A grid of names and values; a name equal to the one above is left blank."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    before = None
    for name, value in pairs:
        label = "" if name == before else f"{indent}{safe(name, CELL)}"
        grid.add_row(Text(label), value if isinstance(value, Text) else Text(value))
        before = name
    return grid


def count_text(n: int, style: str = "") -> Text:
    """A count, in a style unless it is 0."""
    return Text(f"{n:,}", style if n else "")


def status_text(status: str) -> Text:
    """A status in its colour."""
    return Text(status, {"failed": "red", "abstained": "yellow", "skipped": "yellow"}.get(status, "green"))


def long_text(value: Any) -> str:
    """A value on several lines, cut where it is long; see `readable_text`."""
    text = readable_text(value)
    lines = (text if len(text) <= _TEXT else text[: _TEXT - 1] + "…").split("\n")
    if len(lines) > LINES:
        lines = [*lines[:LINES], "…"]
    return safe_lines("\n".join(lines))


def readable_text(value: Any) -> str:
    """Data as people write it: text unchanged, else JSON with NaN, dates and bytes unquoted.

    Example:
        >>> readable_text({"scores": [{"$float": "NaN"}, 1.5], "on": {"$date": "2026-11-21"}})
        '{"scores":[NaN,1.5],"on":"2026-11-21"}'
        >>> readable_text({"$bytes": "eHg="}), readable_text({"$float": "-Infinity"})
        ('base64:eHg=', '-Infinity')
        >>> readable_text({"$decimal": "0.10"})
        '0.10'
    """
    if not isinstance(value, str | float):
        value = identity.decode(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS))
    value = _unquote(value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _unquote(value: Any) -> Any:
    if isinstance(value, list):
        return [_unquote(item) for item in value]
    if isinstance(value, dict):
        return {key: _unquote(item) for key, item in value.items()}
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return Fragment("NaN" if value != value else "Infinity" if value > 0 else "-Infinity")
    if isinstance(value, int | float | Decimal):
        return Fragment(str(value))
    return f"base64:{base64.b64encode(value).decode()}" if isinstance(value, bytes) else str(value)
