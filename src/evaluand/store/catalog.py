"""The catalog: what the manifests and names of a store say, without reading all of them again.

A row counts only while the file that it was read from has the same time, size and inode, so the catalog may be deleted
or out of date at any time. The rows of a large store are stored in the user's cache, never in the store, which may come
from somebody else or be read-only. Each kind has its own files there, so that who asks about one reads no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import starmap
from typing import Any, Final, TypedDict

import orjson

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, Fault
from evaluand.store import manifests
from evaluand.store.checks import ID
from evaluand.store.folder import Folder, State
from evaluand.store.kinds import found_by, kind_names
from evaluand.store.store import Ref
from evaluand.store.user_cache import cache_place, file_prefix, remove_unused

DAMAGED: Final = "damaged"
SEALED_STATUS: Final = "sealed"
OPEN_STATUS: Final = "open"
_LAYOUT: Final = 6  # of the stored rows, and of what is validated before they are stored; others are not read
_FEW: Final = 8  # files that are read again sooner than stored
_MOST_BYTES: Final = 1 << 30
_REFS: Final = "refs"

_Row = list[Any]  # time, size and inode of the file, then what was read from it; or what stays as it is
_READ: Final = 3  # where in a row that begins
_Values = list[Any]  # what was read from a file


class Entry(TypedDict):
    """An artifact as the catalog has it: `status` is open, sealed or damaged, and `damage` says why.

    Memory depends on the number of artifacts: names, counts, usage and costs are bounded.
    """

    kind: str
    id: str
    name: str | None
    created: str | None
    status: str
    digest: str | None
    counts: dict[str, Any]
    usage: dict[str, Any]
    spent: dict[str, Any]
    damage: str


_Artifact = tuple[str, str, "_Row | Fault"]  # kind, id, and what its manifest says, or why it cannot be read


class Entries:
    """Artifacts, newest first; last those that are damaged. There may be thousands: an entry is made when it is read.

    Attributes:
        n_damaged: how many are damaged.
    """

    def __init__(self, artifacts: Iterator[_Artifact]) -> None:
        self._artifacts = sorted(artifacts, key=lambda artifact: artifact[1])
        self._artifacts.sort(key=_created, reverse=True)
        self.n_damaged = sum(isinstance(artifact[2], Fault) for artifact in self._artifacts)

    def __len__(self) -> int:
        return len(self._artifacts)

    def __iter__(self) -> Iterator[Entry]:
        return starmap(_entry, self._artifacts)


class Catalog:
    """The artifacts and names of a store.

    Args:
        top: the store's folder.
    """

    def __init__(self, top: Folder) -> None:
        self._root = top
        self._rows: dict[str, dict[str, _Row]] = {}  # by kind, or `refs`, and by id, or name of a file
        self._made: dict[str, dict[str, _Row]] = {}  # by kind and id: when it was made, and by what it is found
        self._loaded: set[str] = set()

    def entries(self, kind: str | None = None) -> Entries:
        """All artifacts [of a kind]."""
        return Entries(found for each in ([kind] if kind else kind_names()) for found in self._artifacts(each))

    def ids(self, kind: str, begin: str = "", *, damaged: bool = False) -> list[str]:
        """The ids of a kind that begin so, sorted, with or without those whose manifest is damaged."""
        return sorted(id for _, id, row in self._artifacts(kind, begin) if damaged or not isinstance(row, Fault))

    def find(self, kind: str, origin: str) -> list[str]:
        """The ids of the artifacts made by a work or from an artifact, newest first.

        An id stands for what was asked, so manifests that were read once are not looked at again, also if they have
        changed.
        """
        above = self._root / kind
        if above.blocked():
            return []
        if kind not in self._made:
            self._made[kind] = _load(self._file(f"{kind}/made"))
        known, ids = self._made[kind], above.names()
        unknown = [id for id in ids if id not in known and ID.fullmatch(id)]
        for id in unknown:
            with suppress(FileNotFoundError, EngineError):  # being made or removed, damaged, or no folder
                known[id] = _read_made(above / id, kind, id)
        if len(unknown) > _FEW:
            there = {*ids}
            self._made[kind] = known = {id: row for id, row in known.items() if id in there}
            _save(self._file(f"{kind}/made"), known)
        found = [id for id in ids if id in known and origin in known[id][1]]
        return sorted(found, key=lambda id: known[id][0], reverse=True)

    def refs(self) -> Iterator[tuple[str, Ref | Fault]]:
        """The files of names, each with its name, or why it cannot be read."""
        folder = self._root / _REFS
        if folder.blocked():
            return
        files = [name for name in folder.names() if name.endswith(".json")]
        states = dict(zip(files, folder.states(files), strict=True))
        known = kind_names()
        for file, row in self._read_changed(_REFS, states, lambda file: [*manifests.read_ref(folder, file)[0]]).items():
            if isinstance(row, Fault):
                yield file, row
            elif (ref := Ref(*row[_READ:])).kind in known:
                yield file, ref
            else:  # it was read where its package was installed
                yield file, manifests.as_fault(folder.path / file, manifests.unknown_kind(ref.kind))

    def _artifacts(self, kind: str, begin: str = "") -> Iterator[_Artifact]:
        above = self._root / kind
        if above.blocked():
            return
        found = [entry for entry in above.entries() if entry.name.startswith(begin) and ID.fullmatch(entry.name)]
        folders = [entry.name for entry in found if entry.is_folder]
        states = dict(zip(folders, above.states(folders, manifests.SEALED), strict=True))
        others = [id for id, state in states.items() if state is None]
        states |= zip(others, above.states(others, manifests.OPEN), strict=True)
        with suppress(FileNotFoundError):  # another process has just removed it
            above.hold_open()
        try:
            rows = self._read_changed(kind, states, lambda id: _read_entry(above / id, kind, id), whole=not begin)
        finally:
            above.close()
        for id, row in rows.items():
            yield kind, id, row
        for id, state in states.items():
            if state is None and (damage := _damage_without_manifest(above / id)):
                yield kind, id, Fault("", damage)
        for entry in found:
            if not entry.is_folder and (fault := manifests.blocked_fault(above / entry.name)):
                yield kind, entry.name, fault

    def _read_changed(
        self, part: str, states: dict[str, State], read: Callable[[str], _Values], *, whole: bool = True
    ) -> dict[str, _Row | Fault]:
        """The rows of the files that exist; those of changed files are read, with a `Fault` where this fails.

        Args:
            whole: whether these are all files of the part.
        """
        known = self._known(part, len(states))
        rows: dict[str, _Row] = {}
        above = self._root.path / part
        found: dict[str, _Row | Fault] = {}
        n_read = 0
        for name, state in states.items():
            if state is None:
                continue
            if isinstance(state, EngineError):
                found[name] = manifests.as_fault(above / name, state)
                continue
            row = known.get(name)
            if row is not None and row[:_READ] == [state.st_mtime_ns, state.st_size, state.st_ino]:
                found[name] = rows[name] = row
                continue
            try:
                found[name] = rows[name] = [state.st_mtime_ns, state.st_size, state.st_ino, *read(name)]
                n_read += 1
            except FileNotFoundError:  # another process has just removed it
                continue
            except EngineError as error:
                found[name] = manifests.as_fault(above / name, error)
        self._rows[part] = rows if whole else known | rows
        if n_read > _FEW and whole:
            self._loaded.add(part)
            _save(self._file(part), rows)
        return found

    def _known(self, part: str, n: int) -> dict[str, _Row]:
        """The rows of a part, also from the stored catalog if many of the n that are asked for are missing."""
        known = self._rows.get(part, {})
        if part not in self._loaded and n - len(known) > _FEW:
            self._loaded.add(part)
            known = _load(self._file(part)) | known
        return known

    def _file(self, part: str) -> str:
        """The name of the stored rows of a part: a digest of the store's path and of the part."""
        return f"{file_prefix(self._root.place, part)}.json"


