"""One request to a model, for chat models and providers alike.

    cache ─▶ money of the budget ─▶ turn in the rate limits ─▶ send, again after a transient error ─▶ count

A cached reply is not requested again, and callers with the same request wait for one reply. Every attempt to send a
request passes `Request._attempt` or its twin for event loops, and every reply passes `Request._settle`.
"""

import asyncio
import functools
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError, TaskError, TaskTimeout
from evaluand.engine.budget import Budget
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.observation import machinery
from evaluand.engine.policy import Policy
from evaluand.engine.rate_limit import RateLimit
from evaluand.engine.repeats import abandonment_check, repeat_request, repeat_request_async
from evaluand.engine.token_limit import Reservation, TokenLimit
from evaluand.models.account import check_budget, noting_refusal, set_money_aside
from evaluand.models.capture import Uncaptured
from evaluand.models.reply_cache import Replies
from evaluand.models.usage import Spending, count, read_usage

_PAUSE: Final = 0.02  # seconds between two looks whether a budget has room

T = TypeVar("T")
_Limit = TypeVar("_Limit", RateLimit, TokenLimit)


class Reply(NamedTuple):
    """A reply with its usage; a method marked with `@asks` may return it instead of the reply alone.

    Attributes:
        value: the reply, as data.
        usage: `input_tokens`, `output_tokens`, `cost`, `currency` and `model`, as far as they are known.
    """

    value: Any
    usage: Mapping[str, Any] = {}


