"""What is stored, as plain facts: JSON-like, complete, and what every form of a report is made from."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from evaluand._version import __version__
from evaluand.core.errors import NotFound, SpecError
from evaluand.core.registry import nearest
from evaluand.report.text import SHORT_ID, labelled
from evaluand.run.excerpts import answers, asked, examples_at, plain

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.aggregation.aggregator import Aggregation, Measure
    from evaluand.data.dataset import Dataset
    from evaluand.engine.keyed_work import Receipt
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.metrics.base.metric import Metric
    from evaluand.report.lineage import Lineage
    from evaluand.run.runner import Run
    from evaluand.store.store import Manifest, Ref, Store
    from evaluand.tradeoff import Tradeoff

Facts = dict[str, Any]

_KINDS_OF_REASONS = 1000
_BINS = 20
_GRADED = ("_index_", "replication", "_response_index_", "target", "status", "value")
_STATUSES = ("scored", "failed", "abstained", "skipped")
_POINT = ("x", "y", "low", "high", "threshold", "n", "label")


class TaskResult(Protocol):
    """What an experiment came to for one task."""

    @property
    def task(self) -> str: ...
    @property
    def run(self) -> Run: ...
    @property
    def evaluation(self) -> Evaluation: ...


@dataclass(frozen=True)
class Part:
    """One task of a report: its run and what graded it, or None where nothing did."""

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
    """All that a report says but the examples: values, why rows are missing, how scores lie, and where all came from.

    Args:
        metrics: as `metrics_facts` gives them, by the tasks' names here.
        commands: what the reader can do → the command line for it.
        folder: where these are to be run.
        curves: as `curves_facts` gives them, and so on.
        disparities: as `disparities_facts` gives them.
    """
    return {
        "title": title,
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "evaluand": __version__,
        "tasks": [
            {
                "task": part.task,
                "run": _made(part.run.manifest),
                "evaluation": None if part.evaluation is None else _made(part.evaluation.manifest),
                "dataset": _dataset_of(part.run),
                "missing": missing_facts(part.run, part.evaluation),
                "ungraded": {} if part.evaluation is None else _ungraded_calls(part.evaluation),
            }
            for part in parts
        ],
        "metrics": labelled(metrics),
        "curves": list(curves),
        "disparities": list(disparities),
        "scores": scores_facts(parts),
        "commands": dict(commands or {}),
        "folder": folder,
    }


def scores_facts(parts: Sequence[Part]) -> list[Facts]:
    """How the values of each scorer lie, by task: number, range, and counts between edges that the tasks share.

    `binary` tells whether every value of the scorer is 0 or 1, so that 0 is wrong; there are no edges then, since the
    mean says everything. `unit` tells whether every value lies between 0 and 1, so that lower is worse.
    """
    found = []
    for scorer in dict.fromkeys(s for part in parts if part.evaluation for s in part.evaluation.scorers):
        graded = [(p.task, p.evaluation) for p in parts if p.evaluation and scorer in p.evaluation.scorers]
        ranges = [_range(evaluation, scorer) for _, evaluation in graded]
        low = min((r["low"] for r in ranges if r["n"]), default=0.0)
        high = max((r["high"] for r in ranges if r["n"]), default=0.0)
        scored = any(r["n"] for r in ranges)
        kind = {
            "binary": scored and all(r["binary"] for r in ranges),
            "unit": scored and low >= 0 and high <= 1,
        }
        spread = low / _BINS < high / _BINS and not kind["binary"]
        for (task, evaluation), seen in zip(graded, ranges, strict=True):
            edges, counts = _histogram(evaluation, scorer, low, high) if spread else (None, None)
            found.append({"task": task, "scorer": scorer} | seen | kind | {"edges": edges, "counts": counts})
    return found


def results_facts(tasks: Sequence[TaskResult], aggregation: Aggregation) -> Facts:
    """What an experiment came to: what each step had to do, every value, and why rows are missing."""
    return {
        "tasks": [
            {
                "task": result.task,
                "run": _step(result.run),
                "evaluation": _step(result.evaluation),
                "missing": missing_facts(result.run, result.evaluation),
            }
            for result in tasks
        ],
        "aggregation": {"id": aggregation.id, "digest": aggregation.digest, "name": aggregation.manifest["name"]},
        **summary_facts(aggregation),
    }


def summary_facts(aggregation: Aggregation) -> dict[str, list[Facts]]:
    """The tables of an aggregation, as `report_facts` takes them."""
    tables = {"metrics": metrics_facts, "disparities": disparities_facts, "curves": curves_facts}
    return {name: table(aggregation) for name, table in tables.items()}


def metrics_facts(aggregation: Aggregation) -> list[Facts]:
    """Every value of an aggregation, with what its evaluation and metric are called and what its interval rests on."""
    tasks = aggregation.labels
    columns = [_cluster_column(aggregation.store, id) for id in aggregation.manifest["spec"]["datasets"]]
    found = []
    for row in aggregation.table().to_pylist():
        number, data = row.pop("evaluation"), None if row["data"] is None else orjson.loads(row["data"])
        beside = {"by": dict(row["by"]), "data": data} | clustering(data, columns[number], row["n_scored"])
        found.append({"task": tasks[number]} | row | beside)
    return labelled(found)


def disparities_facts(aggregation: Aggregation) -> list[Facts]:
    """Every disparity of an aggregation, beside what its evaluation is called."""
    found = []
    for row in aggregation.disparities().to_pylist():
        task = aggregation.labels[row.pop("evaluation")]
        groups = {name: None if row[name] is None else dict(row[name]) for name in ("lowest", "highest")}
        lists = {name: [dict(group) for group in row[name]] for name in ("small", "undefined")}
        found.append({"task": task} | row | groups | lists)
    return found


def curves_facts(aggregation: Aggregation) -> list[Facts]:
    """What there is to draw of an aggregation: curve by curve and part by part, its points as columns."""
    found: dict[tuple[Any, ...], Facts] = {}
    tasks = aggregation.labels
    for row in aggregation.curves().to_pylist():
        task, by = tasks[row.pop("evaluation")], dict(row.pop("by"))
        points = {name: row.pop(name) for name in _POINT}
        key = (task, *row.values(), *by.items())
        held = found.setdefault(key, {"task": task} | row | {"by": by, "points": {name: [] for name in _POINT}})
        for name, value in points.items():
            held["points"][name].append(value)
    return list(found.values())


def tradeoffs_facts(aggregation: Aggregation) -> list[Facts]:
    """The trade-offs that an experiment asked for: their points, of those at thresholds only the front; or the reason
    why there are none.
    """
    from evaluand.tradeoff.evaluations import tradeoffs_of  # on use: `evaluand list` does without Arrow

    return [
        {"name": trade.name, "objectives": list(trade.objectives)}
        | (
            {"reason": points}
            if isinstance(points, str)
            else {"reason": None, "notes": list(points.notes), "of": len(points), "points": _listed(points)}
        )
        for trade, points in tradeoffs_of(aggregation)
    ]


def point_facts(points: Tradeoff, place: int) -> Facts:
    """A point: its model or variant, its threshold where it has one, and its values with their intervals."""
    threshold, ends = float(points.threshold[place]), points.ends
    told = {"value": points.value} | ({} if ends is None else {"low": ends.low, "high": ends.high})
    return {
        "model": points.models[points.model[place]],
        "threshold": None if math.isnan(threshold) else threshold,
        "trivial": bool(points.trivial[place]),
        "values": {
            one.name: {name: _known(float(end[place, i])) for name, end in told.items()}
            for i, one in enumerate(points.objectives)
        },
    }


def _listed(points: Tradeoff) -> list[Facts]:
    best = points.on_front
    return [
        point_facts(points, place) | {"front": bool(best[place])}
        for place in range(len(points))
        if best[place] or math.isnan(points.threshold[place])
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def matrix_of(rows: Sequence[Facts]) -> tuple[list[str | None], list[list[float]]]:
    """The classes of a confusion matrix in order, and how often each truth met each prediction.

    Args:
        rows: the curves of one matrix, as `curves_facts` gives them; the class that stands for all others is None.
    """
    places: dict[str | None, float] = {}
    for row in rows:
        places |= dict(zip(row["points"]["label"], row["points"]["x"], strict=True))
    classes = sorted(places, key=lambda label: places[label])
    cells = {
        (row["part"], label): n
        for row in rows
        for label, n in zip(row["points"]["label"], row["points"]["n"], strict=True)
    }
    return classes, [[cells.get((truth, label), 0.0) for label in classes] for truth in classes]


def _cluster_column(store: Store, dataset: str) -> str | None:
    try:
        return plain(store.manifest("datasets", dataset)["spec"]["roles"]).get("cluster")  # type: ignore[no-any-return]
    except NotFound:
        return None


def clustering(data: Mapping[str, Any] | None, declared: str | None, n: int) -> Facts:
    """`clusters`, how many independent observations an interval rests on where these are not the rows, and
    `clustered_by`, the column that tells them; None where they are examples with several rows.
    """
    told = data or {}
    used = "clusters" in told and (declared is not None or told["clusters"] < n)
    return (
        {"clusters": told["clusters"], "clustered_by": declared} if used else {"clusters": None, "clustered_by": None}
    )


def missing_facts(run: Run | None, evaluation: Evaluation | None) -> list[Facts]:
    """Why rows failed or were abstained from, most frequent first; a failed call is told once, not by each scorer."""
    found: list[Facts] = [] if run is None else [{"scorer": None} | reason for reason in _failures(run)]
    for scorer in [] if evaluation is None else evaluation.scorers:
        reasons = _reasons(_ungraded(evaluation, scorer)) if evaluation else []
        found += [
            {"scorer": scorer} | reason
            for reason in reasons
            if run is None or not reason["reason"].startswith(("task: ", "the task was not asked"))
        ]
    return found


def run_facts(run: Run, examples: int = 0, *, failed: bool = False, index: int | None = None) -> Facts:
    """A run: why calls failed, and the first rows, failed ones first.

    Args:
        examples: how many rows.
        failed: only failed ones.
        index: only those of the example with this `_index_`.

    Raises:
        SpecError: no example has this `_index_`.
    """
    if index is None:
        chosen = _chosen(run.batches(), run.counts, "completed", examples, failed)
    else:
        chosen = list(_rows_of(run, index))
        if not chosen:
            raise SpecError(f"run {run.id[:SHORT_ID]} has no _index_ {index}; {_indices(run)}")
    return {"missing": missing_facts(run, None), "rows": _response_rows(run, chosen)}


def evaluation_facts(
    evaluation: Evaluation,
    run: Run | None,
    examples: int = 0,
    *,
    failed: bool = False,
    below: float | None = None,
    scorers: Sequence[str] = (),
    measures: Sequence[Measure] = (),
    lowest: bool = False,
    against: Evaluation | None = None,
) -> Facts:
    """An evaluation: why rows of each scorer have no score, and the first rows, those first, with what was asked.

    Args:
        run: what was graded, where it is at hand.
        examples: how many rows of each scorer.
        failed: only rows without a score.
        below: only rows scored below this.
        scorers: only rows of these; all if not given.
        measures: what the scores were summarised by, which tells by which of several answers a row is below.
        lowest: the rows with the lowest scores, the lowest first.
        against: only rows that this other evaluation grades otherwise, with what it says of them, the largest
            difference first.

    Raises:
        SpecError: there is no such scorer.
    """
    for scorer in scorers:
        if scorer not in evaluation.scorers:
            hint = nearest(scorer, evaluation.scorers)
            raise SpecError(f"no scorer is called {scorer!r}{hint}; there are {', '.join(evaluation.scorers)}")
    metrics = first_metrics(measures)
    asked_for = [scorer for scorer in evaluation.scorers if not scorers or scorer in scorers]
    told: Facts = {
        "missing": [reason for reason in missing_facts(None, evaluation) if reason["scorer"] in asked_for],
        "replications": None if run is None else run.manifest["spec"]["replications"],
    }
    if lowest or against is not None:
        return told | {"rows": _traced(evaluation, against, asked_for, examples)}
    chosen = {
        scorer: _low(evaluation.batches(scorer), examples, below, metrics.get(scorer))
        if below is not None
        else _chosen(evaluation.batches(scorer), evaluation.counts[scorer], "scored", examples, failed)
        for scorer in asked_for
    }
    _tell_calls(evaluation, run, chosen)
    keys = {(row["_index_"], row["replication"]) for found in chosen.values() for row in found}
    about = asked(run, keys) if run is not None else {}
    return told | {
        "rows": {
            scorer: [_plain_row(row) | about.get((row["_index_"], row["replication"]), {}) for row in found]
            for scorer, found in chosen.items()
        },
    }


def example_facts(evaluation: Evaluation, run: Run, index: int) -> Facts:
    """All of one example: its calls and, by scorer, their grades.

    Raises:
        SpecError: no example has this `_index_`.
    """
    calls = run_facts(run, index=index)["rows"]
    rows = grades_facts(evaluation, index)
    told = {
        "replications": run.manifest["spec"]["replications"],
        "task": run.manifest["provenance"].get("task", "task"),
    }
    return told | {"missing": [], "rows": rows, "calls": calls}


def grades_facts(evaluation: Evaluation, index: int) -> dict[str, list[Facts]]:
    """By scorer the scores of the example with this `_index_`."""
    found = {
        scorer: [
            _row(batch, i)
            for batch in evaluation.batches(scorer)
            for i, other in enumerate(batch.column("_index_").to_pylist())
            if other == index
        ]
        for scorer in evaluation.scorers
    }
    _tell_calls(evaluation, evaluation.run, found)
    return {scorer: [_plain_row(row) for row in rows] for scorer, rows in found.items()}


def value_facts(
    aggregation: Aggregation,
    metric: str,
    group: Mapping[str, str],
    examples: int,
    *,
    failed: bool = False,
    lowest: bool = False,
    scorers: Sequence[str] = (),
) -> dict[str, list[Facts]]:
    """The first rows that the values of a metric rest on, by evaluation and scorer.

    Args:
        metric: its kind.
        group: attribute → value: the group whose value it is; all rows if there are none.
        examples: how many rows of each value.
        failed: only rows without a score.
        lowest: the rows with the lowest scores first.
        scorers: only of these; of all if not given.

    Raises:
        SpecError: there is no such value.
    """
    from evaluand.report.lineage import lineage_of_value  # on use: `evaluand list` does without Arrow

    values = aggregation.table().to_pylist()
    if metric not in (kinds := dict.fromkeys(row["metric"] for row in values)):
        raise SpecError(f"no metric is called {metric!r}{nearest(metric, kinds)}; there are {', '.join(kinds)}")
    of_metric = [row for row in values if row["metric"] == metric and (not scorers or row["scorer"] in scorers)]
    wanted = [row for row in of_metric if dict(row["by"]) == dict(group)]
    if not wanted:
        known = dict.fromkeys(" ".join(f"{k}={v}" for k, v in row["by"]) or "all rows" for row in of_metric)
        raise SpecError(f"{metric} has no value of this group; there are {', '.join(known) or 'none of this scorer'}")
    found: dict[str, list[Facts]] = {}
    for row in wanted:
        rows = lineage_of_value(aggregation, row)
        rows = rows.failures() if failed else rows.lowest(examples) if lowest else rows
        parts = (aggregation.labels[row["evaluation"]], row["scorer"], row["target"])
        told = [{k: v for k, v in each.items() if k != "evaluation"} for each in _graded_rows(rows.head(examples))]
        found.setdefault(" · ".join(part for part in parts if part is not None), told)
    return found


def _traced(
    evaluation: Evaluation, against: Evaluation | None, scorers: Sequence[str], n: int
) -> dict[str, list[Facts]]:
    """By scorer the lowest rows, or those that another evaluation grades otherwise, each beside that one's."""
    from evaluand.report.lineage import lineage  # on use, as above

    found = {}
    for scorer in scorers:
        if against is None:
            found[scorer] = _graded_rows(lineage(evaluation, scorer).lowest(n))
        elif scorer in against.scorers:
            found[scorer] = _graded_rows(lineage([evaluation, against], scorer).disagreements().head(2 * n))
    if not found and against is not None:
        raise SpecError(f"the two have no scorer in common; the other has {', '.join(against.scorers)}")
    return found


