"""Scores that are known before an evaluation: they become its tables without a journal line for each row.

They are columns (`ScoredRows`), or rows with the scores of all scorers (`KnownRows`). The tables and their digests are
those of the same scores graded and journalled row by row. Rows that are not known are graded by the scorer and merged
into the table in the order of the keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from orjson import Fragment

from evaluand.core import identity
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.data.cell_texts import cell_texts, join_texts
from evaluand.engine.keyed_work import Tally
from evaluand.evaluation.units import RowStream, Unit
from evaluand.store import tables
from evaluand.store.store import Draft
from evaluand.store.tables import FAILED, SCORED

SHARED = frozenset(tables.scores_schema({}).names)
"""The columns that the tables of all scorers have."""

N_SHARED = len(SHARED) - 1
"""How many of them precede `usage`, which is no part of the digest."""


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

    def schema(self, columns: Mapping[str, str]) -> pa.Schema:
        """The schema of the table of a scorer with such columns."""
        schema = tables.scores_schema(columns)
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


def row_digest(row: Sequence[Any]) -> bytes:
    """What a row of scores, without `usage`, adds to its table's digest; the wording of failures does not count."""
    *key, _, status, reason = row[:8]
    return orjson.dumps([key, status, None if status == FAILED else reason, row[8:]])


def digest_table(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, int], bytes]:
    """The rows of a scorer's table by status, and its digest."""
    state, counts = hashlib.blake2b(digest_size=identity.DIGEST_SIZE), dict[str, int]()
    for batch in batches:
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name != "usage"}
        for status, *row in zip(columns["status"], *columns.values(), strict=True):
            state.update(row_digest(row))
            counts[status] = counts.get(status, 0) + 1
    return counts, state.digest()


