"""What pictures and pages of trade-offs show alike: the areas that fronts lie in, and the rates of groups.

Where every point is known to lie between two ends, the front lies between two others: the one there were if every point
were as bad as its ends say, and the one if each were as good. That area stays readable with any number of points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.report.text import LABEL, safe
from evaluand.tradeoff import Confidences, Objective, Tradeoff
from evaluand.tradeoff.front import non_dominated
from evaluand.tradeoff.objectives import group_counts, group_rates

CONFIDENCE: Final = 0.95
_FEW_NAMES: Final = 12
_MOST_NAMED: Final = 60
_NAME: Final = 24


def thinned(n: int, most: int) -> np.ndarray:
    """The places of so many of n things that lie evenly, the first and the last among them."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def labels_of(systems: Mapping[str, Tradeoff]) -> tuple[dict[str, np.ndarray], str]:
    """What stands beside the points of variants in pictures, and what that means where it is a number.

    Few variants stand there by their names, more by numbers. Points at thresholds, and very many variants, have none.
    """
    named = {
        system: [safe(points.models[number], _NAME) for number in points.model]
        for system, points in systems.items()
        if len(points) and np.isnan(points.threshold).all()
    }
    n = sum(map(len, named.values()))
    if n > _MOST_NAMED:
        return {}, ""
    if n <= _FEW_NAMES:
        return {system: np.array(names) for system, names in named.items()}, ""
    numbered: dict[str, np.ndarray] = {}
    told: list[str] = []
    for system, names in named.items():
        numbered[system] = np.arange(len(told) + 1, len(told) + 1 + len(names)).astype(str)
        told += names
    return numbered, ", ".join(f"{number} {each}" for number, each in enumerate(told, start=1)) + "."


def front_places(points: Tradeoff) -> np.ndarray:
    """Which points are on the front."""
    return np.flatnonzero(points.on_front)


def beaten_places(points: Tradeoff) -> np.ndarray:
    """Which points another beats; what is undefined is neither."""
    return np.flatnonzero(~points.on_front & ~np.isnan(points.loss).any(axis=1))


def has_ends(points: Tradeoff) -> bool:
    """Whether any point has an interval."""
    return points.ends is not None and not np.isnan(points.ends.low).all()


def ends_of(points: Tradeoff) -> tuple[np.ndarray, np.ndarray]:
    """Between which values the points lie; a value without ends is taken as it is."""
    if points.ends is None:
        return points.value, points.value
    found = (np.where(np.isfinite(end), end, points.value) for end in points.ends[1:])
    low, high = found
    return np.fmin(low, points.value), np.fmax(high, points.value)


def area_of_front(points: Tradeoff, across: int, up: int) -> list[tuple[float, float]]:
    """The corners of the area that the front of two objectives lies in, if each point lies between its ends.

    All points count, as one that looks beaten may truly be on the front. It goes as far as any point may that can be on
    the front, which is one that no other beats if it is at its best end and the other at its worst.

    Args:
        points: with two objectives.
        across: the objective whose values come first.
        up: the other.
    """
    sign = np.array([1.0 if points.objectives[place].direction == "lower" else -1.0 for place in (across, up)])
    ends = np.stack([end[:, [across, up]] * sign for end in ends_of(points)])
    best, worst = ends.min(axis=0), ends.max(axis=0)
    best, worst = (end[~np.isnan(ends).any(axis=(0, 2))] for end in (best, worst))
    if not len(best):
        return []
    beyond = _front(worst)
    far = worst[~_beaten(best, beyond)].max(axis=0)
    around = [*_steps(_front(best), far), *reversed(_steps(beyond, far))]
    return [(float(x * sign[0]), float(y * sign[1])) for x, y in around]


def _front(points: np.ndarray) -> np.ndarray:
    """The front of points whose lower coordinates are better, in its order."""
    return np.unique(points[non_dominated(points)], axis=0)


def _beaten(points: np.ndarray, front: np.ndarray) -> np.ndarray:
    """Which points are worse in both coordinates than one of a front."""
    place = np.searchsorted(front[:, 0], points[:, 0])
    least = np.minimum.accumulate(np.append(np.inf, front[:, 1]))
    return np.asarray(least[place] < points[:, 1])


