"""Tables as Parquet files: written and hashed as a stream, read in batches."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluand.core.errors import EngineError
from evaluand.core.identity import DIGEST_SIZE
from evaluand.store.io import disk_error

ROW_GROUP_ROWS = 32_768
ROW_GROUP_BYTES = 16 << 20
READ_ROWS = 4096


class TableWriter:
    """Writes one table into a folder, in a file whose name has a digest of its content.

    Row groups are limited by rows and by bytes, so memory stays bounded.
    """

    def __init__(self, folder: Path, stem: str, schema: pa.Schema) -> None:
        self._folder, self._stem = folder, stem
        self._path = folder / f".{stem}-{secrets.token_hex(4)}.{os.getpid()}.tmp"
        self._file = _HashingFile(self._path)
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd", compression_level=3)
        self._schema = schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = self._rows = 0

    def append(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._pending_rows >= ROW_GROUP_ROWS or self._pending_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> dict[str, Any]:
        """Finishes the file and renames it.

        Returns:
            file, digest (of its bytes), rows and bytes, as in manifests.
        """
        self._flush()
        with _report_errors(self._path):
            self._writer.close()
        digest, size = self._file.end()
        name = f"{self._stem}-{digest[:8]}.parquet"
        os.replace(self._path, self._folder / name)
        return {"file": name, "digest": digest, "rows": self._rows, "bytes": size}

    def discard(self) -> None:
        with suppress(OSError):  # a full disk cannot take the end of the file either
            if not self._file.closed:
                self._writer.close()
                self._file.end()
        self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._pending:
            with _report_errors(self._path):
                table = pa.Table.from_batches(self._pending, self._schema)
                self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            self._rows += self._pending_rows
            self._pending, self._pending_rows, self._pending_bytes = [], 0, 0


@contextmanager
def _report_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(path, error, "written") from error


def read_table(path: Path, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows of a table in batches."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            if file.metadata.num_rows == 0:
                schema = file.schema_arrow
                yield pa.RecordBatch.from_pylist([], pa.schema([schema.field(n) for n in columns or schema.names]))
            # In one thread, as a stream: the memory of Arrow's threads adds 60 MiB.
            yield from file.iter_batches(_rows_at_once(file.metadata), columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise EngineError(f"{path}: cannot be read: {error}; run `evaluand verify` to see the damage") from error


def _rows_at_once(metadata: pq.FileMetaData) -> int:
    """The number of rows in about 16 MiB, so that long texts do not fill the memory."""
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return int(max(1, min(READ_ROWS, (16 << 20) * metadata.num_rows // max(size, 1))))


class _HashingFile:
    """A file that hashes what is written to it."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("wb")
        self._state = hashlib.blake2b(digest_size=DIGEST_SIZE)
        self.closed = False

    def write(self, data: Any) -> int:
        self._state.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Closed by `end`, after the last byte."""

    def end(self) -> tuple[str, int]:
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        self._file.close()
        self.closed = True
        return self._state.hexdigest(), size
