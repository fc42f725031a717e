"""Pictures of trade-offs as files: PNG, SVG or PDF, drawn with Matplotlib.

Two objectives are a plane, three are three planes side by side, more are parallel axes, on which every point is a
line. The front is drawn over what it dominates. What is better lies at the top and on the right, or at the end of an
axis that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evaluand.aggregation.disparity import SMALL
from evaluand.core.errors import SpecError
from evaluand.report.text import LABEL, safe
from evaluand.report.tradeoff_facts import (
    area_of_front,
    counts_text,
    describe_ends,
    ends_of,
    has_ends,
    point_labels,
    rate_aim,
    rate_title,
)
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.front import radar_area
from evaluand.tradeoff.indicators import RADAR, shared_objectives
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.rates import CONFIDENCE, rates_of, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS: Final = (".png", ".svg", ".pdf")
_COLOURS: Final = ("#0b62a4", "#c2570c", "#2c7a39", "#8a3ffc", "#b3266e", "#5d5d5d")
_PAIRS: Final = ((1, 0), (2, 0), (2, 1))
"""Of three objectives, those on the axes x and y of each plane."""
_MANY: Final = 40
_FEW: Final = 20
_MARKS: Final = ("o", "s", "^", "D", "v", "P")
_AXES_NAMES: Final = {
    "relative_onvg": "ONVG (relative)",
    "onvgr": "ONVG ratio",
    "ud": "uniformity",
    "as": "spread",
    "hv": "hypervolume",
}


def pareto(systems: Mapping[str, Tradeoff], *, dominated: bool = True) -> Figure:
    """The points of some systems with their fronts.

    Intervals (`with_intervals`) or bands (`with_bands`) are drawn if the points have them: for two objectives as the
    area that the front lies in, for more as bars at points that are evenly spread on the front; a caption explains
    them.

    Args:
        systems: name → points, all with the same two objectives or more.
        dominated: whether to draw the dominated points too.

    Raises:
        SpecError: there is no system or only one objective, a system has no points, the systems have different
            objectives, or Matplotlib is not installed.
    """
    objectives = shared_objectives(systems)
    if len(objectives) < 2:
        raise SpecError(f"a figure needs two objectives or more, and {objectives[0].name} is the only one")
    for name, points in systems.items():
        if np.isnan(points.value).any(axis=1).all():
            raise SpecError(f"{safe(name)} has no point with all values, so there is no front to draw")
    draw = {2: _plane, 3: _planes}.get(len(objectives), _parallel)
    figure = draw(systems, objectives, dominated)
    labels, key = point_labels(systems)
    _label_points(figure, systems, labels, dominated)
    if caption := " ".join(filter(None, [describe_ends(systems), key])):
        wide = int(figure.get_size_inches()[0] * 17)
        figure.supxlabel(fill(caption, wide), fontsize=7.5, color="#555555", parse_math=False)
    return figure


def radar(indicators: Mapping[str, Mapping[str, float]], axes: Sequence[str] = RADAR) -> Figure:
    """A radar chart with an axis for each indicator, from 0 to 1; the legend has the area of each system.

    Args:
        indicators: system → its indicators, see `compare_systems`.
        axes: three indicators or more.

    Raises:
        SpecError: there is no system, one has no points or lacks an indicator, or there are fewer than three axes.
    """
    if not indicators:
        raise SpecError("there are no systems; use `compare_systems` to get the indicators of each")
    if len(axes) < 3:
        raise SpecError(f"a radar chart needs three indicators or more as axes, and there are {len(axes)}")
    for name, found in indicators.items():
        if missing := [axis for axis in axes if axis not in found]:
            problem = f"{safe(name)} has no indicator {', '.join(missing)}"
            raise SpecError(f"{problem}; use `compare_systems` to get all indicators, or choose other axes")
        if unknown := [axis for axis in axes if np.isnan(found[axis])]:
            raise SpecError(f"{safe(name)} has no points on its front, so {', '.join(unknown)} cannot be drawn")
    figure = _figure(5.2, 5.2)
    ax: Any = figure.add_subplot(projection="polar")
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    angles = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    handles: dict[str, Any] = {}
    for number, (name, found) in enumerate(indicators.items()):
        values = np.array([found[axis] for axis in axes])
        label = f"{name} (area {radar_area(values.tolist()):.3g})"
        ring = np.append(values, values[0])
        handles[label] = ax.plot(np.append(angles, angles[0]), ring, color=_colour(number), marker=_mark(number))[0]
        ax.fill(np.append(angles, angles[0]), ring, color=_colour(number), alpha=0.12)
    ax.set_xticks(angles, [_AXES_NAMES.get(axis, axis) for axis in axes])
    for angle, label in zip(angles, ax.get_xticklabels(), strict=True):
        label.set_horizontalalignment("left" if 1e-9 < angle < np.pi - 1e-9 else "right" if angle > np.pi else "center")
    ax.tick_params(axis="y", labelsize=7, labelcolor="#555555")
    ax.set_rlabel_position(180 / len(axes))
    ax.set_ylim(0, 1)
    _legend(figure, handles, always=True)
    return figure


def rates(point: Tradeoff, confidences: Confidences, confidence: float = CONFIDENCE) -> Figure:
    """The rates of groups behind each disparity of a point, with intervals and counts.

    Args:
        point: one point.
        confidence: the confidence level of the intervals.

    Raises:
        SpecError: there is not exactly one point, none of its objectives compares groups, or its model or an attribute
            is missing in the confidences.
    """
    if len(point) != 1:
        raise SpecError(f"this figure shows one point, not {len(point):,}; choose one, such as by pick")
    shown = list(rates_of(point, confidences, confidence))
    widths = [max(2.6, 0.85 * len(each.names)) for each in shown]
    figure = _figure(1.0 + sum(widths), 3.4)
    panels = figure.subplots(1, len(shown), squeeze=False, width_ratios=widths)[0]
    for ax, each in zip(panels, shown, strict=True):
        value, low, high = (end[0] for end in each.ends)
        known = ~np.isnan(value)
        ends = np.nan_to_num(np.stack([value - low, high - value])[:, known]).clip(0)
        places = np.flatnonzero(known)
        bars = ax.bar(places, value[known], yerr=ends, color=_colour(0), alpha=0.75, capsize=4, width=0.6)
        for bar, rows in zip(bars, each.of[0][known], strict=True):
            if rows < SMALL:
                bar.set_alpha(0.25)
        counts = counts_text(None if each.counted is None else each.counted[0].tolist(), each.of[0].tolist())
        labels = [f"{fill(safe(name, LABEL), 14)}\n{n}" for name, n in zip(each.names, counts, strict=True)]
        ax.set_xticks(range(len(labels)), labels, fontsize=8, parse_math=False)
        ax.set_xlim(-0.6, len(labels) - 0.4)
        ax.set_title(
            f"{rate_title(each.objective, each.part)}\n({rate_aim(each.objective)})", fontsize=9, parse_math=False
        )
        ax.set_ylim(*each.objective.parts[each.part].range)
        ax.grid(axis="y", alpha=0.25)
        ax.set_axisbelow(True)
    caption = f"Bars with pointwise {100 * confidence:.4g} % intervals; below them the rows behind each rate."
    caption += f" Faint: fewer than {SMALL} rows."
    figure.supxlabel(caption, fontsize=7.5, color="#555555")
    return figure


def save(figure: Figure, path: Path) -> None:
    """Writes a figure in the format of the path's suffix.

    Raises:
        SpecError: the suffix is not one of a figure.
    """
    if path.suffix.lower() not in FORMATS:
        raise SpecError(f"{path}: the suffix {path.suffix!r} is not that of a figure; use {', '.join(FORMATS)}")
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    figure.savefig(path, dpi=150, bbox_inches="tight", metadata=metadata)


def _plane(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], dominated: bool) -> Figure:
    figure = _figure(6.2, 4.6)
    ax = figure.add_subplot()
    x, y = 1, 0
    handles: dict[str, Any] = {}
    for number, (name, points) in enumerate(systems.items()):
        if has_ends(points) and (corners := area_of_front(points, x, y)):
            ax.fill(*zip(*corners, strict=True), color=_colour(number), alpha=0.14, linewidth=0, zorder=1)
        if dominated:
            rest = points.dominated().value
            ax.scatter(rest[:, x], rest[:, y], s=9, color=_colour(number), alpha=0.2, linewidths=0)
        front = points.front()
        line = front.value[np.argsort(front.value[:, x], kind="stable")]
        style: dict[str, Any] = {
            "color": _colour(number),
            "marker": _mark(number),
            "markersize": 5 if len(line) <= _MANY else 2.5,
        }
        [handles[name]] = ax.plot(line[:, x], line[:, y], drawstyle=_steps(objectives), **style)
    _axis(ax, "x", objectives[x])
    _axis(ax, "y", objectives[y])
    ax.grid(alpha=0.25)
    _legend(figure, handles)
    return figure


def _label_points(
    figure: Figure, systems: Mapping[str, Tradeoff], labels: Mapping[str, np.ndarray], dominated: bool
) -> None:
    """Labels variants; those in one place share a label."""
    n = len(next(iter(systems.values())).objectives)
    if n > len(_PAIRS):
        return _label_ends(
            figure.axes[0],
            _texts_by_place(systems, labels, dominated, lambda value, loss: np.array([len(value) - 1, 1 - loss[-1]])),
        )
    for ax, pair in zip(figure.axes, _PAIRS[: 1 if n == 2 else None], strict=True):
        _label_plane(ax, _texts_by_place(systems, labels, dominated, partial(_in_plane, [*pair])))
    return None


def _in_plane(pair: list[int], value: np.ndarray, loss: np.ndarray) -> np.ndarray:
    return np.asarray(value[pair])


def _texts_by_place(
    systems: Mapping[str, Tradeoff],
    labels: Mapping[str, np.ndarray],
    dominated: bool,
    spot: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> list[tuple[tuple[float, ...], str]]:
    """The labels at each spot of a picture, from the lowest up; `spot` computes it from values and losses."""
    by_place: dict[tuple[float, ...], list[str]] = {}
    for system, names in labels.items():
        points = systems[system]
        for place in np.flatnonzero(~np.isnan(points.loss).any(axis=1) & (points.on_front | dominated)):
            at = np.round(spot(points.value[place], points.loss[place]), 9).tolist()
            by_place.setdefault(tuple(at), []).append(str(names[place]))
    ordered = sorted(by_place.items(), key=lambda each: each[0][::-1])
    return [(at, ", ".join(texts)) for at, texts in ordered]


def _label_plane(ax: Any, texts: Sequence[tuple[tuple[float, ...], str]]) -> None:
    for number, (spot, text) in enumerate(texts):
        right = ax.transData.transform(spot)[0] > ax.transAxes.transform((0.6, 0))[0]
        offset, side = (-5 if right else 5, 4 if number % 2 else -9), "right" if right else "left"
        ax.annotate(text, spot, offset, textcoords="offset points", ha=side, fontsize=7, parse_math=False)


def _label_ends(ax: Any, texts: Sequence[tuple[tuple[float, ...], str]]) -> None:
    level = -1.0
    for spot, text in texts:
        level = max(spot[1], level + 0.035)
        ax.text(ax.get_xlim()[1] + 0.04, level, text, va="center", fontsize=7, parse_math=False)


def _steps(objectives: Sequence[Objective]) -> Any:
    """The draw style of a front's staircase: between two points, no value is better than those of one of them."""
    return "steps-post" if objectives[1].direction == "lower" else "steps-pre"


