"""Conversations with language models as the cells of a report, which a script shows as bubbles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from evaluand.report.facts.base import Facts
from evaluand.report.html.cells import SHORT, Budget, cut_text
from evaluand.trace.chats import LLM, ToolUse, Turn, read_chats

_CHATS: Final = 20
_TURNS: Final = 200


def chat_cells(spans: Sequence[Sequence[Any]], room: Budget) -> list[Facts]:
    """The conversations of a row, each with its `turns` and how many of them are `left_out`.

    Args:
        spans: of the row: the columns of `store.tables.SPANS` after the key.
    """
    calls = ([_parsed(text) for text in span[7:10]] for span in spans if span[3] == LLM)
    requests = ((input, output, (held or {}).get("reasoning")) for input, output, held in calls)
    return [
        {"turns": [_turn_cells(turn, room) for turn in chat[:_TURNS]], "left_out": max(len(chat) - _TURNS, 0)}
        for chat in read_chats(requests)[:_CHATS]
    ]


def _parsed(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def _turn_cells(turn: Turn, room: Budget) -> Facts:
    made: Facts = {"role": cut_text(turn.role, SHORT), "text": room.text(turn.text)}
    if turn.reasoning:
        made["reasoning"] = room.text(turn.reasoning)
    if turn.tools:
        made["tools"] = [_tool_cells(tool, room) for tool in turn.tools]
    return made


def _tool_cells(tool: ToolUse, room: Budget) -> Facts:
    result = None if tool.result is None else room.text(tool.result)
    return {"name": cut_text(tool.name, SHORT), "arguments": room.text(tool.arguments), "result": result}
