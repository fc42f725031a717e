"""Requests that code of the user makes by the SDKs of services: traced and counted, and returned as they came."""

from __future__ import annotations

import asyncio
import contextvars
import gzip
import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from models.scripted_server import ScriptedServer

from evaluand import App, ChatModel, Dataset, Evaluator, Policy, Runner, scorer, span
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.outcome import Aborted
from evaluand.evaluation.provider import RemoteProvider, asks
from evaluand.experiment.experiment import Experiment
from evaluand.models.capture import Capture, observable
from evaluand.models.prices import Price, PriceTable
from evaluand.models.usage import Spending, report_usage
from evaluand.run.runner import Run

CALL = {"id": "call_1", "type": "function", "function": {"name": "population", "arguments": '{"city": "Paris"}'}}
THOUGHTS: dict[str, Any] = {"prompt_tokens_details": {"cached_tokens": 8}}
SCRIPTS: dict[str, Any] = {
    "m-chat": {
        "turns": [
            {
                "message": {"role": "assistant", "content": "Paris", "reasoning_content": "France …"},
                "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
                | {"prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 3}},
            }
        ]
    },
    "m-responses": {
        "turns": [
            {
                "message": [
                    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "France …"}]},
                    {
                        "type": "message",
                        "id": "msg",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "Paris", "annotations": []}],
                    },
                ],
                "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
                | {"input_tokens_details": {"cached_tokens": 8}, "output_tokens_details": {"reasoning_tokens": 3}},
            }
        ]
    },
    "m-anthropic": {
        "turns": [
            {
                "message": [
                    {"type": "thinking", "thinking": "France …", "signature": "s"},
                    {"type": "text", "text": "Paris"},
                ],
                "usage": {"input_tokens": 12, "cache_read_input_tokens": 8, "output_tokens": 5}
                | {"output_tokens_details": {"thinking_tokens": 3}},
            }
        ]
    },
    "m-gemini": {
        "turns": [
            {
                "message": [{"text": "France …", "thought": True}, {"text": "Paris"}],
                "usage": {"promptTokenCount": 20, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}
                | {"cachedContentTokenCount": 8, "totalTokenCount": 25},
            }
        ]
    },
    "m-busy": {
        "turns": [
            {"status": 429, "body": {"error": {"message": "slow down"}}, "headers": {"Retry-After": "0"}},
            {"message": {"role": "assistant", "content": "Paris"}},
        ]
    },
    "m-tool": {"turns": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}]},
    "m-html": {"turns": [{"body": "<html>Please sign in</html>", "headers": {"Content-Type": "text/html"}}]},
    "m-cut": {"turns": [{"message": {"role": "assistant", "content": "Paris is the capital"}, "cut": 2}]},
}
KEY = "sk-a1b2c3d4e5f6g7h8"
PRICES = PriceTable(
    {"127.0.0.1": {f"m-{name}": Price(1, 10, 0.5) for name in ("chat", "responses", "anthropic", "gemini")}}
)
POLICY = Policy(concurrency=2, prices=PRICES)
ASKED = [{"role": "user", "content": "The capital of France?"}]


pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(SCRIPTS) as server:
        yield server


def run(task: Any, server: ScriptedServer, policy: Policy = POLICY, engine: Engine | None = None, n: int = 1) -> Run:
    root = server.url("chat").removesuffix("/v1")
    data = Dataset.from_rows([{"input": {"root": root, "row": row}} for row in range(n)])
    return Runner(policy=policy, engine=engine or LocalEngine()).run(task, data)


def outputs(run: Run) -> list[Any]:
    assert not run.failures, [response.error for response in run]
    return [output for response in run for output in response.responses]


def usages(run: Run) -> list[Any]:
    return [
        row and {name: value for name, value in row.items() if value is not None and name != "seconds"}
        for row in run.table()["usage"].to_pylist()
    ]


def spans(run: Run) -> list[dict[str, Any]]:
    rows = [row for batch in run.spans() for row in batch.to_pylist()]
    return [
        {**row, **{name: json.loads(row[name] or "null") for name in ("input", "output", "attributes")}} for row in rows
    ]


# Tasks, each as a user writes it


