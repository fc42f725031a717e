"""Calls in this process."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic

from evaluand.engine.coroutines import TURN, CoroutineMap
from evaluand.engine.engine import Keep, Made, Recipe, U, nothing
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.outcome import Call, Done, Outcome, abort_error
from evaluand.engine.policy import Policy
from evaluand.engine.threads import ThreadMap


class LocalEngine:
    """Makes calls in this process: of coroutine functions in its event loop, of plain functions in threads."""

    def check(self, policy: Policy) -> None:
        """Any policy will do."""

    @property
    def facts(self) -> Mapping[str, Any]:
        return {}

    def map_lines(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        lines = _Lines(recipe, keep)
        # while a thread waits, nobody writes what others have finished
        done = lines.add if inspect.iscoroutinefunction(recipe.call) else lines.keep
        make_calls(units, recipe.call, done, policy, lines.write)


class InlineEngine(LocalEngine):
    """Makes one call after another in the caller's thread: for calls that neither wait nor cost."""

    def map_lines(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        lines = _Lines(recipe, keep)
        make_calls_inline(units, recipe.call, lines.add, policy, lines.write)


class _Lines(Generic[U]):
    """The lines of the units that were finished since the last were written."""

    def __init__(self, recipe: Recipe[U], keep: Keep[U]) -> None:
        self._line, self._keep = recipe.line, keep
        self._made: list[Made[U]] = []

    def add(self, unit: U, outcome: Outcome) -> None:
        self._made.append((unit, *self._line(unit, outcome), outcome.attempts, ""))

    def keep(self, unit: U, outcome: Outcome) -> None:
        """Writes the lines of a unit at once."""
        self._keep([(unit, *self._line(unit, outcome), outcome.attempts, "")])

    def write(self) -> None:
        if made := self._made:
            self._made = []
            self._keep(made)


def make_calls(
    units: Iterator[U], call: Call[U], done: Done[U], policy: Policy, end_turn: Callable[[], None] = nothing
) -> None:
    """Calls each unit and passes on its outcome; returns when all are done. Raises as `Engine.map_lines` does.

    Args:
        end_turn: called when outcomes of coroutines were passed on, before anything is waited for and after a
            millisecond.
    """
    if inspect.iscoroutinefunction(call):
        run_coroutine(CoroutineMap(units, call, done, policy, end_turn).run())
    else:
        ThreadMap(units, call, done, policy).run()


def make_calls_inline(
    units: Iterator[U], call: Call[U], done: Done[U], policy: Policy, end_turn: Callable[[], None] = nothing
) -> None:
    """As `make_calls`, in the caller's thread."""
    turn = 0
    try:
        for unit in units:
            try:
                outcome = Outcome(call(unit), None, 1, 0, 0)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                outcome = Outcome(None, error, 1, 0, 0)
            done(unit, outcome)
            if time.perf_counter_ns() - turn > TURN:
                end_turn()
                turn = time.perf_counter_ns()
            if outcome.error is not None and policy.stops_at(outcome.error):
                raise abort_error(unit, outcome.error)
    finally:
        end_turn()
