"""Rows with some of their fields only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.core.errors import nearest
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.options import AbsentField, read_field_names, read_options

if TYPE_CHECKING:
    import pyarrow as pa


class Select(Adapter):
    """Keeps only the `fields` named, in that order.

    Example:
        >>> Select({"fields": ["text"]}).adapt({"text": "hello", "label": 1})
        [{'text': 'hello'}]
    """

    kind = "Select"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        options = read_options(self.kind, configuration, required=("fields",))
        self._fields = read_field_names(self.kind, "fields", options["fields"])

    def adapt(self, row: Row) -> list[Row]:
        try:
            return [{name: row[name] for name in self._fields}]
        except KeyError as error:
            (name,) = error.args
            raise AbsentField(f"there is no field {name!r}{nearest(name, row)}") from None

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        if not self._fields or not set(self._fields) <= set(batch.schema.names):
            return None  # a batch without columns loses its number of rows
        return batch.select(list(self._fields))
