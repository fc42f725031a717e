"""A folder or file of a store that may not be read costs itself only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import Folder, run_once
from support.privileges import permissions_apply

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Folder(tmp_path_factory.mktemp("made"))
    return run_once(place, place.experiment())


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Folder:
    return Folder.copied(made, tmp_path / "theirs")


@pytest.fixture(params=[0o000, 0o100, 0o400], ids=["nothing", "only enter", "only list"])
def unreadable(folder: Folder, request: pytest.FixtureRequest) -> Iterator[Path]:
    path = next((folder.path / "store" / "runs").iterdir())
    path.chmod(request.param)
    with permissions_apply():
        yield path
    path.chmod(0o700)


def test_an_artifact_that_may_not_be_read_costs_itself_only(folder: Folder, unreadable: Path) -> None:
    listed = {entry["kind"]: entry["status"] for entry in folder.json("list")}
    assert listed == {"aggregations": "sealed", "datasets": "sealed", "evaluations": "sealed", "runs": "damaged"}

    verified = json.loads(folder.call("verify", "--json").stdout)
    (fault,) = next(each["faults"] for each in verified["artifacts"] if each["kind"] == "runs")
    assert fault["where"] in (str(unreadable), str(unreadable / "manifest.json"))
    assert fault["message"] == "cannot be read: Permission denied; check the permissions and the disk"
    assert not any(each["faults"] for each in verified["artifacts"] if each["kind"] in ("datasets", "aggregations"))

    folder.done("run", folder.experiment(), "--limit", 3)
    assert str(unreadable) in folder.refused("run", folder.experiment())


def test_collecting_leaves_an_artifact_that_may_not_be_read(folder: Folder, unreadable: Path) -> None:
    for options in (["--dry-run"], ["--dry-run", "--damaged", "--open-older-than", "0s"]):
        collected = folder.call("gc", *options)
        assert collected.exit_code == 0
        assert str(unreadable) in collected.stderr
    assert "what is referenced is unknown" in folder.refused("gc", "--dry-run", "--unreferenced")


def test_a_name_that_may_not_be_read_costs_itself_only(folder: Folder) -> None:
    path = next((folder.path / "store" / "refs").iterdir())
    path.chmod(0)
    with permissions_apply():
        assert len(folder.json("list")) == 4
        (fault,) = json.loads(folder.call("verify", "--json").stdout)["names"]
    assert fault == {
        "where": str(path),
        "message": "the name in this file cannot be read: Permission denied; check the permissions and the disk",
    }