def _graded_rows(found: Lineage) -> list[Facts]:
    """The scores of a lineage, each with what was asked and answered, and whose it is where there are several."""
    rows = [_row(batch, i) for batch in found.scores.to_batches() for i in range(batch.num_rows)]
    about: dict[tuple[int, int, int], Facts] = {}
    for number in {row["evaluation"] for row in rows}:
        evaluation, own = found.evaluations[number], [row for row in rows if row["evaluation"] == number]
        run, by_scorer = evaluation.run, {s: [row for row in own if row["scorer"] == s] for s in evaluation.scorers}
        _tell_calls(evaluation, run, by_scorer)
        told = {} if run is None else asked(run, {(row["_index_"], row["replication"]) for row in own})
        about |= {(number, *key): facts for key, facts in told.items()}
    several = len(found.evaluations) > 1
    names = [each.name or each.id[:SHORT_ID] for each in found.evaluations]
    return [
        ({"evaluation": names[row["evaluation"]]} if several else {})
        | _plain_row({name: value for name, value in row.items() if name not in ("evaluation", "scorer")})
        | about.get((row["evaluation"], row["_index_"], row["replication"]), {})
        for row in rows
    ]


def _tell_calls(evaluation: Evaluation, run: Run | None, rows: Mapping[str, Sequence[Facts]]) -> None:
    """Puts into rows of feedbacks, by scorer, what their tables leave to the run."""
    from evaluand.evaluation.grading import Sources  # on use: `evaluand list` does without Arrow
    from evaluand.evaluation.scorer import find_call_reader

    sources, specs = Sources(run), evaluation.manifest["spec"]["scorers"]
    readers = {scorer: find_call_reader(specs[scorer]) for scorer in rows}
    judged = [(row, read) for s, found in rows.items() if (read := readers[s]) for row in found if row[CALLS]]
    for row, read in sorted(judged, key=lambda each: (each[0]["_index_"], each[0]["replication"])):
        source = partial(sources.of, row["_index_"], row["replication"], row["_response_index_"])
        row[CALLS] = plain(read(row[CALLS], source))


