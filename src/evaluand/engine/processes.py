"""Calls in processes: for tasks that compute instead of waiting, which threads would make one after the other.

A child makes the call and also writes the journal line of what became of it. So only bytes go between processes, what
a unit is made of one way and its line the other: outputs, errors and traces need no form of their own and nothing is
pickled, and the parent alone reads the dataset, holds the leases, writes the journal and decides what is tried again.

Children are forked, which gives them the task as it is, whatever it holds. A call that takes too long ends with its
child; a child that dies costs the example it was at. Ctrl-C is the parent's business, and when the parent dies its
children do.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import inspect
import multiprocessing
import os
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from evaluand.core.errors import TaskError
from evaluand.engine.engine import Aborted, Outcome, Policy, UnitCodec, stop_message, too_long
from evaluand.engine.rate_limit import Turn

U = TypeVar("U")

GRACE = 2.0  # seconds a child may take to end by itself
_ORDER = struct.Struct("<iqq")  # attempts; when the first began, since the epoch and by the monotonic clock
_ANSWER = struct.Struct(
    "<diI"
)  # seconds until another try, or -1; how many slots failed; how long the text about it is


class WorkerDied(TaskError):
    """The process that made the call ended before the call did."""


class _Worker:
    """A child, and the unit it is at or waits with."""

    __slots__ = ("attempts", "began", "clock", "connection", "not_before", "process", "started", "turn", "unit")

    def __init__(self, process: Any, connection: Connection) -> None:
        self.process, self.connection = process, connection

    def take(self, unit: Any) -> None:
        self.unit = unit
        self.attempts = self.started = self.began = self.clock = 0
        self.not_before = 0.0
        self.turn: Turn | None = None


class ProcessMap(Generic[U]):
    """Makes the calls of some units in as many processes as the policy has calls in flight.

    Args:
        units: what is to be done; read in this process.
        call: what is done with one, in a child; may be a coroutine function.
        line: the lines of a unit and its outcome, and how many of its slots failed; in a child, but for calls that took
            too long or whose child died.
        wire: how units get there.
        done: takes a unit, its lines and how many slots failed.
        policy: how calls are made.
    """

    def __init__(
        self,
        units: Iterator[U],
        call: Callable[[U], Any],
        line: Callable[[U, Outcome], tuple[bytes, int]],
        wire: UnitCodec[U],
        done: Callable[[U, bytes, int], None],
        policy: Policy,
    ) -> None:
        self._units, self._call, self._line, self._wire, self._done = units, call, line, wire, done
        self._policy = policy
        self._idle: list[_Worker] = []
        self._waiting: list[_Worker] = []  # for their turn, or for another attempt
        self._busy: dict[Connection, _Worker] = {}
        self._torn: _Worker | None = None  # whose pipe may hold half a message
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Returns when all units are done.

        Raises:
            Aborted: the policy stops at the first failure, and there was one.
            KeyboardInterrupt: the user stopped it; what was in flight was done.
        """
        try:
            try:
                self._work()
            except KeyboardInterrupt as interrupt:
                self._stop(interrupt)
                self._policy.report_finishing(len(self._busy))
                self._work()  # what is in flight ends and is handed over; a second Ctrl-C does not wait
        finally:
            self._end()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        while self._assign():
            self._start_those_whose_turn_it_is()
            for connection in self._until_something_happens():
                self._receive(self._busy[connection])
            self._end_those_that_take_too_long()

    def _assign(self) -> bool:
        """Gives units to those that have none; false when nothing is left to do or in flight."""
        while self._failure is None and len(self._busy) + len(self._waiting) < self._policy.concurrency:
            try:
                unit = next(self._units, None)
            except BaseException as error:
                self._stop(error)
                break
            if unit is None:
                break
            worker = self._idle.pop() if self._idle else self._forked()
            worker.take(unit)
            self._wait_with(worker)
            self._start_those_whose_turn_it_is()
        return bool(self._busy or self._waiting)

    def _wait_with(self, worker: _Worker, pause: float = 0.0) -> None:
        worker.not_before = time.monotonic() + pause if pause else 0.0
        worker.turn = self._policy.rate_limit.turn() if self._policy.rate_limit else None
        self._waiting.append(worker)

    def _start_those_whose_turn_it_is(self) -> None:
        for worker in [w for w in self._waiting if self._pause(w) <= 0]:
            self._waiting.remove(worker)
            self._send(worker)

    def _pause(self, worker: _Worker) -> float:
        """Seconds until a worker may start its call."""
        left = worker.not_before - time.monotonic() if worker.not_before else 0.0
        return left if left > 0 or worker.turn is None else worker.turn.pause()

    def _send(self, worker: _Worker) -> None:
        if not worker.attempts:
            worker.started, worker.began = time.time_ns(), time.perf_counter_ns()
        worker.attempts += 1
        worker.clock = time.perf_counter_ns()
        self._busy[worker.connection] = worker
        order = _ORDER.pack(worker.attempts, worker.started, worker.began)
        self._torn = worker
        with suppress(OSError):  # it is dead, as reading from it will show
            worker.connection.send_bytes(order + self._wire.pack(worker.unit))
        self._torn = None

    def _until_something_happens(self) -> list[Any]:
        """The connections on which there is something to read, when there is or somebody's time has come."""
        times = [self._left(worker) for worker in self._busy.values()] if self._policy.timeout else []
        now = time.monotonic()
        times += [max(w.not_before - now, 0.0) or (w.turn.soonest if w.turn else 0.0) for w in self._waiting]
        return wait(list(self._busy), min(times, default=None)) if self._busy else _slept(min(times, default=0.0))

    def _left(self, worker: _Worker) -> float:
        assert self._policy.timeout is not None
        return max(0.0, self._policy.timeout - (time.perf_counter_ns() - worker.clock) / 1e9)

    def _receive(self, worker: _Worker) -> None:
        self._torn = worker
        try:
            message = worker.connection.recv_bytes()
        except (EOFError, OSError):
            self._torn = None
            self._count_start(worker)
            return self._lose(worker, _died(self._bury(worker)))
        self._torn = None
        self._count_start(worker)
        if not message:
            return None
        pause, failed, length = _ANSWER.unpack_from(message)
        del self._busy[worker.connection]
        if pause >= 0:
            return self._try_again(worker, pause)
        self._idle.append(worker)
        end = _ANSWER.size + length
        self._done(worker.unit, message[end:], failed)
        if length:
            raise Aborted(stop_message(worker.unit, message[_ANSWER.size : end].decode()))
        return None

    def _count_start(self, worker: _Worker) -> None:
        if worker.turn is not None:
            worker.turn.start()
            worker.turn = None

    def _try_again(self, worker: _Worker, pause: float) -> None:
        if self._failure is None:
            self._wait_with(worker, pause)
        else:
            self._idle.append(worker)

    def _end_those_that_take_too_long(self) -> None:
        if self._policy.timeout:
            for worker in [w for w in self._busy.values() if not self._left(w)]:
                self._count_start(worker)
                _kill(worker.process)
                self._bury(worker)
                self._lose(worker, too_long(self._policy))

    def _lose(self, worker: _Worker, error: TaskError) -> None:
        """What a unit comes to whose child has ended."""
        if self._policy.retries_after(error, worker.attempts):
            if self._failure is None:
                fresh = self._forked()
                worker.process, worker.connection = fresh.process, fresh.connection
                self._wait_with(worker, self._policy.pause(worker.attempts))
            return
        outcome = Outcome(None, error, worker.attempts, worker.started, time.perf_counter_ns() - worker.began)
        self._done(worker.unit, *self._line(worker.unit, outcome))
        if self._policy.abort_on_error:
            raise Aborted(stop_message(worker.unit, _said(error))) from error

    def _bury(self, worker: _Worker) -> int:
        """The exit code of a child that has ended or is about to."""
        self._busy.pop(worker.connection, None)
        worker.connection.close()
        worker.process.join(GRACE)
        if worker.process.exitcode is None:
            _kill(worker.process)
            worker.process.join()
        code = int(worker.process.exitcode)
        worker.process.close()
        return code

    def _stop(self, reason: BaseException) -> None:
        """Lets what is in flight end, and begins nothing more."""
        self._failure = self._failure or reason
        self._give_turns_back(self._waiting)
        self._idle += self._waiting
        self._waiting = []
        if self._torn is not None:
            _kill(self._torn.process)
            self._bury(self._torn)
            self._torn = None

    def _end(self) -> None:
        for worker in self._busy.values():
            _kill(worker.process)
        workers = [*self._busy.values(), *self._waiting, *self._idle]
        self._give_turns_back(workers)
        for worker in workers:
            worker.connection.close()  # which an idle child takes as the end
        for worker in workers:
            self._bury(worker)

    def _give_turns_back(self, workers: list[_Worker]) -> None:
        for worker in workers:
            if worker.turn is not None:
                worker.turn.give_back()
                worker.turn = None

    def _forked(self) -> _Worker:
        here, there = multiprocessing.Pipe()
        others = [here, *(w.connection for w in [*self._busy.values(), *self._waiting, *self._idle])]
        given = (there, others, os.getpid(), self._call, self._line, self._wire, self._policy)
        process = forked(_serve, given, "evaluand worker")
        there.close()
        return _Worker(process, here)


