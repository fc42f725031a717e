"""The lines of a journal's segments, and what damage does to them.

A line is a JSON list that begins with a slot, eight hexadecimal digits and a line feed:

    [17,"0c5e…",null,"completed",…]9ae0f3c1

The digits are the CRC-32 of the list. It begins with the CRC-32 of the journal and the name of the segment, so a line
that was moved to another place does not match either. Segments that end in `.jsonl` are of earlier versions and have
no checksums; of their lines only the form can be checked.

Whatever is not such a line is damage: it does not count, and it is listed.
"""

from __future__ import annotations

import re
import secrets
import time
from binascii import hexlify
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

import orjson

from evaluand.core.errors import EngineError, Fault, plural
from evaluand.store.lease_state import NOTHING, Written

SUFFIX: Final = ".lines"
EARLIER_SUFFIX: Final = ".jsonl"
SEGMENT_FILE: Final = re.compile(r"[0-9]{20}-[0-9a-f]{8}\.(lines|jsonl)")
CHECKSUM_SIZE: Final = 8
MAX_LINE_BYTES: Final = 1 << 30
CHUNK_BYTES = 1 << 20

CHANGED: Final = "its checksum does not match"
INVALID: Final = "it is not a JSON list that begins with a slot"
OUT_OF_RANGE: Final = "its slot is out of range"
INCOMPLETE: Final = "it has no end"
LONG: Final = "it is too long to be checked without a checksum"
_LONG_LINE_BYTES = 1 << 25


class Damage(NamedTuple):
    """Bytes of a segment that are not a valid line, or lines that it has no more.

    Attributes:
        line: the number of the line in its segment, from 1; 0 of lines that are missing.
        offset: where it begins, in bytes.
        size: its length in bytes, with the line feed.
        rows: how many finished units it held at least.
    """

    segment: str
    line: int
    offset: int
    size: int
    reason: str
    rows: int = 1


def new_segment() -> str:
    """A name for a segment, which no other writer has, and which comes after those of earlier ones."""
    return f"{time.time_ns():020d}-{secrets.token_hex(4)}{SUFFIX}"


def seed_of(scope: str, segment: str) -> int:
    """The CRC-32 with which the checksums of a segment begin.

    Args:
        scope: the journal: kind, id and name of the log.

    Example:
        >>> seed_of("runs/00aa/calls", "1.lines") == crc32(b"runs/00aa/calls/1.lines")
        True
    """
    return crc32(f"{scope}/{segment}".encode())


def add_checksums(lines: bytes, seed: int) -> bytes:
    r"""Complete lines with their checksums.

    Raises:
        EngineError: a line is longer than a segment may have.

    Example:
        >>> add_checksums(b'[0,"a"]\n[1,"b"]\n', 7)
        b'[0,"a"]881434de\n[1,"b"]410e5922\n'
    """
    if len(lines) > MAX_LINE_BYTES - CHECKSUM_SIZE:
        raise EngineError(f"a result of {len(lines):,} bytes cannot be stored; a line has at most {MAX_LINE_BYTES:,}")
    end = lines.find(b"\n")
    if end == len(lines) - 1:
        body = lines[:end]
        return body + b"%08x\n" % crc32(body, seed)
    return b"".join([b"%b%08x\n" % (body, crc32(body, seed)) for body in lines[:-1].split(b"\n")])


def read_body(line: bytes, seed: int | None) -> bytes | None:
    """The JSON text of a line without its line feed; None if the line is damaged.

    Example:
        >>> read_body(b'[0,"a"]881434de', 7), read_body(b'[0,"b"]881434de', 7)
        (b'[0,"a"]', None)
    """
    if seed is None:
        return line
    body = line[:-CHECKSUM_SIZE]
    return body if line.endswith(hexlify(crc32(body, seed).to_bytes(4, "big"))) else None


def parse_slot(body: bytes) -> int:
    """The slot at the beginning of a line without a checksum, which is checked as a whole.

    Raises:
        ValueError: the line is damaged.
    """
    record: Any = orjson.loads(body)
    if type(record) is not list or len(record) < 2 or type(record[0]) is not int:
        raise ValueError(INVALID)
    slot: int = record[0]
    return slot


class Log(Protocol):
    """Append-only segments, one per writer."""

    @property
    def segment(self) -> str:
        """The name of this writer's segment, which exists from its first line on."""

    def begin(self) -> None:
        """Makes this writer's segment, so that one with a lease is damaged where it is missing."""

    def append(self, data: bytes, written: Written = NOTHING) -> bool:
        """Appends complete lines to this writer's segment; they survive the death of the process.

        Args:
            written: what they are.

        Returns:
            False if the journal no longer exists: nothing was written.
        """

    def written(self) -> Mapping[str, Written]:
        """What this writer has written into each of its segments."""

    def is_removed(self) -> bool:
        """Whether this writer's segment was removed, as sealing the artifact does: what it appends is lost."""

    def sync(self) -> None:
        """Makes the appended lines survive a crash of the machine."""

    def restart(self) -> None:
        """Ends this writer's segment, and begins another."""

    def close(self) -> None:
        """Ends this writer's segment."""

    def is_own(self, segment: str) -> bool:
        """Whether this writer has begun the segment."""

    def segments(self) -> Mapping[str, int]:
        """The names of all segments, sorted, with their sizes in bytes."""

    def size(self, segment: str) -> int:
        """The size of a segment in bytes; 0 if it does not exist."""

    def seed(self, segment: str) -> int | None:
        """With what the checksums of a segment begin; None if its lines have none."""

    def path(self, segment: str) -> str:
        """Where a segment is, for messages."""

    def read(self, segment: str, offset: int, size: int) -> bytes:
        """Up to `size` bytes of a segment.

        Raises:
            FileNotFoundError: it no longer exists.
        """


