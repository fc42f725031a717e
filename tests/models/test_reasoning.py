"""What models think is apart from what they answer, however a server hands it over."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.chats import Chat

from evaluand import Dataset, Run, Runner
from evaluand.models.completion import Completion
from evaluand.models.reasoning import join_reasoning, split_reasoning
from evaluand.run.tasks.chat import ChatTask
from evaluand.run.tasks.recorded import RecordedTask

Starts = Callable[..., Chat]

CHANNELS = "<|channel|>analysis<|message|>Paris? No.<|end|><|start|>assistant<|channel|>final<|message|>Lyon<|return|>"


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("Lyon", None, "Lyon"),
        ("  Lyon\n", None, "  Lyon\n"),
        ("<think>Paris? No.</think> Lyon", "Paris? No.", "Lyon"),
        ("\n<thinking>\nParis? No.\n</thinking>\n\nLyon", "Paris? No.", "Lyon"),
        ("< Think >Paris? No.</ think >Lyon", "Paris? No.", "Lyon"),
        ("<seed:think>Paris? No.</seed:think>Lyon", "Paris? No.", "Lyon"),
        ("[THINK]Paris? No.[/THINK]Lyon", "Paris? No.", "Lyon"),
        ("◁think▷Paris? No.◁/think▷Lyon", "Paris? No.", "Lyon"),
        ("<think>Paris?</think><think>No.</think>Lyon", "Paris?\nNo.", "Lyon"),
        ("<think></think>\n\nLyon", "", "Lyon"),
        ("Paris? No.\n</think>\n\nLyon", "Paris? No.", "Lyon"),
        ("Paris? No.</think>Lyon", "Paris? No.", "Lyon"),
        ("<think>It could be Paris, or", "It could be Paris, or", ""),
        ("<think>Paris? No.</think>\n", "Paris? No.", ""),
        ("I must not write `</think>` yet.\n</think>\n\nLyon", "I must not write `</think>` yet.", "Lyon"),
        ("```\n</think>\n```\nends it", None, "```\n</think>\n```\nends it"),
        ("<reasoning> tags are used by some", None, "<reasoning> tags are used by some"),
        ("<reasoning>Paris? No.</reasoning>Lyon", "Paris? No.", "Lyon"),
        ("Lyon<|eot_id|>", None, "Lyon"),
        ("Lyon</s>\n<|im_end|>\n", None, "Lyon"),
        ("</s> ends a text", None, "</s> ends a text"),
        ("Lyon, I <think> so", None, "Lyon, I <think> so"),
        ("Write <think>, then </think>.", None, "Write <think>, then </think>."),
        ("Close it by `</think>`.", None, "Close it by `</think>`."),
        ('{"tag": "ends by </think> here"}', None, '{"tag": "ends by </think> here"}'),
        ("[thoughts] are free", None, "[thoughts] are free"),
        (CHANNELS, "Paris? No.", "Lyon"),
        (CHANNELS.removeprefix("<|channel|>analysis<|message|>"), "Paris? No.", "Lyon"),
        (CHANNELS.partition("<|end|>")[0], "Paris? No.", ""),
        ("analysisParis? No.assistantfinalLyon", "Paris? No.", "Lyon"),
        ("analysis of assistantfinal states", None, "analysis of assistantfinal states"),
    ],
)
def test_reasoning_is_what_a_text_begins_with(text: str, reasoning: str | None, answer: str) -> None:
    assert split_reasoning(text) == (reasoning, answer)


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 100000,
        "</think>" * 20000,
        "<|message|>" * 50000,
        "< " * 500000,
        "{" + "\n" * 300000 + "x",
        "<|endoftext|>" * 50000 + "x",
        "</s> " * 50000,
    ],
)
def test_no_text_takes_long_to_read(text: str) -> None:
    assert split_reasoning(text).answer is not None


@given(st.text(st.characters(exclude_characters="<[◁"), min_size=1), st.text(st.characters(exclude_characters="<[◁")))
def test_what_was_joined_is_split_again(reasoning: str, answer: str) -> None:
    assert split_reasoning(join_reasoning(reasoning, answer)) == (reasoning.strip(), answer.strip())


def reasoning_in(run: Run, kind: str) -> list[str]:
    """The reasoning that spans of a kind have."""
    spans = (span for batch in run.spans() for span in batch.to_pylist() if span["kind"] == kind)
    attributes = (json.loads(span["attributes"] or "{}") for span in spans)
    return [held["reasoning"] for held in attributes if "reasoning" in held]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Lyon", "reasoning_content": "Paris? No."},
        {"content": "Lyon", "reasoning": "Paris? No."},
        {"content": "Lyon", "reasoning_details": [{"type": "reasoning.text", "text": "Paris? No."}]},
        {"content": [{"type": "thinking", "thinking": "Paris? No."}, {"type": "text", "text": "Lyon"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Paris? No."}]}, {"text": "Lyon"}]},
        {"content": "<think>Paris? No.</think>Lyon", "reasoning_content": None},
    ],
)
def test_reasoning_beside_the_text_is_kept_in_the_trace_and_not_graded(chat: Starts, message: dict[str, Any]) -> None:
    body = {"choices": [{"finish_reason": "stop", "message": message}]}
    task = ChatTask(chat({"body": json.dumps(body)}).model, prompt="{{ q }}")
    run = Runner().run(task, Dataset.from_rows([{"q": "The capital of Gaul?"}], input="q"))
    assert [row.responses for row in run] == [["Lyon"]]
    assert reasoning_in(run, "llm") == ["Paris? No."]


def test_the_switch_makes_reasoning_part_of_what_is_graded(chat: Starts) -> None:
    message = {"content": "Lyon", "reasoning_content": "Paris? No."}
    reply = {"body": json.dumps({"choices": [{"finish_reason": "stop", "message": message}]})}
    server = chat(reply, reply)
    apart, graded = server.model, replace(server.model, reasoning="graded")
    asked = [{"role": "user", "content": "The capital of Gaul?"}]
    assert apart.complete(asked).text == "Lyon"
    assert graded.complete(asked).text == "<think>\nParis? No.\n</think>\n\nLyon"
    assert graded.spec != apart.spec


def test_probabilities_are_those_of_the_answer() -> None:
    words = ["<think>", "A", "?", "</think>", "\n", "B"]
    tokens = [{"token": word, "logprob": -1.0, "top": {}} for word in words]
    completion = Completion.of("".join(words), logprobs=tokens)
    assert [token["token"] for token in completion.logprobs or ()] == ["B"]


def test_recorded_outputs_are_graded_without_the_reasoning_they_begin_with(tmp_path: Path) -> None:
    outputs = ["<think>Paris? No.</think>\nLyon", "Lyon", "<think>It could be"]
    rows = [json.dumps({"answer": output}) for output in outputs]
    (tmp_path / "answers.jsonl").write_text("\n".join(rows))
    data = Dataset.from_rows([{"q": str(n)} for n in range(3)], input="q")
    run = Runner().run(RecordedTask(path=str(tmp_path / "answers.jsonl"), response="answer"), data)
    assert [row.responses for row in run] == [["Lyon"], ["Lyon"], None]
    errors = [row.error["message"] for row in run if row.error]
    assert errors == [f"{tmp_path / 'answers.jsonl'}:3: the output has no answer after its reasoning"]
    assert reasoning_in(run, "task") == ["Paris? No.", "It could be"]
    graded = RecordedTask(path=str(tmp_path / "answers.jsonl"), response="answer", reasoning="graded")
    assert [row.responses for row in Runner().run(graded, data)] == [[output] for output in outputs]


def test_probabilities_are_counted_from_the_end_where_tokens_are_parts_of_characters() -> None:
    words = ["<think>", "", "", "😀", "</think>", "B", "<|im_end|>"]
    tokens = [{"token": word, "logprob": -1.0, "top": {}} for word in words]
    completion = Completion.of("<think>😀😀😀</think>B<|im_end|>", logprobs=tokens)
    assert [token["token"] for token in completion.logprobs or ()] == ["B", "<|im_end|>"]
