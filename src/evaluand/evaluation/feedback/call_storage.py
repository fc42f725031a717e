"""The calls of a feedback as its table keeps them, and as they are read again.

A call is `{args, ret, meta, error}`, of which nothing is kept that is empty. Arguments stand there where those of all
calls of a row are short together. Long ones stand in the record already, and the calls have the order in which the
values that are selected there are combined; so they are left out, and selected again by who reads them. Where several
arguments have several values, the first call has the `order` of the arguments: the last one has another in each call.

Why not a reference in the place of each long argument: it would have to be told from values that look like one, and
with three feedbacks of five contexts the references alone take as much as all else that is kept of a record.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from evaluand.core.errors import DataError, EvaluandError
from evaluand.core.identity import encode, restore
from evaluand.core.json_like import escape_surrogates, to_json_like
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback.arguments import PLAIN

SHORT: Final = 100
"""How many characters the arguments of a row have at most that are kept."""


def kept(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls as they are written; what is no data is told by its likeness, half a character is escaped.

    Example:
        >>> calls = [{"args": {"text": text}, "ret": 1.0, "meta": {}, "error": None} for text in ("Emma", "Persuasion")]
        >>> kept(calls)
        [{'args': {'text': 'Emma'}, 'ret': 1.0}, {'args': {'text': 'Persuasion'}, 'ret': 1.0}]
        >>> calls[1]["args"]["text"] *= 10
        >>> kept(calls)
        [{'ret': 1.0}, {'ret': 1.0}]
    """
    short = _are_short(calls)
    made = []
    for call in calls:
        parts = {"args": call["args"] if short else {}, "meta": call["meta"]}
        written: dict[str, Any] = {name: _storable(part) for name, part in parts.items() if part}
        written["ret"] = call["ret"]
        if call["error"] is not None:
            written["error"] = call["error"]
        made.append(written)
    if not short and not _is_one_row(calls):
        made[0]["order"] = list(calls[0]["args"])
    return made


def told(kept: Any, spec: Mapping[str, Any], source: Callable[[], Mapping[str, Any] | None]) -> list[dict[str, Any]]:
    """Calls with all that is known of them: `{args, ret, meta, error}` each.

    Args:
        kept: what a cell of the column `calls` holds, as any reader of JSON has parsed it.
        spec: the identity of the feedback, which has its selectors.
        source: gives what was judged, or None where that is not at hand; asked only where arguments were left out.
            Those that cannot be had are told as `{"selected": "a value of …"}`.

    Example:
        >>> spec = {"selectors": {"text": "rets[:]"}, "combinations": "product"}
        >>> told([{"ret": 0.5}, {"ret": 1.0}], spec, lambda: {"rets": ["a", "b"]})[1]
        {'args': {'text': 'b'}, 'ret': 1.0, 'meta': {}, 'error': None}
        >>> told([{"ret": 0.5}, {"ret": 1.0}], spec, lambda: None)[1]["args"]
        {'text': {'selected': 'a value of rets[:]'}}
    """
    calls = restore(kept)
    selected: list[dict[str, Any]] | None = None
    made = []
    for number, call in enumerate(calls):
        if "args" not in call and selected is None:
            selected = _selected(spec, calls[0].get("order"), source(), len(calls))
        args = call["args"] if "args" in call else (selected or [])[number]
        made.append({"args": args, "ret": call["ret"], "meta": call.get("meta", {}), "error": call.get("error")})
    return made


def combined(selected: Mapping[str, Sequence[Any]], combinations: str) -> Iterator[dict[str, Any]]:
    """The arguments of each call, of the values that were selected for each argument."""
    combine = itertools.product if combinations == "product" or not selected else zip
    return (dict(zip(selected, values, strict=True)) for values in combine(*selected.values()))


def is_of_feedback(spec: Mapping[str, Any]) -> bool:
    """Whether the identity of a scorer is that of a feedback, whose column `calls` is read here."""
    return spec.get("kind") == "feedback" and isinstance(spec.get("selectors"), Mapping)


def _are_short(calls: Sequence[Mapping[str, Any]]) -> bool:
    left = SHORT
    for call in calls:
        for name, value in call["args"].items():
            left -= len(name) + (len(value) if type(value) is str else len(encode(_data(value))))
            if left < 0:
                return False
    return True


def _is_one_row(calls: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one argument has another value in each call, so that the others have one value each."""
    for name in calls[0]["args"]:
        values = {id(call["args"][name]): call["args"][name] for call in calls}  # few, where there are many calls
        if len(values) == len(calls) == len({v if type(v) is str else encode(_data(v)) for v in values.values()}):
            return True
    return False


def _storable(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {escape_surrogates(str(name)): _data(value) for name, value in values.items()}


def _data(value: Any) -> Any:
    if type(value) in PLAIN and (type(value) is not str or value.isascii()):
        return value
    try:
        encode(value)
    except DataError:
        return to_json_like(value)
    return value


def _selected(
    spec: Mapping[str, Any], order: Sequence[str] | None, source: Mapping[str, Any] | None, n: int
) -> list[dict[str, Any]]:
    """The arguments of so many calls."""
    selectors: Mapping[str, str] = spec["selectors"]
    with suppress(EvaluandError, KeyError):
        if source is not None:
            found = {name: Selector(selectors[name]).select(source) for name in order or selectors}
            made = list(itertools.islice(combined(found, spec["combinations"]), n + 1))
            if len(made) == n:
                return made
    return [{name: {"selected": f"a value of {text}"} for name, text in selectors.items()}] * n
