"""The journal's log in a folder."""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from evaluand.core.errors import EngineError
from evaluand.core.system import call_after_fork
from evaluand.store.io import Folder, disk
from evaluand.store.segments import EARLIER_SUFFIX, SUFFIX, add_checksums, seed_of


class FileLog:
    """Segments as files in a folder; this writer's segment is created with its first line.

    What `sync` promises after a crash of the machine: the lines appended before it are read back. The first sync of a
    segment also syncs the folder, so that its name survives. Lines that were not synced are lost, cut or damaged; then
    they do not count, and their units are done again.

    Args:
        folder: the folder of the log.
        scope: where the journal is: kind, id and name of the log. Its lines are valid nowhere else.
    """

    _own: int | None
    _retired: list[int]
    _unsynced: str

    def __init__(self, folder: Folder, scope: str) -> None:
        self._folder, self._scope = folder, scope
        self._begin()

    @property
    def segment(self) -> str:
        """The name of this writer's segment; another one after a failed write, and in a forked process."""
        self._check_process()
        return self._segment

    def append(self, data: bytes) -> None:
        self._check_process()
        with self._lock:
            if self._own is None:
                self._own = self._create()
            if self._own is None:
                return  # another process has sealed the artifact, so it has this line
            try:
                self._folder.append(self._segment, self._own, add_checksums(data, self._seed))
            except EngineError:
                self._retire()  # the segment may end in an incomplete line
                raise

    def sync(self) -> None:
        self._check_process()
        with self._syncing:
            name, handle = self._segment, self._own
            if handle is not None:
                self._folder.sync_file(name, handle)
                if self._unsynced == name:
                    with suppress(FileNotFoundError):  # another process has sealed the artifact
                        self._folder.sync()
                    self._unsynced = ""
            self._close_retired()

    def segments(self) -> Mapping[str, int]:
        found = self._folder.sizes()
        return {name: found[name] for name in sorted(found) if _SEGMENT.fullmatch(name)}

    def size(self, segment: str) -> int:
        state = self._folder.state(segment)
        return 0 if state is None else state.st_size

    def seed(self, segment: str) -> int | None:
        return seed_of(self._scope, segment) if segment.endswith(SUFFIX) else None

    def path(self, segment: str) -> str:
        return str(self._folder.path / segment)

    def read(self, segment: str, offset: int, size: int) -> bytes:
        return _readers.read(self, self._folder, segment, offset, size)

    def restart(self) -> None:
        self.sync()
        with self._lock:
            self._retire()

    def close(self) -> None:
        self._check_process()
        with self._syncing:
            with self._lock:
                self._retire()
            self._close_retired()
        _readers.close(self)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        self._own, self._retired, self._unsynced = None, [], ""
        self._choose()

    def _check_process(self) -> None:
        """In a fork, begins a segment; that of the parent remains its own."""
        if self._pid != os.getpid():
            self._retired += [] if self._own is None else [self._own]
            self._close_retired()
            self._begin()

    def _choose(self) -> None:
        self._segment = f"{time.time_ns():020d}-{secrets.token_hex(4)}{SUFFIX}"
        self._seed = seed_of(self._scope, self._segment)

    def _retire(self) -> None:
        """Ends this writer's segment; another thread may be syncing its handle, which is closed later."""
        if self._own is not None:
            self._retired.append(self._own)
            self._own = None
        self._choose()

    def _close_retired(self) -> None:
        while self._retired:
            disk.close(self._retired.pop())

    def _create(self) -> int | None:
        """A handle of a new segment; None if the journal no longer exists."""
        try:
            try:
                handle = self._folder.create(self._segment)
            except FileNotFoundError:
                self._folder.make_last()
                handle = self._folder.create(self._segment)
        except FileNotFoundError:
            return None
        self._unsynced = self._segment
        return handle


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

    def reset(self) -> None:
        """In a forked process: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        while self._handles:
            disk.close(self._handles.popitem()[1])


MAX_READERS: Final = 32
_readers = _Readers()
call_after_fork(_readers.reset)
