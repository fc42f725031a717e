"""One row per element of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.collections import number_elements, read_collections, read_index
from evaluand.data.adapters.base.columns import explode
from evaluand.data.adapters.base.options import AdapterError, read_field_names, read_options

if TYPE_CHECKING:
    import pyarrow as pa


class ExplodeCollections(Adapter):
    """Returns one row per element of one or more `collections`, lists of equal length; other fields are repeated.

    `index` adds fields that number the new rows: `{"rank": null}` counts from 0, `{"rank": "$.ranks[*]"}` takes one
    value per new row from the original row. An empty list gives no row.

    Example:
        >>> ExplodeCollections({"collections": ["text"], "index": {"i": None}}).adapt({"text": ["a", "b"], "n": 1})
        [{'text': 'a', 'n': 1, 'i': 0}, {'text': 'b', 'n': 1, 'i': 1}]
    """

    kind = "ExplodeCollections"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        options = read_options(self.kind, configuration, required=("collections",), optional=("index",))
        self._collections = read_field_names(self.kind, "collections", options["collections"], unique=True)
        self._index = read_index(self.kind, options.get("index", {}))
        (_, self._first), *self._others = enumerate((*self._collections, *self._index))
        self._places = dict.fromkeys(self._index)

    def adapt(self, row: Row) -> list[Row]:
        lists, length = read_collections(row, self._collections)
        if self._places:
            for name, path in self._index.items():
                if name in row:
                    raise AdapterError(f"the index {name!r} has the name of an existing field; rename it")
                lists.append(number_elements(name, path, row, length))
            row = row | self._places  # copying a complete object costs less than growing each copy
        first, copy, rows = self._first, row.copy, []
        for value in lists[0]:
            new = copy()
            new[first] = value
            rows.append(new)
        for place, name in self._others:
            for new, value in zip(rows, lists[place]):  # noqa: B905 - equal lengths; the check takes 10 % of the time
                new[name] = value
        return rows

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return explode(batch, self._collections, self._index)
