"""A store in a folder: plain open files, of which the truth is made.

    refs/<digest of name>.json          a name and what it stands for
    <kind>/<id>/manifest.json           written last: the artifact is whole
    <kind>/<id>/<table>-<digest>.parquet
    <kind>/<id>/open.json               while open: what is being made
    <kind>/<id>/journal/<lane>/…        while open: finished work and leases
    catalog.db                          an index of the manifests, made anew when lost

No name given by a user becomes part of a path.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, Fault, NotFound
from evaluand.store.catalog import Catalog
from evaluand.store.journal import WorkLog
from evaluand.store.log import FileLog, SqliteLeases, is_alive
from evaluand.store.store import KINDS, Draft, Manifest, Ref, check_name, with_seal

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.store import parquet as tables

ID = re.compile(r"[0-9a-f]{32}")


class DirectoryStore:
    """Keeps artifacts as files below a folder.

    Args:
        root: the folder; made when first written to.

    Example:
        >>> import tempfile
        >>> DirectoryStore(tempfile.mkdtemp()).ids("runs")
        []
    """

    def __init__(self, root: str | os.PathLike[str] = ".evaluand") -> None:
        self.root = Path(root)
        self.catalog = Catalog(self.root)

    def ids(self, kind: str) -> list[str]:
        return self.catalog.ids(kind)

    def manifest(self, kind: str, id: str) -> Manifest:
        folder = self._folder(kind, id)
        manifest = _read_json(folder / "manifest.json") or _read_json(folder / "open.json")
        if manifest is None:
            raise NotFound(f"no {kind} {id} in {self.root}")
        return manifest

    def is_sealed(self, kind: str, id: str) -> bool:
        return (self._folder(kind, id) / "manifest.json").is_file()

    def open(self, manifest: Manifest) -> Manifest:
        folder = self._folder(manifest["kind"], manifest["id"])
        if self.is_sealed(manifest["kind"], manifest["id"]):
            return self.manifest(manifest["kind"], manifest["id"])
        (folder / "journal").mkdir(parents=True, exist_ok=True)
        stands = _put_if_absent(folder / "open.json", manifest)
        with suppress(FileNotFoundError):
            os.utime(folder / "open.json")  # work begins on it again: it is not abandoned
        if self.is_sealed(manifest["kind"], manifest["id"]):  # meanwhile
            _sweep(folder, self.manifest(manifest["kind"], manifest["id"]))
            return self.manifest(manifest["kind"], manifest["id"])
        self.catalog.put(stands)
        return stands

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        folder = self._folder(kind, id) / "journal" / _safe(name)
        with suppress(FileNotFoundError):  # where another process has sealed the artifact there is no journal
            folder.mkdir(exist_ok=True)
        return WorkLog(FileLog(folder), SqliteLeases(folder / "leases.db"), slots)

    def draft(self, kind: str, id: str) -> Draft:
        return _DirectoryDraft(self, kind, id)

    def read(self, kind: str, id: str, table: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        entry = self.manifest(kind, id).get("tables", {}).get(table)
        if entry is None:
            raise NotFound(f"no table {table!r} in {kind} {id}")
        batches: Iterator[pa.RecordBatch] = _tables().read_table(
            self._folder(kind, id) / _plain_file(entry["file"]), columns
        )
        return batches

    def damage(self, kind: str, id: str) -> list[Fault]:
        folder = self._folder(kind, id)
        faults = []
        for entry in self.manifest(kind, id).get("tables", {}).values():
            path = folder / _plain_file(entry["file"])
            if not path.is_file():
                faults.append(Fault(str(path), "the file is missing"))
            elif ids.digest_of_file(path) != entry["digest"]:
                faults.append(Fault(str(path), "the file is not what was written: its digest differs"))
        return faults

    def find(self, kind: str, work: str) -> list[str]:
        return self.catalog.find(kind, work)

    def refer(self, name: str, kind: str, id: str) -> None:
        folder = self.root / "refs"
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / f"{ids.digest([kind, check_name(name)]).hex()}.json", {"name": name, "kind": kind, "id": id})

    def refs(self) -> list[Ref]:
        return sorted(ref for ref, _ in self.ref_files())

    def ref_files(self) -> Iterator[tuple[Ref, Path]]:
        """All names with the files that keep them; `damaged_refs` tells of those that cannot be read."""
        for path in (self.root / "refs").glob("*.json"):
            with suppress(EngineError, KeyError):
                if entry := _read_json(path):
                    yield Ref(entry["name"], entry["kind"], entry["id"]), path

    def damaged_refs(self) -> list[Fault]:
        """The names that cannot be read, or stand for what is not there."""
        whole = {path: ref for ref, path in self.ref_files()}
        faults = []
        for path in sorted((self.root / "refs").glob("*.json")):
            if path not in whole:
                faults.append(Fault(str(path), "the name kept here cannot be read; remove the file, or run it again"))
            elif not (self._folder(whole[path].kind, whole[path].id)).is_dir():
                faults.append(Fault(str(path), f"the name {whole[path].name!r} stands for what is not in this store"))
        return faults

    def _folder(self, kind: str, id: str) -> Path:
        if kind not in KINDS or not ID.fullmatch(id):
            raise NotFound(f"{kind} {id!r}: not an id of this store")
        return self.root / kind / id


class _DirectoryDraft:
    def __init__(self, store: DirectoryStore, kind: str, id: str) -> None:
        self._store, self._kind, self._id = store, kind, id
        self._folder = store._folder(kind, id)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._writers: dict[str, tables.TableWriter] = {}

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        writer = self._writers.get(table)
        if writer is None:
            writer = self._writers[table] = _tables().TableWriter(self._folder, _safe(table), batch.schema)
        writer.append(batch)

    def seal(self, manifest: Manifest) -> Manifest:
        entries = {name: writer.close() for name, writer in self._writers.items()}
        stands = _put_if_absent(self._folder / "manifest.json", with_seal(manifest | {"tables": entries}))
        _sweep(self._folder, stands)
        self._store.catalog.put(stands)
        return stands

    def discard(self) -> None:
        for writer in self._writers.values():
            writer.discard()


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Removes what a whole artifact no longer needs; leaves the files of other drafts that are being written."""
    kept = {"manifest.json", *(entry["file"] for entry in manifest["tables"].values())}
    shutil.rmtree(folder / "journal", ignore_errors=True)
    for path in list(folder.iterdir()):
        if path.name not in kept and not path.is_dir() and not being_written(path):
            path.unlink(missing_ok=True)


