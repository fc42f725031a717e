"""From nested objects to fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.adapter import Adapter, Row
from evaluand.adapter.columns import flattened
from evaluand.adapter.faults import AbsentField, AdapterError, AdapterSpecError
from evaluand.adapter.options import field_names, options
from evaluand.registry import nearest

if TYPE_CHECKING:
    import pyarrow as pa


class FlattenHierarchy(Adapter):
    """Makes a field of each leaf of nested objects; lists, scalars and empty objects are leaves.

    `fields` names the fields to flatten, all unless given; `depth` is how many levels are taken away, all unless
    given; `addPrefix` (true unless given) calls the new fields by their path, `a.b.c`, else by their last name. Two
    leaves of one name are refused.

    Example:
        >>> FlattenHierarchy().adapt({"a": {"b": {"c": 1}, "d": [2]}, "e": 3})
        [{'a.b.c': 1, 'a.d': [2], 'e': 3}]
    """

    kind = "FlattenHierarchy"

    def __init__(self, configuration: Mapping[str, Any] | None = None) -> None:
        super().__init__(configuration)
        given = options(self.kind, configuration or {}, optional=("fields", "depth", "addPrefix"))
        self._fields = field_names(self.kind, "fields", given.get("fields") or ())
        self._depth = self._checked_depth(given.get("depth"))
        self._prefix = given.get("addPrefix", True)
        if not isinstance(self._prefix, bool):
            raise AdapterSpecError(f"{self.kind}: addPrefix is {self._prefix!r}; give true or false")

    def adapt(self, row: Row) -> list[Row]:
        absent = [name for name in self._fields if name not in row]
        if absent:
            raise AbsentField(f"there is no field {absent[0]!r}{nearest(absent[0], row)}")
        made: Row = {}
        for name, value in row.items():
            if not (value and isinstance(value, dict) and self._depth and (not self._fields or name in self._fields)):
                if name in made:
                    raise _twice(name)
                made[name] = value
            else:
                self._flatten(value, name, self._depth, made)
        return [made]

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        if not set(self._fields) <= set(batch.schema.names):
            return None
        return flattened(batch, self._fields or batch.schema.names, self._depth, self._prefix)

    def _flatten(self, value: Mapping[str, Any], path: str, depth: int, made: Row) -> None:
        """Adds the leaves of an object; `depth` counts down to 0."""
        for name, child in value.items():
            inner = f"{path}.{name}" if self._prefix else name
            if depth != 1 and isinstance(child, dict) and child:
                self._flatten(child, inner, depth - 1, made)
            elif inner in made:
                raise _twice(inner)
            else:
                made[inner] = child

    def _checked_depth(self, depth: Any) -> int:
        if depth is None:
            return -1
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
            raise AdapterSpecError(
                f"{self.kind}: depth is {depth!r}; give a whole number of at least 0, or null for all"
            )
        return depth


def _twice(name: str) -> AdapterError:
    return AdapterError(f"two fields would be called {name!r}; use addPrefix, or rename one before")
