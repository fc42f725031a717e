"""The rows of datasets, runs, evaluations and aggregations as flat batches, beside the columns of their dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Aggregation
from evaluand.core import identity as ids
from evaluand.core.errors import EngineError
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.core.labels import join_name
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.run.runner import Run
from evaluand.store import tables as rows
from evaluand.store.store import Ref, sealed_manifest

_Columns = dict[str, tuple[pa.Field, Any]]


def _batch(columns: _Columns) -> pa.RecordBatch:
    arrays = [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for _, a in columns.values()]
    schema = pa.schema([field.with_name(name) for name, (field, _) in columns.items()])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_dataset(dataset: Dataset) -> Iterator[pa.RecordBatch]:
    names = [name for name in dataset.schema.names if name != DIGEST]
    yield _empty_batch(dataset, names)
    yield from dataset.columns(names)


def read_responses(run: Run) -> Iterator[pa.RecordBatch]:
    examples, answers = _Examples(run.dataset), _Answers(run)
    for batch in run.batches():
        found: _Columns = {}
        key = batch.column(INDEX)
        _copy_columns(found, batch, INDEX)
        found["id"] = examples.move_to(key).ids()
        _copy_columns(found, batch, "replication", "fold", "status")
        found["response"] = answers.first(batch)
        if answers.several:
            found["responses"] = answers.all(batch)
        _copy_columns(found, batch, "n_responses")
        for field, column in zip(rows.ERROR, batch.column("error").flatten(), strict=True):
            found[f"error_{field.name}"] = field, column
        found |= examples.columns()
        _copy_columns(found, batch, "attempts", "started")
        found["duration"] = _seconds(batch.column("duration"))
        found |= _usage_columns(batch.column("usage"))
        yield _batch(found)


def _usage_columns(usage: pa.StructArray) -> _Columns:
    """What each call has used; tables of early versions have fewer fields."""
    stored = dict(zip((field.name for field in usage.type), usage.flatten(), strict=True))
    found: _Columns = {}
    for field in rows.USAGE:
        column = stored.get(field.name, pa.nulls(len(usage), field.type))
        if pa.types.is_list(field.type):
            texts = [None if value is None else ids.encode(value).decode() for value in column.to_pylist()]
            found[field.name] = rows.json_field(field.name), pa.array(texts, pa.string())
        else:
            found[_USAGE_NAMES.get(field.name, field.name)] = field, column
    return found


_USAGE_NAMES: Final = {"failed": "failed_requests", "cached": "cached_replies"}


def read_spans(run: Run) -> Iterator[pa.RecordBatch]:
    examples = _Examples(run.dataset)
    for batch in chain([pa.RecordBatch.from_pylist([], rows.SPANS)], run.spans()):
        found: _Columns = {}
        _copy_columns(found, batch, INDEX)
        found["id"] = examples.move_to(batch.column(INDEX)).ids()
        _copy_columns(found, batch, *(name for name in rows.SPANS.names if name != INDEX))
        for name in ("start", "duration"):
            found[name] = _seconds(batch.column(name))
        yield _batch(found)


def read_scores(evaluation: Evaluation, scorers: Sequence[str]) -> Iterator[pa.RecordBatch]:
    run = evaluation.read_run()
    shared = set(rows.scores_schema({}).names)
    answers, own = _Answers(run), _own_fields(evaluation, scorers, shared)
    for scorer in scorers:
        examples, responses = _Examples(run.dataset), _Aligned(run.batches(["responses"]))
        replications = int(run.manifest["spec"]["replications"])
        for batch in evaluation.batches(scorer):
            found: _Columns = {"run": _constant(run.name or run.id, batch)}
            key = examples.move_to(batch.column(INDEX))
            _copy_columns(found, batch, INDEX)
            found["id"] = key.ids()
            _copy_columns(found, batch, "replication", "fold", "_response_index_", "target")
            found["scorer"] = _constant(scorer, batch)
            _copy_columns(found, batch, "status", "value", "label", "data", "reason", "explanation")
            for name, field in own.items():
                found[name if name not in _RESERVED else f"score.{name}"] = field, _convert(field, batch, name)
            found |= examples.columns()
            calls = key.positions * replications + batch.column("replication").to_numpy()
            texts = responses.take(calls).column("responses").combine_chunks()
            found["response"] = answers.answers_numbered(texts, batch.column("_response_index_"))
            yield _batch(found)


def read_values(aggregation: Aggregation, table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    evaluations = aggregation.manifest["provenance"]["evaluations"]
    names = [_name(aggregation, *each) for each in zip(aggregation.labels, evaluations, strict=True)]
    groups = [dict(by) for by in batch.column("by").to_pylist()]
    attributes = dict.fromkeys(name for by in groups for name in by)
    number = batch.column("evaluation").to_pylist()
    text = pa.field("", pa.string())
    found: _Columns = {
        "task": (text, pa.array([names[n] for n in number], pa.string())),
        "evaluation": (text, pa.array([evaluations[n] for n in number], pa.string())),
    }
    _copy_columns(found, batch, "scorer", "metric", "target")
    found["by"] = rows.json_field("by"), pa.array([ids.encode(list(by)).decode() for by in groups], pa.string())
    for name in attributes:
        found[f"attribute.{name}"] = text, pa.array([by.get(name) for by in groups], pa.string())
    _copy_columns(found, batch, *(n for n in batch.schema.names if n not in found and n != "evaluation"))
    return _batch(found)


def _name(aggregation: Aggregation, label: str, id: str) -> str:
    """The name of an evaluation in the experiment of an aggregation; else the one that it had first, or its id."""
    store, name = aggregation.store, join_name(aggregation.name or "", label)
    if Ref(name, EVALUATIONS, id) in store.named(name):
        return name
    return str((sealed_manifest(store, EVALUATIONS, id) or {}).get("name") or id)


def _copy_columns(found: _Columns, batch: pa.RecordBatch, *names: str) -> None:
    for name in names:
        found[name] = batch.schema.field(name), batch.column(name)


def _constant(text: str, batch: pa.RecordBatch) -> tuple[pa.Field, pa.Array]:
    return pa.field("", pa.string()), pa.repeat(pa.scalar(text, pa.string()), batch.num_rows)


def _seconds(column: pa.Array) -> tuple[pa.Field, pa.Array]:
    return pa.field("", pa.float64()), pc.divide(column.cast(pa.int64()).cast(pa.float64()), 1e6)


_RESERVED = frozenset(("run", "id", "scorer", "input", "expected", "weight", "cluster", "response"))


def _own_fields(evaluation: Evaluation, scorers: Sequence[str], shared: set[str]) -> dict[str, pa.Field]:
    """The scorers' own columns; JSON where two scorers give the same name to different types."""
    found: dict[str, pa.Field] = {}
    for scorer in scorers:
        for field in next(evaluation.batches(scorer)).schema:
            if field.name not in shared:
                alike = found.get(field.name, field)
                same = alike.type == field.type and rows.is_json(alike) == rows.is_json(field)
                found[field.name] = field if same else rows.json_field(field.name)
    return found


