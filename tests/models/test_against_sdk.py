"""What a `ChatModel` sends and reads is what OpenAI's SDK sends and reads, from the same server."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.chats import Chat

from evaluand.models.chat_model import ChatModel
from evaluand.models.tools import Tool

if TYPE_CHECKING:
    import openai  # half a second, in each process that collects the tests

Starts = Callable[..., Chat]

ASKED: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "The capital of France?"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = Tool("weather", "The weather in a city.", SCHEMA)
CALL = {"tool_calls": [{"name": "weather", "arguments": '{"city": "Paris"}', "id": "call_7"}]}
FUNCTION = {"name": "weather", "description": "The weather in a city.", "parameters": SCHEMA}


@pytest.fixture
def sdk(chat: Starts) -> Iterator[Callable[..., tuple[Chat, openai.OpenAI, ChatModel]]]:
    """Starts a server that gives each reply twice, with a client of the SDK that checks answers, and ours."""
    import openai

    clients: list[openai.OpenAI] = []

    def start(*replies: dict[str, Any]) -> tuple[Chat, openai.OpenAI, ChatModel]:
        server = chat(*(reply for reply in replies for _ in range(2)))
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0, _strict_response_validation=True)
        clients.append(client)
        return server, client, replace(server.model, seed=7, reasoning_effort="low", cache=False)

    yield start
    for client in clients:
        client.close()


SETTINGS: dict[str, Any] = {
    "model": "small",
    "messages": ASKED,
    "temperature": 0.0,
    "max_tokens": 512,
    "seed": 7,
    "reasoning_effort": "low",
}
RESPONSES: dict[str, Any] = {
    "model": "small",
    "input": ASKED,
    "temperature": 0.0,
    "max_output_tokens": 512,
    "reasoning": {"effort": "low"},
    "store": False,
}

THOUGHTS: list[Any] = ["reasoning.encrypted_content"]


def same_request(server: Chat) -> bool:
    ours, theirs = server.asked[-2:]
    return (ours["path"], ours["body"]) == (theirs["path"], theirs["body"])


def test_a_chat_completion(sdk: Any) -> None:
    server, client, model = sdk({"text": "It is Paris.", "logprobs": True})
    ours = model.complete(ASKED, logprobs=2)
    theirs = client.chat.completions.create(**SETTINGS, logprobs=True, top_logprobs=2)
    assert same_request(server)
    [choice] = theirs.choices
    assert (ours.text, ours.finish_reason, ours.model) == (choice.message.content, choice.finish_reason, theirs.model)
    assert (ours.input_tokens, ours.output_tokens) == (theirs.usage.prompt_tokens, theirs.usage.completion_tokens)
    assert ours.logprobs == [
        {"token": one.token, "logprob": one.logprob, "top": {top.token: top.logprob for top in one.top_logprobs}}
        for one in choice.logprobs.content
    ]


def test_tools_and_a_schema_of_a_chat_completion(sdk: Any) -> None:
    server, client, model = sdk(CALL, {"text": '{"city": "Paris"}'})
    ours = model.complete(ASKED, tools=[TOOL])
    theirs = client.chat.completions.create(**SETTINGS, tools=[{"type": "function", "function": FUNCTION}])
    assert same_request(server)
    [call] = theirs.choices[0].message.tool_calls
    assert [tuple(one) for one in ours.tool_calls] == [(call.id, call.function.name, call.function.arguments)]

    data = model.complete(ASKED, schema=SCHEMA).data
    form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}}
    theirs = client.chat.completions.create(**SETTINGS, response_format=form)
    assert same_request(server)
    assert data == json.loads(theirs.choices[0].message.content)


def test_a_response(sdk: Any) -> None:
    server, client, model = sdk({"text": "It is Paris."}, CALL)
    model = replace(model, protocol="responses", seed=None)
    ours = model.complete(ASKED)
    theirs = client.responses.create(**RESPONSES)
    assert same_request(server)
    assert (ours.text, ours.model) == (theirs.output_text, theirs.model)
    assert (ours.input_tokens, ours.output_tokens) == (theirs.usage.input_tokens, theirs.usage.output_tokens)

    [ours_called] = model.complete(ASKED, tools=[TOOL]).tool_calls
    tools = [{"type": "function", **FUNCTION, "strict": False}]
    theirs = client.responses.create(**RESPONSES, tools=tools, include=THOUGHTS)
    assert same_request(server)
    [call] = [item for item in theirs.output if item.type == "function_call"]
    assert tuple(ours_called) == (call.call_id, call.name, call.arguments)


def stream(model: ChatModel) -> list[str]:
    async def read() -> list[str]:
        return [piece async for piece in model.stream(ASKED)]

    return asyncio.run(read())


def test_a_streamed_chat_completion(sdk: Any) -> None:
    server, client, model = sdk({"text": "It is Paris."})
    ours = stream(model)
    chunks = list(client.chat.completions.create(**SETTINGS, stream=True, stream_options={"include_usage": True}))
    assert same_request(server)
    deltas = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert ours == [text for text in deltas if text]


def test_a_streamed_response(sdk: Any) -> None:
    server, client, model = sdk({"text": "It is Paris."})
    ours = stream(replace(model, protocol="responses", seed=None))
    events = list(client.responses.create(**RESPONSES, stream=True))
    assert same_request(server)
    assert ours == [event.delta for event in events if event.type == "response.output_text.delta"]


def test_further_parameters(sdk: Any) -> None:
    server, client, model = sdk({"text": "Paris"})
    further = {
        "top_p": 0.5,
        "stop": ["\n"],
        "service_tier": "flex",
        "verbosity": "low",
        "parallel_tool_calls": False,
        "max_completion_tokens": 900,
    }
    replace(model, max_tokens=None, parameters=further).complete(ASKED)
    client.chat.completions.create(**{name: SETTINGS[name] for name in SETTINGS if name != "max_tokens"}, **further)
    assert same_request(server)


@pytest.mark.parametrize("image", [b"\x89PNG\r\n\x1a\n...", "https://images.example/a.png"], ids=["bytes", "url"])
def test_images(sdk: Any, image: Any) -> None:
    server, client, model = sdk({"text": "A city."}, {"text": "A city."})
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image", "image": image}]
    url = image if isinstance(image, str) else f"data:image/png;base64,{base64.b64encode(image).decode()}"
    model.complete([{"role": "user", "content": parts}])
    shown = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    client.chat.completions.create(**{**SETTINGS, "messages": [{"role": "user", "content": shown}]})
    assert same_request(server)

    replace(model, protocol="responses", seed=None).complete([{"role": "user", "content": parts}])
    shown = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": url, "detail": "auto"}]
    client.responses.create(**{**RESPONSES, "input": [{"role": "user", "content": shown}]})
    assert same_request(server)


def test_a_schema_and_probabilities_of_a_response(sdk: Any) -> None:
    server, client, model = sdk({"text": '{"city": "Paris"}', "logprobs": True})
    ours = replace(model, protocol="responses", seed=None).complete(ASKED, schema=SCHEMA, logprobs=2)
    form = {"type": "json_schema", "name": "reply", "schema": SCHEMA, "strict": True}
    asked = {"text": {"format": form}, "include": ["message.output_text.logprobs"], "top_logprobs": 2}
    theirs = client.responses.create(**RESPONSES, **asked)
    assert same_request(server)
    tokens = theirs.output[1].content[0].logprobs
    assert [one["logprob"] for one in ours.logprobs] == [one.logprob for one in tokens]


RESULT = {"role": "tool", "tool_call_id": "call_7", "content": "sunny"}


def test_the_conversation_after_a_call_of_a_tool(sdk: Any) -> None:
    server, client, model = sdk(CALL, {"text": "Sunny."})
    tools = [{"type": "function", "function": FUNCTION}]
    first = model.complete(ASKED, tools=[TOOL])
    message = client.chat.completions.create(**SETTINGS, tools=tools).choices[0].message
    model.complete([*ASKED, first.message, RESULT], tools=[TOOL])
    said = message.model_dump(exclude_none=True) | {"content": None}
    client.chat.completions.create(**{**SETTINGS, "messages": [*ASKED, said, RESULT]}, tools=tools)
    assert same_request(server)


def test_the_conversation_after_a_call_of_a_response(sdk: Any) -> None:
    server, client, model = sdk(CALL, {"text": "Sunny."})
    model = replace(model, protocol="responses", seed=None)
    tools = [{"type": "function", **FUNCTION, "strict": False}]
    first = model.complete(ASKED, tools=[TOOL])
    output = client.responses.create(**RESPONSES, tools=tools, include=THOUGHTS).output
    model.complete([*ASKED, first.message, RESULT], tools=[TOOL])
    said = [item.model_dump(exclude_none=True, exclude={"id"}) for item in output if item.type != "reasoning"]
    done = {"type": "function_call_output", "call_id": "call_7", "output": "sunny"}
    client.responses.create(**{**RESPONSES, "input": [*ASKED, *said, done]}, tools=tools, include=THOUGHTS)
    assert same_request(server)


def test_streamed_calls_of_tools(sdk: Any) -> None:
    server, client, model = sdk(CALL)

    async def read() -> Any:
        pieces = model.stream(ASKED, tools=[TOOL])
        return [piece async for piece in pieces], pieces.completion.tool_calls

    tools = [{"type": "function", "function": FUNCTION}]
    _, [ours] = asyncio.run(read())
    with client.chat.completions.stream(**SETTINGS, tools=tools, stream_options={"include_usage": True}) as events:
        [theirs] = events.get_final_completion().choices[0].message.tool_calls
    assert same_request(server)
    assert tuple(ours) == (theirs.id, theirs.function.name, theirs.function.arguments)


def test_a_deployment_of_azure(sdk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import openai

    server, _, model = sdk({"text": "Paris"})
    monkeypatch.setenv("SOME_KEY", "a-long-key-of-azure")
    root = server.url.removesuffix("/v1")
    url = f"{root}/openai/deployments/small?api-version=2024-10-21"
    replace(model, url=url, api_key="SOME_KEY").complete(ASKED)
    client = openai.AzureOpenAI(
        azure_endpoint=root, api_version="2024-10-21", api_key="a-long-key-of-azure", max_retries=0
    )
    named = {"max_completion_tokens" if name == "max_tokens" else name: value for name, value in SETTINGS.items()}
    with client:
        client.chat.completions.create(**named)
    assert same_request(server)
    ours, theirs = ({name.lower(): value for name, value in one["headers"].items()} for one in server.asked)
    assert ours["api-key"] == theirs["api-key"]
    assert "authorization" not in ours
