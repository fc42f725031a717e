"""Language models behind an OpenAI-compatible endpoint, as tasks ask them: chat completions over HTTP.

What answers cannot be seen from here, so a model is pinned by nothing but its declared `version`. Its key is named, not
given: it is read from the environment when it is sent, and stands in no trace, message or file.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar

from evaluand.core.errors import ParameterError, TaskError, TaskTimeout, kind_of
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.identity import encode
from evaluand.engine.http import BadAnswer, BadRequest, HttpClient
from evaluand.run.task import Input, Output, Task
from evaluand.trace.tracer import Tracer

_T = TypeVar("_T")

_PATH: Final = "/chat/completions"
_OWN: Final = ("max_tokens", "messages", "model", "n", "stream", "temperature")


class Completion(NamedTuple):
    """What a model answered.

    Attributes:
        text: its reply.
        finish_reason: why it ended: `stop`, `length` where it was cut off, or what else the server tells.
        model: what the server says answered.
        input_tokens: how many it read, and `output_tokens` how many it wrote; None where the server does not tell.
    """

    text: str
    finish_reason: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class CutOff(TaskError):
    """The reply was not finished when `max_tokens` were written."""


@dataclass(frozen=True)
class ChatModel:
    """A model that is asked over HTTP by the protocol of OpenAI's chat completions.

    Each request is a span of the kind `llm` with model, parameters, tokens and finish reason. What may pass (no
    connection, a timeout, 408, 425, 429, 5xx) is tried again as the run's `retries` and `backoff` say, with the whole
    call that it is part of; 401 stops the run, and any other 4xx fails the row.

    Args:
        url: the endpoint up to its version, such as `https://models.example/v1`.
        name: what the model is called there.
        version: stands for the weights and settings that answer by this name; raise it when they change. Without,
            results are never reused by themselves.
        api_key: the name of the environment variable that holds the key, such as `OPENAI_API_KEY`.
        temperature: 0 for the likeliest reply; None leaves it to the server.
        max_tokens: how long a reply may be; None leaves it to the server.
        parameters: whatever else is sent with each request, such as `{"top_p": 0.9}`.
        timeout: seconds until a request is given up.
        cut_off: what a reply does that `max_tokens` has cut off: `fail` the call, or `keep` what there is.

    Raises:
        ParameterError: a parameter cannot be as it is; all of them at once.

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
        if faults := list(self._faults()):
            raise ParameterError(faults)
        object.__setattr__(self, "parameters", dict(self.parameters))

    def __fingerprint__(self) -> Any:
        if self.version is None:
            raise TaskError(self._unpinned)
        return dict(self.spec)

    def complete(self, messages: Sequence[Mapping[str, str]], tracer: Tracer) -> Completion:
        """The model's reply to messages, asked in a span of its own.

        Args:
            messages: what was said, each with `role` and `content`.
            tracer: where the span is opened.

        Raises:
            TransientError: the model may answer another time.
            TaskTimeout: it took too long; transient for the tasks of this package.
            TaskError: it refuses, what it gives is no reply, or the reply was cut off.
        """
        messages = [dict(message) for message in messages]
        settings = {"model": self.name, "temperature": self.temperature, "max_tokens": self.max_tokens}
        given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        with tracer.span("chat", kind="llm", input=messages, **given) as span:
            span.set(**self.parameters)
            answer = _finished(self._answer({"messages": messages}))
            completion = _completion(answer)
            told = {
                "response_model": completion.model,
                "finish_reasons": completion.finish_reason and [completion.finish_reason],
                "input_tokens": completion.input_tokens,
                "output_tokens": completion.output_tokens,
            }
            span.set(**{name: value for name, value in told.items() if value is not None})
            span.output = completion.text
            if completion.finish_reason == "length" and self.cut_off == "fail":
                limit = f" after {self.max_tokens} tokens" if self.max_tokens is not None else ""
                remedy = "raise max_tokens, or say cut_off: keep to take what there is"
                raise CutOff(f"the reply was cut off{limit}; {remedy}", code="length")
        return completion

    def check(self) -> None:
        """Raises a SpecError where nothing can be asked: the key is not set, or no HTTP client is installed."""
        try:
            self._exchange.check()
        except ParameterError as error:
            raise ParameterError([(("api_key",), told) for _, told in error.faults]) from None

    @property
    def spec(self) -> Mapping[str, Any]:
        """What of the model changes its replies, as far as that is known here."""
        return {
            "behaviour": 1,
            "model": self.name,
            "version": self.version,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "parameters": self.parameters,
            "cut_off": self.cut_off,
        }

    def identity(self, kind: str, **told: Any) -> Identity:
        """The identity of a task that asks this model.

        Args:
            kind: the kind of the task.
            told: what else it is made of.
        """
        spec = {"kind": kind, "chat": dict(self.spec), **told}
        parts = {name: encode(value).decode() for name, value in {**self.spec, **told}.items()}
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
        return HttpClient(url, "POST", {"Authorization": f"Bearer ${{{self.api_key}}}"} if self.api_key else {})

    async def _answer(self, asked: Mapping[str, Any]) -> Any:
        told = {"model": self.name, **asked, "temperature": self.temperature, "max_tokens": self.max_tokens}
        body = {name: value for name, value in told.items() if value is not None} | dict(self.parameters)
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
            error.stops = error.code == "401"  # no other row would be answered
            raise
        self._exchange.check_output(answer)
        return answer

    def _faults(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        if self.api_key is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.api_key, re.ASCII):
            told = "give the name of the environment variable that holds the key, such as OPENAI_API_KEY"
            yield ("api_key",), f"is no such name; {told}"  # it may be the key itself
        else:
            try:
                _ = self._exchange
            except ParameterError as error:
                yield from error.faults
        if not self.name:
            yield ("name",), "is empty; give the name under which the server knows the model"
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 1):
            yield ("max_tokens",), f"is {self.max_tokens!r}; give a whole number of at least 1"
        if not self.timeout > 0:
            yield ("timeout",), f"is {self.timeout!r}; give seconds above 0"
        if self.cut_off not in ("fail", "keep"):
            yield ("cut_off",), f"is {self.cut_off!r}; give 'fail' or 'keep'"
        for name in _OWN:
            if name in self.parameters:
                yield ("parameters", name), "is not for these; it has a parameter of its own, or is set by what asks"


