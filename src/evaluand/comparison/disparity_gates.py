"""Gates on disparities: of one system, and how far it differs from that of a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from evaluand.aggregation.aggregator import Measure, compute_measures
from evaluand.aggregation.group_rules import GroupRules, read_rules
from evaluand.aggregation.groups import group_text
from evaluand.aggregation.score_shards import dataset_of, is_repeated, shards
from evaluand.comparison.disparity_differences import better_disparity, disparity_differences
from evaluand.comparison.gate_checks import at_level, check_attributes
from evaluand.comparison.gate_outcome import (
    Outcome,
    format_bound_name,
    format_counts,
    format_target,
    judge_difference,
    name_counts,
)
from evaluand.comparison.gate_result import bound_facts
from evaluand.comparison.rule import LEVEL, RELATIONS, Gate
from evaluand.core.errors import SpecError
from evaluand.core.files.json import none_if_nan
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.disparity import AT_MOST, Kind


def declared_smallest(gate: Gate, scorer: str, metrics: Sequence[Metric], measures: Sequence[Measure]) -> int:
    """The fewest rows that a group must rest on, as the metric or criterion declares it for these groups."""
    kinds = {metric.kind for metric in metrics}
    declared = [
        each.rules.smallest
        for each in measures
        if each.rules and each.scorer == scorer and gate.by in each.by
        if each.criterion == gate.metric or (each.criterion is None and each.metric.kind in kinds)
    ]
    return max(declared, default=0)


def check_disparities(
    gate: Gate, evaluation: Evaluation, scorer: str, metrics: Sequence[Metric], smallest: int
) -> Iterator[Outcome]:
    """Compares a disparity with a threshold, by target."""
    dataset = dataset_of(evaluation)
    check_attributes(gate, dataset.roles.attributes)
    kind: Kind = gate.disparity  # type: ignore[assignment]
    # the end whose errors are more frequent
    nearer = kind.startswith("difference" if gate.relation in (">=", ">") else "ratio")
    chosen = metrics if gate.level is None else [at_level(gate, one, AT_MOST if nearer else 0.5) for one in metrics]
    rules = _group_rules(gate, smallest)
    measures = [Measure(scorer, metric, (gate.by,), (kind,), gate.metric, rules=rules) for metric in chosen]
    found = compute_measures(
        measures, partial(shards, evaluation, dataset), repeated=is_repeated(evaluation), drawn=False
    )
    overall = {row.target: row for _, row in found.values if not row.by}
    for _, row in found.disparities:
        if bool(row.other) != bool(gate.other) or row.given != (dict.fromkeys(gate.given) or None):
            continue
        end = None if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
        number = row.value if end is None else getattr(row, end)
        facts = {name: none_if_nan(getattr(row, name)) for name in ("target", "value", "low", "high", "n_groups")}
        facts |= {"lowest": row.lowest, "highest": row.highest} | bound_facts(end, number)
        counts = format_counts(overall[row.target])
        if math.isnan(number):
            yield Outcome(False, f"undefined: {row.reason or 'it is undefined'}; {counts}", facts, is_decided=False)
            continue
        groups = f"from {group_text(row.lowest)} to {group_text(row.highest)}; " if row.lowest and row.highest else ""
        about = "about " if end else ""
        shown = f"{format_bound_name(end, gate.level)}{about}{format_target(row.target)}{number:.4g}; {groups}{counts}"
        shown += _name_small(row.small, row.unjudged)
        yield Outcome(RELATIONS[gate.relation](number, gate.number), shown, facts, rows=overall[row.target])


def check_disparity_differences(
    gate: Gate, sides: Sequence[Evaluation], scorer: str, metrics: Sequence[Metric], smallest: int, is_same: bool
) -> Iterator[Outcome]:
    """Compares the difference of a disparity from that of the baseline with a margin, by target."""
    level = gate.level or LEVEL
    better, kind = better_disparity(str(gate.disparity)), cast("Kind", gate.disparity)
    for each in disparity_differences(sides, scorer, metrics, kind, gate.by, smallest):
        found = judge_difference(gate, each.sample, each.target, better, level, is_same, name_counts(each.counts))
        yield found._replace(message=found.message + _name_small(each.small, each.unjudged))


def _name_small(small: Sequence[Mapping[str, Any]], unjudged: Sequence[Mapping[str, Any]]) -> str:
    """The groups with few rows, and those with too few to be judged, at the end of a message."""
    named = (("few rows", small), ("too few rows, so not judged", unjudged))
    return "".join(f"; {what}: {' | '.join(map(group_text, groups))}" for what, groups in named if groups)


def _group_rules(gate: Gate, smallest: int) -> GroupRules | None:
    """The groups that a gate compares; None for the two that differ most."""
    pairs = [[[*gate.reference], [*gate.other]]] if gate.other else []
    reference = None if gate.other else [*gate.reference] or None
    try:
        return read_rules((gate.by,), reference=reference, pairs=pairs, given=gate.given, smallest=smallest)
    except SpecError as error:
        raise SpecError(f"gate {gate.text!r}: {error}") from None
