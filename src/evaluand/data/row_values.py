"""The values of a batch of rows by role, as Python values and as canonical text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity as ids
from evaluand.core.key_columns import INDEX
from evaluand.data.cell_texts import TEXT, cell_texts, digests_of, join_texts, object_pieces
from evaluand.data.roles import Roles
from evaluand.data.source import read_column
from evaluand.store import tables


class RowValues:
    """The values of a batch by role, as columns of Python values.

    Attributes:
        indices: the `_index_` of each row.
        names: its id; None where no column has it.
        content: input, expected, attributes, weight, cluster and metadata of each row.
    """

    def __init__(self, batch: pa.RecordBatch, roles: Roles) -> None:
        n = batch.num_rows
        values = {name: read_column(batch, name) for name in (*roles.columns, INDEX)}
        blank: list[Any] = [None] * n
        self.indices = values[INDEX]
        self.names = values[roles.id] if roles.id else blank
        self.content = (
            join_inputs(values, roles, n),
            _join_expected(values, roles.expected, n),
            _join(values, roles.attributes, n),
            values[roles.weight] if roles.weight else blank,
            values[roles.cluster] if roles.cluster else blank,
            _join(values, roles.metadata, n),
        )

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """What the digest of each row covers: its content and its id."""
        return zip(*self.content, self.names, strict=True)


def join_inputs(values: Mapping[str, list[Any]], roles: Roles, n: int) -> Sequence[Any]:
    """What a task sees of each of `n` rows, from the values of columns."""
    return values[roles.input] if isinstance(roles.input, str) else _join(values, roles.input, n)


def _join(values: Mapping[str, list[Any]], names: Sequence[str], n: int) -> list[dict[str, Any]]:
    if not names:
        return [{} for _ in range(n)]
    return [dict(zip(names, row, strict=True)) for row in zip(*(values[name] for name in names), strict=True)]


def _join_expected(values: Mapping[str, list[Any]], expected: str | Mapping[str, str] | None, n: int) -> list[Any]:
    if expected is None or isinstance(expected, str):
        return [None] * n if expected is None else values[expected]
    rows = zip(*(values[column] for column in expected.values()), strict=True)
    return [dict(zip(expected, row, strict=True)) for row in rows]


def digest_rows(batch: pa.RecordBatch, roles: Roles) -> list[bytes]:
    """The digest of each row: of everything but its index."""
    texts = _texts_of_rows(batch, roles)
    if texts is None:
        return [ids.digest(row) for row in RowValues(batch, roles).rows()]
    return digests_of(texts)


def _texts_of_rows(batch: pa.RecordBatch, roles: Roles) -> pa.Array | None:
    """The canonical text of each row of `RowValues.rows`, joined by Arrow; None if a column needs more than that."""
    expected = roles.expected
    names = () if expected is None or isinstance(expected, str) else expected
    if any(key.startswith("$") for key in (*roles.columns, *names)):  # which canonical text marks
        return None
    cells: dict[str, pa.Array] = {}
    for name in roles.columns:
        text = _texts_of_cells(batch.column(name), batch.schema.field(name))
        if text is None:
            return None
        cells[name] = text
    null: list[Any] = ["null"]
    targets = [] if isinstance(expected, str | None) else _object({t: cells[name] for t, name in expected.items()})
    parts = [
        [cells[roles.input]] if isinstance(roles.input, str) else _object({name: cells[name] for name in roles.input}),
        [cells[expected]] if isinstance(expected, str) else null if expected is None else targets,
        _object({name: cells[name] for name in roles.attributes}),
        [cells[roles.weight]] if roles.weight else null,
        [cells[roles.cluster]] if roles.cluster else null,
        _object({name: cells[name] for name in roles.metadata}),
        [cells[roles.id]] if roles.id else null,
    ]
    pieces: list[Any] = ["["]
    for place, part in enumerate(parts):
        pieces += [*([","] if place else []), *part]
    return join_texts([*pieces, "]"]) if cells else pa.repeat(pa.scalar("".join(pieces) + "]", TEXT), batch.num_rows)


def input_texts(batch: pa.RecordBatch, roles: Roles, reads: Sequence[str]) -> pa.Array | None:
    """The canonical text of what a task sees of each row; None if a column needs more than Arrow.

    Args:
        reads: "index" and "id" where the task reads these, too; the text is then a list that begins with the input.
    """
    name = batch.column(roles.id or INDEX)
    is_plain = pa.types.is_string(name.type) or pa.types.is_signed_integer(name.type)
    if not roles.input or not is_plain or any(key.startswith("$") for key in roles.columns):
        return None
    names = [roles.input] if isinstance(roles.input, str) else [*roles.input]
    cells = {name: _texts_of_cells(batch.column(name), batch.schema.field(name)) for name in names}
    if None in cells.values():
        return None
    shown = [cells[roles.input]] if isinstance(roles.input, str) else _object(cells)
    more = {"index": batch.column(INDEX), "id": name.cast(TEXT)}
    if not reads:
        return join_texts(shown)
    return join_texts(["[", *shown, *chain.from_iterable((",", cell_texts(more[name])) for name in reads), "]"])


def _object(cells: Mapping[str, pa.Array]) -> list[Any]:
    return object_pieces({key: cells[key] for key in sorted(cells)})


def _texts_of_cells(column: pa.Array, field: pa.Field) -> pa.Array | None:
    """The canonical text of each cell of texts, whole or finite numbers or booleans; None for all others."""
    types, kind = pa.types, field.type
    is_plain = types.is_string(kind) or types.is_signed_integer(kind) or types.is_boolean(kind)
    is_finite = types.is_float64(kind) and pc.all(pc.is_finite(column)).as_py() is not False
    return cell_texts(column) if not tables.is_json(field) and (is_plain or is_finite) else None


def digest_column(batch: pa.RecordBatch, roles: Roles) -> pa.Array:
    """The digests of a batch, as binary of 16 bytes."""
    return _as_column(b"".join(digest_rows(batch, roles)), batch.num_rows)


class RowDigests:
    """Computes the digests of rows, and remembers them for batches that are read again with the same bytes."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._known: dict[bytes, bytes] = {}

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """As `digest_column`."""
        content = batch.select(self._roles.columns).serialize()
        key = hashlib.blake2b(content, digest_size=ids.DIGEST_SIZE).digest()
        digests = self._known.get(key)
        if digests is None:
            digests = self._known[key] = b"".join(digest_rows(batch, self._roles))
        return _as_column(digests, batch.num_rows)


class RowNumbers:
    """Numbers rows in place of digests: each has that of its `_index_`, and half a digest of the whole dataset.

    Args:
        batches: of the dataset.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], roles: Roles) -> None:
        state = hashlib.blake2b(digest_size=ids.DIGEST_SIZE // 2)
        for batch in batches:
            state.update(batch.select(roles.columns).serialize())
        self._whole = np.frombuffer(state.digest(), ">i8")[0]

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """A column of the type of `digest_column`."""
        halves = np.full((batch.num_rows, 2), self._whole, ">i8")
        halves[:, 0] = batch.column(INDEX).to_numpy()
        return _as_column(halves.tobytes(), batch.num_rows)


def _as_column(digests: bytes, n: int) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(ids.DIGEST_SIZE), n, [None, pa.py_buffer(digests)])
