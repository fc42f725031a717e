"""From lists to rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.adapter import Adapter, Row
from evaluand.adapter.collections import Index, elements
from evaluand.adapter.columns import exploded
from evaluand.adapter.faults import AdapterError
from evaluand.adapter.options import field_names, options

if TYPE_CHECKING:
    import pyarrow as pa


class ExplodeCollections(Adapter):
    """Makes a row of each element of one or more `collections`, lists of equal length; the other fields are repeated.

    `index` adds fields that number the new rows: `{"rank": null}` counts from 0, `{"rank": "$.ranks[*]"}` takes as
    many values from the row before. An empty list gives no row.

    Example:
        >>> ExplodeCollections({"collections": ["text"], "index": {"i": None}}).adapt({"text": ["a", "b"], "n": 1})
        [{'n': 1, 'text': 'a', 'i': 0}, {'n': 1, 'text': 'b', 'i': 1}]
    """

    kind = "ExplodeCollections"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        given = options(self.kind, configuration, required=("collections",), optional=("index",))
        self._collections = field_names(self.kind, "collections", given["collections"], some=True)
        self._index = Index(self.kind, given.get("index", {}))

    def adapt(self, row: Row) -> list[Row]:
        lists, length = elements(row, self._collections)
        names = (*self._collections, *self._index.names)
        taken = [name for name in self._index.names if name in row]
        if taken:
            raise AdapterError(f"the index {taken[0]!r} has the name of a field that is there")
        rest = {name: value for name, value in row.items() if name not in self._collections}
        columns = (*lists, *self._index.values(row, length))
        if len(names) == 1:
            (name,) = names
            return [{**rest, name: value} for value in columns[0]]
        return [{**rest, **dict(zip(names, values, strict=True))} for values in zip(*columns, strict=True)]

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return exploded(batch, self._collections, self._index)
