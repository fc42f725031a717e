"""OpenAI's chat completions, which most servers speak: questions → bodies, answers → completions.

Source: platform.openai.com/docs/api-reference/chat
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluand.core.errors import kind_of
from evaluand.core.redaction import redact
from evaluand.engine.http import BadAnswer
from evaluand.models.completion import Completion, ToolCall
from evaluand.models.question import Question, Settings, without_none

PATH: Final = "/chat/completions"
_SHOWN: Final = 300  # characters of an answer in a message
_READ: Final = 4096  # and of those in which secrets are searched


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
        BadAnswer: there is none.
    """
    if not isinstance(answer, dict):
        raise BadAnswer(f"the answer is {kind_of(answer)}, not a chat completion", code="form")
    if answer.get("error"):
        raise BadAnswer(f"the answer is an error: {excerpt(answer['error'])}", code="error")
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        found = "an empty list of choices" if choices == [] else "no choices"
        raise BadAnswer(f"the answer has {found}: {excerpt(answer)}", code="choices")
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise BadAnswer(f"the answer has no message: {excerpt(answer)}", code="form")
    return Completion(
        _text_of(message.get("content")),
        text_or_none(choice.get("finish_reason")),
        text_or_none(answer.get("model")),
        *tokens_of(answer.get("usage"), "prompt_tokens", "completion_tokens"),
        cached_tokens=detail_of(answer.get("usage"), "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=detail_of(answer.get("usage"), "completion_tokens_details", "reasoning_tokens"),
        tool_calls=tuple(_tool_calls(message.get("tool_calls"))),
        refusal=text_or_none(message.get("refusal")) or None,
        logprobs=read_logprobs(_member(choice.get("logprobs"), "content")),
    )


STREAM: Final[Mapping[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}
"""Further fields of the body of a request for a streamed answer."""


class Stream:
    """Joins the chunks of a streamed answer into the message of an answer."""

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._pieces: dict[str, list[str]] = {"content": [], "refusal": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: list[Any] = []

    def add(self, chunk: Mapping[str, Any]) -> str:
        """The text that a chunk adds to the reply."""
        if chunk.get("error"):
            raise BadAnswer(f"the answer is an error: {excerpt(chunk['error'])}", code="error")
        self._answer |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        if choice.get("finish_reason"):
            self._choice["finish_reason"] = choice["finish_reason"]
        self._logprobs += _member(choice.get("logprobs"), "content") or []
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        for name, pieces in self._pieces.items():
            if isinstance(delta.get(name), str):
                pieces.append(delta[name])
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        return delta["content"] if isinstance(delta.get("content"), str) else ""

    def end(self) -> Completion:
        """The completion.

        Raises:
            BadAnswer: the answer ended before its end.
        """
        if "finish_reason" not in self._choice:
            raise BadAnswer("the answer ended before the reply was complete", code="incomplete")
        message = {name: "".join(pieces) for name, pieces in self._pieces.items()}
        calls = [self._calls[place] for place in sorted(self._calls)]
        logprobs = {"content": self._logprobs} if self._logprobs else None
        choice = self._choice | {"message": {**message, "tool_calls": calls}, "logprobs": logprobs}
        return read_answer(self._answer | {"choices": [choice]})

    def _add_call(self, piece: Any) -> None:
        if not isinstance(piece, dict):
            return
        place = piece.get("index")
        function = self._calls.setdefault(place if type(place) is int else 0, {"function": {}})
        function.setdefault("id", piece.get("id"))
        for name, text in (piece.get("function") or {}).items():
            if isinstance(text, str):
                function["function"][name] = function["function"].get(name, "") + text


def excerpt(value: Any) -> str:
    """The start of a part of an answer, as JSON."""
    start = json.dumps(value, ensure_ascii=False, default=str)[:_READ]
    text = redact(start)  # before it is cut, within a secret perhaps
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def text_or_none(value: Any) -> str | None:
    """The value if it is text; servers may write anything."""
    return value if isinstance(value, str) else None


def tokens_of(usage: Any, read: str, written: str) -> tuple[int | None, int | None]:
    """How many tokens were read and written, as far as the server reports valid counts."""
    counts = usage if isinstance(usage, dict) else {}
    return _count(counts.get(read)), _count(counts.get(written))


def detail_of(usage: Any, details: str, name: str) -> int | None:
    """How many of the tokens are of some kind; None if the server does not report it."""
    return _count(_member(_member(usage, details), name))


def read_logprobs(tokens: Any) -> list[dict[str, Any]] | None:
    """The probabilities of the tokens of a reply; None if the server reports none."""
    if not isinstance(tokens, list):
        return None
    return [
        {
            "token": token.get("token"),
            "logprob": token.get("logprob"),
            "top": {one["token"]: one.get("logprob") for one in filter(_is_token, token.get("top_logprobs") or ())},
        }
        for token in filter(_is_token, tokens)
    ]


def _is_token(token: Any) -> bool:
    """Whether a token is reported with a probability."""
    return (
        isinstance(token, dict) and isinstance(token.get("token"), str) and type(token.get("logprob")) in (int, float)
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


def _text_of(content: Any) -> str:
    """The text of a message; some servers write it as a list of parts."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _tool_calls(calls: Any) -> Iterator[ToolCall]:
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})  # Ollama has sent objects
            yield ToolCall(text_or_none(call.get("id")) or f"call_{place}", function["name"], text)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None
