"""Multiple-choice questions: how options are shown, what a reply names, and what position does, over a real server."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.chats import Chat

from evaluand import Dataset, Evaluator, Experiment, MultipleChoice, Policy, Runner
from evaluand.core.errors import ParameterError, TaskError
from evaluand.evaluation.scorers.shown_position import ShownPosition
from evaluand.models.chat_model import ChatModel
from evaluand.run.runner import Run
from evaluand.run.tasks.choices import Options, shuffled
from evaluand.run.tasks.conversation import FewShot
from evaluand.run.tasks.multiple_choice import answer_tokens
from evaluand.store.store import MemoryStore

MODEL = ChatModel("http://127.0.0.1:1/v1", "small", version="1")
COLOURS = ("red", "green", "dark blue", "B")
ROWS = [
    {"question": "The colour of grass?", "choices": ["red", "green", "blue"], "answer": "B"},
    {"question": "The colour of blood?", "choices": ["red", "green", "blue"], "answer": "A"},
]


def run(task: MultipleChoice, rows: Any = ROWS, replications: int = 1, **roles: Any) -> Run:
    named = {"input": ["question", "choices"], "expected": "answer"} | roles
    data = Dataset.from_rows(rows, **named)
    return Runner(MemoryStore(), Policy(concurrency=1, retries=0)).run(task, data, replications=replications)


def outputs(made: Run) -> list[Any]:
    return [row.error["message"] if row.error else row.responses[0] for row in made]


def top(*tokens: tuple[str, float]) -> dict[str, Any]:
    """A reply of one token, the first, with the probabilities of the likeliest."""
    listed = [{"token": text, "bytes": None, "logprob": math.log(p)} for text, p in tokens]
    choice = {"index": 0, "message": {"role": "assistant", "content": tokens[0][0]}, "finish_reason": "length"}
    choice["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}], "refusal": None}
    return {"body": json.dumps({"id": "1", "model": "small", "choices": [choice]})}


# What is shown


def test_options_are_lettered_and_the_output_names_the_chosen_one(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "B"}, {"text": "I cannot say."})
    found = outputs(run(MultipleChoice(server.model)))
    assert server.bodies[0]["messages"][0]["content"] == (
        "The colour of grass?\nA. red\nB. green\nC. blue\nReply with the letter of the right option alone."
    )
    read = {"text": "B", "rule": "whole reply", "candidates": 1}
    unread = {"candidates": 0, "reason": "the reply names no option"}
    assert found == [
        {"prediction": "B", "position": "B", "shown": ["A", "B", "C"], "reply": "B", "extraction": read},
        {
            "prediction": None,
            "position": None,
            "shown": ["A", "B", "C"],
            "reply": "I cannot say.",
            "extraction": unread,
        },
    ]


@pytest.mark.parametrize(
    ("answer", "chosen"), [("letter", "C"), ("number", 2), ("text", "blue"), ("one_hot", [0, 0, 1])]
)
def test_the_prediction_is_written_as_the_dataset_states_the_answer(
    chat: Callable[..., Chat], answer: Any, chosen: Any
) -> None:
    [output] = outputs(run(MultipleChoice(chat({"text": "(C)"}).model, answer=answer), ROWS[:1]))
    assert output["prediction"] == chosen


def test_options_may_be_columns_and_have_letters_of_the_dataset(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "B"}, {"text": "B"})
    columns = [{"question": "1 + 1?", "one": 1, "other": 2, "answer": "B"}]
    task = MultipleChoice(server.model, choices=["one", "other"])
    assert outputs(run(task, columns, input=["question", "one", "other"]))[0]["prediction"] == "B"
    assert "A. 1\nB. 2\n" in server.bodies[0]["messages"][0]["content"]
    arc = [{"question": "1 + 1?", "choices": {"text": ["1", "2"], "label": ["1", "2"]}, "answer": "2"}]
    inputs = {"question": "question", "choices": "choices.text", "labels": "choices.label"}
    assert outputs(run(MultipleChoice(server.model, labels="labels"), arc, input=inputs))[0]["prediction"] == "2"
    assert "A. 1\nB. 2\n" in server.bodies[1]["messages"][0]["content"]


@given(st.integers(2, 26), st.integers(0, 2**63 - 1))
def test_an_order_is_a_permutation_that_depends_on_the_seed_alone(n: int, seed: int) -> None:
    assert sorted(shuffled(n, seed)) == [*range(n)]
    assert shuffled(n, seed) == shuffled(n, seed)


def test_every_order_is_about_equally_frequent() -> None:
    frequency = Counter(shuffled(3, seed) for seed in range(1200))
    assert len(frequency) == 6
    assert all(150 < times < 250 for times in frequency.values())


def test_the_order_differs_between_examples_and_replications_and_not_between_runs(chat: Callable[..., Chat]) -> None:
    rows = [{"question": f"{n}?", "choices": [*"pqrst"], "answer": "A"} for n in range(4)]
    task = MultipleChoice(chat(*[{"text": "A"}] * 24).model, shuffle=True)
    orders = [row["shown"] for row in outputs(run(task, rows, replications=3))]
    assert len({tuple(order) for order in orders}) > 8
    again = [row["shown"] for row in outputs(run(task, rows[::-1], replications=3))]
    assert sorted(again) == sorted(orders)


def test_a_shuffled_option_keeps_its_name(chat: Callable[..., Chat]) -> None:
    rows = [{"question": f"{n}?", "choices": ["p", "q", "r"], "answer": "A"} for n in range(5)]
    server = chat(*[{"text": "A"}] * 5)
    for output, body in zip(outputs(run(MultipleChoice(server.model, shuffle=True), rows)), server.bodies, strict=True):
        first = body["messages"][0]["content"].splitlines()[1]
        assert first == f"A. {'pqr'[ascii_uppercase.index(output['prediction'])]}"
        assert output["shown"][0] == output["prediction"]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (["only"], "the question has 1 options; there must be 2 to 26"),
        ("red, green", "choices is a text, not a list of options"),
        (["red", None], "choices[1] is null; an option is text"),
    ],
)
def test_a_row_without_options_fails_before_anything_is_asked(
    chat: Callable[..., Chat], choices: Any, message: str
) -> None:
    server = chat()
    rows = [{"question": "Which?", "choices": choices, "answer": "A"}]
    assert outputs(run(MultipleChoice(server.model), rows)) == [message]
    assert not server.asked


def test_all_faults_of_a_task_are_reported_at_once() -> None:
    with pytest.raises(ParameterError) as error:
        MultipleChoice(MODEL, answer="word", method="guess", shuffle=1, choices=3, least_coverage=2)  # type: ignore[arg-type]
    assert [(place, message) for place, message in error.value.faults] == [
        (("answer",), "is the text 'word'; give one of letter, number, text, one_hot"),
        (("shuffle",), "is the integer 1; give true or false"),
        (("method",), "is the text 'guess'; give one of reply, log_likelihood"),
        (("least_coverage",), "is the integer 2; give a number from 0 to 1"),
        (("choices",), "is no column, and no list of columns"),
    ]
    with pytest.raises(ParameterError, match="prompt: does not show the options"):
        MultipleChoice(MODEL, prompt="{{ question }}")


def test_columns_are_checked_against_the_dataset_before_anything_is_asked() -> None:
    with pytest.raises(ParameterError) as error:
        run(MultipleChoice(MODEL, choices="choice", labels="answer"))
    assert [(place, message) for place, message in error.value.faults] == [
        (("choices",), "there is no value 'choice' (did you mean 'choices'?); known: question, choices, input"),
        (("labels",), "there is no value 'answer'; this column is the expected answer, which tasks do not see"),
    ]


# What a reply names


@pytest.mark.parametrize(
    ("reply", "position"),
    [
        ("C", 2),
        ("c", 2),
        (" (C) ", 2),
        ("C.", 2),
        ("**C**", 2),
        ("C. dark blue", 2),
        ("(C) It is dark.", 2),
        ("C dark blue", 2),
        ("dark blue", 2),
        ("Answer: C", 2),
        ("Answer: (C) because of the sea.", 2),
        ("The sea is deep.\nAnswer:\nC", 2),
        ("The answer is C.", 2),
        ("Answer: A? No.\n**Answer:** C", 2),
        ("answer: dark blue", 2),
        ("B. green\nC. dark blue", None),
        ("C. red", None),
        ("Answer: C. red", None),
        ("Answer: A or C", None),
        ("Either A or C", None),
        ("The answer is not A", None),
        ("A colour like red", None),
        ("A. red is wrong.\nAnswer: neither", None),
        ("Dark blue", 2),
        ("DARK BLUE.", 2),
        ("dark\u00a0blue", 2),
        ("E", None),
        ("B", None),  # the letter of one option and the text of another
        ("Answer: B.", 1),
        ("", None),
        ("First thought, answer: A. But checking again, the answer: C.", 2),
        ("Answer: A. red? No. The right answer is C", 2),
        ("Answer: C\n\nThe answer is clear.", 2),
        ("The answer is A. No, the answer is not A.", None),
        ("The answer is C. The answer is not A.", 2),
        ("Answer: C\nNo, the answer is none of these.", None),
        ("Answer: A\nAnswer: A or C", None),
        ("The answer is C, because the sea is deep.", 2),
        ("The answer is C because A is wrong.", 2),
        ("The correct option is C.", 2),
        ("The best choice is: C", 2),
        ("Answer: option C", 2),
        ("Option C", 2),
        ("option c.", 2),
        ("C, dark blue", 2),
        ("C (dark blue)", 2),
        ("C - dark blue.", 2),
        ("Answer: C - dark blue", 2),
        ("Answer: C, red", None),
        ("$\\boxed{C}$", 2),
        ("\\boxed{C}", 2),
        ("The answer is $\\boxed{\\text{C}}$.", 2),
        ("\\boxed{dark blue}", 2),
        ("\\boxed{A or C}", None),
        ("Answer: [C]", 2),
        ("[C]", 2),
        ("`C`", 2),
        ("dark blue.", 2),
        ("(C)", 2),
        ("The sea is deep.\n\nC", 2),
        ("Answer: (A) and (C)", None),
        ("Answer: A, C", None),
        ("Answer: either A or C", None),
        ("A, or C", None),
        ("Options A and C", None),
        ("Option A is wrong. Option C is right.", 2),
        ("The first option is red. The second option is green.", None),
        ("A stone is grey.", None),
        ("The answer is a colour.", None),
        ("The answer is C. A stone is grey.", 2),
        ("I cannot answer this.", None),
        ("I'm sorry, but I can't help with that.", None),
    ],
)
def test_a_reply_names_one_option_or_none(reply: str, position: int | None) -> None:
    options = Options(COLOURS, ascii_uppercase[:4], (0, 1, 2, 3))
    assert options.read(reply)[0] == position


@pytest.mark.parametrize(
    ("rule", "replies"),
    [
        ("whole reply", "**B** ¦ (b) ¦ [[B]] ¦ B! ¦ “B” ¦ 'B' ¦ Ｂ ¦ 【B】 ¦ B。 ¦ GREEN"),
        ("whole reply", "<|begin_of_box|>B<|end_of_box|> ¦ \u200bB\u200b ¦ \ufeffB ¦ B<br> ¦ <p>B</p>"),
        ("statement", "Answer: B<br> ¦ The answer is (B) green ¦ The answer is “B”. ¦ Answer: (b) green ¦ Option: B"),
        ("statement", '{"answer": "B"} ¦ ```json\n{"answer": "B"}\n``` ¦ {"final_answer": "B", "sure": 0.9}'),
        ("statement", "<answer>B</answer> ¦ **Final Answer:** B ¦ My final choice is B ¦ My verdict: [[B]]."),
        ("statement", "Die Antwort ist B ¦ La réponse est B ¦ La réponse est la B. ¦ La respuesta es la B ¦ #### B"),
        ("statement", "La respuesta correcta es la B. ¦ La risposta corretta è la B. ¦ A resposta correta é a B."),
        ("statement", "A resposta é B ¦ La risposta è B ¦ Antwoord: B ¦ Ответ: B ¦ Правильный ответ — B ¦ Cevap: B"),
        ("statement", "Response: B ¦ La bonne réponse est la lettre B"),
        (
            "statement",
            "答案：B ¦ 答案是B ¦ 正确答案是B。 ¦ 答案为B项 ¦ 回答はB ¦ 答えはBです。 ¦ 정답은 B입니다. ¦ الإجابة: B",
        ),
        ("statement", "The correct answer is B, not C. ¦ Answer: C\n\nWait, the answer is B."),
        ("statement", "A. red\nB. green\nAnswer: B"),
        (
            "statement",
            "It is B. ¦ I'd go with B ¦ I’d go with B. ¦ I choose option B. ¦ So it's B. ¦ 故选B。 ¦ 我选择B",
        ),
        ("statement", "Option B is correct. ¦ B is the right answer ¦ (B) is the best option."),
        ("statement", "Green is the correct answer."),
        ("statement", "C is wrong. B is correct. ¦ B ist richtig. ¦ B est la bonne réponse. ¦ B是正确的"),
        ("line", "B\n\nGrass is green. ¦ B, because grass is green. ¦ B because grass is green."),
        ("line", "It is clear.\n(B) ¦ B) green ¦ B because C is wrong."),
        (
            "statement",
            "B is my answer. ¦ B is the answer ¦ B must be correct ¦ B seems right ¦ Option B ¦ So B. ¦ Hence, B",
        ),
        ("statement", "It is green, because red is not."),
        ("statement", "The answer is probably B. ¦ The answer is likely B ¦ It is clearly B. ¦ Answer = B ¦ but B."),
        ("statement", "I choose B, not A ¦ It's not C, it's B. ¦ The answer is not C but B. ¦ It is B (not C)."),
        (
            "statement",
            "At first glance, the answer is A. But B is correct. ¦ You might think the answer is A. It is B.",
        ),
        (
            "statement",
            "You might think the answer is A. However, it is B. ¦ It is A. No, it is B. ¦ It is A. Actually, B.",
        ),
        (
            "statement",
            "Is the answer A? No, it is B. ¦ If the answer is A then C; but it's B ¦ It is A. It is not A. It is B.",
        ),
        (
            "statement",
            "The answer is $\\boxed{\\textbf{(B)}\\ green}$ ¦ \\boxed{\\mathrm{B}} ¦ \\(\\boxed{B}\\)",
        ),
        ("statement", '{"answer":"B","confidence":0.9} ¦ {"why":"not A","answer":"B"} ¦ {"answer":\n"B"}'),
        ("statement", "Die Antwort ist nicht A, sondern B. ¦ La respuesta no es A, sino B. ¦ 答案不是A，而是B。"),
    ],
)
def test_common_wordings_are_read(rule: str, replies: str) -> None:
    options = Options(("red", "green", "blue"), "ABC", (0, 1, 2))
    read = {reply: options.read(reply) for reply in replies.split(" ¦ ")}
    assert {reply: (position, extraction.rule) for reply, (position, extraction) in read.items()} == dict.fromkeys(
        read, (1, rule)
    )


@pytest.mark.parametrize(
    ("reason", "replies"),
    [
        ("names no option", "A good answer would be short. ¦ I think so. ¦ B? ¦ Answer: yes ¦ It's A, or it's C"),
        (
            "names no option",
            "The answer is a good one ¦ The answer is a non-starter ¦ A non-metal ¦ Is the answer B? ¦ not sure",
        ),
        (
            "names no option",
            "Only B is correct ¦ I can't choose B ¦ 答えはBではない ¦ 答案不是B ¦ Among A and B, B is correct",
        ),
        ("several", "A or B ¦ Answer: A and B ¦ Answer: (a) and (b) ¦ Antwort: A, oder C ¦ 答案是A和C ¦ B. red"),
        ("several", "It is A. Or it is B. ¦ A) red\nB) green\nC) blue ¦ A is correct. B is correct. ¦ A: No. B: Yes."),
        (
            "several",
            "Options:\nA. red\nB. green\nC. blue\n\nI am not sure. ¦ Answer: A\n\nBut let me check. B is correct.",
        ),
        (
            "several",
            "(B) 5 and (C) 45 ¦ Answer: (B) 5 and (C) 45 ¦ The correct option is A, B is not ¦ A, or B",
        ),
        ("several", "Answer: A. It is B. ¦ Answer: C. red ¦ Answer: B) green, C) blue"),
        ("denies", "The answer is not B ¦ Die Antwort ist nicht C. ¦ I don't think the answer is B ¦ It is not B."),
        (
            "denies",
            "You might think it. Many say the answer is B. ¦ The answer is B? No. ¦ It is B. It is not B.",
        ),
        ("denies", "None of it. Answer: none ¦ If the answer is B, then grass is blue ¦ A. red is wrong"),
        ("not there", "Answer: E ¦ E ¦ The answer is (D)."),
    ],
)
def test_what_names_no_option_or_several_is_no_answer(reason: str, replies: str) -> None:
    options = Options(("red", "green", "blue"), "ABC", (0, 1, 2))
    for reply in replies.split(" ¦ "):
        position, extraction = options.read(reply)
        assert (position, extraction.text) == (None, None), reply
        assert reason in (extraction.reason or ""), (reply, extraction)


WORDINGS = (
    *("{}", "({})", "**{}**", "[[{}]]", "Answer: {}", "The answer is {}.", "It is {}.", "Option {} is correct."),
    *(
        "I'd go with {}",
        "Die Antwort ist {}",
        "答案：{}",
        "So, the best option is:\n{}",
        "\\boxed{{{}}}",
        '{{"answer": "{}"}}',
    ),
)


@given(st.integers(2, 26), st.integers(0, 2**63 - 1), st.data())
def test_an_option_in_any_wording_and_order_reads_back(n: int, seed: int, data: st.DataObject) -> None:
    options = Options([f"thing {number}" for number in range(n)], ascii_uppercase[:n], shuffled(n, seed))
    position = data.draw(st.integers(0, n - 1))
    wording = data.draw(st.sampled_from(WORDINGS))
    assert options.read(wording.format(options.letters[position]))[0] == position
    assert options.read(options.shown[position].upper())[0] == position
    assert options.read(wording.format(f"{options.letters[position]} or {options.letters[position - 1]}"))[0] is None


@pytest.mark.parametrize(
    ("texts", "reply", "position"),
    [
        (("2*3", "$5", "-5"), "2*3", 0),
        (("2*3", "$5", "-5"), "Answer: $5", 1),
        (("5", "6", "-5"), "A - 5", 0),
        (("5", "6", "-5"), "C -5", 2),
        (("5", "6", "-5"), "A -5", None),
        (("the U.S.", "the U.K."), "the U.S.", 0),
        ((".", ","), "", None),
        (("US", "us"), "us", 1),
        (("US", "us"), "Us", None),
        ([*"abcdefghij"], "I, as a model, cannot tell.", None),
    ],
)
def test_texts_of_options_are_compared_with_their_signs(texts: Sequence[str], reply: str, position: int | None) -> None:
    options = Options(texts, ascii_uppercase[: len(texts)], range(len(texts)))
    assert options.read(reply)[0] == position


@pytest.mark.parametrize("answer", ["None", "none of these", "No"])
def test_an_option_may_be_a_word_that_denies(answer: str) -> None:
    options = Options(("red", answer), "AB", (0, 1))
    for reply in (f"The answer is {answer}", f"Answer: {answer}.", f"It is {answer}", "Answer: B"):
        assert options.read(reply)[0] == 1, reply


@pytest.mark.parametrize(
    "part",
    [
        *("[[", "[[\n", "\n", "A. ", "(A) and ", "A, ", "A) A) ", "answer is ", "answer   ", "It is not ", "I choose "),
        *("so ", "so\n", "but so ", "a is correct ", "x is", "答案是不", "Answer: A\n", "no, ", "\\boxed{", "{", '","'),
        *("because ", "you might ", "if: ", "?", ": ", "A.\nred\n"),
    ],
)
def test_hostile_replies_are_read_in_time(part: str) -> None:
    options = Options(("red", "green"), "AB", (0, 1))
    begun = time.process_time()
    options.read(part * (1_000_000 // len(part)))
    assert time.process_time() - begun < 10


# Probabilities


def test_the_likeliest_letter_is_chosen_whatever_the_reply_is(chat: Callable[..., Chat]) -> None:
    server = chat(top(("The", 0.4), (" B", 0.4), ("B", 0.05), ("A", 0.15)), top(("C.", 0.6), ("A", 0.05)))
    first, second = outputs(run(MultipleChoice(server.model, method="log_likelihood")))
    assert first["prediction"] == "B"
    assert first["coverage"] == pytest.approx(0.6)
    assert first["probabilities"] == pytest.approx({"A": 0.25, "B": 0.75, "C": 0})
    assert first["extraction"] == {"text": "B", "rule": "likeliest letter", "candidates": 2}
    assert second["prediction"] == "C"
    body = server.bodies[0]
    assert (body["max_tokens"], body["top_logprobs"]) == (8, 20)


@pytest.mark.parametrize(
    ("tokens", "answer", "first"),
    [
        (["B"], "B", "B"),
        ([" **", "Answer", ":", "**", " B", "."], "**Answer:** B.", " B"),
        (['{"', "answer", '":', ' "', "B", '"}'], '{"answer": "B"}', "B"),
        (["\n", "(", "B", ")"], "(B)", "B"),
        (["A", " or", " B", "?", "</think>", "\n\n", "B"], "B", "B"),
        (["The", " answer", " is", " B"], "The answer is B", "The"),
        (["<think>", "A"], "B", None),  # the answer is none of the tokens
    ],
)
def test_the_first_token_of_the_answer_counts(tokens: Sequence[str], answer: str, first: str | None) -> None:
    found = answer_tokens([{"token": token} for token in tokens], answer)
    assert [token["token"] for token in found[:1]] == ([] if first is None else [first])
    assert list(found) == [{"token": token} for token in tokens[len(tokens) - len(found) :]]


def test_a_reply_without_its_answer_yet_is_asked_for_whole(chat: Callable[..., Chat]) -> None:
    server = chat(top(("\n", 1.0)), top(("A", 0.9)))
    [output] = outputs(run(MultipleChoice(server.model, method="log_likelihood"), ROWS[:1]))
    assert output["prediction"] == "A"
    assert [body["max_tokens"] for body in server.bodies] == [8, 512]


@pytest.mark.parametrize(
    ("tokens", "coverage", "why"),
    [
        ([("The", 0.5), ("It", 0.2)], 0, "0 together"),
        ([("The", 0.5), ("B", 0.25), ("A", 0.125)], 0.375, "0.38 together"),
    ],
)
def test_unlikely_letters_are_no_answer(chat: Callable[..., Chat], tokens: Any, coverage: float, why: str) -> None:
    server = chat(top(*tokens), top(*tokens))
    task = MultipleChoice(server.model, method="log_likelihood")
    [output] = outputs(run(task, ROWS[:1]))
    assert (output["prediction"], output["position"], output["coverage"]) == (None, None, pytest.approx(coverage))
    assert output["extraction"]["reason"] == f"the letters have a probability of {why}; least_coverage is 0.5"
    [output] = outputs(run(replace(task, least_coverage=0.3), ROWS[:1]))
    assert output["prediction"] == ("B" if coverage else None)


@pytest.mark.parametrize(("listed", "content"), [(" is", "It is B"), ("**", "**"), ("", "B")])
def test_lost_tokens_are_told_from_unlikely_letters(chat: Callable[..., Chat], listed: str, content: str) -> None:
    reply = top((listed, 0.5), ("B", 0.5))
    reply["body"] = reply["body"].replace(f'"content": {json.dumps(listed)}', f'"content": {json.dumps(content)}', 1)
    task = MultipleChoice(chat(reply, reply).model, method="log_likelihood")
    [output] = outputs(run(task, ROWS[:1]))
    lost = f"no token that the server lists ({listed!r}) begins the answer ({content!r})"
    assert (output["prediction"], output["extraction"]["reason"]) == (None, lost)


def test_a_server_without_probabilities_ends_the_run(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "A"}, {"text": "B"})
    with pytest.raises(TaskError, match="the server reports no probabilities of tokens"):
        run(MultipleChoice(server.model, method="log_likelihood"))
    assert len(server.asked) == 1


# Examples


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"question": f"{n} + 1?", "choices": [f"{n}", f"{n + 1}", f"{n + 2}"], "answer": "B", "split": n % 2}
        for n in range(8)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def task_with_examples(folder: Path, shuffle: bool = False, **chosen: Any) -> MultipleChoice:
    examples = FewShot("rows.jsonl", input=["question", "choices"], expected="answer", **chosen)
    return MultipleChoice(
        MODEL, prompt="{{ question }}\n{{ options }}", examples=examples, folder=str(folder), shuffle=shuffle
    )


def shown(task: MultipleChoice, row: dict[str, Any]) -> list[tuple[str, str]]:
    """The question and the answer of each example that a row sees."""
    said = [message["content"] for message in task.make_messages(row)][:-1]
    return list(zip(said[::2], said[1::2], strict=True))


def test_examples_are_shown_with_their_options_and_the_letter_of_the_right_one(folder: Path) -> None:
    row = {"question": "8 + 1?", "choices": ["8", "9"]}
    assert shown(task_with_examples(folder, n=1), row) == [("0 + 1?\nA. 0\nB. 1\nC. 2", "B")]
    for question, letter in shown(task_with_examples(folder, shuffle=True, n=8, seed=1), row):
        n = int(question.split(" ")[0])
        assert f"{letter}. {n + 1}" in question.splitlines()


def test_right_answers_of_shuffled_examples_are_at_several_positions(folder: Path) -> None:
    row = {"question": "8 + 1?", "choices": ["8", "9"]}
    assert len({letter for _, letter in shown(task_with_examples(folder, shuffle=True, n=8, seed=1), row)}) > 1


def test_a_row_never_sees_its_own_question_in_whatever_order_its_options_are(folder: Path) -> None:
    task = task_with_examples(folder, shuffle=True, n=7, seed=1, per_row=True)
    for n in range(8):
        asked = {"question": f"{n} + 1?", "choices": [f"{n + 2}", f"{n}", f"{n + 1}"]}
        seen = [question.split(" ")[0] for question, _ in shown(task, asked)]
        assert sorted(seen) == [str(other) for other in range(8) if other != n]


def test_the_same_question_about_other_options_is_another_one(folder: Path) -> None:
    row = {"question": "0 + 1?", "choices": ["1", "7"]}
    assert shown(task_with_examples(folder, n=1), row) == [("0 + 1?\nA. 0\nB. 1\nC. 2", "B")]


def test_examples_of_another_split(folder: Path) -> None:
    row = {"question": "0 + 1?", "choices": ["0", "1", "2"]}
    task = task_with_examples(folder, where="split == 1", n=4, seed=3, per_row=True)
    assert sorted(question[0] for question, _ in shown(task, row)) == ["1", "3", "5", "7"]


def test_an_example_whose_answer_is_no_option_is_reported(folder: Path) -> None:
    (folder / "rows.jsonl").write_text(json.dumps({"question": "1?", "choices": ["1", "2"], "answer": "C"}) + "\n")
    with pytest.raises(ParameterError, match=r"examples: rows.jsonl: example 0: answer is 'C', which is no option by"):
        task_with_examples(folder, n=1).identify()


def test_what_decides_the_answers_is_part_of_the_identity(folder: Path) -> None:
    task = MultipleChoice(MODEL)
    different = [
        task,
        replace(task, shuffle=True),
        replace(task, answer="number"),
        replace(task, method="log_likelihood"),
        replace(task, prompt="{{ options }}"),
        task_with_examples(folder, n=2),
        task_with_examples(folder, n=2, seed=1),
        task_with_examples(folder, n=2, seed=1, per_row=True),
        task_with_examples(folder, n=2, seed=2, per_row=True),
        task_with_examples(folder, n=2, seed=2, per_row=True, where="split == 1"),
    ]
    assert len({json.dumps(each.identify().spec, sort_keys=True) for each in different}) == len(different)
    assert all(each.identify().pinned for each in different)


# Grading


def test_a_model_that_always_says_b_shows_a_position_effect(
    chat: Callable[..., Chat], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = chat(*[{"text": "B"}] * 24)
    rows = [{"question": f"{n}?", "choices": ["yes", "no", "perhaps"], "answer": 0} for n in range(24)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("experiment.yaml").write_text(f"""
