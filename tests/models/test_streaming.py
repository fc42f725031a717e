"""Replies piece by piece, and the events in which they arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.chats import Chat

from evaluand.core.errors import SpecError, TransientError
from evaluand.data.dataset import Dataset
from evaluand.engine.http import BadAnswer, BadRequest
from evaluand.engine.policy import Policy
from evaluand.models import chat_protocol
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import Completion, CutOff, ToolCall, UnusableReply
from evaluand.models.event_stream import EventDecoder
from evaluand.models.usage import spending
from evaluand.run.runner import Runner
from evaluand.run.task import task
from evaluand.trace import Trace

Starts = Callable[..., Chat]

ASKED = [{"role": "user", "content": "What is the capital of France?"}]
PROTOCOLS = pytest.mark.parametrize("protocol", ["chat", "responses"])


def read(model: ChatModel, pieces: list[str] | None = None, **options: Any) -> tuple[list[str], Completion]:
    """The pieces of a reply and the completion; `pieces` gets those that come before an error."""
    pieces = [] if pieces is None else pieces

    async def ask() -> Completion:
        stream = model.stream(ASKED, **options)
        async for piece in stream:
            pieces.append(piece)
        return stream.completion

    return pieces, asyncio.run(ask())


@PROTOCOLS
def test_a_streamed_reply_is_that_of_one_answer(chat: Starts, protocol: Any) -> None:
    reply = {"text": "It is Paris, naturally.", "logprobs": True}
    server = chat(reply, reply)
    model = replace(server.model, protocol=protocol)
    trace = Trace.start("whole")
    with spending() as spent, trace.root as span:
        pieces, streamed = read(model, tracer=span, logprobs=2)
    assert pieces == ["It", " is", " Paris,", " naturally."]
    assert streamed == model.complete(ASKED, logprobs=2)
    assert (spent.n_requests, spent.input_tokens, spent.output_tokens) == (1, 6, 4)
    assert (trace.spans[1].output, trace.spans[1].attributes["output_tokens"]) == ("It is Paris, naturally.", 4)
    assert server.bodies[0].pop("stream") is True
    assert "stream" not in server.bodies[1]


@PROTOCOLS
def test_calls_of_tools_are_put_together(chat: Starts, protocol: Any) -> None:
    calls = [
        {"name": "add", "arguments": '{"a": 1, "b": 2}', "id": "x"},
        {"name": "stop", "arguments": "{}", "id": "y"},
    ]
    pieces, completion = read(replace(chat({"tool_calls": calls}).model, protocol=protocol))
    assert pieces == []
    assert completion.tool_calls == (ToolCall("x", "add", '{"a": 1, "b": 2}'), ToolCall("y", "stop", "{}"))
    assert completion.finish_reason == "tool_calls"


@PROTOCOLS
@pytest.mark.parametrize(
    ("reply", "error", "pieces"),
    [
        ({"status": 400, "body": "{}"}, BadRequest, 0),
        ({"status": 503, "body": "{}"}, TransientError, 0),
        ({"body": "{}", "headers": {"Content-Type": "application/json"}}, BadAnswer, 0),
        ({"text": "Once upon a", "finish_reason": "length"}, CutOff, 3),
        ({"refusal": "No."}, UnusableReply, 0),
        ({"text": "Once upon a time there was", "cut": 1700}, BadAnswer, None),
        ({"events": ["data: {no\n\n"]}, BadAnswer, 0),
        ({"events": ["data: [1]\n\n"]}, BadAnswer, 0),
        ({"events": ['data: {"error": {"message": "out"}, "type": "error"}\n\n']}, BadAnswer, 0),
        ({"events": [": a comment\n\n"]}, BadAnswer, 0),
    ],
)
def test_a_stream_without_a_whole_reply_fails(
    chat: Starts, protocol: Any, reply: dict[str, Any], error: type[Exception], pieces: int | None
) -> None:
    given: list[str] = []
    with spending() as spent, pytest.raises(error):
        read(replace(chat(reply).model, protocol=protocol), given)
    assert spent.n_requests == 1
    assert pieces is None or len(given) == pieces


def test_a_reply_whose_end_is_missing_is_not_complete(chat: Starts) -> None:
    whole = {"choices": [{"index": 0, "delta": {"content": "Once upon"}, "finish_reason": None}]}
    server = chat({"events": [f"data: {json.dumps(whole)}\n\n"]}, {"events": [f"data: {json.dumps(whole)}\n\n"]})
    given: list[str] = []
    with pytest.raises(BadAnswer, match="ended before the reply was complete"):
        read(server.model, given)
    assert given == ["Once upon"]
    with pytest.raises(BadAnswer, match="ended before the reply was complete"):
        read(replace(server.model, protocol="responses"))


def test_a_run_repeats_a_stream_that_has_not_begun_and_no_other(chat: Starts) -> None:
    busy = {"status": 503, "body": "{}"}
    server = chat(busy, {"text": "one two"}, {"text": "one two three four five", "cut": 900})

    @task
    async def join(input: str) -> str:
        return "".join([piece async for piece in server.model.stream(ASKED)])

    runner = Runner(policy=Policy(retries=2, backoff=0, concurrency=1))
    made = runner.run(join, Dataset.from_rows([{"input": "a"}, {"input": "b"}]))
    assert [(row.status, row.responses) for row in made] == [("completed", ["one two"]), ("failed", None)]
    assert len(server.asked) == 3


def test_the_completion_is_there_at_the_end_only(chat: Starts) -> None:
    server = chat({"text": "one two three"}, {"text": "fine"})

    async def stop_early() -> None:
        stream = server.model.stream(ASKED)
        async for _ in stream:
            break
        with pytest.raises(SpecError, match="the reply is not complete"):
            _ = stream.completion

    asyncio.run(stop_early())
    assert read(server.model)[0] == ["fine"]


# Events


TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)


@given(
    st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.data(),
)
def test_events_are_the_same_wherever_the_body_is_cut(
    events: list[list[str]], end: str, mark: bool, data: st.DataObject
) -> None:
    lines = [line for event in events for line in (": ping", "event: x", *(f"data: {part}" for part in event), "")]
    body = ("\ufeff" * mark).encode() + "".join(line + end for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    decoder = EventDecoder()
    pieces = [body[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    found = [event.decode() for piece in (*pieces, b": end\n") for event in decoder.feed(piece)]
    assert found == ["\n".join(event) for event in events]


def chunk(delta: dict[str, Any] | None = None, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, **({} if delta is None else {"delta": delta}), **choice}]}


CALL_A = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x"'}}
REST = {"function": {"arguments": ": 1}"}}
CALL_B = {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}
THINKS = [{"type": "thinking", "thinking": [{"type": "text", "text": "Rome? No."}]}]
DETAIL = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}


@pytest.mark.parametrize(
    ("chunks", "text", "calls"),
    [
        ([chunk({"content": "Par"}, message={"content": "Par"}), chunk({"content": "is"})], "Paris", []),
        ([chunk({"content": "Paris"}), chunk(message={"role": "assistant", "content": "Paris"})], "Paris", []),
        ([chunk({"tool_calls": [CALL_A]}), chunk({"tool_calls": [REST]})], "", [("f", '{"x": 1}')]),
        (
            [
                chunk({"tool_calls": [{"index": 0, **CALL_A}]}),
                chunk({"tool_calls": [{"index": 0, **REST}]}),
                chunk({"tool_calls": [{"index": 0, **CALL_B}]}),
            ],
            "",
            [("f", '{"x": 1}'), ("g", "{}")],
        ),
        ([chunk({"tool_calls": [CALL_B, {**CALL_B, "id": "c"}]})], "", [("g", "{}"), ("g", "{}")]),
        ([chunk({"content": THINKS}), chunk({"content": "Par"}), chunk({"content": "is"})], "Paris", []),
        (
            [chunk({"content": "Paris"}, index=0), {"choices": [{"index": 1, "delta": {"content": "Rome"}}]}],
            "Paris",
            [],
        ),
    ],
)
def test_pieces_continue_what_they_belong_to(chunks: list[Any], text: str, calls: list[Any]) -> None:
    stream = chat_protocol.Stream()
    for piece in [*chunks, chunk(finish_reason="stop")]:
        stream.add(piece)
    completion = stream.end()
    assert completion.text == text
    assert [(call.name, call.text) for call in completion.tool_calls] == calls
    assert completion.reasoning == ("Rome? No." if chunks[0]["choices"][0]["delta"].get("content") == THINKS else None)


def test_what_pieces_say_again_is_said_once() -> None:
    stream = chat_protocol.Stream()
    for text in ("Rome? ", "No."):
        stream.add(chunk({"reasoning_details": [{**DETAIL, "text": text}]}))
    stream.add(chunk({"content": "Paris"}, finish_reason="stop"))
    assert stream.end().message["reasoning_details"] == [{**DETAIL, "text": "Rome? No."}]
