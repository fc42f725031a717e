"""The lists of a row that belong together, and the numbers of their elements."""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluand.core.errors import kind_of, nearest
from evaluand.core.selector import Selector
from evaluand.data.adapters.base.options import AbsentField, AdapterError, AdapterSpecError, WrongType
from evaluand.data.adapters.base.template import read_path


def read_collections(row: Mapping[str, Any], names: Sequence[str]) -> tuple[list[Sequence[Any]], int]:
    """The named lists of a row and their common length."""
    lists: list[Sequence[Any]] = []
    length = -1
    for name in names:
        values = row.get(name)
        if type(values) is not list:
            values = read_collection(row, name)
        if len(values) != length:
            if lists:
                lengths = f"{names[0]} has {length}, {name} has {len(values)}"
                raise AdapterError(f"the collections differ in length: {lengths}")
            length = len(values)
        lists.append(values)
    return lists, length


def read_collection(row: Mapping[str, Any], name: str) -> Sequence[Any]:
    """One named list of a row."""
    if name not in row:
        raise AbsentField(f"there is no field {name!r}{nearest(name, row)}")
    values = row[name]
    if isinstance(values, list):
        return values
    if not isinstance(values, tuple):
        raise WrongType(f"{name} is {kind_of(values)}, not a list")
    return values


def read_index(kind: str, value: Any) -> dict[str, Selector | None]:
    """The option `index`: name of a new field → path to one value per element, or None to count from 0."""
    if not isinstance(value, Mapping):
        raise AdapterSpecError(f"{kind}: index is {value!r}; give an object: field name: path, or null to count")
    return {name: None if path is None else read_path(path, f"{kind}: index: {name}") for name, path in value.items()}


def number_elements(name: str, path: Selector | None, row: Mapping[str, Any], length: int) -> Sequence[Any]:
    """The value of an index field for each of `length` elements."""
    if path is None:
        return range(length)
    values = path.find(row)
    if len(values) != length:
        raise AdapterError(f"index {name}: {path.text} gives {len(values)} values, not {length}, one per element")
    return values
