"""Connections to a PostgreSQL database, which survive that the server ends or cannot be reached for a while.

Password, certificate and other settings come from the variables of libpq (`PGPASSWORD`, `PGSSLMODE`, …) or its files.
A statement whose answer was lost may have been carried out. So who gives work to `run` sees to it that repeating it
changes nothing more.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, LiteralString, TypeVar

import psycopg
from psycopg import errors

from evaluand.core.errors import EngineError, warn
from evaluand.store.forks import begun_anew_in_forks

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
"""How long a server that has answered before may not answer."""

ANSWER_SECONDS = 75.0
"""How long an answer may take: the server ends statements after 60 s. One that hangs answers nothing."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_TEMPORARY: Final = (
    *(psycopg.OperationalError, psycopg.InterfaceError, errors.DeadlockDetected, errors.SerializationFailure),
)
_SETTINGS: Final[dict[str, Any]] = {  # a dead machine, or a cable that was cut, is noticed within half a minute
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
    "application_name": "evaluand",
}
_SESSION: Final = "SET search_path TO evaluand_1; SET statement_timeout TO '60s'; SET client_min_messages TO error"
_LAYOUT_LOCK: Final = 0x6576616C
_LAYOUT: Final = """
CREATE SCHEMA IF NOT EXISTS evaluand_1;
CREATE TABLE IF NOT EXISTS evaluand_1.identity (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    id uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO evaluand_1.identity DEFAULT VALUES ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS evaluand_1.journals (
    journal bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    store text NOT NULL, kind text NOT NULL, id text NOT NULL,
    used timestamptz NOT NULL DEFAULT clock_timestamp(),
    is_sealed boolean NOT NULL DEFAULT false,
    UNIQUE (store, kind, id)
);
CREATE TABLE IF NOT EXISTS evaluand_1.logs (
    log bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    journal bigint NOT NULL REFERENCES evaluand_1.journals ON DELETE CASCADE,
    name text NOT NULL,
    UNIQUE (journal, name)
);
CREATE TABLE IF NOT EXISTS evaluand_1.workers (
    worker bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    log bigint NOT NULL REFERENCES evaluand_1.logs ON DELETE CASCADE,
    segment text NOT NULL,
    process text NOT NULL,
    beat timestamptz NOT NULL DEFAULT clock_timestamp(),
    is_living boolean NOT NULL DEFAULT false,
    is_fenced boolean NOT NULL DEFAULT true,
    has_ended boolean NOT NULL DEFAULT false,
    UNIQUE (log, segment)
);
CREATE TABLE IF NOT EXISTS evaluand_1.lines (
    worker bigint NOT NULL REFERENCES evaluand_1.workers ON DELETE CASCADE,
    start bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (worker, start)
);
CREATE TABLE IF NOT EXISTS evaluand_1.units (
    log bigint NOT NULL REFERENCES evaluand_1.logs ON DELETE CASCADE,
    unit bigint NOT NULL,
    worker bigint REFERENCES evaluand_1.workers ON DELETE SET NULL,
    takers integer NOT NULL DEFAULT 0,
    is_done boolean NOT NULL DEFAULT false,
    PRIMARY KEY (log, unit)
);
CREATE INDEX IF NOT EXISTS units_by_worker ON evaluand_1.units (worker);
"""


class Connection(psycopg.Connection[Any]):
    """A connection that fails if an answer takes longer than `ANSWER_SECONDS`."""

    _most: float | None = None  # seconds, where that is another limit

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, ANSWER_SECONDS if self._most is None else self._most)

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """A transaction whose statements may take an hour, as to drop a large journal may."""
        with self.transaction():
            self.execute("SET LOCAL statement_timeout TO '1h'")
            self._most = 3600.0
            try:
                yield
            finally:
                self._most = None


class Database:
    """A database with the tables of journals, which are made when it is first used.

    Args:
        address: `postgresql://[user@]host[:port]/database`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._has_answered = False
        self._begin()
        begun_anew_in_forks.add(self)

    @property
    def identity(self) -> str:
        """What no other database has, wherever this one is moved to."""
        [[id]] = self.fetch("SELECT id FROM identity")
        return str(id)

    def fetch(self, statement: LiteralString, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a statement gives."""
        return self.run(lambda connection: connection.execute(statement, values).fetchall())

    def run(self, work: Callable[[Connection], T], *, patience: float | None = None) -> T:
        """The result of some statements, which are repeated while the server cannot be reached.

        Args:
            work: gets a connection that commits each statement; it may begin a transaction. It may be called again
                although it was carried out.
            patience: seconds for which a server that has answered before may not answer.

        Raises:
            EngineError: the server refuses, or does not answer in time.
        """
        until = time.monotonic() + (PATIENCE_SECONDS if patience is None else patience)
        pause, has_warned = _FIRST_PAUSE, False
        while True:
            try:
                with self._connection() as connection:
                    return work(connection)
            except _TEMPORARY as error:
                if time.monotonic() + pause > until or not (self._has_answered or _is_starting(error)):
                    raise self._explain(error) from None
                if pause > 1 and not has_warned:
                    has_warned = True
                    warn(f"{self.address} does not answer; trying again for up to {PATIENCE_SECONDS:g} s")
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except psycopg.Error as error:
                raise self._explain(error) from None

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A connection that no other thread uses."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()  # what it is in the middle of is not known
            raise
        with self._lock:
            self._idle.append(connection)

    def _connect(self) -> Connection:
        connection = Connection.connect(self.address, autocommit=True, **_SETTINGS)
        try:
            if not self._has_answered:
                _make_layout(connection)
                self._has_answered = True
            connection.execute(_SESSION)
        except BaseException:
            connection.close()
            raise
        return connection

    def _explain(self, error: psycopg.Error) -> EngineError:
        reason = (str(error).strip() or type(error).__name__).split("\n")[0].strip()
        if isinstance(error, errors.InsufficientPrivilege):
            advice = "grant this user CREATE on the database, or have its owner start once"
        else:
            advice = "nothing finished is lost; check the database and PGPASSWORD, then start again"
        return EngineError(f"{self.address}: {reason}; {advice}")

    def _begin(self) -> None:
        """Begins without connections, also in a fork: there they are those of the parent."""
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        weakref.finalize(self, _close_all, self._idle, os.getpid())

    def fork(self) -> None:
        _of_parents.append(self._idle)
        self._begin()


_of_parents: Final = list[list[Connection]]()
"""Connections of parents: closing them here would end them there."""


def _make_layout(connection: Connection) -> None:
    if connection.execute("SELECT to_regclass('evaluand_1.identity')").fetchone() == (None,):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LAYOUT_LOCK])
            connection.execute(_LAYOUT)


def _close_all(connections: list[Connection], pid: int) -> None:
    if os.getpid() == pid:
        for connection in connections:
            with suppress(psycopg.Error):
                connection.close()


def _is_starting(error: BaseException) -> bool:
    """Whether a server says that it starts or ends; libpq gives no code for it."""
    return any(
        each in str(error) for each in ("starting up", "shutting down", "recovery", "not yet accepting connections")
    )
