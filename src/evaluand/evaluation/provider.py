"""Providers: what feedback functions are methods of.

A `Provider` judges: each of its methods takes texts and gives a number, or a `Judgement` with its reason beside it.
The kinds in `evaluand.evaluation.providers` do so by themselves, without a key or a network.

A `RemoteProvider` asks others. The methods that do are marked with `@asks`: each request waits for its turn, is tried
again where an error may pass, is counted with what it cost, and is not made where the reply is known.

    feedback function ──▶ method of a provider ──▶ @asks method ─ known? ─ pace ─ retries ─▶ network
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError, TaskError, TaskTimeout, TransientError, kind_of, storable_message
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.redaction import HIDDEN
from evaluand.engine.deadline import Overdue, within
from evaluand.engine.engine import TRANSIENT, Policy, abandonment_check
from evaluand.engine.rate_limit import RateLimit, sent
from evaluand.evaluation.provider_secrets import (
    class_place,
    drop_secrets,
    find_secrets,
    hide_passwords,
    hide_secrets,
    secret_texts,
)
from evaluand.evaluation.reply_cache import Replies

__all__ = [
    "CACHE",
    "Judgement",
    "Provider",
    "RemoteProvider",
    "Reply",
    "Spending",
    "asks",
    "from_0_to_1",
    "lower_is_better",
    "quoted",
    "sent",
    "spending",
    "text_of",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")

CACHE: Final = Path(".evaluand", "cache", "replies.db")
"""Where replies are usually kept: beside the store, in the folder that is worked in."""
_SECRET: Final = 4  # characters from which a secret is looked for in errors; shorter ones stand there by chance


class Judgement(NamedTuple):
    """What a method of a provider says.

    Attributes:
        value: from 0 to 1 where the method does not say otherwise; None where there is none.
        meta: at least the `reason`, and what it was found from.
    """

    value: float | None
    meta: Mapping[str, Any]

    @classmethod
    def undefined(cls, reason: str) -> Judgement:
        """No value, and why: shown and counted, never averaged as a zero."""
        return cls(None, {"reason": reason})

    @property
    def reason(self) -> str:
        return str(self.meta["reason"])


class Provider:
    """What judges: its methods do. Its parameters are its fields, where it is a dataclass, or else its attributes.

    What is named as a secret (`api_key`, `*_token`, `password` …) and passwords in URLs, also within a parameter, are
    no part of what it is: they are stored and shown nowhere.

    Attributes:
        kind: the registered name.
        behaviour: raised whenever the same parameters would judge differently.
    """

    kind: ClassVar[str] = ""
    behaviour: ClassVar[int] = 1
    unidentified: ClassVar[tuple[str, ...]] = ()
    """Fields that say how it is asked, such as a key, and change nothing of what it says."""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign] # as its own, or a dataclass would write one

    def __repr__(self) -> str:
        if not dataclasses.is_dataclass(self):
            return super().__repr__()
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.repr}
        arguments = ", ".join(f"{name}={value!r}" for name, value in hide_secrets(fields).items())
        return f"{type(self).__qualname__}({arguments})"

    def __fingerprint__(self) -> Any:
        return dict(self.spec)

    @classmethod
    def require(cls) -> None:
        """Raises a SpecError where what its own methods need is missing: a library is not installed."""

    def check(self, method: str) -> None:
        """Raises a SpecError where one of its methods could not judge."""
        kind = next((kind for kind in type(self).__mro__ if method in vars(kind)), None)
        if kind is not None and issubclass(kind, Provider):
            kind.require()

    @property
    def spec(self) -> Mapping[str, Any]:
        """The identity of its judgements: kind, behaviour version and parameters without secrets."""
        fields = {name: value for name, value in _fields(self).items() if name not in self.unidentified}
        kind = self.kind or class_place(type(self))
        return {"kind": kind, "behaviour": self.behaviour, "parameters": drop_secrets(fields)}

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What a provider that is a dataclass can be made of again: its fields, but for those that are as by default.

        Raises:
            SpecError: a field is no plain data, or holds a secret.
        """
        made: dict[str, Any] = {}
        for each in dataclasses.fields(self):  # type: ignore[arg-type] # who asks has looked
            value = getattr(self, each.name)
            if each.init and (each.default is dataclasses.MISSING or value != each.default):
                made[each.name] = str(value) if isinstance(value, RateLimit | PathLike) else value
        for place, secret in find_secrets(made):
            if not isinstance(secret, str | None) or secret:
                stored = f"{type(self).__qualname__} cannot be stored with its {place}"
                raise SpecError(f"{stored}; let it read that from the environment")
        try:
            identity.encode(made)
        except DataError as error:
            raise SpecError(f"{class_place(type(self))} cannot be stored: {error}") from None
        return made

    def identify(self, method: str) -> Identity:
        """The identity of one of its methods: by kind where that is ours, else by the fingerprint of its code."""
        if type(self).__module__.startswith("evaluand."):
            return Identity({**self.spec, "method": method})
        return code_identity("provider", getattr(self, method), f"{type(self).__qualname__}.{method}")


