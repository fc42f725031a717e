"""Traces: what happened inside one task call, as spans with input, output, events and times.

A task is given the `TaskSpan` of its call and opens spans below it; library code that was given none calls `span(…)`,
which finds the open span of its context and costs next to nothing where there is none:

    def do_run(self, input, task_span):
        with task_span.span("retrieve", query=input) as s:
            s.log("hits", 3)

Why it is so:

- A span must cost microseconds, or people switch tracing off. So a trace is a list in memory that the runner writes
  out once, when the call has ended; other formats are made from that list, not from inside the call.
- A task may change a value after logging it. What can change is written as canonical text at once; `None`, bools,
  numbers and ASCII text are kept as they are. So whatever a span holds is ready to be written.
- Tracing never fails the task over a value. What is not data (a client, a lock) is replaced by
  `{"$unstorable":"<type>"}`, and the attribute `unstorable.<where>` says why. Using a span after it was closed is a
  mistake in the task and does raise.
- Times come from the monotonic clock, moved once per trace to the time of day: a clock that is set during a call
  changes no duration.
- The input and output of the root are the example's input and the response; these stand in their own tables, so the
  root keeps them by reference and `Trace.rows` leaves them out.

- What a run keeps is the `Trace` alone. A tracer of `evaluand.tracers` opens the same spans and is told of each step as
  it is taken (`Watcher`), so that it can write it to a file or to a backend at once.

The current span is a context variable: asyncio tasks and `asyncio.to_thread` inherit it, plain threads do not. Give
those the span to open theirs from: `parent.span(…)` is safe from any number of threads.
"""

from __future__ import annotations

import html
import itertools
import threading
import traceback as tracebacks
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from operator import attrgetter
from time import perf_counter_ns, time_ns
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, cast

import orjson
from orjson import Fragment

from evaluand.errors import DataError, Fault, SpecError
from evaluand.ids import decode, encode

if TYPE_CHECKING:
    from evaluand.viewing import Context, ExportedSpan, SpanStatus

STATUSES = ("unset", "ok", "error")
# fmt: off
ROW_FIELDS = (
    "number", "parent", "name", "kind", "start", "duration", "status", "input", "output", "attributes", "events",
)
# fmt: on


class Event(NamedTuple):
    """Something logged on a span.

    Attributes:
        name: what it is; `exception` for an error that passed through the span.
        time_ns: when, in nanoseconds since 1970.
        body: the value logged.
    """

    name: str
    time_ns: int
    body: Any


class Tracer(ABC):
    """What a task is given to open spans from."""

    __slots__ = ()

    @abstractmethod
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
        """Opens a span; a `with` block closes it and makes it the current span meanwhile.

        Args:
            name: what this step is called in the trace.
            timestamp: when it began, where that is not now.
            kind: what sort of step it is: `span`, `task`, `llm`, `retriever`, `tool`, or a word of your own.
            input: what the step works on.
            attributes: anything else known beforehand.
        """

    def task_span(self, task_name: str, input: Any, timestamp: datetime | None = None) -> TaskSpan:
        """Opens the span of a task call, as `span` does; `Task.run` calls it.

        Args:
            task_name: what the task is called.
            input: what it is called with.
            timestamp: when it began, where that is not now.
        """
        return cast(TaskSpan, self.span(task_name, timestamp, kind="task", input=input))

    @property
    def context(self) -> Context | None:
        """The ids of the span it is; None for a tracer that is none."""
        return None

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """The spans as viewers and other programs read them: children before their parents.

        Raises:
            OpenSpanError: a span is still open.
            SpecError: the tracer keeps no spans.
        """
        raise SpecError(f"{type(self).__name__} keeps no spans; look at them where it sends them")


class OpenSpanError(SpecError, RuntimeError):
    """A span was to be exported before it was closed."""


