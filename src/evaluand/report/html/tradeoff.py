"""Trade-offs in a page: planes of points and fronts, indicators, and the points of the fronts in a table.

Of more than two objectives there is a plane for the first against each of the others; a point of the front may then
look beaten in one plane, and is better in another; of more than three there are parallel axes too. A limit and an
objective can be set in the page, which then tells the point that is best among those that keep it, and what that comes
to in each group where the rows are known. What is embedded has a limit, however many points there are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO, Any, Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.core.text.wording import plural
from evaluand.report.html import charts
from evaluand.report.html.charts import Axis
from evaluand.report.html.markup import clean, name, table, th
from evaluand.report.html.page import page_end, page_foot, page_head
from evaluand.report.html.plots import Plot, Series
from evaluand.report.html.tradeoff_charts import INDICATORS, Lines, parallel_axes, radar
from evaluand.report.text import LABEL, numbers, safe
from evaluand.report.tradeoff_facts import (
    CONFIDENCE,
    Rates,
    area_of_front,
    beaten_places,
    counts_text,
    ends_of,
    front_places,
    has_ends,
    labels_of,
    rates_of,
    thinned,
    told_of_ends,
)
from evaluand.tradeoff import Confidences, Tradeoff, compared, shared_objectives
from evaluand.tradeoff.constraints import rounding_of
from evaluand.tradeoff.front import settled
from evaluand.tradeoff.objectives import Objective

_MOST_DRAWN: Final = 600
_MOST_LISTED: Final = 500
_MOST_CHOSEN_FROM: Final = 10_000
_MOST_LINES: Final = 100
_MOST_BARS: Final = 20
_MOST_RATES: Final = 12_000
_MOST_GROUPS: Final = 24
_MOST_NOTES: Final = 20
_PLANES_ALONE: Final = 3
_NO_RATES: Final = "The rates of this point are not in the page, as its rows are not known or it is not listed."
_SCRIPTS: Final = ("page.js", "tradeoff.js")


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
    """The planes, indicators, points and rates of groups of some systems.

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    objectives = shared_objectives(systems)
    for system, points in systems.items():
        if points.apart:
            raise SpecError(f"{system}: a page shows points with one threshold, and groups have their own here")
    parts = [_legend(systems)]
    if len(objectives) > 1:
        found = compared(systems)
        parts += [_figures(systems, objectives, found), _figures_note(systems), _indicator_table(found)]
    else:
        told = f"There is one objective, so nothing is traded: the best points are listed. {told_of_ends(systems)}"
        parts.append(f'<p class="note">{clean(told)}</p>')
    chosen_from = _Choices.of(systems)
    parts += [
        _notes(systems),
        _chooser(objectives),
        _rates(systems, chosen_from),
        _points_table(systems, objectives, chosen_from),
    ]
    return "\n".join(part for part in parts if part)


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


def _figures(
    systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], found: Mapping[str, Mapping[str, float]]
) -> str:
    labels, _ = labels_of(systems)
    planes = "".join(_plane(systems, objectives, 0, other, labels) for other in range(1, len(objectives)))
    lines = {system: _lines(points, labels.get(system)) for system, points in systems.items()}
    parallel = parallel_axes(objectives, lines) if len(objectives) > _PLANES_ALONE else ""
    few = " few" if len(objectives) == 2 else ""
    return f'<div class="planes{few}">{planes}{radar(found)}{parallel}</div>'


def _figures_note(systems: Mapping[str, Tradeoff]) -> str:
    told = told_of_ends(systems, "Shaded, or bars")
    decided = any(not np.isnan(points.threshold).all() for points in systems.values())
    dot = "a model at a threshold" if decided else "a variant"
    _, numbered = labels_of(systems)
    key = f" By number: {clean(numbered)}" if numbered else ""
    return (
        f'<p class="note">Each dot is {dot}; those that are not pale are on the front, which no other '
        f"point of the system beats in all objectives. {clean(told)}{key}</p>"
    )


def _notes(systems: Mapping[str, Tradeoff]) -> str:
    """What is odd about the rows that points come from, beside the system where there are several."""
    told = [f"{f'{system}: ' * (len(systems) > 1)}{note}" for system, one in systems.items() for note in one.notes]
    if len(told) > _MOST_NOTES:
        told = [*told[:_MOST_NOTES], f"and {len(told) - _MOST_NOTES:,} more notes"]
    return "".join(f'<p class="note">Note: {clean(each)}</p>' for each in told)


