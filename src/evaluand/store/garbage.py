"""Garbage: files and artifacts that are no longer needed, found and removed.

Nothing that may be in use is removed: a file of a living process, an artifact with a living lease, anything changed
within the hour (processes of other machines and containers are invisible). Finding reads only, and no link is followed.
Only files with names that evaluand makes are removed, and folders that are then empty. Hours may pass between finding
and removing, so each item is checked again just before it is removed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import truediv
from pathlib import PurePath
from typing import Any, Final

from evaluand.core.errors import EngineError, Fault, plural, pluralize, warn
from evaluand.store import leases
from evaluand.store.checks import ID
from evaluand.store.digests import damaged_tables
from evaluand.store.folder import Folder
from evaluand.store.folder_journals import LEASES, REMOVED, is_journal_removable, remove_journal
from evaluand.store.folder_store import REFS, FolderStore, removable_files, unneeded_files
from evaluand.store.kinds import find_kind, origins_last, singular
from evaluand.store.lease_state import Worker
from evaluand.store.manifests import JOURNAL, OPEN, SEALED, UNKNOWN_KIND, blocked_fault, has_lost_manifest
from evaluand.store.references import References
from evaluand.store.store import attempts, describe_damage, sealed_manifest
from evaluand.store.temporary import is_being_written, is_temporary

QUIET_SECONDS = 3600.0
_SEALING_SECONDS: Final = 60.0  # a draft has no manifest for a moment after its last table

Key = tuple[str, str]
_STAYS: Final = "has changed or is in use since it was listed, so it stays"
_EARLIER_CATALOG: Final = re.compile(r"catalog\.db(-journal|-wal|-shm)?")


@dataclass(frozen=True)
class Leftover:
    """Something that can be removed.

    Attributes:
        size: the size of its files in bytes.
        why: what it is, and why it is not needed.
        is_unneeded: finds out again whether it can be removed.
        artifact: the (kind, id), if it is a whole artifact.
        journal: the (kind, id), if it is a journal that no file shows.
    """

    path: PurePath
    size: int
    why: str
    is_unneeded: Callable[[], bool] = field(repr=False, compare=False)
    artifact: Key | None = None
    journal: Key | None = None


@dataclass(frozen=True)
class Removal:
    """The outcome of a removal.

    Attributes:
        removed: the items that were removed, each with the size of what was removed.
        left: what stays: what evaluand did not make, and what is needed, in use or in doubt by now.
    """

    removed: list[Leftover]
    left: list[Fault]


def leftovers(
    store: FolderStore,
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
        EngineError: with `unreferenced`, a manifest, name or folder cannot be read, so it is unknown what they reach.
    """
    blocked = store.blocked()
    if unreferenced and blocked:
        raise EngineError(f"{blocked[0].where}: {blocked[0].message}; without it, what is referenced is unknown")
    root = store.top
    kinds = store.folders()
    keys = [(above.path.name, id) for above in kinds for id in above.folders() if ID.fullmatch(id)]
    for key in [*keys]:
        try:
            _idle(*_place(store, key))
        except EngineError as error:
            if unreferenced:
                raise EngineError(f"{error}; without it, what is referenced is unknown") from None
            warn(f"{error}; it stays")
            keys.remove(key)
    catalogs = filter(_EARLIER_CATALOG.fullmatch, root.files())
    found = [*_if(_is_quiet, root, catalogs, "an index that earlier versions wrote"), *_temporary(root)]
    if not (root / REFS).blocked():
        found += _temporary(root / REFS)
    for above in kinds:
        found += _temporary(above)
        removed = filter(REMOVED.fullmatch, above.folders())
        found += _if(_is_rest, above, removed, "the rest of an interrupted removal")
    abandoned = list[Leftover]()
    for key in keys if open_older_than is not None else ():
        why = f"{singular(key[0])} {key[1]}: open and abandoned"
        abandoned += _artifact_if(_is_abandoned, store, key, open_older_than, why=why)
    unusable = [*_damaged(store, keys)] if damaged else []
    lost = {item.artifact for item in (*abandoned, *unusable)}
    for key in keys:
        if key not in lost:
            found += _extra_files(store, key)
    found += [*_finished_journals(store), *abandoned, *unusable]
    if unreferenced:
        references = References(store, skip_damaged_names=damaged)
        unreached = references.find_unreached({*_artifacts(abandoned)})
        order = origins_last()  # so that what is there at any moment has what it was made from
        chosen = sorted((key for key in unreached if key not in lost), key=lambda key: order.index(key[0]))
        for key in chosen:
            if _is_quiet(*_place(store, key)):
                why = f"{singular(key[0])} {key[1]}: no name reaches it"
                found.append(_artifact(store, key, why, partial(_is_unreferenced, store, key, references)))
    return found


