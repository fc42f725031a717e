"""Base classes of spans for tracers of other backends, as in the SDKs; spans of evaluand are instances of them."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from evaluand import trace
from evaluand.core.errors import SpecError
from evaluand.trace.export import Context, ErrorValue, SpanStatus
from evaluand.trace.tracer import Tracer


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
            raise SpecError("the span is closed; open another one")
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
