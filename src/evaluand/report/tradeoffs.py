"""Pictures of trade-offs as files: PNG, SVG or PDF, drawn with Matplotlib.

Two objectives are a plane, three a space, more are parallel axes, on which every point is a line. The front is drawn
over what it dominates. What is better lies at the top and on the right, or at the end of an axis that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evaluand.errors import SpecError
from evaluand.tradeoff import RADAR, Confidences, Objective, Tradeoff, shared_objectives
from evaluand.tradeoff.confidences import counts_at, crossed_at
from evaluand.tradeoff.front import radar_area
from evaluand.tradeoff.objectives import group_rates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS: Final = (".png", ".svg", ".pdf")
_COLOURS: Final = ("#0b62a4", "#c2570c", "#2c7a39", "#8a3ffc", "#b3266e", "#5d5d5d")
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

    Args:
        systems: of the same objectives, two or more.
        dominated: draw the points too that are not on a front.

    Raises:
        SpecError: there is no system or only one objective, the systems have different ones, or Matplotlib is not
            installed.
    """
    objectives = shared_objectives(systems)
    if len(objectives) < 2:
        raise SpecError("a trade-off is drawn of two objectives or more")
    draw = {2: _plane, 3: _space}.get(len(objectives), _parallel)
    return draw(systems, objectives, dominated)


def radar(indicators: Mapping[str, Mapping[str, float]], axes: Sequence[str] = RADAR) -> Figure:
    """A chart with an axis for each indicator, from 0 to 1; the area of each system stands in its name.

    Args:
        indicators: of each system, see `tradeoff.compared`.
        axes: which of them, three or more.
    """
    figure = _figure(5.2, 5.2)
    ax: Any = figure.add_subplot(projection="polar")
    angles = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    handles: dict[str, Any] = {}
    for number, (name, found) in enumerate(indicators.items()):
        values = np.array([found[axis] for axis in axes])
        label = f"{name} (area {radar_area(values.tolist()):.3g})"
        ring = np.append(values, values[0])
        handles[label] = ax.plot(np.append(angles, angles[0]), ring, color=_colour(number), marker=_mark(number))[0]
        ax.fill(np.append(angles, angles[0]), ring, color=_colour(number), alpha=0.12)
    ax.set_xticks(angles, [_AXES_NAMES.get(axis, axis) for axis in axes])
    ax.tick_params(axis="x", pad=14)
    ax.set_ylim(0, 1)
    _legend(figure, handles, always=True)
    return figure