def postponed(store: FolderStore) -> list[Fault]:
    """What is damaged and cannot be removed now, with the reason or what to do."""
    places = [(above, name) for above in store.folders() for name in above.names()]
    return [fault for above, name in places if ID.fullmatch(name) and (fault := _obstacle(above, name))]


def _obstacle(above: Folder, name: str) -> Fault | None:
    """Why a damaged artifact cannot be removed now; None if it can or is intact."""
    folder = above / name
    if blocked := blocked_fault(folder):
        return blocked
    with suppress(EngineError):  # a folder that cannot be read is reported by `leftovers`
        seconds = _sealing_seconds(folder)
        if _has_lost_manifest(folder) and _idle(above, name) < seconds:
            unit = "hour" if seconds == QUIET_SECONDS else "minute"
            return Fault(str(folder.path), f"its manifest is missing; it was changed within the {unit}, so it stays")
    return None


def remove(store: FolderStore, items: Iterable[Leftover]) -> Removal:
    """Removes items that are still unneeded and unused, with the names of removed artifacts.

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
        else:
            outcome.left.append(Fault(str(item.path), _STAYS))
    if artifacts := {*_artifacts(outcome.removed)}:
        for file, ref in [*store.ref_files()]:
            if (ref.kind, ref.id) in artifacts and store.ref_damage(file):  # it may have been made again
                (store.top / REFS).remove(file)
    return outcome


def _artifacts(items: Iterable[Leftover]) -> Iterator[Key]:
    return (item.artifact for item in items if item.artifact)


def _warn_of_wait(hosts: Iterable[str]) -> None:
    first, *others = sorted(set(hosts))
    more = f", or of {plural(len(others), 'other machine')}," if others else ""
    warn(f"waiting {leases.LEASE_SECONDS:g} s to see whether a worker of {first}{more} is still alive")


def _distant_workers(store: FolderStore, item: Leftover) -> dict[tuple[str, str], Worker]:
    """The workers of an artifact of which only time shows whether they live, as their last changes describe them."""
    try:
        return store.journals.distant_workers(*item.artifact) if item.artifact else {}
    except EngineError:  # its leases cannot be read; `_is_in_use` decides
        return {}


def _remove(store: FolderStore, item: Leftover, outcome: Removal) -> None:
    *above, name = item.path.relative_to(store.top.path).parts
    folder = reduce(truediv, above, store.top)
    before, is_free = [*_states(folder, name)], False
    if not before and not item.journal:
        return  # removed by another process
    with suppress(EngineError):  # what cannot be found out is in doubt
        is_free = item.is_unneeded() and not (item.artifact and _is_in_use(store, item.artifact))
    if not is_free:
        return outcome.left.append(Fault(str(item.path), _STAYS))
    if item.journal:
        store.journals.remove(*item.journal, folder)
        return outcome.removed.append(item)
    if not stat.S_ISDIR(before[0][1].st_mode):
        folder.remove(name)
    elif name == JOURNAL:
        remove_journal(folder)
    elif item.artifact:
        name = _remove_artifact(store, item.artifact, folder)
    else:
        _clear(folder, name)
    after = [*_states(folder, name)]
    if len(after) < len(before):
        outcome.removed.append(replace(item, size=_sum_sizes(before) - _sum_sizes(after)))
    if after:
        names = (folder / name).names() if stat.S_ISDIR(after[0][1].st_mode) else []
        places = [folder.path / name / other for other in names] or [folder.path / name]
        outcome.left.extend(Fault(str(place), "evaluand did not make all of it, so it stays") for place in places)


def _remove_artifact(store: FolderStore, key: Key, above: Folder) -> str:
    """Removes an artifact; returns the name of its folder, which stays if it has other things."""
    name = key[1]
    hidden = above.hide(name, f".gone-{secrets.token_hex(8)}")  # first: no reader may ever see half an artifact
    store.journals.remove(*key, above / hidden)
    if _clear(above, hidden):
        return name
    with suppress(EngineError):  # another process has written the artifact again
        above.hide(hidden, name)
        return name
    return hidden


def _clear(above: Folder, name: str) -> bool:
    """Removes what evaluand makes from the folder of an artifact; whether the folder no longer exists."""
    folder = above / name
    for file in sorted(removable_files(folder), key=lambda file: file not in (SEALED, OPEN)):
        folder.remove(file)  # the manifests first: where the folder could not be hidden, it is no artifact without
    remove_journal(folder)
    return above.remove_folder(name)


def _is_removable(folder: Folder) -> bool:
    """Whether the folder of an artifact is empty or has anything that evaluand makes."""
    return not folder.entries() or bool(removable_files(folder)) or is_journal_removable(folder)


def _temporary(folder: Folder) -> list[Leftover]:
    """Files of dead processes."""
    return _if(_is_orphan, folder, filter(is_temporary, folder.files()), "a file that a dead process was writing")


def _is_orphan(folder: Folder, name: str) -> bool:
    """Whether the process that was writing a file is dead."""
    return not is_being_written(name, elsewhere=False) and _is_quiet(folder, name)


def _is_rest(folder: Folder, name: str) -> bool:
    return _is_quiet(folder, name) and _is_removable(folder / name)


def _extra_files(store: FolderStore, key: Key) -> Iterator[Leftover]:
    """Files in an artifact's folder that do not belong to it."""
    folder = store.folder(*key)
    if not store.is_sealed(*key):
        if folder.state(OPEN) is not None:
            yield from _temporary(folder)
        else:
            yield from _artifact_if(_is_dead_draft, store, key, why=f"{key[0]}: a draft that was never finished")
        return
    is_extra = partial(_is_extra, store, key)
    yield from _if(is_extra, folder, _unneeded_names(store, key), "left over from writing the artifact")