def openai_client(asked: Any, **options: Any) -> Any:
    import openai

    return openai.OpenAI(base_url=f"{asked['root']}/v1", api_key=KEY, **options)


def async_openai_client(asked: Any) -> Any:
    import openai

    return openai.AsyncOpenAI(base_url=f"{asked['root']}/v1", api_key=KEY)


def genai_client(asked: Any) -> Any:
    from google import genai

    return genai.Client(api_key=KEY, http_options={"base_url": asked["root"]})


def anthropic_arguments(asked: Any) -> dict[str, Any]:
    return {"model": "m-anthropic", "max_tokens": 99, "messages": ASKED}


def chat(asked: Any) -> str:
    with openai_client(asked) as client:
        return str(client.chat.completions.create(model="m-chat", messages=ASKED).choices[0].message.content)


def chat_streamed(asked: Any) -> str:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    with openai_client(asked) as client:
        chunks = client.chat.completions.create(model="m-chat", messages=ASKED, **options)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


async def chat_async(asked: Any) -> str:
    async with async_openai_client(asked) as client:
        answer = await client.chat.completions.create(model="m-chat", messages=ASKED)
        return str(answer.choices[0].message.content)


async def chat_streamed_async(asked: Any) -> str:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    async with async_openai_client(asked) as client:
        chunks = await client.chat.completions.create(model="m-chat", messages=ASKED, **options)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])


def responses(asked: Any) -> str:
    with openai_client(asked) as client:
        return str(client.responses.create(model="m-responses", input=ASKED).output_text)


def responses_streamed(asked: Any) -> str:
    with openai_client(asked) as client:
        events = client.responses.create(model="m-responses", input="The capital of France?", stream=True)
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def anthropic(asked: Any) -> str:
    from anthropic import Anthropic

    with Anthropic(base_url=asked["root"], api_key=KEY) as client:
        return "".join(part.text for part in client.messages.create(**anthropic_arguments(asked)).content[1:])


def anthropic_streamed(asked: Any) -> str:
    from anthropic import Anthropic

    with (
        Anthropic(base_url=asked["root"], api_key=KEY) as client,
        client.messages.stream(**anthropic_arguments(asked)) as stream,
    ):
        return "".join(stream.text_stream)


async def anthropic_streamed_async(asked: Any) -> str:
    from anthropic import AsyncAnthropic

    async with (
        AsyncAnthropic(base_url=asked["root"], api_key=KEY) as client,
        client.messages.stream(**anthropic_arguments(asked)) as stream,
    ):
        return await stream.get_final_text()


def gemini(asked: Any) -> str:
    client = genai_client(asked)
    return str(client.models.generate_content(model="m-gemini", contents=ASKED[0]["content"]).text)


def gemini_streamed(asked: Any) -> str:
    client = genai_client(asked)
    parts = client.models.generate_content_stream(model="m-gemini", contents=ASKED[0]["content"])
    return "".join(part.text or "" for part in parts)


async def gemini_async(asked: Any) -> str:
    async with genai_client(asked).aio as client:
        return str((await client.models.generate_content(model="m-gemini", contents=ASKED[0]["content"])).text)


async def gemini_streamed_async(asked: Any) -> str:
    async with genai_client(asked).aio as client:
        parts = await client.models.generate_content_stream(model="m-gemini", contents=ASKED[0]["content"])
        return "".join([part.text or "" async for part in parts])


def litellm(asked: Any) -> str:
    import litellm

    root = f"{asked['root']}/v1"
    answer = litellm.completion(model="openai/m-chat", api_base=root, api_key=KEY, messages=ASKED)
    return str(answer.choices[0].message.content)


async def litellm_streamed_async(asked: Any) -> str:
    import litellm

    options = {"api_base": asked["root"], "api_key": KEY, "stream": True}
    chunks = await litellm.acompletion(model="anthropic/m-anthropic", messages=ASKED, **options)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])


TASKS = [
    *(chat, chat_streamed, chat_async, chat_streamed_async, responses, responses_streamed),
    *(anthropic, anthropic_streamed, anthropic_streamed_async),
    *(gemini, gemini_streamed, gemini_async, gemini_streamed_async),
]
LITELLM = [pytest.param(task, marks=pytest.mark.filterwarnings("ignore")) for task in (litellm, litellm_streamed_async)]
COST = (12 * 1 + 8 * 0.5 + 5 * 10) / 1e6
USED = {
    "requests": 1,
    "failed": 0,
    "cached": 0,
    "input_tokens": 20,
    "output_tokens": 5,
    "cached_input_tokens": 8,
    "reasoning_tokens": 3,
    "cost": COST,
    "currency": "USD",
}


