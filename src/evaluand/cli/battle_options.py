"""The options by which commands read a file of battles."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import click

from evaluand.cli.command import option


@dataclass(frozen=True, kw_only=True)
class BattleOptions:
    """How the battles of a file are read, as `read_battles` takes it."""

    columns: tuple[str, ...] = option(
        "Battles: where a field is, such as a=left; repeatable.", "--column", metavar="FIELD=COLUMN"
    )
    first: str | None = option("Battles: the first system, if no column has it.", "--a", metavar="SYSTEM")
    second: str | None = option("Battles: the second system, if no column has it.", "--b", metavar="SYSTEM")
    in_order: bool = option("Battles: the first system's response was shown first.")
    by_people: bool = option("Battles: people have judged, so gates need no card of a judge.")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `read_battles`.

        Raises:
            UsageError: a column is not written as FIELD=COLUMN.
        """
        columns = {}
        for text in self.columns:
            name, equals, column = text.partition("=")
            if not (name and equals and column):
                raise click.UsageError(f"--column {text} must be a field and its column, such as a=left")
            columns[name] = column
        sides = {"a": self.first, "b": self.second}
        return sides | {"columns": columns, "in_order": self.in_order, "by_people": self.by_people}


BATTLE_OPTIONS: Final = tuple(field.name for field in fields(BattleOptions))
"""The names of the parameters of a command that reads battles."""
