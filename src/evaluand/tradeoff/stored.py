"""Trade-offs of what is stored: each task of an experiment, or each of its settings, is a point.

A system without thresholds (an LLM application) has as many points as variants were run; their values, disparities and
intervals are those of the aggregation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evaluand.aggregation import Aggregation, Measure
from evaluand.errors import SpecError
from evaluand.fairness import CRITERIA
from evaluand.tradeoff import Tradeoff
from evaluand.tradeoff.ends import Ends
from evaluand.tradeoff.objectives import Objective, written


def of_aggregation(aggregation: Aggregation, objectives: Sequence[str], system: str = "system") -> Tradeoff:
    """A point for each evaluation of an aggregation, called as it is there.

    Args:
        aggregation: of the variants of a system, with the disparities that are asked for.
        objectives: such as `mean(quality)` and `mean(quality) difference by topic`.
        system: what the points belong to.

    Raises:
        SpecError: the aggregation has no such metric or disparity, or several.
    """
    wanted = tuple(_found(text, aggregation.measures) for text in objectives)
    value, low, high = (np.full((len(aggregation.labels), len(wanted)), np.nan) for _ in Ends._fields)
    for place, objective in enumerate(wanted):
        for row in _rows(aggregation, objective):
            ends = (row[part] for part in Ends._fields)
            for part, end in zip((value, low, high), ends, strict=True):
                part[row["evaluation"], place] = np.nan if end is None else end
    n = len(aggregation.labels)
    return Tradeoff(
        objectives=wanted,
        models=tuple(aggregation.labels),
        model=np.arange(n),
        threshold=np.full(n, np.nan),
        value=value,
        trivial=np.zeros(n, bool),
        system=system,
        ends=Ends(value, low, high),
    )


def _found(text: str, measures: Sequence[Measure]) -> Objective:
    """The objective with the metrics that were computed."""
    said = written(text)
    fits = [measure for measure in measures if _fits(said, measure)]
    scorers = list(dict.fromkeys(measure.scorer for measure in fits))
    if not fits:
        known = ", ".join(dict.fromkeys(map(_called, measures)))
        raise SpecError(f"{text!r} was not computed; there are: {known}")
    if len(scorers) > 1:
        raise SpecError(f"{text!r} was computed of several scorers; write such as {said['metric']}({scorers[0]})")
    parts = tuple(dict.fromkeys(measure.metric for measure in fits))
    if said["metric"] not in CRITERIA and len(parts) > 1:
        raise SpecError(f"{text!r} was computed in several ways: {'; '.join(part.signature for part in parts)}")
    return Objective(**{**said, "scorer": scorers[0]}, parts=parts)


def _fits(said: Mapping[str, Any], measure: Measure) -> bool:
    if said["scorer"] not in (None, measure.scorer):
        return False
    if said["disparity"] is None:
        return bool(said["metric"] == measure.metric.kind)
    name = measure.criterion or measure.metric.kind
    return bool(name == said["metric"] and said["disparity"] in measure.disparities and said["by"] in measure.by)


def _called(measure: Measure) -> str:
    metric = f"{measure.metric.kind}({measure.scorer})"
    if not measure.disparities:
        return metric
    by = " or ".join(", ".join(each) for each in measure.by)
    return f"{metric}, {measure.criterion or measure.metric.kind} {'|'.join(measure.disparities)} by {by}"


def _rows(aggregation: Aggregation, objective: Objective) -> Iterator[dict[str, Any]]:
    """The rows of its table that tell of an objective."""
    signatures = {part.signature for part in objective.parts}
    table = aggregation.disparities() if objective.disparity else aggregation.table()
    for row in table.to_pylist():
        if row["scorer"] != objective.scorer or row["target"] is not None:
            continue
        if objective.disparity is None:
            if row["signature"] in signatures and not row["by"]:
                yield row
        elif (row["metric"], row["disparity"], tuple(row["over"])) == (
            objective.metric,
            objective.disparity,
            objective.by,
        ):
            yield row
