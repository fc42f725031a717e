"""The model providers of TruLens against a real server on loopback: every method, every way a reply can go wrong."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.chat_answers import Body, ChatServer

from evaluand import Dataset, DirectoryStore, Evaluator, Policy, Runner
from evaluand.apps.recording.workers import work
from evaluand.core.errors import ParameterError, SpecError, TaskError, TransientError
from evaluand.interop.trulens import (
    AzureOpenAI,
    Bedrock,
    Cohere,
    Cortex,
    Criteria,
    Feedback,
    GroundednessConfigs,
    Huggingface,
    HuggingfaceInference,
    Langchain,
    LiteLLM,
    LLMProvider,
    OpenAI,
    OutputSpace,
    Provider,
    Select,
    TruApp,
    instrument,
)
from evaluand.interop.trulens.huggingface_inference import MODELS

ARGUMENTS = {
    "prompt": "When does the shop open?",
    "question": "When does the shop open?",
    "response": "At nine. It sells bread.",
    "text": "At nine. It sells bread.",
    "statement": "It opens at nine. It sells bread.",
    "source": "The shop opens at nine.",
    "context": "The shop opens at nine.",
    "summary": "It opens at nine.",
    "records": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "At nine."}],
    "reference_topics": ["shops"],
    "request": "Say when the shop opens, in English.",
    "output": "At nine.",
    "trace": [{"name": "search", "input": "hours", "output": "nine"}],
    "system_prompt": "Rate how polite a text is.",
}
METHODS = sorted(
    name
    for name, each in inspect.getmembers(LLMProvider, inspect.isfunction)
    if hasattr(each, "judged") or name.startswith("generate_score")
)
HIGHEST = {
    name: 10 if name.startswith("generate") else 1 if "citation_attr" in name or "goal" in name else 3
    for name in METHODS
}
HIGHEST["requirement_satisfaction_with_cot_reasons"] = 1
RECORD = {"main_input": "When does the shop open?", "main_output": "At nine."}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked: "") as started:
        yield started


def judge(server: ChatServer, **settings: Any) -> OpenAI:
    return OpenAI(**{"model_engine": "small", "base_url": server.url, "version": "1", "cache": False, **settings})


def call(provider: LLMProvider, name: str, **options: Any) -> Any:
    """A method with an argument for each that it requires."""
    method = getattr(provider, name)
    needed = [each.name for each in inspect.signature(method).parameters.values() if each.default is each.empty]
    return method(**{each: ARGUMENTS[each] for each in needed}, **options)


def replies(verdict: Callable[[list[int]], int]) -> Callable[[Body], str]:
    """Well-formed replies with the verdict that a function chooses of the scale; two parts of a text; or an answer."""

    def reply(asked: Body) -> str:
        if "response_format" not in asked:
            return "It opens at nine."
        properties = asked["response_format"]["json_schema"]["schema"]["properties"]
        if "parts" in properties:
            return json.dumps({"parts": ["It opens at nine.", "It sells bread."]})
        filled = {"evidence": "at nine", "reasons": "It says so.", "verdict": 0}
        return json.dumps(
            {key: verdict(properties[key]["enum"]) if key == "verdict" else filled[key] for key in properties}
        )

    return reply


def test_every_method_gives_0_to_1_from_the_lowest_to_the_highest_verdict(server: ChatServer) -> None:
    for name in METHODS:
        values = []
        for choose in (min, lambda scale: scale[0] + 1, max):
            server.answer = replies(choose)
            values.append(call(judge(server), name).value)
        if name.endswith("consider_answerability"):  # the verdict 1 says first that the sentence declines to answer
            assert values == [0.0, 0.0, 0.0]
        else:
            assert values == pytest.approx([0.0, 1 / HIGHEST[name], 1.0]), name


def test_reasons_are_asked_for_first_and_stand_in_the_metadata(server: ChatServer) -> None:
    server.answer = replies(max)
    for name in METHODS:
        server.asked.clear()
        meta = call(judge(server), name).meta
        keys = [
            [*asked["response_format"]["json_schema"]["schema"]["properties"]]
            for asked in server.asked
            if "response_format" in asked
        ]
        if name.endswith(("_with_cot_reasons", "and_reasons")):
            assert keys[-1][-2:] == ["reasons", "verdict"], name
            assert "It says so." in json.dumps(meta), name
        else:
            assert keys[-1] == ["verdict"], name
        assert meta["reason"]


FAULTY: dict[str, dict[str, Any]] = {
    "no JSON": {"text": "The answer is right."},
    "other keys": {"text": '{"rating": 3}'},
    "out of range": {"text": '{"evidence": "", "reasons": "", "verdict": 99, "parts": 7}'},
    "several verdicts": {"text": '{"evidence": "", "reasons": "", "verdict": 1, "verdict": 2, "parts": 1, "parts": 2}'},
    "refusal": {"text": "", "refusal": "I cannot judge this."},
    "empty": {"text": ""},
    "cut off": {"text": '{"evidence": "", "reasons": "It says', "finish_reason": "length"},
    "wrong language": {"text": "这个答案是正确的。"},
}


QUICK_FAULTS = ("no JSON", "refusal", "empty", "cut off")
"""Those that are tried with every method; the others take five requests and differ in how a text is read alone."""

DIFFERENT = [
    *("relevance", "sentiment_with_cot_reasons", "context_relevance", "model_agreement", "citation_attribution"),
    *("groundedness_measure_with_cot_reasons", "groundedness_measure_with_cot_reasons_consider_answerability"),
    *("comprehensiveness_with_cot_reasons", "requirement_satisfaction_with_cot_reasons", "generate_score"),
]
"""Methods that ask in different ways."""


@pytest.mark.parametrize("fault", FAULTY)
def test_no_method_makes_a_number_of_what_cannot_be_read(fault: str, server: ChatServer) -> None:
    def answer(asked: Body) -> Any:
        is_own = (
            fault not in ("refusal", "empty", "cut off")
            and "response_format" not in asked
            and len(asked["messages"]) == 1
        )
        return "At nine." if is_own else FAULTY[fault]

    server.answer = answer
    provider = judge(server)
    for name in METHODS if fault in QUICK_FAULTS else DIFFERENT:
        judged = call(provider, name)
        assert (judged.value, judged.reason) == (None, f"unreadable reply: {fault}"), name


@pytest.mark.parametrize(
    ("reply", "kind"),
    [({"status": 403, "body": {"error": "no"}}, TaskError), ({"status": 503, "body": {}}, TransientError)],
)
def test_requests_that_fail_are_errors(reply: dict[str, Any], kind: type[Exception], server: ChatServer) -> None:
    server.answer = lambda asked: reply
    provider = judge(server)
    for name in METHODS:
        with pytest.raises(kind, match=str(reply["status"])):
            call(provider, name)


def test_a_model_that_hangs_is_given_up(server: ChatServer) -> None:
    server.answer = lambda asked: {"hang": True}
    provider = judge(server, timeout=0.3)
    with ThreadPoolExecutor(len(DIFFERENT)) as pool:
        raised = [future.exception() for future in [pool.submit(call, provider, name) for name in DIFFERENT]]
    assert {getattr(each, "code", None) for each in raised} == {"timeout"}


# The guide


def method_rows() -> list[str]:
    """The rows of the guide's table of methods."""
    rows = []
    for name, method in {**vars(LLMProvider), **vars(OpenAI)}.items():
        base = name.removesuffix(REASONS)
        if not hasattr(method, "range") or (base != name and hasattr(LLMProvider, base)):
            continue
        judged = getattr(method, "judged", None)
        own = [each for each in inspect.signature(method).parameters.values() if each.kind is not each.KEYWORD_ONLY]
        written = ", ".join(each.name for each in own[1:])
        twin = f" `…{REASONS}`" if hasattr(LLMProvider, name + REASONS) else ""
        if judged is None:
            asks = "`/moderations`" if name.startswith("moderation") else "1 question"
            scale = "0 to 1" if name.startswith("moderation") else "0–10"
        else:
            rubric = judged.usual_rubric({})
            asks = "1 question" if rubric.parts is None else f"1 for each {rubric.parts.name}"
            scale = f"{judged.scale[0]}–{judged.scale[1]}"
            if inspect.iscoroutinefunction(method.__wrapped__):
                asks = "2 for each sentence" if judged.rubric == "groundedness" else "2 questions"
        summary = (method.__doc__ or "").splitlines()[0].removesuffix(".")
        rows.append(f"| `{name}({written})`{twin} | {summary} | {asks} | {scale} |")
    return sorted(rows)


