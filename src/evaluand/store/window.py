"""A view of a store through which only the rows of some examples are read.

Runs, evaluations and datasets of such a store have no other rows, so whatever reads them costs as much as the row
groups of these examples, not as much as the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.key_columns import INDEX

if TYPE_CHECKING:
    from evaluand.store.directory import DirectoryStore
    from evaluand.store.parquet import Window


class WindowedStore:
    """A store with the rows of some examples alone.

    Args:
        store: the store.
        within: the lowest and the highest `_index_`.
    """

    def __init__(self, store: DirectoryStore, within: Window) -> None:
        self._store, self._within = store, within

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, kind: str, id: str, table: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of these examples; one empty batch if there are none. Tables without `_index_` are whole."""
        low, high = self._within
        empty: pa.RecordBatch | None = None
        is_empty = True
        wanted = columns if columns is None or INDEX in columns else [*columns, INDEX]
        for batch in self._store.read(kind, id, table, wanted, self._within):
            if INDEX in batch.schema.names:
                index = batch.column(INDEX)
                batch = batch.filter(pc.and_(pc.greater_equal(index, low), pc.less_equal(index, high)))
            batch = batch if columns is None else batch.select(columns)
            empty = batch.slice(0, 0)
            if batch.num_rows:
                is_empty = False
                yield batch
        if is_empty and empty is not None:
            yield empty
