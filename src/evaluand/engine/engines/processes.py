"""Calls in processes: for tasks that compute instead of waiting, which threads would run one after the other.

A child makes the call and formats the journal line of its outcome. So only bytes pass between processes, the encoded
unit to the child and its line back: outputs, errors and traces need no separate encoding and nothing is pickled. The
parent alone reads the dataset, holds the leases, writes the journal and decides about retries.

Children are forked, so that they have the task with its whole state. A call that takes too long is ended by killing its
child; a child that dies fails its current example. The parent handles Ctrl-C, and its children end when it dies.
"""

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Generic

from evaluand.core.errors import SpecError, TaskError
from evaluand.core.system import KILLED, kill_group, require_forks
from evaluand.engine.engine import Keep, Recipe, U, UnitCodec
from evaluand.engine.exits import describe_exit
from evaluand.engine.interrupts import DelayedInterrupts
from evaluand.engine.outcome import Aborted, Outcome, error_text, stop_message
from evaluand.engine.policy import Policy, too_long
from evaluand.engine.rate_limit import Turn

GRACE = 2.0  # seconds that a child may take to exit
_ORDER = struct.Struct("<iqq")  # attempts; when the first began, since the epoch and by the monotonic clock
_ANSWER = struct.Struct("<diI")  # seconds until the retry, or -1; number of failed slots; length of the error text


