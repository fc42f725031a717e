"""Checks of arguments: each returns a value of the expected type, or raises one sentence with the actual one."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any, TypeVar

from evaluand.core.errors import SpecError, kind_of, with_article

Kind = TypeVar("Kind")


def check_type(name: str, value: Any, kind: type[Kind], hint: str) -> Kind:
    """The value, if it is an instance of a class; `hint` says in the message how to get one."""
    if not isinstance(value, kind):
        raise SpecError(f"{name} must be {with_article(kind.__name__)} and is {kind_of(value)}; {hint}")
    return value


def read_columns(name: str, value: Any, example: str) -> dict[str, Any]:
    """Columns by name, from a mapping, a frame or an Arrow table."""
    if getattr(value, "ndim", None) == 2 and hasattr(value, "items"):
        pairs = list(value.items())
    elif hasattr(value, "column_names") and hasattr(value, "columns"):
        pairs = list(zip(value.column_names, value.columns, strict=True))
    elif isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        raise SpecError(f"{name} must map names to columns, such as {example}, and is {kind_of(value)}")
    columns = dict(pairs)
    if len(columns) < len(pairs):
        names = [column for column, _ in pairs]
        twice = next(column for column in names if names.count(column) > 1)
        raise SpecError(f"{name}: two columns are called {twice!r}; name each differently")
    for column in columns:
        if not isinstance(column, str):
            raise SpecError(f"{name}: the name {column!r} is not text; write such as {example}")
    return columns


def read_list(name: str, value: Any, kind: Any, example: str) -> list[Any]:
    """A list of instances of a class (or union of classes), also from a single instance."""
    items = [value] if isinstance(value, kind) else _read_items(value)
    if items is None:
        raise SpecError(f"{name} must be a list and is {kind_of(value)}; write such as {example}")
    for place, item in enumerate(items):
        if not isinstance(item, kind):
            raise SpecError(f"{name}[{place}] is {kind_of(item)}; write such as {example}")
    return items


def read_integer(name: str, value: Any, minimum: int, example: str) -> int:
    """An integer that is not below a minimum."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
        raise SpecError(f"{name}={value!r} must be an integer of {minimum} or more, such as {example}")
    return int(value)


def _read_items(value: Any) -> list[Any] | None:
    """The items of a list, an array or the like; None for values without order or without items."""
    if isinstance(value, str | bytes | Mapping | set | frozenset) or getattr(value, "ndim", 1) != 1:
        return None
    try:
        return list(value)
    except TypeError:
        return None
