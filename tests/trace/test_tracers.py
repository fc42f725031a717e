"""Tracers: what each keeps or sends of a traced call, and what other systems read of it."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextvars import copy_context
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4
from weakref import WeakSet

import orjson
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracer as Nowhere
from pydantic import BaseModel
from rich.console import Console
from support.forks import end_fork, start_fork
from support.patience import PATIENCE
from support.places import SUPPORT_FOLDER, VECTORS_FOLDER, missing
from support.processes import open_process

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.interop import pharia
from evaluand.interop.pharia.runs import ExampleTracer, restore_traces
from evaluand.run.task import Task
from evaluand.trace import OpenSpanError, RootTracer, Span, TaskSpan, Trace, Tracer, Watcher, current_span, span
from evaluand.trace.conventions import read_attributes
from evaluand.trace.export import (
    Context,
    ErrorValue,
    ExportedSpan,
    ExportedSpanList,
    LogEntry,
    SpanStatus,
    TaskSpanAttributes,
)
from evaluand.trace.foreign_spans import read_spans, traces_of
from evaluand.trace.tracers.composite import CompositeTracer
from evaluand.trace.tracers.file import FileTracer, TracerLogEntryFailed, read_traces
from evaluand.trace.tracers.in_memory import InMemorySpan, InMemoryTaskSpan, InMemoryTracer
from evaluand.trace.tracers.no_op import NoOpTracer
from evaluand.trace.tracers.open_telemetry import OpenTelemetryTracer

VECTOR = VECTORS_FOLDER / "pharia" / "trace.json"
SECOND = [datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(5)]
RECEIVER = SUPPORT_FOLDER / "otlp_receiver.py"


class Question(BaseModel):
    q: int


class Answer(Task[Question, str]):
    def do_run(self, input: Question, task_span: TaskSpan) -> str:
        with task_span.span("step") as step:
            step.log("note", [input.q, "two", None])
        if input.q < 0:
            raise ValueError("bad <b>")
        return "done"


class Several(Task[int, list[str]]):
    """A task of subtasks, some at a time."""

    def do_run(self, input: int, task_span: TaskSpan) -> list[str]:
        return list(Answer().run_concurrently([Question(q=q) for q in range(input)], task_span))


def at_set_times(tracer: Tracer) -> None:
    """The call of the vector."""
    root = tracer.task_span("Root", {"q": 1}, SECOND[0])
    step = root.span("step", SECOND[1])
    step.log("note", [1, "two", None], SECOND[2])
    step.end(SECOND[3])
    root.record_output("done")
    root.end(SECOND[4])


def vector(part: str) -> Any:
    if not VECTOR.exists():
        pytest.skip(missing(VECTOR))
    return json.loads(VECTOR.read_text())[part]


def without_ids(value: Any, ids: dict[str, int]) -> Any:
    """A value with each id by the order in which it occurs first: which are alike counts, not which they are."""
    if isinstance(value, dict):
        return {key: without_ids(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [without_ids(item, ids) for item in value]
    try:
        return f"id {ids.setdefault(str(UUID(value)), len(ids))}"
    except (ValueError, AttributeError, TypeError):
        return value


def exported(tracer: Tracer) -> Any:
    return [json.loads(each.model_dump_json()) for each in tracer.export_for_viewing()]


def by_id(span: Any) -> str:
    return str(span["context"]["span_id"])


def drawn(renderable: Any, width: int = 60) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(renderable)
    return [line.rstrip() for line in console.export_text().splitlines()]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def shape(tracer: InMemoryTracer) -> list[Any]:
    def of(entry: Any) -> Any:
        if isinstance(entry, LogEntry):
            return entry.message, entry.value
        return entry.name, entry.kind, entry.status, entry.input, entry.output, [of(each) for each in entry.entries]

    return [of(entry) for entry in tracer.entries]


# --- vectors ---


def test_exported_spans_are_those_of_the_vector() -> None:
    tracer = InMemoryTracer()
    at_set_times(tracer)
    assert without_ids(exported(tracer), {}) == without_ids(vector("export_for_viewing"), {})


def test_lines_of_the_file_are_those_of_the_vector(tmp_path: Path) -> None:
    at_set_times(FileTracer(tmp_path / "trace.jsonl"))
    assert without_ids(lines(tmp_path / "trace.jsonl"), {}) == without_ids(vector("file_tracer_lines"), {})


def test_the_tree_is_that_of_the_vector() -> None:
    tracer = InMemoryTracer()
    at_set_times(tracer)
    expected = [line.rstrip() for line in vector("tree_rendering_width_60")]
    assert drawn(tracer._rich_render_()) == expected
    timed = {"└── Root": "└── Root 4 s", "    ├── step": "    ├── step 2 s"}
    assert drawn(tracer) == [timed.get(line, line) for line in expected]


def test_the_tree_shows_all_that_a_span_holds() -> None:
    tracer = InMemoryTracer()
    ask = tracer.span("ask", SECOND[0], kind="llm", input="Who?", model="small")
    ask.set(output_tokens=2)
    ask.output = "Jane"
    ask.end(SECOND[1])
    assert drawn(tracer, 40) == [
        "Trace",
        "└── ask (llm) 1 s",
        "    ├── ╭─────────── Input ────────────╮",
        '    │   │ "Who?"                       │',
        "    │   ╰──────────────────────────────╯",
        "    ├── ╭───────── Attributes ─────────╮",
        "    │   │ {                            │",
        '    │   │   "model": "small",          │',
        '    │   │   "output_tokens": 2         │',
        "    │   │ }                            │",
        "    │   ╰──────────────────────────────╯",
        "    └── ╭─────────── Output ───────────╮",
        '        │ "Jane"                       │',
        "        ╰──────────────────────────────╯",
    ]


def test_the_tree_of_a_failure_shows_the_error_and_nothing_empty() -> None:
    tracer = InMemoryTracer()
    fail(tracer)
    text = "\n".join(drawn(tracer))
    assert "error: ValueError: bad <b>" in text
    assert '"message": "bad <b>"' in text
    assert "stack_trace" not in text
    assert "Output" not in text
    asked = InMemoryTracer(stack_traces=True)
    fail(asked)
    assert '"stack_trace": "Traceback' in "\n".join(drawn(asked))


def test_the_tree_shows_that_a_task_gave_nothing() -> None:
    tracer = InMemoryTracer()
    with tracer.task_span("answer", "Who?"):
        pass
    assert "null" in "".join(drawn(tracer))


def test_a_file_of_the_vector_opens_with_its_ids_and_times(tmp_path: Path) -> None:
    reported = vector("file_tracer_lines")
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in reported))
    tracer = FileTracer(path).traces()
    (root,) = tracer.entries
    assert isinstance(root, InMemoryTaskSpan)
    assert (str(root.id), root.start_timestamp, root.end_timestamp) == (reported[0]["trace_id"], SECOND[0], SECOND[4])
    assert (root.input, root.output) == ({"q": 1}, "done")
    step = root.entries[0]
    assert isinstance(step, InMemorySpan)
    assert str(step.id) == reported[1]["entry"]["uuid"]
    assert step.entries == [
        LogEntry(message="note", value=[1, "two", None], timestamp=SECOND[2], trace_id=UUID(reported[0]["trace_id"]))
    ]
    assert without_ids(exported(tracer), {}) == without_ids(vector("export_for_viewing"), {})


# --- in memory ---


def test_values_are_read_back_as_what_they_were() -> None:
    tracer = InMemoryTracer()
    question, hits = Question(q=1), {1, 2}
    with tracer.task_span("outer", question) as outer, outer.task_span("inner", question) as inner:
        inner.log("hits", hits)
        hits.add(3)
        inner.record_output((1, question))
    reported = tracer.entries[0].entries[0]
    assert isinstance(reported, InMemoryTaskSpan)
    assert (tracer.entries[0].input, reported.input, reported.output) == (question, question, (1, question))
    assert isinstance(reported.entries[0], LogEntry)
    assert reported.entries[0].value == {1, 2}


def test_entries_stand_in_the_order_in_which_they_happened() -> None:
    tracer = InMemoryTracer()
    with tracer.span("top") as top:
        top.log("first", 1)
        with top.span("second"):
            pass
        top.log("third", 3)
    names = [entry.message if isinstance(entry, LogEntry) else entry.name for entry in tracer.entries[0].entries]
    assert names == ["first", "second", "third"]


def test_each_span_opened_on_the_tracer_begins_a_trace() -> None:
    tracer = InMemoryTracer()
    with tracer.span("a") as a, a.span("below"):
        pass
    with tracer.span("b"):
        pass
    ids = {each.name: each.context for each in tracer.export_for_viewing()}
    assert ids["a"].trace_id == ids["a"].span_id == ids["below"].trace_id
    assert ids["b"].trace_id != ids["a"].trace_id
    assert len({context.span_id for context in ids.values()}) == 3


def test_what_is_not_data_is_replaced_and_fails_nobody() -> None:
    tracer = InMemoryTracer()
    with tracer.task_span("task", threading.Lock()) as task_span:
        task_span.log("client", object())
        task_span.log("number", 2**70)
        task_span.log("none", [float("nan"), float("inf"), -float("inf"), None, date(2024, 1, 2)])
        task_span.log("half", "\ud800")
        task_span.log("keys", {1: {2: 3}})
    (reported,) = exported(tracer)
    assert reported["attributes"]["input"] == {"$unstorable": "lock"}
    bodies = [event["body"] for event in reported["events"]]
    numbers = ["NaN", "Infinity", "-Infinity", None, "2024-01-02"]
    assert bodies == [{"$unstorable": "object"}, 2**70, numbers, "?", {"1": {"2": 3}}]


def test_an_exported_span_has_all_that_the_span_holds() -> None:
    tracer = InMemoryTracer()
    with tracer.task_span("answer", "Who?") as task_span:
        task_span.set(user="ann", input="mine")
        with task_span.span("ask", kind="llm", input=["Who?"], model="small") as ask:
            ask.set(output_tokens=2, type="chat", client=threading.Lock(), score=float("nan"))
            ask.output = {"text": "Jane"}
    reported = [each["attributes"] for each in exported(tracer)]
    assert reported == [
        {
            "type": "SPAN",
            "kind": "llm",
            "input": ["Who?"],
            "output": {"text": "Jane"},
            "model": "small",
            "output_tokens": 2,
            "attributes.type": "chat",
            "client": {"$unstorable": "lock"},
            "score": "NaN",
        },
        {"type": "TASK_SPAN", "input": "Who?", "output": None, "user": "ann", "attributes.input": "mine"},
    ]
    read = ExportedSpanList.model_validate(exported(tracer))
    assert [json.loads(each.attributes.model_dump_json()) for each in read.root] == reported


def test_numbers_that_are_none_are_reported_by_their_names(tmp_path: Path) -> None:
    file, memory, spans = FileTracer(tmp_path / "trace.jsonl"), InMemoryTracer(), io.StringIO()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=spans)))
    with CompositeTracer([file, memory, OpenTelemetryTracer(provider.get_tracer("test"))]).span("step") as step:
        step.log("scores", {"a": [float("nan"), None]})
    assert file.traces().entries[0].events[0].body == {"a": ["NaN", None]}
    assert '"NaN",' in "".join(drawn(memory))
    assert json.loads(spans.getvalue())["events"][0]["attributes"] == {"value": '{"a":["NaN",null]}'}


def test_an_open_span_is_reported_as_open_and_is_not_exported() -> None:
    tracer = InMemoryTracer()
    opened = tracer.span("step")
    assert drawn(tracer) == ["Trace", "└── step open"]
    with pytest.raises(RuntimeError, match="the span 'step' is still open"):
        tracer.export_for_viewing()
    with pytest.raises(OpenSpanError):
        opened.export_for_viewing()


def told_nobody() -> Tracer:
    return OpenTelemetryTracer(Nowhere())


KINDS = [
    InMemoryTracer,
    NoOpTracer,
    lambda: FileTracer(os.devnull),
    told_nobody,
    lambda: CompositeTracer([InMemoryTracer()]),
    lambda: CompositeTracer([NoOpTracer()]),
    lambda: CompositeTracer([NoOpTracer().span("above")]),
    lambda: Trace.start("answer").root,
]


@pytest.mark.parametrize("make", KINDS)
def test_a_closed_span_takes_nothing_more(make: Any) -> None:
    with make().task_span("task", 1) as task_span:
        pass
    for change in (
        lambda: task_span.log("late", 1),
        lambda: task_span.set(late=1),
        lambda: task_span.record_output(1),
        lambda: task_span.span("late"),
        lambda: task_span.task_span("late", 1),
    ):
        with pytest.raises(SpecError, match="'task': it is closed"):
            change()
    with pytest.raises(SpecError, match="'task' was already entered"), task_span:
        pass


class Asked(Task[str, str]):
    """A task that gives what its span holds."""

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        with task_span.span("ask", kind="llm", input=input, model="small") as ask:
            ask.set(tokens=2)
            ask.output = "Jane Austen"
        return f"{ask.input} {ask.output} ({ask.name}, {ask.kind}, {ask.attributes}, {ask.status})"


@pytest.mark.parametrize("make", KINDS)
def test_a_task_gives_the_same_with_every_tracer(make: Any) -> None:
    given = "Who? Jane Austen (ask, llm, {'model': 'small', 'tokens': 2}, ok)"
    assert Asked().run("Who?", make()) == given
    assert Asked().run_concurrently(["Who?"] * 2, make()) == [given] * 2


def test_what_stands_in_names_and_values_is_neither_markup_nor_html_nor_a_control_code() -> None:
    tracer = InMemoryTracer()
    with tracer.task_span("[bold]<script>\x1b[31m", "<img src=x>[red]") as task_span:
        task_span.log("[link=x]</pre>", "\x1b]0;title\x07")
    text = "\n".join(drawn(tracer, 100))
    assert "[bold]<script>\\x1b[31m" in text
    assert "[link=x]</pre>" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    page = tracer._repr_html_()
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("</pre>") == 1
    assert "&lt;img src=x&gt;[red]" in page
    assert tracer.entries[0]._repr_html_().startswith("<pre")
    assert "&lt;script&gt;" in Trace.start("<script>")._repr_html_()


def test_long_values_are_shown_whole() -> None:
    tracer = InMemoryTracer()
    with tracer.span("step") as step:
        step.log("long", "x" * 200)
    assert sum(line.count("x") for line in drawn(tracer, 50)) == 200


def test_a_deep_trace_is_drawn_and_exported() -> None:
    tracer = InMemoryTracer()
    spans = [tracer.span("0")]
    for depth in range(1, 3000):
        spans.append(spans[-1].span(str(depth)))
    for each in reversed(spans):
        each.end()
    assert [each.name for each in tracer.export_for_viewing()] == [str(depth) for depth in range(2999, -1, -1)]


@pytest.mark.slow
def test_a_thousand_threads_lose_nothing(tmp_path: Path) -> None:
    memory, file = InMemoryTracer(), FileTracer(tmp_path / "trace.jsonl")
    tracer = CompositeTracer([memory, file])
    shared = tracer.span("shared")
    start = threading.Barrier(1000)

    def work(number: int) -> None:
        start.wait()
        shared.log("shared", number)
        with shared.span("below") as below:
            below.log("below", number)
        with tracer.span("own") as own:
            own.log("own", number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.end()
    for found in (memory, file.traces()):
        logged = Counter((event.message, event.body) for each in found.export_for_viewing() for event in each.events)
        assert logged == Counter((name, number) for name in ("shared", "below", "own") for number in range(1000))
        assert Counter(each.name for each in found.export_for_viewing()) == {"shared": 1, "below": 1000, "own": 1000}
        assert len({each.context.span_id for each in found.export_for_viewing()}) == 2001


# --- failures ---


def fail(tracer: Tracer) -> None:
    with pytest.raises(ValueError, match="bad <b>"):
        Answer().run(Question(q=-1), tracer)


def test_an_exception_is_an_entry_with_its_error_and_no_stack_trace() -> None:
    tracer = InMemoryTracer()
    fail(tracer)
    (reported,) = tracer.entries
    assert isinstance(reported.entries[1], LogEntry)
    assert reported.entries[1].message == "bad <b>"
    assert reported.entries[1].value == ErrorValue(error_type="ValueError", message="bad <b>", stack_trace="")
    assert (reported.status_code, reported.status, reported.output) == (SpanStatus.ERROR, "error", None)


def test_stack_traces_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    memory, file = InMemoryTracer(stack_traces=True), FileTracer(tmp_path / "asked.jsonl", stack_traces=True)
    shared = FileTracer(tmp_path / "shared.jsonl")
    fail(CompositeTracer([memory, file, shared]))
    for found in (memory, file.traces()):
        body = found.export_for_viewing()[-1].events[0].body
        assert "in do_run" in body.stack_trace
        assert body.stack_trace.endswith("ValueError: bad <b>\n")
    assert shared.export_for_viewing()[-1].events[0].body.stack_trace == ""
    assert "do_run" not in (tmp_path / "shared.jsonl").read_text()


class _Interrupting(Watcher):
    """Logs as another thread may: after the event of a failure was added, and before others are told of it."""

    gives_ids = True  # so that it comes first

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        span._events.append(("late", event[1], 1))


def test_an_exception_stays_what_it_was_where_another_thread_logs_meanwhile(tmp_path: Path) -> None:
    class First(InMemoryTracer):
        @property
        def watchers(self) -> Any:
            return (_Interrupting(), *super().watchers)

    memory, top = First(), InMemoryTracer().span("top")
    others = [FileTracer(tmp_path / "t"), OpenTelemetryTracer(TracerProvider().get_tracer("t")), top]
    with pytest.raises(KeyError, match="k"), CompositeTracer([memory, *others]).span("fails"):
        raise KeyError("k")
    assert [entry.message for entry in memory.entries[0].entries if isinstance(entry, LogEntry)] == ["'k'"]


class _Overtaken(datetime):
    """A time that is read while another thread ends the span, too."""

    span: Span

    def __sub__(self, other: Any) -> Any:
        thread = threading.Thread(target=self.span.end)
        thread.start()
        thread.join()
        return super().__sub__(other)


def test_of_two_threads_that_end_a_span_one_does(tmp_path: Path) -> None:
    otel = OpenTelemetryTracer(TracerProvider().get_tracer("t"))
    span = CompositeTracer([otel, FileTracer(tmp_path / "trace.jsonl")]).span("step")
    time = _Overtaken(2024, 1, 1, tzinfo=UTC)
    time.span = span
    span.end(time)
    assert len((tmp_path / "trace.jsonl").read_text().splitlines()) == 2
    assert span.end_ns == 1_704_067_200 * 10**9


def test_a_status_may_be_set_by_the_task() -> None:
    tracer = InMemoryTracer()
    with tracer.span("step") as step:
        step.status_code = SpanStatus.ERROR
    assert tracer.export_for_viewing()[0].status is SpanStatus.ERROR


# --- no tracing ---


def test_a_tracer_that_does_nothing_is_a_span_too() -> None:
    tracer = NoOpTracer()
    assert Answer().run(Question(q=1), tracer) == "done"
    assert Several().run(3, tracer) == ["done"] * 3
    with tracer.span("a") as a, a.task_span("b", 1) as b:
        b.record_output(1)
    assert (tracer.id(), list(tracer.export_for_viewing())) == ("NoOp", [])
    assert tracer.context == tracer.context
    assert tracer.span("a").context == b.context == tracer.context
    reported = Context(trace_id=uuid4(), span_id=uuid4())
    assert NoOpTracer(context=reported).context == NoOpTracer(context=reported).span("a").context == reported


# --- files ---


def test_a_file_tells_what_memory_tells(tmp_path: Path) -> None:
    memory, file = InMemoryTracer(), FileTracer(tmp_path / "deep" / "trace.jsonl")
    tracer = CompositeTracer([memory, file])
    Several().run(2, tracer)
    fail(tracer)
    with tracer.span("ask", kind="llm", input=["Who?"], model="small") as ask:
        ask.set(output_tokens=3)
        ask.output = {"text": "Jane"}
    assert sorted(exported(file), key=by_id) == sorted(exported(memory), key=by_id)  # threads open in any order
    assert shape(file.traces())[2:] == [("ask", "llm", "ok", ["Who?"], {"text": "Jane"}, [])]
    assert file.traces().entries[2].attributes == {"model": "small", "output_tokens": 3}
    assert file.traces().entries[2].kind == "llm"
    chosen = file.traces(str(memory.entries[1].context.trace_id))
    assert [entry.name for entry in chosen.entries] == ["Answer"]


def test_a_file_converted_for_viewing_is_one_list_of_spans(tmp_path: Path) -> None:
    tracer = FileTracer(tmp_path / "trace.jsonl")
    at_set_times(tracer)
    tracer.convert_file_for_viewing(tmp_path / "spans.json")
    spans = json.loads((tmp_path / "spans.json").read_text())
    assert [ExportedSpan.model_validate(each).name for each in spans] == ["step", "Root"]
    assert spans == exported(tracer)


def test_the_file_is_closed_when_no_span_is_open(tmp_path: Path) -> None:
    tracer = FileTracer(tmp_path / "trace.jsonl")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with tracer.span("a") as a, a.span("b"):
            pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TracerLogEntryFailed, match=r"could not be written: .*File exists"):
        FileTracer(tmp_path / "file" / "trace.jsonl").span("step")


CRASH = """
import sys, time
from evaluand.trace.tracers.file import FileTracer
with FileTracer(sys.argv[1]).task_span("answer", {"q": 1}) as task_span:
    with task_span.span("done"):
        task_span.log("hits", 3)
    with task_span.span("under way") as step:
        step.log("chunk", "…")
        print("ready", flush=True)
        time.sleep(60)