class Reply(NamedTuple):
    """What a method that asks may return instead of the reply alone.

    Attributes:
        value: the reply, as data.
        usage: what it took: `input_tokens`, `output_tokens`, `cost`, `currency` and `model`, as far as that is known.
    """

    value: Any
    usage: Mapping[str, Any] = {}


@dataclass
class Spending:
    """What requests have cost, or those of one judgement.

    Attributes:
        n_requests: how many were made, further attempts too.
        n_failed: how many of these had no reply.
        n_known: how often a reply was known, or somebody else was asking for it already.
        input_tokens: read, and `output_tokens` written.
        cost: by currency; under `""` if the currency is unknown.
    """

    n_requests: int = 0
    n_failed: int = 0
    n_known: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def usage(self) -> dict[str, Any] | None:
        """As the column `usage` of a table holds it; None where nothing was asked.

        Costs in several currencies are no one cost, and left out.
        """
        if not self.n_requests:
            return None
        counts = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        usage: dict[str, Any] = {name: count for name, count in counts.items() if count}  # 0 means not reported
        if len(self.cost) == 1:
            ((currency, cost),) = self.cost.items()
            usage |= {"cost": cost, "currency": currency or None}
        return usage

    def _add(self, *, requests: int = 0, failed: int = 0, known: int = 0, usage: Mapping[str, Any] = {}) -> None:
        with self._lock:
            self.n_requests += requests
            self.n_failed += failed
            self.n_known += known
            self.input_tokens += usage.get("input_tokens", 0)
            self.output_tokens += usage.get("output_tokens", 0)
            if "cost" in usage:
                currency = usage.get("currency", "")
                self.cost[currency] = self.cost.get(currency, 0.0) + usage["cost"]


@contextmanager
def spending(spent: Spending | None = None) -> Iterator[Spending]:
    """What is spent by all providers that are asked within the block, in its thread or its task.

    Args:
        spent: what was spent before, to which it is added.

    Example:
        >>> with spending() as spent:
        ...     pass
        >>> spent.n_requests, spent.usage
        (0, None)
    """
    spent = Spending() if spent is None else spent
    token = _watching.set((*_watching.get(), spent))
    try:
        yield spent
    finally:
        _watching.reset(token)


