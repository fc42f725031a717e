"""Engines make calls: how many at once, with which time limit, with how many retries.

An engine maps a call over units and passes each outcome to `done` as it comes. It knows nothing about tables or stores.
`LocalEngine` runs coroutine functions in the event loop of this process, and plain functions in threads.
"""

import asyncio
import inspect
import logging
import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from evaluand.core.errors import SpecError, TaskError, TaskTimeout, TransientError, storable_message
from evaluand.core.redaction import redact
from evaluand.core.system import require_forks
from evaluand.engine.budget import Budget, BudgetReached
from evaluand.engine.event_loop import (
    MOST_FOREIGN,
    MOST_FOREIGN_OF_UNIT,
    close_idle_connections,
    is_foreign_connection,
    run_coroutine,
    waits_for_nested_work,
)
from evaluand.engine.garbage import calls_in_flight
from evaluand.engine.rate_limit import RateLimit
from evaluand.engine.repeats import current_caller

U = TypeVar("U")
T = TypeVar("T")

logger = logging.getLogger(__name__)

TRANSIENT = (
    "TransientError",
    "ConnectionError",
    "RateLimitError",  # OpenAI and Anthropic
    "APIConnectionError",
    "APITimeoutError",
    "InternalServerError",
    "ConnectError",  # httpx
    "ConnectTimeout",
    "ReadError",
    "ReadTimeout",
    "WriteError",
    "WriteTimeout",
    "PoolTimeout",
    "RemoteProtocolError",
)
"""Names of the error classes that are worth a retry: those of evaluand, of Python and of common clients."""
MAX_BACKOFF = 60.0
_TICK = 0.05
_QUICK: Final = 100_000  # nanoseconds: threads that share calls as quick as this only wait for the interpreter
_LEAD: Final = 20_000_000  # nanoseconds that one thread may lose to slow calls before others join it
_JITTER: Final = 0.25
_draw = random.Random()  # a generator of this module: calls that draw from the shared one cannot be reused
_LONGEST_TURN: Final = 50_000_000  # nanoseconds between two pauses in which other coroutines run
_LEAST: Final[Sequence[tuple[str, int, Any]]] = (
    ("concurrency", 1, int),
    ("retries", 0, int),
    ("same_failures", 0, int),
    ("backoff", 0, int | float),
    ("backoff_growth", 1, int | float),
)


class Outcome(NamedTuple):
    """The outcome of one unit.

    Attributes:
        value: what the call returned, or None.
        error: what the call raised, or None.
        started: the start of the first attempt, nanoseconds since the epoch; None if unknown.
        duration: nanoseconds from there to the end of the last attempt; None if unknown.
    """

    value: Any
    error: BaseException | None
    attempts: int
    started: int | None
    duration: int | None


class Prices(Protocol):
    """A table of prices."""

    def find(self, url: str, name: str) -> Any:
        """The price of a model at an address; None if it is unknown."""


