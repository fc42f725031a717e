"""The catalog: an index of a folder's manifests for listing and finding.

The files are authoritative. The catalog is updated from them whenever the folders have something new, so it may be
deleted at any time.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from evaluand.core import identity as ids
from evaluand.store.store import KINDS, Manifest

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
            db = _connect(str(self._root / "catalog.db"))
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
        db.execute("PRAGMA journal_mode = WAL")
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
