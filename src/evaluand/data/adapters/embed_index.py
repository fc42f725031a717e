"""Number fields in the elements of lists."""

from collections.abc import Mapping
from typing import Any

from evaluand.core.errors import kind_of
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.collections import number_elements, read_collections, read_index
from evaluand.data.adapters.base.options import AdapterError, WrongType, read_field_names, read_options


class EmbedIndex(Adapter):
    """Adds fields that number the elements of one or more `collections`, lists of objects of equal length.

    `index` names the fields, as for `ExplodeCollections`.

    Example:
        >>> EmbedIndex({"collections": ["c"], "index": {"rank": "$.r[*]"}}).adapt({"c": [{"a": 1}], "r": [7]})
        [{'c': [{'a': 1, 'rank': 7}], 'r': [7]}]
    """

    kind = "EmbedIndex"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        options = read_options(self.kind, configuration, required=("collections",), optional=("index",))
        self._collections = read_field_names(self.kind, "collections", options["collections"], unique=True)
        self._index = read_index(self.kind, options.get("index", {}))

    def adapt(self, row: Row) -> list[Row]:
        lists, length = read_collections(row, self._collections)
        index = [(name, number_elements(name, path, row, length)) for name, path in self._index.items()]
        new_row = row.copy()
        for collection, objects in zip(self._collections, lists, strict=True):
            for place, element in enumerate(objects):
                if not isinstance(element, dict):
                    raise WrongType(f"{collection}[{place}] is {kind_of(element)}, not an object")
            new_row[collection] = new = [element.copy() for element in objects]
            for name, values in index:
                for each, value in zip(new, values, strict=True):
                    if name in each:
                        raise AdapterError(
                            f"the index {name!r} has the name of a field of an element of {collection}; rename it"
                        )
                    each[name] = value
        return [new_row]