@dataclass(frozen=True)
class Policy:
    """How calls are made.

    Attributes:
        concurrency: calls in flight at once; by default 16, or with `processes` the number of CPUs. One thread alone
            calls plain functions while they return at once.
        timeout: seconds that one attempt may take, or None.
        retries: further attempts after a transient error. None means the default of the task: 4 for services and chat
            models, else 0. If a call makes several requests to a chat model, only the failed request is repeated, and
            each request up to this many times. Each repeat counts as an attempt of the call.
        backoff: seconds before the first retry. Each pause is extended by a random part of up to a quarter, so that
            calls which failed together are not repeated together.
        backoff_growth: factor between one pause and the next, up to a minute (or up to `backoff`, if that is longer);
            with 1 all pauses are equal.
        transient: names of the error classes (or of their bases) worth a retry; by default those of connections, time
            limits, 429 and 5xx of Python, httpx, OpenAI and Anthropic.
        abort_on_error: the first failure stops the run.
        same_failures: the run stops if its first so many calls all failed with the same error; these calls count as not
            made. 0 never stops it. The judge of matches stops in the same way; the scorers of an evaluation do not.
        total_timeout: seconds after which no further call starts; calls in flight end, and the work stays open. Without
            `timeout`, this is also the time limit of an attempt.
        rate: how many attempts may start in a period: a `RateLimit`, which several policies may share, or a text such
            as `60/min`, `10/s` or `5000/h`.
        budget: what all requests together may cost: a `Budget`, which several policies may share, or a text such as
            `5 USD`. It counts the requests of evaluand's models and providers and what `report_usage` reports,
            including those of earlier attempts at the same work. Where it is reached, the work stays open, and can be
            continued with a higher budget.
        prices: a `PriceTable` for models without their own price. By default the table in the file that EVALUAND_PRICES
            names, else the one that comes with evaluand.
        processes: each call in flight runs in a separate process, forked from this one: for tasks that compute. A task
            that changes a variable changes it in the process of the call only.
        finishing: called after Ctrl-C with the number of calls in flight that the run still waits for. It does not
            wait for coroutines, which end at once.
        sharing: called once with a sentence where another process works on the same calls, or may do so.
    """

    concurrency: int = None  # type: ignore[assignment] # a number from __post_init__ on
    timeout: float | None = None
    retries: int | None = None
    backoff: float = 1.0
    backoff_growth: float = 2.0
    transient: tuple[str, ...] = TRANSIENT
    abort_on_error: bool = False
    same_failures: int = 20
    rate: RateLimit | str | None = None
    budget: Budget | str | None = None
    prices: Prices | None = None
    processes: bool = False
    total_timeout: float | None = None
    finishing: Callable[[int], None] | None = field(default=None, repr=False, compare=False)
    sharing: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.processes, bool):
            raise SpecError(f"processes is {self.processes!r}; give True or False, and their number as concurrency")
        if self.processes:
            require_forks("calls in processes", "leave out `processes`, so that calls are made in threads")
        if self.concurrency is None:
            object.__setattr__(self, "concurrency", (os.cpu_count() or 1) if self.processes else 16)
        for name, least, kind in _LEAST:
            value = getattr(self, name)
            if value is None and name == "retries":
                continue
            if not isinstance(value, kind) or isinstance(value, bool) or not least <= value < math.inf:
                number = "a number" if name.startswith("backoff") else "an integer"
                raise SpecError(f"{name} is {value!r}; give {number} of at least {least}")
        for name in ("timeout", "total_timeout"):
            seconds: Any = getattr(self, name)
            if seconds is None:
                continue
            if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
                raise SpecError(f"{name} is {seconds!r}; give seconds above 0, or leave it out for none")
            if seconds > threading.TIMEOUT_MAX:
                object.__setattr__(self, name, None)
        if isinstance(self.transient, str):
            raise SpecError(f"transient is the text {self.transient!r}; give a tuple of names of error classes")
        if isinstance(self.rate, str):
            object.__setattr__(self, "rate", RateLimit.parse(self.rate))
        elif self.rate is not None and not isinstance(self.rate, RateLimit):
            raise SpecError(f"rate is {self.rate!r}; give a RateLimit, or a text such as 10/s, 60/min or 5000/h")
        if self.budget is not None:
            object.__setattr__(self, "budget", Budget.read(self.budget))
            if self.processes:
                raise SpecError("a budget cannot stop the requests of other processes; leave out budget or processes")

    @property
    def rate_limit(self) -> RateLimit | None:
        """The rate limit that attempts wait for before they start."""
        assert not isinstance(self.rate, str)
        return self.rate

    @property
    def shared_budget(self) -> Budget | None:
        """The budget, as an object."""
        assert not isinstance(self.budget, str)
        return self.budget

    def retries_after(self, error: BaseException, attempts: int) -> bool:
        """Whether a failed attempt is followed by another."""
        return attempts <= (self.retries or 0) and any(base.__name__ in self.transient for base in type(error).__mro__)

    def report_finishing(self, calls: int) -> None:
        """Calls `finishing` if the run still waits for calls in flight."""
        if calls and self.finishing:
            self.finishing(calls)

    def pause(self, attempts: int, error: BaseException | None = None) -> float:
        """The least number of seconds to wait after so many attempts, the last of which failed with `error`."""
        try:
            grown = self.backoff * self.backoff_growth ** (attempts - 1)
        except OverflowError:
            grown = math.inf
        pause = float(min(grown, max(self.backoff, MAX_BACKOFF)))
        return max(pause, (isinstance(error, TransientError) and error.after) or 0.0)

    def draw_pause(self, attempts: int, error: BaseException | None = None, message: str = "") -> float:
        """The pause after so many attempts, up to a quarter longer.

        Args:
            message: the text to log; by default that of the error, without credentials.
        """
        pause = self.pause(attempts, error) * (1.0 + _JITTER * _draw.random())
        reason = redact(message or str(error)) if error else "it took too long"
        logger.info("attempt %d failed: %s; the next follows in %.3g s", attempts, reason, pause)
        return pause

    def stops_at(self, error: BaseException) -> bool:
        """Whether the error of a unit stops the run."""
        if isinstance(error, BudgetReached):  # the work ends without this call, and stays open
            return False
        return self.abort_on_error or (isinstance(error, TaskError) and error.stops)


