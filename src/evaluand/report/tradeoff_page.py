"""Trade-offs in a page: planes of points and fronts, indicators, and the points of the fronts in a table.

Of more than two objectives there is a plane for the first against each of the others; a point of the front may then
look beaten in one plane, and is better in another. A limit and an objective can be set in the page, which then tells
the point that is best among those that keep it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import IO, Any, Final

import numpy as np

from evaluand.report import charts
from evaluand.report.charts import Axis
from evaluand.report.markup import clean, name, plural, table, th
from evaluand.report.page import page_end, page_foot, page_head
from evaluand.report.plots import Plot, Series
from evaluand.report.text import LABEL, numbers, safe
from evaluand.tradeoff import Tradeoff, compared, shared_objectives
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
    """Writes trade-offs of some systems, with the same objectives, as one page that is complete in itself.

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    section = tradeoff_section(systems)
    meta = " · ".join([plural(len(systems), "system"), plural(sum(map(len, systems.values())), "point")])
    file.write(page_head(title, "Trade-offs", meta, scripts=_SCRIPTS, skip="tradeoff").encode())
    file.write(b'<main>\n<section id="tradeoff" aria-label="Trade-offs">\n')
    file.write(section.encode())
    file.write(f"</section>\n{page_foot()}{page_end(_SCRIPTS)}".encode())


def tradeoff_section(systems: Mapping[str, Tradeoff]) -> str:
    """The planes, indicators and points of some systems.

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    objectives = shared_objectives(systems)
    places = {system: number for number, system in enumerate(systems)}
    legend = "".join(f"<li>{charts.key(number)}{name(system)}</li>" for system, number in places.items())
    parts = [f'<ul class="legend">{legend}</ul>' if len(systems) > 1 else ""]
    planes = "".join(_plane(systems, objectives, 0, other) for other in range(1, len(objectives)))
    parts.append(f'<div class="planes">{planes}</div>')
    decided = any(not np.isnan(points.threshold).all() for points in systems.values())
    dot = "a model at a threshold" if decided else "a variant"
    parts.append(
        f'<p class="note">Each dot is {dot}; those with a line are on the front, which no other point '
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
    axes = [Axis.over(known[:, i].tolist() if len(known) else [0.0, 1.0]) for i in (0, 1)]
    label = safe(f"{y.name} against {x.name}")
    plot = Plot(
        _told(x),
        _told(y),
        label,
        axes[0],
        axes[1],
        turned=x.direction == "lower",
        upturned=y.direction == "lower",
    )
    series = [each for number, points in enumerate(systems.values()) for each in _series(points, number, up, across)]
    return f'<figure class="plot2"><figcaption>{clean(label)}</figcaption>{plot.svg(series)}</figure>'


def _series(points: Tradeoff, number: int, up: int, across: int) -> Iterator[Series]:
    beaten = points.dominated()
    pale = beaten.value[_thinned(len(beaten), _MOST_DRAWN)][:, [across, up]]
    yield Series(number, [*map(tuple, pale.tolist())], line=False, dots=True, pale=True)
    front = points.front()
    front = front.taken(np.argsort(front.value[:, across], kind="stable"))
    front = front.taken(_thinned(len(front), _MOST_DRAWN))
    ends = [] if front.ends is None else [*zip(*(_plain(end[:, up]) for end in front.ends[1:]), strict=True)]
    told = [
        f"{safe(points.system)}: {safe(front.models[model])}{_at(threshold)}: "
        + ", ".join(
            f"{safe(one.name)} {numbers(value)[0]}" for one, value in zip(front.objectives, values, strict=True)
        )
        for model, threshold, values in zip(front.model, front.threshold, front.value.tolist(), strict=True)
    ]
    xy = [*map(tuple, front.value[:, [across, up]].tolist())]
    if len(points.objectives) == 2:
        yield Series(number, _steps(xy, points.objectives[across]))
    yield Series(number, xy, ends, line=False, dots=True, told=told)


def _steps(xy: Sequence[tuple[float, float]], across: Objective) -> list[tuple[float, float]]:
    """A front from point to point: nothing between two of them is offered but what one of them offers."""
    lower = across.direction == "lower"
    corners = [(b[0], a[1]) if lower else (a[0], b[1]) for a, b in pairwise(xy)]
    return [*(at for pair in zip(xy, corners, strict=False) for at in pair), *xy[-1:]]


def _thinned(n: int, most: int) -> np.ndarray:
    """The places of so many of n things that lie evenly, the first and the last among them."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


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
    lines: list[str] = []
    chosen_from: list[list[Any]] = []
    left = 0
    for system, points in systems.items():
        front = points.front()
        listed = _thinned(len(front), _MOST_LISTED).tolist()
        rows = {place: len(lines) + row for row, place in enumerate(listed)}
        lines += [_line(system, front, place) for place in listed]
        left += len(front) - len(listed)
        chosen_from += [_choice(system, front, place, rows.get(place)) for place in range(len(front))]
    cut = (
        f'<p class="note">{plural(left, "more point")} of the fronts, evenly among those above, '
        f"{'is' if left == 1 else 'are'} not listed; the best is chosen among all.</p>"
        if left
        else ""
    )
    told = json.dumps({"lower": [one.direction == "lower" for one in objectives], "points": chosen_from})
    told = told.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")  # nothing ends the element
    body = f"<tbody>{''.join(lines)}</tbody>"
    data = f'<script type="application/json" id="front">{told}</script>'
    return table("The points of the fronts", heads, body, "sortable points") + cut + data


def _choice(system: str, front: Tradeoff, place: int, row: int | None) -> list[Any]:
    """What the script needs of a point: what it is called, its line if it is listed, and its values."""
    model = safe(front.models[front.model[place]], LABEL)
    called = [safe(system, LABEL), model, _threshold(float(front.threshold[place]))]
    return [" · ".join(called), row, front.value[place].tolist()]


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
        f'{_threshold_cell(float(front.threshold[place]))}{"".join(cells)}<td class="text">{trivial}</td></tr>'
    )


def _cell(value: float, more: str = "") -> str:
    if math.isnan(value):
        return "<td>–</td>"
    shown = numbers(value)[0] if math.isfinite(value) else _threshold(value)
    return f'<td data-v="{value!r}">{shown}{more}</td>'


def _threshold_cell(threshold: float) -> str:
    return "<td>–</td>" if math.isnan(threshold) else f'<td data-v="{threshold!r}">{_threshold(threshold)}</td>'


def _threshold(value: float) -> str:
    """The shortest text that is read as the same number, so that a threshold gives its point."""
    if math.isnan(value):
        return "–"
    return repr(value).removesuffix(".0") if math.isfinite(value) else "∞" if value > 0 else "−∞"


def _told(objective: Objective) -> str:
    return f"{safe(objective.name)} ({objective.direction} is better)"


def _at(threshold: float) -> str:
    return "" if math.isnan(threshold) else f" from {_threshold(float(threshold))}"


def _plain(values: np.ndarray) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]
