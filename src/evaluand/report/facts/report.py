"""All facts of an HTML report except its examples."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evaluand._version import __version__
from evaluand.core.errors import NotFound
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.text import add_labels
from evaluand.run.excerpts import to_json

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run
    from evaluand.store.store import Manifest


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
) -> Facts:
    """Everything in a report except the examples: values, missing rows, histograms of scores, and provenance.

    Args:
        metrics: as `metrics_facts` returns them, with the names of these tasks.
        commands: action → the command line for it.
        folder: where to run the commands.
        curves: as `curves_facts` returns them.
        disparities: as `disparities_facts` returns them.
    """
    return {
        "title": title,
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "evaluand": __version__,
        "tasks": [
            {
                "task": part.task,
                "run": _artifact_facts(part.run.manifest),
                "evaluation": None if part.evaluation is None else _artifact_facts(part.evaluation.manifest),
                "dataset": _find_dataset(part.run),
                "missing": missing_facts(part.run, part.evaluation),
                "ungraded": {} if part.evaluation is None else _count_ungraded_calls(part.evaluation),
            }
            for part in parts
        ],
        "metrics": add_labels(metrics),
        "curves": list(curves),
        "disparities": list(disparities),
        "scores": scores_facts(parts),
        "commands": dict(commands or {}),
        "folder": folder,
    }


def scores_facts(parts: Sequence[Part]) -> list[Facts]:
    """The distribution of each scorer's values, by task: number, range, and a histogram whose edges the tasks share.

    `binary`: every value of the scorer is 0 or 1, so 0 is wrong; there is no histogram then, since the mean says
    everything. `unit`: every value lies between 0 and 1, so lower is worse.
    """
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
        spread = low / _BINS < high / _BINS and not kind["binary"]
        for (task, evaluation), seen in zip(graded, ranges, strict=True):
            edges, counts = _count_histogram(evaluation, scorer, low, high) if spread else (None, None)
            found.append({"task": task, "scorer": scorer} | seen | kind | {"edges": edges, "counts": counts})
    return found


def _artifact_facts(manifest: Manifest) -> Facts:
    """The part of a manifest that says how an artifact was made."""
    names = ("id", "digest", "name", "counts", "created", "sealed", "attempt", "pinned", "spec", "provenance")
    return {name: manifest.get(name) for name in names}


def _find_dataset(run: Run) -> Facts:
    id = run.manifest["spec"]["dataset"]
    try:
        manifest = run.store.manifest("datasets", id)
    except NotFound:
        return {"id": id, "name": None, "digest": None, "counts": None, "source": None, "roles": None}
    made = {name: manifest.get(name) for name in ("id", "name", "digest", "counts")}
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


def _count_histogram(evaluation: Evaluation, scorer: str, low: float, high: float) -> tuple[list[float], list[int]]:
    """The edges of a histogram and the counts between them; the last interval includes its upper edge."""
    width = high / _BINS - low / _BINS
    edges = [low + width * i for i in range(_BINS)] + [high]
    counts = [0] * _BINS
    for values in _iterate_values(evaluation, scorer):
        places = ((values / _BINS - low / _BINS) / width * _BINS).astype("int64").clip(0, _BINS - 1)
        for place, count in Counter(places.tolist()).items():
            counts[place] += count
    return edges, counts


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


_BINS = 20