@dataclass(frozen=True)
class UnitCodec(Generic[U]):
    """How a unit is sent to another process.

    Args:
        pack: unit → the bytes that a child process needs.
        unpack: bytes → unit, in the child.
        close: ends what the calls have started, in the child.
    """

    pack: Callable[[U], bytes]
    unpack: Callable[[bytes], U]
    close: Callable[[], None] = lambda: None


Call = Callable[[U], Any]
"""Plain or async: unit → value."""

Done = Callable[[U, Outcome], None]


class Engine(Protocol):
    """Maps a call over units."""

    def map(self, units: Iterable[U], call: Call[U], done: Done[U], policy: Policy) -> None:
        """Calls each unit and passes on its outcome; returns when all are done.

        Failures are outcomes. `done` may be called from any thread, one call at a time.

        Raises:
            Aborted: the policy stops at the first failure, and there was one.
            KeyboardInterrupt: the user stopped the run; calls in flight that ended in time were passed on.
        """


class Aborted(TaskError):
    """The run stopped at a failure, as the policy asks."""


class LocalEngine:
    """Runs calls in this process."""

    def map(self, units: Iterable[U], call: Call[U], done: Done[U], policy: Policy) -> None:
        if inspect.iscoroutinefunction(call):
            run_coroutine(_AsyncMap(iter(units), call, done, policy).run())
        else:
            _ThreadMap(iter(units), call, done, policy).run()


class InlineEngine:
    """Makes one call after another in the caller's thread: for calls that neither wait nor cost."""

    def map(self, units: Iterable[U], call: Call[U], done: Done[U], policy: Policy) -> None:
        for unit in units:
            try:
                outcome = Outcome(call(unit), None, 1, 0, 0)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                outcome = Outcome(None, error, 1, 0, 0)
            done(unit, outcome)
            if outcome.error is not None and policy.stops_at(outcome.error):
                raise _aborted(unit, outcome.error)


class _AsyncWorker:
    """The current call of one coroutine: its attempts and its time limit."""

    __slots__ = ("_began", "_limit", "_loop", "_policy", "abandoned", "attempts")

    def __init__(self, policy: Policy, loop: asyncio.AbstractEventLoop) -> None:
        self._policy, self._loop = policy, loop
        self._limit: asyncio.Timeout | None = None
        self._began = 0.0  # the current attempt, by the monotonic clock
        self.attempts = 0
        self.abandoned = False  # never: a coroutine that takes too long is cancelled

    def start_clock(self) -> asyncio.Timeout:
        """The time limit of an attempt that starts now."""
        self._limit, self._began = asyncio.timeout(self._policy.timeout), time.perf_counter()
        return self._limit

    def is_overdue(self) -> bool:
        return time.perf_counter() - self._began > (self._policy.timeout or math.inf)

    def repeats_request(self, error: BaseException, requests: int) -> bool:
        """False: a pause would block the loop, so that the complete call is repeated."""
        return False

    async def repeats_request_async(self, error: BaseException, requests: int) -> bool:
        policy = self._policy
        if asyncio.get_running_loop() is not self._loop or not policy.retries_after(error, requests):
            return False
        self._reschedule(None)
        await asyncio.sleep(policy.draw_pause(requests, error))
        if policy.rate_limit:
            await policy.rate_limit.wait_async()
        self.attempts += 1
        self._began = time.perf_counter()
        self._reschedule(policy.timeout)
        return True

    def _reschedule(self, seconds: float | None) -> None:
        """Ends the current time limit, or begins it anew."""
        if self._limit is not None:
            with suppress(RuntimeError):  # it has passed, or the call has ended without waiting for this request
                self._limit.reschedule(None if seconds is None else self._loop.time() + seconds)


