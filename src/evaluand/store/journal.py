"""The journal of keyed work: the finished units of an open artifact, and the leases on the others.

Runs and evaluations consist of units with a dense slot number (position of the example × replications + replication).
Each finished unit is one line, appended by one `write`, so that it survives the process. The lines of one writer form a
segment, and only complete lines count. A slot is done when some segment has its line; of several lines the first
counts, in the order of the segments' names.

Units are claimed in shards under a lease (`evaluand.store.leases`), so a second process can help or take over: a lease
ends when its heartbeat stops, or at once when its process is known to be dead. Lines that its holder writes after that
do not count.

A log may grow without end: the recording of an app. Then its slots are those that have lines, with gaps where a writer
left some unused, and units are taken one by one, each under a lease that counts how often it was taken.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import chain, starmap
from typing import Any, Final, TypeGuard
from zlib import crc32

import orjson

from evaluand.core.errors import EngineError, Fault, plural, pluralize, warn
from evaluand.core.system import boot_seconds
from evaluand.store.lease_state import NOTHING, Written
from evaluand.store.leases import Leases
from evaluand.store.segments import (
    CHANGED,
    CHECKSUM_SIZE,
    EARLIER_SUFFIX,
    INCOMPLETE,
    INVALID,
    OUT_OF_RANGE,
    Damage,
    Log,
    fault_of,
    find_missing,
    list_places,
    parse_slot,
    read_body,
    read_chunks,
)
from evaluand.store.shards import SHARD_SLOTS, Shards
from evaluand.store.slots import PAGE_MASK, PAGE_SLOTS, SlotIndex

MOST_SLOTS = 1 << 28
SYNC_SECONDS = 1.0
ASK_SECONDS: Final = 0.01  # by a clock that counts while the machine sleeps
_BRACE = ord("{")
_MOST_GAPS, _LEAST_LINE = 4096, 16  # a growing log has one shard for each line, and few shards without lines
_AHEAD_BYTES: Final = 1 << 18
_BUFFERS: Final = 4
_BATCH_ROWS: Final = 1024
_BATCH_BYTES: Final = 1 << 20
_NOTHING: Final = (0, b"")


@dataclass(frozen=True)
class Lost:
    """Finished units that cannot be read any more.

    Attributes:
        rows: how many there are at least.
        by_segment: the same by segment, with what was accepted before.
        spent: what all units of the log have cost, by currency, as far as is known.
        used: whether to make units of the log has used something.
        faults: what is damaged or missing.
    """

    rows: int = 0
    by_segment: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[str, float] = field(default_factory=dict)
    used: bool = False
    faults: Sequence[Fault] = ()


class WorkLog:
    """One sequence of keyed work: a log with an index of finished units, and the leases on the others.

    Args:
        log: where lines are written.
        leases: which worker has which shard.
        slots: the number of units; None if it grows with the lines that are read.
    """

    def __init__(self, log: Log, leases: Leases, slots: int | None) -> None:
        self.leases = leases
        self.slots = slots or 0
        self.n_done = 0
        self.n_taken_back = 0  # how often a done unit became undone
        self.spent: dict[str, float] = {}  # by all writers, by currency, as of the last `refresh`
        self.missing: Sequence[Damage] = ()  # what segments have lost, as of the last `find_lost`
        self._grows = slots is None
        self._capacity = 0  # of a growing log
        self._log = log
        self._numbers: dict[str, int] = {}
        self._segments: list[_Segment] = []
        self._damaged: dict[tuple[int, int], Damage] = {}
        self._voided: dict[tuple[str, int], int] = {}  # segment and slot → the offset up to which it does not count
        self._fenced: dict[str, int] = {}  # segment → the offset from which it does not count
        self._accepted: dict[str, int] = {}  # segment → how many of its units are lost, which somebody has accepted
        self._warned: set[tuple[int, int]] = set()
        self._passed_over = False  # whether there are lines of slots that were done already
        self._changed = False  # whether lines that were passed over may count now
        self._ended: set[str] = set()  # segments that were fenced, and whose lines are still to be taken back
        self._index = SlotIndex()
        self._ahead: dict[int, tuple[int, bytes]] = {}
        self._synced = boot_seconds()
        self._asked = -math.inf

    @cached_property
    def shards(self) -> Shards:
        """How its slots are divided; of a log that does not grow."""
        return Shards(self.slots)

    def refresh(self) -> None:
        """Reads the lines that any writer has appended since the last call."""
        segments = self._log.segments()
        self._capacity = min(MOST_SLOTS, SHARD_SLOTS * (_MOST_GAPS + sum(segments.values()) // _LEAST_LINE))
        for name, size in segments.items():
            number = self._numbers.get(name)
            if number is None:
                number = self._numbers[name] = len(self._segments)
                self._segments.append(_Segment(name, self._log.seed(name), self._log.is_own(name)))
            if size != self._segments[number].size:
                self._segments[number].size = size
                self._scan(number)
        self._take_back_fenced()
        while self._changed:
            self._changed = False
            self.spent.clear()
            for number, segment in enumerate(self._segments):
                segment.read_to = segment.n_lines = segment.n_rules = 0
                self._scan(number)
            self._take_back_fenced()

    def is_done(self, slot: int) -> bool:
        return self._index.is_done(slot)

    def done(self, start: int) -> Iterator[int]:
        """The slots from `start` on that are done, in order."""
        return self._index.done(start)

    def count_missing(self, other: WorkLog) -> int:
        """How many units are done here and not in another log."""
        return self._index.count_missing(other._index)

    def last_done(self, start: int, stop: int) -> int | None:
        """The last of some slots that is done; None if none is."""
        return self._index.last_done(start, stop)

    def undone(self, start: int, stop: int) -> list[int]:
        """Those of some slots that are not done, in order."""
        return self._index.undone(start, stop)

    def is_final(self) -> bool:
        """Whether all units are done, and the lines that were read count for ever; only while no call is under way."""
        taken_back = self.n_taken_back
        self.leases.confirm()
        self.refresh()
        return self.n_taken_back == taken_back and self.n_done == self.slots

    def holds(self) -> bool:
        """Whether what this worker writes now counts; leases and log are asked a hundred times a second at most."""
        now = boot_seconds()
        if now - self._asked > ASK_SECONDS:
            if not self.leases.holds() or self._log.is_removed():
                return False
            self._asked = now
        return True

    def append(self, lines: bytes) -> bool:
        """Appends finished units: complete lines, each `[slot,…]` and a line feed.

        Returns:
            Whether this worker still holds its shards; if not, nothing was written.
        """
        now = boot_seconds()
        if (now - self._asked > ASK_SECONDS and not self.holds()) or not self._append(lines):
            return False
        if now - self._synced > SYNC_SECONDS:
            self._synced = now
            self._log.sync()
        return True

    def write(self, lines: bytes) -> bool:
        """Like `append`, for callers that must not wait for the disk and call `sync` elsewhere."""
        return self.holds() and self._append(lines)

    def _append(self, lines: bytes) -> bool:
        used = b'_tokens":' in lines or b'"cost":' in lines
        return self._log.append(lines, Written(lines.count(b"\n"), {}, used))

    def void(self, slots: Iterable[int]) -> None:
        """Makes done units undone, for everybody who reads the log: their lines no longer count."""
        for slot in filter(self.is_done, slots):
            at = self._index.find(slot)
            self._rule("void", self._segments[self._index.segments[at]].name, self._index.offsets[at], slot)
        self._log.sync()
        self.refresh()

    def fence(self, segment: str, offset: int) -> None:
        """Ends a segment at an offset, for everybody who reads the log: lines that begin later do not count.

        Lines that void or fence count wherever they are, so that all readers agree.
        """
        self._rule("fence", segment, offset)

    def note_spent(self, cost: float, currency: str) -> None:
        """Notes what a request has cost, for everybody who reads the log, whether its unit is ever done or not."""
        self._rule("spent", currency, cost, written=Written(0, {currency: cost}))

    def accept(self, name: str, rows: int) -> None:
        """Accepts that finished units are lost, for everybody who reads the log.

        Args:
            name: the segment that had them, or the artifact.
            rows: how many were lost in all.
        """
        self._rule("lost", name, rows)

    def accepted(self, name: str) -> int:
        """How many lost units of a segment or an artifact were accepted."""
        return self._accepted.get(name, 0)

    def _rule(self, kind: str, name: str, value: float, slot: int = -1, written: Written = NOTHING) -> None:
        self._log.append(orjson.dumps([slot, {kind: [name, value]}]) + b"\n", written)

    def sync(self) -> None:
        """Makes the appended lines survive a crash of the machine."""
        self._log.sync()

    def line(self, slot: int) -> bytes:
        """The line of a finished unit.

        Raises:
            EngineError: it was damaged after it had been read.
        """
        place = self._index.find(slot)
        [(_, body)] = self._read_bodies([place] if place >= 0 else [])
        return body + b"\n"

    def records(self) -> Iterator[list[Any]]:
        """The parsed records of these lines.

        Raises:
            EngineError: as `line`; also for a line that evaluand did not write.
        """
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[list[list[Any]]]:
        """The same in lists, which are limited in rows and in bytes."""
        batch: list[tuple[int, bytes]] = []
        size = 0
        for line in self._read_bodies(self._index.places()):
            batch.append(line)
            size += len(line[1])
            if size >= _BATCH_BYTES or len(batch) >= _BATCH_ROWS:
                yield self._parse_all(batch)
                batch, size = [], 0
        if batch:
            yield self._parse_all(batch)

    def read_through(self) -> Iterator[list[Any]]:
        """The records of all units finished so far, in the order in which they were written.

        Reads all segments twice: what a later line voids or fences does not count.

        Raises:
            EngineError: as `records`.
        """
        self.refresh()
        for number, segment in enumerate(self._segments):
            for offset, _, lines in read_chunks(self._log, segment.name, 0):
                yield from self._read_counted(number, offset, lines)

    def find_lost(self) -> Lost:
        """The finished units that were written and cannot be read any more, except those that were accepted.

        Reads first what leases say, then what was written since the last `refresh`.
        """
        expected = dict(self.leases.history().written)
        self.refresh()
        named = [name for name, _ in self._voided] + [name for name, offset in self._fenced.items() if offset]
        expected |= {name: NOTHING for name in named if name not in expected}
        rows = {segment.name: segment.n_lines - segment.n_rules for segment in self._segments}
        self.missing = [*find_missing(expected, rows)]
        damage = [*sorted(self._damaged.values()), *self.missing]
        lost = Counter[str]()
        for each in damage:
            lost[each.segment] += each.rows
        total = sum(max(0, n - self.accepted(name)) for name, n in lost.items())
        self._warned.update(self._damaged)  # by who asks
        all_ = reduce(Written.plus, expected.values(), NOTHING)
        faults = [fault_of(self._log, each) for each in damage]
        return Lost(total, lost, {**all_.spent, **self.spent}, all_.used, faults)

    def damage(self) -> list[Fault]:
        """What of the segments read so far is not a valid line, in their order: it counts as not done.

        A last line without its end is listed too, unless it is being written just now.
        """
        return [fault_of(self._log, each) for each in self._list_damage()]

    def read_damage(self) -> Iterator[tuple[Damage, bytes]]:
        """The same with the bytes, of long lines in pieces."""
        for damage in self._list_damage():
            end = damage.offset + damage.size
            for offset in range(damage.offset, end, _PIECE_BYTES):
                yield damage, self._log.read(damage.segment, offset, min(_PIECE_BYTES, end - offset))

    def warn_of_damage(self, consequence: str = "what is missing is done again") -> None:
        """Warns of damaged lines, of each once; an incomplete last line is how a killed process ends."""
        places = [
            f"{self._log.path(d.segment)}:{d.line}" for key, d in self._damaged.items() if key not in self._warned
        ]
        if places:
            self._warned.update(self._damaged)
            lines = f"{plural(len(places), 'damaged line')} of the journal {pluralize(len(places), 'counts', 'count')}"
            warn(f"{lines} as not done; {consequence}: {list_places(places)}")

    def close(self) -> None:
        with ExitStack() as ending:  # in reverse order, whatever fails
            ending.callback(self._ahead.clear)
            ending.callback(self._log.close)
            ending.callback(self.leases.release)  # which says what was written
            self._log.sync()

    def _scan(self, number: int) -> None:
        segment = self._segments[number]
        try:
            for offset, size, lines in read_chunks(self._log, segment.name, segment.read_to):
                if lines:
                    self._index_lines(number, offset, lines)
                else:
                    segment.n_lines += 1
                    self._add_damage(number, offset, size, INVALID)
                segment.read_to = offset + size
        except FileNotFoundError:  # another process has sealed the artifact
            return

    def _index_lines(self, number: int, offset: int, chunk: bytes) -> None:
        segment, index = self._segments[number], self._index
        numbers, offsets, sizes = index.segments, index.offsets, index.sizes
        low = high = shift = 0  # the slots of a page, and what leads from a slot to its place
        seed, is_own, is_trusted = segment.seed, segment.is_own, segment.is_trusted
        end, size = None if seed is None else -CHECKSUM_SIZE, 0
        for line in chunk[:-1].split(b"\n"):
            offset += size
            size = len(line) + 1
            segment.n_lines += 1
            body = line[:end] if is_own else read_body(line, seed)
            if body is None:
                self._add_damage(number, offset, size, CHANGED)
                continue
            try:
                comma = body.index(b",")
                slot = int(body[1:comma]) if is_trusted else parse_slot(body)
                if body[comma + 1] == _BRACE:
                    self._follow_rule(slot, orjson.loads(body)[1])
                    segment.n_rules += 1
                    continue
            except (ValueError, TypeError, KeyError, IndexError):
                self._add_damage(number, offset, size, INVALID)
                continue
            if low <= slot < high:
                place = slot + shift
            elif 0 <= slot < self.slots or (self._grows and self._grow(slot)):
                place = index.reach(slot)
                low = slot & ~PAGE_MASK
                high, shift = min(low + PAGE_SLOTS, self.slots), place - slot
            else:
                self._add_damage(number, offset, size, OUT_OF_RANGE)
                continue
            if numbers[place] >= 0:
                self._passed_over |= (numbers[place], offsets[place]) != (number, offset)
            elif not (self._voided or self._fenced) or self._counts(segment.name, slot, offset):
                numbers[place], offsets[place], sizes[place] = number, offset, size
                self.n_done += 1

    def _grow(self, slot: int) -> bool:
        """Grows up to a slot; returns whether it is possible."""
        if not self.slots <= slot < self._capacity:
            return False
        self.slots = slot + 1
        return True

    def _counts(self, name: str, slot: int, offset: int) -> bool:
        """Whether no line voids or fences this one."""
        if self._voided and offset <= self._voided.get((name, slot), -1):
            return False
        return not self._fenced or offset < self._fenced.get(name, offset + 1)

    def _follow_rule(self, slot: int, rule: dict[str, Any]) -> None:
        """Follows a line that voids or fences others, or adds to what was spent.

        A line of a slot is void up to an offset: should damage have moved it, it does not count either.

        Raises:
            ValueError, TypeError, KeyError: evaluand did not write it.
        """
        [(kind, (name, offset))] = rule.items()
        if kind == "spent" and type(name) is str and type(offset) is float and slot == -1:
            self.spent[name] = self.spent.get(name, 0.0) + offset
            return
        if type(name) is not str or type(offset) is not int:
            raise ValueError(INVALID)
        if kind == "fence" and slot == -1:
            if offset < self._fenced.get(name, offset + 1):
                self._fenced[name] = offset
                self._ended.add(name)
        elif kind == "lost" and slot == -1:
            self._accepted[name] = max(offset, self.accepted(name))
        elif kind == "void" and slot >= 0:
            self._voided[name, slot] = max(offset, self._voided.get((name, slot), -1))
            place, number = self._index.find(slot), self._numbers.get(name, -2)
            if place >= 0 and self._index.segments[place] == number and self._index.offsets[place] <= offset:
                self._take_back(place)
        else:
            raise ValueError(INVALID)

    def _take_back_fenced(self) -> None:
        """Takes back the lines of segments that were fenced, in one pass: a journal may have many fences."""
        ends = {self._numbers[name]: self._fenced[name] for name in self._ended if name in self._numbers}
        self._ended.clear()
        if ends:
            offsets = self._index.offsets
            for place, number in enumerate(self._index.segments):
                if number in ends and offsets[place] >= ends[number]:
                    self._take_back(place)

    def _take_back(self, place: int) -> None:
        self._index.segments[place] = -1
        self.n_done -= 1
        self.n_taken_back += 1
        self._changed |= self._passed_over

    def _add_damage(self, number: int, offset: int, size: int, reason: str) -> None:
        segment = self._segments[number]
        self._damaged[number, offset] = Damage(segment.name, segment.n_lines, offset, size, reason)

    def _list_damage(self) -> list[Damage]:
        return sorted([*self._damaged.values(), *self._find_incomplete()])

    def _find_incomplete(self) -> Iterator[Damage]:
        """The ends of segments that are no complete line."""
        found = [each for each in self._segments if each.read_to < each.size and each.name != self._log.segment]
        if found:
            time.sleep(_WRITING_SECONDS)
        for each in found:
            if self._log.size(each.name) == each.size:
                yield Damage(each.name, each.n_lines + 1, each.read_to, each.size - each.read_to, INCOMPLETE)

    def _read_counted(self, number: int, offset: int, chunk: bytes) -> Iterator[list[Any]]:
        """The records among some lines of a segment that count."""
        segment, size = self._segments[number], 0
        for line in chunk[:-1].split(b"\n") if chunk else ():
            offset += size
            size = len(line) + 1
            body = read_body(line, segment.seed)
            if body is None:
                continue
            try:
                place = self._index.find(int(body[1 : body.index(b",")]))
            except ValueError:
                continue
            if place >= 0 and (self._index.segments[place], self._index.offsets[place]) == (number, offset):
                yield self._parse(number, body)

    def _parse_all(self, lines: Sequence[tuple[int, bytes]]) -> list[list[Any]]:
        """The records of lines, each with the number of its segment: read at once, which takes half the time."""
        with suppress(orjson.JSONDecodeError):
            records: list[Any] = orjson.loads(b"[%b]" % b",".join([body for _, body in lines]))
            if len(records) == len(lines) and all(map(_is_record, records)):
                return records
        return [*starmap(self._parse, lines)]

    def _parse(self, number: int, body: bytes) -> list[Any]:
        try:
            record: Any = orjson.loads(body)
            if _is_record(record):
                return record
            reason = "it does not begin with a slot"
        except orjson.JSONDecodeError as error:
            reason = str(error)
        path = self._log.path(self._segments[number].name)
        raise EngineError(f"{path}: evaluand did not write the line {body[:80]!r}…: {reason}") from None

    def _read_bodies(self, places: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """The JSON texts of the lines at those places that have one, each with the number of its segment."""
        numbers, offsets, sizes = self._index.segments, self._index.offsets, self._index.sizes
        current, start, stop, data, seed = -1, 0, 0, b"", None  # bytes of a segment: from start to stop
        for place in places:
            number = numbers[place]
            if number < 0:
                continue
            offset = offsets[place]
            end = offset + sizes[place] - 1  # without the line feed
            if number != current or offset < start or end > stop:
                start, data = self._read_ahead(number, offset, end - offset)
                current, stop, seed = number, start + len(data), self._segments[number].seed
            if seed is None:
                yield number, data[offset - start : end - start]
                continue
            tail = end - start - CHECKSUM_SIZE
            body = data[offset - start : tail]
            if data[tail : end - start] != b"%08x" % crc32(body, seed):
                raise EngineError(
                    f"{self._log.path(self._segments[number].name)}: the line at byte {offset} was damaged"
                    " after it had been read; start again: its call is repeated"
                )
            yield number, body

    def _read_ahead(self, number: int, offset: int, size: int) -> tuple[int, bytes]:
        """Bytes of a segment with those of a line, and where they begin.

        They are those that were read last, if the line is among them. Else more than the line is read if it is near
        these: lines are mostly read in order.
        """
        start, data = self._ahead.pop(number, _NOTHING)
        if start <= offset and offset + size <= start + len(data):
            self._ahead[number] = start, data
            return start, data
        is_near = start <= offset <= start + len(data) + _AHEAD_BYTES
        segment = self._segments[number]
        try:
            data = self._log.read(segment.name, offset, max(size, _AHEAD_BYTES) if is_near else size)
        except FileNotFoundError:
            path = self._log.path(segment.name)
            raise EngineError(f"{path}: no longer exists; another process has finished this work") from None
        while len(self._ahead) >= _BUFFERS:
            self._ahead.pop(next(iter(self._ahead)))
        self._ahead[number] = offset, data
        return offset, data


def _is_record(parsed: Any) -> TypeGuard[list[Any]]:
    return type(parsed) is list and bool(parsed) and type(parsed[0]) is int


_PIECE_BYTES: Final = 1 << 20
_WRITING_SECONDS: Final = 0.02  # for a line that is being written


class _Segment:
    """What was read of a segment.

    Attributes:
        size: when it was read last.
        read_to: the end of its last complete line.
        n_lines: how many complete lines were read.
        n_rules: how many of these are no finished units.
        is_trusted: whether the beginning of a line with a matching checksum can be relied on.
        is_own: whether this process is writing it. Then checksums are compared when lines are used, not before.
    """

    __slots__ = ("is_own", "is_trusted", "n_lines", "n_rules", "name", "read_to", "seed", "size")

    def __init__(self, name: str, seed: int | None, is_own: bool) -> None:
        self.name, self.seed, self.is_own = name, seed, is_own
        self.is_trusted = not name.endswith(EARLIER_SUFFIX)
        self.size = self.read_to = self.n_lines = self.n_rules = 0


class MemoryLog:
    """A log in memory."""

    segment = "memory"

    def __init__(self) -> None:
        self._data = bytearray()

    def append(self, data: bytes, written: Written = NOTHING) -> bool:
        self._data += data
        return True

    def is_removed(self) -> bool:
        return False

    def sync(self) -> None:
        """Memory has nothing to sync."""

    def segments(self) -> Mapping[str, int]:
        return {self.segment: len(self._data)}

    def size(self, segment: str) -> int:
        return len(self._data)

    def seed(self, segment: str) -> int | None:
        return None

    def is_own(self, segment: str) -> bool:
        return True

    def begin(self) -> None:
        """It exists."""

    def written(self) -> Mapping[str, Written]:
        return {}

    def path(self, segment: str) -> str:
        return "the journal in memory"

    def read(self, segment: str, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def restart(self) -> None:
        """Memory has one segment."""

    def close(self) -> None:
        """Memory has nothing to close."""
