"""Indicators of several systems with the same objectives, each computed against the others."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.tradeoff.arguments import check_type, read_columns
from evaluand.tradeoff.front import additive_epsilon, igd_plus, non_dominated, radar_area
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff

RADAR: Final = ("relative_onvg", "onvgr", "ud", "as", "hv")
"""The axes of a radar chart of indicators."""


def compare_systems(systems: Mapping[str, Tradeoff]) -> dict[str, dict[str, float]]:
    """The indicators of each system (see `Tradeoff.indicators`), and those that need the other systems:

    - `relative_onvg`: points on the front, as a share of those of the system with the most
    - `igd_plus`, `epsilon`: how far a system falls short of the best of all systems together; lower is better
    - `area`: area of the radar chart of `RADAR`

    Raises:
        SpecError: there is no system, or the systems have different objectives.
    """
    systems = _check_systems(systems)
    shared_objectives(systems)
    fronts = {name: system.front() for name, system in systems.items()}
    losses = np.concatenate([front.loss for front in fronts.values()])
    reference = np.unique(losses[non_dominated(losses)], axis=0)
    indicators = {name: system.indicators() for name, system in systems.items()}
    most = max((each["onvg"] for each in indicators.values()), default=0.0)
    for name, each in indicators.items():
        each["relative_onvg"] = each["onvg"] / most if most else float("nan")
        each["igd_plus"], each["epsilon"] = _distances_to(fronts[name].loss, reference)
        each["area"] = radar_area([each[axis] for axis in RADAR])
    return indicators


def shared_objectives(systems: Mapping[str, Tradeoff]) -> tuple[Objective, ...]:
    """The objectives of the systems, which must be the same for all.

    Raises:
        SpecError: there is no system, or the systems have different objectives.
    """
    systems = _check_systems(systems)
    if not systems:
        raise SpecError("no system to compare; give the points of each by its name")
    first = next(iter(systems.values())).objectives
    for name, other in systems.items():
        if [one.text for one in other.objectives] != [one.text for one in first]:
            raise SpecError(f"{name} has other objectives than the systems before it; compare systems by the same ones")
    return first


def _distances_to(loss: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """IGD+ and additive epsilon of a front; points that it shares with the reference have distance 0."""
    own = {point.tobytes() for point in loss}
    others = reference[[point.tobytes() not in own for point in reference]]
    if not len(loss) or len(others) == len(reference):
        return igd_plus(loss, reference), additive_epsilon(loss, reference)
    if not len(others):
        return 0.0, 0.0
    return igd_plus(loss, others) * len(others) / len(reference), max(additive_epsilon(loss, others), 0.0)


def _check_systems(systems: Any) -> dict[str, Tradeoff]:
    columns = {} if systems is None else read_columns("systems", systems, "{'one': points, 'other': others}")
    return {name: check_type(f"systems[{name!r}]", one, Tradeoff, "use solve") for name, one in columns.items()}
