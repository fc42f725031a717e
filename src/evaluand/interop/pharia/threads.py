"""Many calls at a time, a few of them ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def each_in_threads(call: Callable[[T], R], values: Iterable[T], workers: int) -> Iterator[R]:
    """What a function gives for each value, as it comes, of so many calls at a time.

    Raises:
        Exception: the first that a call raised; calls not begun are not made.
    """
    if workers == 1:
        yield from map(call, values)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: set[Future[R]] = set()
        try:
            for value in values:
                waiting.add(pool.submit(copy_context().run, call, value))
                if len(waiting) >= 4 * workers:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(cancel_futures=True)


def awaited(value: Awaitable[T]) -> T:
    """What an awaitable gives. It is awaited in a thread of its own, since a loop may be running in this one."""

    async def wait_for() -> T:
        return await value

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, asyncio.run, wait_for()).result()
