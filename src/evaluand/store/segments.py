"""The lines of a journal's segments, and what damage does to them.

A line is a JSON list that begins with a slot, eight hexadecimal digits and a line feed:

    [17,"0c5e…",null,"completed",…]9ae0f3c1

The digits are the CRC-32 of the list. It begins with the CRC-32 of the journal and the name of the segment, so a line
that was moved to another place does not match either. Segments that end in `.jsonl` are of earlier versions and have
no checksums; of their lines only the form can be checked.

Whatever is not such a line is damage: it does not count, and it is listed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from zlib import crc32

import orjson

from evaluand.core.errors import EngineError

SUFFIX: Final = ".lines"
EARLIER_SUFFIX: Final = ".jsonl"
CHECKSUM_SIZE: Final = 8
MAX_LINE_BYTES: Final = 1 << 30

CHANGED: Final = "its checksum does not match"
INVALID: Final = "it is not a JSON list that begins with a slot"
OUT_OF_RANGE: Final = "its slot is out of range"
INCOMPLETE: Final = "it has no end"


class Damage(NamedTuple):
    """Bytes of a segment that are not a valid line.

    Attributes:
        line: the number of the line in its segment, from 1.
        offset: where it begins, in bytes.
        size: its length in bytes, with the line feed.
    """

    segment: str
    line: int
    offset: int
    size: int
    reason: str


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
    end = len(lines) - 1
    if lines.find(b"\n") == end:
        body = lines[:end]
        return b"%b%08x\n" % (body, crc32(body, seed))
    return b"".join(b"%b%08x\n" % (body, crc32(body, seed)) for body in lines[:end].split(b"\n"))


def read_body(line: bytes, seed: int | None) -> bytes | None:
    """The JSON text of a line without its line feed; None if the line is damaged.

    Example:
        >>> read_body(b'[0,"a"]881434de', 7), read_body(b'[0,"b"]881434de', 7)
        (b'[0,"a"]', None)
    """
    if seed is None:
        return line
    body = line[:-CHECKSUM_SIZE]
    return body if line.endswith(b"%08x" % crc32(body, seed)) else None


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
