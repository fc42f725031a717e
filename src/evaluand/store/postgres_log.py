"""The journal's log in a PostgreSQL database.

A segment is what one worker has appended, in order: rows of bytes, each with its place in the segment. One statement
appends lines and checks that its worker may still write: it locks the worker's row, so whoever takes over from the
worker waits for it, and finds all lines that count. So no line comes late, and segments need no fences.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final, TypeAlias

import orjson

from evaluand.core.system import this_process
from evaluand.store.database import Connection, Database
from evaluand.store.forks import begun_anew_in_forks
from evaluand.store.lease_state import NOTHING, Written
from evaluand.store.segments import add_checksums, new_segment, seed_of

PIECE_BYTES: Final = 16 << 20  # of a row; longer lines have several

Key: TypeAlias = tuple[str, str, str, str]
"""Store, kind, id and name of a log."""

_FOUND: Final = """
SELECT log FROM logs JOIN journals USING (journal)
WHERE store = %s AND kind = %s AND id = %s AND name = %s AND NOT is_sealed
"""
_MADE: Final = """
INSERT INTO logs (journal, name)
SELECT journal, %s FROM journals WHERE store = %s AND kind = %s AND id = %s AND NOT is_sealed
ON CONFLICT DO NOTHING
"""
_ENTERED: Final = """
INSERT INTO workers (log, segment, process) SELECT log, %s, %s FROM logs WHERE log = %s
ON CONFLICT (log, segment) DO UPDATE SET process = excluded.process RETURNING worker
"""
_APPENDED: Final = """
WITH worker AS MATERIALIZED (
    SELECT worker FROM workers
    WHERE worker = %s AND NOT has_ended
        AND NOT EXISTS (SELECT FROM logs JOIN journals USING (journal) WHERE logs.log = workers.log AND is_sealed)
    FOR KEY SHARE OF workers
), appended AS (
    INSERT INTO lines (worker, start, data)
    SELECT worker, start, data FROM worker, unnest(%s::bigint[], %s::bytea[]) AS piece (start, data)
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM worker
"""
_READ: Final = """
SELECT start, data FROM lines
WHERE worker = %(worker)s AND start < %(stop)s AND start >= coalesce(
    (SELECT max(start) FROM lines WHERE worker = %(worker)s AND start <= %(offset)s), 0)
ORDER BY start
"""


class PostgresLog:
    """Segments as rows of a database; this writer's segment exists from its first line or lease on.

    Args:
        database: where the journal is.
        key: which log.

    Attributes:
        segment: the name of this writer's segment; another one after a failed write, and in a forked process.
    """

    def __init__(self, database: Database, key: Key) -> None:
        self._database, self.key = database, key
        self._scope = "/".join(key[1:])
        self._numbers: dict[str, int] = {}  # of the workers, by the names of their segments
        self._log: int | None = None
        self._begin()
        begun_anew_in_forks.add(self)

    def _begin(self) -> None:
        """Begins a segment, also in a fork: there the one before is that of the parent."""
        self._writing = threading.Lock()
        self._own: set[str] = set()
        self._choose()

    def fork(self) -> None:
        self._begin()

    def _choose(self) -> None:
        self.segment = new_segment()
        self._own.add(self.segment)
        self._worker: int | None = None
        self._size = 0
        self._is_refused = False  # whether lines were, since another worker has taken over, or the artifact is sealed

    def append(self, data: bytes, written: Written = NOTHING) -> bool:
        with self._writing:
            try:
                counts = self._put(data)
            except BaseException:  # whether they were appended is not known
                self._choose()
                raise
            self._is_refused = self._is_refused or not counts
            return counts

    def is_removed(self) -> bool:
        return self._is_refused

    def sync(self) -> None:
        """What was committed is stored."""

    def segments(self) -> Mapping[str, int]:
        statement = """
            SELECT segment, worker, (
                SELECT start + length(data) FROM lines WHERE lines.worker = workers.worker ORDER BY start DESC LIMIT 1)
            FROM workers WHERE log = %s
        """
        rows = self._database.fetch(statement, [self.find()])
        self._numbers |= {segment: worker for segment, worker, _ in rows}
        return {segment: size for segment, _, size in sorted(rows) if size is not None}

    def size(self, segment: str) -> int:
        return self.segments().get(segment, 0)

    def seed(self, segment: str) -> int | None:
        return seed_of(self._scope, segment)

    def is_own(self, segment: str) -> bool:
        return segment in self._own

    def path(self, segment: str) -> str:
        return f"{self._database.address} {self._scope}/{segment}"

    def read(self, segment: str, offset: int, size: int) -> bytes:
        worker = self._numbers.get(segment)
        if worker is None:
            self.segments()
            worker = self._numbers.get(segment, -1)
        where = {"worker": worker, "offset": offset, "stop": offset + size}

        def read(connection: Connection) -> list[tuple[int, bytes]]:
            rows = connection.execute(_READ, where, binary=True).fetchall()
            if not rows and not connection.execute("SELECT FROM workers WHERE worker = %s", [worker]).fetchall():
                raise FileNotFoundError(segment)  # another process has sealed the artifact
            return rows

        rows = self._database.run(read)
        data = b"".join(piece for _, piece in rows)
        start = rows[0][0] if rows else offset
        return data[offset - start : offset - start + size]

    def begin(self) -> None:
        self.worker()

    def written(self) -> Mapping[str, Written]:
        return {}  # a database loses no rows without a word

    def restart(self) -> None:
        with self._writing:
            self._choose()

    def close(self) -> None:
        """Nothing is open."""

    def find(self) -> int | None:
        """The number of this log; None if it does not exist yet, or not any more."""
        if self._log is None:
            self._log = next((log for (log,) in self._database.fetch(_FOUND, self.key)), None)
        return self._log

    def make(self) -> int | None:
        """The number of this log, which is made if necessary; None if its journal does not exist any more."""
        if self.find() is None:
            *journal, name = self.key
            self._database.run(lambda connection: connection.execute(_MADE, [name, *journal]))
        return self.find()

    def worker(self) -> int | None:
        """The number of this worker, which is made if necessary; None if the journal does not exist any more."""
        if self._worker is None and (log := self.make()) is not None:
            process = this_process()
            words = orjson.dumps([process.boot, process.numbers, process.pid, process.started, process.host]).decode()
            entered = self._database.fetch(_ENTERED, [self.segment, words, log])
            self._worker = next((worker for (worker,) in entered), None)
            if self._worker is None:
                self._log = None
        return self._worker

    def _put(self, lines: bytes) -> bool:
        worker = self.worker()
        if worker is None:
            return False
        data = add_checksums(lines, seed_of(self._scope, self.segment))
        pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
        starts = [self._size + n * PIECE_BYTES for n in range(len(pieces))]
        [[counts]] = self._database.fetch(_APPENDED, [worker, starts, pieces])
        self._size += len(data) if counts else 0
        return bool(counts)
