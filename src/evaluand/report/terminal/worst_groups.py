"""The groups for which metrics are worst, in the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL, plain_table
from evaluand.report.text import between, group_name, numbers, safe, worst_groups_notes

_HEADS: Final = ("worst groups", "task", "value", "interval", "rows", "other rows", "worse")


def worst_groups_table(rows: Sequence[Facts]) -> RenderableType:
    """Worst groups: a line per task, metric and group, with the value of all other rows."""
    table = plain_table(*_HEADS, folded=_HEADS[:2])
    for row in rows:
        if row["by"] is None:
            continue
        value, low, high, rest = numbers(row["value"], row["low"], row["high"], row["rest"])
        interval = between(low, high)
        what = f"{safe(row['label'], 2 * CELL)}\n  {group_name(row['by'])}"
        sure = "yes" if row["confirmed"] else "unclear"
        table.add_row(*map(Text, (what, safe(row["task"], CELL), value, interval, f"{row['n']:,}", rest, sure)))
    return Group(*_parts(table if table.row_count else None, rows))


def _parts(table: RenderableType | None, rows: Sequence[Facts]) -> Iterator[RenderableType]:
    if table is not None:
        yield table
    yield from (Text(note, "dim") for note in worst_groups_notes(rows))