def _is_dead_draft(store: FolderStore, key: Key) -> bool:
    folder = store.folder(*key)
    return (
        folder.states([SEALED, OPEN]) == [None, None]
        and _is_quiet(*_place(store, key))
        and not any(is_being_written(name, elsewhere=False) for name in folder.files())
        and not has_lost_manifest(folder, elsewhere=False)
        and _is_removable(folder)
    )


def _is_extra(store: FolderStore, key: Key, folder: Folder, name: str) -> bool:
    return store.is_sealed(*key) and name in _unneeded_names(store, key) and _is_quiet(folder, name)


def _unneeded_names(store: FolderStore, key: Key) -> list[str]:
    """The names in the folder of a sealed artifact that it no longer needs; none if its manifest cannot be read."""
    folder = store.folder(*key)
    try:
        unneeded = unneeded_files(folder, store.manifest(*key), elsewhere=False)
    except EngineError:  # which files it needs is not known
        return []
    return [*unneeded, JOURNAL] if is_journal_removable(folder) else unneeded


def _is_abandoned(store: FolderStore, key: Key, age: float) -> bool:
    folder = store.folder(*key)
    is_open = not store.is_sealed(*key) and folder.state(OPEN) is not None
    idle = min(_idle(*_place(store, key)), store.journals.idle(*key))
    return is_open and idle >= age and not _is_in_use(store, key)


