"""Chats as tasks: prompts from templates, examples, earlier turns, tools and data, asked over a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.chats import Chat

from evaluand import ChatTask, Dataset, Policy, Runner, TaskError, TransientError
from evaluand.core.errors import EvaluandWarning, ParameterError, Skipped
from evaluand.models.chat_model import ChatModel
from evaluand.models.tools import Tool
from evaluand.run.runner import Run
from evaluand.run.tasks.conversation import FewShot
from evaluand.store.store import MemoryStore
from evaluand.trace import span

MODEL = ChatModel("http://127.0.0.1:1/v1", "small", version="1")
ROWS = [{"question": "One? Really.", "answer": "1"}, {"question": "Two? Really.", "answer": "2"}]
TIMES = {"role": "user", "content": "Earlier?"}, {"role": "assistant", "content": "Yes."}


PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(8)
ADDRESS = "https://example.org/cat.png"


def calling(*calls: tuple[str, Any], text: str | None = None) -> dict[str, Any]:
    """A reply that asks for calls of tools: names and arguments, as data or as the text of the model."""
    asked = [{"name": n, "arguments": given if isinstance(given, str) else json.dumps(given)} for n, given in calls]
    return {"tool_calls": asked, "text": text}


def conversations(server: Chat) -> list[list[tuple[str, Any]]]:
    """Role and content of the messages of each request."""
    return [[(said["role"], said.get("content")) for said in body["messages"]] for body in server.bodies]


def data(rows: Any = ROWS, **roles: Any) -> Dataset:
    return Dataset.from_rows(rows, **{"input": "question", "expected": "answer"} | roles)


def run(task: ChatTask, rows: Any = ROWS, store: MemoryStore | None = None, **roles: Any) -> Run:
    return Runner(store or MemoryStore(), Policy(concurrency=1, retries=0)).run(task, data(rows, **roles))


def outcomes(run: Run) -> list[Any]:
    """The response of each row, or code and message of its error."""
    return [
        (row.error["code"], row.error["message"]) if row.error else row.responses[0] if row.responses else None
        for row in run
    ]


def spans(run: Run, kind: str) -> list[dict[str, Any]]:
    return [each for batch in run.spans() for each in batch.to_pylist() if each["kind"] == kind]


def faults(**parameters: Any) -> list[str]:
    with pytest.raises(ParameterError) as error:
        ChatTask(MODEL, **parameters)
    return [f"{'.'.join(map(str, place))}: {message}" for place, message in error.value.faults]


# Prompts


def test_a_prompt_is_filled_with_the_columns_of_the_row(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "1"}, {"text": "2"})
    task = ChatTask(server.model, prompt="Answer {{ question }} in one word.", system="You know {{ input | length }}.")
    assert outcomes(run(task)) == ["1", "2"]
    assert conversations(server) == [
        [("system", "You know 12."), ("user", "Answer One? Really. in one word.")],
        [("system", "You know 12."), ("user", "Answer Two? Really. in one word.")],
    ]


def test_several_input_columns_are_values_by_name(chat: Callable[..., Chat]) -> None:
    server = chat()
    task = ChatTask(server.model, prompt="{{ question }} {{ input.hint }}{{ note or '' }}")
    rows = [{"question": "Q", "hint": "h", "note": None, "answer": "a"}]
    run(task, rows, input=["question", "hint", "note"])
    assert conversations(server) == [[("user", "Q h")]]


def test_without_a_prompt_the_input_is_sent(chat: Callable[..., Chat]) -> None:
    server = chat()
    run(ChatTask(server.model), ROWS[:1])
    assert conversations(server) == [[("user", "One? Really.")]]


def test_messages_may_be_several(chat: Callable[..., Chat]) -> None:
    server = chat()
    said = [("user", "{{ question }}"), ("assistant", "Sure?"), ("system", "Be brief."), ("user", "Yes. Go on.")]
    run(ChatTask(server.model, messages=[{"role": r, "content": c} for r, c in said]), ROWS[:1])
    roles = [("system", "Be brief."), ("user", "One? Really."), ("assistant", "Sure?"), ("user", "Yes. Go on.")]
    assert conversations(server) == [roles]


def test_a_value_that_is_null_fails_its_row_before_anything_is_asked(chat: Callable[..., Chat]) -> None:
    server = chat()
    rows = [{"question": "Q.", "hint": None, "answer": "a"}, {"question": "Q.", "hint": "h", "answer": "a"}]
    found = outcomes(run(ChatTask(server.model, prompt="{{ hint }}"), rows, input=["question", "hint"]))
    assert found == [("template", 'a value is null; write {{ VALUE or "" }} if it may be'), "h"]
    assert len(server.asked) == 1


def test_prompts_are_read_from_files(chat: Callable[..., Chat], tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "long.txt").write_text("\ufeffThink.\n\n{{ question }}\n", encoding="utf-8")
    server = chat()
    run(ChatTask(server.model, prompt="file:prompts/long.txt", folder=str(tmp_path)), ROWS[:1])
    assert conversations(server) == [[("user", "Think.\n\nOne? Really.")]]


UNANSWERED = "the reply has no answer after its reasoning; raise max_tokens (512), or let the model think less"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<think>Could be Paris. Hmm, no.</think>\n\nLyon", "Lyon"),
        ("Could be Paris. Hmm, no.\n</think>\n\nLyon", "Lyon"),
        ("\n<thinking>Paris?</thinking><think>No.</think>Lyon", "Lyon"),
        ("[THINK]Paris?[/THINK] Lyon", "Lyon"),
        ("Lyon, I <think> so", "Lyon, I <think> so"),
        ("a `</reasoning>` tag", "a `</reasoning>` tag"),
        ("<think>It could be Paris, or", ("reasoning", UNANSWERED)),
        ("<think>Paris.</think>\n", ("reasoning", UNANSWERED)),
        ({"text": "Par", "finish_reason": "MAX_TOKENS"}, "length"),
        ({"text": "Par", "finish_reason": "model_length"}, "length"),
        ({"text": "Par", "finish_reason": "error"}, "ending"),
        ({"text": "Par", "finish_reason": "network_error"}, "ending"),
        ({"text": "Par", "finish_reason": "SAFETY"}, "content_filter"),
        ({"text": "Paris", "finish_reason": "end_turn"}, "Paris"),
        ({"text": "Paris", "finish_reason": "STOP"}, "Paris"),
    ],
)
def test_reasoning_is_no_part_of_an_answer_and_an_unfinished_reply_fails_its_row(
    chat: Callable[..., Chat], reply: Any, answer: Any
) -> None:
    server = chat(reply if isinstance(reply, dict) else {"text": reply})
    [found] = outcomes(run(ChatTask(server.model), ROWS[:1]))
    assert (found[0] if isinstance(found, tuple) and isinstance(answer, str) else found) == answer


def test_a_reply_of_which_the_server_does_not_say_how_it_ended_is_complete_with_a_note(
    chat: Callable[..., Chat],
) -> None:
    server = chat({"text": "Paris", "finish_reason": None})
    with pytest.warns(EvaluandWarning, match=r"small: the server does not say how its replies end"):
        assert outcomes(run(ChatTask(server.model), ROWS[:1])) == ["Paris"]


def test_a_changed_prompt_asks_again_and_an_unchanged_one_does_not(chat: Callable[..., Chat], tmp_path: Path) -> None:
    server, store, prompt = chat(), MemoryStore(), tmp_path / "prompt.txt"
    for text, requests in (("{{ question }}", 2), ("{{ question }}", 2), ("Really: {{ question }}", 4)):
        prompt.write_text(text)
        made = run(ChatTask(server.model, prompt="file:prompt.txt", folder=str(tmp_path)), store=store)
        assert len(server.asked) == requests
    assert made.manifest["provenance"]["parts"]["messages"] == '[{"content":"Really: {{ question }}","role":"user"}]'


def test_all_faults_of_a_task_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("a\n{% if x %}")
    (tmp_path / "bytes.txt").write_bytes(b"\xff")
    (tmp_path / "empty.txt").write_text(" \n")
    found = faults(prompt="{{ x | nofilter }}", system="file:nothing.txt", folder=str(tmp_path))
    assert found == [
        f"system: {tmp_path / 'nothing.txt'}: no such file",
        "prompt: no filter is called 'nofilter'",
    ]
    assert faults(prompt="file:bad.txt", folder=str(tmp_path))[0].startswith("prompt: bad.txt:2: not a Jinja template")
    assert faults(prompt="file:bytes.txt", folder=str(tmp_path)) == [
        "prompt: bytes.txt: byte 0 is not UTF-8; save it as UTF-8"
    ]
    assert faults(prompt="file:empty.txt", folder=str(tmp_path)) == ["prompt: is empty"]
    assert faults(prompt="a", messages=[{"role": "robot", "content": 1}, {"role": "user"}], max_turns=0) == [
        "max_turns: is the integer 0; give an integer of at least 1",
        "prompt: and messages exclude each other; make it the last of the messages",
        "messages.0.role: is 'robot'; give system, developer, user, assistant",
        "messages.0.content: is a number; give text",
        "messages.1: is no message; give role and content",
    ]


def test_templates_are_checked_against_the_dataset_before_anything_is_asked(chat: Callable[..., Chat]) -> None:
    server = chat()
    task = ChatTask(server.model, prompt="{{ qestion }} {question}", system="{{ answer }} {{ hint }}", history="turns")
    rows = [{"question": "Q", "answer": "a", "hint": "h"}]
    with pytest.raises(ParameterError) as error:
        run(task, rows, metadata="hint")
    assert [(place, message) for place, message in error.value.faults] == [
        (("history",), "there is no value 'turns'; known: question, input"),
        (("system",), "there is no value 'answer'; this column is the expected answer, which tasks do not see"),
        (("system",), "there is no value 'hint'; tasks see this column with input: [question, hint]"),
        (("prompt",), "there is no value 'qestion' (did you mean 'question'?); known: question, input"),
        (("prompt",), "{question} would be sent as it is; write {{ question }}"),
    ]
    assert not server.asked


def test_inputs_that_are_objects_give_their_keys_as_values(chat: Callable[..., Chat]) -> None:
    server = chat()
    rows = [{"question": {"text": "Why?", "of": "it"}, "answer": "a"}]
    run(ChatTask(server.model, prompt="{{ text }} {{ of }} {{ input.text }}"), rows)
    assert conversations(server) == [[("user", "Why? it Why?")]]
    view = [{"kind": "Rename", "configuration": {"question": "q"}}]
    task = ChatTask(server.model, prompt="{{ q.text }}")
    Runner().run(task, data(rows).view(view))
    assert conversations(server)[1] == [("user", "Why?")]


# Examples and earlier turns


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    rows = [{"question": f"{n}?", "answer": n, "level": n % 2} for n in range(6)]
    (tmp_path / "shots.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def few(folder: Path, prompt: str = "Q: {{ question }}", **chosen: Any) -> ChatTask:
    examples = FewShot("shots.jsonl", input="question", expected="answer", **chosen)
    return ChatTask(MODEL, prompt=prompt, system="Count.", examples=examples, folder=str(folder))


def test_examples_are_asked_and_answered_first(shots: Path) -> None:
    assert [(said["role"], said["content"]) for said in few(shots, n=2).make_messages("9?")] == [
        ("system", "Count."),
        ("user", "Q: 0?"),
        ("assistant", "0"),
        ("user", "Q: 1?"),
        ("assistant", "1"),
        ("user", "Q: 9?"),
    ]


def test_a_template_may_write_the_examples_itself(shots: Path) -> None:
    task = few(
        shots, "{% for one in examples %}\n{{ one.question }}={{ one.answer }}\n{% endfor %}\n{{ question }}", n=2
    )
    assert [said["content"] for said in task.make_messages("9?")] == ["Count.", "0?=0\n1?=1\n9?"]


def test_the_example_that_asks_the_same_as_the_row_is_left_out(shots: Path) -> None:
    asked = [said["content"] for said in few(shots, n=3).make_messages("1?") if said["role"] == "user"]
    assert asked == ["Q: 0?", "Q: 2?", "Q: 1?"]


def test_the_same_question_is_left_out_where_a_template_writes_the_examples(shots: Path) -> None:
    task = few(shots, "{% for one in examples %}{{ one.question }}={{ one.answer }} {% endfor %}{{ question }}", n=3)
    assert task.make_messages("1?")[-1]["content"] == "0?=0 2?=2 1?"


def test_the_same_question_is_left_out_where_the_row_has_further_values(shots: Path) -> None:
    messages = few(shots, "{{ question }} Row {{ number | default('') }}", n=2).make_messages(
        {"question": "1?", "number": 5}
    )
    assert [said["content"] for said in messages] == ["Count.", "0? Row ", "0", "1? Row 5"]


def test_examples_are_chosen_by_a_condition_or_drawn_by_a_seed(shots: Path) -> None:
    def answers(**chosen: Any) -> list[str]:
        return [m["content"] for m in few(shots, **chosen).make_messages("9?") if m["role"] == "assistant"]

    assert answers(where="level == 1") == ["1", "3", "5"]
    draws = [answers(n=3, seed=seed) for seed in range(9)]
    assert draws[0] == answers(n=3, seed=0)
    assert len({tuple(draw) for draw in draws}) > 3
    assert answers(n=2, seed=0) == draws[0][:2]


def test_each_row_may_have_examples_of_its_own_which_never_ask_the_same(shots: Path) -> None:
    task = few(shots, n=3, seed=1, per_row=True)

    def asked(row: str) -> list[str]:
        return [said["content"] for said in task.make_messages(row) if said["role"] == "user"][:-1]

    rows = [f"{n}?" for n in range(6)]
    drawn = {row: asked(row) for row in rows}
    assert all(len({*drawn[row]}) == 3 and f"Q: {row}" not in drawn[row] for row in rows)
    assert len({tuple(sorted(each)) for each in drawn.values()}) > 3
    assert drawn == {row: asked(row) for row in reversed(rows)}
    assert [asked(row) for row in rows] != [
        [said["content"] for said in few(shots, n=3, seed=2, per_row=True).make_messages(row)][1::2][:-1]
        for row in rows
    ]


def test_a_row_that_all_but_a_few_examples_ask_is_not_answered_with_fewer(shots: Path) -> None:
    with pytest.raises(TaskError, match="only 5 examples ask something else than the row"):
        few(shots, n=6, seed=1, per_row=True).make_messages("1?")


def test_changed_examples_are_another_task(shots: Path) -> None:
    before = few(shots, n=2).identify()
    (shots / "shots.jsonl").write_text((shots / "shots.jsonl").read_text() + '{"question": "6?", "answer": 6}\n')
    assert few(shots, n=2).identify() == before
    (shots / "shots.jsonl").write_text('{"question": "0?", "answer": 1}\n{"question": "1?", "answer": 1}\n')
    assert few(shots, n=2).identify() != before


def test_what_is_wrong_with_examples_is_said_at_their_place(shots: Path) -> None:
    with pytest.raises(ParameterError, match=r"examples: shots.jsonl: holds 6 examples, fewer than n: 7"):
        few(shots, n=7).identify()
    with pytest.raises(
        ParameterError, match=r"examples: .*no column is called 'questoin' \(did you mean 'question'\?\)"
    ):
        replace(few(shots), examples=FewShot("shots.jsonl", input="questoin", expected="answer")).identify()
    with pytest.raises(ParameterError, match="n: is the integer 0; give an integer of at least 1"):
        FewShot("a.jsonl", n=0)
    with pytest.raises(ParameterError, match="seed: draws some of the examples; give n too"):
        FewShot("a.jsonl", seed=1)
    with pytest.raises(ParameterError, match="per_row: draws examples for each row; give n and seed too"):
        FewShot("a.jsonl", n=1, per_row=True)


def test_earlier_turns_come_before_what_is_asked(chat: Callable[..., Chat]) -> None:
    server = chat()
    rows = [{"question": "And now?", "turns": list(TIMES), "answer": "a"}]
    run(ChatTask(server.model, prompt="{{ question }}", history="turns"), rows, input=["question", "turns"])
    assert conversations(server) == [[("user", "Earlier?"), ("assistant", "Yes."), ("user", "And now?")]]


def test_earlier_turns_alone_must_end_with_the_user(chat: Callable[..., Chat]) -> None:
    server = chat()
    rows = [{"turns": turns, "answer": "a"} for turns in (list(TIMES), [*TIMES, {"role": "user", "content": "So?"}])]
    found = outcomes(run(ChatTask(server.model, system="Hi.", history="turns"), rows, input="turns"))
    assert found == [("history", "turns does not end with a message of the user; add a prompt"), "So?"]
    assert conversations(server)[0][-1] == ("user", "So?")


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ("hello", "turns: the conversation is a text; give a list of messages"),
        ([{"content": "a"}], "turns: message 1 has no role; give system, user or assistant"),
        ([{"role": "user"}], "turns: message 1 has null as content; give a text, or a list of parts"),
    ],
)
def test_earlier_turns_that_are_no_messages_fail_their_row(turns: Any, message: str) -> None:
    with pytest.raises(TaskError) as error:
        ChatTask(MODEL, prompt="Go on.", history="turns").make_messages({"turns": turns})
    assert (str(error.value), error.value.code) == (message, "history")


@pytest.mark.parametrize("turns", [None, [], ()])
def test_without_earlier_turns_a_conversation_begins_with_the_prompt(turns: Any) -> None:
    messages = ChatTask(MODEL, prompt="Go on.", history="turns").make_messages({"turns": turns})
    assert [message["content"] for message in messages] == ["Go on."]


# Tools


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


async def double(n: int) -> dict[str, int]:
    """Double a number."""
    with span("counting"):
        await asyncio.sleep(0)
    return {"double": 2 * n}


def divide(a: int, b: int) -> float:
    """Divide a by b."""
    return a / b


def test_images_of_a_row_follow_the_text_of_its_prompt(chat: Callable[..., Chat]) -> None:
    server = chat()
    rows = [{"photo": PIXEL, "more": [ADDRESS, "data:image/png;base64,AAAA"], "question": "Which animal?"}]
    task = ChatTask(server.model, prompt="{{ question }}", images=["photo", "more"])
    run(task, rows, input=["photo", "more", "question"], expected=None)
    [[(role, parts)]] = conversations(server)
    urls = ["data:image/png;base64,iVBORw0KGgoAAAAAAAAAAA==", ADDRESS, "data:image/png;base64,AAAA"]
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    assert (role, parts) == ("user", [{"type": "text", "text": "Which animal?"}, *shown])


def test_an_image_may_be_the_whole_input(chat: Callable[..., Chat]) -> None:
    server = chat()
    run(
        ChatTask(server.model, prompt="Describe it.", images=["photo"]),
        [{"photo": PIXEL}],
        input="photo",
        expected=None,
    )
    [[(_, parts)]] = conversations(server)
    assert [part["type"] for part in parts] == ["text", "image_url"]


@pytest.mark.parametrize(
    ("photo", "message"),
    [
        (None, "photo has no image"),
        ([], "photo has no image"),
        ("/etc/passwd", "photo names a file; a row holds an image as bytes or a data URL, or names its address"),
        ([ADDRESS, 3], "photo[1] is a number; a row holds an image as bytes or a data URL, or names its address"),
    ],
)
def test_a_row_without_an_image_or_with_a_file_fails_before_anything_is_asked(photo: Any, message: str) -> None:
    with pytest.raises(TaskError) as error:
        ChatTask(MODEL, prompt="What is it?", images=["photo"]).make_messages({"photo": photo})
    assert (str(error.value), error.value.code) == (message, "image")


def test_earlier_turns_cannot_name_a_file() -> None:
    turns = [{"role": "user", "content": [{"type": "image", "image": "/etc/passwd"}]}]
    with pytest.raises(TaskError, match=r"turns\[0\] names a file; a row holds an image as bytes"):
        ChatTask(MODEL, prompt="Go on.", history="turns").make_messages({"turns": turns})


def test_columns_of_images_are_checked_against_the_dataset() -> None:
    with pytest.raises(ParameterError) as error:
        ChatTask(MODEL, prompt="What is it?", images=["foto"]).prepare(
            data([{"photo": ADDRESS}], input="photo", expected=None)
        )
    assert [*error.value.faults] == [
        (("images", 0), "there is no value 'foto' (did you mean 'photo'?); known: photo, input")
    ]
    assert faults(images="photo") == ["images: is no list of columns"]


def test_tools_are_called_until_the_model_replies(chat: Callable[..., Chat]) -> None:
    server = chat(
        calling(("add", {"a": 1, "b": 2}), ("double", {"n": 4}), text="Let me see."),
        calling(("add", {"a": 3})),
        {"text": "11"},
    )
    made = run(ChatTask(server.model, prompt="{{ question }}", tools=[add, double]), ROWS[:1])
    assert outcomes(made) == ["11"]
    assert [tool["function"]["name"] for tool in server.asked[0]["body"]["tools"]] == ["add", "double"]
    assert conversations(server)[2] == [
        ("user", "One? Really."),
        ("assistant", "Let me see."),
        ("tool", "3"),
        ("tool", '{"double":8}'),
        ("assistant", None),
        ("tool", "3"),
    ]
    found = [(each["name"], each["input"], each["output"], each["status"]) for each in spans(made, "tool")]
    assert found == [
        ("add", '{"a":1,"b":2}', "3", "ok"),
        ("double", '{"n":4}', '{"double":8}', "ok"),
        ("add", '{"a":3}', "3", "ok"),
    ]
    [within] = [each for each in spans(made, "span") if each["name"] == "counting"]
    assert within["parent"] == next(each["span"] for each in spans(made, "tool") if each["name"] == "double")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("ad", {"a": 1}), "error: no tool is called 'ad' (did you mean 'add'?); there are add, divide"),
        (("add", {"a": "one"}), "error: the arguments of add do not fit: a: Input should be a valid integer"),
        (("add", {}), "error: the arguments of add do not fit: a: Field required"),
        (("add", {"a": 1, "c": 2}), "error: the arguments of add do not fit: c: Extra inputs are not permitted"),
        (("add", "a=1"), "error: the arguments of add are no JSON object"),
        (("divide", {"a": 1, "b": 0}), "error: ZeroDivisionError: division by zero"),
    ],
)
def test_what_goes_wrong_with_a_call_is_told_to_the_model_and_traced(
    chat: Callable[..., Chat], call: tuple[str, Any], told: str
) -> None:
    server = chat(calling(call), {"text": "Sorry."})
    made = run(ChatTask(server.model, prompt="{{ question }}", tools=[add, divide]), ROWS[:1])
    assert outcomes(made) == ["Sorry."]
    role, content = conversations(server)[1][-1]
    assert role == "tool"
    assert content.startswith(told)
    [traced] = spans(made, "tool")
    assert (traced["name"], traced["status"]) == (call[0], "error")


def test_a_model_that_calls_for_ever_fails_its_row(chat: Callable[..., Chat]) -> None:
    server = chat(*[calling(("add", {"a": 1}))] * 9)
    made = run(ChatTask(server.model, prompt="{{ question }}", tools=[add], max_turns=3), ROWS[:1])
    [(code, message)] = outcomes(made)
    assert code == "max_turns"
    assert message.startswith(
        "the model was asked 3 times and still calls tools (add) in place of a reply; raise max_turns"
    )
    assert (len(server.asked), len(spans(made, "tool"))) == (3, 3)


def test_a_tool_may_skip_the_row_or_ask_for_another_attempt(chat: Callable[..., Chat]) -> None:
    def leave(why: str) -> None:
        raise Skipped(why)

    attempts: list[int] = []

    def flaky() -> str:
        attempts.append(1)
        if len(attempts) < 2:
            raise TransientError("busy")
        return "fine"

    server = chat(
        calling(("leave", {"why": "no need"})), calling(("flaky", {})), calling(("flaky", {})), {"text": "done"}
    )
    task = ChatTask(server.model, prompt="{{ question }}", tools=[leave, flaky])
    made = Runner(policy=Policy(concurrency=1, retries=1, backoff=0)).run(task, data())
    assert [row.status for row in made] == ["skipped", "completed"]


def test_tools_are_part_of_what_a_task_is() -> None:
    def identity(*tools: Any, **parameters: Any) -> Any:
        return ChatTask(MODEL, prompt="{{ q }}", tools=tools, **parameters).identify()

    def clock() -> str:
        import time

        return time.ctime()

    def other(a: int, b: int = 0) -> int:
        """Add two numbers."""
        return a + b + 0

    other.__name__ = "add"
    assert identity(add) == identity(add)
    assert identity(add).pinned
    assert len({json.dumps(each.spec, sort_keys=True) for each in (identity(), identity(add), identity(other))}) == 3
    assert identity(add).spec != identity(add, max_turns=3).spec
    assert not identity(clock).pinned
    assert identity(clock, version="1").pinned
    assert identity(clock, version="1").spec != identity(clock, version="2").spec


def test_tools_that_cannot_be_called_are_refused() -> None:
    assert faults(tools=[Tool("look", "", {"type": "object"})]) == ["tools: look has no function to call"]
    assert faults(tools=[add, add]) == ["tools: two tools have the name 'add'; rename one"]


def test_a_tool_that_waits_does_not_keep_other_conversations_waiting(chat: Callable[..., Chat]) -> None:
    import threading

    both = threading.Barrier(2)

    def meet() -> str:
        both.wait(60)
        return "met"

    server = chat(calling(("meet", {})), calling(("meet", {})), {"text": "done"}, {"text": "done"})
    task = ChatTask(server.model, prompt="{{ question }}", tools=[meet], version="1")
    assert outcomes(Runner(policy=Policy(concurrency=2)).run(task, data())) == ["done", "done"]


# Data


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_a_reply_with_a_schema_is_data(chat: Callable[..., Chat]) -> None:
    server = chat({"text": '{"city": "Paris"}'})
    task = ChatTask(server.model, prompt="{{ question }}", response_schema=CITY)
    made = run(task, ROWS[:1])
    assert outcomes(made) == [{"city": "Paris"}]
    assert server.asked[0]["body"]["response_format"]["type"] == "json_schema"


def test_a_reply_that_never_fits_fails_its_row(chat: Callable[..., Chat]) -> None:
    server = chat(*[{"text": "Paris, of course"}] * 9)
    [(code, message)] = outcomes(run(ChatTask(server.model, prompt="{{ question }}", response_schema=CITY), ROWS[:1]))
    assert (code, message) == ("schema", "the reply does not fit response_schema: it has no JSON")


def test_a_schema_is_part_of_what_a_task_is_and_must_be_one() -> None:
    assert ChatTask(MODEL, response_schema=CITY).identify() != ChatTask(MODEL).identify()
    assert faults(response_schema={"type": "nonsense"})[0].startswith("response_schema: ")


def test_replications_that_all_agree_are_noted(chat: Callable[..., Chat]) -> None:
    server = chat(*({"text": text} for text in ("Paris", "Paris", "Rome", "Rome", "Oslo", "Bergen")))
    rows = Dataset.from_rows([{"question": name} for name in ("France?", "Italy?", "Norway?")], input="question")
    task = ChatTask(replace(server.model, cache=False), prompt="{{ question }}")
    with pytest.warns(EvaluandWarning, match="all replications of 2 of 3 examples have the same answer"):
        Runner(policy=Policy(concurrency=1)).run(task, rows, replications=2)


def test_one_replication_that_is_left_agrees_with_nothing(chat: Callable[..., Chat]) -> None:
    replies = ({"text": "Paris"}, {"text": "", "finish_reason": "error"})
    rows = Dataset.from_rows([{"question": "France?"}], input="question")
    task = ChatTask(replace(chat(*replies).model, cache=False), prompt="{{ question }}")
    made = Runner(policy=Policy(concurrency=1, retries=0)).run(task, rows, replications=2)  # a note would be an error
    assert made.counts == {"completed": 1, "failed": 1}
