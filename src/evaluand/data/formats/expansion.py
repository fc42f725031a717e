"""What a file of columns may expand to, and what its values take once they are read.

Arrow and Parquet files hold values in ways that take next to nothing: a dictionary holds a long text once for all rows,
run ends hold a million equal rows as one, views of lists share their values, a column of nulls has no bytes, and
buffers and pages are compressed. Most files need this; a few bytes of a stranger can mean terabytes.

The limit is `MAX_BYTES`, or `MAX_EXPANSION` times the size of the file if that is more. A value counts `VALUE_BYTES`,
whatever its type, and what a text or a wide number has beyond: about what it takes in Python. So ten million rows of a
label fit in a file of any size, and more columns in any file whose rows differ: a boolean takes a bit of it and counts
128 times that; one of four labels of twelve characters takes two bits and counts 112 times that.

Everything is counted before memory is taken for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluand.core.errors import DataError
from evaluand.data.files import SourceFile

MAX_BYTES: Final = 512 << 20
"""The values of a file may take so many bytes, whatever its own size."""
MAX_EXPANSION: Final = 1000
"""Beyond `MAX_BYTES`, the values of a file may take so many times its own size."""
VALUE_BYTES: Final = 16
"""What a value counts: a reference to it and, in Arrow, at most eight bytes. Lists and objects are values too."""
POINTER_BYTES: Final = 8

_Positions = npt.NDArray[np.int64]
_Sizes = npt.NDArray[np.float64]
_Until = Callable[[_Positions], _Sizes]
"""The bytes of all values before each of some positions of an array."""


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

    def add(self, size: float) -> None:
        """Count further bytes.

        Raises:
            DataError: the file expands beyond its limit.
        """
        self.total += size
        if self.total > self.limit:
            self._refuse(f"would expand to {_words(self.total)} or more")

    def refuse(self, most: float) -> None:
        """Raise a DataError for a file that may expand to so many bytes further, which cannot be counted."""
        self._refuse(f"may expand to {_words(self.total + most)}")

    def _refuse(self, problem: str) -> None:
        raise DataError(
            f"{self.name}: {problem}; the limit for a file of its size is {_words(self.limit)}; if you trust it, divide"
            " its rows into several files"
        )


def _words(size: float) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    place = min(max(0, int(math.log10(max(size, 1)) // 3)), len(units) - 1)
    return f"{size / 1000**place:,.3g} {units[place]}" if size < 10**18 else "over 1,000 PB"


class PlainSizes:
    """What the values of arrays take in their plain types.

    What is known of a dictionary is kept for the next batches that have it.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[pa.Array, _Sizes]] = {}

    def of_batch(self, batch: pa.RecordBatch) -> float:
        """The bytes of a batch whose arrays are valid.

        Example:
            >>> labels = pa.array(["ham", "spam", "spam"]).dictionary_encode()
            >>> PlainSizes().of_batch(pa.record_batch({"label": labels}))
            59.0
        """
        end = np.array([batch.num_rows])
        rows = VALUE_BYTES * batch.num_rows if not batch.num_columns else 0.0
        return float(sum((self._until(column)(end)[0] for column in batch.columns), rows))

    def _until(self, array: pa.Array) -> _Until:
        kind, types = array.type, pa.types
        if isinstance(kind, pa.BaseExtensionType):
            return self._until(array.storage)
        if types.is_dictionary(kind):
            return _sum_up(self._sizes_of_places(array))
        if types.is_run_end_encoded(kind):
            return self._until_in_runs(array)
        if is_text_view(kind):
            return _sum_up(view_lengths(array) + VALUE_BYTES)
        if types.is_list_view(kind) or types.is_large_list_view(kind):
            return self._until_in_views(array)
        if types.is_fixed_size_list(kind):
            size, inner = kind.list_size, self._until(_fixed_values(array))
            return lambda ends: VALUE_BYTES * ends + inner(ends * size)
        if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
            return self._until_in_lists(array)
        if types.is_struct(kind):
            return _add([_constant(VALUE_BYTES), *map(self._until, children_of(array))])
        if types.is_union(kind):
            return self._until_in_union(array)
        return _until_in_texts(array) if _has_offsets(kind) else _constant(_value_bytes(kind))

    def _sizes_of_places(self, array: pa.Array) -> _Sizes:
        dictionary = array.dictionary
        key = identity_of(dictionary)
        if key not in self._known:
            sizes = np.diff(self._until(dictionary)(np.arange(len(dictionary) + 1)))
            self._known[key] = dictionary, np.append(sizes, VALUE_BYTES)
        return _take(self._known[key][1], array.indices)

    def _until_in_runs(self, array: pa.Array) -> _Until:
        ends = np.append(0.0, array.run_ends.to_numpy().astype(np.float64))
        sizes = np.diff(self._until(array.values)(np.arange(len(array.values) + 1)))
        sums = np.append(0.0, np.cumsum(np.diff(ends) * sizes))
        before = np.interp(array.offset, ends, sums)
        return lambda places: np.interp(places + float(array.offset), ends, sums) - before

    def _until_in_views(self, array: pa.Array) -> _Until:
        inner, is_valid = self._until(array.values), array.is_valid().to_numpy(zero_copy_only=False)
        starts, lengths = (
            np.where(is_valid, each.to_numpy(), 0).astype(np.int64) for each in (array.offsets, array.sizes)
        )
        return _sum_up(inner(starts + lengths) - inner(starts) + VALUE_BYTES)

    def _until_in_lists(self, array: pa.Array) -> _Until:
        offsets = array.offsets.to_numpy().astype(np.int64) if len(array) else np.zeros(1, np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        inner = _add([self._until(child.slice(first, last - first)) for child in children_of(array)])
        return lambda ends: VALUE_BYTES * ends + inner(offsets[ends] - first)

    def _until_in_union(self, array: pa.Array) -> _Until:
        children = children_of(array)
        if array.type.mode == "sparse":
            return _add([_constant(VALUE_BYTES), *map(self._until, children)])
        codes, offsets = array.type_codes.to_numpy(), array.offsets.to_numpy().astype(np.int64)
        sizes = np.full(len(array), float(VALUE_BYTES))
        for code, child in zip(array.type.type_codes, children, strict=True):
            places, inner = offsets[codes == code], self._until(child)
            sizes[codes == code] += inner(places + 1) - inner(places)
        return _sum_up(sizes)


def identity_of(array: pa.Array) -> tuple[Any, ...]:
    """What two arrays share if they are the same memory, dictionaries within included."""
    addresses = tuple(0 if buffer is None else buffer.address for buffer in array.buffers())
    return str(array.type), len(array), array.offset, addresses, *map(identity_of, dictionaries_of(array))


def dictionaries_of(array: pa.Array) -> Iterator[pa.Array]:
    """The dictionaries of an array and of those within, without those within dictionaries."""
    if isinstance(array.type, pa.BaseExtensionType):
        yield from dictionaries_of(array.storage)
    elif pa.types.is_dictionary(array.type):
        yield array.dictionary
    elif has_type(array.type, pa.types.is_dictionary):
        yield from chain.from_iterable(map(dictionaries_of, children_of(array)))


def is_text_view(kind: pa.DataType) -> bool:
    """Whether values are texts or bytes that may be the same memory."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def has_type(kind: pa.DataType, is_searched: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type or one within, also in dictionaries, is searched for."""
    if isinstance(kind, pa.BaseExtensionType):
        return has_type(kind.storage_type, is_searched)
    if is_searched(kind):
        return True
    if pa.types.is_run_end_encoded(kind) or pa.types.is_dictionary(kind):
        return has_type(kind.value_type, is_searched)
    return any(has_type(kind.field(i).type, is_searched) for i in range(kind.num_fields))


def children_of(array: pa.Array) -> list[pa.Array]:
    """The arrays of values within an array, each as a whole."""
    kind, types = array.type, pa.types
    if types.is_run_end_encoded(kind):
        return [array.run_ends, array.values]
    if types.is_map(kind):
        return [array.keys, array.items]
    if types.is_struct(kind) or types.is_union(kind):
        return [array.field(i) for i in range(kind.num_fields)]
    return [array.values] if kind.num_fields else []


def _fixed_values(array: pa.Array) -> pa.Array:
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def _has_offsets(kind: pa.DataType) -> bool:
    types = pa.types
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_binary, types.is_large_string)) or (
        types.is_large_binary(kind)
    )


