"""How the slots of a lane are divided into shards, which workers claim one after the other.

The last shards are small, so that workers which share a lane end together, whether its calls take a millisecond or a
minute; the others are large, so that claims cost next to nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

SHARD_SLOTS = 1024
LEAST_SLOTS: Final = 16
_PARTS: Final = 8


class Shards:
    """The shards of some slots: each has an eighth of those that are left, from 16 to 1,024.

    Args:
        slots: how many there are.

    Example:
        >>> shards = Shards(400)
        >>> len(shards), shards.range(0), shards.range(1), shards.find(99)
        (17, range(0, 50), range(50, 93), 2)
    """

    def __init__(self, slots: int) -> None:
        self._size = SHARD_SLOTS
        self._n_large = max(0, slots // self._size - _PARTS + 1)
        self._starts = [self._n_large * self._size]  # of the shards after the large ones, and the end
        while (left := slots - self._starts[-1]) > 0:
            size = max(min(LEAST_SLOTS, self._size), left // _PARTS)
            self._starts.append(self._starts[-1] + min(size, left, self._size))

    def __len__(self) -> int:
        return self._n_large + len(self._starts) - 1

    def range(self, shard: int) -> range:
        """The slots of a shard."""
        place = shard - self._n_large
        if place < 0:
            return range(shard * self._size, (shard + 1) * self._size)
        return range(self._starts[place], self._starts[place + 1])

    def find(self, slot: int) -> int:
        """The shard of a slot."""
        if slot < self._starts[0]:
            return slot // self._size
        return self._n_large + bisect_right(self._starts, slot) - 1