"""


def test_the_trace_of_a_process_that_was_killed_opens(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with open_process(sys.executable, "-c", CRASH, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
    assert shape(FileTracer(path).traces()) == [
        (
            "answer",
            "task",
            "unset",
            {"q": 1},
            None,
            [
                ("done", "span", "ok", None, None, []),
                ("hits", 3),
                ("under way", "span", "unset", None, None, [("chunk", "…")]),
            ],
        )
    ]
    assert drawn(FileTracer(path).traces())[1] == "└── answer open"
    with path.open("ab") as file:
        file.write(b'{"trace_id":"half a li')
    with FileTracer(path).span("after"):
        pass
    with pytest.warns(EvaluandWarning, match=r"trace.jsonl:7: the line is incomplete"):
        assert [entry.name for entry in read_traces(path).entries] == ["answer", "after"]


@pytest.mark.parametrize("cut", [slice(40, None), slice(None, 40)])
def test_a_file_whose_first_line_was_cut_opens_with_what_is_left(tmp_path: Path, cut: slice) -> None:
    path = tmp_path / "trace.jsonl"
    with FileTracer(path).span("first") as first:
        first.log("a", 1)
        with first.span("below"):
            pass
    first_line, *others = path.read_text().splitlines()
    path.write_text("\n".join([first_line[cut], *others]) + "\n")
    with pytest.warns(EvaluandWarning) as warned:
        assert [entry.name for entry in read_traces(path).entries] == ["below"]
    reported = [str(warning.message).partition("trace.jsonl:")[2] for warning in warned]
    assert sorted(each.partition(":")[0] for each in reported) == ["1", "2", "5"]
    assert sum("belongs to a span whose first line is incomplete" in each for each in reported) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,age\n", "trace.jsonl:1: not a line of a trace, which is JSON"),
        ('{"a": 1}\n', "trace.jsonl:1: not a line of a trace: 'entry_type' is missing"),
        ('{"trace_id": "x", "entry_type": "Start", "entry": {}}\n', "the entry_type 'Start' is unknown"),
        ('{"trace_id": "x", "entry_type": "EndSpan", "entry": {"uuid": "y"}}\n', "'y' is missing"),
    ],
)
def test_another_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_traces(path)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_traces(tmp_path / "none")


def write_spans(tracer: FileTracer) -> None:
    for number in range(200):
        with tracer.span("child") as step:
            step.log("n", number)


def test_forked_processes_write_into_one_file(tmp_path: Path) -> None:
    tracer = FileTracer(tmp_path / "trace.jsonl")
    with tracer.span("parent") as parent:
        child = start_fork(lambda: write_spans(tracer))
        for number in range(200):
            parent.log("n", number)
        assert end_fork(child) == 0
    names = Counter(entry.name for entry in tracer.traces().entries)
    assert names == {"parent": 1, "child": 200}


# --- several at once ---


def test_spans_have_the_same_ids_in_all_tracers(tmp_path: Path) -> None:
    first, second, file = InMemoryTracer(), InMemoryTracer(), FileTracer(tmp_path / "trace.jsonl")
    Several().run(2, CompositeTracer([NoOpTracer(), first, CompositeTracer([second, file])]))
    reported = [sorted(exported(tracer), key=by_id) for tracer in (first, second, file)]  # threads open in any order
    assert reported[0] == reported[1] == reported[2]
    assert shape(first) == shape(second)


class Asking(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        with task_span.span("ask", kind="llm", input=[input], model="small") as ask:
            ask.set(output_tokens=3)
            ask.output = "Jane"
        return "Jane"


@pytest.mark.parametrize(
    "make", [InMemoryTracer, lambda: OpenTelemetryTracer(TracerProvider().get_tracer("t"))], ids=["memory", "otel"]
)
def test_a_trace_kept_beside_another_tracer_has_all_that_that_has(make: Any) -> None:
    texts: list[bytes] = []
    memory = InMemoryTracer()
    stored = ExampleTracer(texts.append, lambda: map(orjson.loads, texts))
    Asking().run("q", CompositeTracer([make(), memory, stored]))
    assert exported(restore_traces(orjson.loads(text) for text in texts)) == exported(memory)
    assert stored.export_for_viewing() == memory.export_for_viewing()


def test_a_composite_of_no_tracer_is_refused() -> None:
    with pytest.raises(SpecError, match="at least one tracer"):
        CompositeTracer([])


def test_a_composite_may_hold_an_open_span() -> None:
    trace, memory = Trace.start("run", "q"), InMemoryTracer()
    with trace.root as root:
        tracer = CompositeTracer([root, memory])
        with tracer.span("ask", kind="llm", model="m") as ask:
            ask.log("chunk", 1)
            ask.set(output_tokens=3)
            ask.output = "Jane"
        fail(tracer)
    assert trace.spans[1].output == "Jane"
    assert [(s.name, s.kind, s.parent, s.status) for s in trace.spans[1:]] == [
        ("ask", "llm", 0, "ok"),
        ("Answer", "task", 0, "error"),
        ("step", "span", 2, "ok"),
    ]
    assert trace.spans[1].attributes == {"model": "m", "output_tokens": 3}
    assert trace.spans[2].events[0].body == {"type": "ValueError", "message": "bad <b>"}
    assert [entry.name for entry in memory.entries] == ["ask", "Answer"]


class Listed(Tracer):
    """A tracer of a user's own that is no more than the protocol asks for."""

    def __init__(self, reported: list[Any], status_code: SpanStatus = SpanStatus.OK) -> None:
        self.reported, self.status_code = reported, status_code

    def span(self, name: str, timestamp: datetime | None = None) -> Any:  # type: ignore[override]
        self.reported.append(("span", name))
        return self

    def task_span(self, task_name: str, input: Any, timestamp: datetime | None = None) -> Any:
        self.reported.append(("task", task_name, input))
        return self

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        self.reported.append(("log", message, value))

    def record_output(self, output: Any) -> None:
        self.reported.append(("output", output))

    def end(self, timestamp: datetime | None = None) -> None:
        self.reported.append(("end", self.status_code.value))


