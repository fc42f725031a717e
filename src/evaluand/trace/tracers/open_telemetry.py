"""Traces sent to an OpenTelemetry backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from evaluand.core.errors import SpecError
from evaluand.trace import Span, Watcher, conventions, stack_trace
from evaluand.trace.export import json_text
from evaluand.trace.tracers.recording import WatchedTracer

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer as OtelTracer


class OpenTelemetryTracer(WatchedTracer):
    """Makes an OpenTelemetry span of every span, under the names of GenAI and OpenInference.

    Parents are told by the spans themselves, not by the context, so they are right in every thread. A span that is
    entered is OpenTelemetry's current one too: what instrumented libraries trace stands below it. The trace has the
    same id here and there, and a span's id ends in that of its OpenTelemetry span. Opened while OpenTelemetry has a
    current span, such as that of a web request, roots stand below it and their traces share its id.

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
        self._outer: dict[int, tuple[Context, OtelSpan]] = {}

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
            context=self._context(span._above),
            kind=SpanKind.CLIENT if span.kind in ("llm", "embedding") else SpanKind.INTERNAL,
            attributes=attributes,
            start_time=span.start_ns,
        )
        self._spans[span.number] = mirrored
        self._contexts[span.number] = set_span_in_context(mirrored)
        ids = mirrored.get_span_context()
        if ids.is_valid:
            if span.parent is None:
                span._trace._id = UUID(int=ids.trace_id)
            span._id = UUID(int=(ids.trace_id >> 64 << 64) | ids.span_id)  # the root's too: traces may share an id

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        message, time_ns, value = event
        mirrored = self._spans.get(span.number)
        if mirrored is not None:  # or another thread has closed it meanwhile
            mirrored.add_event(message, {"value": json_text(value).decode()}, timestamp=time_ns)

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        mirrored = self._spans.get(span.number)
        if mirrored is None:  # another thread has closed it meanwhile
            return
        _, time_ns, told = event
        attributes = {"exception.type": told["type"], "exception.message": told["message"]}
        if self._stack_traces:
            attributes["exception.stacktrace"] = stack_trace(error)
        mirrored.add_event("exception", attributes, timestamp=time_ns)

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        mirrored = self._spans.get(span.number)
        if mirrored is not None:
            mirrored.set_attributes(conventions.of_attributes(span.attributes))

    def closed(self, span: Span) -> None:
        from opentelemetry.trace import StatusCode

        mirrored = self._spans.pop(span.number)  # a trace may go on for long after
        if span.parent is not None:
            del self._contexts[span.number]
        if span.output is not None or (span.kind == "task" and span.status == "ok"):
            attributes = conventions.of_value("output", span.output)
            if span.kind == "task":
                attributes["output"] = json_text(span.output).decode()
            mirrored.set_attributes(attributes)
        if span.status == "error":
            told = (body for name, _, body in span.events if name == "exception")
            errors = [body["message"] for body in told if isinstance(body, Mapping) and "message" in body]
            mirrored.set_status(StatusCode.ERROR, str(errors[-1]) if errors else None)
        elif span.status == "ok":
            mirrored.set_status(StatusCode.OK)
        mirrored.end(span.end_ns)

    def entered(self, span: Span) -> None:
        from opentelemetry.context import attach, get_current
        from opentelemetry.trace import set_span_in_context

        mirrored = self._spans.get(span.number)
        if mirrored is not None:
            self._outer[span.number] = get_current(), mirrored
            attach(set_span_in_context(mirrored))

    def left(self, span: Span) -> None:
        from opentelemetry.context import attach
        from opentelemetry.trace import get_current_span

        entered = self._outer.pop(span.number, None)
        if entered is not None and get_current_span() is entered[1]:
            attach(entered[0])  # not by token: see Span.__exit__

    def _context(self, above: Span | None) -> Context | None:
        """Where a span below another is to be opened; below the root where another thread has closed it meanwhile."""
        return None if above is None else self._contexts.get(above.number, self._contexts[0])