def _steps(front: np.ndarray, far: np.ndarray) -> list[tuple[float, float]]:
    """A front, whose lower coordinates are better, as far as it is to be seen."""
    stops = [(front[0, 0], far[1]), *map(tuple, front.tolist()), (far[0], front[-1, 1])]
    corners = [(right, above) for (_, above), (right, _) in pairwise(stops)]
    return [*(at for pair in zip(stops, corners, strict=False) for at in pair), stops[-1]]


def told_of_ends(systems: Mapping[str, Tradeoff], of_many: str = "Bars") -> str:
    """What the areas around fronts mean, in plain words; empty where there are none.

    Args:
        systems: that are shown.
        of_many: what there is of more than two objectives.
    """
    shown = {name: points for name, points in systems.items() if has_ends(points)}
    if not shown:
        return ""
    objectives = len(next(iter(shown.values())).objectives)
    what = {
        1: "Beside each value: its ends.",
        2: "Shaded: the true front of a system's points lies here, between the fronts if each were at its worst and at"
        " its best end.",
    }.get(objectives, f"{of_many}: between the ends of points of the front.")
    kinds = {points.band for points in shown.values()}
    told = [
        ("" if len(kinds) == 1 else f"{', '.join(_named(shown, band))}: ") + _held(band)
        for band in sorted(kinds, key=lambda band: band or 0.0, reverse=True)
    ]
    return f"{what} {' '.join(told)}"


def _named(shown: Mapping[str, Tradeoff], band: float | None) -> list[str]:
    return [safe(name, LABEL) for name, points in shown.items() if points.band == band]


def _held(band: float | None) -> str:
    if band is None:
        return "The ends are the interval of each point by itself, and do not hold for all at once."
    return f"In each objective, {100 * band:.4g} % of such bands hold for all points of a model at once."


@dataclass(frozen=True)
class Rates:
    """What some points come to in each group by one rate of one objective.

    Attributes:
        objective: that is about the groups.
        part: which of its rates.
        names: of the groups.
        ends: the rates with their intervals, points × groups.
        counted: how many rows a rate counts; None where it is no rate of rows.
        of: of how many rows it is.
    """

    objective: Objective
    part: int
    names: tuple[str, ...]
    ends: IntervalEnds
    counted: np.ndarray | None
    of: np.ndarray

    @property
    def title(self) -> str:
        """What the rate is called, and by what the groups differ."""
        return f"{self.objective.parts[self.part].kind.replace('_', ' ')} by {', '.join(self.objective.by)}"

    @property
    def wanted(self) -> str:
        """What is looked at of the rates."""
        kinds = {"min": "the least counts", "max": "the greatest counts"}
        return kinds.get(self.objective.disparity or "", "wanted alike")


def rates_of(points: Tradeoff, given: Confidences, confidence: float = CONFIDENCE) -> Iterator[Rates]:
    """The rates of groups behind each disparity of some points, each only once.

    Raises:
        SpecError: none of the objectives is about groups, or a model or attribute is unknown.
    """
    apart = [one for one in points.objectives if one.disparity and not one.of_confidences]
    if not apart:
        raise SpecError("none of the objectives is about groups, so there are no rates of groups to show")
    used = np.unique(points.model).tolist()
    for name in (points.models[number] for number in used):
        if name not in given.models:
            raise SpecError(f"there are no confidences of the model {name!r}; there are: {', '.join(given.models)}")
    told: set[tuple[str, tuple[str, ...]]] = set()
    for one in apart:
        groups = given.groups(one.by).names
        counts = np.zeros((len(points), len(groups), 4))
        crossed = None if given.weight is None and given.cluster is None else np.zeros((*counts.shape, 4))
        for number in used:
            mine = np.flatnonzero(points.model == number)
            for step, *found in given.counted(
                points.models[number], one.by, points.threshold[mine], points.apart, crossed=True
            ):
                counts[mine[step]], products = found
                if crossed is not None:
                    crossed[mine[step]] = products
        names = tuple("×".join(name.values()) for name in groups)
        for part, metric in enumerate(one.parts):
            if (metric.signature, one.by) not in told:
                told.add((metric.signature, one.by))
                ends = group_rates(one, counts, part, confidence, crossed)
                yield Rates(one, part, names, ends, *group_counts(one, counts, part))


def counts_text(counted: Sequence[int] | None, of: Sequence[int]) -> list[str]:
    """What each rate rests on, such as `25 of 30`."""
    rows = [f"{n:,.6g}" for n in of]
    return rows if counted is None else [f"{k:,.6g} of {n}" for k, n in zip(counted, rows, strict=True)]
