"""Gemini's generateContent: questions → bodies, answers → completions.

Calls of tools are signed; the parts of an answer go back as they came. Source: ai.google.dev/api/generate-content
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

from evaluand.engine.http import BadAnswer
from evaluand.models.answers import (
    count_of,
    count_tokens,
    excerpt,
    mappings,
    member,
    require_answer,
    text_or_none,
)
from evaluand.models.completion import Completion, ToolCall, assistant_message
from evaluand.models.messages import image_of, split_data_url, split_instructions
from evaluand.models.question import Question, Settings, without_none
from evaluand.models.words import ENDINGS


def path_of(name: str, *, is_stream: bool) -> str:
    """The path of requests to a model, below the version of the endpoint."""
    method = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
    return f"/models/{quote(name.removeprefix('models/'), safe='')}:{method}"


def headers_of(url: str, key: str) -> dict[str, str]:
    """The headers that carry the key."""
    return {"x-goog-api-key": key}


def write_body(question: Question, settings: Settings) -> dict[str, Any]:
    """The body of a request."""
    form, effort = question.form, settings.reasoning_effort
    instructions, turns = split_instructions(question.messages)
    generation = {
        "temperature": settings.temperature,
        "maxOutputTokens": settings.max_tokens,
        "seed": settings.seed,
        "thinkingConfig": None if effort is None else {"thinkingLevel": effort, "includeThoughts": True},
        "responseMimeType": None if form is None else "application/json",
        "responseJsonSchema": None if form is None else form.schema,
        "responseLogprobs": True if question.logprobs else None,
        "logprobs": question.logprobs or None,
    }
    body: dict[str, Any] = {
        "contents": list(_write_messages(turns)),
        "generationConfig": without_none(generation) or None,
    }
    if instructions:
        body["systemInstruction"] = {"parts": [part for m in instructions for part in _write_parts(m)]}
    if question.tools:
        tools = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
            for tool in question.tools
        ]
        body["tools"] = [{"functionDeclarations": tools}]
    if question.required_tool:
        calling = {"mode": "ANY", "allowedFunctionNames": [question.required_tool]}
        body["toolConfig"] = {"functionCallingConfig": calling}
    body = without_none(body)
    for name, value in (settings.parameters or {}).items():
        body[name] = {**body[name], **value} if isinstance(body.get(name), dict) else value
    return body


def read_answer(answer: Any) -> Completion:
    """The completion in an answer.

    Raises:
        TaskError: there is none.
    """
    answer = require_answer(answer, "candidates")
    blocked = text_or_none(member(answer, "promptFeedback", "blockReason"))
    candidate = next(iter(mappings(answer.get("candidates"))), None)
    if candidate is None and blocked is None:
        raise BadAnswer(f"the answer has no candidates: {excerpt(answer)}", code="choices")
    reason = text_or_none(member(candidate, "finishReason"))
    if blocked is not None:
        reason = blocked if ENDINGS.get(blocked.casefold()) == "filtered" else "SAFETY"
    parts = member(candidate, "content", "parts") or []
    calls = tuple(_tool_calls(parts))
    text, thoughts = ("".join(_texts(parts, thought=thought)) for thought in (False, True))
    return Completion.of(
        text,
        reasoning=thoughts,
        logprobs=_logprobs(member(candidate, "logprobsResult")),
        finish_reason=None if reason == "FINISH_REASON_UNSPECIFIED" else reason,
        model=text_or_none(answer.get("modelVersion")),
        tool_calls=calls,
        sent=assistant_message(text, calls, reasoning=thoughts, parts=parts),
        **_tokens(answer.get("usageMetadata")),
    )


STREAM: Final[Mapping[str, Any]] = {}
"""Further fields of the body of a request for a streamed answer."""


class Stream:
    """Joins the answers of a stream, each of which has further parts."""

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._parts: list[Any] = []

    def add(self, event: Mapping[str, Any]) -> str:
        """The text that an event adds to the reply."""
        self._answer |= event
        candidate = next(iter(mappings(event.get("candidates"))), {})
        self._candidate |= candidate
        parts = [*mappings(member(candidate, "content", "parts"))]
        self._parts += parts
        return "".join(_texts(parts, thought=False))

    @property
    def has_ended(self) -> bool:
        return "finishReason" in self._candidate or not self._answer.keys().isdisjoint(("promptFeedback", "error"))

    def end(self) -> Completion:
        """The completion; raises what `read_answer` does."""
        candidates = [self._candidate | {"content": {"parts": self._parts}}] if self._candidate else []
        return read_answer(self._answer | {"candidates": candidates})


def _tokens(usage: Any) -> dict[str, Any]:
    read, tools = count_of(usage, "promptTokenCount"), count_of(usage, "toolUsePromptTokenCount") or 0
    written, reasoning = count_of(usage, "candidatesTokenCount"), count_of(usage, "thoughtsTokenCount")
    return count_tokens(
        None if read is None else read + tools,
        written if reasoning is None else (written or 0) + reasoning,
        total=count_of(usage, "totalTokenCount"),
        reasoning=reasoning,
        cached=count_of(usage, "cachedContentTokenCount"),
    )


def _write_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages in turn; the results of tools are one message of the user."""
    called: dict[str, dict[str, Any]] = {}
    for is_tool, group in groupby(messages, key=lambda message: message["role"] == "tool"):
        if is_tool:
            yield {"role": "user", "parts": [part for message in group for part in _write_result(message, called)]}
            continue
        for message in group:
            known = {member(part, "functionCall", "id") for part in message.get("parts") or ()}
            for call in message.get("tool_calls") or ():
                head = {"name": call["function"]["name"], "id": call["id"] if call["id"] in known else None}
                called[call["id"]] = without_none(head)
            role = "model" if message["role"] == "assistant" else "user"
            yield {"role": role, "parts": message.get("parts") or list(_write_parts(message))}


