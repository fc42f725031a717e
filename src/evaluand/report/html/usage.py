"""What tasks and judges have used, as a table of the page."""

from __future__ import annotations

from collections.abc import Sequence

from evaluand.report.facts.base import Facts
from evaluand.report.html.page import clean, name, table, th
from evaluand.report.usage import total_spent, usage_cells, usage_totals

_CAPTION = "What calls and judges have used; reused answers with what they cost when they were made"


def usage_section(tasks: Sequence[Facts]) -> str:
    """A table: a line for the calls of each task, and for each of its judges; empty if none says what it has used."""
    used = [
        (entry["task"], scorer or "calls", total)
        for entry in tasks
        for made in (entry["run"], entry["evaluation"] or {})
        for scorer, total in usage_totals(made.get("usage"))
    ]
    if not used:
        return ""
    columns, cells = usage_cells([total for *_, total in used])
    lines = "".join(
        f'<tr><th scope="row">{name(task)}</th><td class="text">{name(what)}</td>'
        f"{''.join(f'<td>{clean(cell)}</td>' for cell in row)}</tr>"
        for (task, what, _), row in zip(used, cells, strict=True)
    )
    heads = th("Task", "text") + th("used by", "text") + "".join(map(th, columns))
    rows = table(_CAPTION, heads, f"<tbody>{lines}</tbody>")
    return f"<h3>Tokens and cost</h3>\n{rows}{_spent_line(tasks)}"


def _spent_line(tasks: Sequence[Facts]) -> str:
    """What making the runs and evaluations of the page has cost, each of them once; empty if no cost is known."""
    made = {step["id"]: step for entry in tasks for step in (entry["run"], entry["evaluation"]) if step is not None}
    has_cost = any(total.cost for step in made.values() for _, total in usage_totals(step.get("usage")))
    if not has_cost:
        return ""
    costs = " and ".join(total_spent(made.values()).costs()) or "nothing"
    return (
        f"\n<p>Making these runs and evaluations cost {clean(costs)} in total, without the rows that were reused.</p>"
    )
