"""Parquet and Arrow files (IPC files and streams, which Feather files are)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError
from evaluand.data.columns import common_schema, plain_batches, plain_schema
from evaluand.data.files import SourceFile
from evaluand.data.formats.expansion import Expansion, PlainSizes
from evaluand.data.formats.ipc_sizes import check_messages
from evaluand.data.formats.validity import Validator
from evaluand.data.source import FileFormat, OpenFiles, Reading
from evaluand.store.tables import BATCH_ROWS


class Parquet(FileFormat):
    """Parquet files."""

    kind = "parquet"
    is_text = False

    def open(self, files: Sequence[SourceFile], reading: Reading) -> OpenFiles:
        import pyarrow.parquet as pq

        from evaluand.data.formats.parquet_sizes import check_pages

        schemas, n_rows = [], []
        for file in files:
            with pq.ParquetFile(file.path) as opened:
                schemas.append(opened.schema_arrow)
                n_rows.append(opened.metadata.num_rows)
                check_pages(file, opened, Expansion.of(file))
        return _columnar(files, schemas, _parquet_batches, n_rows)


class Arrow(FileFormat):
    """Arrow files and streams."""

    kind = "arrow"
    is_text = False

    def open(self, files: Sequence[SourceFile], reading: Reading) -> OpenFiles:
        schemas = []
        for file in files:
            with pa.memory_map(str(file.path)) as opened, _open_ipc(opened) as reader:
                has_footer = _has_footer(reader)
                schemas.append(reader.schema)
            with pa.memory_map(str(file.path)) as opened:
                check_messages(opened, has_footer, Expansion.of(file))
        return _columnar(files, schemas, _arrow_batches)


class Feather(Arrow):
    """Arrow files under the name of Feather."""

    kind = "feather"


def _columnar(
    files: Sequence[SourceFile],
    schemas: Sequence[pa.Schema],
    read: Callable[[SourceFile], Iterator[pa.RecordBatch]],
    n_rows: Sequence[int] | None = None,
) -> OpenFiles:
    plain = [(file.name, plain_schema(schema, file.name)) for file, schema in zip(files, schemas, strict=True)]
    schema = common_schema(plain)

    def batches(number: int) -> Iterator[pa.RecordBatch]:
        file = files[number]
        try:
            yield from plain_batches(read(file), schema, file.name)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file.name}: {error}") from error

    return OpenFiles(schema, batches, lambda number, row: f"{files[number].name}: row {row + 1}", n_rows)


def _parquet_batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    validator = Validator(Expansion.of(file))
    with pq.ParquetFile(file.path, pre_buffer=False) as opened:
        stated, found = opened.metadata.num_rows, 0
        for batch in opened.iter_batches(BATCH_ROWS, use_threads=False):
            found += batch.num_rows
            yield validator.check(batch)
    if found != stated:
        raise pa.ArrowInvalid(f"the file is damaged: it states {stated:,} rows, but {found:,} can be read")


def _arrow_batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
    expansion, sizes, validator = Expansion.of(file), PlainSizes(), Validator(Expansion.of(file))
    with pa.memory_map(str(file.path)) as opened, _open_ipc(opened) as reader:
        for batch in _ipc_batches(reader):
            validator.check(batch)
            for start in range(0, batch.num_rows, BATCH_ROWS):
                rows = batch.slice(start, BATCH_ROWS)
                size = sizes.of_batch(rows)
                expansion.add(size)
                yield from _parts(rows, size, sizes)


def _parts(batch: pa.RecordBatch, size: float, sizes: PlainSizes) -> Iterator[pa.RecordBatch]:
    """A batch in parts that take little memory at once, unless a single row takes more."""
    if size <= _PART_BYTES or batch.num_rows < 2:
        yield batch
        return
    middle = batch.num_rows // 2
    for half in (batch.slice(0, middle), batch.slice(middle)):
        yield from _parts(half, sizes.of_batch(half), sizes)


_PART_BYTES: Final = 32 << 20


def _open_ipc(file: pa.NativeFile) -> Any:
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _has_footer(reader: Any) -> bool:
    return hasattr(reader, "num_record_batches")


def _ipc_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if _has_footer(reader):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)
