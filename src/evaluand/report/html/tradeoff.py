"""Trade-offs in a page: planes of points and fronts, indicators, and the points of the fronts in a table.

Of more than two objectives there is a plane for the first against each of the others, so a point of the front may look
dominated in one plane and be better in another; of more than three there are parallel axes too. The reader can set an
objective and limits; the page then shows the best point within them, and its rates of groups where the rows are known.
The size of the page is limited, however many points there are. Each chart has a text alternative; its numbers are in
the tables of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from textwrap import wrap
from typing import IO, Any, Final

import numpy as np
import orjson

from evaluand.core.errors import SpecError, plural
from evaluand.report.html import charts
from evaluand.report.html.charts import SERIES, Axis, Plot, Series, mark
from evaluand.report.html.packing import compress, element as data_element
from evaluand.report.html.page import clean, name, page_end, page_foot, page_head, table, th
from evaluand.report.html.tradeoff_choice import (
    EXTREME_GROUPS,
    Choices,
    caption_rate,
    choice_facts,
    describe_cut,
    rate_cells,
    threshold_text,
)
from evaluand.report.text import LABEL, between, numbers, safe
from evaluand.report.tradeoff_facts import (
    area_of_front,
    describe_ends,
    dominated_places,
    ends_of,
    front_places,
    has_ends,
    point_labels,
)
from evaluand.tradeoff import RADAR
from evaluand.tradeoff.indicators import compare_systems, shared_objectives
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.rates import (
    CONFIDENCE,
    MOST_GROUPS,
    FrontRates,
    rates_of_fronts,
    thinned,
)

Indicators = Mapping[str, Mapping[str, float]]

_MOST_DRAWN: Final = 600
_MOST_LINES: Final = 100
_MOST_BARS: Final = 20
_MOST_NOTES: Final = 20
_PLANES_ALONE: Final = 3
_NO_RATES: Final = "The page has no rates of this point, as its rows are unknown or it is not listed."


def write_page(title: str, systems: Mapping[str, Tradeoff], file: IO[bytes]) -> None:
    """Writes trade-offs of some systems, with the same objectives, as one self-contained page.

    Their indicators and rates of groups are computed for the page; a report of an experiment reads stored ones.

    Args:
        systems: name → its points.

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    indicators = compare_systems(systems) if len(shared_objectives(systems)) > 1 else {}
    _check_thresholds(systems)
    rates = rates_of_fronts(systems)
    section = tradeoff_section(0, systems, indicators, rates)
    meta = " · ".join([plural(len(systems), "system"), plural(sum(map(len, systems.values())), "point")])
    file.write(page_head(title, "Trade-offs", meta, skip="tradeoff").encode())
    file.write(b'<main>\n<section id="tradeoff" aria-label="Trade-offs">\n')
    file.write(section.encode())
    file.write(f"</section>\n{page_foot()}".encode())
    write_choice(0, systems, rates, file)
    file.write(page_end().encode())


def tradeoff_section(
    number: int, systems: Mapping[str, Tradeoff], indicators: Indicators, rates: Mapping[str, FrontRates]
) -> str:
    """The planes, indicators, points and rates of groups of systems, in whose place a script lets the reader choose.

    Of a single objective no indicators are shown.

    Args:
        number: which one of the page, see `write_choice`.
    """
    objectives = shared_objectives(systems)
    choices = Choices.of(systems)
    parts = [
        f'<div data-part="tradeoff" data-section="{number}">',
        f'<div class="tradeoff-figures">{figures_section(systems, indicators)}</div>',
        _rates(objectives, rates, choices),
        f"{_points_table(systems, objectives, choices)}</div>",
    ]
    return "\n".join(part for part in parts if part)


def write_choice(
    number: int, systems: Mapping[str, Tradeoff], rates: Mapping[str, FrontRates], file: IO[bytes]
) -> None:
    """Writes the points that the script of a page lets the reader choose from."""
    choice = {"choice": choice_facts(systems, rates), "frames": plane_frames(systems)}
    file.write(data_element(f"data:tradeoffs/{number}", compress(orjson.dumps(choice))))


