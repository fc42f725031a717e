"""The spans of calls, and how their values are stored."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final

from orjson import Fragment

from evaluand.core.identity import decode
from evaluand.core.json_like import text_of
from evaluand.trace import Span, TaskSpan, Trace
from evaluand.trace.record import CALL


class CallSpan(Span):
    """A span of a call, which stores a description of values that are not data."""

    __slots__ = ()
    _by_reference = False

    def _storable(self, value: Any, where: str, name: str = "") -> Any:
        kind = type(value)
        if (
            kind is Fragment
            or value is None
            or kind is bool
            or (kind is str and value.isascii() and len(value) < 65536)
        ):
            return value
        return Fragment(text_of(value))


class CallTaskSpan(CallSpan, TaskSpan):
    """The span of the outermost call; `thread` is the thread that called."""

    __slots__ = ("thread",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.thread = threading.get_ident()


KINDS: Final = (CallSpan, CallTaskSpan)
_ATOMS: Final = frozenset((str, int, float, bool, type(None)))


def to_span_input(outer: Span, args: Mapping[str, Any]) -> Any:
    """Arguments in the form that the spans of a trace take."""
    if type(outer) is CallSpan or type(outer) is CallTaskSpan or all(type(value) in _ATOMS for value in args.values()):
        return args
    return decode(text_of(args))


def describe_call(main: str | None, args: Mapping[str, Any]) -> dict[str, Any]:
    """What the root stores about the call besides its input; see `evaluand.trace.record.CALL`."""
    call: dict[str, Any] = {"argument": main, "pid": os.getpid(), "tid": threading.get_ident()}
    if main is None or len(args) > 1:
        call["arguments"] = {name: value for name, value in args.items() if name != main}
    return call


def thread_attributes(outer: Span) -> dict[str, Any]:
    """The attribute for a span's thread, if it differs from the root's."""
    root = outer._trace.root
    here = threading.get_ident()
    return {CALL: {"tid": here}} if type(root) is CallTaskSpan and root.thread != here else {}


def extract_trace(top: Span, call_text: str | None, names: Mapping[int, str], gave: Any) -> Trace:
    """The part of a trace below a span as a separate trace, with the names of one recorder."""
    trace = top._trace
    late = (top.start_ns - trace.root.start_ns) // 1000
    numbers = {top.number: 0}
    rows = []
    for row in trace.rows():
        if row[0] != top.number:
            if row[1] not in numbers:
                continue
            numbers[row[0]] = len(numbers)
        number, parent, name, kind, start, duration, status, input, output, attributes, events = row
        name = names.get(number, name)
        events = events and [[message, time - late, body] for message, time, body in events]
        row = [numbers[number], numbers.get(parent), name, kind, start - late, duration, status]
        rows.append([*row, input, output, attributes, events])
    given, call = decode(call_text or "[null,{}]")
    if gave is not ...:
        call["rets"] = top.output
    own = Fragment(text_of({key: value for key, value in top.attributes.items() if key != CALL} | {CALL: call}))
    status, events = rows[0][6], rows[0][10]
    rows[0] = [0, None, rows[0][2], "task", 0, rows[0][5], status, None, None, own, events]
    trace = Trace.from_rows(
        rows,
        name=top.name,
        input=Fragment(text_of(given)),
        output=top._output if gave is ... else Fragment(text_of(gave)),
        start_ns=top.start_ns,
        end_ns=top.end_ns,
        status=top.status,
    )
    return trace
