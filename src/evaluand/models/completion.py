"""The answer of a model, and the errors of answers that cost tokens but cannot be used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import orjson

from evaluand.engine.http import BadAnswer


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


class Completion(NamedTuple):
    """The answer of a model.

    Attributes:
        text: its reply.
        finish_reason: why it ended, in the words of the server: `stop`, `length`, `MAX_TOKENS`; see `ending`.
        model: the model that answered, as reported by the server.
        input_tokens: how many it read, and `output_tokens` how many it wrote; None if the server does not report them.
            With a schema, those of all requests that were needed.
        data: the reply as data, if a schema was passed; None if it does not fit, for the reason in `fault`.
        tool_calls: the tool calls that it requests.
        refusal: the text with which it refused to reply.
        logprobs: for each token of the reply its text, `token`, its `logprob`, and those of the likeliest tokens there,
            `top`; None if they were not requested or are not reported.
        steps: with a schema, the number of requests of each step; see `evaluand.models.structured`.
        cost: of all requests, in `currency`; None if unknown. For a cached reply, the cost at the current price.
        is_cached: whether no request was made.
        fault: the reason why there is no `data`.
        cached_tokens: how many of `input_tokens` the server had read before; None if it does not report them.
        reasoning_tokens: how many of `output_tokens` the reasoning used; None if the server does not report them.

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
    def ending(self) -> Ending:
        """How the reply ended: complete where the server does not say, broken where nobody knows its word."""
        return "complete" if self.finish_reason is None else _ENDINGS.get(self.finish_reason.casefold(), "broken")

    def without_reasoning(self) -> Completion:
        """The completion with the text after the reasoning with which the reply begins.

        Raises:
            UnusableReply: there is none.
        """
        answer = answer_of(self.text)
        completion = self._replace(text=answer or "")
        if answer is None:
            message = "the reply ends within its reasoning; raise max_tokens"
            raise UnusableReply(message, code="reasoning", completion=completion)
        if not answer:
            raise UnusableReply("the reply has no text after its reasoning", code="empty", completion=completion)
        return completion

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message of the conversation; the results of tool calls are appended after it."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
                for call in self.tool_calls
            ]
        return message


Ending = Literal["complete", "cut", "withheld", "broken"]

_ENDINGS: Final[Mapping[str, Ending]] = {
    **dict.fromkeys(("stop", "tool_calls", "function_call", "tool_use"), "complete"),
    **dict.fromkeys(("eos", "eos_token", "stop_sequence", "end_turn", "complete", "completed"), "complete"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "cut"),
    **dict.fromkeys(
        ("content_filter", "safety", "recitation", "blocklist", "prohibited_content", "sensitive"), "withheld"
    ),
}
"""The words of OpenAI, Anthropic, Cohere, Gemini, Mistral, Hugging Face and Zhipu, in lower case."""

REASONING: Final = re.compile(r"[<\[]\s*+(/?)\s*+(?:think|thinking|thoughts?|reasoning)\s*+[>\]]", re.IGNORECASE)
"""A tag with which reasoning in a reply begins or ends."""


def answer_of(text: str) -> str | None:
    """The text after the reasoning with which a reply begins; None if the reasoning has no end.

    Example:
        >>> answer_of("<think>Paris? No.</think> Lyon"), answer_of("<think>It could be Paris, or"), answer_of("Lyon")
        ('Lyon', None, 'Lyon')
    """
    answer = text
    while tag := REASONING.search(answer):
        begins = not tag[1] and not answer[: tag.start()].strip()
        if not begins and tag[0] != "</think>":  # before which some servers leave out the tag that begins
            break
        closing = next((later for later in REASONING.finditer(answer, tag.start()) if later[1]), None)
        if closing is None:
            return None
        answer = answer[closing.end() :].strip()
    return answer


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
    if completion.refusal is not None:
        raise UnusableReply(f"the model refused: {completion.refusal}", code="refusal", completion=completion)
    if completion.ending == "withheld":
        message = f"the reply was withheld by the server (finish_reason {completion.finish_reason})"
        raise UnusableReply(message, code="content_filter", completion=completion)
    if completion.ending == "broken":
        message = f"the server broke the reply off, or says so in words unknown here: {completion.finish_reason!r}"
        raise UnusableReply(f"{message} (finish_reason)", code="ending", completion=completion)
    if completion.ending == "cut" and not keep_cut_off:
        limit = f" after {max_tokens} tokens" if max_tokens is not None else ""
        if completion.reasoning_tokens:
            limit += f", {completion.reasoning_tokens} of them for reasoning"
        remedy = "raise max_tokens, or set cut_off: keep to use the partial reply"
        raise CutOff(f"the reply was cut off{limit}; {remedy}", code="length", completion=completion)
    if not completion.text.strip() and not completion.tool_calls:
        message = f"the reply has no text (finish_reason {completion.finish_reason})"
        raise UnusableReply(message, code="empty", completion=completion)
