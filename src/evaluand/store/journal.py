"""The journal of keyed work: the finished units of an open artifact, and the leases on the others.

Runs and evaluations consist of units with a dense slot number (position of the example × replications + replication).
Each finished unit is one line, appended by one `write`, so that it survives the process. The lines of one writer form a
segment, and only complete lines count. A slot is done when some segment has its line; of several lines the first
counts, in the order of the segments' names.

Units are claimed in shards under a lease, so a second process can help or take over: a lease ends when its heartbeat
stops, or at once when its process is known to be dead.

A log may grow without end: the recording of an app. Then its slots are those that have lines, with gaps where a writer
left some unused, and units are taken one by one, each under a lease that counts how often it was taken.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import orjson

from evaluand.core.errors import EngineError

SHARD_SLOTS = 1024
MOST_SLOTS = 1 << 28  # of a growing log; 14 bytes of memory each
CHUNK_BYTES = 1 << 20
_VOID = b'{"void":'
SYNC_SECONDS = 1.0


class Log(Protocol):
    """Append-only segments, one per writer."""

    def append(self, data: bytes) -> None:
        """Appends complete lines to this writer's segment; they survive the death of the process."""

    def sync(self) -> None:
        """Makes the appended lines survive a crash of the machine."""

    def segments(self) -> Sequence[str]:
        """The names of all segments, sorted."""

    def read(self, segment: str, offset: int, size: int) -> bytes:
        """Up to `size` bytes of a segment."""

    def close(self) -> None:
        """Ends this writer's segment."""


class Leases(Protocol):
    """Which worker has which shard."""

    def claim(self, shards: int) -> tuple[int, int] | None:
        """Claims the first shard that is neither done nor leased.

        Returns:
            The shard and how often it was claimed before, or None if none is free.
        """

    def finish(self, shard: int) -> None:
        """Marks a claimed shard as done."""

    def reopen(self, shards: Sequence[int]) -> None:
        """Frees shards that were marked as done although lines are missing."""

    def release(self) -> None:
        """Releases every lease of this worker."""

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        """Takes the first of some units that no living worker holds; for logs whose units are taken one by one.

        The caller must check the unit again: it may have been finished and dropped in the meantime.

        Returns:
            The unit and how many workers died with it, or None if all are taken.
        """

    def drop(self, unit: int) -> None:
        """Ends the lease of a taken unit and resets its count."""

    def held(self) -> int:
        """The number of shards or units that living workers have."""

    def busy(self) -> bool:
        """Whether another living worker has a shard."""


