"""Apps made with LlamaIndex, recorded through its instrumentation; models and embeddings are local ones."""

from __future__ import annotations

import asyncio
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="needs llama_index.core: make install")

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from evaluand.apps.app import App
from evaluand.apps.frameworks.llama_index import _HANDLER, LlamaIndexApp
from evaluand.apps.instrumentation.marking import instrument
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.evaluation.feedback import Feedback
from evaluand.trace.record import Record


class Echo(CustomLLM):
    """A model that answers with the last line of what it is asked."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="echo")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        if "fail" in prompt:
            raise OSError("no model")
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": 2}
        return CompletionResponse(text="an answer", raw={"usage": usage})

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        def parts() -> CompletionResponseGen:
            text = ""
            for part in ("an", " answer"):
                text += part
                yield CompletionResponse(text=text, delta=part)

        return parts()


class Letters(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return [text.lower().count(letter) + 0.1 for letter in "aeiou"]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def index() -> VectorStoreIndex:
    documents = [Document(text=text) for text in ("aaa", "eee", "iii")]
    return VectorStoreIndex.from_documents(documents, embed_model=Letters())


def engine(**options: Any) -> Any:
    return index().as_query_engine(llm=Echo(), similarity_top_k=1, **options)


def chatting() -> Any:
    memory = ChatMemoryBuffer.from_defaults(token_limit=1000)
    return index().as_chat_engine(llm=Echo(), chat_mode="context", similarity_top_k=1, memory=memory)


def names(record: Record) -> list[str]:
    return [".".join(filter(None, call["stack"][-1].values())) for call in record["calls"]]


def test_calls_stand_where_their_components_stand() -> None:
    asked = engine()
    app = LlamaIndexApp(asked, name="qa")
    with app as recording:
        asked.query("ee")
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("ee", "an answer")
    assert names(record)[-2:] == ["_query", "query"]
    assert {"_retriever.retrieve", "_response_synthesizer.synthesize", "_response_synthesizer._llm.complete"} <= set(
        names(record)
    )
    assert record["app"]["_retriever"]["retrieve"][0]["rets"][0]["node"]["text"] == "eee"
    assert record["calls"][-1]["args"] == {"str_or_query_bundle": "ee"}
    assert record["calls"][-1]["rets"]["response"] == "an answer"
    assert "retrieve" in app.instrumented["_retriever"]


def test_the_cost_is_what_the_model_tells() -> None:
    asked = engine()
    with LlamaIndexApp(asked) as recording:
        asked.query("ee")
    cost = recording.get()["cost"]
    assert (cost["n_requests"], cost["n_completion_tokens"]) == (1, 2)
    assert cost["n_prompt_tokens"] > 5


def test_context_and_nodes_are_selected() -> None:
    asked = engine()
    app = LlamaIndexApp(asked)
    with app as recording:
        asked.query("ee")
    source = {"__record__": recording.get()}
    assert app.select_context().find(source) == ["eee"]
    assert [node["node"]["text"] for node in app.select_source_nodes().find(source)] == ["eee"]


def test_nothing_is_recorded_outside_the_block() -> None:
    asked = engine()
    app = LlamaIndexApp(asked)
    asked.query("ee")
    with app as recording:
        pass
    asked.query("ee")
    assert len(recording.records) == 0


def test_async_calls_are_a_record_each() -> None:
    asked = engine()

    async def ask() -> None:
        await asyncio.gather(*(asked.aquery(letters) for letters in ("aa", "ee", "ii")))

    with LlamaIndexApp(asked) as recording:
        asyncio.run(ask())
    found = {record["main_input"]: record["calls"][-1]["rets"]["source_nodes"] for record in recording.records}
    assert {asked: nodes[0]["node"]["text"] for asked, nodes in found.items()} == {
        "aa": "aaa",
        "ee": "eee",
        "ii": "iii",
    }
    assert all(names(record)[-2:] == ["_aquery", "aquery"] for record in recording.records)


@pytest.mark.parametrize("within", [True, False])
def test_a_streamed_answer_is_one_record_when_it_has_been_read(within: bool) -> None:
    asked = engine(streaming=True)
    with LlamaIndexApp(asked) as recording:
        response = asked.query("ee")
        assert len(recording.records) == 0
        if within:
            assert list(response.response_gen) == ["an", " answer"]
    if not within:
        assert list(response.response_gen) == ["an", " answer"]
    record = recording.get()
    assert record["main_output"] == "an answer"
    assert recording.app.select_context().find({"__record__": record}) == ["eee"]
    assert record["cost"]["n_requests"] == 1


def test_a_streamed_answer_that_nobody_reads_is_recorded_when_it_is_dropped() -> None:
    asked = engine(streaming=True)
    with LlamaIndexApp(asked) as recording:
        asked.query("ee").response_gen.close()
    assert recording.get()["main_output"] == ""
    assert _HANDLER._steps == {}


def test_an_answer_streamed_to_async_code_is_recorded() -> None:
    asked = engine(streaming=True)

    async def ask() -> list[str]:
        response = await asked.aquery("ee")
        return [part async for part in response.response_gen]

    with LlamaIndexApp(asked) as recording:
        assert asyncio.run(ask()) == ["an", " answer"]
    assert recording.get()["main_output"] == "an answer"


def test_a_chat_is_recorded() -> None:
    chat = chatting()
    with LlamaIndexApp(chat) as recording:
        chat.chat("ee")
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("ee", "an answer")
    assert recording.app.select_context().find({"__record__": record}) == ["eee"]


def test_a_streamed_chat_is_recorded_when_it_has_been_written_down() -> None:
    chat = chatting()
    with LlamaIndexApp(chat) as recording:
        response = chat.stream_chat("ee")
        assert "".join(response.response_gen) == "an answer"
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("ee", "an answer")
    assert _HANDLER._steps == _HANDLER._unfinished == {}


def test_an_error_is_recorded_where_it_arose() -> None:
    asked = engine()
    with LlamaIndexApp(asked) as recording, pytest.raises(OSError, match="no model"):
        asked.query("fail")
    record = recording.get()
    assert record["main_error"] == {"type": "OSError", "message": "no model"}
    assert record["app"]["_response_synthesizer"]["_llm"]["complete"][0]["error"]["message"] == "no model"
    assert _HANDLER._steps == {}


class Fixed(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=clean(query_bundle.query_str)), score=1.0)]


@instrument
def clean(text: str) -> str:
    return text.strip()


class Own(CustomQueryEngine):
    retriever: BaseRetriever

    def custom_query(self, query_str: str) -> str:
        return self.retriever.retrieve(query_str)[0].get_content()


def test_engines_and_retrievers_of_ones_own_are_recorded_once() -> None:
    own = Own(retriever=Fixed())
    with LlamaIndexApp(own) as recording:
        own.query(" a ")
    record = recording.get()
    assert names(record) == ["clean", "retriever._retrieve", "retriever.retrieve", "custom_query", "query"]
    assert record["main_output"] == "a"


class Assistant:
    """First-party code around an engine."""

    def __init__(self) -> None:
        self.engine = engine()

    def answer(self, question: str) -> str:
        return str(self.engine.query(question.strip()))


def test_an_engine_within_an_object_of_ones_own_belongs_to_its_record() -> None:
    assistant = Assistant()
    with LlamaIndexApp(assistant) as recording:
        assistant.answer(" ee ")
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == (" ee ", "an answer")
    assert names(record)[-3:] == ["engine._query", "engine.query", "answer"]


def test_context_of_an_object_of_ones_own_is_that_of_its_engine() -> None:
    assistant = Assistant()
    app = LlamaIndexApp(assistant)
    with app as recording:
        assistant.answer("ee")
    assert str(app.select_source_nodes()) == "__record__.app.engine.query[:].rets.source_nodes[:]"
    assert app.select_context().find({"__record__": recording.get()}) == ["eee"]
    assert str(app.select_context("aquery")) == "__record__.app.engine.aquery[:].rets.source_nodes[:].node.text"
    with pytest.raises(SpecError, match=r"engine has no method 'qery' \(did you mean 'query'\?\)"):
        app.select_context("qery")


class Holder:
    def __init__(self, **held: Any) -> None:
        vars(self).update(held)

    def answer(self, question: str) -> str:
        return str(self.find.retrieve(question)[0].text)  # type: ignore[attr-defined]


def test_context_of_what_has_a_retriever_and_no_engine_is_what_that_found() -> None:
    holder = Holder(find=index().as_retriever(similarity_top_k=1))
    app = LlamaIndexApp(holder)
    with app as recording:
        holder.answer("ee")
    assert app.select_context().find({"__record__": recording.get()}) == ["eee"]


def test_context_of_a_retriever_is_what_it_found() -> None:
    retriever = index().as_retriever(similarity_top_k=1)
    with LlamaIndexApp(retriever) as recording:
        retriever.retrieve("ee")
    assert recording.app.select_context().find({"__record__": recording.get()}) == ["eee"]


@pytest.mark.parametrize(("held", "reported"), [({}, "none"), ({"one": engine(), "two": chatting()}, "one, two")])
def test_context_of_no_engine_or_of_several_is_refused(held: Any, reported: str) -> None:
    with pytest.raises(SpecError, match=rf"engines and retrievers of Holder: {reported}; select the nodes by the path"):
        LlamaIndexApp(Holder(**held)).select_context()


def test_the_record_of_an_outer_app_holds_the_calls_of_an_inner_engine() -> None:
    assistant = Assistant()
    with LlamaIndexApp(assistant) as of_outer, LlamaIndexApp(assistant.engine) as of_inner:
        assistant.answer(" ee ")
    assert names(of_inner.get())[-1] == "query"
    assert (of_inner.get()["main_input"], of_inner.get()["main_output"]) == ("ee", "an answer")
    assert of_inner.app.select_context().find({"__record__": of_inner.get()}) == ["eee"]
    assert names(of_outer.get())[-1] == "answer"


def test_an_app_that_knows_nothing_of_llama_index_has_its_calls_by_their_classes() -> None:
    assistant = Assistant()
    with App(assistant) as recording:
        assistant.answer("ee")
    assert names(recording.get())[-2:] == ["RetrieverQueryEngine.query", "answer"]


def test_two_engines_record_each_their_own() -> None:
    one, two = engine(), engine()
    with LlamaIndexApp(one) as of_one, LlamaIndexApp(two) as of_two:
        one.query("aa")
        two.query("ee")
    assert (of_one.get()["main_input"], of_two.get()["main_input"]) == ("aa", "ee")


def test_threads_that_are_carried_are_recorded() -> None:
    asked = engine()
    with LlamaIndexApp(asked) as recording, ThreadPoolExecutor(3) as pool:
        list(pool.map(recording.carry_context(asked.query), ["aa", "ee", "ii"]))
    assert sorted(record["main_input"] for record in recording.records) == ["aa", "ee", "ii"]


def test_calls_that_a_thread_loses_are_reported_once_for_each_app_and_method() -> None:
    asked = engine()
    with LlamaIndexApp(asked, name="qa") as recording, ThreadPoolExecutor(1, "worker") as pool:
        with pytest.warns(EvaluandWarning) as reported:
            assert [str(pool.submit(asked.query, "ee").result()) for _ in range(2)] == ["an answer"] * 2
        said = [str(each.message) for each in reported]
        calls = [text.partition(" was called")[0] for text in said]
        assert {"qa: query", "qa: _retriever.retrieve", "qa: _response_synthesizer._llm.complete"} <= {*calls}
        assert len(calls) == len({*calls})
        assert all("in the thread worker_0" in text for text in said)
        assert all("give the thread recording.carry_context(function)" in text for text in said)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert str(pool.submit(asked.query, "ii").result()) == "an answer"
    assert list(recording.records) == []


def test_messages_are_reported_by_their_content() -> None:
    model = Echo()
    with LlamaIndexApp(model) as recording:
        model.chat([ChatMessage(content="hi")])
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("hi", "an answer")


class Upper(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        return StopEvent(result=event.query.upper())


def run_workflow(flow: Workflow, **fields: Any) -> Record:
    async def run() -> None:
        await flow.run(**fields)

    with LlamaIndexApp(flow) as recording:
        asyncio.run(run())
    return recording.get()


def test_the_input_of_a_workflow_is_what_it_was_started_with_not_the_state_of_its_runtime() -> None:
    record = run_workflow(Upper(), query="who wrote emma")
    assert (record["main_input"], record["main_output"]) == ("who wrote emma", "WHO WROTE EMMA")
    length = Feedback(lambda text: float(len(text)), name="length").on_input()
    assert length.evaluate({"__record__": record}).value == 14.0
    assert run_workflow(Upper(), query="a", top=2)["main_input"] == {"query": "a", "top": 2}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_input_of_an_agent_is_the_message_of_the_user_and_its_output_the_reply() -> None:
    record = run_workflow(ReActAgent(tools=[], llm=MockLLM(max_tokens=3)), user_msg="Who?")
    assert (record["main_input"], record["main_output"]) == ("Who?", "text text")
