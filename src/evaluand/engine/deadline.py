"""Calls with a time limit.

A thread cannot be stopped from outside. So the call is made in a separate thread, which is abandoned if the call takes
too long, and used for the next call otherwise: what a client caches per thread, such as a connection, stays useful.
"""

import threading
from collections.abc import Callable
from contextvars import copy_context
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
    context, done = copy_context(), False
    try:
        done = thread.make(lambda: context.run(call), seconds)
    finally:
        if not done:
            thread.leave()
    if not done:
        raise Overdue
    value, error = thread.outcome
    thread.outcome = None, None
    _idle.append(thread)
    if error is not None:
        raise error
    return cast("T", value)


class _Thread:
    """A thread that makes one call after another.

    Bare locks pass calls and outcomes, in a third of the time that conditions take.
    """

    outcome: tuple[Any, BaseException | None]

    def __init__(self) -> None:
        self._ready, self._done = threading.Lock(), threading.Lock()
        self._ready.acquire()
        self._done.acquire()
        self._call: Callable[[], Any] | None = None
        self._is_left = False
        threading.Thread(target=self._work, name="evaluand call", daemon=True).start()

    def make(self, call: Callable[[], Any], seconds: float) -> bool:
        self._call = call
        self._ready.release()
        return self._done.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))

    def leave(self) -> None:
        """Ends the thread after its current call."""
        self._is_left = True
        if self._done.acquire(blocking=False):  # the call has just ended, and the thread waits for the next
            self._call = None
            self._ready.release()

    def _work(self) -> None:
        while self._ready.acquire() and (call := self._call) is not None:
            try:
                self.outcome = call(), None
            except BaseException as error:  # whatever it raises goes to the caller
                self.outcome = None, error
            self._call = call = None  # frees what the call refers to
            self._done.release()
            if self._is_left:
                return


_idle: Final[list[_Thread]] = []
call_after_fork(_idle.clear)  # a forked process has none of these threads