@pytest.mark.parametrize("task", [*TASKS, *LITELLM])
def test_a_request_by_an_sdk_is_one_span_and_counted(task: Any, server: ScriptedServer) -> None:
    if task in (litellm, litellm_streamed_async):
        pytest.importorskip("litellm", reason="needs litellm: pip install litellm")
    made = run(task, server)
    assert outputs(made) == ["Paris"]
    [usage] = usages(made)
    assert usage.pop("cost") == pytest.approx(COST)
    model = usage.pop("model")
    assert usage == {name: value for name, value in USED.items() if name != "cost"}
    [seen] = spans(made)
    assert (seen["kind"], seen["status"], seen["output"]) == ("llm", "ok", "Paris")
    content = seen["input"][-1]["content"]
    assert content == ASKED[0]["content"] or content == [{"type": "text", "text": ASKED[0]["content"]}]
    attributes = seen["attributes"]
    assert (attributes["model"], attributes["response_model"], attributes["reasoning"]) == (model, model, "France …")
    assert (attributes["input_tokens"], attributes["output_tokens"]) == (20, 5)
    assert len(attributes["finish_reasons"]) == 1
    assert KEY not in json.dumps(spans(made), default=str)


@pytest.mark.parametrize("task", [chat, chat_async])
def test_requests_of_other_processes_are_observed_there(task: Any, server: ScriptedServer) -> None:
    made = run(task, server, engine=ProcessEngine(2), n=4)
    assert [usage["cost"] for usage in usages(made)] == [pytest.approx(COST)] * 4
    assert [seen["kind"] for seen in spans(made)] == ["llm"] * 4


def test_observe_models_is_the_switch(server: ScriptedServer) -> None:
    made = run(chat, server, Policy(observe_models=False))
    assert (usages(made), spans(made)) == ([None], [])
    assert made.manifest["provenance"]["policy"]["observe_models"] is False
    with pytest.raises(SpecError, match="observe_models is 'no'; give True or False"):
        Policy(observe_models="no")  # type: ignore[arg-type]


def test_methods_are_replaced_only_during_calls(server: ScriptedServer) -> None:
    during: list[Any] = []

    def task(asked: Any) -> str:
        during.append(httpx2.Client.send)
        return chat(asked)

    before = [httpx.Client.send, httpx2.Client.send, httpx2.AsyncClient.send, *sys.meta_path]
    run(task, server)
    assert [httpx.Client.send, httpx2.Client.send, httpx2.AsyncClient.send, *sys.meta_path] == before
    assert during[0] is not before[1]


def test_a_call_that_begins_during_other_work_is_observed_after_that_has_ended(server: ScriptedServer) -> None:
    before, own = httpx2.Client.send, Spending()
    with observable(True):
        late = Capture(None, lambda: own, is_on=True)
        late.__enter__()
    chat({"root": server.url("chat").removesuffix("/v1")})
    late.__exit__(None, None, None)
    assert own.n_requests == 1
    assert httpx2.Client.send is before


