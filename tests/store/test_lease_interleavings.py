"""Leases whose workers are stopped, overtaken and killed between any two calls of the disk."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings, strategies as st
from support.journals import lines_of
from support.worker_process import open_lane

from evaluand.store import io, leases as leasing
from evaluand.store.io import Disk
from evaluand.store.journal import WorkLog
from evaluand.store.leases import FileLeases

SHARDS = 4
WORKERS = 4
LEASE = 30.0


class Killed(BaseException):
    """A worker dies at a call of the disk; it makes no further one."""


class WatchedDisk(Disk):
    """Calls a function before each call."""

    def __init__(self, before: Callable[[], None]) -> None:
        self.before = before

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if name in Disk.__dict__ and name != "close":
            object.__getattribute__(self, "before")()
        return found


class One:
    """A worker, and what it has said."""

    def __init__(self, lane: WorkLog, number: int) -> None:
        self.lane, self.number = lane, number
        assert isinstance(lane.leases, FileLeases)
        self.leases = lane.leases
        self.is_dead = False

    def has_now(self, shard: int, now: float) -> bool:
        """Whether it would write a line of a shard without asking anybody."""
        leases = self.leases
        return not self.is_dead and not leases._lost and now <= leases._renewed_at and leases.has(shard)


class Interleaving:
    """Workers of one log, whose steps are cut at calls of the disk by steps of others."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.folder, self.random = folder, random
        self.now = 1000.0
        self.numbers = itertools.count()
        self.workers = [self.new() for _ in range(WORKERS)]
        self.under_way: list[One] = []
        self.done: set[int] = set()  # shards that the state has as done
        self.overtaken = 0
        self.values = itertools.count()
        self.thread = threading.get_ident()  # heartbeats in threads of their own are not interleaved
        self.late: set[bytes] = set()  # lines that were written after another worker had taken over

    def new(self) -> One:
        return One(open_lane(self.folder, SHARDS), next(self.numbers))

    def before_call(self) -> None:
        if not self.under_way or threading.get_ident() != self.thread:
            return
        self.check()
        worker = self.under_way[-1]
        if worker.is_dead or self.random.random() < 0.004:
            worker.is_dead = True
            raise Killed
        if len(self.under_way) < 3 and self.random.random() < 0.08:
            for _ in range(self.random.choice([1, 1, 2, 6])):
                self.step()

    def step(self) -> None:
        idle = [one for one in self.workers if one not in self.under_way]
        if not idle:
            return
        worker = self.random.choice(idle)
        self.now += self.random.choice([0, 0, 1, 1, 8, 31])
        self.overtaken += bool(self.under_way)
        self.under_way.append(worker)
        try:
            self.random.choice([self.claim, self.claim, self.write, self.finish, self.renew, self.look])(worker)
        except Killed:
            pass
        finally:
            self.under_way.pop()
        if worker.leases._beating:
            worker.leases._beating.set()  # hearts beat as a step
        if worker.is_dead:
            worker.lane._log.close()
            worker.leases._folder.close()
            self.workers[self.workers.index(worker)] = self.new()
        self.check()

    def check(self) -> None:
        for shard in range(SHARDS):
            assert sum(one.has_now(shard, self.now) for one in self.workers) <= 1, f"two have shard {shard}"

    def claim(self, worker: One) -> None:
        before = set(self.done)
        claimed = worker.leases.claim(SHARDS)
        assert claimed is None or claimed[0] not in before

    def write(self, worker: One) -> None:
        mine = [shard for shard in range(SHARDS) if worker.leases.has(shard)]
        if mine and worker.leases.holds() and worker.leases.has(mine[0]):
            value = b"%d" % next(self.values)
            name = worker.lane._log.segment
            self.before_call()  # stopped between the question and the write
            if name not in leasing._read_latest(worker.leases._folder)[1].workers:
                self.late.add(value)
            worker.lane._log.append(b"[%d,%b]\n" % (mine[0], value))

    def finish(self, worker: One) -> None:
        mine = [shard for shard in range(SHARDS) if worker.leases.has(shard)]
        if mine:
            worker.leases.finish(mine[0])
            if worker.leases._renew():
                self.done.add(mine[0])

    def renew(self, worker: One) -> None:
        worker.leases.holds()

    def look(self, worker: One) -> None:
        worker.leases.busy()
        worker.leases.held()

    def end(self) -> None:
        """Lets a last worker come, when all others are over."""
        self.now += 1000
        last = self.new()
        while (claimed := last.leases.claim(SHARDS + 1)) is not None:
            assert claimed[0] not in self.done
        last.lane.refresh()
        counted = {line.strip(b"[]\n").split(b",")[1] for line in lines_of(last.lane)}
        assert counted.isdisjoint(self.late)
        for one in [*self.workers, last]:
            one.is_dead = True
            one.leases.release()
            one.lane._log.close()


def interleave(random: Random, steps: int) -> int:
    """Plays steps of workers; how many cut others."""
    folder = Path(tempfile.mkdtemp())
    try:
        with (
            patch.object(leasing, "KEPT_STATES", 2),
            patch.object(leasing, "LEASE_SECONDS", LEASE),
            patch.object(leasing.time, "sleep", lambda seconds: None),
        ):
            play = Interleaving(folder, random)
            with (
                patch.object(leasing, "boot_seconds", lambda: play.now),
                patch.object(io, "disk", WatchedDisk(play.before_call)),
            ):
                for _ in range(steps):
                    play.step()
                play.end()
            return play.overtaken
    finally:
        shutil.rmtree(folder)


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_no_two_workers_have_one_shard_and_nothing_done_is_lost(random: Random) -> None:
    interleave(random, 12)


@pytest.mark.slow
def test_no_two_workers_have_one_shard_in_many_long_interleavings() -> None:
    overtaken = sum(interleave(Random(seed), 200) for seed in range(300))
    assert overtaken > 10_000
