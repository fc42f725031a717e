"""The catalog: what the manifests and names of a store say, without reading all of them again.

A row counts only while the file that it was read from has the same time, size and inode, so the catalog may be deleted
or out of date at any time. The rows of a large store are stored in the user's cache, never in the store, which may come
from somebody else or be read-only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypedDict

import orjson

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, Fault
from evaluand.store.folder import Folder, State
from evaluand.store.manifests import (
    LOST,
    OPEN,
    SEALED,
    as_fault,
    blocked_fault,
    has_lost_manifest,
    read_manifest,
    read_ref,
)
from evaluand.store.shapes import ID
from evaluand.store.store import KINDS, Manifest, Ref
from evaluand.store.user_cache import cache_place, file_prefix, remove_unused

DAMAGED: Final = "damaged"
SEALED_STATUS: Final = "sealed"
OPEN_STATUS: Final = "open"
_LAYOUT: Final = 5  # of the stored rows, and of what is validated before they are stored; others are not read
_FEW: Final = 64  # files that are read again sooner than stored
_MOST_BYTES: Final = 1 << 30
_REFS: Final = "refs"

_Row = list[Any]  # [time, size, inode] of the file, and what was read from it; or what stays as it is


class Entry(TypedDict):
    """An artifact as the catalog has it: `status` is open, sealed or damaged, and `damage` says why.

    Memory depends on the number of artifacts: names, work, counts, usage and costs are bounded.
    """

    kind: str
    id: str
    name: str | None
    created: str | None
    work: list[str]
    status: str
    digest: str | None
    counts: dict[str, Any]
    usage: dict[str, Any]
    spent: dict[str, Any]
    damage: str


class Catalog:
    """The artifacts and names of a store.

    Args:
        top: the store's folder.
    """

    def __init__(self, top: Folder) -> None:
        self._root = top
        self._rows: dict[str, dict[str, _Row]] = {}  # by kind, or `refs`, and by id, or name of a file
        self._works: dict[str, dict[str, _Row]] = {}  # by kind and id: when it was made, and by which work
        self._is_loaded = False

    def entries(self, kind: str | None = None) -> list[Entry]:
        """All artifacts [of a kind], newest first; last those whose manifest is damaged."""
        found = [entry for each in ([kind] if kind else KINDS) for entry in self._entries(each)]
        found.sort(key=lambda entry: entry["id"])
        found.sort(key=lambda entry: entry["created"] or "", reverse=True)
        return found

    def ids(self, kind: str, *, damaged: bool = False) -> list[str]:
        """The ids of a kind, sorted, with or without those whose manifest is damaged."""
        return sorted(entry["id"] for entry in self._entries(kind) if damaged or entry["status"] != DAMAGED)

    def find(self, kind: str, work: str) -> list[str]:
        """The ids of the artifacts made by the same work, newest first.

        An id stands for one work, so manifests that were read once are not looked at again, also if they have changed.
        """
        above = self._root / kind
        if above.blocked():
            return []
        if not self._works:
            self._works = _load(self._file("works"))
        known, ids = self._works.setdefault(kind, {}), above.names()
        unknown = [id for id in ids if id not in known and ID.fullmatch(id)]
        for id in unknown:
            with suppress(FileNotFoundError, EngineError):  # being made or removed, damaged, or no folder
                entry = _read_entry(above / id, kind, id)
                known[id] = [entry["created"] or "", entry["work"]]
        if len(unknown) > _FEW:
            there = {*ids}
            self._works[kind] = known = {id: row for id, row in known.items() if id in there}
            _save(self._file("works"), self._works)
        found = [id for id in ids if id in known and work in known[id][1]]
        return sorted(found, key=lambda id: known[id][0], reverse=True)

    def refs(self) -> Iterator[tuple[str, Ref | Fault]]:
        """The files of names, each with its name, or why it cannot be read."""
        folder = self._root / _REFS
        if folder.blocked():
            return
        files = [entry.name for entry in folder.entries() if entry.name.endswith(".json")]
        states = dict(zip(files, folder.states(files), strict=True))
        for file, row in self._read_changed(_REFS, states, lambda file: [*read_ref(folder, file)]):
            yield file, row if isinstance(row, Fault) else Ref(*row)

    def _entries(self, kind: str) -> Iterator[Entry]:
        above = self._root / kind
        if above.blocked():
            return
        found = [entry for entry in above.entries() if ID.fullmatch(entry.name)]
        folders = [entry.name for entry in found if entry.is_folder]
        states = dict(zip(folders, above.states(folders, SEALED), strict=True))
        others = [id for id, state in states.items() if state is None]
        states |= zip(others, above.states(others, OPEN), strict=True)
        with suppress(FileNotFoundError):  # another process has just removed it
            above.hold_open()
        try:
            rows = self._read_changed(kind, states, lambda id: _read_entry(above / id, kind, id))
        finally:
            above.close()
        for id, row in rows:
            yield _entry(kind, id, DAMAGED, damage=row.message) if isinstance(row, Fault) else row
        for id, state in states.items():
            if state is None and (damage := _damage_without_manifest(above / id)):
                yield _entry(kind, id, DAMAGED, damage=damage)
        for entry in found:
            if not entry.is_folder and (fault := blocked_fault(above / entry.name)):
                yield _entry(kind, entry.name, DAMAGED, damage=fault.message)

    def _read_changed(self, part: str, states: dict[str, State], read: Callable[[str], Any]) -> list[tuple[str, Any]]:
        """The values of all files that exist; those of changed files are read, with a `Fault` where this fails."""
        on_disk = {
            name: [s.st_mtime_ns, s.st_size, s.st_ino] for name, s in states.items() if isinstance(s, os.stat_result)
        }
        rows = self._known(part, on_disk)
        above = self._root.path / part
        faults = {name: as_fault(above / name, s) for name, s in states.items() if isinstance(s, EngineError)}
        n_read = 0
        for name, state in on_disk.items():
            if name in rows:
                continue
            try:
                rows[name] = [state, read(name)]
                n_read += 1
            except FileNotFoundError:  # another process has just removed it
                continue
            except EngineError as error:
                faults[name] = as_fault(above / name, error)
        self._rows[part] = rows
        if n_read > _FEW:
            self._save()
        return [(name, faults.get(name) or rows[name][1]) for name in states if name in faults or name in rows]

    def _known(self, part: str, on_disk: dict[str, list[int]]) -> dict[str, _Row]:
        """The rows whose files are unchanged, from the stored catalog if many are missing."""
        known = self._rows.get(part, {})
        if not self._is_loaded and len(on_disk) - len(known) > _FEW:
            self._is_loaded = True
            self._rows = _load(self._file()) | self._rows
            known = self._rows.get(part, {})
        return {name: row for name, row in known.items() if row[0] == on_disk.get(name)}

    def _file(self, part: str = "") -> str:
        """The name of the stored catalog, or of a part of it: a digest of the store's path."""
        return f"{file_prefix(self._root.place, part)}.json"

    def _save(self) -> None:
        self._is_loaded = True
        _save(self._file(), self._rows)