def _lines(points: Tradeoff, labels: np.ndarray | None) -> Lines:
    """Points as lines from objective to objective, and the ends of some of the front."""
    on, beaten = (places[thinned(len(places), _MOST_LINES)] for places in (front_places(points), beaten_places(points)))
    front = points.front()
    some = front.taken(thinned(len(front), _MOST_BARS))
    ends = [1 - replace(some, value=end).loss for end in ends_of(some)] if has_ends(points) else None
    return Lines(
        (1 - points.loss[on]).tolist(),
        _in_words(points.taken(on)),
        [] if ends is None else np.stack([np.minimum(*ends), np.maximum(*ends)], axis=-1).tolist(),
        _labelled(labels, on),
        (1 - points.loss[beaten]).tolist(),
        _in_words(points.taken(beaten)),
        _labelled(labels, beaten),
    )


def _labelled(labels: np.ndarray | None, places: np.ndarray) -> list[str]:
    return [] if labels is None else [str(each) for each in labels[places]]


def _plane(
    systems: Mapping[str, Tradeoff],
    objectives: Sequence[Objective],
    up: int,
    across: int,
    labels: Mapping[str, np.ndarray],
) -> str:
    """One objective against another, with what is better at the top and on the right."""
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
    plot = Plot(_told(x), _told(y), label, x_axis, y_axis, turned=turned, upturned=upturned)
    return f'<figure class="plot2"><figcaption>{clean(label)}</figcaption>{plot.svg(series)}</figure>'


def _series(points: Tradeoff, number: int, up: int, across: int, labels: np.ndarray | None) -> Iterator[Series]:
    on = front_places(points)
    on = on[np.argsort(points.value[on, across], kind="stable")]
    on = on[thinned(len(on), _MOST_DRAWN)]
    front = points.taken(on)
    if has_ends(points):
        two = len(points.objectives) == 2
        areas = [area_of_front(points, across, up)] if two else _boxes(front, across, up)
        yield Series(number, [], line=False, areas=[corners for corners in areas if corners])
    beaten = beaten_places(points)
    beaten = beaten[thinned(len(beaten), _MOST_DRAWN)]
    pale = [*map(tuple, points.value[beaten][:, [across, up]].tolist())]
    yield Series(number, pale, line=False, dots=True, pale=True, names=_labelled(labels, beaten))
    xy = [*map(tuple, front.value[:, [across, up]].tolist())]
    if len(points.objectives) == 2:
        yield Series(number, _steps(xy, points.objectives[across]))
    yield Series(number, xy, line=False, dots=True, titles=_in_words(front), names=_labelled(labels, on))


def _boxes(front: Tradeoff, across: int, up: int) -> list[list[tuple[float, float]]]:
    """Between which values each point of a front lies."""
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
    """A front from point to point: nothing between two of them is offered but what one of them offers."""
    lower = across.direction == "lower"
    corners = [(b[0], a[1]) if lower else (a[0], b[1]) for a, b in pairwise(xy)]
    return [*(at for pair in zip(xy, corners, strict=False) for at in pair), *xy[-1:]]


def _indicator_table(found: Mapping[str, Mapping[str, float]]) -> str:
    heads = th("System", "text", True) + "".join(th(title, "", True) for title in INDICATORS.values())
    lines = "".join(
        f'<tr><th scope="row">{name(system)}</th>{"".join(_cell(one[key]) for key in INDICATORS)}</tr>'
        for system, one in found.items()
    )
    note = (
        '<p class="note">Hypervolume: the share of all possible outcomes that the front dominates. IGD+ and epsilon: '
        "how far a system falls short of the best of all together; there lower is better, elsewhere higher.</p>"
    )
    return table("What the fronts are worth", heads, f"<tbody>{lines}</tbody>", "sortable") + note


