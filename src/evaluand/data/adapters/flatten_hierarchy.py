"""Nested objects as fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluand.core.errors import nearest
from evaluand.data.adapters.base.adapter import Adapter, Row
from evaluand.data.adapters.base.columns import flatten
from evaluand.data.adapters.base.options import (
    AbsentField,
    AdapterError,
    AdapterSpecError,
    read_field_names,
    read_options,
)

if TYPE_CHECKING:
    import pyarrow as pa


class FlattenHierarchy(Adapter):
    """Returns a field for each leaf of nested objects; lists, scalars and empty objects are leaves.

    `fields` names the fields to flatten (default: all), `depth` is the number of levels to remove (default: all), and
    `addPrefix` names the new fields by their path, `a.b.c` (default), or by its last name. Two leaves with the same
    name are an error.

    Example:
        >>> FlattenHierarchy().adapt({"a": {"b": {"c": 1}, "d": [2]}, "e": 3})
        [{'a.b.c': 1, 'a.d': [2], 'e': 3}]
    """

    kind = "FlattenHierarchy"

    def __init__(self, configuration: Mapping[str, Any] | None = None) -> None:
        super().__init__(configuration)
        options = read_options(
            self.kind, {} if configuration is None else configuration, optional=("fields", "depth", "addPrefix")
        )
        fields = options.get("fields")
        self._fields = read_field_names(self.kind, "fields", () if fields is None else fields)
        self._depth = self._read_depth(options.get("depth"))
        self._prefix = options.get("addPrefix", True)
        if not isinstance(self._prefix, bool):
            raise AdapterSpecError(f"{self.kind}: addPrefix is {self._prefix!r}; give true or false")

    def adapt(self, row: Row) -> list[Row]:
        for name in self._fields:
            if name not in row:
                raise AbsentField(f"there is no field {name!r}{nearest(name, row)}")
        new_row: Row = {}
        fields, depth = self._fields or row, self._depth
        for name, value in row.items():
            if type(value) is dict and value and depth and name in fields:
                _add_leaves(value, f"{name}." if self._prefix else "", depth, new_row)
            elif name in new_row:
                raise _repeated_name(name)
            else:
                new_row[name] = value
        return [new_row]

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        if not set(self._fields) <= set(batch.schema.names):
            return None
        return flatten(batch, self._fields or batch.schema.names, self._depth, self._prefix)

    def _read_depth(self, depth: Any) -> int:
        if depth is None:
            return -1
        if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
            raise AdapterSpecError(f"{self.kind}: depth is {depth!r}; give an integer of at least 0, or null for all")
        return depth


def _add_leaves(value: Row, prefix: str, depth: int, new_row: Row) -> None:
    """Add the leaves of an object to a row under prefixed names; `depth` counts down to 0."""
    for name, child in value.items():
        full = prefix + name
        if type(child) is dict and child and depth != 1:
            _add_leaves(child, full + "." if prefix else "", depth - 1, new_row)
        elif full in new_row:
            raise _repeated_name(full)
        else:
            new_row[full] = child


def _repeated_name(name: str) -> AdapterError:
    return AdapterError(f"two fields would be called {name!r}; use addPrefix, or rename one first")
