"""Calls with a time limit.

A thread cannot be stopped from outside. So the call is made in a separate thread, which is abandoned if the call takes
too long, and used for the next call otherwise: what a client caches per thread, such as a connection, stays useful.
"""

import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar, cast

from evaluand.core.system import call_after_fork

T = TypeVar("T")


class Overdue(Exception):
    """A call took longer than its time limit."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """Makes a call in another thread, with the context of this one, and returns its value.

    Raises:
        Overdue: the call took longer; it goes on, and its outcome is ignored.
        BaseException: whatever the call raised.

    Example:
        >>> within(10, lambda: 2 + 2)
        4
    """
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Thread()
    context, has_ended = copy_context(), False
    thread.calls.put(lambda: context.run(call))
    try:
        value, error = thread.outcomes.get(timeout=min(seconds, threading.TIMEOUT_MAX))
        has_ended = True
    except Empty:
        raise Overdue from None
    finally:
        if not has_ended:
            thread.calls.put(None)  # it ends after this call
    _idle.append(thread)
    if error is not None:
        raise error
    return cast("T", value)


class _Thread:
    """A thread that makes one call after another."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self.outcomes: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        threading.Thread(target=self._work, name="evaluand call", daemon=True).start()

    def _work(self) -> None:
        while (call := self.calls.get()) is not None:
            try:
                outcome: tuple[Any, BaseException | None] = call(), None
            except BaseException as error:  # whatever it raises goes to the caller
                outcome = None, error
            self.outcomes.put(outcome)
            del call, outcome  # frees what they refer to


_idle: Final[list[_Thread]] = []
call_after_fork(_idle.clear)  # a forked process has none of these threads
