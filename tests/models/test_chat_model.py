"""What a `ChatModel` sends, how it reads what a server answers, and what happens when that is no reply."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from support.chats import Chat
from support.json_schemas import jsonschema

from evaluand.core.errors import EvaluandWarning, ParameterError, SpecError, TaskError, TransientError
from evaluand.core.secret_hosts import permissions, refusal
from evaluand.data.dataset import Dataset
from evaluand.engine.http import BadAnswer, BadRequest
from evaluand.engine.policy import Policy
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import CutOff, ToolCall, UnusableReply
from evaluand.models.endpoints import ENDPOINTS
from evaluand.models.requests import repetition
from evaluand.models.tools import Tool
from evaluand.models.usage import spending
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.run.tasks.chat import ChatTask
from evaluand.trace import Trace

Starts = Callable[..., Chat]

ASKED = [{"role": "user", "content": "What is the capital of France?"}]
PIXEL = b"\x89PNG\r\n\x1a\n and the rest of an image"
HELLO = [{"role": "user", "content": "Hello"}]
PROTOCOLS = pytest.mark.parametrize("protocol", ["chat", "responses"])


def weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    Args:
        city: its name.
    """
    return f"sun in {city} for {days}"


def complete(model: ChatModel, messages: Sequence[Any] = ASKED, **options: Any) -> Any:
    return model.complete(messages, **options)


# What is sent


@pytest.mark.filterwarnings("ignore:.*all replications of 2 of 2 examples")
def test_each_replication_and_sample_has_a_seed_of_its_own_and_the_first_the_declared_one(chat: Starts) -> None:
    server = chat({"text": "Paris"})
    model = replace(server.model, seed=7)
    task = ChatTask(model, prompt="{{ question }}")
    rows = Dataset.from_rows([{"question": "France?"}, {"question": "Spain?"}])
    for _ in range(2):
        Runner().run(task, rows, replications=4)
    seeds = Counter(body["seed"] for body in server.bodies)
    assert len(seeds) == 4
    assert {*seeds.values()} == {4}
    assert 7 in seeds
    assert all(0 <= seed < 2**31 for seed in seeds)
    for sample in range(3):
        complete(model, sample=sample)
    complete(replace(model, seed=None), sample=2)
    first, *others, unseeded = [body.get("seed") for body in server.bodies[-4:]]
    assert (first, len({7, *others}), unseeded) == (7, 3, None)


def test_an_answer_that_ends_within_its_reasoning_leaves_no_text_that_could_be_graded(chat: Starts) -> None:
    with pytest.raises(UnusableReply, match="no answer after its reasoning") as raised:
        complete(chat({"text": "<think>It could be Paris, or"}).model)
    assert (raised.value.code, raised.value.completion.text) == ("reasoning", "")


def test_settings_are_sent_where_they_are_set(chat: Starts) -> None:
    server = chat()
    complete(replace(server.model, seed=7, reasoning_effort="low", temperature=None, parameters={"top_k": 5}))
    assert server.bodies == [
        {
            "model": "small",
            "messages": ASKED,
            "max_tokens": 512,
            "seed": 7,
            "reasoning_effort": "low",
            "top_k": 5,
        }
    ]


def test_responses_are_asked_for_in_their_own_words_and_not_stored(chat: Starts) -> None:
    server = chat({"text": "Paris"})
    model = replace(server.model, protocol="responses", reasoning_effort="low")
    conversation = [{"role": "system", "content": "Be brief."}, *ASKED]
    assert complete(model, conversation).text == "Paris"
    assert server.asked[0]["path"] == "/v1/responses"
    assert server.bodies == [
        {
            "model": "small",
            "input": conversation,
            "temperature": 0.0,
            "max_output_tokens": 512,
            "reasoning": {"effort": "low"},
            "store": False,
        }
    ]


