"""Ranges of rows of a table that is read as a stream: batches between them are passed over as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa


class Ranges:
    """Ranges of rows of a stream of batches, in ascending order; going back reads the stream anew.

    Args:
        read: begins the stream.

    Example:
        >>> rows = Ranges(lambda: iter(pa.table({"x": [0, 1, 2, 3, 4]}).to_batches(max_chunksize=2)))
        >>> [(start, part.column("x").to_pylist()) for start, part in rows.take(1, 4)]
        [(1, [1]), (2, [2, 3])]
    """

    def __init__(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._read = read
        self._batches = read()
        self._batch: pa.RecordBatch | None = None
        self._start = self._stop = 0  # of the batch
        self._has_ended = False

    def take(self, start: int, stop: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows from `start` up to, not including, `stop`: pieces, each with the place of its first row."""
        if start < self._start or self._has_ended:
            self._batches, self._batch, self._start, self._stop = self._read(), None, 0, 0
        while start < stop:
            if start < self._stop:
                assert self._batch is not None
                end = min(stop, self._stop)
                yield start, self._batch.slice(start - self._start, end - start)
                start = end
            elif not self._advance():
                return

    def _advance(self) -> bool:
        self._has_ended = True  # also where the stream fails
        self._batch = next(self._batches, None)
        if self._batch is None:
            return False
        self._has_ended = False
        self._start, self._stop = self._stop, self._stop + self._batch.num_rows
        return True
