"""Leases of workers that are threads of one process: which has which units of a log in memory.

They live as long as the process, so nobody dies with a lease: nothing runs out, nothing is taken over, and there are no
fences. `evaluand.store.leases` says what a lease is, and has those of several processes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from evaluand.store.leases import History


class MemoryShards:
    """The units of one log within one process: which are held by a worker, and which shards are free."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.next = 0  # never claimed from here on
        self.free: list[int] = []
        self.held: set[int] = set()


class MemoryLeases:
    """One worker's leases within one process.

    Args:
        shards: shared by all workers of the log.
    """

    def __init__(self, shards: MemoryShards | None = None) -> None:
        self._shards = shards or MemoryShards()
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
            self._hold(claimed[0])
            return claimed

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        with self._shards.lock:
            unit = next((unit for unit in units if unit not in self._shards.held), None)
            if unit is None:
                return None
            self._hold(unit)
            return unit, 0

    def _hold(self, unit: int) -> None:
        self._shards.held.add(unit)
        self._units.add(unit)

    def finish(self, shard: int) -> None:
        self.drop(shard)

    def drop(self, unit: int) -> None:
        with self._shards.lock:
            if unit in self._units:
                self._units.discard(unit)
                self._shards.held.discard(unit)

    def reopen(self, shards: Sequence[int]) -> None:
        with self._shards.lock:
            self._shards.free += sorted(set(shards) - self._units - {*self._shards.free}, reverse=True)

    def release(self) -> None:
        known = self._shards
        with known.lock:
            known.held -= self._units
            known.free += sorted((unit for unit in self._units if unit < known.next), reverse=True)  # claimed shards
            self._units = set()

    def has(self, unit: int) -> bool:
        return unit in self._units

    def holds(self) -> bool:
        return True

    def confirm(self) -> None:
        """Nothing is taken over."""

    def held(self) -> int:
        return len(self._shards.held)

    def busy(self, *, patient: bool = False) -> bool:
        with self._shards.lock:
            return len(self._shards.held) > len(self._units)

    def describe_others(self, *, only_distant: bool = False) -> str:
        return "another thread works on this; sharing the rest with it" if self.busy() and not only_distant else ""

    def history(self) -> History:
        with self._shards.lock:
            return History((), {*self._shards.held})
