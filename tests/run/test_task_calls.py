"""Tasks that call tasks: `run` and `run_concurrently`, in threads and coroutines, one within another."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from support.patience import PATIENCE

from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.run.concurrent_calls import _helpers
from evaluand.run.runner import Runner
from evaluand.run.task import MAX_CONCURRENCY, Task, task
from evaluand.trace import TaskSpan, Trace, span
from evaluand.trace.tracers.in_memory import InMemoryTracer
from evaluand.trace.tracers.no_op import NoOpTracer


class Meter:
    """How many calls are under way at a time, at most."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.now -= 1


class Double(Task[int, int]):
    def __init__(self, meter: Meter | None = None) -> None:
        self.meter = meter or Meter()

    def do_run(self, input: int, task_span: TaskSpan) -> int:
        with self.meter:
            time.sleep(0.001)
        return 2 * input


class DoubleLater(Task[int, int]):
    def __init__(self, meter: Meter | None = None) -> None:
        self.meter = meter or Meter()

    async def do_run(self, input: int, task_span: TaskSpan) -> int:  # type: ignore[override]
        with self.meter:
            await asyncio.sleep(0.001)
        return 2 * input


class Tree(Task[int, int]):
    """Calls itself several times at a time, some levels deep."""

    def do_run(self, input: int, task_span: TaskSpan) -> int:
        return 1 if input == 0 else sum(self.run_concurrently([input - 1] * 6, task_span))


class Failing(Task[int, int]):
    def __init__(self) -> None:
        self.called: list[int] = []

    def do_run(self, input: int, task_span: TaskSpan) -> int:
        self.called.append(input)
        time.sleep(0.002 * (10 - input))  # so that later inputs fail first
        raise ValueError(f"no {input}")


def outline(tracer: InMemoryTracer) -> list[tuple[str, str]]:
    spans = tracer.export_for_viewing()
    names = {each.context.span_id: each.name for each in spans}
    return sorted((str(each.name), names[each.parent_id] if each.parent_id else "") for each in spans)


def test_a_task_runs_in_a_span_with_its_input_and_output() -> None:
    tracer = InMemoryTracer()
    assert Double().run(4, tracer) == 8
    (reported,) = tracer.entries
    assert (reported.name, reported.kind, reported.input, reported.output, reported.status) == (
        "Double",
        "task",
        4,
        8,
        "ok",
    )


def test_an_async_task_runs_when_it_is_awaited() -> None:
    tracer = InMemoryTracer()

    async def main() -> int:
        return await DoubleLater().run(4, tracer)  # type: ignore[misc]

    assert asyncio.run(main()) == 8
    assert (tracer.entries[0].output, tracer.entries[0].status) == (8, "ok")


def test_outputs_stand_in_the_order_of_the_inputs() -> None:
    assert Double().run_concurrently(iter(range(100)), NoOpTracer()) == [2 * n for n in range(100)]
    assert Double().run_concurrently([], NoOpTracer()) == []


@pytest.mark.parametrize("limit", [1, 3])
def test_not_more_calls_are_made_at_a_time_than_the_limit(limit: int) -> None:
    meter = Meter()
    Double(meter).run_concurrently(range(40), NoOpTracer(), limit)
    assert 1 <= meter.most <= limit
    later: Any = DoubleLater(meter := Meter()).run_concurrently(range(40), NoOpTracer(), limit)
    assert asyncio.run(later) == [2 * n for n in range(40)]
    assert meter.most == limit


def test_calls_are_made_at_the_same_time() -> None:
    barrier = threading.Barrier(MAX_CONCURRENCY, timeout=PATIENCE)

    class Meet(Task[int, int]):
        def do_run(self, input: int, task_span: TaskSpan) -> int:
            return barrier.wait()

    outputs = Meet().run_concurrently(range(MAX_CONCURRENCY), NoOpTracer())
    assert sorted(outputs) == list(range(MAX_CONCURRENCY))


@pytest.mark.parametrize("limit", [0, -1, None, "3", 1.5, True])
def test_a_limit_that_is_no_number_of_calls_is_refused(limit: Any) -> None:
    with pytest.raises(SpecError, match=f"concurrency_limit must be an integer of at least 1, not {limit!r}") as raised:
        Double().run_concurrently([1], NoOpTracer(), limit)
    assert isinstance(raised.value, ValueError)


def test_nested_calls_get_on_with_the_threads_there_are() -> None:
    lock, calls, most = threading.Lock(), Counter[int](), 0

    class Watched(Tree):
        def do_run(self, input: int, task_span: TaskSpan) -> int:
            nonlocal most
            thread = threading.get_ident()
            with lock:
                calls[thread] += 1
                most = max(most, len(calls))
            try:
                return super().do_run(input, task_span)
            finally:
                with lock:
                    calls[thread] -= 1
                    if not calls[thread]:
                        del calls[thread]

    assert Watched().run(4, NoOpTracer()) == 6**4
    assert most <= 1 + 512


def test_concurrent_calls_stand_in_one_span_below_the_caller() -> None:
    tracer = InMemoryTracer()
    Tree().run(1, tracer)
    assert outline(tracer) == [
        ("Concurrent Tree tasks", "Tree"),
        ("Tree", ""),
        *[("Tree", "Concurrent Tree tasks")] * 6,
    ]
    assert len(tracer.entries) == 1


