"""Where the lines of units are, by slot: memory depends on the lines, not on the highest slot.

Slots are grouped in pages. A page takes memory from its first line on, so that one line with a high slot, or an
artifact that claims many units, costs next to nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import chain
from typing import Final

PAGE_BITS: Final = 5
PAGE_SLOTS: Final = 1 << PAGE_BITS
PAGE_MASK: Final = PAGE_SLOTS - 1
_LEAST_PAGES: Final = 64
_NO_SEGMENTS: Final = array("i", [-1]) * PAGE_SLOTS
_ZEROS: Final = array("i", [0]) * PAGE_SLOTS
_LONG_ZEROS: Final = array("q", [0]) * PAGE_SLOTS


class SlotIndex:
    """The place of each slot that has a line, and at each place the segment, offset and size of the line.

    Attributes:
        starts: page → the place of its first slot; -1 of a page without lines.
        segments: place → number of the segment; -1 where there is no line.
        offsets: place → where the line begins.
        sizes: place → length of the line.

    Example:
        >>> index = SlotIndex()
        >>> index.segments[index.reach(10**6)] = 0
        >>> index.is_done(10**6), index.is_done(5), [*index.done(0)], len(index.segments)
        (True, False, [1000000], 32)
    """

    def __init__(self) -> None:
        self.starts = array("i")
        self.segments, self.offsets, self.sizes = array("i"), array("q"), array("i")

    def reach(self, slot: int) -> int:
        """The place of a slot, whose page is made if it has no lines yet."""
        page = slot >> PAGE_BITS
        more = page + 1 - len(self.starts)
        if more > 0:
            self.starts += array("i", [-1]) * max(more, len(self.starts) // 8, _LEAST_PAGES)
        start = self.starts[page]
        if start < 0:
            start = self.starts[page] = len(self.segments)
            self.segments += _NO_SEGMENTS
            self.offsets += _LONG_ZEROS
            self.sizes += _ZEROS
        return start + (slot & PAGE_MASK)

    def find(self, slot: int) -> int:
        """The place of a slot; -1 if its page has no lines."""
        page = slot >> PAGE_BITS
        if not 0 <= page < len(self.starts):
            return -1
        start = self.starts[page]
        return start if start < 0 else start + (slot & PAGE_MASK)

    def is_done(self, slot: int) -> bool:
        """Whether a slot has a line."""
        place = self.find(slot)
        return place >= 0 and self.segments[place] >= 0

    def places(self) -> Iterator[int]:
        """All places in the order of their slots, those without lines too."""
        return chain.from_iterable(range(start, start + PAGE_SLOTS) for start in self.starts if start >= 0)

    def done(self, start: int) -> Iterator[int]:
        """The slots from `start` on that have lines, in order."""
        pages = ((page << PAGE_BITS, at) for page, at in enumerate(self.starts) if at >= 0)
        slots = (first + n for first, at in pages for n in range(PAGE_SLOTS) if self.segments[at + n] >= 0)
        return (slot for slot in slots if slot >= start)

    def undone(self, start: int, stop: int) -> list[int]:
        """Those of some slots that have no line, in order."""
        found: list[int] = []
        for first in range(start & ~PAGE_MASK, stop, PAGE_SLOTS):
            low, high, place = max(start, first), min(stop, first + PAGE_SLOTS), self.find(first)
            if place < 0:
                found += range(low, high)
            elif -1 in (segments := self.segments[place + low - first : place + high - first]):
                found += (slot for slot, number in zip(range(low, high), segments, strict=True) if number < 0)
        return found

    def last_done(self, start: int, stop: int) -> int | None:
        """The last of some slots that has a line; None if none has."""
        stop = min(stop, len(self.starts) << PAGE_BITS)
        pages = self.starts[start >> PAGE_BITS : -(-stop >> PAGE_BITS)]
        if not pages or max(pages) < 0:
            return None
        return next((slot for slot in range(stop - 1, start - 1, -1) if self.is_done(slot)), None)

    def count_missing(self, other: SlotIndex) -> int:
        """How many slots have a line here and not in another index."""
        count = 0
        for page, start in enumerate(self.starts):
            if start >= 0:
                place = other.find(page << PAGE_BITS)
                others = _NO_SEGMENTS if place < 0 else other.segments[place : place + PAGE_SLOTS]
                here = self.segments[start : start + PAGE_SLOTS]
                count += sum(number >= 0 > there for number, there in zip(here, others, strict=True))
        return count
