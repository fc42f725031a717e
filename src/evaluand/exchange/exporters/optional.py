"""What exporters share that write through the library of another tool."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from evaluand.core.errors import SpecError
from evaluand.exchange.exporter import text_of
from evaluand.report.facts.base import Facts


def need(library: str, what: str, *further: str) -> Any:
    """The library of the extra with the same name.

    Args:
        what: what needs it.
        further: other modules that the extra brings.

    Raises:
        SpecError: it is not installed, or one of the others is not.
    """
    try:
        for module in further:
            import_module(module)
        return import_module(library)
    except ModuleNotFoundError:
        raise SpecError(f"{what} needs {library}: pip install 'evaluand[{library}]'") from None


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """Sets environment variables, or removes those that are None, and restores them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def table_of(rows: Iterable[Facts]) -> dict[str, list[Any]]:
    """Rows as columns of equal length, of texts, numbers and flags; other values become JSON.

    Example:
        >>> table_of([{"id": "a", "x": 1}, {"id": "b", "y": [2]}])
        {'id': ['a', 'b'], 'x': [1, None], 'y': [None, '[2]']}
    """
    columns: dict[str, list[Any]] = {}
    for n, row in enumerate(rows):
        for name in row:
            columns.setdefault(name, [None] * n)
        for name, column in columns.items():
            column.append(_cell(row.get(name)))
    return columns


def _cell(value: Any) -> Any:
    is_number = isinstance(value, int | float) and abs(value) < 2**63
    return value if value is None or isinstance(value, str) or is_number else text_of(value)
