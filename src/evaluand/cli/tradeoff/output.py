"""Printing tables of trade-offs, for people and in the formats of other tools."""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any, Final

import click
from click import UsageError
from rich.text import Text

from evaluand.cli.output import show
from evaluand.core.errors import SpecError
from evaluand.report.terminal.cells import plain_table
from evaluand.report.text import safe


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]], form: str | None = None) -> None:
    """Prints a table of texts, counts and numbers; without a format for people."""
    if form is None:
        return _print_plain(header, rows)
    if form == "csv":
        return _print_csv(header, rows)
    try:
        from tabulate import tabulate, tabulate_formats
    except ImportError:
        raise SpecError(f"tables as {form} need tabulate: pip install 'evaluand[plots]'") from None
    known = [one for one in tabulate_formats if one not in _UNSAFE]
    if form not in known:
        raise UsageError(f"--format: there is no {form!r}; there are csv, {', '.join(known)}")
    sides = [_side(value) for value in rows[0]]
    cells = [[*map(_format_cell, row)] for row in rows]
    if form in _PIPED:
        header, *cells = ([cell.replace("|", "\\|") for cell in row] for row in (header, *cells))
    click.echo(tabulate(cells, header, tablefmt=form, disable_numparse=True, colalign=sides))


def _print_plain(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = plain_table(*header)
    for column, value in zip(table.columns, rows[0] if rows else (), strict=False):
        column.no_wrap, column.overflow = not isinstance(value, str), "fold"  # names wrap, numbers do not
    for row in rows:
        table.add_row(*(Text(_format_cell(value), justify=_side(value)) for value in row))
    show(table)


def _print_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    exact = [[safe(each) if isinstance(each, str) else each for each in row] for row in rows]
    csv.writer(text, lineterminator="\n").writerows([header, *exact])
    click.echo(text.getvalue(), nl=False)


def _format_cell(value: str | float | None) -> str:
    if isinstance(value, str | int):
        return safe(str(value))
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"


def _side(value: object) -> Any:
    return "left" if isinstance(value, str) else "right"


_PIPED: Final = ("github", "pipe", "orgtbl", "jira")
"""Formats of tables in which | ends a cell."""
_UNSAFE: Final = ("latex_raw", "unsafehtml")
"""Formats that read names as markup."""
