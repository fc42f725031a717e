"""Rows without some of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.options import read_field_names, read_options

if TYPE_CHECKING:
    import pyarrow as pa


class Drop(Adapter):
    """Removes the `fields` named; a field that a row lacks is ignored.

    Example:
        >>> Drop({"fields": ["label"]}).adapt({"text": "hello", "label": 1})
        [{'text': 'hello'}]
    """

    kind = "Drop"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        options = read_options(self.kind, configuration, required=("fields",))
        self._fields = frozenset(read_field_names(self.kind, "fields", options["fields"]))

    def adapt(self, row: Row) -> list[Row]:
        new_row = row.copy()
        for name in self._fields:
            new_row.pop(name, None)
        return [new_row]

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        names = [name for name in batch.schema.names if name not in self._fields]
        return batch.select(names) if names else None  # a batch without columns loses its number of rows
