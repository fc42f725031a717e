"""Spans, and the current span of a context."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from time import perf_counter_ns
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import orjson
from orjson import Fragment

from evaluand.core.credentials import hide_arguments, hide_credentials, hide_member
from evaluand.core.errors import SpecError
from evaluand.core.identity import encode
from evaluand.core.placeholders import unstorable
from evaluand.trace.tracer import ClosedSpanError, EnteredSpanError, OpenSpanError, Tracer
from evaluand.trace.tree import label
from evaluand.trace.values import error_text, nanoseconds, stack_trace, text_of, value_of

if TYPE_CHECKING:
    from evaluand.trace.export import Context, ExportedSpan, SpanStatus
    from evaluand.trace.traces import Trace

STATUSES = ("unset", "ok", "error")


class Event(NamedTuple):
    """A value logged on a span.

    Attributes:
        name: what it is; `exception` for an error that passed through the span.
        time_ns: when, in nanoseconds since 1970.
        body: the value logged.
    """

    name: str
    time_ns: int
    body: Any


class Span(Tracer):
    """One step of a task call. Open one with `Tracer.span` or `span`, never with the constructor.

    Attributes:
        number: its ordinal in the trace: 0 is the root, then 1, 2, … in order of opening.
        parent: the number of the span it was opened from; None for the root.
        name: the name of the step.
        kind: `task`, `span`, `llm`, `retriever`, `tool`, …
        start_ns: when it was opened, in nanoseconds since 1970.
        end_ns: when it was closed; None while it is open. Closing a span leaves its open children open, but no
            further ones can be opened below it.

    Example:
        >>> from evaluand import Trace
        >>> trace = Trace.start("answer", "Who wrote Emma?")
        >>> with trace.root as task_span:
        ...     with task_span.span("retrieve", kind="retriever", k=2) as s:
        ...         s.log("hits", ["p. 3", "p. 9"])
        ...     task_span.output = "Jane Austen"
        >>> s.status, s.attributes, s.events[0].body
        ('ok', {'k': 2}, ['p. 3', 'p. 9'])
    """

    number: int
    # What most spans never have is here and not in each of them
    end_ns: int | None = None
    _id: uuid.UUID | None = None
    _status: int = 0
    _input: Any = None
    _output: Any = None
    _entered: bool = False
    _outer: Span | None = None

    _by_reference: ClassVar[bool] = True
    """Whether the root holds references to its input and output, which are stored elsewhere."""

    def __init__(
        self,
        trace: Trace,
        above: Span | None,
        name: str,
        kind: str,
        input: Any,
        attributes: Mapping[str, Any],
        timestamp: datetime | None = None,
    ) -> None:
        self._trace = trace
        self._above = above
        if above is None:
            trace.root = cast("TaskSpan", self)  # or a plain span, if the tracer was asked for one
            self.parent = None
        else:
            self.parent = above.number
        self.name = name if type(name) is str and name.isascii() else text_of(name)
        self.kind = kind if type(kind) is str and kind.isascii() else text_of(kind)
        self._attributes: dict[str, Any] = {}
        self._events: list[tuple[str, int, Any]] = []
        self._is_open = True
        if input is not None:
            self._input = (
                input
                if above is None and self._by_reference
                else self._storable(hide_arguments(input) if type(input) is dict else hide_credentials(input), "input")
            )
        if attributes:
            self._put(hide_arguments(attributes))
        # A number is taken and a span appended in one step each, so threads lose nothing; `Trace.spans` sorts.
        self.number = next(trace._numbers)
        self.start_ns = perf_counter_ns() + trace._clock_offset if timestamp is None else nanoseconds(timestamp)
        if trace.stores_spans:
            trace._spans.append(self)
        for watcher in trace._watchers:
            watcher.opened(self)

    @property
    def id(self) -> uuid.UUID:
        """The id of the span outside its trace; the root has the id of the trace unless a watcher sets ids."""
        if self._id is None:
            if self._above is None:
                return self._trace.id
            self._id = self._id_by_number()
        return self._id

    @property
    def explicit_id(self) -> uuid.UUID | None:
        """The id, if it does not follow from the id of the trace and the number of the span."""
        return None if self._id is None or self._id == self._id_by_number() else self._id

    @property
    def context(self) -> Context:
        """The ids of the trace and of the span."""
        context: Context = _export_module().Context(trace_id=self._trace.id, span_id=self.id)
        return context

    @property
    def parent_id(self) -> uuid.UUID | None:
        """The id of the parent; None for the root."""
        return None if self._above is None else self._above.id

    @property
    def input(self) -> Any:
        """The input of the step, as it was when the span was opened."""
        return value_of(self._input)

    @property
    def output(self) -> Any:
        """The output of the step, as it was when it was set; None until then."""
        return value_of(self._output)

    @output.setter
    def output(self, value: Any) -> None:
        self.record_output(value)

    @property
    def attributes(self) -> dict[str, Any]:
        """A copy of the attributes; change them with `set`."""
        return {key: value_of(stored) for key, stored in self._attributes.copy().items()}

    @property
    def has_attributes(self) -> bool:
        """Whether there are any attributes, without copying them."""
        return bool(self._attributes)

    def attribute(self, name: str) -> Any:
        """One attribute, or None, without copying the others."""
        return value_of(self._attributes.get(name))

    @property
    def events(self) -> list[Event]:
        """The logged events, in order."""
        return [Event(name, time, value_of(body)) for name, time, body in self._events]

    @property
    def status(self) -> str:
        """The status that was set; else `error` if an exception passed through, `ok` if closed without one.

        `unset` while the span is open, and for a generator or coroutine that was dropped before its end.
        """
        return STATUSES[self._status]

    @status.setter
    def status(self, status: str) -> None:
        self._require_open("set the status of")
        self._status = status_code(status)

    @property
    def status_code(self) -> SpanStatus:
        """The status as `ERROR`, or `OK` for everything else."""
        code: SpanStatus = _export_module().SpanStatus("ERROR" if self._status == 2 else "OK")
        return code

    @status_code.setter
    def status_code(self, code: SpanStatus) -> None:
        self.status = code.value.lower()

    def span(
        self,
        name: str = "",
        /,
        timestamp: datetime | None = None,
        *,
        kind: str = "span",
        input: Any = None,
        **attributes: Any,
    ) -> Span:
        if self.end_ns is not None:
            self._require_open(f"open {name!r} below")
        return self._trace.open(self, name, timestamp, kind, input, attributes)

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        """Add an event; it happened now unless there is a timestamp.

        Raises:
            ClosedSpanError: the span is closed.
        """
        if self.end_ns is not None:
            self._require_open(f"log {message!r} on")
        trace = self._trace
        time = perf_counter_ns() + trace._clock_offset if timestamp is None else nanoseconds(timestamp)
        message = message if type(message) is str and message.isascii() else text_of(message)
        event = message, time, self._storable(hide_member(message, value), "events", message)
        self._events.append(event)
        for watcher in trace._watchers:
            watcher.logged(self, event)

    def set(self, /, **attributes: Any) -> None:
        """Set attributes; the last value of a name counts.

        Raises:
            ClosedSpanError: the span is closed.
        """
        self._require_open("set attributes on")
        attributes = hide_arguments(attributes)
        self._put(attributes)
        for watcher in self._trace._watchers:
            watcher.changed(self, attributes)

    def record_output(self, output: Any) -> None:
        """Set `output`.

        Raises:
            ClosedSpanError: the span is closed.
        """
        self._require_open("record the output of")
        self._output = output if self._above is None and self._by_reference else self._storable(output, "output")

    def end(self, timestamp: datetime | None = None) -> None:
        """End the span now, or as of `timestamp`; for spans opened without `with`. Further calls have no effect."""
        if self.end_ns is None:
            self._status = self._status or 1
            self._close(timestamp)

    close = end

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return export_spans(self._trace, self)

    def __enter__(self) -> Self:
        if self._entered or self.end_ns is not None:
            self._refuse_entry()
        self._entered = True
        self._outer = _current.get()
        _current.set(self)
        for watcher in self._trace._watchers:
            watcher.entered(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Not by token: a generator may be left in another context or order than it was entered.
        if _current.get() is self:
            _current.set(self._outer)
        for watcher in self._trace._watchers:
            watcher.left(self)
        if self.end_ns is None:
            if error is not None:
                self._fail(error)
            elif self._status == 0:
                self._status = 1
            self._close(None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number} {label(self)}>"

    def _id_by_number(self) -> uuid.UUID:
        if self._above is None:
            return self._trace.id
        trace_id = self._trace.id.int
        return uuid.UUID(int=trace_id & ~_LOW | (trace_id + self.number * _ODD) & _LOW)

    def _close(self, timestamp: datetime | None) -> None:
        try:
            del self._is_open  # atomic: only one of several threads closes it
        except AttributeError:
            return
        trace = self._trace
        self.end_ns = perf_counter_ns() + trace._clock_offset if timestamp is None else nanoseconds(timestamp)
        for watcher in trace._watchers:
            watcher.closed(self)

    def _require_open(self, what: str) -> None:
        if self.end_ns is not None:
            raise ClosedSpanError(f"cannot {what} the span {self.name!r}: it is closed; do it inside its `with` block")

    def _refuse_entry(self) -> None:
        raise EnteredSpanError(f"span {self.name!r} was already entered; open a child with .span(…) and enter that")

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, GeneratorExit):  # dropped by its reader: neither completed nor failed
            return
        trace = self._trace
        time = perf_counter_ns() + trace._clock_offset
        body = {"type": type(error).__qualname__, "message": error_text(error)}
        if trace._stack_traces:
            body["stack_trace"] = stack_trace(error)
        event = "exception", time, self._storable(body, "events", "exception")
        self._events.append(event)
        self._status = 2
        for watcher in trace._watchers:
            watcher.failed(self, event, error)

    def _put(self, attributes: Mapping[str, Any]) -> None:
        for key, value in attributes.items():
            self._attributes[key] = self._storable(value, "attributes", key)

    def _storable(self, value: Any, where: str, name: str = "") -> Any:
        """The value as it will be written: itself if immutable and written canonically by orjson, else its text."""
        kind = type(value)
        if kind is str:
            if value.isascii():  # other text may hold lone surrogates
                return value
        elif value is None or kind is bool or ((kind is int or kind is float) and -_LARGE < value < _LARGE):
            return value
        try:
            return Fragment(encode(value).decode())  # a copy: bytes fresh from orjson occupy 4 kB each (orjson 3.13)
        except Exception as error:  # encoding runs code of the value, such as model_dump
            return self._unstorable(value, f"unstorable.{where}.{name}" if name else f"unstorable.{where}", error)

    def _unstorable(self, value: Any, attribute: str, error: Exception) -> Any:
        """A placeholder for a value that is not data; the attribute says why."""
        self._attributes[text_of(attribute)] = error_text(error)
        return Fragment(orjson.dumps(unstorable(text_of(type(value).__qualname__))))


class TaskSpan(Span):
    """The span of one task call, with the task's input and output. A subtask has the kind `task`."""


