"""OpenAI's Responses: questions → bodies, answers → completions.

Nothing is stored at the server: each request holds the whole conversation. Source:
platform.openai.com/docs/api-reference/responses
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluand.engine.http import BadAnswer
from evaluand.models.answers import (
    count_of,
    count_tokens,
    error_in,
    excerpt,
    mappings,
    member,
    read_logprobs,
    require_answer,
    text_or_none,
)
from evaluand.models.completion import Completion, ToolCall, assistant_message
from evaluand.models.endpoints import key_headers
from evaluand.models.messages import image_of
from evaluand.models.question import Question, Settings, without_none

_REASONS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_LOGPROBS: Final = "message.output_text.logprobs"
_THOUGHTS: Final = "reasoning.encrypted_content"
"""Without which reasoning cannot be sent back, as nothing is stored at the server."""


def path_of(name: str, *, is_stream: bool) -> str:
    """The path of requests to a model, below the version of the endpoint."""
    return "/responses"


headers_of = key_headers


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
    if question.tools and effort is not None:
        body["include"] = [_THOUGHTS]
    if question.required_tool:
        body["tool_choice"] = {"type": "function", "name": question.required_tool}
    if form is not None and form.schema is None:
        body["text"] = {"format": {"type": "json_object"}}
    elif form is not None:
        described = {"name": form.name, "schema": form.schema, "strict": form.is_strict}
        body["text"] = {"format": {"type": "json_schema", **described}}
    if question.logprobs:
        body |= {"include": [*body.get("include", ()), _LOGPROBS], "top_logprobs": question.logprobs}
    return without_none(body) | dict(settings.parameters or {})


def read_answer(answer: Any) -> Completion:
    """The completion in an answer.

    Raises:
        BadAnswer: there is none.
    """
    answer = require_answer(answer, "a response")
    if answer.get("status") in ("failed", "cancelled"):
        raise error_in(answer["status"])
    output = answer.get("output")
    if not isinstance(output, list):
        raise BadAnswer(f"the answer has no output: {excerpt(answer)}", code="choices")
    parts = [
        part for item in mappings(output) if item.get("type") == "message" for part in mappings(item.get("content"))
    ]
    calls = tuple(_tool_calls(output))
    refusals = [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
    text = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    usage, thoughts = answer.get("usage"), "\n".join(_thoughts(output))
    return Completion.of(
        text,
        reasoning=thoughts,
        logprobs=[token for part in parts for token in read_logprobs(part.get("logprobs")) or ()] or None,
        finish_reason=_finish_reason(answer, calls),
        model=text_or_none(answer.get("model")),
        tool_calls=calls,
        refusal="".join(refusals) or None,
        sent=assistant_message(text, calls, reasoning=thoughts, output=output),
        **count_tokens(
            count_of(usage, "input_tokens"),
            count_of(usage, "output_tokens"),
            total=count_of(usage, "total_tokens"),
            reasoning=count_of(usage, "output_tokens_details", "reasoning_tokens"),
            cached=count_of(usage, "input_tokens_details", "cached_tokens"),
            stored=count_of(usage, "input_tokens_details", "cache_write_tokens"),
        ),
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
            raise error_in(event.get("error") or event)
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self._answer = event.get("response")
        if kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            return str(event["delta"])
        return ""

    @property
    def has_ended(self) -> bool:
        return self._answer is not None

    def end(self) -> Completion:
        """The completion; raises what `read_answer` does."""
        return read_answer(self._answer)


def _write_message(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The items for a message: those of the server itself, or the message and the tool calls that it requests."""
    role, content = message["role"], message.get("content")
    if role == "tool":
        output = [_write_part(part, "user") for part in content] if isinstance(content, list) else content
        yield {"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}
        return
    if _is_list(message.get("output")):
        yield from _write_output(message["output"])
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


def _write_output(output: list[Any]) -> Iterator[dict[str, Any]]:
    """The items of an answer as they came; without ids and reasoning if its content is not among them."""
    is_whole = all(item.get("encrypted_content") for item in mappings(output) if item.get("type") == "reasoning")
    for item in mappings(output):
        if is_whole:
            yield dict(item)
        elif item.get("type") != "reasoning":
            yield {name: value for name, value in item.items() if name != "id"}


def _write_part(part: Mapping[str, Any], role: str) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", "text": part["text"]}
    if image := image_of(part):
        return {"type": "input_image", "image_url": image, "detail": "auto"}
    return dict(part)


def _is_list(content: Any) -> bool:
    return isinstance(content, list)


def _thoughts(output: list[Any]) -> Iterator[str]:
    """The reasoning of an answer, or its summary."""
    for item in mappings(output):
        for part in (*mappings(item.get("content")), *mappings(item.get("summary"))):
            if item.get("type") == "reasoning" and isinstance(part.get("text"), str):
                yield part["text"]


def _tool_calls(output: list[Any]) -> Iterator[ToolCall]:
    for number, item in enumerate(mappings(output)):
        if item.get("type") == "function_call" and isinstance(item.get("name"), str):
            arguments = text_or_none(item.get("arguments")) or "{}"
            yield ToolCall(text_or_none(item.get("call_id")) or f"call_{number}", item["name"], arguments)


def _finish_reason(answer: Mapping[str, Any], calls: tuple[ToolCall, ...]) -> str | None:
    """Why the reply ended, in the words of chat completions."""
    if answer.get("status") != "incomplete":
        return "tool_calls" if calls else "stop"
    reason = text_or_none(member(answer, "incomplete_details", "reason")) or "incomplete"
    return _REASONS.get(reason, reason)