def test_methods_are_replaced_within_every_block_however_blocks_of_threads_begin_and_end() -> None:
    original = httpx2.Client.send
    unobserved: list[int] = []

    def make_calls(thread: int) -> None:
        for _ in range(2000):
            with Capture(None, Spending, is_on=True):
                if httpx2.Client.send is original:
                    unobserved.append(thread)

    threads = [threading.Thread(target=make_calls, args=(number,)) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert unobserved == []
    assert httpx2.Client.send is original


def test_a_method_that_others_replace_during_a_call_stays_theirs(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = httpx2.Client.send

    def task(asked: Any) -> str:
        ours = httpx2.Client.send
        monkeypatch.setattr(httpx2.Client, "send", lambda *given, **named: ours(*given, **named))
        return chat(asked)

    assert len(spans(run(task, server))) == 1
    assert httpx2.Client.send is not original
    monkeypatch.setattr(httpx2.Client, "send", httpx2.Client.send)  # which calls our replacement of the first run
    assert len(spans(run(chat, server))) == 1
    chat({"root": server.url("chat").removesuffix("/v1")})  # outside of calls, nothing is observed


def test_a_version_without_the_methods_is_noted_and_used_as_before(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.genai._api_client import BaseApiClient

    monkeypatch.delattr(BaseApiClient, "_async_request_once")
    with pytest.warns(EvaluandWarning, match=r"genai\._api_client are not observed: .* no '_async_request_once'"):
        made = run(chat, server)
    assert (outputs(made), len(spans(made))) == (["Paris"], 1)


FRESH = """
import sys
from evaluand import Dataset, Runner

def task(url):
    import openai
    with openai.OpenAI(base_url=url, api_key="none") as client:
        return client.chat.completions.create(model="m-chat", messages=[]).choices[0].message.content

run = Runner().run(lambda url: url, Dataset.from_rows([{"input": sys.argv[1]}]))
print([name for name in ("openai", "anthropic", "httpx", "httpx2", "google.genai") if name in sys.modules])
run = Runner().run(task, Dataset.from_rows([{"input": sys.argv[1]}]))
print(run.table()["usage"][0].as_py()["input_tokens"], "exec_module" in vars(sys.modules["httpx2"].__spec__.loader))
"""


def test_an_sdk_is_observed_from_its_import_on_and_never_imported_by_evaluand(server: ScriptedServer) -> None:
    made = subprocess.run([sys.executable, "-c", FRESH, server.url("chat")], capture_output=True, text=True, check=True)
    assert made.stdout.splitlines() == ["[]", "20 False"]


# What the code of the user receives


def test_answers_and_chunks_come_back_unchanged(server: ScriptedServer) -> None:
    asked = {"root": server.url("chat").removesuffix("/v1")}

    def received(asked: Any) -> Any:
        with openai_client(asked) as client:
            completions = client.chat.completions
            answer = completions.create(model="m-chat", messages=ASKED)
            raw = completions.with_raw_response.create(model="m-chat", messages=ASKED)
            chunks = list(completions.create(model="m-chat", messages=ASKED, stream=True))
            with completions.with_streaming_response.create(model="m-chat", messages=ASKED) as response:
                lines = list(response.iter_lines())
        kinds = [type(each).__qualname__ for each in (answer, raw.parse(), *chunks)]
        return [answer.model_dump(), raw.text, raw.http_response.json(), [c.model_dump() for c in chunks], lines, kinds]

    made = run(received, server)
    assert outputs(made) == json.loads(json.dumps([received(asked)]))
    assert [usage["requests"] for usage in usages(made)] == [4]


@pytest.mark.parametrize(("encoding", "encode"), [("gzip", gzip.compress), ("", bytes)])
@pytest.mark.parametrize("reads_all", [True, False])
def test_a_compressed_stream_is_read_as_it_comes(
    encoding: str, encode: Callable[[bytes], bytes], reads_all: bool
) -> None:
    chunks = [{"choices": [{"delta": {"content": text}, "index": 0}]} for text in ("Pa", "ris")]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop", "index": 0}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    headers = {"content-type": "text/event-stream", "content-encoding": encoding}

    class Pieces(httpx2.SyncByteStream):
        closed = False

        def __iter__(self) -> Iterator[bytes]:
            yield from (bytes([byte]) for byte in encode(body.encode()))

        def close(self) -> None:
            self.closed = True

    stream = Pieces()
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, headers=headers, stream=stream))

    def task(asked: Any) -> str:
        with httpx2.Client(transport=transport) as client:
            request = {"model": "m", "messages": ASKED, "stream": True}
            with client.stream("POST", "http://models.example/v1/chat/completions", json=request) as response:
                lines = response.iter_lines()
                return "".join(lines if reads_all else [next(lines)])

    made = Runner().run(task, Dataset.from_rows([{"input": {}}]))
    assert outputs(made) == [body.replace("\n", "") if reads_all else body.partition("\n")[0]]
    assert stream.closed
    [seen] = spans(made)
    assert (seen["output"], seen["status"]) == ("Paris" if reads_all else seen["output"], "ok")
    assert usages(made)[0].get("output_tokens") == (2 if reads_all else None)


# Streams and failures


def first_chunk(asked: Any) -> Any:
    with openai_client(asked) as client:
        chunks = client.chat.completions.create(model="m-chat", messages=ASKED, stream=True)
        first = next(iter(chunks))
        chunks.close()
        return first.choices[0].delta.role


def dropped(asked: Any) -> None:
    openai_client(asked).chat.completions.create(model="m-chat", messages=ASKED, stream=True)


async def first_of_anthropic(asked: Any) -> Any:
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(base_url=asked["root"], api_key=KEY)
    async for event in await client.messages.create(**anthropic_arguments(asked), stream=True):
        return event.type


@pytest.mark.parametrize("task", [first_chunk, dropped, first_of_anthropic])
def test_the_tokens_of_a_stream_that_is_left_early_are_unknown(task: Any, server: ScriptedServer) -> None:
    made = run(task, server)
    [usage], [seen] = usages(made), spans(made)
    assert (usage["requests"], usage["failed"]) == (1, 0)
    assert not usage.keys() & {"input_tokens", "output_tokens", "cost"}
    assert (seen["kind"], seen["status"]) == ("llm", "ok")
    assert seen["duration"] is not None
    assert seen["attributes"]["notes"] == ["the stream was closed before its end, so its tokens are unknown"]


def test_a_stream_without_tokens_says_how_to_ask_for_them(server: ScriptedServer) -> None:
    chunk = {"choices": [{"delta": {"content": "Paris"}, "finish_reason": "stop", "index": 0}]}
    with ScriptedServer({"m": {"turns": [{"events": [chunk, "[DONE]"]}]}}) as server:

        def task(asked: Any) -> int:
            with openai_client(asked) as client:
                return len(list(client.chat.completions.create(model="m", messages=ASKED, stream=True)))

        made = run(task, server)
    assert outputs(made) == [1]
    [note] = spans(made)[0]["attributes"]["notes"]
    assert 'stream_options={"include_usage": True}' in note
    assert "input_tokens" not in usages(made)[0]


def test_each_attempt_of_an_sdk_is_a_request(server: ScriptedServer) -> None:
    def task(asked: Any) -> Any:
        with openai_client(asked, max_retries=2) as client:
            return client.chat.completions.create(model="m-busy", messages=ASKED).choices[0].message.content

    made = run(task, server)
    assert outputs(made) == ["Paris"]
    [usage] = usages(made)
    assert (usage["requests"], usage["failed"], usage["output_tokens"]) == (2, 1, 5)
    refused, answered = spans(made)
    assert (refused["status"], answered["status"]) == ("error", "ok")
    assert "slow down" in str(refused["events"])


@pytest.mark.parametrize(
    ("model", "url", "failed", "noted"),
    [
        ("m-html", None, 0, "the answer cannot be read"),
        ("m-cut", None, 1, None),
        ("m-chat", "http://127.0.0.1:9/v1", 1, None),
    ],
)
def test_an_answer_that_cannot_be_read_is_the_matter_of_the_code(
    server: ScriptedServer, model: str, url: str | None, failed: int, noted: str | None
) -> None:
    def task(asked: Any) -> str:
        root = asked["root"] if url is None else url.removesuffix("/v1")
        try:
            with openai_client({"root": root}, max_retries=0) as client:
                answer = client.chat.completions.create(model=model, messages=ASKED, stream=model == "m-cut")
                return str(type(answer) if model == "m-html" else list(answer))
        except Exception as error:
            return type(error).__name__

    made = run(task, server)
    [usage], [seen] = usages(made), spans(made)
    assert (usage["requests"], usage["failed"]) == (1, failed)
    assert seen["status"] == ("error" if failed else "ok")
    if noted:
        assert noted in seen["attributes"]["notes"][0]


def test_tools_and_their_calls_are_those_of_the_conversation(server: ScriptedServer) -> None:
    tool = {"type": "function", "function": {"name": "population", "parameters": {"type": "object"}}}

    def task(asked: Any) -> None:
        with openai_client(asked) as client:
            client.chat.completions.create(model="m-tool", messages=ASKED, tools=[tool], temperature=0.5)

    [seen] = spans(run(task, server))
    assert (seen["attributes"]["tools"], seen["attributes"]["temperature"]) == (["population"], 0.5)
    assert seen["attributes"]["tool_calls"] == [{"id": "call_1", "name": "population", "text": '{"city": "Paris"}'}]


CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "How many?"}]},
    {
        "role": "assistant",
        "content": [],
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "2"},
]
BODIES: dict[str, Any] = {
    "v1/messages": {
        "model": "m-anthropic",
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "How many?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "add", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "2"}]},
        ],
    },
    "v1/responses": {
        "model": "m-responses",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "text", "text": "How many?"}]},
            {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c", "output": "2"},
        ],
    },
    "v1beta/models/m-gemini:generateContent": {
        "systemInstruction": {"parts": "Be brief."},
        "contents": [
            {"parts": [{"text": "How many?"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "add", "args": {"a": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "add", "response": "2"}}]},
        ],
    },
}


