"""The calls of a feedback as its table stores them, and how they are read again.

A call is `{args, ret, meta, error}`; empty parts are not stored. Arguments are stored only where those of all calls of
a row are short together. Long ones are in the record already, and the calls are in the order in which the values
selected there are combined, so they are left out and selected again when the calls are read. Where several arguments
have several values, the first call has the `order` of the arguments: the last one changes with each call.

Why long arguments are not replaced by references: a reference would have to be distinguished from values that look
like one, and with three feedbacks of five contexts the references alone take as much space as the rest of a record.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from evaluand.core.errors import DataError, EvaluandError
from evaluand.core.identity import encode, restore
from evaluand.core.json_like import escape_surrogates, to_json_like
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback.arguments import PLAIN
from evaluand.evaluation.scorer import CallReader

SHORT: Final = 100
"""The most characters that the stored arguments of a row have together."""


def pack_calls(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls as they are stored; values that are not data are described, half a character is escaped.

    Example:
        >>> calls = [{"args": {"text": text}, "ret": 1.0, "meta": {}, "error": None} for text in ("Emma", "Persuasion")]
        >>> pack_calls(calls)
        [{'args': {'text': 'Emma'}, 'ret': 1.0}, {'args': {'text': 'Persuasion'}, 'ret': 1.0}]
        >>> calls[1]["args"]["text"] *= 10
        >>> pack_calls(calls)
        [{'ret': 1.0}, {'ret': 1.0}]
    """
    short = _are_short(calls)
    packed = []
    for call in calls:
        written: dict[str, Any] = {}
        for name, part in (("args", call["args"] if short else {}), ("meta", call["meta"])):
            if part:
                written[name] = {escape_surrogates(str(key)): _to_data(value) for key, value in part.items()}
        written["ret"] = call["ret"]
        if call["error"] is not None:
            written["error"] = call["error"]
        packed.append(written)
    if not short and not _is_one_row(calls):
        packed[0]["order"] = list(calls[0]["args"])
    return packed


def call_reader(spec: Mapping[str, Any]) -> CallReader | None:
    """What reads the stored calls of a feedback; None for an identity that is not one of a feedback.

    Args:
        spec: the identity of a scorer.
    """
    return partial(read_calls, spec) if isinstance(spec.get("selectors"), Mapping) else None


def read_calls(
    spec: Mapping[str, Any], stored: Any, source: Callable[[], Mapping[str, Any] | None]
) -> list[dict[str, Any]]:
    """Stored calls with all their parts: `{args, ret, meta, error}` each.

    Args:
        spec: the identity of the feedback, which has its selectors.
        stored: a cell of the column `calls`, as any JSON parser reads it.
        source: returns what was judged, or None where that is not available; called only where arguments were left
            out. Arguments that cannot be selected again are shown as `{"selected": "a value of …"}`.

    Example:
        >>> spec = {"selectors": {"text": "rets[:]"}, "combinations": "product"}
        >>> read_calls(spec, [{"ret": 0.5}, {"ret": 1.0}], lambda: {"rets": ["a", "b"]})[1]
        {'args': {'text': 'b'}, 'ret': 1.0, 'meta': {}, 'error': None}
        >>> read_calls(spec, [{"ret": 0.5}, {"ret": 1.0}], lambda: None)[1]["args"]
        {'text': {'selected': 'a value of rets[:]'}}
    """
    calls = restore(stored)
    selected: list[dict[str, Any]] | None = None
    complete = []
    for number, call in enumerate(calls):
        if "args" not in call and selected is None:
            selected = _select_arguments(spec, calls[0].get("order"), source(), len(calls))
        args = call["args"] if "args" in call else (selected or [])[number]
        complete.append({"args": args, "ret": call["ret"], "meta": call.get("meta", {}), "error": call.get("error")})
    return complete


def combine(selected: Mapping[str, Sequence[Any]], combinations: str) -> Iterator[dict[str, Any]]:
    """The arguments of each call, from the values that were selected for each argument."""
    iterate = itertools.product if combinations == "product" or not selected else zip
    return (dict(zip(selected, values, strict=True)) for values in iterate(*selected.values()))


def _are_short(calls: Sequence[Mapping[str, Any]]) -> bool:
    left = SHORT
    for call in calls:
        for name, value in call["args"].items():
            left -= len(name) + (len(value) if type(value) is str else len(encode(_to_data(value))))
            if left < 0:
                return False
    return True


def _is_one_row(calls: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one argument has another value in each call, so that the others have one value each."""
    for name in calls[0]["args"]:
        values = {id(call["args"][name]): call["args"][name] for call in calls}  # few, where there are many calls
        distinct = {value if type(value) is str else encode(_to_data(value)) for value in values.values()}
        if len(values) == len(calls) == len(distinct):
            return True
    return False


def _to_data(value: Any) -> Any:
    if type(value) in PLAIN and (type(value) is not str or value.isascii()):
        return value
    try:
        encode(value)
    except DataError:
        return to_json_like(value)
    return value


def _select_arguments(
    spec: Mapping[str, Any], order: Sequence[str] | None, source: Mapping[str, Any] | None, n_calls: int
) -> list[dict[str, Any]]:
    """The arguments of `n_calls` calls, selected again; placeholders where the source does not give that many."""
    selectors: Mapping[str, str] = spec["selectors"]
    with suppress(EvaluandError, KeyError):
        if source is not None:
            values = {name: Selector(selectors[name]).select(source) for name in order or selectors}
            arguments = list(itertools.islice(combine(values, spec["combinations"]), n_calls + 1))
            if len(arguments) == n_calls:
                return arguments
    return [{name: {"selected": f"a value of {text}"} for name, text in selectors.items()}] * n_calls
