"""Garbage: files and artifacts that are no longer needed, found and removed.

Nothing that may be in use is removed: a file of a living process, an artifact with a living lease, anything changed
within the hour (processes of other machines and containers are invisible). Symbolic links are neither followed nor
removed, and only the folders of kinds, refs and removals are read.
"""

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaluand.core.errors import singular
from evaluand.core.provenance import origins
from evaluand.store.directory import ID, DirectoryStore, is_being_written
from evaluand.store.io import Folder
from evaluand.store.leases import is_worked_on
from evaluand.store.store import KINDS

QUIET_SECONDS = 3600.0

Key = tuple[str, str]
_REMOVED = ".gone-"  # folders being removed; no reader takes a name with this prefix for an artifact


@dataclass(frozen=True)
class Leftover:
    """Something that can be removed.

    Attributes:
        size: the size of its files in bytes.
        why: what it is, and why it is not needed.
        artifact: the (kind, id), if it is a whole artifact.
        idle: seconds without a change before it may be removed.
    """

    path: Path
    size: int
    why: str
    artifact: Key | None = None
    idle: float = QUIET_SECONDS


def leftovers(
    store: DirectoryStore, *, open_older_than: float | None = None, unreferenced: bool = False
) -> list[Leftover]:
    """Everything that can be removed.

    Args:
        open_older_than: also open artifacts that nobody has worked on for so many seconds.
        unreferenced: also sealed artifacts that no name reaches, directly or through an artifact made from them.

    Raises:
        EngineError: a manifest cannot be read, so it is unknown what it reaches.
    """
    keys = [(kind, id) for kind in KINDS for id in _folders(store.root / kind)]
    found = [*_temporary(store.root), *_temporary(store.root / "refs")]
    abandoned = [] if open_older_than is None else [*_abandoned(store, keys, open_older_than)]
    lost = {item.artifact for item in abandoned}
    for key in keys:
        if key not in lost:
            found += _extra_files(store, key)
    found += abandoned
    if unreferenced:
        found += _unreferenced(store, [key for key in keys if key not in lost])
    return found


def remove(store: DirectoryStore, items: Iterable[Leftover]) -> list[Leftover]:
    """Removes items that are still unused, with the names of removed artifacts.

    Returns:
        The removed items.
    """
    removed = [item for item in items if _remove(store, item)]
    artifacts = {item.artifact for item in removed if item.artifact}
    if artifacts:
        for ref, path in store.ref_files():
            if (ref.kind, ref.id) in artifacts:
                path.unlink(missing_ok=True)
        store.catalog.entries()  # updates it
    return removed


def _remove(store: DirectoryStore, item: Leftover) -> bool:
    if _idle(item.path) < item.idle or (item.artifact and _is_in_use(item.path)):
        return False  # in use again
    try:
        if stat.S_ISDIR(item.path.lstat().st_mode):
            # Renamed first: no reader may ever see half an artifact.
            hidden = store.root / f"{_REMOVED}{secrets.token_hex(8)}"
            os.rename(item.path, hidden)
            shutil.rmtree(hidden)
        else:
            item.path.unlink()
    except FileNotFoundError:
        return False
    return True


def _temporary(folder: Path) -> Iterator[Leftover]:
    """Files of dead processes, and the rest of interrupted removals."""
    for entry in _entries(folder):
        path = Path(entry.path)
        if entry.is_file(follow_symlinks=False):
            if path.suffix == ".tmp" and not is_being_written(path) and _idle(path) >= QUIET_SECONDS:
                yield Leftover(path, _size(path), "a file that a dead process was writing")
        elif entry.is_dir(follow_symlinks=False) and entry.name.startswith(_REMOVED):
            yield Leftover(path, _size(path), "the rest of an interrupted removal", idle=0)


def _extra_files(store: DirectoryStore, key: Key) -> Iterator[Leftover]:
    """Files in an artifact's folder that do not belong to it."""
    folder = store.root / key[0] / key[1]
    if not store.is_sealed(*key):
        if (folder / "open.json").is_file():
            yield from _temporary(folder)
        elif _idle(folder) >= QUIET_SECONDS and not any(is_being_written(p) for p in folder.glob("*.tmp")):
            yield Leftover(folder, _size(folder), f"{key[0]}: a draft that was never finished", key)
        return
    needed = {"manifest.json", *(entry["file"] for entry in store.manifest(*key)["tables"].values())}
    for entry in _entries(folder):
        path = Path(entry.path)
        if entry.name in needed or entry.is_symlink() or is_being_written(path):
            continue
        if _idle(path) >= QUIET_SECONDS:
            yield Leftover(path, _size(path), "left over from writing the artifact")


def _abandoned(store: DirectoryStore, keys: Iterable[Key], age: float) -> Iterator[Leftover]:
    for kind, id in keys:
        folder = store.root / kind / id
        if store.is_sealed(kind, id) or not (folder / "open.json").is_file():
            continue
        if _idle(folder) >= age and not _is_in_use(folder):
            yield Leftover(folder, _size(folder), f"{singular(kind)} {id}: open and abandoned", (kind, id), age)


def _unreferenced(store: DirectoryStore, keys: Iterable[Key]) -> Iterator[Leftover]:
    existing = set(keys)
    sealed = {key for key in existing if store.is_sealed(*key)}
    reached: set[Key] = set()
    waiting = [(ref.kind, ref.id) for ref in store.refs()] + [
        key for key in existing - sealed if (store.root / key[0] / key[1] / "open.json").is_file()
    ]
    while waiting:
        key = waiting.pop()
        if key in existing and key not in reached:
            reached.add(key)
            waiting += origins(store.manifest(*key))
    for kind, id in sorted(sealed - reached):
        folder = store.root / kind / id
        if _idle(folder) >= QUIET_SECONDS:
            yield Leftover(folder, _size(folder), f"{singular(kind)} {id}: no name reaches it", (kind, id))


def _is_in_use(folder: Path) -> bool:
    """Whether a living process holds a lease on part of an open artifact."""
    journal = Folder(folder.parent.parent, folder.parent.name, folder.name, "journal")
    return any(is_worked_on(journal / name, QUIET_SECONDS) for name in journal.folders())


def _folders(folder: Path) -> list[str]:
    return sorted(e.name for e in _entries(folder) if ID.fullmatch(e.name) and e.is_dir(follow_symlinks=False))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    if folder.is_symlink():
        return []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def _idle(path: Path) -> float:
    """Seconds since the last change in a file or folder; 0 if it no longer exists."""
    times = [entry.st_mtime for _, entry in _stats(path)]
    return time.time() - max(times) if times else 0.0


def _size(path: Path) -> int:
    return sum(entry.st_size for _, entry in _stats(path) if stat.S_ISREG(entry.st_mode))


def _stats(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The name and state of a file, or of a folder and its content; links are not followed."""
    with suppress(FileNotFoundError):
        state = path.lstat()
        yield path.name, state
        if stat.S_ISDIR(state.st_mode):
            for entry in _entries(path):
                yield from _stats(Path(entry.path))
