"""Inputs, expected values and responses of a few rows of a run, as JSON data for people.

Nothing here imports NumPy or Arrow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from evaluand.core import identity
from evaluand.core.errors import NotFound, SpecError

if TYPE_CHECKING:
    from evaluand.data.dataset import Dataset
    from evaluand.run.runner import Run

PREDICTION = "prediction"


def excerpts(run: Run, keys: set[tuple[int, int]]) -> dict[tuple[int, int], dict[str, Any]]:
    """Input, expected and responses of some rows."""
    examples = examples_at(run, sorted({index for index, _ in keys}))
    answers_by_key = _read_answers(run, keys)
    return {key: {**examples.get(key[0], {}), "responses": answers_by_key.get(key)} for key in keys}


def _read_answers(run: Run, keys: set[tuple[int, int]]) -> dict[tuple[int, int], list[Any] | None]:
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
    """Input and expected of some examples, and the input in the run's view; empty if the dataset is missing."""
    try:
        dataset = run.dataset
    except NotFound:
        return {}
    positions = [bisect_left(dataset.indices, index) for index in indices]
    found: dict[int, dict[str, Any]] = {}
    viewed = _viewed_dataset(run, dataset)
    for e in dataset.examples_at(positions):
        found[e.index] = {"id": e.id, "input": to_json(e.input), "expected": to_json(e.expected)}
    for e in viewed.examples_at(positions) if viewed else ():
        found[e.index]["asked"] = to_json(e.input)
    return found


def _viewed_dataset(run: Run, dataset: Dataset) -> Dataset | None:
    """The examples in the run's view; None if it has none, or its adapters are not installed."""
    view = run.manifest["spec"].get("view")
    try:
        return None if view is None else dataset.view(view, checked=True)
    except SpecError:
        return None


def answers(items: list[dict[str, Any]] | None, n: int, in_lists: bool) -> list[Any] | None:
    """The n responses of a row, best first; each a list of items, possibly empty, if the task declares items."""
    if items is None:
        return None
    values = ((item["_response_index_"], in_reading_order(orjson.loads(item["value"]))) for item in items)
    return by_response(values, n, in_lists)


def by_response(items: Iterable[tuple[int, Any]], n: int, in_lists: bool) -> list[Any]:
    """The n responses whose items these are, each with the number of its response."""
    if not in_lists:
        return [value for _, value in items]
    lists: list[Any] = [[] for _ in range(n)]
    for number, value in items:
        lists[number].append(value)
    return lists


def in_reading_order(answer: Any) -> Any:
    """An answer with its prediction first; stored parts are sorted by name.

    Example:
        >>> in_reading_order({"confidence": 0.9, "prediction": "cat"})
        {'prediction': 'cat', 'confidence': 0.9}
    """
    if isinstance(answer, dict) and PREDICTION in answer:
        return {PREDICTION: answer[PREDICTION]} | answer
    return answer


def to_json(value: Any) -> Any:
    """Any data as JSON, in the form used for digests."""
    return orjson.loads(identity.encode(value))
