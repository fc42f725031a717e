"""Calls of one function with several inputs, within another call: in threads or in coroutines.

After the first failure no further call starts, and the error of the earliest input is raised.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import Any

_helpers = threading.BoundedSemaphore(512)  # helper threads, however deep calls are nested


def call_in_threads(call: Callable[[Any], Any], inputs: Sequence[Any], limit: int) -> list[Any]:
    """The outputs of calls made by this thread and helper threads."""
    work = _Work(len(inputs))

    def help() -> None:
        while (at := work.next()) is not None:
            try:
                work.outputs[at] = call(inputs[at])
            except BaseException as error:
                work.failed(at, error)

    def help_and_leave() -> None:
        try:
            help()
        finally:
            _helpers.release()

    threads: list[threading.Thread] = []
    try:
        while len(threads) + 1 < min(limit, len(inputs)) and _helpers.acquire(blocking=False):
            threads.append(_start_thread(help_and_leave))
        help()
    except BaseException:
        work.end()
        raise
    finally:  # no thread outlives the span
        for thread in threads:
            thread.join()
    return work.finished()


async def call_in_coroutines(call: Callable[[Any], Awaitable[Any]], inputs: Sequence[Any], limit: int) -> list[Any]:
    """The outputs of async calls made in the caller's loop."""
    work = _Work(len(inputs))

    async def help() -> None:
        while (at := work.next()) is not None:
            try:
                work.outputs[at] = await call(inputs[at])
            except BaseException as error:
                work.failed(at, error)

    helpers = {asyncio.ensure_future(help()) for _ in range(min(limit, len(inputs)))}
    try:
        while helpers and not work.has_failed:
            _, helpers = await asyncio.wait(helpers, return_when=asyncio.FIRST_COMPLETED)
    finally:  # after an error or a cancellation, cancel running calls, so that none outlives the span
        work.end()
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
    return work.finished()


def _start_thread(helper: Callable[[], None]) -> threading.Thread:
    """Start a thread in this context; if that fails, release its place."""
    thread = threading.Thread(target=copy_context().run, args=(helper,))
    try:
        thread.start()
    except RuntimeError:
        _helpers.release()
        raise
    return thread


class _Work:
    """The queue of several calls, and their outputs."""

    def __init__(self, size: int) -> None:
        self.outputs: list[Any] = [None] * size
        self._waiting = iter(range(size))
        self._failure: tuple[int, BaseException] | None = None
        self._ended = False
        self._lock = threading.Lock()

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def next(self) -> int | None:
        """The position of the next call; None if there is none, or one has failed."""
        with self._lock:
            return None if self._ended or self.has_failed else next(self._waiting, None)

    def failed(self, at: int, error: BaseException) -> None:
        with self._lock:
            if not self._ended and (self._failure is None or at < self._failure[0]):
                self._failure = at, error

    def end(self) -> None:
        """Start no further calls and ignore the results of running ones."""
        with self._lock:
            self._ended = True

    def finished(self) -> list[Any]:
        if self._failure is not None:
            raise self._failure[1]
        return self.outputs
