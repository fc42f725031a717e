"""`evaluand copy`: finished artifacts in another store."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import Folder
from support.servers import S3Server

from evaluand import DirectoryStore, Runner, task
from evaluand.data.dataset import Dataset
from evaluand.store.opening import open_store


@task(version="1")
def double(number: int) -> int:
    return number * 2


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    Runner(DirectoryStore(tmp_path / "store")).run(double, Dataset.from_rows([{"input": 1}, {"input": 2}]), name="mine")
    return Folder(tmp_path)


def test_a_copy_goes_on_where_it_stopped(folder: Folder) -> None:
    first = folder.json("copy", folder.path / "store", folder.path / "other")
    assert [each["kind"] for each in first["copied"]] == ["datasets", "runs"]
    assert (first["artifacts"], first["open"], [name["name"] for name in first["names"]]) == (2, [], ["mine"])
    assert first["bytes"] > 0
    again = folder.json("copy", folder.path / "store", folder.path / "other")
    assert (again["copied"], again["artifacts"]) == ([], 2)
    assert "0 with faults" in folder.done("verify", "--store", folder.path / "other")


@pytest.mark.slow
def test_a_bucket_is_listed_and_verified_as_a_folder_is(folder: Folder, s3: S3Server) -> None:
    address = f"{s3.bucket()}/evals"
    said = folder.done("copy", folder.path / "store", address, "mine")
    assert said.startswith("2 artifacts copied")
    assert f"evaluand verify --store {address}" in said
    assert "mine" in folder.done("list", "--store", address)
    assert "0 with faults" in folder.done("verify", "--store", address)
    assert folder.done("gc", "--store", address, "--yes") == "nothing to remove\n"
    assert open_store(address).named("mine") == DirectoryStore(folder.path / "store").named("mine")
    assert f"--store {address}" in folder.refused("show", "nothing", "--store", address)


def test_what_cannot_be_copied_is_one_sentence(folder: Folder) -> None:
    assert "no such store" in folder.refused("copy", folder.path / "none", folder.path / "other")
    assert "is both stores" in folder.refused("copy", folder.path / "store", folder.path / "store")
    assert "PGPASSWORD" in folder.refused("copy", folder.path / "store", "s3://b/x?catalog=postgresql://a:secret@h/d")
    (folder.path / "sources").mkdir()
    (folder.path / "sources" / "main.py").touch()
    assert "has other files and no store" in folder.refused("copy", folder.path / "store", folder.path / "sources")
    assert [path.name for path in (folder.path / "sources").iterdir()] == ["main.py"]
    other = Runner(DirectoryStore(folder.path / "other"))
    other.run(double, Dataset.from_rows([{"input": 3}]), name="mine")
    message = folder.refused("copy", folder.path / "store", folder.path / "other")
    assert "the name 'mine' refers to run" in message


def test_all_is_copied_only_if_all_can_be_read(folder: Folder) -> None:
    [name] = (folder.path / "store" / "refs").glob("*.json")
    name.write_text("{}")
    refused = folder.refused("copy", folder.path / "store", folder.path / "other")
    assert f"{name.name}: the name in this file" in refused
    assert "to copy without it, name what to copy" in refused
    assert not (folder.path / "other").exists()
    [run] = folder.json("list", "runs")
    assert folder.done("copy", folder.path / "store", folder.path / "other", run["id"]).startswith("2 artifacts copied")
