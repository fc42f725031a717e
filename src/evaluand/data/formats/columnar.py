"""Parquet and Arrow files (IPC files and streams, which Feather files are)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError
from evaluand.data.columns import common_schema, plain_batches, plain_schema
from evaluand.data.files import SourceFile
from evaluand.data.formats.expansion import PART_BYTES, VALUE_BYTES, Expansion
from evaluand.data.source import DataSource, FileFormat, Reading
from evaluand.store.tables import BATCH_ROWS


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
                _check_footer(opened, Expansion.of(file))
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
        expansion = Expansion.of(file)
        try:
            parts = (part for batch in read(file) for part in expansion.parts(batch))
            yield from plain_batches(parts, schema, file.name)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file.name}: {error}") from error

    def where(file: SourceFile, row: int) -> str:
        return f"{file.name}: row {row + 1}"

    return [
        DataSource(file.name, schema, partial(batches, file), partial(where, file), n)
        for file, n in zip(files, n_rows, strict=True)
    ]


# Parquet


def _check_footer(opened: Any, expansion: Expansion) -> None:
    """Refuse a file whose footer states more rows or bytes than it may expand to."""
    values = sum(map(_values_of_a_row, opened.schema_arrow.types)) or 1
    expansion.check(float(VALUE_BYTES) * values * opened.metadata.num_rows)
    expansion.check(float(sum(_group_sizes(opened))))


def _group_sizes(opened: Any) -> list[int]:
    """The bytes of each row group. Arrow ends the process for some damaged columns, so that these are not asked."""
    return [opened.metadata.row_group(i).total_byte_size for i in range(opened.num_row_groups)]


def _values_of_a_row(kind: pa.DataType) -> int:
    """The values that a row of a type has in memory at the least: a list of fixed size has its values even if null."""
    if isinstance(kind, pa.BaseExtensionType):
        return _values_of_a_row(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _values_of_a_row(kind.value_type)
    return sum(_values_of_a_row(field.type) for field in kind.fields) if pa.types.is_struct(kind) else 1


def _parquet_batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path, pre_buffer=False) as opened:
        stated, seen, schema = opened.metadata.num_rows, 0, opened.metadata.schema
        columns = map(schema.column, range(len(schema)))
        texts = [each.path for each in columns if each.physical_type == "BYTE_ARRAY" and each.path == each.name]
        may_repeat = stated * sum(_group_sizes(opened)) > Expansion.of(file).limit
        with pq.ParquetFile(file.path, pre_buffer=False, read_dictionary=texts) as places:
            for group in range(opened.num_row_groups):
                rows = _rows_at_once(places, group, texts) if may_repeat and texts else BATCH_ROWS
                for batch in opened.iter_batches(rows, [group], use_threads=False):
                    seen += batch.num_rows
                    yield batch
    if seen != stated:
        raise pa.ArrowInvalid(f"the file is damaged: it states {stated:,} rows, but {seen:,} can be read")


def _rows_at_once(places: Any, group: int, texts: Sequence[str]) -> int:
    """The rows of a group to decode at once, each of which may have the longest text of each column's dictionary."""
    for batch in places.iter_batches(1, [group], texts, use_threads=False):
        texts_of_columns = (column.dictionary for column in batch.columns if pa.types.is_dictionary(column.type))
        longest = sum(pc.max(pc.binary_length(texts)).as_py() or 0 for texts in texts_of_columns)
        return int(min(max(PART_BYTES // max(longest, 1), 1), BATCH_ROWS))
    return BATCH_ROWS


# Arrow


def _arrow_batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file.path)) as opened:
        reader = _open_ipc(opened)
        if not hasattr(reader, "num_record_batches"):
            yield from reader
            return
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)
        if (written := _count_batches(opened)) > reader.num_record_batches:
            raise pa.ArrowInvalid(
                f"the file is damaged: its footer names {reader.num_record_batches:,} of {written:,} batches"
            )


def _open_ipc(file: pa.NativeFile) -> Any:
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _count_batches(file: pa.NativeFile) -> int:
    """The batches of a file with a footer, as far as they follow the head without a gap."""
    file.seek(len(b"ARROW1\0\0"))
    batches = 0
    with suppress(EOFError, OSError, pa.ArrowInvalid):  # Polars leaves a gap; some writers put no end before the footer
        while True:
            batches += pa.ipc.read_message(file).type == "record batch"
    return batches
