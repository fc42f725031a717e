"""Convert spans to compact rows, as a run stores them, and back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
from orjson import Fragment

from evaluand.core.errors import DataError, Fault
from evaluand.trace.spans import STATUSES, Span, TaskSpan
from evaluand.trace.values import parse_cell, text_of

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
    """Add the spans of rows to a trace that has only its root; a DataError names a row that is not a valid span."""
    numbers: dict[int, Span] = {0: trace.root}
    for place, row in enumerate(rows):
        try:
            _add_span(trace, row, numbers)
        except (TypeError, ValueError) as error:
            raise DataError(Fault(f"spans[{place}]", f"not a valid row of a span: {error}")) from None
    for span in trace._spans:
        if span.end_ns is None and span._status:  # it ended at an unknown time
            del span._is_open
    trace._numbers = itertools.count(max(numbers) + 1)


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
        _write_attributes(span._attributes) if span._attributes else None,
        [[name, (time - origin) // 1000, body] for name, time, body in span._events] if span._events else None,
    ]


def _write_attributes(attributes: Mapping[str, Any]) -> Fragment:
    attributes = dict(attributes)  # a thread that outlives the call may still add some
    if len(attributes) == 1:
        ((key, item),) = attributes.items()
        if key.startswith("$"):  # as in evaluand.core.identity: a single such key would be read as a marked value
            attributes = {"$" + key: item}
    try:
        text = orjson.dumps(attributes, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # keys passed by ** that cannot be written
        text = orjson.dumps({text_of(key): item for key, item in attributes.items()}, option=orjson.OPT_SORT_KEYS)
    return Fragment(text.decode())


def _add_span(trace: Trace, row: Sequence[Any], numbers: dict[int, Span]) -> None:
    if isinstance(row, str) or len(row) != len(ROW_FIELDS):
        raise ValueError(f"it needs the {len(ROW_FIELDS)} values {', '.join(ROW_FIELDS)}")
    number, parent, name, kind, start, duration, status, input, output, attributes, events = row
    if not (isinstance(name, str) and isinstance(kind, str)):
        raise ValueError("name and kind must be text")
    integers = [number, start, status] + [n for n in (parent, duration) if n is not None]
    if any(type(n) is not int for n in integers):
        raise ValueError("number, parent, start, duration and status must be integers")
    if not 0 <= status < len(STATUSES):
        raise ValueError(f"status must be 0 to {len(STATUSES) - 1}, not {status}")
    span: Span = trace.root
    if parent is not None:
        if number <= trace._spans[-1].number or parent not in numbers:
            raise ValueError(
                f"its number {number} must be above the previous ones, and its parent {parent} one of them"
            )
        span = (TaskSpan if kind == "task" else Span)(trace, numbers[parent], name, kind, None, {})
        span.start_ns = trace.root.start_ns + start * 1000
        span._input, span._output = _cell_value(input), _cell_value(output)
    elif number != 0:
        raise ValueError(f"only span 0 has no parent, not span {number}")
    span.number, span.name, span.kind, span._status = number, name, kind, status
    span.end_ns = None if duration is None else span.start_ns + duration * 1000
    span._attributes = _read_attributes(attributes)
    span._events = [_read_event(trace, *event) for event in parse_cell(events) or ()]
    numbers[number] = span


def _read_event(trace: Trace, name: Any, time: Any, body: Any) -> tuple[str, int, Any]:
    if not isinstance(name, str) or type(time) is not int:
        raise ValueError("an event needs a name, a time in whole microseconds and a value")
    return name, trace.root.start_ns + time * 1000, _cell_value(body)


def _cell_value(cell: Any) -> Any:
    """A cell, parsed or not, in the form of `Span._storable`."""
    value = parse_cell(cell)
    return Fragment(orjson.dumps(value)) if isinstance(value, dict | list) else value


def _read_attributes(cell: Any) -> dict[str, Any]:
    attributes = parse_cell(cell)
    if attributes is None:
        return {}
    if not isinstance(attributes, dict):
        raise ValueError("attributes must be an object")
    if len(attributes) == 1 and next(iter(attributes)).startswith("$$"):
        attributes = {key[1:]: item for key, item in attributes.items()}
    return {key: _cell_value(item) for key, item in attributes.items()}
