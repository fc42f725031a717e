"""The answer of a model, and the errors of answers that cost tokens but cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from evaluand.engine.http import BadAnswer
from evaluand.models.reasoning import join_reasoning, split_reasoning
from evaluand.models.words import ENDINGS, Ending

if TYPE_CHECKING:
    from evaluand.models.prices import Price


class ToolCall(NamedTuple):
    """A call of a tool that a model asks for.

    Attributes:
        id: of the call; its result refers to it.
        name: of the tool.
        text: the arguments as the model wrote them.
    """

    id: str
    name: str
    text: str

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments by name; None if the model wrote no JSON object.

        Example:
            >>> ToolCall("1", "add", '{"a": 1}').arguments, ToolCall("1", "add", "a = 1").arguments
            ({'a': 1}, None)
        """
        try:
            arguments = orjson.loads(self.text or "{}")
        except ValueError:
            return None
        return arguments if isinstance(arguments, dict) else None

    @property
    def as_sent(self) -> dict[str, Any]:
        """As part of a message of chat completions."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.text}}


def assistant_message(content: Any, calls: Sequence[ToolCall], **further: Any) -> dict[str, Any]:
    """A message of a model.

    Args:
        further: parts in the form of a protocol, which it sends back as they came; empty ones are left out.
    """
    parts = {"tool_calls": [call.as_sent for call in calls], **further}
    return {"role": "assistant", "content": content} | {name: value for name, value in parts.items() if value}


class Completion(NamedTuple):
    """The answer of a model.

    Attributes:
        text: its reply without the reasoning: what is graded.
        finish_reason: why it ended, in the words of the server: `stop`, `length`, `MAX_TOKENS`; see `ending`.
        model: the model that answered, as reported by the server.
        input_tokens: how many it read, and `output_tokens` how many it wrote, with its reasoning; None if the server
            does not report them. With a schema, those of all requests that were needed.
        data: the reply as data, if a schema was passed; None if it does not fit, for the reason in `fault`.
        tool_calls: the tool calls that it requests.
        refusal: the text with which it refused to reply.
        logprobs: for each token of `text` itself, `token`, its `logprob`, and those of the likeliest tokens there,
            `top`; None if they were not requested or are not reported.
        steps: with a schema, the number of requests of each step; see `evaluand.models.structured`.
        cost: of all requests, in `currency`; None if unknown. For a cached reply, the cost at the current price.
        is_cached: whether no request was made.
        fault: the reason why there is no `data`.
        cached_tokens: how many of `input_tokens` the server had read before, and `stored_tokens` how many it keeps for
            later at a price of their own; None if it does not report them.
        reasoning_tokens: how many of `output_tokens` the reasoning used; None if the server does not report them.
        reasoning: what the model thought, as far as the server shows it; None for none.
        sent: the message as the server sent it, with fields that are unknown here.
        notes: what is odd about the answer, such as counts that disagree.

    Example:
        >>> completion = Completion.of("<think>Lyon? No.</think>Paris", finish_reason="stop")
        >>> completion.text, completion.reasoning, completion.ending
        ('Paris', 'Lyon? No.', 'complete')
        >>> Completion("Paris").message
        {'role': 'assistant', 'content': 'Paris'}
    """

    text: str
    finish_reason: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    data: Any = None
    tool_calls: Sequence[ToolCall] = ()
    refusal: str | None = None
    logprobs: Sequence[Mapping[str, Any]] | None = None
    steps: Mapping[str, int] = {}
    cost: float | None = None
    currency: str | None = None
    is_cached: bool = False
    fault: str | None = None
    cached_tokens: int | None = None
    stored_tokens: int | None = None
    reasoning_tokens: int | None = None
    reasoning: str | None = None
    sent: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, written: str, *, reasoning: str = "", logprobs: Any = None, **fields: Any) -> Completion:
        """The completion of what a model has written.

        Args:
            written: the text, perhaps with reasoning in it.
            reasoning: what the server reports as reasoning beside it.
            logprobs: of all tokens of the text.
        """
        within, answer = split_reasoning(written)
        thoughts = [thought for thought in (reasoning.strip(), within) if thought]
        if within is not None:
            logprobs = logprobs and _tokens_of_end(logprobs, written, answer)
        return cls(answer, reasoning="\n".join(thoughts) or None, logprobs=logprobs, **fields)

    @property
    def ending(self) -> Ending:
        """How the reply ended: complete where the server does not say, failed where nobody knows its word."""
        if self.refusal is not None:
            return "refused"
        return "complete" if self.finish_reason is None else ENDINGS.get(self.finish_reason.casefold(), "failed")

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message of the conversation, as it came; the results of tool calls are appended after it."""
        if self.sent is not None:
            return dict(self.sent)
        return assistant_message(self.text, self.tool_calls)

    def with_reasoning(self) -> Completion:
        """The completion with its reasoning as part of the text, which is graded then."""
        return self._replace(text=join_reasoning(self.reasoning, self.text)) if self.reasoning else self

    def priced(self, price: Price | None) -> Completion:
        """The completion with its cost, as far as price and tokens are known."""
        read, written = self.input_tokens, self.output_tokens
        if price is None or ((read is None or written is None) and not price.is_free):
            return self
        cached, stored = self.cached_tokens or 0, self.stored_tokens or 0
        cost = price.cost(read or 0, written or 0, cached_tokens=cached, stored_tokens=stored)
        return self._replace(cost=cost, currency=price.currency)

    def usage(self, name: str) -> dict[str, Any]:
        """What is counted of the request.

        Args:
            name: of the model that was asked, for servers that do not say which one answered.
        """
        return self._used | {"model": self.model or name}

    @property
    def attributes(self) -> dict[str, Any]:
        """What the span of the request says of the answer, besides its text."""
        reported = {
            "response_model": self.model,
            "finish_reasons": self.finish_reason and [self.finish_reason],
            **self._used,
            "reasoning": self.reasoning,
            "cached": self.is_cached or None,
            "tool_calls": [call._asdict() for call in self.tool_calls] or None,
        }
        return {name: value for name, value in reported.items() if value is not None}

    @property
    def _used(self) -> dict[str, Any]:
        used = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_input_tokens": self.cached_tokens or None,
            "stored_input_tokens": self.stored_tokens or None,
            "reasoning_tokens": self.reasoning_tokens or None,
            "cost": self.cost,
            "currency": self.currency,
        }
        return {name: value for name, value in used.items() if value is not None}