def figures_section(systems: Mapping[str, Tradeoff], indicators: Indicators) -> str:
    """The planes and indicators of systems, without a choice among their points."""
    objectives = shared_objectives(systems)
    _check_thresholds(systems)
    parts = [_legend(systems)]
    if len(objectives) > 1:
        parts += [_figures(systems, objectives, indicators), _figures_note(systems), _indicator_table(indicators)]
    else:
        note = f"There is one objective, so nothing is traded: the best points are listed. {describe_ends(systems)}"
        parts.append(f'<p class="note">{clean(note)}</p>')
    return "\n".join(part for part in [*parts, _notes(systems)] if part)


def plane_frames(systems: Mapping[str, Tradeoff]) -> list[list[list[float]]]:
    """Where points are in each plane of `figures_section`: for x and y the ends of the axis, and their places."""
    objectives = shared_objectives(systems)
    labels, _ = point_labels(systems)
    planes = (_plot(systems, objectives, 0, other, labels)[0] for other in range(1, len(objectives)))
    return [plot.frame for plot in planes]


def _check_thresholds(systems: Mapping[str, Tradeoff]) -> None:
    for system, points in systems.items():
        if points.threshold_groups:
            raise SpecError(f"{system}: a page shows points with one threshold, and these have one for each group")


def _legend(systems: Mapping[str, Tradeoff]) -> str:
    shaded = any(map(has_ends, systems.values())) and len(next(iter(systems.values())).objectives) > 1
    if len(systems) == 1 and not shaded:
        return ""
    lines = [f"<li>{charts.key(number)}{name(system)}</li>" for number, system in enumerate(systems)]
    if shaded:
        shade = "".join(
            f'<rect class="area s{number % charts.SERIES}" x="{number * 14}" width="14" height="14"/>'
            for number, points in enumerate(systems.values())
            if has_ends(points)
        )
        wide = 14 * len(systems)
        lines.append(
            f'<li><svg aria-hidden="true" width="{wide}" height="14">{shade}</svg>where its front may lie</li>'
        )
    return f'<ul class="legend">{"".join(lines)}</ul>'


def _figures(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], indicators: Indicators) -> str:
    labels, _ = point_labels(systems)
    planes = "".join(_plane(systems, objectives, 0, other, labels) for other in range(1, len(objectives)))
    lines = {system: _lines(points, labels.get(system)) for system, points in systems.items()}
    parallel = parallel_axes(objectives, lines) if len(objectives) > _PLANES_ALONE else ""
    few = " few" if len(objectives) == 2 else ""
    return f'<div class="planes{few}">{planes}{radar(indicators)}{parallel}</div>'


def _figures_note(systems: Mapping[str, Tradeoff]) -> str:
    ends = describe_ends(systems, "Shaded, or bars")
    decided = any(not np.isnan(points.threshold).all() for points in systems.values())
    dot = "a model at a threshold" if decided else "a variant"
    _, numbers = point_labels(systems)
    key = f" By number: {clean(numbers)}" if numbers else ""
    return (
        f'<p class="note">Each dot is {dot}; dots that are not pale are on the front: no other point of the system '
        f"dominates them. {clean(ends)}{key}</p>"
    )


def _notes(systems: Mapping[str, Tradeoff]) -> str:
    """The notes of the points, with the name of the system where there are several."""
    prefix = "{}: " if len(systems) > 1 else ""
    notes = [f"{prefix.format(system)}{note}" for system, one in systems.items() for note in one.notes]
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES:,} more notes"]
    return "".join(f'<p class="note">Note: {clean(each)}</p>' for each in notes)


def _lines(points: Tradeoff, labels: np.ndarray | None) -> Lines:
    """Points as lines from objective to objective, and the ends of some of the front."""
    on, dominated = (
        places[thinned(len(places), _MOST_LINES)] for places in (front_places(points), dominated_places(points))
    )
    front = points.front()
    some = front.take(thinned(len(front), _MOST_BARS))
    ends = [1 - replace(some, value=end).loss for end in ends_of(some)] if has_ends(points) else None
    return Lines(
        (1 - points.loss[on]).tolist(),
        _in_words(points.take(on)),
        [] if ends is None else np.stack([np.minimum(*ends), np.maximum(*ends)], axis=-1).tolist(),
        _select_labels(labels, on),
        (1 - points.loss[dominated]).tolist(),
        _in_words(points.take(dominated)),
        _select_labels(labels, dominated),
    )


