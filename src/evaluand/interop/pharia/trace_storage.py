"""Traces of examples as rows of a run: each written once, when its root span is closed.

So a span costs microseconds. Traces of calls in flight are lost when a process dies; their examples have no output and
are run again. To see such traces as well, pass a `FileTracer` to the runner.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, cast
from uuid import UUID

import orjson
from orjson import Fragment

from evaluand.core.identity import decode, encode
from evaluand.trace.export import at, json_text
from evaluand.trace.spans import STATUSES, Span, TaskSpan
from evaluand.trace.tracer import RootTracer
from evaluand.trace.tracers.in_memory import InMemoryTracer
from evaluand.trace.traces import Trace
from evaluand.trace.watcher import Watcher


class ExampleTracer(RootTracer):
    """A tracer that stores each trace, as JSON text, when its root span is closed."""

    def __init__(self, store: Callable[[bytes], None]) -> None:
        self._watchers = (_Writer(store),)

    def new_trace(self) -> Trace:
        return Trace(kinds=(_WrittenSpan, _WrittenTaskSpan), watchers=self._watchers)


def restore_traces(rows: Iterable[Any]) -> InMemoryTracer:
    """The traces that an `ExampleTracer` stored, with the same ids, times and numbers."""
    tracer = InMemoryTracer()
    for each in rows:
        _restore(tracer, _StoredTrace(*each))
    return tracer


class _WrittenSpan(Span):
    """A span that stores its input as it was at the start; the root span too."""

    __slots__ = ()
    _by_reference: ClassVar[bool] = False

    def _unstorable(self, value: Any, attribute: str, error: Exception) -> Any:
        """The JSON that other tracers write: a list for a set, text for a path."""
        try:
            return Fragment(encode(orjson.loads(json_text(value))).decode())
        except Exception:  # methods of the value may raise anything
            return super()._unstorable(value, attribute, error)


class _WrittenTaskSpan(_WrittenSpan, TaskSpan):
    __slots__ = ()


class _Writer(Watcher):
    """Stores a trace when its root span is closed."""

    __slots__ = ("_store",)

    def __init__(self, store: Callable[[bytes], None]) -> None:
        self._store = store

    def closed(self, span: Span) -> None:
        if span._above is not None:
            return
        trace, end = span._trace, cast(int, span.end_ns)
        status = STATUSES.index(span.status)
        head = (trace.id.hex, span.name, span.kind, span.start_ns, end, status, span._input, span._output)
        ids = [(each.number, id.hex) for each in trace.spans if (id := each.explicit_id)]
        self._store(orjson.dumps((*head, trace.rows(), ids) if ids else (*head, trace.rows())))


class _StoredTrace(NamedTuple):
    """A trace as it is stored; the root span without the values that have a separate row."""

    id: str
    name: str
    kind: str
    start_ns: int
    end_ns: int
    status: int
    input: Any
    output: Any
    rows: list[list[Any]]
    ids: Sequence[tuple[int, str]] = ()  # of spans whose id was set explicitly


class _Step(NamedTuple):
    """Something logged on a span, to be logged again."""

    time_ns: int
    span: int
    name: str
    body: Any


def _restore(tracer: InMemoryTracer, stored: _StoredTrace) -> None:
    """Open, log and close all spans again in the original order."""
    origin = stored.start_ns
    root = tracer.span(stored.name, at(origin), kind=stored.kind, input=_value(stored.input))
    root._trace._id = UUID(stored.id)
    spans: dict[int, Span] = {0: root}
    logged = deque(sorted(_steps(stored.rows, origin), key=lambda step: step.time_ns))
    for number, parent, name, kind, start, *_, input, _, attributes, _ in stored.rows:
        began = origin + start * 1000
        while logged and logged[0].time_ns < began:
            _log(spans, logged.popleft())
        if parent is not None:
            spans[number] = spans[parent].span(name, at(began), kind=kind, input=_value(input))
        if attributes:
            spans[number].set(**_value(attributes))
    for number, id in stored.ids:
        spans[number]._id = UUID(id)
    for step in logged:
        _log(spans, step)
    for number, _, _, _, start, duration, status, _, output, _, _ in reversed(stored.rows):
        if number:
            _close(spans[number], _value(output), status, None if duration is None else start + duration, origin)
    _close(root, _value(stored.output), stored.status, 0, stored.end_ns)


def _steps(rows: Iterable[list[Any]], origin: int) -> Iterator[_Step]:
    for row in rows:
        for name, time, body in row[-1] or ():
            yield _Step(origin + time * 1000, row[0], name, body)


def _log(spans: dict[int, Span], step: _Step) -> None:
    spans[step.span].log(step.name, _value(step.body), at(step.time_ns))


def _close(span: Span, output: Any, status: int, end: int | None, origin: int) -> None:
    if output is not None:
        span.record_output(output)
    if status:
        span.status = STATUSES[status]
    if end is not None:
        span.end(at(origin + end * 1000))


def _value(stored: Any) -> Any:
    return decode(orjson.dumps(stored)) if isinstance(stored, dict | list) else stored
