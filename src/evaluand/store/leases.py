"""Leases: which worker has which units of a log, without locks, databases and dates.

The state of all leases of a log is a file, `leases/<number>.json` in the log's folder. Who wants to change it reads the
highest number, and puts the changed state there under the next number, unless that exists: then somebody else was
faster, and it reads again. So every state is made from the one before, whichever processes work, on one machine or on
several. Only the last few states stay, until the artifact is sealed: then all are removed, the lowest first.

A number that was removed could be put there again by a process that was stopped in between. So who has put a state
there lists the folder, and where there is a higher number, the change counts only if that state has it: each worker
has one number `seq` for each change that it tries. A listing that begins after the removal of a number shows higher
ones, because states are removed only below several that stay.

A worker is the writer of one segment. It has a lease on its units while it lives and its heart beats:

- It has ended if its process is known to be dead: same boot, same namespace of process numbers, and its number is no
  longer there, or belongs to a process that was started at another time, or is that of a zombie.
- Its leases have run out if its last change is older than `LEASE_SECONDS`, by the clock since boot where both share
  it, and else by how long the observer itself has seen no change. The date of a machine plays no part.

Who takes a unit from such a worker takes over from it entirely, in one change: the worker is removed, all its units
are free, and the state notes where its segment ends. Then the new worker writes that end, the *fence*, into its own
segment: lines beyond it do not count. If it dies before, the next worker reads the note and writes the same fence.

A worker that was stopped and continues finds by its own clock that its last beat is old, tries to beat, and finds
itself removed. Then it has no leases, and its next claim is refused, so that it gives up the calls in flight. After
that it goes on as a new worker with a new segment. So at most the calls in flight are repeated.

States need not survive a crash of the machine: what is done is in the segments. A file that is damaged, or was never a
state, is passed over; then the workers that are not in the last valid state find themselves removed, as above.
"""

from __future__ import annotations

import random
import re
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, TypeVar

from evaluand.core.errors import EngineError
from evaluand.core.system import ProcessIdentity, boot_seconds, this_process
from evaluand.store.forks import begun_anew_in_forks
from evaluand.store.io import DiskFolder
from evaluand.store.lease_state import MAX_STATE_BYTES, State, Worker, Written, pack_state, unpack_state
from evaluand.store.segments import Log

T = TypeVar("T")

LEASE_SECONDS = 30.0
FOLDER: Final = "leases"
KEPT_STATES: Final = 8
RENEWED_AFTER: Final = 0.8
"""The part of a lease after which its worker starts and stores nothing before it has renewed it."""

_NUMBER: Final = re.compile(r"[0-9]{12}\.json", re.ASCII)
_MOST_TRIES: Final = 1000
_MOST_DAMAGED: Final = 64
_LOOK_SECONDS: Final = 0.25


class Leases(Protocol):
    """Which worker has which shard."""

    def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
        """Claims the first shard that is neither done nor leased.

        Args:
            is_fenced: whether this worker's lines cease to count when another takes over from it.

        Returns:
            The shard and how often it was claimed before, or None if none is free, or this worker has lost its leases:
            then it must give up what is under way before it claims again.
        """

    def finish(self, shard: int) -> None:
        """Marks a claimed shard as done."""

    def reopen(self, shards: Sequence[int]) -> None:
        """Frees shards that were marked as done although lines are missing."""

    def release(self) -> None:
        """Releases every lease of this worker."""

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        """Takes the first of some units that no living worker holds; for logs whose units are taken one by one.

        The caller must check the unit again: it may have been finished and dropped in the meantime.

        Returns:
            The unit and how many workers died with it, or None if all are taken, or this worker has lost its leases.
        """

    def drop(self, unit: int) -> None:
        """Ends the lease of a taken unit and resets its count."""

    def has(self, unit: int) -> bool:
        """Whether this worker has a shard or unit, as far as it knows."""

    def holds(self) -> bool:
        """Whether what this worker writes now counts: it has its leases, or never had any.

        False from the moment in which it has lost them until a claim was refused and it claims again.
        """

    def confirm(self) -> None:
        """Makes lines that were read before this count for ever, unless the log says now that they do not.

        Only while no call of this worker is under way.
        """

    def held(self) -> int:
        """The number of shards or units that living workers have."""

    def busy(self, *, patient: bool = False) -> bool:
        """Whether another living worker has a shard or unit.

        Args:
            patient: wait for a lease to run out where only time shows whether its worker lives.
        """

    def describe_others(self, *, only_distant: bool = False) -> str:
        """A sentence about another worker that has a shard or unit, or may have; empty if there is none.

        Args:
            only_distant: only about workers of which only time shows whether they live.
        """

    def history(self) -> History:
        """What the leases say of the past; nothing is written."""


