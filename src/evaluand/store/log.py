"""The journal's log and leases on a local disk."""

from __future__ import annotations

import os
import re
import secrets
import socket
import sqlite3
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakSet, WeakValueDictionary

from evaluand.core.errors import EngineError, Fault
from evaluand.core.system import call_after_fork, is_alive
from evaluand.store.io import Folder, disk
from evaluand.store.journal import MemoryLeases, MemoryShards
from evaluand.store.segments import EARLIER_SUFFIX, SUFFIX, add_checksums, fault_of, find_damage, seed_of

T = TypeVar("T")

LEASE_SECONDS = 30.0


class FileLog:
    """Segments as files in a folder; this writer's segment is created with its first line.

    What `sync` promises after a crash of the machine: the lines appended before it are read back. The first sync of a
    segment also syncs the folder, so that its name survives. Lines that were not synced are lost, cut or damaged; then
    they do not count, and their units are done again.

    Args:
        folder: the folder of the log.
        scope: where the journal is: kind, id and name of the log. Its lines are valid nowhere else.
    """

    def __init__(self, folder: Folder, scope: str) -> None:
        self._folder, self._scope = folder, scope
        self._begin()
        _logs.add(self)

    @property
    def segment(self) -> str:
        """The name of this writer's segment; another one after a failed write, and in a forked process."""
        return self._segment

    def append(self, data: bytes) -> None:
        own = self._own or self._create()
        if own is None:
            return  # another process has sealed the artifact, so it has this line
        try:
            self._folder.append(own.name, own.handle, add_checksums(data, own.seed))
        except EngineError:
            self._retire(own)  # the segment may end in an incomplete line
            raise

    def sync(self) -> None:
        if (own := self._own) is None:
            return
        self._folder.sync_file(own.name, own.handle)
        if not own.has_lasting_name:
            with suppress(FileNotFoundError):  # another process has sealed the artifact
                self._folder.sync()
            own.has_lasting_name = True

    def segments(self) -> Mapping[str, int]:
        found = self._folder.sizes()
        return {name: found[name] for name in sorted(found) if _SEGMENT.fullmatch(name)}

    def size(self, segment: str) -> int:
        state = self._folder.state(segment)
        return 0 if state is None else state.st_size

    def seed(self, segment: str) -> int | None:
        return seed_of(self._scope, segment) if segment.endswith(SUFFIX) else None

    def is_own(self, segment: str) -> bool:
        return segment == self._segment or any(segment == own.name for own in self._retired)

    def path(self, segment: str) -> str:
        return str(self._folder.path / segment)

    def read(self, segment: str, offset: int, size: int) -> bytes:
        return _readers.read(self, self._folder, segment, offset, size)

    def restart(self) -> None:
        self.sync()
        self._retire(self._own)

    def close(self) -> None:
        self._retire(self._own)
        while self._retired:
            disk.close(self._retired.pop().handle)
        _readers.close(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._own: _OwnSegment | None = None
        self._retired: list[_OwnSegment] = []
        self._choose()

    def _choose(self) -> None:
        self._segment = f"{time.time_ns():020d}-{secrets.token_hex(4)}{SUFFIX}"

    def _create(self) -> _OwnSegment | None:
        """This writer's segment, made by the first thread that writes; None if the journal no longer exists."""
        with self._lock:
            if self._own is None:
                name = self._segment
                try:
                    try:
                        handle = self._folder.create(name)
                    except FileNotFoundError:
                        self._folder.make_last()
                        handle = self._folder.create(name)
                except FileNotFoundError:
                    return None
                self._own = _OwnSegment(name, handle, seed_of(self._scope, name))
            return self._own

    def _retire(self, own: _OwnSegment | None) -> None:
        """Ends a segment. Its handle stays open until the log is closed, since other threads may be writing."""
        with self._lock:
            if own is self._own:
                self._retired += [] if own is None else [own]
                self._own = None
                self._choose()

    def _fork(self) -> None:
        """In a forked process: the segment remains that of the parent."""
        self._lock = threading.Lock()
        self.close()
        self._begin()


def find_journal_damage(folder: Folder, scope: str) -> list[Fault]:
    """The damaged lines in the logs of a journal.

    Args:
        folder: the folder of the journal.
        scope: kind and id of its artifact.
    """
    faults = []
    for name in folder.folders():
        log = FileLog(folder / name, f"{scope}/{name}")
        try:
            with suppress(FileNotFoundError):  # another process has sealed the artifact
                faults += [fault_of(log, damage) for damage in find_damage(log)]
        finally:
            log.close()
    return faults


@dataclass(eq=False, slots=True)
class _OwnSegment:
    name: str
    handle: int
    seed: int
    has_lasting_name: bool = False


_SEGMENT: Final = re.compile(rf"[0-9A-Za-z._-]+({re.escape(SUFFIX)}|{re.escape(EARLIER_SUFFIX)})")


class _Readers:
    """The segments that are open for reading in this process, of all logs.

    An app may record in more processes than one process may open files, so those that were not read for longest are
    closed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handles: OrderedDict[tuple[FileLog, str], int] = OrderedDict()

    def read(self, log: FileLog, folder: Folder, name: str, offset: int, size: int) -> bytes:
        key = log, name
        with self._lock:  # so that no other thread closes the handle
            if key in self._handles:
                self._handles.move_to_end(key)
            else:
                while len(self._handles) >= MAX_READERS:
                    disk.close(self._handles.popitem(last=False)[1])
                self._handles[key] = folder.open(name)
            return folder.read_at(name, self._handles[key], size, offset)

    def close(self, log: FileLog) -> None:
        with self._lock:
            for key in [key for key in self._handles if key[0] is log]:
                disk.close(self._handles.pop(key))

    def fork(self) -> None:
        """In a forked process: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        while self._handles:
            disk.close(self._handles.popitem()[1])


MAX_READERS: Final = 32
_readers = _Readers()
_logs: Final = WeakSet[FileLog]()


def _fork() -> None:
    _readers.fork()
    for log in [*_logs]:
        log._fork()


call_after_fork(_fork)


class SqliteLeases:
    """Leases in a small SQLite file next to the segments, safe for processes of one machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._me = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._held: set[int] = set()
        self._low = 0  # every shard below is done
        self._beating: threading.Event | None = None
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def claim(self, shards: int) -> tuple[int, int] | None:
        claimed = self._transact(lambda db: self._claim(db, shards), None)
        if claimed:
            self._held.add(claimed[0])
            self._beat()
        return claimed

    def _claim(self, db: sqlite3.Connection, shards: int) -> tuple[int, int] | None:
        query = "SELECT shard, done, holder, until, takers FROM lease WHERE shard >= ?"
        known = {row[0]: row for row in db.execute(query, (self._low,))}
        while known.get(self._low, (0, 0))[1]:
            self._low += 1
        for shard in range(self._low, shards):
            _, done, holder, until, takers = known.get(shard, (shard, 0, None, 0.0, 0))
            if not done and shard not in self._held and (holder is None or self._is_free(holder, until)):
                mine = (shard, self._me, time.time() + LEASE_SECONDS, takers + 1)
                db.execute("INSERT OR REPLACE INTO lease VALUES (?, 0, ?, ?, ?)", mine)
                return shard, takers
        return None

    def finish(self, shard: int) -> None:
        done = "UPDATE lease SET done = 1, holder = NULL WHERE shard = ? AND holder = ?"
        self._transact(lambda db: db.execute(done, (shard, self._me)), None)
        self._held.discard(shard)

    def reopen(self, shards: Sequence[int]) -> None:
        again = [(shard,) for shard in shards]
        self._transact(lambda db: db.executemany("UPDATE lease SET done = 0 WHERE shard = ?", again), None)
        self._low = 0

    def release(self) -> None:
        if self._beating:
            self._beating.set()
            self._beating = None
        if self._held:
            release = "UPDATE lease SET holder = NULL WHERE holder = ? AND done = 0"
            self._transact(lambda db: db.execute(release, (self._me,)), None)
            self._held.clear()
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        taken = self._transact(lambda db: self._take(db, units), None)
        if taken:
            self._held.add(taken[0])
            self._beat()
        return taken

    def _take(self, db: sqlite3.Connection, units: Iterable[int]) -> tuple[int, int] | None:
        """Only units that are taken, or whose takers died, have rows; finished ones have none."""
        known = {row[0]: row[1:] for row in db.execute("SELECT shard, holder, until, takers FROM lease")}
        for unit in units:
            holder, until, takers = known.get(unit, (None, 0.0, 0))
            if unit not in self._held and (holder is None or self._is_free(holder, until)):
                mine = (unit, self._me, time.time() + LEASE_SECONDS, takers + 1)
                db.execute("INSERT OR REPLACE INTO lease VALUES (?, 0, ?, ?, ?)", mine)
                return unit, takers
        return None

    def drop(self, unit: int) -> None:
        drop = "DELETE FROM lease WHERE shard = ? AND holder = ?"
        self._transact(lambda db: db.execute(drop, (unit, self._me)), None)
        self._held.discard(unit)

    def held(self) -> int:
        return sum(holder == self._me or not self._is_free(holder, until) for holder, until in self._holders())

    def holds(self) -> bool:
        return True

    def busy(self) -> bool:
        return any(holder != self._me and not self._is_free(holder, until) for holder, until in self._holders())

    def _holders(self) -> list[tuple[str, float]]:
        query = "SELECT holder, until FROM lease WHERE done = 0 AND holder IS NOT NULL"
        return self._transact(lambda db: db.execute(query).fetchall(), [])

    def _is_free(self, holder: str, until: float) -> bool:
        if until < time.time():
            return True
        host, pid, _ = holder.rsplit("/", 2)
        return host == socket.gethostname() and int(pid) != os.getpid() and not is_alive(int(pid))

    def _beat(self) -> None:
        if self._beating is None:
            self._beating = threading.Event()
            threading.Thread(target=self._extend, args=(self._beating,), name="leases", daemon=True).start()

    def _extend(self, ended: threading.Event) -> None:
        longer = "UPDATE lease SET until = ? WHERE holder = ? AND done = 0"
        while not ended.wait(LEASE_SECONDS / 3):
            self._transact(lambda db: db.execute(longer, (time.time() + LEASE_SECONDS, self._me)), None)

    def _transact(self, do: Callable[[sqlite3.Connection], T], otherwise: Any) -> T | Any:
        """Runs a transaction; does nothing if another process has sealed the artifact and removed the file."""
        with self._lock:
            try:
                if self._db is None:
                    self._db = _connect(self._path)
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    result = do(self._db)
                finally:
                    self._db.execute("COMMIT")
            except sqlite3.OperationalError:
                if self._path.exists():
                    raise
                return otherwise
            return result


class SoleLeases(MemoryLeases):
    """Leases on a file system without locks: one process at a time has all of them, and a file names it.

    A process of this machine that has died gives way to the next. Whether one of another machine lives is not known:
    then the message says which file to remove.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with _sole:
            shards = _shards.get(path.absolute()) or _shards.setdefault(path.absolute(), MemoryShards())
        super().__init__(shards)
        self._entered_as = 0  # the process that has entered; a forked one has not

    def claim(self, shards: int) -> tuple[int, int] | None:
        self._enter()
        return super().claim(shards)

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        self._enter()
        return super().take(units)

    def release(self) -> None:
        super().release()
        if self._entered_as == os.getpid():
            self._entered_as = 0
            with _sole:
                _writers[self._path.absolute()] -= 1
                if not _writers[self._path.absolute()]:
                    self._path.unlink(missing_ok=True)

    def held(self) -> int:
        return super().held() + (self._other() is not None)

    def busy(self) -> bool:
        return super().busy() or self._other() is not None

    def _enter(self) -> None:
        if self._entered_as == os.getpid():
            return
        with _sole:
            if not _writers[self._path.absolute()]:
                self._write_name()
            _writers[self._path.absolute()] += 1
            self._entered_as = os.getpid()

    def _write_name(self) -> None:
        while True:
            try:
                handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileNotFoundError:  # another process has sealed the artifact and removed the folder
                return
            except FileExistsError:
                if other := self._other():
                    raise EngineError(
                        f"{self._path}: this file system has no locks, so one process at a time may work on this, and"
                        f" process {other} does; wait for it, or if it has ended, remove the file"
                    ) from None
                self._path.unlink(missing_ok=True)
                continue
            with os.fdopen(handle, "w") as file:
                file.write(f"{socket.gethostname()}/{os.getpid()}")
            return

    def _other(self) -> str | None:
        """The living process that writes here, if it is not this one."""
        try:
            host, _, pid = self._path.read_text().rpartition("/")
        except OSError:
            return None
        if host != socket.gethostname():
            return f"{pid or '?'} on {host or 'an unknown machine'}"
        is_other = pid.isdigit() and int(pid) != os.getpid() and is_alive(int(pid))
        return f"{pid} on this machine" if is_other else None


_sole = threading.Lock()
_shards: WeakValueDictionary[Path, MemoryShards] = WeakValueDictionary()
_writers: Counter[Path] = Counter()


def _forget_writers() -> None:
    """In a forked process: the leases are those of the parent."""
    global _sole
    _sole = threading.Lock()
    _shards.clear()
    _writers.clear()


call_after_fork(_forget_writers)


def unwritable(path: Path, error: OSError) -> EngineError:
    """The error of a failed write to a full, broken or read-only disk."""
    return EngineError(
        f"{path}: cannot be written: {error.strerror or error}; free space or repair the disk, then resume"
    )


def _connect(path: Path) -> sqlite3.Connection:
    """Leases need not survive a crash of the machine, so nothing waits for the disk."""
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = PERSIST")  # avoids creating and removing a file for each unit
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN IMMEDIATE")  # waits for other processes, which the statements below would not
    db.execute(
        "CREATE TABLE IF NOT EXISTS lease"
        " (shard INTEGER PRIMARY KEY, done INTEGER, holder TEXT, until REAL, takers INTEGER)"
    )
    db.execute("COMMIT")
    return db
