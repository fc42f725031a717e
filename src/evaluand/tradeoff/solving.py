"""From confidences to points: every model at every threshold that is tried."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.tradeoff.arguments import listed, made
from evaluand.tradeoff.confidences import READ, Confidences, Thresholds, combined
from evaluand.tradeoff.objectives import Objective, Undefined, objectives_of
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.values import policy_of, valued


def solve(
    given: Confidences,
    objectives: str | Objective | Sequence[str | Objective],
    thresholds: Thresholds | int | Sequence[float] = "every",
    undefined: Undefined = "nan",
    *,
    apart_by: str | Sequence[str] = (),
) -> Tradeoff:
    """The operating points of all models of a system.

    Args:
        given: the models' confidences, with the truth and the attributes.
        objectives: such as `accuracy` and `equalized_odds difference by sex`: see `Objective.parse`.
        thresholds: which of each model are tried: see `Confidences.thresholds`.
        undefined: what a rate without rows is; see `Undefined`.
        apart_by: attributes whose groups, crossed, have thresholds of their own: every combination of those of each
            group is a point, 100,000 at most. `every` and `roc` are then those of the group's own rows.

    Raises:
        SpecError: there is no such objective, attribute, threshold or way to take what is undefined, the
            combinations are too many, or a row belongs to no group that has a threshold.

    Example:
        >>> given = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.4, 0.6, 0.9]}, {"sex": list("ffmm")})
        >>> [solve(given, "accuracy", apart_by=by)["accuracy"].max().item() for by in ((), "sex")]
        [0.75, 1.0]
    """
    given = made("given", given, Confidences, READ)
    wanted, policy = objectives_of(objectives), policy_of(undefined)
    apart_by = listed("apart_by", apart_by, str, "'sex'")
    apart = given.apart(apart_by) if apart_by else ()
    each = {name: _tried(given, name, thresholds, apart) for name in given.models}
    parts = [(tried, *valued(given, name, tried, wanted, policy, apart)) for name, tried in each.items()]
    threshold, value, trivial, as_zero = (np.concatenate(each) for each in zip(*parts, strict=True))
    model = np.repeat(np.arange(len(parts)), [len(tried) for tried, *_ in parts])
    points = Tradeoff(wanted, tuple(given.models), model, threshold, value, trivial, given.system, given, apart=apart)
    return replace(points, undefined=policy, as_zero=as_zero)


def _tried(
    given: Confidences,
    model: str,
    thresholds: Thresholds | int | Sequence[float],
    apart: Sequence[Mapping[str, str]],
) -> np.ndarray:
    """The thresholds of the points of a model."""
    if not apart:
        return given.thresholds(model, thresholds)
    code = given.groups([*apart[0]]).code
    tried = [given.thresholds(model, thresholds, code == number) for number in range(len(apart))]
    size = math.prod(map(len, tried))
    if size * len(given.models) > _MOST_POINTS:
        told = f"{' × '.join(f'{len(one):,}' for one in tried)} thresholds of {len(apart)} groups"
        models = f" of each of {len(given.models)} models" if len(given.models) > 1 else ""
        raise SpecError(f"{told} are {size:,} points{models}, and {_MOST_POINTS:,} are the most; try fewer thresholds")
    return combined(tried)


_MOST_POINTS: Final = 100_000
