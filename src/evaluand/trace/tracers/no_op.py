"""No tracing at all."""

from evaluand.trace.export import Context
from evaluand.trace.untraced import Untraced


class NoOpTracer(Untraced):
    """Stores nothing; for calls that are not traced. The holder of a span can still read its values.

    Example:
        >>> with NoOpTracer().task_span("answer", "q") as task_span:
        ...     task_span.record_output("Jane Austen")
        >>> task_span.output, list(task_span.export_for_viewing())
        ('Jane Austen', [])
    """

    __slots__ = ("_context",)

    def __init__(self, context: Context | None = None) -> None:
        super().__init__()
        self._context = context

    @property
    def context(self) -> Context:
        """Ids, for code that writes them elsewhere."""
        if self._context is None:
            self._context = Context(trace_id=self._trace.id, span_id=self._trace.id)
        return self._context

    def id(self) -> str:  # type: ignore[override]
        return "NoOp"
