"""Base of tracers with watchers: each span opened from them starts a trace that they watch."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

from evaluand.core.placeholders import unstorable
from evaluand.trace.spans import Span, TaskSpan
from evaluand.trace.tracer import RootTracer
from evaluand.trace.traces import Trace
from evaluand.trace.watcher import Watcher


class RecordedSpan(Span):
    """A span whose values keep their types: a pydantic model is read back as that model."""

    _by_reference: ClassVar[bool] = False

    def _storable(self, value: Any, where: str, name: str = "") -> Any:
        """The value; a copy if the trace stores spans, since a task may change it later."""
        if type(value) in _ATOMS or not self._trace.stores_spans:
            return value
        try:
            return deepcopy(value)
        except Exception:  # a lock, a client: not data, but the task must not fail
            return unstorable(type(value).__qualname__)


class RecordedTaskSpan(RecordedSpan, TaskSpan):
    """The span of a task call whose values keep their types."""


class WatchedTracer(RootTracer):
    """Passes each step of its traces to watchers; by default without stack traces, which contain paths and code."""

    stack_traces: bool = False

    @property
    @abstractmethod
    def watchers(self) -> Sequence[Watcher]:
        """The watchers of a new trace."""

    @property
    def kinds(self) -> tuple[type[Span], type[TaskSpan]] | None:
        """The classes of spans in which traces are stored; None if they are not stored."""
        return None

    def new_trace(self) -> Trace:
        kinds = self.kinds
        return Trace(
            kinds=kinds or (RecordedSpan, RecordedTaskSpan),
            watchers=self.watchers,
            store_spans=kinds is not None,
            stack_traces=self.stack_traces,
        )


_ATOMS = frozenset((str, int, float, bool, type(None)))
