"""Copies finished artifacts from one store to another, byte for byte.

An artifact has the same files in every store, so its tables are copied as they are, and its manifest last: then it is
complete. The digest of every table is computed from what was read, and again from what is in the target. What the
target has already is only compared, so a copy that was interrupted is continued by the same command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from shlex import quote
from typing import Any, NamedTuple

from evaluand.core.errors import EngineError
from evaluand.store.digests import damaged_tables, open_table
from evaluand.store.folder import Folder, NewFile, blocks
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import origins, singular
from evaluand.store.manifests import SEALED, file_name
from evaluand.store.store import Manifest, Ref, resolve

Key = tuple[str, str]


class Plan(NamedTuple):
    """What is copied.

    Attributes:
        keys: the (kind, id) of the artifacts, each after all that it was made from.
        names: the names that refer to them.
        left: the (kind, id) of open artifacts, which stay where their drivers are.
    """

    keys: list[Key]
    names: list[Ref]
    left: list[Key]


def plan_copy(source: FolderStore, names: Sequence[str] = ()) -> Plan:
    """What is copied from a store: some artifacts with all that they were made from, or everything.

    Args:
        names: names or ids of artifacts; all artifacts if there are none.

    Raises:
        NotFound: nothing has such a name; what an artifact was made from is missing.
        EngineError: a manifest is damaged; of everything, a folder or a name cannot be read.
    """
    wanted = [*dict.fromkeys(_expand(source, names) if names else _list_all(source))]
    keys: dict[Key, None] = {}
    for key in wanted:
        _add(source, key, keys)
    sealed = {key: None for key in keys if source.is_sealed(*key)}
    refs = [ref for ref in source.refs() if (ref.kind, ref.id) in sealed]
    return Plan([*sealed], refs, [key for key in keys if key not in sealed])


def copy_artifact(source: FolderStore, target: FolderStore, kind: str, id: str) -> int | None:
    """Copies a finished artifact; returns how many bytes its tables have, None if the target had it.

    Raises:
        EngineError: a file of the source is damaged; the target has something else, or stored something else.
    """
    manifest = source.manifest(kind, id)
    if target.is_sealed(kind, id):
        _compare(manifest, target.manifest(kind, id), target)
        return None
    above, folder = source.folder(kind, id), target.folder(kind, id)
    tables, content = manifest["tables"], above.read(SEALED)
    folder.make()
    with ExitStack() as stack:
        files: dict[str, NewFile] = {}  # all at once: while one is unfinished, `evaluand gc` leaves the artifact alone
        for name in tables:
            files[name] = folder.new_file(file_name(name))
            stack.callback(files[name].discard)
        for name, entry in tables.items():
            _copy_file(above, entry, files[name])
        for name, entry in tables.items():
            files[name].finish(entry["file"])
        for fault in damaged_tables(folder, tables):
            raise EngineError(f"{fault}; it was just copied; copy again")
        if not folder.put_if_absent(SEALED, content):
            _compare(manifest, target.manifest(kind, id), target)
    target.sweep(manifest)
    return sum(int(entry["bytes"]) for entry in tables.values())


def copy_name(source: FolderStore, target: FolderStore, ref: Ref) -> None:
    """Gives a copied artifact its name, with what belongs to it.

    Raises:
        EngineError: the name refers to another artifact in the target.
    """
    for known in target.named(ref.name):
        if known.kind == ref.kind and known.id != ref.id:
            what = f"{singular(ref.kind)} {known.id[:12]}"
            raise EngineError(
                f"{target.root}: the name {ref.name!r} refers to {what} there, so {ref.id[:12]} was copied without it"
            )
    target.refer(*ref, source.about(ref.name, ref.kind))


def _list_all(source: FolderStore) -> Iterator[Key]:
    for fault in (*source.blocked(), *source.damaged_refs()):
        raise EngineError(f"{fault.where}: {fault.message}; to copy without it, name what to copy")
    for entry in source.catalog.entries():
        if entry["damage"]:
            what = f"{singular(entry['kind'])} {entry['id']}"
            raise EngineError(f"{source.root}: {what} is damaged and cannot be copied: {entry['damage']}")
        yield entry["kind"], entry["id"]


def _expand(source: FolderStore, names: Sequence[str]) -> Iterator[Key]:
    for name in names:
        named = source.named(name)
        yield from [(ref.kind, ref.id) for ref in named] or [resolve(source, name)]


def _add(source: FolderStore, key: Key, keys: dict[Key, None]) -> None:
    """Adds an artifact after all that it was made from."""
    if key not in keys:
        for origin in origins(source.manifest(*key)):
            _add(source, origin, keys)
        keys[key] = None


def _copy_file(folder: Folder, entry: Mapping[str, Any], new: NewFile) -> None:
    with closing(open_table(folder, entry)) as file:  # which has validated its digest
        for block in blocks(file):
            new.write(block)


def _compare(manifest: Manifest, found: Manifest, target: FolderStore) -> None:
    """Checks that an artifact that is there already has the content of the one to copy."""
    kind, id = manifest["kind"], manifest["id"]
    if found.get("digest") != manifest["digest"]:
        raise EngineError(f"{target.root}: has another {singular(kind)} {id}; copy into another store")
    for fault in target.damage(kind, id):
        remedy = f"`evaluand gc --damaged --store {quote(str(target.root))}` removes what is damaged"
        raise EngineError(f"{fault}; {remedy}, then copy again")
