"""What is removed from a store, and what never is."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import Folder, run_once
from support.forks import end_fork, start_fork

from evaluand.core.errors import EngineError, EvaluandWarning
from evaluand.core.system import this_process
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.report.verification import verify
from evaluand.run.runner import Runner
from evaluand.run.task import task
from evaluand.store import leases
from evaluand.store.directory import DirectoryStore
from evaluand.store.garbage import Leftover, Removal, leftovers, remove
from evaluand.store.lease_state import State, Worker, pack_state

DAY = 86400.0


def write_slowly(folder: Path) -> None:
    @task(version="1")
    def slow(i: int) -> int:
        (folder / "begun").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        return i

    run = Runner(DirectoryStore(folder / "store")).run(slow, Dataset.from_rows([{"input": i} for i in range(3)]))
    (folder / "counts").write_text(str(run.counts))


def grow_old(path: Path, days: float = 3) -> None:
    """Makes everything below look unchanged for days."""
    then = time.time() - days * DAY
    for place in (path, *path.rglob("*")):
        os.utime(place, (then, then), follow_symlinks=False)


def dead_process() -> int:
    process = start_fork(lambda: None)
    end_fork(process)
    return process


def tree(folder: Folder) -> set[Path]:
    return {p.relative_to(folder.path) for p in (folder.path / "store").rglob("*") if "catalog" not in p.name}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Folder(tmp_path_factory.mktemp("finished"))
    return run_once(made, made.experiment())


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Folder:
    return Folder.copied(finished, tmp_path)


def stopped(folder: Folder) -> str:
    """The id of a run that was interrupted."""

    def stop(i: int) -> int:
        if i == 1:
            raise KeyboardInterrupt
        return i

    with pytest.raises(KeyboardInterrupt):
        Runner(folder.store).run(stop, Dataset.from_rows([{"input": i} for i in range(3)]), name="stopped")
    (id,) = (id for id in folder.store.ids("runs") if not folder.store.is_sealed("runs", id))
    return id


def test_a_store_in_order_has_nothing_to_remove(folder: Folder) -> None:
    grow_old(folder.path / "store")
    before = tree(folder)
    assert folder.done("gc", "--unreferenced", "--open-older-than", "1d", "--yes") == "nothing to remove\n"
    assert tree(folder) == before


def test_files_of_dead_processes_go_and_those_of_living_ones_stay(folder: Folder) -> None:
    run = folder.path / "store" / "runs" / folder.id("runs")
    dead = [place / f".x-00000001.{dead_process()}.tmp" for place in (run, folder.path / "store" / "refs")]
    alive = run / f".x-00000002.{os.getpid()}.tmp"
    for path in (*dead, alive):
        path.write_text("12345")
    assert folder.done("gc", "--yes") == "nothing to remove\n"  # it was written just now, perhaps by another machine
    grow_old(folder.path / "store")
    reported = folder.done("gc", "--yes")
    assert reported.endswith("2 items (10 B) removed\n")
    assert not any(path.exists() for path in dead)
    assert alive.exists()
    assert verify(folder.store, "runs", folder.id("runs")) == []


def test_a_draft_that_died_goes_with_its_folder(folder: Folder) -> None:
    draft = folder.path / "store" / "datasets" / ("ab" * 16)
    draft.mkdir()
    (draft / f".examples-01234567.parquet-00000001.{dead_process()}.tmp").write_bytes(b"x" * 1000)
    assert folder.done("gc", "--yes") == "nothing to remove\n"
    grow_old(draft)
    assert "a draft that was never finished" in folder.done("gc", "--yes")
    assert not draft.exists()


def test_tables_that_have_lost_their_manifest_are_removed_only_as_damaged(folder: Folder) -> None:
    id = folder.id("runs")
    run = folder.path / "store" / "runs" / id
    (run / "manifest.json").unlink()
    grow_old(run)
    assert folder.done("gc", "--yes") == "nothing to remove\n"
    assert "its manifest is missing" in folder.done("gc", "--damaged", "--yes")
    assert not run.exists()


def test_a_dry_run_removes_nothing(folder: Folder) -> None:
    stopped(folder)
    grow_old(folder.path / "store")
    before = tree(folder)
    assert "can be removed" in folder.done("gc", "--open-older-than", "1d", "--dry-run")
    assert tree(folder) == before


def test_open_artifacts_go_only_when_asked_and_old_enough(folder: Folder) -> None:
    id = stopped(folder)
    grow_old(folder.path / "store", days=3)
    assert folder.done("gc", "--yes") == "nothing to remove\n"
    assert folder.done("gc", "--open-older-than", "4d", "--yes") == "nothing to remove\n"
    assert f"run {id}: open and abandoned" in folder.done("gc", "--open-older-than", "2d", "--yes")
    assert id not in folder.store.ids("runs")
    assert "stopped" not in {ref.name for ref in folder.store.refs()}
    assert id not in folder.done("list")


def test_an_open_artifact_that_is_taken_up_again_is_young(folder: Folder) -> None:
    id = stopped(folder)
    grow_old(folder.path / "store")
    folder.store.open(folder.store.manifest("runs", id))
    assert folder.done("gc", "--open-older-than", "1d", "--yes") == "nothing to remove\n"


def test_what_is_requested_is_refused_by_saying_no(folder: Folder) -> None:
    id = stopped(folder)
    grow_old(folder.path / "store")
    result = folder.call("gc", "--open-older-than", "1d", input="n\n")
    assert (result.exit_code, id in folder.store.ids("runs")) == (1, True)
    assert folder.call("gc", "--open-older-than", "1d", input="y\n").exit_code == 0
    assert id not in folder.store.ids("runs")


def test_what_no_name_reaches_goes_and_what_a_name_reaches_stays(folder: Folder) -> None:
    store = folder.store
    other = Runner(store).run(len, Dataset.from_rows([{"input": "abc"}]))
    kept = Runner(store).run(str.upper, Dataset.from_rows([{"input": "x"}]), name="kept")
    grow_old(folder.path / "store")
    facts = folder.json("gc", "--unreferenced", "--yes")
    assert sorted(item["why"].split(":")[0] for item in facts["removed"]) == sorted(
        [f"run {other.id}", f"dataset {other.manifest['spec']['dataset']}"]
    )
    assert facts["bytes"] > 0
    assert other.id not in store.ids("runs")
    assert kept.id in store.ids("runs")
    assert all(
        verify(store, kind, id) == []
        for kind in ("runs", "evaluations", "aggregations", "datasets")
        for id in store.ids(kind)
    )
    assert folder.done("show", "doubling")


def test_what_an_open_run_was_begun_with_stays(folder: Folder) -> None:
    id = stopped(folder)
    for path in (folder.path / "store" / "refs").glob("*.json"):
        path.unlink()
    grow_old(folder.path / "store")
    folder.done("gc", "--unreferenced", "--yes")
    assert folder.store.ids("runs") == [id]
    assert folder.store.ids("datasets") == [folder.store.manifest("runs", id)["spec"]["dataset"]]


def test_what_was_changed_within_the_hour_is_not_unreferenced(folder: Folder) -> None:
    Runner(folder.store).run(len, Dataset.from_rows([{"input": "abc"}]))
    assert folder.done("gc", "--unreferenced", "--yes") == "nothing to remove\n"


def test_links_are_neither_followed_nor_removed(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    name = f".x-00000001.{dead_process()}.tmp"
    (outside / name).write_text("precious")
    store, run_id = folder.path / "store", folder.id("runs")
    (store / "runs" / ("cd" * 16)).symlink_to(outside)
    (store / "refs" / name).symlink_to(outside / name)
    run = store / "runs" / run_id
    (run / "link").symlink_to(outside)
    grow_old(store)
    grow_old(outside)
    folder.done("gc", "--unreferenced", "--open-older-than", "0s", "--yes")
    assert (outside / name).read_text() == "precious"
    assert (run / "link").is_symlink()
    assert (store / "runs" / ("cd" * 16)).is_symlink()


def test_a_folder_of_other_things_is_left_alone(folder: Folder) -> None:
    mine = folder.path / "store" / "runs" / "my notes"
    mine.mkdir()
    (mine / f".x-00000001.{dead_process()}.tmp").write_text("mine")
    grow_old(folder.path / "store")
    assert folder.done("gc", "--unreferenced", "--open-older-than", "0s", "--yes") == "nothing to remove\n"


def test_a_run_that_is_being_written_is_safe(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    writer = start_fork(lambda: write_slowly(tmp_path))
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    grow_old(tmp_path / "store")
    reported = folder.done("gc", "--unreferenced", "--open-older-than", "0s", "--yes")
    (tmp_path / "go").touch()
    assert end_fork(writer) == 0
    assert (reported, (tmp_path / "counts").read_text()) == ("nothing to remove\n", "{'completed': 3}")
    assert verify(folder.store, "runs", folder.id("runs")) == []


def test_the_rest_of_a_removal_that_was_stopped_goes_after_an_hour(folder: Folder) -> None:
    rest = folder.path / "store" / "runs" / ".gone-0123456789abcdef"
    others = [rest.with_name(".gone-with the wind"), folder.path / "store" / rest.name]
    for path in (rest, *others):
        path.mkdir()
        (path / "manifest.json").write_text("{}")
    assert folder.done("gc", "--yes") == "nothing to remove\n"
    grow_old(folder.path / "store")
    assert "the rest of an interrupted removal" in folder.done("gc", "--yes")
    assert not rest.exists()
    assert all((path / "manifest.json").exists() for path in others)


def plant(place: Path) -> dict[Path, bytes]:
    """Puts files of a user into the folder of an artifact."""
    (place / "notes" / "deep").mkdir(parents=True)
    (place / "journal" / "mine").mkdir(parents=True, exist_ok=True)
    names = ["notes.txt", "notes/deep/manifest.json", "table.parquet", "journal/mine/a.txt"]
    for name in names:
        (place / name).write_text("precious")
    return {place / name: b"precious" for name in names}


def stays(planted: dict[Path, bytes]) -> bool:
    return all(path.read_bytes() == content for path, content in planted.items())


def test_a_draft_with_other_things_loses_only_what_evaluand_makes(folder: Folder) -> None:
    draft = folder.path / "store" / "datasets" / ("ab" * 16)
    draft.mkdir()
    planted = plant(draft)
    made = [draft / "examples-01234567.parquet", draft / f".x-00000001.{dead_process()}.tmp"]
    for path in made:
        path.write_text("12345")
    grow_old(draft)
    facts = folder.json("gc", "--damaged", "--yes")
    assert (facts["bytes"], [item["bytes"] for item in facts["found"]]) == (10, [18])
    assert {item["where"] for item in facts["left"]} == {
        str(draft / name) for name in ("notes", "notes.txt", "table.parquet", "journal")
    }
    assert stays(planted)
    assert not any(path.exists() for path in made)
    grow_old(folder.path / "store")
    assert folder.done("gc", "--yes") == "nothing to remove\n"


@pytest.mark.parametrize("arguments", [["--unreferenced"], ["--damaged"], ["--open-older-than", "1d"]])
def test_a_removed_artifact_with_other_things_keeps_them(folder: Folder, arguments: list[str]) -> None:
    id = stopped(folder) if "--open-older-than" in arguments else folder.id("runs")
    run = folder.path / "store" / "runs" / id
    if "--damaged" in arguments:
        (run / "manifest.json").write_text("{")
    if "--unreferenced" in arguments:
        for path in (folder.path / "store" / "refs").iterdir():
            path.unlink()
    planted = plant(run)
    grow_old(folder.path / "store")
    assert "did not make" in folder.done("gc", "--yes", *arguments)
    assert stays(planted)
    assert id not in folder.store.ids("runs", damaged=True)
    assert {path.name for path in run.iterdir()} == {"notes", "notes.txt", "table.parquet", "journal"}
    grow_old(folder.path / "store")
    assert folder.done("gc", "--yes", *arguments) == "nothing to remove\n"
    folder.done("run", folder.experiment())
    assert folder.store.ids("runs")
    assert stays(planted)


def test_a_folder_in_the_place_of_a_name_is_not_removed(folder: Folder) -> None:
    place = folder.path / "store" / "refs" / f"{1:032x}.json"
    place.mkdir()
    (place / "mine.txt").write_text("precious")
    grow_old(folder.path / "store")
    assert folder.done("gc", "--damaged", "--yes") == "nothing to remove\n"
    assert (place / "mine.txt").exists()


def test_a_damaged_manifest_stops_before_anything_is_removed(folder: Folder) -> None:
    manifest = folder.path / "store" / "runs" / folder.id("runs") / "manifest.json"
    manifest.write_text("{")
    grow_old(folder.path / "store")
    before = tree(folder)
    assert "manifest.json: cannot be read" in folder.refused("gc", "--unreferenced", "--yes")
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--open-older-than", "7"], "'7' is not an age"), (["--json"], "add --yes or --dry-run")],
)
def test_wrong_usage_is_reported(folder: Folder, arguments: list[str], message: str) -> None:
    assert message in folder.refused("gc", *arguments, code=2)


def test_a_store_that_is_not_there_has_nothing_to_remove(tmp_path: Path) -> None:
    assert Folder(tmp_path).done("gc", "--yes") == "nothing to remove\n"
    assert not (tmp_path / "store").exists()
    assert DirectoryStore(tmp_path / "store").ids("runs") == []


@pytest.mark.parametrize("beats", [True, False])
def test_an_open_artifact_stays_while_a_worker_of_another_machine_beats_whatever_the_date(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, beats: bool
) -> None:
    id = stopped(folder)
    [log] = [path for path in (folder.path / "store" / "runs" / id / "journal").iterdir() if path.is_dir()]
    process = replace(this_process(), boot="x", numbers="x", host="far")
    number = 1 + max((int(path.stem) for path in (log / "leases").glob("*.json")), default=0)

    def beat(seq: int) -> None:
        (log / "leases").mkdir(exist_ok=True)
        state = State({"a.lines": Worker(process, 1.0, seq, (0,), True)})
        (log / "leases" / f"{number + seq:012d}.json").write_bytes(pack_state(number + seq, state))
        grow_old(folder.path / "store")

    beat(1)
    naps = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if beats:
            beat(2)

    found = leftovers(folder.store, open_older_than=DAY)
    assert [item.artifact for item in found] == [("runs", id)]
    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.warns(EvaluandWarning, match="^waiting 30 s to see whether a worker of far is still alive$"):
        removed = remove(folder.store, found).removed
    assert [item.artifact for item in removed] == ([] if beats else [("runs", id)])
    assert naps == [30.0]


def test_gc_reports_for_whom_it_waits(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    id = stopped(folder)
    [log] = [path for path in (folder.path / "store" / "runs" / id / "journal").iterdir() if path.is_dir()]
    workers = {
        f"{host}.lines": Worker(replace(this_process(), boot="x", numbers="x", host=host), 1.0, 1, (unit,), True)
        for unit, host in enumerate(("far", "farther", "farthest"))
    }
    (log / "leases" / f"{900:012d}.json").write_bytes(pack_state(900, State(workers)))
    grow_old(folder.path / "store")
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.1)
    result = folder.call("gc", "--open-older-than", "1d", "--yes")
    assert result.exit_code == 0
    waiting = "note: waiting 0.1 s to see whether a worker of far, or of 2 other machines, is still alive\n"
    assert result.stderr == waiting
    assert result.stdout.endswith("removed\n")


STAYS = "has changed or is in use since it was listed, so it stays"


@pytest.fixture
def small(tmp_path: Path) -> Folder:
    """A store with one run."""
    made = Folder(tmp_path)
    run_again(made)
    return made


def run_again(folder: Folder) -> None:
    Runner(folder.store).run(str.upper, Dataset.from_rows([{"input": "x"}]), name="small")


def remove_one(folder: Folder, item: Leftover) -> Removal:
    """Removes an item of an earlier finding, and checks that a removal of nothing says why."""
    outcome = remove(folder.store, [item])
    if not outcome.removed:
        assert [(fault.where, fault.message) for fault in outcome.left] == [(str(item.path), STAYS)]
    return outcome


@pytest.mark.parametrize("is_restored", [True, False])
def test_what_was_restored_since_it_was_listed_as_damaged_stays(small: Folder, is_restored: bool) -> None:
    [table] = (small.path / "store" / "runs" / small.id("runs")).glob("responses*.parquet")
    intact = table.read_bytes()
    table.write_bytes(b"X" + intact[1:])
    [item] = leftovers(small.store, damaged=True)
    names = small.store.refs()
    if is_restored:
        table.write_bytes(intact)
    assert [each.path for each in remove_one(small, item).removed] == ([] if is_restored else [item.path])
    assert table.exists() == is_restored
    assert (small.store.refs() == names) == is_restored


def test_what_was_made_again_since_its_manifest_was_missing_stays(small: Folder) -> None:
    run = small.path / "store" / "runs" / small.id("runs")
    (run / "manifest.json").unlink()
    grow_old(run)
    [item] = leftovers(small.store, damaged=True)
    names = small.store.refs()
    run_again(small)
    grow_old(run)
    assert remove_one(small, item).removed == []
    assert (small.store.refs(), verify(small.store, "runs", run.name)) == (names, [])


def test_a_name_that_was_written_again_since_it_was_damaged_stays(small: Folder) -> None:
    ref = next((small.path / "store" / "refs").iterdir())
    intact = ref.read_bytes()
    ref.write_bytes(intact[:-9])
    [item] = leftovers(small.store, damaged=True)
    ref.write_bytes(intact)
    assert remove_one(small, item).removed == []
    ref.write_bytes(intact[:-9])
    assert remove_one(small, item).removed == [item]


def test_a_name_of_an_artifact_that_was_made_again_while_others_were_removed_stays(
    small: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = small.id("runs")
    (small.path / "store" / "runs" / id / "manifest.json").write_text("{")
    names = small.store.refs()
    [item] = leftovers(small.store, damaged=True)
    files = small.store.ref_files
    store = small.store

    def make_again() -> object:
        run_again(small)
        return files()

    monkeypatch.setattr(store, "ref_files", make_again)
    assert [each.artifact for each in remove(store, [item]).removed] == [("runs", id)]
    assert (small.store.refs(), verify(small.store, "runs", id)) == (names, [])


def test_what_a_name_reaches_since_it_was_listed_stays(small: Folder) -> None:
    run = Runner(small.store).run(len, Dataset.from_rows([{"input": "abc"}]))
    dataset = run.manifest["spec"]["dataset"]
    grow_old(small.path / "store")
    found = leftovers(small.store, unreferenced=True)
    assert [item.artifact for item in found] == [("runs", run.id), ("datasets", dataset)]
    last, first = found
    small.store.refer("late", "runs", run.id)
    assert remove_one(small, first).removed == []
    for path in (small.path / "store" / "refs").glob("*.json"):
        path.unlink()
    assert [item.artifact for item in remove(small.store, [last, first]).removed] == [last.artifact, first.artifact]


def test_names_are_asked_again_between_two_removals(small: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Runner(small.store).run(call, Dataset.from_rows([{"input": "abc"}])) for call in (len, str.upper)]
    grow_old(small.path / "store")
    store = small.store
    found = [item for item in leftovers(store, unreferenced=True) if item.artifact and item.artifact[0] == "runs"]
    assert {item.artifact for item in found} == {("runs", run.id) for run in runs}

    def refer_to_the_last(item: Leftover) -> bool:
        assert item is found[0]
        assert found[1].artifact
        store.refer("late", *found[1].artifact)
        return True

    first = replace(found[0], is_unneeded=lambda: found[0].is_unneeded() and refer_to_the_last(found[0]))
    outcome = remove(store, [first, found[1]])
    assert ([item.path for item in outcome.removed], [fault.where for fault in outcome.left]) == (
        [found[0].path],
        [str(found[1].path)],
    )


def test_an_open_run_that_was_finished_since_it_was_listed_stays(small: Folder) -> None:
    id = stopped(small)
    run = small.path / "store" / "runs" / id
    grow_old(small.path / "store")
    [item] = leftovers(small.store, open_older_than=DAY)
    opened = (run / "open.json").read_bytes()
    (run / "manifest.json").write_bytes(opened)
    grow_old(run)
    assert remove_one(small, item).removed == []
    (run / "manifest.json").unlink()
    grow_old(run)
    assert [each.artifact for each in remove_one(small, item).removed] == [("runs", id)]


def test_a_draft_that_was_opened_since_it_was_listed_stays(small: Folder) -> None:
    draft = small.path / "store" / "runs" / ("ab" * 16)
    draft.mkdir()
    grow_old(draft)
    [item] = leftovers(small.store)
    (draft / "open.json").write_text("{}")
    grow_old(draft)
    assert remove_one(small, item).removed == []
    (draft / "open.json").unlink()
    grow_old(draft)
    assert remove_one(small, item).removed == [item]


def test_a_damaged_name_hides_what_is_referenced(small: Folder) -> None:
    ref = next((small.path / "store" / "refs").iterdir())
    ref.write_bytes(ref.read_bytes()[:-9])
    grow_old(small.path / "store")
    before = tree(small)
    message = small.refused("gc", "--yes", "--unreferenced")
    assert f"{ref}: what is referenced is unknown, since the name in this file cannot be read" in message
    assert tree(small) == before


def test_finished_work_that_has_lost_its_open_json_is_damaged_and_continued(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    calls: list[int] = []

    @task(version="1")
    def stop(i: int) -> int:
        calls.append(i)
        if calls == [0, 1]:
            raise KeyboardInterrupt
        return i

    data = Dataset.from_rows([{"input": i} for i in range(3)])
    with pytest.raises(KeyboardInterrupt):
        Runner(folder.store, Policy(concurrency=1)).run(stop, data, name="stopped")
    [run] = (tmp_path / "store" / "runs").iterdir()
    (run / "open.json").unlink()
    grow_old(tmp_path / "store")
    before = tree(folder)
    [listed] = [each for each in folder.json("list") if each["kind"] == "runs"]
    assert (listed["id"], listed["status"]) == (run.name, "damaged")
    [fault] = verify(folder.store, "runs", run.name)
    assert fault.message.startswith("its manifest is missing; restore it, or run the same work again")
    assert folder.done("gc", "--yes") == "nothing to remove\n"
    for arguments in (["--unreferenced"], ["--unreferenced", "--damaged"]):
        assert f"{run}: what is referenced is unknown" in folder.refused("gc", "--yes", *arguments)
    assert tree(folder) == before
    again = Runner(folder.store, Policy(concurrency=1)).run(stop, data)
    assert (again.id, again.counts, calls) == (run.name, {"completed": 3}, [0, 1, 1, 2])
    assert verify(folder.store, "runs", run.name) == []


def test_finished_work_that_has_lost_its_open_json_is_removed_as_damaged(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    run = tmp_path / "store" / "runs" / stopped(folder)
    (run / "open.json").unlink()
    assert leftovers(folder.store, damaged=True) == []
    grow_old(run, days=2 / 1440)
    assert "its manifest is missing" in folder.done("gc", "--damaged", "--yes")
    assert not run.exists()
    assert folder.store.refs() == []


def test_folders_nested_without_end_in_an_artifact_are_not_read(small: Folder) -> None:
    depth = sys.getrecursionlimit()
    handle = os.open(small.path / "store" / "runs" / small.id("runs"), os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=handle)
        handle = step(handle, "d")
    try:
        assert leftovers(small.store, unreferenced=True, damaged=True, open_older_than=0) == []
    finally:
        for _ in range(depth):
            handle = step(handle, "..")
            os.rmdir("d", dir_fd=handle)
        os.close(handle)


def step(handle: int, name: str) -> int:
    """A folder in the place of that from which its name leads to it; no path of so many names may be used."""
    reached = os.open(name, os.O_RDONLY, dir_fd=handle)
    os.close(handle)
    return reached


def test_what_lost_its_manifest_just_now_is_left_with_the_reason(small: Folder) -> None:
    run = small.path / "store" / "runs" / small.id("runs")
    (run / "manifest.json").unlink()
    message = "its manifest is missing; it was changed within the minute, so it stays"
    listed = f"     left  runs/{run.name}  {message}\nnothing to remove\n"
    assert small.done("gc", "--damaged", "--yes") == small.done("gc", "--damaged", "--dry-run") == listed
    assert small.json("gc", "--damaged", "--yes")["left"] == [{"where": str(run), "message": message}]
    [dataset] = (small.path / "store" / "datasets").iterdir()
    (dataset / "manifest.json").write_text("{")
    assert f"     left  runs/{run.name}  {message}\n1 item (" in small.done("gc", "--damaged", "--yes")
    grow_old(run, days=2 / 1440)
    assert small.done("gc", "--damaged", "--yes").endswith("removed\n")
    assert not run.exists()


def test_a_link_in_the_place_of_an_artifact_is_left_with_advice(small: Folder) -> None:
    id = small.id("runs")
    run = small.path / "store" / "runs" / id
    run.rename(small.path / "elsewhere")
    run.symlink_to(small.path / "elsewhere")
    message = "is a link in the place of a folder, and is not followed; remove the link"
    assert small.done("gc", "--damaged", "--yes") == f"     left  runs/{id}  {message}\nnothing to remove\n"
    assert [(fault.where, fault.message) for fault in verify(small.store, "runs", id)] == [(str(run), message)]
    [entry] = small.store.catalog.entries("runs")
    assert (entry["status"], entry["damage"]) == ("damaged", message)
    with pytest.raises(EngineError, match="is not a folder; evaluand follows no links; remove it"):
        run_again(small)
    run.unlink()
    run_again(small)
    assert verify(small.store, "runs", id) == []


def test_a_named_artifact_without_files_hides_what_is_referenced(small: Folder) -> None:
    run = small.path / "store" / "runs" / small.id("runs")
    for path in run.iterdir():
        path.unlink()
    message = small.refused("gc", "--unreferenced", "--yes")
    assert message == (
        f"error: {run}: what is referenced is unknown, since the name 'small' refers to it, and it has no manifest;"
        " restore it, or run the same work again; `evaluand gc --damaged` removes the name\n"
    )


def test_what_was_made_from_a_lost_manifest_cannot_be_checked(small: Folder) -> None:
    [dataset] = (small.path / "store" / "datasets").iterdir()
    (dataset / "manifest.json").unlink()
    [fault] = verify(small.store, "runs", small.id("runs"))
    assert fault.message == f"cannot be checked against dataset {dataset.name}, which is damaged"
    for path in dataset.iterdir():
        path.unlink()
    [fault] = verify(small.store, "runs", small.id("runs"))
    assert fault.message == f"was made from datasets {dataset.name}, which is not in this store"


def test_metrics_that_cannot_be_read_are_named_where_they_would_be_compared(folder: Folder) -> None:
    [manifest] = (folder.path / "store").glob("aggregations/*/manifest.json")
    manifest.write_bytes(b"{")
    left_out = f"1 aggregation is damaged: {manifest.parent.name[:12]}; what may belong here is left out"
    assert folder.call("compare", "doubling/mine", "doubling/mine").stderr.count(left_out) == 1
