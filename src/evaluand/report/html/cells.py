"""Values, texts and spans as the cells of a report, which a script shows: cut to what a page has room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from evaluand.core import identity
from evaluand.trace.record import CALL

TEXT: Final = 4000
"""Characters of an input, an expected value or a response."""
SHORT: Final = 400
"""Characters of a name."""
TRACED: Final = 1000
"""Characters of a value within a span or a call."""
PRETTY: Final = 50_000
"""The longest JSON that is indented."""
_ONE_LINE: Final = 80


def cell(value: Any, limit: int = TEXT) -> Any:
    """A value as a report shows it: text unchanged, everything else as JSON, cut if it is long.

    Returns:
        The text, or `{"t": text, "c": how many characters are cut}`, or for JSON `{"j": text, "c": …}`.

    Example:
        >>> cell("four"), cell("a" * 9, limit=4), cell([4])
        ('four', {'t': 'aaaa', 'c': 5}, {'j': '[4]'})
    """
    return _text_cell(value, limit) if isinstance(value, str) else json_cell(identity.encode(value).decode(), limit)


def json_cell(text: str, limit: int = TEXT) -> Any:
    """The cell of a value whose canonical JSON text is known."""
    if text.startswith('"'):
        return _text_cell(orjson.loads(text), limit)
    if _ONE_LINE < len(text) <= PRETTY:
        text = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    if len(text) <= limit:
        return {"j": text}
    return {"j": text[:limit], "c": len(text) - limit}


def _text_cell(text: str, limit: int) -> Any:
    return text if len(text) <= limit else {"t": text[:limit], "c": len(text) - limit}


def cut_text(text: str, limit: int) -> str:
    """A text that says how much of it was cut."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} characters more)"


class Budget:
    """The characters left for a row or a judgement in addition to its input, answers and scores.

    Args:
        characters: how many are left.
        longest: how many a value within a span or a call may have.
    """

    def __init__(self, characters: int, longest: int = TRACED) -> None:
        self.left, self._longest = characters, longest

    def json(self, text: str) -> Any:
        """The cell of a value whose JSON is known, cut to what is left."""
        made = json_cell(text, min(self._longest, max(self.left, 0)))
        self.left -= min(len(text), self._longest)
        return made

    def text(self, text: str) -> Any:
        """The cell of a text, cut to what is left; as long as an input may be."""
        made = _text_cell(text, min(TEXT, max(self.left, 0)))
        self.left -= min(len(text), TEXT)
        return made

    def value(self, value: Any) -> Any:
        return self.json(orjson.dumps(value).decode())


def span_cells(row: Sequence[Any], first_input: Any, room: Budget) -> list[Any]:
    """Number, parent, name, kind, start and duration in microseconds, status, input, output, attributes and events.

    Args:
        row: the columns of `store.tables.SPANS` after the key.
        first_input: the input of the task, which the first span does not repeat.
    """
    number, parent, name, kind, start, duration, status, *texts = row
    times = [None if time is None else round(time.total_seconds() * 1e6) for time in (start, duration)]
    if texts[2] is not None and CALL in texts[2]:
        texts = _call_texts(texts, None if number else first_input)
    held = [None if text in (None, "{}", "[]", "null") else room.json(text) for text in texts]
    return [number, parent, cut_text(name, SHORT), cut_text(kind, SHORT), *times, status, *held]


def _call_texts(texts: Sequence[str | None], first_input: Any) -> list[str | None]:
    """The values of an instrumented call: all its arguments, and its return value if that is not its output."""
    input, output, attributes, events = texts
    rest = orjson.loads(attributes or "{}")
    call = rest.pop(CALL, None)
    if isinstance(call, dict) and call.get("arguments"):
        first = {} if call.get("argument") is None else {call["argument"]: first_input}
        input = identity.encode({**first, **call["arguments"]}).decode()
    if isinstance(call, dict) and "rets" in call:
        output = orjson.dumps(call["rets"]).decode()
    return [input, output, orjson.dumps(rest).decode(), events]
