"""The lists of a row that belong together, and what numbers their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluand.adapter.faults import AbsentField, AdapterError, AdapterSpecError, WrongType, told
from evaluand.adapter.template import selector
from evaluand.registry import nearest
from evaluand.selector import Selector


def elements(row: Mapping[str, Any], names: Sequence[str]) -> tuple[list[Sequence[Any]], int]:
    """The lists of these names and their common length.

    Raises:
        AdapterError: one is not there, is no list or is of another length.
    """
    lists: list[Sequence[Any]] = []
    length = -1
    for name in names:
        values = row.get(name)
        if type(values) is not list:
            values = collection(row, name)
        if len(values) != length:
            if lists:
                told = f"{names[0]} has {length}, {name} has {len(values)}"
                raise AdapterError(f"the collections differ in length: {told}")
            length = len(values)
        lists.append(values)
    return lists, length


def collection(row: Mapping[str, Any], name: str) -> Sequence[Any]:
    """The list of that name."""
    if name not in row:
        raise AbsentField(f"there is no field {name!r}{nearest(name, row)}")
    values = row[name]
    if isinstance(values, list):
        return values
    if not isinstance(values, tuple):
        raise WrongType(f"{name} is {told(values)}, not a list")
    return values


class Index:
    """Fields that number the elements: counted from 0, or taken from as many values of the row.

    Args:
        kind: the adapter's, for messages.
        given: name of a field → a path that leads to a value per element, or None to count.
    """

    def __init__(self, kind: str, given: Any) -> None:
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise AdapterSpecError(
                f"{kind}: index is {given!r}; give an object: name of a field: path, or null to count"
            )
        self.names = tuple(given)
        self.paths: Mapping[str, Selector | None] = {
            name: None if path is None else selector(path, f"{kind}: index: {name}") for name, path in given.items()
        }
        """The path of each field, None where it counts."""

    def values(self, row: Mapping[str, Any], length: int) -> list[Sequence[Any]]:
        """For each field, a value per element.

        Raises:
            AdapterError: a path leads to more or fewer values than there are elements.
        """
        found: list[Sequence[Any]] = []
        for name, path in self.paths.items():
            if path is None:
                found.append(range(length))
                continue
            values = path.find(row)
            if len(values) != length:
                raise AdapterError(f"index {name}: {path.text} gives {len(values)} values, not {length}")
            found.append(values)
        return found