def _convert(field: pa.Field, batch: pa.RecordBatch, name: str) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(name)
    if not rows.is_json(field) or rows.is_json(batch.schema.field(name)):
        return column
    return pa.array([None if v is None else ids.encode(v).decode() for v in column.to_pylist()], pa.string())


class _Aligned:
    """The rows of a table that another refers to by ascending numbers, read in a single pass over both."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._held: list[pa.RecordBatch] = [next(self._batches)]
        self._first, self._end = 0, self._held[0].num_rows

    def take(self, numbers: np.ndarray[Any, Any]) -> pa.Table:
        if not len(numbers):
            return pa.Table.from_batches(self._held[:1]).slice(0, 0)
        low, high = int(numbers.min()), int(numbers.max())
        while self._end <= high:
            batch = next(self._batches, None)
            if batch is None:
                raise EngineError(f"row {high} is missing in the store; run `evaluand verify` to see the damage")
            self._held.append(batch)
            self._end += batch.num_rows
            self._forget(low)
        self._forget(low)
        return pa.Table.from_batches(self._held).take(pa.array(numbers - self._first))

    def _forget(self, low: int) -> None:
        while len(self._held) > 1 and self._first + self._held[0].num_rows <= low:
            self._first += self._held.pop(0).num_rows


class _Examples:
    """The examples of some rows, as columns named by their roles."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._names = dataset, dict(role_columns(dataset))
        self._indices = np.frombuffer(dataset.indices, np.int64) if len(dataset) else np.empty(0, np.int64)
        wanted = dict.fromkeys(name for name in (INDEX, dataset.roles.id, *self._names.values()) if name)
        self._aligned = _Aligned(chain([_empty_batch(dataset, list(wanted))], dataset.columns(list(wanted))))

    def move_to(self, indices: pa.Array) -> _Examples:
        """Moves to the examples with these `_index_` values."""
        self.positions = np.searchsorted(self._indices, indices.to_numpy())
        self._table = self._aligned.take(self.positions)
        return self

    def ids(self) -> tuple[pa.Field, pa.Array]:
        name = self._dataset.roles.id or INDEX
        values = self._table.column(name).to_pylist()
        if rows.is_json(self._table.schema.field(name)):
            values = [None if v is None else ids.decode(v) for v in values]
        return pa.field("", pa.string()), pa.array([str(value) for value in values], pa.string())

    def columns(self) -> _Columns:
        return {n: (self._table.schema.field(c), self._table.column(c)) for n, c in self._names.items()}


