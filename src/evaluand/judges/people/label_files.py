"""Files to which the answers of a person are appended, line by line, while they work.

Each line is written at once and whole, at the end of the file. So several programs may append to one file, and a
program that is killed loses at most the line that it was writing.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import orjson
from pydantic_core import from_json

from evaluand.core.errors import DataError, Fault, SpecError

T = TypeVar("T", covariant=True)


class Read(Protocol[T]):
    """Reads filled-in files; raises a DataError that names the line of each fault."""

    def __call__(self, files: Sequence[Path], /) -> T: ...


def name_file(kind: str, by: str) -> Path:
    """The file in the current folder to which the answers of a person are appended.

    Args:
        kind: `pairs` or `labels`.

    Example:
        >>> str(name_file("pairs", "ann"))
        'pairs-ann.jsonl'
    """
    return Path(f"{kind}-{by.replace(os.sep, '-')}.jsonl")


def read_to_append(path: Path, columns: Sequence[str], read: Read[T]) -> T:
    """What is in a file of JSON lines, whose last line is completed so that more can be appended.

    A missing line break is added. A last line that a killed process left incomplete is removed; anything else that is
    no answer is an error, and the file remains as it is.

    Args:
        columns: of a row to fill in, in their order.

    Raises:
        DataError: the file has rows that are no answers.
        SpecError: the file is CSV.
    """
    if path.suffix.lower() == ".csv":
        raise SpecError(f"{path}: answers are appended as JSON lines; give a file that ends in .jsonl")
    content = b""
    if os.path.lexists(path):
        with open_file(path, "rb") as file:
            content = file.readall()
    last = content[content.rfind(b"\n") + 1 :]
    try:
        found = read([path] if content else [])
    except DataError as error:
        is_last = [fault.where for fault in error.faults] == [f"{path}:{len(content.splitlines())}"]
        if not is_last or not _is_cut_off(last, columns):
            raise
        with open_file(path, "r+b") as file:
            file.truncate(len(content) - len(last))
        return read([path])
    if last:
        with open_file(path, "ab") as file:
            file.write(b"\n")
    return found


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Appends a row as a line, which is on the disk when this returns."""
    line = orjson.dumps(row) + b"\n"
    with open_file(path, "ab") as file:
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(file.fileno())


def open_file(path: Path, mode: str) -> FileIO:
    """Opens a file that people append to, without a buffer; it is created if need be, unless it is only read.

    Whoever may write into its folder must not lead evaluand to another file, or make it wait for a pipe.

    Raises:
        DataError: it is a link or no regular file, or cannot be opened.
    """

    def open_directly(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)

    try:
        file = FileIO(str(path), mode.replace("b", ""), opener=open_directly)
    except OSError as error:
        is_other = error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR)
        raise DataError(Fault(str(path), _NO_FILE if is_other else str(error.strerror))) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DataError(Fault(str(path), _NO_FILE))
    return file


_NO_FILE: Final = "is a link or no regular file, so that it is neither read nor written"


def _is_cut_off(line: bytes, columns: Sequence[str]) -> bool:
    """Whether a line is the beginning of a row to fill in, as a killed process leaves it."""
    try:
        row = from_json(codecs.getincrementaldecoder("utf-8")().decode(line), allow_partial="trailing-strings")
    except ValueError:
        return False
    return isinstance(row, dict) and [*row] == [*columns[: len(row)]]
