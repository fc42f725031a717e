"""Judges against a real server on loopback: every rubric, every way a reply can go wrong, and what is stored of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.chat_answers import Body, ChatServer

from evaluand import Dataset, Evaluator, MemoryStore, Policy, Runner, SpecError, span
from evaluand.core.errors import EvaluandError, ParameterError
from evaluand.engine.outcome import Aborted
from evaluand.evaluation.preflight import check_gradable
from evaluand.judges import Judge, JudgeTree, Jury, PairwiseJudge, PairwiseJury, Rubric, rubric_names
from evaluand.matches import Matcher
from evaluand.models import ChatModel
from evaluand.run.tasks.chat import ChatTask

ROW = {
    "question": "When does the shop open?",
    "context": ["The shop opens at nine.", "It sells books."],
    "answer": "At nine. It sells bread.",
    "other": "At ten.",
    "expected": "At nine.",
}
ROLES = {"input": ["question", "context"], "expected": "expected", "metadata": ["answer", "other"]}
QUICK = Policy(retries=1, backoff=0)
RUBRICS = {name: Rubric.of(name) for name in rubric_names()}
SINGLE = [name for name, rubric in RUBRICS.items() if not rubric.compares]
BY_PARTS = [name for name in SINGLE if RUBRICS[name].parts is not None]
PAIRWISE = [name for name, rubric in RUBRICS.items() if rubric.compares]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked: "") as started:
        yield started


def model(server: ChatServer, **settings: Any) -> ChatModel:
    return ChatModel(server.url, settings.pop("name", "small"), **{"version": "1", "cache": False, **settings})


def first_verdict(asked: Body) -> str:
    """The reply with the first verdict of the rubric that asks; two parts, where a text is to be divided."""
    system = asked["messages"][0]["content"]
    if '"parts"' in system:
        return json.dumps({"parts": ["The shop opens at nine.", "The shop sells bread."]})
    rubric = next(rubric for rubric in RUBRICS.values() if rubric.opening[0]["content"] == system)
    label = rubric.scale.as_written(rubric.scale.levels[0])
    replies = {"evidence": "at nine", "reasons": "It says so.", "verdict": label}
    return json.dumps({key: replies[key] for key in rubric.keys})


def run_of(rows: list[dict[str, Any]], answer: str = "answer", store: MemoryStore | None = None) -> Any:
    data = Dataset.from_rows(rows, **ROLES)
    outputs = {json.dumps(row["question"]): row[answer] for row in rows}
    return Runner(store or MemoryStore()).run(lambda row: outputs[json.dumps(row["question"])], data)


def judge_rows(judge: Any, rows: list[dict[str, Any]] | None = None, policy: Policy = QUICK) -> list[dict[str, Any]]:
    evaluation = Evaluator(policy=policy).evaluate(run_of(rows or [ROW]), {"judged": judge})
    return [parsed(row) for row in evaluation.table("judged").to_pylist()]


def judge_by_all(
    server: ChatServer, names: list[str], policy: Policy = QUICK, timeout: float = 60
) -> dict[str, dict[str, Any]]:
    """The score of the one row by each rubric."""
    asked = model(server, timeout=timeout)
    judges = {name: Judge(rubric=name, model=asked) for name in names}
    evaluation = Evaluator(policy=policy).evaluate(run_of([ROW]), judges)
    return {name: parsed(evaluation.table(name).to_pylist()[0]) for name in names}


def parsed(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: json.loads(row[name]) for name in ("data", "usage") if row[name] is not None}


# Every rubric


def test_every_rubric_gives_the_value_of_the_verdict(server: ChatServer) -> None:
    server.answer = first_verdict
    for name, row in judge_by_all(server, SINGLE).items():
        rubric = RUBRICS[name]
        assert (row["status"], row["value"]) == ("scored", rubric.scale.levels[0].value), name
        assert "It says so." in json.dumps([row["data"], row["explanation"]])
        n_asked = 1 if rubric.parts is None else 2 + (rubric.parts.split == "model")
        assert row["usage"]["requests"] == n_asked
        assert row["usage"]["output_tokens"] > 0


FAULTY: dict[str, dict[str, Any]] = {
    "no JSON": {"text": "The answer is right."},
    "other keys": {"text": '{"rating": 5}'},
    "out of range": {"text": '{"evidence": "", "reasons": "", "verdict": "splendid", "parts": 7}'},
    "several verdicts": {"text": '{"evidence": "", "reasons": "", "verdict": 1, "verdict": 2, "parts": 1, "parts": 2}'},
    "refusal": {"text": "", "refusal": "I cannot judge this."},
    "empty": {"text": ""},
    "cut off": {"text": '{"evidence": "", "reasons": "It says', "finish_reason": "length"},
    "wrong language": {"text": "这个答案是正确的。"},
}


@pytest.mark.parametrize("fault", FAULTY)
def test_no_rubric_makes_a_number_of_what_cannot_be_read(fault: str, server: ChatServer) -> None:
    server.answer = lambda asked: FAULTY[fault]
    for name, row in judge_by_all(server, SINGLE).items():
        assert (row["status"], row["value"], row["reason"]) == ("abstained", None, f"unreadable reply: {fault}"), name
        assert json.dumps(FAULTY[fault]["text"]) in json.dumps(row["data"])


@pytest.mark.parametrize("fault", FAULTY)
def test_one_faulty_reply_among_several_leaves_no_value(fault: str, server: ChatServer) -> None:
    second = (">\\nIt sells books.\\n</passage>", ">\\nThe shop sells bread.\\n</")

    def answer(asked: Body) -> Any:
        return FAULTY[fault] if any(part in json.dumps(asked) for part in second) else first_verdict(asked)

    server.answer = answer
    for name, row in judge_by_all(server, BY_PARTS).items():
        assert (row["status"], row["value"], row["reason"]) == ("abstained", None, f"unreadable reply: {fault}"), name
        first = RUBRICS[name].scale.levels[0].value
        assert [part.get("value") for part in row["data"]["parts"]] == [first, None]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"status": 429, "headers": {"Retry-After": "0"}, "body": {"error": {"message": "slow down"}}}, "429"),
        ({"status": 500, "body": {"error": {"message": "oops"}}}, "500"),
        pytest.param({"status": 503, "body": {}}, "503", marks=pytest.mark.slow),
        ({"status": 400, "body": {"error": {"message": "bad request"}}}, "400"),
        ({"body": {"choices": []}}, "choices"),
        ({"body": "nothing"}, "chat completion"),
        ({"hang": True}, "longer than"),
    ],
)
def test_a_request_that_fails_is_a_failed_row(reply: dict[str, Any], reason: str, server: ChatServer) -> None:
    server.answer = lambda asked: reply
    once = Policy(retries=0)
    with pytest.warns(UserWarning, match="failed"):
        found = judge_by_all(server, SINGLE, once, timeout=0.05 if "hang" in reply else 60)
    for name, row in found.items():
        assert (row["status"], row["value"]) == ("failed", None), name
        assert reason in row["reason"]
    judge = PairwiseJudge(rubric="pairwise", model=model(server, timeout=0.05 if "hang" in reply else 60))
    with pytest.warns(UserWarning, match="failed"):
        compared = matches_of(judge, policy=once)
    assert [(row["status"], row["outcome"]) for row in compared] == [("failed", None)] * 2


def test_a_refused_key_stops_the_evaluation_and_nothing_finished_is_lost(server: ChatServer) -> None:
    rows = [ROW | {"question": f"When? ({number})"} for number in range(20)]
    run = run_of(rows)
    judge = Judge(rubric="correctness", model=model(server))
    evaluate = Evaluator(run.store, policy=Policy(concurrency=1)).evaluate
    replies = iter([first_verdict] * 3)
    refused = {"status": 401, "body": {"error": {"message": "no such key"}}}
    server.answer = lambda asked: next(replies, lambda asked: refused)(asked)
    with pytest.raises(EvaluandError, match=r"401.*this stops the run"):
        evaluate(run, {"judged": judge})
    server.answer = first_verdict
    assert evaluate(run, {"judged": judge}).counts["judged"] == {"scored": 19, "failed": 1}
    assert evaluate(run, {"judged": judge}, retry_failed=True).counts["judged"] == {"scored": 20}
    assert len(server.asked) == 3 + 1 + 17


def test_a_reasoning_model_that_takes_no_temperature_stops_the_evaluation_until_none_is_sent(
    server: ChatServer,
) -> None:
    refused = "Unsupported value: 'temperature' does not support 0.0 with this model."
    error = {"message": refused, "param": "temperature", "code": "unsupported_value"}
    server.answer = lambda asked: (
        {"status": 400, "body": {"error": error}} if "temperature" in asked else first_verdict(asked)
    )
    run = run_of([ROW | {"question": f"When? ({number})"} for number in range(20)])
    evaluate = Evaluator(run.store, policy=Policy(concurrency=1)).evaluate
    with pytest.raises(EvaluandError, match=r"temperature.*; set temperature: null; this stops the run"):
        evaluate(run, {"judged": Judge(rubric="correctness", model=model(server))})
    assert len(server.asked) == 1
    thinking = Judge(rubric="correctness", model=model(server, temperature=None, max_tokens=None))
    assert evaluate(run, {"judged": thinking}).counts["judged"] == {"scored": 20}
    assert server.asked[-1].keys() == {"model", "messages", "response_format"}


def test_a_failed_request_is_repeated(server: ChatServer) -> None:
    replies = iter([{"status": 503, "body": {}}])
    server.answer = lambda asked: next(replies, None) or first_verdict(asked)
    (row,) = judge_rows(Judge(rubric="correctness", model=model(server)))
    assert row["value"] == 1.0
    assert len(server.asked) == 2


PATIENT = Policy(backoff=0)
DOWN: Body = {"status": 503, "body": {}}


@pytest.mark.parametrize("kind", ["task", "judge", "jury", "pairwise"])
def test_a_judge_repeats_requests_as_often_as_a_chat_task(kind: str, server: ChatServer) -> None:
    replies = iter([DOWN] * 4)
    server.answer = lambda asked: next(replies, None) or (first_verdict(asked) if kind != "task" else "At nine.")
    rubric = {"rubric": "correctness", "model": model(server)}
    if kind == "task":
        data = Dataset.from_rows([{"input": "When?"}])
        assert Runner(policy=PATIENT).run(ChatTask(model(server)), data).counts == {"completed": 1}
        assert len(server.asked) == 5
    elif kind == "pairwise":
        judge = PairwiseJudge(rubric="pairwise", model=model(server))
        assert {row["status"] for row in matches_of(judge, policy=replace(PATIENT, concurrency=1))} == {"scored"}
        assert len(server.asked) == 6  # 4 that failed, and 2 orders
    else:
        several = (
            Jury(rubric="correctness", models=[model(server, name=name) for name in ("a", "b")])
            if kind == "jury"
            else Judge(**rubric)
        )
        (row,) = judge_rows(several, policy=PATIENT)
        assert row["value"] == 1.0
        assert len(server.asked) == (6 if kind == "jury" else 5)


def test_a_request_of_a_judge_that_fails_throughout_is_made_five_times(server: ChatServer) -> None:
    server.answer = lambda asked: DOWN
    with pytest.warns(UserWarning, match="failed"):
        (row,) = judge_rows(Judge(rubric="correctness", model=model(server)), policy=PATIENT)
    assert (row["status"], len(server.asked)) == ("failed", 5)


def test_the_number_of_repeats_is_no_part_of_what_is_judged(server: ChatServer) -> None:
    server.answer = first_verdict
    run, judge = run_of([ROW]), Judge(rubric="correctness", model=model(server))
    once, often = (
        Evaluator(run.store, policy=policy).evaluate(run, {"judged": judge}) for policy in (Policy(retries=0), PATIENT)
    )
    assert (once.id, once.digest, len(server.asked)) == (often.id, often.digest, 1)


def test_a_judge_that_is_out_from_the_start_stops_the_evaluation_which_continues_later(server: ChatServer) -> None:
    server.answer = lambda asked: DOWN
    run = run_of([ROW | {"question": f"When? ({number})"} for number in range(30)])
    judge = Judge(rubric="correctness", model=model(server))
    evaluate = Evaluator(run.store, policy=replace(PATIENT, concurrency=4)).evaluate
    with pytest.raises(
        Aborted, match=r"the first 20 calls failed, all with the same error: .*503.*none of them counts"
    ):
        evaluate(run, {"judged": judge})
    assert 100 <= len(server.asked) < 130
    server.answer = first_verdict
    assert evaluate(run, {"judged": judge}).counts == {"judged": {"scored": 30}}


# Values


SCALE = {"polite": 1, "curt": 0.5, "rude": 0}
POLITE = {"instructions": "Is it polite?", "material": ["input", "output"], "scale": SCALE}
BY_LENGTH: Callable[[Body], str] = lambda asked: said(  # noqa: E731
    "polite" if len(asked["messages"][-1]["content"]) % 2 else "rude"
)


def said(verdict: Any, reasons: str = "It says so.", evidence: str | None = None) -> str:
    keys = {"reasons": reasons, "verdict": verdict} | ({} if evidence is None else {"evidence": evidence})
    return json.dumps(keys)


def test_a_score_has_the_verdict_the_reasons_and_the_reply(server: ChatServer) -> None:
    server.answer = lambda asked: f"Well.\n{said('curt', 'No greeting.')}"
    (row,) = judge_rows(Judge(rubric=POLITE, model=model(server)))
    assert (row["value"], row["label"], row["explanation"]) == (0.5, "curt", "No greeting.")
    assert row["data"]["reply"] == f"Well.\n{said('curt', 'No greeting.')}"
    assert row["usage"]["requests"] == len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (said("unsure", "The reply is in a language that I do not read."), "out of range"),
        ('{"verdict": "unsure"}', "out of range"),
        ('{"reasons": "It is neither.", "verdict": null}', "out of range"),
        (f"{said('polite')}\nCorrection: {said('rude')}", "several verdicts"),
        (f"I cannot judge this. It contains {said('polite')}, an attempt to instruct me.", "refusal"),
        (f"<think>Perhaps {said('polite')}? Hmm", "cut off"),
    ],
)
def test_an_answer_without_a_verdict_is_taken_as_it_is(reply: str, fault: str, server: ChatServer) -> None:
    server.answer = lambda asked: reply
    (row,) = judge_rows(Judge(rubric=POLITE, model=model(server)))
    assert (row["status"], row["reason"]) == ("abstained", f"unreadable reply: {fault}")
    assert row["data"]["reply"] == ("" if reply.startswith("<think>") else reply)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("It is polite.", "it has no JSON"),
        ('{"verdict": "polite"}', "the reply has verdict; it needs reasons, verdict"),
        (f"{said('polite')} I hope this helps!", "it has other text around its JSON"),
        (
            '{"reasons": "", "verdict": "polite", "verdict_at_first": "rude"}',
            "the reply has verdict_at_first, which may be another verdict, beside verdict",
        ),
    ],
)
def test_a_reply_of_another_form_is_asked_for_again(reply: str, told: str, server: ChatServer) -> None:
    asked_again = "This reply does not fit: "
    server.answer = lambda asked: said("rude") if asked_again in asked["messages"][-1]["content"] else reply
    (row,) = judge_rows(Judge(rubric=POLITE, model=model(server)))
    assert (row["value"], row["data"]["reply"]) == (0, said("rude"))
    assert row["data"]["steps"] == {"schema": 1, "json": 1, "tool": 1, "text": 1, "repair": 1}
    assert f"{asked_again}{told}.\n" in server.texts()[-1]


@pytest.mark.parametrize("verdict", ["polite", "unsure"])
def test_a_verdict_is_read_from_the_call_that_gave_it(verdict: str, server: ChatServer) -> None:
    called = [{"id": "1", "type": "function", "function": {"name": "reply", "arguments": said(verdict)}}]
    message = {"role": "assistant", "content": "Let me think. Perhaps {}?", "tool_calls": called}
    answered = {"body": {"choices": [{"message": message, "finish_reason": "tool_calls"}]}}
    refused = {"status": 400, "body": {"error": {"message": "response_format is not supported"}}}
    server.answer = lambda asked: refused if "response_format" in asked else answered
    (row,) = judge_rows(Judge(rubric=POLITE, model=model(server)))
    assert row["data"]["reply"] == said(verdict)
    assert row["data"]["steps"] == {"schema": 1, "json": 1, "tool": 1}
    assert row["label"] == ("polite" if verdict == "polite" else None)


def test_a_judge_sees_the_row_and_nothing_else_of_it(server: ChatServer) -> None:
    server.answer = lambda asked: said("polite")
    judge_rows(
        Judge(rubric=POLITE | {"material": ["input", "context", "output", "expected", "other"]}, model=model(server))
    )
    (text,) = server.texts()
    assert text == (
        "<input>\nWhen does the shop open?\n</input>\n"
        "<context>\n[1] The shop opens at nine.\n[2] It sells books.\n</context>\n"
        "<output>\nAt nine. It sells bread.\n</output>\n<expected>\nAt nine.\n</expected>\n<other>\nAt ten.\n</other>"
    )


def test_variables_may_be_read_from_the_output_and_from_what_was_recorded(server: ChatServer) -> None:
    def retrieve(question: str, context: list[str]) -> dict[str, Any]:
        with span("retriever.search", input={"query": question}) as search:
            search.output = context
        return {"text": "At nine.", "sources": {"all": ["one", "two"]}}

    server.answer = lambda asked: said("polite")
    run = Runner(MemoryStore()).run(retrieve, Dataset.from_rows([ROW], **ROLES))
    paths = {"output": "output.text", "sources": "output.sources.all", "found": "__record__.app.retriever.search.rets"}
    rubric = POLITE | {"material": ["output", "sources", "found"]}
    judge = Judge(rubric=rubric, model=model(server), variables=paths)
    Evaluator(policy=QUICK).evaluate(run, {"judged": judge})
    assert server.texts() == [
        "<output>\nAt nine.\n</output>\n<sources>\n[1] one\n[2] two\n</sources>\n"
        "<found>\n[1] The shop opens at nine.\n[2] It sells books.\n</found>"
    ]
    assert not judge.sees_times


def test_a_row_without_what_the_rubric_reads_abstains_without_a_request(server: ChatServer) -> None:
    server.answer = lambda asked: said("correct")
    rows = [ROW, ROW | {"question": "Where?", "expected": None}]
    found = judge_rows(Judge(rubric="correctness", model=model(server)), rows)
    assert [(row["status"], row["reason"]) for row in found] == [("scored", None), ("abstained", "no expected value")]
    assert len(server.asked) == 1


def test_a_judge_that_can_judge_no_example_is_refused_before_a_request(server: ChatServer) -> None:
    data = Dataset.from_rows([ROW], input="question")
    message = "the rubric reads context, and the example has input, expected; say where it is, such as variables:"
    with pytest.raises(SpecError, match=message):
        check_gradable(Judge(rubric="groundedness", model=model(server)), data, {})
    check_gradable(
        Judge(rubric="groundedness", model=model(server), variables={"context": "output.passages"}), data, {}
    )
    assert not server.asked


def test_parts_have_their_evidence_and_their_mean(server: ChatServer) -> None:
    def answer(asked: Body) -> str:
        content = asked["messages"][-1]["content"]
        if "<claim>" not in content:
            return json.dumps({"parts": ["The shop opens at nine.", "The shop sells bread.", "It sells books."]})
        if "bread" in content.partition("<claim>")[2]:
            return said("unsupported", "Only books are named.", "")
        return said("supported", "It says so.", "opens at nine" if "nine." in content[-30:] else "It sells many books.")

    server.answer = answer
    (row,) = judge_rows(Judge(rubric="groundedness", model=model(server)))
    assert row["value"] == pytest.approx(2 / 3)
    assert row["label"] is None
    assert row["explanation"].split("\n")[1] == "unsupported: The shop sells bread."
    parts = row["data"]["parts"]
    assert [(part["part"][:14], part["value"], part.get("quoted")) for part in parts] == [
        ("The shop opens", 1.0, True),
        ("The shop sells", 0.0, None),
        ("It sells books", 1.0, False),
    ]
    assert row["usage"]["requests"] == 4


@pytest.mark.parametrize(("combine", "value"), [("mean", 0.5), ("min", 0), ("max", 1)])
def test_parts_may_be_sentences_and_combined_otherwise(combine: str, value: float, server: ChatServer) -> None:
    server.answer = lambda asked: said("rude" if "bread" in asked["messages"][-1]["content"] else "polite")
    parts = {"of": "output", "name": "sentence", "split": "sentences", "combine": combine}
    (row,) = judge_rows(Judge(rubric=POLITE | {"material": ["sentence"], "parts": parts}, model=model(server)))
    assert row["value"] == value
    assert [part["part"] for part in row["data"]["parts"]] == ["At nine.", "It sells bread."]


@pytest.mark.parametrize(
    ("parts", "reason"), [([], "no claim in the output"), ([str(n) for n in range(51)], "too many parts of the output")]
)
def test_texts_without_parts_or_with_too_many_abstain(parts: list[str], reason: str, server: ChatServer) -> None:
    server.answer = lambda asked: json.dumps({"parts": parts})
    (row,) = judge_rows(Judge(rubric="groundedness", model=model(server)))
    assert (row["status"], row["value"], row["reason"]) == ("abstained", None, reason)
    assert len(server.asked) == 1


def test_samples_are_requests_of_their_own_and_their_mean_counts(server: ChatServer) -> None:
    replies = iter(["polite", "rude", "polite", "curt"])
    server.answer = lambda asked: said(next(replies))
    judge = Judge(rubric=POLITE, model=model(server, temperature=0.7, cache=True), samples=4)
    (row,) = judge_rows(judge)
    assert row["value"] == pytest.approx(0.625)
    assert row["label"] == "polite"
    assert row["agreement"] == pytest.approx(1 / 6)
    assert sorted(sample["label"] for sample in row["data"]["samples"]) == ["curt", "polite", "polite", "rude"]
    assert len(server.asked) == 4


def test_one_faulty_sample_leaves_no_value(server: ChatServer) -> None:
    replies = iter([said("polite"), "hm", said("polite")])
    server.answer = lambda asked: next(replies) if "json_schema" in str(asked.get("response_format")) else "hm"
    (row,) = judge_rows(Judge(rubric=POLITE, model=model(server, temperature=0.7), samples=3))
    assert (row["status"], row["value"], row["reason"]) == ("abstained", None, "unreadable reply: no JSON")
    assert sum(sample.get("value") == 1 for sample in row["data"]["samples"]) == 2


def with_logprobs(verdict: str, top: dict[str, float]) -> dict[str, Any]:
    """A reply whose verdict had these probabilities."""
    parts = ['{"reasons": "So it is.", "verdict": ', verdict, '"}' if verdict[0] == '"' else "}"]
    tokens = [{"token": part, "logprob": -0.1, "top_logprobs": []} for part in parts]
    tokens[1]["logprob"] = math.log(top[verdict])
    tokens[1]["top_logprobs"] = [{"token": token, "logprob": math.log(p)} for token, p in top.items()]
    return {"text": "".join(parts), "logprobs": {"content": tokens}}


def test_the_expected_value_weighs_the_verdicts_by_their_probabilities(server: ChatServer) -> None:
    server.answer = lambda asked: with_logprobs("4", {"4": 0.6, "5": 0.3, "2": 0.1})
    (row,) = judge_rows(Judge(rubric="helpfulness", model=model(server), from_logprobs=True))
    assert row["value"] == pytest.approx(0.6 * 0.75 + 0.3 * 1 + 0.1 * 0.25)
    assert row["label"] == "4"
    assert row["data"]["probabilities"] == pytest.approx({"2": 0.1, "4": 0.6, "5": 0.3})
    assert server.asked[0]["logprobs"] is True


def test_without_probabilities_there_is_no_expected_value(server: ChatServer) -> None:
    server.answer = lambda asked: said(4)
    (row,) = judge_rows(Judge(rubric="helpfulness", model=model(server), from_logprobs=True))
    assert (row["status"], row["value"], row["label"]) == ("abstained", None, "4")
    assert row["reason"] == "no expected value: the model reports no probabilities"


# Comparisons


def matches_of(judge: Any, policy: Policy = QUICK) -> list[dict[str, Any]]:
    store = MemoryStore()
    runs = [run_of([ROW], answer, store) for answer in ("answer", "other")]
    return Matcher(store, policy=policy).match(runs, judge, labels=["a", "b"]).table().to_pylist()


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_pair_is_judged_in_both_orders(name: str, server: ChatServer) -> None:
    rubric = Rubric.of(name)
    first = rubric.scale.levels[0]
    server.answer = lambda asked: said(first.label)
    found = matches_of(PairwiseJudge(rubric=name, model=model(server)))
    assert [(row["order"], row["outcome"], row["strength"]) for row in found] == [
        ("ab", 1.0, first.strength),
        ("ba", 0.0, first.strength),
    ]
    assert ["<first>\nAt nine." in text for text in server.texts()].count(True) == 1


def test_the_requests_of_a_comparison_are_traced(server: ChatServer) -> None:
    server.answer = lambda asked: said("first")
    store = MemoryStore()
    runs = [run_of([ROW], answer, store) for answer in ("answer", "other")]
    matches = Matcher(store, policy=QUICK).match(runs, PairwiseJudge(rubric="pairwise", model=model(server)))
    spans = [row for batch in store.read("matches", matches.id, "spans") for row in batch.to_pylist()]
    assert [span["kind"] for span in spans].count("llm") == 2
    assert '"input_tokens":' in spans[-1]["attributes"]


@pytest.mark.parametrize("fault", FAULTY)
@pytest.mark.parametrize("name", PAIRWISE)
def test_a_comparison_that_cannot_be_read_has_no_outcome(name: str, fault: str, server: ChatServer) -> None:
    server.answer = lambda asked: FAULTY[fault]
    found = matches_of(PairwiseJudge(rubric=name, model=model(server)))
    assert [(row["status"], row["outcome"], row["reason"]) for row in found] == [
        ("abstained", None, f"unreadable reply: {fault}")
    ] * 2


def test_a_comparison_may_have_an_expected_outcome(server: ChatServer) -> None:
    server.answer = lambda asked: with_logprobs('"first', {'"first': 0.7, '"tie': 0.2, '"second': 0.1})
    judge = PairwiseJudge(rubric="pairwise", model=model(server), from_logprobs=True)
    assert [row["outcome"] for row in matches_of(judge)] == pytest.approx([0.8, 0.2])


# Juries


def by_name(**replies: Any) -> Callable[[Body], Any]:
    return lambda asked: replies[asked["model"]]


def jury(server: ChatServer, kind: Any = Jury, **options: Any) -> Any:
    names = ["one", "two", "three"]
    rubric = options.pop("rubric", POLITE)
    return kind(rubric=rubric, models=[model(server, name=name) for name in names], **options)


@pytest.mark.parametrize(("combine", "value"), [("mean", 0.5), ("median", 0.5), ("min", 0), ("max", 1)])
def test_a_jury_combines_its_members(combine: str, value: float, server: ChatServer) -> None:
    server.answer = by_name(one=said("polite"), two=said("curt"), three=said("rude"))
    (row,) = judge_rows(jury(server, combine=combine))
    assert (row["value"], row["label"], row["agreement"], row["spread"]) == (value, None, 0, 1)
    assert [(each["model"], each["label"]) for each in row["data"]["members"]] == [
        ("one", "polite"),
        ("two", "curt"),
        ("three", "rude"),
    ]


def test_a_majority_decides_or_nobody(server: ChatServer) -> None:
    server.answer = by_name(one=said("polite"), two=said("rude"), three=said("polite", "All is well."))
    (row,) = judge_rows(jury(server, combine="majority"))
    assert (row["value"], row["label"], row["agreement"]) == (1, "polite", pytest.approx(1 / 3))
    server.answer = by_name(one=said("polite"), two=said("rude"), three=said("curt"))
    (row,) = judge_rows(jury(server, combine="majority"))
    assert (row["status"], row["value"], row["reason"]) == ("abstained", None, "no majority")


def test_a_quorum_decides_without_the_others(server: ChatServer) -> None:
    server.answer = by_name(one=said("polite"), two="hm", three={"status": 500, "body": {}})
    (row,) = judge_rows(jury(server, quorum=1))
    assert (row["value"], row["agreement"], row["spread"]) == (1, None, 0)
    assert row["data"]["members"][1]["reason"] == "unreadable reply: no JSON"
    assert "500" in row["data"]["members"][2]["error"]


def test_a_jury_below_its_quorum_has_no_value(server: ChatServer) -> None:
    server.answer = by_name(one=said("polite"), two="hm", three=said("polite"))
    (row,) = judge_rows(jury(server))
    assert (row["status"], row["value"], row["reason"]) == ("abstained", None, "unreadable reply: no JSON")
    server.answer = by_name(one=said("polite"), two=said("polite"), three={"status": 500, "body": {}})
    with pytest.warns(UserWarning, match="failed"):
        (row,) = judge_rows(jury(server))
    assert (row["status"], row["value"]) == ("failed", None)


def test_a_jury_compares_responses(server: ChatServer) -> None:
    server.answer = by_name(one=said("first"), two=said("first"), three=said("tie"))
    found = matches_of(jury(server, PairwiseJury, rubric="pairwise"))
    assert [row["outcome"] for row in found] == pytest.approx([2.5 / 3, 0.5 / 3])


# Trees


NODES: dict[str, Any] = {
    "refuses": {
        "rubric": {"instructions": "Does it refuse?", "material": ["output"], "scale": {"yes": 1, "no": 0}},
        "then": {"yes": {"value": 0, "label": "refused"}, "no": "polite"},
    },
    "polite": {"rubric": POLITE, "then": {"polite": 1, "curt": 0.6, "rude": 0.2}},
}


def refuse_or(verdict: Any) -> Callable[[Body], str]:
    return lambda asked: said("no" if "refuse" in asked["messages"][0]["content"] else verdict)


def test_a_tree_asks_along_its_path(server: ChatServer) -> None:
    server.answer = refuse_or("curt")
    tree = JudgeTree(nodes=NODES, model=model(server))
    (row,) = judge_rows(tree)
    assert (row["value"], row["label"]) == (0.6, "curt")
    assert [(node["node"], node["label"]) for node in row["data"]["path"]] == [("refuses", "no"), ("polite", "curt")]
    assert row["explanation"] == "refuses: no. It says so.\npolite: curt. It says so."
    server.answer = lambda asked: said("yes")
    (row,) = judge_rows(tree)
    assert (row["value"], row["label"]) == (0, "refused")
    assert len(server.asked) == 3
    assert tree.ranges == {"value": (0, 1)}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_path_ends_where_a_reply_cannot_be_read(fault: str, server: ChatServer) -> None:
    good = refuse_or("curt")
    server.answer = lambda asked: good(asked) if "refuse" in asked["messages"][0]["content"] else FAULTY[fault]
    (row,) = judge_rows(JudgeTree(nodes=NODES, model=model(server)))
    assert (row["status"], row["value"], row["reason"]) == ("abstained", None, f"polite: unreadable reply: {fault}")
    assert [node["node"] for node in row["data"]["path"]] == ["refuses", "polite"]


# Faults and identity


def faults_of(make: Callable[[], Any]) -> list[str]:
    with pytest.raises(ParameterError) as caught:
        make()
    return str(caught.value).split("\n")


def test_all_faults_of_a_judge_are_reported_at_once(server: ChatServer) -> None:
    asked = model(server)
    assert faults_of(lambda: Judge(rubric="helpfulnes", model={"url": server.url}, variables={"a": 1})) == [
        "rubric: no rubric is called 'helpfulnes' (did you mean 'helpfulness'?); a file ends in .yaml",
        "model.name: is missing",
    ]
    assert faults_of(
        lambda: Judge(rubric=POLITE, model=asked, samples=2, from_logprobs=1, variables={"inpt": "a"})
    ) == [
        "variables.inpt: is no variable of the rubric (did you mean 'input'?); it reads input, output",
        "samples: are 2 equal replies at temperature 0; give the model a temperature",
        "from_logprobs: is the integer 1; give true or false",
    ]
    assert faults_of(lambda: Judge(rubric=POLITE | {"scale": "0-10"}, model=asked, from_logprobs=True)) == [
        "from_logprobs: needs verdicts that begin differently; '10' begins with '1'"
    ]
    assert faults_of(lambda: Judge(rubric="pairwise", model=asked)) == [
        "rubric: pairwise compares two responses; name it as the judge of matches"
    ]
    assert faults_of(lambda: PairwiseJudge(rubric="correctness", model=asked)) == [
        "rubric: correctness judges one response; a comparison needs the material first and second"
    ]


def test_all_faults_of_a_jury_are_reported_at_once(server: ChatServer) -> None:
    asked = model(server)
    assert faults_of(lambda: Jury(rubric=POLITE, models=[asked], combine="avg", quorum=3)) == [
        "models: are a list; list at least two models",
        "combine: is the text 'avg'; give one of mean, median, min, max, majority",
        "quorum: is the integer 3; give how many of the models must have a verdict",
    ]
    assert faults_of(lambda: Jury(rubric="groundedness", models=[asked, asked], combine="majority")) == [
        "models.1: is named twice; a member has one vote",
        "combine: cannot be majority: groundedness has a verdict for each part and none for the whole",
    ]


def test_all_faults_of_a_tree_are_reported_at_once(server: ChatServer) -> None:
    polite = NODES["polite"]
    nodes = {
        "refuses": NODES["refuses"] | {"then": {"yes": "refuses", "maybe": 1}},
        "polite": polite | {"then": {"polite": "end", "curt": "polite", "rude": None}},
        "grounded": {"rubric": "groundedness"},
        "empty": {"ruberic": "correctness"},
    }
    found = faults_of(lambda: JudgeTree(nodes=nodes, model=model(server)))
    assert found == [
        "nodes.refuses.then.maybe: is not on the scale; it has yes, no",
        "nodes.refuses.then: does not say what follows 'no'",
        "nodes.polite.then.rude: is null; give the name of a question, or a value",
        "nodes.grounded.rubric: groundedness has a verdict for each part and none for the whole, so no path follows"
        " from it",
        "nodes.empty.ruberic: unknown key (did you mean 'rubric'?); known keys: rubric, model, then",
        "nodes.empty.rubric: is missing; name a rubric, or write it here",
    ]
    circle = {
        "a": polite | {"then": {"polite": "b", "curt": 0, "rude": "c"}},
        "b": polite | {"then": {"polite": "a", "curt": 0, "rude": 0}},
        "d": polite,
    }
    assert faults_of(lambda: JudgeTree(nodes=circle)) == [
        "nodes.a.model: is missing; give the tree a model, or this question",
        "nodes.b.model: is missing; give the tree a model, or this question",
        "nodes.d.model: is missing; give the tree a model, or this question",
    ]
    assert faults_of(lambda: JudgeTree(nodes=circle, model=model(server))) == [
        "nodes.a.then.rude: there is no question 'c'; give one, or a value",
        "nodes.a: is asked again on its own path; a path must end",
        "nodes.b: is asked again on its own path; a path must end",
        "nodes.d: is never asked; name it under then of another question",
    ]


def test_the_digest_of_a_judge_covers_rubric_model_and_parameters(server: ChatServer) -> None:
    def digest(rubric: Any = POLITE, **settings: Any) -> str:
        options = {name: settings.pop(name) for name in ("samples", "from_logprobs", "variables") if name in settings}
        return Judge(rubric=rubric, model=model(server, **settings), **options).judge_digest

    base = digest()
    changed = [
        digest(POLITE | {"instructions": "Is it very polite?"}),
        digest(name="large"),
        digest(version="2"),
        digest(max_tokens=100),
        digest(from_logprobs=True),
        digest(temperature=1, samples=3),
        digest(variables={"input": "context"}),
        digest(version=None),
    ]
    assert len({base, *changed}) == len(changed) + 1
    assert digest(POLITE | {"name": "x", "summary": "y"}) == digest(timeout=3) == base


def test_the_same_judge_reuses_its_scores_and_a_changed_rubric_does_not(server: ChatServer) -> None:
    server.answer = lambda asked: said("polite")
    run = run_of([ROW])
    grade = Evaluator(run.store, policy=QUICK).evaluate
    grade(run, {"judged": Judge(rubric=POLITE, model=model(server))})
    again = grade(run, {"judged": Judge(rubric=POLITE | {"summary": "New."}, model=model(server))})
    assert again.receipt.called == 0
    changed = grade(run, {"judged": Judge(rubric=POLITE | {"scale": SCALE | {"rude": 0.1}}, model=model(server))})
    assert changed.receipt.called == 1
    assert len(server.asked) == 2


def test_a_model_without_a_version_pins_nothing(server: ChatServer) -> None:
    identity = Judge(rubric=POLITE, model=model(server, version=None)).identify()
    assert not identity.pinned
    assert "declare the model's `version`" in identity.unpinned[0]
    assert Judge(rubric=POLITE, model=model(server)).identify().pinned


def test_examples_that_move_are_not_judged_again(server: ChatServer) -> None:
    server.answer = BY_LENGTH
    store, rows = MemoryStore(), [ROW, ROW | {"question": "And on Sundays?"}]
    judge = Judge(rubric=POLITE, model=model(server))
    for order in (rows, rows[::-1]):
        run = Runner(store).run(lambda row: f"Good question: {row['question']}", Dataset.from_rows(order, **ROLES))
        Evaluator(store, policy=QUICK).evaluate(run, {"judged": judge})
    assert len(server.asked) == 2
