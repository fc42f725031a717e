"""What a store lists: the same from its files alone, whatever became of the catalog in the user's cache."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder, run_once
from support.manifests import create_manifest

from evaluand.aggregation.aggregator import Measure
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.comparison import compare
from evaluand.core.user import cache_folder
from evaluand.data.dataset import Dataset
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.experiment import Experiment
from evaluand.judges.cards.card import make_card
from evaluand.matches import rate
from evaluand.matches.labelled_sets import read_labelled_file
from evaluand.matches.matcher import Matcher
from evaluand.metrics.accuracy import Accuracy
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.store.catalog import Entry
from evaluand.store.directory import DirectoryStore
from evaluand.store.kinds import kind_names, origins
from evaluand.store.store import find_made_from, find_sealed, resolve
from evaluand.trace import Trace

MANY = 70  # artifacts, enough for a stored catalog


def echo(text: str) -> str:
    return text


ECHO = task(version="1")(echo)


def data(n: int = 8) -> Dataset:
    return Dataset.from_rows([{"input": f"q{i}", "expected": f"q{i}"} for i in range(n)])


def grown(store: DirectoryStore) -> None:
    """A store with some history: open and sealed artifacts of every kind, names, a further attempt."""
    broken = True

    def answer(text: str) -> str:
        if broken and text == "q3":
            raise ValueError("three")
        return text

    one = task(version="1")(answer)
    measures = [Measure("same", Accuracy())]
    results = Experiment("history", data(), {"it": one, "echo": ECHO}, {"same": ExactMatch()}, measures).run(store)
    compare(*(result.evaluation for result in results.tasks))
    broken = False
    Experiment("history", data(), {"it": one}, {"same": ExactMatch()}, measures).run(store, retry_failed=True)
    broken = True
    first = Run(store, store.ids("runs")[0])
    rate(Matcher().match([first, first], lambda one, other: "tie", labels=["a", "b"]))
    make_card(read_labelled_file([{"label": 1, "judgement": 1}], "judge"), store)
    with RecordingWriter.begin(store, {"name": "app"}) as recording:
        trace = Trace.start("call", "q1")
        trace.root.end()
        recording.keep(trace)
    other = Dataset.from_rows([{"input": f"q{i}"} for i in (20, 3, 21)])
    with pytest.raises(Aborted):
        Runner(store, Policy(abort_on_error=True, concurrency=1)).run(one, other, name="open", seed=1)
    for number in range(MANY):
        seal_empty(store, number)


def seal_empty(store: DirectoryStore, number: int) -> str:
    id = f"{number:032x}"
    store.draft("datasets", id).seal(create_manifest("datasets", id, digest=id))
    return id


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history") / "store"
    grown(DirectoryStore(root))
    return root


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the catalogs of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder() / "catalogs"


@pytest.fixture
def history(once: Path, tmp_path: Path, cache: Path) -> DirectoryStore:
    """A store with some history, which the test may spoil."""
    shutil.copytree(once, tmp_path / "store")
    return DirectoryStore(tmp_path / "store")


def listed(store: DirectoryStore) -> list[Entry]:
    return [*store.catalog.entries()]


def work_of_runs(store: DirectoryStore) -> str:
    """That of the first run that has some: what was recorded has none."""
    return next(work for id in store.ids("runs") for work in store.manifest("runs", id)["work"])


def test_a_catalog_made_from_the_files_equals_the_one_that_grew(history: DirectoryStore, cache: Path) -> None:
    before = listed(history)
    assert {entry["status"] for entry in before} == {"open", "sealed"}
    assert {entry["kind"] for entry in before} == set(kind_names())
    assert listed(DirectoryStore(history.root)) == before
    shutil.rmtree(cache)
    assert listed(DirectoryStore(history.root)) == before


def made_from(store: DirectoryStore, kind: str, origin: tuple[str, str]) -> list[str]:
    """What was made from an artifact, newest first, by reading all manifests."""
    manifests = [store.manifest(kind, id) for id in store.ids(kind)]
    found = [manifest for manifest in manifests if origin in origins(manifest)]
    return [manifest["id"] for manifest in sorted(found, key=lambda each: str(each["created"]), reverse=True)]


@pytest.mark.parametrize(
    ("kind", "of"), [("evaluations", "runs"), ("aggregations", "evaluations"), ("runs", "datasets")]
)
def test_artifacts_are_found_by_what_they_were_made_from(history: DirectoryStore, kind: str, of: str) -> None:
    used = {id: made_from(history, kind, (of, id)) for id in history.ids(of)}
    assert any(used.values())
    for store in (history, DirectoryStore(history.root)):
        assert {id: [each["id"] for each in find_made_from(store, kind, of, id)] for id in used} == used


def test_an_artifact_that_is_made_again_from_another_is_found_by_that(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)

    def answers(name: str) -> Run:
        return Runner(store).run(task(name=name, version=name)(lambda value: value), Dataset.from_rows([{"input": 1}]))

    def grade(run: Run, n: int = 0) -> str:
        return Evaluator(store).evaluate(run, {f"s{n}": ExactMatch()}).id

    one, two = answers("one"), answers("two")
    assert one.digest == two.digest
    for number in range(1, 12):
        grade(one, number)
    first = grade(one)
    assert first in [each["id"] for each in find_made_from(store, "evaluations", "runs", one.id)]
    shutil.rmtree(store.folder("evaluations", first).path)
    other = grade(two)
    assert [each["id"] for each in find_made_from(store, "evaluations", "runs", two.id)] == [other]
    assert grade(one) == first != other
    assert first in [each["id"] for each in find_made_from(store, "evaluations", "runs", one.id)]


def test_evaluations_are_found_by_the_digest_of_their_run(history: DirectoryStore) -> None:
    for id in history.ids("evaluations"):
        manifest = history.manifest("evaluations", id)
        assert id in history.find("evaluations", manifest["spec"]["run"])
        assert manifest in find_sealed(history, "evaluations", manifest["spec"]["run"])


def test_ids_are_found_by_their_beginning(history: DirectoryStore) -> None:
    everything = history.ids("datasets")
    for begin in ("", everything[0][:5], everything[-1], "0" * 30, "g"):
        assert history.ids("datasets", begin) == [id for id in everything if id.startswith(begin)]
    assert history.ids("datasets") == everything


def test_a_copy_of_the_store_is_the_whole_store(history: DirectoryStore, tmp_path: Path) -> None:
    shutil.copytree(history.root, tmp_path / "copy")
    copied = DirectoryStore(tmp_path / "copy")
    assert listed(copied) == listed(history)
    assert copied.refs() == history.refs()
    for kind in kind_names():
        assert copied.ids(kind) == history.ids(kind)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(b'"sealed"') + 1] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(b"this is no catalog" * 500),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100]),
    "zeroed within": lambda path: path.write_bytes(path.read_bytes()[:100] + bytes(path.stat().st_size - 100)),
    "one bit": flipped,
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nothing")),
    "cannot be opened": a_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_store_works_whatever_became_of_its_catalog(history: DirectoryStore, cache: Path, damage: str) -> None:
    work = work_of_runs(history)
    before, found = listed(history), history.find("runs", work)
    for path in [*cache.iterdir()]:
        DAMAGES[damage](path)

    again = DirectoryStore(history.root)
    assert [again.ids(kind) for kind in kind_names()] == [
        sorted(e["id"] for e in before if e["kind"] == k) for k in kind_names()
    ]
    assert again.find("runs", work_of_runs(again)) == found
    run = Runner(again).run(ECHO, data(3))
    assert run.receipt is not None
    assert (run.receipt.called, run.receipt.reused) == (0, 3)
    assert run.id in again.ids("runs")
    assert resolve(again, run.id[:10]) == ("runs", run.id)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_a_store_works_where_the_cache_cannot_be_written(history: DirectoryStore, cache: Path) -> None:
    cache.parent.parent.mkdir(mode=0o500)
    assert len(listed(history)) > MANY
    assert not cache.exists()


def test_a_cache_whose_place_is_taken_is_not_written(history: DirectoryStore, cache: Path) -> None:
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file")
    assert len(listed(history)) > MANY
    assert cache.parent.read_text() == "a file"


def test_a_small_store_writes_no_catalog(tmp_path: Path, cache: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    ids = [seal_empty(store, number) for number in range(3)]
    assert store.ids("datasets") == ids
    assert not cache.exists()


def test_a_manifest_that_was_replaced_is_read_again(history: DirectoryStore) -> None:
    id = seal_empty(history, MANY)
    assert id in history.ids("datasets")
    path = history.root / "datasets" / id / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"seal"', b'"sael"'))
    for store in (history, DirectoryStore(history.root)):
        assert id not in store.ids("datasets")
        [entry] = [entry for entry in listed(store) if entry["status"] == "damaged"]
        assert (entry["id"], entry["damage"]) == (id, "cannot be read: 'seal' is missing")


def test_catalogs_that_were_not_used_for_long_go(history: DirectoryStore, cache: Path) -> None:
    cache.mkdir(parents=True)
    for name, time in (("old", 0), ("new", None)):
        (cache / f"{name}.json").write_text("{}")
        if time is not None:
            os.utime(cache / f"{name}.json", (time, time))
    listed(history)
    assert {path.name for path in cache.iterdir()} >= {"new.json"}
    assert not (cache / "old.json").exists()


def test_invalid_artifact_is_not_listed(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    id = seal_empty(store, 1)
    for name in (f"{2:032x}", ".DS_Store", "notes"):
        (tmp_path / "datasets" / name).mkdir()
    shutil.copytree(tmp_path / "datasets" / id, tmp_path / "datasets" / "backup")
    (tmp_path / "datasets" / "file.txt").write_text("a note")
    assert store.ids("datasets") == [id]
    assert [entry["id"] for entry in store.catalog.entries()] == [id]


# An index of an earlier version, inside the store


def plant_hot_journal(database: Path, victim: Path) -> None:
    """A database with a journal that makes SQLite delete a file when it opens the database, and a hostile view."""
    with closing(sqlite3.connect(database)) as db:
        db.execute(
            "CREATE VIEW artifact AS WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS kind FROM n"
        )
        db.execute("PRAGMA user_version = 1")
        db.commit()
    name, magic = os.fsencode(victim), bytes.fromhex("d9d505f920a163d7")
    head = magic + b"".join(n.to_bytes(4, "big") for n in (0, 0, database.stat().st_size // 4096, 512, 4096))
    end = name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + magic
    Path(f"{database}-journal").write_bytes(head.ljust(512, b"\0") + end)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Folder(tmp_path_factory.mktemp("made"))
    return run_once(place, place.experiment())


def test_the_planted_journal_makes_sqlite_delete_a_file(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    plant_hot_journal(tmp_path / "catalog.db", victim)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as db:
        db.execute("PRAGMA user_version").fetchall()
    assert not victim.exists()


@pytest.mark.parametrize(
    "arguments", [["list"], ["verify"], ["gc", "--dry-run"], ["gc", "--yes"], ["show", "doubling"]]
)
def test_no_command_opens_an_index_inside_the_store(made: Path, tmp_path: Path, arguments: list[str]) -> None:
    folder = Folder.copied(made, tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    plant_hot_journal(folder.path / "store" / "catalog.db", victim)
    for path in (folder.path / "store").glob("catalog.db*"):
        os.utime(path, (0, 0))
    folder.done(*arguments)
    assert victim.read_text() == "precious"
    remaining = [] if "--yes" in arguments else ["catalog.db", "catalog.db-journal"]
    assert sorted(path.name for path in (folder.path / "store").glob("catalog*")) == remaining
