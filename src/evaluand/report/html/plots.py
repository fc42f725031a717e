"""Plots of one quantity against another as SVG: lines, steps, dots with intervals, and bars, on two axes.

A plot has its own coordinate system and grows with its container up to its natural size. Series differ in colour and in
the dashes of their lines or the shape of their dots; colours come from the style sheet, by class. The label of a plot
describes it in words, and a table next to it has its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from evaluand.report.html.charts import SERIES, Axis, mark
from evaluand.report.text import numbers

_WIDTH: Final = 300
_HEIGHT: Final = 236
_LEFT: Final = 46
_RIGHT: Final = 10
_TOP: Final = 8
_BOTTOM: Final = 36
_BARS: Final = 34
_LINE: Final = 11
_LETTER: Final = 5.5

UNIT: Final = Axis(0.0, 1.0, 0.25)


@dataclass(frozen=True)
class Series:
    """The data of one task in a plot.

    Attributes:
        number: selects its colour, dashes and shape.
        points: x and y.
        ends: low and high of each point, if it has an interval.
        line: whether points are joined.
        dots: whether points are marked.
        titles: a description of each marked point.
        bars: x and counts, for the bars below the plot.
        pale: whether dots are in the background.
        names: the text next to each point.
        areas: the corners of shaded areas; overlaps are shaded once.
    """

    number: int
    points: Sequence[tuple[float, float]]
    ends: Sequence[tuple[float | None, float | None]] = ()
    line: bool = True
    dots: bool = False
    titles: Sequence[str] = ()
    bars: Sequence[tuple[float, float]] = ()
    pale: bool = False
    names: Sequence[str] = ()
    areas: Sequence[Sequence[tuple[float, float]]] = ()


@dataclass(frozen=True)
class Plot:
    """A plot.

    Attributes:
        x: the title of the horizontal axis.
        y: the title of the vertical axis.
        label: a description of the plot.
        guides: dashed lines such as that of chance, each from one point to another.
        bars: the title of the bars below, if any.
        turned: whether the horizontal axis is reversed.
        upturned: whether the vertical axis is reversed.
    """

    x: str
    y: str
    label: str
    x_axis: Axis = UNIT
    y_axis: Axis = UNIT
    guides: Sequence[tuple[tuple[float, float], tuple[float, float]]] = ()
    bars: str = ""
    turned: bool = False
    upturned: bool = False

    def svg(self, series: Iterable[Series]) -> str:
        """The plot of some series, as SVG."""
        shown = list(series)
        height = _HEIGHT + (_BARS + 6 if self.bars else 0)
        parts = [self._grid(), *(self._guide(*guide) for guide in self.guides), *map(self._series, shown)]
        parts.append(self._names(shown))
        if self.bars:
            parts.append(self._histogram(shown))
        return (
            f'<svg class="plane" role="img" aria-label="{escape(self.label)}" viewBox="0 0 {_WIDTH} {height}">'
            f"{''.join(parts)}</svg>"
        )

    def _x(self, value: float) -> float:
        share = _share(self.x_axis, value)
        return _LEFT + (1 - share if self.turned else share) * (_WIDTH - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        share = _share(self.y_axis, value)
        return _TOP + (share if self.upturned else 1 - share) * (_HEIGHT - _TOP - _BOTTOM)

    @property
    def _base(self) -> float:
        return _HEIGHT - _BOTTOM + (_BARS + 6 if self.bars else 0)

    def _grid(self) -> str:
        parts = []
        floor = _HEIGHT - _BOTTOM
        for value, text in zip(self.x_axis.ticks, numbers(*self.x_axis.ticks), strict=True):
            x = f"{self._x(value):.1f}"
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{floor}"/>')
            parts.append(f'<text class="tick" x="{x}" y="{self._base + 15:.0f}">{_short(text)}</text>')
        for value, text in zip(self.y_axis.ticks, numbers(*self.y_axis.ticks), strict=True):
            y = self._y(value)
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="tick side" x="{_LEFT - 6}" y="{y + 4:.1f}">{_short(text)}</text>')
        middle, side = (_LEFT + _WIDTH - _RIGHT) / 2, (_TOP + floor) / 2
        parts.append(f'<text class="axis" x="{middle}" y="{self._base + 31:.0f}">{escape(self.x)}</text>')
        parts.append(f'<text class="axis" transform="translate(10 {side}) rotate(-90)">{escape(self.y)}</text>')
        return "".join(parts)

    def _guide(self, start: tuple[float, float], end: tuple[float, float]) -> str:
        (x1, y1), (x2, y2) = self._place(start), self._place(end)
        return f'<line class="guide" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'

    def _series(self, one: Series) -> str:
        number = one.number % SERIES
        parts = []
        if one.areas:
            path = "".join(f"M{' '.join(','.join(self._place(at)) for at in corners)}z" for corners in one.areas)
            parts.append(f'<path class="area s{number}" d="{path}"/>')
        for (x, _), (low, high) in zip(one.points, one.ends, strict=False):
            if low is not None and high is not None:
                (a, top), (_, floor) = self._place((x, high)), self._place((x, low))
                parts.append(f'<line class="interval s{number}" x1="{a}" x2="{a}" y1="{top}" y2="{floor}"/>')
        if one.line and one.points:
            path = " ".join(f"{x} {y}" for x, y in map(self._place, one.points))
            parts.append(f'<polyline class="line s{number} d{number}" points="{path}"/>')
        if one.dots:
            titles = one.titles or [""] * len(one.points)
            marks = "".join(mark(number, *self._place(at), title) for at, title in zip(one.points, titles, strict=True))
            parts.append(f'<g class="pale">{marks}</g>' if one.pale else marks)
        return "".join(parts)

    def _names(self, shown: Sequence[Series]) -> str:
        """The names next to points: one text per place, towards the middle, below texts that would overlap."""
        at_place: dict[tuple[float, float], list[str]] = {}
        for one in shown:
            for (x, y), name in zip(one.points, one.names, strict=False):
                at_place.setdefault((round(self._x(x), 1), round(self._y(y), 1)), []).append(name)
        parts: list[str] = []
        placed: list[tuple[float, float, float]] = []
        for (x, y), names in sorted(at_place.items(), key=lambda each: each[0][::-1]):
            left = x > (_LEFT + _WIDTH - _RIGHT) / 2
            text = ", ".join(names)
            wide = _LETTER * len(text) + 7
            start, end = (x - wide, x) if left else (x, x + wide)
            level = max([y + 4, *(each + _LINE for a, b, each in placed if a < end and start < b)])
            placed.append((start, end, level))
            side = f'class="tick name {"end" if left else "start"}" x="{x - 7 if left else x + 7:.1f}"'
            parts.append(f'<text {side} y="{level:.1f}">{escape(text)}</text>')
        return "".join(parts)

    def _histogram(self, shown: Sequence[Series]) -> str:
        floor = self._base
        most = max((n for one in shown for _, n in one.bars), default=0) or 1
        width = max(2.0, 12.0 / len(shown))
        parts = []
        for place, one in enumerate(shown):
            for x, n in one.bars:
                half = width * len(shown) / 2
                middle = min(max(self._x(x), _LEFT + half), _WIDTH - _RIGHT - half)
                left = middle + place * width - half
                height = max(_BARS * n / most, 1.0)
                parts.append(
                    f'<rect class="bar s{one.number % SERIES}" x="{left:.1f}" y="{floor - height:.1f}"'
                    f' width="{width - 0.6:.1f}" height="{height:.1f}"/>'
                )
        base = f'<line class="base" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{floor}" y2="{floor}"/>'
        top = f'<text class="tick side" x="{_LEFT - 6}" y="{floor - 2:.0f}">{escape(self.bars)}</text>'
        return "".join(parts) + base + top

    def _place(self, point: tuple[float, float]) -> tuple[str, str]:
        return f"{self._x(point[0]):.1f}", f"{self._y(point[1]):.1f}"


def _share(axis: Axis, value: float) -> float:
    """The position of a value along an axis, from 0 to 1."""
    share = (value / 2 - axis.low / 2) / (axis.high / 2 - axis.low / 2)
    return min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0


def _short(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
