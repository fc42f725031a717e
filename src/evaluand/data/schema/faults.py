"""What is wrong with rows, and where."""

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


class Faults(list[RowFault]):
    """What is wrong with rows, in their order: of each sort the first, and how many there are.

    Attributes:
        counts: how many there are at each path (`responses[].text`) and of each sort (`what`).
    """

    def __init__(self, faults: Iterable[RowFault], counts: Counter[tuple[str, str]]) -> None:
        super().__init__(faults)
        self.counts = counts


class SchemaError(DataError):
    """Rows break their schema; `faults` has what is wrong in the order of the rows, `counts` how often."""

    def __init__(self, faults: Faults) -> None:
        self.counts = faults.counts
        super().__init__(faults)

    def _message(self) -> str:
        lines = [str(fault) for fault in self.faults[:SHOWN_FAULTS]]
        more = self.counts.total() - len(lines)
        return "\n".join([*lines, *([f"… and {more:,} more faults"] if more else [])])


class Found:
    """Collects the faults of some rows: all are counted, and the first `most` of each path and sort kept."""

    def __init__(
        self, counts: Counter[tuple[str, str]], most: int | None, index: Callable[[int], Any], first: int = 0
    ) -> None:
        self.faults: list[RowFault] = []
        self.any = False
        self._counts, self._most, self._index, self._first = counts, most, index, first

    def add(self, place: Place, at: int, what: str, message: str) -> None:
        self.add_all(place, (at,), what, lambda _: message)

    def add_all(self, place: Place, ats: Collection[Any], what: str, tell: Callable[[int], str]) -> None:
        """Faults of one sort at some places of a column; only those that are kept are told."""
        if not len(ats):
            return
        self.any = True
        sort = place.path, what
        room = len(ats) if self._most is None else max(self._most - self._counts[sort], 0)
        self._counts[sort] += len(ats)
        for at in islice(ats, room):
            self._keep(place, int(at), what, tell(int(at)))

    def _keep(self, place: Place, at: int, what: str, message: str) -> None:
        row, path = place.of(at)
        index = self._index(row)
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        row += self._first
        name = f"row {row}" if index is None else f"row {row} ({keys.INDEX} {index})"
        self.faults.append(RowFault(f"{name}: {path}" if path else name, message, row, index, path, what))

    def add_column(self, path: str, message: str, what: str = "type") -> None:
        self.any = True
        self._counts[path, what] += 1
        self.faults.append(RowFault(path, message, path=path, what=what))


def in_order(faults: Iterable[RowFault]) -> list[RowFault]:
    """Faults by row, then by field as they were found, in a list by item."""
    seen: dict[tuple[int | None, str], int] = {}

    def order(fault: RowFault) -> tuple[int, ...]:
        field = seen.setdefault((fault.row, _FIELD.split(fault.path, maxsplit=1)[0]), len(seen))
        return (-1 if fault.row is None else fault.row, field, *map(int, _ITEM.findall(fault.path)))

    return sorted(faults, key=order)


_FIELD, _ITEM = re.compile(r"[.\[]"), re.compile(r"\[(\d+)\]")


class Place:
    """Where the values of a flattened column stand; told only of those that are wrong.

    Attributes:
        path: where all of them stand in their rows: `responses[].text`.
    """

    path = ""

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

    @property
    def path(self) -> str:  # type: ignore[override]
        return f"{self.parent.path}.{self.name}" if self.parent.path else self.name

    def of(self, at: int) -> tuple[int, str]:
        row, path = self.parent.of(at)
        return row, f"{path}.{self.name}" if path else self.name


@dataclass
class _Item(Place):
    parent: Place
    ends: np.ndarray[Any, Any]
    keys: Sequence[Any] | None

    @property
    def path(self) -> str:  # type: ignore[override]
        return self.parent.path + ("[]" if self.keys is None else "{}")

    def of(self, at: int) -> tuple[int, str]:
        owner = int(np.searchsorted(self.ends, at, side="right"))
        row, path = self.parent.of(owner)
        if self.keys is not None:
            return row, f"{path}[{self.keys[at]!r}]"
        return row, f"{path}[{at - (int(self.ends[owner - 1]) if owner else 0)}]"
