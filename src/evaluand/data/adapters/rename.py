"""Other names for fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evaluand.core.registry import nearest
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.faults import AbsentField, AdapterError, AdapterSpecError, WrongArguments

if TYPE_CHECKING:
    import pyarrow as pa


class Rename(Adapter):
    """Gives fields other names, all at once, so that two can change theirs: `{old: new}`.

    Example:
        >>> Rename({"text": "prompt"}).adapt({"text": "hello", "n": 2})
        [{'prompt': 'hello', 'n': 2}]
    """

    kind = "Rename"

    def __init__(self, configuration: Mapping[str, str]) -> None:
        super().__init__(configuration)
        self._names = self._checked()

    def adapt(self, row: Row) -> list[Row]:
        names, made = self._names, {}
        for name, value in row.items():
            made[names[name] if name in names else name] = value  # noqa: SIM401 - half the time of `get`
        if len(made) != len(row):
            raise self._fault(row)
        for old in names:
            if old not in row:
                raise self._fault(row)
        return [made]

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        old = batch.schema.names
        new = [self._names.get(name, name) for name in old]
        return batch.rename_columns(new) if len(set(new)) == len(old) and self._names.keys() <= set(old) else None

    def _checked(self) -> dict[str, str]:
        names = self.configuration
        if names is None:
            raise WrongArguments(f"{self.kind}: the configuration is missing; give an object: old name: new name")
        if not isinstance(names, Mapping) or not all(isinstance(n, str) for pair in names.items() for n in pair):
            raise AdapterSpecError(f"{self.kind}: the configuration is {names!r}; give an object: old name: new name")
        twice = [name for name, times in Counter(names.values()).items() if times > 1]
        if twice:
            raise AdapterSpecError(f"{self.kind}: several fields are to be called {', '.join(map(repr, twice))}")
        return dict(names)

    def _fault(self, fields: Row) -> AdapterError:
        for old, new in self._names.items():
            if old not in fields:
                return AbsentField(f"there is no field {old!r}{nearest(old, fields)}")
            if new in fields and new not in self._names:
                return AdapterError(
                    f"{old!r} cannot be called {new!r}: there is a field of that name; rename or drop that too"
                )
        raise AssertionError(self._names, list(fields))