@pytest.mark.parametrize("path", BODIES)
def test_what_was_asked_is_one_conversation_whatever_the_protocol(path: str, server: ScriptedServer) -> None:
    def task(asked: Any) -> int:
        return httpx.post(f"{asked['root']}/{path}", json=BODIES[path]).status_code

    made = run(task, server)
    assert outputs(made) == [200]
    [seen] = spans(made)
    assert seen["input"] == CONVERSATION


def test_a_request_of_an_unknown_form_is_stored_as_it_is(server: ScriptedServer) -> None:
    body = {"model": "m-chat", "messages": "The capital of France?", "n": 1}
    made = run(lambda asked: httpx.post(f"{asked['root']}/v1/chat/completions", json=body).status_code, server)
    [seen] = spans(made)
    assert (outputs(made), seen["output"], seen["input"]) == ([200], "Paris", body)


def test_other_requests_are_not_observed(server: ScriptedServer) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json={}))

    def task(asked: Any) -> None:
        with httpx.Client(transport=transport) as client:
            client.post("https://forum.example/v1/messages", json={"text": "hello"})
            client.post("https://forum.example/v1/responses", content=b"hello")
            client.post("https://forum.example/v1/embeddings", json={"model": "m", "input": "hello"})
            client.get("https://forum.example/v1/messages")

    with pytest.warns(EvaluandWarning, match="forum.example is neither traced nor counted"):
        made = run(task, server)
    assert (usages(made), spans(made)) == ([None], [])


