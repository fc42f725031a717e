"""What the pages of a Parquet file expand to, by what their headers say.

The footer is not asked, since Arrow does not hold pages to it: it takes memory for a page at the size in the page's
header, and reads as many values as that states. Headers are small, and are read without the pages between them.

Pages whose texts are places in a dictionary, or refer to the text before (`DELTA_BYTE_ARRAY`), are smaller than their
texts. The limit is held first against the most that these may take if each is as long as the dictionary; then, if that
is too much, as its longest value; and last against the texts themselves, read as places, or few at once.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluand.data.files import SourceFile
from evaluand.data.formats.expansion import (
    POINTER_BYTES,
    VALUE_BYTES,
    Expansion,
    PlainSizes,
    dictionaries_of,
)
from evaluand.data.formats.page_headers import DICTIONARY, Page, read_columns, read_pages
from evaluand.store.tables import BATCH_ROWS

_OF_DICTIONARY: Final = (2, 8)  # encodings: PLAIN_DICTIONARY, RLE_DICTIONARY
_OF_TEXT_BEFORE: Final = 7  # DELTA_BYTE_ARRAY
_READ_BYTES: Final = 16 << 20  # of texts that are read at once to be counted
_DICTIONARIES: Final = 8  # so many fit into the limit, if they are read to be counted
_LEVEL_BYTES: Final = VALUE_BYTES // 2  # a list has two names in a path


@dataclass(frozen=True)
class _Leaf:
    """A column of single values.

    Attributes:
        place: its number.
        path: its name in the file.
        is_text: whether its values have any length.
        each: what a value counts beyond its length.
        in_lists: whether a row may have several values.
        fixed: the values in all lists of a fixed size around it, which nulls have too.
        fixed_in_lists: whether a row may have several of these lists.
    """

    place: int
    path: str
    is_text: bool
    each: int
    in_lists: bool
    fixed: int
    fixed_in_lists: bool


@dataclass
class _Chunk:
    """The values of a column in a row group.

    Attributes:
        values: how many there are, nulls included.
        stored: the bytes of pages that hold values themselves.
        places: the number of values that are places in a dictionary.
        dictionary: the bytes of the dictionary.
        dictionary_values: the number of its values.
        chained: the most that values which refer to the one before may take.
        longest_chain: the bytes of the largest page of such values.
    """

    leaf: _Leaf
    group: int
    values: int = 0
    stored: int = 0
    places: int = 0
    dictionary: int = 0
    dictionary_values: int = 0
    chained: int = 0
    longest_chain: int = 0

    def add(self, page: Page) -> None:
        if page.kind == DICTIONARY:
            self.dictionary = max(self.dictionary, page.size)
            self.dictionary_values = page.values
            return
        self.values += page.values
        if page.encoding in _OF_DICTIONARY:
            self.places += page.values
        elif page.encoding == _OF_TEXT_BEFORE:
            self.chained += page.values * page.size
            self.longest_chain = max(self.longest_chain, page.size)
        else:
            self.stored += page.size

    def most(self, rows: int, longest: int | None = None) -> int:
        """The most that the values may take.

        Args:
            rows: the number of rows in the row group.
            longest: the length of the longest value in the dictionary, if known.
        """
        lists = self.values if self.leaf.fixed_in_lists else rows
        values = max(self.values, lists * self.leaf.fixed) if self.leaf.fixed > 1 else self.values
        texts = self.stored + self.chained + self.places * (self.dictionary if longest is None else longest)
        return values * self.leaf.each + (texts if self.leaf.is_text else 0)


def check_pages(file: SourceFile, opened: pq.ParquetFile, expansion: Expansion) -> None:
    """Refuse a file whose pages expand beyond the limit.

    Raises:
        DataError: it would expand beyond the limit.
        ArrowInvalid: it is damaged.
    """
    Expansion(file.name, expansion.limit).add(VALUE_BYTES * opened.metadata.num_rows)
    texts = []
    for chunk in _read_chunks(file, opened, Expansion(file.name, expansion.limit)):
        if chunk.leaf.is_text:
            texts.append(chunk)
        else:
            expansion.add(chunk.most(_rows_of(opened, chunk)))
    _check_texts(file, opened, texts, expansion)


def _rows_of(opened: pq.ParquetFile, chunk: _Chunk) -> int:
    return int(opened.metadata.row_group(chunk.group).num_rows)


def _read_chunks(file: SourceFile, opened: pq.ParquetFile, memory: Expansion) -> Iterator[_Chunk]:
    leaves, stored = _leaves_of(opened), 0
    with file.path.open("rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for group, columns in enumerate(read_columns(data)):
            if len(columns) != len(leaves):
                raise pa.ArrowInvalid(f"the file is damaged: it has {len(columns)} columns instead of {len(leaves)}")
            for leaf, column in zip(leaves, columns, strict=True):
                stored += max(0, column.size)
                if stored > len(data):
                    raise pa.ArrowInvalid("the file is damaged: its columns overlap")
                chunk = _Chunk(leaf, group)
                for page in read_pages(data, column):
                    memory.add(page.size)
                    chunk.add(page)
                yield chunk


def _leaves_of(opened: pq.ParquetFile) -> list[_Leaf]:
    schema = opened.metadata.schema
    leaves = []
    for place, (_, size, fixed_in_lists) in enumerate(_single_columns(opened.schema_arrow)):
        column = schema.column(place)
        width = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        each = POINTER_BYTES + max(POINTER_BYTES, width) + _LEVEL_BYTES * column.path.count(".")
        is_text, in_lists = column.physical_type == "BYTE_ARRAY", column.max_repetition_level > 0
        leaves.append(_Leaf(place, column.path, is_text, each, in_lists, size, fixed_in_lists))
    return leaves


def _single_columns(schema: pa.Schema) -> list[tuple[pa.DataType, int, bool]]:
    """For each column of single values: its type, and as in `_Leaf` `fixed` and `fixed_in_lists`."""
    return [each for kind in schema.types for each in _within(kind, 1, False, False)]


def _within(
    kind: pa.DataType, fixed: int, in_lists: bool, fixed_in_lists: bool
) -> Iterator[tuple[pa.DataType, int, bool]]:
    if isinstance(kind, pa.BaseExtensionType):
        yield from _within(kind.storage_type, fixed, in_lists, fixed_in_lists)
    elif pa.types.is_fixed_size_list(kind):
        yield from _within(kind.value_type, fixed * max(1, kind.list_size), in_lists, fixed_in_lists or in_lists)
    elif not kind.num_fields or pa.types.is_run_end_encoded(kind):
        yield kind, fixed, fixed_in_lists
    else:
        in_lists = in_lists or not pa.types.is_struct(kind)
        for i in range(kind.num_fields):
            yield from _within(kind.field(i).type, fixed, in_lists, fixed_in_lists)


def _check_texts(file: SourceFile, opened: pq.ParquetFile, chunks: Sequence[_Chunk], expansion: Expansion) -> None:
    if sum(chunk.most(_rows_of(opened, chunk)) for chunk in chunks) <= expansion.limit - expansion.total:
        return
    with pq.ParquetFile(file.path, read_dictionary=list({chunk.leaf.path for chunk in chunks})) as as_places:
        open_files = _OpenTwice(opened, as_places)
        sizes = [chunk.most(_rows_of(opened, chunk), open_files.longest(chunk, expansion.limit)) for chunk in chunks]
        left = sum(sizes)
        for size, chunk in sorted(zip(sizes, chunks, strict=True), key=lambda pair: -pair[0]):
            if left <= expansion.limit - expansion.total:
                return
            if not open_files.can_count(chunk, expansion.limit):
                expansion.refuse(left)
            left -= size
            for batch in open_files.batches(chunk):
                expansion.add(open_files.sizes.of_batch(batch))


class _OpenTwice:
    """A file as it is, and with the texts in its dictionaries as places."""

    def __init__(self, opened: pq.ParquetFile, as_places: pq.ParquetFile) -> None:
        self._opened, self._as_places = opened, as_places
        self._has_places = [pa.types.is_dictionary(kind) for kind, _, _ in _single_columns(as_places.schema_arrow)]
        self.sizes = PlainSizes()

    def longest(self, chunk: _Chunk, limit: int) -> int | None:
        """The length of the longest value in the dictionary of a chunk; None if it cannot be read."""
        if not chunk.places or not self._is_read_as_places(chunk) or chunk.dictionary * _DICTIONARIES > limit:
            return None
        for batch in self.batches(chunk):
            for dictionary in chain.from_iterable(map(dictionaries_of, batch.columns)):
                if len(dictionary) == chunk.dictionary_values:
                    return pc.max(pc.binary_length(dictionary)).as_py() or 0
            return None
        return None

    def can_count(self, chunk: _Chunk, limit: int) -> bool:
        """Whether the texts can be counted in little memory."""
        if max(chunk.dictionary, chunk.longest_chain) * _DICTIONARIES > limit:
            return False
        return self._is_read_as_places(chunk) or not chunk.leaf.in_lists

    def batches(self, chunk: _Chunk) -> Iterator[pa.RecordBatch]:
        """The texts of a chunk, in batches of few bytes if they are not read as places."""
        file, rows = self._as_places, BATCH_ROWS
        if not self._is_read_as_places(chunk):
            file, rows = self._opened, _READ_BYTES // max(chunk.dictionary, chunk.longest_chain, 1)
        yield from file.iter_batches(min(max(1, rows), BATCH_ROWS), [chunk.group], [chunk.leaf.path], use_threads=False)

    def _is_read_as_places(self, chunk: _Chunk) -> bool:
        return self._has_places[chunk.leaf.place] and not chunk.chained
