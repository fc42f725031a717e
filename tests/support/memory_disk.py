"""A disk in memory, with files, folders, hard links and handles as POSIX has them, and without links to paths."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator

from evaluand.store.folder import Entry
from evaluand.store.io import Disk

_FILE, _FOLDER = stat.S_IFREG | 0o600, stat.S_IFDIR | 0o700


class Node:
    """A file or a folder; `names` is None for a file."""

    __slots__ = ("content", "links", "names", "number", "time")

    def __init__(self, number: int, is_folder: bool, time: int) -> None:
        self.number, self.time, self.links = number, time, 1
        self.content = bytearray()
        self.names: dict[str, Node] | None = {} if is_folder else None


class MemoryDisk(Disk):
    """The calls of a store on files in memory.

    Args:
        date: nanoseconds since the epoch, for the times of files.
    """

    def __init__(self, date: Callable[[], int] = lambda: 0) -> None:
        self.date = date
        self.handles: dict[int, Node] = {}
        self._numbers = itertools.count(100)
        self._top = self._new(is_folder=True)

    def open(self, name: str, flags: int, folder: int | None) -> int:
        try:
            node = self._find(name, folder)
            if flags & os.O_EXCL:
                raise _error(errno.EEXIST)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            node = self._new(is_folder=False)
            self._put(name, folder, node)
        if flags & os.O_DIRECTORY and node.names is None:
            raise _error(errno.ENOTDIR)
        handle = next(self._numbers)
        self.handles[handle] = node
        return handle

    def read(self, handle: int, size: int, offset: int) -> bytes:
        return bytes(self._node(handle).content[offset : offset + size])

    def write(self, handle: int, data: bytes) -> int:
        node = self._node(handle)
        node.content += data
        node.time = self.date()
        return len(data)

    def sync(self, handle: int) -> None:
        self._node(handle)

    def close(self, handle: int) -> None:
        if self.handles.pop(handle, None) is None:
            raise _error(errno.EBADF)

    def state(self, name: str, folder: int | None) -> os.stat_result:
        return _state(self._find(name, folder))

    def state_of(self, handle: int) -> os.stat_result:
        return _state(self._node(handle))

    def states(self, names: Iterable[str], folder: int | None) -> list[os.stat_result | OSError | None]:
        found: list[os.stat_result | OSError | None] = []
        for name in names:
            try:
                found.append(_state(self._find(name, folder)))
            except (FileNotFoundError, NotADirectoryError):
                found.append(None)
        return found

    def entries(self, folder: int | str) -> list[Entry]:
        return [Entry(name, n.names is None, n.names is not None) for name, n in self._names(folder).items()]

    def sizes(self, folder: int | str) -> dict[str, int]:
        return {name: len(n.content) for name, n in self._names(folder).items() if n.names is None}

    def make_folder(self, name: str, folder: int | None) -> None:
        self._put(name, folder, self._new(is_folder=True))

    def make_folders(self, path: str) -> None:
        node = self._top
        for name in path.strip("/").split("/"):
            assert node.names is not None
            node = node.names.setdefault(name, self._new(is_folder=True))

    def rename(self, name: str, new: str, folder: int | None) -> None:
        node, names = self._find(name, folder), self._names(folder)
        earlier = names.get(new)
        if earlier is node:
            return
        if earlier is not None:
            if (earlier.names is None) != (node.names is None):
                raise _error(errno.ENOTDIR if earlier.names is None else errno.EISDIR)
            if earlier.names:
                raise _error(errno.ENOTEMPTY)
            earlier.links -= 1
        del names[name]
        names[new] = node

    def link(self, name: str, new: str, folder: int | None) -> None:
        node = self._find(name, folder)
        if node.names is not None:
            raise _error(errno.EPERM if new not in self._names(folder) else errno.EEXIST)
        self._put(new, folder, node)
        node.links += 1

    def touch(self, name: str, folder: int | None) -> None:
        self._find(name, folder).time = self.date()

    def remove(self, name: str, folder: int | None) -> None:
        node = self._find(name, folder)
        if node.names is not None:
            raise _error(errno.EISDIR)
        node.links -= 1
        self._take(name, folder)

    def remove_folder(self, name: str, folder: int | None) -> None:
        node = self._find(name, folder)
        if node.names is None:
            raise _error(errno.ENOTDIR)
        if node.names:
            raise _error(errno.ENOTEMPTY)
        node.links = 0
        self._take(name, folder)

    def files(self) -> Iterator[tuple[str, Node]]:
        """All files, each with its name."""
        folders = [self._top]
        while folders:
            for name, node in (folders.pop().names or {}).items():
                if node.names is None:
                    yield name, node
                else:
                    folders.append(node)

    def _new(self, is_folder: bool) -> Node:
        return Node(next(self._numbers), is_folder, self.date())

    def _node(self, handle: int) -> Node:
        if handle not in self.handles:
            raise _error(errno.EBADF)
        return self.handles[handle]

    def _names(self, folder: int | str | None) -> dict[str, Node]:
        node = self._node(folder) if isinstance(folder, int) else self._find(folder or "/", None)
        if node.names is None:
            raise _error(errno.ENOTDIR)
        return node.names

    def _find(self, name: str, folder: int | None) -> Node:
        node = self._top if folder is None else self._node(folder)
        if name == ".":
            return node
        for part in name.strip("/").split("/") if "/" in name else (name,):
            if node.names is None:
                raise _error(errno.ENOTDIR)
            if part not in node.names:
                raise _error(errno.ENOENT)
            node = node.names[part]
        return node

    def _put(self, name: str, folder: int | None, node: Node) -> None:
        above = self._top if folder is None else self._node(folder)
        if above.names is None:
            raise _error(errno.ENOTDIR)
        if name in above.names:
            raise _error(errno.EEXIST)
        if not above.links:  # it was removed
            raise _error(errno.ENOENT)
        above.names[name] = node
        above.time = self.date()

    def _take(self, name: str, folder: int | None) -> None:
        above = self._top if folder is None else self._node(folder)
        assert above.names is not None
        del above.names[name]
        above.time = self.date()


def _state(node: Node) -> os.stat_result:
    is_folder = node.names is not None
    seconds = node.time // 10**9
    fields = (_FOLDER if is_folder else _FILE, node.number, 1, node.links, 0, 0, len(node.content), *[seconds] * 3)
    return os.stat_result(fields, {"st_mtime": node.time / 1e9, "st_mtime_ns": node.time})


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