def _select_labels(labels: np.ndarray | None, places: np.ndarray) -> list[str]:
    return [] if labels is None else [str(each) for each in labels[places]]


def _plane(
    systems: Mapping[str, Tradeoff],
    objectives: Sequence[Objective],
    up: int,
    across: int,
    labels: Mapping[str, np.ndarray],
) -> str:
    """One objective against another, with what is better at the top and on the right."""
    plot, series = _plot(systems, objectives, up, across, labels)
    return f'<figure class="plot2"><figcaption>{clean(plot.label)}</figcaption>{plot.svg(series)}</figure>'


def _plot(
    systems: Mapping[str, Tradeoff],
    objectives: Sequence[Objective],
    up: int,
    across: int,
    labels: Mapping[str, np.ndarray],
) -> tuple[Plot, list[Series]]:
    """A plane and what is drawn in it."""
    series = [
        each
        for number, (system, points) in enumerate(systems.items())
        for each in _series(points, number, up, across, labels.get(system))
    ]
    known = [at for one in series for at in (*one.points, *(at for corners in one.areas for at in corners))]
    x, y = objectives[across], objectives[up]
    label = safe(f"{y.name} against {x.name}")
    x_axis, y_axis = (Axis.over([at[i] for at in known]) for i in (0, 1))
    turned, upturned = (one.direction == "lower" for one in (x, y))
    return Plot(_axis_title(x), _axis_title(y), label, x_axis, y_axis, turned=turned, upturned=upturned), series


def _series(points: Tradeoff, number: int, up: int, across: int, labels: np.ndarray | None) -> Iterator[Series]:
    on = front_places(points)
    on = on[np.argsort(points.value[on, across], kind="stable")]
    on = on[thinned(len(on), _MOST_DRAWN)]
    front = points.take(on)
    if has_ends(points):
        two = len(points.objectives) == 2
        areas = [area_of_front(points, across, up)] if two else _boxes(front, across, up)
        yield Series(number, [], line=False, areas=[corners for corners in areas if corners])
    dominated = dominated_places(points)
    dominated = dominated[thinned(len(dominated), _MOST_DRAWN)]
    pale = [*map(tuple, points.value[dominated][:, [across, up]].tolist())]
    yield Series(number, pale, line=False, dots=True, pale=True, names=_select_labels(labels, dominated))
    xy = [*map(tuple, front.value[:, [across, up]].tolist())]
    if len(points.objectives) == 2:
        yield Series(number, _steps(xy, points.objectives[across]))
    yield Series(number, xy, line=False, dots=True, titles=_in_words(front), names=_select_labels(labels, on))


def _boxes(front: Tradeoff, across: int, up: int) -> list[list[tuple[float, float]]]:
    """The rectangle between the ends of each point of a front."""
    low, high = (end[:, [across, up]].tolist() for end in ends_of(front))
    return [[(a, b), (c, b), (c, d), (a, d)] for (a, b), (c, d) in zip(low, high, strict=True)]


def _in_words(points: Tradeoff) -> list[str]:
    return [
        f"{safe(points.system)}: {safe(points.models[model])}{_at(threshold)}: "
        + ", ".join(
            f"{safe(one.name)} {numbers(value)[0]}" for one, value in zip(points.objectives, values, strict=True)
        )
        for model, threshold, values in zip(points.model, points.threshold, points.value.tolist(), strict=True)
    ]


def _steps(xy: Sequence[tuple[float, float]], across: Objective) -> list[tuple[float, float]]:
    """The staircase of a front: between two points, no value is better than those of one of them."""
    lower = across.direction == "lower"
    corners = [(b[0], a[1]) if lower else (a[0], b[1]) for a, b in pairwise(xy)]
    return [*(at for pair in zip(xy, corners, strict=False) for at in pair), *xy[-1:]]