REASONS = "_with_cot_reasons"


def test_the_guide_lists_every_method() -> None:
    page = (Path(__file__).parents[2] / "docs/howto/trulens-models.md").read_text()
    begin = page.index("| method | judges | asks | verdicts |")
    written = page[begin:].split("\n\n")[0].splitlines()[2:]
    assert written == method_rows()


def test_the_guide_lists_the_classifiers() -> None:
    page = (Path(__file__).parents[2] / "docs/howto/trulens-models.md").read_text()
    rows = page.partition("| method | classifies | model |")[2].split("\n\n")[0]
    assert dict(re.findall(r"\| `(\w+)`[^|]*(?:\\\|[^|]*)*\| `([^`]+)` \|$", rows, re.MULTILINE)) == MODELS
    assert set(re.findall(r"`(\w+)\(|, `(\w+)`", rows)) == {
        (name, "") if name != "pii_detection_with_cot_reasons" else ("", name) for name in CLASSIFIERS
    }


# Options


def test_options_change_what_is_asked_and_the_scale(server: ChatServer) -> None:
    server.answer = replies(max)
    provider = judge(server)
    examples = ["“Thanks!”: 1", ({"prompt": "Hi", "response": "Hello"}, 5)]
    judged = provider.relevance(
        "a", "b", criteria="Is it polite?", additional_instructions="Be strict.", examples=examples,
        min_score_val=1, max_score_val=5, temperature=0.7,
    )  # fmt: skip
    asked = server.asked[-1]
    said = asked["messages"][0]["content"]
    assert judged.value == 1.0
    assert asked["temperature"] == 0.7
    assert "Is it polite?" in said
    assert "Be strict." in said
    assert "- “Thanks!”: 1" in said
    assert '- {"prompt":"Hi","response":"Hello"}: 5' in said
    assert "1, 2, 3, 4 or 5" in said
    assert provider.relevance("a", "b", output_space=OutputSpace.LIKERT_0_10).meta["verdict"] == "10"
    assert provider.relevance("a", "b", output_space="binary").meta["verdict"] == "1"
    provider.sentiment("a", criteria=Criteria.CREATIVITY)
    assert "original" in server.asked[-1]["messages"][0]["content"]


