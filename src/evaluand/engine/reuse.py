"""What is still to be done, found by key among what earlier work has done."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import orjson


class Wanted:
    r"""The slots still to be filled, by a key of 16 bytes; 28 bytes a slot. Slots of equal keys are filled in order.

    Example:
        >>> wanted = Wanted(iter([(0, b"a" * 16), (1, b"b" * 16)]))
        >>> list(wanted.filled([iter([(b"b" * 16, ["done"])])]))
        [b'[1,"done"]\n']
        >>> wanted.left
        1
    """

    def __init__(self, missing: Iterator[tuple[int, bytes]]) -> None:
        slots, keys = array("q"), bytearray()
        for slot, key in missing:
            slots.append(slot)
            keys += key
        pairs = np.frombuffer(bytes(keys), dtype=">u8").reshape(-1, 2).astype(np.uint64)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        self._high, self._low = np.ascontiguousarray(pairs[order, 0]), np.ascontiguousarray(pairs[order, 1])
        self._slots = np.frombuffer(slots, dtype=np.int64)[order]
        self._filled = np.zeros(len(order), np.int32)  # at the first of equal keys: how many of them
        self.left = len(order)

    def filled(self, sources: Iterable[Iterator[tuple[bytes, list[Any]]]]) -> Iterator[bytes]:
        """The journal lines of the slots that earlier work fills, source after source until nothing is left.

        Args:
            sources: (key, journal record without its slot) of what is done, each source opened when it is needed.
        """
        for source in sources if self.left else ():
            for key, record in source:
                try:
                    rest = orjson.dumps(record)
                except TypeError:  # nested more deeply than orjson writes with what is around it: do it again
                    continue
                slot = self.take(key)
                if slot is not None:
                    yield b"[%d,%b\n" % (slot, rest[1:])
            if not self.left:
                return

    def take(self, key: bytes) -> int | None:
        """The next slot with that key, or None when there is none left."""
        high, low = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
        first = int(np.searchsorted(self._high, np.uint64(high), "left"))
        while first < len(self._slots) and self._high[first] == high and self._low[first] < low:
            first += 1
        if first == len(self._slots) or not self._is(first, high, low):
            return None
        place = first + int(self._filled[first])
        if place == len(self._slots) or not self._is(place, high, low):
            return None
        self._filled[first] += 1
        self.left -= 1
        return int(self._slots[place])

    def _is(self, place: int, high: int, low: int) -> bool:
        return bool(self._high[place] == high and self._low[place] == low)