def _indicator_table(indicators: Indicators) -> str:
    heads = th("System", "text", True) + "".join(th(title, "", True) for title in INDICATORS.values())
    lines = "".join(
        f'<tr><th scope="row">{name(system)}</th>{"".join(_cell(one[key]) for key in INDICATORS)}</tr>'
        for system, one in indicators.items()
    )
    note = (
        '<p class="note">Hypervolume: the share of all possible outcomes that the front dominates. IGD+ and epsilon: '
        "how far a system falls short of the best of all together; there lower is better, elsewhere higher.</p>"
    )
    return table("Indicators of the fronts", heads, f"<tbody>{lines}</tbody>", "sortable") + note


def _rates(objectives: Sequence[Objective], rates: Mapping[str, FrontRates], choices: Choices) -> str:
    """The rates of groups at the best point by the first objective."""
    if choices.first is None or not rates:
        return ""
    system, place = choices.first
    keys = next(iter(rates.values())).keys
    of_point = rates[system].by_point.get(place) if system in rates else None
    lines = [[] for _ in keys] if of_point is None else rate_cells(objectives, keys, of_point)
    heads = th("Group", "text") + '<th scope="col" class="text" aria-hidden="true"></th>'
    heads += "".join(th(head) for head in ("rate", "interval", "rows"))
    tables = "".join(
        table(
            clean(caption_rate(objectives, key)),
            heads,
            f"<tbody>{''.join(map(_rate_line, each))}</tbody>",
            "small rates",
        )
        for key, each in zip(keys, lines, strict=True)
    )
    point = clean(_point_name(system, choices.fronts[system], place))
    missing = f'<p class="note">{_NO_RATES}</p>' if of_point is None else ""
    note = f"Intervals hold with {100 * CONFIDENCE:.4g} %, each by itself."
    if any(key.n_groups > MOST_GROUPS for each in rates.values() for key in each.keys):
        note += f" Of many groups {EXTREME_GROUPS}"
    return (
        f"<h3>Rates of groups: <bdi>{point}</bdi></h3>{missing}"
        f'<div class="planes few of-groups">{tables}</div><p class="note">{note}</p>'
    )


def _rate_line(rate: Sequence[Any]) -> str:
    group, rows, value, interval, spots = rate
    return (
        f'<tr><th scope="row"><bdi>{clean(group)}</bdi></th><td class="chart">{_bar(spots)}</td>'
        f'<td class="value">{value}</td><td>{interval}</td><td>{rows}</td></tr>'
    )


def _bar(spots: Sequence[float]) -> str:
    """A bar from 0 to the rate, with its interval."""
    if not spots:
        return ""
    zero, value, low, high = spots
    return (
        '<svg aria-hidden="true" width="100%" height="14">'
        f'<rect class="bar s0" x="{min(zero, value)}%" width="{abs(value - zero):.1f}%" y="2" height="10"/>'
        f'<line class="whisker" x1="{low}%" x2="{high}%" y1="7" y2="7"/></svg>'
    )


def _points_table(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], choices: Choices) -> str:
    heads = th("System", "text", True) + th("model", "text", True) + th("threshold", "", True)
    heads += "".join(th(one.name, "", True) for one in objectives) + th("note", "text", True)
    fronts = choices.fronts.items()
    lines = [_line(system, front, place) for system, front in fronts for place in choices.listed[system]]
    body = f"<tbody>{''.join(lines)}</tbody>"
    cut = describe_cut(choices)
    note = f'<p class="note">{cut}</p>' if cut else ""
    return table("The points of the fronts", heads, body, "sortable points") + note


def _point_name(system: str, front: Tradeoff, place: int) -> str:
    model = safe(front.models[front.model[place]], LABEL)
    return " · ".join(filter(None, [safe(system, LABEL), model, threshold_text(float(front.threshold[place]))]))


def _line(system: str, front: Tradeoff, place: int) -> str:
    cells = []
    for i in range(len(front.objectives)):
        interval = ""
        if front.ends is not None and not math.isnan(front.ends.low[place, i]):
            low, high = numbers(*(float(end[place, i]) for end in front.ends[1:]))
            interval = f' <span class="muted">{between(low, high)}</span>'
        cells.append(_cell(float(front.value[place, i]), interval))
    trivial = "accepts nobody or everybody" if front.trivial[place] else ""
    return (
        f'<tr><th scope="row">{name(system)}</th><td class="text">{name(front.models[front.model[place]])}</td>'
        f'{_threshold_cell(float(front.threshold[place]))}{"".join(cells)}<td class="text">{trivial}</td></tr>'
    )


