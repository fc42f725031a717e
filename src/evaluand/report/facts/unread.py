"""The replies from which the part that decides a grade could not be read: how many, by whom, and why."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import orjson

from evaluand.models.extraction import COLUMN
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import add_ids
from evaluand.report.text import example_name, safe

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run


def unread_facts(run: Run | None, evaluation: Evaluation | None, system: str | None = None) -> list[Facts]:
    """By scorer (None for the task itself), the replies of a system that could not be read, with a sentence.

    Args:
        run: whose outputs may hold extractions.
        evaluation: whose scorers may store them.
        system: by default the name of the run, or of its task.
    """
    graded = run if run is not None or evaluation is None else evaluation.run
    if system is None:
        system = "task" if graded is None else graded.name or graded.manifest["provenance"].get("task", "task")
    found = [] if run is None else [*_count(system, None, _of_task(run), run)]
    for scorer in [] if evaluation is None else evaluation.scorers:
        if evaluation is not None and COLUMN in evaluation.columns(scorer):
            found += _count(system, scorer, _of_scorer(evaluation, scorer), graded)
    return found


def _of_scorer(evaluation: Evaluation, scorer: str) -> Iterator[tuple[int, Any]]:
    for batch in evaluation.batches(scorer, ["_index_", COLUMN]):
        for index, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if text is not None:
                yield index, orjson.loads(text) if '"reason":' in text else {}  # parsed only where it is unread


def _of_task(run: Run) -> Iterator[tuple[int, Any]]:
    """The extractions in outputs; none if the first output has none."""
    rows = (row for batch in run.batches(["_index_", "responses"]) for row in batch.to_pylist())
    outputs = ((row["_index_"], item["value"]) for row in rows for item in row["responses"] or ())
    first = next(outputs, None)
    if first is None or not isinstance(_extraction_in(first[1]), dict):
        return
    for index, text in chain([first], outputs):
        if isinstance(read := _extraction_in(text), dict):
            yield index, read


def _extraction_in(output: str) -> Any:
    value = orjson.loads(output) if f'"{COLUMN}":' in output else None
    return value.get(COLUMN) if isinstance(value, dict) else None


def _count(system: str, scorer: str | None, extractions: Iterator[tuple[int, Any]], run: Run | None) -> Iterator[Facts]:
    rows, unread = 0, list[tuple[int, str]]()
    for index, read in extractions:
        rows += 1
        if "reason" in read:
            unread.append((index, read["reason"]))
    if not unread:
        return
    index, reason = unread[0]
    facts: Facts = {"scorer": scorer, "count": len(unread), "rows": rows, "first": index, "reason": reason}
    [facts] = [facts] if run is None else add_ids(run, [facts])
    by, share = f" by {safe(scorer)}" if scorer else "", 100 * len(unread) / rows
    replies = f"{len(unread):,} of {rows:,} replies of {safe(system)} could not be read{by}"
    where = example_name(index, facts.get("first_id"))
    yield facts | {"sentence": f"{replies} ({share:.{0 if share >= 1 else 1}f} %): first {where}, {safe(reason)}"}
