"""The headers of the pages in a Parquet file, in the compact protocol of Thrift."""

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


def read_pages(data: mmap.mmap, column: Any) -> Iterator[Page]:
    """The pages of a column chunk that Arrow reads.

    Args:
        data: the file.
        column: the metadata of the chunk.

    Raises:
        ArrowInvalid: a header cannot be read.
    """
    at = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < at:
        at = column.dictionary_page_offset
    end, seen = min(at + column.total_compressed_size + _PADDING, len(data)), 0
    while seen < column.num_values and at < end:
        try:
            reader = _Reader(data, at)
            header = reader.read_struct()
            page = _page_of(header)
        except (IndexError, KeyError, ValueError, RecursionError):
            raise pa.ArrowInvalid(f"the file is damaged: no page can be read at byte {at:,}") from None
        yield page
        seen += page.values if page.kind in (DATA, DATA_V2) else 0
        at = reader.at + header[_STORED_SIZE]


def _page_of(header: dict[int, Any]) -> Page:
    kind = header[_KIND]
    details = header[_DETAILS[kind]] if kind in _DETAILS else {}
    page = Page(kind, header[_SIZE], details.get(_VALUES, 0), details.get(_ENCODING.get(kind, 0), 0))
    if page.size < 0 or page.values < 0 or header[_STORED_SIZE] < 0:
        raise ValueError("a size is negative")
    return page


class _Reader:
    """Reads structs: numbers and structs by the number of their field; anything else is passed over."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self._data, self.at = data, at
        self._fields_left = _MOST_FIELDS

    def read_struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            value = None if kind in (_TRUE, _FALSE) else self._value(kind)  # it is in the kind
            if kind in (_I32, _STRUCT):
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
            return self._pass_list()
        if kind not in (_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY):
            raise ValueError("the type of a field is unknown")
        size = self._unsigned() if kind == _BINARY else 8 if kind == _DOUBLE else 1
        self.at += size
        return None

    def _pass_list(self) -> None:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._unsigned()
        for _ in range(size):
            self._value(head & 15)

    def _byte(self) -> int:
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
