"""The judges of a report: whether they were measured, what they are worth, and means corrected for their errors."""

from __future__ import annotations

from collections.abc import Sequence

from evaluand.judges.cards.wording import cost_text, measure_cells, measure_name
from evaluand.report.facts.base import Facts
from evaluand.report.html.page import clean, clean_lines, clean_sentence, name, table, th
from evaluand.report.text import SHORT_ID, between, numbers


def judges_section(judges: Sequence[Facts], facts: Facts) -> str:
    """The standing of each judge, its rubric, its means as they are and corrected, and the cards.

    Args:
        judges: as `judge_facts` returns them.
        facts: of the report, with the `cards` of measured judges, `rubrics`, as `rubric_facts` returns them, and
            `rubric_changes`.
    """
    changes = [f'<p class="failed">{clean(change)}</p>' for change in facts["rubric_changes"]]
    rubrics, cards = map(_rubric, facts["rubrics"]), map(_card, facts["cards"])
    parts = [_standings(judges), *changes, *rubrics, _corrected(judges), *cards]
    return "\n".join(part for part in parts if part)


def _standings(judges: Sequence[Facts]) -> str:
    return f'<ul class="words">{"".join(dict.fromkeys(map(_standing, judges)))}</ul>'


def _standing(judge: Facts) -> str:
    marked = "" if judge["status"] == "measured" else ' class="warn"'
    return f"<li{marked}>{name(judge['judge'])}: {clean_sentence(judge['text'])}.</li>"


def _rubric(rubric: Facts) -> str:
    """The rubric of a judge, folded."""
    question = "" if rubric["question"] is None else f", question {clean(rubric['question'])}"
    head = f"{name(rubric['judge'])}{question}: rubric {clean(rubric['title'])} ({clean(rubric['rubric'])[:SHORT_ID]})"
    lines = [("dividing", rubric["dividing"])] if rubric["dividing"] else []
    lines += [(message["role"], message["content"]) for message in rubric["messages"]]
    material = rubric["material"]
    lines.append(("material", material if isinstance(material, str) else ", ".join(material)))
    body = "".join(f"<dt>{clean(role)}</dt><dd><pre>{clean_lines(text)}</pre></dd>" for role, text in lines)
    return f"<details><summary>{head}</summary><dl>{body}</dl></details>"


def _corrected(judges: Sequence[Facts]) -> str:
    rows = [each for each in judges if each["corrected"] is not None]
    if not rows:
        return ""
    lines = []
    for row in rows:
        raw, corrected = row["raw"], row["corrected"]
        cells = [
            *numbers(raw["value"], raw["low"], raw["high"]),
            *numbers(*map(corrected.get, ("value", "low", "high"))),
        ]
        why = "" if corrected["reason"] is None else f'<span class="why">{clean(corrected["reason"])}</span>'
        why += f'<span class="why">{clean(row["overlap"])}</span>' if row["overlap"] else ""
        lines.append(
            f'<tr><th scope="row">{name(row["task"])}</th><td class="text">{name(row["judge"])}</td>'
            f'<td class="value">{cells[0]}</td><td>{between(*cells[1:3])}</td>'
            f'<td class="value">{cells[3]}{why}</td><td>{between(*cells[4:])}</td></tr>'
        )
    heads = th("Task", "text") + th("judge", "text")
    heads += "".join(map(th, ("judged right", "interval", "corrected", "interval")))
    caption = "The share of answers that a judge takes for right, and the share that is right if it errs as on its card"
    return table(caption, heads, f"<tbody>{''.join(lines)}</tbody>")


def _card(card: Facts) -> str:
    lines = []
    has_parts = any(row["part"] for row in card["measures"])
    for row in card["measures"]:
        what, part = measure_name(row)
        of = f'<td class="text">{clean(part)}</td>' if has_parts else ""
        value, interval = measure_cells(row)
        note = "; ".join(filter(None, (row["note"], row["reason"])))
        lines.append(
            f'<tr><th scope="row">{clean(what)}</th>{of}<td class="value">{value}</td>'
            f'<td>{interval}</td><td>{row["n"]:,}</td><td class="text">{clean(note)}</td></tr>'
        )
    heads = th("Measure", "text") + (th("of", "text") if has_parts else "")
    heads += "".join(map(th, ("value", "interval", "n"))) + th("note", "text")
    caption = f"{name(card['judge']['name'])}: {clean(card['basis'])} (card {clean(card['id'])[:SHORT_ID]})"
    cost = cost_text(card)
    note = f'<p class="note">{clean(cost)}</p>' if cost else ""
    return table(caption, heads, f"<tbody>{''.join(lines)}</tbody>") + note
