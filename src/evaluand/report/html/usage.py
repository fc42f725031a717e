"""What tasks and judges have used, as a table of the page."""

from __future__ import annotations

from collections.abc import Sequence

from evaluand.report.facts.base import Facts
from evaluand.report.html.page import clean, name, table, th
from evaluand.report.usage import usage_cells, usage_totals, whole_cost

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
    """What making the runs and evaluations of the page has cost, each of them once; empty if nothing was asked."""
    cost = whole_cost(step for entry in tasks for step in (entry["run"], entry["evaluation"]) if step is not None)
    if not cost:
        return ""
    return f"\n<p>Cost of making these runs and evaluations, without rows that were reused: {clean(cost)}.</p>"
