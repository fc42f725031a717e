"""The options by which commands read a file of battles."""

from collections.abc import Callable
from typing import Any

import click

from evaluand.cli.options import repeatable


def battle_options(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options of `read_battles` to a command.

    Args:
        what: which argument they are about, for the help.
    """
    options = (
        repeatable(
            "--column",
            "columns",
            metavar="FIELD=COLUMN",
            callback=_read_columns,
            help=f"{what}: where a field is, such as a=left; repeatable.",
        ),
        click.option("--a", "first", metavar="SYSTEM", help=f"{what}: the first system, if no column has it."),
        click.option("--b", "second", metavar="SYSTEM", help=f"{what}: the second system, if no column has it."),
        click.option("--in-order", is_flag=True, help=f"{what}: the first system's response was shown first."),
        click.option(
            "--by-people", is_flag=True, help=f"{what}: people have judged, so gates need no card of a judge."
        ),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _read_columns(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Field → column, of options such as `a=left`."""
    columns = {}
    for text in texts:
        field, equals, column = text.partition("=")
        if not (field and equals and column):
            raise click.UsageError(f"--column {text} must be a field and its column, such as a=left")
        columns[field] = column
    return columns
