"""Anthropic's Messages: questions → bodies, answers → completions.

What a model has thought is signed; its blocks go back as they came, or a call of a tool is refused. Source:
platform.claude.com/docs/en/api/messages
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from evaluand.engine.http import BadAnswer, BadRequest
from evaluand.models.answers import (
    count_of,
    count_tokens,
    error_in,
    excerpt,
    join_pieces,
    mappings,
    merge_piece,
    require_answer,
    text_or_none,
)
from evaluand.models.completion import Completion, ToolCall, assistant_message
from evaluand.models.messages import image_of, split_data_url, split_instructions
from evaluand.models.question import Question, Settings, without_none

_VERSION: Final = "2023-06-01"


def path_of(name: str, *, is_stream: bool) -> str:
    """The path of requests to a model, below the version of the endpoint."""
    return "/messages"


def headers_of(url: str, key: str) -> dict[str, str]:
    """The headers that carry the key."""
    return {"x-api-key": key, "anthropic-version": _VERSION}


def write_body(question: Question, settings: Settings) -> dict[str, Any]:
    """The body of a request.

    Raises:
        BadRequest: the protocol has no such request.
    """
    if question.logprobs:
        raise BadRequest("the protocol anthropic reports no probabilities", code="logprobs", stops=True)
    form = question.form
    if form is not None and (form.schema is None or not form.is_strict):
        raise BadRequest("the protocol anthropic enforces no such form", code="400")
    config = {
        "effort": settings.reasoning_effort,
        "format": None if form is None else {"type": "json_schema", "schema": form.schema},
    }
    instructions, turns = split_instructions(question.messages)
    body: dict[str, Any] = {
        "model": settings.name,
        "max_tokens": settings.max_tokens,
        "messages": list(_write_messages(turns)),
        "system": [part for message in instructions for part in _write_content(message)] or None,
        "temperature": settings.temperature,
        "output_config": without_none(config) or None,
    }
    if question.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in question.tools
        ]
    if question.required_tool:
        body["tool_choice"] = {"type": "tool", "name": question.required_tool}
    return without_none(body) | dict(settings.parameters or {})


def read_answer(answer: Any) -> Completion:
    """The completion in an answer.

    Raises:
        TaskError: there is none.
    """
    answer = require_answer(answer, "a message")
    blocks = answer.get("content")
    if not isinstance(blocks, list):
        raise BadAnswer(f"the answer has no content: {excerpt(answer)}", code="form")
    usage, texts, calls = answer.get("usage"), _texts(blocks, "text"), tuple(_tool_calls(blocks))
    read, kept, known = (
        count_of(usage, name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    )
    return Completion.of(
        "".join(texts),
        reasoning="\n".join(_texts(blocks, "thinking")),
        finish_reason=text_or_none(answer.get("stop_reason")),
        model=text_or_none(answer.get("model")),
        tool_calls=calls,
        sent=assistant_message(blocks, calls),
        **count_tokens(
            None if read is None else read + (kept or 0) + (known or 0),
            count_of(usage, "output_tokens"),
            reasoning=count_of(usage, "output_tokens_details", "thinking_tokens"),
            cached=known,
            stored=kept,
        ),
    )


STREAM: Final[Mapping[str, Any]] = {"stream": True}
"""Further fields of the body of a request for a streamed answer."""


class Stream:
    """Joins the events of a streamed answer into a message."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[Any, dict[str, Any]] = {}
        self.has_ended = False

    def add(self, event: Mapping[str, Any]) -> str:
        """The text that an event adds to the reply."""
        delta = event.get("delta") or {}
        block = self._blocks.setdefault(event.get("index"), {})
        match event.get("type"):
            case "error":
                raise error_in(event.get("error"))
            case "message_start":
                self._message = {**(event.get("message") or {})}
            case "content_block_start":
                merge_piece(block, event.get("content_block") or {})
            case "content_block_delta":
                merge_piece(block, {name: value for name, value in delta.items() if name not in ("type", "citation")})
                if "citation" in delta:
                    block.setdefault("citations", []).append(delta["citation"])
                return str(delta.get("text", "")) if delta.get("type") == "text_delta" else ""
            case "message_delta":
                usage = {**(self._message.get("usage") or {}), **without_none(event.get("usage") or {})}
                self._message |= {**delta, "usage": usage}
            case "message_stop":
                self.has_ended = True
        return ""

    def end(self) -> Completion:
        """The completion; raises what `read_answer` does."""
        blocks = [_whole_block(join_pieces(block)) for block in self._blocks.values() if block]
        return read_answer(self._message | {"content": blocks})


def _whole_block(block: dict[str, Any]) -> dict[str, Any]:
    """A streamed block with the arguments of its call as an object, as they come without a stream."""
    written = block.pop("partial_json", "")
    try:
        return block | {"input": json.loads(written)} if written else block
    except ValueError:
        return block | {"input": written}


def _write_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages in turn; the results of tools are one message of the user."""
    for is_tool, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_tool:
            yield {"role": "user", "content": [_write_result(message) for message in group]}
            continue
        for message in group:
            content = message.get("content")
            is_whole = any(part.get("type") == "tool_use" for part in mappings(content))
            calls = [] if is_whole else [_write_call(call) for call in message.get("tool_calls") or ()]
            is_text = isinstance(content, str) and not calls
            yield {"role": message["role"], "content": content if is_text else [*_write_content(message), *calls]}


def _write_content(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    return [_write_part(part) for part in parts if part != {"type": "text", "text": ""}]


def _write_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if (image := image_of(part)) is None:
        return dict(part)
    kind, content = split_data_url(image)
    if content is None:
        return {"type": "image", "source": {"type": "url", "url": image}}
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": content}}


def _write_result(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    written = content if isinstance(content, str) else _write_content(message)
    return {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": written}


def _write_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = ToolCall(call["id"], function["name"], function["arguments"]).arguments or {}
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _texts(blocks: list[Any], kind: str) -> list[str]:
    return [block[kind] for block in mappings(blocks) if block.get("type") == kind and isinstance(block.get(kind), str)]


def _tool_calls(blocks: list[Any]) -> Iterator[ToolCall]:
    for number, block in enumerate(mappings(blocks)):
        if block.get("type") == "tool_use" and isinstance(block.get("name"), str):
            written = block.get("input")
            text = written if isinstance(written, str) else json.dumps(written or {}, ensure_ascii=False)
            yield ToolCall(text_or_none(block.get("id")) or f"call_{number}", block["name"], text)