def feedback_calls(value: Any) -> list[Facts] | None:
    """The calls of a feedback, `{args, ret, meta, error}` each; None where a column of this name holds others.

    Example:
        >>> feedback_calls([{"args": {"text": "a"}, "ret": 1.0, "meta": {}, "error": None}]) is not None
        True
        >>> feedback_calls(["a", "b"]) is None
        True
    """
    if not isinstance(value, list) or not value:
        return None
    known = all(isinstance(each, dict) and each.keys() == _OF_CALL for each in value)
    return value if known and all(isinstance(each[n], dict) for each in value for n in ("args", "meta")) else None


CALLS: Final = "calls"
"""The column of a feedback's table that holds what it was asked."""

_OF_CALL: Final = {"args", "ret", "meta", "error"}


def deciding(scores: Sequence[tuple[int | None, str | None, str, float | None]], metric: Metric | None) -> list[int]:
    """Which of the scores of one call a metric goes by: of several answers the first, the best one, or all.

    Args:
        scores: `_response_index_`, target, status and value of each.
        metric: None goes by all.

    Returns:
        Their places.

    Example:
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> scores = [(0, None, "scored", 0.0), (1, None, "scored", 1.0)]
        >>> deciding(scores, Accuracy()), deciding(scores, Accuracy(reduce="any")), deciding(scores, None)
        ([0], [1], [0, 1])
    """
    if metric is None:
        return [*range(len(scores))]
    within = [i for i, (number, *_) in enumerate(scores) if (number or 0) < metric.looks_at]
    if metric.reduce not in ("any", "best"):
        return within
    sign = 1 if metric.reduce == "best" and metric.direction == "lower" else -1

    def rank(place: int) -> tuple[int, float]:
        _, _, status, value = scores[place]
        return _STATUSES.index(status), sign * (value or 0.0)

    targets = dict.fromkeys(scores[i][1] for i in within)
    return [min((i for i in within if scores[i][1] == target), key=rank) for target in targets]


