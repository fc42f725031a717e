"""Who works on what: leases without locks, whoever is stopped, killed or damaged when."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st
from support.forks import call_in_fork
from support.journals import lines_of
from support.patience import PATIENCE
from support.thinned import thinned
from support.worker_process import HOLDS, Process, open_lane, processes

from evaluand.core.errors import EngineError
from evaluand.core.system import this_process
from evaluand.engine.engine import Recipe
from evaluand.engine.keyed_work import KeyedWork
from evaluand.store import io, journal, leases as leasing
from evaluand.store.io import Disk, DiskFolder
from evaluand.store.lease_state import State, Worker, pack_state, unpack_state
from evaluand.store.leases import FileLeases, Leases, is_worked_on
from evaluand.store.memory_leases import MemoryLeases

CLAIMS = """
import os, sys
from pathlib import Path
from support.worker_process import open_lane

folder, shards, finishes = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "finish"
leases = open_lane(folder).leases
taken = os.open(folder / "taken", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
print("ready", flush=True)
sys.stdin.readline()
while claim := leases.claim(shards):
    os.write(taken, b"%d %d\\n" % (claim[0], os.getpid()))
    if finishes:
        leases.finish(claim[0])
print("all taken", flush=True)
sys.stdin.readline()
"""


def leases_in(folder: Path) -> FileLeases:
    leases = open_lane(folder).leases
    assert isinstance(leases, FileLeases)
    return leases


@contextmanager
def released(*several: FileLeases) -> Iterator[None]:
    try:
        yield
    finally:
        for one in several:
            one.release()


def until(found: Callable[[], Any]) -> Any:
    """What a function finds, once it finds something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = found()
        if value is not None:
            return value
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def states(folder: Path) -> list[Path]:
    return sorted((folder / "leases").glob("*.json"))


def change(folder: Path, changed: Callable[[State], State]) -> None:
    """Writes a further state, as another worker would."""
    number = int(states(folder)[-1].stem)
    state = unpack_state(number, states(folder)[-1].read_bytes())
    assert state is not None
    (folder / "leases" / f"{number + 1:012d}.json").write_bytes(pack_state(number + 1, changed(state)))


def run_out(folder: Path) -> None:
    """Ends every lease, as time would where hearts do not beat."""

    def older(state: State) -> State:
        state.workers = {name: replace(worker, beat=worker.beat - 1e6) for name, worker in state.workers.items()}
        return state

    change(folder, older)


@pytest.mark.parametrize("finishes", ["hold", "finish"])
def test_no_shard_is_ever_held_by_two_processes(tmp_path: Path, finishes: str) -> None:
    started = [Process(CLAIMS, tmp_path, 60, finishes) for _ in range(3)]
    with processes(*started):
        assert [one.read_line() for one in started] == ["ready"] * 3
        for one in started:
            one.send()
        assert [one.read_line() for one in started] == ["all taken"] * 3  # all still live and hold what they took
        taken = [int(text.split()[0]) for text in (tmp_path / "taken").read_text().splitlines()]
    assert sorted(taken) == list(range(60))


def test_a_dead_process_holds_nothing_however_long_its_lease(tmp_path: Path) -> None:
    holder, mine = Process(HOLDS, tmp_path, 1e9), leases_in(tmp_path)
    with processes(holder), released(mine):
        assert holder.read_line() == "0 0"
        assert mine.claim(1) is None
        assert mine.busy()
        holder.kill()
        assert not mine.busy()
        assert mine.claim(1) == (0, 1)


def test_a_killed_process_that_nobody_has_waited_for_is_dead(tmp_path: Path) -> None:
    holder, mine = Process(HOLDS, tmp_path, 1e9), leases_in(tmp_path)
    with processes(holder), released(mine):
        assert holder.read_line() == "0 0"
        assert mine.busy()
        holder.process.send_signal(9)
        assert until(lambda: mine.claim(1)) == (0, 1)


def test_a_process_with_the_number_of_a_dead_one_is_another(tmp_path: Path) -> None:
    first, second = leases_in(tmp_path), leases_in(tmp_path)
    with released(first, second):
        first.claim(1)

        def earlier(state: State) -> State:
            [(name, worker)] = state.workers.items()
            process = replace(worker.process, pid=os.getppid(), started=1)
            state.workers[name] = replace(worker, process=process)
            return state

        assert second.busy()
        change(tmp_path, earlier)
        assert not second.busy()


def test_a_living_process_keeps_its_lease_by_its_heartbeat(tmp_path: Path) -> None:
    holder = Process(HOLDS, tmp_path, 0.6)
    with processes(holder):
        assert holder.read_line() == "0 0"
        first = states(tmp_path)[-1]
        assert until(lambda: True if states(tmp_path)[-1] > first else None)


def test_a_process_that_is_stopped_loses_its_lease_and_nothing_that_it_writes_later_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "LEASE_SECONDS", 0.3)
    holder, mine = Process(HOLDS, tmp_path, 0.3), open_lane(tmp_path)
    with processes(holder):
        assert holder.read_line() == "0 0"
        holder.send('[0,"before"]')
        assert holder.read_line() == "True"
        holder.stop()
        assert until(lambda: mine.leases.claim(1)) == (0, 1)
        holder.go_on()
        holder.send('[1,"after"]')
        assert holder.read_line() == "False"
        holder.send("claim")
        assert holder.read_line() == "None"
        mine.leases.finish(0)
        mine.close()
        holder.send("claim")
        assert holder.read_line() == "None"  # it is done
        holder.send('[2,"in a new segment"]')
        assert holder.read_line() == "True"
        mine.refresh()
        assert [mine.is_done(slot) for slot in range(3)] == [True, False, True]
    mine.close()


