"""The small real store whose files are damaged: sealed and open artifacts, names, and a journal."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from evaluand.cli import main
from evaluand.core.errors import EvaluandError
from evaluand.report.verification import verify
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import resolve

TEMPLATE: Final = Path(__file__).with_name("small_store")


def list_inputs() -> list[bytes]:
    """Every file of the store as an input: its path in the first line, then its content."""
    files = sorted(path for path in TEMPLATE.rglob("*") if path.is_file())
    return [str(path.relative_to(TEMPLATE)).encode() + b"\n" + path.read_bytes() for path in files]


def read_damaged(content: bytes, folder: Path) -> int:
    """Puts a file into a copy of the store, and lists, verifies, reads and shows everything; counts the rows read."""
    path, _, inner = content.partition(b"\n")
    known = {str(path.relative_to(TEMPLATE)) for path in TEMPLATE.rglob("*") if path.is_file()}
    name = path.decode(errors="replace")
    place = folder / "store"
    if not place.exists():
        shutil.copytree(TEMPLATE, place)
    if name not in known:
        return 0
    try:
        (place / name).write_bytes(inner)
        return read_all(DirectoryStore(place), name)
    finally:
        shutil.copyfile(TEMPLATE / name, place / name)


def read_all(store: DirectoryStore, damaged: str) -> int:
    rows = 0
    for read in (store.refs, store.damaged_refs, store.misplaced, store.strays, lambda: [*store.catalog.entries()]):
        with suppress(EvaluandError):
            read()
    kind, id, *_ = Path(damaged).parts
    if kind == "refs":
        with suppress(EvaluandError):
            kind, id = resolve(store, "sample/double", "runs")
    for each in store.artifacts():
        rows += read_tables(store, *each)
        if each[1] == id:
            verify(store, *each)
    main(["--store", str(store.root), "show", id], standalone_mode=False)
    return rows


def read_tables(store: DirectoryStore, kind: str, id: str) -> int:
    rows = 0
    with suppress(EvaluandError):
        for table in store.manifest(kind, id).get("tables", {}):
            rows += sum(batch.num_rows for batch in store.read(kind, id, table) if batch.to_pylist())
    return rows
