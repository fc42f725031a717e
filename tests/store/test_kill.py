"""A process may be killed at any moment, or have company: no finished call is repeated, and the result is the same.

Processes are forked from one that has imported everything and done nothing, since starting dozens of interpreters
would take most of the time.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from support.nursery import Nursery, noted
from support.patience import PATIENCE

from evaluand.store.directory import DirectoryStore
from evaluand.store.shards import SHARD_SLOTS

EXAMPLES = 2000
KILLS = 10
CONCURRENCY = 8


@dataclass
class Grave:
    """What was there when a process had been killed.

    Attributes:
        calls: how many had begun.
        kept: the slots whose line was complete.
        size: bytes in the journal's segments.
        other: bytes in the journal beside them.
    """

    calls: int
    kept: set[int]
    size: int
    other: int


def looked_at(folder: Path, kind: str, notes: str) -> Grave:
    kept: set[int] = set()
    size = other = 0
    for path in (folder / "store" / kind).glob("*/journal/*/*"):
        if path.suffix == ".lines":
            data = path.read_bytes()
            size += len(data)
            kept |= {orjson.loads(line[:-8])[0] for line in data.split(b"\n")[:-1]}  # without checksums
        else:
            other += path.stat().st_size
    return Grave(len(noted(folder, notes)), kept, size, other)


def killed_again_and_again(
    nursery: Nursery, folder: Path, kind: str, notes: str, total: int, what: str, *order: object, kills: int = KILLS
) -> tuple[str, list[Grave]]:
    """What a step has to tell in the end, and what each of its processes left that was killed.

    The moments are drawn from all numbers of calls; the last lies behind the last call, while tables are written.
    """
    moments = random.Random(f"{what} {order}")
    graves = []
    for calls in [*sorted(moments.sample(range(total), kills - 1)), total]:
        pid = nursery.start(folder, what, *order)
        end = time.monotonic() + PATIENCE
        while len(set(noted(folder, notes))) < calls:
            assert time.monotonic() < end
            time.sleep(0.002)
        time.sleep(moments.random() * 0.01)
        os.kill(pid, signal.SIGKILL)
        assert nursery.end(pid) in (0, -signal.SIGKILL)
        graves.append(looked_at(folder, kind, notes))
    return nursery.finish(folder, what, *order), graves


def check_nothing_was_repeated(calls: list[int], asked: set[int], graves: list[Grave]) -> None:
    assert set(calls) == asked
    assert len(calls) <= len(asked) + len(graves) * CONCURRENCY
    for grave in graves:
        assert grave.kept & set(calls[grave.calls :]) == set()


def check_the_journal_is_as_long_as_the_work(graves: list[Grave]) -> None:
    some = [grave for grave in graves if len(grave.kept) > 20]
    assert len(some) > len(graves) // 2  # what was killed had not ended
    per_line = [grave.size / len(grave.kept) for grave in some]
    assert max(per_line) < 1.5 * min(per_line)
    assert max(per_line) < 400
    assert max(grave.other for grave in graves) < 200_000  # leases


def left_over(folder: Path, kind: str) -> set[str]:
    """The files of the one artifact of a kind that do not belong to it once it is sealed."""
    [artifact] = (folder / "store" / kind).iterdir()
    manifest = orjson.loads((artifact / "manifest.json").read_bytes())
    tables = {entry["file"] for entry in manifest["tables"].values()}
    return {path.name for path in artifact.iterdir()} - {"manifest.json", *tables}


@pytest.mark.parametrize(
    ("kind", "kills", "examples"),
    [
        ("coroutines", 3, 400),
        *(pytest.param(kind, KILLS, EXAMPLES, marks=pytest.mark.slow) for kind in ("threads", "coroutines")),
    ],
)
def test_a_run_killed_several_times_repeats_no_finished_call_and_ends_as_if_nothing_had_been(
    nursery: Nursery, tmp_path: Path, kind: str, kills: int, examples: int
) -> None:
    undisturbed = nursery.finish(tmp_path / "undisturbed", "run", kind, examples)
    folder = tmp_path / "killed"
    order = "run", kind, examples
    digest, graves = killed_again_and_again(nursery, folder, "runs", "calls", examples, *order, kills=kills)
    assert digest == undisturbed
    check_nothing_was_repeated(noted(folder, "calls"), set(range(examples)), graves)
    check_the_journal_is_as_long_as_the_work(graves)
    store = DirectoryStore(folder / "store")
    [id] = store.ids("runs")
    failed = len(range(5, examples, 97))
    assert store.manifest("runs", id)["counts"] == {"completed": examples - failed, "failed": failed}


@pytest.mark.slow
def test_an_evaluation_killed_ten_times_repeats_no_finished_grade_and_ends_as_if_nothing_had_been(
    nursery: Nursery, tmp_path: Path
) -> None:
    for name in ("undisturbed", "killed"):
        nursery.finish(tmp_path / name, "run", "coroutines", EXAMPLES)
    undisturbed = nursery.finish(tmp_path / "undisturbed", "evaluate", EXAMPLES)
    asked = {i for i in range(EXAMPLES) if i % 97 != 5}  # nobody grades what the task failed at
    folder = tmp_path / "killed"
    digest, graves = killed_again_and_again(nursery, folder, "evaluations", "grades", len(asked), "evaluate", EXAMPLES)
    assert digest == undisturbed

    check_nothing_was_repeated(noted(folder, "grades"), asked, graves)
    check_the_journal_is_as_long_as_the_work(graves)
    store = DirectoryStore(folder / "store")
    [id] = store.ids("evaluations")
    failed = len({i for i in range(EXAMPLES) if i % 97 == 5 or i % 101 == 3})
    assert store.manifest("evaluations", id)["counts"] == {"slow": {"scored": EXAMPLES - failed, "failed": failed}}


@pytest.mark.parametrize("round", [0, *(pytest.param(round, marks=pytest.mark.slow) for round in (1, 2))])
def test_three_processes_share_one_run_and_one_evaluation(nursery: Nursery, tmp_path: Path, round: int) -> None:
    examples = 2 * SHARD_SLOTS + 50  # the last piece is done at once, so that they meet at the end
    pids = [nursery.start(tmp_path, "whole", examples) for _ in range(3)]
    (tmp_path / "go").touch()
    assert [nursery.end(pid) for pid in pids] == [0, 0, 0]
    assert len({(tmp_path / f"told-{pid}").read_text() for pid in pids}) == 1

    calls, grades = Counter(noted(tmp_path, "calls")), Counter(noted(tmp_path, "grades"))
    assert calls == dict.fromkeys(range(examples), 1)
    assert grades == {i: 1 for i in range(examples) if i % 97 != 5}
    for kind in ("datasets", "runs", "evaluations", "aggregations"):
        assert left_over(tmp_path, kind) == set()


def test_a_process_that_comes_late_finds_the_work_done(nursery: Nursery, tmp_path: Path) -> None:
    first = nursery.finish(tmp_path, "run", "threads", 100)
    assert nursery.finish(tmp_path, "run", "threads", 100) == first
    assert sorted(noted(tmp_path, "calls")) == list(range(100))


def test_a_process_killed_while_it_seals_costs_no_call_and_leaves_nothing(nursery: Nursery, tmp_path: Path) -> None:
    pid = nursery.start(tmp_path, "half_a_seal", "threads", 100)
    assert nursery.end(pid) == -signal.SIGKILL
    assert sorted(noted(tmp_path, "calls")) == list(range(100))
    store = DirectoryStore(tmp_path / "store")
    [id] = store.ids("runs")
    assert not store.is_sealed("runs", id)

    digest = nursery.finish(tmp_path, "run", "threads", 100)
    assert store.manifest("runs", id)["digest"] == digest
    assert len(noted(tmp_path, "calls")) == 100
    assert left_over(tmp_path, "runs") == set()
