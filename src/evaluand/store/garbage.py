"""What a folder keeps that nobody needs: found, weighed and removed.

Nothing is taken that somebody may be working on: a file of a living process, an artifact with a living lease, anything
changed within the hour (processes of other machines and containers cannot be seen). Symbolic links are neither followed
nor removed, and nothing outside the folders of kinds, refs and removals is looked at.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaluand.core.provenance import origins
from evaluand.store.directory import ID, DirectoryStore, being_written
from evaluand.store.log import SqliteLeases
from evaluand.store.store import KINDS

QUIET_SECONDS = 3600.0

Key = tuple[str, str]
_GONE = ".gone-"  # what is being removed; begins so that no reader takes it for an artifact


@dataclass(frozen=True)
class Leftover:
    """Something that can go.

    Attributes:
        path: the file or folder.
        size: of its files, in bytes.
        why: what it is.
        artifact: the (kind, id), where it is a whole artifact.
        idle: seconds for which nothing in it may have changed when it is removed.
    """

    path: Path
    size: int
    why: str
    artifact: Key | None = None
    idle: float = QUIET_SECONDS


def leftovers(
    store: DirectoryStore, *, open_older_than: float | None = None, unreferenced: bool = False
) -> list[Leftover]:
    """What can go.

    Args:
        store: where.
        open_older_than: also open artifacts that nobody has worked on for so many seconds.
        unreferenced: also sealed artifacts that no name reaches, directly or through what was made from them.

    Raises:
        EngineError: a manifest cannot be read, so that nobody knows what it reaches.
    """
    keys = [(kind, id) for kind in KINDS for id in _folders(store.root / kind)]
    found = [*_temporary(store.root), *_temporary(store.root / "refs")]
    abandoned = [] if open_older_than is None else [*_abandoned(store, keys, open_older_than)]
    lost = {item.artifact for item in abandoned}
    for key in keys:
        if key not in lost:
            found += _within(store, key)
    found += abandoned
    if unreferenced:
        found += _unreferenced(store, [key for key in keys if key not in lost])
    return found


def remove(store: DirectoryStore, items: Iterable[Leftover]) -> list[Leftover]:
    """Removes what still can go; names of what is gone go with it.

    Returns:
        What was removed.
    """
    removed = [item for item in items if _remove(store, item)]
    gone = {item.artifact for item in removed if item.artifact}
    if gone:
        for ref, path in store.ref_files():
            if (ref.kind, ref.id) in gone:
                path.unlink(missing_ok=True)
        store.catalog.entries()  # brings it up to date
    return removed


def _remove(store: DirectoryStore, item: Leftover) -> bool:
    if _idle(item.path) < item.idle or (item.artifact and _is_worked_on(item.path)):
        return False  # meanwhile somebody took it up
    try:
        if stat.S_ISDIR(item.path.lstat().st_mode):
            # First out of everybody's sight: half an artifact must never be seen.
            gone = store.root / f"{_GONE}{secrets.token_hex(8)}"
            os.rename(item.path, gone)
            shutil.rmtree(gone)
        else:
            item.path.unlink()
    except FileNotFoundError:
        return False
    return True


def _temporary(folder: Path) -> Iterator[Leftover]:
    """Files of dead processes, and what a removal that was stopped has left."""
    for entry in _entries(folder):
        path = Path(entry.path)
        if entry.is_file(follow_symlinks=False):
            if path.suffix == ".tmp" and not being_written(path) and _idle(path) >= QUIET_SECONDS:
                yield Leftover(path, _size(path), "a file that was being written by a process that is dead")
        elif entry.is_dir(follow_symlinks=False) and entry.name.startswith(_GONE):
            yield Leftover(path, _size(path), "the rest of a removal", idle=0)


def _within(store: DirectoryStore, key: Key) -> Iterator[Leftover]:
    """What an artifact's folder holds beyond the artifact."""
    folder = store.root / key[0] / key[1]
    if not store.is_sealed(*key):
        if (folder / "open.json").is_file():
            yield from _temporary(folder)
        elif _idle(folder) >= QUIET_SECONDS and not any(being_written(p) for p in folder.glob("*.tmp")):
            yield Leftover(folder, _size(folder), f"{key[0]}: a draft that was never ended", key)
        return
    kept = {"manifest.json", *(entry["file"] for entry in store.manifest(*key)["tables"].values())}
    for entry in _entries(folder):
        path = Path(entry.path)
        if entry.name in kept or entry.is_symlink() or being_written(path):
            continue
        if _idle(path) >= QUIET_SECONDS:
            yield Leftover(path, _size(path), "left from before the artifact was whole")


def _abandoned(store: DirectoryStore, keys: Iterable[Key], age: float) -> Iterator[Leftover]:
    for kind, id in keys:
        folder = store.root / kind / id
        if store.is_sealed(kind, id) or not (folder / "open.json").is_file():
            continue
        if _idle(folder) >= age and not _is_worked_on(folder):
            yield Leftover(folder, _size(folder), f"{kind[:-1]} {id}: open, nobody works on it", (kind, id), age)


def _unreferenced(store: DirectoryStore, keys: Iterable[Key]) -> Iterator[Leftover]:
    there = set(keys)
    sealed = {key for key in there if store.is_sealed(*key)}
    reached: set[Key] = set()
    waiting = [(ref.kind, ref.id) for ref in store.refs()] + [
        key for key in there - sealed if (store.root / key[0] / key[1] / "open.json").is_file()
    ]
    while waiting:
        key = waiting.pop()
        if key in there and key not in reached:
            reached.add(key)
            waiting += origins(store.manifest(*key))
    for kind, id in sorted(sealed - reached):
        folder = store.root / kind / id
        if _idle(folder) >= QUIET_SECONDS:
            yield Leftover(folder, _size(folder), f"{kind[:-1]} {id}: no name reaches it", (kind, id))


def _is_worked_on(folder: Path) -> bool:
    """Whether a living process holds a lease on part of an open artifact."""
    for entry in _entries(folder / "journal"):
        path = Path(entry.path) / "leases.db"
        if entry.is_dir(follow_symlinks=False) and path.is_file() and not path.is_symlink():
            leases = SqliteLeases(path)
            try:
                if leases.busy():
                    return True
            finally:
                leases.release()
    return False


def _folders(folder: Path) -> list[str]:
    return sorted(e.name for e in _entries(folder) if ID.fullmatch(e.name) and e.is_dir(follow_symlinks=False))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    if folder.is_symlink():
        return []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def _idle(path: Path) -> float:
    """Seconds since anything changed in a file or folder; none for what is gone."""
    times = [entry.st_mtime for name, entry in _stats(path) if not name.startswith("leases.db")]
    return time.time() - max(times) if times else 0.0


def _size(path: Path) -> int:
    return sum(entry.st_size for _, entry in _stats(path) if stat.S_ISREG(entry.st_mode))


def _stats(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The name and state of a file, or of a folder and all it holds, links as such."""
    with suppress(FileNotFoundError):
        state = path.lstat()
        yield path.name, state
        if stat.S_ISDIR(state.st_mode):
            for entry in _entries(path):
                yield from _stats(Path(entry.path))
