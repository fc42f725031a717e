"""Requests that are repeated alone after a transient error, in place of the complete call that makes them.

A task or scorer may make several requests in one call. An engine states in a context variable which call a thread or
coroutine makes, so that a client finds the policy of the run without having it passed.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

from evaluand.engine.policy import Policy

T = TypeVar("T")


class Caller(Protocol):
    """What makes the calls of an engine one after another.

    Attributes:
        abandoned: whether the current call took too long, so that nobody waits for it any more.
    """

    abandoned: bool

    def repeats_request(self, error: BaseException, requests: int) -> bool:
        """Waits until a request of the call may be repeated; false if it is not repeated.

        Args:
            requests: how often it was made, the last time with this error.
        """

    async def repeats_request_async(self, error: BaseException, requests: int) -> bool:
        """As `repeats_request`, in an event loop."""


def repeat_request(
    send: Callable[[], T], policy: Policy | None = None, describe: Callable[[BaseException], str] = str
) -> T:
    """What `send` returns; after a transient error it is called again, and not the complete call of the task.

    Each repeat is an attempt of the call, with the pause, the turn in the rate limit and the time limit of one. A call
    in another process or outside of a map has no repeats here, nor has a plain request of a coroutine.

    Args:
        send: makes one request of the current call.
        policy: the retries of a client that has its own policy; by default those of the engine.
        describe: what is logged of an error, for `policy`.

    Raises:
        Exception: the error of the last request. The call that passes it on fails, if it was repeated as often as the
            policy says.
    """
    caller, requests = _caller(policy, describe), 0
    while True:
        requests += 1
        try:
            return send()
        except Exception as error:
            if caller is None or not caller.repeats_request(error, requests):
                raise


async def repeat_request_async(
    send: Callable[[], Awaitable[T]], policy: Policy | None = None, describe: Callable[[BaseException], str] = str
) -> T:
    """As `repeat_request`, in an event loop: for requests of async calls, and of calls in threads that wait for it."""
    caller, requests = _caller(policy, describe), 0
    while True:
        requests += 1
        try:
            return await send()
        except Exception as error:
            if caller is None or not await caller.repeats_request_async(error, requests):
                raise


def abandonment_check() -> Callable[[], bool]:
    """A function that says, now and later, whether the current call was abandoned because it took too long."""
    caller = current_caller.get()
    return lambda: caller is not None and caller.abandoned


def _caller(policy: Policy | None, describe: Callable[[BaseException], str]) -> Caller | None:
    return current_caller.get() if policy is None else _Client(policy, describe)


class _Client:
    """A client that repeats requests by its own policy; its requests wait for the rate limit themselves."""

    abandoned = False

    def __init__(self, policy: Policy, describe: Callable[[BaseException], str]) -> None:
        self._policy, self._describe = policy, describe

    def repeats_request(self, error: BaseException, requests: int) -> bool:
        if not self._policy.retries_after(error, requests):
            return False
        time.sleep(self._policy.draw_pause(requests, error, self._describe(error)))
        return True

    async def repeats_request_async(self, error: BaseException, requests: int) -> bool:
        if not self._policy.retries_after(error, requests):
            return False
        await asyncio.sleep(self._policy.draw_pause(requests, error, self._describe(error)))
        return True


current_caller: ContextVar[Caller | None] = ContextVar("current_caller", default=None)
