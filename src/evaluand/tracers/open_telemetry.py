"""Traces sent to an OpenTelemetry backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from evaluand.errors import SpecError
from evaluand.trace import Span, Watcher, stack_trace
from evaluand.tracers import conventions
from evaluand.tracers.recording import RecordingTracer
from evaluand.viewing import json_text

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer as OtelTracer


class OpenTelemetryTracer(RecordingTracer):
    """Makes an OpenTelemetry span of every span, under the names of GenAI and OpenInference.

    Parents are told by the spans themselves, not by the context, so they are right in every thread. A span that is
    entered is OpenTelemetry's current one too: what instrumented libraries trace stands below it. The trace has the
    same id here and there, and a span's id ends in that of its OpenTelemetry span.

    Args:
        tracer: of `opentelemetry.trace.get_tracer` or of a provider.
        stack_traces: whether stack traces are sent with exceptions.
    """

    def __init__(self, tracer: OtelTracer, *, stack_traces: bool = False) -> None:
        try:
            import opentelemetry.trace  # noqa: F401
        except ModuleNotFoundError:
            raise SpecError("OpenTelemetryTracer needs OpenTelemetry: pip install 'evaluand[otel]'") from None
        self._tracer = tracer
        self.stack_traces = stack_traces

    @property
    def watchers(self) -> Sequence[Watcher]:
        return (_Mirror(self._tracer, self.stack_traces),)


class _Mirror(Watcher):
    """The OpenTelemetry spans of one trace."""

    __slots__ = ("_contexts", "_outer", "_spans", "_stack_traces", "_tracer")
    gives_ids: ClassVar[bool] = True

    def __init__(self, tracer: OtelTracer, stack_traces: bool) -> None:
        self._tracer, self._stack_traces = tracer, stack_traces
        self._spans: dict[int, OtelSpan] = {}
        self._contexts: dict[int, Context] = {}
        self._outer: dict[int, Context] = {}

    def opened(self, span: Span) -> None:
        from opentelemetry.trace import SpanKind, set_span_in_context

        attributes = conventions.of_attributes(span.attributes) | conventions.of_span(span.kind, span.name)
        if span.kind == "task" or span.input is not None:
            attributes |= conventions.of_value("input", span.input)
        attributes["type"] = "SPAN"
        if span.kind == "task":
            attributes |= {"type": "TASK_SPAN", "input": json_text(span.input).decode()}
        mirrored = self._tracer.start_span(
            span.name,
            context=None if span.parent is None else self._contexts[span.parent],
            kind=SpanKind.CLIENT if span.kind in ("llm", "embedding") else SpanKind.INTERNAL,
            attributes=attributes,
            start_time=span.start_ns,
        )
        self._spans[span.number] = mirrored
        self._contexts[span.number] = set_span_in_context(mirrored)
        ids = mirrored.get_span_context()
        if ids.is_valid and span.parent is None:
            span._trace._id = UUID(int=ids.trace_id)
        elif ids.is_valid:
            span._id = UUID(int=(ids.trace_id >> 64 << 64) | ids.span_id)

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        message, time_ns, value = event
        self._spans[span.number].add_event(message, {"value": json_text(value).decode()}, timestamp=time_ns)

    def failed(self, span: Span, time_ns: int, error: BaseException) -> None:
        told = span._events[-1][2]
        attributes = {"exception.type": told["type"], "exception.message": told["message"]}
        if self._stack_traces:
            attributes["exception.stacktrace"] = stack_trace(error)
        self._spans[span.number].add_event("exception", attributes, timestamp=time_ns)

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        self._spans[span.number].set_attributes(conventions.of_attributes(span.attributes))

    def closed(self, span: Span) -> None:
        from opentelemetry.trace import StatusCode

        mirrored = self._spans[span.number]
        if span.output is not None or (span.kind == "task" and span.status == "ok"):
            attributes = conventions.of_value("output", span.output)
            if span.kind == "task":
                attributes["output"] = json_text(span.output).decode()
            mirrored.set_attributes(attributes)
        if span.status == "error":
            errors = [event.body["message"] for event in span.events if event.name == "exception"]
            mirrored.set_status(StatusCode.ERROR, errors[-1] if errors else None)
        elif span.status == "ok":
            mirrored.set_status(StatusCode.OK)
        mirrored.end(span.end_ns)

    def entered(self, span: Span) -> None:
        from opentelemetry.context import attach, get_current
        from opentelemetry.trace import set_span_in_context

        self._outer[span.number] = get_current()
        attach(set_span_in_context(self._spans[span.number]))

    def left(self, span: Span) -> None:
        from opentelemetry.context import attach
        from opentelemetry.trace import get_current_span

        outer = self._outer.pop(span.number, None)
        if outer is not None and get_current_span() is self._spans[span.number]:
            attach(outer)  # not by token: see Span.__exit__
