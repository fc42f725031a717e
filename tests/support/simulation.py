"""Processes that are simulated: they share a disk in memory and clocks, and one after another makes its calls.

Each simulated process has threads of this one. Only one of them runs at any time. At each call to the disk, a random
generator decides whether another continues, whether the clocks jump, and whether the process dies there or is paused.
So a seed replays a schedule.

What a process has for itself in the modules of evaluand (its number, the files that it has open, what it has seen of
others) is exchanged when a thread of another process continues.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from evaluand.core import system
from evaluand.core.system import ProcessIdentity
from evaluand.engine import keyed_work
from evaluand.store import digests, garbage, io, journal, leases, log, references, segments, temporary, user_cache
from evaluand.store.io import Disk
from support.memory_disk import MemoryDisk

MOST_SWITCHES = 100_000
DAY = 86400.0


class Dead(BaseException):
    """The process of this thread has died."""


class Machine:
    """What processes share that see each other.

    Attributes:
        boot: how far its clock since boot is ahead of the simulation's.
        date: how far its date is.
    """

    def __init__(self, name: str, random: Random) -> None:
        self.name, self.boot, self.date = name, random.random() * 1e6, 1.8e9


class Process:
    """A simulated process.

    Attributes:
        own: by module and name, what of evaluand's modules is its own.
        paused: until when none of its threads runs.
    """

    def __init__(self, number: int, machine: Machine) -> None:
        self.number, self.machine = number, machine
        self.is_dead = False
        self.paused = -math.inf
        self.handles: set[int] = set()
        identity = ProcessIdentity(machine.name, machine.name, number, 0, machine.name)
        self.own: tuple[tuple[Any, str, Any], ...] = (
            (system, "_identity", identity),
            (log, "_readers", log._Readers()),
            (leases, "_seen", {}),
            (leases, "_left", set()),
            (digests, "_valid", {}),
        )


class Thread:
    """A thread of a simulated process.

    Attributes:
        ready: whether it can continue, in addition to what `wakes` says.
        wakes: when it continues.
    """

    def __init__(self, process: Process, act: Callable[[], object]) -> None:
        self.process, self.act = process, act
        self.turn = threading.Lock()
        self.turn.acquire()
        self.ready: Callable[[], bool] | None = None
        self.wakes = -math.inf
        self.has_ended = False


class Chances:
    """How often what happens at a call to the disk: numbers from 0 to 1."""

    def __init__(self, random: Random) -> None:
        self.switch = random.choice([0.05, 0.2, 0.5])
        self.death = random.choice([0.0, 0.001, 0.005])
        self.pause = random.choice([0.0, 0.001, 0.005])
        self.date = random.choice([0.0, 0.001])
        self.late_write = random.choice([0.0, 0.0, 0.1])


class Simulation:
    """A schedule.

    Args:
        seed: from which all chances are drawn.

    Attributes:
        now: the seconds of the simulation.
        n_switches: how often a thread was chosen to continue.
        n_calls: calls to the disk.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.chances = Chances(self.random)
        self.now, self.n_switches, self.n_calls = 0.0, 0, 0
        self.machines = [Machine(name, self.random) for name in ("here", "there")]
        self.processes: list[Process] = []
        self.threads: list[Thread] = []
        self.current: Thread | None = None
        self.disk = SimulatedDisk(self)
        self.is_quiet = False  # whether nothing happens any more but switches
        self.error: BaseException | None = None
        self._numbers = {machine.name: itertools.count(1000) for machine in self.machines}
        self._ended = threading.Lock()
        self._ended.acquire()

    @property
    def process(self) -> Process:
        assert self.current is not None
        return self.current.process

    def start(self, act: Callable[[], object], machine: Machine) -> Process:
        """Starts a process that calls a function."""
        process = Process(next(self._numbers[machine.name]), machine)
        self.processes.append(process)
        self.start_thread(process, act)
        return process

    def start_thread(self, process: Process, act: Callable[[], object]) -> None:
        thread = Thread(process, act)
        self.threads.append(thread)
        threading.Thread(target=self._live, args=(thread,), daemon=True).start()

    def run(self) -> None:
        """Lets all processes come to their end."""
        with self._in_place():
            self._continue(self._choose())
            self._ended.acquire()
        self.current, self.threads = None, []
        if self.error is not None:
            raise self.error

    def step(self) -> None:
        """A call to the disk: what happens before it."""
        thread, chances = self.current, self.chances
        assert thread is not None
        self.n_calls += 1
        if thread.process.is_dead:
            raise Dead
        draw = self.random.random
        self.now += 0.0005
        if not self.is_quiet:
            if draw() < chances.death:
                self.kill(thread.process)
                raise Dead
            if draw() < chances.pause:
                self.pause(thread.process)
            if draw() < chances.date:
                self.random.choice(self.machines).date += self.random.choice([-DAY, DAY])
        if draw() < chances.switch:
            self.switch()

    def wait(self, seconds: float, ready: Callable[[], bool] | None = None) -> None:
        """Lets a thread wait for some time, or for a condition."""
        thread = self.current
        assert thread is not None
        if thread.process.is_dead:
            raise Dead
        thread.wakes, thread.ready = self.now + seconds, ready
        self.switch()

    def pause(self, process: Process) -> None:
        """Stops a process for a while, perhaps for longer than a lease."""
        process.paused = self.now + self.random.choice([1, 20, 31, 100])
        self.switch()

    def kill(self, process: Process) -> None:
        """Ends a process: its threads make no further call, and its files are closed."""
        process.is_dead = True
        for handle in process.handles:
            self.disk.handles.pop(handle, None)

    def switch(self) -> None:
        """Lets another thread continue, or this one."""
        thread = self.current
        assert thread is not None
        chosen = self._choose()
        assert chosen is not None
        if chosen is not thread:
            self._continue(chosen)
            thread.turn.acquire()
        if thread.process.is_dead:
            raise Dead

    def _choose(self) -> Thread | None:
        self.n_switches += 1
        if self.n_switches > MOST_SWITCHES:
            raise AssertionError("this schedule does not end")
        living = self.threads = [thread for thread in self.threads if not thread.has_ended]
        while living:
            dead = [thread for thread in living if thread.process.is_dead]
            if found := dead or [thread for thread in living if self._is_ready(thread)]:
                chosen = found[0] if len(found) == 1 else self.random.choice(found)
                chosen.wakes, chosen.ready = -math.inf, None
                return chosen
            times = [max(thread.wakes, thread.process.paused) for thread in living]
            self.now = min(time for time in times if time > self.now)
            if self.now == math.inf:
                raise AssertionError("all wait for one another")
        return None

    def _is_ready(self, thread: Thread) -> bool:
        if thread.process.paused > self.now:
            return False
        return thread.wakes <= self.now or (thread.ready is not None and thread.ready())

    def _continue(self, thread: Thread | None) -> None:
        if thread is None:
            self._ended.release()
            return
        if self.current is None or self.current.process is not thread.process:
            for module, name, value in thread.process.own:
                setattr(module, name, value)
        self.current = thread
        thread.turn.release()

    def _live(self, thread: Thread) -> None:
        thread.turn.acquire()
        try:
            thread.act()
        except Dead:
            pass
        except BaseException as error:
            self._fail(error)
        thread.has_ended = True
        try:
            self._continue(self._choose())
        except BaseException as error:
            self._fail(error)
            self._ended.release()

    def _fail(self, error: BaseException) -> None:
        """Notes what went wrong first, and ends all processes."""
        self.error = self.error or error
        for process in self.processes:
            self.kill(process)

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Puts the disk, the clocks and the processes of the simulation in the place of those of this process."""
        simulated_time = SimpleNamespace(
            sleep=self.wait, monotonic=self.boot_seconds, time=self.date, time_ns=lambda: int(self.date() * 1e9)
        )
        simulated_threading = SimpleNamespace(
            RLock=lambda: Lock(self), Event=lambda: Event(self), Thread=lambda **given: Heart(self, **given)
        )
        simulated_secrets = SimpleNamespace(token_hex=lambda size: f"{self.random.getrandbits(8 * size):0{2 * size}x}")
        own = [(module, name) for module, name, _ in self.processes[0].own]
        with ExitStack() as stack:
            for module, name in own:
                stack.enter_context(patch.object(module, name, getattr(module, name)))
            for module in (leases, journal, segments, keyed_work, garbage, references, user_cache):
                stack.enter_context(patch.object(module, "time", simulated_time))
            for module in (leases, journal, keyed_work):
                stack.enter_context(patch.object(module, "boot_seconds", self.boot_seconds))
            for module in (system, temporary):
                stack.enter_context(patch.object(module, "is_alive", self.is_alive))
            for module in (temporary, segments, garbage):
                stack.enter_context(patch.object(module, "secrets", simulated_secrets))
            stack.enter_context(patch.object(leases, "random", self.random))
            stack.enter_context(patch.object(leases, "threading", simulated_threading))
            stack.enter_context(patch.object(system.os, "getpid", lambda: self.process.number))
            stack.enter_context(patch.object(io, "disk", self.disk))
            yield

    def boot_seconds(self) -> float:
        return self.now + self.process.machine.boot

    def date(self) -> float:
        return self.now + (self.process.machine if self.current else self.machines[0]).date

    def is_alive(self, number: int) -> bool:
        here = self.process.machine
        return any(p.number == number and p.machine is here and not p.is_dead for p in self.processes)


class Lock:
    """A lock that its owner can take again, for the threads of a simulated process."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.times = simulation, 0
        self.owner: Thread | None = None

    def __enter__(self) -> None:
        simulation = self.simulation
        while self.owner not in (None, simulation.current):
            simulation.wait(math.inf, lambda: self.owner is None)
        self.owner, self.times = simulation.current, self.times + 1

    def __exit__(self, *error: object) -> None:
        self.times -= 1
        if not self.times:
            self.owner = None