def first_metrics(measures: Iterable[Measure]) -> dict[str, Metric]:
    """The first metric of each scorer: the one by which its rows are called right or wrong."""
    found: dict[str, Metric] = {}
    for measure in measures:
        found.setdefault(measure.scorer, measure.metric)
    return found


def dataset_facts(dataset: Dataset, examples: int = 0) -> Facts:
    """A dataset: its roles, its columns and its first rows."""
    first = itertools.islice(dataset.examples(0, examples), examples)
    return {
        "roles": plain(dataset.spec["roles"]),
        "columns": {
            field.name: str(field.type) for field in dataset.schema if field.name not in ("_index_", "_digest_")
        },
        "rows": [
            {"_index_": e.index, "id": e.id, "input": plain(e.input), "expected": plain(e.expected)}
            | plain({"attributes": e.attributes, "weight": e.weight, "cluster": e.cluster, "metadata": e.metadata})
            for e in first
        ],
    }


def _made(manifest: Manifest) -> Facts:
    """What a manifest says of how an artifact was made."""
    names = ("id", "digest", "name", "counts", "created", "sealed", "attempt", "pinned", "spec", "provenance")
    return {name: manifest.get(name) for name in names}


def _dataset_of(run: Run) -> Facts:
    id = run.manifest["spec"]["dataset"]
    try:
        manifest = run.store.manifest("datasets", id)
    except NotFound:
        return {"id": id, "name": None, "digest": None, "counts": None, "source": None, "roles": None}
    made = {name: manifest.get(name) for name in ("id", "name", "digest", "counts")}
    source = (manifest.get("provenance") or {}).get("source")
    return made | {"source": source, "roles": plain(manifest["spec"]["roles"])}