def _read_made(folder: Folder, kind: str, id: str) -> _Row:
    """When an artifact was made, and by what it is found."""
    manifest = manifests.read_manifest(folder, kind, id)
    if manifest is None:
        raise FileNotFoundError
    return [manifest.get("created") or "", found_by(manifest)]


def _read_entry(folder: Folder, kind: str, id: str) -> _Values:
    """The arguments of `_entry`, without the last ones that are empty: there are thousands of entries."""
    manifest = manifests.read_manifest(folder, kind, id)
    if manifest is None:
        raise FileNotFoundError
    status = SEALED_STATUS if "digest" in manifest else OPEN_STATUS
    values = [status, *(manifest.get(name) for name in _FIELDS[1:4])]
    values += [_countable(manifest.get(name, {})) for name in _FIELDS[4:]]
    while not values[-1]:
        values.pop()
    return values


def _damage_without_manifest(folder: Folder) -> str:
    """What is damaged in the folder of an artifact without a manifest; an empty text if it is no artifact."""
    try:
        return manifests.LOST if manifests.has_lost_manifest(folder) else ""
    except EngineError as error:
        return manifests.as_fault(folder.path, error).message


_FIELDS: Final = ("status", "name", "created", "digest", "counts", "usage", "spent")


_CREATED: Final = _READ + _FIELDS.index("created")


def _created(artifact: _Artifact) -> str:
    row = artifact[2]
    return "" if isinstance(row, Fault) else row[_CREATED] or ""


def _entry(kind: str, id: str, row: _Row | Fault) -> Entry:
    """An artifact; of a row only the first fields are known."""
    damage, values = (row.message, [DAMAGED]) if isinstance(row, Fault) else ("", row[_READ:])
    entry: Any = {"kind": kind, "id": id} | dict.fromkeys(_FIELDS[:4]) | {name: {} for name in _FIELDS[4:]}
    return entry | dict(zip(_FIELDS, values, strict=False)) | {"damage": damage}  # type: ignore[no-any-return]


def _countable(counts: dict[str, Any]) -> dict[str, Any]:
    """Counts, usage or costs of an artifact; none if they are very long, as only those of forged manifests are."""
    return counts if len(counts) <= _MOST_COUNTS and len(orjson.dumps(counts)) <= _MOST_COUNTS_BYTES else {}


_MOST_COUNTS: Final = 10_000
_MOST_COUNTS_BYTES: Final = 1 << 20


def _load(file: str) -> dict[str, _Row]:
    """The stored rows; none if the file is missing, damaged or of another layout."""
    with suppress(FileNotFoundError, EngineError, ValueError):
        digest, _, content = cache_place("catalogs").read(file, _MOST_BYTES).partition(b"\n")
        if digest == ids.digest_of_text(content).hex().encode():
            stored = orjson.loads(content)
            return stored["rows"] if stored["layout"] == _LAYOUT else {}
    return {}


def _save(file: str, rows: dict[str, _Row]) -> None:
    """Stores rows where the cache can be written; without it each process reads all manifests."""
    content = orjson.dumps({"layout": _LAYOUT, "rows": rows})
    folder = cache_place("catalogs")
    with suppress(EngineError, FileNotFoundError):
        folder.make()
        if not folder.has_file(file):
            remove_unused(folder)
        folder.put(file, ids.digest_of_text(content).hex().encode() + b"\n" + content, durable=False)
