"""Artifacts as flat tables: for pandas, spreadsheets and other programs that read rows.

Each artifact becomes a stream of Arrow batches with flat columns, so memory stays bounded:

    run           one row per call: `_index_`, id, replication, status, response, error, the example, usage
    evaluation    one row per score: the key, status, value, the scorer's columns, the example, the response
    aggregation   one row per value; `by` lists the attributes it is grouped by, none for the value over all rows
    matches       one row per match, with its systems by name, the winner and what the judge saw
    ratings       one row per system, best first, or those of `win_rates`, `differences`, `parameters` and `bias`
    dataset       one row per example, with the columns' names
    recording     one row per damaged line of its journal, if there were any

Columns with a role in the dataset are called `input`, `expected`, `attribute.NAME`, `weight`, `cluster` and
`metadata.NAME`; if a role has several columns, `input.NAME` and `expected.TARGET`. So no name of a user can hide a
column of evaluand.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from orjson import Fragment

from evaluand.aggregation.aggregator import Aggregation
from evaluand.apps.recording.stored import Recording
from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, SpecError, nearest, singular, warn
from evaluand.core.files.csv import escape_formula
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.data.dataset import Dataset
from evaluand.data.row_filter import RowFilter
from evaluand.evaluation.evaluator import Evaluation
from evaluand.judges.cards.card import TABLES as TABLES_OF_CARDS, JudgeCard
from evaluand.matches.battle_export import battle_batches
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.stored import TABLES as TABLES_OF_RATINGS, Ratings
from evaluand.run.runner import Run
from evaluand.store import tables as rows
from evaluand.trace import STATUSES

Artifact = Run | Evaluation | Aggregation | Matches | Ratings | JudgeCard | Dataset | Recording

DAMAGED_LINES = "damaged_lines"
FORMATS = ("csv", "jsonl", "parquet")
_ROW_GROUP_ROWS = 32_768
_ROW_GROUP_BYTES = 16 << 20


def list_tables(artifact: Artifact) -> list[str]:
    """The names of the tables of an artifact, the default first."""
    if isinstance(artifact, Run):
        return ["responses", "spans", "examples"]
    if isinstance(artifact, Evaluation):
        return ["tidy", *artifact.scorers]
    if isinstance(artifact, Matches):
        return ["matches"]
    if isinstance(artifact, Ratings):
        return list(TABLES_OF_RATINGS)
    if isinstance(artifact, JudgeCard):
        return list(TABLES_OF_CARDS)
    if isinstance(artifact, Recording):
        return [DAMAGED_LINES] if DAMAGED_LINES in artifact.manifest.get("tables", ()) else []
    return ["metrics", "curves"] if isinstance(artifact, Aggregation) else ["examples"]


def flat(
    artifact: Artifact, table: str | None = None, *, status: str | None = None, where: str | None = None
) -> pa.RecordBatchReader:
    """The rows of an artifact as a stream of flat batches.

    `.read_all()` makes it an Arrow table, `.read_pandas()` a data frame. A column whose values are not all text, all
    numbers or all booleans holds canonical JSON text, marked in its field; see `store.tables.is_json`.

    Args:
        artifact: a sealed run, evaluation, aggregation, set of matches or ratings, card or recording, or a dataset.
        table: one of `list_tables`; None takes the first. The name of a scorer selects its rows.
        status: only rows with this status.
        where: only rows that match this condition (see `RowFilter`), by the names of these columns or of the dataset's;
            a warning says how many rows match nothing because a value is missing.

    Raises:
        SpecError: the artifact has no such table or status, or is not finished; or the condition is wrong.

    Example:
        >>> from evaluand.run.runner import Runner
        >>> run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}, {"input": "b"}]))
        >>> flat(run).read_all().select(["id", "input", "status", "response"]).to_pylist()[1]
        {'id': '1', 'input': 'b', 'status': 'completed', 'response': 'B'}
    """
    known = list_tables(artifact)
    if not known:
        raise SpecError(f"recording {artifact.id} has no damaged lines; its calls are in its run, so export that")
    table = known[0] if table is None else table
    if table not in known:
        raise SpecError(f"no table is called {table!r}{nearest(table, known)}; there are {', '.join(known)}")
    if not isinstance(artifact, Dataset) and "digest" not in artifact.manifest:
        raise SpecError(f"{singular(artifact.manifest['kind'])} {artifact.id} is not finished; resume it first")
    if status is not None:
        _check_status(status, artifact, table)
    batches = _read_table(artifact, table)
    first = next(batches)  # every table has at least one batch, possibly empty
    whole: Iterator[pa.RecordBatch] = chain([first], batches)
    if status is not None:
        whole = (batch.filter(pc.equal(batch.column("status"), status)) for batch in whole)
    if where is not None:
        condition, names = RowFilter(where), _dataset_names(artifact, first.schema)
        condition.check(first.schema, names)
        whole = _matching(whole, condition, names)
    return pa.RecordBatchReader.from_batches(first.schema, whole)


def _dataset_names(artifact: Artifact, schema: pa.Schema) -> dict[str, str]:
    """The names of a dataset's columns → their names in a flat table, where they differ."""
    if isinstance(artifact, Recording | Matches | Ratings | JudgeCard):
        return {}
    if isinstance(artifact, Aggregation):
        found = ((name, name.removeprefix("attribute.")) for name in schema.names)
    else:
        dataset = artifact.dataset if isinstance(artifact, Run) else artifact
        found = (pair for pair in _role_columns(_dataset_of(dataset)))
    return {native: name for name, native in found if native not in schema.names and name in schema.names}


