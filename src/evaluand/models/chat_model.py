"""Language models behind an OpenAI-compatible endpoint, as tasks and judges ask them: chat completions over HTTP.

What answers cannot be seen from here, so a model is pinned by nothing but its declared `version`. Its key is named, not
given: it is read from the environment when it is sent, and stands in no trace, message or file.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from evaluand.core.errors import ParameterError, TaskError, TaskTimeout, kind_of
from evaluand.core.fingerprint import Identity
from evaluand.core.identity import encode
from evaluand.core.redaction import issued_in
from evaluand.core.secret_hosts import is_of_file, mark_origin
from evaluand.engine.event_loop import run_coroutine
from evaluand.engine.http import BadAnswer, BadRequest, HttpClient
from evaluand.engine.repeats import repeat_request
from evaluand.trace.tracer import Tracer

_PATH: Final = "/chat/completions"
_OWN: Final = ("max_tokens", "messages", "model", "n", "stream", "temperature")


class Completion(NamedTuple):
    """The answer of a model.

    Attributes:
        text: its reply.
        finish_reason: why it ended: `stop`, `length` if it was cut off, or another value of the server.
        model: the model that answered, as reported by the server.
        input_tokens: how many it read, and `output_tokens` how many it wrote; None if the server does not report them.
    """

    text: str
    finish_reason: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class CutOff(TaskError):
    """The reply was cut off by `max_tokens`."""


@dataclass(frozen=True)
class ChatModel:
    """A model behind an HTTP endpoint with the protocol of OpenAI's chat completions.

    Each request is a span of the kind `llm` with model, parameters, tokens and finish reason. After a transient error
    (no connection, a timeout, 408, 425, 429, 5xx) a run repeats the request alone, by default 4 times, according to its
    `retries` and `backoff`; with `processes`, and in async tasks, it repeats the complete call. 401 stops the run, and
    any other 4xx fails the row.

    Args:
        url: the endpoint up to its version, such as `https://models.example/v1`.
        name: the name of the model there.
        version: identifies the weights and settings behind this name; raise it when they change. Without it, results
            are never reused automatically.
        api_key: the name of the environment variable that holds the key, such as `OPENAI_API_KEY`. If a file names it,
            the key is sent only to hosts that `evaluand secrets` allows.
        temperature: 0 for the likeliest reply; None leaves it to the server.
        max_tokens: the largest length of a reply; None leaves it to the server.
        parameters: further parameters of each request, such as `{"top_p": 0.9}`.
        timeout: seconds after which a request is abandoned.
        cut_off: what happens to a reply cut off by `max_tokens`: `fail` the call, or `keep` the partial reply.

    Raises:
        ParameterError: lists all invalid parameters.

    Example:
        >>> ChatModel("http://127.0.0.1:8080/v1", "smollm2", version="135M-Q4")
        ChatModel(name='smollm2', version='135M-Q4')
    """

    url: str = field(repr=False)
    name: str
    _: KW_ONLY
    version: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = field(default=0.0, repr=False)
    max_tokens: int | None = field(default=512, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout: float = field(default=60.0, repr=False)
    cut_off: Literal["fail", "keep"] = field(default="fail", repr=False)

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", mark_origin(self.url))
        if self.api_key is not None:
            object.__setattr__(self, "api_key", mark_origin(self.api_key))
        if faults := list(self._faults()):
            raise ParameterError(faults)
        object.__setattr__(self, "parameters", dict(self.parameters))

    def __fingerprint__(self) -> Any:
        if self.version is None:
            raise TaskError(self._unpinned)
        return dict(self.spec)

    def complete(self, messages: Sequence[Mapping[str, str]], tracer: Tracer) -> Completion:
        """Request the model's reply to messages, in a new span.

        Args:
            messages: the conversation, each message with `role` and `content`.
            tracer: opens the span.

        Raises:
            TransientError: the request may succeed later.
            TaskTimeout: it took too long; transient for the tasks of this package.
            TaskError: the model refused, the answer holds no reply, or the reply was cut off.
        """
        conversation = [dict(message) for message in messages]
        return repeat_request(lambda: self._complete_once(conversation, tracer))

    def _complete_once(self, messages: list[dict[str, str]], tracer: Tracer) -> Completion:
        settings = {"model": self.name, "temperature": self.temperature, "max_tokens": self.max_tokens}
        attributes: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        with tracer.span("chat", kind="llm", input=messages, **attributes) as span:
            span.set(**self.parameters)
            answer = run_coroutine(self._answer({"messages": messages}))
            completion = _completion(answer)
            reported = {
                "response_model": completion.model,
                "finish_reasons": completion.finish_reason and [completion.finish_reason],
                "input_tokens": completion.input_tokens,
                "output_tokens": completion.output_tokens,
            }
            span.set(**{name: value for name, value in reported.items() if value is not None})
            span.output = completion.text
            if completion.finish_reason == "length" and self.cut_off == "fail":
                limit = f" after {self.max_tokens} tokens" if self.max_tokens is not None else ""
                remedy = "raise max_tokens, or set cut_off: keep to use the partial reply"
                raise CutOff(f"the reply was cut off{limit}; {remedy}", code="length")
        return completion

    def check(self) -> None:
        """Raise a SpecError if no request can be made.

        The key is not set or must not be sent to this host, or no HTTP client is installed.
        """
        try:
            self._exchange.check()
        except ParameterError as error:
            raise ParameterError([(("api_key",), message) for _, message in error.faults]) from None

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._exchange.close()

    @property
    def spec(self) -> Mapping[str, Any]:
        """The settings that affect the replies."""
        return {
            "behaviour": 1,
            "model": self.name,
            "version": self.version,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "parameters": self.parameters,
            "cut_off": self.cut_off,
        }

    def identity(self, kind: str, **settings: Any) -> Identity:
        """The identity of a task that uses this model.

        Args:
            settings: further parts of the identity.
        """
        spec = {"kind": kind, "chat": dict(self.spec), **settings}
        parts = {name: encode(value).decode() for name, value in {**self.spec, **settings}.items()}
        why = () if self.version is not None else (self._unpinned,)
        return Identity(spec, not why, why, parts)

    @property
    def _unpinned(self) -> str:
        where = self.url.partition("?")[0]
        return f"{self.name}: what answers at {where} cannot be seen from here; declare the model's `version` to pin it"

    @cached_property
    def _exchange(self) -> HttpClient:
        base, mark, query = self.url.partition("?")
        base = base.rstrip("/")
        url = (base if base.endswith(_PATH) else base + _PATH) + mark + query
        headers = {"Authorization": f"Bearer ${{{self.api_key}}}"} if self.api_key else {}
        return HttpClient(url, "POST", headers, of_file=is_of_file(self.url, self.api_key))

    async def _answer(self, content_of: Mapping[str, Any]) -> Any:
        settings = {"model": self.name, **content_of, "temperature": self.temperature, "max_tokens": self.max_tokens}
        body = {name: value for name, value in settings.items() if value is not None} | dict(self.parameters)
        try:
            content = json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise TaskError(f"the request cannot be written as JSON: {error}", code="request") from None
        try:
            async with asyncio.timeout(self.timeout):
                answer = await self._exchange.ask(content=content, headers={"Content-Type": "application/json"})
        except TimeoutError:
            raise TaskTimeout(f"the model took longer than {self.timeout:g} s", code="timeout") from None
        except BadRequest as error:
            error.stops = error.code == "401"  # every other row would fail too
            raise
        self._exchange.check_output(answer)
        return answer

    def _faults(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        if self.api_key is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.api_key, re.ASCII):
            # without the value, which may be the key itself
            yield (
                ("api_key",),
                "must be the name of the environment variable that holds the key, such as OPENAI_API_KEY",
            )
        else:
            try:
                _ = self._exchange
            except ParameterError as error:
                yield from error.faults
        if not self.name:
            yield ("name",), "must not be empty; give the name of the model on the server"
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 1):
            yield ("max_tokens",), f"is {self.max_tokens!r}; give an integer of at least 1"
        if not self.timeout > 0:
            yield ("timeout",), f"is {self.timeout!r}; give seconds above 0"
        if self.cut_off not in ("fail", "keep"):
            yield ("cut_off",), f"is {self.cut_off!r}; give 'fail' or 'keep'"
        if place := issued_in(self.parameters, "parameters"):
            yield tuple(place.split(".")), "would be stored; name the variable that holds the key as api_key"
        for name in _OWN:
            if name in self.parameters:
                yield ("parameters", name), "must not be set here: it has its own parameter, or the task sets it"


def _completion(answer: Any) -> Completion:
    """Read the reply from an answer."""
    if not isinstance(answer, dict):
        raise BadAnswer(f"the answer is {kind_of(answer)}, not a chat completion", code="form")
    if answer.get("error"):
        raise BadAnswer(f"the answer is an error: {_excerpt(answer['error'])}", code="error")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        found = "an empty list of choices" if choices == [] else "no choices"
        raise BadAnswer(f"the answer has {found}: {_excerpt(answer)}", code="choices")
    message, reason = choices[0].get("message"), choices[0].get("finish_reason")
    text = message.get("content") if isinstance(message, dict) else None
    if reason == "content_filter":
        raise BadAnswer("the reply was withheld by the server (finish_reason content_filter)", code="content_filter")
    if not isinstance(text, str):
        raise BadAnswer(f"the reply has no text (finish_reason {reason}): {_excerpt(message)}", code="form")
    usage = answer.get("usage") if isinstance(answer.get("usage"), dict) else {}
    assert isinstance(usage, dict)
    return Completion(
        text,
        reason if isinstance(reason, str) else None,
        answer["model"] if isinstance(answer.get("model"), str) else None,
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def _excerpt(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None
