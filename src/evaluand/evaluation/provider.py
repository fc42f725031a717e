"""Providers: what feedback functions are methods of.

A `Provider` judges: each of its methods takes texts and returns a number, or a `Judgement`: a value with its
reason. The kinds in `evaluand.evaluation.providers` need neither a key nor a network.

A `RemoteProvider` asks a service. Its methods that make requests are marked with `@asks`: each request waits for its
turn, is retried after a transient error, is counted with its cost, and is skipped where the reply is cached.

    feedback function ──▶ method of a provider ──▶ @asks method ─ cache ─ rate limit ─ retries ─▶ network
"""

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, ParamSpec, TypeVar

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError, TaskError, TransientError, kind_of
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.json_like import surrogate_fault
from evaluand.core.parameters import Within, parameter_faults
from evaluand.core.redaction import HIDDEN, LEAST, SHORTEST, hide_values, redact, use_secret
from evaluand.engine.deadline import Overdue, within
from evaluand.engine.policy import TRANSIENT, Policy
from evaluand.engine.rate_limit import RateLimit, sent as sent
from evaluand.engine.token_limit import TokenLimit
from evaluand.evaluation.judgement import Judgement as Judgement
from evaluand.evaluation.provider_secrets import class_place, find_secrets, secret_texts, without_secrets
from evaluand.models.reply_cache import Replies
from evaluand.models.requests import Reply as Reply, Request, cache_of, shared_rate, shared_token_rate
from evaluand.models.usage import Spending

_P = ParamSpec("_P")
_T = TypeVar("_T")

CACHE: Final = Path(".evaluand", "cache", "replies.db")
"""The usual cache file of replies: next to the store, in the current folder."""


class Provider:
    """Base class of providers: its methods judge. Its parameters are its dataclass fields, or else its attributes.

    Secrets, recognised by name (`api_key`, `*_token`, `password` …), and passwords in URLs, also within a parameter,
    are not part of its identity: they are neither stored nor shown.

    Attributes:
        kind: the registered name.
        behaviour: increased whenever the same parameters would judge differently.
        is_judge: whether a model behind it judges, whose errors have to be measured, see `Scorer.is_judge`.
    """

    kind: ClassVar[str] = ""
    behaviour: ClassVar[int] = 1
    is_judge: ClassVar[bool] = False
    unidentified: ClassVar[tuple[str, ...]] = ()
    """Fields that affect how requests are made, such as a key, and not the judgements."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign] # set on the class, else @dataclass replaces it

    def __post_init__(self) -> None:
        """Refuses parameters of a dataclass that break their annotations, see `evaluand.core.parameters`."""
        if faults := [*parameter_faults(self)]:
            raise SpecError("\n".join(f"{name} {fault}" for name, fault in faults))

    def __repr__(self) -> str:
        if not dataclasses.is_dataclass(self):
            return super().__repr__()
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.repr}
        arguments = ", ".join(f"{name}={value!r}" for name, value in without_secrets(values, shown=True).items())
        return f"{type(self).__qualname__}({arguments})"

    def __fingerprint__(self) -> Any:
        return dict(self.spec)

    @classmethod
    def require(cls) -> None:
        """Raises a SpecError if a library that its methods need is not installed."""

    def check(self, method: str) -> None:
        """Raises a SpecError if the method could not judge."""
        kind = next((kind for kind in type(self).__mro__ if method in vars(kind)), None)
        if kind is not None and issubclass(kind, Provider):
            kind.require()

    @property
    def spec(self) -> Mapping[str, Any]:
        """Kind, behaviour and parameters: everything that determines its judgements."""
        parameters = {name: value for name, value in _values(self).items() if name not in self.unidentified}
        public = without_secrets(parameters)
        return {"kind": self.kind or class_place(type(self)), "behaviour": self.behaviour, "parameters": public}

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments that recreate it: of its constructor, as its attributes hold them, without defaults.

        Raises:
            SpecError: an argument is unknown or no plain data, or holds a secret.
        """
        name, arguments = type(self).__qualname__, dict[str, Any]()
        for parameter in _parameters(type(self)):
            value = getattr(self, parameter.name, getattr(self, f"_{parameter.name}", _NOTHING))
            if value is _NOTHING:
                raise SpecError(f"{name} cannot be stored: it has no attribute {parameter.name!r} with that argument")
            if value is not parameter.default and not (
                type(value) is type(parameter.default) and value == parameter.default
            ):
                is_text = isinstance(value, RateLimit | TokenLimit | PathLike)
                arguments[parameter.name] = str(value) if is_text else value
        for place, secret in find_secrets(arguments):
            if not isinstance(secret, str | None) or secret:
                raise SpecError(f"{name} cannot be stored with its {place}; let it read that from the environment")
        try:
            plain: dict[str, Any] = identity.decode(identity.encode(arguments))
        except DataError as error:
            raise SpecError(f"{class_place(type(self))} cannot be stored: {error}") from None
        return {name: plain[name] for name in arguments}  # in the order of the constructor

    def identify(self, method: str) -> Identity:
        """The identity of a method: its kind for evaluand's own providers, else the fingerprint of its code."""
        if type(self).__module__.startswith("evaluand."):
            return Identity({**self.spec, "method": method})
        return code_identity("provider", getattr(self, method))


