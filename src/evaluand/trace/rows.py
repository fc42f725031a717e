"""Spans as compact lists, in which a run keeps them, and spans made of such lists."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from orjson import Fragment

from evaluand.core.errors import DataError, Fault
from evaluand.trace.spans import STATUSES, Span, TaskSpan
from evaluand.trace.values import text_of

if TYPE_CHECKING:
    from evaluand.trace.traces import Trace

# fmt: off
ROW_FIELDS = (
    "number", "parent", "name", "kind", "start", "duration", "status", "input", "output", "attributes", "events",
)
# fmt: on


def rows_of(trace: Trace) -> list[list[Any]]:
    """The rows of a trace's spans; see `Trace.rows`."""
    root = trace.root
    if len(trace._spans) == 1 and not (root._attributes or root._events):
        return []
    origin = root.start_ns
    return [_row(s, origin) for s in trace.spans if s.parent is not None or s._attributes or s._events]


def restore(trace: Trace, rows: Iterable[Sequence[Any]]) -> None:
    """Opens the spans of rows in a trace that has its root alone.

    Raises:
        DataError: a row is not that of a span; names the row.
    """
    numbers: dict[int, Span] = {0: trace.root}
    for place, row in enumerate(rows):
        try:
            _add(trace, row, numbers)
        except (TypeError, ValueError) as error:
            raise DataError(Fault(f"spans[{place}]", f"not the row of a span: {error}")) from None
    for span in trace._spans:
        if span.end_ns is None and span._status:  # it ended, and nobody knows when
            del span._is_open
    trace._next_number = itertools.count(max(numbers) + 1).__next__


def _row(span: Span, origin: int) -> list[Any]:
    end, root = span.end_ns, span.parent is None
    return [
        span.number,
        span.parent,
        span.name,
        span.kind,
        (span.start_ns - origin) // 1000,
        None if end is None else (end - span.start_ns) // 1000,
        span._status,
        None if root else span._input,
        None if root else span._output,
        _object(span._attributes) if span._attributes else None,
        [[name, (time - origin) // 1000, body] for name, time, body in span._events] if span._events else None,
    ]


def _object(kept: Mapping[str, Any]) -> Fragment:
    kept = dict(kept)  # a thread that outlives the call may still be adding
    if len(kept) == 1:
        ((key, item),) = kept.items()
        if key.startswith("$"):  # as evaluand.core.identity does: a single such key would read as a marked value
            kept = {"$" + key: item}
    try:
        text = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # keys that came in by ** and cannot be written
        text = orjson.dumps({text_of(key): item for key, item in kept.items()}, option=orjson.OPT_SORT_KEYS)
    return Fragment(text.decode())


def _add(trace: Trace, row: Sequence[Any], numbers: dict[int, Span]) -> None:
    if isinstance(row, str) or len(row) != len(ROW_FIELDS):
        raise ValueError(f"it needs the {len(ROW_FIELDS)} values {', '.join(ROW_FIELDS)}")
    number, parent, name, kind, start, duration, status, input, output, attributes, events = row
    if not (isinstance(name, str) and isinstance(kind, str)):
        raise ValueError("name and kind must be text")
    whole = [number, start, status] + [n for n in (parent, duration) if n is not None]
    if any(type(n) is not int for n in whole):
        raise ValueError("number, parent, start, duration and status must be integers")
    if not 0 <= status < len(STATUSES):
        raise ValueError(f"status must be 0 to {len(STATUSES) - 1}, not {status}")
    span: Span = trace.root
    if parent is not None:
        if number <= trace._spans[-1].number or parent not in numbers:
            raise ValueError(f"its number {number} must be above those before it, and its parent {parent} one of them")
        span = (TaskSpan if kind == "task" else Span)(trace, numbers[parent], name, kind, None, {})
        span.start_ns = trace.root.start_ns + start * 1000
        span._input, span._output = _stored(input), _stored(output)
    elif number != 0:
        raise ValueError(f"only span 0 has no parent, not span {number}")
    span.number, span.name, span.kind, span._status = number, name, kind, status
    span.end_ns = None if duration is None else span.start_ns + duration * 1000
    span._attributes = _restored_object(attributes)
    span._events = [_restored_event(trace, *event) for event in _plain(events) or ()]
    numbers[number] = span


def _restored_event(trace: Trace, name: Any, time: Any, body: Any) -> tuple[str, int, Any]:
    if not isinstance(name, str) or type(time) is not int:
        raise ValueError("an event needs a name, a time in whole microseconds and a value")
    return name, trace.root.start_ns + time * 1000, _stored(body)


def _stored(cell: Any) -> Any:
    """A cell, read back or not, as `Span._kept` keeps it."""
    plain = _plain(cell)
    return Fragment(orjson.dumps(plain)) if isinstance(plain, dict | list) else plain


def _restored_object(cell: Any) -> dict[str, Any]:
    plain = _plain(cell)
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise ValueError("attributes must be an object")
    if len(plain) == 1 and next(iter(plain)).startswith("$$"):
        plain = {key[1:]: item for key, item in plain.items()}
    return {key: _stored(item) for key, item in plain.items()}


def _plain(cell: Any) -> Any:
    return orjson.loads(orjson.dumps(cell)) if type(cell) is Fragment else cell
