"""Workers of one store, in schedules that a seed draws: who continues at each call to the disk, and who dies there.

Two or three processes do the same work, on one machine or on two; others collect garbage, verify and read. Processes
are paused for longer than a lease, the date jumps by a day, processes die at any call, are stopped by the user, and
continue; a byte of a journal, of the leases or of a name changes. In the end, one to which nothing happens finishes
the work. Each call has another answer, so it matters which one counts. A worker makes one call at a time or several,
and their answers come in any order. In the end:

- every row is there once, with the only answer whose line was written before anybody took over from its writer;
- whoever has read the journal has seen each such line from the moment in which it was written;
- no call was made whose line was in the journal before anybody took over from its writer;
- no call was repeated but those that were in flight where a worker died or was taken over from;
- nobody has taken over from a worker that neither died nor was paused, or began a call before the journal said where
  the lines of the worker before end;
- nobody has seen an artifact without its manifest, other rows, or damage that nobody has done.

Where a byte has changed, more may be repeated than that, and a line that was written too late may count; but each row
still has an answer to its own call, and rows that were sealed stay as they are.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import orjson
import pyarrow as pa
from support.manifests import ID, create_manifest
from support.memory_disk import MemoryDisk
from support.simulation import Process, Simulation

from evaluand import DirectoryStore
from evaluand.core.errors import EngineError, NotFound
from evaluand.engine import keyed_work
from evaluand.engine.engine import Keep, Recipe
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.keyed_work import KeyedWork
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy
from evaluand.store import garbage, shards
from evaluand.store.journal import WorkLog
from evaluand.store.lease_state import unpack_state
from evaluand.store.leases import LEASE_SECONDS
from evaluand.store.sealing import tables_digest
from evaluand.store.store import Manifest, drafted

MOST_TRIES = 4
ROOT, LANE, SLOTS, SHARD = "/simulated/store", "calls", 7, 3
NAME = "simulated/run"
STATE = re.compile(r"[0-9]{12}\.json")
DAMAGEABLE = re.compile(r"\.lines|[0-9]{12}\.json|open\.json|[0-9a-f]{32}\.json")


Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Unit:
    slot: int
    size: int = 1


@dataclass(frozen=True)
class Line:
    """Where and when a line was written: the time in calls to the disk."""

    segment: str
    offset: int
    written: int


class Play:
    """A schedule of workers, and what they have said.

    Attributes:
        calls: the slot of each call; calls are numbered from 0, and a call's number is its answer.
        in_flight: by process, the slots whose call was begun and whose line is not written.
        counting: by slot, the calls whose lines count, in the order of their lines, each with its line.
        excused: by slot, how many calls may have been repeated.
        is_damaged: whether a byte was changed.
        is_sealed: whether there was a manifest.
        sealable: the rows that somebody has tried to seal.
        sealed: the rows that somebody has read from the sealed table.
        segments: what each process writes.
        taken_over: the segments whose further lines do not count.
        fenced: those whose end the journal says.
        units: by segment, the shards that its writer has.
        lost: by shard, the segments of those who had it when they were taken over from.
        claim_began: by process, when it last wanted to claim a shard, in calls to the disk.
        late: by segment, the calls that its writer began nevertheless.
    """

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.random = self.simulation.random
        self.calls: list[int] = []
        self.in_flight: dict[Process, list[int]] = {}
        self.counting: dict[int, dict[int, Line]] = {}
        self.excused: Counter[int] = Counter()
        self.is_damaged = self.is_sealed = False
        self.sealable: list[Rows] = []
        self.sealed: Rows = []
        self.segments: dict[Process, str] = {}
        self.taken_over: set[str] = set()
        self.fenced: set[str] = set()
        self.units: dict[str, tuple[int, ...]] = {}
        self.lost: dict[int, set[str]] = {}
        self.claim_began: dict[Process, int] = {}
        self.late: Counter[str] = Counter()
        self.simulation.disk.on_write = self.note_written
        self.simulation.disk.on_link = self.note_state

    def run(self) -> None:
        simulation, random = self.simulation, self.random
        MemoryDisk.make_folders(simulation.disk, ROOT)
        at_once = random.choice([1, 2, SHARD])
        for _ in range(random.choice([2, 2, 3])):
            machine = simulation.machines[random.random() < 0.2]
            simulation.start(self.worker(at_once), machine)
        acts = [self.collect, self.read, self.watch, self.verify, self.damage]
        for act in random.sample(acts, random.choice([0, 1, 2, 3])):
            simulation.start(self.later(act), simulation.machines[0])
        simulation.run()
        self.finish()

    def finish(self) -> None:
        """Lets a last worker come, when all others are over."""
        simulation = self.simulation
        simulation.is_quiet = True
        simulation.start(lambda: self.work_on(1), simulation.machines[0])
        simulation.run()
        simulation.start(self.check, simulation.machines[0])
        simulation.run()
        assert {*self.calls} == {*range(SLOTS)}
        repeated = Counter(self.calls) - Counter(range(SLOTS)) - self.excused
        assert not repeated or self.is_damaged, f"slots {[*repeated]} were called more often than calls were in flight"

    # What processes do

    def worker(self, at_once: int) -> Callable[[], None]:
        """Works, is perhaps stopped by the user, and continues."""
        stops = self.random.choice([0, 0, 1, 2])

        def act() -> None:
            for _ in range(stops):
                with suppress(KeyboardInterrupt):
                    self.work_on(at_once, stopped_after=self.random.randrange(SLOTS))
                self.simulation.wait(self.random.choice([0.0, 0.0, 40.0]))
            self.work_on(at_once)

        return act

    def work_on(self, at_once: int, stopped_after: float = float("inf")) -> None:
        """Works, and again as often as a sentence says so: after damage, and where dates differ."""
        for _ in range(MOST_TRIES):
            try:
                return self.work(at_once, stopped_after)
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

    def work(self, at_once: int, stopped_after: float) -> None:
        """What a Runner does, with a small table."""
        process = self.simulation.process
        self.in_flight[process] = []
        store = DirectoryStore(ROOT)
        manifest = store.open(create_manifest("runs", ID))
        store.refer(NAME, "runs", ID)
        if "digest" in manifest:
            return
        lane = store.lane("runs", ID, LANE, SLOTS)
        self.segments[process] = lane._log.segment
        try:
            lane.refresh()
            left = [stopped_after]

            def call(unit: Unit) -> int:
                if left[0] <= 0:
                    raise KeyboardInterrupt
                left[0] -= 1
                return self.call(lane, unit.slot, most_late=at_once)

            KeyedWork(
                lane,
                lambda start, stop: map(Unit, range(start, stop)),
                Recipe(call, line_of),
                engine=SeveralAtOnce(self.simulation, at_once),
                sealed=lambda: self.is_over(store),
            ).perform()
            if not store.is_sealed("runs", ID):
                self.seal(store, manifest, lane)
        except KeyboardInterrupt:
            self.excuse(process)
            raise
        finally:
            lane.close()

    def is_over(self, store: DirectoryStore) -> bool:
        """What a worker asks before each claim."""
        self.claim_began[self.simulation.process] = self.simulation.n_calls
        return store.is_sealed("runs", ID)

    def call(self, lane: WorkLog, slot: int, most_late: int) -> int:
        process, segment = self.simulation.process, lane._log.segment
        self.segments[process] = segment
        if not self.is_damaged:  # what is lost is done again
            self.check_call(segment, slot, most_late)
        self.calls.append(slot)
        if segment not in self.taken_over:
            self.in_flight[process].append(slot)
        return len(self.calls) - 1

    def check_call(self, segment: str, slot: int, most_late: int) -> None:
        """Checks that a worker may call a slot."""
        if segment in self.taken_over:  # since this worker claim_began whether it still has the shard
            self.excused[slot] += 1
            self.late[segment] += 1
            assert self.late[segment] <= most_late, "a worker goes on although another has taken over"
            return
        assert not self.counting.get(slot), f"slot {slot} is called again, although its line counts"
        unfenced = self.lost.get(slot // SHARD, set()) - self.fenced
        assert not unfenced, f"slot {slot} is called before the journal says where {unfenced} end"

    def seal(self, store: DirectoryStore, manifest: Manifest, lane: WorkLog) -> None:
        rows = [{"slot": slot, "answer": answer} for slot, answer in lane.records()]
        self.check_answers(rows)
        self.sealable.append(rows)
        with drafted(store, "runs", ID) as draft:
            draft.append("rows", pa.RecordBatch.from_pylist(rows))
            draft.seal(manifest | {"digest": tables_digest([rows]), "counts": {"completed": len(rows)}})

    def check_answers(self, rows: Rows) -> None:
        """Checks that each row has an answer to its own call, and the one that counts."""
        assert [row["slot"] for row in rows] == [*range(SLOTS)]
        assert [self.calls[row["answer"]] for row in rows] == [*range(SLOTS)]
        for row in rows if not self.is_damaged else ():
            calls = [*self.counting.get(row["slot"], {})]
            assert calls == [row["answer"]], f"{row} would be sealed, but the calls whose lines count are {calls}"

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
                self.check_sealed(store)

    def watch(self) -> None:
        """Reads the journal several times, as a page does while a run is under pace."""
        store = DirectoryStore(ROOT)
        with suppress(NotFound):
            lane = store.lane("runs", ID, LANE, SLOTS)
            for _ in range(self.random.choice([1, 3])):
                self.look(store, lane)
                self.simulation.wait(self.random.choice([0.0, 0.1, 15.0]))
            lane.close()

    def look(self, store: DirectoryStore, lane: WorkLog) -> None:
        before = {(slot, call) for slot, calls in self.counting.items() for call in calls}
        lane.refresh()
        try:
            seen = {(slot, answer) for slot, answer in lane.records()}
        except (EngineError, FileNotFoundError):
            assert self.is_damaged or store.is_sealed("runs", ID)
            return
        assert all(self.calls[answer] == slot for slot, answer in seen)
        if not self.is_damaged and not store.is_sealed("runs", ID):
            assert {(slot, call) for slot, call in before if call in self.counting[slot]} <= seen

    def damage(self) -> None:
        """Changes a byte of a file that evaluand makes again: of a journal, of its leases, or of a name."""
        found = [node for name, node in self.simulation.disk.files() if DAMAGEABLE.search(name) and node.content]
        if found:
            self.is_damaged = True
            node = self.random.choice(found)
            node.content[self.random.randrange(len(node.content))] ^= 1 << self.random.randrange(8)

    def check(self) -> None:
        store = DirectoryStore(ROOT)
        self.check_sealed(store)
        assert store.manifest("runs", ID)["digest"] == tables_digest([self.sealed])
        assert [*store.damage("runs", ID), *store.damaged_refs(), *store.strays()] == []
        assert [(ref.name, ref.id) for ref in store.refs()] == [(NAME, ID)]

    def check_sealed(self, store: DirectoryStore) -> None:
        """Checks that the sealed rows are some that somebody has sealed, and always the same."""
        rows = [row for batch in store.read("runs", ID, "rows") for row in batch.to_pylist()]
        assert rows in ([self.sealed] if self.sealed else self.sealable)
        self.sealed = rows

    # What is known of calls

    def note_written(self, data: bytes, offset: int) -> None:
        """Lines of a journal were written: they count unless somebody has taken over from their writer."""
        process = self.simulation.process
        if not data.startswith(b"[") or process not in self.segments:
            return
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            slot, said = orjson.loads(line[:-9])
            if slot < 0:
                self.fenced.add(said["fence"][0])
            else:
                self.note_answer(process, slot, said, offset)
            offset += len(line)

    def note_answer(self, process: Process, slot: int, call: int, offset: int) -> None:
        segment = self.segments[process]
        if slot in self.in_flight[process]:
            self.in_flight[process].remove(slot)
        if segment not in self.taken_over:
            self.counting.setdefault(slot, {})[call] = Line(segment, offset, self.simulation.n_calls)

    def note_state(self, name: str, content: bytes, names: Collection[str]) -> None:
        """A manifest, or a state of the leases, was put there, which may say that somebody has taken over.

        Args:
            names: all in its folder: a state does not count if there is one with a higher number.
        """
        if name == "manifest.json":
            assert not self.is_sealed, "the run is sealed twice"
            self.is_sealed = True
        elif (
            name == max(filter(STATE.fullmatch, names), default="")
            and (state := unpack_state(int(name[:-5]), content)) is not None
        ):
            for segment, end in state.fences:
                if segment not in self.taken_over:
                    self.note_taken_over(segment, end)
            self.units |= {segment: worker.units for segment, worker in state.workers.items()}

    def note_taken_over(self, segment: str, end: int) -> None:
        """Another worker has taken over; lines of the segment that begin at its end, or later, do not count."""
        self.taken_over.add(segment)
        for shard in self.units.get(segment, ()):
            self.lost.setdefault(shard, set()).add(segment)
        for process, own in self.segments.items():
            if own == segment:
                assert self.is_damaged or self.may_be_given_up(process), "a worker that works on is taken over from"
                self.excuse(process)
        for slot, lines in [*self.counting.items()]:
            late = [call for call, line in lines.items() if line.segment == segment and line.offset >= end]
            is_new = all(lines[call].written >= self.claim_began[self.simulation.process] for call in late)
            assert is_new or self.is_damaged, f"a line of slot {slot} is lost with the leases of who wrote it"
            self.excused[slot] += len(late)
            self.counting[slot] = {call: place for call, place in lines.items() if call not in late}

    def may_be_given_up(self, process: Process) -> bool:
        """Whether a worker has ended, was paused during a lease, or is itself the one that takes over.

        Its last sign of life may have been made before the pause, although it was written afterwards.
        """
        simulation = self.simulation
        has_ended = all(thread.has_ended for thread in simulation.threads if thread.process is process)
        was_paused = process.paused > simulation.now - LEASE_SECONDS
        return process.is_dead or has_ended or was_paused or process is simulation.process

    def excuse(self, process: Process) -> None:
        self.excused.update(self.in_flight[process])
        self.in_flight[process] = []


class SeveralAtOnce(LocalEngine):
    """An engine that has several calls under way, which take some time and end in any order, some together.

    Args:
        most: how many at once.
    """

    def __init__(self, simulation: Simulation, most: int) -> None:
        self.simulation, self.most = simulation, most

    def map_lines(self, units: Iterator[Unit], recipe: Recipe[Unit], keep: Keep[Unit], policy: Policy) -> None:
        random = self.simulation.random
        under_way: list[tuple[Unit, Outcome]] = []
        while True:
            begins = len(under_way) < self.most and (not under_way or random.random() < 0.7)
            if begins and (unit := next(units, None)) is not None:
                under_way.append((unit, Outcome(recipe.call(unit), None, 1, 0, 0)))
            elif under_way:
                self.simulation.wait(random.choice([0.0, 0.0, 0.0, 0.1, 12.0, 45.0]))
                random.shuffle(under_way)
                n = random.randint(1, len(under_way))
                keep([(unit, *recipe.line(unit, outcome), outcome.attempts, "") for unit, outcome in under_way[:n]])
                del under_way[:n]
            else:
                return


def line_of(unit: Unit, outcome: Outcome) -> tuple[bytes, int]:
    return b"[%d,%d]\n" % (unit.slot, outcome.value), 0


@contextmanager
def small_shards() -> Iterator[None]:
    """Lets a few slots be several shards, and workers wait long before they look again."""
    with (
        patch.object(shards, "SHARD_SLOTS", SHARD),
        patch.object(keyed_work, "_PATIENCE", 10.0),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def play(seeds: Iterable[int]) -> None:
    """Plays schedules, and names the seed of one that fails."""
    for seed in seeds:
        try:
            with small_shards():
                Play(seed).run()
        except BaseException as error:
            error.add_note(f"SCHEDULE={seed} python -m pytest -n 0 -m slow tests/faults/test_simulation.py")
            raise