def _slept(seconds: float) -> list[Any]:
    time.sleep(seconds)
    return []


def _died(code: int) -> WorkerDied:
    if code >= 0:
        return WorkerDied(f"its process ended with exit status {code} during the call", code=f"exit {code}")
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    hint = " (perhaps for want of memory)" if -code == signal.SIGKILL else ""
    return WorkerDied(f"its process was ended by {name} during the call{hint}", code=name)


def _said(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a __str__ that fails
        return type(error).__name__


# In the child


def _serve(
    connection: Connection,
    others: list[Connection],
    parent: int,
    call: Callable[[Any], Any],
    line: Callable[[Any, Outcome], tuple[bytes, int]],
    wire: UnitCodec[Any],
    policy: Policy,
) -> None:
    """Makes calls until the parent has no more."""
    settle(parent)
    for other in others:
        other.close()  # or the parent's end would stay open when the parent has died
    runner = asyncio.Runner() if inspect.iscoroutinefunction(call) else None
    try:
        while True:
            order = connection.recv_bytes()
            attempts, started, began = _ORDER.unpack_from(order)
            unit = wire.unpack(order[_ORDER.size :])
            value, error = None, None
            if policy.rate_limit:
                connection.send_bytes(b"")  # the call starts now, whenever it was allowed to
            try:
                value = runner.run(call(unit)) if runner else call(unit)
            except BaseException as raised:  # whatever a task raises, SystemExit too, costs one example
                error = raised
            if error is not None and policy.retries_after(error, attempts):
                connection.send_bytes(_ANSWER.pack(policy.pause(attempts, error), 0, 0))
                continue
            outcome = Outcome(value, error, attempts, started, time.perf_counter_ns() - began)
            written, failed = line(unit, outcome)
            said = _said(error).encode("utf-8", "replace") if error is not None and policy.stops_at(error) else b""
            connection.send_bytes(_ANSWER.pack(-1, failed, len(said)) + said + written)
    except (EOFError, OSError):
        wire.close()


def _kill(process: Any) -> None:
    """Ends a child with all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def forked(target: Callable[..., None], given: tuple[Any, ...], name: str) -> Any:
    """A fork of this process that calls a function, which is to begin with `settle`."""
    process = multiprocessing.get_context("fork").Process(target=target, args=given, name=name)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the child ignores it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of this process mean nothing to a child
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process


def settle(parent: int) -> None:
    """Makes a fork a process of its own."""
    os.setpgid(0, 0)  # so that what it starts can be ended with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it could be said
        os._exit(1)
    gc.freeze()  # what came from the parent, its connections to databases too, is never collected here
    for name in ("stdout", "stderr"):  # a progress display's lock may have been held at the fork
        setattr(sys, name, getattr(getattr(sys, name), "rich_proxied_file", getattr(sys, name)))


_PR_SET_PDEATHSIG = 1
