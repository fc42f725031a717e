"""A pipeline used as a single adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row, create_inner_pipeline

if TYPE_CHECKING:
    import pyarrow as pa


class NestedPipeline(Adapter):
    """Applies a list of adapters in order where a single adapter is expected, as in `Map`.

    Example:
        >>> rename = {"kind": "Rename", "configuration": {"text": "prompt"}}
        >>> select = {"kind": "Select", "configuration": {"fields": ["prompt"]}}
        >>> NestedPipeline([rename, select]).adapt({"text": "hi", "n": 1})
        [{'prompt': 'hi'}]
    """

    kind = "Pipeline"
    objects_only = False

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        self._pipeline = create_inner_pipeline(self.kind, self.configuration)
        self.last = self._pipeline.last

    def adapt(self, row: Row) -> Sequence[Row]:
        return self._pipeline.apply(row)

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return self._pipeline.adapt_batch(batch)