def test_a_line_that_was_under_way_when_its_worker_was_stopped_does_not_count(tmp_path: Path) -> None:
    slow, quick = open_lane(tmp_path), open_lane(tmp_path)
    assert slow.leases.claim(1) == (0, 0)
    assert slow.append(b'[0,"in time"]\n')
    assert slow.leases.holds()  # asked just before the write
    run_out(tmp_path)
    assert quick.leases.claim(1) == (0, 1)
    slow._log.append(b'[1,"late"]\n')
    quick.refresh()
    assert lines_of(quick) == [b'[0,"in time"]\n']
    slow.close()
    quick.close()


def test_a_worker_that_was_stopped_within_a_write_begins_no_further_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = open_lane(tmp_path), open_lane(tmp_path)
    others = [b'[%d,"quick"]\n' % slot for slot in range(1, 12)]
    called: list[int] = []

    class StoppedDisk(Disk):
        def write(self, handle: int, data: Any) -> int:
            if b"slow" in data and len(called) == 2:
                run_out(tmp_path)
                assert quick.leases.claim(1) == (0, 1)
                quick.append(b"".join(others))
                quick.leases.finish(0)
                quick.close()
                slow.leases._renewed_at = 0.0
                time.sleep(2 * journal.ASK_SECONDS)
            return super().write(handle, data)

    def units(start: int, stop: int) -> Iterator[SimpleNamespace]:
        return (SimpleNamespace(slot=slot, size=1) for slot in range(start, stop))

    def line(unit: Any, outcome: Any) -> tuple[bytes, int]:
        return b'[%d,"slow"]\n' % unit.slot, 0

    monkeypatch.setattr(io, "disk", StoppedDisk())
    KeyedWork(slow, units, Recipe(lambda unit: called.append(unit.slot), line)).perform()
    assert called == [0, 1]
    assert [*map(bytes, lines_of(slow))] == [b'[0,"slow"]\n', *others]
    slow.close()


def test_the_fence_of_a_worker_that_dies_before_it_writes_it_is_written_by_the_next(tmp_path: Path) -> None:
    slow, quick, last = open_lane(tmp_path), open_lane(tmp_path), open_lane(tmp_path)
    slow.leases.claim(2)
    run_out(tmp_path)

    class Died(BaseException):
        pass

    def dies(segment: str, offset: int) -> None:
        raise Died

    assert isinstance(quick.leases, FileLeases)
    quick.leases.fence = dies
    with pytest.raises(Died):
        quick.leases.claim(1)
    slow._log.append(b'[1,"late"]\n')
    assert last.leases.claim(2) == (1, 0)
    last.refresh()
    assert last.n_done == 0
    for one in (slow, quick, last):
        one.close()
    leases = leases_in(tmp_path)
    with released(leases):
        leases.claim(3)
        assert leases._latest[1].fences == []


