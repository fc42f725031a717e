"""Anthropic's Messages and Gemini's generateContent: the SDKs of the services send and read the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.chats import Chat

from evaluand.core.errors import ParameterError, TaskError
from evaluand.data.dataset import Dataset
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import Completion, ToolCall
from evaluand.models.tools import Tool
from evaluand.run.runner import Runner
from evaluand.run.tasks.chat import ChatTask
from evaluand.run.tasks.multiple_choice import MultipleChoice

Starts = Callable[..., Chat]

KEY = "a-key-that-nobody-may-see"
ASKED: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "The weather in Paris?"},
]
PIXEL = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sun in {city}"


def served(body: dict[str, Any]) -> dict[str, Any]:
    return {"body": json.dumps(body)}


def streamed(*events: dict[str, Any]) -> dict[str, Any]:
    lines = (f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n" for event in events)
    return {"body": "".join(lines), "headers": {"Content-Type": "text/event-stream"}}


@pytest.fixture
def model(chat: Starts, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Chat, ChatModel]]:
    """Starts a server with these replies, and a model there that speaks a protocol."""
    monkeypatch.setenv("SMALL_KEY", KEY)

    def start(protocol: str, *replies: dict[str, Any]) -> tuple[Chat, ChatModel]:
        server = chat(*replies)
        return server, replace(server.model, protocol=protocol, api_key="SMALL_KEY")  # type: ignore[arg-type]

    return start


Models = Callable[..., tuple[Chat, ChatModel]]

THINKING = {"type": "thinking", "thinking": "I need the tool.", "signature": "c2lnbmVk"}
CALLED = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "small-2026",
    "content": [THINKING, {"type": "text", "text": "Sunny."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 70,
        "output_tokens": 8,
    },
}
CANDIDATE: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"text": "I need the tool.", "thought": True}, {"text": "Sunny."}],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 70,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 108,
    },
    "modelVersion": "small-2026",
}
GEMINI_CALL = {"functionCall": {"name": "weather", "args": {"city": "Paris"}, "id": "f1"}, "thoughtSignature": "c2ln"}
GEMINI_CALLED = CANDIDATE | {
    "candidates": [{"content": {"role": "model", "parts": [GEMINI_CALL]}, "finishReason": "STOP", "index": 0}]
}


@pytest.mark.parametrize(("protocol", "body"), [("anthropic", MESSAGE), ("gemini", CANDIDATE)])
def test_an_answer_has_its_reasoning_apart_and_all_its_tokens(model: Models, protocol: str, body: Any) -> None:
    price = {"input": 10_000, "cached_input": 1_000, "stored_input": 12_500, "output": 10_000}
    _, small = model(protocol, served(body))
    completion = replace(small, price=price).complete(ASKED)
    assert (completion.text, completion.reasoning, completion.ending) == ("Sunny.", "I need the tool.", "complete")
    assert (completion.input_tokens, completion.cached_tokens, completion.output_tokens) == (100, 70, 8)
    assert completion.model == "small-2026"
    stored = 20 if protocol == "anthropic" else 0
    assert completion.cost == pytest.approx((70 * 0.1 + stored * 1.25 + (30 - stored) + 8) / 100)


def test_anthropic_s_sdk_sends_and_reads_the_same(model: Models) -> None:
    anthropic = pytest.importorskip("anthropic", reason="needs anthropic: make install")
    server, small = model("anthropic", served(MESSAGE), served(MESSAGE))
    shown = [{"type": "text", "text": "What is it?"}, {"type": "image", "image": PIXEL}]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    small = replace(small, temperature=None)
    ours = small.complete([ASKED[0], {"role": "user", "content": shown}], tools=[weather])
    described = Tool.of(weather)
    with anthropic.Anthropic(base_url=server.url.removesuffix("/v1"), api_key=KEY, max_retries=0) as client:
        theirs = client.messages.create(
            model="small",
            max_tokens=512,
            system=[{"type": "text", "text": "Be brief."}],
            messages=[{"role": "user", "content": [shown[0], {"type": "image", "source": source}]}],
            tools=[{"name": "weather", "description": described.description, "input_schema": described.schema}],
        )
    first, second = server.asked
    assert (first["path"], first["body"]) == (second["path"], second["body"])
    ours_sent, theirs_sent = headers(first), headers(second)
    assert (ours_sent["x-api-key"], theirs_sent["authorization"]) == (KEY, f"Bearer {KEY}")  # the service takes both
    assert {"anthropic-version"} <= ours_sent.keys() & theirs_sent.keys()
    assert (ours.reasoning, ours.text) == (theirs.content[0].thinking, theirs.content[1].text)
    assert (ours.finish_reason, ours.output_tokens) == (theirs.stop_reason, theirs.usage.output_tokens)


def test_gemini_s_sdk_sends_and_reads_the_same(model: Models) -> None:
    genai = pytest.importorskip("google.genai", reason="needs google-genai: make install")
    server, small = model("gemini", served(CANDIDATE), served(CANDIDATE))
    small = replace(small, url=server.url.removesuffix("/v1") + "/v1beta", seed=7)
    ours = small.complete(ASKED, tools=[weather])
    described = Tool.of(weather)
    declared = {"name": "weather", "description": described.description, "parameters_json_schema": described.schema}
    options = {"base_url": server.url.removesuffix("/v1"), "api_version": "v1beta"}
    with genai.Client(api_key=KEY, http_options=options) as client:
        theirs = client.models.generate_content(
            model="small",
            contents=[{"role": "user", "parts": [{"text": ASKED[1]["content"]}]}],
            config={
                "system_instruction": {"parts": [{"text": "Be brief."}]},
                "temperature": 0.0,
                "max_output_tokens": 512,
                "seed": 7,
                "tools": [{"function_declarations": [declared]}],
            },
        )
    first, second = server.asked
    [sent] = second["body"]["tools"][0]["functionDeclarations"]
    sent["parametersJsonSchema"] = sent.pop("parameters_json_schema")  # the service takes both spellings
    assert (first["path"], first["body"]) == (second["path"], second["body"])
    assert headers(first)["x-goog-api-key"] == headers(second)["x-goog-api-key"]
    assert ours.text == theirs.text
    assert ours.input_tokens == theirs.usage_metadata.prompt_token_count


def headers(request: dict[str, Any]) -> dict[str, str]:
    return {name.lower(): value for name, value in request["headers"].items()}


@pytest.mark.parametrize(
    ("protocol", "called", "body", "sent", "result"),
    [
        (
            "anthropic",
            [THINKING, CALLED],
            MESSAGE | {"content": [THINKING, CALLED], "stop_reason": "tool_use"},
            {"role": "assistant", "content": [THINKING, CALLED]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sun in Paris"}],
            },
        ),
        (
            "gemini",
            [GEMINI_CALL],
            GEMINI_CALLED,
            {"role": "model", "parts": [GEMINI_CALL]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "weather", "id": "f1", "response": {"result": "sun in Paris"}}}
                ],
            },
        ),
    ],
    ids=["anthropic", "gemini"],
)
def test_what_a_model_sends_with_a_call_of_a_tool_goes_back_as_it_came(
    model: Models, protocol: str, called: Any, body: Any, sent: Any, result: Any
) -> None:
    final = MESSAGE if protocol == "anthropic" else CANDIDATE
    server, small = model(protocol, served(body), served(body), served(final))
    task = ChatTask(small, prompt="The weather in {{ city }}?", tools=[weather])
    (row,) = Runner().run(task, Dataset.from_rows([{"city": "Paris"}], input="city"))
    assert row.responses == ["Sunny."]
    turns = [body["messages" if protocol == "anthropic" else "contents"] for body in server.bodies]
    assert turns[1][1:] == [sent, result]
    assert turns[2][1:] == [sent, result, sent, result]


STREAMS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "I need "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "the tool."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2lnbmVk"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "ping"},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Sun"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "ny."}},
        {"type": "content_block_start", "index": 2, "content_block": {**CALLED, "input": {}}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"ci'}},
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": 'ty": "Paris"}'},
        },
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 8}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "I need the tool.", "thought": True}]}, "index": 0}]},
        {"candidates": [{"content": {"parts": [{"text": "Sun"}]}, "index": 0}]},
        {"candidates": [{"content": {"parts": [{"text": "ny."}]}, "index": 0}]},
        GEMINI_CALLED | {"usageMetadata": CANDIDATE["usageMetadata"]},
    ],
}


def read_stream(small: ChatModel) -> tuple[list[str], Completion]:
    async def read() -> tuple[list[str], Completion]:
        pieces = small.stream(ASKED, tools=[weather])
        return [piece async for piece in pieces], pieces.completion

    return asyncio.run(read())


@pytest.mark.parametrize("protocol", STREAMS)
def test_a_streamed_answer_is_the_one_that_comes_at_once(model: Models, protocol: str) -> None:
    server, small = model(protocol, streamed(*STREAMS[protocol]))
    pieces, completion = read_stream(small)
    assert pieces == ["Sun", "ny."]
    assert (completion.text, completion.reasoning) == ("Sunny.", "I need the tool.")
    [call] = completion.tool_calls
    assert (call.name, call.arguments) == ("weather", {"city": "Paris"})
    assert (completion.input_tokens, completion.output_tokens) == (100, 8)
    if protocol == "anthropic":
        assert completion.message["content"] == [THINKING, {"type": "text", "text": "Sunny."}, CALLED]
    else:
        assert server.asked[0]["path"].endswith("/models/small:streamGenerateContent?alt=sse")


@pytest.mark.parametrize("protocol", STREAMS)
def test_a_stream_that_ends_too_early_is_no_reply(model: Models, protocol: str) -> None:
    _, small = model(protocol, streamed(*STREAMS[protocol][:3]))
    with pytest.raises(TaskError, match="ended before the reply was complete"):
        read_stream(small)


@pytest.mark.parametrize("protocol", ["anthropic", "gemini"])
def test_the_server_enforces_a_schema(model: Models, protocol: str) -> None:
    text = '{"city": "Paris"}'
    body = (
        MESSAGE | {"content": [{"type": "text", "text": text}]}
        if protocol == "anthropic"
        else {**CANDIDATE, "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}
    )
    server, small = model(protocol, served(body))
    completion = small.complete(ASKED, schema=SCHEMA)
    assert (completion.data, completion.steps) == ({"city": "Paris"}, {"schema": 1})
    (sent,) = server.bodies
    if protocol == "anthropic":
        assert sent["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    else:
        assert sent["generationConfig"]["responseJsonSchema"] == SCHEMA


def test_a_form_that_a_protocol_lacks_is_asked_for_by_a_tool_without_a_request_in_vain(model: Models) -> None:
    body = MESSAGE | {"content": [{**CALLED, "name": "reply", "input": {"n": 4}}], "stop_reason": "tool_use"}
    server, small = model("anthropic", served(body))
    completion = small.complete(ASKED, schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    assert completion.data == {"n": 4}
    assert [body["tool_choice"] for body in server.bodies] == [{"type": "tool", "name": "reply"}]


@pytest.mark.parametrize(
    ("protocol", "body", "fault"),
    [
        ("anthropic", MESSAGE | {"stop_reason": "refusal", "content": []}, "the model refused"),
        ("anthropic", MESSAGE | {"stop_reason": "max_tokens"}, "cut off after 512 tokens"),
        ("anthropic", MESSAGE | {"stop_reason": "pause_turn"}, "broke the reply off: 'pause_turn'"),
        ("anthropic", MESSAGE | {"stop_reason": "tired"}, "a word unknown here: 'tired'"),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}}, "overloaded_error"),
        ("anthropic", [], "not a message"),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "withheld by the server"),
        ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}, "withheld by the server"),
        ("gemini", {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "MALFORMED_FUNCTION_CALL"),
        ("gemini", {"candidates": []}, "no candidates"),
    ],
)
def test_an_answer_that_is_no_reply_says_why(model: Models, protocol: str, body: Any, fault: str) -> None:
    _, small = model(protocol, served(body))
    with pytest.raises(TaskError, match=fault):
        small.complete(ASKED)


def test_settings_that_a_protocol_cannot_send_are_refused() -> None:
    with pytest.raises(ParameterError) as raised:
        ChatModel("http://h/v1", "m", protocol="anthropic", seed=1, max_tokens=None)
    assert [place for place, _ in raised.value.faults] == [("max_tokens",), ("seed",)]


@pytest.mark.parametrize(
    ("name", "url", "protocol"),
    [
        ("anthropic/claude-x", "https://api.anthropic.com/v1", "anthropic"),
        ("gemini/gemini-x", "https://generativelanguage.googleapis.com/v1beta", "gemini"),
        ("openai/gpt-x", "https://api.openai.com/v1", "chat"),
    ],
)
def test_short_names_speak_the_protocol_of_their_service(name: str, url: str, protocol: str) -> None:
    model = ChatModel.of(name)
    assert (model.url, model.protocol) == (url, protocol)


def test_a_service_without_probabilities_stops_a_run_that_needs_them(model: Models) -> None:
    server, small = model("anthropic", served(MESSAGE))
    task = MultipleChoice(small, method="log_likelihood")
    rows = [{"question": "Sky?", "choices": ["red", "blue"]}] * 3
    with pytest.raises(TaskError, match="reports no probabilities"):
        Runner().run(task, Dataset.from_rows(rows))
    assert server.asked == []


def test_the_arguments_of_a_call_are_kept_as_text(model: Models) -> None:
    _, small = model("gemini", served(GEMINI_CALLED))
    assert small.complete(ASKED, tools=[weather]).tool_calls == (ToolCall("f1", "weather", '{"city": "Paris"}'),)


def test_a_model_that_takes_no_temperature_says_how_to_leave_it_out(model: Models) -> None:
    message = "`temperature` is deprecated for this model."
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    _, small = model("anthropic", served(body) | {"status": 400})
    with pytest.raises(TaskError, match="set temperature: null") as raised:
        small.complete(ASKED)
    assert raised.value.stops
    assert ChatModel.of("anthropic/claude-x").temperature is None


IMAGE_RESULT = [
    {"type": "text", "text": "a dot"},
    {"type": "image_url", "image_url": {"url": PIXEL}},
]
CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}],
}


@pytest.mark.parametrize(
    ("protocol", "body", "written"),
    [
        (
            "anthropic",
            MESSAGE,
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [
                            {"type": "text", "text": "a dot"},
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
                            },
                        ],
                    }
                ],
            },
        ),
        (
            "gemini",
            CANDIDATE,
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "look", "response": {"result": "a dot"}}},
                    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
                ],
            },
        ),
    ],
)
def test_images_in_results_of_tools_are_written_in_the_form_of_the_protocol(
    model: Models, protocol: str, body: Any, written: Any
) -> None:
    server, small = model(protocol, served(body))
    result = {"role": "tool", "tool_call_id": "t1", "content": IMAGE_RESULT}
    small.complete([ASKED[1], CALLING, result])
    assert server.bodies[0]["messages" if protocol == "anthropic" else "contents"][-1] == written


def test_each_citation_of_a_stream_is_kept(model: Models) -> None:
    citations = [{"cited_text": text} for text in ("foo", "bar")]
    pieces = [{"type": "citations_delta", "citation": citation} for citation in citations]
    events = [
        {"type": "message_start", "message": {**MESSAGE, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Sunny."}},
        *({"type": "content_block_delta", "index": 0, "delta": piece} for piece in pieces),
        {"type": "message_stop"},
    ]
    _, small = model("anthropic", streamed(*events))
    _, completion = read_stream(small)
    assert completion.message["content"] == [{"type": "text", "text": "Sunny.", "citations": citations}]
