from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from evaluand.core.credentials import is_secret
from evaluand.core.errors import DataError, SpecError
from evaluand.core.identity import encode
from evaluand.trace import UNTRACED, Span, TaskSpan, Trace, current_span, span

NUMBER, PARENT, NAME, KIND, START, DURATION, STATUS, INPUT, OUTPUT, ATTRIBUTES, EVENTS = range(11)


def written(trace: Trace) -> list[list[Any]]:
    """The rows as a reader of the journal gets them."""
    result: list[list[Any]] = orjson.loads(orjson.dumps(trace.rows()))
    return result


def reported(trace: Trace) -> list[tuple[Any, ...]]:
    """All that a trace tells but times."""
    return [(*place(s), s.input, s.output, s.attributes, [(e.name, e.body) for e in s.events]) for s in trace.spans]


def place(s: Span) -> tuple[Any, ...]:
    return s.number, s.parent, s.name, s.kind, s.status, s.end_ns is None


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    def model_dump(self) -> dict[str, Any]:
        raise RuntimeError("no data")


# --- opening and closing ---


def test_spans_are_numbered_in_order_of_opening_and_know_their_parent() -> None:
    trace = Trace.start("answer", "q")
    with trace.root as root:
        with root.span("a") as a, a.span("b"):
            pass
        with root.span("c"):
            pass
    assert [(s.number, s.parent, s.name) for s in trace.spans] == [
        (0, None, "answer"),
        (1, 0, "a"),
        (2, 1, "b"),
        (3, 0, "c"),
    ]


def test_a_child_lies_within_its_parent_in_time() -> None:
    trace = Trace.start("answer")
    with trace.root as root, root.span("child") as child:
        child.log("now", 1)
    assert root.end_ns is not None
    assert child.end_ns is not None
    assert root.start_ns <= child.start_ns <= child.events[0].time_ns <= child.end_ns <= root.end_ns


def test_an_open_span_has_no_end_and_a_closed_one_is_ok() -> None:
    opened = Trace.start("answer").root.span("step")
    assert (opened.end_ns, opened.status) == (None, "unset")
    opened.close()
    assert opened.end_ns is not None
    assert opened.status == "ok"


def test_closing_again_changes_nothing() -> None:
    step = Trace.start("answer").root.span("step")
    step.close()
    end = step.end_ns
    step.close()
    assert step.end_ns == end


def test_closing_a_parent_leaves_its_open_children_open() -> None:
    trace = Trace.start("answer")
    with trace.root as root, root.span("parent") as parent:
        child = parent.span("child")
    assert child.end_ns is None
    assert [row[DURATION] is None for row in written(trace)] == [False, True]


def test_a_span_of_kind_task_is_a_task_span() -> None:
    root = Trace.start("answer").root
    assert isinstance(root, TaskSpan)
    assert isinstance(root.span("subtask", kind="task"), TaskSpan)
    assert not isinstance(root.span("step"), TaskSpan)


def test_a_span_cannot_be_entered_twice() -> None:
    root = Trace.start("answer").root
    with root.span("step") as step, pytest.raises(SpecError, match="'step' was already entered"), step:
        pass
    with pytest.raises(SpecError, match="'step' was already entered"), step:
        pass


def test_attributes_may_be_called_name_and_self() -> None:
    step = Trace.start("answer").root.span("tool", name="search", self=1)
    step.set(name="find")
    assert step.attributes == {"name": "find", "self": 1}


# --- what a span holds ---


def test_a_span_holds_input_output_attributes_and_events() -> None:
    step = Trace.start("answer").root.span("llm", kind="llm", input={"prompt": "hi"}, model="m")
    step.set(tokens=3, model="m2")
    step.log("chunk", ["a", "b"])
    step.output = ("x", 1.5)
    assert step.input == {"prompt": "hi"}
    assert step.output == ["x", 1.5]
    assert step.attributes == {"model": "m2", "tokens": 3}
    assert [(e.name, e.body) for e in step.events] == [("chunk", ["a", "b"])]


def test_changing_a_value_afterwards_does_not_change_the_span() -> None:
    value = {"hits": [1]}
    step = Trace.start("answer").root.span("step", input=value, first=value)
    step.log("event", value)
    step.output = value
    value["hits"].append(2)
    assert step.input == step.output == step.attributes["first"] == step.events[0].body == {"hits": [1]}


