"""The conversations in a trace: what was said to language models, and what they replied.

Each request to a model holds the whole conversation so far, so the requests of one conversation are known by their
beginnings: each repeats what was said before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

LLM = "llm"
"""The kind of the spans that hold requests to a model."""


class ToolUse(NamedTuple):
    """A call of a tool by a model.

    Attributes:
        name: of the tool.
        arguments: as the model wrote them.
        result: what it returned, for the model; None if nothing.
    """

    name: str
    arguments: str
    result: str | None


class Turn(NamedTuple):
    """What one side said.

    Attributes:
        role: `system`, `user`, `assistant` or another one.
        text: what it said.
        tools: the tools that it called.
        reasoning: what a model thought first; None if nothing is known of it.
    """

    role: str
    text: str
    tools: Sequence[ToolUse] = ()
    reasoning: str | None = None


def read_chats(requests: Iterable[tuple[Any, Any, Any]]) -> list[list[Turn]]:
    """The conversations of a call.

    Args:
        requests: input, output and reasoning of its spans of the kind `llm`, in order. Inputs that are no messages are
            left out.

    Example:
        >>> asked = [{"role": "user", "content": "The capital of France?"}]
        >>> first = {"role": "assistant", "content": "Paris"}
        >>> again = [*asked, first, {"role": "user", "content": "Sure?"}]
        >>> [[turn.text for turn in chat] for chat in read_chats([(asked, "Paris", None), (again, "Yes", None)])]
        [['The capital of France?', 'Paris', 'Sure?', 'Yes']]
    """
    found: list[tuple[list[Any], list[Any]]] = []
    for input, output, reasoning in requests:
        messages = _messages(input)
        if messages is None:
            continue
        continued = next((place for place, (said, _) in enumerate(found) if messages[: len(said)] == said), len(found))
        found[continued : continued + 1] = [(messages, _reply(output, reasoning))]
    return [list(_turns([*messages, *reply])) for messages, reply in found]


def _messages(input: Any) -> list[Any] | None:
    """The messages of a request; None if it has none."""
    if isinstance(input, str):
        return [{"role": "user", "content": input}]
    said = input.get("messages") if isinstance(input, Mapping) else input
    if not isinstance(said, list) or not all(isinstance(each, Mapping) and "role" in each for each in said):
        return None
    return said or None


def _reply(output: Any, reasoning: Any) -> list[Any]:
    if output is None:
        return []
    said = output if isinstance(output, Mapping) and "role" in output else {"role": "assistant", "content": output}
    return [said if reasoning is None else {**said, "reasoning": reasoning}]


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    """Messages as turns, in which results of tools are with their calls."""
    answered: set[int] = set()
    for number, message in enumerate(messages):
        if number in answered:
            continue
        calls = [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
        behind = {place: later for place, later in enumerate(messages[number + 1 :], number + 1) if _is_result(later)}
        tools = []
        for call in calls:  # each takes the next result of its id, since some services give ids again
            places = (place for place, later in behind.items() if later.get("tool_call_id") == call.get("id"))
            place = next((place for place in places if place not in answered), None)
            answered |= set() if place is None else {place}
            tools.append(_tool_use(call, None if place is None else _text(messages[place].get("content"))))
        thoughts = [message[name] for name in _REASONING if isinstance(message.get(name), str)]
        content = message.get("content")
        parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
        thoughts += [part["thinking"] for part in parts if isinstance(part.get("thinking"), str)]
        yield Turn(str(message["role"]), _text(content), tuple(tools), thoughts[0] if thoughts else None)


_REASONING = ("reasoning", "reasoning_content", "thinking")
_APART = ("thinking", "redacted_thinking", "tool_use")
"""The parts of messages that are no text of theirs."""


def _is_result(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "tool"


def _tool_use(call: Mapping[str, Any], result: str | None) -> ToolUse:
    function = call.get("function")
    called = function if isinstance(function, Mapping) else call
    return ToolUse(_text(called.get("name")), _text(called.get("arguments")), result)


def _text(content: Any) -> str:
    """A content as text; of parts the texts, and the names of the others."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) and "type" in part for part in content):
        said = (part for part in content if part["type"] not in _APART)
        return "\n".join(_text(part.get("text")) if "text" in part else f"[{part['type']}]" for part in said)
    return "" if content is None else orjson.dumps(content, default=str).decode()
