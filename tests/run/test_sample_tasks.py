"""The tasks that come with evaluand, asked over a real server on loopback, and with a real small model where it is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, strategies as st
from support.chats import Chat
from support.json_schemas import jsonschema
from support.places import ROOT_FOLDER

from evaluand.cli import main
from evaluand.core.errors import DataError, ParameterError, SpecError, TaskError, TaskTimeout, TransientError
from evaluand.core.fingerprint import fingerprint
from evaluand.core.text import retrieval
from evaluand.core.text.retrieval import EmbeddingIndex, Passage, Retriever, WordIndex
from evaluand.data.dataset import Dataset
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.http import BadAnswer, BadRequest
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.experiment import json_schema
from evaluand.interop import pharia
from evaluand.models.chat_model import ChatModel
from evaluand.models.completion import CutOff
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Task
from evaluand.run.tasks.chunk import Chunk
from evaluand.run.tasks.detect_language import DetectLanguage
from evaluand.run.tasks.instruct import Instruct, Instruction
from evaluand.run.tasks.question_answering import DocumentQuestion, QuestionAnswering, RetrieverQuestionAnswering
from evaluand.run.tasks.summary import Summary
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore
from evaluand.trace import Span, Trace
from evaluand.trace.conventions import named_attributes
from evaluand.trace.tracers.no_op import NoOpTracer

EXAMPLE = ROOT_FOLDER / "examples" / "questions"
SECRET = "a-key-that-nobody-may-see"
QUICK = Policy(retries=2, backoff=0)
UNTRACED = NoOpTracer()


def traced(task: Task[Any, Any], input: Any) -> tuple[Any, Trace]:
    trace = Trace.start("whole", input)
    with trace.root as task_span:
        output = task.run(input, task_span)
    return output, trace


def tree(trace: Trace) -> list[tuple[str, str | None]]:
    """The name of each span, and that of the span above it."""
    names = {span.number: span.name for span in trace.spans}
    return [(span.name, names.get(span.parent) if span.parent is not None else None) for span in trace.spans]


def spans(trace: Trace, kind: str) -> list[Span]:
    return [span for span in trace.spans if span.kind == kind]


def run(task: Task[Any, Any], *inputs: Any, **how: Any) -> Run:
    return Runner(**how).run(task, Dataset.from_rows([{"input": input} for input in inputs]))


def outcomes(run: Run) -> list[tuple[str, Any]]:
    return [(row.status, row.error["code"] if row.error else row.responses) for row in run]


# Chunks


@given(
    st.text(st.sampled_from("ab .\n!é\u0301\u200d👍🏽\r。"), max_size=60) | st.text(max_size=60),
    st.integers(1, 30),
    st.sampled_from(["characters", "words"]),
)
def test_chunks_joined_are_the_text_and_none_is_too_long(text: str, max_length: int, unit: Any) -> None:
    chunks = Chunk(max_length, unit).run(text, UNTRACED)
    length = len if unit == "characters" else lambda chunk: len(chunk.split())
    assert "".join(chunks) == text
    assert all(chunks)
    assert all(length(chunk) <= max_length for chunk in chunks)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("One. Two.\n\nThree four five.", ["One. Two.\n\n", "Three four five."]),
        ("One two three.\nFour five six.", ["One two three.\n", "Four five six."]),
        ("He left us. She stayed there.", ["He left us. ", "She stayed there."]),
        ("seventeen letters plus", ["seventeen letters ", "plus"]),
        ("a" * 21, ["a" * 20, "a"]),
        ("好的。" * 7, ["好的。" * 6, "好的。"]),
        ("", []),
    ],
)
def test_a_chunk_ends_at_the_best_pause_it_reaches(text: str, chunks: list[str]) -> None:
    assert Chunk(20).run(text, UNTRACED) == chunks


def test_a_character_stays_with_its_marks() -> None:
    assert Chunk(3).run("abe\u0301cd", UNTRACED) == ["ab", "e\u0301c", "d"]
    assert Chunk(2).run("a👍🏽", UNTRACED) == ["a", "👍🏽"]


def test_tokens_are_those_of_llama_or_counted_by_a_function() -> None:
    text = "The unbelievably long antidisestablishmentarianism goes on. " * 5
    chunks = Chunk(12, "tokens").run(text, UNTRACED)
    assert "".join(chunks) == text
    assert max(map(retrieval.count_tokens, chunks)) <= 12 < retrieval.count_tokens(chunks[0] + chunks[1])
    assert Chunk(2, lambda text: text.count("a")).run("banana", UNTRACED) == ["banan", "a"]


def test_a_text_that_fits_whole_is_one_chunk_although_a_part_of_it_is_longer() -> None:
    def count(text: str) -> int:
        return len(text.replace("abcd", "X").replace("ab", "Y"))

    assert Chunk(1, count).run("abcd", UNTRACED) == ["abcd"]
    assert Chunk(2, count).run("abcdabcd", UNTRACED) == ["abcdabcd"]


def test_a_length_is_kept_as_an_integer_of_python() -> None:
    assert [type(part) for part in (Chunk(np.int64(3)).max_length, Chunk(3).max_length)] == [int, int]


@pytest.mark.parametrize(("max_length", "unit"), [(0, "characters"), (1.5, "characters"), (10, "pages")])
def test_what_is_no_length_is_refused(max_length: Any, unit: Any) -> None:
    with pytest.raises(ParameterError, match=r"max_length: is|unit: is 'pages'; give 'characters' or 'words'"):
        Chunk(max_length, unit)


# Languages


def test_the_language_of_a_text_is_reported_among_those_that_it_may_have() -> None:
    german = "Das ist ein deutscher Satz über das Wetter."
    assert DetectLanguage().run(german, UNTRACED) == "de"
    assert DetectLanguage(["en", "fr"]).run(german, UNTRACED) is None
    assert DetectLanguage().run("12 34", UNTRACED) is None
    with pytest.raises(ParameterError, match="languages: 'klingon' cannot be detected"):
        DetectLanguage(["en", "klingon"])


def test_chunks_and_languages_are_pinned_by_their_parameters() -> None:
    assert Chunk(10).identify().spec != Chunk(11).identify().spec
    assert DetectLanguage(["de", "en"]).identify() == DetectLanguage(["en", "de"]).identify()
    assert Chunk(10).identify().pinned


# Retrievers


def test_words_are_weighed_as_bm25_says() -> None:
    index = WordIndex(["cat cat dog", "dog", "bird bird"])  # 2 words on average
    rarity = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = rarity * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert index.search("Cat?") == [Passage("cat cat dog", pytest.approx(expected), "0")]


def test_passages_come_best_first_and_those_alike_in_the_order_given() -> None:
    index = WordIndex({"x": "red car", "y": "red red", "z": "red car", "w": "blue"})
    assert [found.id for found in index.search("red car", limit=2)] == ["x", "z"]
    assert [found.id for found in index.search("red car")] == ["x", "z", "y"]
    assert index.search("green") == index.search("") == WordIndex([]).search("a") == []
    with pytest.raises(SpecError, match="limit must be at least 1"):
        index.search("red", limit=0)


def test_embeddings_find_what_shares_no_word_with_the_query() -> None:
    passages = {"sea": "The ship sank in the ocean.", "law": "The court convicted the thief.", "none": ""}
    index = EmbeddingIndex(passages)
    assert [index.search(query, limit=1)[0].id for query in ("boat", "crime")] == ["sea", "law"]
    assert index.search("") == EmbeddingIndex([]).search("boat") == []
    assert isinstance(index, Retriever)


def test_an_index_is_known_by_its_passages() -> None:
    prints = [fingerprint(WordIndex(passages)) for passages in (["a"], ["a"], ["b"])]
    assert prints[0].digest == prints[1].digest != prints[2].digest
    assert prints[0].pinned


# Asking a model


def test_an_instruction_and_its_context_are_sent_as_the_protocol_has_it(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "Paris"})
    model = replace(server.model, max_tokens=9, parameters={"top_p": 0.5})
    asked = Instruction(instruction="Answer briefly.", context="The capital of France?")
    assert Instruct(model).run(asked, UNTRACED) == "Paris"
    assert server.asked[0]["path"] == "/v1/chat/completions"
    assert server.asked[0]["body"] == {
        "model": "small",
        "messages": [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "The capital of France?"},
        ],
        "temperature": 0.0,
        "max_tokens": 9,
        "top_p": 0.5,
    }


def test_a_text_is_the_instruction_or_the_context_of_the_task_s_own(chat: Callable[..., Chat]) -> None:
    server = chat()
    Instruct(server.model).run("Say hello.", UNTRACED)
    Instruct(server.model, instruction="Translate.").run("hello", UNTRACED)
    said = [[message["content"] for message in asked["body"]["messages"]] for asked in server.asked]
    assert said == [["Say hello."], ["Translate.", "hello"]]
    with pytest.raises(TaskError, match="both the task and the input have an instruction"):
        Instruct(server.model, instruction="Translate.").run(Instruction(instruction="Sing."), UNTRACED)


def test_the_span_of_a_model_tells_tokens_under_the_names_of_genai(chat: Callable[..., Chat]) -> None:
    _, trace = traced(Instruct(chat({"text": "It is Paris."}).model), "What is the capital?")
    [span] = spans(trace, "llm")
    assert (span.input, span.output) == ([{"role": "user", "content": "What is the capital?"}], "It is Paris.")
    reported = named_attributes(span.attributes)
    assert {name: reported[name] for name in reported if name.startswith("gen_ai.")} == {
        "gen_ai.request.model": "small",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 512,
        "gen_ai.response.model": "small-2026",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 4,
        "gen_ai.usage.output_tokens": 3,
    }


def test_a_run_counts_the_tokens_of_all_that_a_call_asked(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "one"}, {"text": "two words"}, {"text": "three more words"})
    task = Summary(server.model, instruction="Shorten.", max_length=21, concurrency=1)
    made = run(task, "First sentence here. Second sentence.")
    [used] = made.table().column("usage").to_pylist()
    counted = {
        "input_tokens": 4 + 3 + 4,
        "output_tokens": 1 + 2 + 3,
        "cost": None,
        "currency": None,
        "model": "small-2026",
    }
    assert {name: used[name] for name in counted} == counted


COMPLETION = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]}
FAILURES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"status": 400, "body": '{"error": {"message": "context too long"}}'}, BadRequest, "400 .*context too long"),
    ({"status": 401, "body": '{"error": {"message": "wrong key"}}'}, BadRequest, "401 .*wrong key"),
    ({"status": 429, "headers": {"Retry-After": "7"}, "body": "{}"}, TransientError, "429"),
    ({"status": 500, "body": "{}"}, TransientError, "500"),
    ({"body": '{"choices": [{"mess'}, BadAnswer, r'the answer is not JSON: {"choices"'),
    ({"body": '{"choices": []}'}, BadAnswer, "the answer has an empty list of choices"),
    ({"body": "{}"}, BadAnswer, "the answer has no choices"),
    ({"body": "[1]"}, BadAnswer, "the answer is a list, not a chat completion"),
    ({"body": '{"error": {"message": "out of order"}}'}, BadAnswer, "the answer is an error: .*out of order"),
    (
        {"body": '{"choices": [{"message": {"content": null}, "finish_reason": "tool_calls"}]}'},
        BadAnswer,
        "no text .finish_reason tool_calls",
    ),
    ({"finish_reason": "content_filter"}, BadAnswer, "withheld by the server"),
    ({"finish_reason": "length", "text": "Once upon a"}, CutOff, "cut off after 512 tokens; raise max_tokens"),
]


@pytest.mark.parametrize(("reply", "error", "message"), FAILURES)
def test_what_is_no_reply_is_reported_in_a_sentence(
    chat: Callable[..., Chat], reply: dict[str, Any], error: type[Exception], message: str
) -> None:
    trace = Trace.start("whole")
    with pytest.raises(error, match=message), trace.root as task_span:
        Instruct(chat(reply).model).run("Hello", task_span)
    assert [span.status for span in trace.spans] == ["error"] * 3


def test_a_reply_that_was_cut_off_is_kept_where_that_is_wanted(chat: Callable[..., Chat]) -> None:
    server = chat({"finish_reason": "length", "text": "Once upon a"})
    output, trace = traced(Instruct(replace(server.model, cut_off="keep")), "Tell a story.")
    assert output == "Once upon a"
    assert spans(trace, "llm")[0].attributes["finish_reasons"] == ["length"]


def test_numbers_of_tokens_that_are_none_are_left_out(chat: Callable[..., Chat]) -> None:
    body = json.dumps({**COMPLETION, "usage": {"prompt_tokens": "many", "completion_tokens": -1}})
    output, trace = traced(Instruct(chat({"body": body}).model), "Hello")
    assert output == "a"
    assert not {"input_tokens", "output_tokens", "response_model"} & spans(trace, "llm")[0].attributes.keys()


@pytest.mark.slow
def test_a_model_that_takes_too_long_is_given_up(chat: Callable[..., Chat]) -> None:
    server = chat({"delay": 60}, {"text": "quick"})
    task = Instruct(replace(server.model, timeout=3))
    with pytest.raises(TaskTimeout, match=r"the model took longer than 3 s"):
        task.run("Hello", UNTRACED)
    assert task.run("Hello", UNTRACED) == "quick"


def test_a_run_tries_again_what_may_pass(chat: Callable[..., Chat]) -> None:
    busy = {"status": 429, "headers": {"Retry-After": "0"}, "body": "{}"}
    server = chat(busy, {"status": 503, "body": "{}"}, {"text": "at last"})
    assert outcomes(run(Instruct(server.model), "Hello", policy=QUICK)) == [("completed", ["at last"])]
    slow = chat({"delay": 60}, {"text": "at last"})
    task, patient = Instruct(replace(slow.model, timeout=0.3)), Policy(retries=50, backoff=0)
    assert outcomes(run(task, "Hello", policy=patient)) == [("completed", ["at last"])]


BUSY = {"status": 503, "body": "{}"}
TEN_CHUNKS = " ".join(f"Sentence number {number} of a text. And no more." for number in range(10))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_refused_request_of_a_call_is_repeated_alone(chat: Callable[..., Chat], concurrency: int) -> None:
    server = chat(*({"text": "s"} if number % 4 else BUSY for number in range(1, 15)))
    task = Summary(server.model, max_length=48, concurrency=concurrency)
    made = run(task, TEN_CHUNKS, policy=Policy(retries=3, backoff=0, timeout=60))
    assert outcomes(made) == [("completed", ["s"])]
    asked = [request["body"]["messages"][-1]["content"] for request in server.asked]
    requests, repeats = len(set(asked)), len(asked) - len(set(asked))
    assert (requests, repeats) == (11, 3)  # ten chunks and their joined summaries
    sent = [span for batch in made.spans() for span in batch.to_pylist() if span["kind"] == "llm"]
    assert [span["status"] for span in sent].count("error") == repeats
    assert len(sent) == len(asked) == requests + repeats
    assert made.table()["attempts"].to_pylist() == [1 + repeats]


def test_a_request_that_is_refused_again_and_again_fails_its_call_once(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "s"}, {"text": "s"}, *[BUSY] * 9)
    made = run(Summary(server.model, max_length=48, concurrency=1), TEN_CHUNKS, policy=QUICK)
    assert outcomes(made) == [("failed", "503")]
    assert made.table()["attempts"].to_pylist() == [3]
    assert len(server.asked) == 2 + 3
    assert run(Instruct(chat(BUSY).model), "Hello", policy=Policy(retries=0)).table()["attempts"].to_pylist() == [1]


def test_a_run_goes_on_after_a_refused_row_and_stops_at_a_refused_key(chat: Callable[..., Chat]) -> None:
    one = Policy(concurrency=1)
    refused = chat({"status": 400, "body": "{}"})
    assert outcomes(run(Instruct(refused.model), "a", "b", policy=one)) == [("failed", "400"), ("completed", ["b"])]
    unknown = chat({"status": 401, "body": '{"error": "no such key"}'})
    with pytest.raises(Aborted, match="no such key"):
        run(Instruct(unknown.model), "a", "b", policy=one)
    assert len(unknown.asked) == 1


def test_calls_in_processes_of_their_own_ask_too(chat: Callable[..., Chat]) -> None:
    server = chat()
    task = Instruct(server.model)
    assert task.run("before", UNTRACED) == "before"  # so that there are a loop and a connection to leave behind
    made = run(task, "a", "b", engine=ProcessEngine(2))
    assert outcomes(made) == [("completed", ["a"]), ("completed", ["b"])]


# The key


def test_the_key_is_sent_and_stands_nowhere(
    chat: Callable[..., Chat], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMALL_KEY", SECRET)
    refused = {"status": 400, "body": json.dumps({"error": f"bad key {SECRET}"})}
    server = chat({"text": "fine"}, refused, {"text": SECRET})
    model = replace(server.model, api_key="SMALL_KEY")
    store = DirectoryStore(tmp_path / "store")
    runner = Runner(store=store, policy=Policy(concurrency=1))
    made = runner.run(Instruct(model), Dataset.from_rows([{"input": text} for text in "abc"]))
    assert [asked["headers"]["Authorization"] for asked in server.asked] == [f"Bearer {SECRET}"] * 3
    assert outcomes(made) == [("completed", ["fine"]), ("failed", "400"), ("failed", "secret")]
    stored = [path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert stored
    assert not any(SECRET.encode() in content for content in stored)
    assert SECRET not in repr(model)


def test_a_key_that_is_not_set_stops_before_anything_is_asked(
    chat: Callable[..., Chat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SMALL_KEY", raising=False)
    server = chat()
    with pytest.raises(SpecError, match="api_key: the environment variable SMALL_KEY is not set"):
        run(Instruct(replace(server.model, api_key="SMALL_KEY")), "a")
    assert not server.asked


def test_a_key_given_in_place_of_its_name_is_refused_and_not_shown() -> None:
    with pytest.raises(ParameterError, match="api_key: must be the name of the environment variable") as refused:
        ChatModel("http://127.0.0.1:1/v1", "small", api_key="sk-proj-abcdefgh12345")
    assert "abcdefgh" not in str(refused.value)


def test_all_faults_of_a_model_are_reported_at_once() -> None:
    with pytest.raises(ParameterError) as refused:
        ChatModel("ftp://x", "", max_tokens=0, timeout=0, cut_off="no", parameters={"stream": True})  # type: ignore[arg-type]
    assert [place[0] for place, _ in refused.value.faults] == [
        *("url", "name", "max_tokens", "timeout", "cut_off", "parameters"),
    ]


# Identity


def test_a_model_is_pinned_by_its_version_wherever_it_answers() -> None:
    model = ChatModel("http://127.0.0.1:1/v1", "small", version="1", api_key="A")
    here, there = Instruct(model), Instruct(replace(model, url="http://elsewhere/v1", api_key=None))
    assert here.identify().spec == there.identify().spec
    assert here.identify().pinned
    for change in ({"version": "2"}, {"temperature": 1.0}, {"max_tokens": 9}, {"seed": 1}):
        assert Instruct(replace(model, **change)).identify().spec != here.identify().spec  # type: ignore[arg-type]
    [why] = Instruct(replace(model, version=None)).identify().unpinned
    assert "declare the model's `version` to pin it" in why


class Shouted(Task[str, str]):
    def __init__(self, model: ChatModel) -> None:
        self.instruct = Instruct(model)

    def do_run(self, input: str, task_span: Any) -> str:
        return self.instruct.run(input, task_span).upper()


def test_a_task_of_one_s_own_that_asks_a_model_is_as_pinned_as_the_model(chat: Callable[..., Chat]) -> None:
    server = chat()
    task = Shouted(server.model)
    before = task.identify()
    assert task.run("hello", UNTRACED) == "HELLO"
    assert (task.identify().spec, before.pinned) == (before.spec, True)
    assert not Shouted(replace(server.model, version=None)).identify().pinned


def test_what_was_asked_of_a_version_is_not_asked_again(chat: Callable[..., Chat]) -> None:
    server, store = chat(), MemoryStore()
    data = Dataset.from_rows([{"input": "a"}])
    Runner(store=store).run(Instruct(server.model), data)
    Runner(store=store).run(Instruct(server.model), Dataset.from_rows([{"input": "a"}, {"input": "b"}]))
    assert [asked["body"]["messages"][0]["content"] for asked in server.asked] == ["a", "b"]


# Summaries


def test_a_short_document_is_summarised_at_once(chat: Callable[..., Chat]) -> None:
    output, trace = traced(Summary(chat({"text": "Rain."}).model), "It rains. It pours.")
    assert output == "Rain."
    assert tree(trace) == [
        ("whole", None),
        ("Summary", "whole"),
        ("Chunk", "Summary"),
        ("Instruct", "Summary"),
        ("chat", "Instruct"),
    ]


def test_a_long_document_is_summarised_by_chunks_in_several_levels(chat: Callable[..., Chat]) -> None:
    server = chat()
    text = "First one. It is long.\n\nSecond one. It is long too.\n\n"
    output, trace = traced(Summary(server.model, max_length=30, concurrency=1), text)
    assert output == "First one\n\nSecond one"
    assert tree(trace) == [
        ("whole", None),
        ("Summary", "whole"),
        ("Chunk", "Summary"),
        ("Concurrent Instruct tasks", "Summary"),
        ("Instruct", "Concurrent Instruct tasks"),
        ("chat", "Instruct"),
        ("Instruct", "Concurrent Instruct tasks"),
        ("chat", "Instruct"),
        ("Chunk", "Summary"),
        ("Instruct", "Summary"),
        ("chat", "Instruct"),
    ]
    assert [asked["body"]["messages"][1]["content"] for asked in server.asked] == [
        "First one. It is long.\n\n",
        "Second one. It is long too.\n\n",
        "First one\n\nSecond one",
    ]


def test_summaries_that_are_no_shorter_end_in_a_sentence(chat: Callable[..., Chat]) -> None:
    with pytest.raises(TaskError, match="the summaries of 2 chunks are together no shorter than the chunks"):
        Summary(chat({"text": "x" * 50}, {"text": "y" * 50}).model, max_length=40).run("a b c. " * 8, UNTRACED)


def test_nothing_is_asked_about_an_empty_document(chat: Callable[..., Chat]) -> None:
    server = chat()
    assert Summary(server.model).run(" \n", UNTRACED) == ""
    assert not server.asked


# Questions


def test_an_answer_is_the_model_s_and_none_where_it_says_so(chat: Callable[..., Chat]) -> None:
    server = chat({"text": " 1815\n"}, {"text": "No answer."})
    task = QuestionAnswering(replace(server.model, cache=False))
    asked = DocumentQuestion(document="Emma appeared in 1815.", question="When?")
    assert [task.run(asked, UNTRACED) for _ in range(2)] == ["1815", None]
    assert server.asked[0]["body"]["messages"][1]["content"] == "Emma appeared in 1815.\n\nQuestion: When?"


def test_of_a_long_document_the_model_sees_what_shares_words_with_the_question(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "in 1815"})
    document = "The river rose. " * 20 + "Emma appeared in 1815. " + "The road was closed. " * 20
    asked = DocumentQuestion(document=document, question="When appeared Emma?")
    output, trace = traced(QuestionAnswering(server.model, max_length=200), asked)
    assert output == "in 1815"
    seen = server.asked[0]["body"]["messages"][1]["content"]
    assert "Emma appeared in 1815." in seen
    assert len(seen) < 300 < len(document)
    assert ("Chunk", "QuestionAnswering") in tree(trace)
    assert [span.name for span in spans(trace, "retriever")] == ["search"]


BOOKS = {"emma": "Emma was written by Jane Austen.", "ulysses": "Ulysses was written by James Joyce."}


def test_an_answer_from_a_retriever_cites_its_sources(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "James Joyce [1, 9]."})
    output, trace = traced(RetrieverQuestionAnswering(server.model, WordIndex(BOOKS)), "Who wrote Ulysses?")
    assert output.answer == "James Joyce [1, 9]."
    assert [(source.id, source.cited) for source in output.sources] == [("ulysses", True)]
    assert server.asked[0]["body"]["messages"][1]["content"].startswith("[1] Ulysses was written by James Joyce.")
    assert tree(trace)[1:] == [
        ("RetrieverQuestionAnswering", "whole"),
        ("search", "RetrieverQuestionAnswering"),
        ("Instruct", "RetrieverQuestionAnswering"),
        ("chat", "Instruct"),
    ]
    [event] = next(span for span in trace.spans if span.name == "RetrieverQuestionAnswering").events
    assert (event.name, event.body) == ("cites passages that it was not given", [9])


def test_without_a_passage_there_is_no_answer_and_nothing_is_asked(chat: Callable[..., Chat]) -> None:
    server = chat()
    answer = RetrieverQuestionAnswering(server.model, WordIndex(BOOKS)).run("Hello?", UNTRACED)
    assert (answer.answer, answer.sources, server.asked) == (None, [], [])


def test_a_retriever_is_part_of_what_the_task_is() -> None:
    model = ChatModel("http://127.0.0.1:1/v1", "small", version="1")
    tasks = [RetrieverQuestionAnswering(model, WordIndex(books)) for books in (BOOKS, {**BOOKS}, {"a": "b"})]
    assert tasks[0].identify().spec == tasks[1].identify().spec != tasks[2].identify().spec
    with pytest.raises(ParameterError, match="retriever: has no search"):
        RetrieverQuestionAnswering(model, BOOKS)
    with pytest.raises(ParameterError, match="path: needs either path, a file of documents, or retriever"):
        RetrieverQuestionAnswering(model)


# Experiment files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    authors = {"Emma": "Austen", "Ulysses": "Joyce"}
    rows = [{"question": f"Who wrote {title}?", "answer": name} for title, name in authors.items()]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    books = [{"title": title, "body": text} for title, text in BOOKS.items()]
    (tmp_path / "books.jsonl").write_text("".join(json.dumps(row) + "\n" for row in books))
    (tmp_path / "search.py").write_text(f"from evaluand import WordIndex\nindex = WordIndex({BOOKS!r})\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


MODEL = {"url": "http://h/v1", "name": "m"}


def experiment(model: dict[str, Any]) -> dict[str, Any]:
    search = {"kind": "retriever_question_answering", "model": model, "limit": 1}
    return {
        "name": "books",
        "dataset": {"path": "questions.jsonl", "input": "question", "expected": "answer"},
        "tasks": {
            "asked": {"kind": "instruct", "model": model, "instruction": "Answer in one word."},
            "words": {**search, "path": "books.jsonl", "text": "body", "id": "title"},
            "meaning": {**search, "path": "books.jsonl", "text": "body", "index": "embeddings"},
            "own": {**search, "retriever": "search.py:index"},
            "summary": {"kind": "summary", "model": model},
            "chunk": {"kind": "chunk", "max_length": 5, "unit": "words"},
            "language": {"kind": "detect_language", "languages": ["en", "de"]},
        },
        "scorers": {"right": {"kind": "includes", "view": [{"kind": "TransformJSON", "configuration": "$.answer"}]}},
        "metrics": ["accuracy"],
    }


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*arguments])
    return done.exit_code, done.output


@pytest.mark.slow
def test_an_experiment_file_names_them_as_kinds(chat: Callable[..., Chat], folder: Path) -> None:
    server = chat()
    reported = experiment({"url": server.url, "name": "small", "version": "1"})
    jsonschema.validate(reported, json_schema())
    reported["tasks"] = {name: reported["tasks"][name] for name in ("words", "meaning", "own")}
    (folder / "e.yaml").write_text(yaml.safe_dump(reported))
    code, output = command("run", "e.yaml", "--json")
    assert code == 0, output
    assert [row["value"] for row in json.loads(output)["metrics"]] == [1.0, 1.0, 1.0]
    asked = len(server.asked)
    assert command("run", "e.yaml")[0] == 0
    assert len(server.asked) == asked


def test_outputs_that_are_text_are_graded_as_they_are(chat: Callable[..., Chat], folder: Path) -> None:
    server = chat({"text": "Jane Austen"}, {"text": "Homer"})
    reported = experiment({"url": server.url, "name": "small", "version": "1"})
    reported["tasks"] = {"asked": reported["tasks"]["asked"]}
    reported |= {"scorers": {"right": "includes"}, "run": {"concurrency": 1}}
    (folder / "e.yaml").write_text(yaml.safe_dump(reported))
    code, output = command("run", "e.yaml", "--json")
    assert code == 0, output
    assert [row["value"] for row in json.loads(output)["metrics"]] == [0.5]


@pytest.mark.parametrize(
    ("task", "reported"),
    [
        ({"kind": "instruct", "model": {**MODEL, "temprature": 1}}, "temprature"),
        (
            {"kind": "instruct", "model": {**MODEL, "api_key": "sk-1"}},
            "api_key: must be the name of the environment variable",
        ),
        ({"kind": "instruct", "model": {"name": "m"}}, "url"),
        ({"kind": "instruct", "model": "m"}, "model"),
        ({"kind": "summary", "model": MODEL, "max_length": 0}, "max_length: is the integer 0"),
        ({"kind": "chunk", "unit": "pages"}, "unit"),
        ({"kind": "retriever_question_answering", "model": MODEL}, "needs either path"),
        (
            {"kind": "retriever_question_answering", "model": MODEL, "path": "no.jsonl"},
            "no.jsonl: no such file",
        ),
        (
            {"kind": "retriever_question_answering", "model": MODEL, "path": "books.jsonl"},
            "books.jsonl: no column is called 'text'; there are title, body",
        ),
    ],
)
def test_a_fault_in_an_experiment_file_is_reported_with_its_place(
    folder: Path, task: dict[str, Any], reported: str
) -> None:
    (folder / "e.yaml").write_text(yaml.safe_dump(experiment({}) | {"tasks": {"it": task}}))
    code, output = command("run", "e.yaml")
    assert code in (1, 2)
    assert reported in output
    assert "Traceback" not in output


def test_documents_with_one_id_are_refused(folder: Path) -> None:
    (folder / "twice.jsonl").write_text('{"id": "a", "text": "b"}\n' * 2)
    model = ChatModel("http://127.0.0.1:1/v1", "small")
    with pytest.raises(DataError, match=r"twice\.jsonl:2: the id 'a' occurs twice"):
        run(RetrieverQuestionAnswering(model, path="twice.jsonl", id="id"), "a?")


def test_a_document_without_text_is_refused_with_its_line(folder: Path) -> None:
    (folder / "gap.jsonl").write_text('{"text": "a"}\n{"text": null}\n')
    model = ChatModel("http://127.0.0.1:1/v1", "small")
    with pytest.raises(DataError, match=r"gap\.jsonl:2: a document needs a text in 'text'"):
        run(RetrieverQuestionAnswering(model, path="gap.jsonl"), "a?")


def test_documents_may_have_any_column_besides(chat: Callable[..., Chat], folder: Path) -> None:
    (folder / "own.jsonl").write_text('{"_index_": "x", "text": "Emma was written by Austen."}\n' * 2)
    server = chat({"text": "Austen [1]"})
    [row] = run(RetrieverQuestionAnswering(server.model, path="own.jsonl"), "Who wrote Emma?")
    assert [source["cited"] for source in row.responses[0]["sources"]] == [True, False]


def test_a_dataset_of_other_inputs_is_refused_before_anything_is_asked(chat: Callable[..., Chat]) -> None:
    server = chat()
    with pytest.raises(DataError, match="task 'QuestionAnswering' takes DocumentQuestion"):
        run(QuestionAnswering(server.model), "When?")
    assert not server.asked


# The names of the Pharia SDKs


def test_the_names_of_the_sdk_do_the_same(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "Once upon", "finish_reason": "length"})
    asked = pharia.InstructInput(instruction="Tell a story.", input="A frog.", maximum_tokens=2)
    output = pharia.Instruct(server.model).run(asked, pharia.NoOpTracer())
    assert (output.completion, output.generated_tokens, output.num_tokens_prompt_total) == ("Once upon", 2, 5)
    assert output.completions[0].finish_reason == "length"
    assert server.asked[0]["body"]["max_tokens"] == 2

    class Words:
        def tokenize(self, text: str) -> list[str]:
            return text.split()

    text = pharia.ChunkInput(text="One two. Three four five.")
    assert pharia.Chunk(Words(), 3).run(text, UNTRACED).chunks == ["One two. ", "Three four five."]
    places = pharia.ChunkWithIndices(Words(), 3).run(text, UNTRACED).chunks_with_indices
    assert [(place.start_index, place.end_index) for place in places] == [(0, 9), (9, 25)]

    german, english, french = map(pharia.Language, ("de", "en", "fr"))
    text = "Das ist ein deutscher Satz über das Wetter."
    fits = [
        pharia.DetectLanguage().run(pharia.DetectLanguageInput(text=text, possible_languages=among), UNTRACED).best_fit
        for among in ([german, english], [english, french], [])
    ]
    assert fits == [german, None, None]
    assert german.language_config({german: "Hallo"}) == "Hallo"
    with pytest.raises(pharia.LanguageNotSupportedError, match="there is no configuration for fr; available are: de"):
        french.language_config({german: "Hallo"})


def test_a_reply_that_is_begun_goes_on_from_there(chat: Callable[..., Chat]) -> None:
    server = chat({"text": "Once upon a time"}, {"text": " a time"})
    asked = pharia.InstructInput(instruction="Tell a story.", response_prefix="Once upon")
    task = pharia.Instruct(replace(server.model, cache=False))
    assert [task.run(asked, UNTRACED).completion for _ in range(2)] == [" a time"] * 2
    assert server.asked[0]["body"]["messages"] == [
        {"role": "user", "content": "Tell a story."},
        {"role": "assistant", "content": "Once upon"},
    ]


def test_a_language_is_called_by_its_name() -> None:
    names = [pharia.Language(code).get_name() for code in ("de", "EN", "nb", "xx", "")]
    assert names == ["German", "English", "Norwegian Bokmål", None, None]


# The real model


RIVER = "Rain fell on the village for three days. The river rose above the bridge. The mayor closed the road. "


def experiment_at(url: str, folder: Path) -> str:
    """The experiment of the example, with a server of another address."""
    for name in ("questions.jsonl", "articles.jsonl"):
        (folder / name).write_text((EXAMPLE / name).read_text())
    text = (EXAMPLE / "experiment.yaml").read_text()
    assert "http://127.0.0.1:8080/v1" in text
    (folder / "example.yaml").write_text(text.replace("http://127.0.0.1:8080/v1", url))
    return str(folder / "example.yaml")


def test_the_example_searches_articles(
    chat: Callable[..., Chat], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = chat()
    code, output = command("run", experiment_at(server.url, tmp_path), "--json")
    assert code == 0, output
    assert len(server.asked) == 8
    asked = [each["body"]["messages"][1]["content"] for each in server.asked]
    assert sum("[1] The bakery in Mill Lane" in text for text in asked) == 2


@pytest.mark.slow
def test_a_real_model_answers_the_questions_of_the_example(
    smollm: ChatModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = command("run", experiment_at(smollm.url, tmp_path), "--json")
    assert code == 0, output
    values = [(row["value"], row["n"]) for row in json.loads(output)["metrics"]]
    assert [n for _, n in values] == [4, 4]
    assert all(value >= 0.5 for value, _ in values)


@pytest.mark.slow
def test_a_real_model_follows_an_instruction(smollm: ChatModel) -> None:
    asked = Instruction(instruction="Answer in one sentence.", context="What is the capital of France?")
    output, trace = traced(Instruct(smollm), asked)
    assert "Paris" in output
    [span] = spans(trace, "llm")
    assert span.attributes["input_tokens"] > 10
    assert 0 < span.attributes["output_tokens"] <= 30


@pytest.mark.slow
def test_a_real_model_summarises_by_chunks(smollm: ChatModel) -> None:
    text = RIVER * 3 + "\n\n" + "The bakery sold bread to everyone in the village, and the children sang. " * 4
    output, trace = traced(Summary(smollm, max_length=320, concurrency=2), text)
    assert 0 < len(output) < len(text)
    assert len(spans(trace, "llm")) >= 3
    assert {"Chunk", "Instruct", "chat"} < {span.name for span in trace.spans}


@pytest.mark.slow
def test_a_real_model_answers_questions(smollm: ChatModel) -> None:
    asked = DocumentQuestion(document=RIVER, question="Who closed the road?")
    assert "mayor" in (QuestionAnswering(smollm).run(asked, UNTRACED) or "")
    index = WordIndex({"river": RIVER, "book": "Emma was written by Jane Austen."})
    found = RetrieverQuestionAnswering(smollm, index, limit=1).run("Who wrote Emma?", UNTRACED)
    assert "Austen" in (found.answer or "")
    assert [source.id for source in found.sources] == ["book"]