class _AsyncMap:
    """Worker loops that share one iterator, without a task object per unit."""

    def __init__(self, units: Iterator[Any], call: Call[Any], done: Done[Any], policy: Policy) -> None:
        self._units, self._call, self._done, self._policy = units, call, done, policy
        self._stopping = False
        self._foreign = 0
        self._rested = time.perf_counter_ns()

    async def run(self) -> None:
        self._main = asyncio.current_task()
        workers = [asyncio.ensure_future(self._work()) for _ in range(self._policy.concurrency)]
        try:
            with calls_in_flight(len(workers)):
                await asyncio.gather(*workers)
        finally:
            self._stopping = True
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        policy, limit = self._policy, self._policy.rate_limit
        worker = _AsyncWorker(policy, asyncio.get_running_loop())
        current_caller.set(worker)
        attempt = partial(self._timed, worker) if policy.timeout else self._call
        for unit in self._units:
            if time.perf_counter_ns() - self._rested > _LONGEST_TURN:  # calls that wait for nothing block the loop
                await asyncio.sleep(0)
                self._rested = time.perf_counter_ns()
            if limit:
                await limit.wait_async()
            worker.attempts, foreign, started, clock = 1, 0, time.time_ns(), time.perf_counter_ns()
            while True:  # inlined: a coroutine for the attempts would be one more to wake at each step of a call
                try:
                    value, error = await attempt(unit), None
                except BaseException as raised:
                    value, error = None, self._failure(raised)
                if error is None:
                    break
                if foreign < MOST_FOREIGN_OF_UNIT and self._is_of_other_loop(error):
                    foreign += 1
                    await close_idle_connections(error)
                elif policy.retries_after(error, worker.attempts):
                    await asyncio.sleep(policy.draw_pause(worker.attempts, error))
                else:
                    break
                if limit:
                    await limit.wait_async()
                worker.attempts += 1
            if self._stopping:
                return
            self._hand(unit, Outcome(value, error, worker.attempts, started, time.perf_counter_ns() - clock))

    def _is_of_other_loop(self, error: BaseException) -> bool:
        """Whether a connection of another event loop made a call fail; false after so many that it is no accident."""
        if self._foreign >= MOST_FOREIGN or not is_foreign_connection(error):
            return False
        self._foreign += 1
        return True

    def _failure(self, raised: BaseException) -> BaseException:
        """The failure of one example, SystemExit included; raises again what must end the loop."""
        if isinstance(raised, asyncio.CancelledError):
            if self._stopping or (self._main is not None and self._main.cancelling()):
                raise raised
            _undo_cancellation()
        elif isinstance(raised, KeyboardInterrupt | GeneratorExit):
            raise raised
        return raised

    def _hand(self, unit: Any, outcome: Outcome) -> None:
        try:
            self._done(unit, outcome)
        except BaseException:
            self._stopping = True
            raise
        if outcome.error is not None and self._policy.stops_at(outcome.error):
            self._stopping = True
            raise _aborted(unit, outcome.error)

    async def _timed(self, worker: _AsyncWorker, unit: Any) -> Any:
        limit = worker.start_clock()
        try:
            async with limit:
                value = await self._call(unit)
        except TimeoutError:
            if limit.expired():
                raise too_long(self._policy) from None
            raise
        if limit.expired() or worker.is_overdue():
            raise too_long(self._policy)  # the call ignored its cancellation, or blocked the loop
        return value


