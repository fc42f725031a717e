"""Many calls at a time, a few of them ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def each_in_threads(call: Callable[[T], Any], values: Iterable[T], workers: int) -> None:
    """Calls a function with each value, so many at a time.

    Raises:
        Exception: the first that a call raised; calls not begun are not made.
    """
    if workers == 1:
        for value in values:
            call(value)
        return
    waiting: set[Future[Any]] = set()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for value in values:
                waiting.add(pool.submit(copy_context().run, call, value))
                if len(waiting) >= 4 * workers:
                    waiting = _without_done(waiting, FIRST_COMPLETED)
            while waiting:
                waiting = _without_done(waiting, FIRST_COMPLETED)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _without_done(waiting: set[Future[Any]], until: str) -> set[Future[Any]]:
    done, rest = wait(waiting, return_when=until)
    for future in done:
        future.result()
    return rest
