"""Looking up: what was asked and answered in a few rows of a run, for people to read.

Everything comes as plain JSON data. Nothing here imports NumPy or Arrow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from evaluand.core import identity
from evaluand.core.errors import NotFound, SpecError

if TYPE_CHECKING:
    from evaluand.data.dataset import Dataset
    from evaluand.run.runner import Run

PREDICTION = "prediction"


def asked(run: Run, keys: set[tuple[int, int]]) -> dict[tuple[int, int], dict[str, Any]]:
    """Input, expected and responses of some rows."""
    examples = examples_at(run, sorted({index for index, _ in keys}))
    given = _answers_of(run, keys)
    return {key: {**examples.get(key[0], {}), "responses": given.get(key)} for key in keys}


def _answers_of(run: Run, keys: set[tuple[int, int]]) -> dict[tuple[int, int], list[Any] | None]:
    found: dict[tuple[int, int], list[Any] | None] = {}
    last = max((index for index, _ in keys), default=-1)
    for batch in run.batches(["_index_", "replication", "n_responses", "responses"]) if keys else ():
        indices, replications, numbers = (batch.column(i).to_pylist() for i in range(3))
        for i, key in enumerate(zip(indices, replications, strict=True)):
            if key in keys:
                found[key] = answers(batch.column("responses").slice(i, 1).to_pylist()[0], numbers[i], run.items)
        if indices and indices[-1] > last:
            break
    return found


def examples_at(run: Run, indices: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Input and expected of some examples, and what a view made of the input; nothing where the dataset is lacking."""
    try:
        dataset = run.dataset
    except NotFound:
        return {}
    positions = [bisect_left(dataset.indices, index) for index in indices]
    found: dict[int, dict[str, Any]] = {}
    seen = _seen(run, dataset)
    for start, stop in _stretches(positions):
        for e in dataset.examples(start, stop):
            found[e.index] = {"id": e.id, "input": plain(e.input), "expected": plain(e.expected)}
        for e in seen.examples(start, stop) if seen else ():
            found[e.index]["asked"] = plain(e.input)
    return found


def _seen(run: Run, dataset: Dataset) -> Dataset | None:
    """The examples in the run's view; None where it has none, or its adapters are not installed here."""
    view = run.manifest["spec"].get("view")
    try:
        return None if view is None else dataset.view(view, checked=True)
    except SpecError:
        return None


def _stretches(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Start and stop of each stretch of ascending positions without a gap."""
    start = stop = -1
    for position in positions:
        if position != stop:
            if start >= 0:
                yield start, stop
            start = position
        stop = position + 1
    if start >= 0:
        yield start, stop


def answers(items: list[dict[str, Any]] | None, n: int, in_lists: bool) -> list[Any] | None:
    """The n responses of a row, best first; a list of items each, which may be empty, where the task declares items."""
    if items is None:
        return None
    values = [in_reading_order(orjson.loads(item["value"])) for item in items]
    if not in_lists:
        return values
    lists: list[Any] = [[] for _ in range(n)]
    for item, value in zip(items, values, strict=True):
        lists[item["_response_index_"]].append(value)
    return lists


def in_reading_order(answer: Any) -> Any:
    """An answer of several parts with what was predicted first: stored, they stand in the order of their names.

    Example:
        >>> in_reading_order({"confidence": 0.9, "prediction": "cat"})
        {'prediction': 'cat', 'confidence': 0.9}
    """
    if isinstance(answer, dict) and PREDICTION in answer:
        return {PREDICTION: answer[PREDICTION]} | answer
    return answer


def plain(value: Any) -> Any:
    """Any data as JSON, as they are written for digests."""
    return orjson.loads(identity.encode(value))
