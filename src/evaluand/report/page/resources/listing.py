"""The list of what is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from evaluand.aggregation.aggregator import find_summary
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.core.errors import EvaluandError
from evaluand.core.labels import experiment_of
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.matches.kind import MATCHES
from evaluand.report.commands import format_command
from evaluand.report.counts import format_counts
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.base import Facts, Names, usage_facts
from evaluand.report.page.live import LiveRun
from evaluand.report.page.resources.base import Source, resource
from evaluand.report.text import SHORT_ID, measure_creation
from evaluand.report.usage import brief_usage
from evaluand.run.kind import RUNS
from evaluand.store.catalog import DAMAGED, SEALED_STATUS, Entry
from evaluand.store.kinds import find_kind, kinds

_LISTED: Final = ("kind", "id", "status", "created")
_MOST_TILES: Final = 6
_TILE: Final = ("label", "target", "value", "low", "high", "n", "n_scored", "reason")


@resource("index")
def read_index(source: Source) -> Facts:
    """Everything that is stored, newest first, and the experiments whose results have names."""
    refs = source.store.refs()
    names = Names(refs)
    entries = source.store.catalog.entries()
    listed = [
        _describe(source, entry) | {"names": names.find(entry["kind"], entry["id"], entry["name"])} for entry in entries
    ]
    pages = {kind.name: asdict(kind.page) | {"title": kind.page.title or kind.singular} for kind in kinds()}
    return {
        "store": str(source.root),
        "artifacts": listed,
        "experiments": _list_experiments(refs, entries),
        "kinds": pages,
    }


def _describe(source: Source, entry: Entry) -> Facts:
    """What the list says of an artifact: its entry, and texts, which are written once for each finished one."""
    key = (entry["kind"], entry["id"], entry["digest"], entry["created"])
    is_finished = entry["status"] == SEALED_STATUS
    texts = source.listed.get(key, lambda: _write_texts(source, entry)) if is_finished else _write_texts(source, entry)
    return {name: entry[name] for name in _LISTED} | texts


def _write_texts(source: Source, entry: Entry) -> Facts:
    return {
        "counts": format_counts(entry["counts"]),
        "used": brief_usage(usage_facts(dict(entry))),
        "command": _find_command(source, entry),
    }


def _find_command(source: Source, entry: Entry) -> str | None:
    """The command that shows what has no page, or only a server has a page for; None for all else."""
    page, status = find_kind(entry["kind"]).page, entry["status"]
    command = "verify" if status == DAMAGED else "show" if status not in page.routes or status in page.served else None
    return None if command is None else format_command(command, entry["id"][:SHORT_ID], source.root)


@resource("progress/{run}")
def read_progress(source: Source, run: str) -> Facts:
    """How many rows of a run are done, and whether somebody works on them."""
    found = LiveRun(source.store, run)
    try:
        return found.progress()
    finally:
        found.close()


def _list_experiments(refs: Any, entries: Any) -> list[Facts]:
    """The experiments, newest first: a name, its aggregation if any, and its evaluations by task.

    Those that have only compared responses have no evaluations, but matches.
    """
    created = {(entry["kind"], entry["id"]): entry["created"] or "" for entry in entries}
    found: dict[str, Facts] = {}
    for ref in refs:
        if ref.kind in (EVALUATIONS, MATCHES) and (name := experiment_of(ref.name)) is not None:
            task = ref.name.partition("/")[2]
            entry = found.setdefault(name, {"name": name, "tasks": {}, "created": ""})
            if ref.kind == EVALUATIONS:
                entry["tasks"][task] = ref.id
            entry["created"] = max(entry["created"], created.get((ref.kind, ref.id), ""))
    for ref in refs:
        if ref.kind == AGGREGATIONS and ref.name in found:
            found[ref.name]["aggregation"] = ref.id
    return sorted(found.values(), key=lambda entry: str(entry["created"]), reverse=True)


def _list_cards(source: Source) -> Iterator[Mapping[str, str]]:
    for entry in source.finished(RUNS, EVALUATIONS):
        yield {"kind": entry["kind"], "id": entry["id"]}


@resource("card/{kind}/{id}", _list_cards)
def read_card(source: Source, kind: str, id: str) -> Facts:
    """What the list shows of an artifact besides its entry: task, model, dataset, and metrics with intervals.

    Of an evaluation also what the run used that has its name, which the entry of the evaluation does not say.
    """
    manifest = source.store.manifest(kind, id)
    facts, dataset = manifest.get("provenance") or {}, (manifest.get("spec") or {}).get("dataset")
    card: Facts = {
        "task": (facts.get("origin") or {}).get("task") or facts.get("task"),
        "model": _find_model(manifest),
        "dataset": None if dataset is None else {"id": dataset, "name": source.find_dataset_name(dataset)},
        "took": measure_creation(manifest),
        "used": _find_usage(source, manifest) if kind == EVALUATIONS else "",
        "metrics": [],
    }
    if kind == EVALUATIONS and source.store.is_sealed(kind, id):
        card["metrics"] = [{name: row[name] for name in _TILE} for row in list_values(source, id)[:_MOST_TILES]]
    return card


def _find_usage(source: Source, manifest: Facts) -> str:
    """What the run of an evaluation used."""
    try:
        return brief_usage(usage_facts(Evaluation(source.store, manifest["id"]).read_run().manifest))
    except EvaluandError:
        return ""


def _find_model(manifest: Facts) -> str | None:
    usage = manifest.get("usage")
    models = usage.get("models") if isinstance(usage, dict) else None
    parameters = ((manifest.get("spec") or {}).get("task") or {}).get("parameters") or {}
    model = parameters.get("model") if isinstance(parameters, dict) else None
    return ", ".join(models) if models else model if isinstance(model, str) else None


def list_values(source: Source, id: str) -> list[Facts]:
    """The metrics of an evaluation over all rows, as `metrics_facts` returns them."""
    evaluation = Evaluation(source.store, id)
    aggregation = find_summary(evaluation)
    if aggregation is None:
        return []
    label = aggregation.label_of(evaluation)
    return [row for row in metrics_facts(aggregation) if row["task"] == label and not row["by"]]