@PROTOCOLS
def test_tools_are_described_and_their_results_follow_in_the_conversation(chat: Starts, protocol: Any) -> None:
    call = {"name": "weather", "arguments": '{"city": "Rome"}', "id": "a1"}
    server = chat({"tool_calls": [call]}, {"text": "Sunny."})
    model = replace(server.model, protocol=protocol)
    first = complete(model, tools=[weather])
    assert first.tool_calls == (ToolCall("a1", "weather", '{"city": "Rome"}'),)
    assert (first.text, first.finish_reason) == ("", "tool_calls")
    result = Tool.of(weather).call(first.tool_calls[0].arguments)
    turns = [*ASKED, first.message, {"role": "tool", "tool_call_id": "a1", "content": result}]
    assert complete(model, turns, tools=[weather]).text == "Sunny."

    [described], [_, *more] = (
        server.bodies[0]["tools"],
        server.bodies[1]["messages" if protocol == "chat" else "input"],
    )
    function = described["function"] if protocol == "chat" else described
    assert (function["name"], function["description"]) == ("weather", "The weather in a city.")
    assert function["parameters"]["required"] == ["city"]
    assert function["parameters"]["properties"]["city"] == {"type": "string", "description": "its name."}
    if protocol == "chat":
        assert more == [first.message, {"role": "tool", "tool_call_id": "a1", "content": "sun in Rome for 1"}]
    else:
        assert more == [
            {"type": "function_call", "call_id": "a1", "name": "weather", "arguments": '{"city": "Rome"}'},
            {"type": "function_call_output", "call_id": "a1", "output": "sun in Rome for 1"},
        ]


