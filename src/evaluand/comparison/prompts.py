"""What runs of language models differ in: their prompts, line by line, and their settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.core.identity import json_text

_AROUND: Final = 2  # lines that stay the same around one that changes
_MESSAGES: Final = "messages"
_TEXTS: Final = (_MESSAGES, "instruction")
_HIDDEN: Final = ("behaviour", "chunk", *_TEXTS)


def prompt_changes(tasks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each task differs in from the first.

    Args:
        tasks: the identities of the tasks; empty where one is unknown.

    Returns:
        For each task that asks a model, as the first does, and differs from it: its position `b`, that of the first
        `a`, the `settings` that differ, each with `name`, `a` and `b`, and the lines of the `prompt`, each marked by
        `-` (only the first has it), `+` (only this one has it), a blank (both have it) or `…` (lines left out).

    Example:
        >>> one, other = ({"chat": {"model": "m"}, "instruction": text} for text in ("Be brief.", "Be kind."))
        >>> prompt_changes([one, other])
        [{'a': 0, 'b': 1, 'settings': [], 'prompt': [' instruction:', '-Be brief.', '+Be kind.']}]
    """
    if not tasks or "chat" not in tasks[0]:
        return []
    found = [_changes(number, tasks[0], task) for number, task in enumerate(tasks) if number and "chat" in task]
    return [each for each in found if each["settings"] or each["prompt"]]


def _changes(number: int, one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    before, after = _settings(one), _settings(other)
    settings = [
        {"name": name, "a": before.get(name), "b": after.get(name)}
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]
    return {"a": 0, "b": number, "settings": settings, "prompt": list(_diff(_lines(one), _lines(other)))}


def _settings(task: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a task and of its model as text; examples by their number and digest."""
    own = {name: value for name, value in {**task["chat"], **task}.items() if name not in (*_HIDDEN, "chat")}
    return {name: value if isinstance(value, str) else json_text(value) for name, value in own.items()}


def _lines(task: Mapping[str, Any]) -> list[str]:
    """The prompt of a task, each message under its role."""
    lines: list[str] = []
    for name in _TEXTS:
        value = task.get(name)
        messages = value if name == _MESSAGES and isinstance(value, list) else [{"role": name, "content": value}]
        for message in messages if value is not None else ():
            content = message["content"]
            text = content if isinstance(content, str) else json_text(content, indent=True)
            lines += [f"{message['role']}:", *text.splitlines()]
    return lines


def _diff(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    changed = difflib.unified_diff(before, after, n=_AROUND, lineterm="")
    for number, line in enumerate(changed):
        if line.startswith("@@"):
            yield from ["…"] if number > 2 else []  # the first lines are the names of both sides
        elif number > 1:
            yield line
