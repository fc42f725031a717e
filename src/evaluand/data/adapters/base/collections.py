"""The lists of a row that belong together, and what numbers their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluand.core.errors import kind_of
from evaluand.core.registry import nearest
from evaluand.core.selector import Selector
from evaluand.data.adapters.base.faults import AbsentField, AdapterError, AdapterSpecError, WrongType
from evaluand.data.adapters.base.template import selector


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
        raise WrongType(f"{name} is {kind_of(values)}, not a list")
    return values


def indexes(kind: str, given: Any) -> dict[str, Selector | None]:
    """What numbers elements: the name of a field → a path that leads to a value per element, or None to count from 0.

    Raises:
        AdapterSpecError: it is something else.
    """
    if not isinstance(given, Mapping):
        raise AdapterSpecError(f"{kind}: index is {given!r}; give an object: name of a field: path, or null to count")
    return {name: None if path is None else selector(path, f"{kind}: index: {name}") for name, path in given.items()}


def numbers(name: str, path: Selector | None, row: Mapping[str, Any], length: int) -> Sequence[Any]:
    """A value of an index for each of so many elements.

    Raises:
        AdapterError: the path leads to more or fewer values.
    """
    if path is None:
        return range(length)
    values = path.find(row)
    if len(values) != length:
        raise AdapterError(f"index {name}: {path.text} gives {len(values)} values, not {length}, one per element")
    return values
