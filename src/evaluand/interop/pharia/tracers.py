"""The SDKs' names for tracing; all that is traced by is `evaluand.trace` and the kinds of `evaluand.trace.tracers`.

`Span` and `TaskSpan` are there to be derived from, by tracers for backends of one's own; spans of evaluand are
instances of them.
"""

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
        context: its ids; those of a span that is opened on no other are alike.
        status_code: how it ended.
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
        """Keeps a value."""

    @abstractmethod
    def end(self, timestamp: datetime | None = None) -> None:
        """Ends the span; done by itself at the end of a `with` block."""
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
        """Keeps the output."""


Span.register(trace.Span)
TaskSpan.register(trace.TaskSpan)