def test_who_lost_a_lease_cannot_finish_the_shard_or_take_it_back(tmp_path: Path) -> None:
    slow, quick, last = (leases_in(tmp_path) for _ in range(3))
    assert slow.claim(1) == (0, 0)
    run_out(tmp_path)
    assert quick.claim(1) == (0, 1)
    slow.finish(0)
    slow.release()
    assert last.claim(1) is None
    quick.release()
    assert last.claim(1) == (0, 2)
    last.release()


def test_a_worker_whose_own_lease_ran_out_keeps_it_while_nobody_takes_over(tmp_path: Path) -> None:
    mine = leases_in(tmp_path)
    with released(mine):
        assert mine.claim(2) == (0, 0)
        mine._renewed_at -= 1e6
        assert mine.holds()
        assert mine.claim(2) == (1, 0)
        assert mine.claim(2) is None


def test_a_worker_that_lost_its_leases_goes_on_as_a_new_one(tmp_path: Path) -> None:
    slow, quick = open_lane(tmp_path), open_lane(tmp_path)
    slow.leases.claim(3)
    first = slow._log.segment
    run_out(tmp_path)
    quick.leases.claim(1)
    assert slow.leases.claim(3) is None
    assert not slow.leases.holds()
    assert not slow.leases.has(0)
    assert slow.leases.claim(3) == (1, 0)
    assert slow.leases.holds()
    assert slow._log.segment != first
    slow.close()
    quick.close()


def test_a_worker_that_learns_from_its_heart_that_its_leases_are_lost_is_refused_its_next_claim(tmp_path: Path) -> None:
    """What it has under way would go into its next segment, where no fence ends it."""
    slow, quick = open_lane(tmp_path), open_lane(tmp_path)
    assert isinstance(slow.leases, FileLeases)
    slow.leases.claim(3)
    first = slow._log.segment
    run_out(tmp_path)
    quick.leases.claim(1)
    assert not slow.leases._renew()
    assert slow.leases.claim(3) is None
    assert not slow.leases.holds()
    assert slow._log.segment == first
    assert slow.leases.claim(3) == (1, 0)
    assert slow.leases.holds()
    assert slow._log.segment != first
    slow.close()
    quick.close()


@pytest.mark.parametrize("reader", ["who wrote it", "a third worker"])
def test_a_late_line_is_not_final_although_its_fence_is_not_written_yet(tmp_path: Path, reader: str) -> None:
    slow, quick, third = (open_lane(tmp_path) for _ in range(3))
    slow.leases.claim(1)
    run_out(tmp_path)
    assert isinstance(quick.leases, FileLeases)
    quick.leases.fence = None  # it is stopped before it writes where the other's segment ends
    assert quick.leases.claim(1) == (0, 1)
    slow._log.append(b"".join(b"[%d,1]\n" % slot for slot in range(slow.slots)))
    sealing = slow if reader == "who wrote it" else third
    sealing.refresh()
    assert sealing.n_done == sealing.slots
    assert not sealing.is_final()
    assert sealing.n_done == 0
    for lane in (slow, quick, third):
        lane.close()


def test_lines_that_are_final_stay_although_another_worker_was_taking_over(tmp_path: Path) -> None:
    slow, quick, third = (open_lane(tmp_path) for _ in range(3))
    slow.leases.claim(1)
    run_out(tmp_path)
    measure, sizes = quick._log.size, []

    def measure_too_early(segment: str) -> int:
        """Before the state says that the worker is taken over from, it writes, and a third one seals."""
        sizes.append(measure(segment))
        if len(sizes) == 1:
            slow._log.append(b"".join(b"[%d,1]\n" % slot for slot in range(slow.slots)))
            third.refresh()
            assert third.is_final()
        return sizes[-1]

    quick._log.size = measure_too_early  # type: ignore[method-assign]
    assert quick.leases.claim(1) == (0, 1)
    assert sizes[0] < sizes[1]
    quick.refresh()
    third.refresh()
    assert quick.n_done == third.n_done == third.slots
    for lane in (slow, quick, third):
        lane.close()