# Once


def test_requests_of_evaluand_are_counted_once(server: ScriptedServer) -> None:
    class Capital(RemoteProvider):
        @asks
        def capital(self, root: str) -> str:
            return chat({"root": root})

    def task(asked: Any) -> str:
        ChatModel(f"{asked['root']}/v1", "m-chat", cache=False).complete(ASKED)
        return Capital(cache=False).capital(asked["root"])

    made = run(task, server)
    [usage] = usages(made)
    assert (outputs(made), usage["requests"], spans(made)) == (["Paris"], 2, [])


def test_what_a_call_reports_itself_has_precedence(server: ScriptedServer) -> None:
    def task(asked: Any) -> str:
        text = chat(asked)
        report_usage(input_tokens=20, output_tokens=5, cost=0.5, currency="USD", model="mine")
        return text

    made = run(task, server)
    [usage] = usages(made)
    assert (usage["requests"], usage["input_tokens"], usage["cost"], usage["model"]) == (1, 20, 0.5, "mine")
    assert len(spans(made)) == 1


def test_a_report_of_fewer_tokens_than_were_used_is_noted(server: ScriptedServer) -> None:
    def task(asked: Any) -> None:
        chat(asked)
        report_usage(input_tokens=2, cost=0)

    with pytest.warns(EvaluandWarning, match="reports 2 tokens by report_usage, but its requests to models used 25"):
        run(task, server)


def test_a_span_that_the_code_opens_for_its_request_is_that_of_the_request(server: ScriptedServer) -> None:
    def task(asked: Any) -> str:
        with span("ask", kind="llm", model="mine") as own:
            text = chat(asked)
            own.set(input_tokens=1)
        return text

    made = run(task, server)
    [seen] = spans(made)
    assert (seen["name"], seen["attributes"]["model"], seen["attributes"]["input_tokens"]) == ("ask", "mine", 1)
    assert (seen["attributes"]["output_tokens"], seen["output"]) == (5, "Paris")
    assert usages(made)[0]["input_tokens"] == 20


