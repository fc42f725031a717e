"""Comparisons of tasks as HTML: their differences on the same examples, and what their prompts differ in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaluand.comparison.verdict import BONFERRONI, adjustment, families_text
from evaluand.core.errors import plural, pluralize
from evaluand.report.facts.base import Facts
from evaluand.report.html.explanations import explain
from evaluand.report.html.page import clean, clean_sentence, example_link, excerpt, name, table, th
from evaluand.report.text import LABEL, between, clusters_text, numbers

_FLIPS: Final = 100
_VERDICT: Final = 400
_LINE: Final = 2000
_LINES: Final = 400
_VALUE: Final = 400
_WORDS: Final = {"-": ("del", "only in a"), "+": ("ins", "only in b")}


def comparisons_section(facts: Facts) -> str:
    """Pairs of tasks on the same examples, and what their prompts differ in; see `write_report`."""
    lines = []
    for row in facts.get("comparisons") or ():
        shown = numbers(row["difference"], row["low"], row["high"])
        interval = between(*shown[1:])
        p = "–" if row["p"] is None else f"{row['p']:.3g}"
        words = ("", "", "") if row.get("direction", "higher") else (" higher", " lower", "")
        counts = "".join(
            f"<td>{'–' if row[n] is None else format(row[n], ',') + word}</td>"
            for n, word in zip(("won", "lost", "n"), words, strict=True)
        )
        clusters = clusters_text([row])
        basis = f'<span class="why">Interval and test by {clean(clusters)}.</span>' if clusters else ""
        verdict = excerpt(row["verdict"], _VERDICT) + basis + _flips(row)
        pair = "".join(f'<th scope="row" class="text">{name(row[side])}</th>' for side in ("a", "b"))
        lines.append(
            f'<tr>{pair}<td class="text">{name(row["metric"])}</td><td class="value">{shown[0]}</td>'
            f'<td>{interval}</td><td>{p}</td>{counts}</tr><tr><td class="text long" colspan="9">{verdict}</td></tr>'
        )
    note = f'<p class="note">{clean_sentence(facts["not_compared"])}</p>' if facts.get("not_compared") else ""
    below = note + prompts_section(facts.get("prompts", ()))
    if not lines:
        return below
    adjusted = adjustment(facts["comparisons"])
    heads = "".join(th(n, "text") for n in ("a", "b", "metric"))
    ends = (f"interval ({adjusted})", "p") if adjusted == BONFERRONI else ("interval", f"p ({adjusted})")
    heads += "".join(map(th, ("difference", *ends, "won", "lost", "n")))
    differences = table("Differences b − a on the same examples", heads, f"<tbody>{''.join(lines)}</tbody>")
    families = families_text(facts["comparisons"])
    tests = f'<p class="note">p values: {clean(families)}.</p>' if families else ""
    return differences + tests + explain(adjusted) + below


def prompts_section(changes: Sequence[Facts]) -> str:
    """A fold for each task whose prompt or settings are not those of the first; empty if there is none.

    Args:
        changes: as `prompt_changes` returns them, with names of tasks in place of positions.
    """
    if not changes:
        return ""
    return f"<h3>What the tasks differ in</h3>\n{''.join(map(_fold, changes))}"


def _fold(change: Facts) -> str:
    parts = [_settings(change)] if change["settings"] else []
    if change["prompt"]:
        lines = "".join(map(_line, change["prompt"][:_LINES]))
        parts.append(f'<pre class="diff" dir="auto" tabindex="0">{lines}</pre>')
    if (more := len(change["prompt"]) - _LINES) > 0:
        parts.append(f'<p class="cut">{more:,} lines more</p>')
    summary = f"<summary>{name(change['a'])} → {name(change['b'])}</summary>"
    return f"<details open>{summary}{''.join(parts)}</details>\n"


def _settings(change: Facts) -> str:
    rows = "".join(
        f'<tr><th scope="row">{clean(each["name"], _VALUE)}</th>'
        + "".join(f'<td class="text">{clean(each[side] or "–", _VALUE)}</td>' for side in ("a", "b"))
        + "</tr>"
        for each in change["settings"]
    )
    heads = th("setting", "text") + th(change["a"], "text") + th(change["b"], "text")
    return table("Settings", heads, f"<tbody>{rows}</tbody>")


def _line(line: str) -> str:
    """A line of the difference, marked for those who see it and for those who hear it."""
    tag, words = _WORDS.get(line[0], ("span", ""))
    text = clean(line, _LINE)
    return f'<{tag} title="{words}">{text}</{tag}>\n' if words else f"{text}\n"


def _flips(row: Facts) -> str:
    flips = row.get("flips") or ()
    if not flips:
        return ""
    links = "".join(
        f'<li><a href="{example_link(row["b"], flip.get("index", flip["id"]))}">{clean(flip["id"], LABEL)}</a></li>'
        for flip in flips[:_FLIPS]
    )
    shown, total = min(len(flips), _FLIPS), max((row["won"] or 0) + (row["lost"] or 0), len(flips))
    more = f"<li>and {total - shown:,} more</li>" if total > shown else ""
    differ = pluralize(total, "differs", "differ")
    return f"<details><summary>{plural(total, 'example')} {differ}</summary><ul>{links}{more}</ul></details>"
