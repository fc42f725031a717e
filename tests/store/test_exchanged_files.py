"""A table that was exchanged for another of the same form and size is never read as the one that its manifest names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluand import Dataset, DirectoryStore, Run, Runner
from evaluand.core.errors import EngineError
from evaluand.report.verification import verify
from evaluand.run.task import task


@task(version="1")
def repeat_a(text: str) -> str:
    return "a" * len(text)


@task(version="1")
def repeat_b(text: str) -> str:
    return "b" * len(text)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def tables_of(store: DirectoryStore, id: str) -> dict[str, Path]:
    return {path.name.partition("-")[0]: path for path in (store.root / "runs" / id).glob("*.parquet")}


def exchange(one: Path, other: Path) -> None:
    """Puts the content of one file into another, whose size and times stay."""
    content, state = other.read_bytes(), one.stat()
    assert (len(content), content == one.read_bytes()) == (state.st_size, False)
    one.chmod(0o600)
    one.write_bytes(content)
    os.utime(one, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_a_table_of_another_run_is_not_read_as_that_of_this_one(store: DirectoryStore) -> None:
    data = Dataset.from_rows([{"input": "xxxx"}, {"input": "yyyy"}])
    mine, other = (Runner(store).run(each, data) for each in (repeat_a, repeat_b))
    outputs = tables_of(store, mine.id)["responses"]
    exchange(outputs, tables_of(store, other.id)["responses"])
    with pytest.raises(EngineError, match=outputs.name):
        Run(DirectoryStore(store.root), mine.id).table().to_pylist()
    assert [fault.where for fault in verify(store, "runs", mine.id)] == [str(outputs)]


def test_a_manifest_of_another_run_is_not_read_as_that_of_this_one(store: DirectoryStore) -> None:
    data = Dataset.from_rows([{"input": "xxxx"}])
    mine, other = (Runner(store).run(each, data) for each in (repeat_a, repeat_b))
    manifests = [store.root / "runs" / run.id / "manifest.json" for run in (mine, other)]
    manifests[0].chmod(0o600)
    manifests[0].write_bytes(manifests[1].read_bytes())
    with pytest.raises(EngineError, match=str(manifests[0])):
        Run(DirectoryStore(store.root), mine.id)
