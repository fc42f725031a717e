"""An adapter on the elements of lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluand.data.adapters.base.adapter import Adapter, Row, nested
from evaluand.data.adapters.base.collections import collection
from evaluand.data.adapters.base.faults import AdapterError, AdapterSpecError
from evaluand.data.adapters.base.options import field_names, options


class Map(Adapter):
    """Applies an `adapter`, or a list of them, to the elements of each of the `collections`, lists of objects.

    The lists become longer or shorter as the adapter makes more or fewer of an element.

    Example:
        >>> adapter = {"kind": "Rename", "configuration": {"x": "y"}}
        >>> Map({"collections": ["r"], "adapter": adapter}).adapt({"r": [{"x": 1}, {"x": 2}]})
        [{'r': [{'y': 1}, {'y': 2}]}]
    """

    kind = "Map"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        given = options(self.kind, configuration, required=("collections", "adapter"))
        self._collections = field_names(self.kind, "collections", given["collections"])
        self._pipeline = nested(self.kind, given["adapter"])
        if self._pipeline.last:
            raise AdapterSpecError(
                f"{self.kind}: FileUpload makes requests; it cannot be applied to elements of a list"
            )

    def adapt(self, row: Row) -> list[Row]:
        made = dict(row)
        for name in self._collections:
            made[name] = self._mapped(name, collection(row, name))
        return [made]

    def _mapped(self, name: str, elements: Any) -> list[Row]:
        made: list[Row] = []
        place = 0
        try:
            for place, element in enumerate(elements):  # noqa: B007 - the message tells which
                made += self._pipeline.through(element)
        except AdapterError as error:
            error.add_place(f"{name}[{place}]")
            raise
        return made
