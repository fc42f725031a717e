"""Traces sent to an OpenTelemetry backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from evaluand.core.errors import SpecError
from evaluand.trace import conventions
from evaluand.trace.export import json_text
from evaluand.trace.spans import Span
from evaluand.trace.tracers.recording import WatchedTracer
from evaluand.trace.values import stack_trace
from evaluand.trace.watcher import Watcher

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan, Tracer as OtelTracer


class OpenTelemetryTracer(WatchedTracer):
    """Creates an OpenTelemetry span for every span, with attribute names of GenAI and OpenInference.

    Parents come from the spans themselves, not from the context, so they are right in every thread. An entered span is
    also OpenTelemetry's current one: spans of instrumented libraries are placed below it. The trace has the same id in
    both, and a span's id ends in that of its OpenTelemetry span. If OpenTelemetry has a current span, such as that of a
    web request, roots are placed below it and their traces share its id.

    Args:
        tracer: of `opentelemetry.trace.get_tracer` or of a provider.
        stack_traces: whether stack traces of exceptions are sent.
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

        attributes = conventions.named_attributes(span.attributes) | conventions.span_attributes(span.kind, span.name)
        if span.kind == "task" or span.input is not None:
            attributes |= conventions.value_attributes("input", span.input)
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
            span._id = UUID(int=(ids.trace_id >> 64 << 64) | ids.span_id)  # of the root too: traces may share an id

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        message, time_ns, value = event
        mirrored = self._spans.get(span.number)
        if mirrored is not None:  # else another thread has closed it
            mirrored.add_event(message, {"value": json_text(value).decode()}, timestamp=time_ns)

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        mirrored = self._spans.get(span.number)
        if mirrored is None:  # another thread has closed it
            return
        _, time_ns, body = event
        attributes = {"exception.type": body["type"], "exception.message": body["message"]}
        if self._stack_traces:
            attributes["exception.stacktrace"] = stack_trace(error)
        mirrored.add_event("exception", attributes, timestamp=time_ns)

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        mirrored = self._spans.get(span.number)
        if mirrored is not None:
            mirrored.set_attributes(conventions.named_attributes(span.attributes))

    def closed(self, span: Span) -> None:
        from opentelemetry.trace import StatusCode

        mirrored = self._spans.pop(span.number)  # the trace may last much longer
        if span.parent is not None:
            del self._contexts[span.number]
        if span.output is not None or (span.kind == "task" and span.status == "ok"):
            attributes = conventions.value_attributes("output", span.output)
            if span.kind == "task":
                attributes["output"] = json_text(span.output).decode()
            mirrored.set_attributes(attributes)
        if span.status == "error":
            bodies = (body for name, _, body in span.events if name == "exception")
            errors = [body["message"] for body in bodies if isinstance(body, Mapping) and "message" in body]
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
        """The context for a span below another; that of the root if another thread has closed it."""
        return None if above is None else self._contexts.get(above.number, self._contexts[0])
