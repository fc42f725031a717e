"""Calls of coroutine functions: worker loops in one event loop."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final

from evaluand.engine.event_loop import (
    MOST_FOREIGN,
    MOST_FOREIGN_OF_UNIT,
    close_idle_connections,
    is_foreign_connection,
)
from evaluand.engine.garbage import calls_in_flight
from evaluand.engine.outcome import Call, Done, Outcome, abort_error
from evaluand.engine.policy import Policy, too_long
from evaluand.engine.repeats import current_caller

_LONGEST_TURN: Final = 50_000_000  # nanoseconds between two pauses in which other coroutines run
TURN: Final = 1_000_000
"""Nanoseconds in which outcomes are gathered, at most until the loop would wait; and of a call, until it is quick."""


class CoroutineMap:
    """Worker loops that share one iterator, without a task object per unit."""

    def __init__(
        self, units: Iterator[Any], call: Call[Any], done: Done[Any], policy: Policy, end_turn: Callable[[], None]
    ) -> None:
        self._units, self._call, self._done, self._policy, self._end = units, call, done, policy, end_turn
        self._loop: asyncio.AbstractEventLoop
        self._turn = 0  # when the last turn ended, by the clock of calls
        self._error: BaseException | None = None  # of the end of a turn
        self._is_in_turn = False  # whether outcomes were passed on since
        self._owes = False  # whether one of these took longer than a turn: no call begins before it is written
        self._stopping = False
        self._foreign = 0
        self._rested = time.perf_counter_ns()

    async def run(self) -> None:
        self._main, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        self._context = copy_context()  # that of a call has what is observed of it
        workers = [asyncio.ensure_future(self._work()) for _ in range(self._policy.calls_at_once)]
        self._all = asyncio.gather(*workers)
        try:
            with calls_in_flight(len(workers)):
                await self._all
        except asyncio.CancelledError:
            if self._error is None:
                raise
        finally:
            self._stopping = True
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            self._end_turn()
        if self._error is not None:
            raise self._error

    async def _work(self) -> None:
        policy, limit = self._policy, self._policy.rate_limit
        worker = _Worker(policy, self._loop)
        current_caller.set(worker)
        attempt = partial(self._timed, worker) if policy.timeout else self._call
        while True:
            if time.perf_counter_ns() - self._rested > _LONGEST_TURN:  # calls that wait for nothing block the loop
                await asyncio.sleep(0)
                self._rested = time.perf_counter_ns()
            while self._owes:
                await asyncio.sleep(0)
            if (unit := next(self._units, None)) is None:
                return
            if isinstance(unit, asyncio.Future):  # of the time when there are more
                await unit
                continue
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
            ended = time.perf_counter_ns()
            self._hand(unit, Outcome(value, error, worker.attempts, started, ended - clock), ended, ended - clock)

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

    def _hand(self, unit: Any, outcome: Outcome, now: int, took: int) -> None:
        try:
            self._done(unit, outcome)
            if now - self._turn > TURN:
                self._end_turn()
            elif not self._is_in_turn:
                self._is_in_turn = True
                self._loop.call_soon(self._end_turn_of_loop, context=self._context)
            self._owes = self._is_in_turn and (self._owes or took > TURN)
        except BaseException:
            self._stopping = True
            raise
        if outcome.error is not None and self._policy.stops_at(outcome.error):
            self._stopping = True
            raise abort_error(unit, outcome.error)

    def _end_turn(self) -> None:
        self._is_in_turn = self._owes = False
        self._end()
        self._turn = time.perf_counter_ns()

    def _end_turn_of_loop(self) -> None:
        """As `_end_turn`, outside of the workers: an error ends them."""
        try:
            self._end_turn()
        except BaseException as error:
            self._error, self._stopping = error, True
            self._all.cancel()

    async def _timed(self, worker: _Worker, unit: Any) -> Any:
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


class _Worker:
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
