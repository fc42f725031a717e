"""A list of artifacts for the terminal, made from facts alone."""

import itertools
from collections.abc import Sequence
from textwrap import wrap

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from evaluand.core.labels import shown_name
from evaluand.report.counts import format_counts
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL
from evaluand.report.text import SHORT_ID, minute, safe
from evaluand.report.usage import brief_usage


class Listing:
    """Artifacts, one line each; neither a rich table nor texts, which would measure and wrap each of thousands.

    In a narrow terminal the counts are wrapped before the names.
    """

    _COLUMNS = ("kind", "id", "created", "name", "counts")
    _LEAST = 14

    def __init__(self, entries: Sequence[Facts]) -> None:
        self._rows = [self._COLUMNS, *(_listing_row(entry) for entry in entries)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kind, id, created, name = (max(cell_len(row[i]) for row in self._rows) for i in range(4))
        head = kind + id + created + 6
        name = min(name, max(options.max_width - head - 2 - self._LEAST, self._LEAST))
        room = max(options.max_width - head - name - 2, self._LEAST)
        dim = console.get_style("dim")
        style: Style | None = dim
        for row in self._rows:
            names = [row[3]] if cell_len(row[3]) <= name else chop_cells(row[3], name)
            counts = [row[4]] if len(row[4]) <= room else wrap(row[4], room)
            first = f"{row[0]:{kind}}  {row[1]:{id}}  {row[2]:{created}}  "
            for start, part, count in itertools.zip_longest([first], names, counts, fillvalue=""):
                line = f"{start or ' ' * head}{set_cell_size(part, name)}  {count}"
                yield Segment(f"{line.rstrip()}\n", style)
            style = None
        if any(row[3].startswith("(") for row in self._rows):
            yield Segment("(name): a later artifact has this name now\n", dim)


def _listing_row(entry: Facts) -> tuple[str, str, str, str, str]:
    names = safe(", ".join(map(shown_name, entry["names"])), 2 * CELL)
    if not entry["names"] and entry["name"]:
        names = f"({safe(shown_name(entry['name']), 2 * CELL)})"  # a later artifact has the name now
    counts = format_counts(entry["counts"]) if entry["status"] == "sealed" else entry["status"]
    if usage := brief_usage(entry):
        counts += f"; {safe(usage, CELL)}"
    return safe(entry["kind"]), safe(entry["id"])[:SHORT_ID], minute(entry["created"]), names, counts