def test_nothing_is_written_to_confirm_lines_where_nobody_can_be_taken_over(tmp_path: Path) -> None:
    lane = open_lane(tmp_path)
    assert not lane.is_final()
    assert [*tmp_path.rglob("*.json")] == []
    lane.close()


def test_lines_of_a_worker_without_fence_count_whoever_took_over(tmp_path: Path) -> None:
    """An app that records: others use none of its numbers, and its calls are not repeated."""
    app, other = open_lane(tmp_path, None), open_lane(tmp_path, None)
    assert app.leases.claim(9, is_fenced=False) == (0, 0)
    run_out(tmp_path)
    assert other.leases.claim(9, is_fenced=False) == (0, 1)
    other.leases.finish(0)
    assert other.leases.claim(9, is_fenced=False) == (1, 0)
    app.leases._renewed_at -= 1e6  # type: ignore[attr-defined]
    assert app.append(b'[5,"recorded"]\n')
    assert other.leases.busy()
    other.refresh()
    assert other.is_done(5)
    app.close()
    other.close()


@pytest.mark.parametrize("clock", ["shared", "other boot"])
def test_a_worker_of_another_machine_is_given_up_when_it_was_not_seen_to_beat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    monkeypatch.setattr(leasing, "LEASE_SECONDS", 0.3)
    far, mine = leases_in(tmp_path), leases_in(tmp_path)
    far.claim(1)
    assert far._beating is not None
    far._beating.set()

    def elsewhere(state: State) -> State:
        [(name, worker)] = state.workers.items()
        boot = worker.process.boot if clock == "shared" else "elsewhere"
        process = replace(worker.process, boot=boot, numbers="elsewhere", pid=1)
        state.workers[name] = replace(worker, process=process)
        return state

    change(tmp_path, elsewhere)
    with released(mine):
        assert mine.claim(1) is None
        assert mine.busy()
        began = time.monotonic()
        assert until(lambda: mine.claim(1)) == (0, 1)
        assert time.monotonic() - began > 0.2
        far.release()


def test_who_waits_learns_whether_a_worker_of_another_machine_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "LEASE_SECONDS", 0.3)
    dead = Worker(replace(this_process(), boot="elsewhere", numbers="elsewhere"), 5.0, 1, (0,), True)
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / f"{1:012d}.json").write_bytes(pack_state(1, State({"a.lines": dead})))
    mine = leases_in(tmp_path)
    assert mine.busy()
    assert mine.describe_others(only_distant=True) == mine.describe_others() != ""
    assert not mine.busy(patient=True)
    assert mine.describe_others() == ""
    assert not leases_in(tmp_path).busy(), "the same process need not wait again"


def new_leases(kind: str, folder: Path) -> Leases:
    return MemoryLeases() if kind == "memory" else leases_in(folder)


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_shards_are_given_in_order_and_each_once(tmp_path: Path, kind: str) -> None:
    leases = new_leases(kind, tmp_path)
    assert [leases.claim(3) for _ in range(4)] == [(0, 0), (1, 0), (2, 0), None]
    leases.release()


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_a_worker_alone_is_not_kept_waiting_by_itself(tmp_path: Path, kind: str) -> None:
    leases = new_leases(kind, tmp_path)
    leases.claim(2)
    assert not leases.busy()
    assert leases.held() == 1
    leases.release()


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_a_unit_is_taken_once_until_it_is_dropped(tmp_path: Path, kind: str) -> None:
    leases = new_leases(kind, tmp_path)
    assert [leases.take([7, 9]) for _ in range(3)] == [(7, 0), (9, 0), None]
    assert leases.has(7)
    leases.drop(7)
    assert not leases.has(7)
    assert leases.take(iter([9, 7])) == (7, 0)
    leases.release()


def test_what_is_given_back_is_free_and_what_is_done_is_not(tmp_path: Path) -> None:
    first, second = leases_in(tmp_path), leases_in(tmp_path)
    assert (first.claim(3), first.claim(3)) == ((0, 0), (1, 0))
    first.finish(0)
    first.release()
    assert [second.claim(3) for _ in range(3)] == [(1, 1), (2, 0), None]
    second.release()


