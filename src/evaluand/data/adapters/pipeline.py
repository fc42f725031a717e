"""Several adapters in the place of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row, nested

if TYPE_CHECKING:
    import pyarrow as pa


class Nested(Adapter):
    """Applies a list of adapters one after the other, where a single one is asked for.

    Example:
        >>> rename = {"kind": "Rename", "configuration": {"text": "prompt"}}
        >>> Nested([rename, {"kind": "Select", "configuration": {"fields": ["prompt"]}}]).adapt({"text": "hi", "n": 1})
        [{'prompt': 'hi'}]
    """

    kind = "Pipeline"
    of_objects = False

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        self._pipeline = nested(self.kind, self.configuration)
        self.last = self._pipeline.last

    def adapt(self, row: Row) -> Sequence[Row]:
        return self._pipeline.through(row)

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return self._pipeline.columns(batch)
