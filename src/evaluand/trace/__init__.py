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
- What a run keeps is the `Trace` alone. A tracer of `evaluand.trace.tracers` opens the same spans and is told of each
step as
  it is taken (`Watcher`), so that it can write it to a file or to a backend at once.

The current span is a context variable: asyncio tasks and `asyncio.to_thread` inherit it, plain threads do not. Give
those the span to open theirs from: `parent.span(…)` is safe from any number of threads.

    trace/tracer.py      what spans are opened from
    trace/spans.py       spans, and which of them is the current one
    trace/watcher.py     who is told of each step
    trace/traces.py      the spans of one call
    trace/rows.py        spans as the rows that a run keeps, and back
    trace/tree.py        spans as text, for people
    trace/untraced.py    calls that nobody traces, and code that is not handed a tracer
    trace/values.py      names, values, times and errors, such that they can always be written
"""

from __future__ import annotations

from evaluand.trace.rows import ROW_FIELDS
from evaluand.trace.spans import STATUSES, Event, Span, TaskSpan, current_span, switch
from evaluand.trace.tracer import OpenSpanError, RootTracer, Tracer
from evaluand.trace.traces import Trace
from evaluand.trace.untraced import UNTRACED, Untraced, UntracedSpan, span
from evaluand.trace.values import nanoseconds, stack_trace
from evaluand.trace.watcher import Watcher

__all__ = [
    "ROW_FIELDS",
    "STATUSES",
    "UNTRACED",
    "Event",
    "OpenSpanError",
    "RootTracer",
    "Span",
    "TaskSpan",
    "Trace",
    "Tracer",
    "Untraced",
    "UntracedSpan",
    "Watcher",
    "current_span",
    "nanoseconds",
    "span",
    "stack_trace",
    "switch",
]
