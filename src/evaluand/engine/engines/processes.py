"""Calls in processes: for tasks that compute instead of waiting, which threads would run one after the other.

A child makes the call and formats the journal line of its outcome. So only numbers and bytes pass between processes,
the encoded unit to the child and its line back: outputs, errors and traces need no separate encoding and nothing is
pickled. The parent alone reads the dataset, holds the leases, writes the journal and decides about retries. A message
is a list as JSON, and below it what is encoded already:

    order    [number, attempts, when the first began since the epoch, and by the monotonic clock] unit
    answer   [number]                         the call starts now; said only if there is a rate limit
             [number, seconds]                it failed, and another attempt follows after these
             [number, failed slots, failure]  it is done; the failure is said only if it stops the run; then its line

Children are forked, so that they have the task with its whole state. A child makes one call of a plain function at a
time: one that takes too long is ended by killing it, and if it dies, that costs its current example. Of a coroutine
function it makes `concurrency` calls at once, and ends those that take too long. If it dies or is blocked, what it was
calling is called again behind all else, each alone in a process, and costs the example at which a child dies again. The
parent handles Ctrl-C, and its children end when it dies.
"""

import asyncio
import ctypes
import gc
import inspect
import itertools
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import orjson

from evaluand.core.errors import SpecError, TaskError
from evaluand.core.system import KILLED, kill_group, require_forks
from evaluand.engine.engine import Keep, Recipe, U
from evaluand.engine.engines.elsewhere import CallsElsewhere, Job, WorkerDied
from evaluand.engine.exits import describe_exit
from evaluand.engine.garbage import calls_in_flight
from evaluand.engine.outcome import Aborted, Outcome, error_text, stop_message
from evaluand.engine.policy import Policy, too_long
from evaluand.engine.rate_limit import Turn

GRACE = 2.0  # seconds that a child may take to exit