def _planes(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], dominated: bool) -> Figure:
    """The points by each pair of three objectives: on paper, distances in a space cannot be read."""
    figure = _figure(11.0, 4.2)
    from matplotlib.ticker import MaxNLocator

    handles: dict[str, Any] = {}
    for ax, (x, y) in zip(figure.subplots(1, len(_PAIRS)), _PAIRS, strict=True):
        for number, (name, points) in enumerate(systems.items()):
            colour, front = _colour(number), points.front()
            if dominated:
                rest = points.dominated().value
                ax.scatter(rest[:, x], rest[:, y], s=9, color=colour, alpha=0.2, linewidths=0)
            if has_ends(points):
                some = front.take(thinned(len(front), _FEW))
                low, high = ends_of(some)
                ax.hlines(some.value[:, y], low[:, x], high[:, x], color=colour, alpha=0.35, linewidth=0.9)
                ax.vlines(some.value[:, x], low[:, y], high[:, y], color=colour, alpha=0.35, linewidth=0.9)
            size = 24 if len(front) <= _MANY else 9
            handles[name] = ax.scatter(
                front.value[:, x], front.value[:, y], s=size, color=colour, marker=_mark(number), zorder=3
            )
        for axis, objective in (("x", objectives[x]), ("y", objectives[y])):
            _axis(ax, axis, objective, "\n")
            getattr(ax, f"{axis}axis").set_major_locator(MaxNLocator(5))
        ax.grid(alpha=0.25)
    _legend(figure, handles)
    return figure


