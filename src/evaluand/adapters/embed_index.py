"""Numbers for the elements of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluand.adapter import Adapter, Row
from evaluand.adapter.collections import Index, elements
from evaluand.adapter.faults import AdapterError, WrongType, told
from evaluand.adapter.options import field_names, options


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
        self._index = Index(self.kind, given.get("index", {}))

    def adapt(self, row: Row) -> list[Row]:
        lists, length = elements(row, self._collections)
        values = [list(numbers) for numbers in self._index.values(row, length)]
        made = dict(row)
        for name, objects in zip(self._collections, lists, strict=True):
            made[name] = [self._numbered(name, i, each, values) for i, each in enumerate(objects)]
        return [made]

    def _numbered(self, collection: str, place: int, element: Any, values: list[list[Any]]) -> Row:
        if not isinstance(element, Mapping):
            raise WrongType(f"{collection}[{place}] is {told(element)}, not an object")
        taken = [name for name in self._index.names if name in element]
        if taken:
            raise AdapterError(f"the index {taken[0]!r} has the name of a field of {collection}[{place}]")
        return {**element, **{name: numbers[place] for name, numbers in zip(self._index.names, values, strict=True)}}