def _range(evaluation: Evaluation, scorer: str) -> Facts:
    seen: Facts = {"n": 0, "low": None, "high": None, "binary": True}
    for values in _values(evaluation, scorer):
        if not len(values):
            continue
        low, high = float(values.min()), float(values.max())
        seen["low"] = low if seen["low"] is None else min(low, seen["low"])
        seen["high"] = high if seen["high"] is None else max(high, seen["high"])
        seen["n"] += len(values)
        seen["binary"] = seen["binary"] and bool(((values == 0) | (values == 1)).all())
    return seen


def _histogram(evaluation: Evaluation, scorer: str, low: float, high: float) -> tuple[list[float], list[int]]:
    """Edges and, between each two of them, how many values; the last interval holds its upper edge."""
    width = high / _BINS - low / _BINS
    edges = [low + width * i for i in range(_BINS)] + [high]
    counts = [0] * _BINS
    for values in _values(evaluation, scorer):
        places = ((values / _BINS - low / _BINS) / width * _BINS).astype("int64").clip(0, _BINS - 1)
        for place, count in Counter(places.tolist()).items():
            counts[place] += count
    return edges, counts


def _values(evaluation: Evaluation, scorer: str) -> Iterator[Any]:
    """The values that were scored, as NumPy arrays."""
    for batch in evaluation.batches(scorer, ["value"]):
        yield batch.column("value").drop_null().to_numpy(zero_copy_only=False)


