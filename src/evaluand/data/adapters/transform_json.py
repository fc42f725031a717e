"""A new structure filled from the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.columns import apply_template
from evaluand.data.adapters.base.options import WrongArguments
from evaluand.data.adapters.base.template import compile_template

if TYPE_CHECKING:
    import pyarrow as pa


class TransformJSON(Adapter):
    """Returns a row with the structure of the configuration; fields that it does not name are dropped.

    Texts that begin with `$` are paths into the row and must lead to exactly one value; write `$$` for a literal `$`
    at the beginning of a text or key; `{"$compute": …}` computes a value. See `evaluand.data.adapters.base.template`.

    Example:
        >>> TransformJSON({"prompt": "$.text", "n": 2}).adapt({"text": "hello", "label": "x"})
        [{'prompt': 'hello', 'n': 2}]
    """

    kind = "TransformJSON"
    objects_only = False

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        if configuration is None:
            raise WrongArguments(f"{self.kind}: the configuration is missing; give the structure of the new rows")
        self._compute = compile_template(self.configuration, self.kind)

    def adapt(self, row: Row) -> list[Row]:
        return [self._compute(row)]

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        return apply_template(self.configuration, batch)
