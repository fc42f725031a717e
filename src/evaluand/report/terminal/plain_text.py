"""Tables of the terminal as plain text, for `print` in Python and in notebooks."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console, Group

from evaluand.report.facts.base import Facts
from evaluand.report.terminal.comparison import comparison_table, gates_table
from evaluand.report.terminal.report import results_table

WIDTH = 120


def plain_text(*parts: Any, width: int = WIDTH) -> str:
    """Tables as text without styles, whatever the terminal or the notebook.

    Example:
        >>> plain_text("[bold]one[/bold]", "two").splitlines()
        ['one', 'two']
    """
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, force_terminal=False, force_jupyter=False)
    console.print(Group(*parts))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def results_text(facts: Facts) -> str:
    """The values of several tasks, their comparison and gates, where facts have them."""
    parts: list[Any] = [results_table(facts, quiet=True)]
    parts += ["", comparison_table(facts["comparison"])] if facts.get("comparison") else []
    parts += ["", gates_table(facts["gates"])] if facts.get("gates") else []
    return plain_text(*parts)
