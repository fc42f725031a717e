"""Faults of rows: their places, messages and counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from evaluand.core.errors import SHOWN_FAULTS, DataError, Fault
from evaluand.data.schema import keys


@dataclass(frozen=True)
class RowFault(Fault):
    """One fault of one row.

    Attributes:
        row: the number of the row, from 0; None where a whole column is wrong.
        index: the row's `_index_`, if it has one.
        path: the place in the row, such as `responses[0].text`.
        what: the code: `missing`, `extra`, `type`, `null`, `bounds`, `length`, `choice`, `pattern`, `json` or `twice`.
    """

    row: int | None = None
    index: int | None = None
    path: str = ""
    what: str = ""


class Faults(list[RowFault]):
    """Faults in the order of the rows: the first of each path and code, and the number of all.

    Attributes:
        counts: (path, code) → number of faults; paths such as `responses[].text`.
    """

    def __init__(self, faults: Iterable[RowFault], counts: Counter[tuple[str, str]]) -> None:
        super().__init__(faults)
        self.counts = counts


class SchemaError(DataError):
    """Rows break their schema.

    Attributes:
        faults: the faults in the order of the rows.
        counts: (path, code) → number of faults.
    """

    def __init__(self, faults: Faults) -> None:
        self.counts = faults.counts
        super().__init__(faults)

    def _message(self) -> str:
        lines = [str(fault) for fault in self.faults[:SHOWN_FAULTS]]
        more = self.counts.total() - len(lines)
        return "\n".join([*lines, *([f"… and {more:,} more faults"] if more else [])])


class FaultCollector:
    """Collects the faults of a chunk of rows: counts all, and stores the first `most` of each path and code.

    Args:
        counts: the counts of all chunks; they are added to.
        most: how many faults of each path and code to store; None for all.
        index: the `_index_` of a row of the chunk.
        first: the number of the chunk's first row.

    Attributes:
        any: whether the chunk has a fault.
    """

    def __init__(
        self, counts: Counter[tuple[str, str]], most: int | None, index: Callable[[int], Any], first: int = 0
    ) -> None:
        self.faults: list[RowFault] = []
        self.any = False
        self._counts, self._most, self._index, self._first = counts, most, index, first

    def add(self, place: Place, at: int, what: str, message: str) -> None:
        self.add_all(place, (at,), what, lambda _: message)

    def add_all(self, place: Place, positions: Collection[Any], what: str, message: Callable[[int], str]) -> None:
        """Add faults of one code at several positions of a column; only stored faults call `message`."""
        if not len(positions):
            return
        self.any = True
        key = place.path, what
        room = len(positions) if self._most is None else max(self._most - self._counts[key], 0)
        self._counts[key] += len(positions)
        for at in map(int, islice(positions, room)):
            row, path = place.locate(at)
            index = self._index(row)
            index = index if isinstance(index, int) and not isinstance(index, bool) else None
            row += self._first
            name = f"row {row}" if index is None else f"row {row} ({keys.INDEX} {index})"
            self.faults.append(RowFault(f"{name}: {path}" if path else name, message(at), row, index, path, what))

    def add_column(self, path: str, message: str, what: str = "type") -> None:
        """Add a fault of a whole column."""
        self.any = True
        self._counts[path, what] += 1
        self.faults.append(RowFault(path, message, path=path, what=what))


def sort_faults(faults: Iterable[RowFault]) -> list[RowFault]:
    """Faults by row, then by field in the order they were collected, then by item of a list."""
    seen: dict[tuple[int | None, str], int] = {}

    def order(fault: RowFault) -> tuple[int, ...]:
        field = seen.setdefault((fault.row, _FIELD.split(fault.path, maxsplit=1)[0]), len(seen))
        return (-1 if fault.row is None else fault.row, field, *map(int, _ITEM.findall(fault.path)))

    return sorted(faults, key=order)


_FIELD, _ITEM = re.compile(r"[.\[]"), re.compile(r"\[(\d+)\]")


@dataclass(frozen=True)
class Place:
    """Where the values of a flattened column come from: the rows themselves, a field of objects, or items of lists.

    Attributes:
        name: of the field.
        ends: the end of each list, or of each map whose values have `keys`.
    """

    parent: Place | None = None
    name: str = ""
    ends: np.ndarray[Any, Any] | None = None
    keys: Sequence[Any] | None = None

    @property
    def path(self) -> str:
        """The path of all values in their rows, such as `responses[].text`."""
        if self.parent is None:
            return ""
        if self.ends is not None:
            return self.parent.path + ("[]" if self.keys is None else "{}")
        return f"{self.parent.path}.{self.name}" if self.parent.path else self.name

    def locate(self, at: int) -> tuple[int, str]:
        """The row and the path in it of the value at a position of the column."""
        if self.parent is None:
            return at, ""
        if self.ends is None:
            row, path = self.parent.locate(at)
            return row, f"{path}.{self.name}" if path else self.name
        owner = int(np.searchsorted(self.ends, at, side="right"))
        row, path = self.parent.locate(owner)
        if self.keys is not None:
            return row, f"{path}[{self.keys[at]!r}]"
        return row, f"{path}[{at - (int(self.ends[owner - 1]) if owner else 0)}]"

    def field(self, name: str) -> Place:
        """The place of a field of these objects."""
        return Place(self, name)

    def items(self, ends: np.ndarray[Any, Any], keys: Sequence[Any] | None = None) -> Place:
        """The place of the items of these lists, or of the values of these maps under their keys."""
        return Place(self, "", ends, keys)
