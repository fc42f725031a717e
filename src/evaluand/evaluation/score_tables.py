"""The tables of scores: what a row is, what it adds to the digest of its table, and the one writer of all of them.

Scores reach it in the order of the keys: records of a journal, rows with the scores of all scorers (`KnownRows`), or
columns (`ScoredRows`), merged with records of the rows that they lack. Tables and digests do not depend on which.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final

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

_STATUS = 2  # of a score in the journal
_USAGE_CELL = 9  # of a score in the journal, the last, which is no part of the digest


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

Grade = Callable[[Unit], Sequence[Sequence[Any]]]
"""A row → its scores, as a journal has them."""

ROWS_AT_ONCE: Final = 512


def row_texts(batch: pa.RecordBatch) -> list[bytes]:
    """What the rows of a table add to its digest."""
    columns = [batch.column(name).to_pylist() for name in batch.schema.names if name != "usage"]
    return [_row_text(row[:5], row[6], row[7], row[8:]) for row in zip(*columns, strict=True)]


def _row_text(key: Sequence[Any], status: str, reason: str | None, cells: Sequence[Any]) -> bytes:
    """What a row adds to the digest of its table; the wording of failures does not count."""
    return orjson.dumps([key, status, None if status == FAILED else reason, cells])


def _columns_of(
    keys: Sequence[Key], seen: Sequence[bytes], scores: Sequence[Sequence[Any]], schema: pa.Schema
) -> tuple[list[Any], list[bytes]]:
    """The columns of a scorer's table for scores of the journal, and what each row adds to its digest.

    Args:
        keys: for each score `_index_`, replication and fold of its row.
        seen: the digest of what the scorer could see.
    """
    index, replication, fold = zip(*keys, strict=True)
    numbers, targets, statuses, reasons, values, labels, data, explanations, cells = islice(
        zip(*scores, strict=False), _USAGE_CELL
    )
    texts = [None if value is None else identity.canonical_text(value) for value in data]
    used = [identity.canonical_text(score[_USAGE_CELL]) if len(score) > _USAGE_CELL else None for score in scores]
    own = [
        [_cell(columns.get(name), is_json) if columns else None for columns in cells]
        for name, is_json in _own_columns(schema)
    ]
    rows = zip(
        zip(index, replication, fold, numbers, targets, strict=True),
        statuses,
        reasons,
        zip(values, labels, texts, explanations, *own, strict=True),
        strict=True,
    )
    head = [index, replication, fold, numbers, targets, seen, statuses, reasons, values, labels, texts, explanations]
    return [*head, used, *own], [_row_text(*row) for row in rows]


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
        self._counts = Counter[str]()
        self._draft, self._scorer, self._table, self._used = draft, scorer, f"scores/{scorer}", used
        self.schema, self._inputs = schema, Inputs()
        self._state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
        draft.append(self._table, pa.RecordBatch.from_pylist([], schema))

    @property
    def counts(self) -> dict[str, int]:
        return dict(self._counts)

    def add(self, keys: Sequence[Key], records: Sequence[Record]) -> None:
        """Adds the scores of rows of the run, as a journal has them."""
        for slot, _, _, *opened in records:
            if opened:
                self._inputs.add(slot, opened)
        seen = [bytes.fromhex(digest) for _, digest, *_ in records]
        self.add_scores(keys, [record[0] for record in records], seen, [record[2] for record in records])

    def add_scores(
        self,
        keys: Sequence[Key],
        slots: Sequence[int],
        seen: Sequence[bytes],
        rows: Sequence[Sequence[Sequence[Any]]],
    ) -> None:
        """Adds the scores of rows of the run, of each of which the scorer sees something with a digest."""
        if not all(len(scores) == 1 for scores in rows):
            places = [place for place, scores in enumerate(rows) for _ in scores]
            keys, slots = [keys[place] for place in places], [slots[place] for place in places]
            seen = [seen[place] for place in places]
        scores = [*chain.from_iterable(rows)]
        if not scores:
            return
        columns, texts = _columns_of(keys, seen, scores, self.schema)
        for slot, score in zip(slots, scores, strict=True):
            if len(score) > _USAGE_CELL and score[_USAGE_CELL]:
                self._used.add(slot, score[_USAGE_CELL])
        self._counts.update(score[_STATUS] for score in scores)
        self._state.update(b"".join(texts))
        self._draft.append(self._table, tables.batch_of(columns, self.schema))

    def add_batch(self, batch: pa.RecordBatch, texts: Sequence[bytes]) -> None:
        """Adds rows, of which the texts are what `row_texts` gives."""
        self._state.update(b"".join(texts))
        self._counts.update(
            {each["values"]: each["counts"] for each in batch.column("status").value_counts().to_pylist()}
        )
        self._draft.append(self._table, batch)

    def finish(self) -> bytes:
        """Writes the files that were opened; returns the digest of the table."""
        if (opened := self._inputs.batch()) is not None:
            self._draft.append(f"inputs/{self._scorer}", opened)
        return self._state.digest()


def write_rows(
    written: Mapping[str, ScoreTable],
    grades: Mapping[str, Grade],
    keys: Iterator[Key],
    stream: RowStream,
    known: KnownRows | None,
) -> Iterator[int]:
    """Writes the scores of the rows of a run, known or given now, to the tables of scorers that see the same of them.

    Args:
        grades: scorer → what grades the rows that are not known.
        keys: of all rows.
        known: if there is any, no scorer sees traces.

    Yields:
        How many rows are written.
    """
    digests, first = stream.digests(), 0
    while part := [*islice(keys, ROWS_AT_ONCE)]:
        slots = range(first, first + len(part))
        rows = [{}] * len(part) if known is None else [*islice(known.rows, len(part))]
        has_others = any(len(row) < len(grades) for row in rows)
        units = [*stream.take(slots.start, slots.stop)] if has_others else [None] * len(part)
        seen = [unit.digest for unit in units if unit] if known is None else [*islice(digests, len(part))]
        for name, grade in grades.items():
            scores = [
                grade(unit) if unit is not None and name not in row else ((0, None, *row[name], None),)
                for row, unit in zip(rows, units, strict=True)
            ]
            written[name].add_scores(part, slots, seen, scores)
        first += len(part)
        yield first


def known_batches(
    known: ScoredRows, graded: Sequence[Record], stream: RowStream, schema: pa.Schema
) -> Iterator[tuple[pa.RecordBatch, list[bytes]]]:
    """The rows of a table in batches, and what each adds to its digest.

    Args:
        known: the scores of some rows of the run.
        graded: the records of the others, in order.
        stream: the rows of the run, one for each example.
    """
    rows, digests = _KnownColumns(known, schema), stream.digests()
    first = 0
    bounds = np.array([record[0] for record in graded])
    for whole in stream.run.batches([INDEX, "replication", "fold"]):
        for start in range(0, whole.num_rows, tables.BATCH_ROWS):
            keys = whole.slice(start, tables.BATCH_ROWS)
            seen = [*islice(digests, keys.num_rows)]
            low, high = np.searchsorted(bounds, [first, first + keys.num_rows])
            yield rows.merged(keys, seen, graded[low:high], first) if low < high else rows.take(keys, seen)
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
        of_rows = [place for place, record in zip(places, records, strict=True) for _ in record[2]]
        digests = [bytes.fromhex(record[1]) for record in records for _ in record[2]]
        scores = [score for record in records for score in record[2]]
        columns, texts = _columns_of([(*names[at].values(),) for at in of_rows], digests, scores, self._schema)
        rest = np.setdiff1d(np.arange(keys.num_rows), places)
        batch, known_texts = self.take(keys.take(pa.array(rest)), [seen[place] for place in rest.tolist()])
        both = pa.Table.from_batches([batch, tables.batch_of(columns, self._schema)])
        order, both_texts = np.argsort(np.concatenate([rest, of_rows]), kind="stable"), [*known_texts, *texts]
        merged = both.take(pa.array(order)).combine_chunks().to_batches()[0]
        return merged, [both_texts[place] for place in order.tolist()]