def _cell(value: float, more: str = "") -> str:
    if math.isnan(value):
        return "<td>–</td>"
    shown = numbers(value)[0] if math.isfinite(value) else threshold_text(value)
    return f'<td data-v="{value!r}">{shown}{more}</td>'


def _threshold_cell(threshold: float) -> str:
    return "<td>–</td>" if math.isnan(threshold) else f'<td data-v="{threshold!r}">{threshold_text(threshold)}</td>'


def _axis_title(objective: Objective) -> str:
    return f"{safe(objective.name)} ({objective.direction} is better)"


def _at(threshold: float) -> str:
    return "" if math.isnan(threshold) else f" from {threshold_text(float(threshold))}"


INDICATORS: Final = {
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


def radar(indicators: Mapping[str, Mapping[str, float]], titles: Mapping[str, str] = INDICATORS) -> str:
    """The indicators of each system on five axes from 0 to 1; empty where no system has any."""
    known = [
        (number, system, one) for number, (system, one) in enumerate(indicators.items()) if not math.isnan(one["hv"])
    ]
    if not known:
        return ""
    parts = [_ring(step / 4) for step in range(1, 5)]
    for place, axis in enumerate(RADAR):
        (x, y), (u, v) = _on_radar(place, 1.0), _on_radar(place, 1.16)
        side = "middle" if abs(u - _MIDDLE[0]) < 1 else "start" if u > _MIDDLE[0] else "end"
        parts.append(f'<line class="grid" x1="{_MIDDLE[0]}" y1="{_MIDDLE[1]}" x2="{x:.1f}" y2="{y:.1f}"/>')
        lines = wrap(titles[axis], 11)
        top = v + 4 - (6 if side != "middle" else 12 if place == 0 else 0) * (len(lines) - 1)
        parts.append(f'<text class="axis {side}" y="{top:.1f}">{_spans(lines, round(u, 1))}</text>')
    for number, system, one in known:
        spots = [_on_radar(place, min(max(one[axis], 0.0), 1.0)) for place, axis in enumerate(RADAR)]
        path, series = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots), number % SERIES
        parts.append(f'<polygon class="area s{series}" points="{path}"/>')
        parts.append(f'<polygon class="line s{series} d{series}" points="{path}"/>')
        for axis, (x, y) in zip(RADAR, spots, strict=True):
            text = f"{safe(system, LABEL)}: {titles[axis]} {numbers(one[axis])[0]}"
            parts.append(mark(number, f"{x:.1f}", f"{y:.1f}", text))
    areas = "; ".join(f"{safe(system, LABEL)} {numbers(one['area'])[0]}" for _, system, one in known)
    label = f"Radar of indicators from 0 to 1; area: {areas}"
    return (
        '<figure class="plot2"><figcaption>Indicators from 0 to 1 '
        f'<span class="value">area: {escape(areas)}</span></figcaption>'
        f'<svg class="plane" role="img" aria-label="{escape(label)}" viewBox="0 0 300 236">{"".join(parts)}</svg>'
        "</figure>"
    )


@dataclass(frozen=True)
class Lines:
    """The points of a front on parallel axes, each from 0, the worst, to 1, the ideal.

    Attributes:
        points: points × objectives.
        texts: each point in words.
        ends: the lower and upper ends of some points, points × objectives × 2.
        names: the labels at the end of each line; none where there are many.
        dominated: points that are not on the front, as lines behind it.
        dominated_texts: each of these in words.
        dominated_names: the labels at the end of each.
    """

    points: Sequence[Sequence[float]]
    texts: Sequence[str]
    ends: Sequence[Sequence[Sequence[float]]]
    names: Sequence[str] = ()
    dominated: Sequence[Sequence[float]] = ()
    dominated_texts: Sequence[str] = ()
    dominated_names: Sequence[str] = ()