@dataclass(frozen=True, kw_only=True)
class RemoteProvider(Provider):
    """A provider that asks others, such as a model behind a network.

    What answers cannot be seen from here, so only its declared `version` pins it: without, replies are known only as
    long as the process lives, and what is judged by them is never reused by itself.

    Args:
        model: what answers.
        version: stands for the model's weights, settings, and the code of the methods; raise it when one changes.
        rate: how many requests may start in a period, such as `60/min`: by all providers of this class, model and
            rate in this process together. A `RateLimit` is shared by those that it is given to.
        timeout: seconds that one request may take, or None; longer ones fail with a `TransientError`. A method that is
            not async is called in another thread, which is left behind then.
        retries: further attempts after an error declared transient.
        backoff: seconds before the first of these, or as long as the error's `after` (a service's Retry-After) says.
        backoff_growth: how many times as long each further pause is.
        transient: names of the error classes, or of their bases, worth another attempt.
        cache: where replies are kept: True for memory, False for nowhere, a path (such as `CACHE`) for a file as well.

    Raises:
        SpecError: a parameter cannot be as it is.

    Example:
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Shouting(RemoteProvider):
        ...     @asks
        ...     def reply(self, text: str) -> str:
        ...         return Reply(text.upper(), {"output_tokens": 1})  # where a request would be made
        ...     def is_loud(self, text: str) -> float:
        ...         return float(self.reply(text) == text)
        >>> loud = Shouting(model="shout", version="1", rate="10/s")
        >>> [loud.is_loud("HEY"), loud.is_loud("hey"), loud.is_loud("hey")]
        [1.0, 0.0, 0.0]
        >>> loud.spent.n_requests, loud.spent.n_known, loud.spent.output_tokens
        (2, 1, 2)
    """

    unidentified: ClassVar = ("rate", "timeout", "retries", "backoff", "backoff_growth", "transient", "cache")

    model: str | None = None
    version: str | None = None
    rate: RateLimit | str | None = None
    timeout: float | None = 60.0
    retries: int = 3
    backoff: float = 1.0
    backoff_growth: float = 2.0
    transient: Sequence[str] = TRANSIENT
    cache: Replies | str | PathLike[str] | bool = True

    def __post_init__(self) -> None:
        seconds: Any = self.timeout
        if seconds is not None and (
            not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf
        ):
            raise SpecError(f"timeout is {seconds!r}; give seconds above 0, or None for as long as it takes")
        _ = self._policy, self._replies

    def __fingerprint__(self) -> Any:
        if self.version is None:
            name = drop_secrets(self.model) or class_place(type(self))
            raise TaskError(f"{name}: declare its `version` to pin it")
        return dict(self.spec)

    def identify(self, method: str) -> Identity:
        pinned = Identity({**self.spec, "method": method})
        if self.version is not None:
            return pinned
        name = drop_secrets(self.model) or type(self).__qualname__
        why = f"{name}: what answers cannot be seen from here; declare the provider's `version` to pin it"
        return Identity(pinned.spec, False, (why,))

    @cached_property
    def spent(self) -> Spending:
        """What its requests have cost so far."""
        return Spending()

    @cached_property
    def _code(self) -> Mapping[str, Any]:
        """What stands for its code: name and version where one is declared, else the fingerprint of its class."""
        kind = type(self)
        return code_identity("class", kind, class_place(kind), version=self.version).spec

    @cached_property
    def _policy(self) -> Policy:
        pace = self._shared(self.rate) if isinstance(self.rate, str) else self.rate
        transient = self.transient if isinstance(self.transient, str) else tuple(self.transient)
        return Policy(
            rate=pace,
            retries=self.retries,
            backoff=self.backoff,
            backoff_growth=self.backoff_growth,
            transient=transient,  # type: ignore[arg-type] # a text is refused by it
        )

    def _shared(self, rate: str) -> RateLimit:
        key = (type(self), self.model, rate)
        with _sharing:
            pace = _paces.get(key)
            if pace is None:
                pace = _paces[key] = RateLimit.parse(rate)
            return pace

    @cached_property
    def _replies(self) -> Replies | None:
        if isinstance(self.cache, Replies):
            return self.cache
        if isinstance(self.cache, bool):
            return _known if self.cache else None
        if not isinstance(self.cache, str | PathLike):
            raise SpecError(f"cache is {self.cache!r}; give True, False, a path, or Replies")
        path = Path(self.cache).absolute()
        with _sharing:
            found = _files.get(path)
            if found is None:
                found = _files[path] = Replies(path)
            return found

    def _hide(self, error: Exception) -> None:
        """Takes what is secret out of an error.

        Raises:
            TaskError: instead of an error that goes on telling it.
        """
        error.args = tuple(self._shown(part) if isinstance(part, str) else part for part in error.args)
        said = storable_message(error)
        if self._shown(said) != said:
            raise TaskError(f"{type(error).__name__}: {self._shown(said)}") from None

    def _shown(self, text: str) -> str:
        """A text without what is secret."""
        from evaluand.engine.http import written_forms  # which few need, and then only for an error

        text = hide_passwords(text)
        secrets = {
            each for _, secret in find_secrets(_fields(self)) for each in secret_texts(secret) if len(each) >= _SECRET
        }
        for secret in sorted(secrets, key=len, reverse=True):  # one may be part of another
            for written in written_forms(secret):
                text = text.replace(written, HIDDEN)
        return text

    def _count(self, **counts: Any) -> None:
        for spent in (self.spent, *_watching.get()):
            spent._add(**counts)


