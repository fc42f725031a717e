"""Trade-offs in a page: planes of points and fronts, indicators, and the points of the fronts in a table.

Of more than two objectives there is a plane for the first against each of the others; a point of the front may then
look beaten in one plane, and is better in another. A limit and an objective can be set in the page, which then tells
the point that is best among those that keep it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import IO, Final

import numpy as np

from evaluand import ids
from evaluand.report import charts
from evaluand.report.charts import Axis
from evaluand.report.markup import clean, name, plural, table, th
from evaluand.report.page import page_end, page_foot, page_head
from evaluand.report.plots import Plot, Series
from evaluand.report.text import numbers
from evaluand.tradeoff import Tradeoff, compared
from evaluand.tradeoff.objectives import Objective

_MOST_DRAWN: Final = 600
_MOST_LISTED: Final = 500
_SCRIPTS: Final = ("page.js", "tradeoff.js")
_INDICATORS: Final = {
    "hv": "hypervolume",
    "ud": "uniformity",
    "as": "average spread",
    "os": "overall spread",
    "onvg": "points on the front",
    "onvgr": "share on the front",
    "relative_onvg": "points, relative",
    "area": "radar area",
    "igd_plus": "IGD+",
    "epsilon": "epsilon",
}


def write_page(title: str, systems: Mapping[str, Tradeoff], file: IO[bytes]) -> None:
    """Writes trade-offs of some systems, with the same objectives, as one page that is complete in itself."""
    meta = " · ".join([plural(len(systems), "system"), plural(sum(map(len, systems.values())), "point")])
    file.write(page_head(title, "Trade-offs", meta, scripts=_SCRIPTS, skip="tradeoff").encode())
    file.write(b'<main>\n<section id="tradeoff" aria-label="Trade-offs">\n')
    file.write(tradeoff_section(systems).encode())
    file.write(f"</section>\n{page_foot()}{page_end(_SCRIPTS)}".encode())


def tradeoff_section(systems: Mapping[str, Tradeoff]) -> str:
    """The planes, indicators and points of some systems."""
    objectives = next(iter(systems.values())).objectives
    places = {system: number for number, system in enumerate(systems)}
    legend = "".join(f"<li>{charts.key(number)}{name(system)}</li>" for system, number in places.items())
    parts = [f'<ul class="legend">{legend}</ul>' if len(systems) > 1 else ""]
    planes = "".join(_plane(systems, objectives, 0, other) for other in range(1, len(objectives)))
    parts.append(f'<div class="planes">{planes}</div>')
    parts.append(
        '<p class="note">Each dot is a model at a threshold; those with a line are on the front, which no other point '
        "of the system beats in all objectives. Pale dots are beaten.</p>"
    )
    if len(objectives) > 1:
        parts.append(_indicator_table(systems))
    parts.append(_chooser(objectives))
    parts.append(_points_table(systems, objectives))
    return "\n".join(part for part in parts if part)


def _plane(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], up: int, across: int) -> str:
    """One objective against another, with what is better at the top and on the right."""
    known = np.concatenate([points.value[:, [across, up]] for points in systems.values()])
    known = known[~np.isnan(known).any(axis=1)]
    x, y = objectives[across], objectives[up]
    flip = x.direction == "lower"
    axes = [Axis.over(known[:, i].tolist() if len(known) else [0.0, 1.0]) for i in (0, 1)]
    label = f"{y.name} against {x.name}"
    plot = Plot(_told(x), _told(y), label, axes[0], axes[1], turned=flip)
    series = [each for number, points in enumerate(systems.values()) for each in _series(points, number, up, across)]
    return f'<figure class="plot2"><figcaption>{escape(label)}</figcaption>{plot.svg(series)}</figure>'


def _series(points: Tradeoff, number: int, up: int, across: int) -> Iterator[Series]:
    beaten = points.dominated()
    step = max(1, math.ceil(len(beaten) / _MOST_DRAWN))
    pale = beaten.value[::step, [across, up]]
    yield Series(number, [*map(tuple, pale.tolist())], line=False, dots=True, pale=True)
    front = points.front()
    order = np.argsort(front.value[:, across], kind="stable")[:_MOST_DRAWN]
    front = front.taken(order)
    ends = [] if front.ends is None else [*zip(*(_plain(end[:, up]) for end in front.ends[1:]), strict=True)]
    told = [
        f"{points.system}: {front.models[model]}{_at(threshold)}: "
        + ", ".join(f"{one.name} {numbers(value)[0]}" for one, value in zip(front.objectives, values, strict=True))
        for model, threshold, values in zip(front.model, front.threshold, front.value.tolist(), strict=True)
    ]
    xy = [*map(tuple, front.value[:, [across, up]].tolist())]
    yield Series(number, xy, ends, line=len(points.objectives) == 2, dots=True, told=told)


def _indicator_table(systems: Mapping[str, Tradeoff]) -> str:
    found = compared(systems)
    heads = th("System", "text", True) + "".join(th(title, "", True) for title in _INDICATORS.values())
    lines = "".join(
        f'<tr><th scope="row">{name(system)}</th>{"".join(_cell(one[key]) for key in _INDICATORS)}</tr>'
        for system, one in found.items()
    )
    note = (
        '<p class="note">Hypervolume: the share of all possible outcomes that the front dominates. IGD+ and epsilon: '
        "how far a system falls short of the best of all together; there lower is better, elsewhere higher.</p>"
    )
    return table("What the fronts are worth", heads, f"<tbody>{lines}</tbody>", "sortable") + note


def _chooser(objectives: Sequence[Objective]) -> str:
    """Fields in which an objective and limits are set; the script fills in which point is best."""
    options = "".join(f'<option value="{i}">{clean(one.name)}</option>' for i, one in enumerate(objectives))
    limits = "".join(
        f"<label>{clean(one.name)} {'at most' if one.direction == 'lower' else 'at least'} "
        f'<input type="number" step="any" data-limit="{i}" data-lower="{int(one.direction == "lower")}"></label> '
        for i, one in enumerate(objectives)
    )
    return (
        f'<form id="chooser" hidden><label>Best <select id="best">{options}</select></label> {limits}'
        '<output id="chosen" aria-live="polite"></output></form>'
        '<p class="note">What is chosen here looks better than it is: take its value from other data.</p>'
    )


def _points_table(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective]) -> str:
    heads = th("System", "text", True) + th("model", "text", True) + th("threshold", "", True)
    heads += "".join(th(one.name, "", True) for one in objectives) + th("", "text", True)
    lines, left = [], 0
    for system, points in systems.items():
        front = points.front()
        left += max(len(front) - _MOST_LISTED, 0)
        lines += [_line(system, front, place) for place in range(min(len(front), _MOST_LISTED))]
    cut = f'<p class="note">{left:,} more points are not listed.</p>' if left else ""
    directions = ids.encode([one.direction for one in objectives]).decode()
    body = f"<tbody data-directions='{clean(directions)}'>{''.join(lines)}</tbody>"
    return table("The points of the fronts", heads, body, "sortable points") + cut


def _line(system: str, front: Tradeoff, place: int) -> str:
    cells = []
    for i in range(len(front.objectives)):
        interval = ""
        if front.ends is not None and not math.isnan(front.ends.low[place, i]):
            low, high = numbers(*(float(end[place, i]) for end in front.ends[1:]))
            interval = f' <span class="muted">{low} – {high}</span>'
        cells.append(_cell(float(front.value[place, i]), interval))
    trivial = "decides alike for all rows" if front.trivial[place] else ""
    return (
        f'<tr><th scope="row">{name(system)}</th><td class="text">{name(front.models[front.model[place]])}</td>'
        f'{_cell(float(front.threshold[place]))}{"".join(cells)}<td class="text">{trivial}</td></tr>'
    )


def _cell(value: float, more: str = "") -> str:
    if math.isnan(value):
        return "<td>–</td>"
    shown = numbers(value)[0] if math.isfinite(value) else "∞"
    return f'<td data-v="{value!r}">{shown}{more}</td>'


def _told(objective: Objective) -> str:
    return f"{objective.name} ({objective.direction} is better)"


def _at(threshold: float) -> str:
    return "" if math.isnan(threshold) else f" from {threshold:g}"


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
