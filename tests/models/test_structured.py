"""Structured output: which steps are taken, what counts as data, and what is sent for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel
from support.chats import Chat

from evaluand.core.errors import SpecError, TransientError
from evaluand.data.schema.values import ValueSchema
from evaluand.engine.http import BadRequest
from evaluand.models.completion import CutOff, UnusableReply
from evaluand.models.structured import Structure
from evaluand.models.tools import Tool
from evaluand.models.usage import spending

Starts = Callable[..., Chat]

ASKED = [{"role": "user", "content": "How many legs has a cat?"}]
SCHEMA = {
    "type": "object",
    "properties": {"legs": {"type": "integer"}, "sure": {"type": "boolean"}},
    "required": ["legs", "sure"],
    "additionalProperties": False,
}
FITTING = {"legs": 4, "sure": True}
FITS = {"text": json.dumps(FITTING)}
PROSE = {"text": "A cat has four legs."}
NO_FORM = {"status": 400, "body": '{"error": {"message": "response_format is not supported"}}'}
PROTOCOLS = pytest.mark.parametrize("protocol", ["chat", "responses"])


def form_of(body: dict[str, Any]) -> str:
    """The form that a request asks the server to enforce."""
    form = body.get("response_format") or body.get("text", {}).get("format") or {}
    return form.get("type") or ("tool" if "tool_choice" in body else "text")


@PROTOCOLS
def test_a_server_that_enforces_the_schema_is_asked_once(chat: Starts, protocol: Any) -> None:
    server = chat(FITS)
    found = replace(server.model, protocol=protocol).complete(ASKED, schema=SCHEMA)
    assert (found.data, found.fault, found.steps) == (FITTING, None, {"schema": 1})
    [body] = server.bodies
    described = body["response_format"]["json_schema"] if protocol == "chat" else body["text"]["format"]
    assert (described["name"], described["schema"], described["strict"]) == ("reply", SCHEMA, True)
    assert (body.get("messages") or body["input"]) == ASKED


@PROTOCOLS
def test_a_server_is_asked_for_what_it_can_and_this_is_remembered(chat: Starts, protocol: Any) -> None:
    called = {"tool_calls": [{"name": "reply", "arguments": FITS["text"]}]}
    server = chat(NO_FORM, NO_FORM, called, called)
    model = replace(server.model, protocol=protocol)
    with spending() as spent:
        first = model.complete(ASKED, schema=SCHEMA)
    assert (first.data, first.steps) == (FITTING, {"schema": 1, "json": 1, "tool": 1})
    assert first.text == FITS["text"]
    assert (spent.n_requests, spent.n_failed) == (3, 2)
    second = model.complete(ASKED, schema=SCHEMA, sample=1)
    assert second.steps == {"tool": 1}
    assert [form_of(body) for body in server.bodies] == ["json_schema", "json_object", "tool", "tool"]
    assert json.dumps(SCHEMA, separators=(",", ":")) in json.dumps(server.bodies[1]).replace("\\", "")


def test_the_reply_is_the_arguments_of_the_tool_whatever_is_said_with_them(chat: Starts) -> None:
    talks = {"text": "Let me think: {}. It has four.", "tool_calls": [{"name": "reply", "arguments": FITS["text"]}]}
    found = chat(NO_FORM, NO_FORM, talks).model.complete(ASKED, schema=SCHEMA)
    assert (found.data, found.text, found.steps) == (FITTING, FITS["text"], {"schema": 1, "json": 1, "tool": 1})


def test_without_any_form_the_model_is_told_and_corrected_once(chat: Starts) -> None:
    off = {"text": 'Here you are: {"legs": "four", "sure": true}'}
    server = chat(NO_FORM, NO_FORM, NO_FORM, off, FITS)
    found = server.model.complete(ASKED, schema=SCHEMA)
    assert (found.data, found.steps) == (FITTING, {"schema": 1, "json": 1, "tool": 1, "text": 1, "repair": 1})
    *_, told, corrected = (body["messages"] for body in server.bodies)
    assert told[0]["content"].startswith("How many legs has a cat?\n\nReply with JSON only")
    assert corrected[1] == {"role": "assistant", "content": off["text"]}
    assert "reply.legs is text ('four'), not an integer" in corrected[2]["content"]
    read = [len(" ".join(message["content"] for message in messages).split()) for messages in (told, corrected)]
    assert found.input_tokens == pytest.approx(sum(read), abs=2)
    assert found.output_tokens == len(off["text"].split()) + len(FITS["text"].split())


def test_a_reply_that_never_fits_leaves_no_data_and_says_why(chat: Starts) -> None:
    server = chat(*[PROSE] * 5)
    found = server.model.complete(ASKED, schema=SCHEMA)
    assert (found.data, found.text, found.fault) == (None, PROSE["text"], "it has no JSON")
    assert found.steps == {"schema": 1, "json": 1, "tool": 1, "text": 1, "repair": 1}


def test_a_server_that_ignores_forms_is_not_asked_for_them_again(chat: Starts) -> None:
    server = chat(PROSE, PROSE, PROSE, FITS, FITS)
    assert server.model.complete(ASKED, schema=SCHEMA).data == FITTING
    assert server.model.complete(ASKED, schema=SCHEMA, sample=1).steps == {"text": 1}


def test_a_server_that_enforced_a_form_once_is_asked_for_it_whatever_it_replies_later(chat: Starts) -> None:
    server = chat(FITS, PROSE, FITS, FITS)
    steps = [server.model.complete(ASKED, schema=SCHEMA, sample=sample).steps for sample in range(3)]
    assert steps == [{"schema": 1}, {"schema": 1, "json": 1}, {"schema": 1}]


def test_a_reply_that_was_cut_off_is_not_asked_for_in_other_ways(chat: Starts) -> None:
    server = chat({"text": '{"legs": 4, "su', "finish_reason": "length"})
    found = replace(server.model, cut_off="keep").complete(ASKED, schema=SCHEMA)
    assert (found.data, found.fault) == (None, "the reply was cut off: it has a { that is not closed")
    assert len(server.asked) == 1
    with pytest.raises(CutOff):
        chat({"text": "{", "finish_reason": "length"}).model.complete(ASKED, schema=SCHEMA)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"refusal": "No."}, UnusableReply),
        ({"status": 401, "body": "{}"}, BadRequest),
        ({"status": 503, "body": "{}"}, TransientError),
    ],
)
def test_other_errors_are_raised_at_once(chat: Starts, reply: dict[str, Any], error: type[Exception]) -> None:
    server = chat(reply)
    with pytest.raises(error):
        server.model.complete(ASKED, schema=SCHEMA)
    assert len(server.asked) == 1


def test_a_refusal_of_every_form_is_raised_and_not_remembered(chat: Starts) -> None:
    server = chat(*[{"status": 400, "body": '{"error": "context too long"}'}] * 4, FITS)
    with pytest.raises(BadRequest, match="context too long"):
        server.model.complete(ASKED, schema=SCHEMA)
    assert server.model.complete(ASKED, schema=SCHEMA).steps == {"schema": 1}


def test_a_model_with_tools_may_call_one_instead(chat: Starts) -> None:
    call = {"tool_calls": [{"name": "count", "arguments": "{}"}]}
    server = chat(call, NO_FORM, NO_FORM, FITS)
    tool = Tool("count", "Counts legs.", {"type": "object", "properties": {}})
    first = server.model.complete(ASKED, schema=SCHEMA, tools=[tool])
    assert (first.data, first.fault, first.tool_calls[0].name) == (None, None, "count")
    second = server.model.complete(ASKED, schema=SCHEMA, tools=[tool], sample=1)
    assert (second.data, second.steps) == (FITTING, {"schema": 1, "json": 1, "text": 1})


def test_a_list_is_asked_for_as_text(chat: Starts) -> None:
    server = chat({"text": '["a", "b"]'})
    found = server.model.complete(ASKED, schema=list[str])
    assert (found.data, found.steps) == (["a", "b"], {"text": 1})


def test_each_request_of_the_steps_is_cached(chat: Starts) -> None:
    server = chat(FITS)
    found = [server.model.complete(ASKED, schema=SCHEMA) for _ in range(2)]
    assert [(one.data, one.is_cached) for one in found] == [(FITTING, False), (FITTING, True)]
    assert len(server.asked) == 1


# What is data


class Legs(BaseModel):
    legs: Literal[2, 4]
    name: str | None = None


@pytest.mark.parametrize("schema", [Legs, ValueSchema(Legs), Legs.model_json_schema()])
def test_schemas_may_have_any_form(schema: Any) -> None:
    structure = Structure.of(schema)
    assert structure.json_schema["type"] == "object"
    assert not structure.form.is_strict  # a field may be missing
    assert structure.read('{"legs": 4}') == ({"legs": 4}, "")
    assert structure.read('{"legs": 3}') == (None, "reply.legs 3 is none of 2, 4")
    assert Structure.of(structure) is structure
    with pytest.raises(SpecError):
        Structure.of({"type": "nothing"})


@pytest.mark.parametrize(
    ("reply", "data", "fault"),
    [
        ('{"legs": 4}', {"legs": 4}, ""),
        (' \n{"legs": 4}\n', {"legs": 4}, ""),
        ('```json\n{"legs": 4}\n```', {"legs": 4}, ""),
        ('Sure!\n```\n{"legs": 4}\n```\nAnything else?', {"legs": 4}, ""),
        ('As [1] says, {"legs": 4} it is.', {"legs": 4}, ""),
        ('{"legs": 2} or rather {"legs": 4}', None, "it has several JSON values that fit"),
        ('{"legs": 4} and again {"legs": 4}', {"legs": 4}, ""),
        ('{"legs": 4, "legs": 2}', None, "it has the key 'legs' twice"),
        ('I say {"legs": 4, "legs": 2}', None, "it has the key 'legs' twice"),
        ('{"legs": NaN}', None, "it has the number NaN, which JSON does not know"),
        ('{"legs": 4', None, "it has a { that is not closed"),
        ('{"arms": {"legs": 4}', None, "it has a { that is not closed"),
        ('{"arms": {"legs": 4},}', None, "it has no JSON"),
        ("four", None, "it has no JSON"),
        ("", None, "it has no JSON"),
        ("[" * 100_000, None, "it has a [ that is not closed"),
        ("4", None, "reply is an integer (4), not an object"),
        ('{"arms": 4}', None, "reply.legs is missing; reply.arms is not a field"),
    ],
)
def test_data_are_read_from_what_is_around_them_unless_they_are_in_doubt(reply: str, data: Any, fault: str) -> None:
    assert Structure.of(Legs).read(reply) == (data, fault)


@given(st.text(max_size=40).filter(lambda text: not {*text} & {*"{}[]`"}), st.integers(-9, 9), st.text(max_size=9))
def test_what_was_written_is_read_whatever_is_said_around_it(said: str, number: int, word: str) -> None:
    data = {"n": number, "word": word}
    structure = Structure.of({"type": "object", "properties": {"n": {"type": "integer"}, "word": {"type": "string"}}})
    assert structure.read(f"{said}{json.dumps(data)}{said}") == (data, "")
