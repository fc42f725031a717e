"""Charts of trade-offs as SVG: indicators on a radar chart, and fronts of many objectives on parallel axes.

Each chart has a text alternative; its numbers are in the tables of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Final

from evaluand.report.html.charts import SERIES, mark
from evaluand.report.html.page import clean
from evaluand.report.text import LABEL, numbers, safe
from evaluand.tradeoff import RADAR, Objective

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
    """The indicators of each system on five axes from 0 to 1; empty where no system has any.

    Args:
        indicators: see `compare_systems`.
        titles: indicator → its title.
    """
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
        title = [*wrap(safe(one.name, LABEL), 18)[:_MOST_LINES], f"({one.direction} is better)"]
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
_MOST_LINES: Final = 3
