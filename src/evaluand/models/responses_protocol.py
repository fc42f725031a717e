"""OpenAI's Responses: questions → bodies, answers → completions.

Nothing is stored at the server: each request holds the whole conversation. Source:
platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluand.core.errors import kind_of
from evaluand.engine.http import BadAnswer
from evaluand.models.chat_protocol import detail_of, excerpt, read_logprobs, text_or_none, tokens_of
from evaluand.models.completion import Completion, ToolCall
from evaluand.models.question import Question, Settings, without_none

PATH: Final = "/responses"

_REASONS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_LOGPROBS: Final = "message.output_text.logprobs"


def write_body(question: Question, settings: Settings) -> dict[str, Any]:
    """The body of a request."""
    form = question.form
    effort = settings.reasoning_effort
    body: dict[str, Any] = {
        "model": settings.name,
        "input": [item for message in question.messages for item in _write_message(message)],
        "temperature": settings.temperature,
        "max_output_tokens": settings.max_tokens,
        "reasoning": None if effort is None else {"effort": effort},
        "store": False,
    }
    if question.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": False,
            }
            for tool in question.tools
        ]
    if question.required_tool:
        body["tool_choice"] = {"type": "function", "name": question.required_tool}
    if form is not None and form.schema is None:
        body["text"] = {"format": {"type": "json_object"}}
    elif form is not None:
        described = {"name": form.name, "schema": form.schema, "strict": form.is_strict}
        body["text"] = {"format": {"type": "json_schema", **described}}
    if question.logprobs:
        body |= {"include": [_LOGPROBS], "top_logprobs": question.logprobs}
    return without_none(body) | dict(settings.parameters or {})


def read_answer(answer: Any) -> Completion:
    """The completion in an answer.

    Raises:
        BadAnswer: there is none.
    """
    if not isinstance(answer, dict):
        raise BadAnswer(f"the answer is {kind_of(answer)}, not a response", code="form")
    if answer.get("error") or answer.get("status") in ("failed", "cancelled"):
        raise BadAnswer(f"the answer is an error: {excerpt(answer.get('error') or answer['status'])}", code="error")
    output = answer.get("output")
    if not isinstance(output, list):
        raise BadAnswer(f"the answer has no output: {excerpt(answer)}", code="choices")
    parts = list(_parts(output))
    calls = tuple(_tool_calls(output))
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    refusals = [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
    logprobs = [token for part in parts for token in read_logprobs(part.get("logprobs")) or ()]
    return Completion(
        "".join(texts),
        _finish_reason(answer, calls),
        text_or_none(answer.get("model")),
        *tokens_of(answer.get("usage"), "input_tokens", "output_tokens"),
        cached_tokens=detail_of(answer.get("usage"), "input_tokens_details", "cached_tokens"),
        reasoning_tokens=detail_of(answer.get("usage"), "output_tokens_details", "reasoning_tokens"),
        tool_calls=calls,
        refusal="".join(refusals) or None,
        logprobs=logprobs or None,
    )


STREAM: Final[Mapping[str, Any]] = {"stream": True}
"""Further fields of the body of a request for a streamed answer."""


class Stream:
    """Joins the events of a streamed answer; the last one contains the complete answer."""

    def __init__(self) -> None:
        self._answer: Any = None

    def add(self, event: Mapping[str, Any]) -> str:
        """The text that an event adds to the reply."""
        kind = event.get("type")
        if kind == "error":
            raise BadAnswer(f"the answer is an error: {excerpt(event)}", code="error")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self._answer = event.get("response")
        if kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            return str(event["delta"])
        return ""

    def end(self) -> Completion:
        """The completion.

        Raises:
            BadAnswer: the answer ended before its end, or is no reply.
        """
        if self._answer is None:
            raise BadAnswer("the answer ended before the reply was complete", code="incomplete")
        return read_answer(self._answer)


def _write_message(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The items for a message: the message, and the tool calls that it requests."""
    role, content = message["role"], message.get("content")
    if role == "tool":
        yield {"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": content}
        return
    if content:
        yield {"role": role, "content": [_write_part(part, role) for part in content] if _is_list(content) else content}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
        }


def _write_part(part: Mapping[str, Any], role: str) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", "text": part["text"]}
    if part["type"] == "image":
        return {"type": "input_image", "image_url": part["image"], "detail": "auto"}
    return dict(part)


def _is_list(content: Any) -> bool:
    return isinstance(content, list)


def _parts(output: list[Any]) -> Iterator[dict[str, Any]]:
    for item in output:
        if isinstance(item, dict) and item.get("type") == "message" and isinstance(item.get("content"), list):
            yield from (part for part in item["content"] if isinstance(part, dict))


def _tool_calls(output: list[Any]) -> Iterator[ToolCall]:
    for place, item in enumerate(output):
        if isinstance(item, dict) and item.get("type") == "function_call" and isinstance(item.get("name"), str):
            arguments = text_or_none(item.get("arguments")) or "{}"
            yield ToolCall(text_or_none(item.get("call_id")) or f"call_{place}", item["name"], arguments)


def _finish_reason(answer: Mapping[str, Any], calls: tuple[ToolCall, ...]) -> str | None:
    """Why the reply ended, in the words of chat completions."""
    if answer.get("status") != "incomplete":
        return "tool_calls" if calls else "stop"
    details = answer.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _REASONS.get(reason, reason) if isinstance(reason, str) else "incomplete"
