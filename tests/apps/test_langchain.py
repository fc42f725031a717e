"""Apps made with LangChain, recorded through its callbacks; models and retrievers are local ones."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="needs langchain_core: make install")
pytest.importorskip("langchain_classic", reason="needs langchain_classic: make install")

from langchain_classic.chains import ConversationalRetrievalChain, RetrievalQA
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore

from evaluand.apps.app import App
from evaluand.apps.frameworks.langchain import LangChainApp
from evaluand.apps.instrumentation.marking import instrument
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback import Feedback
from evaluand.trace.record import Record


class Fixed(BaseRetriever):
    k: int = 2

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if query == "fail":
            raise OSError("no index")
        return [Document(page_content=f"{query} {n}", metadata={"n": n}) for n in range(self.k)]


def joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def rag() -> Runnable[Any, str]:
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    model = FakeMessagesListChatModel(responses=[AIMessage("an answer", usage_metadata=usage)])
    return {"context": Fixed() | joined, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def names(record: Record) -> list[str]:
    return [".".join(filter(None, call["stack"][-1].values())) for call in record["calls"]]


RUNS = [
    "first.steps__.context.first._get_relevant_documents",
    "first.steps__.context.last.invoke",
    "first.steps__.context.invoke",
    "first.steps__.question.invoke",
    "first.invoke",
    "middle[0].invoke",
    "middle[1].invoke",
    "last.invoke",
    "invoke",
]


@pytest.mark.parametrize(
    "message",
    [HumanMessage("weather in Rome?"), {"role": "user", "content": "weather in Rome?"}, ("user", "weather in Rome?")],
    ids=["message", "dict", "pair"],
)
def test_a_question_is_read_in_each_form_of_a_message(message: Any) -> None:
    agent = RunnableLambda(lambda state: {"messages": [*state["messages"], AIMessage("sunny")]})
    with LangChainApp(agent, name="agent") as recording:
        agent.invoke({"messages": [("user", "hi"), message]})
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("weather in Rome?", "sunny")
    length = Feedback(lambda text: float(len(text)), name="length").on_input()
    assert length.evaluate({"__record__": record}).value == 16.0


def test_what_is_no_list_of_messages_stays_as_it_is() -> None:
    chain = RunnableLambda(lambda state: state["messages"][0]["n"])
    with LangChainApp(chain, name="sums") as recording:
        chain.invoke({"messages": [{"n": 1}]})
    assert recording.get()["main_input"] == [{"n": 1}]


def test_runs_stand_where_their_components_stand() -> None:
    chain = rag()
    with LangChainApp(chain, name="rag") as recording:
        assert chain.invoke("hi") == "an answer"
    record = recording.get()
    assert sorted(names(record)) == sorted(RUNS)
    assert names(record)[-1] == "invoke"
    assert (record["main_input"], record["main_output"]) == ("hi", "an answer")
    assert record["app"]["middle"][0]["invoke"][0]["args"]["input"]["question"] == "hi"
    assert record["calls"][-1]["args"] == {"input": "hi"}


def test_the_cost_is_what_the_model_tells() -> None:
    chain = rag()
    with LangChainApp(chain) as recording:
        chain.invoke("hi")
    cost = recording.get()["cost"]
    assert (cost["n_requests"], cost["n_prompt_tokens"], cost["n_completion_tokens"]) == (1, 5, 2)


def test_nothing_is_recorded_outside_the_block() -> None:
    chain = rag()
    app = LangChainApp(chain)
    chain.invoke("before")
    with app as recording:
        pass
    chain.invoke("after")
    assert len(recording.records) == 0


def test_the_context_is_selected() -> None:
    chain = rag()
    app = LangChainApp(chain)
    with app as recording:
        chain.invoke("hi")
    selector = app.select_context()
    assert selector.find({"__record__": recording.get()}) == ["hi 0", "hi 1"]


CONTEXT = "first.steps__.context.first"


def by_invoke(chain: Runnable[Any, str]) -> None:
    chain.invoke("hi")


def by_ainvoke(chain: Runnable[Any, str]) -> None:
    asyncio.run(chain.ainvoke("hi"))


def by_stream(chain: Runnable[Any, str]) -> None:
    list(chain.stream("hi"))


def by_astream(chain: Runnable[Any, str]) -> None:
    async def read() -> None:
        async for _ in chain.astream("hi"):
            pass

    asyncio.run(read())


def by_batch(chain: Runnable[Any, str]) -> None:
    chain.batch(["hi"])


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke, by_stream, by_astream, by_batch])
def test_invoke_leads_to_the_calls_of_every_component_however_it_was_called(
    way: Callable[[Runnable[Any, str]], None],
) -> None:
    chain = rag()
    app = LangChainApp(chain)
    with app as recording:
        way(chain)
    record = recording.get()
    assert sorted(names(record)) == sorted(RUNS)
    for run in RUNS:
        path = run.rpartition(".")[0]
        [by_name] = Selector(f"__record__.app.{run}").select({"__record__": record})
        [call] = Selector(".".join(filter(None, ["__record__.app", path, "invoke"]))).select({"__record__": record})
        assert call == by_name
        assert len(call) == 1
    texts = Selector(f"__record__.app.{CONTEXT}.invoke.rets[:].page_content").select({"__record__": record})
    assert texts == app.select_context().find({"__record__": record}) == ["hi 0", "hi 1"]


def test_a_feedback_may_select_a_retriever_by_invoke(recwarn: pytest.WarningsRecorder) -> None:
    chain = rag()
    found = Feedback(len).on(f"__record__.app.{CONTEXT}.invoke.rets[:].page_content")
    app = LangChainApp(chain, feedbacks=[found], mode="none")
    assert app.instrumented[CONTEXT] == ["_get_relevant_documents", "invoke"]
    assert not [each for each in recwarn if issubclass(each.category, EvaluandWarning)]
    with app as recording:
        chain.invoke("hi")
    assert found.evaluate({"__record__": recording.get()}).value == 4.0
    assert recording.evaluate().table("len").column("value").to_pylist() == [4.0]


def test_another_name_of_a_retriever_that_is_the_app_or_a_part_of_two_leads_to_its_calls() -> None:
    retriever = Fixed()
    chain = {"found": retriever} | RunnableLambda(str)
    with LangChainApp(chain) as of_chain, LangChainApp(retriever) as of_retriever:
        chain.invoke("hi")
    [call] = of_retriever.get()["app"]["invoke"]
    assert call["rets"][0]["page_content"] == "hi 0"
    assert of_retriever.get()["app"]["_get_relevant_documents"] == [call]
    assert of_chain.get()["app"]["first"]["steps__"]["found"]["invoke"][0]["args"] == {"query": "hi"}


def test_the_context_of_none_or_several_retrievers_is_refused() -> None:
    with pytest.raises(SpecError, match=r"retrievers of .*: none"):
        LangChainApp(RunnableLambda(str.upper)).select_context()
    with pytest.raises(SpecError, match=r"first.steps__.a, first.steps__.b"):
        LangChainApp({"a": Fixed(), "b": Fixed()} | RunnableLambda(str)).select_context()


def test_async_runs_are_recorded() -> None:
    chain = rag()

    async def ask() -> list[str]:
        return await asyncio.gather(*(chain.ainvoke(str(n)) for n in range(5)))

    with LangChainApp(chain) as recording:
        asyncio.run(ask())
    assert sorted(record["main_input"] for record in recording.records) == list("01234")
    assert all(sorted(names(record)) == sorted(RUNS) for record in recording.records)


def test_a_stream_is_one_record_of_all_it_gave() -> None:
    prompt = ChatPromptTemplate.from_template("{q}")
    chain = {"q": RunnablePassthrough()} | prompt | GenericFakeChatModel(messages=iter([AIMessage("to be read")]))
    with LangChainApp(chain | StrOutputParser()) as recording:
        parts = list(recording.app.target.stream("hi"))
    assert len(parts) > 1
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("hi", "to be read")
    assert record["calls"][-1]["args"] == {"input": "hi"}


def test_a_stream_that_is_not_read_to_its_end_is_recorded() -> None:
    def letters(parts: Iterator[str]) -> Iterator[str]:
        for part in parts:
            yield from part

    chain = RunnableLambda(letters)
    with LangChainApp(chain) as recording:
        given = chain.stream("abc")
        next(given)
        given.close()
    assert recording.get()["main_output"] in ("a", None)


def test_a_batch_is_a_record_for_each() -> None:
    chain = rag()
    with LangChainApp(chain) as recording:
        chain.batch(["a", "b", "c"])
    assert sorted(record["main_input"] for record in recording.records) == ["a", "b", "c"]


def test_an_error_is_recorded_where_it_arose() -> None:
    chain = rag()
    with LangChainApp(chain) as recording, pytest.raises(OSError, match="no index"):
        chain.invoke("fail")
    record = recording.get()
    assert record["main_error"] == {"type": "OSError", "message": "no index"}
    failed = [name for name, call in zip(names(record), record["calls"], strict=True) if call["error"]]
    assert "first.steps__.context.first._get_relevant_documents" in failed


def test_chains_of_the_older_sort_are_recorded_by_their_fields() -> None:
    qa = ConversationalRetrievalChain.from_llm(FakeListLLM(responses=["answer"] * 3), Fixed())
    app = LangChainApp(qa)
    with app as recording:
        qa.invoke({"question": "hi", "chat_history": []})
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == ("hi", "answer")
    selector = Selector("__record__.app.combine_docs_chain._call[:].args.inputs.input_documents[:].page_content")
    assert selector.find({"__record__": record}) == ["hi 0", "hi 1"]
    assert app.select_context().find({"__record__": record}) == ["hi 0", "hi 1"]
    assert record["calls"][-1]["rets"] == {"answer": "answer"}
    assert record["app"]["invoke"] == record["app"]["_call"] == record["calls"][-1:]


def test_retrieval_over_an_index_is_recorded() -> None:
    class Letters:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[text.count(letter) + 0.1 for letter in "aeiou"] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    index = InMemoryVectorStore(Letters())  # type: ignore[arg-type]
    index.add_texts(["aaa", "eee", "iii"])
    qa = RetrievalQA.from_llm(FakeListLLM(responses=["a"] * 3), retriever=index.as_retriever(search_kwargs={"k": 1}))
    with LangChainApp(qa) as recording:
        qa.invoke("ee")
    assert recording.app.select_context().find({"__record__": recording.get()}) == ["eee"]


def test_instrumented_code_within_a_chain_belongs_to_the_record() -> None:
    @instrument
    def clean(text: str) -> str:
        return text.strip()

    class Words:
        @instrument
        def count(self, text: str) -> int:
            return len(clean(text).split())

    words = Words()
    chain = RunnableLambda(clean) | RunnableLambda(words.count)
    with LangChainApp(chain) as recording:
        assert chain.invoke(" a b ") == 2
    record = recording.get()
    assert names(record) == ["clean", "first.invoke", "clean", "Words.count", "last.invoke", "invoke"]
    clean_, count = record["calls"][2:4]
    assert [step["method"] for step in clean_["stack"]] == ["invoke", "invoke", "count", "clean"]
    assert (count["args"], count["rets"]) == ({"text": "a b"}, 2)


class Assistant:
    """First-party code around a chain."""

    def __init__(self) -> None:
        self.chain = rag()

    def answer(self, question: str) -> str:
        return self.chain.invoke(question.strip())


def test_a_chain_within_an_object_of_ones_own_belongs_to_its_record() -> None:
    assistant = Assistant()
    app = LangChainApp(assistant, name="assistant")
    with app as recording:
        assistant.answer(" hi ")
    record = recording.get()
    assert (record["main_input"], record["main_output"]) == (" hi ", "an answer")
    assert names(record)[-2:] == ["chain.invoke", "answer"]
    assert app.select_context().find({"__record__": record}) == ["hi 0", "hi 1"]


def test_an_app_that_knows_nothing_of_langchain_records_its_own_methods() -> None:
    assistant = Assistant()
    with App(assistant) as recording:
        assistant.answer("hi")
    assert names(recording.get()) == ["answer"]


def test_tools_are_recorded() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    chain = RunnableLambda(lambda _: {"a": 1, "b": 2}) | add
    with LangChainApp(chain) as recording:
        assert chain.invoke("go") == 3
    call = recording.get()["app"]["last"]["invoke"][0]
    assert (call["kind"], call["args"], call["rets"]) == ("tool", {"input": {"a": 1, "b": 2}}, 3)


def test_two_chains_record_each_their_own() -> None:
    one, two = rag(), rag()
    with LangChainApp(one) as of_one, LangChainApp(two) as of_two:
        one.invoke("1")
        two.invoke("2")
    assert ([r["main_input"] for r in of_one.records], [r["main_input"] for r in of_two.records]) == (["1"], ["2"])


def test_the_record_of_an_outer_chain_holds_the_runs_of_an_inner_one() -> None:
    inner = rag()
    outer = {"x": inner} | RunnableLambda(lambda found: found["x"].upper())
    with LangChainApp(outer) as of_outer, LangChainApp(inner) as of_inner:
        outer.invoke("hi")
    assert (of_outer.get()["main_output"], of_inner.get()["main_output"]) == ("AN ANSWER", "an answer")
    assert set(names(of_outer.get())) >= {f"first.steps__.x.{run}" for run in RUNS}
    assert sorted(names(of_inner.get())) == sorted(RUNS)
    assert of_inner.get()["main_input"] == "hi"


def test_threads_that_are_carried_are_recorded() -> None:
    chain = rag()
    with LangChainApp(chain) as recording, ThreadPoolExecutor(4) as pool:
        list(pool.map(recording.carry_context(chain.invoke), ["a", "b", "c"]))
    assert sorted(record["main_input"] for record in recording.records) == ["a", "b", "c"]


def test_runs_that_a_thread_loses_are_reported_once_for_each_app_and_method() -> None:
    chain = rag()
    with LangChainApp(chain, name="rag") as recording, ThreadPoolExecutor(1, "worker") as pool:
        with pytest.warns(EvaluandWarning) as reported:
            assert [pool.submit(chain.invoke, "lost").result() for _ in range(2)] == ["an answer"] * 2
        said = [str(each.message) for each in reported]
        assert sorted(text.partition(" was called")[0] for text in said) == sorted(f"rag: {run}" for run in RUNS)
        assert [text for text in said if "rag: invoke was called in the thread worker_0" in text]
        assert all("give the thread recording.carry_context(function)" in text for text in said)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert pool.submit(chain.invoke, "lost again").result() == "an answer"
    assert list(recording.records) == []


@pytest.mark.parametrize("way", ["ainvoke", "stream", "batch"])
def test_runs_of_every_sort_are_reported_that_a_thread_loses(way: str) -> None:
    chain = rag()
    ways: dict[str, Callable[[], Any]] = {
        "ainvoke": lambda: asyncio.run(chain.ainvoke("a")),
        "stream": lambda: list(chain.stream("a")),
        "batch": lambda: chain.batch(["a", "b"]),
    }
    with LangChainApp(chain, name="rag"), ThreadPoolExecutor(1) as pool, pytest.warns(EvaluandWarning) as reported:
        pool.submit(ways[way]).result()
    assert "rag: invoke was called in the thread" in " ".join(str(each.message) for each in reported)


def test_nothing_is_reported_where_nothing_is_lost() -> None:
    chain, other = rag(), rag()
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("error")
        pool.submit(chain.invoke, "before").result()
        with LangChainApp(chain) as recording:
            chain.invoke("here")
            chain.batch(["of", "threads", "of LangChain"])
            pool.submit(recording.carry_context(chain.invoke), "carried").result()
            pool.submit(other.invoke, "of another chain").result()
        pool.submit(chain.invoke, "after").result()
    inputs = sorted(record["main_input"] for record in recording.records)
    assert inputs == ["carried", "here", "of", "of LangChain", "threads"]


def test_a_chain_that_a_recorded_one_calls_in_a_thread_with_its_configuration_is_not_lost() -> None:
    inner = RunnableLambda(str.upper)

    def shout(text: str, config: Any) -> str:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(inner.invoke, text, config).result()

    chain = RunnableLambda(shout)
    app = LangChainApp(SimpleNamespace(chain=chain, inner=inner), name="both")
    with warnings.catch_warnings(), app as recording:
        warnings.simplefilter("error")
        assert chain.invoke("hi") == "HI"
    assert names(recording.get()) == ["inner.invoke", "chain.invoke"]


def test_steps_that_ended_are_forgotten() -> None:
    from evaluand.apps.frameworks.langchain import _HANDLER

    chain = rag()
    with LangChainApp(chain):
        chain.invoke("a")
        with pytest.raises(OSError, match="no index"):
            chain.invoke("fail")
        list(chain.stream("b"))
    assert _HANDLER.steps == {}
