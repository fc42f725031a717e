"""The cache of replies: a request that was answered before is not made again.

A reply is canonical text under a key of 16 bytes. The latest replies are in memory and, if a path is set, in an SQLite
database that several processes may share. If a request is already being made, further callers wait for its reply, until
the caller who makes it gives up. Errors are raised for all who wait, and never stored.
"""

import asyncio
import os
import sqlite3
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from evaluand.core.errors import EngineError, SpecError
from evaluand.core.system import call_after_fork, put_if_absent
from evaluand.engine.budget import BudgetReached

APPLICATION: Final = 0x65766C72  # SQLite's application_id: identifies the owner of a file
LAYOUT: Final = 1  # version of the table below
LARGEST: Final = 10_000  # replies that are held in memory
_PATIENCE: Final = 30.0  # seconds to wait for another process that writes
_CHECKS: Final = 10  # how often a file is read before it is rejected
_CHECK_PAUSE: Final = 0.02  # seconds in between
_TICK: Final = 0.1  # seconds between two checks whether the asking caller has given up


class _Pending(Future[bytes]):
    """A request that one caller is making; others may wait for it until that caller gives up."""

    def __init__(self, is_given_up: Callable[[], bool]) -> None:
        super().__init__()
        self._is_given_up = is_given_up

    @property
    def is_open(self) -> bool:
        """Whether it is worth waiting for."""
        return not self.done() and not self._is_given_up()

    def wait(self) -> None:
        while self.is_open:
            with suppress(TimeoutError, CancelledError):
                self.exception(_TICK)

    async def wait_async(self) -> None:
        """As `wait`, in an event loop; raises CancelledError only if the waiting task itself is cancelled."""
        future = asyncio.wrap_future(self)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # retrieved, or asyncio logs it
        while self.is_open:
            await asyncio.wait([future], timeout=_TICK)

    @property
    def has_outcome(self) -> bool:
        return self.done() and not self.cancelled()


