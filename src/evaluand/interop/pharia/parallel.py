"""Concurrent calls, run in the same way as the calls of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from evaluand.run.task import Task
from evaluand.trace.spans import TaskSpan
from evaluand.trace.tracers.no_op import NoOpTracer

T = TypeVar("T")
R = TypeVar("R")


def each_in_threads(call: Callable[[T], R], values: Iterable[T], workers: int) -> Sequence[R]:
    """The function's results, in the order of the values, with `workers` calls at a time.

    Raises:
        Exception: the error of a call, of several that of the earliest value; no further calls begin.
    """
    return _Calls(call).run_concurrently(values, NoOpTracer(), workers)


class _Calls(Task[Any, Any]):
    """A function as a task."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self._call(input)
