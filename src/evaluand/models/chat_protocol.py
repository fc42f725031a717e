"""OpenAI's chat completions, which most servers speak: questions → bodies, answers → completions.

Source: platform.openai.com/docs/api-reference/chat
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluand.engine.http import BadAnswer
from evaluand.models.answers import (
    count_of,
    count_tokens,
    error_in,
    excerpt,
    join_pieces,
    mappings,
    member,
    merge_piece,
    read_logprobs,
    require_answer,
    text_or_none,
)
from evaluand.models.completion import Completion, ToolCall
from evaluand.models.endpoints import key_headers
from evaluand.models.question import Question, Settings, without_none


def path_of(name: str, *, is_stream: bool) -> str:
    """The path of requests to a model, below the version of the endpoint."""
    return "/chat/completions"


headers_of = key_headers
_OF_CHOICE: Final = ("finish_reason", "logprobs", "error")
"""What chunks say of a choice, besides the pieces of its message."""
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")
"""The names under which servers report the reasoning of a message."""


def write_body(question: Question, settings: Settings) -> dict[str, Any]:
    """The body of a request."""
    form = question.form
    body: dict[str, Any] = {
        "model": settings.name,
        "messages": [_write_message(message) for message in question.messages],
        "temperature": settings.temperature,
        settings.max_tokens_name: settings.max_tokens,
        "seed": settings.seed,
        "reasoning_effort": settings.reasoning_effort,
    }
    if question.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in question.tools
        ]
    if question.required_tool:
        body["tool_choice"] = {"type": "function", "function": {"name": question.required_tool}}
    if form is not None and form.schema is None:
        body["response_format"] = {"type": "json_object"}
    elif form is not None:
        described = {"name": form.name, "schema": form.schema, "strict": form.is_strict}
        body["response_format"] = {"type": "json_schema", "json_schema": described}
    if question.logprobs:
        body |= {"logprobs": True, "top_logprobs": question.logprobs}
    return without_none(body) | dict(settings.parameters or {})


def read_answer(answer: Any) -> Completion:
    """The completion in an answer.

    Raises:
        TaskError: there is none.
    """
    answer = require_answer(answer, "a chat completion")
    if member(answer, "base_resp", "status_code"):  # of MiniMax, which is 0 for an answer
        raise error_in(answer["base_resp"])
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        what = "an empty list of choices" if choices == [] else "no choices"
        raise BadAnswer(f"the answer has {what}: {excerpt(answer)}", code="choices")
    choice = choices[0]
    if choice.get("error"):
        raise error_in(choice["error"])
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadAnswer(f"the answer has no message: {excerpt(answer)}", code="form")
    calls = tuple(_tool_calls(message))
    text, thoughts = _texts_of(message.get("content"))
    return Completion.of(
        text,
        reasoning=_reasoning_of(message) or thoughts,
        logprobs=read_logprobs(member(choice.get("logprobs"), "content")),
        finish_reason=text_or_none(choice.get("finish_reason")) or None,
        model=text_or_none(answer.get("model")),
        tool_calls=calls,
        refusal=text_or_none(message.get("refusal")) or None,
        sent=_sent(message, calls),
        **_tokens(answer.get("usage")),
    )


STREAM: Final[Mapping[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}
"""Further fields of the body of a request for a streamed answer."""


class Stream:
    """Joins the chunks of a streamed answer into the message of an answer."""

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}

    def add(self, chunk: Mapping[str, Any]) -> str:
        """The text that a chunk adds to the reply."""
        if chunk.get("error"):
            raise error_in(chunk["error"])
        choice = next((choice for choice in mappings(chunk.get("choices")) if not choice.get("index")), {})
        said = {"usage": choice.get("usage"), **chunk}  # Moonshot counts in a choice
        self._answer |= {name: said[name] for name in ("model", "usage") if said.get(name)}
        merge_piece(self._choice, {name: choice[name] for name in _OF_CHOICE if choice.get(name)})
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        merge_piece(self._choice, {"message": delta})
        return text_or_none(delta.get("content")) or ""

    @property
    def has_ended(self) -> bool:
        return "finish_reason" in self._choice

    def end(self) -> Completion:
        """The completion; raises what `read_answer` does."""
        choice = {"message": {}} | join_pieces(self._choice)
        for call in choice["message"].get("tool_calls") or ():
            call.pop("index", None)
        return read_answer(self._answer | {"choices": [choice]})


_CACHED: Final = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot
    ("cache_read_input_tokens",),  # gateways to Anthropic
)
_STORED: Final = (("prompt_tokens_details", "cache_write_tokens"), ("cache_creation_input_tokens",))


def _tokens(usage: Any) -> dict[str, Any]:
    cached, stored = (
        next((count for names in known if (count := count_of(usage, *names)) is not None), None)
        for known in (_CACHED, _STORED)
    )
    return count_tokens(
        count_of(usage, "prompt_tokens"),
        count_of(usage, "completion_tokens"),
        total=count_of(usage, "total_tokens"),
        reasoning=count_of(usage, "completion_tokens_details", "reasoning_tokens"),
        cached=cached,
        stored=stored,
    )


def _write_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    parts = [
        {"type": "image_url", "image_url": {"url": part["image"]}} if part["type"] == "image" else part
        for part in content
    ]
    return {**message, "content": parts}


def _texts_of(content: Any) -> tuple[str, str]:
    """The text of a message and the reasoning in it; some servers write a list of parts."""
    if not isinstance(content, list):
        return text_or_none(content) or "", ""
    texts: dict[bool, list[str]] = {False: [], True: []}
    for part in mappings(content):
        thinks = part.get("type") in ("thinking", "reasoning")
        written = part.get("thinking", part.get("text")) if thinks else part.get("text")
        texts[thinks].append(_texts_of(written)[0])
    return "".join(texts[False]), "".join(texts[True])


def _reasoning_of(message: Mapping[str, Any]) -> str:
    """The reasoning that a server reports beside the text."""
    said = next((message[name] for name in _REASONING if isinstance(message.get(name), str)), "")
    details = (part.get("text") or part.get("summary") for part in mappings(message.get("reasoning_details")))
    return said or "".join(text for text in details if isinstance(text, str))


def _tool_calls(message: Mapping[str, Any]) -> Iterator[ToolCall]:
    calls = message.get("tool_calls") or [{"function": message.get("function_call")}]
    for number, call in enumerate(mappings(calls)):
        function = call.get("function")
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})  # Ollama has sent objects
            yield ToolCall(text_or_none(call.get("id")) or f"call_{number}", function["name"], text)


def _sent(message: Mapping[str, Any], calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    """The message to send back: as it came, without what is empty, and with an id for each call."""
    kept = {name: value for name, value in message.items() if name == "content" or value not in (None, [])}
    if isinstance(kept.get("tool_calls"), list):
        sent = [call for call in kept["tool_calls"] if isinstance(member(call, "function", "name"), str)]
        kept["tool_calls"] = [{**raw, "id": call.id} for raw, call in zip(sent, calls, strict=True)]
    return {"role": "assistant", "content": ""} | kept
