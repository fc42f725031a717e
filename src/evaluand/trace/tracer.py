"""What spans are opened from."""

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
    """What a task is given to open spans from."""

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
        """Opens a span; a `with` block closes it and makes it the current span meanwhile.

        Args:
            name: what this step is called in the trace.
            timestamp: when it began, where that is not now.
            kind: what sort of step it is: `span`, `task`, `llm`, `retriever`, `tool`, or a word of your own.
            input: what the step works on.
            attributes: anything else known beforehand.

        Raises:
            SpecError: the tracer is a span that is closed.
        """

    def task_span(self, task_name: str, input: Any, timestamp: datetime | None = None) -> TaskSpan:
        """Opens the span of a task call, as `span` does; `Task.run` calls it.

        Args:
            task_name: what the task is called.
            input: what it is called with.
            timestamp: when it began, where that is not now.
        """
        return cast("TaskSpan", self.span(task_name, timestamp, kind="task", input=input))

    @property
    def context(self) -> Context | None:
        """The ids of the span it is; None for a tracer that is none."""
        return None

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """The spans as viewers and other programs read them: children before their parents.

        Raises:
            OpenSpanError: a span is still open.
            SpecError: the tracer keeps no spans.
        """
        raise SpecError(f"{type(self).__name__} keeps no spans; look at them where it sends them")


class RootTracer(Tracer):
    """A tracer that is no span: each span opened on it is the root of a new trace."""

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
    """A span was to be exported before it was closed."""
