"""Matches of several runs: exactly the new pairs are judged, whoever is killed, stopped, or judges at the same time.

The judge writes each of its calls to a file, and processes are real ones.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from support.nursery import Nursery, noted
from support.patience import PATIENCE

from evaluand.matches import Matches
from evaluand.report.verification import verify
from evaluand.store.directory import DirectoryStore

CONCURRENCY = 8  # of the processes of the nursery
BUDGET = 360
ADAPTIVE = ["swiss", "information_gain"]


def judged(folder: Path) -> list[int]:
    """The judgements made so far: (question · 100 + first) · 100 + second."""
    return noted(folder, "judgements")


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.002)


def both_orders(questions: range | list[int], pairs: list[tuple[int, int]]) -> set[int]:
    return {(q * 100 + x) * 100 + y for q in questions for a, b in pairs for x, y in ((a, b), (b, a))}


def stored_keys(folder: Path) -> set[str]:
    """The keys of the judgements that a journal holds."""
    keys: set[str] = set()
    for path in (folder / "store" / "matches").glob("*/journal/*/*.lines"):
        lines = path.read_bytes().split(b"\n")[:-1]
        records = [orjson.loads(line[:-8]) for line in lines]  # without checksums
        keys |= {record[1] for record in records if record[0] >= 0}  # and without fences
    return keys


def call_of_keys(folder: Path, id: str) -> dict[str, set[int]]:
    """The calls that each key stands for, from the sealed matches."""
    found: dict[str, set[int]] = {}
    columns = ["_index_", "a", "b", "order", "digest"]
    for row in Matches(DirectoryStore(folder / "store"), id).table(columns).to_pylist():
        if row["digest"] is not None:
            first, second = (row["a"], row["b"]) if row["order"] == "ab" else (row["b"], row["a"])
            # both equal answers of the systems 0 and 1 are those of 0
            first, second = (0 if row["_index_"] % 9 == 8 and each == 1 else each for each in (first, second))
            found.setdefault(row["digest"].hex(), set()).add((row["_index_"] * 100 + first) * 100 + second)
    return found


def check_intact(folder: Path, id: str) -> None:
    store = DirectoryStore(folder / "store")
    assert verify(store, "matches", id) == []
    left = {path.name for path in (folder / "store" / "matches" / id).iterdir()}
    tables = {entry["file"] for entry in store.manifest("matches", id)["tables"].values()}
    assert left == {"manifest.json", *tables}


def test_a_run_a_corrected_answer_and_an_example_cost_exactly_their_pairs(nursery: Nursery, tmp_path: Path) -> None:
    calls = 0

    def new_calls(*order: int) -> set[int]:
        nonlocal calls
        nursery.finish(tmp_path, "match", "all_pairs", *order)
        made = judged(tmp_path)[calls:]
        calls += len(made)
        assert len(made) == len(set(made))
        return set(made)

    questions = range(4)
    three, fourth = [(0, 1), (0, 2), (1, 2)], [(0, 3), (1, 3), (2, 3)]
    assert new_calls(3, 4, 0) == both_orders(questions, three)
    assert new_calls(3, 4, 0) == set()
    assert new_calls(4, 4, 0) == both_orders(questions, fourth)
    assert new_calls(4, 4, 0, 1) == both_orders([1], fourth)
    added = both_orders([4], [(0, 1), (0, 3), (1, 3)])  # where the system 2 fails
    assert new_calls(4, 5, 0, 1) == added
    assert new_calls(2, 5, 0) == new_calls(3, 3, 0) == set()
    assert calls == 24 + 24 + 6 + 6


def play_killed(nursery: Nursery, folder: Path, order: tuple[object, ...], total: int, kills: int) -> str:
    """Kills a process after several numbers of judgements drawn at random; what the last one says.

    A judgement that is in the journal when a process is killed is never made again.
    """
    moments, graves = random.Random(f"{order}"), []
    for calls in [*sorted(moments.sample(range(1, total), kills - 1)), total]:
        pid = nursery.start(folder, "match", *order)
        while len(set(judged(folder))) < calls and not (folder / f"told-{pid}").exists():
            time.sleep(0.002)
        time.sleep(moments.random() * 0.01)
        os.kill(pid, signal.SIGKILL)
        assert nursery.end(pid) in (0, -signal.SIGKILL)
        graves.append((len(judged(folder)), stored_keys(folder)))
    told = nursery.finish(folder, "match", *order)
    calls_of = call_of_keys(folder, told.split()[0])
    made = judged(folder)
    assert len(made) - len(set(made)) <= kills * CONCURRENCY
    for before, keys in graves:
        assert set().union(*(calls_of[key] for key in keys)).isdisjoint(made[before:])
    return told


def check_killed(nursery: Nursery, tmp_path: Path, schedule: str, examples: int, kills: int) -> None:
    order = (schedule, 4, examples, BUDGET)
    undisturbed = nursery.finish(tmp_path / "undisturbed", "match", *order)
    asked = set(judged(tmp_path / "undisturbed"))
    folder = tmp_path / "killed"
    assert play_killed(nursery, folder, order, len(asked), kills) == undisturbed
    assert set(judged(folder)) == asked
    check_intact(folder, undisturbed.split()[0])


@pytest.mark.slow
def test_matches_that_are_killed_repeat_no_stored_judgement(nursery: Nursery, tmp_path: Path) -> None:
    check_killed(nursery, tmp_path, "information_gain", 60, 3)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["all_pairs", *ADAPTIVE])
def test_matches_that_are_killed_ten_times_repeat_no_stored_judgement(
    nursery: Nursery, tmp_path: Path, schedule: str
) -> None:
    check_killed(nursery, tmp_path, schedule, 120, 10)


def check_shared(nursery: Nursery, tmp_path: Path, workers: int, *order: object) -> None:
    alone = nursery.finish(tmp_path / "alone", "match", *order)
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "wait").touch()
    pids = [nursery.start(folder, "match", *order) for _ in range(workers)]
    time.sleep(0.3)
    (folder / "wait").unlink()
    assert [nursery.end(pid) for pid in pids] == [0] * workers
    assert {(folder / f"told-{pid}").read_text() for pid in pids} == {alone}
    assert Counter(judged(folder)) == dict.fromkeys(judged(tmp_path / "alone"), 1)
    check_intact(folder, alone.split()[0])


@pytest.mark.slow
def test_three_workers_share_the_rounds_of_matches(nursery: Nursery, tmp_path: Path) -> None:
    check_shared(nursery, tmp_path, 3, "swiss", 4, 40, 120)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["all_pairs", *ADAPTIVE])
def test_eight_workers_share_matches(nursery: Nursery, tmp_path: Path, schedule: str) -> None:
    check_shared(nursery, tmp_path, 8, schedule, 5, 300, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["all_pairs", *ADAPTIVE])
@pytest.mark.parametrize("number", range(3))
def test_a_worker_that_is_stopped_until_another_has_ended_agrees_with_it(
    nursery: Nursery, tmp_path: Path, schedule: str, number: int
) -> None:
    moments, order = random.Random(f"{schedule} {number}"), (schedule, 4, 60, 300)
    alone = nursery.finish(tmp_path / "alone", "match", *order)
    asked = set(judged(tmp_path / "alone"))
    folder = tmp_path / "stopped"
    folder.mkdir()
    (folder / "lease_seconds").write_text("1.0")
    first = nursery.start(folder, "match", *order)
    moment = moments.randrange(1, len(asked))
    wait_until(lambda: len(judged(folder)) >= moment)
    nursery.send(first, signal.SIGSTOP)
    second = nursery.start(folder, "match", *order)
    if number:
        wait_until(lambda: len(set(judged(folder))) >= (moment + len(asked)) // 2)
    else:
        assert nursery.end(second) == 0
    nursery.send(first, signal.SIGCONT)
    assert nursery.end(first) == 0
    if number:
        assert nursery.end(second) == 0
    assert {(folder / f"told-{pid}").read_text() for pid in (first, second)} == {alone}
    made = judged(folder)
    assert set(made) == asked
    assert len(made) - len(asked) <= CONCURRENCY
    check_intact(folder, alone.split()[0])


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["information_gain"])
def test_damaged_lines_of_a_journal_repeat_only_their_judgements(
    nursery: Nursery, tmp_path: Path, schedule: str
) -> None:
    order = (schedule, 3, 40, 120)
    alone = nursery.finish(tmp_path / "alone", "match", *order)
    asked = set(judged(tmp_path / "alone"))
    folder = tmp_path / "damaged"
    pid = nursery.start(folder, "match", *order)
    wait_until(lambda: len(judged(folder)) > 0.7 * len(asked))
    os.kill(pid, signal.SIGKILL)
    assert nursery.end(pid) == -signal.SIGKILL
    calls_of = call_of_keys(tmp_path / "alone", alone.split()[0])
    before, stored, lost = len(judged(folder)), stored_keys(folder), set[str]()
    for path in (folder / "store" / "matches").glob("*/journal/round[03]/*.lines"):
        lines = path.read_bytes().split(b"\n")
        lost.add(orjson.loads(lines[1][:-8])[1])
        lines[1] = lines[1].replace(b"scored", b"sc0red").replace(b"failed", b"f8iled").replace(b"tained", b"t8ined")
        path.write_bytes(b"\n".join(lines))
    assert len(lost) == 2
    assert nursery.finish(folder, "match", *order) == alone
    repeated = set(judged(folder)[before:]) & set().union(*(calls_of[key] for key in stored))
    assert repeated == set().union(*(calls_of[key] for key in lost))
