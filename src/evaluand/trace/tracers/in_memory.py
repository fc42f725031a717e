"""Traces in memory, to be shown in a terminal, a notebook or a test."""

from __future__ import annotations

import inspect
import io
from abc import ABCMeta
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Self
from uuid import uuid4

from rich.console import Console
from rich.panel import Panel
from rich.text import Text
from rich.tree import Tree

from evaluand.trace.export import Context, ErrorValue, ExportedSpan, LogEntry, at, event_parts, panel
from evaluand.trace.spans import Event, Span
from evaluand.trace.tracers.recording import RecordedSpan, RecordedTaskSpan, WatchedTracer
from evaluand.trace.traces import Trace
from evaluand.trace.tree import label
from evaluand.trace.values import one_line
from evaluand.trace.watcher import Watcher

HTML = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'


class InMemoryTracer(WatchedTracer):
    """Stores every trace that is opened from it.

    A span in memory is an instance too, so that code can walk through all entries: those that are an `InMemoryTracer`
    have entries, the others are values (`LogEntry`).

    Attributes:
        entries: the roots of the traces.
        stack_traces: whether stack traces of exceptions are stored.

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
        return _trees(self.entries, _sdk_label)

    def __rich__(self) -> Tree:
        return _trees(self.entries, label)

    def _repr_html_(self) -> str:
        return _html(self.__rich__())


class _StartsTrace(ABCMeta):
    """Lets a span be created by name, as in the Pharia SDKs; it then starts a trace."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if args and isinstance(args[0], Trace):
            return super().__call__(*args, **named)
        return cls._start_trace(*args, **named)  # type: ignore[attr-defined]

    @property
    def __signature__(cls) -> inspect.Signature:
        return inspect.signature(cls._start_trace)  # type: ignore[attr-defined]


class InMemorySpan(RecordedSpan, metaclass=_StartsTrace):
    """A span in memory, with its entries in order.

    Example:
        >>> with InMemorySpan("step") as step:
        ...     step.log("hits", 3)
        >>> step.entries[0].value
        3
    """

    __slots__ = ("_entries",)

    @classmethod
    def _start_trace(cls, name: str, context: Context | None = None, start_timestamp: datetime | None = None) -> Self:
        return cls._root(name, "span", None, context, start_timestamp)

    @classmethod
    def _root(cls, name: str, kind: str, input: Any, context: Context | None, started: datetime | None) -> Self:
        trace = Trace(kinds=(InMemorySpan, InMemoryTaskSpan), watchers=(ENTRIES,))
        span: Self = cls(trace, None, name, kind, input, {}, started)
        if context is not None:
            trace._id, span._id = context.trace_id, uuid4()
        return span

    _entries: list[InMemorySpan | tuple[str, int, Any]]  # set by the watcher `ENTRIES`, which all its traces have

    @property
    def entries(self) -> list[LogEntry | InMemorySpan]:
        """Logged values and opened spans, in order."""
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
        return _tree(self, _sdk_label)

    def __rich__(self) -> Tree:
        return _tree(self, label)

    def _repr_html_(self) -> str:
        return _html(self.__rich__())


InMemoryTracer.register(InMemorySpan)  # in the Pharia SDKs a span is one, by which code walks through its entries


class InMemoryTaskSpan(InMemorySpan, RecordedTaskSpan):
    """The span of a task call in memory."""

    @classmethod
    def _start_trace(  # type: ignore[override]
        cls, name: str, input: Any, context: Context | None = None, start_timestamp: datetime | None = None
    ) -> Self:
        return cls._root(name, "task", input, context, start_timestamp)


class _Entries(Watcher):
    """Adds what happens in a span to its entries."""

    __slots__ = ()

    def opened(self, span: Span) -> None:
        if isinstance(span, InMemorySpan):
            span._entries = []
            if isinstance(span._above, InMemorySpan):
                span._above._entries.append(span)

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        if isinstance(span, InMemorySpan):
            span._entries.append(event)

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        self.logged(span, event)


class _Roots(Watcher):
    """Adds the root of each trace to the entries of the tracer."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[InMemorySpan]) -> None:
        self.entries = entries

    def opened(self, span: Span) -> None:
        if span._above is None and isinstance(span, InMemorySpan):
            self.entries.append(span)


ENTRIES = _Entries()


def _log_entry(event: tuple[str, int, Any], trace_id: Any) -> LogEntry:
    message, time_ns, value = event_parts(Event(*event))
    return LogEntry(message=message, value=value, timestamp=at(time_ns), trace_id=trace_id)


def _trees(tops: Iterable[InMemorySpan], label_of: Callable[[Span], str]) -> Tree:
    tree = Tree("Trace")
    for top in tops:
        tree.add(_tree(top, label_of))
    return tree


def _tree(top: InMemorySpan, label_of: Callable[[Span], str]) -> Tree:
    """The content of a span as branches; not recursive, since agents nest deeply."""
    tree = Tree(Text(label_of(top)))
    waiting = [(top, tree)]
    while waiting:
        span, branch = waiting.pop()
        is_task = span.kind == "task"
        if is_task or span.input is not None:
            branch.add(panel("Input", span.input))
        if span.has_attributes:
            branch.add(panel("Attributes", span.attributes))
        for entry in span._entries:
            if isinstance(entry, InMemorySpan):
                below = Tree(Text(label_of(entry)))
                branch.children.append(below)
                waiting.append((entry, below))
            else:
                branch.add(_panel(entry))
        if span.output is not None or (is_task and span.status == "ok"):
            branch.add(panel("Output", span.output))
    return tree


def _panel(event: tuple[str, int, Any]) -> Panel:
    message, _, value = event_parts(Event(*event))
    if isinstance(value, ErrorValue):
        value = value.model_dump(exclude=None if value.stack_trace else {"stack_trace"})
    return panel(message, value)


def _sdk_label(span: Span) -> str:
    """The label of a branch in the Pharia SDKs."""
    return one_line(span.name) + (" (open)" if span.end_ns is None else "")


def _html(tree: Tree) -> str:
    console = Console(record=True, file=io.StringIO(), width=100)
    console.print(tree)
    return console.export_html(inline_styles=True, code_format=HTML)