class Watcher:
    """Whoever wants to be told of the steps of a trace as they are taken; see `evaluand.tracers`.

    Attributes:
        gives_ids: whether spans take their ids from it; then it is to be told before all others.
    """

    __slots__ = ()
    gives_ids: ClassVar[bool] = False

    def opened(self, span: Span) -> None:
        """A span was opened; its input and first attributes are there."""

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        """Something was logged: its name, time in nanoseconds, and value as the span keeps it."""

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        """An exception passed through, and the span has an event that tells so; `closed` follows."""

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        """Attributes were set."""

    def closed(self, span: Span) -> None:
        """A span was closed; its output and status are final."""

    def entered(self, span: Span) -> None:
        """A span became the current one of this context."""

    def left(self, span: Span) -> None:
        """A span is the current one of this context no longer."""


class Span(Tracer):
    """One step of a task call. Open one with `Tracer.span` or `span`, not by hand.

    Attributes:
        number: its ordinal in the trace: 0 is the root, then 1, 2, … in order of opening.
        parent: the number of the span it was opened from; None for the root.
        name: what the step is called.
        kind: `task`, `span`, `llm`, `retriever`, `tool`, …
        start_ns: when it was opened, in nanoseconds since 1970.
        end_ns: when it was closed; None while it is open. Closing a span leaves open children open.

    Example:
        >>> trace = Trace.start("answer", "Who wrote Emma?")
        >>> with trace.root as task_span:
        ...     with task_span.span("retrieve", kind="retriever", k=2) as s:
        ...         s.log("hits", ["p. 3", "p. 9"])
        ...     task_span.output = "Jane Austen"
        >>> s.status, s.attributes, s.events[0].body
        ('ok', {'k': 2}, ['p. 3', 'p. 9'])
    """

    __slots__ = (
        "_above",
        "_attributes",
        "_entered",
        "_events",
        "_id",
        "_input",
        "_outer",
        "_output",
        "_status",
        "_trace",
        "end_ns",
        "kind",
        "name",
        "number",
        "parent",
        "start_ns",
    )

    _by_reference: ClassVar[bool] = True
    """Whether the root's input and output are kept as they are, since they are stored elsewhere."""

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
        self.number: int
        self._trace = trace
        self._above = above
        self._id: uuid.UUID | None = None
        self.parent = None if above is None else above.number
        self.name = name if type(name) is str and name.isascii() else _text(name)
        self.kind = kind if type(kind) is str and kind.isascii() else _text(kind)
        self.end_ns: int | None = None
        self._status = 0
        self._output: Any = None
        self._attributes: dict[str, Any] = {}
        self._events: list[tuple[str, int, Any]] = []
        self._entered = False
        self._outer: Span | None = None
        self._input = input if input is None or (above is None and self._by_reference) else self._kept(input, "input")
        if attributes:
            self._put(attributes)
        # A number is taken and a span appended in one step each, so threads lose nothing; `Trace.spans` sorts.
        self.number = trace._next_number()
        self.start_ns = perf_counter_ns() + trace._clock_offset if timestamp is None else nanoseconds(timestamp)
        trace._keep(self)
        for watcher in trace._watchers:
            watcher.opened(self)

    @property
    def id(self) -> uuid.UUID:
        """What the span is called outside its trace; the root's is that of the trace."""
        if self._id is None:
            if self._above is None:
                return self._trace.id
            trace_id = self._trace.id.int
            self._id = uuid.UUID(int=trace_id & ~_LOW | (trace_id + self.number * _ODD) & _LOW)
        return self._id

    @property
    def context(self) -> Context:
        """The ids of the trace and of the span."""
        context: Context = _viewing().Context(trace_id=self._trace.id, span_id=self.id)
        return context

    @property
    def parent_id(self) -> uuid.UUID | None:
        """The id of the span it was opened from; None for the root."""
        return None if self._above is None else self._above.id

    @property
    def input(self) -> Any:
        """What the step works on, as it was when the span was opened."""
        return _value(self._input)

    @property
    def output(self) -> Any:
        """What the step gave, as it was when it was set; None until then."""
        return _value(self._output)

    @output.setter
    def output(self, value: Any) -> None:
        self.record_output(value)

    @property
    def attributes(self) -> dict[str, Any]:
        """A copy of the attributes; change them with `set`."""
        return {key: _value(kept) for key, kept in self._attributes.copy().items()}

    @property
    def has_attributes(self) -> bool:
        """Whether there are any; without copying them."""
        return bool(self._attributes)

    @property
    def events(self) -> list[Event]:
        """What was logged, in order."""
        return [Event(name, time, _value(body)) for name, time, body in self._events]

    @property
    def status(self) -> str:
        """What you set; else `error` if an exception passed through, `ok` if the span was closed without one.

        `unset` while open, and on the span of a generator or coroutine that was dropped before its end.
        """
        return STATUSES[self._status]

    @status.setter
    def status(self, status: str) -> None:
        self._require_open("set the status of")
        self._status = _status_code(status)

    @property
    def status_code(self) -> SpanStatus:
        """`status` in two words: `ERROR`, or `OK` for all that did not fail."""
        code: SpanStatus = _viewing().SpanStatus("ERROR" if self._status == 2 else "OK")
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
        if not name and "name" in attributes:
            name = attributes.pop("name")
        trace = self._trace
        return trace.kinds[kind == "task"](trace, self, name, kind, input, attributes, timestamp)

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        """Adds an event.

        Args:
            message: what it is called.
            value: what is to be kept of it.
            timestamp: when it happened, where that is not now.

        Raises:
            SpecError: the span is closed.
        """
        if self.end_ns is not None:
            self._require_open(f"log {message!r} on")
        trace = self._trace
        time = perf_counter_ns() + trace._clock_offset if timestamp is None else nanoseconds(timestamp)
        message = message if type(message) is str and message.isascii() else _text(message)
        event = message, time, self._kept(value, "events", message)
        self._events.append(event)
        for watcher in trace._watchers:
            watcher.logged(self, event)

    def set(self, /, **attributes: Any) -> None:
        """Sets attributes; the last value of a name counts.

        Raises:
            SpecError: the span is closed.
        """
        self._require_open("set attributes on")
        self._put(attributes)
        for watcher in self._trace._watchers:
            watcher.changed(self, attributes)

    def record_output(self, output: Any) -> None:
        """Sets `output`.

        Raises:
            SpecError: the span is closed.
        """
        self._require_open("record the output of")
        self._output = output if self._above is None and self._by_reference else self._kept(output, "output")

    def end(self, timestamp: datetime | None = None) -> None:
        """Ends the span now, or as of `timestamp`; for spans opened without `with`. Again, it changes nothing."""
        if self.end_ns is None:
            self._status = self._status or 1
            self._close(timestamp)

    close = end

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return _exported(self._trace, self)

    def __enter__(self) -> Self:
        if self._entered or self.end_ns is not None:
            raise SpecError(f"span {self.name!r} was entered before; open a child with .span(…) and enter that")
        self._entered = True
        self._outer = _current.get()
        _current.set(self)
        for watcher in self._trace._watchers:
            watcher.entered(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Not by token: a generator may be left in another context or order than it was entered in.
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
        return f"<{type(self).__name__} {self.number} {_label(self)}>"

    def _close(self, timestamp: datetime | None) -> None:
        trace = self._trace
        self.end_ns = perf_counter_ns() + trace._clock_offset if timestamp is None else nanoseconds(timestamp)
        for watcher in trace._watchers:
            watcher.closed(self)

    def _require_open(self, what: str) -> None:
        if self.end_ns is not None:
            raise SpecError(f"cannot {what} the span {self.name!r}: it is closed; do so inside its `with` block")

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, GeneratorExit):  # that is: dropped by its reader, neither done nor wrong
            return
        trace = self._trace
        time = perf_counter_ns() + trace._clock_offset
        told = {"type": type(error).__qualname__, "message": _text(error)}
        if trace._stack_traces:
            told["stack_trace"] = stack_trace(error)
        event = "exception", time, self._kept(told, "events", "exception")
        self._events.append(event)
        self._status = 2
        for watcher in trace._watchers:
            watcher.failed(self, event, error)

    def _put(self, attributes: Mapping[str, Any]) -> None:
        for key, value in attributes.items():
            self._attributes[key] = self._kept(value, "attributes", key)

    def _kept(self, value: Any, where: str, name: str = "") -> Any:
        """The value as it will be written: itself if it cannot change and orjson writes it canonically, else its text.

        Args:
            value: anything.
            where: what it is to the span, for the attribute that tells why it could not be stored.
            name: its name there.
        """
        kind = type(value)
        if kind is str:
            if value.isascii():  # other text may hold lone surrogates
                return value
        elif value is None or kind is bool or ((kind is int or kind is float) and -_LARGE < value < _LARGE):
            return value
        try:
            return Fragment(encode(value).decode())  # a copy: bytes fresh from orjson occupy 4 kB each (orjson 3.13)
        except Exception as error:  # encoding runs code of the value's own, such as model_dump
            return self._unstorable(value, f"unstorable.{where}.{name}" if name else f"unstorable.{where}", error)

    def _unstorable(self, value: Any, attribute: str, error: Exception) -> Any:
        """What is kept in place of a value that is not data; the attribute tells why."""
        self._attributes[_text(attribute)] = _text(error)
        return Fragment(orjson.dumps({"$unstorable": _text(type(value).__qualname__)}))