def asks(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Marks the methods of a `RemoteProvider` that make a request; plain or async.

    Such a method makes one request and returns the reply as data: text, numbers, lists, dictionaries, or a `Reply` with
    its usage. It raises a `TransientError` for a failure that may pass, with `after` if the service asks to wait. The
    caller gets the value decoded from the reply's JSON, the same for a new request and for a cached reply.

    Calls with equal arguments are one question. To ask a model several times, give the method a parameter for the
    number of the repetition.
    """
    signature = inspect.signature(method)

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def ask_async(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            asked = _Asked(method, signature, args, kwargs)
            if asked.replies is None:
                return identity.decode(await asked.make_async())
            reply, new = await asked.replies.get_async(
                asked.key, asked.make_async, lasting=asked.lasting, is_given_up=asked.is_given_up
            )
            return asked.decode(reply, new)

        return ask_async  # type: ignore[return-value]

    @functools.wraps(method)
    def ask(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        asked = _Asked(method, signature, args, kwargs)
        if asked.replies is None:
            return identity.decode(asked.make())
        reply, new = asked.replies.get(asked.key, asked.make, lasting=asked.lasting, is_given_up=asked.is_given_up)
        return asked.decode(reply, new)

    return ask


def text_of(name: str, value: Any) -> str:
    """A text that was given to be judged.

    Raises:
        DataError: it is none; says what it is.
    """
    if not isinstance(value, str):
        raise DataError(f"{name} is {kind_of(value)}, not a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{name} holds half of a surrogate pair at {error.start}, which is no character") from None
    return value


def quoted(text: str, longest: int = 80) -> str:
    """A text on one line in quotation marks, as reasons cite it.

    Example:
        >>> quoted("It is raining cats and dogs.", 12)
        '“It is raini…”'
    """
    line = " ".join(text.split())
    return f"“{line if len(line) <= longest else line[: longest - 1] + '…'}”"


def from_0_to_1(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Marks a method of a provider that says nothing below 0 or above 1, so that no interval of a mean goes beyond."""
    method.range = (0.0, 1.0)  # type: ignore[attr-defined]
    return method


def lower_is_better(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Marks a method of a provider whose high values are bad, such as of toxicity."""
    method.higher_is_better = False  # type: ignore[attr-defined]
    return method


class _Asked:
    """One call of a method that asks."""

    def __init__(
        self, method: Callable[..., Any], signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        (_, provider), *arguments = bound.arguments.items()
        if not isinstance(provider, RemoteProvider):
            raise SpecError(f"{method.__qualname__} asks, and so must be a method of a RemoteProvider")
        self._make = functools.partial(method, *args, **kwargs)
        self._method, self._provider, self._arguments = method.__name__, provider, dict(arguments)
        self.replies, self.lasting = provider._replies, provider.version is not None
        self.is_given_up = abandonment_check()

    @property
    def key(self) -> bytes:
        asked = {
            **self._provider.spec,
            "code": self._provider._code,
            "method": self._method,
            "arguments": self._arguments,
        }
        try:
            return identity.digest(asked)
        except DataError as error:
            raise TaskError(f"{self._method} is asked with what is no data: {error}") from None

    def make(self) -> bytes:
        """The reply to a request, or to the first one that has one."""
        attempts, pace = 0, self._provider._policy.rate_limit
        while True:
            attempts += 1
            self._check_wanted()
            try:
                with pace.request() if pace else nullcontext():
                    given = self._asked()
            except Exception as error:
                pause = self._pause(error, attempts)
                if pause is None:
                    self._provider._hide(error)
                    raise
            else:
                return self._written(given)
            time.sleep(pause)

    async def make_async(self) -> bytes:
        """The same in an event loop."""
        attempts, pace = 0, self._provider._policy.rate_limit
        while True:
            attempts += 1
            self._check_wanted()
            try:
                async with pace.request_async() if pace else nullcontext():
                    given = await self._asked_async()
            except Exception as error:
                pause = self._pause(error, attempts)
                if pause is None:
                    self._provider._hide(error)
                    raise
            else:
                return self._written(given)
            await asyncio.sleep(pause)

    def _asked(self) -> Any:
        """What one request gives."""
        if self._provider.timeout is None:
            return self._make()
        try:
            return within(self._provider.timeout, self._make)
        except Overdue:
            raise self._overdue() from None

    async def _asked_async(self) -> Any:
        limit = asyncio.timeout(self._provider.timeout)
        try:
            async with limit:
                return await self._make()
        except asyncio.CancelledError:
            self._provider._count(requests=1, failed=1)
            raise
        except TimeoutError:
            if limit.expired():
                raise self._overdue() from None
            raise

    def _overdue(self) -> TransientError:
        return TransientError(f"{self._method} had no reply within {self._provider.timeout:g} s", code="timeout")

    def _check_wanted(self) -> None:
        if self.is_given_up():
            raise TaskTimeout(f"{self._method} is not asked: nobody waits for it any more", code="timeout")

    def decode(self, reply: bytes, new: bool) -> Any:
        """The value of a stored reply, counted as known if it is not new."""
        if not new:
            self._provider._count(known=1)
        return identity.decode(reply)

    def _written(self, returned: Any) -> bytes:
        """The reply as it is stored; counts its request."""
        reply = returned if isinstance(returned, Reply) else Reply(returned)
        try:
            usage = _countable(reply.usage)
        except DataError as error:
            self._provider._count(requests=1)
            raise TaskError(f"{self._method} reported a usage that cannot be counted: {error}") from None
        self._provider._count(requests=1, usage=usage)
        try:
            return identity.encode(reply.value)
        except DataError as error:
            raise TaskError(f"{self._method} returned something that is not data: {error}") from None

    def _pause(self, error: Exception, attempts: int) -> float | None:
        """Seconds until another attempt, if there is to be one."""
        self._provider._count(requests=1, failed=1)
        policy = self._provider._policy
        return policy.pause(attempts, error) if policy.retries_after(error, attempts) else None


def _countable(usage: Any) -> dict[str, Any]:
    """The values of a usage that are summed.

    Raises:
        DataError: a value is invalid; the message names it.
    """
    if not isinstance(usage, Mapping):
        raise DataError(f"it is {kind_of(usage)}, not an object")
    reported = {name: (usage[name], expected, read) for name, expected, read in _USAGE if usage.get(name) is not None}
    counted = {name: read(value) for name, (value, _, read) in reported.items()}
    for name, (value, expected, _) in reported.items():
        if counted[name] is None:
            raise DataError(f"{name} is {value!r}, not {expected}")
    return counted


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return int(value) if int(value) >= 0 else None


def _amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    return float(value) if 0 <= float(value) < math.inf else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_USAGE: Final[Sequence[tuple[str, str, Callable[[Any], Any]]]] = (
    ("input_tokens", "a whole number of at least 0", _whole),
    ("output_tokens", "a whole number of at least 0", _whole),
    ("cost", "a number of at least 0", _amount),
    ("currency", "a text", _text),
)


def _fields(provider: Provider) -> dict[str, Any]:
    if not dataclasses.is_dataclass(provider):
        return dict(vars(provider))
    return {each.name: getattr(provider, each.name) for each in dataclasses.fields(provider)}


_watching: ContextVar[tuple[Spending, ...]] = ContextVar("_watching", default=())
_sharing = threading.Lock()
_known = Replies()
_files: dict[Path, Replies] = {}
_paces: WeakValueDictionary[tuple[Any, ...], RateLimit] = WeakValueDictionary()
