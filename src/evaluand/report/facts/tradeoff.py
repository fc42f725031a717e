"""Facts about trade-offs: points with their values and intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evaluand.report.facts.base import Facts

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Aggregation
    from evaluand.tradeoff import Tradeoff


def tradeoffs_facts(aggregation: Aggregation) -> list[Facts]:
    """The trade-offs of an experiment: their points (of points at thresholds only the front), or why there are none."""
    from evaluand.tradeoff.results import stored_results  # on use: `evaluand list` does without Arrow

    return [
        {"name": one.name, "objectives": list(one.objectives), "reason": one.reason}
        | (
            {}
            if one.points is None
            else {"notes": list(one.points.notes), "of": len(one.points), "points": _list_points(one.points)}
        )
        for one in stored_results(aggregation)
    ]


def point_facts(points: Tradeoff, place: int) -> Facts:
    """A point: its model or variant, its threshold where it has one, and its values with their intervals."""
    threshold, ends = float(points.threshold[place]), points.ends
    columns = {"value": points.value} | ({} if ends is None else {"low": ends.low, "high": ends.high})
    return {
        "model": points.models[points.model[place]],
        "threshold": None if math.isnan(threshold) else threshold,
        "trivial": bool(points.trivial[place]),
        "values": {
            one.name: {name: _none_if_nan(float(end[place, i])) for name, end in columns.items()}
            for i, one in enumerate(points.objectives)
        },
    }


def _list_points(points: Tradeoff) -> list[Facts]:
    best = points.on_front
    return [
        point_facts(points, place) | {"front": bool(best[place])}
        for place in range(len(points))
        if best[place] or math.isnan(points.threshold[place])
    ]


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
