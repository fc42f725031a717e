"""Journals in a PostgreSQL database: the lines and leases of open work, for drivers on several machines.

Each store has its journals there under its address, which is why all drivers must name it alike. A journal is made
when an artifact is opened. When the artifact is sealed, the journal is dropped by the last of the workers that may
still be reading it.
"""

from __future__ import annotations

import math
from typing import Any, LiteralString

import orjson

from evaluand.core.errors import EngineError, Fault, SpecError
from evaluand.store import leases
from evaluand.store.folder import Folder
from evaluand.store.journal import WorkLog
from evaluand.store.journals import BINDING, Journals
from evaluand.store.manifests import file_name
from evaluand.store.segments import fault_of, find_damage

try:
    from evaluand.store.database import Connection, Database
    from evaluand.store.postgres_leases import DROP_SEALED, PostgresLeases
    from evaluand.store.postgres_log import PostgresLog
except ModuleNotFoundError as error:
    if error.name != "psycopg":
        raise
    raise SpecError("a catalog in PostgreSQL needs psycopg: pip install 'evaluand[postgres]'") from None


class PostgresJournals(Journals):
    """The journals of a store in a database, whose clock shows of all workers whether they live.

    Args:
        catalog: `postgresql://[user@]host[:port]/database`.
        top: the folder of the store.
    """

    def __init__(self, catalog: str, top: Folder) -> None:
        self._database, self._top, self._store = Database(catalog), top, top.place
        self._is_bound = False

    def make(self, kind: str, id: str) -> None:
        self._bind()
        statement = """
            INSERT INTO journals (store, kind, id) VALUES (%s, %s, %s)
            ON CONFLICT (store, kind, id) DO UPDATE SET used = clock_timestamp(), is_sealed = false
        """
        self._database.run(lambda connection: connection.execute(statement, self._key(kind, id)))

    def _bind(self) -> None:
        """Notes in the store which database has its journals.

        Raises:
            EngineError: another one has them: drivers that use both would repeat each other's calls.
        """
        if self._is_bound:
            return
        self._top.make()
        self._top.put_if_absent(BINDING, self._binding())
        self._check()

    def _check(self) -> None:
        """Raises an EngineError if the store's journals are elsewhere."""
        if self._is_bound or self._top.state(BINDING) is None:
            return
        if self._top.read(BINDING) != self._binding():
            raise EngineError(
                f"{self._store}: the journals of its open work are not in {self._database.address} under this address;"
                f" give the same address and catalog to all drivers, or remove {self._top.path / BINDING} if they are"
                " gone or moved"
            )
        self._is_bound = True

    def _binding(self) -> bytes:
        return orjson.dumps({"database": self._database.identity, "store": self._store})

    def exists(self, kind: str, id: str) -> bool:
        return self._ask("SELECT true FROM journals WHERE store = %s AND kind = %s AND id = %s", kind, id) is not None

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        log = PostgresLog(self._database, (*self._key(kind, id), file_name(name)))
        return WorkLog(log, PostgresLeases(self._database, log), slots)

    def find_damage(self, kind: str, id: str) -> list[Fault]:
        statement = "SELECT name FROM logs JOIN journals USING (journal) WHERE store = %s AND kind = %s AND id = %s"
        names = self._database.fetch(statement, self._key(kind, id))
        logs = [PostgresLog(self._database, (*self._key(kind, id), name)) for (name,) in sorted(names)]
        return [fault_of(log, damage) for log in logs for damage in find_damage(log)]

    def is_worked_on(self, kind: str, id: str, recent: float) -> bool:
        self._check()
        statement = """
            SELECT extract(epoch FROM clock_timestamp() - max(beat))::float8
            FROM journals JOIN logs USING (journal) JOIN workers USING (log)
            WHERE store = %s AND kind = %s AND id = %s AND is_living
        """
        seconds_since_beat = self._ask(statement, kind, id)  # of a worker that has not left
        return seconds_since_beat is not None and float(seconds_since_beat) < leases.LEASE_SECONDS

    def idle(self, kind: str, id: str) -> float:
        self._check()
        statement = """
            SELECT extract(epoch FROM clock_timestamp() - greatest(used, max(beat)))::float8
            FROM journals LEFT JOIN logs USING (journal) LEFT JOIN workers USING (log)
            WHERE store = %s AND kind = %s AND id = %s GROUP BY journal
        """
        found = self._ask(statement, kind, id)
        return math.inf if found is None else float(found)

    def remove(self, kind: str, id: str, folder: Folder) -> None:
        key = self._key(kind, id)

        def mark_and_drop(connection: Connection) -> None:
            with connection.unhurried():
                connection.execute(
                    "UPDATE journals SET is_sealed = true WHERE store = %s AND kind = %s AND id = %s", key
                )
                connection.execute(DROP_SEALED, (*key, leases.LEASE_SECONDS))

        self._database.run(mark_and_drop)

    def orphans(self) -> dict[tuple[str, str], int]:
        statement = """
            SELECT kind, id, coalesce(sum(length(data)), 0)::bigint FROM journals
            LEFT JOIN logs USING (journal) LEFT JOIN workers USING (log) LEFT JOIN lines USING (worker)
            WHERE store = %s GROUP BY kind, id ORDER BY kind, id
        """
        return {(kind, id): size for kind, id, size in self._database.fetch(statement, [self._store])}

    def _ask(self, statement: LiteralString, kind: str, id: str) -> Any:
        """The only value that a statement finds for an artifact; None if there is none."""
        return next((value for (value,) in self._database.fetch(statement, self._key(kind, id))), None)

    def _key(self, kind: str, id: str) -> tuple[str, str, str]:
        return self._store, kind, id