class History(NamedTuple):
    """What leases say of the past.

    Attributes:
        done: the finished shards, as sorted ranges [start, stop).
        taken: the units that workers have, or had when they died.
        written: what each segment has at least.
    """

    done: Sequence[tuple[int, int]]
    taken: Collection[int]
    written: Mapping[str, Written] = {}


class _Lost(Exception):
    """Another worker has taken over from this one."""


class SharedLeases(ABC):
    """What all leases that several processes see have in common: this worker's units, its heartbeat, and its loss.

    Args:
        log: the log whose units are leased.
    """

    _sees_all = False
    """Whether it is known of workers of other machines whether they live."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._begin()
        begun_anew_in_forks.add(self)

    def _begin(self) -> None:
        """Begins without leases, also in a fork: there they are those of the parent."""
        self._lock = threading.RLock()
        self._units: set[int] = set()
        self._ended: dict[int, bool] = {}  # units that others still see this worker have: whether each is done
        self._beating: threading.Event | None = None
        self._renewed_at = 0.0  # when this worker must beat before it starts or stores anything
        self._lost = False
        self._is_loss_known = False  # whether a claim was refused since

    def fork(self) -> None:
        self._begin()

    def finish(self, shard: int) -> None:
        self._end(shard, is_done=True)

    def drop(self, unit: int) -> None:
        self._end(unit, is_done=False)

    def _end(self, unit: int, *, is_done: bool) -> None:
        """Ends the lease on a unit; the next change says so.

        What is done is in the log, so nobody waits for that, and one change is enough for each unit.
        """
        with self._lock:
            if self.has(unit):
                self._ended[unit] = is_done

    def has(self, unit: int) -> bool:
        return unit in self._units and unit not in self._ended

    def release(self) -> None:
        if self._beating:
            self._beating.set()
            self._beating = None
        with self._lock:
            try:
                self._leave()
            finally:
                self._units, self._ended = set(), {}

    def _acquire(self, take: Callable[[], tuple[int, int] | None]) -> tuple[int, int] | None:
        """Takes a unit; None if there is none, or this worker has lost its leases."""
        with self._lock:
            if self._lost:
                if not self._is_loss_known:  # calls are under way whose lines must not go into a new segment
                    self._is_loss_known = True
                    return None
                self._begin_anew()
            taken = take()
            self._is_loss_known = self._lost
            if taken is not None and self._beating is None:
                self._start_beating()
            return taken

    def _begin_anew(self) -> None:
        """Goes on as a new worker with a new segment, if the leases are lost."""
        if self._lost:
            self._log.restart()
            self._lost = False

    def _start_beating(self) -> None:
        self._beating = threading.Event()
        threading.Thread(target=self._keep_beating, args=(self._beating,), name="leases", daemon=True).start()

    def _keep_beating(self, ended: threading.Event) -> None:
        while not ended.wait(LEASE_SECONDS / 3):
            with suppress(EngineError):  # a full disk, a server that does not answer: who writes next says so
                self._renew(patience=0.0)

    def describe_others(self, *, only_distant: bool = False) -> str:
        others = self._others()
        near = [process for process in others if shares_clock(process)]
        known = others if self._sees_all else near
        if known and not only_distant:
            return f"another process ({known[0].pid} on {known[0].host}) works on this; sharing the rest with it"
        if distant := [process for process in others if process not in near]:
            return f"waiting up to {LEASE_SECONDS:g} s for a worker of {distant[0].host} that may still be alive"
        return ""

    @abstractmethod
    def _others(self) -> list[ProcessIdentity]:
        """The processes of the other living workers that have units."""

    @abstractmethod
    def _renew(self, patience: float | None = None) -> None:
        """Beats.

        Args:
            patience: for so many seconds if it does not succeed at once; by default as long as for any change.
        """

    @abstractmethod
    def _leave(self) -> None:
        """Removes this worker from those that others see."""


class FileLeases(SharedLeases):
    """One worker's leases, in state files in the folder `leases` of a log.

    Args:
        folder: the folder of the log; both are made with the first lease.
        log: the log whose units are leased.
        fence: writes where the segment of another worker ends.
    """

    def __init__(self, folder: DiskFolder, log: Log, fence: Callable[[str, int], object] | None = None) -> None:
        self.fence = fence
        self._log_folder, self._folder = folder, folder / FOLDER
        super().__init__(log)

    def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
        def find(state: State) -> int | None:
            holders = state.holders()
            return state.first_free(shards, lambda shard: self._can_take(shard, holders, state))

        return self._take(find, is_fenced)

    def take(self, units: Iterable[int]) -> tuple[int, int] | None:
        several = Replay(units)

        def find(state: State) -> int | None:
            holders = state.holders()
            return next((unit for unit in several if self._can_take(unit, holders, state)), None)

        return self._take(find, True)

    def reopen(self, shards: Sequence[int]) -> None:
        def change(state: State, units: set[int]) -> bool:
            state.reopen(shards)
            return True

        self._try(change)

    def _leave(self) -> None:
        try:
            if self._present:
                with suppress(FileNotFoundError):
                    self._change(lambda state, units: True, leave=True)
                self._present.clear()
        except _Lost:  # who took over has removed this worker
            pass
        finally:
            _left.update(self._present)
            self._forget()
            self._folder.close()

    def holds(self) -> bool:
        if self._units and not (boot_seconds() <= self._renewed_at and self._log.segment == self._name):
            self._renew()
        return not self._lost

    def confirm(self) -> None:
        """Changes the state, after which a takeover that has measured a segment before must measure it again."""

        def change(state: State, units: set[int]) -> bool | None:
            return True if state.workers or state.fences else None  # nobody can be taken over

        with self._lock:
            self._begin_anew()
            if self._try(change) is None:
                self._begin_anew()
                self._try(change)
            self._write_fences()

    def _living(self) -> dict[str, Worker]:
        """The workers that have units and live, as far as is known."""
        workers = self._look()[1].workers.items()
        return {name: worker for name, worker in workers if worker.units and not self._is_over(name, worker)}

    def held(self) -> int:
        return sum(len(worker.units) for worker in self._living().values())

    def busy(self, *, patient: bool = False) -> bool:
        first: dict[str, int] = {}
        while True:
            others = {name: worker for name, worker in self._living().items() if name != self._name}
            beats = any(first.setdefault(name, worker.seq) != worker.seq for name, worker in others.items())
            if not patient or not others or beats or any(shares_clock(worker.process) for worker in others.values()):
                return bool(others)
            time.sleep(min(_LOOK_SECONDS, LEASE_SECONDS / 20))

    def _others(self) -> list[ProcessIdentity]:
        return [worker.process for name, worker in self._living().items() if name != self._name]

    def history(self) -> History:
        state = self._look()[1]
        return History(state.done, {*state.holders(), *state.takers}, state.written)

    def _begin(self) -> None:
        super()._begin()
        self._is_fenced = True
        self._written: set[tuple[str, int]] = set()  # fences
        self._former: set[str] = set()  # names under which this worker has lost its leases
        self._present: set[str] = set()  # names under which it may be in the state, even where the disk failed
        self._claimed = ""  # the one of these under which it may have had a unit there before it knew
        self._tries = 0
        self._latest: tuple[int, State] = 0, State()
        self._forget()

    def _forget(self) -> None:
        self._name = ""
        self._seq = 0  # of the last change that counts; 0 if this worker is not in the state
        self._renewed_at = 0.0

    def _take(self, find: Callable[[State], int | None], is_fenced: bool) -> tuple[int, int] | None:
        """Takes the unit that is found in a state; None if there is none."""

        def change(state: State, units: set[int]) -> tuple[int, int] | None:
            unit = find(state)
            if unit is None:
                return None
            holder = state.holders().get(unit)
            if holder is not None:
                state.take_over(holder, self._log.size)
            for name, worker in [*state.workers.items()]:
                if not worker.units and self._is_over(name, worker):
                    del state.workers[name]
            takers = state.takers.get(unit, 0)
            state.takers[unit] = takers + 1
            units.add(unit)
            return unit, takers

        def take() -> tuple[int, int] | None:
            self._is_fenced = is_fenced
            if (taken := self._try(change)) is not None:
                self._write_fences()
            return taken

        return self._acquire(take)

    def _renew(self, patience: float | None = None) -> None:
        with self._lock:
            if self._units and not self._lost:
                self._try(lambda state, units: True)

    def _can_take(self, unit: int, holders: dict[int, str], state: State) -> bool:
        holder = holders.get(unit)
        return holder is None or (holder != self._name and self._is_over(holder, state.workers[holder]))

    def _is_over(self, name: str, worker: Worker) -> bool:
        """Whether a worker has ended, or its leases have run out."""
        if name == self._name:
            return False
        if name in self._former or name in _left or worker.process.has_ended():
            return True
        if shares_clock(worker.process) and (age := boot_seconds() - worker.beat) >= 0:
            return age > LEASE_SECONDS
        place, last = (str(self._folder.path), name), (worker.seq, worker.beat)
        if place not in _seen or _seen[place][0] != last:
            _seen[place] = last, time.monotonic()
        return time.monotonic() - _seen[place][1] > LEASE_SECONDS

    def _write_fences(self) -> None:
        """Writes the ends of segments that the state notes; the next change removes them from it."""
        for fence in self._latest[1].fences:
            if fence not in self._written and self.fence is not None:
                self.fence(*fence)
            self._written.add(fence)

    def _try(self, change: Callable[[State, set[int]], T | None]) -> T | None:
        """Makes a change; None if this worker has lost its leases, as it has when the artifact was sealed."""
        with self._lock:
            try:
                return self._change(change)
            except _Lost:
                self._lose()
            except FileNotFoundError:  # another process has sealed the artifact; nothing written since counts
                if self._units or self._former:
                    self._lose()
            return None

    def _lose(self) -> None:
        self._former |= {self._name, self._log.segment}
        self._units, self._ended = set(), {}
        self._forget()
        self._lost, self._is_loss_known = True, False

    def _change(self, change: Callable[[State, set[int]], T | None], *, leave: bool = False) -> T | None:
        """Makes a change of the state that counts.

        Args:
            change: changes a state and the units of this worker; None where there is nothing to change.
            leave: whether this worker is removed from the state.

        Raises:
            _Lost: another worker has taken over from this one.
            FileNotFoundError: the log does not exist any more.
        """
        is_fresh, highest = False, self._latest[0]
        for tries in range(_MOST_TRIES):
            if not self._latest[0]:
                self._latest, is_fresh = self._look(), True
            number, before = self._latest
            if number < highest:
                raise FileNotFoundError(self._folder.path)  # another process has sealed the artifact
            highest = number
            state, units = before.copy(), set(self._units)
            self._require_place(state)
            ended = dict(self._ended)
            self._end_leases(state, units, ended)
            result = change(state, units)
            if result is None and is_fresh and not (self._ended and self._seq):
                return None
            if result is None and not is_fresh:
                self._latest, is_fresh = self._look(), True
                continue
            if self._put(number + 1, state, units, leave):
                self._units = units
                self._ended = {unit: done for unit, done in self._ended.items() if unit not in ended}
                return result
            is_fresh = True
            if tries > 2:  # many workers at once
                time.sleep(random.random() * 0.002)
        raise EngineError(f"{self._folder.path}: cannot be changed; if no process works on it, remove this folder")

    def _require_place(self, state: State) -> None:
        """Checks that this worker is in the state, as it was after its last change.

        A later change than that was stored too, although the disk failed when it was read back. One that lost its place
        without a fence, or had nothing, enters again.
        """
        worker = state.workers.get(self._name)
        if self._seq and worker is not None and self._seq < worker.seq <= self._tries:
            self._seq = worker.seq
        if self._seq and (worker is None or worker.seq != self._seq):
            if self._units and self._is_fenced:
                raise _Lost
            self._seq = 0
        if not self._seq:
            if self._is_fenced and self._claimed == self._log.segment and self._claimed not in state.workers:
                raise _Lost
            for name in self._present - self._former:
                state.workers.pop(name, None)

    def _end_leases(self, state: State, units: set[int], ended: dict[int, bool]) -> None:
        for unit, is_done in ended.items():
            units.discard(unit)
            state.takers.pop(unit, None)
            if is_done:
                state.mark_done(unit)
        if ended and self._seq:
            state.workers[self._name] = replace(state.workers[self._name], units=tuple(units))

    def _put(self, number: int, state: State, units: set[int], leave: bool) -> bool:
        """Puts a state there, with this worker in it; returns whether it counts."""
        self._tries += 1
        name, seq, beat = self._log.segment, self._tries, boot_seconds()
        state.fences = [fence for fence in state.fences if fence not in self._written]
        state.workers.pop(self._name, None)  # its segment may have another name now
        if leave:
            for former in self._present:
                state.workers.pop(former, None)
        else:
            self._present.add(name)
            others = state.holders()
            present = tuple(sorted(unit for unit in units if unit not in others))
            self._log.begin()
            state.workers[name] = Worker(this_process(), beat, seq, present, self._is_fenced)
        state.written |= self._log.written()
        earlier = self._claimed
        if units and not self._units and not leave:
            self._claimed = name
        file = _file_name(number)
        if not _NUMBER.fullmatch(file):
            highest = self._folder.path / _file_name(number - 1)
            advice = "remove its folder while no process works here; nothing finished is lost"
            raise EngineError(f"{highest}: evaluand did not write a file of this number; {advice}")
        placed = self._place_file(file, pack_state(number, state))
        if not placed:
            self._claimed = earlier
        numbers = _list_numbers(self._folder)
        if placed and numbers and numbers[-1] == number:
            if number - 1 not in (0, *numbers[-2:]):  # another process removes the states, the lowest first
                self._latest = 0, State()
                raise FileNotFoundError(self._folder.path)
            self._latest = number, state
            _sweep(self._folder, numbers)
        else:
            self._latest = self._look(numbers)
            workers = self._latest[1].workers
            counts = self._present.isdisjoint(workers) if leave else name in workers and workers[name].seq == seq
            if not counts:
                return False
        self._claimed = ""
        if not leave:
            self._name, self._seq, self._renewed_at = name, seq, beat + LEASE_SECONDS * RENEWED_AFTER
            _left.discard(name)
        return True

    def _place_file(self, file: str, data: bytes) -> bool:
        try:
            self._folder.hold_open()
            return self._folder.put_if_absent(file, data, durable=False)
        except FileNotFoundError:
            if self._latest[0]:  # another process has sealed the artifact
                raise
        with suppress(FileExistsError):
            self._log_folder.make_last()
        self._folder.make_last(durable=False)
        self._folder.hold_open()
        return self._folder.put_if_absent(file, data, durable=False)

    def _look(self, numbers: list[int] | None = None) -> tuple[int, State]:
        """The present state and its number; nothing is written."""
        return _read_latest(self._folder, numbers, self._latest)


def is_worked_on(folder: DiskFolder, recent: float) -> bool:
    """Whether a worker that may live has a part of a log; nothing is written.

    Args:
        folder: the folder of the log.
        recent: workers of other machines and containers count if any worker was active in so many seconds.
    """
    folder = folder / FOLDER
    number, state = _read_latest(folder)
    holders = [worker for worker in state.workers.values() if worker.units and not worker.process.has_ended()]
    if any(shares_clock(worker.process) and 0 <= boot_seconds() - worker.beat <= LEASE_SECONDS for worker in holders):
        return True
    changed = folder.state(_file_name(number)) if holders else None
    return changed is not None and time.time() - changed.st_mtime < recent


def distant_workers(folder: DiskFolder) -> dict[str, Worker]:
    """The workers with a part of a log of which only time shows whether they live, by the names of their segments.

    They share no clock with this process, and its date may have jumped since their files were written. Nothing is
    written.
    """
    workers = _read_latest(folder / FOLDER)[1].workers.items()
    return {n: w for n, w in workers if w.units and not w.process.has_ended() and not shares_clock(w.process)}


def read_written(folder: DiskFolder) -> Mapping[str, Written]:
    """What each segment of a log has at least, by its leases; nothing is written."""
    return _read_latest(folder / FOLDER)[1].written


_seen: Final[dict[tuple[str, str], tuple[tuple[int, float], float]]] = {}
"""Folder and worker → its last change, and when this process first saw it, so that a log opened again waits once."""

_left: Final = set[str]()
"""Workers of this process that have ended, although the disk did not take that: nobody here waits for their leases."""


class Replay:
    """An iterable that can be iterated again as far as it was."""

    def __init__(self, items: Iterable[int]) -> None:
        self._rest, self._seen = iter(items), list[int]()

    def __iter__(self) -> Iterator[int]:
        yield from self._seen
        for item in self._rest:
            self._seen.append(item)
            yield item


def shares_clock(process: ProcessIdentity) -> bool:
    """Whether a process has the same clock since boot as this one."""
    return process.boot == this_process().boot != ""


def _file_name(number: int) -> str:
    return f"{number:012d}.json"


def _list_numbers(folder: DiskFolder) -> list[int]:
    """The numbers of the states in a folder."""
    return [int(name[:12]) for name in folder.names() if _NUMBER.fullmatch(name)]


def _read_latest(
    folder: DiskFolder, numbers: list[int] | None = None, known: tuple[int, State] = (0, State())
) -> tuple[int, State]:
    """The highest number and the state there; that of the highest valid one where files are damaged.

    Args:
        numbers: those just listed.
        known: a number and its state, which need not be read again.
    """
    for _ in range(_MOST_TRIES):
        numbers = _list_numbers(folder) if numbers is None else numbers
        if not numbers:
            break
        if known[0] == numbers[-1]:
            return known
        with suppress(FileNotFoundError):
            return numbers[-1], _read_state(folder, numbers[-1]) or _read_earlier(folder, numbers[:-1])
        numbers = None  # removed meanwhile, so there are higher ones
    return 0, State()


def _read_earlier(folder: DiskFolder, numbers: list[int]) -> State:
    for number in reversed(numbers[-_MOST_DAMAGED:]):
        with suppress(FileNotFoundError):
            state = _read_state(folder, number)
            if state is not None:
                return state
    return State()


def _read_state(folder: DiskFolder, number: int) -> State | None:
    """The state in a file; None if it is damaged, or is not a file."""
    name = _file_name(number)
    found = folder.state(name)
    if found is None:
        raise FileNotFoundError(name)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_STATE_BYTES:
        return None
    return unpack_state(number, folder.read(name, MAX_STATE_BYTES))


def _sweep(folder: DiskFolder, numbers: list[int]) -> None:
    for number in numbers[:-KEPT_STATES]:
        with suppress(EngineError):  # not a file
            folder.remove(_file_name(number))
