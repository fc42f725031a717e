"""A view of a store through which only the rows of some examples are read.

Runs, evaluations and datasets of such a store have no other rows, so whatever reads them costs as much as the row
groups of these examples, not as much as the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.key_columns import INDEX
from evaluand.store.store import ALL, Rows

if TYPE_CHECKING:
    from evaluand.store.store import Indices, Store


class WindowedStore:
    """A store with the rows of some examples alone.

    Args:
        store: the store.
        indices: their `_index_`, in any order.
    """

    def __init__(self, store: Store, indices: Iterable[int]) -> None:
        self._store, self._indices = store, np.unique(np.fromiter(indices, np.int64))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(
        self, kind: str, id: str, table: str, columns: list[str] | None = None, rows: Rows = ALL
    ) -> Iterator[pa.RecordBatch]:
        """The rows of these examples; one empty batch if there are none. Tables without `_index_` are whole."""
        wanted = columns if columns is None or INDEX in columns else [*columns, INDEX]
        indices = self._indices if rows.of is None else np.intersect1d(self._indices, rows.of)
        chosen, empty, is_empty = pa.array(indices, pa.int64()), None, True
        for batch in self._store.read(kind, id, table, wanted, Rows(indices, rows.at)):
            is_last = False
            if INDEX in batch.schema.names:
                seen = batch.column(INDEX)  # by which tables are sorted
                is_last = len(seen) > 0 and (not len(indices) or seen[-1].as_py() > indices[-1])
                batch = batch.filter(pc.is_in(batch.column(INDEX), value_set=chosen))
            batch = batch if columns is None else batch.select(columns)
            if batch.num_rows:
                is_empty = False
                yield batch
            else:
                empty = batch
            if is_last:
                break
        if is_empty and empty is not None:
            yield empty


def take_rows(batches: Iterator[pa.RecordBatch], places: Indices) -> Iterator[pa.RecordBatch]:
    """The rows at some places, ascending; no empty batches."""
    first = 0
    for batch in batches:
        start, stop = np.searchsorted(places, [first, first + batch.num_rows])
        if stop > start:
            yield batch.take(pa.array(places[start:stop] - first))
        first += batch.num_rows
        if stop == len(places):
            return
