"""Calls of plain functions: threads that share one iterator."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from evaluand.engine.event_loop import waits_for_nested_work
from evaluand.engine.outcome import Call, Done, Outcome, abort_error
from evaluand.engine.policy import Policy, too_long
from evaluand.engine.repeats import current_caller

_TICK = 0.05
_QUICK: Final = 100_000  # nanoseconds: threads that share calls as quick as this only wait for the interpreter
_LEAD: Final = 20_000_000  # nanoseconds that one thread may lose to slow calls before others join it
_NOT_YET: Final = 1 << 62
"""The value of the clock of an attempt that has not started yet."""


class ThreadMap:
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
            n_missing = self._policy.calls_at_once - self._living if self._leader else 0
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
                worker.started, worker.began = time.time_ns(), time.perf_counter_ns()
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
                self._fail(abort_error(unit, outcome.error))

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop.set()
        with self._ended:
            self._ended.notify_all()


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