class Replies:
    """Replies by their keys.

    Args:
        path: a file that stores them beyond this process; created with the first reply.
        largest: the largest number of replies in memory.

    Example:
        >>> replies = Replies()
        >>> replies.get(b"key", lambda: b"yes"), replies.get(b"key", lambda: b"no")
        ((b'yes', True), (b'yes', False))
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, largest: int = LARGEST) -> None:
        if largest < 0:
            raise SpecError(f"largest is {largest}; give how many replies are held in memory, or 0 for none")
        self.path = None if path is None else Path(path)
        self._largest = largest
        self._is_ours = False
        self._reset()
        _all.add(self)

    def __reduce__(self) -> Any:
        """A worker of a cluster holds its own replies; a file is shared where it has the same disk."""
        return partial(Replies, self.path, largest=self._largest), ()

    def get(
        self,
        key: bytes,
        ask: Callable[[], bytes],
        *,
        lasting: bool = True,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> tuple[bytes, bool]:
        """The reply, and whether it is new.

        Args:
            key: of 16 bytes.
            ask: makes the request if no reply is cached.
            lasting: whether the reply may be stored in the file, and read from it.
            is_given_up: whether this caller has given up meanwhile; then another caller that waits makes the request.

        Raises:
            Exception: raised by `ask`, of this caller or of the one it waited for.
        """
        in_file = lasting and self.path is not None
        while True:
            known, asked, first = self._enter(key, is_given_up)
            if first and in_file:
                with self._answering(key, asked):
                    known = self._hold_if_found(key, self._read_file(key), asked)
            if known is not None:
                return known, False
            if first:
                with self._answering(key, asked):
                    reply = ask()
                    if in_file:
                        self._write_file(key, reply)
                    self._hold(key, reply, asked)
                return reply, True
            asked.wait()
            if asked.has_outcome:
                return asked.result(), False
            # the asking caller was stopped or has given up: the next one asks

    async def get_async(
        self,
        key: bytes,
        ask: Callable[[], Awaitable[bytes]],
        *,
        lasting: bool = True,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> tuple[bytes, bool]:
        """As `get`, in an event loop."""
        in_file = lasting and self.path is not None
        while True:
            known, asked, first = self._enter(key, is_given_up)
            if first and in_file:  # in a thread, since another process may write for seconds
                with self._answering(key, asked):
                    known = self._hold_if_found(key, await asyncio.to_thread(self._read_file, key), asked)
            if known is not None:
                return known, False
            if first:
                with self._answering(key, asked):
                    reply = await ask()
                    if in_file:
                        await asyncio.to_thread(self._write_file, key, reply)
                    self._hold(key, reply, asked)
                return reply, True
            await asked.wait_async()
            if asked.has_outcome:
                return asked.result(), False

    def __len__(self) -> int:
        return len(self._held)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, bytes] = OrderedDict()
        self._asked: dict[bytes, _Pending] = {}

    def _enter(self, key: bytes, is_given_up: Callable[[], bool]) -> tuple[bytes | None, _Pending, bool]:
        """The reply if it is in memory, the request to wait for, and whether the caller has to make that request."""
        with self._lock:
            known = self._held.get(key)
            if known is not None:
                self._held.move_to_end(key)
                return known, _NOBODY, False
            asked = self._asked.get(key)
            if asked is not None and asked.is_open:
                return None, asked, False
            asked = self._asked[key] = _Pending(is_given_up)
        return None, asked, True

    def _hold_if_found(self, key: bytes, reply: bytes | None, asked: _Pending) -> bytes | None:
        """Passes a reply of the file on to all who wait for it."""
        if reply is not None:
            self._hold(key, reply, asked)
        return reply

    @contextmanager
    def _answering(self, key: bytes, asked: _Pending) -> Iterator[None]:
        """Passes an error on to those who wait, or lets the next one ask if the caller was stopped or has given up."""
        try:
            yield
        except BaseException as error:
            with self._lock:
                self._forget(key, asked)
            is_outcome = isinstance(error, Exception) and not isinstance(error, BudgetReached)  # not for other budgets
            if is_outcome and asked.is_open:
                asked.set_exception(error)
                asked.exception()  # retrieved, whether anybody waits or not
            else:
                asked.cancel()
            raise

    def _hold(self, key: bytes, reply: bytes, asked: _Pending) -> None:
        with self._lock:
            self._forget(key, asked)
            self._held[key] = reply
            while len(self._held) > self._largest:
                self._held.popitem(last=False)
        asked.set_result(reply)

    def _forget(self, key: bytes, asked: _Pending) -> None:
        if self._asked.get(key) is asked:  # else another caller has asked since
            del self._asked[key]

    def _read_file(self, key: bytes) -> bytes | None:
        assert self.path is not None
        if not self.path.exists():
            return None
        with self._file(self.path) as db:
            row = db.execute("SELECT reply FROM evaluand_reply WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def _write_file(self, key: bytes, reply: bytes) -> None:
        assert self.path is not None
        with self._file(self.path) as db:
            db.execute("INSERT OR REPLACE INTO evaluand_reply VALUES (?, ?, ?)", (key, reply, time.time()))

    @contextmanager
    def _file(self, path: Path) -> Iterator[sqlite3.Connection]:
        """A new connection each time: it costs less than any request, and is not shared between threads or forks."""
        try:
            if not path.exists() or not path.stat().st_size:
                _create(path)
            elif not self._is_ours:
                _check(path)
            self._is_ours = True
            with closing(_connect(path, "rw", timeout=_PATIENCE)) as db:
                _require(_owner(db), path)
                db.execute("PRAGMA synchronous = NORMAL")
                yield db
        except (OSError, sqlite3.Error) as error:
            raise EngineError(f"cannot store replies in {path}: {error}; choose another file") from None


def _create(path: Path) -> None:
    """Creates a file of replies atomically, also if other processes create it at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name[:100]}-", dir=path.parent) as folder:
        temporary = Path(folder, "replies")
        with closing(_connect(temporary, "rwc")) as db:
            db.execute("CREATE TABLE evaluand_reply (key BLOB PRIMARY KEY, reply BLOB NOT NULL, created REAL NOT NULL)")
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {LAYOUT}")
        temporary.chmod(0o600)  # replies may be confidential
        if path.exists() and not path.stat().st_size:
            os.replace(temporary, path)
            return
        put_if_absent(temporary, path)


def _check(path: Path) -> None:
    """Checks a file without changing it or creating others next to it; an EngineError unless it holds our replies."""
    for attempt in range(_CHECKS if path.is_file() else 0):
        try:
            with closing(_connect(path, "ro&immutable=1")) as db:
                return _require(_owner(db), path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # another process may be writing
            time.sleep(_CHECK_PAUSE * (attempt + 1 < _CHECKS))
    _require((0, 0), path)


def _require(owner: tuple[int, int], path: Path) -> None:
    application, layout = owner
    if owner == (APPLICATION, LAYOUT):
        return
    why = f"its layout is {layout}, of another version of evaluand; this one has {LAYOUT}"
    why = why if application == APPLICATION else "it is not a file of replies"
    raise EngineError(f"cannot store replies in {path}: {why}; the file is unchanged; choose another")


def _owner(db: sqlite3.Connection) -> tuple[int, int]:
    """The application id of a database, and the version of its layout."""
    (application,), (layout,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
    return application, layout


def _connect(path: Path, mode: str, **options: Any) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection: sqlite3.Connection = sqlite3.connect(address, uri=True, isolation_level=None, **options)
    return connection


def _reset_after_fork() -> None:
    """Clears pending requests and locks: their threads do not exist in a forked process."""
    for replies in list(_all):
        replies._reset()


_NOBODY: Final = _Pending(lambda: True)
_all: WeakSet[Replies] = WeakSet()
call_after_fork(_reset_after_fork)
