"""Garbage: files and artifacts that are no longer needed, found and removed.

Nothing that may be in use is removed: a file of a living process, an artifact with a living lease, anything changed
within the hour (processes of other machines and containers are invisible). Finding reads only, and no link is followed.
Only files with names that evaluand makes are removed, and folders that are then empty.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from evaluand.core.errors import EngineError, Fault, plural, singular, warn
from evaluand.core.provenance import origins
from evaluand.store import leases
from evaluand.store.directory import (
    JOURNAL,
    REFS,
    REMOVED,
    DirectoryStore,
    is_journal_removable,
    removable_files,
    remove_journal,
    unneeded_files,
)
from evaluand.store.io import Folder, is_being_written, is_temporary
from evaluand.store.lease_state import Worker
from evaluand.store.manifests import OPEN, SEALED, has_lost_manifest
from evaluand.store.shapes import ID
from evaluand.store.store import KINDS

QUIET_SECONDS = 3600.0
_SEALING_SECONDS: Final = 60.0  # a draft has no manifest for a moment after its last table

Key = tuple[str, str]
_EARLIER_CATALOG: Final = re.compile(r"catalog\.db(-journal|-wal|-shm)?")


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


@dataclass(frozen=True)
class Removal:
    """The outcome of a removal.

    Attributes:
        removed: the items that were removed, each with the size of what was removed.
        left: what evaluand did not make, in the folders of these items.
    """

    removed: list[Leftover]
    left: list[Fault]


def leftovers(
    store: DirectoryStore,
    *,
    open_older_than: float | None = None,
    unreferenced: bool = False,
    damaged: bool = False,
) -> list[Leftover]:
    """Everything that can be removed.

    Args:
        open_older_than: also open artifacts that nobody has worked on for so many seconds.
        unreferenced: also sealed artifacts that no name reaches, directly or through an artifact made from them.
        damaged: also sealed artifacts with a damaged manifest or table, and names that cannot be read. All files of
            tables are read.

    Raises:
        EngineError: with `unreferenced`, a manifest or folder cannot be read, so it is unknown what they reach.
    """
    blocked = store.blocked()
    if unreferenced and blocked:
        raise EngineError(f"{blocked[0].where}: {blocked[0].message}; without it, what is referenced is unknown")
    root = Folder(store.root)
    kinds = [kind for kind in KINDS if not (root / kind).blocked()]
    keys = [(kind, id) for kind in kinds for id in (root / kind).folders() if ID.fullmatch(id)]
    unreadable = {key: error for key in keys if (error := _read_error(store.folder(*key)))}
    if unreferenced and unreadable:
        raise EngineError(f"{next(iter(unreadable.values()))}; without it, what is referenced is unknown")
    for error in unreadable.values():
        warn(f"{error}; it stays")
    keys = [key for key in keys if key not in unreadable]
    found = [*_earlier_catalog(root), *_temporary(root)]
    for name in (REFS, *kinds):
        if not (root / name).blocked():
            found += _temporary(root / name)
    for kind in kinds:
        found += _interrupted(root / kind)
    abandoned = [] if open_older_than is None else [*_abandoned(store, keys, open_older_than)]
    unusable = [*_damaged(store, keys)] if damaged else []
    lost = {item.artifact for item in (*abandoned, *unusable)}
    for key in keys:
        if key not in lost:
            found += _extra_files(store, key)
    found += [*abandoned, *unusable]
    if unreferenced:
        found += _unreferenced(store, [key for key in keys if key not in lost])
    return found


def remove(store: DirectoryStore, items: Iterable[Leftover]) -> Removal:
    """Removes items that are still unused, with the names of removed artifacts.

    Where a worker of an artifact belongs to another machine or container, or to a time before a restart, finding out
    whether it lives takes the time of a lease; a warning says so before.
    """
    items, outcome = [*items], Removal([], [])
    workers = {item.path: _distant_workers(store, item) for item in items}
    if any(workers.values()):  # twice, so that a jump of the date removes no living work
        _warn_of_wait(worker.process.host for of_item in workers.values() for worker in of_item.values())
        time.sleep(leases.LEASE_SECONDS)
    for item in items:
        if _distant_workers(store, item) == workers[item.path]:
            _remove(store, item, outcome)
    artifacts = {item.artifact for item in outcome.removed if item.artifact}
    if artifacts:
        for file, ref in [*store.ref_files()]:
            if (ref.kind, ref.id) in artifacts:
                Folder(store.root, REFS).remove(file)
    return outcome


def _warn_of_wait(hosts: Iterable[str]) -> None:
    first, *others = sorted(set(hosts))
    more = f", or of {plural(len(others), 'other machine')}," if others else ""
    warn(f"waiting {leases.LEASE_SECONDS:g} s to see whether a worker of {first}{more} is still alive")


def _distant_workers(store: DirectoryStore, item: Leftover) -> dict[tuple[str, str], Worker]:
    """The workers of an artifact of which only time shows whether they live, as their last changes describe them."""
    folder = store.folder(*item.artifact) if item.artifact else None
    if folder is None or JOURNAL not in folder.folders():
        return {}
    journal = folder / JOURNAL
    try:
        return {(log, n): w for log in journal.folders() for n, w in leases.distant_workers(journal / log).items()}
    except EngineError:  # its leases cannot be read; `_is_in_use` decides
        return {}


def _remove(store: DirectoryStore, item: Leftover, outcome: Removal) -> None:
    *above, name = item.path.relative_to(store.root).parts
    folder = Folder(store.root, *above)
    before = [*_states(folder, name)]
    if not before or _idle(folder, name) < item.idle or (item.artifact and _is_in_use(folder / name)):
        return  # removed by another process, or in use again
    if not stat.S_ISDIR(before[0][1].st_mode):
        folder.remove(name)
    elif name == JOURNAL:
        remove_journal(folder)
    elif item.artifact:
        name = _remove_artifact(folder, name)
    else:
        _clear(folder, name)
    after = [*_states(folder, name)]
    if len(after) < len(before):
        outcome.removed.append(replace(item, size=_sum_sizes(before) - _sum_sizes(after)))
    if after:
        names = (folder / name).names() if stat.S_ISDIR(after[0][1].st_mode) else []
        places = [folder.path / name / other for other in names] or [folder.path / name]
        outcome.left.extend(Fault(str(place), "evaluand did not make all of it, so it stays") for place in places)


def _remove_artifact(above: Folder, name: str) -> str:
    """Removes an artifact; returns the name of its folder, which stays if it has other things."""
    hidden = f".gone-{secrets.token_hex(8)}"
    above.rename(name, hidden)  # first: no reader may ever see half an artifact
    if _clear(above, hidden):
        return name
    with suppress(EngineError):  # another process has written the artifact again
        above.rename(hidden, name)
        return name
    return hidden


def _clear(above: Folder, name: str) -> bool:
    """Removes what evaluand makes from the folder of an artifact; whether the folder no longer exists."""
    folder = above / name
    for file in removable_files(folder):
        folder.remove(file)
    remove_journal(folder)
    return above.remove_folder(name)


def _is_removable(folder: Folder) -> bool:
    """Whether the folder of an artifact is empty or has anything that evaluand makes."""
    return not folder.entries() or bool(removable_files(folder)) or is_journal_removable(folder)


def _read_error(folder: Folder) -> EngineError | None:
    """Why the folder of an artifact cannot be read; None if it can."""
    try:
        folder.names()
        folder.state(SEALED)
    except EngineError as error:
        return error
    return None


def _earlier_catalog(root: Folder) -> Iterator[Leftover]:
    for name in root.files():
        if _EARLIER_CATALOG.fullmatch(name) and _idle(root, name) >= QUIET_SECONDS:
            yield _leftover(root, name, "an index that earlier versions wrote")


def _temporary(folder: Folder) -> Iterator[Leftover]:
    """Files of dead processes."""
    for name in folder.files():
        unused = is_temporary(name) and not is_being_written(name, elsewhere=False)
        if unused and _idle(folder, name) >= QUIET_SECONDS:
            yield _leftover(folder, name, "a file that a dead process was writing")


def _interrupted(folder: Folder) -> Iterator[Leftover]:
    """The rest of interrupted removals of artifacts."""
    for name in folder.folders():
        if REMOVED.fullmatch(name) and _idle(folder, name) >= QUIET_SECONDS and _is_removable(folder / name):
            yield _leftover(folder, name, "the rest of an interrupted removal")


def _extra_files(store: DirectoryStore, key: Key) -> Iterator[Leftover]:
    """Files in an artifact's folder that do not belong to it."""
    folder = store.folder(*key)
    if not store.is_sealed(*key):
        if folder.state(OPEN) is not None:
            yield from _temporary(folder)
        elif (
            _idle(*_place(store, key)) >= QUIET_SECONDS
            and not any(is_being_written(name, elsewhere=False) for name in folder.files())
            and not has_lost_manifest(folder, elsewhere=False)
            and _is_removable(folder)
        ):
            yield _artifact(store, key, f"{key[0]}: a draft that was never finished")
        return
    try:
        unneeded = unneeded_files(folder, store.manifest(*key), elsewhere=False)
    except EngineError:  # which files it needs is not known
        return
    journal = [JOURNAL] if is_journal_removable(folder) else []
    for name in (*unneeded, *journal):
        if _idle(folder, name) >= QUIET_SECONDS:
            yield _leftover(folder, name, "left over from writing the artifact")


