"""Battles of Chatbot Arena: `model_a`, `model_b` and `winner` of a vote on two conversations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluand.matches.battle_rows import BattleFormat, Verdict, parse_json


class ChatbotArena(BattleFormat):
    """A conversation is a list of turns, each of which has a role and a content."""

    kind = "chatbot_arena"
    columns: ClassVar[Mapping[str, Sequence[str]]] = {
        "response_a": ("conversation_a",),
        "response_b": ("conversation_b",),
    }
    marks = frozenset(("model_a", "model_b", "winner"))
    labels: ClassVar[Mapping[str, Verdict]] = dict.fromkeys(
        ("tie (bothbad)", "tie (both bad)", "bothbad", "both_bad", "both bad"), Verdict(0.5)
    )

    @classmethod
    def turns(cls, value: Any, role: str) -> list[str] | None:
        if isinstance(value, str) and value.startswith("["):
            value = parse_json(value)
            is_conversation = isinstance(value, list) and all(
                isinstance(turn, dict) and "role" in turn for turn in value
            )
            return [*_contents(value, role)] if is_conversation and value else None
        if isinstance(value, Mapping) and "content" in value:
            return [*_contents([value], role)]
        return [*_contents(value, role)] if isinstance(value, list | tuple) else None


def _contents(conversation: Iterable[Any], role: str) -> Iterator[str]:
    for turn in conversation:
        if isinstance(turn, str):
            yield turn
        elif isinstance(turn, Mapping) and turn.get("role", role) == role:
            content = turn.get("content", turn.get("text"))
            if isinstance(content, str):
                yield content
            elif isinstance(content, list | tuple):
                yield from _contents(content, role)
