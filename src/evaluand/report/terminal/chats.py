"""Conversations with language models for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.core.errors import plural
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL, LINES, long_text, name_values
from evaluand.report.text import safe


def chats_table(chats: Sequence[Sequence[Facts]]) -> RenderableType:
    """The turns of each conversation, as `chat_facts` returns them."""
    if not chats:
        return Text("  no messages to a language model", "dim")
    parts: list[RenderableType] = []
    for number, chat in enumerate(chats[:LINES], 1):
        if len(chats) > 1:
            parts.append(Text(f"  conversation {number} of {len(chats)}", "dim"))
        parts.append(name_values((line for turn in chat for line in _lines(turn)), "    "))
    if (more := len(chats) - LINES) > 0:
        parts.append(Text(f"  and {more:,} more conversations (--json lists all)", "dim"))
    return Group(*parts)


def _lines(turn: Facts) -> Iterator[tuple[str, str | Text]]:
    """Who speaks and what, with the tools that are called and what they return."""
    if turn["reasoning"]:
        words = plural(len(turn["reasoning"].split()), "word")
        yield f"{turn['role']} thinks", Text(f"{words}, which the trace has (--index)", "dim")
    if turn["text"] or not turn["tools"]:
        yield turn["role"], long_text(turn["text"])
    for tool in turn["tools"]:
        yield f"{turn['role']} calls", f"{safe(tool['name'], CELL)}({long_text(tool['arguments'])})"
        if tool["result"] is not None:
            yield "  returns", long_text(tool["result"])