def current_span() -> Span | None:
    """The innermost open span of this context, or None if no call is being traced."""
    current = _current.get()
    while current is not None and current.end_ns is not None:
        current = current._outer
    return current


def switch(span: Span | None) -> Span | None:
    """Make a span the current one of this context, for code that is suspended and resumed; returns the previous one."""
    before = _current.get()
    _current.set(span)
    return before


def export_spans(trace: Trace, top: Span) -> list[ExportedSpan]:
    """A span and those below it in export format, children before parents."""
    children: dict[int, list[Span]] = {}
    for each in trace.spans:
        if each.parent is not None:
            children.setdefault(each.parent, []).append(each)
    forms = _export_module()
    export_spans: list[ExportedSpan] = []
    waiting = [top]
    while waiting:  # parents before children, later ones first; reversed at the end
        each = waiting.pop()
        if each.end_ns is None:
            raise OpenSpanError(f"the span {each.name!r} is still open; close it before you export the trace")
        export_spans.append(forms.export_span(each))
        waiting += children.get(each.number, ())
    return export_spans[::-1]


def status_code(status: str) -> int:
    """The index of a status in `STATUSES`."""
    if status not in STATUSES:
        raise SpecError(f"a span cannot have the status {status!r}; use one of {', '.join(STATUSES)}")
    return STATUSES.index(status)


def _export_module() -> ModuleType:
    from evaluand.trace import export as viewing  # imports pydantic and rich, which tracing itself does not need

    return viewing


_current: ContextVar[Span | None] = ContextVar("evaluand.span", default=None)
_LARGE = 2**63
_LOW = 2**64 - 1
_ODD = 0x9E3779B97F4A7C15  # odd, so that spans of one trace differ in the lower half, OpenTelemetry's id
