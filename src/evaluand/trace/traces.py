"""The spans of one call."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any

from evaluand.core.text.html_table import escape_markup
from evaluand.trace.rows import restore, rows_of
from evaluand.trace.spans import Span, TaskSpan, export_spans, status_code
from evaluand.trace.tree import label, tree
from evaluand.trace.watcher import Watcher

if TYPE_CHECKING:
    from evaluand.trace.export import ExportedSpan


class Trace:
    """The spans of one task call.

    Attributes:
        root: the span of the whole call.

    Example:
        >>> from evaluand import span
        >>> trace = Trace.start("answer", "Who wrote Emma?")
        >>> with trace.root:
        ...     with span("retrieve", query="Emma"):
        ...         pass
        >>> [(s.number, s.parent, s.name, s.status) for s in trace.spans]
        [(0, None, 'answer', 'ok'), (1, 0, 'retrieve', 'ok')]
    """

    root: TaskSpan
    _id: uuid.UUID | None = None

    def __init__(
        self,
        *,
        kinds: tuple[type[Span], type[TaskSpan]] | None = None,
        watchers: Sequence[Watcher] = (),
        store_spans: bool = True,
        stack_traces: bool = False,
    ) -> None:
        """An empty trace, for tracers; see `start`. Without `store_spans`, only the watchers see its spans."""
        self.kinds = kinds or (Span, TaskSpan)
        self._watchers = tuple(watchers)
        self._stack_traces = stack_traces
        self.stores_spans = store_spans
        self._spans: list[Span] = []
        self._numbers = itertools.count()
        self._clock_offset = time_ns() - perf_counter_ns()

    @classmethod
    def start(cls, name: str, input: Any = None) -> Trace:
        """A trace with an open root; enter `root` around the call.

        Args:
            name: the task's name.
            input: the example's input; stored by reference and left out of `rows`.
        """
        trace = cls()
        TaskSpan(trace, None, name, "task", input, {})
        return trace

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Sequence[Any]],
        *,
        name: str = "task",
        input: Any = None,
        output: Any = None,
        start_ns: int = 0,
        end_ns: int | None = None,
        status: str = "unset",
    ) -> Trace:
        """The trace with these `rows`, before or after `orjson` wrote and read them.

        For a cell of which only the JSON text is known, as in the table of spans, pass `orjson.Fragment(text)`.

        Args:
            rows: see `rows`; in order of their numbers.
            name: the root's name. This and the other arguments are what `rows` leaves out; if the root has a row, its
                name, end and status are those of the row.
            input: the example's input.
            output: the response.
            start_ns: when the trace started; times are relative to this.
            end_ns: when the call ended.
            status: how the call ended.

        Raises:
            DataError: a row is not a valid span; names the row.

        Example:
            >>> print(Trace.from_rows([[1, 0, "ask", "llm", 250, 1200, 1, None, "Jane", None, None]]).tree())
            task open
            └─ ask (llm) 1.2 ms
        """
        trace = cls.start(name, input)
        root: Span = trace.root
        root._output, root._status, root.start_ns, root.end_ns = output, status_code(status), start_ns, end_ns
        restore(trace, rows)
        return trace

    def open(
        self,
        above: Span | None,
        name: str,
        timestamp: datetime | None,
        kind: str,
        input: Any,
        attributes: dict[str, Any],
    ) -> Span:
        """Open a span below another, or the root; for tracers, see `Tracer.span`."""
        if not name and "name" in attributes:
            name = attributes.pop("name")
        return self.kinds[kind == "task"](self, above, name, kind, input, attributes, timestamp)

    @property
    def id(self) -> uuid.UUID:
        """The id of the trace outside this process; created on first use."""
        return self._id or self._make_id()

    @property
    def spans(self) -> list[Span]:
        """Every span opened so far, in order of opening."""
        return sorted(self._spans, key=attrgetter("number"))

    def has_kind(self, kind: str) -> bool:
        """Whether a span is of this kind."""
        return kind in [span.kind for span in self._spans]

    def rows(self) -> list[list[Any]]:
        """The spans as compact lists, ready for `orjson.dumps`, in order of opening.

        A row is `[number, parent, name, kind, start, duration, status, input, output, attributes, events]`: `start` in
        microseconds since the trace's start, `duration` in microseconds or None for a span still open (with a status:
        logged elsewhere, without its times), `status` an index into `STATUSES`. `orjson.dumps` writes the canonical
        text of values (`evaluand.core.identity`); missing values, attributes and events are None. An event is `[name,
        time, value]`, `time` like `start`.

        The root has a row only if it has attributes or events, and that row has no input and output. Spans that
        threads open after the call are not included.

        Example:
            >>> trace = Trace.start("answer", "Who wrote Emma?")
            >>> trace.rows()
            []
        """
        return rows_of(self)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """The spans in the format for viewers and other programs; see `Tracer.export_for_viewing`."""
        return export_spans(self, self.root)

    def tree(self) -> str:
        """The spans as indented text with their durations, for people."""
        return tree(self.spans, self.root)

    def _make_id(self) -> uuid.UUID:
        with _making_ids:
            self._id = self._id or uuid.uuid4()
        return self._id

    def __str__(self) -> str:
        return self.tree()

    def _repr_html_(self) -> str:
        text = escape_markup(self.tree(), "\n")
        return f"<pre>{text}</pre>"

    def __repr__(self) -> str:
        return f"<Trace {label(self.root)}, {len(self._spans)} spans>"


_making_ids = threading.Lock()
