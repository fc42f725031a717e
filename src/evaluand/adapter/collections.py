"""The lists of a row that belong together, and what numbers their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluand.adapter.faults import AbsentField, AdapterError, AdapterSpecError, WrongType
from evaluand.adapter.template import selector
from evaluand.errors import with_article
from evaluand.registry import nearest
from evaluand.selector import Selector

_ABSENT = object()


def elements(row: Mapping[str, Any], names: Sequence[str]) -> tuple[list[Sequence[Any]], int]:
    """The lists of these names and their common length.

    Raises:
        AdapterError: one is not there, is no list or is of another length.
    """
    lists = [collection(row, name) for name in names]
    length = len(lists[0])
    for values in lists:
        if len(values) != length:
            told = ", ".join(f"{name} has {len(values)}" for name, values in zip(names, lists, strict=True))
            raise AdapterError(f"the collections differ in length: {told}")
    return lists, length


def collection(row: Mapping[str, Any], name: str) -> Sequence[Any]:
    """The list of that name."""
    values = row.get(name, _ABSENT)
    if type(values) is list:
        return values
    if values is _ABSENT:
        raise AbsentField(f"there is no field {name!r}{nearest(name, row)}")
    if not isinstance(values, tuple):
        raise WrongType(f"{name} is {with_article(type(values).__name__)}, not a list")
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
        self._paths = [
            (name, None if path is None else selector(path, f"{kind}: index: {name}")) for name, path in given.items()
        ]

    @property
    def paths(self) -> tuple[Selector | None, ...]:
        """The path of each field, None where it counts."""
        return tuple(path for _, path in self._paths)

    def values(self, row: Mapping[str, Any], length: int) -> list[Sequence[Any]]:
        """For each field, a value per element.

        Raises:
            AdapterError: a path leads to more or fewer values than there are elements.
        """
        found: list[Sequence[Any]] = []
        for name, path in self._paths:
            values = range(length) if path is None else path.find(row)
            if len(values) != length:
                assert path is not None
                raise AdapterError(f"index {name}: {path.text} gives {len(values)} values for {length} elements")
            found.append(values)
        return found
