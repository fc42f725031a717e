"""What the messages of an Arrow file expand to, by what they say of themselves.

Arrow decompresses a buffer at the size that its first eight bytes state, and a column without buffers, such as one of
nulls, has as many values as its message states. Both can be read without taking memory. Only the tables of Arrow's
messages that have sizes are read, in the binary format of FlatBuffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluand.data.formats.expansion import VALUE_BYTES, Expansion

_OLD_COMPRESSION: Final = b"ARROW:experimental_compression"  # a key of messages before Arrow 1.0
_HEAD: Final = 8  # the magic and its padding
_END: Final = 10  # the length of the footer and the magic
_BLOCK: Final = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])
_NODE: Final = np.dtype([("length", "<i8"), ("null_count", "<i8")])
_BUFFER: Final = np.dtype([("offset", "<i8"), ("length", "<i8")])


def check_messages(file: pa.NativeFile, has_footer: bool, expansion: Expansion) -> None:
    """Refuse a file whose messages expand beyond the limit.

    Args:
        file: a memory map of the file.
        has_footer: whether it is a file with a footer, not a stream.

    Raises:
        DataError: it would expand beyond the limit.
        ArrowInvalid: it is damaged.
    """
    memory, values = Expansion(expansion.name, expansion.limit), Expansion(expansion.name, expansion.limit)
    try:
        for message in _messages_of_file(file) if has_footer else _messages_of_stream(file):
            if (batch := _find_batch(message)) is not None:
                values.add(VALUE_BYTES * float(batch.vector(1, _NODE)["length"].sum(dtype=np.float64)))
                memory.add(sum(_memory_of_buffers(message, batch)))
    except (struct.error, ValueError, OverflowError, EOFError) as error:
        raise pa.ArrowInvalid(f"the file is damaged: a message cannot be read ({error})") from None


def _messages_of_file(file: pa.NativeFile) -> Iterator[Any]:
    size = file.size()
    file.seek(size - _END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(size - _END - length)
    footer = _Table.root(file.read(length))
    blocks = np.concatenate([footer.vector(number, _BLOCK) for number in (2, 3)])
    read = 0
    for offset in blocks["offset"].tolist():
        file.seek(offset)
        message = pa.ipc.read_message(file)
        read += message.metadata.size + (message.body.size if message.body else 0)
        if read > size:
            raise ValueError("messages overlap")
        yield message
    if (found := _count_messages(file)) > len(blocks):
        raise ValueError(f"the footer names {len(blocks):,} of {found:,}")


def _count_messages(file: pa.NativeFile) -> int:
    """The messages of a file with a footer, but for the schema, as far as they follow the head without a gap."""
    file.seek(_HEAD)
    found = 0
    with suppress(EOFError, OSError, pa.ArrowInvalid):  # Polars leaves a gap; some writers put no end before the footer
        while True:
            found += pa.ipc.read_message(file).type != "schema"
    return found


def _messages_of_stream(file: pa.NativeFile) -> Iterator[Any]:
    file.seek(0)
    yield from pa.ipc.MessageReader.open_stream(file)


def _find_batch(message: Any) -> _Table | None:
    """The columns in a message; None if it is of another kind."""
    header = _Table.root(message.metadata).table(2)
    if message.type == "dictionary":
        return header.table(1)
    return header if message.type == "record batch" else None


def _memory_of_buffers(message: Any, batch: _Table) -> Iterator[int]:
    """The bytes that Arrow may take for each buffer."""
    is_compressed = batch.field(3) is not None or _OLD_COMPRESSION in message.metadata.to_pybytes()
    body = memoryview(message.body or b"")
    for offset, length in batch.vector(2, _BUFFER).tolist():
        stated = int.from_bytes(body[offset : offset + 8], "little", signed=True) if is_compressed and length else -1
        yield max(length, stated)


class _Table:
    """A table of FlatBuffers: its fields by their number."""

    def __init__(self, data: Any, position: int) -> None:
        self._data, self._position = data, position
        self._names = position - _unpack("<i", data, position)
        self._size = _unpack("<H", data, self._names)

    @classmethod
    def root(cls, data: Any) -> _Table:
        return cls(data, _unpack("<I", data, 0))

    def field(self, number: int) -> int | None:
        """The position of a field; None if it has its default."""
        place = 4 + 2 * number
        offset = _unpack("<H", self._data, self._names + place) if place < self._size else 0
        return self._position + offset if offset else None

    def table(self, number: int) -> _Table:
        position = self.field(number)
        if position is None:
            raise ValueError("a table is missing")
        return _Table(self._data, position + _unpack("<I", self._data, position))

    def vector(self, number: int, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """The structs of a field; none if it is missing."""
        position = self.field(number)
        if position is None:
            return np.empty(0, kind)
        position += _unpack("<I", self._data, position)
        return np.frombuffer(self._data, kind, _unpack("<I", self._data, position), position + 4)


def _unpack(kind: str, data: Any, position: int) -> int:
    if position < 0:
        raise ValueError("an offset leads outside")
    return int(struct.unpack_from(kind, data, position)[0])