def parallel_axes(objectives: Sequence[Objective], systems: Mapping[str, Lines]) -> str:
    """Fronts of many objectives, with the better values at the top of each axis."""
    wide = _STEP * len(objectives) + _LEFT
    parts = []
    for place, one in enumerate(objectives):
        x = _across(place)
        parts.append(f'<line class="base" x1="{x}" x2="{x}" y1="{_high(1.0):.1f}" y2="{_high(0.0):.1f}"/>')
        title = [*wrap(safe(one.name, LABEL), 18)[:_TITLE_LINES], f"({one.direction} is better)"]
        parts.append(f'<text class="axis" y="{_high(0.0) + 22:.1f}">{_spans(title, x)}</text>')
    for value, text in ((0.0, "worst"), (1.0, "ideal")):
        parts.append(f'<text class="tick side" x="{_across(0) - 8}" y="{_high(value) + 4:.1f}">{text}</text>')
    for number, lines in enumerate(systems.values()):
        parts.append(_lines_of(lines, number, len(systems)))
    parts.append(_names_of(systems.values(), _across(len(objectives) - 1)))
    every = ", ".join(one.name for one in objectives)
    label = safe(f"The points of the fronts by {every}, each from the worst to the ideal")
    return (
        f'<figure class="plot2 wide"><figcaption>{clean("All objectives, from the worst to the ideal")}</figcaption>'
        f'<svg class="plane" role="img" aria-label="{escape(label)}" viewBox="0 0 {wide} 270">{"".join(parts)}</svg>'
        "</figure>"
    )


def _lines_of(lines: Lines, number: int, systems: int) -> str:
    series = number % SERIES
    drawn = []
    dominated = [(*each, " beaten") for each in zip(lines.dominated, lines.dominated_texts, strict=True)]
    for values, text, style in [*dominated, *((*each, "") for each in zip(lines.points, lines.texts, strict=True))]:
        path = " ".join(f"{_across(place)},{_high(value):.1f}" for place, value in enumerate(values))
        drawn.append(
            f'<polyline class="line s{series}{style}" points="{path}"><title>{escape(text)}</title></polyline>'
        )
    for place, ends in enumerate(zip(*lines.ends, strict=True)):
        for rank, (low, high) in enumerate(sorted(ends, reverse=True)):
            x = _across(place) + 4 + _MARGIN * (number + (rank + 0.5) / len(ends)) / systems
            place_of = f'x1="{x:.1f}" x2="{x:.1f}" y1="{_high(low):.1f}" y2="{_high(high):.1f}"'
            drawn.append(f'<line class="interval s{series}" {place_of}/>')
    return f'<g class="many">{"".join(drawn)}</g>'


def _names_of(systems: Iterable[Lines], last: float) -> str:
    """The labels of lines at the last axis; lines that end in one place share a label."""
    by_place: dict[float, list[str]] = {}
    for lines in systems:
        for values, names in ((lines.points, lines.names), (lines.dominated, lines.dominated_names)):
            for each, label in zip(values, names, strict=False):
                by_place.setdefault(round(_high(each[-1]), 1), []).append(label)
    parts, level = [], -math.inf
    for y, names in sorted(by_place.items()):
        level = max(y + 4, level + 11)
        parts.append(
            f'<text class="tick name start" x="{last + _MARGIN + 8}" y="{level:.1f}">{escape(", ".join(names))}</text>'
        )
    return "".join(parts)


def _spans(lines: Sequence[str], x: float) -> str:
    """Text of several lines."""
    return "".join(f'<tspan x="{x}" dy="{13 if line else 0}">{escape(text)}</tspan>' for line, text in enumerate(lines))


def _ring(share: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_on_radar(place, share) for place in range(len(RADAR))))
    return f'<polygon class="grid ring" points="{path}"/>'


def _on_radar(place: int, share: float) -> tuple[float, float]:
    """Clockwise from the top."""
    angle = 2 * math.pi * place / len(RADAR)
    return _MIDDLE[0] + _RADIUS * share * math.sin(angle), _MIDDLE[1] - _RADIUS * share * math.cos(angle)


def _across(place: int) -> int:
    return _LEFT + _STEP * place


def _high(share: float) -> float:
    return 12 + 190 * (1 - share)


_MIDDLE: Final = (150, 124)
_RADIUS: Final = 74
_LEFT: Final = 64
_STEP: Final = 124
_MARGIN: Final = 30
_TITLE_LINES: Final = 3
