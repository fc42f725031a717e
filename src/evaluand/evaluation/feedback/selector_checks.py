"""Selectors held against an app: whether they lead anywhere in its records, before there are any.

What a record, a call and an example consist of is the same in all apps, so a selector of something else never leads
anywhere. Which calls there are is known as far as the app instruments them; others may be traced by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core.errors import DataError
from evaluand.core.registry import nearest
from evaluand.core.selector import Selector
from evaluand.core.selector.steps import Every, Filter, Slice, Step, Union, printed
from evaluand.trace.record import CALL_KEYS, COST_KEYS, ITSELF, PERF_KEYS, RECORD_KEYS, place_of

RECORD: Final = "__record__"
APP: Final = "__app__"
EXAMPLE: Final = "__example__"
ROOTS: Final = (RECORD, APP, EXAMPLE)
"""The parts of a source, which are the first steps of selectors."""

_KEYS: Final = {
    (RECORD,): RECORD_KEYS,
    (RECORD, "cost"): COST_KEYS,
    (RECORD, "perf"): PERF_KEYS,
    (EXAMPLE,): ("id", "input", "expected", "metadata", "attributes", "weight"),
}


class Nowhere(NamedTuple):
    """What is to be told of a selector.

    Attributes:
        message: what it does not lead to.
        how: `never`, in no app; `absent`, not in this app; or `doubtful`.
    """

    message: str
    how: str


def nowhere(selector: Selector, app: Mapping[str, Any]) -> Nowhere | None:
    """What is to be told of a selector beside the structure of an app; None where nothing is wrong.

    Example:
        >>> nowhere(Selector("__record__.main_outptu"), {}).message
        "__record__ has no 'main_outptu' (did you mean 'main_output'?)"
    """
    steps = selector.steps
    if isinstance(steps[0], str) and steps[0] not in ROOTS:
        begins = f"a selector begins with {', '.join(ROOTS)}, not with {str(steps[0])!r}"
        return Nowhere(f"{begins}{nearest(steps[0], ROOTS)}", "never")
    for path, known in _KEYS.items():
        if steps[: len(path)] == path and (told := _unknown(".".join(path), steps[len(path) :], known)):
            return Nowhere(told, "never")
    if steps[0] == APP:
        return _in_structure(selector, app)
    told = None
    if steps[:2] == (RECORD, "app"):
        told = _in_app(steps[2:], app)
    elif steps[:2] == (RECORD, "calls"):
        told = _in_call("a call", steps[2:], None)
    elif steps[:2] == (RECORD, "main_error"):
        told = "it is null wherever a feedback is asked, since a call that failed is not judged"
    return None if told is None else Nowhere(told, "doubtful")


def _in_structure(selector: Selector, app: Mapping[str, Any]) -> Nowhere | None:
    try:
        selector.require({APP: app})
    except DataError as error:
        return Nowhere(str(error).removeprefix(f"{selector.text}: "), "absent")
    return None


def _unknown(where: str, steps: Sequence[Step], known: Sequence[str]) -> str | None:
    """What is to be told of the first of some steps, where it names a key that is not known."""
    named = [part for part in _parts(steps[0]) if isinstance(part, str)] if steps else []
    wrong = next((str(part) for part in named if part not in known), None)
    return None if wrong is None else f"{where} has no {wrong!r}{nearest(wrong, known)}"


def _in_app(steps: Sequence[Step], app: Mapping[str, Any]) -> str | None:
    """Of the calls where they belong in the app: whether their method is instrumented, and they have the rest."""
    methods = [(path, name) for path, names in app.get("instrumented", {}).items() for name in names]
    known = [f"{path}.{name}" if path else name for path, name in methods]
    led = {call: rest for call in known if (rest := _behind(place_of(call)[1], steps)) is not None}
    if known and not led:
        asked = itertools.takewhile(lambda step: isinstance(step, str | int), steps)
        told = "".join(map(printed, asked)).removeprefix(".")
        return f"leads to no call that the app instruments{nearest(told, known)}; there are {', '.join(known)}"
    arguments = app.get("arguments", {})
    wrong = [_in_call(f"a call of {call}", rest, arguments.get(call)) for call, rest in led.items()]
    return wrong[0] if wrong and all(wrong) else None


def _behind(call: Sequence[str | int], steps: Sequence[Step]) -> Sequence[Step] | None:
    """The steps behind those that lead to a call; none where they end before it, None where they lead elsewhere."""
    waiting = list(steps)
    for at in call:
        if not waiting or not isinstance(waiting[0], str | int | Slice | Union):
            return ()  # it leads to all there is, or to what a test says
        if isinstance(at, int) and all(isinstance(part, str) for part in _parts(waiting[0])):
            continue  # a name goes through lists
        if not any(_leads(part, at) for part in _parts(waiting.pop(0))):
            return None
    return waiting


def _leads(step: Step, at: str | int) -> bool:
    if isinstance(at, str) or (isinstance(step, int) and step >= 0):
        return step == at
    return not isinstance(step, str)  # how many there are, from whose end a place may be counted, is not known


def _in_call(what: str, steps: Sequence[Step], arguments: Sequence[str] | None) -> str | None:
    """Of what follows a list of calls: whether these have it."""
    rest = list(itertools.dropwhile(_is_of_lists, steps))
    if rest and isinstance(rest[0], Every | Filter):
        rest = rest[1:]
    if rest[:1] == [ITSELF]:
        rest = list(itertools.dropwhile(_is_of_lists, rest[1:]))
    if rest[:1] == ["args"] and arguments is not None:
        return _unknown(f"args of {what}", rest[1:], arguments)
    return _unknown(what, rest, CALL_KEYS)


def _is_of_lists(step: Step) -> bool:
    return all(isinstance(part, int | Slice) for part in _parts(step))


def _parts(step: Step) -> Sequence[Step]:
    return step.parts if isinstance(step, Union) else (step,)