def test_a_composite_may_hold_a_tracer_of_the_users_own() -> None:
    reported: list[Any] = []
    tracer = CompositeTracer([Listed(reported), InMemoryTracer()])
    Answer().run(Question(q=1), tracer)
    note = ("log", "note", [1, "two", None])
    begun = [("task", "Answer", Question(q=1)), ("span", "step"), note, ("end", "OK")]
    assert reported == [*begun, ("output", "done"), ("end", "OK")]
    reported.clear()
    fail(tracer)
    error = ErrorValue(error_type="ValueError", message="bad <b>", stack_trace="")
    assert reported[-2:] == [("log", "bad <b>", error), ("end", "ERROR")]


# --- the task of a run ---


class OwnSpan(Tracer):
    """A span of a user's own."""

    def __init__(self, made: WeakSet[OwnSpan], name: str = "", above: str = "") -> None:
        self.made, self.name, self.above = made, name, above
        made.add(self)

    def span(self, name: str, timestamp: datetime | None = None) -> Any:  # type: ignore[override]
        return OwnSpan(self.made, name, self.name)

    def end(self, timestamp: datetime | None = None) -> None:
        pass


def test_a_composite_keeps_no_closed_spans_of_a_tracer_of_the_users_own() -> None:
    made: WeakSet[OwnSpan] = WeakSet()
    own = OwnSpan(made)
    with CompositeTracer([own]).span("root") as root:
        for _ in range(50):
            with root.span("step"):
                pass
        closed = root.span("closed")
        closed.end()
        gc.collect()
        assert sorted(each.name for each in made) == ["", "closed", "root"]