def _write_parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if part["type"] == "text":
            yield {"text": part["text"]}
        elif image := image_of(part):
            kind, data = split_data_url(image)
            is_address = data is None
            yield {"fileData": {"fileUri": image}} if is_address else {"inlineData": {"mimeType": kind, "data": data}}
        else:
            yield dict(part)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = ToolCall(call["id"], function["name"], function["arguments"]).arguments or {}
        yield {"functionCall": {"name": function["name"], "args": arguments}}


def _write_result(message: Mapping[str, Any], called: Mapping[Any, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The result of a call, by the name and id of the latest call with its id, and the images in it."""
    head = called.get(message.get("tool_call_id"), {"name": ""})
    parts = list(_write_parts(message))
    text = "\n".join(part["text"] for part in parts if "text" in part)
    yield {"functionResponse": {**head, "response": {"result": text}}}
    yield from (part for part in parts if "text" not in part)


def _texts(parts: Any, *, thought: bool) -> Iterator[str]:
    for part in mappings(parts):
        if isinstance(part.get("text"), str) and bool(part.get("thought")) is thought:
            yield part["text"]


def _tool_calls(parts: Any) -> Iterator[ToolCall]:
    for number, part in enumerate(mappings(parts)):
        call = part.get("functionCall")
        if isinstance(call, Mapping) and isinstance(call.get("name"), str):
            arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
            yield ToolCall(text_or_none(call.get("id")) or f"call_{number}", call["name"], arguments)


def _logprobs(reported: Any) -> list[dict[str, Any]] | None:
    chosen, top = (member(reported, name) for name in ("chosenCandidates", "topCandidates"))
    if not isinstance(chosen, list):
        return None
    likeliest = [{t["token"]: t.get("logProbability") for t in mappings(m.get("candidates"))} for m in mappings(top)]
    likeliest += [{}] * (len(chosen) - len(likeliest))
    return [
        {"token": token["token"], "logprob": token.get("logProbability"), "top": others}
        for token, others in zip(mappings(chosen), likeliest, strict=False)
    ]
