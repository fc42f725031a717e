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
    """Renames fields, all at once, so that two can swap names: `{old: new}`.

    Example:
        >>> Rename({"text": "prompt"}).adapt({"text": "hello", "n": 2})
        [{'prompt': 'hello', 'n': 2}]
    """

    kind = "Rename"

    def __init__(self, configuration: Mapping[str, str]) -> None:
        super().__init__(configuration)
        self._names = self._read_names()

    def adapt(self, row: Row) -> list[Row]:
        names, new_row = self._names, {}
        for name, value in row.items():
            new_row[names[name] if name in names else name] = value  # noqa: SIM401 - half the time of `get`
        if len(new_row) != len(row):
            raise self._find_fault(row)
        for old in names:
            if old not in row:
                raise self._find_fault(row)
        return [new_row]

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        old = batch.schema.names
        new = [self._names.get(name, name) for name in old]
        return batch.rename_columns(new) if len(set(new)) == len(old) and self._names.keys() <= set(old) else None

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