def test_a_tracer_that_is_given_twice_is_reported_once(tmp_path: Path) -> None:
    reported: list[Any] = []
    memory, file, own = InMemoryTracer(), FileTracer(tmp_path / "trace.jsonl"), Listed(reported)
    with CompositeTracer([CompositeTracer([memory, own]), memory, file, own, file]).span("step"):
        pass
    assert [entry.name for entry in memory.entries] == ["step"]
    assert reported == [("span", "step"), ("end", "OK")]
    assert len(lines(tmp_path / "trace.jsonl")) == 2


def test_a_task_is_traced_alike_by_a_run_and_by_a_tracer() -> None:
    trace, memory = Trace.start("Several", 2), InMemoryTracer()
    with trace.root as root:
        root.record_output(Several().do_run(2, root))
    Several().run(2, memory)
    native = [(s.name, s.kind, s.status) for s in trace.spans]
    assert Counter(native) == Counter((s.name, s.kind, s.status) for s in memory.entries[0]._trace.spans)
    reported = [(each.name, each.attributes, each.status) for each in memory.export_for_viewing()]
    for _, attributes, _ in reported:
        if isinstance(attributes, TaskSpanAttributes) and isinstance(attributes.input, Question):
            attributes.input = attributes.input.model_dump()
    assert Counter(map(repr, reported)) == Counter(
        repr((each.name, each.attributes, each.status)) for each in trace.export_for_viewing()
    )


