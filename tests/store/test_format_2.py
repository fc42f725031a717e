"""A store of format 2 is read, continued and reused as format 2 was; see `store_2/README.md`."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evaluand import DirectoryStore, Run
from evaluand.cli import main

SAMPLE = Path(__file__).parent / "store_2"
EXPECTED = json.loads((SAMPLE / "expected.json").read_text())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tarfile.open(SAMPLE / "store.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    for file in (SAMPLE / "project").iterdir():
        shutil.copy(file, tmp_path / file.name.removesuffix(".txt"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("app", None)


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, [*arguments, "--store", "store"])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def read(*arguments: str) -> Any:
    return json.loads(CliRunner().invoke(main, [*arguments, "--json", "--store", "store"]).stdout)


def test_what_was_stored_is_read_as_format_2_read_it(project: Path) -> None:
    listed = sorted([e["kind"], e["id"], e["status"], e["names"], e["counts"]] for e in read("list"))
    assert listed == EXPECTED["artifacts"]
    assert read("verify")["ok"]
    values = read("show", "doubles")["metrics"]
    keys = ("task", "scorer", "metric", "value", "low", "high")
    assert [[row[key] for key in keys] for row in values] == EXPECTED["values"]
    pairs = read("compare", "doubles/double", "doubles/nearly")["pairs"]
    keys = ("metric", "value_a", "value_b", "difference", "p")
    assert [[row[key] for key in keys] for row in pairs] == EXPECTED["compare"]
    call("report", "doubles", "-o", "doubles.html")
    assert "doubles/double" in Path("doubles.html").read_text()


def test_its_answers_are_taken_over_although_code_counts_beside_versions_now(project: Path) -> None:
    for experiment, name, kept in (("doubles", "doubles/double", 12), ("stopped", "stopped/nearly", 5)):
        call("run", f"{experiment}.yaml", "--keep-answers")
        assert [each["kept"] for each in Run.open(DirectoryStore("store"), name).manifest["kept"]] == [kept]
    assert read("verify")["ok"]


def test_a_name_has_its_own_experiment_and_dataset_once_it_is_given_again(project: Path) -> None:
    assert "doubles.yaml, task double, first as doubles/double" in call("show", "again/twice")
    assert "numbers" in call("show", "again/twice")
    call("run", "again.yaml")
    call("run", "doubles.yaml")
    for name, data in (("again/twice", "digits"), ("doubles/double", "numbers")):
        file, _, task = name.partition("/")
        shown = call("show", name)
        assert f"{file}.yaml, task {task}" in shown
        assert "first as" not in shown
        [dataset] = [each for each in read("show", name)["made_from"] if each["kind"] == "datasets"]
        assert dataset["name"] == data
        call("report", name, "-o", "one.html")
        assert f"{file}.yaml" in Path("one.html").read_text()
    names = [json.loads(path.read_text()) for path in Path("store/refs").glob("*.json")]
    [stored] = [each for each in names if (each["name"], each["kind"]) == ("again/twice", "runs")]
    assert (stored["format"], stored["about"]["dataset"]) == (3, "digits")
