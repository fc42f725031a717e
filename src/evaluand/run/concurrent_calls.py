"""Calls of one function with several inputs, within another call: in threads or in coroutines.

After the first failure no further call starts, and the error of the earliest input is raised.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

_helpers = threading.BoundedSemaphore(512)  # helper threads, however deep calls are nested


def call_in_threads(call: Callable[[Any], Any], inputs: Sequence[Any], limit: int) -> list[Any]:
    """The outputs of calls made by this thread and helper threads."""
    outputs: list[Any] = [None] * len(inputs)
    failures: dict[int, BaseException] = {}
    waiting, taking = iter(range(len(inputs))), threading.Lock()

    def take() -> int | None:
        with taking:
            return None if failures else next(waiting, None)

    def help() -> None:
        while (at := take()) is not None:
            try:
                outputs[at] = call(inputs[at])
            except BaseException as error:
                failures[at] = error

    places = 0
    try:
        while places + 1 < min(limit, len(inputs)) and _helpers.acquire(blocking=False):
            places += 1
        with ThreadPoolExecutor(max(places, 1)) as threads:  # none of which outlives the span
            try:
                for _ in range(places):
                    threads.submit(copy_context().run, help)
                help()
            except BaseException as error:
                failures[-1] = error  # so that no helper begins another call
                raise
    finally:
        for _ in range(places):
            _helpers.release()
    if failures:
        raise failures[min(failures)]
    return outputs


async def call_in_coroutines(call: Callable[[Any], Awaitable[Any]], inputs: Sequence[Any], limit: int) -> list[Any]:
    """The outputs of async calls made in the caller's loop; running ones are cancelled at a failure."""
    failures: dict[int, BaseException] = {}
    turns = asyncio.Semaphore(limit)

    async def call_in_turn(at: int) -> Any:
        async with turns:
            try:
                return None if failures else await call(inputs[at])
            except BaseException as error:
                if not (task := asyncio.current_task()) or not task.cancelling():
                    failures[at] = error
                raise

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call_in_turn(at)) for at in range(len(inputs))]
    except BaseExceptionGroup:
        # without a failure the caller was cancelled, and what its calls raised at that is not passed on
        raise failures[min(failures)] if failures else asyncio.CancelledError() from None
    return [task.result() for task in tasks]