@pytest.mark.parametrize("form", ["bytes", "path", "url"])
@PROTOCOLS
def test_images_are_sent_within_the_message(chat: Starts, tmp_path: Path, protocol: Any, form: str) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    url = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    image = {"bytes": PIXEL, "path": tmp_path / "dot.png", "url": url}[form]
    server = chat({"text": "a dot"})
    content = [{"type": "text", "text": "What is this?"}, {"type": "image", "image": image}]
    complete(replace(server.model, protocol=protocol), [{"role": "user", "content": content}])
    if protocol == "chat":
        parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
        assert server.bodies[0]["messages"] == [{"role": "user", "content": parts}]
    else:
        asked = {"type": "input_text", "text": "What is this?"}
        parts = [asked, {"type": "input_image", "image_url": url, "detail": "auto"}]
        assert server.bodies[0]["input"] == [{"role": "user", "content": parts}]


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ("Hello", "the conversation is a text; give a list of messages"),
        ([], "the conversation has no message"),
        (["Hello"], "message 1 is a text; give an object with role and content"),
        ([{"content": "a"}], "message 1 has no role"),
        ([{"role": "user"}], "message 1 has null as content"),
        ([{"role": "user", "content": [{"image": b""}]}], "message 1, part 1 has no type"),
        ([{"role": "user", "content": [{"type": "text"}]}], "message 1, part 1 has no text"),
        ([{"role": "user", "content": [{"type": "image", "image": 3}]}], "message 1, part 1 has a number as image"),
        ([{"role": "user", "content": [{"type": "image", "image": b"%PDF"}]}], "message 1, part 1 is not an image"),
        ([{"role": "user", "content": [{"type": "image", "image": __file__}]}], "message 1, part 1 is not an image"),
        ([{"role": "user", "content": [{"type": "image", "image": "no.png"}]}], r"message 1, part 1 no\.png: No such"),
        ([{"role": "user", "content": "a\ud800"}], "the request cannot be written as JSON"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place_before_anything_is_sent(messages: Any, fault: str) -> None:
    with pytest.raises(TaskError, match=fault):
        complete(ChatModel("http://127.0.0.1:1/v1", "small"), messages)


def test_the_key_goes_into_the_header_that_the_service_reads(chat: Starts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMALL_KEY", "a-key-that-nobody-may-see")
    server = chat({"text": "one"}, {"text": "two"})
    complete(replace(server.model, api_key="SMALL_KEY"))
    azure = f"{server.url}/openai/deployments/small?api-version=2024-10-21"
    complete(ChatModel(azure, "small", api_key="SMALL_KEY"))
    first, second = server.asked
    assert (first["headers"].get("Authorization"), first["headers"].get("api-key")) == (
        "Bearer a-key-that-nobody-may-see",
        None,
    )
    assert second["path"] == "/v1/openai/deployments/small/chat/completions?api-version=2024-10-21"
    assert (second["headers"].get("Authorization"), second["headers"].get("api-key")) == (
        None,
        "a-key-that-nobody-may-see",
    )
    assert "max_completion_tokens" in second["body"]


def test_nothing_of_the_environment_is_sent_besides_the_key(chat: Starts, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "x-secret: http://127.0.0.1:1/stolen")
    server = chat()
    complete(server.model)
    assert {name.lower() for name in server.asked[0]["headers"]} <= {
        *("host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length"),
    }


# What is read


@PROTOCOLS
def test_a_completion_has_what_the_server_reports(chat: Starts, protocol: Any) -> None:
    server = chat({"text": "It is Paris."})
    completion = complete(replace(server.model, protocol=protocol))
    assert (completion.text, completion.finish_reason, completion.model) == ("It is Paris.", "stop", "small-2026")
    assert (completion.input_tokens, completion.output_tokens) == (6, 3)
    assert (completion.cached_tokens, completion.reasoning_tokens, completion.notes) == (0, 0, ())


@PROTOCOLS
def test_probabilities_are_reported_by_token(chat: Starts, protocol: Any) -> None:
    server = chat({"text": "It is", "logprobs": True})
    found = complete(replace(server.model, protocol=protocol), logprobs=2).logprobs
    half, less = math.log(0.5), math.log(0.25)
    assert found == [
        {"token": "It", "logprob": half, "top": {"It": half, " other": less}},
        {"token": " is", "logprob": half, "top": {" is": half, " other": less}},
    ]
    asked = server.bodies[0]
    assert asked["top_logprobs"] == 2
    assert asked.get("logprobs") is True or asked["include"] == ["message.output_text.logprobs"]
    for wrong in (21, -1, True):
        with pytest.raises(SpecError, match="give an integer from 0 to 20"):
            complete(server.model, logprobs=wrong)


@PROTOCOLS
@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        ({"refusal": "I cannot help."}, "refusal", "the model refused: I cannot help"),
        ({"finish_reason": "content_filter", "text": "half"}, "content_filter", "withheld by the server"),
        ({"text": ""}, "empty", "the reply has no text .finish_reason stop"),
        ({"text": " \n"}, "empty", "the reply has no text"),
        ({"finish_reason": "length", "text": "Once upon"}, "length", "cut off after 512 tokens"),
    ],
)
def test_an_answer_that_is_no_reply_says_why_and_counts_what_it_used(
    chat: Starts, protocol: Any, reply: dict[str, Any], code: str, message: str
) -> None:
    server = chat(reply)
    with spending() as spent, pytest.raises(UnusableReply, match=message) as raised:
        complete(replace(server.model, protocol=protocol))
    assert raised.value.code == code
    assert isinstance(raised.value, CutOff) is (code == "length")
    assert raised.value.completion.text == reply.get("text", "")
    assert (spent.n_requests, spent.n_failed, spent.input_tokens) == (1, 0, 6)


ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"body": "{}", "status": 500}, TransientError, "500"),
    ({"body": "{}", "status": 408}, TransientError, "408"),
    ({"body": "{}", "status": 429, "headers": {"Retry-After": "7"}}, TransientError, "429"),
    ({"body": "{}", "status": 404}, BadRequest, "404"),
    ({"body": "<p>hello", "headers": {"Content-Type": "text/html"}}, BadAnswer, "the answer is text/html"),
    ({"body": '{"cho'}, BadAnswer, "the answer is not JSON"),
    ({"body": ""}, BadAnswer, "the answer is empty"),
    ({"body": "[1]"}, BadAnswer, "the answer is a list, not a"),
    ({"body": "{}"}, BadAnswer, "the answer has no (choices|output)"),
    ({"body": '{"error": {"message": "out of order"}}'}, BadAnswer, "the answer is an error: .*out of order"),
    ({"body": '{"a": 1, "a": 2}'}, BadAnswer, "has the key 'a' twice"),
    ({"text": "a long reply", "cut": 60}, TransientError, "the connection to 127.0.0.1"),
]


@PROTOCOLS
@pytest.mark.parametrize(("reply", "kind", "message"), ERRORS)
def test_what_is_no_answer_is_reported_in_a_sentence(
    chat: Starts, protocol: Any, reply: dict[str, Any], kind: type[Exception], message: str
) -> None:
    server = chat(reply)
    trace = Trace.start("whole")
    with spending() as spent, pytest.raises(kind, match=message), trace.root as span:
        server.model.complete(ASKED, span) if protocol == "chat" else replace(server.model, protocol=protocol).complete(
            ASKED, span
        )
    assert (spent.n_requests, spent.n_failed, spent.input_tokens) == (1, 1, 0)
    assert [span.status for span in trace.spans] == ["error", "error"]


