"""One request of a `ChatModel`: what it depends on, how it is sent and traced, and its usage."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from evaluand.core import identity
from evaluand.core.errors import DataError, TaskError, TaskTimeout, TransientError, warn
from evaluand.engine.budget import Budget
from evaluand.engine.http import BadAnswer
from evaluand.models import anthropic_protocol, chat_protocol, gemini_protocol, responses_protocol
from evaluand.models.account import current_prices
from evaluand.models.completion import Completion, ToolCall, UnusableReply, require_usable
from evaluand.models.exchange import write_content
from evaluand.models.messages import text_of_messages
from evaluand.models.question import Question, without_none
from evaluand.models.requests import Reply, Request, current_repetition
from evaluand.trace.tracer import Tracer

if TYPE_CHECKING:
    from evaluand.models.chat_model import ChatModel

PROTOCOLS: Final[Mapping[str, Any]] = {
    "chat": chat_protocol,
    "responses": responses_protocol,
    "anthropic": anthropic_protocol,
    "gemini": gemini_protocol,
}
NO_SEED: Final = ("responses", "anthropic")
"""The protocols that know no seed."""
_CACHED: Final = (
    *("text", "finish_reason", "model", "input_tokens", "output_tokens", "cached_tokens", "stored_tokens"),
    *("reasoning_tokens", "logprobs", "reasoning", "sent"),
)
_IMAGE_SIZE: Final = 3000  # characters of text with about as many tokens as an image


class ChatRequest(Request):
    """One request to a model.

    Args:
        give: called with each piece of a streamed reply.
    """

    def __init__(
        self,
        model: "ChatModel",
        question: Question,
        tracer: Tracer,
        sample: int = 0,
        give: Callable[[str], None] | None = None,
    ) -> None:
        self._repetition = current_repetition()
        is_cached = give is None and (model.cache is not True or not self._repetition.is_measured)
        super().__init__(
            model.name,
            model._replies if is_cached else None,
            lasting=model.version is not None,
            rate=model._rate,
            token_rate=model._token_rate,
        )
        self._model, self._question, self._tracer, self._sample = model, question, tracer, sample
        self._give = give
        self._protocol = PROTOCOLS[model.protocol]
        self._settings = model._settings.repeated(sample, self._repetition.replication)
        self._body = self._protocol.write_body(question, self._settings)
        if give is not None:
            self._body |= self._protocol.STREAM
        self._content = write_content(self._body)

    @property
    def size(self) -> tuple[int, int | None]:
        images = sum(part["type"] == "image" for message in self._question.messages for part in _parts(message))
        return len(text_of_messages(self._question.messages)) + _IMAGE_SIZE * images, self._model.max_tokens

    def explain_unpriced(self, budget: Budget) -> str:
        return self._model.explain_unpriced(budget, current_prices())

    @property
    def key(self) -> bytes:
        model = self._model
        where = model.url if model.version is None else None
        try:
            repeat = [self._sample, self._repetition.attempt, self._repetition.replication]
            return identity.digest([self._body, model.protocol, model.version, where, repeat])
        except DataError as error:
            raise TaskError(f"the request cannot be written as data: {error}", code="request") from None

    async def complete(self) -> Completion:
        """The completion; each attempt to request it is a span.

        Raises:
            TaskError: the request failed, or its reply is not usable.
        """
        value, new = await self.reply_async()
        completion = self._priced(_read_completion(value))._replace(is_cached=not new)
        if not new:
            with self._span() as span:
                self._record(span, completion)
        return self._graded(completion)

    async def send_async(self) -> Reply:
        model = self._model
        with self._span() as span:
            if self._give is None:
                answered = self._protocol.read_answer(await model._exchange.ask(self._content))
            else:
                answered = await self._receive(self._give)
            completion = self._priced(answered)
            self._record(span, completion)
            if completion.finish_reason is None:
                warn(f"{model.name}: the server does not say how its replies end; some may be incomplete")
            for note in completion.notes:
                warn(f"{model.name}: {note}")
            require_usable(self._graded(completion), max_tokens=model.max_tokens, keep_cut_off=model.cut_off == "keep")
        return Reply(_completion_value(completion), completion.usage(model.name))

    async def _receive(self, give: Callable[[str], None]) -> Completion:
        """The completion of a streamed answer; its pieces are passed on as they arrive."""
        exchange, stream, given = self._model._stream_exchange, self._protocol.Stream(), False

        def read(event: dict[str, Any]) -> None:
            nonlocal given
            if text := stream.add(event):
                given = True
                give(text)

        try:
            is_complete = await exchange.stream(self._content, read)
        except (TransientError, TaskTimeout) as error:
            if given:  # a repeat would give the same pieces again, or others
                raise BadAnswer(f"{error}; part of the reply had arrived", code=error.code) from None
            raise
        if not (is_complete or stream.has_ended):
            raise BadAnswer("the answer ended before the reply was complete", code="incomplete")
        completion: Completion = stream.end()
        exchange.check_reply(_completion_value(completion))
        return completion

    def _graded(self, completion: Completion) -> Completion:
        return completion.with_reasoning() if self._model.reasoning == "graded" else completion

    def _priced(self, completion: Completion) -> Completion:
        return completion.priced(self._model.find_price(current_prices()))

    def count_failure(self, error: BaseException) -> None:
        if isinstance(error, UnusableReply):
            self.count(requests=1, usage=error.completion.usage(self._model.name))
        else:
            super().count_failure(error)

    def _span(self) -> Any:
        model = self._model
        settings: dict[str, Any] = {
            "model": model.name,
            "temperature": model.temperature,
            "max_tokens": model.max_tokens,
            "seed": self._settings.seed,
            "reasoning_effort": model.reasoning_effort,
        }
        if self._question.tools:
            settings["tools"] = [tool.name for tool in self._question.tools]
        return self._tracer.span("chat", kind="llm", input=self._question.messages, **without_none(settings))

    def _record(self, span: Any, completion: Completion) -> None:
        """Writes the special settings of the request, and the answer, into a span."""
        span.set(**self._model.parameters)
        span.set(**completion.attributes)
        span.output = completion.text


def _parts(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def _completion_value(completion: Completion) -> dict[str, Any]:
    """A completion as the cache stores it."""
    value = {name: getattr(completion, name) for name in _CACHED}
    return value | {"tool_calls": [list(call) for call in completion.tool_calls]}


def _read_completion(value: Mapping[str, Any]) -> Completion:
    """The inverse of `_completion_value`."""
    return Completion(**{**value, "tool_calls": tuple(ToolCall(*call) for call in value["tool_calls"])})