def _finished_journals(store: FolderStore) -> Iterator[Leftover]:
    """Journals that no file shows, of artifacts that are complete or were removed."""
    for key, size in store.journals.orphans().items():
        if _is_finished(store, key):
            path = store.folder(*key).path / JOURNAL
            why = f"the journal of {singular(key[0])} {key[1]}, which is no longer open"
            yield Leftover(path, size, why, partial(_is_finished, store, key), journal=key)


def _is_finished(store: FolderStore, key: Key) -> bool:
    is_open = store.folder(*key).state(OPEN) is not None and not store.is_sealed(*key)
    return not is_open and store.journals.idle(*key) >= QUIET_SECONDS


def _damaged(store: FolderStore, keys: Iterable[Key]) -> Iterator[Leftover]:
    for key in keys:
        if not (reason := _damage(store, key)):
            continue
        why = f"{singular(key[0])} {key[1]}: {reason}"
        if readable := _readable_answers(store, key):
            yield from _damaged_files(store, key, f"{why}; {describe_kept(readable)}")
        else:
            yield _artifact(store, key, why, partial(_is_damaged, store, key))
    refs = store.top / REFS
    for fault in store.damaged_refs():
        name = PurePath(fault.where).name
        if fault.code != UNKNOWN_KIND and _is_file_of_ref(refs, name):
            is_damaged = partial(lambda name: _is_file_of_ref(refs, name) and store.ref_damage(name) is not None, name)
            yield _leftover(refs, name, fault.message, is_damaged)


def _is_damaged(store: FolderStore, key: Key) -> bool:
    return bool(_damage(store, key)) and not _readable_answers(store, key)


def _readable_answers(store: FolderStore, key: Key) -> list[str]:
    """The intact tables of a damaged artifact that the same work, done again, takes over; none once it was."""
    kind, manifest = find_kind(key[0]), sealed_manifest(store, *key)
    if manifest is None or not kind.answers:
        return []
    last = attempts(store, key[0], manifest["spec"])[-1]
    if last != key[1] and store.is_sealed(key[0], last) and not describe_damage(store, key[0], last):
        return []
    tables = {name: entry for name, entry in manifest["tables"].items() if name.startswith(kind.answers)}
    return [name for name, entry in tables.items() if not damaged_tables(store.folder(*key), {name: entry})]


def describe_kept(tables: Sequence[str]) -> str:
    """What becomes of the intact tables of a damaged artifact."""
    return f"{', '.join(tables)} {pluralize(len(tables), 'is', 'are')} kept until the same work was run again"


def _damaged_files(store: FolderStore, key: Key, why: str) -> Iterator[Leftover]:
    """The damaged tables of an artifact."""
    folder = store.folder(*key)
    for entry in store.manifest(*key)["tables"].values():
        if folder.state(entry["file"]) is not None and damaged_tables(folder, {"": entry}):
            is_damaged = partial(lambda entry: bool(damaged_tables(folder, {"": entry})), entry)
            yield _leftover(folder, entry["file"], why, is_damaged)


def _damage(store: FolderStore, key: Key) -> str:
    """What is wrong with an artifact that no process is writing; an empty text if nothing is."""
    folder = store.folder(*key)
    if _has_lost_manifest(folder):
        is_quiet = _idle(*_place(store, key)) >= _sealing_seconds(folder)
        return "its manifest is missing" if is_quiet and not _is_in_use(store, key) else ""
    faults = store.damage(*key) if store.is_sealed(*key) else []
    return faults[0].message if faults else ""


def _has_lost_manifest(folder: Folder) -> bool:
    return folder.states([SEALED, OPEN]) == [None, None] and has_lost_manifest(folder, elsewhere=False)


