"""Traces: what happened inside one task call, as spans with input, output, events and times.

A task gets the `TaskSpan` of its call and opens spans below it. Library code without a span calls `span(…)`, which uses
the open span of its context and costs next to nothing if there is none:

    def do_run(self, input, task_span):
        with task_span.span("retrieve", query=input) as s:
            s.log("hits", 3)

Reasons for this design:

- A span must cost microseconds, or people switch tracing off. So a trace is a list in memory that the runner writes
  once, when the call has ended; other formats are made from that list, not from inside the call.
- A task may change a value after logging it. Mutable values are written as canonical text at once; `None`, bools,
  numbers and ASCII text are stored as they are. So everything in a span is ready to be written.
- Tracing never fails the task because of a value. What is not data (a client, a lock) is replaced by
  `{"$unstorable":"<type>"}`, and the attribute `unstorable.<where>` says why. Using a span after it was closed is an
  error of the task and raises.
- Times come from the monotonic clock, mapped once per trace to the time of day: setting the clock during a call changes
  no duration.
- Input and output of the root are the example's input and the response; they are stored in their own tables, so the
  root only references them and `Trace.rows` leaves them out.
- A run stores the `Trace` alone. A tracer of `evaluand.trace.tracers` opens the same spans, and its `Watcher` is called
  at each step, so that it can write to a file or a backend at once.

The current span is a context variable: asyncio tasks and `asyncio.to_thread` inherit it, plain threads do not. Pass
them a span to open theirs from: `parent.span(…)` is safe from any number of threads.

    trace/tracer.py          tracers, from which spans are opened
    trace/spans.py           spans, and the current span of a context
    trace/watcher.py         watchers, which are called at each step
    trace/traces.py          the spans of one call
    trace/rows.py            spans as the rows that a run stores, and back
    trace/tree.py            spans as text, for people
    trace/untraced.py        spans of calls that are not traced, and `span` for code without a tracer
    trace/values.py          names, values, times and errors in forms that can always be written
    trace/export.py          spans in the format for viewers and other programs
    trace/conventions.py     attribute names of OpenTelemetry and OpenInference
    trace/foreign_spans.py   spans that other systems have written
    trace/record.py          one call as data for selectors

The names are loaded on first use.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.trace.foreign_spans import read_spans as read_spans
    from evaluand.trace.record import Record as Record
    from evaluand.trace.rows import ROW_FIELDS as ROW_FIELDS
    from evaluand.trace.spans import (
        STATUSES as STATUSES,
        Event as Event,
        Span as Span,
        TaskSpan as TaskSpan,
        current_span as current_span,
        switch as switch,
    )
    from evaluand.trace.tracer import (
        ClosedSpanError as ClosedSpanError,
        EnteredSpanError as EnteredSpanError,
        OpenSpanError as OpenSpanError,
        RootTracer as RootTracer,
        Tracer as Tracer,
    )
    from evaluand.trace.tracers.composite import CompositeTracer as CompositeTracer
    from evaluand.trace.tracers.file import FileTracer as FileTracer, TracerLogEntryFailed as TracerLogEntryFailed
    from evaluand.trace.tracers.in_memory import (
        InMemorySpan as InMemorySpan,
        InMemoryTaskSpan as InMemoryTaskSpan,
        InMemoryTracer as InMemoryTracer,
    )
    from evaluand.trace.tracers.no_op import NoOpTracer as NoOpTracer
    from evaluand.trace.tracers.open_telemetry import OpenTelemetryTracer as OpenTelemetryTracer
    from evaluand.trace.traces import Trace as Trace
    from evaluand.trace.untraced import (
        UNTRACED as UNTRACED,
        Untraced as Untraced,
        UntracedSpan as UntracedSpan,
        span as span,
    )
    from evaluand.trace.values import nanoseconds as nanoseconds, stack_trace as stack_trace
    from evaluand.trace.watcher import Watcher as Watcher

__getattr__, __dir__ = lazy_names(__name__)