name: position
dataset: {{path: rows.jsonl, input: [question, choices], expected: answer}}
tasks:
  ask: {{kind: multiple_choice, model: {{model: "{server.url}#small", version: "1"}}, answer: number, shuffle: true}}
scorers:
  right: {{kind: prediction, type: integer}}
  same: {{kind: exact_match, view: [{{kind: TransformJSON, configuration: $.prediction}}]}}
  position: shown_position
metrics:
  - {{kind: accuracy, scorer: right}}
  - {{kind: accuracy, scorer: same}}
  - {{kind: recall, scorer: position, label: A}}
  - {{kind: recall, scorer: position, label: B}}
""")
    results = Experiment.from_file("experiment.yaml").run()
    assert results.aggregation is not None
    right, same, at_a, at_b = results.aggregation.table()["value"].to_pylist()
    assert (at_a, at_b) == (0, 1)
    assert 0 < right == same < 1


def test_the_right_option_must_have_been_shown() -> None:
    graded = ShownPosition()
    output = {"prediction": 1, "position": "A", "shown": [1, 0]}
    assert graded.score(output, 1).value == 1
    assert graded.score(output, 0).columns == {"truth": "B", "prediction": "A"}
    assert graded.score({**output, "position": None}, 0).status == "abstained"
    with pytest.raises(Exception, match="the right option, the text 'A', is none of those that were shown"):
        graded.score(output, "A")


@pytest.mark.slow
def test_a_real_model_chooses_options(smollm: ChatModel) -> None:
    rows = [
        {"question": "What is the capital of France?", "choices": ["Berlin", "Paris", "Madrid"], "answer": "B"},
        {"question": "How many legs does a spider have?", "choices": ["two", "four", "eight"], "answer": "C"},
        {"question": "Which of these is a fruit?", "choices": ["apple", "stone", "chair"], "answer": "A"},
    ]
    for output in outputs(run(MultipleChoice(smollm, method="log_likelihood", shuffle=True, least_coverage=0), rows)):
        assert output["prediction"] in ("A", "B", "C")
        assert math.fsum(output["probabilities"].values()) == pytest.approx(1)
        assert output["shown"][ascii_uppercase.index(output["position"])] == output["prediction"]
    assert all({"prediction", "reply"} < {*output} for output in outputs(run(MultipleChoice(smollm), rows)))


def test_a_reply_that_names_several_options_says_so_where_it_is_graded(chat: Callable[..., Chat]) -> None:
    task = MultipleChoice(chat({"text": "A or B"}).model)
    row = {"question": "Sky?", "choices": ["red", "blue"], "answer": "B"}
    run = Runner().run(task, Dataset.from_rows([row], input=["question", "choices"], expected="answer"))
    [grade] = Evaluator(run.store).evaluate(run, {"right": {"kind": "prediction"}}).table("right").to_pylist()
    assert (grade["status"], grade["reason"]) == ("abstained", "the reply names several options")
