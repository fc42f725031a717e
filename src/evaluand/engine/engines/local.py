"""Calls in this process."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from evaluand.engine.coroutines import CoroutineMap
from evaluand.engine.engine import Keep, Recipe, U
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
        make_calls(units, recipe.call, _passing_on(recipe, keep), policy)


class InlineEngine(LocalEngine):
    """Makes one call after another in the caller's thread: for calls that neither wait nor cost."""

    def map_lines(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        make_calls_inline(units, recipe.call, _passing_on(recipe, keep), policy)


def make_calls(units: Iterator[U], call: Call[U], done: Done[U], policy: Policy) -> None:
    """Calls each unit and passes on its outcome; returns when all are done. Raises as `Engine.map_lines` does."""
    if inspect.iscoroutinefunction(call):
        run_coroutine(CoroutineMap(units, call, done, policy).run())
    else:
        ThreadMap(units, call, done, policy).run()


def make_calls_inline(units: Iterator[U], call: Call[U], done: Done[U], policy: Policy) -> None:
    """As `make_calls`, in the caller's thread."""
    for unit in units:
        try:
            outcome = Outcome(call(unit), None, 1, 0, 0)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            outcome = Outcome(None, error, 1, 0, 0)
        done(unit, outcome)
        if outcome.error is not None and policy.stops_at(outcome.error):
            raise abort_error(unit, outcome.error)


def _passing_on(recipe: Recipe[U], keep: Keep[U]) -> Done[U]:
    return lambda unit, outcome: keep(unit, *recipe.line(unit, outcome), outcome.attempts)
