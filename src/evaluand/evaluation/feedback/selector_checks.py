"""Checks of selectors against an app: whether they can find anything in its records, before any is recorded.

The keys of a record, a call and an example are the same in all apps, so a selector of any other key never finds
anything. The calls that the app instruments are known; others may be traced by hand.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core.errors import DataError, nearest
from evaluand.core.redaction import HIDDEN, is_secret
from evaluand.core.selector import Selector
from evaluand.core.selector.steps import Every, Filter, Slice, Step, Union, printed
from evaluand.trace.record import CALL_KEYS, COST_KEYS, ITSELF, PERF_KEYS, RECORD_KEYS, place_of

RECORD: Final = "__record__"
APP: Final = "__app__"
EXAMPLE: Final = "__example__"
ROOTS: Final = (RECORD, APP, EXAMPLE)
"""The parts of a source: the first step of a selector is one of them."""

_KEYS: Final = {
    (RECORD,): RECORD_KEYS,
    (RECORD, "cost"): COST_KEYS,
    (RECORD, "perf"): PERF_KEYS,
    (EXAMPLE,): ("id", "input", "expected", "metadata", "attributes", "weight"),
}


class SelectorProblem(NamedTuple):
    """What a selector looks for that does not exist: `never` (in no app), `absent` (not in this one) or `doubtful`."""

    message: str
    certainty: str


def find_problem(selector: Selector, app: Mapping[str, Any]) -> SelectorProblem | None:
    """What is wrong with a selector, given the structure of an app; None where nothing is.

    Example:
        >>> find_problem(Selector("__record__.main_outptu"), {}).message
        "__record__ has no 'main_outptu' (did you mean 'main_output'?)"
    """
    steps = selector.steps
    if isinstance(steps[0], str) and steps[0] not in ROOTS:
        first = f"a selector begins with {', '.join(ROOTS)}, not with {str(steps[0])!r}"
        return SelectorProblem(f"{first}{nearest(steps[0], ROOTS)}", "never")
    for path, known in _KEYS.items():
        if steps[: len(path)] == path and (message := _check_key(".".join(path), steps[len(path) :], known)):
            return SelectorProblem(message, "never")
    if steps[0] == APP:
        return _check_structure(selector, app)
    message = None
    if steps[:2] == (RECORD, "app"):
        message = _check_app_calls(steps[2:], app)
    elif steps[:2] == (RECORD, "calls"):
        message = _check_call("a call", steps[2:], None)
    elif steps[:2] == (RECORD, "main_error"):
        message = "it is always null for a feedback, because a call that failed is not judged"
    return None if message is None else SelectorProblem(message, "doubtful")


def _check_structure(selector: Selector, app: Mapping[str, Any]) -> SelectorProblem | None:
    try:
        selector.require({APP: app})
    except DataError as error:
        return SelectorProblem(str(error).removeprefix(f"{selector.text}: "), "absent")
    return None


def _check_key(where: str, steps: Sequence[Step], known: Sequence[str]) -> str | None:
    """What is wrong with the first step, where it names an unknown key."""
    keys = [part for part in _step_parts(steps[0]) if isinstance(part, str)] if steps else []
    unknown = next((str(key) for key in keys if key not in known), None)
    return None if unknown is None else f"{where} has no {unknown!r}{nearest(unknown, known)}"


def _check_app_calls(steps: Sequence[Step], app: Mapping[str, Any]) -> str | None:
    """What is wrong with steps under `__record__.app`: no instrumented call, or keys that these calls do not have."""
    methods = [(path, name) for path, names in app.get("instrumented", {}).items() for name in names]
    known = [f"{path}.{name}" if path else name for path, name in methods]
    selected = {call: rest for call in known if (rest := _steps_after(place_of(call)[1], steps)) is not None}
    if known and not selected:
        names = itertools.takewhile(lambda step: isinstance(step, str | int), steps)
        path = "".join(map(printed, names)).removeprefix(".")
        return f"selects no call that the app instruments{nearest(path, known)}; it instruments {', '.join(known)}"
    arguments = app.get("arguments", {})
    problems = [_check_call(f"a call of {call}", rest, arguments.get(call)) for call, rest in selected.items()]
    return problems[0] if problems and all(problems) else None


def _steps_after(call: Sequence[str | int], steps: Sequence[Step]) -> Sequence[Step] | None:
    """The steps after those that select a call; empty where they end before it, None where they select another."""
    left = list(steps)
    for at in call:
        if not left or not isinstance(left[0], str | int | Slice | Union):
            return ()  # it selects everything, or what a filter says
        if isinstance(at, int) and all(isinstance(part, str) for part in _step_parts(left[0])):
            continue  # a name is looked up in each element of a list
        if not any(_matches(part, at) for part in _step_parts(left.pop(0))):
            return None
    return left


def _matches(step: Step, at: str | int) -> bool:
    if isinstance(at, str) or (isinstance(step, int) and step >= 0):
        return step == at
    return not isinstance(step, str)  # a place may be counted from the end, and the length is not known yet


def _check_call(what: str, steps: Sequence[Step], arguments: Sequence[str] | None) -> str | None:
    """What is wrong with the steps after a list of calls."""
    rest = list(itertools.dropwhile(_selects_elements, steps))
    if rest and isinstance(rest[0], Every | Filter):
        rest = rest[1:]
    if rest[:1] == [ITSELF]:
        rest = list(itertools.dropwhile(_selects_elements, rest[1:]))
    if rest[:1] == ["args"] and arguments is not None:
        return _check_key(f"args of {what}", rest[1:], arguments)
    return _check_key(what, rest, CALL_KEYS)


def _selects_elements(step: Step) -> bool:
    return all(isinstance(part, int | Slice) for part in _step_parts(step))


def _step_parts(step: Step) -> Sequence[Step]:
    return step.parts if isinstance(step, Union) else (step,)


def is_hidden(selector: Selector, source: Mapping[str, Any]) -> bool:
    """Whether `***` at this path is a credential that was hidden; see `evaluand.core.credentials`.

    Example:
        >>> call = {"args": {"password": "***"}}
        >>> source = {"__record__": {"main_input": "***", "calls": [call], "app": {"check": [call]}}}
        >>> [is_hidden(Selector(f"__record__.{path}"), source) for path in ("app.check.args.password", "main_input")]
        [True, True]
    """
    names = [step for step in selector.steps if isinstance(step, str)]
    if names[:2] != [RECORD, "main_input"]:
        return bool(names) and is_secret(names[-1])
    record = source[RECORD]
    calls = record.get("calls") if isinstance(record, Mapping) else None
    return any(value == HIDDEN and is_secret(str(name)) for name, value in (calls or [{}])[-1].get("args", {}).items())


def may_see_times(selector: Selector) -> bool:
    """Whether a selector may read what differs between two calls with equal results: times, ids and processes.

    Example:
        >>> may_see_times(Selector("__record__.app.ask[:].rets")), may_see_times(Selector("__record__.app.ask[0]"))
        (False, True)
    """
    steps: list[Any] = [*selector.steps, None, None]
    root, *rest = steps
    if root == APP:
        return False
    if root == EXAMPLE:
        return rest[0] not in _EXAMPLE_KEYS
    if rest[0] in ("calls", "app"):
        at = next((place for place, step in enumerate(rest) if place > 1 and step in _CALL_KEYS), None)
        return at is None or not all(isinstance(step, str | int | Slice) for step in rest[:at])
    return root != RECORD or rest[0] not in _RECORD_KEYS


_EXAMPLE_KEYS: Final = frozenset(("input", "expected", "metadata", "attributes", "weight"))
_RECORD_KEYS: Final = frozenset(("main_input", "main_output", "main_error", "cost", "app_id", "tags", "meta"))
_CALL_KEYS: Final = frozenset(("args", "rets", "error", "stack", "kind", "attributes", "events"))
"""The keys whose values are equal for calls with equal results."""