class TaskSpan(Span):
    """The span of one task call: its input is the task's, its output the task's answer. A subtask has kind `task`."""

    __slots__ = ()


class Untraced(TaskSpan):
    """A span that keeps nothing; for calls nobody traces."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Trace(), None, "untraced", "task", None, {})

    def span(
        self,
        name: str = "",
        /,
        timestamp: datetime | None = None,
        *,
        kind: str = "span",
        input: Any = None,
        **attributes: Any,
    ) -> Untraced:
        return self

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        pass

    def set(self, /, **attributes: Any) -> None:
        pass

    def record_output(self, output: Any) -> None:
        pass

    @property
    def status(self) -> str:
        return "unset"

    @status.setter
    def status(self, status: str) -> None:
        pass

    def end(self, timestamp: datetime | None = None) -> None:
        pass

    close = end

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class Trace:
    """The spans of one task call.

    Attributes:
        root: the span of the whole call.

    Example:
        >>> trace = Trace.start("answer", "Who wrote Emma?")
        >>> with trace.root:
        ...     with span("retrieve", query="Emma"):
        ...         pass
        >>> [(s.number, s.parent, s.name, s.status) for s in trace.spans]
        [(0, None, 'answer', 'ok'), (1, 0, 'retrieve', 'ok')]
    """

    __slots__ = (
        "_clock_offset",
        "_id",
        "_keep",
        "_next_number",
        "_spans",
        "_stack_traces",
        "_watchers",
        "is_kept",
        "kinds",
        "root",
    )

    root: TaskSpan

    def __init__(
        self,
        *,
        kinds: tuple[type[Span], type[TaskSpan]] | None = None,
        watchers: Sequence[Watcher] = (),
        kept: bool = True,
        stack_traces: bool = False,
    ) -> None:
        """An empty trace, for tracers; see `start`.

        Args:
            kinds: the classes of its spans and task spans.
            watchers: who is told of each step.
            kept: whether the trace holds its spans; else its watchers have all there is.
            stack_traces: whether events of exceptions hold where they came from.
        """
        self._id: uuid.UUID | None = None
        self.kinds = kinds or (Span, TaskSpan)
        self._watchers = tuple(watchers)
        self._stack_traces = stack_traces
        self.is_kept = kept
        self._spans: list[Span] = []
        self._keep: Callable[[Span], None] = self._spans.append if kept else _forget
        self._next_number: Callable[[], int] = itertools.count().__next__
        self._clock_offset = time_ns() - perf_counter_ns()

    @classmethod
    def start(cls, name: str, input: Any = None) -> Trace:
        """A trace with an open root; enter `root` around the call.

        Args:
            name: the task's name.
            input: the example's input; kept by reference and left out of `rows`.
        """
        trace = cls()
        trace.root = TaskSpan(trace, None, name, "task", input, {})
        return trace

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Sequence[Any]],
        *,
        name: str = "task",
        input: Any = None,
        output: Any = None,
        start_ns: int = 0,
        end_ns: int | None = None,
        status: str = "unset",
    ) -> Trace:
        """The trace that `rows` were made of, before or after `orjson` wrote and read them.

        Where only the JSON text of a cell is at hand, as in the table of spans, pass `orjson.Fragment(text)`.

        Args:
            rows: see `rows`; in order of their numbers.
            name: the root's name. This and the other arguments are what `rows` leaves out; where the root has a row,
                its name, end and status are the row's.
            input: the example's input.
            output: the response.
            start_ns: when the trace started; times are relative to this.
            end_ns: when the call ended.
            status: how the call ended.

        Raises:
            DataError: a row is not that of a span; names the row.

        Example:
            >>> print(Trace.from_rows([[1, 0, "ask", "llm", 250, 1200, 1, None, "Jane", None, None]]).tree())
            task open
            └─ ask (llm) 1.2 ms
        """
        trace = cls.start(name, input)
        root: Span = trace.root
        root._output, root._status, root.start_ns, root.end_ns = output, _status_code(status), start_ns, end_ns
        numbers = {0: root}
        for place, row in enumerate(rows):
            try:
                _restore(trace, row, numbers)
            except (TypeError, ValueError) as error:
                raise DataError(Fault(f"spans[{place}]", f"not the row of a span: {error}")) from None
        trace._next_number = itertools.count(max(numbers) + 1).__next__
        return trace

    @property
    def id(self) -> uuid.UUID:
        """What the trace is called outside; made when it is first asked for."""
        return self._id or self._named()

    @property
    def spans(self) -> list[Span]:
        """Every span opened so far, in order of opening."""
        return sorted(self._spans, key=attrgetter("number"))

    def rows(self) -> list[list[Any]]:
        """The spans as compact lists, ready for `orjson.dumps`, in order of opening.

        A row is `[number, parent, name, kind, start, duration, status, input, output, attributes, events]`: `start` in
        microseconds since the trace's start, `duration` in microseconds or None for a span still open, `status` an
        index into `STATUSES`. Values are such that `orjson.dumps` writes their canonical text (`evaluand.ids`); none
        is None, and so is no attribute or event. An event is `[name, time, value]`, `time` like `start`.

        The root has a row only if it has attributes or events, and that row has no input and output. Spans opened
        later, by threads that outlive the call, are not in it.

        Example:
            >>> trace = Trace.start("answer", "Who wrote Emma?")
            >>> trace.rows()
            []
        """
        if len(self._spans) == 1 and not (self.root._attributes or self.root._events):
            return []
        origin = self.root.start_ns
        return [_row(s, origin) for s in self.spans if s.parent is not None or s._attributes or s._events]

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """The spans as viewers and other programs read them; see `Tracer.export_for_viewing`."""
        return _exported(self, self.root)

    def tree(self) -> str:
        """The spans as an indented text with their durations, for people."""
        children: dict[int | None, list[Span]] = {}
        for each in self.spans:
            children.setdefault(each.parent, []).append(each)
        lines = []
        waiting: list[tuple[Span, str, str]] = [(self.root, "", "")]
        while waiting:  # not recursive: agents nest deeply
            each, branch, indent = waiting.pop()
            lines.append(branch + _label(each))
            below = [(child, indent + "├─ ", indent + "│  ") for child in children.get(each.number, [])]
            if below:
                below[-1] = (below[-1][0], indent + "└─ ", indent + "   ")
            waiting += reversed(below)
        return "\n".join(lines)

    def _named(self) -> uuid.UUID:
        with _making_ids:
            self._id = self._id or uuid.uuid4()
        return self._id

    def __str__(self) -> str:
        return self.tree()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.tree())}</pre>"

    def __repr__(self) -> str:
        return f"<Trace {_label(self.root)}, {len(self._spans)} spans>"


UNTRACED: Final = Untraced()


def current_span() -> Span | None:
    """The innermost open span of this context, or None where no call is being traced."""
    current = _current.get()
    while current is not None and current.end_ns is not None:
        current = current._outer
    return current


def span(name: str, /, *, kind: str = "span", input: Any = None, **attributes: Any) -> Span:
    """Opens a span below the current one; one that keeps nothing where no call is being traced.

    For code that is not handed a tracer. A plain thread has no current span: use the `span` method of one there.

    Example:
        >>> with span("embed", model="small") as s:
        ...     s.log("tokens", 7)
        >>> s is UNTRACED
        True
    """
    current = current_span()
    if current is None:
        return UNTRACED
    return current.span(name, kind=kind, input=input, **attributes)


_current: ContextVar[Span | None] = ContextVar("evaluand.span", default=None)
_LARGE = 2**63
_LOW = 2**64 - 1
_ODD = (
    0x9E3779B97F4A7C15  # odd, so that spans of one trace differ in the lower half, which OpenTelemetry takes for an id
)
_making_ids = threading.Lock()


def stack_trace(error: BaseException) -> str:
    """Where an exception came from, as Python tells it."""
    return "".join(tracebacks.format_exception(error))


def _forget(span: Span) -> None:
    """Keeps nothing."""


def nanoseconds(time: datetime) -> int:
    """Since 1970; a time without a zone is taken for UTC."""
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    since = zoned - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _viewing() -> ModuleType:
    from evaluand import viewing  # pydantic, which only those load who look

    return viewing


def _exported(trace: Trace, top: Span) -> list[ExportedSpan]:
    children: dict[int, list[Span]] = {}
    for each in trace.spans:
        if each.parent is not None:
            children.setdefault(each.parent, []).append(each)
    forms = _viewing()
    exported: list[ExportedSpan] = []
    waiting = [top]
    while waiting:  # parents before their children, later ones first; turned round at the end
        each = waiting.pop()
        if each.end_ns is None:
            raise OpenSpanError(f"the span {each.name!r} is still open; close it before the trace is exported")
        exported.append(forms.exported(each))
        waiting += children.get(each.number, ())
    return exported[::-1]


def _status_code(status: str) -> int:
    if status not in STATUSES:
        raise SpecError(f"a span has no status {status!r}; use one of {', '.join(STATUSES)}")
    return STATUSES.index(status)


def _text(value: object) -> str:
    """Some text for a name or message that can always be written."""
    try:
        text = str.__str__(value) if isinstance(value, str) else str(value)
        return text.encode("utf-8", "replace").decode()
    except Exception:  # a __str__ that fails
        return type(value).__qualname__


def _value(kept: Any) -> Any:
    return decode(orjson.dumps(kept)) if type(kept) is Fragment else kept


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
        if key.startswith("$"):  # as evaluand.ids does: a single such key would read as a marked value
            kept = {"$" + key: item}
    try:
        text = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # keys that came in by ** and cannot be written
        text = orjson.dumps({_text(key): item for key, item in kept.items()}, option=orjson.OPT_SORT_KEYS)
    return Fragment(text.decode())


def _restore(trace: Trace, row: Sequence[Any], numbers: dict[int, Span]) -> None:
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


def _plain(cell: Any) -> Any:
    return orjson.loads(orjson.dumps(cell)) if type(cell) is Fragment else cell


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


def _label(span: Span) -> str:
    kind = "" if span.kind in ("span", "task") else f" ({span.kind})"
    time = "open" if span.end_ns is None else _duration(span.end_ns - span.start_ns)
    return _on_one_line(f"{span.name}{kind} {time}{_failure(span)}")


def _failure(span: Span) -> str:
    if span.status != "error":
        return ""
    bodies = [event.body for event in span.events if event.name == "exception"]
    if not bodies or not isinstance(bodies[-1], dict):
        return " error"
    kind, message = (bodies[-1].get(name) for name in ("type", "message"))
    told = "was cancelled" if kind == "CancelledError" else f"{kind}: {message}" if message else kind
    return f" error: {told}"


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else repr(text)[1:-1]  # names come from anywhere: no control codes


def _duration(ns: int) -> str:
    if ns < 999_500:
        return f"{ns / 1e3:.0f} µs"
    if ns < 999_500_000:
        return f"{ns / 1e6:.3g} ms"
    return f"{ns / 1e9:.3g} s" if ns < 60e9 else f"{ns / 60e9:.0f} min {ns % 60e9 / 1e9:.0f} s"
