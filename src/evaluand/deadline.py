"""Calls that are waited for only so long.

A thread cannot be stopped from outside. So such a call is made in a thread of its own, which is left behind where it
takes too long, and used again where it does not: what a client keeps for each thread, such as a connection, is kept.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from typing import Final, TypeVar

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
    told = thread.start(call)
    try:
        told.exception(seconds)
    except TimeoutError:
        raise Overdue from None
    finally:
        if told.done():
            _idle.append(thread)
        else:
            thread.leave()
    return told.result()


class _Thread:
    """A thread that makes one call after the other."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="evaluand request", daemon=True).start()

    def start(self, call: Callable[[], T]) -> Future[T]:
        told: Future[T] = Future()
        context = copy_context()
        self._calls.put(lambda: context.run(_make, call, told))
        return told

    def leave(self) -> None:
        """Lets it end after its present call."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # or it would be held until the next


def _make(call: Callable[[], T], told: Future[T]) -> None:
    try:
        told.set_result(call())
    except BaseException as error:
        told.set_exception(error)


_idle: Final[list[_Thread]] = []
os.register_at_fork(after_in_child=_idle.clear)  # a forked process has none of these threads
