"""The section of a report on ratings: who is better, by how much, and how far the judges can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from evaluand.comparison.verdict import adjusted_p, adjustment
from evaluand.core.errors import plural
from evaluand.matches.ratings.wording import (
    bias_texts,
    count_texts,
    difference_text,
    find_only_opponent,
    is_at_equal_length,
    is_share,
    method_texts,
    rating_label,
    select_bias,
)
from evaluand.report.facts.base import Facts
from evaluand.report.html import charts
from evaluand.report.html.charts import Axis, Dot
from evaluand.report.html.explanations import explain
from evaluand.report.html.page import clean, figure, name, table, th
from evaluand.report.text import LABEL, between, safe

_CELL: Final = 300
_CHARTED: Final = 100
_MATRIX: Final = 50
_NAMED: Final = 8
"""The most systems whose names head the columns of the matrix; those of more are numbered. In a sentence, too."""
_DIFFERENCES: Final = 500
_SHADES: Final = 10


def ratings_section(facts: Facts) -> str:
    """All ratings of a report, and which matches have none."""
    several = len(facts["ratings"]) > 1
    parts = [_ratings(ratings, several) for ratings in facts["ratings"]]
    parts += [
        f'<p class="note">{name(each["title"])} has not been rated: run <code>{clean(each["command"])}</code> and write'
        " the report again.</p>"
        for each in facts["unrated"]
    ]
    return "\n".join(parts)


def _ratings(facts: Facts, several: bool) -> str:
    heading = f'<h3 dir="auto">{name(facts["title"])}</h3>\n' if several else ""
    level = "h4" if several else "h3"
    return "\n".join(
        part
        for part in (
            heading,
            _plot(facts),
            _ranking(facts),
            _win_rates(facts, level),
            _biases(facts, level),
            _parameters(facts),
            _differences(facts),
            _method(facts),
        )
        if part
    )


def _plot(facts: Facts) -> str:
    """A dot with its interval for each system with a rating, best first."""
    rows = [row for row in facts["ratings"] if row["rating"] is not None][:_CHARTED]
    if not rows:
        return ""
    factor = 100 if is_share(facts) else 1
    dots = []
    for row in rows:
        value, low, high = (None if row[n] is None else factor * row[n] for n in ("rating", "low", "high"))
        is_open = (low is None) != (high is None)
        dots.append(
            Dot(value, low, high, None, None, open_low=is_open and low is None, open_high=is_open and high is None)
        )
    axis = Axis.over(v for dot in dots for v in dot.numbers)
    lines = [
        f'<tr><th scope="row">{name(row["system"])}</th><td class="chart">{charts.strip([dot], axis)}</td>'
        f'<td class="value">{_rating(row["rating"], facts)}</td></tr>'
        for row, dot in zip(rows, dots, strict=True)
    ]
    label = _label(facts)
    head = th("System", "text") + th(f"{label} and interval", "text") + th(label)
    foot = f'<td class="chart">{charts.scale(axis)}</td><td></td>'
    what = "Share of wins, in %" if is_share(facts) else "Rating"
    what = f"{label}, in %" if is_at_equal_length(facts) else what
    is_any_open = any(dot.open_low or dot.open_high for dot in dots)
    arrows = "; an arrow is an interval without an end" if is_any_open else ""
    return figure(f"{what}, best first, with its interval{arrows}", head, lines, foot)


def _ranking(facts: Facts) -> str:
    rows = facts["ratings"]
    without = [name for name in ("missing", "skipped") if any(row[f"n_{name}"] for row in rows)]
    heads = [
        ("rank", ""),
        ("system", "text"),
        (_label(facts), ""),
        ("interval", ""),
        ("letters", "text"),
        ("win rate", ""),
    ]
    heads += [(name, "") for name in ("won", "tied", "lost", *without, "examples")]
    body = "".join(_ranking_line(row, facts, without) for row in rows)
    caption = "Systems, best first; both orders of a pair are one match"
    ranking = table(caption, "".join(th(*head) for head in heads), f"<tbody>{body}</tbody>", "ranking")
    ranking += explain("letters")
    ranking += "".join(
        f'<p class="note">{clean(text[:1].upper() + text[1:], _CELL)}.</p>' for text in count_texts(facts)
    )
    unrated = [row for row in rows if row["rating"] is None]
    if not unrated:
        return ranking
    names = ", ".join(name(row["system"]) for row in unrated[:_NAMED])
    more = f" and {len(unrated) - _NAMED:,} more" if len(unrated) > _NAMED else ""
    have = "has" if len(unrated) == 1 else "have"
    return f'{ranking}<p class="note">{names}{more} {have} no rating; the reason is in the table.</p>'


def _ranking_line(row: Facts, facts: Facts, without: Sequence[str]) -> str:
    why = f'<span class="why">{clean(row["reason"], _CELL)}</span>' if row["reason"] else ""
    counts = ["won", "tied", "lost", *(f"n_{name}" for name in without)]
    interval = _interval(row["low"], row["high"], lambda value: _rating(value, facts))
    bounds = ""
    if row["n_missing"] and row["win_rate_worst"] is not None:
        bounds = (
            f'<span class="share" title="if all missing matches were lost, or won">'
            f"{100 * row['win_rate_worst']:.1f} … {100 * row['win_rate_best']:.1f} %</span>"
        )
    cells = [
        f"<td>{'–' if row['rank'] is None else row['rank']}</td>",
        f'<th scope="row">{name(row["system"])}{why}</th>',
        f'<td class="value">{_rating(row["rating"], facts)}</td>',
        f"<td>{interval}</td>",
        f'<td class="text">{clean(row["letters"] or "")}</td>',
        f'<td title="{_win_rate_title(row)}">{_percent(row["win_rate"])}{bounds}</td>',
        *(f'<td class="{"none" if not row[n] else "count"}">{_count(row[n])}</td>' for n in counts),
        f"<td>{row['examples']:,}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _win_rate_title(row: Facts) -> str:
    against = f"mean over {plural(row['opponents'], 'opponent')}"
    return f"{against}, interval {_interval(row['win_rate_low'], row['win_rate_high'], _percent)}"


def _win_rates(facts: Facts, level: str) -> str:
    """Each system against each other one, a cell the darker the further it is from half."""
    systems = [row["system"] for row in facts["ratings"]][:_MATRIX]
    if len(systems) < 2:
        return ""
    cells = {(row["a"], row["b"]): row for row in facts["win_rates"]}
    if (only := find_only_opponent(facts["win_rates"])) is not None and len(systems) > 2:
        note = f"All matches are against {name(only)}, so the win rates of the table above are those against it."
        return f'<p class="note">{note}</p>'
    numbered = len(systems) > _NAMED
    heads = th("wins of ↓ against →", "text") + "".join(
        f'<th scope="col" title="{clean(system, LABEL)}">{place if numbered else name(system)}</th>'
        for place, system in enumerate(systems, 1)
    )
    lines = [
        f'<tr><th scope="row">{f"{place}. " if numbered else ""}{name(one)}</th>'
        + "".join(_win_cell(cells.get((one, other)), one == other) for other in systems)
        + "</tr>"
        for place, one in enumerate(systems, 1)
    ]
    more = len(facts["ratings"]) - len(systems)
    note = (
        f'<p class="note">The first {len(systems)} systems; {more:,} more are in the table above.</p>' if more else ""
    )
    caption = "Win rates: blue cells are above 50 %, brown ones below"
    body = f"<tbody>{''.join(lines)}</tbody>"
    return f"<{level}>Who wins against whom</{level}>\n{table(caption, heads, body, 'matrix wins')}{note}"


def _win_cell(row: Mapping[str, Any] | None, same: bool) -> str:
    if same:
        return '<td class="none own" aria-label="the same system"></td>'
    if row is None or row["win_rate"] is None:
        return '<td class="none" title="never met">–</td>'
    distance = 2 * row["win_rate"] - 1
    shade = math.ceil(abs(distance) * _SHADES - 1e-9)
    kind = f' class="{"h" if distance > 0 else "l"}{min(shade, _SHADES)}"' if shade else ""
    counts = ", ".join(f"{what} {_count(row[what])}" for what in ("won", "tied", "lost"))
    without = (name for name in ("missing", "skipped") if row[f"n_{name}"])
    missing = "".join(f", {_count(row[f'n_{name}'])} {name}" for name in without)
    interval = _interval(row["low"], row["high"], _percent)
    title = (
        f"{row['a']} against {row['b']}: {counts}{missing} on {plural(row['examples'], 'example')}; interval {interval}"
    )
    return f'<td{kind} title="{clean(title, 6 * LABEL)}">{_percent(row["win_rate"])}</td>'


def _biases(facts: Facts, level: str) -> str:
    rows, n_others = select_bias(facts["bias"])
    texts = [*bias_texts(rows)]
    texts += [f"Each of {n_others:,} judges is in the table bias of `evaluand export`."] if n_others else []
    sentences = "".join(f"<li>{clean(text, 2 * _CELL)}</li>" for text in texts)
    heading = f"<{level}>Position bias and inconsistency of the judges</{level}>"
    return f'{heading}\n<ul class="words">{sentences}</ul>' if sentences else ""


def _parameters(facts: Facts) -> str:
    lines = []
    for row in facts["parameters"][:_DIFFERENCES]:
        why = f'<span class="why">{clean(row["reason"], _CELL)}</span>' if row["reason"] else ""
        interval = _interval(row["low"], row["high"], lambda value: f"{value:.4g}")
        value = "–" if row["value"] is None else f"{row['value']:.4g}"
        lines.append(
            f'<tr><th scope="row">{name(row["name"])}{why}</th><td class="text">{name(row["system"] or "")}</td>'
            f'<td class="value">{value}</td><td>{interval}</td></tr>'
        )
    heads = th("parameter", "text") + th("system", "text") + th("value") + th("interval")
    body = f"<tbody>{''.join(lines)}</tbody>"
    return table("What the method estimates besides ratings", heads, body, "small") if lines else ""


def _differences(facts: Facts) -> str:
    """Every two systems, folded."""
    rows = facts["differences"][:_DIFFERENCES]
    if not rows:
        return ""
    lines = "".join(_difference_line(row, facts) for row in rows)
    heads = (
        th("better", "text")
        + th("than", "text")
        + "".join(map(th, ("difference", "interval", f"p ({adjustment(rows)})")))
    )
    unit = "percentage points" if is_share(facts) else "points"
    body = table(f"Differences of ratings in {unit}", heads, f"<tbody>{lines}</tbody>")
    left = len(facts["differences"]) - len(rows)
    more = f'<p class="note">{left:,} more are in the table <code>differences</code>.</p>' if left else ""
    total = plural(len(facts["differences"]), "difference")
    note = f'<p class="note">{clean(difference_text(facts), _CELL)}.</p>'
    return f"<details><summary>{total} of ratings</summary>{body}{note}{more}</details>"


def _difference_line(row: Facts, facts: Facts) -> str:
    factor, form = (100, "+,.1f") if is_share(facts) else (1, "+,.0f")
    difference = "–" if row["difference"] is None else format(factor * row["difference"], form)
    interval = _interval(row["low"], row["high"], lambda value: format(factor * value, form))
    adjusted = adjusted_p(row)
    p = "–" if adjusted is None else "< 0.0001" if adjusted < 1e-4 else f"{adjusted:.3g}"
    why = f'<span class="why">{clean(row["reason"], _CELL)}</span>' if row["reason"] else ""
    return (
        f'<tr><th scope="row">{name(row["a"])}{why}</th><td class="text">{name(row["b"])}</td>'
        f'<td class="value">{difference}</td><td>{interval}</td><td>{p}</td></tr>'
    )


def _method(facts: Facts) -> str:
    sentences = " ".join(method_texts(facts))
    signature = f"<code>{clean(facts['signature'], 2 * _CELL)}</code>"
    return f'<p class="note">{clean(sentences, 4 * _CELL)}</p>\n<p class="note">Signature: {signature}</p>'


def _label(facts: Facts) -> str:
    """What the ratings are called; next to raw win rates they need another name."""
    return rating_label(facts["method"]) if is_at_equal_length(facts) else "rating"


def _rating(value: float | None, facts: Facts) -> str:
    return "–" if value is None else _percent(value) if is_share(facts) else f"{value:,.0f}"


def _interval(low: float | None, high: float | None, form: Any) -> str:
    """An interval, one end of which may be open; – if it is undefined."""
    if low is None and high is None:
        return "–"
    return between("–" if low is None else form(low), "–" if high is None else form(high))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _count(n: float) -> str:
    """A number of matches, of which one order is a half."""
    return safe(f"{n:,.1f}".removesuffix(".0"))
