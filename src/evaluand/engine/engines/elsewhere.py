"""Calls in other processes, of this machine or of a cluster: what an engine does for them in this one."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic

from evaluand.core.errors import TaskError
from evaluand.engine.engine import Keep, Recipe, U
from evaluand.engine.interrupts import DelayedInterrupts
from evaluand.engine.outcome import Outcome, abort_error
from evaluand.engine.policy import Policy


class WorkerDied(TaskError):
    """The process that made the call ended before the call did."""


class Job:
    """A unit that is to be done elsewhere, or is being done."""

    __slots__ = ("attempts", "began", "started", "unit")

    def __init__(self, unit: Any) -> None:
        self.unit = unit
        self.attempts = 0
        self.started = self.began = 0  # the first attempt, since the epoch and by the monotonic clock

    def begin(self) -> None:
        """Notes the start of an attempt."""
        if not self.started:
            self.started, self.began = time.time_ns(), time.perf_counter_ns()


class CallsElsewhere(ABC, Generic[U]):
    """The calls of some units in other processes; Ctrl-C waits while an answer and its line could be lost."""

    def __init__(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        assert recipe.wire is not None
        self._units, self._recipe, self._wire, self._keep = units, recipe, recipe.wire, keep
        self._policy = policy
        self._failure: BaseException | None = None
        self._interrupts = DelayedInterrupts()

    def run(self) -> None:
        """Process all units.

        Raises:
            Aborted: the policy stops at the first failure, and there was one.
            EngineError: workers cannot make the calls.
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
            self._policy.report_finishing(self._n_in_flight())
            self._work()  # finishes the calls in flight; a second Ctrl-C does not wait

    def _next_unit(self) -> U | None:
        """The next unit; None if there is none, or none may begin any more."""
        try:
            return next(self._units, None) if self._failure is None else None
        except BaseException as error:
            self._stop(error)
            return None

    @abstractmethod
    def _work(self) -> None:
        """Makes calls until nothing is left to do or in flight."""

    @abstractmethod
    def _stop(self, reason: BaseException) -> None:
        """Lets calls in flight end, and begins no others."""

    @abstractmethod
    def _end(self) -> None:
        """Ends the workers, whatever they do."""

    @abstractmethod
    def _n_in_flight(self) -> int:
        """How many calls have begun and not ended."""

    def _fail(self, job: Job, error: TaskError) -> None:
        """Keeps the line of a unit whose process has ended, or took too long."""
        outcome = Outcome(None, error, job.attempts, job.started, time.perf_counter_ns() - job.began)
        self._keep([(job.unit, *self._recipe.line(job.unit, outcome), job.attempts, "")])
        if self._policy.stops_at(error):
            raise abort_error(job.unit, error)