class WorkLog:
    """One sequence of keyed work: a log with an index of finished units, and the leases on the others.

    Args:
        log: where lines are written.
        leases: which worker has which shard.
        slots: the number of units; None if it grows with the lines that are read.
    """

    def __init__(self, log: Log, leases: Leases, slots: int | None) -> None:
        self.leases = leases
        self.slots = 0
        self.n_done = 0
        self._grows = slots is None
        self._log = log
        self._segments: list[str] = []
        self._voided: set[tuple[str, int]] = set()
        self._read_to: dict[str, int] = {}
        self._segment, self._offset, self._size = array("h"), array("q"), array("i")
        self._grow(slots or 0)
        self._synced = time.monotonic()

    @property
    def shards(self) -> int:
        return -(-self.slots // SHARD_SLOTS)

    def refresh(self) -> None:
        """Reads the lines that any writer has appended since the last call."""
        before = len(self._voided)
        for name in self._log.segments():
            if name not in self._read_to:
                self._segments.append(name)
                self._read_to[name] = 0
            self._scan(name)
        if len(self._voided) > before:  # a line that was passed over may be the one that counts now
            for name in self._segments:
                self._read_to[name] = 0
                self._scan(name)

    def is_done(self, slot: int) -> bool:
        return slot < self.slots and self._segment[slot] >= 0

    def append(self, lines: bytes) -> None:
        """Appends finished units: complete lines, each `[slot,…]` and a line feed."""
        self._log.append(lines)
        now = time.monotonic()
        if now - self._synced > SYNC_SECONDS:
            self._synced = now
            self._log.sync()

    def void(self, slots: Iterable[int]) -> None:
        """Makes done units undone, for everybody who reads the log: their lines no longer count."""
        for slot in slots:
            place = [self._segments[self._segment[slot]], self._offset[slot]]
            self._log.append(b"[%d,%b%b}]\n" % (slot, _VOID, orjson.dumps(place)))
        self._log.sync()
        self.refresh()

    def write(self, lines: bytes) -> None:
        """Like `append`, for callers that must not wait for the disk and call `sync` elsewhere."""
        self._log.append(lines)

    def sync(self) -> None:
        """Makes the appended lines survive a crash of the machine."""
        self._log.sync()

    def lines(self) -> Iterator[bytes]:
        """The lines of all finished units in the order of their slots."""
        return (self.line(slot) for slot in range(self.slots) if self._segment[slot] >= 0)

    def line(self, slot: int) -> bytes:
        """The line of a finished unit."""
        return self._log.read(self._segments[self._segment[slot]], self._offset[slot], self._size[slot])

    def records(self) -> Iterator[list[Any]]:
        """The parsed records of these lines.

        Raises:
            EngineError: a line is damaged.
        """
        return map(_read, self.lines())

    def read_through(self) -> Iterator[list[Any]]:
        """The records of all units finished so far, in the order in which they were written.

        Reads all segments once, without an index.

        Raises:
            EngineError: a line is damaged.
        """
        seen: set[int] = set()
        for name in self._log.segments():
            for _, lines in self._read_chunks(name, 0):
                for record in map(_read, lines.splitlines()):
                    if record[0] not in seen:
                        seen.add(record[0])
                        yield record

    def close(self) -> None:
        self._log.sync()
        self._log.close()
        self.leases.release()

    def _scan(self, name: str) -> None:
        number = self._segments.index(name)
        for offset, lines in self._read_chunks(name, self._read_to[name]):
            self._index(number, offset, lines)
            self._read_to[name] = offset + len(lines)

    def _read_chunks(self, name: str, offset: int) -> Iterator[tuple[int, bytes]]:
        """The complete lines of a segment in chunks, each with its offset."""
        size = CHUNK_BYTES
        while chunk := self._log.read(name, offset, size):
            end = chunk.rfind(b"\n") + 1
            if end:
                yield offset, chunk[:end]
                offset, size = offset + end, CHUNK_BYTES
            elif len(chunk) < size:  # an incomplete last line
                break
            else:
                size *= 2

    def _index(self, segment: int, offset: int, chunk: bytes) -> None:
        for line in chunk.splitlines(keepends=True):
            try:
                comma = line.index(b",")
                slot = int(line[1:comma])
            except ValueError:
                raise EngineError(f"journal segment {self._segments[segment]} is damaged at byte {offset}") from None
            if self._grows and self.slots <= slot < MOST_SLOTS:
                self._grow(slot + 1)
            if not 0 <= slot < self.slots:
                raise EngineError(f"journal segment {self._segments[segment]} has slot {slot} of {self.slots}")
            if line.startswith(_VOID, comma + 1):
                self._take_back(slot, line)
            elif self._segment[slot] < 0 and not (self._voided and (self._segments[segment], offset) in self._voided):
                self._segment[slot] = segment
                self._offset[slot] = offset
                self._size[slot] = len(line)
                self.n_done += 1
            offset += len(line)

    def _take_back(self, slot: int, line: bytes) -> None:
        name, offset = orjson.loads(line)[1]["void"]
        self._voided.add((name, offset))
        place = self._segment[slot]
        if place >= 0 and (self._segments[place], self._offset[slot]) == (name, offset):
            self._segment[slot] = -1
            self.n_done -= 1

    def _grow(self, slots: int) -> None:
        self.slots = slots
        more = slots - len(self._segment)
        if more <= 0:
            return
        more = max(more, slots // 8)  # so that the arrays do not grow with every line
        self._segment += array("h", [-1]) * more
        self._offset += array("q", [0]) * more
        self._size += array("i", [0]) * more


def _read(line: bytes) -> list[Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise EngineError(f"the journal's line {line[:80]!r}… is damaged: {error}") from None
    if type(record) is list and record and type(record[0]) is int and 0 <= record[0] < MOST_SLOTS:
        return record
    raise EngineError(f"the journal's line {line[:80]!r}… is damaged: it does not begin with a slot")


class MemoryLog:
    """A log in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    def append(self, data: bytes) -> None:
        self._data += data

    def sync(self) -> None:
        """Memory has nothing to sync."""

    def segments(self) -> Sequence[str]:
        return ["memory"]

    def read(self, segment: str, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def close(self) -> None:
        """Memory has nothing to close."""


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

    def claim(self, shards: int) -> tuple[int, int] | None:
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
        self._give(self._mine, free=sorted(self._mine, reverse=True))
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

    def held(self) -> int:
        with self._shards.lock:
            return self._shards.held + len(self._shards.taken)

    def busy(self) -> bool:
        with self._shards.lock:
            return self._shards.held + len(self._shards.taken) > len(self._mine) + len(self._units)

    def _give(self, shards: Iterable[int], free: list[int]) -> None:
        with self._shards.lock:
            released = self._mine & {*shards}
            self._mine -= released
            self._shards.held -= len(released)
            self._shards.free += free
