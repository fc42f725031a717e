"""Comparisons of two evaluations, computed when they are asked for and written nowhere."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.aggregation.score_shards import dataset_of
from evaluand.comparison.changed import describe_other_scorers
from evaluand.comparison.comparing import MOST_GROUPS, Comparison, compare
from evaluand.comparison.gates import check_gates
from evaluand.comparison.kind import COMPARISONS
from evaluand.comparison.measures import declared_measures, definition, resolve_measures
from evaluand.comparison.rule import Gate
from evaluand.comparison.verdict import adjusted_p, adjustment, families_text, is_significant
from evaluand.core.errors import DataError, EvaluandWarning, NotFound, SpecError
from evaluand.core.labels import experiment_of
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.report.commands import format_command
from evaluand.report.contents import read_parts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.gates import list_gates
from evaluand.report.facts.judges import judge_facts
from evaluand.report.html.explanations import explain
from evaluand.report.metric_labels import add_labels, metric_labels
from evaluand.report.page.resources.base import Source, read_number, resource
from evaluand.report.text import SHORT_ID
from evaluand.store.overlay import OverlayStore

_COLUMNS: Final = (
    *("scorer", "label", "target", "direction", "value_a", "value_b", "difference", "low", "high", "p"),
    *("family", "correlation", "variance_saved"),
    *("won", "tied", "lost", "detectable", "n", "n_used", "n_a_missing", "n_b_missing", "n_only_a", "n_only_b"),
    *("clusters", "interval", "test", "verdict", "reason", "binary"),
)
_LONGEST_GATE: Final = 500


@resource("comparison/{id}")
def read_stored(source: Source, id: str) -> Facts:
    """A stored comparison: its name, the evaluations that it compared and are still in the store, and its command."""
    if not source.store.is_sealed(COMPARISONS, id):
        raise NotFound("this comparison is not finished, or not in this store")
    made = source.store.manifest(COMPARISONS, id)
    provenance = made["provenance"]
    compared = zip(provenance["evaluations"], provenance["labels"], strict=True)
    return {
        "name": made.get("name"),
        "created": made.get("created"),
        "tasks": [
            {"evaluation": evaluation, "task": label}
            for evaluation, label in compared
            if source.store.is_sealed(EVALUATIONS, evaluation)
        ],
        "command": format_command("show", id[:SHORT_ID], source.root),
    }


@resource("compare/{a}/{b}")
def read_comparison(source: Source, a: str, b: str) -> Facts:
    """The paired differences of two evaluations, B minus A, with their tasks and the command that computes them.

    Args:
        a: the baseline: an id or a name, as that of a run, whose newest evaluation is taken.
    """
    tasks = [_find_task(source, name) for name in (a, b)]
    comparison = _compare(source, tasks)
    experiments = {experiment_of(task["task"]) for task in tasks}
    return {
        "experiment": experiments.pop() if len(experiments) == 1 else None,
        "tasks": [task | {"task": name} for task, name in zip(tasks, _name_sides(tasks), strict=True)],
        "confidence": comparison.confidence,
        "pairs": [
            {name: pair.get(name) for name in _COLUMNS} | {"p_adjusted": adjusted_p(pair)}
            for pair in add_labels(comparison.pairs)
        ],
        "families": families_text(add_labels(comparison.pairs)),
        "left_out": comparison.left_out,
        "caveats": [*_list_caveats(source, tasks, comparison)],
        "grouped": [label for label, _ in _find_measures(_read_evaluations(source, tasks))],
        "meanings": explain(adjustment(comparison.pairs), "detectable difference"),
        "attributes": _list_attributes(source, tasks),
        "command": format_command("compare", [task["evaluation"][:SHORT_ID] for task in tasks], source.root),
    }


def _list_caveats(source: Source, tasks: list[Facts], comparison: Comparison) -> Iterator[str]:
    """What a reader must know of the differences: early stops, other scorers, unmeasured judges, rows left out."""
    yield from comparison.caveats
    evaluations, names = _read_evaluations(source, tasks), _name_sides(tasks)
    scorers = [pair["scorer"] for pair in comparison.pairs]
    yield from describe_other_scorers(evaluations, names, scorers)
    judged: dict[tuple[str, str], list[str]] = {}
    for judge in judge_facts(dict(zip(names, evaluations, strict=True))):
        if judge["status"] != "measured":
            judged.setdefault((judge["judge"], judge["text"]), []).append(judge["task"])
    for (judge_name, text), its_tasks in judged.items():
        yield f"the judge {judge_name} of {' and '.join(its_tasks)} is {text}"
    for pair in add_labels(comparison.pairs):
        if pair["n_used"] < pair["n"]:
            yield f"{pair['label']} leaves out {pair['n'] - pair['n_used']:,} of {pair['n']:,} rows without a score"


def _find_task(source: Source, name: str) -> Facts:
    """The only task of a name.

    Raises:
        NotFound: it has several tasks, or was not evaluated.
    """
    parts = read_parts(source.store, name)
    if len(parts) != 1:
        hint = f"; name one of them, such as {name}/{parts[0].task}" if parts else ", so nothing can be compared"
        raise NotFound(f"{name!r} has {len(parts)} tasks{hint}")
    part = parts[0]
    if part.evaluation is None:
        raise NotFound(f"{name!r} has not been evaluated, so nothing can be compared")
    return {
        "task": part.task,
        "run": part.run.id,
        "evaluation": part.evaluation.id,
        "dataset": part.run.manifest["spec"]["dataset"],
    }


def _read_evaluations(source: Source, tasks: list[Facts]) -> list[Evaluation]:
    store: Any = OverlayStore(source.store)
    return [Evaluation(store, task["evaluation"]) for task in tasks]


def _name_sides(tasks: list[Facts]) -> list[str]:
    """The names of both sides; of the same name, with the digits of their ids."""
    names = [task["task"] for task in tasks]
    return [f"{task['task']} {task['evaluation'][:SHORT_ID]}" for task in tasks] if names[0] == names[1] else names


def _compare(source: Source, tasks: list[Facts]) -> Comparison:
    key = ("comparison", *(task["evaluation"] for task in tasks), *_name_sides(tasks), source.list_ids(AGGREGATIONS))

    def compute() -> Comparison:
        with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
            return compare(*_read_evaluations(source, tasks), labels=_name_sides(tasks), flips=0)

    return source.contents.get(key, compute)


def _list_attributes(source: Source, tasks: list[Facts]) -> list[str]:
    """The attributes that both datasets have."""
    first, second = (dataset_of(each).roles.attributes for each in _read_evaluations(source, tasks))
    return [name for name in first if name in second]


@resource("compare-groups/{a}/{b}")
def read_group_changes(source: Source, a: str, b: str, query: Mapping[str, str]) -> list[Facts]:
    """The difference in each group of an attribute, the largest loss first, by one of the metrics in `grouped`."""
    tasks = [_find_task(source, name) for name in (a, b)]
    measures = _find_measures(_read_evaluations(source, tasks))
    number = read_number(query.get("metric") or "0", "metric")
    if number >= len(measures):
        return []
    label, measure = measures[number]
    return [_describe_group(pair, label) for pair in _find_changes(source, tasks, measure)]


@resource("compare-worse/{a}/{b}")
def read_worse_groups(source: Source, a: str, b: str) -> Facts:
    """The groups in which B is shown to be worse than A by any metric that does not refuse the scores.

    Returns:
        `groups`, each with the `number` of its metric in `grouped` and `p_adjusted` for all `n_groups` by this metric,
        None where intervals hold at all looks instead; and the number `n` of tests by all metrics.
    """
    tasks = [_find_task(source, name) for name in (a, b)]
    measures = _find_measures(_read_evaluations(source, tasks))
    groups: list[Facts] = []
    n = 0
    for number, (label, measure) in enumerate(measures):
        with suppress(SpecError, DataError):  # which the table of this metric says
            pairs = [pair for pair in _find_changes(source, tasks, measure) if pair["low"] is not None]
            n += len(pairs)
            tested = [_describe_group(pair, label) | {"number": number, "n_groups": len(pairs)} for pair in pairs]
            groups += [group for group in tested if group["shown"] == "worse"]
    return {"groups": sorted(groups, key=lambda group: group["p_adjusted"] or 0), "n": n}


_CONFIDENCE: Final = 0.95


def _find_changes(source: Source, tasks: list[Facts], measure: Measure) -> list[Facts]:
    """The pairs by a metric in all groups, the largest loss first, undefined ones last.

    Raises:
        SpecError: the metric has no differences.
        DataError: the metric refuses the scores.
    """
    sides = _read_evaluations(source, tasks)
    sign = -1 if measure.metric.direction == "lower" else 1

    def compute() -> list[Facts]:
        datasets = [dataset_of(each) for each in sides]
        names = _list_attributes(source, tasks)
        by = [name for name in names if all(each.count_values(name) <= MOST_GROUPS for each in datasets)]
        with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
            pairs = compare(*sides, metrics=measure, by=by, flips=0).pairs
        groups = [pair for pair in pairs if pair["by"]]
        return sorted(groups, key=lambda pair: math.inf if pair["difference"] is None else sign * pair["difference"])

    key = "changes", *(side.id for side in sides), measure.scorer, definition(measure.metric)
    return source.facts.get(key, compute)


def _find_measures(evaluations: list[Evaluation]) -> list[tuple[str, Measure]]:
    """The metrics with a direction, by which groups can be compared, each after its label."""
    with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
        found = resolve_measures(evaluations, None, None, None, declared_measures(evaluations)).compared
    keys = [(each.scorer, definition(each.metric)) for each in found]
    labels = metric_labels([{"scorer": scorer, "signature": signature} for scorer, signature in keys])
    return [(labels[key], each) for key, each in zip(keys, found, strict=True) if each.metric.direction is not None]


def _describe_group(pair: Facts, label: str) -> Facts:
    names = (
        "by",
        "target",
        *("value_a", "value_b", "difference", "low", "high"),
        *("won", "tied", "lost", "n", "n_used"),
    )
    shown = None
    if pair["difference"] and is_significant(pair, _CONFIDENCE):
        shown = "worse" if (pair["difference"] > 0) == (pair["direction"] == "lower") else "better"
    more = {"metric": label, "p_adjusted": pair["p_holm"], "shown": shown}
    return {name: pair[name] for name in (*names, "reason")} | more


@resource("gate/{a}/{b}")
def read_gate(source: Source, a: str, b: str, query: Mapping[str, str]) -> Facts:
    """The result of a gate on B with A as the baseline, and the command that checks it."""
    text = query.get("gate", "")
    if not text.strip() or len(text) > _LONGEST_GATE:
        raise SpecError("write a gate such as accuracy not worse than baseline by 0.02")
    tasks = [_find_task(source, name) for name in (a, b)]
    evaluations = _read_evaluations(source, tasks)
    names = _name_sides(tasks)
    gate = Gate.parse(text)
    with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
        sides, measures = dict(zip(names, evaluations, strict=True)), declared_measures(evaluations)
        results = check_gates([gate], sides, names[0], measures=measures)
    ids = [task["evaluation"][:SHORT_ID] for task in tasks]
    return {
        "results": list_gates(results),
        "command": format_command("compare", [*ids, "--gate", text], source.root),
    }
