"""A new structure, filled from the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.columns import templated
from evaluand.data.adapters.base.faults import WrongArguments
from evaluand.data.adapters.base.template import compiled

if TYPE_CHECKING:
    import pyarrow as pa


class TransformJSON(Adapter):
    """Makes a row of the configuration's structure; fields it does not name are dropped.

    Texts that begin with `$` are paths into the row and must lead to exactly one value; `$$` stands for a `$` at the
    beginning of a text or key; `{"$compute": …}` computes a value. See `evaluand.data.adapters.base.template`.

    Example:
        >>> TransformJSON({"prompt": "$.text", "n": 2}).adapt({"text": "hello", "label": "x"})
        [{'prompt': 'hello', 'n': 2}]
    """

    kind = "TransformJSON"
    of_objects = False

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        if configuration is None:
            raise WrongArguments(f"{self.kind}: the configuration is missing; give the structure of the new rows")
        self._made = compiled(self.configuration, self.kind)

    def adapt(self, row: Row) -> list[Row]:
        return [self._made(row)]

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return templated(self.configuration, batch)