@dataclass(frozen=True, kw_only=True)
class RemoteProvider(Provider):
    """A provider that asks a service, such as a model behind a network.

    The code that answers cannot be inspected, so only the declared `version` pins it. Without a version, replies are
    cached only while the process lives, and judgements made from them are never reused automatically.

    Args:
        model: the model that answers.
        version: identifies the model's weights, settings, and the code of the methods; change it when one changes.
        rate: how many requests may start in a period, such as `60/min`: shared by all providers of this class, model
            and rate in this process. A `RateLimit` is shared by the providers that receive it.
        token_rate: how many tokens requests may use in a period, such as `100_000/min`; shared likewise. Before it is
            sent, a request counts with its length and the usual length of replies, then with the reported usage.
        timeout: seconds that one request may take, or None; longer ones fail with a `TransientError`. A method that is
            not async runs in another thread, which is abandoned at the timeout.
        retries: further attempts after a transient error.
        backoff: seconds before the first retry, unless the error's `after` (a service's Retry-After) says otherwise.
        backoff_growth: factor between one pause and the next.
        transient: names of the error classes, or of their bases, to retry after.
        cache: True to cache replies in memory, False not to, a path (such as `CACHE`) to store them in a file as well.

    Raises:
        SpecError: a parameter is invalid.

    Example:
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Shouting(RemoteProvider):
        ...     @asks
        ...     def reply(self, text: str) -> str:
        ...         return Reply(text.upper(), {"output_tokens": 1})  # in place of a request
        ...     def is_loud(self, text: str) -> float:
        ...         return float(self.reply(text) == text)
        >>> loud = Shouting(model="shout", version="1", rate="10/s")
        >>> [loud.is_loud("HEY"), loud.is_loud("hey"), loud.is_loud("hey")]
        [1.0, 0.0, 0.0]
        >>> loud.spent.n_requests, loud.spent.n_known, loud.spent.output_tokens
        (2, 1, 2)
    """

    is_judge: ClassVar[bool] = True
    unidentified: ClassVar = (
        "rate",
        "token_rate",
        "timeout",
        "retries",
        "backoff",
        "backoff_growth",
        "transient",
        "cache",
    )

    model: str | None = None
    version: str | None = None
    rate: RateLimit | str | None = None
    token_rate: TokenLimit | str | None = None
    timeout: Annotated[float, Within(0, above=True)] | None = 60.0
    retries: int = 3
    backoff: float = 1.0
    backoff_growth: float = 2.0
    transient: Sequence[str] = TRANSIENT
    cache: Replies | str | PathLike[str] | bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._policy, self._token_limit, self._replies

    def __fingerprint__(self) -> Any:
        if self.version is None:
            name = without_secrets(self.model) or class_place(type(self))
            raise TaskError(f"{name}: declare its `version` to pin it")
        return dict(self.spec)

    def identify(self, method: str) -> Identity:
        identified = Identity({**self.spec, "method": method})
        if self.version is not None:
            return identified
        name = without_secrets(self.model) or type(self).__qualname__
        why = f"{name}: what answers cannot be seen from here; declare the provider's `version` to pin it"
        return Identity(identified.spec, False, (why,))

    @cached_property
    def spent(self) -> Spending:
        """The cost of its requests so far."""
        return Spending()

    @cached_property
    def _code(self) -> Mapping[str, Any]:
        """The identity of its code: name and version if one is declared, else the fingerprint of its class."""
        kind = type(self)
        return code_identity("class", kind, version=self.version).spec

    @cached_property
    def _policy(self) -> Policy:
        transient = self.transient if isinstance(self.transient, str) else tuple(self.transient)
        return Policy(
            rate=shared_rate(self.rate, type(self), self.model),
            retries=self.retries,
            backoff=self.backoff,
            backoff_growth=self.backoff_growth,
            transient=transient,  # type: ignore[arg-type] # Policy rejects a string
        )

    @cached_property
    def _token_limit(self) -> TokenLimit | None:
        return shared_token_rate(self.token_rate, type(self), self.model)

    @cached_property
    def _replies(self) -> Replies | None:
        return cache_of(self.cache, in_memory=_replies_in_memory)

    def _redact_error(self, error: Exception) -> None:
        """Removes secrets from the message of an error; a TaskError takes its place if one cannot be removed."""
        error.args = tuple(self._redact_text(part) if isinstance(part, str) else part for part in error.args)
        try:
            message = str(error)
        except Exception:  # a __str__ that fails, so it shows nothing
            return
        if self._redact_text(message) != message:
            raise TaskError(f"{type(error).__name__}: {self._redact_text(message)}") from None

    def _redact_text(self, text: str) -> str:
        """The text with secrets replaced."""
        found = {each for _, secret in find_secrets(_values(self)) for each in secret_texts(secret)}
        for secret in found:
            if len(secret) >= LEAST:
                use_secret(secret)
        return redact(hide_values(text, {secret: HIDDEN for secret in found if len(secret) >= SHORTEST}))