def test_library_code_finds_the_span_of_the_tracer() -> None:
    tracer = InMemoryTracer()
    with tracer.task_span("answer", 1) as task_span:
        with span("embed", model="small"):
            assert isinstance(current_span(), InMemorySpan)
        assert current_span() is task_span
    assert [entry.name for entry in tracer.entries[0].entries if isinstance(entry, InMemorySpan)] == ["embed"]


def test_a_tracer_says_only_which_trace_its_spans_begin() -> None:
    class Collecting(RootTracer):
        def __init__(self) -> None:
            self.traces: list[Trace] = []

        def new_trace(self) -> Trace:
            self.traces.append(Trace())
            return self.traces[-1]

    tracer = Collecting()
    Answer().run(Question(q=1), tracer)
    with tracer.span(name="plain", k=1) as plain:
        assert plain.parent is None
    assert [each.root.name for each in tracer.traces] == ["Answer", "plain"]
    assert [each.root.kind for each in tracer.traces] == ["task", "span"]
    assert tracer.traces[1].root is plain
    assert plain.attributes == {"k": 1}


SDK_NAMES = [
    "CompositeTracer",
    "Context",
    "ErrorValue",
    "Event",
    "ExportedSpan",
    "ExportedSpanList",
    "FileTracer",
    "InMemorySpan",
    "InMemoryTaskSpan",
    "InMemoryTracer",
    "LogEntry",
    "NoOpTracer",
    "OpenTelemetryTracer",
    "PydanticSerializable",
    "Span",
    "SpanAttributes",
    "SpanStatus",
    "SpanType",
    "TaskSpan",
    "TaskSpanAttributes",
    "Tracer",
    "TracerLogEntryFailed",
    "utc_now",
]


def test_the_names_of_the_sdk_are_there() -> None:
    assert set(SDK_NAMES) <= set(dir(pharia))
    assert all(getattr(pharia, name) for name in SDK_NAMES)
    assert pharia.utc_now().tzinfo is UTC
    with InMemoryTracer().task_span("a", 1) as task_span, task_span.span("b") as step:
        assert isinstance(task_span, pharia.TaskSpan)
        assert isinstance(step, pharia.Span)
        assert not isinstance(step, pharia.TaskSpan)


def test_a_task_may_call_an_attribute_of_its_own_name() -> None:
    class Named(pharia.Task[int, int]):
        def __init__(self) -> None:
            self.name = "named"

        def do_run(self, input: int, task_span: TaskSpan) -> int:
            return input

    tracer = InMemoryTracer()
    Named().run(1, tracer)
    assert tracer.entries[0].name == Named().name == "named"


class Printed(pharia.TaskSpan):
    """A tracer and its spans for a backend of a user's own, derived as the SDK has it."""

    def __init__(self, reported: list[Any], context: pharia.Context | None = None) -> None:
        super().__init__(context)
        self.reported = reported

    def span(self, name: str, timestamp: datetime | None = None) -> Any:  # type: ignore[override]
        self.reported.append(name)
        return Printed(self.reported, self.context)

    def task_span(self, task_name: str, input: Any, timestamp: datetime | None = None) -> Any:
        return self.span(f"{task_name}({input})")

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        self.reported.append((message, value))

    def record_output(self, output: Any) -> None:
        self.reported.append(output)

    def end(self, timestamp: datetime | None = None) -> None:
        super().end(timestamp)
        self.reported.append(self.status_code.value)


def test_spans_for_another_backend_are_derived_from_those_of_the_sdk() -> None:
    reported: list[Any] = []
    tracer = Printed(reported)
    assert Answer().run(Question(q=1), tracer) == "done"
    assert reported == ["Answer(q=1)", "step", ("note", [1, "two", None]), "OK", "done", "OK"]
    reported.clear()
    fail(tracer)
    assert reported[-2:] == [
        ("bad <b>", ErrorValue(error_type="ValueError", message="bad <b>", stack_trace="")),
        "ERROR",
    ]
    below = tracer.span("a")
    assert below.context.trace_id == tracer.context.trace_id
    assert isinstance(below, pharia.Span)
    below.end()
    with pytest.raises(SpecError, match="closed"), below:
        pass


