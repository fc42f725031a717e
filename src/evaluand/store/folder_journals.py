"""Journals in the folders of open artifacts: `<kind>/<id>/journal/<log>/` has the segments of a log, and its leases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final

from evaluand.core.errors import EngineError, Fault
from evaluand.store import leases
from evaluand.store.folder import Entry, Folder
from evaluand.store.io import DiskFolder
from evaluand.store.journal import WorkLog
from evaluand.store.journals import BINDING, Journals
from evaluand.store.lease_state import Worker
from evaluand.store.leases import FileLeases
from evaluand.store.log import FileLog
from evaluand.store.manifests import JOURNAL, SEALED, file_name
from evaluand.store.segments import SEGMENT_FILE, fault_of, find_damage
from evaluand.store.temporary import is_temporary

LEASES: Final = "leases"
REMOVED: Final = re.compile(r"\.gone-[0-9a-f]{16}")  # folders being removed, which no reader takes for artifacts
_LOG: Final = re.compile(r"[A-Za-z0-9_]*(-[0-9a-f]{8})?")
_OF_LOG: Final = re.compile(rf"{SEGMENT_FILE.pattern}|leases\.db(-journal|-wal|-shm)?|writer")
_OF_LEASES: Final = re.compile(r"[0-9]+\.json|\.[0-9]+\.json\.claim")


class FolderJournals(Journals):
    """The journals of a store on a disk, in the folders of its artifacts, which show when they were used.

    Args:
        top: the folder of the store.
    """

    def __init__(self, top: DiskFolder) -> None:
        self._top = top

    def make(self, kind: str, id: str) -> None:
        self._check()
        self._journal(kind, id).make()

    def exists(self, kind: str, id: str) -> bool:
        return (self._top / kind / id).state(JOURNAL) is not None

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        folder = self._journal(kind, id) / file_name(name)
        log = FileLog(folder, f"{kind}/{id}/{file_name(name)}")
        own = FileLeases(folder, log)
        lane = WorkLog(log, own, slots)
        own.fence = lane.fence
        return lane

    def find_damage(self, kind: str, id: str) -> list[Fault]:
        journal, faults = self._journal(kind, id), list[Fault]()
        for name in self._logs(kind, id):
            written = leases.read_written(journal / name)  # before the lines, so that these are as many at least
            with closing(FileLog(journal / name, f"{kind}/{id}/{name}")) as log, suppress(FileNotFoundError):
                faults += [fault_of(log, damage) for damage in find_damage(log, written)]
        return faults if (self._top / kind / id).state(SEALED) is None else []  # by another process meanwhile

    def is_worked_on(self, kind: str, id: str, recent: float) -> bool:
        self._check()
        journal = self._journal(kind, id)
        return any(leases.is_worked_on(journal / log, recent) for log in self._logs(kind, id))

    def distant_workers(self, kind: str, id: str) -> dict[tuple[str, str], Worker]:
        journal = self._journal(kind, id)
        logs = self._logs(kind, id)
        return {(log, n): w for log in logs for n, w in leases.distant_workers(journal / log).items()}

    def remove(self, kind: str, id: str, folder: Folder) -> None:
        remove_journal(folder)

    def _check(self) -> None:
        """Raises an EngineError if the store's journals are in a database."""
        if self._top.state(BINDING) is not None:
            raise EngineError(
                f"{self._top.path}: the journals of its open work are in a database; give the store's address with its"
                f" catalog, as in file:///FOLDER?catalog=postgresql://HOST/DATABASE, or remove {BINDING} if it is gone"
            )

    def _journal(self, kind: str, id: str) -> DiskFolder:
        return self._top / kind / id / JOURNAL

    def _logs(self, kind: str, id: str) -> list[str]:
        return self._journal(kind, id).folders() if JOURNAL in (self._top / kind / id).folders() else []


def is_journal_removable(folder: Folder) -> bool:
    """Whether `remove_journal` would remove anything."""
    if JOURNAL not in folder.folders():
        return False
    journal = folder / JOURNAL
    has_files = any(is_made for _, _, is_made in _list_files(journal))
    return has_files or not journal.entries() or any(map(_is_hollow, _logs_in(journal)))


def remove_journal(folder: Folder) -> None:
    """Removes the journal of an artifact, except files that evaluand did not make."""
    if folder.state(JOURNAL) is not None and JOURNAL not in folder.folders():
        return
    journal = folder / JOURNAL
    while not folder.remove_folder(JOURNAL):
        made = [(place, entry.name) for place, entry, is_made in _list_files(journal) if is_made]
        for place, name in made:
            place.remove(name)
        hollow = [log for log in _logs_in(journal) if _is_hollow(log)]
        for log in hollow:
            log.remove_folder(LEASES)
            journal.remove_folder(log.path.name)
        if not (made or hollow):
            return  # otherwise again: another process may have written meanwhile


def strays_in_journal(journal: Folder) -> list[Fault]:
    return [stray(place, entry) for place, entry, is_made in _list_files(journal) if not is_made]


def _logs_in(journal: Folder) -> list[Folder]:
    return [journal / name for name in journal.folders() if _LOG.fullmatch(name)]


def _list_files(journal: Folder) -> Iterator[tuple[Folder, Entry, bool]]:
    """What is in a journal besides its logs and the folders of leases: where, and whether evaluand makes it."""
    for entry in journal.entries():
        if not (entry.is_folder and _LOG.fullmatch(entry.name)):
            yield journal, entry, False
    for log in _logs_in(journal):
        for entry in log.entries():
            if entry.name == LEASES and entry.is_folder:
                leases = log / LEASES
                yield from ((leases, state, _is_file(state, _OF_LEASES)) for state in leases.entries())
            else:
                yield log, entry, _is_file(entry, _OF_LOG)


def _is_hollow(log: Folder) -> bool:
    """Whether a log has no files, and perhaps the empty folder of its leases."""
    entries = [(entry.name, entry.is_folder) for entry in log.entries()]
    return not entries or (entries == [(LEASES, True)] and not (log / LEASES).entries())


def _is_file(entry: Entry, known: re.Pattern[str]) -> bool:
    """Whether an entry is a regular file with a name that evaluand makes."""
    return entry.is_file and (known.fullmatch(entry.name) is not None or is_temporary(entry.name))


def stray(folder: Folder, entry: Entry) -> Fault:
    what = "" if entry.is_file or entry.is_folder else "a link, pipe or device; "
    return Fault(str(folder.path / entry.name), f"{what}is not part of the store, and nothing reads it")


def is_known(name: str, known: re.Pattern[str]) -> bool:
    return known.fullmatch(name) is not None or is_temporary(name) or REMOVED.fullmatch(name) is not None
