"""A store in a folder: files in open formats.

    refs/<digest of name>.json          a name and the artifact it refers to
    <kind>/<id>/manifest.json           written last: the artifact is complete
    <kind>/<id>/<table>-<digest>.parquet
    <kind>/<id>/open.json               while open: the specification
    <kind>/<id>/journal/<log>/…         while open: finished work and leases
    catalog.db                          an index of the manifests, rebuilt if lost

No name from a user becomes part of a path. The manifests are authoritative: the catalog is updated from them whenever
the folders have something new, so it may be deleted at any time.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, Fault, NotFound
from evaluand.core.system import has_locks, is_alive, put_if_absent, sync_folder
from evaluand.store.io import Folder
from evaluand.store.journal import WorkLog
from evaluand.store.leases import FileLeases
from evaluand.store.log import FileLog, find_journal_damage
from evaluand.store.store import KINDS, Draft, Manifest, Ref, check_name, with_seal

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.store import parquet as tables


ID = re.compile(r"[0-9a-f]{32}")


class DirectoryStore:
    """Stores artifacts as files in a folder.

    Args:
        root: the folder; created by the first write.

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
        stored = _put_if_absent(folder / "open.json", manifest)
        with suppress(FileNotFoundError):
            os.utime(folder / "open.json")  # it is in use again, not abandoned
        if self.is_sealed(manifest["kind"], manifest["id"]):  # another process sealed it meanwhile
            _sweep(folder, self.manifest(manifest["kind"], manifest["id"]))
            return self.manifest(manifest["kind"], manifest["id"])
        self.catalog.put(stored)
        return stored

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        self._folder(kind, id)  # checks the names
        log_name = _file_name(name)
        folder = Folder(self.root, kind, id, "journal", log_name)
        log = FileLog(folder, f"{kind}/{id}/{log_name}")
        leases = FileLeases(folder, log)
        lane = WorkLog(log, leases, slots)
        leases.fence = lane.fence
        return lane

    def draft(self, kind: str, id: str) -> Draft:
        return _DirectoryDraft(self, kind, id)

    def read(self, kind: str, id: str, table: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        entry = self.manifest(kind, id).get("tables", {}).get(table)
        if entry is None:
            raise NotFound(f"no table {table!r} in {kind} {id}")
        batches: Iterator[pa.RecordBatch] = _import_parquet().read_table(
            self._folder(kind, id) / _check_file_name(entry["file"]), columns
        )
        return batches

    def damage(self, kind: str, id: str) -> list[Fault]:
        if not self.is_sealed(kind, id):
            return find_journal_damage(Folder(self.root, kind, id, "journal"), f"{kind}/{id}")
        folder = self._folder(kind, id)
        faults = []
        for entry in self.manifest(kind, id).get("tables", {}).values():
            path = folder / _check_file_name(entry["file"])
            if not path.is_file():
                faults.append(Fault(str(path), "the file is missing"))
            elif ids.digest_of_file(path) != entry["digest"]:
                faults.append(Fault(str(path), "the file has changed: its digest differs"))
        return faults

    def find(self, kind: str, work: str) -> list[str]:
        return self.catalog.find(kind, work)

    def refer(self, name: str, kind: str, id: str) -> None:
        folder = self.root / "refs"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{ids.digest([kind, check_name(name)]).hex()}.json"
        os.replace(_write(path, {"name": name, "kind": kind, "id": id}), path)

    def refs(self) -> list[Ref]:
        return sorted(ref for ref, _ in self.ref_files())

    def ref_files(self) -> Iterator[tuple[Ref, Path]]:
        """All names with their files; `damaged_refs` lists those that cannot be read."""
        for path in (self.root / "refs").glob("*.json"):
            with suppress(EngineError, KeyError):
                if entry := _read_json(path):
                    yield Ref(entry["name"], entry["kind"], entry["id"]), path

    def damaged_refs(self) -> list[Fault]:
        """The names that cannot be read, or refer to an artifact that is not in the store."""
        refs = {path: ref for ref, path in self.ref_files()}
        faults = []
        for path in sorted((self.root / "refs").glob("*.json")):
            if path not in refs:
                faults.append(
                    Fault(str(path), "the name in this file cannot be read; remove the file, or run it again")
                )
            elif not (self._folder(refs[path].kind, refs[path].id)).is_dir():
                faults.append(
                    Fault(str(path), f"the name {refs[path].name!r} refers to an artifact that is not in this store")
                )
        return faults

    def _folder(self, kind: str, id: str) -> Path:
        if kind not in KINDS or not ID.fullmatch(id):
            raise NotFound(f"{kind} {id!r}: not an id in this store")
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
            writer = self._writers[table] = _import_parquet().TableWriter(self._folder, _file_name(table), batch.schema)
        writer.append(batch)

    def seal(self, manifest: Manifest) -> Manifest:
        entries = {name: writer.close() for name, writer in self._writers.items()}
        stored = _put_if_absent(self._folder / "manifest.json", with_seal(manifest | {"tables": entries}))
        _sweep(self._folder, stored)
        self._store.catalog.put(stored)
        return stored

    def discard(self) -> None:
        for writer in self._writers.values():
            writer.discard()


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Removes what a complete artifact no longer needs, except files of drafts that are being written."""
    needed = {"manifest.json", *(entry["file"] for entry in manifest["tables"].values())}
    shutil.rmtree(folder / "journal", ignore_errors=True)
    for path in list(folder.iterdir()):
        if path.name not in needed and not path.is_dir() and not is_being_written(path):
            path.unlink(missing_ok=True)


def is_being_written(path: Path) -> bool:
    """Whether a file belongs to a draft of a living process, whose number precedes the suffix."""
    pid = path.stem.rpartition(".")[2]
    return path.suffix == ".tmp" and pid.isdigit() and is_alive(int(pid))


def _import_parquet() -> Any:
    """The Parquet module, imported on use: listing needs no Arrow."""
    from evaluand.store import parquet as tables

    return tables


def _file_name(name: str) -> str:
    """A file name for any name: simple names stay readable, others get a digest that distinguishes them."""
    slug = re.sub(r"[^A-Za-z0-9]+", "_", name)[:40].strip("_")
    return slug if slug == name else f"{slug}-{ids.digest(name).hex()[:8]}"


def _check_file_name(name: str) -> str:
    """Returns a file name from a manifest, unless it would leave the folder."""
    if name != os.path.basename(name) or name in ("", ".", ".."):
        raise EngineError(f"a manifest names the file {name!r} outside its folder; the store is damaged")
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
    """Writes a file atomically unless it exists; returns its content."""
    temporary = _write(path, value)
    if put_if_absent(temporary, path):
        sync_folder(path.parent)
        return value
    existing = _read_json(path)
    if existing is None:
        raise EngineError(f"{path}: vanished while it was read")
    return existing


def _write(path: Path, value: Manifest) -> Path:
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(ids.encode(value, indent=True))
        file.flush()
        os.fsync(file.fileno())
    return temporary


LAYOUT = 1  # of the table below; a catalog with another layout is rebuilt
_COLUMNS = ("kind", "id", "name", "created", "work", "status", "digest", "counts")


class Catalog:
    """Rows about artifacts: kind, id, name, created, work, status (open or sealed), digest, counts (JSON text)."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, manifest: Manifest) -> None:
        """Records an artifact; if the catalog cannot be written, its next reader updates it."""
        try:
            with self._connection() as db:
                _insert(db, [_row(manifest)])
        except sqlite3.Error:
            return

    def ids(self, kind: str) -> list[str]:
        return sorted(entry["id"] for entry in self.entries(kind))

    def find(self, kind: str, work: str) -> list[str]:
        return [entry["id"] for entry in self.entries(kind) if work in entry["work"].split()]

    def entries(self, kind: str | None = None) -> list[dict[str, Any]]:
        """All rows [of a kind], newest first."""
        if not self._root.is_dir():
            return []
        with self._connection() as db:
            self._sync(db)
            query = f"SELECT {', '.join(_COLUMNS)} FROM artifact" + (" WHERE kind = ?" if kind else "")
            found = db.execute(query + " ORDER BY created DESC, id", (kind,) if kind else ()).fetchall()
        return [dict(zip(_COLUMNS, row, strict=True)) for row in found]

    def _sync(self, db: sqlite3.Connection) -> None:
        known = {(kind, id): status for kind, id, status in db.execute("SELECT kind, id, status FROM artifact")}
        on_disk = {(kind, id) for kind in KINDS for id in _folders(self._root / kind)}
        changed = [key for key in on_disk if known.get(key) != "sealed"]
        removed = [key for key in known if key not in on_disk]
        if removed:
            db.executemany("DELETE FROM artifact WHERE kind = ? AND id = ?", removed)
        _insert(db, (_row(m) for m in (self._manifest(*key) for key in changed) if m is not None))

    def _manifest(self, kind: str, id: str) -> Manifest | None:
        for name in ("manifest.json", "open.json"):
            try:
                value = ids.decode((self._root / kind / id / name).read_bytes())
            except (OSError, orjson.JSONDecodeError):
                continue
            return value if isinstance(value, dict) else None
        return None

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            db = _connect(str(self._root / "catalog.db") if has_locks(self._root) else ":memory:")
        except sqlite3.OperationalError:  # a read-only store or a full disk
            db = _connect(":memory:")
        except sqlite3.DatabaseError:  # not a catalog
            (self._root / "catalog.db").unlink(missing_ok=True)
            db = _connect(str(self._root / "catalog.db"))
        try:
            yield db
            db.commit()
        finally:
            db.close()


def _connect(place: str) -> sqlite3.Connection:
    db = sqlite3.connect(place, timeout=30)
    try:
        db.execute("PRAGMA synchronous = OFF")  # it can always be rebuilt
        if db.execute("PRAGMA user_version").fetchone() != (LAYOUT,):
            db.execute("DROP TABLE IF EXISTS artifact")
            db.execute(f"PRAGMA user_version = {LAYOUT}")
        db.execute(
            "CREATE TABLE IF NOT EXISTS artifact (kind TEXT, id TEXT, name TEXT, created TEXT, work TEXT,"
            " status TEXT, digest TEXT, counts TEXT, PRIMARY KEY (kind, id))"
        )
    except sqlite3.Error:
        db.close()
        raise
    return db


def _folders(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        yield from (entry.name for entry in os.scandir(folder))


def _row(manifest: Manifest) -> tuple[Any, ...]:
    status = "sealed" if "digest" in manifest else "open"
    counts = orjson.dumps(manifest.get("counts", {}), option=orjson.OPT_SORT_KEYS).decode()
    head = (manifest.get(column) for column in _COLUMNS[:4])
    return (*head, " ".join(manifest.get("work", ())), status, manifest.get("digest"), counts)


def _insert(db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
    db.executemany(f"INSERT OR REPLACE INTO artifact VALUES ({', '.join('?' * len(_COLUMNS))})", rows)
