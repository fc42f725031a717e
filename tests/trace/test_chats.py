"""Conversations read from the requests of a trace."""

from __future__ import annotations

from typing import Any

import pytest

from evaluand.trace.chats import ToolUse, Turn, read_chats as read_thoughtful_chats

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How many?"}]
CALL = {"id": "c", "type": "function", "function": {"name": "count", "arguments": '{"of": "it"}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "4"}


def read_chats(requests: list[tuple[Any, Any]]) -> list[list[Turn]]:
    """The conversations of models that do not show what they think."""
    return read_thoughtful_chats((input, output, None) for input, output in requests)


def test_a_request_and_its_reply_are_a_conversation() -> None:
    assert read_chats([(ASKED, "Four.")]) == [
        [Turn("system", "Be brief."), Turn("user", "How many?"), Turn("assistant", "Four.")]
    ]


def test_calls_of_tools_hold_their_results() -> None:
    [chat] = read_chats([(ASKED, CALLING), ([*ASKED, CALLING, RESULT], "Four.")])
    assert chat[2:] == [Turn("assistant", "", (ToolUse("count", '{"of": "it"}', "4"),)), Turn("assistant", "Four.")]
    [unanswered] = read_chats([(ASKED, CALLING)])
    assert unanswered[2].tools == (ToolUse("count", '{"of": "it"}', None),)
    [alone] = read_chats([([*ASKED, RESULT], None)])
    assert alone[2] == Turn("tool", "4")


def test_requests_that_do_not_continue_another_are_conversations_of_their_own() -> None:
    other = [{"role": "user", "content": "Why?"}]
    again = [*ASKED, {"role": "assistant", "content": "Four."}, {"role": "user", "content": "Sure?"}]
    chats = read_chats([(ASKED, "Four."), (other, "Because."), (again, "Yes.")])
    assert [[turn.text for turn in chat] for chat in chats] == [
        ["Be brief.", "How many?", "Four.", "Sure?", "Yes."],
        ["Why?", "Because."],
    ]


def test_a_repeated_request_is_shown_once() -> None:
    assert len(read_chats([(ASKED, None), (ASKED, None), (ASKED, "Four.")])) == 1
    assert read_chats([(ASKED, None), (ASKED, "Four.")])[0][-1].text == "Four."


@pytest.mark.parametrize(
    ("input", "texts"),
    [
        ("How many?", ["How many?", "4"]),
        ({"messages": ASKED, "model": "m"}, ["Be brief.", "How many?", "4"]),
        (
            [{"role": "user", "content": [{"type": "text", "text": "This:"}, {"type": "image", "image": "data:…"}]}],
            ["This:\n[image]", "4"],
        ),
        ([{"role": "user", "content": {"a": [1]}}], ['{"a":[1]}', "4"]),
    ],
)
def test_messages_come_in_several_forms(input: Any, texts: list[str]) -> None:
    assert [[turn.text for turn in chat] for chat in read_chats([(input, "4")])] == [texts]


@pytest.mark.parametrize("input", [None, [], 4, {"question": "a"}, ["a"], [{"content": "a"}]])
def test_inputs_that_are_no_messages_are_left_out(input: Any) -> None:
    assert read_chats([(input, "4")]) == []


@pytest.mark.parametrize(
    "thinking",
    [
        {"content": "Three.", "reasoning_content": "Two? No."},
        {"content": "Three.", "reasoning": "Two? No."},
        {"content": [{"type": "thinking", "thinking": "Two? No."}, {"type": "text", "text": "Three."}]},
    ],
)
def test_what_a_model_thought_is_apart_from_what_it_said(thinking: dict[str, Any]) -> None:
    turns = [*ASKED, {"role": "assistant", **thinking}, {"role": "user", "content": "Sure?"}]
    [chat] = read_thoughtful_chats([(turns, "Yes.", "Quite.")])
    assert [turn.reasoning for turn in chat] == [None, None, "Two? No.", None, "Quite."]
    assert chat[2].text == "Three."


def test_results_of_an_id_that_comes_again_are_those_of_the_calls_before_them() -> None:
    turns = [*ASKED, CALLING, RESULT, CALLING, {**RESULT, "content": "5"}]
    [chat] = read_chats([(turns, "Nine.")])
    assert [tool.result for turn in chat for tool in turn.tools] == ["4", "5"]
    both = [*ASKED, {**CALLING, "tool_calls": [CALL, CALL]}, RESULT, {**RESULT, "content": "5"}]
    [chat] = read_chats([(both, "Nine.")])
    assert [tool.result for turn in chat for tool in turn.tools] == ["4", "5"]