def _dataset_of(artifact: Evaluation | Dataset) -> Dataset:
    if isinstance(artifact, Dataset):
        return artifact
    return Run(artifact.store, artifact.manifest["provenance"]["run"]).dataset


def _matching(
    batches: Iterator[pa.RecordBatch], condition: RowFilter, names: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """The rows that match a condition; warns at the end of those that match nothing because a value is missing."""
    total = missing = 0
    for batch in batches:
        matching, unknown = condition.apply(batch, names)
        total, missing = total + batch.num_rows, missing + unknown
        yield matching
    if missing:
        warn(f"where: {condition.describe_unknown(missing, total)}, which matches nothing")


def _check_status(status: str, artifact: Artifact, table: str) -> None:
    known: Sequence[str] = rows.SCORE_STATUSES if isinstance(artifact, Evaluation | Matches) else ()
    if isinstance(artifact, Run):
        known = {"responses": rows.RESPONSE_STATUSES, "spans": STATUSES}.get(table, ())
    if not known:
        raise SpecError(f"the rows of {table} have no status; leave out --status")
    if status not in known:
        raise SpecError(
            f"rows of {table} have no status {status!r}{nearest(status, known)}; there are {', '.join(known)}"
        )


# Written forms


def write_csv(batches: pa.RecordBatchReader, file: IO[bytes], *, raw: bool = False) -> int:
    """Writes rows as CSV; texts are quoted, so an empty text differs from a missing one.

    Args:
        raw: do not put a `'` before texts that a spreadsheet would read as a formula.

    Returns:
        The number of rows.
    """
    written = 0
    file.write((",".join(_quote_cell(name, raw) for name in batches.schema.names) + "\n").encode())
    for batch in batches:
        columns = [_format_column(f, batch.column(i), raw) for i, f in enumerate(batch.schema)]
        file.write("".join(",".join(row) + "\n" for row in zip(*columns, strict=True)).encode())
        written += batch.num_rows
    return written


def write_jsonl(batches: pa.RecordBatchReader, file: IO[bytes]) -> int:
    """Writes rows as JSON lines, with JSON columns as JSON. Returns the number of rows."""
    written, names = 0, batches.schema.names
    for batch in batches:
        columns = [_json_values(f, batch.column(i)) for i, f in enumerate(batch.schema)]
        for row in zip(*columns, strict=True):
            file.write(json_line(dict(zip(names, row, strict=True))) + b"\n")
        written += batch.num_rows
    return written


def json_line(row: Any) -> bytes:
    """A row as JSON on one line: bytes as base64, other values without a JSON form as `identity.encode` writes them."""
    try:
        return orjson.dumps(row, default=_encode_other)
    except TypeError:  # an integer beyond 64 bits, or nesting too deep for orjson
        return json.dumps(row, separators=(",", ":"), default=lambda value: orjson.loads(json_line(value))).encode()


def write_parquet(batches: pa.RecordBatchReader, file: IO[bytes]) -> int:
    """Writes rows as Parquet, which preserves all types and values. Returns the number of rows."""
    import pyarrow.parquet as pq

    written = size = 0
    pending: list[pa.RecordBatch] = []
    with pq.ParquetWriter(file, batches.schema, compression="zstd") as writer:
        for batch in batches:
            pending.append(batch)
            written, size = written + batch.num_rows, size + batch.nbytes
            if sum(b.num_rows for b in pending) >= _ROW_GROUP_ROWS or size >= _ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(pending))
                pending, size = [], 0
        if pending:
            writer.write_table(pa.Table.from_batches(pending))
    return written