def test_a_request_that_langchain_reports_is_one_span(server: ScriptedServer) -> None:
    pytest.importorskip("langchain_core", reason="needs langchain_core: make install")
    from langchain_core.language_models.chat_models import SimpleChatModel
    from langchain_core.runnables import RunnableLambda

    from evaluand.apps.frameworks.langchain import LangChainApp

    asked = {"root": server.url("chat").removesuffix("/v1")}

    class Model(SimpleChatModel):
        def _call(self, *given: Any, **named: Any) -> str:
            return chat(asked)

        @property
        def _llm_type(self) -> str:
            return "own"

    chain = RunnableLambda(lambda text: f"{text}?") | Model() | RunnableLambda(lambda message: chat(asked))
    with LangChainApp(chain, name="qa") as recording:
        assert chain.invoke("The capital of France") == "Paris"
        assert asyncio.run(chain.ainvoke("The capital of France")) == "Paris"
    made = recording.run
    assert made is not None
    seen = [each for each in spans(made) if each["kind"] == "llm"]
    assert [each["attributes"].get("output_tokens") for each in seen] == [5] * 4
    assert [each["name"] == "chat" for each in seen] == [False, True] * 2


# Threads, apps, scorers, budgets, files


def in_a_thread(asked: Any, with_context: bool) -> str:
    answers: list[str] = []
    start: Any = contextvars.copy_context().run if with_context else lambda call: call()
    thread = threading.Thread(target=start, args=(lambda: answers.append(chat(asked)),))
    thread.start()
    thread.join()
    return answers[0]


def test_a_thread_with_the_context_of_the_call_is_observed(server: ScriptedServer) -> None:
    made = run(lambda asked: in_a_thread(asked, True), server)
    assert (len(spans(made)), usages(made)[0]["input_tokens"]) == (1, 20)


def test_a_thread_without_it_is_noted(server: ScriptedServer) -> None:
    with pytest.warns(EvaluandWarning, match=r"start the thread with contextvars\.copy_context\(\)\.run"):
        made = run(lambda asked: in_a_thread(asked, False), server)
    assert (outputs(made), spans(made)) == (["Paris"], [])


@pytest.mark.parametrize("observes", [True, False])
def test_the_requests_of_an_app_are_spans_of_its_records(server: ScriptedServer, observes: bool) -> None:
    class Rag:
        def answer(self, question: str) -> str:
            return "".join(self.stream({"root": server.url("chat").removesuffix("/v1")}))

        def stream(self, asked: Any) -> Iterator[str]:
            yield chat_streamed(asked)

    rag = Rag()
    with App(rag, methods=[".answer", ".stream"], policy=Policy(observe_models=observes)) as recording:
        assert rag.answer("The capital of France?") == "Paris"
    made = recording.run
    assert made is not None
    seen = [each for each in spans(made) if each["kind"] == "llm"]
    assert [(each["output"], each["attributes"]["input_tokens"]) for each in seen] == [("Paris", 20)] * observes


def test_the_requests_of_scorers_are_counted(server: ScriptedServer) -> None:
    @scorer
    def right(output: Any, expected: Any) -> float:
        return float(chat(output) == expected)

    asked = {"root": server.url("chat").removesuffix("/v1")}
    data = Dataset.from_rows([{"input": asked, "expected": "Paris"}], input="input", expected="expected")
    made = Runner().run(lambda asked: asked, data)
    grade = Evaluator(made.store, policy=POLICY).evaluate(made, {"right": right}).table("right").to_pylist()[0]
    usage = json.loads(grade["usage"])
    assert (grade["value"], usage["input_tokens"], usage["cost"]) == (1.0, 20, pytest.approx(COST))


def test_observed_costs_count_against_a_budget(server: ScriptedServer) -> None:
    policy = Policy(concurrency=1, prices=PRICES, budget=f"{COST * 1.5:.6f} USD")
    with pytest.raises(Aborted, match="budget"):
        run(chat, server, policy, n=5)
    unpriced = Policy(concurrency=1, budget="1 USD", prices=PriceTable({}))
    with pytest.raises(Aborted, match="the cost of a request to m-chat is unknown"):
        run(chat, server, unpriced, n=5)


