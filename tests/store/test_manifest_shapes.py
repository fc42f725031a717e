"""Manifests whose digest matches, but whose content evaluand would not write: one sentence with the place."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import sample_store
from support.commands import Folder
from support.forgery import NOTHING, Forgery, Place, describe, forge, list_forgeries
from support.manifests import create_manifest

from evaluand.core.errors import EngineError
from evaluand.report.verification import verify
from evaluand.store.directory import DirectoryStore
from evaluand.store.kinds import find_kind
from evaluand.store.manifests import manifest_text
from evaluand.store.store import with_seal

ID = "1" * 32


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "store"
    sample_store.make(folder)
    return folder


@pytest.fixture
def folder(sample: Path, tmp_path: Path) -> Folder:
    return Folder.copied(sample.parent, tmp_path)


@pytest.mark.parametrize(
    ("kind", "place", "value", "reason"),
    [
        ("runs", ("name",), 3, "name: expected a text, found 3"),
        ("runs", ("attempt",), True, "attempt: expected a count, found true"),
        ("runs", ("created",), "yesterday", "created: expected a time, found 'yesterday'"),
        ("runs", ("provenance",), NOTHING, "provenance: is missing"),
        ("runs", ("provenance", "unpinned"), [None], "provenance.unpinned[0]: expected a text, found null"),
        ("runs", ("spec", "task"), [], "spec.task: expected an object, found a list"),
        ("runs", ("spec", "dataset"), "../x", "spec.dataset: expected an id of 32 hexadecimal digits, found '../x'"),
        ("runs", ("spec", "replications"), 0, "spec.replications: expected 1 to 268,435,456 calls, found 1 × 0"),
        (
            "runs",
            ("spec", "examples"),
            10**9,
            "spec.replications: expected 1 to 268,435,456 calls, found 1000000000",
        ),
        ("runs", ("counts",), {"completed": 10**9}, "counts: expected at most 268,435,456 rows, found 1000000000"),
        ("aggregations", ("spec", "tradeoffs"), [{"objectives": [], "x": 1}], "spec.tradeoffs[0].x: is not a part"),
        ("evaluations", ("spec", "scorers"), {"a b": 1}, "spec.scorers.'a b': expected an object, found 1"),
        ("evaluations", ("spec", "scorers"), {"right": {}}, "counts.right: is missing"),
        ("evaluations", ("provenance", "ranges"), {"a": {"value": [1]}}, "provenance.ranges.a.value: expected two"),
        (
            "aggregations",
            ("spec", "labels"),
            ["a"],
            "spec.labels: expected 0 entries, one for each evaluation, found 1",
        ),
        ("aggregations", ("spec", "measures"), [{"scorer": "a"}], "spec.measures[0].metric: is missing"),
        ("evaluations", ("spec", "run_id"), "e" * 32, "spec.run_id: differs from provenance.run"),
        ("aggregations", ("spec", "evaluation_ids"), ["e"], "spec.evaluation_ids: differs from provenance.evaluations"),
        ("comparisons", ("spec", "evaluation_ids"), ["e"], "spec.evaluation_ids: differs from provenance.evaluations"),
        ("matches", ("spec", "run_ids"), ["e" * 32], "spec.run_ids: differs from provenance.runs"),
        ("ratings", ("spec", "match_ids"), 1, "spec.match_ids: differs from provenance.matches"),
        ("comparisons", ("spec", "confidence"), 1, "spec.confidence: expected a number between 0 and 1, found 1"),
        ("datasets", ("spec", "roles", "color"), "x", "spec.roles.color: is not a role"),
        ("datasets", ("counts",), {"examples": -1}, "counts.examples: expected a count, found -1"),
        ("recordings", ("spec", "feedbacks"), {"short": {}}, "provenance.columns.short: is missing"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_what_evaluand_would_not_write_is_one_sentence(
    tmp_path: Path, kind: str, place: Place, value: Any, reason: str
) -> None:
    store = DirectoryStore(tmp_path)
    for id in (ID, "2" * 32):
        store.draft(kind, id).seal(create_manifest(kind, id, digest="d"))
    path = tmp_path / kind / ID / "manifest.json"
    path.write_bytes(forge(path.read_bytes(), place, value))
    with pytest.raises(EngineError) as refused:
        store.manifest(kind, ID)
    assert str(refused.value).startswith(f"{path}: cannot be read: {reason}")
    assert "; evaluand did not write this; see `evaluand verify`" in str(refused.value)
    assert store.ids(kind) == ["2" * 32]
    [damaged] = [entry for entry in DirectoryStore(tmp_path).catalog.entries() if entry["status"] == "damaged"]
    assert (damaged["id"], damaged["damage"].startswith(f"cannot be read: {reason}")) == (ID, True)
    assert [fault.where for fault in verify(store, kind, ID)] == [str(path)]


def test_a_manifest_of_each_kind_that_has_what_readers_need_is_read(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for kind in ("runs", "evaluations", "aggregations", "comparisons", "datasets", "recordings"):
        sealed = store.draft(kind, ID).seal(create_manifest(kind, ID, digest="d", further={"of": "a later version"}))
        assert store.manifest(kind, ID) == sealed


def read_forged(sample: Path, folder: Path, chosen: Sequence[Forgery]) -> None:
    """Reads forged manifests and names with all that a process reads of them by itself."""
    shutil.copytree(sample, folder)
    for forgery in chosen:
        file, place, value = forgery
        before = (sample / file).read_bytes()
        (folder / file).write_bytes(forge(before, place, value))
        store = DirectoryStore(folder)
        try:
            if file.parts[0] == "refs":
                assert len(store.refs()) + len(store.damaged_refs()) >= 12, describe(forgery)
            else:
                entries = {entry["id"]: entry["status"] for entry in store.catalog.entries()}
                faults = verify(store, file.parts[0], file.parts[1])
                assert faults or entries[file.parts[1]] != "damaged", describe(forgery)
                assert not any("Error: " in fault.message for fault in faults), (describe(forgery), faults)
        finally:
            (folder / file).write_bytes(before)


@pytest.mark.filterwarnings("ignore:1 name is damaged")
def test_forged_manifests_and_names_are_damaged_or_read(sample: Path, tmp_path: Path) -> None:
    read_forged(sample, tmp_path / "store", random.Random(2).sample(list_forgeries(sample), 60))


@pytest.mark.filterwarnings("ignore:1 name is damaged")
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_forged_manifests_and_names_are_damaged_or_read(sample: Path, tmp_path: Path, part: int) -> None:
    """Half of all forgeries, in four parts."""
    forgeries = list_forgeries(sample)
    random.Random(0).shuffle(forgeries)
    read_forged(sample, tmp_path / "store", forgeries[part::8])


def test_a_role_of_a_column_that_the_table_lacks_is_one_sentence(folder: Folder) -> None:
    path = next((folder.path / "store" / "datasets").glob("*/manifest.json"))
    path.write_bytes(forge(path.read_bytes(), ("spec", "roles", "weight"), "heaviness"))
    message = folder.refused("show", path.parent.name)
    assert "its manifest gives the column 'heaviness' a role, but its table has no such column" in message


def test_values_that_json_lacks_are_shown_as_they_are_stored(folder: Folder) -> None:
    path = next((folder.path / "store" / "runs").glob("*/manifest.json"))
    for name, value in (("raw", {"$bytes": "cmF3"}), ("large", {"$int": "9" * 30})):
        path.write_bytes(forge(path.read_bytes(), ("spec", "task", name), value))
    assert '"raw": {"$bytes": "cmF3"}' in " ".join(folder.done("show", path.parent.name).split())
    shown = folder.json("show", path.parent.name)["manifest"]["spec"]["task"]
    assert (shown["raw"], shown["large"]) == ({"$bytes": "cmF3"}, {"$int": "9" * 30})


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("name", "n" * 4097, "name: expected at most 4,096 characters, found 4,097"),
        ("work", ["1" * 33], "work[0]: expected an id of 32 hexadecimal digits"),
        ("work", [ID] * 10_001, "work: expected at most 10,000 entries, found 10,001"),
    ],
)
def test_what_the_catalog_keeps_is_bounded(key: str, value: Any, reason: str) -> None:
    assert find_kind("runs").check(create_manifest("runs", ID) | {key: value}, sealed=False).startswith(reason)


def test_counts_of_a_forged_manifest_are_not_listed(tmp_path: Path) -> None:
    many = {f"scorer {n}": {} for n in range(10_001)}
    for id, counts in (("1" * 32, many), ("2" * 32, {"right": {"scored": 1}}), ("3" * 32, {"n" * (1 << 20): {}})):
        manifest = create_manifest("evaluations", id, digest="", tables={}, counts=counts, format=2)
        (tmp_path / "evaluations" / id).mkdir(parents=True)
        (tmp_path / "evaluations" / id / "manifest.json").write_bytes(manifest_text(with_seal(manifest)))
    counts_by_id = {entry["id"][0]: entry["counts"] for entry in DirectoryStore(tmp_path).catalog.entries()}
    assert counts_by_id == {"1": {}, "2": {"right": {"scored": 1}}, "3": {}}