def read_chunks(log: Log, segment: str, offset: int, most: int = MAX_LINE_BYTES) -> Iterator[tuple[int, int, bytes]]:
    """The complete lines of a segment in chunks, each with its offset and size.

    A chunk without lines is a line that was not read into memory: one that is longer than `most`, or damaged. An
    incomplete last line is passed over.
    """
    size = CHUNK_BYTES
    while chunk := log.read(segment, offset, size):
        end = chunk.rfind(b"\n") + 1
        lines = chunk[:end]
        if not end:
            if len(chunk) < size:
                return
            if chunk.startswith(b"[") and size < most:
                size *= 2
                continue
            if not (end := _find_line_feed(log, segment, offset + len(chunk)) - offset) > 0:
                return
        yield offset, end, lines
        if len(chunk) < size:
            return
        offset, size = offset + end, CHUNK_BYTES


def _find_line_feed(log: Log, segment: str, offset: int) -> int:
    """The position after the first line feed from an offset on; -1 if there is none, or it is too far away."""
    end = offset + MAX_LINE_BYTES
    while offset < end and (chunk := log.read(segment, offset, CHUNK_BYTES)):
        if place := chunk.find(b"\n") + 1:
            return offset + place
        offset += len(chunk)
    return -1


def find_missing(written: Mapping[str, Written], rows: Mapping[str, int]) -> Iterator[Damage]:
    """What segments have lost, although leases or other lines say that they had it.

    Args:
        written: what each segment had at least.
        rows: how many rows, damaged ones too, each segment has now; without those that are missing.
    """
    for name, known in sorted(written.items()):
        lost = known.rows - rows.get(name, 0)
        if name not in rows:
            has_lost = f"is missing, with at least {plural(lost, 'row')}" if lost else "is missing"
            yield Damage(name, 0, 0, 0, has_lost, lost)
        elif lost > 0:
            yield Damage(name, 0, 0, 0, f"has lost at least {plural(lost, 'row')}", lost)


def find_damage(log: Log, written: Mapping[str, Written] = {}) -> Iterator[Damage]:
    """The damage of a log that nobody works on, found without an index, so that memory is bounded.

    Args:
        written: what each segment has at least.
    """
    expected, rows = dict(written), dict[str, int]()
    for name, total in log.segments().items():
        seed, read_to, n, n_rules = log.seed(name), 0, 0, 0
        for offset, size, lines in read_chunks(log, name, 0, _LONG_LINE_BYTES):
            place, read_to = offset, offset + size
            for line in lines[:-1].split(b"\n"):
                n += 1
                length = len(line) + 1 if lines else size
                if reason := _find_fault(line, seed) if lines else _find_long_fault(log, name, offset, size, seed):
                    yield Damage(name, n, place, length, reason)
                elif RULE.match(line):
                    n_rules += 1
                    expected.update({other: NOTHING for other in named_in(line, seed) if other not in expected})
                place += length
        if read_to < total:
            n += 1
            yield Damage(name, n, read_to, total - read_to, INCOMPLETE)
        rows[name] = n - n_rules
    yield from find_missing(expected, rows)


RULE: Final = re.compile(rb"\[-?[0-9]+,\{")
"""How a line begins that says something of other lines, or of what was spent."""


def named_in(line: bytes, seed: int | None) -> list[str]:
    """The segment that a line voids or fences, which had lines then."""
    with suppress(ValueError, TypeError):
        [(kind, (name, offset))] = orjson.loads(read_body(line, seed) or b"")[1].items()
        return [name] if kind == "void" or (kind == "fence" and offset > 0) else []
    return []


def _find_fault(line: bytes, seed: int | None) -> str:
    body = read_body(line, seed)
    if body is None:
        return CHANGED
    try:
        slot = parse_slot(body)
    except ValueError:
        return INVALID
    return "" if slot >= -1 else OUT_OF_RANGE


def _find_long_fault(log: Log, segment: str, offset: int, size: int, seed: int | None) -> str:
    """The fault of a line that is read in pieces, because a file with holes may have lines larger than memory."""
    end = offset + size - CHECKSUM_SIZE - 1
    if _SLOT.match(log.read(segment, offset, _MOST_DIGITS)) is None:
        return INVALID
    if seed is None:
        return LONG
    while offset < end and (piece := log.read(segment, offset, min(CHUNK_BYTES, end - offset))):
        seed = crc32(piece, seed)
        offset += len(piece)
    return "" if log.read(segment, end, CHECKSUM_SIZE) == b"%08x" % seed else CHANGED


_MOST_DIGITS: Final = 32
_SLOT: Final = re.compile(rb"\[(0|[1-9][0-9]*),")


def fault_of(log: Log, damage: Damage) -> Fault:
    """The report of some damage."""
    if not damage.line:
        return Fault(log.path(damage.segment), f"{damage.reason}; what it had counts as not done")
    return Fault(f"{log.path(damage.segment)}:{damage.line}", f"damaged: {damage.reason}; it counts as not done")


def list_places(places: Sequence[str]) -> str:
    """The first of some places, and how many more there are.

    Example:
        >>> list_places(["a:1", "a:7", "b:2", "b:3"])
        'a:1, a:7, b:2 and 1 more'
    """
    more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
    return ", ".join(places[:_SHOWN]) + more


_SHOWN: Final = 3
