"""Facts about the results of an experiment: receipts, comparisons, trade-offs, and all of a page but examples."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from evaluand._version import __version__
from evaluand.comparison.verdict import adjusted_p
from evaluand.core.errors import NotFound
from evaluand.core.files.json import none_if_nan
from evaluand.data.kind import DATASETS
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.report.facts.aggregation import summary_facts
from evaluand.report.facts.base import Facts, usage_facts
from evaluand.report.facts.headlines import headlines
from evaluand.report.facts.judges import card_facts, judge_facts, rubric_changes, rubric_facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.facts.unread import unread_facts
from evaluand.report.metric_labels import add_labels, distinct_values
from evaluand.report.usage import command_usage
from evaluand.run.excerpts import to_json
from evaluand.run.kind import RUNS
from evaluand.store.store import caveats

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Aggregation
    from evaluand.comparison.comparing import Comparison
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run
    from evaluand.tradeoff import Tradeoff


@dataclass(frozen=True)
class Part:
    """One task of a report: its run, and its evaluation or None."""

    task: str
    run: Run
    evaluation: Evaluation | None


def report_facts(
    title: str,
    parts: Sequence[Part],
    metrics: Sequence[Facts],
    commands: Mapping[str, str] | None = None,
    folder: str | None = None,
    *,
    curves: Sequence[Facts] = (),
    disparities: Sequence[Facts] = (),
    worst_groups: Sequence[Facts] = (),
    distributions: bool = True,
) -> Facts:
    """Everything in a report except the examples: values, missing rows, histograms of scores, and provenance.

    Args:
        metrics: as `metrics_facts` returns them, with the names of these tasks.
        commands: action → the command line for it.
        folder: where to run the commands.
        curves: as `curves_facts` returns them.
        disparities: as `disparities_facts` returns them.
        worst_groups: as `worst_groups_facts` returns them.
        distributions: whether to read those of all scores, which takes longest.
    """
    made = [(EVALUATIONS, part.evaluation.id) if part.evaluation else (RUNS, part.run.id) for part in parts]
    return {
        "title": title,
        "caveats": caveats(parts[0].run.store, made) if parts else [],
        "unread": [fact for part in parts for fact in unread_facts(part.run, part.evaluation, part.task)],
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "evaluand": __version__,
        "tasks": [
            {
                "task": part.task,
                "run": _artifact_facts(part.run),
                "evaluation": None if part.evaluation is None else _artifact_facts(part.evaluation),
                "dataset": _find_dataset(part.run),
                "missing": missing_facts(part.run, part.evaluation),
                "ungraded": {} if part.evaluation is None else _count_ungraded_calls(part.evaluation),
            }
            for part in parts
        ],
        "metrics": add_labels(distinct_values(metrics)),
        "curves": list(curves),
        "disparities": list(disparities),
        "worst_groups": list(worst_groups),
        "scores": scores_facts(parts) if distributions else [],
        **_judges_and_cards(parts),
        "commands": dict(commands or {}),
        "folder": folder,
    }


def _judges_and_cards(parts: Sequence[Part]) -> Facts:
    """The judges of a report, their rubrics, and the cards of those that were measured."""
    evaluated = {part.task: part.evaluation for part in parts if part.evaluation is not None}
    judges = judge_facts(evaluated)
    stores = [evaluation.store for evaluation in evaluated.values()]
    manifests = [evaluation.manifest for evaluation in evaluated.values()]
    return {
        "judges": judges,
        "cards": card_facts(stores[0], judges) if judges else [],
        "rubrics": rubric_facts(manifests),
        "rubric_changes": rubric_changes(manifests),
    }


def scores_facts(parts: Sequence[Part]) -> list[Facts]:
    """The distribution of each scorer's values, by task: number, range, and a histogram whose edges the tasks share.

    `binary`: every value of the scorer is 0 or 1; there is no histogram then, since the mean says everything.
    `unit`: every value lies between 0 and 1, so lower is worse.
    """
    from evaluand.report.histograms import count_together  # on use: `evaluand list` does without NumPy

    found = []
    for scorer in dict.fromkeys(s for part in parts if part.evaluation for s in part.evaluation.scorers):
        graded = [(p.task, p.evaluation) for p in parts if p.evaluation and scorer in p.evaluation.scorers]
        ranges = [_measure_range(evaluation, scorer) for _, evaluation in graded]
        low = min((r["low"] for r in ranges if r["n"]), default=0.0)
        high = max((r["high"] for r in ranges if r["n"]), default=0.0)
        scored = any(r["n"] for r in ranges)
        kind = {
            "binary": scored and all(r["binary"] for r in ranges),
            "unit": scored and low >= 0 and high <= 1,
        }
        values = [() if kind["binary"] else _iterate_values(evaluation, scorer) for _, evaluation in graded]
        edges, counted = count_together(values)
        for (task, _), seen, counts in zip(graded, ranges, counted, strict=True):
            found.append({"task": task, "scorer": scorer} | seen | kind | {"edges": edges, "counts": counts})
    return found


def _artifact_facts(made: Run | Evaluation) -> Facts:
    """The part of a manifest that says how an artifact was made, and the name by which it was found."""
    names = ("id", "digest", "counts", "created", "sealed", "attempt", "pinned", "spec", "provenance")
    return {name: made.manifest.get(name) for name in names} | {"name": made.name} | usage_facts(made.manifest)


def _find_dataset(run: Run) -> Facts:
    id = run.manifest["spec"]["dataset"]
    try:
        manifest = run.store.manifest(DATASETS, id)
    except NotFound:
        return {"id": id, "name": None, "digest": None, "counts": None, "source": None, "roles": None}
    made = {name: manifest.get(name) for name in ("id", "name", "digest", "counts")}
    if run.called and (named := run.store.about(run.called, RUNS).get("dataset")):
        made["name"] = named
    source = (manifest.get("provenance") or {}).get("source")
    return made | {"source": source, "roles": to_json(manifest["spec"]["roles"])}


def _measure_range(evaluation: Evaluation, scorer: str) -> Facts:
    seen: Facts = {"n": 0, "low": None, "high": None, "binary": True}
    for values in _iterate_values(evaluation, scorer):
        if not len(values):
            continue
        low, high = float(values.min()), float(values.max())
        seen["low"] = low if seen["low"] is None else min(low, seen["low"])
        seen["high"] = high if seen["high"] is None else max(high, seen["high"])
        seen["n"] += len(values)
        seen["binary"] = seen["binary"] and bool(((values == 0) | (values == 1)).all())
    return seen


def _iterate_values(evaluation: Evaluation, scorer: str) -> Iterator[Any]:
    for batch in evaluation.batches(scorer, ["value"]):
        yield batch.column("value").drop_null().to_numpy(zero_copy_only=False)


def _count_ungraded_calls(evaluation: Evaluation) -> dict[str, Counter[str]]:
    """By scorer, the number of calls in which it failed on an answer or abstained from one."""
    found = {}
    for scorer in evaluation.scorers:
        rows = evaluation.batches(scorer, ["_index_", "replication", "status", "reason"])
        keys = {
            (*key, status)
            for batch in (() if set(evaluation.counts[scorer]) <= {"scored"} else rows)
            for *key, status, reason in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            if status in ("failed", "abstained") and not (reason or "").startswith("task: ")
        }
        found[scorer] = Counter(status for *_, status in keys)
    return found


class TaskResult(Protocol):
    """The results of an experiment for one task."""

    @property
    def task(self) -> str: ...
    @property
    def run(self) -> Run: ...
    @property
    def evaluation(self) -> Evaluation | None: ...


def results_facts(
    tasks: Sequence[TaskResult],
    aggregation: Aggregation | None,
    matches: Sequence[Facts] = (),
    comparison: Comparison | None = None,
) -> Facts:
    """The results of an experiment: the receipt of each step, every value, and why rows are missing.

    `usage` is what the steps have used now; that of a step is what its rows have used, whenever they were made.

    Args:
        aggregation: None where responses are compared and not graded.
        matches: as `matches_facts` returns them.
        comparison: of the evaluations of the tasks, from which `headlines` are made.
    """
    steps: list[Facts] = [
        {
            "task": result.task,
            "run": _step_facts(result.run),
            "evaluation": None if result.evaluation is None else _step_facts(result.evaluation),
            "missing": missing_facts(result.run, result.evaluation),
        }
        for result in tasks
    ]
    made = [*(step[name] for step in steps for name in ("run", "evaluation")), *matches]
    evaluations = {each.task: each.evaluation for each in tasks if each.evaluation is not None}
    judges = judge_facts(evaluations)
    tables = ("metrics", "disparities", "worst_groups", "curves")
    summary = {name: [] for name in tables} if aggregation is None else summary_facts(aggregation)
    artifacts = [each.evaluation or each.run for each in tasks]
    return {
        "tasks": steps,
        "caveats": caveats(artifacts[0].store, [(made.kind, made.id) for made in artifacts]) if artifacts else [],
        "unread": [fact for each in tasks for fact in unread_facts(each.run, each.evaluation, each.task)],
        "usage": command_usage(made).to_dict(),
        "matches": list(matches),
        "judges": judges,
        "aggregation": None if aggregation is None else _aggregation_head(aggregation),
        **summary,
        "headlines": headline_facts(comparison, [*evaluations], summary["metrics"], judges),
    }


def headline_facts(
    comparison: Comparison | None, systems: Sequence[str], metrics: Sequence[Facts], judges: Sequence[Facts]
) -> list[str]:
    """The headlines of a comparison; see `headlines`."""
    if comparison is None:
        return []
    tables = {"pairs": comparison.pairs, "ranking": comparison.ranking, "confidence": comparison.confidence}
    return headlines(tables, systems, metrics, judges)


def _aggregation_head(aggregation: Aggregation) -> Facts:
    return {"id": aggregation.id, "digest": aggregation.digest, "name": aggregation.name}


def _step_facts(made: Run | Evaluation) -> Facts:
    return {
        "id": made.id,
        "digest": made.digest,
        "name": made.name,
        "counts": made.counts,
        "receipt": None if made.receipt is None else asdict(made.receipt),
    } | usage_facts(made.manifest, getattr(made, "price", None))


_COLUMNS = (
    *("difference", "low", "high", "interval", "won", "lost", "verdict", "clusters", "clustered_by"),
    *("family", "scorer", "signature", "label"),
)


def comparison_facts(comparison: Comparison, tasks: Sequence[str]) -> list[Facts]:
    """Every two tasks by every metric.

    Args:
        tasks: the names of the evaluations compared.
    """
    stored = comparison.to_dict()
    return [
        {
            "a": tasks[pair["a"]],
            "b": tasks[pair["b"]],
            "metric": " · ".join(str(part) for part in (pair["label"], pair["target"]) if part),
            "direction": pair["direction"],
            **{name: pair[name] for name in _COLUMNS},
            "p": adjusted_p(pair),
            "p_shaffer": pair["p_shaffer"],
            "n": pair["n_used"],
            "flips": [{"id": f["id"], "index": f["index_b"]} for f in stored["flips"] if f["pair"] == number],
        }
        for number, pair in enumerate(add_labels(stored["pairs"]))
    ]


def name_sides(comparison: Comparison, evaluations: Mapping[str, Evaluation]) -> list[str]:
    """The task of each side of a comparison; tasks that share an evaluation are named in their order."""
    tasks: dict[str, list[str]] = {}
    for task, evaluation in evaluations.items():
        tasks.setdefault(evaluation.id, []).append(task)
    return [tasks[id].pop(0) for id in comparison.evaluations]


def tradeoffs_facts(aggregation: Aggregation) -> list[Facts]:
    """The trade-offs of an experiment: their points (of points at thresholds only the front), or why there are none."""
    from evaluand.tradeoff.trade import stored_results  # on use: `evaluand list` does without Arrow

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