def _tokens_of_end(tokens: Sequence[Mapping[str, Any]], written: str, answer: str) -> Sequence[Mapping[str, Any]]:
    """The tokens of a text that are part of the answer with which it ends."""
    length, number = len(written) - written.rfind(answer), len(tokens)
    while answer and number and length > 0:  # from the end: tokens of reasoning may stand for a part of a character
        number -= 1
        length -= len(tokens[number]["token"])
    return tokens[number:]


class UnusableReply(BadAnswer):
    """The answer of the model cost tokens, but has no usable reply.

    Attributes:
        code: `refusal`, `content_filter`, `ending`, `reasoning` or `empty`.
        completion: its answer.
    """

    def __init__(self, message: str, *, code: str, completion: Completion) -> None:
        super().__init__(message, code=code)
        self.completion = completion


class CutOff(UnusableReply):
    """The reply was cut off by `max_tokens`; its code is `length`."""


def require_usable(completion: Completion, *, max_tokens: int | None, keep_cut_off: bool) -> None:
    """Raise an UnusableReply for an answer without a usable reply.

    Args:
        keep_cut_off: whether a reply that was cut off is usable.
    """
    word = completion.finish_reason
    if completion.ending == "refused":
        said = completion.refusal or completion.text or f"finish_reason {word}"
        raise UnusableReply(f"the model refused: {said}", code="refusal", completion=completion)
    if completion.ending == "filtered":
        message = f"the reply was withheld by the server (finish_reason {word})"
        raise UnusableReply(message, code="content_filter", completion=completion)
    if completion.ending == "failed":
        what = "broke the reply off" if str(word).casefold() in ENDINGS else "ended the reply by a word unknown here"
        raise UnusableReply(f"the server {what}: {word!r} (finish_reason)", code="ending", completion=completion)
    if completion.ending == "cut" and not (keep_cut_off and completion.text):
        limit = f" after {max_tokens} tokens" if max_tokens is not None else ""
        if completion.reasoning_tokens:
            limit += f", {completion.reasoning_tokens} of them for reasoning"
        remedy = (
            "raise max_tokens" if keep_cut_off else "raise max_tokens, or set cut_off: keep to use the partial reply"
        )
        raise CutOff(f"the reply was cut off{limit}; {remedy}", code="length", completion=completion)
    if completion.text.strip() or completion.tool_calls:
        return
    if completion.reasoning:
        remedy = f"; raise max_tokens ({max_tokens}), or let the model think less" if max_tokens else ""
        raise UnusableReply(
            f"the reply has no answer after its reasoning{remedy}", code="reasoning", completion=completion
        )
    raise UnusableReply(f"the reply has no text (finish_reason {word})", code="empty", completion=completion)
