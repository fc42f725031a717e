"""The one way to the disk of a store: every read, write, sync, rename, link and removal goes through here.

A store may come from somebody else. So nothing below its root is reached through a link, only regular files are opened,
what is read has a limit, and what is written can be read by its owner alone. An error of the disk is one sentence with
the name of the file.

`disk` makes the calls of the operating system; tests put one in its place that fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar

from evaluand.core.errors import EngineError
from evaluand.core.system import BINARY, NO_LINKS, put_if_absent, read_at
from evaluand.store.folder import MAX_BYTES, Entry, Folder, State
from evaluand.store.temporary import temporary_name

T = TypeVar("T")

_BLOCK: Final = 1 << 20
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_READ: Final[int] = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | BINARY
_CREATE: Final[int] = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _NO_FOLLOW | BINARY
_FOLDER: Final[int] = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_HAS_FOLDER_HANDLES: Final = bool(_NO_FOLLOW) and all(
    getattr(os, name, None) in os.supports_dir_fd for name in ("open", "stat", "mkdir", "rename", "link", "unlink")
)
_CANNOT_SYNC: Final = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class Disk:
    """The calls of the operating system that a store makes."""

    def open(self, name: str, flags: int, folder: int | None) -> int:
        handle = os.open(name, flags, _FILE_MODE, dir_fd=folder)
        if flags & os.O_CREAT and hasattr(os, "fchmod"):  # code of the user may have changed the mask
            os.fchmod(handle, _FILE_MODE)
        return handle

    def read(self, handle: int, size: int, offset: int) -> bytes:
        return read_at(handle, size, offset)

    def write(self, handle: int, data: Any) -> int:
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        os.fsync(handle)

    def close(self, handle: int) -> None:
        os.close(handle)

    def state(self, name: str, folder: int | None) -> os.stat_result:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def state_of(self, handle: int) -> os.stat_result:
        return os.fstat(handle)

    def states(self, names: Iterable[str], folder: int | None) -> list[os.stat_result | OSError | None]:
        """The states of names, or of files in folders; None for those that do not exist."""
        found: list[os.stat_result | OSError | None] = []
        for name in names:
            try:
                found.append(os.stat(name, dir_fd=folder, follow_symlinks=False))
            except (FileNotFoundError, NotADirectoryError):
                found.append(None)
            except OSError as error:
                found.append(error)
        return found

    def entries(self, folder: int | str) -> list[Entry]:
        with os.scandir(folder) as entries:
            return [Entry(e.name, e.is_file(follow_symlinks=False), e.is_dir(follow_symlinks=False)) for e in entries]

    def sizes(self, folder: int | str) -> dict[str, int]:
        """The regular files of a folder with their sizes in bytes."""
        found = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    # Windows lists the size that a file had when it was last closed
                    state = os.lstat(entry.path) if isinstance(folder, str) else entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(state.st_mode):
                        found[entry.name] = state.st_size
        return found

    def make_folder(self, name: str, folder: int | None) -> None:
        os.mkdir(name, _FOLDER_MODE, dir_fd=folder)
        os.chmod(name, _FOLDER_MODE, dir_fd=folder)

    def make_folders(self, path: str) -> None:
        """Makes a folder and those above it that are missing; only it itself is closed to others."""
        os.makedirs(path, _FOLDER_MODE, exist_ok=True)

    def rename(self, name: str, new: str, folder: int | None) -> None:
        os.replace(name, new, src_dir_fd=folder, dst_dir_fd=folder)

    def link(self, name: str, new: str, folder: int | None) -> None:
        if folder is not None:
            os.link(name, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        else:
            os.link(name, new)

    def touch(self, name: str, folder: int | None) -> None:
        if folder is not None:
            os.utime(name, dir_fd=folder, follow_symlinks=False)
        else:
            os.utime(name)

    def remove(self, name: str, folder: int | None) -> None:
        os.unlink(name, dir_fd=folder)

    def remove_folder(self, name: str, folder: int | None) -> None:
        os.rmdir(name, dir_fd=folder)


disk = Disk()


def _close(handle: int) -> None:
    """Closes an open file; an error says nothing of it, since what must last was synced before."""
    with suppress(OSError):
        disk.close(handle)


class DiskFolder(Folder):
    """A folder of a store.

    A missing file raises `FileNotFoundError`, every other failure `EngineError`.

    Args:
        root: the store's root, which may be a link.
        names: the folders below it, none of which may be a link.
    """

    def __init__(self, root: str | os.PathLike[str], *names: str) -> None:
        self._root, self._names = os.fspath(root), names
        self._handle: int | None = None
        self._above: DiskFolder | None = None  # one that is held open, from which this one is reached in one step

    def __repr__(self) -> str:
        return f"DiskFolder({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The path of the folder."""
        return Path(self._root, *self._names)

    @property
    def place(self) -> str:
        """The path without links."""
        return os.path.realpath(self.path)

    def __truediv__(self, name: str) -> DiskFolder:
        below = DiskFolder(self._root, *self._names, name)
        if self._handle is not None:
            below._above = self
        return below

    def hold_open(self) -> None:
        """Opens the folder once for all that follows, until `close`: a folder that is used often.

        Raises:
            FileNotFoundError: it does not exist.
        """
        if _HAS_FOLDER_HANDLES and self._handle is None:
            self._handle = self._descend()

    def close(self) -> None:
        """Ends `hold_open`."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _close(handle)

    def exists(self) -> bool:
        """Whether the folder exists."""
        try:
            with self._opened():
                return True
        except FileNotFoundError:
            return False

    def blocked(self) -> str:
        """What is in the place of this folder, such as "a link"; an empty text if it is a folder or does not exist."""
        state = DiskFolder(self._root, *self._names[:-1]).state(self._names[-1])
        if state is None or (stat.S_ISDIR(state.st_mode) and not _is_junction(state)):
            return ""
        is_link = stat.S_ISLNK(state.st_mode) or stat.S_ISDIR(state.st_mode)
        return "a link" if is_link else "a file" if stat.S_ISREG(state.st_mode) else "a device"

    def entries(self) -> list[Entry]:
        """What is in the folder, sorted by name; nothing if it does not exist."""
        try:
            with self._opened() as folder, _Errors(self, "read"):
                return sorted(self._list(folder, disk.entries))
        except FileNotFoundError:
            return []

    def sizes(self) -> dict[str, int]:
        """Its regular files with their sizes in bytes; nothing if it does not exist."""
        try:
            with self._opened() as folder, _Errors(self, "read"):
                return self._list(folder, disk.sizes)
        except FileNotFoundError:
            return {}

    def state(self, name: str) -> os.stat_result | None:
        """The state of a name itself, which may be a link; None if it does not exist."""
        try:
            with self._opened() as folder, _Errors(self, "read", name):
                return disk.state(self._place(name, folder), folder)
        except FileNotFoundError:
            return None

    def states(self, names: Iterable[str], file: str = "") -> list[State]:
        """The states of names that `entries` lists; with `file`, those of a file in each of these folders.

        A name that cannot be examined costs only itself: it gets the error of the disk, which names its path.
        """
        names = [*names]
        places = [f"{name}/{file}" if file else name for name in names]
        try:
            with self._opened() as folder, _Errors(self, "read"):
                found = disk.states(places if folder is not None else [str(self.path / p) for p in places], folder)
        except FileNotFoundError:
            return [None] * len(places)
        return [
            disk_error(self.path / name, state, "read") if isinstance(state, OSError) else state
            for name, state in zip(names, found, strict=True)
        ]

    def has_file(self, name: str) -> bool:
        """Whether there is a regular file of this name."""
        state = self.state(name)
        return state is not None and stat.S_ISREG(state.st_mode)

    def read(self, name: str, most: int = MAX_BYTES) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: it does not exist.
            EngineError: it is not a regular file, is larger than `most` bytes, or cannot be read.
        """
        with closing(self.open_file(name)) as file:
            parts, size, expected = list[bytes](), 0, file.size
            while max(size, expected) <= most and (part := file.read(_BLOCK, size)):
                parts.append(part)
                size += len(part)
                if size == expected:  # saves the read that finds the end
                    break
        if max(size, expected) > most:
            raise EngineError(f"{self.path / name}: has more than {most:,} bytes, so evaluand did not write it")
        return b"".join(parts)

    def open_file(self, name: str) -> DiskFile:
        """A file to be read in parts.

        Raises:
            FileNotFoundError: it does not exist.
            EngineError: it is not a regular file, or cannot be opened.
        """
        with self._opened() as folder, _Errors(self, "read", name):
            place = self._place(name, folder)
            self._require_file(name, disk.state(place, folder))  # before it is opened: that may already do something
            handle = disk.open(place, _READ, folder)
            try:
                self._require_file(name, disk.state_of(handle))
            except BaseException:
                _close(handle)
                raise
            return DiskFile(self, name, handle)

    def new_file(self, label: str) -> DiskFile:
        """A file to be written, which has a temporary name until it is complete.

        Raises:
            FileNotFoundError: the folder does not exist.
        """
        return self.create(temporary_name(label))

    def create(self, name: str) -> DiskFile:
        """A new file to be appended to.

        Raises:
            FileNotFoundError: the folder does not exist.
            EngineError: a file of this name exists, or cannot be written.
        """
        with self._opened() as folder, _Errors(self, "written", name):
            return DiskFile(self, name, disk.open(self._place(name, folder), _CREATE, folder))

    def make(self) -> None:
        """Makes the folder, and those above it; their names survive a crash of the machine."""
        missing = []
        folder = self
        while not folder.exists():
            missing.append(folder)
            if not folder._names:
                break
            folder = DiskFolder(self._root, *folder._names[:-1])
        for folder in reversed(missing):
            folder.make_last()

    def make_last(self, *, durable: bool = True) -> None:
        """Makes the folder in the one above; the root with all those above it.

        Args:
            durable: whether its name must survive a crash of the machine.

        Raises:
            FileNotFoundError: the one above does not exist.
        """
        if not self._names:
            with _Errors(self, "written"):
                missing = [path for path in (self.path, *self.path.parents) if not _exists(path)]
                disk.make_folders(str(self.path))
            for path in missing:
                DiskFolder(path.parent).sync()
            return
        above = DiskFolder(self._root, *self._names[:-1])
        with above._opened() as folder, _Errors(self, "written"), suppress(FileExistsError):
            disk.make_folder(above._place(self._names[-1], folder), folder)
        if durable:
            above.sync()

    def sync(self) -> None:
        """Makes the names in the folder survive a crash of the machine, where a folder can be synced."""
        with self._opened() as handle, _Errors(self, "written"):
            if handle is None:  # Windows opens no folders
                return
            try:
                disk.sync(handle)
            except OSError as error:
                if error.errno not in _CANNOT_SYNC:
                    raise

    def put(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Writes a file in one step, in the place of an earlier one.

        Args:
            durable: whether it must survive a crash of the machine.
        """
        file = self.new_file(name)
        try:
            file.write(data)
            file.finish(name, durable=durable)
        except BaseException:
            file.discard()
            raise
        if durable:
            self.sync()

    def put_if_absent(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        """Writes a file in one step unless one of this name exists.

        Returns:
            Whether it was written.
        """
        file = self.new_file(name)
        try:
            file.write(data)
            file.end(durable=durable)
            placed = self._link(file.name, name)
        finally:
            file.discard()
        if placed and durable:
            self.sync()
        return placed

    def rename(self, name: str, new: str) -> None:
        """Renames a file or folder, in the place of an earlier file."""
        with self._opened() as folder, _Errors(self, "written", new):
            disk.rename(self._place(name, folder), self._place(new, folder), folder)

    def hide(self, name: str, hidden: str) -> str:
        """Renames a folder that is to be removed; returns its name from then on."""
        self.rename(name, hidden)
        return hidden

    def touch(self, name: str) -> None:
        """Sets the time of a file to now; does nothing if it does not exist."""
        with suppress(FileNotFoundError), self._opened() as folder, _Errors(self, "written", name):
            disk.touch(self._place(name, folder), folder)

    def remove(self, name: str) -> None:
        """Removes a file or a link; does nothing if it does not exist."""
        with suppress(FileNotFoundError), self._opened() as folder, _Errors(self, "removed", name):
            disk.remove(self._place(name, folder), folder)

    def remove_folder(self, name: str) -> bool:
        """Removes an empty folder.

        Returns:
            Whether it no longer exists; one that is not empty stays.
        """
        with suppress(FileNotFoundError), self._opened() as folder, _Errors(self, "removed", name):
            try:
                disk.remove_folder(self._place(name, folder), folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return False
        return True

    def _link(self, name: str, new: str) -> bool:
        with self._opened() as folder, _Errors(self, "written", new):
            try:
                disk.link(self._place(name, folder), self._place(new, folder), folder)
            except FileExistsError:
                return False
            except (OSError, AttributeError, NotImplementedError) as error:  # a Python without os.link
                if isinstance(error, OSError) and error.errno not in NO_LINKS:
                    raise
                return put_if_absent(self.path / name, self.path / new)
        return True

    def _require_file(self, name: str, state: os.stat_result) -> None:
        if not stat.S_ISREG(state.st_mode):
            raise EngineError(
                f"{self.path / name}: is not a regular file; evaluand opens no links, pipes and devices of a store"
            )

    def _list(self, folder: int | None, listing: Callable[[int | str], T]) -> T:
        if folder is None:
            return listing(str(self.path))
        if folder != self._handle:
            return listing(folder)
        fresh = disk.open(".", _FOLDER, folder)  # listing moves the place in a handle, which threads and forks share
        try:
            return listing(fresh)
        finally:
            _close(fresh)

    def _place(self, name: str, folder: int | None) -> str:
        if name in ("", ".", "..") or "/" in name or "\0" in name or (os.name == "nt" and not _is_name(name)):
            raise EngineError(f"{self.path}: {name!r} is not the name of a file in this folder; the store is damaged")
        return name if folder is not None else str(self.path / name)

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        """A handle of the folder, reached without following links; None where folders have no handles.

        Raises:
            FileNotFoundError: it does not exist.
            EngineError: one of the folders on the way is not a folder.
        """
        if not _HAS_FOLDER_HANDLES:
            self._check_folders()
            yield None
            return
        if self._handle is not None:
            yield self._handle
            return
        handle = self._descend()
        try:
            yield handle
        finally:
            _close(handle)

    def _descend(self) -> int:
        with _Errors(self, "read"):
            start = None if self._above is None else self._above._handle
            names = self._names if start is None else self._names[-1:]
            handle = disk.open(self._root, _FOLDER, None) if start is None else start
            for name in names:
                above = handle
                try:
                    handle = disk.open(self._place(name, above), _FOLDER | _NO_FOLLOW, above)
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.ENOTDIR):
                        reason = f"{name} is not a folder; evaluand follows no links; remove it"
                        raise EngineError(f"{self.path}: {reason}") from None
                    raise
                finally:
                    if above != start:
                        _close(above)
            return handle

    def _check_folders(self) -> None:
        with _Errors(self, "read"):
            for depth in range(len(self._names) + 1):
                path = os.path.join(self._root, *self._names[:depth])
                state = disk.state(path, None) if depth else os.stat(path)
                if not stat.S_ISDIR(state.st_mode) or (depth and _is_junction(state)):
                    advice = "; evaluand follows no links; remove it" if depth else ""
                    raise EngineError(f"{self.path}: {path} is not a folder{advice}")


class DiskFile:
    """A file that is open: for reading, or a new one, which nobody else writes.

    Attributes:
        name: its name in the folder, perhaps a temporary one.
        handle: that of the operating system.
    """

    def __init__(self, folder: DiskFolder, name: str, handle: int) -> None:
        self._folder, self.name, self.handle = folder, name, handle
        self._is_open = True

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._state().st_size

    @property
    def version(self) -> tuple[int, ...]:
        """Device, inode, size and time."""
        state = self._state()
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns

    def _state(self) -> os.stat_result:
        with _Errors(self._folder, "read", self.name):
            return disk.state_of(self.handle)

    def has_no_name(self) -> bool:
        """Whether the system counts no name for it; some network drives never count one."""
        try:
            return disk.state_of(self.handle).st_nlink == 0
        except OSError:  # another thread has closed it
            return False

    def read(self, size: int, offset: int) -> bytes:
        with _Errors(self._folder, "read", self.name):
            return disk.read(self.handle, size, offset)

    def write(self, data: bytes) -> None:
        """Appends bytes, by one write.

        Raises:
            EngineError: the disk did not take all of it; the file may end in a part of it.
        """
        try:  # without a context of errors: a run writes at every turn
            written = disk.write(self.handle, data)
        except OSError as error:
            raise disk_error(self._folder.path / self.name, error, "written") from error
        if written != len(data):
            problem = f"the disk took {written} of {len(data)} bytes"
            raise disk_error(self._folder.path / self.name, problem, "written")

    def sync(self) -> None:
        """Makes its content survive a crash of the machine."""
        with _Errors(self._folder, "written", self.name):
            disk.sync(self.handle)

    def end(self, *, durable: bool = True) -> None:
        """Closes it after the last byte."""
        if durable:
            self.sync()
        self.close()

    def finish(self, name: str, *, durable: bool = True) -> None:
        """Gives it its name."""
        self.end(durable=durable)
        self._folder.rename(self.name, name)

    def discard(self) -> None:
        """Removes it; a file that cannot be removed costs nothing but its place, until `evaluand gc`."""
        self.close()
        with suppress(EngineError):
            self._folder.remove(self.name)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            _close(self.handle)


def disk_error(path: PurePath, error: OSError | str, what: str) -> EngineError:
    """The error of a disk that is full, broken or read-only, or whose files may not be read."""
    reason = error if isinstance(error, str) else error.strerror or str(error)
    number = None if isinstance(error, str) else error.errno
    return EngineError(f"{path}: cannot be {what}: {reason}; {_advise(number, what)}")


def _advise(number: int | None, what: str) -> str:
    """What to do about an error of the operating system; None is the number of a write that was cut short."""
    if what == "read":
        return "check the permissions and the disk"
    if number in _NOT_PERMITTED:
        return "use a store that you may write"
    if what == "written" and number in _FULL:
        return "free space, then run the same command again"
    return "repair the disk, then run the same command again"


_NOT_PERMITTED: Final = {errno.EROFS, errno.EACCES, errno.EPERM}
_FULL: Final = {None, errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class _Errors:
    """Turns errors of the operating system into one sentence, except that a file does not exist."""

    def __init__(self, folder: DiskFolder, what: str, name: str = "") -> None:
        self._folder, self._what, self._name = folder, what, name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise disk_error(self._folder.path / self._name, error, self._what) from error


def _is_name(name: str) -> bool:
    """Whether Windows takes a text for the name of a file: without folders, drives and streams."""
    return name == os.path.basename(name) and ":" not in name


def _exists(path: Path) -> bool:
    try:
        disk.state(str(path), None)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_junction(state: os.stat_result) -> bool:
    """Whether a folder of Windows leads elsewhere; `os.path.isjunction` exists from Python 3.12 on."""
    return getattr(state, "st_reparse_tag", 0) == _MOUNT_POINT


_MOUNT_POINT: Final = 0xA0000003
"""`stat.IO_REPARSE_TAG_MOUNT_POINT`, which only Windows has."""
