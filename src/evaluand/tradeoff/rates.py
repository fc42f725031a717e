"""Rates of groups: the values behind each disparity of a point, group by group.

`rates_of` computes all rates of some points. `rates_of_fronts` computes those that pages show: of the points of a front
that are listed, with a limit on the total.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.front import settled
from evaluand.tradeoff.objectives import Objective, group_rates
from evaluand.tradeoff.points import Tradeoff

CONFIDENCE: Final = 0.95
MOST_GROUPS: Final = 24
"""Of more groups a page shows those with the lowest and the highest rates."""
MOST_LISTED: Final = 500
"""The most points of a front that a page lists."""
MOST_CANDIDATES: Final = 10_000
"""The most points of all fronts that a page chooses from."""
_MOST_RATES: Final = 12_000


@dataclass(frozen=True)
class Rates:
    """One rate of one objective in each group, at some points.

    Attributes:
        objective: the objective that compares the groups.
        part: the place of the rate among the objective's metrics.
        ends: the rates with their intervals, points × groups.
        counted: the rows in the numerator of each rate; None where the metric is not a rate.
        of: the rows in its denominator.
    """

    objective: Objective
    part: int
    names: tuple[str, ...]
    ends: IntervalEnds
    counted: np.ndarray | None
    of: np.ndarray


class GroupRate(NamedTuple):
    """A rate of one group at one point; NaN where it is undefined.

    Attributes:
        value: the rate, with its interval from `low` to `high`.
        counted: the rows in its numerator; None where the metric is not a rate.
        of: the rows in its denominator.
    """

    group: str
    value: float
    low: float
    high: float
    counted: float | None
    of: float


class RateKey(NamedTuple):
    """One of the rates behind the disparities of a system.

    Attributes:
        objective: the place of the objective.
        part: the place of the metric within it.
    """

    objective: int
    part: int
    n_groups: int


@dataclass(frozen=True)
class FrontRates:
    """The rates of groups at some points of a front.

    Attributes:
        keys: the rates that are shown.
        by_point: place on the front → the groups of each rate, `MOST_GROUPS` at most.
    """

    keys: tuple[RateKey, ...]
    by_point: Mapping[int, Sequence[Sequence[GroupRate]]]


def rates_of(points: Tradeoff, confidences: Confidences, confidence: float = CONFIDENCE) -> Iterator[Rates]:
    """The rates of groups behind each disparity of some points, each only once."""
    comparing = _comparing(points)
    if not comparing:
        raise SpecError("none of the objectives compares groups, so there are no rates of groups")
    for number in np.unique(points.model).tolist():
        confidences.probabilities(points.models[number])
    yielded: set[tuple[str, tuple[str, ...]]] = set()
    for one in comparing:
        groups = confidences.groups(one.by).names
        counts = np.zeros((len(points), len(groups), 4))
        independent = confidences.weight is None and confidences.cluster is None
        products = None if independent else np.zeros((*counts.shape, 4))
        for _, places, block, block_products in points.iterate_counts(confidences, one.by):
            counts[places] = block
            if products is not None:
                products[places] = block_products
        names = tuple("×".join(name.values()) for name in groups)
        for part, metric in enumerate(one.parts):
            if (metric.signature, one.by) not in yielded:
                yielded.add((metric.signature, one.by))
                yield Rates(one, part, names, *group_rates(metric, counts, confidence, products))


def rates_of_fronts(systems: Mapping[str, Tradeoff]) -> dict[str, FrontRates]:
    """The rates at the listed points of each front, and at its best point; systems without rates are left out."""
    found: dict[str, FrontRates] = {}
    budget = _MOST_RATES
    for system, points in systems.items():
        rows = points.confidences
        if rows is None or np.isnan(points.threshold).any() or not _comparing(points):
            continue
        front = points.front()
        rates = rates_of(front.take(np.empty(0, np.int64)), rows)
        keys = tuple(RateKey(front.objectives.index(one.objective), one.part, len(one.names)) for one in rates)
        size = sum(min(key.n_groups, MOST_GROUPS) for key in keys)
        listed = thinned(len(front), MOST_LISTED)
        places = listed[thinned(len(listed), budget // max(size, 1))]
        budget -= size * len(places)
        found[system] = FrontRates(keys, _rates_at(front, rows, np.union1d(places, _best_places(front, len(systems)))))
    return found


def _comparing(points: Tradeoff) -> list[Objective]:
    """The objectives that compare groups by rates of decisions."""
    return [one for one in points.objectives if one.disparity and not one.of_confidences]


def candidate_places(front: Tradeoff, systems: int) -> list[int]:
    """The places on a front that a page of so many systems chooses from."""
    most = max(MOST_CANDIDATES // systems, MOST_LISTED)
    return sorted({*thinned(len(front), MOST_LISTED).tolist(), *thinned(len(front), most).tolist()})


def thinned(n: int, most: int) -> np.ndarray:
    """The places of at most so many of n things, evenly spread, with the first and the last."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def _best_places(front: Tradeoff, systems: int) -> np.ndarray:
    """The place of the best point by the first objective, then by the others: the one that a page shows first."""
    places = np.array(candidate_places(front, systems), np.int64)
    order = np.lexsort(settled(front.loss[places]).T[::-1])
    return places[order[:1]]


def _rates_at(front: Tradeoff, rows: Confidences, places: np.ndarray) -> dict[int, list[list[GroupRate]]]:
    """The rates at some points; of many groups those with the lowest and the highest rates."""
    found: dict[int, list[list[GroupRate]]] = {int(place): [] for place in places}
    for each in rates_of(front.take(places), rows):
        for row, rates in enumerate(found.values()):
            value, low, high = (end[row].tolist() for end in each.ends)
            counted = [None] * len(value) if each.counted is None else each.counted[row].tolist()
            every = list(map(GroupRate, each.names, value, low, high, counted, each.of[row].astype(float).tolist()))
            rates.append([every[group] for group in _extreme_groups(each.ends.value[row])])
    return found


def _extreme_groups(values: np.ndarray) -> list[int]:
    """All groups in order; of many groups those with the lowest and the highest values, in the order of these."""
    if len(values) <= MOST_GROUPS:
        return list(range(len(values)))
    known = np.argsort(values, kind="stable")[: np.isfinite(values).sum()]
    half = MOST_GROUPS // 2
    return [*known[:half].tolist(), *known[half:][-half:].tolist()]
