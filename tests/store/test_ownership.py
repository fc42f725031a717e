"""Whether this user has begun open work in this store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluand.store.directory import DirectoryStore
from evaluand.store.ownership import MAC, is_own, with_mac
from evaluand.store.store import Manifest, MemoryStore, Store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return DirectoryStore(tmp_path / "store")


def manifest(**changes: Any) -> Manifest:
    origin = {"experiment": "/project/e.yaml", "digest": "3f2a"}
    return {"kind": "runs", "id": "1f", "name": "a", "provenance": {"origin": origin, "timeout": 1.0}} | changes


def test_what_was_begun_here_is_own(store: Store, home: Path) -> None:
    begun = with_mac(store, manifest())
    assert is_own(store, begun)
    assert is_own(DirectoryStore(home / "." / "store"), begun)
    assert {key: value for key, value in begun["provenance"].items() if key != MAC} == manifest()["provenance"]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "evaluations"},
        {"id": "2f"},
        {"provenance": {"origin": {"experiment": "/other.yaml", "digest": "3f2a"}, "timeout": 1.0}},
        {"provenance": {"origin": manifest()["provenance"]["origin"], "timeout": 1.0, "forms": {}}},
    ],
)
def test_a_code_does_not_fit_another_artifact_or_origin(store: Store, changes: dict[str, Any]) -> None:
    mac = with_mac(store, manifest())["provenance"][MAC]
    other = manifest(**changes)
    assert not is_own(store, other | {"provenance": other["provenance"] | {MAC: mac}})


@pytest.mark.parametrize("mac", [None, "", 5, "0" * 32, "\u00e9" * 32])
def test_without_a_valid_code_nothing_is_own(store: Store, mac: Any) -> None:
    begun = with_mac(store, manifest())
    assert not is_own(store, begun | {"provenance": begun["provenance"] | {MAC: mac}})
    assert not is_own(store, manifest())
    assert not is_own(store, manifest(provenance=[mac]))
    assert not is_own(store, {"kind": "runs", "id": "1f"})


def test_another_user_or_a_moved_store_is_not_own(store: Store, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = with_mac(store, manifest())
    assert not is_own(DirectoryStore(home / "moved"), begun)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "other"))
    assert not is_own(store, begun)


def test_without_a_key_nothing_is_own_and_work_begins_all_the_same(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "file"))
    begun = with_mac(store, manifest())
    assert begun["provenance"][MAC] is None
    assert not is_own(store, begun)


def test_a_store_in_memory_is_own(home: Path) -> None:
    assert with_mac(MemoryStore(), manifest()) == manifest()
    assert is_own(MemoryStore(), manifest())
    assert not (home / "config").exists()
