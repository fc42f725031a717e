"""Several tracers as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from evaluand.core.errors import SpecError
from evaluand.trace import Span, TaskSpan, Tracer, UntracedSpan, Watcher, stack_trace
from evaluand.trace.export import ErrorValue, ExportedSpan, SpanStatus, at
from evaluand.trace.tracers.recording import WatchedTracer

TracerVar = TypeVar("TracerVar", bound=Tracer)


class CompositeTracer(WatchedTracer, Generic[TracerVar]):
    """Traces to several tracers at once; a span has the same ids in all that are evaluand's.

    Below an open span that is among them it has other ids there, those of that span's trace.

    A tracer that is given twice, also within another composite, is told once.

    Attributes:
        tracers: those tracers; open spans may be among them, and tracers of your own.

    Example:
        >>> from evaluand.trace.tracers.in_memory import InMemoryTracer
        >>> here, there = InMemoryTracer(), InMemoryTracer()
        >>> with CompositeTracer([here, there]).span("step"):
        ...     pass
        >>> here.entries[0].id == there.entries[0].id
        True
    """

    def __init__(self, tracers: Sequence[TracerVar]) -> None:
        if not tracers:
            raise SpecError("a CompositeTracer needs at least one tracer")
        self.tracers = tracers
        self._single = list({id(tracer): tracer for tracer in _single(tracers)}.values())
        self._recording = [tracer for tracer in self._single if isinstance(tracer, WatchedTracer)]
        self.stack_traces = any(tracer.stack_traces for tracer in self._recording if tracer.kinds)

    @property
    def watchers(self) -> Sequence[Watcher]:
        told = chain.from_iterable(_watchers(tracer) for tracer in self._single)
        return sorted(dict.fromkeys(told), key=lambda watcher: not watcher.gives_ids)

    @property
    def kinds(self) -> tuple[type[Span], type[TaskSpan]] | None:
        return next((tracer.kinds for tracer in self._recording if tracer.kinds), None)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """The spans as the first tracer has them."""
        return self.tracers[0].export_for_viewing()


def _single(tracers: Iterable[Tracer]) -> Iterator[Tracer]:
    """The tracers, and instead of composites those that they are of."""
    for tracer in tracers:
        if isinstance(tracer, CompositeTracer):
            yield from tracer._single
        else:
            yield tracer


def _watchers(tracer: Tracer) -> Sequence[Watcher]:
    if isinstance(tracer, WatchedTracer):
        return tracer.watchers
    return () if isinstance(tracer, UntracedSpan) else (_Forwarding(tracer),)


class _Forwarding(Watcher):
    """Takes each step with a tracer that is not watched: an open span, or a tracer of the user's own."""

    __slots__ = ("_spans", "_tracer")

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        # As long as something may still be opened below a span, and not as long as the trace goes on.
        self._spans: WeakKeyDictionary[Span, Span] = WeakKeyDictionary()

    def opened(self, span: Span) -> None:
        tracer = self._tracer if span._above is None else self._spans[span._above]
        started = at(span.start_ns)
        told: Any  # of a user's own tracer: whatever it gives
        if isinstance(tracer, Span):
            told = tracer.span(span.name, started, kind=span.kind, input=span.input, **span.attributes)
        elif span.kind == "task":
            told = tracer.task_span(span.name, span.input, started)
        else:
            told = tracer.span(span.name, started)
        if isinstance(told, Span) and not isinstance(self._tracer, Span):
            _name_alike(told, span)
        self._spans[span] = told

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        message, time_ns, value = event
        self._spans[span].log(message, value, at(time_ns))

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        told = self._spans[span]
        if isinstance(told, Span):
            told._fail(error)
            return
        _, time_ns, body = event
        message = body["message"]
        where = stack_trace(error) if span._trace._stack_traces else ""
        value = ErrorValue(error_type=type(error).__qualname__, message=message, stack_trace=where)
        told.log(message, value, at(time_ns))

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        told = self._spans[span]
        if isinstance(told, Span):
            told.set(**attributes)

    def closed(self, span: Span) -> None:
        told = self._spans[span]
        is_answer = span.kind == "task" and span.status != "error"  # other spans of the user's own have no output
        if is_answer or (span.output is not None and isinstance(told, Span)):
            told.record_output(span.output)
        if span.status == "error":
            told.status_code = SpanStatus.ERROR
        told.end(at(span.end_ns or 0))


def _name_alike(told: Span, span: Span) -> None:
    """Gives a span of another trace the ids of a span; most follow from the trace's and their number."""
    if told._above is None:
        told._trace._id = span._trace.id
    if span._id is not None or told.number != span.number:
        told._id = span.id
