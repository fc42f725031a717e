"""From nested objects to fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.core.registry import nearest
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.columns import flattened
from evaluand.data.adapters.base.faults import AbsentField, AdapterError, AdapterSpecError
from evaluand.data.adapters.base.options import field_names, options

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
        given = options(
            self.kind, {} if configuration is None else configuration, optional=("fields", "depth", "addPrefix")
        )
        fields = given.get("fields")
        self._fields = field_names(self.kind, "fields", () if fields is None else fields)
        self._depth = self._checked_depth(given.get("depth"))
        self._prefix = given.get("addPrefix", True)
        if not isinstance(self._prefix, bool):
            raise AdapterSpecError(f"{self.kind}: addPrefix is {self._prefix!r}; give true or false")

    def adapt(self, row: Row) -> list[Row]:
        for name in self._fields:
            if name not in row:
                raise AbsentField(f"there is no field {name!r}{nearest(name, row)}")
        made: Row = {}
        fields, depth = self._fields or row, self._depth
        for name, value in row.items():
            if type(value) is dict and value and depth and name in fields:
                _flatten(value, f"{name}." if self._prefix else "", depth, made)
            elif name in made:
                raise _twice(name)
            else:
                made[name] = value
        return [made]

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        if not set(self._fields) <= set(batch.schema.names):
            return None
        return flattened(batch, self._fields or batch.schema.names, self._depth, self._prefix)

    def _checked_depth(self, depth: Any) -> int:
        if depth is None:
            return -1
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
            raise AdapterSpecError(
                f"{self.kind}: depth is {depth!r}; give a whole number of at least 0, or null for all"
            )
        return depth


def _flatten(value: Row, before: str, depth: int, made: Row) -> None:
    """Adds the leaves of an object; `before` is what their names begin with, `depth` counts down to 0."""
    for name, child in value.items():
        full = before + name
        if type(child) is dict and child and depth != 1:
            _flatten(child, full + "." if before else "", depth - 1, made)
        elif full in made:
            raise _twice(full)
        else:
            made[full] = child


def _twice(name: str) -> AdapterError:
    return AdapterError(f"two fields would be called {name!r}; use addPrefix, or rename one before")
