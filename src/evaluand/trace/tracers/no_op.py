"""No tracing at all."""

from __future__ import annotations

from evaluand.trace import Untraced
from evaluand.trace.export import Context


class NoOpTracer(Untraced):
    """Keeps nothing; for calls that nobody traces. A span can still be asked what it was given.

    Example:
        >>> with NoOpTracer().task_span("answer", "q") as task_span:
        ...     task_span.record_output("Jane Austen")
        >>> task_span.output, list(task_span.export_for_viewing())
        ('Jane Austen', [])
    """

    __slots__ = ("_told",)

    def __init__(self, context: Context | None = None) -> None:
        """A span of no trace.

        Args:
            context: ids that it is to tell; made if not given.
        """
        super().__init__()
        self._told = context

    @property
    def context(self) -> Context:
        """Ids, for code that writes them elsewhere."""
        if self._told is None:
            self._told = Context(trace_id=self._trace.id, span_id=self._trace.id)
        return self._told

    def id(self) -> str:  # type: ignore[override]
        """What it is called."""
        return "NoOp"
