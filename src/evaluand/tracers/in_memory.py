"""Traces kept in memory, to be looked at in a terminal, a notebook or a test."""

from __future__ import annotations

import io
from abc import ABCMeta
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self
from uuid import uuid4

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from evaluand.trace import Event, Span, Trace, Watcher
from evaluand.tracers.recording import RecordedSpan, RecordedTaskSpan, RecordingTracer
from evaluand.viewing import Context, ExportedSpan, LogEntry, at, one_line, panel, told

HTML = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'


class InMemoryTracer(RecordingTracer):
    """Keeps every trace that is opened on it.

    Attributes:
        entries: the spans opened on the tracer itself, each of which began a trace.
        stack_traces: whether stack traces are kept with exceptions.

    Example:
        >>> tracer = InMemoryTracer()
        >>> with tracer.task_span("answer", "Who wrote Emma?") as task_span:
        ...     task_span.log("hits", 3)
        ...     task_span.record_output("Jane Austen")
        >>> tracer.entries[0].output, tracer.entries[0].entries[0].value
        ('Jane Austen', 3)
    """

    def __init__(self, *, stack_traces: bool = False) -> None:
        self.entries: list[InMemorySpan] = []
        self.stack_traces = stack_traces

    @property
    def watchers(self) -> Sequence[Watcher]:
        return ENTRIES, _Roots(self.entries)

    @property
    def kinds(self) -> tuple[type[InMemorySpan], type[InMemoryTaskSpan]]:
        return InMemorySpan, InMemoryTaskSpan

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return [exported for entry in self.entries for exported in entry.export_for_viewing()]

    def _rich_render_(self) -> Tree:
        tree = Tree("Trace")
        for entry in self.entries:
            tree.add(entry._rich_render_())
        return tree

    def __rich__(self) -> Tree:
        return self._rich_render_()

    def _repr_html_(self) -> str:
        return _html(self._rich_render_())


class _Alone(ABCMeta):
    """Lets a span be made by its name, as the Pharia SDKs do; it then begins a trace."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if args and isinstance(args[0], Trace):
            return super().__call__(*args, **named)
        return cls._alone(*args, **named)  # type: ignore[attr-defined]


class InMemorySpan(RecordedSpan, metaclass=_Alone):
    """A span in memory, with what happened in it in order.

    Example:
        >>> with InMemorySpan("step") as step:
        ...     step.log("hits", 3)
        >>> step.entries[0].value
        3
    """

    __slots__ = ("_entries",)

    @classmethod
    def _alone(cls, name: str, context: Context | None = None, start_timestamp: datetime | None = None) -> Self:
        return cls._root(name, "span", None, context, start_timestamp)

    @classmethod
    def _root(cls, name: str, kind: str, input: Any, context: Context | None, started: datetime | None) -> Self:
        trace = Trace(kinds=(InMemorySpan, InMemoryTaskSpan), watchers=(ENTRIES,))
        span: Self = cls(trace, None, name, kind, input, {}, started)
        if context is not None:
            trace._id, span._id = context.trace_id, uuid4()
        return span

    def __init__(
        self,
        trace: Trace,
        above: Span | None,
        name: str,
        kind: str,
        input: Any,
        attributes: Mapping[str, Any],
        timestamp: datetime | None = None,
    ) -> None:
        self._entries: list[InMemorySpan | tuple[str, int, Any]] = []
        super().__init__(trace, above, name, kind, input, attributes, timestamp)

    @property
    def entries(self) -> list[LogEntry | InMemorySpan]:
        """What was logged and which spans were opened, in order."""
        trace_id = self._trace.id
        return [_log_entry(entry, trace_id) if type(entry) is tuple else entry for entry in self._entries]  # type: ignore[misc]

    @property
    def start_timestamp(self) -> datetime:
        """When it was opened."""
        return at(self.start_ns)

    @property
    def end_timestamp(self) -> datetime | None:
        """When it was closed; None while it is open."""
        return None if self.end_ns is None else at(self.end_ns)

    def _rich_render_(self) -> Tree:
        return _tree(self)

    def __rich__(self) -> Tree:
        return self._rich_render_()

    def _repr_html_(self) -> str:
        return _html(self._rich_render_())


class InMemoryTaskSpan(InMemorySpan, RecordedTaskSpan):
    """The span of a task call in memory."""

    __slots__ = ()

    @classmethod
    def _alone(  # type: ignore[override]
        cls, name: str, input: Any, context: Context | None = None, start_timestamp: datetime | None = None
    ) -> Self:
        return cls._root(name, "task", input, context, start_timestamp)


class _Entries(Watcher):
    """Puts what happens in a span among its entries."""

    __slots__ = ()

    def opened(self, span: Span) -> None:
        if isinstance(span._above, InMemorySpan) and isinstance(span, InMemorySpan):
            span._above._entries.append(span)

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        if isinstance(span, InMemorySpan):
            span._entries.append(event)

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        self.logged(span, event)


class _Roots(Watcher):
    """Puts the root of each trace among the entries of the tracer."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[InMemorySpan]) -> None:
        self.entries = entries

    def opened(self, span: Span) -> None:
        if span._above is None and isinstance(span, InMemorySpan):
            self.entries.append(span)


ENTRIES = _Entries()


def _log_entry(event: tuple[str, int, Any], trace_id: Any) -> LogEntry:
    message, time_ns, value = told(Event(*event))
    return LogEntry(message=message, value=value, timestamp=at(time_ns), trace_id=trace_id)


def _tree(top: InMemorySpan) -> Tree:
    """What happened in a span, as branches; not recursive, since agents nest deeply."""
    tree = _branch(top)
    waiting = [(top, tree)]
    while waiting:
        span, branch = waiting.pop()
        if span.kind == "task":
            branch.add(panel("Input", span.input))
        for entry in span._entries:
            if isinstance(entry, InMemorySpan):
                waiting.append((entry, _grown(branch, entry)))
            else:
                message, _, value = told(Event(*entry))
                branch.add(panel(message, value))
        if span.kind == "task" and span.end_ns is not None:
            branch.add(panel("Output", span.output))
    return tree


def _grown(branch: Tree, span: InMemorySpan) -> Tree:
    below = _branch(span)
    branch.children.append(below)
    return below


def _branch(span: InMemorySpan) -> Tree:
    return Tree(Text(one_line(span.name) + (" (open)" if span.end_ns is None else "")))


def _html(tree: Tree) -> str:
    console = Console(record=True, file=io.StringIO(), width=100)
    console.print(tree)
    return console.export_html(inline_styles=True, code_format=HTML)