def table_rows(
    record: Sequence[Any], key: tuple[int, int, int | None], own: Sequence[tuple[str, bool]]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The rows of a scorer's table for a record of the journal, each without and then the cell of `usage`.

    Args:
        key: `_index_`, replication and fold.
        own: the scorer's own columns, and whether they hold JSON.
    """
    _, digest, scores, *_ = record
    for number, target, status, reason, value, label, data, explanation, columns, *usage in scores:
        cells = [_cell(columns.get(name), is_text) for name, is_text in own] if columns else [None] * len(own)
        text = None if data is None else identity.canonical_text(data)
        head = (*key, number, target, bytes.fromhex(digest), status, reason, value, label, text, explanation)
        yield (*head, *cells), identity.canonical_text(usage[0]) if usage else None


def _cell(value: Any, is_json: bool) -> Any:
    return identity.canonical_text(value) if is_json and value is not None else value


def own_columns(schema: pa.Schema) -> list[tuple[str, bool]]:
    """The scorer's own columns of its table, and whether they hold JSON."""
    return [(field.name, tables.is_json(field)) for field in schema if field.name not in SHARED]


def write_scored_rows(
    draft: Draft,
    table: str,
    schema: pa.Schema,
    stream: RowStream,
    known: ScoredRows,
    graded: Iterable[bytes],
) -> tuple[dict[str, int], bytes]:
    """Writes a scorer's table.

    Args:
        schema: of the table.
        stream: the rows of the run, one for each example.
        known: the scores of some.
        graded: the journal's lines of the others, in order.

    Returns:
        The number of rows by status, and the digest of the table.
    """
    writer = _Writer(schema, known)
    others = map(orjson.loads, graded)
    other = next(others, None)
    digests = stream.digests()
    for keys in stream.run.batches([INDEX, "replication", "fold"]):
        seen, records = [*islice(digests, keys.num_rows)], []
        while other is not None and other[0] < writer.position + keys.num_rows:
            records.append(other)
            other = next(others, None)
        for start in range(0, keys.num_rows, tables.BATCH_ROWS):
            part = slice(start, min(start + tables.BATCH_ROWS, keys.num_rows))
            stop = writer.position + part.stop - part.start
            here = [record for record in records if writer.position <= record[0] < stop]
            draft.append(table, writer.batch(keys.slice(start, part.stop - start), seen[part], here))
    return writer.counts, writer.state.digest()


Grade = Callable[[Unit], list[Any]]
"""Grades a row: its record as the journal has it."""


def write_known_rows(
    draft: Draft, scorers: Mapping[str, Grade], stream: RowStream, known: KnownRows, tally: Tally
) -> dict[str, tuple[dict[str, int], bytes]]:
    """Writes the tables of several scorers without columns of their own in one pass over the run.

    Args:
        scorers: name → what grades the rows that are not known.
        stream: the rows of the run.
        tally: counts the rows.

    Returns:
        For each scorer the number of rows by status, and the digest of the table.
    """
    written = {name: _KnownTable(name, grade, tally) for name, grade in scorers.items()}
    digests, slot = stream.digests(), 0
    for batch in stream.run.batches([INDEX, "replication", "fold"]):
        for start in range(0, batch.num_rows, tables.BATCH_ROWS):
            keys = [
                *zip(*(column.to_pylist() for column in batch.slice(start, tables.BATCH_ROWS).columns), strict=True)
            ]
            scores, seen = [*islice(known.rows, len(keys))], [*islice(digests, len(keys))]
            has_others = any(len(row) < len(written) for row in scores)
            units = [*stream.take(slot, slot + len(keys))] if has_others else [None] * len(keys)
            slot += len(keys)
            for table in written.values():
                table.add(draft, zip(keys, seen, scores, units, strict=True))
    return {name: table.finish(draft) for name, table in written.items()}


class _KnownTable:
    """The table of one scorer."""

    def __init__(self, name: str, grade: Grade, tally: Tally) -> None:
        self._name, self._table, self._grade, self._tally = name, f"scores/{name}", grade, tally
        self._writer = tables.TableWriter(tables.scores_schema({}))
        self._counts: dict[str, int] = {}
        self._state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)

    def add(
        self, draft: Draft, rows: Iterable[tuple[tuple[Any, ...], bytes, Mapping[str, Sequence[Any]], Unit | None]]
    ) -> None:
        """Adds rows: the key, the digest of what the scorer sees, the known scores, and what is graded without one."""
        for key, digest, scores, unit in rows:
            if (cells := scores.get(self._name)) is not None:
                self._tally.reused += 1
                status, reason, value, label, data, explanation = cells
                text = None if data is None else identity.canonical_text(data)
                self._add_row((*key, 0, None, digest, status, reason, value, label, text, explanation), None)
            elif unit is not None:
                self._tally.called += 1
                for row, usage in table_rows(self._grade(unit), key, ()):
                    self._add_row(row, usage)
            if self._writer.is_full:
                self._writer.flush(draft, self._table)

    def finish(self, draft: Draft) -> tuple[dict[str, int], bytes]:
        """Writes the last rows; returns the number of rows by status, and the digest of the table."""
        self._writer.flush(draft, self._table)
        return self._counts, self._state.digest()

    def _add_row(self, row: tuple[Any, ...], usage: Any) -> None:
        self._state.update(row_digest(row))
        self._counts[row[6]] = self._counts.get(row[6], 0) + 1
        self._writer.add((*row, usage), sum([len(cell) for cell in row[10:] if cell]))


