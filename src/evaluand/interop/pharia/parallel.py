"""Many calls at a time, made by the core as it makes those of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from evaluand.run.task import Task
from evaluand.trace.spans import TaskSpan
from evaluand.trace.tracers.no_op import NoOpTracer

T = TypeVar("T")
R = TypeVar("R")


def each_in_threads(call: Callable[[T], R], values: Iterable[T], workers: int) -> Sequence[R]:
    """What a function gives for each value, in their order, of so many calls at a time.

    Raises:
        Exception: what a call raised, of several the one of the earliest value; calls not begun are not made.
    """
    return _Calls(call).run_concurrently(values, NoOpTracer(), workers)


class _Calls(Task[Any, Any]):
    """A function that is to be called as it is."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        return self._call(input)
