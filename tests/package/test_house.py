"""The package stays a house with few rooms: see the rooms and their order in ARCHITECTURE.md."""

from __future__ import annotations

import importlib
import re
import tomllib

import pytest
from support.places import ROOT_FOLDER

PACKAGE = ROOT_FOLDER / "src" / "evaluand"
MOST_LAYERS, MOST_ENTRIES, MOST_LINES = 15, 20, 700
NOT_COUNTED = {"__init__.py", "_version.py", "py.typed", "__pycache__"}
OPEN_TO_INTEROP = {"interop", "testing", "_version"}


def contracts(kind: str) -> list[dict[str, list[str]]]:
    settings = tomllib.loads((ROOT_FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
    return [each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == kind]


def test_rooms_stand_in_few_layers() -> None:
    [order] = contracts("layers")
    assert len(order["layers"]) <= MOST_LAYERS
    assert "ignore_imports" not in order


def test_every_room_has_its_place_in_the_order() -> None:
    [order] = contracts("layers")
    named = re.findall(r"\w+", " ".join(order["layers"]))
    assert sorted(named) == sorted(
        path.stem for path in PACKAGE.iterdir() if path.name not in NOT_COUNTED - {"_version.py"}
    )


def test_the_top_of_the_package_has_few_entries() -> None:
    assert len([path for path in PACKAGE.iterdir() if path.name not in NOT_COUNTED]) <= MOST_ENTRIES


def test_no_native_room_may_import_interop() -> None:
    [contract] = [each for each in contracts("forbidden") if each["forbidden_modules"] == ["evaluand.interop"]]
    rooms = {path.stem for path in PACKAGE.iterdir() if path.name not in NOT_COUNTED} - OPEN_TO_INTEROP
    assert {module.removeprefix("evaluand.") for module in contract["source_modules"]} == rooms


@pytest.mark.parametrize("room", sorted(path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()))
def test_every_name_that_a_room_exports_can_be_imported(room: str) -> None:
    package = importlib.import_module(f"evaluand.{room}")
    exported = getattr(package, "__all__", [])
    assert [name for name in exported if not hasattr(package, name)] == []


@pytest.mark.parametrize("room", sorted(path.stem for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()))
def test_no_module_has_the_name_of_something_that_its_room_exports(room: str) -> None:
    modules = {path.stem for path in (PACKAGE / room).iterdir() if path.name not in NOT_COUNTED}
    assert modules & {*getattr(importlib.import_module(f"evaluand.{room}"), "__all__", [])} == set()


def test_no_file_of_the_package_has_more_than_700_lines() -> None:
    files = [*PACKAGE.rglob("*.py"), *(ROOT_FOLDER / "benchmarks").glob("*.py")]
    lines = {path.relative_to(ROOT_FOLDER): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}


def test_the_words_are_plain() -> None:
    """Things are reported, shown, stored, written or said: each says another thing than one word for all of them."""
    files = [path for folder in ("src", "docs") for path in (ROOT_FOLDER / folder).rglob("*") if path.is_file()]
    texts = (
        path.read_text(encoding="utf-8", errors="ignore") for path in files if path.suffix in (".py", ".md", ".txt")
    )
    assert sum(len(re.findall(r"\b_?told\b", text, re.IGNORECASE)) for text in texts) <= 5