def test_what_was_done_without_lines_is_opened_again(tmp_path: Path) -> None:
    first, second = leases_in(tmp_path), leases_in(tmp_path)
    for shard in range(4):
        assert first.claim(4) == (shard, 0)
        first.finish(shard)
    assert first.claim(4) is None
    first.release()
    second.reopen([0, 2])
    assert [second.claim(4) for _ in range(3)] == [(0, 1), (2, 1), None]
    second.release()


def test_a_state_is_as_long_as_the_work_under_way_and_few_states_stay(tmp_path: Path) -> None:
    leases = leases_in(tmp_path)
    with released(leases):
        for shard in range(500):
            assert leases.claim(1000) == (shard, 0)
            leases.finish(shard)
        for unit in range(2000, 2100):
            leases.take([unit])
            leases.drop(unit)
        assert len([*(tmp_path / "leases").iterdir()]) == leasing.KEPT_STATES
        assert states(tmp_path)[-1].stat().st_size < 500


def test_a_fork_has_no_leases_of_its_parent(tmp_path: Path) -> None:
    lane = open_lane(tmp_path)
    assert lane.leases.claim(2) == (0, 0)
    reading, writing = os.pipe()

    def claim() -> None:
        found = (lane.leases.has(0), lane.leases.claim(2), lane.leases.busy())
        lane.leases.release()
        os.write(writing, repr(found).encode())

    assert call_in_fork(claim) == 0
    assert os.read(reading, 100) == b"(False, (1, 0), True)"
    os.close(reading)
    os.close(writing)
    assert lane.leases.has(0)
    assert lane.leases.claim(2) == (1, 1)
    lane.close()


def test_looking_makes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    leases = leases_in(folder)
    assert (leases.busy(), leases.held(), is_worked_on(DiskFolder(folder), 1e9)) == (False, 0, False)
    assert not folder.exists()


def test_leases_of_an_artifact_that_was_sealed_are_none(tmp_path: Path) -> None:
    leases = FileLeases(DiskFolder(tmp_path, "journal", "log"), open_lane(tmp_path)._log)
    assert leases.claim(1) is None
    assert leases.holds()
    leases.release()
    assert not (tmp_path / "journal").exists()


def test_a_lease_that_is_renewed_among_removed_states_is_lost(tmp_path: Path) -> None:
    """As where another process has taken over, sealed the artifact, and died as it removed the journal."""
    with released(slow := leases_in(tmp_path)):
        assert slow.claim(2) == (0, 0)
        for path in states(tmp_path):
            path.unlink()
        slow._renewed_at -= 1e6
        assert not slow.holds()


# States that nobody wrote


def no_state(kind: str, path: Path) -> None:
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(pack_state(int(path.stem), State(done=[(0, 9)]))[:-20])
    elif kind == "of another number":
        path.write_bytes(pack_state(int(path.stem) + 1, State(done=[(0, 9)])))
    elif kind == "gigantic":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()


KINDS = ["empty", "cut", "of another number", "gigantic", "link", "pipe", "folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_state_is_passed_over(tmp_path: Path, kind: str) -> None:
    first, second = leases_in(tmp_path), leases_in(tmp_path)
    with released(first, second):
        assert first.claim(9) == (0, 0)
        no_state(kind, tmp_path / "leases" / f"{2:012d}.json")
        no_state(kind, tmp_path / "leases" / f"{3:012d}.json")
        assert second.busy()
        assert is_worked_on(DiskFolder(tmp_path), 1e9)
        assert second.claim(9) == (1, 0)
        first.finish(0)
        assert [first.claim(9) for _ in range(20)][-1] is None
        assert leases_in(tmp_path).held() == 8


@thinned("kind", KINDS, every=3)
def test_where_no_state_is_valid_work_begins_again(tmp_path: Path, kind: str) -> None:
    (tmp_path / "leases").mkdir()
    for number in range(1, 100):
        no_state(kind, tmp_path / "leases" / f"{number:012d}.json")
    leases = leases_in(tmp_path)
    with released(leases):
        assert not leases.busy()
        assert leases.claim(2) == (0, 0)


def test_a_number_that_no_work_reaches_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / "999999999999.json").write_bytes(b"{}")
    leases = leases_in(tmp_path)
    assert not leases.busy()
    with pytest.raises(EngineError, match=r"999999999999\.json: evaluand did not write .* nothing finished is lost"):
        leases.claim(1)


