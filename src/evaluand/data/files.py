"""The files behind a path: one file, a folder or a glob, compressed or not, or standard input.

Compressed files and standard input are written to a temporary file, block by block, because every format is read
twice. What a compressed file expands to is bounded.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import unquote

from evaluand.core.errors import DataError
from evaluand.core.files.regular import copy_pipe

STDIN: Final = "-"
MAX_BYTES: Final = 64 << 20
"""A file may expand to so many bytes, whatever its own size."""
MAX_EXPANSION: Final = 100
"""Beyond `MAX_BYTES`, a file may expand to so many times its own size; texts hardly ever exceed 50."""
MAX_LINES: Final = 1 << 20
"""A file may expand to so many lines, whatever its own size."""
LINES_PER_BYTE: Final = 4
"""Beyond `MAX_LINES`, a file may expand to so many lines per byte; a column of random 0 and 1 alone has 4."""

_MAGIC: Final = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),  # its level, and a block or the end
}
_SUFFIXES: Final = (".gz", ".gzip", ".zst", ".zstd", ".xz", ".bz2")
ARCHIVES: Final = ("zip", "tar", "tgz", "7z", "rar")
"""The suffixes of archives, which hold several files."""
_BLOCK: Final = 1 << 20
_MOST_PATHS: Final = 100_000
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SourceFile:
    """A file with rows.

    Attributes:
        path: where its bytes are read: the file itself, or a temporary file with its content.
        name: its name in messages.
        origin: the file that must not change while it is read; None for standard input.
        partition: column → text, from the names of its folders such as `year=2026`.
        spool: the temporary file, which lives as long as this object.
        kind: its format, if something else than its name says so.
    """

    path: Path
    name: str
    origin: Path | None
    partition: tuple[tuple[str, str | None], ...] = ()
    spool: Any = None
    kind: str | None = None

    @classmethod
    def open(cls, path: Path, partition: tuple[tuple[str, str | None], ...] = ()) -> SourceFile:
        """A file, decompressed where its first bytes say that it is compressed."""
        codec = read_codec(path)
        spool = None if codec is None else Spool.decompress(path, codec)
        own = Path(os.path.abspath(path))  # code of the user may change the current folder
        return cls(own if spool is None else spool.path, str(path), own, partition, spool)

    @classmethod
    def of_pipe(cls, path: str | None = None) -> SourceFile:
        """What a pipe holds, as a file; by default what standard input does.

        Raises:
            DataError: it is a device, a socket or a terminal, or nothing writes to it.
        """
        spool = Spool.read_stdin() if path is None else Spool()
        if path is not None:
            try:
                with spool.path.open("wb") as target:
                    copy_pipe(path, target)
            except OSError as error:
                raise DataError(f"{path}: {error.strerror}") from None
        codec = read_codec(spool.path)
        spool = spool if codec is None else Spool.decompress(spool.path, codec)
        return cls(spool.path, path or "<stdin>", None, (), spool)


class Spool:
    """A temporary file, removed when this object is collected or the process ends."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="evaluand-")
        self.path = Path(folder, "rows")
        weakref.finalize(self, _remove, folder, os.getpid())

    @classmethod
    def decompress(cls, path: Path, codec: str) -> Spool:
        """The content of a compressed file.

        Raises:
            DataError: the file is damaged, or expands to more bytes or lines than data do.
        """
        spool, size, lines = cls(), path.stat().st_size, 0
        try:
            with _open_codec(path, codec) as source, spool.path.open("wb") as target:
                while block := source.read(_BLOCK):
                    target.write(block)
                    lines += max(block.count(b"\n"), block.count(b"\r"))
                    if target.tell() > max(MAX_BYTES, MAX_EXPANSION * size):
                        raise _expands(path, f"{MAX_EXPANSION} times its size, and {MAX_BYTES >> 20} MB")
                    if lines > max(MAX_LINES, LINES_PER_BYTE * size):
                        raise _expands(path, f"{LINES_PER_BYTE} lines per byte, and {MAX_LINES:,} lines")
        except Exception as error:  # codecs raise errors of different classes
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: cannot be decompressed: {error}") from None
        return spool

    @classmethod
    def read_stdin(cls) -> Spool:
        """What standard input holds.

        Raises:
            DataError: it is a terminal.
        """
        if sys.stdin is None or sys.stdin.isatty():
            raise DataError("- reads standard input, which is a terminal; pipe a file into the command")
        if sys.stdin not in _stdin:
            _stdin[sys.stdin] = spool = cls()
            with spool.path.open("wb") as target:
                shutil.copyfileobj(sys.stdin.buffer, target, _BLOCK)
        return _stdin[sys.stdin]