class Event:
    """An event for which threads of a simulated process wait."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.is_set = simulation, False

    def set(self) -> None:
        self.is_set = True

    def wait(self, seconds: float) -> bool:
        if not self.is_set:
            self.simulation.wait(seconds, lambda: self.is_set)
        return self.is_set


class Heart:
    """A thread that a simulated process starts."""

    def __init__(
        self, simulation: Simulation, target: Callable[..., object], args: tuple[Any, ...], **_: object
    ) -> None:
        self.simulation, self.act = simulation, lambda: target(*args)

    def start(self) -> None:
        self.simulation.start_thread(self.simulation.process, self.act)


class SimulatedDisk(MemoryDisk):
    """A disk at whose calls the simulation decides what happens first."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        super().__init__(lambda: int(simulation.date() * 1e9))
        self.on_write: Callable[[bytes, int], object] = lambda data, offset: None
        self.on_link: Callable[[str, bytes, Collection[str]], object] = lambda name, content, names: None

    def open(self, name: str, flags: int, folder: int | None) -> int:
        if self.simulation.process.is_dead:
            raise Dead
        if not flags & os.O_DIRECTORY:  # opening a folder changes nothing, and the call that is made there follows
            self.simulation.step()
        handle = super().open(name, flags, folder)
        self.simulation.process.handles.add(handle)
        return handle

    def write(self, handle: int, data: bytes) -> int:
        process, node = self.simulation.process, self.handles.get(handle)
        was_dead = process.is_dead
        simulation = self.simulation
        try:
            simulation.step()
            if not simulation.is_quiet and simulation.random.random() < simulation.chances.late_write:
                simulation.pause(process)
        except Dead:
            if node is not None and not was_dead:  # a part may be written nevertheless
                part, offset = data[: simulation.random.randrange(len(data) + 1)], len(node.content)
                node.content += part
                self.on_write(part, offset)
            raise
        assert node is not None
        offset = len(node.content)
        written = super().write(handle, data)
        self.on_write(data, offset)
        return written

    def link(self, name: str, new: str, folder: int | None) -> None:
        self.simulation.step()
        super().link(name, new, folder)
        self.on_link(new, bytes(self._find(new, folder).content), self._names(folder))

    def close(self, handle: int) -> None:
        process = self.simulation.process
        process.handles.discard(handle)
        if not process.is_dead:
            super().close(handle)


def _stepped(name: str) -> Callable[..., Any]:
    made = getattr(MemoryDisk, name)

    def call(self: SimulatedDisk, *arguments: Any) -> Any:
        self.simulation.step()
        return made(self, *arguments)

    return call


for _name in Disk.__dict__:
    if not _name.startswith("_") and _name not in SimulatedDisk.__dict__:
        setattr(SimulatedDisk, _name, _stepped(_name))
