"""Language models behind any endpoint that speaks OpenAI's protocol: the one client of tasks and judges.

Which weights answer cannot be seen from here, so a model is pinned only by its declared `version`. A key is named by
its environment variable, which is read when a request is sent; the key itself is in no trace, message or file.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from os import PathLike
from threading import Lock
from typing import Any, Final, Literal

from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from evaluand.core import identity
from evaluand.core.errors import ParameterError, SpecError, TaskError, alternatives, kind_of
from evaluand.core.fingerprint import Identity
from evaluand.core.redaction import issued_in
from evaluand.core.secret_hosts import mark_origin
from evaluand.engine.budget import Budget
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.policy import Prices
from evaluand.engine.rate_limit import RateLimit
from evaluand.engine.token_limit import TokenLimit
from evaluand.models.account import current_prices
from evaluand.models.chat_request import NO_SEED, PROTOCOLS, ChatRequest
from evaluand.models.completion import Completion
from evaluand.models.endpoints import max_tokens_name, read_short_name
from evaluand.models.exchange import Exchange
from evaluand.models.messages import read_messages
from evaluand.models.prices import Price
from evaluand.models.question import Protocol, Question, Settings, without_none
from evaluand.models.reply_cache import Replies
from evaluand.models.requests import cache_of, shared_rate, shared_token_rate
from evaluand.models.streaming import TextStream
from evaluand.models.structured import Structure, Support, complete_structured
from evaluand.models.tools import Tool, read_tools
from evaluand.trace.tracer import Tracer
from evaluand.trace.tracers.no_op import NoOpTracer

_OWN: Final = (
    *("include", "input", "logprobs", "max_output_tokens", "max_tokens", "messages", "model", "n", "reasoning"),
    *("reasoning_effort", "response_format", "seed", "store", "stream", "stream_options", "temperature", "text"),
    *("tool_choice", "tools", "top_logprobs"),
)
_MOST_LOGPROBS: Final = 20
_WORDS: Final = {"protocol": (*PROTOCOLS,), "cut_off": ("fail", "keep"), "reasoning": ("apart", "graded")}
"""The words that some parameters may have."""


RETRIES: Final = 4
"""Further attempts of tasks and judges that ask a model, if the policy has no number."""


@dataclass(frozen=True)
class ChatModel:
    """A model behind an HTTP endpoint with the protocol of OpenAI: chat completions, or Responses.

    Each request is a span of the kind `llm` with model, parameters, tokens and finish reason. After a transient error
    (no connection, a timeout, 408, 425, 429, 5xx) a run repeats the request alone, by default 4 times, according to its
    `retries` and `backoff`. 401 stops the run, and any other 4xx fails the row.

    Args:
        url: the endpoint up to its version, such as `https://models.example/v1`.
        name: the name of the model there.
        version: identifies the weights and settings behind this name; raise it when they change. Without it, results
            are never reused automatically.
        api_key: the name of the environment variable that holds the key, such as `OPENAI_API_KEY`. If a file names it,
            the key is sent only to hosts that `evaluand secrets` allows.
        temperature: 0 for the likeliest reply; None leaves it to the server.
        max_tokens: the largest length of a reply; None leaves it to the server.
        seed: of the server's generator, for the first reply to a question; further samples and replications derive
            their own. Few servers then always reply the same.
        reasoning_effort: how long a reasoning model thinks: `low`, `medium`, `high`, or another word of the server.
        parameters: further parameters of each request, such as `{"top_p": 0.9}`.
        timeout: seconds after which a request is abandoned.
        cut_off: what happens to a reply cut off by `max_tokens`: `fail` the call, or `keep` the partial reply.
        protocol: `chat` for chat completions, which most services speak; `responses`, `anthropic` and `gemini` for
            OpenAI's Responses, Anthropic's Messages and Gemini's generateContent.
        reasoning: `apart` from the reply, in the trace; or `graded` as part of it.
        rate: how many requests may start in a period, such as `500/min`: shared by all models with the same url, name
            and rate in this process. A `RateLimit` is shared by the models that receive it.
        token_rate: how many tokens requests and replies may have in a period, such as `100_000/min`; shared in the same
            way. Before its reply, a request counts with its length and the usual length of replies.
        price: of a million tokens, such as `{"input": 0.25, "output": 2.00, "currency": "USD"}`; by default that of a
            table, see `evaluand.models.prices`. Without a price, the cost is unknown.
        cache: True caches replies in memory, but not in runs, so that their times and costs are real. A path caches
            them in runs too, and in a file if the model has a `version`. False caches nothing. Replies are not shared
            between replications of an example, or between attempts at a run or evaluation.

    Raises:
        ParameterError: lists all invalid parameters.

    Example:
        >>> ChatModel("http://127.0.0.1:8080/v1", "smollm2", version="135M-Q4")
        ChatModel(name='smollm2', version='135M-Q4')
        >>> ChatModel.of("openai/gpt-5-mini").url
        'https://api.openai.com/v1'
    """

    url: str = field(repr=False)
    name: str
    _: KW_ONLY
    version: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = field(default=0.0, repr=False)
    max_tokens: int | None = field(default=512, repr=False)
    seed: int | None = field(default=None, repr=False)
    reasoning_effort: str | None = field(default=None, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout: float = field(default=60.0, repr=False)
    cut_off: Literal["fail", "keep"] = field(default="fail", repr=False)
    protocol: Protocol = field(default="chat", repr=False)
    reasoning: Literal["apart", "graded"] = field(default="apart", repr=False)
    rate: SkipJsonSchema[RateLimit] | str | None = field(default=None, repr=False)
    token_rate: SkipJsonSchema[TokenLimit] | str | None = field(default=None, repr=False)
    price: Price | Mapping[str, Any] | None = field(default=None, repr=False)
    cache: SkipJsonSchema[Replies | PathLike[str]] | str | bool = field(default=True, repr=False)

    __pydantic_config__ = {"extra": "forbid", "arbitrary_types_allowed": True}  # noqa: RUF012

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Files may write a model as a text; see `of`."""
        return core_schema.no_info_before_validator_function(_read_short_or_report, handler(source))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return {"anyOf": [handler(schema), {"type": "string", "description": "PROVIDER/NAME or URL#NAME"}]}

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", mark_origin(self.url))
        if self.api_key is not None:
            object.__setattr__(self, "api_key", mark_origin(self.api_key))
        if faults := list(self._faults()):
            raise ParameterError(faults)
        object.__setattr__(self, "parameters", dict(self.parameters))
        object.__setattr__(self, "price", None if self.price is None else Price.read(self.price))

    @classmethod
    def of(cls, model: "ChatModel | str | Mapping[str, Any]") -> "ChatModel":
        """A model from `PROVIDER/NAME`, `URL#NAME`, or a mapping of its parameters.

        In a mapping, `model` may stand for `url`, `name` and `api_key`.

        Raises:
            SpecError: it names no model, or parameters are invalid; lists all of them.

        Example:
            >>> ChatModel.of({"model": "ollama/llama3.2", "version": "3b", "max_tokens": 64})
            ChatModel(name='llama3.2', version='3b')
        """
        if isinstance(model, ChatModel):
            return model
        if isinstance(model, str):
            return cls(**read_short_name(model))
        if not isinstance(model, Mapping):
            raise SpecError(f"a model is {kind_of(model)}; give PROVIDER/NAME, URL#NAME, or its url and name")
        given = _read_short(model)
        known = [each.name for each in fields(cls) if each.init]
        faults = [((name,), f"is no parameter{alternatives(name, known)}") for name in given if name not in known]
        faults += [((name,), "is missing") for name in ("url", "name") if name not in given]
        if faults:
            raise ParameterError(faults)
        return cls(**given)

    def __fingerprint__(self) -> Any:
        if self.version is None:
            raise TaskError(self._unpinned)
        return dict(self.spec)

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tracer: Tracer | None = None,
        *,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        schema: Any = None,
        logprobs: int = 0,
        sample: int = 0,
    ) -> Completion:
        """Request the model's reply to messages.

        Args:
            messages: the conversation, each message with `role` and `content`; see `evaluand.models.messages`.
            tracer: opens the span of each request.
            tools: functions or `Tool`s whose calls the model may request; they are not called here.
            schema: of the reply as data: a JSON Schema, a pydantic model, or a Python type; see `Completion.data`.
            logprobs: how many of the likeliest tokens to report at each position, at most 20; 0 for no probabilities.
            sample: the number of the repeat if the same question is asked several times; each is a separate request.

        Raises:
            TransientError: the request may succeed later.
            TaskTimeout: it took too long; transient for the tasks of this package.
            TaskError: the model refused, its answer has no reply, or the reply was cut off.
            SpecError: a tool or the schema cannot be sent.
        """
        return run_coroutine(
            self.complete_async(messages, tracer, tools=tools, schema=schema, logprobs=logprobs, sample=sample)
        )

    async def complete_async(
        self,
        messages: Sequence[Mapping[str, Any]],
        tracer: Tracer | None = None,
        *,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        schema: Any = None,
        logprobs: int = 0,
        sample: int = 0,
    ) -> Completion:
        """As `complete`, in an event loop."""
        question = self._question(messages, tools, logprobs)

        async def ask(question: Question) -> Completion:
            return await ChatRequest(self, question, tracer or NoOpTracer(), sample).complete()

        if schema is None:
            return await ask(question)
        return await complete_structured(question, Structure.of(schema), ask, self._support)

    def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        tracer: Tracer | None = None,
        *,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        logprobs: int = 0,
    ) -> TextStream:
        """Request the model's reply to messages, and get its text piece by piece, in an event loop.

        A stream is not cached, and not repeated after its first piece. Reasoning that a model writes into its text is
        among the pieces, and not in the text of the completion. Arguments and errors are those of `complete`.

        Example:
            >>> async def show(model, messages):
            ...     stream = model.stream(messages)
            ...     async for text in stream:
            ...         print(text, end="")
            ...     return stream.completion
        """
        question = self._question(messages, tools, logprobs)
        return TextStream(lambda give: ChatRequest(self, question, tracer or NoOpTracer(), give=give).complete())

    def check(self) -> None:
        """Raise a SpecError if no request can be made.

        The key is not set or must not be sent to this host, no HTTP client is installed, or the file of prices has
        faults.
        """
        self._exchange.check()
        if self.price is None:
            current_prices()

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._exchange.close()
        self._stream_exchange.close()

    def find_price(self, prices: Prices) -> Price | None:
        """The price of the model, its own or that of a table; None if it is unknown."""
        if isinstance(self.price, Price):
            return self.price
        is_usual = self.parameters.get("service_tier") in (None, "auto", "default")
        found: Price | None = prices.find(self.url, self.name) if is_usual else None
        return found

    def explain_unpriced(self, budget: Budget, prices: Prices) -> str:
        """The reason why a budget could not count the cost of its replies, and what to do; empty if it could."""
        price = self.find_price(prices)
        remedy = f"give it one, such as price: {{input: 0.25, output: 2.00, currency: {budget.currency}}}"
        if price is None:
            return budget.explain(f"the price of {self.name} is unknown", f"{remedy}, or list it in a file of prices")
        if price.currency != budget.currency:
            other = f"give a budget in {price.currency}, or the price in {budget.currency}, such as"
            return budget.explain(
                f"the price of {self.name} is in {price.currency}",
                f"{other} price: {{input: 0.25, output: 2.00, currency: {budget.currency}}}",
            )
        return ""

    @property
    def spec(self) -> Mapping[str, Any]:
        """The settings that affect the replies."""
        later = {"seed": self.seed, "reasoning_effort": self.reasoning_effort}  # absent where they are not set
        later |= {} if self.protocol == "chat" else {"protocol": self.protocol}
        later |= {} if self.reasoning == "apart" else {"reasoning": self.reasoning}
        return {
            "behaviour": 1 if self.seed is None else 2,  # a seed for each repeat
            "model": self.name,
            "version": self.version,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "parameters": self.parameters,
            "cut_off": self.cut_off,
        } | without_none(later)

    def identity(self, kind: str, **settings: Any) -> Identity:
        """The identity of a task that uses this model.

        Args:
            settings: further parts of the identity.
        """
        spec = {"kind": kind, "chat": dict(self.spec), **settings}
        parts = {name: identity.encode(value).decode() for name, value in {**self.spec, **settings}.items()}
        why = () if self.version is not None else (self._unpinned,)
        return Identity(spec, not why, why, parts)

    def _question(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool | Callable[..., Any]], logprobs: int
    ) -> Question:
        if type(logprobs) is not int or not 0 <= logprobs <= _MOST_LOGPROBS:
            raise SpecError(f"logprobs is {logprobs!r}; give an integer from 0 to {_MOST_LOGPROBS}")
        return Question(read_messages(messages), read_tools(tools), logprobs=logprobs)

    @property
    def address(self) -> str:
        """The endpoint without its query, which may hold a secret."""
        return self.url.partition("?")[0].rstrip("/")

    @property
    def unpinned_address(self) -> str | None:
        """A hash of the address, which identifies a model without a declared version; None if it has one."""
        return None if self.version is not None else identity.digest(self.address).hex()

    @property
    def _unpinned(self) -> str:
        where = self.url.partition("?")[0]
        return f"{self.name}: what answers at {where} cannot be seen from here; declare the model's `version` to pin it"

    @cached_property
    def _exchange(self) -> Exchange:
        return self._exchange_of(is_stream=False)

    @cached_property
    def _stream_exchange(self) -> Exchange:
        return self._exchange_of(is_stream=True)

    def _exchange_of(self, *, is_stream: bool) -> Exchange:
        protocol = PROTOCOLS[self.protocol]
        path = protocol.path_of(self.name, is_stream=is_stream)
        return Exchange(self.url, path, self.api_key, self.timeout, protocol.headers_of)

    @cached_property
    def _settings(self) -> Settings:
        return Settings(
            self.name,
            self.temperature,
            self.max_tokens,
            self.seed,
            self.reasoning_effort,
            self.parameters,
            max_tokens_name(self.url),
        )

    @cached_property
    def _rate(self) -> RateLimit | None:
        return shared_rate(self.rate, ChatModel, self.url, self.name)

    @cached_property
    def _token_rate(self) -> TokenLimit | None:
        return shared_token_rate(self.token_rate, ChatModel, self.url, self.name)

    @cached_property
    def _replies(self) -> Replies | None:
        with _sharing:
            in_memory = _replies_by_url.setdefault(self.url, Replies())
        return cache_of(self.cache, in_memory=in_memory)

    @cached_property
    def _support(self) -> Support:
        with _sharing:
            return _support_by_model.setdefault((self.url, self.name, self.protocol), Support())

    def _faults(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        if self.protocol in PROTOCOLS:
            try:
                _ = self._exchange
            except ParameterError as error:
                yield from error.faults
        if self.version is not None and not isinstance(self.version, str):
            yield ("version",), f'is {kind_of(self.version)}; give text in quotes, such as "{self.version}"'
        if not self.name:
            yield ("name",), "must not be empty; give the name of the model on the server"
        may_lack = self.max_tokens is None and self.protocol != "anthropic"
        if not may_lack and (type(self.max_tokens) is not int or self.max_tokens < 1):
            yield ("max_tokens",), f"is {self.max_tokens!r}; give an integer of at least 1"
        if self.seed is not None and type(self.seed) is not int:
            yield ("seed",), f"is {self.seed!r}; give an integer"
        elif self.seed is not None and self.protocol in NO_SEED:
            yield ("seed",), f"is unknown to the protocol {self.protocol}; leave it out"
        if not 0 < self.timeout < math.inf:
            yield ("timeout",), f"is {self.timeout!r}; give seconds above 0"
        for name, words in _WORDS.items():
            if getattr(self, name) not in words:
                yield (name,), f"is {getattr(self, name)!r}; give {' or '.join(map(repr, words))}"
        for name, kind in (("rate", RateLimit), ("token_rate", TokenLimit)):
            if not isinstance(getattr(self, name), kind | str | None):
                yield (name,), f"is {getattr(self, name)!r}; give a {kind.__name__}, or a text such as 5000/h"
        for name, part in (("rate", "_rate"), ("token_rate", "_token_rate"), ("cache", "_replies")):
            try:
                getattr(self, part)
            except SpecError as error:
                yield (name,), str(error).removeprefix(f"{name} ")
        if self.price is not None:
            try:
                Price.read(self.price)
            except ParameterError as error:
                yield from ((("price", *place), message) for place, message in error.faults)
        if place := issued_in(self.parameters, "parameters"):
            yield tuple(place.split(".")), "would be stored; name the variable that holds the key as api_key"
        for name in filter(self.parameters.__contains__, _OWN):
            yield ("parameters", name), "must not be set here: it has its own parameter, or the task sets it"


def _read_short_or_report(model: Any) -> Any:
    """As `_read_short`, with a fault that keeps the place of the model in a file."""
    try:
        return _read_short(model)
    except SpecError as error:
        raise PydanticCustomError("model", "{message}", {"message": str(error)}) from None


def _read_short(model: Any) -> Any:
    """The parameters of a model where `PROVIDER/NAME` or `URL#NAME` stands for some of them; anything else as it is."""
    if isinstance(model, str):
        return read_short_name(model)
    if isinstance(model, Mapping) and isinstance(model.get("model"), str):
        rest = {name: value for name, value in model.items() if name != "model"}
        return read_short_name(model["model"]) | rest
    return dict(model) if isinstance(model, Mapping) else model


_sharing = Lock()
_replies_by_url: Final[dict[str, Replies]] = {}
_support_by_model: Final[dict[tuple[str, str, str], Support]] = {}
