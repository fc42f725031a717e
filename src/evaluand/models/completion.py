"""What a model answers, and the errors of answers that were paid for and cannot be used."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from evaluand.engine.http import BadAnswer


class ToolCall(NamedTuple):
    """A call of a tool that a model asks for.

    Attributes:
        id: to which the result refers.
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


class Completion(NamedTuple):
    """The answer of a model.

    Attributes:
        text: its reply.
        finish_reason: why it ended: `stop`, `length` if it was cut off, `tool_calls`, `content_filter`, or another
            value of the server.
        model: the model that answered, as reported by the server.
        input_tokens: how many it read, and `output_tokens` how many it wrote; None if the server does not report them.
            Those of all requests that structured output took.
        data: the reply as data, if a schema was given; None if it does not fit, for the reason in `fault`.
        tool_calls: the calls of tools that it asks for.
        refusal: what it said instead of a reply.
        logprobs: for each token of the reply its text, `token`, its `logprob`, and those of the likeliest tokens there,
            `top`; None if they were not asked for or are not reported.
        steps: the requests that structured output took, by step; see `evaluand.models.structured`.
        cost: of all requests, in `currency`; None if unknown. Of a reply from the cache, what it would cost now.
        is_cached: whether no request was made.
        fault: why there is no `data`.
        cached_tokens: how many of `input_tokens` the server had read before; None if it does not report them.
        reasoning_tokens: how many of `output_tokens` the model thought with before its reply; None likewise.

    Example:
        >>> completion = Completion("Paris", "stop")
        >>> completion.text, completion.message
        ('Paris', {'role': 'assistant', 'content': 'Paris'})
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
    reasoning_tokens: int | None = None

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message of the conversation, to which the results of tools follow."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
                for call in self.tool_calls
            ]
        return message


class UnusableReply(BadAnswer):
    """The model answered, and was paid, with something that is no reply.

    Attributes:
        code: `refusal`, `content_filter` or `empty`.
        completion: its answer.
    """

    def __init__(self, message: str, *, code: str, completion: Completion) -> None:
        super().__init__(message, code=code)
        self.completion = completion


class CutOff(UnusableReply):
    """The reply was cut off by `max_tokens`; its code is `length`."""


def require_usable(completion: Completion, *, max_tokens: int | None, keep_cut_off: bool) -> None:
    """Raise an UnusableReply for an answer that is no reply.

    Args:
        keep_cut_off: whether a reply that was cut off is one.
    """
    if completion.refusal is not None:
        raise UnusableReply(f"the model refused: {completion.refusal}", code="refusal", completion=completion)
    if completion.finish_reason == "content_filter":
        message = "the reply was withheld by the server (finish_reason content_filter)"
        raise UnusableReply(message, code="content_filter", completion=completion)
    if completion.finish_reason == "length" and not keep_cut_off:
        limit = f" after {max_tokens} tokens" if max_tokens is not None else ""
        if completion.reasoning_tokens:
            limit += f", {completion.reasoning_tokens} of them for reasoning"
        remedy = "raise max_tokens, or set cut_off: keep to use the partial reply"
        raise CutOff(f"the reply was cut off{limit}; {remedy}", code="length", completion=completion)
    if not completion.text.strip() and not completion.tool_calls:
        message = f"the reply has no text (finish_reason {completion.finish_reason})"
        raise UnusableReply(message, code="empty", completion=completion)
