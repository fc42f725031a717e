"""Engines: how many calls are made at once, for how long, and how often again.

An engine maps a call over units and hands each outcome to `done` as it comes. It knows nothing of tables or stores.
`LocalEngine` drives coroutine functions by worker loops on one event loop, and plain functions by threads.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from evaluand.errors import SpecError, TaskError, TaskTimeout

U = TypeVar("U")

TRANSIENT = ("TransientError", "ConnectionError")
MAX_BACKOFF = 60.0
_TICK = 0.05


class Outcome(NamedTuple):
    """What became of one unit.

    Attributes:
        value: what the call returned, if it did.
        error: what it raised, if it did.
        attempts: how often it was called.
        started: nanoseconds since the epoch at the first attempt.
        duration: nanoseconds from there to the end of the last.
    """

    value: Any
    error: BaseException | None
    attempts: int
    started: int
    duration: int


@dataclass(frozen=True)
class Policy:
    """How calls are made.

    Attributes:
        concurrency: calls in flight at once.
        timeout: seconds one attempt may take, or None.
        retries: further attempts after an error declared transient.
        backoff: seconds before the first retry; doubles with each, up to a minute.
        transient: names of the error classes (or of their bases) worth another try.
        abort_on_error: the first failure stops everything.
    """

    concurrency: int = 16
    timeout: float | None = None
    retries: int = 0
    backoff: float = 1.0
    transient: tuple[str, ...] = TRANSIENT
    abort_on_error: bool = False

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("retries", 0), ("backoff", 0)):
            if getattr(self, name) < least:
                raise SpecError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if self.timeout is not None and self.timeout <= 0:
            raise SpecError(f"timeout must be above 0 seconds, not {self.timeout}; leave it out for none")

    def tries_again(self, error: BaseException, attempts: int) -> bool:
        """Whether an attempt that failed is followed by another."""
        return attempts <= self.retries and any(base.__name__ in self.transient for base in type(error).__mro__)

    def pause(self, attempts: int) -> float:
        """Seconds to wait after that many attempts."""
        return float(min(self.backoff * 2 ** (attempts - 1), MAX_BACKOFF))


class Engine(Protocol):
    """Maps a call over units."""

    def map(
        self,
        units: Iterable[U],
        call: Callable[[U], Any] | Callable[[U], Awaitable[Any]],
        done: Callable[[U, Outcome], None],
        policy: Policy,
    ) -> None:
        """Calls each unit and hands over its outcome; returns when all are done.

        Failures are outcomes. `done` may be called from any thread, one call at a time.

        Raises:
            Aborted: the policy stops at the first failure, and there was one.
            KeyboardInterrupt: the user stopped it; what was in flight and ended in time was handed over.
        """


class Aborted(TaskError):
    """The run was to stop at the first failure, and did."""


class LocalEngine:
    """Runs calls in this process."""

    def map(
        self,
        units: Iterable[U],
        call: Callable[[U], Any] | Callable[[U], Awaitable[Any]],
        done: Callable[[U, Outcome], None],
        policy: Policy,
    ) -> None:
        if inspect.iscoroutinefunction(call):
            _in_a_loop(_AsyncMap(iter(units), call, done, policy).run)
        else:
            _ThreadMap(iter(units), call, done, policy).run()


class InlineEngine:
    """Makes one call after the other in the caller's own thread: for calls that neither wait nor cost."""

    def map(
        self,
        units: Iterable[U],
        call: Callable[[U], Any] | Callable[[U], Awaitable[Any]],
        done: Callable[[U, Outcome], None],
        policy: Policy,
    ) -> None:
        for unit in units:
            try:
                outcome = Outcome(call(unit), None, 1, 0, 0)
            except Exception as error:
                outcome = Outcome(None, error, 1, 0, 0)
            done(unit, outcome)
            if outcome.error is not None and policy.abort_on_error:
                raise _aborted(unit, outcome.error)