def test_the_dictionary_of_attributes_read_from_a_span_is_a_copy() -> None:
    step = Trace.start("answer").root.span("step", k=1)
    step.attributes["k"] = 2
    assert step.attributes == {"k": 1}


def test_the_root_keeps_input_and_output_by_reference() -> None:
    question, answer = object(), object()
    root = Trace.start("answer", question).root
    root.output = answer
    assert root.input is question
    assert root.output is answer
    assert root.attributes == {}


def test_a_status_set_by_the_task_outlives_the_end() -> None:
    with Trace.start("answer").root as root:
        root.status = "error"
    assert root.status == "error"


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(SpecError, match="'fine'; use one of unset, ok, error"):
        Trace.start("answer").root.status = "fine"


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.log("hits", 3),
        lambda s: s.set(hits=3),
        lambda s: s.record_output(3),
        lambda s: setattr(s, "output", 3),
        lambda s: setattr(s, "status", "error"),
    ],
)
def test_a_closed_span_refuses_changes_and_is_named(change: Callable[[Span], None]) -> None:
    step = Trace.start("answer").root.span("retrieve")
    step.close()
    with pytest.raises(SpecError, match="the span 'retrieve': it is closed"):
        change(step)
    assert (step.events, step.attributes, step.output, step.status) == ([], {}, None, "ok")


# --- failures ---


def test_an_exception_passes_through_and_is_an_event_of_each_span_it_leaves() -> None:
    trace = Trace.start("answer")
    with pytest.raises(KeyError, match="page 7"), trace.root as root, root.span("read"):
        raise KeyError("page 7")
    assert [s.status for s in trace.spans] == ["error", "error"]
    for each in trace.spans:
        assert [(e.name, e.body) for e in each.events] == [("exception", {"type": "KeyError", "message": "'page 7'"})]
        assert each.end_ns is not None


def test_an_exception_caught_outside_a_span_leaves_its_parent_ok() -> None:
    with Trace.start("answer").root as root, pytest.raises(ValueError, match="x"), root.span("try") as attempt:
        raise ValueError("x")
    assert (attempt.status, root.status) == ("error", "ok")


def test_an_exception_without_a_text_is_recorded_by_its_type() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    trace = Trace.start("answer")
    with pytest.raises(Broken), trace.root:
        raise Broken
    assert trace.root.events[0].body["message"].endswith("Broken")
    assert orjson.dumps(trace.rows())


def test_an_exception_after_the_span_was_closed_by_hand_passes_through() -> None:
    root = Trace.start("answer").root
    with pytest.raises(ValueError, match="late"), root, contextlib.closing(root):
        raise ValueError("late")
    assert (root.status, root.events) == ("ok", [])


def test_a_cancelled_call_is_an_error() -> None:
    trace = Trace.start("answer")

    async def call() -> None:
        with trace.root:
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(call())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert trace.root.status == "error"
    assert trace.root.events[0].body["type"] == "CancelledError"
    assert trace.tree().endswith(" error: was cancelled")


def test_an_error_without_a_message_is_reported_by_its_name() -> None:
    trace = Trace.start("answer")
    with pytest.raises(KeyError), trace.root:
        raise KeyError
    assert trace.tree().endswith(" error: KeyError")


def stream(parent: Span, name: str) -> Generator[int]:
    with parent.span(name):
        yield 1
        yield 2


def test_a_generator_dropped_by_its_reader_is_neither_ok_nor_an_error() -> None:
    trace = Trace.start("answer")
    with trace.root as root:
        chunks = stream(root, "stream")
        next(chunks)
        chunks.close()
    dropped = trace.spans[1]
    assert dropped.end_ns is not None
    assert (dropped.status, dropped.events) == ("unset", [])


def test_a_forgotten_generator_leaves_its_span_open() -> None:
    trace = Trace.start("answer")
    with trace.root as root:
        chunks = stream(root, "stream")
        next(chunks)
    assert written(trace)[0][DURATION] is None
    assert trace.tree().splitlines()[1] == "└─ stream open"
    chunks.close()


# --- the current span ---


def test_the_current_span_is_the_innermost_entered() -> None:
    trace = Trace.start("answer")
    seen: list[Span | None] = [current_span()]
    with trace.root as root:
        seen.append(current_span())
        with span("inner") as inner:
            seen.append(current_span())
        seen.append(current_span())
    seen.append(current_span())
    assert seen == [None, root, inner, root, None]
    assert inner.parent == 0


