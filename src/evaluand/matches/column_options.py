"""How messages about files of battles spell the choice of a column: as it is typed where the file was named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

_COLUMNS: Final = {
    "python": "columns={{{field!r}: {column!r}}}",
    "command": "--column {field}={column}",
    "scorer": "fields: {{{field}: {column}}}",
}
_SYSTEMS: Final = {"python": "{side}='SYSTEM'", "command": "--{side} SYSTEM", "scorer": "{side}: SYSTEM"}
_door: ContextVar[str] = ContextVar("door of battles", default="python")


def column_option(field: str, column: str = "COLUMN") -> str:
    """How to say in which column a field is.

    Example:
        >>> column_option("a")
        "columns={'a': 'COLUMN'}"
        >>> with spelled_for("command"):
        ...     column_option("winner", "better")
        '--column winner=better'
    """
    return _COLUMNS[_door.get()].format(field=field, column=column)


def system_option(side: str) -> str:
    """How to name the system of a side, `a` or `b`, that is the same in all rows.

    Example:
        >>> system_option("a")
        "a='SYSTEM'"
    """
    return _SYSTEMS[_door.get()].format(side=side)


@contextmanager
def spelled_for(door: Literal["python", "command", "scorer"]) -> Iterator[None]:
    """A context whose messages are for a command line, the parameters of a scorer, or Python."""
    token = _door.set(door)
    try:
        yield
    finally:
        _door.reset(token)