class _AsyncMap:
    """Worker loops that share one iterator: no task object per unit."""

    def __init__(
        self, units: Iterator[Any], call: Callable[[Any], Awaitable[Any]], done: Callable[..., None], policy: Policy
    ) -> None:
        self._units, self._call, self._done, self._policy = units, call, done, policy
        self._stopping = False

    async def run(self) -> None:
        workers = [asyncio.ensure_future(self._work()) for _ in range(self._policy.concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            self._stopping = True
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        for unit in self._units:
            outcome = await self._attempts(unit)
            if self._stopping:
                return
            self._done(unit, outcome)
            if outcome.error is not None and self._policy.abort_on_error:
                self._stopping = True
                raise _aborted(unit, outcome.error)

    async def _attempts(self, unit: Any) -> Outcome:
        policy, started, clock, attempts = self._policy, time.time_ns(), time.perf_counter_ns(), 0
        while True:
            attempts += 1
            try:
                value = await (self._timed(unit) if policy.timeout else self._call(unit))
                return Outcome(value, None, attempts, started, time.perf_counter_ns() - clock)
            except asyncio.CancelledError as raised:
                if self._stopping or _is_cancelling():
                    raise
                error: BaseException = raised
            except (Exception, SystemExit) as raised:
                error = raised
            if not policy.tries_again(error, attempts):
                return Outcome(None, error, attempts, started, time.perf_counter_ns() - clock)
            await asyncio.sleep(policy.pause(attempts))

    async def _timed(self, unit: Any) -> Any:
        limit = asyncio.timeout(self._policy.timeout)
        try:
            async with limit:
                return await self._call(unit)
        except TimeoutError:
            if limit.expired():
                raise _too_long(self._policy) from None
            raise


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _in_a_loop(main: Callable[[], Awaitable[None]]) -> None:
    """Runs a coroutine to its end, also from within a running loop (a notebook): then in a thread of its own."""

    async def start() -> None:
        await main()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    failures: list[BaseException] = []

    def target() -> None:
        try:
            asyncio.run(start())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=target, name="evaluand")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


class _Worker:
    """One thread's present call, for the watch that ends calls which take too long."""

    __slots__ = ("abandoned", "clock", "lock", "started", "unit")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.unit: Any = None
        self.started = self.clock = 0
        self.abandoned = False


class _ThreadMap:
    """Threads that share one iterator.

    A thread cannot be stopped from outside: one whose call takes too long is left behind as a daemon, its outcome
    ignored, and replaced.
    """

    def __init__(
        self, units: Iterator[Any], call: Callable[[Any], Any], done: Callable[..., None], policy: Policy
    ) -> None:
        self._units, self._call, self._done, self._policy = units, call, done, policy
        self._taking = threading.Lock()
        self._handing = threading.Lock()
        self._ended = threading.Condition()
        self._living = 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._workers: list[_Worker] = []

    def run(self) -> None:
        for _ in range(self._policy.concurrency):
            self._start()
        try:
            self._wait()
        except KeyboardInterrupt:
            self._stop.set()
            self._wait()  # what is in flight ends and is handed over; a second Ctrl-C does not wait
            raise
        finally:
            self._stop.set()
        if self._failure:
            raise self._failure

    def _start(self) -> None:
        worker = _Worker()
        self._workers.append(worker)
        with self._ended:
            self._living += 1
        threading.Thread(target=self._work, args=(worker,), name="evaluand", daemon=True).start()

    def _wait(self) -> None:
        while True:
            with self._ended:
                if self._living == 0:
                    return
                self._ended.wait(_TICK if self._policy.timeout else 1.0)
                if self._living == 0:
                    return
            if self._failure and self._policy.abort_on_error:
                return
            if self._policy.timeout:
                self._leave_behind(int(self._policy.timeout * 1e9))

    def _leave_behind(self, limit: int) -> None:
        for worker in list(self._workers):
            with worker.lock:
                unit, late = worker.unit, time.perf_counter_ns() - worker.clock
                if unit is None or late < limit:
                    continue
                worker.abandoned = True
            self._workers.remove(worker)
            self._hand(unit, Outcome(None, _too_long(self._policy), 1, worker.started, late))
            self._start()
            with self._ended:
                self._living -= 1

    def _work(self, worker: _Worker) -> None:
        try:
            while not self._stop.is_set():
                with self._taking:
                    unit = next(self._units, None)
                if unit is None:
                    break
                outcome = self._attempts(unit, worker)
                if outcome is None:
                    return
                self._hand(unit, outcome)
        except BaseException as error:
            self._fail(error)
        with worker.lock:
            if worker.abandoned:
                return
        with self._ended:
            self._living -= 1
            self._ended.notify_all()

    def _attempts(self, unit: Any, worker: _Worker) -> Outcome | None:
        """The outcome, or None when the watch has already given one."""
        policy, started, clock, attempts = self._policy, time.time_ns(), time.perf_counter_ns(), 0
        while True:
            attempts += 1
            value, error = None, None
            with worker.lock:
                worker.unit, worker.started, worker.clock = unit, started, time.perf_counter_ns()
            try:
                value = self._call(unit)
            except (Exception, SystemExit) as raised:
                error = raised
            with worker.lock:
                if worker.abandoned:
                    return None
                worker.unit = None
            if error is None or not policy.tries_again(error, attempts) or self._stop.wait(policy.pause(attempts)):
                return Outcome(value, error, attempts, started, time.perf_counter_ns() - clock)

    def _hand(self, unit: Any, outcome: Outcome) -> None:
        with self._handing:
            if self._failure and self._policy.abort_on_error:
                return
            self._done(unit, outcome)
            if outcome.error is not None and self._policy.abort_on_error:
                self._fail(_aborted(unit, outcome.error))

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop.set()
        with self._ended:
            self._ended.notify_all()


def _too_long(policy: Policy) -> TaskTimeout:
    return TaskTimeout(f"took longer than {policy.timeout:g} s", code="timeout")


def _aborted(unit: Any, error: BaseException) -> Aborted:
    stopped = Aborted(f"{unit}: {type(error).__name__}: {error}; stopped at the first failure, as asked")
    stopped.__cause__ = error
    return stopped
