"""One example with what every run answered to it, and one call with all that happened in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import orjson

from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.core.errors import NotFound
from evaluand.data.dataset import Dataset, Example
from evaluand.data.kind import DATASETS
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.people_labels import human_scorers
from evaluand.models.usage_total import UsageTotal
from evaluand.report.commands import format_command
from evaluand.report.facts.base import Facts, Names
from evaluand.report.facts.report import Part
from evaluand.report.html.cells import Budget, cell
from evaluand.report.html.examples import Examples, Images, all_metadata, find_source, read_tuples
from evaluand.report.page.resources.base import Source, resource
from evaluand.report.page.resources.rows import NO_EVALUATION, find_part, read_scales, read_window
from evaluand.report.row_columns import list_scorers
from evaluand.report.text import SHORT_ID
from evaluand.report.usage import brief_usage
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.folder_store import FolderStore
from evaluand.store.statuses import SCORED
from evaluand.store.window import WindowedStore

_LONGEST: Final = 100_000  # characters of a value of the example
_MOST_RUNS: Final = 50
_MOST_REPEATS: Final = 100
_MOST_SPANS: Final = 5000
_LEAST_SPANS: Final = 50  # of a call
_ROOM: Final = 2_000_000  # characters of all values in the spans
_LONGEST_TRACED: Final = 50_000


@resource("example/{dataset}/{index}")
def read_example(source: Source, dataset: str, index: str) -> Facts:
    """An example, and the calls of each run over its dataset, newest run first, with the scores of its newest
    evaluation and the newest labels by people.
    """
    number, store = _parse_index(index), source.store
    made = store.manifest(DATASETS, dataset)
    example = _find_example(store, dataset, number)
    if example is None:
        raise NotFound(f"this dataset has no example {number}")
    runs = list_runs(source, dataset)
    return {
        "dataset": {"id": dataset, "name": made.get("name"), "created": made.get("created")},
        "index": str(number),
        "id": example.id,
        "input": cell(example.input, _LONGEST),
        "expected": None if example.expected is None else cell(example.expected, _LONGEST),
        "attributes": {name: _optional_cell(value) for name, value in example.attributes.items()},
        "metadata": {name: cell(value, _LONGEST) for name, value in all_metadata(example).items()},
        "image": Images(find_source(store, dataset)).read(example.input),
        "runs": [
            each for entry in runs[:_MOST_RUNS] if (each := _read_calls(source, entry, number, room=None))["rows"]
        ],
        "n_runs": len(runs),
        "n_read": min(len(runs), _MOST_RUNS),
    }


@resource("trace/{run}/{index}")
def read_trace(source: Source, run: str, index: str) -> Facts:
    """The calls of a run for one example, with all their spans up to a total size.

    A span is as in a row, with what it used at its end: model, tokens and cost, or None.
    """
    number, store = _parse_index(index), source.store
    made = find_part(source, run, NO_EVALUATION).run.manifest
    graded, labelled = _list_evaluations(source)
    entry = {"id": run, "evaluation": graded.get(run) or labelled.get(made["digest"]), "labels": None}
    found = _read_calls(source, entry, number, Budget(_ROOM, _LONGEST_TRACED))
    if not found["rows"]:
        raise NotFound(f"this run has no example {number}")
    used = _read_usages(Run(_window(store, number), run))
    for row in found["rows"]:
        row["spans"] = [[*span, used.get((row["replication"], span[0]))] for span in row["spans"]]
        row["used"] = _describe_used(row["spans"])
    dataset = made["spec"]["dataset"]
    return {"index": str(number), "dataset": {"id": dataset, "name": source.find_dataset_name(dataset)}} | found


def _parse_index(text: str) -> int:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > _DIGITS or not -_END <= int(text) < _END:
        raise NotFound("there is no such example: its number is a whole one")
    return int(text)


_DIGITS: Final = 19
_END: Final = 1 << 63


def _window(store: FolderStore, number: int) -> Any:
    """The store with the rows of one example alone."""
    return WindowedStore(store, [number])


def _find_example(store: FolderStore, dataset: str, number: int) -> Example | None:
    return next(Dataset.stored(_window(store, number), dataset).examples(), None)


def _optional_cell(value: Any) -> Any:
    return None if value is None else cell(value, _LONGEST)


def list_runs(source: Source, dataset: str) -> list[Facts]:
    """The finished runs over a dataset, newest first, each with its newest evaluation and labels by people."""
    over = [entry for entry in source.finished(RUNS) if _find_dataset_of(source, entry["id"]) == dataset]
    graded, labelled = _list_evaluations(source) if over else ({}, {})
    return [
        {"id": run["id"], "evaluation": graded.get(run["id"]), "labels": labelled.get(run["digest"])} for run in over
    ]


def _list_evaluations(source: Source) -> tuple[dict[str, str], dict[str | None, str]]:
    """By the id of a run its newest finished evaluation by scorers, and by its digest that by people alone."""
    graded: dict[str, str] = {}
    labelled: dict[str | None, str] = {}
    for entry in source.finished(EVALUATIONS):
        run, digest = _find_run(source, entry["id"])
        if _is_by_people(source, entry["id"]):
            labelled.setdefault(digest, entry["id"])
        else:
            graded.setdefault(run, entry["id"])
    return graded, labelled


def _is_by_people(source: Source, id: str) -> bool:
    """Whether an evaluation holds labels by people and nothing else."""

    def find() -> bool:
        evaluation = Evaluation(source.store, id)
        return bool(evaluation.scorers) and len(human_scorers(evaluation)) == len(evaluation.scorers)

    return source.facts.get(("by people", id), find)


def _find_dataset_of(source: Source, run: str) -> str:
    """The id of the dataset of a run."""
    return source.facts.get(("dataset", run), lambda: str(source.store.manifest(RUNS, run)["spec"]["dataset"]))


def _find_run(source: Source, evaluation: str) -> tuple[str, str]:
    """The id and the digest of the run of an evaluation."""

    def find() -> tuple[str, str]:
        manifest = source.store.manifest(EVALUATIONS, evaluation)
        return manifest["provenance"]["run"], manifest["spec"]["run"]

    return source.facts.get(("run", evaluation), find)


def _read_calls(source: Source, entry: Mapping[str, Any], number: int, room: Budget | None) -> Facts:
    """What a run and an evaluation of it say about an example.

    Args:
        entry: the ids of the run, its evaluation and its labels by people.
        room: of all spans, which are shown up to `_MOST_SPANS`; None for those that a row shows.
    """
    part = find_part(source, entry["id"], entry["evaluation"] or NO_EVALUATION)
    scores, measures = _read_scales(source, part)
    made = part.run.manifest
    repeats = made["spec"]["replications"]
    spans = {} if room is None else {"spans": max(_MOST_SPANS // max(repeats, 1), _LEAST_SPANS), "room": room}
    rows = list(islice(read_window(part, scores, measures, [number], **spans), _MOST_REPEATS))
    aggregates = Examples(part, scores).aggregates
    names = Names(source.store.refs()).find(RUNS, part.run.id, made.get("name"))
    facts = made.get("provenance") or {}
    return {
        "run": part.run.id,
        "names": names,
        "evaluation": entry["evaluation"],
        "task": (facts.get("origin") or {}).get("task") or facts.get("task") or part.run.id,
        "created": made.get("created"),
        "replications": repeats,
        "scorers": [{"name": name, "aggregate": aggregates.get(name)} for name in list_scorers(part, measures)],
        "command": f"{format_command('show', part.run.id[:SHORT_ID], source.root)} --index {number} --json",
        "rows": rows,
        "labels": None if entry["labels"] is None else _read_labels(source, part.run.id, entry["labels"], number),
    }


def _read_scales(source: Source, part: Part) -> Any:
    graded = part.evaluation and part.evaluation.id
    key = "scales", part.run.id, graded, source.list_ids(AGGREGATIONS)
    return source.facts.get(key, lambda: read_scales(part))


def _read_labels(source: Source, run: str, evaluation: str, number: int) -> Facts:
    """What people say of the answers of a run for an example: their scorers, and the scores of each row."""
    part = find_part(source, run, evaluation)
    scores, measures = _read_scales(source, part)
    rows = islice(read_window(part, scores, measures, [number]), _MOST_REPEATS)
    return {
        "scorers": [{"name": name} for name in list_scorers(part, measures)],
        "scores": [_list_given(row) for row in rows],
    }


def _list_given(row: Facts) -> list[Facts]:
    """The scores that there are: an answer that nobody has labelled has none."""
    return [score for score in row["scores"] if score["status"] == SCORED]


_USED: Final = ("model", "input_tokens", "output_tokens", "cost", "currency")


def _read_usages(run: Run) -> dict[tuple[int, int], Facts]:
    """What each span used that says so, by replication and number."""
    found = {}
    for replication, number, text in _iterate_attributes(run):
        if text is not None and (used := _usage_of(orjson.loads(text))):
            found[replication, number] = used
    return found


def _describe_used(spans: Sequence[Sequence[Any]]) -> str:
    """What a call used together: what it says itself, or else its innermost requests to models."""
    using = [span for span in spans if span[-1]]
    using = [span for span in using if span[0] == 0] or [span for span in using if span[3] == "llm"] or using
    outer, total = {span[1] for span in using}, UsageTotal()
    for span in using:
        if span[0] not in outer:
            total.add(span[-1])
    return brief_usage({"usage": {"": total.to_dict()}, "spent": total.cost}, "request")


def _iterate_attributes(run: Run) -> Iterator[tuple[int, int, str | None]]:
    for batch in run.spans():
        for row in read_tuples(batch.select(["replication", "span", "attributes"])):
            yield row[0], row[1], row[2]


def _usage_of(attributes: Mapping[str, Any]) -> Facts:
    """Model, tokens and cost: attributes themselves, or within the attribute `usage`."""
    usage = attributes.get("usage")
    known = {**attributes, **usage} if isinstance(usage, Mapping) else attributes
    used = {name: value for name in _USED if _is_plain(value := known.get(name), name)}
    return used if used.keys() & {"input_tokens", "output_tokens", "cost"} else {}


def _is_plain(value: Any, name: str) -> bool:
    if name in ("model", "currency"):
        return isinstance(value, str) and len(value) <= _LONGEST_NAME
    return isinstance(value, int | float) and not isinstance(value, bool)


_LONGEST_NAME: Final = 200
