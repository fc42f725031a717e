"""Parquet and Arrow files (IPC files and streams, which Feather files are)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from evaluand.core.errors import DataError
from evaluand.data.columns import common_schema, plain_batches, plain_schema
from evaluand.data.files import SourceFile
from evaluand.data.source import FileFormat, OpenFiles, Reading
from evaluand.store.tables import BATCH_ROWS


class Parquet(FileFormat):
    """Parquet files."""

    kind = "parquet"
    is_text = False

    def open(self, files: Sequence[SourceFile], reading: Reading) -> OpenFiles:
        import pyarrow.parquet as pq

        schemas, n_rows = [], []
        for file in files:
            with pq.ParquetFile(file.path) as opened:
                schemas.append(opened.schema_arrow)
                n_rows.append(opened.metadata.num_rows)
        return _columnar(files, schemas, lambda file: _parquet_batches(file.path), n_rows)


class Arrow(FileFormat):
    """Arrow files and streams."""

    kind = "arrow"
    is_text = False

    def open(self, files: Sequence[SourceFile], reading: Reading) -> OpenFiles:
        schemas = []
        for file in files:
            with pa.memory_map(str(file.path)) as opened, _open_ipc(opened) as reader:
                schemas.append(reader.schema)
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
            yield from plain_batches(map(_validated, read(file)), schema, file.name)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{file.name}: {error}") from error

    return OpenFiles(schema, batches, lambda number, row: f"{files[number].name}: row {row + 1}", n_rows)


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, once its lengths, offsets, texts and places in dictionaries are known to be sound.

    Arrow trusts what a file says of them, and would read outside of the memory.
    """
    batch.validate(full=True)
    return batch


def _parquet_batches(path: Any) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        stated, found = file.metadata.num_rows, 0
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            found += batch.num_rows
            yield batch
    if found != stated:
        raise pa.ArrowInvalid(f"the file is damaged: it states {stated:,} rows, but {found:,} can be read")


def _arrow_batches(file: SourceFile) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file.path)) as opened, _open_ipc(opened) as reader:
        for batch in _ipc_batches(reader):
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


def _open_ipc(file: pa.NativeFile) -> Any:
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _ipc_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if hasattr(reader, "num_record_batches"):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)
