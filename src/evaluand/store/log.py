"""The journal's log in a folder."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from evaluand.core.errors import EngineError
from evaluand.store.forks import begun_anew_in_forks
from evaluand.store.io import DiskFile, DiskFolder
from evaluand.store.lease_state import NOTHING, Written
from evaluand.store.segments import EARLIER_SUFFIX, SUFFIX, add_checksums, new_segment, seed_of


class FileLog:
    """Segments as files in a folder; this writer's segment is created with its first line.

    What `sync` promises after a crash of the machine: the lines appended before it are read back. The first sync of a
    segment also syncs the folder, so that its name survives. Lines that were not synced are lost, cut or damaged; then
    they do not count, and their units are done again.

    Args:
        folder: the folder of the log.
        scope: where the journal is: kind, id and name of the log. Its lines are valid nowhere else.

    Attributes:
        segment: the name of this writer's segment; another one after a failed write, and in a forked process.
    """

    def __init__(self, folder: DiskFolder, scope: str) -> None:
        self._folder, self._scope = folder, scope
        self._begin()
        begun_anew_in_forks.add(self)

    def append(self, data: bytes, written: Written = NOTHING) -> bool:
        own = self._own or self._create()
        if own is None:
            return False
        try:
            own.file.write(add_checksums(data, own.seed))
        except EngineError:
            self._retire(own)  # the segment may end in an incomplete line
            raise
        with self._lock:
            own.written = own.written.plus(written)
        return True

    def begin(self) -> None:
        if self._own is None:
            self._create()

    def written(self) -> Mapping[str, Written]:
        with self._lock:
            return {own.file.name: own.written for own in (*self._retired, self._own) if own is not None}

    def is_removed(self) -> bool:
        own = self._own
        return own is not None and own.file.has_no_name() and self._folder.state(own.file.name) is None

    def sync(self) -> None:
        if (own := self._own) is None:
            return
        own.file.sync()
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
        return segment == self.segment or any(segment == own.file.name for own in self._retired)

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
            self._retired.pop().file.close()
        _readers.close(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._own: _OwnSegment | None = None
        self._retired: list[_OwnSegment] = []
        self.segment = new_segment()

    def _create(self) -> _OwnSegment | None:
        """This writer's segment, made by the first thread that writes; None if the journal no longer exists."""
        with self._lock:
            if self._own is None:
                name = self.segment
                try:
                    try:
                        file = self._folder.create(name)
                    except FileNotFoundError:
                        self._folder.make_last()
                        file = self._folder.create(name)
                except FileNotFoundError:
                    return None
                self._own = _OwnSegment(file, seed_of(self._scope, name))
            return self._own

    def _retire(self, own: _OwnSegment | None) -> None:
        """Ends a segment. Its file stays open until the log is closed, since other threads may be writing."""
        with self._lock:
            if own is self._own:
                self._retired += [] if own is None else [own]
                self._own = None
                self.segment = new_segment()

    def fork(self) -> None:
        """In a forked process: the segment remains that of the parent."""
        _readers.fork()
        self._lock = threading.Lock()
        self.close()
        self._begin()


@dataclass(eq=False, slots=True)
class _OwnSegment:
    file: DiskFile
    seed: int
    has_lasting_name: bool = False
    written: Written = NOTHING


_SEGMENT: Final = re.compile(rf"[0-9A-Za-z._-]+({re.escape(SUFFIX)}|{re.escape(EARLIER_SUFFIX)})")


class _Readers:
    """The segments that are open for reading in this process, of all logs.

    An app may record in more processes than one process may open files, so those that were not read for longest are
    closed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[FileLog, str], DiskFile] = OrderedDict()

    def read(self, log: FileLog, folder: DiskFolder, name: str, offset: int, size: int) -> bytes:
        key = log, name
        with self._lock:  # so that no other thread closes the file
            if key in self._files:
                self._files.move_to_end(key)
            else:
                while len(self._files) >= MAX_READERS:
                    self._files.popitem(last=False)[1].close()
                self._files[key] = folder.open_file(name)
            return self._files[key].read(size, offset)

    def close(self, log: FileLog) -> None:
        with self._lock:
            for key in [key for key in self._files if key[0] is log]:
                self._files.pop(key).close()

    def fork(self) -> None:
        """In a forked process: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        while self._files:
            self._files.popitem()[1].close()


MAX_READERS: Final = 32
_readers = _Readers()
