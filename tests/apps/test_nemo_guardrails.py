"""Apps made with NeMo Guardrails: by the methods that it documents, and with the package where it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from evaluand import Feedback, SpecError
from evaluand.apps.frameworks.nemo_guardrails import NeMoApp
from evaluand.interop.trulens import Feedback as TruFeedback, NeMo, TruRails

CHUNKS = [{"title": "Emma", "body": "Emma was written by Jane Austen."}, {"title": "Rain", "body": "It rains."}]
QUESTION = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "Who wrote Emma?"},
]


class Knowledge:
    async def search_relevant_chunks(self, text: str, max_results: int = 3) -> list[dict[str, str]]:
        return CHUNKS[:max_results]


class Dispatcher:
    async def execute_action(self, action_name: str, params: dict[str, Any]) -> tuple[Any, str]:
        return await params["kb"].search_relevant_chunks(params["text"]), "success"


class Runtime:
    def __init__(self) -> None:
        self.action_dispatcher = Dispatcher()


class Model:
    async def generate_async(self, prompt: str, *, stop: list[str] | None = None, **options: Any) -> dict[str, Any]:
        return {"content": "Jane Austen."}


class Rails:
    """The documented methods of `LLMRails`."""

    def __init__(self, kb: Knowledge | None) -> None:
        self.llm, self.runtime, self._kb = Model(), Runtime(), kb

    async def generate_async(self, prompt: Any = None, messages: Any = None, options: Any = None) -> Any:
        question = prompt or messages[-1]["content"]
        if question == "fail":
            raise ValueError("no answer")
        if self._kb is not None:
            await self.runtime.action_dispatcher.execute_action("retrieve", {"kb": self._kb, "text": question})
        answer = (await self.llm.generate_async(question, temperature=0.1))["content"]
        message = {"role": "assistant", "content": answer}
        return answer if prompt else {"response": [message], "log": {}} if options else message

    def generate(self, prompt: Any = None, messages: Any = None, options: Any = None) -> Any:
        return asyncio.run(self.generate_async(prompt=prompt, messages=messages, options=options))

    def stream_async(self, prompt: Any = None, messages: Any = None) -> AsyncIterator[str]:
        async def pieces() -> AsyncIterator[str]:
            for word in (await self.generate_async(messages=messages))["content"].split(" "):
                yield word

        return pieces()


def relevance(question: str, context: str) -> float:
    return float("Emma" in question and "Emma" in context)


def streamed(rails: Any, messages: Any) -> list[str]:
    async def read() -> list[str]:
        return [piece async for piece in rails.stream_async(messages=messages)]

    return asyncio.run(read())


def test_the_question_the_answer_and_the_calls_within_are_recorded() -> None:
    rails = Rails(Knowledge())
    app = NeMoApp(rails, name="bot", version="1")
    with app as recording:
        assert rails.generate(messages=QUESTION) == {"role": "assistant", "content": "Jane Austen."}
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("Who wrote Emma?", "Jane Austen.")
    assert [(call["stack"][-1]["path"], call["stack"][-1]["method"]) for call in record["calls"]] == [
        ("_kb", "search_relevant_chunks"),
        ("runtime.action_dispatcher", "execute_action"),
        ("llm", "generate_async"),
        ("", "generate_async"),
        ("", "generate"),
    ]
    assert record["calls"][-1]["args"]["messages"] == QUESTION
    assert record["calls"][-1]["rets"] == {"role": "assistant", "content": "Jane Austen."}
    assert app.select_context().select({"__record__": record}) == [chunk["body"] for chunk in CHUNKS]


@pytest.mark.parametrize(
    ("call", "question", "answer"),
    [
        (lambda rails: rails.generate(prompt="Who?"), "Who?", "Jane Austen."),
        (lambda rails: asyncio.run(rails.generate_async(messages=QUESTION)), "Who wrote Emma?", "Jane Austen."),
        (lambda rails: rails.generate(messages=QUESTION, options={"log": {}}), "Who wrote Emma?", "Jane Austen."),
        (
            lambda rails: rails.generate(messages=[{"role": "context", "content": {}}, *QUESTION]),
            "Who wrote Emma?",
            "J",
        ),
        (lambda rails: streamed(rails, QUESTION), "Who wrote Emma?", "Jane"),
    ],
    ids=["prompt", "async", "options", "context", "stream"],
)
def test_each_way_to_call_has_its_text(call: Any, question: str, answer: str) -> None:
    rails = Rails(Knowledge())
    with NeMoApp(rails) as recording:
        call(rails)
    record = recording.get()
    assert record["main_input"] == question
    assert str(record["main_output"]).startswith(answer)


def test_a_call_that_fails_keeps_its_question() -> None:
    rails = Rails(None)
    with NeMoApp(rails) as recording, pytest.raises(ValueError, match="no answer"):
        rails.generate(messages=[{"role": "user", "content": "fail"}])
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("fail", None)
    assert record["main_error"]["message"] == "no answer"


def test_feedbacks_read_the_contexts_with_a_selector_of_any_or_of_this_app() -> None:
    rails = Rails(Knowledge())
    feedbacks = [
        TruFeedback(relevance, name="any").on_input().on(NeMo.select_context()),
        TruFeedback(relevance, name="own").on_input().on(TruRails.select_context(rails)),
    ]
    recorder = TruRails(rails, app_name="bot", app_version="1", feedbacks=feedbacks)
    with recorder as recording:
        rails.generate(messages=QUESTION)
    assert {result.name: result.result for result in recording.get().feedback_results} == {"any": 0.5, "own": 0.5}
    assert recording.get().main_input == "Who wrote Emma?"
    assert str(TruRails.select_context(recorder)) == "__record__.app._kb.search_relevant_chunks[:].rets[:].body"
    native = Feedback(relevance).on_input().on(recorder.select_context(rails).selector())
    assert native.evaluate({"__record__": recording.get().layout_calls_as_app()}).value == 0.5


def test_what_are_no_rails_or_have_no_knowledge_base_is_refused() -> None:
    with pytest.raises(SpecError, match="Knowledge has no method 'generate'; pass an LLMRails"):
        NeMoApp(Knowledge())
    with pytest.raises(SpecError, match="bot has no knowledge base; give the configuration documents"):
        NeMoApp(Rails(None), name="bot").select_context()


@pytest.mark.filterwarnings("ignore")
def test_rails_of_the_package_are_recorded() -> None:
    nemo = pytest.importorskip("nemoguardrails", reason="needs nemoguardrails: pip install nemoguardrails")
    testing = pytest.importorskip(
        "nemoguardrails.testing", reason="needs nemoguardrails 0.24: pip install 'nemoguardrails>=0.24'"
    )
    from nemoguardrails.embeddings.index import EmbeddingsIndex
    from nemoguardrails.rails.llm.config import Document

    class Index(EmbeddingsIndex):
        def __init__(self) -> None:
            self.found: list[Any] = []

        async def add_item(self, item: Any) -> None:
            self.found.append(item)

        async def add_items(self, items: list[Any]) -> None:
            self.found += items

        async def build(self) -> None:
            pass

        async def search(self, text: str, max_results: int = 3, threshold: float | None = None) -> list[Any]:
            return self.found[:max_results]

    class LocalRails(nemo.LLMRails):
        def _get_embeddings_search_provider_instance(self, *args: Any, **options: Any) -> Index:
            return Index()

    flow = 'define user ask\n  "Who wrote Emma?"\ndefine flow\n  user ask\n  bot respond\n'
    config = nemo.RailsConfig.from_content(flow, "models: []")
    config.docs = [Document(format="md", content="# Emma\n\nEmma was written by Jane Austen.\n\n# Rain\n\nIt rains.\n")]
    rails = LocalRails(config, llm=testing.FakeLLMModel(responses=["  ask", "Jane Austen."] * 4))
    recorder = TruRails(rails, app_name="bot", feedbacks=[TruFeedback(relevance).on_input().on(NeMo.select_context())])
    with recorder as recording:
        rails.generate(messages=QUESTION[-1:])
        asyncio.run(rails.generate_async(messages=QUESTION[-1:], options={"log": {"llm_calls": True}}))
    assert [record.main_input for record in recording.records] == ["Who wrote Emma?"] * 2
    assert all(isinstance(record.main_output, str) for record in recording.records)
    assert [record.feedback_results[0].result for record in recording.records] == [0.5, 0.5]