def _until_in_texts(array: pa.Array) -> _Until:
    if not len(array):
        return _constant(VALUE_BYTES)
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    end = array.offset + len(array) + 1
    offsets = np.frombuffer(array.buffers()[1], np.int64 if is_large else np.int32, end)[array.offset :]
    return lambda ends: VALUE_BYTES * ends + (offsets[ends].astype(np.float64) - offsets[0])


def view_lengths(array: pa.Array) -> _Sizes:
    """The length of each text of an array of views."""
    if not len(array):
        return np.zeros(0)
    end = array.offset + len(array)
    views = np.frombuffer(array.buffers()[1], np.int32, 4 * end).reshape(-1, 4)[array.offset :, 0]
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), views, 0).astype(np.float64)


def _value_bytes(kind: pa.DataType) -> int:
    return VALUE_BYTES if pa.types.is_null(kind) else POINTER_BYTES + max(POINTER_BYTES, kind.bit_width // 8)


def _constant(size: float) -> _Until:
    return lambda ends: size * ends.astype(np.float64)


def _add(parts: Sequence[_Until]) -> _Until:
    return lambda ends: np.sum([part(ends) for part in parts], axis=0)


def _sum_up(sizes: _Sizes) -> _Until:
    sums = np.append(0.0, sizes)
    np.cumsum(sums, out=sums)
    return lambda ends: sums[ends]


def _take(sizes: _Sizes, places: pa.Array) -> _Sizes:
    """The size at each place; the last one where there is none."""
    result = np.empty(len(places))
    for start in range(0, len(places), _BLOCK):
        block = places.slice(start, _BLOCK).cast(pa.int64()).fill_null(len(sizes) - 1)
        result[start : start + _BLOCK] = sizes[block.to_numpy()]
    return result


_BLOCK: Final = 1 << 20
