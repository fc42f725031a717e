"""How much a Parquet or Arrow file may expand to, counted batch by batch before its values are decoded.

Both hold values in ways that take next to nothing: a dictionary holds a long text once for all rows, run ends hold a
million equal rows as one, views of lists share their values, a column of nulls has no bytes. Most files need this; a
few bytes of a stranger can mean terabytes.

The limit is `MAX_BYTES`, or `MAX_EXPANSION` times the size of the file if that is more. A value counts `VALUE_BYTES`,
whatever its type, and what a text or a wide number has beyond: about what it takes in Python. So ten million rows of a
label fit in a file of any size, and more columns in any file whose rows differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError
from evaluand.data.files import SourceFile
from evaluand.store.tables import BATCH_ROWS

MAX_BYTES: Final = 512 << 20
"""The values of a file may take so many bytes, whatever its own size."""
MAX_EXPANSION: Final = 1000
"""Beyond `MAX_BYTES`, the values of a file may take so many times its own size."""
VALUE_BYTES: Final = 16
"""What a value counts: a reference to it and, in Arrow, at most eight bytes. Lists and objects are values too."""
PART_BYTES: Final = 32 << 20
"""So many bytes of values are decoded at once, unless a single row takes more."""

_Sizes = npt.NDArray[np.float64]


@dataclass
class Expansion:
    """Counts what a file expands to.

    Attributes:
        name: its name in messages.
        limit: the largest number of bytes.
        total: what was counted so far.
    """

    name: str
    limit: int
    total: float = 0

    @classmethod
    def of(cls, file: SourceFile) -> Expansion:
        return cls(file.name, max(MAX_BYTES, MAX_EXPANSION * file.path.stat().st_size))

    def check(self, size: float) -> None:
        """Refuse so many bytes beyond those that were counted.

        Raises:
            DataError: the file expands beyond its limit.
        """
        if self.total + size > self.limit:
            raise DataError(
                f"{self.name}: would expand to {_words(self.total + size)} or more; the limit for a file of its size is"
                f" {_words(self.limit)}; if you trust it, divide its rows into several files"
            )

    def parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A batch in parts of few rows that take little memory when they are decoded.

        Raises:
            ArrowInvalid: the batch is not sound: Arrow trusts lengths, offsets and places in dictionaries, and would
                read outside of the memory.
            DataError: the file expands beyond its limit.
        """
        self.check(VALUE_BYTES * float(batch.num_rows))
        batch.validate()
        try:
            sizes = sum((self.sizes(column) for column in batch.columns), np.zeros(batch.num_rows))
        except (IndexError, ValueError) as error:
            raise pa.ArrowInvalid(f"the file is damaged: a place is outside of its column ({error})") from None
        self.check(float(sizes.sum()))
        batch.validate(full=True)  # reads every text, and so comes after the limit
        self.total += float(sizes.sum())
        ends, start = np.cumsum(sizes), 0
        while start < batch.num_rows:
            fitting = int(np.searchsorted(ends, ends[start] - sizes[start] + PART_BYTES, "right"))
            end = min(max(fitting, start + 1), start + BATCH_ROWS)
            yield batch.slice(start, end - start)
            start = end

    def sizes(self, array: pa.Array) -> _Sizes:
        """The bytes of each value of an array in its plain type.

        Example:
            >>> labels = pa.array(["ham", "spam", None, "spam"]).dictionary_encode()
            >>> Expansion("rows.arrow", 1000).sizes(labels).tolist()
            [19.0, 20.0, 16.0, 20.0]
        """
        self.check(VALUE_BYTES * float(len(array)))
        kind, types, plain = array.type, pa.types, np.full(len(array), float(VALUE_BYTES))
        if isinstance(kind, pa.BaseExtensionType):
            return self.sizes(array.storage)
        if types.is_dictionary(kind):
            return np.append(self.sizes(array.dictionary), float(VALUE_BYTES))[_integers(array.indices, -1)]
        if types.is_run_end_encoded(kind):
            rows = np.arange(array.offset, array.offset + len(array))
            return self.sizes(array.values)[np.searchsorted(_integers(array.run_ends), rows, "right")]
        if types.is_struct(kind) or (types.is_union(kind) and kind.mode == "sparse"):
            return plain + sum(self.sizes(array.field(i)) for i in range(kind.num_fields))
        if types.is_union(kind):
            codes, offsets = _integers(array.type_codes), _integers(array.offsets)
            for place, code in enumerate(kind.type_codes):
                plain[codes == code] += self.sizes(array.field(place))[offsets[codes == code]]
            return plain
        if kind.num_fields:
            return plain + self._sizes_of_items(array)
        if types.is_string_view(kind) or types.is_binary_view(kind):
            return plain + _lengths_of_views(array)
        if any(has_type(kind) for has_type in _TEXTS):
            return np.asarray(plain + _integers(pc.binary_length(array)))
        return plain if types.is_null(kind) else np.maximum(plain, VALUE_BYTES // 2 + kind.bit_width // 8)

    def _sizes_of_items(self, array: pa.Array) -> _Sizes:
        """The bytes of the items of each list or map."""
        types = pa.types
        if types.is_fixed_size_list(array.type):
            starts = array.type.list_size * np.arange(array.offset, array.offset + len(array))
            lengths = np.full(len(array), array.type.list_size)
        elif types.is_list_view(array.type) or types.is_large_list_view(array.type):
            starts = _integers(array.offsets)
            lengths = _integers(pc.list_value_length(array))
            starts = np.where(lengths > 0, starts, 0)
        else:
            offsets = _integers(array.offsets) if len(array) else np.zeros(1, np.int64)
            starts, lengths = offsets[:-1], np.diff(offsets)
        children = [array.keys, array.items] if types.is_map(array.type) else [array.values]
        sums = np.append(0.0, np.cumsum(sum(map(self.sizes, children))))
        return np.asarray(sums[starts + lengths] - sums[starts])


_TEXTS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _integers(array: pa.Array, absent: int = 0) -> npt.NDArray[np.int64]:
    """The values of an array as NumPy has them; Arrow's own conversion would import pandas."""
    if not array.null_count:
        return np.from_dlpack(array).astype(np.int64)
    values = pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], offset=array.offset)
    return np.where(np.from_dlpack(array.is_valid().cast(pa.int8())), np.from_dlpack(values), absent).astype(np.int64)


def _lengths_of_views(array: pa.Array) -> npt.NDArray[np.int64]:
    """The length of each text, which Arrow does not compute for views: the first of four integers."""
    if not len(array):
        return np.zeros(0, np.int64)
    views = np.frombuffer(array.buffers()[1], np.int32, 4 * (array.offset + len(array)))
    lengths = views.reshape(-1, 4)[array.offset :, 0]
    return np.where(np.from_dlpack(array.is_valid().cast(pa.int8())), lengths, 0).astype(np.int64)


def _words(size: float) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    place = min(max(0, int(math.log10(max(size, 1)) // 3)), len(units) - 1)
    return f"{size / 1000**place:,.3g} {units[place]}" if size < 10**18 else "over 1,000 PB"