class Names:
    """What artifacts are called, by the names of a store."""

    def __init__(self, refs: Iterable[Ref]) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}
        self._taken: set[tuple[str, str]] = set()
        for ref in refs:
            self._names.setdefault((ref.kind, ref.id), []).append(ref.name)
            self._taken.add((ref.kind, ref.name))

    def of(self, kind: str, id: str, name: str | None) -> list[str]:
        """The names that stand for an artifact, or its own where none ever stood for anything of its kind."""
        own = [] if name is None or (kind, name) in self._taken else [name]
        return sorted(self._names.get((kind, id), own))


def _step(made: Run | Evaluation) -> Facts:
    return {
        "id": made.id,
        "digest": made.digest,
        "name": made.name,
        "counts": made.counts,
        "receipt": None if made.receipt is None else _receipt(made.receipt),
    }


def _receipt(receipt: Receipt) -> Facts:
    return {name: getattr(receipt, name) for name in ("total", "called", "reused", "kept", "skipped", "failed", "why")}


def _failures(run: Run) -> list[Facts]:
    """Why calls failed, or skipped their rows; a row that was never to be asked has no reason."""
    if set(run.counts) <= {"completed"}:
        return []
    found = (
        (row["_index_"], row["status"], f"{row['error']['type']}: {row['error']['message']}")
        for batch in run.batches(["_index_", "status", "error"])
        for row in batch.filter(batch.column("error").is_valid()).to_pylist()
    )
    return _reasons((i, status, reason.removeprefix("Skipped: ")) for i, status, reason in found)