def test_a_budget_that_calls_in_flight_have_exceeded_is_noted(server: ScriptedServer) -> None:
    policy = Policy(concurrency=1, prices=PRICES, budget=f"{COST / 2:.6f} USD")
    with pytest.warns(EvaluandWarning, match="more was spent than the budget"):
        assert outputs(run(chat, server, policy)) == ["Paris"]
    exact = Policy(concurrency=1, prices=PRICES, budget=f"{COST:.9f} USD")
    assert outputs(run(chat, server, exact)) == ["Paris"]  # a note would be an error


def test_an_experiment_file_has_the_switch(tmp_path: Any, server: ScriptedServer) -> None:
    (tmp_path / "own.py").write_text(
        "import httpx\n\ndef ask(url):\n    body = {'model': 'm-chat', 'messages': []}\n"
        "    return httpx.post(f'{url}/chat/completions', json=body).json()['usage']['prompt_tokens']\n"
    )
    (tmp_path / "rows.jsonl").write_text(json.dumps({"url": server.url("chat"), "tokens": 20}) + "\n")
    for word, n in (("true", 1), ("false", 0)):
        (tmp_path / "experiment.yaml").write_text(
            "name: e\ndataset: {path: rows.jsonl, input: url, expected: tokens}\ntasks: {own: {function: own:ask}}\n"
            f"scorers: {{right: exact_match}}\nmetrics: [accuracy]\nrun: {{observe_models: {word}}}\n"
        )
        [own] = Experiment.from_file(tmp_path / "experiment.yaml").run().tasks
        assert len(spans(own.run)) == n


# Counts


@pytest.mark.slow
def test_a_thousand_requests_cost_what_the_server_counted() -> None:
    draw = random.Random(7)
    scripts: dict[str, Any] = {}
    for protocol, names in {
        "chat": ("prompt_tokens", "completion_tokens"),
        "responses": ("input_tokens", "output_tokens"),
        "anthropic": ("input_tokens", "output_tokens"),
        "gemini": ("promptTokenCount", "candidatesTokenCount"),
    }.items():
        message = SCRIPTS[f"m-{protocol}"]["turns"][0]["message"]
        turns = [
            {"status": draw.choice((429, 500, 400)), "body": {"error": {"message": "no"}}}
            if draw.random() < 0.15
            else {
                "message": message,
                "usage": dict(zip(names, (draw.randrange(5000), draw.randrange(900)), strict=True)),
            }
            for _ in range(2000)
        ]
        scripts[f"m-{protocol}"] = {"turns": turns}

    def one(asked: Any) -> str:
        try:
            return str(PLAIN[asked["row"] % len(PLAIN)](asked))
        except Exception as error:
            return type(error).__name__

    async def one_async(asked: Any) -> str:
        try:
            return str(await ASYNC[asked["row"] % len(ASYNC)](asked))
        except Exception as error:
            return type(error).__name__

    with ScriptedServer(scripts) as server:
        policy = Policy(concurrency=8, prices=PRICES)
        made = [run(task, server, policy, n=500) for task in (one, one_async)]
        given = [answer for answers in server.given.values() for answer in answers]
    answered = [tuple(answer["usage"].values()) for answer in given if "usage" in answer]
    totals = [each.manifest["usage"] for each in made]
    assert sum(total["requests"] for total in totals) == len(given) >= 1000
    assert sum(total["failed"] for total in totals) == len(given) - len(answered) > 100
    assert sum(total["input_tokens"] for total in totals) == sum(read for read, _ in answered)
    assert sum(total["output_tokens"] for total in totals) == sum(written for _, written in answered)
    cost = sum(read * 1 + written * 10 for read, written in answered) / 1e6
    assert sum(total["cost"]["USD"] for total in totals) == pytest.approx(cost, rel=1e-9)
    assert sum(len(spans(each)) for each in made) == len(given)


PLAIN = [chat, chat_streamed, responses, responses_streamed, anthropic, anthropic_streamed, gemini, gemini_streamed]
ASYNC = [chat_async, chat_streamed_async, anthropic_streamed_async, gemini_async, gemini_streamed_async]