class AskingTask(Task[Input, Output]):
    """A task that asks a `ChatModel`, which is its field `model`."""

    model: ChatModel
    kind: ClassVar[str]
    behaviour: ClassVar[int] = 1
    transient = ("TaskTimeout",)

    def prepare(self, dataset: Any) -> None:
        """Raises a SpecError where the model cannot be asked."""
        self.model.check()

    def identify(self) -> Identity:
        if not type(self).__module__.startswith("evaluand.run.tasks."):  # a subclass may do otherwise
            return code_identity("task", self, self.name)
        return self.model.identity(self.kind, **self._told)

    @property
    def _told(self) -> dict[str, Any]:
        """What beside the model the answers depend on."""
        return {}


def _completion(answer: Any) -> Completion:
    """The reply that an answer holds.

    Raises:
        BadAnswer: it holds none; says what it holds.
    """
    if not isinstance(answer, dict):
        raise BadAnswer(f"the answer is {kind_of(answer)}, not a chat completion", code="form")
    if answer.get("error"):
        raise BadAnswer(f"the answer is an error: {_shown(answer['error'])}", code="error")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        told = "an empty list of choices" if choices == [] else "no choices"
        raise BadAnswer(f"the answer has {told}: {_shown(answer)}", code="choices")
    message, reason = choices[0].get("message"), choices[0].get("finish_reason")
    text = message.get("content") if isinstance(message, dict) else None
    if reason == "content_filter":
        raise BadAnswer("the reply was withheld by the server (finish_reason content_filter)", code="content_filter")
    if not isinstance(text, str):
        raise BadAnswer(f"the reply has no text (finish_reason {reason}): {_shown(message)}", code="form")
    usage = answer.get("usage") if isinstance(answer.get("usage"), dict) else {}
    assert isinstance(usage, dict)
    return Completion(
        text,
        reason if isinstance(reason, str) else None,
        answer["model"] if isinstance(answer.get("model"), str) else None,
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"


def _count(told: Any) -> int | None:
    return told if type(told) is int and 0 <= told < 2**63 else None


def _finished(asked: Coroutine[Any, Any, _T]) -> _T:
    """What a coroutine gives, run in the loop that all requests of this process share, and with it connections."""
    running = asyncio.run_coroutine_threadsafe(asked, _loop())
    try:
        return running.result()
    except BaseException:
        running.cancel()  # where it was not the request that failed
        raise


def _loop() -> asyncio.AbstractEventLoop:
    with _starting[0]:
        if not _running:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_run, args=(loop,), name="evaluand chat", daemon=True)
            thread.start()
            atexit.register(_stop, loop, thread)
            _running.append(loop)
        return _running[0]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_asyncgens())  # closes the connections
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1.0)


def _forget() -> None:
    """A forked process has none of the threads."""
    _starting[0] = threading.Lock()
    _running.clear()


_starting = [threading.Lock()]
_running: list[asyncio.AbstractEventLoop] = []
os.register_at_fork(after_in_child=_forget)
