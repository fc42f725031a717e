"""Numbers for the elements of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluand.core.errors import kind_of
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.collections import elements, indexes, numbers
from evaluand.data.adapters.base.faults import AdapterError, WrongType
from evaluand.data.adapters.base.options import field_names, options


class EmbedIndex(Adapter):
    """Adds fields that number the elements of one or more `collections`, lists of objects of equal length.

    `index` says which, as for `ExplodeCollections`.

    Example:
        >>> EmbedIndex({"collections": ["c"], "index": {"rank": "$.r[*]"}}).adapt({"c": [{"a": 1}], "r": [7]})
        [{'c': [{'a': 1, 'rank': 7}], 'r': [7]}]
    """

    kind = "EmbedIndex"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        given = options(self.kind, configuration, required=("collections",), optional=("index",))
        self._collections = field_names(self.kind, "collections", given["collections"], some=True)
        self._index = indexes(self.kind, given.get("index", {}))

    def adapt(self, row: Row) -> list[Row]:
        lists, length = elements(row, self._collections)
        index = [(name, numbers(name, path, row, length)) for name, path in self._index.items()]
        made = row.copy()
        for collection, objects in zip(self._collections, lists, strict=True):
            made[collection] = new = [_copied(collection, i, each) for i, each in enumerate(objects)]
            for name, values in index:
                for each, value in zip(new, values, strict=True):
                    if name in each:
                        told = f"has the name of a field of an element of {collection}; give it another"
                        raise AdapterError(f"the index {name!r} {told}")
                    each[name] = value
        return [made]


def _copied(collection: str, place: int, element: Any) -> Row:
    if not isinstance(element, dict):
        raise WrongType(f"{collection}[{place}] is {kind_of(element)}, not an object")
    return element.copy()
