"""Some fields only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.core.registry import nearest
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.faults import AbsentField
from evaluand.data.adapters.base.options import field_names, options

if TYPE_CHECKING:
    import pyarrow as pa


class Select(Adapter):
    """Keeps the `fields` named, in their order, and drops the others.

    Example:
        >>> Select({"fields": ["text"]}).adapt({"text": "hello", "label": 1})
        [{'text': 'hello'}]
    """

    kind = "Select"

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        given = options(self.kind, configuration, required=("fields",))
        self._fields = field_names(self.kind, "fields", given["fields"])

    def adapt(self, row: Row) -> list[Row]:
        try:
            return [{name: row[name] for name in self._fields}]
        except KeyError as error:
            (name,) = error.args
            raise AbsentField(f"there is no field {name!r}{nearest(name, row)}") from None

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        if not self._fields or not set(self._fields) <= set(batch.schema.names):
            return None  # a batch without columns forgets how many rows it has
        return batch.select(list(self._fields))
