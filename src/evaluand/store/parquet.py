"""Tables as Parquet files: written and hashed as a stream, read in batches."""

import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluand.core.errors import EngineError
from evaluand.core.identity import DIGEST_SIZE
from evaluand.core.key_columns import INDEX
from evaluand.store.digests import open_table
from evaluand.store.folder import Folder, NewFile, OpenFile
from evaluand.store.manifests import file_name, table_file
from evaluand.store.window import take_rows

if TYPE_CHECKING:
    from evaluand.store.store import Indices, Rows

ROW_GROUP_ROWS = 32_768
ROW_GROUP_BYTES = 16 << 20
READ_ROWS = 4096
_BLOCK: Final = 1 << 18


class TableWriter:
    """Writes one table into a folder, in a file whose name has a digest of its content.

    Row groups are limited by rows and by bytes, so memory stays bounded.

    Attributes:
        pending_bytes: of the rows that wait for their row group.
    """

    def __init__(self, folder: Folder, table: str, schema: pa.Schema) -> None:
        self._table = table
        self._file = folder.new_file(file_name(table))
        self._hashing = _HashingFile(self._file)
        self._buffer = io.BufferedWriter(self._hashing, _BLOCK)
        self._writer = pq.ParquetWriter(self._buffer, schema, compression="zstd", compression_level=3)
        self._schema = schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self.pending_bytes = self._rows = 0

    def append(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self.pending_bytes += batch.nbytes
        if self._pending_rows >= ROW_GROUP_ROWS or self.pending_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def close(self) -> dict[str, Any]:
        """Finishes the file and names it.

        Returns:
            file, digest (of its bytes), rows and bytes, as in manifests.
        """
        self.flush()
        self._writer.close()
        self._buffer.flush()
        digest = self._hashing.state.hexdigest()
        name = table_file(self._table, digest)
        self._file.finish(name)
        return {"file": name, "digest": digest, "rows": self._rows, "bytes": self._hashing.size}

    def discard(self) -> None:
        with suppress(EngineError, OSError):  # a full disk cannot take the end of the file either
            self._writer.close()
        self._hashing.close()  # nothing that is still in the buffer is written
        self._file.discard()

    def flush(self) -> None:
        """Writes the rows that wait as a row group."""
        if self._pending:
            table = pa.Table.from_batches(self._pending, self._schema)
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            self._rows += self._pending_rows
            self._pending, self._pending_rows, self.pending_bytes = [], 0, 0


def read_table(
    folder: Folder, entry: Mapping[str, Any], columns: list[str] | None, rows: "Rows"
) -> Iterator[pa.RecordBatch]:
    """The rows of a table in batches; of the row groups that have none of the examples that are wanted, none.

    Raises:
        EngineError: the file is missing, has changed since it was written, or cannot be read.
    """
    opened = open_table(folder, entry)
    try:
        is_small = entry["bytes"] <= _BLOCK  # Arrow reads a file in a dozen parts, each of which costs a call
        source = pa.BufferReader(opened.read(entry["bytes"], 0)) if is_small else _ArrowFile(opened)
        with pq.ParquetFile(source, pre_buffer=False) as file:
            groups, at = None if rows.of is None else _groups_of(file.metadata, rows.of), rows.at
            if at is not None:
                groups, at = _groups_at(file.metadata, at, groups)
            if file.metadata.num_rows == 0 or groups == []:
                schema = file.schema_arrow
                yield pa.RecordBatch.from_pylist([], pa.schema([schema.field(n) for n in columns or schema.names]))
            # In one thread, as a stream: the memory of Arrow's threads adds 60 MiB.
            batches = file.iter_batches(_rows_at_once(file.metadata), groups, columns, use_threads=False)
            yield from batches if at is None else take_rows(batches, at)
    except (OSError, pa.ArrowException) as error:
        path = folder.path / entry["file"]
        raise EngineError(f"{path}: cannot be read: {error}; run `evaluand verify` to see the damage") from error
    finally:
        opened.close()


def _groups_of(metadata: pq.FileMetaData, indices: "Indices") -> list[int]:
    """The row groups that may have these examples."""
    names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    if INDEX not in names:
        return [*range(metadata.num_row_groups)]
    place, groups = names.index(INDEX), range(metadata.num_row_groups)
    known = [metadata.row_group(group).column(place).statistics for group in groups]
    return [group for group, seen in zip(groups, known, strict=True) if _may_have(seen, indices)]


def _groups_at(metadata: pq.FileMetaData, places: "Indices", among: list[int] | None) -> tuple[list[int], "Indices"]:
    """The row groups that have rows at these places, and the places if only these groups are read."""
    sizes = np.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], np.int64)
    starts = np.cumsum(sizes) - sizes
    owner = np.searchsorted(starts + sizes, places, "right")
    is_read = np.isin(owner, np.arange(len(sizes)) if among is None else among)
    owner, places = owner[is_read], places[is_read]
    groups = np.unique(owner)
    new_starts = np.cumsum(sizes[groups]) - sizes[groups]
    return groups.tolist(), places - starts[owner] + new_starts[np.searchsorted(groups, owner)]


def _may_have(seen: Any, indices: "Indices") -> bool:
    """Whether a column chunk with these statistics may have one of the examples."""
    if seen is None or not seen.has_min_max:
        return True
    return bool(np.searchsorted(indices, seen.max, "right") > np.searchsorted(indices, seen.min))


def _rows_at_once(metadata: pq.FileMetaData) -> int:
    """The number of rows in about 16 MiB, so that long texts do not fill the memory."""
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return int(max(1, min(READ_ROWS, (16 << 20) * metadata.num_rows // max(size, 1))))


class _ArrowFile(io.RawIOBase):
    """An open file, as Arrow reads it; closed by who opened it."""

    def __init__(self, file: OpenFile) -> None:
        self._file, self._size = file, file.size
        self._offset = 0

    def read(self, size: int = -1) -> bytes:
        size = self._size - self._offset if size < 0 else size
        parts = []
        while size > 0 and (part := self._file.read(size, self._offset)):
            parts.append(part)
            self._offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._offset = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: self._size}[whence]
        return self._offset

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class _HashingFile(io.RawIOBase):
    """A new file, as Arrow writes it, and the digest and size of what was written."""

    def __init__(self, file: NewFile) -> None:
        self._file, self.size = file, 0
        self.state = hashlib.blake2b(digest_size=DIGEST_SIZE)

    def write(self, data: Any) -> int:
        content = bytes(data)
        self.state.update(content)
        self.size += len(content)
        self._file.write(content)
        return len(content)

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True
