"""A span for calls that nobody traces, and spans for code that is not handed a tracer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from evaluand.trace.spans import Span, TaskSpan, current_span
from evaluand.trace.traces import Trace

if TYPE_CHECKING:
    from evaluand.viewing import ExportedSpan


class Untraced(TaskSpan):
    """A span that keeps nothing; for calls nobody traces."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Trace(), None, "untraced", "task", None, {})

    def span(
        self,
        name: str = "",
        /,
        timestamp: datetime | None = None,
        *,
        kind: str = "span",
        input: Any = None,
        **attributes: Any,
    ) -> Untraced:
        return self

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        pass

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

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


UNTRACED: Final = Untraced()


def span(name: str, /, *, kind: str = "span", input: Any = None, **attributes: Any) -> Span:
    """Opens a span below the current one; one that keeps nothing where no call is being traced.

    For code that is not handed a tracer. A plain thread has no current span: use the `span` method of one there.

    Example:
        >>> with span("embed", model="small") as s:
        ...     s.log("tokens", 7)
        >>> s is UNTRACED
        True
    """
    current = current_span()
    if current is None:
        return UNTRACED
    return current.span(name, kind=kind, input=input, **attributes)