@dataclass(frozen=True)
class _Choices:
    """The points of each front that the script chooses among, which of them are listed, and which tell their rates.

    Attributes:
        fronts: of each system.
        places: which points of a front are there to choose from.
        listed: which of them stand in the table.
    """

    fronts: Mapping[str, Tradeoff]
    places: Mapping[str, list[int]]
    listed: Mapping[str, list[int]]

    @classmethod
    def of(cls, systems: Mapping[str, Tradeoff]) -> _Choices:
        fronts = {system: points.front() for system, points in systems.items()}
        listed = {system: thinned(len(front), _MOST_LISTED).tolist() for system, front in fronts.items()}
        most = max(_MOST_CHOSEN_FROM // len(systems), _MOST_LISTED)
        places = {
            system: sorted({*listed[system], *thinned(len(front), most).tolist()}) for system, front in fronts.items()
        }
        return cls(fronts, places, listed)

    @property
    def first(self) -> tuple[str, int] | None:
        """The system and place that the script begins with: the best by the first objective, then by the others."""
        among = [(system, place) for system, places in self.places.items() for place in places]
        losses = [self.fronts[system].loss[places] for system, places in self.places.items()]
        return among[np.lexsort(settled(np.concatenate(losses)).T[::-1])[0]] if among else None


def _chooser(objectives: Sequence[Objective]) -> str:
    """Fields in which an objective and limits are set; the script fills in which point is best."""
    options = "".join(f'<option value="{i}">{clean(one.name)}</option>' for i, one in enumerate(objectives))
    limits = "".join(
        f"<label>{clean(one.name)} {'at most' if one.direction == 'lower' else 'at least'} "
        f'<input type="text" inputmode="decimal" autocomplete="off" aria-describedby="fault" data-limit="{i}"></label> '
        for i, one in enumerate(objectives)
    )
    return (
        f'<form id="chooser" hidden><label>Best <select id="best">{options}</select></label> {limits}'
        '<output id="chosen" aria-live="polite"></output></form><p id="fault" role="alert" hidden></p>'
        '<p class="note">What is chosen here looks better than it is: take its value from other data.</p>'
    )


def _rates(systems: Mapping[str, Tradeoff], choices: _Choices) -> str:
    """What the chosen point comes to in each group: of the best by the first objective, until the script is asked."""
    if choices.first is None or not any(map(_has_rates, systems.values())):
        return ""
    system, place = choices.first
    first = choices.fronts[system].taken(np.array([place]))
    shown = next(points for points in systems.values() if _has_rates(points))
    titles = [(each.title, each.wanted) for each in rates_of(shown.taken(np.array([], np.int64)), _rows(shown))]
    held = _rates_told(first)[0] if _has_rates(first) else [[] for _ in titles]
    heads = th("Group", "text") + '<th scope="col" class="text" aria-hidden="true"></th>'
    heads += "".join(th(head) for head in ("rate", "interval", "rows"))
    tables = "".join(
        table(f"{clean(title)} ({wanted})", heads, f"<tbody>{''.join(map(_rate_line, lines))}</tbody>", "small rates")
        for (title, wanted), lines in zip(titles, held, strict=True)
    )
    called = clean(_called(system, first, 0))
    none = "" if _has_rates(first) else _NO_RATES
    note = f"Intervals hold with {100 * CONFIDENCE:.4g} %, each by itself."
    if any(len(one.names) > _MOST_GROUPS for p in systems.values() if _has_rates(p) for one in _group_names(p)):
        note += f" Of many groups those with the {_MOST_GROUPS // 2} lowest and highest rates are shown."
    return (
        f'<h3>Rates of groups: <bdi id="rates-of">{called}</bdi></h3>'
        f'<p class="note" id="no-rates" data-told="{_NO_RATES}">{none}</p>'
        f'<div class="planes few">{tables}</div><p class="note">{note}</p>'
        f'<template id="bar">{_bar([0, 0, 0, 0])}</template>'
    )


def _group_names(points: Tradeoff) -> Iterator[Rates]:
    return rates_of(points.taken(np.array([], np.int64)), _rows(points))


def _has_rates(points: Tradeoff) -> bool:
    apart = any(one.disparity and not one.of_confidences for one in points.objectives)
    return apart and points.given is not None and not np.isnan(points.threshold).any()


def _rows(points: Tradeoff) -> Confidences:
    assert points.given is not None
    return points.given


def _rates_told(points: Tradeoff) -> list[list[list[list[Any]]]]:
    """Of each point the rates of each disparity: the group, the rate, its share of the range, its ends and its rows."""
    found: list[list[list[list[Any]]]] = [[] for _ in range(len(points))]
    for each in rates_of(points, _rows(points)):
        low, high = each.objective.parts[each.part].range
        names = [safe(group, LABEL) for group in each.names]
        for place, told in enumerate(found):
            value = each.ends.value[place]
            known = np.argsort(value, kind="stable")[: np.isfinite(value).sum()]
            half = _MOST_GROUPS // 2
            groups = range(len(names)) if len(names) <= _MOST_GROUPS else [*known[:half], *known[half:][-half:]]
            counted = None if each.counted is None else each.counted[place].tolist()
            rows = counts_text(counted, each.of[place].tolist())
            told.append(
                [[names[g], rows[g], *_on_axis([end[place, g] for end in each.ends], low, high)] for g in groups]
            )
    return found


def _on_axis(ends: Sequence[float], low: float, high: float) -> list[Any]:
    """A rate with its ends in words, and in percent of its range; 0 of the range first."""
    if math.isnan(ends[0]):
        return ["–", "", []]
    known = [None if math.isnan(end) else end for end in ends]
    value, *shown = numbers(*known)
    spots = [0.0, *(ends[0] if math.isnan(end) else end for end in ends)]
    interval = "" if None in known else " – ".join(shown)
    return [value, interval, [round(100 * (min(max(at, low), high) - low) / (high - low), 1) for at in spots]]


def _rate_line(rate: Sequence[Any]) -> str:
    group, rows, value, interval, spots = rate
    return (
        f'<tr><th scope="row"><bdi>{clean(group)}</bdi></th><td class="chart">{_bar(spots)}</td>'
        f'<td class="value">{value}</td><td>{interval}</td><td>{rows}</td></tr>'
    )


def _bar(spots: Sequence[float]) -> str:
    """A bar from 0 to the rate, with its interval; the numbers stand beside it."""
    if not spots:
        return ""
    zero, value, low, high = spots
    return (
        '<svg aria-hidden="true" width="100%" height="14">'
        f'<rect class="bar s0" x="{min(zero, value)}%" width="{abs(value - zero):.1f}%" y="2" height="10"/>'
        f'<line class="whisker" x1="{low}%" x2="{high}%" y1="7" y2="7"/></svg>'
    )


def _points_table(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], choices: _Choices) -> str:
    heads = th("System", "text", True) + th("model", "text", True) + th("threshold", "", True)
    heads += "".join(th(one.name, "", True) for one in objectives) + th("", "text", True)
    lines: list[str] = []
    chosen_from: list[list[Any]] = []
    budget = _MOST_RATES
    for number, (system, front) in enumerate(choices.fronts.items()):
        listed = choices.listed[system]
        rows = {place: len(lines) + row for row, place in enumerate(listed)}
        lines += [_line(system, front, place) for place in listed]
        rates, budget = _kept_rates(front, listed, budget)
        chosen_from += [
            [
                number,
                int(front.model[place]),
                _threshold(float(front.threshold[place])),
                rows.get(place),
                front.value[place].tolist(),
                rates.get(place),
            ]
            for place in choices.places[system]
        ]
    told = _script_data(
        {
            "lower": [one.direction == "lower" for one in objectives],
            "rounding": [rounding_of(one) for one in objectives],
            "names": [safe(one.name, LABEL) for one in objectives],
            "systems": [safe(system, LABEL) for system in systems],
            "models": [[safe(model, LABEL) for model in points.models] for points in systems.values()],
            "points": chosen_from,
        }
    )
    body = f"<tbody>{''.join(lines)}</tbody>"
    data = f'<script type="application/json" id="front">{told}</script>'
    return table("The points of the fronts", heads, body, "sortable points") + _cut(choices) + data


