"""Fields under other names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evaluand.core.errors import nearest
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.options import AbsentField, AdapterError, AdapterSpecError, WrongArguments

if TYPE_CHECKING:
    import pyarrow as pa


class Rename(Adapter):
    """Renames fields, all at once, so that two can swap names: `{old: new}`. They come last, as in Dyff.

    Example:
        >>> Rename({"text": "prompt"}).adapt({"text": "hello", "n": 2})
        [{'n': 2, 'prompt': 'hello'}]
    """

    kind = "Rename"

    def __init__(self, configuration: Mapping[str, str]) -> None:
        super().__init__(configuration)
        self._names = self._read_names()

    def adapt(self, row: Row) -> list[Row]:
        new_row = row.copy()
        try:
            new_row |= {new: new_row.pop(old) for old, new in self._names.items()}
        except KeyError:
            raise self._find_fault(row) from None
        if len(new_row) != len(row):
            raise self._find_fault(row)
        return [new_row]

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        names = set(batch.schema.names)
        others = [name for name in batch.schema.names if name not in self._names]
        if not self._names.keys() <= names or set(others) & set(self._names.values()):
            return None
        return batch.select([*others, *self._names]).rename_columns([*others, *self._names.values()])

    def _read_names(self) -> dict[str, str]:
        names = self.configuration
        if names is None:
            raise WrongArguments(f"{self.kind}: the configuration is missing; give an object: old name: new name")
        if not isinstance(names, Mapping) or not all(isinstance(n, str) for pair in names.items() for n in pair):
            raise AdapterSpecError(f"{self.kind}: the configuration is {names!r}; give an object: old name: new name")
        repeated = [name for name, times in Counter(names.values()).items() if times > 1]
        if repeated:
            raise AdapterSpecError(f"{self.kind}: several fields would be called {', '.join(map(repr, repeated))}")
        return dict(names)

    def _find_fault(self, fields: Row) -> AdapterError:
        for old, new in self._names.items():
            if old not in fields:
                return AbsentField(f"there is no field {old!r}{nearest(old, fields)}")
            if new in fields and new not in self._names:
                return AdapterError(
                    f"{old!r} cannot be renamed to {new!r}: the row has a field of that name; rename or drop that too"
                )
        raise AssertionError(self._names, list(fields))
