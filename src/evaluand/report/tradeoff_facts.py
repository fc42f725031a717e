"""What figures and pages of trade-offs have in common: areas around fronts, labels, and texts on intervals and rates.

If every point lies between its two ends, the front lies between two other fronts: that of all worst ends, and that of
all best ends. The area between them stays readable with any number of points.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from evaluand.report.text import LABEL, safe
from evaluand.tradeoff.front import non_dominated
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff

_FEW_NAMES: Final = 12
_MOST_LABELLED: Final = 60
_NAME: Final = 24


def point_labels(systems: Mapping[str, Tradeoff]) -> tuple[dict[str, np.ndarray], str]:
    """The labels of variants in figures, and a key to them where they are numbers.

    Few variants are labelled by their names, more by numbers. Points at thresholds, and very many variants, have none.
    """
    names = {
        system: [safe(points.models[number], _NAME) for number in points.model]
        for system, points in systems.items()
        if len(points) and np.isnan(points.threshold).all()
    }
    n = sum(map(len, names.values()))
    if n > _MOST_LABELLED:
        return {}, ""
    if n <= _FEW_NAMES:
        return {system: np.array(each) for system, each in names.items()}, ""
    numbers: dict[str, np.ndarray] = {}
    numbered: list[str] = []
    for system, each in names.items():
        numbers[system] = np.arange(len(numbered) + 1, len(numbered) + 1 + len(each)).astype(str)
        numbered += each
    return numbers, ", ".join(f"{number} {each}" for number, each in enumerate(numbered, start=1)) + "."


def front_places(points: Tradeoff) -> np.ndarray:
    """The places of the points on the front."""
    return np.flatnonzero(points.on_front)


def dominated_places(points: Tradeoff) -> np.ndarray:
    """The places of the points that another dominates; undefined points are on neither list."""
    return np.flatnonzero(~points.on_front & ~np.isnan(points.loss).any(axis=1))


def has_ends(points: Tradeoff) -> bool:
    """Whether any point has an interval."""
    return points.ends is not None and not np.isnan(points.ends.low).all()


def ends_of(points: Tradeoff) -> tuple[np.ndarray, np.ndarray]:
    """The lower and upper ends of the values; the value itself where it has none."""
    if points.ends is None:
        return points.value, points.value
    low, high = (np.where(np.isfinite(end), end, points.value) for end in points.ends[1:])
    return np.fmin(low, points.value), np.fmax(high, points.value)


def area_of_front(points: Tradeoff, across: int, up: int) -> list[tuple[float, float]]:
    """The corners of the area that the front of two objectives lies in, if each point lies between its ends.

    All points count, since one that looks dominated may truly be on the front. The area reaches as far as any point
    that may be on the front: one whose best end no worst end of another point dominates.

    Args:
        points: with two objectives.
        across: the place of the objective on the horizontal axis.
        up: that on the vertical axis.
    """
    sign = np.array([1.0 if points.objectives[place].direction == "lower" else -1.0 for place in (across, up)])
    ends = np.stack([end[:, [across, up]] * sign for end in ends_of(points)])
    best, worst = ends.min(axis=0), ends.max(axis=0)
    best, worst = (end[~np.isnan(ends).any(axis=(0, 2))] for end in (best, worst))
    if not len(best):
        return []
    beyond = _front(worst)
    far = worst[~_is_dominated(best, beyond)].max(axis=0)
    around = [*_steps(_front(best), far), *reversed(_steps(beyond, far))]
    return [(float(x * sign[0]), float(y * sign[1])) for x, y in around]


def _front(points: np.ndarray) -> np.ndarray:
    """The sorted front of points, with lower coordinates as the better ones."""
    return np.unique(points[non_dominated(points)], axis=0)


def _is_dominated(points: np.ndarray, front: np.ndarray) -> np.ndarray:
    """Which points are worse in both coordinates than a point of a front."""
    place = np.searchsorted(front[:, 0], points[:, 0])
    least = np.minimum.accumulate(np.append(np.inf, front[:, 1]))
    return np.asarray(least[place] < points[:, 1])


def _steps(front: np.ndarray, far: np.ndarray) -> list[tuple[float, float]]:
    """The staircase of a front up to its farthest visible corner; lower coordinates are better."""
    stops = [(front[0, 0], far[1]), *map(tuple, front.tolist()), (far[0], front[-1, 1])]
    corners = [(right, above) for (_, above), (right, _) in pairwise(stops)]
    return [*(at for pair in zip(stops, corners, strict=False) for at in pair), stops[-1]]


def describe_ends(systems: Mapping[str, Tradeoff], marks: str = "Bars") -> str:
    """What the areas around fronts, or other `marks`, mean, in plain words; empty where there are none."""
    shown = {name: points for name, points in systems.items() if has_ends(points)}
    if not shown:
        return ""
    objectives = len(next(iter(shown.values())).objectives)
    meaning = {
        1: "Next to each value: its ends.",
        2: "Shaded: the true front of a system's points lies here, between the fronts of all worst and of all best "
        "ends.",
    }.get(objectives, f"{marks}: between the ends of points of the front.")
    bands = {points.band for points in shown.values()}
    levels = []
    for band in sorted(bands, key=lambda band: band or 0.0, reverse=True):
        names = ", ".join(safe(name, LABEL) for name, points in shown.items() if points.band == band)
        levels.append(("" if len(bands) == 1 else f"{names}: ") + _describe_level(band))
    return f"{meaning} {' '.join(levels)}"


def _describe_level(band: float | None) -> str:
    if band is None:
        return "The ends are pointwise intervals, and do not hold for all points at once."
    return f"In each objective, {100 * band:.4g} % of such bands hold for all points of a model at once."


def rate_title(objective: Objective, part: int) -> str:
    """The name of a rate, and the attributes whose groups it compares."""
    return f"{objective.parts[part].kind.replace('_', ' ')} by {', '.join(objective.by)}"


def rate_aim(objective: Objective) -> str:
    """What the disparity of the rates measures."""
    aims = {"min": "the lowest counts", "max": "the highest counts"}
    return aims.get(objective.disparity or "", "should be equal")


def counts_text(counted: Sequence[float] | None, of: Sequence[float]) -> list[str]:
    """The rows behind each rate, such as `25 of 30`."""
    rows = [f"{n:,.6g}" for n in of]
    return rows if counted is None else [f"{k:,.6g} of {n}" for k, n in zip(counted, rows, strict=True)]
