"""Leases in a PostgreSQL database; `evaluand.store.leases` says what a lease is.

Here the clock of the server alone decides whose leases have run out. Before a worker claims a unit, it ends the workers
of its log that have died or have run out of time: their units are free, and they may not append any more. Free units
are claimed with `FOR UPDATE SKIP LOCKED`, so that no worker waits for another.

A worker that finds itself ended has no leases, and its next claim is refused once, so that it gives up the calls in
flight. Then it goes on as a new worker with a new segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

import orjson

from evaluand.core.errors import EngineError
from evaluand.core.system import ProcessIdentity, boot_seconds
from evaluand.store import leases
from evaluand.store.database import Connection, Database
from evaluand.store.lease_state import merge_units
from evaluand.store.leases import RENEWED_AFTER, History
from evaluand.store.postgres_log import PostgresLog

T = TypeVar("T")

_LIVING: Final = """
SELECT worker, process, beat < clock_timestamp() - make_interval(secs => %(lease)s),
    (SELECT count(*) FROM units WHERE units.worker = workers.worker)
FROM workers WHERE log = %(log)s AND is_living
"""
_OVER: Final = """
SELECT worker FROM workers
WHERE is_living AND (worker = ANY(%(dead)s)
    OR (worker = ANY(%(late)s) AND beat < clock_timestamp() - make_interval(secs => %(lease)s)))