def test_library_code_in_a_concurrent_call_finds_the_span_of_the_call() -> None:
    class Embed(Task[int, None]):
        def do_run(self, input: int, task_span: TaskSpan) -> None:
            with span("embed", n=input) as step:
                assert step.parent == task_span.number

    class EmbedLater(Task[int, None]):
        async def do_run(self, input: int, task_span: TaskSpan) -> None:  # type: ignore[override]
            await asyncio.sleep(0)
            with span("embed", n=input) as step:
                assert step.parent == task_span.number

    tracer = InMemoryTracer()
    Embed().run_concurrently(range(5), tracer)
    later: Any = EmbedLater().run_concurrently(range(5), tracer)
    asyncio.run(later)
    assert [name for name, _ in outline(tracer)].count("embed") == 10


def test_the_failure_of_the_earliest_input_is_raised_and_no_further_call_is_made() -> None:
    tracer, failing = InMemoryTracer(), Failing()
    with pytest.raises(ValueError, match="no 0"):
        failing.run_concurrently(range(10), tracer, 4)
    assert sorted(failing.called) == [0, 1, 2, 3]
    assert [each.status for each in tracer.entries[0]._trace.spans] == ["error"] * 5


def test_where_a_thread_cannot_be_started_those_that_were_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, refused = threading.Event(), threading.Event()
    start, started = threading.Thread.start, list[threading.Thread]()

    def limited(thread: threading.Thread) -> None:
        if started:
            begun.wait(PATIENCE)
            refused.set()
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    class Waiting(Task[int, int]):
        def do_run(self, input: int, task_span: TaskSpan) -> int:
            begun.set()
            refused.wait(PATIENCE)
            time.sleep(0.05)
            return input

    monkeypatch.setattr(threading.Thread, "start", limited)
    tracer, free = InMemoryTracer(), _helpers._value
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Waiting().run_concurrently(range(20), tracer, 8)
    assert not started[0].is_alive()
    assert _helpers._value == free
    top, *calls = tracer.entries[0]._trace.spans
    assert len(calls) < 20
    assert top.end_ns is not None
    assert all(call.end_ns is not None and call.end_ns <= top.end_ns for call in calls)


def test_a_failure_of_an_async_call_is_raised_and_no_further_call_is_made() -> None:
    called: list[int] = []

    class FailingLater(Task[int, int]):
        async def do_run(self, input: int, task_span: TaskSpan) -> int:  # type: ignore[override]
            called.append(input)
            await asyncio.sleep(0.001)
            raise ValueError(f"no {input}")

    later: Any = FailingLater().run_concurrently(range(10), NoOpTracer(), 4)
    with pytest.raises(ValueError, match="no 0"):
        asyncio.run(later)
    assert called == [0, 1, 2, 3]


@pytest.mark.parametrize("clean_up", [lambda: None, lambda: 1 / 0], ids=["well", "badly"])
def test_async_calls_under_way_are_cancelled_where_one_fails_and_their_spans_tell_so(
    clean_up: Callable[[], Any],
) -> None:
    class OneFails(Task[int, int]):
        async def do_run(self, input: int, task_span: TaskSpan) -> int:  # type: ignore[override]
            if input == 1:
                await asyncio.sleep(0.001)
                raise ValueError("no 1")
            with task_span.span("wait"):
                await asyncio.sleep(PATIENCE)
            return input

    class Cleaning(OneFails):
        async def do_run(self, input: int, task_span: TaskSpan) -> int:  # type: ignore[override]
            try:
                return await super().do_run(input, task_span)
            except asyncio.CancelledError:
                clean_up()
                raise

    tracer = InMemoryTracer()
    later: Any = Cleaning().run_concurrently(range(10), tracer, 3)
    with pytest.raises(ValueError, match="no 1"):
        asyncio.run(later)
    spans = tracer.entries[0]._trace.spans
    assert [s.input for s in spans if s.kind == "task"] == [0, 1, 2]
    assert [s.events[-1].body["type"] for s in spans if s.name == "wait"] == ["CancelledError"] * 2
    assert "ValueError: no 1" in tracer.entries[0]._trace.tree()
    assert all(s.end_ns is not None for s in spans)


def test_an_async_call_that_outlives_its_cancellation_is_the_last() -> None:
    called: list[int] = []

    class Stubborn(Task[int, int]):
        async def do_run(self, input: int, task_span: TaskSpan) -> int:  # type: ignore[override]
            called.append(input)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(PATIENCE)
            return input

    async def main() -> None:
        later: Any = Stubborn().run_concurrently(range(10), NoOpTracer(), 2)
        running = asyncio.ensure_future(later)
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert called == [0, 1]


def test_calls_end_where_the_async_caller_is_cancelled() -> None:
    tracer, ended = InMemoryTracer(), []

    class Forever(Task[int, int]):
        async def do_run(self, input: int, task_span: TaskSpan) -> int:  # type: ignore[override]
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(input)
            return 0

    async def main() -> None:
        later: Any = Forever().run_concurrently(range(10), tracer, 3)
        running = asyncio.ensure_future(later)
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert sorted(ended) == [0, 1, 2]
    assert {each.end_ns is None for each in tracer.entries[0]._trace.spans} == {False}


def test_a_task_of_subtasks_is_traced_by_a_run() -> None:
    class Sum(Task[int, int]):
        def do_run(self, input: int, task_span: TaskSpan) -> int:
            return sum(Double().run_concurrently(range(input), task_span))

    (response,) = Runner().run(Sum(), Dataset.from_rows([{"input": 3}]))
    assert response.responses == [6]
    trace = Trace.start("Sum", 3)
    with trace.root as root:
        Sum().do_run(3, root)
    assert sorted(s.name for s in trace.spans) == ["Concurrent Double tasks", "Double", "Double", "Double", "Sum"]


def test_a_function_runs_as_a_subtask() -> None:
    tracer = InMemoryTracer()
    assert task(str.upper).run_concurrently(["a", "b"], tracer) == ["A", "B"]
    assert outline(tracer)[1:] == [("upper", "Concurrent upper tasks")] * 2
