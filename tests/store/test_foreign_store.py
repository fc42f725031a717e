"""A store from somebody else: looking at it changes nothing, runs nothing, and reads nothing outside it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.commands import EXPERIMENT, Folder, run_once
from support.unread import Unread

from evaluand.core.errors import EvaluandWarning
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import scorer
from evaluand.run.runner import Runner
from evaluand.run.task import task
from evaluand.store.manifests import ref_file
from evaluand.store.store import FORMAT, with_seal

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other links and pipes")

LOOKING = {
    "list": ["list"],
    "show": ["show", "doubling/mine"],
    "show open work": ["show", "open"],
    "verify": ["verify"],
    "report": ["report", "doubling", "-o", "out.html"],
    "export": ["export", "doubling/mine", "-o", "out.csv"],
    "gc": ["gc", "--dry-run", "--unreferenced", "--open-older-than", "0s", "--damaged"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Folder(tmp_path_factory.mktemp("made"))
    run_once(place, place.experiment())
    return place.path


@pytest.fixture
def with_open_run(folder: Folder) -> Folder:
    def stop(i: int) -> int:
        if i == 2:
            raise KeyboardInterrupt
        return i

    with pytest.raises(KeyboardInterrupt):
        Runner(folder.store, Policy(concurrency=1)).run(
            stop, Dataset.from_rows([{"input": i} for i in range(4)]), name="open"
        )
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    copied = Folder.copied(made, tmp_path / "theirs")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return copied


def states(place: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Mode, time, inode and content of everything below a folder."""
    found = {}
    for path in (place, *sorted(place.rglob("*"))):
        state = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
        found[str(path.relative_to(place))] = (state.st_mode, state.st_mtime_ns, state.st_ino, content)
    return found


