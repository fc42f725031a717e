"""Workers of one store, in schedules that a seed draws: who continues at each call to the disk, and who dies there.

Two or three processes do the same work, on one machine or on two; others collect garbage, verify and read. Processes
are paused for longer than a lease, the date jumps by a day, processes die at any call, are stopped by the user, and
continue; a byte of a journal, of the leases or of a name changes. In the end, one to which nothing happens finishes
the work. Then:

- every row is there once, and the digest is that of an undisturbed run;
- no line counts that was written after another worker had taken over and had written where its segment ends;
- no call was made whose line was in the journal before anybody took over from its writer;
- no more calls were repeated than were in flight where a worker died or was taken over from;
- nobody has seen an artifact without its manifest, other rows, or damage that nobody has done.

Where a byte has changed, more may be repeated than that, and a line that was written too late may count.

`SCHEDULES` says how many seeds the slow suite plays, `SCHEDULE` which one alone:

    SCHEDULE=17 python -m pytest -n 0 -m slow tests/faults/test_simulation.py
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import orjson
import pyarrow as pa
import pytest
from support.manifests import ID, create_manifest
from support.memory_disk import MemoryDisk
from support.simulation import Process, Simulation

from evaluand import DirectoryStore
from evaluand.core.errors import EngineError, NotFound
from evaluand.engine import keyed_work
from evaluand.engine.engine import Recipe
from evaluand.engine.engines.local import InlineEngine
from evaluand.engine.keyed_work import KeyedWork
from evaluand.engine.outcome import Outcome
from evaluand.store import garbage, shards
from evaluand.store.journal import WorkLog
from evaluand.store.lease_state import unpack_state
from evaluand.store.sealing import tables_digest
from evaluand.store.store import Manifest, drafted

QUICK = 100
MOST_TRIES = 4
FIRST = int(os.environ.get("SCHEDULE", QUICK))
SCHEDULES = int(os.environ.get("SCHEDULES", "1" if "SCHEDULE" in os.environ else "20000"))
BATCH = 500
ROOT, LANE, SLOTS, SHARD = "/simulated/store", "calls", 7, 3
NAME = "simulated/run"
DAMAGEABLE = re.compile(r"\.lines|[0-9]{12}\.json|open\.json|[0-9a-f]{32}\.json")
ROWS = [{"slot": slot, "value": slot * slot} for slot in range(SLOTS)]
DIGEST = tables_digest([ROWS])


@dataclass(frozen=True)
class Unit:
    slot: int
    size: int = 1


class Play:
    """A schedule of workers, and what they have said.

    Attributes:
        calls: how often each slot was called.
        in_flight: by process, the slots whose call was begun and whose line is not written.
        kept: by slot, the calls whose lines count, by their numbers, each with its segment and offset.
        excused: calls that may have been repeated.
        is_damaged: whether a byte was changed.
        fenced: the segments whose end another worker has written.
        too_late: the calls, by their numbers, whose lines were written after that.
        segments: what each process writes.
        taken_over: the segments whose lines may count no longer.
        late: by segment, the calls that its writer began nevertheless.
    """

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.random = self.simulation.random
        self.calls: Counter[int] = Counter()
        self.in_flight: dict[Process, list[int]] = {}
        self.kept: dict[int, dict[int, tuple[str, int]]] = {}
        self.excused = 0
        self.is_damaged = False
        self.fenced: set[str] = set()
        self.too_late: set[int] = set()
        self.segments: dict[Process, str] = {}
        self.taken_over: set[str] = set()
        self.late: Counter[str] = Counter()
        self.simulation.disk.on_write = self.note_written
        self.simulation.disk.on_link = self.note_state

    def run(self) -> None:
        simulation, random = self.simulation, self.random
        MemoryDisk.make_folders(simulation.disk, ROOT)
        gather = random.choice([1, 1, 3])
        for number in range(random.choice([2, 2, 3])):
            machine = simulation.machines[random.random() < 0.2]
            simulation.start(self.worker(number, gather), machine)
        for act in random.sample([self.collect, self.read, self.verify, self.damage], random.choice([0, 1, 2])):
            simulation.start(self.later(act), simulation.machines[0])
        simulation.run()
        self.finish()

    def finish(self) -> None:
        """Lets a last worker come, when all others are over."""
        simulation = self.simulation
        simulation.is_quiet = True
        simulation.start(self.work_on, simulation.machines[0])
        simulation.run()
        simulation.start(self.check, simulation.machines[0])
        simulation.run()
        repeated = sum(self.calls.values()) - SLOTS
        assert {*self.calls} == {*range(SLOTS)}
        assert repeated <= self.excused or self.is_damaged, (
            f"{repeated} calls were repeated, and {self.excused} in flight"
        )

    # What processes do

    def worker(self, number: int, gather: int) -> Callable[[], None]:
        """Works, is perhaps stopped by the user, and continues."""
        stops = self.random.choice([0, 0, 1, 2])

        def act() -> None:
            for _ in range(stops):
                with suppress(KeyboardInterrupt):
                    self.work_on(gather, stopped_after=self.random.randrange(SLOTS))
                self.simulation.wait(self.random.choice([0.0, 0.0, 40.0]))
            self.work_on(gather)

        return act

    def work_on(self, gather: int = 1, stopped_after: float = float("inf")) -> None:
        """Works, and again as often as a sentence says so: after damage, and where dates differ."""
        for _ in range(MOST_TRIES):
            try:
                return self.work(gather, stopped_after)
            except EngineError as error:
                if not self.is_damaged and "has removed what was being written" not in str(error):
                    raise
                if self.simulation.process in self.in_flight:
                    self.excuse(self.simulation.process)
        raise AssertionError("the work cannot be finished")

    def later(self, act: Callable[[], None]) -> Callable[[], None]:
        def wait() -> None:
            for _ in range(self.random.choice([1, 2])):
                self.simulation.wait(self.random.choice([0.0, 1.0, 40.0]))
                act()

        return wait

    def work(self, gather: int = 1, stopped_after: float = float("inf")) -> None:
        """What a Runner does, with a small table."""
        process = self.simulation.process
        self.in_flight[process] = []
        store = DirectoryStore(ROOT)
        manifest = store.open(create_manifest("runs", ID))
        store.refer(NAME, "runs", ID)
        if "digest" in manifest:
            return
        lane = store.lane("runs", ID, LANE, SLOTS)
        try:
            lane.refresh()
            left = [stopped_after]

            def call(unit: Unit) -> int:
                if left[0] <= 0:
                    raise KeyboardInterrupt
                left[0] -= 1
                return self.call(lane, unit.slot, most_late=1 if gather == 1 else SHARD)

            KeyedWork(
                lane,
                lambda start, stop: map(Unit, range(start, stop)),
                Recipe(call, line_of),
                engine=InlineEngine(),
                gather=gather,
                sealed=lambda: store.is_sealed("runs", ID),
            ).perform()
            if not store.is_sealed("runs", ID):
                self.seal(store, manifest, lane)
        except KeyboardInterrupt:
            self.excuse(process)
            raise
        finally:
            lane.close()

    def call(self, lane: WorkLog, slot: int, most_late: int) -> int:
        process, segment = self.simulation.process, lane._log.segment
        self.segments[process] = segment
        if self.is_damaged:  # what is lost is done again
            pass
        elif segment in self.taken_over:  # since this worker asked whether it still has the shard
            self.excused += 1
            self.late[segment] += 1
            assert self.late[segment] <= most_late, "a worker goes on although another has taken over"
        else:
            assert not self.kept.get(slot), f"slot {slot} is called again, although its line counts"
        self.calls[slot] += 1
        self.in_flight[process].append(slot)
        number = sum(self.calls.values())
        self.simulation.wait(self.random.choice([0.0, 0.0, 0.1, 12.0]))
        return number

    def seal(self, store: DirectoryStore, manifest: Manifest, lane: WorkLog) -> None:
        records = [*lane.records()]
        for slot, _, number in records:
            is_late = number in self.too_late and not self.is_damaged  # what says so may have been changed
            assert not is_late, f"a line of slot {slot} counts that was written too late"
        rows = [{"slot": slot, "value": value} for slot, value, _ in records]
        with drafted(store, "runs", ID) as draft:
            draft.append("rows", pa.RecordBatch.from_pylist(rows))
            draft.seal(manifest | {"digest": tables_digest([rows]), "counts": {"completed": len(rows)}})

    def collect(self) -> None:
        """Collects garbage; what nobody works on may look abandoned where the date has jumped."""
        store, age = DirectoryStore(ROOT), None if self.simulation.chances.date else 7200.0
        garbage.remove(store, garbage.leftovers(store, open_older_than=age, damaged=True))

    def verify(self) -> None:
        store = DirectoryStore(ROOT)
        with suppress(NotFound):
            was_sealed, faults = store.is_sealed("runs", ID), store.damage("runs", ID)
            is_excused = self.is_damaged and not was_sealed  # what was found is gone when the run is sealed
            assert not faults or is_excused or not store.is_sealed("runs", ID), faults

    def read(self) -> None:
        """Reads what is there."""
        store = DirectoryStore(ROOT)
        for entry in store.catalog.entries():
            assert self.is_damaged or entry["status"] in ("open", "sealed"), entry["damage"]
            if entry["status"] == "sealed":
                assert rows_of(store) == ROWS

    def damage(self) -> None:
        """Changes a byte of a file that evaluand makes again: of a journal, of its leases, or of a name."""
        self.is_damaged = True
        found = [node for name, node in self.simulation.disk.files() if DAMAGEABLE.search(name) and node.content]
        if found:
            node = self.random.choice(found)
            node.content[self.random.randrange(len(node.content))] ^= 1 << self.random.randrange(8)

    def check(self) -> None:
        store = DirectoryStore(ROOT)
        assert rows_of(store) == ROWS
        assert store.manifest("runs", ID)["digest"] == DIGEST
        assert [*store.damage("runs", ID), *store.damaged_refs(), *store.strays()] == []
        assert [(ref.name, ref.id) for ref in store.refs()] == [(NAME, ID)]

    # What is known of calls

    def note_written(self, data: bytes, offset: int) -> None:
        """Lines of a journal were written: they count unless somebody has taken over from their writer."""
        process = self.simulation.process
        if not data.startswith(b"[") or process not in self.segments:
            return
        for line in data.splitlines(keepends=True):
            slot, *rest = orjson.loads(line[:-9])
            if slot < 0:
                self.fenced.add(rest[0]["fence"][0])
            elif self.segments[process] in self.fenced:
                self.too_late.add(rest[1])
            if slot in self.in_flight[process]:
                self.in_flight[process].remove(slot)
                if self.segments[process] not in self.taken_over:
                    self.kept.setdefault(slot, {})[rest[1]] = (self.segments[process], offset)
            offset += len(line)

    def note_state(self, name: str, content: bytes) -> None:
        """A state of the leases was put there, which may say that somebody has taken over."""
        if len(name) == len("000000000001.json"):
            state = unpack_state(int(name[:-5]), content)
            for segment, offset in state.fences if state else ():  # it may be damaged already
                if segment not in self.taken_over:
                    self.note_taken_over(segment, offset)

    def note_taken_over(self, segment: str, end: int) -> None:
        """Another worker has taken over; lines of the segment that begin at its end, or later, do not count."""
        self.taken_over.add(segment)
        for process, own in self.segments.items():
            if own == segment:
                self.excuse(process)
        for slot, lines in [*self.kept.items()]:
            late = [call for call, (own, offset) in lines.items() if own == segment and offset >= end]
            self.excused += len(late)
            self.kept[slot] = {call: place for call, place in lines.items() if call not in late}

    def excuse(self, process: Process) -> None:
        self.excused += len(self.in_flight[process])
        self.in_flight[process] = []


def line_of(unit: Unit, outcome: Outcome) -> tuple[bytes, int]:
    if outcome.error is not None:
        raise outcome.error
    return b"[%d,%d,%d]\n" % (unit.slot, unit.slot**2, outcome.value), 0


def rows_of(store: DirectoryStore) -> list[dict[str, Any]]:
    return [row for batch in store.read("runs", ID, "rows") for row in batch.to_pylist()]


@pytest.fixture(autouse=True)
def small_shards() -> Iterator[None]:
    with (
        patch.object(shards, "SHARD_SLOTS", SHARD),
        patch.object(keyed_work, "_PATIENCE", 10.0),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def play(seeds: range) -> None:
    for seed in seeds:
        try:
            Play(seed).run()
        except BaseException as error:
            error.add_note(f"SCHEDULE={seed} python -m pytest -n 0 -m slow tests/faults/test_simulation.py")
            raise


def test_in_any_of_some_schedules_no_result_is_lost() -> None:
    play(range(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FIRST, FIRST + SCHEDULES, BATCH))
def test_in_any_of_many_schedules_no_result_is_lost(start: int) -> None:
    play(range(start, min(start + BATCH, FIRST + SCHEDULES)))
