"""Work that several workers share, where they meet at the same moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.worker_process import open_lane

from evaluand.core.errors import EngineError
from evaluand.engine import keyed_work
from evaluand.engine.engine import Recipe
from evaluand.engine.engines.local import InlineEngine
from evaluand.engine.keyed_work import KeyedWork, take_turn_to_seal
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy
from evaluand.store import shards
from evaluand.store.journal import WorkLog
from evaluand.store.leases import FileLeases


class Unit:
    size = 1

    def __init__(self, slot: int) -> None:
        self.slot = slot


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_work, "_PATIENCE", 0.001)
    monkeypatch.setattr(shards, "SHARD_SLOTS", 3)


def work_on(lane: WorkLog, calls: list[int], most: int = 3) -> KeyedWork[Unit]:
    """The work on a lane, which has units for its first slots only."""

    def line(unit: Unit, outcome: Outcome) -> tuple[bytes, int]:
        return b"[%d,0]\n" % unit.slot, 0

    def units(start: int, stop: int) -> Iterator[Unit]:
        return map(Unit, range(start, min(stop, most)))

    return KeyedWork(lane, units, Recipe(lambda unit: calls.append(unit.slot), line), engine=InlineEngine())


def test_a_worker_that_comes_too_late_for_each_shard_waits_for_the_others(tmp_path: Path) -> None:
    visits = []

    class Overtaken(FileLeases):
        """Before this worker claims, another one does, and stops; the third one finishes."""

        def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
            other = open_lane(tmp_path, 3)
            assert other.leases.claim(shards) is not None
            claimed = super().claim(shards, is_fenced=is_fenced)
            visits.append(claimed)
            if len(visits) == 3:
                other.append(b"[0,0]\n[1,0]\n[2,0]\n")
                other.leases.finish(0)
            other.close()
            return claimed

    calls: list[int] = []
    lane = open_lane(tmp_path, 3, Overtaken)
    work_on(lane, calls).perform()
    assert (visits, calls, lane.n_done) == ([None] * 3, [], 3)
    lane.close()


def test_what_another_worker_has_done_meanwhile_is_counted_as_there(tmp_path: Path) -> None:
    first, second = open_lane(tmp_path, 3), open_lane(tmp_path, 3)
    second.refresh()
    assert first.leases.claim(1) == (0, 0)
    first.append(b"[0,0]\n[1,0]\n")
    first.leases.release()
    work = work_on(second, [])
    work.tally.total = 3
    work.perform()
    assert (work.tally.called, work.tally.kept, work.tally.done) == (1, 2, 3)
    first.close()
    second.close()


def test_who_claims_a_shard_that_was_opened_again_reads_its_lines_first(tmp_path: Path) -> None:
    first, second = open_lane(tmp_path, 3), open_lane(tmp_path, 3)
    second.refresh()
    assert first.leases.claim(1) == (0, 0)
    first.append(b"[0,0]\n[1,0]\n")
    first.leases.finish(0)
    first.leases.reopen([0])
    calls: list[int] = []
    work_on(second, calls).perform()
    assert calls == [2]
    first.close()
    second.close()


def test_who_claims_a_shard_while_another_process_seals_the_work_calls_nothing(tmp_path: Path) -> None:
    first, second, is_sealed = open_lane(tmp_path, 3), open_lane(tmp_path, 3), []
    assert first.leases.claim(1) == (0, 0)
    first.append(b"[0,0]\n[1,0]\n[2,0]\n")
    first.leases.release()  # as if it had died before it could say that the shard is done

    def refresh_too_late() -> None:
        is_sealed.append(True)
        for path in tmp_path.glob("*.lines"):
            path.unlink()
        WorkLog.refresh(second)

    second.refresh = refresh_too_late  # type: ignore[method-assign]
    calls: list[int] = []
    work = work_on(second, calls)
    work.sealed = lambda: bool(is_sealed)
    work.perform()
    assert is_sealed
    assert calls == []


def test_work_whose_leases_nobody_gets_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unavailable(FileLeases):
        def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
            return None

    monkeypatch.setattr(keyed_work, "_PATIENCE", 0)
    calls: list[int] = []
    lane = open_lane(tmp_path, 3, Unavailable)
    with pytest.raises(EngineError, match="3 of 3 units are not done, and their leases cannot be had; run the same"):
        work_on(lane, calls).perform()
    assert calls == []
    lane.close()


def test_units_that_are_never_done_end_the_work(tmp_path: Path) -> None:
    lane = open_lane(tmp_path, 3)
    with pytest.raises(EngineError, match="1 of 3 units are not done although they were all tried"):
        work_on(lane, [], most=2).perform()
    lane.close()


def test_one_of_several_workers_seals_while_the_others_wait(tmp_path: Path) -> None:
    lanes, sealed = [open_lane(tmp_path, 3) for _ in range(4)], list[int]()
    meet = threading.Barrier(4)

    def seal(number: int) -> None:
        meet.wait()
        if take_turn_to_seal(lanes[number], lambda: bool(sealed), Policy()):
            time.sleep(0.05)
            sealed.append(number)

    workers = [threading.Thread(target=seal, args=[number]) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(sealed) == 1
    for lane in lanes:
        lane.close()


def test_who_waits_seals_if_the_worker_whose_turn_it_was_does_not(tmp_path: Path) -> None:
    first, second = open_lane(tmp_path, 3), open_lane(tmp_path, 3)
    assert take_turn_to_seal(first, lambda: False, Policy())
    turns = list[bool]()
    waiting = threading.Thread(target=lambda: turns.append(take_turn_to_seal(second, lambda: False, Policy())))
    waiting.start()
    time.sleep(0.05)
    assert turns == []
    first.close()  # a full disk, or its death
    waiting.join()
    assert turns == [True]
    second.close()