def test_a_span_that_is_not_entered_is_not_current() -> None:
    with Trace.start("answer").root as root:
        root.span("by hand")
        assert current_span() is root


def test_an_explicit_parent_wins_over_the_current_span() -> None:
    with Trace.start("answer").root as root, root.span("a") as a:
        with root.span("b") as b:
            assert current_span() is b
        assert b.parent == 0
        assert current_span() is a


def test_a_trace_within_a_call_gives_way_to_the_outer_one_when_it_ends() -> None:
    inner = Trace.start("inner")
    with Trace.start("outer").root as root:
        with inner.root, span("step"):
            pass
        assert current_span() is root
    assert [s.name for s in inner.spans] == ["inner", "step"]


def test_generators_read_in_turns_do_not_leave_a_closed_span_current() -> None:
    with Trace.start("answer").root as root:
        first, second = stream(root, "first"), stream(root, "second")
        next(first)
        next(second)
        assert list(first) == [2]
        assert list(second) == [2]
        assert current_span() is root


def test_a_span_closed_in_another_context_does_not_fail_and_is_no_longer_current() -> None:
    trace = Trace.start("answer")

    async def main() -> None:
        with trace.root as root:
            chunks = stream(root, "stream")
            next(chunks)

            async def drain() -> list[int]:
                return list(chunks)

            assert await asyncio.create_task(drain()) == [2]
            assert current_span() is root

    asyncio.run(main())
    assert trace.spans[1].status == "ok"


def test_asyncio_tasks_have_their_own_current_span() -> None:
    trace = Trace.start("answer")

    async def work(name: str) -> None:
        with span(name) as outer:
            for _ in range(3):
                await asyncio.sleep(0)
                assert current_span() is outer
                with span(f"{name}.step") as step:
                    await asyncio.sleep(0)
                    assert current_span() is step
                    assert step.parent == outer.number

    async def main() -> None:
        with trace.root as root:
            await asyncio.gather(*(work(f"w{i}") for i in range(8)))
            assert current_span() is root

    asyncio.run(main())
    parents = {s.number: s.name for s in trace.spans}
    steps = [s for s in trace.spans if s.name.endswith(".step")]
    assert len(steps) == 24
    assert all(s.parent is not None and f"{parents[s.parent]}.step" == s.name for s in steps)


def test_work_that_outlives_the_call_finds_no_current_span() -> None:
    trace = Trace.start("answer")

    async def late(go: asyncio.Event) -> tuple[Span | None, Span]:
        await go.wait()
        return current_span(), span("late")

    async def main() -> tuple[Span | None, Span]:
        go = asyncio.Event()
        with trace.root:
            task = asyncio.create_task(late(go))
            await asyncio.sleep(0)
        go.set()
        return await task

    current, opened = asyncio.run(main())
    assert (current, opened.context) == (None, UNTRACED.context)
    assert len(trace.spans) == 1


