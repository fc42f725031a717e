"""What the points of a model are worth by some objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.objectives import Objective, Undefined


def valued(
    given: Confidences,
    model: str,
    thresholds: np.ndarray,
    objectives: Sequence[Objective],
    undefined: Undefined,
    apart: Sequence[Mapping[str, str]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of a model at some thresholds, which of them decide alike for all rows, and `as_zero`."""
    value, native = np.empty((2, len(thresholds), len(objectives)))
    ways: list[tuple[Undefined, np.ndarray]] = [(undefined, value)]
    if undefined == "zero":
        ways.append(("nan", native))
    for place, one in enumerate(objectives):
        for way, found in ways if one.of_confidences else ():
            found[:, place] = one.of_model(given, model, way)
    decided = np.empty((len(thresholds), 2))
    for by in {(): None, **{one.by: None for one in objectives if not one.of_confidences}}:
        for step, counts, _ in given.counted(model, by, thresholds, apart):
            for place, one in enumerate(objectives):
                if one.by == by and not one.of_confidences:
                    for way, found in ways:
                        found[step, place] = one.of_counts(counts, way)
            if not by:
                decided[step] = counts[:, 0].reshape(-1, 2, 2).sum(axis=1)
    as_zero = np.isnan(native) | (native != value) if len(ways) > 1 else np.zeros(value.shape, bool)
    return value, np.asarray((decided == 0).any(axis=1)), as_zero


def policy_of(undefined: Any) -> Undefined:
    """What a rate without rows is, checked.

    Raises:
        SpecError: it is none of the words of `Undefined`.
    """
    if undefined not in get_args(Undefined):
        raise SpecError(f"undefined={undefined!r} must be 'nan', which leaves such groups out, or 'zero'")
    return undefined  # type: ignore[no-any-return]