def _ungraded(evaluation: Evaluation, scorer: str) -> Iterator[tuple[int, str, str]]:
    if set(evaluation.counts[scorer]) <= {"scored"}:
        return
    for batch in evaluation.batches(scorer, ["_index_", "status", "reason"]):
        for row in batch.filter(batch.column("reason").is_valid()).to_pylist():
            yield row["_index_"], row["status"], row["reason"]


def _ungraded_calls(evaluation: Evaluation) -> dict[str, Counter[str]]:
    """How many calls, with all their answers, each scorer failed on or found something to grade missing in."""
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


def _reasons(found: Iterable[tuple[int, str, str]]) -> list[Facts]:
    """Reasons with their number and first row; those that differ only in their figures are one, which says so."""
    first: dict[tuple[str, str], tuple[int, str]] = {}
    unlike: set[tuple[str, str]] = set()
    counts: Counter[tuple[str, str]] = Counter()
    for index, status, reason in found:
        key = (status, re.sub(r"\d+", "0", reason))
        if key not in first and len(first) >= _KINDS_OF_REASONS:
            key, reason = (status, ""), "other reasons"
        if first.setdefault(key, (index, reason))[1] != reason:
            unlike.add(key)
        counts[key] += 1
    others = "; others differ in their figures"
    return [
        {"status": key[0], "count": count, "reason": first[key][1] + others * (key in unlike), "first": first[key][0]}
        for key, count in counts.most_common()
    ]


def _chosen(
    batches: Iterable[pa.RecordBatch], counts: Mapping[str, int], good: str, n: int, failed: bool
) -> list[dict[str, Any]]:
    """The first rows of a table: those without a result first, then (unless only these are wanted) the others.

    Rows that were never asked are neither.
    """
    bad_left = min(n, sum(count for status, count in counts.items() if status not in (good, "skipped")))
    good_left = 0 if failed else min(n - bad_left, counts.get(good, 0))
    bad_rows, good_rows = [], []
    for batch in batches:
        if not bad_left and not good_left:
            break
        for i, status in enumerate(batch.column("status").to_pylist()):
            if status not in (good, "skipped") and bad_left:
                bad_rows.append(_row(batch, i))
                bad_left -= 1
            elif status == good and good_left:
                good_rows.append(_row(batch, i))
                good_left -= 1
    return bad_rows + good_rows


