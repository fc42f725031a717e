"""Where the columns of a Parquet file are, and the headers of their pages, in the compact protocol of Thrift.

Arrow ends the process if the metadata of a column in the footer contradict themselves, so they are read here.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
"""Types of pages."""
_KIND, _SIZE, _STORED_SIZE = 1, 2, 3  # fields of a header
_DETAILS: Final = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}
_VALUES: Final = 1
_ENCODING: Final = {DATA: 2, DICTIONARY: 2, DATA_V2: 4}

_PADDING: Final = 100  # that chunks of old writers have beyond their size
_MOST_FIELDS: Final = 1000
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12


@dataclass(frozen=True)
class Page:
    """What the header of a page says.

    Attributes:
        kind: `DATA`, `DICTIONARY`, `DATA_V2`, or another number.
        size: its bytes after decompression.
        values: the number of its values, nulls included.
        encoding: how its values are written.
    """

    kind: int
    size: int
    values: int
    encoding: int


@dataclass(frozen=True)
class Column:
    """Where a column of a row group is.

    Attributes:
        start: the byte at which its first page begins.
        size: its bytes, headers included.
        values: the number of its values, nulls included.
    """

    start: int
    size: int
    values: int


def read_columns(data: mmap.mmap) -> list[list[Column]]:
    """The columns of each row group.

    Raises:
        ArrowInvalid: the footer cannot be read.
    """
    try:
        size = int.from_bytes(data[-8:-4], "little")
        footer = _Reader(data, len(data) - 8 - size, size).read_struct()
        return [[_column_of(chunk[_METADATA]) for chunk in group[_CHUNKS]] for group in footer.get(_GROUPS, ())]
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        raise pa.ArrowInvalid("the file is damaged: its footer cannot be read") from None


def _column_of(metadata: dict[int, Any]) -> Column:
    first, dictionary = metadata[_FIRST_PAGE], metadata.get(_DICTIONARY_PAGE, 0)
    return Column(dictionary if 0 < dictionary < first else first, metadata[_CHUNK_SIZE], metadata[_CHUNK_VALUES])


_GROUPS, _CHUNKS, _METADATA = 4, 1, 3  # fields of the footer, a row group, and a column of it
_CHUNK_VALUES, _CHUNK_SIZE, _FIRST_PAGE, _DICTIONARY_PAGE = 5, 7, 9, 11


def read_pages(data: mmap.mmap, column: Column) -> Iterator[Page]:
    """The pages of a column that Arrow reads.

    Raises:
        ArrowInvalid: a header cannot be read.
    """
    at, seen = column.start, 0
    end = min(at + column.size + _PADDING, len(data))
    while seen < column.values and at < end:
        try:
            reader = _Reader(data, at, _MOST_FIELDS)
            header = reader.read_struct()
            page = _page_of(header)
        except (IndexError, KeyError, ValueError, RecursionError):
            raise pa.ArrowInvalid(f"the file is damaged: no page can be read at byte {at:,}") from None
        yield page
        seen += page.values if page.kind in (DATA, DATA_V2) else 0
        at = reader.at + header[_STORED_SIZE]


def _page_of(header: dict[int, Any]) -> Page:
    kind = header[_KIND]
    if type(kind) is not int:
        raise ValueError("the type of a page is none")
    details = header[_DETAILS[kind]] if kind in (DATA, DICTIONARY, DATA_V2) else {}
    if not isinstance(details, dict):
        raise ValueError("the details of a page are a number")
    page = Page(kind, header[_SIZE], details.get(_VALUES, 0), details.get(_ENCODING.get(kind, 0), 0))
    if any(type(number) is not int for number in (page.size, page.values, page.encoding, header[_STORED_SIZE])):
        raise ValueError("a number of a page is none")
    if page.size < 0 or page.values < 0 or header[_STORED_SIZE] < 0:
        raise ValueError("a size is negative")
    return page


class _Reader:
    """Reads structs: numbers, structs and lists of these by the number of their field; passes over anything else."""

    def __init__(self, data: mmap.mmap, at: int, most_fields: int) -> None:
        self._data, self.at = data, at
        self._fields_left = most_fields

    def read_struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            value = None if kind in (_TRUE, _FALSE) else self._value(kind)  # it is in the kind
            if kind in (_I32, _I64, _STRUCT, _LIST):
                fields[number] = value
        return fields

    def _value(self, kind: int) -> Any:
        self._fields_left -= 1
        if self._fields_left < 0:
            raise ValueError("there are too many fields")
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind == _STRUCT:
            return self.read_struct()
        if kind in (_LIST, _SET):
            return self._list()
        if kind not in (_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY):
            raise ValueError("the type of a field is unknown")
        size = self._unsigned() if kind == _BINARY else 8 if kind == _DOUBLE else 1
        self.at += size
        return None

    def _list(self) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._unsigned()
        return [self._value(head & 15) for _ in range(size)]

    def _byte(self) -> int:
        if self.at < 0:
            raise IndexError("before the file")
        self.at += 1
        return self._data[self.at - 1]

    def _unsigned(self) -> int:
        result = shift = 0
        while (byte := self._byte()) & 128:
            result |= (byte & 127) << shift
            if (shift := shift + 7) > 63:
                raise ValueError("a number is too long")
        return result | byte << shift

    def _integer(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)