def test_a_feedback_has_the_options_of_its_method(server: ChatServer) -> None:
    server.answer = replies(lambda scale: 1)
    feedback = Feedback(judge(server).relevance, criteria="Is it polite?", max_score_val=4).on_default()
    assert feedback.run(record=RECORD).result == 0.25
    other = Feedback(judge(server).relevance, criteria="Is it short?", max_score_val=4).on_default()
    assert feedback.feedback_definition_id != other.feedback_definition_id
    with pytest.raises(SpecError, match="conciseness has no option 'examples'"):
        Feedback(judge(server).conciseness, examples=["a"])
    with pytest.raises(SpecError, match="only methods of model providers have these"):
        Feedback(len, criteria="Is it polite?")


def test_wrong_options_are_refused_before_anything_is_sent(server: ChatServer) -> None:
    provider = judge(server)
    for options, said in (
        ({"criteria": 3}, "criteria is the integer 3; give a text"),
        ({"min_score_val": 3}, "min_score_val and max_score_val are 3 and 3; give whole numbers"),
        ({"output_space": "likert"}, "output_space is the text 'likert'; known: LIKERT_0_3"),
        ({"examples": 7}, "examples is the integer 7; give a list"),
        ({"examples": [7]}, "an example is the integer 7; give a text, or a pair"),
    ):
        with pytest.raises(SpecError, match=said):
            provider.relevance("a", "b", **options)
    with pytest.raises(SpecError, match=r"options: criterion is none .did you mean 'criteria'"):
        judge(server, options={"criterion": "x"})
    with pytest.raises(SpecError, match="system_prompt is the text ''; say what to judge"):
        provider.generate_score("")
    assert not server.asked