ORDER BY worker FOR UPDATE
"""
_FREE: Final = """
UPDATE units SET worker = %(worker)s, takers = takers + 1
WHERE log = %(log)s AND unit = (
    SELECT unit FROM units
    WHERE log = %(log)s AND unit < %(units)s AND NOT is_done
        AND (worker IS NULL OR (worker = %(worker)s AND unit <> ALL(%(mine)s)))
    ORDER BY unit LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING unit, takers - 1
"""
_CLAIMED: Final = "SELECT coalesce(max(unit), -1) + 1 FROM units WHERE log = %(log)s"  # how many ever were: from 0 on
_NEXT: Final = """
INSERT INTO units (log, unit, worker, takers)
SELECT %(log)s, unit, %(worker)s, 1
FROM (SELECT coalesce(max(unit), -1) + 1 AS unit FROM units WHERE log = %(log)s) AS next
WHERE unit < %(units)s ON CONFLICT DO NOTHING RETURNING unit, 0
"""
_TAKEN: Final = """
INSERT INTO units (log, unit, worker, takers) VALUES (%(log)s, %(unit)s, %(worker)s, 1)
ON CONFLICT (log, unit) DO UPDATE SET worker = %(worker)s, takers = units.takers + 1
WHERE units.worker IS NULL OR units.worker = %(worker)s
RETURNING unit, takers - 1
"""


class _Lost(Exception):
    """This worker was ended, or its journal does not exist any more."""


class _Other(NamedTuple):
    """A worker that has not left."""

    worker: int
    process: ProcessIdentity
    is_late: bool
    units: int

    @property
    def is_over(self) -> bool:
        """Whether it has died, or its leases have run out."""
        return self.is_late or self.process.has_ended()


class PostgresLeases(leases.SharedLeases):
    """One worker's leases, in a database.

    Args:
        database: where the journal is.
        log: the log whose units are leased.
    """

    _log: PostgresLog
    _sees_all = True  # the server has one clock for all

    def __init__(self, database: Database, log: PostgresLog) -> None:
        self._database = database
        super().__init__(log)

    def _begin(self) -> None:
        super()._begin()
        self._entered: int | None = None  # the worker under which the database has it

    def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
        def find(connection: Connection, log: int, worker: int) -> tuple[int, int] | None:
            values = {"log": log, "worker": worker, "units": shards, "mine": [*self._units]}
            free: tuple[int, int] | None = connection.execute(_FREE, values).fetchone()
            while free is None and next(connection.execute(_CLAIMED, values))[0] < shards:
                free = connection.execute(_NEXT, values).fetchone()  # None if another worker was faster
            return free

        return self._take(find, is_fenced)

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        wanted = leases.Replay(units)

        def find(connection: Connection, log: int, worker: int) -> tuple[int, int] | None:
            rows = connection.execute(
                "SELECT unit FROM units WHERE log = %s AND worker IS NOT NULL AND worker <> %s", [log, worker]
            ).fetchall()
            held = {unit for (unit,) in rows} | self._units
            for unit in wanted:
                if unit not in held:
                    values = {"log": log, "worker": worker, "unit": unit}
                    taken: tuple[int, int] | None = connection.execute(_TAKEN, values).fetchone()
                    if taken is not None:
                        return taken
            return None

        return self._take(find, True)

    def reopen(self, shards: Sequence[int]) -> None:
        statement = """
            UPDATE units SET is_done = false, takers = greatest(takers, 1)
            WHERE log = %s AND unit = ANY(%s) AND is_done
        """
        log = self._log.find()
        self._database.run(lambda connection: connection.execute(statement, [log, [*shards]]))

    def _leave(self) -> None:
        worker, self._entered = self._entered, None
        if worker is not None:
            with suppress(EngineError):  # nobody waits longer than for a lease
                self._database.run(lambda connection: self._free(connection, worker), patience=1.0)

    def holds(self) -> bool:
        if self._units and boot_seconds() > self._renewed_at:
            self._renew()
        return not self._lost

    def confirm(self) -> None:
        """No line is late: who takes over has waited for those under way."""

    def held(self) -> int:
        return sum(other.units for other in self._look() if not other.is_over)

    def busy(self, *, patient: bool = False) -> bool:
        return bool(self._others())

    def history(self) -> History:
        statement = "SELECT unit, is_done FROM units WHERE log = %s AND (is_done OR takers > 0) ORDER BY unit"
        rows = self._database.fetch(statement, [self._log.find()])
        return History(
            merge_units(unit for unit, is_done in rows if is_done), {u for u, is_done in rows if not is_done}
        )

    def _take(
        self, find: Callable[[Connection, int, int], tuple[int, int] | None], is_fenced: bool
    ) -> tuple[int, int] | None:
        def change(connection: Connection, log: int, worker: int) -> tuple[int, int] | None:
            self._end_others(connection, log)
            return find(connection, log, worker)

        def take() -> tuple[int, int] | None:
            if (taken := self._try(change, is_fenced)) is not None:
                self._units.add(taken[0])
            return taken

        return self._acquire(take)

    def _renew(self, patience: float | None = None) -> None:
        with self._lock:
            if self._entered is not None and not self._lost:
                self._try(lambda connection, log, worker: None, None, patience)

    def _try(
        self, change: Callable[[Connection, int, int], T | None], is_fenced: bool | None, patience: float | None = None
    ) -> T | None:
        """Makes a change in one transaction, after a beat; None if this worker has lost its leases."""
        try:
            log, worker = self._log.make(), self._log.worker()
            if log is None or worker is None:
                raise _Lost
            began, ended = boot_seconds(), dict(self._ended)

            def work(connection: Connection) -> T | None:
                with connection.transaction():
                    self._beat(connection, worker, is_fenced)
                    _end_units(connection, log, ended)
                    return change(connection, log, worker)

            result = self._database.run(work, patience=patience)
        except _Lost:
            self._lose()
            return None
        self._entered, self._renewed_at = worker, began + leases.LEASE_SECONDS * RENEWED_AFTER
        self._units -= ended.keys()
        self._ended = {unit: is_done for unit, is_done in self._ended.items() if unit not in ended}
        return result

    def _beat(self, connection: Connection, worker: int, is_fenced: bool | None) -> None:
        statement = """
            UPDATE workers SET beat = clock_timestamp(), is_living = true, is_fenced = coalesce(%s, is_fenced)
            WHERE worker = %s AND NOT has_ended RETURNING is_living
        """
        if connection.execute(statement, [is_fenced, worker]).fetchone() is None:
            raise _Lost

    def _lose(self) -> None:
        had_leases = bool(self._units) or self._entered is not None
        self._units, self._ended, self._entered = set(), {}, None
        if had_leases:
            self._lost, self._is_loss_known = True, False

    def _end_others(self, connection: Connection, log: int) -> None:
        """Ends the workers that have died or run out of time: what they have is free, and they append no more."""
        over = [
            other for other in _list_living(connection, log) if other.worker != self._log.worker() and other.is_over
        ]
        if not over:
            return
        dead = [other.worker for other in over if other.process.has_ended()]
        late = [other.worker for other in over if other.is_late]
        values = {"dead": dead, "late": late, "lease": leases.LEASE_SECONDS}
        ended = [worker for (worker,) in connection.execute(_OVER, values).fetchall()]
        connection.execute(
            "UPDATE workers SET is_living = false, has_ended = is_fenced WHERE worker = ANY(%s)", [ended]
        )
        connection.execute("UPDATE units SET worker = NULL WHERE worker = ANY(%s)", [ended])

    def _free(self, connection: Connection, worker: int) -> None:
        """Frees what this worker has; drops a journal whose artifact is sealed if nobody else may be reading it."""
        with connection.unhurried():
            connection.execute(_ONE_BY_ONE, self._log.key[:3])
            log = self._log.find()
            if log is not None:
                _end_units(connection, log, self._ended)
            connection.execute("UPDATE units SET worker = NULL WHERE worker = %s", [worker])
            connection.execute("UPDATE workers SET is_living = false WHERE worker = %s", [worker])
            connection.execute(DROP_SEALED, (*self._log.key[:3], leases.LEASE_SECONDS))

    def _look(self) -> list[_Other]:
        log = self._log.find()
        return [] if log is None else self._database.run(lambda connection: _list_living(connection, log))

    def _others(self) -> list[ProcessIdentity]:
        found = (each for each in self._look() if each.worker != self._entered and each.units and not each.is_over)
        return [each.process for each in found]


# Of two workers that left at once, neither would see that the other is gone, and the journal would stay.
_ONE_BY_ONE: Final = "SELECT FROM journals WHERE store = %s AND kind = %s AND id = %s FOR NO KEY UPDATE"

DROP_SEALED: Final = """
DELETE FROM journals WHERE is_sealed AND store = %s AND kind = %s AND id = %s AND NOT EXISTS (
    SELECT FROM logs JOIN workers USING (log)
    WHERE logs.journal = journals.journal AND is_living AND beat > clock_timestamp() - make_interval(secs => %s))
"""


def _end_units(connection: Connection, log: int, ended: dict[int, bool]) -> None:
    if ended:
        units, states = [*ended], [*ended.values()]
        connection.execute(
            "UPDATE units SET worker = NULL, takers = 0, is_done = state"
            " FROM unnest(%s::bigint[], %s::boolean[]) AS ended (number, state) WHERE log = %s AND unit = number",
            [units, states, log],
        )


def _list_living(connection: Connection, log: int) -> list[_Other]:
    rows = connection.execute(_LIVING, {"log": log, "lease": leases.LEASE_SECONDS}).fetchall()
    return [_Other(worker, ProcessIdentity(*orjson.loads(words)), late, units) for worker, words, late, units in rows]