def asks(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Marks the methods of a `RemoteProvider` that make a request; plain or async.

    Such a method makes one request and returns the reply as data: text, numbers, lists, dictionaries, or a `Reply`
    with its usage. It raises a `TransientError` for errors worth a retry, with `after` if the service says how long to
    wait. The caller receives the reply decoded from JSON, the same whether it is new or cached.

    Calls with equal arguments are one request. To have a model answer several times, add a parameter that numbers the
    repeats.
    """
    signature = inspect.signature(method)

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def ask_async(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            reply, _ = await _MethodRequest(method, signature, args, kwargs).reply_async()
            return reply

        return ask_async  # type: ignore[return-value]

    @functools.wraps(method)
    def ask(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        reply, _ = _MethodRequest(method, signature, args, kwargs).reply()
        return reply

    return ask


def text_of(name: str, value: Any) -> str:
    """Return the argument if it is valid text; else the DataError says what it is."""
    if not isinstance(value, str):
        raise DataError(f"{name} is {kind_of(value)}, not a text")
    if fault := surrogate_fault(value):
        raise DataError(f"{name} {fault}")
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
    """Marks a method of a provider whose values lie from 0 to 1, so that intervals of means stay in that range."""
    method.range = (0.0, 1.0)  # type: ignore[attr-defined]
    return method


def lower_is_better(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Marks a method of a provider whose high values are bad, such as toxicity."""
    method.higher_is_better = False  # type: ignore[attr-defined]
    return method


class _MethodRequest(Request):
    """One call of a method marked with `@asks`."""

    def __init__(
        self, method: Callable[..., Any], signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        (_, provider), *arguments = bound.arguments.items()
        if not isinstance(provider, RemoteProvider):
            raise SpecError(f"{method.__qualname__} asks, and so must be a method of a RemoteProvider")
        policy = provider._policy
        super().__init__(
            method.__name__,
            provider._replies,
            lasting=provider.version is not None,
            rate=policy.rate_limit,
            token_rate=provider._token_limit,
            policy=policy,
        )
        self._call = functools.partial(method, *args, **kwargs)
        self._provider, self._arguments = provider, dict(arguments)

    @property
    def key(self) -> bytes:
        request = {
            **self._provider.spec,
            "code": self._provider._code,
            "method": self.name,
            "arguments": self._arguments,
        }
        try:
            return identity.digest(request)
        except DataError as error:
            raise TaskError(f"{self.name}: an argument cannot be stored as data: {error}") from None

    def send(self) -> Reply:
        """Calls the method once, within the timeout."""
        try:
            if self._provider.timeout is None:
                return _as_reply(self._call())
            return _as_reply(within(self._provider.timeout, self._call))
        except Overdue:
            raise self._overdue() from None

    async def send_async(self) -> Reply:
        limit = asyncio.timeout(self._provider.timeout)
        try:
            async with limit:
                return _as_reply(await self._call())
        except TimeoutError:
            if limit.expired():
                raise self._overdue() from None
            raise

    @property
    def size(self) -> tuple[int, int | None]:
        return len(str(self._arguments)), None

    def describe(self, error: BaseException) -> str:
        return self._provider._redact_text(str(error))

    @property
    def spent(self) -> Spending:
        return self._provider.spent

    def _make(self) -> bytes:
        try:
            return super()._make()
        except Exception as error:
            self._provider._redact_error(error)
            raise

    async def _make_async(self) -> bytes:
        try:
            return await super()._make_async()
        except Exception as error:
            self._provider._redact_error(error)
            raise

    def _overdue(self) -> TransientError:
        return TransientError(f"{self.name} had no reply within {self._provider.timeout:g} s", code="timeout")


def _as_reply(result: Any) -> Reply:
    return result if isinstance(result, Reply) else Reply(result)


def _parameters(kind: type) -> list[inspect.Parameter]:
    """The parameters of the constructor of a provider, if it has one."""
    known = {field.name for field in dataclasses.fields(kind) if field.init} if dataclasses.is_dataclass(kind) else None
    parameters = list(inspect.signature(kind).parameters.values())
    for parameter in parameters if known is None else ():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            shown = parameter.replace(annotation=parameter.empty)
            what = f"what its constructor was given as {shown} is unknown; name its arguments"
            raise SpecError(f"{kind.__qualname__} cannot be stored: {what}")
    return [parameter for parameter in parameters if known is None or parameter.name in known]


_NOTHING: Final = object()


def _values(provider: Provider) -> dict[str, Any]:
    """The attributes of a provider, without cached properties, which follow from the others."""
    kind = type(provider)
    return {n: v for n, v in vars(provider).items() if not isinstance(getattr(kind, n, None), cached_property)}


_replies_in_memory = Replies()