@pytest.mark.parametrize(
    ("configs", "n_asked"),
    [
        (None, 3),
        (GroundednessConfigs(use_sent_tokenize=True, filter_trivial_statements=False), 2),
        (GroundednessConfigs(use_sent_tokenize=False, filter_trivial_statements=True), 3),
    ],
)
def test_a_statement_is_divided_as_configured(configs: Any, n_asked: int, server: ChatServer) -> None:
    server.answer = replies(max)
    judged = judge(server).groundedness_measure_with_cot_reasons(
        "The shop opens at nine.", "It opens at nine. It sells bread.", groundedness_configs=configs
    )
    assert [each["criteria"] for each in judged.meta["reasons"]] == ["It opens at nine.", "It sells bread."]
    assert len(server.asked) == n_asked


@pytest.mark.parametrize(("answerable", "value"), [(0, 1.0), (1, 0.0)])
def test_declining_is_right_where_the_source_has_no_answer(answerable: int, value: float, server: ChatServer) -> None:
    def answer(asked: Body) -> str:
        system = asked["messages"][0]["content"]
        verdict = answerable if "needed to answer a question" in system else 1 if "declines to answer" in system else 3
        return json.dumps({"evidence": "", "reasons": "", "verdict": verdict})

    server.answer = answer
    judged = judge(server).groundedness_measure_with_cot_reasons_consider_answerability(
        "It rains.", "I don't know.", "Who?"
    )
    assert judged.value == value


def test_requirements_are_those_of_the_caller_if_there_are_any(server: ChatServer) -> None:
    server.answer = replies(max)
    judged = judge(server).requirement_satisfaction_with_cot_reasons("Say when.", "At nine.", ["short", "polite"])
    assert [each["criteria"] for each in judged.meta["reasons"]] == ["short", "polite"]
    assert len(server.asked) == 2


def test_a_list_of_passages_has_the_mean_of_its_passages(server: ChatServer) -> None:
    server.answer = lambda asked: json.dumps({"verdict": 3 if "nine" in asked["messages"][-1]["content"] else 0})
    assert judge(server).context_relevance("When?", ["At nine.", "It sells books."]).value == 0.5


# In feedbacks, recordings and runs


def test_in_a_run_methods_are_counted_cached_and_reused(server: ChatServer) -> None:
    server.answer = replies(max)
    provider = judge(server, price={"input": 1, "output": 2, "currency": "EUR"})
    run = Runner().run(lambda question: "At nine.", Dataset.from_rows([{"input": "When?"}, {"input": "Where?"}]))
    feedback = Feedback(provider.relevance).on_input_output()
    evaluation = Evaluator().evaluate(run, {"relevance": feedback})
    rows = evaluation.table("relevance").to_pylist()
    assert [row["value"] for row in rows] == [1.0, 1.0]
    usage = [json.loads(row["usage"]) if isinstance(row["usage"], str) else row["usage"] for row in rows]
    assert [(each["requests"], each["currency"], each["cost"] > 0) for each in usage] == [(1, "EUR", True)] * 2
    n_asked = len(server.asked)
    assert Evaluator().evaluate(run, {"relevance": feedback}).id == evaluation.id
    assert len(server.asked) == n_asked


def test_an_unreadable_reply_is_a_row_that_abstains(server: ChatServer) -> None:
    server.answer = lambda asked: "I think so."
    run = Runner().run(lambda question: "At nine.", Dataset.from_rows([{"input": "When?"}]))
    evaluation = Evaluator().evaluate(run, {"relevance": Feedback(judge(server).relevance).on_input_output()})
    (row,) = evaluation.table("relevance").to_pylist()
    assert (row["status"], row["value"], row["reason"]) == ("abstained", None, "unreadable reply: no JSON")
    assert "I think so." in row["calls"]


def test_a_budget_stops_them(server: ChatServer) -> None:
    server.answer = replies(max)
    run = Runner().run(lambda question: "At nine.", Dataset.from_rows([{"input": f"{n}?"} for n in range(6)]))
    for settings, reported in (
        ({"price": {"input": 1e6, "output": 1e6, "currency": "EUR"}}, "budget"),
        ({"version": "2"}, "the price of small is unknown"),
    ):
        feedback = Feedback(judge(server, **settings).relevance).on_input_output()
        with pytest.raises(Exception, match=reported):
            Evaluator(policy=Policy(concurrency=1, budget="1 EUR")).evaluate(run, {"relevance": feedback})
    assert 1 <= len(server.asked) <= 2