def _cut(choices: _Choices) -> str:
    """What is not listed, and what is not even chosen among."""
    on, listed, there = (sum(map(len, each.values())) for each in (choices.fronts, choices.listed, choices.places))
    if on == listed:
        return ""
    told = f"{plural(on - listed, 'more point')} of the fronts, evenly among those above, "
    told += f"{'is' if on - listed == 1 else 'are'} not listed; the best is chosen among "
    return f'<p class="note">{told}{"all" if there == on else f"{there:,} of all {on:,} points"}.</p>'


def _kept_rates(front: Tradeoff, listed: Sequence[int], budget: int) -> tuple[dict[int, list[Any]], int]:
    """The rates of the points that are listed, of some evenly where there are too many, and how many more may be."""
    if not _has_rates(front) or not listed:
        return {}, budget
    each = sum(min(len(one.names), _MOST_GROUPS) for one in _group_names(front))
    kept = [listed[place] for place in thinned(len(listed), budget // max(each, 1))]
    found = _rates_told(front.taken(np.array(kept, np.int64)))
    return dict(zip(kept, found, strict=True)), budget - each * len(kept)


def _script_data(told: Mapping[str, Any]) -> str:
    """JSON in which nothing ends the element that holds it."""
    text = json.dumps(told, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _called(system: str, front: Tradeoff, place: int) -> str:
    model = safe(front.models[front.model[place]], LABEL)
    return " · ".join(filter(None, [safe(system, LABEL), model, _threshold(float(front.threshold[place]))]))


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
    """The shortest text that is read as the same number, so that a threshold gives its point; none if there is none."""
    if math.isnan(value):
        return ""
    return repr(value).removesuffix(".0") if math.isfinite(value) else "∞" if value > 0 else "−∞"


def _told(objective: Objective) -> str:
    return f"{safe(objective.name)} ({objective.direction} is better)"


def _at(threshold: float) -> str:
    return "" if math.isnan(threshold) else f" from {_threshold(float(threshold))}"