# --- OpenTelemetry ---


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    reported = tmp_path / "received.jsonl"
    with open_process(sys.executable, RECEIVER, reported) as process:
        assert process.stdout is not None
        yield Receiver(int(process.stdout.readline()), reported)


class Receiver:
    """A process that takes OTLP over HTTP and writes what it was sent into a file, one JSON document per request."""

    def __init__(self, port: int, reported: Path) -> None:
        self.reported = reported
        self.endpoint = f"http://127.0.0.1:{port}/v1/traces"

    def provider(self) -> Any:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=self.endpoint)))
        return provider

    def spans(self) -> list[dict[str, Any]]:
        documents = [orjson.loads(line) for line in self.reported.read_bytes().splitlines()]
        return [
            each
            for document in documents
            for resource in document["resourceSpans"]
            for scope in resource["scopeSpans"]
            for each in scope["spans"]
        ]


def attributes(reported: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in reported.get("attributes", ())}


def test_concurrent_calls_are_received_as_one_trace_with_one_root_and_right_parents(
    receiver: Receiver, tmp_path: Path
) -> None:
    provider, memory = receiver.provider(), InMemoryTracer()
    tracer = CompositeTracer([memory, OpenTelemetryTracer(provider.get_tracer("test"))])
    assert Answer().run_concurrently([Question(q=q) for q in range(3)], tracer) == ["done"] * 3
    provider.shutdown()
    spans = receiver.spans()
    assert Counter(each["name"] for each in spans) == {"Concurrent Answer tasks": 1, "Answer": 3, "step": 3}
    assert {each["traceId"] for each in spans} == {memory.entries[0].context.trace_id.hex}
    by_id = {each["spanId"]: each for each in spans}
    parents = [(each["name"], by_id[each["parentSpanId"]]["name"]) for each in spans if each.get("parentSpanId")]
    assert Counter(parents) == {("Answer", "Concurrent Answer tasks"): 3, ("step", "Answer"): 3}
    assert len({each["parentSpanId"] for each in spans if each["name"] == "step"}) == 3
    ids = {each.context.span_id.hex[16:] for each in memory.export_for_viewing() if each.parent_id}
    assert ids == {each["spanId"] for each in spans if each.get("parentSpanId")}
    assert {each["status"]["code"] for each in spans} == {"STATUS_CODE_OK"}
    (trace,) = read_spans(receiver.reported)
    native = [(s.name, s.kind, s.input, s.output) for s in trace.spans if s.kind == "task"]
    assert sorted(native, key=str) == [("Answer", "task", {"q": q}, "done") for q in range(3)]


def test_async_calls_are_received_as_one_trace_too(receiver: Receiver) -> None:
    provider = receiver.provider()
    tracer = OpenTelemetryTracer(provider.get_tracer("test"))

    class Later(Task[int, int]):
        async def do_run(self, input: int, task_span: TaskSpan) -> int:  # type: ignore[override]
            with task_span.span("wait"):
                await asyncio.sleep(0)
            with span("again"):
                await asyncio.sleep(0)
            return input

    outputs: Any = Later().run_concurrently(range(3), tracer)
    assert asyncio.run(outputs) == [0, 1, 2]
    provider.shutdown()
    by_id = {each["spanId"]: each for each in receiver.spans()}
    parents = [(s["name"], by_id[s["parentSpanId"]]["name"]) for s in by_id.values() if s.get("parentSpanId")]
    assert Counter(parents) == {("Later", "Concurrent Later tasks"): 3, ("wait", "Later"): 3, ("again", "Later"): 3}
    assert len({each["traceId"] for each in by_id.values()}) == 1


def test_names_are_those_of_genai_and_openinference(receiver: Receiver) -> None:
    provider = receiver.provider()
    tracer = OpenTelemetryTracer(provider.get_tracer("test"))
    with tracer.span("ask", kind="llm", input="hi", model="small", temperature=0.5) as ask:
        ask.set(input_tokens=2, output_tokens=3, hits={"n": 1}, words=["a", "b"])
        ask.log("chunk", {"text": "he"})
        ask.output = {"text": "hello"}
    provider.shutdown()
    (reported,) = receiver.spans()
    assert reported["kind"] == "SPAN_KIND_CLIENT"
    words = {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}
    assert attributes(reported) == {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "llm.model_name": "small",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.usage.input_tokens": "2",
        "gen_ai.usage.output_tokens": "3",
        "llm.token_count.prompt": "2",
        "llm.token_count.completion": "3",
        "llm.token_count.total": "5",
        "hits": '{"n":1}',
        "words": words,
        "input.value": "hi",
        "input.mime_type": "text/plain",
        "output.value": '{"text":"hello"}',
        "output.mime_type": "application/json",
        "type": "SPAN",
    }
    (event,) = reported["events"]
    assert (event["name"], attributes(event)) == ("chunk", {"value": '{"text":"he"}'})


@pytest.mark.parametrize("asked", [False, True])
def test_an_exception_is_received_as_an_exception_event(receiver: Receiver, asked: bool) -> None:
    provider = receiver.provider()
    fail(OpenTelemetryTracer(provider.get_tracer("test"), stack_traces=asked))
    provider.shutdown()
    (reported,) = (each for each in receiver.spans() if each["name"] == "Answer")
    assert reported["status"] == {"code": "STATUS_CODE_ERROR", "message": "bad <b>"}
    (event,) = reported["events"]
    assert event["name"] == "exception"
    error = attributes(event)
    assert (error["exception.type"], error["exception.message"]) == ("ValueError", "bad <b>")
    assert ("exception.stacktrace" in error) is asked


def test_spans_of_instrumented_libraries_stand_below_the_entered_span(receiver: Receiver) -> None:
    provider = receiver.provider()
    library = provider.get_tracer("library")
    with (
        library.start_as_current_span("request"),
        OpenTelemetryTracer(provider.get_tracer("test")).span("step") as step,
    ):
        library.start_span("call").end()
        with step.span("inner"):
            pass
        library.start_span("again").end()
    library.start_span("after").end()
    provider.shutdown()
    by_id = {each["spanId"]: each for each in receiver.spans()}
    parents = {s["name"]: by_id.get(s.get("parentSpanId"), {}).get("name") for s in by_id.values()}
    assert parents == {
        "request": None,
        "step": "request",
        "call": "step",
        "inner": "step",
        "again": "step",
        "after": None,
    }


class Slow(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        task_span.log("begun", input)
        if input == "a":
            BOTH.wait(PATIENCE)
        task_span.log("done", input)
        return input.upper()


BOTH = threading.Barrier(2)


@pytest.mark.parametrize("at_once", [False, True])
def test_traces_below_one_span_of_opentelemetry_stay_apart(tmp_path: Path, at_once: bool) -> None:
    provider, sent = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(sent))
    otel = provider.get_tracer("test")
    memory, file = InMemoryTracer(), FileTracer(tmp_path / "trace.jsonl")
    tracer = CompositeTracer([OpenTelemetryTracer(otel), memory, file])
    with otel.start_as_current_span("request"):
        if at_once:
            thread = threading.Thread(target=copy_context().run, args=(Slow().run, "a", tracer))
            thread.start()
            Slow().run("b", tracer)
            BOTH.wait(PATIENCE)
            thread.join()
        else:
            for text in ("b", "c"):
                Slow().run(text, tracer)
    asked = {"a", "b"} if at_once else {"b", "c"}
    reported = {(entry.input, entry.output, *(each.value for each in entry.entries)) for entry in file.traces().entries}
    assert reported == {(text, text.upper(), text, text) for text in asked}
    assert len({entry._trace.id for entry in memory.entries}) == 1  # that of the request
    ends = {span.context.span_id.int & 2**64 - 1 for span in memory.export_for_viewing()}
    assert ends == {span.context.span_id for span in sent.get_finished_spans() if span.name == "Slow"}


