"""Base classes of spans for tracers of other backends, as in the SDKs, and facts read from the trace of a call."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

from evaluand import trace
from evaluand.interop.pharia.domain import Refused
from evaluand.trace.export import Context, ErrorValue, ExportedSpan, SpanStatus, TaskSpanAttributes
from evaluand.trace.tracer import EnteredSpanError, Tracer


class Span(Tracer):
    """One step of a task.

    Attributes:
        context: its ids; both are equal for a span without a parent.
        status_code: its status.
    """

    def __init__(self, context: Context | None = None) -> None:
        span_id = uuid4()
        self._context = Context(trace_id=context.trace_id if context else span_id, span_id=span_id)
        self.status_code = SpanStatus.OK
        self._closed = False

    @property
    def context(self) -> Context:
        """Its ids."""
        return self._context

    @abstractmethod
    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        """Log a value."""

    @abstractmethod
    def end(self, timestamp: datetime | None = None) -> None:
        """End the span; a `with` block does so at its end."""
        self._closed = True

    def __enter__(self) -> Self:
        if self._closed:
            raise EnteredSpanError("the span is closed; open another one")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.status_code = SpanStatus.ERROR
            self.log(str(error), ErrorValue(error_type=type(error).__qualname__, message=str(error), stack_trace=""))
        self.end()


class TaskSpan(Span):
    """The span of a task call."""

    @abstractmethod
    def record_output(self, output: Any) -> None:
        """Record the output."""


Span.register(trace.Span)
TaskSpan.register(trace.TaskSpan)


_GENERATED = ("num_tokens_generated", "completion_tokens", "output_tokens")


def extract_latency_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """The duration of the call, in microseconds.

    Raises:
        Refused: the trace has no root span.
    """
    root = next((span for span in trace if span.parent_id is None), None)
    if root is None:
        raise Refused("the trace has no span without a parent")
    return (root.end_time - root.start_time) // timedelta(microseconds=1)


def extract_token_count_from_trace(trace: Sequence[ExportedSpan]) -> int:
    """The number of generated tokens, summed over the innermost spans whose outputs report it.

    An output reports it as `num_tokens_generated`, or in its `usage` as `completion_tokens` or `output_tokens`.
    """
    counts = {span.context.span_id: _token_count(span) for span in trace}
    parents = {span.context.span_id: span.parent_id for span in trace}
    reported_below: set[UUID] = set()
    for id, count in counts.items():
        above = parents[id] if count is not None else None
        while above is not None and above not in reported_below:
            reported_below.add(above)
            above = parents.get(above)
    return sum(count for id, count in counts.items() if count is not None and id not in reported_below)


def _token_count(span: ExportedSpan) -> int | None:
    if not isinstance(span.attributes, TaskSpanAttributes):
        return None
    output = span.attributes.output
    for part in (output, _item(output, "usage")):
        for name in _GENERATED:
            if isinstance(count := _item(part, name), int):
                return count
    return None


def _item(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