def _low(batches: Iterable[pa.RecordBatch], n: int, below: float, metric: Metric | None) -> list[dict[str, Any]]:
    """The first rows scored below a value, of those that a metric goes by."""
    keys = (
        (row[:2], row[2:], batch, i)
        for batch in batches
        for i, row in enumerate(zip(*(batch.column(name).to_pylist() for name in _GRADED), strict=True))
    )
    low = (
        _row(rows[i][2], rows[i][3])
        for _, group in itertools.groupby(keys, lambda row: row[0])
        for rows in [list(group)]
        for i in deciding([row[1] for row in rows], metric)
        if (value := rows[i][1][-1]) is not None and value < below
    )
    return list(itertools.islice(low, n))


def _row(batch: pa.RecordBatch, i: int) -> dict[str, Any]:
    """One row of a batch, with its JSON read."""
    from evaluand.store.tables import is_json  # on use: `evaluand list` does without Arrow

    row: dict[str, Any] = batch.slice(i, 1).to_pylist()[0]
    read = (field.name for field in batch.schema if is_json(field) and row[field.name] is not None)
    return row | {name: orjson.loads(row[name]) for name in read}


def _rows_of(run: Run, index: int) -> Iterator[dict[str, Any]]:
    for batch in run.batches():
        for i, other in enumerate(batch.column("_index_").to_pylist()):
            if other == index:
                yield batch.slice(i, 1).to_pylist()[0]


def _indices(run: Run) -> str:
    """Which `_index_` a run has, in words."""
    known = dict.fromkeys(i for batch in run.batches(["_index_"]) for i in batch.column("_index_").to_pylist())
    if not known:
        return "it has no examples"
    return f"there are {len(known):,} examples, from {next(iter(known))} to {next(reversed(known))}"


def _response_rows(run: Run, chosen: Sequence[dict[str, Any]]) -> list[Facts]:
    examples = examples_at(run, sorted({row["_index_"] for row in chosen}))
    spans = _spans(run, {(row["_index_"], row["replication"]) for row in chosen})
    return [
        _plain_row(row)
        | {"responses": answers(row["responses"], row["n_responses"], run.items)}
        | examples.get(row["_index_"], {})
        | {"spans": spans.get((row["_index_"], row["replication"]), [])}
        for row in chosen
    ]


def _spans(run: Run, keys: set[tuple[int, int]]) -> dict[tuple[int, int], list[Facts]]:
    found: dict[tuple[int, int], list[Facts]] = {}
    last = max((index for index, _ in keys), default=-1)
    for batch in run.spans() if keys else ():
        indices, replications = batch.column("_index_").to_pylist(), batch.column("replication").to_pylist()
        for i, key in enumerate(zip(indices, replications, strict=True)):
            if key in keys:
                found.setdefault(key, []).append(_span(batch.slice(i, 1).to_pylist()[0]))
        if indices and indices[-1] > last:
            break
    return found


def _span(row: dict[str, Any]) -> Facts:
    """A span with times in microseconds; values stay canonical text."""
    times = {name: None if row[name] is None else _microseconds(row[name]) for name in ("start", "duration")}
    return {name: row[name] for name in row if name not in ("_index_", "replication")} | times


def _microseconds(time: dt.timedelta) -> int:
    return time // dt.timedelta(microseconds=1)


def _plain_row(row: dict[str, Any]) -> Facts:
    """A row of a table as JSON: times in seconds and UTC, digests in hexadecimal digits."""
    return {name: _plain_cell(value) for name, value in row.items() if name != "fold" or value is not None}


def _plain_cell(value: Any) -> Any:
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value
