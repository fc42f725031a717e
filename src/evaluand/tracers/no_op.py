"""No tracing at all."""

from __future__ import annotations

from evaluand.trace import Untraced


class NoOpTracer(Untraced):
    """Keeps nothing; for calls that nobody traces.

    Example:
        >>> with NoOpTracer().task_span("answer", "q") as task_span:
        ...     task_span.log("hits", 3)
        >>> list(task_span.export_for_viewing())
        []
    """

    __slots__ = ()

    def id(self) -> str:  # type: ignore[override]
        """What it is called."""
        return "NoOp"