def _abandoned(store: DirectoryStore, keys: Iterable[Key], age: float) -> Iterator[Leftover]:
    for key in keys:
        if store.is_sealed(*key) or store.folder(*key).state(OPEN) is None:
            continue
        if _idle(*_place(store, key)) >= age and not _is_in_use(store.folder(*key)):
            yield _artifact(store, key, f"{singular(key[0])} {key[1]}: open and abandoned", age)


def _damaged(store: DirectoryStore, keys: Iterable[Key]) -> Iterator[Leftover]:
    for key in keys:
        folder = store.folder(*key)
        is_lost = folder.states([SEALED, OPEN]) == [None, None] and has_lost_manifest(folder, elsewhere=False)
        is_distant = is_lost and not has_lost_manifest(folder)  # a process of another machine may be writing
        quiet = QUIET_SECONDS if is_distant else _SEALING_SECONDS
        if is_lost and _idle(*_place(store, key)) >= quiet:
            yield _artifact(store, key, f"{singular(key[0])} {key[1]}: its manifest is missing", quiet)
        elif store.is_sealed(*key) and (faults := store.damage(*key)):
            yield _artifact(store, key, f"{singular(key[0])} {key[1]}: {faults[0].message}", idle=0)
    refs = Folder(store.root, REFS)
    for fault in store.damaged_refs():
        state = refs.state(name := Path(fault.where).name)
        if state is not None and not stat.S_ISDIR(state.st_mode):
            yield _leftover(refs, name, fault.message, idle=0)


