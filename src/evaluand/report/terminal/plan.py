"""A plan as tables of the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL, plain_table
from evaluand.report.text import safe

_BAR = 30


def plan_table(facts: Facts) -> RenderableType:
    """What is needed under each assumption, with the power of fewer and more rows.

    Args:
        facts: as `Plan.to_dict` returns them.
    """
    parts: list[RenderableType] = [Text(safe(facts["question"], CELL), "bold")]
    for need in facts["needs"]:
        parts += ["", Text(f"if {safe(need['assumption'])}")]
        if need["reason"]:
            parts.append(Text(f"  never: {safe(need['reason'])}", "red"))
        if need["table"]:
            parts.append(_powers(need, facts["unit"]))
    parts += ["", Text(_method(facts), "dim")]
    if facts["variance"]:
        parts += ["", _variance(facts["variance"])]
    return Group(*parts, "", Text(safe(facts["summary"]), "bold"))


def _powers(need: Facts, unit: str) -> RenderableType:
    table = plain_table("", "", numbers=(unit, "power"))
    for n, power in need["table"]:
        mark = "→" if n == need["examples"] else ""
        style = "bold" if mark else ""
        bar = "█" * round(_BAR * power)
        table.add_row(mark, Text(bar.ljust(_BAR, "·"), "dim"), Text(f"{n:,}", style), Text(f"{power:.3f}", style))
    return table


def _method(facts: Facts) -> str:
    return f"power asked for: {facts['target']:g}; {safe(facts['method'])}"


def _variance(facts: Facts) -> RenderableType:
    """The sources of the variance, and what other designs would need."""
    total = sum(facts["components"].values()) or 1.0
    sources = plain_table("source of variance", numbers=("variance", "share"))
    for source, variance in facts["components"].items():
        sources.add_row(Text(source), f"{variance:.3g}", f"{100 * variance / total:.0f} %")
    several = [name for name in ("variants", "judges") if facts["sizes"][name] > 1]
    names = [*several, "replications", "examples", "calls of one system"]
    designs = plain_table(numbers=names + (["error that remains"] if several else []))
    for each in facts["options"]:
        cells = [f"{each[name]:,}" for name in (*several, "replications", "examples", "calls")]
        designs.add_row(*cells, *([f"{each['remaining_error']:.2g}"] if several else []))
    return Group(sources, "", Text(safe(facts["verdict"])), "", designs)
