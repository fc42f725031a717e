"""Leases of workers that are threads of one process: which has which units of a log in memory.

They live as long as the process, so nobody dies with a lease: nothing runs out, nothing is taken over, and there are no
fences. `evaluand.store.leases` says what a lease is, and has those of several processes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from evaluand.store.leases import History


class MemoryShards:
    """The shards of one log within one process: which are free and which are done."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.next = 0  # never claimed from here on
        self.free: list[int] = []
        self.held = 0
        self.taken: set[int] = set()


class MemoryLeases:
    """One worker's leases within one process.

    Args:
        shards: shared by all workers of the log.
    """

    def __init__(self, shards: MemoryShards | None = None) -> None:
        self._shards = shards or MemoryShards()
        self._mine: set[int] = set()
        self._units: set[int] = set()

    def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
        known = self._shards
        with known.lock:
            if known.free:
                claimed = known.free.pop(), 1
            elif known.next < shards:
                claimed = known.next, 0
                known.next += 1
            else:
                return None
            known.held += 1
            self._mine.add(claimed[0])
            return claimed

    def finish(self, shard: int) -> None:
        self._give([shard], free=[])

    def reopen(self, shards: Sequence[int]) -> None:
        with self._shards.lock:
            self._shards.free += sorted(set(shards) - self._mine - {*self._shards.free}, reverse=True)

    def release(self) -> None:
        self._give([*self._mine], free=sorted(self._mine, reverse=True))
        for unit in [*self._units]:
            self.drop(unit)

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        with self._shards.lock:
            unit = next((unit for unit in units if unit not in self._shards.taken), None)
            if unit is None:
                return None
            self._shards.taken.add(unit)
            self._units.add(unit)
            return unit, 0

    def drop(self, unit: int) -> None:
        with self._shards.lock:
            self._shards.taken.discard(unit)
            self._units.discard(unit)

    def has(self, unit: int) -> bool:
        return unit in self._mine or unit in self._units

    def holds(self) -> bool:
        return True

    def confirm(self) -> None:
        """Nothing is taken over."""

    def held(self) -> int:
        with self._shards.lock:
            return self._shards.held + len(self._shards.taken)

    def busy(self, *, patient: bool = False) -> bool:
        with self._shards.lock:
            return self._shards.held + len(self._shards.taken) > len(self._mine) + len(self._units)

    def describe_others(self, *, only_distant: bool = False) -> str:
        return "another thread works on this; sharing the rest with it" if self.busy() and not only_distant else ""

    def history(self) -> History:
        with self._shards.lock:
            return History((), {*self._shards.taken})

    def _give(self, shards: Iterable[int], free: list[int]) -> None:
        with self._shards.lock:
            released = self._mine & {*shards}
            self._mine -= released
            self._shards.held -= len(released)
            self._shards.free += free
