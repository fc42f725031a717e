"""Facts about the results of an experiment: receipts, values and missing rows, comparisons and trade-offs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from evaluand.core.files.json import none_if_nan
from evaluand.report.facts.aggregation import summary_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.text import add_labels

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Aggregation
    from evaluand.comparison.comparing import Comparison
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run
    from evaluand.store.store import Store
    from evaluand.tradeoff import Tradeoff


class TaskResult(Protocol):
    """The results of an experiment for one task."""

    @property
    def task(self) -> str: ...
    @property
    def run(self) -> Run: ...
    @property
    def evaluation(self) -> Evaluation: ...


def results_facts(tasks: Sequence[TaskResult], aggregation: Aggregation) -> Facts:
    """The results of an experiment: the receipt of each step, every value, and why rows are missing."""
    return {
        "tasks": [
            {
                "task": result.task,
                "run": _step_facts(result.run),
                "evaluation": _step_facts(result.evaluation),
                "missing": missing_facts(result.run, result.evaluation),
            }
            for result in tasks
        ],
        "aggregation": {"id": aggregation.id, "digest": aggregation.digest, "name": aggregation.manifest["name"]},
        **summary_facts(aggregation),
    }


def _step_facts(made: Run | Evaluation) -> Facts:
    return {
        "id": made.id,
        "digest": made.digest,
        "name": made.name,
        "counts": made.counts,
        "receipt": None if made.receipt is None else asdict(made.receipt),
    }


_COLUMNS = ("difference", "low", "high", "won", "lost", "verdict", "clusters", "clustered_by")


def comparison_facts(store: Store, evaluations: Mapping[str, Evaluation]) -> list[Facts] | None:
    """Every two tasks by every metric, as `write_report` takes them.

    Args:
        evaluations: task → its evaluation.

    Returns:
        None where no stored comparison has exactly these evaluations.
    """
    comparison = _find_comparison(store, evaluations)
    if comparison is None:
        return None
    tasks = _name_sides(comparison, evaluations)
    stored = comparison.to_dict()
    return [
        {
            "a": tasks[pair["a"]],
            "b": tasks[pair["b"]],
            "metric": " · ".join(str(part) for part in (pair["label"], pair["target"]) if part),
            "direction": pair["direction"],
            **{name: pair[name] for name in _COLUMNS},
            "p": pair["p_holm"],
            "n": pair["n_used"],
            "flips": [{"id": f["id"], "index": f["index_b"]} for f in stored["flips"] if f["pair"] == number],
        }
        for number, pair in enumerate(add_labels(stored["pairs"]))
    ]


def _find_comparison(store: Store, evaluations: Mapping[str, Evaluation]) -> Comparison | None:
    """The stored comparison of exactly these evaluations; of several the one with most examples, then the newest."""
    from evaluand.comparison.comparing import Comparison  # on use: `evaluand list` does without Arrow

    digests = Counter(evaluation.digest for evaluation in evaluations.values())
    sealed = (
        store.manifest("comparisons", id) for id in store.ids("comparisons") if store.is_sealed("comparisons", id)
    )
    suiting = [manifest for manifest in sealed if Counter(manifest["spec"]["evaluations"]) == digests]
    if not suiting:
        return None
    best = max(suiting, key=lambda manifest: (manifest["spec"]["flips"], str(manifest["created"])))
    return Comparison(store, best["id"])


def _name_sides(comparison: Comparison, evaluations: Mapping[str, Evaluation]) -> list[str]:
    """The task of each side of a comparison; tasks that share an evaluation are named in their order."""
    tasks: dict[str, list[str]] = {}
    for task, evaluation in evaluations.items():
        tasks.setdefault(evaluation.digest, []).append(task)
    return [tasks[digest].pop(0) for digest in comparison.manifest["spec"]["evaluations"]]


def tradeoffs_facts(aggregation: Aggregation) -> list[Facts]:
    """The trade-offs of an experiment: their points (of points at thresholds only the front), or why there are none."""
    from evaluand.tradeoff.results import stored_results  # on use: `evaluand list` does without Arrow

    return [
        {"name": one.name, "objectives": list(one.objectives), "reason": one.reason}
        | (
            {}
            if one.points is None
            else {"notes": list(one.points.notes), "of": len(one.points), "points": _list_points(one.points)}
        )
        for one in stored_results(aggregation)
    ]


def point_facts(points: Tradeoff, place: int) -> Facts:
    """A point: its model or variant, its threshold where it has one, and its values with their intervals."""
    threshold, ends = float(points.threshold[place]), points.ends
    columns = {"value": points.value} | ({} if ends is None else {"low": ends.low, "high": ends.high})
    return {
        "model": points.models[points.model[place]],
        "threshold": None if math.isnan(threshold) else threshold,
        "trivial": bool(points.trivial[place]),
        "values": {
            one.name: {name: none_if_nan(float(end[place, i])) for name, end in columns.items()}
            for i, one in enumerate(points.objectives)
        },
    }


def _list_points(points: Tradeoff) -> list[Facts]:
    best = points.on_front
    return [
        point_facts(points, place) | {"front": bool(best[place])}
        for place in range(len(points))
        if best[place] or math.isnan(points.threshold[place])
    ]