def test_threads_lose_no_span_and_share_no_number() -> None:
    trace = Trace.start("answer")
    start = threading.Barrier(32)

    def work(parent: Span, worker: int) -> None:
        start.wait()
        for i in range(100):
            with parent.span("step", worker=worker) as step:
                step.log("i", i)
                assert current_span() is step

    with trace.root as root:
        threads = [threading.Thread(target=work, args=(root, worker)) for worker in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [s.number for s in trace.spans] == list(range(3201))
    logged = {(s.attributes["worker"], s.events[0].body) for s in trace.spans[1:]}
    assert logged == {(worker, i) for worker in range(32) for i in range(100)}
    assert {s.parent for s in trace.spans[1:]} == {0}


def test_threads_logging_on_one_span_lose_no_event() -> None:
    root = Trace.start("answer").root

    def work(first: int) -> None:
        for i in range(200):
            root.log("e", first + i)

    threads = [threading.Thread(target=work, args=(200 * worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(e.body for e in root.events) == list(range(1600))


def test_a_plain_thread_has_no_current_span() -> None:
    found: list[Span | None] = []
    with Trace.start("answer").root:
        thread = threading.Thread(target=lambda: found.append(current_span()))
        thread.start()
        thread.join()
    assert found == [None]


def test_library_code_may_trace_where_nobody_does() -> None:
    given = Hostile()
    with span("step", kind="llm", input=given, a=1) as step:
        step.log("x", 1)
        step.set(b=2)
        step.output = 3
        step.record_output(4)
        assert current_span() is None
        with step.span("child") as child:
            pass
    with pytest.raises(ValueError, match="passes"), span("fails") as fails:
        raise ValueError("passes")
    assert (step.name, step.kind, step.input, step.output) == ("step", "llm", given, 4)
    assert (step.attributes, step.events) == ({"a": 1, "b": 2}, [])
    assert (step.status, child.status, fails.status) == ("ok", "ok", "error")
    assert list(step.export_for_viewing()) == []


def test_what_untraced_spans_are_opened_from_keeps_nothing() -> None:
    UNTRACED.set(a=1)
    UNTRACED.output = 2
    UNTRACED.status = "error"
    with UNTRACED:
        UNTRACED.log("x", 1)
    UNTRACED.close()
    UNTRACED.log("x", 1)
    assert (UNTRACED.attributes, UNTRACED.output, UNTRACED.status, UNTRACED.events) == ({}, None, "unset", [])


# --- rows ---


def test_a_row_holds_numbers_names_times_and_values() -> None:
    trace = Trace.start("answer", "q")
    with trace.root as root:
        with root.span("llm", kind="llm", input={"b": 1, "a": float("nan")}, z=1, a="x") as step:
            step.log("hits", 3)
            step.output = "é"
        root.output = "left out"
    (row,) = trace.rows()
    assert row[:4] == [1, 0, "llm", "llm"]
    assert row[STATUS] == 1
    assert step.end_ns is not None
    assert row[START] == (step.start_ns - root.start_ns) // 1000
    assert row[DURATION] == (step.end_ns - step.start_ns) // 1000
    assert orjson.dumps(row[INPUT]) == b'{"a":{"$float":"NaN"},"b":1}'
    assert orjson.dumps(row[OUTPUT]) == '"é"'.encode()
    assert orjson.dumps(row[ATTRIBUTES]) == b'{"a":"x","z":1}'
    assert row[EVENTS] == [["hits", (step.events[0].time_ns - root.start_ns) // 1000, 3]]


def test_the_root_has_no_row_without_events_and_attributes() -> None:
    trace = Trace.start("answer", "q")
    with trace.root as root:
        root.output = "a"
    assert trace.rows() == []


@pytest.mark.parametrize("what", ["event", "attribute"])
def test_the_root_has_a_row_without_input_and_output_otherwise(what: str) -> None:
    trace = Trace.start("answer", "q")
    with trace.root as root:
        root.output = "a"
        if what == "event":
            root.log("k", 1)
        else:
            root.set(k=1)
    (row,) = written(trace)
    assert [row[i] for i in (NUMBER, PARENT, NAME, KIND, START, STATUS, INPUT, OUTPUT)] == [
        0, None, "answer", "task", 0, 1, None, None,
    ]  # fmt: skip
    assert row[ATTRIBUTES] == (None if what == "event" else {"k": 1})


def test_rows_taken_during_the_call_show_what_is_open() -> None:
    trace = Trace.start("answer")
    step = trace.root.span("step")
    before = written(trace)
    step.close()
    assert before[0][DURATION] is None
    assert written(trace)[0][DURATION] is not None


names = (st.text(max_size=4) | st.sampled_from(["$", "$float", "$$x"])).filter(lambda name: not is_secret(name))
"""Values under names of secrets are hidden."""

data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@given(data)
def test_every_cell_is_the_canonical_text_of_its_value(value: Any) -> None:
    trace = Trace.start("answer")
    step = trace.root.span("step", input=value, attribute=value)
    step.output = value
    step.log("event", value)
    (row,) = trace.rows()
    text = encode(value)
    assert orjson.dumps(row[INPUT]) == orjson.dumps(row[OUTPUT]) == orjson.dumps(row[EVENTS][0][2]) == text
    assert orjson.dumps(row[ATTRIBUTES]) == encode({"attribute": value})
    assert encode(step.input) == encode(step.events[0].body) == text


@given(st.dictionaries(names, data, max_size=3))
def test_attributes_of_any_name_are_written_canonically_and_come_back(attributes: dict[str, Any]) -> None:
    trace = Trace.start("answer")
    trace.root.span("step").set(**attributes)
    (row,) = trace.rows()
    if attributes:
        assert orjson.dumps(row[ATTRIBUTES]) == encode(attributes)
    back = Trace.from_rows(written(trace))
    assert encode(back.spans[1].attributes) == encode(attributes)


@given(data, data)
def test_rows_written_and_read_give_the_trace_back(value: Any, other: Any) -> None:
    trace = Trace.start("answer", "q")
    with trace.root as root:
        root.log("début", value)
        with root.span("sub", kind="task", input=value) as sub, sub.span("llm", kind="llm", x=other) as step:
            step.log("e", other)
            step.output = value
        root.span("open")
        root.output = "a"
    known: dict[str, Any] = {"input": "q", "output": "a", "start_ns": root.start_ns}
    for rows in (written(trace), trace.rows()):
        back = Trace.from_rows(rows, **known)
        assert orjson.dumps(back.rows()) == orjson.dumps(trace.rows())
        assert repr(reported(back)) == repr(reported(trace))
        assert [type(s) for s in back.spans] == [type(s) for s in trace.spans]


def test_a_root_left_out_is_made_again_from_what_the_caller_knows() -> None:
    back = Trace.from_rows([], name="answer", input="q", output="a", start_ns=5, end_ns=9, status="error")
    root = back.root
    assert back.spans == [root]
    assert (root.name, root.kind, root.input, root.output) == ("answer", "task", "q", "a")
    assert (root.start_ns, root.end_ns, root.status) == (5, 9, "error")


def test_times_come_back_to_the_microsecond() -> None:
    row = [4, 0, "a", "span", 250, 1200, 2, None, None, None, [["e", 300, None]]]
    step = Trace.from_rows([row], start_ns=1_000_000).spans[1]
    assert (step.number, step.start_ns, step.end_ns, step.status) == (4, 1_250_000, 2_450_000, "error")
    assert step.events == [("e", 1_300_000, None)]


def test_cells_that_are_only_texts_are_read_as_fragments() -> None:
    texts = [orjson.Fragment(text) for text in ('{"a":1}', b'"[1]"', '{"$$k":{"$float":"NaN"}}')]
    step = Trace.from_rows([[1, 0, "a", "span", 0, 1, 1, *texts, None]]).spans[1]
    assert (step.input, step.output) == ({"a": 1}, "[1]")
    assert repr(step.attributes) == "{'$k': nan}"


def test_a_trace_read_back_numbers_new_spans_after_the_old() -> None:
    back = Trace.from_rows([[7, 0, "a", "span", 0, 1, 1, None, None, None, None]])
    assert back.root.span("new").number == 8


GOOD = [1, 0, "a", "span", 0, 1, 1, None, None, None, None]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (NUMBER, 0),
        (NUMBER, -1),
        (NUMBER, "1"),
        (NUMBER, True),
        (PARENT, None),
        (PARENT, 2),
        (PARENT, 5),
        (PARENT, 0.0),
        (PARENT, "0"),
        (PARENT, [0]),
        (NAME, None),
        (KIND, 3),
        (START, None),
        (DURATION, "long"),
        (STATUS, 3),
        (STATUS, -1),
        (ATTRIBUTES, [1]),
        (ATTRIBUTES, orjson.Fragment("{")),
        (EVENTS, 5),
        (EVENTS, [["e", 1]]),
        (EVENTS, [["e", "soon", 1]]),
        (EVENTS, [[None, 1, 1]]),
    ],
)
def test_a_broken_row_is_refused_and_named(cell: int, value: Any) -> None:
    bad = [2, *GOOD[1:]]
    bad[cell] = value
    with pytest.raises(DataError, match=r"^spans\[1\]: not a valid row of a span: "):
        Trace.from_rows([GOOD, bad])


@pytest.mark.parametrize("row", [[], GOOD[:-1], [*GOOD, 1], None, "elevenchars", {}])
def test_something_that_is_no_row_is_refused(row: Any) -> None:
    with pytest.raises(DataError, match=r"^spans\[0\]: not a valid row of a span: "):
        Trace.from_rows([row])


def test_a_root_with_an_unknown_status_is_refused() -> None:
    with pytest.raises(SpecError, match="the status 'done'"):
        Trace.from_rows([], status="done")


# --- hostile values ---


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (threading.Lock(), "lock"),
        ({1: "a key that is no text"}, "dict"),
        ({"deep": [{1, 2}]}, "dict"),
        ("\ud800", "str"),
        (cyclic(), "list"),
        (Hostile(), "Hostile"),
        (orjson.Fragment("{broken"), "Fragment"),
        (lambda: None, "function"),
    ],
)
def test_what_is_not_data_is_replaced_and_explained(value: Any, type_name: str) -> None:
    trace = Trace.start("answer")
    with trace.root.span("step", input=value, k=value) as step:
        step.log("e", value)
        step.output = value
    (row,) = written(trace)
    stand_in = {"$unstorable": type_name}
    assert row[INPUT] == row[OUTPUT] == row[EVENTS][0][2] == row[ATTRIBUTES]["k"] == stand_in
    for where in ("input", "output", "events.e", "attributes.k"):
        assert row[ATTRIBUTES][f"unstorable.{where}"]
    assert step.status == "ok"
    assert reported(Trace.from_rows([row]))[1] == reported(trace)[1]


def test_the_explanation_names_the_place() -> None:
    step = Trace.start("answer").root.span("step", input={"deep": [{1}]})
    assert step.attributes["unstorable.input"].startswith("$.deep[0]: a set is not data")


def test_one_attribute_that_is_not_data_does_not_take_the_others_with_it() -> None:
    step = Trace.start("answer").root.span("step", bad=object(), good=1)
    assert step.attributes["good"] == 1


@pytest.mark.parametrize("name", ["\ud800", None, 5, Hostile(), "日本", "a\nb\x1b[31m"])
def test_any_name_can_be_written(name: Any) -> None:
    trace = Trace.start(name)
    with trace.root as root, root.span(name, kind=name) as step:
        step.log(name, 1)
        step.set(**{name: 1} if isinstance(name, str) else {})
    row = written(trace)[0]
    assert isinstance(row[NAME], str)
    assert row[NAME] == row[KIND] == row[EVENTS][0][0]
    assert all(line.isprintable() for line in trace.tree().splitlines())
    assert len(trace.tree().splitlines()) == 2


def test_numbers_json_cannot_say_come_back() -> None:
    trace = Trace.start("answer")
    trace.root.span("step", input=2**70).set(a=float("-inf"), b=-(2**63), c=1e300)
    step = Trace.from_rows(written(trace)).spans[1]
    assert step.input == 2**70
    assert step.attributes == {"a": float("-inf"), "b": -(2**63), "c": 1e300}


# --- the tree ---


def test_the_tree_shows_nesting_durations_kinds_failures_and_what_is_open() -> None:
    failed = {"type": "ValueError", "message": "two\nlines"}
    rows = [
        [1, 0, "retrieve", "retriever", 0, 1200, 1, None, None, None, None],
        [2, 1, "embed", "span", 10, 85, 1, None, None, None, None],
        [3, 1, "rank", "span", 10, 999_600, 1, None, None, None, None],
        [4, 0, "ask", "llm", 2000, 2_500_000, 2, None, None, None, [["exception", 3000, failed]]],
        [5, 4, "tokens", "span", 2000, 125_000_000, 2, None, None, None, None],
        [6, 0, "stream", "span", 2000, None, 0, None, None, None, None],
    ]
    trace = Trace.from_rows(rows, name="answer", end_ns=3_000_000_000, status="ok")
    assert trace.tree().splitlines() == [
        "answer 3 s",
        "├─ retrieve (retriever) 1.2 ms",
        "│  ├─ embed 85 µs",
        "│  └─ rank 1 s",
        "├─ ask (llm) 2.5 s error: ValueError: two\\nlines",
        "│  └─ tokens 2 min 5 s error",
        "└─ stream open",
    ]
    assert str(trace) == trace.tree()
    assert repr(trace) == "<Trace answer 3 s, 7 spans>"
    assert repr(trace.spans[2]) == "<Span 2 embed 85 µs>"


def test_a_span_that_logs_exceptions_of_its_own_is_still_shown() -> None:
    trace = Trace.start("answer")
    step = trace.root.span("step")
    step.log("exception", 5)
    step.status = "error"
    assert trace.tree().splitlines()[1] == "└─ step open error"


def test_very_deep_nesting_is_shown_and_written() -> None:
    trace = Trace.start("answer")
    step: Span = trace.root
    for _ in range(1500):
        step = step.span("deeper")
    assert len(trace.tree().splitlines()) == 1501
    assert len(Trace.from_rows(written(trace)).spans) == 1501