class ProcessEngine:
    """Makes each call in flight in a separate process, forked from this one: for tasks that compute.

    A task that changes a variable changes it in the process of the call only.

    Args:
        workers: the number of processes; by default that of the CPUs.

    Raises:
        SpecError: it is no number of processes, or this system cannot fork.
    """

    def __init__(self, workers: int | None = None) -> None:
        require_forks("calls in processes", "choose the engine `local`, so that calls are made in threads")
        self.workers = check_workers(workers) or os.cpu_count() or 1

    def __repr__(self) -> str:
        return f"ProcessEngine({self.workers})"

    def check(self, policy: Policy) -> None:
        refuse_budget(policy)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"kind": "processes", "workers": self.workers}

    def map_lines(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        ProcessMap(units, recipe, keep, policy, self.workers).run()


def check_workers(workers: Any) -> int | None:
    """A number of workers, or None for the default.

    Raises:
        SpecError: it is no such number.
    """
    if workers is None or (isinstance(workers, int) and not isinstance(workers, bool) and workers >= 1):
        return workers
    raise SpecError(f"workers is {workers!r}; give an integer of at least 1")


def refuse_budget(policy: Policy) -> None:
    """Raises a SpecError if a policy has a budget."""
    if policy.budget is not None:
        raise SpecError("a budget cannot stop the requests of other processes; leave it out, or choose engine `local`")


class WorkerDied(TaskError):
    """The process that made the call ended before the call did."""


class _Worker:
    """A child, and the unit that it processes or waits with."""

    __slots__ = ("attempts", "began", "clock", "connection", "not_before", "process", "started", "turn", "unit")

    process: Any
    connection: Connection

    def __init__(self) -> None:
        self.turn: Turn | None = None

    def take(self, unit: Any) -> None:
        self.unit = unit
        self.attempts = self.started = self.began = self.clock = 0
        self.not_before = 0.0
        self.turn = None


class ProcessMap(Generic[U]):
    """The calls of some units, each in one of the processes.

    Lines are made where the call is made, except for calls that took too long or whose process died.
    """

    def __init__(
        self,
        units: Iterator[U],
        recipe: Recipe[U],
        keep: Keep[U],
        policy: Policy,
        workers: int,
    ) -> None:
        assert recipe.wire is not None
        self._units, self._recipe, self._wire, self._keep = units, recipe, recipe.wire, keep
        self._policy, self._most = policy, workers
        self._workers: list[_Worker] = []  # all that have not ended
        self._idle: list[_Worker] = []
        self._waiting: list[_Worker] = []  # for their turn, or for another attempt
        self._busy: dict[Connection, _Worker] = {}
        self._torn: _Worker | None = None  # whose pipe may hold half a message
        self._failure: BaseException | None = None
        self._interrupts = DelayedInterrupts()

    def run(self) -> None:
        """Process all units.

        Raises:
            Aborted: the policy stops at the first failure, and there was one.
            KeyboardInterrupt: the user stopped it; calls in flight were finished.
        """
        with self._interrupts:
            try:
                self._work_until_interrupted()
            finally:
                self._end()
        if self._failure is not None:
            raise self._failure

    def _work_until_interrupted(self) -> None:
        try:
            self._work()
        except KeyboardInterrupt as interrupt:
            self._stop(interrupt)
            self._policy.report_finishing(len(self._busy))
            self._work()  # finishes the calls in flight; a second Ctrl-C does not wait

    def _work(self) -> None:
        while self._assign():
            self._start_ready_workers()
            for connection in self._wait_for_messages():
                self._receive(self._busy[connection])
            self._end_timed_out_workers()

    def _assign(self) -> bool:
        """Assign units to idle workers; false when nothing is left to do or in flight."""
        while self._failure is None and len(self._busy) + len(self._waiting) < self._most:
            try:
                unit = next(self._units, None)
            except BaseException as error:
                self._stop(error)
                break
            if unit is None:
                break
            worker = self._idle.pop() if self._idle else self._fork(_Worker())
            worker.take(unit)
            self._wait_with(worker)
            self._start_ready_workers()
        return bool(self._busy or self._waiting)

    def _wait_with(self, worker: _Worker, pause: float = 0.0) -> None:
        worker.not_before = time.monotonic() + pause if pause else 0.0
        worker.turn = self._policy.rate_limit.turn() if self._policy.rate_limit else None
        self._waiting.append(worker)

    def _start_ready_workers(self) -> None:
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

    def _wait_for_messages(self) -> list[Any]:
        """Wait for messages or the next deadline; the connections that can be read."""
        times = [self._left(worker) for worker in self._busy.values()] if self._policy.timeout else []
        now = time.monotonic()
        times += [max(w.not_before - now, 0.0) or (w.turn.soonest if w.turn else 0.0) for w in self._waiting]
        self._interrupts.allow()  # elsewhere, a call could be lost between its answer and its line
        try:
            return wait(list(self._busy), min(times, default=None)) if self._busy else _sleep(min(times, default=0.0))
        finally:
            self._interrupts.delay()

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
            return self._lose(worker, _death_error(self._bury(worker)))
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
        self._keep([(worker.unit, message[end:], failed, worker.attempts, "")])
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

    def _end_timed_out_workers(self) -> None:
        if self._policy.timeout:
            for worker in [w for w in self._busy.values() if not self._left(w)]:
                self._count_start(worker)
                _kill(worker.process)
                self._bury(worker)
                self._lose(worker, too_long(self._policy))

    def _lose(self, worker: _Worker, error: TaskError) -> None:
        """Retry or fail a unit whose child has ended."""
        if self._policy.retries_after(error, worker.attempts):
            if self._failure is None:
                self._wait_with(self._fork(worker), self._policy.draw_pause(worker.attempts))
            return
        outcome = Outcome(None, error, worker.attempts, worker.started, time.perf_counter_ns() - worker.began)
        self._keep([(worker.unit, *self._recipe.line(worker.unit, outcome), worker.attempts, "")])
        if self._policy.abort_on_error:
            raise Aborted(stop_message(worker.unit, error_text(error))) from error

    def _bury(self, worker: _Worker) -> int:
        """Wait for a child to end; its exit code."""
        self._workers.remove(worker)
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
        """Let calls in flight end, and begin no others."""
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
        workers = [*self._workers]
        self._give_turns_back(workers)
        for worker in workers:
            worker.connection.close()  # an idle child exits then
        for worker in workers:
            self._bury(worker)

    def _give_turns_back(self, workers: list[_Worker]) -> None:
        for worker in workers:
            if worker.turn is not None:
                worker.turn.give_back()
                worker.turn = None

    def _fork(self, worker: _Worker) -> _Worker:
        """Starts the child of a worker."""
        here, there = multiprocessing.Pipe()
        others = [here, *(each.connection for each in self._workers)]
        args = (there, others, os.getpid(), self._recipe, self._wire, self._policy)
        worker.process, worker.connection = fork(_serve, args, "evaluand worker"), here
        self._workers.append(worker)
        there.close()
        return worker


def _sleep(seconds: float) -> list[Any]:
    time.sleep(seconds)
    return []


def _death_error(code: int) -> WorkerDied:
    how, name = describe_exit(code)
    hint = " (perhaps out of memory)" if -code == KILLED else ""
    return WorkerDied(f"its process {how} during the call{hint}", code=name)


# In the child


def _serve(
    connection: Connection,
    others: list[Connection],
    parent: int,
    recipe: Recipe[Any],
    wire: UnitCodec[Any],
    policy: Policy,
) -> None:
    """Make calls until the parent has no more."""
    settle(parent)
    for other in others:
        other.close()  # else the parent's end would stay open after the parent's death
    call = recipe.call
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
                connection.send_bytes(_ANSWER.pack(policy.draw_pause(attempts, error), 0, 0))
                continue
            outcome = Outcome(value, error, attempts, started, time.perf_counter_ns() - began)
            written, failed = recipe.line(unit, outcome)
            text = error_text(error).encode("utf-8", "replace") if error is not None and policy.stops_at(error) else b""
            connection.send_bytes(_ANSWER.pack(-1, failed, len(text)) + text + written)
    except (EOFError, OSError):
        wire.close()


def _kill(process: Any) -> None:
    """Kill a child and the processes that it started."""
    kill_group(process.pid)
    process.kill()


def fork(target: Callable[..., None], args: tuple[Any, ...], name: str) -> Any:
    """Fork this process and call a function in the child, which must begin with `settle`."""
    process = multiprocessing.get_context("fork").Process(target=target, args=args, name=name)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the child ignores it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of this process mean nothing to a child
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process


def settle(parent: int) -> None:
    """Set up a forked child: process group, signals, end with the parent."""
    os.setpgid(0, 0)  # so that the processes it starts can be killed with it
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
