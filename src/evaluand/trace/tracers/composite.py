"""Several tracers as one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, TypeGuard, TypeVar
from weakref import WeakKeyDictionary

from evaluand.core.errors import SpecError
from evaluand.trace.export import ErrorValue, ExportedSpan, SpanStatus, at
from evaluand.trace.spans import Span, TaskSpan
from evaluand.trace.tracer import Tracer
from evaluand.trace.tracers.recording import WatchedTracer
from evaluand.trace.untraced import UntracedSpan
from evaluand.trace.values import stack_trace
from evaluand.trace.watcher import Watcher

TracerVar = TypeVar("TracerVar", bound=Tracer)


class CompositeTracer(WatchedTracer, Generic[TracerVar]):
    """Traces to several tracers at once; a span has the same ids in all tracers of evaluand.

    If a tracer is an open span, spans below it have the ids of that span's trace. A tracer that occurs twice, also
    within another composite, is used once.

    Attributes:
        tracers: the tracers; may include open spans and your own tracers.

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
        self._flat = list({id(tracer): tracer for tracer in _flatten(tracers)}.values())
        self._watched = [tracer for tracer in self._flat if _is_watched(tracer)]
        self.stack_traces = any(tracer.stack_traces for tracer in self._watched if tracer.kinds)

    @property
    def watchers(self) -> Sequence[Watcher]:
        watchers = chain.from_iterable(_watchers(tracer) for tracer in self._flat)
        return sorted(dict.fromkeys(watchers), key=lambda watcher: not watcher.gives_ids)

    @property
    def kinds(self) -> tuple[type[Span], type[TaskSpan]] | None:
        return next((tracer.kinds for tracer in self._watched if tracer.kinds), None)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """The spans of the first tracer."""
        return self.tracers[0].export_for_viewing()


def _flatten(tracers: Iterable[Tracer]) -> Iterator[Tracer]:
    """The tracers, with composites replaced by their tracers."""
    for tracer in tracers:
        if isinstance(tracer, CompositeTracer):
            yield from tracer._flat
        else:
            yield tracer


def _is_watched(tracer: Tracer) -> TypeGuard[WatchedTracer]:
    """Whether a tracer has watchers; a span in memory counts as an `InMemoryTracer` and has none."""
    return isinstance(tracer, WatchedTracer) and not isinstance(tracer, Span)


def _watchers(tracer: Tracer) -> Sequence[Watcher]:
    if _is_watched(tracer):
        return tracer.watchers
    return () if isinstance(tracer, UntracedSpan) else (_Forwarding(tracer),)


class _Forwarding(Watcher):
    """Repeats each step on a tracer without watchers: an open span, or a tracer of the user."""

    __slots__ = ("_spans", "_tracer")

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        # Weak: needed only while something may be opened below a span.
        self._spans: WeakKeyDictionary[Span, Span] = WeakKeyDictionary()

    def opened(self, span: Span) -> None:
        tracer = self._tracer if span._above is None else self._spans[span._above]
        started = at(span.start_ns)
        copy: Any  # a user's tracer may return anything
        if isinstance(tracer, Span):
            copy = tracer.span(span.name, started, kind=span.kind, input=span.input, **span.attributes)
        elif span.kind == "task":
            copy = tracer.task_span(span.name, span.input, started)
        else:
            copy = tracer.span(span.name, started)
        if isinstance(copy, Span) and not isinstance(self._tracer, Span):
            _copy_ids(copy, span)
        self._spans[span] = copy

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        message, time_ns, value = event
        self._spans[span].log(message, value, at(time_ns))

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        copy = self._spans[span]
        if isinstance(copy, Span):
            copy._fail(error)
            return
        _, time_ns, body = event
        message = body["message"]
        where = stack_trace(error) if span._trace._stack_traces else ""
        value = ErrorValue(error_type=type(error).__qualname__, message=message, stack_trace=where)
        copy.log(message, value, at(time_ns))

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        copy = self._spans[span]
        if isinstance(copy, Span):
            copy.set(**attributes)

    def closed(self, span: Span) -> None:
        copy = self._spans[span]
        is_answer = span.kind == "task" and span.status != "error"  # other spans of a user's tracer have no output
        if is_answer or (span.output is not None and isinstance(copy, Span)):
            copy.record_output(span.output)
        if span.status == "error":
            copy.status_code = SpanStatus.ERROR
        copy.end(at(span.end_ns or 0))


def _copy_ids(copy: Span, span: Span) -> None:
    """Give a copy in another trace the ids of a span; most follow from the trace and the number."""
    if copy._above is None:
        copy._trace._id = span._trace.id
    if span._id is not None or copy.number != span.number:
        copy._id = span.id
