"""Right values that are known and not reached yet; each test fails for the reason that it states.

A test that passes is moved to the tests of its room.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support.chats import Chat
from support.commands import Folder
from support.foreign_results import inspect_header, inspect_samples, write_deepeval

from evaluand import ChatTask, Dataset, MemoryStore, Run, Runner
from evaluand.exchange.storing import import_results
from evaluand.report.facts.run import CHATS, add_chats

Read = Callable[..., dict[str, Any]]
Starts = Callable[..., Chat]
QUESTION = [{"role": "user", "content": "Capital of France?"}]


def missing(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=reason)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return Folder(tmp_path)


# Replies


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        (
            {"prompt_tokens": 32, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 400}}
            | {"total_tokens": 441},
            {"input": 1_000, "output": 10_000},
            4.122,
        ),
        (
            {"prompt_tokens": 1_000, "completion_tokens": 10, "total_tokens": 1_010}
            | {"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100},
            {"input": 10_000, "output": 10_000, "cached_input": 1_000},
            2.0,
        ),
    ],
    ids=["reasoning", "cache"],
)
def test_all_tokens_are_paid_once(
    chat: Starts, usage: Mapping[str, Any], price: Mapping[str, float], cost: float
) -> None:
    body = {"choices": [{"finish_reason": "stop", "message": {"content": "Paris"}}], "usage": usage}
    model = replace(chat({"body": json.dumps(body)}).model, price={**price, "currency": "USD"})
    assert model.complete(QUESTION).cost == pytest.approx(cost)


def population(city: str) -> int:
    """The population of a city.

    Args:
        city: its English name.
    """
    return 2_100_000


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ({"reasoning_content": "I need the tool."}, {}),
        ({}, {"extra_content": {"google": {"thought_signature": "c2ln"}}}),
    ],
    ids=["reasoning", "signature"],
)
def test_a_message_with_calls_of_tools_goes_back_as_it_came(
    chat: Starts, message: dict[str, Any], call: dict[str, Any]
) -> None:
    call |= {"id": "1", "type": "function", "function": {"name": "population", "arguments": '{"city": "Paris"}'}}
    sent = {"role": "assistant", "content": "", "tool_calls": [call]} | message
    server = chat({"body": json.dumps({"choices": [{"finish_reason": "tool_calls", "message": sent}]})})
    asked = ChatTask(server.model, prompt="How many people live in {{ city }}?", tools=[population])
    Runner().run(asked, Dataset.from_rows([{"city": "Paris"}], input="city"))
    assert server.bodies[1]["messages"][1] == sent


# Apps


@missing("LlamaIndex reports the step, and the app records its own method")
def test_a_step_of_a_workflow_is_recorded_once() -> None:
    workflow = pytest.importorskip("llama_index.core.workflow", reason="needs llama_index.core: make install")
    from evaluand.apps.frameworks.llama_index import LlamaIndexApp

    class Upper(workflow.Workflow):  # type: ignore[misc,name-defined]
        @workflow.step
        async def answer(self, event: workflow.StartEvent) -> workflow.StopEvent:
            return workflow.StopEvent(result=event.query.upper())

    flow = Upper()

    async def run() -> None:
        await flow.run(query="who")

    with LlamaIndexApp(flow) as recording:
        asyncio.run(run())
    assert [call["stack"][-1]["method"] for call in recording.get()["calls"]] == ["answer", "run"]


@missing("names of TruLens 2 are not offered")
@pytest.mark.parametrize(
    "name",
    [
        *("TruSession", "Metric", "Selector", "run_dashboard", "TruGraph", "SpanAttributes", "TruLlamaWorkflow"),
        *("Google", "WithFeedbackFilterDocuments"),
    ],
)
def test_names_of_trulens_2_are_there(name: str) -> None:
    assert getattr(import_module("evaluand.interop.trulens"), name)


@missing("forms of TruLens 2 are not read")
@pytest.mark.parametrize(
    "form",
    [
        lambda t: t.instrument()(lambda q: q),
        lambda t: t.instrument(span_type="retrieval", attributes={"x": "return"})(lambda q: q),
        lambda t: t.Feedback(lambda c: 1.0).on_context(collect_list=False),
        lambda t: t.Feedback(lambda text: 1.0).on({"text": t.Select.RecordInput}),
        lambda t: t.GroundTruthAgreement(
            [{"query": "q", "expected_response": "a"}], provider=t.OpenAI(model_engine="m", version="1")
        ),
    ],
    ids=["instrument", "span_type", "on_context", "mapping", "golden"],
)
def test_forms_of_trulens_2_work(form: Callable[[Any], Any]) -> None:
    assert form(import_module("evaluand.interop.trulens"))


# Imports


def import_run(path: Path) -> Run:
    [run] = import_results(path, MemoryStore()).runs
    return run


def tokens(run: Run) -> int:
    usage = run.manifest["usage"]
    return int(usage["input_tokens"] + usage["output_tokens"])


def said(run: Run) -> list[tuple[str, str]]:
    """Roles and texts of the conversation of the first row, with arguments and results of tools."""
    rows: list[dict[str, Any]] = [{"_index_": 0, "replication": 0}]
    add_chats(run, rows)
    [turns] = rows[0][CHATS]
    return [(turn["role"], " ".join([turn["text"], *map(str, turn["tools"])]).strip()) for turn in turns]


def write_log(folder: Path, **sample: Any) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps({**inspect_header(), "samples": [inspect_samples()[0] | sample]}))
    return path


@missing("tokens that a cache has read and written are not counted")
def test_an_import_counts_the_tokens_of_a_cache(tmp_path: Path) -> None:
    cached = {"input_tokens_cache_read": 8_000, "input_tokens_cache_write": 1_000}
    usage = {"input_tokens": 5, "output_tokens": 50, "total_tokens": 9_055} | cached
    assert tokens(import_run(write_log(tmp_path, model_usage={"m": usage}))) == 9_055


BIG = 100_000_000_000_000_000_000
FAILED_CALL = [
    {"role": "user", "content": "1 + 1?"},
    {"role": "assistant", "content": ""}
    | {"tool_calls": [{"id": "p", "function": "add", "arguments": {"x": BIG}, "type": "function"}]},
    {"role": "tool", "content": "", "tool_call_id": "p", "error": {"type": "parsing", "message": "no number"}},
]


@missing("the error of a tool is left out of its message")
def test_an_import_keeps_the_error_of_a_tool(tmp_path: Path) -> None:
    assert any("no number" in text for _, text in said(import_run(write_log(tmp_path, messages=FAILED_CALL))))


@missing("integers of more than 64 bits become floats")
def test_an_import_keeps_large_arguments(tmp_path: Path) -> None:
    assert any(str(BIG) in text for _, text in said(import_run(write_log(tmp_path, messages=FAILED_CALL))))


@missing("calls of tools, made and expected, are left out")
def test_an_import_of_deepeval_keeps_calls_of_tools(tmp_path: Path) -> None:
    path = write_deepeval(tmp_path)
    content = json.loads(path.read_text())
    content["testCases"][0] |= {"toolsCalled": [{"name": "plus"}], "expectedTools": [{"name": "times"}]}
    path.write_text(json.dumps(content))
    run = import_run(path)
    stored = str([run.table().to_pylist(), *run.spans(), *run.dataset.examples(0, 1)])
    assert "plus" in stored
    assert "times" in stored


def write_spans(folder: Path, *spans: Mapping[str, Any]) -> Path:
    """Spans of one trace, each in the one before, with text and integers as attributes."""
    written = [
        {
            "traceId": "0a" * 16,
            "spanId": f"{number + 1:016x}",
            "parentSpanId": f"{number:016x}" if number else "",
            "name": f"span {number}",
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000000900000000",
            "attributes": [
                {"key": key, "value": {"intValue": value} if isinstance(value, int) else {"stringValue": value}}
                for key, value in attributes.items()
            ],
        }
        for number, attributes in enumerate(spans)
    ]
    path = folder / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}))
    return path


@missing("only the root's usage is that of the row")
def test_an_import_of_spans_counts_the_tokens_of_all(tmp_path: Path) -> None:
    root = {"openinference.span.kind": "CHAIN", "input.value": "Who?", "output.value": "Austen"}
    model = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 30, "llm.token_count.completion": 8}
    assert tokens(import_run(write_spans(tmp_path, root, model))) == 38


@missing("the parts of GenAI messages are not read")
def test_messages_of_genai_are_a_conversation(tmp_path: Path) -> None:
    def message(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    messages = {"input": message("user", "hello"), "output": message("assistant", "hi")}
    model = {"gen_ai.operation.name": "chat"} | {f"gen_ai.{side}.messages": text for side, text in messages.items()}
    root = {"openinference.span.kind": "CHAIN", "input.value": "hello", "output.value": "hi"}
    assert said(import_run(write_spans(tmp_path, root, model))) == [("user", "hello"), ("assistant", "hi")]


# Versions and columns


@missing("a declared version stands for code and files that have changed")
@pytest.mark.parametrize(("file", "old", "new"), [("app.py", "!", "?"), ("prompt.txt", "a", "b")], ids=["code", "file"])
def test_a_declared_version_does_not_hide_a_change(folder: Folder, file: str, old: str, new: str) -> None:
    Path("app.py").write_text('def answer(text):\n    return open("prompt.txt").read() + text + "!"\n')
    Path("prompt.txt").write_text("a")
    Path("rows.jsonl").write_text('{"input": "x", "expected": "y"}\n')
    task = '{function: "app.py:answer", version: "1"}'
    Path("e.yaml").write_text(f"name: e\ndataset: rows.jsonl\ntasks: {{mine: {task}}}\nscorers: exact_match\n")
    folder.done("run", "e.yaml")
    Path(file).write_text(Path(file).read_text().replace(old, new))
    assert "1 done now" in folder.done("run", "e.yaml")