class Request(ABC):
    """One request: how it is identified, sent, repeated and counted.

    Args:
        name: its name in errors.
        replies: the cache; None for none.
        lasting: whether the reply may be stored in a file, and read from it.
        rate: the limit that each attempt waits for; `token_rate` is the limit by tokens.
        policy: its retries; by default those of the policy of the current run or evaluation.
    """

    def __init__(
        self,
        name: str,
        replies: Replies | None,
        *,
        lasting: bool,
        rate: RateLimit | None = None,
        token_rate: TokenLimit | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.name = name
        self._replies, self._lasting, self._policy = replies, lasting, policy
        self._rate, self._token_rate = rate, token_rate
        self._is_given_up = abandonment_check()

    @property
    @abstractmethod
    def key(self) -> bytes:
        """What the reply depends on, as 16 bytes."""

    @abstractmethod
    async def send_async(self) -> Reply:
        """Sends the request once, from an event loop."""

    def send(self) -> Reply:
        """Sends the request once, from a thread."""
        return run_coroutine(self.send_async())

    def count_failure(self, error: BaseException) -> None:
        """Counts a request that ended with an error."""
        self.count(requests=1, failed=1)

    def describe(self, error: BaseException) -> str:
        """The text of an error for the log."""
        return str(error)

    @property
    def spent(self) -> Spending | None:
        """The record of the client that makes the request."""
        return None

    @property
    def size(self) -> tuple[int, int | None]:
        """The characters of the request, and the most tokens of its reply if they are limited."""
        return 0, None

    def explain_unpriced(self, budget: Budget) -> str:
        """The reason why a budget could not count the cost of the reply, and what to do; empty if it could."""
        return ""

    def reply(self) -> tuple[Any, bool]:
        """The reply, as data, and whether it is new.

        Raises:
            TaskError: the request failed, or its reply is not usable.
        """
        with machinery(), noting_refusal(), Uncaptured():
            if self._replies is None:
                return identity.decode(self._make()), True
            reply, new = self._replies.get(self.key, self._make, lasting=self._lasting, is_given_up=self._is_given_up)
        return self._read(reply, new)

    async def reply_async(self) -> tuple[Any, bool]:
        """As `reply`, in an event loop."""
        with machinery(), noting_refusal(), Uncaptured():
            if self._replies is None:
                return identity.decode(await self._make_async()), True
            reply, new = await self._replies.get_async(
                self.key, self._make_async, lasting=self._lasting, is_given_up=self._is_given_up
            )
        return self._read(reply, new)

    def _make(self) -> bytes:
        return self._encode(repeat_request(self._attempt, self._policy, self.describe))

    async def _make_async(self) -> bytes:
        return self._encode(await repeat_request_async(self._attempt_async, self._policy, self.describe))

    def _attempt(self) -> Reply:
        while (paying := self._set_money_aside()) is None:
            time.sleep(_PAUSE)
        with paying:
            tokens = self._reserve()
            with self._rate.request(tokens) if self._rate else tokens or nullcontext():
                check_budget(self.explain_unpriced)  # again: it may have waited long
                begun = time.perf_counter()
                try:
                    reply = _timed(self.send(), begun)
                except BaseException as error:
                    self.count_failure(error)
                    raise
            self._settle(reply, tokens)
        return reply

    async def _attempt_async(self) -> Reply:
        while (paying := self._set_money_aside()) is None:
            await asyncio.sleep(_PAUSE)
        with paying:
            tokens = self._reserve()
            async with self._rate.request_async(tokens) if self._rate else tokens or nullcontext():
                check_budget(self.explain_unpriced)
                begun = time.perf_counter()
                try:
                    reply = _timed(await self.send_async(), begun)
                except BaseException as error:
                    self.count_failure(error)
                    raise
            self._settle(reply, tokens)
        return reply

    def _set_money_aside(self) -> AbstractContextManager[None] | None:
        """A block in which the request may be made; None while its cost may not fit into a budget."""
        self._check()
        return set_money_aside()

    def _check(self) -> None:
        """Raises an error if the request must not be made: nobody waits for it, or a budget is spent."""
        if self._is_given_up():
            raise TaskTimeout(f"{self.name} is not asked: nobody waits for it any more", code="timeout")
        check_budget(self.explain_unpriced)

    def _reserve(self) -> Reservation | None:
        return None if self._token_rate is None else self._token_rate.reserve(*self.size)

    def _settle(self, reply: Reply, tokens: Reservation | None) -> None:
        """Counts a reply."""
        usage: Mapping[str, Any] = {}
        with suppress(DataError):  # which fails the request when the reply is encoded
            usage = read_usage(reply.usage)
        if tokens is not None and usage:
            tokens.settle(usage.get("input_tokens"), usage.get("output_tokens"))
        self.count(requests=1, usage=usage)

    def _encode(self, reply: Reply) -> bytes:
        """A reply as text for the cache."""
        try:
            read_usage(reply.usage)
        except DataError as error:
            raise TaskError(f"{self.name} reported a usage that cannot be counted: {error}") from None
        try:
            return identity.encode(reply.value)
        except DataError as error:
            raise TaskError(f"{self.name} returned something that is not data: {error}") from None

    def _read(self, reply: bytes, new: bool) -> tuple[Any, bool]:
        if not new:
            self.count(known=1)
        return identity.decode(reply), new

    def count(self, **amounts: Any) -> None:
        """Adds amounts to the records of its client and of the enclosing blocks of `spending`."""
        count(*(() if self.spent is None else (self.spent,)), **amounts)


def _timed(reply: Reply, begun: float) -> Reply:
    """A reply whose usage includes the seconds since the request was sent."""
    if not isinstance(reply.usage, Mapping):
        return reply
    return reply._replace(usage={**reply.usage, "seconds": time.perf_counter() - begun})


class Repetition(NamedTuple):
    """The attempt and the replication that a call belongs to.

    Attributes:
        attempt: at the run or evaluation, from 0.
        replication: of the example, from 0.
        is_measured: whether the call belongs to a run. Then the cache of the process is not used, because it would make
            the call look faster and cheaper than it is.
    """

    attempt: int = 0
    replication: int = 0
    is_measured: bool = False


def repetition(attempt: int, replication: int = 0) -> AbstractContextManager[None]:
    """Makes requests in the block differ from those of other attempts and replications of the same work.

    Otherwise a cache would answer a repeated call like the first one, and repeats would not vary.
    """
    return _InRepetition(Repetition(attempt, replication))


class _InRepetition:
    """A class, since it is entered for each call and a generator would take three times as long."""

    __slots__ = ("_of", "_token")

    def __init__(self, of: Repetition) -> None:
        self._of = of

    def __enter__(self) -> None:
        self._token = _repetition.set(self._of)

    def __exit__(self, *error: object) -> None:
        _repetition.reset(self._token)


def begin_measured(attempt: int, replication: int) -> None:
    """Begins a call of a run, in the context of its thread or task, which makes nothing but such calls."""
    if _repetition.get() is not (repetition := _measured(attempt, replication)):
        _repetition.set(repetition)


@functools.lru_cache
def _measured(attempt: int, replication: int) -> Repetition:
    return Repetition(attempt, replication, is_measured=True)


def current_repetition() -> Repetition:
    """The attempt and replication of the current call; the first outside of runs and evaluations."""
    return _repetition.get()


def in_attempt(call: Callable[[T], Any], attempt: int) -> Callable[[T], Any]:
    """A call, plain or async, whose requests differ from those of other attempts."""
    if attempt == 0:
        return call
    return functools.partial(_repeated_async if inspect.iscoroutinefunction(call) else _repeated, call, attempt)


def _repeated(call: Callable[[T], Any], attempt: int, unit: T) -> Any:
    with repetition(attempt):
        return call(unit)


async def _repeated_async(call: Callable[[T], Any], attempt: int, unit: T) -> Any:
    with repetition(attempt):
        return await call(unit)


def cache_of(setting: Any, *, in_memory: Replies) -> Replies | None:
    """The cache for a parameter.

    Args:
        setting: True for `in_memory`, False for none, the path of a file, or `Replies`.
        in_memory: the cache of this process.

    Raises:
        SpecError: it is something else.
    """
    if isinstance(setting, Replies):
        return setting
    if isinstance(setting, bool):
        return in_memory if setting else None
    if not isinstance(setting, str | PathLike):
        raise SpecError(f"cache is {setting!r}; give True, False, a path, or Replies")
    path = Path(setting).absolute()
    with _sharing:
        replies = _replies_by_file.get(path)
        if replies is None:
            replies = _replies_by_file[path] = Replies(path)
        return replies


def shared_rate(rate: RateLimit | str | None, *owner: Any) -> RateLimit | None:
    """The rate limit for a parameter; equal texts of the same owner share one limit in this process.

    Args:
        owner: whose requests count together.

    Raises:
        SpecError: the text is not a rate.
    """
    return _shared(RateLimit, rate, owner) if isinstance(rate, str) else rate


def shared_token_rate(rate: TokenLimit | str | None, *owner: Any) -> TokenLimit | None:
    """As `shared_rate`, by tokens."""
    return _shared(TokenLimit, rate, owner) if isinstance(rate, str) else rate


def _shared(kind: type[_Limit], rate: str, owner: tuple[Any, ...]) -> _Limit:
    key = (kind, *owner, rate)
    with _sharing:
        limit = _limits.get(key)
        if limit is None:
            limit = _limits[key] = kind.parse(rate)
        return limit


_FIRST: Final = Repetition()
_repetition: ContextVar[Repetition] = ContextVar("_repetition", default=_FIRST)
_sharing = Lock()
_replies_by_file: Final[dict[Path, Replies]] = {}
_limits: Final[WeakValueDictionary[tuple[Any, ...], Any]] = WeakValueDictionary()