def test_its_tracer_forgets_what_is_closed() -> None:
    tracer = OpenTelemetryTracer(TracerProvider().get_tracer("test"))
    with tracer.span("root") as root:
        for _ in range(5):
            with root.span("child") as child:
                child.end()
        (mirror,) = root._trace._watchers
        assert (len(mirror._spans), len(mirror._contexts), len(mirror._outer)) == (1, 1, 1)  # type: ignore[attr-defined]


def test_its_tracer_keeps_no_spans() -> None:
    tracer = OpenTelemetryTracer(Nowhere())
    Answer().run(Question(q=1), tracer)
    with pytest.raises(SpecError, match="OpenTelemetryTracer stores no spans"):
        tracer.export_for_viewing()


def test_without_opentelemetry_its_tracer_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from evaluand.interop.pharia import OpenTelemetryTracer\n"
        "OpenTelemetryTracer(None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(
        "SpecError: OpenTelemetryTracer needs OpenTelemetry: pip install 'evaluand[otel]'"
    )


# --- spans of other systems ---


def reported(name: str, id: str, parent: str = "", start: int = 0, **more: Any) -> dict[str, Any]:
    span = {"traceId": "0a" * 16, "spanId": id * 8, "name": name, "startTimeUnixNano": str(start)}
    return span | {"parentSpanId": parent * 8, "endTimeUnixNano": str(start + 1000)} | more


def attribute(key: str, **value: Any) -> dict[str, Any]:
    return {"key": key, "value": value}


def test_otlp_becomes_a_native_trace() -> None:
    events = [
        {"timeUnixNano": "2500", "name": "hits", "attributes": [attribute("n", intValue="3")]},
        {
            "timeUnixNano": "2600",
            "name": "exception",
            "attributes": [
                attribute("exception.type", stringValue="KeyError"),
                attribute("exception.message", stringValue="'k'"),
                attribute("exception.stacktrace", stringValue="secret path"),
            ],
        },
    ]
    ask = reported(
        "ask",
        "02",
        "01",
        2000,
        attributes=[
            attribute("gen_ai.operation.name", stringValue="chat"),
            attribute("gen_ai.request.model", stringValue="small"),
            attribute("llm.token_count.prompt", intValue="7"),
            attribute("input.value", stringValue='{"q": 1}'),
            attribute("input.mime_type", stringValue="application/json"),
            attribute("output.value", stringValue="{no json"),
            attribute("tags", arrayValue={"values": [{"stringValue": "x"}, {"doubleValue": 0.5}]}),
            attribute("more", kvlistValue={"values": [attribute("deep", boolValue=True)]}),
        ],
        events=events,
        status={"code": 2},
    )
    spans = [
        ask,
        reported("answer", "01", start=1000, attributes=[attribute("openinference.span.kind", stringValue="AGENT")]),
    ]
    (trace,) = traces_of([{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}])
    root, below = trace.spans
    assert (trace.id.hex, below.id.hex[16:]) == ("0a" * 16, "02" * 8)
    assert (root.name, root.kind, root.status, root.start_ns, root.end_ns) == ("answer", "agent", "ok", 1000, 2000)
    assert (below.parent, below.kind, below.status) == (0, "llm", "error")
    assert (below.input, below.output) == ({"q": 1}, "{no json")
    assert below.attributes == {"model": "small", "input_tokens": 7, "tags": ["x", 0.5], "more": {"deep": True}}
    assert [(event.name, event.time_ns, event.body) for event in below.events] == [
        ("hits", 2500, {"n": 3}),
        ("exception", 2600, {"type": "KeyError", "message": "'k'"}),
    ]
    assert trace.tree().splitlines()[1] == "└─ ask (llm) 1 µs error: KeyError: 'k'"
    (kept,) = traces_of(spans, stack_traces=True)
    assert kept.spans[1].events[1].body["stack_trace"] == "secret path"


def test_spans_of_openinference_become_a_native_trace() -> None:
    span = {
        "name": "search",
        "context": {"trace_id": "0a" * 16, "span_id": "01" * 8},
        "span_kind": "RETRIEVER",
        "parent_id": None,
        "start_time": "2024-01-01T00:00:00+00:00",
        "end_time": "2024-01-01T00:00:01.5Z",
        "status_code": "ERROR",
        "status_message": "no index",
        "attributes": {"input": {"value": "query"}, "retrieval": {"documents": [{"document": {"id": "d"}}]}},
        "events": [],
    }
    (trace,) = traces_of([[span]])
    assert (trace.root.kind, trace.root.status, trace.root.input) == ("retriever", "error", "query")
    assert trace.root.attributes == {"documents": [{"id": "d"}], "status_message": "no index"}
    assert trace.root.end_ns is not None
    assert trace.root.end_ns - trace.root.start_ns == 1_500_000_000


def test_documents_of_openinference_are_the_output_of_their_retriever() -> None:
    flat = [
        attribute("output.value", stringValue="two"),
        attribute("retrieval.documents.10.document.content", stringValue="eleventh"),
        attribute("retrieval.documents.1.document.content", stringValue="second"),
        attribute("retrieval.documents.1.document.id", stringValue="b"),
        attribute("retrieval.documents.1.document.score", doubleValue=0.5),
        attribute("retrieval.documents.1.document.metadata", stringValue='{"source": "x"}'),
        attribute("retrieval.documents.x", stringValue="no document"),
    ]
    nested = {"document": {"content": "second", "id": "b", "score": 0.5, "metadata": {"source": "x"}}}
    dotted = {f"document.{name}": value for name, value in nested["document"].items()}
    told_of = {"id": "b", "score": 0.5, "metadata": {"source": "x"}}
    (trace,) = traces_of([reported("search", "01", attributes=flat)])
    assert trace.root.output == ["second", "eleventh"]
    assert trace.root.attributes == {
        "retrieval.documents.x": "no document",
        "output.value": "two",
        "documents": [told_of, {}],
    }
    for listed in (nested, dotted):
        _, _, gave, attributes = read_attributes("search", {"retrieval.documents": [listed]})
        assert (gave, attributes) == (["second"], {"documents": [told_of]})


def test_spans_whose_parents_are_not_there_are_counted() -> None:
    spans = [reported("a", "01"), reported("b", "02", "09"), reported("c", "03", "08") | {"traceId": "0b" * 16}]
    with pytest.warns(EvaluandWarning, match=r"^spans: 2 of 3 spans have no parent in the input .*: \['b', 'c'\]$"):
        assert len(traces_of(spans)) == 2


