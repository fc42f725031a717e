"""Systems side by side: the indicators of their fronts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.tradeoff.arguments import made, named
from evaluand.tradeoff.front import additive_epsilon, igd_plus, non_dominated, radar_area
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff

RADAR: Final = ("relative_onvg", "onvgr", "ud", "as", "hv")
"""The axes of a radar chart of indicators."""


def compared(systems: Mapping[str, Tradeoff]) -> dict[str, dict[str, float]]:
    """The indicators of several systems, with those that are about one beside the others.

    - `relative_onvg`: points of the front, as a share of those of the system that has the most
    - `igd_plus`, `epsilon`: how far a system falls short of the best of all together; lower is better
    - `area`: of the radar chart of `RADAR`

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    systems = _systems(systems)
    shared_objectives(systems)
    fronts = {name: one.front() for name, one in systems.items()}
    every = np.concatenate([one.loss for one in fronts.values()])
    reference = np.unique(every[non_dominated(every)], axis=0)
    found = {name: one.indicators() for name, one in systems.items()}
    most = max((one["onvg"] for one in found.values()), default=0.0)
    for name, one in found.items():
        one["relative_onvg"] = one["onvg"] / most if most else float("nan")
        one["igd_plus"], one["epsilon"] = _short_of(fronts[name].loss, reference)
        one["area"] = radar_area([one[axis] for axis in RADAR])
    return found


def _short_of(loss: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """How far a front falls short of the best of all: not at all where it is the best itself."""
    own = {point.tobytes() for point in loss}
    others = reference[[point.tobytes() not in own for point in reference]]
    if not len(loss) or len(others) == len(reference):
        return igd_plus(loss, reference), additive_epsilon(loss, reference)
    if not len(others):
        return 0.0, 0.0
    return igd_plus(loss, others) * len(others) / len(reference), max(additive_epsilon(loss, others), 0.0)


def shared_objectives(systems: Mapping[str, Tradeoff]) -> tuple[Objective, ...]:
    """The objectives that all of some systems have.

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    systems = _systems(systems)
    if not systems:
        raise SpecError("no system is given; give the points of each by its name")
    first = next(iter(systems.values())).objectives
    for name, other in systems.items():
        if [one.text for one in other.objectives] != [one.text for one in first]:
            raise SpecError(f"{name} has other objectives than the systems before it; compare systems by the same ones")
    return first


def _systems(given: Any) -> dict[str, Tradeoff]:
    found = {} if given is None else named("systems", given, "{'one': points, 'other': others}")
    return {name: made(f"systems[{name!r}]", one, Tradeoff, "such as solve gives") for name, one in found.items()}
