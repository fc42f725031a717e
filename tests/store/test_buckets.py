"""Stores in a bucket of S3: the same keys, ids and digests as in a folder."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.manifests import ID, create_manifest
from support.servers import PostgresServer, S3Server

from evaluand import Dataset, Runner, task
from evaluand.aggregation.aggregator import Measure
from evaluand.cli import main
from evaluand.core.errors import EngineError, SpecError
from evaluand.engine.policy import Policy
from evaluand.experiment import Experiment
from evaluand.metrics.accuracy import Accuracy
from evaluand.report.verification import verify
from evaluand.store import garbage, object as objects
from evaluand.store.addresses import Address, BucketPath, parse_place
from evaluand.store.copying import copy_artifact, copy_name, plan_copy
from evaluand.store.directory import DirectoryStore
from evaluand.store.folder_store import FolderStore
from evaluand.store.object import ObjectFolder, open_bucket
from evaluand.store.opening import open_store


@task(version="1")
def double(number: int) -> int:
    return number * 2


DATA = Dataset.from_rows([{"input": i, "expected": i * 2 if i % 4 else -1} for i in range(30)])


def experiment() -> Experiment:
    return Experiment("shared", DATA, {"double": double}, {"match": "exact_match"}, [Measure("match", Accuracy())])


def files_of(store: FolderStore) -> Counter[str]:
    """How many files of each kind of artifact there are."""
    names = ((kind, name) for kind, id in store.artifacts() for name in (store.top / kind / id).files())
    return Counter(f"{kind}/{'table' if '-' in name else name}" for kind, name in names)


@pytest.fixture
def folder(s3: S3Server) -> ObjectFolder:
    place = parse_place(f"{s3.bucket()}/evals")
    assert isinstance(place, Address)
    return open_bucket(place.place)  # type: ignore[arg-type]


@pytest.fixture
def shared(s3: S3Server, postgres: PostgresServer) -> FolderStore:
    return open_store(f"{s3.bucket()}/evals?catalog={postgres.database()}")


def test_an_object_is_put_once(folder: ObjectFolder) -> None:
    assert folder.put_if_absent("a.json", b"1")
    assert not folder.put_if_absent("a.json", b"2")
    assert folder.read("a.json") == b"1"
    assert folder.put_if_absent("a.json", b"1")  # as if the answer to the first had been lost


def test_a_service_that_would_replace_results_is_refused(
    folder: ObjectFolder, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_server, "ignores_conditions", True)
    with pytest.raises(EngineError, match="it ignores If-None-Match, so processes would replace each other's"):
        folder.put_if_absent("a.json", b"1")
    assert folder.names() == []


def test_a_table_is_seen_when_it_is_complete(folder: ObjectFolder) -> None:
    new = folder.new_file("table")
    new.write(b"x" * 1000)
    [mark] = folder.names()
    assert mark.endswith(".tmp")
    new.finish("table-1.parquet")
    assert folder.names() == ["table-1.parquet"]
    other = folder.new_file("table")
    other.write(b"y")
    other.discard()
    assert folder.names() == ["table-1.parquet"]


def test_large_tables_are_sent_and_read_in_parts(folder: ObjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(objects.PART_BYTES + 1000)
    new = folder.new_file("table")
    new.write(content)
    new.finish("table-1.parquet")
    file = folder.open_file("table-1.parquet")
    assert file.size == len(content)
    assert file.read(100, 50) == content[50:150]
    assert file.read(len(content), 10) == content[10:]
    assert file.read(10, len(content)) == b""


def test_what_was_replaced_is_not_read_on(folder: ObjectFolder) -> None:
    folder.put("a", b"1" * 100)
    file = folder.open_file("a")
    folder.put("a", b"2" * 100)
    with pytest.raises(EngineError, match="was replaced"):
        file.read(10, 0)


def test_folders_exist_while_they_have_objects(folder: ObjectFolder) -> None:
    below = folder / "runs" / ID
    assert not below.exists()
    below.put("open.json", b"{}")
    assert (folder / "runs").folders() == [ID]
    assert [state is None for state in (folder / "runs").states([ID, "f" * 32], "open.json")] == [False, True]
    below.remove("open.json")
    assert folder.entries() == []
    with pytest.raises(FileNotFoundError):
        below.read("open.json")


def test_a_bucket_alone_takes_no_open_work(s3: S3Server) -> None:
    store = open_store(f"{s3.bucket()}/evals")
    with pytest.raises(SpecError, match=r"catalog=postgresql://HOST/DATABASE.*`evaluand copy`"):
        store.open(create_manifest("runs", ID))
    assert store.artifacts() == []


def test_a_missing_bucket_is_one_sentence(s3: S3Server) -> None:
    with pytest.raises(EngineError, match="s3://no-such-bucket") as caught:
        open_store("s3://no-such-bucket/x").ids("runs")
    assert "\n" not in str(caught.value)


def test_an_experiment_is_the_same_in_a_bucket_and_in_a_folder(shared: FolderStore, tmp_path: Path) -> None:
    here = DirectoryStore(tmp_path)
    experiment().run(here)
    experiment().run(shared)
    assert shared.artifacts() == here.artifacts()
    for kind, id in here.artifacts():
        mine, theirs = here.manifest(kind, id), shared.manifest(kind, id)
        assert (mine["digest"], mine["counts"]) == (theirs["digest"], theirs["counts"])
        assert verify(shared, kind, id) == []
    assert files_of(shared) == files_of(here)
    assert shared.refs() == here.refs()
    assert shared.journals.orphans() == {}
    assert shared.strays() == []


def test_a_copy_is_the_same_and_is_continued(s3: S3Server, tmp_path: Path) -> None:
    here, there = DirectoryStore(tmp_path / "here"), open_store(f"{s3.bucket()}/copy")
    experiment().run(here)
    plan = plan_copy(here)
    assert plan.left == []
    for key in plan.keys[:2]:
        assert copy_artifact(here, there, *key)
    again = [copy_artifact(here, there, *key) for key in plan.keys]
    assert [size is None for size in again[:3]] == [True, True, False]
    for ref in plan.names:
        copy_name(here, there, ref)
    assert there.artifacts() == here.artifacts()
    assert there.refs() == here.refs()
    assert all(verify(there, *key) == [] for key in plan.keys)
    back = DirectoryStore(tmp_path / "back")
    for key in plan_copy(there, ["shared"]).keys:
        copy_artifact(there, back, *key)
    paths = [path.relative_to(here.root) for path in Path(here.root).rglob("*.*") if "refs" not in path.parts]
    assert all((back.root / path).read_bytes() == (here.root / path).read_bytes() for path in paths)  # type: ignore[operator]


def test_a_damaged_table_is_not_copied(s3: S3Server, tmp_path: Path) -> None:
    here, there = DirectoryStore(tmp_path), open_store(f"{s3.bucket()}/copy")
    experiment().run(here)
    [path] = (tmp_path / "runs").glob("*/responses-*.parquet")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(EngineError, match="digest"):
        copy_artifact(here, there, "runs", path.parent.name)
    assert there.ids("runs") == []
    assert (there.top / "runs" / path.parent.name).names() == []


def test_garbage_in_a_bucket_is_removed(shared: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("kept", 1), ("other", 2)):
        Runner(shared).run(double, Dataset.from_rows([{"input": number}]), name=name)
    (shared.top / "refs").remove(next(file for file, ref in shared.ref_files() if ref.name == "other"))
    assert garbage.leftovers(shared, unreferenced=True) == []  # changed within the hour
    before = shared.artifacts()
    later = time.time() + 7200
    monkeypatch.setattr(garbage.time, "time", lambda: later)
    items = garbage.leftovers(shared, unreferenced=True)
    removal = garbage.remove(shared, items)
    assert {item.artifact[0] for item in removal.removed if item.artifact} == {"runs", "datasets"}
    assert removal.left == []
    assert len(before) - len(shared.artifacts()) == 2
    assert all(verify(shared, *key) == [] for key in shared.artifacts())


def test_a_slow_upload_is_not_garbage(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"{s3.bucket()}/evals")
    above = store.top / "datasets" / ID
    above.put("examples-00000000.parquet", b"complete")
    new = above.new_file("other")
    later = time.time() + 1800
    monkeypatch.setattr(garbage.time, "time", lambda: later)
    assert garbage.leftovers(store, damaged=True) == []
    new.discard()
    [item] = garbage.leftovers(store, damaged=True)
    assert "manifest is missing" in item.why


def test_requests_that_are_refused_for_a_moment_are_repeated(
    shared: FolderStore, s3_server: S3Server, tmp_path: Path
) -> None:
    s3_server.refuses, s3_server.n_refused = 0.1, 0
    try:
        data = Dataset.from_rows([{"input": i} for i in range(20)])
        run = Runner(shared, Policy(concurrency=4)).run(double, data)
        assert [row["_index_"] for row in run.table().to_pylist()] == [*range(20)]
    finally:
        s3_server.refuses = 0.0
    assert s3_server.n_refused > 0
    assert all(verify(shared, *key) == [] for key in shared.artifacts())


def test_a_project_names_a_bucket_only_if_the_user_lists_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "s3://elsewhere/evals?catalog=postgresql://elsewhere/evals"
    (tmp_path / "evaluand.toml").write_text(f"store = {json.dumps(address)}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    settings = tmp_path / "config" / "evaluand" / "settings.toml"
    settings.parent.mkdir(parents=True)
    for listed in ([], ["s3://elsewhere/evals"]):  # another catalog is another place for the data
        settings.write_text(f"stores = {json.dumps(listed)}\n")
        result = CliRunner().invoke(main, ["list"])
        assert result.exit_code == 1
        assert "is not in a folder; list it in" in result.stderr
    settings.write_text(f"stores = {json.dumps([address])}\n")
    result = CliRunner(env={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}).invoke(main, ["list"])
    assert "list it in" not in result.stderr
    assert "s3://elsewhere/evals" in result.stderr


def test_a_bucket_without_credentials_says_which_to_set() -> None:
    asked = OSError("Error performing PUT http://169.254.169.254/latest/api/token in 3s - Server returned 403")
    error = objects._bucket_error(BucketPath("s3://bucket"), asked, "opened")
    assert str(error) == (
        "s3://bucket: cannot be opened: S3: there are no credentials;"
        " set those of the environment, such as AWS_ACCESS_KEY_ID"
    )
