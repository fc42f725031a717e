"""Paths that a document names, which must stay inside its folder, and files that are replaced as a whole."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Final

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.regular import open_unusual


def is_inside(path: str) -> bool:
    """Whether a relative path stays within its folder on every operating system.

    Example:
        >>> [is_inside(path) for path in ("tables/a.csv", "../a.csv", "/etc/passwd", "media/", "")]
        [True, False, False, True, False]
    """
    if not path or "\\" in path or "\0" in path or ":" in path.partition("/")[0]:
        return False
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts


def outside_message(path: str) -> str:
    """The message of a path that leaves its folder."""
    return f"{path!r} is not inside the folder; give a path such as 'tables/learningData.csv'"


def is_within(path: Path, root: Path) -> bool:
    """Whether a path is inside a folder after all links are resolved; false for text that no path can be."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except ValueError:
        return False


def require_within(path: Path, root: Path) -> Path:
    """The path.

    Raises:
        DataError: a link or `..` leads out of the folder `root`.
    """
    if not is_within(path, root):
        raise DataError(Fault(str(path), f"leads out of {root}; move its target into the folder", code="unsafe_path"))
    return path


def relative_name(path: Path, root: Path) -> str:
    """A path as messages show it: relative to the folder if it is inside."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


@contextmanager
def replaced(path: Path, *, parents: bool = False) -> Iterator[IO[bytes]]:
    """Opens a temporary file that takes the place of `path` when it was written without an error.

    A device or pipe is written to directly; a pipe from which nothing reads is an error.

    Args:
        parents: whether to make the folders that are missing.

    Raises:
        OSError: the file cannot be written; its `filename` is `path`.
    """
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        with _naming(path, path), open_unusual(path) as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    if parents:
        place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name[:100]}-{os.urandom(4).hex()}.tmp")
    try:
        with _naming(path, temporary):
            with temporary.open("xb") as file:
                yield file
            os.replace(temporary, place)
    finally:
        with suppress(OSError):  # of a folder that is read-only
            temporary.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path, written: Path) -> Iterator[None]:
    """Errors of writing a file name the path that the caller knows; a full disk names none."""
    try:
        yield
    except OSError as error:
        is_written = error.filename is not None and os.fspath(error.filename) == str(written)
        if is_written or (error.filename is None and error.errno in FULL):
            error.filename = str(path)
        raise


FULL: Final = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""Numbers of errors of a disk, quota or file that is full."""
