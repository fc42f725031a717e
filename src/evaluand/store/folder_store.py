"""A store of files in open formats, in a folder of a disk or of a bucket.

    refs/<digest of name>.json          a name and the artifact it refers to
    <kind>/<id>/manifest.json           written last: the artifact is complete
    <kind>/<id>/<table>-<digest>.parquet
    <kind>/<id>/check-<digest>.json     what repeating some answers has shown
    <kind>/<id>/open.json               while open: the specification
    <kind>/<id>/journal/<log>/…         while open: finished work and leases; or these are in a database

No name from a user becomes part of a path, and nothing is reached through a link. The manifests are authoritative; an
index of them is in the user's cache.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaluand.core.errors import EngineError, Fault, NotFound, SpecError, plural, pluralize, warn
from evaluand.core.identity import decode, encode
from evaluand.store import manifests
from evaluand.store.addresses import Address
from evaluand.store.catalog import Catalog
from evaluand.store.checks import ID
from evaluand.store.digests import damaged_tables, resized_tables
from evaluand.store.folder import Folder
from evaluand.store.folder_journals import REMOVED, is_known, stray, strays_in_journal
from evaluand.store.journal import WorkLog
from evaluand.store.journals import Journals
from evaluand.store.kinds import kind_names
from evaluand.store.manifests import JOURNAL, LOST, OPEN, SEALED, TABLE_FILE, UNKNOWN_KIND, DamagedFile, as_fault
from evaluand.store.store import ALL, FORMAT, Draft, Manifest, Ref, Rows, check_name, with_seal
from evaluand.store.temporary import is_being_written, is_temporary

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.store.parquet import TableWriter

REFS: Final = "refs"
_PENDING_BYTES: Final = 1 << 26
"""Of the rows of all tables of a draft that wait for their row groups."""
_LOST_JOURNAL: Final = "is missing, and with it what was finished"
REF_FILE: Final = re.compile(r"[0-9a-f]{32}\.json")
_CHECK_FILE: Final = re.compile(r"check-([0-9a-f]{32})\.json")
_OF_ARTIFACT: Final = re.compile(rf"manifest\.json|open\.json|journal|{_CHECK_FILE.pattern}|{TABLE_FILE.pattern}")


class FolderStore:
    """Stores artifacts as files.

    Args:
        top: the folder of the files.
        journals: the journals of open artifacts.
        root: where the store is, as `--store` takes it.

    Attributes:
        opened: the manifest of the artifact opened last, so that an interruption can name what to resume.
    """

    def __init__(self, top: Folder, journals: Journals, root: Path | Address) -> None:
        self.top, self.journals, self.root = top, journals, root
        self.catalog = Catalog(top)
        self.opened: Manifest | None = None

    def __fingerprint__(self) -> Any:
        """Nothing: where results are kept says nothing of code that refers to it."""
        return ()

    def ids(self, kind: str, begin: str = "", *, damaged: bool = False) -> list[str]:
        return self.catalog.ids(kind, begin, damaged=damaged)

    def artifacts(self) -> list[tuple[str, str]]:
        """The (kind, id) of every artifact, whether or not it can be read, from the folders alone.

        A folder with tables or finished work and without a manifest counts, unless it is being written.
        """
        found = []
        for above in self.folders():
            kind = above.path.name
            ids = [entry for entry in above.entries() if ID.fullmatch(entry.name)]
            folders = [entry.name for entry in ids if entry.is_folder]
            sealed, opened = above.states(folders, SEALED), above.states(folders, OPEN)
            bare = {id for id, *states in zip(folders, sealed, opened, strict=True) if states == [None, None]}
            lost = {id for id in bare if _is_lost(above / id)}
            found += [(kind, entry.name) for entry in ids if entry.name not in bare - lost]
        return found

    def manifest(self, kind: str, id: str) -> Manifest:
        folder = self.folder(kind, id)
        manifest = manifests.read_manifest(folder, kind, id)
        if manifest is None:
            if manifests.has_lost_manifest(folder):
                raise EngineError(f"{folder.path}: {LOST}")
            raise NotFound(f"no {kind} {id} in {self.root}")
        return manifest

    def is_sealed(self, kind: str, id: str) -> bool:
        return self.folder(kind, id).state(SEALED) is not None

    def open(self, manifest: Manifest) -> Manifest:
        self.opened = self._open(manifest)
        return self.opened

    def _open(self, manifest: Manifest) -> Manifest:
        kind, id = manifest["kind"], manifest["id"]
        folder = self.folder(kind, id)
        if self.is_sealed(kind, id):
            return self.manifest(kind, id)
        opened = with_seal(manifest | {"format": FORMAT})
        content = manifests.readable_text(opened, sealed=False)
        if self._has_lost_journal(kind, id):
            warn(f"{folder.path / JOURNAL}: {_LOST_JOURNAL}")
        with _needing(folder):
            self.journals.make(kind, id)
            folder.make()
            stored = _open(folder, opened, content)
        if self.is_sealed(kind, id):  # another process sealed it meanwhile
            self.sweep(self.manifest(kind, id))
            return self.manifest(kind, id)
        return stored

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        self.folder(kind, id)  # which refuses what is not an id
        return self.journals.lane(kind, id, name, slots)

    def draft(self, kind: str, id: str) -> Draft:
        return _FolderDraft(self, self.folder(kind, id))

    def read(
        self, kind: str, id: str, table: str, columns: list[str] | None = None, rows: Rows = ALL
    ) -> Iterator[pa.RecordBatch]:
        entry = self.manifest(kind, id).get("tables", {}).get(table)
        if entry is None:
            raise NotFound(f"no table {table!r} in {kind} {id}")
        from evaluand.store.parquet import read_table  # on use: listing needs no Arrow

        return read_table(self.folder(kind, id), entry, columns, rows)

    def damage(self, kind: str, id: str, *, quick: bool = False) -> list[Fault]:
        folder = self.folder(kind, id)
        try:
            manifest = self.manifest(kind, id)
        except NotFound:
            raise
        except EngineError as error:
            return [manifests.blocked_fault(folder) or as_fault(folder.path, error)]
        if "digest" in manifest:
            return (resized_tables if quick else damaged_tables)(folder, manifest["tables"])
        if self._has_lost_journal(kind, id):
            hint = "restore it, or start the same work again, which continues without it"
            return [Fault(str(folder.path / JOURNAL), f"{_LOST_JOURNAL}; {hint}")]
        return [] if quick else self.journals.find_damage(kind, id)

    def _has_lost_journal(self, kind: str, id: str) -> bool:
        """Whether an open artifact has no journal, although it had one from its beginning."""
        looks = (self.folder(kind, id).states([SEALED, OPEN]) for _ in range(2))  # who seals it removes the journal
        is_open = (sealed is None and opened is not None for sealed, opened in looks)
        return next(is_open) and not self.journals.exists(kind, id) and next(is_open)

    def checks(self, kind: str, id: str) -> dict[str, dict[str, Any]]:
        folder, outcomes = self.folder(kind, id), dict[str, dict[str, Any]]()
        for name in folder.files():
            if (file := _CHECK_FILE.fullmatch(name)) is not None:
                with suppress(EngineError, FileNotFoundError, ValueError):  # the check is made again
                    outcome = decode(folder.read(name))
                    if isinstance(outcome, dict) and outcome == with_seal(outcome):
                        outcomes[file[1]] = outcome
        return outcomes

    def add_check(self, kind: str, id: str, key: str, outcome: Mapping[str, Any]) -> None:
        with suppress(EngineError, FileNotFoundError):  # a store that is only read: each process checks
            self.folder(kind, id).put_if_absent(f"check-{key}.json", encode(with_seal(dict(outcome))))

    def find(self, kind: str, origin: str) -> list[str]:
        return self.catalog.find(kind, origin)

    def refer(self, name: str, kind: str, id: str, about: Mapping[str, Any] = {}) -> None:
        folder = self.top / REFS
        with _needing(folder):
            folder.make()
            folder.put(manifests.ref_file(check_name(name), kind), manifests.ref_text(Ref(name, kind, id), about))

    def about(self, name: str, kind: str) -> Mapping[str, Any]:
        with suppress(EngineError, FileNotFoundError):
            return manifests.read_ref(self.top / REFS, manifests.ref_file(name, kind))[1]
        return {}

    def refs(self) -> list[Ref]:
        refs = [ref for _, ref in self.catalog.refs()]
        if damaged := sum(isinstance(ref, Fault) and ref.code != UNKNOWN_KIND for ref in refs):
            names = f"{plural(damaged, 'name')} {pluralize(damaged, 'is', 'are')} damaged"
            warn(f"{names}: what had {pluralize(damaged, 'it', 'them')} goes by its id; see `evaluand verify`")
        return sorted(ref for ref in refs if isinstance(ref, Ref))

    def named(self, name: str) -> list[Ref]:
        return [ref for _, ref in self._read_names(name) if isinstance(ref, Ref)]

    def damaged_kinds(self, name: str) -> list[str]:
        return [kind for kind, ref in self._read_names(name) if isinstance(ref, Fault)]

    def _read_names(self, name: str) -> Iterator[tuple[str, Ref | Fault]]:
        """By kind, what the file of a name says, or why it cannot be read."""
        folder = self.top / REFS
        try:
            check_name(name)
        except SpecError:
            return
        for kind in kind_names() if not folder.blocked() else ():
            file = manifests.ref_file(name, kind)
            try:
                yield kind, manifests.read_ref(folder, file)[0]
            except FileNotFoundError:
                continue
            except EngineError as error:
                yield kind, as_fault(folder.path / file, error)

    def ref_files(self) -> Iterator[tuple[str, Ref]]:
        """The files of all names; `damaged_refs` lists those that cannot be read."""
        return ((file, ref) for file, ref in self.catalog.refs() if isinstance(ref, Ref))

    def damaged_refs(self) -> list[Fault]:
        """The names that cannot be read, or refer to an artifact that is not in the store."""
        return [fault for file, ref in self.catalog.refs() if (fault := self._ref_fault(file, ref))]

    def ref_damage(self, file: str) -> Fault | None:
        """Why the name in a file cannot be used; None if it can, or if the file does not exist."""
        folder = self.top / REFS
        try:
            return self._ref_fault(file, manifests.read_ref(folder, file)[0])
        except FileNotFoundError:
            return None
        except EngineError as error:
            return self._ref_fault(file, as_fault(folder.path / file, error))

    def _ref_fault(self, file: str, ref: Ref | Fault) -> Fault | None:
        if isinstance(ref, Fault):
            return replace(ref, message=f"the name in this file {ref.message}")
        if self._exists(ref.kind, ref.id):
            return None
        message = f"the name {ref.name!r} refers to an artifact that is not in this store"
        return Fault(str(self.top.path / REFS / file), message)

    def blocked(self) -> list[Fault]:
        """Folders that are not read: something else is in their place, or no package registers what they hold."""
        faults = [manifests.blocked_fault(self.top / name) for name in (REFS, *kind_names())]
        unknown = [name for name in self.top.folders() if name not in (REFS, *kind_names())]
        held = [name for name in unknown if any(map(ID.fullmatch, (self.top / name).folders()))]
        return [
            *filter(None, faults),
            *(as_fault(self.top.path / name, manifests.unknown_kind(name)) for name in held),
        ]

    def folders(self) -> list[Folder]:
        """The folders of the kinds that can be read."""
        folders = [self.top / kind for kind in kind_names()]
        return [folder for folder in folders if not folder.blocked()]

    def misplaced(self) -> list[Fault]:
        """Manifests that no reader finds: in folders whose name is not an id."""
        found = []
        for folder in self.folders():
            names = [name for name in folder.folders() if not (ID.fullmatch(name) or REMOVED.fullmatch(name))]
            for name, *states in zip(names, folder.states(names, SEALED), folder.states(names, OPEN), strict=True):
                if any(isinstance(state, os.stat_result) for state in states):
                    message = "has a manifest, but its name is not an id; restore the name, or move the folder"
                    found.append(Fault(str(folder.path / name), message))
        return found

    def strays(self) -> list[Fault]:
        """What evaluand did not make; nothing reads it."""
        root = self.top
        names = [] if (root / REFS).blocked() else (root / REFS).entries()
        found = [stray(root / REFS, entry) for entry in names if not is_known(entry.name, REF_FILE)]
        for above in self.folders():
            for entry in above.entries():
                if not is_known(entry.name, ID):
                    found.append(stray(above, entry))
                elif entry.is_folder:
                    with suppress(EngineError):  # that it cannot be read is a fault of the artifact
                        found += _strays_in(above / entry.name)
        return found

    def sweep(self, manifest: Manifest) -> None:
        """Removes what a complete artifact no longer needs: only names that evaluand makes, and nothing in use."""
        kind, id = manifest["kind"], manifest["id"]
        folder = self.folder(kind, id)
        with suppress(EngineError):  # the artifact is complete; `evaluand gc` removes the rest
            for name in unneeded_files(folder, manifest):
                folder.remove(name)
            self.journals.remove(kind, id, folder)

    def _exists(self, kind: str, id: str) -> bool:
        try:
            folder = self.folder(kind, id)
            return folder.states([SEALED, OPEN]) != [None, None] or manifests.has_lost_manifest(folder)
        except EngineError:  # a fault of the artifact
            return True

    def folder(self, kind: str, id: str) -> Folder:
        """The folder of an artifact."""
        if kind not in kind_names() or not ID.fullmatch(str(id)):
            raise NotFound(f"{kind} {id!r}: not an id in this store")  # perhaps of a manifest of somebody else
        return self.top / kind / id


class _FolderDraft:
    def __init__(self, store: FolderStore, folder: Folder) -> None:
        self._store, self._folder = store, folder
        self._folder.make()
        self._writers: dict[str, TableWriter] = {}

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        from evaluand.store.parquet import TableWriter

        if table not in self._writers:
            with _needing(self._folder):
                self._writers[table] = TableWriter(self._folder, table, batch.schema)
        self._writers[table].append(batch)
        writers = self._writers.values()
        if sum(writer.pending_bytes for writer in writers) > _PENDING_BYTES:
            max(writers, key=attrgetter("pending_bytes")).flush()

    def seal(self, manifest: Manifest) -> Manifest:
        # raises before the tables are complete
        manifests.readable_text(manifest | {"format": FORMAT, "tables": {}}, sealed=True)
        with _needing(self._folder):
            entries = {name: writer.close() for name, writer in self._writers.items()}
            self._folder.sync()
            sealed = with_seal(manifest | {"format": FORMAT, "tables": entries})
            if not self._folder.put_if_absent(SEALED, manifests.manifest_text(sealed)):
                sealed = self._store.manifest(manifest["kind"], manifest["id"])  # that of the process that was first
                self._folder.sync()  # the first process may not have come to it
            self._store.sweep(sealed)
            return sealed

    def discard(self) -> None:
        for writer in self._writers.values():
            writer.discard()


@contextmanager
def _needing(folder: Folder) -> Iterator[None]:
    """A context that needs the files which are being written in a folder."""
    try:
        yield
    except FileNotFoundError:
        reason = "another process has removed what was being written, as `evaluand gc` does if the dates differ"
        raise EngineError(f"{folder.path}: {reason}; run the same command again") from None


def _open(folder: Folder, manifest: Manifest, content: bytes) -> Manifest:
    """Writes the manifest of an open artifact unless there is one; a damaged one is written again."""
    if folder.put_if_absent(OPEN, content):
        return manifest
    folder.sync()  # the process that has written it may not have come to it
    try:
        stored = manifests.read_manifest(folder, manifest["kind"], manifest["id"], OPEN)
        folder.touch(OPEN)  # it is in use again, not abandoned
    except DamagedFile as error:
        warn(f"{folder.path / OPEN}: {error.reason}; it is written again, and the finished work is continued")
        stored = None
    if stored is None:
        folder.put(OPEN, content)
    return stored or manifest


def _is_lost(folder: Folder) -> bool:
    """Whether a folder without a manifest may be that of an artifact: with tables, or unreadable."""
    try:
        return manifests.has_lost_manifest(folder)
    except EngineError:
        return True


def _strays_in(folder: Folder) -> list[Fault]:
    """What evaluand did not make in the folder of an artifact, its journal and the folders of its logs."""
    found = []
    for entry in folder.entries():
        if entry.name == JOURNAL and entry.is_folder:
            found += strays_in_journal(folder / JOURNAL)
        elif not entry.is_file or not is_known(entry.name, _OF_ARTIFACT):
            found.append(stray(folder, entry))
    return found


def unneeded_files(folder: Folder, manifest: Manifest, *, elsewhere: bool = True) -> list[str]:
    """The files in the folder of a sealed artifact that evaluand made and no longer needs."""
    needed = {entry["file"] for entry in manifest["tables"].values()}
    return [
        name
        for name in folder.files()
        if name == OPEN
        or (TABLE_FILE.fullmatch(name) and name not in needed)
        or (is_temporary(name) and not is_being_written(name, elsewhere=elsewhere))
    ]


def removable_files(folder: Folder) -> list[str]:
    """The names in the folder of an artifact that evaluand makes, without the journal."""
    return [
        entry.name
        for entry in folder.entries()
        if not entry.is_folder
        and entry.name != JOURNAL
        and (_OF_ARTIFACT.fullmatch(entry.name) or is_temporary(entry.name))
    ]
