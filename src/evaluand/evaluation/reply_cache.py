"""Replies: what was asked before and what was told, so that nothing is asked twice.

A reply is canonical text under a key of 16 bytes. Replies are kept in memory, those asked last, and where a file is
given also in that: an SQLite database, which several processes may share. Whoever asks what is being asked already
waits for that reply, as long as anybody still wants it who has asked. Errors are told to all who wait, and kept by
nobody.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from evaluand.core.errors import EngineError, SpecError

APPLICATION: Final = 0x65766C72  # what SQLite keeps in a file to tell whose it is
LAYOUT: Final = 1  # of the table below
LARGEST: Final = 10_000  # replies that are held in memory
_PATIENCE: Final = 30.0  # seconds to wait for another process that writes
_LOOKS: Final = 10  # how often a file is looked at before it is taken for none of replies
_LOOK: Final = 0.02  # seconds in between
_TICK: Final = 0.1  # seconds after which who waits looks whether who asks is still wanted


class _Asked(Future[bytes]):
    """What somebody is asking; others may wait for it until nobody wants an answer of who asks."""

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
        """As `wait`; only the cancellation of who waits is one here."""
        told = asyncio.wrap_future(self)
        told.add_done_callback(lambda told: told.cancelled() or told.exception())  # looked at, whoever still waits
        while self.is_open:
            await asyncio.wait([told], timeout=_TICK)

    @property
    def is_told(self) -> bool:
        return self.done() and not self.cancelled()


class Replies:
    """Replies by their keys.

    Args:
        path: a file that keeps them beyond this process; made when the first reply is kept.
        largest: how many are held in memory.

    Example:
        >>> replies = Replies()
        >>> replies.get(b"key", lambda: b"told"), replies.get(b"key", lambda: b"told anew")
        ((b'told', True), (b'told', False))
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, largest: int = LARGEST) -> None:
        if largest < 0:
            raise SpecError(f"largest is {largest}; give how many replies are held in memory, or 0 for none")
        self.path = None if path is None else Path(path)
        self._largest = largest
        self._is_ours = False
        self._reset()
        _all.add(self)

    def get(
        self,
        key: bytes,
        ask: Callable[[], bytes],
        *,
        lasting: bool = True,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> tuple[bytes, bool]:
        """The reply, and whether it was asked for now.

        Args:
            key: of 16 bytes.
            ask: what gets the reply where there is none.
            lasting: whether it may be kept in the file, and taken from there.
            is_given_up: tells others, while this asks, whether nobody waits for it any more; then they ask themselves.

        Raises:
            Exception: whatever asking raised, also when somebody else has asked.
        """
        while True:
            known, asked, first = self._enter(key, lasting, is_given_up)
            if known is not None:
                return known, False
            if first:
                with self._answering(key, asked):
                    reply = ask()
                    self._keep(key, reply, asked, lasting)
                return reply, True
            asked.wait()
            if asked.is_told:
                return asked.result(), False
            # who asked was stopped or given up: the next in line asks

    async def get_async(
        self,
        key: bytes,
        ask: Callable[[], Awaitable[bytes]],
        *,
        lasting: bool = True,
        is_given_up: Callable[[], bool] = lambda: False,
    ) -> tuple[bytes, bool]:
        """As `get`, in an event loop."""
        while True:
            known, asked, first = self._enter(key, lasting, is_given_up)
            if known is not None:
                return known, False
            if first:
                with self._answering(key, asked):
                    reply = await ask()
                    self._keep(key, reply, asked, lasting)
                return reply, True
            await asked.wait_async()
            if asked.is_told:
                return asked.result(), False

    def __len__(self) -> int:
        return len(self._held)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[bytes, bytes] = OrderedDict()
        self._asked: dict[bytes, _Asked] = {}

    def _enter(self, key: bytes, lasting: bool, is_given_up: Callable[[], bool]) -> tuple[bytes | None, _Asked, bool]:
        """The reply where there is one; else what to wait for, and whether it is the caller who has to ask."""
        with self._lock:
            known = self._held.get(key)
            if known is not None:
                self._held.move_to_end(key)
                return known, _NOBODY, False
            asked = self._asked.get(key)
            if asked is not None and asked.is_open:
                return None, asked, False
            asked = self._asked[key] = _Asked(is_given_up)
        known = self._read(key, asked) if lasting and self.path is not None else None
        return known, asked, True

    def _read(self, key: bytes, asked: _Asked) -> bytes | None:
        """The reply that the file has, for all who wait for it."""
        with self._answering(key, asked):
            found = self._from_file(key)
            if found is not None:
                self._hold(key, found, asked)
        return found

    @contextmanager
    def _answering(self, key: bytes, asked: _Asked) -> Iterator[None]:
        """Tells those who wait of an error, and lets the next ask where the caller was stopped or given up."""
        try:
            yield
        except BaseException as error:
            with self._lock:
                self._forget(key, asked)
            if isinstance(error, Exception) and asked.is_open:
                asked.set_exception(error)
                asked.exception()  # is looked at, whether anybody waits or not
            else:
                asked.cancel()
            raise

    def _keep(self, key: bytes, reply: bytes, asked: _Asked, lasting: bool) -> None:
        if lasting and self.path is not None:
            with self._file(self.path) as db:
                db.execute("INSERT OR REPLACE INTO evaluand_reply VALUES (?, ?, ?)", (key, reply, time.time()))
        self._hold(key, reply, asked)

    def _hold(self, key: bytes, reply: bytes, asked: _Asked) -> None:
        with self._lock:
            self._forget(key, asked)
            self._held[key] = reply
            while len(self._held) > self._largest:
                self._held.popitem(last=False)
        asked.set_result(reply)

    def _forget(self, key: bytes, asked: _Asked) -> None:
        if self._asked.get(key) is asked:  # else another one asks by now
            del self._asked[key]

    def _from_file(self, key: bytes) -> bytes | None:
        assert self.path is not None
        if not self.path.exists():
            return None
        with self._file(self.path) as db:
            row = db.execute("SELECT reply FROM evaluand_reply WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    @contextmanager
    def _file(self, path: Path) -> Iterator[sqlite3.Connection]:
        """A connection of its own each time: it costs less than any request, and outlives neither thread nor fork."""
        try:
            if not path.exists() or not path.stat().st_size:
                _make(path)
            elif not self._is_ours:
                _check(path)
            self._is_ours = True
            with closing(_connection(path, "rw", timeout=_PATIENCE)) as db:
                _require(_owner(db), path)
                db.execute("PRAGMA synchronous = NORMAL")
                yield db
        except (OSError, sqlite3.Error) as error:
            raise EngineError(f"replies cannot be kept in {path}: {error}; give another file as cache") from None


def _make(path: Path) -> None:
    """Makes a file of replies, which is whole when it is there, also where others make it at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name[:100]}-", dir=path.parent) as folder:
        made = Path(folder, "replies")
        with closing(_connection(made, "rwc")) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("CREATE TABLE evaluand_reply (key BLOB PRIMARY KEY, reply BLOB NOT NULL, created REAL NOT NULL)")
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {LAYOUT}")
        if path.exists() and not path.stat().st_size:
            os.replace(made, path)
            return
        with suppress(FileExistsError):
            os.link(made, path)


def _check(path: Path) -> None:
    """Looks whether a file is one of replies, without anything that changes it, or leaves a lock or a log beside it.

    Raises:
        EngineError: it is none, or of another version.
    """
    for attempt in range(_LOOKS if path.is_file() else 0):
        try:
            with closing(_connection(path, "ro&immutable=1")) as db:
                return _require(_owner(db), path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # another process may just have written half of what it does
            time.sleep(_LOOK * (attempt + 1 < _LOOKS))
    _require((0, 0), path)


def _require(owner: tuple[int, int], path: Path) -> None:
    application, layout = owner
    if owner == (APPLICATION, LAYOUT):
        return
    why = f"its layout is {layout}, of another version of evaluand; this one has {LAYOUT}"
    why = why if application == APPLICATION else "it is no file of replies"
    raise EngineError(f"replies cannot be kept in {path}: {why}. It is left as it is; give another file as cache")


def _owner(db: sqlite3.Connection) -> tuple[int, int]:
    """Whose a database is, and of which layout."""
    (application,), (layout,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
    return application, layout


def _connection(path: Path, mode: str, **given: Any) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    made: sqlite3.Connection = sqlite3.connect(address, uri=True, isolation_level=None, **given)
    return made


def _forget() -> None:
    """A forked process has none of the threads that ask, and none that could give locks back."""
    for replies in list(_all):
        replies._reset()


_NOBODY: Final = _Asked(lambda: True)
_all: WeakSet[Replies] = WeakSet()
os.register_at_fork(after_in_child=_forget)