class _Writer:
    """Builds the batches of a table of scores.

    Attributes:
        position: of the next row of the run.
        counts: rows by status.
        state: of the digest.
    """

    def __init__(self, schema: pa.Schema, known: ScoredRows) -> None:
        self.schema = schema
        self.own = own_columns(schema)
        n = len(known)
        self._index = known.index
        self._value = known.value.cast(pa.float64())
        self._cells = [
            known.columns[name].cast(schema.field(name).type)
            if known.columns.get(name) is not None
            else pa.nulls(n, schema.field(name).type)
            for name, _ in self.own
        ]
        self._digested = [
            known.stand_ins.get(name, cells) for (name, _), cells in zip(self.own, self._cells, strict=True)
        ]
        self._place = self.position = 0
        self.counts: dict[str, int] = {}
        self.state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)

    def batch(self, keys: pa.RecordBatch, seen: Sequence[bytes], records: Sequence[list[Any]]) -> pa.RecordBatch:
        """The rows of a part of the run.

        Args:
            keys: `_index_`, replication and fold of each row.
            seen: the digest of what the scorer can see of each.
            records: of the rows whose scores are not known, the records of the journal.
        """
        first, self.position = self.position, self.position + keys.num_rows
        is_known = np.ones(keys.num_rows, bool)
        is_known[[record[0] - first for record in records]] = False
        places = np.flatnonzero(is_known)
        if not records:
            found, texts = self._known_rows(keys, seen)
            self.state.update(b"".join(texts))
            return found
        found, texts = self._known_rows(keys.take(pa.array(places)), [seen[place] for place in places.tolist()])
        by_place: list[bytes] = [b""] * keys.num_rows
        for place, text in zip(places.tolist(), texts, strict=True):
            by_place[place] = text
        others, other_places = self._other_rows(keys, records, first, by_place)
        self.state.update(b"".join(by_place))
        order = np.argsort(np.concatenate([places, other_places]), kind="stable")
        both = pa.Table.from_batches([found, others]).take(pa.array(order)).combine_chunks()
        return both.to_batches()[0]

    def _known_rows(self, keys: pa.RecordBatch, seen: Sequence[bytes]) -> tuple[pa.RecordBatch, list[bytes]]:
        """The next rows whose scores are known, and what each adds to the digest."""
        n, start = keys.num_rows, self._place
        self._place += n
        value, cells = self._value.slice(start, n), [column.slice(start, n) for column in self._cells]
        columns = dict(zip((name for name, _ in self.own), cells, strict=True)) | {"value": value}
        columns |= {name: keys.column(name) for name in (INDEX, "replication", "fold")}
        columns |= {RESPONSE_INDEX: pa.array(np.zeros(n, np.int64)), "digest": pa.array(seen, pa.binary(16))}
        columns["status"] = pa.array([SCORED] * n, pa.string())
        arrays = [columns[f.name] if f.name in columns else pa.nulls(n, f.type) for f in self.schema]
        texts = [] if not n else join_texts(self._pieces(keys, value, start)).cast(pa.large_binary()).to_pylist()
        if n:
            self.counts[SCORED] = self.counts.get(SCORED, 0) + n
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), texts

    def _pieces(self, keys: pa.RecordBatch, value: pa.Array, start: int) -> list[Any]:
        """Of each row what `row_digest` gives, for `join_texts`."""
        index, replication, fold = (cell_texts(keys.column(name)) for name in (INDEX, "replication", "fold"))
        own = (cell_texts(column.slice(start, len(value))) for column in self._digested)
        end = chain.from_iterable((",", texts) for texts in own)
        head = ["[[", index, ",", replication, ",", fold, f',0,null],"{SCORED}",null,[']
        return [*head, cell_texts(value), ",null,null,null", *end, "]]"]

    def _other_rows(
        self, keys: pa.RecordBatch, records: Sequence[list[Any]], first: int, texts: list[bytes]
    ) -> tuple[pa.RecordBatch, list[int]]:
        """The rows of records with their places; sets what they add to the digest."""
        columns = [keys.column(name).to_pylist() for name in (INDEX, "replication", "fold")]
        rows, places = [], []
        for record in records:
            place = record[0] - first
            key = (columns[0][place], columns[1][place], columns[2][place])
            for row, usage in table_rows(record, key, self.own):
                texts[place] += row_digest(row)
                self.counts[row[6]] = self.counts.get(row[6], 0) + 1
                rows.append((*row[:N_SHARED], usage, *row[N_SHARED:]))
                places.append(place)
        arrays = [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), places
