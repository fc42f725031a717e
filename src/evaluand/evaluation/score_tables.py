"""The tables of scores: what a row is, what it adds to the digest of its table, and the one writer of all of them.

Scores reach it in the order of the keys: records of a journal, rows with the scores of all scorers (`KnownRows`), or
columns (`ScoredRows`), merged with records of the rows that they lack. Tables and digests do not depend on which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from orjson import Fragment

from evaluand.core import identity
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.data.cell_texts import cell_texts, join_texts
from evaluand.engine.reuse import Inputs
from evaluand.evaluation.units import RowStream, Unit
from evaluand.models.usage_total import RowUsage
from evaluand.store import tables
from evaluand.store.store import Draft
from evaluand.store.tables import FAILED, SCORED

SHARED = frozenset(tables.scores_schema({}).names)
"""The columns that the tables of all scorers have."""

_USAGE = len(SHARED) - 1  # the place of `usage`, the last of them, which is no part of the digest


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows that are scored: each the first response of a run's first replication, with one target.

    Attributes:
        index: the `_index_` of each row, ascending.
        value: the value of each.
        columns: name → cells of the scorer's own column; a column that is not here is null.
        json: the names of the columns that hold canonical JSON.
        stand_ins: name → what stands for each cell in the digest, of columns that the table holds as they are here and
            not in the form that the scorer declares.
    """

    index: np.ndarray[Any, np.dtype[np.int64]]
    value: pa.Array
    columns: Mapping[str, pa.Array]
    json: frozenset[str] = frozenset()
    stand_ins: Mapping[str, pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.index)

    def fitted(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the table of these scores of a scorer whose table usually has another one."""
        for name in self.stand_ins:
            schema = schema.set(schema.get_field_index(name), pa.field(name, self.columns[name].type))
        return schema

    def records(self) -> Iterator[tuple[tuple[int, int], list[Any]]]:
        """The key of each row and its scores, as an evaluation's journal has them."""
        cells = [self._cells(name, column) for name, column in self.columns.items()]
        for index, value, *own in zip(self.index.tolist(), self.value.to_pylist(), *cells, strict=True):
            columns = dict(zip(self.columns, own, strict=True))
            yield (index, 0), [[0, None, SCORED, None, value, None, None, None, columns]]

    def among(self, indices: np.ndarray[Any, np.dtype[np.int64]]) -> ScoredRows:
        """The rows that are among those with these indices."""
        known = np.isin(self.index, indices)
        if known.all():
            return self
        mask = pa.array(known)
        columns, stand_ins = (
            {name: column.filter(mask) for name, column in every.items()} for every in (self.columns, self.stand_ins)
        )
        return ScoredRows(self.index[known], self.value.filter(mask), columns, self.json, stand_ins)

    def _cells(self, name: str, column: pa.Array) -> list[Any]:
        values: list[Any] = column.to_pylist()
        return [None if text is None else Fragment(text) for text in values] if name in self.json else values


@dataclass(frozen=True, eq=False)
class KnownRows:
    """The scores of all scorers of an evaluation, in the order of the rows of the run.

    Attributes:
        rows: for each row: scorer → status, reason, value, label, data and explanation of the first response. A row
            that lacks a scorer is graded by it. They are read once.
    """

    rows: Iterator[Mapping[str, Sequence[Any]]]

    def __contains__(self, scorer: str) -> bool:
        return True


Key = tuple[int, int, int | None]
"""`_index_`, replication and fold of a row of a run."""

Record = Sequence[Any]
"""The scores of a row of a run as a journal has them, see `grading`."""

Grade = Callable[[Unit], Record]


def row_texts(batch: pa.RecordBatch) -> list[bytes]:
    """What the rows of a table add to its digest."""
    columns = [batch.column(name).to_pylist() for name in batch.schema.names if name != "usage"]
    return [_row_text(row[:5], row[6], row[7], row[8:]) for row in zip(*columns, strict=True)]


def _row_text(key: Sequence[Any], status: str, reason: str | None, cells: Sequence[Any]) -> bytes:
    """What a row adds to the digest of its table; the wording of failures does not count."""
    return orjson.dumps([key, status, None if status == FAILED else reason, cells])


def _table_row(
    score: Sequence[Any], key: Key, seen: bytes, own: Sequence[tuple[str, bool]]
) -> tuple[tuple[Any, ...], bytes]:
    """The row of a scorer's table for a score of the journal, and what it adds to the digest.

    Args:
        key: `_index_`, replication and fold.
        seen: the digest of what the scorer could see.
        own: the scorer's own columns, and whether they hold JSON.
    """
    number, target, status, reason, value, label, data, explanation, columns, *usage = score
    text = None if data is None else identity.canonical_text(data)
    cells = [_cell(columns.get(name), is_text) for name, is_text in own] if columns else [None] * len(own)
    used = identity.canonical_text(usage[0]) if usage else None
    row = (*key, number, target, seen, status, reason, value, label, text, explanation, used, *cells)
    return row, _row_text(row[:5], status, reason, (value, label, text, explanation, *cells))


def _cell(value: Any, is_json: bool) -> Any:
    return identity.canonical_text(value) if is_json and value is not None else value


def _own_columns(schema: pa.Schema) -> list[tuple[str, bool]]:
    """The scorer's own columns of its table, and whether they hold JSON."""
    return [(field.name, tables.is_json(field)) for field in schema if field.name not in SHARED]


class ScoreTable:
    """The table of a scorer while it is written.

    Args:
        used: counts the usage of its rows.

    Attributes:
        schema: its columns.
        counts: rows by status.
    """

    def __init__(self, draft: Draft, scorer: str, schema: pa.Schema, used: RowUsage) -> None:
        self.counts: dict[str, int] = {}
        self._draft, self._scorer, self._table, self._used = draft, scorer, f"scores/{scorer}", used
        self.schema, self._own = schema, _own_columns(schema)
        self._rows, self._inputs = tables.TableWriter(schema), Inputs()
        self._state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
        draft.append(self._table, pa.RecordBatch.from_pylist([], schema))

    def add(self, key: Key, record: Record) -> None:
        """Adds the scores of a row of the run, as a journal has them."""
        slot, digest, scores, *opened = record
        if opened:
            self._inputs.add(slot, opened)
        self.add_scores(key, slot, bytes.fromhex(digest), scores)

    def add_scores(self, key: Key, slot: int, seen: bytes, scores: Iterable[Sequence[Any]]) -> None:
        """Adds the scores of a row of the run, of which the scorer sees something with a digest."""
        for score in scores:
            row, text = _table_row(score, key, seen, self._own)
            self._state.update(text)
            self.counts[row[6]] = self.counts.get(row[6], 0) + 1
            if row[_USAGE]:
                self._used.add(slot, orjson.loads(row[_USAGE]))
            self._rows.add(row, len(text))
        if self._rows.is_full:
            self._rows.flush(self._draft, self._table)

    def add_batch(self, batch: pa.RecordBatch, texts: Sequence[bytes]) -> None:
        """Adds rows, of which the texts are what `row_texts` gives."""
        self._state.update(b"".join(texts))
        for each in batch.column("status").value_counts().to_pylist():
            self.counts[each["values"]] = self.counts.get(each["values"], 0) + each["counts"]
        self._draft.append(self._table, batch)

    def finish(self) -> bytes:
        """Writes the last rows, and the files that were opened; returns the digest of the table."""
        self._rows.flush(self._draft, self._table)
        if (opened := self._inputs.batch()) is not None:
            self._draft.append(f"inputs/{self._scorer}", opened)
        return self._state.digest()


def write_known_rows(
    known: KnownRows,
    written: Mapping[str, ScoreTable],
    grades: Mapping[str, Grade],
    keys: Iterator[Key],
    stream: RowStream,
) -> Iterator[int]:
    """Writes the scores of the rows of a run, known or given now, to the tables of their scorers.

    Args:
        grades: scorer → what grades the rows that are not known.
        keys: of all rows.

    Yields:
        How many rows are written.
    """
    digests, slot = stream.digests(), 0
    while part := [*islice(keys, tables.BATCH_ROWS)]:
        rows = [*islice(known.rows, len(part))]
        has_others = any(len(row) < len(grades) for row in rows)
        units = stream.take(slot, slot + len(part)) if has_others else repeat(None, len(part))
        for key, scores, seen, unit in zip(part, rows, islice(digests, len(part)), units, strict=True):
            for name, grade in grades.items():
                if unit is None or name in scores:
                    written[name].add_scores(key, slot, seen, ((0, None, *scores[name], None),))
                else:
                    written[name].add(key, grade(unit))
            slot += 1
        yield slot


def known_batches(
    known: ScoredRows, graded: Iterable[bytes], stream: RowStream, schema: pa.Schema
) -> Iterator[tuple[pa.RecordBatch, list[bytes]]]:
    """The rows of a table in batches, and what each adds to its digest.

    Args:
        known: the scores of some rows of the run.
        graded: the journal's lines of the others, in order.
        stream: the rows of the run, one for each example.
    """
    rows, digests = _KnownColumns(known, schema), stream.digests()
    others, first = [orjson.loads(line) for line in graded], 0
    bounds = np.array([record[0] for record in others])
    for whole in stream.run.batches([INDEX, "replication", "fold"]):
        for start in range(0, whole.num_rows, tables.BATCH_ROWS):
            keys = whole.slice(start, tables.BATCH_ROWS)
            seen = [*islice(digests, keys.num_rows)]
            low, high = np.searchsorted(bounds, [first, first + keys.num_rows])
            yield rows.merged(keys, seen, others[low:high], first) if low < high else rows.take(keys, seen)
            first += keys.num_rows


class _KnownColumns:
    """Builds rows of known columns, from the first to the last."""

    def __init__(self, known: ScoredRows, schema: pa.Schema) -> None:
        self._schema, self._own, self._place = schema, _own_columns(schema), 0
        self._cells = {
            name: known.columns[name].cast(schema.field(name).type)
            if known.columns.get(name) is not None
            else pa.nulls(len(known), schema.field(name).type)
            for name, _ in self._own
        } | {"value": known.value.cast(pa.float64())}
        self._digested = [known.stand_ins.get(name, self._cells[name]) for name, _ in self._own]

    def take(self, keys: pa.RecordBatch, seen: Sequence[bytes]) -> tuple[pa.RecordBatch, list[bytes]]:
        """The next rows, and what each adds to the digest.

        Args:
            keys: `_index_`, replication and fold of each.
            seen: the digest of what the scorer can see of each.
        """
        n, start = keys.num_rows, self._place
        self._place += n
        columns = {name: cells.slice(start, n) for name, cells in self._cells.items()}
        columns |= {name: keys.column(name) for name in (INDEX, "replication", "fold")}
        columns |= {RESPONSE_INDEX: pa.array(np.zeros(n, np.int64)), "digest": pa.array(seen, pa.binary(16))}
        columns["status"] = pa.repeat(SCORED, n)
        arrays = [columns[f.name] if f.name in columns else pa.nulls(n, f.type) for f in self._schema]
        index, replication, fold = (cell_texts(columns[name]) for name in (INDEX, "replication", "fold"))
        own = chain.from_iterable((",", cell_texts(cells.slice(start, n))) for cells in self._digested)
        key = ["[[", index, ",", replication, ",", fold, f',0,null],"{SCORED}",null,[']
        pieces = [*key, cell_texts(columns["value"]), ",null,null,null", *own, "]]"]
        texts: list[bytes] = join_texts(pieces).cast(pa.large_binary()).to_pylist() if n else []
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema), texts

    def merged(
        self, keys: pa.RecordBatch, seen: Sequence[bytes], records: Sequence[Record], first: int
    ) -> tuple[pa.RecordBatch, list[bytes]]:
        """As `take`, with the rows of records in their places.

        Args:
            first: the slot of the first row.
        """
        names, places = keys.to_pylist(), [record[0] - first for record in records]
        rows, texts, of_rows = list[tuple[Any, ...]](), list[bytes](), list[int]()
        for record, place in zip(records, places, strict=True):
            for score in record[2]:
                row, text = _table_row(score, (*names[place].values(),), bytes.fromhex(record[1]), self._own)
                rows.append(row)
                texts.append(text)
                of_rows.append(place)
        rest = np.setdiff1d(np.arange(keys.num_rows), places)
        batch, known_texts = self.take(keys.take(pa.array(rest)), [seen[place] for place in rest.tolist()])
        arrays = [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), self._schema, strict=True)]
        both = pa.Table.from_batches([batch, pa.RecordBatch.from_arrays(arrays, schema=self._schema)])
        order, both_texts = np.argsort(np.concatenate([rest, of_rows]), kind="stable"), [*known_texts, *texts]
        merged = both.take(pa.array(order)).combine_chunks().to_batches()[0]
        return merged, [both_texts[place] for place in order.tolist()]
