"""Verification: whether an artifact is intact, from its bytes to its id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from evaluand.core import identity
from evaluand.core.errors import EngineError, EvaluandError, Fault, NotFound, describe_error
from evaluand.data.kind import DATASETS
from evaluand.store.kinds import Origin, find_kind, origins, origins_with_digests, singular
from evaluand.store.store import ALL, Manifest, Rows, Store

if TYPE_CHECKING:
    import pyarrow as pa

UNCHECKED: Final = "unchecked"
"""The code of the fault of an intact artifact that needs a damaged one to be checked."""


def verify(store: Store, kind: str, id: str) -> list[Fault]:
    """The faults of an artifact; empty if it is intact.

    Checks that the manifest is unchanged, that the files hold the bytes that were written, that the id is that of the
    spec, that digest and counts are those of the rows, and that the artifacts it was made from are in the store. Of an
    open artifact the id and the lines of the journal are checked; its damaged lines count as not done. Of an open
    recording, records are also reported that are missing, although other lines or leases show that they were written.

    Where an artifact is intact, but one that it was made from is damaged and needed for the check, the only fault has
    the code `UNCHECKED`.

    Raises:
        NotFound: the store has no such artifact.

    Example:
        >>> from evaluand import Dataset, MemoryStore
        >>> store = MemoryStore()
        >>> data = Dataset.from_rows([{"input": "a"}]).save(store)
        >>> verify(store, "datasets", data.id)
        []
    """
    return Verification(store).find_faults(kind, id)


class Verification:
    """The verification of many artifacts of a store, for which the digests of those seen before are remembered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._digests: dict[tuple[str, str], str | None] = {}

    def find_faults(self, kind: str, id: str) -> list[Fault]:
        """The faults of an artifact, see `verify`."""
        where = f"{kind} {id}"
        damage = self._store.damage(kind, id)
        store: Any = _ReadOnce(self._store)
        try:
            manifest = store.manifest(kind, id)
        except EngineError as error:
            return damage or [Fault(where, str(error))]
        faults = [*_identity(manifest, kind, id, where), *damage]
        self._digests[kind, id] = digest = manifest.get("digest")
        if digest is not None and damage:
            return faults
        try:
            if digest is None:
                return [*faults, *find_kind(kind).shown.find_open_faults(store, id)]
            faults += _content(store, manifest, where)
            faults += self._upstream(manifest, where)
        except Exception as error:  # a store from elsewhere may hold anything
            damaged = _damaged_origins(store, manifest)
            faults.append(_unchecked(where, damaged) if damaged else Fault(where, _describe(error)))
        return faults

    def _upstream(self, manifest: Manifest, where: str) -> Iterator[Fault]:
        spec = manifest["spec"]
        needed = [Origin(DATASETS, spec["dataset"])] if "dataset" in spec else []
        needed += [origin for origin in origins_with_digests(manifest) if origin not in needed]
        for kind, id, digest in needed:
            try:
                if (kind, id) not in self._digests:
                    self._digests[kind, id] = self._store.manifest(kind, id).get("digest")
            except NotFound:
                yield Fault(where, f"was made from {kind} {id}, which is not in this store")
                continue
            found = self._digests[kind, id]
            if digest is not None and found != digest:
                yield Fault(where, f"was made from {kind} {id} with the digest {digest}, which now has {found}")


class _ReadOnce:
    """A store of which manifests and small tables are read once, since a check looks at them from several sides."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._manifests: dict[tuple[str, str], Manifest] = {}
        self._tables: dict[tuple[str, str, str], list[pa.RecordBatch]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def manifest(self, kind: str, id: str) -> Manifest:
        if (kind, id) not in self._manifests:
            self._manifests[kind, id] = self._store.manifest(kind, id)
        return self._manifests[kind, id]

    def read(
        self, kind: str, id: str, table: str, columns: list[str] | None = None, rows: Rows = ALL
    ) -> Iterator[pa.RecordBatch]:
        key, entry = (kind, id, table), self.manifest(kind, id).get("tables", {}).get(table, {})
        if rows.at is not None or entry.get("bytes", _MOST_BYTES) >= _MOST_BYTES:
            return self._store.read(*key, columns, rows)
        if key not in self._tables:
            self._tables[key] = [*self._store.read(*key)]
        return (batch.select(columns) if columns else batch for batch in self._tables[key])


_MOST_BYTES: Final = 1 << 20  # of a table that is kept in memory


def _damaged_origins(store: Store, manifest: Manifest) -> list[str]:
    """The damaged artifacts that an artifact was made from, directly or not, such as `run 3f2a`."""
    damaged = []
    waiting, seen = [manifest], set[tuple[str, str]]()
    while waiting:
        with suppress(EngineError):  # the manifest does not say what it was made from
            for key in origins(waiting.pop()):
                if key in seen:
                    continue
                seen.add(key)
                try:
                    if not store.damage(*key):
                        waiting.append(store.manifest(*key))
                        continue
                except NotFound:
                    continue
                except EngineError:  # such as a link in the place of its folder
                    pass
                damaged.append(f"{singular(key[0])} {key[1]}")
    return damaged


def _unchecked(where: str, damaged: list[str]) -> Fault:
    verb = "is" if len(damaged) == 1 else "are"
    message = f"cannot be checked against {' and '.join(damaged)}, which {verb} damaged"
    return Fault(where, message, code=UNCHECKED)


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, EvaluandError) else f"cannot be read: {describe_error(error)}"


def _identity(manifest: Manifest, kind: str, id: str, where: str) -> Iterator[Fault]:
    if identity.artifact_id(kind, manifest["spec"], manifest["attempt"]) != id:
        yield Fault(where, "the manifest was changed: its spec does not match the id")


def _content(store: Store, manifest: Manifest, where: str) -> Iterator[Fault]:
    view = find_kind(manifest["kind"]).shown
    if (recounted := view.recount(store, manifest["id"])) is not None:
        digest, counts = recounted
        if digest != manifest["digest"]:
            yield Fault(where, f"its rows have the digest {digest}, but the manifest says {manifest['digest']}")
        if counts != manifest["counts"]:
            yield Fault(where, f"its rows count {counts}, but the manifest says {manifest['counts']}")
    yield from view.find_faults(store, manifest)
