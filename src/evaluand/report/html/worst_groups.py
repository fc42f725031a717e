"""The section of a report on the groups for which metrics are worst."""

from collections.abc import Mapping

from evaluand.report.facts.base import Facts
from evaluand.report.html.page import clean, name, table, th
from evaluand.report.text import LABEL, between, group_name, numbers, worst_groups_notes


def worst_groups_section(facts: Facts, labels: Mapping[tuple[str, str], str]) -> str:
    """A table of the worst groups of all metrics, and how they were found."""
    rows = facts.get("worst_groups") or []
    lines = "".join(_line(row, labels) for row in rows if row["by"] is not None)
    heads = "".join(th(head, "text") for head in ("Group", "metric", "task"))
    heads += "".join(th(head) for head in ("value", "interval", "rows", "other rows", "when chosen"))
    heads += th("worse", "text")
    body = table("Groups that looked worse than all rows", heads, f"<tbody>{lines}</tbody>") if lines else ""
    return body + "".join(f'<p class="note">{clean(note, 16 * LABEL)}</p>' for note in worst_groups_notes(rows))


def _line(row: Facts, labels: Mapping[tuple[str, str], str]) -> str:
    value, low, high, rest, found = numbers(*(row[part] for part in ("value", "low", "high", "rest", "found")))
    interval = between(low, high)
    label = labels.get((row["scorer"], row["signature"]), row["metric"])
    flag = '<span class="warn">yes</span>' if row["confirmed"] else "unclear"
    target = "" if row["target"] is None else f" · {name(row['target'])}"
    return (
        f'<tr><th scope="row"><bdi>{clean(group_name(row["by"]), 4 * LABEL)}</bdi></th>'
        f'<td class="text">{clean(label, 2 * LABEL)}</td><td class="text">{name(row["task"])}{target}</td>'
        f'<td class="value">{value}</td><td>{interval}</td><td>{row["n"]:,}</td><td>{rest}</td><td>{found}</td>'
        f'<td class="text">{flag}</td></tr>'
    )