class Shop:
    @instrument
    def answer(self, question: str) -> str:
        return "At nine."


@pytest.mark.parametrize("mode", ["with_app", "with_app_thread", "deferred"])
def test_they_judge_what_an_app_records(mode: str, server: ChatServer, tmp_path: Path) -> None:
    server.answer = replies(max)
    shop, store = Shop(), DirectoryStore(tmp_path)
    relevance = Feedback(judge(server).relevance_with_cot_reasons).on_input().on(Select.RecordOutput)
    with TruApp(shop, feedbacks=[relevance], feedback_mode=mode, store=store) as recording:
        shop.answer("When?")
    if mode == "deferred":
        assert not server.asked
        work(store, recording.id)
    [result] = recording.get().wait_for_feedback_results().values()
    assert (result.result, result.cost.n_requests) == (1.0, 1)
    assert result.calls[0].meta["reason"] == "It says so."


def test_without_a_version_scores_are_not_pinned(server: ChatServer) -> None:
    assert judge(server).identify("relevance").pinned
    loose = judge(server, version=None).identify("relevance")
    assert not loose.pinned
    assert "declare the model's `version`" in loose.unpinned[0]


# Keys and storage


def test_a_key_is_read_from_the_environment_and_never_stored(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-0123456789abcdef")
    provider = judge(server, api_key_variable="JUDGE_KEY")
    stored = json.dumps(Feedback(provider.relevance).on_input_output().model_dump())
    assert "JUDGE_KEY" in stored
    assert "0123456789" not in stored + repr(provider)
    with pytest.raises(
        ParameterError, match="api_key: is no parameter of OpenAI; name the environment variable"
    ) as raised:
        OpenAI(api_key="sk-0123456789abcdef")
    assert "0123456789" not in str(raised.value)


def test_stored_definitions_send_nothing_unless_their_module_is_allowed(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-0123456789abcdef")
    server.answer = replies(max)
    stored = Feedback(judge(server, api_key_variable="JUDGE_KEY").relevance).on_input_output().model_dump()
    with pytest.raises(SpecError, match=r"allow it by name: modules=\['evaluand.interop.trulens.models'\]"):
        Feedback.model_validate(stored)
    again = Feedback.model_validate(stored, modules=["evaluand.interop.trulens.models"])
    result = again.run(record=RECORD)
    assert "evaluand secrets allow JUDGE_KEY" in str(result.error)
    assert not server.asked


# Where the models are


def test_each_provider_finds_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    found = {
        type(provider).__name__: (provider.model.url, provider.model.name, provider.model.api_key)
        for provider in (OpenAI(), AzureOpenAI("judge"), Cohere(), LiteLLM(base_url="http://127.0.0.1:4000/v1"))
    }
    assert found == {
        "OpenAI": ("https://api.openai.com/v1", "gpt-4o-mini", "OPENAI_API_KEY"),
        "AzureOpenAI": ("https://mine.openai.azure.com/openai/v1", "judge", "AZURE_OPENAI_API_KEY"),
        "Cohere": ("https://api.cohere.ai/compatibility/v1", "command-a-03-2025", "COHERE_API_KEY"),
        "LiteLLM": ("http://127.0.0.1:4000/v1", "gpt-4o-mini", None),
    }


def test_a_gateway_with_openais_protocol_reaches_every_model(server: ChatServer) -> None:
    server.answer = replies(max)
    for kind in (AzureOpenAI, Bedrock, Cohere, Cortex, LiteLLM):
        first = {"deployment_name": "small"} if kind is AzureOpenAI else {}
        assert kind(base_url=server.url, **first).sentiment("Splendid!").value == 1.0
    names = [asked["model"] for asked in server.asked]
    assert names == ["small", "amazon.nova-lite-v1:0", "command-a-03-2025", "llama3.3-70b", "gpt-4o-mini"]


def test_parameters_that_others_have_are_refused_with_advice() -> None:
    for make, said in (
        (lambda: Cortex(snowpark_session=object()), "snowpark_session: is no parameter of Cortex; pass base_url="),
        (lambda: OpenAI(pace=3), "pace: is no parameter of OpenAI; pass rpm"),
        (lambda: OpenAI(timeout="soon"), "timeout: is the text 'soon': input should be a valid number"),
        (lambda: Bedrock(), "Bedrock: Bedrock does not speak OpenAI's protocol here; pass base_url, the address of a"),
        (lambda: Cortex(), "Cortex: a session of Snowflake does not speak OpenAI's protocol here; pass base_url"),
        (lambda: LiteLLM(model_engine="bedrock/x"), "LiteLLM: bedrock/… does not speak OpenAI's protocol here"),
        (lambda: AzureOpenAI(), "deployment_name: is missing; AzureOpenAI needs it"),
        (lambda: LLMProvider(model_engine="small"), "LLMProvider needs base_url"),
        (lambda: OpenAI(base_url="here"), "url"),
    ):
        with pytest.raises(SpecError, match=said):
            make()


# Moderation


def test_moderation_returns_the_probability_of_the_category(server: ChatServer) -> None:
    categories = {"hate": 0.25, "hate/threatening": 0.5, "harassment": 0.1, "harassment/threatening": 0.2}
    categories |= {"self-harm": 0.3, "sexual": 0.6, "sexual/minors": 0.7, "violence": 0.8, "violence/graphic": 0.9}
    server.answer = lambda asked: {"body": {"results": [{"category_scores": categories}]}}
    provider, found = judge(server), {}
    for name, method in inspect.getmembers(OpenAI, inspect.isfunction):
        if name.startswith("moderation_"):
            found[name] = getattr(provider, name)("Go away.").value
            assert method.higher_is_better is False
    assert sorted(found.values()) == sorted(categories.values())
    assert found["moderation_hatethreatening"] == 0.5
    assert {asked["model"] for asked in server.asked} == {"omni-moderation-latest"}
    for body in (
        {"results": []},
        {"results": [{"category_scores": {}}]},
        {"results": [{"category_scores": {"hate": None}}]},
    ):
        server.answer = lambda asked, body=body: {"body": body}
        with pytest.raises(TaskError, match=r"no category_scores|no score for hate"):
            judge(server).moderation_hate("Go away.")


# Hugging Face


ENTITIES = [{"entity_group": "EMAIL", "score": 0.99, "word": "jane@example.org"}]
CLASSIFIERS: dict[str, tuple[tuple[str, ...], Any, float]] = {
    "language_match": (("Hello", "Hallo"), [[{"label": "en", "score": 0.75}, {"label": "de", "score": 0.25}]], 1.0),
    "positive_sentiment": (
        ("Splendid!",),
        [[{"label": "LABEL_0", "score": 0.1}, {"label": "LABEL_2", "score": 0.9}]],
        0.9,
    ),
    "toxic": (("You fool.",), [{"label": "toxic", "score": 0.2}, {"label": "non-toxic", "score": 0.8}], 0.2),
    "context_relevance": (("When?", "At nine."), [[{"label": "context_relevance", "score": 0.7}]], 0.7),
    "groundedness_measure_with_nli": (
        ("At nine.", "At nine. It sells books."),
        [[{"label": "entailment", "score": 0.6}]],
        0.6,
    ),
    "hallucination_evaluator": (("At nine.", "It opens at nine."), [[{"label": "consistent", "score": 0.5}]], 0.5),
    "pii_detection": (("Mail jane@example.org",), ENTITIES, 0.99),
    "pii_detection_with_cot_reasons": (("Mail jane@example.org",), ENTITIES, 0.99),
}


def classifiers(url: str, **settings: Any) -> Any:
    """One provider whose models are all at one address, each with its own answer."""
    return Huggingface(base_url=url, api_key_variable=None, retries=0, cache=False, **settings)


def answered_by(body: Any) -> Callable[[Body], dict[str, Any]]:
    return lambda asked: {"body": body}


def test_each_classifier_gives_the_score_of_its_label(server: ChatServer) -> None:
    for name, (arguments, body, value) in CLASSIFIERS.items():
        server.answer = answered_by(body)
        assert getattr(classifiers(server.url), name)(*arguments).value == pytest.approx(value), name


def test_a_classifier_that_answers_with_something_else_is_an_error(server: ChatServer) -> None:
    for name, (arguments, _, _) in CLASSIFIERS.items():
        for body in ({"error": "loading"}, [{"label": "toxic"}], "no", 7):
            server.answer = answered_by(body)
            with pytest.raises(TaskError):
                getattr(classifiers(server.url), name)(*arguments)
        if not name.startswith("pii"):
            server.answer = answered_by([])
            with pytest.raises(TaskError, match="did not answer with labels and their scores"):
                getattr(classifiers(server.url), name)(*arguments)
        server.answer = lambda asked: {"status": 403, "body": {"error": "no"}}
        with pytest.raises(TaskError, match="403"):
            getattr(classifiers(server.url), name)(*arguments)
    server.answer = answered_by([[{"label": "other", "score": 0.5}]])
    with pytest.raises(TaskError, match="the model gives no probability of toxic; it gives other"):
        classifiers(server.url).toxic("You fool.")


def test_personal_data_is_not_repeated(server: ChatServer) -> None:
    server.answer = answered_by(ENTITIES)
    judged = classifiers(server.url).pii_detection("Mail jane@example.org")
    assert judged.reason == "found: EMAIL"
    server.answer = answered_by([])
    assert classifiers(server.url).pii_detection("Nothing.").value == 0.0


def test_huggingface_asks_over_the_network_unless_it_is_local() -> None:
    assert type(Huggingface()) is HuggingfaceInference
    local = Huggingface(local=True)
    assert type(local) is Huggingface
    assert copy.deepcopy(local) == local
    assert type(copy.deepcopy(local)) is Huggingface
    with pytest.raises(SpecError, match=r"models: toxic is nothing that is classified .did you mean"):
        Huggingface(models={"toxic": "x"})


# Models of LangChain


def chain_of(*texts: str) -> Any:
    models = pytest.importorskip("langchain_core.language_models")
    return models.FakeListChatModel(responses=[*texts])


@pytest.mark.filterwarnings("ignore:.* does not say how its replies end")
def test_a_chat_model_of_langchain_judges() -> None:
    provider = Langchain(chain_of('{"verdict": 3}', '{"verdict": 3}', "nonsense", "nonsense"), cache=False)
    assert provider.relevance("a", "b").value == 1.0
    assert provider.relevance("a", "b").value == 1.0
    assert provider.relevance("a", "c").reason == "unreadable reply: no JSON"
    with pytest.raises(SpecError, match="temperature is that of the chat model"):
        provider.relevance("a", "b", temperature=0.3)
    with pytest.raises(SpecError, match="cannot be stored"):
        Feedback(provider.relevance).on_input_output().model_dump()
    with pytest.raises(SpecError, match="chain is no language model of LangChain"):
        Langchain(3)


# Providers of one's own


class Length(Provider):
    longest: int = 100
    unit: str = "characters"

    def short(self, text: str) -> float:
        return float(len(text) <= self.longest)


class Strict(Length):
    least: int = 1


def test_annotations_of_a_provider_are_its_fields() -> None:
    assert Length(longest=3).short("Emma") == 0.0
    assert Strict(longest=3, least=2).arguments == {"longest": 3, "least": 2}
    assert Length(longest=3).identify("short").spec != Length(longest=4).identify("short").spec
    stored = Feedback(Length(longest=3).short).on_output().model_dump()
    assert stored["implementation"]["parameters"] == {"longest": 3}
    again = Feedback.model_validate(stored, modules=[__name__])
    assert again.run(record=RECORD).result == 0.0
    with pytest.raises(ParameterError, match=r"(?s)longest: is the text 'x'.*least: is the text 'y'"):
        Strict(longest="x", least="y")
    with pytest.raises(ParameterError, match=r"largest: is no parameter of Length .did you mean 'longest'"):
        Length(largest=3)


@dataclass(frozen=True)
class Decorated(Provider):
    longest: int = 100


@dataclass
class Loose(Provider):
    longest: int


def test_a_provider_that_is_a_dataclass_already_stays_one() -> None:
    assert Decorated(3) == Decorated(longest=3)
    assert Loose(3).longest == 3
    assert [*inspect.signature(Loose).parameters] == ["longest"]
    assert [*inspect.signature(Strict).parameters] == ["longest", "unit", "least"]


class Written(Provider):
    note: str

    def __init__(self, note: str) -> None:
        self.note = note.upper()


def test_a_provider_with_a_constructor_stays_as_it_is_written() -> None:
    assert Written("a").note == "A"