def _unreferenced(store: DirectoryStore, keys: Iterable[Key]) -> Iterator[Leftover]:
    existing = set(keys)
    sealed = {key for key in existing if store.is_sealed(*key)}
    reached: set[Key] = set()
    waiting = [(ref.kind, ref.id) for ref in store.refs()] + [
        key for key in existing - sealed if store.folder(*key).state(OPEN) is not None
    ]
    while waiting:
        key = waiting.pop()
        if key in existing and key not in reached:
            reached.add(key)
            waiting += origins(store.manifest(*key))
    for key in sorted(sealed - reached):
        if _idle(*_place(store, key)) >= QUIET_SECONDS:
            yield _artifact(store, key, f"{singular(key[0])} {key[1]}: no name reaches it")


def _is_in_use(folder: Folder) -> bool:
    """Whether a living process holds a lease on part of an open artifact."""
    if JOURNAL not in folder.folders():
        return False
    journal = folder / JOURNAL
    try:
        return any(leases.is_worked_on(journal / log, QUIET_SECONDS) for log in journal.folders())
    except EngineError:  # its leases cannot be read, so who holds one is unknown
        return True


def _place(store: DirectoryStore, key: Key) -> tuple[Folder, str]:
    return Folder(store.root, key[0]), key[1]


def _artifact(store: DirectoryStore, key: Key, why: str, idle: float = QUIET_SECONDS) -> Leftover:
    above, name = _place(store, key)
    folder = above / name
    size = sum(_size(folder, part) for part in (*removable_files(folder), JOURNAL))
    return Leftover(folder.path, size, why, key, idle)


def _leftover(folder: Folder, name: str, why: str, idle: float = QUIET_SECONDS) -> Leftover:
    return Leftover(folder.path / name, _size(folder, name), why, idle=idle)


def _idle(folder: Folder, name: str) -> float:
    """Seconds since the last change in a file or folder; 0 if it no longer exists."""
    times = [state.st_mtime for _, state in _states(folder, name)]
    return time.time() - max(times) if times else 0.0


def _size(folder: Folder, name: str) -> int:
    return _sum_sizes(_states(folder, name))


def _sum_sizes(states: Iterable[tuple[str, os.stat_result]]) -> int:
    return sum(state.st_size for _, state in states if stat.S_ISREG(state.st_mode))


def _states(folder: Folder, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """The name and state of a file, or of a folder and its content; links are not followed."""
    state = folder.state(name)
    if state is None:
        return
    yield name, state
    if stat.S_ISDIR(state.st_mode):
        for entry in (folder / name).entries():
            yield from _states(folder / name, entry.name)
