"""Drift as tables of the terminal."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.comparison.verdict import format_p
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL, plain_table
from evaluand.report.text import numbers, safe

_SHOWN: Final = 25


def drift_table(facts: Facts) -> RenderableType:
    """The columns that differ most clearly first, the classifier, and the verdict.

    Args:
        facts: as `Drift.to_dict` returns them.
    """
    level = 1 - facts["confidence"] + 1e-12
    a, b = (safe(label, CELL) for label in facts["labels"])
    interval = f"{100 * facts['confidence']:g}% interval"
    table = plain_table("column", "effect", folded=("effect",), numbers=(a, b, "value", interval, "psi", "p (Holm)"))
    for row in facts["columns"][:_SHOWN]:
        style = "bold" if row["p_adjusted"] is not None and row["p_adjusted"] <= level else ""
        table.add_row(
            Text(safe(row["column"], CELL), style),
            Text(safe(row["effect"], CELL) if row["reason"] is None else safe(row["reason"])),
            *numbers(row["a"], row["b"]),
            *_estimate(row),
            *numbers(row["psi"]),
            _p(row["p_adjusted"]),
        )
    parts: list[RenderableType] = [table]
    if (more := len(facts["columns"]) - _SHOWN) > 0:
        parts.append(Text(f"{more:,} more with larger p are in --json", "dim"))
    parts += ["", Text(_classifier(facts["classifier"], a, b))]
    parts += [Text(note, "dim") for note in _notes(facts)]
    return Group(*parts, "", Text(safe(facts["verdict"]), "bold"))


def _estimate(row: Facts) -> tuple[str, str]:
    value, low, high = numbers(row["value"], row["low"], row["high"])
    return value, "–" if row["low"] is None else f"[{low}, {high}]"


def _p(p: float | None) -> str:
    return "–" if p is None else format_p(p).removeprefix("p ").removeprefix("= ")


def _classifier(facts: Facts, a: str, b: str) -> str:
    if facts["reason"] is not None:
        return f"classifier: none, {facts['reason']}"
    area, interval = _estimate({**facts, "value": facts["area"]})
    drivers = ", ".join(safe(each["column"], CELL) for each in facts["drivers"])
    needs = f"; it needs {drivers}" if drivers and facts["p_adjusted"] is not None else ""
    return (
        f"classifier: ranks an unseen row of {b} above one of {a} with a chance of {area} {interval}, 0.5 by guessing;"
        f" {format_p(facts['p_adjusted'])} after Holm{needs}"
    )


def _notes(facts: Facts) -> list[str]:
    notes = []
    if facts["by"]:
        a, b = facts["units"]
        pairs = f", of which {facts['pairs']:,} are in both and compared with themselves" if facts["pairs"] else ""
        notes.append(f"rows belong together by {safe(facts['by'])}: {a:,} and {b:,}{pairs}")
    for label, side in zip(facts["labels"], "ab", strict=True):
        names = ", ".join(safe(name, CELL) for name in facts[f"only_{side}"])
        notes += [f"only {safe(label, CELL)} has {names}"] if names else []
    chance = [row["psi_by_chance"] for row in facts["columns"] if row["psi_by_chance"] is not None]
    if chance:
        notes.append(f"psi reaches {max(chance):.2g} by chance with this many rows")
    return notes
