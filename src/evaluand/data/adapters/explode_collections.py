"""From lists to rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.collections import elements, indexes, numbers
from evaluand.data.adapters.base.columns import exploded
from evaluand.data.adapters.base.faults import AdapterError
from evaluand.data.adapters.base.options import field_names, options

if TYPE_CHECKING:
    import pyarrow as pa


class ExplodeCollections(Adapter):
    """Makes a row of each element of one or more `collections`, lists of equal length; the other fields are repeated.

    `index` adds fields that number the new rows: `{"rank": null}` counts from 0, `{"rank": "$.ranks[*]"}` takes as
    many values from the row before. An empty list gives no row.

    Example:
        >>> ExplodeCollections({"collections": ["text"], "index": {"i": None}}).adapt({"text": ["a", "b"], "n": 1})
        [{'text': 'a', 'n': 1, 'i': 0}, {'text': 'b', 'n': 1, 'i': 1}]
    """

    kind = "ExplodeCollections"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        given = options(self.kind, configuration, required=("collections",), optional=("index",))
        self._collections = field_names(self.kind, "collections", given["collections"], some=True)
        self._index = indexes(self.kind, given.get("index", {}))
        (_, self._first), *self._others = enumerate((*self._collections, *self._index))
        self._places = dict.fromkeys(self._index)

    def adapt(self, row: Row) -> list[Row]:
        lists, length = elements(row, self._collections)
        if self._places:
            for name, path in self._index.items():
                if name in row:
                    raise AdapterError(f"the index {name!r} has the name of a field that is there; give it another")
                lists.append(numbers(name, path, row, length))
            row = row | self._places  # to copy an object costs less than to let it grow
        first, copy, made = self._first, row.copy, []
        for value in lists[0]:
            new = copy()
            new[first] = value
            made.append(new)
        for place, name in self._others:
            for new, value in zip(made, lists[place]):  # noqa: B905 - of one length; the check costs a tenth of it all
                new[name] = value
        return made

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return exploded(batch, self._collections, self._index)