def rates(point: Tradeoff, given: Confidences, confidence: float = 0.95) -> Figure:
    """What one point comes to in each group: the rates behind each of its disparities, with their intervals.

    Args:
        point: one point.
        given: the rows it is looked at on.
        confidence: of the intervals.

    Raises:
        SpecError: none of its objectives is about groups.
    """
    apart = [one for one in point.objectives if one.disparity and not one.of_confidences]
    if not apart:
        raise SpecError("none of the objectives is about groups, so there are no rates of groups to draw")
    sure = given.models[point.models[point.model[0]]]
    shown = []
    for one in apart:
        rows = sure, given.truth, given.groups(one.by), point.threshold
        counts, crossed = counts_at(*rows)[0], crossed_at(*rows)
        for kind in range(len(one.parts)):
            found = group_rates(one, counts, kind, confidence, None if crossed is None else crossed[0])
            shown.append((one, kind, *found, given.groups(one.by).names))
    figure = _figure(1.5 + 2.6 * len(shown), 3.4)
    for place, (objective, kind, value, low, high, names) in enumerate(shown, start=1):
        ax = figure.add_subplot(1, len(shown), place)
        labels = ["×".join(name.values()) for name in names]
        known = ~np.isnan(value)
        ends = np.nan_to_num(np.stack([value - low, high - value])[:, known]).clip(0)
        ax.bar(np.flatnonzero(known), value[known], yerr=ends, color=_colour(0), alpha=0.75, capsize=4)
        ax.set_xticks(range(len(labels)), labels, rotation=30 if len("".join(labels)) > 24 else 0, parse_math=False)
        title = f"{objective.parts[kind].kind.replace('_', ' ')}\nby {', '.join(objective.by)}"
        ax.set_title(title, fontsize=9, parse_math=False)
        ax.set_ylim(*objective.parts[kind].range)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Writes a picture in the format of the path's suffix.

    Raises:
        SpecError: there is no such format.
    """
    if path.suffix.lower() not in FORMATS:
        raise SpecError(f"{path}: the suffix {path.suffix!r} tells no format of pictures: {', '.join(FORMATS)}")
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    figure.savefig(path, dpi=150, bbox_inches="tight", metadata=metadata)


def _plane(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], dominated: bool) -> Figure:
    figure = _figure(6.2, 4.6)
    ax = figure.add_subplot()
    x, y = 1, 0
    handles: dict[str, Any] = {}
    for number, (name, points) in enumerate(systems.items()):
        if dominated:
            rest = points.dominated().value
            ax.scatter(rest[:, x], rest[:, y], s=12, color=_colour(number), alpha=0.2, linewidths=0)
        front = points.front()
        order = np.argsort(front.value[:, x], kind="stable")
        line = front.value[order]
        [handles[name]] = ax.plot(
            line[:, x],
            line[:, y],
            color=_colour(number),
            marker=_mark(number),
            markersize=5,
            drawstyle=_steps(objectives),
        )
        if front.ends is not None:
            low, high = (np.abs(np.nan_to_num(end[order, y] - line[:, y])) for end in front.ends[1:])
            ax.errorbar(line[:, x], line[:, y], yerr=[low, high], fmt="none", color=_colour(number), alpha=0.5)
    _axis(ax, "x", objectives[x])
    _axis(ax, "y", objectives[y])
    ax.grid(alpha=0.25)
    _legend(figure, handles)
    return figure


def _steps(objectives: Sequence[Objective]) -> Any:
    """How a front goes from point to point: nothing between two of them is offered but what one of them offers."""
    return "steps-post" if objectives[1].direction == "lower" else "steps-pre"


def _space(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], dominated: bool) -> Figure:
    figure = _figure(6.6, 5.6)
    ax: Any = figure.add_subplot(projection="3d")
    handles: dict[str, Any] = {}
    for number, (name, points) in enumerate(systems.items()):
        if dominated:
            ax.scatter(*points.dominated().value.T, s=8, color=_colour(number), alpha=0.12, linewidths=0)
        handles[name] = ax.scatter(*points.front().value.T, s=24, color=_colour(number), marker=_mark(number))
    for axis, objective in zip("xyz", objectives, strict=True):
        _axis(ax, axis, objective)
    _legend(figure, handles)
    return figure


def _parallel(systems: Mapping[str, Tradeoff], objectives: Sequence[Objective], dominated: bool) -> Figure:
    figure = _figure(1.6 * len(objectives) + 1, 4.4)
    ax = figure.add_subplot()
    places = np.arange(len(objectives))
    handles: dict[str, Any] = {}
    for number, (name, points) in enumerate(systems.items()):
        if dominated:
            ax.plot(places, (1 - points.dominated().loss).T, color=_colour(number), alpha=0.08, linewidth=0.7)
        lines = ax.plot(places, (1 - points.front().loss).T, color=_colour(number), alpha=0.7, linewidth=1.2)
        if lines:
            handles[name] = lines[0]
    ax.set_xticks(places, [f"{one.name}\n({_better(one)})" for one in objectives], fontsize=8, parse_math=False)
    ax.set_ylabel("from the worst (0) to the ideal (1)")
    ax.set_ylim(-0.02, 1.02)
    ax.grid(axis="x", alpha=0.4)
    _legend(figure, handles)
    return figure


def _axis(ax: Axes, axis: str, objective: Objective) -> None:
    getattr(ax, f"set_{axis}label")(f"{objective.name} ({_better(objective)})", parse_math=False)
    if objective.direction == "lower":
        getattr(ax, f"invert_{axis}axis")()


def _better(objective: Objective) -> str:
    return f"{objective.direction} is better"


def _legend(figure: Figure, handles: Mapping[str, Any], always: bool = False) -> None:
    """Names are set as they are: no formulas are read in them, and none is left out for how it begins."""
    if len(handles) < 2 and not (handles and always):
        return
    numbered = [str(number) for number in range(len(handles))]
    legend = figure.legend(
        list(handles.values()),
        numbered,
        loc="outside lower center",
        ncols=min(len(handles), 3),
        frameon=False,
        fontsize=8,
    )
    for text, name in zip(legend.get_texts(), handles, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure as Made
    except ImportError:
        raise SpecError("pictures of trade-offs need Matplotlib: pip install 'evaluand[plots]'") from None
    return Made(figsize=(width, height), layout="constrained")


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _mark(number: int) -> str:
    return _MARKS[number % len(_MARKS)]