def test_spans_as_the_sdk_prints_them_become_a_native_trace(tmp_path: Path) -> None:
    provider, spans, memory = TracerProvider(), InMemorySpanExporter(), InMemoryTracer()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    tracer = CompositeTracer([memory, OpenTelemetryTracer(provider.get_tracer("test"))])
    Several().run(2, tracer)
    fail(tracer)
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(span.to_json(indent=None) for span in spans.get_finished_spans()) + "\n")
    traces = read_spans(path)
    assert len(traces) == 2
    for trace, entry in zip(traces, memory.entries, strict=True):
        of = {s.id: (s.name, s.kind, s.status, s.parent_id, s.output) for s in entry._trace.spans}
        assert {s.id: (s.name, s.kind, s.status, s.parent_id, s.output) for s in trace.spans} == of
        printed = [event for s in trace.spans if s.kind == "task" for event in s.events]
        logged = [event for s in entry._trace.spans if s.kind == "task" for event in s.events]
        assert [event[::2] for event in printed] == [event[::2] for event in logged]
        for event, original in zip(printed, logged, strict=True):  # the SDK prints times by way of a float
            assert abs(event.time_ns - original.time_ns // 1000 * 1000) <= 1000


def test_spans_without_a_common_root_get_one() -> None:
    with pytest.warns(
        EvaluandWarning, match="1 of 2 spans has no parent in the input and is placed at the top of its trace"
    ):
        (trace,) = traces_of(
            [reported("b", "02", "09", 2000), reported("a", "01", start=1000, status={"code": "STATUS_CODE_ERROR"})]
        )
    assert [(s.name, s.parent) for s in trace.spans] == [("trace", None), ("a", 0), ("b", 0)]
    assert (trace.root.start_ns, trace.root.end_ns, trace.root.status) == (1000, 3000, "error")


def test_a_span_whose_parent_began_later_still_stands_below_it() -> None:
    (trace,) = traces_of([reported("child", "02", "01", 1000), reported("parent", "01", start=2000)])
    assert [(s.name, s.parent) for s in trace.spans] == [("parent", None), ("child", 0)]


def test_ids_in_base64_are_those_in_hexadecimal_digits() -> None:
    (trace,) = traces_of([reported("a", "01") | {"traceId": "CgoKCgoKCgoKCgoKCgoKCg==", "spanId": "AQEBAQEBAQE="}])
    assert trace.id.hex == "0a" * 16


def test_traces_stand_in_the_order_in_which_they_begin() -> None:
    later = reported("later", "01", start=2000) | {"traceId": "0b" * 16}
    assert [trace.root.name for trace in traces_of([later, reported("first", "01")])] == ["first", "later"]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([{"name": "x"}], "span 'x': not a span: 'context' is missing"),
        ([reported("x", "zz")], "span 'x': not a span"),
        ([3], "spans: not a span"),
        ([reported("a", "01", "02"), reported("b", "02", "01")], "the spans 'a', 'b' are each other's parents"),
        ([{"resourceSpans": [1]}], "spans: not a span: it is an int"),
        ([{"resourceSpans": [{"scopeSpans": 5}]}], "spans: not a span: it is an int"),
        ([reported("a", "01") | {"traceId": "0a" * 20}], "a trace id needs 16 bytes and a span id 8"),
        ([reported("a", "01") | {"spanId": "0b" * 30}], "a trace id needs 16 bytes and a span id 8"),
        ([reported("a", "01") | {"spanId": "-1"}], "a trace id needs 16 bytes and a span id 8"),
        ([reported("a", "01") | {"endTimeUnixNano": "-5"}], "its times must lie between 1970 and 2262"),
        ([reported("a", "01") | {"startTimeUnixNano": float("inf")}], "span 'a': not a span: .*infinity"),
        ([{"entry_type": "StartTask"}], r"read its file with FileTracer\(path\)\.traces\(\)"),
    ],
)
def test_what_is_no_span_is_refused(spans: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        traces_of(spans)


@pytest.mark.parametrize("spans", [None, [{"scopeSpans": None}], [{"resource": {}}, {"scopeSpans": [{"scope": {}}]}]])
def test_documents_may_hold_nothing(spans: Any) -> None:
    assert traces_of([{"resourceSpans": spans}]) == []


def test_good_traces_are_read_beside_what_is_none() -> None:
    other = {"traceId": "0b" * 16}
    spans = [reported("good", "01"), reported("x", "02", "03") | other, reported("y", "03", "02") | other]
    with pytest.warns(EvaluandWarning, match="^spans: the spans 'x', 'y' are each other's parents; left out$"):
        assert [trace.root.name for trace in traces_of(spans)] == ["good"]
    with pytest.warns(EvaluandWarning, match=r"span 'z': not a span: .*; left out \(and 1 more such faults\)$"):
        assert [trace.root.name for trace in traces_of([{"name": "z"}, *spans])] == ["good"]


def test_an_end_before_the_start_is_reported_in_words() -> None:
    (trace,) = traces_of([reported("a", "01", start=8_000_000) | {"endTimeUnixNano": "1000000"}])
    assert str(trace) == "a ended 7 ms before it began"


def test_spans_as_the_console_shows_them_become_a_native_trace(tmp_path: Path) -> None:
    printed, memory = io.StringIO(), InMemoryTracer()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=printed)))
    tracer = CompositeTracer([memory, OpenTelemetryTracer(provider.get_tracer("test"))])
    with tracer.task_span("answer", "Who?") as task_span, task_span.span("ask", score=float("nan")):
        pass
    path = tmp_path / "console.jsonl"
    path.write_text(printed.getvalue())
    (trace,) = read_spans(path)
    assert [(s.name, s.kind, s.parent) for s in trace.spans] == [("answer", "task", None), ("ask", "span", 0)]
    assert {s.id for s in trace.spans} == {s.id for s in memory.entries[0]._trace.spans}
    path.write_text(printed.getvalue()[:-20])
    lines = printed.getvalue()[:-20].count("\n") + 1
    with pytest.raises(DataError, match=rf"console.jsonl:{lines}: not JSON"):
        read_spans(path)
    path.write_text("{}\n" + "[" * 10**6)
    with pytest.raises(DataError, match=r"console.jsonl:2: not JSON: nested too deeply"):
        read_spans(path)


def test_a_file_without_spans_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(reported("a", "01")) + "\n{half\n")
    with pytest.raises(DataError, match=r"spans.jsonl:2: not JSON"):
        read_spans(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_spans(tmp_path / "none")


def test_spans_in_memory_are_made_by_their_names_too() -> None:
    above = InMemorySpan("above")
    with InMemoryTaskSpan(name="task", input="i", context=above.context) as task_span:
        with task_span.span("below"):
            pass
        task_span.record_output(3)
    above.end()
    assert task_span.context.trace_id == above.context.trace_id != task_span.context.span_id
    assert [each.name for each in task_span.export_for_viewing()] == ["below", "task"]
    assert (task_span.input, task_span.output, task_span.kind) == ("i", 3, "task")
