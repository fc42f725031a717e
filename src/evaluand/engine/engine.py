"""Engines make calls: how many at once, with which time limit, with how many retries.

An engine maps a call over units and passes each outcome to `done` as it comes. It knows nothing about tables or stores.
`LocalEngine` runs coroutine functions in the event loop of this process, and plain functions in threads.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol

from evaluand.engine.coroutines import CoroutineMap
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.outcome import Call, Done, Outcome, U, abort_error
from evaluand.engine.policy import Policy
from evaluand.engine.threads import ThreadMap


class Engine(Protocol):
    """Maps a call over units."""

    def map(self, units: Iterable[U], call: Call[U], done: Done[U], policy: Policy) -> None:
        """Calls each unit and passes on its outcome; returns when all are done.

        Failures are outcomes. `done` may be called from any thread, one call at a time.

        Raises:
            Aborted: the policy stops at the first failure, and there was one.
            KeyboardInterrupt: the user stopped the run; calls in flight that ended in time were passed on.
        """


class LocalEngine:
    """Runs calls in this process."""

    def map(self, units: Iterable[U], call: Call[U], done: Done[U], policy: Policy) -> None:
        if inspect.iscoroutinefunction(call):
            run_coroutine(CoroutineMap(iter(units), call, done, policy).run())
        else:
            ThreadMap(iter(units), call, done, policy).run()


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
                raise abort_error(unit, outcome.error)


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
