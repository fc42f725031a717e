"""The digests of tables' files, which are validated when a process first reads a file."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from typing import Any, Final

from evaluand.core.errors import EngineError, Fault
from evaluand.core.identity import DIGEST_SIZE
from evaluand.store.folder import Folder, OpenFile, blocks
from evaluand.store.manifests import DamagedFile, as_fault

_MISSING: Final = "cannot be read: the file is missing"
_MOST_REMEMBERED: Final = 100_000
_valid: Final[dict[tuple[int, ...], str]] = {}  # the digests of files that this process has read, by their versions


def open_table(folder: Folder, entry: Mapping[str, Any], *, again: bool = False) -> OpenFile:
    """A table's file, whose content has the digest that the manifest says.

    Args:
        again: whether to read the file even if this process has validated it before.

    Raises:
        EngineError: the file is missing, is not a regular file, has changed or cannot be read.
    """
    path = folder.path / entry["file"]
    try:
        file = folder.open_file(entry["file"])
    except FileNotFoundError:
        raise DamagedFile(str(path), _MISSING) from None
    try:
        if again or _valid.get(file.version) != entry["digest"]:
            _validate(file, entry, str(path))
    except BaseException:
        file.close()
        raise
    return file


def resized_tables(folder: Folder, tables: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """The faults of the files of tables by their sizes alone; none is read."""
    faults = []
    files = [entry["file"] for entry in tables.values()]
    for entry, state in zip(tables.values(), folder.states(files), strict=True):
        path = folder.path / entry["file"]
        if isinstance(state, EngineError):
            faults.append(as_fault(path, state))
        elif state is None:
            faults.append(Fault(str(path), _MISSING))
        elif not stat.S_ISREG(state.st_mode) or state.st_size != entry["bytes"]:
            faults.append(
                Fault(str(path), f"cannot be read: the file has changed, it no longer has {entry['bytes']:,} bytes")
            )
    return faults


def damaged_tables(folder: Folder, tables: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """The faults of the files of tables, all of which are read."""
    faults = []
    for entry in tables.values():
        try:
            open_table(folder, entry, again=True).close()
        except EngineError as error:
            faults.append(as_fault(folder.path / entry["file"], error))
    return faults


def _validate(file: OpenFile, entry: Mapping[str, Any], path: str) -> None:
    state = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for block in blocks(file) if file.size == entry["bytes"] else ():
        state.update(block)
    if file.size != entry["bytes"] or state.hexdigest() != entry["digest"]:
        raise DamagedFile(path, "cannot be read: the file has changed, its digest differs")
    if len(_valid) >= _MOST_REMEMBERED:
        _valid.clear()
    _valid[file.version] = entry["digest"]
