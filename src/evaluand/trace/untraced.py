"""Spans of calls that are not traced, and spans for code without a tracer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from evaluand.trace.spans import Span, TaskSpan, current_span
from evaluand.trace.traces import Trace

if TYPE_CHECKING:
    from evaluand.trace.export import Context, ExportedSpan


class UntracedSpan(TaskSpan):
    """A span of a call that is not traced; its holder can read its values, but nothing is recorded.

    So a task that returns the output of its span returns the same with every tracer.
    """

    def __init__(
        self,
        trace: Trace,
        above: Span | None,
        name: str,
        kind: str,
        input: Any,
        attributes: dict[str, Any],
        timestamp: datetime | None = None,
    ) -> None:
        self._trace, self._above = trace, above
        self.name, self.kind, self.number = name, kind, 0
        self._input, self._attributes, self._events = input, attributes, []
        self.start_ns = self._status = 0
        self.parent = self.end_ns = self._id = self._output = None
        self._entered = False

    @property
    def context(self) -> Context:
        """The ids of the tracer that it was opened from."""
        return super().context if self._above is None else self._above.context

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        if self.end_ns is not None:
            self._require_open(f"log {message!r} on")

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return ()

    def __enter__(self) -> Self:
        if self._entered or self.end_ns is not None:
            self._refuse_entry()
        self._entered = True
        return self

    def _close(self, timestamp: datetime | None) -> None:
        self.end_ns = 0

    def _storable(self, value: Any, where: str, name: str = "") -> Any:
        return value


class Untraced(UntracedSpan):
    """Opens untraced spans. All calls share it, so it stores nothing and is never closed."""

    def __init__(self) -> None:
        super().__init__(
            Trace(kinds=(UntracedSpan, UntracedSpan), store_spans=False), None, "untraced", "task", None, {}
        )

    def set(self, /, **attributes: Any) -> None:
        pass

    def record_output(self, output: Any) -> None:
        pass

    @property
    def status(self) -> str:
        return "unset"

    @status.setter
    def status(self, status: str) -> None:
        pass

    def end(self, timestamp: datetime | None = None) -> None:
        pass

    close = end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


UNTRACED: Final = Untraced()


def span(name: str, /, *, kind: str = "span", input: Any = None, **attributes: Any) -> Span:
    """Open a span below the current one; an untraced span if no call is being traced.

    For code without a tracer. A plain thread has no current span: use the `span` method of a span there.

    Example:
        >>> with span("embed", model="small") as s:
        ...     s.log("tokens", 7)
        ...     s.output = [0.5, 0.1]
        >>> s.output, list(s.export_for_viewing())
        ([0.5, 0.1], [])
    """
    return (current_span() or UNTRACED).span(name, kind=kind, input=input, **attributes)
