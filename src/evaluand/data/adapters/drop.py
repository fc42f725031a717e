"""Without some fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.options import field_names, options

if TYPE_CHECKING:
    import pyarrow as pa


class Drop(Adapter):
    """Leaves out the `fields` named; that one is not there is no fault.

    Example:
        >>> Drop({"fields": ["label"]}).adapt({"text": "hello", "label": 1})
        [{'text': 'hello'}]
    """

    kind = "Drop"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        given = options(self.kind, configuration, required=("fields",))
        self._fields = frozenset(field_names(self.kind, "fields", given["fields"]))

    def adapt(self, row: Row) -> list[Row]:
        return [{name: value for name, value in row.items() if name not in self._fields}]

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        kept = [name for name in batch.schema.names if name not in self._fields]
        return batch.select(kept) if kept else None  # a batch without columns forgets how many rows it has
