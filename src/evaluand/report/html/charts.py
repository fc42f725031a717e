"""Charts as SVG: dots with their intervals on a common axis, histograms, and plots of one quantity against another.

A small chart is a set of strips, one per line of a table, with positions in percent of the strip's width: lines and
letters keep their size however narrow the page is, and the labels are text of the table. Colours come from the style
sheet, by class. Each strip has a description in words.

A plot (lines, steps, dots with intervals, and bars, on two axes) has its own coordinate system and grows with its
container up to its natural size. Series differ in colour and in the dashes of their lines or the shape of their dots.
Its label describes it in words, and a table next to it has its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from evaluand.report.text import number_format, numbers

SERIES = 6
_LINE = 14
_PAD = 5
_BARS = 72
_MOST_TICKS = 5


@dataclass(frozen=True)
class Dot:
    """A value with its interval and its bounds; each may be missing.

    Attributes:
        series: the number of its colour and shape.
        label: its name in the description.
        open_low: whether the interval has no lower end, which is drawn as an arrow.
        open_high: the same of the upper end.
    """

    value: float | None
    low: float | None
    high: float | None
    worst: float | None
    best: float | None
    series: int = 0
    label: str = ""
    open_low: bool = False
    open_high: bool = False

    @property
    def numbers(self) -> Iterator[float]:
        return (
            v for v in (self.value, self.low, self.high, self.worst, self.best) if v is not None and math.isfinite(v)
        )


@dataclass(frozen=True)
class Axis:
    """A range of numbers with round ends.

    Example:
        >>> Axis.over([0.83, 0.97]).ticks
        [0.8, 0.85, 0.9, 0.95, 1.0]
    """

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Axis:
        """The shortest axis with round ends that covers some values."""
        known = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if not math.isfinite(high - low):
            return cls(low, high, math.inf)
        if high - low <= abs(high) * 1e-9:
            low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
        step = _round_step((high - low) / (_MOST_TICKS - 1))
        return cls(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)

    @property
    def ticks(self) -> list[float]:
        if not math.isfinite(self.step):
            return [self.low, self.high]
        first, last = round(self.low / self.step), round(self.high / self.step)
        return [float(f"{i * self.step:.12g}") for i in range(first, last + 1)]

    def place(self, value: float) -> str:
        """The position of a value, in percent of the width."""
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return f"{100 * min(max(share, 0), 1):.2f}%"


def strip(dots: Sequence[Dot], axis: Axis) -> str:
    """The chart of one line of a table: dots with their intervals, one below the other."""
    height = 2 * _PAD + _LINE * len(dots)
    grid = "".join(f'<line class="grid" x1="{p}" x2="{p}" y1="0" y2="{height}"/>' for p in map(axis.place, axis.ticks))
    marks = "".join(_mark(dot, axis, _PAD + _LINE * (i + 0.5)) for i, dot in enumerate(dots))
    label = escape("; ".join(map(_in_words, dots)))
    return f'<svg class="strip" role="img" aria-label="{label}" width="100%" height="{height}">{grid}{marks}</svg>'


def scale(axis: Axis) -> str:
    """The numbers below strips; the table has them as text, so screen readers skip them."""
    ticks = axis.ticks
    shown = numbers(*ticks) if math.isfinite(axis.step) else [f"{t:.3g}" for t in ticks]
    if math.isfinite(axis.step) and axis.step < 1:
        shown = [f"{t:,.{max(0, -math.floor(math.log10(axis.step) + 1e-9)) + _half(axis.step)}f}" for t in ticks]
    last = len(ticks) - 1
    kinds = ["first" if i == 0 else "last" if i == last else "odd" if i % 2 else "even" for i in range(len(ticks))]
    texts = "".join(
        f'<text x="{axis.place(tick)}" y="12" class="tick {kind}">{text}</text>'
        for tick, text, kind in zip(ticks, shown, kinds, strict=True)
    )
    return f'<svg class="scale" aria-hidden="true" width="100%" height="16">{texts}</svg>'


def key(series: int) -> str:
    """The mark of a series, for the legend."""
    return f'<svg class="key" aria-hidden="true" width="14" height="14">{_shape(series, "7", 7)}</svg>'


def mark(series: int, x: str, y: str, title: str = "") -> str:
    """The mark of a series at a position of a plot, with a description."""
    description = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<g class="dot s{series % SERIES}" transform="translate({x} {y})">{description}{_SHAPES[series % SERIES]}</g>'
    )


def histogram(edges: Sequence[float], counts: Sequence[int], series: int = 0) -> str:
    """A histogram: the number of values between each two edges."""
    most = max([*counts, 1])
    width = 100 / len(counts)
    form = number_format(edges)
    bars = "".join(
        f'<rect class="bar s{series}" x="{i * width:.2f}%" width="{max(width - 0.4, 0.1):.2f}%" y="{_BARS - h:.1f}"'
        f' height="{h:.1f}"><title>{edges[i]:{form}} to {edges[i + 1]:{form}}: {count:,}</title></rect>'
        for i, count in enumerate(counts)
        if (h := max(_BARS * count / most, 1.5 * bool(count)))
    )
    label = ", ".join(
        f"{count:,} from {edges[i]:{form}} to {edges[i + 1]:{form}}" for i, count in enumerate(counts) if count
    )
    base = f'<line class="base" x1="0" x2="100%" y1="{_BARS + 0.5}" y2="{_BARS + 0.5}"/>'
    return (
        f'<svg class="histogram" role="img" aria-label="{escape(label)}" width="100%" height="{_BARS + 2}">{bars}{base}'
        "</svg>"
    )


def _mark(dot: Dot, axis: Axis, y: float) -> str:
    parts = []
    series = dot.series % SERIES
    for name, low, high in (("bounds", dot.worst, dot.best), ("interval", dot.low, dot.high)):
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high) and low != high:
            a, b = axis.place(low), axis.place(high)
            parts.append(f'<line class="{name} s{series}" x1="{a}" x2="{b}" y1="{y}" y2="{y}"/>')
    parts += _open_ends(dot, axis, y)
    if dot.value is not None and math.isfinite(dot.value):
        parts.append(_shape(series, axis.place(dot.value), y))
    return "".join(parts)


def _open_ends(dot: Dot, axis: Axis, y: float) -> list[str]:
    """An arrow to the edge of the strip for each end that the interval does not have."""
    parts = []
    series = dot.series % SERIES
    for is_open, other, edge, head in (
        (dot.open_low, dot.high, "0%", "M8-4 1 0 8 4"),
        (dot.open_high, dot.low, "100%", "M-8-4-1 0-8 4"),
    ):
        start = dot.value if other is None else other
        if is_open and start is not None and math.isfinite(start):
            parts.append(
                f'<line class="interval s{series}" x1="{axis.place(start)}" x2="{edge}" y1="{y}" y2="{y}"/>'
                f'<svg class="arrow s{series}" x="{edge}" y="{y}" overflow="visible"><path d="{head}"/></svg>'
            )
    return parts


_SHAPES = (
    '<circle r="4"/>',
    '<rect x="-3.6" y="-3.6" width="7.2" height="7.2"/>',
    '<path d="M0-5 5 0 0 5-5 0z"/>',
    '<path d="M0-4.8 4.6 3.6-4.6 3.6z"/>',
    '<path d="M0 4.8 4.6-3.6-4.6-3.6z"/>',
    '<path d="M-4-1.4h2.6V-4h2.8v2.6H4v2.8H1.4V4h-2.8V1.4H-4z"/>',
)


def _shape(series: int, x: str, y: float) -> str:
    return f'<svg class="dot s{series % SERIES}" x="{x}" y="{y}" overflow="visible">{_SHAPES[series % SERIES]}</svg>'


def _in_words(dot: Dot) -> str:
    value, low, high, worst, best = numbers(dot.value, dot.low, dot.high, dot.worst, dot.best)
    words = f"{dot.label}: " if dot.label else ""
    words += "no value" if dot.value is None else value
    if dot.low is not None and dot.high is not None:
        words += f", interval {low} to {high}"
    elif dot.open_low or dot.open_high:
        ends = "no bound" if dot.low is None else low, "no bound" if dot.high is None else high
        words += f", interval {' to '.join(ends)}"
    if dot.worst is not None and dot.best is not None and dot.worst != dot.best:
        words += f", bounds {worst} to {best}"
    return words


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= least * (1 - 1e-9))


def _half(step: float) -> int:
    """1 if a step such as 0.25 needs one more decimal."""
    return int(abs(step / 10 ** math.floor(math.log10(step) + 1e-9) - 2.5) < 1e-6)


_WIDTH: Final = 300
_HEIGHT: Final = 236
_LEFT: Final = 46
_RIGHT: Final = 10
_TOP: Final = 8
_BOTTOM: Final = 36
_PLOT_BARS: Final = 34
_PLOT_LINE: Final = 11
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
        height = _HEIGHT + (_PLOT_BARS + 6 if self.bars else 0)
        parts = [self._grid(), *(self._guide(*guide) for guide in self.guides), *map(self._series, shown)]
        parts.append(self._names(shown))
        if self.bars:
            parts.append(self._histogram(shown))
        return (
            f'<svg class="plane" role="img" aria-label="{escape(self.label)}" viewBox="0 0 {_WIDTH} {height}">'
            f"{''.join(parts)}</svg>"
        )

    @property
    def frame(self) -> list[list[float]]:
        """For x and y the values at the ends of the axis, and where these are in the picture."""
        ends = ((self.x_axis, self._x), (self.y_axis, self._y))
        return [[axis.low, axis.high, place(axis.low), place(axis.high)] for axis, place in ends]

    def _x(self, value: float) -> float:
        share = _share(self.x_axis, value)
        return _LEFT + (1 - share if self.turned else share) * (_WIDTH - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        share = _share(self.y_axis, value)
        return _TOP + (share if self.upturned else 1 - share) * (_HEIGHT - _TOP - _BOTTOM)

    @property
    def _base(self) -> float:
        return _HEIGHT - _BOTTOM + (_PLOT_BARS + 6 if self.bars else 0)

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
            level = max([y + 4, *(each + _PLOT_LINE for a, b, each in placed if a < end and start < b)])
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
                height = max(_PLOT_BARS * n / most, 1.0)
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
