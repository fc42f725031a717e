"""The results of a suite as one HTML page, built from facts alone: scores, ranks in a diagram, means, cost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from evaluand.core.errors import plural
from evaluand.report.facts.base import Facts
from evaluand.report.html.charts import Axis
from evaluand.report.html.page import clean, name, page_end, page_foot, page_head, table, th
from evaluand.report.terminal.suite import (
    by_rank,
    cost_cells,
    cost_sentences,
    count_text,
    mean_cells,
    mean_sentences,
    rank_sentences,
    score_cell,
    score_name,
    score_sentences,
)
from evaluand.report.text import LABEL, number_format, numbers, safe

_WITH_INTERVALS: Final = 8


def suite_page(facts: Facts) -> str:
    """A page that needs no network."""
    made = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M")
    meta = f"{plural(len(facts['systems']), 'system')} on {plural(len(facts['problems']), 'problem')}; made {made} UTC"
    parts = [
        page_head(facts["suite"], "Suite", clean(meta), skip="scores"),
        "<main>",
        _section("scores", "Scores", _scores(facts)),
        _section("ranks", "Mean ranks", _ranks(facts)),
        _section("means", "Means over problems", _means(facts)),
        _section("cost", "Cost", _costs(facts)),
        page_foot(),
        page_end(),
    ]
    return "\n".join(parts)


def _section(key: str, title: str, parts: Iterator[str]) -> str:
    return f'<section id="{key}"><h2>{title}</h2>\n{"".join(parts)}</section>'


def _scores(facts: Facts) -> Iterator[str]:
    shown = by_rank(facts)
    heads = th("Problem", "text") + th("Score", "text")
    heads += "".join(f'<th scope="col">{name(facts["systems"][place])}</th>' for place in shown)
    heads += th("rows")
    with_interval = len(shown) <= _WITH_INTERVALS
    lines = []
    for problem in facts["problems"]:
        values = [problem["values"][place] for place in shown]
        form = number_format(each[end] for each in values for end in ("value", "low", "high"))
        cells = "".join(_score(each, form, with_interval) for each in values)
        counts = f"<td>{count_text(problem)}</td>"
        score = f'<td class="text">{clean(score_name(problem))}</td>'
        lines.append(f'<tr><th scope="row">{name(problem["problem"])}</th>{score}{cells}{counts}</tr>')
    yield table("Scores of the systems", heads, f"<tbody>{''.join(lines)}</tbody>")
    yield from _notes(score_sentences(facts))


def _score(value: Facts, form: str, with_interval: bool) -> str:
    why = f' title="{clean(value["reason"])}"' if value["reason"] else ""
    return f"<td{why}>{clean(score_cell(value, form, with_interval=with_interval))}</td>"


def _ranks(facts: Facts) -> Iterator[str]:
    ranks = facts["ranks"]
    known = [each for each in ranks["systems"] if each["mean_rank"] is not None]
    if len(known) > 1:
        yield f"<figure>{rank_diagram(facts)}</figure>\n"
    order = [ranks["systems"][place] for place in by_rank(facts)]
    form = number_format(each["mean_rank"] for each in order)
    rows = [
        (each["system"], ["–" if each["mean_rank"] is None else format(each["mean_rank"], form), each["letters"] or ""])
        for each in order
    ]
    caption = f"Mean rank over {plural(ranks['problems'], 'problem')}; 1 is best"
    yield _table(caption, ("mean rank", "group"), rows)
    yield from _notes(rank_sentences(facts))


def _means(facts: Facts) -> Iterator[str]:
    macro = facts["macro"]
    if macro["systems"]:
        rows = [(system, cells) for system, *cells in mean_cells(macro)]
        caption = f"Mean score over {plural(macro['problems'], 'problem')}, each counts once"
        yield _table(caption, ("mean", "interval", "difference from best", "its interval"), rows)
    yield from _notes(mean_sentences(facts))


def _costs(facts: Facts) -> Iterator[str]:
    heads, rows = cost_cells(facts)
    yield _table("Cost of all rows, whenever they were made", heads, zip(facts["systems"], rows, strict=True))
    yield from _notes(cost_sentences(facts))


def _table(
    caption: str, heads: Sequence[str], rows: Iterator[tuple[str, Sequence[str]]] | Sequence[tuple[str, Sequence[str]]]
) -> str:
    lines = (
        f'<tr><th scope="row">{name(system)}</th>{"".join(f"<td>{clean(cell)}</td>" for cell in cells)}</tr>'
        for system, cells in rows
    )
    return table(caption, th("System", "text") + "".join(map(th, heads)), f"<tbody>{''.join(lines)}</tbody>")


def _notes(sentences: Iterator[str]) -> Iterator[str]:
    return (f'<p class="note">{clean(sentence[:1].upper() + sentence[1:])}.</p>\n' for sentence in sentences)


def rank_diagram(facts: Facts) -> str:
    """The critical-difference diagram: systems on an axis of mean ranks; bars join those that do not differ much.

    Source: J. Demšar, "Statistical comparisons of classifiers over multiple data sets" (Journal of Machine Learning
    Research 7, 2006), figure 1.
    """
    ranked = sorted(
        (each for each in facts["ranks"]["systems"] if each["mean_rank"] is not None),
        key=lambda each: each["mean_rank"],
    )
    axis = Axis(1.0, float(max(len(ranked), 2)), 1.0)
    bars = _bars(ranked)
    top = _AXIS + _BAR * (len(bars) + 1)
    half = (len(ranked) + 1) // 2
    height = top + _LINE * max(half, len(ranked) - half)
    parts = [*_scale(axis)]
    for number, (low, high) in enumerate(bars):
        y = _AXIS + _BAR * (number + 1)
        parts.append(
            f'<line class="line s0" x1="{_x(axis, low) - 3:.1f}" x2="{_x(axis, high) + 3:.1f}" y1="{y}" y2="{y}"/>'
        )
    for place, each in enumerate(ranked):
        on_left = place < half
        row = place if on_left else len(ranked) - 1 - place
        x, y, edge = _x(axis, each["mean_rank"]), top + _LINE * row, _MARGIN if on_left else _WIDTH - _MARGIN
        text, rank = escape(safe(each["system"], LABEL)), numbers(each["mean_rank"])[0]
        parts.append(f'<polyline class="guide" fill="none" points="{x:.1f},{_AXIS} {x:.1f},{y} {edge},{y}"/>')
        side = "end" if on_left else "start"
        at = edge - 4 if on_left else edge + 4
        parts.append(f'<text class="tick name {side}" x="{at}" y="{y + 4}">{text} {rank}</text>')
    label = "; ".join(f"{safe(each['system'], LABEL)} {numbers(each['mean_rank'])[0]}" for each in ranked)
    return (
        f'<svg class="plane" role="img" aria-label="Mean ranks: {escape(label)}" viewBox="0 0 {_WIDTH} {height}">'
        f"{''.join(parts)}</svg>"
    )


def _bars(ranked: Sequence[Facts]) -> list[tuple[float, float]]:
    """From where to where the systems that share a letter reach."""
    letters = dict.fromkeys(letter for each in ranked for letter in _letters(each))
    groups = ([each["mean_rank"] for each in ranked if letter in _letters(each)] for letter in letters)
    return [(min(group), max(group)) for group in groups if len(group) > 1]


def _letters(each: Facts) -> list[str]:
    """The letters of a system, of which those after z are numbers in parentheses."""
    text = each["letters"] or ""
    found, rest = [*text.partition("(")[0]], text.partition("(")[2]
    return [*found, *(number.strip("()") for number in rest.split(")(") if rest)]


def _scale(axis: Axis) -> Iterator[str]:
    yield f'<line class="base" x1="{_x(axis, axis.low)}" x2="{_x(axis, axis.high)}" y1="{_AXIS}" y2="{_AXIS}"/>'
    for rank in axis.ticks[:: max(1, round(axis.high / 10))]:
        x = f"{_x(axis, rank):.1f}"
        yield f'<line class="base" x1="{x}" x2="{x}" y1="{_AXIS - 4}" y2="{_AXIS}"/>'
        yield f'<text class="tick" x="{x}" y="{_AXIS - 8}">{rank:g}</text>'


def _x(axis: Axis, rank: float) -> float:
    return _MARGIN + 10 + (rank - axis.low) / (axis.high - axis.low) * (_WIDTH - 2 * _MARGIN - 20)


_WIDTH: Final = 640
_MARGIN: Final = 150
_AXIS: Final = 24
_BAR: Final = 8
_LINE: Final = 16
