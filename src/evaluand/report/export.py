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
from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from orjson import Fragment

from evaluand.core import identity as ids
from evaluand.core.errors import SpecError, nearest, warn
from evaluand.core.files.csv import escape_formula
from evaluand.data.dataset import Dataset
from evaluand.data.row_filter import RowFilter
from evaluand.report.flat_rows import role_columns
from evaluand.store import tables as rows
from evaluand.store.kinds import find_kind, singular

FORMATS = ("csv", "jsonl", "parquet")
_ROW_GROUP_ROWS = 32_768
_ROW_GROUP_BYTES = 16 << 20


def view_of(artifact: Any) -> Any:
    """The `KindView` of an artifact."""
    return find_kind(artifact.kind).shown


def list_tables(artifact: Any) -> list[str]:
    """The names of the tables of an artifact, the default first."""
    return list(view_of(artifact).tables(artifact))


def flat(
    artifact: Any, table: str | None = None, *, status: str | None = None, where: str | None = None
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
        raise SpecError(f"{singular(artifact.manifest['kind'])} {artifact.id} has no {view_of(artifact).lacks}")
    table = known[0] if table is None else table
    if table not in known:
        raise SpecError(f"no table is called {table!r}{nearest(table, known)}; there are {', '.join(known)}")
    if not isinstance(artifact, Dataset) and "digest" not in artifact.manifest:
        raise SpecError(f"{singular(artifact.manifest['kind'])} {artifact.id} is not finished; resume it first")
    if status is not None:
        _check_status(status, artifact, table)

    def rows() -> Iterator[pa.RecordBatch]:
        batches = view_of(artifact).rows(artifact, table)
        return batches if status is None else (b.filter(pc.equal(b.column("status"), status)) for b in batches)

    whole = rows()
    first = next(whole)  # every table has at least one batch, possibly empty
    whole = chain([first], whole) if where is None else _matching(rows, RowFilter(where), artifact, first.schema)
    return pa.RecordBatchReader.from_batches(first.schema, whole)


def _dataset_names(artifact: Any, schema: pa.Schema) -> dict[str, str]:
    """The names of a dataset's columns → their names in a flat table, where they differ."""
    dataset = view_of(artifact).dataset(artifact)
    if dataset is None:  # groups are named by attributes
        named = [(name, name.removeprefix("attribute.")) for name in schema.names if name.startswith("attribute.")]
    else:
        named = [*role_columns(dataset)]
    return {native: name for name, native in named if native not in schema.names and name in schema.names}


def _matching(
    rows: Callable[[], Iterator[pa.RecordBatch]], condition: RowFilter, artifact: Any, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows that match a condition; warns of those that match nothing because a value is missing."""
    mask = condition.mask_of(rows(), schema, names=_dataset_names(artifact, schema))
    if mask.null_count:
        warn(f"where: {condition.describe_unknown(mask.null_count, len(mask))}, which matches nothing")

    def matching() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in rows():
            yield batch.filter(mask.slice(start, batch.num_rows))
            start += batch.num_rows

    return matching()


def _check_status(status: str, artifact: Any, table: str) -> None:
    known = view_of(artifact).statuses(table)
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
