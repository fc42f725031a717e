"""What is wrong with rows, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluand.errors import DataError, Fault
from evaluand.schema import keys


@dataclass(frozen=True)
class RowFault(Fault):
    """One thing wrong in one row.

    Attributes:
        row: the number of the row, from 0; None where a whole column is wrong.
        index: its `_index_`, where it has one.
        path: where in the row: `responses[0].text`.
        what: `missing`, `extra`, `type`, `null`, `bounds`, `length`, `choice`, `pattern`, `json` or `twice`.
    """

    row: int | None = None
    index: int | None = None
    path: str = ""
    what: str = ""


class SchemaError(DataError):
    """Rows break their schema; `faults` has every fault of every row, in the order of the rows."""


class Found:
    """Collects faults."""

    def __init__(self, index: Callable[[int], Any], first: int = 0) -> None:
        self.faults: list[RowFault] = []
        self._index, self._first = index, first

    def add(self, place: Place, at: int, what: str, message: str) -> None:
        row, path = place.of(at)
        index = self._index(row)
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        row += self._first
        name = f"row {row}" if index is None else f"row {row} ({keys.INDEX} {index})"
        self.faults.append(RowFault(f"{name}: {path}" if path else name, message, row, index, path, what))

    def add_column(self, path: str, message: str, what: str = "type") -> None:
        self.faults.append(RowFault(path, message, path=path, what=what))

    def sorted(self) -> list[RowFault]:
        return in_order(self.faults)


def in_order(faults: list[RowFault]) -> list[RowFault]:
    return sorted(faults, key=lambda fault: -1 if fault.row is None else fault.row)


class Place:
    """Where the values of a flattened column stand; told only of those that are wrong."""

    def of(self, at: int) -> tuple[int, str]:
        return at, ""

    def field(self, name: str) -> Place:
        return _Named(self, name)

    def items(self, ends: np.ndarray[Any, Any], keys: Sequence[Any] | None = None) -> Place:
        return _Item(self, ends, keys)


@dataclass
class _Named(Place):
    parent: Place
    name: str

    def of(self, at: int) -> tuple[int, str]:
        row, path = self.parent.of(at)
        return row, f"{path}.{self.name}" if path else self.name


@dataclass
class _Item(Place):
    parent: Place
    ends: np.ndarray[Any, Any]
    keys: Sequence[Any] | None

    def of(self, at: int) -> tuple[int, str]:
        owner = int(np.searchsorted(self.ends, at, side="right"))
        row, path = self.parent.of(owner)
        if self.keys is not None:
            return row, f"{path}[{self.keys[at]!r}]"
        return row, f"{path}[{at - (int(self.ends[owner - 1]) if owner else 0)}]"
