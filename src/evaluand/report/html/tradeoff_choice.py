"""The points of fronts that a page chooses from, as data for its script: values, thresholds and rates of groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.core.errors import plural
from evaluand.report.text import LABEL, between, numbers, safe
from evaluand.report.tradeoff_facts import counts_text, rate_aim, rate_title
from evaluand.tradeoff.front import settled
from evaluand.tradeoff.indicators import shared_objectives
from evaluand.tradeoff.objectives import Objective, rounding_of
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.rates import MOST_GROUPS, MOST_LISTED, FrontRates, GroupRate, RateKey, candidate_places, thinned

EXTREME_GROUPS: Final = f"those with the {MOST_GROUPS // 2} lowest and highest rates are shown."


@dataclass(frozen=True)
class Choices:
    """The points of each front that the script chooses from.

    Attributes:
        fronts: system → its front.
        places: system → the places on its front to choose from.
        listed: system → those of them that are rows of the table.
    """

    fronts: Mapping[str, Tradeoff]
    places: Mapping[str, list[int]]
    listed: Mapping[str, list[int]]

    @classmethod
    def of(cls, systems: Mapping[str, Tradeoff]) -> Choices:
        fronts = {system: points.front() for system, points in systems.items()}
        listed = {system: thinned(len(front), MOST_LISTED).tolist() for system, front in fronts.items()}
        places = {system: candidate_places(front, len(systems)) for system, front in fronts.items()}
        return cls(fronts, places, listed)

    @property
    def first(self) -> tuple[str, int] | None:
        """The system and place that are shown first: the best by the first objective, then by the others.

        Points that decide equally for all rows come last.
        """
        among = [(system, place) for system, places in self.places.items() for place in places]
        losses = [self.fronts[system].loss[places] for system, places in self.places.items()]
        order = np.lexsort(settled(np.concatenate(losses)).T[::-1]).tolist() if among else []
        ordered = sorted((among[place] for place in order), key=lambda each: self.fronts[each[0]].trivial[each[1]])
        return ordered[0] if ordered else None


def rate_cells(
    objectives: Sequence[Objective], keys: Sequence[RateKey], of_point: Sequence[Sequence[GroupRate]]
) -> list[list[list[Any]]]:
    """The groups of each rate: name, rows, rate, interval, and places on the axis."""
    cells = []
    for key, groups in zip(keys, of_point, strict=True):
        low, high = objectives[key.objective].parts[key.part].range
        counted = [one.counted for one in groups if one.counted is not None]
        rows = counts_text(counted if len(counted) == len(groups) else None, [one.of for one in groups])
        cells.append(
            [
                [safe(one.group, LABEL), text, *_on_axis([one.value, one.low, one.high], low, high)]
                for one, text in zip(groups, rows, strict=True)
            ]
        )
    return cells


def _on_axis(ends: Sequence[float], low: float, high: float) -> list[Any]:
    """The texts of a rate and its interval, and their places on the axis in percent, after that of 0."""
    if math.isnan(ends[0]):
        return ["–", "", []]
    known = [None if math.isnan(end) else end for end in ends]
    value, *shown = numbers(*known)
    spots = [0.0, *(ends[0] if math.isnan(end) else end for end in ends)]
    interval = "" if None in known else between(*shown)
    return [value, interval, [round(100 * (min(max(at, low), high) - low) / (high - low), 1) for at in spots]]


def caption_rate(objectives: Sequence[Objective], key: RateKey) -> str:
    objective = objectives[key.objective]
    return f"{safe(rate_title(objective, key.part))} ({rate_aim(objective)})"


def choice_facts(systems: Mapping[str, Tradeoff], rates: Mapping[str, FrontRates]) -> dict[str, Any]:
    """The points of the fronts that a script chooses from, and what it needs to show them.

    Returns:
        `lower` and `rounding` of each objective, `names` of objectives, `systems`, `models` of each system, `captions`
        of the rates of groups, `cut`, which says what is not listed, `ends` of each point, and `points`: system, model,
        threshold, row of the table, values, rates of groups, and whether it decides equally for all rows.
    """
    objectives, choices = shared_objectives(systems), Choices.of(systems)
    keys = next(iter(rates.values())).keys if rates else ()
    several = any(key.n_groups > MOST_GROUPS for each in rates.values() for key in each.keys)
    return _describe_points(systems, objectives, choices, rates) | {
        "captions": [caption_rate(objectives, key) for key in keys],
        "of_many_groups": f"Of many groups {EXTREME_GROUPS}" if several else "",
        "cut": describe_cut(choices),
        "ends": [
            _ends_of_point(front, place) for name, front in choices.fronts.items() for place in choices.places[name]
        ],
    }


def _ends_of_point(front: Tradeoff, place: int) -> list[list[float]] | None:
    return None if front.ends is None else [end[place].tolist() for end in front.ends[1:]]


def _describe_points(
    systems: Mapping[str, Tradeoff],
    objectives: Sequence[Objective],
    choices: Choices,
    rates: Mapping[str, FrontRates],
) -> dict[str, Any]:
    candidates: list[list[Any]] = []
    n_listed = 0
    for number, (system, front) in enumerate(choices.fronts.items()):
        listed = choices.listed[system]
        rows = {place: n_listed + row for row, place in enumerate(listed)}
        n_listed += len(listed)
        known = rates.get(system, FrontRates((), {}))
        cells = {place: rate_cells(objectives, known.keys, each) for place, each in known.by_point.items()}
        candidates += [
            [
                number,
                int(front.model[place]),
                threshold_text(float(front.threshold[place])),
                rows.get(place),
                front.value[place].tolist(),
                cells.get(place),
                bool(front.trivial[place]),
            ]
            for place in choices.places[system]
        ]
    return {
        "lower": [one.direction == "lower" for one in objectives],
        "rounding": [rounding_of(one) for one in objectives],
        "names": [safe(one.name, LABEL) for one in objectives],
        "systems": [safe(system, LABEL) for system in systems],
        "models": [[safe(model, LABEL) for model in points.models] for points in systems.values()],
        "points": candidates,
    }


def describe_cut(choices: Choices) -> str:
    """How many points are not listed, and how many are not even candidates."""
    on, listed, candidates = (sum(map(len, each.values())) for each in (choices.fronts, choices.listed, choices.places))
    if on == listed:
        return ""
    rest = f"{plural(on - listed, 'more point')} of the fronts, evenly spread, {'is' if on - listed == 1 else 'are'}"
    among = "all" if candidates == on else f"{candidates:,} of all {on:,} points"
    return f"{rest} not listed; the best is chosen from {among}."


def threshold_text(value: float) -> str:
    """The shortest text that reads back as the same number; empty for NaN."""
    if math.isnan(value):
        return ""
    return repr(value).removesuffix(".0") if math.isfinite(value) else "∞" if value > 0 else "−∞"
