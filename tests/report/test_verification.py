"""Whatever is changed in a store is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import orjson
import pytest

from evaluand import (
    Accuracy,
    Aggregator,
    Count,
    Dataset,
    DirectoryStore,
    Evaluation,
    Evaluator,
    Matcher,
    Mean,
    Measure,
    Runner,
    compare,
    rate,
)
from evaluand.core.errors import Fault
from evaluand.judges.cards.card import make_card
from evaluand.matches.labelled_sets import read_labelled_file
from evaluand.metrics.base.metric import Metric
from evaluand.report.verification import UNCHECKED, verify
from evaluand.store.kinds import kind_names
from evaluand.store.store import with_seal

TABLED = tuple(kind for kind in kind_names() if kind != "recordings")  # of these, the run has the rows


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one artifact of each kind."""
    made = DirectoryStore(tmp_path_factory.mktemp("sample") / "store")
    rows = [{"input": str(i), "expected": str(i % 4), "group": "ab"[i % 2]} for i in range(50)]
    run = Runner(made).run(str.strip, Dataset.from_rows(rows, attributes=["group"]))
    evaluation = Evaluator(made).evaluate(run, {"same": lambda output, expected: output == expected})
    compare(evaluation, evaluation)
    rate(Matcher(made).match([run, run], lambda first, second: "tie", labels=["a", "b"]))
    Aggregator(made).aggregate([evaluation], [Measure("same", Accuracy(), (("group",),))])
    make_card(read_labelled_file([{"label": 1, "judgement": 1}], "judge"), made)
    return made.root


@pytest.fixture
def store(sample: Path, tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(shutil.copytree(sample, tmp_path / "store"))


def faults(store: DirectoryStore) -> list[Fault]:
    return [fault for kind, id in store.artifacts() for fault in verify(store, kind, id)]


def the_file(store: DirectoryStore, kind: str, pattern: str) -> Path:
    path, *_ = sorted((store.root / kind).glob(f"*/{pattern}"))
    return path


def test_what_nobody_touched_is_whole(store: DirectoryStore) -> None:
    assert {kind: len(store.ids(kind)) for kind in TABLED} == dict.fromkeys(TABLED, 1)
    assert faults(store) == []


@pytest.mark.parametrize("kind", TABLED)
def test_a_flipped_bit_names_the_file(store: DirectoryStore, kind: str) -> None:
    path = the_file(store, kind, "*.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert [fault.where for fault in faults(store)] == [str(path)]


@pytest.mark.parametrize("kind", TABLED)
def test_a_missing_file_is_named(store: DirectoryStore, kind: str) -> None:
    path = the_file(store, kind, "*.parquet")
    path.unlink()
    assert [fault.where for fault in faults(store)] == [str(path)]


def test_what_was_made_from_damage_is_unchecked_and_not_damaged(store: DirectoryStore) -> None:
    path = the_file(store, "runs", "manifest.json")
    path.write_bytes(path.read_bytes().replace(b"completed", b"completes"))
    of_run, *of_others = faults(store)
    assert (of_run.where, of_run.code) == (str(path), "")
    [run] = store.ids("runs", damaged=True)
    message = f"cannot be checked against run {run}, which is damaged"
    others = [f"{kind} {id}" for kind in ("evaluations", "matches") for id in store.ids(kind)]
    assert of_others == [Fault(other, message, code=UNCHECKED) for other in others]


def test_work_of_damaged_data_is_unchecked_to_the_last(store: DirectoryStore) -> None:
    the_file(store, "datasets", "manifest.json").write_bytes(b"{}")
    found = {fault.where.split()[0]: fault for fault in faults(store) if fault.code == UNCHECKED}
    assert {*found} == {"runs", "evaluations", "matches"}
    [dataset] = store.ids("datasets", damaged=True)
    assert all(f"dataset {dataset}" in fault.message for fault in found.values())


@pytest.mark.parametrize("metric", [Mean(), Count(), Accuracy()])
def test_every_metric_with_its_defaults_is_whole_when_stored(store: DirectoryStore, metric: Metric) -> None:
    evaluation = Evaluation(store, store.ids("evaluations")[0])
    Aggregator(store).aggregate([evaluation], [Measure("same", metric)])
    assert faults(store) == []


def forge(path: Path, **changes: object) -> None:
    """Changes a manifest, and its seal with it."""
    manifest = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps(with_seal(manifest | changes)))


@pytest.mark.parametrize("kind", TABLED)
def test_a_changed_spec_no_longer_fits_the_id(store: DirectoryStore, kind: str) -> None:
    path = the_file(store, kind, "manifest.json")
    spec = orjson.loads(path.read_bytes())["spec"]
    forge(path, spec=spec | {"note": "better"})
    assert any("spec" in fault.message for fault in faults(store))


@pytest.mark.parametrize("kind", TABLED)
def test_a_changed_digest_no_longer_fits_the_rows(store: DirectoryStore, kind: str) -> None:
    forge(the_file(store, kind, "manifest.json"), digest="0" * 32)
    assert any("digest" in fault.message for fault in faults(store))


def test_changed_counts_no_longer_fit_the_rows(store: DirectoryStore) -> None:
    forge(the_file(store, "runs", "manifest.json"), counts={"completed": 49, "failed": 1})
    assert any("count" in fault.message for fault in faults(store))


def test_tables_swapped_with_their_digests_no_longer_fit(store: DirectoryStore) -> None:
    other = Runner(store).run(str.upper, Dataset.from_rows([{"input": f"x{i}"} for i in range(50)]))
    [mine] = [id for id in store.ids("runs") if id != other.id]
    theirs = store.root / "runs" / other.id
    path = store.root / "runs" / mine / "manifest.json"
    for table in theirs.glob("*.parquet"):
        (path.parent / table.name).write_bytes(table.read_bytes())
    forge(path, tables=other.manifest["tables"])
    assert any("digest" in fault.message for fault in verify(store, "runs", mine))


def test_a_missing_origin_is_named(store: DirectoryStore) -> None:
    [id] = store.ids("datasets")
    (store.root / "datasets" / id / "manifest.json").unlink()
    assert any(
        id in fault.message for kind in ("runs", "evaluations") for fault in verify(store, kind, store.ids(kind)[0])
    )


@pytest.mark.parametrize("kind", ["datasets", "runs", "evaluations", "aggregations"])
@pytest.mark.parametrize("key", ["created", "name", "provenance", "pinned", "work"])
def test_no_part_of_a_manifest_is_changed_unseen(store: DirectoryStore, kind: str, key: str) -> None:
    path = the_file(store, kind, "manifest.json")
    manifest = json.loads(path.read_text())
    forged = {"created": "2026-01-01T00:00:00+00:00", "name": "forged", "pinned": False, "work": ["forged"]}
    forged["provenance"] = manifest["provenance"] | {"forged": 1}
    path.write_text(json.dumps(manifest | {key: forged[key]}))
    fault = Fault(str(path), "the manifest was changed: its seal does not match its content")
    assert verify(store, kind, path.parent.name) == [fault]