def _expands(path: Path, beyond: str) -> DataError:
    return DataError(f"{path}: expands to more than {beyond}; decompress it yourself if you trust it")


_stdin: weakref.WeakKeyDictionary[IO[str], Spool] = weakref.WeakKeyDictionary()  # it can be read only once


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked process shares the file
        shutil.rmtree(folder, ignore_errors=True)


def read_codec(path: Path) -> str | None:
    """The compression of a file by its first bytes."""
    with path.open("rb") as file:
        head = file.read(10)
    return next((codec for codec, magic in _MAGIC.items() if magic.match(head)), None)


def _open_codec(path: Path, codec: str) -> Any:
    if codec == "zstd":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.OSFile(str(path)), codec)
    return import_module({"gzip": "gzip", "xz": "lzma", "bzip2": "bz2"}[codec]).open(path)


def kind_of_name(path: Path) -> str:
    """The suffix that names a file's format, without that of its compression.

    Example:
        >>> kind_of_name(Path("rows.CSV.gz")), kind_of_name(Path("rows"))
        ('csv', '')
    """
    name = path.with_suffix("") if path.suffix.lower() in _SUFFIXES else path
    return name.suffix.lstrip(".").lower()


def kind_of_content(path: Path) -> str:
    """The format of a file by its first bytes; CSV if nothing else fits."""
    with path.open("rb") as file:
        head = file.read(4096)
    for magic, kind in ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow"), (b"PK", "xlsx")):
        if head.startswith(magic):
            return kind
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return {b"{": "jsonl", b"[": "json"}.get(text[:1], "csv")


def is_glob(path: str) -> bool:
    return glob.has_magic(path) and not os.path.exists(path)


def list_files(path: str) -> list[tuple[Path, tuple[tuple[str, str | None], ...]]]:
    """The files of a folder or a glob, sorted by path, each with the columns that its folders name.

    Files and folders whose names begin with a dot or an underscore are left out, as Spark and Dask do.
    """
    if is_glob(path):
        parts = Path(path).parts
        root = Path(*parts[: next(i for i, part in enumerate(parts) if glob.has_magic(part))])
        found = _few(path, map(Path, glob.iglob(path, recursive=True)))
        files = [file for file in found if file.is_file() and not _is_hidden(file.relative_to(root).parent)]
    else:
        root = Path(path)
        found = _few(path, root.rglob("*"))
        files = [file for file in found if file.is_file() and not _is_hidden(file.relative_to(root))]
    return [(file, _partition(file.relative_to(root))) for file in sorted(files)]


def _few(path: str, found: Iterable[Path]) -> list[Path]:
    """The paths below a folder or of a pattern.

    Raises:
        DataError: they are more than a dataset has.
    """
    if len(few := list(islice(found, _MOST_PATHS))) == _MOST_PATHS:
        raise DataError(f"{path}: {_MOST_PATHS:,} or more files and folders; name a folder or pattern with fewer")
    return few


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _partition(path: Path) -> tuple[tuple[str, str | None], ...]:
    pairs = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return tuple((unquote(name), None if value == _NULL_PARTITION else unquote(value)) for name, _, value in pairs)


def file_states(files: Sequence[SourceFile]) -> list[tuple[int, int, int] | None]:
    """What changes when one of the files changes."""
    states: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            stat = None if file.origin is None else file.origin.stat()
        except OSError:
            stat = None
        states.append(None if stat is None else (stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return states
