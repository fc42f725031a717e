"""Journals in the folders of open artifacts: `<kind>/<id>/journal/<log>/` has the segments of a log, and its leases."""

from __future__ import annotations

import math
import re
from contextlib import closing, suppress
from typing import Final

from evaluand.core.errors import EngineError, Fault
from evaluand.store import leases
from evaluand.store.folder import Entry, Folder
from evaluand.store.io import DiskFolder
from evaluand.store.journal import WorkLog
from evaluand.store.journals import BINDING
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


class FolderJournals:
    """The journals of a store on a disk, in the folders of its artifacts.

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

    def idle(self, kind: str, id: str) -> float:
        return math.inf  # its files are among those of the artifact

    def remove(self, kind: str, id: str, folder: Folder) -> None:
        remove_journal(folder)

    def orphans(self) -> dict[tuple[str, str], int]:
        return {}  # they are in the folders of artifacts, with which they are found

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
    logs = journal.folders()
    return not journal.entries() or any(_files_of_log(journal, log) or _is_hollow(journal / log) for log in logs)


def remove_journal(folder: Folder) -> None:
    """Removes the journal of an artifact, except files that evaluand did not make."""
    if folder.state(JOURNAL) is not None and JOURNAL not in folder.folders():
        return
    journal = folder / JOURNAL
    while not folder.remove_folder(JOURNAL):
        removed = [_remove_files(journal, log) for log in journal.folders()]
        if not any(removed):
            return  # otherwise again: another process may have written meanwhile


def _remove_files(journal: Folder, log: str) -> bool:
    """Removes the files of a log; whether there were any, or an empty folder."""
    files = _files_of_log(journal, log)
    for folder, name in files:
        folder.remove(name)
    if LEASES in (journal / log).folders():
        (journal / log).remove_folder(LEASES)
    return journal.remove_folder(log) or bool(files)


def _files_of_log(journal: Folder, log: str) -> list[tuple[Folder, str]]:
    """The files of a log that evaluand makes, each with its folder."""
    places = [(journal / log, _OF_LOG)]
    if LEASES in (journal / log).folders():
        places.append((journal / log / LEASES, _OF_LEASES))
    return [
        (folder, name)
        for folder, known in places
        for name in folder.files()
        if known.fullmatch(name) or is_temporary(name)
    ]


def _is_hollow(log: Folder) -> bool:
    """Whether a log has no files, and perhaps the empty folder of its leases."""
    entries = log.entries()
    return not entries or (
        [(entry.name, entry.is_folder) for entry in entries] == [(LEASES, True)] and not (log / LEASES).entries()
    )


def strays_in_journal(journal: Folder) -> list[Fault]:
    found = []
    for entry in journal.entries():
        if entry.is_folder and _LOG.fullmatch(entry.name):
            found += _strays_in_log(journal / entry.name)
        else:
            found.append(stray(journal, entry))
    return found


def _strays_in_log(log: Folder) -> list[Fault]:
    found = []
    for entry in log.entries():
        if entry.name == LEASES and entry.is_folder:
            leases = log / LEASES
            found += [stray(leases, each) for each in leases.entries() if not _is_file(each, _OF_LEASES)]
        elif not _is_file(entry, _OF_LOG):
            found.append(stray(log, entry))
    return found


def _is_file(entry: Entry, known: re.Pattern[str]) -> bool:
    """Whether an entry is a regular file with a name that evaluand makes."""
    return entry.is_file and (known.fullmatch(entry.name) is not None or is_temporary(entry.name))


def stray(folder: Folder, entry: Entry) -> Fault:
    what = "" if entry.is_file or entry.is_folder else "a link, pipe or device; "
    return Fault(str(folder.path / entry.name), f"{what}is not part of the store, and nothing reads it")


def is_known(name: str, known: re.Pattern[str]) -> bool:
    return known.fullmatch(name) is not None or is_temporary(name) or REMOVED.fullmatch(name) is not None
