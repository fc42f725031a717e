"""Adapters applied to the elements of lists."""

from collections.abc import Mapping
from typing import Any

from evaluand.data.adapters.base.adapter import Adapter, Row, create_inner_pipeline
from evaluand.data.adapters.base.collections import read_collection
from evaluand.data.adapters.base.options import AdapterError, AdapterSpecError, read_field_names, read_options


class Map(Adapter):
    """Applies an `adapter`, or a list of them, to the elements of each of the `collections`, lists of objects.

    A list grows or shrinks where the adapter returns several or no objects for an element.

    Example:
        >>> adapter = {"kind": "Rename", "configuration": {"x": "y"}}
        >>> Map({"collections": ["r"], "adapter": adapter}).adapt({"r": [{"x": 1}, {"x": 2}]})
        [{'r': [{'y': 1}, {'y': 2}]}]
    """

    kind = "Map"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        options = read_options(self.kind, configuration, required=("collections", "adapter"))
        self._collections = read_field_names(self.kind, "collections", options["collections"])
        self._pipeline = create_inner_pipeline(self.kind, options["adapter"])
        if self._pipeline.last:
            raise AdapterSpecError(
                f"{self.kind}: FileUpload prepares requests; it cannot be applied to the elements of a list"
            )

    def adapt(self, row: Row) -> list[Row]:
        new_row = dict(row)
        for name in self._collections:
            new_row[name] = new = list[Row]()
            for place, element in enumerate(read_collection(row, name)):
                try:
                    new += self._pipeline.apply(element)
                except AdapterError as error:
                    error.add_place(f"{name}[{place}]")
                    raise
        return [new_row]
