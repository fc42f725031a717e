"""The ranges of the values behind a gate: what the scorer knows, and a refusal where a bound lacks one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from evaluand.aggregation.aggregator import Measure, shared_ranges, with_ranges
from evaluand.comparison.anytime import check_anytime
from evaluand.comparison.rule import Gate, quote_word
from evaluand.core.errors import SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric


def find_ranges(metrics: Sequence[Metric], scorer: str, evaluations: Sequence[Evaluation]) -> list[Metric]:
    """The metrics with the range that their scorer knows, unless they declare one."""
    measures = with_ranges([Measure(scorer, metric) for metric in metrics], shared_ranges(evaluations))
    return [measure.metric for measure in measures]


def check_ranges(gate: Gate, scorer: str, metrics: Sequence[Metric]) -> None:
    """Refuses a bound of values that could have a range and have none: rare values, not seen yet, could be anywhere."""
    if gate.anytime:
        check_anytime(gate.text, metrics[0])
    if gate.level is None:
        return
    for metric in metrics:
        can_have = any(field.name == "range" for field in dataclasses.fields(metric))
        if can_have and metric.range == (-math.inf, math.inf):
            sign = "<=" if metric.direction == "lower" else ">="
            points = f"compare the values themselves: `{gate.metric} {sign} {quote_word(str(gate.baseline))}`"
            lower = ", direction: lower" if metric.direction == "lower" else ""
            instead = points if gate.baseline is not None else "leave out `at …`"
            raise SpecError(
                f"gate {gate.text!r}: no bound holds at a level without the lowest and the highest possible value;"
                f" declare them under metrics of the experiment: {{kind: {metric.kind}, scorer: {scorer}{lower},"
                f" range: [0, 10]}}, or {instead}"
            )
