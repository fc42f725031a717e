"""Facts about a dataset and about a run: rows with their spans, and why calls failed."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from evaluand.core.errors import SpecError
from evaluand.report.facts.base import (
    KEY,
    Facts,
    choose_rows,
    count_reasons,
    count_statuses,
    matching_keys,
    plain_row,
    rows_with,
)
from evaluand.report.text import SHORT_ID
from evaluand.run.excerpts import answers, examples_at, to_json
from evaluand.store.statuses import COMPLETED
from evaluand.trace.chats import LLM, read_chats

if TYPE_CHECKING:
    from evaluand.data.dataset import Dataset
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run


def run_facts(
    run: Run, examples: int = 0, *, failed: bool = False, index: int | None = None, where: str | None = None
) -> Facts:
    """A run: why calls failed, and the first rows, failed ones first.

    Args:
        examples: how many rows.
        failed: only failed ones.
        index: only those of the example with this `_index_`.
        where: only those that match this condition, see `RowFilter`.
    """
    if where is not None:
        matching = list(rows_with(run.batches(), KEY, matching_keys(run, where)))
        chosen = choose_rows(matching, count_statuses(matching), COMPLETED, examples, failed)
    elif index is None:
        chosen = choose_rows(run.batches(), run.counts, COMPLETED, examples, failed)
    else:
        chosen = list(_read_example(run, index))
        if not chosen:
            raise SpecError(f"run {run.id[:SHORT_ID]} has no _index_ {index}; {_describe_indices(run)}")
    return {"missing": missing_facts(run, None), "rows": _response_rows(run, chosen)}


def missing_facts(run: Run | None, evaluation: Evaluation | None) -> list[Facts]:
    """Why rows failed or were abstained from, most frequent first; a failed call is listed once, not by each scorer."""
    found: list[Facts] = [] if run is None else [{"scorer": None} | reason for reason in _count_call_failures(run)]
    for scorer in [] if evaluation is None else evaluation.scorers:
        reasons = count_reasons(_iterate_ungraded(evaluation, scorer)) if evaluation else []
        found += [
            {"scorer": scorer} | reason
            for reason in reasons
            if run is None or not reason["reason"].startswith(("task: ", "the task was not asked"))
        ]
    return found if run is None else add_ids(run, found)


def add_ids(run: Run, reasons: list[Facts]) -> list[Facts]:
    """The first reasons also with the id of their first example, `first_id`, where it is not `_index_`."""
    if not reasons:
        return reasons
    known = examples_at(run, sorted({reason["first"] for reason in reasons[:_MOST_IDS]}))
    ids = {index: example["id"] for index, example in known.items() if example["id"] not in (None, str(index))}
    return [reason | ({"first_id": ids[reason["first"]]} if reason["first"] in ids else {}) for reason in reasons]


_MOST_IDS = 10


def _count_call_failures(run: Run) -> list[Facts]:
    if set(run.counts) <= {COMPLETED}:
        return []
    failures = (
        (row["_index_"], row["status"], f"{row['error']['type']}: {row['error']['message']}")
        for batch in run.batches(["_index_", "status", "error"])
        for row in batch.filter(batch.column("error").is_valid()).to_pylist()
    )
    return count_reasons((i, status, reason.removeprefix("Skipped: ")) for i, status, reason in failures)


def _iterate_ungraded(evaluation: Evaluation, scorer: str) -> Iterator[tuple[int, str, str]]:
    if set(evaluation.counts[scorer]) <= {"scored"}:
        return
    for batch in evaluation.batches(scorer, ["_index_", "status", "reason"]):
        for row in batch.filter(batch.column("reason").is_valid()).to_pylist():
            yield row["_index_"], row["status"], row["reason"]


def _read_example(run: Run, index: int) -> Iterator[dict[str, Any]]:
    for batch in run.batches():
        for i, other in enumerate(batch.column("_index_").to_pylist()):
            if other == index:
                yield batch.slice(i, 1).to_pylist()[0]


def _describe_indices(run: Run) -> str:
    known = dict.fromkeys(i for batch in run.batches(["_index_"]) for i in batch.column("_index_").to_pylist())
    if not known:
        return "it has no examples"
    return f"there are {len(known):,} examples, from {next(iter(known))} to {next(reversed(known))}"


def _response_rows(run: Run, chosen: Sequence[dict[str, Any]]) -> list[Facts]:
    examples = examples_at(run, sorted({row["_index_"] for row in chosen}))
    spans = read_spans(run, {(row["_index_"], row["replication"]) for row in chosen})
    return [
        plain_row(row)
        | {"responses": answers(row["responses"], row["n_responses"], run.items)}
        | examples.get(row["_index_"], {})
        | {"spans": spans.get((row["_index_"], row["replication"]), [])}
        for row in chosen
    ]


def read_spans(run: Run, keys: set[tuple[int, int]]) -> dict[tuple[int, int], list[Facts]]:
    """The spans of some calls, by `_index_` and replication, in the order of their opening."""
    found: dict[tuple[int, int], list[Facts]] = {}
    last = max((index for index, _ in keys), default=-1)
    for batch in run.spans() if keys else ():
        indices, replications = batch.column("_index_").to_pylist(), batch.column("replication").to_pylist()
        for i, key in enumerate(zip(indices, replications, strict=True)):
            if key in keys:
                found.setdefault(key, []).append(_span_facts(batch.slice(i, 1).to_pylist()[0]))
        if indices and indices[-1] > last:
            break
    return found


def _span_facts(row: dict[str, Any]) -> Facts:
    """A span with times in microseconds; values stay canonical JSON text."""
    unit = dt.timedelta(microseconds=1)
    times = {name: None if row[name] is None else row[name] // unit for name in ("start", "duration")}
    return {name: row[name] for name in row if name not in ("_index_", "replication")} | times


CHATS: Final = "chats"
"""The fact about a row that holds its conversations with language models."""


def add_chats(run: Run, rows: Sequence[Facts]) -> None:
    """Adds the conversations with language models to rows of a run, or to scores of them."""
    spans = read_spans(run, {(row["_index_"], row["replication"]) for row in rows})
    for row in rows:
        row[CHATS] = chat_facts(spans.get((row["_index_"], row["replication"]), []))


def chat_facts(spans: Sequence[Facts]) -> list[list[Facts]]:
    """The conversations with language models in the spans of a call, turn by turn.

    Args:
        spans: of the call, as `run_facts` returns them.
    """
    requests = (
        [None if span[name] is None else orjson.loads(span[name]) for name in ("input", "output", "attributes")]
        for span in spans
        if span["kind"] == LLM
    )
    return [
        [{**turn._asdict(), "tools": [tool._asdict() for tool in turn.tools]} for turn in chat]
        for chat in read_chats((input, output, (held or {}).get("reasoning")) for input, output, held in requests)
    ]


def dataset_facts(dataset: Dataset, examples: int = 0) -> Facts:
    """A dataset: its roles, its columns and its first rows."""
    first = itertools.islice(dataset.examples(0, examples), examples)
    return {
        "roles": to_json(dataset.spec["roles"]),
        "columns": {
            field.name: str(field.type) for field in dataset.schema if field.name not in ("_index_", "_digest_")
        },
        "rows": [
            {"_index_": e.index, "id": e.id, "input": to_json(e.input), "expected": to_json(e.expected)}
            | to_json({"attributes": e.attributes, "weight": e.weight, "cluster": e.cluster, "metadata": e.metadata})
            for e in first
        ],
    }