def _parallel(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], dominated: bool) -> Figure:
    figure = _figure(max(6.0, 1.7 * len(objectives)) + 1, 4.4)
    ax = figure.add_subplot()
    places = np.arange(len(objectives))
    handles: dict[str, Any] = {}
    for number, (name, points) in enumerate(systems.items()):
        front = points.front()
        if has_ends(points):
            some = front.take(thinned(len(front), _FEW))
            ends = np.sort([1 - replace(some, value=end).loss for end in ends_of(some)], axis=0)
            rank = np.argsort(np.argsort(some.loss, axis=0, kind="stable"), axis=0, kind="stable")
            across = places + 0.04 + 0.2 * (number + (rank + 0.5) / len(some)) / len(systems)
            ax.vlines(across, *ends, color=_colour(number), alpha=0.6, linewidth=1.2)
        if dominated:
            dominated_lines = 1 - points.dominated().loss
            pale = min(0.5, max(0.06, 5 / max(len(dominated_lines), 1)))
            ax.plot(places, dominated_lines.T, color=_colour(number), alpha=pale, linewidth=0.8, linestyle="--")
        alpha = min(0.7, max(0.15, 20 / len(front)))
        ax.plot(places, (1 - front.loss).T, color=_colour(number), alpha=alpha, linewidth=1.1)
        [handles[name]] = ax.plot([], [], color=_colour(number))
    ax.set_xticks(
        places, [f"{fill(_in_words(one), 20)}\n({_better(one)})" for one in objectives], fontsize=8, parse_math=False
    )
    ax.set_ylabel("from the worst (0) to the ideal (1)")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlim(-0.15, len(objectives) - 0.7)
    ax.grid(axis="x", alpha=0.6)
    _legend(figure, handles)
    return figure


