"""Reads what somebody else may have prepared in the place of a file: pipes, devices, links and huge files."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from typing import IO, Final

from evaluand.core.system import BINARY

_READ: Final[int] = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | BINARY
_WRITE: Final[int] = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | BINARY
_PATIENCE: Final = 5.0  # seconds
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)


def read_regular_file(path: str | os.PathLike[str], most: int, *, follow_link: bool = False) -> bytes:
    """The content of a regular file of at most `most` bytes; never waits for a pipe or a device.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it is something else, too large, or cannot be read.

    Example:
        >>> read_regular_file("/dev/zero", most=10)
        Traceback (most recent call last):
        OSError: [Errno 22] is not a regular file: '/dev/zero'
    """
    name = os.fspath(path)
    state = os.stat(name) if follow_link else os.lstat(name)
    if not stat.S_ISREG(state.st_mode):  # opening a device may do something
        raise OSError(errno.EINVAL, "is not a regular file", name)
    handle = os.open(name, _READ | (0 if follow_link else _NO_FOLLOW))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", name)
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most:,} bytes", name)
    return content


def open_unusual(path: str | os.PathLike[str]) -> IO[bytes]:
    """Opens a device or pipe, to write to it.

    Raises:
        OSError: it cannot be opened, or nothing reads from the pipe after some seconds.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            handle = os.open(path, _WRITE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise OSError(errno.ENXIO, "is a pipe from which nothing reads", os.fspath(path)) from None
            time.sleep(0.01)
        else:
            os.set_blocking(handle, True)
            return os.fdopen(handle, "wb")


def copy_pipe(path: str, target: IO[bytes]) -> None:
    """Copies what comes out of a pipe, such as that of a process substitution, into a file.

    Raises:
        OSError: it is something else, or nothing has written to it after some seconds.
    """
    if not stat.S_ISFIFO(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "is neither a file nor a pipe", path)
    with open(os.open(path, _READ), "rb", buffering=0) as pipe:
        end = time.monotonic() + _PATIENCE
        while (block := pipe.read(1 << 16)) == b"":  # None where a program has it open, and has not written yet
            if time.monotonic() > end:
                raise OSError(errno.EPIPE, "is a pipe to which nothing is written", path)
            time.sleep(0.01)
        target.write(block or b"")
        os.set_blocking(pipe.fileno(), True)
        shutil.copyfileobj(pipe, target)