def test_a_failed_response_is_an_error(chat: Starts) -> None:
    body = {"status": "failed", "error": {"code": "server_error", "message": "out of order"}, "output": []}
    with pytest.raises(TransientError, match="out of order"):
        complete(replace(chat({"body": json.dumps(body)}).model, protocol="responses"))


@pytest.mark.parametrize(("written", "seconds"), [("7", 7), ("0.5", 0.5), ("-1", None), ("nan", None), ("soon", None)])
def test_a_service_s_wish_to_wait_is_passed_on(written: str, seconds: float | None, chat: Starts) -> None:
    server = chat({"body": "{}", "status": 429, "headers": {"Retry-After": written}})
    with pytest.raises(TransientError) as raised:
        complete(server.model)
    assert raised.value.after == seconds


CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


def no_setting(message: str, name: str, code: str) -> dict[str, Any]:
    """The answer to a setting that a model does not take, as OpenAI writes it."""
    error = {"message": message, "type": "invalid_request_error", "param": name, "code": code}
    return {"status": 400, "body": json.dumps({"error": error}, indent=2)}


NO_TEMPERATURE = no_setting(
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
    "temperature",
    "unsupported_value",
)
NO_MAX_TOKENS = no_setting(
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "max_tokens",
    "unsupported_parameter",
)
NO_TOP_P = no_setting(
    "Unsupported parameter: 'top_p' is not supported with this model.", "top_p", "unsupported_parameter"
)


@pytest.mark.parametrize(
    ("reply", "remedy"),
    [
        (NO_TEMPERATURE, "; set temperature: null"),
        (NO_MAX_TOKENS, "; set max_tokens: null and parameters: {max_completion_tokens: …}"),
        (NO_TOP_P, "; leave top_p out of the parameters of the model"),
    ],
)
@pytest.mark.parametrize("schema", [None, CITY], ids=["text", "data"])
def test_a_setting_that_a_model_refuses_stops_the_run_and_is_named_with_what_to_do(
    chat: Starts, reply: dict[str, Any], remedy: str, schema: Any
) -> None:
    server = chat(reply)
    with pytest.raises(BadRequest) as raised:
        complete(server.model, schema=schema)
    assert raised.value.stops
    assert str(raised.value).endswith(remedy)
    assert len(server.asked) == 1


def test_a_form_that_a_model_refuses_does_not_stop_the_run(chat: Starts) -> None:
    no_form = no_setting("Unsupported parameter: 'response_format'.", "response_format", "unsupported_parameter")
    server = chat(no_form, {"text": '{"city": "Paris"}'})
    assert complete(server.model, schema=CITY).steps == {"schema": 1, "json": 1}


@pytest.mark.parametrize("name", ["gpt-5-mini", "gpt-5-2025-08-07", "o4-mini"])
def test_models_that_refuse_every_temperature_are_sent_none(chat: Starts, name: str) -> None:
    server = chat()
    model = ChatModel.of(f"openai/{name}")
    assert complete(replace(model, url=server.url, api_key=None)).text
    assert server.bodies[0].keys() == {"model", "messages"}


def test_other_models_have_the_usual_settings_and_a_file_s_own_count() -> None:
    for name in ("gpt-4.1", "gpt-5-chat-latest", "gpt-5.2", "gpt-oss-20b"):
        model = ChatModel.of(f"openai/{name}")
        assert (model.temperature, model.max_tokens) == (0, 512)
    model = ChatModel.of({"model": "openai/gpt-5-mini", "temperature": 1, "max_tokens": 4000})
    assert (model.temperature, model.max_tokens) == (1, 4000)


@PROTOCOLS
def test_a_reply_cut_off_while_thinking_says_so(chat: Starts, protocol: Any) -> None:
    server = chat({"text": "", "finish_reason": "length", "reasoning_tokens": 500})
    with pytest.raises(CutOff, match=r"cut off after 512 tokens, 500 of them for reasoning; raise max_tokens"):
        complete(replace(server.model, protocol=protocol))


