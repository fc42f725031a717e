"""What to write for keys, entries and words of experiment files that do not exist, with the help of `near.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from evaluand.core import registry
from evaluand.core.files.yaml import Place
from evaluand.core.near import near, read_section
from evaluand.judges.rubric import rubric_names
from evaluand.metrics.names import is_name


def meant_key(place: Place, file: str = "experiment") -> str | None:
    """The key at this level that an unknown key means.

    Args:
        file: what the file describes: `experiment` or `suite`.

    Example:
        >>> meant_key(("data",)), meant_key(("dataset", "label")), meant_key(("colour",))
        ('dataset', 'expected', None)
    """
    part, typed = _split(place, file)
    return next((key for key in read_section("keys", part) if typed in near("keys", part, key)), None)


def advice(place: Place, file: str = "experiment") -> str | None:
    """What to write in place of an unknown key, or for a missing one.

    Example:
        >>> advice(("gate",)), advice(("metrics",))
        ('gates: [accuracy >= 0.9]', 'metrics: [accuracy]')
    """
    if not place:
        return None
    part, typed = _split(place, file)
    if missing := read_section("missing", part).get(typed):
        return missing  # type: ignore[no-any-return]
    meant = meant_key(place, file)
    return None if meant is None else near("keys", part, meant)[typed]


def _split(place: Place, file: str) -> tuple[str, str]:
    """The part of a file, one of several sets of matches as if it were the only one, and the key in it."""
    steps = [step for step in place if not (place[0] == "matches" and isinstance(step, int))]
    return "/".join(map(str, [file, *steps[:-1]])), str(steps[-1])


def entry_advice(place: Place, entry: Any) -> str | None:
    """What to write for an entry of tasks, scorers or metrics that is neither a kind nor code.

    Example:
        >>> entry_advice(("metrics", 0), {"metric": "f1"}), entry_advice(("tasks", "mine"), {"path": "said.csv"})
        ('kind: f1', 'kind: recorded and response: COLUMN too')
    """
    if place[:1] == ("matches",) and isinstance(entry, Mapping) and place[-1] == "judge" and "scorer" in entry:
        return f"by_score: {entry['scorer']}" if isinstance(entry["scorer"], str) else "kind: by_score too"
    if place == ("dataset",) and isinstance(entry, list):
        return "{path: rows.jsonl}, a file with one JSON object per line"
    if not place or not isinstance(entry, Mapping):
        return None
    if "kind" in entry:
        return "function without kind" if "function" in entry else None
    for key in ("metric", "scorer", "name", "type", "id", "class"):
        if isinstance(entry.get(key), str):
            return f"function: {entry[key]}" if ":" in entry[key] else f"kind: {entry[key]}"
    if place[0] == "tasks" and "path" in entry:
        return "kind: recorded too" if "response" in entry else "kind: recorded and response: COLUMN too"
    if place[0] == "tasks" and {"prompt", "prompts", "messages", "models"} & {*entry}:
        return "kind: chat too"
    if place[0] == "tasks" and "url" in entry:
        return "kind: service too"
    if len(entry) == 1:
        [(name, value)] = entry.items()
        if place[0] == "scorers" and isinstance(value, str):
            return f"the entries without dashes, as {name}: {value}"
    return None


def word_advice(group: str, word: str) -> str | None:
    """What to write for a task or scorer that is one unknown word.

    Example:
        >>> word_advice("tasks", "app.answer"), word_advice("scorers", "f1")[:40]
        ('write app:answer', "'f1' is a metric: name it under metrics,")
    """
    if group == "scorers":
        if is_name(word):
            return f"{word!r} is a metric: name it under metrics, and here prediction or exact_match"
        words = near("words", "scorers").get(name := word.lower().replace("-", "_")) or _rubric_words(name)
        return None if words is None else f"write {words}"
    if group == "comparison_scorers":
        if word.startswith("pairwise") and (words := _rubric_words(word)):
            return f"write {words}"
        return f"a function is {{function: judge.py:{word if word.isidentifier() else 'FUNCTION'}}}, or judge.py:NAME"
    if group != "tasks":
        return None
    if "/" in word and word.partition("/")[0] in near("words", "tasks"):
        return f"a chat model is {{kind: chat, model: {word}, prompt: …}}"
    suffix = PurePath(word).suffix[1:]
    if suffix == "py":
        return f"name the function too: {word}:NAME"
    if suffix in registry.names("formats"):
        return f"predictions in a file are {{kind: recorded, path: {word}, response: COLUMN}}"
    if suffix.isidentifier() and "/" not in word:
        return f"write {word[: -len(suffix) - 1]}:{suffix}"
    return near("words", "tasks").get(word.lower())


def _rubric_words(word: str) -> str | None:
    """How a judge with a rubric is written, for the name of the rubric or a usual word for it."""
    name = near("words", "rubrics").get(word, word)
    return f"{{kind: judge, rubric: {name}, model: MODEL}}" if name in rubric_names() else None


def parameter_advice(group: str, kind: str, name: str) -> str | None:
    """What to write in place of a parameter that a kind does not have.

    Example:
        >>> parameter_advice("tasks", "chat", "system_prompt"), parameter_advice("metrics", "accuracy", "groups")
        ('system', 'by: COLUMN')
    """
    return near("parameters", kind).get(name) or near("parameters", group).get(name)