def _undo_cancellation() -> None:
    """Undoes the cancellation of the worker loop, when a call cancelled the loop instead of itself."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


_NOT_YET: Final = 1 << 62
"""The value of the clock of an attempt that has not started yet."""


class _Worker:
    """The current call of one thread: its attempts, and whether it was abandoned because it took too long."""

    __slots__ = ("abandoned", "attempts", "began", "clock", "interrupted", "lock", "policy", "started", "stop", "unit")

    def __init__(self, policy: Policy, stop: threading.Event) -> None:
        self.policy, self.stop = policy, stop
        self.lock = threading.Lock()
        self.unit: Any = None  # while it is being called
        self.attempts = 0
        self.started = 0  # the first attempt, nanoseconds since the epoch
        self.began = 0  # the first attempt, by the monotonic clock
        self.clock = 0  # the current attempt
        self.abandoned = False
        self.interrupted = False  # before a request could be repeated

    def start(self) -> None:
        self.started, self.began = time.time_ns(), time.perf_counter_ns()

    def is_held_up(self) -> bool:
        """Whether the call takes long, or waits for a request to be repeated."""
        return self.unit is not None and not 0 <= time.perf_counter_ns() - self.clock < _LEAD

    def outcome(self, value: Any, error: BaseException | None) -> Outcome:
        return Outcome(value, error, self.attempts, self.started, time.perf_counter_ns() - self.began)

    def repeats_request(self, error: BaseException, requests: int) -> bool:
        """As `Caller` says; a run that is stopped meanwhile repeats nothing."""
        policy = self.policy
        if not policy.retries_after(error, requests):
            return False
        pause = policy.draw_pause(requests, error)
        self._stop_clock()
        if self.stop.wait(pause) or not (policy.rate_limit is None or policy.rate_limit.wait(self.stop)):
            self.interrupted = True
            return False
        return self._count_repeat()

    async def repeats_request_async(self, error: BaseException, requests: int) -> bool:
        """As `repeats_request`, for a request that this thread waits for."""
        policy = self.policy
        if not policy.retries_after(error, requests):
            return False
        end = time.monotonic() + policy.draw_pause(requests, error)
        self._stop_clock()
        while not self.stop.is_set() and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _TICK))
        if self.stop.is_set():
            self.interrupted = True
            return False
        if policy.rate_limit:
            await policy.rate_limit.wait_async()
        return self._count_repeat()

    def _stop_clock(self) -> None:
        with self.lock:
            self.clock = _NOT_YET

    def _count_repeat(self) -> bool:
        with self.lock:
            self.attempts += 1
            self.clock = time.perf_counter_ns()
            return not self.abandoned


class _ThreadMap:
    """Threads that share one iterator.

    One thread works alone while calls are quick: threads that pass the interpreter to each other at every call take
    twice as long. Others join it at a call that waits, or at several slow ones, and end once calls are quick again.

    A thread cannot be stopped from outside: a thread whose call takes too long is abandoned as a daemon, its outcome
    is ignored, and another thread replaces it.
    """

    def __init__(self, units: Iterator[Any], call: Call[Any], done: Done[Any], policy: Policy) -> None:
        self._units, self._call, self._done, self._policy = units, call, done, policy
        self._taking = threading.Lock()
        self._handing = threading.Lock()
        self._ended = threading.Condition()
        self._living = 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._workers: list[_Worker] = []
        self._leader: _Worker | None = None  # the thread that works alone
        self._lost = 0  # nanoseconds that slow calls took, less what quick ones have saved since

    @waits_for_nested_work
    def run(self) -> None:
        try:
            with self._ended:
                self._leader = self._start()
            self._wait()
        except KeyboardInterrupt:
            self._stop.set()
            self._policy.report_finishing(sum(worker.unit is not None for worker in self._workers))
            self._wait()  # calls in flight end and are passed on; a second Ctrl-C does not wait
            raise
        finally:
            self._stop.set()
        if self._failure:
            raise self._failure

    def _start(self, unit: Any = None, before: _Worker | None = None) -> _Worker:
        """Starts a thread; with `before`, for a further attempt at the unit of an abandoned thread."""
        worker = _Worker(self._policy, self._stop)
        if before is not None:
            worker.attempts, worker.started, worker.began = before.attempts, before.started, before.began
        self._workers.append(worker)
        with self._ended:
            self._living += 1
        threading.Thread(target=self._work, args=(worker, unit), name="evaluand", daemon=True).start()
        return worker

    def _start_others(self) -> None:
        with self._ended:
            n_missing = self._policy.concurrency - self._living if self._leader else 0
            self._leader = None
        for _ in range(n_missing):
            self._start()

    def _wait(self) -> None:
        while True:
            with self._ended:
                if self._living == 0:
                    return
                self._ended.wait(_LEAD / 1e9 if self._leader else _TICK if self._policy.timeout else 1.0)
                if self._living == 0:
                    return
            if (leader := self._leader) and leader.is_held_up():
                self._start_others()
            if self._failure and self._policy.abort_on_error:
                return
            if self._policy.timeout:
                self._abandon_overdue(int(self._policy.timeout * 1e9))

    def _abandon_overdue(self, limit: int) -> None:
        for worker in list(self._workers):
            with worker.lock:
                unit = worker.unit
                if unit is None or time.perf_counter_ns() - worker.clock < limit:
                    continue
                worker.abandoned = True
            self._workers.remove(worker)
            with self._ended:
                self._living -= 1
            error = too_long(self._policy)
            if self._policy.retries_after(error, worker.attempts):
                self._start(unit, worker)
            else:
                self._hand(unit, worker.outcome(None, error))
                self._start()

    def _work(self, worker: _Worker, unit: Any) -> None:
        current_caller.set(worker)
        try:
            if unit is None or self._finish(unit, worker, pause=self._policy.draw_pause(worker.attempts)):
                while not self._stop.is_set() and (unit := self._take()) is not None:
                    worker.attempts = 0
                    if not self._finish(unit, worker) or self._is_superfluous(worker):
                        return
        except BaseException as error:
            self._fail(error)
        if not worker.abandoned:
            with self._ended:
                self._living -= 1
                self._ended.notify_all()

    def _is_superfluous(self, worker: _Worker) -> bool:
        """Whether this thread ends because another works alone; the first to find that calls are quick becomes that."""
        if self._lost or self._leader is worker:
            return False
        with self._ended:
            self._leader = self._leader or worker
            if self._leader is worker:
                return False
            self._workers.remove(worker)
            self._living -= 1
            return True

    def _take(self) -> Any:
        with self._taking:
            return next(self._units, None)

    def _finish(self, unit: Any, worker: _Worker, pause: float = 0.0) -> bool:
        """Calls a unit until it is done; false if this thread was abandoned."""
        policy = self._policy
        while not (pause and self._stop.wait(pause)) and (
            policy.rate_limit is None or policy.rate_limit.wait(self._stop)
        ):
            if not worker.attempts:
                worker.start()
            with worker.lock:
                worker.attempts += 1
                worker.unit, worker.clock = unit, time.perf_counter_ns()
            value, error = None, None
            try:
                value = self._call(unit)
            except KeyboardInterrupt:
                raise
            except BaseException as raised:  # whatever a task raises, SystemExit too, costs one example
                error = raised
            self._weigh(time.perf_counter_ns() - worker.clock)
            with worker.lock:
                if worker.abandoned:
                    return False
                worker.unit = None
            if worker.interrupted:  # whatever the task returned after the failed request, the unit stays open
                return True
            if error is None or not policy.retries_after(error, worker.attempts):
                self._hand(unit, worker.outcome(value, error))
                return True
            pause = policy.draw_pause(worker.attempts, error)
            self._start_others()
        return True

    def _weigh(self, duration: int) -> None:
        """Ends the lead of a thread once slow calls have cost more than quick ones have saved."""
        self._lost = min(max(0, self._lost + duration - _QUICK), _LEAD)
        if self._leader and self._lost == _LEAD:
            self._start_others()

    def _hand(self, unit: Any, outcome: Outcome) -> None:
        with self._handing:
            if self._failure and self._policy.abort_on_error:
                return
            self._done(unit, outcome)
            if outcome.error is not None and self._policy.stops_at(outcome.error):
                self._fail(_aborted(unit, outcome.error))

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop.set()
        with self._ended:
            self._ended.notify_all()


def too_long(policy: Policy) -> TaskTimeout:
    """The error of a call that took longer than the policy allows."""
    return TaskTimeout(f"took longer than {policy.timeout:g} s", code="timeout")


def stop_message(unit: Any, failure: str) -> str:
    """The message for a failure that stops the run; it need not be the first failure."""
    return f"{unit}: {failure}; this stops the run"


def _aborted(unit: Any, error: BaseException) -> Aborted:
    stopped = Aborted(stop_message(unit, f"{type(error).__name__}: {storable_message(error)}"))
    stopped.__cause__ = error
    return stopped
