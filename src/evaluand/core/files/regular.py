"""Reads small files that somebody else may have prepared: pipes, devices, links and huge files."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from evaluand.core.system import BINARY

_READ: Final[int] = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | BINARY
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
