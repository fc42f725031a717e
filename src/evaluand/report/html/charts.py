"""Small charts as SVG: dots with their intervals on a common axis, and histograms.

A chart is a set of strips, one per line of a table, with positions in percent of the strip's width: lines and letters
keep their size however narrow the page is, and the labels are text of the table. Colours come from the style sheet, by
class. Each strip has a description in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

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
    """

    value: float | None
    low: float | None
    high: float | None
    worst: float | None
    best: float | None
    series: int = 0
    label: str = ""

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
    if dot.value is not None and math.isfinite(dot.value):
        parts.append(_shape(series, axis.place(dot.value), y))
    return "".join(parts)


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
    if dot.worst is not None and dot.best is not None and dot.worst != dot.best:
        words += f", bounds {worst} to {best}"
    return words


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= least * (1 - 1e-9))


def _half(step: float) -> int:
    """1 if a step such as 0.25 needs one more decimal."""
    return int(abs(step / 10 ** math.floor(math.log10(step) + 1e-9) - 2.5) < 1e-6)
