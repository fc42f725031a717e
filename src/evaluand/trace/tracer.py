"""Tracers, from which spans are opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from evaluand.core.errors import SpecError

if TYPE_CHECKING:
    from evaluand.trace.export import Context, ExportedSpan
    from evaluand.trace.spans import Span, TaskSpan
    from evaluand.trace.traces import Trace


class Tracer(ABC):
    """Opens spans; every task gets one."""

    __slots__ = ()

    @abstractmethod
    def span(
        self,
        name: str = "",
        /,
        timestamp: datetime | None = None,
        *,
        kind: str = "span",
        input: Any = None,
        **attributes: Any,
    ) -> Span:
        """Open a span; a `with` block makes it the current span and closes it at the end.

        Args:
            name: the name of the step in the trace.
            timestamp: when it began; now by default.
            kind: the kind of step: `span`, `task`, `llm`, `retriever`, `tool`, or any other word.
            input: the input of the step.
            attributes: further data known at the start.

        Raises:
            ClosedSpanError: the tracer is a closed span.
        """

    def task_span(self, task_name: str, input: Any, timestamp: datetime | None = None) -> TaskSpan:
        """Open the span of a task call, as `span` does; `Task.run` calls it."""
        return cast("TaskSpan", self.span(task_name, timestamp, kind="task", input=input))

    @property
    def context(self) -> Context | None:
        """The ids of the span; None for a tracer that is not a span."""
        return None

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """The spans in the format for viewers and other programs: children before their parents.

        Raises:
            OpenSpanError: a span is still open.
            SpecError: the tracer stores no spans.
        """
        raise SpecError(f"{type(self).__name__} stores no spans; read them where it sends them")


class RootTracer(Tracer):
    """A tracer that is not a span: each span opened from it is the root of a new trace."""

    @abstractmethod
    def new_trace(self) -> Trace:
        """A trace without spans."""

    def span(
        self,
        name: str = "",
        /,
        timestamp: datetime | None = None,
        *,
        kind: str = "span",
        input: Any = None,
        **attributes: Any,
    ) -> Span:
        return self.new_trace().open(None, name, timestamp, kind, input, attributes)


class OpenSpanError(SpecError, RuntimeError):
    """A span cannot be exported before it is closed."""


class ClosedSpanError(SpecError, RuntimeError):
    """A closed span cannot be changed, and no span can be opened below it."""


class EnteredSpanError(SpecError, ValueError):
    """A span cannot be entered twice."""