def _format_column(field: pa.Field, column: pa.Array, raw: bool) -> list[str]:
    values = column.to_pylist()
    if rows.is_json(field):  # a JSON text that begins with a minus is a number
        return ["" if value is None else _quote_cell(value, raw=True) for value in values]
    if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
        return ["" if value is None else _quote_cell(value, raw) for value in values]
    return ["" if value is None else _format_cell(value) for value in values]


def _quote_cell(text: str, raw: bool) -> str:
    text = text if raw else escape_formula(text)
    return '"' + text.replace('"', '""') + '"'


def _format_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return _quote_cell(base64.b64encode(value).decode(), raw=True)
    return _quote_cell(ids.encode(value).decode(), raw=True)


def _json_values(field: pa.Field, column: pa.Array) -> list[Any]:
    values = column.to_pylist()
    return [v if v is None else Fragment(v) for v in values] if rows.is_json(field) else values


def _encode_other(value: Any) -> Any:
    """The JSON of a value that orjson cannot write."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else Fragment(ids.encode(value))


# Tables


_Columns = dict[str, tuple[pa.Field, Any]]


def _read_table(artifact: Artifact, table: str) -> Iterator[pa.RecordBatch]:
    if isinstance(artifact, Aggregation):
        return iter([_read_values(artifact, artifact.table() if table == "metrics" else artifact.curves())])
    if isinstance(artifact, Evaluation):
        return _read_scores(artifact, artifact.scorers if table == "tidy" else [table])
    if isinstance(artifact, Matches):
        return battle_batches(artifact)
    if isinstance(artifact, Ratings | JudgeCard):
        return artifact.store.read(artifact.kind, artifact.id, table)
    if isinstance(artifact, Recording):
        return artifact.store.read(artifact.kind, artifact.id, table)
    if isinstance(artifact, Dataset) or table == "examples":
        return _read_dataset(artifact if isinstance(artifact, Dataset) else artifact.dataset)
    return _read_responses(artifact) if table == "responses" else _read_spans(artifact)


def _batch(columns: _Columns) -> pa.RecordBatch:
    arrays = [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for _, a in columns.values()]
    schema = pa.schema([field.with_name(name) for name, (field, _) in columns.items()])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read_dataset(dataset: Dataset) -> Iterator[pa.RecordBatch]:
    names = [name for name in dataset.schema.names if name != DIGEST]
    yield _empty_batch(dataset, names)
    yield from dataset.columns(names)


def _read_responses(run: Run) -> Iterator[pa.RecordBatch]:
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


def _read_spans(run: Run) -> Iterator[pa.RecordBatch]:
    examples = _Examples(run.dataset)
    for batch in chain([pa.RecordBatch.from_pylist([], rows.SPANS)], run.spans()):
        found: _Columns = {}
        _copy_columns(found, batch, INDEX)
        found["id"] = examples.move_to(batch.column(INDEX)).ids()
        _copy_columns(found, batch, *(name for name in rows.SPANS.names if name != INDEX))
        for name in ("start", "duration"):
            found[name] = _seconds(batch.column(name))
        yield _batch(found)


def _read_scores(evaluation: Evaluation, scorers: Sequence[str]) -> Iterator[pa.RecordBatch]:
    run = Run(evaluation.store, evaluation.manifest["provenance"]["run"])
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


def _read_values(aggregation: Aggregation, table: pa.Table) -> pa.RecordBatch:
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    evaluations = aggregation.manifest["provenance"]["evaluations"]
    names = [_name(aggregation, id) for id in evaluations]
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


def _name(aggregation: Aggregation, evaluation: str) -> str:
    try:
        return str(aggregation.store.manifest("evaluations", evaluation)["name"] or evaluation)
    except EngineError:  # the evaluation is not in this store
        return evaluation


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
        self._dataset, self._names = dataset, dict(_role_columns(dataset))
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


def _role_columns(dataset: Dataset) -> Iterator[tuple[str, str]]:
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
