"""A copy of rows that were converted to Arrow, so that a file is parsed once however often its rows are read.

It is in memory up to a size, and beyond in a file of the system's folder for temporary files that has no name there.
"""

from __future__ import annotations

import mmap
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from typing import IO, Final
from weakref import finalize

import pyarrow as pa

LARGEST: Final = 32 << 20  # bytes in memory


class Spool:
    """Batches of one schema from several parts, which are read as often as wanted.

    Args:
        schema: of all batches.

    Example:
        >>> spool = Spool(pa.schema([("a", pa.int64())]))
        >>> spool.append(0, pa.record_batch({"a": [1, 2]})), spool.finish()
        (True, True)
        >>> [batch.num_rows for batch in spool.batches(0)], [*spool.batches(1)]
        ([2], [])
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._places: defaultdict[int, list[int]] = defaultdict(list)  # of the batches of each part
        self._n_batches = 0
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchFileWriter | None = None
        self._content: mmap.mmap | None = None

    def append(self, part: int, batch: pa.RecordBatch) -> bool:
        """Adds a batch of a part; False if there is no room for temporary files."""
        self._places[part].append(self._n_batches)
        self._n_batches += 1
        self._size += batch.nbytes
        self._batches.append(batch)
        try:
            if self._writer is None and self._size > LARGEST:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `finish`, or with this spool)
                finalize(self, self._file.close)
                self._writer = pa.ipc.new_file(self._file, self.schema)
            if self._writer is not None:
                for each in self._batches:
                    self._writer.write_batch(each)
                self._batches = []
        except OSError:
            return False
        return True

    def finish(self) -> bool:
        """Ends the writing; False if there is no room for temporary files."""
        try:
            if self._writer is not None and self._file is not None:
                self._writer.close()
                self._file.flush()
                self._content = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
                self._file.close()
        except OSError:
            return False
        return True

    def batches(self, part: int) -> Iterator[pa.RecordBatch]:
        """The batches of a part, in order; from any thread."""
        read = self._batches.__getitem__
        if self._content is not None:
            read = pa.ipc.open_file(pa.BufferReader(self._content)).get_batch
        yield from map(read, self._places.get(part, ()))
