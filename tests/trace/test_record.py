"""What records tell of traces, live and stored."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from orjson import Fragment

from evaluand import Dataset, Runner, TaskSpan
from evaluand.core.errors import DataError
from evaluand.core.identity import encode
from evaluand.core.selector import Selector
from evaluand.run.responses import SpanStream
from evaluand.trace import Span, Trace
from evaluand.trace.record import CALL, CALL_KEYS, COST_KEYS, PERF_KEYS, RECORD_KEYS, Record


def answered() -> Trace:
    """A retrieval with two searches, a model asked and an answer."""
    trace = Trace.start("query", "Who wrote Emma?")
    with trace.root as root:
        with root.span("retriever.search", kind="retriever", input={"query": "Emma", "k": 1}) as search:
            search.output = ["Emma is by Austen."]
        with root.span("retriever.search", kind="retriever", input={"query": "Austen", "k": 1}) as search:
            search.output = ["Austen wrote Emma.", "Austen lived."]
        with root.span("llm.ask", kind="llm", input={"prompt": "Who?"}, input_tokens=7, output_tokens=2) as ask:
            ask.log("finish", "stop")
            ask.output = "Jane Austen"
        root.output = "Jane Austen"
    return trace


def test_calls_stand_where_they_belong_in_the_app() -> None:
    record = Record.of_trace(answered())
    assert Selector("$.app.retriever.search[*].rets[*]").find(record) == [
        "Emma is by Austen.",
        "Austen wrote Emma.",
        "Austen lived.",
    ]
    assert Selector("app.llm.ask[0].args.prompt").get(record) == "Who?"
    assert Selector("app.query[0].rets").get(record) == "Jane Austen"
    assert record["main_input"] == "Who wrote Emma?"


def test_one_call_is_a_list_too() -> None:
    assert [call["rets"] for call in Record.of_trace(answered())["app"]["llm"]["ask"]] == ["Jane Austen"]


def test_the_last_call_is_the_whole() -> None:
    record = Record.of_trace(answered())
    assert [call["stack"][-1]["method"] for call in record["calls"]] == ["search", "search", "ask", "query"]
    assert record["calls"][-1]["stack"] == [{"path": "", "method": "query"}]
    assert record["calls"][0]["stack"] == [{"path": "", "method": "query"}, {"path": "retriever", "method": "search"}]
    assert record["calls"][-1]["args"] == {"input": "Who wrote Emma?"}
    assert record["calls"][-1]["rets"] == "Jane Austen"


def test_the_last_call_is_the_whole_though_others_ended_later_or_never() -> None:
    trace = Trace.start("whole", 1)
    with trace.root as root:
        open_ = root.span("open")
        late = root.span("late")
    late.end()
    assert open_.end_ns is None
    record = Record.of_trace(trace)
    assert [call["stack"][-1]["method"] for call in record["calls"]] == ["late", "open", "whole"]
    assert record["calls"][1]["perf"]["end_time"] is None


def test_children_come_before_their_parents_within_one_microsecond() -> None:
    rows = [[1, 0, "a", "span", 0, 5, 1, *[None] * 4], [2, 1, "b", "span", 5, 0, 1, *[None] * 4]]
    record = Record(rows, duration=5)
    assert [call["stack"][-1]["method"] for call in record["calls"]] == ["b", "a", "task"]


def test_calls_of_a_step_stand_at_its_place_in_the_list() -> None:
    trace = Trace.start("run", None)
    with trace.root as root:
        root.span("steps[2].run", input={"x": 1}).end()
        root.span("steps[0]['a b'].run").end()
    app = Record.of_trace(trace)["app"]
    assert app["steps"][1] is None
    assert app["steps"][2]["run"][0]["args"] == {"x": 1}
    assert list(app["steps"][0]["a b"]) == ["run"]
    assert Record.of_trace(trace)["calls"][1]["stack"][-1] == {"path": "steps[0]['a b']", "method": "run"}


def test_a_component_that_is_called_itself_has_its_calls_under_call() -> None:
    trace = Trace.start("run", None)
    with trace.root as root, root.span("retriever", input="q"), root.span("retriever.search"):
        pass
    app = Record.of_trace(trace)["app"]
    assert sorted(app["retriever"]) == ["__call__", "search"]
    assert app["retriever"]["__call__"][0]["args"] == {"input": "q"}


@pytest.mark.parametrize(
    "name", ["", "a..b", "$", "..", "a[", "a[*].b", "x[-1].y", "x[99999999].y", "[0].x", "x[0]", "a." * 60 + "b", "é\n"]
)
def test_a_name_that_is_no_path_is_a_method_of_the_app_by_all_of_it(name: str) -> None:
    trace = Trace.start("run", None)
    with trace.root as root:
        root.span(name, input={"x": 1}).end()
    record = Record.of_trace(trace)
    assert record["app"][name][0]["args"] == {"x": 1}
    assert record["calls"][0]["stack"][-1] == {"path": "", "method": name}


def test_places_and_names_of_one_component_stand_side_by_side() -> None:
    trace = Trace.start("run", None)
    with trace.root as root:
        root.span("steps[0].run").end()
        root.span("steps.run").end()
    assert sorted(Record.of_trace(trace)["app"]["steps"]) == ["0", "run"]


def test_an_error_is_reported_by_the_call_and_by_the_whole() -> None:
    trace = Trace.start("query", "q")
    with pytest.raises(KeyError), trace.root as root, root.span("search"):
        raise KeyError("gone")
    record = Record.of_trace(trace)
    assert record["main_output"] is None
    assert record["main_error"] == {"type": "KeyError", "message": "'gone'"}
    assert [call["error"] for call in record["calls"]] == [{"type": "KeyError", "message": "'gone'"}] * 2


def test_cost_is_that_of_the_innermost_models() -> None:
    trace = Trace.start("query", "q")
    with trace.root as root:
        with root.span("llm.chat", kind="llm", usage={"input_tokens": 900}) as chat:
            chat.span("inner", kind="llm", usage={"input_tokens": 10, "output_tokens": 5, "cost": 0.5}).end()
        with pytest.raises(ValueError, match="no"), root.span("ask", kind="llm", input_tokens=1):
            raise ValueError("no")
    assert Record.of_trace(trace)["cost"] == {
        "n_requests": 2,
        "n_successful_requests": 1,
        "n_prompt_tokens": 11,
        "n_completion_tokens": 5,
        "n_tokens": 16,
        "cost": 0.5,
        "currency": None,
    }


def test_what_the_root_says_was_used_counts() -> None:
    trace = Trace.start("query", "q")
    with trace.root as root:
        root.span("ask", kind="llm", input_tokens=1).end()
        root.set(usage={"input_tokens": 8, "output_tokens": 2, "cost": 1, "currency": "EUR"})
    cost = Record.of_trace(trace)["cost"]
    assert (cost["n_requests"], cost["n_tokens"], cost["cost"], cost["currency"]) == (1, 10, 1.0, "EUR")


@pytest.mark.parametrize("other", ["USD", None, ""])
def test_costs_in_several_currencies_or_in_an_unknown_one_are_not_added(other: str | None) -> None:
    trace = Trace.start("query", "q")
    with trace.root as root:
        for currency, cost in (("EUR", 1.0), (other, 2.0), ("EUR", 4.0)):
            usage = {"input_tokens": 1, "cost": cost, "currency": currency}
            root.span("ask", kind="llm", usage=usage).end()
        root.span("ask", kind="llm", usage={"input_tokens": 1, "currency": "USD"}).end()
    cost = Record.of_trace(trace)["cost"]
    assert (cost["n_tokens"], cost["cost"], cost["currency"]) == (4, None, None)


def test_times_are_text_and_latency_is_in_seconds() -> None:
    rows = [[1, 0, "a", "span", 250, 1_000_000, 1, *[None] * 4]]
    record = Record(rows, started=1_700_000_000_000_000, duration=2_500_000)
    assert record["ts"] == "2023-11-14T22:13:20.000000+00:00"
    assert record["perf"]["latency"] == 2.5
    assert record["calls"][0]["perf"] == {
        "start_time": "2023-11-14T22:13:20.000250+00:00",
        "end_time": "2023-11-14T22:13:21.000250+00:00",
        "latency": 1.0,
    }


def test_without_times_there_are_none() -> None:
    record = Record(input="q", output="a")
    assert (record["ts"], record["perf"], record["calls"][0]["perf"]) == (None, None, None)


def test_the_arguments_of_the_root_have_the_names_it_tells() -> None:
    call = {"argument": "question", "arguments": {"k": 3}, "pid": 7, "tid": 8}
    rows = [
        [0, None, "rag.query", "span", 0, 9, 1, None, None, {CALL: call, "seen": 1}, None],
        [1, 0, "search", "span", 1, 1, 1, {"q": 1}, None, {CALL: {"tid": 9}}, None],
    ]
    record = Record(rows, input="Who?", output="Austen")
    search, root = record["calls"]
    assert root["args"] == {"question": "Who?", "k": 3}
    assert (root["pid"], root["tid"], search["pid"], search["tid"]) == (7, 8, 7, 9)
    assert (root["attributes"], search["attributes"]) == ({"seen": 1}, {})
    assert record.name == "rag.query"


def test_a_record_of_rows_in_memory_equals_that_of_rows_read_back() -> None:
    trace = Trace.start("query", {"$float": 1})
    with trace.root as root:
        with root.span("s", input={"nan": math.inf, "b": b"raw", "é": (1, 2)}) as s:
            s.log("hits", {"$int": 1})
            s.output = 2**70
            s.set(weight=float("-inf"))
        root.output = {"t": (1, 2), "x": 1.0}
    live = Record.of_trace(trace, record_id="r")
    facts: dict[str, Any] = {"name": "query", "started": live._started, "duration": live._duration, "record_id": "r"}
    text = orjson.dumps(trace.rows())
    given, gave = {"$float": 1}, Fragment(encode({"t": [1, 2], "x": 1.0}))
    for rows in (text, orjson.loads(text)):
        assert Record(rows, input=given, output=gave, **facts) == live
    call = live["app"]["s"][0]
    assert call["args"] == {"nan": math.inf, "b": b"raw", "é": [1, 2]}
    assert (call["rets"], call["attributes"], call["events"]) == (
        2**70,
        {"weight": -math.inf},
        [{"name": "hits", "body": {"$int": 1}}],
    )
    assert live["main_output"] == {"t": [1, 2], "x": 1.0}


def test_rows_of_a_stored_run_can_be_selected_from() -> None:
    def answer(question: str, task_span: TaskSpan) -> str:
        with task_span.span("retriever.search", input={"query": question}) as s:
            s.output = [question.upper(), {"nested": [1]}]
        return question

    run = Runner().run(answer, Dataset.from_rows([{"input": "a"}, {"input": "b"}]))
    spans = SpanStream(run.spans())
    found = []
    for response in run:
        rows = spans.of(response.index, response.replication)
        found.append(Record(rows, input="", output=response.responses[0], name="answer"))
    assert [Selector("app.retriever.search[0].rets[1].nested[0]").get(record) for record in found] == [1, 1]
    assert [record["calls"][-1]["rets"] for record in found] == ["a", "b"]
    assert [record["main_output"] for record in found] == ["a", "b"]


def test_what_is_no_data_is_reported_by_its_type() -> None:
    assert Record(input=object(), meta={"at": {1, 2}})["main_input"] == {"$unstorable": "object"}


def test_spans_whose_parent_is_missing_are_below_the_root() -> None:
    record = Record([[5, 3, "lost", "span", 0, 1, 1, *[None] * 4]])
    assert list(record["app"]) == ["lost", "task"]


def test_a_missing_key_is_reported_with_those_there_are() -> None:
    with pytest.raises(DataError, match=r"has no 'main_inptu'.*did you mean 'main_input'"):
        Selector("main_inptu").get(Record())


def test_what_records_consist_of_is_known_beforehand() -> None:
    trace = Trace.start("ask", "a")
    with trace.root as root, root.span("search"):
        pass
    record = Record.of_trace(trace)
    assert tuple(record) == RECORD_KEYS
    assert tuple(record["cost"]) == COST_KEYS
    assert tuple(record["perf"]) == PERF_KEYS
    assert {tuple(call) for call in record["calls"]} == {CALL_KEYS}


def test_nothing_is_read_before_it_is_asked_for() -> None:
    record = Record(b"no JSON", input="q", output="a")
    assert (record["main_input"], record["main_output"], record["tags"], len(record)) == ("q", "a", "", 12)
    assert "calls" in record
    with pytest.raises(ValueError, match="invalid literal"):
        record["calls"]


def test_to_json_is_plain_data() -> None:
    record = Record.of_trace(answered(), app_id="rag", tags="t", meta={"user": 1})
    plain = record.to_json()
    assert orjson.loads(orjson.dumps(plain)) == plain
    assert (plain["app_id"], plain["tags"], plain["meta"]) == ("rag", "t", {"user": 1})
    assert plain == record


def test_many_nested_calls_are_laid_out() -> None:
    trace = Trace.start("run", None)
    span: Span = trace.root
    for _ in range(900):
        span = span.span("self.run")
    assert len(Record.of_trace(trace)["app"]["self"]["run"]) == 900