def test_a_list_of_parts_and_arguments_that_are_no_text_are_read_too(chat: Starts) -> None:
    message: dict[str, Any] = {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    called = {"content": None, "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]}
    bodies = [{"choices": [{"message": each, "finish_reason": "stop"}]} for each in (message, called)]
    server = chat(*({"body": json.dumps(body)} for body in bodies))
    assert complete(server.model).text == "ab"
    [call] = complete(server.model, sample=1, tools=[weather]).tool_calls
    assert (call.name, call.arguments) == ("add", {"a": 1})


# The cache


def test_the_same_request_is_made_once_and_samples_are_requests_of_their_own(chat: Starts) -> None:
    server = chat({"text": "one"}, {"text": "two"})
    with spending() as spent:
        found = [complete(server.model, sample=sample) for sample in (0, 0, 1, 1)]
    assert [(one.text, one.is_cached) for one in found] == [
        ("one", False),
        ("one", True),
        ("two", False),
        ("two", True),
    ]
    assert (spent.n_requests, spent.n_known, len(server.asked)) == (2, 2, 2)


def test_callers_with_the_same_request_wait_for_one_reply(chat: Starts) -> None:
    server = chat({"text": "one", "delay": 0.3})

    async def ask() -> list[str]:
        found = await asyncio.gather(*(server.model.complete_async(ASKED) for _ in range(20)))
        return [one.text for one in found]

    assert asyncio.run(ask()) == ["one"] * 20
    assert len(server.asked) == 1


def test_what_may_change_the_reply_is_another_request(chat: Starts) -> None:
    server = chat()
    model = server.model
    others = [
        replace(model, temperature=1.0),
        replace(model, max_tokens=9),
        replace(model, seed=1),
        replace(model, version="2"),
        replace(model, version=None),
        replace(model, parameters={"top_p": 0.5}),
        replace(model, protocol="responses"),
        replace(model, url=f"{server.url}/other"),
    ]
    for each in (model, *others, *others):
        complete(each)
    complete(model, [*ASKED, *ASKED])
    complete(model, tools=[weather])
    complete(model, logprobs=3)
    assert len(server.asked) == 1 + len(others) + 3


def test_errors_are_not_cached(chat: Starts) -> None:
    server = chat({"status": 400, "body": "{}"}, {"text": ""}, {"text": "fine"})
    for _ in range(2):
        with pytest.raises(BadAnswer if len(server.asked) else BadRequest):
            complete(server.model)
    assert complete(server.model).text == "fine"


def test_a_file_stores_the_replies_of_a_pinned_model_wherever_it_answers(chat: Starts, tmp_path: Path) -> None:
    first, second = chat({"text": "one"}, {"text": "two"}), chat({"text": "three"}, {"text": "four"})
    pinned = replace(first.model, cache=tmp_path / "replies.db")
    assert [complete(pinned).text, complete(replace(pinned, url=second.url)).text] == ["one", "one"]
    unpinned = replace(pinned, version=None)
    assert [complete(unpinned).text, complete(replace(unpinned, url=second.url)).text] == ["two", "three"]
    assert [complete(replace(pinned, cache=False)).text for _ in range(2)] != ["one", "one"]


@task
def ask_model(question: str) -> str:
    """Asks the model of the test; runs give its url."""
    url, text = question.split(" ", 1)
    return ChatModel(url, "small", cache=CACHE[0]).complete([{"role": "user", "content": text}]).text


CACHE: list[Any] = [True]


def run_on(server: Chat, *, replications: int = 1, rows: int = 1, runner: Runner | None = None, **options: Any) -> Run:
    data = Dataset.from_rows([{"input": f"{server.url} Hello"}] * rows)
    runner = runner or Runner(policy=Policy(concurrency=1))
    return runner.run(ask_model, data, replications=replications, **options)


def test_a_run_makes_each_of_its_calls_so_that_it_shows_what_they_took(chat: Starts) -> None:
    server = chat(*({"text": f"reply {number}"} for number in range(9)))
    assert len({row.responses[0] for row in run_on(server, replications=3, rows=2)}) == 6
    assert len(server.asked) == 6


def test_a_cache_that_was_chosen_repeats_no_replication_and_no_attempt(
    chat: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.CACHE", [tmp_path / "replies.db"])
    server = chat(*({"text": f"reply {number}"} for number in range(9)))
    runner = Runner(policy=Policy(concurrency=1))
    first = [row.responses[0] for row in run_on(server, replications=2, rows=2, runner=runner)]
    assert first == ["reply 0", "reply 1"] * 2  # the second row asks what the first has asked
    again = [row.responses[0] for row in run_on(server, replications=2, rows=2, runner=runner, fresh=True)]
    assert again == ["reply 2", "reply 3"] * 2
    with repetition(1, 1):
        assert complete(
            ChatModel(server.url, "small", cache=CACHE[0]), [{"role": "user", "content": "Hello"}]
        ).is_cached


# Repeats and limits


def test_requests_of_coroutines_are_repeated_alone_by_the_policy_of_the_run(chat: Starts) -> None:
    busy = {"status": 503, "body": "{}"}
    server = chat({"text": "first"}, busy, busy, {"text": "second"})

    @task
    async def twice(input: str) -> str:
        one = await server.model.complete_async([{"role": "user", "content": "One"}])
        two = await server.model.complete_async([{"role": "user", "content": "Two"}])
        return f"{one.text} {two.text}"

    made = Runner(policy=Policy(retries=2, backoff=0)).run(twice, Dataset.from_rows([{"input": "x"}]))
    assert [(row.status, row.responses) for row in made] == [("completed", ["first second"])]
    assert [body["messages"][0]["content"] for body in server.bodies] == ["One", "Two", "Two", "Two"]
    assert made.table()["attempts"].to_pylist() == [3]


def test_models_with_one_address_and_rate_share_their_limit() -> None:
    one = ChatModel("http://127.0.0.1:1/v1", "small", rate="7/min")
    assert one._rate is replace(one, temperature=1.0)._rate
    assert one._rate is not replace(one, name="large")._rate
    assert one._rate is not replace(one, rate="8/min")._rate


# Names of models


def test_a_model_is_named_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    found = {
        name: (model.url, model.name, model.api_key)
        for name in ("openai/gpt-5-mini", "ollama/llama3.2", "azure/dep", "http://h:9/v1#m", "openrouter/meta/llama")
        for model in (ChatModel.of(name),)
    }
    assert found == {
        "openai/gpt-5-mini": ("https://api.openai.com/v1", "gpt-5-mini", "OPENAI_API_KEY"),
        "ollama/llama3.2": ("http://127.0.0.1:11434/v1", "llama3.2", None),
        "azure/dep": ("https://mine.openai.azure.com/openai/v1", "dep", "AZURE_OPENAI_API_KEY"),
        "http://h:9/v1#m": ("http://h:9/v1", "m", None),
        "openrouter/meta/llama": ("https://openrouter.ai/api/v1", "meta/llama", "OPENROUTER_API_KEY"),
    }
    assert ChatModel.of({"model": "openai/x", "api_key": "OTHER", "version": "1"}).api_key == "OTHER"
    model = ChatModel("http://h/v1", "m")
    assert ChatModel.of(model) is model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("gpt-5", "model 'gpt-5': write PROVIDER/NAME, such as openai/gpt-5-mini, or URL#NAME"),
        ("opnai/gpt-5", "there is no provider 'opnai' .did you mean 'openai'"),
        ("http://h/v1", "add the name of the model there, as in http://h/v1#NAME"),
        (3, "a model is a number; give PROVIDER/NAME"),
        ({"url": "http://h/v1"}, "name: is missing"),
        (
            {"url": "http://h/v1", "name": "m", "temprature": 1},
            "temprature: is no parameter .did you mean 'temperature'",
        ),
        ("azure/m", "set the environment variable AZURE_OPENAI_ENDPOINT"),
    ],
)
def test_what_names_no_model_is_refused(model: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(SpecError, match=message):
        ChatModel.of(model)


def test_files_may_name_a_model_in_short() -> None:
    read = TypeAdapter(ChatModel)
    assert read.validate_python("ollama/x") == ChatModel.of("ollama/x")
    assert read.validate_python({"model": "ollama/x", "rate": "9/s"}).rate == "9/s"
    with pytest.raises(ValidationError, match="temprature"):
        read.validate_python({"model": "ollama/x", "temprature": 1})
    schema = read.json_schema()
    for valid in ("ollama/x", {"url": "http://h/v1", "name": "m", "rate": "9/s", "cache": "replies.db"}):
        jsonschema.validate(valid, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"url": "http://h/v1", "name": "m", "temprature": 1}, schema)


def test_all_faults_of_a_model_are_reported_at_once() -> None:
    with pytest.raises(ParameterError) as raised:
        ChatModel(
            "http://h/v1",
            "m",
            protocol="responses",
            seed=1,
            rate="often",
            cache=3,  # type: ignore[arg-type]
            max_tokens=0,
            parameters={"stream": True},
        )
    assert [place for place, _ in raised.value.faults] == [
        ("max_tokens",),
        ("seed",),
        ("rate",),
        ("cache",),
        ("parameters", "stream"),
    ]


def test_the_identity_of_a_model_without_new_settings_is_that_of_before() -> None:
    model = ChatModel("http://h/v1", "m", version="1")
    assert {*model.spec} == {"behaviour", "model", "version", "temperature", "max_tokens", "parameters", "cut_off"}
    for change in ({"seed": 1}, {"reasoning_effort": "low"}, {"protocol": "responses"}):
        assert replace(model, **change).spec != model.spec  # type: ignore[arg-type]
    for same in ({"url": "http://i/v1"}, {"api_key": "K"}, {"rate": "1/s"}, {"cache": False}, {"timeout": 1.0}):
        assert replace(model, **same).spec == model.spec  # type: ignore[arg-type]


def test_the_keys_of_known_services_go_to_their_hosts_only() -> None:
    for name, endpoint in ENDPOINTS.items():
        if endpoint.api_key is None or name == "azure":
            continue
        assert refusal(endpoint.api_key, endpoint.url, permissions()) is None, name
        assert refusal(endpoint.api_key, "https://elsewhere.example/v1", permissions()) is not None


def test_swapped_arguments_are_shown_as_they_were_written() -> None:
    with pytest.raises(ParameterError) as raised:
        ChatModel("tooly", "http://127.0.0.1:8000/v1")
    assert str(raised.value) == (
        "url: is 'tooly'; give the endpoint up to its version, such as https://models.example/v1"
    )
    with pytest.raises(ParameterError, match="url: is no URL; give the endpoint") as raised:
        ChatModel("user:hunter2@models.example", "small")
    assert "hunter2" not in str(raised.value)


def test_a_missing_key_is_named_as_the_parameter_that_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMALL_KEY", raising=False)
    model = ChatModel("http://127.0.0.1:9/v1", "small", api_key="SMALL_KEY")
    for act in (model.check, lambda: complete(model)):
        with pytest.raises(SpecError) as raised:
            act()
        assert str(raised.value) == "api_key: the environment variable SMALL_KEY is not set"


def test_a_version_that_is_a_number_is_refused() -> None:
    with pytest.raises(ParameterError, match=r'^version: is a number; give text in quotes, such as "1"$'):
        ChatModel("http://127.0.0.1:9/v1", "small", version=1)  # type: ignore[arg-type]


def test_without_the_client_library_the_extra_of_models_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(SpecError, match=r"asking a model needs an HTTP client: pip install 'evaluand\[llm\]'"):
        complete(ChatModel("http://127.0.0.1:9/v1", "small"))


@pytest.mark.parametrize(
    ("status", "body", "stops"),
    [
        (402, {"error": {"message": "pay"}}, True),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, True),
        (429, {"error": {"code": "rate_limit_exceeded", "message": "Slow down; insufficient tokens left"}}, False),
        (429, {"error": {"message": "Insufficient balance"}}, True),
        (400, {"error": {"message": "Your credit balance is too low to access the API."}}, True),
        (400, {"error": {"message": "cannot read LunchPerDay.png"}}, False),
        (
            422,
            {"error": {"message": 'not {"code": "insufficient_quota"}: Your credit balance is too low'}},
            False,
        ),
        (500, {"error": {"message": "Insufficient funds"}}, False),
    ],
)
def test_only_a_spent_quota_stops(chat: Starts, status: int, body: dict[str, Any], stops: bool) -> None:
    with pytest.raises(TaskError) as raised:
        complete(chat({"status": status, "body": json.dumps(body)}).model)
    assert getattr(raised.value, "stops", False) is stops
    assert ("the quota of this key is spent" in str(raised.value)) is stops


def test_an_empty_word_for_the_ending_is_none(chat: Starts) -> None:
    body = {"choices": [{"finish_reason": "", "message": {"content": "Paris"}}]}
    with pytest.warns(EvaluandWarning, match="does not say how its replies end"):
        assert complete(chat({"body": json.dumps(body)}).model).text == "Paris"


@pytest.mark.parametrize(
    ("name", "temperature"),
    [
        ("claude-haiku-4-5", 0.0),
        ("claude-3-5-haiku-latest", 0.0),
        ("claude-sonnet-4-20250514", 0.0),
        ("claude-opus-4-8", None),
        ("claude-opus-5", None),
    ],
)
def test_models_that_take_a_temperature_get_one(name: str, temperature: float | None) -> None:
    model = ChatModel.of(f"anthropic/{name}")
    assert (model.temperature, model.max_tokens) == (temperature, 512)
