"""Calls that are waited for only so long.

A thread cannot be stopped from outside. So such a call is made in a thread of its own, which is left behind where it
takes too long, and used again where it does not: what a client keeps for each thread, such as a connection, is kept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")


class Overdue(Exception):
    """A call took longer than it was waited for."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """What a call gives, which is made in another thread with the context of this one.

    Raises:
        Overdue: it took longer; it goes on, and nobody learns what it gives.
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
    """A thread that makes one call after the other.

    Bare locks hand calls over and back, which takes a third of the time that conditions take.
    """

    outcome: tuple[Any, BaseException | None]

    def __init__(self) -> None:
        self._given, self._done = threading.Lock(), threading.Lock()
        self._given.acquire()
        self._done.acquire()
        self._call: Callable[[], Any] | None = None
        self._is_left = False
        threading.Thread(target=self._work, name="evaluand call", daemon=True).start()

    def make(self, call: Callable[[], Any], seconds: float) -> bool:
        """Whether the call has ended in time."""
        self._call = call
        self._given.release()
        return self._done.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))

    def leave(self) -> None:
        """Lets it end after its present call."""
        self._is_left = True
        if self._done.acquire(blocking=False):  # it just has, and waits for the next
            self._call = None
            self._given.release()

    def _work(self) -> None:
        while self._given.acquire() and (call := self._call) is not None:
            try:
                self.outcome = call(), None
            except BaseException as error:  # whatever it raises is for who waits
                self.outcome = None, error
            self._call = call = None  # or it would be held until the next
            self._done.release()
            if self._is_left:
                return


_idle: Final[list[_Thread]] = []
os.register_at_fork(after_in_child=_idle.clear)  # a forked process has none of these threads
