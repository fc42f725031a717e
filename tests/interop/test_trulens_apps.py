"""Recorders of apps, and records, with the names of TruLens."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from evaluand import span
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.provider import RemoteProvider, Reply, asks
from evaluand.interop.trulens import (
    AppDefinition,
    Cost,
    Feedback,
    FeedbackMode,
    FeedbackResultStatus,
    Lens,
    Perf,
    Record,
    RecordAppCall,
    RecordAppCallMethod,
    Select,
    TruApp,
    TruBasicApp,
    TruCustomApp,
    TruVirtual,
    VirtualApp,
    VirtualRecord,
    instrument,
)
from evaluand.interop.trulens.records import Method


class Retriever:
    @instrument
    def get_context(self, query: str) -> list[str]:
        if query == "fail":
            raise OSError("no index")
        return [f"{query} {n}" for n in range(3)]


class Rag:
    def __init__(self) -> None:
        self.retriever = Retriever()
        self.model = "small"
        self.api_key = "sk-1"

    @instrument
    def query(self, question: str) -> str:
        return " ".join(self.retriever.get_context(question))

    @instrument
    async def aquery(self, question: str) -> str:
        await asyncio.sleep(0)
        return self.query(question)


def longer(a: str, b: str) -> float:
    return float(len(b) > len(a))


def ends_in_zero(text: str) -> float:
    return float(text.endswith("0"))


CONTEXTS = Select.RecordCalls.retriever.get_context.rets[:]


def test_a_record_has_the_fields_of_the_original() -> None:
    rag = Rag()
    recorder = TruApp(rag, app_name="rag", app_version="2", tags="t")
    with recorder as recording:
        rag.query("Emma")
    record = recording.get()
    assert (record.main_input, record.main_output, record.main_error) == ("Emma", "Emma 0 Emma 1 Emma 2", None)
    assert (record.app_id, record.tags) == (recorder.app_id, "t")
    assert isinstance(record.cost, Cost)
    assert record.perf is not None
    assert record.perf.latency > timedelta()
    inner, whole = record.calls
    assert (str(inner.top().path), inner.method().name) == ("app.retriever", "get_context")
    assert (str(whole.top().path), whole.method().name) == ("app", "query")
    assert [step.method.name for step in inner.stack] == ["query", "get_context"]
    assert (inner.args, inner.rets, inner.error) == ({"query": "Emma"}, ["Emma 0", "Emma 1", "Emma 2"], None)


def test_calls_are_laid_out_as_the_app_is() -> None:
    rag = Rag()
    with TruCustomApp(rag) as recording:
        rag.query("Emma")
    record = recording.get()
    laid_out = record.layout_calls_as_app()
    assert laid_out.app["retriever"]["get_context"][0]["rets"][0] == "Emma 0"
    assert CONTEXTS({"__record__": laid_out}) == ["Emma 0", "Emma 1", "Emma 2"]
    assert record.get(Lens().main_input) == "Emma"


def test_a_record_built_by_hand_is_laid_out_too() -> None:
    stack = [RecordAppCallMethod(Lens().app.steps[0], Method("run"))]
    record = Record(calls=[RecordAppCall("1", stack, {"x": 1}, "y")], main_input="x")
    assert record.layout_calls_as_app().app == {"steps": [{"run": [record.model_dump()["calls"][0]]}]}
    source = {"__record__": record.layout_calls_as_app()}
    assert Select.RecordCalls.steps[0].run.rets(source) == ["y"]
    assert Select.RecordInput(source) == ["x"]


def test_errors_are_recorded() -> None:
    rag = Rag()
    with TruApp(rag) as recording, pytest.raises(OSError, match="no index"):
        rag.query("fail")
    record = recording.get()
    assert record.main_error == {"type": "OSError", "message": "no index"}
    assert [call.error for call in record.calls] == ["no index", "no index"]


@pytest.mark.parametrize("mode", [FeedbackMode.WITH_APP, FeedbackMode.WITH_APP_THREAD, "none"])
def test_feedbacks_are_computed_for_each_record(mode: Any) -> None:
    rag = Rag()
    relevant = Feedback(ends_in_zero, name="zero").on(CONTEXTS).aggregate(np.max)
    length = Feedback(longer, name="longer").on_input_output()
    with TruApp(rag, feedbacks=[relevant, length], feedback_mode=mode) as recording:
        rag.query("Emma")
        rag.query("Persuasion")
    for record in recording.records:
        results = record.wait_for_feedback_results()
        assert {feedback.name: result.result for feedback, result in results.items()} == {"zero": 1.0, "longer": 1.0}
        zero = next(result for result in results.values() if result.name == "zero")
        assert zero.status is FeedbackResultStatus.DONE
        assert [call.ret for call in zero.calls] == [1.0, 0.0, 0.0]
        assert zero.calls[0].args == {"text": f"{record.main_input} 0"}


@dataclass(frozen=True, kw_only=True)
class Paid(RemoteProvider):
    @asks
    def letters(self, text: str, currency: str) -> Any:
        price = {"cost": 0.5, "currency": currency} if currency else {}
        return Reply(len(text), {"input_tokens": len(text), "output_tokens": 1, **price})

    def long(self, text: str) -> float:
        return float(self.letters(text, "EUR") > 3)

    def twice(self, text: str) -> float:
        return float(self.letters(text, "EUR") + self.letters(text, "USD"))

    def unpriced(self, text: str) -> float:
        return float(self.letters(text, ""))


def test_results_report_what_their_feedbacks_cost() -> None:
    paid = Feedback(Paid(version="1", cache=False).long).on_input()
    with TruBasicApp(lambda text: text, feedbacks=[paid], feedback_mode="with_app") as recording:
        recording.app.app("Emma")
    [result] = recording.get().wait_for_feedback_results().values()
    cost = result.cost
    assert (cost.n_requests, cost.n_successful_requests, cost.n_prompt_tokens, cost.n_completion_tokens) == (1, 1, 4, 1)
    assert (cost.cost, cost.cost_currency) == (0.5, "EUR")


@pytest.mark.parametrize("name", ["twice", "unpriced"])
@pytest.mark.parametrize("when", ["stored", "live"])
def test_a_cost_in_several_currencies_or_without_one_is_unknown(name: str, when: str) -> None:
    feedback = Feedback(getattr(Paid(version="1", cache=False), name)).on_input()
    with TruBasicApp(lambda text: text, feedbacks=[feedback], feedback_mode="with_app") as recording:
        recording.app.app("Emma")
    record = recording.get()
    [stored] = record.wait_for_feedback_results().values()
    result = stored if when == "stored" else feedback.run(record=record)
    assert (result.cost.n_requests, result.cost.cost) == ((2, None) if name == "twice" else (1, None))


def test_costs_in_different_currencies_are_never_added() -> None:
    euros, dollars, nothing = Cost(cost=1.0, cost_currency="EUR"), Cost(cost=2.0), Cost(n_tokens=3)
    with pytest.raises(ValueError, match="costs in EUR and USD cannot be added; sum those of each currency"):
        _ = euros + dollars
    assert dollars + dollars == Cost(cost=4.0)
    assert euros + nothing == nothing + euros == Cost(n_tokens=3, cost=1.0, cost_currency="EUR")
    assert (euros + Cost(cost=None)).cost is None


def test_a_record_of_several_currencies_has_no_sum() -> None:
    class Bot:
        def ask(self, text: str) -> str:
            for currency in ("EUR", "USD"):
                with span("chat", kind="llm", usage={"input_tokens": 1, "cost": 1.0, "currency": currency}):
                    pass
            return text

    bot = Bot()
    with TruApp(bot, app_name="bot") as recording:
        bot.ask("a")
    cost = recording.get().cost
    assert cost is not None
    assert (cost.n_requests, cost.n_tokens, cost.cost) == (2, 2, None)


def test_a_feedback_is_run_on_an_app_and_a_record() -> None:
    rag = Rag()
    recorder = TruApp(rag, app_name="rag")
    with recorder as recording:
        rag.query("Emma")

    def same(a: str, b: str) -> float:
        return float(a == b)

    on_app = Feedback(same).on(Select.App.app.model, Lens.of_string("__app__.app_name"))
    result = on_app.run(app=recorder, record=recording.get())
    assert [call.args for call in result.calls] == [{"a": "small", "b": "rag"}]
    for app in (recorder.definition, recorder.dict()):
        assert on_app.run(app=app, record=recording.get()).calls == result.calls
    assert Feedback(longer).on_input_output().run(recorder, recording.get()).result == 1.0


def test_the_data_of_an_app_hides_its_secrets() -> None:
    recorder = TruApp(Rag(), app_name="rag", app_version="2", metadata={"team": "x"})
    data = recorder.dict()
    assert (data["app_name"], data["app_version"], data["metadata"]) == ("rag", "2", {"team": "x"})
    assert (data["app"]["model"], data["app"]["api_key"]) == ("small", "***")
    assert isinstance(recorder.definition, AppDefinition)
    assert recorder.definition.model_dump()["feedback_mode"] == "with_app_thread"


def test_a_call_returns_its_result_and_its_record() -> None:
    rag = Rag()
    recorder = TruApp(rag)
    result, record = recorder.with_record(rag.query, "Emma", record_metadata={"user": 1})
    assert (result, record.main_output, record.meta) == (record.main_output, "Emma 0 Emma 1 Emma 2", {"user": 1})
    result, record = asyncio.run(recorder.awith_record(rag.aquery, "Emma"))
    assert result == record.main_output
    assert recorder.with_(rag.query, "x") == "x 0 x 1 x 2"


def test_a_function_from_text_to_text_is_an_app() -> None:
    recorder = TruBasicApp(lambda text: text.upper(), app_name="shout")
    with recorder as recording:
        assert recorder.app("hello") == "HELLO"
    assert (recording.get().main_input, recording.get().main_output) == ("hello", "HELLO")
    with pytest.raises(SpecError, match="pass either text_to_text, a function from text to text, or app"):
        TruBasicApp()


def test_methods_can_be_marked_and_named_from_outside() -> None:
    class Plain:
        def ask(self, text: str) -> str:
            return self.clean(text)

        def clean(self, text: str) -> str:
            return text.strip()

    plain = Plain()
    with TruApp(plain, methods_to_instrument=["ask"]) as recording:
        plain.ask(" a ")
    assert [call.method().name for call in recording.get().calls] == ["ask"]
    instrument.method(Plain, "clean")
    other = Plain()
    with TruApp(other, main_method=other.ask) as recording:
        other.ask(" a ")
    assert [call.method().name for call in recording.get().calls] == ["clean", "ask"]


def test_get_refuses_several_records() -> None:
    rag = Rag()
    with TruApp(rag) as recording:
        rag.query("a")
        rag.query("b")
    with pytest.raises(DataError, match="exactly one record, not 2"):
        recording.get()
    assert [record.main_input for record in recording.records[-1:]] == ["b"]


def test_a_recording_becomes_a_run_and_its_evaluation() -> None:
    rag = Rag()
    recorder = TruApp(rag, app_name="rag", feedbacks=[Feedback(longer, name="longer").on_input_output()])
    with recorder as recording:
        rag.query("Emma")
    assert recording.run is not None
    assert recording.run.counts == {"completed": 1}
    assert recording.evaluation is not None
    assert recording.evaluation.table("longer").column("value").to_pylist() == [1.0]
    assert recording.get().main_input == "Emma"


# Logged interactions


def test_virtual_records_are_selected_from_and_judged() -> None:
    app = VirtualApp({"llm": {"modelname": "small", "api_key": "x"}})
    app[Select.RecordCalls.llm.maxtokens] = 1024
    app[Select.RecordCalls.retriever] = "a retriever"
    assert dict(app) == {
        "llm": {"modelname": "small", "api_key": "x", "maxtokens": 1024},
        "retriever": "a retriever",
    }
    zero = Feedback(ends_in_zero, name="zero").on(CONTEXTS)
    recorder = TruVirtual(app_name="logged", app=app, feedbacks=[zero])
    context = Select.RecordCalls.retriever.get_context
    start = datetime(2026, 1, 2, tzinfo=UTC)
    record = VirtualRecord(
        main_input="Who?",
        main_output="Austen",
        calls={context: [{"args": ["x"], "rets": ["a 0", "b"]}, {"rets": ["c 0", "d 0"]}]},
        cost=Cost(n_prompt_tokens=3, n_completion_tokens=4),
        perf=Perf(start, start + timedelta(seconds=2)),
        meta={"user": 1},
    )
    assert (record.main_input, record.main_output, record.meta) == ("Who?", "Austen", {"user": 1})
    assert record.perf == Perf(start, start + timedelta(seconds=2))
    assert record.cost is not None
    assert record.cost.n_tokens == 7
    stored = recorder.add_record(record)
    assert [result.result for result in stored.feedback_results] == [0.75]
    assert recorder.dict()["app"]["llm"] == {"modelname": "small", "api_key": "***", "maxtokens": 1024}


@pytest.mark.parametrize("as_frame", [True, False])
def test_a_frame_of_logs_becomes_records(as_frame: bool) -> None:
    rows: Any = [
        {"query": "a", "response": "x", "contexts": ["1", "2"]},
        {"query": "b", "response": "y", "contexts": ["3"]},
    ]
    if as_frame:
        rows = pytest.importorskip("pandas").DataFrame(rows)
    records = TruVirtual(app_name="logged").add_dataframe(rows)
    assert [record.main_output for record in records] == ["x", "y"]
    contexts = [VirtualApp.select_context()({"__record__": record.layout_calls_as_app()}) for record in records]
    assert contexts == [["1", "2"], ["3"]]


def test_a_missing_column_is_reported() -> None:
    with pytest.raises(
        SpecError, match="no column 'response' among query; columns are query, response and, optionally, contexts"
    ):
        TruVirtual().add_dataframe([{"query": "a"}])


# Frameworks


@pytest.mark.slow
def test_a_chain_is_recorded() -> None:
    pytest.importorskip("langchain_classic", reason="needs langchain_classic: make install")
    from langchain_classic.chains import ConversationalRetrievalChain
    from langchain_core.documents import Document
    from langchain_core.language_models.fake import FakeListLLM
    from langchain_core.retrievers import BaseRetriever

    from evaluand.interop.trulens import TruChain

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=f"{query} {n}") for n in range(2)]

    chain = ConversationalRetrievalChain.from_llm(FakeListLLM(responses=["an answer"]), Fixed())
    context = Select.Record.app.combine_docs_chain._call.args.inputs.input_documents[:].page_content
    f_context_relevance = Feedback(longer, name="relevance").on_input().on(context).aggregate(np.mean)
    of_all = Feedback(ends_in_zero, name="all").on(TruChain.select_context())
    of_chain = Feedback(ends_in_zero, name="of chain").on(TruChain.select_context(chain))
    app = TruChain(chain, app_name="qa", feedbacks=[f_context_relevance, of_all, of_chain])
    with app as recording:
        chain.invoke({"question": "Who?", "chat_history": []})
    record = recording.get()
    assert (record.main_input, record.main_output) == ("Who?", "an answer")
    assert {result.name: result.result for result in record.feedback_results} == {
        "relevance": 1.0,
        "all": 0.5,
        "of chain": 0.5,
    }
    feedback_result = f_context_relevance.run(app=app, record=record)
    assert [call.args for call in feedback_result.calls] == [{"a": "Who?", "b": "Who? 0"}, {"a": "Who?", "b": "Who? 1"}]


@pytest.mark.slow
def test_an_engine_is_recorded() -> None:
    pytest.importorskip("llama_index.core", reason="needs llama_index.core: make install")
    from llama_index.core import Document, VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.llms import MockLLM

    from evaluand.interop.trulens import TruLlama

    index = VectorStoreIndex.from_documents([Document(text="a 0")], embed_model=MockEmbedding(embed_dim=3))
    engine = index.as_query_engine(llm=MockLLM(max_tokens=2))
    zero = Feedback(ends_in_zero, name="zero").on(TruLlama.select_context())
    with TruLlama(engine, feedbacks=[zero]) as recording:
        engine.query("Who?")
    record = recording.get()
    assert [result.result for result in record.feedback_results] == [1.0]
    nodes = TruLlama.select_source_nodes()({"__record__": record.layout_calls_as_app()})
    assert [node["node"]["text"] for node in nodes] == ["a 0"]

    class Mine:
        def __init__(self) -> None:
            self.engine = engine

    assert TruLlama.select_context(engine) == TruLlama.select_context()
    of_mine = "__record__.app.engine.query[:].rets.source_nodes[:].node.text"
    assert TruLlama.select_context(Mine()) == Lens.of_string(of_mine)


def test_the_definition_names_what_a_call_begins_with() -> None:
    class One:
        @instrument
        def query(self, text: str) -> str:
            return text

    class Two(One):
        @instrument
        def chat(self, text: str) -> str:
            return text

    def shout(text: str) -> str:
        return text.upper()

    for recorder, named in (
        (TruApp(One()), "One.query"),
        (TruApp(Two()), None),
        (TruApp(Two(), main_method=Two().chat), "Two.chat"),
        (TruBasicApp(shout), "shout"),
    ):
        root = recorder.definition.root_callable
        assert root == recorder.definition.model_dump()["root_callable"]
        assert root is None if named is None else root.startswith(f"{__name__}:") and root.endswith(named)