def _empty_batch(dataset: Dataset, names: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], pa.schema([dataset.schema.field(name) for name in names]))


def role_columns(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """(name in the flat table, column of the dataset)."""
    roles = dataset.roles
    yield from _column_names("input", roles.input)
    yield from _column_names("expected", roles.expected)
    yield from ((f"attribute.{name}", name) for name in roles.attributes)
    yield from ((role, name) for role, name in (("weight", roles.weight), ("cluster", roles.cluster)) if name)
    yield from ((f"metadata.{name}", name) for name in roles.metadata)


def _column_names(role: str, source: str | Sequence[str] | Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    if isinstance(source, str):
        yield role, source
    elif isinstance(source, Mapping):
        yield from ((f"{role}.{target}", column) for target, column in source.items())
    else:
        yield from ((f"{role}.{name}", name) for name in source or ())


class _Answers:
    """The answers of a run in the narrowest type that represents each exactly."""

    def __init__(self, run: Run) -> None:
        self._items = run.items
        self.several, kinds = False, set[str]()
        for batch in run.batches(["n_responses", "responses"]):
            self.several |= bool(pc.any(pc.greater(batch.column(0), 1)).as_py())
            kinds |= _find_kinds(batch.column(1).flatten().field(1))
        kind = kinds.pop() if len(kinds) == 1 and not self._items else "json" if kinds or self._items else "text"
        self._type = _TYPES.get(kind)

    def first(self, batch: pa.RecordBatch) -> tuple[pa.Field, pa.Array]:
        some = pc.greater(batch.column("n_responses"), 0).to_pylist()
        return self.answers_numbered(batch.column("responses"), pa.array([0 if s else None for s in some], pa.int64()))

    def answers_numbered(self, responses: pa.Array, numbers: pa.Array) -> tuple[pa.Field, pa.Array]:
        """The answer of each row with the given number; None for a null number, and where there is no answer."""
        texts = [
            None
            if n is None or items is None
            else self._text([i["value"] for i in items if i["_response_index_"] == n])
            for items, n in zip(responses.to_pylist(), numbers.to_pylist(), strict=True)
        ]
        if self._type is None:
            return rows.json_field(""), pa.array(texts, pa.string())
        return pa.field("", self._type), pa.array([t and orjson.loads(t) for t in texts], self._type)

    def all(self, batch: pa.RecordBatch) -> tuple[pa.Field, pa.Array]:
        """All answers as one list."""
        texts = []
        for items, n in zip(
            batch.column("responses").to_pylist(), batch.column("n_responses").to_pylist(), strict=True
        ):
            parts = [[i["value"] for i in items or () if i["_response_index_"] == number] for number in range(n)]
            texts.append(None if items is None else f"[{','.join(map(self._text, parts))}]")
        return rows.json_field(""), pa.array(texts, pa.string())

    def _text(self, values: Sequence[str]) -> str:
        return f"[{','.join(values)}]" if self._items else values[0]


_TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def _find_kinds(texts: pa.Array) -> set[str]:
    """The kinds of some canonical JSON texts, from their first characters."""
    found = set(map(_BEGINS.get, pc.unique(pc.utf8_slice_codeunits(texts, 0, 1)).to_pylist()))
    if "number" in found:
        found.remove("number")
        numbers = texts.filter(pc.match_substring_regex(texts, "^[-0-9]"))
        fractions = pc.unique(pc.match_substring_regex(numbers, "[.eE]")).to_pylist()
        found |= {"float" if fraction else "int" for fraction in fractions}
    return {kind or "json" for kind in found}


_BEGINS: dict[str, str] = {'"': "text", "t": "bool", "f": "bool"} | dict.fromkeys("-0123456789", "number")