PROCESS = ["boot", "numbers", 7, 1, "host"]
GOOD = {"workers": {"a.lines": [PROCESS, 1.0, 1, [3], True]}, "done": [[0, 2]], "takers": [[3, 1]], "fences": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {"workers": {"../a": [PROCESS, 1.0, 1, [3], True]}},
        {"workers": {"..": [PROCESS, 1.0, 1, [3], True]}},
        {"workers": {"a": [PROCESS, 1.0, 1, [3], True], "b": [PROCESS, 1.0, 1, [3], True]}},
        {"workers": {"a": [PROCESS, "x", 1, [3], True]}},
        {"workers": {"a": [["b", "n", -1, 0, "h"], 1.0, 1, [3], True]}},
        {"workers": {"a": [["b", "n", 1 << 40, 0, "h"], 1.0, 1, [3], True]}},
        {"workers": {"a": [["b", "n", 7], 1.0, 1, [3], True]}},
        {"workers": {"a": [PROCESS, 1.0, 1, [-3], True]}},
        {"workers": {"a": [PROCESS, 1.0, 1, [True], True]}},
        {"workers": {"a": [PROCESS, 1.0, 1, [3], 1]}},
        {"workers": {"a": None}},
        {"workers": []},
        {"done": [[2, 1]]},
        {"done": [[0, 2], [1, 3]]},
        {"done": [[0]]},
        {"done": [[0, 1 << 63]]},
        {"done": 7},
        {"takers": [[1.5, 1]]},
        {"takers": {"a": 1}},
        {"fences": [["a.lines", -1]]},
        {"fences": [[["a"], 1]]},
        {"fences": None},
    ],
)
def test_a_state_with_a_wrong_value_is_none(wrong: dict[str, Any]) -> None:
    assert unpack_state(5, enclosed(5, GOOD)) is not None
    assert unpack_state(5, enclosed(5, GOOD | wrong)) is None


def enclosed(number: int, parts: Any) -> bytes:
    """A state file with a valid checksum."""
    from zlib import crc32

    body = orjson.dumps(parts)
    return b'{"crc":"%08x","state":%b}\n' % (crc32(body, number), body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 63) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*GOOD]), json_values)
def test_no_value_of_a_state_file_is_an_error(key: str, value: Any) -> None:
    state = unpack_state(5, enclosed(5, GOOD | {key: value}))
    assert state is None or unpack_state(5, pack_state(5, state)) == state


@given(st.binary(max_size=80))
def test_no_content_of_a_state_file_is_an_error(data: bytes) -> None:
    assert unpack_state(5, data) is None


def test_a_hostile_state_delays_work_but_does_not_prevent_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is done, says one; a worker of nowhere holds all, says another."""
    monkeypatch.setattr(leasing, "LEASE_SECONDS", 0.2)
    (tmp_path / "leases").mkdir()
    holder = Worker(replace(this_process(), boot="x", numbers="x"), 1e18, 1, (0, 1), True)
    (tmp_path / "leases" / f"{1:012d}.json").write_bytes(pack_state(1, State({"a.lines": holder}, [(2, 1 << 60)])))
    leases = leases_in(tmp_path)
    with released(leases):
        assert leases.claim(3) is None
        assert until(lambda: leases.claim(3)) == (0, 0)
        leases.reopen([2])
        assert [leases.claim(3) for _ in range(3)] == [(1, 0), (2, 1), None]


def test_gc_asks_for_workers_without_writing(tmp_path: Path) -> None:
    holder = leases_in(tmp_path)
    holder.claim(1)
    before = states(tmp_path)
    assert is_worked_on(DiskFolder(tmp_path), 0)

    def elsewhere(state: State) -> State:
        [(name, worker)] = state.workers.items()
        state.workers[name] = replace(worker, process=replace(worker.process, boot="x", numbers="x"))
        return state

    change(tmp_path, elsewhere)
    assert is_worked_on(DiskFolder(tmp_path), 3600)
    assert not is_worked_on(DiskFolder(tmp_path), 0)
    assert len(states(tmp_path)) == len(before) + 1
    assert isinstance(holder, FileLeases)
    holder.release()