def faults_of(folder: Folder, *artifacts: str) -> dict[str, Any]:
    """What `verify` says of a damaged store."""
    return json.loads(folder.call("verify", *artifacts, "--json").stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("command", LOOKING)
def test_looking_changes_nothing(with_open_run: Folder, command: str) -> None:
    folder, store = with_open_run, with_open_run.path / "store"
    for path in (*store.rglob("*"), store):
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = states(store)
    folder.done(*LOOKING[command])
    assert states(store) == before
    for path in (store, *store.rglob("*")):
        path.chmod(0o700)


def test_a_comparison_adds_its_own_folder_only(folder: Folder) -> None:
    before = states(folder.path / "store")
    folder.done("compare", "doubling/mine", "doubling/mine")
    after = states(folder.path / "store")
    added = {name for name in after.keys() - before.keys() if name != "comparisons"}
    assert all(name.startswith("comparisons/") for name in added)
    assert {name: after[name] for name in before if name != "."} == {n: before[n] for n in before if n != "."}


# Odd files at the places of a store


def a_link(path: Path, outside: Path) -> None:
    """A link to the same content outside the store."""
    shutil.move(path, outside / "moved")
    path.symlink_to(outside / "moved")


def a_pipe(path: Path, outside: Path) -> None:
    clear(path)
    os.mkfifo(path)


def a_link_to_a_device(path: Path, outside: Path) -> None:
    clear(path)
    path.symlink_to("/dev/zero")


def a_folder(path: Path, outside: Path) -> None:
    clear(path)
    path.mkdir()
    (path / "precious").write_text("mine")


def ten_gigabytes(path: Path, outside: Path) -> None:
    clear(path)
    with path.open("wb") as file:
        file.truncate(10 << 30)


def clear(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


PLACES: dict[str, Callable[[Path], Path]] = {
    "artifact": lambda store: next((store / "evaluations").iterdir()),
    "manifest": lambda store: next((store / "evaluations").glob("*/manifest.json")),
    "table": lambda store: next((store / "runs").glob("*/responses-*.parquet")),
    "ref": lambda store: store / "refs" / ref_file("doubling/mine", "evaluations"),
}
ODD = {odd.__name__: odd for odd in (a_link, a_pipe, a_link_to_a_device, a_folder, ten_gigabytes)}
CASES = [
    (place, odd)
    for place in PLACES
    for odd in ODD
    if (place, odd) not in {("artifact", "a_folder"), ("artifact", "ten_gigabytes"), ("table", "ten_gigabytes")}
]


@pytest.mark.parametrize(("place", "odd"), CASES)
def test_an_odd_file_is_reported_by_verify_and_breaks_no_list(folder: Folder, place: str, odd: str) -> None:
    outside = folder.path.parent / "outside"
    outside.mkdir()
    path = PLACES[place](folder.path / "store")
    ODD[odd](path, outside)
    before = states(outside)

    assert folder.call("list").exit_code == 0
    verified = faults_of(folder)
    faults = [fault for artifact in verified["artifacts"] for fault in artifact["faults"]] + verified["names"]
    assert any(path.name in f"{fault['where']}: {fault['message']}" for fault in faults), faults
    for arguments in (LOOKING["show"], LOOKING["export"]):
        result = folder.call(*arguments)
        assert result.exit_code in (0, 1)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        is_note = [line.startswith("note: ") for line in result.stderr.strip().splitlines()]
        assert is_note.count(True) <= (2 if place == "ref" else 1), result.stderr  # a name may have two notes
        assert is_note.count(False) <= 1, result.stderr
    assert states(outside) == before


def test_an_artifact_folder_that_is_a_link_costs_no_file_outside(folder: Folder) -> None:
    outside = folder.path.parent / "outside"
    outside.mkdir()
    folder.done("compare", "doubling/mine", "doubling/mine")
    path = next((folder.path / "store" / "comparisons").iterdir())
    clear(path)
    (outside / "precious").write_text("mine")
    path.symlink_to(outside)
    assert "is not a folder; evaluand follows no links" in folder.refused("compare", "doubling/mine", "doubling/mine")
    assert [each.name for each in outside.iterdir()] == ["precious"]


def test_sealing_removes_only_what_evaluand_made(folder: Folder) -> None:
    folder.done("compare", "doubling/mine", "doubling/mine")
    path = next((folder.path / "store" / "comparisons").iterdir())
    (path / "manifest.json").unlink()
    outside = folder.path.parent / "outside"
    outside.mkdir()
    (path / "note.txt").write_text("mine")
    (path / "more").mkdir()
    (path / "link.parquet").symlink_to(outside)
    (path / "pairs-00000000.parquet").write_text("of a draft that was never finished")
    folder.done("compare", "doubling/mine", "doubling/mine")
    assert {"note.txt", "more", "link.parquet"} < {each.name for each in path.iterdir()}
    assert not (path / "pairs-00000000.parquet").exists()


# Names


ID = "0" * 32
NAMES: dict[str, dict[str, Any]] = {
    "a list": {"name": ["a"], "kind": "runs", "id": ID},
    "a missing key": {"name": "a", "kind": "runs"},
    "an unknown kind": {"name": "a", "kind": "cache", "id": ID},
    "a path": {"name": "a", "kind": "runs", "id": "../../../../etc/passwd"},
    "control characters": {"name": "a\x1b[31m", "kind": "runs", "id": ID},
    "the file of another name": with_seal({"format": 2, "name": "a", "kind": "runs", "id": ID}),
    "no seal": {"format": 2, "name": "a", "kind": "runs", "id": ID},
    "an unknown key": {"name": "a", "kind": "runs", "id": ID, "x": 1},
}


def test_damaged_names_break_nothing_and_are_reported(folder: Folder) -> None:
    places = [folder.path / "store" / "refs" / f"{number:032x}.json" for number in range(len(NAMES))]
    for path, content in zip(places, NAMES.values(), strict=True):
        path.write_bytes(orjson.dumps(content))
    listed = folder.call("list")
    assert (listed.exit_code, listed.stderr) == (0, "8 names cannot be read; `evaluand verify` says why\n")
    assert {fault["where"] for fault in faults_of(folder)["names"]} == {*map(str, places)}
    looking = [LOOKING[command] for command in LOOKING if command not in ("verify", "show open work")]
    for arguments in (*looking, ["run", folder.experiment()], ["gc", "--damaged", "--yes"]):
        folder.done(*arguments)
    assert folder.json("verify")["ok"]


@pytest.mark.parametrize("kind", ["link", "file", "pipe"])
@pytest.mark.parametrize("place", ["comparisons", "aggregations", "refs"])
def test_what_is_in_the_place_of_a_folder_is_not_followed_and_breaks_nothing_else(
    folder: Folder, tmp_path_factory: pytest.TempPathFactory, kind: str, place: str
) -> None:
    path, outside = folder.path / "store" / place, tmp_path_factory.mktemp("outside") / place
    run = folder.id("runs")
    if path.exists():
        path.rename(outside)
    else:
        outside.mkdir()
    before = sorted(outside.rglob("*"))
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "file":
        path.write_text("")
    else:
        os.mkfifo(path)
    what = {"link": "link", "file": "file", "pipe": "device"}[kind]
    [fault] = faults_of(folder)["names"]
    assert fault["where"] == str(path)
    assert fault["message"] == f"is a {what} in the place of a folder, and is not followed; remove the {what}"
    listed = folder.call("list")
    assert (listed.exit_code, listed.stderr) == (0, "1 folder cannot be read; `evaluand verify` says why\n")
    folder.done("show", run)
    folder.done("gc", "--yes", "--damaged", "--open-older-than", "0s")
    assert "what is referenced is unknown" in folder.refused("gc", "--yes", "--unreferenced")
    assert sorted(outside.rglob("*")) == before
    path.unlink()
    outside.rename(path)
    assert folder.json("verify")["ok"]


def test_swapped_names_are_reported(folder: Folder) -> None:
    one, other = (folder.path / "store" / "refs" / ref_file("doubling/mine", kind) for kind in ("runs", "evaluations"))
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)
    with pytest.warns(EvaluandWarning, match="2 names are damaged: what had them goes by its id"):
        assert "doubling/mine" not in {ref.name for ref in folder.store.refs()}
    assert {fault["where"] for fault in faults_of(folder)["names"]} == {str(one), str(other)}


def test_a_name_that_refers_to_nothing_is_reported(folder: Folder) -> None:
    folder.store.refer("lost", "runs", ID)
    [fault] = faults_of(folder)["names"]
    assert fault["message"] == "the name 'lost' refers to an artifact that is not in this store"


# Damage


def damaged_manifest(folder: Folder, kind: str, name: str = "manifest.json") -> Path:
    path = next((folder.path / "store" / kind).glob(f"*/{name}"))
    path.write_bytes(path.read_bytes()[:50])
    return path


@pytest.mark.parametrize("kind", ["runs", "aggregations"])
def test_a_damaged_manifest_is_listed_and_breaks_nothing_else(folder: Folder, kind: str) -> None:
    path = damaged_manifest(folder, kind)
    [row] = [row for row in folder.json("list") if row["status"] == "damaged"]
    assert (row["kind"], row["id"]) == (kind, path.parent.name)
    [artifact] = [each for each in faults_of(folder)["artifacts"] if each["id"] == path.parent.name]
    assert artifact["faults"][0]["where"] == str(path)
    assert artifact["faults"][0]["message"].startswith("cannot be read")
    assert faults_of(folder, path.parent.name[:8])["artifacts"] == [artifact]
    refused = folder.refused("show", path.parent.name[:8])
    assert "`evaluand gc --damaged` removes what is damaged" in refused

    folder.done("gc", "--damaged", "--yes")
    assert not path.exists()
    folder.done("run", folder.experiment())
    assert folder.json("verify")["ok"]


def test_a_manifest_in_a_folder_without_an_id_is_reported(folder: Folder) -> None:
    path = next((folder.path / "store" / "runs").iterdir())
    path.rename(path.with_name("a_copy"))
    assert str(path.with_name("a_copy")) in {fault["where"] for fault in faults_of(folder)["names"]}


def test_what_others_left_in_a_store_is_noted(folder: Folder) -> None:
    store = folder.path / "store"
    artifact = next((store / "runs").iterdir())
    for place in (store, store / "refs", store / "runs", artifact):
        (place / ".DS_Store").write_text("")
    verified = folder.json("verify")
    assert verified["ok"]
    assert {note["where"] for note in verified["notes"]} == {
        str(place / ".DS_Store") for place in (store / "refs", store / "runs", artifact)
    }


def test_a_flipped_bit_in_a_table_is_one_sentence_instead_of_a_value(folder: Folder) -> None:
    path = next((folder.path / "store" / "runs").glob("*/responses-*.parquet"))
    content = bytearray(path.read_bytes())
    for place in range(0, len(content), max(1, len(content) // 6)):
        content[place] ^= 4
        path.write_bytes(content)
        message = folder.refused("export", "doubling/mine", "-o", "out.csv")
        assert f"{path.name}: cannot be read: the file has changed" in message
        content[place] ^= 4
        path.write_bytes(content)
    folder.done("export", "doubling/mine", "-o", "out.csv")
    assert Path("out.csv").exists()


def test_no_bit_of_a_manifest_or_name_changes_unseen(folder: Folder) -> None:
    store, aggregation = folder.store, folder.id("aggregations")
    for path in (store.root / "aggregations" / aggregation / "manifest.json", next((store.root / "refs").iterdir())):
        content = path.read_bytes()
        unseen = []
        for place in range(0, len(content), 7):
            flipped = bytearray(content)
            flipped[place] ^= 1 << place % 8
            path.write_bytes(flipped)
            if not store.damaged_refs() and not store.damage("aggregations", aggregation):
                unseen.append(place)
        path.write_bytes(content)
        assert unseen == []


@pytest.mark.parametrize(
    "provenance", [{}, {"evaluations": 1}, {"evaluations": [["x"]]}], ids=["no ids", "a number", "lists"]
)
def test_a_manifest_that_does_not_say_its_origins_is_one_sentence(folder: Folder, provenance: dict[str, Any]) -> None:
    path = next((folder.path / "store" / "aggregations").glob("*/manifest.json"))
    path.write_bytes(orjson.dumps(with_seal(orjson.loads(path.read_bytes()) | {"provenance": provenance})))
    for arguments in (["show", path.parent.name], ["gc", "--dry-run", "--unreferenced"]):
        assert "cannot be read: provenance.evaluations" in folder.refused(*arguments)
    [artifact] = [each for each in faults_of(folder)["artifacts"] if each["id"] == path.parent.name]
    assert artifact["faults"]


def test_a_store_of_a_later_version_is_refused(folder: Folder) -> None:
    path = next((folder.path / "store" / "runs").glob("*/manifest.json"))
    manifest = orjson.loads(path.read_bytes())
    later = orjson.dumps(with_seal(manifest | {"format": FORMAT + 1}))
    path.write_bytes(later)
    for command in ("show", "export", "resume"):
        said = folder.refused(command, path.parent.name)
        formats = f"its format is {FORMAT + 1}, and this version reads up to {FORMAT}"
        assert f"was written by a later version of evaluand: {formats}" in said
    assert path.read_bytes() == later


def test_a_damaged_specification_of_open_work_is_written_again(folder: Folder) -> None:
    calls, stops = [], Unread(True)

    def stop(i: int) -> int:
        if i == 2 and stops.value:
            raise KeyboardInterrupt
        calls.append(i)
        return i

    work = task(version="1")(stop)
    data = Dataset.from_rows([{"input": i} for i in range(4)])
    with pytest.raises(KeyboardInterrupt):
        Runner(folder.store, Policy(concurrency=1)).run(work, data, name="stopped")
    path = damaged_manifest(folder, "runs", "open.json")
    assert str(path) in {fault["where"] for each in faults_of(folder)["artifacts"] for fault in each["faults"]}
    assert "start the same work again" in folder.refused("show", "stopped")
    stops.value = False
    with pytest.warns(EvaluandWarning, match=r"open\.json: cannot be read: .*; it is written again"):
        run = Runner(folder.store, Policy(concurrency=1)).run(work, data, name="stopped")
    assert (run.id, calls) == (path.parent.name, [0, 1, 2, 3])
    assert folder.json("verify")["ok"]


def test_an_evaluation_whose_open_specification_is_damaged_is_continued(folder: Folder) -> None:
    graded, stops = [], Unread(True)

    def same(output: int, expected: int) -> bool:
        if output == 2 and stops.value:
            raise KeyboardInterrupt
        graded.append(output)
        return output == expected

    run = Runner(folder.store).run(task(version="1")(int), Dataset.from_rows([{"input": i} for i in range(4)]))
    evaluator = Evaluator(policy=Policy(concurrency=1))
    scorers = {"same": scorer(version="1")(same)}
    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(run, scorers, name="stopped")
    path = next((folder.path / "store" / "evaluations").glob("*/open.json"))
    content = bytearray(path.read_bytes())
    content[253] ^= 1
    path.write_bytes(content)
    stops.value = False
    with pytest.warns(
        EvaluandWarning, match=r"open\.json: .*; it is written again, and the finished work is continued"
    ):
        evaluation = evaluator.evaluate(run, scorers, name="stopped")
    assert (evaluation.id, graded) == (path.parent.name, [0, 1, 2, 3])


def test_reuse_passes_over_damaged_tables(folder: Folder) -> None:
    work = task(version="1")(str)
    first = Runner(folder.store).run(work, Dataset.from_rows([{"input": i} for i in range(3)]))
    path = next((folder.path / "store" / "runs" / first.id).glob("responses-*.parquet"))
    path.write_bytes(path.read_bytes()[:-4] + b"1234")
    with pytest.warns(EvaluandWarning, match=f"earlier answers are not reused: .*{path.name}"):
        again = Runner(folder.store).run(work, Dataset.from_rows([{"input": i} for i in range(4)]))
    assert again.receipt is not None
    assert (again.receipt.called, again.receipt.reused) == (4, 0)


def test_the_default_name_of_a_report_follows_no_link(folder: Folder) -> None:
    victim = folder.path.parent / "victim"
    victim.write_text("precious")
    Path("doubling.html").symlink_to(victim)
    assert "is a link, pipe or device" in folder.refused("report", "doubling")
    assert victim.read_text() == "precious"
    folder.done("report", "doubling", "-o", "doubling.html")  # who names a link means the file it leads to
    assert victim.read_text() != "precious"


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def test_finished_work_that_is_damaged_is_not_called_complete(folder: Folder) -> None:
    flip_bit(next((folder.path / "store" / "runs").glob("*/responses-*.parquet")))
    refused = folder.refused("resume", "doubling/mine")
    assert " is complete but damaged: " in refused
    assert refused.endswith("type: evaluand gc --damaged\n")


@pytest.mark.parametrize("pattern", ["runs/*/responses-*.parquet", "evaluations/*/scores_*.parquet"])
def test_finished_work_with_a_cut_or_missing_table_is_made_again(folder: Folder, pattern: str) -> None:
    path = next((folder.path / "store").glob(pattern))
    path.write_bytes(path.read_bytes()[:-100])
    said = folder.call("run", folder.experiment()).stderr
    assert f"{path}: cannot be read: the file has changed, it no longer has" in said
    assert ("are lost" in said) is pattern.startswith("runs")  # a cheap scorer grades again
    folder.done("gc", "--damaged", "--yes")
    folder.done("verify", "doubling")  # what no name reaches any more may have been made from what was removed


def test_what_was_made_from_damaged_work_is_shown_with_a_note(folder: Folder) -> None:
    run = folder.id("runs")
    flip_bit(next((folder.path / "store" / "runs").glob("*/responses-*.parquet")))
    note = f"note: run {run[:12]}, from which this was made, is damaged; see `evaluand verify`\n"
    assert folder.call("show", "doubling").stderr == note
    (folder.path / "store" / "runs" / run / "manifest.json").write_text("")
    assert note in folder.call("show", "doubling").stderr


@pytest.mark.parametrize("kind", ["runs", "aggregations"])
def test_a_lost_manifest_is_listed_and_what_it_described_is_made_again(folder: Folder, kind: str) -> None:
    id = folder.id(kind)
    path = folder.path / "store" / kind / id
    (path / "manifest.json").unlink()
    assert [row["id"] for row in folder.json("list") if row["status"] == "damaged"] == [id]
    [artifact] = [each for each in faults_of(folder)["artifacts"] if each["faults"] and each["id"] == id]
    assert artifact["faults"][0]["where"] == str(path)
    for command in ("show", "report", "export", "resume"):
        assert f"{path}: its manifest is missing; restore it, or run the same work" in folder.refused(command, id)
    reason = "its manifest is missing; it was changed within the minute, so it stays"
    assert folder.done("gc", "--damaged", "--yes") == f"     left  {kind}/{id}  {reason}\nnothing to remove\n"
    os.utime(path, (1e9, 1e9))
    for file in path.iterdir():
        os.utime(file, (1e9, 1e9))
    assert "1 item" in folder.done("gc", "--damaged", "--yes")
    assert not path.exists()
    folder.done("run", folder.experiment())
    assert folder.json("verify")["ok"]


@pytest.mark.parametrize("lost", ["manifest.json", "."])
def test_what_is_left_out_without_a_lost_run_is_named(folder: Folder, lost: str) -> None:
    run = folder.path / "store" / "runs" / folder.id("runs")
    (folder.path / "app.py").write_text("def wrong(x): return '0'\n")
    folder.done("run", folder.experiment("app.py:wrong", text=EXPERIMENT.replace("name: doubling", "name: other")))
    clear(run / lost)
    for command in (["show", "doubling"], ["compare", "doubling/mine", "other/mine"]):
        said = folder.call(*command).stderr
        left_out = "ratings are left out" if "show" in command else "inputs and answers of doubling/mine are left out"
        assert ("its manifest is missing; restore it" if lost != "." else left_out) in said, command


def test_a_lost_manifest_is_written_by_the_same_work(folder: Folder) -> None:
    id = folder.id("runs")
    (folder.path / "store" / "runs" / id / "manifest.json").unlink()
    folder.done("run", folder.experiment())
    assert folder.id("runs") == id
    assert folder.json("verify")["ok"]


def test_a_damaged_name_is_never_silently_that_of_another_kind(folder: Folder) -> None:
    flip_bit(folder.path / "store" / "refs" / ref_file("doubling/mine", "runs"))
    shown = folder.call("show", "doubling/mine")
    notes = (
        "note: the name 'doubling/mine' of a run is damaged; this is the evaluation of that name\n"
        "note: 1 name is damaged: what had it goes by its id; see `evaluand verify`\n"
    )
    assert (shown.exit_code, shown.stderr) == (0, notes)
    flip_bit(folder.path / "store" / "refs" / ref_file("doubling", "aggregations"))
    assert "the name 'doubling' of an aggregation is damaged" in folder.refused("show", "doubling")
    verified = folder.call("verify").stdout
    assert verified.count("the name in this file ") == 2
    assert "the manifest" not in verified


def test_the_summary_counts_what_cannot_be_checked(folder: Folder) -> None:
    (folder.path / "store" / "runs" / folder.id("runs") / "manifest.json").write_bytes(b"{}")
    verified = folder.call("verify")
    assert verified.exit_code == 1
    assert "4 artifacts and 3 names checked, 1 with faults, 1 that cannot be checked" in verified.stdout
    assert verified.stdout.count("fault  ") == verified.stdout.count("unchecked  ") == 1
    (evaluation,) = [each for each in faults_of(folder)["artifacts"] if each["kind"] == "evaluations"]
    assert [fault["code"] for fault in evaluation["faults"]] == ["unchecked"]


def test_the_summary_counts_names(folder: Folder) -> None:
    assert folder.done("verify").endswith("\n4 artifacts and 3 names checked, 0 with faults\n")
    folder.store.refer("lost", "runs", ID)
    assert folder.call("verify").stdout.endswith("\n4 artifacts and 4 names checked, 1 with faults\n")


def test_the_question_before_damage_is_removed_says_what_has_to_be_repeated(folder: Folder) -> None:
    flip_bit(next((folder.path / "store" / "runs").glob("*/responses-*.parquet")))
    asked = folder.call("gc", "--damaged", input="n\n").stderr
    assert "? 6 finished calls will have to be repeated; [y/N]" in asked, asked


def test_what_others_planted_in_a_journal_is_noted(with_open_run: Folder) -> None:
    folder = with_open_run
    journal = next((folder.path / "store" / "runs").glob("*/journal"))
    (log,) = journal.iterdir()
    planted = [journal / "notes.txt", log / "notes.txt", log / "more", log / "leases" / "notes.txt"]
    for path in planted:
        path.mkdir() if path.name == "more" else path.write_text("mine")
    pipe, link, lease = log / f"{1:020}-00000000.lines", log / f"{2:020}-00000000.lines", log / "leases" / "7.json"
    os.mkfifo(pipe)
    link.symlink_to("/etc/passwd")
    os.mkfifo(lease)
    before = {note["where"] for note in folder.json("verify")["notes"]}
    assert before == {str(path) for path in (*planted, pipe, link, lease)}


def test_what_others_planted_in_a_journal_is_noted_after_sealing(folder: Folder) -> None:
    runs = folder.path / "store" / "runs"

    def plant(i: int) -> int:
        (journal,) = runs.glob("*/journal")
        for path in (journal / "notes.txt", journal / "calls" / "notes.txt"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")
        return i

    run = Runner(folder.store).run(plant, Dataset.from_rows([{"input": 1}]))
    journal = runs / run.id / "journal"
    planted = {str(journal / "notes.txt"), str(journal / "calls" / "notes.txt")}
    assert {note["where"] for note in folder.json("verify")["notes"]} == planted


def test_a_link_or_pipe_with_the_name_of_a_table_is_noted_once(folder: Folder) -> None:
    path = next((folder.path / "store" / "runs").iterdir())
    (path / "more-00000000.parquet").symlink_to("/etc/passwd")
    os.mkfifo(path / "journal")
    needed = next(path.glob("responses-*.parquet"))
    needed.unlink()
    os.mkfifo(needed)
    verified = faults_of(folder)
    assert {note["where"] for note in verified["notes"]} == {
        str(path / "more-00000000.parquet"),
        str(path / "journal"),
    }