class ProcessEngine:
    """Makes calls in processes forked from this one, for tasks that compute.

    A process makes `concurrency` calls of a coroutine function at once, and one call of a plain function.

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


class _Call(Job):
    """A unit that is called, or waits for its turn or another attempt."""

    __slots__ = ("clock", "not_before", "number", "turn")

    def __init__(self, unit: Any, number: int) -> None:
        super().__init__(unit)
        self.number = number
        self.clock = 0  # when the current attempt began
        self.not_before = 0.0
        self.turn: Turn | None = None

    def count_start(self) -> None:
        if self.turn is not None:
            self.turn.start()
            self.turn = None

    def give_turn_back(self) -> None:
        if self.turn is not None:
            self.turn.give_back()
            self.turn = None


class _Child(NamedTuple):
    """A process, and the calls that it makes."""

    process: Any
    connection: Connection
    calls: dict[int, _Call]


class ProcessMap(CallsElsewhere[U]):
    """The calls of some units in processes: of coroutine functions several in each, of plain functions one.

    Lines are made where the call is made, except for calls that took too long or whose process died.
    """

    def __init__(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy, workers: int) -> None:
        super().__init__(units, recipe, keep, policy)
        self._workers = workers
        is_async = inspect.iscoroutinefunction(recipe.call)
        self._most = workers * (policy.calls_at_once if is_async else 1)
        self._patience = (policy.timeout or math.inf) + (GRACE if is_async else 0)  # a child ends its coroutines itself
        self._numbers = itertools.count()
        self._children: dict[Connection, _Child] = {}  # all that have not ended
        self._waiting: list[_Call] = []  # for their turn, or for another attempt
        self._suspects: list[_Call] = []  # whose process died while it made others, too

    def _work(self) -> None:
        while self._assign():
            self._start_ready_calls()
            for connection in self._wait_for_messages():
                self._receive(self._children[connection])
            self._end_overdue_children()

    def _n_in_flight(self) -> int:
        return sum(len(child.calls) for child in self._children.values())

    def _assign(self) -> bool:
        """Take units while calls can be made; false when nothing is left to do or in flight."""
        n_calls = self._n_in_flight() + len(self._waiting)
        while self._failure is None and n_calls < self._most and (call := self._next_call(n_calls)):
            self._wait_with(call)
            self._start_ready_calls()
            n_calls += 1
        return bool(self._waiting or self._n_in_flight())

    def _next_call(self, n_calls: int) -> _Call | None:
        """The next unit; behind all others the suspects, one in each process."""
        if (unit := self._next_unit()) is not None:
            return _Call(unit, next(self._numbers))
        if self._suspects and not n_calls:
            self._most = self._workers
        return self._suspects.pop() if self._suspects and self._most == self._workers else None

    def _wait_with(self, call: _Call, pause: float = 0.0) -> None:
        if self._failure is not None:  # it stays open
            return
        call.not_before = time.monotonic() + pause if pause else 0.0
        call.turn = self._policy.rate_limit.turn() if self._policy.rate_limit else None
        self._waiting.append(call)

    def _start_ready_calls(self) -> None:
        for call in [each for each in self._waiting if self._pause(each) <= 0]:
            self._waiting.remove(call)
            self._send(call, self._choose_child())

    def _pause(self, call: _Call) -> float:
        """Seconds until a call may start."""
        left = call.not_before - time.monotonic() if call.not_before else 0.0
        return left if left > 0 or call.turn is None else call.turn.pause()

    def _choose_child(self) -> _Child:
        """The child with the fewest calls, or a new one if all have some and more may be started."""
        child = min(self._children.values(), key=lambda child: len(child.calls), default=None)
        is_new = child is None or (child.calls and len(self._children) < self._workers)
        return self._fork() if child is None or is_new else child

    def _send(self, call: _Call, child: _Child) -> None:
        call.begin()
        call.attempts += 1
        call.clock = time.perf_counter_ns()
        child.calls[call.number] = call
        message = _message([call.number, call.attempts, call.started, call.began], self._wire.pack(call.unit))
        try:
            child.connection.send_bytes(message)
        except OSError:
            pass  # it is dead, as reading from it will show
        except KeyboardInterrupt:
            self._end_torn(child)
            raise

    def _end_torn(self, child: _Child) -> None:
        """Ends a child whose pipe may hold half a message."""
        _kill(child.process)
        self._bury(child)

    def _wait_for_messages(self) -> list[Any]:
        """Wait for messages or the next deadline; the connections that can be read."""
        busy = [child for child in self._children.values() if child.calls]
        times = [self._left(child) for child in busy] if self._policy.timeout else []
        times += map(self._pause, self._waiting)
        self._interrupts.allow()  # elsewhere, a call could be lost between its answer and its line
        try:
            connections = [child.connection for child in busy]
            return wait(connections, min(times, default=None if busy else 0.0))
        finally:
            self._interrupts.delay()

    def _left(self, child: _Child) -> float:
        """Seconds that the first of the calls of a child may still take."""
        clock = next(iter(child.calls.values())).clock
        return max(0.0, self._patience - (time.perf_counter_ns() - clock) / 1e9)

    def _receive(self, child: _Child) -> None:
        try:
            (number, *answer), line = _parts(child.connection.recv_bytes())
        except (EOFError, OSError):
            return self._lose(child, _death_error(self._bury(child)))
        except KeyboardInterrupt:
            self._end_torn(child)
            raise
        call = child.calls[number]
        call.count_start()
        if not answer:
            return None
        del child.calls[number]
        if len(answer) == 1:
            return self._wait_with(call, *answer)
        failed, failure = answer
        self._keep([(call.unit, line, failed, call.attempts, "")])
        if failure:
            raise Aborted(stop_message(call.unit, failure))
        return None

    def _end_overdue_children(self) -> None:
        if self._policy.timeout:
            for child in [each for each in self._children.values() if each.calls and not self._left(each)]:
                _kill(child.process)
                self._bury(child)
                self._lose(child, too_long(self._policy))

    def _lose(self, child: _Child, error: TaskError) -> None:
        """Retry or fail what a child that has ended was calling; of several calls, each is made again alone."""
        for call in child.calls.values():
            call.count_start()
            if len(child.calls) > 1:
                call.attempts -= 1  # it need not be its fault
                self._suspects.append(call)
            elif not self._policy.retries_after(error, call.attempts):
                self._fail(call, error)
            else:
                self._wait_with(call, self._policy.draw_pause(call.attempts))

    def _bury(self, child: _Child) -> int:
        """Wait for a child to end; its exit code."""
        del self._children[child.connection]
        child.connection.close()
        child.process.join(GRACE)
        if child.process.exitcode is None:
            _kill(child.process)
            child.process.join()
        code = int(child.process.exitcode)
        child.process.close()
        return code

    def _stop(self, reason: BaseException) -> None:
        self._failure = self._failure or reason
        for call in self._waiting:
            call.give_turn_back()
        self._waiting = []

    def _end(self) -> None:
        children = [*self._children.values()]
        for call in [*self._waiting, *(call for child in children for call in child.calls.values())]:
            call.give_turn_back()
        for child in children:
            if child.calls:
                _kill(child.process)
            child.connection.close()  # an idle child exits then
        for child in children:
            self._bury(child)

    def _fork(self) -> _Child:
        """Starts a child."""
        here, there = multiprocessing.Pipe()
        args = (there, [here, *self._children], os.getpid(), self._recipe, self._policy)
        child = self._children[here] = _Child(fork(_serve, args, "evaluand worker"), here, {})
        there.close()
        return child


def _death_error(code: int) -> WorkerDied:
    how, name = describe_exit(code)
    hint = " (perhaps out of memory)" if -code == KILLED else ""
    return WorkerDied(f"its process {how} during the call{hint}", code=name)


def _message(head: list[Any], encoded: bytes) -> bytes:
    return orjson.dumps(head) + b"\n" + encoded


def _parts(message: bytes) -> tuple[list[Any], bytes]:
    """The inverse of `_message`."""
    head, _, encoded = message.partition(b"\n")
    return orjson.loads(head), encoded


# In the child


def _serve(there: Connection, others: list[Connection], parent: int, recipe: Recipe[Any], policy: Policy) -> None:
    """Make calls until the parent has no more."""
    settle(parent)
    for other in others:
        other.close()  # else the parent's end would stay open after the parent's death
    _Serving(there, recipe, policy).serve()


class _Serving:
    """The calls of a child."""

    def __init__(self, connection: Connection, recipe: Recipe[Any], policy: Policy) -> None:
        assert recipe.wire is not None
        self._connection, self._recipe, self._wire, self._policy = connection, recipe, recipe.wire, policy

    def serve(self) -> None:
        """Make calls until there are no more."""
        try:
            if inspect.iscoroutinefunction(self._recipe.call):
                asyncio.run(self._make_calls_at_once())
            else:
                self._make_calls()
        except (EOFError, OSError):
            self._wire.close()

    def _make_calls(self) -> None:
        """Make one call after another; raises EOFError when there are no more."""
        while True:
            order, unit = self._read(self._connection.recv_bytes())
            value, error = None, None
            try:
                value = self._recipe.call(unit)
            except BaseException as raised:  # whatever a task raises, SystemExit too, costs one example
                error = raised
            self._answer(order, unit, value, error)

    async def _make_calls_at_once(self) -> None:
        """Make the calls of a coroutine function, as many at once as there are orders; raises as `_make_calls`."""
        loop = asyncio.get_running_loop()
        ended, context = loop.create_future(), copy_context()
        calls = set[asyncio.Task[None]]()

        def begin(order: bytes) -> None:
            call = loop.create_task(self._await(*self._read(order)))
            calls.add(call)  # the loop itself does not keep it
            call.add_done_callback(calls.discard)

        def receive() -> None:  # not in the loop: while that is blocked or answers, the parent must not wait to send
            try:
                while True:
                    loop.call_soon_threadsafe(begin, self._connection.recv_bytes(), context=context)
            except (EOFError, OSError) as error:
                loop.call_soon_threadsafe(ended.set_exception, error)

        threading.Thread(target=receive, daemon=True).start()
        with calls_in_flight(self._policy.calls_at_once):
            await ended

    async def _await(self, order: list[int], unit: Any) -> None:
        value, error, limit = None, None, asyncio.timeout(self._policy.timeout)
        try:
            async with limit:
                value = await self._recipe.call(unit)
        except BaseException as raised:
            error = raised
        if limit.expired():
            value, error = None, too_long(self._policy)
        self._answer(order, unit, value, error)

    def _read(self, message: bytes) -> tuple[list[int], Any]:
        """An order and its unit. With a rate limit, tells the parent that the call starts."""
        order, packed = _parts(message)
        if self._policy.rate_limit:
            self._say([order[0]])  # whenever it was allowed to
        return order, self._wire.unpack(packed)

    def _answer(self, order: list[int], unit: Any, value: Any, error: BaseException | None) -> None:
        (number, attempts, started, began), policy = order, self._policy
        if error is not None and policy.retries_after(error, attempts):
            return self._say([number, policy.draw_pause(attempts, error)])
        line, failed = self._recipe.line(unit, Outcome(value, error, attempts, started, time.perf_counter_ns() - began))
        failure = error_text(error) if error is not None and policy.stops_at(error) else ""
        return self._say([number, failed, failure], line)

    def _say(self, answer: list[Any], line: bytes = b"") -> None:
        self._connection.send_bytes(_message(answer, line))


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
