"""The examples of TruLens' documentation on feedback functions, with changed imports."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy
import pytest
from support.places import ROOT_FOLDER

from evaluand.core.errors import SpecError
from evaluand.interop import trulens
from evaluand.interop.names import advice_by_name
from evaluand.interop.trulens import (
    App,
    Cost,
    Feedback,
    FeedbackMode,
    FeedbackResult,
    JSONPath,
    Provider,
    Record,
    Select,
    TruApp,
    TruBasicApp,
    TruVirtual,
    VirtualRecord,
    instrument,
)
from evaluand.interop.trulens.missing_names import REPLACEMENTS

GUIDE = ROOT_FOLDER / "docs" / "howto" / "trulens.md"


class Judges(Provider):
    """Judges with the names and arguments of the documentation."""

    def language_match(self, text1: str, text2: str) -> float:
        return float(text1.isascii() == text2.isascii())

    def context_relevance(self, question: str, statement: str) -> float:
        asked = set(question.lower().split())
        return len(asked & set(statement.lower().split())) / len(asked)


class Document:
    def __init__(self, page_content: str) -> None:
        self.page_content = page_content


class CombineDocuments:
    def _call(self, inputs: dict[str, Any]) -> str:
        return str(inputs["input_documents"][0].page_content)


class Chain:
    def __init__(self) -> None:
        self.combine_docs_chain = CombineDocuments()

    def run(self, question: str) -> str:
        documents = [Document("Austen wrote Emma"), Document("Emma Stone is an actress")]
        return self.combine_docs_chain._call(inputs={"input_documents": documents})


def length(text: str) -> float:
    return float(len(text))


provider = Judges()


@pytest.fixture(scope="module")
def recorded() -> tuple[App, Record]:
    chain = Chain()
    app = TruApp(chain, app_name="chain", methods_to_instrument=["run", "combine_docs_chain._call"])
    with app as recording:
        chain.run("who wrote Emma")
    return app, recording.get()


def test_the_first_example(recorded: tuple[App, Record]) -> None:
    hugs = provider

    # fmt: off
    f_lang_match = (Feedback(hugs.language_match)
        .on_input_output())
    # fmt: on
    app, record = recorded
    assert f_lang_match.run(app=app, record=record).result == 1.0
    assert f_lang_match.run(app=app.dict(), record=record.layout_calls_as_app()).result == 1.0


def test_the_example_of_fine_grained_selection(recorded: tuple[App, Record]) -> None:
    openai = provider

    f_context_relevance = (
        Feedback(openai.context_relevance)
        .on_input()
        .on(Select.Record.app.combine_docs_chain._call.args.inputs.input_documents[:].page_content)
        .aggregate(numpy.mean)
    )
    app, record = recorded
    feedback_result: FeedbackResult = f_context_relevance.run(app=app, record=record)
    assert [call.ret for call in feedback_result.calls] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert feedback_result.result == pytest.approx(0.5)


def test_feedbacks_are_given_to_an_app() -> None:
    chain = Chain()
    f_lang_match = Feedback(provider.language_match).on_input_output()
    app: App = TruApp(chain, methods_to_instrument=["run"], feedbacks=[f_lang_match])
    with app as recording:
        chain.run("who wrote Emma")
    assert [each.result for each in recording.get().feedback_results] == [1.0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda f: f.on_prompt(), lambda f: f.on_input()),
        (lambda f: f.on_response(), lambda f: f.on_output()),
        (lambda f: f.on_prompt("text2"), lambda f: f.on(text2=Select.RecordInput)),
        (lambda f: f.on_input_output(), lambda f: f.on_input().on_output()),
        (lambda f: f.on_default(), lambda f: f.on_input_output()),
        (lambda f: f.on(Select.RecordInput, Select.RecordOutput), lambda f: f.on_input_output()),
        (
            lambda f: f.on(text2=Select.RecordOutput, text1=Select.RecordInput),
            lambda f: f.on(Select.RecordInput, Select.RecordOutput),
        ),
    ],
)
def test_shorthands_equal_their_long_forms(one: Any, other: Any) -> None:
    feedback = Feedback(provider.language_match)
    assert one(feedback).selectors == other(feedback).selectors
    assert feedback.selectors == {}


def test_the_aliases_equal_their_paths() -> None:
    query = Select.Query
    assert query is JSONPath
    assert Select.Record == query().__record__
    assert Select.App == query().__app__
    assert (Select.RecordInput, Select.RecordOutput) == (Select.Record.main_input, Select.Record.main_output)
    assert Select.RecordCalls == Select.Record.app


@pytest.mark.parametrize(
    ("path", "data", "selected"),
    [
        (JSONPath()["somekey"], {"somekey": 1}, [1]),
        (JSONPath()[1], [1, 2], [2]),
        (JSONPath()[0:2], [1, 2, 3], [1, 2]),
        (JSONPath()["somekey1", "somekey2"], {"somekey1": 1, "somekey2": 2, "c": 3}, [1, 2]),
        (JSONPath()[0, 2], [1, 2, 3], [1, 3]),
        (JSONPath().someattr, {"someattr": 1}, [1]),
        (JSONPath().page_content, Document("Emma"), ["Emma"]),
    ],
)
def test_the_forms_of_a_path(path: JSONPath, data: Any, selected: Sequence[Any]) -> None:
    assert list(path(data)) == selected


def test_every_combination_of_several_values_is_evaluated(recorded: tuple[App, Record]) -> None:
    texts = Select.RecordCalls.combine_docs_chain._call.args.inputs.input_documents[:].page_content
    result = Feedback(provider.context_relevance).on(question=texts, statement=texts).run(*recorded)
    assert len(result.calls) == 4


def test_an_app_describes_itself_as_data_and_prints_its_components(
    recorded: tuple[App, Record], capsys: pytest.CaptureFixture[str]
) -> None:
    app, record = recorded
    data = app.dict()
    assert {"app_id", "feedback_definitions", "feedback_mode", "root_class", "app"} <= data.keys()
    assert app.definition.feedback_mode is FeedbackMode.WITH_APP_THREAD
    app.print_instrumented()
    assert "combine_docs_chain: _call" in capsys.readouterr().out
    assert record.layout_calls_as_app()["app"]["combine_docs_chain"]["_call"][0]["rets"] == "Austen wrote Emma"


def test_a_deferred_feedback_must_be_importable() -> None:
    def here(text: str) -> float:
        return 1.0

    with pytest.raises(SpecError, match="here cannot be stored"):
        TruBasicApp(str.upper, feedbacks=[Feedback(here).on_output()], feedback_mode=FeedbackMode.DEFERRED)


def test_records_and_results_of_two_recordings_have_different_ids() -> None:
    def answer(question: str) -> str:
        return question

    app, ids_ = TruBasicApp(answer, feedbacks=[Feedback(provider.language_match).on_input_output()]), []
    for _ in range(2):
        with app as recording:
            app.app("Emma?")
        recording.close()
        record = recording.get()
        [result] = record.feedback_results
        assert result.record_id == record.record_id
        again = Feedback(provider.language_match).on_input_output().run(record=record)
        assert again.feedback_result_id == result.feedback_result_id
        ids_ += [record.record_id, result.feedback_result_id]
    assert len({*ids_}) == 4


def test_a_virtual_record_is_stored_with_its_current_fields() -> None:
    context = Select.RecordCalls.retriever.get_context
    rec = VirtualRecord(main_input="Where is Germany?", main_output="In Europe", calls={context: {"rets": ["a", "b"]}})
    rec.cost.n_tokens, rec.cost.cost = 234, 0.05
    rec.perf.start_time = datetime(2024, 1, 1, tzinfo=UTC)
    rec.perf.end_time = datetime(2024, 1, 1, 0, 1, tzinfo=UTC)
    rec.main_output = "in the middle of Europe"
    tru = TruVirtual(app_name="logged", feedbacks=[Feedback(length, name="length").on_output()])
    stored = tru.add_record(rec)
    assert (stored.cost.n_tokens, stored.cost.cost, stored.perf.latency) == (234, 0.05, timedelta(minutes=1))
    assert stored.main_output == rec.layout_calls_as_app()["main_output"] == "in the middle of Europe"
    assert [(each.name, each.result) for each in rec.feedback_results] == [("length", 23.0)]
    assert VirtualRecord(main_input="a", cost=Cost(n_tokens=3, cost=0.1)).cost == Cost(n_tokens=3, cost=0.1)


def test_a_recording_is_a_sequence_and_an_app_an_async_context() -> None:
    class Shout:
        @instrument
        async def answer(self, text: str) -> str:
            return text.upper()

    shout = Shout()
    recorder = TruApp(shout, app_name="shout")

    async def use() -> trulens.Record:
        async with recorder as recording:
            await shout.answer("a")
            await shout.answer("b")
        assert [record.main_output for record in recording] == ["A", "B"]
        assert (len(recording), recording[-1].main_output) == (2, "B")
        assert await recorder.awith_(shout.answer, "c") == "C"
        return recording[0]

    record = asyncio.run(use())
    assert json.loads(record.model_dump_json())["main_output"] == "A"


def test_an_unsupported_option_is_refused_with_advice() -> None:
    with pytest.raises(SpecError, match=r"TruApp has no option 'app_id': it is derived from app_name and app_version"):
        TruApp(Chain(), app_id="chain")
    with pytest.raises(SpecError, match=r"no option 'app_nam': the options are .*app_name"):
        TruApp(Chain(), app_nam="chain")


def test_a_feedback_is_called_as_its_implementation() -> None:
    feedback = Feedback(length)
    assert feedback("four") == 4.0
    result = Feedback(lambda text: numpy.float64(0.5), name="half").on(Select.RecordInput).run(record=Record())
    assert type(result.result) is float


def test_contexts_of_several_calls_ground_one_answer() -> None:
    hugs = trulens.Huggingface(local=True)
    chunks = [["The crossing takes fifty minutes."], ["Dogs travel free."]]
    judgement = hugs.groundedness_measure_with_nli(chunks, "The crossing takes fifty minutes.")
    assert judgement == hugs.groundedness(
        ["The crossing takes fifty minutes.", "Dogs travel free."], "The crossing takes fifty minutes."
    )
    assert judgement.value > 0.9


def test_an_unsupported_name_is_refused_with_advice() -> None:
    for name, advice in advice_by_name(REPLACEMENTS).items():
        message = f"^{name} is not in evaluand.interop.trulens: {re.escape(advice)}$"
        with pytest.raises(ImportError, match=message):
            exec(f"from evaluand.interop.trulens import {name}")
        assert not hasattr(trulens, name)
    assert not advice_by_name(REPLACEMENTS).keys() & set(trulens.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        trulens.nonsense  # noqa: B018


def test_the_guide_lists_the_unsupported_names() -> None:
    absent = GUIDE.read_text().partition("These names are not supported")[2]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", absent, re.MULTILINE)
    assert {name: advice for names, advice in rows for name in re.findall(r"`(\w+)`", names)} == advice_by_name(
        REPLACEMENTS
    )