def _axis(ax: Axes, axis: str, objective: Objective, joint: str = " ") -> None:
    label = f"{fill(_in_words(objective), 44)}{joint}({_better(objective)})"
    getattr(ax, f"set_{axis}label")(label, parse_math=False)
    if objective.direction == "lower":
        getattr(ax, f"invert_{axis}axis")()


def _in_words(objective: Objective) -> str:
    """The name of an objective with the metric in words."""
    name = objective.name
    return name.replace(objective.metric, objective.metric.replace("_", " "), 1)


def _better(objective: Objective) -> str:
    return f"{objective.direction} is better"


def _legend(figure: Figure, handles: Mapping[str, Any], always: bool = False) -> None:
    """A legend with the names as they are: without formulas, and with names that begin with an underscore."""
    if len(handles) < 2 and not (handles and always):
        return
    numbered = [str(number) for number in range(len(handles))]
    legend = figure.legend(
        list(handles.values()),
        numbered,
        loc="outside upper center",
        ncols=min(len(handles), 3),
        frameon=False,
        fontsize=8,
    )
    for text, name in zip(legend.get_texts(), handles, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure as NewFigure
    except ImportError:
        raise SpecError("figures of trade-offs need Matplotlib: pip install 'evaluand[plots]'") from None
    return NewFigure(figsize=(width, height), layout="constrained")


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _mark(number: int) -> str:
    return _MARKS[number % len(_MARKS)]
