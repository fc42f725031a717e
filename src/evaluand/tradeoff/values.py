"""Values of the points of a model by several objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.objectives import Objective, Undefined


def evaluate_points(
    confidences: Confidences,
    model: str,
    thresholds: np.ndarray,
    objectives: Sequence[Objective],
    undefined: Undefined,
    threshold_groups: Sequence[Mapping[str, str]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`value`, `trivial` and `as_zero` of a model's points; see `Tradeoff`."""
    value, native = np.empty((2, len(thresholds), len(objectives)))
    outputs: list[tuple[Undefined, np.ndarray]] = [(undefined, value)]
    if undefined == "zero":
        outputs.append(("nan", native))
    for place, one in enumerate(objectives):
        for policy, output in outputs if one.of_confidences else ():
            output[:, place] = one.of_model(confidences, model, policy)
    decided = np.empty((len(thresholds), 2))
    for by in {(): None, **{one.by: None for one in objectives if not one.of_confidences}}:
        for step, counts, _ in confidences.iterate_counts(model, by, thresholds, threshold_groups):
            for place, one in enumerate(objectives):
                if one.by == by and not one.of_confidences:
                    for policy, output in outputs:
                        output[step, place] = one.of_counts(counts, policy)
            if not by:
                decided[step] = counts[:, 0].reshape(-1, 2, 2).sum(axis=1)
    as_zero = np.isnan(native) | (native != value) if len(outputs) > 1 else np.zeros(value.shape, bool)
    return value, np.asarray((decided == 0).any(axis=1)), as_zero


def check_policy(undefined: Any) -> Undefined:
    """The value of `undefined`, checked.

    Raises:
        SpecError: it is none of the values of `Undefined`.
    """
    if undefined not in get_args(Undefined):
        raise SpecError(f"undefined={undefined!r} must be 'nan', which leaves such groups out, or 'zero'")
    return undefined  # type: ignore[no-any-return]