def being_written(path: Path) -> bool:
    """Whether a file is a draft's, whose process lives; its number stands before the ending."""
    pid = path.stem.rpartition(".")[2]
    return path.suffix == ".tmp" and pid.isdigit() and is_alive(int(pid))


def _tables() -> Any:
    """The Parquet part, imported on use: listing and naming need no Arrow."""
    from evaluand.store import parquet as tables

    return tables


def _safe(name: str) -> str:
    """A file name for any name: what is plain stays readable, all else is told apart by a digest."""
    slug = re.sub(r"[^A-Za-z0-9]+", "_", name)[:40].strip("_")
    return slug if slug == name else f"{slug}-{ids.digest(name).hex()[:8]}"


def _plain_file(name: str) -> str:
    """A manifest's file name, refused when it would leave its folder."""
    if name != os.path.basename(name) or name in ("", ".", ".."):
        raise EngineError(f"a manifest names the file {name!r}, which lies outside its folder; the store is damaged")
    return name


def _read_json(path: Path) -> Manifest | None:
    try:
        value = ids.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError) as error:
        raise EngineError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise EngineError(f"{path}: not a manifest")
    return value


def _put_if_absent(path: Path, value: Manifest) -> Manifest:
    """Writes a file whole unless it is there; returns what stands."""
    temporary = _write(path, value)
    try:
        os.link(temporary, path)
    except FileExistsError:
        standing = _read_json(path)
        if standing is None:
            raise EngineError(f"{path}: vanished while it was read") from None
        return standing
    finally:
        temporary.unlink()
    _sync_folder(path.parent)
    return value


def _replace(path: Path, value: Manifest) -> None:
    os.replace(_write(path, value), path)


def _write(path: Path, value: Manifest) -> Path:
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(ids.encode(value, indent=True))
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
