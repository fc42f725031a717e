"""Parquet and Arrow files (IPC files and streams, which Feather files are).

Both hold values in ways that take next to nothing: a dictionary holds a long text once for all rows, a column of nulls
has no bytes. Most files need this; a few bytes of a stranger can mean terabytes. So the values of a file may take
`MAX_BYTES`, or `MAX_EXPANSION` times its size if that is more. Rows and sizes that a footer states count before any row
is read, and values as they are decoded, a few thousand rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError
from evaluand.data.columns import common_schema, plain_batches, plain_schema
from evaluand.data.files import SourceFile
from evaluand.data.source import DataSource, FileFormat, Reading
from evaluand.store.tables import BATCH_ROWS

MAX_BYTES: Final = 512 << 20
"""The values of a file may take so many bytes, whatever its own size."""
MAX_EXPANSION: Final = 1000
"""Beyond `MAX_BYTES`, the values of a file may take so many times its own size."""
VALUE_BYTES: Final = 16
"""What a value counts besides its bytes in Arrow: a reference to it. Lists and objects are values too."""
_USUAL_EXPANSION: Final = 50
"""Texts hardly ever take more bytes than so many times their size in a file."""


class Parquet(FileFormat):
    """Parquet files."""

    kind = "parquet"
    is_text = False

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        import pyarrow.parquet as pq

        schemas, n_rows = [], list[int | None]()
        for file in files:
            with pq.ParquetFile(file.path) as opened:
                schemas.append(opened.schema_arrow)
                n_rows.append(opened.metadata.num_rows)
                values = sum(map(_values_of_a_row, opened.schema_arrow.types)) or 1
                stated = float(VALUE_BYTES) * values * opened.metadata.num_rows
                _check_size(file, max(stated, *map(float, _group_sizes(opened)), 0.0))
        return _columnar(files, schemas, _parquet_batches, n_rows)


class Arrow(FileFormat):
    """Arrow files and streams."""

    kind = "arrow"
    is_text = False

    def open(self, files: Sequence[SourceFile], reading: Reading) -> Sequence[DataSource]:
        schemas = []
        for file in files:
            with pa.memory_map(str(file.path)) as opened:
                schemas.append(_open_ipc(opened).schema)
        return _columnar(files, schemas, _arrow_batches, [None] * len(files))


class Feather(Arrow):
    """Arrow files under the name of Feather."""

    kind = "feather"


def _columnar(
    files: Sequence[SourceFile],
    schemas: Sequence[pa.Schema],
    read: Callable[[SourceFile], Iterator[pa.RecordBatch]],
    n_rows: Sequence[int | None],
) -> list[DataSource]:
    plain = [(file.name, plain_schema(schema, file.name)) for file, schema in zip(files, schemas, strict=True)]
    schema = common_schema(plain)

    def batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
        size = 0.0
        try:
            for batch in plain_batches(_parts(file, read(file)), schema, file.name):
                size += batch.nbytes + VALUE_BYTES * sum(map(_count_values, batch.columns))
                _check_size(file, size)
                yield batch
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file.name}: {error}") from error

    def where(file: SourceFile, row: int) -> str:
        return f"{file.name}: row {row + 1}"

    return [
        DataSource(file.name, schema, partial(batches, file), partial(where, file), n)
        for file, n in zip(files, n_rows, strict=True)
    ]


def _check_size(file: SourceFile, size: float) -> None:
    """Refuse a file whose values take so many bytes.

    Raises:
        DataError: they are more than the limit.
    """
    limit = max(MAX_BYTES, MAX_EXPANSION * file.path.stat().st_size)
    if size > limit:
        raise DataError(
            f"{file.name}: would expand to {_words(size)} or more; the limit for a file of its size is {_words(limit)};"
            " if you trust it, divide its rows into several files"
        )


def _words(size: float) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    place = min(int(math.log10(max(size, 1)) // 3), len(units) - 1)
    return f"{size / 1000**place:,.3g} {units[place]}"


def _parts(file: SourceFile, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sound batches in parts of few rows.

    Raises:
        ArrowInvalid: a batch is not sound: Arrow trusts lengths, offsets and places in dictionaries, and would read
            outside of the memory.
        DataError: there are too many rows.
    """
    for batch in batches:
        _check_size(file, float(VALUE_BYTES) * batch.num_rows * sum(map(_values_of_a_row, batch.schema.types)))
        batch.validate(full=True)
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def _values_of_a_row(kind: pa.DataType) -> int:
    """The values that a row of a type has in memory at the least: a list of fixed size has its values even if null."""
    if isinstance(kind, pa.BaseExtensionType):
        return _values_of_a_row(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _values_of_a_row(kind.value_type)
    return sum(_values_of_a_row(field.type) for field in kind.fields) if pa.types.is_struct(kind) else 1


def _count_values(array: pa.Array) -> int:
    """The values of a column in its plain type, with those in lists and objects."""
    types, kind = pa.types, array.type
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        return len(array) + _count_values(array.flatten())
    if types.is_struct(kind):
        return len(array) + sum(map(_count_values, array.flatten()))
    if types.is_map(kind) and len(array):
        start, end = int(array.offsets[0].as_py()), int(array.offsets[-1].as_py())
        return len(array) + end - start + _count_values(array.items.slice(start, end - start))
    return len(array)


# Parquet


def _group_sizes(opened: Any) -> list[int]:
    """The bytes of each row group. Arrow ends the process for some damaged columns, so that these are not asked."""
    return [opened.metadata.row_group(i).total_byte_size for i in range(opened.num_row_groups)]


def _parquet_batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path, pre_buffer=False) as opened:
        stated, seen = opened.metadata.num_rows, 0
        for group, size in enumerate(_group_sizes(opened)):
            # A group that is compressed more than texts are may hold a long one for all of its rows.
            usual = size <= _USUAL_EXPANSION * file.path.stat().st_size
            rows = BATCH_ROWS if usual else min(max(MAX_BYTES // size, 1), BATCH_ROWS)
            for batch in opened.iter_batches(rows, [group], use_threads=False):
                seen += batch.num_rows
                yield batch
    if seen != stated:
        raise pa.ArrowInvalid(f"the file is damaged: it states {stated:,} rows, but {seen:,} can be read")


# Arrow


def _arrow_batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file.path)) as opened:
        reader = _open_ipc(opened)
        if hasattr(reader, "num_record_batches"):
            yield from map(reader.get_batch, range(reader.num_record_batches))
        else:
            yield from reader


def _open_ipc(file: pa.NativeFile) -> Any:
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)
