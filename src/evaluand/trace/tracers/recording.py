"""What the tracers that keep something have in common: each span opened on them begins a trace that they watch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

from evaluand.core.json_like import unstorable
from evaluand.trace import RootTracer, Span, TaskSpan, Trace, Watcher


class RecordedSpan(Span):
    """A span whose values stay what they are: a pydantic model is read back as that model."""

    __slots__ = ()
    _by_reference: ClassVar[bool] = False

    def _kept(self, value: Any, where: str, name: str = "") -> Any:
        """The value; where the trace is kept a copy, since a task may change it later."""
        if type(value) in _ATOMS or not self._trace.is_kept:
            return value
        try:
            return deepcopy(value)
        except Exception:  # a lock, a client: not data, and no reason for a task to fail
            return unstorable(type(value).__qualname__)


class RecordedTaskSpan(RecordedSpan, TaskSpan):
    """The span of a task call whose values stay what they are."""

    __slots__ = ()


class WatchedTracer(RootTracer):
    """A tracer whose traces are told to watchers, step by step.

    Attributes:
        stack_traces: whether stack traces are kept with exceptions; they tell paths and code, so not unless asked.
    """

    stack_traces: bool = False

    @property
    @abstractmethod
    def watchers(self) -> Sequence[Watcher]:
        """Who is to be told of a new trace."""

    @property
    def kinds(self) -> tuple[type[Span], type[TaskSpan]] | None:
        """The classes of spans that the traces are kept in; None where they are not kept."""
        return None

    def new_trace(self) -> Trace:
        kinds = self.kinds
        return Trace(
            kinds=kinds or (RecordedSpan, RecordedTaskSpan),
            watchers=self.watchers,
            kept=kinds is not None,
            stack_traces=self.stack_traces,
        )


_ATOMS = frozenset((str, int, float, bool, type(None)))