def _read_entry(folder: Folder, kind: str, id: str) -> Entry:
    manifest = read_manifest(folder, kind, id)
    if manifest is None:
        raise FileNotFoundError
    return _entry(kind, id, SEALED_STATUS if "digest" in manifest else OPEN_STATUS, manifest)


def _damage_without_manifest(folder: Folder) -> str:
    """What is damaged in the folder of an artifact without a manifest; an empty text if it is no artifact."""
    try:
        return LOST if has_lost_manifest(folder) else ""
    except EngineError as error:
        return as_fault(folder.path, error).message


def _entry(kind: str, id: str, status: str, manifest: Manifest | None = None, damage: str = "") -> Entry:
    read = manifest or {}
    return {
        "kind": kind,
        "id": id,
        "name": read.get("name"),
        "created": read.get("created"),
        "work": read.get("work", []),
        "status": status,
        "digest": read.get("digest"),
        "counts": _countable(read.get("counts", {})),
        "usage": _countable(read.get("usage", {})),
        "spent": _countable(read.get("spent", {})),
        "damage": damage,
    }


def _countable(counts: dict[str, Any]) -> dict[str, Any]:
    """Counts, usage or costs of an artifact; none if they are very long, as only those of forged manifests are."""
    return counts if len(counts) <= _MOST_COUNTS and len(orjson.dumps(counts)) <= _MOST_COUNTS_BYTES else {}


_MOST_COUNTS: Final = 10_000
_MOST_COUNTS_BYTES: Final = 1 << 20


def _load(file: str) -> dict[str, dict[str, _Row]]:
    """The stored rows; none if the file is missing, damaged or of another layout."""
    with suppress(FileNotFoundError, EngineError, ValueError):
        digest, _, content = cache_place("catalogs").read(file, _MOST_BYTES).partition(b"\n")
        if digest == ids.digest_of_text(content).hex().encode():
            stored = orjson.loads(content)
            return stored["rows"] if stored["layout"] == _LAYOUT else {}
    return {}


def _save(file: str, rows: dict[str, dict[str, _Row]]) -> None:
    """Stores rows where the cache can be written; without it each process reads all manifests."""
    content = orjson.dumps({"layout": _LAYOUT, "rows": rows})
    folder = cache_place("catalogs")
    with suppress(EngineError, FileNotFoundError):
        folder.make()
        if not folder.has_file(file):
            remove_unused(folder)
        folder.put(file, ids.digest_of_text(content).hex().encode() + b"\n" + content, durable=False)
