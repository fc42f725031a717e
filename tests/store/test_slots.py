"""Where the lines of slots are: in memory that depends on the lines, not on the highest slot."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from evaluand.store.journal import MemoryLog, WorkLog
from evaluand.store.memory_leases import MemoryLeases
from evaluand.store.slots import SlotIndex


def new_lane(slots: int | None, lines: bytes) -> WorkLog:
    log = MemoryLog()
    log.append(lines)
    return WorkLog(log, MemoryLeases(), slots)


def test_memory_of_a_journal_depends_on_its_lines() -> None:
    claimed = new_lane(10**8, b'[99999999,"x"]\n[0,"y"]\n')
    growing = new_lane(None, b'[4000000,"x"]\n')
    tracemalloc.start()
    claimed.refresh()
    growing.refresh()
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 40_000_000
    assert [record[0] for record in claimed.records()] == [0, 99_999_999]
    assert (growing.slots, [*growing.done(0)], [*growing.done(4_000_001)]) == (4_000_001, [4_000_000], [])
    assert growing.undone(3_999_998, 4_000_002) == [3_999_998, 3_999_999, 4_000_001]
    assert (claimed.count_missing(growing), growing.last_done(0, 10**8)) == (2, 4_000_000)


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(i, marks=pytest.mark.slow) for i in range(5, 20))])
def test_a_slot_index_is_like_a_dictionary(seed: int) -> None:
    rng = random.Random(seed)
    indexes, known = (SlotIndex(), SlotIndex()), (set[int](), set[int]())
    for _ in range(200):
        slot, which = rng.choice((rng.randrange(100), rng.randrange(5000))), rng.randrange(2)
        indexes[which].segments[indexes[which].reach(slot)] = 1
        known[which].add(slot)
    index, done = indexes[0], known[0]
    assert [*index.done(0)] == sorted(done)
    assert index.count_missing(indexes[1]) == len(done - known[1])
    for _ in range(50):
        start = rng.randrange(5200)
        stop = start + rng.randrange(200)
        inside = sorted(slot for slot in done if start <= slot < stop)
        assert index.undone(start, stop) == sorted({*range(start, stop)} - done)
        assert index.last_done(start, stop) == max(inside, default=None)
        assert [*index.done(start)] == sorted(slot for slot in done if slot >= start)


def test_fences_of_a_refresh_are_followed_in_one_pass() -> None:
    lane = new_lane(3, b'[0,"a"]\n[1,"b"]\n[2,"c"]\n')
    lane.refresh()
    for offset in (16, 8, 12):
        lane.fence("memory", offset)
    lane.append(b'[1,"d"]\n')
    lane.refresh()
    assert (lane.n_done, [*lane.done(0)]) == (1, [0])