def _sealing_seconds(folder: Folder) -> float:
    """After how many seconds without a change nobody can be about to write the manifest of a folder without one."""
    is_distant = not has_lost_manifest(folder)  # a process of another machine may be writing
    return QUIET_SECONDS if is_distant else _SEALING_SECONDS


def _is_file_of_ref(refs: Folder, name: str) -> bool:
    state = refs.state(name)
    return state is not None and not stat.S_ISDIR(state.st_mode)


def _is_unreferenced(store: FolderStore, key: Key, references: References) -> bool:
    return store.is_sealed(*key) and _is_quiet(*_place(store, key)) and not references.is_reached(key)


def _is_in_use(store: FolderStore, key: Key) -> bool:
    """Whether a living process holds a lease on part of an open artifact."""
    try:
        return store.journals.is_worked_on(*key, QUIET_SECONDS)
    except EngineError:  # its leases cannot be read, so who holds one is unknown
        return True


def _place(store: FolderStore, key: Key) -> tuple[Folder, str]:
    return store.top / key[0], key[1]


def _artifact(store: FolderStore, key: Key, why: str, is_unneeded: Callable[[], bool]) -> Leftover:
    above, name = _place(store, key)
    folder = above / name
    size = sum(_size(folder, part) for part in (*removable_files(folder), JOURNAL))
    return Leftover(folder.path, size, why, is_unneeded, key)


def _artifact_if(
    is_unneeded: Callable[..., bool], store: FolderStore, key: Key, *more: Any, why: str
) -> Iterator[Leftover]:
    """An artifact, if it is unneeded."""
    if is_unneeded(store, key, *more):
        yield _artifact(store, key, why, partial(is_unneeded, store, key, *more))


def _leftover(folder: Folder, name: str, why: str, is_unneeded: Callable[[], bool]) -> Leftover:
    return Leftover(folder.path / name, _size(folder, name), why, is_unneeded)


def _if(is_unneeded: Callable[[Folder, str], bool], folder: Folder, names: Iterable[str], why: str) -> list[Leftover]:
    """Those of some files or folders that are unneeded."""
    unneeded = [name for name in names if is_unneeded(folder, name)]
    return [_leftover(folder, name, why, partial(is_unneeded, folder, name)) for name in unneeded]


def _is_quiet(folder: Folder, name: str) -> bool:
    return _idle(folder, name) >= QUIET_SECONDS


def _idle(folder: Folder, name: str) -> float:
    """Seconds since the last change in a file or folder; 0 if it no longer exists."""
    times = [state.st_mtime for _, state in _states(folder, name)]
    return time.time() - max(times) if times else 0.0


def _size(folder: Folder, name: str) -> int:
    return _sum_sizes(_states(folder, name))


def _sum_sizes(states: Iterable[tuple[str, os.stat_result]]) -> int:
    return sum(state.st_size for _, state in states if stat.S_ISREG(state.st_mode))


def _states(folder: Folder, name: str) -> Iterator[tuple[str, os.stat_result]]:
    """The name and state of a file, or of a folder and what evaluand makes in it; links are not followed.

    Folders that evaluand does not make may be nested without end, so what they contain is not read.
    """
    state = folder.state(name)
    if state is None:
        return
    yield name, state
    if stat.S_ISDIR(state.st_mode):
        for below in _folders_of_journal(folder / name) if name == JOURNAL else _folders_of_artifact(folder / name):
            names = below.names()
            for each, found in zip(names, below.states(names), strict=True):
                if isinstance(found, EngineError):
                    raise found
                if found is not None:
                    yield each, found


def _folders_of_artifact(folder: Folder) -> Iterator[Folder]:
    yield folder
    if JOURNAL in folder.folders():
        yield from _folders_of_journal(folder / JOURNAL)


def _folders_of_journal(journal: Folder) -> Iterator[Folder]:
    yield journal
    for log in journal.folders():
        yield journal / log
        if LEASES in (journal / log).folders():
            yield journal / log / LEASES
