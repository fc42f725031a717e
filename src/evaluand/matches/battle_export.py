"""Matches as battles: one flat row for each, for other tools and for `read_battles`.

`model_a`, `model_b` and `winner` are spelt as in Chatbot Arena, `outcome` is the first system's share of the win, and
the other columns are those of the table of matches, so that the same matches are read again from the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import INDEX
from evaluand.matches.match_keys import (
    ExampleKeys,
    format_key,
    read_example_keys,
    read_judge_keys,
)
from evaluand.matches.matches import EXAMPLES, TEXTS, Matches
from evaluand.run.runner import Run
from evaluand.store.tables import COMPLETED, MATCHES, json_field

_TEXT: Final = pa.string()
BATTLES: Final = pa.schema(
    [
        MATCHES.field(INDEX),
        pa.field("id", _TEXT),
        MATCHES.field("replication"),
        *(pa.field(f"number_{side}", pa.int32()) for side in "ab"),
        *(pa.field(f"model_{side}", _TEXT) for side in "ab"),
        MATCHES.field("order"),
        pa.field("winner", _TEXT),
        *(MATCHES.field(name) for name in ("outcome", "first", "status", "reason", "missing", "judge", "strength")),
        *(MATCHES.field(name) for name in ("equal", "label", "explanation", "data")),
        *(pa.field(name, _TEXT) for name in ("input", "response_a", "response_b")),
        *(json_field(f"style_{side}") for side in "ab"),
        *(MATCHES.field(name) for name in ("usage", "judgement", "round")),
        *(pa.field(name, _TEXT) for name in ("digest", "example_key", "judge_key")),
    ]
)
"""The columns of battles; `winner` is `model_a`, `model_b` or `tie`, and null without an outcome."""


def battle_batches(matches: Matches) -> Iterator[pa.RecordBatch]:
    """The rows of matches as battles, in the order of the table; at least one batch.

    Example:
        >>> from evaluand.matches.battles import read_battles
        >>> [batch] = battle_batches(read_battles([{"id": 7, "model_a": "x", "model_b": "y", "winner": "tie"}]))
        >>> batch.select(["id", "model_a", "model_b", "winner"]).to_pylist()
        [{'id': '7', 'model_a': 'x', 'model_b': 'y', 'winner': 'tie'}]
    """
    systems = pa.array(matches.systems, _TEXT)
    texts = _RunTexts(matches) if matches.manifest["spec"].get("runs") else _StoredTexts(matches)
    keys = _Keys(matches)
    for batch in matches.batches():
        cells = {name: batch.column(name) for name in batch.schema.names}
        for side in "ab":
            cells[f"number_{side}"] = numbers = batch.column(side)
            cells[f"model_{side}"] = systems.take(numbers)
            cells[f"style_{side}"] = _as_json(batch.column(f"style_{side}"))
        cells["winner"] = _winners(batch.column("outcome"))
        cells["digest"] = pa.array([each and each.hex() for each in batch.column("digest").to_pylist()], _TEXT)
        cells |= texts.columns(batch) | keys.columns(batch)
        yield pa.RecordBatch.from_arrays([cells[name] for name in BATTLES.names], schema=BATTLES)


def _as_json(column: pa.Array) -> pa.Array:
    return pa.array([None if each is None else identity.encode(each).decode() for each in column.to_pylist()], _TEXT)


def _winners(outcome: pa.Array) -> pa.Array:
    won = pc.if_else(pc.equal(outcome, 0.5), "tie", pc.if_else(pc.greater(outcome, 0.5), "model_a", "model_b"))
    return won.cast(_TEXT)


class _Keys:
    """The keys by which another reader recognises the examples and judges of matches, row by row."""

    def __init__(self, matches: Matches) -> None:
        try:
            self._examples: ExampleKeys | None = read_example_keys(matches)
        except NotFound:  # the dataset is missing
            self._examples = None
        people = matches.table(["judge"]).column(0).combine_chunks()
        judges = read_judge_keys(matches, people)
        written = [None if name else format_key(key) for key, name in zip(judges.keys, judges.people, strict=True)]
        self._judges = pa.array(written, _TEXT).take(pa.array(judges.place))
        self._row = 0

    def columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        part = self._judges.slice(self._row, batch.num_rows)
        self._row += batch.num_rows
        if self._examples is None:
            return {"example_key": pa.nulls(batch.num_rows, _TEXT), "judge_key": part}
        keys = self._examples.key[self._examples.places(batch.column(INDEX).to_numpy())]
        return {"example_key": pa.array([format_key(*key) for key in keys.tolist()], _TEXT), "judge_key": part}


class _StoredTexts:
    """The ids of examples, and the texts that a file of battles had, row by row."""

    def __init__(self, matches: Matches) -> None:
        rows = [row for batch in matches.store.read("matches", matches.id, EXAMPLES) for row in batch.to_pylist()]
        self._ids = {row[INDEX]: row["id"] for row in rows}
        self._inputs = {row[INDEX]: row["input"] for row in rows}
        try:
            self._texts = pa.Table.from_batches(matches.store.read("matches", matches.id, TEXTS))
        except NotFound:  # the file had none
            self._texts = None
        self._row = 0

    def columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        index = batch.column(INDEX).to_pylist()
        found = {"id": pa.array([self._ids[each] for each in index], _TEXT)}
        if self._texts is None:
            empty = pa.nulls(len(index), _TEXT)
            inputs = pa.array([self._inputs.get(each) for each in index], _TEXT)
            return found | {"input": inputs, "response_a": empty, "response_b": empty}
        part = self._texts.slice(self._row, batch.num_rows)
        self._row += batch.num_rows
        return found | {name: part.column(name).combine_chunks() for name in part.column_names}


class _RunTexts:
    """The ids and inputs of the examples of runs, and their responses."""

    def __init__(self, matches: Matches) -> None:
        self._examples: dict[int, tuple[str, str | None]] = {}
        runs = matches.runs
        run = next((run for run in runs if run is not None), None)
        try:
            for example in run.dataset if run else ():
                self._examples[example.index] = example.id, as_text(example.input)
        except NotFound:  # the dataset is missing
            self._examples = {}
        self._responses = [{} if run is None else _responses(run) for run in runs]

    def columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        index, replication = (batch.column(name).to_pylist() for name in (INDEX, "replication"))
        examples = [self._examples.get(each, (str(each), None)) for each in index]
        ids, inputs = zip(*examples, strict=True) if examples else ((), ())
        found = {"id": pa.array(ids, _TEXT), "input": pa.array(inputs, _TEXT)}
        for side in "ab":
            keys = zip(batch.column(side).to_pylist(), index, replication, strict=True)
            texts = [self._responses[system].get((at, replicate)) for system, at, replicate in keys]
            found[f"response_{side}"] = pa.array(texts, _TEXT)
        return found


def _responses(run: Run) -> dict[tuple[int, int], str | None]:
    """The first response of each call, as text."""
    answered = (response for response in run if response.status == COMPLETED and response.responses)
    return {(each.index, each.replication): as_text((each.responses or [None])[0]) for each in answered}


def as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else identity.encode(value).decode()
