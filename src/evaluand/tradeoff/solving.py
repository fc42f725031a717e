"""From confidences to points: every model at every threshold."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.tradeoff.arguments import check_type, read_list
from evaluand.tradeoff.confidences import READ, Confidences, Thresholds, combine_thresholds
from evaluand.tradeoff.objectives import Objective, Undefined, check_policy, evaluate_points, parse_objectives
from evaluand.tradeoff.points import Tradeoff


def solve(
    confidences: Confidences,
    objectives: str | Objective | Sequence[str | Objective],
    thresholds: Thresholds | int | Sequence[float] = "every",
    undefined: Undefined = "nan",
    *,
    thresholds_by: str | Sequence[str] = (),
) -> Tradeoff:
    """The operating points of all models of a system.

    Args:
        objectives: such as `accuracy` and `equalized_odds difference by sex`: see `Objective.parse`.
        thresholds: the thresholds of each model: see `Confidences.thresholds`.
        undefined: the value of a rate without rows; see `Undefined`.
        thresholds_by: attributes whose groups, crossed, get separate thresholds: every combination of the groups'
            thresholds is a point, 100,000 at most. `every` and `roc` then read the rows of each group only.

    Raises:
        SpecError: an objective, attribute, threshold or policy is unknown, there are too many combinations, or a row
            belongs to no group that has a threshold.

    Example:
        >>> confidences = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.4, 0.6, 0.9]}, {"sex": list("ffmm")})
        >>> [solve(confidences, "accuracy", thresholds_by=by)["accuracy"].max().item() for by in ((), "sex")]
        [0.75, 1.0]
    """
    confidences = check_type("confidences", confidences, Confidences, READ)
    parsed, policy = parse_objectives(objectives), check_policy(undefined)
    thresholds_by = read_list("thresholds_by", thresholds_by, str, "'sex'")
    groups = confidences.threshold_groups(thresholds_by) if thresholds_by else ()
    by_model = {name: _thresholds_of(confidences, name, thresholds, groups) for name in confidences.models}
    parts = [
        (each, *evaluate_points(confidences, name, each, parsed, policy, groups)) for name, each in by_model.items()
    ]
    threshold, value, trivial, as_zero = (np.concatenate(each) for each in zip(*parts, strict=True))
    model = np.repeat(np.arange(len(parts)), [len(each) for each, *_ in parts])
    return Tradeoff(
        parsed,
        tuple(confidences.models),
        model,
        threshold,
        value,
        trivial,
        confidences.system,
        confidences,
        threshold_groups=groups,
        undefined=policy,
        as_zero=as_zero,
    )


def _thresholds_of(
    confidences: Confidences,
    model: str,
    thresholds: Thresholds | int | Sequence[float],
    groups: Sequence[Mapping[str, str]],
) -> np.ndarray:
    """The thresholds of a model's points; points × groups where groups have separate ones."""
    if not groups:
        return confidences.thresholds(model, thresholds)
    code = confidences.groups([*groups[0]]).code
    by_group = [confidences.thresholds(model, thresholds, code == number) for number in range(len(groups))]
    size = math.prod(map(len, by_group))
    if size * len(confidences.models) > _MOST_POINTS:
        factors = " × ".join(f"{len(one):,}" for one in by_group)
        models = f" for each of {len(confidences.models)} models" if len(confidences.models) > 1 else ""
        raise SpecError(
            f"{factors} thresholds of {len(groups)} groups are {size:,} points{models}, and {_MOST_POINTS:,} are the "
            "most; use fewer thresholds"
        )
    return combine_thresholds(by_group)


_MOST_POINTS: Final = 100_000
