"""In which groups of examples one system does worse than another, or better: a paired difference for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.anytime import heaviest_cluster
from evaluand.comparison.difference import describe
from evaluand.comparison.measuring import measure_pair
from evaluand.comparison.pairing import pair_rows
from evaluand.comparison.significance import holm
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.store.store import early_stops

_MOST: Final = 50
"""The most groups of an attribute; one with more values, such as an id, is left out."""


@dataclass(frozen=True)
class GroupChange:
    """B compared with A over the examples of one group.

    Attributes:
        by: attribute → value.
        target: the target of the metric, None if there is one.
        change: the difference, as `difference.describe` returns it.
        p: its p value, adjusted by Holm's procedure for all groups that were compared; NaN where undefined.
    """

    by: dict[str, str]
    target: str | None
    change: dict[str, Any]
    p: float


def group_changes(
    a: Evaluation, b: Evaluation, measure: Measure, attributes: Sequence[str], confidence: float = 0.95
) -> list[GroupChange]:
    """The difference in every group of one attribute, the largest loss first.

    Args:
        measure: the metric, which has a direction.
        attributes: their values are the groups; an attribute with more than 50 values is left out.
        confidence: of each group's interval, as if it were the only one.

    Raises:
        SpecError: the metric has no differences, or an attribute does not exist.
        DataError: the metric refuses the scores.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> from evaluand.evaluation.evaluator import Evaluator
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> from evaluand.run.runner import Runner
        >>> rows = [{"input": i, "expected": i, "half": "first" if i < 20 else "second"} for i in range(40)]
        >>> data, same = Dataset.from_rows(rows, attributes=["half"]), lambda output, expected: output == expected
        >>> tasks = (int, lambda i: max(i, 20))
        >>> a, b = (Evaluator().evaluate(Runner().run(task, data), {"same": same}) for task in tasks)
        >>> changes = group_changes(a, b, Measure("same", Accuracy()), ["half"])
        >>> [(each.by, each.change["difference"]) for each in changes]
        [({'half': 'first'}, -1.0), ({'half': 'second'}, 0.0)]
    """
    stops = early_stops(a.store, [(EVALUATIONS, side.id) for side in (a, b)])
    heaviest = max(heaviest_cluster(side, measure.metric) for side in (a, b)) if stops else None
    found = []
    for name in attributes:
        rows = pair_rows([a, b], measure.scorer, measure.metric, by=(name,))
        if len({key[1:] for key in rows.keys}) > _MOST:
            continue
        for place, (target, value) in enumerate(rows.keys):
            own = rows.take(rows.group == place)
            change = describe(measure_pair(own, 0, 1, heaviest=heaviest), own, 0, 1, confidence)
            found.append(({name: "" if value is None else str(value)}, target, change))
    adjusted = holm(np.array([change["p"] for *_, change in found]))
    changes = [GroupChange(*group, float(p)) for group, p in zip(found, adjusted, strict=True)]
    sign = -1 if measure.metric.direction == "lower" else 1
    gain = sign * np.array([each.change["difference"] for each in changes])
    return [changes[place] for place in np.argsort(gain, kind="stable")]  # undefined ones are last
